//! A density of a table with discrete columns: of the cells that their values stand for, not of points in them.
//!
//! Training adds uniform noise of a step to a discrete column, so the fitted density is one of noisy values, and at the value
//! itself, the corner of its cell, it says nothing. What is meant by the density of a row is its mean over the cell: the mass of
//! the cell divided by its size, so that continuous columns keep their units.

use std::collections::BTreeMap;

use zhat::ar::{CellScores, RowScores};
use zhat::criterion::Method;
use zhat::rng::Streams;
use zhat::watch::Watch;

use super::{Cloud, Density, Estimate, Estimation, Opinion, Tail};
use crate::data::{Discrete, Standardiser};
use crate::error::Result;

/// Nodes for each discrete column, and at most.
const NODES: usize = 16;
const MOST_NODES: usize = 64;
/// Rows whose nodes are scored together.
const ROWS: usize = 512;
/// Particles that a node has at least, where draws are made given a cell.
const PARTICLES: usize = 50;
/// Rows on which the error of the mean over a cell is measured, at most.
const ROWS_FOR_ERROR: usize = 500;

/// A density with cells in the place of the values of some columns.
#[derive(Debug)]
pub struct Cells {
    inner: Box<dyn Density>,
    /// One entry for each column.
    discrete: Vec<Option<Discrete>>,
    /// Points of the unit cube of the discrete columns, one after the other.
    nodes: Vec<Vec<f64>>,
}

/// The density with its discrete columns, by name; the same one where there are none.
pub fn with_cells(
    inner: Box<dyn Density>,
    discrete: &BTreeMap<String, Discrete>,
) -> Box<dyn Density> {
    let discrete: Vec<_> = inner.columns().iter().map(|name| discrete.get(name).copied()).collect();
    match discrete.iter().flatten().count() {
        0 => inner,
        number => Box::new(Cells { inner, discrete, nodes: nodes(number) }),
    }
}

/// Nodes of equal weight in the unit cube. With one dimension they are those of the midpoint rule; more are a lattice with the
/// powers of the generalised golden ratio, which fills a cube of any dimension evenly. The same every time, so that a score is.
fn nodes(dimension: usize) -> Vec<Vec<f64>> {
    let number = (NODES * dimension).min(MOST_NODES);
    // The root of x^(d + 1) = x + 1 in the other dimensions, by its fixed point.
    let others = (dimension - 1).max(1) as f64;
    let ratio = (0..64).fold(2.0f64, |x, _| (1.0 + x).powf(1.0 / (others + 1.0)));
    let node = |node: usize| {
        let at = node as f64 + 0.5;
        let other = |axis: usize| (at * ratio.powi(-(axis as i32))).fract();
        (0..dimension)
            .map(|axis| if axis == 0 { at / number as f64 } else { other(axis) })
            .collect()
    };
    (0..number).map(node).collect()
}

impl Cells {
    /// A row moved to a point of its cells.
    fn at(&self, row: &[f32], point: &[f64]) -> impl Iterator<Item = f32> {
        let mut point = point.iter();
        row.iter().zip(&self.discrete).map(move |(&value, discrete)| match discrete {
            Some(discrete) => {
                let share = point.next().expect("a coordinate for each discrete column");
                (discrete.start(f64::from(value)) + discrete.step * share) as f32
            }
            None => value,
        })
    }

    /// Rows moved to the middle of their cells.
    fn centres(&self, rows: &[f32]) -> Vec<f32> {
        let middle = vec![0.5; self.discrete.len()];
        rows.chunks_exact(self.discrete.len()).flat_map(|row| self.at(row, &middle)).collect()
    }

    /// Scores at every node of every row, the nodes of a row one after the other.
    fn at_nodes(&self, rows: &[f32]) -> Result<RowScores> {
        let rows = rows.chunks_exact(self.discrete.len());
        let points: Vec<f32> = rows
            .flat_map(|row| self.nodes.iter().flat_map(move |node| self.at(row, node)))
            .collect();
        self.inner.score(&points)
    }
}

impl Density for Cells {
    fn columns(&self) -> &[String] {
        self.inner.columns()
    }

    fn given(&self) -> usize {
        self.inner.given()
    }

    fn standardiser(&self) -> &Standardiser {
        self.inner.standardiser()
    }

    fn is_normalised(&self) -> bool {
        self.inner.is_normalised()
    }

    fn criterion(&self) -> Option<Method> {
        self.inner.criterion()
    }

    fn pool(&self) -> &rayon::ThreadPool {
        self.inner.pool()
    }

    fn watch(&self) -> &Watch {
        self.inner.watch()
    }

    fn score(&self, rows: &[f32]) -> Result<RowScores> {
        let mut found = RowScores { log_q: Vec::new(), log_p_tilde: Vec::new() };
        for rows in rows.chunks(ROWS * self.discrete.len()) {
            let scores = self.at_nodes(rows)?;
            let mean = |scores: &[f64]| {
                scores.chunks_exact(self.nodes.len()).map(log_mean).collect::<Vec<_>>()
            };
            found.log_q.extend(mean(&scores.log_q));
            found.log_p_tilde.extend(mean(&scores.log_p_tilde));
        }
        Ok(found)
    }

    /// Of rows with noise in their discrete columns, as the fitted density is: it is added here.
    fn cells(&self, rows: &[f32]) -> Result<Option<CellScores>> {
        let mut rng = Streams::new(0).stream("noise-of-cells", 0, 0);
        let number = self.discrete.iter().flatten().count();
        let mut points = Vec::with_capacity(rows.len());
        for row in rows.chunks_exact(self.discrete.len()) {
            let point: Vec<f64> = (0..number).map(|_| rng.uniform()).collect();
            points.extend(self.at(row, &point));
        }
        self.inner.cells(&points)
    }

    /// Given a discrete cell, the others are drawn given points of it, each as often as its marginal density says.
    fn draw(&self, given: &[f32], particles: usize, streams: &Streams) -> Result<Cloud> {
        let is_given =
            |(cell, discrete): (&f32, &Option<Discrete>)| !cell.is_nan() && discrete.is_some();
        if !given.iter().zip(&self.discrete).any(is_given) {
            return Ok(self.inner.draw(given, particles, streams)?.of_discrete(&self.discrete));
        }
        let number = (particles / PARTICLES).clamp(1, self.nodes.len());
        let clouds = (0..number).map(|index| {
            // Evenly from all nodes, from the middle one where there is one.
            let node = &self.nodes[(2 * index + 1) * self.nodes.len() / (2 * number)];
            let given: Vec<f32> = self.at(given, node).collect();
            let share = (index + 1) * particles / number - index * particles / number;
            self.inner.draw(&given, share, &streams.derive("node", index as u64))
        });
        let cloud = Cloud::merged(clouds.collect::<Result<Vec<_>>>()?, given);
        Ok(cloud.of_discrete(&self.discrete))
    }

    /// Rows are moved to a point of their cell first, drawn as the density has it there.
    fn refresh(&self, rows: Vec<f32>, streams: &Streams) -> Result<Vec<f32>> {
        let columns = self.discrete.len();
        let mut points = Vec::with_capacity(rows.len());
        for (part, rows) in rows.chunks(ROWS * columns).enumerate() {
            let log_p = self.at_nodes(rows)?.log_p_tilde;
            let mut rng = streams.stream("points-of-cells", part as u64, 0);
            for (row, log_p) in rows.chunks_exact(columns).zip(log_p.chunks_exact(self.nodes.len()))
            {
                let most = log_p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = log_p.iter().map(|log_p| (log_p - most).exp()).collect();
                points.extend(self.at(row, &self.nodes[rng.categorical(&weights)]));
            }
        }
        let mut moved = self.inner.refresh(points, streams)?;
        for row in moved.chunks_exact_mut(columns) {
            for (cell, discrete) in row.iter_mut().zip(&self.discrete) {
                if let Some(discrete) = discrete {
                    *cell = discrete.value_of(f64::from(*cell)) as f32;
                }
            }
        }
        Ok(moved)
    }

    fn estimates(&self, settings: &Estimation, streams: &Streams) -> Result<Vec<Estimate>> {
        self.inner.estimates(settings, streams)
    }

    fn opinions(&self, settings: &Estimation, streams: &Streams) -> Result<Vec<Opinion>> {
        self.inner.opinions(settings, streams)
    }

    fn opinion_from_rows(
        &self,
        rows: &[f32],
        settings: &Estimation,
        streams: &Streams,
    ) -> Result<Option<Opinion>> {
        self.inner.opinion_from_rows(&self.centres(rows), settings, streams)
    }

    fn tail(&self, rows: &[f32]) -> Result<Tail> {
        self.inner.tail(&self.centres(rows))
    }

    /// What the integrals of the density itself are off by, and how far the mean score is from the one with half of the nodes.
    fn quadrature_error(&self, rows: &[f32]) -> Result<f64> {
        let columns = self.discrete.len();
        let inner = self.inner.quadrature_error(&self.centres(rows))?;
        let number = rows.len() / columns;
        let step = (number / ROWS_FOR_ERROR).max(1);
        let some: Vec<f32> = rows.chunks_exact(columns).step_by(step).flatten().copied().collect();
        let scores = self.at_nodes(&some)?.log_p_tilde;
        let differences = scores.chunks_exact(self.nodes.len()).map(|nodes| {
            let half: Vec<f64> = nodes.iter().copied().step_by(2).collect();
            log_mean(nodes) - log_mean(&half)
        });
        let differences: Vec<f64> =
            differences.filter(|difference| difference.is_finite()).collect();
        let mean = differences.iter().sum::<f64>() / differences.len().max(1) as f64;
        Ok(inner + mean.abs())
    }

    fn work(&self, settings: &Estimation) -> [u64; 2] {
        self.inner.work(settings)
    }
}

/// Log of the mean of exponentials; NaN where one is.
fn log_mean(logs: &[f64]) -> f64 {
    if logs.iter().any(|log| log.is_nan()) {
        return f64::NAN;
    }
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most.is_infinite() {
        return most;
    }
    most + (logs.iter().map(|log| (log - most).exp()).sum::<f64>() / logs.len() as f64).ln()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use burn::tensor::Device;
    use zhat::ar::ArEbmConfig;

    use super::*;
    use crate::data::Grid;
    use crate::density::ArDensity;

    /// The proposal of a random model of a continuous and a discrete column, as it is and with cells.
    fn densities() -> [Box<dyn Density>; 2] {
        let config = ArEbmConfig { features: 2, ..ArEbmConfig::small() };
        let model =
            config.init(&Device::flex(), &mut Streams::new(3).stream("init", 0, 0)).unwrap();
        let standardiser = Standardiser::new(vec![100.0, 3.5], vec![20.0, 1.2]);
        let columns = ["a".to_owned(), "b".to_owned()];
        let density = || -> Box<dyn Density> {
            let watch = Arc::default();
            let found = ArDensity::new(&model, Method::QOnly, &columns, &standardiser, 2, watch);
            Box::new(found.unwrap())
        };
        let grid = Some(Grid { origin: 0.0, lowest: 0.0, highest: 6.0 });
        let discrete = BTreeMap::from([("b".to_owned(), Discrete { step: 0.5, grid })]);
        [density(), with_cells(density(), &discrete)]
    }

    #[test]
    fn without_discrete_columns_nothing_changes() {
        let [plain, cells] = densities();
        let same = with_cells(plain, &BTreeMap::new());
        let rows = [90.0, 3.0, 110.0, 4.5];
        assert_ne!(same.score(&rows).unwrap(), cells.score(&rows).unwrap());
        assert_eq!(same.score(&rows).unwrap(), densities()[0].score(&rows).unwrap());
    }

    #[test]
    fn a_score_is_the_log_of_the_mean_density_of_the_cell() {
        let [plain, cells] = densities();
        let mut largest: f64 = 0.0;
        for row in [[90.0, 2.5], [130.0, 3.0], [100.0, 1.0]] {
            let fine: Vec<f32> = (0..2000)
                .flat_map(|i| [row[0], row[1] + 0.5 * (i as f32 + 0.5) / 2000.0])
                .collect();
            let expected = log_mean(&plain.score(&fine).unwrap().log_p_tilde);
            let found = cells.score(&row).unwrap().log_p_tilde[0];
            assert!((found - expected).abs() < 1e-3, "{row:?}: {found} {expected}");
            largest = largest.max((plain.score(&row).unwrap().log_p_tilde[0] - expected).abs());
        }
        assert!(largest > 0.05, "at the corner of the cell it is something else: {largest}");
        let marginal = cells.score(&[f32::NAN, 1.0]).unwrap().log_p_tilde[0];
        assert!(marginal.is_finite(), "what is observed has a density: {marginal}");
    }

    #[test]
    fn masses_of_cells_and_densities_of_the_other_column_make_one() {
        let [_, cells] = densities();
        let grid = |i: i32| -60.0 + 2.0 * i as f32;
        let rows: Vec<f32> =
            (0..160).flat_map(|i| (-14..30).flat_map(move |k| [grid(i), 0.5 * k as f32])).collect();
        let total: f64 =
            cells.score(&rows).unwrap().log_p_tilde.iter().map(|s| s.exp() * 2.0 * 0.5).sum();
        assert!((total - 1.0).abs() < 0.01, "{total}");
    }

    #[test]
    fn draws_are_values_and_come_as_often_as_their_cells_have_mass() {
        let [_, cells] = densities();
        let number = 20_000;
        let streams = Streams::new(5);
        let cloud = cells.draw(&[f32::NAN; 2], number, &streams).unwrap();
        let rows = cloud.sample(number, &mut streams.stream("draws", 0, 0)).rows;
        assert!(
            rows.iter()
                .skip(1)
                .step_by(2)
                .all(|b| (2.0 * b).fract() == 0.0 && (0.0..=6.0).contains(b))
        );
        for value in [2.5f32, 3.5, 4.0] {
            let line: Vec<f32> = (0..400).flat_map(|i| [-100.0 + i as f32, value]).collect();
            let mass: f64 =
                cells.score(&line).unwrap().log_p_tilde.iter().map(|s| s.exp() * 0.5).sum();
            let share = rows.iter().skip(1).step_by(2).filter(|b| **b == value).count() as f64
                / number as f64;
            // Five standard errors of a share.
            let error = 5.0 * (mass * (1.0 - mass) / number as f64).sqrt();
            assert!((share - mass).abs() < error + 1e-3, "{value}: {share} {mass}");
        }
        assert!((2.0 * cloud.filling(1)).fract() == 0.0, "the mean is brought to a value");
    }

    /// `E[a | b in its cell]`, by quadrature and by draws.
    #[test]
    fn what_is_given_is_a_cell() {
        let [plain, cells] = densities();
        let (mut sum, mut total, value) = (0.0, 0.0, 1.5f32);
        for i in 0..400 {
            let a = -100.0 + i as f32;
            let line: Vec<f32> =
                (0..20).flat_map(|k| [a, value + 0.5 * (k as f32 + 0.5) / 20.0]).collect();
            let mass: f64 = plain.score(&line).unwrap().log_p_tilde.iter().map(|s| s.exp()).sum();
            (sum, total) = (sum + f64::from(a) * mass, total + mass);
        }
        let cloud = cells.draw(&[f32::NAN, value], 40_000, &Streams::new(5)).unwrap();
        let error = 5.0 * 25.0 / cloud.effective_sample_size().sqrt();
        assert!((cloud.mean(0) - sum / total).abs() < error, "{} {}", cloud.mean(0), sum / total);
        let draws = cloud.sample(50, &mut Streams::new(6).stream("draws", 0, 0));
        assert!(draws.rows.iter().skip(1).step_by(2).all(|&b| b == value));
    }

    #[test]
    fn nodes_fill_the_cube_evenly() {
        let midpoints: Vec<f64> = nodes(1).concat();
        assert_eq!((midpoints.len(), midpoints[0], midpoints[15]), (16, 1.0 / 32.0, 31.0 / 32.0));
        for dimension in [2, 3, 7] {
            let nodes = nodes(dimension);
            for axis in 0..dimension {
                let mean = nodes.iter().map(|node| node[axis]).sum::<f64>() / nodes.len() as f64;
                assert!((mean - 0.5).abs() < 0.05, "{dimension} {axis}: {mean}");
                // Every eighth of every side has its share, give or take half of it.
                for part in 0..8 {
                    let inside = nodes.iter().filter(|n| (n[axis] * 8.0) as usize == part).count();
                    let share = inside as f64 / nodes.len() as f64 * 8.0;
                    assert!((share - 1.0).abs() <= 0.51, "{dimension} {axis} {part}: {share}");
                }
            }
        }
    }
}
