//! How numbers are written: non-finite ones as words in files, and rounded ones in tables.
//!
//! JSON has no infinity and no NaN, and `serde_json` would write both as `null`, which reads like "not measured". A run that
//! diverged must be seen, so non-finite numbers are the strings `"Infinity"`, `"-Infinity"` and `"NaN"`, in JSON and in CSV,
//! and are read back as what they were.

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number rounded to four significant digits, for a table that people read.
pub fn rounded(value: f64) -> String {
    if !value.is_finite() {
        return non_finite_word(value).replace("Infinity", "∞");
    }
    if value == 0.0 {
        return "0".into();
    }
    let scientific = format!("{value:.3e}");
    // The exponent after rounding, so that 9.9999 counts as 10.00.
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    if (-3..5).contains(&exponent) {
        format!("{value:.*}", (3 - exponent).max(0) as usize)
    } else {
        scientific
    }
}

/// Both ends of an interval, rounded; in words where it is everything, because there were too few values for one.
pub fn interval((low, high): (f64, f64)) -> String {
    match low == f64::NEG_INFINITY {
        true => "too few".into(),
        false => format!("{} to {}", rounded(low), rounded(high)),
    }
}

/// A number with all its digits (so that it is read back as it was), or its word if it is not finite.
pub fn exact(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        non_finite_word(value).into()
    } else if size == 0.0 || (1e-5..1e16).contains(&size) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// One number that is written as a word when it is not finite.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
struct Number(f64);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Digits(f64),
    Word(String),
}

impl From<Number> for Written {
    fn from(Number(value): Number) -> Self {
        match value.is_finite() {
            true => Self::Digits(value),
            false => Self::Word(non_finite_word(value).into()),
        }
    }
}

impl TryFrom<Written> for Number {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Digits(value) => Ok(Self(value)),
            Written::Word(word) => match word.parse() {
                Ok(value) if non_finite_word(value) == word => Ok(Self(value)),
                _ => Err(format!(
                    "`{word}` is not a number; write digits, \"Infinity\", \"-Infinity\" or \"NaN\""
                )),
            },
        }
    }
}

/// Numbers that are written as words when they are not finite, for `#[serde(with = "Words")]`.
pub(crate) trait Words: Sized {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

impl Words for f64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Serialize::serialize(&Number(*self), serializer)
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(<Number as Deserialize>::deserialize(deserializer)?.0)
    }
}

impl Words for Vec<f64> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().copied().map(Number))
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let numbers = <Vec<Number> as Deserialize>::deserialize(deserializer)?;
        Ok(numbers.into_iter().map(|number| number.0).collect())
    }
}

impl Words for IndexMap<String, Vec<f64>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let numbers = |list: &Vec<f64>| list.iter().copied().map(Number).collect::<Vec<_>>();
        serializer.collect_map(self.iter().map(|(name, list)| (name, numbers(list))))
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let lists = <IndexMap<String, Vec<Number>> as Deserialize>::deserialize(deserializer)?;
        let values = |list: Vec<Number>| list.into_iter().map(|number| number.0).collect();
        Ok(lists.into_iter().map(|(name, list)| (name, values(list))).collect())
    }
}

fn non_finite_word(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_tables_have_four_significant_digits() {
        let written: Vec<_> = [0.0, 1.0, 9.99996, 123.456, 98765.4, 0.0123456, 1.23456e-7, -2.5e9]
            .map(rounded)
            .into();
        assert_eq!(
            written,
            ["0", "1.000", "10.00", "123.5", "98765", "0.01235", "1.235e-7", "-2.500e9"]
        );
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(rounded), ["∞", "-∞", "NaN"]);
    }

    #[test]
    fn exact_numbers_are_short_and_are_read_back_as_they_were() {
        for (value, written) in [(0.1, "0.1"), (2.0, "2"), (-1.5e-300, "-1.5e-300"), (1e22, "1e22")]
        {
            assert_eq!(exact(value), written);
            assert_eq!(written.parse(), Ok(value));
        }
    }
}
