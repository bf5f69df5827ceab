//! The targets of the campaign on stable Rust, for libFuzzer.

#[allow(dead_code, reason = "seeds and shares are for the campaign")]
#[path = "../../crates/zhat-table/tests/campaign/targets.rs"]
mod targets;

use std::sync::OnceLock;

use targets::{Place, TARGETS};

/// Gives an input to a target, which panics where something is wrong.
pub fn run(name: &str, input: &[u8]) {
    static PLACE: OnceLock<Place> = OnceLock::new();
    let place = PLACE.get_or_init(|| {
        let directory = std::env::temp_dir().join(format!("zhat-fuzz-{}", std::process::id()));
        Place::new(&directory, name == "run")
    });
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let _refused = (target.run)(place, input);
}
