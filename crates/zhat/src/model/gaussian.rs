//! Gaussian densities, as models to be estimated and as proposals to draw from.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::node::{self, Energy};
use super::{UnnormalisedModel, parameter};
use crate::error::{Error, Result};
use crate::host::{Place, to_host};
use crate::linalg;
use crate::proposal::Proposal;
use crate::rng::Stream;

const LOG_2_PI: f64 = 1.8378770664093453;

/// `N(mu, diag(s^2))`, with `mu` and `s` as parameters.
///
/// As a model it is unnormalised, `log p~ = -1/2 sum_i ((x_i - mu_i) / s_i)^2`, unless
/// [`normalised`](Self::normalised) is called.
#[derive(Module, Debug)]
pub struct DiagonalGaussian {
    mean: Param<Tensor<1>>,
    std_dev: Param<Tensor<1>>,
    subtract_log_z: bool,
}

impl DiagonalGaussian {
    /// From a mean `mu` and standard deviations `s`, which must not be zero.
    pub fn new(mean: &[f64], std_dev: &[f64], device: &Device) -> Result<Self> {
        assert_eq!(mean.len(), std_dev.len(), "one standard deviation for each mean");
        if let Some(bad) = std_dev.iter().find(|s| !s.is_finite() || **s == 0.0) {
            return Err(Error::setting("std_dev", bad, "finite and not zero"));
        }
        let shape = [mean.len()];
        Ok(Self {
            mean: parameter(mean.to_vec(), shape, device),
            std_dev: parameter(std_dev.to_vec(), shape, device),
            subtract_log_z: false,
        })
    }

    /// The standard normal distribution of a dimension.
    pub fn standard(dimension: usize, device: &Device) -> Self {
        Self::new(&vec![0.0; dimension], &vec![1.0; dimension], device).expect("unit scale")
    }

    /// With the mean and the standard deviations of the columns of `data`.
    ///
    /// # Shapes
    /// - `data`: `[n, d]`
    pub fn fitted(data: &Tensor<2>) -> Result<Self> {
        let (mean, std_dev) = linalg::column_moments(&to_host(data), data.dims()[1]);
        Self::new(&mean, &std_dev, &data.device().inner())
    }

    /// The same density with `log Z` subtracted, so that `log_p_tilde` is the log-density.
    pub fn normalised(self) -> Self {
        Self { subtract_log_z: true, ..self }
    }

    /// The mean, on the host.
    pub fn mean(&self) -> Vec<f64> {
        to_host(&self.mean.val())
    }

    /// The standard deviations, on the host.
    pub fn std_dev(&self) -> Vec<f64> {
        to_host(&self.std_dev.val()).into_iter().map(f64::abs).collect()
    }

    /// `log Z = d/2 log(2 pi) + sum_i log |s_i|` of the unnormalised form.
    ///
    /// # Shapes
    /// - output: `[1]`
    pub fn log_z(&self) -> Tensor<1> {
        let std_dev = self.std_dev.val();
        let constant = 0.5 * LOG_2_PI * std_dev.dims()[0] as f64;
        std_dev.abs().log().sum() + constant
    }

    fn log_density(&self, x: Tensor<2>, subtract_log_z: bool) -> Tensor<1> {
        let energy = DiagonalEnergy { subtract_log_z };
        if let Some(value) = node::evaluate(energy, &x, [self.mean.val(), self.std_dev.val()]) {
            return value;
        }
        let z = (x - self.mean.val().unsqueeze()) / self.std_dev.val().unsqueeze();
        let value = z.square().sum_dim(1).squeeze_dim::<1>(1) * -0.5;
        if subtract_log_z { value - self.log_z() } else { value }
    }
}

impl UnnormalisedModel for DiagonalGaussian {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        self.log_density(x, self.subtract_log_z)
    }
}

impl Proposal for DiagonalGaussian {
    fn sample(&self, number: usize, place: &Place, rng: &mut Stream) -> Tensor<2> {
        let (mean, std_dev) = (self.mean(), self.std_dev());
        let mut values = Vec::with_capacity(number * mean.len());
        for _ in 0..number {
            values.extend(mean.iter().zip(&std_dev).map(|(mean, s)| mean + s * rng.normal()));
        }
        place.tensor(values, [number, mean.len()])
    }

    fn log_prob(&self, x: Tensor<2>) -> Tensor<1> {
        self.log_density(x, true)
    }

    fn log_prob_values(&self, x: &Tensor<2>) -> Vec<f64> {
        let (mean, std_dev) = (self.mean(), self.std_dev());
        let log_z =
            0.5 * LOG_2_PI * mean.len() as f64 + std_dev.iter().map(|s| s.ln()).sum::<f64>();
        let square = |((x, mean), s): ((&f64, &f64), &f64)| ((x - mean) / s).powi(2);
        let rows = to_host(x);
        let rows = rows.chunks_exact(mean.len());
        rows.map(|row| -0.5 * row.iter().zip(&mean).zip(&std_dev).map(square).sum::<f64>() - log_z)
            .collect()
    }
}

/// The formula on numbers; the parameters are `mu` and `s`.
#[derive(Debug, Clone)]
struct DiagonalEnergy {
    subtract_log_z: bool,
}

impl Energy<2> for DiagonalEnergy {
    fn evaluate(&self, x: &[f32], [mean, std_dev]: [&[f32]; 2], log_p_tilde: &mut Vec<f32>) {
        let log_z = match self.subtract_log_z {
            true => std_dev.iter().map(|s| s.abs().ln() + 0.5 * LOG_2_PI as f32).sum::<f32>(),
            false => 0.0,
        };
        let precision: Vec<f32> = std_dev.iter().map(|s| 1.0 / (s * s)).collect();
        log_p_tilde.extend(x.chunks_exact(mean.len()).map(|row| {
            let square = |((x, mean), a): ((&f32, &f32), &f32)| (x - mean).powi(2) * a;
            -0.5 * row.iter().zip(mean).zip(&precision).map(square).sum::<f32>() - log_z
        }));
    }

    /// `(x - mu) / s^2` and `(x - mu)^2 / s^3`, less `1 / s` where `log Z` is subtracted.
    fn differentiate(
        &self,
        x: &[f32],
        [mean, std_dev]: [&[f32]; 2],
        c: &[f32],
        [by_mean, by_std_dev]: [&mut [f64]; 2],
    ) {
        let dimension = mean.len();
        for (row, c) in x.chunks_exact(dimension).zip(c) {
            for i in 0..dimension {
                let difference = f64::from(row[i] - mean[i]);
                let weighted = f64::from(*c) * difference;
                by_mean[i] += weighted;
                by_std_dev[i] += weighted * difference;
            }
        }
        let total: f64 = c.iter().map(|c| f64::from(*c)).sum();
        for i in 0..dimension {
            let s = f64::from(std_dev[i]);
            by_mean[i] /= s * s;
            by_std_dev[i] /= s * s * s;
            if self.subtract_log_z {
                by_std_dev[i] -= total / s;
            }
        }
    }
}

/// `N(mu, L L^T)` with the mean `mu` and the Cholesky factor `L` as parameters.
///
/// As a model it is unnormalised, `log p~ = -1/2 |L^-1 (x - mu)|^2`, unless [`normalised`](Self::normalised) is called.
/// The parameter is the factor's inverse `L^-1`, so that the density needs no triangular solve.
#[derive(Module, Debug)]
pub struct FullGaussian {
    mean: Param<Tensor<1>>,
    /// `L^-1`, of which only the lower triangle is used.
    inverse_factor: Param<Tensor<2>>,
    subtract_log_z: bool,
}

impl FullGaussian {
    /// From a mean and a covariance matrix (row-major, `d * d` values).
    pub fn new(mean: &[f64], covariance: &[f64], device: &Device) -> Result<Self> {
        let dimension = mean.len();
        assert_eq!(covariance.len(), dimension * dimension, "a square covariance matrix");
        let factor = linalg::cholesky(covariance, dimension, "the Gaussian")?;
        let inverse = linalg::invert_lower(&factor, dimension);
        Ok(Self {
            mean: parameter(mean.to_vec(), [dimension], device),
            inverse_factor: parameter(inverse, [dimension, dimension], device),
            subtract_log_z: false,
        })
    }

    /// With the mean and the covariance of the rows of `data`.
    ///
    /// # Shapes
    /// - `data`: `[n, d]`
    pub fn fitted(data: &Tensor<2>) -> Result<Self> {
        let (values, dimension) = (to_host(data), data.dims()[1]);
        let (mean, _) = linalg::column_moments(&values, dimension);
        let covariance = linalg::covariance(&values, &mean);
        Self::new(&mean, &covariance, &data.device().inner())
    }

    /// The same density with `log Z` subtracted, so that `log_p_tilde` is the log-density.
    pub fn normalised(self) -> Self {
        Self { subtract_log_z: true, ..self }
    }

    /// `log Z = d/2 log(2 pi) + log |det L|` of the unnormalised form.
    ///
    /// # Shapes
    /// - output: `[1]`
    pub fn log_z(&self) -> Tensor<1> {
        let diagonal = self.inverse_factor.val().tril(0).triu(0).sum_dim(1);
        let dimension = diagonal.dims()[0] as f64;
        diagonal.abs().log().sum().neg() + 0.5 * LOG_2_PI * dimension
    }

    fn unnormalised(&self, x: Tensor<2>) -> Tensor<1> {
        let inverse = self.inverse_factor.val().tril(0);
        let z = (x - self.mean.val().unsqueeze()).matmul(inverse.transpose());
        z.square().sum_dim(1).squeeze_dim::<1>(1) * -0.5
    }
}

impl UnnormalisedModel for FullGaussian {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        let log_p_tilde = self.unnormalised(x);
        if self.subtract_log_z { log_p_tilde - self.log_z() } else { log_p_tilde }
    }
}

impl Proposal for FullGaussian {
    fn sample(&self, number: usize, place: &Place, rng: &mut Stream) -> Tensor<2> {
        let mean = to_host(&self.mean.val());
        let dimension = mean.len();
        let factor = linalg::invert_lower(&to_host(&self.inverse_factor.val()), dimension);
        let mut values = Vec::with_capacity(number * dimension);
        for _ in 0..number {
            let z = rng.normals(dimension);
            values.extend((0..dimension).map(|i| {
                let row = &factor[i * dimension..=i * dimension + i];
                mean[i] + row.iter().zip(&z).map(|(l, z)| l * z).sum::<f64>()
            }));
        }
        place.tensor(values, [number, dimension])
    }

    fn log_prob(&self, x: Tensor<2>) -> Tensor<1> {
        self.unnormalised(x) - self.log_z()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and covariance of an asymmetric, correlated example.
    const MEAN: [f64; 2] = [1.0, -2.0];
    const COVARIANCE: [f64; 4] = [2.0, 0.6, 0.6, 0.5];

    /// The textbook formula, with the 2 x 2 inverse written out.
    fn log_density(x: [f64; 2], mean: [f64; 2], covariance: [f64; 4]) -> f64 {
        let [a, b, _, c] = covariance;
        let determinant = a * c - b * b;
        let (u, v) = (x[0] - mean[0], x[1] - mean[1]);
        let quadratic = (c * u * u - 2.0 * b * u * v + a * v * v) / determinant;
        -0.5 * quadratic - 0.5 * determinant.ln() - LOG_2_PI
    }

    #[test]
    fn densities_match_the_textbook_formula() {
        let device = Device::flex();
        let points = [[0.0, 0.0], [1.5, -2.5], [-3.0, 4.0]];
        let x: Tensor<2> = Place::new(&device).tensor(points.concat(), [3, 2]);
        let full = FullGaussian::new(&MEAN, &COVARIANCE, &device).unwrap();
        let diagonal =
            DiagonalGaussian::new(&MEAN, &[2f64.sqrt(), 0.5f64.sqrt()], &device).unwrap();
        let computed = [to_host(&full.log_prob(x.clone())), to_host(&diagonal.log_prob(x.clone()))];
        for (i, &point) in points.iter().enumerate() {
            assert!((computed[0][i] - log_density(point, MEAN, COVARIANCE)).abs() < 1e-4);
            assert!((computed[1][i] - log_density(point, MEAN, [2.0, 0.0, 0.0, 0.5])).abs() < 1e-4);
        }
        let log_p = to_host(&full.normalised().log_p_tilde(x.clone()));
        assert_eq!(log_p, computed[0]);
        assert_eq!(to_host(&diagonal.normalised().log_p_tilde(x)), computed[1]);
    }

    #[test]
    fn draws_have_the_mean_and_the_covariance() {
        let device = Device::flex();
        let full = FullGaussian::new(&MEAN, &COVARIANCE, &device).unwrap();
        let number = 40_000;
        let rng = &mut crate::rng::Streams::new(5).stream("test", 0, 0);
        let values = to_host(&full.sample(number, &Place::new(&device), rng));
        let (mean, _) = linalg::column_moments(&values, 2);
        let covariance = linalg::covariance(&values, &mean);
        // 4.5 standard errors of a mean (sigma / sqrt n) and of a covariance (sqrt((s_ii s_jj + s_ij^2) / n)).
        let root = (number as f64).sqrt();
        for i in 0..2 {
            assert!((mean[i] - MEAN[i]).abs() < 4.5 * COVARIANCE[3 * i].sqrt() / root);
            for j in 0..2 {
                let spread = COVARIANCE[3 * i] * COVARIANCE[3 * j] + COVARIANCE[2 * i + j].powi(2);
                let difference = covariance[2 * i + j] - COVARIANCE[2 * i + j];
                assert!(difference.abs() < 4.5 * spread.sqrt() / root);
            }
        }
    }

    #[test]
    fn one_node_gives_what_tensor_operations_give() {
        let device = Device::flex().autodiff();
        let points = vec![0.0, 0.3, 1.5, -2.5, -3.0, 4.0];
        let x: Tensor<2> = Place::new(&device).tensor(points, [3, 2]);
        // A negative scale is allowed: only its size has a meaning.
        let gaussian = DiagonalGaussian::new(&MEAN, &[1.4, -0.7], &device).unwrap();
        for gaussian in [gaussian.clone(), gaussian.clone().normalised()] {
            // A tracked `x` takes the way of tensor operations.
            let ways = [x.clone(), x.clone().autodiff().require_grad()];
            let [node, operations] = ways.map(|x| {
                let value = gaussian.log_p_tilde(x);
                let gradients = value.clone().square().sum().backward();
                let parameters = [&gaussian.mean, &gaussian.std_dev];
                let [mean, std_dev] =
                    parameters.map(|p| to_host(&p.val().grad(&gradients).unwrap()));
                [to_host(&value), mean, std_dev].concat()
            });
            for (a, b) in node.iter().zip(operations) {
                assert!((a - b).abs() < 1e-5 * b.abs().max(1.0), "{a} against {b}");
            }
        }
        let values = gaussian.log_prob_values(&x);
        for (a, b) in values.iter().zip(to_host(&gaussian.log_prob(x))) {
            assert!((a - b).abs() < 1e-5 * b.abs().max(1.0), "{a} against {b}");
        }
    }

    #[test]
    fn a_singular_covariance_is_refused_with_advice() {
        let error =
            FullGaussian::new(&[0.0, 0.0], &[1.0, 1.0, 1.0, 1.0], &Device::flex()).unwrap_err();
        assert!(error.to_string().contains("constant or duplicated columns"));
        assert!(DiagonalGaussian::new(&[0.0], &[0.0], &Device::flex()).is_err());
    }
}
