//! The model that training starts from, with the stack of Gaussian mixtures beside its head if it has one.

use burn::tensor::Device;
use zhat::ar::{ArEbm, FeatureKind};
use zhat::gaussian_mixture::{
    GaussianMixture, Selected, Selection, select, select_by_cross_validation,
};
use zhat::rng::Streams;
use zhat::watch::Watch;

use super::config::FitConfig;
use super::rows::numbers;
use crate::error::{Result, TableError};
use crate::prepare::Prepared;

/// Components at most where there are rows enough for networks: the mixture is their start, and every row waits for it.
const MOST_COMPONENTS: usize = 20;
/// Folds that the stack is found by where there are few rows.
const FOLDS: usize = 5;

/// The mixtures of the training rows, stacked by validation rows, or by folds where those are few; none if none is wanted.
pub(super) fn stack(
    config: &FitConfig,
    data: &Prepared,
    threads: usize,
    watch: &Watch,
) -> Result<Option<Selected>> {
    if !config.model.gaussian_mixture {
        return Ok(None);
    }
    let streams = Streams::new(config.seed).derive("gaussian-mixture", 0);
    let features = data.num_numbers();
    let (train, validation) = (
        &numbers(data, data.train.clone(), &streams),
        &numbers(data, data.validation.clone(), &streams.derive("validation", 0)),
    );
    let selected = pool(threads)?.install(|| {
        if config.is_cross_validated(data) || validation.is_empty() {
            let rows = [&train[..], &validation[..]].concat();
            let (selection, folds) = (Selection::default(), FOLDS.min(rows.len() / features));
            select_by_cross_validation(&rows, features, folds, &selection, &streams, watch)
        } else {
            let selection = Selection { most_components: MOST_COMPONENTS, ..Selection::default() };
            select(train, validation, features, &selection, &streams, watch)
        }
    })?;
    Ok(Some(selected))
}

/// Threads that mixtures are fitted by.
pub(super) fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| {
        TableError::config(format!("threads is {threads}, but cannot be started: {error}"))
    })
}

/// The model before its first step, on a device with autodiff.
pub(super) fn initial_model(
    config: &FitConfig,
    data: &Prepared,
    known: Option<GaussianMixture>,
    streams: &Streams,
    device: &Device,
) -> Result<ArEbm> {
    let mut model = config.shape_of(data).init(device, &mut streams.stream("init", 0, 0))?;
    for (feature, kind) in model.shape.kinds.clone().iter().enumerate().skip(data.given) {
        let number = match kind {
            FeatureKind::Categorical { levels } => *levels,
            FeatureKind::Atoms { values } => values.len() + 1,
            _ => 0,
        };
        let class = |x: f32| match kind {
            FeatureKind::Atoms { values } => {
                values.iter().position(|atom| *atom == x).unwrap_or(values.len())
            }
            _ => x as usize,
        };
        if number > 0 {
            let mut counts = vec![0.0; number];
            let observed = data.train.iter().skip(feature).step_by(data.columns.len());
            observed.filter(|x| !x.is_nan()).for_each(|&x| counts[class(x)] += 1.0);
            let total = counts.iter().sum::<f64>().max(1.0);
            counts.iter_mut().for_each(|count| *count /= total);
            model = model.with_class_shares(feature, &counts);
        }
    }
    Ok(match known {
        Some(mixture) => model.with_gaussian_mixture(mixture),
        None => model,
    })
}
