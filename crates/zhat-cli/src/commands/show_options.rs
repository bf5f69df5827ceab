//! How the results of a command are shown, and its progress.

use serde::Serialize;

#[derive(clap::Args)]
pub struct ShowOptions {
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

impl ShowOptions {
    /// The results as one JSON document, or as `text` prints them.
    pub fn print(&self, results: &impl Serialize, text: impl FnOnce()) -> anyhow::Result<()> {
        match self.json {
            true => println!("{}", serde_json::to_string_pretty(results)?),
            false => text(),
        }
        Ok(())
    }
}
