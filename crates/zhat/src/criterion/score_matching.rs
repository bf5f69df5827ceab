//! Score matching without scores: differences of `log p~` along random directions, which take neither a proposal nor second
//! derivatives.
//!
//! Both objectives are functions of `log p~` at a few points, so their gradients are weighted sums of `grad log p~` as those of all other
//! methods are; only that some of the weights are negative, and that no kernel is behind them.

use burn::tensor::Tensor;

use crate::error::{Result, at_least, positive};
use crate::host::{Place, to_host};
use crate::kernel::{Candidates, Contrast, State, Terms, evaluate};
use crate::model::UnnormalisedModel;
use crate::rng::Stream;
use crate::weights::{LogWeights, check_finite};

/// Sliced score matching (Song et al., 2019) by finite differences (Pang et al., 2020): the mean over directions `v ~ N(0, I)` of
///
/// ```text
/// (L(x + e v) + L(x - e v) - 2 L(x)) / e^2  +  (L(x + e v) - L(x - e v))^2 / (8 e^2),    L = log p~
/// ```
///
/// which is Hyvarinen's `tr grad^2 L + |grad L|^2 / 2` up to terms of order `e^2`, and exactly for a Gaussian.
#[derive(Debug, Clone, PartialEq)]
pub struct SlicedScoreMatching {
    step_size: f64,
    num_slices: usize,
}

impl SlicedScoreMatching {
    /// With steps `e` along a number of directions for each row.
    pub fn new(step_size: f64, num_slices: usize) -> Result<Self> {
        let step_size = positive("step_size", step_size)?;
        Ok(Self { step_size, num_slices: at_least(1, "num_slices", num_slices)? })
    }

    /// `(L+ + L- - 2 L0) / e^2` and `(L+ - L-) / (2 e)`: curvature and slope along a direction.
    fn differences(&self, [start, plus, minus]: [f64; 3]) -> [f64; 2] {
        let step = self.step_size;
        [(plus + minus - 2.0 * start) / (step * step), (plus - minus) / (2.0 * step)]
    }
}

impl<M: UnnormalisedModel + ?Sized> Contrast<M> for SlicedScoreMatching {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let x0 = to_host(&state.x);
        let dimension = state.x.dims()[1];
        let directions = rng.normals(x0.len() * self.num_slices);
        let (step, slices) = (self.step_size, self.num_slices as f64);
        let pairs = pairs(&x0, dimension, &directions, step);
        let weigh = |three: [f64; 3]| {
            let [_, slope] = self.differences(three);
            // d/dL of curvature + slope^2 / 2.
            let (second, first) = (1.0 / (step * step), slope / (2.0 * step));
            [-2.0 * second / slices, (second + first) / slices, (second - first) / slices]
        };
        with_terms(model, state, pairs, self.num_slices, weigh)
    }

    fn value(&self, candidates: &Candidates) -> Option<Tensor<1>> {
        let [start, plus, minus] = parts(candidates, self.num_slices);
        let step = self.step_size;
        let second = (plus.clone() + minus.clone() - start * 2.0) / (step * step);
        let slope = (plus - minus) / (2.0 * step);
        Some((second + slope.powi_scalar(2) * 0.5).mean())
    }

    fn value_on_host(&self, candidates: &Candidates) -> Option<f64> {
        let of = |three| {
            let [second, slope] = self.differences(three);
            second + 0.5 * slope * slope
        };
        Some(mean(triples(&candidates.log_w_tilde, self.num_slices).map(of)))
    }
}

/// Denoising score matching (Vincent, 2011), direction by direction: with `x' = x + s z`, `z ~ N(0, I)`, and `v ~ N(0, I)`, the mean of
///
/// ```text
/// s^2 / 2 ((L(x' + e v) - L(x' - e v)) / (2 e)  +  v . z / s)^2
/// ```
///
/// which is `s^2 / 2 |grad L(x') + z / s|^2` on average. Its optimum is the density of the noisy rows, and not of the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct DenoisingScoreMatching {
    noise: f64,
    num_slices: usize,
}

/// Steps of the differences, as a share of the noise.
const STEP_OF_NOISE: f64 = 0.1;

impl DenoisingScoreMatching {
    /// With noise `s`, and a number of directions for each row, all from one noisy point.
    pub fn new(noise: f64, num_slices: usize) -> Result<Self> {
        let noise = positive("noise", noise)?;
        Ok(Self { noise, num_slices: at_least(1, "num_slices", num_slices)? })
    }

    fn step(&self) -> f64 {
        STEP_OF_NOISE * self.noise
    }

    /// `v . z / s` of every direction of every row, from where the candidates are.
    fn targets(&self, candidates: &Candidates) -> Vec<f64> {
        let [_, number, dimension] = candidates.x.dims();
        let x = to_host(&candidates.x);
        let of_row = |row: &[f64]| -> Vec<f64> {
            let (x0, rest) = row.split_at(dimension);
            let (plus, minus) = rest.split_at(self.num_slices * dimension);
            plus.chunks_exact(dimension)
                .zip(minus.chunks_exact(dimension))
                .map(|(plus, minus)| {
                    let product = |i: usize| {
                        let direction = (plus[i] - minus[i]) / (2.0 * self.step());
                        direction * (0.5 * (plus[i] + minus[i]) - x0[i])
                    };
                    (0..dimension).map(product).sum::<f64>() / self.noise.powi(2)
                })
                .collect()
        };
        x.chunks_exact(number * dimension).flat_map(of_row).collect()
    }
}

impl<M: UnnormalisedModel + ?Sized> Contrast<M> for DenoisingScoreMatching {
    fn propose(&self, model: &M, state: State, rng: &mut Stream) -> Result<Candidates> {
        let dimension = state.x.dims()[1];
        let clean = to_host(&state.x);
        let noise = rng.normals(clean.len());
        let noisy: Vec<f64> = clean.iter().zip(&noise).map(|(x, z)| x + self.noise * z).collect();
        let directions = rng.normals(clean.len() * self.num_slices);
        let pairs = pairs(&noisy, dimension, &directions, self.step());
        let per_row = self.num_slices * dimension;
        let mut targets = directions
            .chunks_exact(per_row)
            .zip(noise.chunks_exact(dimension))
            .flat_map(|(directions, z)| {
                directions
                    .chunks_exact(dimension)
                    .map(move |v| v.iter().zip(z).map(|(v, z)| v * z).sum::<f64>() / self.noise)
            });
        let (step, slices) = (self.step(), self.num_slices as f64);
        let weigh = |[_, plus, minus]: [f64; 3]| {
            let off =
                (plus - minus) / (2.0 * step) + targets.next().expect("one for each direction");
            let weight = self.noise.powi(2) * off / (2.0 * step * slices);
            [0.0, weight, -weight]
        };
        with_terms(model, state, pairs, self.num_slices, weigh)
    }

    fn value(&self, candidates: &Candidates) -> Option<Tensor<1>> {
        let [_, plus, minus] = parts(candidates, self.num_slices);
        let targets = Place::of(&candidates.x).tensor(self.targets(candidates), plus.dims());
        let off = (plus - minus) / (2.0 * self.step()) + targets;
        Some(off.powi_scalar(2).mean() * (0.5 * self.noise.powi(2)))
    }

    fn value_on_host(&self, candidates: &Candidates) -> Option<f64> {
        let targets = self.targets(candidates);
        let slopes = triples(&candidates.log_w_tilde, self.num_slices)
            .map(|[_, plus, minus]| (plus - minus) / (2.0 * self.step()));
        let squares = slopes.zip(targets).map(|(slope, target)| (slope + target).powi(2));
        Some(0.5 * self.noise.powi(2) * mean(squares))
    }
}

/// Of every row its points a step along each direction, and then a step back along each: `[n, 2 slices, d]`.
fn pairs(x: &[f64], dimension: usize, directions: &[f64], step: f64) -> Vec<f64> {
    let per_row = directions.len() / (x.len() / dimension);
    let mut points = Vec::with_capacity(2 * directions.len());
    for (x, directions) in x.chunks_exact(dimension).zip(directions.chunks_exact(per_row)) {
        for sign in [1.0, -1.0] {
            let along = directions.iter().zip(x.iter().cycle());
            points.extend(along.map(|(v, x)| x + sign * step * v));
        }
    }
    points
}

/// The candidates of all rows, with terms that are weighed by `weigh`, which is asked for every direction in its order.
fn with_terms<M: UnnormalisedModel + ?Sized>(
    model: &M,
    state: State,
    points: Vec<f64>,
    slices: usize,
    mut weigh: impl FnMut([f64; 3]) -> [f64; 3],
) -> Result<Candidates> {
    let [rows, dimension] = state.x.dims();
    let place = Place::of(&state.x);
    let columns = 1 + 2 * slices;
    let points = place.tensor(points, [rows, 2 * slices, dimension]);
    let (x, log_p_tilde) = evaluate(model, state, points);
    let zeros = vec![0.0; rows * columns];
    let mut candidates = Candidates::new(x, log_p_tilde, zeros, LogWeights::normalise)?;
    let values: Vec<f64> = candidates.log_w_tilde.rows().flatten().copied().collect();
    // A density that ends has no score there.
    check_finite("log_p_tilde of the model", &values, columns)?;
    let mut weights = vec![0.0; rows * columns];
    for (row, weights) in weights.chunks_exact_mut(columns).enumerate() {
        // What is subtracted for the start of a chain is given back: there is no chain.
        weights[0] = 1.0;
        for slice in 0..slices {
            let at = |column: usize| values[row * columns + column];
            let [start, plus, minus] = weigh([at(0), at(1 + slice), at(1 + slices + slice)]);
            weights[0] += start;
            weights[1 + slice] = plus;
            weights[1 + slices + slice] = minus;
        }
    }
    candidates.terms = Some(Terms {
        start: candidates.start(),
        log_p_tilde: candidates.log_p_tilde.clone(),
        weights: place.tensor(weights, [rows, columns]),
    });
    Ok(candidates)
}

/// `log p~` of the rows, `[n, 1]`, and of their points forth and back, `[n, slices]`, with the graph.
fn parts(candidates: &Candidates, slices: usize) -> [Tensor<2>; 3] {
    [(0, 1), (1, slices), (1 + slices, slices)]
        .map(|(from, number)| candidates.log_p_tilde.clone().narrow(1, from, number))
}

/// `log p~` of a row and of its points forth and back, for every direction of every row.
fn triples(log_p: &LogWeights, slices: usize) -> impl Iterator<Item = [f64; 3]> {
    log_p.rows().flat_map(move |row| {
        (0..slices).map(move |slice| [row[0], row[1 + slice], row[1 + slices + slice]])
    })
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, number) = values.fold((0.0, 0.0), |(sum, number), value| (sum + value, number + 1.0));
    sum / number
}
