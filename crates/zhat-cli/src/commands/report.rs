//! `zhat report RUN...`: the page of each run, written anew.

use std::path::PathBuf;

use zhat_table::run::RunDirectory;

use crate::exit::Outcome;

#[derive(clap::Args)]
pub struct Arguments {
    /// Run directories of `zhat fit`
    #[arg(required = true)]
    runs: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    for run in &arguments.runs {
        let page = zhat_table::report::write(&RunDirectory::open(run)?)?;
        println!("{}", page.display());
    }
    Ok(Outcome::Done)
}
