//! Rows as a reader finds them, gathered into one table or handed on in batches: the one place where cells are refused.

use std::collections::HashMap;
use std::path::Path;

use zhat::watch::Watch;

use super::carried::Carried;
use super::cell::{Cell, trimmed};
use super::checks::{Warning, is_named_so};
use super::columns::Column;
use super::error::{Error, Place};
use super::kinds::{Code, ColumnKind, Kind};
use super::options::{Missing, ReadOptions};
use super::table::Table;

/// Whether the reader should go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// There is room for more rows.
    More,
    /// No more rows are wanted.
    Full,
}

/// A cell that a table may not hold; the reader adds the place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Refusal {
    /// Which of the chosen columns.
    pub(crate) column: usize,
    value: f64,
}

impl Refusal {
    /// The error for the user, given where the cell is and what it says.
    pub(crate) fn at(self, place: Place, cell: String) -> Error {
        // Digits that overflow f64 read as infinite, but the text says a number.
        let is_number = cell.contains(|c: char| c.is_ascii_digit());
        match self.value {
            value if value.is_nan() => Error::Missing { place, cell },
            value if value.is_infinite() && !is_number => Error::Infinite { place, cell },
            _ => Error::TooLarge { place, cell },
        }
    }
}

/// Where rows go as they are read.
pub(crate) enum Target<'a> {
    /// All of them into one table, unless it is told to stop.
    Table(&'a Watch),
    /// Batches of so many rows to a function, which says whether it wants more.
    Batches(usize, &'a mut dyn FnMut(Table) -> Flow),
}

/// How a cell of text that is not missing becomes a number.
#[derive(Debug)]
pub(crate) enum TextCells {
    /// It must be one.
    Numbers,
    /// It must be one, unless the column begins with words.
    NumbersOrWords,
    /// It is a word, and gets a code.
    Words(Words),
    /// As the column of a model says.
    Known(ColumnKind),
}

/// Words in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Words {
    words: Vec<String>,
    codes: HashMap<String, usize>,
}

/// More different words than this are not told apart: nobody can model them.
const MOST_WORDS: usize = 100_000;

impl Words {
    pub(crate) fn code(&mut self, word: &str) -> f64 {
        if let Some(&code) = self.codes.get(word) {
            return code as f64;
        }
        let code = self.words.len().min(MOST_WORDS);
        if code == self.words.len() {
            self.words.push(word.to_owned());
            self.codes.insert(word.to_owned(), code);
        }
        code as f64
    }
}

fn texts(columns: &[Column], options: &ReadOptions) -> Vec<TextCells> {
    let of = |column: &Column| {
        let known = options.model_kinds.iter().find(|kind| kind.name == column.name);
        match (known, &options.words) {
            (Some(known), _) => TextCells::Known(known.clone()),
            // Names of rows may be numbers that are too long for 32 bits.
            (None, Some(words)) if words.contains(&column.name) || is_named_so(&column.name) => {
                TextCells::Words(Words::default())
            }
            (None, Some(_)) => TextCells::NumbersOrWords,
            (None, None) => TextCells::Numbers,
        }
    };
    columns.iter().map(of).collect()
}

/// A table that grows row by row.
pub(crate) struct Gather<'a> {
    pub(crate) columns: Vec<Column>,
    target: Target<'a>,
    values: Vec<f32>,
    missing: Missing,
    max_rows: usize,
    rows: usize,
    dropped: usize,
    /// Smallest and largest number of every column, before it became a 32-bit float.
    ranges: Vec<(f64, f64)>,
    /// What its user should know.
    pub(crate) notes: Vec<Warning>,
    /// Columns that are carried along, and their cells.
    pub(crate) carried: Vec<Column>,
    pub(crate) labels: Vec<String>,
    /// How text is read, column by column.
    pub(crate) texts: Vec<TextCells>,
    /// Words that the model does not know, and how many cells have one.
    pub(crate) unknown: Vec<(String, String, usize)>,
}

impl<'a> Gather<'a> {
    pub(crate) fn new(columns: Vec<Column>, options: &ReadOptions, target: Target<'a>) -> Self {
        Self {
            ranges: vec![(f64::INFINITY, f64::NEG_INFINITY); columns.len()],
            notes: Vec::new(),
            carried: Vec::new(),
            labels: Vec::new(),
            texts: texts(&columns, options),
            unknown: Vec::new(),
            columns,
            target,
            values: Vec::new(),
            missing: options.missing,
            max_rows: options.max_rows.unwrap_or(usize::MAX),
            rows: 0,
            dropped: 0,
        }
    }

    /// Begins again, with words in these columns too.
    pub(crate) fn restart(&mut self, words: &[usize]) {
        words.iter().for_each(|&column| self.texts[column] = TextCells::Words(Words::default()));
        for texts in &mut self.texts {
            if let TextCells::Words(words) = texts {
                *words = Words::default();
            }
        }
        self.ranges.fill((f64::INFINITY, f64::NEG_INFINITY));
        self.values.clear();
        self.labels.clear();
        (self.rows, self.dropped) = (0, 0);
    }

    /// The words of every column that has some.
    pub(crate) fn take_words(&mut self) -> Vec<Option<Vec<String>>> {
        let words = |texts: &mut TextCells| match texts {
            TextCells::Words(words) => Some(std::mem::take(&mut words.words)),
            _ => None,
        };
        self.texts.iter_mut().map(words).collect()
    }

    /// Numbers of a column so far.
    pub(crate) fn numbers(&self, column: usize) -> usize {
        let cells = self.values.iter().skip(column).step_by(self.columns.len());
        cells.filter(|value| !value.is_nan()).count()
    }

    /// Whether a cell of a column is a number, and not a word that may look like one.
    pub(crate) fn wants_number(&self, column: usize) -> bool {
        match &self.texts[column] {
            TextCells::Numbers | TextCells::NumbersOrWords => true,
            TextCells::Words(_) => false,
            TextCells::Known(kind) => !matches!(kind.kind, Kind::Categorical { .. }),
        }
    }

    /// The number of a cell of text, or the code of its word; none where it has neither.
    pub(crate) fn code(&mut self, position: usize, bytes: &[u8]) -> Option<f64> {
        match (&mut self.texts[position], Cell::parse(bytes)) {
            (_, Cell::InvalidUtf8) => None,
            (_, Cell::Missing) => Some(f64::NAN),
            (TextCells::Words(words), _) => Some(words.code(trimmed(bytes))),
            (TextCells::Known(kind), parsed) => match (kind.code(trimmed(bytes)), parsed) {
                (Code::Value(value), _) => Some(value),
                (Code::Unknown(value), _) => {
                    self.note_unknown(position, trimmed(bytes));
                    Some(value)
                }
                (Code::Refused, Cell::Number(number)) => Some(number),
                (Code::Refused, _) => None,
            },
            (_, Cell::Number(number)) => Some(number),
            (_, _) => None,
        }
    }

    /// Notes a word that the model does not know.
    pub(crate) fn note_unknown(&mut self, column: usize, word: &str) {
        let name = &self.columns[column].name;
        let known = self.unknown.iter_mut().find(|(column, ..)| column == name);
        match known {
            Some((_, _, number)) => *number += 1,
            None => self.unknown.push((name.clone(), word.to_owned(), 1)),
        }
    }

    /// Rows seen so far, dropped ones included.
    pub(crate) fn seen(&self) -> usize {
        self.rows + self.dropped
    }

    /// Makes room for this many rows in all, so that growing does not copy; a wrong guess does no harm.
    pub(crate) fn expect_rows(&mut self, rows: usize) {
        let rows = match self.target {
            Target::Table(_) => rows.min(self.max_rows),
            Target::Batches(size, _) => size,
        };
        let cells = rows.saturating_mul(self.columns.len());
        // A failure is no error: the guess may be far too large, and memory is asked for again as rows come.
        let _ = self.values.try_reserve_exact(cells.saturating_sub(self.values.len()));
    }

    /// Adds a row; NaN stands for a missing cell.
    pub(crate) fn push(&mut self, cells: &[f64]) -> Result<Flow, Refusal> {
        if self.rows >= self.max_rows {
            return Ok(Flow::Full);
        }
        let start = self.values.len();
        let mut is_missing = false;
        for (column, &cell) in cells.iter().enumerate() {
            let value = cell as f32;
            if !value.is_finite() {
                if !cell.is_nan() || self.missing == Missing::Refuse {
                    return Err(Refusal { column, value: cell });
                }
                is_missing = true;
            } else {
                let (low, high) = &mut self.ranges[column];
                (*low, *high) = (low.min(cell), high.max(cell));
            }
            self.values.push(value);
        }
        if is_missing && self.missing == Missing::Drop {
            self.values.truncate(start);
            self.labels.truncate(start / self.columns.len() * self.carried.len());
            self.dropped += 1;
        } else {
            self.rows += 1;
        }
        let wants = match self.target {
            Target::Batches(size, _) if self.values.len() >= size * self.columns.len() => {
                self.hand_on()
            }
            Target::Table(watch) if watch.is_stopped() => Flow::Full,
            _ => Flow::More,
        };
        Ok(if self.rows == self.max_rows { Flow::Full } else { wants })
    }

    /// Adds a row of a file that counts in rows; the error says where a cell that is refused stands.
    pub(crate) fn push_row(&mut self, file: &Path, cells: &[f64]) -> Result<Flow, Error> {
        self.push(cells).map_err(|refusal| {
            let place = self.next_row(file, &self.columns[refusal.column]);
            refusal.at(place, cells[refusal.column].to_string())
        })
    }

    /// A cell of the row that comes next.
    pub(crate) fn next_row(&self, file: &Path, column: &Column) -> Place {
        let (number, name) = (self.seen() as u64 + 1, column.name.clone());
        Place { file: file.into(), unit: "row", number, column: Some((column.index + 1, name)) }
    }

    /// Gives the rows so far to whoever takes batches.
    fn hand_on(&mut self) -> Flow {
        let Target::Batches(_, take) = &mut self.target else { return Flow::More };
        let names = |columns: &[Column]| columns.iter().map(|column| column.name.clone()).collect();
        let table = Table::new(names(&self.columns), std::mem::take(&mut self.values));
        let mut cells = std::mem::take(&mut self.labels);
        cells.truncate(table.rows() * self.carried.len());
        let place = |carried: &Column| self.columns.iter().position(|c| c.index == carried.index);
        let of_table = self.carried.iter().map(place).collect();
        let unknown = std::mem::take(&mut self.unknown);
        let carried = Carried { columns: names(&self.carried), cells, of_table, unknown };
        take(table.with_carried(carried))
    }

    /// Hands on the last rows; how many were read, and how many dropped.
    pub(crate) fn finish_batches(mut self) -> (usize, usize) {
        if !self.values.is_empty() {
            self.hand_on();
        }
        (self.rows, self.dropped)
    }

    /// The table, how many rows were dropped, and between what numbers its columns were.
    pub(crate) fn finish(mut self) -> (Table, usize, Vec<(f64, f64)>) {
        // Give back what was guessed too much, if it is worth a copy.
        if self.values.capacity() > self.values.len() + self.values.len() / 8 {
            self.values.shrink_to_fit();
        }
        let names = self.columns.into_iter().map(|column| column.name).collect();
        (Table::new(names, self.values), self.dropped, self.ranges)
    }
}
