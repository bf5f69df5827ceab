//! From a table of any length to a prepared one, in two passes and little memory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use zhat::rng::{Stream, Streams};
use zhat::watch::Watch;
use zhat_report::export::replace_file;

use super::{FORMAT, META, PARTS, StoredMeta};
use crate::data::benchmark::{check_free, temporary};
use crate::data::error::{Error, Result};
use crate::data::gather::Flow;
use crate::data::kinds::SaidKind;
use crate::data::options::{Missing, ReadOptions};
use crate::data::read::read_batches;
use crate::data::source::{Asked, Source};
use crate::data::split::SplitOptions;
use crate::data::standardise::Shape;

/// First rows that say what the columns are.
const FIRST: usize = 200_000;
/// Rows that are read at a time.
const BATCH: usize = 1 << 14;
/// Rows for validation, and as many for the test, at most: more say no more, and take long to be scored.
const MOST_KEPT: usize = 100_000;
/// Bytes of both, at most.
const MOST_KEPT_BYTES: usize = 1 << 27;

/// How a table is prepared.
#[derive(Debug, Clone, Default)]
pub struct StoreOptions {
    /// How the file is read.
    pub read: ReadOptions,
    /// What columns are, where that is not to be found out.
    pub kinds: BTreeMap<String, SaidKind>,
    /// Shares of the rows for validation and test, of which neither gets more than 100,000.
    pub split: SplitOptions,
    /// Which rows are for validation and test.
    pub seed: u64,
}

/// Prepares a file of any length for training, in a new directory; nothing is left behind if it fails.
///
/// What the columns are is found out from the first 200,000 rows. Then all rows are gone through once. Those for validation and test are drawn at random
/// (a reservoir), the others are written as they come. The watch counts rows.
pub fn store(
    source: &Path,
    out: &Path,
    options: &StoreOptions,
    watch: &Watch,
) -> Result<StoredMeta> {
    check_free(out)?;
    let streams = Streams::new(options.seed);
    let first = options.read.max_rows.map_or(FIRST, |rows| rows.min(FIRST));
    let read = ReadOptions { max_rows: Some(first), ..options.read.clone() };
    let asked = Asked { kinds: Some(options.kinds.clone()), ..Asked::default() };
    let rng = &mut streams.stream("data", 0, 0);
    let mut loaded = Source::File(source.into()).load_watched(&read, &asked, rng, watch)?;
    let rows: Vec<usize> = (0..loaded.table.rows()).collect();
    loaded.settle_levels(&rows);
    let mut notes: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    if rows.len() == first {
        notes.push(format!("What the columns are was found out from the first {first} rows."));
    }
    let columns = loaded.table.columns().to_vec();
    let read = ReadOptions {
        model_columns: columns.clone(),
        model_kinds: loaded.kinds.clone(),
        missing: if read.missing == Missing::Drop { Missing::Drop } else { Missing::Keep },
        ..options.read.clone()
    };
    let unwritable = |source| Error::Unwritable { file: out.into(), source };
    let temporary = temporary(out).map_err(unwritable)?;
    fs::create_dir_all(&temporary).map_err(unwritable)?;
    let mut meta = StoredMeta {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        source: source.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        seed: options.seed,
        columns,
        kinds: loaded.kinds,
        rows: [0; 3],
        hash: String::new(),
        notes,
    };
    let written = write(source, &temporary, &read, &options.split, &streams, watch, &mut meta);
    let written = written.and_then(|()| {
        check_free(out)?;
        fs::rename(&temporary, out).map_err(unwritable)
    });
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&temporary);
    }
    written.map(|()| meta)
}

fn write(
    source: &Path,
    directory: &Path,
    read: &ReadOptions,
    split: &SplitOptions,
    streams: &Streams,
    watch: &Watch,
    meta: &mut StoredMeta,
) -> Result<()> {
    let columns = meta.columns.len();
    let most = MOST_KEPT.min((MOST_KEPT_BYTES / (8 * columns)).max(1));
    let mut train = Part::create(&directory.join(PARTS[0]))?;
    let mut kept = Reservoir::new(2 * most, columns, streams.stream("reservoir", 0, 0));
    let modelled = meta.kinds.iter().filter(|kind| kind.is_modelled());
    let shapes: Vec<Shape> = modelled.map(|kind| kind.kind.shape()).collect();
    let (mut failed, mut moved) = (None, 0);
    let all = read_batches(source, read, BATCH, |mut table| {
        moved += settle(table.values_mut(), &shapes);
        let taken = table.iter_rows().try_for_each(|row| {
            if row.iter().any(|cell| cell.is_nan()) {
                return Err(holes(source));
            }
            match kept.take(row) {
                Some(displaced) => train.write(&displaced),
                None => Ok(()),
            }
        });
        watch.advance(table.rows());
        failed = taken.err().or(watch.is_stopped().then_some(Error::Stopped));
        if failed.is_some() { Flow::Full } else { Flow::More }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if moved > 0 {
        meta.notes.push(format!(
            "{moved} cells of columns in steps have values that the first rows have not; each counts as the nearest that they have."
        ));
    }
    // Shares, as of a table in memory, but no more than that.
    let share = |share: f64| ((share * all as f64).round() as usize).min(most);
    let parts = [split.validation, split.test].map(share);
    if parts[0] + parts[1] >= all {
        let expected = format!("shares that leave some of the {all} rows to learn from");
        let value = format!("{} and {}", split.validation, split.test);
        return Err(Error::setting("data.validation and data.test", value, expected));
    }
    let rows = kept.into_rows();
    let mut rows = rows.chunks_exact(columns);
    let mut hash = Sha256::new();
    let mut finish = |part: Part, rows: usize| -> Result<()> {
        hash.update((rows as u64).to_le_bytes());
        hash.update(part.finish()?);
        Ok(())
    };
    let surplus = rows.len() - parts[0] - parts[1];
    (&mut rows).take(surplus).try_for_each(|row| train.write(row))?;
    meta.rows = [all - parts[0] - parts[1], parts[0], parts[1]];
    finish(train, meta.rows[0])?;
    for (name, &number) in PARTS[1..].iter().zip(&parts) {
        let mut part = Part::create(&directory.join(name))?;
        (&mut rows).take(number).try_for_each(|row| part.write(row))?;
        finish(part, number)?;
    }
    meta.hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let path = directory.join(META);
    let json = serde_json::to_vec_pretty(&meta).expect("table.json is plain data");
    replace_file(&path, |file| file.write_all(&json))
        .map_err(|source| Error::Unwritable { file: path.clone(), source })
}

/// Puts values of columns in steps that are none of the known ones to the nearest; says how many.
fn settle(values: &mut [f32], shapes: &[Shape]) -> usize {
    if !shapes.iter().any(|shape| matches!(shape, Shape::Values { .. })) {
        return 0;
    }
    let mut moved = 0;
    for row in values.chunks_exact_mut(shapes.len()) {
        for (value, shape) in row.iter_mut().zip(shapes) {
            if let Shape::Values { .. } = shape {
                let nearest = shape.value(f64::from(*value)) as f32;
                moved += usize::from(nearest != *value && !value.is_nan());
                *value = nearest;
            }
        }
    }
    moved
}

fn holes(source: &Path) -> Error {
    let detail = "it has missing cells, which are drawn anew in training and so must fit in memory";
    Error::refused(
        source,
        detail,
        "Give `missing` drop to leave those rows out, or fit the file itself.",
    )
}

/// A file of rows that is being written, and its digest.
struct Part {
    file: BufWriter<File>,
    hash: Sha256,
    path: std::path::PathBuf,
    bytes: Vec<u8>,
}

impl Part {
    fn create(path: &Path) -> Result<Self> {
        let file =
            File::create(path).map_err(|source| Error::Unwritable { file: path.into(), source })?;
        let file = BufWriter::with_capacity(1 << 20, file);
        Ok(Self { file, hash: Sha256::new(), path: path.into(), bytes: Vec::new() })
    }

    fn write(&mut self, row: &[f32]) -> Result<()> {
        self.bytes.extend(row.iter().flat_map(|cell| cell.to_le_bytes()));
        if self.bytes.len() >= 1 << 16 {
            self.flush().map_err(|source| Error::Unwritable { file: self.path.clone(), source })?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hash.update(&self.bytes);
        self.file.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    /// Ends the file and gives its digest.
    fn finish(mut self) -> Result<[u8; 32]> {
        let written = self.flush().and_then(|()| self.file.flush());
        let written = written.and_then(|()| self.file.get_ref().sync_all());
        written.map_err(|source| Error::Unwritable { file: self.path.clone(), source })?;
        Ok(self.hash.finalize().into())
    }
}

/// A random sample of all rows so far, all of the same size and each as likely as any other (algorithm R, Vitter 1985).
struct Reservoir {
    most: usize,
    columns: usize,
    rows: Vec<f32>,
    seen: usize,
    rng: Stream,
}

impl Reservoir {
    fn new(most: usize, columns: usize, rng: Stream) -> Self {
        Self { most, columns, rows: Vec::new(), seen: 0, rng }
    }

    /// Takes a row, and gives the one that is not in the sample: this one, or one that it displaces.
    fn take(&mut self, row: &[f32]) -> Option<Vec<f32>> {
        self.seen += 1;
        if self.seen <= self.most {
            self.rows.extend_from_slice(row);
            return None;
        }
        let at = self.rng.index(self.seen);
        if at >= self.most {
            return Some(row.to_vec());
        }
        let place = &mut self.rows[at * self.columns..][..self.columns];
        let displaced = place.to_vec();
        place.copy_from_slice(row);
        Some(displaced)
    }

    /// The sample in a random order.
    fn into_rows(mut self) -> Vec<f32> {
        let order = self.rng.permutation(self.rows.len() / self.columns);
        let row = |row: usize| &self.rows[row * self.columns..][..self.columns];
        order.into_iter().flat_map(row).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of 60 rows is in a sample of 20 with probability a third: over 3,000 samples its share is within five standard errors.
    #[test]
    fn a_reservoir_is_a_fair_sample_and_loses_nothing() {
        let (rows, most, samples) = (60, 20, 3000);
        let mut counts = vec![0.0; rows];
        for sample in 0..samples {
            let mut kept = Reservoir::new(most, 1, Streams::new(3).stream("test", sample, 0));
            let mut all: Vec<f32> =
                (0..rows).filter_map(|row| kept.take(&[row as f32])).flatten().collect();
            let inside = kept.into_rows();
            inside.iter().for_each(|&row| counts[row as usize] += 1.0);
            all.extend(inside);
            all.sort_by(f32::total_cmp);
            assert!(all.into_iter().eq((0..rows).map(|row| row as f32)));
        }
        let error = (1.0 / 3.0 * 2.0 / 3.0 / samples as f64).sqrt();
        for count in counts {
            assert!((count / samples as f64 - 1.0 / 3.0).abs() < 5.0 * error, "{count}");
        }
    }
}
