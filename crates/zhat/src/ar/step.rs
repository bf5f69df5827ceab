//! The training step on the CPU: tiles of observations on threads, with the same bits for any number of them.
//!
//! The criteria are means over observations, so a batch is cut into tiles whose activations stay in the cache. A fixed
//! number of lanes each sum their tiles in order, and the lanes are added in the order of a binary tree. Every observation has
//! its own random streams, so neither threads nor tiles change what is drawn. Where there are several ranks, each sums an
//! aligned part of the tree.

use std::ops::Range;
use std::sync::Mutex;

use burn::optim::GradientsParams;

use super::config::Normalisation;
use super::criterion::ArStepConfig;
use super::engine::{Engine, EngineGradient};
use super::evaluate::pool;
use super::model::ArEbm;
use super::tile::{Plan, TileReport, Workspace};
use crate::criterion::Method;
use crate::error::{Error, Result};
use crate::ranks::Workers;
use crate::rng::Streams;
use crate::train::{Batch, StepReport, TrainingStep};

/// Threads and memory of training steps.
#[derive(Debug)]
pub struct ArStep {
    settings: ArStepConfig,
    workers: Workers,
    pool: rayon::ThreadPool,
    workspaces: Mutex<Vec<Workspace>>,
    /// The model of the last step, whose memory the next takes.
    engine: Option<Engine>,
    lanes: Vec<EngineGradient>,
    /// The gradient as other ranks are sent it.
    message: Vec<f32>,
    /// Candidates that are given instead of drawn, `[observations, candidates, features]`, for comparisons.
    candidates: Option<Vec<f32>>,
}

impl ArStep {
    /// A step on a number of threads (0: as many as there are cores), which may be those of one of several ranks.
    pub fn new(settings: &ArStepConfig, workers: impl Into<Workers>) -> Result<Self> {
        settings.validate()?;
        let workers = workers.into();
        if workers.size() > leaves(settings) {
            let expected = format!("at least {}, the number of ranks", workers.size());
            return Err(Error::setting("step.lanes", settings.lanes, expected));
        }
        Ok(Self {
            settings: settings.clone(),
            pool: pool(workers.threads())?,
            workers,
            workspaces: Mutex::new(Vec::new()),
            engine: None,
            lanes: Vec::new(),
            message: Vec::new(),
            candidates: None,
        })
    }

    /// With candidates that are given instead of drawn, the observations themselves first among them.
    pub(super) fn with_candidates(mut self, candidates: &[f32]) -> Self {
        self.candidates = Some(candidates.to_vec());
        self
    }

    /// Threads at work.
    pub fn num_threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Leaves the gradient of the batch in the first lane.
    fn run(
        &mut self,
        settings: &ArStepConfig,
        model: &ArEbm,
        batch: &Batch,
        streams: &Streams,
        step: u64,
    ) -> Result<TileReport> {
        let features = model.shape.features;
        let data = batch.x.to_data();
        let x = data.as_slice::<f32>().expect("rows of 32-bit floats");
        assert!(
            !x.is_empty() && x.len().is_multiple_of(features),
            "whole rows of {features} features"
        );
        let observations = x.len() / features;
        let engine = match &mut self.engine {
            Some(engine) if engine.config == model.shape => {
                engine.read(model);
                engine
            }
            engine => {
                self.lanes.clear();
                engine.insert(Engine::new(model))
            }
        };
        let shares = batch.shares();
        let candidates = self.candidates.as_deref();
        let plan = Plan { engine, config: settings, streams, step, shares: &shares, candidates };
        let tree = Tree {
            tiles: tiles(observations, settings, model.shape.normalisation),
            leaves: leaves(settings),
        };
        let part = self.workers.part_of(tree.leaves);
        let lanes = tree.lanes(&part);
        if self.lanes.len() != lanes.max(1) {
            self.lanes = vec![engine.zero_gradient(); lanes.max(1)];
        }
        let workspaces = &self.workspaces;
        let leaf = |tiles: &[Range<usize>], gradient: &mut EngineGradient| {
            gradient.clear();
            let mut workspace = workspaces.lock().expect("no panic").pop().unwrap_or_default();
            let mut report = TileReport::default();
            for tile in tiles {
                let x = &x[tile.start * features..tile.end * features];
                report.add(&plan.run(x, tile.start, &mut workspace, gradient)?);
            }
            workspaces.lock().expect("no panic").push(workspace);
            Ok(report)
        };
        let sum = self.pool.install(|| tree.sum(part, &mut self.lanes[..lanes], &leaf));
        match self.workers.is_alone() {
            true => sum,
            false => self.sum_over_ranks(sum.map(|sum| (lanes > 0).then_some(sum))),
        }
    }

    /// Adds what other ranks have: the rest of the tree. What goes wrong on one of them goes wrong on all.
    fn sum_over_ranks(&mut self, own: Result<Option<TileReport>>) -> Result<TileReport> {
        let (workers, gradient) = (&self.workers, &mut self.lanes[0]);
        let report = sum_of_reports(workers, own.clone())?;
        if own == Ok(None) {
            // What changes no bit of what it is added to.
            gradient.fill(-0.0);
        }
        self.message.clear();
        gradient.parts().into_iter().for_each(|part| self.message.extend_from_slice(part));
        workers.sum(&mut self.message);
        let mut rest = &self.message[..];
        for part in gradient.parts_mut() {
            let (sums, after) = rest.split_at(part.len());
            part.copy_from_slice(sums);
            rest = after;
        }
        Ok(report)
    }
}

impl TrainingStep<ArEbm> for ArStep {
    fn gradient(
        &mut self,
        model: &ArEbm,
        batch: &Batch,
        streams: &Streams,
        step: u64,
    ) -> Result<(GradientsParams, StepReport)> {
        let settings = self.settings.at(step);
        let tiles = self.run(&settings, model, batch, streams, step)?;
        let with_energy = settings.criterion != Method::QOnly;
        let engine = self.engine.as_ref().expect("a step was made");
        let layers = self.lanes[0].layers(engine, model, with_energy);
        let gradient_norm = layers.iter().map(|layer| layer.squared_norm()).sum::<f64>().sqrt();
        if !gradient_norm.is_finite() {
            return Err(Error::GradientNotFinite { step });
        }
        let device = model.proposal.first.weight.val().device().inner();
        let mut params = GradientsParams::new();
        layers.into_iter().for_each(|layer| layer.register(&mut params, &device));
        let report = StepReport {
            loss: tiles.proposal_nll + tiles.ebm_loss,
            gradient_norm,
            effective_sample_size: with_energy.then_some(tiles.effective_sample_size),
            proposal_nll: Some(tiles.proposal_nll),
            warming_up: self.settings.warms_up(step),
        };
        Ok((params, report))
    }

    fn uses_graph(&self) -> bool {
        false
    }
}

/// A binary tree of a fixed number of leaves, among which the tiles of a batch are divided.
///
/// Every inner node adds what its two halves have summed to. So the order of all additions is that of the tree, whichever thread
/// does them and when, and an aligned part of the tree can be summed by itself.
struct Tree {
    tiles: Vec<Range<usize>>,
    /// A power of two.
    leaves: usize,
}

impl Tree {
    /// The tiles of some leaves.
    fn tiles_of(&self, leaves: &Range<usize>) -> &[Range<usize>] {
        let [start, end] = [leaves.start, leaves.end].map(|at| at * self.tiles.len() / self.leaves);
        &self.tiles[start..end]
    }

    /// How many of some leaves have a tile at all.
    fn lanes(&self, leaves: &Range<usize>) -> usize {
        self.tiles_of(leaves).len().min(leaves.len())
    }

    /// The sum over some leaves, which have a lane each where they have a tile; its gradient is left in the first lane.
    fn sum(
        &self,
        leaves: Range<usize>,
        lanes: &mut [EngineGradient],
        leaf: &(impl Fn(&[Range<usize>], &mut EngineGradient) -> Result<TileReport> + Sync),
    ) -> Result<TileReport> {
        let tiles = self.tiles_of(&leaves);
        match (lanes, leaves.len()) {
            ([], _) => Ok(TileReport::default()),
            ([lane], 1) => leaf(tiles, lane),
            (lanes, number) => {
                let middle = leaves.start + number / 2;
                let (first, second) = (leaves.start..middle, middle..leaves.end);
                let (left, right) = lanes.split_at_mut(self.lanes(&first));
                let (report, other) =
                    rayon::join(|| self.sum(first, left, leaf), || self.sum(second, right, leaf));
                let (mut report, other) = (report?, other?);
                match (left.first_mut(), right.first()) {
                    (Some(left), Some(right)) => {
                        left.add(right);
                        report.add(&other);
                    }
                    // The first of these lanes is on the right.
                    (None, _) => report = other,
                    (Some(_), None) => {}
                }
                Ok(report)
            }
        }
    }
}

/// The sum of the reports of all ranks, none of those without a tile; or the error of the first that has one.
fn sum_of_reports(workers: &Workers, own: Result<Option<TileReport>>) -> Result<TileReport> {
    const NOTHING: u8 = 0;
    const REPORT: u8 = 1;
    const RECOVERABLE: u8 = 2;
    const ERROR: u8 = 3;
    let message = match &own {
        Ok(None) => vec![NOTHING],
        Ok(Some(report)) => [vec![REPORT], report.to_bytes()].concat(),
        Err(error) => {
            let kind = if error.is_recoverable() { RECOVERABLE } else { ERROR };
            [vec![kind], error.to_string().into_bytes()].concat()
        }
    };
    let all = workers.gather(message);
    let failed = all.iter().position(|message| message[0] >= RECOVERABLE);
    if let Some(rank) = failed {
        let reason = String::from_utf8_lossy(&all[rank][1..]).into_owned();
        let other = Error::OnRank { rank, reason, recoverable: all[rank][0] == RECOVERABLE };
        return Err(own.err().filter(|_| workers.rank() == rank).unwrap_or(other));
    }
    let report =
        |message: &Vec<u8>| (message[0] == REPORT).then(|| TileReport::from_bytes(&message[1..]));
    let mut reports: Vec<Option<TileReport>> = all.iter().map(report).collect();
    while reports.len() > 1 {
        let pair = |pair: &[Option<TileReport>]| match (pair[0], pair[1]) {
            (Some(mut left), Some(right)) => {
                left.add(&right);
                Some(left)
            }
            (left, right) => left.or(right),
        };
        reports = reports.chunks_exact(2).map(pair).collect();
    }
    Ok(reports[0].expect("a batch has a tile"))
}

/// Leaves of the tree in which gradients are summed.
fn leaves(settings: &ArStepConfig) -> usize {
    settings.lanes.next_power_of_two()
}

/// Cuts a batch into tiles of nearly equal size: as few as the tile's rows allow, but enough for a few threads.
fn tiles(batch: usize, settings: &ArStepConfig, normalisation: Normalisation) -> Vec<Range<usize>> {
    let observations = settings.tile_observations(normalisation);
    let number = batch.div_ceil(observations).max(4.min(batch));
    (0..number).map(|tile| tile * batch / number..(tile + 1) * batch / number).collect()
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor, TensorData};

    use super::*;
    use crate::ar::{ArEbmConfig, Conditioner};

    #[test]
    fn a_step_keeps_nothing_of_the_model_before() {
        let device = Device::flex();
        let streams = Streams::new(4);
        let model = |features: usize, conditioner: Conditioner, number: u64| {
            let config = ArEbmConfig { conditioner, ..ArEbmConfig::new(features) };
            config.init(&device, &mut streams.stream("init", number, 0)).unwrap()
        };
        let gradient = |step: &mut ArStep, model: &ArEbm| {
            let features = model.shape.features;
            let mut rng = streams.stream("rows", 0, 0);
            let rows = (0..20 * features).map(|_| rng.normal() as f32).collect();
            let rows = Tensor::from_data(TensorData::new(rows, [20, features]), &device);
            let settings = step.settings.clone();
            step.run(&settings, model, &Batch::from(rows), &streams, 0).unwrap();
            step.lanes[0].clone()
        };
        let settings = ArStepConfig { num_negatives: 3, ..ArStepConfig::new(Method::Rnce) };
        let fresh = || ArStep::new(&settings, 1).unwrap();
        let mut used = fresh();
        let mut before = None;
        for (features, conditioner, number) in [
            (3, Conditioner::Masked, 0),
            (3, Conditioner::Masked, 1),
            (3, Conditioner::Stagewise, 1),
            (3, Conditioner::Stagewise, 2),
            (2, Conditioner::Stagewise, 2),
        ] {
            let model = model(features, conditioner, number);
            let found = gradient(&mut used, &model);
            assert_eq!(found, gradient(&mut fresh(), &model));
            assert_ne!(Some(&found), before.as_ref());
            before = Some(found);
        }
    }
}
