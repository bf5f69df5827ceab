//! Features that are given: the density of the others integrates to one for each of their values, and says nothing of them.

use zhat::ar::*;
use zhat::burn::tensor::{Device, Tensor, TensorData};
use zhat::criterion::Method;
use zhat::rng::Streams;
use zhat::smc::SmcConfig;
use zhat::train::{OptimiserConfig, Rows, Schedule, Trainer, TrainingConfig, TrainingStep};

use crate::kinds::{cells, classes, log_sum, rows};
use crate::small_model::{config, random};

/// A small random model of features of these kinds, the first of which are given.
fn conditional(kinds: &[FeatureKind], given: usize) -> (ArEbm, Streams) {
    random(&ArEbmConfig {
        features: kinds.len(),
        kinds: kinds.to_vec(),
        given,
        conditioner: Conditioner::Masked,
        energy_form: EnergyForm::Tilted,
        normalisation: Normalisation::Local,
        minimum_scale: 0.15,
        // Smooth, so that integrals over it have many digits.
        energy: NetworkSize { activation: Activation::Elu, ..config().energy },
        dropout: 0.0,
        ..config()
    })
}

/// Kinds and how many of the first are given, with some values of those.
fn cases() -> Vec<(Vec<FeatureKind>, Vec<Vec<f32>>)> {
    let line = FeatureKind::Continuous;
    let cell = cells().value_of(3);
    vec![
        (vec![line.clone(), line.clone(), line.clone()], vec![vec![0.3, -1.0], vec![-2.0, 0.1]]),
        (vec![line.clone(), classes(3), cells()], vec![vec![0.7], vec![-1.1]]),
        (
            vec![classes(3), cells(), line.clone(), classes(2)],
            vec![vec![1.0, cell], vec![2.0, cell]],
        ),
        (vec![cells(), line, classes(4)], vec![vec![cell, -0.4], vec![cell, 1.4]]),
    ]
}

/// The log of the sum over all values of a last feature, given all before it.
fn log_sum_of_last(evaluator: &Evaluator, kind: &FeatureKind, before: &[f32]) -> f64 {
    let all: Vec<f32> = match kind.num_values() {
        Some(number) => (0..number).map(|index| kind.value_of(index)).collect(),
        None => (-6000..6000).map(|i| 0.01 * (i as f32 + 0.5)).collect(),
    };
    let counts = if kind.num_values().is_some() { 1.0 } else { 0.01 };
    let rows: Vec<f32> = all.iter().flat_map(|&x| before.iter().copied().chain([x])).collect();
    let scores = evaluator.score(&rows).log_p_tilde;
    scores.iter().map(|log_p| counts * log_p.exp()).sum::<f64>().ln()
}

#[test]
fn the_density_of_the_rest_integrates_to_one_for_all_that_is_given() {
    for (kinds, values) in cases() {
        let (model, _) = conditional(&kinds, values[0].len());
        for evaluator in [Evaluator::new(&model, 2), Evaluator::of_proposal(&model, 2)] {
            let evaluator = evaluator.unwrap();
            for values in &values {
                let mut known: Vec<Option<f32>> = values.iter().copied().map(Some).collect();
                known.resize(kinds.len(), None);
                let log_z = match known[..kinds.len() - 1].contains(&None) {
                    true => log_sum(&evaluator, &kinds, &known),
                    false => log_sum_of_last(&evaluator, kinds.last().unwrap(), values),
                };
                assert!(log_z.abs() < 3e-3, "{kinds:?} {values:?}: {log_z}");
            }
            // The first value of what is given makes a difference to the rest.
            let last = values[0].len();
            let (mut one, _) = rows(&kinds, &vec![Some(0.0); kinds.len()]);
            let mut other = one.clone();
            one[..last].copy_from_slice(&values[0]);
            other[..last].copy_from_slice(&values[1]);
            let [one, other] = [one, other].map(|row| evaluator.score(&row).log_p_tilde[0]);
            assert!((one - other).abs() > 1e-3, "{kinds:?}");
        }
    }
}

#[test]
fn nothing_is_spent_on_what_is_given() {
    let line = vec![FeatureKind::Continuous; 5];
    let outputs = |given: usize| {
        let (model, _) = conditional(&line, given);
        model.proposal.last.weight.val().dims()[1]
    };
    let one = outputs(4);
    assert_eq!([0, 1, 2, 3].map(outputs), [5 * one, 4 * one, 3 * one, 2 * one]);
}

#[test]
fn cells_sum_to_the_row_and_what_is_given_has_none() {
    for (kinds, values) in cases() {
        let given = values[0].len();
        let (model, _) = conditional(&kinds, given);
        let evaluator = Evaluator::new(&model, 1).unwrap();
        let (all, _) = rows(&kinds, &vec![Some(1.0); kinds.len()]);
        let cells = evaluator.cells(&all).unwrap();
        assert!(cells.log_p[..given].iter().all(|log_p| *log_p == 0.0));
        assert!(cells.below[..given].iter().all(|below| below.is_nan()));
        let total = evaluator.score(&all).log_p_tilde[0];
        assert!((cells.log_p.iter().sum::<f64>() - total).abs() < 1e-5);
    }
}

#[test]
fn draws_follow_the_conditional_and_have_to_be_given_what_is_given() {
    let kinds = vec![FeatureKind::Continuous, classes(3), cells()];
    let (model, streams) = conditional(&kinds, 1);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let number = 20_000;
    let smc = SmcConfig::new(number).unwrap();
    for x in [-1.2f32, 0.8] {
        let run = evaluator.smc_given(&smc, &[Some(x), None, None], &streams, 0).unwrap();
        assert!(run.log_z_hat.abs() < 1e-9, "draws are exact");
        for class in 0..3 {
            let p = log_sum(&evaluator, &kinds, &[Some(x), Some(class as f32), None]).exp();
            let drawn = run.columns[1].iter().filter(|drawn| **drawn == class as f32).count();
            let error = 4.5 * (p * (1.0 - p) / number as f64).sqrt();
            let share = drawn as f64 / number as f64;
            // 4.5 standard errors: one false alarm in 20,000 for six shares, and the seed is fixed.
            assert!((share - p).abs() < error + 3e-3, "{x} {class}: {share} {p}");
        }
    }
    let error = evaluator.smc_given(&smc, &[None, Some(1.0), None], &streams, 0).unwrap_err();
    assert!(error.to_string().contains("features are given"), "{error}");
}

#[test]
fn holes_in_the_rest_are_summed_over_and_those_in_what_is_given_are_an_error() {
    let kinds = vec![FeatureKind::Continuous, classes(3), cells(), classes(2)];
    let (model, streams) = conditional(&kinds, 1);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let (cell, hole) = (kinds[2].value_of(3), f32::NAN);
    let x = [[0.4, hole, cell, 1.0], [-0.9, hole, hole, 0.0], [0.4, 1.0, hole, hole]];
    let smc = SmcConfig::new(4000).unwrap();
    let found = evaluator.score_observed(&x.concat(), &smc, &streams).unwrap();
    for (row, (log_p, error)) in x.iter().zip(found.log_p.iter().zip(&found.error)) {
        let known: Vec<_> = row.iter().map(|&x| (!x.is_nan()).then_some(x)).collect();
        let exact = log_sum(&evaluator, &kinds, &known);
        assert!((log_p - exact).abs() < 4.5 * error + 4e-3, "{row:?}: {log_p} {exact}");
    }
    assert!(evaluator.score_observed(&[hole, 1.0, cell, 0.0], &smc, &streams).is_err());
    let missing = [false, true, false, true];
    let row = [0.4, hole, cell, hole];
    let moved = evaluator.redraw_missing(&row, &missing, &smc, &streams, 0).unwrap();
    assert_eq!((moved[0], moved[2]), (0.4, cell));
    assert!(!moved[1].is_nan() && !moved[3].is_nan());
}

#[test]
fn the_loss_is_that_of_the_conditional_likelihood() {
    for (kinds, values) in cases() {
        let (model, streams) = conditional(&kinds, values[0].len());
        // Numbers on the line and classes alone: in training a cell has a density.
        if kinds.iter().any(FeatureKind::is_cells) {
            continue;
        }
        let (all, _) = rows(&kinds, &vec![Some(0.5); kinds.len()]);
        let score = Evaluator::of_proposal(&model, 1).unwrap().score(&all).log_q[0];
        let shape = [1, kinds.len()];
        let batch: Tensor<2> = Tensor::from_data(TensorData::new(all, shape), &Device::flex());
        let mut step = ArStep::new(&ArStepConfig::new(Method::QOnly), 1).unwrap();
        let (_, report) = step.gradient(&model, &batch.into(), &streams, 0).unwrap();
        assert!((report.loss + score).abs() < 1e-4, "{} {score}", report.loss);
    }
}

/// `y = +-(1 + x^2 / 2)` with a spread that grows with `x`: two modes, and nothing that a mean would tell.
fn regression(number: usize, rng: &mut zhat::rng::Stream) -> (Vec<f32>, Vec<f64>) {
    let (mut rows, mut log_p) = (Vec::new(), Vec::new());
    let log_normal = |z: f64, s: f64| -0.5 * (z * z + std::f64::consts::TAU.ln()) - s.ln();
    for _ in 0..number {
        let x = 4.0 * rng.uniform() - 2.0;
        let (high, spread) = (1.0 / (1.0 + (-2.0 * x).exp()), 0.2 + 0.1 * (x + 2.0));
        let centre = 1.0 + 0.5 * x * x;
        let sign = if rng.uniform() < high { 1.0 } else { -1.0 };
        let y = sign * centre + spread * rng.normal();
        let [above, below] =
            [1.0, -1.0].map(|sign| log_normal((y - sign * centre) / spread, spread).exp());
        rows.extend([x as f32, y as f32]);
        log_p.push((high * above + (1.0 - high) * below).ln());
    }
    (rows, log_p)
}

#[test]
fn a_regression_with_two_modes_comes_near_to_the_truth() {
    let streams = Streams::new(5);
    let (train, _) = regression(4000, &mut streams.stream("train", 0, 0));
    let (test, truth) = regression(2000, &mut streams.stream("test", 0, 0));
    let model = ArEbmConfig {
        features: 2,
        given: 1,
        conditioner: Conditioner::Masked,
        energy_form: EnergyForm::Tilted,
        normalisation: Normalisation::Local,
        scales: ScaleForm::Exponential,
        proposal: NetworkSize { blocks: 2, width: 64, activation: Activation::Relu },
        dropout: 0.0,
        ..config()
    };
    let device = Device::flex().autodiff();
    let model = model.init(&device, &mut streams.stream("init", 0, 0)).unwrap();
    let step = ArStep::new(&ArStepConfig::new(Method::QOnly), 2).unwrap();
    let training = TrainingConfig::new(800, 3e-3)
        .with_batch_size(128)
        .with_schedule(Schedule::Cosine)
        .with_optimiser(OptimiserConfig::Adam);
    let mut trainer = Trainer::new(model, step, training, streams).unwrap();
    let shape = [train.len() / 2, 2];
    let rows: Tensor<2> = Tensor::from_data(TensorData::new(train, shape), &Device::flex());
    trainer.fit(&Rows::new(rows)).unwrap();
    let found = Evaluator::of_proposal(trainer.model(), 2).unwrap().score(&test).log_p_tilde;
    let gap = truth.iter().zip(&found).map(|(t, f)| t - f).sum::<f64>() / truth.len() as f64;
    // A normal of the right mean and spread for each x, the best that has one mode, is 1.2 behind.
    assert!((-0.02..0.08).contains(&gap), "{gap}");
}
