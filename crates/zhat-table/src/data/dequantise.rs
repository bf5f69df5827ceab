//! Noise as wide as the step of a discrete column, so that its density exists.

use std::collections::BTreeMap;
use std::str::FromStr;

use rand::{Rng, RngExt};

use super::discrete::Discrete;
use super::error::{Error, Result};
use super::table::Table;

/// A discrete column and its step, as a user gives them.
#[derive(Debug, Clone, PartialEq)]
pub struct Dequantise {
    /// Name of the column.
    pub column: String,
    /// The noise is uniform from 0 to this.
    pub step: f64,
}

impl FromStr for Dequantise {
    type Err = Error;

    /// Reads `COLUMN=STEP`.
    fn from_str(text: &str) -> Result<Self> {
        // The last equals sign, since a name may hold one.
        let parts = text.rsplit_once('=').and_then(|(column, step)| {
            Some(Self { column: column.trim().into(), step: step.trim().parse().ok()? })
        });
        parts.filter(|parts| is_valid(&parts.column, parts.step)).ok_or_else(|| invalid(text))
    }
}

impl Dequantise {
    /// Reads one or several, with commas between them. A comma may be part of a name: what does not end in a step goes on.
    pub fn list(text: &str) -> Result<Vec<Self>> {
        let (mut found, mut part) = (Vec::new(), String::new());
        for piece in text.split(',') {
            part += piece;
            match part.parse() {
                Ok(one) => {
                    found.push(one);
                    part.clear();
                }
                Err(_) => part.push(','),
            }
        }
        if part.is_empty() { Ok(found) } else { Err(invalid(text)) }
    }
}

fn is_valid(column: &str, step: f64) -> bool {
    step.is_finite() && step > 0.0 && !column.is_empty()
}

fn invalid(text: &str) -> Error {
    Error::setting("dequantise", text, "COLUMN=STEP with a step above 0")
}

/// Adds uniform noise on `[0, step)` to every row of the given columns.
///
/// The log-density of the noisy value bounds that of the discrete one from below (Theis et al. 2016). Gives how the columns were
/// discrete before.
pub fn dequantise(
    table: &mut Table,
    settings: &BTreeMap<String, f64>,
    rng: &mut impl Rng,
) -> Result<BTreeMap<String, Discrete>> {
    let (mut noisy, mut discrete) = (Vec::new(), BTreeMap::new());
    for (column, &step) in settings {
        if !is_valid(column, step) {
            return Err(invalid(&format!("{column}={step}")));
        }
        let index = table.column_index(column)?;
        discrete.insert(column.clone(), Discrete::of(table.column(index), step));
        noisy.push((index, step));
    }
    // By position, so that a seed gives the same noise however the columns are named.
    noisy.sort_by_key(|(column, _)| *column);
    let dimension = table.dimension();
    for row in table.values_mut().chunks_exact_mut(dimension) {
        for &(column, step) in &noisy {
            row[column] = (f64::from(row[column]) + step * rng.random::<f64>()) as f32;
        }
    }
    Ok(discrete)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn noise_fills_the_step_of_the_chosen_column_and_no_other() {
        let values: Vec<f32> = (0..2000).flat_map(|row| [row as f32, (row % 4) as f32]).collect();
        let mut table = Table::new(vec!["a".into(), "b".into()], values.clone());
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let discrete =
            dequantise(&mut table, &BTreeMap::from([("b".into(), 0.5)]), &mut rng).unwrap();
        assert_eq!(discrete["b"].grid.map(|grid| grid.highest), Some(3.0), "as it was before");
        let noise: Vec<f32> =
            table.values().iter().zip(&values).skip(1).step_by(2).map(|(n, v)| n - v).collect();
        assert!(noise.iter().all(|n| (0.0..=0.5).contains(n)));
        // The mean of 2000 uniform draws on [0, 0.5) has standard error 0.0032: 4 of them.
        let mean = noise.iter().sum::<f32>() / 2000.0;
        assert!((mean - 0.25).abs() < 0.013, "{mean}");
        assert!(table.column(0).zip(0..).all(|(value, row)| value == row as f32));
    }

    #[test]
    fn a_setting_is_a_column_and_a_positive_step() {
        let read: Dequantise = "a=b=0.1".parse().unwrap();
        assert_eq!(read, Dequantise { column: "a=b".into(), step: 0.1 });
        let list = |text: &str| {
            Dequantise::list(text)
                .map(|list| list.into_iter().map(|one| (one.column, one.step)).collect::<Vec<_>>())
        };
        assert_eq!(list("a=1,b c=0.5").unwrap(), [("a".into(), 1.0), ("b c".into(), 0.5)]);
        assert_eq!(list("income, net=10,b=2").unwrap()[0], ("income, net".into(), 10.0));
        assert!(list("a=1,b").is_err() && list("").is_err());
        for bad in ["a", "a=", "a=0", "a=-1", "a=nan", "=1"] {
            assert!(bad.parse::<Dequantise>().is_err(), "{bad}");
        }
    }
}
