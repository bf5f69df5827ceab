//! The autoregressive EBM: its gradients against plain autodiff, its estimates against quadrature, its tails, its training.

mod atoms;
mod beside;
mod cells;
mod device;
mod evaluation;
mod given;
mod gradient;
mod grid;
mod kinds;
mod lines;
mod local;
mod missing;
mod ranks;
mod small_model;
mod tails;
mod training;
mod two_sided;
