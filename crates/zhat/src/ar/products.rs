//! The inner loops of matrix products on panels.
//!
//! The order of the sums does not depend on the rows around a row, so tiles of any size give the same products.

use super::panels::{STRIP, Strip};
use crate::simd::{dispatch, has_wide_registers, multiply_add};

/// What a product starts from.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// The bias of each column.
    Bias(&'a Strip),
    /// What is there, plus the bias of each column.
    Add(&'a Strip),
    /// Nothing.
    Zero,
}

dispatch! {
    /// One panel of a product: `out[i] = start + sum_k left[i, k] right[k]`.
    pub fn multiply_panel<const FMA: bool>(
        left: &[f32], rows: usize, right: &[f32], depth: usize, start: Start, out: &mut [f32],
    ) {
        // 6 x 16 values are 12 of the 16 AVX2 registers, and 12 sums in flight hide the latency of the multiply-adds; of AVX-512
        // registers they would be 6, which hide too little of it.
        let mut row = 0;
        if has_wide_registers() {
            while row + 12 <= rows {
                rows_times_panel::<12, FMA>(left, rows, row, right, depth, start, out);
                row += 12;
            }
        }
        while row + 6 <= rows {
            rows_times_panel::<6, FMA>(left, rows, row, right, depth, start, out);
            row += 6;
        }
        match rows - row {
            5 => rows_times_panel::<5, FMA>(left, rows, row, right, depth, start, out),
            4 => rows_times_panel::<4, FMA>(left, rows, row, right, depth, start, out),
            3 => rows_times_panel::<3, FMA>(left, rows, row, right, depth, start, out),
            2 => rows_times_panel::<2, FMA>(left, rows, row, right, depth, start, out),
            1 => rows_times_panel::<1, FMA>(left, rows, row, right, depth, start, out),
            _ => {}
        }
    }
}

#[inline(always)]
fn rows_times_panel<const R: usize, const FMA: bool>(
    left: &[f32],
    rows: usize,
    row: usize,
    right: &[f32],
    depth: usize,
    start: Start,
    out: &mut [f32],
) {
    let out: &mut [Strip; R] = out.as_chunks_mut().0[row..row + R].as_mut_array().expect("R rows");
    let mut sums = match start {
        Start::Bias(bias) => [*bias; R],
        Start::Zero => [[0.0; STRIP]; R],
        Start::Add(bias) => {
            let mut sums = *out;
            for sum in &mut sums {
                for (sum, bias) in sum.iter_mut().zip(bias) {
                    *sum += bias;
                }
            }
            sums
        }
    };
    let right = &right.as_chunks::<STRIP>().0[..depth];
    let (blocks, rest) = right.as_chunks::<STRIP>();
    // The rows' values in each panel of the left factor, which lie next to each other.
    let mut left = left
        .as_chunks::<STRIP>()
        .0
        .chunks_exact(rows)
        .map(|panel| -> &[Strip; R] { panel[row..row + R].as_array().expect("R rows") });
    for (block, left) in blocks.iter().zip(&mut left) {
        for k in 0..STRIP {
            for r in 0..R {
                for l in 0..STRIP {
                    sums[r][l] = multiply_add::<FMA>(left[r][k], block[k][l], sums[r][l]);
                }
            }
        }
    }
    if let (false, Some(left)) = (rest.is_empty(), left.next()) {
        for (k, right) in rest.iter().enumerate() {
            for r in 0..R {
                for l in 0..STRIP {
                    sums[r][l] = multiply_add::<FMA>(left[r][k], right[l], sums[r][l]);
                }
            }
        }
    }
    *out = sums;
}

dispatch! {
    /// `out[i] += sum_r left[r, i] right[r]` for the first `columns` of the 16 columns of a left panel.
    pub fn multiply_transposed<const FMA: bool>(
        left: &[f32], right: &[f32], columns: usize, out: &mut [f32],
    ) {
        if columns == STRIP && has_wide_registers() {
            // All 16 at once, or 8 and 8, the compiler turns into vectors along the wrong axis.
            columns_times_panel::<10, FMA>(left, right, 0, out);
            columns_times_panel::<6, FMA>(left, right, 10, out);
            return;
        }
        if columns == STRIP {
            columns_times_panel::<6, FMA>(left, right, 0, out);
            columns_times_panel::<5, FMA>(left, right, 6, out);
            columns_times_panel::<5, FMA>(left, right, 11, out);
            return;
        }
        let mut column = 0;
        while column + 4 <= columns {
            columns_times_panel::<4, FMA>(left, right, column, out);
            column += 4;
        }
        while column < columns {
            columns_times_panel::<1, FMA>(left, right, column, out);
            column += 1;
        }
    }
}

#[inline(always)]
fn columns_times_panel<const R: usize, const FMA: bool>(
    left: &[f32],
    right: &[f32],
    column: usize,
    out: &mut [f32],
) {
    let mut sums = [[0.0; STRIP]; R];
    for (left, right) in left.as_chunks::<STRIP>().0.iter().zip(right.as_chunks::<STRIP>().0) {
        for r in 0..R {
            for l in 0..STRIP {
                sums[r][l] = multiply_add::<FMA>(left[column + r], right[l], sums[r][l]);
            }
        }
    }
    for (out, sums) in out.as_chunks_mut::<STRIP>().0[column..].iter_mut().zip(sums) {
        for (out, sum) in out.iter_mut().zip(sums) {
            *out += sum;
        }
    }
}
