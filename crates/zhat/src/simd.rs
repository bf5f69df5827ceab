//! Vector code chosen at run time: every loop is compiled for the plain processor, for AVX2 with FMA and for AVX-512.
//!
//! Loops are written once, over arrays of 16 values that the compiler turns into vector registers, so there is no code
//! for one processor alone. Elementary functions are polynomials without branches, fit for such loops.

/// Functions that are compiled with fused multiply-adds (`FMA`), which run where the processor has them, and without.
macro_rules! dispatch {
    ($($(#[$doc:meta])* pub fn $name:ident<const $fma:ident: bool>(
        $($argument:ident: $type:ty),* $(,)?
    ) $body:block)+) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub fn $name($($argument: $type),*) {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body<const $fma: bool>($($argument: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn fused($($argument: $type),*) {
                    body::<true>($($argument),*)
                }
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn wide($($argument: $type),*) {
                    body::<true>($($argument),*)
                }
                if $crate::simd::has_avx512() {
                    // SAFETY: the processor has AVX-512.
                    return unsafe { wide($($argument),*) };
                }
                if $crate::simd::has_avx2() {
                    // SAFETY: the processor has AVX2 and FMA.
                    return unsafe { fused($($argument),*) };
                }
            }
            body::<{ cfg!(target_arch = "aarch64") }>($($argument),*)
        }
    )+};
}
pub(crate) use dispatch;

#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512vl")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512bw")
}

/// Whether a vector register has room for 16 values, and there are 32 of them.
pub(crate) fn has_wide_registers() -> bool {
    #[cfg(target_arch = "x86_64")]
    return has_avx512();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[inline(always)]
pub(crate) fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `exp(x)`, relative error below 2e-7; 0 below -87 and the largest finite power above 88.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    let clamped = x.clamp(-87.0, 88.0);
    // Added to a number, it leaves the nearest integer in the last bits. A conversion to an integer would have to saturate, which
    // AVX-512 does value by value.
    const ROUNDING: f32 = 12_582_912.0;
    let rounded = clamped * std::f32::consts::LOG2_E + ROUNDING;
    let n = rounded - ROUNDING;
    // ln 2 in two parts, so that the reduction is exact (Cody and Waite).
    let r = multiply_add::<FMA>(n, -0.693_359_4, clamped);
    let r = multiply_add::<FMA>(n, 2.121_944_4e-4, r);
    // Cephes' expf polynomial on [-ln 2 / 2, ln 2 / 2].
    let mut p = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = multiply_add::<FMA>(p, r, coefficient);
    }
    let p = multiply_add::<FMA>(p, r * r, r + 1.0);
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(127 << 23));
    if x < -87.0 { 0.0 } else { p * power }
}

/// `ln(x)` for positive normal `x`, absolute error below 1e-7 times the larger of 1 and the result.
#[inline(always)]
pub(crate) fn ln<const FMA: bool>(x: f32) -> f32 {
    let bits = x.to_bits();
    // The mantissa in [sqrt(1/2), sqrt(2)).
    let shifted = bits.wrapping_sub(0x3f35_04f3);
    let exponent = (shifted as i32) >> 23;
    let m = f32::from_bits(bits.wrapping_sub((exponent as u32) << 23)) - 1.0;
    let e = exponent as f32;
    // Cephes' logf polynomial.
    let mut p = 7.037_683_6e-2;
    for coefficient in [
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_7e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        p = multiply_add::<FMA>(p, m, coefficient);
    }
    let square = m * m;
    let mut y = p * m * square;
    y = multiply_add::<FMA>(e, -2.121_944_4e-4, y);
    y = multiply_add::<FMA>(-0.5, square, y);
    multiply_add::<FMA>(e, 0.693_359_4, m + y)
}

/// `log(1 + exp(x))`.
#[inline(always)]
pub(crate) fn softplus<const FMA: bool>(x: f32) -> f32 {
    let t = exp::<FMA>(-x.abs());
    // log1p(t) for t in [0, 1]: ln(1 + t) loses digits for small t, which the correction brings back.
    let u = 1.0 + t;
    let correction = (t - (u - 1.0)) / u;
    x.max(0.0) + ln::<FMA>(u) + correction
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
pub(crate) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    let t = exp::<FMA>(-x.abs());
    let small = t / (1.0 + t);
    if x >= 0.0 { 1.0 - small } else { small }
}

/// `x` above zero, `exp(x) - 1` below.
#[inline(always)]
pub(crate) fn elu<const FMA: bool>(x: f32) -> f32 {
    // Without a branch, which would keep it out of vector registers.
    exp::<FMA>(x.min(0.0)) - 1.0 + x.max(0.0)
}

/// `tanh(x)` as a rational function (the coefficients of Eigen's `ptanh`), a few units in the last place.
#[inline(always)]
pub(crate) fn tanh<const FMA: bool>(x: f32) -> f32 {
    let x = x.clamp(-7.905_311, 7.905_311);
    let square = x * x;
    let mut p = -2.760_768_4e-16;
    for coefficient in [
        2.000_188e-13,
        -8.604_672e-11,
        5.122_297e-8,
        1.485_722_4e-5,
        6.372_619_3e-4,
        4.893_524_6e-3,
    ] {
        p = multiply_add::<FMA>(p, square, coefficient);
    }
    let mut q = 1.198_258_4e-6;
    for coefficient in [1.185_347e-4, 2.268_434_6e-3, 4.893_525e-3] {
        q = multiply_add::<FMA>(q, square, coefficient);
    }
    x * p / q
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest error relative to `1 + |exact|`, or to `|exact|` alone, over a range.
    fn error(range: [f64; 2], relative: bool, fast: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        (0..=200_000)
            .map(|i| {
                let x = (range[0] + (range[1] - range[0]) * f64::from(i) / 200_000.0) as f32;
                let expected = exact(f64::from(x));
                let scale = if relative { expected.abs() } else { 1.0 + expected.abs() };
                (f64::from(fast(x)) - expected).abs() / scale
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn elementary_functions_are_accurate_to_single_precision() {
        let softplus_exact = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        assert!(error([-86.0, 87.0], true, exp::<true>, f64::exp) < 3e-7);
        assert!(error([-86.0, 87.0], true, exp::<false>, f64::exp) < 3e-7);
        assert!(error([1e-6, 50.0], false, ln::<true>, f64::ln) < 2e-7);
        assert!(error([1e-3, 1e30], false, ln::<false>, f64::ln) < 2e-7);
        assert!(error([-80.0, 80.0], false, softplus::<true>, softplus_exact) < 2e-7);
        assert!(error([-20.0, 0.0], true, softplus::<true>, softplus_exact) < 1e-6);
        assert!(error([-80.0, 80.0], false, sigmoid::<true>, |x| 1.0 / (1.0 + (-x).exp())) < 2e-7);
        assert!(error([-12.0, 12.0], false, tanh::<true>, f64::tanh) < 2e-7);
        assert!(error([1e-4, 1.0], true, tanh::<false>, f64::tanh) < 1e-6);
    }

    #[test]
    fn extreme_arguments_stay_finite() {
        for x in [-1e30f32, -1e4, -88.0, 88.0, 1e4, 1e30] {
            let values = [exp::<true>(x), softplus::<true>(x), sigmoid::<true>(x), tanh::<true>(x)];
            assert!(values.iter().all(|value| value.is_finite()), "{x}: {values:?}");
        }
        assert_eq!(exp::<true>(-1e30), 0.0);
    }
}
