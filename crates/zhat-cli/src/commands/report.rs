//! `zhat report RUN...`: the page of a run, written anew, or one page that compares several.

use std::path::PathBuf;

use zhat_table::fitted::Fitted;

use super::table_options::ModifiedOptions;
use crate::exit::Outcome;
use crate::interrupt;
use crate::output::is_stdout;
use crate::progress::watched;

#[derive(clap::Args)]
pub struct Arguments {
    /// Run directories of `zhat fit`; several give one page that compares them
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Where the page goes; - for standard output [default: report.html in the run, or comparison.html beside the first of several]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Threads; 0 for as many as there are cores
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    modified: ModifiedOptions,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let watch = interrupt::watch()?;
    let open = |run: &PathBuf| arguments.modified.open(run, arguments.threads, &watch);
    let runs: Vec<Fitted> = arguments.runs.iter().map(open).collect::<Result<_, _>>()?;
    let page = match (&arguments.out, runs.as_slice()) {
        (Some(out), _) => out.clone(),
        (None, [run]) => run.run().report(),
        (None, runs) => runs[0].run().root().with_file_name("comparison.html"),
    };
    let drawn = watched(arguments.quiet, "drawing pictures", None, &watch, || {
        zhat_table::report::page(&runs)
    })??;
    if is_stdout(&page) {
        print!("{}", drawn.to_html());
        return Ok(Outcome::Done);
    }
    zhat_report::export::page::write(&page, &drawn)?;
    println!("{}", page.display());
    Ok(Outcome::Done)
}
