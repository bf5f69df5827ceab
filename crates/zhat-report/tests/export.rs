//! The files: exact keys and columns, what is read back, and that nothing is ever half written.

mod common;

use std::{fs, io::Write};

use common::experiment;
use serde_json::Value;
use zhat_report::{Experiment, Setting, export};

/// The keys of an arm's curves.
const CURVES: [&str; 7] =
    ["iterations", "median", "q25", "q75", "worst", "median_low", "median_high"];

#[test]
fn the_record_has_exactly_the_keys_of_results_json_in_order() {
    let json: Value = serde_json::from_str(&experiment().to_json().expect("JSON")).expect("valid");
    let keys =
        |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(&json),
        [
            "experiment",
            "version",
            "settings",
            "seconds",
            "threads",
            "finished_runs",
            "arms",
            "claims"
        ]
    );
    assert_eq!(keys(&json["settings"]), ["runs", "arms", "rate", "quick"]);
    assert_eq!(keys(&json["arms"]), ["z", "a"]);
    assert_eq!(keys(&json["arms"]["z"]), [&CURVES[..], &["acceptance"]].concat());
    assert_eq!(keys(&json["arms"]["a"]), CURVES);
    assert_eq!(keys(&json["arms"]["z"]["acceptance"]), ["cnce", "mh-cnce"]);
    assert_eq!(keys(&json["claims"][0]), ["claim", "test", "measured", "decision"]);
}

#[test]
fn only_an_interrupted_experiment_says_so() {
    let mut experiment = experiment();
    assert!(!experiment.to_json().expect("JSON").contains("interrupted"));
    experiment.interrupted = true;
    assert!(experiment.to_json().expect("JSON").contains("\"interrupted\": true"));
}

#[test]
fn a_record_read_back_is_the_same_even_where_it_is_infinite() {
    let mut experiment = experiment();
    let group = [("deep".to_string(), Setting::Real(2.5))].into_iter().collect();
    experiment.settings.extend([
        ("seed".into(), Setting::Count(u64::MAX)),
        ("limit".into(), Setting::Real(0.1 + 0.2)),
        ("samples".into(), Setting::Unset),
        ("offset".into(), Setting::Whole(-3)),
        ("bound".into(), Setting::Real(f64::INFINITY)),
        ("digits".into(), Setting::from("0.5")),
        ("short".into(), Setting::from("inf")),
        ("group".into(), Setting::Group(group)),
    ]);
    experiment.arms[1].finished_runs = Some(1);
    let json = experiment.to_json().expect("JSON");
    assert_eq!(serde_json::from_str::<Experiment>(&json).expect("readable"), experiment);
}

#[test]
fn numbers_that_are_not_finite_are_words_and_never_null() {
    let mut experiment = experiment();
    experiment.settings.extend([
        ("bound".into(), Setting::Real(f64::NEG_INFINITY)),
        ("nothing".into(), Setting::Real(f64::NAN)),
    ]);
    let json: Value = serde_json::from_str(&experiment.to_json().expect("JSON")).expect("valid");
    assert_eq!(json["arms"]["z"]["worst"][1], "Infinity");
    assert_eq!(json["settings"]["bound"], "-Infinity");
    assert_eq!(json["settings"]["nothing"], "NaN");
    let csv = export::csv::curves(&experiment.arms["z"].curves);
    assert!(csv.ends_with("2,Infinity,Infinity,Infinity,Infinity,-Infinity,Infinity\n"), "{csv}");
}

#[test]
fn a_word_where_a_number_belongs_is_refused_with_its_place() {
    let broken = experiment().to_json().expect("JSON").replace("\"Infinity\"", "\"huge\"");
    let refused = serde_json::from_str::<Experiment>(&broken).expect_err("not a number");
    let message = refused.to_string();
    assert!(message.contains("line ") && message.contains("`huge`"), "{message}");
}

#[test]
fn csv_has_its_columns_and_one_row_per_iteration() {
    let experiment = experiment();
    let curves = export::csv::curves(&experiment.arms["z"].curves);
    assert_eq!(
        curves.lines().next(),
        Some("iteration,median,q25,q75,worst,median_low,median_high")
    );
    assert_eq!(curves.lines().nth(1), Some("1,3,2.5,3.5,4,-Infinity,Infinity"));
    assert_eq!(
        export::csv::acceptance(&experiment.arms["z"]),
        "iteration,cnce,mh-cnce\n1,0.25,0.5\n2,0.5,0.75\n"
    );
}

#[test]
fn every_arm_gets_its_files_and_no_name_leaves_the_directory() {
    let directory =
        common::Directory::new("every_arm_gets_its_files_and_no_name_leaves_the_directory");
    let mut experiment = experiment();
    let arm = experiment.arms["a"].clone();
    experiment.arms.insert("../evil arm".into(), arm.clone());
    let paths = export::csv::write_arms(directory.path(), "kl", &experiment).expect("written");
    let names: Vec<_> =
        paths.iter().map(|path| path.strip_prefix(directory.path()).expect("inside")).collect();
    assert_eq!(names.len(), 4);
    assert!(names.iter().all(|name| name.components().count() == 1), "{names:?}");
    assert!(paths.iter().all(|path| path.is_file()));

    experiment.arms.insert("evil/arm".into(), arm.clone());
    experiment.arms.insert("evil arm".into(), arm);
    let message = export::csv::write_arms(directory.path(), "kl", &experiment)
        .expect_err("two in one")
        .to_string();
    assert!(message.contains("`evil/arm`") && message.contains("`evil arm`"), "{message}");
}

#[test]
fn writing_replaces_the_old_file_and_leaves_nothing_else() {
    let directory = common::Directory::new("writing_replaces_the_old_file_and_leaves_nothing_else");
    let path = directory.path().join("results.json");
    fs::write(&path, "old").expect("written");
    export::json::write(&path, &experiment()).expect("replaced");
    let text = fs::read_to_string(&path).expect("readable");
    assert_eq!(serde_json::from_str::<Experiment>(&text).expect("valid"), experiment());
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
}

#[test]
fn a_write_that_fails_leaves_the_old_file_and_no_other() {
    let directory = common::Directory::new("a_write_that_fails_leaves_the_old_file_and_no_other");
    let path = directory.path().join("old.json");
    fs::write(&path, "old").expect("written");
    let failed = export::replace_file(&path, |file| {
        file.write_all(b"half of the ne")?;
        Err(std::io::Error::other("disk full"))
    });
    assert_eq!(failed.expect_err("disk full").to_string(), "disk full");
    assert_eq!(fs::read_to_string(&path).expect("readable"), "old");
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
}

#[test]
fn two_that_write_one_file_at_once_do_not_mix() {
    let directory = common::Directory::new("two_that_write_one_file_at_once_do_not_mix");
    let path = directory.path().join("shared.txt");
    // The second begins and ends while the first is half done.
    export::replace_file(&path, |file| {
        file.write_all(b"first, ")?;
        export::replace_file(&path, |file| file.write_all(b"second"))?;
        assert_eq!(fs::read_to_string(&path)?, "second");
        file.write_all(b"first")
    })
    .expect("written");
    assert_eq!(fs::read_to_string(&path).expect("readable"), "first, first");
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
}

#[test]
fn the_leftover_of_a_killed_program_is_no_obstacle() {
    let directory = common::Directory::new("the_leftover_of_a_killed_program_is_no_obstacle");
    let path = directory.path().join("results.json");
    // Numbers of processes are used again, and those of threads count from 0.
    for count in 0..1000 {
        let leftover = format!(".results.json.{}-{count}.tmp", std::process::id());
        fs::write(directory.path().join(leftover), "half").expect("written");
    }
    export::write_atomically(&path, b"whole").expect("written");
    assert_eq!(fs::read_to_string(&path).expect("readable"), "whole");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let directory = common::Directory::new("a_directory_that_cannot_be_made_is_named");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("written");
    let inside = file.join("out");
    let message = export::output_directory(&inside).expect_err("a file is in the way").to_string();
    assert!(
        message.contains(&inside.display().to_string()) && message.contains("choose"),
        "{message}"
    );

    let fresh = directory.path().join("new/out");
    export::output_directory(&fresh).expect("created");
    assert_eq!(fs::read_dir(&fresh).expect("there").count(), 0);
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_stays_one_and_what_it_leads_to_is_written() {
    let directory =
        common::Directory::new("a_symbolic_link_stays_one_and_what_it_leads_to_is_written");
    let (there, not_yet) = (directory.path().join("there.txt"), directory.path().join("new.txt"));
    fs::write(&there, "old").expect("written");
    for (name, target) in [("link", &there), ("dangling", &not_yet)] {
        let link = directory.path().join(name);
        // Relative to the directory of the link, and by way of another one.
        let between = directory.path().join(format!("between-{name}"));
        std::os::unix::fs::symlink(target.file_name().expect("a name"), &between).expect("a link");
        std::os::unix::fs::symlink(&between, &link).expect("a link");
        export::write_atomically(&link, b"new").expect("written");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink(), "{name}");
        assert!(fs::symlink_metadata(target).expect("there").is_file(), "{name}");
        assert_eq!(fs::read_to_string(target).expect("readable"), "new", "{name}");
    }
    let circle = directory.path().join("circle");
    std::os::unix::fs::symlink("circle", &circle).expect("a link");
    assert!(export::write_atomically(&circle, b"new").is_err());
    assert!(fs::symlink_metadata(&circle).expect("there").is_symlink());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_written_to_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let directory = common::Directory::new("a_pipe_is_written_to_and_not_replaced");
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).expect("readable")
    });
    export::write_atomically(&pipe, b"through").expect("written");
    // Looked at before the reader is waited for: it would wait for ever for a pipe that is no longer there.
    assert!(fs::symlink_metadata(&pipe).expect("there").file_type().is_fifo());
    assert_eq!(reader.join().expect("it ends"), "through");
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
}

#[test]
fn what_killed_programs_left_behind_is_removed_and_what_others_write_is_not() {
    let directory = common::Directory::new("what_killed_programs_left_behind_is_removed");
    let own = format!(".results.json.{}-0.tmp", std::process::id());
    // No process has the largest number there is.
    let names = [own.as_str(), ".results.json.4294967295-3.tmp", "results.json", ".hidden.tmp"];
    for name in names {
        fs::write(directory.path().join(name), "half").expect("written");
    }
    export::remove_leftovers_of(&directory.path().join("other.json"));
    assert!(directory.path().join(names[1]).exists(), "of another file");
    export::remove_leftovers_of(&directory.path().join("results.json"));
    assert!(!directory.path().join(names[1]).exists());
    fs::write(directory.path().join(names[1]), "half").expect("written");
    export::remove_leftovers(directory.path());
    let left = names.map(|name| directory.path().join(name).exists());
    assert_eq!(left, [true, false, true, true]);
}
