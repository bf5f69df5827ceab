//! What the columns of a table are: found out from the data or said by the user, shown, and kept with the model.

mod atoms;
mod cyclic;
mod date;
mod find;
mod form;
mod levels;
mod period;
mod said;

use serde::{Deserialize, Serialize};

pub(crate) use find::{Found, find, recode, settle_levels};
pub use form::Form;
pub use period::Period;
pub use said::SaidKind;

use super::standardise::Shape;

/// A column: what it is, and how its cells are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnKind {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: Kind,
    /// How its cells are written.
    #[serde(default)]
    pub form: Form,
    /// Values that come again and again among others that do not, such as the 0 of a column that is often 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub atoms: Vec<Atom>,
    /// After how much it comes round again, in the units of its numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<f64>,
    /// Smallest and largest value, as they were read; none of words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Cells that were missing when the model was fitted.
    #[serde(default)]
    pub missing: usize,
    /// Why it is that, or what was done, where there is something to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A value that has a probability of its own in a column that has a density elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Atom {
    /// The value.
    pub value: f64,
    /// Where on the line it is put; outside of where the others are if its column could not have it elsewhere.
    pub place: f64,
}

/// What values a column has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// Any number.
    #[default]
    Continuous,
    /// Numbers above 0.
    Positive,
    /// Numbers between two bounds.
    Bounded {
        /// All are above it.
        low: f64,
        /// All are below it.
        high: f64,
    },
    /// Numbers that come round again, such as directions.
    Circle {
        /// The least of its values as they are written.
        low: f64,
        /// As many further, it is the same again.
        period: f64,
        /// Where it is cut open: the middle of the widest gap.
        cut: f64,
    },
    /// One of many ordered values, such as a whole number: it has a probability and not a density.
    Integer {
        /// The values, increasing.
        values: Vec<f64>,
    },
    /// One of some words.
    Categorical {
        /// The words in the order of their codes. The last one stands for all that are rare or unknown.
        levels: Vec<String>,
    },
    /// A name of the row: carried along, and no part of the model.
    Identifier,
}

impl Kind {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Continuous => "continuous",
            Self::Positive => "positive",
            Self::Bounded { .. } => "bounded",
            Self::Circle { .. } => "cyclic",
            Self::Integer { .. } => "integer",
            Self::Categorical { levels } if levels.len() == 3 => "yes/no",
            Self::Categorical { .. } => "categorical",
            Self::Identifier => "identifier",
        }
    }

    /// How its numbers, or the codes of its words, become features.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Continuous | Self::Identifier => Shape::Line,
            Self::Positive => Shape::Positive,
            Self::Bounded { low, high } => Shape::Bounded { low: *low, high: *high },
            Self::Circle { low, period, cut } => {
                Shape::Circle { low: *low, period: *period, cut: *cut }
            }
            Self::Integer { values } => Shape::Values { values: values.clone() },
            Self::Categorical { levels } => Shape::Classes { levels: levels.len() },
        }
    }
}

/// What a cell of text says to a column whose kind is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Code {
    /// A number, or the code of a word.
    Value(f64),
    /// A word that the model does not know, which counts as one of the others.
    Unknown(f64),
    /// Nothing that the column can hold.
    Refused,
}

impl ColumnKind {
    /// A column of numbers.
    pub fn new(name: &str, kind: Kind) -> Self {
        let (form, note) = (Form::default(), String::new());
        let (atoms, cycle, range) = (Vec::new(), None, None);
        Self { name: name.into(), kind, form, atoms, cycle, range, missing: 0, note }
    }

    /// How its numbers, or the codes of its words, become features.
    pub fn shape(&self) -> Shape {
        match self.atoms.is_empty() {
            true => self.kind.shape(),
            false => Shape::Atoms {
                values: self.atoms.iter().map(|atom| atom.value).collect(),
                places: self.atoms.iter().map(|atom| atom.place).collect(),
                rest: Box::new(self.kind.shape()),
            },
        }
    }

    /// Whether it is a part of the model.
    pub fn is_modelled(&self) -> bool {
        self.kind != Kind::Identifier
    }

    /// Whether a likelihood has probabilities of its values, and not densities alone.
    fn has_probabilities(&self) -> bool {
        self.is_counted() || !self.atoms.is_empty()
    }

    /// Whether all of its values have probabilities, so that rows may well come twice.
    pub(crate) fn is_counted(&self) -> bool {
        matches!(self.kind, Kind::Integer { .. } | Kind::Categorical { .. })
    }

    /// What it is, in a word: a date is a date, however it is modelled.
    pub fn label(&self) -> &'static str {
        match self.form {
            _ if !self.is_modelled() => self.kind.name(),
            Form::Date => "date",
            Form::Time { .. } => "time",
            _ => match &self.kind {
                Kind::Integer { values } if values.iter().any(|x| x.fract() != 0.0) => "in steps",
                kind => kind.name(),
            },
        }
    }

    /// The code of a cell that is not missing.
    pub(crate) fn code(&self, text: &str) -> Code {
        match &self.kind {
            Kind::Categorical { levels } => {
                let known = levels.iter().rev().skip(1).rev().position(|level| level == text);
                // A number may be written in another way than the first time: 1 and 1.0 are one level.
                let known = known.or_else(|| {
                    let number: f64 = text.parse().ok()?;
                    let same = |level: &String| level.parse() == Ok(number);
                    levels[..levels.len() - 1].iter().position(same)
                });
                match known {
                    Some(code) => Code::Value(code as f64),
                    None => Code::Unknown((levels.len() - 1) as f64),
                }
            }
            _ => self.form.number(text).map_or(Code::Refused, Code::Value),
        }
    }

    /// A value as the user would write it; nothing where it is missing.
    pub fn text(&self, value: f64) -> String {
        match &self.kind {
            _ if value.is_nan() => String::new(),
            Kind::Categorical { levels } => {
                let code = (value.round().max(0.0) as usize).min(levels.len() - 1);
                levels[code].clone()
            }
            _ => self.form.text(value),
        }
    }

    /// Range or levels, as a table shows them.
    pub fn values(&self) -> String {
        match (&self.kind, self.range) {
            (Kind::Categorical { levels }, _) => listed(&levels[..levels.len() - 1]),
            (Kind::Integer { values }, Some([low, high])) => {
                format!(
                    "{} to {}, {} values",
                    self.form.text(low),
                    self.form.text(high),
                    values.len()
                )
            }
            (Kind::Bounded { low, high }, Some([least, most])) => format!(
                "{} to {}, between {low} and {high}",
                self.form.text(least),
                self.form.text(most)
            ),
            (_, Some([low, high])) => {
                format!("{} to {}", self.form.text(low), self.form.text(high))
            }
            (_, None) => String::new(),
        }
    }
}

/// That a likelihood of these columns has probabilities in it, which can be far below the densities that another program has for the same
/// cells; nothing where it has none. Columns that are not among the modelled ones do not count.
pub(crate) fn probabilities_in_words(kinds: &[ColumnKind], modelled: &[String]) -> Option<String> {
    let is_counted = |column: &&ColumnKind| modelled.contains(&column.name);
    let found = kinds.iter().filter(is_counted).filter(|column| column.has_probabilities()).count();
    // A table that has nothing but numbers can be read without kinds.
    let is_numbers = |column: &ColumnKind| {
        let is_plain = matches!(column.form, Form::Plain | Form::Decimals { .. });
        is_plain && column.range.is_some() && column.missing == 0
    };
    let instead = match kinds.iter().all(is_numbers) {
        true => {
            "; `data.find-kinds=false` takes them so too, and the density of a value that comes again and again can be as high as one likes"
        }
        false => "",
    };
    let sentence = format!(
        "{found} of {} columns have probabilities in this likelihood (whole numbers, words, values that come again and again), so it does not \
         compare with that of a program that takes these for densities{instead}.",
        modelled.len()
    );
    (found > 0).then_some(sentence)
}

/// The first few, and how many more there are.
fn listed(levels: &[String]) -> String {
    const SHOWN: usize = 5;
    let first = levels.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match levels.len() {
        0..=SHOWN => first,
        number => format!("{first} and {} more", number - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_likelihood_with_probabilities_in_it_says_so() {
        let column = |name: &str, kind: Kind| {
            let range = Some([0.0, 1.0]);
            ColumnKind { range, ..ColumnKind::new(name, kind) }
        };
        let names = |kinds: &[ColumnKind]| -> Vec<String> {
            kinds.iter().map(|kind| kind.name.clone()).collect()
        };
        let said = |kinds: &[ColumnKind]| probabilities_in_words(kinds, &names(kinds));
        let number = column("a", Kind::Continuous);
        let whole = column("b", Kind::Integer { values: vec![0.0, 1.0] });
        let atom = Atom { value: 0.0, place: -1.0 };
        let often = ColumnKind { atoms: vec![atom], ..column("c", Kind::Positive) };
        let levels = ["x", "y", "z", "other"].map(String::from).to_vec();
        let word = ColumnKind::new("d", Kind::Categorical { levels });

        assert_eq!(said(std::slice::from_ref(&number)), None);
        let found = said(&[number.clone(), whole.clone(), often.clone()]).unwrap();
        assert!(found.starts_with("2 of 3 columns"), "{found}");
        assert!(found.contains("data.find-kinds=false"), "{found}");
        let found = said(&[number.clone(), word]).unwrap();
        assert!(found.starts_with("1 of 2 columns"), "{found}");
        assert!(!found.contains("find-kinds"), "words are no numbers: {found}");
        let hole = ColumnKind { missing: 1, ..number.clone() };
        assert!(!said(&[hole, whole.clone()]).unwrap().contains("find-kinds"));
        // What is given has no part in the likelihood.
        assert_eq!(probabilities_in_words(&[whole, number], &["a".into()]), None);
    }
}
