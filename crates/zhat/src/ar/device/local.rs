//! The loss where every factor is normalised: all stages of all observations at once, since all prefixes are those of the data.

use burn::tensor::activation::{log_softmax, softplus};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::base::{Base, log_draw, repeat, upload};
use super::bases::{Bases, mean_of};
use super::masks::DeviceMasks;
use super::step::{Plan, Terms};
use crate::ar::config::{ArEbmConfig, EnergyForm};
use crate::ar::criterion::ContextFlow;
use crate::ar::dropout::{Dropout, LayerMasks};
use crate::ar::kind::FeatureKind;
use crate::ar::masked::Degrees;
use crate::ar::model::ArEbm;
use crate::ar::network::{ResidualNet, bias_of};
use crate::criterion::Method;
use crate::host::indices;
use crate::rng::Stream;

/// What does not change from step to step: which outputs belong to what, and who sees whom, on the device.
#[derive(Debug)]
pub struct Layout {
    shape: ArEbmConfig,
    device: Device,
    /// Weights of a masked conditioner that are there: of its first layer, the blocks and the last layer.
    seen: Option<[Tensor<2>; 3]>,
    /// Stages of the model that are numbers.
    numbers: Vec<usize>,
    /// Outputs of the conditioner that belong to those, where not all do.
    outputs_of_numbers: Option<Tensor<1, Int>>,
}

impl Layout {
    /// Of a model on a device.
    pub fn new(shape: &ArEbmConfig, device: &Device) -> Self {
        let device = device.clone().inner();
        let (width, features) = (shape.proposal.width, shape.features);
        let seen = Degrees::new(shape).map(|degrees| {
            let all = shape.outputs_before(features);
            [
                upload(degrees.first(), [shape.inputs_before(features), width], &device),
                upload(degrees.inner(), [width, width], &device),
                upload(degrees.last(), [width, all], &device),
            ]
        });
        let modelled = shape.given..features;
        let is_number = |stage: &usize| !shape.kind(*stage).is_categorical();
        let numbers: Vec<usize> = modelled.clone().filter(is_number).collect();
        let each = shape.context + shape.number_outputs();
        let simple = |stage: usize| shape.context + shape.head_outputs(stage) == each;
        let outputs_of_numbers = (!numbers.is_empty() && !modelled.clone().all(simple)
            || numbers.len() < modelled.len())
        .then(|| {
            let outputs: Vec<usize> = numbers
                .iter()
                .flat_map(|&stage| (0..each).map(move |at| shape.outputs_before(stage) + at))
                .collect();
            indices(&outputs, [outputs.len()], &device)
        });
        Self { shape: shape.clone(), device, seen, numbers, outputs_of_numbers }
    }

    /// Whether it is that of a model.
    pub fn is_of(&self, model: &ArEbm) -> bool {
        self.shape == model.shape
    }

    /// The device, without autodiff.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// The observations, what is known of them, and what the networks make of them.
pub struct Local<'a> {
    layout: &'a Layout,
    model: &'a ArEbm,
    /// `[observations, features]`, on this side.
    x: &'a [f32],
    /// What the Gaussian mixture beside the head says about every number.
    known: Option<[Tensor<2>; 3]>,
}

impl<'a> Local<'a> {
    /// Rows of a model.
    pub fn new(layout: &'a Layout, model: &'a ArEbm, x: &'a [f32]) -> Self {
        Self { layout, model, x, known: known(layout, model, x) }
    }

    /// Where they are, without autodiff.
    pub fn device(&self) -> &Device {
        &self.layout.device
    }

    fn observations(&self) -> usize {
        self.x.len() / self.layout.shape.features
    }

    /// `log q(x)` of every observation, without dropout.
    ///
    /// # Shapes
    /// - output: `[observations, 1]`
    pub fn log_q(&self) -> Tensor<2> {
        let of_member = |net| {
            let (_, outputs) = self.outputs(net, None);
            let numbers = self.of_numbers(&outputs);
            self.of_data(&outputs, numbers.as_ref(), &outputs)
        };
        mean_of(self.model.members().map(of_member).collect()).sum_dim(1)
    }

    /// The loss and its parts.
    pub fn terms(&self, plan: &mut Plan) -> Terms {
        let (layout, shape) = (self.layout, &self.layout.shape);
        let [of_proposal, of_energy] = shape.dropouts();
        let with_energy = plan.settings.criterion != Method::QOnly;
        let alone = !with_energy || plan.settings.context_flow == ContextFlow::Shared;
        let (mut all, mut log_qs) = (Vec::new(), Vec::new());
        for net in self.model.members() {
            let masks = of_proposal.map(|dropout| (dropout, &mut plan.masks));
            let (features, outputs) = self.outputs(net, masks);
            let trained = match alone {
                true => outputs.clone(),
                false => self.last(net, features.detach()),
            };
            let of_numbers = self.of_numbers(&trained);
            log_qs.push(self.of_data(&outputs, of_numbers.as_ref(), &trained));
            all.push(outputs);
        }
        let shares = plan.shares_tensor(&layout.device);
        let minus = |log_q: Tensor<2>| (log_q.sum_dim(1) * shares.clone()).sum().neg();
        let nll = minus(mean_of(log_qs.clone())).inner();
        let proposal = log_qs.into_iter().map(minus).reduce(|a, b| a + b).expect("a member");
        let number = plan.settings.smc().num_particles as f64;
        let own: Option<Vec<_>> = all.iter().map(|outputs| self.of_numbers(outputs)).collect();
        let Some(own) = own.filter(|_| with_energy) else {
            let one = |value: f64| -> Tensor<1> { Tensor::full([1], value, &layout.device) };
            // A class has no tilt: where there is nothing else, the loss of the energy is that of the proposal.
            let (ebm, size) = match with_energy {
                true => (nll.clone(), one(number)),
                false => (one(0.0), one(1.0)),
            };
            return Terms { surrogate: proposal, figures: [nll, ebm, size] };
        };
        let candidates = plan.settings.candidates();
        let rows = self.observations() * layout.numbers.len();
        let x0 = self.numbers_of_data();
        let bases = own.iter().zip(&all).map(|(own, outputs)| self.base(own, outputs));
        let bases = Bases::new(bases).inner();
        let defence = plan.settings.defence(shape.features);
        let drawn = plan.candidates_of(self, &bases, defence, rows, candidates - 1);
        let x = Tensor::cat(vec![x0, drawn], 1);
        // All members add to the context of the one energy.
        let contexts = own.into_iter().map(|own| own.narrow(1, 0, shape.context));
        let context = contexts.reduce(|sum, part| sum + part).expect("a member");
        let output = self.energies(context, &x, of_energy.map(|d| (d, &mut plan.masks)));
        let (tilted, bound) = (shape.energy_form == EnergyForm::Tilted, shape.tilt_bound);
        let log_p = match (tilted, shape.confinement()) {
            (true, _) => (output / bound).tanh() * bound,
            (false, None) => softplus(output, 1.0).neg(),
            (false, Some(from)) => {
                let beyond = (x.clone().abs() - from).clamp_min(0.0).square() * 0.5;
                softplus(output, 1.0).neg() - beyond
            }
        };
        let values = log_p.clone().inner();
        // Of a tilt without a defensive part log p~ - log q is the tilt.
        let log_w = match (tilted, defence.is_none()) {
            (true, true) => values.clone(),
            _ => {
                let log_q = bases.log_density(&x);
                let own = if tilted { log_q.clone() } else { log_q.zeros_like() };
                values.clone() + own - log_draw(defence, log_q, x)
            }
        };
        let weighed = Weighed::new(log_w, usize::from(plan.settings.criterion == Method::MlIs));
        let shares_of_rows = repeat(&shares, layout.numbers.len());
        let data = plan.first_of(rows, candidates, &layout.device);
        let coefficients = (weighed.weights.clone() - data) * shares_of_rows.clone();
        let surrogate = proposal + (log_p * coefficients).sum();
        let of_data = (values.narrow(1, 0, 1) * shares_of_rows.clone()).sum();
        let log_z_hat = (weighed.log_mean * shares_of_rows).sum();
        let ebm = match tilted {
            true => nll.clone() - of_data + log_z_hat,
            false => log_z_hat - of_data,
        };
        let sizes = weighed.size.reshape([self.observations(), layout.numbers.len()]);
        let size = match layout.numbers.last() == Some(&(shape.features - 1)) {
            true => (sizes.narrow(1, layout.numbers.len() - 1, 1) * shares).sum(),
            false => Tensor::full([1], number, &layout.device),
        };
        Terms { surrogate, figures: [nll, ebm, size] }
    }

    /// What the last layer of the conditioner sees, and what it makes of it: a row for each observation, or for each stage of each
    /// where the conditioner is not masked.
    fn outputs(
        &self,
        net: &ResidualNet,
        masks: Option<(Dropout, &mut Stream)>,
    ) -> (Tensor<2>, Tensor<2>) {
        let Layout { shape, device, seen, .. } = self.layout;
        let (features, width) = (shape.features, shape.proposal.width);
        let first = &net.first;
        let bias: Tensor<2> = bias_of(first).val().unsqueeze();
        let h = match seen {
            Some([seen, ..]) => {
                let known = features - 1;
                let inputs = shape.inputs_before(known);
                match inputs {
                    0 => bias.expand([self.observations(), width]),
                    _ => {
                        let mut values = vec![0.0; self.observations() * inputs];
                        let rows =
                            self.x.chunks_exact(features).zip(values.chunks_exact_mut(inputs));
                        for (x, row) in rows {
                            shape.see(&x[..known], |at, value| row[at] = value);
                        }
                        let input = upload(values, [self.observations(), inputs], device);
                        let weight = first.weight.val() * seen.clone();
                        input.matmul(weight.slice([0..inputs, 0..width])) + bias
                    }
                }
            }
            None => {
                let mut values = vec![0.0; self.observations() * features * 2 * features];
                for (row, values) in values.chunks_exact_mut(2 * features).enumerate() {
                    let (observation, stage) = (row / features, row % features);
                    let prefix = &self.x[observation * features..][..stage];
                    values[..stage].copy_from_slice(prefix);
                    values[features..features + stage].fill(1.0);
                }
                let rows = self.observations() * features;
                upload(values, [rows, 2 * features], device).matmul(first.weight.val()) + bias
            }
        };
        let mut masks = masks.map(|(dropout, rng)| DeviceMasks::new(dropout, rng));
        let masks = masks.as_mut().map(|masks| masks as &mut dyn LayerMasks);
        let inner = seen.as_ref().map(|[_, inner, _]| inner);
        let features = net.trunk(h, shape.proposal.activation, masks, inner);
        (features.clone(), self.last(net, features))
    }

    fn last(&self, net: &ResidualNet, features: Tensor<2>) -> Tensor<2> {
        let last = &net.last;
        let weight = match &self.layout.seen {
            Some([.., seen]) => last.weight.val() * seen.clone(),
            None => last.weight.val(),
        };
        features.matmul(weight) + bias_of(last).val().unsqueeze()
    }

    /// Context and raw outputs of the base of every number, `[observations * numbers, outputs]`.
    fn of_numbers(&self, outputs: &Tensor<2>) -> Option<Tensor<2>> {
        let Layout { shape, numbers, outputs_of_numbers, .. } = self.layout;
        let each = shape.context + shape.number_outputs();
        let outputs = match outputs_of_numbers {
            None => outputs.clone(),
            Some(_) if numbers.is_empty() => return None,
            Some(own) => outputs.clone().select(1, own.clone()),
        };
        Some(outputs.reshape([self.observations() * numbers.len(), each]))
    }

    /// The values of the numbers, `[observations * numbers, 1]`.
    fn numbers_of_data(&self) -> Tensor<2> {
        let Layout { shape, numbers, device, .. } = self.layout;
        let rows = self.x.chunks_exact(shape.features);
        let values: Vec<f32> =
            rows.flat_map(|row| numbers.iter().map(|&stage| row[stage])).collect();
        let shape = [values.len(), 1];
        upload(values, shape, device)
    }

    /// The bases of all numbers, with the log-probabilities of atoms.
    fn base(&self, own: &Tensor<2>, outputs: &Tensor<2>) -> Base {
        let Layout { shape, numbers, device, .. } = self.layout;
        let raw = own.clone().narrow(1, shape.context, shape.number_outputs());
        let base = Base::new(shape, raw, self.known.as_ref());
        let atoms = |stage: &usize| match shape.kind(*stage) {
            FeatureKind::Atoms { values } => &values[..],
            _ => &[],
        };
        let most = numbers.iter().map(|stage| atoms(stage).len()).max().unwrap_or(0);
        if most == 0 {
            return base;
        }
        let observations = self.observations();
        let never =
            |columns: usize| -> Tensor<2> { Tensor::full([observations, columns], -1e30, device) };
        let (mut log_probabilities, mut elsewhere, mut places) =
            (Vec::new(), Vec::new(), Vec::new());
        for stage in numbers {
            let values = atoms(stage);
            places.extend(
                values.iter().copied().chain(std::iter::repeat_n(0.0, most - values.len())),
            );
            match values.len() {
                0 => {
                    log_probabilities.push(never(most));
                    elsewhere.push(Tensor::zeros([observations, 1], device));
                }
                number => {
                    let log_p = self.log_classes(outputs, *stage);
                    log_probabilities.push(log_p.clone().narrow(1, 0, number));
                    if number < most {
                        log_probabilities.push(never(most - number));
                    }
                    elsewhere.push(log_p.narrow(1, number, 1));
                }
            }
        }
        let rows = observations * numbers.len();
        let places = upload(places, [1, numbers.len() * most], device);
        let places = places.expand([observations, numbers.len() * most]).reshape([rows, most]);
        base.with_atoms(
            Tensor::cat(log_probabilities, 1).reshape([rows, most]),
            places,
            Tensor::cat(elsewhere, 1).reshape([rows, 1]),
        )
    }

    /// Log-probabilities of the classes of a stage, or of its atoms and of elsewhere.
    fn log_classes(&self, outputs: &Tensor<2>, stage: usize) -> Tensor<2> {
        let shape = &self.layout.shape;
        let from = shape.outputs_before(stage) + shape.context;
        let (from, number) = match shape.kind(stage) {
            FeatureKind::Categorical { levels } => (from, *levels),
            FeatureKind::Atoms { values } => (from + shape.number_outputs(), values.len() + 1),
            _ => unreachable!("a number without atoms has no classes"),
        };
        log_softmax(outputs.clone().narrow(1, from, number), 1)
    }

    /// Log-densities of the observations in a member's eyes; those of classes are never away from the graph.
    ///
    /// # Shapes
    /// - output: `[observations, stages]`, numbers first
    fn of_data(
        &self,
        outputs: &Tensor<2>,
        of_numbers: Option<&Tensor<2>>,
        trained: &Tensor<2>,
    ) -> Tensor<2> {
        let Layout { shape, numbers, device, .. } = self.layout;
        let (features, observations) = (shape.features, self.observations());
        let rows = || self.x.chunks_exact(features);
        let (mut classes_of, mut atoms_of) = (Vec::new(), vec![None; numbers.len()]);
        let mut elsewhere = Vec::new();
        for stage in shape.given..features {
            let kind = shape.kind(stage);
            let (classes, outputs): (Vec<usize>, _) = match kind {
                FeatureKind::Categorical { .. } => {
                    (rows().filter_map(|row| kind.index_of(row[stage])).collect(), outputs)
                }
                FeatureKind::Atoms { values } => {
                    let class = |x: f32| values.iter().position(|value| *value == x);
                    let class = |row: &[f32]| class(row[stage]).unwrap_or(values.len());
                    (rows().map(class).collect(), trained)
                }
                _ => continue,
            };
            let of = indices(&classes, [observations, 1], device);
            let counted = self.log_classes(outputs, stage).gather(1, of);
            if let FeatureKind::Atoms { values } = kind {
                let number = numbers.iter().position(|number| *number == stage).expect("a number");
                let is_elsewhere = classes.iter().map(|class| *class == values.len()).collect();
                elsewhere.push((number, is_elsewhere));
                atoms_of[number] = Some(counted);
            } else {
                classes_of.push(counted);
            }
        }
        let log_q = of_numbers.map(|own| {
            let raw = own.clone().narrow(1, shape.context, shape.number_outputs());
            let log_q = Base::new(shape, raw, self.known.as_ref())
                .log_density(self.numbers_of_data())
                .reshape([observations, numbers.len()]);
            match elsewhere.is_empty() {
                true => log_q,
                false => {
                    let none = || Tensor::zeros([observations, 1], device);
                    let atoms = atoms_of.into_iter().map(|atoms| atoms.unwrap_or_else(none));
                    log_q * counts(&elsewhere, [observations, numbers.len()], device)
                        + Tensor::cat(atoms.collect(), 1)
                }
            }
        });
        Tensor::cat(log_q.into_iter().chain(classes_of).collect(), 1)
    }

    /// The outputs of the energy network at several values of each number, which share its context.
    ///
    /// # Shapes
    /// - `context`: `[rows, context]`; `x` and output: `[rows, values]`
    fn energies(
        &self,
        context: Tensor<2>,
        x: &Tensor<2>,
        masks: Option<(Dropout, &mut Stream)>,
    ) -> Tensor<2> {
        let shape = &self.layout.shape;
        let ([rows, values], width) = (x.dims(), shape.energy.width);
        let net = &self.model.energy;
        let weight = net.first.weight.val();
        let of_x: Tensor<3> = weight.clone().slice([0..1, 0..width]).unsqueeze();
        let of_context = weight.slice([1..1 + shape.context, 0..width]);
        let shared = context.matmul(of_context) + bias_of(&net.first).val().unsqueeze();
        let shared: Tensor<3> = shared.unsqueeze_dim(1);
        let h = shared + x.clone().unsqueeze_dim(2) * of_x;
        let mut masks = masks.map(|(dropout, rng)| DeviceMasks::new(dropout, rng));
        let masks = masks.as_mut().map(|masks| masks as &mut dyn LayerMasks);
        let h = h.reshape([rows * values, width]);
        let h = net.trunk(h, shape.energy.activation, masks, None);
        net.last.forward(h).reshape([rows, values])
    }

    /// Candidates as they were given, of every number: `[observations * numbers, candidates - 1]`.
    pub fn given_candidates(&self, all: &[f32], candidates: usize) -> Tensor<2> {
        let Layout { shape, numbers, device, .. } = self.layout;
        let features = shape.features;
        let mut values = Vec::with_capacity(self.observations() * numbers.len() * (candidates - 1));
        for rows in all.chunks_exact(candidates * features) {
            for &stage in numbers {
                values.extend(rows[features..].iter().skip(stage).step_by(features));
            }
        }
        upload(values, [self.observations() * numbers.len(), candidates - 1], device)
    }
}

/// What the Gaussian mixture beside the head says about every number, computed on this side.
fn known(layout: &Layout, model: &ArEbm, x: &[f32]) -> Option<[Tensor<2>; 3]> {
    let Layout { shape, numbers, device, .. } = layout;
    let mut conditionals = model.known.as_ref()?.conditionals();
    let mut parts: [Vec<f32>; 3] = Default::default();
    for row in x.chunks_exact(shape.features) {
        conditionals.begin();
        let seen = shape.numbers(&row[..shape.features]);
        let last = shape.num_numbers() - 1;
        seen.take(last).enumerate().for_each(|(number, x)| conditionals.see(number, x));
        for &stage in numbers {
            let number = shape.number_of(stage).expect("a number");
            parts[0].extend(conditionals.log_weights(number));
            parts[1].extend(conditionals.means(number));
            parts[2].extend(conditionals.scales(number));
        }
    }
    let rows = x.len() / shape.features * numbers.len();
    Some(parts.map(|part| {
        let shape = [rows, part.len() / rows];
        upload(part, shape, device)
    }))
}

/// 1 for every number, and 0 where it is at an atom.
fn counts(elsewhere: &[(usize, Vec<bool>)], shape: [usize; 2], device: &Device) -> Tensor<2> {
    let mut values = vec![1.0f32; shape[0] * shape[1]];
    for (number, is_elsewhere) in elsewhere {
        for (row, is_elsewhere) in is_elsewhere.iter().enumerate() {
            values[row * shape[1] + number] = f32::from(u8::from(*is_elsewhere));
        }
    }
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Log-weights of the candidates of every row, normalised.
pub struct Weighed {
    /// `[rows, candidates]`; 0 for the first where it stands beside them.
    pub weights: Tensor<2>,
    /// `log 1/c sum_j w_j`, `[rows, 1]`.
    pub log_mean: Tensor<2>,
    /// The effective sample size, `[rows, 1]`.
    pub size: Tensor<2>,
}

impl Weighed {
    /// Of candidates of which the first so many stand beside the others.
    pub fn new(log_w: Tensor<2>, beside: usize) -> Self {
        let [rows, candidates] = log_w.dims();
        let number = candidates - beside;
        let log_w = log_w.narrow(1, beside, number);
        let largest = log_w.clone().max_dim(1);
        let raw = (log_w - largest.clone()).exp();
        let sum = raw.clone().sum_dim(1);
        let mut weights = raw / sum.clone();
        let size = weights.clone().square().sum_dim(1).recip();
        let log_mean = sum.log() + largest - (number as f64).ln();
        if beside > 0 {
            let none = Tensor::zeros([rows, beside], &weights.device());
            weights = Tensor::cat(vec![none, weights], 1);
        }
        Self { weights, log_mean, size }
    }
}
