//! Resampling: ancestors drawn by weight, plain or with the first particle kept.
//!
//! Conditional SMC needs the law of the ancestors given that particle 0 descends from particle 0. For multinomial
//! resampling the others are independent of that. Stratified and systematic resampling are understood with parents and
//! children on circles that are turned at random, so that no particle is special: each child then has ancestor `j` with
//! probability `w_j`, and the point behind the first child is uniform. See [`Resampling::conditional_ancestors`] and
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
        self.draw(weights, &mut || rng.uniform())
    }

    /// Ancestors of all particles, given that the first particle descends from the first.
    ///
    /// The parents are turned at random. Given that its ancestor is particle 0, the point of a child is uniform in the
    /// interval of particle 0; it tells which of the children this is, and the others have points as ever. The children
    /// are turned so that this one is the first.
    pub fn conditional_ancestors(self, weights: &[f64], rng: &mut Stream) -> Vec<usize> {
        self.draw_conditional(weights, &mut || rng.uniform())
    }

    /// Some particles drawn by their weights, which become the shares of the draws that each of them has: on average what they were,
    /// with the same sum.
    pub fn draw_shares(self, number: usize, weights: &mut [f64], rng: &mut Stream) {
        let sum: f64 = weights.iter().sum();
        if sum <= 0.0 {
            return;
        }
        weights.iter_mut().for_each(|weight| *weight /= sum);
        let drawn = self.draw_number(number, weights, &mut || rng.uniform());
        weights.fill(0.0);
        drawn.into_iter().for_each(|particle| weights[particle] += sum / number as f64);
    }

    fn draw(self, weights: &[f64], uniform: &mut impl FnMut() -> f64) -> Vec<usize> {
        self.draw_number(weights.len(), weights, uniform)
    }

    fn draw_number(
        self,
        number: usize,
        weights: &[f64],
        uniform: &mut impl FnMut() -> f64,
    ) -> Vec<usize> {
        match self {
            Resampling::Multinomial => {
                invert(weights, sorted_uniforms(number, uniform).into_iter())
            }
            Resampling::Stratified => {
                invert(weights, (0..number).map(|i| (i as f64 + uniform()) / number as f64))
            }
            Resampling::Systematic => {
                let shift = uniform();
                invert(weights, (0..number).map(|i| (i as f64 + shift) / number as f64))
            }
        }
    }

    fn draw_conditional(self, weights: &[f64], uniform: &mut impl FnMut() -> f64) -> Vec<usize> {
        let number = weights.len();
        if self == Resampling::Multinomial {
            let mut ancestors = invert(weights, sorted_uniforms(number - 1, uniform).into_iter());
            ancestors.insert(0, 0);
            return ancestors;
        }
        let turn = ((uniform() * number as f64) as usize).min(number - 1);
        let mut parents = weights.to_vec();
        parents.rotate_right(turn);
        // Particle 0 now stands at `turn`, and its interval begins where those before it end.
        let begin: f64 = parents[..turn].iter().sum();
        let point = number as f64 * (begin + parents[turn] * uniform());
        let child = (point as usize).min(number - 1);
        let points = (0..number).map(|i| {
            let within = match self {
                Resampling::Stratified if i != child => uniform(),
                _ => point - child as f64,
            };
            (i as f64 + within) / number as f64
        });
        let mut ancestors = invert(&parents, points);
        // Rounding at the edge of its interval, which may be empty, must not lose particle 0.
        ancestors[child] = turn;
        ancestors.iter_mut().for_each(|parent| *parent = (*parent + number - turn) % number);
        ancestors.rotate_left(child);
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
fn sorted_uniforms(number: usize, uniform: &mut impl FnMut() -> f64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut values: Vec<f64> = (0..number)
        .map(|_| {
            sum -= (1.0 - uniform()).ln();
            sum
        })
        .collect();
    sum -= (1.0 - uniform()).ln();
    values.iter_mut().for_each(|value| *value /= sum);
    values
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rng::Streams;

    const SCHEMES: [Resampling; 3] =
        [Resampling::Multinomial, Resampling::Stratified, Resampling::Systematic];

    #[test]
    fn shares_of_some_draws_are_the_weights_on_average() {
        // Beside others, which have the rest.
        let weights = [0.02, 0.32, 0.0, 0.26, 0.1];
        let total: f64 = weights.iter().sum();
        for scheme in SCHEMES {
            for number in [1, 3] {
                let mut rng = Streams::new(2).stream("test", 0, 0);
                let repeats = 20_000;
                let mut means = [0.0; 5];
                for _ in 0..repeats {
                    let mut shares = weights;
                    scheme.draw_shares(number, &mut shares, &mut rng);
                    let sum: f64 = shares.iter().sum();
                    assert!((sum - total).abs() < 1e-12);
                    means.iter_mut().zip(shares).for_each(|(m, s)| *m += s / f64::from(repeats));
                }
                for (mean, weight) in means.iter().zip(weights) {
                    // As below: at most the multinomial variance, 4.5 standard errors.
                    let variance = weight * (total - weight) / number as f64;
                    let standard_error = (variance / f64::from(repeats)).sqrt();
                    assert!((mean - weight).abs() <= 4.5 * standard_error, "{scheme} {means:?}");
                }
                let mut nothing = [0.0; 5];
                scheme.draw_shares(number, &mut nothing, &mut rng);
                assert_eq!(nothing, [0.0; 5]);
            }
        }
    }

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

    /// Multinomial resampling draws its points sorted, which the exact enumeration below takes for granted.
    #[test]
    fn sorted_uniforms_have_the_means_and_variances_of_order_statistics() {
        let mut rng = Streams::new(2).stream("test", 0, 0);
        let repeats = 60_000;
        let mut sums = [[0.0; 2]; 3];
        for _ in 0..repeats {
            let values = sorted_uniforms(3, &mut || rng.uniform());
            assert!(values.is_sorted() && values[2] < 1.0);
            for (sums, value) in sums.iter_mut().zip(values) {
                *sums = [sums[0] + value, sums[1] + value * value];
            }
        }
        for (k, [sum, squares]) in (1..).zip(sums) {
            // The k-th of 3 is Beta(k, 4 - k): mean k / 4, mean square k (k + 1) / 20. Its square varies by less than 1 / 9.
            let (k, repeats) = (f64::from(k), f64::from(repeats));
            let bound = 4.5 * (1.0 / 9.0 / repeats).sqrt();
            assert!((sum / repeats - k / 4.0).abs() < bound);
            assert!((squares / repeats - k * (k + 1.0) / 20.0).abs() < bound);
        }
    }

    /// All values of a function of uniforms and their probabilities, exactly: the `i`-th uniform takes the midpoints of
    /// `cells[i]` equal cells, so that its edges must be among those at which the function changes.
    fn law(
        cells: &[usize],
        draw: impl Fn(&mut dyn FnMut() -> f64) -> Vec<usize>,
    ) -> BTreeMap<Vec<usize>, f64> {
        let mut law = BTreeMap::new();
        let total: usize = cells.iter().product();
        for mut at in 0..total {
            let mut left = cells.iter();
            let ancestors = draw(&mut || {
                let number = *left.next().expect("a uniform for each draw");
                let cell = at % number;
                at /= number;
                (cell as f64 + 0.5) / number as f64
            });
            *law.entry(ancestors).or_insert(0.0) += 1.0 / total as f64;
        }
        law
    }

    fn divide(masses: &[usize]) -> Vec<f64> {
        let total: usize = masses.iter().sum();
        masses.iter().map(|&mass| mass as f64 / total as f64).collect()
    }

    /// The law of [`Resampling::draw_conditional`] for weights in the ratio of whole numbers.
    ///
    /// With total `s` of the numbers and `m` of particle 0, the point of the first child changes stratum at multiples of
    /// `1 / (c m)`, where the shift that it gives the others changes their parents too, and a point of a stratum changes
    /// parent at multiples of `1 / s`.
    fn conditional_law(scheme: Resampling, masses: &[usize]) -> BTreeMap<Vec<usize>, f64> {
        let (weights, total) = (divide(masses), masses.iter().sum::<usize>());
        let number = masses.len();
        match scheme {
            Resampling::Multinomial => {
                // Sorted uniforms are what they say; the points that are inverted take all values.
                law(&vec![total; number - 1], |uniform| {
                    let mut points: Vec<f64> = (1..number).map(|_| uniform()).collect();
                    points.sort_by(f64::total_cmp);
                    [vec![0], invert(&weights, points.into_iter())].concat()
                })
            }
            Resampling::Systematic => law(&[number, number * masses[0]], |mut uniform| {
                scheme.draw_conditional(&weights, &mut uniform)
            }),
            Resampling::Stratified => {
                let mut cells = vec![total; number + 1];
                (cells[0], cells[1]) = (number, number * masses[0]);
                law(&cells, |mut uniform| scheme.draw_conditional(&weights, &mut uniform))
            }
        }
    }

    /// The plain law with parents and children turned at random, given that the first child descends from particle 0.
    fn turned_and_conditioned(scheme: Resampling, masses: &[usize]) -> BTreeMap<Vec<usize>, f64> {
        let (number, total) = (masses.len(), masses.iter().sum::<usize>());
        let mut turned = BTreeMap::new();
        for turn in 0..number {
            let mut parents = divide(masses);
            parents.rotate_right(turn);
            let cells = if scheme == Resampling::Systematic { 1 } else { number };
            for (ancestors, probability) in
                law(&vec![total; cells], |mut uniform| scheme.draw(&parents, &mut uniform))
            {
                for child in 0..number {
                    let mut ancestors: Vec<usize> =
                        ancestors.iter().map(|parent| (parent + number - turn) % number).collect();
                    ancestors.rotate_left(child);
                    if ancestors[0] == 0 {
                        *turned.entry(ancestors).or_insert(0.0) += probability;
                    }
                }
            }
        }
        let kept: f64 = turned.values().sum();
        turned.into_iter().map(|(ancestors, p)| (ancestors, p / kept)).collect()
    }

    #[test]
    fn the_conditional_law_is_exactly_the_plain_one_turned_and_conditioned() {
        for masses in [vec![3, 1, 2], vec![1, 5, 2], vec![7, 1, 1], vec![2, 3, 1, 1]] {
            for scheme in [Resampling::Stratified, Resampling::Systematic] {
                let (law, expected) =
                    (conditional_law(scheme, &masses), turned_and_conditioned(scheme, &masses));
                assert!(law.keys().eq(expected.keys()), "{scheme:?}, {masses:?}");
                for (ancestors, probability) in law {
                    let difference = probability - expected[&ancestors];
                    assert!(difference.abs() < 1e-12, "{scheme:?}, {masses:?}, {ancestors:?}");
                }
            }
        }
    }

    /// The rule of the first version: the parents are not turned, so that particle 0 always begins a stratum.
    fn unturned_law(masses: &[usize]) -> BTreeMap<Vec<usize>, f64> {
        let (weights, total, number) = (divide(masses), masses.iter().sum::<usize>(), masses.len());
        let mut cells = vec![total; number];
        cells[0] = number * masses[0];
        law(&cells, |uniform| {
            let point = number as f64 * weights[0] * uniform();
            let child = point as usize;
            let points: Vec<f64> = (0..number)
                .map(|i| if i == child { point } else { i as f64 + uniform() } / number as f64)
                .collect();
            let mut ancestors = invert(&weights, points.into_iter());
            ancestors.rotate_left(child);
            ancestors
        })
    }

    /// Conditional SMC on three values at each of two stages: how far one transition moves the model's probabilities.
    fn drift(
        number: usize,
        first: [usize; 3],
        law: impl Fn(&[usize]) -> BTreeMap<Vec<usize>, f64>,
    ) -> f64 {
        // The weights of stage 0 are whole numbers; those of stage 1 depend on where stage 0 was.
        let first_q = [0.5, 0.3, 0.2];
        let factor =
            |a: usize, b: usize| [[3.0, 0.4, 0.1], [0.2, 1.0, 2.5], [0.7, 0.05, 0.3]][a][b];
        let second_q = [[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.3, 0.3, 0.4]];
        let p_tilde = |a: usize, b: usize| first[a] as f64 * first_q[a] * factor(a, b);
        let z: f64 = (0..9).map(|x| p_tilde(x / 3, x % 3)).sum();
        let digits = |mut code: usize, first: usize| -> Vec<usize> {
            let mut digits = vec![first];
            digits.extend((1..number).map(|_| {
                let digit = code % 3;
                code /= 3;
                digit
            }));
            digits
        };
        let mut after = [0.0; 9];
        for a0 in 0..3 {
            for code in 0..3usize.pow(number as u32 - 1) {
                let a = digits(code, a0);
                let draw_a: f64 = a[1..].iter().map(|&a| first_q[a]).product();
                let masses: Vec<usize> = a.iter().map(|&a| first[a]).collect();
                for (ancestors, probability) in law(&masses) {
                    for (b0, code) in (0..3)
                        .flat_map(|b0| (0..3usize.pow(number as u32 - 1)).map(move |c| (b0, c)))
                    {
                        let b = digits(code, b0);
                        let parent = |j: usize| a[ancestors[j]];
                        let draw_b: f64 = (1..number).map(|j| second_q[parent(j)][b[j]]).product();
                        let w: Vec<f64> = (0..number)
                            .map(|j| factor(parent(j), b[j]) / second_q[parent(j)][b[j]])
                            .collect();
                        let scale = p_tilde(a0, b0) / z * draw_a * probability * draw_b
                            / w.iter().sum::<f64>();
                        for j in 0..number {
                            after[3 * parent(j) + b[j]] += scale * w[j];
                        }
                    }
                }
            }
        }
        let moved = after.iter().enumerate().map(|(x, p)| (p - p_tilde(x / 3, x % 3) / z).abs());
        moved.fold(0.0, f64::max)
    }

    #[test]
    fn conditional_smc_is_exactly_invariant_with_every_scheme() {
        for (number, first) in [(3, [1, 2, 5]), (4, [1, 2, 3])] {
            for scheme in SCHEMES {
                let drift = drift(number, first, |masses| conditional_law(scheme, masses));
                assert!(drift < 1e-12, "{scheme:?}, {number} particles: {drift:e}");
            }
            // With parents that are not turned it is not, and the enumeration sees it.
            let unturned = drift(number, first, unturned_law);
            assert!(unturned > 1e-4, "{number} particles: {unturned:e}");
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
