//! Drawing in pixels on plotters' SVG backend, whose own coordinates are whole numbers and so are made much finer than pixels.

use plotters::{
    coord::Shift,
    drawing::{DrawingArea, IntoDrawingArea},
    element::{Circle, DashedPathElement, PathElement, Rectangle, Text},
    prelude::SVGBackend,
    style::{
        Color, FontTransform, IntoFont, RGBColor, ShapeStyle, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use super::{
    Colour, Stroke,
    clip::{Frame, Point},
    font,
};
use crate::{error::ReportError, markup::marked};

/// Units of the backend per pixel.
const FINENESS: f64 = 20.0;

/// plotters writes a font size of `size / 1.24` (its guess at the line height).
const FONT_SIZE_FACTOR: f64 = 1.24;

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

/// An SVG in the making.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// Whether something could be drawn.
pub(super) type Drawn = Result<(), ReportError>;

/// The SVG, still with text as text, of what `draw` puts on a white canvas.
pub(super) fn svg(
    (width, height): (f64, f64),
    draw: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> Result<String, ReportError> {
    let mut buffer = String::new();
    let size = ((width * FINENESS).round() as u32, (height * FINENESS).round() as u32);
    {
        let canvas =
            Canvas { area: SVGBackend::with_string(&mut buffer, size).into_drawing_area() };
        canvas.area.fill(&RGBColor::from(Colour::WHITE)).map_err(failed)?;
        draw(&canvas)?;
        canvas.area.present().map_err(failed)?;
    }
    // The outer size is in pixels, the view box in the backend's units; lines join smoothly.
    let fine = format!("<svg width=\"{}\" height=\"{}\"", size.0, size.1);
    let in_pixels = format!("<svg width=\"{width}\" height=\"{height}\" stroke-linejoin=\"round\"");
    Ok(font::with_spans(&buffer.replacen(&fine, &in_pixels, 1)))
}

impl Canvas<'_> {
    /// A solid line.
    pub fn line(&self, points: &[Point], colour: Colour, width: f64) -> Drawn {
        self.stroke(points, colour, width, Stroke::Solid)
    }

    pub fn stroke(&self, points: &[Point], colour: Colour, width: f64, stroke: Stroke) -> Drawn {
        let style = RGBColor::from(colour).stroke_width(fine(width) as u32);
        let points: Vec<(i32, i32)> = points.iter().copied().map(fine_point).collect();
        let (dash, gap) = match stroke {
            Stroke::Absent => return Ok(()),
            Stroke::Solid => {
                return self.area.draw(&PathElement::new(points, style)).map_err(failed);
            }
            Stroke::Dashed => (5.0, 3.0),
            Stroke::Dotted => (1.5, 2.5),
        };
        let dashes = DashedPathElement::new(points, fine(dash), fine(gap), style);
        self.area.draw(&dashes).map_err(failed)
    }

    pub fn rectangle(&self, frame: Frame, colour: Colour, opacity: f64) -> Drawn {
        let corners = [(frame.left, frame.top), (frame.right, frame.bottom)].map(fine_point);
        self.area.draw(&Rectangle::new(corners, filled(colour, opacity))).map_err(failed)
    }

    pub fn border(&self, frame: Frame, colour: Colour, width: f64) -> Drawn {
        let corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
        self.line(&corners.map(|(across, up)| frame.at(across, up)), colour, width)
    }

    pub fn disc(&self, centre: Point, radius: f64, colour: Colour, opacity: f64) -> Drawn {
        let disc = Circle::new(fine_point(centre), fine(radius), filled(colour, opacity));
        self.area.draw(&disc).map_err(failed)
    }

    pub fn text(&self, at: Point, text: &str, size: f64, anchor: Anchor) -> Drawn {
        let (horizontal, vertical) = match anchor {
            Anchor::Start => (HPos::Left, VPos::Center),
            Anchor::End => (HPos::Right, VPos::Center),
            Anchor::Middle | Anchor::Upwards => (HPos::Center, VPos::Center),
            Anchor::Below => (HPos::Center, VPos::Top),
        };
        let mut typeface = (font::FAMILY, size * FINENESS * FONT_SIZE_FACTOR).into_font();
        if matches!(anchor, Anchor::Upwards) {
            typeface = typeface.transform(FontTransform::Rotate270);
        }
        let ink = RGBColor::from(Colour::INK);
        let style = TextStyle::from(typeface).color(&ink).pos(Pos::new(horizontal, vertical));
        self.area.draw(&Text::new(marked(text), fine_point(at), style)).map_err(failed)
    }
}

fn filled(colour: Colour, opacity: f64) -> ShapeStyle {
    RGBColor::from(colour).mix(opacity).filled()
}

fn fine(pixels: f64) -> i32 {
    (pixels * FINENESS).round() as i32
}

fn fine_point((x, y): Point) -> (i32, i32) {
    (fine(x), fine(y))
}

fn failed(error: impl std::fmt::Display) -> ReportError {
    ReportError::Drawing(error.to_string())
}
