//! What `--help` adds to the arguments themselves: groups of commands and of options, and examples that work.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, ValueHint};

use crate::Arguments;

/// The commands in the order in which they are met.
const GROUPS: [(&str, &[&str]); 6] = [
    ("A density for a table", &["fit", "report", "compare"]),
    ("What it is for", &["evaluate", "score", "sample", "impute"]),
    ("Data and settings", &["data", "config"]),
    ("The paper", &["theory", "reproduce"]),
    ("Speed", &["devices", "bench"]),
    ("The program itself", &["completions", "man"]),
];

/// Options that stand under a heading of their own, by the names of their fields.
const HEADINGS: [(&str, &[&str]); 4] = [
    (
        "How the table is read",
        &["columns", "delimiter", "header", "format", "max_rows", "drop_missing", "dequantise"],
    ),
    ("Settings", &["preset", "config", "settings", "criterion", "steps", "seed", "patience"]),
    ("Time", &["time", "processor_time", "max_time"]),
    ("Output", &["out", "resume", "tensorboard", "json", "quiet"]),
];

/// Where there are fewer options than this, they need no headings.
const MANY: usize = 12;

/// Commands that can be typed, and what they do, under the command that they are about.
#[rustfmt::skip]
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    ("", &[
        ("zhat fit", "a first look: fits a built-in table and writes a report"),
        ("zhat fit table.csv --out out/mine", "a density for a table of your own"),
        ("zhat evaluate out/mine", "how good it is, and whether to trust it"),
        ("zhat score out/mine new.csv --out scores.csv", "log-densities: the lowest are the strangest rows"),
        ("zhat sample out/mine -n 1000 --given age=40", "draws, all of a row or the rest of it"),
    ]),
    ("fit", &[
        ("zhat fit", "a built-in table with a known density, in about a minute"),
        ("zhat fit table.csv --out out/mine", "reads, checks and splits a table, and fits it"),
        ("zhat fit table.csv --time 10m", "the best that ten minutes give"),
        ("zhat fit table.csv --columns 2-9 --drop-missing", "some of the columns, without rows that have holes"),
        ("zhat fit table.csv --target price", "the density of one column given all others"),
        ("zhat fit table.csv --set training.batch-size=64", "one setting changed; `zhat config` lists them all"),
        ("mpirun -n 4 zhat fit table.csv", "four processes, where zhat was built with the feature mpi"),
        ("zhat fit table.csv --device vulkan", "on a graphics processor; `zhat devices` lists them"),
        ("zhat fit --resume --out out/mine", "goes on with a run that was stopped, to the same bits"),
    ]),
    ("evaluate", &[
        ("zhat evaluate out/mine", "on the run's own test rows"),
        ("zhat evaluate out/mine new.csv", "on other rows"),
        ("zhat evaluate out/mine out/other", "which of two runs is ahead on the first one's test rows, with an interval"),
        ("zhat evaluate out/mine --strict", "exit code 1 where the density is not to be trusted, or does not fit"),
    ]),
    ("score", &[
        ("zhat score out/mine new.csv", "one log-density a line"),
        ("zhat score out/mine new.parquet --out scores.npy", "files may be larger than memory"),
    ]),
    ("sample", &[
        ("zhat sample out/mine -n 100", "as CSV to standard output"),
        ("zhat sample out/mine --given age=40,height=1.8", "the other columns, given these"),
        ("zhat sample out/mine --given-file rows.csv -n 20", "for each row of a file what it has not"),
    ]),
    ("impute", &[
        ("zhat impute out/mine holes.csv --out filled.csv", "conditional means in the place of missing cells"),
        ("zhat impute out/mine holes.csv --quantiles 0.05,0.95", "with an interval beside each"),
        ("zhat impute out/mine holes.csv --fill draw --copies 20", "multiple imputation"),
    ]),
    ("compare", &[
        ("zhat compare table.csv --criteria ml-is,rnce --repeats 3", "two criteria, three seeds each"),
        ("zhat compare table.csv --time 5m", "five minutes for each fit"),
    ]),
    ("report", &[
        ("zhat report out/mine", "the page of a run, written anew"),
        ("zhat report out/mine out/other --out both.html", "one page that compares two"),
    ]),
    ("data", &[
        ("zhat data list", "built-in sets, to try things on"),
        ("zhat fit builtin:pinwheel", "fits one of them"),
    ]),
    ("data prepare", &[
        ("zhat data prepare huge.csv --out data/huge", "a table that is larger than memory"),
        ("zhat fit data/huge", "trains from its files"),
        ("zhat data prepare power household_power_consumption.txt", "writes data/power"),
        ("zhat fit data/power --preset power", "and fits it as the paper does"),
    ]),
    ("config", &[
        ("zhat config", "every setting with its default"),
        ("zhat config training", "those of one section"),
        ("zhat config --preset power", "with the defaults of a preset"),
        ("zhat fit --set training.num-steps=500", "how one is set"),
    ]),
    ("theory", &[("zhat theory", "every proposition, numerically")]),
    ("reproduce", &[
        ("zhat reproduce ring --quick", "a first look within seconds"),
        ("zhat reproduce proposals", "the paper's figure, with a report"),
        ("zhat reproduce table1 --datasets power --budget 20m", "a reduced table"),
    ]),
    ("devices", &[
        ("zhat devices", "what --device can name here"),
        ("zhat fit table.csv --device vulkan", "trains on a graphics processor, where zhat was built with the feature vulkan"),
    ]),
    ("bench", &[
        ("zhat bench --preset power --criterion smc-rnce", "seconds for a training step"),
        ("zhat bench --device vulkan", "the same on a device, and how often the CPU waits for it"),
    ]),
    ("completions", &[
        ("zhat completions bash > ~/.local/share/bash-completion/completions/zhat", "for bash"),
        ("zhat completions zsh > ~/.zfunc/_zhat", "for zsh, with ~/.zfunc in its fpath"),
        ("zhat completions fish > ~/.config/fish/completions/zhat.fish", "for fish"),
    ]),
    ("man", &[
        ("zhat man > zhat.1", "the page of the program: man ./zhat.1"),
        ("zhat man fit > zhat-fit.1", "the page of a command"),
        ("zhat man --out man1", "all of them, into a directory"),
    ]),
];

/// The arguments that the program was called with; what `--help` prints is an error to clap, as is what it does not understand.
pub fn try_parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    Arguments::from_arg_matches(&command().try_get_matches_from(arguments)?)
}

/// The command line with its groups and examples.
pub fn command() -> clap::Command {
    let command = Arguments::command();
    let groups: String = GROUPS.iter().map(|group| listed(&command, group)).collect();
    let options = title("Options");
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}{options}\n{{options}}{{after-help}}"
    );
    with_examples("", command).help_template(template)
}

/// A group of commands with what they do.
fn listed(command: &clap::Command, (name, members): &(&str, &[&str])) -> String {
    let line = |member: &&str| {
        let about = command.find_subcommand(member).and_then(clap::Command::get_about);
        format!("  \x1b[1m{member:<12}\x1b[0m {}\n", about.cloned().unwrap_or_default())
    };
    format!("{}\n{}\n", title(name), members.iter().map(line).collect::<String>())
}

/// The command and those below it, with their examples and headings.
fn with_examples(path: &str, command: clap::Command) -> clap::Command {
    let examples = EXAMPLES.iter().find(|(of, _)| *of == path).map_or(&[][..], |(_, list)| list);
    let command = match examples {
        [] => command,
        examples => command.after_help(shown(examples)),
    };
    let many = command.get_arguments().count() >= MANY;
    let command = command.mut_args(|argument| {
        let id = argument.get_id().as_str();
        let heading = HEADINGS.iter().find(|(_, ids)| many && ids.contains(&id));
        let is_file = id == "data";
        let argument = match heading {
            Some((heading, _)) => argument.help_heading(*heading),
            None => argument,
        };
        if is_file { argument.value_hint(ValueHint::AnyPath) } else { argument }
    });
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_examples(path.trim_start(), below)
    })
}

/// A line for each example where the screen is wide enough for all of them, else two.
fn shown(examples: &[(&str, &str)]) -> String {
    let width = examples.iter().map(|(typed, _)| typed.len()).max().unwrap_or(0);
    let line = |(typed, what): &(&str, &str)| format!("\n  {typed:width$}  {what}");
    format!("{}{}", title("Examples"), examples.iter().map(line).collect::<String>())
}

/// A heading in clap's own style, which is left out where the output is no terminal.
fn title(text: &str) -> String {
    format!("\x1b[1m\x1b[4m{text}:\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, members)| members.iter().copied()).collect();
        let command = command();
        for below in command.get_subcommands() {
            let found = listed.iter().filter(|name| **name == below.get_name()).count();
            assert_eq!(found, 1, "{}", below.get_name());
        }
        assert_eq!(listed.len(), command.get_subcommands().count());
    }

    #[test]
    fn every_example_can_be_typed() {
        for (path, examples) in EXAMPLES {
            let mut names = path.split(' ').filter(|name| !name.is_empty());
            let known =
                names.try_fold(command(), |above, name| above.find_subcommand(name).cloned());
            assert!(known.is_some(), "{path} is no command");
            for (typed, _) in *examples {
                // What comes after it is the shell's, and what comes before it is a launcher's.
                let typed = typed.split(" > ").next().expect("one part");
                let typed = typed.strip_prefix("mpirun -n 4 ").unwrap_or(typed);
                command().try_get_matches_from(typed.split(' ')).expect(typed);
            }
        }
    }

    #[test]
    fn every_heading_has_options_and_every_command_that_fits_has_headings() {
        let mut command = command();
        command.build();
        let fit = command.find_subcommand("fit").expect("a command");
        for (heading, _) in HEADINGS {
            assert!(
                fit.get_arguments().any(|one| one.get_help_heading() == Some(heading)),
                "{heading}"
            );
        }
    }

    #[test]
    fn the_help_shows_groups_commands_and_examples() {
        let help = command().render_help().to_string();
        for part in [
            "What it is for:",
            "  score        The log-density",
            "Examples:",
            "zhat fit table.csv",
            "--version",
        ] {
            assert!(help.contains(part), "{part} in\n{help}");
        }
    }
}
