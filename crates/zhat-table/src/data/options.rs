//! How a file is to be read: format, columns, separator, header, missing cells, number of rows.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
use super::kinds::ColumnKind;

/// How to read a table; the default works out everything from the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReadOptions {
    /// The format, where the file's name does not say it.
    pub format: Option<Format>,
    /// The columns to keep, in this order; empty means all. Each entry is a name, a position that counts
    /// from 1 (`3`), or a range of positions with both ends in it (`3-9`). A name wins over a position.
    pub columns: Vec<String>,
    /// The columns to leave out of those, written in the same way.
    pub without: Vec<String>,
    /// What separates the cells of a text file; a space stands for any run of blanks. Detected if not given.
    pub delimiter: Option<char>,
    /// Whether the first line of a text file holds the names of the columns.
    pub header: Header,
    /// What to do with a row that has a missing cell in the chosen columns.
    pub missing: Missing,
    /// Read no more than this many rows; for a built-in set, the number of rows to draw.
    pub max_rows: Option<usize>,
    /// Lines of a text file may be as long as this, in bytes; a longer one is refused before memory is full. 16 MiB if not given.
    pub max_line_bytes: Option<usize>,
    /// A file may have as many columns as this; 65,536 if not given.
    pub max_columns: Option<usize>,
    /// Columns of a text file to carry along as they are, written like `columns`; `all` for those that are not chosen, and `none`.
    #[serde(skip)]
    pub carry: Vec<String>,
    /// Where nothing is said of that, carries along the identifiers of a fitted model that a text file has.
    #[serde(skip)]
    pub carry_identifiers: bool,
    /// Names that the chosen columns get, in their order: those of a fitted model. Where no columns are chosen they are
    /// found by these names, or by position in a file that has no names.
    #[serde(skip)]
    pub model_columns: Vec<String>,
    /// What the columns of a fitted model are, those that are carried along included: cells are read as they say.
    #[serde(skip)]
    pub model_kinds: Vec<ColumnKind>,
    /// Columns whose cells are words whatever they look like. With a list, be it empty, other columns of a text file may hold words too;
    /// without one that is an error.
    #[serde(skip)]
    pub words: Option<Vec<String>>,
    /// Carries along every column of a text file, the chosen ones included.
    #[serde(skip)]
    pub carry_every: bool,
    /// Takes those of the model's columns that a file has, where it need not have all of them.
    #[serde(skip)]
    pub partial: bool,
}

impl ReadOptions {
    /// The longest line that is read.
    pub(crate) fn most_bytes(&self) -> usize {
        self.max_line_bytes.unwrap_or(1 << 24)
    }

    /// The most columns that are read.
    pub(crate) fn most_columns(&self) -> usize {
        self.max_columns.unwrap_or(1 << 16)
    }

    /// An error for a file whose columns cannot be carried along, where they are to be.
    pub(crate) fn check_carry(&self, file: &Path) -> Result<()> {
        if self.carry.is_empty() {
            return Ok(());
        }
        let detail = "columns are carried along from text files only";
        Err(Error::refused(file, detail, "Save the table as CSV, or do without `carry`."))
    }

    /// An error for a file that has more columns than that.
    pub(crate) fn check_columns(&self, file: &Path, columns: usize) -> Result<()> {
        let most = self.most_columns();
        match columns > most {
            true => Err(Error::TooManyColumns { file: file.into(), columns, most }),
            false => Ok(()),
        }
    }
}

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text with separated cells.
    Csv,
    /// An array of NumPy.
    Npy,
    /// Apache Parquet.
    Parquet,
}

zhat::named!(Format, "format", { Csv: "csv", Npy: "npy", Parquet: "parquet" });

impl Format {
    /// The format a file's name promises, if it promises any; the ending of a compression is set aside.
    pub fn of_name(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = [".gz", ".xz", ".zst", ".bz2"]
            .iter()
            .find_map(|ending| name.strip_suffix(ending))
            .unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "csv" | "tsv" | "tab" | "txt" | "dat" | "data" => Some(Format::Csv),
            "npy" => Some(Format::Npy),
            "parquet" | "pq" => Some(Format::Parquet),
            _ => None,
        }
    }
}

/// Whether the first line is a header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Header {
    /// A first line of words is a header; one of words and numbers over numbers is an error, never a guess.
    #[default]
    Detect,
    /// The first line holds the names.
    Yes,
    /// The first line is data; the columns are named `column_1`, `column_2`, ...
    No,
}

zhat::named!(Header, "header", { Detect: "detect", Yes: "yes", No: "no" });

/// What to do with a row that has a missing cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// It is an error.
    #[default]
    Refuse,
    /// The row is left out and counted.
    Drop,
    /// The cell is kept as NaN, for imputation.
    Keep,
}

/// A delimiter as typed on a command line: one character, or `tab`, `space`, `comma`, `semicolon`, `pipe`.
pub fn parse_delimiter(text: &str) -> Result<char> {
    let named = match text {
        "tab" | "\\t" => Some('\t'),
        "space" => Some(' '),
        "comma" => Some(','),
        "semicolon" => Some(';'),
        "pipe" => Some('|'),
        _ => None,
    };
    let mut letters = text.chars();
    match named.or(letters.next().filter(|_| letters.next().is_none())) {
        Some(letter) if is_delimiter(letter) => Ok(letter),
        _ => Err(Error::setting("delimiter", format!("{text:?}"), DELIMITERS)),
    }
}

/// What a delimiter may be, for messages.
pub(crate) const DELIMITERS: &str =
    "one ASCII character that is not a letter, a digit, a quote or one of . + - (or tab, space)";

/// Whether a character can separate cells without being part of a number, a name or a quote.
pub(crate) fn is_delimiter(letter: char) -> bool {
    let sign = matches!(letter, '"' | '.' | '+' | '-' | '\n' | '\r');
    letter.is_ascii() && !letter.is_ascii_alphanumeric() && !sign && letter != '\0'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_read_from_the_name_below_the_compression() {
        let of = |name: &str| Format::of_name(Path::new(name));
        assert_eq!(of("a/b.csv.gz"), Some(Format::Csv));
        assert_eq!(of("B.TXT.xz"), Some(Format::Csv));
        assert_eq!(of("x.npy"), Some(Format::Npy));
        assert_eq!(of("x.pq"), Some(Format::Parquet));
        assert_eq!(of("x.xlsx"), None);
    }

    #[test]
    fn a_delimiter_is_one_sign_or_its_name() {
        assert_eq!(parse_delimiter("tab").unwrap(), '\t');
        assert_eq!(parse_delimiter("|").unwrap(), '|');
        for bad in ["", "ab", "1", ".", "\"", "é"] {
            assert!(parse_delimiter(bad).is_err(), "{bad:?}");
        }
    }
}
