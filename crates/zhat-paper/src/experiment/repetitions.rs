//! Repetitions in parallel, each with a seed of its own, until they are done or someone says stop.

use burn::module::Module;
use rayon::prelude::*;
use zhat::rng::Streams;
use zhat::train::{DataSource, Event, Trainer, TrainingStep};
use zhat::watch::Watch;
use zhat::{Error, Result};

/// Runs all repetitions of all arms, and gives `[arm][run]` of those that were finished, in their order. A repetition that
/// is stopped gives `None`.
pub(super) fn repeat<T: Send>(
    (runs, num_arms): (usize, usize),
    seed: u64,
    watch: &Watch,
    run: impl Fn(&Streams) -> Result<Option<Vec<T>>> + Sync,
) -> Result<Vec<Vec<T>>> {
    let streams = Streams::new(seed);
    let results: Vec<Option<Vec<T>>> = (0..runs)
        .into_par_iter()
        // One at a time, so that no thread is left with a pile at the end.
        .with_max_len(1)
        .map(|repetition| {
            if watch.is_stopped() {
                return Ok(None);
            }
            let result = run(&streams.derive("repetition", repetition as u64))?;
            if result.is_some() {
                watch.advance(1);
            }
            Ok(result)
        })
        .collect::<Result<_>>()?;
    let mut arms: Vec<Vec<T>> = (0..num_arms).map(|_| Vec::new()).collect();
    for repetition in results.into_iter().flatten() {
        arms.iter_mut().zip(repetition).for_each(|(arm, result)| arm.push(result));
    }
    Ok(arms)
}

/// Trains, and measures `K` numbers after every step: `K` curves of `num_steps` values, or `None` if it was stopped.
///
/// A run that diverges is not a broken experiment: its values are not a number from there on.
pub(super) fn trace<M: Module, S: TrainingStep<M>, const K: usize>(
    trainer: &mut Trainer<M, S>,
    data: &impl DataSource,
    watch: &Watch,
    measure: impl Fn(&M, &S) -> [f64; K],
) -> Result<Option<[Vec<f64>; K]>> {
    let num_steps = trainer.config().num_steps as usize;
    let mut curves = [(); K].map(|()| Vec::with_capacity(num_steps));
    let until = Watch::default();
    let ended = trainer.fit_watched(data, &until, &mut |event| {
        if let Event::Step { model, training, .. } = event {
            for (curve, value) in curves.iter_mut().zip(measure(model, training)) {
                curve.push(value);
            }
        }
        if watch.is_stopped() {
            until.stop();
        }
        Ok(())
    });
    match ended {
        Err(Error::Diverged { .. }) => {
            curves.iter_mut().for_each(|curve| curve.resize(num_steps, f64::NAN));
        }
        ended => drop(ended?),
    }
    let finished = curves.iter().all(|curve| curve.len() == num_steps);
    Ok(finished.then_some(curves))
}
