//! A random order of any number of rows, without a list of them.

use rand::Rng;

use crate::rng::Stream;

/// Rounds of mixing; four make a good permutation of a good mixer, and two more are cheap.
const ROUNDS: usize = 6;

/// A random permutation of `0..number` that is computed where it is asked for, by a Feistel network: a place is cut into two halves,
/// and each is mixed into the other in turns. It is one-to-one on a power of four; a place that comes out beyond the last row goes
/// through again until it does not, at most four times on average.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scatter {
    number: u64,
    /// Bits of a half.
    bits: u32,
    keys: [u64; ROUNDS],
}

impl Scatter {
    /// A permutation of so many rows.
    pub fn new(number: usize, rng: &mut Stream) -> Self {
        let number = number as u64;
        let bits = (64 - number.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
        Self { number, bits, keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    /// The row at a place.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn at(&self, place: usize) -> usize {
        let mut row = place as u64;
        assert!(row < self.number, "place {place} of {}", self.number);
        loop {
            row = self.mixed(row);
            if row < self.number {
                return row as usize;
            }
        }
    }

    fn mixed(&self, value: u64) -> u64 {
        let mask = (1 << self.bits) - 1;
        let (mut left, mut right) = (value >> self.bits, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        left << self.bits | right
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): every bit of the input changes about half of those of the output.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    fn scatter(number: usize, seed: u64) -> Vec<usize> {
        let scatter = Scatter::new(number, &mut Streams::new(seed).stream("test", 0, 0));
        (0..number).map(|place| scatter.at(place)).collect()
    }

    #[test]
    fn every_row_has_one_place_and_seeds_differ() {
        for number in [1, 2, 3, 4, 5, 16, 17, 1000, 4097] {
            let rows = scatter(number, 1);
            let mut sorted = rows.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..number), "{number}");
            assert!(number < 16 || rows != scatter(number, 2));
        }
    }

    /// Where a row goes, and where its neighbour goes from there, are both uniform: chi-squared of 256 cells is below its quantile of
    /// 1 - 1e-6 (about 255 + 4.75 sqrt(510) + 15) for four fixed seeds. A rotation by a random number would have about 60,000.
    #[test]
    fn rows_and_their_neighbours_go_anywhere() {
        let number = 40_000;
        for seed in 0..4 {
            let rows = scatter(number, seed);
            let squared = |cell: &dyn Fn(usize) -> usize| {
                let mut counts = [0.0; 256];
                (0..number - 1).for_each(|place| counts[cell(place)] += 1.0);
                let expected = (number - 1) as f64 / 256.0;
                counts.iter().map(|count| (count - expected).powi(2) / expected).sum::<f64>()
            };
            let coarse = |value: usize| value * 16 / number;
            let of_row = squared(&|place| 16 * coarse(place) + coarse(rows[place]));
            let of_step = squared(&|place| {
                let step = (rows[place + 1] + number - rows[place]) % number;
                16 * coarse(rows[place]) + coarse(step)
            });
            assert!(of_row < 378.0 && of_step < 378.0, "{seed}: {of_row} {of_step}");
        }
    }
}
