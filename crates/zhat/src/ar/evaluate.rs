//! Evaluation without a graph: a trained model on a number of threads, and the log-densities of rows.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use rayon::prelude::*;

use super::config::{EnergyForm, Normalisation};
use super::defence::Defence;
use super::device::OnDevice;
use super::engine::Engine;
use super::forward::{Conditioning, Forward, Pass};
use super::guide::Guide;
use super::model::ArEbm;
use super::quadrature::Rule;
use crate::error::{Error, Result};
use crate::ranks::Workers;
use crate::rng::Stream;
use crate::watch::Watch;

/// Rows that go through the networks together: 42 times the six rows of the inner loop, half a megabyte of activations.
pub(super) const TILE: usize = 252;

/// Rows on which the error of the quadrature is measured, at most.
const ROWS_FOR_ERROR: usize = 500;

/// A trained model, ready to be evaluated on a number of threads. Results do not depend on their number.
#[derive(Debug)]
pub struct Evaluator {
    pub(super) engine: Engine,
    pub(super) workers: Workers,
    pub(super) pool: rayon::ThreadPool,
    pub(super) watch: Arc<Watch>,
    /// Whether the proposal is the model, as where it alone was trained.
    pub(super) is_proposal: bool,
    /// How finely the normalisers of local factors are integrated.
    pub(super) rule: Rule,
    /// The model on a device beside the CPU, where there is one.
    on_device: Option<OnDevice>,
    memory: Mutex<Vec<Memory>>,
    /// What looks ahead to given features, once it is needed; none where nothing can.
    guide: OnceLock<Option<Guide>>,
}

/// What a worker keeps.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub forward: Forward,
    pub conditioning: Conditioning,
    pub pass: Pass,
}

/// Log-densities of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct RowScores {
    /// `log q(x)` of every row. A class has a probability in it, and a number in cells the mass of its cell; the same below.
    pub log_q: Vec<f64>,
    /// `log p~(x)` of every row.
    pub log_p_tilde: Vec<f64>,
}

impl Evaluator {
    /// Reads the parameters of a model; 0 threads means as many as there are cores. Several ranks share rows and particles. Where there
    /// is a device, the blocks of both networks run there, and what is between them here.
    pub fn new(model: &ArEbm, workers: impl Into<Workers>) -> Result<Self> {
        let workers = workers.into();
        let mut engine = Engine::new(model);
        let on_device = workers.device().map(|device| OnDevice::new(model, device));
        if let Some(on_device) = &on_device {
            let (members, energy) = on_device.trunks();
            for (member, trunk) in engine.members.iter_mut().zip(members) {
                member.trunk.device = Some(trunk);
            }
            engine.energy.trunk.device = Some(energy);
        }
        Ok(Self {
            engine,
            pool: pool(workers.threads())?,
            workers,
            watch: Arc::default(),
            is_proposal: false,
            rule: Rule::Fine,
            on_device,
            memory: Mutex::new(Vec::new()),
            guide: OnceLock::new(),
        })
    }

    /// The proposal in the place of the model: `log p~` is `log q`, and the energy network is never run.
    pub fn of_proposal(model: &ArEbm, workers: impl Into<Workers>) -> Result<Self> {
        Ok(Self { is_proposal: true, ..Self::new(model, workers)? })
    }

    /// Lets long work be watched and stopped; it counts rows times stages.
    pub fn with_watch(mut self, watch: Arc<Watch>) -> Self {
        self.watch = watch;
        self
    }

    /// Normalisers of local factors by a coarser rule, for where many are wanted soon.
    pub fn coarse(mut self) -> Self {
        self.rule = Rule::Coarse;
        self
    }

    /// Without a look-ahead to what is given: particles are drawn by the model's own proposal alone. It is what others are measured against.
    pub fn blind(mut self) -> Self {
        self.guide = OnceLock::from(None);
        self
    }

    /// What looks ahead to given features, fitted when it is first asked for.
    pub(super) fn guide(&self) -> Option<&Guide> {
        // In a thread and with a pool of its own: a thread of this pool would take up other rows while it waits, and ask for it again.
        let fit = || -> Result<Option<Guide>> {
            let mut engine = self.engine.clone();
            engine.members.iter_mut().for_each(|member| member.trunk.device = None);
            engine.energy.trunk.device = None;
            let alone = Self {
                engine,
                workers: Workers::from(self.num_threads()),
                pool: pool(self.num_threads())?,
                watch: Arc::default(),
                is_proposal: self.is_proposal,
                rule: self.rule,
                on_device: None,
                memory: Mutex::new(Vec::new()),
                guide: OnceLock::from(None),
            };
            alone.pool.install(|| Guide::of_model(&alone))
        };
        let fitted = || thread::scope(|scope| scope.spawn(fit).join().expect("no panic"));
        // What cannot be fitted cannot look ahead: that is no reason not to draw.
        self.guide.get_or_init(|| fitted().unwrap_or(None)).as_ref()
    }

    /// Whether `log p~` is the log of a density: the proposal's, or that of a model of which every factor is normalised.
    pub fn is_normalised(&self) -> bool {
        self.is_proposal || self.engine.config.normalisation == Normalisation::Local
    }

    /// Whether draws of a factor are exact: it has a base, and a bound on what the model makes of it.
    pub(super) fn draws_exactly(&self) -> bool {
        let tilted = self.engine.config.energy_form == EnergyForm::Tilted;
        self.is_proposal || self.is_normalised() && tilted
    }

    /// Whether rows with holes can be scored, and what is missing drawn: it takes exact draws of every factor.
    pub fn scores_holes(&self) -> bool {
        self.draws_exactly()
    }

    /// Number of threads.
    pub fn num_threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Who does the work.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// The threads themselves, for what goes with an evaluation.
    pub fn pool(&self) -> &rayon::ThreadPool {
        &self.pool
    }

    /// How many of the first features are given: what is said is of the others, given them.
    pub fn given(&self) -> usize {
        self.engine.config.given
    }

    /// Number of features of a row.
    pub fn features(&self) -> usize {
        self.engine.config.features
    }

    /// `log q(x)` and `log p~(x)` of every row, without dropout; zeros for those that a watch that is stopped has left no time for.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn score(&self, x: &[f32]) -> RowScores {
        self.score_with(x, Defence::default())
    }

    /// How well scores are known where they hold integrals over a feature, in nats: the mean absolute difference of the scores
    /// of some of the rows by the fine and by the coarse rule, which is more than the fine one's own error. 0 where nothing is
    /// integrated.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn quadrature_error(&self, x: &[f32]) -> f64 {
        let (features, rows) = (self.features(), x.len() / self.features());
        if self.is_proposal || !self.is_normalised() || rows == 0 {
            return 0.0;
        }
        let number = rows.min(ROWS_FOR_ERROR);
        let some: Vec<f32> = (0..number)
            .flat_map(|row| &x[row * rows / number * features..][..features])
            .copied()
            .collect();
        let [fine, coarse] = [Rule::Fine, Rule::Coarse]
            .map(|rule| self.score_by(&some, Defence::default(), rule).log_p_tilde);
        fine.iter().zip(&coarse).map(|(fine, coarse)| (fine - coarse).abs()).sum::<f64>()
            / number as f64
    }

    /// The same with a defensive part in `log q`, as SMC's particles are drawn from.
    pub(super) fn score_with(&self, x: &[f32], defence: Defence) -> RowScores {
        self.score_by(x, defence, self.rule)
    }

    fn score_by(&self, x: &[f32], defence: Defence, rule: Rule) -> RowScores {
        let features = self.engine.config.features;
        assert!(x.len().is_multiple_of(features), "whole rows of {features} features");
        if let Some(device) = &self.on_device
            && self.is_proposal
            && defence.is_none()
            && device.has_log_q()
        {
            let log_q = device.log_q(x);
            self.watch.advance(x.len());
            return RowScores { log_p_tilde: log_q.clone(), log_q };
        }
        let own = self.part_of_rows(x.len() / features, TILE);
        let tiles: Vec<RowScores> = self.pool.install(|| {
            x[own.start * features..own.end * features]
                .par_chunks(TILE * features)
                .map(|x| {
                    self.with_memory(|memory| {
                        let rows = x.len() / features;
                        let mut scores =
                            RowScores { log_q: vec![0.0; rows], log_p_tilde: vec![0.0; rows] };
                        if self.watch.is_stopped() {
                            return scores;
                        }
                        memory.forward.begin(x, features, 1, true, defence);
                        self.see_given(memory);
                        for stage in self.engine.config.given..features {
                            self.advance_by(memory, stage, &mut [], rule);
                            add(&mut scores.log_q, &memory.pass.log_draw);
                            add(&mut scores.log_p_tilde, &memory.pass.log_p);
                        }
                        self.watch.advance(rows * features);
                        scores
                    })
                })
                .collect()
        });
        let of_all = |part: fn(&RowScores) -> &Vec<f64>| {
            self.workers.concat(tiles.iter().flat_map(part).copied().collect())
        };
        let scores = RowScores {
            log_q: of_all(|tile| &tile.log_q),
            log_p_tilde: of_all(|tile| &tile.log_p_tilde),
        };
        self.workers.is_stopped(&self.watch);
        scores
    }

    /// The rows that this rank works on, in whole tiles of so many.
    pub(super) fn part_of_rows(&self, rows: usize, tile: usize) -> Range<usize> {
        let tiles = self.workers.part_of(rows.div_ceil(tile));
        tiles.start * tile..(tiles.end * tile).min(rows)
    }

    /// Where one pass of the conditioner serves all stages, it is made at the first, which may be given.
    pub(super) fn see_given(&self, Memory { forward, conditioning, pass }: &mut Memory) {
        if self.given() > 0 && forward.is_one_pass(&self.engine.config) {
            forward.propose(&self.engine, 0, None, conditioning, pass);
        }
    }

    /// The defensive part of draws in evaluation; a proposal that is the model covers itself.
    pub(super) fn defence(&self) -> Defence {
        if self.is_proposal { Defence::default() } else { Defence::EVALUATION }
    }

    /// One stage: contexts, draws, `log q` and `log p~`, which is normalised where every factor is. A number in cells is at the centre
    /// of its cell from here on, and both are of the cell's mass.
    pub(super) fn advance(&self, memory: &mut Memory, stage: usize, streams: &mut [Stream]) {
        self.advance_by(memory, stage, streams, self.rule);
    }

    fn advance_by(&self, memory: &mut Memory, stage: usize, streams: &mut [Stream], rule: Rule) {
        let Memory { forward, conditioning, pass } = &mut *memory;
        forward.propose(&self.engine, stage, None, conditioning, pass);
        forward.draw(&self.engine, stage, streams, conditioning, pass);
        self.weigh_by(memory, stage, rule);
    }

    /// One stage whose draws are looked over before they are weighed: `choose` is given every row with the proposal's draw in its place, and may
    /// put another there.
    pub(super) fn advance_choosing(
        &self,
        memory: &mut Memory,
        stage: usize,
        rng: &mut Stream,
        mut choose: impl FnMut(&mut [f32], &mut Stream),
    ) {
        let Memory { forward, conditioning, pass } = &mut *memory;
        let (engine, features) = (&self.engine, self.features());
        forward.propose(engine, stage, None, conditioning, pass);
        forward.draw(engine, stage, std::slice::from_mut(rng), conditioning, pass);
        forward.rows.chunks_exact_mut(features).for_each(|row| choose(row, rng));
        forward.keep();
        forward.draw(engine, stage, &mut [], conditioning, pass);
        self.weigh_by(memory, stage, self.rule);
    }

    /// `log p~` of the features that are there, by `log q`.
    fn weigh_by(&self, memory: &mut Memory, stage: usize, rule: Rule) {
        let Memory { forward, conditioning, pass } = memory;
        let engine = &self.engine;
        let (kind, tilted) = (engine.config.kind(stage), !self.is_proposal);
        if kind.is_cells() {
            forward.weigh_cells(engine, stage, rule, tilted, conditioning, pass);
        } else if tilted {
            forward.weigh(engine, stage, None, conditioning, pass);
        } else {
            pass.log_p.clone_from(&pass.log_q);
        }
        if tilted && self.is_normalised() && !kind.is_categorical() {
            forward.normalise(engine, stage, rule, conditioning, pass);
        }
        forward.forget_sharing();
    }

    /// The next feature of every row drawn from a normalised factor itself, by rejection: no weight is left.
    pub(super) fn draw_exactly(&self, memory: &mut Memory, stage: usize, rng: &mut Stream) {
        let Memory { forward, conditioning, pass } = memory;
        let engine = &self.engine;
        forward.propose(engine, stage, None, conditioning, pass);
        let kind = engine.config.kind(stage);
        let tilted = !self.is_proposal && !kind.is_categorical();
        if tilted {
            forward.contexts(engine, stage, conditioning, pass);
        }
        forward.draw_by_rejection(engine, stage, tilted, rng, conditioning, pass);
        forward.settle(kind, stage, pass);
        forward.forget_sharing();
    }

    /// Lends the memory of a worker.
    pub(super) fn with_memory<T>(&self, work: impl FnOnce(&mut Memory) -> T) -> T {
        let mut memory = self.memory.lock().expect("no panic").pop().unwrap_or_default();
        let result = work(&mut memory);
        self.memory.lock().expect("no panic").push(memory);
        result
    }
}

fn add(to: &mut [f64], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to += f64::from(from));
}

/// Threads to work on; 0 means as many as there are cores.
pub(super) fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::setting("threads", threads, format!("startable ({error})")))
}
