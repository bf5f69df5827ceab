//! What a fitted density is for: to be evaluated, to score rows, to draw them, and to fill their missing cells.

mod assess;
mod calibration;
mod check;
mod correlation;
mod discriminant;
mod distance;
mod explain;
mod gap;
mod goodness;
mod impute;
mod paired;
mod predictive;
mod rows;
mod sample;
mod score;
mod strangest;
mod two_sample;
mod verdict;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use burn::tensor::Device;
use serde::Deserialize;
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::watch::Watch;

pub(crate) use assess::assess_by;
pub use assess::{Assessment, assess};
pub(crate) use calibration::holm;
pub use calibration::{Calibration, Uniformity};
pub use check::{About, Check, checks_table};
pub use correlation::{PairDifference, errors_by_chance, pair_differences, rank_correlations};
pub use distance::{DistanceKind, Distances, MOST_FOR_EXACT, distances};
pub use explain::{explained_by_the_others, explained_by_those_before};
pub use gap::Gap;
pub use goodness::{ColumnFit, Goodness, goodness};
pub use impute::{ENOUGH, Fill, ImputeOptions, Imputed, impute, impute_rows};
pub use paired::{Paired, paired};
pub use predictive::{PredictedClasses, PredictedNumber, Predictive, Target, predictive};
pub use rows::TestRows;
pub(crate) use rows::log_densities;
pub use sample::{Sample, SampleOptions, sample, sample_for};
pub(crate) use sample::{draws_like, worth_fewer};
pub use score::{ScoreOptions, Scored, Scores, score, score_rows};
pub use strangest::{StrangeRow, Strangest, strangest};
pub use two_sample::{TwoSample, two_sample};
pub use verdict::Verdict;

use crate::data::kinds::{Code, Kind};
use crate::data::{
    ColumnKind, Discrete, Flow, Frame, Marginals, Missing, ReadOptions, Source, Table, in_order,
    probabilities_in_words, read_batches,
};
use crate::density::{ArDensity, Density, Tail, with_cells};
use crate::error::{Result, TableError};
use crate::fit::{FitConfig, FitReport, log_z_of};
use crate::prepare::{Prepared, prepare_watched};
use crate::run::{
    Integrity, ModelCard, RunDirectory, Seal, WITH_DIGESTS, check_seal, load_model, sha256,
};

/// Rows that are read, worked on and written together.
const BATCH: usize = 1 << 14;

/// Draws that are contexts for a look at the tails, where there are no rows.
const CONTEXTS: usize = 64;

/// Particles for what is missing of a row that is scored.
const PARTICLES_FOR_HOLES: usize = 128;

/// Models of an earlier format do not know their discrete columns, but their run knows the steps of the noise.
fn discrete_before_5(config: &FitConfig) -> BTreeMap<String, Discrete> {
    let steps = config.data.dequantise.iter();
    steps.map(|(name, &step)| (name.clone(), Discrete { step, grid: None })).collect()
}

/// The density of a run, ready for use, and what the run knows of it.
#[derive(Debug)]
pub struct Fitted {
    run: RunDirectory,
    card: ModelCard,
    density: Box<dyn Density>,
    integrity: Integrity,
    /// Whether model and card are as the fit wrote them.
    is_whole: bool,
    /// The data of its run, where they cannot be read again.
    data: Option<Prepared>,
    /// Words of the data that the model does not know: by column, the first of them, and in how many cells one was.
    unknown: Mutex<BTreeMap<String, (String, usize)>>,
}

impl Fitted {
    /// Opens the model of a run, which must be as its fit wrote it; 0 threads means as many as there are cores.
    pub fn open(run: &Path, workers: impl Into<Workers>, watch: Arc<Watch>) -> Result<Self> {
        Self::open_as(run, workers, watch, Integrity::Checked)
    }

    /// The same, also for a model that was changed on purpose.
    pub fn open_as(
        run: &Path,
        workers: impl Into<Workers>,
        watch: Arc<Watch>,
        integrity: Integrity,
    ) -> Result<Self> {
        let run = RunDirectory::open(run)?;
        if !run.model_card().is_file() {
            return Err(TableError::Unfinished { path: run.root().to_owned(), file: "model" });
        }
        let (model, card, is_whole) = load_model(&run, &Device::flex(), integrity)?;
        let (by, columns, standardiser) = (card.density_by()?, &card.columns, &card.standardiser);
        let mut density = ArDensity::new(&model, by, columns, standardiser, workers, watch)?;
        if !card.kinds.is_empty() {
            density = density.with_holes(&model, PARTICLES_FOR_HOLES)?;
        }
        let discrete = match card.format {
            ..5 if card.discrete.is_empty() => discrete_before_5(&FitConfig::read(&run.config())?),
            _ => card.discrete.clone(),
        };
        let density = with_cells(Box::new(density), &discrete);
        let unknown = Mutex::default();
        Ok(Self { run, card, density, integrity, is_whole, data: None, unknown })
    }

    /// The same with the data of its run, which were in memory and cannot be read again.
    pub fn with_data(self, data: Prepared) -> Result<Self> {
        self.check_data(&data)?;
        Ok(Self { data: Some(data), ..self })
    }

    /// The data of its run, read again where they are a file.
    pub(crate) fn own_data(&self, config: &FitConfig) -> Result<Prepared> {
        match &self.data {
            Some(data) => Ok(data.clone()),
            None => prepare_watched(config, self.density.watch()),
        }
    }

    /// An error for other data than those of its run.
    fn check_data(&self, data: &Prepared) -> Result<()> {
        if data.hash == self.card.data_hash {
            return Ok(());
        }
        let (expected, found) = (self.card.data_hash.clone(), data.hash.clone());
        Err(TableError::OtherData { expected, found })
    }

    /// Rows in memory as the model reads them: its columns, found by name or, where there are none, by position, in its units, with words
    /// as codes and NaN for what is missing.
    pub fn rows_in(&self, frame: &Frame<'_>) -> Result<Table> {
        let options = self.read_options(&ReadOptions::default());
        let options = ReadOptions { missing: Missing::Keep, ..options };
        let table = frame.read(&options, self.density.watch())?.reading.table;
        self.note_unknown(&table.carried().unknown);
        Ok(table)
    }

    /// Whether the model is as its fit wrote it.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// What the model is.
    pub fn card(&self) -> &ModelCard {
        &self.card
    }

    /// Where it is.
    pub fn run(&self) -> &RunDirectory {
        &self.run
    }

    /// The density.
    pub fn density(&self) -> &dyn Density {
        &*self.density
    }

    /// The settings of its run. What columns became is no question any more: asking again takes as long as before.
    pub fn config(&self) -> Result<FitConfig> {
        let mut config = FitConfig::read(&self.run.config())?;
        if config.data.marginals == Marginals::Auto {
            config.data.marginals = self.card.standardiser.marginals();
        }
        Ok(config)
    }

    /// `log Z` and its standard error: those of the run's own evaluation, or new ones where it has none.
    pub fn log_z(&self) -> Result<(f64, f64)> {
        if self.run.results().exists()
            && let (report, true) = self.results()?
        {
            return self.there_is_z(&report.test.tail, report.test.log_z, report.test.se_log_z);
        }
        let config = self.config()?;
        let streams = Streams::new(config.seed).derive("test", 0);
        let tail = self.density.tail(&contexts(&*self.density, &streams)?)?;
        let estimate = log_z_of(&self.density.estimates(&config.evaluation, &streams)?);
        self.there_is_z(&tail, estimate.log_z, estimate.standard_error)
    }

    /// What the run ended with, and whether it is about this very model: results may be older than the model, or the model may
    /// have been changed since.
    pub(crate) fn results(&self) -> Result<(FitReport, bool)> {
        #[derive(Deserialize)]
        struct Bound {
            #[serde(default)]
            model_sha256: Option<String>,
        }
        let path = self.run.results();
        let read = |path: &Path| fs::read(path).map_err(|source| TableError::io(path, source));
        let bytes = read(&path)?;
        if self.integrity == Integrity::Checked {
            match check_seal(&bytes) {
                Seal::Whole => (),
                Seal::None if self.card.format < WITH_DIGESTS => (),
                Seal::None => {
                    return Err(TableError::modified(&path, "it has lost its digest (sha256)"));
                }
                Seal::Broken => {
                    return Err(TableError::modified(&path, "it is not as its fit wrote it"));
                }
            }
        }
        let broken = |error: serde_json::Error| TableError::model(&path, error.to_string());
        let report: FitReport = serde_json::from_slice(&bytes).map_err(broken)?;
        let bound: Bound = serde_json::from_slice(&bytes).map_err(broken)?;
        let is_own = match bound.model_sha256 {
            Some(expected) => expected == sha256(&read(&self.run.model_card())?),
            None => report.best_step == self.card.step,
        };
        Ok((report, is_own && self.is_whole))
    }

    /// How a file is read for the model: its columns, by what they are.
    fn read_options(&self, options: &ReadOptions) -> ReadOptions {
        ReadOptions {
            model_columns: self.card.columns.clone(),
            model_kinds: self.card.kinds.clone(),
            ..options.clone()
        }
    }

    /// What the model's columns are, in their order; none where it has no kinds.
    pub fn kinds(&self) -> Option<Vec<&ColumnKind>> {
        let kinds = &self.card.kinds;
        (!kinds.is_empty()).then(|| in_order(kinds, &self.card.columns))
    }

    /// That its likelihood has probabilities in it, where it has.
    pub fn probabilities_in_words(&self) -> Option<String> {
        probabilities_in_words(&self.card.kinds, &self.card.columns[self.card.model.given..])
    }

    /// What a user gives for a column, as a number or a code.
    pub fn given(&self, name: &str, text: &str) -> Result<(String, f64)> {
        let wrong =
            |expected: &str| TableError::setting("given", format!("{name}={text}"), expected);
        let kind = self.card.kinds.iter().find(|kind| kind.name == name && kind.is_modelled());
        let value = match kind.map(|kind| (kind, kind.code(text))) {
            Some((_, Code::Value(value))) => value,
            Some((ColumnKind { kind: Kind::Categorical { levels }, .. }, _)) => {
                let other = levels[levels.len() - 1] == text;
                let known = levels[..levels.len() - 1].join(", ");
                match other {
                    true => (levels.len() - 1) as f64,
                    false => return Err(wrong(&format!("one of {known}"))),
                }
            }
            _ => text.parse().map_err(|_| wrong("a number"))?,
        };
        Ok((name.to_owned(), value))
    }

    /// What there is to say of words that the model does not know.
    pub fn warnings(&self) -> Vec<String> {
        let unknown = self.unknown.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let tell = |(column, (word, number)): (&String, &(String, usize))| {
            let cells =
                if *number == 1 { "one cell has".into() } else { format!("{number} cells have") };
            format!(
                "column {column}: {cells} a word that the model does not know, such as {word:?}; it counts as rare ones do"
            )
        };
        unknown.iter().map(tell).collect()
    }

    fn note_unknown(&self, words: &[(String, String, usize)]) {
        let mut unknown = self.unknown.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (column, word, number) in words {
            unknown.entry(column.clone()).or_insert_with(|| (word.clone(), 0)).1 += number;
        }
    }

    fn there_is_z(&self, tail: &Tail, log_z: f64, error: f64) -> Result<(f64, f64)> {
        if tail.falls {
            return Ok((log_z, error));
        }
        Err(TableError::NoZ { column: tail.column.clone(), figures: tail.figures() })
    }

    /// Reads data for the model batch by batch, in the units of the data, with missing cells as NaN.
    fn batches(
        &self,
        source: &str,
        options: &ReadOptions,
        mut take: impl FnMut(Table) -> Flow,
    ) -> Result<usize> {
        let options = ReadOptions { missing: Missing::Keep, ..self.read_options(options) };
        match Source::parse(source)? {
            Source::File(path) => Ok(read_batches(&path, &options, BATCH, |table| {
                self.note_unknown(&table.carried().unknown);
                take(table)
            })?),
            set => {
                let mut rng = Streams::new(0).stream("data", 1, 0);
                let table = set.load(&options, &mut rng)?.table;
                let rows: Vec<usize> = (0..table.rows()).collect();
                for rows in rows.chunks(BATCH) {
                    if take(table.select_rows(rows)) == Flow::Full {
                        break;
                    }
                }
                Ok(table.rows())
            }
        }
    }

    /// Batches that are read on a thread of their own while the ones before them are worked on.
    fn stream(
        &self,
        source: &str,
        options: &ReadOptions,
        mut work: impl FnMut(Table) -> Result<()>,
    ) -> Result<usize> {
        std::thread::scope(|scope| {
            let (send, receive) = std::sync::mpsc::sync_channel::<Table>(2);
            let reader = scope.spawn(move || {
                self.batches(source, options, |table| match send.send(table) {
                    Ok(()) => Flow::More,
                    // Whoever worked on them has given up, and says why.
                    Err(_) => Flow::Full,
                })
            });
            let mut worked = Ok(());
            while let Ok(table) = receive.recv() {
                worked = self
                    .density
                    .watch()
                    .check()
                    .map_err(TableError::from)
                    .and_then(|()| work(table));
                if worked.is_err() {
                    break;
                }
            }
            drop(receive);
            let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            worked?;
            read
        })
    }
}

/// Draws of a density, as contexts for a look at its tails.
pub(crate) fn contexts(density: &dyn Density, streams: &Streams) -> Result<Vec<f32>> {
    let mut nothing = vec![f32::NAN; density.columns().len()];
    // What is given, in the middle.
    for (column, cell) in nothing.iter_mut().enumerate().take(density.given()) {
        *cell = density.standardiser().in_units(column, 0.0) as f32;
    }
    let draws = density.draw(&nothing, CONTEXTS, streams)?;
    Ok(draws.sample(CONTEXTS, &mut streams.stream("contexts", 0, 0)).rows)
}
