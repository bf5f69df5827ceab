//! How many different values weighted draws really hold.

use std::collections::HashMap;

/// `1 / sum_v W_v^2`, where `W_v` is the weight of all draws that share the value `v`.
///
/// It is the effective sample size for this one column: copies of a resampled ancestor count as the one draw they are.
pub(super) fn effective_values(values: &[f32], weights: impl IntoIterator<Item = f64>) -> f64 {
    let mut shares: HashMap<u32, f64> = HashMap::new();
    for (value, weight) in values.iter().zip(weights) {
        *shares.entry(value.to_bits()).or_default() += weight;
    }
    let total: f64 = shares.values().sum();
    total * total / shares.values().map(|share| share * share).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_count_once_and_weights_count() {
        assert!((effective_values(&[1.0, 2.0, 3.0, 4.0], [1.0; 4]) - 4.0).abs() < 1e-12);
        assert!((effective_values(&[1.0, 1.0, 3.0, 3.0], [0.25; 4]) - 2.0).abs() < 1e-12);
        assert!((effective_values(&[1.0, 2.0], [1.0, 0.0]) - 1.0).abs() < 1e-12);
    }
}
