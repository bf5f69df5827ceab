//! A heat map: a grid of densities in colours from white to dark blue, with its colour bar.

use super::{
    Colour, Scale, Stroke,
    axis::{Axis, Place},
    canvas::{Anchor, Canvas},
    clip::Frame,
};
use crate::error::ReportError;

/// Colours are rounded to this many levels, so that neighbouring cells of one level become one rectangle.
const LEVELS: usize = 64;

/// Values on a regular grid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Density {
    /// The left and right edges of the grid.
    pub x_range: (f64, f64),
    /// The lower and upper edges of the grid.
    pub y_range: (f64, f64),
    /// Rows of cells from bottom to top, each from left to right; cells that are not finite stay white.
    pub rows: Vec<Vec<f64>>,
    /// What the colour bar shows; may be empty.
    pub label: String,
}

impl Density {
    /// The values of `density` at the centres of a grid of `columns` by `rows` cells.
    pub fn of(
        (x_range, columns): ((f64, f64), usize),
        (y_range, rows): ((f64, f64), usize),
        density: impl Fn(f64, f64) -> f64,
    ) -> Self {
        let centre = |(low, high): (f64, f64), index: usize, count: usize| {
            low + (high - low) * (index as f64 + 0.5) / count as f64
        };
        let row =
            |y| (0..columns).map(|column| density(centre(x_range, column, columns), y)).collect();
        let rows = (0..rows).map(|index| row(centre(y_range, index, rows))).collect();
        Self { x_range, y_range, rows, label: String::new() }
    }

    /// Names the colour bar.
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// An error unless all rows are equally long.
    pub(super) fn check(&self, panel: &str) -> Result<(), ReportError> {
        let first = self.rows.first().map_or(0, Vec::len);
        match self.rows.iter().find(|row| row.len() != first) {
            None => Ok(()),
            Some(row) => Err(ReportError::UnequalLengths {
                place: format!("density of panel `{panel}`"),
                left: "the first row",
                left_length: first,
                right: "another row",
                right_length: row.len(),
            }),
        }
    }

    /// Draws the cells in `frame`, which the axes span.
    pub(super) fn draw(
        &self,
        canvas: &Canvas<'_>,
        frame: Frame,
        x: &Axis,
        y: &Axis,
    ) -> Result<(), ReportError> {
        let (low, high) = self.ends();
        let edge = |(from, to): (f64, f64), index: usize, count: usize| {
            from + (to - from) * index as f64 / count as f64
        };
        for (row, cells) in self.rows.iter().enumerate() {
            let bottom = y.position(edge(self.y_range, row, self.rows.len()));
            let top = y.position(edge(self.y_range, row + 1, self.rows.len()));
            let mut start = 0;
            for run in cells.chunk_by(|one, next| level(*one, low, high) == level(*next, low, high))
            {
                let left = x.position(edge(self.x_range, start, cells.len()));
                start += run.len();
                let right = x.position(edge(self.x_range, start, cells.len()));
                let colour = match level(run[0], low, high) {
                    None | Some(0) => continue,
                    Some(level) => colour_of(level),
                };
                if let (Some(left), Some(right), Some(bottom), Some(top)) =
                    (left, right, bottom, top)
                {
                    draw_cell(canvas, frame, (left, right), (bottom, top), colour)?;
                }
            }
        }
        Ok(())
    }

    /// Draws the colour bar in `bar`, with its values to the right.
    pub(super) fn draw_bar(
        &self,
        canvas: &Canvas<'_>,
        bar: Frame,
        text_size: f64,
    ) -> Result<(), ReportError> {
        for level in 0..LEVELS {
            let (low, high) = (level as f64 / LEVELS as f64, (level + 1) as f64 / LEVELS as f64);
            draw_cell(canvas, bar, (0.0, 1.0), (low, high), colour_of(level))?;
        }
        canvas.border(bar, Colour::GREY, 0.6)?;
        for tick in self.scale()?.ticks(4) {
            let (x, y) = bar.at(1.0, tick.position);
            canvas.line(&[(x, y), (x + 3.0, y)], Colour::INK, 0.8, Stroke::Solid)?;
            canvas.text(
                (x + 5.0, y),
                tick.label.as_deref().unwrap_or(""),
                text_size,
                Colour::INK,
                Anchor::Start,
            )?;
        }
        Ok(())
    }

    /// The axis of the colour bar.
    pub(super) fn scale(&self) -> Result<Axis, ReportError> {
        let (low, high) = self.ends();
        Axis::new(
            Place { panel: &self.label, axis: "colour" },
            Scale::Linear,
            Some((low, high)),
            [].into_iter(),
            0.0,
        )
    }

    /// The values that are white and darkest: 0 (or the least, if negative) and the greatest.
    fn ends(&self) -> (f64, f64) {
        let finite = || self.rows.iter().flatten().copied().filter(|value| value.is_finite());
        let low = finite().fold(0.0, f64::min);
        let high = finite().fold(f64::NEG_INFINITY, f64::max);
        if high > low { (low, high) } else { (low, low + 1.0) }
    }
}

/// Which of the levels a value has.
fn level(value: f64, low: f64, high: f64) -> Option<usize> {
    value
        .is_finite()
        .then(|| (((value - low) / (high - low) * LEVELS as f64) as usize).min(LEVELS - 1))
}

fn colour_of(level: usize) -> Colour {
    Colour::of_density(level as f64 / (LEVELS - 1) as f64)
}

/// A rectangle of cells, cut at the frame, and a little larger to the right and above so that no seam shows.
fn draw_cell(
    canvas: &Canvas<'_>,
    frame: Frame,
    (left, right): (f64, f64),
    (bottom, top): (f64, f64),
    colour: Colour,
) -> Result<(), ReportError> {
    const OVERLAP: f64 = 0.5;
    let (left, bottom) = frame.at(left.clamp(0.0, 1.0), bottom.clamp(0.0, 1.0));
    let (right, top) = frame.at(right.clamp(0.0, 1.0), top.clamp(0.0, 1.0));
    if right <= left || bottom <= top {
        return Ok(());
    }
    let cell = Frame {
        left,
        bottom,
        right: (right + OVERLAP).min(frame.right),
        top: (top - OVERLAP).max(frame.top),
    };
    canvas.rectangle(cell, colour, 1.0)
}
