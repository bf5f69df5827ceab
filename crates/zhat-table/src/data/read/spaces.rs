//! Text whose cells stand apart by any number of blanks, turned into one space between cells.

use std::io::{self, Read};

/// Squeezes runs of spaces and tabs outside quotes, and drops them at both ends of a line.
pub(super) struct Spaces<R> {
    inner: R,
    buffer: Vec<u8>,
    /// What is squeezed and not yet handed out, and how much of it is.
    squeezed: Vec<u8>,
    taken: usize,
    at_start: bool,
    pending: bool,
    quoted: bool,
}

impl<R: Read> Spaces<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: vec![0; 1 << 16],
            squeezed: Vec::new(),
            taken: 0,
            at_start: true,
            pending: false,
            quoted: false,
        }
    }

    fn squeeze(&mut self, number: usize) {
        self.squeezed.clear();
        self.taken = 0;
        for &byte in &self.buffer[..number] {
            match byte {
                b' ' | b'\t' if !self.quoted => self.pending = true,
                b'\n' | b'\r' if !self.quoted => {
                    self.squeezed.push(byte);
                    (self.pending, self.at_start) = (false, true);
                }
                _ => {
                    if self.pending && !self.at_start {
                        self.squeezed.push(b' ');
                    }
                    self.squeezed.push(byte);
                    self.quoted ^= byte == b'"';
                    (self.pending, self.at_start) = (false, false);
                }
            }
        }
    }
}

impl<R: Read> Read for Spaces<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.squeezed.len() {
            let number = self.inner.read(&mut self.buffer)?;
            if number == 0 {
                return Ok(0);
            }
            self.squeeze(number);
        }
        let number = out.len().min(self.squeezed.len() - self.taken);
        out[..number].copy_from_slice(&self.squeezed[self.taken..][..number]);
        self.taken += number;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_squeezed_and_lines_and_quotes_kept() {
        let mut text = String::new();
        let given = "  a \t b  \n\n\"c  d\"   2 \r\n 1";
        Spaces::new(given.as_bytes()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "a b\n\n\"c  d\" 2\r\n1");
    }
}
