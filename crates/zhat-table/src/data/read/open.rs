//! A file opened for reading, decompressed on the way if its first bytes say so.

use std::cell::Cell;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::data::error::{Error, Result};
use crate::data::options::Format;

use super::spool::{Bytes, Reader, named};

/// How many decompressed bytes are looked at before reading: enough for the first lines of a wide table.
pub(super) const HEAD: u64 = 1 << 20;

/// No xz stream needs more to be unpacked (the strongest preset needs 65 MiB), unless it is made to do harm.
const XZ_MEMORY_KIB: u32 = 1 << 20;

/// The compressions that are undone, with the name, the ending and the first bytes of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Xz,
    Zstd,
    Bzip2,
}

const COMPRESSIONS: [(Compression, &str, &str, &[u8]); 4] = [
    (Compression::Gzip, "gzip", "gz", b"\x1f\x8b"),
    (Compression::Xz, "xz", "xz", b"\xfd7zXZ\0"),
    (Compression::Zstd, "zstd", "zst", b"\x28\xb5\x2f\xfd"),
    (Compression::Bzip2, "bzip2", "bz2", b"BZh"),
];

/// A file that is there, is not empty, and whose compression is known.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) compression: Compression,
    /// Bytes on disk; none where they come through a pipe, and nobody knows yet.
    pub(super) length: Option<u64>,
    /// The first bytes after decompression.
    pub(super) head: Vec<u8>,
    /// How many bytes on disk have been read by the last stream.
    read: Rc<Cell<u64>>,
    bytes: Bytes,
}

impl Opened {
    pub(super) fn new(path: &Path) -> Result<Self> {
        let unreadable = |source| Error::Unreadable { file: named(path), source };
        let bytes = Bytes::open(path).map_err(unreadable)?;
        let length = bytes.length().map_err(unreadable)?;
        let path = &*named(path);
        let mut magic = Vec::new();
        bytes.reader().take(8).read_to_end(&mut magic).map_err(unreadable)?;
        if magic.is_empty() {
            return Err(Error::Empty { file: path.into() });
        }
        let found = COMPRESSIONS.iter().find(|(.., first)| magic.starts_with(first));
        let compression = found.map_or(Compression::None, |row| row.0);
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
        if let Some(&(promised, expected, ..)) = COMPRESSIONS.iter().find(|row| row.2 == ending)
            && promised != compression
        {
            let found = first_bytes(&magic);
            return Err(Error::WrongMagic { file: path.into(), expected, found });
        }
        let mut opened = Self {
            path: path.into(),
            compression,
            length,
            head: Vec::new(),
            read: Rc::default(),
            bytes,
        };
        let mut head = Vec::new();
        opened
            .stream()?
            .take(HEAD)
            .read_to_end(&mut head)
            .map_err(|error| opened.damaged(0, error))?;
        if head.is_empty() {
            return Err(Error::Empty { file: path.into() });
        }
        opened.head = head;
        Ok(opened)
    }

    /// The decompressed bytes from the beginning; each call starts again.
    pub(super) fn stream(&self) -> Result<Box<dyn Read>> {
        let unreadable = |source| Error::Unreadable { file: self.path.clone(), source };
        self.read.set(0);
        let inner = self.bytes.reader();
        let file = BufReader::with_capacity(1 << 16, Counted { inner, read: self.read.clone() });
        Ok(match self.compression {
            Compression::None => Box::new(file),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Compression::Xz => {
                Box::new(lzma_rust2::XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB))
            }
            Compression::Zstd => {
                Box::new(zstd::stream::read::Decoder::with_buffer(file).map_err(unreadable)?)
            }
            Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
        })
    }

    /// The file itself, or a temporary one with all of its bytes, for whoever goes back and forth in it.
    pub(super) fn seekable(&self) -> Result<File> {
        let unreadable = |source| Error::Unreadable { file: self.path.clone(), source };
        self.bytes.whole().map_err(unreadable)
    }

    /// Rows in the whole file, guessed from how much of it the rows so far have taken, and 2% more.
    pub(super) fn guess_rows(&self, rows_so_far: usize) -> usize {
        let Some(length) = self.length else { return 0 };
        let share = self.read.get() as f64 / length.max(1) as f64;
        (rows_so_far as f64 / share.max(1e-6) * 1.02) as usize
    }

    /// How many bytes on disk have been read by the last stream.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read.get()
    }

    /// The error for a stream that breaks off or does not decompress.
    pub(super) fn damaged(&self, rows: usize, error: impl Display) -> Error {
        let row = COMPRESSIONS.iter().find(|row| row.0 == self.compression);
        let what = row.map_or("file's", |row| row.1);
        Error::Damaged { file: self.path.clone(), what, rows, detail: error.to_string() }
    }

    /// The format that the first bytes show; anything unknown is taken for text.
    pub(super) fn format(&self) -> Result<Format> {
        match self.head.as_slice() {
            [b'P', b'A', b'R', b'1', ..] => Ok(Format::Parquet),
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Ok(Format::Npy),
            [b'P', b'K', 3, 4, ..] => Err(Error::refused(
                &self.path,
                "this is a zip archive (or a spreadsheet or .npz, which are zip archives)",
                "Unpack it, or save the table as CSV, NPY or Parquet.",
            )),
            _ => Ok(Format::Csv),
        }
    }

    /// The error for a file whose first bytes are not those of its format.
    pub(super) fn wrong_magic(&self, expected: &'static str) -> Error {
        Error::WrongMagic { file: self.path.clone(), expected, found: first_bytes(&self.head) }
    }
}

/// The first bytes as a message shows them.
fn first_bytes(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(8)].escape_ascii())
}

/// A file that counts how much of it has been read.
struct Counted {
    inner: Reader,
    read: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let number = self.inner.read(buffer)?;
        self.read.set(self.read.get() + number as u64);
        Ok(number)
    }
}
