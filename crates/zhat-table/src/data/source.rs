//! Where a table comes from: a file, or a built-in set of which the truth is known.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use rand::Rng;
use zhat::watch::Watch;

use super::builtin::{self, Builtin};
use super::checks::{Warning, check, check_collapse};
use super::dequantise::dequantise;
use super::discrete::Discrete;
use super::error::{Error, Result};
use super::options::ReadOptions;
use super::read::{self, Reading, STANDARD_INPUT, read_watched};
use super::table::Table;

/// Rows that are drawn from a built-in set unless `max_rows` says otherwise.
pub const BUILTIN_ROWS: usize = 20_000;

/// What the user named as data.
#[derive(Debug)]
pub enum Source {
    /// `builtin:NAME`.
    Builtin(Box<dyn Builtin>),
    /// Anything else is a path; `-` is standard input.
    File(PathBuf),
}

/// A table that is fit for a density.
#[derive(Debug)]
pub struct Loaded {
    /// The rows.
    pub table: Table,
    /// The true density, for a built-in set whose columns were all kept in their order.
    pub truth: Option<Box<dyn Builtin>>,
    /// What its user should know.
    pub warnings: Vec<Warning>,
    /// How many rows were left out for a missing cell.
    pub dropped_rows: usize,
    /// The columns that noise was added to, as they were before.
    pub discrete: BTreeMap<String, Discrete>,
    /// The rows before noise was added to some columns; none where it was not.
    pub before_noise: Option<Table>,
}

/// A source that can be read again and again, for whoever needs it more than once: itself, or, where it is standard input, a pipe
/// or a device, a copy of it in the directory, with the name `input`.
pub fn keep(source: &str, directory: &Path) -> Result<String> {
    let path = Path::new(source);
    if !read::is_read_once(path) {
        return Ok(source.into());
    }
    let copy = directory.join("input");
    let unreadable = |source| Error::Unreadable { file: path.into(), source };
    std::fs::create_dir_all(directory).map_err(unreadable)?;
    read::copy(path, &copy).map_err(unreadable)?;
    Ok(copy.to_string_lossy().into_owned())
}

impl Source {
    /// Reads `builtin:NAME` or a path.
    pub fn parse(text: &str) -> Result<Self> {
        match text.strip_prefix("builtin:") {
            Some(name) => Ok(Source::Builtin(builtin::find(name)?)),
            None => Ok(Source::File(text.into())),
        }
    }

    /// Reads or draws the table and checks it.
    pub fn load(self, options: &ReadOptions, rng: &mut impl Rng) -> Result<Loaded> {
        self.load_dequantised(options, &BTreeMap::new(), rng)
    }

    /// Reads or draws the table, adds noise to its discrete columns, given with their steps, and checks it.
    pub fn load_dequantised(
        self,
        options: &ReadOptions,
        discrete: &BTreeMap<String, f64>,
        rng: &mut impl Rng,
    ) -> Result<Loaded> {
        self.load_watched(options, discrete, rng, &Watch::default())
    }

    /// The same, unless it is told to stop.
    pub fn load_watched(
        self,
        options: &ReadOptions,
        discrete: &BTreeMap<String, f64>,
        rng: &mut impl Rng,
        watch: &Watch,
    ) -> Result<Loaded> {
        let name = self.to_string();
        let (Reading { mut table, dropped_rows, ranges, notes }, mut truth) = match self {
            Source::File(path) => (read_watched(&path, options, watch)?, None),
            Source::Builtin(set) => {
                let table = builtin::draw(&*set, options.max_rows.unwrap_or(BUILTIN_ROWS), rng);
                let names = table.columns().to_vec();
                let chosen = super::columns::choose(name.as_ref(), &names, options)?;
                let chosen: Vec<usize> = chosen.into_iter().map(|column| column.index).collect();
                let truth = chosen.iter().copied().eq(0..names.len()).then_some(set);
                let table = table.select_columns(&chosen);
                let (ranges, notes) = (Vec::new(), Vec::new());
                (Reading { table, dropped_rows: 0, ranges, notes }, truth)
            }
        };
        check_collapse(&name, &table, &ranges)?;
        let before_noise = (!discrete.is_empty()).then(|| table.clone());
        let discrete = dequantise(&mut table, discrete, rng)?;
        truth = truth.filter(|_| discrete.is_empty());
        let mut warnings = notes;
        warnings.extend(check(&name, &table, dropped_rows)?);
        // Nobody is told to do what was done.
        for warning in &mut warnings {
            if let Warning::Discrete { column, .. } | Warning::Spike { column, .. } = warning
                && let Some(Discrete { step, .. }) = discrete.get(column)
            {
                *warning = Warning::StillDiscrete { column: std::mem::take(column), step: *step };
            }
        }
        Ok(Loaded { table, truth, warnings, dropped_rows, discrete, before_noise })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Builtin(set) => write!(f, "builtin:{}", set.name()),
            Source::File(path) if path == Path::new(STANDARD_INPUT) => write!(f, "standard input"),
            Source::File(path) => write!(f, "{}", path.display()),
        }
    }
}
