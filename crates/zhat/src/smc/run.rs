//! A run of sequential Monte Carlo on a sequential model, with the graph of every factor.

use burn::tensor::{Int, Tensor, TensorData};

use super::{Ancestry, Filter, SmcConfig};
use crate::error::Result;
use crate::host::{Place, to_host};
use crate::model::SequentialModel;
use crate::proposal::SequentialProposal;
use crate::rng::Stream;
use crate::weights::{LogWeights, Weights};

/// The particles of many independent systems (rows), and everything that was learnt on the way.
pub struct Smc {
    /// Final trajectories: `[n, c, d]`.
    pub x: Tensor<3>,
    /// `log p~` of the final trajectories with the graph: `[n, c]`.
    pub log_p_tilde: Tensor<2>,
    /// `log Z-hat` of each row with the graph, ancestors held fixed: `[n]`.
    pub log_z_hat: Tensor<1>,
    stages: Vec<Stage>,
    log_weights: LogWeights,
}

/// What one stage leaves behind.
struct Stage {
    /// `log p~(x_d | x_<d)` with the graph: `[n, c]`.
    log_factor: Tensor<2>,
    weights: Weights,
    /// Rows whose particles were resampled after this stage; all of them after the last.
    ends_block: Vec<bool>,
}

impl Smc {
    /// Plain SMC: `rows` independent systems.
    pub fn plain<M, Q>(
        config: &SmcConfig,
        model: &M,
        proposal: &Q,
        rows: usize,
        place: &Place,
        rng: &mut Stream,
    ) -> Result<Self>
    where
        M: SequentialModel + ?Sized,
        Q: SequentialProposal + ?Sized,
    {
        run(config, model, proposal, Start::Plain { rows, place: place.clone() }, rng)
    }

    /// Conditional SMC (Alg. 3): particle 0 of each row is that row of `x0` and is never resampled away.
    ///
    /// # Shapes
    /// - `x0`: `[n, d]`
    pub fn conditional<M, Q>(
        config: &SmcConfig,
        model: &M,
        proposal: &Q,
        x0: Tensor<2>,
        rng: &mut Stream,
    ) -> Result<Self>
    where
        M: SequentialModel + ?Sized,
        Q: SequentialProposal + ?Sized,
    {
        run(config, model, proposal, Start::Conditional { x0 }, rng)
    }

    /// Normalised weights of the final trajectories.
    pub fn weights(&self) -> &Weights {
        &self.stages.last().expect("at least one stage").weights
    }

    /// Effective sample size after each stage, averaged over rows.
    pub fn effective_sample_sizes(&self) -> Vec<f64> {
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        self.stages.iter().map(|s| mean(s.weights.effective_sample_size().collect())).collect()
    }

    /// What is subtracted from `log p~` of a trajectory to give its final log-weight.
    pub(crate) fn log_proposal(&self) -> Vec<f64> {
        let log_p_tilde = to_host(&self.log_p_tilde);
        log_p_tilde.iter().zip(self.log_weights.rows().flatten()).map(|(p, w)| p - w).collect()
    }

    /// The gradient of `log Z-hat` as terms: factors of a stage, weighed by the weights just before the next resampling.
    ///
    /// Between two resamplings `log Z-hat` gains `log 1/c sum_j prod_d p~_d / q_d` over the stages of the block, whose
    /// derivative weighs all factors of the block by the normalised weights at its end.
    ///
    /// # Shapes
    /// - output: log-factors and weights, both `[n, stages * particles]`
    pub(crate) fn filtering_terms(&self, place: &Place) -> (Tensor<2>, Tensor<2>) {
        let columns = self.weights().columns();
        let rows = self.stages[0].ends_block.len();
        let mut block_end = vec![0.0; rows * columns];
        let mut weights = Vec::with_capacity(self.stages.len());
        for stage in self.stages.iter().rev() {
            for (row, ends) in stage.ends_block.iter().enumerate() {
                if *ends {
                    let span = row * columns..(row + 1) * columns;
                    block_end[span.clone()].copy_from_slice(&stage.weights.values()[span]);
                }
            }
            weights.push(place.tensor(block_end.clone(), [rows, columns]));
        }
        weights.reverse();
        let factors = self.stages.iter().map(|stage| stage.log_factor.clone()).collect();
        (Tensor::cat(factors, 1), Tensor::cat(weights, 1))
    }
}

enum Start {
    Plain { rows: usize, place: Place },
    Conditional { x0: Tensor<2> },
}

fn run<M, Q>(
    config: &SmcConfig,
    model: &M,
    proposal: &Q,
    start: Start,
    rng: &mut Stream,
) -> Result<Smc>
where
    M: SequentialModel + ?Sized,
    Q: SequentialProposal + ?Sized,
{
    let dimension = model.num_stages();
    let (rows, place, retained) = match start {
        Start::Plain { rows, place } => (rows, place, None),
        Start::Conditional { x0 } => (x0.dims()[0], Place::of(&x0), Some(to_host(&x0))),
    };
    let columns = config.num_particles;
    let particles = rows * columns;
    let mut filter = Filter::new(config, rows, retained.is_some());
    let mut x = vec![0.0; particles * dimension];
    let mut stages: Vec<Stage> = Vec::with_capacity(dimension);
    let mut ancestry: Option<Ancestry> = None;
    // Attached: log p~ of the trajectories, log-weights since the last resampling, and log Z-hat of closed blocks.
    let mut log_p_tilde: Option<Tensor<2>> = None;
    let mut block: Option<Tensor<2>> = None;
    let mut log_z_hat: Option<Tensor<1>> = None;
    let mut log_weights = None;
    for stage in 0..dimension {
        let prefix = place.tensor(x.clone(), [particles, dimension]);
        let drawn = to_host(&proposal.sample(stage, prefix, rng));
        for (particle, value) in drawn.into_iter().enumerate() {
            x[particle * dimension + stage] = match &retained {
                Some(x0) if particle % columns == 0 => x0[particle / columns * dimension + stage],
                _ => value,
            };
        }
        let rows_so_far: Tensor<2> = place.tensor(x.clone(), [particles, dimension]);
        let log_q = to_host(&proposal.log_prob(stage, rows_so_far.clone()));
        let log_factor = model.log_factor(stage, rows_so_far).reshape([rows, columns]);
        let (total, weights) = filter.weigh(&LogWeights::new(&log_factor, &log_q)?);
        let log_w = log_factor.clone() - place.tensor(log_q, [rows, columns]);
        log_p_tilde = Some(match (log_p_tilde, &ancestry) {
            (Some(past), Some(ancestry)) => {
                past.gather(1, index(&ancestry.ancestors, [rows, columns], &log_w))
                    + log_factor.clone()
            }
            _ => log_factor.clone(),
        });
        block = Some(match (block, &ancestry) {
            (Some(open), Some(ancestry)) => {
                open * indicator(&ancestry.resampled, false, &place).unsqueeze_dim(1) + log_w
            }
            _ => log_w,
        });
        let last = stage + 1 == dimension;
        let next = if last { None } else { Some(filter.resample(rng)) };
        let ends_block = next.as_ref().map_or(vec![true; rows], |next| next.resampled.clone());
        let closed =
            log_mean_exp(block.clone().expect("just set")) * indicator(&ends_block, true, &place);
        log_z_hat = Some(log_z_hat.map_or(closed.clone(), |sum| sum + closed));
        if let Some(next) = &next {
            x = descend(&x, &next.ancestors, columns, dimension);
        }
        stages.push(Stage { log_factor, weights, ends_block });
        log_weights = Some(total);
        ancestry = next;
    }
    Ok(Smc {
        x: place.tensor(x, [rows, columns, dimension]),
        log_p_tilde: log_p_tilde.expect("at least one stage"),
        log_z_hat: log_z_hat.expect("at least one stage"),
        stages,
        log_weights: log_weights.expect("at least one stage"),
    })
}

/// Every particle becomes a copy of its ancestor.
fn descend(x: &[f64], ancestors: &[usize], columns: usize, dimension: usize) -> Vec<f64> {
    let mut next = Vec::with_capacity(x.len());
    for (particle, ancestor) in ancestors.iter().enumerate() {
        let at = (particle / columns * columns + ancestor) * dimension;
        next.extend_from_slice(&x[at..at + dimension]);
    }
    next
}

fn index(ancestors: &[usize], shape: [usize; 2], like: &Tensor<2>) -> Tensor<2, Int> {
    let ancestors: Vec<i64> = ancestors.iter().map(|&ancestor| ancestor as i64).collect();
    Tensor::from_data(TensorData::new(ancestors, shape), &like.device().inner())
}

/// One where a flag is as asked for, else zero.
fn indicator(flags: &[bool], wanted: bool, place: &Place) -> Tensor<1> {
    let values = flags.iter().map(|&flag| if flag == wanted { 1.0 } else { 0.0 }).collect();
    place.tensor(values, [flags.len()])
}

/// `log 1/c sum_j exp(v_j)` of each row, with the graph.
fn log_mean_exp(values: Tensor<2>) -> Tensor<1> {
    let columns = values.dims()[1] as f64;
    let largest = values.clone().detach().max_dim(1);
    let sum = (values - largest.clone()).exp().sum_dim(1).log() + largest;
    sum.squeeze_dim::<1>(1) - columns.ln()
}
