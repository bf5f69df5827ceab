//! A small classifier of two equal samples, judged by what it was not trained on: a ridge regression of the labels, by folds.

use rayon::prelude::*;
use zhat::rng::Stream;

/// Parts of which each is judged by what the others teach.
const FOLDS: usize = 5;
/// Mixed-up labels that the true ones are held against.
const PERMUTATIONS: usize = 199;

/// Inputs of two samples of equal size, the one after the other.
#[derive(Debug)]
pub(super) struct Discriminant {
    /// Point by point, `[2 n, inputs]`.
    points: Vec<f64>,
    inputs: usize,
    half: usize,
}

/// `sum x x^T` (its lower half) and `sum x y^T` over some points.
#[derive(Debug, Clone)]
struct Moments {
    squares: Vec<f64>,
    products: Vec<f64>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judged {
    /// Of every point, by a classifier that has not seen it: above 0 for the first sample.
    pub opinions: Vec<f64>,
    /// Share of points that are put into their own sample.
    pub accuracy: f64,
    /// Share of mixed-up labels, the true ones among them, that are found as often.
    pub p_value: f64,
}

impl Discriminant {
    /// From inputs with mean 0 and deviation 1, each with a value for all points.
    pub fn new(inputs: Vec<Vec<f64>>, half: usize) -> Self {
        let number = inputs.len();
        let mut points = vec![0.0; 2 * half * number];
        for (at, input) in inputs.iter().enumerate() {
            points.iter_mut().skip(at).step_by(number).zip(input).for_each(|(to, x)| *to = *x);
        }
        Self { points, inputs: number, half }
    }

    /// Trains on all folds but one, for each of them, with the true labels and with mixed-up ones: where the two samples are of one
    /// distribution, any order of the labels within a fold is as likely, and the p-value exact.
    pub fn judge(&self, rng: &mut Stream) -> Judged {
        let number = 2 * self.half;
        // As many points of either sample in each fold.
        let mut folds: Vec<Vec<usize>> = vec![Vec::new(); FOLDS.min(self.half)];
        for sample in 0..2 {
            for (at, point) in rng.permutation(self.half).into_iter().enumerate() {
                let fold = at % folds.len();
                folds[fold].push(sample * self.half + point);
            }
        }
        let truth: Vec<f64> =
            (0..number).map(|point| if point < self.half { 1.0 } else { -1.0 }).collect();
        let mut labels = vec![truth];
        for _ in 0..PERMUTATIONS {
            let mut mixed = labels[0].clone();
            for fold in &folds {
                for (at, from) in rng.permutation(fold.len()).into_iter().enumerate() {
                    mixed[fold[at]] = labels[0][fold[from]];
                }
            }
            labels.push(mixed);
        }
        let of_folds: Vec<Moments> =
            folds.par_iter().map(|fold| self.moments(fold, &labels)).collect();
        let mut all = of_folds[0].clone();
        for fold in &of_folds[1..] {
            all.squares.iter_mut().zip(&fold.squares).for_each(|(to, x)| *to += x);
            all.products.iter_mut().zip(&fold.products).for_each(|(to, x)| *to += x);
        }
        let judged: Vec<Vec<f64>> = folds
            .par_iter()
            .zip(&of_folds)
            .map(|(fold, own)| self.judge_fold(fold, own, &all, labels.len()))
            .collect();
        let mut right = vec![0.0; labels.len()];
        let mut opinions = vec![0.0; number];
        for (fold, judged) in folds.iter().zip(&judged) {
            for (&point, of_point) in fold.iter().zip(judged.chunks_exact(labels.len())) {
                opinions[point] = of_point[0];
                for ((right, opinion), labels) in right.iter_mut().zip(of_point).zip(&labels) {
                    let agrees = opinion * labels[point];
                    *right +=
                        if agrees > 0.0 { 1.0 } else { f64::from(u8::from(agrees == 0.0)) / 2.0 };
                }
            }
        }
        let as_often = right.iter().filter(|other| **other >= right[0]).count();
        Judged {
            opinions,
            accuracy: right[0] / number as f64,
            p_value: as_often as f64 / labels.len() as f64,
        }
    }

    fn point(&self, point: usize) -> &[f64] {
        &self.points[point * self.inputs..][..self.inputs]
    }

    fn moments(&self, fold: &[usize], labels: &[Vec<f64>]) -> Moments {
        let inputs = self.inputs;
        let mut squares = vec![0.0; inputs * inputs];
        let mut products = vec![0.0; inputs * labels.len()];
        for &point in fold {
            let x = self.point(point);
            let y: Vec<f64> = labels.iter().map(|labels| labels[point]).collect();
            for (i, &of_input) in x.iter().enumerate() {
                let row = &mut squares[i * inputs..][..=i];
                row.iter_mut().zip(x).for_each(|(to, x)| *to += of_input * x);
                let row = &mut products[i * labels.len()..][..labels.len()];
                row.iter_mut().zip(&y).for_each(|(to, y)| *to += of_input * y);
            }
        }
        Moments { squares, products }
    }

    /// What the other folds make of the points of one, for every set of labels.
    fn judge_fold(&self, fold: &[usize], own: &Moments, all: &Moments, sets: usize) -> Vec<f64> {
        let inputs = self.inputs;
        let mut factor: Vec<f64> =
            all.squares.iter().zip(&own.squares).map(|(all, own)| all - own).collect();
        // A ridge as if all coefficients together explained as much as there is to explain: with few points they stay small.
        (0..inputs).for_each(|i| factor[i * inputs + i] += inputs as f64);
        cholesky(&mut factor, inputs);
        let mut solved: Vec<f64> =
            all.products.iter().zip(&own.products).map(|(all, own)| all - own).collect();
        solve(&factor, inputs, &mut solved, sets);
        let mut judged = vec![0.0; fold.len() * sets];
        for (&point, judged) in fold.iter().zip(judged.chunks_exact_mut(sets)) {
            for (&x, coefficients) in self.point(point).iter().zip(solved.chunks_exact(sets)) {
                judged.iter_mut().zip(coefficients).for_each(|(to, c)| *to += x * c);
            }
        }
        judged
    }
}

/// The lower factor of a positive definite matrix, in the place of its lower half.
fn cholesky(matrix: &mut [f64], size: usize) {
    for i in 0..size {
        let (before, from_i) = matrix.split_at_mut(i * size);
        let row_i = &mut from_i[..=i];
        for j in 0..i {
            let row_j = &before[j * size..][..=j];
            let dot: f64 = row_i[..j].iter().zip(row_j).map(|(a, b)| a * b).sum();
            row_i[j] = (row_i[j] - dot) / row_j[j];
        }
        let dot: f64 = row_i[..i].iter().map(|a| a * a).sum();
        row_i[i] = (row_i[i] - dot).sqrt();
    }
}

/// The `X` of `L L^T X = B`, in its place; `sets` columns.
fn solve(factor: &[f64], size: usize, b: &mut [f64], sets: usize) {
    let eliminate = |b: &mut [f64], i: usize, others: &mut dyn Iterator<Item = (usize, f64)>| {
        let mut row = b[i * sets..][..sets].to_vec();
        for (j, entry) in others {
            row.iter_mut().zip(&b[j * sets..][..sets]).for_each(|(to, x)| *to -= entry * x);
        }
        let pivot = factor[i * size + i];
        b[i * sets..][..sets].iter_mut().zip(row).for_each(|(to, x)| *to = x / pivot);
    };
    for i in 0..size {
        eliminate(b, i, &mut (0..i).map(|j| (j, factor[i * size + j])));
    }
    for i in (0..size).rev() {
        eliminate(b, i, &mut (i + 1..size).map(|j| (j, factor[j * size + i])));
    }
}

#[cfg(test)]
mod tests {
    use zhat::rng::Streams;

    use super::*;

    fn judge(seed: u64, half: usize, inputs: usize, shift: f64) -> Judged {
        let mut rng = Streams::new(seed).stream("samples", 0, 0);
        let mut of_input = |shift: f64| -> Vec<f64> {
            (0..2 * half)
                .map(|i| rng.normal() + if i < half { 0.5 * shift } else { -0.5 * shift })
                .collect()
        };
        let inputs = (0..inputs).map(|at| of_input(if at == 0 { shift } else { 0.0 })).collect();
        Discriminant::new(inputs, half).judge(&mut Streams::new(seed).stream("folds", 0, 0))
    }

    #[test]
    fn two_samples_of_one_distribution_have_uniform_p_values() {
        // Thirty inputs of a hundred points: the classifier learns its training points by heart, and must not profit.
        let mut p_values: Vec<f64> =
            (0..100).map(|seed| judge(seed, 50, 30, 0.0).p_value).collect();
        p_values.sort_unstable_by(f64::total_cmp);
        let apart = |(rank, p): (usize, &f64)| (p - rank as f64 / 100.0).abs();
        let distance = p_values.iter().enumerate().map(apart).fold(0.0, f64::max);
        // 0.163 at the level 0.01, and 0.01 for the steps of the p-values.
        assert!(distance < 0.173, "{distance} {p_values:?}");
    }

    #[test]
    fn a_shift_is_found_as_often_as_it_can_be() {
        let found = judge(3, 2000, 5, 1.0);
        // The best that can be done is Phi(1 / 2) = 0.6915, here within three standard errors.
        assert!((found.accuracy - 0.6915).abs() < 0.022, "{}", found.accuracy);
        assert!(found.p_value < 0.006);
        let right = found.opinions[..2000].iter().filter(|opinion| **opinion > 0.0).count();
        assert!(right > 1300, "opinions are in the order of the points: {right}");
    }

    #[test]
    fn factors_solve_what_they_are_factors_of() {
        let mut matrix = vec![4.0, 0.0, 0.0, 2.0, 5.0, 0.0, -1.0, 1.0, 3.0];
        cholesky(&mut matrix, 3);
        let mut b = vec![5.0, 1.0, 8.0, 0.0, 3.0, 0.0];
        solve(&matrix, 3, &mut b, 2);
        // The first right side is that of (1, 1, 1).
        assert!(b.iter().step_by(2).all(|x| (x - 1.0).abs() < 1e-12), "{b:?}");
    }
}
