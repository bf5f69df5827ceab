//! The training step in plain Burn operations, for every device and as the yardstick of the fast path.
//!
//! It draws from the same streams in the same order as [`super::ArStep`], so both see the same candidates and masks up to
//! rounding. The whole batch goes through the networks at once.

use burn::optim::GradientsParams;
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::config::ArEbmConfig;
use super::criterion::{ArStepConfig, ContextFlow};
use super::dropout::{Dropout, Masks};
use super::forward::{find_sharing, rows_of, sibling};
use super::mixture::Mixture;
use super::model::{ArEbm, Outlook};
use super::particles::ParticleSystem;
use crate::criterion::Method;
use crate::error::Result;
use crate::kernel::SmcGradient;
use crate::rng::{Stream, Streams};
use crate::train::{Batch, StepReport, TrainingStep, gradient_norm};

/// Losses of a batch: a surrogate to go backward from, and the values.
#[derive(Debug)]
pub struct DeviceLoss {
    /// A scalar whose gradient is the criterion's.
    pub surrogate: Tensor<1>,
    /// Mean of `-log q(x_0)`.
    pub proposal_nll: f64,
    /// Mean of `-log p~(x_0) + log Z-hat`; zero in warm-up.
    pub ebm_loss: f64,
}

impl DeviceLoss {
    /// Runs the criterion forward on the device of the model.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn new(
        settings: &ArStepConfig,
        model: &ArEbm,
        x: &[f32],
        streams: &Streams,
        step: u64,
    ) -> Result<Self> {
        let config = &model.shape;
        let (features, candidates) = (config.features, settings.candidates());
        let defence = settings.defence(features);
        let observations = x.len() / features;
        let device = model.proposal.first.weight.val().device();
        let streams = |purpose: &str| -> Vec<Stream> {
            (0..observations).map(|n| streams.stream(purpose, step, n as u64)).collect()
        };
        let (mut particle_streams, mut dropout_streams) =
            (streams("ar-particles"), streams("ar-dropout"));
        let mut systems: Vec<ParticleSystem> =
            (0..observations).map(|n| ParticleSystem::new(settings, n)).collect();
        let mut rows = expand(x, features, candidates);
        let number = rows.len() / features;
        let mut representative: Vec<usize> =
            (0..number).map(|row| row - row % candidates).collect();
        let (mut log_ps, mut log_qs) = (Vec::new(), Vec::new());
        let (mut proposal_nll, mut ebm_loss) = (0.0, 0.0);
        for stage in 0..features {
            let mut masks = Dropout::new(config.dropout)
                .map(|dropout| Masks::new(dropout, &mut dropout_streams, candidates));
            let prefix = tensor(prefix(&rows, features, stage), [number, stage.max(1)], &device);
            let outlook = match &mut masks {
                Some(masks) if settings.share_masks => {
                    propose_shared(model, prefix, stage, masks, &representative, candidates)
                }
                masks => model.propose(prefix, stage, masks.as_mut()),
            };
            draw(config, settings, &outlook, &mut rows, stage, &mut particle_streams);
            let drawn: Vec<f32> = rows.iter().skip(stage).step_by(features).copied().collect();
            let new = tensor(drawn.clone(), [number, 1], &device);
            let attached = detached_trunk(settings, model, &outlook);
            let log_q = attached.log_density(config, new.clone());
            let log_q_values = values(&log_q);
            proposal_nll -= log_q_values.iter().step_by(candidates).sum::<f64>();
            log_qs.push(log_q);
            if settings.criterion == Method::QOnly {
                continue;
            }
            let log_p = model.log_factor(new, outlook.context, masks.as_mut());
            let log_p_values = values(&log_p);
            log_ps.push(log_p);
            representative = (0..number).collect();
            for (n, (system, rng)) in systems.iter_mut().zip(&mut particle_streams).enumerate() {
                let range = n * candidates..(n + 1) * candidates;
                let log_w: Vec<f64> = log_p_values[range.clone()]
                    .iter()
                    .zip(log_q_values[range.clone()].iter().zip(&drawn[range.clone()]))
                    .map(|(p, (q, x))| p - f64::from(defence.log_density(*q as f32, *x)))
                    .collect();
                ebm_loss -= log_p_values[range.start];
                system.weigh(&log_w)?;
                if stage + 1 < features
                    && let Some(ancestors) = system.resample(rng)
                {
                    let old = rows[range.start * features..range.end * features].to_vec();
                    for (candidate, &ancestor) in ancestors.iter().enumerate() {
                        representative[range.start + candidate] =
                            range.start + sibling(ancestors, candidate);
                        rows[(range.start + candidate) * features..][..=stage]
                            .copy_from_slice(&old[ancestor * features..][..=stage]);
                    }
                }
            }
        }
        if settings.criterion != Method::QOnly {
            ebm_loss += systems.iter().map(ParticleSystem::log_z_hat).sum::<f64>();
        }
        let surrogate = surrogate(settings, &systems, log_ps, log_qs, &device);
        let scale = 1.0 / observations as f64;
        Ok(Self { surrogate, proposal_nll: proposal_nll * scale, ebm_loss: ebm_loss * scale })
    }

    /// Goes backward.
    pub fn gradient(self, model: &ArEbm) -> GradientsParams {
        GradientsParams::from_grads(self.surrogate.backward(), model)
    }
}

/// The training step on the device of the model; its settings are those of an [`ArStep`](super::ArStep).
#[derive(Debug, Clone)]
pub struct DeviceStep(pub ArStepConfig);

impl TrainingStep<ArEbm> for DeviceStep {
    fn gradient(
        &mut self,
        model: &ArEbm,
        batch: &Batch,
        streams: &Streams,
        step: u64,
    ) -> Result<(GradientsParams, StepReport)> {
        let x: Vec<f32> = batch.x.to_data().iter::<f32>().collect();
        let loss = DeviceLoss::new(&self.0.at(step), model, &x, streams, step)?;
        let (proposal_nll, ebm_loss) = (loss.proposal_nll, loss.ebm_loss);
        let gradients = loss.gradient(model);
        let report = StepReport {
            loss: proposal_nll + ebm_loss,
            gradient_norm: gradient_norm(model, &gradients),
            effective_sample_size: None,
            proposal_nll: Some(proposal_nll),
            warming_up: step < self.0.warm_up,
        };
        Ok((gradients, report))
    }
}

/// `mean_n sum_d sum_j c_nj log p~ - c'_nj log q` with the constants `c` of the criterion and `c'` of the proposal's
/// objective.
fn surrogate(
    settings: &ArStepConfig,
    systems: &[ParticleSystem],
    log_ps: Vec<Tensor<2>>,
    log_qs: Vec<Tensor<2>>,
    device: &Device,
) -> Tensor<1> {
    let candidates = settings.candidates();
    let scale = 1.0 / systems.len() as f64;
    let (data_share, model_share) = settings.proposal_shares();
    let warm_up = settings.criterion == Method::QOnly;
    let form = settings.criterion.smc_gradient();
    let coefficients = |form| -> Vec<Vec<Vec<f64>>> {
        systems.iter().map(|system| system.coefficients(form)).collect()
    };
    let energy = if warm_up { Vec::new() } else { coefficients(form) };
    let model = if model_share > 0.0 { coefficients(SmcGradient::Trajectory) } else { Vec::new() };
    let weighted = |log: Tensor<2>, coefficient: &dyn Fn(usize, usize) -> f64| {
        let shape = [systems.len() * candidates, 1];
        let constants: Vec<f32> = (0..shape[0])
            .map(|row| (scale * coefficient(row / candidates, row % candidates)) as f32)
            .collect();
        (log * tensor(constants, shape, device)).sum()
    };
    let is_data = |candidate: usize| if candidate == 0 { 1.0 } else { 0.0 };
    let mut total: Option<Tensor<1>> = None;
    let mut add =
        |term: Tensor<1>| total = Some(total.take().map_or(term.clone(), |total| total + term));
    for (stage, log_p) in log_ps.into_iter().enumerate() {
        add(weighted(log_p, &|n, candidate| energy[n][stage][candidate] - is_data(candidate)));
    }
    for (stage, log_q) in log_qs.into_iter().enumerate() {
        add(weighted(log_q, &|n, candidate| {
            let model = if model_share > 0.0 { model[n][stage][candidate] } else { 0.0 };
            -(data_share * is_data(candidate) + model_share * model)
        }));
    }
    total.expect("at least one stage")
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
    let select = |values: Tensor<2>, rows: &[usize]| {
        let indices: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let indices = TensorData::new(indices, [rows.len()]);
        values.select(0, Tensor::<1, Int>::from_data(indices, &device))
    };
    let outlook = model.propose(select(prefix, &distinct), stage, Some(&mut *masks));
    masks.set_rows(vec![candidates; rows / candidates]);
    if sharing.is_empty() {
        return outlook;
    }
    Outlook {
        context: select(outlook.context, &sharing),
        mixture: select(outlook.mixture, &sharing),
        features: select(outlook.features, &sharing),
    }
}

/// Draws the new feature of every candidate but the data point.
fn draw(
    config: &ArEbmConfig,
    settings: &ArStepConfig,
    outlook: &Outlook,
    rows: &mut [f32],
    stage: usize,
    streams: &mut [Stream],
) {
    let (candidates, defence) = (settings.candidates(), settings.defence(config.features));
    let outputs = 3 * config.mixture_components;
    let raw: Vec<f32> =
        outlook.mixture.to_data().convert::<f32>().try_into_vec().expect("32-bit floats");
    let mut mixture = Mixture::new(config.mixture_components, config.minimum_scale as f32);
    for (row, raw) in
        raw.chunks_exact(outputs).enumerate().filter(|(row, _)| !row.is_multiple_of(candidates))
    {
        mixture.set(raw);
        let rng = &mut streams[row / candidates];
        rows[row * config.features + stage] =
            defence.draw(rng).unwrap_or_else(|| mixture.sample(rng));
    }
}

/// The outlook as the proposal's objective sees it: all of it, or the mixture's own layer alone.
fn detached_trunk(settings: &ArStepConfig, model: &ArEbm, outlook: &Outlook) -> Outlook {
    let config = &model.shape;
    if settings.context_flow == ContextFlow::Shared || settings.criterion == Method::QOnly {
        return outlook.clone();
    }
    let columns = config.context..config.context + 3 * config.mixture_components;
    let weight =
        model.proposal.last.weight.val().slice([0..config.proposal.width, columns.clone()]);
    let bias =
        model.proposal.last.bias.as_ref().expect("a bias").val().slice([columns]).unsqueeze();
    Outlook { mixture: outlook.features.clone().detach().matmul(weight) + bias, ..outlook.clone() }
}

fn expand(x: &[f32], features: usize, candidates: usize) -> Vec<f32> {
    let mut rows = Vec::with_capacity(x.len() * candidates);
    for x in x.chunks_exact(features) {
        rows.extend_from_slice(x);
        rows.resize(rows.len() + (candidates - 1) * features, 0.0);
    }
    rows
}

/// The first `stage` features of every row; one column of zeros at stage 0.
fn prefix(rows: &[f32], features: usize, stage: usize) -> Vec<f32> {
    if stage == 0 {
        return vec![0.0; rows.len() / features];
    }
    rows.chunks_exact(features).flat_map(|row| &row[..stage]).copied().collect()
}

fn tensor(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn values(tensor: &Tensor<2>) -> Vec<f64> {
    crate::host::to_host(tensor)
}
