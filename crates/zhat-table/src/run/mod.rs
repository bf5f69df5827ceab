//! What is on disk: the run directory, its checkpoints, its metrics and the fitted model.

mod checkpoint;
mod directory;
mod lock;
mod metrics;
mod model_file;
mod seal;
mod shared;
mod tensorboard;

pub use checkpoint::Checkpoints;
pub(crate) use directory::read_sealed;
pub use directory::{RunDirectory, write_atomically};
pub use lock::RunLock;
pub use metrics::Metrics;
pub(crate) use model_file::WITH_DIGESTS;
pub use model_file::{FORMAT, Integrity, ModelCard, load_model, save_model};
pub(crate) use seal::{Seal, check as check_seal, sealed, sha256};
pub use shared::of_first;
pub use tensorboard::EventFile;
