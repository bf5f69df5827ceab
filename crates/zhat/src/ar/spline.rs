//! A monotone rational-quadratic spline on the line (Durkan et al., 2019): log-density, draws and gradient from raw outputs.
//!
//! `z = S(x)` is standard normal, so `log q(x) = log N(S(x)) + log S'(x)`. The raw outputs are `[widths, heights, slopes]` of
//! the bins on `[-RANGE, RANGE]`, `b`, `b` and `b - 1` of them; outside `S` is the identity. Where all are zero, so is `S`.

use std::sync::LazyLock;

use super::cells::{around, fineness};
use super::quadrature::{Rule, legendre_nodes};
use crate::rng::Stream;
use crate::simd::{dispatch, exp, softplus};

/// The bins are on minus to plus this, in the units of the features, which are standardised.
pub(super) const RANGE: f32 = 5.0;
/// No bin is narrower or lower than this share of the range, and no slope is less.
pub(super) const SMALLEST: f32 = 1e-3;
/// Widest piece of a bin that one rule integrates over, in units of `x` and of `z`.
const WIDEST: [f32; 2] = [1.3, 1.5];
/// `log(2 pi) / 2`
const HALF_LOG_2_PI: f32 = 0.918_938_5;

/// Raw outputs that a spline takes.
pub(super) fn raw_outputs(bins: usize) -> usize {
    3 * bins - 1
}

/// The raw output at which a slope is 1.
pub(super) fn raw_of_slope_one() -> f32 {
    static RAW: LazyLock<f32> = LazyLock::new(|| (1.0 - SMALLEST).exp_m1().ln());
    *RAW
}

/// The spline of one row.
#[derive(Debug, Clone)]
pub struct Spline {
    bins: usize,
    /// Shares of the widths and of the heights before the smallest is added.
    shares: [Vec<f32>; 2],
    /// Knots on both axes.
    knots: [Vec<f32>; 2],
    /// Slopes at the knots.
    slopes: Vec<f32>,
    raw_slopes: Vec<f32>,
}

/// Where a point lies in its bin, and the bin.
struct Place {
    bin: usize,
    width: f32,
    height: f32,
    slopes: [f32; 2],
    /// `(x - left) / width`
    share: f32,
}

impl Spline {
    /// Room for a spline.
    pub fn new(bins: usize) -> Self {
        let knots = vec![0.0; bins + 1];
        Self {
            bins,
            shares: [vec![0.0; bins], vec![0.0; bins]],
            knots: [knots.clone(), knots],
            slopes: vec![1.0; bins + 1],
            raw_slopes: vec![0.0; bins - 1],
        }
    }

    /// Takes in the raw outputs of one row.
    pub fn set(&mut self, raw: &[f32]) {
        let bins = self.bins;
        for (axis, raw) in raw[..2 * bins].chunks_exact(bins).enumerate() {
            let (shares, knots) = (&mut self.shares[axis], &mut self.knots[axis]);
            softmax(raw, shares);
            let mut at = -RANGE;
            knots[0] = at;
            for (knot, share) in knots[1..].iter_mut().zip(shares) {
                at += 2.0 * RANGE * (SMALLEST + (1.0 - SMALLEST * bins as f32) * *share);
                *knot = at;
            }
            knots[bins] = RANGE;
        }
        self.raw_slopes.copy_from_slice(&raw[2 * bins..3 * bins - 1]);
        set_slopes(&self.raw_slopes, raw_of_slope_one(), &mut self.slopes[1..bins]);
    }

    /// `log q(x)`.
    pub fn log_density(&self, x: f32) -> f32 {
        if x.abs() >= RANGE {
            return -0.5 * x * x - HALF_LOG_2_PI;
        }
        let (z, log_slope) = self.forward(&self.place(0, x));
        -0.5 * z * z - HALF_LOG_2_PI + log_slope
    }

    /// A draw.
    pub fn sample(&self, rng: &mut Stream) -> f32 {
        self.quantile(rng.normal() as f32)
    }

    /// The `x` with `S(x) = z`.
    pub fn quantile(&self, z: f32) -> f32 {
        if z.abs() >= RANGE {
            return z;
        }
        let place = self.place(1, z);
        let Place { bin, width, height, slopes: [d0, d1], share } = place;
        let (slope, y) = (height / width, share * height);
        let bend = d1 + d0 - 2.0 * slope;
        let a = height * (slope - d0) + y * bend;
        let b = height * d0 - y * bend;
        let c = -slope * y;
        let root = 2.0 * c / (-b - (b * b - 4.0 * a * c).max(0.0).sqrt());
        self.knots[0][bin] + width * root.clamp(0.0, 1.0)
    }

    /// Points and weights such that `sum w f(x)` is about `E_q[f]`, by Gauss and Legendre's rule within the bins: `S` is smooth in
    /// each, but not from one to the next. All of it has a share of the mass.
    pub fn nodes(&self, rule: Rule, share: f32, mut node: impl FnMut(f32, f32)) {
        let [x, z] = self.knots.each_ref().map(|knots| knots.windows(2));
        for (x, bin) in x.zip(z) {
            let wide = ((x[1] - x[0]) / WIDEST[0]).max((bin[1] - bin[0]) / WIDEST[1]);
            let pieces = wide.ceil();
            let half = 0.5 * (bin[1] - bin[0]) / pieces;
            let mut middle = bin[0] + half;
            while middle < bin[1] {
                let density = |z: f32| share * (-0.5 * z * z - HALF_LOG_2_PI).exp();
                let number = rule.spline_nodes(2.0 * half * density(middle));
                for &[at, weight] in legendre_nodes(number) {
                    let z = middle + half * at;
                    node(self.quantile(z), half * weight * density(z));
                }
                middle += 2.0 * half;
            }
        }
    }

    /// The same on both sides of a value, each bin by itself.
    pub fn nodes_around(&self, x: f32, share: f32, mut node: impl FnMut(f32, f32, bool)) {
        let cut = match x.abs() >= RANGE {
            true => x,
            false => self.forward(&self.place(0, x)).0,
        };
        let [widths, bins] = self.knots.each_ref().map(|knots| knots.windows(2));
        for (ends, bin) in widths.zip(bins) {
            let height = bin[1] - bin[0];
            // No piece is wide in `z`, nor in `x`, where the function varies that is integrated.
            let (widest, number) = fineness(share, 1.0);
            let widest = widest.min(height / (ends[1] - ends[0]) * widest);
            around([bin[0], bin[1]], cut, (widest, number), |z, weight, below| {
                node(self.quantile(z), share * weight, below);
            });
        }
    }

    /// Adds `coefficient` times the gradient of `log q(x)` with respect to the raw outputs.
    pub fn add_gradient(&self, x: f32, coefficient: f32, gradient: &mut [f32]) {
        if x.abs() >= RANGE {
            return;
        }
        let (bins, place) = (self.bins, self.place(0, x));
        let Place { bin, width: w, height: h, slopes: [d0, d1], share: t } = place;
        let (z, _) = self.forward(&place);
        let (s, u) = (h / w, t * (1.0 - t));
        let (bend, above) = (d1 + d0 - 2.0 * s, s * t * t + d0 * u);
        let below = s + bend * u;
        let top = d1 * t * t + 2.0 * s * u + d0 * (1.0 - t) * (1.0 - t);
        // z = y_left + h above / below; log S' = 2 log s + log top - 2 log below.
        let by_z = -z;
        let by_above = by_z * h / below;
        let by_below = -by_z * h * above / (below * below) - 2.0 / below;
        let by_top = 1.0 / top;
        let by_s = 2.0 / s + by_above * t * t + by_below * (1.0 - 2.0 * u) + 2.0 * by_top * u;
        let by_d0 = by_above * u + by_below * u + by_top * (1.0 - t) * (1.0 - t);
        let by_d1 = by_below * u + by_top * t * t;
        let by_t = by_above * (2.0 * s * t + d0 * (1.0 - 2.0 * t))
            + by_below * bend * (1.0 - 2.0 * t)
            + by_top * 2.0 * (d1 * t + s * (1.0 - 2.0 * t) - d0 * (1.0 - t));
        let by_height = by_z * above / below + by_s / w;
        let by_width = -by_s * s / w - by_t * t / w;
        // The knot on the left is the sum of the widths (heights) before it.
        for (axis, left, own) in [(0, -by_t / w, by_width), (1, by_z, by_height)] {
            let shares = &self.shares[axis];
            let mean = left * shares[..bin].iter().sum::<f32>() + own * shares[bin];
            let scale = coefficient * 2.0 * RANGE * (1.0 - SMALLEST * bins as f32);
            for (index, (gradient, share)) in
                gradient[axis * bins..][..bins].iter_mut().zip(shares).enumerate()
            {
                let by = if index < bin {
                    left
                } else if index == bin {
                    own
                } else {
                    0.0
                };
                *gradient += scale * share * (by - mean);
            }
        }
        let shift = raw_of_slope_one();
        for (knot, by) in [(bin, by_d0), (bin + 1, by_d1)] {
            if (1..bins).contains(&knot) {
                let slope = sigmoid(self.raw_slopes[knot - 1] + shift);
                gradient[2 * bins + knot - 1] += coefficient * by * slope;
            }
        }
    }

    /// `S(x)`.
    pub fn z(&self, x: f32) -> f32 {
        if x.abs() >= RANGE { x } else { self.forward(&self.place(0, x)).0 }
    }

    /// The parts of an interval of `z` in each bin, and outside all of them.
    pub fn bins_within(&self, [low, high]: [f32; 2]) -> impl Iterator<Item = [f32; 2]> {
        let knots = self.knots[1].iter().copied();
        let lefts = [f32::NEG_INFINITY].into_iter().chain(knots.clone());
        let bins = lefts.zip(knots.chain([f32::INFINITY]));
        bins.map(move |(left, right)| [left.max(low), right.min(high)])
            .filter(|[left, right]| left < right)
    }

    /// The bin of a value on one of the axes.
    fn place(&self, axis: usize, value: f32) -> Place {
        let inner = &self.knots[axis][1..self.bins];
        let bin = inner.iter().filter(|&&knot| knot <= value).count();
        let size = |axis: usize| self.knots[axis][bin + 1] - self.knots[axis][bin];
        let share = (value - self.knots[axis][bin]) / size(axis);
        let slopes = [self.slopes[bin], self.slopes[bin + 1]];
        Place { bin, width: size(0), height: size(1), slopes, share: share.clamp(0.0, 1.0) }
    }

    /// `S(x)` and `log S'(x)`.
    fn forward(&self, place: &Place) -> (f32, f32) {
        let &Place { bin, width, height, slopes: [d0, d1], share: t } = place;
        let (s, u) = (height / width, t * (1.0 - t));
        let below = s + (d1 + d0 - 2.0 * s) * u;
        let z = self.knots[1][bin] + height * (s * t * t + d0 * u) / below;
        let top = d1 * t * t + 2.0 * s * u + d0 * (1.0 - t) * (1.0 - t);
        (z, (s * s * top / (below * below)).ln())
    }
}

dispatch! {
    /// `out = softmax(raw)`.
    pub fn softmax<const FMA: bool>(raw: &[f32], out: &mut [f32]) {
        let largest = raw.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for (out, raw) in out.iter_mut().zip(raw) {
            *out = exp::<FMA>(raw - largest);
        }
        let sum: f32 = out.iter().sum();
        for out in out {
            *out /= sum;
        }
    }

    /// `slopes = smallest + softplus(raw + shift)`.
    pub fn set_slopes<const FMA: bool>(raw: &[f32], shift: f32, slopes: &mut [f32]) {
        for (slope, raw) in slopes.iter_mut().zip(raw) {
            *slope = SMALLEST + softplus::<FMA>(raw + shift);
        }
    }
}

fn sigmoid(x: f32) -> f32 {
    crate::simd::sigmoid::<false>(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    const BINS: usize = 6;

    fn raw(seed: u64) -> Vec<f32> {
        let mut rng = Streams::new(seed).stream("test", 0, 0);
        (0..raw_outputs(BINS)).map(|_| 1.5 * rng.normal() as f32).collect()
    }

    fn spline(raw: &[f32]) -> Spline {
        let mut spline = Spline::new(BINS);
        spline.set(raw);
        spline
    }

    #[test]
    fn outputs_of_zero_are_a_standard_normal() {
        let spline = spline(&[0.0; 3 * BINS - 1]);
        for x in [-7.0f32, -4.9, -1.0, 0.0, 0.3, 4.0, 6.0] {
            assert!((spline.log_density(x) + 0.5 * x * x + HALF_LOG_2_PI).abs() < 1e-4, "{x}");
        }
    }

    #[test]
    fn the_density_integrates_to_one_and_quantiles_invert_the_distribution() {
        for seed in 0..5 {
            let spline = spline(&raw(seed));
            let (mut below, step) = (0.0, 2e-4);
            let mut checks = vec![(-1.0f32, 0.158_655_25), (0.0, 0.5), (1.5, 0.933_192_8)];
            for i in -40_000..40_000 {
                let x = step * (f64::from(i) + 0.5);
                below += step * f64::from(spline.log_density(x as f32)).exp();
                if checks.first().is_some_and(|(z, _)| f64::from(spline.quantile(*z)) < x) {
                    let (z, expected) = checks.remove(0);
                    assert!((below - expected).abs() < 2e-3, "{z}: {below} {expected}");
                }
            }
            assert!(checks.is_empty() && (below - 1.0).abs() < 1e-3, "{below}");
        }
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        for seed in 0..20 {
            let raw = raw(100 + seed);
            for x in [-4.2f32, -1.3, 0.1, 0.8, 3.9, 5.5] {
                let mut gradient = vec![0.0; raw.len()];
                spline(&raw).add_gradient(x, 2.0, &mut gradient);
                for (index, &value) in gradient.iter().enumerate() {
                    let moved = |step: f32| {
                        let mut raw = raw.clone();
                        raw[index] += step;
                        f64::from(spline(&raw).log_density(x))
                    };
                    // Where a knot passes x, log q has a kink.
                    let bin = |step: f32| {
                        let mut raw = raw.clone();
                        raw[index] += step;
                        spline(&raw).place(0, x).bin
                    };
                    if bin(-0.02) != bin(0.02) {
                        continue;
                    }
                    let slope = |h: f32| (moved(h) - moved(-h)) / f64::from(2.0 * h);
                    let slope = (4.0 * slope(0.01) - slope(0.02)) / 3.0;
                    assert!(
                        (f64::from(value) - 2.0 * slope).abs() < 0.02 * (1.0 + slope.abs()),
                        "{seed} {x} {index}: {value} {slope}"
                    );
                }
            }
        }
    }

    #[test]
    fn extreme_outputs_stay_finite() {
        for sign in [-1.0, 1.0] {
            let raw: Vec<f32> =
                (0..raw_outputs(BINS)).map(|i| sign * 80.0 * (i % 3) as f32).collect();
            let spline = spline(&raw);
            for i in -60..60 {
                let x = i as f32 / 10.0;
                let mut gradient = vec![0.0; raw.len()];
                spline.add_gradient(x, 1.0, &mut gradient);
                assert!(spline.log_density(x).is_finite() && spline.quantile(x).is_finite());
                assert!(gradient.iter().all(|g| g.is_finite()), "{x} {gradient:?}");
            }
        }
    }
}
