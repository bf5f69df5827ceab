//! `zhat report RUN...`: the page of a run, written anew, or one page that compares several.

use std::path::PathBuf;

use zhat_table::run::RunDirectory;

use crate::exit::Outcome;

#[derive(clap::Args)]
pub struct Arguments {
    /// Run directories of `zhat fit`; several give one page that compares them
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Where the page goes [default: report.html in the run, or comparison.html beside the first of several]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let runs: Vec<RunDirectory> =
        arguments.runs.iter().map(|run| RunDirectory::open(run)).collect::<Result<_, _>>()?;
    let page = match (&arguments.out, runs.as_slice()) {
        (Some(out), _) => out.clone(),
        (None, [run]) => run.report(),
        (None, runs) => runs[0].root().with_file_name("comparison.html"),
    };
    zhat_table::report::write_to(&runs, &page)?;
    println!("{}", page.display());
    Ok(Outcome::Done)
}
