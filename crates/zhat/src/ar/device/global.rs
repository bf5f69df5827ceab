//! The loss where one `Z` is estimated: a particle system for each observation, stage by stage, weighed and resampled on the device.

use burn::tensor::{Device, Int, Tensor};

use super::base::{Base, log_draw, upload};
use super::bases::{Bases, mean_of};
use super::local::Weighed;
use super::masks::DeviceMasks;
use super::step::{Plan, Terms};
use crate::ar::criterion::ContextFlow;
use crate::ar::dropout::LayerMasks;
use crate::ar::model::{ArEbm, Outlook};
use crate::criterion::Method;
use crate::kernel::SmcGradient;
use crate::smc::{ResampleWhen, SmcConfig};

/// The observations, each with its candidates.
pub struct Global<'a> {
    model: &'a ArEbm,
    /// `[observations, features]`, on this side.
    x: &'a [f32],
    device: &'a Device,
}

/// What a stage leaves behind.
struct Stage {
    /// With the graph, `[observations, candidates]`.
    log_p: Tensor<2>,
    /// The sum over the members, each of which is trained by itself.
    log_qs: Tensor<2>,
    weights: Tensor<2>,
    /// Where a row was resampled, `[observations, candidates]` of ones, else of zeros; nothing where none can be.
    descent: Option<Descent>,
}

struct Descent {
    resampled: Tensor<2>,
    /// `[observations, candidates]`, the particles themselves where a row was not resampled.
    ancestors: Tensor<2, Int>,
}

impl<'a> Global<'a> {
    /// Rows of a model on a device.
    pub fn new(model: &'a ArEbm, x: &'a [f32], device: &'a Device) -> Self {
        Self { model, x, device }
    }

    /// The loss and its parts.
    pub fn terms(&self, plan: &mut Plan) -> Terms {
        let shape = &self.model.shape;
        let (features, candidates) = (shape.features, plan.settings.candidates());
        let observations = self.x.len() / features;
        let rows = observations * candidates;
        let beside = usize::from(plan.settings.criterion == Method::MlIs);
        let defence = plan.settings.defence(features);
        let shares = plan.shares_tensor(self.device);
        let smc = plan.settings.smc();
        let zeros =
            |columns: usize| -> Tensor<2> { Tensor::zeros([observations, columns], self.device) };
        let (mut log_w, mut log_z_hat) = (zeros(candidates), zeros(1));
        let mut prefix: Option<Tensor<2>> = None;
        let mut stages = Vec::with_capacity(features);
        let mut size = zeros(1);
        let (mut nll, mut minus_log_p) = (zeros(1), zeros(1));
        for stage in 0..features {
            let outlook = self.outlook(stage, prefix.as_ref(), rows, plan);
            let outputs = shape.head_outputs(stage);
            let bases = |head: &Tensor<2>| {
                let of = |member| head.clone().narrow(1, member * outputs, outputs);
                Bases::new((0..shape.members).map(|member| Base::new(shape, of(member), None)))
            };
            let drawn = match plan.given {
                Some(all) => {
                    let values = all.iter().skip(stage).step_by(features).copied().collect();
                    upload(values, [observations, candidates], self.device)
                }
                None => plan
                    .draw(&bases(&outlook.head).inner(), defence, [rows, 1], self.device)
                    .reshape([observations, candidates]),
            };
            let data = self.x.iter().skip(stage).step_by(features).copied().collect();
            let data = upload(data, [observations, 1], self.device);
            let drawn = drawn.narrow(1, 1, candidates - 1);
            let new = Tensor::cat(vec![data, drawn], 1).reshape([rows, 1]);
            let shared = plan.settings.context_flow == ContextFlow::Shared;
            let trained = match shared {
                true => bases(&outlook.head),
                false => {
                    let features = outlook.features.iter().map(|f| f.clone().detach());
                    bases(&self.model.outlook_of(features.collect(), None, stage).head)
                }
            };
            let log_qs = trained.log_densities(&new);
            let log_q = mean_of(log_qs.clone());
            let log_qs = log_qs.into_iter().reduce(|sum, log_q| sum + log_q).expect("a member");
            let [_, of_energy] = shape.dropouts();
            let mut masks = of_energy.map(|dropout| DeviceMasks::new(dropout, &mut plan.masks));
            let masks = masks.as_mut().map(|masks| masks as &mut dyn LayerMasks);
            let log_p = self.model.log_factor_given(new.clone(), &outlook, log_q.clone(), masks);
            let square = |rows: Tensor<2>| rows.reshape([observations, candidates]);
            let (log_q, log_p, new) = (square(log_q), square(log_p), square(new));
            let log_qs = square(log_qs);
            let values = [log_q.inner(), log_p.clone().inner()];
            nll = nll - values[0].clone().narrow(1, 0, 1);
            minus_log_p = minus_log_p - values[1].clone().narrow(1, 0, 1);
            let [of_q, of_p] = values;
            log_w = log_w + of_p - log_draw(defence, of_q, new.clone());
            let weighed = Weighed::new(log_w.clone(), beside);
            log_z_hat = log_z_hat + weighed.log_mean.clone();
            size = weighed.size.clone();
            prefix = Some(match prefix {
                Some(prefix) => Tensor::cat(vec![prefix, new.reshape([rows, 1])], 1),
                None => new.reshape([rows, 1]),
            });
            let descent = (stage + 1 < features)
                .then(|| resample(&weighed, &smc, beside, plan, self.device))
                .flatten();
            // What is carried to the next stage has mean 1 (eq. nce_ext:weight_unnorm_resamp).
            log_w = log_w - weighed.log_mean;
            if let Some(Descent { resampled, ancestors }) = &descent {
                log_w = log_w * (resampled.clone().neg() + 1.0);
                let first = Tensor::<1, Int>::arange(0..observations as i64, self.device);
                let first: Tensor<2, Int> = (first * candidates as i64).unsqueeze_dim(1);
                let of = (ancestors.clone() + first).reshape([rows]);
                prefix = prefix.map(|prefix| prefix.select(0, of));
            }
            stages.push(Stage { log_p, log_qs, weights: weighed.weights, descent });
        }
        let surrogate = self.surrogate(stages, &shares, plan);
        let mean = |values: Tensor<2>| (values * shares.clone()).sum();
        Terms { surrogate, figures: [mean(nll), mean(minus_log_p + log_z_hat), mean(size)] }
    }

    /// What the proposal network says about the next feature of every row.
    fn outlook(
        &self,
        stage: usize,
        prefix: Option<&Tensor<2>>,
        rows: usize,
        plan: &mut Plan,
    ) -> Outlook {
        let [of_proposal, _] = self.model.shape.dropouts();
        let mut masks = of_proposal.map(|dropout| DeviceMasks::new(dropout, &mut plan.masks));
        // Without known features all rows are the same, unless dropout makes them differ.
        let number = if stage == 0 && masks.is_none() { 1 } else { rows };
        let masks = masks.as_mut().map(|masks| masks as &mut dyn LayerMasks);
        let prefix = match prefix {
            Some(prefix) => prefix.clone(),
            None => Tensor::zeros([number, 1], self.device),
        };
        let features = self.model.condition(prefix, stage, masks);
        let width = self.model.shape.proposal.width;
        let features = features.into_iter().map(|f| f.expand([rows, width])).collect();
        self.model.outlook_of(features, None, stage)
    }

    /// The sum of all log-densities times their coefficients, as
    /// [`Genealogy::coefficients`](crate::smc::Genealogy::coefficients) has them.
    fn surrogate(&self, stages: Vec<Stage>, shares: &Tensor<2>, plan: &Plan) -> Tensor<1> {
        let [observations, candidates] = stages[0].weights.dims();
        let data = plan.first_of(observations, candidates, self.device);
        let (data_share, model_share) = plan.settings.proposal_shares();
        let gradient = plan.settings.criterion.smc_gradient();
        let last = stages.last().expect("a stage").weights.clone();
        let (mut energy, mut model) = (last.clone(), last);
        let mut surrogate: Option<Tensor<1>> = None;
        for Stage { log_p, log_qs, weights, descent } in stages.into_iter().rev() {
            if let Some(descent) = &descent {
                energy = match gradient {
                    SmcGradient::Filtering => {
                        let stays = descent.resampled.clone().neg() + 1.0;
                        weights * descent.resampled.clone() + energy * stays
                    }
                    SmcGradient::Trajectory => descent.gathered(energy),
                };
                model = descent.gathered(model);
            }
            let of_p = (energy.clone() - data.clone()) * shares.clone();
            let of_q = data.clone() * data_share + model.clone() * model_share;
            let term = (log_p * of_p).sum() - (log_qs * (of_q * shares.clone())).sum();
            surrogate = Some(match surrogate {
                Some(surrogate) => surrogate + term,
                None => term,
            });
        }
        surrogate.expect("a stage")
    }
}

impl Descent {
    /// What descendants weigh, by their ancestors.
    fn gathered(&self, weights: Tensor<2>) -> Tensor<2> {
        let [rows, candidates] = weights.dims();
        let device = weights.device();
        let all: Tensor<3, Int> =
            Tensor::<1, Int>::arange(0..candidates as i64, &device).reshape([1, 1, candidates]);
        let ancestors: Tensor<3, Int> = self.ancestors.clone().unsqueeze_dim(2);
        let shape = [rows, candidates, candidates];
        let is_mine = ancestors.expand(shape).equal(all.expand(shape)).float();
        let weights: Tensor<3> = weights.unsqueeze_dim(2);
        (is_mine * weights).sum_dim(1).reshape([rows, candidates])
    }
}

/// Ancestors of every particle, by independent draws; the first descends from itself. Nothing where no row is ever resampled.
fn resample(
    weighed: &Weighed,
    smc: &SmcConfig,
    beside: usize,
    plan: &mut Plan,
    device: &Device,
) -> Option<Descent> {
    let below = match smc.resample_when {
        ResampleWhen::EveryStage => f64::INFINITY,
        ResampleWhen::EffectiveSampleSizeBelow(share) => share * smc.num_particles as f64,
    };
    if below == 0.0 {
        return None;
    }
    let [rows, candidates] = weighed.weights.dims();
    let uniforms = plan.uniforms([rows, candidates - 1], device);
    let shape = [rows, candidates - 1, candidates];
    let cumulative: Tensor<3> = weighed.weights.clone().cumsum(1).unsqueeze_dim(1);
    let passed =
        cumulative.expand(shape).lower_equal(uniforms.unsqueeze_dim::<3>(2).expand(shape)).int();
    let drawn = passed.sum_dim(2).clamp_max(candidates as i64 - 1).reshape([rows, candidates - 1]);
    // What stands beside the others has no offspring but itself: it has no weight.
    debug_assert!(beside < 2);
    let first = Tensor::<2, Int>::zeros([rows, 1], device);
    let drawn = Tensor::cat(vec![first, drawn], 1);
    let own: Tensor<2, Int> =
        Tensor::<1, Int>::arange(0..candidates as i64, device).unsqueeze_dim(0);
    let is_time = weighed.size.clone().lower_elem(below).expand([rows, candidates]);
    let ancestors = own.expand([rows, candidates]).mask_where(is_time.clone(), drawn);
    Some(Descent { resampled: is_time.float(), ancestors })
}
