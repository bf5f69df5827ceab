//! A smooth increasing map of one column to normal scores or halfway there, with its inverse and its derivative.
//!
//! Networks learn badly from columns with heavy tails or sharp peaks. `T` sends quantiles of the training rows to the same
//! quantiles of the normal distribution, and the density in the column's own units is `p(T(x)) T'(x)`. All the way it also bends
//! what is smooth between columns; where tails are light, halfway between a column's own units and normal scores is enough.

use serde::{Deserialize, Serialize};
use zhat::normal_quantile;

/// With fewer values there is no map: it would follow their noise.
const LEAST_VALUES: usize = 60;
/// With fewer different values there is no map: there is nothing smooth to be followed.
const LEAST_KNOTS: usize = 4;
/// More knots gain nothing, whatever the number of values. Below it is half the root of that number: `k` knots cost a test
/// row about `k / 2n` nats for following the noise, and what they miss falls with `k`; about 0.01 nats at 500 values.
const MOST_KNOTS: usize = 30;
/// Beyond this share of the values on either side, or five of them if those are more, the map is a line.
const TAIL: f64 = 0.005;
const LEAST_IN_TAIL: f64 = 5.0;
/// No slope between knots is less, so that no gap becomes a wall.
const FLATTEST: f64 = 1e-3;
/// Nor more: values closer together are one. So steep because a single absurd value may be all of the standard deviation.
const STEEPEST: f64 = 1e6;
/// No training value is sent further out than this: the bins of a spline end here, and so does what is called far out.
const FARTHEST: f64 = 5.0;
/// A column goes only halfway if its outer knots are no further out than this, in standard deviations of what lies between them: a normal
/// one's are at 2.6, an exponential one's at 4.5.
const LIGHT_TAILS: f64 = 3.5;
/// A slope at a knot is at most so many times the smaller of those beside it. Up to 3 keeps a cubic from falling (Fritsch and
/// Carlson, 1980); up to 2 keeps its derivative above half the slope of the piece, or the slopes at its ends if they are less.
const SLOPE_LIMIT: f64 = 2.0;

/// An increasing map: cubic pieces between knots, lines beyond them, with a continuous derivative.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Knots", into = "Knots")]
pub struct MarginalMap(Knots);

/// What a map is on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Knots {
    /// Where the knots are, in standard units.
    at: Vec<f64>,
    /// Where the map sends them: their normal scores, or halfway there.
    scores: Vec<f64>,
    /// Derivatives at the knots; the first and the last are those of the lines.
    slopes: Vec<f64>,
    /// Whether it goes halfway to normal scores rather than all the way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    halfway: bool,
}

impl MarginalMap {
    /// The map of a column's training values, in standard units, to normal scores; none if they are too few or too much alike.
    ///
    /// NaN is a missing cell, and set aside.
    pub fn fit(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        Self::towards_normal(values, false)
    }

    /// The map halfway to normal scores, or all the way where tails are heavy.
    pub fn fit_halfway(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        Self::towards_normal(values, true)
    }

    fn towards_normal(values: impl IntoIterator<Item = f64>, halfway: bool) -> Option<Self> {
        let values = values.into_iter();
        let mut sorted = Vec::with_capacity(values.size_hint().0);
        sorted.extend(values.filter(|value| !value.is_nan()));
        if sorted.len() < LEAST_VALUES {
            return None;
        }
        sorted.sort_unstable_by(f64::total_cmp);
        let (at, mut scores) = knots(&sorted);
        if at.len() < LEAST_KNOTS {
            return None;
        }
        let own = own_units(&sorted, &at);
        let halfway =
            halfway && [own[0], own[at.len() - 1]].iter().all(|end| end.abs() <= LIGHT_TAILS);
        if halfway {
            for (score, own) in scores.iter_mut().zip(own) {
                *score = 0.5 * (*score + own);
            }
        }
        let mut slopes = slopes(&at, &scores);
        let last = at.len() - 1;
        // The lines stay within the range for the training values: heavy tails are not stretched.
        for (end, extreme, room) in [
            (0, at[0] - sorted[0], FARTHEST + scores[0]),
            (last, sorted[sorted.len() - 1] - at[last], FARTHEST - scores[last]),
        ] {
            slopes[end] = slopes[end].min(room / extreme);
        }
        Some(Self(Knots { at, scores, slopes, halfway }))
    }

    /// Whether it goes halfway to normal scores rather than all the way.
    pub fn is_halfway(&self) -> bool {
        self.0.halfway
    }

    /// `T(x)`.
    pub fn forward(&self, x: f64) -> f64 {
        let knots = &self.0;
        match beyond(&knots.at, x) {
            Some(end) => knots.scores[end] + knots.slopes[end] * (x - knots.at[end]),
            None => {
                let piece = self.piece(&knots.at, x);
                piece.score + piece.rise(piece.share(x))
            }
        }
    }

    /// The `x` at which `T(x)` is this score.
    pub fn inverse(&self, score: f64) -> f64 {
        let knots = &self.0;
        match beyond(&knots.scores, score) {
            Some(end) => knots.at[end] + (score - knots.scores[end]) / knots.slopes[end],
            None => {
                let piece = self.piece(&knots.scores, score);
                piece.at + piece.width * piece.share_of_rise(score - piece.score)
            }
        }
    }

    /// `log T'(x)`.
    pub fn log_derivative(&self, x: f64) -> f64 {
        let knots = &self.0;
        let derivative = match beyond(&knots.at, x) {
            Some(end) => knots.slopes[end],
            None => {
                let piece = self.piece(&knots.at, x);
                piece.derivative(piece.share(x))
            }
        };
        derivative.ln()
    }

    /// The piece that holds a value, among the knots' places or their scores.
    fn piece(&self, among: &[f64], value: f64) -> Piece {
        let Knots { at, scores, slopes, .. } = &self.0;
        let left = among.partition_point(|knot| *knot <= value).clamp(1, at.len() - 1) - 1;
        let width = at[left + 1] - at[left];
        let secant = (scores[left + 1] - scores[left]) / width;
        let (first, second) = (slopes[left], slopes[left + 1]);
        let terms = [first, 3.0 * secant - 2.0 * first - second, first + second - 2.0 * secant];
        Piece { at: at[left], score: scores[left], width, secant, terms }
    }
}

impl TryFrom<Knots> for MarginalMap {
    type Error = String;

    fn try_from(knots: Knots) -> Result<Self, String> {
        let Knots { at, scores, slopes, .. } = &knots;
        let rises = |values: &[f64]| values.windows(2).all(|pair| pair[0] < pair[1]);
        let number = at.len();
        if number < 2 || scores.len() != number || slopes.len() != number {
            return Err(
                "a marginal map needs as many scores and slopes as knots, two or more".into()
            );
        }
        let finite = [at, scores, slopes].iter().all(|all| all.iter().all(|x| x.is_finite()));
        let is_map = rises(at) && rises(scores) && slopes.iter().all(|&slope| slope > 0.0);
        let limited = scores.windows(2).zip(at.windows(2)).zip(slopes.windows(2)).all(
            |((scores, at), slopes)| {
                let limit = 3.0 * (scores[1] - scores[0]) / (at[1] - at[0]);
                slopes.iter().all(|&slope| slope < limit)
            },
        );
        match finite && is_map && limited {
            true => Ok(Self(knots)),
            false => Err("a marginal map must rise from knot to knot and between them".into()),
        }
    }
}

impl From<MarginalMap> for Knots {
    fn from(map: MarginalMap) -> Self {
        map.0
    }
}

/// A cubic between two knots.
struct Piece {
    at: f64,
    score: f64,
    width: f64,
    secant: f64,
    /// Coefficients of `t`, `t^2` and `t^3` for a share `t` of the width, per unit of width.
    terms: [f64; 3],
}

impl Piece {
    fn share(&self, x: f64) -> f64 {
        (x - self.at) / self.width
    }

    fn rise(&self, share: f64) -> f64 {
        let [first, second, third] = self.terms;
        self.width * share * (first + share * (second + share * third))
    }

    fn derivative(&self, share: f64) -> f64 {
        let [first, second, third] = self.terms;
        first + share * (2.0 * second + share * 3.0 * third)
    }

    /// The share of the width at which so much has been risen: Newton's steps, halving where they leave the bracket.
    fn share_of_rise(&self, rise: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        let mut share = (rise / (self.width * self.secant)).clamp(low, high);
        for _ in 0..100 {
            let excess = self.rise(share) - rise;
            if excess > 0.0 {
                high = share;
            } else {
                low = share;
            }
            let step = share - excess / (self.width * self.derivative(share));
            let next = if step >= low && step <= high { step } else { 0.5 * (low + high) };
            let moved = (next - share).abs();
            share = next;
            if moved <= f64::EPSILON * share {
                break;
            }
        }
        share
    }
}

/// Which of the end knots a value lies beyond, if any.
fn beyond(knots: &[f64], value: f64) -> Option<usize> {
    let last = knots.len() - 1;
    // What is not a number goes through the line as such.
    if value >= knots[0] { (value > knots[last]).then_some(last) } else { Some(0) }
}

/// Different values among the quantiles of sorted ones, and the normal scores of their middle ranks.
///
/// Shares of the quantiles are `sin^2` of equal steps, denser towards the tails than equal shares and less so than equal
/// scores. Where many values are equal, one knot stands for all of them.
fn knots(sorted: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let number = sorted.len() as f64;
    let tail = TAIL.max(LEAST_IN_TAIL / number);
    let wanted = ((0.5 * number.sqrt()) as usize).min(MOST_KNOTS);
    let [first, last] = [tail, 1.0 - tail].map(|share| share.sqrt().asin());
    let (mut at, mut scores) = (Vec::<f64>::new(), Vec::<f64>::new());
    for knot in 0..wanted {
        let angle = first + (last - first) * knot as f64 / (wanted - 1) as f64;
        let value = sorted[((angle.sin().powi(2) * number) as usize).min(sorted.len() - 1)];
        let below = sorted.partition_point(|other| *other < value);
        let not_above = sorted.partition_point(|other| *other <= value);
        let score = normal_quantile((below + not_above) as f64 / (2.0 * number));
        let is_apart = at.last().zip(scores.last()).is_none_or(|(left, lower)| {
            value > *left && (FLATTEST..=STEEPEST).contains(&((score - lower) / (value - left)))
        });
        if is_apart {
            at.push(value);
            scores.push(score);
        }
    }
    (at, scores)
}

/// The knots in units of the mean and standard deviation of the values between the outer ones, so that a few absurd values say nothing.
fn own_units(sorted: &[f64], at: &[f64]) -> Vec<f64> {
    let first = sorted.partition_point(|value| *value < at[0]);
    let last = sorted.partition_point(|value| *value <= at[at.len() - 1]);
    let within = &sorted[first..last];
    let number = within.len() as f64;
    let mean = within.iter().sum::<f64>() / number;
    let square = within.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / number;
    at.iter().map(|value| (value - mean) / square.sqrt()).collect()
}

/// Derivatives at the knots: a weighted harmonic mean of the slopes beside a knot, one-sided at the ends (PCHIP: Fritsch and
/// Butland, 1984), and limited.
fn slopes(at: &[f64], scores: &[f64]) -> Vec<f64> {
    let widths: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let rises = scores.windows(2).map(|pair| pair[1] - pair[0]);
    let secants: Vec<f64> = rises.zip(&widths).map(|(rise, width)| rise / width).collect();
    let end = |near: usize, next: usize| {
        let [own, other] = [near, next].map(|piece| (widths[piece], secants[piece]));
        let slope = ((2.0 * own.0 + other.0) * own.1 - own.0 * other.1) / (own.0 + other.0);
        // Noise may make it negative.
        slope.clamp(own.1 / 4.0, SLOPE_LIMIT * own.1)
    };
    let inner = (1..widths.len()).map(|knot| {
        let (left, right) =
            (2.0 * widths[knot] + widths[knot - 1], widths[knot] + 2.0 * widths[knot - 1]);
        let (before, after) = (secants[knot - 1], secants[knot]);
        let mean = (left + right) / (left / before + right / after);
        mean.min(SLOPE_LIMIT * before.min(after))
    });
    let last = widths.len() - 1;
    std::iter::once(end(0, 1)).chain(inner).chain([end(last, last - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use zhat::rng::Streams;

    use super::*;

    /// Columns that maps have trouble with, each in standard units.
    fn columns() -> Vec<(&'static str, Vec<f64>)> {
        let mut rng = Streams::new(11).stream("columns", 0, 0);
        let mut draws = |number: usize, of: fn(f64) -> f64| -> Vec<f64> {
            (0..number).map(|_| of(rng.normal())).collect()
        };
        let normal = |x: f64| x;
        let columns = vec![
            ("normal", draws(5000, normal)),
            ("few", draws(500, normal)),
            ("lognormal", draws(3000, f64::exp)),
            ("very heavy tails", draws(3000, |x| (3.0 * x).sinh())),
            ("half of it is one value", draws(2000, |x| x.max(0.0))),
            ("nearly one value", draws(2000, |x| if x < 1.0 { 1e-9 * x } else { x })),
            ("whole numbers", draws(1000, |x| (2.0 * x).round())),
            ("two clusters", draws(3000, |x| 0.1 * x + 50.0 * x.signum())),
            ("one absurd value", [draws(999, normal), vec![1e6]].concat()),
            ("between two walls", draws(3000, |x| x.sin())),
        ];
        columns.into_iter().map(|(name, values)| (name, standard(&values))).collect()
    }

    fn standard(values: &[f64]) -> Vec<f64> {
        let number = values.len() as f64;
        let mean = values.iter().sum::<f64>() / number;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / number;
        values.iter().map(|value| (value - mean) / square.sqrt()).collect()
    }

    /// The values, places between them, and places far beyond them.
    fn places(values: &[f64]) -> Vec<f64> {
        let mut places = values.to_vec();
        let step = |i: usize| -60.0 + 120.0 * i as f64 / 5000.0;
        places.extend((0..=5000).map(step).chain([-1e6, 1e6]));
        places.sort_unstable_by(f64::total_cmp);
        places
    }

    /// The maps of the columns, all the way and halfway.
    fn maps() -> impl Iterator<Item = (&'static str, Vec<f64>, MarginalMap)> {
        columns().into_iter().flat_map(|(name, values)| {
            let maps = [MarginalMap::fit, MarginalMap::fit_halfway];
            maps.map(|fit| (name, values.clone(), fit(values.clone()).expect(name)))
        })
    }

    #[test]
    fn every_map_rises_everywhere_and_its_inverse_brings_every_value_back() {
        for (name, values, map) in maps() {
            let places = places(&values);
            for pair in places.windows(2).filter(|pair| pair[1] - pair[0] > 1e-12 * pair[1].abs()) {
                assert!(map.forward(pair[0]) < map.forward(pair[1]), "{name}: {pair:?}");
            }
            for x in places {
                let error = (map.inverse(map.forward(x)) - x).abs();
                // To some last digits of the score, over the least slope that there may be.
                assert!(error <= 1e-12 * x.abs().max(1.0), "{name}: {x}, {error:e}");
                assert!(map.log_derivative(x).is_finite(), "{name}: {x}");
            }
            for score in (-400..=400).map(|i| 0.02 * f64::from(i)) {
                let error = (map.forward(map.inverse(score)) - score).abs();
                // Where the map is steep, the last digit of x is more than that of its score.
                let digit = map.log_derivative(map.inverse(score)).exp() * f64::EPSILON;
                assert!(error <= 1e-12 + 4.0 * digit, "{name}: {score}, {error:e}");
            }
        }
    }

    #[test]
    fn the_derivative_is_that_of_the_map() {
        for (name, _, map) in maps() {
            let Knots { at, .. } = &map.0;
            for pair in at.windows(2) {
                let step = 1e-5 * (pair[1] - pair[0]);
                for share in [0.1, 0.3, 0.5, 0.8] {
                    let x = pair[0] + share * (pair[1] - pair[0]);
                    let slope = (map.forward(x + step) - map.forward(x - step)) / (2.0 * step);
                    let error = slope.ln() - map.log_derivative(x);
                    assert!(error.abs() < 1e-5, "{name}: {x}, {error:e}");
                }
            }
            // It is continuous, so that the density is.
            for &knot in at {
                let step = 1e-9 * at.windows(2).map(|pair| pair[1] - pair[0]).fold(1.0, f64::min);
                let [before, after] = [-step, step].map(|step| map.log_derivative(knot + step));
                assert!((before - after).abs() < 1e-3, "{name}: {knot}, {before}, {after}");
            }
        }
    }

    #[test]
    fn training_values_become_normal_and_none_is_far_out() {
        for (name, values) in columns() {
            let map = MarginalMap::fit(values.iter().copied()).expect(name);
            let scores: Vec<f64> = values.iter().map(|&x| map.forward(x)).collect();
            assert!(scores.iter().all(|score| score.abs() < FARTHEST + 1e-9), "{name}");
            let Knots { scores, slopes, .. } = &map.0;
            assert!(scores.iter().all(|score| score.abs() < 3.0), "{name}");
            assert!(slopes.iter().all(|slope| (FLATTEST / 4.0..=2.0 * STEEPEST).contains(slope)));
        }
        let (_, values) = &columns()[2];
        let map = MarginalMap::fit(values.iter().copied()).unwrap();
        // Share of the values below a score, against the normal distribution's.
        for (score, share) in [(-1.0, 0.158655), (0.0, 0.5), (1.0, 0.841345), (2.0, 0.977250)] {
            let below = values.iter().filter(|&&x| map.forward(x) < score).count() as f64;
            assert!((below / values.len() as f64 - share).abs() < 0.01, "{score}");
        }
    }

    #[test]
    fn halfway_is_the_middle_of_own_units_and_normal_scores_where_tails_are_light() {
        let heavy =
            ["lognormal", "very heavy tails", "half of it is one value", "nearly one value"];
        for (name, values) in columns() {
            let all = MarginalMap::fit(values.iter().copied()).expect(name);
            let half = MarginalMap::fit_halfway(values.iter().copied()).expect(name);
            assert!(!all.is_halfway());
            assert_eq!(half.is_halfway(), !heavy.contains(&name), "{name}");
            if heavy.contains(&name) {
                assert_eq!(half, all, "{name}");
                continue;
            }
            // A single absurd value does not shrink the others.
            let mean = values.iter().map(|&x| half.forward(x)).sum::<f64>() / values.len() as f64;
            let within = values.iter().filter(|&&x| (half.forward(x) - mean).abs() < 1.0).count();
            let share = within as f64 / values.len() as f64;
            assert!((0.5..0.8).contains(&share) || name == "two clusters", "{name}: {share}");
            // What is not the normal scores' half is a line.
            let own: Vec<f64> = half
                .0
                .scores
                .iter()
                .zip(&all.0.scores)
                .map(|(half, all)| 2.0 * half - all)
                .collect();
            let slopes: Vec<f64> = own
                .windows(2)
                .zip(half.0.at.windows(2))
                .map(|(own, at)| (own[1] - own[0]) / (at[1] - at[0]))
                .collect();
            assert!(slopes.iter().all(|slope| (slope / slopes[0] - 1.0).abs() < 1e-6), "{name}");
        }
    }

    /// `p(x) = N(T(x)) T'(x)` integrates to one; without `T'` it does not.
    #[test]
    fn a_density_through_the_map_integrates_to_one_and_not_without_the_derivative() {
        let normal = |z: f64| (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
        for (name, _, map) in maps() {
            // By midpoints, as many in every piece and in the lines up to a score of 8.
            let mut edges = map.0.at.clone();
            edges.insert(0, map.inverse(-8.0));
            edges.push(map.inverse(8.0));
            let (mut right, mut wrong) = (0.0, 0.0);
            for pair in edges.windows(2) {
                let width = (pair[1] - pair[0]) / 2000.0;
                for x in (0..2000).map(|i| pair[0] + width * (f64::from(i) + 0.5)) {
                    let density = normal(map.forward(x));
                    right += density * map.log_derivative(x).exp() * width;
                    wrong += density * width;
                }
            }
            assert!((right - 1.0).abs() < 1e-5, "{name}: {right}");
            let is_nearly_normal = ["normal", "few", "whole numbers"].contains(&name);
            assert!(is_nearly_normal || (wrong - 1.0).abs() > 0.01, "{name}: {wrong}");
        }
    }

    #[test]
    fn log_densities_of_a_normal_column_hardly_change() {
        let mut rng = Streams::new(12).stream("normal", 0, 0);
        for (number, most) in [(500, 0.04), (3000, 0.01), (20_000, 0.002)] {
            let mut draws =
                |number: usize| -> Vec<f64> { (0..number).map(|_| rng.normal()).collect() };
            let (training, test) = (standard(&draws(number)), draws(20_000));
            let map = MarginalMap::fit(training).unwrap();
            let log_ratio =
                |&x: &f64| 0.5 * (x * x - map.forward(x).powi(2)) + map.log_derivative(x);
            let loss = -test.iter().map(log_ratio).sum::<f64>() / test.len() as f64;
            assert!(loss < most, "{number}: {loss}");
        }
    }

    #[test]
    fn there_is_no_map_for_few_values_or_few_different_ones() {
        assert_eq!(MarginalMap::fit([0.0, 1.0, 2.0, 1e6]), None);
        assert_eq!(MarginalMap::fit((0..59).map(f64::from)), None);
        assert_eq!(MarginalMap::fit((0..5000).map(|i| f64::from(i % 3))), None);
        assert_eq!(MarginalMap::fit((0..5000).map(|i| f64::from(i == 7))), None);
        assert_eq!(MarginalMap::fit([3.0; 500]), None);
        let missing = (0..1500).map(|i| if i % 2 == 0 { f64::NAN } else { f64::from(i) });
        let present = (0..1500).filter(|i| i % 2 == 1).map(f64::from);
        assert_eq!(MarginalMap::fit(missing), MarginalMap::fit(present));
    }

    #[test]
    fn a_missing_cell_stays_missing() {
        let map = MarginalMap::fit((0..500).map(f64::from)).unwrap();
        assert!(map.forward(f64::NAN).is_nan() && map.inverse(f64::NAN).is_nan());
    }

    #[test]
    fn it_survives_json_and_what_does_not_rise_is_refused() {
        let map = MarginalMap::fit((0..500).map(|i| f64::from(i).sqrt())).unwrap();
        let text = serde_json::to_string(&map).unwrap();
        assert_eq!(serde_json::from_str::<MarginalMap>(&text).unwrap(), map);
        for wrong in [
            r#"{"at": [0.0, 1.0], "scores": [0.0, 1.0], "slopes": [1.0]}"#,
            r#"{"at": [0.0, 1.0], "scores": [1.0, 0.0], "slopes": [1.0, 1.0]}"#,
            r#"{"at": [0.0, 1.0], "scores": [0.0, 1.0], "slopes": [1.0, 0.0]}"#,
            r#"{"at": [0.0, 1.0], "scores": [0.0, 1.0], "slopes": [9.0, 1.0]}"#,
        ] {
            assert!(serde_json::from_str::<MarginalMap>(wrong).is_err(), "{wrong}");
        }
    }
}
