//! Columns brought to mean 0 and standard deviation 1, and back into the units of the data.

use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
use super::table::Table;

/// Mean and standard deviation of every column, as found in the training part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standardiser {
    /// Mean of every column.
    pub mean: Vec<f64>,
    /// Standard deviation (sigma) of every column.
    pub std_dev: Vec<f64>,
}

impl Standardiser {
    /// Mean and standard deviation of a table, summed in 64 bits; missing cells are set aside.
    pub fn fit(table: &Table) -> Result<Self> {
        let statistics = table.statistics();
        for (name, column) in table.columns().iter().zip(&statistics) {
            if !(column.std_dev.is_finite() && column.std_dev > 0.0) {
                return Err(Error::Constant {
                    file: "the training part".into(),
                    name: name.clone(),
                    value: column.minimum,
                    others: format!("(all but {name})"),
                });
            }
        }
        Ok(Self {
            mean: statistics.iter().map(|column| column.mean).collect(),
            std_dev: statistics.iter().map(|column| column.std_dev).collect(),
        })
    }

    /// No change at all.
    pub fn identity(dimension: usize) -> Self {
        Self { mean: vec![0.0; dimension], std_dev: vec![1.0; dimension] }
    }

    /// Number of columns.
    pub fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// From the units of the data to standard units, in place; rows one after the other.
    ///
    /// # Panics
    /// If the values do not fill whole rows.
    pub fn apply(&self, values: &mut [f32]) {
        self.each(values, |value, mean, std_dev| (value - mean) / std_dev);
    }

    /// Rows in the units of the data as rows in standard units.
    pub fn standard(&self, rows: &[f32]) -> Vec<f32> {
        let mut rows = rows.to_vec();
        self.apply(&mut rows);
        rows
    }

    /// From standard units to the units of the data, in place.
    ///
    /// # Panics
    /// If the values do not fill whole rows.
    pub fn invert(&self, values: &mut [f32]) {
        self.each(values, |value, mean, std_dev| value * std_dev + mean);
    }

    /// Sum of log standard deviations. A log-density in the units of the data is the one in standard units
    /// minus this (the change of variables).
    pub fn log_scale(&self) -> f64 {
        self.std_dev.iter().map(|std_dev| std_dev.ln()).sum()
    }

    fn each(&self, values: &mut [f32], change: impl Fn(f64, f64, f64) -> f64) {
        assert_eq!(values.len() % self.dimension(), 0, "the values fill whole rows");
        for row in values.chunks_exact_mut(self.dimension()) {
            for ((value, mean), std_dev) in row.iter_mut().zip(&self.mean).zip(&self.std_dev) {
                *value = change(f64::from(*value), *mean, *std_dev) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let values = (0..3000).map(|i| ((i * 7919) % 1009) as f32 * 0.01 + 500.0 * (i % 3) as f32);
        Table::new(["a", "b", "c"].map(String::from).to_vec(), values.collect())
    }

    #[test]
    fn standard_units_have_mean_0_and_deviation_1_and_go_back() {
        let original = table();
        let standardiser = Standardiser::fit(&original).unwrap();
        let mut changed = original.clone();
        standardiser.apply(changed.values_mut());
        for column in changed.statistics() {
            assert!(column.mean.abs() < 1e-5 && (column.std_dev - 1.0).abs() < 1e-5);
        }
        standardiser.invert(changed.values_mut());
        for (back, was) in changed.values().iter().zip(original.values()) {
            assert!((back - was).abs() <= 4.0 * f32::EPSILON * was.abs().max(1.0));
        }
    }

    #[test]
    fn the_log_scale_corrects_a_log_density() {
        // A Gaussian with sigma 2 and 5: its log-density at the mean is -log(2 pi) - log(2 * 5).
        let standardiser = Standardiser { mean: vec![1.0, 2.0], std_dev: vec![2.0, 5.0] };
        let standard = -(2.0 * std::f64::consts::PI).ln();
        let expected = -(2.0 * std::f64::consts::PI * 10.0).ln();
        assert!((standard - standardiser.log_scale() - expected).abs() < 1e-12);
    }

    #[test]
    fn a_constant_column_is_refused() {
        let constant = Table::new(vec!["a".into()], vec![2.0; 30]);
        assert!(matches!(Standardiser::fit(&constant), Err(Error::Constant { .. })));
    }

    #[test]
    fn it_survives_json() {
        let standardiser = Standardiser::fit(&table()).unwrap();
        let text = serde_json::to_string(&standardiser).unwrap();
        assert_eq!(serde_json::from_str::<Standardiser>(&text).unwrap(), standardiser);
    }
}
