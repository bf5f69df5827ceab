//! What the commands that read a table, most of them for a fitted model, have in common.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zhat::ranks::Workers;
use zhat::watch::Watch;
use zhat_table::data::{self, parse_delimiter};
use zhat_table::data::{Format, Header, Missing, Precision, ReadOptions, TableWriter};
use zhat_table::fitted::Fitted;
use zhat_table::run::Integrity;

use super::device_options::DeviceOptions;
use crate::interrupt;
use crate::output::is_stdout;
use crate::ranks;

/// The run whose model is used.
#[derive(clap::Args)]
pub struct RunOptions {
    /// Run directory of a fit
    pub run: PathBuf,
    #[command(flatten)]
    device: DeviceOptions,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    modified: ModifiedOptions,
}

impl RunOptions {
    /// Opens the model, and gives what it is watched by.
    pub fn open(&self) -> anyhow::Result<(Fitted, Arc<Watch>)> {
        let watch = interrupt::watch()?;
        let workers = self.device.workers()?;
        Ok((self.modified.open(&self.run, workers, &watch)?, watch))
    }

    /// Opens another model in the same way.
    pub fn open_other(&self, run: &Path, watch: &Arc<Watch>) -> anyhow::Result<Fitted> {
        self.modified.open(run, self.device.alone()?, watch)
    }
}

/// Whether a run has to be as its fit wrote it.
#[derive(clap::Args)]
pub struct ModifiedOptions {
    /// Take a model that is not as its fit wrote it, because it was edited on purpose
    #[arg(long)]
    allow_modified: bool,
}

impl ModifiedOptions {
    /// Opens a model.
    pub fn open(
        &self,
        run: &Path,
        workers: impl Into<Workers>,
        watch: &Arc<Watch>,
    ) -> anyhow::Result<Fitted> {
        let integrity = match self.allow_modified {
            true => Integrity::AllowModified,
            false => Integrity::Checked,
        };
        let fitted = Fitted::open_as(run, workers, Arc::clone(watch), integrity)?;
        if !fitted.is_whole() {
            eprintln!("warning: the model of {} is not as its fit wrote it", run.display());
        }
        Ok(fitted)
    }
}

/// How a file is read.
#[derive(clap::Args)]
pub struct FileOptions {
    /// What separates the cells of a text file: one character, or tab, space, comma, semicolon, pipe
    #[arg(long, value_parser = |text: &str| parse_delimiter(text).map_err(|e| e.to_string()))]
    delimiter: Option<char>,
    /// Whether the first line of a text file holds the names of the columns
    #[arg(long)]
    header: Option<Header>,
    /// Format of the file, where its name does not say it
    #[arg(long)]
    format: Option<Format>,
    /// Read no more than this many rows
    #[arg(long)]
    max_rows: Option<usize>,
    /// Refuse lines of a text file that are longer than this [default: 16777216]
    #[arg(long, value_name = "BYTES")]
    max_line_bytes: Option<usize>,
    /// Refuse files with more columns than this [default: 65536]
    #[arg(long, value_name = "NUMBER")]
    max_columns: Option<usize>,
}

impl FileOptions {
    /// What is given goes before what was there.
    pub fn put_into(&self, read: &mut ReadOptions) {
        read.delimiter = self.delimiter.or(read.delimiter);
        read.format = self.format.or(read.format);
        read.max_rows = self.max_rows.or(read.max_rows);
        read.max_line_bytes = self.max_line_bytes.or(read.max_line_bytes);
        read.max_columns = self.max_columns.or(read.max_columns);
        read.header = self.header.unwrap_or(read.header);
    }
}

/// How a table is read for a model that has its columns.
#[derive(clap::Args)]
pub struct TableOptions {
    /// Columns that stand for the model's, in the model's order, by name or position
    #[arg(long, value_delimiter = ',')]
    columns: Vec<String>,
    #[command(flatten)]
    file: FileOptions,
}

impl TableOptions {
    /// As the reader wants it.
    pub fn read(&self, missing: Missing) -> ReadOptions {
        let mut read =
            ReadOptions { columns: self.columns.clone(), missing, ..ReadOptions::default() };
        self.file.put_into(&mut read);
        read
    }
}

/// Where rows are written.
#[derive(clap::Args)]
pub struct OutputOptions {
    /// File for the rows (.csv, .tsv, .npy, .parquet), or a pipe; CSV to standard output without it, or with -
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl OutputOptions {
    /// Begins the output.
    pub fn create(&self, columns: &[String], precision: Precision) -> anyhow::Result<TableWriter> {
        Ok(self.begin(columns, precision)?)
    }

    /// The same, for what is begun elsewhere.
    pub fn begin(&self, columns: &[String], precision: Precision) -> data::Result<TableWriter> {
        match self.file() {
            _ if !ranks::is_first() => TableWriter::nowhere(columns),
            Some(path) => TableWriter::create(path, columns, precision),
            None => TableWriter::stdout(columns, precision),
        }
    }

    /// Whether the rows are written as text, which holds words.
    pub fn is_text(&self) -> bool {
        self.file()
            .is_none_or(|path| TableWriter::format_of(path).is_ok_and(|found| found == Format::Csv))
    }

    /// Whether the rows go to standard output.
    pub fn is_stdout(&self) -> bool {
        self.file().is_none()
    }

    /// The file, if it is not standard output.
    pub fn file(&self) -> Option<&PathBuf> {
        self.out.as_ref().filter(|path| !is_stdout(path))
    }

    /// Tells about the rows: to standard output, unless the rows themselves go there.
    pub fn tell(&self, text: &str) {
        match self.file() {
            Some(path) => println!("{text}\n{}", path.display()),
            None => eprintln!("{text}"),
        }
    }
}
