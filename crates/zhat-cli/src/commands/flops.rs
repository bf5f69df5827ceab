//! How much arithmetic a training step is: operations of the networks' products, for whoever measures it.

use zhat::ar::{
    ArEbmConfig, ArStepConfig, Conditioner, NetworkSize, Normalisation, ProposalTarget,
};
use zhat::criterion::Method;

/// Floating-point operations of the networks' products in one step, without those that are shared or skipped.
pub fn step_flops(config: &ArEbmConfig, settings: &ArStepConfig, batch: usize) -> f64 {
    let (candidates, features) = (settings.candidates() as f64, config.features as f64);
    let observations = batch as f64;
    if config.conditioner == Conditioner::Masked && config.normalisation == Normalisation::Local {
        return observations * one_pass_flops(config, settings);
    }
    let blocks = |size: &NetworkSize| 2.0 * size.blocks as f64 * (size.width * size.width) as f64;
    let width = config.proposal.width as f64;
    let mixture = 3.0 * config.mixture_components as f64 * width;
    // One forward product and two backward ones; the mixture's layer goes back for the data rows alone.
    let prefixes = features * (features - 1.0) / 2.0;
    let mut multiplications = 3.0 * prefixes * candidates * width;
    let (all_rows, data_rows) = (candidates * features, features);
    let with_model = settings.proposal_target != ProposalTarget::Data;
    let trained_rows = if with_model { all_rows } else { data_rows };
    multiplications += mixture * (all_rows + 2.0 * trained_rows);
    let stages = match config.dropout > 0.0 {
        true => features,
        // Without dropout the first stage is evaluated once for all rows.
        false => features - 1.0,
    };
    multiplications += 3.0 * candidates * stages * blocks(&config.proposal);
    if config.dropout > 0.0 && config.proposal.blocks > 0 {
        // With dropout its first product is.
        multiplications -= 3.0 * candidates * width * width;
    }
    if settings.criterion != Method::QOnly {
        let energy = (config.context + 2) * config.energy.width;
        let context = config.context as f64 * width;
        multiplications += 3.0 * all_rows * (blocks(&config.energy) + energy as f64 + context);
    }
    2.0 * multiplications * observations
}

/// The same of one observation where the conditioner runs once for all features, and every feature's last layers see half of
/// its units.
fn one_pass_flops(config: &ArEbmConfig, settings: &ArStepConfig) -> f64 {
    let (features, candidates) = (config.features as f64, settings.candidates() as f64);
    let blocks = |size: &NetworkSize| 2.0 * size.blocks as f64 * (size.width * size.width) as f64;
    let width = config.proposal.width as f64;
    let mixture = 3.0 * config.mixture_components as f64;
    let mut multiplications = features * width + blocks(&config.proposal);
    multiplications += features * mixture * width / 2.0;
    if settings.criterion != Method::QOnly {
        let context = config.context as f64;
        let energy = config.energy.width as f64;
        multiplications += features * context * (width / 2.0 + energy);
        multiplications += features * candidates * (blocks(&config.energy) + 2.0 * energy);
    }
    6.0 * multiplications
}

/// Floating-point operations of the networks' products when rows are scored, without those that are shared.
pub fn score_flops(config: &ArEbmConfig, rows: usize) -> f64 {
    let features = config.features as f64;
    let blocks = |size: &NetworkSize| 2.0 * size.blocks as f64 * (size.width * size.width) as f64;
    let width = config.proposal.width as f64;
    let outputs = (config.context + 3 * config.mixture_components) as f64;
    // The first stage's context is evaluated once for all rows.
    let prefixes = features * (features - 1.0) / 2.0;
    let contexts = (features - 1.0) * (blocks(&config.proposal) + outputs * width);
    let energy = ((config.context + 2) * config.energy.width) as f64;
    let energies = features * (blocks(&config.energy) + energy);
    2.0 * rows as f64 * (prefixes * width + contexts + energies)
}

/// The networks that a step goes through.
pub fn step_networks<'a>(config: &'a ArEbmConfig, settings: &ArStepConfig) -> Vec<&'a NetworkSize> {
    match settings.criterion {
        Method::QOnly => vec![&config.proposal],
        _ => vec![&config.proposal, &config.energy],
    }
}
