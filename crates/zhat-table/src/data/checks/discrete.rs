//! Whether a column takes few values, and by which step they differ.

/// How often values repeat in a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ties {
    /// Hardly ever.
    Few,
    /// Each value stands in several rows.
    Discrete { distinct: usize, step: f64 },
    /// One value stands in many rows.
    Spike { value: f32, share: f64 },
}

/// So many rows per value make a column discrete; fewer if the values are evenly spaced.
const ROWS_PER_VALUE: usize = 5;
const ROWS_PER_VALUE_ON_A_GRID: usize = 2;

/// Steps to the nearest neighbour, and multiples of the step for each value, beyond which a common divisor is a coincidence.
const NEAR: f64 = 3.0;
const SPARSE: f64 = 20.0;

/// A value in more than one row of a hundred, and in more than ten rows, is a spike.
const SPIKE_SHARE: f64 = 0.01;
const SPIKE_ROWS: usize = 10;

/// Looks for ties in a column; missing cells are set aside.
pub(crate) fn ties(column: impl Iterator<Item = f32>) -> Ties {
    let mut values = Vec::with_capacity(column.size_hint().0);
    values.extend(column.filter(|value| !value.is_nan()));
    values.sort_unstable_by(f32::total_cmp);
    let rows = values.len();
    let (mut number, mut spike, mut spike_rows) = (0, 0.0, 0);
    for run in values.chunk_by(|a, b| a == b) {
        number += 1;
        if run.len() > spike_rows {
            (spike, spike_rows) = (run[0], run.len());
        }
    }
    if number >= 2 && rows >= ROWS_PER_VALUE_ON_A_GRID * number {
        values.dedup();
        let distinct: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
        let step = step(&distinct);
        if step.is_some() || rows >= ROWS_PER_VALUE * distinct.len() {
            let gap = smallest_gap(&distinct);
            return Ties::Discrete { distinct: distinct.len(), step: step.unwrap_or(gap) };
        }
    }
    let share = spike_rows as f64 / rows.max(1) as f64;
    if spike_rows > SPIKE_ROWS && share > SPIKE_SHARE {
        return Ties::Spike { value: spike, share };
    }
    Ties::Few
}

/// The smallest gap between sorted values, to one digit.
fn smallest_gap(distinct: &[f64]) -> f64 {
    let gap = distinct.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    rounded(gap, 1)
}

/// The largest step of which all gaps between sorted values are multiples (Euclid's algorithm, up to the
/// rounding of 32-bit floats), if there is one.
fn step(distinct: &[f64]) -> Option<f64> {
    let (first, last) = (distinct[0], distinct[distinct.len() - 1]);
    // Two values are each off by half a float at most.
    let rounding = first.abs().max(last.abs()) * f64::from(f32::EPSILON);
    let mut step = distinct[1] - first;
    for &value in distinct {
        let (mut a, mut b) = (value - first, step);
        loop {
            let rest = a - (a / b).round() * b;
            // The error of the step itself grows with the number of steps.
            if rest.abs() <= rounding * (2.0 + (a / b).abs() * 1e-3) + 1e-3 * b {
                break;
            }
            (a, b) = (b, rest.abs());
            // A step of a few floats is the grid of the floats themselves.
            if b < 16.0 * rounding {
                return None;
            }
        }
        // Measured over many steps, the step is known more exactly.
        let number = ((value - first) / b).round();
        step = if number >= 1.0 { (value - first) / number } else { b };
    }
    let number = ((last - first) / step).round();
    // Any few numbers have a common divisor, if it may be small enough: one that no two neighbours are near, and that hardly any
    // of its multiples are there of, is nobody's step.
    let gap = distinct.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if gap > NEAR * step && number > SPARSE * distinct.len() as f64 {
        return None;
    }
    let is_close =
        |candidate: f64| (candidate - step).abs() * number <= 2.0 * rounding + 1e-9 * step;
    Some((1..=6).map(|digits| rounded(step, digits)).find(|&s| is_close(s)).unwrap_or(step))
}

/// A number to so many significant digits.
fn rounded(number: f64, digits: usize) -> f64 {
    format!("{number:.*e}", digits - 1).parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: impl Iterator<Item = f64>) -> Vec<f64> {
        values.map(|value| f64::from(value as f32)).collect()
    }

    #[test]
    fn the_step_of_a_grid_is_found_in_spite_of_rounding() {
        let voltage = floats((0..3000).map(|i| 223.2 + f64::from(i) * 0.01));
        assert_eq!(step(&voltage), Some(0.01));
        let power = floats((0..4000).map(|i| 0.076 + f64::from(i) * 0.002));
        assert_eq!(step(&power), Some(0.002));
        assert_eq!(step(&[0.0, 2.0, 5.0, 9.0]), Some(1.0));
        assert_eq!(step(&floats([0.0, 0.75, 2.0].into_iter())), Some(0.25));
    }

    #[test]
    fn values_without_a_grid_have_no_step() {
        assert_eq!(step(&floats((1..100).map(|i| f64::from(i).sqrt()))), None);
        // Six values have a common divisor of 0.0000844, and are no grid of it: noise as narrow as that would change nothing.
        let values = [0.0, 1187.0, 4421.0, 9973.0, 15_013.0, 23_003.0].map(|n| 0.000_084_4 * n);
        assert_eq!(step(&floats(values.into_iter())), None);
        let few = ties((0..600).map(|i| values[i % 6] as f32));
        assert_eq!(few, Ties::Discrete { distinct: 6, step: 0.1 }, "the smallest gap");
        // Rare values of a fine grid are one all the same where two are next to each other.
        assert_eq!(step(&[0.0, 1.0, 500.0, 9000.0]), Some(1.0));
    }

    #[test]
    fn ties_without_a_grid_are_discrete_only_if_there_are_many() {
        let many = (0..1000).map(|i| ((i % 20) as f32).sqrt());
        assert!(matches!(ties(many), Ties::Discrete { distinct: 20, .. }));
        assert_eq!(ties((0..1000).map(|i| ((i / 2) as f32).sqrt())), Ties::Few);
        assert!(matches!(ties((0..1000).map(|i| (i / 2) as f32)), Ties::Discrete { .. }));
    }
}
