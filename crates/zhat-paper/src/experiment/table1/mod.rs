//! Table 1: the autoregressive EBM on five data sets, trained by ML-IS, RNCE and SMC-RNCE, and beyond the paper what zhat fits.
//!
//! A cell is a set and an approach: a criterion, or what goes beyond the paper. It is a run of `zhat_table::fit` in a directory of its own, then an evaluation of its
//! model, so that an interrupted table goes on where it was: in the middle of a cell's training by its checkpoints, in the
//! middle of its evaluation by the distances that are written one by one.
//!
//! All criteria of a set train for the same number of steps, so that the table compares criteria and not their speed. The cell
//! beyond the paper has steps of another kind and trains for the same time.
//!
//! Several ranks make one cell after the other together. A cell for each of them would be done no sooner: their sums take a percent of a step, and
//! who has no cell left would have nothing to do. The first of them reads and writes all files but the data and the models.

mod approach;
mod beyond;
mod cell;
mod claims;
mod distance;
mod plan;
mod published;
mod report;

pub use approach::Approach;
pub use cell::Cell;
pub use distance::Distances;
pub use plan::{Length, Plan};
pub use published::{CONTEXT, Published, published};
pub use report::Table1;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zhat::criterion::Method;
use zhat::ranks::Workers;
use zhat::watch::Watch;
use zhat_table::data::Marginals;
use zhat_table::data::benchmark::{Benchmark, PreparedSet};
use zhat_table::fit;
use zhat_table::run::{of_first, write_atomically};
use zhat_table::{Prepared, Result, TableError, prepare};

use crate::presets::Preset;

/// The criteria of the paper's table, in its order.
pub const CRITERIA: [Method; 3] = [Method::MlIs, Method::Rnce, Method::SmcRnce];

/// What decides the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// The sets, in the order of the table.
    pub datasets: Vec<Benchmark>,
    /// The criteria, in the order of the table, and what goes beyond the paper, if it is to be there.
    pub criteria: Vec<Approach>,
    /// How long each cell trains.
    pub length: Length,
    /// Rows in a step of the criteria. Where it is not given, the paper's number in full tables and fewer in reduced ones, which have more
    /// steps in the same time that way.
    #[serde(default)]
    pub batch: Option<usize>,
    /// Share of the negatives with a feature drawn uniformly from a wide range; zero in the paper.
    #[serde(default)]
    pub wide_share: f64,
    /// The directory that holds `power`, `gas`, ... as `zhat data prepare` made them.
    pub data: PathBuf,
    /// Particles behind an estimate of `log Z`; the paper has 5,000,000.
    pub particles: usize,
    /// Number of estimates of each figure; the paper has 10.
    pub estimates: usize,
    /// Points of a Wasserstein distance; the paper's number where it is not given, none for 0.
    pub points: Option<usize>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Settings {
    /// A reduced table of some sets.
    pub fn new(datasets: Vec<Benchmark>, data: &Path) -> Self {
        Self {
            datasets,
            criteria: CRITERIA.map(Approach::Paper).into_iter().chain([Approach::Beyond]).collect(),
            length: Length::default(),
            batch: None,
            wide_share: 0.0,
            data: data.into(),
            particles: 200_000,
            estimates: 10,
            points: None,
            seed: 0,
        }
    }

    /// The settings that a directory's table was made with.
    pub fn read(out: &Path) -> Result<Self> {
        read_json(&out.join(SETTINGS))?.ok_or_else(|| TableError::Config {
            reason: format!("{} holds no table to go on with", out.display()),
        })
    }

    fn validate(&self) -> Result<()> {
        let is_empty = self.datasets.is_empty() || self.criteria.is_empty();
        let is_too_few = self.particles == 0 || self.points == Some(1);
        let refused = [
            (is_empty, "a table needs at least one set and one criterion"),
            (self.estimates < 2, "at least 2 estimates are needed, for an error bar"),
            (self.batch == Some(0), "a step needs at least one row"),
            (is_too_few, "particles and points must be at least 2"),
        ];
        match refused.into_iter().find(|(is_refused, _)| *is_refused) {
            Some((_, reason)) => Err(TableError::Config { reason: reason.into() }),
            None => self.length.validate(),
        }
    }

    /// An error if the directory's table trains otherwise: its cells would not be of one kind.
    fn check_against(&self, out: &Path) -> Result<()> {
        let Some(before) = read_json::<Self>(&out.join(SETTINGS))? else { return Ok(()) };
        let kind =
            |settings: &Self| (settings.length, settings.batch, settings.wide_share, settings.seed);
        if kind(&before) == kind(self) {
            return Ok(());
        }
        Err(TableError::Config {
            reason: format!(
                "the table in {} was begun with {:?}, batch {}, wide share {} and seed {}, which cannot be changed; give \
                 another `out`",
                out.display(),
                before.length,
                before.batch.map_or_else(|| "not given".into(), |batch| batch.to_string()),
                before.wide_share,
                before.seed
            ),
        })
    }

    /// Where a set is: a directory of its name, or the directory itself.
    fn data_of(&self, set: Benchmark) -> Result<PathBuf> {
        let own = self.data.join(set.name());
        let found = [own.clone(), self.data.clone()]
            .into_iter()
            .find(|directory| PreparedSet::read_meta(directory).is_ok_and(|meta| meta.set == set));
        let directory = found.ok_or_else(|| TableError::Config {
            reason: format!(
                "{set} is not in {}. Make it with `zhat data prepare {set} SOURCE --out {}`, where SOURCE is {}",
                self.data.display(),
                own.display(),
                set.sources()
            ),
        })?;
        std::path::absolute(&directory).map_err(|source| TableError::Io { path: directory, source })
    }

    /// Points of the distance for a set.
    fn points_of(&self, set: Benchmark) -> usize {
        self.points.unwrap_or_else(|| published::points(set))
    }
}

/// The paper's networks and training for a set.
pub fn preset(set: Benchmark) -> Preset {
    set.name().parse().expect("every set has a preset")
}

/// What someone who watches is told.
#[derive(Debug)]
pub enum Event<'a> {
    /// The steps of a set are timed, to find how many fit into a budget.
    Timing(Benchmark),
    /// The training of a cell begins or goes on.
    Training {
        /// The set.
        set: Benchmark,
        /// What it is trained by.
        criterion: Approach,
        /// Steps taken before.
        from: u64,
        /// All of them.
        steps: u64,
    },
    /// What a fit tells.
    Fit(&'a fit::Event<'a>),
    /// Distances that are known, of how many.
    Distance(usize, usize),
    /// A cell is done.
    Done(&'a Cell),
}

/// Someone who is told.
type Observer<'a> = dyn FnMut(&Event) + 'a;

const SETTINGS: &str = "settings.json";

/// Makes the table, or goes on with it; what is done is not done again.
///
/// After every cell the table so far is written to `out`. A stop is noticed at the next step.
pub fn run(
    settings: &Settings,
    out: &Path,
    workers: impl Into<Workers>,
    watch: &Arc<Watch>,
    observer: &mut Observer,
) -> Result<Table1> {
    let workers = &workers.into();
    settings.validate()?;
    of_first(workers, || settings.check_against(out))?;
    let sources = settings
        .datasets
        .iter()
        .map(|&set| Ok((set, settings.data_of(set)?)))
        .collect::<Result<Vec<_>>>()?;
    if workers.is_first() {
        fs::create_dir_all(out).map_err(|source| TableError::Io { path: out.into(), source })?;
        write_json(&out.join(SETTINGS), settings)?;
    }
    let mut table = Table1::new(settings, workers);
    for (set, source) in sources {
        let paper = preset(set).config(&source.to_string_lossy());
        let (data, marginals) = (prepare(&paper)?, paper.data.marginals);
        table.differences.insert(set.name().into(), data.notes.clone());
        let directory = out.join(set.name());
        let bench =
            Bench { settings, set, source, data: &data, marginals, directory, workers, watch };
        table.interrupted = bench.fill(&mut table, out, observer)?.is_none();
        if table.interrupted {
            break;
        }
    }
    if !table.cells.is_empty() && workers.is_first() {
        table.write(out)?;
    }
    Ok(table)
}

/// A set, its data, and where its cells go.
struct Bench<'a> {
    settings: &'a Settings,
    set: Benchmark,
    source: PathBuf,
    data: &'a Prepared,
    /// What the columns of the data are mapped to.
    marginals: Marginals,
    directory: PathBuf,
    workers: &'a Workers,
    watch: &'a Arc<Watch>,
}

impl Bench<'_> {
    /// The cells of the set, each written when it is done, and what a perfect model would have; `None` if it was told to stop.
    fn fill(&self, table: &mut Table1, out: &Path, observer: &mut Observer) -> Result<Option<()>> {
        for &criterion in &self.settings.criteria {
            let Some(plan) = self.plan(criterion, observer)? else { return Ok(None) };
            let Some(cell) = self.cell(criterion, &plan, observer)? else { return Ok(None) };
            observer(&Event::Done(&cell));
            table.cells.push(cell);
            if self.workers.is_first() {
                table.write(out)?;
            }
        }
        if self.settings.points_of(self.set) > 0 {
            let Some(floor) = self.floor(observer)? else { return Ok(None) };
            table.floors.insert(self.set.name().into(), floor);
        }
        Ok(Some(()))
    }

    /// What a file of the first rank holds, for all of them.
    fn known<T: Serialize + DeserializeOwned>(&self, path: &Path) -> Result<Option<T>> {
        of_first(self.workers, || read_json(path))
    }

    /// Writes a file on the first rank; nobody goes on before it is there.
    fn keep(&self, path: &Path, value: &impl Serialize) -> Result<()> {
        if self.workers.is_first() {
            write_json(path, value)?;
        }
        self.workers.any(false);
        Ok(())
    }

    /// Whether any of the ranks was told to stop.
    fn is_stopped(&self) -> bool {
        self.workers.is_stopped(self.watch)
    }
}

/// What a file holds; `None` where there is no file.
fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TableError::Io { path: path.into(), source }),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| TableError::Model {
        path: path.into(),
        reason: format!("{error}. Remove the file to have it made again"),
    })
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let json = serde_json::to_vec_pretty(value).expect("plain data");
    write_atomically(path, &json)
}
