//! The marks in texts of figures and pages: `_{..}` lowers what is inside, and `^{..}` raises it.

/// Private characters that stand for marks while everything else is escaped.
const LOWER: char = '\u{e000}';
const LOWER_END: char = '\u{e001}';
const RAISE: char = '\u{e002}';
const RAISE_END: char = '\u{e003}';

/// Turns marks into private characters, and drops characters that XML does not allow.
pub(crate) fn marked(text: &str) -> String {
    let allowed = |&c: &char| match c {
        '\t' | '\n' | '\r' => true,
        LOWER..=RAISE_END | '\u{fffe}' | '\u{ffff}' => false,
        _ => !c.is_control(),
    };
    let mut rest: Vec<char> = text.chars().filter(allowed).collect();
    rest.reverse();
    let mut marked = String::new();
    let mut end = None;
    while let Some(character) = rest.pop() {
        match (character, rest.last()) {
            ('_' | '^', Some('{')) if end.is_none() && rest.contains(&'}') => {
                rest.pop();
                let (start, its_end) =
                    if character == '_' { (LOWER, LOWER_END) } else { (RAISE, RAISE_END) };
                marked.push(start);
                end = Some(its_end);
            }
            ('}', _) => marked.push(end.take().unwrap_or('}')),
            _ => marked.push(character),
        }
    }
    marked
}

/// Where a character stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Line,
    Lower,
    Raise,
}

/// The characters of a text without its marks, each with where it stands.
pub(crate) fn levels(text: &str) -> Vec<(char, Level)> {
    let mut level = Level::Line;
    let mut characters = Vec::new();
    for character in marked(text).chars() {
        match character {
            LOWER => level = Level::Lower,
            RAISE => level = Level::Raise,
            LOWER_END | RAISE_END => level = Level::Line,
            _ => characters.push((character, level)),
        }
    }
    characters
}

/// Puts what begins and ends lowered text, and what begins and ends raised text, in the place of private characters.
pub(crate) fn replaced(marked: &str, [lower, lower_end, raise, raise_end]: [&str; 4]) -> String {
    marked
        .replace(LOWER, lower)
        .replace(LOWER_END, lower_end)
        .replace(RAISE, raise)
        .replace(RAISE_END, raise_end)
}

/// The text with every character that HTML and SVG give a meaning replaced.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_can_become_a_tag_or_end_an_attribute() {
        assert_eq!(escaped("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
    }

    #[test]
    fn characters_know_where_they_stand() {
        use Level::{Line, Lower, Raise};
        let expected = [('p', Line), ('d', Lower), ('2', Raise), ('x', Line)];
        assert_eq!(levels("p_{d}^{2}x"), expected);
    }

    #[test]
    fn braces_without_a_mark_and_marks_without_braces_are_left_alone() {
        for plain in ["mh_cnce", "{a}", "x^2", "a_{b and c^2"] {
            assert_eq!(marked(plain), plain);
        }
        assert_eq!(replaced(&marked("p_{d}^{2}}"), ["(", ")", "[", "]"]), "p(d)[2]}");
    }
}
