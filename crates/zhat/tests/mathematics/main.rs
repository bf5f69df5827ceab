//! The mathematics of the library, tested as mathematics: invariance, gradients, bias, degenerate cases, fixed values.

mod autoregressive;
mod bias;
mod degenerate;
mod gradients;
mod invariance;
mod resume;
#[path = "../ar/small_model.rs"]
mod small_model;
mod support;
mod training;
mod values;
mod wasserstein;
