//! Models of which every factor is normalised: their integrals, draws and conditionals against sums over fine grids.

use zhat::ar::*;
use zhat::burn::tensor::{Device, Tensor, TensorData};
use zhat::model::SequentialModel;
use zhat::smc::SmcConfig;

use crate::grid::{kolmogorov_smirnov, quadrature, slice};
use crate::small_model::{config, random};

pub const HEADS: [HeadForm; 3] = [HeadForm::Mixture, HeadForm::Spline, HeadForm::Both];

/// Tilted and normalised factor by factor.
pub fn local(head: HeadForm) -> ArEbmConfig {
    ArEbmConfig {
        conditioner: Conditioner::Masked,
        energy_form: EnergyForm::Tilted,
        normalisation: Normalisation::Local,
        gaussian_mixture: head == HeadForm::Both,
        members: if head == HeadForm::Mixture { 3 } else { 1 },
        head,
        // Wide enough for sums over a grid.
        minimum_scale: 0.15,
        ..config()
    }
}

/// `log p~(x_d | x_<d)` of rows, in plain operations and without a normaliser.
pub fn factor(model: &ArEbm, stage: usize, rows: Vec<f32>) -> Vec<f64> {
    let shape = [rows.len() / 2, 2];
    let rows = Tensor::<2>::from_data(TensorData::new(rows, shape), &Device::flex());
    let log_p = model.log_factor(stage, rows).into_data();
    log_p.iter::<f32>().map(f64::from).collect()
}

/// `log Z_d(x_<d)` by a grid that is finer than anything in the model.
fn log_normaliser(model: &ArEbm, stage: usize, first: f32) -> f64 {
    let step = 0.002;
    let at = |i: i32| step * (i as f32 + 0.5);
    let row = |i: i32| if stage == 0 { [at(i), 0.0] } else { [first, at(i)] };
    let log_p = factor(model, stage, (-7000..7000).flat_map(row).collect());
    (log_p.iter().map(|log_p| log_p.exp()).sum::<f64>() * f64::from(step)).ln()
}

#[test]
fn scores_are_right_to_a_thousandth_and_their_error_is_known() {
    for head in HEADS {
        let (model, streams) = random(&local(head));
        let evaluator = Evaluator::new(&model, 2).unwrap();
        let x = evaluator.sample_proposal(30, &streams);
        let mut global = model.clone();
        global.shape.normalisation = Normalisation::Global;
        let of_first = log_normaliser(&global, 0, 0.0);
        let factors = [0, 1].map(|stage| factor(&global, stage, x.clone()));
        let scores = evaluator.score(&x).log_p_tilde;
        let coarse = Evaluator::new(&model, 2).unwrap().coarse().score(&x).log_p_tilde;
        let (mut error, mut gained) = (0.0, 0.0);
        for (row, x) in x.chunks_exact(2).enumerate() {
            let log_z = of_first + log_normaliser(&global, 1, x[0]);
            let exact = factors[0][row] + factors[1][row] - log_z;
            // Here and there a kink of the energy is in the wrong place.
            assert!((scores[row] - exact).abs() < 3e-3, "{head:?}: {} {exact}", scores[row]);
            error += (scores[row] - exact).abs() / 30.0;
            gained += (scores[row] - coarse[row]).abs() / 30.0;
        }
        let claimed = evaluator.quadrature_error(&x);
        assert!((claimed - gained).abs() < 1e-9, "{head:?}: {claimed} {gained}");
        assert!(error < 1e-3, "{head:?}: {error}");
        // What both rules leave out, and the rounding of 32-bit floats.
        assert!(error < claimed + 2e-4, "{head:?}: {error} {claimed}");
    }
}

#[test]
fn nothing_that_is_not_integrated_has_an_error() {
    let (model, streams) = random(&local(HeadForm::Both));
    let proposal = Evaluator::of_proposal(&model, 1).unwrap();
    let x = proposal.sample_proposal(10, &streams);
    assert_eq!(proposal.quadrature_error(&x), 0.0);
    let global = ArEbmConfig { normalisation: Normalisation::Global, ..local(HeadForm::Both) };
    assert_eq!(Evaluator::new(&random(&global).0, 1).unwrap().quadrature_error(&x), 0.0);
}

#[test]
fn the_density_integrates_to_one_and_exact_draws_follow_its_marginals() {
    // The third has spikes that fall between the points of the grid.
    for head in [HeadForm::Mixture, HeadForm::Spline] {
        let (model, streams) = random(&local(head));
        let evaluator = Evaluator::new(&model, 2).unwrap();
        let exact = quadrature(&evaluator);
        assert!(exact.log_z.abs() < 2e-3, "{head:?}: {}", exact.log_z);
        let run = evaluator.smc(&SmcConfig::new(20_000).unwrap(), &streams, 0).unwrap();
        assert!(run.weights.iter().all(|weight| (weight * 20_000.0 - 1.0).abs() < 1e-6));
        assert!(run.log_z_hat.abs() < 1e-9, "{}", run.log_z_hat);
        let rows: Vec<f32> =
            (0..20_000).flat_map(|row| [run.columns[0][row], run.columns[1][row]]).collect();
        for feature in 0..2 {
            let distance = kolmogorov_smirnov(&rows, feature, &exact.marginals[feature]);
            // 1.95 / sqrt(n): level 0.001 for each of four.
            assert!(distance < 1.95 / 20_000f64.sqrt(), "{head:?} {feature}: {distance}");
        }
        // The test can tell: the base is another density.
        let base = evaluator.sample_proposal(20_000, &streams);
        let of_base = |feature| kolmogorov_smirnov(&base, feature, &exact.marginals[feature]);
        assert!(of_base(0).max(of_base(1)) > 0.03, "{head:?}: {} {}", of_base(0), of_base(1));
    }
}

#[test]
fn given_a_feature_the_other_follows_its_conditional() {
    for head in HEADS {
        let (model, streams) = random(&local(head));
        let evaluator = Evaluator::new(&model, 2).unwrap();
        for (given, value) in [(0, 0.8), (1, -0.5)] {
            let (cumulative, log_integral) = slice(&evaluator, given, value);
            let mut features = [None, None];
            features[given] = Some(value);
            let smc = SmcConfig::new(100_000).unwrap();
            let run = evaluator.smc_given(&smc, &features, &streams, 0).unwrap();
            assert!(run.columns[given].iter().all(|&x| x == value));
            let found = run.log_z_hat;
            assert!(
                (found - log_integral).abs() < 0.02,
                "{head:?} {given}: {found} {log_integral}"
            );
            let rows = run.sample(20_000, &mut streams.stream("draws", 0, 0));
            let distance = kolmogorov_smirnov(&rows, 1 - given, &cumulative);
            // Level 0.001, and SMC's own error.
            assert!(distance < 1.95 / 20_000f64.sqrt() + 0.006, "{head:?} {given}: {distance}");
        }
    }
}
