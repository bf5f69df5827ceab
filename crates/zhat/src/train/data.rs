//! Where training batches come from, and in which order.

use std::ops::Range;

use burn::tensor::Tensor;

use super::scatter::Scatter;
use super::step::Batch;
use crate::error::{Error, Result};
use crate::host::indices;
use crate::rng::Streams;

/// A source of batches.
pub trait DataSource {
    /// The batch of a step, counted from 0; a function of the step and the order's seed alone, so that a run can be taken up
    /// anywhere.
    fn batch(&self, step: u64, order: &mut Order) -> Batch;
}

/// Fresh data at every step.
impl<F: Fn(u64, &Streams) -> Tensor<2>> DataSource for F {
    fn batch(&self, step: u64, order: &mut Order) -> Batch {
        self(step, &order.streams).into()
    }
}

/// A random order of rows, a new one for every epoch, which is shuffled once.
#[derive(Debug, Clone)]
pub struct Order {
    /// What it is drawn from.
    pub streams: Streams,
    batch_size: usize,
    /// The number of the epoch, and its order.
    epoch: Option<(u64, Vec<usize>)>,
}

impl Order {
    /// Batches of about this many rows.
    pub fn new(batch_size: usize, streams: Streams) -> Self {
        Self { streams, batch_size, epoch: None }
    }

    /// The same as [`rows`](Self::rows) in another order, which takes no memory: for more rows than one would keep a list of.
    pub fn scattered(&self, step: u64, number: usize) -> Vec<usize> {
        let (epoch, places) = self.places(step, number);
        let scatter = Scatter::new(number, &mut self.streams.stream("scatter", epoch, 0));
        places.map(|place| scatter.at(place)).collect()
    }

    /// The epoch of a step, and its places in the order of that epoch.
    fn places(&self, step: u64, number: usize) -> (u64, Range<usize>) {
        let batches = number.div_ceil(self.batch_size).max(1);
        let (epoch, batch) = (step / batches as u64, (step % batches as u64) as usize);
        // In 128 bits, which no number of rows overflows.
        let place = |batch: usize| (batch as u128 * number as u128 / batches as u128) as usize;
        (epoch, place(batch)..place(batch + 1))
    }

    /// The rows of a step. An epoch has every row once; its batches are equal but for one row, so that none is left over.
    pub fn rows(&mut self, step: u64, number: usize) -> &[usize] {
        let (epoch, places) = self.places(step, number);
        if self.epoch.as_ref().is_none_or(|(known, order)| (*known, order.len()) != (epoch, number))
        {
            let order = self.streams.stream("order", epoch, 0).permutation(number);
            self.epoch = Some((epoch, order));
        }
        let (_, order) = self.epoch.as_ref().expect("just shuffled");
        &order[places]
    }
}

/// Rows that fit in memory, each of which may count more or less than another.
#[derive(Debug, Clone)]
pub struct Rows {
    x: Tensor<2>,
    weights: Option<Vec<f64>>,
}

impl Rows {
    /// All rows of `x`.
    ///
    /// # Shapes
    /// - `x`: `[n, d]`
    ///
    /// # Panics
    /// If there are none.
    pub fn new(x: Tensor<2>) -> Self {
        assert!(x.dims()[0] > 0, "at least one row");
        Self { x: x.inner(), weights: None }
    }

    /// With a weight for every row: a row of weight 2 counts as if it stood there twice.
    pub fn with_weights(self, weights: &[f64]) -> Result<Self> {
        assert_eq!(weights.len(), self.x.dims()[0], "one weight for each row");
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        if let Some(row) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            let value = format!("{} at row {row}", weights[row]);
            return Err(Error::setting("weights", value, "finite and not below zero"));
        }
        if mean == 0.0 {
            return Err(Error::setting("weights", 0, "above zero for some row"));
        }
        let weights = weights.iter().map(|weight| weight / mean).collect();
        Ok(Self { weights: Some(weights), ..self })
    }
}

impl DataSource for Rows {
    fn batch(&self, step: u64, order: &mut Order) -> Batch {
        let rows = order.rows(step, self.x.dims()[0]);
        let weights_of = |weights: &Vec<f64>| rows.iter().map(|&row| weights[row]).collect();
        Batch {
            x: self.x.clone().select(0, indices(rows, [rows.len()], &self.x.device())),
            weights: self.weights.as_ref().map(weights_of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Place, to_host};
    use burn::tensor::Device;

    #[test]
    fn an_epoch_holds_every_row_once_and_epochs_differ() {
        let place = Place::new(&Device::flex());
        let rows = Rows::new(place.tensor((0..14).map(f64::from).collect(), [7, 2]));
        let mut order = Order::new(3, Streams::new(1));
        let mut epoch = |number: u64| -> Vec<f64> {
            let batch = |i| rows.batch(3 * number + i, &mut order).x;
            let batches: Vec<_> = (0..3).map(batch).collect();
            assert!(batches.iter().all(|batch| (2..=3).contains(&batch.dims()[0])));
            batches.iter().flat_map(to_host).collect()
        };
        let (first, second) = (epoch(0), epoch(1));
        assert_ne!(first, second);
        assert_eq!(first, epoch(0));
        for mut rows in [first, second] {
            assert!(rows.chunks(2).all(|row| row[1] == row[0] + 1.0));
            rows.sort_by(f64::total_cmp);
            assert_eq!(rows, (0..14).map(f64::from).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_epoch_without_a_list_holds_every_row_once_too() {
        let order = Order::new(3, Streams::new(1));
        let epoch = |number: u64| -> Vec<usize> {
            (0..3).flat_map(|i| order.scattered(3 * number + i, 7)).collect()
        };
        assert_ne!(epoch(0), epoch(1));
        for mut rows in [epoch(0), epoch(1)] {
            rows.sort_unstable();
            assert_eq!(rows, (0..7).collect::<Vec<_>>());
        }
    }

    #[test]
    fn weights_stay_with_their_rows_and_are_one_on_average() {
        let place = Place::new(&Device::flex());
        let x = place.tensor(vec![1.0, 2.0, 3.0, 6.0], [4, 1]);
        let rows = Rows::new(x.clone()).with_weights(&[1.0, 2.0, 3.0, 6.0]).unwrap();
        let mut order = Order::new(2, Streams::new(3));
        for step in 0..4 {
            let batch = rows.batch(step, &mut order);
            let expected: Vec<f64> = to_host(&batch.x).iter().map(|x| x / 3.0).collect();
            assert_eq!(batch.weights.unwrap(), expected);
        }
        assert!(Rows::new(x.clone()).with_weights(&[1.0, -1.0, 0.0, 0.0]).is_err());
        assert!(Rows::new(x).with_weights(&[0.0; 4]).is_err());
    }
}
