//! `zhat data prepare` and `zhat reproduce table1` as a user calls them, on a few hundred rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// An empty directory for a test.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("table1").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

fn zhat(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
    command.args(arguments);
    command
}

fn power_file(path: &Path, minutes: usize) {
    let mut text = String::from(
        "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;Sub_metering_1;Sub_metering_2;\
         Sub_metering_3\n",
    );
    for minute in 0..minutes {
        text += &format!(
            "16/12/2006;{:02}:{:02}:00;{:.3};0.4;{:.2};18.4;{}.000;{}.000;{}.000\n",
            minute / 60,
            minute % 60,
            0.2 + (minute * 37 % 101) as f64 * 0.05,
            230.0 + (minute * 53 % 97) as f64 * 0.1,
            minute % 3,
            minute % 7,
            minute % 19,
        );
    }
    fs::write(path, text).expect("it is written");
}

/// A small prepared POWER in `root/data/power`.
fn prepare(root: &Path) {
    let source = root.join("household_power_consumption.txt");
    power_file(&source, 250);
    let output = zhat(&["data", "prepare", "power", "--quiet", "--any-size"])
        .arg(&source)
        .arg("--out")
        .arg(root.join("data/power"))
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("N is 250, not 2049280"));
}

/// A table of a few seconds: two criteria and what goes beyond the paper, few steps, few particles.
fn table(root: &Path, out: &str, more: &[&str]) -> Command {
    let mut command = zhat(&["reproduce", "table1", "--quiet", "--json", "--datasets", "power"]);
    command.args(["--criteria", "ml-is,smc-rnce,beyond", "--steps", "8", "--particles", "400"]);
    command.args(["--estimates", "2", "--points", "40"]).args(more);
    command.arg("--data").arg(root.join("data")).arg("--out").arg(root.join(out));
    command
}

fn resume(root: &Path, out: &str, more: &[&str]) -> Command {
    let mut command = zhat(&["reproduce", "table1", "--quiet", "--json", "--resume"]);
    command.args(more).arg("--out").arg(root.join(out));
    command
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn model(root: &Path, out: &str, criterion: &str) -> Vec<u8> {
    fs::read(root.join(out).join("power").join(criterion).join("model.safetensors"))
        .expect("a model")
}

/// The numbers of a table that do not depend on the clock.
fn numbers(table: &Value) -> Vec<Value> {
    let cells = table["cells"].as_array().expect("cells");
    cells
        .iter()
        .flat_map(|cell| [cell["likelihood"].clone(), cell["wasserstein"].clone()])
        .collect()
}

#[test]
fn a_table_that_is_killed_again_and_again_ends_in_the_same_numbers() {
    let root = directory("killed");
    prepare(&root);
    let whole = json(&table(&root, "whole", &[]).output().expect("it runs"));
    let cells = whole["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 3);
    for (cell, criterion) in cells.iter().zip(["ml-is", "smc-rnce", "beyond"]) {
        assert_eq!(cell["criterion"], criterion);
        assert_eq!((&cell["steps"], &cell["warm_up"]), (&8.into(), &0.into()));
        assert!(cell["likelihood"]["log_likelihood"].is_number(), "{cell}");
        let distances = cell["wasserstein"]["values"].as_array().expect("distances");
        assert!(distances.len() == 2 && distances.iter().all(|d| d.as_f64().unwrap() > 0.0));
    }
    for cell in &cells[..2] {
        assert_eq!(cell["paper_steps"], 1_000_000);
        assert!(cell["full_hours"].as_f64().expect("a number") > 0.0);
    }
    let beyond = &cells[2];
    assert_eq!((&beyond["paper_steps"], &beyond["full_hours"]), (&Value::Null, &Value::Null));
    assert_eq!(beyond["likelihood"]["se_log_z"], 0.0, "it is normalised");
    assert_eq!(whole["claims"].as_array().map(Vec::len), Some(2), "SMC-RNCE and ML-IS");
    for file in ["table1.txt", "table1.csv", "report.html", "validation.svg", "validation.png"] {
        assert!(root.join("whole").join(file).is_file(), "{file}");
    }
    let text = fs::read_to_string(root.join("whole/table1.txt")).expect("text");
    for part in [
        "-3.93",
        "39.32",
        "0.695",
        "1000000",
        "not the paper's set",
        "reduced table",
        "beyond the paper",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }

    let mut started = false;
    for milliseconds in [150, 700, 1200, 400, 1900, 600] {
        let mut command =
            if started { resume(&root, "killed", &[]) } else { table(&root, "killed", &[]) };
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(milliseconds));
        let _ = child.kill();
        child.wait().expect("it ends");
        started = root.join("killed/settings.json").exists();
    }
    let mut last = if started { resume(&root, "killed", &[]) } else { table(&root, "killed", &[]) };
    let killed = json(&last.args(["--threads", "1"]).output().expect("it runs"));
    assert_eq!(numbers(&killed), numbers(&whole));
    for criterion in ["ml-is", "smc-rnce", "beyond"] {
        assert_eq!(model(&root, "killed", criterion), model(&root, "whole", criterion));
    }
}

#[test]
fn a_finished_table_takes_a_criterion_and_particles_more_without_training_again() {
    let root = directory("more");
    prepare(&root);
    let mut command = zhat(&["reproduce", "table1", "--quiet", "--json", "--criteria", "rnce"]);
    command.args(["--steps", "6", "--particles", "300", "--estimates", "2", "--points", "0"]);
    command.arg("--data").arg(root.join("data/power")).arg("--out").arg(root.join("out"));
    let first = json(&command.output().expect("it runs"));
    assert_eq!(first["cells"][0]["wasserstein"], Value::Null);
    let before = model(&root, "out", "rnce");
    let changed =
        fs::metadata(root.join("out/power/rnce/model.safetensors")).unwrap().modified().unwrap();
    let more = ["--criteria", "rnce,ml-is", "--particles", "500", "--points", "30"];
    let second = json(&resume(&root, "out", &more).output().expect("it runs"));
    let likelihood = |table: &Value| table["cells"][0]["likelihood"].clone();
    assert_eq!(likelihood(&second)["particles"], 500);
    // Another number of particles is another log Z, and the same model on the same rows.
    assert_eq!(
        likelihood(&second)["proposal_log_likelihood"],
        likelihood(&first)["proposal_log_likelihood"]
    );
    assert_ne!(likelihood(&second)["log_z"], likelihood(&first)["log_z"]);
    assert_eq!(second["cells"][0]["wasserstein"]["points"], 30);
    assert_eq!(second["cells"][1]["steps"], 6);
    assert_eq!(second["claims"].as_array().map(Vec::len), Some(2));
    assert_eq!(model(&root, "out", "rnce"), before);
    let again =
        fs::metadata(root.join("out/power/rnce/model.safetensors")).unwrap().modified().unwrap();
    assert_eq!(again, changed, "the model was written again");
}

#[test]
fn what_is_missing_or_in_the_way_is_said_with_the_command_that_mends_it() {
    let root = directory("mistakes");
    let refused = |command: &mut Command| {
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let message = refused(&mut table(&root, "out", &[]));
    assert!(message.contains("zhat data prepare power SOURCE"), "{message}");
    assert!(!root.join("out").exists());
    assert!(refused(&mut resume(&root, "out", &[])).contains("no table to go on with"));
    let message = refused(zhat(&["reproduce", "table1", "--data"]).arg(root.join("nothing")));
    assert!(message.contains("holds no prepared set"), "{message}");
    let message = refused(&mut table(&root, "out", &["--datasets", "pwer"]));
    assert!(message.contains("did you mean power"), "{message}");
    let wrong = root.join("wrong.txt");
    fs::write(&wrong, "not a table\n").unwrap();
    let out = root.join("data/power");
    let message = refused(zhat(&["data", "prepare", "power"]).arg(&wrong).arg("--out").arg(&out));
    assert!(message.contains("household_power_consumption.txt"), "{message}");
    assert!(!root.join("data").exists());
}
