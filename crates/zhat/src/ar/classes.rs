//! The base of a feature that is one of a few classes: a softmax of the network's raw outputs.

use super::kind::class_of;
use crate::rng::Stream;
use crate::simd;

/// The probabilities of one row's classes.
#[derive(Debug, Clone)]
pub struct Classes {
    probabilities: Vec<f32>,
    log_probabilities: Vec<f32>,
}

impl Classes {
    /// Room for so many classes.
    pub fn new(levels: usize) -> Self {
        Self { probabilities: vec![0.0; levels], log_probabilities: vec![0.0; levels] }
    }

    /// Takes in the raw outputs of one row, one for each class.
    pub fn set(&mut self, raw: &[f32]) {
        let raw = &raw[..self.probabilities.len()];
        let largest = raw.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for (probability, raw) in self.probabilities.iter_mut().zip(raw) {
            *probability = simd::exp::<false>(raw - largest);
        }
        let sum: f32 = self.probabilities.iter().sum();
        self.probabilities.iter_mut().for_each(|probability| *probability /= sum);
        let log_sum = largest + sum.ln();
        for (log_p, raw) in self.log_probabilities.iter_mut().zip(raw) {
            *log_p = raw - log_sum;
        }
    }

    /// The log-probability of a class.
    pub fn log_probability(&self, x: f32) -> f32 {
        self.log_probabilities[class_of(x, self.probabilities.len())]
    }

    /// A class by its probability.
    pub fn sample(&self, rng: &mut Stream) -> f32 {
        let mut left = rng.uniform() as f32;
        let last = self.probabilities.len() - 1;
        let found = self.probabilities.iter().position(|probability| {
            left -= probability;
            left < 0.0
        });
        found.unwrap_or(last) as f32
    }

    /// Adds `coefficient` times the gradient of the log-probability of a class with respect to the raw outputs.
    pub fn add_gradient(&self, x: f32, coefficient: f32, gradient: &mut [f32]) {
        for (gradient, probability) in gradient.iter_mut().zip(&self.probabilities) {
            *gradient -= coefficient * probability;
        }
        gradient[class_of(x, self.probabilities.len())] += coefficient;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    const RAW: [f32; 4] = [0.3, -1.0, 2.0, 0.0];

    fn classes(raw: &[f32]) -> Classes {
        let mut classes = Classes::new(raw.len());
        classes.set(raw);
        classes
    }

    #[test]
    fn probabilities_are_those_of_a_softmax_and_draws_follow_them() {
        let classes = classes(&RAW);
        let sum: f64 = RAW.iter().map(|&raw| f64::from(raw).exp()).sum();
        let expected = RAW.map(|raw| f64::from(raw).exp() / sum);
        let (mut rng, number) = (Streams::new(2).stream("test", 0, 0), 40_000);
        let mut counts = [0u32; 4];
        (0..number).for_each(|_| counts[classes.sample(&mut rng) as usize] += 1);
        for class in 0..4 {
            let log_p = f64::from(classes.log_probability(class as f32));
            assert!((log_p - expected[class].ln()).abs() < 1e-5, "{class}: {log_p}");
            let share = f64::from(counts[class]) / f64::from(number);
            // 4.5 standard errors: one false alarm in 40,000 for four classes, and the seed is fixed.
            let error = 4.5 * (expected[class] * (1.0 - expected[class]) / 40_000f64).sqrt();
            assert!((share - expected[class]).abs() < error, "{class}: {share}");
        }
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        for class in 0..4 {
            let mut gradient = [0.0; 4];
            classes(&RAW).add_gradient(class as f32, 2.0, &mut gradient);
            for (index, value) in gradient.into_iter().enumerate() {
                let moved = |step: f32| {
                    let mut raw = RAW;
                    raw[index] += step;
                    f64::from(classes(&raw).log_probability(class as f32))
                };
                let slope = (moved(0.01) - moved(-0.01)) / 0.02;
                assert!((f64::from(value) - 2.0 * slope).abs() < 2e-3, "{class} {index} {value}");
            }
        }
    }

    #[test]
    fn extreme_outputs_stay_finite() {
        let classes = classes(&[300.0, -300.0, 0.0]);
        assert_eq!(classes.log_probability(0.0), 0.0);
        assert_eq!(classes.log_probability(1.0), -600.0);
        let mut gradient = [0.0; 3];
        classes.add_gradient(1.0, 1.0, &mut gradient);
        assert_eq!(gradient, [-1.0, 1.0, 0.0]);
    }
}
