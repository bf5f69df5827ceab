//! Whether the conditionals of a density are as wide, and where, as rows that it was not fitted to say.

/// How often a density that is exactly right has a column beyond the band, with all its columns taken together.
const LEVEL: f64 = 0.01;

/// How the cells of rows lie in what the density says of them, given those before them.
///
/// The share of a conditional's mass that is below a row's cell (the probability integral transform) is uniform over the rows of a
/// density that is right: a tenth of them lies below a tenth, and so on.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Rows.
    pub rows: usize,
    /// Column by column, in their order.
    pub columns: Vec<Uniformity>,
    /// The largest distance from uniform that chance gives, at a level of 0.01 for all columns together.
    pub band: f64,
}

/// How near to uniform the shares of a column are.
#[derive(Debug, Clone, PartialEq)]
pub struct Uniformity {
    /// The shares, from the smallest to the largest.
    pub sorted: Vec<f64>,
    /// Largest distance between the share of rows below a value and that value (Kolmogorov and Smirnov's).
    pub distance: f64,
}

impl Calibration {
    /// From the shares below the cells of rows; cells of which nothing is known, such as classes, are left out.
    ///
    /// # Shapes
    /// - `below`: `[n, columns]`, row-major
    pub fn new(below: &[f64], columns: usize) -> Self {
        let whole: Vec<&[f64]> = below
            .chunks_exact(columns)
            .filter(|row| row.iter().any(|share| !share.is_nan()))
            .collect();
        let rows = whole.len();
        let of_column = |column: usize| {
            let shares = whole.iter().map(|row| row[column]);
            Uniformity::new(shares.filter(|share| !share.is_nan()))
        };
        // Dvoretzky, Kiefer and Wolfowitz's bound with Massart's constant, which holds for any number of rows.
        let band = ((2.0 * columns as f64 / LEVEL).ln() / (2.0 * rows.max(1) as f64)).sqrt();
        Self { rows, columns: (0..columns).map(of_column).collect(), band }
    }

    /// Columns that are further from uniform than chance gives.
    pub fn beyond(&self) -> Vec<usize> {
        (0..self.columns.len())
            .filter(|&column| self.columns[column].distance > self.band)
            .collect()
    }
}

impl Uniformity {
    fn new(shares: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = shares.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let number = sorted.len() as f64;
        let apart = |(rank, share): (usize, &f64)| {
            (share - rank as f64 / number).max((rank + 1) as f64 / number - share)
        };
        let distance = sorted.iter().enumerate().map(apart).fold(0.0, f64::max);
        Self { sorted, distance }
    }

    /// How much larger the share of rows below a value is than that value, at equal steps from 0 to 1.
    pub fn differences(&self, steps: usize) -> Vec<(f64, f64)> {
        let number = self.sorted.len().max(1) as f64;
        let difference = |step: usize| {
            let value = step as f64 / steps as f64;
            let below = self.sorted.partition_point(|share| *share <= value) as f64;
            (value, below / number - value)
        };
        (0..=steps).map(difference).collect()
    }
}

#[cfg(test)]
mod tests {
    use zhat::rng::Streams;

    use super::*;

    #[test]
    fn distances_are_those_of_a_sum_by_hand() {
        let shares = [0.9, 0.2, f64::NAN, 0.5, 0.3, 0.1, 0.4, 0.8];
        let calibration = Calibration::new(&shares, 2);
        assert_eq!(calibration.rows, 4);
        // 0.3, 0.4 and 0.9: before 0.9 two thirds of the rows are below, and after 0.4.
        assert!((calibration.columns[0].distance - 0.3).abs() < 1e-12);
        // 0.1, 0.2, 0.5 and 0.8: half are at most 0.2.
        assert!((calibration.columns[1].distance - 0.3).abs() < 1e-12);
        let differences = calibration.columns[1].differences(4);
        assert_eq!(differences.len(), 5);
        assert!((differences[1].1 - 0.25).abs() < 1e-12);
        assert_eq!((differences[0].1, differences[4]), (0.0, (1.0, 0.0)));
    }

    #[test]
    fn uniform_shares_are_within_the_band_and_those_of_a_wide_density_are_not() {
        let (columns, rows) = (40, 500);
        let mut beyond = [0, 0];
        for seed in 0..200 {
            let mut rng = Streams::new(seed).stream("shares", 0, 0);
            let uniform: Vec<f64> = (0..rows * columns).map(|_| rng.uniform()).collect();
            // Half as far from the middle in one of the columns: the density is twice as wide as the rows.
            let mut narrow = uniform.clone();
            narrow.iter_mut().skip(7).step_by(columns).for_each(|u| *u = 0.25 + 0.5 * *u);
            beyond[0] += usize::from(!Calibration::new(&uniform, columns).beyond().is_empty());
            beyond[1] += usize::from(Calibration::new(&narrow, columns).beyond().contains(&7));
        }
        // Level 0.01: more than 8 of 200 would be one chance in a thousand, and the seeds are fixed.
        assert!(beyond[0] <= 8, "{beyond:?}");
        assert_eq!(beyond[1], 200);
    }
}
