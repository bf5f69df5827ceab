//! Means over seeds and test rows, with errors that know which rows the seeds share.

use std::collections::BTreeMap;

use zhat::student::{two_sided, two_sided_point};

/// A number for every test row of one seed's fit: a log-density, or how far one is ahead of another.
#[derive(Debug, Clone)]
pub(super) struct OfSeed {
    pub values: Vec<f64>,
    /// Which rows of the table they are, so that seeds can share them; empty where all of them are this seed's own.
    pub rows: Vec<usize>,
    /// What each of them counts; empty where all count alike.
    pub weights: Vec<f64>,
    /// Standard error that all values have in common, from `log Z`.
    pub se_log_z: f64,
}

impl OfSeed {
    /// The share of all that each row has, and how many rows they are worth: `(sum w)^2 / sum w^2`.
    fn shares(&self) -> (Vec<f64>, f64) {
        let weights = match self.weights.is_empty() {
            true => vec![1.0; self.values.len()],
            false => self.weights.clone(),
        };
        let sum: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.into_iter().map(|weight| weight / sum).collect();
        let effective = 1.0 / shares.iter().map(|share| share * share).sum::<f64>();
        (shares, effective)
    }

    /// How far this one is ahead of another on the same rows: what is common to both cancels.
    pub fn ahead_of(&self, other: &Self) -> Self {
        Self {
            values: self.values.iter().zip(&other.values).map(|(own, other)| own - other).collect(),
            rows: self.rows.clone(),
            weights: self.weights.clone(),
            se_log_z: self.se_log_z.hypot(other.se_log_z),
        }
    }
}

/// The mean over all seeds, and what it may be off by.
///
/// With `D_r` the mean of seed `r`, the variance of the mean of `R` seeds is the mean of `cov(D_r, D_s)` over all pairs.
/// Their spread `S^2` tells the variance of one seed (training, split, rows and `log Z`) less what two of them have in
/// common, and what they have in common is the luck of the test rows that they share: `C`, the covariance of the rows'
/// values, row by row. So the squared error is `S^2 / R + C`. With the same rows for all seeds `C` does not shrink with
/// `R`; with rows of their own it is 0. A small spread of few seeds may be luck, so the error is never less than
/// that of rows and `log Z` alone, which is also all that one seed has.
///
/// It is about other seeds and other test rows. The luck of the table that all seeds learn from is not in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OverSeeds {
    pub mean: f64,
    /// From the finite number of test rows.
    pub se_rows: f64,
    /// From the estimates of `log Z`.
    pub se_log_z: f64,
    /// From the spread over seeds; none with one seed.
    pub se_seeds: Option<f64>,
    /// All together.
    pub standard_error: f64,
    /// How many squares are behind the error (Welch and Satterthwaite): few where the spread of a few seeds is most of it.
    pub degrees_of_freedom: f64,
}

impl OverSeeds {
    pub fn new(seeds: &[OfSeed]) -> Self {
        let number = seeds.len() as f64;
        let (mut means, mut alone, mut together, mut count) = (Vec::new(), 0.0, 0.0, 0.0);
        let mut shared: BTreeMap<usize, f64> = BTreeMap::new();
        for seed in seeds {
            let (OfSeed { values, rows, .. }, (shares, effective)) = (seed, seed.shares());
            let mean = values.iter().zip(&shares).map(|(value, share)| value * share).sum::<f64>();
            means.push(mean);
            count += effective / number;
            for (at, (value, share)) in values.iter().zip(&shares).enumerate() {
                // Their squares add up to the variance of the seed's mean.
                let part = (value - mean) * (share / (effective - 1.0)).sqrt();
                alone += part * part;
                match rows.get(at) {
                    Some(&row) => *shared.entry(row).or_default() += part,
                    None => together += part * part,
                }
            }
        }
        together += shared.values().map(|sum| sum * sum).sum::<f64>();
        let mean = means.iter().sum::<f64>() / number;
        let of_rows = together / number.powi(2);
        let of_log_z = seeds.iter().map(|s| s.se_log_z.powi(2)).sum::<f64>() / number.powi(2);
        let (mut variance, mut of_seeds, mut degrees_of_freedom) =
            (of_rows + of_log_z, None, count - 1.0);
        if seeds.len() > 1 {
            let pairs = number * (number - 1.0);
            let spread = means.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / pairs;
            let common = ((together - alone) / pairs).max(0.0);
            variance = variance.max(spread + common);
            of_seeds = Some(spread.sqrt());
            degrees_of_freedom = variance.powi(2)
                / (spread.powi(2) / (number - 1.0) + (variance - spread).powi(2) / (count - 1.0));
        }
        Self {
            mean,
            se_rows: of_rows.sqrt(),
            se_log_z: of_log_z.sqrt(),
            se_seeds: of_seeds,
            standard_error: variance.sqrt(),
            degrees_of_freedom,
        }
    }

    /// How often chance alone gets as far from zero (Student's t: the error itself is little known where there are few seeds).
    pub fn p_value(&self) -> f64 {
        two_sided(self.mean / self.standard_error, self.degrees_of_freedom)
    }

    /// An interval around the mean that holds the truth but for a share of cases.
    pub fn interval(&self, level: f64) -> [f64; 2] {
        let reach = two_sided_point(level, self.degrees_of_freedom) * self.standard_error;
        [self.mean - reach, self.mean + reach]
    }
}

#[cfg(test)]
mod tests {
    use zhat::rng::{Stream, Streams};

    use super::*;

    /// Sizes of what a difference is made of: seeds, rows, and both together.
    #[derive(Clone, Copy)]
    struct Sizes {
        seeds: usize,
        of_seed: f64,
        of_row: f64,
        of_both: f64,
    }

    const ROWS: usize = 200;

    /// Seeds of a comparison whose true difference is 0. With a table each tests some of its rows, all where it has no more.
    fn simulate(sizes: Sizes, table: Option<usize>, rng: &mut Stream) -> Vec<OfSeed> {
        let mut fresh = |number: usize| -> Vec<f64> {
            rng.normals(number).into_iter().map(|x| sizes.of_row * x).collect()
        };
        let common = table.map(&mut fresh);
        (0..sizes.seeds)
            .map(|_| {
                let rows = table.map_or(Vec::new(), |size| rng.permutation(size)[..ROWS].to_vec());
                let own: Vec<f64> = match &common {
                    Some(common) => rows.iter().map(|&row| common[row]).collect(),
                    None => rng.normals(ROWS).into_iter().map(|x| sizes.of_row * x).collect(),
                };
                let (shift, se_log_z) = (sizes.of_seed * rng.normal(), 0.01);
                let log_z = se_log_z * rng.normal();
                let value = |row: f64| row + shift + log_z + sizes.of_both * rng.normal();
                let values = own.into_iter().map(value).collect();
                OfSeed { values, rows, weights: vec![], se_log_z }
            })
            .collect()
    }

    /// The rule of old: every seed's error over rows and of log Z as if it were independent, and no spread.
    fn old_rule(seeds: &[OfSeed]) -> bool {
        let one = |seed: &OfSeed| OverSeeds::new(std::slice::from_ref(seed));
        let variance: f64 = seeds.iter().map(|seed| one(seed).standard_error.powi(2)).sum();
        let number = seeds.len() as f64;
        let mean = seeds.iter().map(|seed| one(seed).mean).sum::<f64>() / number;
        mean.abs() <= 2.0 * variance.sqrt() / number
    }

    /// Share of simulated comparisons in which the truth, 0, is not told apart, by the rule and by the one of old.
    fn coverage(sizes: Sizes, table: Option<usize>) -> [f64; 2] {
        const TIMES: usize = 1000;
        let mut rng = Streams::new(12).stream("coverage", sizes.seeds as u64, 0);
        let mut covered = [0.0; 2];
        for _ in 0..TIMES {
            let seeds = simulate(sizes, table, &mut rng);
            covered[0] += f64::from(u8::from(OverSeeds::new(&seeds).p_value() > 0.05));
            covered[1] += f64::from(u8::from(old_rule(&seeds)));
        }
        covered.map(|number| number / TIMES as f64)
    }

    #[test]
    fn intervals_cover_the_truth_whether_seeds_share_their_test_rows_or_not() {
        for seeds in [2, 5, 10] {
            for (of_seed, of_row, of_both) in [(0.1, 1.0, 0.3), (0.02, 1.0, 1.0), (0.3, 0.5, 0.1)] {
                let sizes = Sizes { seeds, of_seed, of_row, of_both };
                for table in [None, Some(ROWS), Some(3 * ROWS)] {
                    let [new, old] = coverage(sizes, table);
                    // Nominally 0.95, to four standard errors of 1000 simulations; the approximation to Student's t is a
                    // little short with two seeds, and the floor a little long where seeds hardly differ.
                    let least = if seeds == 2 { 0.86 } else { 0.92 };
                    assert!((least..=0.995).contains(&new), "{seeds}, {of_seed}, {table:?}: {new}");
                    // Rows of their own and seeds that hardly differ are all that the rule of old is good for.
                    let harmless = of_seed == 0.02 && (table.is_none() || seeds == 2);
                    assert!(harmless || old < 0.92, "{seeds}, {of_seed}, {table:?}: {old}");
                }
            }
        }
    }

    #[test]
    fn one_seed_has_the_error_of_rows_and_log_z_alone() {
        let values = vec![1.0, 2.0, 3.0, 4.0];
        let found =
            OverSeeds::new(&[OfSeed { values, rows: vec![], weights: vec![], se_log_z: 0.5 }]);
        let se_rows = (5.0 / 3.0 / 4.0f64).sqrt();
        assert_eq!((found.mean, found.se_seeds), (2.5, None));
        assert!((found.se_rows - se_rows).abs() < 1e-12);
        assert!((found.standard_error - se_rows.hypot(0.5)).abs() < 1e-12);
    }

    #[test]
    fn a_row_counts_as_often_as_its_weight_says_and_errors_are_those_of_effective_rows() {
        let of = |values: &[f64], weights: &[f64]| {
            let (values, weights) = (values.to_vec(), weights.to_vec());
            OverSeeds::new(&[OfSeed { values, rows: vec![], weights, se_log_z: 0.0 }])
        };
        let plain = of(&[1.0, 2.0, 4.0], &[]);
        assert_eq!(
            of(&[1.0, 2.0, 4.0, 9.0], &[3.0, 3.0, 3.0, 0.0]),
            plain,
            "of no weight, and of any unit"
        );
        let twice = of(&[1.0, 2.0, 4.0], &[1.0, 2.0, 1.0]);
        assert_eq!(twice.mean, of(&[1.0, 2.0, 2.0, 4.0], &[]).mean);
        // Worth 16 / 6 rows: a spread of (1 + 0 + 0 + 4) / 4 less a mean of 2.25, over one less.
        let spread: f64 = [1.0, 2.0, 2.0, 4.0].iter().map(|x| (x - 2.25f64).powi(2) / 4.0).sum();
        assert!((twice.se_rows.powi(2) - spread / (16.0 / 6.0 - 1.0)).abs() < 1e-12);
    }

    #[test]
    fn seeds_that_agree_on_the_same_rows_know_no_more_than_one_of_them() {
        let (values, rows) = (vec![1.0, 2.0, 3.0, 4.0], vec![0, 1, 2, 3]);
        let one = OfSeed { values, rows, weights: vec![], se_log_z: 0.0 };
        let error = |seeds: &[OfSeed]| OverSeeds::new(seeds).standard_error;
        assert!((error(&vec![one.clone(); 9]) - error(std::slice::from_ref(&one))).abs() < 1e-12);
        // As rows of their own they would be worth nine times as many.
        let own = OfSeed { rows: vec![], ..one.clone() };
        assert!((error(&vec![own; 9]) - error(&[one]) / 3.0).abs() < 1e-12);
    }
}
