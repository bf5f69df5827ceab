//! The small autoregressive EBM with its exact normaliser and exact draws, from a fine grid.

use zhat::ar::ArEbm;
use zhat::burn::tensor::Tensor;
use zhat::host::to_host;
use zhat::model::UnnormalisedModel;
use zhat::rng::Stream;

use crate::support::place;

/// Midpoints of cells on `[-LIMIT, LIMIT]^2`; the model has less than 1e-4 of its mass near the edge.
const LIMIT: f64 = 15.0;
const POINTS: usize = 600;
const STEP: f64 = 2.0 * LIMIT / POINTS as f64;

pub struct Exact {
    pub model: ArEbm,
    pub log_z: f64,
    /// Distribution function over the cells.
    cumulative: Vec<f64>,
}

impl Exact {
    pub fn new() -> Self {
        let (model, _) = crate::small_model::model();
        let rows = (0..POINTS * POINTS).flat_map(|i| [at(i / POINTS), at(i % POINTS)]).collect();
        let log_p_tilde = model.log_p_tilde(place().tensor(rows, [POINTS * POINTS, 2]));
        let mut sum = 0.0;
        let cumulative: Vec<f64> = to_host(&log_p_tilde)
            .iter()
            .map(|log| {
                sum += log.exp();
                sum
            })
            .collect();
        Self { model, log_z: (sum * STEP * STEP).ln(), cumulative }
    }

    /// A cell by its mass, and a point in it: the density is off by the square of the cell's width, some 1e-4.
    pub fn sample(&self, number: usize, rng: &mut Stream) -> Tensor<2> {
        let total = self.cumulative[self.cumulative.len() - 1];
        let rows = (0..number)
            .flat_map(|_| {
                let mass = rng.uniform() * total;
                let cell = self.cumulative.partition_point(|&c| c <= mass);
                [cell / POINTS, cell % POINTS].map(|i| at(i) + STEP * (rng.uniform() - 0.5))
            })
            .collect();
        place().tensor(rows, [number, 2])
    }
}

fn at(cell: usize) -> f64 {
    -LIMIT + (cell as f64 + 0.5) * STEP
}
