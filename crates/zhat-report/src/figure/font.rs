//! The one embedded font, how it raises and lowers text, and how wide a text will be.

use std::sync::LazyLock;

use tiny_skia::PathBuilder;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::clip::Point;
use crate::markup::{Level, levels};

static FACE: LazyLock<Face<'static>> = LazyLock::new(|| {
    Face::parse(include_bytes!("../../assets/DejaVuSans-subset.ttf"), 0).expect("the embedded font")
});

/// Size of raised and lowered text, and how far up and down it is, in sizes of the text around it.
const SMALLER: f64 = 0.72;
const LOWERED: f64 = 0.16;
const RAISED: f64 = 0.30;

/// A letter in its place: how far along and below the line it stands, and its size.
struct Letter {
    glyph: GlyphId,
    along: f64,
    below: f64,
    size: f64,
}

/// The width in pixels of a text with markup.
pub(super) fn width(text: &str, size: f64) -> f64 {
    laid_out(text, size).1
}

/// The outlines of a text with markup, put where `place` says: along the line, and below it.
pub(super) fn outline(text: &str, size: f64, place: &dyn Fn(f64, f64) -> Point) -> PathBuilder {
    let mut path = PathBuilder::new();
    for letter in laid_out(text, size).0 {
        FACE.outline_glyph(letter.glyph, &mut Pen { path: &mut path, letter: &letter, place });
    }
    path
}

/// The letters of a text and its width. A character that the font does not have is seen as one that is missing.
fn laid_out(text: &str, size: f64) -> (Vec<Letter>, f64) {
    let mut along = 0.0;
    let letters = levels(text).into_iter().map(|(character, level)| {
        let (size, below) = match level {
            Level::Line => (size, 0.0),
            Level::Lower => (SMALLER * size, LOWERED * size),
            Level::Raise => (SMALLER * size, -RAISED * size),
        };
        let glyph = glyph_of(character).or(glyph_of('\u{fffd}')).unwrap_or_default();
        let letter = Letter { glyph, along, below, size };
        along += scale(size) * f64::from(FACE.glyph_hor_advance(glyph).unwrap_or(0));
        letter
    });
    (letters.collect(), along)
}

fn glyph_of(character: char) -> Option<GlyphId> {
    FACE.glyph_index(if character.is_whitespace() { ' ' } else { character })
}

/// Pixels of a unit of the font.
fn scale(size: f64) -> f64 {
    size / f64::from(FACE.units_per_em())
}

/// Draws the outline of a letter into a path.
struct Pen<'a> {
    path: &'a mut PathBuilder,
    letter: &'a Letter,
    place: &'a dyn Fn(f64, f64) -> Point,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        let Letter { along, below, size, .. } = self.letter;
        let scale = scale(*size);
        let (x, y) = (self.place)(along + scale * f64::from(x), below - scale * f64::from(y));
        (x as f32, y as f32)
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_and_larger_texts_are_wider() {
        assert!(width("mm", 10.0) > width("m", 10.0));
        assert!((width("P-MH-CNCE", 20.0) / width("P-MH-CNCE", 10.0) - 2.0).abs() < 0.05);
        assert_eq!(width("", 10.0), 0.0);
    }

    #[test]
    fn raised_text_is_narrower_than_the_same_text_on_the_line() {
        assert!(width("10^{123}", 10.0) < width("10123", 10.0));
    }

    #[test]
    fn raised_text_stands_above_the_line_and_lowered_text_below_it() {
        let bottom = |text: &str| {
            let path = outline(text, 10.0, &|along, below| (along, below)).finish();
            path.expect("an outline").bounds().bottom()
        };
        assert!(bottom("^{o}") < bottom("o") && bottom("o") < bottom("_{o}"));
    }

    #[test]
    fn the_font_has_every_symbol_that_our_labels_use() {
        for symbol in "‖θφ−·×ε²₀→≤∞αλμσΣ∇½–".chars() {
            assert!(glyph_of(symbol).is_some(), "no {symbol}");
        }
    }

    #[test]
    fn a_character_that_the_font_does_not_have_is_seen_as_missing() {
        assert!(outline("漢", 10.0, &|along, below| (along, below)).finish().is_some());
        assert!(width("漢", 10.0) > 0.0);
    }
}
