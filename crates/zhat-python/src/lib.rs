//! The Python module `zhat._zhat`: what `python/zhat` calls, and nothing that a user sees.
//!
//! Long work runs on a thread of its own while Python's looks for signals, so that Ctrl-C stops it; a panic is an exception.

#![cfg(feature = "python")]

mod configuration;
mod contrast;
mod errors;
mod frame;
mod run;
mod work;

use std::ffi::OsString;

use pyo3::prelude::*;

/// The allocator of the program, so that a fit takes as long as there; only what Rust allocates comes from it.
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
mod _zhat {
    #[pymodule_export]
    use super::contrast::{bridge_sampling, log_z_of_estimates, methods, systematic, weights};
    #[pymodule_export]
    use super::program;
    #[pymodule_export]
    use super::run::Run;
    #[pymodule_export]
    use super::settings;
}

/// The program `zhat` with these arguments, the first of which is its name; gives its exit code.
#[pyfunction]
fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| zhat_cli::run(arguments))
}

/// Names of all settings of a fit.
#[pyfunction]
fn settings() -> Vec<&'static str> {
    zhat_table::fit::SETTINGS.iter().map(|setting| setting.name).collect()
}
