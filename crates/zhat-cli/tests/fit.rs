//! `zhat fit` as a user calls it: stopped, killed, resumed, damaged, and given bad input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// An empty directory for a test.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

/// A fit of a second or two: small networks, few rows, a checkpoint every few steps.
fn fit(out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
    command.args(["fit", "builtin:banana", "--preset", "small", "--quiet", "--out"]).arg(out);
    for setting in [
        "data.read.max-rows=2000",
        "training.num-steps=120",
        "step.warm-up=30",
        "training.batch-size=32",
        "step.num-negatives=5",
        "log-every=5",
        "training.validation-every=40",
        "validation.particles=500",
        "training.checkpoint-every=10",
        "evaluation.particles=1000",
        "evaluation.estimates=3",
        "model.energy.width=16",
        "model.proposal.width=16",
        "model.context=8",
        "model.mixture-components=4",
    ] {
        command.args(["--set", setting]);
    }
    command.args(more);
    command
}

fn resume(out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zhat"))
        .args(["fit", "--resume", "--quiet", "--threads", "1", "--out"])
        .arg(out)
        .output()
        .expect("it runs")
}

fn model(run: &Path) -> Vec<u8> {
    fs::read(run.join("model.safetensors")).expect("a model")
}

fn assert_done(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_in_the_same_model() {
    let root = directory("killed");
    let (whole, killed) = (root.join("whole"), root.join("killed"));
    let output = fit(&whole, &["--json"]).output().expect("it runs");
    assert_done(&output);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for key in ["log_likelihood", "se_test", "se_log_z", "log_z", "proposal_log_likelihood"] {
        assert!(report["test"][key].is_number(), "{key} of {report}");
    }
    assert!(report["truth"].is_number());
    for file in ["config.toml", "metrics.jsonl", "model.json", "results.json", "report.html"] {
        assert!(whole.join(file).is_file(), "{file}");
    }
    let mut started = false;
    for milliseconds in [60, 250, 110, 170, 330, 90] {
        let mut command = match started {
            false => fit(&killed, &[]),
            true => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
                command.args(["fit", "--resume", "--quiet", "--out"]).arg(&killed);
                command
            }
        };
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().expect("SIGKILL");
        child.wait().expect("it ended");
        // Before its first checkpoint it goes on too; before its settings are there, it is started anew.
        started = killed.join("config.toml").is_file();
    }
    let output =
        if started { resume(&killed) } else { fit(&killed, &[]).output().expect("it runs") };
    assert_done(&output);
    assert_eq!(model(&whole), model(&killed));
    let lines = |run: &Path| fs::read_to_string(run.join("metrics.jsonl")).expect("metrics");
    assert_eq!(lines(&whole), lines(&killed));
}

#[test]
fn a_damaged_checkpoint_is_passed_over_with_a_warning() {
    let root = directory("damaged");
    let (whole, damaged) = (root.join("whole"), root.join("damaged"));
    assert_done(&fit(&whole, &[]).output().expect("it runs"));
    assert_done(&fit(&damaged, &[]).output().expect("it runs"));
    fs::remove_file(damaged.join("model.safetensors")).expect("it was there");
    let mut checkpoints: Vec<PathBuf> = fs::read_dir(damaged.join("checkpoint"))
        .expect("checkpoints")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    checkpoints.sort();
    assert_eq!(checkpoints.len(), 2);
    let newest = checkpoints.pop().expect("two of them");
    let mut bytes = fs::read(&newest).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&newest, bytes).expect("written");
    let output = resume(&damaged);
    assert_done(&output);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("is damaged") && text.contains("checksum"), "{text}");
    assert_eq!(model(&whole), model(&damaged));
}

#[test]
fn the_model_is_the_same_for_any_number_of_threads() {
    let root = directory("threads");
    let runs: Vec<PathBuf> = ["1", "2", "3"]
        .iter()
        .map(|threads| {
            let out = root.join(threads);
            assert_done(&fit(&out, &["--threads", threads]).output().expect("it runs"));
            out
        })
        .collect();
    assert_eq!(model(&runs[0]), model(&runs[1]));
    assert_eq!(model(&runs[0]), model(&runs[2]));
}

#[test]
fn a_run_that_diverges_is_rolled_back_and_leaves_no_model_that_is_not_a_number() {
    let out = directory("diverged").join("run");
    let output = fit(
        &out,
        &["--set", "training.learning-rate=1e30", "--set", "training.max-gradient-norm=1e30"],
    )
    .output()
    .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("with the learning rate times 0.5"), "{text}");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("given up after going back 5 times") && text.contains("learning-rate"),
        "{text}"
    );
    assert!(!out.join("model.safetensors").exists());
}

#[test]
fn a_run_is_taken_up_with_more_steps_and_refuses_what_would_make_it_another() {
    let out = directory("longer").join("run");
    assert_done(&fit(&out, &[]).output().expect("it runs"));
    let resumed = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zhat"));
        command.args(["fit", "--resume", "--quiet", "--out"]).arg(&out).args(more);
        command.output().expect("it runs")
    };
    for (more, name) in [
        (&["--set", "model.context=9"] as &[&str], "model.context"),
        (&["--criterion", "rnce"], "step.criterion"),
        (&["--seed", "4"], "seed"),
        (&["builtin:pinwheel"], "data.source"),
        (&["--preset", "power"], "preset"),
        (&["--time", "1m"], "time"),
        (&["--steps", "60", "--set", "step.warm-up=30"], "120"),
    ] {
        let output = resumed(more);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{more:?}: {text}");
        assert!(text.contains(name), "{more:?}: {text}");
    }
    let before = model(&out);
    let longer = resumed(&["--set", "training.num-steps=160", "--json"]);
    assert_done(&longer);
    let report: serde_json::Value = serde_json::from_slice(&longer.stdout).expect("JSON");
    assert_eq!(report["steps"], 160);
    assert_ne!(model(&out), before);
    let config = fs::read_to_string(out.join("config.toml")).expect("a configuration");
    assert!(config.contains("num-steps = 160"), "{config}");
}

#[test]
fn a_configuration_brings_its_own_data_and_seed() {
    let root = directory("own-config");
    let first = root.join("first");
    assert_done(&fit(&first, &["--seed", "7"]).output().expect("it runs"));
    let config = first.join("config.toml");
    let again = root.join("again");
    let output = Command::new(env!("CARGO_BIN_EXE_zhat"))
        .args(["fit", "--quiet", "--config"])
        .arg(&config)
        .arg("--out")
        .arg(&again)
        .output()
        .expect("it runs");
    assert_done(&output);
    assert_eq!(model(&first), model(&again), "the same data, seed and settings");
    let compared = root.join("compared");
    let output = Command::new(env!("CARGO_BIN_EXE_zhat"))
        .args(["compare", "--quiet", "--criteria", "q-only", "--steps", "20", "--config"])
        .arg(&config)
        .arg("--out")
        .arg(&compared)
        .output()
        .expect("it runs");
    assert_done(&output);
    let used = fs::read_to_string(compared.join("q-only-1/config.toml")).expect("a configuration");
    assert!(used.contains("seed = 7") && used.contains("builtin:banana"), "{used}");
}

#[test]
fn bad_input_exits_with_2_and_names_the_place() {
    let root = directory("bad");
    let file = |name: &str, text: &str| {
        let path = root.join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let rows = |cell: &str| {
        let mut text = String::from("a,b\n");
        for row in 0..60 {
            let b =
                if row == 7 { cell.into() } else { format!("{}", (row * 37 % 59) as f64 * 0.137) };
            text += &format!("{},{b}\n", f64::from(row).sqrt());
        }
        text
    };
    let missing = file("missing.csv", &rows(""));
    let words = file("words.csv", &rows("cow"));
    let infinite = file("infinite.csv", &rows("inf"));
    let good = file("good.csv", &rows("0.5"));
    let empty = file("empty.csv", "");
    let ragged = file("ragged.csv", &rows("0.5,9"));
    let one_value =
        file("constant.csv", &(0..60).fold("a,b\n".into(), |t, i| format!("{t}{}.5,3\n", i * i)));
    let twins =
        file("twins.csv", &(0..60).fold("a,b\n".into(), |t, i| format!("{t}{0}.5,{0}.5\n", i * i)));
    let short = file("short.csv", "a,b\n1.5,2\n2.5,1\n");
    let no_archive = file("broken.csv.gz", "this is no gzip file");
    let absent = root.join("absent.csv").display().to_string();
    let cases: [(&[&str], &str); 28] = [
        (&[&ragged], "line 9"),
        (&[&one_value], "b"),
        (&[&twins], "b"),
        (&[&short], "rows"),
        (&[&good, "--format", "npy"], "good.csv"),
        (&[&no_archive], "broken.csv.gz"),
        (&[&good, "--delimiter", "ab"], "--delimiter"),
        (&[&good, "--header", "maybe"], "--header"),
        // Networks that know of no kinds.
        (&[&missing, "--preset", "small"], "line 9"),
        (&[&words, "--preset", "small"], "cow"),
        (&[&good, "--kind", "a=thing"], "COLUMN=KIND"),
        (&[&good, "--kind", "z=integer"], "z"),
        (&[&infinite], "line 9"),
        (&[&empty], "empty"),
        (&[&absent], "absent.csv"),
        (&[&good, "--columns", "a,z"], "z"),
        (&[&good, "--dequantise", "a"], "COLUMN=STEP"),
        (&[&good, "--set", "training.nonsense=1"], "nonsense"),
        (&[&good, "--set", "training.batch-size=0"], "batch-size"),
        (&[&good, "--criterion", "magic"], "smc-rnce"),
        (&[&good, "--max-time", "soon"], "10m"),
        (&[&good, "--time", "soon"], "10m"),
        (&[&good, "--time", "0s"], "--time"),
        (&[&good, "--time", "9s", "--steps", "7"], "--steps"),
        (&[&good, "--processor-time", "9s", "--max-time", "7s"], "--max-time"),
        (&[&good, "--config", "no-such.toml"], "no-such.toml"),
        (&["builtin:nothing"], "nothing"),
        (&["builtin:pinwheel", "--set", "data.split.test=1.5"], "test"),
    ];
    for (index, (arguments, place)) in cases.into_iter().enumerate() {
        let out = root.join(format!("run-{index}"));
        let output = Command::new(env!("CARGO_BIN_EXE_zhat"))
            .args(["fit", "--quiet", "--out"])
            .arg(&out)
            .args(arguments)
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(place), "{arguments:?}: {text}");
        assert!(!text.contains("panicked"), "{arguments:?}: {text}");
        assert!(!out.exists(), "{arguments:?} left half a run");
    }
}

#[test]
fn a_directory_that_holds_a_run_is_not_overwritten_and_one_that_does_not_is_not_resumed() {
    let out = directory("twice").join("run");
    assert_done(&fit(&out, &["--steps", "40"]).output().expect("it runs"));
    // The number of steps of its own, and the warm-up as it was set.
    let config = fs::read_to_string(out.join("config.toml")).expect("its settings");
    assert!(config.contains("steps = 40\n") && config.contains("warm-up = 30\n"), "{config}");
    let before = model(&out);
    let again = fit(&out, &[]).output().expect("it runs");
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--resume"));
    assert_eq!(model(&out), before);
    let nowhere = resume(&directory("nowhere"));
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("config.toml"));
}

fn results(run: &Path) -> serde_json::Value {
    let bytes = fs::read(run.join("results.json")).expect("results");
    serde_json::from_slice(&bytes).expect("JSON")
}

#[test]
fn a_fit_ends_with_a_verdict_on_the_terminal_on_the_page_and_in_the_results() {
    let out = directory("verdict").join("run");
    // Two steps make no model that anybody should trust.
    let more = ["--steps", "2", "--set", "step.warm-up=1", "--set", "validation.base=never"];
    let output = fit(&out, &more).output().expect("it runs");
    assert_done(&output);
    let (text, results) = (String::from_utf8_lossy(&output.stdout).into_owned(), results(&out));
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert_eq!(results["verdict"]["trusted"], false, "{results}");
    for place in [&text, &page] {
        assert!(place.contains("This likelihood is not to be trusted"), "{place}");
    }
    let reason = results["verdict"]["reasons"][0].as_str().expect("a reason");
    assert!(text.contains(reason), "{text}");
}

#[test]
fn a_schedule_that_the_time_cuts_short_is_called_unfinished() {
    let out = directory("max-time").join("run");
    let more = ["--max-time", "0.0001s", "--set", "training.num-steps=100000"];
    let output = fit(&out, &more).output().expect("it runs");
    assert_done(&output);
    let (text, results) = (String::from_utf8_lossy(&output.stdout).into_owned(), results(&out));
    assert_eq!(
        (&results["ended"], &results["planned_steps"]),
        (&"max-time".into(), &100000.into())
    );
    assert!(text.contains("Training is not finished: it ended after 1 of 100000 steps"), "{text}");
    assert!(text.contains("with --time the schedule is fitted"), "{text}");
    assert!(results["notes"][0].as_str().expect("a note").contains("not finished"));
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("Training is not finished"));
}

#[test]
fn a_time_is_turned_into_a_whole_schedule_which_is_written_down() {
    for clock in ["--time", "--processor-time"] {
        let out = directory(&format!("timed{clock}")).join("run");
        let output = fit(&out, &[clock, "2s", "--json"]).output().expect("it runs");
        assert_done(&output);
        let results = results(&out);
        let steps = results["planned_steps"].as_u64().expect("a number");
        assert!(steps > 1, "{results}");
        let config = zhat_table::fit::FitConfig::read_run(&out).expect("settings");
        assert_eq!(config.training.num_steps, steps);
        assert_eq!(config.step.warm_up, steps / 4, "a quarter of the steps, as it was set");
        let checkpoints = steps.div_ceil(config.training.checkpoint_every);
        assert!((1..=40).contains(&checkpoints), "{checkpoints} of {steps}");
        assert!(config.training.validation_every <= config.training.checkpoint_every);
        // Early stopping may end it, or a machine that became busy; nothing else.
        let ended = results["ended"].as_str().expect("a word");
        assert!(["done", "patience", "time"].contains(&ended), "{ended}");
    }
}

#[test]
fn few_rows_are_cross_validated_and_a_run_that_is_killed_then_goes_on_to_the_same_model() {
    let root = directory("folds");
    let (whole, killed, threads) = (root.join("whole"), root.join("killed"), root.join("threads"));
    let few = ["--set", "data.read.max-rows=200", "--set", "validation.folds=3"];
    let output = fit(&whole, &few).output().expect("it runs");
    assert_done(&output);
    let (text, found) = (String::from_utf8_lossy(&output.stdout).into_owned(), results(&whole));
    let curve = found["cross_validation"]["curve"].as_array().expect("a curve");
    let steps: Vec<u64> = curve.iter().map(|point| point["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [0, 5, 10, 20, 40, 80, 120], "early, at validations and at the end");
    let at_end = curve.last().expect("a point");
    assert!(at_end["standard_error"].as_f64().expect("an error") > 0.0, "{curve:?}");
    assert_eq!((&found["rows"][0], &found["rows"][1]), (&160.into(), &20.into()));
    assert_eq!(found["cross_validation"]["rows"], 180, "every row but the test's is left out once");
    let chosen = found["cross_validation"]["chosen_step"].as_u64().expect("a number");
    assert!(steps.contains(&chosen));
    assert_eq!((&found["steps"], &found["best_step"]), (&chosen.into(), &chosen.into()));
    assert!(text.contains(&format!("3-fold cross-validation chose {chosen} steps")), "{text}");
    let config = fs::read_to_string(whole.join("config.toml")).expect("settings");
    assert!(config.contains(&format!("stop-after = {chosen}\n")), "{config}");
    // On one thread, and stopped after the choice: the choice stands, and the model is the same.
    assert_done(
        &fit(&threads, &[&few[..], &["--threads", "1"]].concat()).output().expect("it runs"),
    );
    assert_eq!(model(&whole), model(&threads));
    // Killed once before its choice and once after it.
    let killed_at = |command: &mut Command, file: &str| {
        let mut child = command.stdout(Stdio::null()).spawn().expect("it runs");
        while !killed.join(file).exists() {
            assert!(child.try_wait().expect("a state").is_none(), "it ended without {file}");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("SIGKILL");
        child.wait().expect("it ended");
    };
    killed_at(&mut fit(&killed, &few), "checkpoint/step-000000000000.checkpoint");
    let mut again = Command::new(env!("CARGO_BIN_EXE_zhat"));
    again.args(["fit", "--resume", "--quiet", "--out"]).arg(&killed);
    killed_at(&mut again, "cross-validation.json");
    assert_done(&resume(&killed));
    assert_eq!(model(&whole), model(&killed));
    assert_eq!(results(&killed)["cross_validation"], found["cross_validation"]);
}

#[test]
fn where_the_model_is_no_better_than_its_proposal_the_proposal_is_the_answer() {
    let root = directory("base");
    let (answer, kept) = (root.join("answer"), root.join("kept"));
    // A proposal that is trained for 118 steps, and an energy for two.
    let more = ["--set", "step.warm-up=118"];
    let output = fit(&answer, &more).output().expect("it runs");
    assert_done(&output);
    let (text, found) = (String::from_utf8_lossy(&output.stdout).into_owned(), results(&answer));
    assert_eq!(found["density"], "proposal", "{found}");
    assert!(text.contains("the density is the proposal"), "{text}");
    assert_eq!(found["test"]["log_likelihood"], found["test"]["proposal_log_likelihood"]);
    let card = fs::read_to_string(answer.join("model.json")).expect("a card");
    assert!(card.contains("\"density\": \"proposal\""), "{card}");
    let zhat = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_zhat")).args(arguments).current_dir(&root).output();
        let output = output.expect("it runs");
        assert_done(&output);
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    fs::write(root.join("rows.csv"), "x1,x2\n0.0,1.0\n1.0,3.0\n").expect("written");
    for row in zhat(&["score", "answer", "rows.csv", "--parts", "--quiet"]).lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        assert!(cells[0] == cells[2] && cells[1] == cells[2], "log p is log q: {row}");
    }
    let evaluated = zhat(&["evaluate", "answer", "--json", "--quiet"]);
    let evaluated: serde_json::Value = serde_json::from_str(&evaluated).expect("JSON");
    assert_eq!(
        (&evaluated["log_z"], &evaluated["verdict"]["trusted"]),
        (&0.0.into(), &true.into())
    );
    let drawn = ["sample", "answer", "-n", "200", "--out", "draws.csv", "--json", "--quiet"];
    let drawn: serde_json::Value = serde_json::from_str(&zhat(&drawn)).expect("JSON");
    assert_eq!((&drawn["rows"], &drawn["particles"]), (&200.into(), &200.into()), "{drawn}");
    let never = [&more[..], &["--set", "validation.base=never"]].concat();
    assert_done(&fit(&kept, &never).output().expect("it runs"));
    assert_eq!(results(&kept)["density"], "model");
}

/// Without a preset: every factor is normalised, so there is no `log Z` to estimate, and draws are independent rows.
#[test]
fn the_default_follows_the_size_of_the_table_and_draws_distinct_rows() {
    let root = directory("default");
    let zhat = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_zhat")).args(arguments).current_dir(&root).output();
        let output = output.expect("it runs");
        assert_done(&output);
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let many = ["fit", "builtin:mixture-16", "--set", "data.read.max-rows=1500", "--steps", "30"];
    zhat(&[&many[..], &["--set", "model.members=1", "--quiet", "--out", "many"]].concat());
    let few = ["fit", "builtin:banana", "--set", "data.read.max-rows=300", "--steps", "20"];
    zhat(&[&few[..], &["--quiet", "--out", "few"]].concat());
    for (run, beside) in [("many", false), ("few", true)] {
        let config = zhat_table::fit::FitConfig::read_run(&root.join(run)).expect("settings");
        assert_eq!(config.model.gaussian_mixture, beside);
        let found = results(&root.join(run));
        let card = fs::read_to_string(root.join(run).join("model.json")).expect("a card");
        // From the start, or after training: rows of a mixture are likelier so.
        assert!(card.contains("\"log-weights\""));
        assert_eq!(
            (&found["test"]["log_z"], &found["test"]["particles"]),
            (&0.0.into(), &0.into())
        );
        let draws = zhat(&["sample", run, "-n", "500", "--quiet"]);
        let distinct: std::collections::HashSet<&str> = draws.lines().skip(1).collect();
        assert_eq!(distinct.len(), 500);
        // Scores of the draws are those of a density: finite, and found again by `score`.
        fs::write(root.join("draws.csv"), &draws).expect("written");
        let scores = zhat(&["score", run, "draws.csv", "--quiet"]);
        assert_eq!(scores.lines().count(), 501);
        assert!(scores.lines().skip(1).all(|line| !line.contains("inf") && !line.contains("NaN")));
    }
    let refused = Command::new(env!("CARGO_BIN_EXE_zhat"))
        .args(["fit", "builtin:banana", "--set", "step.criterion=smc-rnce", "--out", "never"])
        .current_dir(&root)
        .output()
        .expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("normalisation"));
}
