//! The rows of a fit as a trainer sees them: numbers in cells anywhere in their cells, and holes filled with draws.
//!
//! The gradient of the likelihood of what is observed is that of whole rows, on average over what is missing given what is observed
//! (Fisher's identity). What is missing begins as what similar rows have there, and is drawn anew again and again, by a kernel that leaves the model's
//! `p(missing | observed)` invariant. That takes missing at random for granted: whether a cell is missing may depend on what is
//! observed of its row, and not on its own value.

use std::cell::RefCell;

use burn::tensor::{Device, Tensor, TensorData};
use zhat::ar::{ArEbm, Evaluator};
use zhat::rng::Streams;
use zhat::smc::SmcConfig;
use zhat::train::{Batch, DataSource, Order, Rows, TrainingConfig};

use crate::data::stored::RowFile;
use crate::data::{Standardiser, Table, fill};
use crate::error::Result;
use crate::prepare::Prepared;

/// How often in a run what is missing is drawn anew, at the least and at most: draws that are kept for longer are learnt by heart.
pub(super) const REDRAWS: [u64; 2] = [4, 40];
/// Within these, how often a row is seen in between, since a redraw takes as long as seeing it some times.
const SEEN: usize = 2;
/// Particles of a redraw: with few of them it moves less, is as right, and there is time for more redraws.
const PARTICLES: usize = 3;

/// Rows for training.
#[derive(Debug)]
pub(super) struct TrainingRows {
    features: usize,
    standardiser: Standardiser,
    /// Where they are not in memory.
    file: Option<RowFile>,
    /// Without cells and holes, as they are.
    plain: Option<Rows>,
    /// Whole rows, with what is missing as it was drawn last.
    values: RefCell<Vec<f32>>,
    /// What each row counts, 1 on average; `None` where all count the same.
    weights: Option<Vec<f64>>,
    /// Places of what is missing.
    holes: Vec<usize>,
    streams: Streams,
}

impl TrainingRows {
    /// Rows of features, and what they count, unless those of the data are in a file; what is missing begins as what other rows have.
    pub fn new(
        data: &Prepared,
        rows: Vec<f32>,
        weights: Option<&[f64]>,
        streams: &Streams,
    ) -> Result<Self> {
        let (features, standardiser) = (data.columns.len(), data.standardiser.clone());
        let holes: Vec<usize> = (0..rows.len()).filter(|&at| rows[at].is_nan()).collect();
        let streams = streams.derive("holes", 0);
        let is_plain = holes.is_empty() && standardiser.kinds().is_empty();
        let weights = weights.map(|weights| {
            let mean = weights.iter().sum::<f64>() / weights.len() as f64;
            weights.iter().map(|weight| weight / mean).collect::<Vec<f64>>()
        });
        let file = data.train_file.clone();
        let (plain, values) = match is_plain {
            _ if file.is_some() => (None, Vec::new()),
            true => {
                let rows = Rows::new(tensor(rows, features));
                let rows = match &weights {
                    Some(weights) => rows.with_weights(weights)?,
                    None => rows,
                };
                (Some(rows), Vec::new())
            }
            false => {
                let observed = if holes.is_empty() { Vec::new() } else { rows.clone() };
                (None, filled_from(observed, rows, data, &streams))
            }
        };
        let values = RefCell::new(values);
        Ok(Self { features, standardiser, file, plain, values, weights, holes, streams })
    }

    /// Whether there is something missing.
    pub fn have_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Steps from one redraw of what is missing to the next.
    pub fn redraw_every(&self, training: &TrainingConfig) -> u64 {
        let rows = self.values.borrow().len() / self.features;
        redraw_every(training.num_steps, between(rows, training.batch_size))
    }

    /// Draws what is missing anew, by the model as it is.
    pub fn redraw(&self, model: &ArEbm, step: u64, threads: usize) -> Result<()> {
        if self.holes.is_empty() {
            return Ok(());
        }
        let mut rows: Vec<usize> = self.holes.iter().map(|hole| hole / self.features).collect();
        rows.dedup();
        let mut missing = vec![false; rows.len() * self.features];
        let mut at = 0;
        for hole in &self.holes {
            at += rows[at..].iter().take_while(|&&row| row < hole / self.features).count();
            missing[at * self.features + hole % self.features] = true;
        }
        let x: Vec<f32> = {
            let values = self.values.borrow();
            rows.iter()
                .flat_map(|row| values[row * self.features..][..self.features].to_vec())
                .collect()
        };
        let smc = SmcConfig::new(PARTICLES)?;
        let moved = Evaluator::new(model, threads)?.coarse().redraw_missing(
            &x,
            &missing,
            &smc,
            &self.streams,
            step,
        )?;
        let mut values = self.values.borrow_mut();
        for (&row, moved) in rows.iter().zip(moved.chunks_exact(self.features)) {
            values[row * self.features..][..self.features].copy_from_slice(moved);
        }
        Ok(())
    }

    /// What is missing as it was drawn last, to be kept in a checkpoint.
    pub fn drawn(&self) -> Vec<f32> {
        let values = self.values.borrow();
        self.holes.iter().map(|&hole| values[hole]).collect()
    }

    /// Goes back to what was kept.
    pub fn restore(&self, drawn: &[f32]) {
        let mut values = self.values.borrow_mut();
        self.holes.iter().zip(drawn).for_each(|(&hole, &value)| values[hole] = value);
    }
}

/// Steps in which rows are seen as often as they are between two redraws of what is missing.
pub(super) fn between(rows: usize, batch_size: usize) -> u64 {
    (SEEN * rows).div_ceil(batch_size).max(1) as u64
}

/// Steps from one redraw to the next: as many as `between`, unless that makes too few or too many redraws of so many steps.
fn redraw_every(num_steps: u64, between: u64) -> u64 {
    let [fewest, most] = REDRAWS;
    between.min(num_steps / fewest).max(num_steps / most).max(1)
}

impl DataSource for TrainingRows {
    /// # Panics
    /// If rows are in a file that cannot be read any more.
    fn batch(&self, step: u64, order: &mut Order) -> Batch {
        if let Some(file) = &self.file {
            let rows = order.scattered(step, file.rows());
            let mut batch = file.read(&rows).unwrap_or_else(|error| panic!("{error}"));
            self.standardiser.apply(&mut batch);
            self.standardiser.spread(&mut batch, &mut order.streams.stream("spread", step, 0));
            return tensor(batch, self.features).into();
        }
        if let Some(plain) = &self.plain {
            return plain.batch(step, order);
        }
        let mut rng = order.streams.stream("spread", step, 0);
        let values = self.values.borrow();
        let rows = order.rows(step, values.len() / self.features);
        let mut batch = Vec::with_capacity(rows.len() * self.features);
        for row in rows {
            batch.extend_from_slice(&values[row * self.features..][..self.features]);
        }
        self.standardiser.spread(&mut batch, &mut rng);
        let weights_of = |weights: &Vec<f64>| rows.iter().map(|&row| weights[row]).collect();
        Batch { x: tensor(batch, self.features), weights: self.weights.as_ref().map(weights_of) }
    }
}

fn tensor(rows: Vec<f32>, features: usize) -> Tensor<2> {
    let shape = [rows.len() / features, features];
    Tensor::from_data(TensorData::new(rows, shape), &Device::flex())
}

/// Rows of features with what is missing as training rows have it.
pub(super) fn filled(data: &Prepared, rows: Vec<f32>, streams: &Streams) -> Vec<f32> {
    let has_holes = rows.iter().any(|value| value.is_nan());
    let observed = if has_holes { data.train.clone() } else { Vec::new() };
    filled_from(observed, rows, data, streams)
}

fn filled_from(
    mut observed: Vec<f32>,
    mut rows: Vec<f32>,
    data: &Prepared,
    streams: &Streams,
) -> Vec<f32> {
    if rows.iter().any(|value| value.is_nan()) {
        data.standardiser.blank_atoms(&mut observed);
        let observed = Table::new(data.columns.clone(), observed);
        fill(&mut rows, &observed, &mut streams.stream("fill", 0, 0));
    }
    rows
}

/// Rows of the features that are numbers, without holes and anywhere in their cells: what a mixture of Gaussians can be fitted to.
pub(super) fn numbers(data: &Prepared, mut rows: Vec<f32>, streams: &Streams) -> Vec<f32> {
    let (kinds, features) = (data.standardiser.kinds(), data.columns.len());
    data.standardiser.blank_atoms(&mut rows);
    let mut rows = filled(data, rows, streams);
    if kinds.is_empty() {
        return rows;
    }
    let mut rng = streams.stream("spread-once", 0, 0);
    data.standardiser.spread(&mut rows, &mut rng);
    let is_number = |(at, _): &(usize, f32)| !kinds[at % features].is_categorical();
    rows.into_iter().enumerate().filter(is_number).map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_of_many_rows_redraw_a_few_times_and_long_ones_of_few_rows_not_too_often() {
        assert_eq!(redraw_every(1_000, between(20_000, 256)), 157);
        assert_eq!(
            redraw_every(1_000, between(1_000_000, 256)),
            250,
            "less than one pass over the rows"
        );
        assert_eq!(redraw_every(8_000, between(1_000, 256)), 200);
        assert_eq!(redraw_every(2, between(1_000, 256)), 1);
    }
}
