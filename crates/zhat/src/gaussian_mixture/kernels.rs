//! The inner loops of EM, over tiles of rows that lie side by side.

use super::em::Covariance;
use super::triangle;
use crate::simd::dispatch;

/// Rows of a tile.
pub const LANES: usize = 16;

/// Numbers that [`moments`] adds up at a time: counts of rows are padded to it.
pub const STRIDE: usize = 8;

/// Rows turned so that a feature of 16 rows is one array; what the last tile lacks is zero.
pub struct Tiles {
    values: Vec<[f32; LANES]>,
    rows: usize,
    features: usize,
}

impl Tiles {
    /// Turns rows in row-major order.
    pub fn new(rows: &[f32], features: usize) -> Self {
        let number = rows.len() / features;
        let mut values = vec![[0.0; LANES]; number.div_ceil(LANES) * features];
        for (index, row) in rows.chunks_exact(features).enumerate() {
            let tile = &mut values[index / LANES * features..][..features];
            for (lanes, &value) in tile.iter_mut().zip(row) {
                lanes[index % LANES] = value;
            }
        }
        Self { values, rows: number, features }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of tiles.
    pub fn number(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    /// Rows that a tile really has.
    pub fn rows_of(&self, tile: usize) -> usize {
        LANES.min(self.rows - tile * LANES)
    }

    /// One tile, feature by feature.
    pub fn tile(&self, tile: usize) -> &[[f32; LANES]] {
        &self.values[tile * self.features..][..self.features]
    }

    /// One number.
    pub fn value(&self, row: usize, feature: usize) -> f64 {
        f64::from(self.values[row / LANES * self.features + feature][row % LANES])
    }

    /// One row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = f64> {
        (0..self.features).map(move |feature| self.value(row, feature))
    }
}

#[inline(always)]
fn multiply_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `exp(x)` for `x` of at most 0, to a few units in the last place; 0 below [`NEGLIGIBLE`].
#[inline(always)]
fn exp<const FMA: bool>(x: f64) -> f64 {
    // Added to a number, it leaves the nearest integer in the last bits.
    const ROUNDING: f64 = 6_755_399_441_055_744.0;
    let within = x.max(NEGLIGIBLE);
    let rounded = multiply_add::<FMA>(within, std::f64::consts::LOG2_E, ROUNDING);
    let n = rounded - ROUNDING;
    // ln 2 in two parts, the first of which has so few bits that its product with n is exact (Cody and Waite).
    let r = multiply_add::<FMA>(n, -0.693_147_180_369_123_8, within);
    let r = multiply_add::<FMA>(n, -1.908_214_929_270_587_7e-10, r);
    // The series: of |r| < 0.35 what is left out is below 5e-18.
    let mut sum = 1.0 / 6_227_020_800.0;
    for factorial in [
        479_001_600.0,
        39_916_800.0,
        3_628_800.0,
        362_880.0,
        40_320.0,
        5_040.0,
        720.0,
        120.0,
        24.0,
        6.0,
        2.0,
        1.0,
        1.0,
    ] {
        sum = multiply_add::<FMA>(sum, r, 1.0 / factorial);
    }
    let power = f64::from_bits((rounded.to_bits() << 52).wrapping_add(1_023 << 52));
    if x < NEGLIGIBLE { 0.0 } else { sum * power }
}

/// A responsibility below `e^-37` is less than the rounding of the sum it is part of.
const NEGLIGIBLE: f64 = -37.0;

dispatch! {
    /// Turns the log-joint densities of a tile, component by component, into responsibilities, and leaves the log-density of every row
    /// in two parts: the `largest` of its log-joints, and the `total` of all when divided by that.
    pub fn responsibilities<const FMA: bool>(
        log_joint: &mut [[f64; LANES]],
        largest: &mut [f64; LANES],
        total: &mut [f64; LANES],
    ) {
        let mut most = [f64::NEG_INFINITY; LANES];
        for values in log_joint.iter() {
            for lane in 0..LANES {
                most[lane] = most[lane].max(values[lane]);
            }
        }
        let mut sum = [0.0; LANES];
        for values in log_joint.iter_mut() {
            for lane in 0..LANES {
                values[lane] = exp::<FMA>(values[lane] - most[lane]);
                sum[lane] += values[lane];
            }
        }
        let mut inverse = [0.0; LANES];
        for lane in 0..LANES {
            inverse[lane] = 1.0 / sum[lane];
        }
        for values in log_joint {
            for lane in 0..LANES {
                values[lane] *= inverse[lane];
            }
        }
        (*largest, *total) = (most, sum);
    }

    /// `squares = |L^-1 (x - mean)|^2` of every row of a tile, by forward substitution.
    pub fn whiten<const FMA: bool>(
        x: &[[f32; LANES]],
        mean: &[f64],
        factor: &[f64],
        reciprocals: &[f64],
        covariance: Covariance,
        z: &mut [[f64; LANES]],
        squares: &mut [f64; LANES],
    ) {
        let mut sum = [0.0; LANES];
        for feature in 0..mean.len() {
            let mut rest = [0.0; LANES];
            for lane in 0..LANES {
                rest[lane] = f64::from(x[feature][lane]) - mean[feature];
            }
            let (before, after) = z.split_at_mut(feature);
            if covariance == Covariance::Full {
                let row = &factor[triangle(feature)..][..feature];
                for (element, seen) in row.iter().zip(before) {
                    for lane in 0..LANES {
                        rest[lane] = multiply_add::<FMA>(-element, seen[lane], rest[lane]);
                    }
                }
            }
            for lane in 0..LANES {
                let z = rest[lane] * reciprocals[feature];
                after[0][lane] = z;
                sum[lane] = multiply_add::<FMA>(z, z, sum[lane]);
            }
        }
        *squares = sum;
    }

    /// `squares = |x - centre|^2` of every row of a tile.
    pub fn squared_distances<const FMA: bool>(
        x: &[[f32; LANES]],
        centre: &[f64],
        squares: &mut [f64; LANES],
    ) {
        let mut sum = [0.0; LANES];
        for (x, centre) in x.iter().zip(centre) {
            for lane in 0..LANES {
                let difference = f64::from(x[lane]) - centre;
                sum[lane] = multiply_add::<FMA>(difference, difference, sum[lane]);
            }
        }
        *squares = sum;
    }

    /// Adds `sum_r w_r c_r` to `first` and the lower triangle of `sum_r w_r c_r c_r'` to `second`, or its diagonal alone.
    ///
    /// Feature `d` of the rows `c` begins at `d * weights.len()`; the number of rows is a multiple of [`STRIDE`].
    pub fn moments<const FMA: bool>(
        weights: &[f64],
        centred: &[f64],
        covariance: Covariance,
        weighted: &mut [f64],
        first: &mut [f64],
        second: &mut [f64],
    ) {
        let number = weights.len();
        let weighted = &mut weighted[..number];
        for feature in 0..first.len() {
            let own = &centred[feature * number..][..number];
            let mut sum = [0.0; STRIDE];
            for ((weighted, weights), own) in weighted
                .chunks_exact_mut(STRIDE)
                .zip(weights.chunks_exact(STRIDE))
                .zip(own.chunks_exact(STRIDE))
            {
                for lane in 0..STRIDE {
                    weighted[lane] = weights[lane] * own[lane];
                    sum[lane] += weighted[lane];
                }
            }
            first[feature] += sum.iter().sum::<f64>();
            let out = &mut second[triangle(feature)..][..=feature];
            let begin = match covariance {
                Covariance::Full => 0,
                Covariance::Diagonal => feature,
            };
            let mut other = begin;
            while other + 4 <= feature + 1 {
                products::<FMA, 4>(weighted, &centred[other * number..], &mut out[other..]);
                other += 4;
            }
            while other <= feature {
                products::<FMA, 1>(weighted, &centred[other * number..], &mut out[other..]);
                other += 1;
            }
        }
    }
}

/// Adds the products of a vector with the next `N` vectors.
#[inline(always)]
fn products<const FMA: bool, const N: usize>(vector: &[f64], others: &[f64], out: &mut [f64]) {
    let number = vector.len();
    let mut sums = [[0.0; STRIDE]; N];
    for at in (0..number).step_by(STRIDE) {
        let vector: &[f64; STRIDE] = vector[at..at + STRIDE].try_into().expect("a stride");
        for (index, sum) in sums.iter_mut().enumerate() {
            let begin = index * number + at;
            let other: &[f64; STRIDE] = others[begin..begin + STRIDE].try_into().expect("a stride");
            for lane in 0..STRIDE {
                sum[lane] = multiply_add::<FMA>(vector[lane], other[lane], sum[lane]);
            }
        }
    }
    for (out, sum) in out.iter_mut().zip(&sums) {
        *out += sum.iter().sum::<f64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_accurate_and_nothing_where_negligible() {
        for step in 0..=370_000 {
            let x = -f64::from(step) * 1e-4;
            for found in [exp::<true>(x), exp::<false>(x)] {
                assert!((found / x.exp() - 1.0).abs() < 4.0 * f64::EPSILON, "{x}: {found}");
            }
        }
        for x in [-37.001, -700.0, -1e300, f64::NEG_INFINITY] {
            assert_eq!([exp::<true>(x), exp::<false>(x)], [0.0; 2]);
        }
    }
}
