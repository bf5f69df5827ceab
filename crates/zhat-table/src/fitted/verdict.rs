//! Whether a likelihood can be trusted and the model fits, in words.

use std::fmt;

use serde::{Deserialize, Serialize};
use zhat::criterion::Method;

use super::check::{About, Check};
use super::goodness::Goodness;
use crate::density::Opinion;
use crate::fit::Likelihood;

/// Effective particles that the worst stage must have.
const ENOUGH_PARTICLES: f64 = 100.0;
/// The largest share of a stage's weight that one particle may have.
const LARGEST_WEIGHT: f64 = 0.1;
/// The largest standard error of `log Z`, in nats: a tenth is the size of the differences that people publish.
const LARGEST_ERROR: f64 = 0.1;
/// The largest error of integrals by quadrature, in nats: above it the rules are too coarse for what they integrate.
const LARGEST_QUADRATURE_ERROR: f64 = 0.01;
/// The heaviest tail of weights with which an estimate gets better at a rate that anybody could wait for (Vehtari et al., 2024).
const LARGEST_K: f64 = 0.7;
/// A heavier tail does no harm where this share of the mass at most is beyond the largest weight that was seen: see [`largest_k`].
const MOST_UNSEEN: f64 = 0.02;
/// Two estimates that differ by more of their joint standard errors than this disagree.
const DISAGREEMENT: f64 = 4.0;
/// And those that differ by more nats than this do so however large their errors are.
const LARGEST_DISAGREEMENT: f64 = 0.2;
/// Differences below this, in nats, are of no interest to anybody.
const NEGLIGIBLE: f64 = 0.005;

/// How much more of the model's mass than of the rows may be far out. An energy that does not grow has it everywhere.
const MORE_FAR_OUT: f64 = 0.05;

const BY_SMC_RNCE: &str =
    "fit with the criterion smc-rnce, which is least sensitive to a poor proposal";

/// Whether a likelihood can be trusted and the model fits, if not why, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the number is right: there is a `Z`, and it is known.
    pub trusted: bool,
    /// Whether the model's draws are like rows that it was not fitted to; none where nobody looked.
    #[serde(default)]
    pub fits: Option<bool>,
    /// What was looked at.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// What speaks against it: those of the checks that failed.
    pub reasons: Vec<String>,
    /// What to do about it.
    pub advice: Vec<String>,
}

impl Verdict {
    /// Judges the first of the opinions on `log Z` by its own weights and by the others, and the model by its fit; nobody is told to
    /// train by the criterion that it was trained by.
    pub(super) fn new(
        likelihood: &Likelihood,
        opinions: &[Opinion],
        goodness: Option<&Goodness>,
        columns: &[String],
        criterion: Option<Method>,
    ) -> Self {
        let tail = &likelihood.tail;
        if !tail.falls {
            let reason = format!(
                "there is no Z, and so no likelihood: the density does not fall far out; column {}, given those before it, has {}",
                tail.column,
                tail.figures()
            );
            let advice = [
                "fit with model.energy-form=tilted, which falls as its base does",
                "or confine the energy: model.confine=8, further out than the data",
            ];
            let [[near, first], [far, last]] = tail.ends();
            let [first, last] = [first, last].map(|log_p| log_p.clamp(f64::MIN, f64::MAX));
            // Not a number fails, whatever the figure that is shown: the ladder has looked at every rung between these two.
            let check = Check::at_most(NAME_OF_TAIL, f64::NAN, first - (far / near).ln(), reason);
            let check = Check { figure: last, ..check };
            return Self::of(vec![check], advice.map(String::from).to_vec());
        }
        if likelihood.rows == 0 {
            let reason =
                "there are no test rows (data.split.test is 0), and so no likelihood of them";
            let advice = "keep some rows for the test, or evaluate the run on a file of rows";
            let check = Check::at_least("rows", 0.0, 1.0, reason.into());
            return Self::of(vec![check], vec![advice.into()]);
        }
        let mut checks = of_weights(likelihood, columns);
        checks.extend(of_integrals(likelihood));
        checks.extend(of_opinions(likelihood, opinions));
        let of_likelihood: &[&str] = if checks.iter().all(|check| check.passed) {
            &[]
        } else if likelihood.estimates == 0 {
            &[
                "fit again with a larger weight decay or a smaller model.tilt-bound, so that the tilt is smoother",
            ]
        } else {
            &[
                "try more particles: if the numbers move, none of them is right",
                "fit again with a longer step.warm-up or more training.num-steps, so that the proposal covers the model",
                BY_SMC_RNCE,
            ]
        };
        let is_used = |text: &str| text == BY_SMC_RNCE && criterion == Some(Method::SmcRnce);
        let mut advice: Vec<String> = of_likelihood
            .iter()
            .filter(|text| !is_used(text))
            .map(|text| text.to_string())
            .collect();
        let of_fit = goodness.map(Goodness::checks).unwrap_or_default();
        if of_fit.iter().any(|check| !check.passed) {
            advice.extend(ADVICE_FOR_FIT.map(String::from));
        }
        checks.extend(of_fit);
        Self::of(checks, advice)
    }

    fn of(checks: Vec<Check>, advice: Vec<String>) -> Self {
        let passed = |about: About| checks.iter().filter(|c| c.about == about).all(|c| c.passed);
        let looked_at = checks.iter().any(|check| check.about == About::Fit);
        Self {
            trusted: passed(About::Likelihood),
            fits: looked_at.then(|| passed(About::Fit)),
            reasons: failed(&checks).map(|check| check.reason.clone()).collect(),
            checks,
            advice,
        }
    }

    /// Whether nothing speaks against the number or the model.
    pub fn is_good(&self) -> bool {
        self.trusted && self.fits != Some(false)
    }

    /// The two sentences of the verdict, each with the reasons for a no.
    pub fn sentences(&self) -> Vec<(&'static str, Vec<&str>)> {
        let reasons = |about: About| {
            let of = failed(&self.checks).filter(move |check| check.about == about);
            of.map(|check| &*check.reason).collect::<Vec<_>>()
        };
        // What an earlier version wrote has reasons and no checks.
        let of_likelihood = match self.checks.is_empty() {
            true => self.reasons.iter().map(String::as_str).collect(),
            false => reasons(About::Likelihood),
        };
        let likelihood = match self.trusted {
            true => "This likelihood can be trusted.",
            false => "This likelihood is not to be trusted:",
        };
        let mut sentences = vec![(likelihood, of_likelihood)];
        match self.fits {
            Some(true) => sentences.push((FITS, Vec::new())),
            Some(false) => sentences.push((DOES_NOT_FIT, reasons(About::Fit))),
            None => {}
        }
        sentences
    }
}

const NAME_OF_TAIL: &str = "log p~ far out, which has to fall faster than 1/x";
const FITS: &str = "The model fits: its draws are like rows that it was not fitted to.";
const DOES_NOT_FIT: &str = "The model does not fit rows that it was not fitted to:";
const ADVICE_FOR_FIT: [&str; 2] = [
    "train longer if validation still rises at its end (a larger time or more training.num-steps), else give the model more parameters or \
     more rows",
    "look at the named columns in the report: what kind they are, and whether the rows are of the same source as those of the fit",
];

fn failed(checks: &[Check]) -> impl Iterator<Item = &Check> {
    checks.iter().filter(|check| !check.passed)
}

/// Whether the likelihood is a number, and the particles behind its `log Z` are many.
fn of_weights(likelihood: &Likelihood, columns: &[String]) -> Vec<Check> {
    let Likelihood { particles, largest_weight, se_log_z, .. } = *likelihood;
    let mut checks = Vec::new();
    if !likelihood.log_likelihood.is_finite() {
        let reason = "the log-likelihood is not a finite number";
        checks.push(Check::at_least("log-likelihood", f64::NAN, f64::MIN, reason.into()));
    }
    if likelihood.estimates == 0 {
        return checks;
    }
    let stages = likelihood.effective_sample_size.iter().zip(columns);
    if let Some((share, column)) = stages.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
        // The worst is what is no number, if there is one.
        let none = likelihood.effective_sample_size.iter().find(|share| share.is_nan());
        let effective = none.unwrap_or(share) * particles as f64;
        let reason = format!(
            "only {effective:.1} of {particles} particles are effective at column {column} (at least {ENOUGH_PARTICLES} are needed)"
        );
        let name = "effective particles at the worst column";
        checks.push(Check::at_least(name, effective, ENOUGH_PARTICLES, reason));
    }
    let tails = likelihood.pareto_k.iter().zip(columns);
    if let Some((k, column)) = tails.max_by(|(a, _), (b, _)| a.total_cmp(b)) {
        let reason = format!(
            "the weights have a tail with k-hat {k:.2} at column {column}: more particles would not make log Z known much better"
        );
        let name = "Pareto k-hat of the worst column's weights";
        checks.push(Check::at_most(name, *k, largest_k(largest_weight), reason));
    }
    let reason =
        format!("one particle has {:.0} % of all weight at some stage", 100.0 * largest_weight);
    let name = "largest weight of a particle";
    checks.push(Check::at_most(name, largest_weight, LARGEST_WEIGHT, reason));
    if likelihood.collapsed {
        let reason = format!(
            "the {} estimates of Z are worth {:.1}: one dominates, and log Z-hat spreads by {:.1} nats, so that log Z is too low by an \
             unknown amount",
            likelihood.estimates, likelihood.effective_estimates, likelihood.spread_of_log_z_hat
        );
        let check = Check::at_least(
            "effective estimates of Z",
            likelihood.effective_estimates,
            5.0,
            reason,
        );
        checks.push(Check { passed: false, ..check });
    }
    let reason = format!("log Z has a standard error of {se_log_z:.3} nats");
    checks.push(Check::at_most("standard error of log Z, nats", se_log_z, LARGEST_ERROR, reason));
    checks
}

/// The heaviest tail that does no harm, where one particle has at most such a share of all weight.
///
/// Of `n` weights the largest, `w`, is exceeded with probability `1 / n`, and then on average by a factor of `1 / (1 - k)` in a tail of shape
/// `k`. So `w / (n (1 - k))` of the mass was not seen: the largest share of the weight over `1 - k`. Where weights hardly differ that is
/// nothing, however their few largest are spread: the shape of a tail says nothing of its size. But `k` itself is known to about 0.1, and
/// at 1 there is no mean.
fn largest_k(largest_weight: f64) -> f64 {
    (1.0 - largest_weight / MOST_UNSEEN).clamp(LARGEST_K, 0.9)
}

/// Whether integrals are right, and no mass is where no row is.
fn of_integrals(likelihood: &Likelihood) -> Vec<Check> {
    let by_quadrature = likelihood.quadrature_error;
    let reason = format!(
        "the integrals in a row's log-density are known to {by_quadrature:.3} nats only: the model is too rough for their quadrature"
    );
    let name = "error of the quadrature, nats";
    let mut checks = Vec::new();
    if by_quadrature != 0.0 {
        checks.push(Check::at_most(name, by_quadrature, LARGEST_QUADRATURE_ERROR, reason));
    }
    let [model, rows] = likelihood.far_out;
    if likelihood.estimates > 0 {
        let reason = format!(
            "{:.0} % of the model's mass, but {:.1} % of the rows, is further than five standard deviations out: the energy hardly \
             grows there",
            100.0 * model,
            100.0 * rows
        );
        let most = 2.0 * rows + MORE_FAR_OUT;
        let check = Check::at_most("share of the model's mass far out", model, most, reason);
        // What is not known is for the other checks to say.
        checks.push(Check { passed: check.passed || model.is_nan(), ..check });
    }
    checks
}

/// Whether other methods agree about `log Z`. One with too few effective draws is dropped, and said to be.
fn of_opinions(likelihood: &Likelihood, opinions: &[Opinion]) -> Vec<Check> {
    // Where nothing is estimated, log Z is 0 but for the error of quadrature.
    let known = Opinion {
        method: "quadrature".into(),
        log_z: 0.0,
        standard_error: likelihood.quadrature_error,
        effective_sample_size: None,
        from_above: false,
    };
    let (own, others) = match (likelihood.estimates, opinions) {
        (0, others) => (&known, others),
        (_, [own, others @ ..]) => (own, others),
        (_, []) => return Vec::new(),
    };
    let check = |other: &Opinion| {
        let difference = match other.from_above {
            true => other.log_z - own.log_z,
            false => (own.log_z - other.log_z).abs(),
        };
        let error = own.standard_error.hypot(other.standard_error);
        let reason = format!(
            "{} says log Z is {:.3} ± {:.3}, {} {:.3} ± {:.3}",
            own.method,
            own.log_z,
            own.standard_error,
            other.method,
            other.log_z,
            other.standard_error
        );
        let name = match other.from_above {
            true => format!("log Z by {}, above, nats", other.method),
            false => format!("log Z by {}, apart, nats", other.method),
        };
        let most = (DISAGREEMENT * error + NEGLIGIBLE).min(LARGEST_DISAGREEMENT);
        let mut check = Check::at_most(&name, difference, most, reason);
        if !other.is_sound() {
            check.passed = true;
            check.name = format!("log Z by {}: dropped", other.method);
            let size = other.effective_sample_size.unwrap_or(f64::NAN);
            check.reason = format!(
                "{} has {size:.0} effective draws and is dropped: what it says of log Z ({:.3}) counts for nothing",
                other.method, other.log_z
            );
        }
        check
    };
    others.iter().map(check).collect()
}

/// A sentence about the number and one about the model, a list of reasons below either, and one of advice where there are any.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (at, (sentence, reasons)) in self.sentences().into_iter().enumerate() {
            write!(f, "{}{sentence}", if at == 0 { "" } else { "\n" })?;
            reasons.iter().try_for_each(|reason| write!(f, "\n  - {reason}"))?;
        }
        if !self.advice.is_empty() {
            write!(f, "\nWhat to do:")?;
        }
        self.advice.iter().try_for_each(|advice| write!(f, "\n  - {advice}"))
    }
}

impl Opinion {
    /// Whether the estimate has enough effective draws for its error to mean something.
    pub fn is_sound(&self) -> bool {
        self.log_z.is_finite()
            && self.standard_error.is_finite()
            && self.effective_sample_size.is_none_or(|size| size >= ENOUGH_PARTICLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::Tail;

    fn likelihood() -> Likelihood {
        Likelihood {
            log_likelihood: -1.0,
            se_test: 0.01,
            se_log_z: 0.002,
            log_z: -0.5,
            mean_log_z_hat: -0.5,
            spread_of_log_z_hat: 0.01,
            effective_estimates: 19.9,
            collapsed: false,
            proposal_log_likelihood: -1.1,
            proposal_se_test: 0.01,
            effective_sample_size: vec![0.9, 0.5],
            smallest_effective_sample_size: 0.5,
            se_log_z_by_genealogy: 0.002,
            pareto_k: vec![0.1, 0.3],
            rows: 100,
            effective_rows: None,
            largest_weight: 0.001,
            far_out: [0.001, 0.0],
            quadrature_error: 1e-4,
            tail: Tail {
                column: "b".into(),
                log_p_tilde: vec![[6.0, -2.6], [10_000.0, -1e6]],
                falls: true,
            },
            particles: 1000,
            estimates: 20,
        }
    }

    fn opinion(method: &str, log_z: f64, size: Option<f64>) -> Opinion {
        Opinion {
            method: method.into(),
            log_z,
            standard_error: 0.002,
            effective_sample_size: size,
            from_above: false,
        }
    }

    fn verdict(likelihood: &Likelihood, others: &[Opinion]) -> Verdict {
        let mut opinions = vec![opinion("SMC", likelihood.log_z, Some(500.0))];
        opinions.extend(others.iter().cloned());
        Verdict::new(likelihood, &opinions, None, &["a".into(), "b".into()], Some(Method::Rnce))
    }

    #[test]
    fn nobody_is_told_to_use_what_is_used() {
        let doubtful = Likelihood { se_log_z: 0.3, ..likelihood() };
        let advice = |criterion| Verdict::new(&doubtful, &[], None, &[], Some(criterion)).advice;
        let tells = |advice: &[String]| advice.iter().any(|text| text.contains("smc-rnce"));
        assert!(tells(&advice(Method::Rnce)) && !tells(&advice(Method::SmcRnce)));
        let known = |text: &String| text.contains("training.num-steps");
        assert!(advice(Method::SmcRnce).iter().any(known), "by the names that settings have");
    }

    #[test]
    fn a_sound_estimate_is_trusted() {
        let verdict = verdict(&likelihood(), &[opinion("bridge sampling", -0.498, None)]);
        assert!(verdict.trusted, "{verdict:?}");
        assert!(verdict.advice.is_empty());
    }

    #[test]
    fn every_reason_for_doubt_is_named() {
        let cases = [
            (Likelihood { effective_sample_size: vec![0.9, 0.01], ..likelihood() }, "column b"),
            (
                Likelihood { effective_sample_size: vec![f64::NAN, f64::NAN], ..likelihood() },
                "effective",
            ),
            (Likelihood { largest_weight: 0.4, ..likelihood() }, "40 %"),
            (Likelihood { se_log_z: 0.3, ..likelihood() }, "0.300 nats"),
            (Likelihood { far_out: [0.3, 0.01], ..likelihood() }, "30 % of the model's mass"),
            (Likelihood { se_log_z: f64::NAN, ..likelihood() }, "standard error"),
            (Likelihood { quadrature_error: 0.02, ..likelihood() }, "known to 0.020 nats"),
            (Likelihood { pareto_k: vec![0.2, 1.2], ..likelihood() }, "1.20 at column b"),
            (Likelihood { collapsed: true, ..likelihood() }, "one dominates"),
            (Likelihood { log_likelihood: f64::NAN, ..likelihood() }, "finite"),
        ];
        for (doubtful, word) in cases {
            let verdict = verdict(&doubtful, &[]);
            assert!(!verdict.trusted && !verdict.advice.is_empty());
            assert!(verdict.reasons.iter().any(|r| r.contains(word)), "{word}: {verdict:?}");
        }
    }

    #[test]
    fn a_heavy_tail_of_weights_that_hardly_differ_is_no_reason() {
        let of = |k: f64, largest_weight: f64| {
            let doubtful = Likelihood { pareto_k: vec![0.1, k], largest_weight, ..likelihood() };
            verdict(&doubtful, &[]).trusted
        };
        // A thousand particles: twice as much weight as the mean, and ten times as much.
        assert!(of(0.75, 0.002) && !of(0.75, 0.01) && of(0.69, 0.01));
        assert!(!of(0.95, 0.001), "nearly without a mean nothing is known");
    }

    #[test]
    fn where_there_is_no_z_that_is_the_only_reason() {
        let tail = Tail {
            column: "b".into(),
            log_p_tilde: vec![[-6.0, -2.6], [-10_000.0, -2.0]],
            falls: false,
        };
        let none = Likelihood { tail, largest_weight: 0.4, ..likelihood() }.or_none();
        assert!(none.log_likelihood.is_nan() && none.log_z.is_nan());
        let Verdict { trusted, reasons, advice, checks, .. } = verdict(&none, &[]);
        assert!(!trusted && reasons.len() == 1 && advice[0].contains("tilted"));
        assert!(checks[0].figure > checks[0].threshold, "{checks:?}");
        let figures = "column b, given those before it, has log p~ -2.6 at -6 and -2.0 at -10000";
        assert!(reasons[0].contains(figures), "{reasons:?}");
        // What is written as null is read as no number.
        let written = serde_json::to_string(&none).unwrap();
        assert!(written.contains("\"log_likelihood\":null"));
        let read: Likelihood = serde_json::from_str(&written).unwrap();
        assert!(read.log_likelihood.is_nan() && read.tail == none.tail);
    }

    #[test]
    fn a_sound_opinion_that_differs_counts_and_an_unsound_one_does_not() {
        let far = opinion("importance sampling", -0.4, Some(900.0));
        assert!(!verdict(&likelihood(), &[far]).trusted);
        let unsound = opinion("importance sampling", -0.4, Some(3.0));
        let found = verdict(&likelihood(), &[unsound]);
        assert!(found.trusted);
        assert!(found.checks.iter().any(|check| check.reason.contains("is dropped")), "{found:?}");
        // However large its error is said to be.
        let vague = Opinion { standard_error: 0.5, ..opinion("bridge sampling", -0.1, None) };
        assert!(!verdict(&likelihood(), &[vague]).trusted);
        // One from above disagrees only above.
        for (log_z, trusted) in [(-0.3, false), (-0.7, true)] {
            let above = Opinion { from_above: true, ..opinion("conditional SMC", log_z, None) };
            assert_eq!(verdict(&likelihood(), &[above]).trusted, trusted);
        }
    }
}
