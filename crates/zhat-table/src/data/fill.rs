//! Missing cells filled with what a similar row has in the same column: a beginning, for whoever knows better later.

use zhat::rng::Stream;

use super::table::Table;

/// Rows that are looked at for one that is similar: at most, at the least, and as many as compare so many cells in all.
const MOST: usize = 200;
const FEWEST: usize = 10;
const COMPARED: usize = 500_000_000;

/// Puts into every missing cell what the most similar of some random rows has there (a hot deck), so that what depends on each other
/// still does; a column of which nothing is observed stays missing.
///
/// # Shapes
/// - `values`: `[n, columns]`, with the columns of `observed`
pub(crate) fn fill(values: &mut [f32], observed: &Table, rng: &mut Stream) {
    let dimension = observed.dimension();
    let known: Vec<Vec<f32>> = (0..dimension)
        .map(|column| observed.column(column).filter(|value| !value.is_nan()).collect())
        .collect();
    let variances: Vec<f32> = known.iter().map(|known| variance(known)).collect();
    let holed: Vec<&mut [f32]> = values
        .chunks_exact_mut(dimension)
        .filter(|row| row.iter().any(|value| value.is_nan()))
        .collect();
    let donors = (COMPARED / (holed.len() * dimension).max(1)).clamp(FEWEST, MOST);
    for row in holed {
        // The nearest so far that has the cell, and how near it is.
        let mut nearest = vec![(f32::INFINITY, f32::NAN); dimension];
        for _ in 0..donors.min(observed.rows()) {
            let donor = observed.row(rng.index(observed.rows()));
            let distance = distance(row, donor, &variances);
            for ((nearest, &value), &own) in nearest.iter_mut().zip(donor).zip(&*row) {
                if own.is_nan() && !value.is_nan() && distance < nearest.0 {
                    *nearest = (distance, value);
                }
            }
        }
        for (column, value) in row.iter_mut().enumerate().filter(|(_, value)| value.is_nan()) {
            *value = match nearest[column].1 {
                found if !found.is_nan() => found,
                _ if known[column].is_empty() => continue,
                _ => known[column][rng.index(known[column].len())],
            };
        }
    }
}

/// The sum of squares over columns in standard deviations; where either is missing it is 2, as of two rows that know nothing of each other.
fn distance(row: &[f32], donor: &[f32], variances: &[f32]) -> f32 {
    let of_column = |((a, b), variance): ((&f32, &f32), &f32)| {
        let square = (a - b) * (a - b) / variance;
        if square.is_nan() { 2.0 } else { square }
    };
    row.iter().zip(donor).zip(variances).map(of_column).sum()
}

fn variance(values: &[f32]) -> f32 {
    let mean_of = |sum: f64| sum / values.len().max(1) as f64;
    let mean = mean_of(values.iter().map(|&x| f64::from(x)).sum());
    mean_of(values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum()) as f32
}

#[cfg(test)]
mod tests {
    use zhat::rng::Streams;

    use super::*;

    #[test]
    fn only_missing_cells_are_filled_and_only_with_values_of_their_column() {
        let nan = f32::NAN;
        let table = Table::new(
            vec!["a".into(), "b".into(), "c".into()],
            vec![1.0, nan, nan, nan, 20.0, nan, 2.0, 30.0, nan],
        );
        let mut filled = table.clone();
        fill(filled.values_mut(), &table, &mut Streams::new(1).stream("fill", 0, 0));
        assert!(
            [20.0, 30.0].contains(&filled.values()[1]) && [1.0, 2.0].contains(&filled.values()[3])
        );
        for (was, is) in table.values().iter().zip(filled.values()) {
            assert!(was.is_nan() || was == is);
        }
        assert!(filled.column(2).all(f32::is_nan), "nothing is known of it");
    }

    /// A random value of the column would have no correlation with the rest of its row, and an error of 0.04 in it.
    #[test]
    fn what_depends_on_each_other_still_does() {
        let mut rng = Streams::new(2).stream("rows", 0, 0);
        let mut values = Vec::new();
        for _ in 0..2_000 {
            let a = rng.normal();
            values.extend([a as f32, (1_000.0 * (0.9 * a + 0.19f64.sqrt() * rng.normal())) as f32]);
        }
        let whole = values.clone();
        for row in values.chunks_exact_mut(2).step_by(3) {
            row[usize::from(row[0].to_bits() % 2 == 0)] = f32::NAN;
        }
        let table = Table::new(vec!["a".into(), "b".into()], values);
        let mut filled = table.clone();
        fill(filled.values_mut(), &table, &mut rng);
        let mut sums = [0.0; 3];
        for row in filled.values().chunks_exact(2).step_by(3) {
            let [a, b] = [f64::from(row[0]), f64::from(row[1]) / 1_000.0];
            sums.iter_mut().zip([a * b, a * a, b * b]).for_each(|(sum, x)| *sum += x);
        }
        let correlation = sums[0] / (sums[1] * sums[2]).sqrt();
        assert!((correlation - 0.9).abs() < 4.0 * 0.19 / 667f64.sqrt(), "{correlation}");
        assert_ne!(filled.values(), whole);
    }
}
