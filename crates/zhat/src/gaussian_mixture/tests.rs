//! The mixture, its fit and its conditionals against formulas, integrals and known truths.

use super::*;
use crate::rng::Streams;
use crate::testing::{z_limit, z_score};
use crate::watch::Watch;

/// Three clusters in the plane, well apart.
pub fn three_clusters() -> GaussianMixture {
    let log_weights = [0.5f64, 0.3, 0.2].map(f64::ln).to_vec();
    let means = vec![0.0, 0.0, 5.0, 0.0, 0.0, 6.0];
    let factors = vec![1.0, 0.6, 0.8, 0.5, -0.3, 0.7, 1.2, 0.0, 0.4];
    GaussianMixture::new(2, log_weights, means, factors).unwrap()
}

/// Rows of a mixture, one after the other.
pub fn draws(mixture: &GaussianMixture, number: usize, seed: u64) -> Vec<f32> {
    let mut rng = Streams::new(seed).stream("draws", 0, 0);
    (0..number).flat_map(|_| mixture.sample(&mut rng)).collect()
}

/// Five features and four components that overlap, with all covariances full.
fn five_features() -> GaussianMixture {
    let mut rng = Streams::new(11).stream("test", 0, 0);
    let factors = (0..4)
        .flat_map(|_| (0..5).flat_map(|row| (0..=row).map(move |column| row == column)))
        .map(|diagonal| {
            let value = rng.normal();
            if diagonal { 0.3 + value.abs() } else { 0.5 * value }
        })
        .collect();
    let log_weights = rng.normals(4);
    GaussianMixture::new(5, log_weights, rng.normals(20), factors).unwrap()
}

/// `log q(x_d | x_<d)` from the numbers that the conditionals give.
fn log_conditional(conditionals: &Conditionals, feature: usize, x: f64) -> f64 {
    let terms: Vec<f64> = (0..conditionals.num_components())
        .map(|at| {
            let scale = f64::from(conditionals.scales(feature)[at]);
            let z = (x - f64::from(conditionals.means(feature)[at])) / scale;
            f64::from(conditionals.log_weights(feature)[at])
                - 0.5 * z * z
                - scale.ln()
                - LOG_ROOT_TAU
        })
        .collect();
    log_sum_exp(&terms)
}

#[test]
fn the_log_density_is_that_of_the_formula() {
    let mixture = three_clusters();
    for row in [[0.3f32, -1.0], [4.0, 0.5], [2.0, 3.0], [-30.0, 40.0]] {
        let terms: Vec<f64> = (0..3)
            .map(|k| {
                let (mean, l) = (mixture.mean(k), mixture.factor(k));
                let (a, b, c) = (l[0] * l[0], l[0] * l[1], l[1] * l[1] + l[2] * l[2]);
                let (x, y) = (f64::from(row[0]) - mean[0], f64::from(row[1]) - mean[1]);
                let determinant = a * c - b * b;
                let square = (c * x * x - 2.0 * b * x * y + a * y * y) / determinant;
                let constant = (2.0 * std::f64::consts::PI * determinant.sqrt()).ln();
                mixture.log_weights()[k] - constant - 0.5 * square
            })
            .collect();
        let expected = log_sum_exp(&terms);
        let found = mixture.log_density(&row);
        assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found} {expected}");
    }
}

#[test]
fn rows_are_scored_alike_one_by_one_and_together() {
    let mixture = five_features();
    let rows = draws(&mixture, 2_003, 1);
    let together = mixture.log_densities(&rows);
    let one_by_one: Vec<f64> = rows.chunks_exact(5).map(|row| mixture.log_density(row)).collect();
    assert_eq!(together, one_by_one);
}

#[test]
fn the_product_of_the_conditionals_is_the_joint_density() {
    let mixture = five_features();
    let mut conditionals = mixture.conditionals();
    for (index, row) in draws(&mixture, 500, 2).chunks_exact(5).enumerate() {
        // Every other row lies three times as far out.
        let row: Vec<f32> =
            row.iter().map(|x| x * if index % 2 == 0 { 1.0 } else { 3.0 }).collect();
        conditionals.of_row(&row);
        let sum: f64 = (0..5).map(|d| log_conditional(&conditionals, d, row[d].into())).sum();
        let joint = mixture.log_density(&row);
        assert!((sum - joint).abs() < 1e-5 * joint.abs().max(1.0), "{sum} {joint}");
    }
}

#[test]
fn a_conditional_is_the_joint_density_over_its_integral() {
    let mixture = three_clusters();
    let mut conditionals = mixture.conditionals();
    for x in [-1.0f32, 0.4, 3.0, 5.5] {
        let step = 1.0 / 128.0;
        // The trapezoidal rule is exact to all digits for functions as smooth as this, over nearly all of their mass.
        let integral: f64 = (-20 * 128..20 * 128)
            .map(|at| mixture.log_density(&[x, at as f32 * step]).exp() * f64::from(step))
            .sum();
        for y in [-0.5f32, 1.0, 6.0] {
            conditionals.of_row(&[x, y]);
            let expected = mixture.log_density(&[x, y]) - integral.ln();
            let found = log_conditional(&conditionals, 1, y.into());
            assert!(
                (found - expected).abs() < 1e-5 * expected.abs().max(1.0),
                "{found} {expected}"
            );
            let first = log_conditional(&conditionals, 0, x.into());
            assert!((first - integral.ln()).abs() < 1e-5 * first.abs().max(1.0));
        }
    }
}

#[test]
fn a_row_seen_feature_by_feature_has_the_conditionals_of_the_whole_row() {
    let mixture = five_features();
    let (mut whole, mut piecewise) = (mixture.conditionals(), mixture.conditionals());
    for row in draws(&mixture, 20, 3).chunks_exact(5) {
        whole.of_row(row);
        piecewise.begin();
        for (feature, &value) in row.iter().enumerate() {
            assert_eq!(piecewise.log_weights(feature), whole.log_weights(feature));
            assert_eq!(piecewise.means(feature), whole.means(feature));
            piecewise.see(feature, value);
        }
    }
}

#[test]
fn conditionals_of_far_out_rows_are_finite() {
    let mut conditionals = five_features().conditionals();
    for size in [1e4f32, 1e20, f32::MAX] {
        for signs in [[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0, 1.0]] {
            conditionals.of_row(&signs.map(|sign: f32| sign * size));
            for feature in 0..5 {
                let weights = conditionals.log_weights(feature);
                assert!(weights.iter().chain(conditionals.means(feature)).all(|x| x.is_finite()));
                let total: f64 = weights.iter().map(|&value| f64::from(value).exp()).sum();
                assert!((total - 1.0).abs() < 1e-5, "{total}");
            }
        }
    }
    assert!(five_features().log_density(&[f32::MAX; 5]).is_finite());
}

#[test]
fn draws_have_the_moments_of_the_mixture() {
    let mixture = three_clusters();
    let number = 50_000;
    let rows = draws(&mixture, number, 4);
    let limit = z_limit(1e-5, 5);
    let moment = |f: &dyn Fn(f64, f64) -> f64, component: &dyn Fn(&[f64], &[f64]) -> f64| {
        let values: Vec<f64> =
            rows.chunks_exact(2).map(|row| f(row[0].into(), row[1].into())).collect();
        let expected = (0..3)
            .map(|k| mixture.log_weights()[k].exp() * component(mixture.mean(k), mixture.factor(k)))
            .sum();
        assert!(z_score(&values, expected) < limit);
    };
    moment(&|x, _| x, &|mean, _| mean[0]);
    moment(&|_, y| y, &|mean, _| mean[1]);
    moment(&|x, _| x * x, &|mean, l| mean[0] * mean[0] + l[0] * l[0]);
    moment(&|x, y| x * y, &|mean, l| mean[0] * mean[1] + l[0] * l[1]);
    moment(&|_, y| y * y, &|mean, l| mean[1] * mean[1] + l[1] * l[1] + l[2] * l[2]);
}

#[test]
fn one_component_has_the_moments_of_the_rows() {
    let rows = draws(&five_features(), 700, 5);
    let mut rng = Streams::new(1).stream("test", 0, 0);
    for covariance in [Covariance::Full, Covariance::Diagonal] {
        let config = EmConfig { covariance, floor: 0.25, ..EmConfig::new(1) };
        let mixture = GaussianMixture::fit(&rows, 5, &config, &mut rng).unwrap();
        let values: Vec<f64> = rows.iter().map(|&value| f64::from(value)).collect();
        let (mean, _) = crate::linalg::column_moments(&values, 5);
        let sample = crate::linalg::covariance(&values, &mean);
        let factor = mixture.factor(0);
        for row in 0..5 {
            assert!((mixture.mean(0)[row] - mean[row]).abs() < 1e-9);
            for column in 0..=row {
                let found: f64 = (0..=column)
                    .map(|at| factor[triangle(row) + at] * factor[triangle(column) + at])
                    .sum();
                let expected = if row == column {
                    sample[row * 5 + row] * 699.0 / 700.0 + 0.25
                } else if covariance == Covariance::Full {
                    sample[row * 5 + column] * 699.0 / 700.0
                } else {
                    0.0
                };
                assert!((found - expected).abs() < 1e-9, "{found} {expected}");
            }
        }
    }
}

#[test]
fn covariances_shrink_towards_their_average() {
    // So far apart that every row belongs to one component alone.
    let mut rng = Streams::new(10).stream("test", 0, 0);
    let cluster = |rows: usize, at: f32, scale: f32, rng: &mut Stream| -> Vec<f32> {
        rng.normals(rows).into_iter().map(|value| at + scale * value as f32).collect()
    };
    let clusters = [cluster(40, 0.0, 1.0, &mut rng), cluster(60, 500.0, 3.0, &mut rng)];
    let config = EmConfig { shrinkage: 30.0, starts: 3, ..EmConfig::new(2) };
    let mixture = GaussianMixture::fit(&clusters.concat(), 1, &config, &mut rng).unwrap();
    let scatters = clusters.each_ref().map(|rows| {
        let mean = rows.iter().map(|&x| f64::from(x)).sum::<f64>() / rows.len() as f64;
        rows.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>()
    });
    let average = (scatters[0] + scatters[1]) / 100.0;
    for (at, rows) in clusters.iter().enumerate() {
        let k = (0..2).find(|&k| (mixture.mean(k)[0] < 250.0) == (at == 0)).unwrap();
        let expected = (scatters[at] + 30.0 * average) / (rows.len() as f64 + 30.0) + 1e-4;
        assert!((mixture.factor(k)[0].powi(2) - expected).abs() < 1e-9 * expected);
    }
}

#[test]
fn every_iteration_of_em_increases_the_likelihood() {
    let rows = draws(&five_features(), 3_000, 6);
    for covariance in [Covariance::Full, Covariance::Diagonal] {
        // With a floor, EM maximises something else; with none to speak of, the likelihood.
        let config = EmConfig {
            covariance,
            floor: 1e-12,
            tolerance: 1e-9,
            max_iterations: 60,
            ..EmConfig::new(6)
        };
        let mut seen = Vec::new();
        let mut rng = Streams::new(2).stream("test", 0, 0);
        let observe = &mut |mean| {
            seen.push(mean);
            Ok(())
        };
        let (mixture, last) = em::fit(&rows, 5, &config, &mut rng, observe).unwrap();
        assert!(seen.len() > 20, "{} iterations", seen.len());
        assert!(seen.windows(2).all(|pair| pair[1] >= pair[0] - 1e-12), "{seen:?}");
        assert!(seen.last().unwrap() - seen[0] > 0.01);
        let scored = mixture.log_densities(&rows).iter().sum::<f64>() / 3_000.0;
        assert!((scored - last).abs() < 1e-9);
    }
}

#[test]
fn a_known_mixture_is_recovered() {
    let truth = three_clusters();
    let number = 20_000;
    let rows = draws(&truth, number, 7);
    let config = EmConfig { floor: 1e-9, tolerance: 1e-8, ..EmConfig::new(3) };
    let mut rng = Streams::new(3).stream("test", 0, 0);
    let fitted = GaussianMixture::fit(&rows, 2, &config, &mut rng).unwrap();
    let likelihood = |mixture: &GaussianMixture| mixture.log_densities(&rows).iter().sum::<f64>();
    // Wilks: twice the gain in likelihood over the truth is chi-squared with 17 degrees of freedom, the number of free
    // parameters; it exceeds 60.2 once in a million seeds.
    let gain = 2.0 * (likelihood(&fitted) - likelihood(&truth));
    assert!((0.0..60.2).contains(&gain), "{gain}");
    for k in 0..3 {
        let distance = |other: usize| {
            let pairs = truth.mean(k).iter().zip(fitted.mean(other));
            pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
        };
        let nearest = (0..3).min_by(|&a, &b| distance(a).total_cmp(&distance(b))).unwrap();
        // Standard errors of the means are at most 1.2 / sqrt(4000) = 0.019, of the weights 0.0036: five of them.
        assert!(distance(nearest) < 0.1);
        let weights = [truth.log_weights()[k].exp(), fitted.log_weights()[nearest].exp()];
        assert!((weights[0] - weights[1]).abs() < 0.018);
    }
}

#[test]
fn more_starts_are_never_worse() {
    let rows = draws(&five_features(), 300, 8);
    let fit = |starts| {
        let config = EmConfig { starts, ..EmConfig::new(8) };
        let mut rng = Streams::new(4).stream("test", 0, 0);
        em::fit(&rows, 5, &config, &mut rng, &mut |_| Ok(())).unwrap().1
    };
    assert!(fit(10) > fit(1));
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    let rows = draws(&five_features(), 5_000, 9);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut rng = Streams::new(5).stream("test", 0, 0);
            let mixture = GaussianMixture::fit(&rows, 5, &EmConfig::new(7), &mut rng).unwrap();
            let scores = mixture.log_densities(&rows);
            let (few, selection) = (&rows[..1_000], Selection::default());
            let selected = select_by_cross_validation(
                few,
                5,
                3,
                &Selection { most_components: 3, ..selection },
                &Streams::new(6),
                &Watch::default(),
            );
            (mixture, scores, selected.unwrap())
        })
    };
    assert_eq!(with(1), with(2));
}

#[test]
fn constant_and_duplicated_columns_are_no_obstacle() {
    let mut rng = Streams::new(7).stream("test", 0, 0);
    let rows: Vec<f32> = (0..300)
        .flat_map(|_| {
            let x = rng.normal() as f32;
            // A constant, a column twice, and the same again in another unit.
            [x, 3.0, x, 1e6 * x, 1e-6 * x]
        })
        .collect();
    for covariance in [Covariance::Full, Covariance::Diagonal] {
        let config = EmConfig { covariance, starts: 3, ..EmConfig::new(5) };
        let mixture = GaussianMixture::fit(&rows, 5, &config, &mut rng).unwrap();
        assert!(mixture.log_densities(&rows).iter().all(|value| value.is_finite()));
        let mut conditionals = mixture.conditionals();
        conditionals.of_row(&rows[..5]);
        assert!((0..5).all(|d| log_conditional(&conditionals, d, rows[d].into()).is_finite()));
    }
}

#[test]
fn components_without_rows_are_dropped() {
    let mut rng = Streams::new(8).stream("test", 0, 0);
    let rows = [[1.0f32, 2.0], [3.0, 4.0]].repeat(20).concat();
    let config = EmConfig::new(6);
    let two = GaussianMixture::fit(&rows, 2, &config, &mut rng).unwrap();
    assert_eq!(two.num_components(), 2);
    // Two points, each with half of the mass and the floor as its variance.
    let peak = 0.5f64.ln() - 2.0 * (1e-2f64.ln() + LOG_ROOT_TAU);
    assert!((two.log_density(&[1.0, 2.0]) - peak).abs() < 1e-9);
    let one = GaussianMixture::fit(&[5.0; 40], 2, &config, &mut rng).unwrap();
    assert_eq!(one.num_components(), 1);
}

#[test]
fn what_cannot_be_fitted_is_refused_by_name() {
    let mut rng = Streams::new(9).stream("test", 0, 0);
    let mut refused = |rows: &[f32], config: EmConfig| {
        GaussianMixture::fit(rows, 2, &config, &mut rng).unwrap_err().to_string()
    };
    let many = refused(&[1.0; 8], EmConfig::new(5));
    assert!(many.starts_with("components is 5") && many.contains("which is 4"), "{many}");
    let floor = refused(&[1.0; 8], EmConfig { floor: 0.0, ..EmConfig::new(2) });
    assert!(floor.starts_with("floor is 0"), "{floor}");
    let value = refused(&[1.0, 2.0, 3.0, f32::NAN], EmConfig::new(1));
    assert!(value.contains("NaN at row 1, feature 1"), "{value}");
    assert!("round".parse::<Covariance>().unwrap_err().to_string().contains("full, diagonal"));
}

#[test]
fn a_mixture_is_written_and_read_and_a_broken_one_is_refused() {
    let mixture = five_features();
    let text = serde_json::to_string(&mixture).unwrap();
    let read: GaussianMixture = serde_json::from_str(&text).unwrap();
    assert_eq!(read, mixture);
    for broken in [
        r#"{"features": 1, "log-weights": [0.0], "means": [0.0, 1.0], "factors": [1.0]}"#,
        r#"{"features": 1, "log-weights": [0.0], "means": [0.0], "factors": [-1.0]}"#,
        r#"{"features": 1, "log-weights": [0.5], "means": [0.0], "factors": [1.0]}"#,
        r#"{"features": 1, "log-weights": [], "means": [], "factors": []}"#,
    ] {
        assert!(serde_json::from_str::<GaussianMixture>(broken).is_err());
    }
}
