//! BSDS300: grey patches of 8 by 8 pixels of natural images, each without its mean and its last pixel.

use std::path::{Path, PathBuf};

use hdf5_pure::{Dataset, File};

use super::{Benchmark, Parts, Steps, source_file, wrong};
use crate::data::error::{Error, Result};
use crate::data::read::{check_path, copy, is_read_once};
use crate::data::split::Split;
use crate::data::table::Table;

/// Rows that are read at once, about 4 MB.
const ROWS_AT_ONCE: u64 = 8192;

pub(super) fn prepare(source: &Path, steps: &Steps) -> Result<Parts> {
    let path = source_file(source, &["BSDS300.hdf5", "BSDS300.h5"], Benchmark::Bsds300)?;
    check_path(&path)?;
    let copied = is_read_once(&path).then(|| Copied::of(&path)).transpose()?;
    let broken = |error: hdf5_pure::Error| {
        wrong(&path, format!("it is no HDF5 file, or not whole ({error})"), Benchmark::Bsds300)
    };
    let opened = copied.as_ref().map_or(&path, |copied| &copied.0);
    let file = File::open_streaming(opened).map_err(broken)?;
    let [train, validation, test] = ["train", "validation", "test"].map(|name| {
        let dataset = file.dataset(name).map_err(|error| {
            let detail = format!("there is no dataset {name} in it ({error})");
            wrong(&path, detail, Benchmark::Bsds300)
        })?;
        let [rows, columns] = dataset.shape().map_err(broken)?[..] else {
            let detail = format!("the dataset {name} is not rows and columns");
            return Err(wrong(&path, detail, Benchmark::Bsds300));
        };
        Ok((dataset, rows, columns))
    });
    let (train, validation, test) = (train?, validation?, test?);
    let all = [&train, &validation, &test].map(|(_, rows, columns)| rows * columns * 8);
    steps.watch.begin(all.iter().sum());
    let part = |(dataset, rows, columns): (Dataset, u64, u64)| -> Result<Table> {
        let mut values = Vec::with_capacity((rows * columns) as usize);
        for first in (0..rows).step_by(ROWS_AT_ONCE as usize) {
            let number = ROWS_AT_ONCE.min(rows - first);
            let read = dataset.read_f64_rows(first, number).map_err(broken)?;
            let row = |index: usize| first + index as u64 / columns.max(1) + 1;
            if let Some(at) = read.iter().position(|value| !(*value as f32).is_finite()) {
                let detail = format!("row {} has a cell that is {}", row(at), read[at]);
                return Err(wrong(&path, detail, Benchmark::Bsds300));
            }
            values.extend(read.iter().map(|&value| value as f32));
            steps.advance(number * columns * 8)?;
        }
        if values.is_empty() {
            return Err(Error::NoRows { file: path.clone(), header_only: false });
        }
        let names = (0..columns).map(|pixel| format!("pixel_{pixel}")).collect();
        Ok(Table::new(names, values))
    };
    let split = Split { train: part(train)?, validation: part(validation)?, test: part(test)? };
    let widths = [&split.train, &split.validation, &split.test].map(Table::dimension);
    if widths.iter().any(|width| *width != widths[0]) {
        return Err(wrong(&path, "its three parts have not the same columns", Benchmark::Bsds300));
    }
    let done = vec!["read the archive's patches, which are split and cleaned".into()];
    Ok(Parts { split, steps: done })
}

/// What came through a pipe, in a file that is there as long as it is needed: HDF5 is read back and forth.
struct Copied(PathBuf);

impl Copied {
    fn of(path: &Path) -> Result<Self> {
        let name = format!("zhat.{}.hdf5", std::process::id());
        let copied = Self(std::env::temp_dir().join(name));
        copy(path, &copied.0).map_err(|source| Error::Unreadable { file: path.into(), source })?;
        Ok(copied)
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
