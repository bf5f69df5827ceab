//! A Gaussian mixture beside networks that were trained without it.

use burn::tensor::Device;
use zhat::ar::{
    ArEbm, ArEbmConfig, Conditioner, EnergyForm, Evaluator, FeatureKind, NetworkSize, Normalisation,
};
use zhat::gaussian_mixture::GaussianMixture;
use zhat::rng::Streams;

/// Two correlated components of two numbers.
fn mixture() -> GaussianMixture {
    let factors = vec![0.5, 0.3, 0.4, 1.1, -0.2, 0.6];
    GaussianMixture::new(2, vec![0.3f64.ln(), 0.7f64.ln()], vec![-1.0, 0.5, 0.4, -0.2], factors)
        .unwrap()
}

/// A class, a number with atoms and a number, of two members.
fn model() -> ArEbm {
    let config = ArEbmConfig {
        conditioner: Conditioner::Masked,
        energy_form: EnergyForm::Tilted,
        normalisation: Normalisation::Local,
        proposal: NetworkSize { width: 16, ..ArEbmConfig::new(3).proposal },
        members: 2,
        kinds: vec![
            FeatureKind::Categorical { levels: 3 },
            FeatureKind::Atoms { values: vec![0.25] },
            FeatureKind::Continuous,
        ],
        ..ArEbmConfig::new(3)
    };
    config.init(&Device::flex(), &mut Streams::new(5).stream("init", 0, 0)).unwrap()
}

fn cells(model: &ArEbm, rows: &[f32]) -> Vec<f64> {
    Evaluator::of_proposal(model, 1).unwrap().cells(rows).unwrap().log_p
}

#[test]
fn every_number_has_the_mean_of_both_and_classes_and_atoms_stay_as_they_are() {
    let (share, rows) = (0.3, [2.0, -0.4, 0.9, 0.0, 0.25, -1.2, 1.0, 1.7, 0.1]);
    let alone = model();
    let beside = alone.clone().beside_gaussian_mixture(mixture(), share);
    let (before, after) = (cells(&alone, &rows), cells(&beside, &rows));
    let mut conditionals = mixture().conditionals();
    let mut has_moved = 0;
    for (row, x) in rows.chunks_exact(3).enumerate() {
        conditionals.begin();
        for feature in 0..3 {
            let [before, after] = [&before, &after].map(|cells| cells[3 * row + feature]);
            let expected = match feature {
                0 => before,
                // The atom's own probability is the classes'; elsewhere the mixture has the share of what is left.
                1 if x[1] == 0.25 => before,
                _ => {
                    let number = feature - 1;
                    let parts = conditionals.log_weights(number).iter();
                    let parts =
                        parts.zip(conditionals.means(number)).zip(conditionals.scales(number));
                    let density: f64 = parts
                        .map(|((log_w, mean), scale)| {
                            let z = f64::from((x[feature] - mean) / scale);
                            (f64::from(*log_w) - 0.5 * z * z).exp()
                                / (f64::from(*scale) * std::f64::consts::TAU.sqrt())
                        })
                        .sum();
                    let elsewhere = if feature == 1 { elsewhere(&alone, x) } else { 1.0 };
                    ((1.0 - share) * before.exp() + share * elsewhere * density).ln()
                }
            };
            assert!(
                (after - expected).abs() < 1e-4,
                "row {row}, feature {feature}: {after} {expected}"
            );
            has_moved += usize::from((after - before).abs() > 1e-2);
            if feature == 1 {
                conditionals.see(0, x[1]);
            }
        }
    }
    assert!(has_moved >= 3, "a mixture that changes nothing is not there");
}

/// Probability that the second feature of a row is not its atom.
fn elsewhere(model: &ArEbm, x: &[f32]) -> f64 {
    1.0 - cells(model, &[x[0], 0.25, x[2]])[1].exp()
}

#[test]
fn draws_follow_it() {
    let beside = model().beside_gaussian_mixture(mixture(), 0.95);
    let evaluator = Evaluator::of_proposal(&beside, 1).unwrap();
    let rows = evaluator.sample_proposal(4_000, &Streams::new(9));
    let below = evaluator.cells(&rows).unwrap().below;
    // The distribution function at draws is uniform: mean 1/2, 4 standard errors of 4,000, one false alarm in 16,000.
    let mean = below.iter().skip(2).step_by(3).sum::<f64>() / 4_000.0;
    assert!((mean - 0.5).abs() < 4.0 * (1.0f64 / 12.0 / 4_000.0).sqrt(), "{mean}");
}

#[test]
#[should_panic(expected = "a masked conditioner")]
fn it_is_put_there_once() {
    let _ = model().beside_gaussian_mixture(mixture(), 0.5).beside_gaussian_mixture(mixture(), 0.5);
}
