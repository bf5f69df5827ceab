//! The presets by the names that a user types.

use clap::ValueEnum;
use zhat::ar::Preset;

#[derive(Clone, Copy, ValueEnum)]
pub enum PresetName {
    Small,
    Power,
    Gas,
    Hepmass,
    Miniboone,
    Bsds300,
}

impl PresetName {
    /// The preset itself.
    pub fn preset(self) -> Preset {
        match self {
            PresetName::Small => Preset::Small,
            PresetName::Power => Preset::Power,
            PresetName::Gas => Preset::Gas,
            PresetName::Hepmass => Preset::Hepmass,
            PresetName::Miniboone => Preset::Miniboone,
            PresetName::Bsds300 => Preset::Bsds300,
        }
    }
}
