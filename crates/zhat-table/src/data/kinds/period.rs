//! After how much a column comes round again, as a user says it: `1d` of a time, `24` of a number.

use std::fmt;
use std::str::FromStr;

use super::form::Form;

/// A day, in seconds.
const DAY: f64 = 86_400.0;
/// Days of a year of the Gregorian calendar, on average.
const YEAR: f64 = 365.2425;

/// Units of time, and their seconds; the shorter name comes after those it is a part of.
const UNITS: [(&str, f64); 6] =
    [("min", 60.0), ("s", 1.0), ("h", 3_600.0), ("d", DAY), ("w", 7.0 * DAY), ("y", YEAR * DAY)];

/// So many of a unit of time, or of whatever the column counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    number: f64,
    /// Place among the units of time.
    unit: Option<usize>,
}

impl Period {
    /// The same in the units of a column's numbers, or what would have been right to say of it.
    pub(super) fn of_numbers(self, form: &Form) -> Result<f64, String> {
        let seconds = self.unit.map(|unit| self.number * UNITS[unit].1);
        match (form, seconds) {
            (Form::Date, Some(seconds)) if seconds > DAY => Ok(seconds / DAY),
            (Form::Date, _) => {
                Err("of a date with a cycle of more than a day, such as cyclic:1w or cyclic:1y".into())
            }
            (Form::Time { .. }, Some(seconds)) => Ok(seconds),
            (Form::Time { .. }, None) => {
                Err("of a time with a cycle in s, min, h, d, w or y, such as cyclic:1d".into())
            }
            (_, None) => Ok(self.number),
            (_, Some(_)) => Err(
                "of a date or a time; the cycle of a number has no unit, as in cyclic:24 or cyclic:360".into(),
            ),
        }
    }
}

impl FromStr for Period {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let unit = UNITS.iter().position(|(name, _)| text.ends_with(name));
        let number = unit.map_or(text, |unit| &text[..text.len() - UNITS[unit].0.len()]);
        let number: f64 = number.parse().map_err(|_| ())?;
        let is_length = number.is_finite() && number > 0.0;
        is_length.then_some(Self { number, unit }).ok_or(())
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.unit.map_or("", |unit| UNITS[unit].0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_read_in_their_units_and_come_back() {
        let seconds =
            |text: &str| text.parse::<Period>().unwrap().of_numbers(&Form::Time { origin: 0 });
        assert_eq!(seconds("1d"), Ok(86_400.0));
        assert_eq!(seconds("12h"), Ok(43_200.0));
        assert_eq!(seconds("90min"), Ok(5_400.0));
        assert!(seconds("24").unwrap_err().contains("cyclic:1d"));
        let days = |text: &str| text.parse::<Period>().unwrap().of_numbers(&Form::Date);
        assert_eq!((days("1w"), days("1y")), (Ok(7.0), Ok(365.2425)));
        assert!(days("12h").is_err() && days("7").is_err());
        let number = |text: &str| text.parse::<Period>().unwrap().of_numbers(&Form::Plain);
        assert_eq!(number("24"), Ok(24.0));
        assert!(number("1d").unwrap_err().contains("cyclic:24"));
        for text in ["1d", "0.5y", "24", "90min"] {
            assert_eq!(text.parse::<Period>().unwrap().to_string(), text);
        }
        for wrong in ["", "d", "-1d", "0", "1 day", "inf", "nan", "1m"] {
            assert!(wrong.parse::<Period>().is_err(), "{wrong}");
        }
    }
}
