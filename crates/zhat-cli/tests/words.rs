//! What the program says where something is odd: outliers, missing cells, memory, and numbers that a picture may not cost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("words_{test}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

fn zhat(directory: &Path, arguments: &[&str]) -> Output {
    let mut zhat = Command::new(env!("CARGO_BIN_EXE_zhat"));
    zhat.args(arguments).arg("--quiet").current_dir(directory).output().expect("it runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A number between 0 and 1 that is never the same twice.
fn spread(row: usize, of: f64) -> f64 {
    (row as f64 * of).fract()
}

/// A table of two columns, one cell of which is something else.
fn table(rows: usize, odd: &str) -> String {
    (0..rows).fold("a,b\n".into(), |text, row| {
        let (a, b) = (spread(row, 0.618_033_988), spread(row, 0.754_877_666));
        let a = if row == 77 { odd.into() } else { a.to_string() };
        format!("{text}{a},{}\n", b + 0.3 * spread(row, 0.618_033_988))
    })
}

const SMALL: [&str; 6] =
    ["--preset", "small", "--steps", "30", "--set", "evaluation.particles=500"];

#[test]
fn one_value_far_out_costs_neither_the_numbers_nor_the_page() {
    for odd in ["1e6", "1e17", "-3e30"] {
        let directory = directory(&format!("far_{odd}"));
        fs::write(directory.join("t.csv"), table(500, odd)).expect("written");
        let more = ["--set", "validation.cross-validate-below=0", "--out", "run"];
        let output = zhat(&directory, &[&["fit", "t.csv"], &SMALL[..], &more].concat());
        assert!(output.status.success(), "{odd}: {}", stderr(&output));
        assert!(stdout(&output).contains("test log-likelihood"), "{odd}");
        assert!(directory.join("run/report.html").is_file(), "{odd}");
        assert!(!stderr(&output).contains("panicked"), "{odd}: {}", stderr(&output));
    }
}

#[test]
fn a_word_that_stands_for_missing_cells_is_an_error_that_says_what_to_type() {
    let directory = directory("one_word");
    let text = table(200, "0.5").replacen("\n0,", "\n-,", 1);
    assert!(text.contains("-,"), "{text}");
    fs::write(directory.join("t.csv"), text).expect("written");
    let fit = |more: &[&str]| {
        let quick = ["--steps", "5", "--set", "validation.folds=2"];
        zhat(&directory, &[&["fit", "t.csv"], &quick[..], more].concat())
    };
    let refused = fit(&["--out", "none"]);
    let told = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("column a") && told.contains("--kind a=categorical"), "{told}");
    assert!(!directory.join("none").exists());
    let carried = fit(&["--out", "run", "--kind", "a=identifier"]);
    assert!(carried.status.success(), "{}", stderr(&carried));
}

#[test]
fn what_has_no_room_in_memory_is_refused_before_anything_is_made() {
    let directory = directory("memory");
    for (setting, name) in [
        ("step.num-negatives=1000000000000", "step.num-negatives is 1000000000000"),
        ("evaluation.particles=1000000000000", "evaluation.particles is 1000000000000"),
        ("model.energy.width=2000000", "model.energy.width is 2000000"),
    ] {
        let arguments = [&["fit"], &SMALL[..4], &["--set", setting, "--out", "run"]].concat();
        let output = zhat(&directory, &arguments);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(name) && told.contains("of memory"), "{told}");
        assert!(!directory.join("run").exists(), "{setting}");
    }
    // The model itself, which has particles; a proposal has none.
    let more = ["--set", "validation.base=never", "--out", "run"];
    let output = zhat(&directory, &[&["fit"], &SMALL[..], &more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    for arguments in [
        ["evaluate", "run", "--particles", "1000000000000"],
        ["sample", "run", "--particles", "1000000000000"],
        ["sample", "run", "-n", "18446744073709551615"],
    ] {
        let output = zhat(&directory, &arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("of memory"), "{}", stderr(&output));
    }
}

#[test]
fn rows_with_missing_cells_are_scored_by_what_is_observed_and_those_of_nothing_are_left_out() {
    let directory = directory("missing");
    let output =
        zhat(&directory, &[&["fit", "builtin:banana"], &SMALL[..], &["--out", "run"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let score = |text: &str| {
        fs::write(directory.join("t.csv"), text).expect("written");
        zhat(&directory, &["score", "run", "t.csv"])
    };
    let some = score("x1,x2\n0,1\n,1\n0.5,1\nNA,\n");
    assert!(some.status.success());
    let told = stderr(&some);
    assert!(
        told.contains("1 of 4 rows have missing cells: their log-density is that of the others")
    );
    assert!(told.contains("1 of 4 rows have missing cells: they have no log-density"), "{told}");
    assert!(told.contains("4 rows, 3 of them with a log-density, mean") && !told.contains("NaN"));
    let none = score("x1,x2\n,\nNA,\n");
    assert_eq!(none.status.code(), Some(1), "nothing was scored");
    let told = stderr(&none);
    assert!(told.contains("2 rows, 0 of them with a log-density: no mean log-density"), "{told}");
    assert_eq!(stdout(&none).lines().count(), 3, "a line for each row all the same");
}

#[test]
fn what_is_given_far_out_is_called_a_guess() {
    let directory = directory("given");
    let output =
        zhat(&directory, &[&["fit", "builtin:banana"], &SMALL[..], &["--out", "run"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let far = zhat(&directory, &["sample", "run", "-n", "10", "--given", "x1=90"]);
    assert!(stderr(&far).contains("warning: x1=90 is"), "{}", stderr(&far));
    assert!(stderr(&far).contains("standard deviations from the mean"), "{}", stderr(&far));
    let near = zhat(&directory, &["sample", "run", "-n", "10", "--given", "x1=0.5"]);
    assert!(!stderr(&near).contains("guess"), "{}", stderr(&near));
}

#[test]
fn dropped_rows_are_warned_of_once_and_steps_are_given_with_commas() {
    let directory = directory("once");
    let text = table(300, "NA").replace("a,b", "a,b,k 1,l");
    let mut lines = text.lines();
    let header = lines.next().expect("a header").to_owned();
    let rows: Vec<String> =
        lines.enumerate().map(|(i, line)| format!("{line},{},{}", i % 5, 2 * (i % 3))).collect();
    fs::write(directory.join("t.csv"), format!("{header}\n{}\n", rows.join("\n")))
        .expect("written");
    let more = ["--drop-missing", "--dequantise", "k 1=1,l=2", "--out", "run"];
    let output = zhat(&directory, &[&["fit", "t.csv"], &SMALL[..], &more].concat());
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("missing").count(), 1, "{told}");
    assert!(!told.contains("looks discrete"), "{told}");
    let card = fs::read_to_string(directory.join("run/model.json")).expect("a card");
    assert!(card.contains("\"k 1\"") && card.contains("\"step\": 2.0"), "{card}");
}

#[test]
fn a_run_that_cannot_be_read_is_not_said_to_be_none() {
    let directory = directory("unreadable");
    fs::create_dir(directory.join("loop")).expect("a directory");
    std::os::unix::fs::symlink("config.toml", directory.join("loop/config.toml")).expect("a link");
    let told = stderr(&zhat(&directory, &["evaluate", "loop"]));
    assert!(told.contains("config.toml") && !told.contains("is not a run"), "{told}");
    fs::create_dir(directory.join("empty")).expect("a directory");
    let told = stderr(&zhat(&directory, &["evaluate", "empty"]));
    assert!(told.contains("empty is not a run"), "{told}");
}

#[test]
fn a_bad_line_of_the_metrics_is_named_by_its_own_number() {
    let directory = directory("metrics");
    let more = ["--set", "log-every=2", "--out", "run"];
    let output = zhat(&directory, &[&["fit"], &SMALL[..], &more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let path = directory.join("run/metrics.jsonl");
    let text = fs::read_to_string(&path).expect("metrics");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[4] = "{\"step\": oops}";
    fs::write(&path, lines.join("\n")).expect("written");
    let output = zhat(&directory, &["report", "run"]);
    let told = stderr(&output);
    assert!(told.contains("metrics.jsonl: line 5, column 10: expected value"), "{told}");
}

#[test]
fn scores_carry_identifiers_along_and_have_a_rank() {
    let directory = directory("carry");
    let output =
        zhat(&directory, &[&["fit", "builtin:banana"], &SMALL[..], &["--out", "run"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = "name,x2,x1,00id\n\"Smith, J\",1.0,0.0,007\nBö,,0.5,008\nfar,9.0,9.0,009\n";
    fs::write(directory.join("t.csv"), text).expect("written");
    let output = zhat(&directory, &["score", "run", "t.csv", "--carry", "all", "--rank"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found = stdout(&output);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[0], "name,00id,log_density,rank");
    assert!(lines[1].starts_with("\"Smith, J\",007,-") && lines[1].ends_with(",2"), "{found}");
    assert!(lines[2].starts_with("Bö,008,-") && lines[2].ends_with(",3"), "{found}");
    assert!(lines[3].starts_with("far,009,-") && lines[3].ends_with(",1"), "{found}");
    let one = zhat(&directory, &["score", "run", "t.csv", "--carry", "00id", "--out", "s.csv"]);
    assert!(one.status.success(), "{}", stderr(&one));
    let written = fs::read_to_string(directory.join("s.csv")).expect("scores");
    assert!(written.starts_with("00id,log_density\n007,-"), "{written}");
    let wrong = zhat(&directory, &["score", "run", "t.csv", "--carry", "nam"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("Did you mean name?") && stdout(&wrong).is_empty());
    let numbers = zhat(&directory, &["score", "run", "t.csv", "--carry", "name", "--out", "s.npy"]);
    assert!(stderr(&numbers).contains(".csv and .tsv only"), "{}", stderr(&numbers));
    assert!(!directory.join("s.npy").exists());
}
