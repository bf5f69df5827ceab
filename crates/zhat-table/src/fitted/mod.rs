//! What a fitted density is for: to be evaluated, to score rows, to draw them, and to fill their missing cells.

mod assess;
mod calibration;
mod correlation;
mod distance;
mod impute;
mod rows;
mod sample;
mod score;
mod strangest;
mod verdict;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use burn::tensor::Device;
use zhat::rng::Streams;
use zhat::watch::Watch;

pub(crate) use assess::assess_by;
pub use assess::{Assessment, assess};
pub use calibration::{Calibration, Uniformity};
pub use correlation::{PairDifference, errors_by_chance, pair_differences, rank_correlations};
pub use distance::{DistanceKind, Distances, MOST_FOR_EXACT, distances};
pub use impute::{ENOUGH, Fill, ImputeOptions, Imputed, impute};
pub use rows::TestRows;
pub(crate) use rows::mean_log_density;
pub(crate) use sample::worth_fewer;
pub use sample::{Sample, SampleOptions, sample};
pub use score::{ScoreOptions, Scored, score};
pub use strangest::{StrangeRow, Strangest, strangest};
pub use verdict::Verdict;

use crate::data::{Discrete, Flow, Missing, ReadOptions, Source, Table, read_batches};
use crate::density::{ArDensity, Density, Tail, with_cells};
use crate::error::{Result, TableError};
use crate::fit::{FitConfig, FitReport, log_z_of};
use crate::run::{ModelCard, RunDirectory, load_model, read_json};

/// Rows that are read, worked on and written together.
const BATCH: usize = 1 << 14;

/// Draws that are contexts for a look at the tails, where there are no rows.
const CONTEXTS: usize = 64;

/// Models of an earlier format do not know their discrete columns, but their run knows the steps of the noise.
fn discrete_before_4(config: &FitConfig) -> BTreeMap<String, Discrete> {
    let steps = config.data.dequantise.iter();
    steps.map(|(name, &step)| (name.clone(), Discrete { step, grid: None })).collect()
}

/// The density of a run, ready for use, and what the run knows of it.
#[derive(Debug)]
pub struct Fitted {
    run: RunDirectory,
    card: ModelCard,
    density: Box<dyn Density>,
}

impl Fitted {
    /// Opens the model of a run; 0 threads means as many as there are cores.
    pub fn open(run: &Path, threads: usize, watch: Arc<Watch>) -> Result<Self> {
        let run = RunDirectory::open(run)?;
        if !run.model_card().is_file() {
            return Err(TableError::Unfinished { path: run.root().to_owned(), file: "model" });
        }
        let (model, card) = load_model(&run, &Device::flex())?;
        let (by, columns, standardiser) = (card.density_by()?, &card.columns, &card.standardiser);
        let density = ArDensity::new(&model, by, columns, standardiser, threads, watch)?;
        let discrete = match card.format {
            ..4 => discrete_before_4(&FitConfig::read(&run.config())?),
            _ => card.discrete.clone(),
        };
        let density = with_cells(Box::new(density), &discrete);
        Ok(Self { run, card, density })
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

    /// The configuration of its run.
    pub fn config(&self) -> Result<FitConfig> {
        FitConfig::read(&self.run.config())
    }

    /// `log Z` and its standard error: those of the run's own evaluation, or new ones where it has none.
    pub fn log_z(&self) -> Result<(f64, f64)> {
        // Results that are older than the model are another model's.
        if let Ok(report) = read_json::<FitReport>(&self.run.results())
            && report.best_step == self.card.step
        {
            return self.there_is_z(&report.test.tail, report.test.log_z, report.test.se_log_z);
        }
        let config = self.config()?;
        let streams = Streams::new(config.seed).derive("test", 0);
        let nothing = vec![f32::NAN; self.card.columns.len()];
        let draws = self.density.draw(&nothing, CONTEXTS, &streams)?;
        let draws = draws.sample(CONTEXTS, &mut streams.stream("contexts", 0, 0)).rows;
        let tail = self.density.tail(&draws)?;
        let estimate = log_z_of(&self.density.estimates(&config.evaluation, &streams)?);
        self.there_is_z(&tail, estimate.log_z, estimate.standard_error)
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
        let options = ReadOptions {
            model_columns: self.card.columns.clone(),
            missing: Missing::Keep,
            ..options.clone()
        };
        match Source::parse(source)? {
            Source::File(path) => Ok(read_batches(&path, &options, BATCH, take)?),
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
            let read = reader.join().expect("readers do not panic");
            worked?;
            read
        })
    }
}
