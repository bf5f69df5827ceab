//! The autoregressive EBM and its proposal, which share a context vector, in plain Burn operations.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::{log_softmax, softplus};

use super::config::ArEbmConfig;
use super::dropout::Masks;
use super::mixture::Mixture;
use super::network::{ResidualNet, bias_of};
use crate::host::Place;
use crate::model::{SequentialModel, UnnormalisedModel, log_sum_exp};
use crate::proposal::SequentialProposal;
use crate::rng::Stream;

/// `p~(x) = prod_d p~(x_d | x_<d)` and `q(x) = prod_d q(x_d | x_<d)`.
///
/// The proposal network sees `[x with features >= d set to 0, mask of the observed ones]` and gives a context vector and
/// the mixture `q(. | x_<d)`; the energy network sees `[x_d, context]`.
#[derive(Module, Debug)]
pub struct ArEbm {
    /// The proposal network.
    pub proposal: ResidualNet,
    /// The energy network.
    pub energy: ResidualNet,
    /// Sizes of both, which are no parameters.
    #[module(skip)]
    pub shape: ArEbmConfig,
}

/// What the proposal network says about the next feature of every row.
#[derive(Debug, Clone)]
pub struct Outlook {
    /// Context for the energy network, `[n, context]`.
    pub context: Tensor<2>,
    /// Logits, means and raw scales of the mixture, `[n, 3 m]`.
    pub mixture: Tensor<2>,
    /// What the last layer makes both from, `[n, width]`.
    pub features: Tensor<2>,
}

impl ArEbm {
    /// Runs the proposal network on rows whose first `stage` features are known.
    ///
    /// The features and mask entries that are zero are left out of the first product, which is exact.
    ///
    /// # Shapes
    /// - `prefix`: `[n, stage]`, or anything with `n` rows at stage 0
    pub(super) fn propose(
        &self,
        prefix: Tensor<2>,
        stage: usize,
        masks: Option<&mut Masks>,
    ) -> Outlook {
        let (config, rows) = (&self.shape, prefix.dims()[0]);
        let width = config.proposal.width;
        let weight = self.proposal.first.weight.val();
        let bias = bias_of(&self.proposal.first).val().reshape([1, width]);
        let h = if stage == 0 {
            bias.expand([rows, width])
        } else {
            let observed = config.features..config.features + stage;
            let bias = bias + weight.clone().slice([observed, 0..width]).sum_dim(0);
            prefix.matmul(weight.slice([0..stage, 0..width])) + bias
        };
        let features = self.proposal.trunk(h, config.proposal.activation, masks);
        let output = self.proposal.last.forward(features.clone());
        let columns = config.context..config.context + 3 * config.mixture_components;
        Outlook {
            context: output.clone().slice([0..rows, 0..config.context]),
            mixture: output.slice([0..rows, columns]),
            features,
        }
    }

    /// What is known of the next feature of rows of which the columns before `stage` are known.
    fn outlook(&self, stage: usize, x: &Tensor<2>) -> Outlook {
        self.propose(x.clone().narrow(1, 0, stage.max(1)), stage, None)
    }

    /// `log p~(x_d | x_<d) = -softplus(o)` of the energy network's output `o`.
    ///
    /// # Shapes
    /// - `x`: `[n, 1]`, `context`: `[n, context]`
    /// - output: `[n, 1]`
    pub(super) fn log_factor_given(
        &self,
        x: Tensor<2>,
        context: Tensor<2>,
        masks: Option<&mut Masks>,
    ) -> Tensor<2> {
        let input = Tensor::cat(vec![x, context], 1);
        -softplus(self.energy.forward(input, self.shape.energy.activation, masks), 1.0)
    }
}

impl Outlook {
    /// `log q(x | x_<d)`.
    ///
    /// # Shapes
    /// - `x`: `[n, 1]`
    /// - output: `[n, 1]`
    pub fn log_density(&self, config: &ArEbmConfig, x: Tensor<2>) -> Tensor<2> {
        let m = config.mixture_components;
        let part =
            |index: usize| self.mixture.clone().slice([0..x.dims()[0], index * m..(index + 1) * m]);
        let scales = softplus(part(2), 1.0) + config.minimum_scale;
        let z = (x.clone() - part(1)) / scales.clone();
        let terms = log_softmax(part(0), 1) - z.square() * 0.5 - scales.log();
        log_sum_exp(terms) - 0.5 * (2.0 * std::f64::consts::PI).ln()
    }

    /// Hands over the mixture of every row in order, to be drawn from.
    pub(super) fn each_mixture(&self, shape: &ArEbmConfig, mut each: impl FnMut(usize, &Mixture)) {
        let raw = self.mixture.to_data().convert::<f32>();
        let raw: Vec<f32> = raw.try_into_vec().expect("32-bit floats");
        let mut mixture = Mixture::new(shape.mixture_components, shape.minimum_scale as f32);
        for (row, raw) in raw.chunks_exact(3 * shape.mixture_components).enumerate() {
            mixture.set(raw);
            each(row, &mixture);
        }
    }
}

impl UnnormalisedModel for ArEbm {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        let factors = (0..self.num_stages()).map(|stage| self.log_factor(stage, x.clone()));
        factors.reduce(|sum, factor| sum + factor).expect("at least one feature")
    }
}

/// Without dropout.
impl SequentialModel for ArEbm {
    fn num_stages(&self) -> usize {
        self.shape.features
    }

    fn log_factor(&self, stage: usize, x: Tensor<2>) -> Tensor<1> {
        let outlook = self.outlook(stage, &x);
        self.log_factor_given(x.narrow(1, stage, 1), outlook.context, None).squeeze_dim(1)
    }
}

/// Without dropout and without a defensive part.
impl SequentialProposal for ArEbm {
    fn sample(&self, stage: usize, prefix: Tensor<2>, rng: &mut Stream) -> Tensor<1> {
        let mut drawn = Vec::with_capacity(prefix.dims()[0]);
        let outlook = self.outlook(stage, &prefix);
        outlook.each_mixture(&self.shape, |_, mixture| drawn.push(f64::from(mixture.sample(rng))));
        Place::of(&prefix).tensor(drawn, [prefix.dims()[0]])
    }

    fn log_prob(&self, stage: usize, x: Tensor<2>) -> Tensor<1> {
        let outlook = self.outlook(stage, &x);
        outlook.log_density(&self.shape, x.narrow(1, stage, 1)).squeeze_dim(1)
    }
}
