//! What the paper's table says of the order of the criteria, beside what was found.

use zhat_report::Claim;
use zhat_table::data::benchmark::Benchmark;
use zhat_table::fit::Criterion;

use super::cell::Cell;
use super::published::published;

/// A difference below this, in nats, is one that the paper itself needs its full training to show.
const LARGE: f64 = 1.0;

/// One claim for each pair of neighbouring criteria of each set.
pub(super) fn claims(cells: &[Cell]) -> Vec<Claim> {
    let pairs = [(Criterion::MlIs, Criterion::Rnce), (Criterion::Rnce, Criterion::SmcRnce)];
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
