//! The paper's claims about acceptance rules and persistence, beside what was measured.

use zhat::criterion::Method;
use zhat_report::number::rounded;
use zhat_report::{Arm, Claim, Experiment, Quantiles};

use super::Settings;

/// From this number of training points on, the paper finds no gain of persistence in the median.
const MANY_SAMPLES: usize = 1000;

/// A median that is lower by less than this factor is no gain. The squared error of a Gaussian estimate is a multiple of a
/// chi-squared variable, whose median 0.455 over 100 draws has a standard error of 1/(2 * 0.471 * 10) = 0.106, 23 % of it.
const NO_GAIN: f64 = 1.0 - 0.23;

/// The claims that the arms at hand can speak to.
pub(super) fn claims(settings: &Settings, experiment: &Experiment) -> Vec<Claim> {
    let arm = |method: Method| experiment.arms.get(&method.to_string());
    let mut claims = vec![larger_acceptance(experiment)];
    if let (Some(cnce), Some(mh_cnce)) = (arm(Method::Cnce), arm(Method::MhCnce)) {
        claims.push(faster(cnce, mh_cnce));
    }
    let pairs: Vec<Pair> = [(Method::Cnce, Method::PCnce), (Method::MhCnce, Method::PMhCnce)]
        .into_iter()
        .filter_map(|(plain, persistent)| {
            Pair::of(&plain.to_string(), arm(plain)?, arm(persistent)?)
        })
        .collect();
    if !pairs.is_empty() {
        let (median, worst) = (|ends: &Quantiles| ends.median, |ends: &Quantiles| ends.worst);
        let lower = |ratio| ratio < 1.0;
        if settings.samples < MANY_SAMPLES {
            let claim = "Persistence lowers the final median error.";
            claims.push(Pair::claim(&pairs, claim, median, lower));
            let claim = "Persistence lowers the final worst-case error.";
            claims.push(Pair::claim(&pairs, claim, worst, lower));
        } else {
            let claim =
                "With many training points the median error does not gain from persistence.";
            claims.push(Pair::claim(&pairs, claim, median, |ratio| ratio > NO_GAIN));
            let claim = "Persistence still lowers the final worst-case error.";
            claims.push(Pair::claim(&pairs, claim, worst, lower));
        }
    }
    claims
}

/// `min(1, r) > r / (1 + r)` on the same pairs, whatever the arm that is trained.
fn larger_acceptance(experiment: &Experiment) -> Claim {
    let (mut larger, mut all, mut smallest) = (0, 0, f64::INFINITY);
    for arm in experiment.arms.values() {
        let (barker, metropolis) = (&arm.acceptance[BARKER], &arm.acceptance[METROPOLIS]);
        for (barker, metropolis) in barker.iter().zip(metropolis) {
            all += 1;
            larger += usize::from(metropolis > barker);
            smallest = smallest.min(metropolis / barker);
        }
    }
    Claim::new(
        "The MH acceptance probability is larger than the one used by CNCE.",
        format!(
            "Larger at {larger} of {all} points of the curves (all arms, all iterations shown), and nowhere less than {} \
             times CNCE's.",
            rounded(smallest)
        ),
        larger == all,
    )
}

/// The key of CNCE's rule in the record.
pub(super) const BARKER: &str = "cnce";
/// The key of the Metropolis-Hastings rule in the record.
pub(super) const METROPOLIS: &str = "mh-cnce";

/// MH-CNCE gets sooner to twice the median error at which CNCE ends.
fn faster(cnce: &Arm, mh_cnce: &Arm) -> Claim {
    let end = cnce.curves.median.last().copied().unwrap_or(f64::NAN);
    let sooner = |arm: &Arm| {
        arm.curves.rows().find(|(_, quantiles)| quantiles.median <= 2.0 * end).map(|(i, _)| i)
    };
    let (plain, metropolis) = (sooner(cnce), sooner(mh_cnce));
    let last = cnce.curves.iterations.last().copied().unwrap_or(0);
    let shown = |at: Option<usize>| at.map_or(format!("more than {last}"), |at| at.to_string());
    Claim::new(
        "The MH acceptance probability leads to slightly faster convergence of standard CNCE.",
        format!(
            "Iterations to a median squared error of at most {} (twice where CNCE ends): {} with MH-CNCE, {} with CNCE.",
            rounded(2.0 * end),
            shown(metropolis),
            shown(plain)
        ),
        metropolis.is_some_and(|metropolis| plain.is_none_or(|plain| metropolis < plain)),
    )
}

/// Where a method and its persistent version ended.
struct Pair {
    name: String,
    plain: Quantiles,
    persistent: Quantiles,
}

impl Pair {
    fn of(name: &str, plain: &Arm, persistent: &Arm) -> Option<Self> {
        let (_, plain) = plain.curves.last()?;
        let (_, persistent) = persistent.curves.last()?;
        Some(Self { name: name.to_uppercase(), plain, persistent })
    }

    /// A claim about the ratio of the persistent version's end to the other's, in every pair.
    fn claim(
        pairs: &[Pair],
        claim: &str,
        end: fn(&Quantiles) -> f64,
        holds: fn(f64) -> bool,
    ) -> Claim {
        let ends = pairs.iter().map(|pair| (&pair.name, end(&pair.plain), end(&pair.persistent)));
        let shown: Vec<String> = ends
            .clone()
            .map(|(name, plain, persistent)| {
                format!("{} with P-{name}, {} with {name}", rounded(persistent), rounded(plain))
            })
            .collect();
        let all = ends.clone().all(|(_, plain, persistent)| holds(persistent / plain));
        Claim::new(claim, format!("Final squared error: {}.", shown.join("; ")), all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zhat_report::summarise;

    /// Constant curves of two runs for each arm, and the same acceptance for all.
    fn experiment(ends: [(f64, f64); 4], acceptance: (f64, f64)) -> Experiment {
        let mut experiment = Experiment::new("ring", "0");
        for (method, (median, worst)) in super::super::ARMS.into_iter().zip(ends) {
            let runs = [vec![8.0, median], vec![8.0, median], vec![8.0, worst]];
            let mut arm = Arm::from(summarise(&runs, &[1, 2]).unwrap());
            arm.acceptance.insert(BARKER.into(), vec![acceptance.0; 2]);
            arm.acceptance.insert(METROPOLIS.into(), vec![acceptance.1; 2]);
            experiment.arms.insert(method.to_string(), arm);
        }
        experiment
    }

    fn verdicts(samples: usize, experiment: &Experiment) -> Vec<bool> {
        let settings = Settings { samples, ..Settings::default() };
        claims(&settings, experiment).iter().map(|claim| claim.holds).collect()
    }

    #[test]
    fn claims_hold_when_they_are_true_and_only_then() {
        let gains = experiment([(2.0, 5.0), (2.0, 5.0), (1.0, 3.0), (1.0, 3.0)], (0.2, 0.3));
        assert!(verdicts(200, &gains)[0]);
        assert_eq!(verdicts(200, &gains)[2..], [true, true]);
        // With many samples the paper finds no gain in the median, so a gain contradicts it.
        assert_eq!(verdicts(1000, &gains)[2..], [false, true]);
        // A gain within the noise is none.
        let same = experiment([(2.0, 5.0), (2.0, 5.0), (1.8, 3.0), (2.5, 3.0)], (0.2, 0.3));
        assert_eq!(verdicts(1000, &same)[2..], [true, true]);
        let mixed = experiment([(1.0, 5.0), (2.0, 5.0), (1.5, 3.0), (1.0, 6.0)], (0.3, 0.3));
        assert_eq!(verdicts(200, &mixed), [false, false, false, false]);
        assert_eq!(verdicts(1000, &mixed)[2..], [false, false]);
    }
}
