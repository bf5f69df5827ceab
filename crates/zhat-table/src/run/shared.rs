//! What the first of several ranks reads, for all of them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use zhat::ranks::Workers;

use crate::error::{Result, TableError};

/// What the first rank finds. Where it fails, it fails alone: whoever has started the ranks ends the others.
pub fn of_first<T: Serialize + DeserializeOwned>(
    workers: &Workers,
    find: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if workers.is_alone() {
        return find();
    }
    let bytes = match workers.is_first() {
        true => serde_json::to_vec(&find()?).expect("plain data"),
        false => Vec::new(),
    };
    serde_json::from_slice(&workers.of_first(bytes))
        .map_err(|error| TableError::config(format!("the first rank sent no JSON: {error}")))
}
