//! The autoregressive EBM: networks, proposal, training step, sampling and evaluation.

mod atoms;
mod base;
mod beside;
mod bridge;
mod cells;
mod classes;
mod coefficients;
mod config;
mod criterion;
mod cycle;
mod defence;
mod device;
mod dropout;
mod elementwise;
mod engine;
mod evaluate;
mod forward;
mod guide;
mod head;
mod kind;
mod ladder;
mod lines;
mod masked;
mod masses;
mod missing;
mod mixture;
mod model;
mod network;
mod normalise;
mod panels;
mod products;
mod quadrature;
mod recalibrate;
mod rejection;
mod sample;
mod smc;
mod spline;
mod step;
mod tile;
mod trunk;
mod two_sided;
mod workload;

pub use cells::CellScores;
pub use config::{
    Activation, ArEbmConfig, Conditioner, EnergyForm, HeadForm, NetworkSize, Normalisation,
    ScaleForm,
};
pub use criterion::{ArStepConfig, ContextFlow, ProposalTarget};
pub use cycle::{Cycle, Turn};
pub use device::{DeviceStep, PlacedStep, PlainStep};
pub use evaluate::{Evaluator, RowScores};
pub use kind::FeatureKind;
pub use ladder::{Ladder, Tail};
pub use missing::ObservedScores;
pub use model::ArEbm;
pub use network::{ResidualBlock, ResidualNet};
pub use recalibrate::Recalibrated;
pub use smc::SmcEstimate;
pub use step::ArStep;
pub use workload::products_alone;
