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
use zhat_table::density::{ArDensity, Density, Estimation};
use zhat_table::fitted::{About, Assessment, Check, assess};

/// Rows of the model's own, with which it is assessed.
const ROWS: usize = 200;

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

fn density(
    form: EnergyForm,
    normalisation: Normalisation,
    columns: usize,
    parameters: u64,
) -> ArDensity {
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
    let streams = Streams::new(parameters);
    let model = config.init(&Device::flex(), &mut streams.stream("init", 0, 0)).expect("a model");
    let model: ArEbm = model.map(&mut Randomise(streams.stream("randomise", 0, 0))).masked();
    let names: Vec<String> = (1..=columns).map(|at| format!("x{at}")).collect();
    let standardiser = Standardiser::identity(columns);
    ArDensity::new(&model, Method::Rnce, &names, &standardiser, 0, Arc::default())
        .expect("a density")
}

fn rows_of(density: &ArDensity, streams: &Streams) -> zhat_table::Result<Vec<f32>> {
    let draws = if density.is_normalised() { 10 * ROWS } else { 50_000 };
    let cloud = density.draw(&vec![f32::NAN; density.columns().len()], draws, streams)?;
    let rows = cloud.sample(ROWS, &mut streams.stream("rows", 0, 0)).rows;
    density.refresh(rows, streams)
}

/// What the seeds found.
#[derive(Default)]
struct Tally {
    held: u32,
    distrusted: u32,
    either: u32,
    squares: f64,
    errors: f64,
}

impl Tally {
    fn add(&mut self, apart: f64, error: f64, found: &Assessment) {
        let is_held = apart.abs() <= 2.0 * error;
        self.held += u32::from(is_held);
        self.distrusted += u32::from(!found.verdict.trusted);
        self.either += u32::from(is_held || !found.verdict.trusted);
        self.squares += apart * apart;
        self.errors += error;
        let of_likelihood = |check: &&Check| !check.passed && check.about == About::Likelihood;
        for check in found.verdict.checks.iter().filter(of_likelihood) {
            eprintln!("  {}", check.reason);
        }
    }

    fn print(&self, name: &str, columns: usize, seeds: u64) {
        let Self { held, distrusted, either, squares, errors } = self;
        let number = seeds as f64;
        println!(
            "| {name} | {columns} | {held}/{seeds} | {distrusted}/{seeds} | {either}/{seeds} | {:.4} | {:.4} |",
            (squares / number).sqrt(),
            errors / number
        );
    }
}

/// SMC of one model by many seeds, against a hundred times the particles.
fn of_smc(name: &str, form: EnergyForm, columns: usize, seeds: u64) -> zhat_table::Result<()> {
    let density = density(form, Normalisation::Global, columns, columns as u64);
    let streams = Streams::new(1_000_000);
    let rows = rows_of(&density, &streams)?;
    let estimates = density.estimates(&Estimation::new(100_000, 10), &streams)?;
    let logs: Vec<f64> = estimates.iter().map(|estimate| estimate.log_z_hat).collect();
    let reference = LogZ::from_estimates(&logs);
    eprintln!("{name}, {columns}: {:.4} ± {:.4}", reference.log_z, reference.standard_error);
    let mut tally = Tally::default();
    for seed in 0..seeds {
        let found = assess(&density, &rows, None, &Estimation::new(1_000, 10), true, seed)?;
        let test = &found.likelihood;
        tally.add(test.log_z - reference.log_z, test.se_log_z, &found);
    }
    tally.print(name, columns, seeds);
    Ok(())
}

/// Integrals by quadrature of as many models, against sampling of the same integrals.
fn of_quadrature(name: &str, columns: usize, seeds: u64) -> zhat_table::Result<()> {
    let mut tally = Tally::default();
    for seed in 0..seeds {
        let density = density(EnergyForm::Tilted, Normalisation::Local, columns, seed);
        let rows = rows_of(&density, &Streams::new(1_000_000 + seed))?;
        let found = assess(&density, &rows, None, &Estimation::new(1_000, 10), true, seed)?;
        let sampled = found.opinions.first().expect("sampled integrals");
        // Quadrature says that log Z is 0.
        let error = sampled.standard_error.hypot(found.likelihood.quadrature_error);
        tally.add(sampled.log_z, error, &found);
    }
    tally.print(name, columns, seeds);
    Ok(())
}

fn main() -> zhat_table::Result<()> {
    let seeds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50);
    println!(
        "| model | columns | held | distrusted | held or distrusted | root mean square error | mean standard error |"
    );
    println!("|---|---|---|---|---|---|---|");
    for columns in [2, 10, 30] {
        of_smc("one Z, bounded weights", EnergyForm::Tilted, columns, seeds)?;
    }
    for columns in [2, 10, 30] {
        of_smc("one Z, a proposal that knows nothing of it", EnergyForm::Free, columns, seeds)?;
    }
    for columns in [2, 10, 30] {
        of_quadrature("one Z for each column, sampled", columns, seeds)?;
    }
    Ok(())
}
