//! Fitting the autoregressive EBM to a table: configuration, training with checkpoints, evaluation.

mod config;
mod evaluation;
mod events;
mod guard;
mod session;

pub use config::{
    Criterion, DataConfig, EvaluationConfig, FitConfig, ModelConfig, SplitKind, TrainingConfig,
};
pub use evaluation::{Likelihood, evaluate};
pub use events::{Event, FitReport, MetricsRecord, Observer};
pub use session::Session;
