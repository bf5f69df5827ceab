//! Features that start on a straight line of those before them.

use burn::tensor::Device;
use zhat::ar::{
    ArEbm, ArEbmConfig, Conditioner, EnergyForm, Evaluator, FeatureKind, NetworkSize,
    Normalisation, ScaleForm,
};
use zhat::gaussian_mixture::GaussianMixture;
use zhat::rng::Streams;

/// A class, three numbers, and features see waves of them.
fn model() -> ArEbm {
    let config = ArEbmConfig {
        conditioner: Conditioner::Masked,
        energy_form: EnergyForm::Tilted,
        normalisation: Normalisation::Local,
        scales: ScaleForm::Exponential,
        proposal: NetworkSize { width: 24, ..ArEbmConfig::new(4).proposal },
        members: 2,
        waves: 1,
        kinds: vec![
            FeatureKind::Continuous,
            FeatureKind::Categorical { levels: 2 },
            FeatureKind::Continuous,
            FeatureKind::Continuous,
        ],
        ..ArEbmConfig::new(4)
    };
    config.init(&Device::flex(), &mut Streams::new(5).stream("init", 0, 0)).unwrap()
}

const MEANS: [f64; 3] = [0.1, -0.2, 0.3];

/// The last number is known from the two before it but for so much of a standard normal.
fn gaussian(left: f64) -> GaussianMixture {
    let factor = vec![1.0, 0.6, 0.7, 0.8, -0.6, left];
    GaussianMixture::new(3, vec![0.0], MEANS.to_vec(), factor).unwrap()
}

/// Rows of that Gaussian with a class among them, and the log-density of the last number of each.
fn rows(left: f64) -> (Vec<f32>, Vec<f64>) {
    let rng = &mut Streams::new(6).stream("rows", 0, 0);
    let (mut rows, mut log_densities) = (Vec::new(), Vec::new());
    for row in 0..500 {
        let z = [rng.normal(), rng.normal(), rng.normal()];
        let x = [
            MEANS[0] + z[0],
            MEANS[1] + 0.6 * z[0] + 0.7 * z[1],
            MEANS[2] + 0.8 * z[0] - 0.6 * z[1] + left * z[2],
        ];
        rows.extend([x[0], f64::from(row % 2), x[1], x[2]].map(|x| x as f32));
        log_densities.push(-0.5 * (z[2] * z[2] + std::f64::consts::TAU.ln()) - left.ln());
    }
    (rows, log_densities)
}

/// The log-densities of a feature.
fn column(model: &ArEbm, rows: &[f32], feature: usize) -> Vec<f64> {
    let cells = Evaluator::of_proposal(model, 1).unwrap().cells(rows).unwrap();
    cells.log_p.into_iter().skip(feature).step_by(4).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn what_is_nearly_determined_is_known_before_the_first_step() {
    let (rows, truth) = rows(0.02);
    let (before, after) = (model(), model().started_on_lines(&gaussian(0.02)));
    let [at_first, on_line] = [&before, &after].map(|model| mean(&column(model, &rows, 3)));
    // Ten normals side by side are nearly the normal that is left; networks of random weights know nothing of the line.
    let truth = mean(&truth);
    assert!((on_line - truth).abs() < 0.1, "{on_line} {truth}");
    assert!(at_first < truth - 2.0, "{at_first} {truth}");
    // A Gaussian of other slopes is no help: its line misses the rows.
    let factor = vec![1.0, 0.6, 0.7, -0.8, 0.6, 0.02];
    let other = GaussianMixture::new(3, vec![0.0], MEANS.to_vec(), factor).unwrap();
    let missed = mean(&column(&model().started_on_lines(&other), &rows, 3));
    assert!(missed < at_first, "{missed} {at_first}");
}

#[test]
fn features_that_are_not_stay_as_they_are() {
    let (rows, _) = rows(0.02);
    let (before, after) = (model(), model().started_on_lines(&gaussian(0.02)));
    for feature in 0..3 {
        assert_eq!(column(&before, &rows, feature), column(&after, &rows, feature), "{feature}");
    }
    // As much of the variance is left as networks find out soon.
    let wide = model().started_on_lines(&gaussian(0.4));
    assert_eq!(column(&before, &rows, 3), column(&wide, &rows, 3));
}

#[test]
fn so_does_one_without_units_of_its_own() {
    let mut config = model().shape;
    config.proposal.width = 5;
    let model = config.init(&Device::flex(), &mut Streams::new(5).stream("init", 0, 0)).unwrap();
    let rows = rows(0.02).0;
    let after = model.clone().started_on_lines(&gaussian(0.02));
    assert_eq!(column(&model, &rows, 3), column(&after, &rows, 3));
}

#[test]
#[should_panic(expected = "a masked conditioner of rectifiers")]
fn only_a_masked_conditioner_starts_on_lines() {
    let config = ArEbmConfig { features: 3, ..ArEbmConfig::small() };
    let model = config.init(&Device::flex(), &mut Streams::new(5).stream("init", 0, 0)).unwrap();
    let _ = model.started_on_lines(&gaussian(0.02));
}
