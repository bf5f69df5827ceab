//! Criteria: weighted candidates as a loss to be minimised.
//!
//! Every method of the paper minimises `-log p~(x_0)` plus an estimate of `log Z`, and every gradient has the form
//!
//! ```text
//! -grad log p~(x_0) + sum_j w_j grad log p~(x_j)
//! ```
//!
//! which is written once, in [`surrogate`]. What differs is where the candidates come from and how they are weighed (a
//! [`Contrast`](crate::kernel::Contrast)), and where its chain starts: from the data ([`FromData`]) or from where it was ([`Persistent`]). The
//! names that the literature uses are short compositions of these, in [`Method`].

mod adapted;
mod from_data;
mod method;
mod ml_is;
mod nce;
mod persistent;
mod score_matching;
mod self_normalised;

pub use adapted::Adapted;
pub use from_data::FromData;
pub use method::{Method, MethodConfig};
pub use ml_is::ImportanceSampling;
pub use nce::BinaryNce;
pub use persistent::Persistent;
pub use score_matching::{DenoisingScoreMatching, SlicedScoreMatching};
pub use self_normalised::SelfNormalised;

use burn::tensor::{Gradients, Tensor};

use crate::error::Result;
use crate::host::Place;
use crate::kernel::{Candidates, Terms};
use crate::rng::Stream;
use crate::train::{Batch, Parts};

/// Something to minimise in `theta`.
pub trait Criterion<M: ?Sized> {
    /// The loss of a batch.
    fn loss(&mut self, model: &M, batch: &Batch, rng: &mut Stream) -> Result<Loss>;

    /// The value of the criterion with its graph, for methods that have one; its gradient is the surrogate's.
    ///
    /// # Shapes
    /// - output: `[1]`
    fn value(&self, loss: &Loss) -> Option<Tensor<1>>;

    /// Takes a step in whatever else learns beside the model, such as an adaptive proposal.
    fn update(&mut self, _gradients: &mut Gradients, _learning_rate: f64) {}

    /// Puts away what the next loss depends on besides the model: chains, a proposal that learns.
    fn save(&self, _parts: &mut Parts) -> Result<()> {
        Ok(())
    }

    /// Takes it up again.
    fn load(&mut self, _parts: &mut Parts) -> Result<()> {
        Ok(())
    }
}

/// A loss and what it was made of.
#[derive(Debug, Clone)]
pub struct Loss {
    /// Its gradient in `theta` is the method's gradient; its value means nothing. Shape `[1]`.
    pub surrogate: Tensor<1>,
    /// The value of the criterion over the rows; where a method has none, how much higher `log p~` of its candidates is than
    /// that of the data.
    pub value: f64,
    /// The loss of the proposal's own parameters, if it learns. Shape `[1]`.
    pub adaptation: Option<Tensor<1>>,
    /// The candidates of the last step.
    pub candidates: Candidates,
}

impl<M: ?Sized, C: Criterion<M> + ?Sized> Criterion<M> for Box<C> {
    fn loss(&mut self, model: &M, batch: &Batch, rng: &mut Stream) -> Result<Loss> {
        (**self).loss(model, batch, rng)
    }

    fn value(&self, loss: &Loss) -> Option<Tensor<1>> {
        (**self).value(loss)
    }

    fn update(&mut self, gradients: &mut Gradients, learning_rate: f64) {
        (**self).update(gradients, learning_rate);
    }

    fn save(&self, parts: &mut Parts) -> Result<()> {
        (**self).save(parts)
    }

    fn load(&mut self, parts: &mut Parts) -> Result<()> {
        (**self).load(parts)
    }
}

/// `mean(-log p~(x_0)) + mean(sum_j w_j log p~(x_j))`, whose gradient is that of every method (eq. cd:grad).
///
/// Rows may count more or less than others; `weights` are 1 on average.
///
/// # Shapes
/// - output: `[1]`
pub fn surrogate(candidates: &Candidates, weights: Option<&[f64]>) -> Tensor<1> {
    phases(candidates, 1.0, weights)
}

/// `1/n sum_n v_n (sum_j w_nj log p~(x_nj) - s log p~(x_n0))`: every gradient is that of this sum, written once.
///
/// The mean is over the chains, of which there may be several to a data point where the share `s` of the data is zero.
fn phases(candidates: &Candidates, share_of_data: f64, weights: Option<&[f64]>) -> Tensor<1> {
    let rows = candidates.log_p_tilde.dims()[0];
    let of_row = |row: usize| weights.map_or(1.0, |weights| weights[row]) / rows as f64;
    let place = Place::of(&candidates.x);
    let Some(Terms { start, log_p_tilde, weights: of_terms }) = &candidates.terms else {
        // The data point is the first of the candidates, so that both phases are one weighted sum.
        let mut coefficients = Vec::with_capacity(candidates.weights.values().len());
        for (row, weights) in candidates.weights.rows().enumerate() {
            let of_row = of_row(row);
            let start = coefficients.len();
            coefficients.extend(weights.iter().map(|weight| of_row * weight));
            coefficients[start] = of_row * (weights[0] - share_of_data);
        }
        let coefficients: Tensor<2> = place.tensor(coefficients, candidates.log_p_tilde.dims());
        return (candidates.log_p_tilde.clone() * coefficients).sum();
    };
    let rows: Tensor<1> = place.tensor((0..rows).map(of_row).collect(), [rows]);
    let coefficients = of_terms.clone() * rows.clone().unsqueeze_dim(1);
    let negative = (log_p_tilde.clone() * coefficients).sum();
    if share_of_data == 0.0 { negative } else { negative - (start.clone() * rows).sum() }
}
