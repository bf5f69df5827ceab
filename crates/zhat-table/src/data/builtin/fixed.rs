//! Numbers that are drawn once and for ever: the parameters of the mixtures, and the draws behind an entropy.

/// SplitMix64 (Steele, Lea and Flood 2014): small, and fixed by this file alone, whatever `rand` does.
#[derive(Debug, Clone)]
pub(super) struct Fixed(pub(super) u64);

impl Fixed {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform on (0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The first outputs for seed 1234567 in Vigna's reference implementation.
        let mut fixed = Fixed(1_234_567);
        assert_eq!(fixed.next(), 6_457_827_717_110_365_317);
        assert_eq!(fixed.next(), 3_203_168_211_198_807_973);
    }
}
