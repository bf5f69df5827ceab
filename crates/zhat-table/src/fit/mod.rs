//! Fitting the autoregressive EBM to a table: configuration, training with checkpoints, evaluation.

mod config;
mod evaluation;
mod events;
mod guard;
mod session;
mod timing;

pub use config::{DataConfig, EvaluationConfig, FitConfig, ModelConfig, SplitKind, TrainingConfig};
pub(crate) use evaluation::mean_and_error;
pub use evaluation::{Likelihood, evaluate, evaluate_with};
pub use events::{Event, FitReport, MetricsRecord, Observer};
pub use session::Session;
pub use timing::{StepSeconds, StepTimer};
