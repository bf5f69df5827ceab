//! What a classifier makes of rows and draws: its opinions of both, and where they differ.

use zhat_report::figure::{Colour, Figure, Panel, Scale, Series, Stroke};
use zhat_report::page::Page;

use super::marginals::{steps, window};
use crate::error::Result;
use crate::fitted::TwoSample;

/// Bars of the picture.
const BINS: usize = 40;

pub(super) fn section(page: Page, found: Option<&TwoSample>) -> Result<Page> {
    let Some(TwoSample { rows, accuracy, p_value, where_rows, where_draws, opinions, .. }) = found
    else {
        return Ok(page.text("There are too few test rows for a classifier to learn from."));
    };
    let places = [where_rows, where_draws].map(|place| match place.is_empty() {
        true => String::new(),
        false => format!(" Of a tenth of all points there are {place}."),
    });
    let page = page.text(&format!(
        "A classifier that was shown four fifths of {rows} test rows and as many draws tells the others apart {:.1} % of the time, where \
         50 % is guessing; mixed-up labels do as well with p = {p_value:.3}.{}",
        100.0 * accuracy,
        places.concat()
    ));
    let limits = window(opinions);
    let line = |label, colour, of: &[f64]| Series::line(label, colour, steps(of, limits, BINS));
    let (of_rows, of_draws) = opinions.split_at(*rows);
    let panel = Panel::new("")
        .x("the classifier's opinion: below 0 a draw, above 0 a row", Scale::Linear)
        .x_limits(limits.0, limits.1)
        .y_names(Vec::new())
        .series(line("test rows", Colour::BLUE, of_rows))
        .series(line("draws", Colour::VERMILION, of_draws).with_stroke(Stroke::Dashed));
    let caption = "What a classifier that has not seen them makes of test rows and of draws. Where the model is right the two outlines \
                   are the same.";
    Ok(page.figure(&Figure::new(vec![panel]), caption)?)
}
