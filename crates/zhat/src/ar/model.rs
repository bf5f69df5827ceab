//! The autoregressive EBM and its proposal, which share a context vector, in plain Burn operations.

use burn::module::Module;
use burn::tensor::activation::{log_softmax, softplus};
use burn::tensor::{Tensor, TensorData};

use super::base::Base;
use super::config::{ArEbmConfig, EnergyForm, Normalisation, ScaleForm};
use super::device::Splines;
use super::dropout::LayerMasks;
use super::engine::values;
use super::kind::{FeatureKind, frequency};
use super::masked::Degrees;
use super::mixture::OUTLIER_SCALE;
use super::network::{ResidualNet, bias_of, constant_linear};
use super::quadrature::Rule;
use crate::gaussian_mixture::GaussianMixture;
use crate::host::{Place, indices};
use crate::model::{SequentialModel, UnnormalisedModel, log_sum_exp};
use crate::proposal::SequentialProposal;
use crate::rng::Stream;
use crate::weights;

/// The least share of the rows that a class is taken to have.
const RAREST: f64 = 1e-6;

/// `p~(x) = prod_d p~(x_d | x_<d)` and `q(x) = prod_d q(x_d | x_<d)`.
///
/// The proposal network sees the features before `d` and gives a context vector and the base `q(. | x_<d)`; the energy network sees
/// `[x_d, context]`. Four choices make the family ([`ArEbmConfig`]): how the network sees them, how the energy makes `p~`, what is
/// normalised, and what the base is.
#[derive(Module, Debug)]
pub struct ArEbm {
    /// The proposal network.
    pub proposal: ResidualNet,
    /// The energy network.
    pub energy: ResidualNet,
    /// The proposal networks of the other members.
    pub others: Vec<ResidualNet>,
    /// Sizes of both, which are no parameters.
    #[module(skip)]
    pub shape: ArEbmConfig,
    /// The Gaussian mixture beside the head, which is no parameter: a standard normal until another is given.
    #[module(skip)]
    pub known: Option<GaussianMixture>,
}

/// What the proposal network says about the next feature of every row.
#[derive(Debug, Clone)]
pub struct Outlook {
    /// Context for the energy network, `[n, context]`, the sum of what the members say.
    pub context: Tensor<2>,
    /// Raw outputs of the base, those of the members side by side.
    pub head: Tensor<2>,
    /// What the last layer of each member makes both from, `[n, width]`.
    pub features: Vec<Tensor<2>>,
    /// What the Gaussian mixture beside the head says about every row.
    pub known: Option<Vec<KnownRow>>,
    /// Which feature is the next.
    pub stage: usize,
}

/// Log weights, means and scales of a mixture.
type KnownRow = [Vec<f32>; 3];

impl ArEbm {
    /// The proposal networks of all members.
    pub(super) fn members(&self) -> impl Iterator<Item = &ResidualNet> {
        std::iter::once(&self.proposal).chain(&self.others)
    }

    pub(super) fn members_mut(&mut self) -> impl Iterator<Item = &mut ResidualNet> {
        std::iter::once(&mut self.proposal).chain(&mut self.others)
    }

    /// With another Gaussian mixture beside the head.
    ///
    /// # Panics
    /// If the shape has none there, or the mixture is not of those features that are numbers.
    pub fn with_gaussian_mixture(mut self, mixture: GaussianMixture) -> Self {
        assert!(self.shape.gaussian_mixture, "model.gaussian-mixture is false");
        assert_eq!(mixture.features(), self.shape.num_numbers(), "a mixture of the same features");
        self.known = Some(mixture);
        self
    }

    /// With a class's or an atom's share of the rows as its probability at the start (of atoms the last is that of elsewhere), so that rare ones need not be unlearnt one step at a time.
    ///
    /// # Panics
    /// If the feature has no classes, or not so many.
    pub fn with_class_shares(mut self, feature: usize, shares: &[f64]) -> Self {
        let (before, number) = match self.shape.kind(feature) {
            FeatureKind::Categorical { levels } => (0, *levels),
            FeatureKind::Atoms { values } => (self.shape.number_outputs(), values.len() + 1),
            _ => panic!("only classes and atoms have shares"),
        };
        assert_eq!(number, shares.len(), "a share for each");
        let from = self.shape.outputs_before(feature) + self.shape.context + before;
        for member in self.members_mut() {
            let last = &member.last;
            let (weight, mut bias) = (values(&last.weight), values(bias_of(last)));
            for (bias, share) in bias[from..].iter_mut().zip(shares) {
                *bias = share.max(RAREST).ln() as f32;
            }
            member.last = constant_linear(weight, bias, &last.weight.val().device());
        }
        self
    }

    /// With zeros for all weights that a masked conditioner may not have, for parameters that come from elsewhere.
    pub fn masked(mut self) -> Self {
        if let Some(degrees) = Degrees::new(&self.shape) {
            self.members_mut().for_each(|member| member.mask(&degrees));
        }
        self
    }

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
        masks: Option<&mut dyn LayerMasks>,
    ) -> Outlook {
        let known = self.known_of(prefix.clone(), stage);
        let features = self.condition(prefix, stage, masks);
        self.outlook_of(features, known, stage)
    }

    /// What the Gaussian mixture says about the next feature of every row.
    pub(super) fn known_of(&self, prefix: Tensor<2>, stage: usize) -> Option<Vec<KnownRow>> {
        let number = self.shape.number_of(stage)?;
        let mut conditionals = self.known.as_ref()?.conditionals();
        let columns = prefix.dims()[1];
        let rows: Vec<f32> = prefix.to_data().iter::<f32>().collect();
        let row = |row: &[f32]| {
            conditionals.begin();
            let seen = self.shape.numbers(&row[..stage]).enumerate();
            seen.for_each(|(number, x)| conditionals.see(number, x));
            let parts = [conditionals.log_weights(number), conditionals.means(number)];
            let [log_weights, means] = parts.map(<[f32]>::to_vec);
            [log_weights, means, conditionals.scales(number).to_vec()]
        };
        Some(rows.chunks_exact(columns).map(row).collect())
    }

    /// What the trunk of each member's proposal network makes of the first `known` features.
    pub(super) fn condition(
        &self,
        prefix: Tensor<2>,
        known: usize,
        mut masks: Option<&mut dyn LayerMasks>,
    ) -> Vec<Tensor<2>> {
        let mut features = Vec::with_capacity(self.shape.members);
        for member in self.members() {
            // A trait object is lent anew for each.
            let masks = masks.as_mut().map(|masks| &mut **masks as &mut dyn LayerMasks);
            features.push(self.condition_of(member, &prefix, known, masks));
        }
        features
    }

    fn condition_of(
        &self,
        member: &ResidualNet,
        prefix: &Tensor<2>,
        known: usize,
        masks: Option<&mut dyn LayerMasks>,
    ) -> Tensor<2> {
        let (config, rows, prefix) = (&self.shape, prefix.dims()[0], prefix.clone());
        let width = config.proposal.width;
        let degrees = Degrees::new(config);
        let weight = member.first.weight.val();
        let bias = bias_of(&member.first).val().reshape([1, width]);
        let h = match &degrees {
            _ if known == 0 => bias.expand([rows, width]),
            None => {
                let observed = config.features..config.features + known;
                let bias = bias + weight.clone().slice([observed, 0..width]).sum_dim(0);
                prefix.matmul(weight.slice([0..known, 0..width])) + bias
            }
            Some(degrees) => {
                let inputs = config.inputs_before(known);
                let weight = masked(weight, degrees.first()).slice([0..inputs, 0..width]);
                self.inputs_of(prefix, known).matmul(weight) + bias
            }
        };
        let seen = degrees.map(|degrees| {
            let seen = TensorData::new(degrees.inner(), [width, width]);
            Tensor::from_data(seen, &h.device().inner())
        });
        member.trunk(h, config.proposal.activation, masks, seen.as_ref())
    }

    /// What a masked conditioner sees of the first `known` features; only numbers on the line can have a graph.
    fn inputs_of(&self, prefix: Tensor<2>, known: usize) -> Tensor<2> {
        let config = &self.shape;
        if config.kinds.is_empty() && config.waves == 0 && config.cycles.is_empty() {
            return prefix;
        }
        let columns = prefix.dims()[1];
        // What is read back is waited for.
        let is_line = |feature| *config.kind(feature) == FeatureKind::Continuous;
        let rows: Vec<f32> = match (0..known).all(is_line) {
            true => Vec::new(),
            false => prefix.to_data().iter::<f32>().collect(),
        };
        let seen: Vec<Vec<f64>> = rows
            .chunks_exact(columns)
            .map(|row| {
                let mut seen = vec![0.0; config.inputs_before(known)];
                config.see(&row[..known], |at, value| seen[at] = f64::from(value));
                seen
            })
            .collect();
        let place = Place::of(&prefix);
        let part = |feature: usize| {
            let inputs = config.inputs_before(feature)..config.inputs_before(feature + 1);
            match config.kind(feature) {
                FeatureKind::Continuous => {
                    let x = prefix.clone().narrow(1, feature, 1);
                    let wave = |of: usize| {
                        let angle = x.clone() * frequency(of);
                        [angle.clone().sin(), angle.cos()].map(|wave| wave / frequency(of))
                    };
                    let waves = (0..config.waves).flat_map(wave);
                    let cycle = config.turn(feature).into_iter().flat_map(|turn| {
                        let angle = turn.angles(x.clone());
                        [angle.clone().sin(), angle.cos()]
                    });
                    Tensor::cat(std::iter::once(x.clone()).chain(waves).chain(cycle).collect(), 1)
                }
                _ => {
                    let values = seen.iter().flat_map(|seen| &seen[inputs.clone()]).copied();
                    place.tensor(values.collect(), [seen.len(), inputs.len()])
                }
            }
        };
        Tensor::cat((0..known).map(part).collect(), 1)
    }

    /// What the last layers of the proposal networks say about a feature.
    pub(super) fn outlook_of(
        &self,
        features: Vec<Tensor<2>>,
        known: Option<Vec<KnownRow>>,
        stage: usize,
    ) -> Outlook {
        let (context, outputs) = (self.shape.context, self.shape.head_outputs(stage));
        let members = self.members().zip(&features).map(|(member, features)| {
            let (weight, bias) = self.last_layer(member, stage);
            let output = features.clone().matmul(weight) + bias;
            (output.clone().narrow(1, 0, context), output.narrow(1, context, outputs))
        });
        let (contexts, heads): (Vec<_>, Vec<_>) = members.unzip();
        Outlook {
            context: contexts.into_iter().reduce(|sum, part| sum + part).expect("a member"),
            head: Tensor::cat(heads, 1),
            features,
            known,
            stage,
        }
    }

    /// Weight and bias of a member's last layer for a stage.
    fn last_layer(&self, member: &ResidualNet, stage: usize) -> (Tensor<2>, Tensor<2>) {
        let (mut weight, bias) = (member.last.weight.val(), bias_of(&member.last).val());
        let outputs = self.shape.context + self.shape.head_outputs(stage);
        let mut first = 0;
        if let Some(degrees) = Degrees::new(&self.shape) {
            weight = masked(weight, degrees.last());
            first = self.shape.outputs_before(stage);
        }
        (weight.narrow(1, first, outputs), bias.narrow(0, first, outputs).unsqueeze())
    }

    /// What is known of the next feature of rows of which the columns before `stage` are known.
    fn outlook(&self, stage: usize, x: &Tensor<2>) -> Outlook {
        self.propose(x.clone().narrow(1, 0, stage.max(1)), stage, None)
    }

    /// `log p~(x_d | x_<d)` of the energy network's output: free, or a tilt of `log q`, which is a constant for it. A class has no
    /// tilt.
    ///
    /// # Shapes
    /// - `x`, `log_q`: `[n, 1]`
    /// - output: `[n, 1]`
    pub(super) fn log_factor_given(
        &self,
        x: Tensor<2>,
        outlook: &Outlook,
        log_q: Tensor<2>,
        masks: Option<&mut dyn LayerMasks>,
    ) -> Tensor<2> {
        if self.shape.kind(outlook.stage).is_categorical() {
            return log_q;
        }
        let input = Tensor::cat(vec![x.clone(), outlook.context.clone()], 1);
        let output = self.energy.forward(input, self.shape.energy.activation, masks);
        match self.shape.energy_form {
            EnergyForm::Free => match self.shape.confinement() {
                None => -softplus(output, 1.0),
                Some(from) => {
                    -softplus(output, 1.0) - (x.abs() - from).clamp_min(0.0).square() * 0.5
                }
            },
            EnergyForm::Tilted => {
                let bound = self.shape.tilt_bound;
                log_q.detach() + (output / bound).tanh() * bound
            }
        }
    }

    /// `log Z_d(x_<d)` of every row: the integral of the factor over its feature, by the nodes of the base.
    fn log_normaliser(&self, outlook: &Outlook) -> Tensor<2> {
        let mut rows: Vec<Vec<[f32; 2]>> = Vec::new();
        outlook.each_base(&self.shape, |_, base| {
            let mut nodes = Vec::new();
            base.nodes(Rule::Fine, &mut nodes);
            rows.push(nodes);
        });
        let (number, most) = (rows.len(), rows.iter().map(Vec::len).max().unwrap_or(1));
        // Rows with fewer nodes have more of no weight.
        rows.iter_mut().for_each(|nodes| nodes.resize(most, [0.0, 0.0]));
        let place = Place::of(&outlook.context);
        let part = |index: usize| -> Vec<f64> {
            rows.iter().flatten().map(|node| f64::from(node[index])).collect()
        };
        let x: Tensor<2> = place.tensor(part(0), [number * most, 1]);
        let of_node: Vec<usize> = (0..number * most).map(|node| node / most).collect();
        let repeated = outlook.select(&of_node);
        let log_q = repeated.log_density(&self.shape, x.clone());
        let log_w = self.log_factor_given(x, &repeated, log_q.clone(), None) - log_q.detach();
        let weights: Tensor<2> = place.tensor(part(1), [number, most]);
        log_sum_exp(log_w.reshape([number, most]) + (weights + f64::from(f32::MIN_POSITIVE)).log())
    }
}

impl Outlook {
    /// Rows of it, any number of times.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        let of = indices(rows, [rows.len()], &self.head.device());
        Self {
            context: self.context.clone().select(0, of.clone()),
            head: self.head.clone().select(0, of.clone()),
            features: self.features.iter().map(|f| f.clone().select(0, of.clone())).collect(),
            known: self.known.as_ref().map(|k| rows.iter().map(|&row| k[row].clone()).collect()),
            stage: self.stage,
        }
    }

    /// `log q(x | x_<d)`, that of the mean of the members: of a class its log-probability.
    ///
    /// # Shapes
    /// - `x`: `[n, 1]`
    /// - output: `[n, 1]`
    pub fn log_density(&self, config: &ArEbmConfig, x: Tensor<2>) -> Tensor<2> {
        mean_of_members(self.log_densities(config, x))
    }

    /// The same of every member by itself, whose sum they are trained for.
    ///
    /// # Shapes
    /// - `x`: `[n, 1]`
    /// - output: `[n, members]`
    pub fn log_densities(&self, config: &ArEbmConfig, x: Tensor<2>) -> Tensor<2> {
        let outputs = self.head.dims()[1] / config.members;
        let of_member = |member: usize| {
            let head = self.head.clone().narrow(1, member * outputs, outputs);
            let alone = Self { head, ..self.clone() };
            alone.log_density_of_member(config, x.clone())
        };
        Tensor::cat((0..config.members).map(of_member).collect(), 1)
    }

    /// Where the head is that of one member.
    fn log_density_of_member(&self, config: &ArEbmConfig, x: Tensor<2>) -> Tensor<2> {
        let kind = config.kind(self.stage);
        if kind.is_categorical() {
            let x = x.to_data();
            let classes: Vec<usize> = x.iter::<f32>().filter_map(|x| kind.index_of(x)).collect();
            let of = indices(&classes, [classes.len(), 1], &self.head.device());
            return log_softmax(self.head.clone(), 1).gather(1, of);
        }
        if let FeatureKind::Atoms { values } = kind {
            let at = x.to_data();
            let class = |x: f32| values.iter().position(|value| *value == x);
            let classes: Vec<Option<usize>> = at.iter::<f32>().map(class).collect();
            let indexed: Vec<usize> =
                classes.iter().map(|class| class.unwrap_or(values.len())).collect();
            let logits = self.head.clone().narrow(1, config.number_outputs(), values.len() + 1);
            let of = indices(&indexed, [indexed.len(), 1], &self.head.device());
            let elsewhere = classes.iter().map(|class| f64::from(u8::from(class.is_none())));
            let elsewhere = Place::of(&self.head).tensor(elsewhere.collect(), [indexed.len(), 1]);
            return log_softmax(logits, 1).gather(1, of)
                + self.log_density_of_number(config, x) * elsewhere;
        }
        self.log_density_of_number(config, x)
    }

    /// The same of a number without atoms.
    fn log_density_of_number(&self, config: &ArEbmConfig, x: Tensor<2>) -> Tensor<2> {
        let [mixture, spline, shares] = config.head_parts();
        let mut parts = Vec::new();
        if mixture > 0 {
            parts.push(log_mixture(self.head.clone().narrow(1, 0, mixture), config, x.clone()));
        }
        if spline > 0 {
            let raw = self.head.clone().narrow(1, mixture, spline);
            parts.push(Splines::new(raw, config.spline_bins).log_density(x.clone()));
        }
        if let Some(known) = &self.known {
            let x = x.to_data().iter::<f32>().collect::<Vec<f32>>();
            let rows = known.iter().zip(&x);
            let log_q = rows.map(|(row, &x)| log_known(row, x)).collect();
            parts.push(Place::of(&self.head).tensor(log_q, [x.len(), 1]));
        }
        if shares == 0 {
            return parts.pop().expect("one part");
        }
        let logits = self.head.clone().narrow(1, mixture + spline, shares);
        log_sum_exp(log_softmax(logits, 1) + Tensor::cat(parts, 1))
    }

    /// Hands over the base of every row in order, to be drawn from.
    pub(super) fn each_base(&self, shape: &ArEbmConfig, mut each: impl FnMut(usize, &Base)) {
        let raw = self.head.to_data().convert::<f32>();
        let raw: Vec<f32> = raw.try_into_vec().expect("32-bit floats");
        let mut base = Base::at(shape, self.stage);
        let outputs = shape.members * shape.head_outputs(self.stage);
        for (row, raw) in raw.chunks_exact(outputs).enumerate() {
            let known = self.known.as_ref().map(|known| known[row].each_ref().map(|k| &k[..]));
            base.set(raw, known);
            each(row, &base);
        }
    }
}

/// The log of the mean density of all members, `[n, members]` to `[n, 1]`.
pub(super) fn mean_of_members(log_densities: Tensor<2>) -> Tensor<2> {
    match log_densities.dims()[1] {
        1 => log_densities,
        number => log_sum_exp(log_densities) - (number as f64).ln(),
    }
}

/// In double precision.
fn log_known([log_weights, means, scales]: &KnownRow, x: f32) -> f64 {
    let parts = log_weights.iter().zip(means).zip(scales);
    let terms: Vec<f64> = parts
        .map(|((log_w, mean), scale)| {
            let z = (f64::from(x) - f64::from(*mean)) / f64::from(*scale);
            f64::from(*log_w) - 0.5 * z * z - f64::from(*scale).ln()
        })
        .collect();
    weights::log_sum_exp(&terms) - 0.5 * (2.0 * std::f64::consts::PI).ln()
}

fn log_mixture(raw: Tensor<2>, config: &ArEbmConfig, x: Tensor<2>) -> Tensor<2> {
    let m = config.mixture_components;
    let part = |index: usize| raw.clone().narrow(1, index * m, m);
    let scales = match config.scales {
        ScaleForm::Softplus => softplus(part(2), 1.0),
        ScaleForm::Exponential => part(2).exp(),
    } + config.minimum_scale;
    let z = (x.clone() - part(1)) / scales.clone();
    let terms = log_softmax(part(0), 1) - z.square() * 0.5 - scales.log();
    let share = config.outlier_share;
    let terms = if share > 0.0 {
        let scale = f64::from(OUTLIER_SCALE);
        let outlier = (x / scale).square() * -0.5 + (share / scale).ln();
        Tensor::cat(vec![terms + (-share).ln_1p(), outlier], 1)
    } else {
        terms
    };
    log_sum_exp(terms) - 0.5 * (2.0 * std::f64::consts::PI).ln()
}

/// A weight matrix without what a masked conditioner may not see.
pub(super) fn masked(weight: Tensor<2>, mask: Vec<f32>) -> Tensor<2> {
    let mask = TensorData::new(mask, weight.dims());
    weight.clone() * Tensor::from_data(mask, &weight.device())
}

impl UnnormalisedModel for ArEbm {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        let factors =
            (self.shape.given..self.num_stages()).map(|stage| self.log_factor(stage, x.clone()));
        factors.reduce(|sum, factor| sum + factor).expect("at least one feature")
    }
}

/// Without dropout. The factor of a number in cells is its density, as in training: [`Evaluator`](super::Evaluator) has masses.
impl SequentialModel for ArEbm {
    fn num_stages(&self) -> usize {
        self.shape.features
    }

    fn log_factor(&self, stage: usize, x: Tensor<2>) -> Tensor<1> {
        if self.shape.is_given(stage) {
            return Tensor::zeros([x.dims()[0]], &x.device());
        }
        let (outlook, x) = (self.outlook(stage, &x), x.narrow(1, stage, 1));
        let log_q = outlook.log_density(&self.shape, x.clone());
        let log_p = self.log_factor_given(x, &outlook, log_q, None);
        match self.shape.normalisation {
            _ if self.shape.kind(stage).is_categorical() => log_p,
            Normalisation::Global => log_p,
            Normalisation::Local => log_p - self.log_normaliser(&outlook),
        }
        .squeeze_dim(1)
    }
}

/// Without dropout and without a defensive part.
impl SequentialProposal for ArEbm {
    fn sample(&self, stage: usize, prefix: Tensor<2>, rng: &mut Stream) -> Tensor<1> {
        let mut drawn = Vec::with_capacity(prefix.dims()[0]);
        let outlook = self.outlook(stage, &prefix);
        outlook.each_base(&self.shape, |_, base| drawn.push(f64::from(base.sample(rng))));
        Place::of(&prefix).tensor(drawn, [prefix.dims()[0]])
    }

    fn log_prob(&self, stage: usize, x: Tensor<2>) -> Tensor<1> {
        let outlook = self.outlook(stage, &x);
        outlook.log_density(&self.shape, x.narrow(1, stage, 1)).squeeze_dim(1)
    }
}
