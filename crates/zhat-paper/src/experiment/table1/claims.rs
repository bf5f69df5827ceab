//! What the paper's table says of the order of the criteria, beside what was found.

use zhat_report::Claim;
use zhat_table::data::benchmark::Benchmark;
use zhat_table::fit::Criterion;

use super::cell::Cell;
use super::published::published;

/// A difference below this, in nats, is one that the paper itself needs its full training to show.
const LARGE: f64 = 1.0;

/// One claim for each pair of criteria of each set.
pub(super) fn claims(cells: &[Cell]) -> Vec<Claim> {
    let pairs = [
        (Criterion::MlIs, Criterion::Rnce),
        (Criterion::MlIs, Criterion::SmcRnce),
        (Criterion::Rnce, Criterion::SmcRnce),
    ];
    let mut claims = Vec::new();
    for set in Benchmark::ALL {
        let cell = |criterion: Criterion| {
            cells.iter().find(|cell| (cell.dataset, cell.criterion) == (set, criterion))
        };
        for (first, second) in pairs {
            if let (Some(low), Some(high)) = (cell(first), cell(second)) {
                claims.push(order(set, low, high));
            }
        }
    }
    claims
}

/// The claim that one of two criteria has the higher likelihood: the one that has it in the paper.
fn order(set: Benchmark, first: &Cell, second: &Cell) -> Claim {
    let figure = |cell: &Cell| published(set, cell.criterion).map(|paper| paper.log_likelihood.0);
    // What the paper could not train is below everything.
    let gap = figure(second).zip(figure(first)).map(|(second, first)| second - first);
    let (low, high) =
        if gap.is_some_and(|gap| gap < 0.0) { (second, first) } else { (first, second) };
    let paper = match gap {
        Some(gap) if gap.abs() < LARGE => {
            format!(
                "In the paper the gap is {:.3}: small, so that a reduced run need not show it.",
                gap.abs()
            )
        }
        Some(gap) => format!("In the paper the gap is {:.2}.", gap.abs()),
        None => {
            format!("The paper leaves out {}, whose training was unstable.", label(low.criterion))
        }
    };
    let claim = format!(
        "{}: {} is above {} in likelihood.",
        title(set),
        label(high.criterion),
        label(low.criterion)
    );
    let (measured, holds) = match (&low.likelihood, &high.likelihood) {
        (Some(low), Some(high)) => {
            let gap = high.log_likelihood - low.log_likelihood;
            let error = high.se_log_z.hypot(low.se_log_z);
            let measured = format!(
                "{:.3} against {:.3}: a gap of {gap:.3}, give or take {error:.3} for log Z.",
                high.log_likelihood, low.log_likelihood
            );
            (measured, gap > 2.0 * error)
        }
        (None, Some(high)) => {
            (format!("{:.3} against a training that diverged.", high.log_likelihood), true)
        }
        (_, None) => (format!("Training with {} diverged.", label(high.criterion)), false),
    };
    Claim::new(claim, format!("{measured} {paper}"), holds)
}

/// A criterion as the paper writes it.
pub(super) fn label(criterion: Criterion) -> &'static str {
    match criterion {
        Criterion::MlIs => "ML-IS",
        Criterion::Rnce => "RNCE",
        Criterion::SmcRnce => "SMC-RNCE",
        Criterion::SmcRnceTrajectory => "SMC-RNCE (trajectories)",
        Criterion::QOnly => "proposal alone",
    }
}

/// A set as the paper writes it.
pub(super) fn title(set: Benchmark) -> String {
    format!("{} ({})", set.name().to_uppercase(), set.dimension())
}

#[cfg(test)]
mod tests {
    use zhat_table::fit::{Likelihood, StepSeconds};

    use super::*;

    fn cell(dataset: Benchmark, criterion: Criterion, found: Option<(f64, f64)>) -> Cell {
        let likelihood = found.map(|(log_likelihood, se_log_z)| Likelihood {
            log_likelihood,
            se_test: 0.1,
            se_log_z,
            log_z: 0.0,
            mean_log_z_hat: 0.0,
            proposal_log_likelihood: -1.0,
            proposal_se_test: 0.1,
            ess: vec![0.5],
            smallest_ess: 0.5,
            rows: 100,
            largest_weight: 0.01,
            far_out: [0.0, 0.0],
            particles: 100,
            estimates: 10,
        });
        Cell {
            dataset,
            criterion,
            steps: 10,
            warm_up: 5,
            paper_steps: 1000,
            batch: 8,
            paper_batch: 8,
            step_seconds: StepSeconds { warm_up: 0.1, full: 1.0 },
            training_seconds: 5.5,
            full_hours: 1.0,
            best_step: Some(10),
            diverged: likelihood.is_none().then(|| "it diverged".into()),
            likelihood,
            wasserstein: None,
        }
    }

    #[test]
    fn an_order_holds_when_it_is_clear_of_the_error() {
        let power = |first, second| {
            claims(&[
                cell(Benchmark::Power, Criterion::MlIs, Some(first)),
                cell(Benchmark::Power, Criterion::Rnce, Some(second)),
            ])
        };
        let clear = power((-2.0, 0.1), (0.1, 0.1));
        assert_eq!(clear.len(), 1);
        assert_eq!(clear[0].claim, "POWER (6): RNCE is above ML-IS in likelihood.");
        assert!(clear[0].holds && clear[0].measured.contains("a gap of 2.100"));
        assert!(!power((0.0, 0.1), (0.1, 0.1))[0].holds, "within the error");
        assert!(!power((0.1, 0.01), (-2.0, 0.01))[0].holds, "the other way round");
    }

    #[test]
    fn small_gaps_reversed_gaps_and_divergence_are_said() {
        let small = claims(&[
            cell(Benchmark::Power, Criterion::Rnce, Some((0.0, 0.001))),
            cell(Benchmark::Power, Criterion::SmcRnce, Some((0.1, 0.001))),
        ]);
        assert!(small[0].measured.contains("a reduced run need not show it"));
        // In the paper's BSDS300, RNCE is above SMC-RNCE.
        let reversed = claims(&[
            cell(Benchmark::Bsds300, Criterion::Rnce, Some((150.0, 0.1))),
            cell(Benchmark::Bsds300, Criterion::SmcRnce, Some((140.0, 0.1))),
        ]);
        assert!(reversed[0].claim.contains("RNCE is above SMC-RNCE") && reversed[0].holds);
        let diverged = claims(&[
            cell(Benchmark::Miniboone, Criterion::MlIs, None),
            cell(Benchmark::Miniboone, Criterion::Rnce, Some((-20.0, 0.1))),
        ]);
        assert!(diverged[0].holds && diverged[0].measured.contains("leaves out ML-IS"));
    }
}
