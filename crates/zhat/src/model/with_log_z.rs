//! A model with its log-normaliser as one more parameter, as binary NCE needs it.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::{UnnormalisedModel, parameter};
use crate::host::to_host;

/// `log p(x) = log p~(x) - c` with a learnt constant `c` that estimates `log Z`.
#[derive(Module, Debug)]
pub struct WithLogZ<M: Module> {
    model: M,
    log_z: Param<Tensor<1>>,
}

impl<M: Module> WithLogZ<M> {
    /// Wraps a model, with a start for `log Z`.
    pub fn new(model: M, log_z: f64, device: &Device) -> Self {
        Self { model, log_z: parameter(vec![log_z], [1], device) }
    }

    /// The model inside.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The learnt `log Z`, on the host.
    pub fn log_z(&self) -> f64 {
        to_host(&self.log_z.val())[0]
    }
}

impl<M: Module + UnnormalisedModel> UnnormalisedModel for WithLogZ<M> {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        self.model.log_p_tilde(x) - self.log_z.val()
    }
}
