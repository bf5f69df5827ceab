//! The propositions and the experiments of the paper, on zhat's public interface.
//!
//! Each of them doubles as an example of how the library is used.

#![warn(missing_docs)]

pub mod experiment;
pub mod presets;
pub mod theory;
