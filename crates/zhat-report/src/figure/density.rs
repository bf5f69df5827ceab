//! A heat map: a grid of densities in colours from white to dark blue, with its colour bar.

use super::{
    Colour, Scale,
    axis::Axis,
    canvas::{Anchor, Canvas, Drawn},
    clip::Frame,
};
use crate::error::ReportError;

/// Colours are rounded to this many levels, so that neighbouring cells of one level become one rectangle.
const LEVELS: usize = 64;

/// What colours stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// White is nothing, and darker is more: for densities.
    #[default]
    Amounts,
    /// White is zero, blue is above it and red below, as far on one side as on the other: for correlations.
    Signs,
}

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
    /// What colours stand for.
    pub colours: Colours,
}

impl Density {
    /// The values of `density` at the centres of a grid of `columns` by `rows` cells.
    pub fn of(
        (x_range, columns): ((f64, f64), usize),
        (y_range, rows): ((f64, f64), usize),
        density: impl Fn(f64, f64) -> f64,
    ) -> Self {
        let centres =
            |range, count| (0..count).map(move |index| between(range, index as f64 + 0.5, count));
        let row = |y| centres(x_range, columns).map(|x| density(x, y)).collect();
        let rows = centres(y_range, rows).map(row).collect();
        Self { x_range, y_range, rows, ..Self::default() }
    }

    /// Names the colour bar.
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// Other colours.
    pub fn with_colours(self, colours: Colours) -> Self {
        Self { colours, ..self }
    }

    /// An error unless all rows are equally long.
    pub(super) fn check(&self, panel: &str) -> Result<(), ReportError> {
        let first = self.rows.first().map_or(0, Vec::len);
        match self.rows.iter().find(|row| row.len() != first) {
            None => Ok(()),
            Some(row) => Err(ReportError::Unusable(format!(
                "density of panel `{panel}`: the first row has {first} values, but another row has {}; give one for each",
                row.len()
            ))),
        }
    }

    /// Draws the cells in `frame`, which the axes span.
    pub(super) fn draw(&self, canvas: &Canvas<'_>, frame: Frame, x: &Axis, y: &Axis) -> Drawn {
        let (low, high) = self.ends();
        // Which of the levels a value has.
        let level = |value: &f64| {
            let part = (value - low) / (high - low);
            value.is_finite().then(|| ((part * LEVELS as f64) as usize).min(LEVELS - 1))
        };
        let x_edge = |index, count| x.position(between(self.x_range, index as f64, count));
        let y_edge = |index| y.position(between(self.y_range, index as f64, self.rows.len()));
        for (row, cells) in self.rows.iter().enumerate() {
            let up = y_edge(row).zip(y_edge(row + 1));
            let mut start = 0;
            for run in cells.chunk_by(|one, next| level(one) == level(next)) {
                let end = start + run.len();
                let across = x_edge(start, cells.len()).zip(x_edge(end, cells.len()));
                start = end;
                if let (Some(level), Some(across), Some(up)) = (level(&run[0]), across, up)
                    && self.colour(level) != Colour::WHITE
                {
                    draw_cell(canvas, frame, across, up, self.colour(level))?;
                }
            }
        }
        Ok(())
    }

    /// Draws the colour bar in `bar`, with its values to the right.
    pub(super) fn draw_bar(&self, canvas: &Canvas<'_>, bar: Frame, text_size: f64) -> Drawn {
        for level in 0..LEVELS {
            let (low, high) = (level as f64 / LEVELS as f64, (level + 1) as f64 / LEVELS as f64);
            draw_cell(canvas, bar, (0.0, 1.0), (low, high), self.colour(level))?;
        }
        canvas.border(bar, Colour::GREY, 0.6)?;
        for tick in self.scale()?.ticks(4) {
            let (x, y) = bar.at(1.0, tick.position);
            canvas.line(&[(x, y), (x + 3.0, y)], Colour::INK, 0.8)?;
            let label = tick.label.unwrap_or_default();
            canvas.text((x + 5.0, y), &label, text_size, Anchor::Start)?;
        }
        Ok(())
    }

    /// The axis of the colour bar.
    pub(super) fn scale(&self) -> Result<Axis, ReportError> {
        Axis::new("colour bar", Scale::Linear, Some(self.ends()), [].into_iter(), 0.0)
    }

    fn colour(&self, level: usize) -> Colour {
        let fraction = level as f64 / (LEVELS - 1) as f64;
        match self.colours {
            Colours::Amounts => Colour::of_density(fraction),
            Colours::Signs => Colour::of_sign(2.0 * fraction - 1.0),
        }
    }

    /// The values at both ends of the colour bar: 0 (or the least, if negative) and the greatest; where colours are signs, one is
    /// minus the other.
    fn ends(&self) -> (f64, f64) {
        let finite = || self.rows.iter().flatten().copied().filter(|value| value.is_finite());
        let low = finite().fold(0.0, f64::min);
        let high = finite().fold(f64::NEG_INFINITY, f64::max);
        if self.colours == Colours::Signs {
            let largest = high.max(-low);
            return if largest > 0.0 { (-largest, largest) } else { (-1.0, 1.0) };
        }
        if high > low { (low, high) } else { (low, low + 1.0) }
    }
}

/// Where the `index`-th of `count` equal parts of a range begins.
fn between((low, high): (f64, f64), index: f64, count: usize) -> f64 {
    low + (high - low) * index / count as f64
}

/// A rectangle of cells, cut at the frame, and a little larger to the right and above so that no seam shows.
fn draw_cell(
    canvas: &Canvas<'_>,
    frame: Frame,
    (left, right): (f64, f64),
    (bottom, top): (f64, f64),
    colour: Colour,
) -> Drawn {
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
