//! All four combinations of `N` and `J` on one page: both figures of the appendix.

use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;
use zhat_report::figure::Figure;
use zhat_report::page::Page;
use zhat_report::{Experiment, ReportError, export};

use super::Results;
use crate::experiment::Report;

/// `(N, J)` in the order of the paper's figures.
pub const COMBINATIONS: [(usize, usize); 4] = [(200, 5), (200, 10), (1000, 5), (1000, 10)];

/// The reports of several combinations, and what they give together.
#[derive(Debug, Clone)]
pub struct Combined {
    /// Each with the name of its directory, such as `n200-j5`.
    pub reports: Vec<(String, Report)>,
    figure: Figure,
}

/// `results.json` of several combinations: the record of each, by the name of its directory.
#[derive(Serialize)]
struct Document<'a> {
    experiment: &'static str,
    version: &'static str,
    seconds: f64,
    threads: usize,
    combinations: IndexMap<&'a str, &'a Experiment>,
}

impl Combined {
    /// From the results of each combination with its seconds.
    pub fn new(results: &[(Results, f64)], threads: usize) -> Result<Self, ReportError> {
        let (mut reports, mut panels) = (Vec::new(), Vec::new());
        for (results, seconds) in results {
            let (samples, negatives) = (results.settings.samples, results.settings.negatives);
            let name = format!("n{samples}-j{negatives}");
            reports.push((name, results.report(*seconds, threads)?));
            panels.extend(results.panels()?.into_iter().map(|mut panel| {
                panel.title = format!("{} (N = {samples}, J = {negatives})", panel.title);
                panel
            }));
        }
        Ok(Self { reports, figure: Figure::new(panels).with_columns(3) })
    }

    /// The document of `results.json`.
    pub fn to_json(&self) -> Result<String, ReportError> {
        let records = self.reports.iter().map(|(name, report)| (&**name, &report.experiment));
        let document = Document {
            experiment: "ring",
            version: env!("CARGO_PKG_VERSION"),
            seconds: records.clone().map(|(_, record)| record.seconds).sum(),
            threads: records.clone().map(|(_, record)| record.threads).max().unwrap_or(0),
            combinations: records.collect(),
        };
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }

    /// The page: claims, figure and final values of every combination.
    pub fn page(&self) -> Result<Page, ReportError> {
        let mut page = Page::new("Ring model: acceptance rule and persistence in CNCE").lead(
            "Four ways to estimate the precision of a ring in five dimensions, with few and many training points N and negatives \
             J: the acceptance probability of CNCE or of Metropolis-Hastings, with chains that start at the data or persist.",
        );
        let interrupted = self.reports.iter().any(|(_, report)| report.experiment.interrupted);
        page = page.interrupted(interrupted);
        for (_, report) in &self.reports {
            let heading = heading(&report.experiment);
            page = page.section(&heading).outcome(&report.experiment, report.figures())?;
        }
        if let Some((_, report)) = self.reports.first() {
            let mut settings = report.experiment.settings.clone();
            settings.retain(|name, _| !["samples", "negatives", "steps"].contains(&name.as_str()));
            page = page.section("Settings of all").settings(&settings);
        }
        Ok(page.footer(format!("zhat {} · ring", env!("CARGO_PKG_VERSION"))))
    }

    /// Writes every combination into a directory of its own, and what they give together beside them.
    pub fn write(&self, directory: &Path) -> Result<(), ReportError> {
        for (name, report) in &self.reports {
            let directory = directory.join(name);
            export::output_directory(&directory)?;
            report.write(&directory)?;
        }
        export::write_atomically(&directory.join("results.json"), self.to_json()?.as_bytes())?;
        export::figure::write(directory, "ring", &self.figure)?;
        export::page::write(&directory.join("report.html"), &self.page()?)
    }
}

fn heading(experiment: &Experiment) -> String {
    let shown = |name: &str| experiment.settings.get(name).map_or(String::new(), |s| s.shown());
    format!("N = {}, J = {}", shown("samples"), shown("negatives"))
}
