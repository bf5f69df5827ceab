//! Where training batches come from.

use burn::tensor::Tensor;

use crate::host::{Place, to_host};
use crate::rng::Streams;

/// A source of batches, a function of the step alone, so that a run can be taken up anywhere.
pub trait DataSource {
    /// The batch of a step, counted from 0.
    ///
    /// # Shapes
    /// - output: `[n, d]`
    fn batch(&self, step: usize, streams: &Streams) -> Tensor<2>;
}

impl<F: Fn(usize, &Streams) -> Tensor<2>> DataSource for F {
    fn batch(&self, step: usize, streams: &Streams) -> Tensor<2> {
        self(step, streams)
    }
}

/// A table that fits in memory, in a new random order every epoch; the last batch of an epoch may be smaller.
#[derive(Debug, Clone)]
pub struct Batches {
    values: Vec<f64>,
    place: Place,
    dimension: usize,
    batch_size: usize,
}

impl Batches {
    /// Batches of the rows of `data`.
    ///
    /// # Shapes
    /// - `data`: `[n, d]`
    pub fn new(data: &Tensor<2>, batch_size: usize) -> Self {
        assert!(batch_size > 0 && data.dims()[0] > 0, "rows and a batch size");
        Self {
            values: to_host(data),
            place: Place::of(data),
            dimension: data.dims()[1],
            batch_size,
        }
    }

    /// Number of batches in an epoch.
    pub fn per_epoch(&self) -> usize {
        (self.values.len() / self.dimension).div_ceil(self.batch_size)
    }
}

impl DataSource for Batches {
    fn batch(&self, step: usize, streams: &Streams) -> Tensor<2> {
        let (epoch, batch) = (step / self.per_epoch(), step % self.per_epoch());
        let order = streams
            .stream("order", epoch as u64, 0)
            .permutation(self.values.len() / self.dimension);
        let rows: Vec<f64> = order
            .chunks(self.batch_size)
            .nth(batch)
            .expect("batch of this epoch")
            .iter()
            .flat_map(|row| &self.values[row * self.dimension..(row + 1) * self.dimension])
            .copied()
            .collect();
        let shape = [rows.len() / self.dimension, self.dimension];
        self.place.tensor(rows, shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn an_epoch_holds_every_row_once_and_epochs_differ() {
        let place = Place::new(&Device::flex());
        let data = place.tensor((0..14).map(f64::from).collect(), [7, 2]);
        let batches = Batches::new(&data, 3);
        assert_eq!(batches.per_epoch(), 3);
        let streams = Streams::new(1);
        let epoch = |number: usize| -> Vec<f64> {
            (0..3).flat_map(|i| to_host(&batches.batch(3 * number + i, &streams))).collect()
        };
        assert_eq!(batches.batch(2, &streams).dims(), [1, 2]);
        let (first, second) = (epoch(0), epoch(1));
        assert_ne!(first, second);
        for mut rows in [first, second] {
            assert!(rows.chunks(2).all(|row| row[1] == row[0] + 1.0));
            rows.sort_by(f64::total_cmp);
            assert_eq!(rows, (0..14).map(f64::from).collect::<Vec<_>>());
        }
    }
}
