//! Every phase of a fit ends soon after it is told to stop, and a run that was killed early goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zhat::watch::Watch;
use zhat_table::fit::{Clock, Event, FitConfig, Limit, Session, Time};
use zhat_table::fitted::Fitted;
use zhat_table::{Prepared, TableError, prepare, prepare_watched, report};

/// An empty directory for a test.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stopping").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Few rows: mixtures are found by EM, and the number of steps by folds.
fn few_rows() -> (FitConfig, Prepared) {
    let mut config = FitConfig::for_table("builtin:banana", 300, 2, Some(8));
    config.data.read.max_rows = Some(300);
    config.model.energy.width = 8;
    config.model.proposal.width = 16;
    let data = prepare(&config).unwrap();
    (config, data)
}

fn stopped() -> Arc<Watch> {
    let watch = Watch::default();
    watch.stop();
    Arc::new(watch)
}

fn is_stop<T>(result: Result<T, TableError>) -> bool {
    result.is_err_and(|error| error.is_stop())
}

#[test]
fn reading_stops() {
    let root = directory("reading");
    let rows: String = (0..500).map(|i| format!("{i},{}\n", (i * 7919) % 541)).collect();
    let file = root.join("table.csv");
    fs::write(&file, rows).unwrap();
    let config = FitConfig::new(&file.display().to_string());
    assert!(prepare_watched(&config, &Watch::default()).is_ok());
    assert!(is_stop(prepare_watched(&config, &stopped())));
}

#[test]
fn the_choice_of_marginals_and_the_mixtures_stop() {
    let (mut config, data) = few_rows();
    config.data.marginals = zhat_table::data::Marginals::Auto;
    assert!(is_stop(prepare_watched(&config, &stopped())));
    let out = directory("mixtures").join("run");
    assert!(is_stop(Session::start(config.clone(), data.clone(), &out, 1, &stopped())));
    // And it goes on, as a new run or as one that is resumed.
    drop(Session::start(config.clone(), data.clone(), &out, 1, &Watch::default()).unwrap());
    fs::remove_dir_all(out.join("checkpoint")).unwrap();
    fs::create_dir(out.join("checkpoint")).unwrap();
    let config = FitConfig::read_run(&out).unwrap();
    let (session, warnings) = Session::resume(config, data, &out, 1, &Watch::default()).unwrap();
    assert_eq!((session.steps_taken(), warnings.len()), (0, 0));
}

#[test]
fn the_timing_of_a_schedule_stops() {
    let (mut config, data) = few_rows();
    let limit = Limit::planned(Time { seconds: 600.0, clock: Clock::Wall });
    let model = config.model.clone();
    assert!(is_stop(limit.schedule(&mut config, &data, 1, &stopped(), |_| Ok(model))));
}

#[test]
fn folds_evaluation_and_page_stop() {
    let (config, data) = few_rows();
    let out = directory("folds").join("run");
    let nobody = &mut |_: &Event| {};
    let start = |out: &Path| {
        Session::start(config.clone(), data.clone(), out, 1, &Watch::default()).unwrap()
    };
    let mut session = start(&out);
    assert_eq!(session.run(None, &stopped(), nobody).unwrap(), None);
    assert!(!out.join("model.json").exists());
    // Stopped by whoever is told that the evaluation begins.
    let watch = Arc::new(Watch::default());
    let stop = &mut |event: &Event| {
        if *event == Event::Evaluating {
            watch.stop();
        }
    };
    assert_eq!(session.run(None, &watch, stop).unwrap(), None);
    drop(session);
    assert!(out.join("model.json").exists() && !out.join("results.json").exists());
    let config = FitConfig::read_run(&out).unwrap();
    let (mut session, _) =
        Session::resume(config, data.clone(), &out, 1, &Watch::default()).unwrap();
    assert!(session.run(None, &Arc::default(), nobody).unwrap().is_some());
    let fitted = Fitted::open(&out, 1, stopped()).unwrap();
    assert!(is_stop(report::write(&fitted)));
    assert!(is_stop(fitted.density().score(&[0.0, 0.0])));
}
