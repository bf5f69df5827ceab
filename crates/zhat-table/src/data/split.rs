//! A table cut into a part to learn from, one to watch, and one to test on.

use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::error::{Error, Result};

/// How to cut a table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SplitOptions {
    /// Share of the rows for validation, from 0 to below 1.
    pub validation: f64,
    /// Share of the rows for the test, from 0 to below 1.
    pub test: f64,
    /// Which rows go where.
    pub order: Order,
}

impl Default for SplitOptions {
    fn default() -> Self {
        Self { validation: 0.1, test: 0.1, order: Order::Random }
    }
}

/// Which rows go into which part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Any row anywhere, by the random generator.
    #[default]
    Random,
    /// The last rows are the test, those before them the validation: for rows in order of time.
    Last,
}

/// Row numbers, or rows, of the three parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split<T> {
    /// To learn from.
    pub train: T,
    /// To watch while learning.
    pub validation: T,
    /// To report on.
    pub test: T,
}

impl SplitOptions {
    /// The row numbers of each part, whose shares are those of the weights of all rows. A part whose share is above 0 gets at least one
    /// row. Rows that count the same are cut as without weights.
    pub fn weighted(&self, weights: &[f64], rng: &mut impl Rng) -> Result<Split<Vec<usize>>> {
        // Checks the shares too.
        let split = self.indices(weights.len(), rng)?;
        let mut order = [split.train, split.validation, split.test].concat();
        let total: f64 = weights.iter().sum();
        let mut take = |share: f64| {
            let (mut sum, mut first) = (0.0, order.len());
            while share > 0.0 && first > 0 {
                let weight = weights[order[first - 1]];
                if first < order.len() && sum + 0.5 * weight >= share * total {
                    break;
                }
                sum += weight;
                first -= 1;
            }
            order.split_off(first)
        };
        let (test, validation) = (take(self.test), take(self.validation));
        if order.iter().all(|&row| weights[row] == 0.0) {
            let value = format!("{} and {}", self.validation, self.test);
            return Err(Error::InvalidSetting {
                name: "data.validation and data.test",
                value,
                expected: "shares that leave some weight to learn from".into(),
            });
        }
        Ok(Split { train: order, validation, test })
    }

    /// The row numbers of each part. A part whose share is above 0 gets at least one row.
    pub fn indices(&self, rows: usize, rng: &mut impl Rng) -> Result<Split<Vec<usize>>> {
        for (name, share) in
            [("data.split.validation", self.validation), ("data.split.test", self.test)]
        {
            if !(0.0..1.0).contains(&share) {
                return Err(Error::setting(name, share, "a share of the rows from 0 to below 1"));
            }
        }
        let number = |share: f64| {
            if share > 0.0 { ((share * rows as f64).round() as usize).max(1) } else { 0 }
        };
        let (validation, test) = (number(self.validation), number(self.test));
        if validation + test >= rows {
            let value = format!("{} and {}", self.validation, self.test);
            return Err(Error::InvalidSetting {
                name: "data.validation and data.test",
                value,
                expected: format!("shares that leave some of the {rows} rows to learn from"),
            });
        }
        let mut order: Vec<usize> = (0..rows).collect();
        if self.order == Order::Random {
            order.shuffle(rng);
        }
        let test = order.split_off(rows - test);
        let validation = order.split_off(order.len() - validation);
        Ok(Split { train: order, validation, test })
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn parts(options: SplitOptions, rows: usize, seed: u64) -> Result<Split<Vec<usize>>> {
        options.indices(rows, &mut ChaCha8Rng::seed_from_u64(seed))
    }

    #[test]
    fn the_parts_have_the_sizes_asked_for_and_hold_every_row_once() {
        let options = SplitOptions { validation: 0.2, test: 0.1, order: Order::Random };
        let split = parts(options, 101, 1).unwrap();
        assert_eq!((split.train.len(), split.validation.len(), split.test.len()), (71, 20, 10));
        let mut all = [split.train.clone(), split.validation.clone(), split.test.clone()].concat();
        assert_ne!(all, (0..101).collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, (0..101).collect::<Vec<_>>());
        assert_eq!(split, parts(options, 101, 1).unwrap());
        assert_ne!(split, parts(options, 101, 2).unwrap());
    }

    #[test]
    fn parts_have_their_shares_of_the_weight_and_equal_weights_change_nothing() {
        let options = SplitOptions { validation: 0.2, test: 0.1, order: Order::Random };
        let rng = || ChaCha8Rng::seed_from_u64(3);
        let plain = options.indices(101, &mut rng()).unwrap();
        assert_eq!(options.weighted(&[2.0; 101], &mut rng()).unwrap(), plain);
        let weights: Vec<f64> = (0..400).map(|row| f64::from(row % 7)).collect();
        let total: f64 = weights.iter().sum();
        let split = options.weighted(&weights, &mut rng()).unwrap();
        let share = |rows: &[usize]| rows.iter().map(|&row| weights[row]).sum::<f64>() / total;
        assert!((share(&split.test) - 0.1).abs() < 0.01);
        assert!((share(&split.validation) - 0.2).abs() < 0.01);
        let mut all = [split.train, split.validation, split.test].concat();
        all.sort_unstable();
        assert_eq!(all, (0..400).collect::<Vec<_>>());
        // All of the weight in one row, which is somebody's.
        let mut one = vec![0.0; 30];
        one[4] = 1.0;
        let found = options.weighted(&one, &mut rng());
        assert!(found.is_err() || found.unwrap().train.contains(&4));
    }

    #[test]
    fn the_random_order_is_pinned() {
        let options = SplitOptions { validation: 0.2, test: 0.2, order: Order::Random };
        let split = parts(options, 10, 1).unwrap();
        assert_eq!(
            (split.train, split.validation, split.test),
            (vec![3, 8, 5, 2, 7, 9], vec![6, 0], vec![4, 1])
        );
    }

    #[test]
    fn the_last_part_is_the_test() {
        let options = SplitOptions { validation: 0.2, test: 0.3, order: Order::Last };
        let split = parts(options, 10, 1).unwrap();
        assert_eq!(split.train, [0, 1, 2, 3, 4]);
        assert_eq!(split.validation, [5, 6]);
        assert_eq!(split.test, [7, 8, 9]);
    }

    #[test]
    fn shares_that_make_no_sense_are_refused() {
        for (validation, test) in
            [(-0.1, 0.1), (1.0, 0.0), (f64::NAN, 0.1), (0.5, 0.5), (0.0, 0.99)]
        {
            let options = SplitOptions { validation, test, order: Order::Random };
            assert!(parts(options, 10, 1).is_err(), "{validation} {test}");
        }
        let none = SplitOptions { validation: 0.0, test: 0.0, order: Order::Last };
        assert_eq!(parts(none, 3, 1).unwrap().train.len(), 3);
    }
}
