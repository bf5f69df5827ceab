//! A finished drawing: shapes, with text turned into outlines, as an SVG or as a PNG of the very same shapes.

use std::fmt::Write;

use tiny_skia::{
    FillRule, LineJoin, Paint, Path, PathBuilder, PathSegment, Pixmap, Rect, StrokeDash, Transform,
};

use super::canvas::{Ink, Outline, Shape};
use crate::error::ReportError;

/// A finished drawing.
pub struct Drawing {
    size: (f64, f64),
    shapes: Vec<Shape>,
}

impl Drawing {
    pub(super) fn new(size: (f64, f64), shapes: Vec<Shape>) -> Self {
        Self { size, shapes }
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (f32, f32) {
        (self.size.0 as f32, self.size.1 as f32)
    }

    /// The SVG, without any text element and any identifier.
    pub fn svg(&self) -> String {
        let (width, height) = self.size();
        let mut svg = format!(
            "<svg width=\"{width}\" height=\"{height}\" xmlns=\"http://www.w3.org/2000/svg\" \
             stroke-linejoin=\"round\">"
        );
        for shape in &self.shapes {
            element(&mut svg, shape);
        }
        svg + "</svg>"
    }

    /// The PNG, `scale` pixels to each pixel of the SVG.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>, ReportError> {
        let (width, height) = self.size();
        let size = [width, height].map(|side| (side * scale).ceil() as u32);
        let mut pixels = Pixmap::new(size[0], size[1]).ok_or_else(|| {
            ReportError::Drawing(format!("a PNG of {} x {} pixels is too large", size[0], size[1]))
        })?;
        for shape in &self.shapes {
            paint(&mut pixels, shape, Transform::from_scale(scale, scale));
        }
        pixels.encode_png().map_err(|error| ReportError::Drawing(error.to_string()))
    }
}

/// Writes a shape as an element of SVG.
fn element(svg: &mut String, shape: &Shape) {
    *svg += match &shape.outline {
        Outline::Rectangle(_) => "<rect",
        Outline::Disc(..) => "<circle",
        Outline::Path(_) => "<path",
    };
    match &shape.outline {
        Outline::Rectangle(frame) => {
            let sides = [
                ("x", frame.left),
                ("y", frame.top),
                ("width", frame.width()),
                ("height", frame.height()),
            ];
            sides.into_iter().for_each(|(name, value)| attribute(svg, name, short(value)));
        }
        Outline::Disc((x, y), radius) => {
            let parts = [("cx", *x), ("cy", *y), ("r", *radius)];
            parts.into_iter().for_each(|(name, value)| attribute(svg, name, short(value)));
        }
        Outline::Path(path) => attribute(svg, "d", steps(path)),
    }
    let colour = shape.colour;
    let colour = format!("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
    match shape.ink {
        Ink::Fill(opacity) => {
            attribute(svg, "fill", colour);
            if opacity < 1.0 {
                attribute(svg, "fill-opacity", short(opacity));
            }
        }
        Ink::Line(width, dashes) => {
            attribute(svg, "fill", "none".into());
            attribute(svg, "stroke", colour);
            attribute(svg, "stroke-width", short(width));
            if let Some([dash, gap]) = dashes {
                attribute(svg, "stroke-dasharray", format!("{dash} {gap}"));
            }
        }
    }
    *svg += "/>";
}

fn attribute(svg: &mut String, name: &str, value: String) {
    write!(svg, " {name}=\"{value}\"").expect("a text grows");
}

/// A path in the letters of SVG.
fn steps(path: &Path) -> String {
    let mut text = String::new();
    let mut step = |letter: char, points: &[tiny_skia::Point]| {
        text.push(letter);
        for (index, point) in points.iter().enumerate() {
            let gap = if index > 0 { " " } else { "" };
            let (x, y) = (short(f64::from(point.x)), short(f64::from(point.y)));
            write!(text, "{gap}{x} {y}").expect("a text grows");
        }
    };
    for segment in path.segments() {
        match segment {
            PathSegment::MoveTo(to) => step('M', &[to]),
            PathSegment::LineTo(to) => step('L', &[to]),
            PathSegment::QuadTo(by, to) => step('Q', &[by, to]),
            PathSegment::CubicTo(by, and, to) => step('C', &[by, and, to]),
            PathSegment::Close => step('Z', &[]),
        }
    }
    text
}

/// A number to a hundredth, which is far finer than any screen.
fn short(value: f64) -> String {
    // There is no minus zero on a screen.
    ((value * 100.0).round() / 100.0 + 0.0).to_string()
}

/// Paints a shape; what has no extent is not seen.
fn paint(pixels: &mut Pixmap, shape: &Shape, transform: Transform) {
    let path = match &shape.outline {
        Outline::Path(path) => Some(path.clone()),
        Outline::Disc((x, y), radius) => {
            PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32)
        }
        Outline::Rectangle(frame) => {
            let [left, top, right, bottom] =
                [frame.left, frame.top, frame.right, frame.bottom].map(|side| side as f32);
            Rect::from_ltrb(left, top, right, bottom).map(PathBuilder::from_rect)
        }
    };
    let Some(path) = path else { return };
    let mut paint = Paint::default();
    let (colour, opacity) = match shape.ink {
        Ink::Fill(opacity) => (shape.colour, opacity),
        Ink::Line(..) => (shape.colour, 1.0),
    };
    paint.set_color_rgba8(colour.red, colour.green, colour.blue, (255.0 * opacity).round() as u8);
    match shape.ink {
        Ink::Fill(_) => pixels.fill_path(&path, &paint, FillRule::Winding, transform, None),
        Ink::Line(width, dashes) => {
            let stroke = tiny_skia::Stroke {
                width: width as f32,
                line_join: LineJoin::Round,
                dash: dashes.and_then(|dashes| StrokeDash::new(dashes.to_vec(), 0.0)),
                ..tiny_skia::Stroke::default()
            };
            pixels.stroke_path(&path, &paint, &stroke, transform, None);
        }
    }
}
