//! One cell of text: a number, a missing value, or neither.

/// What a cell of text says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    /// A number; infinite if the text says so or is beyond the range of f64.
    Number(f64),
    /// One of the spellings of "missing".
    Missing,
    /// Readable, and not a number.
    Text,
    /// Not even UTF-8.
    InvalidUtf8,
}

/// The spellings of a missing cell, in lower case; an empty cell is missing too.
const MISSING: [&str; 7] = ["?", "na", "n/a", "nan", "null", "none", "#n/a"];

impl Cell {
    /// Reads a cell; blanks around it do not count.
    pub(crate) fn parse(bytes: &[u8]) -> Cell {
        let bytes = bytes.trim_ascii();
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Cell::InvalidUtf8;
        };
        match text.parse::<f64>() {
            Ok(number) if number.is_nan() => Cell::Missing,
            Ok(number) => Cell::Number(number),
            Err(_) if text.is_empty() || MISSING.iter().any(|m| text.eq_ignore_ascii_case(m)) => {
                Cell::Missing
            }
            Err(_) => Cell::Text,
        }
    }

    /// Whether the cell can stand in a numeric column.
    pub(crate) fn is_numeric(self) -> bool {
        matches!(self, Cell::Number(_) | Cell::Missing)
    }
}

/// The cell with a point in the place of its comma, if that makes it a number.
pub(crate) fn with_point(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.contains(&b',') {
        return None;
    }
    let pointed: Vec<u8> = bytes.iter().map(|&b| if b == b',' { b'.' } else { b }).collect();
    matches!(Cell::parse(&pointed), Cell::Number(_)).then_some(pointed)
}

/// Whether a cell is a number with a point.
pub(crate) fn is_pointed(bytes: &[u8]) -> bool {
    bytes.contains(&b'.') && matches!(Cell::parse(bytes), Cell::Number(_))
}

/// Whether the comma of such a cell can be no other: thousands are three digits behind one to three.
pub(crate) fn is_surely_decimal(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii();
    let comma = text.iter().position(|&b| b == b',').filter(|_| with_point(text).is_some());
    comma.is_some_and(|at| {
        let before = text[..at].strip_prefix(b"-").unwrap_or(&text[..at]);
        let is_thousands = text.len() - at == 4 && text[at + 1..].iter().all(u8::is_ascii_digit);
        !is_thousands || !(1..=3).contains(&before.len()) || before[0] == b'0'
    })
}

/// A cell as an error message shows it: quoted, and cut if long.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(bytes.trim_ascii());
    if text.is_empty() {
        return "empty".into();
    }
    if text.chars().count() > LONGEST {
        return format!("{:?}...", text.chars().take(LONGEST).collect::<String>());
    }
    format!("{text:?}")
}

/// The text of a cell, which is known to be UTF-8.
pub(crate) fn trimmed(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes.trim_ascii()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_missing_is_missing() {
        for text in ["", "  ", "NA", "na", "NaN", "nan", "null", "NULL", "?", "N/A", "None", "-nan"]
        {
            assert_eq!(Cell::parse(text.as_bytes()), Cell::Missing, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_numbers_with_blanks_signs_and_exponents() {
        for (text, value) in
            [(" 1.5 ", 1.5), ("+2", 2.0), ("-.5", -0.5), ("3.", 3.0), ("1e-3", 1e-3)]
        {
            assert_eq!(Cell::parse(text.as_bytes()), Cell::Number(value), "{text:?}");
        }
        assert_eq!(Cell::parse(b"-inf"), Cell::Number(f64::NEG_INFINITY));
        assert_eq!(Cell::parse(b"1e999"), Cell::Number(f64::INFINITY));
        assert_eq!(Cell::parse(b"17:24:00"), Cell::Text);
        assert_eq!(Cell::parse(b"\xff1"), Cell::InvalidUtf8);
    }

    #[test]
    fn a_decimal_comma_is_one_where_it_cannot_be_of_thousands() {
        for cell in ["1,5", "-2,25", "0,125", "1234,567", " ,5 ", "1,2345", "1,5e3"] {
            assert!(is_surely_decimal(cell.as_bytes()), "{cell}");
        }
        for cell in ["1,234", "-123,456", "1.5", "15", "1,2,3", "Oslo, 5", "", ","] {
            assert!(!is_surely_decimal(cell.as_bytes()), "{cell}");
        }
        assert_eq!(with_point(b"1,5"), Some(b"1.5".to_vec()));
    }
}
