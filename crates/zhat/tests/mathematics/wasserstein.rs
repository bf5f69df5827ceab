//! Wasserstein distances: against all permutations, the sorted solution, another solver, and their own certificate.

use zhat::Error;
use zhat::evaluate::{match_points, sliced_wasserstein, wasserstein};
use zhat::watch::Watch;

use crate::support::rng;

/// Two sets of points with clusters, not quite the same.
fn clusters(number: usize, dimension: usize, seed: u64) -> [Vec<f32>; 2] {
    let rng = &mut rng(seed);
    let centres = rng.normals(5 * dimension);
    [0.0, 0.3].map(|shift| {
        let mut points = Vec::with_capacity(number * dimension);
        for _ in 0..number {
            let cluster = rng.index(5);
            let centre = &centres[cluster * dimension..][..dimension];
            let noise = rng.normals(dimension);
            points
                .extend(centre.iter().zip(noise).map(|(c, e)| (2.0 * c + 0.5 * e + shift) as f32));
        }
        points
    })
}

fn squared(x: &[f32], y: &[f32]) -> f64 {
    x.iter().zip(y).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
}

/// All `cost[i][j] = |x_i - y_j|^2`.
fn costs(x: &[f32], y: &[f32], dimension: usize) -> Vec<Vec<f64>> {
    let row = |x: &[f32]| y.chunks(dimension).map(|y| squared(x, y)).collect();
    x.chunks(dimension).map(row).collect()
}

/// The smallest sum over all permutations.
fn brute_force(costs: &[Vec<f64>], row: usize, taken: &mut Vec<bool>) -> f64 {
    if row == costs.len() {
        return 0.0;
    }
    let mut best = f64::INFINITY;
    for column in 0..costs.len() {
        if !taken[column] {
            taken[column] = true;
            best = best.min(costs[row][column] + brute_force(costs, row + 1, taken));
            taken[column] = false;
        }
    }
    best
}

/// The Hungarian method in its shortest form, O(n^3), with potentials of rows and columns counted from 1.
fn hungarian(costs: &[Vec<f64>]) -> f64 {
    let number = costs.len();
    let (mut u, mut v) = (vec![0.0; number + 1], vec![0.0; number + 1]);
    let mut row_of = vec![0; number + 1];
    for row in 1..=number {
        let (mut slack, mut from) = (vec![f64::INFINITY; number + 1], vec![0; number + 1]);
        let mut seen = vec![false; number + 1];
        let mut column = 0;
        row_of[0] = row;
        while row_of[column] != 0 {
            seen[column] = true;
            let (current, mut delta, mut next) = (row_of[column], f64::INFINITY, 0);
            for j in (1..=number).filter(|&j| !seen[j]) {
                let reduced = costs[current - 1][j - 1] - u[current] - v[j];
                if reduced < slack[j] {
                    (slack[j], from[j]) = (reduced, column);
                }
                if slack[j] < delta {
                    (delta, next) = (slack[j], j);
                }
            }
            for j in 0..=number {
                if seen[j] {
                    u[row_of[j]] += delta;
                    v[j] -= delta;
                } else {
                    slack[j] -= delta;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[from[column]];
            column = from[column];
        }
    }
    (1..=number).map(|j| costs[row_of[j] - 1][j - 1]).sum()
}

/// The matching is one, its distance is what it says, and its proof holds.
fn certified(x: &[f32], y: &[f32], dimension: usize) -> f64 {
    let number = x.len() / dimension;
    let matching = match_points(x, y, dimension, &Watch::default()).unwrap();
    let mut seen = vec![false; number];
    matching
        .partner
        .iter()
        .for_each(|&column| assert!(!std::mem::replace(&mut seen[column], true)));
    let points = x.chunks(dimension).zip(&matching.partner);
    let total: f64 = points.map(|(x, &at)| squared(x, &y[at * dimension..][..dimension])).sum();
    let distance = (total / number as f64).sqrt();
    assert!((matching.distance - distance).abs() <= 1e-12 * distance);
    let gap = matching.distance - matching.lower_bound;
    assert!((-1e-12 * distance..=1e-6 * distance).contains(&gap), "{distance}: gap {gap}");
    distance
}

#[test]
fn no_permutation_is_better_on_small_sets() {
    for dimension in [1, 2, 3, 6, 17, 43] {
        for number in 1..=7 {
            let [x, y] = clusters(number, dimension, (100 * dimension + number) as u64);
            let best = brute_force(&costs(&x, &y, dimension), 0, &mut vec![false; number]);
            let expected = (best / number as f64).sqrt();
            let found = wasserstein(&x, &y, dimension).unwrap();
            assert!((found - expected).abs() <= 1e-6 * expected, "{dimension}, {number}");
        }
    }
}

#[test]
fn in_one_dimension_the_sorted_points_are_partners() {
    for number in [31, 32, 33, 2000] {
        let [mut x, mut y] = clusters(number, 1, 3);
        let found = certified(&x, &y, 1);
        x.sort_by(f32::total_cmp);
        y.sort_by(f32::total_cmp);
        let expected = (squared(&x, &y) / number as f64).sqrt();
        assert!((found - expected).abs() <= 1e-6 * expected, "{number}: {found}, {expected}");
    }
}

#[test]
fn another_solver_and_the_dual_bound_agree_on_three_hundred_points() {
    for dimension in [2, 6, 43] {
        let [x, y] = clusters(300, dimension, 4);
        let expected = (hungarian(&costs(&x, &y, dimension)) / 300.0).sqrt();
        let found = certified(&x, &y, dimension);
        assert!((found - expected).abs() <= 1e-6 * expected, "{found}, {expected}");
    }
}

#[test]
fn many_points_are_matched_with_a_proof() {
    // More than a shortlist holds, so that rows are looked at again.
    for dimension in [2, 6, 43] {
        let [x, y] = clusters(2000, dimension, 5);
        certified(&x, &y, dimension);
    }
}

#[test]
fn ties_are_no_trouble() {
    for (number, dimension) in [(300, 2), (1500, 2), (1500, 3)] {
        let [x, y] = clusters(number, dimension, 6).map(|points| {
            points.into_iter().map(|value| (value / 2.0).round()).collect::<Vec<f32>>()
        });
        let found = certified(&x, &y, dimension);
        if number == 300 {
            let expected = (hungarian(&costs(&x, &y, dimension)) / 300.0).sqrt();
            assert!((found - expected).abs() <= 1e-6 * expected, "{found}, {expected}");
        }
    }
    // All points at two places: two thirds of the mass moves by 1.
    let x = [[0.0; 100], [0.0; 100], [1.0; 100]].concat();
    let y = [[1.0; 100], [1.0; 100], [1.0; 100]].concat();
    assert!((certified(&x, &y, 1) - (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
}

#[test]
fn the_same_points_in_any_order_are_at_distance_zero() {
    let [x, _] = clusters(500, 6, 7);
    let order = rng(8).permutation(500);
    let y: Vec<f32> = order.iter().flat_map(|&at| &x[6 * at..][..6]).copied().collect();
    assert_eq!(wasserstein(&x, &x, 6).unwrap(), 0.0);
    let matching = match_points(&x, &y, 6, &Watch::default()).unwrap();
    assert_eq!(matching.distance, 0.0);
    assert!(matching.partner.iter().enumerate().all(|(at, &partner)| order[partner] == at));
}

#[test]
fn a_shifted_set_is_as_far_as_the_shift() {
    let [x, _] = clusters(500, 3, 9);
    // On a grid of 1/1024 the sums are exact.
    let x: Vec<f32> = x.iter().map(|value| (value * 1024.0).round() / 1024.0).collect();
    let shift = [0.5, -1.25, 3.0];
    let order = rng(10).permutation(500);
    let y: Vec<f32> = order
        .iter()
        .flat_map(|&at| x[3 * at..][..3].iter().zip(shift).map(|(value, shift)| value + shift))
        .collect();
    let expected = squared(&shift, &[0.0; 3]).sqrt();
    assert_eq!(wasserstein(&x, &y, 3).unwrap(), expected);
}

#[test]
fn distances_are_symmetric_and_scale_with_the_points() {
    let [x, y] = clusters(200, 6, 11);
    let forwards = wasserstein(&x, &y, 6).unwrap();
    let backwards = wasserstein(&y, &x, 6).unwrap();
    assert!((forwards - backwards).abs() <= 1e-6 * forwards);
    // Squares of these are beyond the range of 32-bit floats.
    for factor in [1e-25f32, 1e25] {
        let [x, y] = [&x, &y].map(|set| set.iter().map(|value| value * factor).collect::<Vec<_>>());
        let scaled = wasserstein(&x, &y, 6).unwrap() / f64::from(factor);
        assert!((forwards - scaled).abs() <= 1e-6 * forwards, "{factor}: {scaled}");
    }
}

#[test]
fn a_watched_matching_makes_progress_and_can_be_stopped() {
    let [x, y] = clusters(500, 2, 12);
    let watch = Watch::default();
    match_points(&x, &y, 2, &watch).unwrap();
    assert!(2 * watch.done() > watch.total() && watch.done() <= watch.total());
    let stopped = Watch::default();
    stopped.stop();
    assert_eq!(match_points(&x, &y, 2, &stopped), Err(Error::Stopped));
    assert_eq!(stopped.done(), 0);
    // On the way: whoever stops it may come too late, but not ten times.
    let stopped_on_the_way = |_| {
        let watch = Watch::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while watch.done() == 0 {
                    std::thread::yield_now();
                }
                watch.stop();
            });
            match_points(&x, &y, 2, &watch) == Err(Error::Stopped)
        })
    };
    assert!((0..10).any(stopped_on_the_way));
}

#[test]
fn a_slice_along_the_only_line_is_the_distance_itself() {
    let [x, y] = clusters(400, 1, 13);
    let expected = wasserstein(&x, &y, 1).unwrap();
    let sliced = sliced_wasserstein(&x, &y, 1, 3, &mut rng(14)).unwrap();
    assert!((sliced - expected).abs() <= 1e-6 * expected);
    // Every point three times against the points themselves.
    let thrice = [y.clone(), y.clone(), y.clone()].concat();
    let unequal = sliced_wasserstein(&x, &thrice, 1, 3, &mut rng(14)).unwrap();
    assert!((unequal - expected).abs() <= 1e-6 * expected);
}

#[test]
fn a_sliced_shift_shrinks_with_the_square_root_of_the_dimension() {
    for dimension in [2, 10] {
        let [x, _] = clusters(300, dimension, 15);
        let y: Vec<f32> = x.iter().map(|value| value + 1.0).collect();
        // (theta . shift)^2 has mean |shift|^2 / d = 1 and variance 2 (d - 1) / (d + 2); three of its standard errors.
        let d = dimension as f64;
        let three = 3.0 * (2.0 * (d - 1.0) / (d + 2.0) / 2000.0).sqrt();
        let sliced = sliced_wasserstein(&x, &y, dimension, 2000, &mut rng(16)).unwrap();
        assert!((sliced.powi(2) - 1.0).abs() < three, "{dimension}: {sliced}");
        assert!(sliced <= wasserstein(&x, &y, dimension).unwrap());
    }
}

#[test]
fn bad_points_are_named() {
    let message = |x: &[f32], y: &[f32]| wasserstein(x, y, 2).unwrap_err().to_string();
    assert!(message(&[0.0; 4], &[0.0; 6]).contains("number of points of y is 3, but must be 2"));
    assert!(message(&[], &[0.0; 2]).contains("x is empty"));
    let y = [0.0, 0.0, 0.0, f32::NAN];
    assert!(message(&[0.0; 4], &y).contains("y is NaN at point 1, feature 1"));
    assert!(wasserstein(&[0.0], &[0.0], 0).unwrap_err().to_string().contains("dimension is 0"));
    let none = sliced_wasserstein(&[0.0], &[0.0], 1, 0, &mut rng(17));
    assert!(none.unwrap_err().to_string().contains("projections is 0"));
}
