//! The zoo: models with known defects, and good ones, each with rows of its truth.

use std::f64::consts::TAU;
use std::sync::Arc;

use burn::tensor::Device;
use zhat::ar::{
    Activation, ArEbm, ArEbmConfig, ArStep, ArStepConfig, EnergyForm, NetworkSize, Normalisation,
};
use zhat::criterion::Method;
use zhat::rng::Streams;
use zhat::train::{OptimiserConfig, Rows, Trainer, TrainingConfig};
use zhat_table::data::Standardiser;
use zhat_table::density::{ArDensity, Density};

use super::known::{Known, Mixture, Part};

/// Rows that a model is judged by.
const ROWS: usize = 1_000;

/// What is wrong with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    None,
    MissingMode,
    MassFarOut,
    NoZ,
    Other,
}

/// A model and rows of the truth.
pub struct Animal {
    pub name: &'static str,
    pub defect: Defect,
    pub density: Box<dyn Density>,
    pub rows: Vec<f32>,
}

/// All models, with the rows of a seed.
pub fn zoo(seed: u64) -> Vec<Animal> {
    let streams = Streams::new(seed).derive("zoo", 0);
    let mut animals = defects(&streams);
    animals.extend(good(&streams));
    animals
}

fn animal(
    name: &'static str,
    defect: Defect,
    truth: &Mixture,
    model: Known,
    s: &Streams,
) -> Animal {
    let rows = truth.rows(ROWS, &mut s.stream(name, 0, 0));
    Animal { name, defect, density: Box::new(model), rows }
}

/// Three modes, the last of which is smaller.
fn three() -> Mixture {
    Mixture(vec![
        Part::round(0.4, &[-1.2, 0.0], 0.4),
        Part::round(0.4, &[1.2, 0.5], 0.5),
        Part::round(0.2, &[0.0, -1.5], 0.3),
    ])
}

/// A ring of eight.
fn eight() -> Mixture {
    let part = |at: usize| {
        let angle = TAU * at as f64 / 8.0;
        Part::round(1.0, &[1.5 * angle.cos(), 1.5 * angle.sin()], 0.2)
    };
    Mixture((0..8).map(part).collect())
}

fn without(mixture: &Mixture, part: usize) -> Mixture {
    let mut rest = mixture.clone();
    rest.0.remove(part);
    rest
}

fn with(mixture: &Mixture, part: Part) -> Mixture {
    let mut more = mixture.clone();
    more.0.push(part);
    more
}

fn chained(size: usize, correlation: f64) -> Mixture {
    Mixture(vec![Part::chained(&vec![0.0; size], correlation)])
}

/// Tails as of Student's t with about three degrees of freedom.
fn heavy() -> Mixture {
    let part = |&(weight, scale): &(f64, f64)| Part::round(weight, &[0.0, 0.0], scale);
    Mixture([(0.5, 0.5), (0.35, 1.0), (0.13, 2.0), (0.02, 4.0)].iter().map(part).collect())
}

/// Two columns, the first with a long tail to the right.
fn skewed() -> Mixture {
    let part =
        |&(weight, mean, scale): &(f64, f64, f64)| Part::new(weight, &[mean, 0.0], &[scale, 1.0]);
    Mixture([(0.5, -0.7, 0.3), (0.3, 0.1, 0.5), (0.2, 1.5, 1.0)].iter().map(part).collect())
}

fn defects(s: &Streams) -> Vec<Animal> {
    use Defect::*;
    let normal = |size: usize| chained(size, 0.0);
    let written = |name, defect, truth: &Mixture, model: &Mixture| {
        animal(name, defect, truth, Known::normalised(model.clone()), s)
    };
    let mut one_wide = normal(5);
    one_wide.0[0].factor[3 * 5 + 3] = 1.6;
    let mut weights = three();
    (weights.0[0].weight, weights.0[1].weight) = (0.65, 0.15);
    let learnt = chained(3, 0.5).rows(60, &mut s.stream("learnt", 0, 0));
    let by_heart = learnt
        .chunks_exact(3)
        .map(|row| Part::round(1.0, &row.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), 0.1));
    let far = with(&normal(2), Part::round(0.25, &[8.0, 0.0], 0.5));
    let leaked = with(&normal(2), Part::round(0.4, &[0.0, 0.0], 15.0));
    let (two, one) = (
        Mixture(vec![Part::round(0.5, &[-3.0, 0.0], 0.5), Part::round(0.5, &[3.0, 0.0], 0.5)]),
        Mixture(vec![Part::round(1.0, &[-3.0, 0.0], 0.6)]),
    );
    let global = |name, defect, truth: &Mixture, model: &Mixture, q: &Mixture| {
        animal(name, defect, truth, Known::global(model.clone(), 2.0, q.clone()), s)
    };
    let mut animals = vec![
        written("one of three modes missing", MissingMode, &three(), &without(&three(), 2)),
        written("one of eight modes missing", MissingMode, &eight(), &without(&eight(), 3)),
        written(
            "a tenth of the rows missing",
            MissingMode,
            &with(&normal(2), Part::round(0.11, &[3.5, 0.0], 0.3)),
            &normal(2),
        ),
        written("a mode too many", Other, &without(&eight(), 0), &eight()),
        written("too wide by half", Other, &normal(3), &normal(3).scaled(1.5)),
        written("too narrow by a third", Other, &normal(3), &normal(3).scaled(0.67)),
        written("dependence missed", Other, &chained(2, 0.8), &normal(2)),
        written("weak dependence missed, five columns", Other, &chained(5, 0.45), &normal(5)),
        written("dependence of the wrong sign", Other, &chained(3, 0.6), &chained(3, -0.6)),
        written("moved by half a deviation", Other, &normal(2), &normal(2).moved(0.5)),
        written("modes weighed wrong", Other, &three(), &weights),
        written("a Gaussian for heavy tails", Other, &heavy(), &normal(2).scaled(1.15)),
        written("a Gaussian for a skewed column", Other, &skewed(), &normal(2)),
        written("one of five columns too wide", Other, &normal(5), &one_wide),
        written("60 rows learnt by heart", Other, &chained(3, 0.5), &Mixture(by_heart.collect())),
        written("a quarter of the mass far out", MassFarOut, &normal(2), &far),
        global("mass far out, one Z", MassFarOut, &normal(2), &far, &far.scaled(1.2)),
        global("mass leaked far out, one Z", MassFarOut, &normal(2), &leaked, &leaked.scaled(1.2)),
        global("proposal collapsed", Other, &normal(3), &normal(3), &normal(3).scaled(0.2)),
        global(
            "proposal far away",
            Other,
            &normal(3),
            &normal(3),
            &normal(3).scaled(0.5).moved(4.0),
        ),
        global("a mode that the proposal never sees", MissingMode, &two, &two, &one),
    ];
    for (name, normalisation, size) in [
        ("bounded energy, one Z", Normalisation::Global, 2),
        ("bounded energy, one Z for each column", Normalisation::Local, 2),
        ("bounded energy, three columns", Normalisation::Global, 3),
    ] {
        let mut config = ArEbmConfig { normalisation, ..small(size) };
        config.energy.activation = Activation::Tanh;
        let model = initial(&config, s);
        animals.push(networks(name, NoZ, &normal(size), &model, Method::Rnce, s));
    }
    for (name, form, criterion) in [
        ("trained for one step, free energy", EnergyForm::Free, Method::Rnce),
        ("trained for one step, tilted", EnergyForm::Tilted, Method::Rnce),
        ("trained for one step, proposal alone", EnergyForm::Tilted, Method::QOnly),
    ] {
        let model = initial(&ArEbmConfig { energy_form: form, ..small(2) }, s);
        let model = one_step(model, criterion, &three(), s);
        animals.push(networks(name, Other, &three(), &model, criterion, s));
    }
    animals
}

fn good(s: &Streams) -> Vec<Animal> {
    let written = |name, truth: &Mixture| {
        animal(name, Defect::None, truth, Known::normalised(truth.clone()), s)
    };
    let global = |name, truth: &Mixture, q: &Mixture| {
        animal(name, Defect::None, truth, Known::global(truth.clone(), -3.0, q.clone()), s)
    };
    let nearly = Known::normalised(chained(3, 0.5).scaled(1.04));
    let mut animals = vec![
        written("three modes", &three()),
        written("eight modes", &eight()),
        written("dependent columns, five", &chained(5, 0.7)),
        written("dependent columns, twelve", &chained(12, 0.4)),
        written("heavy tails", &heavy()),
        written("a skewed column", &skewed()),
        animal("too wide by a twenty-fifth", Defect::None, &chained(3, 0.5), nearly, s),
        global("three modes, one Z", &three(), &three().scaled(1.3)),
        global("dependent columns, one Z", &chained(3, 0.6), &chained(3, 0.5).scaled(1.2)),
    ];
    // Networks with rows of their own: right by construction.
    let config = ArEbmConfig {
        normalisation: Normalisation::Local,
        energy_form: EnergyForm::Tilted,
        ..small(3)
    };
    let model = initial(&config, s);
    let mut own = networks(
        "networks, one Z for each column",
        Defect::None,
        &chained(3, 0.0),
        &model,
        Method::Rnce,
        s,
    );
    let streams = s.derive("own", 0);
    let cloud = own.density.draw(&[f32::NAN; 3], ROWS, &streams).expect("draws");
    own.rows = cloud.sample(ROWS, &mut streams.stream("rows", 0, 0)).rows;
    animals.push(own);
    animals
}

fn small(size: usize) -> ArEbmConfig {
    let network = NetworkSize { blocks: 1, width: 16, activation: Activation::Relu };
    let (energy, proposal) = (network.clone(), network);
    ArEbmConfig {
        energy,
        proposal,
        context: 8,
        dropout: 0.0,
        mixture_components: 3,
        ..ArEbmConfig::new(size)
    }
}

fn initial(config: &ArEbmConfig, s: &Streams) -> ArEbm {
    config.init(&Device::flex().autodiff(), &mut s.stream("init", 0, 0)).expect("a model")
}

/// One step of training, with a rate that nobody would take.
fn one_step(model: ArEbm, criterion: Method, truth: &Mixture, s: &Streams) -> ArEbm {
    let step = ArStep::new(&ArStepConfig::new(criterion), 1).expect("a step");
    let config = TrainingConfig::new(1, 1e-3).with_optimiser(OptimiserConfig::Adam);
    let size = truth.dimension();
    let rows = truth.rows(64, &mut s.stream("training", 0, 0));
    let device = Device::flex().autodiff();
    let data = burn::tensor::TensorData::new(rows, [64, size]);
    let mut trainer = Trainer::new(model, step, config, *s).expect("a trainer");
    trainer.fit(&Rows::new(burn::tensor::Tensor::from_data(data, &device))).expect("a step");
    trainer.model().clone()
}

fn networks(
    name: &'static str,
    defect: Defect,
    truth: &Mixture,
    model: &ArEbm,
    criterion: Method,
    s: &Streams,
) -> Animal {
    let columns: Vec<String> = (1..=truth.dimension()).map(|at| format!("x{at}")).collect();
    let standardiser = Standardiser::identity(columns.len());
    let density = ArDensity::new(model, criterion, &columns, &standardiser, 1, Arc::default());
    let rows = truth.rows(ROWS, &mut s.stream(name, 0, 0));
    Animal { name, defect, density: Box::new(density.expect("a density")), rows }
}
