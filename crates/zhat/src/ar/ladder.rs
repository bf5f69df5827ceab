//! Whether `Z` exists: `p~` is walked out on a ladder, to where no draw of an estimate ever goes.
//!
//! The integral of a tail converges if `r p~(r)` falls: `integral p~(r) dr = integral r p~(r) d log r`. An energy that has a
//! bound, as one with tanh units does, leaves `p~` a floor all the way out, and an estimate of `Z` does not notice.

use std::cmp::Ordering;

use rayon::prelude::*;

use super::config::EnergyForm;
use super::evaluate::{Evaluator, TILE};
use crate::weights::log_sum_exp;

/// How far out `p~` is looked at, in the units of the features.
const RUNGS: [f32; 8] = [6.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4];
/// From here on it must fall however little is left, or there is no `Z`.
const FAR: f32 = 1e3;
/// Further out than so many times the furthest row there is nothing that the rows could account for.
const BEYOND_ROWS: f32 = 3.0;
/// Mass beyond the rows, as a share of the mass among them, that is no reason to report nothing: an estimate that misses it has a `log Z`
/// too low by as much, in a context where it is there.
const NEGLIGIBLE: f64 = 1e-2;
/// Rows whose prefixes are the contexts.
const CONTEXTS: usize = 64;
/// Points at which the mass among the rows is taken.
const INSIDE: usize = 96;

/// `log p~` of a feature, far out on one side, in one context.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// The feature.
    pub feature: usize,
    /// Where it was put, in its own units, and `log p~` there given the features before it.
    pub log_p_tilde: Vec<[f64; 2]>,
    /// Whether `|x| p~(x)` falls, so that the tail has an integral.
    pub falls: bool,
}

/// What the walk found.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    /// The worst tail of every feature: one that does not fall, or else the one that is highest at the end.
    pub tails: Vec<Tail>,
}

impl Ladder {
    /// Whether every tail falls.
    pub fn falls(&self) -> bool {
        self.tails.iter().all(|tail| tail.falls)
    }

    /// The worst tail of all.
    pub fn worst(&self) -> &Tail {
        self.tails.iter().max_by(|a, b| a.compare(b)).expect("a feature")
    }
}

impl Tail {
    /// The worse of two is the greater: one that does not fall, and then the higher at the end.
    fn compare(&self, other: &Self) -> Ordering {
        // What has no tail, as a class, is never the worst.
        let last =
            |tail: &Self| tail.log_p_tilde.last().map_or(f64::NEG_INFINITY, |&[_, log_p]| log_p);
        other.falls.cmp(&self.falls).then(last(self).total_cmp(&last(other)))
    }
}

impl Evaluator {
    /// Walks every feature out to 10,000 on both sides, with the features before it those of some of the rows.
    ///
    /// # Shapes
    /// - `rows`: `[n, features]`, row-major; at least one
    pub fn ladder(&self, rows: &[f32]) -> Ladder {
        let features = self.features();
        let number = rows.len() / features;
        assert!(number > 0 && rows.len() == number * features, "whole rows of {features} features");
        let contexts: Vec<f32> = (0..number.min(CONTEXTS))
            .flat_map(|context| {
                &rows[context * number / number.min(CONTEXTS) * features..][..features]
            })
            .copied()
            .collect();
        let worst = |feature: usize| {
            let of_feature = rows.iter().skip(feature).step_by(features);
            let furthest = of_feature.fold(0.0f32, |furthest, x| furthest.max(x.abs()));
            self.tails(&contexts, feature, BEYOND_ROWS * furthest.max(RUNGS[0] / BEYOND_ROWS))
        };
        Ladder { tails: self.pool.install(|| (0..features).into_par_iter().map(worst).collect()) }
    }

    /// The worst tail of a feature; `reach` is how far out there is what the rows account for.
    fn tails(&self, contexts: &[f32], feature: usize, reach: f32) -> Tail {
        if feature < self.given() || self.engine.config.kind(feature).is_categorical() {
            // Classes end, and what is given has no tail.
            return Tail { feature, log_p_tilde: Vec::new(), falls: true };
        }
        let step = 2.0 * reach / INSIDE as f32;
        let inside = (0..INSIDE).map(|point| -reach + (point as f32 + 0.5) * step);
        let rungs = RUNGS.iter().copied().chain(RUNGS.iter().map(|rung| -rung));
        let values: Vec<f32> = rungs.chain(inside).collect();
        let log_p = self.factors_at(contexts, feature, &values);
        // A density times what is bounded has an integral, however slowly it falls.
        let bounded = self.is_proposal || self.engine.config.energy_form == EnergyForm::Tilted;
        let mut tails = Vec::new();
        for of_context in log_p.chunks_exact(values.len()) {
            let (outside, inside) = of_context.split_at(2 * RUNGS.len());
            let mass_inside = log_sum_exp(inside) + f64::from(step).ln();
            for (side, log_p) in outside.chunks_exact(RUNGS.len()).enumerate() {
                let sign = if side == 0 { 1.0 } else { -1.0 };
                let places = RUNGS.iter().map(|&rung| sign * f64::from(rung));
                tails.push(Tail {
                    feature,
                    log_p_tilde: places.zip(log_p).map(|(place, &log_p)| [place, log_p]).collect(),
                    falls: bounded || falls(log_p, reach, mass_inside),
                });
            }
        }
        tails.into_iter().max_by(Tail::compare).expect("a context")
    }

    /// `log p~(x_d | x_<d)`, but for the normaliser of a local factor, at values of a feature for every context.
    ///
    /// # Shapes
    /// - output: `[contexts, values]`, row-major
    fn factors_at(&self, contexts: &[f32], feature: usize, values: &[f32]) -> Vec<f64> {
        let features = self.features();
        let mut log_p = vec![0.0; contexts.len() / features * values.len()];
        let tiles = contexts.chunks(TILE * features);
        for (contexts, log_p) in tiles.zip(log_p.chunks_mut(TILE * values.len())) {
            self.with_memory(|memory| {
                let forward = &mut memory.forward;
                forward.begin_free(contexts.len() / features, features, Default::default());
                forward.rows.copy_from_slice(contexts);
                let (conditioning, pass) = (&mut memory.conditioning, &mut memory.pass);
                forward.propose(&self.engine, feature, None, conditioning, pass);
                for (at, &value) in values.iter().enumerate() {
                    forward.give(feature, value);
                    forward.draw(&self.engine, feature, &mut [], conditioning, pass);
                    if self.is_proposal {
                        pass.log_p.clone_from(&pass.log_q);
                    } else {
                        forward.weigh(&self.engine, feature, None, conditioning, pass);
                    }
                    let of_value = log_p.iter_mut().skip(at).step_by(values.len());
                    of_value.zip(&pass.log_p).for_each(|(to, &from)| *to = f64::from(from));
                }
            });
        }
        log_p
    }
}

/// Whether `r p~(r)` falls from rung to rung where nothing accounts for a rise: far out in any case, and beyond the rows unless
/// next to nothing is there.
fn falls(log_p: &[f64], reach: f32, mass_inside: f64) -> bool {
    let mass = |rung: usize| log_p[rung] + f64::from(RUNGS[rung]).ln();
    (1..RUNGS.len()).all(|rung| {
        let (before, here) = (mass(rung - 1), mass(rung));
        let matters = here.is_nan() || here > mass_inside + NEGLIGIBLE.ln();
        let looked_at = RUNGS[rung - 1] >= FAR || RUNGS[rung - 1] >= reach && matters;
        !looked_at || here < before || here == f64::NEG_INFINITY
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(log_p: impl Fn(f64) -> f64, reach: f32) -> bool {
        let values: Vec<f64> = RUNGS.iter().map(|&rung| log_p(f64::from(rung))).collect();
        falls(&values, reach, 0.0)
    }

    #[test]
    fn a_tail_that_has_an_integral_falls_and_others_do_not() {
        assert!(of(|r| -0.5 * r * r, 6.0));
        assert!(of(|r| -0.3 * r, 6.0));
        // Cauchy's has an integral, 1 / r has none.
        assert!(of(|r| -2.0 * r.ln(), 6.0));
        assert!(!of(|r| -r.ln(), 6.0));
        assert!(!of(|_| -3.0, 6.0));
        assert!(!of(|_| -300.0, 6.0));
        assert!(!of(|_| f64::NAN, 6.0));
        assert!(of(|_| f64::NEG_INFINITY, 6.0));
    }

    #[test]
    fn mass_far_out_counts_unless_rows_are_there_or_it_is_negligible() {
        // An integral of e^-5 times 1,000, most of it a thousand out.
        assert!(!of(|r| -5.0 - 1e-3 * r, 6.0));
        assert!(of(|r| -5.0 - 1e-3 * r, 2000.0));
        assert!(of(|r| -25.0 - 1e-3 * r, 6.0));
    }

    #[test]
    fn a_heap_beyond_the_rows_counts_by_its_mass() {
        // At 10, where its mass is 10 e^-8.4 of what is inside, 0.2 %; then all falls.
        let heap = |log_p: f64| of(|r| if r == 10.0 { log_p } else { -1.7 * r }, 6.0);
        assert!(heap(-8.4) && !heap(-5.4));
    }
}
