//! `results.json`: the record itself.

use std::path::Path;

use super::write_atomically;
use crate::{error::ReportError, record::Experiment};

/// Writes the record to `path`.
pub fn write(path: &Path, experiment: &Experiment) -> Result<(), ReportError> {
    write_atomically(path, experiment.to_json()?.as_bytes())
}
