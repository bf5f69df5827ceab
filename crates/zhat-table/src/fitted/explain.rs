//! Which cells of a row are strange: the log-density of each given those before it, and given all the others.

use crate::density::Density;
use crate::error::{Result, TableError};

/// `log p(cell | those before it)` of every cell that is modelled and observed, NaN of the others: of a row they sum to its log-density. What
/// is missing before a cell is summed over.
///
/// # Shapes
/// - `rows`, output: `[n, columns]`, row-major
pub fn explained_by_those_before(density: &dyn Density, rows: &[f32]) -> Result<Vec<f64>> {
    let (columns, given) = (density.columns().len(), density.given());
    let mut found = density.cells(rows)?.ok_or_else(no_parts)?.log_p;
    for (row, found) in rows.chunks_exact(columns).zip(found.chunks_exact_mut(columns)) {
        found[..given].fill(f64::NAN);
        if !row.iter().any(|cell| cell.is_nan()) {
            continue;
        }
        // Of what is observed up to each cell, less of what is observed before it.
        let observed: Vec<usize> = (given..columns).filter(|&at| !row[at].is_nan()).collect();
        let beginnings: Vec<f32> = observed.iter().flat_map(|&last| beginning(row, last)).collect();
        let scores = density.score(&beginnings)?.log_p_tilde;
        let mut before = 0.0;
        for (&at, score) in observed.iter().zip(scores) {
            found[at] = score - before;
            before = score;
        }
    }
    Ok(found)
}

/// `log p(cell | all others)` of every cell that is modelled and observed, NaN of the others: what the row has, less what it has without the
/// cell, which is summed over by particles. A cell that goes against the others is low here, wherever its column stands.
///
/// # Shapes
/// - `rows`, output: `[n, columns]`, row-major
pub fn explained_by_the_others(density: &dyn Density, rows: &[f32]) -> Result<Vec<f64>> {
    let (columns, given) = (density.columns().len(), density.given());
    let mut found = vec![f64::NAN; rows.len()];
    let (mut places, mut without) = (Vec::new(), Vec::new());
    for (at, cell) in rows.iter().enumerate() {
        if at % columns >= given && !cell.is_nan() {
            let row = at / columns * columns;
            places.push(at);
            without.extend_from_slice(&rows[row..row + columns]);
            let hole = without.len() - columns + at % columns;
            without[hole] = f32::NAN;
        }
    }
    let whole = density.score(rows)?.log_p_tilde;
    let without = density.score(&without)?.log_p_tilde;
    for (&place, without) in places.iter().zip(&without) {
        found[place] = whole[place / columns] - without;
    }
    match whole.iter().any(|log_p| !log_p.is_nan()) && without.iter().all(|log_p| log_p.is_nan()) {
        true => Err(no_holes()),
        false => Ok(found),
    }
}

/// A row up to a column, and nothing of what comes after.
fn beginning(row: &[f32], last: usize) -> impl Iterator<Item = f32> + '_ {
    row.iter().enumerate().map(move |(at, &cell)| if at <= last { cell } else { f32::NAN })
}

/// Why there is nothing of single columns.
fn no_parts() -> TableError {
    let reason = "explain: the model has one normaliser for whole rows, and says nothing of a column by itself; fit with \
                  model.normalisation=local, the default";
    TableError::config(reason.into())
}

/// Why nothing can be left out of a row.
fn no_holes() -> TableError {
    let reason = "explain-others: the model cannot sum over a cell; fit with model.normalisation=local and model.energy-form=tilted, the default";
    TableError::config(reason.into())
}
