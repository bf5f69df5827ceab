//! The row of Table 1 beyond the paper, on a made set of which the truth is known.

use std::f64::consts::TAU;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zhat::criterion::Method;
use zhat::rng::Streams;
use zhat::watch::Watch;
use zhat_paper::experiment::table1::{self, Approach, Event, Length, Plan, Settings, Table1};
use zhat_table::data::benchmark::{self, Benchmark, PreparedSet, Sizes};
use zhat_table::data::{Table, write};
use zhat_table::fit::{self, mean_and_error};

/// Columns of the made set.
const COLUMNS: usize = 3;

/// An empty directory with a prepared MINIBOONE in `data` whose columns are independent and log-normal.
fn made(test: &str) -> (PathBuf, PreparedSet) {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("beyond").join(test);
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).expect("a directory");
    let rng = &mut Streams::new(1).stream("test", 0, 0);
    let values = (0..4000 * COLUMNS).map(|_| rng.normal().exp() as f32).collect();
    let names = (0..COLUMNS).map(|column| format!("f{column}")).collect();
    let source = root.join("data.npy");
    write(&source, &Table::new(names, values)).expect("it is written");
    let (out, watch) = (root.join("data"), Watch::default());
    let set = benchmark::prepare(Benchmark::Miniboone, &source, &out, Sizes::Any, 0, &watch)
        .expect("it is prepared");
    (root, set)
}

fn settings(root: &Path, criteria: &[Approach], length: Length) -> Settings {
    Settings {
        criteria: criteria.to_vec(),
        length,
        particles: 300,
        estimates: 2,
        points: Some(300),
        ..Settings::new(vec![Benchmark::Miniboone], &root.join("data"))
    }
}

fn run(settings: &Settings, root: &Path) -> Table1 {
    let watch = Arc::new(Watch::default());
    table1::run(settings, &root.join("out"), 2, &watch, &mut |_| {}).expect("a table")
}

/// Mean log-density of the test part under the truth, in the standardised units of the set.
fn truth(set: &PreparedSet) -> f64 {
    let standardised = set.split.test.clone().into_values();
    let standardiser = set.meta.standardiser.as_ref().expect("MINIBOONE is standardised");
    let mut rows = standardised.clone();
    standardiser.invert(&mut rows);
    let log_p = |x: &f32| {
        let log_x = f64::from(*x).ln();
        -0.5 * log_x * log_x - log_x - 0.5 * TAU.ln()
    };
    let scales = standardiser.log_derivatives(&rows);
    let of_rows = rows.chunks_exact(COLUMNS).zip(scales);
    let log_ps: Vec<f64> =
        of_rows.map(|(row, scale)| row.iter().map(log_p).sum::<f64>() - scale).collect();
    mean_and_error(&log_ps).0
}

#[test]
fn beyond_the_paper_likelihood_and_draws_are_in_the_units_of_the_set() {
    let (root, set) = made("units");
    let settings = settings(&root, &[Approach::Beyond], Length::Steps(150));
    let table = run(&settings, &root);
    let [cell] = &table.cells[..] else { panic!("one cell") };
    let found = cell.likelihood.as_ref().expect("a likelihood");
    // Normal scores would have -4.26; the truth in the set's units is about -1.8. The maps know most of it before training.
    let truth = truth(&set);
    assert!((found.log_likelihood - truth).abs() < 0.25, "{truth}: {found:?}");
    assert_eq!((found.log_z, found.se_log_z, found.estimates), (0.0, 0.0, 0));
    assert!(found.proposal_log_likelihood.is_finite() && found.se_test > 0.0);
    assert_eq!(found.rows, set.meta.rows[2]);
    // Normal scores would be 1.19 away: a standardised log-normal and a normal correlate by 1 / sqrt(e - 1) at best.
    let distances = cell.wasserstein.as_ref().expect("distances");
    assert!(distances.summary().0 < 1.0, "{distances:?}");
    assert_eq!((distances.points, distances.particles), (300, 300), "draws are exact");
    assert_eq!((cell.steps, cell.paper_steps, cell.full_hours), (150, None, None));
    assert_eq!(table.claims(), []);
    let page = fs::read_to_string(root.join("out/report.html")).expect("a page");
    assert!(page.contains("beyond the paper") && !page.contains("Claims"), "a heading of nothing");
    assert!(table.notices().iter().all(|notice| !notice.contains("reduced table")));
    // Other settings of an estimate are none for what is not estimated.
    let again = run(&Settings { particles: 500, ..settings }, &root);
    assert_eq!(again.cells, table.cells);
}

#[test]
fn beyond_the_paper_a_training_that_is_stopped_goes_on_to_the_same_model() {
    let (root, _) = made("stopped");
    let settings =
        Settings { points: Some(40), ..settings(&root, &[Approach::Beyond], Length::Steps(30)) };
    let watch = Arc::new(Watch::default());
    let mut stop = |event: &Event| {
        if let Event::Fit(fit::Event::Step { step: 17, .. }) = event {
            watch.stop();
        }
    };
    let stopped = table1::run(&settings, &root.join("out"), 1, &watch, &mut stop).expect("a table");
    assert!(stopped.interrupted && stopped.cells.is_empty());
    let mut from = None;
    let mut begin = |event: &Event| {
        if let Event::Training { from: step, .. } = event {
            from = Some(*step);
        }
    };
    let resumed = table1::run(&settings, &root.join("out"), 2, &Arc::default(), &mut begin);
    assert!(from.is_some_and(|step| step > 0), "it began anew");
    let whole = table1::run(&settings, &root.join("whole"), 2, &Arc::default(), &mut |_| {});
    let [resumed, whole] = [resumed, whole].map(|table| table.expect("a table").cells.remove(0));
    assert_eq!(resumed.likelihood, whole.likelihood);
    assert_eq!(resumed.wasserstein, whole.wasserstein);
    assert_eq!(resumed.best_step, whole.best_step);
}

#[test]
fn a_budget_is_filled_by_each_kind_of_step_for_itself() {
    let (root, _) = made("budget");
    let criteria = [Approach::Paper(Method::MlIs), Approach::Beyond];
    let table = run(
        &Settings { points: Some(0), ..settings(&root, &criteria, Length::Budget(0.1)) },
        &root,
    );
    let plan = |name: &str| -> Plan {
        let json = fs::read(root.join("out/miniboone").join(name)).expect("a plan");
        serde_json::from_slice(&json).expect("JSON")
    };
    let (paper, beyond) = (plan("plan.json"), plan("plan-beyond.json"));
    assert_eq!(paper.seconds.keys().collect::<Vec<_>>(), ["ml-is"]);
    assert_eq!(beyond.seconds.keys().collect::<Vec<_>>(), ["beyond"]);
    assert_eq!(beyond.steps, beyond.seconds["beyond"].steps_within(0.1, 0.0));
    let steps: Vec<u64> = table.cells.iter().map(|cell| cell.steps).collect();
    assert_eq!(steps, [paper.steps, beyond.steps]);
    // It has rows of its own in a step.
    let batches: Vec<usize> = table.cells.iter().map(|cell| cell.batch).collect();
    assert_eq!(batches, [32, 128]);
    let text = fs::read_to_string(root.join("out/table1.txt")).expect("text");
    assert!(text.contains("beyond the paper") && text.contains("none of its claims"), "{text}");
    let csv = fs::read_to_string(root.join("out/table1.csv")).expect("CSV");
    let [names, _, beyond] = csv.lines().collect::<Vec<_>>()[..] else { panic!("{csv}") };
    for (name, value) in names.split(',').zip(beyond.split(',')) {
        let is_of_paper = name.starts_with("paper_") || name == "full_hours";
        assert!(!is_of_paper || value.is_empty(), "{name} is {value}");
    }
    assert!(beyond.starts_with("miniboone,beyond,"));
}
