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
#[allow(unused_imports)] // for the documentation
use crate::kernel::Contrast;
use crate::kernel::{Candidates, Terms};
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
/// - `data`: `[n]`, `log p~` of the batch with its graph
/// - `negative`: `[m, c]`; `m` differs from `n` where there are several persistent chains to a data point
/// - output: `[1]`
pub fn surrogate(data: Tensor<1>, negative: &Terms) -> Tensor<1> {
    let rows = negative.weights.dims()[0] as f64;
    let negative_phase = (negative.log_p_tilde.clone() * negative.weights.clone()).sum() / rows;
    negative_phase - data.mean()
}
