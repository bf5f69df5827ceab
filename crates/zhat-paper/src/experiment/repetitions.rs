//! Repetitions in parallel, each with a seed of its own, until they are done or someone says stop.

use burn::module::Module;
use rayon::prelude::*;
use zhat::Result;
use zhat::criterion::Criterion;
use zhat::rng::Streams;
use zhat::train::{DataSource, StepReport, Trainer};

/// Someone who watches an experiment from outside, and may end it early.
pub trait Monitor: Sync {
    /// Asked between training steps; after `true`, repetitions that are not finished are given up.
    fn stopped(&self) -> bool {
        false
    }

    /// Told whenever a repetition is finished.
    fn finished(&self) {}
}

/// Nobody watches.
impl Monitor for () {}

/// Runs all repetitions, and gives those that were finished in their order. One that is stopped gives `None`.
pub(super) fn repeat<T: Send>(
    runs: usize,
    seed: u64,
    monitor: &impl Monitor,
    run: impl Fn(&Streams) -> Result<Option<T>> + Sync,
) -> Result<Vec<T>> {
    let streams = Streams::new(seed);
    let results: Vec<Option<T>> = (0..runs)
        .into_par_iter()
        // One at a time, so that no thread is left with a pile at the end.
        .with_max_len(1)
        .map(|repetition| {
            if monitor.stopped() {
                return Ok(None);
            }
            let result = run(&streams.derive("repetition", repetition as u64))?;
            if result.is_some() {
                monitor.finished();
            }
            Ok(result)
        })
        .collect::<Result<_>>()?;
    Ok(results.into_iter().flatten().collect())
}

/// Trains, and measures `K` numbers after every step: `K` curves of `num_steps` values, or `None` if it was stopped.
///
/// A run that diverges is not a broken experiment: its values are not a number from there on.
pub(super) fn trace<M: Module, C: Criterion<M>, const K: usize>(
    trainer: &mut Trainer<M, C>,
    data: &impl DataSource,
    num_steps: usize,
    monitor: &impl Monitor,
    measure: impl Fn(&StepReport<M, C>) -> [f64; K],
) -> Result<Option<[Vec<f64>; K]>> {
    let mut curves = [(); K].map(|()| Vec::with_capacity(num_steps));
    let mut observer = |report: &StepReport<M, C>| {
        for (curve, value) in curves.iter_mut().zip(measure(report)) {
            curve.push(value);
        }
        !monitor.stopped()
    };
    match trainer.fit(data, &mut observer) {
        Err(error) if !error.is_recoverable() => return Err(error),
        Err(_) => curves.iter_mut().for_each(|curve| curve.resize(num_steps, f64::NAN)),
        Ok(()) => (),
    }
    let finished = curves.iter().all(|curve| curve.len() == num_steps);
    Ok(finished.then_some(curves))
}
