//! What can go wrong with tables and runs, in words that name the place and say what to do.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::data;

/// A result with a [`TableError`].
pub type Result<T> = std::result::Result<T, TableError>;

/// Everything that can stop a fit.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message above each variant says what its fields are")]
pub enum TableError {
    #[error(transparent)]
    Data(#[from] data::Error),

    #[error(transparent)]
    Zhat(#[from] zhat::Error),

    #[error(transparent)]
    Report(#[from] zhat_report::ReportError),

    #[error("{}: {source}. Check that the directory exists, can be written and has room.", path.display())]
    Io { path: PathBuf, source: std::io::Error },

    #[error("configuration: {reason}")]
    Config { reason: String },

    #[error("{} holds a run already. Give another directory, resume the run, or remove it.", path.display())]
    RunExists { path: PathBuf },

    #[error("{} is written by {holder}. Wait until it has ended, stop it, or give another directory.", path.display())]
    Locked { path: PathBuf, holder: String },

    #[error("{}: {reason}. Fit or copy the run again, or take it as it is with `allow-modified`.", path.display())]
    Modified { path: PathBuf, reason: String },

    #[error("{} is not a run: it has no config.toml. Give the directory of a fit.", path.display())]
    NotARun { path: PathBuf },

    #[error("{} is not finished: it has no {file} yet. Resume its fit.", path.display())]
    Unfinished { path: PathBuf, file: &'static str },

    #[error(
        "the model has no Z, and so no log-densities: it does not fall far out; column {column}, given those before it, has {figures}. Fit it with model.energy-form=tilted, or with model.confine=8."
    )]
    NoZ { column: String, figures: String },

    #[error("{}: {reason}.", path.display())]
    Model { path: PathBuf, reason: String },

    #[error(
        "the data are not those the run was started with (hash {found}, not {expected}). Resume with the same data and columns."
    )]
    OtherData { expected: String, found: String },
}

impl TableError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        TableError::Io { path: path.to_owned(), source }
    }

    pub(crate) fn config(reason: String) -> Self {
        TableError::Config { reason: reason.trim_end().to_owned() }
    }

    /// A setting outside its range: its name, what was given, and what it must be.
    pub(crate) fn setting(
        name: &'static str,
        value: impl ToString,
        expected: impl Into<String>,
    ) -> Self {
        let (value, expected) = (value.to_string(), expected.into());
        TableError::Zhat(zhat::Error::InvalidSetting { name, value, expected })
    }

    pub(crate) fn modified(path: &Path, reason: impl Into<String>) -> Self {
        TableError::Modified { path: path.to_owned(), reason: reason.into() }
    }

    /// Whether the work was told to stop.
    pub fn is_stop(&self) -> bool {
        matches!(
            self,
            TableError::Data(data::Error::Stopped) | TableError::Zhat(zhat::Error::Stopped)
        )
    }

    pub(crate) fn model(path: &Path, reason: String) -> Self {
        TableError::Model { path: path.to_owned(), reason }
    }

    /// Whether the user can mend it by another input or setting.
    pub fn is_input(&self) -> bool {
        use zhat::Error::{Diverged, Stopped};
        !matches!(
            self,
            TableError::Report(_)
                | TableError::Data(data::Error::Stopped)
                | TableError::Zhat(Stopped | Diverged { .. })
        )
    }
}
