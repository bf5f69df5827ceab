//! A finished drawing: text turned into outlines, as an SVG or as a PNG of the very same shapes.

use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{Indent, Tree, WriteOptions},
};

use super::font;
use crate::error::ReportError;

/// A finished drawing.
pub struct Drawing {
    tree: Tree,
}

impl Drawing {
    /// Reads an SVG and outlines its text with the embedded font.
    pub(super) fn from_svg(svg: &str) -> Result<Self, ReportError> {
        let tree = Tree::from_str(svg, &font::options())
            .map_err(|error| ReportError::Drawing(error.to_string()))?;
        Ok(Self { tree })
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (f32, f32) {
        (self.tree.size().width(), self.tree.size().height())
    }

    /// The SVG, without any text element.
    pub fn svg(&self) -> String {
        self.svg_with_prefix("")
    }

    /// The SVG with a prefix before every identifier in it, for a page that holds several.
    pub fn svg_with_prefix(&self, prefix: &str) -> String {
        self.tree.to_string(&WriteOptions {
            id_prefix: (!prefix.is_empty()).then(|| prefix.to_string()),
            // Coordinates are in twentieths of a pixel: one decimal is far finer than any screen.
            coordinates_precision: 1,
            transforms_precision: 5,
            indent: Indent::None,
            ..WriteOptions::default()
        })
    }

    /// The PNG, `scale` pixels to each pixel of the SVG.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>, ReportError> {
        let (width, height) = self.size();
        let size = [width, height].map(|side| (side * scale).ceil() as u32);
        let mut pixels = Pixmap::new(size[0], size[1]).ok_or_else(|| {
            ReportError::Drawing(format!("a PNG of {} x {} pixels is too large", size[0], size[1]))
        })?;
        resvg::render(&self.tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| ReportError::Drawing(error.to_string()))
    }
}
