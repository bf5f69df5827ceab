//! `zhat completions SHELL`: a script that completes commands and options.

use clap_complete::{Shell, generate};

use crate::exit::Outcome;
use crate::help;

#[derive(clap::Args)]
pub struct Arguments {
    /// The shell that the script is for
    shell: Shell,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    // Whole before it is written: the generator panics where it cannot write.
    let mut script = Vec::new();
    generate(arguments.shell, &mut help::command(), "zhat", &mut script);
    print!("{}", String::from_utf8(script)?);
    Ok(Outcome::Done)
}
