//! Fixed nodes for integrals against the base: on every normal of a mixture Gauss and Hermite's rule where few are needed, and
//! equal steps where many are; Gauss and Legendre's between the knots of a spline.
//!
//! Energies may have kinks, at which a rule is as good as its steps are short: those of Gauss and Hermite's shrink with the root
//! of the number of nodes, equal ones with the number, and a smooth function they integrate against a normal as well.

use std::sync::OnceLock;

/// Numbers of nodes to choose from.
const LADDER: [usize; 7] = [1, 2, 4, 7, 12, 20, 32];

/// How many nodes an integral has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// For validation while training.
    Coarse,
    /// For results; what it gains over the coarse rule bounds its own error.
    Fine,
}

impl Rule {
    /// Nodes for a normal of some scale that has a share of the mass: fewer where it is narrow against what is integrated, or
    /// where little depends on it.
    pub fn nodes(self, share: f32, scale: f32) -> usize {
        let by_scale = match scale {
            s if s < 0.02 => 1,
            s if s < 0.1 => 2,
            s if s < 0.4 => 3,
            _ => 4,
        };
        let by_share = match share {
            s if s < 1e-5 => 3,
            s if s < 1e-3 => 2,
            s if s < 3e-2 => 1,
            _ => 0,
        };
        let level = (by_scale as usize).saturating_sub(by_share);
        LADDER[level + usize::from(self == Self::Fine)]
    }

    /// Nodes in a piece of a cell that is so wide.
    pub fn cell_nodes(self, wide: f32) -> usize {
        let level = match wide {
            w if w < 0.02 => 0,
            w if w < 0.1 => 1,
            _ => 2,
        };
        [1, 2, 3, 5][level + usize::from(self == Self::Fine)]
    }

    /// Nodes in a piece of a spline that has a share of the mass.
    pub fn spline_nodes(self, share: f32) -> usize {
        let level = if share < 3e-5 {
            0
        } else if share < 3e-3 {
            1
        } else {
            2
        };
        [1, 2, 3, 5][level + usize::from(self == Self::Fine)]
    }
}

/// How far out equal steps go, for numbers of nodes from which on they are taken: what is left out is a ten-thousandth of the mass
/// or less, while the steps are short.
const EQUAL_STEPS: [(usize, f64); 3] = [(12, 3.4), (20, 3.9), (32, 4.3)];

/// Points and weights of `E[f(u)]` times two for `u` uniform between -1 and 1.
pub fn legendre_nodes(number: usize) -> &'static [[f32; 2]] {
    match number {
        1 => &[[0.0, 2.0]],
        2 => &[[-0.577_350_26, 1.0], [0.577_350_26, 1.0]],
        3 => &[[-0.774_596_7, 0.555_555_6], [0.0, 0.888_888_9], [0.774_596_7, 0.555_555_6]],
        _ => &[
            [-0.906_179_85, 0.236_926_88],
            [-0.538_469_3, 0.478_628_67],
            [0.0, 0.568_888_9],
            [0.538_469_3, 0.478_628_67],
            [0.906_179_85, 0.236_926_88],
        ],
    }
}

/// Points and weights of `E[f(z)]` for a standard normal `z`, for a number of nodes of the ladder.
pub fn normal_nodes(number: usize) -> &'static [[f32; 2]] {
    static NODES: OnceLock<Vec<Vec<[f32; 2]>>> = OnceLock::new();
    let nodes = NODES.get_or_init(|| LADDER.iter().map(|&number| rule(number)).collect());
    let index = LADDER.iter().position(|&on| on == number).expect("a number of the ladder");
    &nodes[index]
}

fn rule(number: usize) -> Vec<[f32; 2]> {
    match EQUAL_STEPS.iter().find(|(on, _)| *on == number) {
        Some(&(_, reach)) => equal_steps(number, reach),
        None => gauss_hermite(number),
    }
}

/// Points at equal steps from minus to plus `reach`, weighted by the density.
fn equal_steps(number: usize, reach: f64) -> Vec<[f32; 2]> {
    let at = |point: usize| reach * (2.0 * point as f64 / (number - 1) as f64 - 1.0);
    let density = |point: usize| (-0.5 * at(point) * at(point)).exp();
    let total: f64 = (0..number).map(density).sum();
    (0..number).map(|point| [at(point) as f32, (density(point) / total) as f32]).collect()
}

/// Zeros of the Hermite polynomial of this degree, between those of the one before, and their weights.
fn gauss_hermite(number: usize) -> Vec<[f32; 2]> {
    // Orthonormal for the standard normal: h_{k+1} = (x h_k - sqrt(k) h_{k-1}) / sqrt(k + 1).
    let polynomials = |x: f64, degree: usize| {
        let (mut before, mut last, mut squares) = (0.0, 1.0, 1.0);
        for k in 0..degree {
            let next = (x * last - (k as f64).sqrt() * before) / ((k + 1) as f64).sqrt();
            (before, last) = (last, next);
            if k + 1 < degree {
                squares += next * next;
            }
        }
        (last, squares)
    };
    let mut zeros: Vec<f64> = Vec::new();
    for degree in 1..=number {
        let edge = 2.0 * (degree as f64).sqrt() + 1.0;
        let bounds = [vec![-edge], zeros, vec![edge]].concat();
        zeros = bounds
            .windows(2)
            .map(|pair| {
                let (mut low, mut high) = (pair[0], pair[1]);
                let sign = polynomials(low, degree).0.signum();
                for _ in 0..100 {
                    let middle = 0.5 * (low + high);
                    if polynomials(middle, degree).0.signum() == sign {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                0.5 * (low + high)
            })
            .collect();
    }
    let node = |&x: &f64| [x as f32, (1.0 / polynomials(x, number).1) as f32];
    zeros.iter().map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integral(number: usize, f: impl Fn(f64) -> f64) -> f64 {
        normal_nodes(number).iter().map(|&[x, w]| f64::from(w) * f(f64::from(x))).sum()
    }

    #[test]
    fn few_nodes_are_exact_for_moments_up_to_twice_their_number() {
        for number in [1, 2, 4, 7] {
            let (mut moment, mut expected) = (0, 1.0);
            while moment < 2 * number && moment <= 10 {
                let sum = integral(number, |x| x.powi(moment as i32));
                let wrong = (sum - expected).abs();
                assert!(wrong < 1e-4 * (1.0 + expected), "{number} {moment} {sum}");
                moment += 2;
                expected *= (moment - 1) as f64;
            }
        }
    }

    #[test]
    fn many_nodes_are_right_for_waves_and_for_kinks() {
        for (number, smooth, kinked) in [(12, 2e-3, 0.02), (20, 3e-4, 0.008), (32, 1e-4, 0.004)] {
            // E[cos(k z)] = exp(-k^2 / 2).
            for k in [0.0f64, 0.5, 1.0, 2.0] {
                let wrong = integral(number, |z| (k * z).cos()) - (-0.5 * k * k).exp();
                assert!(wrong.abs() < smooth, "{number} {k} {wrong}");
            }
            // E|z| = sqrt(2 / pi): a kink in the middle, where Gauss and Hermite's rule is 1 / (4 n) off.
            let wrong = integral(number, f64::abs) - (2.0 / std::f64::consts::PI).sqrt();
            assert!(wrong.abs() < kinked, "{number} {wrong}");
        }
    }
}
