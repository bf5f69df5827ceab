//! The kind of a column as a user says it: `income=positive`, `share=bounded:0:1`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::period::Period;
use crate::data::error::{Error, Result};

/// What a user says that a column is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SaidKind {
    /// Any number.
    Continuous,
    /// Numbers above 0.
    Positive,
    /// Numbers between two bounds.
    Bounded(f64, f64),
    /// A date, a time or a number that comes round again after so much.
    Cyclic(Period),
    /// Whole numbers, or others that are ordered and come again and again.
    Integer,
    /// Words, or numbers that stand for some.
    Categorical,
    /// A name of the row, which is no part of the model.
    Identifier,
}

const EXPECTED: &str = "COLUMN=KIND, where KIND is continuous, positive, bounded:LOW:HIGH, cyclic:PERIOD (1d, 24), integer, categorical or identifier";

impl SaidKind {
    /// Reads `COLUMN=KIND`, one or several with commas between them.
    pub fn list(text: &str) -> Result<Vec<(String, Self)>> {
        let one = |part: &str| -> Option<(String, Self)> {
            // The last equals sign, since a name may hold one.
            let (name, kind) = part.rsplit_once('=')?;
            Some((name.trim().to_owned(), kind.trim().parse().ok()?))
        };
        let parts = text.split(',').map(one).collect::<Option<Vec<_>>>();
        parts.ok_or_else(|| Error::setting("kind", text, EXPECTED))
    }
}

impl FromStr for SaidKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::setting("kind", text, EXPECTED);
        Ok(match text {
            "continuous" => Self::Continuous,
            "positive" => Self::Positive,
            "integer" => Self::Integer,
            "categorical" | "yes/no" => Self::Categorical,
            "identifier" => Self::Identifier,
            _ if text.starts_with("cyclic:") => {
                Self::Cyclic(text["cyclic:".len()..].parse().map_err(|()| wrong())?)
            }
            _ => {
                let bounds = text.strip_prefix("bounded:").ok_or_else(wrong)?;
                let (low, high) = bounds.split_once(':').ok_or_else(wrong)?;
                match (low.parse::<f64>(), high.parse::<f64>()) {
                    (Ok(low), Ok(high)) if low < high && (high - low).is_finite() => {
                        Self::Bounded(low, high)
                    }
                    _ => return Err(wrong()),
                }
            }
        })
    }
}

impl fmt::Display for SaidKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continuous => f.write_str("continuous"),
            Self::Positive => f.write_str("positive"),
            Self::Bounded(low, high) => write!(f, "bounded:{low}:{high}"),
            Self::Cyclic(period) => write!(f, "cyclic:{period}"),
            Self::Integer => f.write_str("integer"),
            Self::Categorical => f.write_str("categorical"),
            Self::Identifier => f.write_str("identifier"),
        }
    }
}

impl TryFrom<String> for SaidKind {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<SaidKind> for String {
    fn from(kind: SaidKind) -> Self {
        kind.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_said_by_name_and_come_back() {
        let said =
            SaidKind::list("income=positive, a=b=categorical,share=bounded:0:100,when=cyclic:12h")
                .unwrap();
        assert_eq!(said[0], ("income".into(), SaidKind::Positive));
        assert_eq!(said[1], ("a=b".into(), SaidKind::Categorical));
        assert_eq!(said[2].1, SaidKind::Bounded(0.0, 100.0));
        for (_, kind) in said {
            assert_eq!(kind.to_string().parse::<SaidKind>().unwrap(), kind);
        }
        for wrong in [
            "a",
            "a=",
            "a=number",
            "a=bounded",
            "a=bounded:1:0",
            "a=bounded:x:1",
            "a=cyclic",
            "a=cyclic:0",
        ] {
            let error = SaidKind::list(wrong).unwrap_err().to_string();
            assert!(error.contains("COLUMN=KIND"), "{error}");
        }
    }
}
