//! Two columns that say the same: equal, or one a straight line of the other.

use crate::data::table::{ColumnStatistics, Table};

/// Correlations are first computed on about so many rows, spread over the table.
const SAMPLE: usize = 2_000;

/// Correlation 1 up to the rounding of 32-bit floats: a scatter of 1e-5 of the standard deviation.
const UNRELATED: f64 = 1e-10;

/// The first pair of columns that lie on a line, and how to say so.
pub(super) fn related(
    table: &Table,
    statistics: &[ColumnStatistics],
) -> Option<(usize, usize, &'static str)> {
    let stride = (table.rows() / SAMPLE).max(1);
    let sample: Vec<usize> = (0..table.rows()).step_by(stride).collect();
    let sample = table.select_rows(&sample);
    let mean: Vec<f64> = statistics.iter().map(|s| s.mean).collect();
    for second in 1..table.dimension() {
        for first in 0..second {
            if on_a_line(&sample, &mean, first, second) && on_a_line(table, &mean, first, second) {
                let equal = table.iter_rows().all(|row| row[first] == row[second]);
                let relation = if equal { "are equal" } else { "lie on a line" };
                return Some((first, second, relation));
            }
        }
    }
    None
}

/// Whether the correlation of two columns is 1 or -1; rows with a missing cell are set aside.
fn on_a_line(table: &Table, mean: &[f64], first: usize, second: usize) -> bool {
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for row in table.iter_rows() {
        let x = f64::from(row[first]) - mean[first];
        let y = f64::from(row[second]) - mean[second];
        if !(x * y).is_nan() {
            xx += x * x;
            xy += x * y;
            yy += y * y;
        }
    }
    xx > 0.0 && yy > 0.0 && xx * yy - xy * xy <= UNRELATED * xx * yy
}
