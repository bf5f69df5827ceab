//! Resampling: ancestors drawn by weight, plain or with the first particle kept.
//!
//! Conditional SMC needs the law of the ancestors given that particle 0 descends from particle 0. For multinomial
//! resampling the others are independent of that. For stratified and systematic resampling, understood with a random
//! rotation of the particles so that each of them has ancestor `j` with probability `w_j`, the uniform behind the
//! offspring of particle 0 has a density proportional to their number; see [`Resampling::conditional_ancestors`] and
//! Chopin and Singh, *On particle Gibbs sampling*, Bernoulli 21 (2015), section 5.

use serde::{Deserialize, Serialize};

use crate::rng::Stream;

/// A scheme that gives every particle `j` on average `c w_j` of the `c` offspring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resampling {
    /// Independent draws.
    #[default]
    Multinomial,
    /// One draw in each of `c` equal strata.
    Stratified,
    /// One uniform for all strata.
    Systematic,
}

crate::named!(Resampling, "resampling", {
    Multinomial: "multinomial",
    Stratified: "stratified",
    Systematic: "systematic",
});

impl Resampling {
    /// As many ancestors as there are weights, in increasing order.
    pub fn ancestors(self, weights: &[f64], rng: &mut Stream) -> Vec<usize> {
        let number = weights.len();
        match self {
            Resampling::Multinomial => invert(weights, sorted_uniforms(number, rng).into_iter()),
            Resampling::Stratified => {
                invert(weights, (0..number).map(|i| (i as f64 + rng.uniform()) / number as f64))
            }
            Resampling::Systematic => {
                let shift = rng.uniform();
                invert(weights, (0..number).map(|i| (i as f64 + shift) / number as f64))
            }
        }
    }

    /// Ancestors of all particles, given that the first particle descends from the first.
    ///
    /// Let `c w_0 = m + r` with `m` whole and `0 <= r < 1`. The strata below `m` belong to particle 0, and stratum `m`
    /// gives it one more offspring when its uniform is below `r`. Given the rotation that puts an offspring of particle
    /// 0 first, this uniform is below `r` with probability `r (m + 1) / (c w_0)`.
    pub fn conditional_ancestors(self, weights: &[f64], rng: &mut Stream) -> Vec<usize> {
        let number = weights.len();
        if self == Resampling::Multinomial {
            let mut ancestors = invert(weights, sorted_uniforms(number - 1, rng).into_iter());
            ancestors.insert(0, 0);
            return ancestors;
        }
        let expected = number as f64 * weights[0];
        if expected <= 0.0 {
            // Particle 0 has lost all its weight to rounding; the limit of the law below has one offspring of it.
            let mut ancestors = self.ancestors(weights, rng);
            ancestors[0] = 0;
            return ancestors;
        }
        let (whole, rest) = (expected.floor(), expected.fract());
        let below = rng.uniform() < rest * (whole + 1.0) / expected;
        let decisive =
            if below { rest * rng.uniform() } else { rest + (1.0 - rest) * rng.uniform() };
        let offspring = whole as usize + usize::from(below);
        let points = (0..number).map(|i| {
            let uniform = match self {
                Resampling::Stratified if i != whole as usize => rng.uniform(),
                _ => decisive,
            };
            (i as f64 + uniform) / number as f64
        });
        let mut ancestors = invert(weights, points.collect::<Vec<_>>().into_iter());
        // The offspring of particle 0 come first; rounding at the edge of a stratum must not lose the last of them.
        ancestors[..offspring.min(number)].fill(0);
        ancestors.rotate_left(rng.index(offspring.min(number)));
        ancestors
    }
}

/// The index in which each of the increasing points falls on the cumulative weights.
fn invert(weights: &[f64], points: impl Iterator<Item = f64>) -> Vec<usize> {
    let last =
        weights.iter().rposition(|&weight| weight > 0.0).expect("weights have positive mass");
    let (mut index, mut cumulative) = (0, weights[0]);
    points
        .map(|point| {
            while point >= cumulative && index < last {
                index += 1;
                cumulative += weights[index];
            }
            index
        })
        .collect()
}

/// Independent uniforms in increasing order, from exponential spacings.
fn sorted_uniforms(number: usize, rng: &mut Stream) -> Vec<f64> {
    let mut sum = 0.0;
    let mut values: Vec<f64> = (0..number)
        .map(|_| {
            sum -= (1.0 - rng.uniform()).ln();
            sum
        })
        .collect();
    sum -= (1.0 - rng.uniform()).ln();
    values.iter_mut().for_each(|value| *value /= sum);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    const SCHEMES: [Resampling; 3] =
        [Resampling::Multinomial, Resampling::Stratified, Resampling::Systematic];

    #[test]
    fn every_particle_has_its_expected_number_of_offspring() {
        let weights = [0.05, 0.4, 0.0, 0.33, 0.22];
        for scheme in SCHEMES {
            let mut rng = Streams::new(1).stream("test", 0, 0);
            let repeats = 20_000;
            let mut counts = [0.0; 5];
            for _ in 0..repeats {
                scheme.ancestors(&weights, &mut rng).iter().for_each(|&a| counts[a] += 1.0);
            }
            for (count, weight) in counts.iter().zip(weights) {
                // The multinomial variance bounds all schemes; 4.5 standard errors.
                let standard_error = (5.0 * weight * (1.0 - weight) / f64::from(repeats)).sqrt();
                let difference = count / f64::from(repeats) - 5.0 * weight;
                assert!(difference.abs() <= 4.5 * standard_error, "{scheme:?}: {difference}");
            }
        }
    }

    /// The conditional law is the unconditional one, rotated at random and conditioned on the first ancestor being 0.
    #[test]
    fn conditional_ancestors_have_the_conditional_law() {
        let weights = [0.37, 0.13, 0.5];
        for scheme in SCHEMES {
            let mut rng = Streams::new(2).stream("test", 0, 0);
            let mut histogram = [[0.0f64; 27]; 2];
            let mut totals = [0.0f64; 2];
            let code = |a: &[usize]| a[0] * 9 + a[1] * 3 + a[2];
            for _ in 0..60_000 {
                // Plain, rotated uniformly, and kept only if the first ancestor is 0.
                let mut ancestors = scheme.ancestors(&weights, &mut rng);
                if scheme == Resampling::Multinomial {
                    let order = rng.permutation(3);
                    ancestors = order.iter().map(|&i| ancestors[i]).collect();
                } else {
                    ancestors.rotate_left(rng.index(3));
                }
                if ancestors[0] == 0 {
                    ancestors[1..].sort_unstable();
                    histogram[0][code(&ancestors)] += 1.0;
                    totals[0] += 1.0;
                }
                let mut conditional = scheme.conditional_ancestors(&weights, &mut rng);
                assert_eq!(conditional[0], 0);
                conditional[1..].sort_unstable();
                histogram[1][code(&conditional)] += 1.0;
                totals[1] += 1.0;
            }
            for (plain, conditional) in histogram[0].iter().zip(histogram[1]) {
                let (a, b) = (plain / totals[0], conditional / totals[1]);
                let spread = a * (1.0 - a) / totals[0] + b * (1.0 - b) / totals[1];
                assert!((a - b).abs() <= 4.5 * spread.sqrt() + 1e-9, "{scheme:?}: {a} against {b}");
            }
        }
    }

    #[test]
    fn the_first_particle_survives_without_any_weight() {
        for scheme in SCHEMES {
            let mut rng = Streams::new(3).stream("test", 0, 0);
            assert_eq!(scheme.conditional_ancestors(&[0.0, 0.5, 0.5], &mut rng)[0], 0);
            assert_eq!(scheme.conditional_ancestors(&[1e-300, 1.0], &mut rng), [0, 1]);
            assert_eq!(scheme.conditional_ancestors(&[1.0], &mut rng), [0]);
        }
    }

    #[test]
    fn all_the_weight_on_one_particle_makes_it_everybodys_ancestor() {
        for scheme in SCHEMES {
            let mut rng = Streams::new(4).stream("test", 0, 0);
            assert_eq!(scheme.ancestors(&[0.0, 0.0, 1.0, 0.0], &mut rng), [2; 4]);
        }
    }
}
