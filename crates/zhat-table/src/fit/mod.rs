//! Fitting the autoregressive EBM to a table: configuration, training with checkpoints, evaluation.

mod config;
mod evaluation;
mod events;
mod session;
mod timing;

pub use config::{DataConfig, FitConfig, ValidationConfig};
pub(crate) use evaluation::log_z_of;
pub use evaluation::{Likelihood, evaluate, mean_and_error};
pub use events::{Event, FitReport, MetricsRecord};
pub use session::Session;
pub use timing::{StepSeconds, StepTimer};
