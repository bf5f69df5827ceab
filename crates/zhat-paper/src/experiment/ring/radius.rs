//! Exact draws from the ring model: the radius has density `r^4 exp(-(r - mu)^2 / (2 sigma^2))` in five dimensions.

use zhat::rng::Stream;

/// A ring of radius `mu` and width `sigma` in `DIMENSION` dimensions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ring {
    radius: f64,
    std_dev: f64,
}

impl Ring {
    /// The ring with `log p~(x) = -(||x|| - mu)^2 / (2 sigma^2)`.
    pub fn new(radius: f64, std_dev: f64) -> Self {
        Self { radius, std_dev }
    }

    /// A draw of `||x||`.
    ///
    /// The log-density is concave, and below that of `N(r*, sigma^2)` around its mode `r*` by
    /// `4 [log(r/r*) - (r - r*)/r*]`: a draw from the Gaussian is accepted with that probability, which is exact.
    pub fn radius(&self, rng: &mut Stream) -> f64 {
        let power = (super::DIMENSION - 1) as f64;
        let spread = 4.0 * power * self.std_dev * self.std_dev;
        let mode = 0.5 * (self.radius + (self.radius * self.radius + spread).sqrt());
        loop {
            let radius = mode + self.std_dev * rng.normal();
            let log_acceptance = power * ((radius / mode).ln() - (radius - mode) / mode);
            // The logarithm of a negative radius is not a number, which accepts nothing.
            if rng.uniform().ln() < log_acceptance {
                return radius;
            }
        }
    }

    /// A draw of `||x||` as the published program makes it, which is not the model's: `N(mu, sigma^2)`.
    pub fn radius_as_published(&self, rng: &mut Stream) -> f64 {
        self.radius + self.std_dev * rng.normal()
    }
}

/// A point at a distance from the origin, in a uniformly drawn direction.
pub fn point(radius: f64, rng: &mut Stream) -> Vec<f64> {
    let normals = rng.normals(super::DIMENSION);
    let norm = normals.iter().map(|z| z * z).sum::<f64>().sqrt();
    normals.into_iter().map(|z| radius * z / norm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use zhat::rng::Streams;

    /// `E r^k` for `k = 1, 2, 3, 4` and `8` by the midpoint rule, from 0 to ten sigmas above the mode.
    fn moment(ring: Ring, k: i32) -> f64 {
        let (steps, end) = (200_000, ring.radius + 14.0 * ring.std_dev);
        let (mut above, mut below) = (0.0, 0.0);
        for step in 0..steps {
            let r = end * (f64::from(step) + 0.5) / f64::from(steps);
            let density = r.powi(4) * (-0.5 * ((r - ring.radius) / ring.std_dev).powi(2)).exp();
            above += r.powi(k) * density;
            below += density;
        }
        above / below
    }

    /// The z-score of the mean of `r^k` against the exact moment.
    fn z_score(ring: Ring, draws: &[f64], k: i32) -> f64 {
        let number = draws.len() as f64;
        let exact = moment(ring, k);
        let variance = moment(ring, 2 * k) - exact * exact;
        let mean = draws.iter().map(|r| r.powi(k)).sum::<f64>() / number;
        (mean - exact) / (variance / number).sqrt()
    }

    #[test]
    fn radii_have_the_moments_of_the_model() {
        let rng = &mut Streams::new(1).stream("test", 0, 0);
        // The widest and narrowest of the experiment, and one so wide that many draws are refused.
        for ring in [Ring::new(5.0, 1.5f64.sqrt()), Ring::new(10.0, 0.5), Ring::new(1.0, 3.0)] {
            let draws: Vec<f64> = (0..40_000).map(|_| ring.radius(rng)).collect();
            assert!(draws.iter().all(|r| *r > 0.0));
            for k in 1..=4 {
                // 4.5 standard errors: one false alarm in 150,000 seeds, and this seed is fixed.
                let z = z_score(ring, &draws, k);
                assert!(z.abs() < 4.5, "{ring:?}, moment {k}: z = {z}");
            }
            // The same test tells the published program's radii from the model's.
            let draws: Vec<f64> = (0..40_000).map(|_| ring.radius_as_published(rng)).collect();
            assert!(z_score(ring, &draws, 1).abs() > 8.0);
        }
    }

    #[test]
    fn directions_are_uniform_and_have_the_length_asked_for() {
        let rng = &mut Streams::new(2).stream("test", 0, 0);
        let number = 20_000;
        let mut squares = [0.0; super::super::DIMENSION];
        let mut means = squares;
        for _ in 0..number {
            let x = point(3.0, rng);
            assert!((x.iter().map(|x| x * x).sum::<f64>() - 9.0).abs() < 1e-9);
            for (i, x) in x.iter().enumerate() {
                means[i] += x / f64::from(number);
                squares[i] += x * x / f64::from(number);
            }
        }
        // On a sphere of radius 3: E x_i = 0, E x_i^2 = 9/5, E x_i^4 = 3 * 81 / 35.
        let root = f64::from(number).sqrt();
        let standard_error = (3.0 * 81.0 / 35.0 - 1.8f64.powi(2)).sqrt() / root;
        assert!(means.iter().all(|mean| mean.abs() < 4.5 * 1.8f64.sqrt() / root));
        assert!(squares.iter().all(|square| (square - 1.8).abs() < 4.5 * standard_error));
    }
}
