//! The words of a categorical column: those of the training rows, of which rare ones are pooled.

/// Words that stand in fewer training rows are pooled: nothing is learnt from them.
const LEAST_ROWS: usize = 3;
/// At most so many words are told apart.
const MOST_LEVELS: usize = 200;
/// The name of what is pooled.
const OTHER: &str = "other";

/// The levels of a column, the last for whatever is rare or unknown, and the level of every word.
///
/// Codes are places in `words`; those that are not a number are missing. With two words neither is rare. Levels are in the order of
/// the words, with numbers in theirs.
pub(super) fn levels(
    words: &[String],
    codes: impl Iterator<Item = f32>,
) -> (Vec<String>, Vec<usize>) {
    let mut counts = vec![0usize; words.len()];
    codes.filter(|code| !code.is_nan()).for_each(|code| counts[code as usize] += 1);
    let seen = counts.iter().filter(|&&count| count > 0).count();
    let least = if seen <= 2 { 1 } else { LEAST_ROWS };
    let mut kept: Vec<usize> = (0..words.len()).filter(|&word| counts[word] >= least).collect();
    kept.sort_by_key(|&word| std::cmp::Reverse(counts[word]));
    kept.truncate(MOST_LEVELS);
    let number = |word: usize| words[word].parse::<f64>().unwrap_or(f64::INFINITY);
    kept.sort_by(|&a, &b| number(a).total_cmp(&number(b)).then_with(|| words[a].cmp(&words[b])));
    let mut of_word = vec![kept.len(); words.len()];
    kept.iter().enumerate().for_each(|(level, &word)| of_word[word] = level);
    let mut levels: Vec<String> = kept.iter().map(|&word| words[word].clone()).collect();
    let mut other = OTHER.to_owned();
    while levels.contains(&other) {
        other = format!("({other})");
    }
    levels.push(other);
    (levels, of_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str], counts: &[usize]) -> (Vec<String>, Vec<usize>) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let codes = counts.iter().enumerate().flat_map(|(code, &n)| vec![code as f32; n]);
        levels(&words, codes.chain([f32::NAN]))
    }

    #[test]
    fn rare_words_are_pooled_and_the_others_keep_their_names() {
        let (levels, of_word) = of(&["red", "blue", "mauve", "green"], &[9, 7, 2, 0]);
        assert_eq!(levels, ["blue", "red", "other"]);
        assert_eq!(of_word, [1, 0, 2, 2]);
        let (levels, _) = of(&["other", "this"], &[9, 1]);
        assert_eq!(levels, ["other", "this", "(other)"], "neither of two is rare");
        let (levels, _) = of(&["10", "9", "2"], &[5, 5, 5]);
        assert_eq!(levels, ["2", "9", "10", "other"]);
    }

    #[test]
    fn only_so_many_words_are_told_apart() {
        let words: Vec<String> = (0..500).map(|word| format!("w{word:03}")).collect();
        let codes = (0..500).flat_map(|word| vec![word as f32; 3 + usize::from(word >= 300)]);
        let (levels, of_word) = levels(&words, codes);
        assert_eq!((levels.len(), of_word[0], &*levels[0]), (201, 200, "w300"));
    }
}
