//! What is on disk: the run directory, its checkpoints, its metrics and the fitted model.

mod checkpoint;
mod directory;
mod metrics;
mod model_file;
mod tensorboard;

pub use checkpoint::Checkpoints;
pub(crate) use directory::read_json;
pub use directory::{RunDirectory, write_atomically};
pub use metrics::Metrics;
pub use model_file::{FORMAT, ModelCard, load_model, save_model};
pub use tensorboard::EventFile;
