//! Drawing in pixels: what is drawn becomes shapes, which a [`Drawing`] writes as an SVG or a PNG.

use std::cell::RefCell;

use tiny_skia::{Path, PathBuilder};

use super::{
    Colour, Drawing, Stroke,
    clip::{Frame, Point},
    font,
};
use crate::error::ReportError;

/// A text's place relative to its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    /// Begins at the point, centred vertically.
    Start,
    /// Ends at the point, centred vertically.
    End,
    /// Centred both ways.
    Middle,
    /// Centred below the point.
    Below,
    /// Centred on the point and turned to read upwards.
    Upwards,
}

/// Something to be seen.
pub(super) struct Shape {
    pub outline: Outline,
    pub colour: Colour,
    pub ink: Ink,
}

/// Where it is.
pub(super) enum Outline {
    Rectangle(Frame),
    Disc(Point, f64),
    Path(Path),
}

/// How it is painted.
pub(super) enum Ink {
    /// All over, in this opacity.
    Fill(f64),
    /// Along its outline: the width, and the lengths of dashes and gaps where it is not solid.
    Line(f64, Option<[f32; 2]>),
}

/// A drawing in the making.
pub(super) struct Canvas<'a> {
    shapes: &'a RefCell<Vec<Shape>>,
}

/// Whether something could be drawn.
pub(super) type Drawn = Result<(), ReportError>;

/// What `draw` puts on a white canvas.
pub(super) fn drawing(
    (width, height): (f64, f64),
    draw: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> Result<Drawing, ReportError> {
    let shapes = RefCell::new(Vec::new());
    let canvas = Canvas { shapes: &shapes };
    let all = Frame { left: 0.0, top: 0.0, right: width, bottom: height };
    canvas.rectangle(all, Colour::WHITE, 1.0)?;
    draw(&canvas)?;
    Ok(Drawing::new((width, height), shapes.into_inner()))
}

impl Canvas<'_> {
    /// A solid line.
    pub fn line(&self, points: &[Point], colour: Colour, width: f64) -> Drawn {
        self.stroke(points, colour, width, Stroke::Solid)
    }

    pub fn stroke(&self, points: &[Point], colour: Colour, width: f64, stroke: Stroke) -> Drawn {
        let dashes = match stroke {
            Stroke::Absent => return Ok(()),
            Stroke::Solid => None,
            Stroke::Dashed => Some([5.0, 3.0]),
            Stroke::Dotted => Some([1.5, 2.5]),
        };
        let mut path = PathBuilder::new();
        for (index, &(x, y)) in points.iter().enumerate() {
            match index {
                0 => path.move_to(x as f32, y as f32),
                _ => path.line_to(x as f32, y as f32),
            }
        }
        self.path(path, colour, Ink::Line(width, dashes))
    }

    pub fn rectangle(&self, frame: Frame, colour: Colour, opacity: f64) -> Drawn {
        self.put(Outline::Rectangle(frame), colour, Ink::Fill(opacity))
    }

    pub fn border(&self, frame: Frame, colour: Colour, width: f64) -> Drawn {
        let corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
        self.line(&corners.map(|(across, up)| frame.at(across, up)), colour, width)
    }

    pub fn disc(&self, centre: Point, radius: f64, colour: Colour, opacity: f64) -> Drawn {
        self.put(Outline::Disc(centre, radius), colour, Ink::Fill(opacity))
    }

    pub fn text(&self, at: Point, text: &str, size: f64, anchor: Anchor) -> Drawn {
        let width = font::width(text, size);
        let start = match anchor {
            Anchor::Start => 0.0,
            Anchor::End => -width,
            Anchor::Middle | Anchor::Below | Anchor::Upwards => -width / 2.0,
        };
        // From the point to the line that letters stand on.
        let down = match anchor {
            Anchor::Below => 0.76 * size,
            _ => 0.25 * size,
        };
        let place = |along: f64, below: f64| match anchor {
            Anchor::Upwards => (at.0 + down + below, at.1 - start - along),
            _ => (at.0 + start + along, at.1 + down + below),
        };
        self.path(font::outline(text, size, &place), Colour::INK, Ink::Fill(1.0))
    }

    /// A path, unless it is empty or leads to a place that is none.
    fn path(&self, path: PathBuilder, colour: Colour, ink: Ink) -> Drawn {
        match path.finish() {
            Some(path) => self.put(Outline::Path(path), colour, ink),
            None => Ok(()),
        }
    }

    fn put(&self, outline: Outline, colour: Colour, ink: Ink) -> Drawn {
        self.shapes.borrow_mut().push(Shape { outline, colour, ink });
        Ok(())
    }
}
