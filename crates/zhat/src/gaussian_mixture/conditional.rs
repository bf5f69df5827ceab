//! The distribution of every feature of a row given those before it: again a mixture, of one dimension.

use std::sync::Arc;

use super::{GaussianMixture, triangle};
use crate::simd::{dispatch, exp};

/// Log-weights are not smaller than this: finite, also after a few additions in single precision.
const LEAST_LOG_WEIGHT: f64 = -1e30;

/// Sums side by side.
const LANES: usize = 16;

/// Means are not larger than this, as a row of the largest single-precision numbers could have them.
const LARGEST_MEAN: f64 = 1e38;

/// `q(x_d | x_<d) = sum_k r_k(x_<d) N(x_d; mu_kd + sum_{e<d} L_kde z_ke, L_kdd^2)` for the features of one row.
///
/// Here `z_ke = (x_e - mu_ke - sum_{f<e} L_kef z_kf) / L_kee`, and `r_k` are the responsibilities of the prefix. It is a
/// workspace: clone it for every thread, the numbers of the mixture are shared. Rows are finite numbers.
#[derive(Debug, Clone)]
pub struct Conditionals {
    layout: Arc<Layout>,
    /// `[features, g]`
    z: Vec<f64>,
    /// `log w_k + log p_k(x_<d)` as far as the row has been seen, less what all components have in common.
    log_joint: Vec<f64>,
    log_weights: Vec<f32>,
    means: Vec<f32>,
    /// Means of the next feature, in double precision.
    next_means: Vec<f64>,
    next: usize,
}

/// A mixture with the numbers of all components side by side.
#[derive(Debug)]
struct Layout {
    components: usize,
    features: usize,
    log_weights: Vec<f64>,
    /// `[features, g]`
    means: Vec<f64>,
    /// `[features (features + 1) / 2, g]`
    factors: Vec<f64>,
    /// `1 / L_dd`, `[features, g]`
    reciprocals: Vec<f64>,
    /// `log L_dd`, `[features, g]`
    log_scales: Vec<f64>,
    /// `L_dd`, `[features, g]`
    scales: Vec<f32>,
}

impl Conditionals {
    pub(super) fn new(mixture: &GaussianMixture) -> Self {
        let (features, components) = (mixture.features(), mixture.num_components());
        let factors = across(components, triangle(features), |k, at| mixture.factor(k)[at]);
        let scale = |k: usize, feature: usize| mixture.factor(k)[triangle(feature + 1) - 1];
        let layout = Layout {
            components,
            features,
            log_weights: mixture.log_weights().to_vec(),
            means: across(components, features, |k, feature| mixture.mean(k)[feature]),
            factors,
            reciprocals: across(components, features, |k, feature| 1.0 / scale(k, feature)),
            log_scales: across(components, features, |k, feature| scale(k, feature).ln()),
            scales: across(components, features, |k, feature| scale(k, feature) as f32),
        };
        let mut new = Self {
            z: vec![0.0; features * components],
            log_joint: vec![0.0; components],
            log_weights: vec![0.0; features * components],
            means: vec![0.0; features * components],
            next_means: vec![0.0; components],
            next: 0,
            layout: Arc::new(layout),
        };
        new.begin();
        new
    }

    /// The conditionals of all features of a row.
    pub fn of_row(&mut self, row: &[f32]) {
        assert_eq!(row.len(), self.layout.features, "a whole row");
        self.begin();
        for (feature, &value) in row[..row.len() - 1].iter().enumerate() {
            self.see(feature, value);
        }
    }

    /// Forgets the row: from here on, the first feature's distribution is known.
    pub fn begin(&mut self) {
        self.rewind();
        self.fill(0);
    }

    /// Takes in the value of a feature, after all those before it: the next one's distribution is known.
    pub fn see(&mut self, feature: usize, value: f32) {
        self.pass(feature, value);
        self.settle();
    }

    /// Takes in a value on the way to a later feature: no distribution is known before [`settle`](Self::settle).
    pub(crate) fn pass(&mut self, feature: usize, value: f32) {
        assert_eq!(feature, self.next, "features are seen in order");
        let components = self.layout.components;
        let own = feature * components..(feature + 1) * components;
        whiten(
            f64::from(value),
            &self.next_means,
            &self.layout.reciprocals[own.clone()],
            &self.layout.log_scales[own.clone()],
            &mut self.z[own],
            &mut self.log_joint,
        );
        self.next += 1;
        self.predict();
    }

    /// Writes the distribution of the next feature, if there is one.
    pub(crate) fn settle(&mut self) {
        if self.next < self.layout.features {
            self.fill(self.next);
        }
    }

    /// Forgets the row; what was written of the first feature stays.
    pub(crate) fn rewind(&mut self) {
        self.log_joint.copy_from_slice(&self.layout.log_weights);
        self.next = 0;
        self.predict();
    }

    /// Goes back to where another one is that has seen the first features of the same row.
    pub(crate) fn rewind_to(&mut self, earlier: &Self) {
        self.log_joint.copy_from_slice(&earlier.log_joint);
        self.next_means.copy_from_slice(&earlier.next_means);
        self.next = earlier.next;
    }

    /// Logarithms of the weights of a feature's components, normalised.
    pub fn log_weights(&self, feature: usize) -> &[f32] {
        &self.log_weights[feature * self.layout.components..][..self.layout.components]
    }

    /// Means of a feature's components.
    pub fn means(&self, feature: usize) -> &[f32] {
        &self.means[feature * self.layout.components..][..self.layout.components]
    }

    /// Standard deviations of a feature's components; they are the same for every row.
    pub fn scales(&self, feature: usize) -> &[f32] {
        &self.layout.scales[feature * self.layout.components..][..self.layout.components]
    }

    /// Number of components, which is the length of all slices.
    pub fn num_components(&self) -> usize {
        self.layout.components
    }

    /// The means of the next feature, if there is one.
    fn predict(&mut self) {
        let (components, feature) = (self.layout.components, self.next);
        if feature < self.layout.features {
            predict(
                &self.layout.means[feature * components..(feature + 1) * components],
                &self.layout.factors[triangle(feature) * components..],
                &self.z[..feature * components],
                &mut self.next_means,
            );
        }
    }

    /// Writes the distribution of a feature, all those before it having been seen.
    fn fill(&mut self, feature: usize) {
        let components = self.layout.components;
        let own = feature * components..(feature + 1) * components;
        for (mean, &value) in self.means[own.clone()].iter_mut().zip(&self.next_means) {
            *mean = value.clamp(-LARGEST_MEAN, LARGEST_MEAN) as f32;
        }
        let mut total = 0.0;
        log_sum(&self.log_joint, &mut total);
        for (log_weight, value) in self.log_weights[own].iter_mut().zip(&mut self.log_joint) {
            // What the components have in common is taken away, so that sums over a long row keep their digits.
            *value -= total;
            *log_weight = value.max(LEAST_LOG_WEIGHT) as f32;
        }
    }
}

/// `[length, g]` from a function of the component and the place.
fn across<T>(components: usize, length: usize, value: impl Fn(usize, usize) -> T) -> Vec<T> {
    (0..length)
        .flat_map(|at| (0..components).map(move |k| (k, at)))
        .map(|(k, at)| value(k, at))
        .collect()
}

dispatch! {
    /// `log sum e^x`, to single precision relative to the largest term.
    pub fn log_sum<const FMA: bool>(values: &[f64], out: &mut f64) {
        let (whole, rest) = values.as_chunks::<LANES>();
        let mut highest = [f64::NEG_INFINITY; LANES];
        for values in whole {
            for (highest, value) in highest.iter_mut().zip(values) {
                *highest = highest.max(*value);
            }
        }
        for (highest, value) in highest.iter_mut().zip(rest) {
            *highest = highest.max(*value);
        }
        let largest = highest.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let mut sums = [0.0f32; LANES];
        for values in whole {
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += exp::<FMA>((value - largest) as f32);
            }
        }
        for (sum, value) in sums.iter_mut().zip(rest) {
            *sum += exp::<FMA>((value - largest) as f32);
        }
        *out = largest + f64::from(sums.iter().sum::<f32>()).ln();
    }

    /// `out = mean + sum_e L_de z_e` of every component.
    pub fn predict<const FMA: bool>(mean: &[f64], factors: &[f64], z: &[f64], out: &mut [f64]) {
        let number = mean.len();
        out.copy_from_slice(mean);
        for (factor, z) in factors.chunks_exact(number).zip(z.chunks_exact(number)) {
            for ((out, factor), z) in out.iter_mut().zip(factor).zip(z) {
                *out = if FMA { factor.mul_add(*z, *out) } else { factor * z + *out };
            }
        }
    }

    /// `z = (x - mean) / L_dd`, and the log-density of `x` onto the joint one.
    pub fn whiten<const FMA: bool>(
        x: f64,
        means: &[f64],
        reciprocals: &[f64],
        log_scales: &[f64],
        z: &mut [f64],
        log_joint: &mut [f64],
    ) {
        for at in 0..means.len() {
            z[at] = (x - means[at]) * reciprocals[at];
            log_joint[at] -= 0.5 * z[at] * z[at] + log_scales[at];
        }
    }
}
