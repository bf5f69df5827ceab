//! The variance of an estimate of `Z` from a single run: whom of the first stage every particle descends from.

/// The first ancestor of every particle, row by row.
#[derive(Debug)]
pub(super) struct Eves {
    candidates: usize,
    eves: Vec<u32>,
    /// How often each row was resampled.
    resampled: Vec<i32>,
}

impl Eves {
    /// At the first stage everybody descends from themselves.
    pub fn new(rows: usize, candidates: usize) -> Self {
        let eves = (0..rows).flat_map(|_| 0..candidates as u32).collect();
        Self { candidates, eves, resampled: vec![0; rows] }
    }

    /// The particles of a row take the first ancestors of theirs.
    pub fn descend(&mut self, row: usize, ancestors: &[usize]) {
        let eves = &mut self.eves[row * self.candidates..][..self.candidates];
        let before = eves.to_vec();
        eves.iter_mut().zip(ancestors).for_each(|(eve, &ancestor)| *eve = before[ancestor]);
        self.resampled[row] += 1;
    }

    /// Variance of `Z-hat / Z` of every row: `1 - (N / (N - 1))^(r + 1) (1 - sum_k S_k^2)` after `r` resamplings, `S_k` the final weight of
    /// all that descend from particle `k` (Lee and Whiteley, *Biometrika* 105, 2018, eq. 8). Without resampling it is the variance of the
    /// mean of the weights.
    pub fn relative_variances(&self, weights: &[f64]) -> Vec<f64> {
        let number = self.candidates as f64;
        let of_row = |(row, &resampled): (usize, &i32)| {
            let span = row * self.candidates..(row + 1) * self.candidates;
            let mut shares = vec![0.0; self.candidates];
            for (&eve, weight) in self.eves[span.clone()].iter().zip(&weights[span]) {
                shares[eve as usize] += weight;
            }
            let squares: f64 = shares.iter().map(|share| share * share).sum();
            1.0 - (number / (number - 1.0)).powi(resampled + 1) * (1.0 - squares)
        };
        self.resampled.iter().enumerate().map(of_row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_resampling_it_is_the_variance_of_a_mean() {
        let weights = [0.1, 0.2, 0.3, 0.4];
        let found = Eves::new(1, 4).relative_variances(&weights)[0];
        // Weights in units of their mean: 0.4, 0.8, 1.2, 1.6, with variance 0.8 / 3, divided by four.
        assert!((found - 0.8 / 3.0 / 4.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn particles_of_one_ancestor_count_as_one() {
        let mut eves = Eves::new(2, 3);
        eves.descend(1, &[2, 2, 0]);
        eves.descend(1, &[0, 1, 2]);
        assert_eq!(eves.eves, [0, 1, 2, 2, 2, 0]);
        let found = eves.relative_variances(&[0.2, 0.3, 0.5, 0.2, 0.3, 0.5]);
        let expected = 1.0 - 1.5f64.powi(3) * (1.0 - 0.25 - 0.25);
        assert!((found[1] - expected).abs() < 1e-12, "{found:?}");
    }
}
