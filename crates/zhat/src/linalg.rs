//! The little dense linear algebra that Gaussians need, on the host.

use crate::error::{Error, Result};

/// Lower Cholesky factor of a symmetric positive definite matrix in row-major order.
pub fn cholesky(matrix: &[f64], dimension: usize, what: &'static str) -> Result<Vec<f64>> {
    let mut factor = vec![0.0; dimension * dimension];
    for i in 0..dimension {
        for j in 0..=i {
            let dot: f64 =
                (0..j).map(|k| factor[i * dimension + k] * factor[j * dimension + k]).sum();
            let rest = matrix[i * dimension + j] - dot;
            factor[i * dimension + j] = if i != j {
                rest / factor[j * dimension + j]
            } else if rest > f64::EPSILON * matrix[i * dimension + i].abs() {
                rest.sqrt()
            } else {
                return Err(Error::NotPositiveDefinite { what, pivot: i, value: rest });
            };
        }
    }
    Ok(factor)
}

/// Inverse of a lower triangular matrix, by forward substitution column by column.
pub fn invert_lower(factor: &[f64], dimension: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; dimension * dimension];
    for column in 0..dimension {
        for row in column..dimension {
            let dot: f64 = (column..row)
                .map(|k| factor[row * dimension + k] * inverse[k * dimension + column])
                .sum();
            let unit = if row == column { 1.0 } else { 0.0 };
            inverse[row * dimension + column] = (unit - dot) / factor[row * dimension + row];
        }
    }
    inverse
}

/// Mean and standard deviation (divisor `n - 1`; 1 where there is one row only) of every column.
pub fn column_moments(values: &[f64], columns: usize) -> (Vec<f64>, Vec<f64>) {
    let rows = values.len() / columns;
    let mut mean = vec![0.0; columns];
    let mut square = vec![0.0; columns];
    for row in values.chunks_exact(columns) {
        for (mean, value) in mean.iter_mut().zip(row) {
            *mean += value / rows as f64;
        }
    }
    for row in values.chunks_exact(columns) {
        for ((square, value), mean) in square.iter_mut().zip(row).zip(&mean) {
            *square += (value - mean).powi(2);
        }
    }
    let std_dev = square
        .into_iter()
        .map(|square| if rows > 1 { (square / (rows - 1) as f64).sqrt() } else { 1.0 })
        .collect();
    (mean, std_dev)
}

/// Covariance matrix (divisor `n - 1`) of rows with the given mean.
pub fn covariance(values: &[f64], mean: &[f64]) -> Vec<f64> {
    let columns = mean.len();
    let rows = values.len() / columns;
    let mut covariance = vec![0.0; columns * columns];
    for row in values.chunks_exact(columns) {
        for i in 0..columns {
            for j in 0..columns {
                covariance[i * columns + j] +=
                    (row[i] - mean[i]) * (row[j] - mean[j]) / (rows - 1) as f64;
            }
        }
    }
    covariance
}
