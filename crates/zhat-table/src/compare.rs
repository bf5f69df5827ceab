//! Several criteria on equal terms: the same data, the same budget, one table, one figure.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zhat::criterion::Method;
use zhat::watch::Watch;
use zhat_report::figure::{Colour, Figure, Panel, Scale, Series};
use zhat_report::page::Page;
use zhat_report::{Align, Table, export};

use crate::error::{Result, TableError};
use crate::fit::{Event, FitConfig, FitReport, MetricsRecord, Session, StepTimer, mean_and_error};
use crate::fitted::Fitted;
use crate::prepare::{Prepared, prepare};
use crate::run::RunDirectory;

/// What every criterion gets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// As many steps.
    Steps(u64),
    /// As many steps as take this many seconds, evaluation not counted.
    Seconds(f64),
}

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// The criteria.
    pub criteria: Vec<Method>,
    /// What every criterion gets.
    pub budget: Budget,
    /// Fits of every criterion, each with a seed of its own for split, start and draws; the criteria share them.
    pub repeats: u64,
    /// Threads; 0 for as many as there are cores.
    pub threads: usize,
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
    /// Its standard error from the finite number of test rows.
    pub se_test: f64,
    /// Its standard error from the estimates of `log Z`.
    pub se_log_z: f64,
    /// Its standard error over the repeats, if there are several.
    pub se_repeats: Option<f64>,
    /// How much the best criterion is ahead, row by row.
    pub behind_best: f64,
    /// Standard error of that, with the rows paired; zero for the best.
    pub se_behind_best: f64,
    /// The proposal's own log-likelihood.
    pub proposal_log_likelihood: f64,
    /// Smallest effective sample size of a stage, as a share of the particles.
    pub smallest_ess: f64,
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
    directory: PathBuf,
    report: FitReport,
    /// Log-density of every test row but for `log Z` and the units.
    log_p_tilde: Vec<f64>,
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
    validate(options)?;
    if out.join("comparison.json").exists() && !options.resume {
        return Err(TableError::RunExists { path: out.to_owned() });
    }
    fs::create_dir_all(out).map_err(|source| TableError::io(out, source))?;
    let mut cells: Vec<Vec<Cell>> = options.criteria.iter().map(|_| Vec::new()).collect();
    for repeat in 0..options.repeats {
        let config = FitConfig { seed: base.seed + repeat, ..base.clone() };
        let data = prepare(&config)?;
        if repeat == 0 {
            data.notes.iter().for_each(|note| observer("", &Event::Warning(note)));
        }
        for (&criterion, cells) in options.criteria.iter().zip(&mut cells) {
            let name = format!("{}-{}", criterion.name(), repeat + 1);
            let mut config = config.clone();
            config.step.criterion = criterion;
            let directory = out.join(&name);
            let mut tell = |event: &Event| observer(&name, event);
            match cell(config, &data, options, directory, watch, &mut tell)? {
                Some(cell) => cells.push(cell),
                None => return Ok(None),
            }
        }
    }
    let comparison = summarise(base, options, &cells);
    let figure = figure(&cells)?;
    export::figure::write(out, "comparison", &figure)?;
    let json = serde_json::to_vec_pretty(&comparison).expect("a comparison is plain data");
    crate::run::write_atomically(&out.join("comparison.json"), &json)?;
    export::page::write(&out.join("report.html"), &comparison.page(&figure)?)?;
    Ok(Some(comparison))
}

fn validate(options: &CompareOptions) -> Result<()> {
    let wrong = |reason: &str| Err(TableError::Config { reason: reason.into() });
    if options.criteria.is_empty() {
        return wrong("--criteria: name at least one");
    }
    if options.repeats == 0 {
        return wrong("--repeats is 0, but must be at least 1");
    }
    for (index, criterion) in options.criteria.iter().enumerate() {
        if options.criteria[..index].contains(criterion) {
            return wrong(&format!("--criteria: {} is named twice", criterion.name()));
        }
    }
    match options.budget {
        Budget::Steps(0) => wrong("--steps is 0, but must be at least 1"),
        Budget::Seconds(seconds) if !(seconds.is_finite() && seconds > 0.0) => {
            wrong("--seconds must be larger than zero")
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
    let known = RunDirectory::open(&directory).ok();
    if known.is_some() && !options.resume {
        return Err(TableError::RunExists { path: directory });
    }
    let share = config.step.warm_up as f64 / config.training.num_steps as f64;
    let steps = match (options.budget, &known) {
        (Budget::Steps(steps), _) => steps,
        // What was timed at the start counts: another timing would make another run.
        (Budget::Seconds(_), Some(run)) => FitConfig::read(&run.config())?.training.num_steps,
        (Budget::Seconds(seconds), None) => {
            let mut timer = StepTimer::new(&config, data, options.threads)?;
            for _ in 0..StepTimer::ROUNDS {
                timer.round()?;
            }
            timer.medians().steps_within(seconds, share)
        }
    };
    config.scale_to(steps);
    let mut session = match &known {
        None => Session::start(config, data.clone(), &directory, options.threads)?,
        Some(run) => {
            if FitConfig::read(&run.config())? != config {
                let reason = format!(
                    "{} was fitted with other settings; give the same ones, or another --out",
                    directory.display()
                );
                return Err(TableError::Config { reason });
            }
            if let Some(report) = read_report(run) {
                return read_cell(directory, report, data, options.threads).map(Some);
            }
            Session::resume(config, data.clone(), &directory, options.threads)?.0
        }
    };
    match session.run(None, watch, &mut |event: &Event| observer(event))? {
        Some(report) => read_cell(directory, report, data, options.threads).map(Some),
        None => Ok(None),
    }
}

fn read_report(run: &RunDirectory) -> Option<FitReport> {
    serde_json::from_slice(&fs::read(run.results()).ok()?).ok()
}

fn read_cell(
    directory: PathBuf,
    report: FitReport,
    data: &Prepared,
    threads: usize,
) -> Result<Cell> {
    let fitted = Fitted::open(&directory, threads, Default::default())?;
    let log_p_tilde = fitted.evaluator().score(&data.test).log_p_tilde;
    Ok(Cell { directory, report, log_p_tilde })
}

fn summarise(base: &FitConfig, options: &CompareOptions, cells: &[Vec<Cell>]) -> Comparison {
    let mean = |cells: &[Cell], of: &dyn Fn(&FitReport) -> f64| {
        cells.iter().map(|cell| of(&cell.report)).sum::<f64>() / cells.len() as f64
    };
    let likelihoods: Vec<f64> =
        cells.iter().map(|cells| mean(cells, &|report| report.test.log_likelihood)).collect();
    let best = (0..cells.len())
        .max_by(|&a, &b| likelihoods[a].total_cmp(&likelihoods[b]))
        .expect("at least one criterion");
    let repeats = options.repeats as f64;
    // Independent over the repeats: variances add up.
    let error = |cells: &[Cell], of: &dyn Fn(&FitReport) -> f64| {
        (mean(cells, &|report| of(report).powi(2)) / repeats).sqrt()
    };
    let criteria =
        options.criteria.iter().zip(cells).enumerate().map(|(index, (criterion, own))| {
            let values: Vec<f64> = own.iter().map(|cell| cell.report.test.log_likelihood).collect();
            let (behind_best, se_behind_best) = match index == best {
                true => (0.0, 0.0),
                false => behind(&cells[best], own),
            };
            Compared {
                criterion: criterion.name().into(),
                log_likelihood: likelihoods[index],
                se_test: error(own, &|report| report.test.se_test),
                se_log_z: error(own, &|report| report.test.se_log_z),
                se_repeats: (own.len() > 1).then(|| mean_and_error(&values).1),
                behind_best,
                se_behind_best,
                proposal_log_likelihood: mean(own, &|report| report.test.proposal_log_likelihood),
                smallest_ess: own
                    .iter()
                    .map(|cell| cell.report.test.smallest_ess)
                    .fold(f64::INFINITY, f64::min),
                steps: own[0].report.steps,
                seconds: own.iter().map(|cell| cell.report.seconds).sum(),
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

/// Mean of how much one criterion is ahead of another, and its standard error: the test rows are the same for both, so
/// that what is common to them cancels.
fn behind(ahead: &[Cell], own: &[Cell]) -> (f64, f64) {
    let (mut sum, mut variance) = (0.0, 0.0);
    for (a, b) in ahead.iter().zip(own) {
        let rows: Vec<f64> = a.log_p_tilde.iter().zip(&b.log_p_tilde).map(|(a, b)| a - b).collect();
        let (mean, error) = mean_and_error(&rows);
        let (a, b) = (&a.report.test, &b.report.test);
        sum += mean - a.log_z + b.log_z;
        variance += error.powi(2) + a.se_log_z.powi(2) + b.se_log_z.powi(2);
    }
    let repeats = own.len() as f64;
    (sum / repeats, variance.sqrt() / repeats)
}

/// Validation curves, one colour for each criterion and one line for each repeat.
fn figure(cells: &[Vec<Cell>]) -> Result<Figure> {
    let mut panel = Panel::new("Validation")
        .x("step", Scale::Linear)
        .y("log-likelihood, nats a row", Scale::Linear);
    for (index, cells) in cells.iter().enumerate() {
        for (repeat, cell) in cells.iter().enumerate() {
            let run = RunDirectory::open(&cell.directory)?;
            let path = run.metrics();
            let text = fs::read_to_string(&path).map_err(|source| TableError::io(&path, source))?;
            let points = text
                .lines()
                .filter_map(|line| serde_json::from_str::<MetricsRecord>(line).ok())
                // While the proposal alone is trained, the model says nothing yet.
                .filter(|line| line.step > warm_up(&run))
                .filter_map(|line| Some((line.step as f64, line.validation?)));
            let label = if repeat == 0 { cell.report.criterion.as_str() } else { "" };
            panel = panel.series(Series::line(label, Colour::of_series(index), points.collect()));
        }
    }
    Ok(Figure { panel_width: 560.0, ..Figure::new(vec![panel]) })
}

fn warm_up(run: &RunDirectory) -> u64 {
    FitConfig::read(&run.config()).map_or(0, |config| config.step.warm_up)
}

impl Comparison {
    /// As a table, for the terminal or a page.
    pub fn table(&self) -> Table {
        let mut columns = vec![
            ("criterion", Align::Left),
            ("test log-likelihood", Align::Right),
            ("± rows", Align::Right),
            ("± log Z", Align::Right),
        ];
        if self.repeats > 1 {
            columns.push(("± repeats", Align::Right));
        }
        columns.extend([
            ("behind the best", Align::Right),
            ("proposal", Align::Right),
            ("smallest ESS", Align::Right),
            ("steps", Align::Right),
            ("seconds", Align::Right),
        ]);
        let mut table = Table::new(columns);
        for row in &self.criteria {
            let mut cells = vec![
                row.criterion.clone(),
                format!("{:.4}", row.log_likelihood),
                format!("{:.4}", row.se_test),
                format!("{:.4}", row.se_log_z),
            ];
            cells.extend(row.se_repeats.map(|error| format!("{error:.4}")));
            cells.extend([
                match row.se_behind_best {
                    0.0 => "best".into(),
                    error => format!("{:.4} ± {error:.4}", row.behind_best),
                },
                format!("{:.4}", row.proposal_log_likelihood),
                format!("{:.1} %", 100.0 * row.smallest_ess),
                row.steps.to_string(),
                format!("{:.0}", row.seconds),
            ]);
            table.row(cells);
        }
        table
    }

    fn page(&self, figure: &Figure) -> Result<Page> {
        let budget = match self.budget {
            Budget::Steps(steps) => format!("{steps} steps"),
            Budget::Seconds(seconds) => format!("{seconds} seconds"),
        };
        let fits = if self.repeats == 1 { "fit" } else { "fits" };
        let lead = format!("{budget} for each criterion, {} {fits} of each.", self.repeats);
        let mut page = Page::new(format!("{}: criteria on equal terms", self.source)).lead(lead);
        page = page.section("Test log-likelihood").table(
            "Nats a row, in the units of the data. The difference to the best is taken row by row.",
            &self.table(),
        );
        if let Some(truth) = self.truth {
            page = page.text(&format!("The truth has {truth:.4}."));
        }
        Ok(page.section("Training").figure(figure, "Log-likelihood of the validation part.")?)
    }
}
