//! CSV: one file per curve family, with columns `iteration,median,q25,q75,worst` and the ends of the median's interval.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;

use super::write_atomically;
use crate::{
    error::ReportError,
    number::exact,
    record::{Arm, Experiment},
    summary::Curves,
};

/// The curves as CSV text.
pub fn curves(curves: &Curves) -> String {
    let mut text = String::from("iteration,median,q25,q75,worst,median_low,median_high\n");
    for (iteration, row) in curves.rows() {
        let (low, high) = row.median_interval;
        let values = [row.median, row.q25, row.q75, row.worst, low, high].map(exact).join(",");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{iteration},{values}");
    }
    text
}

/// The median acceptance probabilities of an arm as CSV text, one column per rule.
pub fn acceptance(arm: &Arm) -> String {
    let rules: Vec<String> = arm.acceptance.keys().map(|rule| field(rule)).collect();
    let mut text = format!("iteration,{}\n", rules.join(","));
    for (row, iteration) in arm.curves.iterations.iter().enumerate() {
        let value = |values: &Vec<f64>| values.get(row).copied().map(exact).unwrap_or_default();
        let values: Vec<String> = arm.acceptance.values().map(value).collect();
        let _ = writeln!(text, "{iteration},{}", values.join(","));
    }
    text
}

/// Writes `FAMILY-ARM.csv` for every arm and `acceptance-ARM.csv` where it was measured; gives the paths.
pub fn write_arms(
    directory: &Path,
    family: &str,
    experiment: &Experiment,
) -> Result<Vec<PathBuf>, ReportError> {
    let mut files: IndexMap<String, (&str, String)> = IndexMap::new();
    for (name, arm) in &experiment.arms {
        let mut pieces = vec![(family, curves(&arm.curves))];
        if !arm.acceptance.is_empty() {
            pieces.push(("acceptance", acceptance(arm)));
        }
        for (prefix, text) in pieces {
            let file = format!("{}-{}.csv", file_word(prefix), file_word(name));
            if let Some((first, _)) = files.insert(file.clone(), (name, text)) {
                return Err(ReportError::Unusable(format!(
                    "the arms `{first}` and `{name}` would both be written to {file}; rename one of them"
                )));
            }
        }
    }
    let write = |(file, (_, text)): (String, (&str, String))| {
        let path = directory.join(file);
        write_atomically(&path, text.as_bytes()).map(|()| path)
    };
    files.into_iter().map(write).collect()
}

/// A name with everything but letters, digits, `-`, `_` and `.` replaced, so that it stays in its directory.
fn file_word(name: &str) -> String {
    let name = name.trim_start_matches('.');
    name.replace(|c: char| !c.is_alphanumeric() && !"-_.".contains(c), "-")
}

/// A CSV field, quoted if it has to be.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}
