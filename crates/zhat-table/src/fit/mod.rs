//! Fitting the autoregressive EBM to a table: configuration, training with checkpoints, evaluation.

mod beside;
mod clock;
mod config;
mod evaluation;
mod events;
mod finish;
mod folds;
mod for_table;
mod known;
mod log;
mod memory;
mod recalibration;
mod rows;
mod schedule;
mod session;
mod settings;
mod start;
mod timing;
mod validation;

pub use clock::{Clock, Limit, Time};
pub use config::{DataConfig, FitConfig, ValidationConfig};
pub use evaluation::{Likelihood, evaluate, mean_and_error, nats};
pub(crate) use evaluation::{evaluate_rows, log_z_of, number_or_null, weighted_mean_and_error};
pub use events::{Event, FitReport, MetricsRecord};
pub use folds::{CrossValidation, CurvePoint};
pub use for_table::{Columns, Length};
pub use session::Session;
pub use settings::{SETTINGS, Setting};
pub use start::Start;
pub use timing::{StepSeconds, StepTimer};
pub use validation::BaseAnswers;
