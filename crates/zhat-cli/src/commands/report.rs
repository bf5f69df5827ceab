//! `zhat report RUN...`: the page of a run, written anew, or one page that compares several.

use std::path::PathBuf;
use std::sync::Arc;

use zhat::watch::Watch;
use zhat_table::fitted::Fitted;

use crate::exit::Outcome;
use crate::progress::watched;

#[derive(clap::Args)]
pub struct Arguments {
    /// Run directories of `zhat fit`; several give one page that compares them
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Where the page goes [default: report.html in the run, or comparison.html beside the first of several]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Threads; 0 for as many as there are cores
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let watch = Arc::new(Watch::default());
    let open = |run: &PathBuf| Fitted::open(run, arguments.threads, Arc::clone(&watch));
    let runs: Vec<Fitted> = arguments.runs.iter().map(open).collect::<Result<_, _>>()?;
    let page = match (&arguments.out, runs.as_slice()) {
        (Some(out), _) => out.clone(),
        (None, [run]) => run.run().report(),
        (None, runs) => runs[0].run().root().with_file_name("comparison.html"),
    };
    watched(arguments.quiet, "drawing pictures", None, &watch, || {
        zhat_table::report::write_to(&runs, &page)
    })??;
    println!("{}", page.display());
    Ok(Outcome::Done)
}
