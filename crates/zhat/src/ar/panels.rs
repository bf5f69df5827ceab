//! Matrices in panels of 16 columns, the layout in which every product of the networks runs without packing.

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
        for row in 0..rows {
            for (column, &value) in values[row * stride..][..columns].iter().enumerate() {
                panels.set(row, column, value);
            }
        }
        panels
    }

    pub fn transposed(&self) -> Self {
        let mut panels = Self::zeros(self.columns, self.rows);
        for row in 0..self.rows {
            for column in 0..self.columns {
                panels.set(column, row, self.get(row, column));
            }
        }
        panels
    }

    /// The values in row-major order.
    pub fn to_rows(&self) -> Vec<f32> {
        (0..self.rows)
            .flat_map(|row| (0..self.columns).map(move |column| self.get(row, column)))
            .collect()
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

    pub fn get(&self, row: usize, column: usize) -> f32 {
        self.data[self.index(row, column)]
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
    /// part. Columns that `right` does not have stay as they are, and those that only `right` has are left out.
    ///
    /// # Shapes
    /// - `left`: `[rows, >= depth]`, `right`: `[>= depth, columns]`
    /// - `self`: `[rows, any]`, `bias`: `columns`, padded
    pub fn set_product(
        &mut self,
        left: &Panels,
        right: &Panels,
        depth: usize,
        bias: Option<&[f32]>,
    ) {
        for panel in 0..right.num_panels().min(self.num_panels()) {
            let start = bias.map_or(Start::Zero, |bias| Start::Bias(strip(bias, panel)));
            left.multiply_panel(right, depth, panel, start, self.panel_mut(panel));
        }
    }

    /// One panel of the product with `right`.
    pub fn multiply_panel(
        &self,
        right: &Panels,
        depth: usize,
        panel: usize,
        start: Start,
        out: &mut [f32],
    ) {
        assert!(depth <= self.columns && depth <= right.rows && out.len() == self.rows * STRIP);
        products::multiply_panel(&self.data, self.rows, right.panel(panel), depth, start, out);
    }

    /// Adds `left^T * right` for the first `columns` columns of `left`: the gradient of a weight matrix.
    ///
    /// # Shapes
    /// - `left`: `[rows, >= columns]`, `right`: `[rows, outputs]`
    /// - `self`: `[>= columns, outputs]`
    pub fn add_transposed_product(&mut self, left: &Panels, columns: usize, right: &Panels) {
        assert!(left.rows == right.rows && columns <= left.columns && columns <= self.rows);
        assert_eq!(self.columns, right.columns);
        for panel in 0..right.num_panels() {
            let right = right.panel(panel);
            let out = self.panel_mut(panel);
            for (block, out) in out.chunks_mut(STRIP * STRIP).enumerate() {
                let first = block * STRIP;
                if first >= columns {
                    break;
                }
                let wanted = STRIP.min(columns - first);
                products::multiply_transposed(left.panel(block), right, wanted, out);
            }
        }
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
                    inner,
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
    fn a_transpose_of_a_transpose_is_the_matrix() {
        let panels = Panels::from_rows(&random(9, 35, 5), 35, 9, 35);
        assert_eq!(panels.transposed().transposed(), panels);
    }
}
