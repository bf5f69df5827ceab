//! Dropout masks that a device makes itself, from a key and the number of each unit.
//!
//! A number is cut into halves of 16 bits, which seven rounds of a Feistel network mix, each with a multiplier and a constant that a
//! [`Stream`] has drawn. Every product is below `2^31`, so that the bits are the same on all devices, whether they compute with 32 or
//! 64 bits, and with or without a sign. Both halves are then a decision of 16 bits each, as on the CPU.

use burn::tensor::{Device, Int, Tensor};
use rand::Rng;

use crate::ar::dropout::{Dropout, LayerMasks};
use crate::rng::Stream;

/// With four, neighbours still go together, and with five nothing is seen of it any more; two more for what is not looked at.
const ROUNDS: usize = 7;
/// The bits of a product that are taken: the lowest depend on too few of its factor's, and the highest differ too little.
const SHIFT: u32 = 8;
const HALF: i64 = 0xffff;

/// The masks of one network in one pass.
#[derive(Debug)]
pub struct DeviceMasks<'a> {
    dropout: Dropout,
    rng: &'a mut Stream,
}

impl<'a> DeviceMasks<'a> {
    /// Masks whose keys come from a stream.
    pub fn new(dropout: Dropout, rng: &'a mut Stream) -> Self {
        Self { dropout, rng }
    }
}

impl LayerMasks for DeviceMasks<'_> {
    fn next_mask(&mut self, rows: usize, width: usize, device: &Device) -> Tensor<2> {
        let numbers = rows * width.div_ceil(2);
        assert!(numbers < 1 << 31, "fewer than 2^31 pairs of units in a layer");
        let [low, high] = mixed(numbers, self.rng, &device.clone().inner());
        let decided = |half: Tensor<1, Int>| {
            let kept = half.lower_elem(i64::from(self.dropout.threshold())).float();
            (kept * self.dropout.scale).reshape([rows, width.div_ceil(2)])
        };
        Tensor::cat(vec![decided(low), decided(high)], 1).narrow(1, 0, width)
    }
}

/// Two halves of 16 random bits for each of so many numbers.
fn mixed(numbers: usize, rng: &mut Stream, device: &Device) -> [Tensor<1, Int>; 2] {
    let number = Tensor::<1, Int>::arange(0..numbers as i64, device);
    let mut left = number.clone().bitwise_right_shift_scalar(16);
    let mut right = number.bitwise_and_scalar(HALF);
    for _ in 0..ROUNDS {
        // An odd multiplier of 15 bits: its product with 16 bits, and a constant of 16, is below 2^31.
        let word = rng.next_u32();
        let (factor, constant) = (i64::from(word >> 17 | 1 | 1 << 14), i64::from(word & 0xffff));
        let product = right.clone() * factor + constant;
        let bits = product.bitwise_right_shift_scalar(SHIFT).bitwise_and_scalar(HALF);
        (left, right) = (right, left.bitwise_xor(bits));
    }
    [left, right]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::to_host;
    use crate::rng::Streams;

    fn masks(rate: f64, rows: usize, width: usize, layers: usize) -> Vec<Vec<f64>> {
        let mut rng = Streams::new(4).stream("test", 0, 0);
        let mut masks = DeviceMasks::new(Dropout::new(rate).unwrap(), &mut rng);
        let layer = |_| to_host(&masks.next_mask(rows, width, &Device::flex()));
        (0..layers).map(layer).collect()
    }

    /// The share of pairs that are both dropped, less what it is for independent ones, in standard errors.
    fn together(a: impl Iterator<Item = f64>, b: impl Iterator<Item = f64>, rate: f64) -> f64 {
        let (mut both, mut number) = (0.0, 0.0);
        for (a, b) in a.zip(b) {
            both += f64::from(u8::from(a == 0.0 && b == 0.0));
            number += 1.0;
        }
        let p = rate * rate;
        (both / number - p) / (p * (1.0 - p) / number).sqrt()
    }

    #[test]
    fn units_are_dropped_by_the_rate_and_independently_of_their_neighbours() {
        let (rows, width) = (4000, 50);
        for rate in [0.1, 0.5] {
            let layers = masks(rate, rows, width, 2);
            for unit in 0..width {
                let dropped = (0..rows).filter(|row| layers[0][row * width + unit] == 0.0).count();
                let error = (rate * (1.0 - rate) / rows as f64).sqrt();
                // 4.5 standard errors, here and below: one false alarm in 2,000 for 100 of them, and the seed is fixed.
                assert!((dropped as f64 / rows as f64 - rate).abs() < 4.5 * error, "{unit}");
            }
            let all = || layers[0].iter().copied();
            // Neighbours in a row, in a column, two halves of one number, and layers.
            for lag in [1, 2, 3, width, 2 * width, width / 2, 32, 64 * width, 256] {
                let found = together(all(), all().skip(lag), rate);
                assert!(found.abs() < 4.5, "rate {rate} lag {lag}: {found}");
            }
            let found = together(all(), layers[1].iter().copied(), rate);
            assert!(found.abs() < 4.5, "rate {rate} layers: {found}");
            // Rows drop as many units as independent units would: the variance of the counts.
            let counts: Vec<f64> = layers[0]
                .chunks_exact(width)
                .map(|row| row.iter().filter(|unit| **unit == 0.0).count() as f64)
                .collect();
            let mean = rate * width as f64;
            let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / rows as f64;
            let expected = mean * (1.0 - rate);
            let error = expected * (2.0 / rows as f64).sqrt() * 1.2;
            assert!((variance - expected).abs() < 4.5 * error, "{rate}: {variance} {expected}");
        }
    }

    #[test]
    fn the_bits_are_pinned() {
        let mut rng = Streams::new(4).stream("test", 0, 0);
        let [low, high] = mixed(100_000, &mut rng, &Device::flex());
        let at = |half: Tensor<1, Int>, index: usize| half.into_data().iter::<i64>().nth(index);
        assert_eq!((at(low, 99_999), at(high, 7)), (Some(PINNED[0]), Some(PINNED[1])));
    }

    const PINNED: [i64; 2] = [10_232, 29_884];
}
