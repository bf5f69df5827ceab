//! What the commands that read a table, most of them for a fitted model, have in common.

use std::path::PathBuf;
use std::sync::Arc;

use zhat::watch::Watch;
use zhat_table::data::{self, parse_delimiter};
use zhat_table::data::{Format, Header, Missing, Precision, ReadOptions, TableWriter};
use zhat_table::fitted::Fitted;

use crate::interrupt;

/// The run whose model is used.
#[derive(clap::Args)]
pub struct RunOptions {
    /// Run directory of a fit
    pub run: PathBuf,
    /// Threads; 0 for as many as there are cores
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

impl RunOptions {
    /// Opens the model, and gives what it is watched by.
    pub fn open(&self) -> anyhow::Result<(Fitted, Arc<Watch>)> {
        let watch = interrupt::watch()?;
        Ok((Fitted::open(&self.run, self.threads, Arc::clone(&watch))?, watch))
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
    /// File for the rows (.csv, .tsv, .npy, .parquet); CSV to standard output without it
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
        match &self.out {
            Some(path) => TableWriter::create(path, columns, precision),
            None => TableWriter::stdout(columns, precision),
        }
    }

    /// Tells about the rows: to standard output, unless the rows themselves go there.
    pub fn tell(&self, text: &str) {
        match &self.out {
            Some(path) => println!("{text}\n{}", path.display()),
            None => eprintln!("{text}"),
        }
    }
}
