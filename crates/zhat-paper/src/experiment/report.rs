//! What an experiment gives: its record, figures and a page, and how they are written.

use std::path::Path;

use serde::Serialize;
use zhat_report::figure::Figure;
use zhat_report::page::Page;
use zhat_report::{Experiment, ReportError, export};

/// A figure, the name of its files, and its caption.
#[derive(Debug, Clone)]
pub struct NamedFigure {
    /// Name of the files, without extension.
    pub name: String,
    /// The figure.
    pub figure: Figure,
    /// What it shows.
    pub caption: String,
}

/// The results of an experiment and how they are shown.
#[derive(Debug, Clone)]
pub struct Report {
    /// The record, which is `results.json`.
    pub experiment: Experiment,
    /// What the curves are of, the first word of the names of the CSV files.
    pub family: &'static str,
    /// Title of the page.
    pub title: String,
    /// The sentences below it.
    pub lead: String,
    /// The figures.
    pub figures: Vec<NamedFigure>,
}

impl Report {
    /// The page.
    pub fn page(&self) -> Result<Page, ReportError> {
        Page::of_experiment(&*self.title, &*self.lead, &self.experiment, self.figures())
    }

    /// The figures with their captions.
    pub(super) fn figures(&self) -> impl Iterator<Item = (&Figure, &str)> {
        self.figures.iter().map(|named| (&named.figure, &*named.caption))
    }

    /// Writes `results.json`, the CSV files, the figures and `report.html`.
    pub fn write(&self, directory: &Path) -> Result<(), ReportError> {
        export::json::write(&directory.join("results.json"), &self.experiment)?;
        export::csv::write_arms(directory, self.family, &self.experiment)?;
        for named in &self.figures {
            export::figure::write(directory, &named.name, &named.figure)?;
        }
        export::page::write(&directory.join("report.html"), &self.page()?)
    }
}

/// The record of an experiment but for its arms and claims.
pub(super) fn record(
    name: &str,
    settings: &impl Serialize,
    (finished_runs, runs): (usize, usize),
    (seconds, threads): (f64, usize),
) -> Result<Experiment, ReportError> {
    let experiment = Experiment::new(name, env!("CARGO_PKG_VERSION")).with_settings(settings)?;
    let interrupted = finished_runs < runs;
    Ok(Experiment { seconds, threads, finished_runs, interrupted, ..experiment })
}
