//! Runs that were changed, that two processes want at once, that were killed at an awkward moment, or that keep no rows for a
//! test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// An empty directory for a test.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("integrity").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

/// A fit of a second or less.
fn fit(out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
    command.args(["fit", "builtin:banana", "--preset", "small", "--quiet", "--out"]).arg(out);
    for setting in [
        "data.read.max-rows=1500",
        "training.num-steps=60",
        "step.warm-up=10",
        "training.batch-size=32",
        "step.num-negatives=5",
        "training.validation-every=20",
        "training.checkpoint-every=10",
        "validation.particles=500",
        "validation.base=never",
        "evaluation.particles=1000",
        "evaluation.estimates=3",
        "model.energy.width=8",
        "model.proposal.width=8",
        "model.context=4",
        "model.mixture-components=2",
    ] {
        command.args(["--set", setting]);
    }
    command.args(more);
    command
}

fn zhat(verb: &str, run: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
    command.arg(verb).arg(run).args(more).arg("--quiet").output().expect("it runs")
}

fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// What it says where it refuses to go on; there is nothing else, and no panic.
fn refused(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(output.stdout.is_empty() && !text.contains("panicked"), "{text}");
    text
}

fn rows(root: &Path) -> String {
    let path = root.join("rows.csv");
    fs::write(&path, "x1,x2\n0,1\n0.5,-1\n-1,2\n").expect("written");
    path.display().to_string()
}

/// Numbers that look random, and are the same every time.
fn numbers(count: u64) -> impl Iterator<Item = usize> {
    (1..=count).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize)
}

#[test]
fn no_flipped_bit_of_what_scores_depend_on_goes_unnoticed() {
    let root = directory("flipped");
    let (run, rows) = (root.join("run"), rows(&root));
    done(&fit(&run, &[]).output().expect("it runs"));
    let expected = done(&zhat("score", &run, &[&rows]));
    assert_eq!(expected.lines().count(), 4);
    for file in ["model.safetensors", "model.json", "results.json"] {
        let path = run.join(file);
        let bytes = fs::read(&path).expect("a file");
        for number in numbers(40) {
            let bit = number % (8 * bytes.len());
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).expect("written");
            let text = refused(&zhat("score", &run, &[&rows]));
            assert!(text.contains(file), "bit {bit} of {file}: {text}");
        }
        fs::write(&path, &bytes).expect("written");
    }
    assert_eq!(done(&zhat("score", &run, &[&rows])), expected);
}

#[test]
fn an_edited_run_is_refused_unless_that_is_on_purpose_and_its_parts_must_go_together() {
    let root = directory("edited");
    let (run, rows) = (root.join("run"), rows(&root));
    done(&fit(&run, &[]).output().expect("it runs"));
    let expected = done(&zhat("score", &run, &[&rows]));
    let edit = |file: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let path = run.join(file);
        let before = fs::read(&path).expect("a file");
        let mut value: serde_json::Value = serde_json::from_slice(&before).expect("JSON");
        change(&mut value);
        fs::write(&path, serde_json::to_vec_pretty(&value).expect("JSON")).expect("written");
        let outputs = [&[rows.as_str()] as &[&str], &[rows.as_str(), "--allow-modified"]]
            .map(|more| zhat("score", &run, more));
        let sample = zhat("sample", &run, &["-n", "3", "--allow-modified"]);
        fs::write(&path, before).expect("written");
        let [checked, as_it_is] = outputs;
        let text = refused(&checked);
        assert!(text.contains(file) && text.contains("--allow-modified"), "{text}");
        (as_it_is, sample)
    };
    let (as_it_is, _) = edit("results.json", &|results| {
        let log_z = results["test"]["log_z"].as_f64().expect("a number");
        results["test"]["log_z"] = (log_z + 1.0).into();
    });
    assert_ne!(done(&as_it_is), expected, "it counts where it is meant");
    let (as_it_is, _) = edit("model.json", &|card| {
        let mean = card["standardiser"]["mean"][0].as_f64().expect("a number");
        card["standardiser"]["mean"][0] = (mean + 0.25).into();
    });
    assert!(String::from_utf8_lossy(&as_it_is.stderr).contains("not as its fit wrote it"));
    assert_ne!(done(&as_it_is), expected);
    // A digest that is lost is a change too.
    edit("model.json", &|card| drop(card.as_object_mut().expect("an object").remove("sha256")));
    edit("results.json", &|card| drop(card.as_object_mut().expect("an object").remove("sha256")));
    // What does not go together is refused in any case, and nothing waits for ever.
    type Change = dyn Fn(&mut serde_json::Value);
    let changes: [&Change; 6] = [
        &|card| shorten(&mut card["columns"]),
        &|card| shorten(&mut card["standardiser"]["mean"]),
        &|card| shorten(&mut card["standardiser"]["std_dev"]),
        &|card| card["standardiser"]["std_dev"][1] = 0.0.into(),
        &|card| card["model"]["features"] = 3.into(),
        &|card| card["model"]["proposal"]["width"] = 1_000_000_000u64.into(),
    ];
    for change in changes {
        let (score, sample) = edit("model.json", change);
        refused(&score);
        refused(&sample);
    }
    // Settings that were changed behind the back of a run.
    let path = run.join("config.toml");
    let config = fs::read_to_string(&path).expect("a configuration");
    fs::write(&path, config.replace("seed = 0", "seed = 1")).expect("written");
    let text = refused(&zhat("evaluate", &run, &[]));
    assert!(text.contains("config.toml is not as it was written"), "{text}");
}

fn shorten(list: &mut serde_json::Value) {
    list.as_array_mut().expect("a list").pop();
}

/// Waits until a run has its first checkpoint.
fn begun(mut child: Child, run: &Path) -> Child {
    let has_checkpoint = || {
        fs::read_dir(run.join("checkpoint")).is_ok_and(|files| {
            files.flatten().any(|file| file.path().extension().is_some_and(|e| e == "checkpoint"))
        })
    };
    while !has_checkpoint() {
        assert_eq!(child.try_wait().expect("it can be asked"), None, "it goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child
}

#[test]
fn a_run_has_one_writer_and_a_killed_one_locks_nothing() {
    let run = directory("locked").join("run");
    let long = ["--set", "training.num-steps=10000000"];
    let mut command = fit(&run, &long);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut child = begun(child, &run);
    let resume = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
        command.args(["fit", "--resume", "--quiet", "--out"]).arg(&run);
        command
    };
    for mut second in [fit(&run, &[]), resume()] {
        let text = refused(&second.output().expect("it runs"));
        assert!(text.contains(&format!("process {}", child.id())), "{text}");
        assert!(text.contains("zhat"), "{text}");
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("it ended");
    let text = refused(&fit(&run, &[]).output().expect("it runs"));
    assert!(text.contains("holds a run already"), "{text}");
    let mut child = resume().stderr(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    let mut told = std::io::BufReader::new(child.stderr.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut told, &mut line).expect("a line");
    assert!(line.contains("going on after step"), "{line}");
    child.kill().expect("SIGKILL");
    child.wait().expect("it ended");
}

#[test]
fn a_run_that_was_killed_before_its_first_checkpoint_goes_on_in_either_way() {
    let root = directory("early");
    let (whole, resumed, again) = (root.join("whole"), root.join("resumed"), root.join("again"));
    done(&fit(&whole, &[]).output().expect("it runs"));
    for run in [&resumed, &again] {
        // What is there between config.toml and the first checkpoint, and what kills leave half written.
        fs::create_dir_all(run.join("checkpoint")).expect("a directory");
        fs::copy(whole.join("config.toml"), run.join("config.toml")).expect("copied");
        for leftover in [
            ".writable",
            ".config.toml.4294967295-0.tmp",
            "checkpoint/.step-000000000000.checkpoint.4294967295-3.tmp",
        ] {
            fs::write(run.join(leftover), "half").expect("written");
        }
    }
    let mut resume = Command::new(env!("CARGO_BIN_EXE_zhat"));
    resume.args(["fit", "--resume", "--quiet", "--out"]).arg(&resumed);
    done(&resume.output().expect("it runs"));
    done(&fit(&again, &[]).output().expect("it runs"));
    let model = |run: &Path| fs::read(run.join("model.safetensors")).expect("a model");
    for run in [&resumed, &again] {
        assert_eq!(model(run), model(&whole));
        let names = |directory: PathBuf| {
            let entries = fs::read_dir(directory).expect("a directory").flatten();
            entries.map(|entry| entry.file_name().into_string().expect("UTF-8"))
        };
        let left = names(run.clone()).chain(names(run.join("checkpoint")));
        let left: Vec<String> = left.filter(|name| name.starts_with('.')).collect();
        assert_eq!(left, [".lock"]);
    }
}

#[test]
fn every_training_ends_in_a_run_that_can_be_read() {
    let root = directory("no-test");
    let rows = rows(&root);
    for (name, settings) in [
        ("no-validation", &["data.split.validation=0"] as &[&str]),
        ("no-test", &["data.split.test=0"]),
        ("neither", &["data.split.validation=0", "data.split.test=0"]),
        ("one-row", &["data.split.test=0.0004"]),
        ("only-warm-up", &["step.warm-up=60"]),
        ("few-rows", &["data.read.max-rows=200", "data.split.test=0"]),
    ] {
        let run = root.join(name);
        let mut command = fit(&run, &[]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        let text = done(&command.output().expect("it runs"));
        assert_eq!(
            text.contains("no test rows"),
            settings.contains(&"data.split.test=0"),
            "{text}"
        );
        let mut report = Command::new(env!("CARGO_BIN_EXE_zhat"));
        done(&report.args(["report", "--quiet"]).arg(&run).output().expect("it runs"));
        assert_eq!(done(&zhat("score", &run, &[&rows])).lines().count(), 4, "{name}");
    }
    let text = refused(&zhat("evaluate", &root.join("no-test"), &[]));
    assert!(text.contains("data.split.test is 0"), "{text}");
}

/// Whoever is asked to stop while nothing comes through a pipe has nothing to look at a watch with.
#[cfg(unix)]
#[test]
fn a_read_that_waits_for_ever_ends_when_it_is_told_to() {
    let root = directory("silent");
    let pipe = root.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let run = root.join("run");
    let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
    command.args(["fit", "--quiet"]).arg(&pipe).arg("--out").arg(&run).stderr(Stdio::piped());
    let child = command.spawn().expect("it runs");
    // It has opened the pipe when there is somebody at the other end; nothing is ever sent.
    let silent = fs::OpenOptions::new().write(true).open(&pipe).expect("the other end");
    let told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(told.expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    drop(silent);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("stopped"), "{text}");
    assert_eq!(fs::read_dir(&run).map_or(0, Iterator::count), 0, "nothing is left half written");
}
