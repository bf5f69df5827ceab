//! Weighted draws: what they say about a column, and rows taken from them by weight.

use std::collections::BTreeMap;

use zhat::rng::Stream;

use crate::data::{Discrete, Shape, Standardiser};

/// Weighted draws of a row, some cells of which may have been given.
#[derive(Debug, Clone)]
pub struct Cloud {
    /// Column by column, as features: in the units of the data different draws may round to one number.
    columns: Vec<Vec<f32>>,
    weights: Vec<f64>,
    standardiser: Standardiser,
    given: Vec<f32>,
    /// Effective sample size of the particles, in the worst stage; copies of an ancestor count as many.
    pub effective_particles: f64,
    /// Log of the integral of `p~` over what was drawn: but for `log Z`, the marginal log-density of what was given.
    pub log_evidence: f64,
    /// Columns whose draws stand for values; empty where there are none.
    discrete: Vec<Option<Discrete>>,
}

/// Rows taken from a cloud.
#[derive(Debug, Clone, PartialEq)]
pub struct Draws {
    /// In the units of the data, what was given exactly as it was given.
    pub rows: Vec<f32>,
    /// As many independent rows tell as much, in the worst column.
    pub effective_sample_size: f64,
}

impl Cloud {
    /// Draws as features, with normalised weights.
    ///
    /// # Shapes
    /// - `columns`: `[columns][particles]`
    /// - `given`: `[columns]`, in the units of the data and NaN where the cell was drawn
    pub fn new(
        columns: Vec<Vec<f32>>,
        weights: Vec<f64>,
        effective_particles: f64,
        standardiser: &Standardiser,
        given: &[f32],
    ) -> Self {
        let (standardiser, given) = (standardiser.clone(), given.to_vec());
        let (log_evidence, discrete) = (0.0, Vec::new());
        Self { columns, weights, standardiser, given, effective_particles, log_evidence, discrete }
    }

    /// One cloud of several, each of which counts by its evidence.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn merged(clouds: Vec<Cloud>, given: &[f32]) -> Self {
        let most = clouds.iter().map(|cloud| cloud.log_evidence).fold(f64::NEG_INFINITY, f64::max);
        // Where nothing has any evidence, all count the same.
        let share = |cloud: &Cloud| match most.is_finite() {
            true => (cloud.log_evidence - most).exp(),
            false => 1.0,
        };
        let total: f64 = clouds.iter().map(share).sum();
        let mut clouds = clouds.into_iter();
        let mut all = clouds.next().expect("at least one cloud");
        let first = share(&all) / total;
        all.weights.iter_mut().for_each(|weight| *weight *= first);
        for cloud in clouds {
            let share = share(&cloud) / total;
            all.weights.extend(cloud.weights.iter().map(|weight| weight * share));
            for (column, more) in all.columns.iter_mut().zip(cloud.columns) {
                column.extend(more);
            }
            all.effective_particles += cloud.effective_particles;
        }
        all.given = given.to_vec();
        all.log_evidence = most + total.ln();
        all
    }

    /// The same with some columns discrete: their draws are the values whose cells they fell into.
    pub(super) fn of_discrete(self, discrete: &[Option<Discrete>]) -> Self {
        Self { discrete: discrete.to_vec(), ..self }
    }

    fn discrete(&self, column: usize) -> Option<&Discrete> {
        self.discrete.get(column).and_then(Option::as_ref)
    }

    /// Columns that were drawn.
    fn drawn(&self) -> impl Iterator<Item = usize> {
        (0..self.given.len()).filter(|&column| self.given[column].is_nan())
    }

    /// Columns that were drawn and in which two draws differ, unless one is a copy.
    fn told_apart(&self) -> impl Iterator<Item = usize> {
        let shapes = &self.standardiser.shapes;
        let repeats = |shape: &Shape| shape.is_counted() || shape.is_atoms();
        self.drawn().filter(move |&column| !shapes.get(column).is_some_and(repeats))
    }

    /// The class with the most weight, where a column is classes.
    fn most_likely(&self, column: usize) -> Option<f64> {
        self.standardiser.shapes.get(column).filter(|shape| shape.is_classes())?;
        let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
        for (value, weight) in self.columns[column].iter().zip(&self.weights) {
            *shares.entry(*value as u32).or_default() += weight;
        }
        let most = shares.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
        most.map(|(class, _)| f64::from(class))
    }

    /// Rows by weight, in random order. A draw is taken twice only where its share of the rows is above one.
    pub fn sample(&self, number: usize, rng: &mut Stream) -> Draws {
        let taken = self.take(number, rng);
        let different = |column: usize| {
            let values: Vec<f32> = taken.iter().map(|&draw| self.columns[column][draw]).collect();
            effective_values(&values, std::iter::repeat(1.0))
        };
        // Copies of a draw, where its values do not tell.
        let draws: Vec<f32> = taken.iter().map(|&draw| draw as f32).collect();
        let most = effective_values(&draws, std::iter::repeat(1.0));
        let effective_sample_size = self.told_apart().map(different).fold(most, f64::min);
        let mut rows: Vec<f32> =
            taken.iter().flat_map(|&draw| self.columns.iter().map(move |c| c[draw])).collect();
        self.standardiser.invert(&mut rows);
        // Not only to the last bit but one, after going to features and back.
        for row in rows.chunks_exact_mut(self.given.len()) {
            for (column, (cell, given)) in row.iter_mut().zip(&self.given).enumerate() {
                if !given.is_nan() {
                    *cell = *given;
                } else if let Some(discrete) = self.discrete(column) {
                    *cell = discrete.value_of(f64::from(*cell)) as f32;
                }
            }
        }
        Draws { rows, effective_sample_size }
    }

    /// Indices by systematic resampling, in random order.
    fn take(&self, number: usize, rng: &mut Stream) -> Vec<usize> {
        let total: f64 = self.weights.iter().sum();
        let (mut draw, mut sum, shift) = (0, self.weights[0], rng.uniform());
        let mut taken: Vec<usize> = (0..number)
            .map(|row| {
                let target = (row as f64 + shift) / number as f64 * total;
                while sum <= target && draw + 1 < self.weights.len() {
                    draw += 1;
                    sum += self.weights[draw];
                }
                draw
            })
            .collect();
        for last in (1..number).rev() {
            taken.swap(last, rng.index(last + 1));
        }
        taken
    }

    /// Weighted mean of a column.
    pub fn mean(&self, column: usize) -> f64 {
        let pairs = self.columns[column].iter().zip(&self.weights);
        pairs.map(|(&value, weight)| self.in_units(column, value) * weight).sum()
    }

    /// What a missing cell is filled with by its mean: the mean, or the value of a discrete column that is nearest to it, or the class
    /// that is most likely.
    pub fn filling(&self, column: usize) -> f64 {
        if let Some(class) = self.most_likely(column) {
            return class;
        }
        let mean = self.mean(column);
        if let Some(shape @ Shape::Values { .. }) = self.standardiser.shapes.get(column) {
            return shape.value(mean);
        }
        self.discrete(column).map_or(mean, |discrete| discrete.nearest(mean))
    }

    /// The smallest value of a column at which the cumulative weight reaches the level. Classes have no order: of them it is the one
    /// that is most likely.
    pub fn quantile(&self, column: usize, level: f64) -> f64 {
        if let Some(class) = self.most_likely(column) {
            return class;
        }
        let values = &self.columns[column];
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
        let target = level * self.weights.iter().sum::<f64>();
        let mut sum = 0.0;
        let reached = order.iter().find(|&&draw| {
            sum += self.weights[draw];
            sum >= target
        });
        // Rounding may leave the sum a little short of the whole.
        let draw = *reached.or(order.last()).expect("a draw");
        self.in_units(column, values[draw])
    }

    /// Effective number of different values in the worst column that was drawn; where values do not tell copies apart, that of the
    /// weights.
    pub fn effective_sample_size(&self) -> f64 {
        let worst = self
            .told_apart()
            .map(|column| effective_values(&self.columns[column], self.weights.iter().copied()))
            .fold(f64::INFINITY, f64::min);
        if worst.is_finite() {
            return worst;
        }
        let squares: f64 = self.weights.iter().map(|weight| weight * weight).sum();
        let total: f64 = self.weights.iter().sum();
        self.effective_particles.min(total * total / squares)
    }

    fn in_units(&self, column: usize, value: f32) -> f64 {
        let value = self.standardiser.in_units(column, f64::from(value));
        self.discrete(column).map_or(value, |discrete| discrete.value_of(value))
    }
}

/// `1 / sum_v W_v^2`, where `W_v` is the weight of all draws that share the value `v`.
///
/// It is the effective sample size for one column: copies of a resampled ancestor count as the one draw they are.
fn effective_values(values: &[f32], weights: impl IntoIterator<Item = f64>) -> f64 {
    let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
    for (value, weight) in values.iter().zip(weights) {
        *shares.entry(value.to_bits()).or_default() += weight;
    }
    let total: f64 = shares.values().sum();
    total * total / shares.values().map(|share| share * share).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use zhat::rng::Streams;

    use super::*;

    fn cloud(values: &[f32], weights: &[f64]) -> Cloud {
        let standardiser = Standardiser::new(vec![10.0, 0.0], vec![2.0, 1.0]);
        let columns = vec![values.to_vec(), vec![0.0; values.len()]];
        Cloud::new(columns, weights.to_vec(), 1.0, &standardiser, &[f32::NAN, 0.1])
    }

    #[test]
    fn copies_count_once_and_weights_count() {
        assert!((effective_values(&[1.0, 2.0, 3.0, 4.0], [1.0; 4]) - 4.0).abs() < 1e-12);
        assert!((effective_values(&[1.0, 1.0, 3.0, 3.0], [0.25; 4]) - 2.0).abs() < 1e-12);
        assert!((effective_values(&[1.0, 2.0], [1.0, 0.0]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn means_and_quantiles_follow_the_weights_in_the_units_of_the_data() {
        let cloud = cloud(&[3.0, 1.0, 2.0], &[0.2, 0.5, 0.3]);
        for (level, expected) in [(0.4, 12.0), (0.7, 14.0), (1.0, 16.0), (0.0, 12.0)] {
            assert_eq!(cloud.quantile(0, level), expected);
        }
        assert!((cloud.mean(0) - 13.4).abs() < 1e-12);
    }

    #[test]
    fn rows_come_by_weight_without_needless_copies_and_keep_what_is_given() {
        let mut rng = Streams::new(3).stream("rows", 0, 0);
        let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let draws = cloud(&values, &[1e-3; 1000]).sample(1000, &mut rng);
        assert_eq!(draws.effective_sample_size, 1000.0);
        assert!(draws.rows.chunks(2).all(|row| row[1] == 0.1));
        // In random order: the first half is not that of the smaller values. Five standard errors of a mean of 500.
        let half: f64 = draws.rows[..1000].iter().step_by(2).map(|&x| f64::from(x)).sum();
        assert!((half / 500.0 - 1009.0).abs() < 5.0 * 2.0 * 289.0 / 500f64.sqrt(), "{half}");
        // Weights 1/2, 1/4, 1/4: systematic resampling gives every share to within one row.
        let draws = cloud(&[1.0, 2.0, 3.0], &[0.5, 0.25, 0.25]).sample(101, &mut rng);
        for (value, share) in [(12.0, 0.5), (14.0, 0.25), (16.0, 0.25)] {
            let count = draws.rows.iter().step_by(2).filter(|&&x| x == value).count() as f64;
            assert!((count - 101.0 * share).abs() <= 1.0, "{value}: {count}");
        }
    }
}
