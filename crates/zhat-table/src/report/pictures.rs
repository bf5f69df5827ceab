//! Data beside the model: pairs of columns, and the density of the first two.

use zhat_report::figure::{Colour, Colours, Density as Picture, Figure, Panel, Scale, Series};
use zhat_report::page::Page;

use super::Finished;
use super::shown::Shown;
use crate::density::Density;
use crate::error::Result;

/// Rows shown in a scatter plot.
const POINTS: usize = 600;
/// Columns whose pairs are shown.
const SHOWN_COLUMNS: usize = 4;
/// Cells of a density picture, in each direction.
const GRID: usize = 80;

/// An interval of each of two columns.
type Window = [(f64, f64); 2];

pub(super) fn all(page: Page, run: &Finished, shown: &Shown) -> Result<Page> {
    let (density, data) = (run.fitted.density(), &shown.data);
    let (columns, as_read) = shown.numbers(&shown.as_read);
    let (_, draws) = &shown.numbers(&shown.draws.rows);
    let (columns, features, test) = (&*columns, columns.len(), &shown.test);
    if features < 2 || as_read.is_empty() {
        return Ok(page.text("Pairs are of columns of numbers, of which there are not two."));
    }
    let page = pairs(page, columns, &as_read, draws)?;
    let is_counted = (0..2).any(|column| density.standardiser().is_counted(column));
    if shown.columns.len() > 2 || is_counted || data.has_holes() || !run.result.test.tail.falls {
        let panel =
            panel("Model", columns, histogram(draws, features, window(draws, features), GRID));
        let number = shown.num_draws();
        let caption =
            format!("Density of the first two columns, from {number} draws of the model.");
        return Ok(page.figure(&Figure::new(vec![panel]), &caption)?);
    }
    let mut rows = data.in_units(&[data.train.as_slice(), &data.validation].concat());
    rows.extend_from_slice(test);
    let window = window(&rows, features);
    // About five rows in a cell, if they were spread evenly.
    let cells = ((rows.len() / features) as f64 / 5.0).sqrt().clamp(10.0, GRID as f64) as usize;
    let histogram = histogram(&rows, features, window, cells);
    let of_model = picture(density, run.result.test.log_z, window)?;
    let figure =
        Figure::new(vec![panel("Data", columns, histogram), panel("Model", columns, of_model)]);
    let caption = "Density in the units of the data: a histogram of all rows, and the model's log p~ − log Z.";
    Ok(page.figure(&figure, caption)?)
}

/// Scatter plots of pairs of columns, data and draws in each.
fn pairs(page: Page, columns: &[String], test: &[f32], draws: &[f32]) -> Result<Page> {
    let features = columns.len();
    let shown = features.min(SHOWN_COLUMNS);
    let mut panels = Vec::new();
    for second in 1..shown {
        for first in 0..second {
            let pair = |values: &[f32]| -> Vec<(f64, f64)> {
                let rows = values.chunks_exact(features).take(POINTS);
                rows.map(|row| (f64::from(row[first]), f64::from(row[second]))).collect()
            };
            panels.push(
                Panel::new("")
                    .x(&columns[first], Scale::Linear)
                    .y(&columns[second], Scale::Linear)
                    .series(Series::scatter("data", Colour::BLUE, pair(test)))
                    .series(Series::scatter("model", Colour::VERMILION, pair(draws))),
            );
        }
    }
    let caption = match features > shown {
        true => format!(
            "Test rows and as many draws of the model, for the first {shown} of {features} columns."
        ),
        false => "Test rows and as many draws of the model.".into(),
    };
    let across = panels.len().min(2);
    Ok(page.figure(&Figure::new(panels).with_columns(across), &caption)?)
}

fn panel(title: &str, columns: &[String], picture: Picture) -> Panel {
    Panel::new(title).x(&columns[0], Scale::Linear).y(&columns[1], Scale::Linear).density(picture)
}

/// Where the first two columns are, but for the extreme percentiles.
fn window(rows: &[f32], features: usize) -> Window {
    [0, 1].map(|column| {
        let mut values: Vec<f32> = rows.chunks_exact(features).map(|row| row[column]).collect();
        values.sort_unstable_by(f32::total_cmp);
        let at = |share: f64| f64::from(values[(share * (values.len() - 1) as f64) as usize]);
        let (low, high) = (at(0.002), at(0.998));
        // As wide at least as numbers of this size can tell: all rows may be the same to them.
        let margin = (0.05 * (high - low)).max(1e-6 * low.abs().max(high.abs())).max(1e-9);
        (low - margin, high + margin)
    })
}

/// A histogram of the first two columns, as a density.
fn histogram(rows: &[f32], features: usize, [x, y]: Window, cells: usize) -> Picture {
    let cell = |value: f64, (low, high): (f64, f64)| {
        let share = (value - low) / (high - low);
        (0.0..1.0).contains(&share).then_some((share * cells as f64) as usize)
    };
    let mut counts = vec![0.0; cells * cells];
    for row in rows.chunks_exact(features) {
        if let (Some(i), Some(j)) = (cell(row[0].into(), x), cell(row[1].into(), y)) {
            counts[j * cells + i] += 1.0;
        }
    }
    let area = (x.1 - x.0) * (y.1 - y.0) / (cells * cells) as f64;
    let whole = (rows.len() / features) as f64 * area;
    let rows =
        counts.chunks_exact(cells).map(|row| row.iter().map(|count| count / whole).collect());
    Picture {
        x_range: x,
        y_range: y,
        rows: rows.collect(),
        label: String::new(),
        colours: Colours::default(),
    }
}

/// A density of two columns, at the centres of a grid.
fn picture(density: &dyn Density, log_z: f64, [x, y]: Window) -> Result<Picture> {
    let centre = |(low, high): (f64, f64), at: usize| {
        (low + (high - low) * (at as f64 + 0.5) / GRID as f64) as f32
    };
    let cells = (0..GRID).flat_map(|j| (0..GRID).map(move |i| (i, j)));
    let centres: Vec<f32> = cells.flat_map(|(i, j)| [centre(x, i), centre(y, j)]).collect();
    let log_p_tilde = density.score(&centres)?.log_p_tilde;
    let row = |row: &[f64]| row.iter().map(|log_p| (log_p - log_z).exp()).collect();
    let rows = log_p_tilde.chunks_exact(GRID).map(row).collect();
    Ok(Picture { x_range: x, y_range: y, rows, ..Picture::default() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use burn::tensor::Device;
    use zhat::ar::{ArEbmConfig, Evaluator};
    use zhat::criterion::Method;
    use zhat::rng::Streams;

    use super::*;
    use crate::data::Standardiser;
    use crate::density::ArDensity;

    #[test]
    fn the_density_of_a_model_is_in_the_units_of_the_data() {
        let config = ArEbmConfig { features: 2, ..ArEbmConfig::small() };
        let model =
            config.init(&Device::flex(), &mut Streams::new(3).stream("init", 0, 0)).unwrap();
        let evaluator = Evaluator::new(&model, 1).unwrap();
        let standardiser = Standardiser::new(vec![100.0, -3.0], vec![20.0, 0.5]);
        let columns = ["a".to_owned(), "b".to_owned()];
        let density =
            ArDensity::new(&model, Method::Rnce, &columns, &standardiser, 1, Arc::default())
                .unwrap();
        // Cells of 0.8 and 0.02: their centres are 60.4, 61.2, ... and -3.79, -3.77, ...
        let picture = picture(&density, 0.25, [(60.0, 124.0), (-3.8, -2.2)]).unwrap();
        for (row, column, x) in [(0, 0, [60.4, -3.79]), (7, 50, [100.4, -3.65])] {
            // p(x) = p(z) |dz / dx| with z = (x - mean) / sigma.
            let z = [((x[0] - 100.0) / 20.0) as f32, ((x[1] + 3.0) / 0.5) as f32];
            let expected = (evaluator.score(&z).log_p_tilde[0] - 0.25).exp() / (20.0 * 0.5);
            let found = picture.rows[row][column];
            assert!((found - expected).abs() < 1e-4 * expected, "{found}, {expected}");
        }
    }

    #[test]
    fn a_histogram_is_a_density_of_the_rows_in_its_window() {
        let rows = [[0.1, 0.1], [0.2, 0.3], [0.6, 0.9], [7.0, 0.5]].concat();
        let density = histogram(&rows, 2, [(0.0, 1.0), (0.0, 2.0)], 2);
        // Cells of area 1/2; the last of the four rows is outside.
        assert_eq!(density.rows, [[1.0, 0.5], [0.0, 0.0]]);
    }
}
