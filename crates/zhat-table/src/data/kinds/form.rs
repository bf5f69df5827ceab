//! How the numbers of a column are written: plain, as money or percent, with thousands apart, as a date or a time.

use serde::{Deserialize, Serialize};

use super::date::{date_text, parse_date, parse_time, time_text};

/// How the cells of a column are written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "kebab-case")]
pub enum Form {
    /// A plain number.
    #[default]
    Plain,
    /// A number with so many decimals.
    Decimals {
        /// Decimals.
        decimals: usize,
    },
    /// A number with something before or after it, or with its thousands apart.
    Decorated {
        /// What stands before it: a currency.
        prefix: String,
        /// What stands after it: a currency or a percent sign.
        suffix: String,
        /// Whether commas stand between its thousands.
        thousands: bool,
        /// Decimals.
        decimals: usize,
    },
    /// A date: days from 1970-01-01.
    Date,
    /// A time: seconds from a moment, so that 32 bits are enough for them.
    Time {
        /// The moment, in seconds from 1970-01-01.
        origin: i64,
    },
}

const PREFIXES: [&str; 10] = ["$", "€", "£", "¥", "USD ", "EUR ", "GBP ", "CHF ", "US$", "₹"];
const SUFFIXES: [&str; 8] = ["%", " %", "€", " €", " $", " EUR", " USD", " CHF"];

impl Form {
    /// The number that a text stands for.
    pub(crate) fn number(&self, text: &str) -> Option<f64> {
        match self {
            Self::Date => parse_date(text).map(|day| day as f64),
            Self::Time { origin } => {
                let second = parse_time(text).or_else(|| parse_date(text).map(|day| day * 86_400));
                second.map(|second| (second - origin) as f64)
            }
            Self::Decorated { .. } => Decoration::of(text).map(|found| found.number),
            Self::Plain | Self::Decimals { .. } => text.parse().ok(),
        }
    }

    /// A number as it is written.
    pub fn text(&self, value: f64) -> String {
        match self {
            Self::Plain => plain(value),
            Self::Decimals { decimals } => positive_zero(format!("{value:.decimals$}")),
            Self::Decorated { prefix, suffix, thousands, decimals } => {
                let digits = positive_zero(format!("{value:.decimals$}"));
                let (sign, digits) = match digits.strip_prefix('-') {
                    Some(digits) => ("-", digits),
                    None => ("", &*digits),
                };
                let digits = if *thousands { apart(digits) } else { digits.into() };
                format!("{sign}{prefix}{digits}{suffix}")
            }
            Self::Date => date_text(value.round() as i64),
            Self::Time { origin } => time_text(origin + value.round() as i64),
        }
    }

    /// The form of all of some words, if they have one in common.
    pub(crate) fn of_words<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Option<Self> {
        words.clone().next()?;
        if words.clone().all(|word| parse_date(word).is_some()) {
            return Some(Self::Date);
        }
        let is_moment = |word: &str| parse_time(word).or(parse_date(word).map(|day| day * 86_400));
        let first = words
            .clone()
            .map(is_moment)
            .try_fold(i64::MAX, |first, moment| moment.map(|moment| first.min(moment)));
        if let Some(origin) = first {
            return Some(Self::Time { origin });
        }
        let found: Vec<Decoration> = words.map(Decoration::of).collect::<Option<_>>()?;
        let plain = |sign: &Decoration| sign.prefix.is_empty() && sign.suffix.is_empty();
        let signs: Vec<&Decoration> = found.iter().filter(|sign| !plain(sign)).collect();
        let (prefix, suffix) = match signs.first() {
            Some(first) => (first.prefix, first.suffix),
            None => ("", ""),
        };
        // Dollars and euros in one column are two units.
        let agree = signs.iter().all(|sign| sign.prefix == prefix && sign.suffix == suffix);
        agree.then(|| Self::Decorated {
            prefix: prefix.into(),
            suffix: suffix.into(),
            thousands: found.iter().any(|found| found.thousands),
            decimals: found.iter().map(|found| found.decimals).max().unwrap_or(0),
        })
    }

    /// Whether nothing stands around the digits.
    pub(super) fn is_bare(&self) -> bool {
        matches!(self, Self::Decorated { prefix, suffix, thousands: false, .. } if prefix.is_empty() && suffix.is_empty())
    }

    /// Whether it is a percentage.
    pub(super) fn is_percent(&self) -> bool {
        matches!(self, Self::Decorated { suffix, .. } if suffix.trim() == "%")
    }
}

/// The shortest decimals of a 32-bit float, or an exponent where it is very large or small.
fn plain(value: f64) -> String {
    let single = value as f32;
    match value == 0.0 || (1e-4..1e7).contains(&value.abs()) {
        true => format!("{single}"),
        false => format!("{single:e}"),
    }
}

/// No minus before a zero.
fn positive_zero(text: String) -> String {
    let is_zero = text.starts_with('-') && text.bytes().all(|byte| b"-0.".contains(&byte));
    if is_zero { text[1..].to_owned() } else { text }
}

/// Digits with a comma before every three.
fn apart(digits: &str) -> String {
    let (whole, rest) = digits.find('.').map_or((digits, ""), |at| digits.split_at(at));
    let mut text = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

/// A number with what stands around it.
struct Decoration<'a> {
    prefix: &'a str,
    suffix: &'a str,
    thousands: bool,
    decimals: usize,
    number: f64,
}

impl<'a> Decoration<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let (outer, text) = match text.strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text),
        };
        let prefix = PREFIXES.into_iter().find(|prefix| text.starts_with(prefix)).unwrap_or("");
        let text = &text[prefix.len()..];
        // The longest of those that fit.
        let fitting = SUFFIXES.into_iter().filter(|suffix| text.ends_with(suffix));
        let suffix = fitting.max_by_key(|suffix| suffix.len()).unwrap_or("");
        let text = &text[..text.len() - suffix.len()];
        let (inner, text) = match text.strip_prefix('-') {
            Some(rest) if !prefix.is_empty() && outer > 0.0 => (-1.0, rest),
            _ => (1.0, text),
        };
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let mut groups = whole.split(',');
        let first = groups.next()?;
        let thousands = whole.contains(',');
        let fits = (1..=if thousands { 3 } else { 15 }).contains(&first.len())
            && is_digits(first)
            && groups.all(|group| group.len() == 3 && is_digits(group))
            && is_digits(decimals);
        let number: f64 = fits.then(|| text.replace(',', "").parse().ok())??;
        Some(Self {
            prefix,
            suffix,
            thousands,
            decimals: decimals.len(),
            number: outer * inner * number,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(words: &[&str]) -> Option<Form> {
        Form::of_words(words.iter().copied())
    }

    #[test]
    fn money_percent_and_thousands_are_read_and_written_as_they_were() {
        for (words, values) in [
            (&["$1,234.50", "$99.00", "-$5.25"][..], [1234.5, 99.0, -5.25]),
            (&["12%", "3%", "100%"], [12.0, 3.0, 100.0]),
            (&["1,234,567", "12,000", "999"], [1_234_567.0, 12_000.0, 999.0]),
            (&["1.50 €", "20.00 €", "3.25 €"], [1.5, 20.0, 3.25]),
        ] {
            let form = form(words).unwrap();
            for (word, value) in words.iter().zip(values) {
                assert_eq!(form.number(word), Some(value), "{word}");
                assert_eq!(form.text(value), *word);
            }
        }
    }

    #[test]
    fn what_is_ambiguous_is_no_number() {
        for words in [
            &["1,5", "2,5"][..],
            &["$5", "€5"],
            &["12,34"],
            &["1,2345"],
            &["5 apples"],
            &["$"],
            &[],
        ] {
            assert_eq!(form(words), None, "{words:?}");
        }
    }

    #[test]
    fn dates_and_times_are_numbers_and_come_back() {
        assert_eq!(form(&["2024-01-31", "1999-12-01"]), Some(Form::Date));
        let time = form(&["2024-01-31T10:00:00", "2024-01-31 09:30", "2024-02-01"]).unwrap();
        assert_eq!(time.number("2024-01-31T09:31:00"), Some(60.0));
        assert_eq!(time.text(61.4), "2024-01-31T09:31:01");
    }

    #[test]
    fn decimals_are_those_of_the_data() {
        assert_eq!(Form::Decimals { decimals: 2 }.text(1.0 / 3.0), "0.33");
        assert_eq!(Form::Decimals { decimals: 1 }.text(-0.01), "0.0");
        assert_eq!(Form::Plain.text(f64::from(0.1f32)), "0.1");
    }
}
