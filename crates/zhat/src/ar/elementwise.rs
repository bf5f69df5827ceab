//! Activations, their derivatives, and other passes over a panel that is still in the cache.

use super::panels::LANES;
use super::simd::{dispatch, multiply_add, tanh};

type Lane = [f32; LANES];

/// The activation functions of the networks, and their derivatives as a function of their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `max(x, 0)`
    Relu,
    /// `tanh(x)`
    Tanh,
}

dispatch! {
    /// `out = shape(values)`.
    pub fn activate<const FMA: bool>(shape: Shape, values: &[f32], out: &mut [f32]) {
        match shape {
            Shape::Relu => out.iter_mut().zip(values).for_each(|(out, x)| *out = x.max(0.0)),
            Shape::Tanh => out.iter_mut().zip(values).for_each(|(out, x)| *out = tanh::<FMA>(*x)),
        }
    }

    /// `values = shape(values)` in place.
    pub fn activate_in_place<const FMA: bool>(shape: Shape, values: &mut [f32]) {
        match shape {
            Shape::Relu => values.iter_mut().for_each(|x| *x = x.max(0.0)),
            Shape::Tanh => values.iter_mut().for_each(|x| *x = tanh::<FMA>(*x)),
        }
    }

    /// `gradient *= scale * shape'(.)` where `activation` is what the forward pass kept, and `sums += ` its column sums.
    pub fn derivative<const FMA: bool>(
        shape: Shape,
        dropout_scale: Option<f32>,
        activation: &[f32],
        gradient: &mut [f32],
        sums: &mut [f32],
    ) {
        let sums: &mut Lane = sums.as_mut_array().expect("a panel's columns");
        let mut total = *sums;
        let rows =
            gradient.as_chunks_mut::<LANES>().0.iter_mut().zip(activation.as_chunks::<LANES>().0);
        let scale = dropout_scale.unwrap_or(1.0);
        // What dropout kept is scale * tanh(z), never zero; what it dropped is zero.
        let inverse = 1.0 / scale;
        for (gradient, activation) in rows {
            let mut slope = [0.0; LANES];
            match (shape, dropout_scale) {
                (Shape::Relu, _) => {
                    for l in 0..LANES {
                        slope[l] = if activation[l] > 0.0 { scale } else { 0.0 };
                    }
                }
                (Shape::Tanh, None) => {
                    for l in 0..LANES {
                        slope[l] = 1.0 - activation[l] * activation[l];
                    }
                }
                (Shape::Tanh, Some(_)) => {
                    for l in 0..LANES {
                        let tanh = activation[l] * inverse;
                        let kept = if activation[l] != 0.0 { scale } else { 0.0 };
                        slope[l] = kept * (1.0 - tanh * tanh);
                    }
                }
            }
            for l in 0..LANES {
                gradient[l] *= slope[l];
            }
            for l in 0..LANES {
                total[l] += gradient[l];
            }
        }
        *sums = total;
    }

    /// `total += gradient * shape'(.)`.
    pub fn add_derivative<const FMA: bool>(
        shape: Shape, activation: &[f32], gradient: &[f32], total: &mut [f32],
    ) {
        let values = total.iter_mut().zip(gradient).zip(activation);
        match shape {
            Shape::Relu => values.for_each(|((total, g), a)| *total += if *a > 0.0 { *g } else { 0.0 }),
            Shape::Tanh => values.for_each(|((total, g), a)| *total += g * (1.0 - a * a)),
        }
    }

    /// `sums += ` the column sums of a panel.
    pub fn add_column_sums<const FMA: bool>(values: &[f32], sums: &mut [f32]) {
        let sums: &mut Lane = sums.as_mut_array().expect("a panel's columns");
        let mut total = *sums;
        for row in values.as_chunks::<LANES>().0 {
            for l in 0..LANES {
                total[l] += row[l];
            }
        }
        *sums = total;
    }

    /// `out[i] += sum_l values[i, l] weights[l]`, where `out` holds one vector of partial sums for each row.
    pub fn add_dot<const FMA: bool>(values: &[f32], weights: &[f32], out: &mut [f32]) {
        let weights: &Lane = weights.as_array().expect("a panel's columns");
        for (out, row) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(values.as_chunks::<LANES>().0) {
            for l in 0..LANES {
                out[l] = multiply_add::<FMA>(row[l], weights[l], out[l]);
            }
        }
    }

    /// The reverse of [`add_dot`] followed by the activation: `out[i, l] = outer[i] weights[l] shape'(values[i, l])`, and
    /// `sums[l] += sum_i outer[i] values[i, l]`.
    pub fn outer_derivative<const FMA: bool>(
        shape: Shape,
        outer: &[f32],
        weights: &[f32],
        values: &[f32],
        out: &mut [f32],
        sums: &mut [f32],
    ) {
        let (weights, sums): (&Lane, &mut Lane) = (
            weights.as_array().expect("a panel's columns"),
            sums.as_mut_array().expect("a panel's columns"),
        );
        let mut total = *sums;
        let rows =
            out.as_chunks_mut::<LANES>().0.iter_mut().zip(values.as_chunks::<LANES>().0).zip(outer);
        for ((out, values), &outer) in rows {
            for l in 0..LANES {
                total[l] = multiply_add::<FMA>(outer, values[l], total[l]);
            }
            let mut slope = [0.0; LANES];
            match shape {
                Shape::Relu => {
                    for l in 0..LANES {
                        slope[l] = if values[l] > 0.0 { 1.0 } else { 0.0 };
                    }
                }
                Shape::Tanh => {
                    for l in 0..LANES {
                        slope[l] = 1.0 - values[l] * values[l];
                    }
                }
            }
            for l in 0..LANES {
                out[l] = outer * weights[l] * slope[l];
            }
        }
        *sums = total;
    }
}
