//! `zhat devices`: where networks can run, in this build and on this machine.

use serde::Serialize;
use zhat::device::{Interface, found};
use zhat_report::{Align, Table};

use crate::exit::Outcome;

#[derive(clap::Args)]
pub struct Arguments {
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

/// What there is.
#[derive(Serialize)]
struct Devices {
    devices: Vec<Device>,
    /// Features that this build is without.
    not_built: Vec<&'static str>,
}

#[derive(Serialize)]
struct Device {
    /// What `--device` takes.
    device: String,
    /// What it calls itself.
    name: String,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let device = |found: zhat::device::Found| Device {
        device: found.name.to_string(),
        name: found.describes_itself,
    };
    let devices = Devices {
        devices: found().into_iter().map(device).collect(),
        not_built: Interface::ALL
            .iter()
            .filter(|interface| !interface.is_built())
            .map(|interface| interface.name())
            .collect(),
    };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&devices)?);
        return Ok(Outcome::Done);
    }
    let mut table = Table::new([("--device", Align::Left), ("", Align::Left)]);
    for Device { device, name } in &devices.devices {
        table.row([device.clone(), name.clone()]);
    }
    print!("{table}");
    if !devices.not_built.is_empty() {
        println!(
            "\nNot in this build: {}. Each is a feature: `cargo install --path crates/zhat-cli --features {}`",
            devices.not_built.join(", "),
            devices.not_built[0]
        );
    }
    Ok(Outcome::Done)
}
