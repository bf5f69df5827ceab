//! `zhat config`: every setting of a fit, with its type, its default and what it does.

use serde::Serialize;
use zhat_paper::presets::Preset;
use zhat_table::TableError;
use zhat_table::fit::{FitConfig, SETTINGS};

use crate::exit::Outcome;

/// Tables from small to large: what differs between them follows the size of the table.
const SIZES: [[usize; 2]; 4] = [[200, 3], [3_000, 4], [10_000, 10], [1_000_000, 300]];

#[derive(clap::Args)]
pub struct Arguments {
    /// Only settings with this in their name, such as training or model.energy
    name: Option<String>,
    /// Show the defaults of this preset: small, power, gas, hepmass, miniboone or bsds300
    #[arg(long, conflicts_with_all = ["rows", "columns"])]
    preset: Option<Preset>,
    /// Show the defaults for a table of so many rows
    #[arg(long, default_value_t = 10_000)]
    rows: usize,
    /// Show the defaults for a table of so many columns
    #[arg(long, default_value_t = 10)]
    columns: usize,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    /// As it is written in TOML; none where it is not set.
    default: Option<String>,
    /// Whether the default is another for a table of another size.
    follows_table: bool,
    about: &'static str,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let config = match arguments.preset {
        Some(preset) => preset.config("builtin:pinwheel"),
        None => for_table([arguments.rows, arguments.columns]),
    };
    let wanted = |name: &str| arguments.name.as_ref().is_none_or(|part| name.contains(part));
    let lines: Vec<Line> = SETTINGS
        .iter()
        .filter(|setting| wanted(setting.name))
        .map(|setting| Line {
            name: setting.name,
            kind: setting.kind,
            default: value(&config, setting.name),
            follows_table: arguments.preset.is_none() && follows_table(setting.name),
            about: setting.about,
        })
        .collect();
    if lines.is_empty() {
        let name = arguments.name.clone().unwrap_or_default();
        let reason = format!("{name}: no setting has this in its name; `zhat config` lists all");
        return Err(TableError::Config { reason }.into());
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&lines)?);
    } else {
        print!("{}", listing(&lines, arguments));
    }
    Ok(Outcome::Done)
}

fn listing(lines: &[Line], arguments: &Arguments) -> String {
    let whose = match arguments.preset {
        Some(preset) => format!("the preset {preset}"),
        None => format!("a table of {} rows and {} columns", arguments.rows, arguments.columns),
    };
    let mut text = format!(
        "Settings of a fit: --set NAME=VALUE, or in a TOML file for --config. Defaults for {whose}"
    );
    if lines.iter().any(|line| line.follows_table) {
        text += ";\nthose with a * follow the size of the table (--rows, --columns)";
    }
    text += ".\n";
    for line in lines {
        let default = line.default.as_deref().unwrap_or("not set");
        let star = if line.follows_table { " *" } else { "" };
        let (name, about, kind) = (line.name, line.about, line.kind);
        text += &format!("\n{name} = {default}{star}\n    {about} ({kind})\n");
    }
    text
}

fn for_table([rows, columns]: [usize; 2]) -> FitConfig {
    FitConfig::for_table("builtin:pinwheel", rows, columns, None)
}

fn value(config: &FitConfig, name: &str) -> Option<String> {
    let found = config.settings().into_iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.to_string())
}

fn follows_table(name: &str) -> bool {
    let mut values = SIZES.map(|size| value(&for_table(size), name)).into_iter();
    let first = values.next();
    values.any(|value| Some(value) != first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_as_a_default_can_be_set_and_changes_nothing() {
        let config = for_table([10_000, 10]);
        for (name, default) in SETTINGS
            .iter()
            .filter_map(|setting| Some((setting.name, value(&config, setting.name)?)))
        {
            let again = config.clone().with_setting(&format!("{name}={default}")).expect(name);
            assert_eq!(again, config, "{name}");
        }
    }

    #[test]
    fn settings_that_follow_the_table_are_told_from_the_others() {
        assert!(follows_table("training.batch-size") && follows_table("model.proposal.width"));
        assert!(!follows_table("seed") && !follows_table("model.tilt-bound"));
    }
}
