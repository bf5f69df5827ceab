//! Shapes of the autoregressive EBM.

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::cycle::Cycle;
use super::dropout::Dropout;
use super::engine::values;
use super::kind::FeatureKind;
use super::model::ArEbm;
use super::network::{ResidualNet, bias_of, constant_linear};
use crate::error::{Error, Result, at_least, positive};
use crate::gaussian_mixture::GaussianMixture;
use crate::normal::normal_quantile;
use crate::rng::Stream;

/// How much of a row's mass the network starts with, beside a Gaussian mixture that is known.
const AWAY: f64 = 0.05;

/// Activation of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `max(x, 0)`
    #[default]
    Relu,
    /// `tanh(x)`
    Tanh,
    /// `x` above zero, `exp(x) - 1` below: smooth, and never dead.
    Elu,
}

/// How the networks see the features before one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conditioner {
    /// The network sees `[x_<d, mask]`, once for every feature (the paper's choice).
    #[default]
    Stagewise,
    /// Weights are masked so that one pass serves all features (MADE, Germain et al., 2015).
    Masked,
}

/// How the energy makes `log p~(x_d | x_<d)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyForm {
    /// `-softplus(o)` (the paper's choice).
    #[default]
    Free,
    /// `log q + c tanh(o / c)`: it starts as its base, and `Z` exists and is between `e^-c` and `e^c`.
    Tilted,
}

/// What is normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalisation {
    /// The product of all factors, by one `Z` (the paper's choice).
    #[default]
    Global,
    /// Every factor by its own `Z_d(x_<d)`, an integral over one feature.
    Local,
}

/// How an output of the network becomes the scale of a normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleForm {
    /// `log(1 + exp(o))` (the paper's choice).
    #[default]
    Softplus,
    /// `exp(o)`: small scales are learnt as fast as large ones.
    Exponential,
}

/// What the network's outputs say about the next feature: the base `q(x_d | x_<d)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadForm {
    /// A mixture of normals (the paper's choice).
    #[default]
    Mixture,
    /// A monotone rational-quadratic spline to a standard normal.
    Spline,
    /// Both, in shares that are learnt.
    Both,
}

/// Size of one residual network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSize {
    /// Number of residual blocks.
    pub blocks: usize,
    /// Units in each layer.
    pub width: usize,
    /// Activation.
    pub activation: Activation,
}

/// Shape of an [`ArEbm`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ArEbmConfig {
    /// Number of features, `D`; 0 as long as the data are to say it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub features: usize,
    /// What every feature is; none where all are numbers on the line. Others want a masked conditioner, a tilted energy and local
    /// normalisation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<FeatureKind>,
    /// How many of the first features are given: the model is `p(rest | given)`, and has no factors of them. Any want a masked
    /// conditioner and local normalisation.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub given: usize,
    /// How the networks see the features before one.
    #[serde(default)]
    pub conditioner: Conditioner,
    /// How the energy makes `log p~`.
    #[serde(default)]
    pub energy_form: EnergyForm,
    /// The largest tilt `c`, in nats.
    #[serde(default = "tilt_bound")]
    pub tilt_bound: f64,
    /// How far from zero a feature may be before a free energy is made to grow, so that `Z` exists: beyond this `log p~` gains
    /// `-(|x_d| - confine)^2 / 2`. In the units of the features; 0 for nowhere, as in the paper. A tilt needs none.
    #[serde(default)]
    pub confine: f64,
    /// What is normalised.
    #[serde(default)]
    pub normalisation: Normalisation,
    /// What the outputs of the proposal network say.
    #[serde(default)]
    pub head: HeadForm,
    /// How an output becomes the scale of a normal.
    #[serde(default)]
    pub scales: ScaleForm,
    /// Whether a Gaussian mixture of whole rows, fitted by EM, stands beside the head in a share that is learnt.
    #[serde(default)]
    pub gaussian_mixture: bool,
    /// The energy network.
    pub energy: NetworkSize,
    /// The proposal network.
    pub proposal: NetworkSize,
    /// How many proposal networks there are, each trained by itself: the base is the mean of what they say. More than one want a masked
    /// conditioner.
    #[serde(default = "one")]
    pub members: usize,
    /// Share of the units dropped inside each block while training.
    pub dropout: f64,
    /// The same in the energy network, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_dropout: Option<f64>,
    /// Length of the context vector that the proposal network gives to the energy network.
    pub context: usize,
    /// Components of the proposal's mixture.
    pub mixture_components: usize,
    /// Bins of the proposal's spline.
    #[serde(default = "spline_bins")]
    pub spline_bins: usize,
    /// What is added to the scales of the mixture.
    pub minimum_scale: f64,
    /// Sines and cosines of every number that a masked conditioner sees beside it, an octave from each to the next: networks learn what
    /// changes slowly first, and with waves quick changes are slow ones; 0 for none, as in the paper.
    #[serde(default)]
    pub waves: usize,
    /// Features that come round again, of which a masked conditioner sees sine and cosine too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cycles: Vec<Cycle>,
    /// Share of the learnt mixture that is a wide normal whatever the network says, for values unlike all that it was trained on;
    /// 0 for none, as in the paper.
    #[serde(default)]
    pub outlier_share: f64,
}

impl ArEbmConfig {
    /// The paper's networks (its table of hyperparameters, as for POWER) for a number of features.
    pub fn new(features: usize) -> Self {
        Self {
            features,
            kinds: Vec::new(),
            given: 0,
            conditioner: Conditioner::Stagewise,
            energy_form: EnergyForm::Free,
            tilt_bound: tilt_bound(),
            confine: 0.0,
            normalisation: Normalisation::Global,
            head: HeadForm::Mixture,
            scales: ScaleForm::Softplus,
            gaussian_mixture: false,
            energy: NetworkSize { blocks: 4, width: 128, activation: Activation::Relu },
            proposal: NetworkSize { blocks: 2, width: 256, activation: Activation::Relu },
            members: 1,
            dropout: 0.1,
            energy_dropout: None,
            context: 64,
            mixture_components: 10,
            spline_bins: spline_bins(),
            minimum_scale: 1e-3,
            waves: 0,
            cycles: Vec::new(),
            outlier_share: 0.0,
        }
    }

    /// Small networks for a handful of features, whose number the data are to say.
    pub fn small() -> Self {
        let size = NetworkSize { blocks: 2, width: 64, activation: Activation::Relu };
        let (energy, proposal) = (size.clone(), size);
        Self { energy, proposal, dropout: 0.0, context: 32, ..Self::new(0) }
    }

    /// Dropout of the proposal network and of the energy network.
    pub(super) fn dropouts(&self) -> [Option<Dropout>; 2] {
        [self.dropout, self.energy_dropout.unwrap_or(self.dropout)].map(Dropout::new)
    }

    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        at_least(1, "features", self.features)?;
        at_least(1, "energy.width", self.energy.width)?;
        at_least(1, "proposal.width", self.proposal.width)?;
        at_least(1, "members", self.members)?;
        at_least(1, "context", self.context)?;
        at_least(1, "mixture_components", self.mixture_components)?;
        at_least(2, "spline_bins", self.spline_bins)?;
        positive("tilt_bound", self.tilt_bound)?;
        if !(self.confine >= 0.0 && self.confine.is_finite()) {
            let expected = "a number above zero, or 0 for no confinement";
            return Err(Error::setting("confine", self.confine, expected));
        }
        let energy = ("energy_dropout", self.energy_dropout.unwrap_or(0.0));
        for (name, share) in [("dropout", self.dropout), energy] {
            if !(0.0..=0.99).contains(&share) {
                return Err(Error::setting(name, share, "from 0 to 0.99"));
            }
        }
        positive("minimum_scale", self.minimum_scale)?;
        if !(0.0..0.5).contains(&self.outlier_share) {
            return Err(Error::setting(
                "outlier_share",
                self.outlier_share,
                "at least 0 and below 0.5",
            ));
        }
        if self.conditioner == Conditioner::Stagewise && self.waves > 0 {
            let expected = "0 for a stagewise conditioner";
            return Err(Error::setting("waves", self.waves, expected));
        }
        if self.conditioner == Conditioner::Stagewise && self.members > 1 {
            let expected = "1 for a stagewise conditioner";
            return Err(Error::setting("members", self.members, expected));
        }
        if self.conditioner == Conditioner::Masked {
            let least = self.features.saturating_sub(self.given.max(1));
            at_least(least, "proposal.width", self.proposal.width)?;
        }
        self.validate_given()?;
        self.validate_cycles()?;
        self.validate_kinds()
    }

    /// Where a factor is confined: beyond this, in the units of the features.
    pub(super) fn confinement(&self) -> Option<f64> {
        let is_free = self.energy_form == EnergyForm::Free;
        (is_free && self.confine > 0.0).then_some(self.confine)
    }

    /// The model, with weights drawn from our own stream.
    pub fn init(&self, device: &Device, rng: &mut Stream) -> Result<ArEbm> {
        self.validate()?;
        let (inputs, stages) = match self.conditioner {
            Conditioner::Stagewise => (2 * self.features, 1),
            Conditioner::Masked => (self.inputs_before(self.features), self.features),
        };
        let proposal = self.proposal_network(inputs, stages, device, rng);
        let mut energy = ResidualNet::new(&self.energy, self.context + 1, 1, device, rng);
        if self.energy_form == EnergyForm::Tilted {
            self.start_tilt(&mut energy);
        }
        let others =
            (1..self.members).map(|_| self.proposal_network(inputs, stages, device, rng)).collect();
        let numbers = self.num_numbers();
        let has_known = self.gaussian_mixture && numbers > 0;
        let known = has_known.then(|| standard_normal(numbers)).transpose()?;
        Ok(ArEbm { proposal, energy, others, shape: self.clone(), known }.masked())
    }

    /// The proposal network of a member.
    fn proposal_network(
        &self,
        inputs: usize,
        stages: usize,
        device: &Device,
        rng: &mut Stream,
    ) -> ResidualNet {
        let outputs = self.outputs_before(stages);
        let mut proposal = ResidualNet::new(&self.proposal, inputs, outputs, device, rng);
        if self.conditioner == Conditioner::Masked && inputs > self.features {
            // A unit sees as much as if all inputs were independent numbers of variance one.
            let scale = (inputs as f32 / self.power_of_inputs()).sqrt();
            let (weight, bias) = (values(&proposal.first.weight), values(bias_of(&proposal.first)));
            let weight = weight.into_iter().map(|weight| scale * weight).collect();
            proposal.first = constant_linear(weight, bias, device);
        }
        if self.conditioner == Conditioner::Masked || self.head != HeadForm::Mixture {
            self.start_heads(&mut proposal, stages);
        }
        proposal
    }

    /// The model starts as its base, with weights of the feature that do not shrink with the context.
    ///
    /// By the usual bound, `1/sqrt(inputs)`, the network sees little more than a straight line in the feature, and the base
    /// has learnt that already: a smooth activation then learns nothing at all.
    fn start_tilt(&self, energy: &mut ResidualNet) {
        let (device, first) = (energy.first.weight.val().device(), &energy.first);
        let (mut weight, bias) = (values(&first.weight), values(bias_of(first)));
        let of_feature = &mut weight[..self.energy.width];
        of_feature.iter_mut().for_each(|weight| *weight *= ((self.context + 1) as f32).sqrt());
        energy.first = constant_linear(weight, bias, &device);
        energy.last = constant_linear(vec![0.0; self.energy.width], vec![0.0], &device);
    }

    /// Biases from which the heads learn well: normals side by side that make a standard normal, a straight spline, a known
    /// mixture in front, equal classes.
    fn start_heads(&self, proposal: &mut ResidualNet, stages: usize) {
        let last = &proposal.last;
        let (mut weight, mut bias) = (values(&last.weight), values(bias_of(last)));
        let columns = bias.len();
        for stage in self.given..stages {
            let head = self.outputs_before(stage) + self.context..self.outputs_before(stage + 1);
            for (output, at) in head.enumerate() {
                weight.iter_mut().skip(at).step_by(columns).for_each(|weight| *weight *= 0.3);
                bias[at] = match self.kind(stage) {
                    FeatureKind::Categorical { .. } => 0.0,
                    _ => self.start_of(output) as f32,
                };
            }
        }
        proposal.last = constant_linear(weight, bias, &last.weight.val().device());
    }

    /// The bias that an output of a number's head starts with.
    fn start_of(&self, output: usize) -> f64 {
        let [mixture, spline, shares] = self.head_parts();
        let number = self.mixture_components as f64;
        let quantile = |component: f64| normal_quantile(component / number);
        let component = (output % self.mixture_components) as f64;
        match output {
            _ if output < mixture && output / self.mixture_components == 1 => {
                quantile(component + 0.5)
            }
            _ if output < mixture && output / self.mixture_components == 2 => {
                // The distance to the next one, of the outermost a half.
                let [low, high] =
                    [component, component + 1.0].map(|edge| edge.clamp(0.25, number - 0.25));
                let scale = quantile(high) - quantile(low);
                match self.scales {
                    ScaleForm::Softplus => scale.exp_m1().ln(),
                    ScaleForm::Exponential => scale.ln(),
                }
            }
            _ if output + 1 == mixture + spline + shares && self.gaussian_mixture => {
                (self.num_numbers() as f64 / AWAY).ln()
            }
            _ => 0.0,
        }
    }
}

fn standard_normal(features: usize) -> Result<GaussianMixture> {
    let diagonal = |row: usize| (0..=row).map(move |column| f64::from(row == column));
    let factor = (0..features).flat_map(diagonal).collect();
    GaussianMixture::new(features, vec![0.0], vec![0.0; features], factor)
}

fn tilt_bound() -> f64 {
    4.0
}

fn spline_bins() -> usize {
    8
}

fn one() -> usize {
    1
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_named() {
        let mut config = ArEbmConfig::new(3);
        config.dropout = 1.0;
        assert!(config.validate().unwrap_err().to_string().starts_with("dropout is 1"));
        config = ArEbmConfig { confine: -1.0, ..ArEbmConfig::new(3) };
        assert!(config.validate().unwrap_err().to_string().starts_with("confine is -1"));
        config = ArEbmConfig::new(0);
        assert!(config.validate().unwrap_err().to_string().starts_with("features is 0"));
        config = ArEbmConfig { given: 3, ..ArEbmConfig::new(3) };
        assert!(config.validate().unwrap_err().to_string().starts_with("given is 3"));
        config = ArEbmConfig { given: 2, ..ArEbmConfig::new(3) };
        assert!(config.validate().unwrap_err().to_string().contains("must be masked"));
        config.conditioner = Conditioner::Masked;
        assert!(config.validate().unwrap_err().to_string().contains("must be local"));
        config.normalisation = Normalisation::Local;
        config.validate().unwrap();
    }
}
