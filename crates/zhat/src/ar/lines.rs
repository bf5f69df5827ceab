//! Features that those before them nearly determine start where a straight line of those puts them.
//!
//! A sum, a mean or another unit of what stands in other columns is a straight line in them. Networks of random weights take long to find it, the longer the
//! narrower the feature is around it; a regression knows it at once. Two units of the feature's own pass the line on, one where it is
//! positive and one where it is negative, and the normals of the head start around their difference, as wide together as what is left. The
//! second layers of blocks start at zero, so nothing is added to it yet. All of these are parameters like any others, and are trained.

use burn::nn::Linear;

use super::config::{Activation, ArEbmConfig, Conditioner, ScaleForm};
use super::engine::values;
use super::masked::Degrees;
use super::model::ArEbm;
use super::network::{ResidualNet, bias_of, constant_linear};
use crate::gaussian_mixture::GaussianMixture;

/// A feature is nearly determined if no more of its standard deviation than this is left around the line, so that the line has fifteen sixteenths of its
/// variance. A wider one is found by networks as soon, and starting there they have been seen to learn rows by heart sooner.
const NEARLY: f64 = 0.25;

/// A number given the numbers before it, by a Gaussian of all.
#[derive(Debug, Clone)]
struct Line {
    /// What each number before it counts.
    slopes: Vec<f64>,
    intercept: f64,
    /// Standard deviation of what is left around the line.
    scale: f64,
    /// And that of the number itself.
    std_dev: f64,
}

impl Line {
    /// That of the number after so many of a Gaussian `mu + L z`: the slopes are row `d` of `L`, up to its diagonal, times `L_<d^-1`.
    fn new(gaussian: &GaussianMixture, number: usize) -> Self {
        let (mean, factor) = (gaussian.mean(0), gaussian.factor(0));
        let row = |row: usize| &factor[row * (row + 1) / 2..][..=row];
        let own = row(number);
        let mut slopes = own[..number].to_vec();
        for at in (0..number).rev() {
            slopes[at] /= row(at)[at];
            let slope = slopes[at];
            for (before, factor) in slopes.iter_mut().zip(&row(at)[..at]) {
                *before -= slope * factor;
            }
        }
        let of_means: f64 = slopes.iter().zip(mean).map(|(slope, mean)| slope * mean).sum();
        let variance: f64 = own.iter().map(|factor| factor * factor).sum();
        Self {
            slopes,
            intercept: mean[number] - of_means,
            scale: own[number],
            std_dev: variance.sqrt(),
        }
    }

    fn is_narrow(&self) -> bool {
        self.scale <= NEARLY * self.std_dev
    }
}

impl ArEbmConfig {
    /// Whether features can start on lines: they have units of their own, a line passes two of them unbent, and scales are as easily small
    /// as large.
    pub fn can_start_on_lines(&self) -> bool {
        self.conditioner == Conditioner::Masked
            && self.proposal.activation == Activation::Relu
            && self.has_mixture()
            && self.scales == ScaleForm::Exponential
            && self.num_numbers() > 0
    }
}

impl ArEbm {
    /// With the features that those before them nearly determine on their lines at the start. The others are as they were, and so is one with
    /// fewer than two units of its own.
    ///
    /// # Panics
    /// If features [cannot](ArEbmConfig::can_start_on_lines), or if the mixture is not a single Gaussian of those that are numbers.
    pub fn started_on_lines(mut self, gaussian: &GaussianMixture) -> Self {
        let shape = self.shape.clone();
        assert!(shape.can_start_on_lines(), "a masked conditioner of rectifiers");
        assert_eq!(gaussian.num_components(), 1, "one Gaussian");
        assert_eq!(gaussian.features(), shape.num_numbers(), "of the same features");
        let numbers: Vec<usize> =
            (0..shape.features).filter(|&feature| shape.number_of(feature).is_some()).collect();
        let lines = numbers.iter().enumerate().filter(|(_, feature)| !shape.is_given(**feature));
        let lines: Vec<(usize, Line)> = lines
            .map(|(number, &feature)| (feature, Line::new(gaussian, number)))
            .filter(|(_, line)| line.is_narrow())
            .collect();
        if !lines.is_empty() {
            self.members_mut().for_each(|member| start(member, &shape, &numbers, &lines));
        }
        self
    }
}

fn start(
    member: &mut ResidualNet,
    shape: &ArEbmConfig,
    numbers: &[usize],
    lines: &[(usize, Line)],
) {
    let degrees = Degrees::new(shape).expect("a masked conditioner");
    let of = |layer: &Linear| (values(&layer.weight), values(bias_of(layer)));
    let (mut first, mut first_bias) = of(&member.first);
    let (mut last, mut last_bias) = of(&member.last);
    let (width, outputs, components) =
        (first_bias.len(), last_bias.len(), shape.mixture_components);
    for (feature, line) in lines {
        let end = degrees.units_before(*feature);
        if end - degrees.units_before(feature - 1) < 2 {
            continue;
        }
        let means = shape.outputs_before(*feature) + shape.context + components;
        let scales = means + components;
        let scale = line.scale as f32;
        for weights in last.chunks_exact_mut(outputs) {
            weights[means..scales].iter_mut().for_each(|weight| *weight *= scale);
        }
        for bias in &mut last_bias[means..scales] {
            *bias = scale * *bias + line.intercept as f32;
        }
        last_bias[scales..][..components].iter_mut().for_each(|bias| *bias += scale.ln());
        for (unit, sign) in [(end - 2, 1.0), (end - 1, -1.0)] {
            first.iter_mut().skip(unit).step_by(width).for_each(|weight| *weight = 0.0);
            for (&before, &slope) in numbers.iter().zip(&line.slopes) {
                first[shape.inputs_before(before) * width + unit] = sign * slope as f32;
            }
            first_bias[unit] = 0.0;
            last[unit * outputs + means..][..components].fill(sign);
        }
    }
    let device = member.first.weight.val().device();
    member.first = constant_linear(first, first_bias, &device);
    member.last = constant_linear(last, last_bias, &device);
}
