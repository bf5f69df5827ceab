//! The training core: what makes a gradient ([`TrainingStep`]) and everything around it ([`Trainer`]).

mod adam;
mod average;
mod config;
mod data;
mod guard;
mod optimiser;
mod scatter;
mod schedule;
mod state;
mod step;
mod trainer;
mod validation;

pub use config::TrainingConfig;
pub use data::{DataSource, Order, Rows};
pub use guard::Guard;
pub use optimiser::OptimiserConfig;
pub(crate) use optimiser::gradient_norm;
pub use scatter::Scatter;
pub use schedule::Schedule;
pub(crate) use state::broken;
pub use state::{Best, Parts, Progress, TrainerState};
pub use step::{Batch, CriterionStep, StepReport, TrainingStep};
pub use trainer::{Ended, Event, Observer, Trainer};
pub use validation::{
    Answer, Difference, HeldOut, LEAST_LEAD, Validated, Validation, effective_rows,
};
