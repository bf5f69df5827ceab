//! Criteria: weighted candidates as a loss to be minimised.
//!
//! Every method of the paper minimises `-log p~(x_0)` plus an estimate of `log Z`, and every gradient has the form
//!
//! ```text
//! -grad log p~(x_0) + sum_j w_j grad log p~(x_j)
//! ```
//!
//! which is written once, in [`surrogate`]. What differs is where the candidates come from and how they are weighed (a
//! [`Contrast`]), and where its chain starts: from the data ([`FromData`]) or from where it was ([`Persistent`]). The
//! names that the literature uses are short compositions of these, in [`Method`].

mod from_data;
mod method;
mod ml_is;
mod nce;
mod persistent;

pub use from_data::FromData;
pub use method::{Method, MethodConfig};
pub use ml_is::ImportanceSampling;
pub use nce::BinaryNce;
pub use persistent::Persistent;

use burn::tensor::{Gradients, Tensor};

use crate::error::Result;
use crate::host::Place;
use crate::kernel::Candidates;
#[allow(unused_imports)] // for the documentation
use crate::kernel::Contrast;
use crate::rng::Stream;

/// Something to minimise in `theta`.
pub trait Criterion<M: ?Sized> {
    /// The loss of a batch.
    ///
    /// # Shapes
    /// - `x0`: `[n, d]`
    fn loss(&mut self, model: &M, x0: Tensor<2>, rng: &mut Stream) -> Result<Loss>;

    /// The value of the criterion with its graph, for methods that have one; its gradient is the surrogate's.
    ///
    /// # Shapes
    /// - output: `[1]`
    fn value(&self, loss: &Loss) -> Option<Tensor<1>>;

    /// Takes a step in whatever else learns beside the model, such as an adaptive proposal.
    fn update(&mut self, _gradients: &mut Gradients, _learning_rate: f64) {}
}

/// A loss and what it was made of.
#[derive(Debug, Clone)]
pub struct Loss {
    /// Its gradient in `theta` is the method's gradient; its value means nothing. Shape `[1]`.
    pub surrogate: Tensor<1>,
    /// The loss of the proposal's own parameters, if it learns. Shape `[1]`.
    pub adaptation: Option<Tensor<1>>,
    /// The candidates of the last step.
    pub candidates: Candidates,
}

impl<M: ?Sized, C: Criterion<M> + ?Sized> Criterion<M> for Box<C> {
    fn loss(&mut self, model: &M, x0: Tensor<2>, rng: &mut Stream) -> Result<Loss> {
        (**self).loss(model, x0, rng)
    }

    fn value(&self, loss: &Loss) -> Option<Tensor<1>> {
        (**self).value(loss)
    }

    fn update(&mut self, gradients: &mut Gradients, learning_rate: f64) {
        (**self).update(gradients, learning_rate);
    }
}

/// `mean(-log p~(x_0)) + mean(sum_j w_j log p~(x_j))`, whose gradient is that of every method (eq. cd:grad).
///
/// # Shapes
/// - output: `[1]`
pub fn surrogate(candidates: &Candidates) -> Tensor<1> {
    if candidates.terms.is_some() {
        return negative_phase(candidates) - candidates.start().mean();
    }
    // The data point is the first of the candidates, so that both phases are one weighted sum.
    weighted_sum(candidates, |column, weight| if column == 0 { weight - 1.0 } else { weight })
}

/// `mean(sum_j w_j log p~(x_j))`, the estimate of the gradient of `log Z`.
///
/// The mean is over the chains, of which there may be several to a data point.
///
/// # Shapes
/// - output: `[1]`
pub fn negative_phase(candidates: &Candidates) -> Tensor<1> {
    match &candidates.terms {
        None => weighted_sum(candidates, |_, weight| weight),
        Some(terms) => {
            let rows = terms.weights.dims()[0] as f64;
            (terms.log_p_tilde.clone() * terms.weights.clone()).sum() / rows
        }
    }
}

/// `1/n sum c_j log p~(x_j)` with a coefficient for each column and weight.
fn weighted_sum(candidates: &Candidates, coefficient: impl Fn(usize, f64) -> f64) -> Tensor<1> {
    let [rows, columns] = candidates.log_p_tilde.dims();
    let share = 1.0 / rows as f64;
    let weights = candidates.weights.values().iter().enumerate();
    let coefficients =
        weights.map(|(i, weight)| share * coefficient(i % columns, *weight)).collect();
    let coefficients = Place::of(&candidates.x).tensor(coefficients, [rows, columns]);
    (candidates.log_p_tilde.clone() * coefficients).sum()
}
