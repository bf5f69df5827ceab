//! BSDS300 in a program that was built without HDF5, which takes as long to compile as all of the program.

use std::path::Path;

use super::{Benchmark, Parts, Steps, source_file};
use crate::data::error::{Error, Result};

pub(super) fn prepare(source: &Path, _: &Steps) -> Result<Parts> {
    let path = source_file(source, &["BSDS300.hdf5", "BSDS300.h5"], Benchmark::Bsds300)?;
    let advice = "Build it with the feature hdf5: `cargo run --release --features hdf5 -- data prepare bsds300 ...`.";
    Err(Error::refused(&path, "this zhat was built without HDF5", advice))
}
