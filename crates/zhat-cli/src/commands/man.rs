//! `zhat man`: manual pages, made of the same words as `--help`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap_mangen::Man;
use zhat_table::TableError;

use crate::exit::Outcome;
use crate::help;

#[derive(clap::Args)]
pub struct Arguments {
    /// The command whose page it is, such as fit or `data prepare` [default: the program's own]
    command: Vec<String>,
    /// Directory to write the pages of the program and of all commands into
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "command")]
    out: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let mut command = help::command();
    command.build();
    if let Some(directory) = &arguments.out {
        std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        write_all(&command, directory)?;
        return Ok(Outcome::Done);
    }
    let mut wanted = &command;
    for name in &arguments.command {
        wanted = wanted.find_subcommand(name).ok_or_else(|| {
            let names: Vec<&str> = wanted.get_subcommands().map(clap::Command::get_name).collect();
            let reason = format!("{name}: there is no such command; one of {}", names.join(", "));
            TableError::Config { reason }
        })?;
    }
    print!("{}", String::from_utf8(page(wanted)?)?);
    Ok(Outcome::Done)
}

/// The pages of a command and of all below it.
fn write_all(command: &clap::Command, directory: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = directory.join(format!("{name}.1"));
    std::fs::write(&path, page(command)?).with_context(|| path.display().to_string())?;
    let below = command.get_subcommands().filter(|below| below.get_name() != "help");
    below.into_iter().try_for_each(|below| write_all(below, directory))
}

fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
