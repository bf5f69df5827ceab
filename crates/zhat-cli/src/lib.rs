//! The program `zhat`: arguments in, results to stdout, progress and logs to stderr.

#![warn(missing_docs)]

/// As the standard library's, but for what happens where nothing can be written: see [`output`].
macro_rules! print {
    ($($text:tt)*) => { crate::output::print(format_args!($($text)*)) };
}
/// As [`print!`], with the end of a line.
macro_rules! println {
    () => { print!("\n") };
    ($($text:tt)*) => { print!("{}\n", format_args!($($text)*)) };
}
/// As the standard library's, but it never panics.
macro_rules! eprintln {
    ($($text:tt)*) => { crate::output::tell(format_args!("{}\n", format_args!($($text)*))) };
}

mod commands;
mod exit;
mod help;
mod interrupt;
mod output;
mod progress;
mod ranks;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

/// Runs the program with these arguments, of which the first is its own name, and gives its exit code: 0 done, 1 failed, 2 bad usage or
/// input. Ctrl-C and SIGTERM are its own from then on.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    if !ranks::begin() {
        return 2;
    }
    let code = match help::try_parse(arguments) {
        Err(usage) if ranks::is_first() => exit::usage(&usage),
        Err(usage) => exit::code_of(&usage),
        Ok(arguments) => {
            let done = command(arguments).and_then(|outcome| {
                output::finish()?;
                Ok(outcome)
            });
            match done {
                Ok(outcome) => outcome.code(),
                Err(error) => {
                    ranks::speak_up();
                    let code = exit::report(&error);
                    ranks::abort(code);
                    code
                }
            }
        }
    };
    ranks::finish();
    code
}

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
    /// The likelihood of a fitted model, and whether it can be trusted
    Evaluate(commands::evaluate::Arguments),
    /// The log-density of every row of a table
    Score(commands::score::Arguments),
    /// Draw rows from a fitted model
    Sample(commands::sample::Arguments),
    /// Fill the missing cells of a table
    Impute(commands::impute::Arguments),
    /// Fit several criteria on equal terms
    Compare(commands::compare::Arguments),
    /// Write the page of a run anew, or one that compares several
    Report(commands::report::Arguments),
    /// The built-in sets, and the paper's benchmark sets
    #[command(subcommand)]
    Data(commands::data::Action),
    /// Every setting of a fit: its name, type, default and what it does
    Config(commands::config::Arguments),
    /// The devices of this machine that networks can run on
    Devices(commands::devices::Arguments),
    /// Measure the training step of the autoregressive EBM
    Bench(commands::bench::Arguments),
    /// Run an experiment of the paper and write its figures and a report
    #[command(subcommand)]
    Reproduce(commands::reproduce::Experiment),
    /// A script that completes commands and options in a shell
    Completions(commands::completions::Arguments),
    /// The manual page, or that of a command
    Man(commands::man::Arguments),
}

fn command(arguments: Arguments) -> anyhow::Result<exit::Outcome> {
    if !ranks::take_part(&arguments.command) {
        return Ok(exit::Outcome::Done);
    }
    match arguments.command {
        Command::Theory(arguments) => commands::theory::run(&arguments),
        Command::Fit(arguments) => commands::fit::run(&arguments),
        Command::Evaluate(arguments) => commands::evaluate::run(&arguments),
        Command::Score(arguments) => commands::score::run(&arguments),
        Command::Sample(arguments) => commands::sample::run(&arguments),
        Command::Impute(arguments) => commands::impute::run(&arguments),
        Command::Compare(arguments) => commands::compare::run(&arguments),
        Command::Report(arguments) => commands::report::run(&arguments),
        Command::Data(action) => commands::data::run(&action),
        Command::Config(arguments) => commands::config::run(&arguments),
        Command::Devices(arguments) => commands::devices::run(&arguments),
        Command::Bench(arguments) => commands::bench::run(&arguments),
        Command::Reproduce(experiment) => commands::reproduce::run(&experiment),
        Command::Completions(arguments) => commands::completions::run(&arguments),
        Command::Man(arguments) => commands::man::run(&arguments),
    }
}
