//! The program as it is called here, and what can be wrong with how it ends.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Nothing that is done here takes a tenth of this on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// `zhat` with these arguments, about a run.
pub fn zhat(arguments: &[&str], run: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
    command.args(arguments).arg(run).env_remove("RUST_BACKTRACE");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A fit of a moment, with a checkpoint every few steps.
pub fn fit(out: &Path, steps: u32) -> Command {
    let mut command = zhat(
        &["fit", "builtin:banana", "--preset", "small", "--quiet", "--threads", "1", "--out"],
        out,
    );
    let steps = format!("training.num-steps={steps}");
    for setting in [
        steps.as_str(),
        "data.read.max-rows=1500",
        "step.warm-up=10",
        "training.batch-size=32",
        "step.num-negatives=5",
        "log-every=5",
        "training.validation-every=20",
        "training.patience=0",
        "training.checkpoint-every=5",
        "validation.particles=200",
        "evaluation.particles=500",
        "evaluation.estimates=2",
        "model.energy.width=16",
        "model.proposal.width=16",
        "model.context=8",
        "model.mixture-components=4",
    ] {
        command.args(["--set", setting]);
    }
    command
}

/// Goes on with a run.
pub fn resume(run: &Path) -> Command {
    zhat(&["fit", "--resume", "--quiet", "--threads", "1", "--out"], run)
}

/// Runs a command to its end; an error where it hangs, panics or is ended by a signal, none of which it may.
pub fn ended(mut command: Command) -> Result<Output, String> {
    let mut child = command.spawn().expect("the program");
    let start = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().ok();
            child.wait().ok();
            return Err("it hangs".into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().expect("what it said");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("panicked at") {
        return Err(format!("it panicked: {}", said.trim().replace('\n', " ")));
    }
    match output.status.code() {
        Some(0..=2) => Ok(output),
        _ => Err(format!("it ended with {}: {}", output.status, said.trim())),
    }
}

/// What is left of a run that must not depend on when it was killed: the model, the metrics and the numbers at the end but for
/// the seconds.
pub fn result(run: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    let file = |name: &'static str| {
        let bytes = fs::read(run.join(name)).map_err(|error| format!("{name}: {error}"))?;
        let is_timed = name == "results.json";
        Ok((name, if is_timed { without_seconds(&bytes)? } else { bytes }))
    };
    ["model.safetensors", "model.json", "metrics.jsonl", "results.json", "config.toml"]
        .into_iter()
        .map(file)
        .collect()
}

fn without_seconds(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut results: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|error| format!("results.json: {error}"))?;
    // A digest of the file covers the seconds too.
    for key in ["seconds", "sha256"] {
        results.as_object_mut().map(|results| results.remove(key));
    }
    Ok(results.to_string().into_bytes())
}

/// Copies a directory and what is in it.
pub fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}
