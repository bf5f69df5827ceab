//! Pages: `report.html` about a run, or one page about several.

mod comparison;
mod pictures;
mod sections;

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use sections::validation_curve;
use zhat_report::export;
use zhat_report::page::Page;

use crate::error::{Result, TableError};
use crate::fit::{FitConfig, FitReport, MetricsRecord};
use crate::fitted::Fitted;
use crate::run::RunDirectory;

/// Writes the page of a finished run and gives its path.
pub fn write(fitted: &Fitted) -> Result<PathBuf> {
    let path = fitted.run().report();
    write_to(std::slice::from_ref(fitted), &path)?;
    Ok(path)
}

/// Writes one page about finished runs to `path`: with several of them, how they compare, and then each by itself.
///
/// # Panics
/// If there is no run.
pub fn write_to(runs: &[Fitted], path: &Path) -> Result<()> {
    Ok(export::page::write(path, &page(runs)?)?)
}

/// The page about finished runs.
///
/// # Panics
/// If there is no run.
pub fn page(runs: &[Fitted]) -> Result<Page> {
    assert!(!runs.is_empty(), "at least one run");
    let names = names(runs);
    let runs: Vec<Finished> = runs
        .iter()
        .zip(names)
        .map(|(run, name)| Finished::read(run, name))
        .collect::<Result<_>>()?;
    match runs.as_slice() {
        [run] => single(run),
        runs => comparison::page(runs),
    }
}

/// What a finished run left behind.
struct Finished<'a> {
    fitted: &'a Fitted,
    name: String,
    result: FitReport,
    config: FitConfig,
    metrics: Vec<MetricsRecord>,
}

impl<'a> Finished<'a> {
    fn read(fitted: &'a Fitted, name: String) -> Result<Self> {
        let run = fitted.run();
        if !run.results().is_file() {
            let path = run.root().to_owned();
            return Err(TableError::Unfinished { path, file: "results.json" });
        }
        Ok(Self {
            fitted,
            name,
            result: fitted.results()?.0,
            config: fitted.config()?,
            metrics: read_metrics(run)?,
        })
    }
}

fn single(run: &Finished) -> Result<Page> {
    let result = &run.result;
    let title = format!("{}: a density by {}", result.source, result.criterion);
    let page = Page::new(title).lead(sections::lead(result));
    let footer = format!("zhat {}, {:.1} s", result.version, result.seconds);
    Ok(sections::all(page, run, Page::section)?.footer(footer))
}

/// The directories' own names, or their paths where two have the same.
fn names(runs: &[Fitted]) -> Vec<String> {
    let short: Vec<String> = runs
        .iter()
        .map(|run| {
            let root = run.run().root();
            let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
            root.file_name().unwrap_or(root.as_os_str()).to_string_lossy().into_owned()
        })
        .collect();
    let twice = |name: &String| short.iter().filter(|other| *other == name).count() > 1;
    let name = |(run, name): (&Fitted, &String)| match twice(name) {
        true => run.run().root().display().to_string(),
        false => name.clone(),
    };
    runs.iter().zip(&short).map(name).collect()
}

pub(crate) fn read_metrics(run: &RunDirectory) -> Result<Vec<MetricsRecord>> {
    let path = run.metrics();
    let text = fs::read_to_string(&path).map_err(|source| TableError::io(&path, source))?;
    text.lines()
        .map(|line| {
            serde_json::from_str(line).map_err(|error| TableError::model(&path, error.to_string()))
        })
        .collect()
}
