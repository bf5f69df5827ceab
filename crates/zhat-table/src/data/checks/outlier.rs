//! A few values so far out that they alone make a column's standard deviation, and squeeze all other rows together.

use crate::data::table::ColumnStatistics;

/// So many values at most are called outliers; more are a tail.
const MOST: usize = 3;
/// How many times smaller the standard deviation must be without them.
const RATIO: f64 = 5.0;

/// Values that squeeze a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outliers {
    /// How many there are.
    pub number: usize,
    /// The one that is furthest out.
    pub furthest: f32,
    /// Standard deviation of the others.
    pub without: f64,
}

/// Looks for them; missing cells are set aside.
pub(super) fn outliers(
    column: impl Iterator<Item = f32> + Clone,
    statistics: &ColumnStatistics,
) -> Option<Outliers> {
    let rows = column.clone().filter(|value| !value.is_nan()).count() as f64;
    let distance = |value: f32, mean: f64| (f64::from(value) - mean).abs();
    let far = distance(statistics.minimum, statistics.mean)
        .max(distance(statistics.maximum, statistics.mean));
    // Where so few values make nearly all of the variance, the furthest has at least a third of that.
    let least = (1.0 - 1.0 / (RATIO * RATIO)) / MOST as f64 * rows;
    if (far / statistics.std_dev).powi(2) < least {
        return None;
    }
    let mut left_out: Vec<usize> = Vec::new();
    let (mut mean, mut furthest) = (statistics.mean, None);
    for number in 1..=MOST {
        let kept = || {
            column
                .clone()
                .enumerate()
                .filter(|(row, value)| !value.is_nan() && !left_out.contains(row))
        };
        let (row, value) =
            kept().max_by(|(_, a), (_, b)| distance(*a, mean).total_cmp(&distance(*b, mean)))?;
        furthest.get_or_insert(value);
        left_out.push(row);
        let kept = || {
            column
                .clone()
                .enumerate()
                .filter(|(row, value)| !value.is_nan() && !left_out.contains(row))
        };
        let count = kept().count() as f64;
        mean = kept().map(|(_, value)| f64::from(value)).sum::<f64>() / count;
        let squares: f64 = kept().map(|(_, value)| (f64::from(value) - mean).powi(2)).sum();
        let without = (squares / count).sqrt();
        if RATIO * without < statistics.std_dev {
            return Some(Outliers { number, furthest: furthest?, without });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Table;

    fn found(values: Vec<f32>) -> Option<Outliers> {
        let table = Table::new(vec!["a".into()], values);
        outliers(table.column(0), &table.statistics()[0])
    }

    fn spread(odd: &[f32]) -> Vec<f32> {
        let mut values: Vec<f32> = (0..2000).map(|i| (i as f32 * 0.618_034).fract()).collect();
        values[7..7 + odd.len()].copy_from_slice(odd);
        values
    }

    #[test]
    fn one_or_a_few_values_that_squeeze_the_others_are_found() {
        let one = found(spread(&[1e6])).unwrap();
        assert_eq!((one.number, one.furthest), (1, 1e6));
        assert!((one.without - 0.2887).abs() < 0.01, "{one:?}");
        assert_eq!(found(spread(&[-1e17])).unwrap().number, 1);
        assert_eq!(found(spread(&[900.0, -700.0, 800.0])).unwrap().number, 3);
    }

    #[test]
    fn a_tail_is_no_outlier() {
        assert_eq!(found(spread(&[])), None);
        assert_eq!(found(spread(&[3.0])), None);
        assert_eq!(found(spread(&[900.0; 10])), None);
        // Quantiles of a Cauchy distribution.
        let cauchy = |i: i32| (std::f64::consts::PI * ((f64::from(i) + 0.5) / 2000.0 - 0.5)).tan();
        assert_eq!(found((0..2000).map(|i| cauchy(i) as f32).collect()), None);
    }
}
