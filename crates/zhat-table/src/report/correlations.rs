//! Correlations of the columns, in the data beside the model.

use zhat_report::figure::{Colours, Density as Picture, Figure, Panel, Scale};
use zhat_report::page::Page;
use zhat_report::{Align, Table};

use super::shown::Shown;
use crate::error::Result;
use crate::fitted::{errors_by_chance, pair_differences, rank_correlations};

/// Pairs in the table.
const SHOWN_PAIRS: usize = 10;
/// With fewer test rows a correlation is noise.
const ENOUGH_ROWS: usize = 10;

pub(super) fn section(page: Page, shown: &Shown) -> Result<Page> {
    let (columns, test) = shown.numbers(&shown.as_read);
    let (_, draws) = shown.numbers(&shown.draws.rows);
    let (columns, rows) = (&*columns, test.len() / columns.len().max(1));
    if columns.len() < 2 {
        return Ok(page.text("Correlations are of columns of numbers, of which there are not two."));
    }
    if rows < ENOUGH_ROWS {
        return Ok(page.text(&format!("{rows} test rows are too few for correlations.")));
    }
    let tables = [&test, &draws].map(|rows| rank_correlations(rows, columns.len()));
    let independent = [rows as f64, shown.draws.effective_sample_size];
    let pairs = pair_differences([&tables[0], &tables[1]], independent);
    if let ([pair], [first, second]) = (pairs.as_slice(), columns) {
        let [data, model] = pair.correlations;
        return Ok(page.text(&format!(
            "The rank correlation of {first} and {second} is {data:.2} in the test rows and {model:.2} in draws of the model, {:.1} \
             standard errors apart.",
            pair.errors
        )));
    }
    let limit = errors_by_chance(pairs.len());
    let beyond = pairs.iter().filter(|pair| pair.errors > limit).count();
    let sentence = match beyond {
        0 => format!(
            "Of {} pairs of columns none has a rank correlation in the model that differs from that of the test rows by more than \
             chance gives (level 0.01 for all pairs together).",
            pairs.len()
        ),
        _ => format!(
            "Of {} pairs of columns {beyond} {} a rank correlation in the model that differs from that of the test rows by more than \
             chance gives: more than {limit:.1} standard errors (level 0.01 for all pairs together).",
            pairs.len(),
            if beyond == 1 { "has" } else { "have" }
        ),
    };
    let heights = (130.0 + 11.0 * columns.len() as f64).clamp(300.0, 560.0);
    let [data, model] = tables;
    let figure =
        Figure::new(vec![panel("Test rows", columns, data), panel("Draws", columns, model)])
            .with_panel_size(1.2 * heights, heights);
    let caption = "Rank correlations of the columns, which are numbered in their order: blue where one grows with the other, red where \
                   it falls.";
    let mut table = Table::new([
        ("columns", Align::Left),
        ("test rows", Align::Right),
        ("draws", Align::Right),
        ("difference", Align::Right),
        ("standard errors", Align::Right),
    ]);
    for pair in pairs.iter().take(SHOWN_PAIRS) {
        let [first, second] = pair.pair.map(|column| &columns[column]);
        let [of_data, of_model] = pair.correlations.map(|r| format!("{r:.2}"));
        let numbers = [format!("{:+.2}", pair.difference()), format!("{:.1}", pair.errors)];
        let [difference, errors] = numbers;
        table.row([format!("{first}, {second}"), of_data, of_model, difference, errors]);
    }
    Ok(page.text(&sentence).figure(&figure, caption)?.table("The largest differences", &table))
}

/// The matrix with its first row on top.
fn panel(title: &str, columns: &[String], matrix: Vec<Vec<f64>>) -> Panel {
    let edge = columns.len() as f64;
    let picture = Picture {
        x_range: (0.0, edge),
        y_range: (0.0, edge),
        rows: matrix.into_iter().rev().collect(),
        colours: Colours::Signs,
        ..Picture::default()
    };
    let numbers = (1..=columns.len()).map(|number| number.to_string());
    let names =
        columns.iter().enumerate().rev().map(|(at, name)| format!("{} {}", short(name), at + 1));
    Panel::new(title)
        .x("", Scale::Linear)
        .x_names(numbers.collect())
        .y_names(names.collect())
        .density(picture)
}

/// A name that leaves room for the picture.
fn short(name: &str) -> String {
    const MOST: usize = 14;
    match name.chars().count() > MOST {
        true => name.chars().take(MOST - 2).chain("..".chars()).collect(),
        false => name.to_owned(),
    }
}
