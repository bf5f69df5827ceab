//! Missing cells filled with what other rows have in the same column: a beginning, for whoever knows better later.

use zhat::rng::Stream;

use super::table::Table;

/// Puts a random observed value of the column into every missing cell; a column of which nothing is observed stays missing.
///
/// # Shapes
/// - `values`: `[n, columns]`, with the columns of `observed`
pub(crate) fn fill(values: &mut [f32], observed: &Table, rng: &mut Stream) {
    let dimension = observed.dimension();
    for column in 0..dimension {
        let missing = values.iter_mut().skip(column).step_by(dimension).filter(|x| x.is_nan());
        let known: Vec<f32> = observed.column(column).filter(|value| !value.is_nan()).collect();
        if !known.is_empty() {
            missing.for_each(|value| *value = known[rng.index(known.len())]);
        }
    }
}

#[cfg(test)]
mod tests {
    use zhat::rng::Streams;

    use super::*;

    #[test]
    fn only_missing_cells_are_filled_and_only_with_values_of_their_column() {
        let nan = f32::NAN;
        let table = Table::new(vec!["a".into(), "b".into()], vec![1.0, nan, nan, 20.0, 2.0, 30.0]);
        let mut filled = table.clone();
        fill(filled.values_mut(), &table, &mut Streams::new(1).stream("fill", 0, 0));
        assert!(
            [20.0, 30.0].contains(&filled.values()[1]) && [1.0, 2.0].contains(&filled.values()[2])
        );
        for (was, is) in table.values().iter().zip(filled.values()) {
            assert!(was.is_nan() || was == is);
        }
    }
}
