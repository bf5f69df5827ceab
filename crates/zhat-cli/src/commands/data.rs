//! `zhat data list`: the built-in sets.

use zhat_report::{Align, Table};
use zhat_table::data::builtin;

use crate::exit::Outcome;

#[derive(clap::Subcommand)]
pub enum Action {
    /// List the built-in sets, whose true density is known
    List,
}

pub fn run(action: &Action) -> anyhow::Result<Outcome> {
    match action {
        Action::List => {
            let mut table = Table::new([
                ("name", Align::Left),
                ("columns", Align::Right),
                ("entropy", Align::Right),
                ("", Align::Left),
            ]);
            for set in builtin::list() {
                table.row([
                    format!("builtin:{}", set.name()),
                    set.dimension().to_string(),
                    format!("{:.4}", set.entropy().value),
                    set.description().to_string(),
                ]);
            }
            print!("{table}");
            Ok(Outcome::Done)
        }
    }
}
