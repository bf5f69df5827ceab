//! A stack of Gaussian mixtures beside networks that were trained without it, in the share that validation rows give it.
//!
//! Of a few columns mixtures say what networks take long to learn, and are wrong elsewhere than they. Trained together, the networks
//! would be left with what mixtures cannot say of the training rows, and learn it by heart; so each is fitted by itself, as members are.

use zhat::ar::ArEbm;
use zhat::criterion::Method;
use zhat::gaussian_mixture::{GaussianMixture, Selection, select};
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::train::Difference;
use zhat::watch::Watch;

use super::config::FitConfig;
use super::rows::numbers;
use super::validation::Validator;
use crate::error::{Result, TableError};
use crate::prepare::Prepared;

/// Shares that are tried: between them the likelihood hardly changes.
const SHARES: [f64; 6] = [0.05, 0.2, 0.4, 0.6, 0.8, 0.95];
/// Fits of each of the two best sizes from other starts.
const REPEATS: usize = 8;
/// Of the stack a mixture may have a small share: a few wide components know of rows far out.
const SMALLEST_SHARE: f64 = 0.002;

/// The stack, and the rows that say what it is worth.
pub(super) struct Beside {
    /// Fitted to training rows alone.
    judged: GaussianMixture,
    /// Fitted to validation rows too.
    of_all: GaussianMixture,
    /// Validation rows in the units of the data.
    validation: Vec<f32>,
}

/// A model with a stack beside its networks, which is better than without.
pub(super) struct Stacked {
    pub model: ArEbm,
    /// Share of the stack.
    pub share: f64,
    /// By how much validation rows are likelier, in nats a row.
    pub gain: Difference,
    /// What they are worth, and its standard error over rows.
    pub log_likelihood: [f64; 2],
}

impl Stacked {
    /// What was done, in words.
    pub fn sentence(&self) -> String {
        format!(
            "Gaussian mixtures stand beside the networks in a share of {:.0} %: validation rows are likelier by {:.4} nats (standard error \
             {:.4}) than by the networks alone.",
            100.0 * self.share,
            self.gain.mean,
            self.gain.standard_error
        )
    }
}

impl Beside {
    /// Fits the stack, if one is wanted and there are rows to judge it by. EM counts every row once, and wants them in memory.
    pub fn fit(
        config: &FitConfig,
        data: &Prepared,
        threads: usize,
        watch: &Watch,
    ) -> Result<Option<Self>> {
        let can = config.step.criterion == Method::QOnly
            && !config.is_cross_validated(data)
            && config.shape_of(data).has_room_for_gaussian_mixture()
            && data.weights.is_none()
            && data.train_file.is_none()
            && !data.validation.is_empty();
        if !(config.validation.stack_mixtures && can) {
            return Ok(None);
        }
        let streams = Streams::new(config.seed).derive("mixtures-beside", 0);
        let train = numbers(data, &data.train, &streams);
        let held_out = numbers(data, &data.validation, &streams.derive("validation", 0));
        let selection =
            Selection { repeats: REPEATS, smallest_share: SMALLEST_SHARE, ..Selection::default() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| {
            TableError::config(format!("threads is {threads}, but cannot be started: {error}"))
        })?;
        let (judged, of_all) = pool.install(|| -> zhat::Result<_> {
            let features = data.num_numbers();
            let selected = select(&train, &held_out, features, &selection, &streams, watch)?;
            let all = [&train[..], &held_out[..]].concat();
            let of_all = selected.refit(&all, &selection, &streams, watch)?;
            Ok((selected.mixture, of_all))
        })?;
        let rows = config.validation.of_rows(&data.validation, data.columns.len());
        Ok(Some(Self { judged, of_all, validation: data.in_units(rows) }))
    }

    /// The model with the stack beside it, if that is better by more than one standard error.
    pub fn stacked(
        &self,
        model: &ArEbm,
        validator: &Validator,
        workers: &Workers,
    ) -> Result<Option<Stacked>> {
        let validate = |model: &ArEbm| -> Result<Vec<f64>> {
            let found = validator.validate(model, &self.validation, None, workers.clone())?;
            Ok(found.log_likelihoods)
        };
        let alone = validate(model)?;
        let mut best: Option<(f64, Difference, Vec<f64>)> = None;
        for share in SHARES {
            let found = validate(&beside(model, &self.judged, share))?;
            let gain = Difference::new(&found, &alone);
            if best.as_ref().is_none_or(|(_, best, _)| gain.mean > best.mean) {
                best = Some((share, gain, found));
            }
        }
        let (share, gain, found) = best.expect("a share");
        if gain.mean <= gain.standard_error {
            return Ok(None);
        }
        let worth = Difference::weighted(&found, None);
        Ok(Some(Stacked {
            model: beside(model, &self.of_all, share),
            share,
            gain,
            log_likelihood: [worth.mean, worth.standard_error],
        }))
    }
}

fn beside(model: &ArEbm, mixture: &GaussianMixture, share: f64) -> ArEbm {
    model.clone().beside_gaussian_mixture(mixture.clone(), share)
}
