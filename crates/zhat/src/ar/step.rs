//! The training step on the CPU: tiles of observations on threads, with the same bits for any number of them.
//!
//! The criteria are means over observations, so a batch is cut into tiles whose activations stay in the cache. A fixed
//! number of lanes each sum their tiles in order, and the lanes are added in order. Every observation has its own
//! random streams, so neither threads nor tiles change what is drawn.

use std::sync::Mutex;

use burn::optim::GradientsParams;
use rayon::prelude::*;

use super::criterion::ArStepConfig;
use super::engine::{Engine, EngineGradient};
use super::evaluate::pool;
use super::model::ArEbm;
use super::tile::{Plan, TileReport, Workspace};
use crate::criterion::Method;
use crate::error::{Error, Result};
use crate::rng::Streams;
use crate::train::{Batch, StepReport, TrainingStep};

/// Threads and memory of training steps.
#[derive(Debug)]
pub struct ArStep {
    settings: ArStepConfig,
    pool: rayon::ThreadPool,
    workspaces: Mutex<Vec<Workspace>>,
    lanes: Vec<EngineGradient>,
}

impl ArStep {
    /// A step on a number of threads (0: as many as there are cores).
    pub fn new(settings: &ArStepConfig, threads: usize) -> Result<Self> {
        settings.validate()?;
        Ok(Self {
            settings: settings.clone(),
            pool: pool(threads)?,
            workspaces: Mutex::new(Vec::new()),
            lanes: Vec::new(),
        })
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
        let engine = Engine::new(model);
        let shares = batch.shares();
        let plan = Plan { engine: &engine, config: settings, streams, step, shares: &shares };
        let tiles = tiles(observations, settings);
        let lanes = tiles.len().min(settings.lanes);
        if self.lanes.len() != lanes {
            self.lanes = vec![engine.zero_gradient(); lanes];
        }
        let workspaces = &self.workspaces;
        let lane = |(lane, gradient): (usize, &mut EngineGradient)| -> Result<TileReport> {
            gradient.clear();
            let mut workspace = workspaces.lock().expect("no panic").pop().unwrap_or_default();
            let mut report = TileReport::default();
            for tile in &tiles[lane * tiles.len() / lanes..(lane + 1) * tiles.len() / lanes] {
                let x = &x[tile.start * features..tile.end * features];
                report.add(&plan.run(x, tile.start, &mut workspace, gradient)?);
            }
            workspaces.lock().expect("no panic").push(workspace);
            Ok(report)
        };
        // One task for each lane: whichever thread is free takes the next.
        let reports: Vec<Result<TileReport>> = self
            .pool
            .install(|| self.lanes.par_iter_mut().with_max_len(1).enumerate().map(lane).collect());
        let mut total = TileReport::default();
        for report in reports {
            total.add(&report?);
        }
        let (first, rest) = self.lanes.split_first_mut().expect("at least one lane");
        rest.iter().for_each(|lane| first.add(lane));
        Ok(total)
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
        let layers = self.lanes[0].layers(model, with_energy);
        let gradient_norm = layers.iter().map(|layer| layer.squared_norm()).sum::<f64>().sqrt();
        if !gradient_norm.is_finite() {
            return Err(Error::GradientNotFinite { part: "model", step: step as usize });
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
}

/// Cuts a batch into tiles of nearly equal size: as few as the tile's rows allow, but enough for a few threads.
fn tiles(batch: usize, settings: &ArStepConfig) -> Vec<std::ops::Range<usize>> {
    let number = batch.div_ceil(settings.tile_observations()).max(4.min(batch));
    (0..number).map(|tile| tile * batch / number..(tile + 1) * batch / number).collect()
}
