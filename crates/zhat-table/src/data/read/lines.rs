//! The lines of a text file one after the other, decompressed on the way, for files that are not quite tables.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::data::cell::{Cell, shown};
use crate::data::error::{Error, Place, Result};

use super::open::Opened;
use super::{check_path, sniff};

/// What stands between the cells of a line: one character, two of which have an empty cell between them, or else any number
/// of spaces and tabs.
type Separator = Option<u8>;

/// No line of a raw set is nearly as long as this.
const LONGEST: usize = 1 << 24;

/// A text file of which one line is held at a time.
pub(crate) struct Lines {
    opened: Opened,
    reader: BufReader<Box<dyn Read>>,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    /// Opens a file that is text.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        check_path(path)?;
        let opened = Opened::new(path)?;
        opened.format()?;
        if let Some(found) = sniff::not_text(&opened.head) {
            return Err(Error::NotText { file: path.into(), found });
        }
        let reader = BufReader::with_capacity(1 << 16, opened.stream()?);
        Ok(Self { opened, reader, line: Vec::new(), number: 0 })
    }

    /// Goes to the next line that is not blank; false at the end of the file.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        loop {
            self.line.clear();
            let mut line = self.reader.by_ref().take(LONGEST as u64 + 1);
            let read = line.read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| self.opened.damaged(self.number as usize, error))?;
            if read == 0 {
                return Ok(false);
            }
            self.number += 1;
            if read > LONGEST {
                return Err(Error::LineTooLong { place: self.place(None), most: LONGEST });
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The line without the blanks at its ends.
    pub(crate) fn line(&self) -> &[u8] {
        self.line.trim_ascii()
    }

    /// Its cells.
    pub(crate) fn cells(&self, separator: Separator) -> impl Iterator<Item = &[u8]> {
        let separates = move |byte: &u8| match separator {
            Some(separator) => *byte == separator,
            None => byte.is_ascii_whitespace(),
        };
        // An empty last cell counts, so only the line's end is cut off.
        let cells = self.line.trim_ascii_end().split(separates);
        cells.filter(move |cell| separator.is_some() || !cell.is_empty())
    }

    /// Its cells as numbers, of which there must be so many, and none missing or infinite.
    pub(crate) fn numbers(&self, separator: Separator, numbers: &mut [f64]) -> Result<()> {
        let found = self.first_numbers(separator, numbers)?;
        if found == numbers.len() { Ok(()) } else { Err(self.ragged(numbers.len(), found)) }
    }

    /// Its first cells as numbers, none missing or infinite, and how many cells there are.
    pub(crate) fn first_numbers(&self, separator: Separator, out: &mut [f64]) -> Result<usize> {
        let mut found = 0;
        for cell in self.cells(separator) {
            if let Some(number) = out.get_mut(found) {
                *number = self.number_of(found, cell)?;
                if !number.is_finite() {
                    let (place, cell) = (self.place(Some(found)), shown(cell));
                    return Err(Error::Missing { place, cell });
                }
            }
            found += 1;
        }
        Ok(found)
    }

    /// A cell as a number; NaN where it is missing.
    pub(crate) fn number_of(&self, column: usize, cell: &[u8]) -> Result<f64> {
        match Cell::parse(cell) {
            Cell::Number(number) => Ok(number),
            Cell::Missing => Ok(f64::NAN),
            Cell::Text | Cell::InvalidUtf8 => Err(Error::NotNumeric {
                place: self.place(Some(column)),
                cell: shown(cell),
                advice: "Fetch the file again.".into(),
            }),
        }
    }

    /// The error for a line with too few or too many cells.
    pub(crate) fn ragged(&self, expected: usize, found: usize) -> Error {
        let detail = format!("line {} has {found} cells, not {expected}", self.number);
        let advice =
            "The file may be another one, or the end of it may be missing: fetch it again.";
        Error::refused(&self.opened.path, detail, advice)
    }

    /// Where the line is.
    pub(crate) fn place(&self, column: Option<usize>) -> Place {
        Place {
            file: self.opened.path.clone(),
            unit: "line",
            number: self.number,
            column: column.map(|index| (index + 1, super::super::columns::numbered(index))),
        }
    }

    /// Bytes of the file that have been read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.opened.bytes_read()
    }

    /// Bytes of the file; 0 where nobody knows, because they come through a pipe.
    pub(crate) fn length(&self) -> u64 {
        self.opened.length.unwrap_or(0)
    }
}
