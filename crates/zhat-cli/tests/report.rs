//! `zhat report` as a user calls it: one run, several, and runs that cannot be shown.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty directory for a test.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

/// A fit of a second: small networks, few rows.
fn fit(out: &Path, source: &str, more: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
    command.args(["fit", source, "--preset", "small", "--quiet", "--out"]).arg(out);
    for setting in [
        "data.read.max-rows=1200",
        "training.num-steps=40",
        "step.warm-up=10",
        "training.batch-size=32",
        "step.num-negatives=5",
        "log-every=5",
        "training.validation-every=10",
        "validation.particles=500",
        "validation.base=never",
        "evaluation.particles=1000",
        "evaluation.estimates=3",
        "model.energy.width=16",
        "model.proposal.width=16",
        "model.context=8",
        "model.mixture-components=4",
    ] {
        command.args(["--set", setting]);
    }
    let output = command.args(more).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn report(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zhat"))
        .arg("report")
        .args(arguments)
        .output()
        .expect("it runs")
}

#[test]
fn several_runs_make_one_page_and_one_run_its_own() {
    let root = directory("report");
    let (a, b) = (root.join("first"), root.join("second"));
    fit(&a, "builtin:banana", &["--criterion", "rnce"]);
    fit(&b, "builtin:banana", &["--criterion", "ml-is"]);
    let output = report(&[&a, &b]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = root.join("comparison.html");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), path.display().to_string());
    let html = fs::read_to_string(&path).expect("a page");
    let results = fs::read_to_string(a.join("results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_str(&results).expect("JSON");
    let likelihood = results["test"]["log_likelihood"].as_f64().expect("a number");
    for part in [
        "<h1>builtin:banana: 2 densities</h1>".to_owned(),
        "<a href=\"#section-2\">first</a>".to_owned(),
        "<h2 id=\"section-3\">second</h2>".to_owned(),
        "<th scope=\"row\">step.criterion</th>".to_owned(),
        format!("<td class=\"number\" data-label=\"model\">{likelihood:.4}</td>"),
    ] {
        assert!(html.contains(&part), "no {part}");
    }
    // Validation of both; then twice calibration (2), the classifier, training (2), sample sizes, columns (2), pairs, data and
    // density.
    assert_eq!(html.matches("<svg").count(), 1 + 2 * 11);
    for warning in ["cannot be compared", "tested on different rows"] {
        assert!(!html.contains(warning), "the runs are comparable");
    }
    // A page of one run is the one that the fit wrote, and can go elsewhere.
    let own = fs::read_to_string(a.join("report.html")).expect("a page");
    let elsewhere = root.join("elsewhere.html");
    assert!(report(&[&a, Path::new("--out"), &elsewhere]).status.success());
    assert_eq!(fs::read_to_string(&elsewhere).expect("a page"), own);
}

#[test]
fn runs_that_cannot_be_compared_say_so() {
    let root = directory("report-different");
    let (a, b, c) = (root.join("a"), root.join("b"), root.join("c"));
    fit(&a, "builtin:banana", &[]);
    fit(&b, "builtin:banana", &["--seed", "5"]);
    fit(&c, "builtin:two-rings", &[]);
    let html = |runs: &[&Path]| {
        assert!(report(runs).status.success());
        fs::read_to_string(root.join("comparison.html")).expect("a page")
    };
    assert!(html(&[&a, &b]).contains("tested on different rows"));
    let different = html(&[&a, &c]);
    assert!(different.contains("cannot be compared"));
    assert!(!different.contains("has the highest"), "none of them is the best");
}

#[test]
fn a_run_that_is_not_finished_is_named_with_what_to_do() {
    let root = directory("report-unfinished");
    let run = root.join("run");
    fit(&run, "builtin:banana", &[]);
    fs::remove_file(run.join("results.json")).expect("it was there");
    let output = report(&[&run]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("results.json") && text.contains("--resume"), "{text}");
}
