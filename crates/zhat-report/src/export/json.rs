//! `results.json`: the record itself.

use std::{fs, path::Path};

use super::write_atomically;
use crate::{error::ReportError, record::Experiment};

/// Writes the record to `path`.
pub fn write(path: &Path, experiment: &Experiment) -> Result<(), ReportError> {
    write_atomically(path, experiment.to_json()?.as_bytes())
}

/// Reads a record back.
pub fn read(path: &Path) -> Result<Experiment, ReportError> {
    let text = fs::read_to_string(path)
        .map_err(|source| ReportError::Read { path: path.into(), source })?;
    serde_json::from_str(&text)
        .map_err(|source| ReportError::Malformed { path: path.into(), source })
}
