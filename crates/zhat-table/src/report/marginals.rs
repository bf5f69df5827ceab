//! Every column by itself: test rows and draws of the model in one small picture each.

use zhat_report::figure::{Colour, LegendPosition, Panel, Scale, Series, Stroke};
use zhat_report::page::Page;

use super::shown::Shown;
use crate::error::Result;

/// Columns that are shown, at most: each picture is some ten kilobytes of the page.
const SHOWN_COLUMNS: usize = 100;
/// What is left out of a picture on either side, as a share of the test rows: one outlier would hide all others.
const LEFT_OUT: f64 = 0.005;

pub(super) fn section(page: Page, shown: &Shown) -> Result<Page> {
    let features = shown.columns.len();
    if shown.rows() == 0 {
        return Ok(page.text("There are no test rows to show beside draws of the model."));
    }
    let panels: Vec<Panel> = shown
        .columns
        .iter()
        .enumerate()
        .take(SHOWN_COLUMNS)
        .map(|(column, name)| {
            let of = |rows: &[f32]| -> Vec<f64> {
                let cells = rows.iter().skip(column).step_by(features).map(|&x| f64::from(x));
                cells.filter(|x| !x.is_nan()).collect()
            };
            let (test, draws) = (of(&shown.as_read), of(&shown.draws.rows));
            match shown.levels(column) {
                _ if test.is_empty() => Panel::new(name),
                Some(levels) => words_panel(name, levels, &test, &draws),
                None => {
                    let panel = panel(name, &test, &draws);
                    match shown.days(column, window(&test)) {
                        Some(days) => panel.x_ticks(days),
                        None => panel,
                    }
                }
            }
        })
        .collect();
    let which = match features > SHOWN_COLUMNS {
        true => format!("The first {SHOWN_COLUMNS} of {features} columns"),
        false => "Every column".into(),
    };
    let caption = format!(
        "{which}, as a histogram of {} test rows (blue) and of {} draws of the model (red, dashed). Half a percent of the \
         test rows on either side is left out.",
        shown.rows(),
        shown.num_draws()
    );
    Ok(page.grid(&panels, &caption)?)
}

fn panel(name: &str, test: &[f64], draws: &[f64]) -> Panel {
    let window = window(test);
    let bins = (2.0 * (test.len() as f64).cbrt()).clamp(8.0, 40.0) as usize;
    let line = |label, colour, values| Series::line(label, colour, steps(values, window, bins));
    Panel::new(name)
        .x("", Scale::Linear)
        .x_limits(window.0, window.1)
        .y_names(Vec::new())
        .legend(LegendPosition::Absent)
        .series(line("test rows", Colour::BLUE, test))
        .series(line("draws", Colour::VERMILION, draws).with_stroke(Stroke::Dashed))
}

/// Words side by side, as often as they are; the one for all others is not among them unless it is there.
fn words_panel(name: &str, levels: &[String], test: &[f64], draws: &[f64]) -> Panel {
    let others = levels.len() as f64 - 1.0;
    let has_others = test.iter().chain(draws).any(|code| *code >= others);
    let shown = levels.len() - usize::from(!has_others && levels.len() > 1);
    let window = (0.0, shown as f64);
    let middles = |codes: &[f64]| codes.iter().map(|code| code + 0.5).collect::<Vec<_>>();
    let line = |label, colour, codes: &[f64]| {
        Series::line(label, colour, steps(&middles(codes), window, shown))
    };
    // More words than this have no room.
    let names = if shown <= 6 { levels[..shown].to_vec() } else { Vec::new() };
    Panel::new(name)
        .x("", Scale::Linear)
        .x_limits(window.0, window.1)
        .x_names(names)
        .y_names(Vec::new())
        .legend(LegendPosition::Absent)
        .series(line("test rows", Colour::BLUE, test))
        .series(line("draws", Colour::VERMILION, draws).with_stroke(Stroke::Dashed))
}

/// Where the values are, but for the outermost; not empty even if all are the same.
pub(super) fn window(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len() - 1;
    let out = (LEFT_OUT * last as f64) as usize;
    let (low, high) = (sorted[out], sorted[last - out]);
    let margin = (0.03 * (high - low)).max(1e-3 * low.abs().max(high.abs())).max(1e-9);
    (low - margin, high + margin)
}

/// The outline of a histogram whose area is the share of the values within the window.
pub(super) fn steps(values: &[f64], (low, high): (f64, f64), bins: usize) -> Vec<(f64, f64)> {
    let width = (high - low) / bins as f64;
    let mut counts = vec![0usize; bins];
    for value in values.iter().filter(|value| (low..high).contains(*value)) {
        counts[(((value - low) / width) as usize).min(bins - 1)] += 1;
    }
    let edge = |bin: usize| low + width * bin as f64;
    let mut outline = vec![(low, 0.0)];
    for (bin, &count) in counts.iter().enumerate() {
        let height = count as f64 / (values.len() as f64 * width);
        outline.extend([(edge(bin), height), (edge(bin + 1), height)]);
    }
    outline.push((high, 0.0));
    outline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outline_has_the_area_of_what_is_in_the_window() {
        let outline = steps(&[0.1, 0.2, 0.6, 7.0], (0.0, 1.0), 2);
        let expected = [(0.0, 0.0), (0.0, 1.0), (0.5, 1.0), (0.5, 0.5), (1.0, 0.5), (1.0, 0.0)];
        assert_eq!(outline, expected);
    }

    #[test]
    fn one_absurd_value_does_not_hide_the_others_and_equal_values_have_a_window() {
        let mut values: Vec<f64> = (0..1000).map(f64::from).collect();
        values[500] = 1e9;
        let (low, high) = window(&values);
        assert!(low < 6.0 && low > -100.0 && high > 990.0 && high < 1100.0, "{low} {high}");
        for value in [0.0, 1e17, -3.0] {
            let (low, high) = window(&[value; 5]);
            assert!(low < value && value < high);
        }
    }
}
