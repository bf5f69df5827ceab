//! A table whose columns are in memory, such as a data frame: read by the same rules as a file.

use std::path::Path;

use zhat::watch::Watch;

use super::carried::Carried;
use super::cell::{Cell, shown};
use super::columns::choose;
use super::error::{Error, Place, Result};
use super::gather::{Flow, Gather, Target, TextCells, Words};
use super::kinds::{Code, ColumnKind, Form, Kind};
use super::options::ReadOptions;
use super::read::Reading;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Named columns in memory, all of the same length.
#[derive(Debug)]
pub struct Frame<'a> {
    name: String,
    rows: usize,
    columns: Vec<FrameColumn<'a>>,
}

/// A column in memory.
#[derive(Debug)]
pub struct FrameColumn<'a> {
    /// Its name.
    pub name: String,
    /// Its cells.
    pub cells: FrameCells<'a>,
}

/// The number of a row, wherever its owner keeps it.
pub type NumberOf<'a> = Box<dyn Fn(usize) -> f64 + Send + Sync + 'a>;
/// The same for whole numbers.
pub type WholeOf<'a> = Box<dyn Fn(usize) -> i64 + Send + Sync + 'a>;

/// The cells of a column, by what their owner says that they are.
pub enum FrameCells<'a> {
    /// Numbers; NaN is a missing cell.
    Numbers(NumberOf<'a>),
    /// Words, each by its place in a list; a negative place is a missing cell.
    Words {
        /// The place of every row's word.
        codes: WholeOf<'a>,
        /// The list.
        words: Vec<String>,
    },
    /// Moments, in seconds from 1970-01-01; [`MISSING_MOMENT`] is a missing cell. Where all are midnight they are dates.
    Moments(WholeOf<'a>),
}

/// What stands for a moment that is missing.
pub const MISSING_MOMENT: i64 = i64::MIN;

impl std::fmt::Debug for FrameCells<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Numbers(_) => f.write_str("Numbers"),
            Self::Words { words, .. } => write!(f, "Words({})", words.len()),
            Self::Moments(_) => f.write_str("Moments"),
        }
    }
}

/// A frame as it was read.
pub(crate) struct FrameReading {
    pub(crate) reading: Reading,
    /// How the numbers of a column are written, where its owner knows.
    pub(crate) forms: Vec<Option<Form>>,
}

impl<'a> Frame<'a> {
    /// Columns of so many rows; the name is for messages.
    pub fn new(name: &str, rows: usize, columns: Vec<FrameColumn<'a>>) -> Self {
        Self { name: name.into(), rows, columns }
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads all rows, unless it is told to stop.
    pub(crate) fn read(&self, options: &ReadOptions, watch: &Watch) -> Result<FrameReading> {
        let file = Path::new(&self.name);
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        options.check_columns(file, names.len())?;
        let chosen = choose(file, &names, options)?;
        let mut gather = Gather::new(chosen, options, Target::Table(watch));
        gather.expect_rows(self.rows);
        let mut forms = vec![None; gather.columns.len()];
        let mut readers = Vec::with_capacity(forms.len());
        for (position, form) in forms.iter_mut().enumerate() {
            let cells = &self.columns[gather.columns[position].index].cells;
            let texts = std::mem::replace(&mut gather.texts[position], TextCells::Numbers);
            let (reader, texts) = match texts {
                TextCells::Known(kind) => (known(cells, &kind), TextCells::Known(kind)),
                texts => self.unknown(cells, texts, form),
            };
            gather.texts[position] = texts;
            readers.push(reader);
        }
        let mut row = vec![0.0; readers.len()];
        for at in 0..self.rows {
            for (position, reader) in readers.iter().enumerate() {
                row[position] = match reader.cell(at) {
                    Code::Value(value) => value,
                    Code::Unknown(value) => {
                        gather.note_unknown(position, &reader.text(at));
                        value
                    }
                    Code::Refused => {
                        let place = self.place(at, &gather, position);
                        let advice = "The model has numbers in this column.".into();
                        let cell = format!("{:?}", reader.text(at));
                        return Err(Error::NotNumeric { place, cell, advice });
                    }
                };
            }
            match gather.push(&row) {
                Ok(Flow::More) => {}
                Ok(Flow::Full) => break,
                Err(refusal) => {
                    let place = self.place(at, &gather, refusal.column);
                    let cell = shown(row[refusal.column].to_string().as_bytes());
                    return Err(refusal.at(place, cell));
                }
            }
        }
        if watch.is_stopped() {
            return Err(Error::Stopped);
        }
        let notes = std::mem::take(&mut gather.notes);
        let words = gather.take_words();
        let unknown = std::mem::take(&mut gather.unknown);
        let (table, dropped_rows, ranges) = gather.finish();
        match (table.rows(), dropped_rows) {
            (0, 0) => return Err(Error::NoRows { file: file.into(), header_only: false }),
            (0, rows) => return Err(Error::EveryRowMissing { file: file.into(), rows }),
            _ => {}
        }
        let table = table.with_carried(Carried { unknown, ..Carried::default() });
        Ok(FrameReading { reading: Reading { table, dropped_rows, ranges, notes, words }, forms })
    }

    /// How a column is read of which nothing is known but what its owner says.
    fn unknown<'b>(
        &self,
        cells: &'b FrameCells<'a>,
        texts: TextCells,
        form: &mut Option<Form>,
    ) -> (Reader<'b>, TextCells) {
        match (cells, texts) {
            // The words of numbers that name rows are their decimals.
            (FrameCells::Numbers(number), TextCells::Words(mut words)) => {
                let mut codes = Vec::with_capacity(self.rows);
                for value in (0..self.rows).map(number) {
                    codes.push(match value.is_nan() {
                        true => f64::NAN,
                        false => words.code(&plain(value)),
                    });
                }
                (Reader::Own(codes), TextCells::Words(words))
            }
            (FrameCells::Numbers(number), texts) => (Reader::Numbers(number), texts),
            (FrameCells::Words { codes, words: known }, _) => {
                // In the order in which they are met, as in a file.
                let mut words = Words::default();
                let mut of_place = vec![None; known.len()];
                for place in (0..self.rows).map(codes).filter(|&place| place >= 0) {
                    of_place[place as usize].get_or_insert_with(|| {
                        let word = known[place as usize].trim();
                        match Cell::parse(word.as_bytes()) {
                            Cell::Missing => f64::NAN,
                            _ => words.code(word),
                        }
                    });
                }
                let codes_of = of_place.into_iter().map(|code| code.unwrap_or(f64::NAN));
                let of_place = codes_of.map(Code::Value).collect();
                (Reader::Words { codes, words: known, of_place }, TextCells::Words(words))
            }
            (FrameCells::Moments(moment), texts) => {
                let moments = || (0..self.rows).map(moment).filter(|&at| at != MISSING_MOMENT);
                let (origin, step) = match moments().all(|at| at % DAY == 0) {
                    true => (0, DAY),
                    false => (moments().min().unwrap_or(0), 1),
                };
                *form = Some(if step == DAY { Form::Date } else { Form::Time { origin } });
                (Reader::Moments { moment, origin, step }, texts)
            }
        }
    }

    /// Where a cell is. Rows of what is in memory count from 0, as whoever has it there counts them.
    fn place(&self, row: usize, gather: &Gather<'_>, position: usize) -> Place {
        let column = &gather.columns[position];
        Place {
            file: (&self.name).into(),
            unit: "row index",
            number: row as u64,
            column: Some((column.index + 1, column.name.clone())),
        }
    }
}

/// How a column is read whose kind a model knows.
fn known<'b>(cells: &'b FrameCells<'_>, kind: &ColumnKind) -> Reader<'b> {
    match (cells, &kind.kind, &kind.form) {
        (FrameCells::Numbers(number), Kind::Categorical { .. }, _) => {
            Reader::Coded { number, kind: kind.clone() }
        }
        (FrameCells::Numbers(number), ..) => Reader::Numbers(number),
        (FrameCells::Words { codes, words }, ..) => {
            let code = |word: &String| match Cell::parse(word.as_bytes()) {
                Cell::Missing => Code::Value(f64::NAN),
                _ => code_of(kind, word.trim()),
            };
            Reader::Words { codes, words, of_place: words.iter().map(code).collect() }
        }
        (FrameCells::Moments(moment), _, Form::Date) => {
            Reader::Moments { moment, origin: 0, step: DAY }
        }
        (FrameCells::Moments(moment), _, Form::Time { origin }) => {
            Reader::Moments { moment, origin: *origin, step: 1 }
        }
        (FrameCells::Moments(moment), ..) => Reader::Refused(moment),
    }
}

/// The code of a word; yes and no are numbers to some tables.
fn code_of(kind: &ColumnKind, word: &str) -> Code {
    let number = match word {
        "True" => "1",
        "False" => "0",
        _ => return kind.code(word),
    };
    match kind.code(word) {
        Code::Value(value) => Code::Value(value),
        other => match kind.code(number) {
            Code::Value(value) => Code::Value(value),
            _ => other,
        },
    }
}

/// What the cells of a column are to a table.
enum Reader<'b> {
    Numbers(&'b NumberOf<'b>),
    /// Numbers that are classes to a model.
    Coded {
        number: &'b NumberOf<'b>,
        kind: ColumnKind,
    },
    /// Codes that were made beforehand.
    Own(Vec<f64>),
    Words {
        codes: &'b WholeOf<'b>,
        words: &'b [String],
        of_place: Vec<Code>,
    },
    Moments {
        moment: &'b WholeOf<'b>,
        origin: i64,
        step: i64,
    },
    /// Moments, where a model has something else.
    Refused(&'b WholeOf<'b>),
}

impl Reader<'_> {
    fn cell(&self, row: usize) -> Code {
        match self {
            Self::Numbers(number) => Code::Value(number(row)),
            Self::Coded { number, kind } => match number(row) {
                value if value.is_nan() => Code::Value(value),
                value => kind.code(&plain(value)),
            },
            Self::Own(codes) => Code::Value(codes[row]),
            Self::Words { codes, of_place, .. } => match codes(row) {
                ..0 => Code::Value(f64::NAN),
                place => of_place[place as usize],
            },
            Self::Moments { moment, origin, step } => Code::Value(match moment(row) {
                MISSING_MOMENT => f64::NAN,
                at => (at - origin).div_euclid(*step) as f64,
            }),
            Self::Refused(moment) => match moment(row) {
                MISSING_MOMENT => Code::Value(f64::NAN),
                _ => Code::Refused,
            },
        }
    }

    /// The cell as a message shows it.
    fn text(&self, row: usize) -> String {
        match self {
            Self::Numbers(number) | Self::Coded { number, .. } => plain(number(row)),
            Self::Own(codes) => plain(codes[row]),
            Self::Words { codes, words, .. } => match codes(row) {
                ..0 => String::new(),
                place => words[place as usize].clone(),
            },
            Self::Moments { moment, .. } | Self::Refused(moment) => {
                Form::Time { origin: 0 }.text(moment(row) as f64)
            }
        }
    }
}

/// A number in its shortest decimals, of 32 bits if it has no more.
fn plain(value: f64) -> String {
    let single = value as f32;
    if f64::from(single) == value { format!("{single}") } else { format!("{value}") }
}
