//! Loss and gradient of a batch: the one thing in which models, devices and methods differ in training.

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Tensor};
use serde::{Deserialize, Serialize};

use super::optimiser::gradient_norm;
use super::state::Parts;
use crate::criterion::{Criterion, Loss};
use crate::error::{Error, Result};
use crate::rng::Streams;

/// Rows of data for one step.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The rows: `[n, d]`, without autodiff.
    pub x: Tensor<2>,
    /// What each row counts, 1 on average over all data; `None` where all count the same.
    pub weights: Option<Vec<f64>>,
}

impl Batch {
    /// What each row counts, of a whole of about 1.
    pub fn shares(&self) -> Vec<f64> {
        let rows = self.x.dims()[0];
        let weight = |row: usize| self.weights.as_ref().map_or(1.0, |weights| weights[row]);
        (0..rows).map(|row| weight(row) / rows as f64).collect()
    }
}

impl From<Tensor<2>> for Batch {
    fn from(x: Tensor<2>) -> Self {
        Self { x, weights: None }
    }
}

/// Something that can be trained: how the loss of a batch changes with the parameters of a model.
///
/// A [`Trainer`](super::Trainer) does the rest. Whatever a step keeps from one batch to the next (persistent chains, a
/// proposal that learns) is part of its state, so that a run that was stopped goes on to the same bits.
pub trait TrainingStep<M> {
    /// Loss and gradient of a batch; the model is left as it is. `step` counts from 0 and names the random streams.
    fn gradient(
        &mut self,
        model: &M,
        batch: &Batch,
        streams: &Streams,
        step: u64,
    ) -> Result<(GradientsParams, StepReport)>;

    /// Whether gradients are Burn's, found by walking its graph back.
    ///
    /// If not, the [`Trainer`](super::Trainer) keeps the parameters out of the graph (`model.no_grad()`): it would remember those of every step
    /// until someone walks it.
    fn uses_graph(&self) -> bool {
        true
    }

    /// The model takes the step: what learns beside it may take its own.
    fn accept(&mut self, _learning_rate: f64) {}

    /// Puts away what the next step needs besides the model.
    fn save(&self, _parts: &mut Parts) -> Result<()> {
        Ok(())
    }

    /// Takes it up again.
    fn load(&mut self, _parts: &mut Parts) -> Result<()> {
        Ok(())
    }
}

/// What a step found, as means over the batch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// The value of the loss; where a method has a gradient but no criterion, how much higher `log p~` of its candidates is
    /// than that of the data.
    pub loss: f64,
    /// Euclidean norm of the gradient, before clipping.
    pub gradient_norm: f64,
    /// Effective sample size of the candidates, where there are any.
    pub effective_sample_size: Option<f64>,
    /// `-log q(x_0)`, where a proposal of the model's own is trained with it.
    pub proposal_nll: Option<f64>,
    /// Whether the model itself is not trained yet, but only its proposal.
    pub warming_up: bool,
}

/// A criterion on any Burn module, differentiated by Burn.
pub struct CriterionStep<C> {
    criterion: C,
    loss: Option<Loss>,
    gradients: Option<Gradients>,
}

impl<C> CriterionStep<C> {
    /// Trains by a criterion.
    pub fn new(criterion: C) -> Self {
        Self { criterion, loss: None, gradients: None }
    }

    /// The loss of the last batch, with its candidates. Its graph has been used up.
    ///
    /// # Panics
    /// Before the first step.
    pub fn loss(&self) -> &Loss {
        self.loss.as_ref().expect("a step has been taken")
    }
}

impl<M: Module, C: Criterion<M>> TrainingStep<M> for CriterionStep<C> {
    fn gradient(
        &mut self,
        model: &M,
        batch: &Batch,
        streams: &Streams,
        step: u64,
    ) -> Result<(GradientsParams, StepReport)> {
        let rng = &mut streams.stream("candidates", step, 0);
        let loss = self.criterion.loss(model, batch, rng)?;
        let total = match &loss.adaptation {
            Some(adaptation) => loss.surrogate.clone() + adaptation.clone(),
            None => loss.surrogate.clone(),
        };
        let mut gradients = total.backward();
        let of_model = GradientsParams::from_module(&mut gradients, model);
        let gradient_norm = gradient_norm(model, &of_model);
        if !gradient_norm.is_finite() {
            return Err(Error::GradientNotFinite { step });
        }
        let sizes: Vec<f64> = loss.candidates.weights.effective_sample_size().collect();
        let report = StepReport {
            loss: loss.value,
            gradient_norm,
            effective_sample_size: Some(sizes.iter().sum::<f64>() / sizes.len() as f64),
            proposal_nll: None,
            warming_up: false,
        };
        self.gradients = loss.adaptation.is_some().then_some(gradients);
        self.loss = Some(loss);
        Ok((of_model, report))
    }

    fn accept(&mut self, learning_rate: f64) {
        if let Some(mut gradients) = self.gradients.take() {
            self.criterion.update(&mut gradients, learning_rate);
        }
    }

    fn save(&self, parts: &mut Parts) -> Result<()> {
        self.criterion.save(parts)
    }

    fn load(&mut self, parts: &mut Parts) -> Result<()> {
        self.criterion.load(parts)
    }
}
