//! The one embedded font, how it raises and lowers text, and how wide a text will be.

use std::sync::{Arc, LazyLock};

use resvg::usvg::{Options, Tree, fontdb::Database};

use crate::markup::{escaped, marked, replaced};

/// The family name inside the embedded file.
pub(super) const FAMILY: &str = "DejaVu Sans";

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(include_bytes!("../../assets/DejaVuSans-subset.ttf").to_vec());
    Arc::new(fonts)
});

/// How usvg reads our SVG: with the embedded font and no other.
pub(super) fn options() -> Options<'static> {
    Options { font_family: FAMILY.into(), fontdb: Arc::clone(&FONTS), ..Options::default() }
}

/// The width in pixels of a text with markup.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\">\
         <text font-family=\"{FAMILY}\" font-size=\"{size}\">{}</text></svg>",
        with_spans(&escaped(&marked(text)))
    );
    // An empty text has no bounding box and no width.
    Tree::from_str(&svg, &options())
        .map_or(0.0, |tree| f64::from(tree.root().abs_bounding_box().width()))
}

/// Turns marks into the spans of SVG.
pub(super) fn with_spans(svg: &str) -> String {
    const LOWER: &str = "<tspan baseline-shift=\"-0.22em\" font-size=\"0.72em\">";
    const RAISE: &str = "<tspan baseline-shift=\"0.42em\" font-size=\"0.72em\">";
    replaced(svg, [LOWER, "</tspan>", RAISE, "</tspan>"])
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
    fn the_font_has_every_symbol_that_our_labels_use() {
        for symbol in "‖θφ−·×ε²₀→≤∞αλμσΣ∇½–".chars() {
            assert!(width(&symbol.to_string(), 10.0) > 0.0, "no {symbol}");
        }
    }
}
