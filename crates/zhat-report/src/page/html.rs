//! Text made safe for HTML, with the same raised and lowered marks as in figures.

use crate::markup;

/// The text escaped, without marks, for titles and for reading aloud.
pub(super) fn plain(text: &str) -> String {
    with_marks(text, [""; 4])
}

/// The text escaped, with `_{..}` and `^{..}` as lowered and raised text.
pub(super) fn marked(text: &str) -> String {
    with_marks(text, ["<sub>", "</sub>", "<sup>", "</sup>"])
}

/// A text as an element of its own; `tag` is its name and attributes.
pub(super) fn element(tag: &str, text: &str) -> String {
    let name = tag.split(' ').next().unwrap_or(tag);
    format!("<{tag}>{}</{name}>", marked(text))
}

fn with_marks(text: &str, marks: [&str; 4]) -> String {
    markup::replaced(&markup::escaped(&markup::marked(text)), marks)
}
