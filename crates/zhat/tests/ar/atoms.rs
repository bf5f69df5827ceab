//! Numbers with atoms: masses and the integral of the density elsewhere make one, and draws, scores and cells go by both.

use zhat::ar::*;
use zhat::rng::Streams;
use zhat::smc::SmcConfig;

use crate::kinds::{classes, mixed};

const ATOMS: [f32; 2] = [-0.5, 0.75];

fn atoms() -> FeatureKind {
    FeatureKind::Atoms { values: ATOMS.to_vec() }
}

/// Values of a number with atoms, and what each counts in a sum: its atoms once, and a grid that has none of them.
fn values() -> Vec<(f32, f64)> {
    let grid = (-3000..3000).map(|i| (0.01 * (i as f32 + 0.37), 0.01));
    grid.chain(ATOMS.map(|atom| (atom, 1.0))).collect()
}

#[test]
fn masses_and_the_density_elsewhere_make_one() {
    for head in [HeadForm::Mixture, HeadForm::Spline] {
        let (model, _) = mixed(&[classes(2), atoms()], head);
        let evaluators = [Evaluator::new(&model, 2), Evaluator::of_proposal(&model, 2)];
        for (evaluator, error) in evaluators.into_iter().zip([1e-2, 2e-3]) {
            let evaluator = evaluator.unwrap();
            for class in [0.0, 1.0] {
                let before = evaluator.score_observed(
                    &[class, f32::NAN],
                    &SmcConfig::new(8).unwrap(),
                    &Streams::new(1),
                );
                let rows: Vec<f32> = values().iter().flat_map(|&(x, _)| [class, x]).collect();
                let scores = evaluator.score(&rows).log_p_tilde;
                let sum: f64 = scores
                    .iter()
                    .zip(values())
                    .map(|(log_p, (_, counts))| counts * log_p.exp())
                    .sum();
                let log_p = before.unwrap().log_p[0];
                assert!((sum.ln() - log_p).abs() < error, "{head:?} {class}: {} {log_p}", sum.ln());
                // An atom has more than a value beside it, by far.
                let at = evaluator.score(&[class, ATOMS[0], class, ATOMS[0] + 1e-3]).log_p_tilde;
                assert!((at[0] - at[1]).abs() > 0.05, "{at:?}");
            }
        }
    }
}

#[test]
fn draws_are_at_atoms_as_often_as_they_weigh_and_what_comes_later_sees_it() {
    let (model, streams) = mixed(&[atoms(), classes(3)], HeadForm::Mixture);
    let evaluator = Evaluator::new(&model, 2).unwrap();
    let number = 20_000;
    let run = evaluator.smc(&SmcConfig::new(number).unwrap(), &streams, 0).unwrap();
    for atom in ATOMS {
        let rows = [atom, 0.0, atom, 1.0, atom, 2.0];
        let p: f64 = evaluator.score(&rows).log_p_tilde.iter().map(|log_p| log_p.exp()).sum();
        let drawn = run.columns[0].iter().filter(|x| **x == atom).count() as f64 / number as f64;
        // 4.5 standard errors: one false alarm in 70,000 for two, and the seed is fixed.
        let error = 4.5 * (p * (1.0 - p) / number as f64).sqrt();
        assert!((drawn - p).abs() < error + 2e-3, "{atom}: {drawn} {p}");
    }
    // The class depends on whether the number is at the atom, and not only on where it is.
    let at = evaluator.cells(&[ATOMS[0], 1.0, ATOMS[0] + 1e-4, 1.0]).unwrap();
    assert!((at.log_p[1] - at.log_p[3]).abs() > 1e-3, "{at:?}");
}

#[test]
fn the_share_below_jumps_by_the_mass_of_an_atom() {
    let (model, _) = mixed(&[atoms()], HeadForm::Mixture);
    let evaluator = Evaluator::new(&model, 1).unwrap();
    for atom in ATOMS {
        let near = [atom - 1e-4, atom, atom + 1e-4];
        let cells = evaluator.cells(&near).unwrap();
        assert!((cells.below[0] - cells.below[1]).abs() < 1e-3, "{cells:?}");
        let jump = cells.below[2] - cells.below[1];
        assert!((jump - cells.log_p[1].exp()).abs() < 2e-3, "{cells:?}");
    }
}

#[test]
fn atoms_that_cannot_be_are_named() {
    let with = |values: Vec<f32>| {
        let (mut model, _) = mixed(&[atoms()], HeadForm::Mixture);
        model.shape.kinds = vec![FeatureKind::Atoms { values }];
        model.shape.validate().map_err(|error| error.to_string())
    };
    assert!(with(vec![]).unwrap_err().contains("0 atoms of feature 0"));
    assert!(with(vec![1.0, 1.0]).unwrap_err().contains("each above the one before"));
    assert!(with(vec![0.0, 1.0]).is_ok());
}
