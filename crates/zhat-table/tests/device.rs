//! Fits and what they are for with the networks on a device. The device is Burn's own CPU tensors, which every build has: all but the
//! hardware is the same.

mod common;

use std::path::Path;
use std::sync::Arc;

use burn::tensor::Device;
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::watch::Watch;
use zhat_table::fit::{Event, FitConfig, FitReport, Session};
use zhat_table::fitted::Fitted;
use zhat_table::{Prepared, prepare};

fn device() -> Workers {
    Workers::from(1).on(Some(Device::flex())).expect("one process")
}

/// A fit of a second or two: of many rows, or of few with a tilt.
fn config(source: &str, rows: usize, steps: u64) -> (FitConfig, Prepared) {
    let columns = prepare(&FitConfig::new(source)).map_or(2, |data| data.columns.len());
    let mut config = FitConfig::for_table(source, rows, columns, Some(steps));
    config.data.read.max_rows = Some(rows);
    config.model.proposal.width = 32;
    (config.model.energy.width, config.model.context) = (8, 8);
    config.validation.cross_validate_below = 0;
    config.training.validation_every = steps / 2;
    config.training.checkpoint_every = steps / 10;
    config.step.warm_up = steps / 10;
    let data = prepare(&config).expect("a built-in set");
    (config, data)
}

fn fit(config: &FitConfig, data: &Prepared, out: &Path, workers: Workers) -> FitReport {
    let watch = Arc::default();
    let mut session =
        Session::start(config.clone(), data.clone(), out, workers, &watch).expect("a start");
    session.run(None, &watch, &mut |_| {}).expect("a fit").expect("it was not stopped")
}

#[test]
fn a_fit_on_a_device_is_as_good_as_one_on_the_cpu_and_used_alike_on_both() {
    let directory = common::directory("device-fits");
    for (source, rows, steps) in [("builtin:mixed", 1500, 200), ("builtin:banana", 900, 150)] {
        let (config, data) = config(source, rows, steps);
        let name = source.replace(':', "-");
        let there = directory.join(format!("{name}-device"));
        let found = fit(&config, &data, &there, device());
        let expected = fit(&config, &data, &directory.join(format!("{name}-cpu")), 1.into());
        // Statistically equal: other draws of the same training, on the same test rows.
        let [found, expected] = [&found, &expected].map(|report| report.test.log_likelihood);
        assert!((found - expected).abs() < 0.15, "{source}: {found} {expected}");

        // The same model and the same streams: what differs is rounding.
        let open = |workers: Workers| Fitted::open(&there, workers, Arc::default()).expect("a run");
        let (on_device, on_cpu) = (open(device()), open(1.into()));
        let test = data.test_as_read();
        let scores = |fitted: &Fitted| fitted.density().score(&test).expect("scores");
        let (a, b) = (scores(&on_device), scores(&on_cpu));
        assert_eq!(a.log_q.len(), data.rows[2]);
        for (a, b) in [(&a.log_q, &b.log_q), (&a.log_p_tilde, &b.log_p_tilde)] {
            let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 2e-3, "{source}: {worst}");
        }
        // Of a row the first cell is known, of another nothing.
        let columns = data.columns.len();
        let mut given = test[..columns].to_vec();
        given[1..].fill(f32::NAN);
        for row in [given, vec![f32::NAN; columns]] {
            let draw = |fitted: &Fitted| {
                let cloud = fitted.density().draw(&row, 200, &Streams::new(3)).expect("draws");
                (0..columns).map(|column| cloud.mean(column)).collect::<Vec<f64>>()
            };
            for (a, b) in draw(&on_device).into_iter().zip(draw(&on_cpu)) {
                assert!((a - b).abs() < 0.02 * (1.0 + b.abs()), "{source}: {a} {b}");
            }
        }
    }
}

#[test]
fn a_run_goes_on_where_it_did_not_begin() {
    let directory = common::directory("device-resume");
    let (config, data) = config("builtin:banana", 1500, 60);
    for (name, first, second) in
        [("device-first", device(), 1.into()), ("cpu-first", Workers::from(1), device())]
    {
        let out = directory.join(name);
        let watch = Arc::new(Watch::default());
        let stop = &mut |event: &Event| {
            if matches!(event, Event::Step { step: 31, .. }) {
                watch.stop();
            }
        };
        let mut session =
            Session::start(config.clone(), data.clone(), &out, first, &watch).expect("a start");
        assert_eq!(session.run(None, &watch, stop).expect("a part of a fit"), None);
        drop(session);
        let stored = FitConfig::read_run(&out).expect("a configuration");
        let watch = Arc::default();
        let (mut session, warnings) =
            Session::resume(stored, data.clone(), &out, second, &watch).expect("a checkpoint");
        assert_eq!((session.steps_taken(), warnings.len()), (31, 0), "{name}");
        let report = session.run(None, &watch, &mut |_| {}).expect("a fit").expect("to the end");
        assert_eq!(report.steps, 60);
        // A run that lost its moments or its parameters on the way would be nowhere near.
        let whole = fit(&config, &data, &directory.join(format!("{name}-whole")), 1.into());
        let [found, expected] = [&report, &whole].map(|report| report.test.log_likelihood);
        assert!((found - expected).abs() < 0.15, "{name}: {found} {expected}");
    }
}

#[test]
fn what_a_device_cannot_do_is_refused_before_there_is_a_run() {
    let directory = common::directory("device-refused");
    let (mut config, data) = config("builtin:banana", 1500, 60);
    config.step.criterion = zhat::criterion::Method::Rnce;
    config.step.proposal_target = zhat::ar::ProposalTarget::Model;
    let out = directory.join("run");
    let error = Session::start(config, data, &out, device(), &Watch::default()).err();
    let error = error.expect("it is refused").to_string();
    assert!(error.contains("on a device"), "{error}");
    assert!(!out.exists());
}
