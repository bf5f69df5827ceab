//! The mathematics of the library, tested as mathematics: invariance, gradients, bias, degenerate cases, fixed values.

mod bias;
mod degenerate;
mod gradients;
mod invariance;
mod resume;
mod support;
mod training;
mod values;
mod wasserstein;
