//! A model of a discrete column, as a user calls it: its values stand for their cells in every verb.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("discrete");
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        path
    })
}

fn zhat(arguments: &[&str]) -> Output {
    let mut zhat = Command::new(env!("CARGO_BIN_EXE_zhat"));
    zhat.args(arguments).arg("--quiet").current_dir(root()).output().expect("it runs")
}

fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// A column of numbers below a header.
fn column(text: &str, index: usize) -> Vec<f64> {
    let cells = text.lines().skip(1).map(|line| line.split(',').nth(index).expect("a cell"));
    cells
        .map(|cell| if cell.is_empty() { f64::NAN } else { cell.parse().expect("a number") })
        .collect()
}

/// Throws of a die that is not fair, and beside each a number that follows it; a model of both, fitted once.
fn run() -> &'static str {
    static RUN: OnceLock<()> = OnceLock::new();
    RUN.get_or_init(|| {
        let mut text = String::from("eyes,weight\n");
        for i in 0..3000u64 {
            let uniform = |salt: u64| {
                let mixed = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (salt << 32);
                (mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 / (1u64 << 53) as f64
            };
            let eyes = (1.0 + 6.0 * uniform(1).sqrt()).floor();
            text += &format!("{eyes},{}\n", 0.4 * eyes + uniform(2) + uniform(3) + uniform(4));
        }
        fs::write(root().join("die.csv"), text).expect("written");
        done(&zhat(&[
            "fit",
            "die.csv",
            "--steps",
            "600",
            "--dequantise",
            "eyes=1",
            "--set",
            "validation.stack-mixtures=false",
            "--out",
            "die",
        ]));
    });
    "die"
}

#[test]
fn the_masses_of_all_values_sum_to_one() {
    // Every value with a grid of the other column, and values that never came, which have next to nothing.
    let mut text = String::from("eyes,weight\n");
    let values = -1..9;
    for eyes in values.clone() {
        (0..200).for_each(|i| text += &format!("{eyes},{}\n", -2.0 + 0.05 * (f64::from(i) + 0.5)));
    }
    fs::write(root().join("all.csv"), text).expect("written");
    let scores = column(&done(&zhat(&["score", run(), "all.csv"])), 0);
    let mass: Vec<f64> =
        scores.chunks(200).map(|scores| scores.iter().map(|s| s.exp() * 0.05).sum()).collect();
    let total: f64 = mass.iter().sum();
    assert!((total - 1.0).abs() < 0.02, "{total}: {mass:?}");
    // The shares of the data: (k^2 - (k - 1)^2) / 36 for the k-th value; five standard errors of 3,000 throws, and as much for
    // what the model smooths.
    for (eyes, mass) in values.zip(&mass).filter(|(eyes, _)| (1..=6).contains(eyes)) {
        let share = f64::from(eyes * eyes - (eyes - 1) * (eyes - 1)) / 36.0;
        assert!((mass - share).abs() < 0.07, "{eyes}: {mass} {share}");
    }
}

#[test]
fn a_file_is_evaluated_as_it_is_scored_and_as_the_fit_evaluated_its_own_rows() {
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&done(&zhat(&[arguments, &["--json"]].concat()))).expect("JSON")
    };
    let of_file = json(&["evaluate", run(), "die.csv"])["log_likelihood"].as_f64().unwrap();
    let scores = column(&done(&zhat(&["score", run(), "die.csv"])), 0);
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    assert!((of_file - mean).abs() < 1e-4, "{of_file} {mean}");
    let own = json(&["evaluate", run()])["log_likelihood"].as_f64().unwrap();
    let results = fs::read(root().join(run()).join("results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_slice(&results).expect("JSON");
    let fitted = results["test"]["log_likelihood"].as_f64().unwrap();
    assert!((own - fitted).abs() < 1e-6, "{own} {fitted}");
    // Training and test rows are of one kind: their means are close, within five standard errors of 300 rows.
    assert!((own - of_file).abs() < 0.4, "{own} {of_file}");
}

/// The numbers beside all throws of so many eyes.
fn weights_of(eyes: f64) -> Vec<f64> {
    let text = fs::read_to_string(root().join("die.csv")).expect("the data");
    let rows = column(&text, 0).into_iter().zip(column(&text, 1));
    rows.filter(|row| row.0 == eyes).map(|row| row.1).collect()
}

#[test]
fn draws_and_imputed_cells_are_values() {
    let eyes = column(&done(&zhat(&["sample", run(), "-n", "300"])), 0);
    assert!(eyes.iter().all(|eyes| (1.0..=6.0).contains(eyes) && eyes.fract() == 0.0), "{eyes:?}");
    let given = done(&zhat(&["sample", run(), "-n", "300", "--given", "eyes=2"]));
    assert!(column(&given, 0).iter().all(|eyes| *eyes == 2.0));
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    // Five standard errors of 300 draws with a standard deviation of 0.5.
    let (drawn, of_data) = (mean(&column(&given, 1)), mean(&weights_of(2.0)));
    assert!((drawn - of_data).abs() < 0.15, "{drawn} {of_data}");
    fs::write(root().join("holes.csv"), "eyes,weight\n,3.9\n,1.9\n2,\n").expect("written");
    for fill in ["mean", "median", "draw"] {
        let text = done(&zhat(&["impute", run(), "holes.csv", "--fill", fill]));
        let eyes = column(&text, 0);
        assert!(eyes.iter().all(|eyes| eyes.fract() == 0.0), "{fill}: {eyes:?}");
        assert!(eyes[2] == 2.0 && (column(&text, 1)[2] - of_data).abs() < 1.6, "{text}");
    }
}

#[test]
fn cells_that_were_edited_are_noticed_and_have_to_be_cells_of_columns() {
    let run = run();
    // Another run, as others are read by other tests at the same time.
    let edited = root().join("edited");
    fs::create_dir_all(&edited).expect("a directory");
    for file in ["config.toml", "model.safetensors", "model.json", "results.json"] {
        fs::copy(root().join(run).join(file), edited.join(file)).expect("copied");
    }
    let card = fs::read(edited.join("model.json")).expect("a card");
    let card: serde_json::Value = serde_json::from_slice(&card).expect("JSON");
    let expected = done(&zhat(&["score", "edited", "die.csv"]));
    let score_with = |discrete: serde_json::Value, more: &[&str]| {
        let mut card = card.clone();
        card["discrete"] = discrete;
        let text = serde_json::to_vec_pretty(&card).expect("JSON");
        fs::write(edited.join("model.json"), text).expect("written");
        zhat(&[&["score", "edited", "die.csv"], more].concat())
    };
    let on_purpose = &["--allow-modified"];
    let wider = serde_json::json!({ "eyes": { "step": 2.0 } });
    let refused = score_with(wider.clone(), &[]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && text.contains("model.json"), "{text}");
    assert_ne!(done(&score_with(wider, on_purpose)), expected);
    for (wrong, part) in [
        (serde_json::json!({ "ears": { "step": 1.0 } }), "ears"),
        (serde_json::json!({ "eyes": { "step": 0.0 } }), "step"),
        (
            serde_json::json!({ "eyes": { "step": 1.0, "grid": { "origin": 0, "lowest": 6, "highest": 1 } } }),
            "eyes",
        ),
    ] {
        let refused = score_with(wrong, on_purpose);
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && text.contains(part), "{text}");
    }
}
