//! Rank correlations of columns, and where those of two tables differ by more than chance gives.

use zhat::normal_quantile;

/// How often two tables of the same density have a pair beyond the limit, with all pairs taken together.
const LEVEL: f64 = 0.01;

/// Spearman's rank correlations of all pairs of columns: the same for any increasing map of a column, and hardly moved by
/// outliers. Rows with a missing cell are left out; a column that is constant has none with any other.
///
/// # Shapes
/// - `rows`: `[n, columns]`, row-major
/// - output: `[columns, columns]`
pub fn rank_correlations(rows: &[f32], columns: usize) -> Vec<Vec<f64>> {
    let whole: Vec<&[f32]> =
        rows.chunks_exact(columns).filter(|row| row.iter().all(|cell| !cell.is_nan())).collect();
    let ranks: Vec<Vec<f64>> = (0..columns)
        .map(|column| centred_ranks(&whole.iter().map(|row| row[column]).collect::<Vec<_>>()))
        .collect();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let squares: Vec<f64> = ranks.iter().map(|ranks| product(ranks, ranks)).collect();
    let mut correlations = vec![vec![1.0; columns]; columns];
    for second in 0..columns {
        for first in 0..second {
            let scale = (squares[first] * squares[second]).sqrt();
            let correlation = product(&ranks[first], &ranks[second]) / scale;
            correlations[first][second] = correlation;
            correlations[second][first] = correlation;
        }
    }
    correlations
}

/// Ranks less their mean; values that are equal share the mean of theirs.
fn centred_ranks(values: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let (mut ranks, mut first) = (vec![0.0; values.len()], 0);
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = first as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|&row| ranks[row] = rank - middle);
        first += equal.len();
    }
    ranks
}

/// The correlation of a pair of columns in two tables.
#[derive(Debug, Clone, PartialEq)]
pub struct PairDifference {
    /// The columns, the first before the second.
    pub pair: [usize; 2],
    /// The correlation in each of the tables.
    pub correlations: [f64; 2],
    /// How many standard errors they are apart.
    pub errors: f64,
}

impl PairDifference {
    /// What the second table has more than the first.
    pub fn difference(&self) -> f64 {
        self.correlations[1] - self.correlations[0]
    }
}

/// All pairs of columns of two tables with so many independent rows, those furthest apart first; pairs with a constant column
/// are left out.
pub fn pair_differences(
    [one, other]: [&[Vec<f64>]; 2],
    independent: [f64; 2],
) -> Vec<PairDifference> {
    let columns = one.len();
    let pairs = (0..columns).flat_map(|second| (0..second).map(move |first| [first, second]));
    let mut differences: Vec<PairDifference> = pairs
        .map(|pair| {
            let correlations = [one, other].map(|table| table[pair[0]][pair[1]]);
            // Fisher's scale, on which the error of a rank correlation hardly depends on it (Bonett and Wright, 2000). At
            // correlations of one there is none.
            let [a, b] = correlations.map(|r| r.clamp(-0.9999, 0.9999));
            let variance = |r: f64, rows: f64| (1.0 + r * r / 2.0) / (rows - 3.0).max(1.0);
            let error = (variance(a, independent[0]) + variance(b, independent[1])).sqrt();
            PairDifference { pair, correlations, errors: (a.atanh() - b.atanh()).abs() / error }
        })
        .filter(|difference| !difference.errors.is_nan())
        .collect();
    differences.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()));
    differences
}

/// The standard errors that chance gives the furthest of so many pairs, at a level of 0.01 for all of them together.
pub fn errors_by_chance(pairs: usize) -> f64 {
    normal_quantile(1.0 - LEVEL / (2.0 * pairs.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use zhat::rng::Streams;

    use super::*;

    #[test]
    fn ranks_are_all_that_counts_and_ties_share_theirs() {
        let rows: Vec<f32> =
            (1..=9).flat_map(|i| [i as f32, (i as f32).exp(), -(i as f32).powi(3)]).collect();
        let found = rank_correlations(&rows, 3);
        assert!((found[0][1] - 1.0).abs() < 1e-12 && (found[0][2] + 1.0).abs() < 1e-12);
        // Ranks 1.5, 1.5, 3, 4 and 1, 3, 2, 4; a missing cell in a row that is left out. Sums of products by hand: 3 of 4.5 and 5.
        let rows = [5.0, 1.0, 5.0, 3.0, f32::NAN, 9.0, 6.0, 2.0, 7.0, 4.0];
        let expected = 3.0 / (4.5f64 * 5.0).sqrt();
        assert!((rank_correlations(&rows, 2)[0][1] - expected).abs() < 1e-12);
        assert!(rank_correlations(&[1.0, 2.0, 1.0, 3.0], 2)[0][1].is_nan());
    }

    /// Rows of normals, each correlated with the one before it.
    fn chain(correlation: f64, rows: usize, columns: usize, seed: u64) -> Vec<f32> {
        let mut rng = Streams::new(seed).stream("chain", 0, 0);
        let rest = (1.0 - correlation * correlation).sqrt();
        let mut values = Vec::with_capacity(rows * columns);
        for _ in 0..rows {
            let mut value = rng.normal();
            for _ in 0..columns {
                values.push(value as f32);
                value = correlation * value + rest * rng.normal();
            }
        }
        values
    }

    #[test]
    fn those_of_normals_are_known() {
        let found = rank_correlations(&chain(0.6, 40_000, 3, 1), 3);
        for (pair, correlation) in [([0, 1], 0.6), ([1, 2], 0.6), ([0, 2], 0.36f64)] {
            let expected = 6.0 / std::f64::consts::PI * (correlation / 2.0f64).asin();
            // 4.5 standard errors of a correlation of zero, which are the largest.
            let wrong = (found[pair[0]][pair[1]] - expected).abs();
            assert!(wrong < 4.5 / 200.0, "{pair:?}: {wrong}");
        }
    }

    #[test]
    fn tables_of_one_density_are_not_told_apart_and_those_of_two_are() {
        let (columns, rows) = (10, [400, 4000]);
        let limit = errors_by_chance(45);
        let mut beyond = [0, 0];
        for seed in 0..200 {
            let table = |correlation, which: usize| {
                let seed = 2 * seed + which as u64;
                rank_correlations(&chain(correlation, rows[which], columns, seed), columns)
            };
            let independent = rows.map(|rows| rows as f64);
            let data = table(0.7, 0);
            for (at, other) in [table(0.7, 1), table(0.4, 1)].iter().enumerate() {
                let pairs = pair_differences([&data, other], independent);
                assert_eq!(pairs.len(), 45);
                beyond[at] += usize::from(pairs.iter().any(|pair| pair.errors > limit));
            }
        }
        // Level 0.01: more than 8 of 200 would be one chance in a thousand, and the seeds are fixed.
        assert!(beyond[0] <= 8, "{beyond:?}");
        assert_eq!(beyond[1], 200);
    }
}
