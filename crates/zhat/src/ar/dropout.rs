//! Dropout masks: cheap, reproducible, and the same for any tiling and any number of threads.
//!
//! Every observation has its own ChaCha8 stream, which seeds eight generators (xoshiro128++) for each layer that drops.
//! A step of all eight gives 16 decisions of 16 bits, one row of one panel.

use burn::tensor::{Device, Tensor, TensorData};
use rand::Rng;

use super::config::Activation;
use super::panels::{STRIP, Strip};
use crate::rng::Stream;
use crate::simd::{dispatch, elu, tanh};

/// Values of a generator step: each gives two 16-bit decisions.
const WORDS: usize = STRIP / 2;

/// Eight independent xoshiro128++ generators (Blackman and Vigna, 2021), in lockstep.
pub type Generator = [[u32; WORDS]; 4];

/// Which share of the units is dropped, and how those that stay are scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    threshold: u32,
    /// `1 / (1 - rate)`
    pub scale: f32,
}

impl Dropout {
    /// Of 65536 units so many stay.
    pub fn threshold(self) -> u32 {
        self.threshold
    }

    /// Drops with this probability, to the nearest 1/65536; `None` for none.
    pub fn new(rate: f64) -> Option<Self> {
        let threshold = ((1.0 - rate) * 65536.0).round() as u32;
        (threshold < 65536).then(|| Self { threshold, scale: 65536.0 / threshold.max(1) as f32 })
    }
}

/// The masks of one tile: the streams of its observations, each of which owns some rows in turn.
#[derive(Debug)]
pub struct Masks<'a> {
    pub dropout: Dropout,
    streams: &'a mut [Stream],
    rows_of: Vec<usize>,
    generators: Vec<Generator>,
}

impl<'a> Masks<'a> {
    /// Masks for rows that belong to these streams, `rows_per_stream` each.
    pub fn new(dropout: Dropout, streams: &'a mut [Stream], rows_per_stream: usize) -> Self {
        let rows_of = vec![rows_per_stream; streams.len()];
        Self { dropout, streams, rows_of, generators: Vec::new() }
    }

    /// From the next layer on, so many rows belong to each stream.
    pub fn set_rows(&mut self, rows_of: impl IntoIterator<Item = usize>) {
        self.rows_of.clear();
        self.rows_of.extend(rows_of);
        assert_eq!(self.rows_of.len(), self.streams.len(), "a number of rows for each stream");
    }

    /// Seeds the generators of the next layer.
    pub fn next_layer(&mut self) {
        self.generators.clear();
        self.generators.extend(self.streams.iter_mut().map(seed));
    }

    /// `values = mask * scale * activation(values)` on one panel; call it for the panels in order.
    pub fn activate(&mut self, activation: Activation, values: &mut [f32]) {
        let Dropout { threshold, scale } = self.dropout;
        activate_and_drop(
            activation,
            &mut self.generators,
            &self.rows_of,
            threshold,
            scale,
            values,
        );
    }

    /// The mask of the next layer in row-major order, with values 0 and `scale`, for paths that do not fuse it.
    pub fn layer_mask(&mut self, width: usize) -> Vec<f32> {
        self.next_layer();
        let rows: usize = self.rows_of.iter().sum();
        let mut mask = vec![0.0; rows * width];
        let mut panel = vec![0.0; rows * STRIP];
        for first in (0..width).step_by(STRIP) {
            panel.fill(1.0);
            self.activate(Activation::Relu, &mut panel);
            let columns = STRIP.min(width - first);
            for (row, values) in panel.chunks_exact(STRIP).enumerate() {
                mask[row * width + first..][..columns].copy_from_slice(&values[..columns]);
            }
        }
        mask
    }
}

/// Masks of one layer after the other, for networks in Burn's operations.
pub trait LayerMasks {
    /// The mask of the next layer, with values 0 and `1 / (1 - rate)`.
    ///
    /// # Shapes
    /// - output: `[rows, width]`
    fn next_mask(&mut self, rows: usize, width: usize, device: &Device) -> Tensor<2>;
}

impl LayerMasks for Masks<'_> {
    fn next_mask(&mut self, rows: usize, width: usize, device: &Device) -> Tensor<2> {
        Tensor::from_data(TensorData::new(self.layer_mask(width), [rows, width]), device)
    }
}

/// Seeds eight generators; a state of zeros, the only forbidden one, has probability 2^-128.
fn seed(stream: &mut Stream) -> Generator {
    let mut generator = [[0; WORDS]; 4];
    for word in generator.iter_mut().flatten() {
        *word = stream.next_u32();
    }
    generator
}

dispatch! {
    /// Activation and dropout of one panel, whose rows belong to the generators in turn.
    pub fn activate_and_drop<const FMA: bool>(
        activation: Activation,
        generators: &mut [Generator],
        rows_of: &[usize],
        threshold: u32,
        scale: f32,
        values: &mut [f32],
    ) {
        let mut rest = values;
        for (generator, &number) in generators.iter_mut().zip(rows_of) {
            let rows;
            (rows, rest) = rest.split_at_mut(number * STRIP);
            let mut state = *generator;
            match activation {
                Activation::Relu => {
                    for row in rows.as_chunks_mut::<STRIP>().0 {
                        let bits = next(&mut state);
                        let factor = factors(&bits, threshold, scale);
                        for l in 0..STRIP {
                            row[l] = row[l].max(0.0) * factor[l];
                        }
                    }
                }
                Activation::Tanh => {
                    for row in rows.as_chunks_mut::<STRIP>().0 {
                        let bits = next(&mut state);
                        let factor = factors(&bits, threshold, scale);
                        for l in 0..STRIP {
                            // A kept zero becomes a tiny number, so that the backward pass tells it from a dropped one.
                            let value = tanh::<FMA>(row[l]);
                            let value = if value == 0.0 { 1e-30 } else { value };
                            row[l] = value * factor[l];
                        }
                    }
                }
                Activation::Elu => {
                    for row in rows.as_chunks_mut::<STRIP>().0 {
                        let bits = next(&mut state);
                        let factor = factors(&bits, threshold, scale);
                        for l in 0..STRIP {
                            let value = elu::<FMA>(row[l]);
                            let value = if value == 0.0 { 1e-30 } else { value };
                            row[l] = value * factor[l];
                        }
                    }
                }
            }
            *generator = state;
        }
    }
}

/// What each of the 16 values is multiplied by: the low halves decide about the first eight, the high halves about the
/// others.
#[inline(always)]
fn factors(bits: &[u32; WORDS], threshold: u32, scale: f32) -> Strip {
    let mut factors = [0.0; STRIP];
    let (low, high) = factors.split_at_mut(WORDS);
    for l in 0..WORDS {
        low[l] = if (bits[l] & 0xffff) < threshold { scale } else { 0.0 };
    }
    for l in 0..WORDS {
        high[l] = if (bits[l] >> 16) < threshold { scale } else { 0.0 };
    }
    factors
}

#[inline(always)]
fn next(state: &mut Generator) -> [u32; WORDS] {
    let mut out = [0; WORDS];
    for i in 0..WORDS {
        let [a, b, c, d] = [state[0][i], state[1][i], state[2][i], state[3][i]];
        out[i] = a.wrapping_add(d).rotate_left(7).wrapping_add(a);
        let shifted = b << 9;
        let (c, d) = (c ^ a, d ^ b);
        state[1][i] = b ^ c;
        state[0][i] = a ^ d;
        state[2][i] = c ^ shifted;
        state[3][i] = d.rotate_left(11);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    fn mask(rate: f64, streams: u64, rows: usize, width: usize) -> Vec<f32> {
        let mut streams: Vec<_> =
            (0..streams).map(|n| Streams::new(5).stream("dropout", 0, n)).collect();
        Masks::new(Dropout::new(rate).unwrap(), &mut streams, rows).layer_mask(width)
    }

    #[test]
    fn the_share_of_dropped_units_is_the_rate_in_every_lane() {
        let (rate, width) = (0.1, 64);
        let mask = mask(rate, 40, 21, width);
        let rows = mask.len() / width;
        for unit in 0..width {
            let dropped = (0..rows).filter(|row| mask[row * width + unit] == 0.0).count() as f64;
            let standard_error = (rate * (1.0 - rate) / rows as f64).sqrt();
            // 4.5 standard errors: one false alarm in 2,000 for 64 units, and the seed is fixed.
            assert!((dropped / rows as f64 - rate).abs() < 4.5 * standard_error);
        }
        let mean = mask.iter().map(|&m| f64::from(m)).sum::<f64>() / mask.len() as f64;
        assert!((mean - 1.0).abs() < 4.5 * (rate / (1.0 - rate) / mask.len() as f64).sqrt());
    }

    #[test]
    fn masks_of_an_observation_do_not_depend_on_its_neighbours() {
        let (together, alone) = (mask(0.5, 3, 4, 40), mask(0.5, 1, 4, 40));
        assert_eq!(together[..alone.len()], alone);
    }

    #[test]
    fn no_dropout_is_none() {
        assert_eq!(Dropout::new(0.0), None);
        assert_eq!(Dropout::new(0.5).unwrap().scale, 2.0);
    }
}
