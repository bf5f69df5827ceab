//! Small versions of both experiments: threads, interruption, and what must come out.

use std::sync::atomic::{AtomicBool, Ordering};

use zhat::watch::Watch;
use zhat_paper::experiment::{Protocol, proposals, ring};
use zhat_report::{Decision, Quantiles};

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// What is done by then, when everything is stopped after so many repetitions are finished.
fn stopped_after<T>(runs: u64, work: impl FnOnce(&Watch) -> T) -> T {
    let (watch, done) = (Watch::default(), AtomicBool::new(false));
    if runs == 0 {
        watch.stop();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while watch.done() < runs && !done.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            watch.stop();
        });
        let result = work(&watch);
        done.store(true, Ordering::SeqCst);
        result
    })
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    let settings = proposals::Settings { runs: 3, steps: 25, ..Default::default() };
    let settings = settings.with_arms(&["data", "adaptive", "p-model-k2"]).unwrap();
    let run = |threads| in_pool(threads, || proposals::run(&settings, &Watch::default()).unwrap());
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
    let another = proposals::Settings { seed: 1, ..settings.clone() };
    assert_ne!(one.divergences, proposals::run(&another, &Watch::default()).unwrap().divergences);

    let settings = ring::Settings { runs: 3, steps: Some(25), ..Default::default() };
    let run = |threads| in_pool(threads, || ring::run(&settings, &Watch::default()).unwrap());
    assert_eq!(run(1), run(2));
}

#[test]
fn what_is_finished_when_stopped_is_reported_as_interrupted() {
    let settings = proposals::Settings { runs: 10_000, steps: 10, ..Default::default() };
    let results =
        stopped_after(3, |watch| in_pool(2, || proposals::run(&settings, watch).unwrap()));
    // Some more may be finished before the stop is seen.
    assert!((3..10_000).contains(&results.finished_runs()), "{}", results.finished_runs());
    let record = results.report(1.0, 2).unwrap().experiment;
    assert!(record.interrupted);
    assert_eq!(record.finished_runs, results.finished_runs());

    let settings = ring::Settings { runs: 10_000, steps: Some(10), ..Default::default() };
    let results = stopped_after(2, |watch| in_pool(1, || ring::run(&settings, watch).unwrap()));
    assert!((2..10_000).contains(&results.finished_runs()));
    assert!(results.report(1.0, 1).unwrap().experiment.interrupted);
    // A repetition that was stopped in the middle is not a result.
    let none = stopped_after(0, |watch| in_pool(1, || ring::run(&settings, watch).unwrap()));
    assert!(none.report(1.0, 1).unwrap_err().to_string().contains("no finished runs"));
}

/// The median over runs at the end.
fn end(runs: &[Vec<f64>]) -> f64 {
    Quantiles::of(runs.iter().map(|run| *run.last().unwrap()).collect()).unwrap().median
}

#[test]
fn the_floor_is_higher_with_few_training_points() {
    let run = |samples| {
        let settings = proposals::Settings { runs: 4, steps: 500, samples, ..Default::default() };
        let settings = settings.with_arms(&["model"]).unwrap();
        end(&proposals::run(&settings, &Watch::default()).unwrap().divergences[0])
    };
    // No estimate from 20 points has an expected divergence below about d/N = 0.25.
    let (fresh, fixed) = (run(None), run(Some(20)));
    assert!(fresh < 0.03, "{fresh}");
    assert!((0.1..2.0).contains(&fixed), "{fixed}");
}

#[test]
fn the_model_is_the_fastest_proposal_and_the_data_the_slowest() {
    let settings = proposals::Settings { runs: 6, steps: 350, ..Default::default() };
    let results = proposals::run(&settings, &Watch::default()).unwrap();
    let [data, model, adaptive] = [0, 1, 2].map(|arm| end(&results.divergences[arm]));
    assert!(model < 0.05 && adaptive < 0.3 && data > 3.0, "{model}, {adaptive}, {data}");
    let claims = results.report(1.0, 1).unwrap().experiment.claims;
    assert!(claims[..2].iter().all(|claim| claim.decision == Decision::Holds), "{claims:?}");
}

#[test]
fn every_extension_can_be_run() {
    let names = ["p-rnce", "p-model", "p-adaptive", "data-k2", "model-k3", "p-adaptive-k2"];
    let settings = proposals::Settings {
        runs: 1,
        steps: 20,
        samples: Some(50),
        protocol: Protocol::AsPublished,
        ..Default::default()
    };
    let results = proposals::run(&settings.with_arms(&names).unwrap(), &Watch::default()).unwrap();
    for (arm, name) in results.divergences.iter().zip(names) {
        assert!(arm[0].len() == 20 && arm[0].iter().all(|kl| kl.is_finite()), "{name}");
    }
}

#[test]
fn the_ring_is_found_where_the_data_are_the_models() {
    let run = |protocol| {
        let settings = ring::Settings { runs: 8, samples: 400, protocol, ..Default::default() };
        let settings = settings.with_arms(&["p-mh-cnce"]).unwrap();
        ring::run(&settings, &Watch::default()).unwrap()
    };
    let exact = run(Protocol::Text);
    assert!(end(&exact.arms[0].squared_error) < 0.05);
    let rules =
        exact.arms[0].barker.iter().flatten().zip(exact.arms[0].metropolis.iter().flatten());
    assert!(rules.clone().all(|(barker, metropolis)| 0.0 < *barker && barker < metropolis));
    // The acceptance probabilities are within a factor of two of each other.
    assert!(rules.clone().all(|(barker, metropolis)| *metropolis <= 2.0 * barker));
}

#[test]
fn settings_outside_their_range_are_named() {
    let message = |settings: proposals::Settings| {
        proposals::run(&settings, &Watch::default()).unwrap_err().to_string()
    };
    let default = proposals::Settings::default;
    assert!(message(proposals::Settings { runs: 0, ..default() }).starts_with("runs is 0"));
    assert!(message(proposals::Settings { steps: 0, ..default() }).starts_with("steps is 0"));
    assert!(message(proposals::Settings { samples: Some(0), ..default() }).starts_with("samples"));
    let ring = ring::Settings { samples: 1, ..Default::default() };
    assert!(ring::run(&ring, &Watch::default()).unwrap_err().to_string().contains("at least 2"));
    let unknown = ring::Settings::default().with_arms(&["rnce"]).unwrap_err().to_string();
    assert!(unknown.contains("cnce, mh-cnce, p-cnce, p-mh-cnce"), "{unknown}");
}
