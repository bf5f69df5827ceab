//! The store of persistent chains: where each slot of a batch left off.

use serde::{Deserialize, Serialize};

/// Chains that go on from one training step to the next, a fixed number for each slot of a batch.
///
/// Chains belong to the slots, not to data points: `B` of them for persistent RNCE, `B * J` for persistent CNCE.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChainStore {
    chains_per_slot: usize,
    dimension: usize,
    /// Slot by slot, chain by chain.
    values: Vec<f64>,
}

impl ChainStore {
    /// An empty store.
    pub fn new(chains_per_slot: usize) -> Self {
        Self { chains_per_slot, dimension: 0, values: Vec::new() }
    }

    /// Number of chains in a slot.
    pub fn chains_per_slot(&self) -> usize {
        self.chains_per_slot
    }

    /// The chains of the first slots, as many as there are rows in the batch; a slot seen for the first time starts
    /// from its data.
    pub fn start(&mut self, batch: &[f64], dimension: usize) -> Vec<f64> {
        assert!(self.dimension == 0 || self.dimension == dimension, "chains of one dimension");
        self.dimension = dimension;
        let known = self.values.len() / (self.chains_per_slot * dimension);
        for row in batch.chunks_exact(dimension).skip(known) {
            self.values.extend(row.repeat(self.chains_per_slot));
        }
        self.values[..batch.len() * self.chains_per_slot].to_vec()
    }

    /// Stores where the chains of the first slots are now.
    pub fn store(&mut self, chains: &[f64]) {
        self.values[..chains.len()].copy_from_slice(chains);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_start_from_data_and_then_go_on() {
        let mut store = ChainStore::new(2);
        assert_eq!(store.start(&[1.0, 2.0], 1), [1.0, 1.0, 2.0, 2.0]);
        store.store(&[5.0, 6.0, 7.0, 8.0]);
        // A larger batch opens a slot; a smaller one uses the first slots only.
        assert_eq!(store.start(&[9.0, 9.0, 3.0], 1), [5.0, 6.0, 7.0, 8.0, 3.0, 3.0]);
        assert_eq!(store.start(&[9.0], 1), [5.0, 6.0]);
    }

    #[test]
    fn the_store_survives_serialisation() {
        let mut store = ChainStore::new(3);
        store.start(&[0.1, f64::MIN_POSITIVE, 1.0 / 3.0, -2.5e300], 2);
        let text = serde_json::to_string(&store).unwrap();
        assert_eq!(serde_json::from_str::<ChainStore>(&text).unwrap(), store);
    }
}
