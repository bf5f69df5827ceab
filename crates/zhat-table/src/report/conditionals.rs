//! What the model says of cells given those before them, on test rows: whether that is as wide as the data, and the strangest rows.

use zhat::rng::Streams;
use zhat_report::figure::{Colour, LegendPosition, Panel, Scale, Series, Stroke};
use zhat_report::page::Page;
use zhat_report::{Align, Table};

use super::shown::Shown;
use crate::error::Result;
use crate::fitted::{Calibration, StrangeRow, Strangest, Uniformity};

/// Strange rows that are shown.
pub(super) const STRANGE_ROWS: usize = 10;
/// Headers of the columns that are named for each.
const NAMED: [&str; 3] = ["most by", "then by", "and by"];
/// Columns whose calibration is shown, at most.
const SHOWN_COLUMNS: usize = 100;
/// Steps of a picture.
const STEPS: usize = 60;

/// Where columns are looked at by draws.
const BY_THEMSELVES: &str = "The model has one normaliser for whole rows, and says nothing of a column without those after it: columns are \
     shown by themselves, by draws, and not given those before them.";
/// Why there is nothing of single columns.
const ONE_NORMALISER: &str = "The model has one normaliser for whole rows, and says nothing of a column without those after it: what \
     is shown here column by column is there for models with model.normalisation=local, the default.";

pub(super) fn calibration(page: Page, shown: &Shown, strangest: &Strangest) -> Result<Page> {
    let columns = shown.columns;
    let (calibration, page) = match &strangest.usual {
        Some(usual) => (Calibration::new(&usual.below, columns.len()), page),
        None => {
            let mut rng = Streams::new(0).stream("places", 0, 0);
            let (rows, draws) = (&shown.as_read, &shown.draws.rows);
            let found = Calibration::of_marginals(rows, draws, columns.len(), &mut rng);
            (found, page.text(BY_THEMSELVES))
        }
    };
    if calibration.rows == 0 {
        return Ok(page.text("There are no test rows to calibrate with."));
    }
    let beyond = calibration.beyond();
    let names: Vec<&str> = beyond.iter().map(|&column| columns[column].as_str()).collect();
    let page = page.text(&match names.as_slice() {
        [] => "In no column are the test rows further from what the model says of them than chance gives (level 0.01 for all \
               columns together)."
            .to_owned(),
        names => format!(
            "Further from what the model says of them than chance gives (level 0.01 for all columns together) are the test rows in \
             {} of {} columns: {}.",
            names.len(),
            columns.len(),
            names.join(", ")
        ),
    });
    // Words are in the order of their codes, and a row is anywhere within its word.
    let all =
        calibration.columns.iter().zip(columns).filter(|(column, _)| !column.sorted.is_empty());
    let all = all.take(SHOWN_COLUMNS);
    let largest = calibration.columns.iter().map(|column| column.distance).fold(0.0, f64::max);
    let height = 1.1 * largest.max(calibration.band);
    let panels: Vec<Panel> =
        all.map(|(column, name)| panel(name, column, calibration.band, height)).collect();
    let given = if strangest.usual.is_some() { ", given those before it" } else { "" };
    let caption = format!(
        "Calibration on {} test rows. For every column{given}: how many more rows (in percent) than the model says lie \
         below each of its quantiles, from 0 on the left to 1 on the right. The line should stay near 0; all of it within the dotted \
         lines is what chance gives. Up and then down: the model is too narrow. Down and then up: too wide. Up throughout: too high.",
        calibration.rows
    );
    Ok(page.grid(&panels, &caption)?)
}

fn panel(name: &str, column: &Uniformity, band: f64, height: f64) -> Panel {
    let percent = |(at, share): (f64, f64)| (at, 100.0 * share);
    let line = column.differences(STEPS).into_iter().map(percent).collect();
    let level = |at: f64| vec![percent((0.0, at)), percent((1.0, at))];
    let limit = |at| Series::line("", Colour::GREY, level(at)).with_stroke(Stroke::Dotted);
    Panel::new(name)
        .x("", Scale::Linear)
        .x_limits(0.0, 1.0)
        .y_limits(-100.0 * height, 100.0 * height)
        .legend(LegendPosition::Absent)
        .series(limit(band))
        .series(limit(-band))
        .series(Series::line("more rows than the model says", Colour::BLUE, line))
}

pub(super) fn strange_rows(page: Page, shown: &Shown, strangest: &Strangest, log_z: f64) -> Page {
    let known = strangest.usual.is_some();
    let numbered = !shown.data.test_rows.is_empty();
    let mut columns = vec![
        (if numbered { "row" } else { "test row" }, Align::Left),
        ("log-density", Align::Right),
    ];
    if known {
        columns.push(("below a usual row", Align::Right));
        let parts = NAMED.into_iter().take(shown.columns.len());
        columns.extend(parts.map(|header| (header, Align::Left)));
    }
    let mut table = Table::new(columns);
    for row in &strangest.rows {
        let number = shown.data.test_rows.get(row.index).unwrap_or(&row.index) + 1;
        let mut cells = vec![number.to_string(), format!("{:.2}", row.log_p_tilde - log_z)];
        if known {
            cells.push(format!("{:.2}", row.excess.iter().sum::<f64>()));
            cells.extend(named(row, shown));
        }
        table.row(cells);
    }
    let counted = match numbered {
        true => "Rows are counted from 1 among those that were read.",
        false => "Rows are counted from 1 in the test part.",
    };
    let by_others = strangest.rows.iter().any(|row| !row.excess_of_others.is_empty());
    let text = match known {
        true if by_others => format!(
            "Test rows with the lowest log-density. A column's part, in brackets, is how many nats less likely its cell is, given all \
             other cells of the row, than that column's cells are in a usual row: the cell that goes against the others is \
             named, wherever its column stands. {counted}"
        ),
        true => format!(
            "Test rows with the lowest log-density. A column's part, in brackets, is how many nats less likely its cell is, given the \
             cells before it, than that column's cells are in a usual row; the parts of all columns sum to what the row is below a usual one. Where \
             columns are strange only together, the part is that of the last of them. {counted}"
        ),
        false => format!("Test rows with the lowest log-density. {counted} {ONE_NORMALISER}"),
    };
    page.text(&text).table("", &table)
}

/// The columns that make a row strange: `width = 12.5 (7.31)`.
fn named(row: &StrangeRow, shown: &Shown) -> Vec<String> {
    let cells = &shown.as_read[row.index * shown.columns.len()..];
    let part = |column: usize| {
        let (name, cell) = (&shown.columns[column], shown.text(column, cells[column]));
        format!("{name} = {cell} ({:.2})", row.parts()[column])
    };
    let strange =
        row.columns().into_iter().take(NAMED.len()).filter(|&column| row.parts()[column] > 0.0);
    strange.map(part).collect()
}
