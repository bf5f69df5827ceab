//! The autoregressive EBM on a device: the training step in tensors alone, and the networks of an evaluation.
//!
//! A device is fast as long as nobody waits for it. So what a step draws, masks, weighs and resamples stays there, and the CPU reads
//! one small tensor at the end: losses, effective sample size and the norm of the gradient.

mod base;
mod bases;
mod check;
mod global;
mod local;
mod masks;
mod networks;
mod placed;
mod plain;
mod reads;
mod spline;
mod step;

pub(super) use networks::{DeviceTrunk, OnDevice};
pub use placed::PlacedStep;
pub use plain::PlainStep;
pub(super) use spline::Splines;
pub use step::DeviceStep;
