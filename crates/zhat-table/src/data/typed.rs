//! Text as it would be typed into a shell.

/// The text, in quotes where a shell would take it for something else.
pub(crate) fn typed(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.,=:/+%@".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_cut_or_change_is_quoted() {
        assert_eq!(typed("age=1"), "age=1");
        assert_eq!(typed("Sepal length=0.1"), "'Sepal length=0.1'");
        assert_eq!(typed("it's $5"), r"'it'\''s $5'");
        assert_eq!(typed("größe (m)"), "'größe (m)'");
    }
}
