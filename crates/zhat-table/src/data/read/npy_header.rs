//! The header of a NumPy file: the type of the numbers, their order and the shape.

use serde::Deserialize;

/// The first bytes of every NPY file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// What the header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NpyHeader {
    /// Number type.
    pub(super) number: Number,
    /// Whether the numbers of a column, rather than of a row, stand together.
    pub(super) column_order: bool,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Where the numbers begin.
    pub(super) offset: u64,
}

/// The type of a number: kind (float, signed, unsigned, bool), bytes, byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    kind: u8,
    pub(super) bytes: usize,
    big_endian: bool,
}

/// The dictionary in the header's text.
#[derive(Deserialize)]
struct Dictionary {
    descr: serde_json::Value,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl NpyHeader {
    /// Reads the header from the first bytes of a file; an error says what is wrong with it.
    pub(super) fn read(head: &[u8]) -> Result<Self, String> {
        let bytes = |from: usize, number: usize| {
            head.get(from..from + number).ok_or("the file ends inside the NPY header")
        };
        let little = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &b| sum << 8 | usize::from(b));
        let (start, length) = match bytes(6, 2)?[0] {
            1 => (10, little(bytes(8, 2)?)),
            2 | 3 => (12, little(bytes(8, 4)?)),
            other => return Err(format!("NPY version {other} is unknown")),
        };
        let Dictionary { descr, fortran_order, shape } = Dictionary::parse(bytes(start, length)?)?;
        let (rows, columns) = match shape[..] {
            [rows] => (rows, 1),
            [rows, columns] if columns > 0 => (rows, columns),
            _ => {
                let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
                return Err(format!(
                    "the array has shape ({}), not (rows, columns)",
                    sizes.join(", ")
                ));
            }
        };
        let number = descr.as_str().ok_or("the array has named fields (a structured type)")?;
        Ok(Self {
            number: Number::parse(number)?,
            column_order: fortran_order,
            rows,
            columns,
            offset: (start + length) as u64,
        })
    }
}

impl Dictionary {
    /// What Python writes is JSON but for quotes, brackets, capital letters and commas behind the last entry.
    fn parse(text: &[u8]) -> Result<Self, String> {
        let text: String = String::from_utf8_lossy(text).split_whitespace().collect();
        let json = [
            ("'", "\""),
            ("(", "["),
            (")", "]"),
            ("True", "true"),
            ("False", "false"),
            (",]", "]"),
            (",}", "}"),
        ]
        .iter()
        .fold(text, |text, (python, json)| text.replace(python, json));
        serde_json::from_str(&json).map_err(|error| format!("the NPY header is damaged ({error})"))
    }
}

impl Number {
    fn parse(name: &str) -> Result<Self, String> {
        let unknown = || format!("the array holds numbers of type {name:?}");
        let [order, kind, size @ ..] = name.as_bytes() else { return Err(unknown()) };
        let bytes = std::str::from_utf8(size).ok().and_then(|size| size.parse().ok());
        let number = Number { kind: *kind, bytes: bytes.unwrap_or(0), big_endian: *order == b'>' };
        match (number.kind, number.bytes) {
            (b'f', 4 | 8) | (b'i' | b'u', 1 | 2 | 4 | 8) | (b'b', 1) => Ok(number),
            _ => Err(unknown()),
        }
    }

    /// The value of one number.
    pub(super) fn decode(self, bytes: &[u8]) -> f64 {
        let mut little = [0; 8];
        let little = &mut little[..self.bytes];
        little.copy_from_slice(&bytes[..self.bytes]);
        if self.big_endian {
            little.reverse();
        }
        let unsigned = little.iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
        match self.kind {
            b'f' if self.bytes == 4 => f64::from(f32::from_bits(unsigned as u32)),
            b'f' => f64::from_bits(unsigned),
            b'i' => {
                // Shift the sign bit to the top and back.
                let unused = 64 - 8 * self.bytes as u32;
                ((unsigned << unused) as i64 >> unused) as f64
            }
            _ => unsigned as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Result<NpyHeader, String> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        NpyHeader::read(&bytes)
    }

    #[test]
    fn the_header_that_numpy_writes_is_read() {
        let read =
            header("{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }  \n").unwrap();
        assert_eq!((read.rows, read.columns, read.column_order), (3, 2, true));
        assert_eq!(read.number, Number { kind: b'f', bytes: 8, big_endian: false });
        assert_eq!(read.offset, 10 + 61);
        let vector = header("{'descr': '|i1', 'fortran_order': False, 'shape': (7,), }").unwrap();
        assert_eq!((vector.rows, vector.columns), (7, 1));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for bad in [
            "{'descr': '<c8', 'fortran_order': False, 'shape': (3, 2), }",
            "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 2), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
            "{'descr': '<f4', 'shape': (3, 2), }",
            "",
        ] {
            assert!(header(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_of_every_kind_are_decoded() {
        let number = |kind, bytes, big_endian| Number { kind, bytes, big_endian };
        assert_eq!(number(b'f', 4, false).decode(&1.5f32.to_le_bytes()), 1.5);
        assert_eq!(number(b'f', 8, true).decode(&(-0.1f64).to_be_bytes()), -0.1);
        assert_eq!(number(b'i', 2, true).decode(&(-300i16).to_be_bytes()), -300.0);
        assert_eq!(number(b'i', 1, false).decode(&[0xff]), -1.0);
        assert_eq!(number(b'u', 1, false).decode(&[0xff]), 255.0);
        assert_eq!(number(b'i', 8, false).decode(&i64::MIN.to_le_bytes()), i64::MIN as f64);
    }
}
