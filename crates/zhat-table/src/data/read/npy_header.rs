//! The header of a NumPy file: the type of the numbers, their order and the shape.

use serde::Deserialize;

/// The first bytes of every NPY file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// What the header says.
#[derive(Debug, Clone)]
pub(super) struct NpyHeader {
    pub(super) number: Number,
    /// Whether the numbers of a column, rather than of a row, stand together.
    pub(super) column_order: bool,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Where the numbers begin.
    pub(super) offset: u64,
}

/// How a number is stored: in how many bytes, and what turns them into a float.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    pub(super) bytes: usize,
    pub(super) decode: fn(&[u8]) -> f64,
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
    /// Reads a type's name: byte order, kind (float, signed, unsigned, bool) and bytes.
    fn parse(name: &str) -> Result<Self, String> {
        macro_rules! number {
            ($type:ty) => {{
                let decode: fn(&[u8]) -> f64 = match name.starts_with('>') {
                    true => |bytes| <$type>::from_be_bytes(first(bytes)) as f64,
                    false => |bytes| <$type>::from_le_bytes(first(bytes)) as f64,
                };
                Ok(Number { bytes: size_of::<$type>(), decode })
            }};
        }
        match name.get(1..) {
            Some("f4") => number!(f32),
            Some("f8") => number!(f64),
            Some("i1") => number!(i8),
            Some("i2") => number!(i16),
            Some("i4") => number!(i32),
            Some("i8") => number!(i64),
            Some("u1" | "b1") => number!(u8),
            Some("u2") => number!(u16),
            Some("u4") => number!(u32),
            Some("u8") => number!(u64),
            _ => Err(format!("the array holds numbers of type {name:?}")),
        }
    }
}

fn first<const BYTES: usize>(bytes: &[u8]) -> [u8; BYTES] {
    *bytes.first_chunk().expect("a whole number")
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
        assert_eq!(read.number.bytes, 8);
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
        let decoded = |name, bytes: &[u8]| {
            let number = Number::parse(name).unwrap();
            assert_eq!(number.bytes, bytes.len(), "{name}");
            (number.decode)(bytes)
        };
        assert_eq!(decoded("<f4", &1.5f32.to_le_bytes()), 1.5);
        assert_eq!(decoded(">f8", &(-0.1f64).to_be_bytes()), -0.1);
        assert_eq!(decoded(">i2", &(-300i16).to_be_bytes()), -300.0);
        assert_eq!(decoded("|i1", &[0xff]), -1.0);
        assert_eq!(decoded("|u1", &[0xff]), 255.0);
        assert_eq!(decoded("|b1", &[1]), 1.0);
        assert_eq!(decoded("<i8", &i64::MIN.to_le_bytes()), i64::MIN as f64);
    }
}
