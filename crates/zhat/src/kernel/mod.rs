//! Kernels: ways to make weighted candidates, one of which is the next state of a p_theta-invariant chain.

mod barker;
mod conditional_importance;
mod conditional_smc;
mod metropolis;
mod repeat;

pub use barker::Barker;
pub use conditional_importance::ConditionalImportance;
pub use conditional_smc::{ConditionalSmc, SmcGradient};
pub use metropolis::Metropolis;
pub use repeat::Repeat;

use burn::tensor::Tensor;

use crate::error::Result;
use crate::host::{Place, indices, to_host};
use crate::model::UnnormalisedModel;
use crate::proposal::Proposed;
use crate::rng::Stream;
use crate::weights::{LogWeights, Weights, check_finite};

/// What stands for `log p~` outside the support in a graph: a weight of zero times this is zero, times minus infinity it
/// would not be a number. Within the range of 32-bit floats.
const OUTSIDE: f64 = -1e30;

/// Weighted candidates for the gradient of `log Z`: what all the methods differ in.
///
/// Everything a method is follows from this one function. See [`crate::criterion`] for how it becomes a loss.
pub trait Contrast<M: ?Sized> {
    /// Candidates for every row of `state`, each evaluated once.
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates>;

    /// The value of the criterion with its graph, for methods that have one; its gradient is the surrogate's.
    ///
    /// # Shapes
    /// - output: `[1]`, the mean over rows
    fn value(&self, _candidates: &Candidates) -> Option<Tensor<1>> {
        None
    }

    /// The same as a number; to be implemented where a graph would be made in vain at every step.
    fn value_on_host(&self, candidates: &Candidates) -> Option<f64> {
        self.value(candidates).map(|value| to_host(&value)[0])
    }
}

/// A contrast whose candidate, drawn by its weight, is a step of a chain that leaves `p_theta` invariant.
///
/// This is a promise of the implementation; [`testing::invariance`](crate::testing::invariance) holds a kernel to it.
pub trait Kernel<M: ?Sized>: Contrast<M> {}

impl<M: ?Sized, K: Contrast<M> + ?Sized> Contrast<M> for Box<K> {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        (**self).propose(model, state, rng)
    }

    fn value(&self, candidates: &Candidates) -> Option<Tensor<1>> {
        (**self).value(candidates)
    }

    fn value_on_host(&self, candidates: &Candidates) -> Option<f64> {
        (**self).value_on_host(candidates)
    }
}

impl<M: ?Sized, K: Kernel<M> + ?Sized> Kernel<M> for Box<K> {}

/// Where the chains are.
#[derive(Debug, Clone)]
pub struct State {
    /// One chain a row: `[n, d]`, without autodiff.
    pub x: Tensor<2>,
    /// `log p~` of the rows with its graph, if it has been evaluated already: `[n]`.
    pub log_p_tilde: Option<Tensor<1>>,
}

impl State {
    /// Chains that have not been evaluated.
    pub fn new(x: Tensor<2>) -> Self {
        Self { x: x.inner(), log_p_tilde: None }
    }
}

/// The candidates of every row, with the model's log-density still attached to the graph and constant weights.
#[derive(Debug, Clone)]
pub struct Candidates {
    /// `x_0..x_J`, where `x_0` is the state that the kernel started from: `[n, c, d]`.
    pub x: Tensor<3>,
    /// `log p~(x_j)`, attached to the graph: `[n, c]`. Outside the support of the model -1e30 without a graph, so that a
    /// gradient that weighs it by zero stays a number.
    pub log_p_tilde: Tensor<2>,
    /// What is subtracted from `log p~` to give `log w~`; a constant: `n * c` values.
    pub log_proposal: Vec<f64>,
    /// `log w~_j`.
    pub log_w_tilde: LogWeights,
    /// `w_j`; constants by construction.
    pub weights: Weights,
    /// `log Z-hat` of each row with the graph, where the kernel has one of its own (CSMC): `[n]`.
    pub log_z_hat: Option<Tensor<1>>,
    /// What the gradient sums over, where that is not the candidates themselves: several steps, and SMC.
    pub terms: Option<Terms>,
}

/// Terms of the gradient: `sum_j w_j log p~_j` over a row, less `log p~` of where the first step started.
#[derive(Debug, Clone)]
pub struct Terms {
    /// `log p~` of where the first step started, attached to the graph: `[n]`.
    pub start: Tensor<1>,
    /// Attached log-densities: `[n, m]`.
    pub log_p_tilde: Tensor<2>,
    /// Constant weights: `[n, m]`.
    pub weights: Tensor<2>,
}

impl Candidates {
    /// Candidates of one step, which are themselves what the gradient sums over.
    ///
    /// A candidate outside the support of the model (`log p~` minus infinity) has a log-weight of minus infinity; the first
    /// one, where the chain or the data are, must not be there.
    ///
    /// # Shapes
    /// - `x`: `[n, c, d]`
    /// - `log_p_tilde`: `[n, c]`
    /// - `log_proposal`: `n * c` values
    pub fn new(
        x: Tensor<3>,
        log_p_tilde: Tensor<2>,
        log_proposal: Vec<f64>,
        weigh: impl FnOnce(&LogWeights) -> Weights,
    ) -> Result<Self> {
        let log_w_tilde = LogWeights::new(&log_p_tilde, &log_proposal)?;
        let start: Vec<f64> = log_w_tilde.rows().map(|row| row[0]).collect();
        check_finite("log_p_tilde of the model", &start, 1)?;
        let log_p_tilde = match log_w_tilde.rows().flatten().any(|log_w| log_w.is_infinite()) {
            true => {
                log_p_tilde.clone().mask_fill(log_p_tilde.equal_elem(f64::NEG_INFINITY), OUTSIDE)
            }
            false => log_p_tilde,
        };
        let weights = weigh(&log_w_tilde);
        let (log_z_hat, terms) = (None, None);
        Ok(Self { x, log_p_tilde, log_proposal, log_w_tilde, weights, log_z_hat, terms })
    }

    /// `log p~` of where the first step started, attached to the graph.
    ///
    /// # Shapes
    /// - output: `[n]`
    pub fn start(&self) -> Tensor<1> {
        match &self.terms {
            Some(terms) => terms.start.clone(),
            None => self.log_p_tilde.clone().narrow(1, 0, 1).squeeze_dim(1),
        }
    }

    /// `log w~_j = log p~(x_j) - log q(x_j)` with the graph.
    ///
    /// # Shapes
    /// - output: `[n, c]`
    pub fn attached_log_w_tilde(&self) -> Tensor<2> {
        let shape = self.log_p_tilde.dims();
        self.log_p_tilde.clone() - Place::of(&self.x).tensor(self.log_proposal.clone(), shape)
    }

    /// Draws one candidate of each row by its weight: one step of the chain.
    pub fn select(&self, rng: &mut Stream) -> State {
        let [rows, _, dimension] = self.x.dims();
        let (chosen, x) = self.draw(rng);
        let index = indices::<2>(&chosen, [rows, 1], &self.x.device());
        State {
            x: Place::of(&self.x).tensor(x, [rows, dimension]),
            log_p_tilde: Some(self.log_p_tilde.clone().gather(1, index).squeeze_dim(1)),
        }
    }

    /// The candidate of each row that was drawn by its weight, and where it is: the step without the graph.
    pub(crate) fn draw(&self, rng: &mut Stream) -> (Vec<usize>, Vec<f64>) {
        let [_, candidates, dimension] = self.x.dims();
        let chosen: Vec<usize> = self.weights.rows().map(|row| rng.categorical(row)).collect();
        let values = to_host(&self.x);
        let mut x = Vec::with_capacity(chosen.len() * dimension);
        for (row, candidate) in chosen.iter().enumerate() {
            let at = (row * candidates + candidate) * dimension;
            x.extend_from_slice(&values[at..at + dimension]);
        }
        (chosen, x)
    }

    /// Mean probability to leave the starting point, `1 - w_0`: the acceptance probability of a kernel on pairs.
    pub fn move_probability(&self) -> f64 {
        let rows = self.x.dims()[0] as f64;
        self.weights.rows().map(|row| 1.0 - row[0]).sum::<f64>() / rows
    }
}

/// Candidates from pairs `(x_0, x_j)` under an acceptance rule: the body of the Barker and the Metropolis kernel, and of
/// one of your own. `acceptance` takes the log of `w(x_j|x_0) / w(x_0|x_j)`; the kernel is invariant if
/// `acceptance(r) = exp(r) acceptance(-r)`.
pub fn pairwise<M: UnnormalisedModel + ?Sized>(
    model: &M,
    state: State,
    proposed: Proposed,
    acceptance: fn(f64) -> f64,
) -> Result<Candidates> {
    let [rows, num_negatives, _] = proposed.x.dims();
    let mut log_proposal = vec![0.0; rows * (num_negatives + 1)];
    if let Some(log_ratio) = proposed.log_ratio {
        let columns = log_proposal.chunks_exact_mut(num_negatives + 1);
        for (row, ratios) in columns.zip(log_ratio.chunks_exact(num_negatives)) {
            row[1..].copy_from_slice(ratios);
        }
    }
    let (x, log_p_tilde) = evaluate(model, state, proposed.x);
    Candidates::new(x, log_p_tilde, log_proposal, |log_w| log_w.accept(acceptance))
}

/// The rows with their negatives beside them, and `log p~` of all; a row known already is not evaluated again.
///
/// # Shapes
/// - `negatives`: `[n, J, d]`
/// - output: `[n, J + 1, d]` and `[n, J + 1]`
pub fn evaluate<M: UnnormalisedModel + ?Sized>(
    model: &M,
    state: State,
    negatives: Tensor<3>,
) -> (Tensor<3>, Tensor<2>) {
    let [rows, num_negatives, dimension] = negatives.dims();
    let candidates = num_negatives + 1;
    let x = Tensor::cat(vec![state.x.unsqueeze_dim(1), negatives.clone()], 1);
    let log_p_tilde = match state.log_p_tilde {
        None => model
            .log_p_tilde(x.clone().reshape([rows * candidates, dimension]))
            .reshape([rows, candidates]),
        Some(known) => {
            let new = model
                .log_p_tilde(negatives.reshape([rows * num_negatives, dimension]))
                .reshape([rows, num_negatives]);
            Tensor::cat(vec![known.unsqueeze_dim(1), new], 1)
        }
    };
    (x, log_p_tilde)
}
