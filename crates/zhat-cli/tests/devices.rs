//! `--device` and `zhat devices`: what is not built in is refused, and on a device every verb has the CPU's figures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty directory for a test.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("devices").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

fn zhat(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
    command.args(arguments).current_dir(directory).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command prints.
fn stdout(directory: &Path, arguments: &[&str]) -> String {
    let output = zhat(directory, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_device_that_is_not_built_in_names_its_feature_and_one_that_is_no_device_the_others() {
    let directory = directory("refused");
    let refused = |device: &str, says: &str| {
        let output = zhat(&directory, &["fit", "--device", device, "--out", "run", "--quiet"]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{device}: {told}");
        assert!(told.contains(says), "{told}");
        assert!(!directory.join("run").exists());
    };
    refused("gpu", "one of cpu, vulkan, wgpu, metal, cuda, rocm");
    refused("vulkan:x", "vulkan:1");
    if cfg!(feature = "vulkan") {
        refused("vulkan:99", "on this machine");
    } else {
        refused("vulkan", "--features vulkan");
    }
    if !cfg!(feature = "cuda") {
        refused("cuda:1", "--features cuda");
    }
}

#[test]
fn the_cpu_is_among_the_devices() {
    let directory = directory("listed");
    let listed = stdout(&directory, &["devices"]);
    assert!(listed.contains("cpu") && listed.contains("the engine of zhat"), "{listed}");
    let json = stdout(&directory, &["devices", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("one document");
    assert_eq!(json["devices"][0]["device"], "cpu");
    let missing = json["not_built"].as_array().expect("a list");
    assert_eq!(missing.iter().any(|name| name == "vulkan"), !cfg!(feature = "vulkan"));
}

/// A device beside the CPU; where there is none, it is said why nothing is tested.
fn device(directory: &Path) -> Option<String> {
    let json = stdout(directory, &["devices", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("one document");
    let found = json["devices"].as_array().expect("a list").iter().find_map(|device| {
        let (name, itself) = (device["device"].as_str()?, device["name"].as_str()?);
        let is_refused = cfg!(feature = "vulkan") && itself.contains("llvmpipe");
        (name != "cpu" && !is_refused).then(|| name.to_owned())
    });
    if found.is_none() {
        eprintln!(
            "skipped: no device beside the CPU. With --features wgpu that of Debian's mesa-vulkan-drivers is one, in software"
        );
    }
    found
}

/// The numbers of a column of text with commas.
fn column(csv: &str, name: &str) -> Vec<f64> {
    let mut lines = csv.lines();
    let names = lines.next().expect("a header");
    let place = names.split(',').position(|own| own == name).expect("a column of that name");
    let number = |line: &str| line.split(',').nth(place).and_then(|cell| cell.parse().ok());
    lines.map(|line| number(line).expect("a number")).collect()
}

#[test]
fn every_verb_has_the_figures_of_the_cpu_on_a_device() {
    let directory = directory("verbs");
    let Some(device) = device(&directory) else { return };
    let on = ["--device", &device, "--quiet"];
    let fit = [
        "fit",
        "builtin:mixed",
        "--out",
        "run",
        "--json",
        "--steps",
        "40",
        "--set",
        "data.read.max-rows=1500",
        "--set",
        "model.proposal.width=32",
        "--set",
        "model.members=2",
        "--set",
        "training.validation-every=20",
        "--set",
        "training.checkpoint-every=20",
    ];
    let report = stdout(&directory, &[&fit[..], &on].concat());
    let report: serde_json::Value = serde_json::from_str(&report).expect("one document");
    let likelihood = report["test"]["log_likelihood"].as_f64().expect("a number");
    assert!(likelihood.is_finite());

    // The same model on both, with the same seed: what differs is rounding.
    let both = |arguments: &[&str]| {
        let on_device = stdout(&directory, &[arguments, &on].concat());
        (on_device, stdout(&directory, &[arguments, &["--quiet"]].concat()))
    };
    let near = |(a, b): (Vec<f64>, Vec<f64>), most: f64| {
        assert!(!a.is_empty() && a.len() == b.len(), "{a:?} {b:?}");
        let away = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).sum::<f64>() / a.len() as f64;
        assert!(away < most, "{away}: {a:?} {b:?}");
    };
    let (a, b) = both(&["evaluate", "run", "--json"]);
    let figure = |text: &str| {
        let json: serde_json::Value = serde_json::from_str(text).expect("one document");
        json["log_likelihood"].as_f64().expect("a number")
    };
    assert!((figure(&a) - figure(&b)).abs() < 1e-3, "{} {}", figure(&a), figure(&b));
    let drawn = stdout(&directory, &["sample", "run", "-n", "60", "--quiet"]);
    fs::write(directory.join("rows.csv"), &drawn).expect("written");
    let (a, b) = both(&["score", "run", "rows.csv"]);
    near((column(&a, "log_density"), column(&b, "log_density")), 1e-3);
    let (a, b) = both(&["sample", "run", "-n", "60"]);
    near((column(&a, "amount"), column(&b, "amount")), 0.05);
    // Without their last cell, which is an amount.
    let (header, rows) = drawn.split_once('\n').expect("rows below a header");
    let without = |row: &str| row.rsplit_once(',').map(|(rest, _)| format!("\n{rest},"));
    let holes: String = rows.lines().filter_map(without).collect();
    fs::write(directory.join("holes.csv"), format!("{header}{holes}\n")).expect("written");
    let (a, b) = both(&["impute", "run", "holes.csv"]);
    near((column(&a, "amount"), column(&b, "amount")), 0.05);
    let bench = [
        "bench",
        "--preset",
        "small",
        "--batch",
        "16",
        "--negatives",
        "4",
        "--steps",
        "2",
        "--criterion",
        "smc-rnce",
        "--json",
        "--device",
        &device,
    ];
    let bench: serde_json::Value = serde_json::from_str(&stdout(&directory, &bench)).expect("JSON");
    assert_eq!(bench["reads_per_step"], 1.0);
}
