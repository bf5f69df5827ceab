//! Where a table comes from: a file, or a built-in set of which the truth is known.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use rand::Rng;
use sha2::{Digest, Sha256};
use zhat::rng::Streams;
use zhat::watch::Watch;

use super::builtin::{self, Builtin};
use super::checks::{Ties, Warning, check, check_collapse, check_rows, others, ties};
use super::dequantise::dequantise;
use super::discrete::Discrete;
use super::error::{Error, Result};
use super::fill::fill;
use super::frame::{Frame, FrameReading};
use super::kinds::{Atom, Code, ColumnKind, Form, Found, SaidKind, find, recode, settle_levels};
use super::nearest::{listing, nearest};
use super::options::{Missing, ReadOptions};
use super::read::{self, Reading, STANDARD_INPUT, read_watched};
use super::table::Table;

/// Rows that are drawn from a built-in set unless `max_rows` says otherwise.
pub const BUILTIN_ROWS: usize = 20_000;

/// What the name of a table begins with that was in memory, and cannot be read again.
pub const IN_MEMORY: &str = "memory:";

/// What the user named as data.
#[derive(Debug)]
pub enum Source {
    /// `builtin:NAME`.
    Builtin(Box<dyn Builtin>),
    /// Anything else is a path; `-` is standard input.
    File(PathBuf),
}

/// A table that is fit for a density.
#[derive(Debug)]
pub struct Loaded {
    /// The rows.
    pub table: Table,
    /// The true density, for a built-in set whose columns were all kept in their order.
    pub truth: Option<Box<dyn Builtin>>,
    /// What its user should know.
    pub warnings: Vec<Warning>,
    /// How many rows were left out for a missing cell.
    pub dropped_rows: usize,
    /// The columns that noise was added to, as they were before.
    pub discrete: BTreeMap<String, Discrete>,
    /// The rows before noise was added to some columns; none where it was not.
    pub before_noise: Option<Table>,
    /// What the columns are, those that are no part of the table included; empty where it was not asked, or all are any numbers.
    pub kinds: Vec<ColumnKind>,
    /// What each row counts, where a column says it.
    pub weights: Option<Vec<f64>>,
    /// The words of categorical columns, whose places the table has for them.
    words: Vec<Option<Vec<String>>>,
}

impl Loaded {
    /// A digest of the rows, and of their words.
    pub fn hash(&self) -> String {
        let hash = self.table.hash();
        if self.words.iter().all(Option::is_none) && self.weights.is_none() {
            return hash;
        }
        let mut with_words = Sha256::new();
        with_words.update(hash);
        for weight in self.weights.iter().flatten() {
            with_words.update(weight.to_le_bytes());
        }
        for word in self.words.iter().flatten().flatten() {
            with_words.update((word.len() as u64).to_le_bytes());
            with_words.update(word.as_bytes());
        }
        with_words.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Settles the levels of categorical columns by the rows that a model is trained on: rare words are pooled.
    pub fn settle_levels(&mut self, train: &[usize]) {
        let Self { table, before_noise, kinds, words, .. } = self;
        let recoded = settle_levels(table, kinds, words, train);
        for (column, of_word) in recoded {
            recode(table, column, &of_word);
            if let Some(before) = before_noise {
                recode(before, column, &of_word);
            }
        }
        words.clear();
    }

    /// Puts the columns into another order. Of the kinds, which are those of the whole table, the order stays.
    pub(crate) fn reorder(&mut self, order: &[usize]) {
        if order.iter().copied().eq(0..self.table.dimension()) {
            return;
        }
        self.table = self.table.select_columns(order);
        self.before_noise = self.before_noise.take().map(|table| table.select_columns(order));
        // The truth is of columns in their own order.
        self.truth = None;
    }
}

/// What is asked of a table besides its numbers.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Discrete columns that noise is added to, with their steps.
    pub dequantise: BTreeMap<String, f64>,
    /// Kinds of columns; those that are not said are found out. None where all are any numbers, and words are refused.
    pub kinds: Option<BTreeMap<String, SaidKind>>,
    /// The column that says what each row counts, and is no part of the table.
    pub weight: Option<String>,
}

/// A source that can be read again and again, for whoever needs it more than once: itself, or, where it is standard input, a pipe
/// or a device, a copy of it in the directory, with the name `input`.
pub fn keep(source: &str, directory: &Path) -> Result<String> {
    let path = Path::new(source);
    if !read::is_read_once(path) {
        return Ok(source.into());
    }
    let copy = directory.join("input");
    let unreadable = |source| Error::Unreadable { file: path.into(), source };
    std::fs::create_dir_all(directory).map_err(unreadable)?;
    read::copy(path, &copy).map_err(unreadable)?;
    Ok(copy.to_string_lossy().into_owned())
}

impl Source {
    /// Reads `builtin:NAME` or a path.
    pub fn parse(text: &str) -> Result<Self> {
        match text.strip_prefix("builtin:") {
            Some(name) => Ok(Source::Builtin(builtin::find(name)?)),
            None if text.starts_with(IN_MEMORY) => Err(Error::InMemory { name: text.into() }),
            None => Ok(Source::File(text.into())),
        }
    }

    /// Reads or draws the table and checks it.
    pub fn load(self, options: &ReadOptions, rng: &mut impl Rng) -> Result<Loaded> {
        self.load_dequantised(options, &BTreeMap::new(), rng)
    }

    /// Reads or draws the table, adds noise to its discrete columns, given with their steps, and checks it.
    pub fn load_dequantised(
        self,
        options: &ReadOptions,
        discrete: &BTreeMap<String, f64>,
        rng: &mut impl Rng,
    ) -> Result<Loaded> {
        let asked = Asked { dequantise: discrete.clone(), ..Asked::default() };
        self.load_watched(options, &asked, rng, &Watch::default())
    }

    /// The same with kinds, unless it is told to stop.
    pub fn load_watched(
        self,
        options: &ReadOptions,
        asked: &Asked,
        rng: &mut impl Rng,
        watch: &Watch,
    ) -> Result<Loaded> {
        let name = self.to_string();
        let mut truth = None;
        let (found, dropped_rows, notes) = match self {
            Source::File(path) => {
                let options = asked.options(options);
                asked.found(&name, read_watched(&path, &options, watch)?, &[], &options)?
            }
            Source::Builtin(_) if asked.weight.is_some() => {
                let expected = "left out for a built-in set, whose rows count the same";
                return Err(Error::setting(
                    "weight",
                    asked.weight.as_deref().unwrap_or(""),
                    expected,
                ));
            }
            Source::Builtin(set) => {
                let table = builtin::draw(&*set, options.max_rows.unwrap_or(BUILTIN_ROWS), rng);
                let names = table.columns().to_vec();
                let chosen = super::columns::choose(name.as_ref(), &names, options)?;
                let chosen: Vec<usize> = chosen.into_iter().map(|column| column.index).collect();
                let kinds = set.kinds();
                // Without kinds a density of the codes is none of the words.
                let has_kinds = asked.kinds.is_some() || !options.model_kinds.is_empty();
                let is_whole = chosen.iter().copied().eq(0..names.len());
                truth = (is_whole && (has_kinds || kinds.is_empty())).then_some(set);
                let mut found = Found::plain(table.select_columns(&chosen));
                if !kinds.is_empty() && !options.model_kinds.is_empty() {
                    let own: Vec<&ColumnKind> =
                        chosen.iter().map(|&column| &kinds[column]).collect();
                    if in_codes_of(&options.model_kinds, &own, &mut found.table) {
                        truth = None;
                    }
                }
                if asked.kinds.is_some() && !kinds.is_empty() {
                    found.kinds = chosen.iter().map(|&column| kinds[column].clone()).collect();
                }
                (found, 0, Vec::new())
            }
        };
        Loaded::new(&name, (found, dropped_rows, notes), truth, asked, rng)
    }
}

impl Loaded {
    /// Reads a table in memory and checks it, unless it is told to stop: as a file of the same cells.
    pub fn of_frame(
        frame: &Frame<'_>,
        options: &ReadOptions,
        asked: &Asked,
        rng: &mut impl Rng,
        watch: &Watch,
    ) -> Result<Self> {
        let options = asked.options(options);
        let FrameReading { reading, forms } = frame.read(&options, watch)?;
        let found = asked.found(frame.name(), reading, &forms, &options)?;
        Self::new(frame.name(), found, None, asked, rng)
    }

    /// Adds noise to discrete columns and checks the table.
    fn new(
        name: &str,
        (found, dropped_rows, notes): (Found, usize, Vec<Warning>),
        mut truth: Option<Box<dyn Builtin>>,
        asked: &Asked,
        rng: &mut impl Rng,
    ) -> Result<Self> {
        let Found { mut table, kinds, words, weights } = found;
        let before_noise = (!asked.dequantise.is_empty()).then(|| table.clone());
        let discrete = dequantise(&mut table, &asked.dequantise, rng)?;
        truth = truth.filter(|_| discrete.is_empty());
        let mut warnings = notes;
        warnings.extend(check_kinds(name, &table, &kinds, dropped_rows)?);
        // What is modelled is not warned of.
        warnings.retain(|warning| match warning {
            Warning::Spike { column, .. } => atoms_of(&kinds, column).is_none(),
            Warning::Discrete { column, .. } => atoms_of(&kinds, column)
                .is_none_or(|atoms| is_discrete_beside(atoms, &table, column)),
            _ => true,
        });
        // Nobody is told to do what was done.
        for warning in &mut warnings {
            if let Warning::Discrete { column, .. } | Warning::Spike { column, .. } = warning
                && let Some(Discrete { step, .. }) = discrete.get(column)
            {
                *warning = Warning::StillDiscrete { column: std::mem::take(column), step: *step };
            }
        }
        Ok(Loaded {
            table,
            truth,
            warnings,
            dropped_rows,
            discrete,
            before_noise,
            kinds,
            weights,
            words,
        })
    }
}

impl Asked {
    /// How a file is read for that: words are taken, and missing cells are kept unless they are to be dropped.
    fn options(&self, options: &ReadOptions) -> ReadOptions {
        let mut options = options.clone();
        if let Some(weight) = self.weight.iter().find(|weight| !options.columns.contains(weight))
            && !options.columns.is_empty()
        {
            options.columns.push(weight.clone());
        }
        if let Some(said) = &self.kinds {
            let is_word =
                |kind: &SaidKind| matches!(kind, SaidKind::Categorical | SaidKind::Identifier);
            let words = said.iter().filter(|(_, kind)| is_word(kind)).map(|(name, _)| name.clone());
            options.words = Some(words.collect());
            if options.missing == Missing::Refuse {
                options.missing = Missing::Keep;
            }
        }
        options
    }

    /// What the columns of a reading are.
    fn found(
        &self,
        name: &str,
        reading: Reading,
        forms: &[Option<Form>],
        options: &ReadOptions,
    ) -> Result<(Found, usize, Vec<Warning>)> {
        let Reading { mut table, dropped_rows, ranges, notes, words } = reading;
        let weight = self.weight.as_ref();
        let weights = weight.map(|column| weights_of(name, &table, &words, column)).transpose()?;
        let mut found = match &self.kinds {
            None if !options.model_kinds.is_empty() => {
                let kinds = in_order(&options.model_kinds, table.columns());
                Found { kinds: kinds.into_iter().cloned().collect(), ..Found::plain(table) }
            }
            None => {
                check_collapse(name, &table, &ranges)?;
                if let Some(weight) = weight {
                    let is_other = |&column: &usize| table.columns()[column] != *weight;
                    let others: Vec<usize> = (0..table.dimension()).filter(is_other).collect();
                    table = table.select_columns(&others);
                }
                Found::plain(table)
            }
            Some(said) => find(name, table, words, forms, &self.said(said))?,
        };
        if let Some(kind) = found.kinds.iter_mut().find(|kind| weight == Some(&kind.name)) {
            kind.note = "what each row counts: not modelled".into();
        }
        found.weights = weights;
        Ok((found, dropped_rows, notes))
    }

    /// Columns that noise is added to are numbers with that noise.
    fn said(&self, said: &BTreeMap<String, SaidKind>) -> BTreeMap<String, SaidKind> {
        let mut said = said.clone();
        for column in self.dequantise.keys() {
            said.insert(column.clone(), SaidKind::Continuous);
        }
        if let Some(weight) = &self.weight {
            said.insert(weight.clone(), SaidKind::Identifier);
        }
        said
    }
}

/// What each row counts: numbers, none of them below zero.
fn weights_of(
    file: &str,
    table: &Table,
    words: &[Option<Vec<String>>],
    name: &str,
) -> Result<Vec<f64>> {
    let names = || table.columns().iter().map(String::as_str);
    let Some(column) = names().position(|known| known == name) else {
        return Err(Error::UnknownColumn {
            file: file.into(),
            name: name.into(),
            nearest: nearest(name, names()),
            available: listing(names()),
        });
    };
    let wrong = |value: String, expected: &str| Err(Error::setting("weight", value, expected));
    if words.get(column).is_some_and(Option::is_some) {
        return wrong(name.into(), "a column of numbers, and this one has words");
    }
    let weights: Vec<f64> = table.column(column).map(f64::from).collect();
    if let Some(row) = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        let value = match weights[row].is_nan() {
            true => "missing".into(),
            false => weights[row].to_string(),
        };
        let expected = "a number that is not below zero in every row";
        return wrong(format!("{value} in row {} of column {name}", row + 1), expected);
    }
    if weights.iter().sum::<f64>() <= 0.0 {
        return wrong(format!("0 in every row of column {name}"), "above zero for some row");
    }
    Ok(weights)
}

/// What columns of a table are, in its order.
pub(crate) fn in_order<'a>(kinds: &'a [ColumnKind], columns: &[String]) -> Vec<&'a ColumnKind> {
    let known = |name: &String| kinds.iter().find(|kind| kind.name == *name);
    columns.iter().filter_map(known).collect()
}

/// Puts the codes of a model's words in the place of those of a set's own; says whether any was another.
fn in_codes_of(model: &[ColumnKind], own: &[&ColumnKind], table: &mut Table) -> bool {
    let model = in_order(model, table.columns());
    let mut differs = false;
    for row in table.values_mut().chunks_exact_mut(own.len()) {
        for (value, (own, model)) in row.iter_mut().zip(own.iter().zip(&model)) {
            if let (true, Code::Value(code) | Code::Unknown(code)) =
                (own.kind.shape().is_classes(), model.code(&own.text(f64::from(*value))))
            {
                differs |= *value != code as f32;
                *value = code as f32;
            }
        }
    }
    differs
}

/// Checks the columns that have a density; the others have none that could diverge.
fn check_kinds(
    name: &str,
    table: &Table,
    kinds: &[ColumnKind],
    dropped_rows: usize,
) -> Result<Vec<Warning>> {
    if kinds.is_empty() {
        return check(name, table, dropped_rows);
    }
    let words =
        kinds.iter().filter(|kind| kind.is_modelled()).map(|kind| kind.kind.shape().is_classes());
    for (column, (statistics, is_words)) in table.statistics().into_iter().zip(words).enumerate() {
        if !is_words && table.rows() > 1 && statistics.minimum >= statistics.maximum {
            return Err(Error::Constant {
                file: name.into(),
                name: table.columns()[column].clone(),
                value: statistics.minimum,
                others: others(table, column),
            });
        }
    }
    check_rows(name, table.rows(), table.dimension(), dropped_rows)?;
    let modelled = kinds.iter().filter(|kind| kind.is_modelled()).enumerate();
    let has_density =
        modelled.filter(|(_, kind)| !kind.kind.shape().is_counted()).map(|(column, _)| column);
    let columns: Vec<usize> = has_density.collect();
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let mut table = table.select_columns(&columns);
    if table.values().iter().any(|value| value.is_nan()) {
        let observed = table.clone();
        fill(table.values_mut(), &observed, &mut Streams::new(0).stream("check", 0, 0));
    }
    check(name, &table, dropped_rows)
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Builtin(set) => write!(f, "builtin:{}", set.name()),
            Source::File(path) if path == Path::new(STANDARD_INPUT) => write!(f, "standard input"),
            Source::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The atoms of a column that has any.
fn atoms_of<'a>(kinds: &'a [ColumnKind], name: &str) -> Option<&'a [Atom]> {
    let kind = kinds.iter().find(|kind| kind.name == name)?;
    (!kind.atoms.is_empty()).then_some(&kind.atoms[..])
}

/// Whether the values of a column stand in several rows each, its atoms aside.
fn is_discrete_beside(atoms: &[Atom], table: &Table, name: &str) -> bool {
    let index = table.columns().iter().position(|column| column == name).expect("a column");
    let is_atom = |value: f32| atoms.iter().any(|atom| atom.value as f32 == value);
    let others = table.column(index).filter(|&value| !is_atom(value));
    matches!(ties(others), Ties::Discrete { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Kind;

    #[test]
    fn words_of_a_built_in_set_get_the_codes_of_the_model() {
        let of = |levels: &[&str]| {
            let levels = levels.iter().map(|level| (*level).to_owned()).collect();
            ColumnKind::new("a", Kind::Categorical { levels })
        };
        let (own, model) = (of(&["north", "east", "other"]), of(&["east", "north", "other"]));
        let mut table = Table::new(vec!["a".into()], vec![0.0, 1.0, 0.0]);
        assert!(!in_codes_of(std::slice::from_ref(&own), &[&own], &mut table));
        assert!(in_codes_of(&[model], &[&own], &mut table));
        assert_eq!(table.values(), [1.0, 0.0, 1.0]);
    }
}
