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
fn rows_with_missing_cells_are_counted_and_left_out_of_the_mean() {
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
    assert!(told.contains("2 of 4 rows have missing cells") && !told.contains("NaN"), "{told}");
    assert!(told.contains("4 rows, 2 of them whole, mean log-density -"), "{told}");
    let none = score("x1,x2\n,1\n0,\n");
    assert_eq!(none.status.code(), Some(1), "nothing was scored");
    let told = stderr(&none);
    assert!(told.contains("2 rows, 0 of them whole: no mean log-density"), "{told}");
    assert_eq!(stdout(&none).lines().count(), 3, "a line for each row all the same");
}
