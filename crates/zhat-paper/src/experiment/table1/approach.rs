//! What a cell is trained by: one of the paper's criteria, or what goes beyond the paper.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use zhat::criterion::Method;

/// What a cell is trained by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Approach {
    /// A criterion, with the paper's networks and settings.
    Paper(Method),
    /// The default of a fit, which is not the paper's: it stands beside the table, and no claim of the paper is about it.
    Beyond,
}

const BEYOND: &str = "beyond";

impl Approach {
    /// The name that users write, and that of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Approach::Paper(criterion) => criterion.name(),
            Approach::Beyond => BEYOND,
        }
    }

    /// As it stands in the table: a criterion as the paper writes it.
    pub fn label(self) -> String {
        match self {
            Approach::Paper(criterion) => criterion.name().to_uppercase(),
            Approach::Beyond => "beyond the paper".into(),
        }
    }
}

impl fmt::Display for Approach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Approach {
    type Err = zhat::Error;

    fn from_str(text: &str) -> zhat::Result<Self> {
        if text.trim() == BEYOND {
            return Ok(Approach::Beyond);
        }
        text.parse().map(Approach::Paper).map_err(|error| match error {
            zhat::Error::InvalidSetting { name, value, expected } => {
                let expected = format!("{expected}, or {BEYOND}");
                zhat::Error::InvalidSetting { name, value, expected }
            }
            other => other,
        })
    }
}

impl TryFrom<String> for Approach {
    type Error = zhat::Error;

    fn try_from(text: String) -> zhat::Result<Self> {
        text.parse()
    }
}

impl From<Approach> for String {
    fn from(approach: Approach) -> Self {
        approach.name().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (approach, name) in
            [(Approach::Paper(Method::SmcRnce), "smc-rnce"), (Approach::Beyond, "beyond")]
        {
            assert_eq!(approach.to_string(), name);
            assert_eq!(name.parse::<Approach>().unwrap(), approach);
            let json = serde_json::to_string(&approach).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<Approach>(&json).unwrap(), approach);
        }
        let message = "beyonds".parse::<Approach>().unwrap_err().to_string();
        assert!(message.contains("ml-is") && message.contains("or beyond"), "{message}");
    }
}
