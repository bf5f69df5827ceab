//! A look-ahead for draws given late features: a Gaussian mixture that is like the model says what they make of early ones.
//!
//! Particles that are drawn feature by feature are blind to what is given later until it weighs them. A mixture of Gaussians has all
//! its conditionals in closed form, in any order of the features, so it proposes early features given the late ones, and twists
//! the weights in between (Whiteley and Lee, 2014; Guarniero, Johansen and Lee, 2017). Whatever it says is corrected by the weights, exactly: a mixture that
//! is unlike the model costs particles, and changes no expectation.

use super::evaluate::Evaluator;
use super::kind::FeatureKind;
use crate::error::Result;
use crate::gaussian_mixture::{Conditionals, EmConfig, GaussianMixture};
use crate::linalg::cholesky;
use crate::normal::log_normal_mass;
use crate::rng::{Stream, Streams};
use crate::smc::{Resampling, SmcConfig};

/// Draws of the model that the mixture is fitted to.
const DRAWS: usize = 6_000;
/// What an iteration of EM may cost: rows times components times squared features; a tenth of a second or less.
const BUDGET: usize = 20_000_000;
/// Iterations of EM at most, fewer where each costs more than that.
const ITERATIONS: usize = 40;
/// Components, at least and at most.
const COMPONENTS: [usize; 2] = [2, 64];
/// More features than this, and a mixture would take longer than it saves.
const MOST_FEATURES: usize = 128;
/// Share of a component as wide as all draws together, with twice their variance: the mixture rules nothing out.
const WIDE: f64 = 0.05;
/// Share of the draws that is left to the model's own proposal at least, which bounds the weights where the mixture is wrong.
const OWN: f64 = 0.2;
/// How fast that share falls, from one, with what the given features tell of a number: by a factor of `e` for each fifth of a nat.
const PER_NAT: f64 = 5.0;

/// A mixture like the model, over the features that are numbers.
#[derive(Debug)]
pub(super) struct Guide {
    mixture: GaussianMixture,
    natural: Conditionals,
}

impl Guide {
    /// Fitted to draws of the model; none where it has no numbers, or says nothing of its first features.
    pub fn of_model(evaluator: &Evaluator) -> Result<Option<Self>> {
        let config = &evaluator.engine.config;
        let numbers = config.num_numbers();
        if numbers == 0 || numbers > MOST_FEATURES || config.given > 0 {
            return Ok(None);
        }
        let streams = Streams::new(0).derive("ar-guide", 0);
        let run = evaluator.smc(&SmcConfig::new(DRAWS)?, &streams, 0)?;
        let taken = match evaluator.draws_exactly() {
            true => (0..DRAWS).collect(),
            false => {
                Resampling::Systematic.ancestors(&run.weights, &mut streams.stream("draws", 0, 0))
            }
        };
        let kept: Vec<_> =
            (0..config.features).filter(|&at| !config.kind(at).is_categorical()).collect();
        let of_draw = |&draw: &usize| kept.iter().map(|&at| run.columns[at][draw]).collect();
        let rows: Vec<Vec<f32>> = taken.iter().map(of_draw).collect();
        let [least, most] = COMPONENTS;
        let components = (BUDGET / (DRAWS * numbers * numbers)).clamp(least, most);
        let cost = DRAWS * components * numbers * numbers;
        let max_iterations = (ITERATIONS * BUDGET / cost).clamp(5, ITERATIONS);
        let em = EmConfig { max_iterations, ..EmConfig::new(components) };
        let rng = &mut streams.stream("fit", 0, 0);
        Self::fit(&rows.concat(), numbers, &em, rng).map(Some)
    }

    /// Fitted to rows.
    fn fit(rows: &[f32], features: usize, em: &EmConfig, rng: &mut Stream) -> Result<Self> {
        let narrow = GaussianMixture::fit(rows, features, em, rng)?;
        let one = EmConfig { components: 1, ..em.clone() };
        let wide = GaussianMixture::fit(rows, features, &one, rng)?;
        let log_weights =
            narrow.log_weights().iter().map(|log_weight| log_weight + (1.0 - WIDE).ln());
        let parts = 0..narrow.num_components();
        let means = parts.clone().flat_map(|part| narrow.mean(part)).chain(wide.mean(0));
        let root = std::f64::consts::SQRT_2;
        let factors = parts.flat_map(|part| narrow.factor(part)).copied();
        let factors = factors.chain(wide.factor(0).iter().map(|factor| root * factor));
        let mixture = GaussianMixture::new(
            features,
            log_weights.chain([WIDE.ln()]).collect(),
            means.copied().collect(),
            factors.collect(),
        )?;
        Ok(Self { natural: mixture.conditionals(), mixture })
    }

    /// What it makes of the features that are given; none where nothing missing comes before something given.
    pub fn ahead<'a>(
        &self,
        given: &[Option<f32>],
        kind: impl Fn(usize) -> &'a FeatureKind,
    ) -> Result<Option<Ahead>> {
        let is_number = |&at: &usize| !kind(at).is_categorical();
        let first = given.iter().position(Option::is_none);
        let last = (0..given.len()).rev().find(|at| given[*at].is_some() && is_number(at));
        let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
        if first > last {
            return Ok(None);
        }
        let numbers: Vec<usize> = (0..given.len()).filter(is_number).collect();
        let is_given = |number: &usize| given[numbers[*number]].is_some();
        let (known, missing): (Vec<usize>, Vec<usize>) = (0..numbers.len()).partition(is_given);
        let order: Vec<usize> = known.iter().chain(&missing).copied().collect();
        let mut toward = permuted(&self.mixture, &order)?.conditionals();
        for (place, &number) in known.iter().enumerate() {
            let at = numbers[number];
            toward.pass(place, kind(at).settle(given[at].expect("given")));
        }
        let mut place = vec![None; given.len()];
        for (at, &number) in order.iter().enumerate() {
            place[numbers[number]] = Some(at);
        }
        Ok(Some(Ahead {
            natural: self.natural.clone(),
            toward,
            numbers,
            known: known.len(),
            place,
            first,
            last,
        }))
    }
}

/// The same mixture with its features in another order.
fn permuted(mixture: &GaussianMixture, order: &[usize]) -> Result<GaussianMixture> {
    let features = mixture.features();
    let (mut means, mut factors) = (Vec::new(), Vec::new());
    for component in 0..mixture.num_components() {
        let factor = mixture.factor(component);
        let row = |feature: usize| &factor[feature * (feature + 1) / 2..][..=feature];
        means.extend(order.iter().map(|&feature| mixture.mean(component)[feature]));
        let mut covariance = vec![0.0; features * features];
        for (i, &a) in order.iter().enumerate() {
            for (j, &b) in order[..=i].iter().enumerate() {
                covariance[i * features + j] =
                    row(a).iter().zip(row(b)).map(|(a, b)| a * b).sum::<f64>();
            }
        }
        let square = cholesky(&covariance, features, "the mixture of a look-ahead")?;
        factors.extend((0..features).flat_map(|i| &square[i * features..][..=i]));
    }
    GaussianMixture::new(features, mixture.log_weights().to_vec(), means, factors)
}

/// What a guide makes of the given features of one row.
#[derive(Debug)]
pub(super) struct Ahead {
    /// In the order of the features.
    natural: Conditionals,
    /// With the given features first, which have been seen.
    toward: Conditionals,
    /// The features that are numbers.
    numbers: Vec<usize>,
    /// How many numbers are given.
    known: usize,
    /// Where a feature is when the given ones are first.
    place: Vec<Option<usize>>,
    /// The first feature that is missing, and the last number that is given: it looks ahead from here to there.
    first: usize,
    last: usize,
}

impl Ahead {
    /// Whether it has something to say at a stage.
    pub fn looks(&self, stage: usize) -> bool {
        (self.first..=self.last).contains(&stage)
    }

    /// Whether nothing is ahead of a stage any more.
    pub fn ends(&self, stage: usize) -> bool {
        stage == self.last
    }

    /// For the particles of a tile, one after the other.
    pub fn walk(&self) -> Walk<'_> {
        let (natural, toward) = (self.natural.clone(), self.toward.clone());
        Walk {
            ahead: self,
            natural,
            toward,
            stage: None,
            row: Vec::new(),
            own: 1.0,
            weights: Vec::new(),
        }
    }
}

/// Where a particle is.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    ahead: &'a Ahead,
    natural: Conditionals,
    toward: Conditionals,
    /// The number that it is at; none at first.
    stage: Option<usize>,
    /// The features before it, of the particle that was last looked at.
    row: Vec<f32>,
    /// Share of the draws that is left to the model's own proposal.
    own: f64,
    weights: Vec<f64>,
}

impl Walk<'_> {
    /// Goes to a number of which the features before it are known, those that are missing included.
    pub fn to(&mut self, stage: usize, before: &[f32]) {
        if self.stage == Some(stage) && self.row == before {
            return;
        }
        let Self { ahead, natural, toward, .. } = self;
        natural.rewind();
        toward.rewind_to(&ahead.toward);
        for (number, &at) in ahead.numbers.iter().take_while(|at| **at < stage).enumerate() {
            natural.pass(number, before[at]);
            if let Some(place) = ahead.place[at].filter(|place| *place >= ahead.known) {
                toward.pass(place, before[at]);
            }
        }
        natural.settle();
        toward.settle();
        self.stage = Some(stage);
        self.row.clear();
        self.row.extend_from_slice(before);
        let [place, number] = self.places();
        if place >= self.ahead.known {
            let known = moments(distribution(&self.toward, place));
            let blind = moments(distribution(&self.natural, number));
            // Where what is given later tells nothing of this number, nobody knows it better than the model.
            self.own = OWN + (1.0 - OWN) * (-PER_NAT * divergence(known, blind).max(0.0)).exp();
        }
    }

    /// A draw of the next number given all that is known of the row, before it and after it, or none: that is left to the model.
    pub fn draw(&mut self, kind: &FeatureKind, rng: &mut Stream) -> Option<f32> {
        if rng.uniform() < self.own {
            return None;
        }
        let [place, _] = self.places();
        let [log_weights, means, scales] = distribution(&self.toward, place);
        self.weights.clear();
        self.weights.extend(log_weights.iter().map(|&log_weight| f64::from(log_weight).exp()));
        let component = rng.categorical(&self.weights);
        let x = f64::from(means[component]) + f64::from(scales[component]) * rng.normal();
        Some(kind.settle(x as f32))
    }

    /// The density of such draws, or a cell's mass.
    pub fn draws(&self, kind: &FeatureKind, x: f32) -> Drawn {
        let parts = distribution(&self.toward, self.places()[0]);
        let log_density = match kind.index_of(x) {
            Some(cell) => log_mass(parts, kind.reach(cell)),
            None => log_density(parts, x),
        };
        Drawn { log_density, own: self.own }
    }

    /// How much likelier the numbers that are ahead are with the next one at `x`, in nats: what the twist of the weights grows by.
    pub fn promise(&self, x: f32) -> f64 {
        let [place, number] = self.places();
        let before = log_density(distribution(&self.natural, number), x);
        match place {
            place if place < self.ahead.known => -before,
            place => log_density(distribution(&self.toward, place), x) - before,
        }
    }

    /// Where the number is when the given ones are first, and where in the order of the features.
    fn places(&self) -> [usize; 2] {
        let stage = self.stage.expect("a number to be at");
        let number = self.ahead.numbers.partition_point(|at| *at < stage);
        [self.ahead.place[stage].expect("a number"), number]
    }
}

/// What a value was drawn by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawn {
    /// Of the guide's draws.
    log_density: f64,
    /// Share of the draws that is not the guide's.
    own: f64,
}

impl Drawn {
    /// The log-density of all draws, given that of the model's own proposal.
    pub fn with_own(self, log_q: f64) -> f64 {
        let (guided, own) = (self.log_density + (1.0 - self.own).ln(), log_q + self.own.ln());
        let (high, low) = if guided > own { (guided, own) } else { (own, guided) };
        high + (low - high).exp().ln_1p()
    }
}

/// Log-weights, means and scales.
type Parts<'a> = [&'a [f32]; 3];

fn distribution(conditionals: &Conditionals, feature: usize) -> Parts<'_> {
    [conditionals.log_weights(feature), conditionals.means(feature), conditionals.scales(feature)]
}

/// Mean and variance.
fn moments([log_weights, means, scales]: Parts) -> [f64; 2] {
    let (mut mean, mut square) = (0.0, 0.0);
    for ((&log_weight, &at), &scale) in log_weights.iter().zip(means).zip(scales) {
        let (weight, at) = (f64::from(log_weight).exp(), f64::from(at));
        mean += weight * at;
        square += weight * (at * at + f64::from(scale).powi(2));
    }
    [mean, (square - mean * mean).max(1e-12)]
}

/// Of one Gaussian from another, in nats.
fn divergence([mean, variance]: [f64; 2], [other, other_variance]: [f64; 2]) -> f64 {
    let ratio = variance / other_variance;
    0.5 * (ratio - 1.0 - ratio.ln() + (mean - other).powi(2) / other_variance)
}

fn log_density(parts: Parts, x: f32) -> f64 {
    /// `log sqrt(2 pi)`
    const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_8;
    log_sum(parts, |mean, scale| {
        -0.5 * ((f64::from(x) - mean) / scale).powi(2) - scale.ln() - LOG_ROOT_TAU
    })
}

fn log_mass(parts: Parts, ends: [f32; 2]) -> f64 {
    log_sum(parts, |mean, scale| log_normal_mass(ends.map(|end| (f64::from(end) - mean) / scale)))
}

fn log_sum([log_weights, means, scales]: Parts, term: impl Fn(f64, f64) -> f64) -> f64 {
    // A component with less than this changes no digit of a weight.
    const NEGLIGIBLE: f32 = -40.0;
    let parts = log_weights.iter().zip(means).zip(scales);
    let (mut most, mut sum) = (f64::NEG_INFINITY, 0.0);
    for ((&log_weight, &mean), &scale) in parts {
        if log_weight < NEGLIGIBLE {
            continue;
        }
        let value = f64::from(log_weight) + term(f64::from(mean), f64::from(scale));
        if value > most {
            sum = sum * (most - value).exp() + 1.0;
            most = value;
        } else if value > f64::NEG_INFINITY {
            sum += (value - most).exp();
        }
    }
    most + sum.ln()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::ar::{ArEbmConfig, Conditioner, EnergyForm, Normalisation};

    const CONTINUOUS: FeatureKind = FeatureKind::Continuous;

    /// A guide fitted to rows on three bent lines.
    fn guide(features: usize) -> Guide {
        let mut rng = Streams::new(5).stream("rows", 0, 0);
        let row = |_| {
            let (at, line) = (rng.normal(), rng.index(3) as f64);
            let value = |feature: usize| (line - 1.0) * (feature as f64 - 0.5) + at * at * 0.4;
            (0..features).map(|d| (value(d) + 0.3 * rng.normal() - 0.4) as f32).collect()
        };
        let rows: Vec<Vec<f32>> = (0..600).map(row).collect();
        let em = EmConfig::new(5);
        Guide::fit(&rows.concat(), features, &em, &mut Streams::new(5).stream("fit", 0, 0)).unwrap()
    }

    #[test]
    fn a_mixture_in_another_order_is_the_same_mixture() {
        let guide = guide(4);
        let order = [2, 0, 3, 1];
        let other = permuted(&guide.mixture, &order).unwrap();
        for row in [[0.1, -0.5, 0.8, 1.0], [2.0, 0.0, -1.0, 0.3]] {
            let turned = order.map(|feature| row[feature]);
            let [a, b] = [guide.mixture.log_density(&row), other.log_density(&turned)];
            assert!((a - b).abs() < 1e-9, "{a} {b}");
            assert!(
                (guide.mixture.log_density(&turned) - a).abs() > 0.1,
                "the test would see no difference"
            );
        }
    }

    /// What is promised on the way is what is ahead, so that all of it is the same in the end, however a particle got there.
    #[test]
    fn promises_are_kept() {
        let guide = guide(4);
        let given = [None, Some(0.4), None, Some(-0.3)];
        let ahead = guide.ahead(&given, |_| &CONTINUOUS).unwrap().unwrap();
        let mut walk = ahead.walk();
        let mut totals = Vec::new();
        for missing in [[0.1, 0.5], [-1.0, 0.9], [1.5, -1.2]] {
            let row = [missing[0], 0.4, missing[1], -0.3];
            let mut total = 0.0;
            for stage in 0..4 {
                assert_eq!((ahead.looks(stage), ahead.ends(stage)), (true, stage == 3));
                walk.to(stage, &row[..stage]);
                total += walk.promise(row[stage]);
            }
            totals.push(total);
            // After the first feature: log g(given | x_0), up to a constant.
            walk.to(0, &[]);
            totals.push(walk.promise(row[0]));
        }
        for at in [2, 4] {
            assert!((totals[at] - totals[0]).abs() < 1e-4, "{totals:?}");
            assert!((totals[at + 1] - totals[1]).abs() > 0.01, "nothing was promised: {totals:?}");
        }
        // Nothing to look ahead to.
        for given in [[Some(0.0), Some(0.1), None, None], [None; 4], [Some(0.0); 4]] {
            assert!(guide.ahead(&given, |_| &CONTINUOUS).unwrap().is_none());
        }
    }

    #[test]
    fn draws_have_the_density_that_is_said_on_the_line_and_in_cells() {
        let guide = guide(3);
        let cells = FeatureKind::Cells { edges: vec![-1.5, -0.5, 0.0, 0.5, 1.0, 3.0] };
        for kind in [CONTINUOUS, cells] {
            let ahead = guide.ahead(&[None, None, Some(0.7)], |_| &kind).unwrap().unwrap();
            let mut walk = ahead.walk();
            walk.to(1, &[0.25]);
            let (mut rng, number) = (Streams::new(9).stream("draws", 0, 0), 40_000);
            let drawn: Vec<Option<f32>> = (0..number).map(|_| walk.draw(&kind, &mut rng)).collect();
            let own = drawn.iter().filter(|x| x.is_none()).count() as f64 / f64::from(number);
            // Five standard errors of a share.
            assert!((own - walk.own).abs() < 5.0 * (0.25 / f64::from(number)).sqrt(), "{own}");
            let drawn: Vec<f32> = drawn.into_iter().flatten().collect();
            let expected: Vec<f64> = match kind.num_values() {
                Some(cells) => (0..cells)
                    .map(|at| walk.draws(&kind, kind.value_of(at)).log_density.exp())
                    .collect(),
                // Masses of ten intervals, by the midpoint rule.
                None => (0..10)
                    .map(|at| {
                        let x = |k: i32| -2.0 + 0.4 * at as f32 + 0.02 * (k as f32 + 0.5);
                        (0..20).map(|k| 0.02 * walk.draws(&kind, x(k)).log_density.exp()).sum()
                    })
                    .collect(),
            };
            for (at, p) in expected.iter().enumerate() {
                let here = |x: &&f32| match kind.index_of(**x) {
                    Some(cell) => cell == at,
                    None => ((**x + 2.0) / 0.4).floor() as i32 == at as i32,
                };
                let share = drawn.iter().filter(here).count() as f64 / drawn.len() as f64;
                let error = (p * (1.0 - p) / drawn.len() as f64).sqrt();
                assert!((share - p).abs() < 5.0 * error + 1e-3, "{kind:?} {at}: {share} {p}");
            }
            assert!(expected.iter().sum::<f64>() > 0.9, "{kind:?}");
        }
    }

    /// The integral over what is missing is unbiased with few particles, blind, looking ahead, and by a guide that is of another model
    /// altogether; and not if what was promised is never given back.
    #[test]
    fn looking_ahead_leaves_the_integral_unbiased() {
        let config = ArEbmConfig {
            features: 3,
            conditioner: Conditioner::Masked,
            energy_form: EnergyForm::Tilted,
            normalisation: Normalisation::Local,
            ..ArEbmConfig::small()
        };
        let streams = Streams::new(3);
        let model = config.init(&Device::flex(), &mut streams.stream("init", 0, 0)).unwrap();
        let evaluator = Evaluator::of_proposal(&model, 1).unwrap();
        let given = [None, Some(0.9), Some(-1.1)];
        let points = 2_000;
        let at = |point: usize| -10.0 + 20.0 * (point as f32 + 0.5) / points as f32;
        let rows: Vec<f32> = (0..points).flat_map(|point| [at(point), 0.9, -1.1]).collect();
        let densities = evaluator.score(&rows).log_p_tilde;
        let exact = densities.iter().map(|log_p| log_p.exp()).sum::<f64>() * 20.0 / points as f64;
        let smc = SmcConfig::new(12).unwrap();
        let z_score = |ahead: &dyn Fn() -> Option<Ahead>| {
            let ratio = |repeat| {
                let run = evaluator.smc_looking(&smc, &given, ahead(), &streams, repeat);
                run.unwrap().log_z_hat.exp() / exact
            };
            let ratios: Vec<f64> = (0..1000).map(ratio).collect();
            let mean = ratios.iter().sum::<f64>() / 1000.0;
            let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / 999.0;
            (mean - 1.0) / (variance / 1000.0).sqrt()
        };
        let own = || evaluator.guide().unwrap().ahead(&given, |_| &CONTINUOUS).unwrap();
        let stranger = guide(3);
        let other = || stranger.ahead(&given, |_| &CONTINUOUS).unwrap();
        // Level 1e-4 of each.
        for (name, z) in
            [("blind", z_score(&|| None)), ("own", z_score(&own)), ("other", z_score(&other))]
        {
            assert!(z.abs() < 3.9, "{name}: {z}");
        }
        let broken = || other().map(|ahead| Ahead { last: usize::MAX, ..ahead });
        assert!(z_score(&broken).abs() > 10.0, "the test can tell: {}", z_score(&broken));
    }
}
