//! What can be wrong with a table, in words that name the place and say what to type next.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A result with the [`enum@Error`] of tables.
pub type Result<T> = std::result::Result<T, Error>;

/// Where in a file something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// What the file counts in: `line` of a text file, as an editor shows it, or `row` of an array or a Parquet file.
    pub unit: &'static str,
    /// Which one, from 1.
    pub number: u64,
    /// Position of the column from 1, and its name; none where the whole line is meant.
    pub column: Option<(usize, String)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}", self.file.display(), self.unit, self.number)?;
        match &self.column {
            Some((position, name)) => write!(f, ", column {position} ({name})"),
            None => Ok(()),
        }
    }
}

/// Everything that is the user's or the file's doing; a shape bug in the calling code panics instead.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message above each variant says what its fields are")]
#[non_exhaustive]
pub enum Error {
    #[error("{}: {source}. Check the path and its permissions.", file.display())]
    Unreadable { file: PathBuf, source: std::io::Error },

    #[error("{} is not there.{} The built-in sets are written builtin:NAME (zhat data list).", file.display(), did_you_mean(nearest))]
    NotFound { file: PathBuf, nearest: Option<String> },

    #[error("{name} was a table in memory, which is not there any more. Name a file of rows.")]
    InMemory { name: String },

    #[error("{} is a directory, but a table is one file. Name the file in it.", file.display())]
    Directory { file: PathBuf },

    #[error("{} has nothing to model: {names} only name rows. Say what a column is with `kind`, such as {}=categorical.", file.display(), names.split(", ").next().unwrap_or("a"))]
    NothingToModel { file: PathBuf, names: String },

    #[error("{} is empty. Check that it was written or downloaded completely.", file.display())]
    Empty { file: PathBuf },

    #[error("{} has no rows{}. Check that it was written completely.", file.display(), if *header_only { " below its header (line 1); if line 1 is data, use `header` no" } else { "" })]
    NoRows { file: PathBuf, header_only: bool },

    #[error("{}: all {rows} rows have a missing cell, so `missing` drop leaves none. Leave out the columns that are mostly missing with `columns`.", file.display())]
    EveryRowMissing { file: PathBuf, rows: usize },

    #[error("{} should be {expected} by its name or by `format`, but begins with {found}. Rename it, say `format` csv, npy or parquet, or fetch it again.", file.display())]
    WrongMagic { file: PathBuf, expected: &'static str, found: String },

    #[error("{}: the {what} data ends too early or is damaged after {rows} rows ({detail}). Fetch or write the file again.", file.display())]
    Damaged { file: PathBuf, what: &'static str, rows: usize, detail: String },

    #[error("{} is not text in UTF-8: {found}. Save it as CSV in UTF-8, or say `format` npy or parquet.", file.display())]
    NotText { file: PathBuf, found: &'static str },

    #[error("{}, line {line}: {detail}. Say `header` yes or `header` no.", file.display())]
    AmbiguousHeader { file: PathBuf, line: u64, detail: String },

    #[error("{place}: {found} cells where line 1 has {expected}.{} Mend the line, or name the separator with `delimiter`.", if *open_quote { " A quote is opened and not closed there." } else { "" })]
    Ragged { place: Place, expected: usize, found: usize, open_quote: bool },

    #[error(
        "{place}: the cell is not UTF-8 ({cell}). Save the file as UTF-8, or leave the column out with `columns`."
    )]
    InvalidUtf8 { place: Place, cell: String },

    #[error(
        "{place}: the cell is missing ({cell}). Drop such rows with `missing` drop, or leave the column out with `columns`."
    )]
    Missing { place: Place, cell: String },

    #[error("{place}: {cell} is not a number. {advice}")]
    NotNumeric { place: Place, cell: String, advice: Box<str> },

    #[error(
        "{file}, column {name}: {cells} of its cells are {word:?}, and all others are {others}. Leave such cells empty if nothing is known there, or say what the column is with `kind` {name}=categorical or {name}=identifier."
    )]
    OneWord { file: String, name: String, word: String, cells: usize, others: &'static str },

    #[error(
        "{place}: {cell} has a decimal comma. Write numbers with a decimal point (for example: sed 's/,/./g')."
    )]
    DecimalComma { place: Place, cell: String },

    #[error(
        "{place}: the cell is infinite ({cell}), and no density can be fitted to it. Remove the row, or leave the column out with `columns`."
    )]
    Infinite { place: Place, cell: String },

    #[error(
        "{place}: {cell} is too large for a 32-bit float (at most 3.4e38). Rescale the column, take its logarithm, or leave it out with `columns`."
    )]
    TooLarge { place: Place, cell: String },

    #[error("{}: columns {first} and {second} are both named {name}. Rename one, or choose by position, for example `columns` {first}.", file.display())]
    DuplicateName { file: PathBuf, name: String, first: usize, second: usize },

    #[error("{file} has no column {name}.{} Its columns are: {available}.", did_you_mean(nearest))]
    UnknownColumn { file: String, name: String, nearest: Option<String>, available: String },

    #[error("{}: `columns` {given} is outside 1 to {columns} (positions count from 1).", file.display())]
    PositionOutOfRange { file: PathBuf, given: String, columns: usize },

    #[error("{}: column {position} ({name}) is chosen twice. Name it once in `columns`.", file.display())]
    ChosenTwice { file: PathBuf, name: String, position: usize },

    #[error("{}: {found} columns are read, but the model has {model} ({names}). Choose the columns that stand for them, in that order, with `columns`.", file.display())]
    OtherColumns { file: PathBuf, found: usize, model: usize, names: String },

    #[error(
        "{place}: the line is longer than {most} bytes, or a quote is opened in it and not closed. Mend it, or allow longer lines with `max-line-bytes`."
    )]
    LineTooLong { place: Place, most: usize },

    #[error("{}: it has {columns} columns or more, and {most} are the most. Check that it is a table and its separator (`delimiter`), or allow more with `max-columns`.", file.display())]
    TooManyColumns { file: PathBuf, columns: usize, most: usize },

    #[error("{}: no column is left. Choose at least one with `columns`.", file.display())]
    NoColumns { file: PathBuf },

    #[error(
        "{file}, column {name}: every row is {value}, so it has no density. Leave it out with `columns` {others}."
    )]
    Constant { file: String, name: String, value: f32, others: String },

    #[error(
        "{file}, column {name}: its values go from {low} to {high}, but 32-bit floats are about {gap:.1e} apart there, and all of them are {value}. Subtract an offset from the column first, or leave it out with `columns` {others}."
    )]
    Collapsed {
        file: String,
        name: String,
        low: f64,
        high: f64,
        value: f32,
        gap: f64,
        others: String,
    },

    #[error(
        "{file}: columns {first} and {second} {relation}, so their joint density diverges. Leave one out with `columns` {others}."
    )]
    DuplicateColumns {
        file: String,
        first: String,
        second: String,
        relation: &'static str,
        others: String,
    },

    #[error("{file}: {rows} rows of {columns} columns are too few for a density; at least {needed} are needed. Add rows{}, or choose fewer columns with `columns`.", if *dropped > 0 { format!(" ({dropped} were dropped for missing cells)") } else { String::new() })]
    TooFewRows { file: String, rows: usize, columns: usize, needed: usize, dropped: usize },

    #[error("{name} is {value}, but must be {expected}.")]
    InvalidSetting { name: &'static str, value: String, expected: String },

    #[error("there is no built-in set {name}.{} The sets are: {available}.", did_you_mean(nearest))]
    UnknownBuiltin { name: String, nearest: Option<String>, available: String },

    #[error("{}: {detail}. {advice}", file.display())]
    Refused { file: PathBuf, detail: String, advice: String },

    #[error("stopped; nothing was written.")]
    Stopped,

    #[error("cannot write {}: {source}. Check the disk's space and the directory's permissions.", file.display())]
    Unwritable { file: PathBuf, source: std::io::Error },
}

impl Error {
    /// A file that is not what is wanted: why, and what to do.
    pub(crate) fn refused(
        file: &Path,
        detail: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Error::Refused { file: file.into(), detail: detail.into(), advice: advice.into() }
    }

    /// Shorthand for a setting outside its range.
    pub(crate) fn setting(
        name: &'static str,
        value: impl ToString,
        expected: impl Into<String>,
    ) -> Self {
        Error::InvalidSetting { name, value: value.to_string(), expected: expected.into() }
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!(" Did you mean {name}?"))
}
