//! Text made safe for HTML, with the same raised and lowered marks as in figures.

/// The text with every character that HTML gives a meaning replaced.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// The text escaped, without marks, for titles and for reading aloud.
pub(super) fn plain(text: &str) -> String {
    let mut plain = marked(text);
    for element in ["<sub>", "</sub>", "<sup>", "</sup>"] {
        // Whatever the text had of these itself is escaped by now.
        plain = plain.replace(element, "");
    }
    plain
}

/// The text escaped, with `_{..}` and `^{..}` as lowered and raised text.
pub(super) fn marked(text: &str) -> String {
    let mut rest = text;
    let mut html = String::new();
    while let Some(start) = [rest.find("_{"), rest.find("^{")].into_iter().flatten().min() {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let element = if rest[start..].starts_with('_') { "sub" } else { "sup" };
        let inside = escaped(&rest[start + 2..start + length]);
        html.push_str(&format!("{}<{element}>{inside}</{element}>", escaped(&rest[..start])));
        rest = &rest[start + length + 1..];
    }
    html + &escaped(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_can_become_a_tag_or_end_an_attribute() {
        assert_eq!(escaped("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
        assert_eq!(marked("x_{<i>}^{&}"), "x<sub>&lt;i&gt;</sub><sup>&amp;</sup>");
    }

    #[test]
    fn marks_that_are_not_closed_are_text() {
        assert_eq!(marked("a_{b and c^2"), "a_{b and c^2");
    }
}
