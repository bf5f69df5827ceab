//! A text stream that ends in an error where one record grows beyond all measure: a file of one line, or a quote that is never
//! closed, would be held in memory whole.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes that a reader takes at once, and so sees of later records.
const AHEAD: u64 = 1 << 16;

/// How far the record that is being read has come.
#[derive(Debug)]
pub(super) struct Limit {
    most_bytes: u64,
    most_cells: u64,
    separator: u8,
    bytes: Cell<u64>,
    cells: Cell<u64>,
}

/// The error of a record that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooMuch {
    Bytes,
    Cells,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TooMuch::Bytes => "a line is too long",
            TooMuch::Cells => "a line has too many cells",
        })
    }
}

impl std::error::Error for TooMuch {}

impl Limit {
    pub(super) fn new(most_bytes: usize, most_cells: usize, separator: u8) -> Rc<Self> {
        let (most_bytes, most_cells) = (most_bytes as u64, most_cells as u64);
        let (bytes, cells) = (Cell::new(0), Cell::new(0));
        Rc::new(Self { most_bytes, most_cells, separator, bytes, cells })
    }

    /// Another record begins; what is known of the last one, its bytes and cells, is looked at exactly.
    pub(super) fn next(&self, bytes: usize, cells: usize) -> Result<(), TooMuch> {
        self.bytes.set(0);
        self.cells.set(0);
        match () {
            () if bytes as u64 > self.most_bytes => Err(TooMuch::Bytes),
            () if cells as u64 > self.most_cells => Err(TooMuch::Cells),
            () => Ok(()),
        }
    }

    /// Counts what was read; ends of lines do not count, because blank lines are no record.
    fn count(&self, read: &[u8]) -> Result<(), TooMuch> {
        let ends = read.iter().filter(|&&byte| byte == b'\n' || byte == b'\r').count();
        let separators = read.iter().filter(|&&byte| byte == self.separator).count();
        self.bytes.set(self.bytes.get() + (read.len() - ends) as u64);
        self.cells.set(self.cells.get() + separators as u64);
        match () {
            () if self.bytes.get() > self.most_bytes.saturating_add(AHEAD) => Err(TooMuch::Bytes),
            () if self.cells.get() > self.most_cells.saturating_add(AHEAD) => Err(TooMuch::Cells),
            () => Ok(()),
        }
    }
}

/// A stream that is counted.
pub(super) struct Limited<R> {
    pub(super) inner: R,
    pub(super) limit: Rc<Limit>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // No more than is counted on.
        let most = out.len().min(AHEAD as usize);
        let number = self.inner.read(&mut out[..most])?;
        self.limit.count(&out[..number]).map_err(io::Error::other)?;
        Ok(number)
    }
}

/// Which limit an error is about, if it is about one.
pub(super) fn too_much(error: &io::Error) -> Option<TooMuch> {
    error.get_ref()?.downcast_ref().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: impl Read, most_bytes: usize, most_cells: usize) -> Option<TooMuch> {
        let limit = Limit::new(most_bytes, most_cells, b',');
        let error = io::copy(&mut Limited { inner: text, limit }, &mut io::sink()).err()?;
        too_much(&error)
    }

    #[test]
    fn a_record_without_an_end_is_given_up_and_blank_lines_are_not() {
        assert_eq!(read(io::repeat(b'1').take(1 << 20), 1 << 21, 10), None);
        assert_eq!(read(io::repeat(b'1').take(1 << 30), 1 << 21, 10), Some(TooMuch::Bytes));
        assert_eq!(read(io::repeat(b',').take(1 << 30), 1 << 29, 1 << 18), Some(TooMuch::Cells));
        assert_eq!(read(io::repeat(b'\n').take(1 << 24), 10, 10), None);
    }

    #[test]
    fn the_length_of_a_record_is_looked_at_exactly() {
        let limit = Limit::new(10, 3, b',');
        assert_eq!(limit.next(10, 3), Ok(()));
        assert_eq!(limit.next(11, 1), Err(TooMuch::Bytes));
        assert_eq!(limit.next(5, 4), Err(TooMuch::Cells));
    }
}
