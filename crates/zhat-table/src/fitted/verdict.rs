//! Whether a likelihood can be trusted, in words.

use std::fmt;

use serde::{Deserialize, Serialize};
use zhat::criterion::Method;

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
/// Two estimates that differ by more of their joint standard errors than this disagree.
const DISAGREEMENT: f64 = 4.0;
/// Differences below this, in nats, are of no interest to anybody.
const NEGLIGIBLE: f64 = 0.005;

/// How much more of the model's mass than of the rows may be far out. An energy that does not grow has it everywhere.
const MORE_FAR_OUT: f64 = 0.05;

const BY_SMC_RNCE: &str =
    "fit with the criterion smc-rnce, which is least sensitive to a poor proposal";

/// Whether a likelihood can be trusted, if not why, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether it can.
    pub trusted: bool,
    /// What speaks against it.
    pub reasons: Vec<String>,
    /// What to do about it.
    pub advice: Vec<String>,
}

impl Verdict {
    /// Judges the first of the opinions on `log Z` by its own weights and by the others; nobody is told to train by the criterion
    /// that it was trained by.
    pub(super) fn new(
        likelihood: &Likelihood,
        opinions: &[Opinion],
        columns: &[String],
        criterion: Option<Method>,
    ) -> Self {
        let mut reasons = Vec::new();
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
            let advice = advice.map(String::from).to_vec();
            return Self { trusted: false, reasons: vec![reason], advice };
        }
        if likelihood.rows == 0 {
            let reason =
                "there are no test rows (data.split.test is 0), and so no likelihood of them";
            let advice = "keep some rows for the test, or evaluate the run on a file of rows";
            return Self {
                trusted: false,
                reasons: vec![reason.into()],
                advice: vec![advice.into()],
            };
        }
        if !likelihood.log_likelihood.is_finite() {
            reasons.push("the log-likelihood is not a finite number".into());
        }
        let stages = likelihood.effective_sample_size.iter().zip(columns);
        if let Some((share, column)) = stages.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
            let effective = share * likelihood.particles as f64;
            if effective.is_nan() || effective < ENOUGH_PARTICLES {
                reasons.push(format!(
                    "only {effective:.1} of {} particles are effective at column {column} (at least {ENOUGH_PARTICLES} are needed)",
                    likelihood.particles
                ));
            }
        }
        if likelihood.largest_weight > LARGEST_WEIGHT {
            reasons.push(format!(
                "one particle has {:.0} % of all weight at some stage",
                100.0 * likelihood.largest_weight
            ));
        }
        if likelihood.collapsed {
            reasons.push(format!(
                "the {} estimates of Z are worth {:.1}: one dominates, and log Z-hat spreads by {:.1} nats, so that log Z is \
                 too low by an unknown amount",
                likelihood.estimates, likelihood.effective_estimates, likelihood.spread_of_log_z_hat
            ));
        }
        if likelihood.se_log_z.is_nan() || likelihood.se_log_z > LARGEST_ERROR {
            reasons.push(format!("log Z has a standard error of {:.3} nats", likelihood.se_log_z));
        }
        let by_quadrature = likelihood.quadrature_error;
        if by_quadrature.is_nan() || by_quadrature > LARGEST_QUADRATURE_ERROR {
            reasons.push(format!(
                "the integrals in a row's log-density are known to {by_quadrature:.3} nats only: the model is too rough for \
                 their quadrature"
            ));
        }
        let [model, rows] = likelihood.far_out;
        if model > 2.0 * rows + MORE_FAR_OUT {
            reasons.push(format!(
                "{:.0} % of the model's mass, but {:.1} % of the rows, is further than five standard deviations out: the \
                 energy hardly grows there",
                100.0 * model,
                100.0 * rows
            ));
        }
        let (own, others) = opinions.split_at(opinions.len().min(1));
        for (own, other) in own.iter().flat_map(|own| others.iter().map(move |other| (own, other)))
        {
            if !other.is_sound() {
                continue;
            }
            let difference = (own.log_z - other.log_z).abs();
            let error = own.standard_error.hypot(other.standard_error);
            if difference > DISAGREEMENT * error + NEGLIGIBLE {
                reasons.push(format!(
                    "{} says log Z is {:.3} ± {:.3}, {} {:.3} ± {:.3}",
                    own.method,
                    own.log_z,
                    own.standard_error,
                    other.method,
                    other.log_z,
                    other.standard_error
                ));
            }
        }
        let trusted = reasons.is_empty();
        let advice: &[&str] = if trusted {
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
        let advice = advice.iter().filter(|text| !is_used(text)).map(|text| text.to_string());
        Self { trusted, reasons, advice: advice.collect() }
    }
}

/// A sentence, and a list of reasons and one of advice where there are any.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.trusted {
            return write!(f, "This likelihood can be trusted.");
        }
        write!(f, "This likelihood is not to be trusted:")?;
        self.reasons.iter().try_for_each(|reason| write!(f, "\n  - {reason}"))?;
        write!(f, "\nWhat to do:")?;
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
        Opinion { method: method.into(), log_z, standard_error: 0.002, effective_sample_size: size }
    }

    fn verdict(likelihood: &Likelihood, others: &[Opinion]) -> Verdict {
        let mut opinions = vec![opinion("SMC", likelihood.log_z, Some(500.0))];
        opinions.extend(others.iter().cloned());
        Verdict::new(likelihood, &opinions, &["a".into(), "b".into()], Some(Method::Rnce))
    }

    #[test]
    fn nobody_is_told_to_use_what_is_used() {
        let doubtful = Likelihood { se_log_z: 0.3, ..likelihood() };
        let advice = |criterion| Verdict::new(&doubtful, &[], &[], Some(criterion)).advice;
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
    fn where_there_is_no_z_that_is_the_only_reason() {
        let tail = Tail {
            column: "b".into(),
            log_p_tilde: vec![[-6.0, -2.6], [-10_000.0, -2.0]],
            falls: false,
        };
        let none = Likelihood { tail, largest_weight: 0.4, ..likelihood() }.or_none();
        assert!(none.log_likelihood.is_nan() && none.log_z.is_nan());
        let Verdict { trusted, reasons, advice } = verdict(&none, &[]);
        assert!(!trusted && reasons.len() == 1 && advice[0].contains("tilted"));
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
        assert!(verdict(&likelihood(), &[unsound]).trusted);
    }
}
