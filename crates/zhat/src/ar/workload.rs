//! How much arithmetic a training step is, for whoever measures it: counts of operations, and nothing but the products.

use super::config::{ArEbmConfig, NetworkSize};
use super::criterion::ArStepConfig;
use super::panels::Panels;
use super::products::Start;
use crate::criterion::Method;

/// Floating-point operations of the networks' products in one step, without those that are shared or skipped.
pub fn step_flops(config: &ArEbmConfig, settings: &ArStepConfig, batch: usize) -> f64 {
    let (candidates, features) = (settings.candidates() as f64, config.features as f64);
    let observations = batch as f64;
    let blocks = |size: &NetworkSize| 2.0 * size.blocks as f64 * (size.width * size.width) as f64;
    let width = config.proposal.width as f64;
    let mixture = 3.0 * config.mixture_components as f64 * width;
    // One forward product and two backward ones; the mixture's layer goes back for the data rows alone.
    let prefixes = features * (features - 1.0) / 2.0;
    let mut multiplications = 3.0 * prefixes * candidates * width;
    let (all_rows, data_rows) = (candidates * features, features);
    let with_model = settings.proposal_shares().1 > 0.0;
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

/// Does the products of a step on one tile of rows, `repeats` times: for each layer of each network forward, backward and
/// transposed. Gives the number of floating-point operations; to be timed against the step itself.
pub fn products_alone(config: &ArEbmConfig, settings: &ArStepConfig, repeats: usize) -> f64 {
    let rows = settings.tile_observations() * settings.candidates();
    let networks = step_networks(config, settings);
    networks.into_iter().map(|size| products(size, rows, repeats)).sum()
}

fn products(size: &NetworkSize, rows: usize, repeats: usize) -> f64 {
    let width = size.width;
    let values: Vec<f32> = (0..rows.max(width) * width).map(|i| (i % 7) as f32 * 0.1).collect();
    let left = Panels::from_rows(&values, width, rows, width);
    let weight = Panels::from_rows(&values, width, width, width);
    let (mut out, mut gradient) = (Panels::zeros(rows, width), Panels::zeros(width, width));
    let passes = repeats * 2 * size.blocks;
    for _ in 0..passes {
        for _ in 0..2 {
            for panel in 0..out.num_panels() {
                Panels::multiply_panel(
                    &left,
                    &weight,
                    width,
                    panel,
                    Start::Zero,
                    out.panel_mut(panel),
                );
            }
        }
        gradient.add_transposed_product(&left, width, &out);
    }
    std::hint::black_box(&gradient);
    6.0 * (passes * rows * width * width) as f64
}
