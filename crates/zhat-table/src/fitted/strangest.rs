//! The strangest of some rows, and which of their columns make them so.

use super::explain::explained_by_the_others;
use crate::density::{CellScores, Density};
use crate::error::Result;

/// Rows that say what a usual row is like.
const USUAL_ROWS: usize = 1_000;
/// Cells of them, at most: with many columns fewer rows have to do.
const USUAL_CELLS: usize = 20_000;
/// Rows that say what a usual cell is like given all the others, at most and at least.
const USUAL_FOR_OTHERS: [usize; 2] = [50, 5];
/// Rows times pairs of columns that are looked at given all the others: each cell is summed over by particles that go through the columns after it.
const PAIRS_FOR_OTHERS: usize = 3_000;
/// With more columns cells are looked at given those before them alone.
const COLUMNS_FOR_OTHERS: usize = 24;

/// The strangest rows, and what the density says of the cells of usual ones, if it says anything.
#[derive(Debug, Clone, PartialEq)]
pub struct Strangest {
    /// From the strangest on.
    pub rows: Vec<StrangeRow>,
    /// Of rows that are spread evenly over all of them; none where the density says nothing of a cell given those before it.
    pub usual: Option<CellScores>,
}

/// A row whose density is low.
#[derive(Debug, Clone, PartialEq)]
pub struct StrangeRow {
    /// Where it is among the rows.
    pub index: usize,
    /// Its log-density, but for `log Z`.
    pub log_p_tilde: f64,
    /// How much less likely each cell is, given those before it, than that column's cells are in usual rows, in nats. They sum to the
    /// log-density of a usual row less that of this one. Empty where the density says nothing of a cell.
    pub excess: Vec<f64>,
    /// The same given all the other cells, by which the cell that goes against the others is named whatever the order of the columns. Empty
    /// where the density cannot say.
    pub excess_of_others: Vec<f64>,
}

/// Finds so many of the rows with the lowest densities; rows with missing cells have none.
///
/// # Shapes
/// - `rows`: `[n, columns]`, row-major, in the units of the data
pub fn strangest(density: &dyn Density, rows: &[f32], number: usize) -> Result<Strangest> {
    let columns = density.columns().len();
    // What is observed of a row is more likely the less of it there is: only whole rows compare.
    let whole: Vec<usize> = (0..rows.len() / columns)
        .filter(|row| !rows[row * columns..][..columns].iter().any(|cell| cell.is_nan()))
        .collect();
    let of_whole: Vec<f32> =
        whole.iter().flat_map(|&row| &rows[row * columns..][..columns]).copied().collect();
    let mut scores = vec![f64::NAN; rows.len() / columns];
    for (&row, log_p) in whole.iter().zip(density.score(&of_whole)?.log_p_tilde) {
        scores[row] = log_p;
    }
    let mut order: Vec<usize> = (0..scores.len()).filter(|&row| !scores[row].is_nan()).collect();
    let spread = USUAL_ROWS.min((USUAL_CELLS / columns).max(1)).min(order.len());
    let usual: Vec<usize> = (0..spread).map(|at| order[at * order.len() / spread]).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    order.truncate(number);
    let take = |indices: &[usize]| -> Vec<f32> {
        indices.iter().flat_map(|&row| &rows[row * columns..][..columns]).copied().collect()
    };
    let (of_usual, of_strange) = (density.cells(&take(&usual))?, density.cells(&take(&order))?);
    let excess = |place: usize| match (&of_usual, &of_strange) {
        (Some(usual), Some(strange)) => {
            let of_row = &strange.log_p[place * columns..][..columns];
            let mean = |column: usize| {
                let cells = usual.log_p.iter().skip(column).step_by(columns);
                cells.sum::<f64>() / spread as f64
            };
            of_row.iter().enumerate().map(|(column, log_p)| mean(column) - log_p).collect()
        }
        _ => Vec::new(),
    };
    let few = usual_for_others(columns, number).min(usual.len());
    let few: Vec<usize> = (0..few).map(|at| usual[at * usual.len() / few]).collect();
    let others = |rows: &[usize]| explained_by_the_others(density, &take(rows)).ok();
    let of_others = if few.is_empty() { None } else { others(&few).zip(others(&order)) };
    let excess_of_others = |place: usize| {
        let Some((usual, strange)) = &of_others else { return Vec::new() };
        let mean = |column: usize| {
            let cells = usual.iter().skip(column).step_by(columns);
            cells.sum::<f64>() / few.len() as f64
        };
        let cells = strange[place * columns..][..columns].iter().enumerate();
        cells.map(|(column, log_p)| mean(column) - log_p).collect()
    };
    let row = |(place, &index): (usize, &usize)| StrangeRow {
        excess_of_others: excess_of_others(place),
        index,
        log_p_tilde: scores[index],
        excess: excess(place),
    };
    Ok(Strangest { rows: order.iter().enumerate().map(row).collect(), usual: of_usual })
}

/// How many usual rows are looked at given all the others, beside so many strange ones; none where columns are too many for either.
fn usual_for_others(columns: usize, strange: usize) -> usize {
    if columns > COLUMNS_FOR_OTHERS {
        return 0;
    }
    let [most, least] = USUAL_FOR_OTHERS;
    (PAIRS_FOR_OTHERS / (columns * columns)).saturating_sub(strange).clamp(least, most)
}

impl StrangeRow {
    /// How strange each column is: given all the others, or given those before it where nothing else is known.
    pub fn parts(&self) -> &[f64] {
        if self.excess_of_others.is_empty() { &self.excess } else { &self.excess_of_others }
    }

    /// The columns that make it strange, from the one that does most.
    pub fn columns(&self) -> Vec<usize> {
        let parts = self.parts();
        let mut order: Vec<usize> = (0..parts.len()).filter(|&at| !parts[at].is_nan()).collect();
        order.sort_by(|&a, &b| parts[b].total_cmp(&parts[a]));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_columns_the_fewer_rows_are_looked_at_given_all_the_others() {
        let usual = [2, 9, 13, 24, 25].map(|columns| usual_for_others(columns, 10));
        assert_eq!(usual, [50, 27, 7, 5, 0]);
    }
}
