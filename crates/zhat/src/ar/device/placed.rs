//! The training step where the work is done: on the CPU's threads and ranks, or on a device.

use burn::optim::GradientsParams;

use super::step::DeviceStep;
use crate::ar::criterion::ArStepConfig;
use crate::ar::model::ArEbm;
use crate::ar::step::ArStep;
use crate::error::Result;
use crate::ranks::Workers;
use crate::rng::Streams;
use crate::train::{Batch, StepReport, TrainingStep};

/// Either step; both have the same settings, and neither keeps anything from one batch to the next.
#[derive(Debug)]
pub enum PlacedStep {
    /// On the CPU.
    Cpu(Box<ArStep>),
    /// On a device, which has to be that of the model.
    Device(Box<DeviceStep>),
}

impl PlacedStep {
    /// A step by these workers.
    pub fn new(settings: &ArStepConfig, workers: impl Into<Workers>) -> Result<Self> {
        let workers = workers.into();
        Ok(match workers.device() {
            None => Self::Cpu(Box::new(ArStep::new(settings, workers)?)),
            Some(_) => Self::Device(Box::new(DeviceStep::new(settings)?)),
        })
    }

    /// Threads of the CPU at work.
    pub fn num_threads(&self) -> usize {
        match self {
            Self::Cpu(step) => step.num_threads(),
            Self::Device(_) => 1,
        }
    }

    /// How often the CPU has waited for a device; nothing where there is none.
    pub fn reads(&self) -> Option<u64> {
        match self {
            Self::Cpu(_) => None,
            Self::Device(step) => Some(step.reads()),
        }
    }
}

impl TrainingStep<ArEbm> for PlacedStep {
    fn gradient(
        &mut self,
        model: &ArEbm,
        batch: &Batch,
        streams: &Streams,
        step: u64,
    ) -> Result<(GradientsParams, StepReport)> {
        match self {
            Self::Cpu(on) => on.gradient(model, batch, streams, step),
            Self::Device(on) => on.gradient(model, batch, streams, step),
        }
    }

    fn uses_graph(&self) -> bool {
        match self {
            Self::Cpu(on) => on.uses_graph(),
            Self::Device(on) => on.uses_graph(),
        }
    }
}
