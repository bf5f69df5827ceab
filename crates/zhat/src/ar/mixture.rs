//! A mixture of normals on the line: log-density, draws and gradient from a network's raw outputs.
//!
//! The raw outputs are `[logits, means, raw scales]`, `m` each; `scale = softplus(raw) + minimum`, or `exp(raw) + minimum`.
//! Beside them there may be a wide normal around zero with a small share that no output moves: a value unlike all that the network
//! was trained on is then improbable, and not as good as impossible.

use super::config::ScaleForm;
use super::panels::{STRIP, Strip};
use crate::rng::Stream;
use crate::simd::{dispatch, exp, ln, multiply_add, sigmoid, softplus};

/// `log(2 pi) / 2`
const HALF_LOG_2_PI: f32 = 0.918_938_5;
/// The largest output that a scale is the exponential of.
const LARGEST: f32 = 8.0;
/// A logit whose weight is zero, for padding.
const NEVER: f32 = -1e30;
/// Scale of the normal for outliers, in the units of the features, whose own is one.
pub(super) const OUTLIER_SCALE: f32 = 3.0;

/// The mixture of one row, made ready once and used for draws, densities and gradients.
#[derive(Debug, Clone)]
pub struct Mixture {
    components: usize,
    minimum_scale: f32,
    scale_form: ScaleForm,
    /// Share of the normal for outliers, which follows the other components where there is one.
    outlier_share: f32,
    logits: Vec<Strip>,
    raw_scales: Vec<Strip>,
    weights: Vec<Strip>,
    means: Vec<Strip>,
    scales: Vec<Strip>,
    /// `log weight - log scale`
    heights: Vec<Strip>,
}

impl Mixture {
    /// Room for a mixture.
    pub fn new(components: usize, minimum_scale: f32, scale_form: ScaleForm) -> Self {
        Self::with_outliers(components, minimum_scale, scale_form, 0.0)
    }

    /// Room for a mixture with a share for outliers.
    pub fn with_outliers(
        components: usize,
        minimum_scale: f32,
        scale_form: ScaleForm,
        outlier_share: f32,
    ) -> Self {
        let all = components + usize::from(outlier_share > 0.0);
        let zeros = vec![[0.0; STRIP]; all.div_ceil(STRIP)];
        let mut logits = zeros.clone();
        logits.as_flattened_mut().fill(NEVER);
        Self {
            components,
            minimum_scale,
            scale_form,
            outlier_share,
            logits,
            raw_scales: zeros.clone(),
            weights: zeros.clone(),
            means: zeros.clone(),
            scales: zeros.clone(),
            heights: zeros,
        }
    }

    /// Takes in the `3 m` raw outputs of one row.
    pub fn set(&mut self, raw: &[f32]) {
        let m = self.components;
        self.logits.as_flattened_mut()[..m].copy_from_slice(&raw[..m]);
        self.means.as_flattened_mut()[..m].copy_from_slice(&raw[m..2 * m]);
        self.raw_scales.as_flattened_mut()[..m].copy_from_slice(&raw[2 * m..3 * m]);
        prepare(self);
        if self.outlier_share > 0.0 {
            self.make_room_for_outliers();
        }
    }

    fn make_room_for_outliers(&mut self) {
        let (m, share) = (self.components, self.outlier_share);
        let (rest, log_rest) = (1.0 - share, (-share).ln_1p());
        self.weights.as_flattened_mut()[..m].iter_mut().for_each(|weight| *weight *= rest);
        self.heights.as_flattened_mut()[..m].iter_mut().for_each(|height| *height += log_rest);
        self.weights.as_flattened_mut()[m] = share;
        self.scales.as_flattened_mut()[m] = OUTLIER_SCALE;
        self.heights.as_flattened_mut()[m] = share.ln() - OUTLIER_SCALE.ln();
    }

    /// Number of components, that for outliers included.
    fn all(&self) -> usize {
        self.components + usize::from(self.outlier_share > 0.0)
    }

    /// Takes in a mixture that is known, and not a network's.
    pub fn set_known(&mut self, log_weights: &[f32], means: &[f32], scales: &[f32]) {
        let m = self.components;
        self.logits.as_flattened_mut()[..m].copy_from_slice(log_weights);
        self.means.as_flattened_mut()[..m].copy_from_slice(means);
        prepare(self);
        // Padding has a scale of one and no weight.
        self.scales.as_flattened_mut().fill(1.0);
        self.scales.as_flattened_mut()[..m].copy_from_slice(scales);
        known_heights(self);
    }

    /// Weight, mean and scale of every component.
    pub fn components(&self) -> impl Iterator<Item = [f32; 3]> {
        let parts = self.means.as_flattened().iter().zip(self.scales.as_flattened());
        let parts = self.weights.as_flattened().iter().zip(parts).take(self.all());
        parts.map(|(&weight, (&mean, &scale))| [weight, mean, scale])
    }

    /// `log q(x)`.
    pub fn log_density(&self, x: f32) -> f32 {
        let mut value = 0.0;
        log_density(self, x, &mut value);
        value
    }

    /// A draw: a component by its weight, then a normal.
    pub fn sample(&self, rng: &mut Stream) -> f32 {
        let mut left = rng.uniform() as f32;
        let weights = &self.weights.as_flattened()[..self.all()];
        let mut component = self.all() - 1;
        for (index, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                component = index;
                break;
            }
        }
        let (mean, scale) =
            (self.means.as_flattened()[component], self.scales.as_flattened()[component]);
        mean + scale * rng.normal() as f32
    }

    /// How much of the density at `x` is not the outliers', where `log_sum` is `log q(x) + log(2 pi) / 2`.
    fn learnt_share(&self, x: f32, log_sum: f32) -> f32 {
        if self.outlier_share == 0.0 {
            return 1.0;
        }
        let (z, height) = (x / OUTLIER_SCALE, self.heights.as_flattened()[self.components]);
        1.0 - exp::<false>(height - 0.5 * z * z - log_sum)
    }

    /// Adds `coefficient` times the gradient of `log q(x)` with respect to the `3 m` raw outputs.
    pub fn add_gradient(&self, x: f32, coefficient: f32, gradient: &mut [f32]) {
        let mut parts = [const { Vec::new() }; 3];
        add_gradient(self, x, coefficient, &mut parts);
        for (part, gradient) in parts.iter().zip(gradient.chunks_exact_mut(self.components)) {
            for (value, gradient) in part.as_flattened().iter().zip(gradient) {
                *gradient += value;
            }
        }
    }
}

dispatch! {
    pub fn prepare<const FMA: bool>(mixture: &mut Mixture) {
        let largest = maximum(&mixture.logits);
        let logits = mixture.logits.as_flattened();
        for (weight, logit) in mixture.weights.as_flattened_mut().iter_mut().zip(logits) {
            *weight = exp::<FMA>(logit - largest);
        }
        let sum: f32 = mixture.weights.iter().map(total).sum();
        let (inverse, log_sum) = (1.0 / sum, largest + ln::<FMA>(sum));
        for weight in mixture.weights.as_flattened_mut() {
            *weight *= inverse;
        }
        let minimum = mixture.minimum_scale;
        let raw = mixture.raw_scales.as_flattened().iter();
        let scales = mixture.scales.as_flattened_mut().iter_mut().zip(raw);
        match mixture.scale_form {
            ScaleForm::Softplus => {
                scales.for_each(|(scale, &raw)| *scale = softplus::<FMA>(raw) + minimum);
            }
            ScaleForm::Exponential => {
                scales.for_each(|(scale, &raw)| *scale = exp::<FMA>(raw.min(LARGEST)) + minimum);
            }
        }
        let heights = mixture.heights.as_flattened_mut().iter_mut();
        for ((height, scale), logit) in heights.zip(mixture.scales.as_flattened()).zip(logits) {
            *height = logit - log_sum - ln::<FMA>(*scale);
        }
    }
}

/// `log (weight density) + log(2 pi) / 2` of each component of a block at `x`, and the standardised `x`.
#[inline(always)]
fn terms<const FMA: bool>(mixture: &Mixture, block: usize, x: f32) -> (Strip, Strip) {
    let (means, scales, heights) =
        (&mixture.means[block], &mixture.scales[block], &mixture.heights[block]);
    let (mut values, mut z) = ([0.0; STRIP], [0.0; STRIP]);
    for l in 0..STRIP {
        z[l] = (x - means[l]) / scales[l];
        values[l] = multiply_add::<FMA>(-0.5 * z[l], z[l], heights[l]);
    }
    (values, z)
}

#[inline(always)]
fn log_sum_terms<const FMA: bool>(mixture: &Mixture, x: f32) -> f32 {
    let blocks = mixture.logits.len();
    let mut largest = f32::NEG_INFINITY;
    for block in 0..blocks {
        largest = largest.max(maximum(&[terms::<FMA>(mixture, block, x).0]));
    }
    let mut sum = 0.0;
    for block in 0..blocks {
        let (mut values, _) = terms::<FMA>(mixture, block, x);
        for value in &mut values {
            *value = exp::<FMA>(*value - largest);
        }
        sum += total(&values);
    }
    largest + ln::<FMA>(sum)
}

dispatch! {
    /// The heights of components whose scales are no network's. What is only there to fill a strip keeps its own, of no weight.
    pub fn known_heights<const FMA: bool>(mixture: &mut Mixture) {
        let Mixture { components, heights, weights, scales, .. } = mixture;
        let known = weights.iter().zip(scales.iter());
        for (block, (heights, (weights, scales))) in heights.iter_mut().zip(known).enumerate() {
            for l in 0..STRIP {
                let height = ln::<FMA>(weights[l].max(f32::MIN_POSITIVE)) - ln::<FMA>(scales[l]);
                heights[l] = if block * STRIP + l < *components { height } else { heights[l] };
            }
        }
    }
}

dispatch! {
    pub fn log_density<const FMA: bool>(mixture: &Mixture, x: f32, out: &mut f32) {
        *out = log_sum_terms::<FMA>(mixture, x) - HALF_LOG_2_PI;
    }
}

dispatch! {
    pub fn add_gradient<const FMA: bool>(
        mixture: &Mixture, x: f32, coefficient: f32, out: &mut [Vec<Strip>; 3],
    ) {
        let log_sum = log_sum_terms::<FMA>(mixture, x);
        // With w_k of all weight but the outliers': d log q / d logit_k = r_k - w_k (1 - r_outlier).
        let learnt = mixture.learnt_share(x, log_sum) / (1.0 - mixture.outlier_share);
        for block in 0..mixture.logits.len() {
            let (values, z) = terms::<FMA>(mixture, block, x);
            let mut parts = [[0.0; STRIP]; 3];
            let raw_scales = &mixture.raw_scales[block];
            for l in 0..STRIP {
                let responsibility = exp::<FMA>(values[l] - log_sum);
                let scale = mixture.scales[block][l];
                // A map of the array would be a function of its own, which is not compiled for this processor.
                let slope = match mixture.scale_form {
                    ScaleForm::Softplus => sigmoid::<FMA>(raw_scales[l]),
                    ScaleForm::Exponential => scale - mixture.minimum_scale,
                };
                parts[0][l] = coefficient * (responsibility - learnt * mixture.weights[block][l]);
                parts[1][l] = coefficient * responsibility * z[l] / scale;
                parts[2][l] = coefficient * responsibility * (z[l] * z[l] - 1.0) / scale * slope;
            }
            for (out, part) in out.iter_mut().zip(parts) {
                out.push(part);
            }
        }
    }
}

#[inline(always)]
fn maximum(strips: &[Strip]) -> f32 {
    let mut largest = [f32::NEG_INFINITY; STRIP];
    for strip in strips {
        for l in 0..STRIP {
            largest[l] = if strip[l] > largest[l] { strip[l] } else { largest[l] };
        }
    }
    largest.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b))
}

/// The sum of 16 values, in a fixed order.
#[inline(always)]
pub(crate) fn total(values: &Strip) -> f32 {
    let mut half = [0.0; 8];
    for l in 0..8 {
        half[l] = values[l] + values[l + 8];
    }
    let quarter = [half[0] + half[4], half[1] + half[5], half[2] + half[6], half[3] + half[7]];
    (quarter[0] + quarter[2]) + (quarter[1] + quarter[3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    fn raw(components: usize) -> Vec<f32> {
        let mut rng = Streams::new(9).stream("test", 0, 0);
        (0..3 * components).map(|_| 1.5 * rng.normal() as f32).collect()
    }

    /// The definition, in double precision.
    fn reference(raw: &[f32], form: ScaleForm, minimum: f64, x: f64) -> f64 {
        let m = raw.len() / 3;
        let raw: Vec<f64> = raw.iter().map(|&v| f64::from(v)).collect();
        let normaliser: f64 = raw[..m].iter().map(|l| l.exp()).sum();
        let density: f64 = (0..m)
            .map(|k| {
                let raw_scale = raw[2 * m + k];
                let scale = minimum
                    + match form {
                        ScaleForm::Softplus => raw_scale.exp().ln_1p(),
                        ScaleForm::Exponential => raw_scale.exp(),
                    };
                let z = (x - raw[m + k]) / scale;
                raw[k].exp() / normaliser * (-0.5 * z * z).exp() / scale
            })
            .sum();
        density.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln()
    }

    #[test]
    fn the_log_density_and_its_gradient_equal_the_definition() {
        let forms = [ScaleForm::Softplus, ScaleForm::Exponential];
        for (components, form) in [1, 3, 10, 16, 21].into_iter().flat_map(|c| forms.map(|f| (c, f)))
        {
            let raw = raw(components);
            let mut mixture = Mixture::new(components, 1e-3, form);
            mixture.set(&raw);
            for x in [-3.0f32, -0.4, 0.0, 1.7, 6.0] {
                let expected = reference(&raw, form, 1e-3, f64::from(x));
                assert!(
                    (f64::from(mixture.log_density(x)) - expected).abs()
                        < 1e-5 * (1.0 + expected.abs())
                );
                let mut gradient = vec![0.0; raw.len()];
                mixture.add_gradient(x, 2.0, &mut gradient);
                for (index, &value) in gradient.iter().enumerate() {
                    let step = 1e-3f32;
                    let (mut up, mut down) = (raw.clone(), raw.clone());
                    up[index] += step;
                    down[index] -= step;
                    let width = f64::from(up[index]) - f64::from(down[index]);
                    let slope = (reference(&up, form, 1e-3, f64::from(x))
                        - reference(&down, form, 1e-3, f64::from(x)))
                        / width;
                    assert!(
                        (f64::from(value) - 2.0 * slope).abs() < 2e-3 * (1.0 + slope.abs()),
                        "{value} {slope}"
                    );
                }
            }
        }
    }

    #[test]
    fn extreme_outputs_stay_finite() {
        let mut mixture = Mixture::new(2, 1e-3, ScaleForm::Softplus);
        mixture.set(&[300.0, -300.0, 0.0, 5.0, -200.0, 90.0]);
        for x in [0.0, 1e3, -1e4] {
            assert!(mixture.log_density(x).is_finite());
            let mut gradient = [0.0; 6];
            mixture.add_gradient(x, 1.0, &mut gradient);
            assert!(gradient.iter().all(|g| g.is_finite()), "{gradient:?}");
        }
    }

    #[test]
    fn draws_have_the_mixtures_mean_and_variance() {
        let raw = raw(4);
        let mut mixture = Mixture::new(4, 1e-3, ScaleForm::Softplus);
        mixture.set(&raw);
        let mut rng = Streams::new(10).stream("test", 0, 0);
        let number = 100_000;
        let draws: Vec<f64> = (0..number).map(|_| f64::from(mixture.sample(&mut rng))).collect();
        let (weights, means, scales) = (
            mixture.weights.as_flattened(),
            mixture.means.as_flattened(),
            mixture.scales.as_flattened(),
        );
        let moment =
            |f: &dyn Fn(usize) -> f64| (0..4).map(|k| f64::from(weights[k]) * f(k)).sum::<f64>();
        let mean = moment(&|k| f64::from(means[k]));
        let variance =
            moment(&|k| f64::from(scales[k]).powi(2) + f64::from(means[k]).powi(2)) - mean * mean;
        let average = draws.iter().sum::<f64>() / number as f64;
        assert!((average - mean).abs() < 4.0 * (variance / number as f64).sqrt());
        let spread = draws.iter().map(|d| (d - average).powi(2)).sum::<f64>() / number as f64;
        assert!((spread / variance - 1.0).abs() < 0.05);
    }
}
