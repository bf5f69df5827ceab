//! One value of an experiment's settings, as it stands in `results.json` and in the settings table of a page.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::number;

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
    Real(#[serde(with = "number::one")] f64),
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

macro_rules! setting_from {
    ($($from:ty => $variant:ident as $into:ty),* $(,)?) => {
        $(impl From<$from> for Setting {
            fn from(value: $from) -> Self {
                Self::$variant(<$into>::from(value))
            }
        })*
    };
}

setting_from! {
    bool => Flag as bool,
    u32 => Count as u64,
    u64 => Count as u64,
    f64 => Real as f64,
    &str => Text as String,
    String => Text as String,
}

impl From<usize> for Setting {
    fn from(value: usize) -> Self {
        Self::Count(value as u64)
    }
}

impl From<i64> for Setting {
    fn from(value: i64) -> Self {
        // As it will be read back.
        u64::try_from(value).map_or(Self::Whole(value), Self::Count)
    }
}

impl<T: Into<Setting>> From<Vec<T>> for Setting {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Setting>> From<Option<T>> for Setting {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Unset, Into::into)
    }
}
