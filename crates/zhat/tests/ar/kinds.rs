//! Features of every kind: masses and probabilities against sums and integrals, draws and conditionals against both.

use zhat::ar::*;
use zhat::burn::tensor::{Device, Tensor, TensorData};
use zhat::criterion::Method;
use zhat::model::SequentialModel;
use zhat::rng::{Stream, Streams};
use zhat::smc::SmcConfig;
use zhat::train::{OptimiserConfig, Rows, Schedule, Trainer, TrainingConfig};

use crate::small_model::{config, random};

/// Grid of midpoints for a number on the line.
const STEP: f32 = 0.02;
const POINTS: i32 = 800;

pub fn cells() -> FeatureKind {
    FeatureKind::Cells { edges: vec![-1.6, -0.7, -0.2, -0.1, 0.9, 1.8] }
}

pub fn classes(levels: usize) -> FeatureKind {
    FeatureKind::Categorical { levels }
}

/// A small random model of features of these kinds.
pub fn mixed(kinds: &[FeatureKind], head: HeadForm) -> (ArEbm, Streams) {
    random(&ArEbmConfig {
        features: kinds.len(),
        kinds: kinds.to_vec(),
        conditioner: Conditioner::Masked,
        energy_form: EnergyForm::Tilted,
        normalisation: Normalisation::Local,
        gaussian_mixture: head == HeadForm::Both,
        head,
        // Wide enough for sums over a grid.
        minimum_scale: 0.15,
        ..config()
    })
}

/// All values of a feature, and what each counts in a sum: cells and classes, or a grid.
pub fn values(kind: &FeatureKind) -> Vec<(f32, f64)> {
    match kind.num_values() {
        Some(number) => (0..number).map(|index| (kind.value_of(index), 1.0)).collect(),
        None => {
            (-POINTS / 2..POINTS / 2).map(|i| (STEP * (i as f32 + 0.5), f64::from(STEP))).collect()
        }
    }
}

/// All rows of which some features are known, and what each counts.
pub fn rows(kinds: &[FeatureKind], known: &[Option<f32>]) -> (Vec<f32>, Vec<f64>) {
    let mut rows: Vec<(Vec<f32>, f64)> = vec![(Vec::new(), 1.0)];
    for (kind, known) in kinds.iter().zip(known) {
        let values = known.map_or_else(|| values(kind), |value| vec![(value, 1.0)]);
        let longer = |(row, counts): &(Vec<f32>, f64)| -> Vec<(Vec<f32>, f64)> {
            let longer = values.iter().map(|&(value, more)| {
                (row.iter().copied().chain([value]).collect::<Vec<f32>>(), counts * more)
            });
            longer.collect()
        };
        rows = rows.iter().flat_map(longer).collect();
    }
    (rows.iter().flat_map(|(row, _)| row.clone()).collect(), rows.iter().map(|row| row.1).collect())
}

/// The log of the sum over all rows of which some features are known.
pub fn log_sum(evaluator: &Evaluator, kinds: &[FeatureKind], known: &[Option<f32>]) -> f64 {
    let (rows, counts) = rows(kinds, known);
    let scores = evaluator.score(&rows).log_p_tilde;
    scores.iter().zip(counts).map(|(log_p, counts)| counts * log_p.exp()).sum::<f64>().ln()
}

/// Kinds in several orders, each with at most one number on the line.
pub fn orders() -> Vec<Vec<FeatureKind>> {
    let line = FeatureKind::Continuous;
    vec![
        vec![classes(3), cells(), line.clone()],
        vec![line.clone(), cells(), classes(4)],
        vec![cells(), classes(2), line, cells()],
        vec![cells()],
        vec![classes(5), classes(2)],
    ]
}

#[test]
fn the_masses_of_all_rows_sum_to_one() {
    for head in [HeadForm::Mixture, HeadForm::Spline, HeadForm::Both] {
        for kinds in orders() {
            let (model, _) = mixed(&kinds, head);
            if head == HeadForm::Both && kinds.contains(&FeatureKind::Continuous) {
                // Spikes of it fall between the points of the grid.
                continue;
            }
            let evaluators = [Evaluator::new(&model, 2), Evaluator::of_proposal(&model, 2)];
            // A thousandth or two for each number, where the energy has a kink.
            for (evaluator, error) in evaluators.into_iter().zip([6e-3, 1e-3]) {
                let log_z = log_sum(&evaluator.unwrap(), &kinds, &vec![None; kinds.len()]);
                assert!(log_z.abs() < error, "{head:?} {kinds:?}: {log_z}");
            }
        }
    }
}

#[test]
fn what_is_not_on_the_line_sums_to_one_to_many_digits() {
    for kinds in [vec![classes(5), classes(2)], vec![classes(2), classes(30), classes(3)]] {
        let (model, _) = mixed(&kinds, HeadForm::Mixture);
        let evaluator = Evaluator::new(&model, 1).unwrap();
        let log_z = log_sum(&evaluator, &kinds, &vec![None; kinds.len()]);
        assert!(log_z.abs() < 1e-5, "{log_z}");
        let (rows, _) = rows(&kinds, &vec![None; kinds.len()]);
        assert_eq!(evaluator.quadrature_error(&rows), 0.0);
    }
}

/// The last feature's kind is its own affair: the same parameters with a number on the line have the density whose integral it is.
#[test]
fn the_mass_of_a_cell_is_the_integral_of_the_density() {
    let number = 8000;
    for head in [HeadForm::Mixture, HeadForm::Spline, HeadForm::Both] {
        let kinds = [classes(3), FeatureKind::Continuous, cells()];
        let (model, streams) = mixed(&kinds, head);
        let mut on_the_line = model.clone();
        on_the_line.shape.kinds[2] = FeatureKind::Continuous;
        let [masses, densities] = [&model, &on_the_line].map(|m| Evaluator::new(m, 2).unwrap());
        let draws = masses.sample_proposal(3, &streams);
        for row in draws.chunks_exact(3) {
            for cell in 0..5 {
                let [low, high] = kinds[2].reach(cell).map(|end| f64::from(end.clamp(-14.0, 14.0)));
                let step = (high - low) / f64::from(number);
                let grid: Vec<f32> = (0..number)
                    .flat_map(|i| [row[0], row[1], (low + step * (f64::from(i) + 0.5)) as f32])
                    .collect();
                let of_grid = densities.score(&grid);
                let sum = |log_p: &[f64]| log_p.iter().map(|l| step * l.exp()).sum::<f64>();
                let expected = sum(&of_grid.log_p_tilde);
                let of_cell = masses.score(&[row[0], row[1], kinds[2].value_of(cell)]);
                let found = of_cell.log_p_tilde[0];
                assert!(
                    (found - expected.ln()).abs() < 5e-3,
                    "{head:?} {cell}: {found} {expected}"
                );
                let base = sum(&of_grid.log_q);
                assert!((of_cell.log_q[0] - base.ln()).abs() < 2e-3, "{head:?} {cell}: {base}");
            }
        }
    }
}

#[test]
fn where_a_value_is_in_its_cell_does_not_matter() {
    let kinds = [cells(), FeatureKind::Continuous, classes(2)];
    let (model, _) = mixed(&kinds, HeadForm::Both);
    for evaluator in [Evaluator::new(&model, 1), Evaluator::of_proposal(&model, 1)] {
        let evaluator = evaluator.unwrap();
        let score = |x: f32| evaluator.score(&[x, 0.4, 1.0]);
        assert_eq!(score(0.0), score(0.85));
        assert_eq!(score(-1.6), score(-70.0));
        assert_ne!(score(0.85), score(0.95));
    }
}

#[test]
fn classes_and_numbers_on_the_line_are_those_of_plain_operations() {
    let kinds = [classes(3), FeatureKind::Continuous, classes(7), FeatureKind::Continuous];
    let (model, streams) = mixed(&kinds, HeadForm::Both);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let x = evaluator.sample_proposal(40, &streams);
    let rows = Tensor::<2>::from_data(TensorData::new(x.clone(), [40, 4]), &Device::flex());
    let mut plain = vec![0.0; 40];
    for stage in 0..4 {
        let factors = model.log_factor(stage, rows.clone()).into_data();
        plain.iter_mut().zip(factors.iter::<f32>()).for_each(|(sum, f)| *sum += f64::from(f));
    }
    for (plain, score) in plain.iter().zip(evaluator.score(&x).log_p_tilde) {
        assert!((plain - score).abs() < 1e-3 * (1.0 + score.abs()), "{plain} {score}");
    }
}

/// Largest distance of shares of rows from probabilities, in standard errors, where at least twenty rows are expected.
fn distance(counts: &[usize], log_p: &[f64]) -> f64 {
    let number = counts.iter().sum::<usize>() as f64;
    let pairs =
        counts.iter().zip(log_p).map(|(&count, log_p)| (count as f64 / number, log_p.exp()));
    let pairs = pairs.filter(|(_, p)| p * number > 20.0);
    pairs.map(|(share, p)| (share - p).abs() / (p * (1.0 - p) / number).sqrt()).fold(0.0, f64::max)
}

#[test]
fn draws_have_the_probabilities_of_their_scores() {
    let number = 40_000;
    for head in [HeadForm::Mixture, HeadForm::Both] {
        let kinds = [cells(), classes(3), cells()];
        let (mut model, streams) = mixed(&kinds, head);
        model.energy.last.weight = model.energy.last.weight.map(|weight| weight * 3.0);
        let evaluator = Evaluator::new(&model, 2).unwrap();
        let (rows, _) = rows(&kinds, &[None; 3]);
        let scores = evaluator.score(&rows);
        let count = |draws: &[f32]| {
            let mut counts = vec![0; scores.log_q.len()];
            for row in draws.chunks_exact(3) {
                assert_eq!(row[0], kinds[0].settle(row[0]), "a draw is the centre of its cell");
                let index = |at: usize| kinds[at].index_of(row[at]).unwrap();
                counts[(index(0) * 3 + index(1)) * 5 + index(2)] += 1;
            }
            counts
        };
        let smc = SmcConfig::new(number).unwrap();
        let run = evaluator.smc(&smc, &streams, 0).unwrap();
        assert!(run.log_z_hat.abs() < 1e-9);
        let draws: Vec<f32> =
            (0..number).flat_map(|row| [0, 1, 2].map(|d| run.columns[d][row])).collect();
        // 75 masses, 4.9 standard errors: level 1e-4, and a little for the error of the masses.
        let (of_model, of_base) =
            (count(&draws), count(&evaluator.sample_proposal(number, &streams)));
        let [model, base] =
            [distance(&of_model, &scores.log_p_tilde), distance(&of_base, &scores.log_q)];
        assert!(model < 5.2 && base < 5.2, "{head:?}: {model} {base}");
        // The test can tell.
        let apart = distance(&of_base, &scores.log_p_tilde);
        assert!(apart > 10.0, "{head:?}: {apart}");
    }
}

#[test]
fn what_is_given_weighs_by_its_mass_and_the_rest_follows_its_conditional() {
    let kinds = [classes(3), FeatureKind::Continuous, cells(), classes(2)];
    let (model, streams) = mixed(&kinds, HeadForm::Mixture);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let (cell, number) = (kinds[2].value_of(3), 20_000);
    for given in [
        [None, None, Some(cell), None],
        [None, None, None, Some(1.0)],
        [None, Some(0.3), Some(cell), Some(0.0)],
        [Some(2.0), None, None, Some(1.0)],
    ] {
        let expected = log_sum(&evaluator, &kinds, &given);
        let smc = SmcConfig::new(number).unwrap();
        let run = evaluator.smc_given(&smc, &given, &streams, 0).unwrap();
        assert!((run.log_z_hat - expected).abs() < 0.03, "{given:?}: {} {expected}", run.log_z_hat);
        // The probabilities of the classes of the first feature that is not given.
        let first = given.iter().position(Option::is_none).unwrap();
        let values: Vec<f32> = match kinds[first].num_values() {
            Some(number) => (0..number).map(|index| kinds[first].value_of(index)).collect(),
            None => continue,
        };
        for value in values {
            let mut with = given;
            with[first] = Some(value);
            let p = (log_sum(&evaluator, &kinds, &with) - expected).exp();
            let particles = run.columns[first].iter().zip(&run.weights);
            let share: f64 = particles.filter(|(x, _)| **x == value).map(|(_, w)| w).sum();
            assert!((share - p).abs() < 0.02, "{given:?} {value}: {share} {p}");
        }
    }
}

/// Masses of one cell by a coarse and by a fine rule differ by what is said to be their error.
#[test]
fn the_error_of_a_mass_is_known() {
    let kinds = [cells(), cells()];
    let (model, streams) = mixed(&kinds, HeadForm::Both);
    let evaluator = Evaluator::new(&model, 1).unwrap();
    let x = evaluator.sample_proposal(50, &streams);
    let fine = evaluator.score(&x).log_p_tilde;
    let coarse = Evaluator::new(&model, 1).unwrap().coarse().score(&x).log_p_tilde;
    let gained = fine.iter().zip(&coarse).map(|(a, b)| (a - b).abs()).sum::<f64>() / 50.0;
    let claimed = evaluator.quadrature_error(&x);
    assert!((claimed - gained).abs() < 1e-9 && claimed < 0.02, "{claimed} {gained}");
}

const SHARES: [f64; 3] = [0.5, 0.35, 0.15];
const MEANS: [f64; 3] = [-1.0, 0.3, 1.2];
const SPREADS: [f64; 3] = [0.4, 0.7, 0.3];

/// Cells of half a unit from -2.5 to 2.5.
fn halves() -> FeatureKind {
    FeatureKind::Cells { edges: (-5..=5).map(|edge| 0.5 * edge as f32).collect() }
}

/// A class, a number that depends on it, a count that depends on both, and a yes or no that depends on the last two; and the logs of
/// their true probabilities.
fn truth(number: usize, rng: &mut Stream) -> (Vec<f32>, Vec<f64>) {
    let log_normal = |z: f64| -0.5 * (z * z + std::f64::consts::TAU.ln());
    let (mut rows, mut log_p) = (Vec::new(), Vec::new());
    for _ in 0..number {
        let class = rng.categorical(&SHARES);
        let z = rng.normal();
        let x = MEANS[class] + SPREADS[class] * z;
        let (mean, spread) = (0.8 * x + 0.3 * class as f64, 0.6);
        let cell = halves().index_of((mean + spread * rng.normal()) as f32).unwrap();
        let ends =
            halves().reach(cell).map(|end| (f64::from(end.clamp(-9.0, 9.0)) - mean) / spread);
        // The mass of the cell by the rule of midpoints.
        let step = (ends[1] - ends[0]) / 1000.0;
        let middle = |i: i32| ends[0] + step * (f64::from(i) + 0.5);
        let mass: f64 = (0..1000).map(|i| step * log_normal(middle(i)).exp()).sum();
        let centre = halves().value_of(cell);
        let yes = 1.0 / (1.0 + (x - 1.5 * f64::from(centre)).exp());
        let answer = rng.uniform() < yes;
        rows.extend([class as f32, x as f32, centre, f32::from(u8::from(answer))]);
        let of_answer = if answer { yes } else { 1.0 - yes };
        log_p.push(
            SHARES[class].ln() + log_normal(z) - SPREADS[class].ln() + mass.ln() + of_answer.ln(),
        );
    }
    (rows, log_p)
}

#[test]
fn training_learns_a_mixed_table() {
    let streams = Streams::new(8);
    let (mut x, _) = truth(20_000, &mut streams.stream("train", 0, 0));
    // Values are spread over their cells.
    let mut noise = streams.stream("noise", 0, 0);
    for x in x.iter_mut().skip(2).step_by(4) {
        *x += 0.5 * (noise.uniform() as f32 - 0.5);
    }
    let config = ArEbmConfig {
        features: 4,
        kinds: vec![classes(3), FeatureKind::Continuous, halves(), classes(2)],
        conditioner: Conditioner::Masked,
        energy_form: EnergyForm::Tilted,
        normalisation: Normalisation::Local,
        scales: ScaleForm::Exponential,
        ..ArEbmConfig::small()
    };
    let device = Device::flex().autodiff();
    let model = config.init(&device, &mut streams.stream("init", 0, 0)).unwrap();
    let model = model.with_class_shares(0, &SHARES);
    let settings = ArStepConfig { num_negatives: 10, ..ArStepConfig::new(Method::Rnce) };
    let training = TrainingConfig::new(500, 3e-3)
        .with_optimiser(OptimiserConfig::Adam)
        .with_schedule(Schedule::Cosine)
        .with_batch_size(128);
    let rows = Rows::new(Tensor::from_data(TensorData::new(x, [20_000, 4]), &Device::flex()));
    let step = ArStep::new(&settings, 2).unwrap();
    let mut trainer = Trainer::new(model, step, training, streams).unwrap();
    trainer.fit(&rows).unwrap();
    let (test, log_p) = truth(4000, &mut streams.stream("test", 0, 0));
    let scores = Evaluator::new(trainer.model(), 2).unwrap().score(&test);
    let apart = log_p.iter().zip(&scores.log_p_tilde).map(|(truth, model)| truth - model);
    let gap = apart.sum::<f64>() / 4000.0;
    // Rows differ by about 0.1 nats between the two, so the mean is known to 0.002.
    assert!(gap > -0.01 && gap < 0.03, "{gap}");
}
