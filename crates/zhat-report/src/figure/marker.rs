//! The signs at the points of a series.

use super::{
    Colour,
    canvas::{Canvas, Drawn},
    clip::{Frame, Point},
};

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

impl Marker {
    pub(super) fn draw(self, canvas: &Canvas<'_>, (x, y): Point, colour: Colour) -> Drawn {
        const HALF: f64 = 2.8;
        let (left, right, top, bottom) = (x - HALF, x + HALF, y - HALF, y + HALF);
        match self {
            Self::Dot => canvas.disc((x, y), 1.6, colour, 0.55),
            Self::Disc => canvas.disc((x, y), HALF, colour, 1.0),
            Self::Square => canvas.rectangle(Frame { left, top, right, bottom }, colour, 1.0),
            Self::Cross => {
                canvas.line(&[(left, top), (right, bottom)], colour, 1.2)?;
                canvas.line(&[(left, bottom), (right, top)], colour, 1.2)
            }
        }
    }
}
