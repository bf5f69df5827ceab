//! One value of an experiment's settings, as it stands in `results.json` and in the settings table of a page.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::number::{self, Words};

/// A setting's value.
///
/// It is its own type rather than a JSON value, because a JSON value silently turns NaN and infinity into `null`; here they
/// become words (see [`crate::number`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// On or off.
    Flag(bool),
    /// A whole number that is not negative: a count or a seed.
    Count(u64),
    /// A whole number below zero.
    Whole(i64),
    /// A real number.
    Real(#[serde(with = "Words")] f64),
    /// Words.
    Text(String),
    /// Several values.
    List(Vec<Setting>),
    /// Settings that belong together.
    Group(IndexMap<String, Setting>),
    /// Not set.
    Unset,
}

impl Setting {
    /// The value as a reader sees it in a table: `yes` and `no`, lists with commas, `not set` where there is none.
    pub fn shown(&self) -> String {
        match self {
            Self::Flag(true) => "yes".into(),
            Self::Flag(false) => "no".into(),
            Self::Count(count) => count.to_string(),
            Self::Whole(whole) => whole.to_string(),
            Self::Real(real) => number::exact(*real),
            Self::Text(text) => text.clone(),
            Self::List(items) => items.iter().map(Self::shown).collect::<Vec<_>>().join(", "),
            Self::Group(group) => group
                .iter()
                .map(|(name, setting)| format!("{name} = {}", setting.shown()))
                .collect::<Vec<_>>()
                .join(", "),
            Self::Unset => "not set".into(),
        }
    }
}

impl<T: Into<String>> From<T> for Setting {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}
