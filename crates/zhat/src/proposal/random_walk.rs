//! The Gaussian random walk `q(x' | x_0) = N(x_0, epsilon^2 I)`.

use burn::tensor::Tensor;

use super::{ConditionalProposal, Proposed};
use crate::error::{Result, positive};
use crate::host::{Place, to_host};
use crate::linalg;
use crate::rng::Stream;

/// A symmetric Gaussian step; `epsilon` is the step size.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomWalk {
    step_size: f64,
}

impl RandomWalk {
    /// A random walk with a given step size.
    pub fn new(step_size: f64) -> Result<Self> {
        Ok(Self { step_size: positive("step_size", step_size)? })
    }

    /// With the mean standard deviation of the columns of `data`, as in the paper's ring experiment.
    ///
    /// # Shapes
    /// - `data`: `[n, d]`
    pub fn fitted(data: &Tensor<2>) -> Result<Self> {
        let dimension = data.dims()[1];
        let (_, std_dev) = linalg::column_moments(&to_host(data), dimension);
        Self::new(std_dev.iter().sum::<f64>() / dimension as f64)
    }

    /// The step size `epsilon`.
    pub fn step_size(&self) -> f64 {
        self.step_size
    }
}

impl<M: ?Sized> ConditionalProposal<M> for RandomWalk {
    fn propose(
        &self,
        _model: &M,
        x0: &Tensor<2>,
        num_negatives: usize,
        rng: &mut Stream,
    ) -> Result<Proposed> {
        let [rows, dimension] = x0.dims();
        let mut values = Vec::with_capacity(rows * num_negatives * dimension);
        for row in to_host(x0).chunks_exact(dimension) {
            for _ in 0..num_negatives {
                values.extend(row.iter().map(|x| x + self.step_size * rng.normal()));
            }
        }
        let x = Place::of(x0).tensor(values, [rows, num_negatives, dimension]);
        Ok(Proposed { x, log_ratio: None })
    }
}
