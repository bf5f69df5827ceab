//! Pages: `report.html` about a run, or one page about several.

mod comparison;
mod conditionals;
mod correlations;
mod limits;
mod marginals;
mod pictures;
mod rows_and_draws;
mod sections;
mod shown;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

pub use sections::kinds_table;
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

/// A page with pictures, or with a notice in their place: one that cannot be drawn costs nothing but itself.
fn drawn(page: Page, what: &str, draw: impl FnOnce(Page) -> Result<Page>) -> Result<Page> {
    let without = page.clone();
    match catch_unwind(AssertUnwindSafe(|| draw(page))) {
        Ok(Err(error)) if error.is_stop() => Err(error),
        Ok(Err(error)) => Ok(without.notice(&format!("{what} could not be drawn: {error}"))),
        Ok(done) => done,
        Err(_) => Ok(without.notice(&format!(
            "{what} could not be drawn. This is a mistake in zhat; the numbers on this page do not depend on it."
        ))),
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
    let page = Page::new(title).lead(sections::lead(result)).with_contents();
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
    (1..)
        .zip(text.lines())
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| {
                // Every line is a document of its own to the parser.
                let told = error.to_string();
                let what = told.rsplit_once(" at line 1 ").map_or(&*told, |(what, _)| what);
                let reason = format!("line {number}, column {}: {what}", error.column());
                TableError::model(&path, reason)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_that_cannot_be_drawn_costs_nothing_but_itself() {
        let page = || Page::new("A page").text("The number is 7.");
        for broken in [
            |_: Page| -> Result<Page> { panic!("a mistake in a picture") },
            |_: Page| Err(TableError::config("no data".into())),
        ] {
            let html = drawn(page(), "The pairs", broken).unwrap().to_html();
            assert!(html.contains("The number is 7.") && html.contains("The pairs could not"));
        }
        let html = drawn(page(), "The pairs", |page| Ok(page.text("Here."))).unwrap().to_html();
        assert!(html.contains("Here.") && !html.contains("could not"));
        let stopped = drawn(page(), "The pairs", |_| Err(zhat::Error::Stopped.into()));
        assert!(stopped.is_err(), "whoever stops the program wants no page");
    }
}
