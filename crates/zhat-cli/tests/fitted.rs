//! What one does with a fitted model, as a user calls it: evaluate, score, sample, impute, compare.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const SETTINGS: [&str; 13] = [
    "data.read.max-rows=3000",
    "training.batch-size=64",
    "step.num-negatives=5",
    "log-every=20",
    "training.validation-every=100",
    "validation.particles=500",
    "validation.base=never",
    "evaluation.particles=2000",
    "evaluation.estimates=3",
    "model.energy.width=16",
    "model.proposal.width=16",
    "model.context=8",
    "model.mixture-components=4",
];

fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fitted");
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        path
    })
}

fn zhat(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zhat"))
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("it runs")
}

fn with_settings<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let settings = SETTINGS.iter().flat_map(|setting| ["--set", *setting]);
    let small = ["--preset", "small", "--quiet"];
    arguments.iter().copied().chain(settings).chain(small).collect()
}

/// A model of the banana, fitted once for all tests.
fn run() -> &'static str {
    static RUN: OnceLock<()> = OnceLock::new();
    RUN.get_or_init(|| {
        let fit = ["fit", "builtin:banana", "--steps", "1000", "--out", "banana"];
        done(&zhat(&with_settings(&fit)));
    });
    "banana"
}

fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// The rows of a CSV text below its header; NaN for an empty cell.
fn rows(text: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let mut lines = text.lines();
    let header = lines.next().expect("a header").split(',').map(str::to_owned).collect();
    let cell =
        |cell: &str| if cell.is_empty() { f64::NAN } else { cell.parse().expect("a number") };
    (header, lines.map(|line| line.split(',').map(cell).collect()).collect())
}

fn write(name: &str, text: &str) -> &'static str {
    fs::write(root().join(name), text).expect("written");
    Box::leak(name.to_owned().into_boxed_str())
}

#[test]
fn evaluate_gives_every_number_and_a_verdict() {
    let arguments = ["--particles", "3000", "--estimates", "5", "--json", "--quiet"];
    let mut all = vec!["evaluate", run(), "--wasserstein", "100"];
    all.extend(arguments);
    let report: serde_json::Value = serde_json::from_str(&done(&zhat(&all))).expect("JSON");
    for key in [
        "log_likelihood",
        "se_test",
        "se_log_z",
        "log_z",
        "mean_log_z_hat",
        "smallest_effective_sample_size",
        "largest_weight",
        "proposal_log_likelihood",
        "truth",
    ] {
        assert!(report[key].is_number(), "{key} of {report}");
    }
    let opinions = report["opinions"].as_array().expect("opinions");
    assert_eq!(opinions.len(), 4);
    let (own, own_error) = (&opinions[0]["log_z"], &opinions[0]["standard_error"]);
    for other in &opinions[1..3] {
        let difference = own.as_f64().unwrap() - other["log_z"].as_f64().unwrap();
        let error = own_error.as_f64().unwrap().hypot(other["standard_error"].as_f64().unwrap());
        assert!(difference.abs() < 5.0 * error + 0.005, "{opinions:?}");
    }
    assert_eq!(opinions[3]["from_above"], true, "{opinions:?}");
    assert_eq!(report["verdict"]["trusted"], true, "{report}");
    let checks = report["verdict"]["checks"].as_array().expect("checks");
    assert!(checks.len() >= 8, "{checks:?}");
    for check in checks {
        assert!(check["figure"].is_number() && check["threshold"].is_number(), "{check}");
        assert!(check["passed"].is_boolean() && check["reason"].is_string(), "{check}");
    }
    let two_sample = &report["goodness"]["two_sample"];
    let accuracy = two_sample["accuracy"].as_f64().expect("a share");
    assert!((0.4..0.75).contains(&accuracy), "{two_sample}");
    let (model, data) = (&report["wasserstein"]["model"], &report["wasserstein"]["data"]);
    assert!(model.as_f64().unwrap() < 2.0 * data.as_f64().unwrap(), "{report}");
    // The same rows from a file give another likelihood by no more than their error.
    let mut fresh = vec!["evaluate", run(), "builtin:banana", "--max-rows", "2000"];
    fresh.extend(arguments);
    let fresh: serde_json::Value = serde_json::from_str(&done(&zhat(&fresh))).expect("JSON");
    let number = |report: &serde_json::Value, key: &str| report[key].as_f64().unwrap();
    let difference = number(&report, "log_likelihood") - number(&fresh, "log_likelihood");
    let error = number(&report, "se_test").hypot(number(&fresh, "se_test"));
    assert!(difference.abs() < 4.0 * error, "{difference} {error}");
}

#[test]
fn an_untrained_model_is_not_to_be_trusted() {
    let fit = ["fit", "builtin:banana", "--steps", "1", "--out", "untrained"];
    done(&zhat(&with_settings(&fit)));
    let evaluate = ["evaluate", "untrained", "--particles", "2000", "--estimates", "5", "--quiet"];
    let text = done(&zhat(&evaluate));
    assert!(text.contains("not to be trusted"), "{text}");
    let strict = zhat(&[&evaluate[..], &["--strict"]].concat());
    assert_eq!(strict.status.code(), Some(1));
}

/// Bounded units leave `p~` a floor, which no estimate of `Z` notices.
#[test]
fn a_model_without_a_z_has_no_likelihood_and_everything_says_so() {
    let fit = |out: &str, more: &str| {
        let mut arguments =
            with_settings(&["fit", "builtin:banana", "--steps", "60", "--out", out]);
        arguments.extend(["--set", "model.energy.activation=tanh", "--set", more]);
        done(&zhat(&arguments))
    };
    let strictly = |run: &str| {
        let more = ["--particles", "500", "--estimates", "3", "--strict", "--quiet"];
        zhat(&[&["evaluate", run][..], &more].concat())
    };
    let ended = fit("floor", "model.confine=0");
    let evaluated = strictly("floor");
    assert_eq!(evaluated.status.code(), Some(1));
    let evaluated = String::from_utf8(evaluated.stdout).expect("UTF-8");
    let page = fs::read_to_string(root().join("floor/report.html")).expect("a page");
    for text in [&ended, &evaluated, &page] {
        for part in ["no Z", "not to be trusted", "does not fall far out; column x", "10000"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let results = fs::read_to_string(root().join("floor/results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_str(&results).expect("JSON");
    assert!(results["test"]["log_likelihood"].is_null() && results["test"]["log_z"].is_null());
    assert_eq!(results["test"]["tail"]["falls"], false);
    assert_eq!(results["verdict"]["trusted"], false);
    let scored = zhat(&["score", "floor", "builtin:banana", "--out", "floor.csv", "--quiet"]);
    assert_eq!(scored.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&scored.stderr).contains("no Z"));
    // The same energy as a tilt falls as its base does.
    fit("slope", "model.energy-form=tilted");
    let evaluated =
        ["evaluate", "slope", "--particles", "500", "--estimates", "3", "--json", "--quiet"];
    let evaluated: serde_json::Value =
        serde_json::from_str(&done(&zhat(&evaluated))).expect("JSON");
    assert_eq!(evaluated["verdict"]["trusted"], true, "{evaluated}");
}

#[test]
fn a_density_that_is_normalised_column_by_column_says_how_well_it_is_integrated() {
    let fit = ["fit", "builtin:banana", "--steps", "100", "--criterion", "rnce", "--out", "local"];
    let mut arguments = with_settings(&fit);
    arguments.extend(["--set", "model.energy-form=tilted", "--set", "model.normalisation=local"]);
    assert!(done(&zhat(&arguments)).contains("error of the quadrature"));
    let evaluate = ["evaluate", "local", "--estimates", "2", "--quiet"];
    assert!(done(&zhat(&evaluate)).contains("by quadrature"));
    let found = done(&zhat(&[&evaluate[..], &["--json"]].concat()));
    let found: serde_json::Value = serde_json::from_str(&found).expect("JSON");
    let error = found["quadrature_error"].as_f64().expect("a number");
    assert!(error > 0.0 && error < 0.01, "{found}");
    assert_eq!(found["verdict"]["trusted"], true, "{found}");
    let opinion = &found["opinions"][0];
    assert_eq!(opinion["method"], "sampling of the integrals", "{found}");
    assert!(opinion["log_z"].as_f64().expect("a number").abs() < 0.1, "{found}");
    assert_eq!((&found["log_z"], &found["se_log_z"]), (&0.0.into(), &0.0.into()));
    let page = fs::read_to_string(root().join("local/report.html")).expect("a page");
    assert!(page.contains("two rules of quadrature"), "{page}");
}

#[test]
fn scores_are_the_log_densities_of_the_rows_in_their_order() {
    let data = write("points.csv", "x2,id,x1\n1.0,a,0.0\n,b,0.5\n9.0,c,9.0\n");
    let (header, scores) = rows(&done(&zhat(&["score", run(), data, "--parts", "--quiet"])));
    assert_eq!(header, ["log_density", "log_p_tilde", "log_q"]);
    assert_eq!(scores.len(), 3);
    assert!(scores[1].iter().all(|score| score.is_nan()), "a missing cell has no density");
    assert!(scores[0][0] > scores[2][0] + 3.0, "the middle is denser than far outside");
    let log_z = scores[0][1] - scores[0][0];
    assert!((scores[2][1] - scores[2][0] - log_z).abs() < 1e-5, "log p~ - log p is log Z");
    let results = fs::read(root().join(run()).join("results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_slice(&results).expect("JSON");
    assert!((results["test"]["log_z"].as_f64().unwrap() - log_z).abs() < 1e-5);
    // Without names, by position; to a file in another format and back.
    let plain = write("plain.csv", "0.0,1.0\n9.0,9.0\n");
    let out = ["score", run(), plain, "--out", "scores.npy", "--quiet"];
    done(&zhat(&out));
    let bytes = fs::read(root().join("scores.npy")).expect("a file");
    assert_eq!(bytes.len(), 128 + 2 * 8);
    let first = f64::from_le_bytes(bytes[128..136].try_into().unwrap());
    assert!((first - scores[0][0]).abs() < 1e-6, "{first} {scores:?}");
}

#[test]
fn the_density_that_is_scored_integrates_to_one() {
    // The banana lies within [-8, 8] x [-6, 20]; midpoints of a grid.
    let (mut text, mut area) = (String::from("x1,x2\n"), 0.0);
    let steps = (160, 260);
    for i in 0..steps.0 {
        for j in 0..steps.1 {
            let (dx, dy) = (16.0 / steps.0 as f64, 26.0 / steps.1 as f64);
            area = dx * dy;
            let (x, y) = (-8.0 + (i as f64 + 0.5) * dx, -6.0 + (j as f64 + 0.5) * dy);
            text.push_str(&format!("{x},{y}\n"));
        }
    }
    let grid = write("grid.csv", &text);
    let (_, scores) = rows(&done(&zhat(&["score", run(), grid, "--quiet"])));
    let total: f64 = scores.iter().map(|row| row[0].exp() * area).sum();
    assert!((total - 1.0).abs() < 0.03, "{total}");
}

#[test]
fn draws_look_like_the_data_and_keep_what_is_given() {
    let (header, draws) = rows(&done(&zhat(&["sample", run(), "-n", "500", "--quiet"])));
    assert_eq!((header, draws.len()), (vec!["x1".to_owned(), "x2".to_owned()], 500));
    let mean = |column: usize, rows: &[Vec<f64>]| {
        rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64
    };
    // Given x1, the banana's x2 lies around a parabola in x1: symmetric, and far apart for 0 and 2.
    let given = |value: &str| {
        let given = format!("x1={value}");
        let output = zhat(&["sample", run(), "-n", "400", "--given", &given, "--quiet"]);
        let (_, rows) = rows(&done(&output));
        let value: f64 = value.parse().unwrap();
        assert!(rows.iter().all(|row| row[0] == value));
        mean(1, &rows)
    };
    let (middle, left, right) = (given("0"), given("-1.5"), given("1.5"));
    assert!((left - right).abs() < 0.5 * (left - middle).abs().max(0.3), "{left} {middle} {right}");
    assert!((left - middle).abs() > 0.3, "{left} {middle}");
}

#[test]
fn draws_that_are_worth_fewer_rows_say_so_first() {
    let sample = |more: &[&str]| {
        let all = [&["sample", run(), "-n", "500", "--quiet"], more].concat();
        let output = zhat(&all);
        let text = done(&output);
        (text, String::from_utf8(output.stderr).expect("UTF-8"))
    };
    // Twenty particles cannot be five hundred different rows.
    let (_, told) = sample(&["--particles", "20"]);
    let first = told.lines().next().expect("a line");
    assert!(first.starts_with("warning: these 500 draws are worth "), "{told}");
    let (text, _) = sample(&["--particles", "20", "--out", "few.csv", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(found["effective_sample_size"].as_f64().expect("a number") <= 20.0, "{found}");
    assert_eq!(fs::read_to_string(root().join("few.csv")).expect("rows").lines().count(), 501);
}

#[test]
fn missing_cells_are_filled_and_the_others_left_alone() {
    let data = write("holes.csv", "x1,x2\n0.0,\n,1.0\n,\n0.25,0.5\n");
    let text = done(&zhat(&["impute", run(), data, "--quantiles", "0.1,0.9", "--quiet"]));
    let (header, filled) = rows(&text);
    let expected = "x1,x2,x1_q0.1,x2_q0.1,x1_q0.9,x2_q0.9,effective_sample_size,trusted";
    let expected: Vec<&str> = expected.split(',').collect();
    assert_eq!(header, expected);
    assert_eq!((filled[0][0], filled[1][1]), (0.0, 1.0));
    assert_eq!(filled[3][..6], [0.25, 0.5, 0.25, 0.5, 0.25, 0.5]);
    assert!(filled[3][6].is_nan() && filled[3][7] == 1.0);
    for row in &filled[..3] {
        assert!(row[..6].iter().all(|cell| cell.is_finite()), "{row:?}");
        assert!(row[2] <= row[0] && row[0] <= row[4], "{row:?}");
        assert!(row[6] >= 30.0 && row[7] == 1.0, "{row:?}");
    }
    let copies = ["impute", run(), data, "--fill", "draw", "--copies", "3", "--quiet"];
    let (header, copies) = rows(&done(&zhat(&copies)));
    assert_eq!((header[2].as_str(), copies.len()), ("copy", 12));
    assert_ne!(copies[0][1], copies[1][1], "each copy has its own draw");
}

#[test]
fn bad_input_is_named_and_leaves_no_file() {
    let other = write("other.csv", "a,b\n1,2\n");
    let three = write("three.csv", "0.5,1.5,2.5\n4.5,5.5,6.5\n");
    let holes = write("one_hole.csv", "x1,x2\n1,2\n3,\n");
    fs::create_dir_all(root().join("unfinished")).unwrap();
    fs::copy(root().join(run()).join("config.toml"), root().join("unfinished/config.toml"))
        .unwrap();
    let newer = root().join("newer");
    fs::create_dir_all(&newer).unwrap();
    for file in ["config.toml", "model.json", "model.safetensors", "results.json"] {
        fs::copy(root().join(run()).join(file), newer.join(file)).unwrap();
    }
    let card = fs::read_to_string(newer.join("model.json")).unwrap();
    let format = format!("\"format\": {}", zhat_table::run::FORMAT);
    fs::write(newer.join("model.json"), card.replace(&format, "\"format\": 99")).unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["score", "nowhere", other], "not a run"),
        (&["score", "unfinished", other], "fit --resume"),
        (&["score", "newer", other], "format 99"),
        (&["score", run(), other, "--out", "bad.csv"], "no column x1"),
        (&["score", run(), three, "--out", "bad.csv"], "--columns"),
        (&["score", run(), "missing.csv", "--out", "bad.csv"], "not there"),
        (&["score", run(), other, "--out", "bad.xlsx"], ".parquet"),
        (&["evaluate", run(), holes], "line 3"),
        (&["evaluate", run(), "--estimates", "1"], "--estimates"),
        (&["evaluate", run(), "--wasserstein", "100000"], "--wasserstein"),
        (&["sample", run(), "-n", "0", "--out", "bad.csv"], "-n"),
        (&["sample", run(), "--given", "x9=1", "--out", "bad.csv"], "x9"),
        (&["sample", run(), "--given", "x1=1,x2=2", "--out", "bad.csv"], "nothing left"),
        (&["sample", run(), "--given", "x1"], "COLUMN=VALUE"),
        (&["impute", run(), holes, "--quantiles", "2", "--out", "bad.csv"], "between 0 and 1"),
        (&["impute", run(), holes, "--copies", "2", "--out", "bad.csv"], "fill is draw"),
        (&["impute", run(), holes, "--fill", "mode", "--out", "bad.csv"], "mean, median, draw"),
        (&["impute", run(), holes, "--particles", "3", "--out", "bad.csv"], "(--particles)"),
        (&["evaluate", run(), "--resampling", "none"], "systematic"),
        (&["compare", "builtin:banana", "--criteria", "cd", "--out", "bad"], "smc-rnce"),
        (&["compare", "builtin:banana", "--criteria", "rnce,rnce", "--out", "bad"], "twice"),
    ];
    for (arguments, words) in cases {
        let output = zhat(&[arguments, &["--quiet"][..]].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(words), "{arguments:?}: {message}");
        assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    }
    let left = |name: &str| name.contains("bad");
    let names = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name());
    let leftovers: Vec<_> = names.filter(|name| left(&name.to_string_lossy())).collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[test]
fn a_fit_of_the_proposal_alone_is_the_proposal() {
    let fit = ["fit", "builtin:banana", "--criterion", "q-only", "--steps", "200", "--out", "q"];
    let results = done(&zhat(&[&with_settings(&fit)[..], &["--json"]].concat()));
    let results: serde_json::Value = serde_json::from_str(&results).expect("JSON");
    let evaluate = ["evaluate", "q", "--wasserstein", "200", "--json", "--quiet"];
    let report: serde_json::Value = serde_json::from_str(&done(&zhat(&evaluate))).expect("JSON");
    for likelihood in [&results["test"], &report] {
        assert_eq!(likelihood["log_likelihood"], likelihood["proposal_log_likelihood"]);
        assert_eq!((&likelihood["log_z"], &likelihood["se_log_z"]), (&0.0.into(), &0.0.into()));
    }
    assert_eq!(report["verdict"]["trusted"], true, "{report}");
    let validation = results["validation_log_likelihood"].as_f64().expect("a number");
    let test = report["log_likelihood"].as_f64().expect("a number");
    assert!(
        (validation - test).abs() < 0.5,
        "validation has the same density: {validation} {test}"
    );
    let distance = |of: &str| report["wasserstein"][of].as_f64().expect("a number");
    assert!(distance("model") < 2.0 * distance("data"), "{report}");
    let data = write("q.csv", "x1,x2\n0.0,1.0\n1.0,3.0\n");
    let (_, scores) = rows(&done(&zhat(&["score", "q", data, "--parts", "--quiet"])));
    assert!(scores.iter().all(|row| row[0] == row[2] && row[1] == row[2]), "{scores:?}");
    let sample = zhat(&["sample", "q", "-n", "300", "--out", "q_draws.csv", "--quiet"]);
    assert!(done(&sample).contains("worth 300 independent"), "no draw is taken twice");
    assert!(zhat(&["report", "q", "--quiet"]).status.success());
}

#[test]
fn criteria_get_the_same_time_and_a_timed_comparison_is_taken_up_as_it_was() {
    let arguments = ["compare", "builtin:banana", "--criteria", "rnce,q-only", "--time", "1s"];
    let arguments = with_settings(&[&arguments[..], &["--json", "--out", "timed"]].concat());
    let report: serde_json::Value = serde_json::from_str(&done(&zhat(&arguments))).expect("JSON");
    assert_eq!(report["budget"]["time"]["seconds"], 1.0, "{report}");
    let config = root().join("timed/rnce-1/config.toml");
    let before = fs::read_to_string(&config).expect("settings");
    fs::remove_file(root().join("timed/rnce-1/results.json")).expect("it was there");
    done(&zhat(&[&arguments[..], &["--resume"]].concat()));
    assert_eq!(fs::read_to_string(&config).expect("settings"), before, "nothing is timed again");
}

#[test]
fn one_seed_says_that_it_is_one() {
    let compare = ["compare", "builtin:banana", "--criteria", "rnce,smc-rnce", "--steps", "60"];
    let more = ["--out", "single", "--set", "seed=7"];
    let text = done(&zhat(&with_settings(&[&compare[..], &more].concat())));
    assert_eq!(text.matches("one seed").count(), 2, "{text}");
    let page = fs::read_to_string(root().join("single/report.html")).expect("a page");
    assert!(page.contains("one seed: errors are those of rows and log Z alone"));
    let config = fs::read_to_string(root().join("single/rnce-1/config.toml")).expect("settings");
    assert!(config.contains("seed = 7"), "the configuration's own seed counts: {config}");
}

#[test]
fn criteria_are_compared_and_a_comparison_is_taken_up_again() {
    let arguments = ["compare", "builtin:banana", "--criteria", "rnce,q-only", "--steps", "60"];
    let more = ["--repeats", "2", "--json", "--out", "compared"];
    let arguments = with_settings(&[&arguments[..], &more[..]].concat());
    let first = done(&zhat(&arguments));
    let report: serde_json::Value = serde_json::from_str(&first).expect("JSON");
    let criteria = report["criteria"].as_array().expect("criteria");
    assert_eq!(criteria.len(), 2);
    assert_eq!(criteria.iter().filter(|row| row["behind_best"] == 0.0).count(), 1, "{criteria:?}");
    for row in criteria {
        assert!(row["se_seeds"].is_number() && row["se_test"].is_number(), "{row}");
        assert!(row["told_apart"].is_boolean(), "{row}");
    }
    for file in ["comparison.json", "comparison.svg", "comparison.png", "report.html"] {
        assert!(root().join("compared").join(file).is_file(), "{file}");
    }
    let again = zhat(&arguments);
    assert_eq!(again.status.code(), Some(2), "a finished comparison is not overwritten");
    // One fit is gone: only that one is made again, and the outcome is the same but for the time.
    fs::remove_dir_all(root().join("compared/rnce-2")).unwrap();
    let resumed = done(&zhat(&[&arguments[..], &["--resume"]].concat()));
    let mut both =
        [first, resumed].map(|text| serde_json::from_str::<serde_json::Value>(&text).unwrap());
    for report in &mut both {
        for row in report["criteria"].as_array_mut().unwrap() {
            row["seconds"] = 0.into();
        }
    }
    assert_eq!(both[0], both[1]);
}

/// A run against itself, against a worse one, and against one of other columns.
#[test]
fn two_runs_are_compared_row_by_row() {
    let compare =
        |more: &[&str]| zhat(&[&["evaluate", run()], more, &["--json", "--quiet"]].concat());
    let json = |more: &[&str]| -> serde_json::Value {
        serde_json::from_str(&done(&compare(more))).expect("JSON")
    };
    let itself = json(&[run()]);
    assert_eq!((&itself["difference"], &itself["told_apart"]), (&0.0.into(), &false.into()));
    let fit = ["fit", "builtin:banana", "--steps", "2", "--out", "worse"];
    done(&zhat(&with_settings(&fit)));
    let worse = json(&["worse"]);
    assert_eq!(worse["told_apart"], true, "{worse}");
    let interval = worse["interval"].as_array().expect("an interval");
    assert!(interval[0].as_f64().unwrap() > 0.0, "{worse}");
    let difference = worse["difference"].as_f64().unwrap();
    let likelihoods = worse["log_likelihoods"].as_array().expect("two");
    let [own, other] = [0, 1].map(|at: usize| likelihoods[at].as_f64().unwrap());
    assert!((own - other - difference).abs() < 1e-9, "{worse}");
    // On other rows, and in words.
    let text = done(&zhat(&[
        "evaluate",
        run(),
        "worse",
        "builtin:banana",
        "--max-rows",
        "500",
        "--quiet",
    ]));
    assert!(text.contains("The first run is ahead, by") && text.contains("500"), "{text}");
    let other = ["fit", "builtin:mixture-3", "--steps", "2", "--out", "three"];
    done(&zhat(&with_settings(&other)));
    let refused = compare(&["three"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("different columns"));
}
