//! The training step in plain Burn operations, as the yardstick of the fast paths.
//!
//! It draws from the same streams in the same order as [`ArStep`](super::super::ArStep), so both see the same candidates and masks
//! up to rounding. What it draws, and the weights, it computes on the CPU: on another device it waits three times for every feature.

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use crate::ar::coefficients::Coefficient;
use crate::ar::config::Normalisation;
use crate::ar::criterion::{ArStepConfig, ContextFlow};
use crate::ar::defence::Defence;
use crate::ar::dropout::{LayerMasks, Masks};
use crate::ar::forward::{Forward, find_sharing, rows_of};
use crate::ar::model::{ArEbm, Outlook, mean_of_members};
use crate::ar::tile::weighted;
use crate::criterion::Method;
use crate::error::Result;
use crate::host::{indices, to_host};
use crate::rng::{Stream, Streams};
use crate::smc::Particles;
use crate::train::{Batch, StepReport, TrainingStep, gradient_norm};

/// The training step on the device of the model; its settings are those of an [`ArStep`](super::super::ArStep).
#[derive(Debug, Clone)]
pub struct PlainStep(pub ArStepConfig);

impl TrainingStep<ArEbm> for PlainStep {
    fn gradient(
        &mut self,
        model: &ArEbm,
        batch: &Batch,
        streams: &Streams,
        step: u64,
    ) -> Result<(GradientsParams, StepReport)> {
        let (settings, shares) = (self.0.at(step), batch.shares());
        let x: Vec<f32> = batch.x.to_data().iter::<f32>().collect();
        let features = model.shape.features;
        let mut forward = Forward::default();
        let local = model.shape.normalisation == Normalisation::Local;
        forward.begin(&x, features, settings.candidates(), local, settings.defence(features));
        forward.share_masks = settings.share_masks || local;
        let streams = |purpose: &str| streams.lanes(purpose, step, 0..shares.len());
        let mut all = AllCandidates {
            settings: &settings,
            model,
            shares: &shares,
            device: model.proposal.first.weight.val().device(),
            particle_streams: streams("ar-particles"),
            dropout_streams: streams("ar-dropout"),
            forward,
            conditioned: None,
            log_ps: Vec::new(),
            log_qs: Vec::new(),
            proposal_nll: 0.0,
            ebm_loss: 0.0,
        };
        let genealogy = settings.filter(shares.len(), 0, local).run(features, &mut all)?;
        let log_z_hat = weighted(&shares, genealogy.log_z_hat.iter().copied());
        let last = genealogy.effective_sample_size[features - 1].iter().copied();
        let (proposal_nll, ebm_loss) = (all.proposal_nll, all.ebm_loss + log_z_hat);
        let surrogate = all.surrogate(&settings.coefficients(&genealogy, &shares, &model.shape));
        let gradients = GradientsParams::from_grads(surrogate.backward(), model);
        let with_energy = settings.criterion != Method::QOnly;
        let report = StepReport {
            loss: proposal_nll + ebm_loss,
            gradient_norm: gradient_norm(model, &gradients),
            effective_sample_size: with_energy.then(|| weighted(&shares, last)),
            proposal_nll: Some(proposal_nll),
            warming_up: self.0.warms_up(step),
        };
        Ok((gradients, report))
    }
}

/// The candidates of all observations.
struct AllCandidates<'a> {
    settings: &'a ArStepConfig,
    model: &'a ArEbm,
    /// What each observation counts, of a whole of 1.
    shares: &'a [f64],
    device: Device,
    /// Both one for each observation.
    particle_streams: Vec<Stream>,
    dropout_streams: Vec<Stream>,
    /// The rows of the fast path, without its networks.
    forward: Forward,
    /// What each member's masked conditioner made of whole rows, one for each observation, where their prefixes are the only ones.
    conditioned: Option<Vec<Tensor<2>>>,
    /// Log-densities of every stage that is not given with the graph, `[rows, 1]`.
    log_ps: Vec<Tensor<2>>,
    log_qs: Vec<Tensor<2>>,
    /// Sums over observations.
    proposal_nll: f64,
    ebm_loss: f64,
}

impl AllCandidates<'_> {
    /// The conditioner runs once for all stages, on the observations alone.
    fn one_pass(&mut self, stage: usize, masks: Option<&mut Masks>) -> Outlook {
        let (features, candidates) = (self.model.shape.features, self.settings.candidates());
        let (number, observations) = (self.forward.num_rows(), self.shares.len());
        if stage == self.model.shape.given {
            let rows = self.forward.rows.chunks_exact(features).step_by(candidates);
            let rows: Vec<f32> = rows.flatten().copied().collect();
            let rows = tensor(rows, [observations, features], &self.device);
            let mut masks = masks;
            if let Some(masks) = &mut masks {
                masks.set_rows(vec![1; observations]);
            }
            let known = features - 1;
            let prefix = rows.narrow(1, 0, known.max(1));
            let features = self.model.condition(prefix, known, masks.map(as_layers));
            self.conditioned = Some(features);
        }
        let rows = self.forward.rows.chunks_exact(features).step_by(candidates);
        let rows: Vec<f32> = rows.flatten().copied().collect();
        let known =
            self.model.known_of(tensor(rows, [observations, features], &self.device), stage);
        let features = self.conditioned.clone().expect("the first stage was run");
        let of_row: Vec<usize> = (0..number).map(|row| row / candidates).collect();
        self.model.outlook_of(features, known, stage).select(&of_row)
    }

    /// The sum of all log-densities times their coefficients.
    fn surrogate(self, coefficients: &[Vec<Coefficient>]) -> Tensor<1> {
        let weighted = |log: Tensor<2>, stage: usize, part: fn(&Coefficient) -> f32| {
            let constants: Vec<f32> = coefficients[stage].iter().map(part).collect();
            let shape = [constants.len(), 1];
            (log * tensor(constants, shape, &self.device)).sum()
        };
        let given = self.model.shape.given;
        let log_ps = (given..).zip(self.log_ps);
        let log_qs = (given..).zip(self.log_qs);
        let terms = log_ps.map(|(stage, log_p)| weighted(log_p, stage, |c| c.log_p));
        let terms = terms.chain(log_qs.map(|(stage, log_q)| weighted(log_q, stage, |c| c.log_q)));
        terms.reduce(|total, term| total + term).expect("at least one stage")
    }
}

impl Particles for AllCandidates<'_> {
    /// Where the proposal alone is trained, the data point is the only particle and gains no weight.
    fn advance(&mut self, stage: usize, log_weights: &mut [f64]) -> Result<()> {
        let (shape, candidates) = (&self.model.shape, self.settings.candidates());
        if shape.is_given(stage) {
            return Ok(());
        }
        let (features, number) = (shape.features, self.forward.num_rows());
        let mut dropout_streams = std::mem::take(&mut self.dropout_streams);
        let [of_proposal, of_energy] = shape.dropouts();
        let streams = &mut dropout_streams;
        let mut masks = of_proposal.map(|dropout| Masks::new(dropout, streams, candidates));
        let rows = tensor(self.forward.rows.clone(), [number, features], &self.device);
        let prefix = rows.narrow(1, 0, stage.max(1));
        let outlook = match &mut masks {
            masks if self.forward.is_one_pass(shape) => self.one_pass(stage, masks.as_mut()),
            Some(masks) if self.forward.share_masks => propose_shared(
                self.model,
                prefix,
                stage,
                masks,
                &self.forward.representative,
                candidates,
            ),
            masks => self.model.propose(prefix, stage, masks.as_mut().map(as_layers)),
        };
        let is_class = shape.kind(stage).is_categorical();
        let defence = match is_class || shape.kind(stage).is_atoms() {
            true => Defence::default(),
            false => self.settings.defence(features),
        };
        outlook.each_base(shape, |row, base| {
            if !row.is_multiple_of(candidates) && !is_class {
                let rng = &mut self.particle_streams[row / candidates];
                self.forward.rows[row * features + stage] =
                    defence.draw(rng).unwrap_or_else(|| base.sample(rng));
            }
        });
        let drawn: Vec<f32> =
            self.forward.rows.iter().skip(stage).step_by(features).copied().collect();
        let new = tensor(drawn.clone(), [number, 1], &self.device);
        let attached = detached_trunk(self.settings, self.model, &outlook, stage);
        let of_members = attached.log_densities(shape, new.clone());
        let log_q = mean_of_members(of_members.clone());
        let log_q_values = to_host(&log_q);
        self.proposal_nll -=
            weighted(self.shares, log_q_values.iter().step_by(candidates).copied());
        self.log_qs.push(of_members.sum_dim(1));
        if self.settings.criterion == Method::QOnly {
            self.dropout_streams = dropout_streams;
            return Ok(());
        }
        let mut masks = of_energy.map(|dropout| Masks::new(dropout, streams, candidates));
        let masks = masks.as_mut().map(as_layers);
        let log_p = self.model.log_factor_given(new, &outlook, log_q, masks);
        self.dropout_streams = dropout_streams;
        let log_p_values = to_host(&log_p);
        self.ebm_loss -= weighted(self.shares, log_p_values.iter().step_by(candidates).copied());
        self.log_ps.push(log_p);
        self.forward.forget_sharing();
        for (row, log_w) in log_weights.iter_mut().enumerate() {
            let log_draw = defence.log_density(log_q_values[row] as f32, drawn[row]);
            *log_w += log_p_values[row] - f64::from(log_draw);
        }
        Ok(())
    }

    fn descend(&mut self, stage: usize, row: usize, ancestors: &[usize]) {
        self.forward.resample(row, ancestors, stage + 1);
    }

    fn rng(&mut self, _stage: usize, row: usize) -> &mut Stream {
        &mut self.particle_streams[row]
    }
}

/// Runs the proposal network on the distinct prefixes of each observation alone, so that the others share their masks.
fn propose_shared(
    model: &ArEbm,
    prefix: Tensor<2>,
    stage: usize,
    masks: &mut Masks,
    representative: &[usize],
    candidates: usize,
) -> Outlook {
    let (mut distinct, mut sharing) = (Vec::new(), Vec::new());
    find_sharing(representative, &mut distinct, &mut sharing);
    let rows = representative.len();
    masks.set_rows(rows_of(&distinct, candidates, rows));
    let device = prefix.device();
    let prefix = prefix.select(0, indices(&distinct, [distinct.len()], &device));
    let outlook = model.propose(prefix, stage, Some(as_layers(masks)));
    if sharing.is_empty() { outlook } else { outlook.select(&sharing) }
}

/// The outlook as the proposal's objective sees it: all of it, or the mixture's own layer alone.
fn detached_trunk(
    settings: &ArStepConfig,
    model: &ArEbm,
    outlook: &Outlook,
    stage: usize,
) -> Outlook {
    let is_class = model.shape.kind(stage).is_categorical();
    let shared = settings.context_flow == ContextFlow::Shared || is_class;
    if shared || settings.criterion == Method::QOnly {
        return outlook.clone();
    }
    let features = outlook.features.iter().map(|features| features.clone().detach());
    let detached = model.outlook_of(features.collect(), None, stage);
    Outlook { head: detached.head, ..outlook.clone() }
}

fn as_layers<'a>(masks: &'a mut Masks<'_>) -> &'a mut dyn LayerMasks {
    masks
}

fn tensor(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), device)
}
