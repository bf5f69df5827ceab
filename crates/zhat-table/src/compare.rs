//! Several criteria on equal terms: the same data, the same budget, one table, one figure.
//!
//! Criteria are told apart by paired differences: for each seed, the mean over its test rows of how far one is ahead of the
//! other; over seeds, their mean, with an error that holds the spread over seeds and the luck of the test rows that the seeds
//! share. One is called the best only where it is ahead of every other by more than chance gives, with all criteria taken together
//! (Student's t with Holm's correction). One seed knows nothing of the spread, and says so.

mod seeds;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zhat::criterion::Method;
use zhat::ranks::Workers;
use zhat::watch::Watch;
use zhat_report::figure::{Colour, Figure, Panel, Scale, Series};
use zhat_report::page::Page;
use zhat_report::{Align, Table, export};

use self::seeds::{OfSeed, OverSeeds};
use crate::error::{Result, TableError};
use crate::fit::{BaseAnswers, Clock, Event, FitConfig, FitReport, Limit, Session, Time, nats};
use crate::fitted::{Fitted, holm};
use crate::prepare::{Prepared, prepare_watched};
use crate::report::{read_metrics, validation_curve};
use crate::run::{RunDirectory, read_sealed};

/// What chance gives less often than this is no chance.
const LEVEL: f64 = 0.05;

/// What every criterion gets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// As many steps.
    Steps(u64),
    /// As much time for a whole fit, its evaluation included.
    Time(Time),
}

/// What is compared.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// The criteria.
    pub criteria: Vec<Method>,
    /// What every criterion gets.
    pub budget: Budget,
    /// Fits of every criterion, each with a seed of its own for split, start and draws; the criteria share them.
    pub repeats: u64,
    /// Who does the work.
    pub workers: Workers,
    /// Go on with what is in the directory.
    pub resume: bool,
}

/// One criterion, over its repeats.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The criterion.
    pub criterion: String,
    /// Mean test log-likelihood, in nats a row.
    pub log_likelihood: f64,
    /// Its standard error from the finite number of test rows, which does not shrink where seeds share them.
    pub se_test: f64,
    /// Its standard error from the estimates of `log Z`.
    pub se_log_z: f64,
    /// Its standard error from the spread over seeds; none with one seed.
    pub se_seeds: Option<f64>,
    /// How much the criterion with the highest likelihood is ahead, row by row.
    pub behind_best: f64,
    /// Standard error of that, over seeds, rows and `log Z`; zero for the highest itself.
    pub se_behind_best: f64,
    /// An interval around it: in 95 % of cases all criteria are within theirs (Bonferroni's correction).
    pub behind_best_interval: [f64; 2],
    /// How often chance alone would give as much in one of the criteria (Holm's correction); 1 for the highest itself.
    pub p_value: f64,
    /// Whether that is less often than once in twenty; for the highest itself, whether it is so for all others.
    pub told_apart: bool,
    /// The proposal's own log-likelihood.
    pub proposal_log_likelihood: f64,
    /// Smallest effective sample size of a stage, as a share of the particles.
    pub smallest_effective_sample_size: f64,
    /// Steps of the first repeat.
    pub steps: u64,
    /// Seconds of all repeats, training and evaluation.
    pub seconds: f64,
}

/// The outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Where the data came from.
    pub source: String,
    /// What every criterion got.
    pub budget: Budget,
    /// Number of fits of each.
    pub repeats: u64,
    /// Mean log-density of the test rows under the truth, where it is known.
    pub truth: Option<f64>,
    /// One entry for each criterion.
    pub criteria: Vec<Compared>,
}

/// One fit.
struct Cell {
    report: FitReport,
    /// Steps, and the log-likelihood of the validation part after them.
    validation: Vec<(f64, f64)>,
    /// Log-density of every test row.
    of_rows: OfSeed,
}

/// Fits every criterion, and writes `comparison.json`, a figure and a page into the directory; `None` if it was told to stop.
///
/// `observer` is told which fit an event belongs to: its name, its number and how many there are.
pub fn compare(
    base: &FitConfig,
    options: &CompareOptions,
    out: &Path,
    watch: &Arc<Watch>,
    observer: &mut dyn FnMut(&str, &Event),
) -> Result<Option<Comparison>> {
    validate(base, options)?;
    if out.join("comparison.json").exists() && !options.resume {
        return Err(TableError::RunExists { path: out.to_owned() });
    }
    fs::create_dir_all(out).map_err(|source| TableError::io(out, source))?;
    let mut cells: Vec<Vec<Cell>> = options.criteria.iter().map(|_| Vec::new()).collect();
    for repeat in 0..options.repeats {
        let config = FitConfig { seed: base.seed + repeat, ..base.clone() };
        let data = match prepare_watched(&config, watch) {
            Err(error) if error.is_stop() => return Ok(None),
            data => data?,
        };
        if data.rows[2] == 0 {
            let reason = "data.split.test is 0, but criteria are compared on test rows".into();
            return Err(TableError::config(reason));
        }
        if repeat == 0 {
            data.notes.iter().for_each(|note| observer("", &Event::Warning(note)));
        }
        for (&criterion, cells) in options.criteria.iter().zip(&mut cells) {
            let name = format!("{}-{}", criterion.name(), repeat + 1);
            let mut config = config.clone();
            config.step.criterion = criterion;
            let directory = out.join(&name);
            let mut tell = |event: &Event| observer(&name, event);
            match cell(config, &data, options, directory, watch, &mut tell) {
                Err(error) if error.is_stop() => return Ok(None),
                cell => match cell? {
                    Some(cell) => cells.push(cell),
                    None => return Ok(None),
                },
            }
        }
    }
    let comparison = summarise(base, options, &cells);
    let figure = figure(&cells);
    export::figure::write(out, "comparison", &figure)?;
    let json = serde_json::to_vec_pretty(&comparison).expect("a comparison is plain data");
    crate::run::write_atomically(&out.join("comparison.json"), &json)?;
    export::page::write(&out.join("report.html"), &comparison.page(&figure)?)?;
    Ok(Some(comparison))
}

fn validate(base: &FitConfig, options: &CompareOptions) -> Result<()> {
    let names: Vec<&str> = options.criteria.iter().map(|criterion| criterion.name()).collect();
    let twice = (1..names.len()).find(|&index| names[..index].contains(&names[index]));
    if names.is_empty() || twice.is_some() {
        return Err(TableError::setting(
            "criteria",
            names.join(","),
            "at least one, and none of them twice",
        ));
    }
    for &criterion in &options.criteria {
        let mut config = base.clone();
        config.step.criterion = criterion;
        config.validate()?;
    }
    if options.repeats == 0 {
        return Err(TableError::setting("repeats", 0, "at least 1"));
    }
    match options.budget {
        Budget::Steps(0) => Err(TableError::setting("steps", 0, "at least 1")),
        Budget::Time(Time { seconds, .. }) if !(seconds.is_finite() && seconds > 0.0) => {
            Err(TableError::setting("time", seconds, "larger than zero"))
        }
        _ => Ok(()),
    }
}

/// Fits one criterion, or goes on with it, or reads what it has come to.
fn cell(
    mut config: FitConfig,
    data: &Prepared,
    options: &CompareOptions,
    directory: PathBuf,
    watch: &Arc<Watch>,
    observer: &mut dyn FnMut(&Event),
) -> Result<Option<Cell>> {
    let known = RunDirectory::open(&directory).ok().filter(RunDirectory::is_begun);
    if known.is_some() && !options.resume {
        return Err(TableError::RunExists { path: directory });
    }
    // Criteria are told apart by what they make of the model.
    config.validation.base = BaseAnswers::Never;
    let limit = match options.budget {
        Budget::Steps(_) => None,
        Budget::Time(time) => Some(Limit::planned(time)),
    };
    match (&known, options.budget, &limit) {
        (_, Budget::Steps(steps), _) => config.scale_to(steps),
        (None, _, Some(limit)) => {
            let model = config.model.clone();
            limit.schedule(&mut config, data, options.workers.clone(), watch, |_| {
                Ok::<_, TableError>(model)
            })?
        }
        _ => (),
    }
    if let Some(run) = &known {
        // What was timed or cross-validated at the start counts: doing it again would make another run.
        let stored = FitConfig::read(&run.config())?;
        if limit.is_some() {
            config.scale_to(stored.training.num_steps);
            config.training.validation_every = stored.training.validation_every;
            config.training.patience = stored.training.patience;
            config.training.checkpoint_every = stored.training.checkpoint_every;
            config.log_every = stored.log_every;
        }
        if config.is_cross_validated(data) {
            config.training.stop_after = stored.training.stop_after;
        }
    }
    let mut session = match &known {
        None => Session::start(config, data.clone(), &directory, options.workers.clone(), watch)?,
        Some(run) => {
            if FitConfig::read(&run.config())? != config {
                let reason = format!(
                    "{} was fitted with other settings; give the same ones, or another directory",
                    directory.display()
                );
                return Err(TableError::config(reason));
            }
            if let Ok(report) = read_sealed(&run.results()) {
                return read_cell(&directory, report, data, &options.workers).map(Some);
            }
            let workers = options.workers.clone();
            Session::resume(config, data.clone(), &directory, workers, watch)?.0
        }
    };
    // A cell that is taken up takes all its steps, as a fit does.
    let limit = limit.filter(|_| known.is_none());
    match session.run(limit.as_ref(), watch, &mut |event: &Event| observer(event))? {
        Some(report) => read_cell(&directory, report, data, &options.workers).map(Some),
        None => Ok(None),
    }
}

fn read_cell(out: &Path, report: FitReport, data: &Prepared, workers: &Workers) -> Result<Cell> {
    let fitted = Fitted::open(out, workers.clone(), Default::default())?;
    // While the proposal alone is trained, the model says nothing yet.
    let warm_up = fitted.config()?.step.warm_up as f64;
    let mut validation = validation_curve(&report, &read_metrics(fitted.run())?);
    validation.retain(|(step, _)| *step > warm_up);
    let log_p_tilde = fitted.density().score(&data.test_as_read())?.log_p_tilde;
    let of_rows = OfSeed {
        values: log_p_tilde.iter().map(|log_p| log_p - report.test.log_z).collect(),
        rows: data.test_rows.clone(),
        weights: data.weights.as_ref().map_or_else(Vec::new, |[.., test]| test.clone()),
        se_log_z: report.test.se_log_z,
    };
    Ok(Cell { report, validation, of_rows })
}

fn summarise(base: &FitConfig, options: &CompareOptions, cells: &[Vec<Cell>]) -> Comparison {
    let over_seeds = |of: &dyn Fn(usize) -> OfSeed| {
        OverSeeds::new(&(0..cells[0].len()).map(of).collect::<Vec<_>>())
    };
    let own: Vec<OverSeeds> =
        cells.iter().map(|cells| over_seeds(&|seed| cells[seed].of_rows.clone())).collect();
    let best = (0..cells.len())
        // One that has no likelihood is below all others.
        .max_by(|&a, &b| {
            let [a, b] = [a, b].map(|index| own[index].mean.max(f64::NEG_INFINITY));
            a.total_cmp(&b)
        })
        .expect("at least one criterion");
    let behind: Vec<OverSeeds> = cells
        .iter()
        .map(|cells_of| {
            over_seeds(&|seed| cells[best][seed].of_rows.ahead_of(&cells_of[seed].of_rows))
        })
        .collect();
    let others: Vec<usize> = (0..cells.len()).filter(|&index| index != best).collect();
    let mut p_values = vec![1.0; cells.len()];
    let of_others: Vec<f64> = others.iter().map(|&index| behind[index].p_value()).collect();
    for (&index, p_value) in others.iter().zip(holm(&of_others)) {
        p_values[index] = p_value;
    }
    let told = |index: usize| p_values[index] < LEVEL;
    let is_best = (0..cells.len()).all(|index| index == best || told(index));
    let criteria = options.criteria.iter().enumerate().map(|(index, criterion)| {
        let (own, behind, cells) = (&own[index], &behind[index], &cells[index]);
        let tests = || cells.iter().map(|cell| &cell.report.test);
        Compared {
            criterion: criterion.name().into(),
            log_likelihood: own.mean,
            se_test: own.se_rows,
            se_log_z: own.se_log_z,
            se_seeds: own.se_seeds,
            behind_best: behind.mean,
            se_behind_best: if index == best { 0.0 } else { behind.standard_error },
            behind_best_interval: match index == best {
                true => [0.0, 0.0],
                false => behind.interval(LEVEL / others.len() as f64),
            },
            p_value: p_values[index],
            told_apart: if index == best { is_best } else { told(index) },
            proposal_log_likelihood: tests().map(|test| test.proposal_log_likelihood).sum::<f64>()
                / cells.len() as f64,
            smallest_effective_sample_size: tests()
                .map(|test| test.smallest_effective_sample_size)
                .fold(1.0, f64::min),
            steps: cells[0].report.steps,
            seconds: cells.iter().map(|cell| cell.report.seconds).sum(),
        }
    });
    let truths: Option<Vec<f64>> = cells[0].iter().map(|cell| cell.report.truth).collect();
    Comparison {
        source: base.data.source.clone(),
        budget: options.budget,
        repeats: options.repeats,
        truth: truths.map(|truths| truths.iter().sum::<f64>() / truths.len() as f64),
        criteria: criteria.collect(),
    }
}

/// Validation curves, one colour for each criterion and one line for each repeat.
fn figure(cells: &[Vec<Cell>]) -> Figure {
    let mut panel = Panel::new("Validation")
        .x("step", Scale::Linear)
        .y("log-likelihood, nats a row", Scale::Linear);
    for (index, cells) in cells.iter().enumerate() {
        for (repeat, cell) in cells.iter().enumerate() {
            let label = if repeat == 0 { cell.report.criterion.as_str() } else { "" };
            let line = Series::line(label, Colour::of_series(index), cell.validation.clone());
            panel = panel.series(line);
        }
    }
    Figure { panel_width: 560.0, ..Figure::new(vec![panel]) }
}

impl Comparison {
    /// As a table, for the terminal or a page.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            ("criterion", Align::Left),
            ("test log-likelihood", Align::Right),
            ("± rows", Align::Right),
            ("± log Z", Align::Right),
            ("± seeds", Align::Right),
            ("behind the highest", Align::Left),
            ("proposal", Align::Right),
            ("smallest effective sample size", Align::Right),
            ("steps", Align::Right),
            ("seconds", Align::Right),
        ]);
        let number = |value: f64| format!("{value:.4}");
        for row in &self.criteria {
            let behind = match (row.se_behind_best, row.told_apart) {
                (0.0, true) => "best".into(),
                (0.0, false) => "highest, not told apart".into(),
                (error, told) => {
                    let [low, high] = row.behind_best_interval;
                    let told = if told { "" } else { ", not told apart" };
                    format!("{:.4} ± {error:.4} [{low:.4}, {high:.4}]{told}", row.behind_best)
                }
            };
            table.row([
                row.criterion.clone(),
                nats(row.log_likelihood),
                number(row.se_test),
                number(row.se_log_z),
                row.se_seeds.map_or_else(|| "one seed".into(), number),
                behind,
                number(row.proposal_log_likelihood),
                format!("{:.1} %", 100.0 * row.smallest_effective_sample_size),
                row.steps.to_string(),
                format!("{:.0}", row.seconds),
            ]);
        }
        table
    }

    fn page(&self, figure: &Figure) -> Result<Page> {
        let budget = match self.budget {
            Budget::Steps(steps) => format!("{steps} steps"),
            Budget::Time(Time { seconds, clock: Clock::Wall }) => format!("{seconds} seconds"),
            Budget::Time(Time { seconds, clock: Clock::Processor }) => {
                format!("{seconds} processor seconds")
            }
        };
        let seeds = match self.repeats {
            1 => "one seed: errors are those of rows and log Z alone, and another seed may turn the order".into(),
            repeats => format!("{repeats} seeds"),
        };
        let lead = format!("{budget} for each criterion, {seeds}.");
        let mut page = Page::new(format!("{}: criteria on equal terms", self.source)).lead(lead);
        page = page.section("Test log-likelihood").table(
            "Nats a row, in the units of the data. The difference to the highest is taken row by row, and its error over seeds, rows and log Z; \
             all intervals in brackets hold together in 95 % of cases.",
            &self.table(),
        );
        if let Some(truth) = self.truth {
            page = page.text(&format!("The truth has {truth:.4}."));
        }
        Ok(page.section("Training").figure(figure, "Log-likelihood of the validation part.")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_criterion_is_called_best_only_where_it_is_told_apart() {
        let row = |criterion: &str, behind_best, se_behind_best, told_apart| Compared {
            criterion: criterion.into(),
            log_likelihood: -1.0 - behind_best,
            se_test: 0.01,
            se_log_z: 0.01,
            se_seeds: None,
            behind_best,
            se_behind_best,
            behind_best_interval: [behind_best - 0.02, behind_best + 0.02],
            p_value: if told_apart { 0.01 } else { 0.6 },
            told_apart,
            proposal_log_likelihood: -1.2,
            smallest_effective_sample_size: 0.5,
            steps: 10,
            seconds: 1.0,
        };
        let text = |told_apart| {
            let criteria = vec![row("a", 0.0, 0.0, told_apart), row("b", 0.02, 0.01, told_apart)];
            let (source, budget) = ("some".into(), Budget::Steps(10));
            let comparison = Comparison { source, budget, repeats: 1, truth: None, criteria };
            comparison.table().to_string()
        };
        assert!(text(true).contains("best") && !text(true).contains("not told apart"));
        assert!(
            !text(false).contains("best") && text(false).matches("not told apart").count() == 2
        );
        assert_eq!(text(true).matches("one seed").count(), 2);
    }
}
