//! Estimation of unnormalised probability models: `p_theta(x) = p~_theta(x) / Z_theta` with `Z` unknown.
//!
//! zhat implements *On the connection between Noise-Contrastive Estimation and Contrastive Divergence* (Olmin, Lindqvist,
//! Svensson, Lindsten, AISTATS 2024). Its one idea: every method is a way to make weighted candidates ([`kernel`]), and
//! every gradient is `-grad log p~(x_0) + sum_j w_j grad log p~(x_j)` ([`criterion`]). Equations are cited by their
//! labels in the paper's source.
//!
//! This crate is the mathematics and the training step: it touches no files and prints nothing.

#![warn(missing_docs)]

pub mod ar;
pub mod chain;
pub mod criterion;
pub mod device;
pub mod diagnostics;
pub mod error;
pub mod evaluate;
pub mod gaussian_mixture;
pub mod host;
pub mod kernel;
mod linalg;
pub mod model;
mod naming;
mod normal;
mod pareto;
pub mod proposal;
pub mod ranks;
pub mod rng;
pub mod sampler;
mod simd;
pub mod smc;
pub mod student;
pub mod testing;
pub mod train;
pub mod watch;
pub mod weights;

pub use burn;
pub use error::{Error, Result};
pub use normal::{log_normal_mass, normal_quantile};
