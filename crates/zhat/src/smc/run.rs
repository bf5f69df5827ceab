//! A run of sequential Monte Carlo on a sequential model, with the graph of every factor.

use burn::tensor::{Bool, Tensor, TensorData};

use super::{Filter, First, Genealogy, Particles, SmcConfig};
use crate::error::Result;
use crate::host::{Place, indices, to_host};
use crate::kernel::SmcGradient;
use crate::model::{SequentialModel, log_sum_exp};
use crate::proposal::SequentialProposal;
use crate::rng::Stream;
use crate::weights::LogWeights;

/// The particles of many independent systems (rows), and everything that was learnt on the way.
pub struct Smc {
    /// Final trajectories: `[n, c, d]`.
    pub x: Tensor<3>,
    /// `log p~` of the final trajectories with the graph: `[n, c]`.
    pub log_p_tilde: Tensor<2>,
    /// `log Z-hat` of each row with the graph, ancestors held fixed: `[n]`.
    pub log_z_hat: Tensor<1>,
    /// Weights and ancestors.
    pub genealogy: Genealogy,
    /// `log p~(x_d | x_<d)` of every stage with the graph: `[n, c]`.
    log_factors: Vec<Tensor<2>>,
}

impl Smc {
    /// Plain SMC: `rows` independent systems.
    pub fn plain<M: SequentialModel + ?Sized, Q: SequentialProposal + ?Sized>(
        config: &SmcConfig,
        model: &M,
        proposal: &Q,
        rows: usize,
        place: &Place,
        rng: &mut Stream,
    ) -> Result<Self> {
        run(config, model, proposal, rows, None, place, rng)
    }

    /// Conditional SMC (Alg. 3): particle 0 of each row is that row of `x0` and is never resampled away.
    ///
    /// # Shapes
    /// - `x0`: `[n, d]`
    pub fn conditional<M: SequentialModel + ?Sized, Q: SequentialProposal + ?Sized>(
        config: &SmcConfig,
        model: &M,
        proposal: &Q,
        x0: Tensor<2>,
        rng: &mut Stream,
    ) -> Result<Self> {
        let (rows, place) = (x0.dims()[0], Place::of(&x0));
        run(config, model, proposal, rows, Some(to_host(&x0)), &place, rng)
    }

    /// What is subtracted from `log p~` of a trajectory to give its final log-weight; nothing from one without weight.
    pub(crate) fn log_proposal(&self) -> Vec<f64> {
        let log_p_tilde = to_host(&self.log_p_tilde);
        let pairs = log_p_tilde.iter().zip(&self.genealogy.log_weights);
        pairs.map(|(p, w)| if w.is_finite() { p - w } else { 0.0 }).collect()
    }

    /// The gradient of `log Z-hat` as terms: the factors of all stages with what they are weighed by.
    ///
    /// # Shapes
    /// - output: log-factors and weights, both `[n, stages * particles]`
    pub(crate) fn terms(&self, gradient: SmcGradient, place: &Place) -> (Tensor<2>, Tensor<2>) {
        let shape = self.log_p_tilde.dims();
        let weights = self.genealogy.coefficients(gradient).into_iter();
        let weights = weights.map(|weights| place.tensor(weights, shape)).collect();
        // A factor of zero has no weight, and its logarithm must not make the sum infinite.
        let factors = self.log_factors.iter();
        let factors =
            factors.map(|factor| factor.clone().mask_fill(factor.clone().is_inf(), 0.0)).collect();
        (Tensor::cat(factors, 1), Tensor::cat(weights, 1))
    }
}

fn run<M: SequentialModel + ?Sized, Q: SequentialProposal + ?Sized>(
    config: &SmcConfig,
    model: &M,
    proposal: &Q,
    rows: usize,
    x0: Option<Vec<f64>>,
    place: &Place,
    rng: &mut Stream,
) -> Result<Smc> {
    let (num_particles, dimension) = (config.num_particles, model.num_stages());
    let first = if x0.is_some() { First::Retained } else { First::Drawn };
    let x = vec![0.0; rows * num_particles * dimension];
    let (log_factors, log_q) = (Vec::new(), Vec::new());
    let mut particles =
        Trajectories { model, proposal, place, rng, num_particles, x0, x, log_factors, log_q };
    let genealogy = Filter::new(config, rows, first).run(dimension, &mut particles)?;
    let Trajectories { x, log_factors, log_q, .. } = particles;
    Ok(Smc {
        x: place.tensor(x, [rows, num_particles, dimension]),
        log_p_tilde: of_trajectories(&log_factors, &genealogy),
        log_z_hat: attached_log_z_hat(&log_factors, log_q, &genealogy, place),
        genealogy,
        log_factors,
    })
}

/// Particles of a model and a proposal in tensors, all rows at once.
struct Trajectories<'a, M: ?Sized, Q: ?Sized> {
    model: &'a M,
    proposal: &'a Q,
    place: &'a Place,
    rng: &'a mut Stream,
    num_particles: usize,
    /// What particle 0 of every row is, where it is given.
    x0: Option<Vec<f64>>,
    x: Vec<f64>,
    log_factors: Vec<Tensor<2>>,
    log_q: Vec<Vec<f64>>,
}

impl<M, Q> Particles for Trajectories<'_, M, Q>
where
    M: SequentialModel + ?Sized,
    Q: SequentialProposal + ?Sized,
{
    fn advance(&mut self, stage: usize, log_weights: &mut [f64]) -> Result<()> {
        let (number, dimension) = (log_weights.len(), self.model.num_stages());
        let prefix = self.place.tensor(self.x.clone(), [number, dimension]);
        let drawn = to_host(&self.proposal.sample(stage, prefix, self.rng));
        for (particle, value) in drawn.into_iter().enumerate() {
            self.x[particle * dimension + stage] = match &self.x0 {
                Some(x0) if particle.is_multiple_of(self.num_particles) => {
                    x0[particle / self.num_particles * dimension + stage]
                }
                _ => value,
            };
        }
        let x: Tensor<2> = self.place.tensor(self.x.clone(), [number, dimension]);
        let log_q = to_host(&self.proposal.log_prob(stage, x.clone()));
        let shape = [number / self.num_particles, self.num_particles];
        let log_factor = self.model.log_factor(stage, x).reshape(shape);
        let log_w = LogWeights::new(&log_factor, &log_q)?;
        log_weights.iter_mut().zip(log_w.rows().flatten()).for_each(|(to, w)| *to += w);
        self.log_factors.push(log_factor);
        self.log_q.push(log_q);
        Ok(())
    }

    fn descend(&mut self, _stage: usize, row: usize, ancestors: &[usize]) {
        let dimension = self.model.num_stages();
        let x =
            &mut self.x[row * self.num_particles * dimension..][..self.num_particles * dimension];
        let old = x.to_vec();
        for (x, ancestor) in x.chunks_exact_mut(dimension).zip(ancestors) {
            x.copy_from_slice(&old[ancestor * dimension..][..dimension]);
        }
    }

    fn rng(&mut self, _stage: usize, _row: usize) -> &mut Stream {
        self.rng
    }
}

/// `log p~` of the final trajectories: the factors of those they descend from.
fn of_trajectories(log_factors: &[Tensor<2>], genealogy: &Genealogy) -> Tensor<2> {
    let factors = log_factors.iter().zip(genealogy.lineages()).map(|(factor, lineage)| {
        factor.clone().gather(1, indices(&lineage, factor.dims(), &factor.device().inner()))
    });
    factors.reduce(|sum, factor| sum + factor).expect("at least one stage")
}

/// `log Z-hat` with the graph: for each block between two resamplings `log 1/c sum_j prod_d p~_d / q_d`.
fn attached_log_z_hat(
    log_factors: &[Tensor<2>],
    log_q: Vec<Vec<f64>>,
    genealogy: &Genealogy,
    place: &Place,
) -> Tensor<1> {
    let [rows, num_particles] = log_factors[0].dims();
    let mut block = place.tensor(vec![0.0; rows * num_particles], [rows, num_particles]);
    let mut log_z_hat = place.tensor(vec![0.0; rows], [rows]);
    for (stage, (log_factor, log_q)) in log_factors.iter().zip(log_q).enumerate() {
        block = block + log_factor.clone() - place.tensor(log_q, [rows, num_particles]);
        let ends: Vec<bool> = (0..rows).map(|row| genealogy.ends_block(stage, row)).collect();
        let ends: Tensor<1, Bool> =
            Tensor::from_data(TensorData::new(ends, [rows]), &log_factor.device().inner());
        let gain = log_sum_exp(block.clone()).squeeze_dim::<1>(1) - (num_particles as f64).ln();
        log_z_hat = log_z_hat + gain.mask_fill(ends.clone().bool_not(), 0.0);
        block = block.mask_fill(ends.unsqueeze_dim::<2>(1).expand([rows, num_particles]), 0.0);
    }
    log_z_hat
}
