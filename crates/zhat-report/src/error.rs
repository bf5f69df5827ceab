//! What can go wrong when results are summarised, drawn or written, and what to do about it.

use std::path::PathBuf;

/// Everything that this crate can fail with.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or directory could not be written.
    #[error("cannot write {}: {source}; choose an output directory that can be written to", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A record could not be turned into JSON.
    #[error("cannot turn the results into JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// What was given cannot be summarised, drawn or written; the text names it and says what to give instead.
    #[error("{0}")]
    Unusable(String),
    /// A figure could not be drawn or rasterised.
    #[error("cannot draw the figure: {0}")]
    Drawing(String),
}
