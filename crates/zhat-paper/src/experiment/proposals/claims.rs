//! The paper's claims about proposals, beside what was measured.

use zhat_report::number::rounded;
use zhat_report::{Claim, Quantiles};

use super::{Arm, DIMENSION, Results, Settings};
use crate::experiment::Protocol;

/// Below this median divergence an arm counts as having found the data distribution.
const FOUND: f64 = 0.1;
/// "Several times later".
const SEVERAL: f64 = 3.0;
/// Floors within this factor of each other are "about the same".
const SAME_FLOOR: f64 = 2.0;

/// The claims that the arms at hand can speak to.
pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let medians = Medians::of(results);
    let mut claims = Vec::new();
    if let (Some(data), Some(model), Some(adaptive)) =
        (medians.get(Arm::DATA), medians.get(Arm::MODEL), medians.get(Arm::ADAPTIVE))
    {
        claims.push(order(data, model, adaptive));
        claims.push(fastest(data, model, adaptive));
        claims.push(much_better(data, adaptive));
    }
    claims.extend(same_floor(&medians, &results.settings));
    claims
}

/// At step 100 the median divergences are in the paper's order.
fn order(data: &[f64], model: &[f64], adaptive: &[f64]) -> Claim {
    let step = model.len().min(100);
    let [data, model, adaptive] = [data, model, adaptive].map(|median| median[step - 1]);
    Claim::new(
        "q = p_{θ} is the best choice, the adaptive proposal comes next, and q = p_{d} last.",
        format!(
            "At step {step} the median KL is {} with q = p_{{θ}}, {} with q = q_{{φ}} and {} with q = p_{{d}}.",
            rounded(model),
            rounded(adaptive),
            rounded(data)
        ),
        model < adaptive && adaptive < data,
    )
}

/// The model as its own proposal is first below the threshold.
fn fastest(data: &[f64], model: &[f64], adaptive: &[f64]) -> Claim {
    let steps = model.len();
    let [data, model, adaptive] = [data, model, adaptive].map(first_below);
    let before = |a: Option<usize>, b: Option<usize>| a.is_some_and(|a| b.is_none_or(|b| a < b));
    let shown =
        |at: Option<usize>| at.map_or(format!("more than {steps}"), |step| step.to_string());
    Claim::new(
        "q = p_{θ} converges fastest.",
        format!(
            "The median KL is below {FOUND} after {} steps with q = p_{{θ}}, against {} with q = q_{{φ}} and {} with \
             q = p_{{d}}.",
            shown(model),
            shown(adaptive),
            shown(data)
        ),
        before(model, adaptive) && before(model, data),
    )
}

/// The adaptive proposal is several times faster than the exact data distribution.
fn much_better(data: &[f64], adaptive: &[f64]) -> Claim {
    let claim = "The adaptive proposal performs much better than the exact data distribution.";
    let steps = data.len();
    let (measured, holds) = match (first_below(adaptive), first_below(data)) {
        (Some(adaptive), Some(data)) => {
            let ratio = data as f64 / adaptive as f64;
            (
                format!(
                    "q = p_{{d}} needs {ratio:.1} times as many steps to a median KL below {FOUND}."
                ),
                ratio >= SEVERAL,
            )
        }
        (Some(adaptive), None) => (
            format!(
                "Median KL below {FOUND} after {adaptive} steps; not within {steps} steps with q = p_{{d}}."
            ),
            steps as f64 / adaptive as f64 >= SEVERAL,
        ),
        (None, _) => {
            (format!("The median KL did not fall below {FOUND} within {steps} steps."), false)
        }
    };
    Claim::new(claim, measured, holds)
}

/// All arms that converge end on about the same floor.
fn same_floor(medians: &Medians, settings: &Settings) -> Option<Claim> {
    let levels: Vec<(Arm, f64, bool)> = medians
        .0
        .iter()
        .map(|(arm, median)| (*arm, level(median), converged(median, settings.protocol)))
        .collect();
    if levels.len() < 2 {
        return None;
    }
    let floors: Vec<f64> =
        levels.iter().filter(|(.., converged)| *converged).map(|(_, level, _)| *level).collect();
    let largest = floors.iter().copied().fold(0.0, f64::max);
    let smallest = floors.iter().copied().fold(f64::INFINITY, f64::min);
    let shown: Vec<String> = levels
        .iter()
        .map(|(arm, level, converged)| {
            let unfinished = if *converged { "" } else { " (has not converged)" };
            format!("{} with {}{unfinished}", rounded(*level), arm.label())
        })
        .collect();
    let step_size = match settings.protocol {
        Protocol::Text => "the step size, with which the parameters keep moving",
        Protocol::AsPublished => "the step size, and falls with it",
    };
    let set_by = match settings.samples {
        None => format!("It is set by {step_size}."),
        Some(samples) => format!(
            "It is set by {step_size}, and by the {samples} training points: an estimate of {} parameters from them has an \
             expected KL of about {} at least.",
            2 * DIMENSION,
            rounded(DIMENSION as f64 / samples as f64)
        ),
    };
    Some(Claim::new(
        "All arms that converge end on about the same floor.",
        format!("Median KL over the last tenth of the run: {}. {set_by}", shown.join(", ")),
        floors.len() > 1 && largest <= SAME_FLOOR * smallest,
    ))
}

/// The first step after which the median is below the threshold, counted from 1.
fn first_below(median: &[f64]) -> Option<usize> {
    median.iter().position(|value| *value < FOUND).map(|step| step + 1)
}

/// The typical median over the last tenth of a run.
fn level(median: &[f64]) -> f64 {
    let tenth = median.len().div_ceil(10);
    middle(&median[median.len() - tenth..])
}

/// Whether the median has come far down (to a twentieth of its start) and has stopped falling (the last tenth is not below
/// two thirds of the tenth before). On the plateau where `q = p_d` spends half of its time, only the second is true.
///
/// Where the learning rate decays, as in the published program, the floor falls with it, and the first is enough.
fn converged(median: &[f64], protocol: Protocol) -> bool {
    let tenth = median.len().div_ceil(10);
    let before = &median[median.len().saturating_sub(2 * tenth)..median.len() - tenth];
    let (start, level) = (median[0], level(median));
    let falling = before.is_empty() || level < middle(before) * 2.0 / 3.0;
    level < start / 20.0 && (protocol == Protocol::AsPublished || !falling)
}

fn middle(values: &[f64]) -> f64 {
    Quantiles::of(values.to_vec()).map_or(f64::NAN, |quantiles| quantiles.median)
}

/// The median over runs after every step, arm by arm.
struct Medians(Vec<(Arm, Vec<f64>)>);

impl Medians {
    fn of(results: &Results) -> Self {
        let median = |runs: &Vec<Vec<f64>>| {
            let at = |step| middle(&runs.iter().map(|run| run[step]).collect::<Vec<_>>());
            (0..results.settings.steps).map(at).collect()
        };
        let medians = results.divergences.iter().map(median);
        Self(results.settings.arms.iter().copied().zip(medians).collect())
    }

    fn get(&self, arm: Arm) -> Option<&[f64]> {
        self.0.iter().find(|(known, _)| *known == arm).map(|(_, median)| &median[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One run of each arm: exponential decays to a floor.
    fn results(half_lives: [f64; 3], floors: [f64; 3]) -> Results {
        let settings = Settings { runs: 1, steps: 4000, ..Settings::default() };
        let curve = |(half_life, floor): (f64, f64)| {
            vec![(1..=4000).map(|i| 20.0 * 0.5f64.powf(f64::from(i) / half_life) + floor).collect()]
        };
        let divergences = half_lives.into_iter().zip(floors).map(curve).collect();
        Results { settings, divergences }
    }

    fn verdicts(results: &Results) -> Vec<bool> {
        claims(results).iter().map(|claim| claim.holds).collect()
    }

    #[test]
    fn claims_hold_when_they_are_true_and_only_then() {
        assert_eq!(verdicts(&results([200.0, 10.0, 40.0], [0.01; 3])), [true; 4]);
        // The model's arm is slowest.
        assert_eq!(verdicts(&results([200.0, 300.0, 40.0], [0.01; 3])), [false, false, true, true]);
        // The adaptive arm is hardly better than the data.
        assert_eq!(verdicts(&results([50.0, 10.0, 40.0], [0.01; 3])), [true, true, false, true]);
        // Another floor.
        let apart = results([200.0, 10.0, 40.0], [0.01, 0.01, 0.03]);
        assert_eq!(verdicts(&apart), [true, true, true, false]);
    }

    #[test]
    fn a_floor_that_falls_with_the_learning_rate_is_one_too() {
        let mut results = results([400.0; 3], [0.0; 3]);
        assert!(!claims(&results)[3].holds);
        results.settings.protocol = Protocol::AsPublished;
        assert!(claims(&results)[3].holds);
    }

    #[test]
    fn an_arm_that_is_still_falling_is_no_part_of_the_floor() {
        for half_life in [600.0, 10_000.0] {
            let results = results([half_life, 10.0, 40.0], [0.01; 3]);
            let floor = claims(&results).pop().unwrap();
            assert!(floor.holds);
            assert!(floor.measured.contains("q = p_{d} (has not converged)"), "{}", floor.measured);
        }
    }
}
