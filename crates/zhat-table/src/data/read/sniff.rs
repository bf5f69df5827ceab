//! What the first lines of a text file tell: its separator, and whether it has a header.

use std::io::{Cursor, Read};
use std::rc::Rc;

use crate::data::cell::{Cell, is_pointed, is_surely_decimal, with_point};
use crate::data::options::Header;

use super::limit::{Limit, Limited};
use super::spaces::Spaces;

/// How many records are looked at.
const RECORDS: usize = 50;

/// The separators that are tried, in the order in which they win a tie.
const CANDIDATES: [char; 5] = [',', ';', '\t', '|', ' '];

/// Why a file cannot be text, if it cannot.
pub(super) fn not_text(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("it begins like UTF-16"),
        _ if head.contains(&0) => Some("it holds zero bytes, as binary files do"),
        _ => None,
    }
}

/// The same with a limit to the length of a record.
pub(super) fn limited(
    stream: Box<dyn Read>,
    delimiter: char,
    limit: &Rc<Limit>,
) -> csv::Reader<Box<dyn Read>> {
    reader(Box::new(Limited { inner: stream, limit: Rc::clone(limit) }), delimiter)
}

/// The CSV reader over a stream with a given separator; a space means any run of blanks.
pub(super) fn reader(stream: Box<dyn Read>, delimiter: char) -> csv::Reader<Box<dyn Read>> {
    let (stream, byte): (Box<dyn Read>, u8) = match delimiter {
        ' ' => (Box::new(Spaces::new(stream)), b' '),
        // The options have been checked: a delimiter is ASCII.
        other => (stream, other as u8),
    };
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(byte)
        .buffer_capacity(1 << 16)
        .from_reader(stream)
}

/// The first records of a file under a given separator.
pub(super) fn first_records(head: &[u8], delimiter: char) -> Vec<csv::ByteRecord> {
    // The last line of the head may be cut off; a single line is kept as it is.
    let end = head.iter().rposition(|&byte| byte == b'\n').map_or(head.len(), |last| last + 1);
    let stream = Box::new(Cursor::new(head[..end].to_vec()));
    reader(stream, delimiter)
        .into_byte_records()
        .take(RECORDS)
        .map_while(Result::ok)
        .filter(|record| !is_blank(record))
        .collect()
}

/// Whether a line holds nothing at all.
pub(super) fn is_blank(record: &csv::ByteRecord) -> bool {
    record.len() <= 1 && record.iter().all(|cell| cell.trim_ascii().is_empty())
}

/// The separator that cuts the first records evenly and into numbers; of equals, the one with the most cells.
pub(super) fn delimiter(head: &[u8]) -> char {
    let score = |&candidate: &char| {
        let records = first_records(head, candidate);
        let width = records.first().map_or(0, |record| record.len());
        if width < 2 {
            return (0, 0, 0);
        }
        let even = records.iter().filter(|record| record.len() == width).count();
        let numeric = records
            .iter()
            .flat_map(|record| record.iter())
            .filter(|cell| {
                matches!(Cell::parse(cell), Cell::Number(_))
                    || (candidate != ',' && with_point(cell).is_some())
            })
            .count();
        let cells: usize = records.iter().map(|record| record.len()).sum();
        (100 * even / records.len(), 100 * numeric / cells, width)
    };
    let scores = CANDIDATES.map(|candidate| (score(&candidate), candidate));
    // The last of equal maxima would win, so the order is turned round.
    scores.into_iter().rev().max_by_key(|&(score, _)| score).map_or(',', |(_, candidate)| candidate)
}

/// Whether numbers are written with a decimal comma: in some cell it can be nothing else, and no number has a point.
pub(super) fn has_decimal_commas(records: &[csv::ByteRecord], delimiter: char) -> bool {
    let cells = || records.iter().flat_map(|record| record.iter());
    delimiter != ',' && cells().any(is_surely_decimal) && !cells().any(is_pointed)
}

/// Records with points in the place of decimal commas.
pub(super) fn with_points(records: &[csv::ByteRecord]) -> Vec<csv::ByteRecord> {
    let cell = |cell: &[u8]| with_point(cell).unwrap_or_else(|| cell.to_vec());
    records.iter().map(|record| record.iter().map(cell).collect()).collect()
}

/// Whether the first record is a header, or why that cannot be told.
pub(super) fn has_header(records: &[csv::ByteRecord], header: Header) -> Result<bool, String> {
    match (header, records.first()) {
        (Header::Yes, _) => Ok(true),
        (Header::No, _) | (_, None) => Ok(false),
        (Header::Detect, Some(first)) => detect(first, records.get(1)),
    }
}

/// A first line of different whole numbers, above columns that hardly have any: names, perhaps, such as years.
pub(super) fn may_be_names(records: &[csv::ByteRecord]) -> bool {
    let is_whole = |cell: &[u8]| {
        let cell = cell.trim_ascii();
        !cell.is_empty() && cell.iter().all(u8::is_ascii_digit)
    };
    let Some((first, rows)) = records.split_first() else { return false };
    if first.len() < 2 || rows.len() < 5 || !first.iter().all(is_whole) {
        return false;
    }
    let different =
        (1..first.len()).all(|at| !first.iter().take(at).any(|cell| *cell == first[at]));
    let unlike = |column: usize| {
        rows.iter().filter(|row| row.get(column).is_some_and(is_whole)).count() * 10 <= rows.len()
    };
    different && (0..first.len()).filter(|&column| unlike(column)).count() * 2 >= first.len()
}

/// Bytes and lines of the comments that a file begins with.
pub(super) fn comments(head: &[u8]) -> (usize, u64) {
    let (mut bytes, mut lines) = (0, 0);
    for line in head.split_inclusive(|&byte| byte == b'\n') {
        if !line.starts_with(b"#") || !line.ends_with(b"\n") {
            break;
        }
        (bytes, lines) = (bytes + line.len(), lines + 1);
    }
    (bytes, lines)
}

/// The names that the last comment gives to columns of numbers, if it has one for each.
pub(super) fn names_in_comment(
    comments: &[u8],
    delimiter: char,
    first: &csv::ByteRecord,
) -> Option<csv::ByteRecord> {
    let last = comments.trim_ascii_end().split(|&byte| byte == b'\n').next_back()?;
    let text = last.trim_ascii_start().strip_prefix(b"#")?.trim_ascii();
    let names = first_records(text, delimiter).into_iter().next()?;
    let is_number = |cell: &[u8]| matches!(Cell::parse(cell), Cell::Number(_));
    let fits = names.len() == first.len()
        && first.len() > 1
        && first.iter().all(|cell| Cell::parse(cell).is_numeric())
        && !names.iter().any(is_number);
    fits.then_some(names)
}

fn detect(first: &csv::ByteRecord, second: Option<&csv::ByteRecord>) -> Result<bool, String> {
    let is_text = |cell: &[u8]| !Cell::parse(cell).is_numeric();
    let is_number = |cell: &[u8]| matches!(Cell::parse(cell), Cell::Number(_));
    let counts_up = |start: usize| {
        first.len() >= 3
            && first.iter().enumerate().all(|(i, cell)| cell == (start + i).to_string().as_bytes())
    };
    if counts_up(0) || counts_up(1) {
        let last = String::from_utf8_lossy(&first[first.len() - 1]).into_owned();
        let start = String::from_utf8_lossy(&first[0]).into_owned();
        return Err(format!("{start} to {last} may be the names of the columns or the first row"));
    }
    if !first.iter().any(is_number) {
        // Words only; blanks and NA alone are a row of missing cells.
        return Ok(first.iter().any(is_text));
    }
    let pairs = second.into_iter().flat_map(|second| first.iter().zip(second));
    let mut words_over_numbers = pairs.filter(|(above, below)| is_text(above) && is_number(below));
    match words_over_numbers.next() {
        Some((word, _)) => Err(format!(
            "{} stands above a number, but other cells of the line are numbers",
            crate::data::cell::shown(word)
        )),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sniffed(text: &str) -> (char, Result<bool, String>) {
        let separator = delimiter(text.as_bytes());
        (separator, has_header(&first_records(text.as_bytes(), separator), Header::Detect))
    }

    #[test]
    fn every_separator_is_detected() {
        for separator in [',', ';', '\t', '|', ' '] {
            let text = format!("a{separator}b\n1.5{separator}2\n3{separator}-4e5\n");
            assert_eq!(sniffed(&text), (separator, Ok(true)));
            let text = format!("1.5{separator}2\n3{separator}-4e5\n");
            assert_eq!(sniffed(&text), (separator, Ok(false)));
        }
        assert_eq!(sniffed("  1   2\n 10  20\n").0, ' ');
        assert_eq!(sniffed("1,5;2,5\n3,5;4,5\n").0, ';');
        assert_eq!(sniffed("\"a,b\";c\n1;2\n").0, ';');
        assert_eq!(sniffed("x\n1\n2\n"), (',', Ok(true)));
    }

    #[test]
    fn decimal_commas_are_those_of_the_whole_file() {
        let has = |text: &str| {
            let separator = delimiter(text.as_bytes());
            has_decimal_commas(&first_records(text.as_bytes(), separator), separator)
        };
        assert!(has("a;b\n1,5;2\n3,25;4\n"));
        assert!(has("1,5\t2\n3,25\t4\n"));
        assert!(!has("a;b\n1,500;2\n3,250;4\n"), "thousands, perhaps");
        assert!(!has("a;b\n1,5;2.5\n3,25;4.5\n"), "both");
        assert!(!has("a,b\n1,5\n"));
    }

    #[test]
    fn a_header_is_told_from_rows_with_words_and_doubt_is_not_hidden() {
        assert_eq!(sniffed("16/12/2006;17:24;4.2\n16/12/2006;17:25;5.3\n").1, Ok(false));
        assert_eq!(sniffed("Date;Time;Power\n16/12/2006;17:25;?\n").1, Ok(true));
        assert_eq!(sniffed("NA,NA\n1,2\n").1, Ok(false));
        assert!(sniffed("x1,2\n1,2\n").1.is_err());
        assert!(sniffed("0,1,2\n0.3,0.5,0.1\n").1.is_err());
    }

    #[test]
    fn a_first_line_of_years_may_be_names_and_one_like_the_others_is_not() {
        let may = |first: &str, below: &str| {
            let text = format!("{first}\n{}", format!("{below}\n").repeat(6));
            may_be_names(&first_records(text.as_bytes(), ','))
        };
        assert!(may("1990,1991", "0.5,0.25"));
        assert!(may("1990,1991,7", "0.5,2,0.25"));
        assert!(!may("1990,1991", "3,4"));
        assert!(!may("1990,1990", "0.5,0.25"));
        assert!(!may("1990.5,1991", "0.5,0.25"));
    }

    #[test]
    fn comments_at_the_beginning_are_counted_and_may_hold_the_names() {
        let text = b"# made by hand\n# a, b\n1,2\n# no more\n3,4\n";
        let (bytes, lines) = comments(text);
        assert_eq!((&text[bytes..bytes + 3], lines), (&b"1,2"[..], 2));
        let first = &first_records(&text[bytes..], ',')[0];
        let names = names_in_comment(&text[..bytes], ',', first).unwrap();
        assert_eq!(names.iter().collect::<Vec<_>>(), [&b"a"[..], b" b"]);
        assert_eq!(names_in_comment(b"# made by hand\n", ',', first), None);
        assert_eq!(comments(b"1,2\n"), (0, 0));
    }
}
