//! The one embedded font, the markup for raised and lowered text, and how wide a text will be.

use std::sync::{Arc, LazyLock};

use resvg::usvg::{Options, Tree, fontdb::Database};

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
    let escaped: String = marked(text)
        .chars()
        .map(|c| match c {
            '<' => "&lt;".into(),
            '&' => "&amp;".into(),
            other => other.to_string(),
        })
        .collect();
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\">\
         <text font-family=\"{FAMILY}\" font-size=\"{size}\">{}</text></svg>",
        with_spans(&escaped)
    );
    // An empty text has no bounding box and no width.
    Tree::from_str(&svg, &options())
        .map_or(0.0, |tree| f64::from(tree.root().abs_bounding_box().width()))
}

/// Private characters that stand for markup until plotters has escaped everything else.
const LOWER: char = '\u{e000}';
const RAISE: char = '\u{e001}';
const END: char = '\u{e002}';

/// Turns `_{..}` and `^{..}` into private characters, and drops characters that XML does not allow.
pub(super) fn marked(text: &str) -> String {
    let mut rest: Vec<char> = text
        .chars()
        .filter(|&c| !c.is_control() && !matches!(c, LOWER | RAISE | END | '\u{fffe}' | '\u{ffff}'))
        .collect();
    rest.reverse();
    let mut marked = String::new();
    let mut open = false;
    while let Some(character) = rest.pop() {
        match (character, rest.last()) {
            ('_' | '^', Some('{')) if !open && rest.contains(&'}') => {
                rest.pop();
                open = true;
                marked.push(if character == '_' { LOWER } else { RAISE });
            }
            ('}', _) if open => {
                open = false;
                marked.push(END);
            }
            _ => marked.push(character),
        }
    }
    marked
}

/// Turns the private characters into the spans of SVG.
pub(super) fn with_spans(svg: &str) -> String {
    svg.replace(LOWER, "<tspan baseline-shift=\"-0.22em\" font-size=\"0.72em\">")
        .replace(RAISE, "<tspan baseline-shift=\"0.42em\" font-size=\"0.72em\">")
        .replace(END, "</tspan>")
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

    #[test]
    fn braces_without_a_mark_and_marks_without_braces_are_left_alone() {
        for plain in ["mh_cnce", "{a}", "x^2", "a_{b"] {
            assert_eq!(marked(plain), plain);
        }
        assert_eq!(with_spans(&marked("p_{d}")).matches("tspan").count(), 2);
    }
}
