//! The training loop for small models: data, criterion, optimiser, schedule and an observer.

mod data;
mod optimiser;
mod schedule;
mod trainer;

pub use data::{Batches, DataSource};
pub use optimiser::OptimiserConfig;
pub use schedule::Schedule;
pub use trainer::{Observer, StepReport, Trainer, TrainingConfig};
