//! A table from a file: the format is told by the name or the first bytes, then the reader of that format.

mod limit;
mod lines;
mod npy;
mod npy_header;
mod open;
mod parquet;
mod sniff;
mod spaces;
mod spool;
mod text;

use std::io;
use std::path::Path;

use zhat::watch::Watch;

use super::carried::Carried;
use super::checks::Warning;
use super::error::{Error, Result};
use super::gather::{Flow, Gather, Target};
use super::nearest::nearest;
use super::options::{Format, ReadOptions, is_delimiter};
use super::table::Table;
use open::Opened;

pub(super) use lines::Lines;
pub(crate) use spool::{STANDARD_INPUT, copy, is_read_once, temporary_file};

/// A table as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The rows that were kept.
    pub table: Table,
    /// How many rows were left out for a missing cell.
    pub dropped_rows: usize,
    /// Smallest and largest number of every column, before it became a 32-bit float.
    pub ranges: Vec<(f64, f64)>,
    /// What its user should know of how it was read.
    pub notes: Vec<Warning>,
    /// The words of every column whose numbers are codes of some.
    pub words: Vec<Option<Vec<String>>>,
}

/// Reads a table from a CSV, NPY or Parquet file, compressed or not, holding only the table in memory.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Reading> {
    read_watched(path, options, &Watch::default())
}

/// The same, unless it is told to stop.
pub(super) fn read_watched(path: &Path, options: &ReadOptions, watch: &Watch) -> Result<Reading> {
    let mut gathered = gather(path, options, Target::Table(watch))?;
    let notes = std::mem::take(&mut gathered.notes);
    let words = gathered.take_words();
    let unknown = std::mem::take(&mut gathered.unknown);
    let (table, dropped_rows, ranges) = gathered.finish();
    if watch.is_stopped() {
        return Err(Error::Stopped);
    }
    check_rows(&spool::named(path), table.rows(), dropped_rows)?;
    let table = table.with_carried(Carried { unknown, ..Carried::default() });
    Ok(Reading { table, dropped_rows, ranges, notes, words })
}

/// Reads a file of any length batch by batch, in the memory of one batch, until `take` wants no more; gives the number
/// of rows that were read. (A compressed NPY file in column order is the exception: it is held whole.)
pub fn read_batches(
    path: &Path,
    options: &ReadOptions,
    rows: usize,
    mut take: impl FnMut(Table) -> Flow,
) -> Result<usize> {
    let target = Target::Batches(rows.max(1), &mut take);
    let (read, dropped) = gather(path, options, target)?.finish_batches();
    check_rows(&spool::named(path), read, dropped)?;
    Ok(read)
}

fn gather<'a>(path: &Path, options: &ReadOptions, target: Target<'a>) -> Result<Gather<'a>> {
    check_options(options)?;
    check_path(path)?;
    let opened = Opened::new(path)?;
    let format = match options.format.or_else(|| Format::of_name(path)) {
        Some(format) => format,
        None => opened.format()?,
    };
    match format {
        Format::Csv => text::read(opened, options, target),
        Format::Npy => npy::read(opened, options, target),
        Format::Parquet => parquet::read(opened, options, target),
    }
}

/// An error if nothing was read.
fn check_rows(path: &Path, read: usize, dropped: usize) -> Result<()> {
    match (read, dropped) {
        (0, 0) => Err(Error::NoRows { file: path.into(), header_only: false }),
        (0, rows) => Err(Error::EveryRowMissing { file: path.into(), rows }),
        _ => Ok(()),
    }
}

fn check_options(options: &ReadOptions) -> Result<()> {
    if let Some(letter) = options.delimiter.filter(|&letter| !is_delimiter(letter)) {
        let expected = super::options::DELIMITERS;
        return Err(Error::setting("delimiter", format!("{letter:?}"), expected));
    }
    if options.max_rows == Some(0) {
        return Err(Error::setting("max-rows", 0, "at least 1"));
    }
    Ok(())
}

/// A missing file is told apart from an unreadable one, with the nearest name in the same directory.
pub(super) fn check_path(path: &Path) -> Result<()> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(());
    }
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(Error::Directory { file: path.into() }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::NotFound { file: path.into(), nearest: sibling(path) })
        }
        Err(source) => Err(Error::Unreadable { file: path.into(), source }),
    }
}

fn sibling(path: &Path) -> Option<String> {
    let directory = match path.parent()? {
        parent if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    let names: Vec<String> = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    nearest(path.file_name()?.to_str()?, names.iter().map(String::as_str))
}
