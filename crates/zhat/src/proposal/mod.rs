//! Proposals: where the candidates come from, `q(x)` or `q(x' | x_0)`.

mod adaptive;
mod hamiltonian;
mod langevin;
mod mixture;
mod model_itself;
mod path;
mod random_walk;
mod whole_rows;

pub use adaptive::Adaptive;
pub use hamiltonian::Hamiltonian;
pub use langevin::Langevin;
pub use mixture::{Component, GaussianMixture};
pub use model_itself::ModelItself;
pub use path::Path;
pub use random_walk::RandomWalk;
pub use whole_rows::WholeRows;

use burn::tensor::Tensor;

use crate::error::Result;
use crate::host::{Place, to_host};
use crate::rng::Stream;

/// A normalised density `q` that can be drawn from and evaluated.
///
/// Implement this for a proposal of your own; it then works wherever an [`IndependentProposal`] or a
/// [`ConditionalProposal`] is asked for.
pub trait Proposal {
    /// Independent draws.
    ///
    /// # Shapes
    /// - output: `[number, d]`
    fn sample(&self, number: usize, place: &Place, rng: &mut Stream) -> Tensor<2>;

    /// `log q(x)`, normalised.
    ///
    /// # Shapes
    /// - `x`: `[n, d]`
    /// - output: `[n]`
    fn log_prob(&self, x: Tensor<2>) -> Tensor<1>;

    /// `log q(x)` of every row as numbers, for weights; to be implemented where a graph would be made in vain.
    ///
    /// # Shapes
    /// - `x`: `[n, d]`
    fn log_prob_values(&self, x: &Tensor<2>) -> Vec<f64> {
        to_host(&self.log_prob(x.clone()))
    }
}

impl<Q: Proposal + ?Sized> Proposal for Box<Q> {
    fn sample(&self, number: usize, place: &Place, rng: &mut Stream) -> Tensor<2> {
        (**self).sample(number, place, rng)
    }

    fn log_prob(&self, x: Tensor<2>) -> Tensor<1> {
        (**self).log_prob(x)
    }

    fn log_prob_values(&self, x: &Tensor<2>) -> Vec<f64> {
        (**self).log_prob_values(x)
    }
}

/// Draws that do not depend on where the chain is, with the density of all candidates: what importance sampling needs.
pub trait IndependentProposal<M: ?Sized> {
    /// `num_negatives` draws for each row, and `log q` of the row itself and of its draws.
    ///
    /// # Shapes
    /// - `x0`: `[n, d]`
    fn draw(&self, model: &M, x0: &Tensor<2>, num_negatives: usize, rng: &mut Stream) -> Draws;
}

/// Independent draws and their densities.
pub struct Draws {
    /// Candidates `x_1..x_J` of each row: `[n, J, d]`.
    pub x: Tensor<3>,
    /// `log q(x_0), log q(x_1), .., log q(x_J)` of each row: `n * (J + 1)` values.
    pub log_q: Vec<f64>,
}

/// Draws around where the chain is, `x_j ~ q(. | x_0)`; the model is there for proposals that follow its score.
pub trait ConditionalProposal<M: ?Sized> {
    /// `num_negatives` draws for each row.
    ///
    /// # Shapes
    /// - `x0`: `[n, d]`
    fn propose(
        &self,
        model: &M,
        x0: &Tensor<2>,
        num_negatives: usize,
        rng: &mut Stream,
    ) -> Result<Proposed>;
}

/// Conditional draws and how much likelier they are than the way back.
pub struct Proposed {
    /// Candidates `x_1..x_J` of each row: `[n, J, d]`.
    pub x: Tensor<3>,
    /// `log q(x_j | x_0) - log q(x_0 | x_j)`: `n * J` values, or `None` where they are all zero (a symmetric proposal).
    pub log_ratio: Option<Vec<f64>>,
}

/// A proposal for sequential Monte Carlo: one column after the other, given those before.
pub trait SequentialProposal {
    /// A draw of column `stage` for every row.
    ///
    /// # Shapes
    /// - `prefix`: `[n, d]`, of which only the columns before `stage` are known
    /// - output: `[n]`
    fn sample(&self, stage: usize, prefix: Tensor<2>, rng: &mut Stream) -> Tensor<1>;

    /// `log q(x_stage | x_<stage)`, normalised.
    ///
    /// # Shapes
    /// - `x`: `[n, d]`, of which only the columns up to `stage` are known
    /// - output: `[n]`
    fn log_prob(&self, stage: usize, x: Tensor<2>) -> Tensor<1>;
}

impl<M: ?Sized, Q: Proposal> IndependentProposal<M> for Q {
    fn draw(&self, _model: &M, x0: &Tensor<2>, num_negatives: usize, rng: &mut Stream) -> Draws {
        draw_from(self, x0, num_negatives, rng)
    }
}

impl<M: ?Sized, Q: Proposal> ConditionalProposal<M> for Q {
    fn propose(
        &self,
        _model: &M,
        x0: &Tensor<2>,
        num_negatives: usize,
        rng: &mut Stream,
    ) -> Result<Proposed> {
        Ok(Proposed::from(draw_from(self, x0, num_negatives, rng)))
    }
}

impl From<Draws> for Proposed {
    /// Independent draws as conditional ones: the way back to `x_0` has density `q(x_0)`.
    fn from(draws: Draws) -> Self {
        let columns = draws.x.dims()[1] + 1;
        let log_ratio = draws
            .log_q
            .chunks_exact(columns)
            .flat_map(|row| row[1..].iter().map(|log_q| log_q - row[0]))
            .collect();
        Self { x: draws.x, log_ratio: Some(log_ratio) }
    }
}

/// Draws from a density, with the density of the rows themselves beside them.
fn draw_from<Q: Proposal + ?Sized>(
    proposal: &Q,
    x0: &Tensor<2>,
    num_negatives: usize,
    rng: &mut Stream,
) -> Draws {
    let [rows, dimension] = x0.dims();
    let draws = proposal.sample(rows * num_negatives, &Place::of(x0), rng);
    let of_rows = proposal.log_prob_values(x0);
    let of_draws = proposal.log_prob_values(&draws);
    let mut log_q = Vec::with_capacity(rows * (num_negatives + 1));
    for (row, draws) in of_rows.iter().zip(of_draws.chunks_exact(num_negatives)) {
        log_q.push(*row);
        log_q.extend_from_slice(draws);
    }
    Draws { x: draws.reshape([rows, num_negatives, dimension]), log_q }
}
