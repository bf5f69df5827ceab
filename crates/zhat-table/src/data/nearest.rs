//! The name a user probably meant, by edit distance.

use strsim::levenshtein;

/// The candidate closest to what was typed, if any is close enough to be a slip of the keyboard.
pub(crate) fn nearest<'a>(
    typed: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let typed = typed.to_lowercase();
    // A third of the letters wrong is still a slip; more is another word.
    let limit = (typed.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|name| (levenshtein(&typed, &name.to_lowercase()), name))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name.to_string())
}

/// Names joined for a message, cut short where there are many.
pub(crate) fn listing<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 20;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keyboard_is_mended_and_another_word_is_not() {
        let names = ["Voltage", "Global_intensity", "Date"];
        assert_eq!(nearest("voltge", names), Some("Voltage".into()));
        assert_eq!(nearest("global_intensiti", names), Some("Global_intensity".into()));
        assert_eq!(nearest("temperature", names), None);
    }
}
