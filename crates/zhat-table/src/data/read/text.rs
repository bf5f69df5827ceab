//! Text tables: CSV and its relatives, streamed cell by cell into the table.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

use crate::data::cell::{Cell, is_pointed, shown, trimmed, with_point};
use crate::data::checks::Warning;
use crate::data::columns::{Column, carried, choose, numbered, ranges};
use crate::data::error::{Error, Place, Result};
use crate::data::gather::{Flow, Gather, Target, TextCells};
use crate::data::kinds::Form;
use crate::data::options::{Header, ReadOptions};

use super::limit::{Limit, TooMuch, too_much};
use super::open::{HEAD, Opened};
use super::sniff;
use super::spaces::Spaces;

/// After how many rows the length of the table is guessed, so that memory is asked for once.
const ROWS_BEFORE_GUESS: usize = 20_000;

/// After so many rows of numbers, a word is a mistake.
const NUMBERS_BEFORE_WORDS: usize = 20;

pub(super) fn read<'a>(
    opened: Opened,
    options: &ReadOptions,
    target: Target<'a>,
) -> Result<Gather<'a>> {
    if let Some(found) = sniff::not_text(&opened.head) {
        return Err(Error::NotText { file: opened.path.clone(), found });
    }
    let head = whole_first_line(&opened, options)?;
    let (bytes, lines) = sniff::comments(&head);
    let (comments, head) = head.split_at(bytes);
    let delimiter = options.delimiter.unwrap_or_else(|| sniff::delimiter(head));
    let records = sniff::first_records(head, delimiter);
    let decimal_comma = sniff::has_decimal_commas(&records, delimiter);
    let records = if decimal_comma { sniff::with_points(&records) } else { records };
    let in_comment = match (options.header, records.first()) {
        (Header::Detect, Some(first)) => sniff::names_in_comment(comments, delimiter, first),
        _ => None,
    };
    let has_header = match in_comment {
        Some(_) => false,
        None => sniff::has_header(&records, options.header).map_err(|detail| {
            Error::AmbiguousHeader { file: opened.path.clone(), line: lines + 1, detail }
        })?,
    };
    let first = records.first().ok_or_else(|| Error::Empty { file: opened.path.clone() })?;
    options.check_columns(&opened.path, first.len())?;
    let most = (options.most_bytes(), options.most_columns());
    let comments = (bytes as u64, lines);
    let file =
        File { opened: &opened, delimiter, decimal_comma, width: first.len(), most, comments };
    let names = match &in_comment {
        Some(names) => file.names(names)?,
        None if has_header => file.names(first)?,
        None => (0..file.width).map(numbered).collect(),
    };
    let mut gather = Gather::new(choose(&opened.path, &names, options)?, options, target);
    gather.carried = carried(&opened.path, &names, options, &gather.columns)?;
    let is_guess = options.header == Header::Detect && in_comment.is_none() && !has_header;
    if is_guess && sniff::may_be_names(&records) {
        let line = first.iter().take(6).map(String::from_utf8_lossy).collect::<Vec<_>>().join(",");
        gather.notes.push(Warning::NumericHeader { line });
    }
    while let Some(words) = file.rows(has_header, &mut gather)? {
        gather.restart(&words);
    }
    if has_header && gather.seen() == 0 {
        return Err(Error::NoRows { file: opened.path.clone(), header_only: true });
    }
    Ok(gather)
}

/// The first bytes of the file, with all of the first line, which may be longer than the bytes that are looked at otherwise.
fn whole_first_line<'a>(opened: &'a Opened, options: &ReadOptions) -> Result<Cow<'a, [u8]>> {
    let (head, most) = (&opened.head, options.most_bytes());
    if (head.len() as u64) < HEAD || head.contains(&b'\n') {
        return Ok(Cow::Borrowed(head));
    }
    let mut line = Vec::new();
    let mut stream = BufReader::new(opened.stream()?.take(most as u64 + 1));
    stream.read_until(b'\n', &mut line).map_err(|error| opened.damaged(0, error))?;
    match line.len() > most {
        true => {
            let (file, unit) = (opened.path.clone(), "line");
            let place = Place { file, unit, number: 1, column: None };
            Err(Error::LineTooLong { place, most })
        }
        false => Ok(Cow::Owned(line)),
    }
}

/// A text file whose shape is known.
struct File<'a> {
    opened: &'a Opened,
    delimiter: char,
    /// Whether its numbers have a comma where others have a point.
    decimal_comma: bool,
    width: usize,
    /// The longest line, and the most cells in it.
    most: (usize, usize),
    /// Bytes and lines of the comments that it begins with.
    comments: (u64, u64),
}

impl File<'_> {
    /// The file after the comments that it begins with.
    fn stream(&self) -> Result<Box<dyn Read>> {
        let mut stream = self.opened.stream()?;
        std::io::copy(&mut stream.by_ref().take(self.comments.0), &mut std::io::sink())
            .map_err(|error| self.opened.damaged(0, error))?;
        Ok(stream)
    }

    /// The names in the header; a blank name is replaced by the position.
    fn names(&self, header: &csv::ByteRecord) -> Result<Vec<String>> {
        header
            .iter()
            .enumerate()
            .map(|(index, cell)| match std::str::from_utf8(cell.trim_ascii()) {
                Ok("") => Ok(numbered(index)),
                Ok(name) => Ok(name.to_string()),
                Err(_) => Err(Error::InvalidUtf8 {
                    place: self.place(header, Some((index, numbered(index)))),
                    cell: shown(cell),
                }),
            })
            .collect()
    }

    /// Streams all rows into the table; stops with the columns that turn out to hold words, if any do.
    fn rows(&self, mut skip: bool, gather: &mut Gather<'_>) -> Result<Option<Vec<usize>>> {
        let limit = Limit::new(self.most.0, self.most.1, self.delimiter as u8);
        let mut reader = sniff::limited(self.stream()?, self.delimiter, &limit);
        let mut record = csv::ByteRecord::new();
        let mut cells = vec![0.0; gather.columns.len()];
        loop {
            match reader.read_byte_record(&mut record) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => {
                    let place = self.place_at(reader.position(), None);
                    return Err(self.broken(gather.seen(), error, place));
                }
            }
            if let Err(too_much) = limit.next(record.as_slice().len(), record.len()) {
                return Err(self.too_much(too_much, self.place(&record, None)));
            }
            if sniff::is_blank(&record) && (self.width > 1 || record.is_empty()) {
                continue;
            }
            if std::mem::take(&mut skip) {
                continue;
            }
            if record.len() != self.width {
                return Err(self.ragged(&record));
            }
            for (position, cell) in cells.iter_mut().enumerate() {
                let index = gather.columns[position].index;
                *cell = match self.cell(&record, position, gather) {
                    Some(number) => number,
                    None => match self.word_columns(&record, gather) {
                        Some(words) => return Ok(Some(words)),
                        None => return Err(self.not_numeric(&record, index, gather)),
                    },
                };
            }
            let label = |column: &Column| {
                String::from_utf8_lossy(&self.text(&record[column.index])).into_owned()
            };
            gather.labels.extend(gather.carried.iter().map(label));
            match gather.push(&cells) {
                Ok(Flow::More) => {}
                Ok(Flow::Full) => return Ok(None),
                Err(refusal) => {
                    let column = &gather.columns[refusal.column];
                    let place = self.place(&record, Some((column.index, column.name.clone())));
                    return Err(refusal.at(place, shown(&record[column.index])));
                }
            }
            if gather.seen() == ROWS_BEFORE_GUESS {
                gather.expect_rows(self.opened.guess_rows(ROWS_BEFORE_GUESS));
            }
        }
    }

    /// The number of a cell, or the code of its word; none where it has neither.
    fn cell(
        &self,
        record: &csv::ByteRecord,
        position: usize,
        gather: &mut Gather<'_>,
    ) -> Option<f64> {
        let bytes = &record[gather.columns[position].index];
        if self.has_stray_point(bytes) && gather.wants_number(position) {
            return None;
        }
        gather.code(position, &self.text(bytes))
    }

    /// A cell, with a decimal point where the file has commas.
    fn text<'r>(&self, bytes: &'r [u8]) -> Cow<'r, [u8]> {
        match self.decimal_comma {
            true => with_point(bytes).map_or(Cow::Borrowed(bytes), Cow::Owned),
            false => Cow::Borrowed(bytes),
        }
    }

    /// Whether a number has a point in a file of decimal commas: it may be one of thousands.
    fn has_stray_point(&self, bytes: &[u8]) -> bool {
        self.decimal_comma && is_pointed(bytes)
    }

    /// Whether a cell has a decimal comma in a file where that is not how numbers are written, or not surely.
    fn has_stray_comma(&self, bytes: &[u8]) -> bool {
        self.delimiter != ',' && !self.decimal_comma && with_point(bytes).is_some()
    }

    /// The columns of a row that hold words though numbers were expected, if they may: where all rows so far had numbers, a word is a
    /// mistake, unless it is a number that is written in some other way.
    fn word_columns(&self, record: &csv::ByteRecord, gather: &Gather<'_>) -> Option<Vec<usize>> {
        let mut words = Vec::new();
        for (position, column) in gather.columns.iter().enumerate() {
            let bytes = &*self.text(&record[column.index]);
            let is_text = Cell::parse(bytes) == Cell::Text;
            if !is_text || !matches!(gather.texts[position], TextCells::NumbersOrWords) {
                continue;
            }
            let is_form = Form::of_words(std::iter::once(trimmed(bytes))).is_some();
            if self.has_stray_comma(bytes)
                || gather.numbers(position) >= NUMBERS_BEFORE_WORDS && !is_form
            {
                return None;
            }
            words.push(position);
        }
        (!words.is_empty()).then_some(words)
    }

    fn ragged(&self, record: &csv::ByteRecord) -> Error {
        Error::Ragged {
            place: self.place(record, None),
            expected: self.width,
            found: record.len(),
            open_quote: record.iter().any(|cell| cell.contains(&b'\n')),
        }
    }

    fn not_numeric(&self, record: &csv::ByteRecord, index: usize, gather: &Gather<'_>) -> Error {
        let bytes = &record[index];
        let chosen = gather.columns.iter().find(|column| column.index == index);
        let name = chosen.map_or_else(|| numbered(index), |column| column.name.clone());
        let (place, cell) = (self.place(record, Some((index, name))), shown(bytes));
        if Cell::parse(bytes) == Cell::InvalidUtf8 {
            return Error::InvalidUtf8 { place, cell };
        }
        if self.has_stray_comma(bytes) {
            return Error::DecimalComma { place, cell };
        }
        if self.has_stray_point(bytes) {
            let advice = "Other numbers of the file have decimal commas, so its point may be one of thousands: write all numbers alike.";
            return Error::NotNumeric { place, cell, advice: advice.into() };
        }
        let numeric: Vec<usize> = gather
            .columns
            .iter()
            .map(|column| column.index)
            .filter(|&index| Cell::parse(&self.text(&record[index])).is_numeric())
            .collect();
        let advice: String = if numeric.is_empty() {
            "If the line is cut up wrongly, name the separator with `delimiter`.".into()
        } else {
            format!(
                "Mend the cell, or choose the numeric columns, for example `columns` {}.",
                ranges(&numeric)
            )
        };
        Error::NotNumeric { place, cell, advice: advice.into() }
    }

    fn too_much(&self, too_much: TooMuch, place: Place) -> Error {
        let (most_bytes, most) = self.most;
        match too_much {
            TooMuch::Bytes => Error::LineTooLong { place, most: most_bytes },
            TooMuch::Cells => {
                let (file, columns) = (self.opened.path.clone(), most.saturating_add(1));
                Error::TooManyColumns { file, columns, most }
            }
        }
    }

    fn broken(&self, rows: usize, error: csv::Error, place: Place) -> Error {
        match error.into_kind() {
            csv::ErrorKind::Io(error) => match too_much(&error) {
                Some(much) => self.too_much(much, place),
                None => self.opened.damaged(rows, error),
            },
            other => self.opened.damaged(rows, format!("{other:?}")),
        }
    }

    /// Where a record stands. The CSV reader's own count is off by one after CRLF and blank lines, so the
    /// lines up to its byte are counted again: this happens once, on the way to an error.
    fn place(&self, record: &csv::ByteRecord, column: Option<(usize, String)>) -> Place {
        self.place_at(record.position().unwrap_or(&csv::Position::new()), column)
    }

    fn place_at(&self, position: &csv::Position, column: Option<(usize, String)>) -> Place {
        let byte = position.byte();
        let number = self
            .stream()
            .and_then(|stream| {
                let stream: Box<dyn Read> = match self.delimiter {
                    ' ' => Box::new(Spaces::new(stream)),
                    _ => stream,
                };
                line_at(stream, byte).map_err(|error| self.opened.damaged(0, error))
            })
            .unwrap_or_else(|_| position.line());
        let number = number + self.comments.1;
        Place {
            file: self.opened.path.clone(),
            unit: "line",
            number,
            column: column.map(|(index, name)| (index + 1, name)),
        }
    }
}

/// The line of the first byte at or after a position that does not end a line.
fn line_at(stream: impl Read, position: u64) -> std::io::Result<u64> {
    let (mut line, mut previous) = (1, 0);
    for (at, byte) in (0..).zip(BufReader::with_capacity(1 << 16, stream).bytes()) {
        let byte = byte?;
        match byte {
            b'\r' => line += 1,
            b'\n' if previous != b'\r' => line += 1,
            b'\n' => {}
            _ if at >= position => break,
            _ => {}
        }
        previous = byte;
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_over_blank_lines_and_every_kind_of_line_end() {
        let line = |text: &str, byte| line_at(text.as_bytes(), byte).unwrap();
        assert_eq!(line("a\r\n\r\nb", 2), 3);
        assert_eq!(line("a\n\n\nb", 2), 4);
        assert_eq!(line("a\rb\rc", 4), 3);
        assert_eq!(line("abc", 0), 1);
    }
}
