//! From a table to a density: what a practitioner does with zhat.
//!
//! Data in ([`data`]), a fit that can be stopped and resumed ([`fit`]), what is on disk ([`run`]), a page about it
//! ([`report`]), what any fitted density can do in memory ([`density`]) and what it is for ([`fitted`]), and criteria side by
//! side ([`compare`]). The mathematics is in the crate `zhat`.

#![warn(missing_docs)]

pub mod compare;
pub mod data;
pub mod density;
pub mod error;
mod features;
pub mod fit;
pub mod fitted;
mod memory;
mod prepare;
pub mod report;
pub mod run;

pub use error::{Result, TableError};
pub use prepare::{Prepared, prepare, prepare_frame, prepare_watched};
