//! What the paper's table says of the order of the criteria, beside what was found.

use zhat::criterion::Method;
use zhat_report::number::{interval, rounded};
use zhat_report::{Claim, Decision, Quantiles};
use zhat_table::data::benchmark::Benchmark;
use zhat_table::fit::{Likelihood, mean_and_error};

use super::approach::Approach;
use super::cell::Cell;
use super::published::{points, published, true_distance};

/// A difference below this, in nats, is one that the paper itself needs its full training to show.
const LARGE: f64 = 1.0;

/// A difference of more than so many standard errors, one way or the other, comes by chance once in 22 times.
const ERRORS: f64 = 2.0;

/// What no error here knows of.
const ONE_SEED: &str = "One seed: how much another training would differ is not known.";

/// For each pair of the paper's criteria of each set, a claim about the likelihood, and one about the distance where it was measured.
pub(super) fn claims(cells: &[Cell]) -> Vec<Claim> {
    let pairs = [
        (Method::MlIs, Method::Rnce),
        (Method::MlIs, Method::SmcRnce),
        (Method::Rnce, Method::SmcRnce),
    ];
    let mut claims = Vec::new();
    for set in Benchmark::ALL {
        let cell = |criterion: Method| {
            cells
                .iter()
                .find(|cell| (cell.dataset, cell.criterion) == (set, Approach::Paper(criterion)))
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
            format!("The paper leaves out {}, whose training was unstable.", low.criterion.label())
        }
    };
    let claim = format!(
        "{}: {} is above {} in likelihood.",
        title(set),
        high.criterion.label(),
        low.criterion.label()
    );
    let (test, measured, decision) = match (&low.likelihood, &high.likelihood) {
        (Some(_), Some(_)) => compared(low, high),
        (low, high) => {
            let measured = match high {
                Some(high) => {
                    format!("{:.3} against a training that diverged.", high.log_likelihood)
                }
                None => "Training diverged.".to_string(),
            };
            let holds = high.is_some() && low.is_none();
            let decision = if holds { Decision::Holds } else { Decision::DoesNotHold };
            (format!("Whether training ends with a model. {ONE_SEED}"), measured, decision)
        }
    };
    Claim::new(claim, test, format!("{measured} {paper}"), decision)
}

/// The likelihoods of two models, row by row: the test, what was measured, and what follows.
fn compared(low: &Cell, high: &Cell) -> (String, String, Decision) {
    let [below, above] = [low, high].map(|cell| cell.likelihood.as_ref().expect("both are known"));
    let rows: Vec<f64> =
        high.log_p_tilde.iter().zip(&low.log_p_tilde).map(|(high, low)| high - low).collect();
    let (difference, of_rows) = mean_and_error(&rows);
    let gap = difference - above.log_z + below.log_z;
    let error = of_rows.hypot(above.se_log_z).hypot(below.se_log_z);
    let test = format!(
        "Difference of the log-densities row by row, mean over the test rows; its error is that over rows and of both log Z. It \
         must be above {ERRORS} errors (level 5 %). {ONE_SEED}"
    );
    let mut measured = format!(
        "{:.3} against {:.3}: a gap of {gap:.3} ± {error:.3}, of which {of_rows:.3} is over rows.",
        above.log_likelihood, below.log_likelihood
    );
    let mut decision = Decision::above(0.0, (gap - ERRORS * error, gap + ERRORS * error));
    if !(above.tail.falls && below.tail.falls) {
        measured += " A model that does not fall far out has no Z.";
        decision = Decision::NotToldApart;
    }
    if few_count(above) || few_count(below) {
        measured += " Too few particles count for log Z to be known to its error.";
        decision = Decision::NotToldApart;
    }
    (test, measured, decision)
}

/// Whether so few particles count at a stage that `log Z` is likely too low, by more than its error says; where there are none,
/// nothing was estimated.
pub(super) fn few_count(found: &Likelihood) -> bool {
    found.particles > 0 && found.smallest_effective_sample_size * (found.particles as f64) < 100.0
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
    let (away, close) = far.wasserstein.as_ref().zip(near.wasserstein.as_ref())?;
    if away.points != close.points {
        return None;
    }
    let differences = away.values.iter().zip(&close.values).map(|(far, near)| far - near);
    let found = Quantiles::of(differences.collect()).ok()?;
    let published = match paper {
        Some((a, b)) => format!("In the paper {:.2} against {:.2}.", a.min(b), a.max(b)),
        None => format!("The paper leaves out {}.", far.criterion.label()),
    };
    Some(Claim::new(
        format!(
            "{}: the draws of {} are closer to the data than those of {} (2-Wasserstein).",
            title(set),
            near.criterion.label(),
            far.criterion.label()
        ),
        format!(
            "Difference of the distances to the same test rows, estimate by estimate; its median with a 95 % interval from \
             order statistics (sign test, level 5 %) must be above 0. {ONE_SEED}"
        ),
        format!(
            "{:.3} against {:.3}: nearer by {} ({}). {published}",
            close.summary().0,
            away.summary().0,
            rounded(found.median),
            interval(found.median_interval)
        ),
        Decision::above(0.0, found.median_interval),
    ))
}

/// A set as the paper writes it.
pub(super) fn title(set: Benchmark) -> String {
    format!("{} ({})", set.name().to_uppercase(), set.dimension())
}

#[cfg(test)]
mod tests {
    use zhat::rng::Streams;
    use zhat_table::density::Tail;
    use zhat_table::fit::StepSeconds;

    use super::super::Distances;
    use super::*;

    fn cell(dataset: Benchmark, criterion: Method, found: Option<(f64, f64)>) -> Cell {
        // Rows that differ much from each other, and in the same way under both criteria.
        let spread = [-3.0, -1.0, 0.0, 1.0, 3.0].repeat(20);
        let rows = |mean: f64| spread.iter().map(|row| mean + row).collect();
        let log_p_tilde = found.map_or(Vec::new(), |(mean, _)| rows(mean));
        let likelihood = found.map(|(log_likelihood, se_log_z)| Likelihood {
            log_likelihood,
            se_test: 0.1,
            se_log_z,
            log_z: 0.0,
            mean_log_z_hat: 0.0,
            spread_of_log_z_hat: 0.0,
            effective_estimates: 10.0,
            collapsed: false,
            proposal_log_likelihood: -1.0,
            proposal_se_test: 0.1,
            effective_sample_size: vec![0.5],
            smallest_effective_sample_size: 0.5,
            se_log_z_by_genealogy: se_log_z,
            pareto_k: vec![0.3],
            rows: 100,
            effective_rows: None,
            largest_weight: 0.01,
            far_out: [0.0, 0.0],
            quadrature_error: 0.0,
            tail: Tail { column: "a".into(), log_p_tilde: Vec::new(), falls: true },
            particles: 1000,
            estimates: 10,
        });
        Cell {
            dataset,
            criterion: Approach::Paper(criterion),
            steps: 10,
            warm_up: 5,
            paper_steps: Some(1000),
            batch: 8,
            paper_batch: Some(8),
            step_seconds: StepSeconds { warm_up: 0.1, full: 1.0 },
            training_seconds: 5.5,
            full_hours: Some(1.0),
            best_step: Some(10),
            diverged: likelihood.is_none().then(|| "it diverged".into()),
            likelihood,
            wasserstein: None,
            log_p_tilde,
        }
    }

    fn power(first: (f64, f64), second: (f64, f64)) -> Vec<Claim> {
        claims(&[
            cell(Benchmark::Power, Method::MlIs, Some(first)),
            cell(Benchmark::Power, Method::Rnce, Some(second)),
        ])
    }

    #[test]
    fn an_order_holds_when_it_is_clear_of_the_error() {
        let clear = power((-2.0, 0.1), (0.1, 0.1));
        assert_eq!(clear.len(), 1);
        assert_eq!(clear[0].claim, "POWER (6): RNCE is above ML-IS in likelihood.");
        assert_eq!(clear[0].decision, Decision::Holds);
        assert!(clear[0].measured.contains("a gap of 2.100 ± 0.141"), "{}", clear[0].measured);
        assert!(clear[0].test.contains("One seed"));
        assert_eq!(power((0.0, 0.1), (0.1, 0.1))[0].decision, Decision::NotToldApart);
        assert_eq!(power((0.1, 0.01), (-2.0, 0.01))[0].decision, Decision::DoesNotHold);
        // The rows differ by far more than the criteria: unpaired, their error of 0.2 would hide this.
        assert_eq!(power((0.0, 0.001), (0.1, 0.001))[0].decision, Decision::Holds);
    }

    #[test]
    fn no_order_is_told_where_log_z_rests_on_few_particles() {
        let mut high = cell(Benchmark::Power, Method::Rnce, Some((5.0, 0.001)));
        high.likelihood.as_mut().unwrap().smallest_effective_sample_size = 0.05;
        let low = cell(Benchmark::Power, Method::MlIs, Some((0.0, 0.001)));
        let claim = claims(&[low, high]).remove(0);
        assert_eq!(claim.decision, Decision::NotToldApart);
        assert!(claim.measured.contains("Too few particles"), "{}", claim.measured);
    }

    #[test]
    fn no_claim_of_the_paper_is_about_what_goes_beyond_it() {
        let paper = [
            cell(Benchmark::Power, Method::MlIs, Some((-2.0, 0.1))),
            cell(Benchmark::Power, Method::SmcRnce, Some((0.1, 0.1))),
        ];
        // Better than all, and of the same criterion as a row of the paper's that is not there.
        let beyond = Cell {
            criterion: Approach::Beyond,
            ..cell(Benchmark::Power, Method::Rnce, Some((5.0, 0.0)))
        };
        let [first, second] = paper.clone();
        assert_eq!(claims(&[first, beyond.clone(), second]), claims(&paper));
        assert_eq!(claims(&[beyond]), []);
        assert_eq!(published(Benchmark::Power, Approach::Beyond), None);
    }

    #[test]
    fn where_nothing_is_estimated_no_particles_are_missing() {
        let mut found = cell(Benchmark::Power, Method::Rnce, Some((0.0, 0.0))).likelihood.unwrap();
        found.particles = 90;
        assert!(few_count(&found));
        found.particles = 0;
        assert!(!few_count(&found));
    }

    #[test]
    fn equal_criteria_are_told_apart_as_often_as_the_level_says() {
        // Two models as good as each other on all there is, on 400 rows, each with its own estimate of log Z.
        let (mut now, mut before) = (0, 0);
        for seed in 0..200 {
            let rng = &mut Streams::new(seed).stream("test", 0, 0);
            let [mut low, mut high] = [Method::MlIs, Method::Rnce]
                .map(|criterion| cell(Benchmark::Power, criterion, Some((0.0, 0.01))));
            for cell in [&mut low, &mut high] {
                cell.likelihood.as_mut().unwrap().log_z = 0.01 * rng.normal();
                cell.log_p_tilde.clear();
            }
            for _ in 0..400 {
                let shared = 2.0 * rng.normal();
                low.log_p_tilde.push(shared + 0.5 * rng.normal());
                high.log_p_tilde.push(shared + 0.5 * rng.normal());
            }
            for cell in [&mut low, &mut high] {
                let found = cell.likelihood.as_mut().unwrap();
                found.log_likelihood = mean_and_error(&cell.log_p_tilde).0 - found.log_z;
            }
            let [a, b] = [&low, &high].map(|cell| cell.likelihood.clone().unwrap());
            // The rule that was: the errors of log Z alone.
            let error = a.se_log_z.hypot(b.se_log_z);
            before += usize::from((b.log_likelihood - a.log_likelihood).abs() > 2.0 * error);
            let decision = claims(&[low, high])[0].decision;
            now += usize::from(decision != Decision::NotToldApart);
        }
        // 4.6 % of 200 is 9, with a standard deviation of 2.9; three of them.
        assert!((1..=18).contains(&now), "{now}");
        assert!(before > 60, "the rule that was tells {before} of 200 apart");
    }

    #[test]
    fn distances_are_compared_estimate_by_estimate_where_both_have_as_many_points() {
        let with = |criterion, points, values: &[f64]| Cell {
            wasserstein: Some(Distances { points, particles: 100, values: values.to_vec() }),
            ..cell(Benchmark::Power, criterion, Some((0.0, 0.1)))
        };
        // Estimates that differ more from each other than the criteria do: the test rows drawn are the same for both.
        let of_rows = [0.60, 0.65, 0.70, 0.75, 0.80, 0.85];
        let far = with(Method::MlIs, 100, &of_rows);
        let near = with(Method::Rnce, 100, &of_rows.map(|distance| distance - 0.01));
        let found = claims(&[far.clone(), near.clone()]);
        assert_eq!(found.len(), 2);
        assert!(found[1].claim.contains("RNCE are closer"));
        assert_eq!(found[1].decision, Decision::Holds);
        assert!(found[1].measured.contains("0.715 against 0.725: nearer by 0.01000"));
        // The paper's, on the true scale.
        assert!(found[1].measured.contains("0.62 against 3.62"), "{}", found[1].measured);
        let mixed = with(Method::Rnce, 100, &[0.5, 0.6, 0.6, 0.7, 0.7, 0.9]);
        assert_eq!(claims(&[far.clone(), mixed])[1].decision, Decision::NotToldApart);
        let few = with(Method::Rnce, 100, &[0.1; 5]);
        assert_eq!(claims(&[far.clone(), few])[1].decision, Decision::NotToldApart);
        assert_eq!(claims(&[far, with(Method::Rnce, 50, &of_rows)]).len(), 1);
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
        assert!(reversed[0].claim.contains("RNCE is above SMC-RNCE"));
        assert_eq!(reversed[0].decision, Decision::Holds);
        let diverged = claims(&[
            cell(Benchmark::Miniboone, Method::MlIs, None),
            cell(Benchmark::Miniboone, Method::Rnce, Some((-20.0, 0.1))),
        ]);
        assert_eq!(diverged[0].decision, Decision::Holds);
        assert!(diverged[0].measured.contains("leaves out ML-IS"));
    }
}
