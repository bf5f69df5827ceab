//! How often two standard errors of `log Z` hold a reference, for models of 2 to 30 columns with good and bad proposals.
//!
//!     cargo run --release -p zhat-table --example coverage -- 50

use std::sync::Arc;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, TensorData};
use zhat::ar::{Activation, ArEbm, ArEbmConfig, EnergyForm, NetworkSize, Normalisation};
use zhat::criterion::Method;
use zhat::evaluate::LogZ;
use zhat::rng::{Stream, Streams};
use zhat_table::data::Standardiser;
use zhat_table::density::{ArDensity, Density, Estimation, Opinion};
use zhat_table::fitted::assess;

/// Parameters that nobody trained: the energy says something, and the proposal knows nothing of it.
struct Randomise(Stream);

impl ModuleMapper for Randomise {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.val().dims();
        let fan_in = if D == 2 { shape[0] } else { 2 };
        let scale = 0.8 / (fan_in as f64).sqrt();
        let number = shape.iter().product::<usize>();
        let values: Vec<f32> = (0..number).map(|_| (scale * self.0.normal()) as f32).collect();
        param.map(|tensor| Tensor::<D>::from_data(TensorData::new(values, shape), &tensor.device()))
    }
}

fn density(form: EnergyForm, normalisation: Normalisation, columns: usize) -> ArDensity {
    let network = NetworkSize { blocks: 1, width: 16, activation: Activation::Relu };
    let config = ArEbmConfig {
        energy: network.clone(),
        proposal: network,
        context: 8,
        dropout: 0.0,
        mixture_components: 3,
        minimum_scale: 0.15,
        // Confined outside of where the draws are, so that there is a Z.
        confine: 4.0,
        energy_form: form,
        normalisation,
        ..ArEbmConfig::new(columns)
    };
    let streams = Streams::new(columns as u64);
    let model = config.init(&Device::flex(), &mut streams.stream("init", 0, 0)).expect("a model");
    let model: ArEbm = model.map(&mut Randomise(streams.stream("randomise", 0, 0))).masked();
    let names: Vec<String> = (1..=columns).map(|at| format!("x{at}")).collect();
    let standardiser = Standardiser::identity(columns);
    ArDensity::new(&model, Method::Rnce, &names, &standardiser, 0, Arc::default())
        .expect("a density")
}

fn main() -> zhat_table::Result<()> {
    let seeds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50);
    println!("| model | columns | held | distrusted | held or distrusted | mean standard error |");
    println!("|---|---|---|---|---|---|");
    for (name, form, normalisation) in [
        ("one Z, bounded weights", EnergyForm::Tilted, Normalisation::Global),
        ("one Z, a proposal that knows nothing of it", EnergyForm::Free, Normalisation::Global),
        ("one Z for each column, sampled", EnergyForm::Tilted, Normalisation::Local),
    ] {
        for columns in [2, 10, 30] {
            let density = density(form, normalisation, columns);
            let streams = Streams::new(1_000_000);
            let cloud = density.draw(&vec![f32::NAN; columns], 50_000, &streams)?;
            let rows = cloud.sample(200, &mut streams.stream("rows", 0, 0)).rows;
            let rows = density.refresh(rows, &streams)?;
            let reference = match normalisation {
                Normalisation::Local => 0.0,
                Normalisation::Global => {
                    let estimates = density.estimates(&Estimation::new(100_000, 10), &streams)?;
                    let logs: Vec<f64> =
                        estimates.iter().map(|estimate| estimate.log_z_hat).collect();
                    LogZ::from_estimates(&logs).log_z
                }
            };
            let (mut held, mut distrusted, mut either, mut error) = (0, 0, 0, 0.0);
            for seed in 0..seeds {
                let settings = Estimation::new(1_000, 10);
                let (log_z, standard_error, trusted) = match normalisation {
                    Normalisation::Local => {
                        let found =
                            density.opinion_from_rows(&rows, &settings, &Streams::new(seed))?;
                        let Opinion { log_z, standard_error, .. } = found.expect("integrals");
                        (log_z, standard_error, true)
                    }
                    Normalisation::Global => {
                        let found = assess(&density, &rows, None, &settings, true, seed)?;
                        let test = &found.likelihood;
                        (test.log_z, test.se_log_z, found.verdict.trusted)
                    }
                };
                let is_held = (log_z - reference).abs() <= 2.0 * standard_error;
                held += u32::from(is_held);
                distrusted += u32::from(!trusted);
                either += u32::from(is_held || !trusted);
                error += standard_error / seeds as f64;
            }
            println!(
                "| {name} | {columns} | {held}/{seeds} | {distrusted}/{seeds} | {either}/{seeds} | {error:.4} |"
            );
        }
    }
    Ok(())
}
