//! Whether the conditionals of a density are as wide, and where, as rows that it was not fitted to say.

use zhat::rng::Stream;

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
    /// How often chance alone gives a distance as large; 1 where there are no shares.
    pub p_value: f64,
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

    /// The same for columns of a density that is known by draws alone: of the columns by themselves, and not given those before them.
    /// A cell is put among the draws of its column, anywhere among those that are equal to it.
    ///
    /// # Shapes
    /// - `rows`, `draws`: `[n, columns]` and `[m, columns]`, row-major; a missing cell is NaN
    pub fn of_marginals(rows: &[f32], draws: &[f32], columns: usize, rng: &mut Stream) -> Self {
        let mut below = vec![f64::NAN; rows.len()];
        for column in 0..columns {
            let of_column = |all: &[f32]| -> Vec<f32> {
                all.iter().skip(column).step_by(columns).copied().collect()
            };
            let mut sorted = of_column(draws);
            sorted.retain(|draw| !draw.is_nan());
            sorted.sort_unstable_by(f32::total_cmp);
            for (row, cell) in of_column(rows).into_iter().enumerate() {
                if cell.is_nan() {
                    continue;
                }
                let [less, at_most] = [
                    sorted.partition_point(|draw| *draw < cell),
                    sorted.partition_point(|draw| *draw <= cell),
                ];
                // The cell is one more among those that are equal to it.
                let place = less as f64 + rng.uniform() * (at_most - less + 1) as f64;
                below[row * columns + column] = place / (sorted.len() + 1) as f64;
            }
        }
        let mut found = Self::new(&below, columns);
        // Draws have errors as rows have: Smirnov's two samples.
        let number = draws.len() as f64 / columns as f64;
        for column in &mut found.columns {
            let rows = column.sorted.len() as f64;
            column.p_value = p_value(column.distance, rows * number / (rows + number));
        }
        found
    }

    /// The columns' p-values, corrected for their number (Holm, 1979): a density that is right has one below a level in that share of
    /// cases, whatever the number of columns.
    pub fn adjusted(&self) -> Vec<f64> {
        holm(&self.columns.iter().map(|column| column.p_value).collect::<Vec<_>>())
    }

    /// The column that is furthest from uniform.
    pub fn worst(&self) -> Option<usize> {
        let known =
            (0..self.columns.len()).filter(|&column| !self.columns[column].sorted.is_empty());
        known.max_by(|&a, &b| self.columns[a].distance.total_cmp(&self.columns[b].distance))
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
        let p_value = if sorted.is_empty() { 1.0 } else { p_value(distance, number) };
        Self { sorted, distance, p_value }
    }

    /// How the rows lie in what the density says, in words: `rows lie lower than it says`, and where most.
    pub fn words(&self) -> String {
        let number = self.sorted.len().max(1) as f64;
        let mean = self.sorted.iter().sum::<f64>() / number;
        let from_middle = self.sorted.iter().map(|share| (share - 0.5).abs()).sum::<f64>() / number;
        // In units of what chance gives: 1/12 and 1/48 are the variances of a uniform share and of its distance from the middle.
        let off = (mean - 0.5) * (12.0 * number).sqrt();
        let apart = (from_middle - 0.25) * (48.0 * number).sqrt();
        let how = match (off.abs() > apart.abs(), off < 0.0, apart < 0.0) {
            (true, true, _) => "the rows lie lower than it says",
            (true, false, _) => "the rows lie higher than it says",
            (false, _, true) => "it is wider than the rows",
            (false, _, false) => "it is narrower than the rows",
        };
        let in_tenth = |tenth: usize| {
            let [low, high] = [tenth, tenth + 1].map(|edge| {
                self.sorted.partition_point(|share| *share < edge as f64 / 10.0) as f64
            });
            (high - low) / number
        };
        let tenth = (0..10)
            .max_by(|&a, &b| (in_tenth(a) - 0.1).abs().total_cmp(&(in_tenth(b) - 0.1).abs()))
            .expect("ten of them");
        let place = match tenth {
            0 => "lowest tenth".to_owned(),
            9 => "highest tenth".to_owned(),
            tenth => format!("tenth from {} to {} %", 10 * tenth, 10 * tenth + 10),
        };
        format!("{how}; {:.0} % of them are in its {place}", 100.0 * in_tenth(tenth))
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

/// How often the distance of `number` uniform shares is as large: Kolmogorov's limit with Stephens' correction (1970), right to about
/// a hundredth of itself from ten shares on.
fn p_value(distance: f64, number: f64) -> f64 {
    let root = number.sqrt();
    let scaled = (root + 0.12 + 0.11 / root) * distance;
    // Below this the alternating series has not settled, and its value is 1 to ten digits.
    if scaled < 0.2 {
        return 1.0;
    }
    let term = |j: i32| (-2.0 * f64::from(j * j) * scaled * scaled).exp();
    let sum: f64 = (1..=100).map(|j| if j % 2 == 1 { term(j) } else { -term(j) }).sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

/// Holm's correction: the smallest p-value counts times their number, the next times one less, and none less than the one before.
pub(crate) fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let (mut adjusted, mut least) = (vec![1.0; p_values.len()], 0.0f64);
    for (rank, &at) in order.iter().enumerate() {
        least = least.max(p_values[at] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[at] = least;
    }
    adjusted
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
    #[test]
    fn p_values_are_those_of_tables_and_uniform_under_the_truth() {
        // Critical values of Kolmogorov's statistic for 20 and 100 shares, at 0.05 and 0.01.
        for (distance, number, level) in
            [(0.29408, 20.0, 0.05), (0.35241, 20.0, 0.01), (0.13403, 100.0, 0.05)]
        {
            let found = p_value(distance, number);
            assert!((found / level - 1.0).abs() < 0.05, "{distance} of {number}: {found}");
        }
        let p_values = (0..400).map(|seed| {
            let mut rng = Streams::new(seed).stream("shares", 1, 0);
            let shares: Vec<f64> = (0..150).map(|_| rng.uniform()).collect();
            Calibration::new(&shares, 1).columns[0].p_value
        });
        // At this seed, and for one in a thousand where they are not uniform at all.
        let found = Uniformity::new(p_values);
        assert!(found.p_value > 0.01, "{}", found.p_value);
    }

    #[test]
    fn holm_corrects_for_the_number() {
        let found = holm(&[0.04, 0.01, 0.03, 0.5]);
        let expected = [0.09, 0.04, 0.09, 0.5];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn marginals_by_draws_are_told_apart_only_where_they_differ_ties_or_not() {
        let mut rng = Streams::new(4).stream("marginals", 0, 0);
        // A number and a yes or no.
        let mut some = |number: usize, shift: f64| -> Vec<f32> {
            (0..number)
                .flat_map(|_| [shift + rng.normal(), f64::from(u8::from(rng.uniform() < 0.3))])
                .map(|x| x as f32)
                .collect()
        };
        let (rows, draws, shifted) = (some(800, 0.0), some(2000, 0.0), some(2000, 0.4));
        let mut rng = Streams::new(4).stream("places", 0, 0);
        let same = Calibration::of_marginals(&rows, &draws, 2, &mut rng);
        assert!(same.adjusted().iter().all(|p| *p > 0.01), "{:?}", same.adjusted());
        let other = Calibration::of_marginals(&rows, &shifted, 2, &mut rng);
        assert!(other.worst() == Some(0) && other.adjusted()[0] < 1e-6);
        assert!(other.columns[0].words().contains("lower"), "{}", other.columns[0].words());
    }

    #[test]
    fn words_say_what_is_wrong() {
        let uniform = |i: usize| (i as f64 + 0.5) / 1000.0;
        let narrow = Uniformity::new((0..1000).map(|i| 0.25 + 0.5 * uniform(i)));
        assert!(narrow.words().starts_with("it is wider than the rows"), "{}", narrow.words());
        let ends = |u: f64| if u < 0.5 { 2.0 * u * u } else { 1.0 - 2.0 * (1.0 - u) * (1.0 - u) };
        let wide = Uniformity::new((0..1000).map(|i| ends(uniform(i))));
        assert!(wide.words().contains("narrower"), "{}", wide.words());
        assert!(wide.words().contains("22 % of them are in its"), "{}", wide.words());
    }
}
