//! The defensive part of the proposal (Hesterberg, 1995).
//!
//! The energy may leave a little mass where the proposal hardly ever goes, such as between clusters. Estimates of `Z` are
//! unbiased all the same, but no realistic number of particles shows that mass, and neither does the spread of the estimates:
//! the likelihood comes out too high with an error bar that is too small. So in evaluation a small share of each feature's
//! draws is uniform on a range around the data, where it bounds the weights. In training some of the negatives may have such
//! a feature too, which teaches the energy to leave no mass there. Beyond the range the proposal is alone: a free energy
//! is confined a little further out ([`ArEbmConfig::confine`](super::config::ArEbmConfig)), and one that is not has to grow by
//! itself, which is looked at apart ([`super::ladder`]), as no draw goes out that far.

use crate::rng::Stream;

/// The range is from minus to plus this, in the units of the features, which are standardised.
pub(super) const RANGE: f64 = 6.0;

/// A share of the draws that is uniform.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Defence {
    share: f64,
}

impl Defence {
    /// In evaluation.
    pub const EVALUATION: Self = Self { share: 0.05 };

    /// This share of the draws; none if it is zero.
    pub fn new(share: f64) -> Self {
        Self { share }
    }

    /// Whether no draw is defensive.
    pub fn is_none(&self) -> bool {
        self.share == 0.0
    }

    /// The share of the draws.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// A defensive draw, if this one is to be one.
    pub fn draw(&self, rng: &mut Stream) -> Option<f32> {
        let is_wide = self.share > 0.0 && rng.uniform() < self.share;
        is_wide.then(|| (RANGE * (2.0 * rng.uniform() - 1.0)) as f32)
    }

    /// `log((1 - s) q(x) + s u(x))`, given `log q(x)`.
    pub fn log_density(&self, log_q: f32, x: f32) -> f32 {
        if self.share == 0.0 {
            return log_q;
        }
        let own = f64::from(log_q) + (1.0 - self.share).ln();
        if f64::from(x).abs() > RANGE {
            return own as f32;
        }
        let wide = (self.share / (2.0 * RANGE)).ln();
        let (high, low) = if own > wide { (own, wide) } else { (wide, own) };
        (high + (low - high).exp().ln_1p()) as f32
    }

    /// The same of the mass between two ends, given the log of `q`'s.
    pub fn log_mass(&self, log_q: f32, ends: [f32; 2]) -> f32 {
        if self.share == 0.0 {
            return log_q;
        }
        let [low, high] = ends.map(|end| f64::from(end).clamp(-RANGE, RANGE));
        let wide = self.share * (high - low) / (2.0 * RANGE);
        ((1.0 - self.share) * f64::from(log_q).exp() + wide).ln() as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    const SHARE: f64 = 0.05;

    #[test]
    fn draws_have_their_share_and_fill_the_range() {
        let (defence, mut rng) = (Defence::new(SHARE), Streams::new(5).stream("defence", 0, 0));
        let draws: Vec<f32> = (0..1_000_000).filter_map(|_| defence.draw(&mut rng)).collect();
        let number = draws.len() as f64;
        // Four standard errors of a binomial share.
        assert!((number / 1e6 - SHARE).abs() < 4.0 * (SHARE * (1.0 - SHARE) / 1e6).sqrt());
        for at in [-5.5, -1.0, 0.0, 0.5, 4.0] {
            let below = draws.iter().filter(|&&x| f64::from(x) < at).count() as f64 / number;
            let expected = (at + RANGE) / (2.0 * RANGE);
            assert!((below - expected).abs() < 4.0 * (0.25 / number).sqrt(), "{at}: {below}");
        }
    }

    #[test]
    fn the_density_is_that_of_the_draws() {
        // A standard normal as q: the mixed density integrates to one.
        let step = 0.001;
        let total: f64 = (-20_000..20_000)
            .map(|i| {
                let x = step * (f64::from(i) + 0.5);
                let log_q = -0.5 * (x * x + (2.0 * std::f64::consts::PI).ln());
                f64::from(Defence::new(SHARE).log_density(log_q as f32, x as f32)).exp() * step
            })
            .sum();
        assert!((total - 1.0).abs() < 1e-4, "{total}");
        assert!(
            (f64::from(Defence::new(SHARE).log_density(-1e4, 3.0)) - (SHARE / 12.0).ln()).abs()
                < 1e-5
        );
    }
}
