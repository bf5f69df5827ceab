//! Activations, their derivatives, and other passes over a panel that is still in the cache.

use super::config::Activation;
use super::mixture::total;
use super::panels::{STRIP, Strip};
use crate::simd::{dispatch, elu, multiply_add, tanh};

dispatch! {
    /// `out = activation(values)`.
    pub fn activate<const FMA: bool>(activation: Activation, values: &[f32], out: &mut [f32]) {
        match activation {
            Activation::Relu => out.iter_mut().zip(values).for_each(|(out, x)| *out = x.max(0.0)),
            Activation::Tanh => out.iter_mut().zip(values).for_each(|(out, x)| *out = tanh::<FMA>(*x)),
            Activation::Elu => out.iter_mut().zip(values).for_each(|(out, x)| *out = elu::<FMA>(*x)),
        }
    }

    /// `values = activation(values)` in place.
    pub fn activate_in_place<const FMA: bool>(activation: Activation, values: &mut [f32]) {
        match activation {
            Activation::Relu => values.iter_mut().for_each(|x| *x = x.max(0.0)),
            Activation::Tanh => values.iter_mut().for_each(|x| *x = tanh::<FMA>(*x)),
            Activation::Elu => values.iter_mut().for_each(|x| *x = elu::<FMA>(*x)),
        }
    }

    /// `gradient *= scale * activation'(.)`, where `values` is what the forward pass kept, and `sums += ` its column sums.
    pub fn derivative<const FMA: bool>(
        activation: Activation,
        dropout_scale: Option<f32>,
        values: &[f32],
        gradient: &mut [f32],
        sums: &mut [f32],
    ) {
        let sums: &mut Strip = sums.as_mut_array().expect("a panel's columns");
        let mut total = *sums;
        let rows =
            gradient.as_chunks_mut::<STRIP>().0.iter_mut().zip(values.as_chunks::<STRIP>().0);
        let scale = dropout_scale.unwrap_or(1.0);
        // What dropout kept is scale * tanh(z), never zero; what it dropped is zero.
        let inverse = 1.0 / scale;
        for (gradient, values) in rows {
            let mut slope = [0.0; STRIP];
            match (activation, dropout_scale) {
                (Activation::Relu, _) => {
                    for l in 0..STRIP {
                        slope[l] = if values[l] > 0.0 { scale } else { 0.0 };
                    }
                }
                (Activation::Tanh, None) => {
                    for l in 0..STRIP {
                        slope[l] = 1.0 - values[l] * values[l];
                    }
                }
                (Activation::Tanh, Some(_)) => {
                    for l in 0..STRIP {
                        let tanh = values[l] * inverse;
                        let kept = if values[l] != 0.0 { scale } else { 0.0 };
                        slope[l] = kept * (1.0 - tanh * tanh);
                    }
                }
                (Activation::Elu, None) => {
                    for l in 0..STRIP {
                        slope[l] = 1.0 + values[l].min(0.0);
                    }
                }
                (Activation::Elu, Some(_)) => {
                    for l in 0..STRIP {
                        let kept = if values[l] != 0.0 { scale } else { 0.0 };
                        slope[l] = kept * (1.0 + (values[l] * inverse).min(0.0));
                    }
                }
            }
            for l in 0..STRIP {
                gradient[l] *= slope[l];
            }
            for l in 0..STRIP {
                total[l] += gradient[l];
            }
        }
        *sums = total;
    }

    /// `total += gradient * activation'(.)`.
    pub fn add_derivative<const FMA: bool>(
        activation: Activation, values: &[f32], gradient: &[f32], total: &mut [f32],
    ) {
        let terms = total.iter_mut().zip(gradient).zip(values);
        match activation {
            Activation::Relu => {
                terms.for_each(|((total, g), a)| *total += if *a > 0.0 { *g } else { 0.0 });
            }
            Activation::Tanh => terms.for_each(|((total, g), a)| *total += g * (1.0 - a * a)),
            Activation::Elu => terms.for_each(|((total, g), a)| *total += g * (1.0 + a.min(0.0))),
        }
    }

    /// `sums += ` the column sums of a panel.
    pub fn add_column_sums<const FMA: bool>(values: &[f32], sums: &mut [f32]) {
        let sums: &mut Strip = sums.as_mut_array().expect("a panel's columns");
        let mut total = *sums;
        for row in values.as_chunks::<STRIP>().0 {
            for l in 0..STRIP {
                total[l] += row[l];
            }
        }
        *sums = total;
    }

    /// `out[i] = start + sum_k values[i, k] weights[k]`, over all panels of `out.len()` rows each.
    pub fn dots<const FMA: bool>(values: &[f32], weights: &[f32], start: f32, out: &mut [f32]) {
        let rows = out.len();
        let (values, weights) = (values.as_chunks::<STRIP>().0, weights.as_chunks::<STRIP>().0);
        for (row, out) in out.iter_mut().enumerate() {
            let mut sums = [0.0; STRIP];
            for (panel, weights) in weights.iter().enumerate() {
                let values = &values[panel * rows + row];
                for l in 0..STRIP {
                    sums[l] = multiply_add::<FMA>(values[l], weights[l], sums[l]);
                }
            }
            *out = total(&sums) + start;
        }
    }

    /// The reverse of [`dots`] followed by the activation: `out[i, l] = outer[i] weights[l] activation'(values[i, l])`, and
    /// `sums[l] += sum_i outer[i] values[i, l]`.
    pub fn outer_derivative<const FMA: bool>(
        activation: Activation,
        outer: &[f32],
        weights: &[f32],
        values: &[f32],
        out: &mut [f32],
        sums: &mut [f32],
    ) {
        let weights: &Strip = weights.as_array().expect("a panel's columns");
        let sums: &mut Strip = sums.as_mut_array().expect("a panel's columns");
        let mut total = *sums;
        let rows =
            out.as_chunks_mut::<STRIP>().0.iter_mut().zip(values.as_chunks::<STRIP>().0).zip(outer);
        for ((out, values), &outer) in rows {
            for l in 0..STRIP {
                total[l] = multiply_add::<FMA>(outer, values[l], total[l]);
            }
            let mut slope = [0.0; STRIP];
            match activation {
                Activation::Relu => {
                    for l in 0..STRIP {
                        slope[l] = if values[l] > 0.0 { 1.0 } else { 0.0 };
                    }
                }
                Activation::Tanh => {
                    for l in 0..STRIP {
                        slope[l] = 1.0 - values[l] * values[l];
                    }
                }
                Activation::Elu => {
                    for l in 0..STRIP {
                        slope[l] = 1.0 + values[l].min(0.0);
                    }
                }
            }
            for l in 0..STRIP {
                out[l] = outer * weights[l] * slope[l];
            }
        }
        *sums = total;
    }

    /// `out[i] = base[sharing[i]] + x[i] weights`, the bases in order where nothing is shared.
    pub fn add_scaled<const FMA: bool>(
        base: &[f32], sharing: &[usize], x: &[f32], weights: &Strip, out: &mut [f32],
    ) {
        let base = base.as_chunks::<STRIP>().0;
        for (row, (out, &x)) in out.as_chunks_mut::<STRIP>().0.iter_mut().zip(x).enumerate() {
            let base = &base[if sharing.is_empty() { row } else { sharing[row] }];
            for l in 0..STRIP {
                out[l] = multiply_add::<FMA>(x, weights[l], base[l]);
            }
        }
    }

    /// `sums += sum_i x[i] gradient[i]`: the reverse of [`add_scaled`] for its weights.
    pub fn add_weighted_sums<const FMA: bool>(x: &[f32], gradient: &[f32], sums: &mut [f32]) {
        let sums: &mut Strip = sums.as_mut_array().expect("a panel's columns");
        let mut total = *sums;
        for (row, &x) in gradient.as_chunks::<STRIP>().0.iter().zip(x) {
            for l in 0..STRIP {
                total[l] = multiply_add::<FMA>(x, row[l], total[l]);
            }
        }
        *sums = total;
    }
}
