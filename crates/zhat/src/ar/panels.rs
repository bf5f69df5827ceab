//! Matrices in panels of 16 columns, the layout in which every product of the networks runs without packing.

use std::ops::Range;

use super::products::{self, Start};

/// Columns of a panel: two AVX2 registers, one AVX-512 register, four NEON registers.
pub const STRIP: usize = 16;

/// The values of a row in a panel, or of a bias.
pub type Strip = [f32; STRIP];

/// A `[rows, columns]` matrix, stored panel by panel: the 16 values of a row in a panel are adjacent, the rows of a
/// panel follow each other.
///
/// As a left factor, as a right factor and under a transposed product the kernels read it in order, so nothing is ever
/// packed; and an elementwise operation on a panel finds it in the first-level cache, right after the product that
/// made it. Columns past the last are padding: in weights they are zero, elsewhere finite and never used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Panels {
    rows: usize,
    columns: usize,
    data: Vec<f32>,
}

impl Panels {
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, data: vec![0.0; rows * columns.next_multiple_of(STRIP)] }
    }

    /// From values in row-major order with `stride` values from row to row.
    pub fn from_rows(values: &[f32], stride: usize, rows: usize, columns: usize) -> Self {
        let mut panels = Self::zeros(rows, columns);
        panels.read_rows(values, stride);
        panels
    }

    /// Takes values in row-major order with `stride` values from row to row.
    pub fn read_rows(&mut self, values: &[f32], stride: usize) {
        for panel in 0..self.num_panels() {
            let (from, width) = self.columns_of(panel);
            for (row, to) in self.panel_mut(panel).chunks_exact_mut(STRIP).enumerate() {
                copy(&values[row * stride + from..][..width], &mut to[..width]);
            }
        }
    }

    /// Takes the values of another matrix with as many rows as this has columns, transposed.
    pub fn read_transposed(&mut self, matrix: &Panels) {
        assert_eq!((self.rows, self.columns), (matrix.columns, matrix.rows));
        // Panel by panel on both sides, so that each square of 16 x 16 values stays in the first-level cache.
        for to in 0..self.num_panels() {
            let (first, height) = self.columns_of(to);
            for from in 0..matrix.num_panels() {
                let (column, width) = matrix.columns_of(from);
                let square = matrix.panel(from)[first * STRIP..][..height * STRIP].as_chunks().0;
                let out = self.panel_mut(to)[column * STRIP..].as_chunks_mut::<STRIP>().0;
                for (row, values) in square.iter().enumerate() {
                    let values: &Strip = values;
                    for (out, value) in out[..width].iter_mut().zip(values) {
                        out[row] = *value;
                    }
                }
            }
        }
    }

    /// The values in row-major order.
    pub fn to_rows(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.rows * self.columns];
        self.write_rows(&mut values, self.columns);
        values
    }

    /// Writes the values in row-major order with `stride` values from row to row.
    pub fn write_rows(&self, values: &mut [f32], stride: usize) {
        for panel in 0..self.num_panels() {
            let (to, width) = self.columns_of(panel);
            for (row, from) in self.panel(panel).chunks_exact(STRIP).enumerate() {
                copy(&from[..width], &mut values[row * stride + to..][..width]);
            }
        }
    }

    /// Takes another shape and keeps its memory; what it holds afterwards is finite but otherwise unspecified.
    pub fn reshape(&mut self, rows: usize, columns: usize) {
        (self.rows, self.columns) = (rows, columns);
        // Memory only grows: what is there is overwritten anyway.
        if self.data.len() < self.len() {
            self.data.resize(self.len(), 0.0);
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, without padding.
    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn num_panels(&self) -> usize {
        self.columns.div_ceil(STRIP)
    }

    pub fn set(&mut self, row: usize, column: usize, value: f32) {
        let index = self.index(row, column);
        self.data[index] = value;
    }

    /// A panel: `rows` times 16 values.
    pub fn panel(&self, panel: usize) -> &[f32] {
        &self.data[panel * self.rows * STRIP..][..self.rows * STRIP]
    }

    pub fn panel_mut(&mut self, panel: usize) -> &mut [f32] {
        &mut self.data[panel * self.rows * STRIP..][..self.rows * STRIP]
    }

    /// All values, panel by panel, with the padding.
    pub fn data(&self) -> &[f32] {
        &self.data[..self.len()]
    }

    pub fn data_mut(&mut self) -> &mut [f32] {
        let len = self.len();
        &mut self.data[..len]
    }

    /// Copies a row, padding included, to `values`.
    pub fn read_row(&self, row: usize, values: &mut [f32]) {
        for (panel, values) in values.chunks_exact_mut(STRIP).take(self.num_panels()).enumerate() {
            values.copy_from_slice(&self.panel(panel)[row * STRIP..][..STRIP]);
        }
    }

    /// Rows of another matrix: row `i` becomes row `rows[i]` of `from`.
    pub fn gather(&mut self, from: &Panels, rows: &[usize]) {
        self.reshape(rows.len(), from.columns);
        for panel in 0..from.num_panels() {
            let source = from.panel(panel);
            for (to, &row) in self.panel_mut(panel).chunks_exact_mut(STRIP).zip(rows) {
                to.copy_from_slice(&source[row * STRIP..][..STRIP]);
            }
        }
    }

    /// Adds row `i` of another matrix to row `rows[i]`.
    pub fn scatter_add(&mut self, from: &Panels, rows: &[usize]) {
        for panel in 0..from.num_panels() {
            let target = self.panel_mut(panel);
            for (from, &row) in from.panel(panel).chunks_exact(STRIP).zip(rows) {
                for (to, from) in target[row * STRIP..][..STRIP].iter_mut().zip(from) {
                    *to += from;
                }
            }
        }
    }

    /// Takes the values of `left * right + bias`, where only the first `depth` columns of `left` and rows of `right` take
    /// part. Columns that `right` does not have stay as they are.
    ///
    /// # Shapes
    /// - `left`: `[rows, >= depth]`, `right`: `[>= depth, columns]`
    /// - `self`: `[rows, >= columns]`, `bias`: `columns`, padded
    pub fn set_product(
        &mut self,
        left: &Panels,
        right: &Panels,
        depth: usize,
        bias: Option<&[f32]>,
    ) {
        for panel in 0..right.num_panels() {
            let start = bias.map_or(Start::Zero, |bias| Start::Bias(strip(bias, panel)));
            left.multiply_panel(right, 0..depth, panel, start, self.panel_mut(panel));
        }
    }

    /// One panel of the product with `right`, where only these columns and rows of `right` take part; the first of them begins a
    /// panel.
    pub fn multiply_panel(
        &self,
        right: &Panels,
        depth: Range<usize>,
        panel: usize,
        start: Start,
        out: &mut [f32],
    ) {
        assert!(depth.start.is_multiple_of(STRIP) && out.len() == self.rows * STRIP);
        assert!(depth.end <= self.columns && depth.end <= right.rows);
        let left = &self.data[depth.start * self.rows..];
        let right = &right.panel(panel)[depth.start * STRIP..];
        products::multiply_panel(left, self.rows, right, depth.len(), start, out);
    }

    /// Adds `left^T * right` for the first `columns` columns of `left`: the gradient of a weight matrix.
    ///
    /// # Shapes
    /// - `left`: `[rows, >= columns]`, `right`: `[rows, outputs]`
    /// - `self`: `[>= columns, outputs]`
    pub fn add_transposed_product(&mut self, left: &Panels, columns: usize, right: &Panels) {
        for panel in 0..right.num_panels() {
            self.add_transposed_panel(left, columns, right, panel);
        }
    }

    /// One panel of [`add_transposed_product`](Self::add_transposed_product).
    pub fn add_transposed_panel(
        &mut self,
        left: &Panels,
        columns: usize,
        right: &Panels,
        panel: usize,
    ) {
        assert!(left.rows == right.rows && columns <= left.columns && columns <= self.rows);
        assert_eq!(self.columns, right.columns);
        let right = right.panel(panel);
        let blocks = self.panel_mut(panel).chunks_mut(STRIP * STRIP);
        for (block, out) in blocks.take(columns.div_ceil(STRIP)).enumerate() {
            let wanted = STRIP.min(columns - block * STRIP);
            products::multiply_transposed(left.panel(block), right, wanted, out);
        }
    }

    /// The first column of a panel, and how many it has without padding.
    fn columns_of(&self, panel: usize) -> (usize, usize) {
        let first = panel * STRIP;
        (first, STRIP.min(self.columns - first))
    }

    /// Number of values, with the padding.
    fn len(&self) -> usize {
        self.rows * self.columns.next_multiple_of(STRIP)
    }

    fn index(&self, row: usize, column: usize) -> usize {
        debug_assert!(row < self.rows && column < self.columns.next_multiple_of(STRIP));
        ((column / STRIP) * self.rows + row) * STRIP + column % STRIP
    }
}

/// Copies a row of a panel; a whole one as a register, without a call.
fn copy(from: &[f32], to: &mut [f32]) {
    match (from.as_array::<STRIP>(), to.as_mut_array::<STRIP>()) {
        (Some(from), Some(to)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}

/// A bias, padded to whole panels with zeros.
pub fn padded(values: &[f32]) -> Vec<f32> {
    let mut values = values.to_vec();
    values.resize(values.len().next_multiple_of(STRIP), 0.0);
    values
}

/// The values of a padded bias that belong to a panel.
pub fn strip(values: &[f32], panel: usize) -> &Strip {
    values[panel * STRIP..][..STRIP].as_array().expect("16 values")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    fn random(rows: usize, columns: usize, seed: u64) -> Vec<f32> {
        let mut rng = Streams::new(seed).stream("test", 0, 0);
        (0..rows * columns).map(|_| rng.normal() as f32).collect()
    }

    #[test]
    fn products_equal_the_definition_for_any_shape() {
        for (rows, inner, outputs) in
            [(1, 1, 1), (5, 17, 3), (13, 64, 94), (21, 65, 128), (168, 16, 33), (7, 6, 256)]
        {
            let (a, b) = (random(rows, inner, 1), random(inner, outputs, 2));
            let left = Panels::from_rows(&a, inner, rows, inner);
            let right = Panels::from_rows(&b, outputs, inner, outputs);
            let bias: Vec<f32> = random(1, right.num_panels() * STRIP, 3);
            let mut out = random(rows, outputs, 4);
            let before = out.clone();
            let mut product = Panels::from_rows(&out, outputs, rows, outputs);
            for panel in 0..right.num_panels() {
                let bias = bias[panel * STRIP..][..STRIP].try_into().unwrap();
                Panels::multiply_panel(
                    &left,
                    &right,
                    0..inner,
                    panel,
                    Start::Add(bias),
                    product.panel_mut(panel),
                );
            }
            for row in 0..rows {
                for column in 0..outputs {
                    let sum: f64 = (0..inner)
                        .map(|k| f64::from(a[row * inner + k]) * f64::from(b[k * outputs + column]))
                        .sum();
                    out[row * outputs + column] += bias[column] + sum as f32;
                }
            }
            close(&product.to_rows(), &out);
            let mut gradient = Panels::zeros(inner, outputs);
            let right = Panels::from_rows(&before, outputs, rows, outputs);
            gradient.add_transposed_product(&left, inner, &right);
            gradient.add_transposed_product(&left, inner, &right);
            let mut expected = vec![0.0; inner * outputs];
            for k in 0..inner {
                for column in 0..outputs {
                    expected[k * outputs + column] = 2.0
                        * (0..rows)
                            .map(|r| a[r * inner + k] * before[r * outputs + column])
                            .sum::<f32>();
                }
            }
            close(&gradient.to_rows(), &expected);
        }
    }

    fn close(a: &[f32], b: &[f32]) {
        assert_eq!(a.len(), b.len());
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-4 * (1.0 + b.abs())));
    }

    #[test]
    fn a_transpose_has_rows_as_columns_in_memory_that_held_something_else() {
        let values = random(9, 35, 5);
        let panels = Panels::from_rows(&values, 35, 9, 35);
        let mut transposed = Panels::from_rows(&random(35, 9, 6), 9, 35, 9);
        transposed.read_transposed(&panels);
        let expected = (0..35).flat_map(|column| values[column..].iter().step_by(35)).copied();
        assert_eq!(transposed.to_rows(), expected.collect::<Vec<_>>());
    }
}
