//! `zhat reproduce` as a user calls it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn zhat(arguments: &[&str], out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zhat"))
        .arg("reproduce")
        .args(arguments)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap()
}

/// A directory of its own for a test, empty.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reproduce").join(test);
    let _ = fs::remove_dir_all(&path);
    path
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn assert_files(directory: &Path, names: &[&str]) {
    for name in names {
        let size = fs::metadata(directory.join(name)).map(|file| file.len()).unwrap_or(0);
        assert!(size > 100, "{name} in {}: {size} bytes", directory.display());
    }
}

#[test]
fn proposals_writes_every_file() {
    let out = directory("proposals");
    let arguments = ["proposals", "--quick", "--runs", "2", "--steps", "120", "--quiet"];
    let output = zhat(&arguments, &out);
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("median") && table.contains("adaptive"), "{table}");
    let files = ["results.json", "report.html", "proposals.svg", "proposals.png"];
    assert_files(&out, &files);
    assert_files(&out, &["kl-data.csv", "kl-model.csv", "kl-adaptive.csv"]);
    let csv = fs::read_to_string(out.join("kl-data.csv")).unwrap();
    assert!(csv.starts_with("iteration,median,q25,q75,worst,median_low,median_high\n1,"));
    let record = json(&out.join("results.json"));
    assert_eq!(record["experiment"], "proposals");
    assert_eq!(record["settings"]["steps"], 120);
    let iterations = record["arms"]["model"]["iterations"].as_array().unwrap();
    for iteration in [1, 100, 120] {
        assert!(iterations.contains(&iteration.into()), "{iteration}");
    }
    for key in ["median", "q25", "q75", "worst"] {
        assert_eq!(record["arms"]["model"][key].as_array().unwrap().len(), iterations.len());
    }
    assert!(record["claims"].as_array().unwrap().len() >= 4);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("about the same floor"));
}

#[test]
fn ring_writes_every_file_for_one_and_for_all_combinations() {
    let files = ["results.json", "report.html", "ring.svg", "ring.png"];
    let arms = ["cnce", "mh-cnce", "p-cnce", "p-mh-cnce"];
    let curves: Vec<String> = arms
        .iter()
        .flat_map(|arm| [format!("squared-error-{arm}.csv"), format!("acceptance-{arm}.csv")])
        .collect();
    let curves: Vec<&str> = curves.iter().map(String::as_str).collect();

    let out = directory("ring");
    let arguments = ["ring", "--quick", "--runs", "2", "--steps", "110", "--json", "--quiet"];
    let output = zhat(&arguments, &out);
    assert!(output.status.success(), "{output:?}");
    assert_files(&out, &files);
    assert_files(&out, &curves);
    let record = json(&out.join("results.json"));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record, printed);
    for arm in arms {
        for rule in ["cnce", "mh-cnce"] {
            let acceptance = record["arms"][arm]["acceptance"][rule].as_array().unwrap();
            assert_eq!(
                acceptance.len(),
                record["arms"][arm]["iterations"].as_array().unwrap().len()
            );
        }
    }

    let out = directory("ring-all");
    let arguments = ["ring", "--all", "--runs", "1", "--steps", "20", "--quiet"];
    let output = zhat(&arguments, &out);
    assert!(output.status.success(), "{output:?}");
    assert_files(&out, &files);
    for (name, samples, negatives) in
        [("n200-j5", 200, 5), ("n200-j10", 200, 10), ("n1000-j5", 1000, 5), ("n1000-j10", 1000, 10)]
    {
        assert_files(&out.join(name), &files);
        let record = json(&out.join(name).join("results.json"));
        assert_eq!(record["settings"]["samples"], samples);
        assert_eq!(record["settings"]["negatives"], negatives);
        assert_eq!(json(&out.join("results.json"))["combinations"][name], record);
    }
}

#[test]
fn results_differ_between_thread_counts_only_in_time_and_threads() {
    let run = |experiment: &str, threads: &str| {
        let out = directory(&format!("threads-{experiment}-{threads}"));
        let arguments =
            [experiment, "--runs", "3", "--steps", "30", "--threads", threads, "--quiet"];
        assert!(zhat(&arguments, &out).status.success());
        let mut record = json(&out.join("results.json"));
        assert_eq!(record["threads"].to_string(), threads);
        record["threads"] = Value::Null;
        record["seconds"] = Value::Null;
        record
    };
    for experiment in ["proposals", "ring"] {
        assert_eq!(run(experiment, "1"), run(experiment, "2"));
    }
}

#[test]
fn bad_input_exits_with_2_and_one_line_that_says_what_to_do() {
    let out = directory("bad");
    let refused: [(&[&str], &str); 7] = [
        (&["proposals", "--runs", "0"], "at least 1"),
        (&["proposals", "--steps", "0"], "at least 1"),
        (&["proposals", "--mcmc-steps", "0"], "at least 1"),
        (&["proposals", "--arms", "data,nonsense"], "one of data, model, adaptive"),
        (&["ring", "--runs", "0"], "at least 1"),
        (&["ring", "--samples", "1"], "at least 2"),
        (&["ring", "--arms", "rnce"], "one of cnce, mh-cnce"),
    ];
    for (arguments, advice) in refused {
        let output = zhat(arguments, &out);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains(advice), "{message}");
    }
    // A file where the directory should be.
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("file"), "").unwrap();
    let output = zhat(&["ring"], &out.join("file").join("out"));
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(message.ends_with("choose an output directory that can be written to\n"), "{message}");
    assert_eq!(message.lines().count(), 1);
    for arguments in [&["ring", "--all", "--samples", "5"][..], &["table9"], &[]] {
        assert_eq!(zhat(arguments, &out).status.code(), Some(2), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_writes_what_is_finished() {
    let out = directory("ctrl-c");
    let child = Command::new(env!("CARGO_BIN_EXE_zhat"))
        .args(["reproduce", "ring", "--runs", "1000000", "--steps", "2", "--quiet", "--out"])
        .arg(&out)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Long enough for a repetition of a few milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let record = json(&out.join("results.json"));
    assert_eq!(record["interrupted"], true);
    assert!(record["finished_runs"].as_u64().unwrap() > 0);
    assert_files(&out, &["report.html", "ring.svg"]);
}
