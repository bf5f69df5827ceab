//! `zhat` on several ranks of MPI: the same bits as alone, one of them killed, and resumed on another number of them.
#![cfg(feature = "mpi")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// An empty directory for a test.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mpi").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

/// Whether there is a launcher; says so where there is none.
fn has_mpirun() -> bool {
    let found = Command::new("mpirun").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: there is no mpirun here (Debian: openmpi-bin)");
    }
    found
}

/// `zhat` on so many ranks of one thread, which may be more than there are cores; 0 for without a launcher.
fn zhat(ranks: usize, arguments: &[&str]) -> Command {
    let mut command = match ranks {
        0 => Command::new(env!("CARGO_BIN_EXE_zhat")),
        _ => {
            let mut command = Command::new("mpirun");
            command.args(["-n", &ranks.to_string(), "--oversubscribe", "--bind-to", "none"]);
            command.arg(env!("CARGO_BIN_EXE_zhat"));
            command
        }
    };
    // Containers run as root, and their processes may not look into each other's memory.
    let allow = [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];
    command.envs(allow).env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A fit of a second or two.
fn fit(ranks: usize, out: &Path, more: &[&str]) -> Command {
    let mut command = zhat(ranks, &["fit", "builtin:banana", "--preset", "small", "--quiet"]);
    for setting in [
        "data.read.max-rows=1500",
        "training.num-steps=40",
        "step.warm-up=10",
        "training.batch-size=30",
        "step.num-negatives=5",
        "training.validation-every=20",
        "validation.particles=500",
        "training.checkpoint-every=5",
        "evaluation.particles=1000",
        "evaluation.estimates=2",
        "model.energy.width=16",
        "model.proposal.width=16",
        "model.context=8",
        "model.mixture-components=4",
    ] {
        command.args(["--set", setting]);
    }
    command.args(["--threads", "1", "--out"]).arg(out).args(more);
    command
}

fn done(mut command: Command) -> Output {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn model(run: &Path) -> Vec<u8> {
    fs::read(run.join("model.safetensors")).expect("a model")
}

#[test]
fn models_likelihoods_and_scores_have_the_same_bits_on_any_number_of_ranks() {
    if !has_mpirun() {
        return;
    }
    let directory = directory("bits");
    let results = |ranks: usize| {
        let out = directory.join(ranks.to_string());
        let printed = done(fit(ranks, &out, &[])).stdout;
        let run = out.to_str().expect("a path");
        let scores = done(zhat(ranks, &["score", run, "builtin:banana", "--quiet"])).stdout;
        let evaluated =
            done(zhat(ranks, &["evaluate", run, "--particles", "2000", "--quiet"])).stdout;
        // One page, one table, whatever the number of ranks.
        assert_eq!(String::from_utf8_lossy(&printed).matches("report.html").count(), 1);
        (model(&out), scores, evaluated)
    };
    let alone = results(0);
    for ranks in [1, 2, 4] {
        assert!(results(ranks) == alone, "{ranks} ranks");
    }
}

#[test]
fn three_ranks_are_refused_and_say_why_once() {
    if !has_mpirun() {
        return;
    }
    let output = fit(3, &directory("three"), &[]).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert_eq!(told.matches("number of ranks is 3, but must be 1, 2, 4").count(), 1, "{told}");
}

/// The processes that a launcher has started.
fn children(of: &Child) -> Vec<u32> {
    let parent = of.id().to_string();
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_zhat = stat.contains("(zhat)");
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        is_zhat && fields.split_whitespace().nth(1) == Some(&parent)
    };
    let processes = fs::read_dir("/proc").expect("Linux").filter_map(|entry| entry.ok());
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(is_child)
        .collect()
}

fn has_checkpoint(run: &Path, from: u64) -> bool {
    let Ok(files) = fs::read_dir(run.join("checkpoint")) else { return false };
    let step = |name: &str| name.strip_prefix("step-")?.strip_suffix(".checkpoint")?.parse().ok();
    let steps = files.filter_map(|file| step(file.ok()?.file_name().to_str()?));
    steps.max().is_some_and(|step: u64| step >= from)
}

/// Long enough to be interrupted.
const LONG: &[&str] =
    &["--set", "training.num-steps=1000", "--set", "training.validation-every=500"];

/// A long run on four ranks, one of which gets a signal after its first checkpoints; gives how long it took to end and what it said.
fn interrupted(out: &Path, signal: &str) -> (Duration, Output) {
    let mut command = fit(4, out, LONG);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let start = Instant::now();
    while !has_checkpoint(out, 10) {
        assert!(start.elapsed() < Duration::from_secs(60), "there is no checkpoint");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ranks = children(&run);
    assert_eq!(ranks.len(), 4);
    let victim = ranks[2].to_string();
    assert!(Command::new("kill").args([signal, &victim]).status().expect("kill").success());
    let start = Instant::now();
    let output = run.wait_with_output().expect("it ends");
    (start.elapsed(), output)
}

#[test]
fn a_rank_that_dies_ends_all_and_the_run_goes_on_with_another_number() {
    if !has_mpirun() {
        return;
    }
    let directory = directory("killed");
    let whole = directory.join("whole");
    done(fit(0, &whole, LONG));
    for (signal, ranks) in [("-KILL", 2), ("-TERM", 0)] {
        let out = directory.join(ranks.to_string());
        let (time, output) = interrupted(&out, signal);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && time < Duration::from_secs(10), "{time:?} {told}");
        let expected = if signal == "-KILL" { "Killed" } else { "go on with `zhat fit --resume" };
        assert!(told.contains(expected), "{told}");
        let path = out.to_str().expect("a path");
        done(zhat(ranks, &["fit", "--resume", "--quiet", "--threads", "1", "--out", path]));
        assert!(model(&out) == model(&whole), "resumed on {ranks} ranks after {signal}");
    }
}

/// A few rows in the form of POWER's file, prepared in `root/data/power`.
fn prepare_power(root: &Path) {
    let names = "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity";
    let mut text = format!("{names};Sub_metering_1;Sub_metering_2;Sub_metering_3\n");
    for minute in 0..250 {
        let (hour, of_hour) = (minute / 60, minute % 60);
        let (power, voltage) = (0.2 + f64::from(minute * 37 % 101) * 0.05, 230 + minute * 53 % 97);
        let meters = [minute % 3, minute % 7, minute % 19].map(|meter| meter.to_string()).join(";");
        text += &format!(
            "16/12/2006;{hour:02}:{of_hour:02}:00;{power:.3};0.4;{voltage};18.4;{meters}\n"
        );
    }
    let source = root.join("household_power_consumption.txt");
    fs::write(&source, text).expect("it is written");
    let mut command = zhat(0, &["data", "prepare", "power", "--quiet", "--any-size"]);
    command.arg(&source).arg("--out").arg(root.join("data/power"));
    done(command);
}

#[test]
fn a_table_of_the_paper_has_the_same_figures_on_two_ranks() {
    if !has_mpirun() {
        return;
    }
    let root = directory("table1");
    prepare_power(&root);
    let table = |ranks: usize| {
        let out = root.join(ranks.to_string());
        let mut command = zhat(ranks, &["reproduce", "table1", "--quiet", "--json"]);
        command.args(["--criteria", "smc-rnce,beyond", "--steps", "6", "--particles", "400"]);
        command.args(["--estimates", "3", "--points", "40", "--threads", "1"]);
        command.arg("--data").arg(root.join("data")).arg("--out").arg(&out);
        let printed = done(command).stdout;
        let table: serde_json::Value = serde_json::from_slice(&printed).expect("one document");
        assert_eq!(table["ranks"], ranks.max(1));
        let text = fs::read_to_string(out.join("table1.txt")).expect("a table");
        assert_eq!(text.contains("2 ranks"), ranks == 2, "{text}");
        let cells = table["cells"].as_array().expect("cells");
        assert_eq!(cells.len(), 2);
        let mut figures = vec![table["floors"].clone(), table["claims"].clone()];
        for cell in cells {
            assert!(cell["likelihood"]["log_likelihood"].is_number(), "{cell}");
            assert_eq!(cell["wasserstein"]["values"].as_array().map(Vec::len), Some(3));
            figures.extend([cell["likelihood"].clone(), cell["wasserstein"].clone()]);
        }
        (figures, ["smc-rnce", "beyond"].map(|cell| model(&out.join("power").join(cell))))
    };
    assert!(table(2) == table(0), "two ranks and one process");
}
