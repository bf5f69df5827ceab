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
    /// A file could not be read.
    #[error("cannot read {}: {source}; check the path", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is not a record of an experiment; the source names line and column.
    #[error("{} is not a record of an experiment: {source}; write it again with `zhat reproduce`", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why parsing stopped.
        source: serde_json::Error,
    },
    /// A record could not be turned into JSON.
    #[error("cannot turn the results into JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A summary was asked of no runs at all.
    #[error("there are no finished runs to summarise; let at least one run finish")]
    NoRuns,
    /// A summary was asked at an iteration that a run does not have.
    #[error(
        "iteration {iteration} was asked for, but run {run} has iterations 1 to {length}; \
         summarise up to the shortest run"
    )]
    NoSuchIteration {
        /// The run, counted from 0.
        run: usize,
        /// The iteration, counted from 1.
        iteration: usize,
        /// How many iterations the run has.
        length: usize,
    },
    /// Two lists that belong together differ in length.
    #[error(
        "{place}: {left} has {left_length} values, but {right} has {right_length}; give one for each"
    )]
    UnequalLengths {
        /// The curve, series or grid.
        place: String,
        /// The first list.
        left: &'static str,
        /// Its length.
        left_length: usize,
        /// The second list.
        right: &'static str,
        /// Its length.
        right_length: usize,
    },
    /// Two arms would be written to one file.
    #[error(
        "the arms `{first}` and `{second}` would both be written to {file}; rename one of them"
    )]
    SameFile {
        /// One arm.
        first: String,
        /// The other.
        second: String,
        /// The file's name.
        file: String,
    },
    /// A panel's limits cannot be drawn.
    #[error(
        "panel `{panel}`: the limits {low} to {high} of the {axis} axis are not an increasing range{hint}"
    )]
    BadLimits {
        /// The panel's title.
        panel: String,
        /// "x" or "y".
        axis: &'static str,
        /// The lower limit.
        low: f64,
        /// The upper limit.
        high: f64,
        /// What else is asked of the limits.
        hint: &'static str,
    },
    /// A figure has nothing to draw.
    #[error("the figure has no panels; give it at least one")]
    NoPanels,
    /// A figure could not be drawn or rasterised.
    #[error("cannot draw the figure: {0}")]
    Drawing(String),
}
