//! What the paper's table says of the order of the criteria, beside what was found.

use zhat::criterion::Method;
use zhat_report::Claim;
use zhat_table::data::benchmark::Benchmark;

use super::cell::Cell;
use super::published::{points, published, true_distance};

/// A difference below this, in nats, is one that the paper itself needs its full training to show.
const LARGE: f64 = 1.0;

/// For each pair of criteria of each set, a claim about the likelihood, and one about the distance where it was measured.
pub(super) fn claims(cells: &[Cell]) -> Vec<Claim> {
    let pairs = [
        (Method::MlIs, Method::Rnce),
        (Method::MlIs, Method::SmcRnce),
        (Method::Rnce, Method::SmcRnce),
    ];
    let mut claims = Vec::new();
    for set in Benchmark::ALL {
        let cell = |criterion: Method| {
            cells.iter().find(|cell| (cell.dataset, cell.criterion) == (set, criterion))
        };
        for (first, second) in pairs {
            if let (Some(low), Some(high)) = (cell(first), cell(second)) {
                claims.push(order(set, low, high));
                claims.extend(closer(set, low, high));
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

/// The claim that the draws of one of two criteria are closer to the data: the one that is in the paper.
fn closer(set: Benchmark, first: &Cell, second: &Cell) -> Option<Claim> {
    let figure = |cell: &Cell| {
        let paper = published(set, cell.criterion)?;
        Some(true_distance(paper.wasserstein.0, points(set)))
    };
    let paper = figure(first).zip(figure(second));
    let (far, near) = match paper {
        Some((first_figure, second_figure)) if first_figure < second_figure => (second, first),
        _ => (first, second),
    };
    let distances =
        |cell: &Cell| cell.wasserstein.as_ref().map(|found| (found.points, found.summary()));
    let ((far_points, (far_mean, far_error)), (near_points, (near_mean, near_error))) =
        distances(far).zip(distances(near))?;
    if far_points != near_points {
        return None;
    }
    let error = far_error.hypot(near_error);
    let published = match paper {
        Some((a, b)) => format!("In the paper {:.2} against {:.2}.", a.min(b), a.max(b)),
        None => format!("The paper leaves out {}.", label(far.criterion)),
    };
    Some(Claim::new(
        format!(
            "{}: the draws of {} are closer to the data than those of {} (2-Wasserstein).",
            title(set),
            label(near.criterion),
            label(far.criterion)
        ),
        format!("{near_mean:.3} against {far_mean:.3}, give or take {error:.3}. {published}"),
        far_mean - near_mean > 2.0 * error,
    ))
}

/// A criterion as the paper writes it.
pub(super) fn label(criterion: Method) -> &'static str {
    match criterion {
        Method::MlIs => "ML-IS",
        Method::Rnce => "RNCE",
        Method::SmcRnce => "SMC-RNCE",
        Method::SmcRnceTrajectory => "SMC-RNCE (trajectories)",
        Method::QOnly => "proposal alone",
        other => other.name(),
    }
}

/// A set as the paper writes it.
pub(super) fn title(set: Benchmark) -> String {
    format!("{} ({})", set.name().to_uppercase(), set.dimension())
}

#[cfg(test)]
mod tests {
    use zhat_table::fit::{Likelihood, StepSeconds};

    use super::super::Distances;
    use super::*;

    fn cell(dataset: Benchmark, criterion: Method, found: Option<(f64, f64)>) -> Cell {
        let likelihood = found.map(|(log_likelihood, se_log_z)| Likelihood {
            log_likelihood,
            se_test: 0.1,
            se_log_z,
            log_z: 0.0,
            mean_log_z_hat: 0.0,
            proposal_log_likelihood: -1.0,
            proposal_se_test: 0.1,
            effective_sample_size: vec![0.5],
            smallest_effective_sample_size: 0.5,
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
                cell(Benchmark::Power, Method::MlIs, Some(first)),
                cell(Benchmark::Power, Method::Rnce, Some(second)),
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
    fn distances_are_compared_where_both_have_as_many_points() {
        let with = |criterion, points, values: [f64; 3]| Cell {
            wasserstein: Some(Distances { points, particles: 100, values: values.to_vec() }),
            ..cell(Benchmark::Power, criterion, Some((0.0, 0.1)))
        };
        let far = with(Method::MlIs, 100, [0.69, 0.70, 0.71]);
        let near = with(Method::Rnce, 100, [0.46, 0.47, 0.48]);
        let found = claims(&[far.clone(), near.clone()]);
        assert_eq!(found.len(), 2);
        assert!(found[1].holds && found[1].claim.contains("RNCE are closer"));
        assert!(found[1].measured.contains("0.470 against 0.700"), "{}", found[1].measured);
        // The paper's, on the true scale.
        assert!(found[1].measured.contains("0.62 against 3.62"), "{}", found[1].measured);
        let close = with(Method::Rnce, 100, [0.60, 0.70, 0.79]);
        assert!(!claims(&[far.clone(), close])[1].holds, "within the error");
        assert_eq!(claims(&[far, with(Method::Rnce, 50, [0.1, 0.2, 0.3])]).len(), 1);
    }

    #[test]
    fn small_gaps_reversed_gaps_and_divergence_are_said() {
        let small = claims(&[
            cell(Benchmark::Power, Method::Rnce, Some((0.0, 0.001))),
            cell(Benchmark::Power, Method::SmcRnce, Some((0.1, 0.001))),
        ]);
        assert!(small[0].measured.contains("a reduced run need not show it"));
        // In the paper's BSDS300, RNCE is above SMC-RNCE.
        let reversed = claims(&[
            cell(Benchmark::Bsds300, Method::Rnce, Some((150.0, 0.1))),
            cell(Benchmark::Bsds300, Method::SmcRnce, Some((140.0, 0.1))),
        ]);
        assert!(reversed[0].claim.contains("RNCE is above SMC-RNCE") && reversed[0].holds);
        let diverged = claims(&[
            cell(Benchmark::Miniboone, Method::MlIs, None),
            cell(Benchmark::Miniboone, Method::Rnce, Some((-20.0, 0.1))),
        ]);
        assert!(diverged[0].holds && diverged[0].measured.contains("leaves out ML-IS"));
    }
}
