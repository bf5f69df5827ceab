//! The program `zhat`: arguments in, results to stdout, progress and logs to stderr.

mod commands;
mod exit;
mod interrupt;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Estimates unnormalised probability models (energy-based models).
#[derive(Parser)]
#[command(name = "zhat", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check every proposition of the paper numerically
    Theory(commands::theory::Arguments),
    /// Fit a density to a table
    Fit(commands::fit::Arguments),
    /// Write the page of a run anew, or one that compares several
    Report(commands::report::Arguments),
    /// The built-in sets
    #[command(subcommand)]
    Data(commands::data::Action),
    /// Measure the training step of the autoregressive EBM
    Bench(commands::bench::Arguments),
    /// Run an experiment of the paper and write its figures and a report
    #[command(subcommand)]
    Reproduce(commands::reproduce::Experiment),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(outcome) => outcome.into(),
        Err(error) => exit::report(&error),
    }
}

fn run(arguments: Arguments) -> anyhow::Result<exit::Outcome> {
    match arguments.command {
        Command::Theory(arguments) => commands::theory::run(&arguments),
        Command::Fit(arguments) => commands::fit::run(&arguments),
        Command::Report(arguments) => commands::report::run(&arguments),
        Command::Data(action) => commands::data::run(&action),
        Command::Bench(arguments) => commands::bench::run(&arguments),
        Command::Reproduce(experiment) => commands::reproduce::run(&experiment),
    }
}
