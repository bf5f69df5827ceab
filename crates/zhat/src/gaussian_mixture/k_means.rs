//! Where EM begins: centres far from each other, moved by a few rounds of k-means.

use rayon::prelude::*;

use super::kernels::{LANES, Tiles, squared_distances};
use crate::rng::Stream;

/// Rounds of Lloyd's algorithm: EM itself moves the centres from there on.
const MOST_ROUNDS: usize = 50;

/// Tiles that one thread takes at a time.
const SHARE: usize = 64;

/// The centres, and which of them is the nearest to each row; fewer than asked for if there are fewer distinct rows.
pub struct Clusters {
    /// `[k, features]`, row-major
    pub centres: Vec<f64>,
    /// One for every row.
    pub labels: Vec<usize>,
}

/// Greedy k-means++ (Arthur and Vassilvitskii 2007; the best of `2 + ln k` draws for each centre), then Lloyd's algorithm.
pub fn clusters(tiles: &Tiles, features: usize, number: usize, rng: &mut Stream) -> Clusters {
    let mut centres = plus_plus(tiles, number, rng);
    let mut labels = nearest(tiles, &centres, features);
    for _ in 0..MOST_ROUNDS {
        centres = means(tiles, &centres, &labels, features);
        let moved = nearest(tiles, &centres, features);
        if moved == labels {
            break;
        }
        labels = moved;
    }
    Clusters { centres, labels }
}

fn plus_plus(tiles: &Tiles, number: usize, rng: &mut Stream) -> Vec<f64> {
    let trials = 2 + (number as f64).ln() as usize;
    let first: Vec<f64> = tiles.row(rng.index(tiles.rows())).collect();
    let mut closest = distances(tiles, &first);
    let mut centres = first;
    for _ in 1..number {
        let total: f64 = closest.iter().sum();
        if total <= 0.0 {
            break;
        }
        let best = (0..trials)
            .map(|_| {
                let row = draw(&closest, rng.uniform() * total);
                let centre: Vec<f64> = tiles.row(row).collect();
                let mut left = distances(tiles, &centre);
                for (left, closest) in left.iter_mut().zip(&closest) {
                    *left = left.min(*closest);
                }
                (left.iter().sum::<f64>(), left, centre)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .expect("at least two trials");
        closest = best.1;
        centres.extend(best.2);
    }
    centres
}

/// The row at which the sum of the masses passes a point.
fn draw(masses: &[f64], point: f64) -> usize {
    let mut left = point;
    for (row, mass) in masses.iter().enumerate() {
        left -= mass;
        if left < 0.0 {
            return row;
        }
    }
    masses.iter().rposition(|&mass| mass > 0.0).expect("the masses have a positive sum")
}

fn distances(tiles: &Tiles, centre: &[f64]) -> Vec<f64> {
    let of_tile = |tile: usize| {
        let mut squares = [0.0; LANES];
        squared_distances(tiles.tile(tile), centre, &mut squares);
        squares.into_iter().take(tiles.rows_of(tile))
    };
    (0..tiles.number()).into_par_iter().with_min_len(SHARE).flat_map_iter(of_tile).collect()
}

fn nearest(tiles: &Tiles, centres: &[f64], features: usize) -> Vec<usize> {
    let of_tile = |tile: usize| {
        let mut best = [(f64::INFINITY, 0); LANES];
        let mut squares = [0.0; LANES];
        for (index, centre) in centres.chunks_exact(features).enumerate() {
            squared_distances(tiles.tile(tile), centre, &mut squares);
            for (best, square) in best.iter_mut().zip(squares) {
                if square < best.0 {
                    *best = (square, index);
                }
            }
        }
        best.into_iter().take(tiles.rows_of(tile)).map(|(_, index)| index)
    };
    (0..tiles.number()).into_par_iter().with_min_len(SHARE).flat_map_iter(of_tile).collect()
}

/// The mean of the rows of every centre; a centre without rows stays where it is.
fn means(tiles: &Tiles, centres: &[f64], labels: &[usize], features: usize) -> Vec<f64> {
    let mut sums = vec![0.0; centres.len()];
    let mut counts = vec![0.0; centres.len() / features];
    for (row, &label) in labels.iter().enumerate() {
        counts[label] += 1.0;
        for (sum, value) in sums[label * features..].iter_mut().zip(tiles.row(row)) {
            *sum += value;
        }
    }
    for ((sums, &count), centre) in
        sums.chunks_exact_mut(features).zip(&counts).zip(centres.chunks_exact(features))
    {
        if count == 0.0 {
            sums.copy_from_slice(centre);
        } else {
            sums.iter_mut().for_each(|sum| *sum /= count);
        }
    }
    sums
}
