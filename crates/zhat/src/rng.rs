//! Randomness: a seed gives named, independent, counter-based streams, and nothing else is random.
//!
//! A [`Stream`] is ChaCha8 keyed by (seed, purpose, step, lane). Two streams that differ in any of the four are
//! independent, and any of them can be made again without having made the ones before it. This is what makes
//! results the same for any number of threads and a resumed run the same as one that was never stopped.

use std::convert::Infallible;
use std::ops::Range;

use rand::{Rng, SeedableRng, TryRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};
use serde::{Deserialize, Serialize};

/// A seed, from which every stream of a run is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// All the streams of one seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed, for whatever takes a number: the configuration of a run, a record of it.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The stream for a purpose (such as `"candidates"`) at one step of one lane.
    ///
    /// A lane is a piece of work that is always the same, whichever thread does it.
    pub fn stream(&self, purpose: &str, step: u64, lane: u64) -> Stream {
        let mut key = [0; 32];
        for (part, value) in
            key.chunks_exact_mut(8).zip([self.seed, fnv1a(purpose.as_bytes()), step, lane])
        {
            part.copy_from_slice(&value.to_le_bytes());
        }
        Stream(ChaCha8Rng::from_seed(key))
    }

    /// The streams of several lanes, one for each.
    pub fn lanes(&self, purpose: &str, step: u64, lanes: Range<usize>) -> Vec<Stream> {
        lanes.map(|lane| self.stream(purpose, step, lane as u64)).collect()
    }

    /// Another seed for a named part, such as one repetition of an experiment.
    pub fn derive(&self, purpose: &str, index: u64) -> Streams {
        Streams { seed: self.stream(purpose, index, 0).next_u64() }
    }
}

/// A generator of random numbers; works with everything in `rand` and `rand_distr`.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// A standard normal draw.
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.0)
    }

    /// A uniform draw on [0, 1).
    pub fn uniform(&mut self) -> f64 {
        StandardUniform.sample(&mut self.0)
    }

    /// Many standard normal draws.
    pub fn normals(&mut self, number: usize) -> Vec<f64> {
        (0..number).map(|_| self.normal()).collect()
    }

    /// An index drawn by normalised weights.
    pub fn categorical(&mut self, weights: &[f64]) -> usize {
        let mut left = self.uniform();
        for (index, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return index;
            }
        }
        // Rounding may leave a rest of about 1e-16: it belongs to the last candidate that has any weight.
        weights.iter().rposition(|&weight| weight > 0.0).expect("weights have positive mass")
    }

    /// A uniform draw from 0, 1, ..., `number - 1`.
    pub fn index(&mut self, number: usize) -> usize {
        ((self.uniform() * number as f64) as usize).min(number - 1)
    }

    /// A uniformly random order of 0, 1, ..., `number - 1` (Fisher and Yates).
    pub fn permutation(&mut self, number: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..number).collect();
        for last in (1..number).rev() {
            order.swap(last, self.index(last + 1));
        }
        order
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(bytes)
    }
}

/// The 64-bit FNV-1a hash: small, fixed for ever, and good enough to tell a dozen purposes apart.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_every_part_of_their_name() {
        let first = |mut stream: Stream| stream.next_u64();
        let streams = Streams::new(1);
        let draws = [
            first(streams.stream("candidates", 0, 0)),
            first(streams.stream("batches", 0, 0)),
            first(streams.stream("candidates", 1, 0)),
            first(streams.stream("candidates", 0, 1)),
            first(Streams::new(2).stream("candidates", 0, 0)),
        ];
        for (i, a) in draws.iter().enumerate() {
            assert!(draws[..i].iter().all(|b| a != b));
        }
        assert_eq!(draws[0], first(streams.stream("candidates", 0, 0)));
    }

    #[test]
    fn fixed_seed_values_are_pinned() {
        let mut stream = Streams::new(0).stream("candidates", 0, 0);
        assert_eq!(stream.next_u64(), 3_488_591_449_373_630_618);
        assert_eq!(stream.normal(), 0.957_997_356_302_822_1);
    }

    #[test]
    fn categorical_draws_have_the_frequencies_of_the_weights() {
        let weights = [0.1, 0.0, 0.6, 0.3];
        let mut stream = Streams::new(7).stream("test", 0, 0);
        let number = 100_000;
        let mut counts = [0.0; 4];
        for _ in 0..number {
            counts[stream.categorical(&weights)] += 1.0;
        }
        assert_eq!(counts[1], 0.0);
        for (count, weight) in counts.iter().zip(weights) {
            let standard_error = (weight * (1.0 - weight) / f64::from(number)).sqrt();
            // 4 standard errors: one false alarm in 16,000 seeds, and this seed is fixed.
            assert!((count / f64::from(number) - weight).abs() <= 4.0 * standard_error);
        }
    }

    #[test]
    fn a_categorical_draw_survives_weights_that_sum_to_less_than_one() {
        let mut stream = Streams::new(7).stream("test", 0, 0);
        assert!((0..1000).all(|_| stream.categorical(&[0.0, 1e-12, 0.0]) == 1));
    }

    #[test]
    fn a_permutation_holds_every_index_once() {
        let mut order = Streams::new(3).stream("test", 0, 0).permutation(50);
        assert_ne!(order, (0..50).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
}
