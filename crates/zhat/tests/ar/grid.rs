//! Densities of two features summed over a grid.

use zhat::ar::Evaluator;

/// Grid of midpoints on `[-LIMIT, LIMIT]^2`.
const LIMIT: f32 = 15.0;
const POINTS: usize = 1000;

/// What sums over the grid say.
pub struct Quadrature {
    pub log_z: f64,
    /// Distribution functions of both marginals on the grid.
    pub marginals: [Vec<f64>; 2],
    pub outside: f64,
}

/// Of the density that an evaluator scores.
pub fn quadrature(evaluator: &Evaluator) -> Quadrature {
    let step = 2.0 * LIMIT / POINTS as f32;
    let at = |i: usize| -LIMIT + (i as f32 + 0.5) * step;
    let x: Vec<f32> = (0..POINTS * POINTS).flat_map(|i| [at(i / POINTS), at(i % POINTS)]).collect();
    let density: Vec<f64> = evaluator.score(&x).log_p_tilde.iter().map(|l| l.exp()).collect();
    let total: f64 = density.iter().sum();
    let mut marginals = [vec![0.0; POINTS], vec![0.0; POINTS]];
    let mut outside = 0.0;
    for (i, d) in density.iter().enumerate() {
        let (a, b) = (i / POINTS, i % POINTS);
        marginals[0][a] += d / total;
        marginals[1][b] += d / total;
        if [a, b].iter().any(|&i| !(20..POINTS - 20).contains(&i)) {
            outside += d / total;
        }
    }
    for marginal in &mut marginals {
        let mut sum = 0.0;
        marginal.iter_mut().for_each(|m| {
            sum += *m;
            *m = sum;
        });
    }
    Quadrature { log_z: (total * f64::from(step * step)).ln(), marginals, outside }
}

/// Largest distance of the distribution functions of a feature of the rows and of a marginal.
pub fn kolmogorov_smirnov(rows: &[f32], feature: usize, marginal: &[f64]) -> f64 {
    let mut values: Vec<f32> = rows.iter().skip(feature).step_by(2).copied().collect();
    values.sort_by(f32::total_cmp);
    let step = 2.0 * LIMIT / POINTS as f32;
    (0..POINTS)
        .map(|i| {
            let edge = -LIMIT + (i as f32 + 1.0) * step;
            let share = values.partition_point(|&v| v <= edge) as f64 / values.len() as f64;
            (share - marginal[i]).abs()
        })
        .fold(0.0, f64::max)
}

/// Distribution function and log-integral of one feature given that the other has a value, on the grid.
pub fn slice(evaluator: &Evaluator, given: usize, value: f32) -> (Vec<f64>, f64) {
    let step = 2.0 * LIMIT / POINTS as f32;
    let x: Vec<f32> = (0..POINTS)
        .flat_map(|i| {
            let free = -LIMIT + (i as f32 + 0.5) * step;
            if given == 0 { [value, free] } else { [free, value] }
        })
        .collect();
    let density: Vec<f64> = evaluator.score(&x).log_p_tilde.iter().map(|l| l.exp()).collect();
    let total: f64 = density.iter().sum();
    let mut sum = 0.0;
    let cumulative = density.iter().map(|d| {
        sum += d / total;
        sum
    });
    (cumulative.collect(), (total * f64::from(step)).ln())
}
