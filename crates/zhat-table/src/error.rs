//! What can go wrong with tables and runs, in words that name the place and say what to do.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::data;

/// A result with a [`TableError`].
pub type Result<T> = std::result::Result<T, TableError>;

/// Everything that can stop a fit.
#[derive(Debug, Error)]
pub enum TableError {
    /// The data.
    #[error(transparent)]
    Data(#[from] data::Error),

    /// The mathematics, or a setting of it.
    #[error(transparent)]
    Zhat(#[from] zhat::Error),

    /// A page or figure.
    #[error(transparent)]
    Report(#[from] zhat_report::ReportError),

    /// A file or directory.
    #[error("{}: {source}. Check that the directory exists, can be written and has room.", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },

    /// The configuration.
    #[error("configuration: {reason}")]
    Config {
        /// What is wrong with it.
        reason: String,
    },

    /// A new run into a directory that has one.
    #[error("{} holds a run already. Give another directory, resume the run, or remove it.", path.display())]
    RunExists {
        /// The directory.
        path: PathBuf,
    },

    /// A directory that is no run.
    #[error("{} is not a run: it has no config.toml. Give the directory of a fit.", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
    },

    /// A run whose fit has not ended.
    #[error("{} is not finished: it has no {file} yet. Resume its fit.", path.display())]
    Unfinished {
        /// The directory.
        path: PathBuf,
        /// What is not there.
        file: &'static str,
    },

    /// A model file.
    #[error("{}: {reason}.", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A run that is taken up with other data.
    #[error(
        "the data are not those the run was started with (hash {found}, not {expected}). Resume with the same data and columns."
    )]
    OtherData {
        /// Hash of the run's data.
        expected: String,
        /// Hash of the data given.
        found: String,
    },
}

impl TableError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        TableError::Io { path: path.to_owned(), source }
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
