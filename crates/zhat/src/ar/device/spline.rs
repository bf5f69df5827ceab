//! Splines of many rows in Burn's operations: the bin of a row is picked by a mask, so that nothing is read back.

use burn::tensor::activation::{softmax, softplus};
use burn::tensor::{Tensor, TensorData};

use crate::ar::spline::{RANGE, SMALLEST, raw_of_slope_one};

/// A [`Spline`](crate::ar::spline::Spline) for each row.
pub struct Splines {
    bins: usize,
    /// Sizes of the bins on both axes, `[rows, bins]`, and where they begin.
    sizes: [Tensor<2>; 2],
    starts: [Tensor<2>; 2],
    /// `[rows, bins + 1]`
    slopes: Tensor<2>,
}

/// A row's own bin, each `[rows, 1]`.
struct Bin {
    sizes: [Tensor<2>; 2],
    starts: [Tensor<2>; 2],
    slopes: [Tensor<2>; 2],
}

impl Splines {
    /// From raw outputs.
    ///
    /// # Shapes
    /// - `raw`: `[rows, 3 bins - 1]`
    pub fn new(raw: Tensor<2>, bins: usize) -> Self {
        let (range, smallest) = (f64::from(RANGE), f64::from(SMALLEST));
        let (rows, device) = (raw.dims()[0], raw.device().inner());
        let sizes = [0, bins].map(|from| {
            let shares = softmax(raw.clone().narrow(1, from, bins), 1);
            (shares * (1.0 - smallest * bins as f64) + smallest) * (2.0 * range)
        });
        // Sums of the sizes before each bin.
        let before = (0..bins * bins).map(|cell| f32::from(u8::from(cell / bins < cell % bins)));
        let before = TensorData::new(before.collect::<Vec<f32>>(), [bins, bins]);
        let before: Tensor<2> = Tensor::from_data(before, (&device, raw.dtype()));
        let starts = sizes.each_ref().map(|sizes| sizes.clone().matmul(before.clone()) - range);
        let one: Tensor<2> = Tensor::ones([rows, 1], (&device, raw.dtype()));
        let shift = f64::from(raw_of_slope_one());
        let inner = softplus(raw.narrow(1, 2 * bins, bins - 1) + shift, 1.0) + smallest;
        let slopes = Tensor::cat(vec![one.clone(), inner, one], 1);
        Self { bins, sizes, starts, slopes }
    }

    /// `log q(x)` of a value for each row.
    ///
    /// # Shapes
    /// - `x`: `[rows, 1]`
    pub fn log_density(&self, x: Tensor<2>) -> Tensor<2> {
        let bin = self.bin(0, &x);
        let [left, bottom] = bin.starts;
        let ([w, h], [d0, d1]) = (bin.sizes, bin.slopes);
        let inside = x.clone().abs().lower_elem(RANGE).float();
        let t = ((x.clone() - left) / w.clone()).clamp(0.0, 1.0);
        let (s, u) = (h.clone() / w, t.clone() * (t.clone().neg() + 1.0));
        let below = s.clone() + (d1.clone() + d0.clone() - s.clone() * 2.0) * u.clone();
        let above = s.clone() * t.clone().square() + d0.clone() * u.clone();
        let z = bottom + h * above / below.clone();
        let top = d1 * t.clone().square() + s.clone() * u * 2.0 + d0 * (t.neg() + 1.0).square();
        let log_slope = s.log() * 2.0 + top.log() - below.log() * 2.0;
        let outside = x.square() * -0.5;
        let log_q =
            (z.square() * -0.5 + log_slope) * inside.clone() + outside * (inside.neg() + 1.0);
        log_q - 0.5 * (2.0 * std::f64::consts::PI).ln()
    }

    /// The `x` of each row with `S(x) = z`.
    ///
    /// # Shapes
    /// - `z`: `[rows, 1]`
    pub fn quantile(&self, z: Tensor<2>) -> Tensor<2> {
        let bin = self.bin(1, &z);
        let [left, bottom] = bin.starts;
        let ([w, h], [d0, d1]) = (bin.sizes, bin.slopes);
        let outside = z.clone().abs().greater_equal_elem(RANGE);
        let (slope, y) = (h.clone() / w.clone(), (z.clone() - bottom).clamp_min(0.0));
        let bend = d1 + d0.clone() - slope.clone() * 2.0;
        let a = h.clone() * (slope.clone() - d0.clone()) + y.clone() * bend.clone();
        let b = h * d0 - y.clone() * bend;
        let c = slope.neg() * y;
        let root = (b.clone().square() - a * c.clone() * 4.0).clamp_min(0.0).sqrt();
        let share = (c * 2.0 / (b.neg() - root)).clamp(0.0, 1.0);
        (left + w * share).mask_where(outside, z)
    }

    /// The last bin that does not begin above the row's value on an axis; outside it does not matter which.
    fn bin(&self, axis: usize, value: &Tensor<2>) -> Bin {
        let (rows, bins) = (value.dims()[0], self.bins);
        let zeros = |columns| -> Tensor<2> {
            Tensor::zeros([rows, columns], (&value.device().inner(), value.dtype()))
        };
        let starts = self.starts[axis].clone().detach();
        let started = starts.lower_equal(value.clone().expand([rows, bins])).float();
        let next = Tensor::cat(vec![started.clone().narrow(1, 1, bins - 1), zeros(1)], 1);
        let mut bin = started - next;
        // Below the first bin none has started.
        let none = bin.clone().sum_dim(1).neg() + 1.0;
        bin = bin + Tensor::cat(vec![none, zeros(bins - 1)], 1);
        let pick = |values: &Tensor<2>| (values.clone() * bin.clone()).sum_dim(1);
        Bin {
            sizes: self.sizes.each_ref().map(pick),
            starts: self.starts.each_ref().map(pick),
            slopes: [0, 1].map(|from| pick(&self.slopes.clone().narrow(1, from, bins))),
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::ar::spline::{Spline, raw_outputs};
    use crate::host::{Place, to_host};
    use crate::rng::Streams;

    #[test]
    fn densities_and_quantiles_are_those_of_one_row_after_the_other() {
        let (bins, rows) = (6, 40);
        let mut rng = Streams::new(2).stream("test", 0, 0);
        let raw = rng.normals(rows * raw_outputs(bins));
        let z: Vec<f64> = rng.normals(rows).iter().map(|z| 2.5 * z).collect();
        let place = Place::new(&Device::flex());
        let splines = Splines::new(place.tensor(raw.clone(), [rows, raw_outputs(bins)]), bins);
        let x = splines.quantile(place.tensor(z.clone(), [rows, 1]));
        let (log_q, x) = (to_host(&splines.log_density(x.clone())), to_host(&x));
        for (row, raw) in raw.chunks_exact(raw_outputs(bins)).enumerate() {
            let mut spline = Spline::new(bins);
            spline.set(&raw.iter().map(|&raw| raw as f32).collect::<Vec<_>>());
            let expected = f64::from(spline.quantile(z[row] as f32));
            assert!((x[row] - expected).abs() < 1e-3, "{row}: {} {expected}", x[row]);
            let expected = f64::from(spline.log_density(x[row] as f32));
            assert!((log_q[row] - expected).abs() < 1e-3, "{row}: {} {expected}", log_q[row]);
        }
    }
}
