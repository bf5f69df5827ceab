//! The signs at the points of a series.

use super::{
    Colour, Stroke,
    canvas::Canvas,
    clip::{Frame, Point},
};
use crate::error::ReportError;

/// What is drawn at each point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A small, slightly transparent disc, for clouds of many points.
    Dot,
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// Two crossing strokes.
    Cross,
}

/// Draws one marker.
pub(super) fn draw_marker(
    canvas: &Canvas<'_>,
    (x, y): Point,
    marker: Marker,
    colour: Colour,
) -> Result<(), ReportError> {
    const HALF: f64 = 2.8;
    match marker {
        Marker::Dot => canvas.disc((x, y), 1.6, colour, 0.55),
        Marker::Disc => canvas.disc((x, y), HALF, colour, 1.0),
        Marker::Square => {
            let square = Frame { left: x - HALF, top: y - HALF, right: x + HALF, bottom: y + HALF };
            canvas.rectangle(square, colour, 1.0)
        }
        Marker::Cross => {
            canvas.line(
                &[(x - HALF, y - HALF), (x + HALF, y + HALF)],
                colour,
                1.2,
                Stroke::Solid,
            )?;
            canvas.line(&[(x - HALF, y + HALF), (x + HALF, y - HALF)], colour, 1.2, Stroke::Solid)
        }
    }
}
