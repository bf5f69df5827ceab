//! How many components, and of which kind: what held-out rows say, the simplest of those that are as good as the best.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::em::{self, Covariance, EmConfig};
use super::{GaussianMixture, triangle};
use crate::error::{Error, Result, at_least};
use crate::rng::Streams;
use crate::watch::Watch;

/// Numbers of components that are tried.
const LADDER: [usize; 11] = [1, 2, 3, 5, 8, 12, 20, 40, 80, 160, 320];

/// The ladder ends after so many rungs in a row that are no better than one before them; so does that of one kind.
const PATIENCE: usize = 2;

/// Above so many rows there is one kind only, full covariances with a small floor: the others are for want of rows.
const MANY_ROWS: usize = 3_000;

/// Covariance, floor and shrinkage of what is tried; for many rows the first alone.
const KINDS: [(Covariance, f64, f64); 6] = [
    (Covariance::Full, 1e-4, 0.0),
    (Covariance::Full, 1e-2, 0.0),
    (Covariance::Diagonal, 1e-4, 0.0),
    (Covariance::Full, 1e-4, 10.0),
    (Covariance::Full, 1e-4, 30.0),
    (Covariance::Full, 1e-4, 100.0),
];

/// Multiplications in an iteration of EM at most: about a third of a second on one core.
const MOST_WORK: f64 = 1.2e9;

/// What is tried, and how much of the data it is tried on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Selection {
    /// Components at most.
    pub most_components: usize,
    /// Rows for each component at the least.
    pub rows_per_component: usize,
    /// More rows than this, of either kind, are left out at random.
    pub most_rows: usize,
    /// Starts of EM for each fit to at most 3,000 rows; above, one start is enough.
    pub starts: usize,
    /// How many standard errors of the difference a simpler mixture may be behind the best, to be preferred to it.
    pub standard_errors: f64,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            most_components: 80,
            rows_per_component: 5,
            most_rows: 20_000,
            starts: 3,
            standard_errors: 1.0,
        }
    }
}

impl Selection {
    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        at_least(1, "most_components", self.most_components)?;
        at_least(1, "rows_per_component", self.rows_per_component)?;
        at_least(1, "most_rows", self.most_rows)?;
        at_least(1, "starts", self.starts)?;
        if !(self.standard_errors >= 0.0 && self.standard_errors.is_finite()) {
            let expected = "finite and not negative";
            return Err(Error::setting("standard_errors", self.standard_errors, expected));
        }
        Ok(())
    }

    /// The numbers of components to try for so many rows.
    fn rungs(&self, rows: usize, features: usize) -> Vec<usize> {
        let work = rows as f64 * 2.0 * triangle(features) as f64;
        let affordable = |&components: &usize| {
            components == 1
                || components <= self.most_components.min(rows / self.rows_per_component)
                    && components as f64 * work <= MOST_WORK
        };
        LADDER.into_iter().filter(affordable).collect()
    }

    /// The kinds to try for so many rows, whatever the number of components.
    fn kinds(&self, rows: usize) -> Vec<EmConfig> {
        let few = rows <= MANY_ROWS;
        let kind = |&(covariance, floor, shrinkage): &(Covariance, f64, f64)| EmConfig {
            covariance,
            floor,
            shrinkage,
            starts: if few { self.starts } else { 1 },
            ..EmConfig::new(1)
        };
        KINDS[..if few { KINDS.len() } else { 1 }].iter().map(kind).collect()
    }
}

/// One mixture that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tried {
    /// How it was fitted.
    pub config: EmConfig,
    /// Mean log-density of the held-out rows.
    pub log_density: f64,
    /// How far it is behind the best.
    pub behind: f64,
    /// The standard error of that, over rows.
    pub standard_error: f64,
}

/// The mixture that was chosen, and what it was chosen from.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// The mixture.
    pub mixture: GaussianMixture,
    /// Which of those that were tried it is.
    pub chosen: usize,
    /// Everything that was tried, in that order.
    pub tried: Vec<Tried>,
}

/// Fits mixtures to the training rows, and chooses by the validation rows.
///
/// The unit of the watch is one fit; it may end before its total. The data should be standardised: the floors are
/// absolute numbers.
///
/// # Shapes
/// - `train`, `validation`: `[n, features]`, row-major
pub fn select(
    train: &[f32],
    validation: &[f32],
    features: usize,
    selection: &Selection,
    streams: &Streams,
    watch: &Watch,
) -> Result<Selected> {
    selection.validate()?;
    at_least(1, "features", features)?;
    at_least(1, "training rows of the Gaussian mixture", train.len() / features)?;
    at_least(1, "validation rows of the Gaussian mixture", validation.len() / features)?;
    let split = Split {
        train: thin(train, features, selection, streams, "mixture-train"),
        held_out: thin(validation, features, selection, streams, "mixture-validation"),
    };
    let mut candidates = candidates(&[split], features, selection, streams, watch)?;
    let (chosen, tried) = choose(&candidates, features, selection);
    let mixture = candidates.swap_remove(chosen).fits.swap_remove(0);
    Ok(Selected { mixture, chosen, tried })
}

/// Chooses by the rows that each of several folds leaves out, and then fits to all rows: for tables too small to set rows
/// aside.
///
/// # Shapes
/// - `rows`: `[n, features]`, row-major
pub fn select_by_cross_validation(
    rows: &[f32],
    features: usize,
    folds: usize,
    selection: &Selection,
    streams: &Streams,
    watch: &Watch,
) -> Result<Selected> {
    selection.validate()?;
    at_least(1, "features", features)?;
    let rows = thin(rows, features, selection, streams, "mixture-train");
    let number = rows.len() / features;
    if !(2..=number).contains(&folds) {
        let expected = format!("from 2 to the number of rows, which is {number}");
        return Err(Error::setting("folds", folds, expected));
    }
    let order = streams.stream("mixture-folds", 0, 0).permutation(number);
    let splits: Vec<Split> = (0..folds)
        .map(|fold| {
            let mut split = Split { train: Vec::new(), held_out: Vec::new() };
            for (place, &row) in order.iter().enumerate() {
                let held_out = place % folds == fold;
                let into = if held_out { &mut split.held_out } else { &mut split.train };
                into.extend_from_slice(&rows[row * features..][..features]);
            }
            split
        })
        .collect();
    let candidates = candidates(&splits, features, selection, streams, watch)?;
    let (chosen, tried) = choose(&candidates, features, selection);
    let rng = &mut streams.stream("mixture-all-rows", 0, 0);
    let watched = &mut |_| watch.check();
    let (mixture, _) = em::fit(&rows, features, &tried[chosen].config, rng, watched)?;
    Ok(Selected { mixture, chosen, tried })
}

/// Rows to fit to, and others to judge by.
struct Split {
    train: Vec<f32>,
    held_out: Vec<f32>,
}

/// One kind of mixture, fitted to every split.
struct Candidate {
    config: EmConfig,
    fits: Vec<GaussianMixture>,
    /// Log-densities of all held-out rows, split by split.
    held_out: Vec<f64>,
}

impl Candidate {
    fn fit(
        config: EmConfig,
        splits: &[Split],
        features: usize,
        streams: &Streams,
        watch: &Watch,
    ) -> Result<Self> {
        let of_split = |(lane, split): (usize, &Split)| {
            // Kinds begin with the same centres, so that they differ in nothing else.
            let rng = &mut streams.stream("mixture-start", config.components as u64, lane as u64);
            let watched = &mut |_| watch.check();
            let (mixture, _) = em::fit(&split.train, features, &config, rng, watched)?;
            let log_densities = mixture.log_densities(&split.held_out);
            watch.advance(1);
            Ok((mixture, log_densities))
        };
        let found: Vec<(GaussianMixture, Vec<f64>)> =
            splits.par_iter().enumerate().map(of_split).collect::<Result<_>>()?;
        let (fits, held_out): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        Ok(Self { config, fits, held_out: held_out.concat() })
    }

    fn mean(&self) -> f64 {
        self.held_out.iter().sum::<f64>() / self.held_out.len() as f64
    }

    /// How many numbers it has.
    fn complexity(&self, features: usize) -> usize {
        let covariance = match self.config.covariance {
            Covariance::Full => triangle(features),
            Covariance::Diagonal => features,
        };
        self.config.components * (1 + features + covariance)
    }
}

/// Climbs the ladder, all kinds and splits of a rung side by side; a kind that has become worse and worse is left behind.
fn candidates(
    splits: &[Split],
    features: usize,
    selection: &Selection,
    streams: &Streams,
    watch: &Watch,
) -> Result<Vec<Candidate>> {
    let rows = splits.iter().map(|split| split.train.len() / features).min().expect("a split");
    let (rungs, kinds) = (selection.rungs(rows, features), selection.kinds(rows));
    watch.begin((rungs.len() * kinds.len() * splits.len()) as u64);
    let mut found: Vec<Candidate> = Vec::new();
    let mut overall = Progress::default();
    let mut progress = vec![Progress::default(); kinds.len()];
    for components in rungs {
        // A single component is the average of all: it cannot shrink towards it.
        let tried: Vec<usize> = (0..kinds.len())
            .filter(|&kind| !progress[kind].has_ended())
            .filter(|&kind| components > 1 || kinds[kind].shrinkage == 0.0)
            .collect();
        let fitted: Vec<Candidate> = tried
            .par_iter()
            .map(|&kind| {
                let config = EmConfig { components, ..kinds[kind].clone() };
                Candidate::fit(config, splits, features, streams, watch)
            })
            .collect::<Result<_>>()?;
        for (&kind, candidate) in tried.iter().zip(&fitted) {
            progress[kind].hear(candidate.mean());
        }
        overall.hear(fitted.iter().map(Candidate::mean).fold(f64::NEG_INFINITY, f64::max));
        found.extend(fitted);
        if overall.has_ended() {
            break;
        }
    }
    Ok(found)
}

/// The best of a ladder so far, and how many rungs ago it was.
#[derive(Clone)]
struct Progress {
    best: f64,
    since: usize,
}

impl Default for Progress {
    fn default() -> Self {
        Self { best: f64::NEG_INFINITY, since: 0 }
    }
}

impl Progress {
    fn hear(&mut self, value: f64) {
        let better = value > self.best;
        self.since = if better { 0 } else { self.since + 1 };
        self.best = self.best.max(value);
    }

    fn has_ended(&self) -> bool {
        self.since >= PATIENCE
    }
}

/// The candidate with the fewest numbers that is within the standard errors of the best (of several with as many, the
/// best), and the record of all.
fn choose(candidates: &[Candidate], features: usize, selection: &Selection) -> (usize, Vec<Tried>) {
    let best = candidates
        .iter()
        .max_by(|a, b| a.mean().total_cmp(&b.mean()))
        .expect("one component is always tried");
    let tried: Vec<Tried> = candidates
        .iter()
        .map(|candidate| {
            let differences: Vec<f64> =
                best.held_out.iter().zip(&candidate.held_out).map(|(a, b)| a - b).collect();
            let number = differences.len() as f64;
            let behind = differences.iter().sum::<f64>() / number;
            let squares: f64 = differences.iter().map(|value| (value - behind).powi(2)).sum();
            Tried {
                config: candidate.config.clone(),
                log_density: candidate.mean(),
                behind,
                standard_error: (squares / (number * (number - 1.0).max(1.0))).sqrt(),
            }
        })
        .collect();
    let good = |&at: &usize| {
        let tried: &Tried = &tried[at];
        tried.behind <= selection.standard_errors * tried.standard_error
    };
    let simplest = |&a: &usize, &b: &usize| {
        let complexity = |at: usize| candidates[at].complexity(features);
        let better = || tried[b].log_density.total_cmp(&tried[a].log_density);
        complexity(a).cmp(&complexity(b)).then_with(better)
    };
    let chosen = (0..candidates.len()).filter(good).min_by(simplest).expect("the best is good");
    (chosen, tried)
}

/// The rows, or as many of them as the selection takes at most, drawn without replacement.
fn thin(
    rows: &[f32],
    features: usize,
    selection: &Selection,
    streams: &Streams,
    purpose: &str,
) -> Vec<f32> {
    let number = rows.len() / features;
    if number <= selection.most_rows {
        return rows.to_vec();
    }
    let order = streams.stream(purpose, 0, 0).permutation(number);
    let row = |&row: &usize| &rows[row * features..][..features];
    order[..selection.most_rows].iter().flat_map(row).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{draws, three_clusters};
    use super::*;

    fn candidate(components: usize, held_out: &[f64]) -> Candidate {
        Candidate {
            config: EmConfig::new(components),
            fits: Vec::new(),
            held_out: held_out.to_vec(),
        }
    }

    #[test]
    fn the_simplest_within_one_standard_error_is_chosen() {
        // Behind the best by 1, 0.1 and 0, with standard errors of the difference of 0.08, 0.13 and 0.
        let candidates = [
            candidate(1, &[-2.0, -1.8, -2.2, -2.0]),
            candidate(2, &[-1.4, -0.8, -1.2, -1.0]),
            candidate(3, &[-1.0, -1.0, -1.0, -1.0]),
        ];
        let mut selection = Selection::default();
        let (chosen, tried) = choose(&candidates, 2, &selection);
        assert_eq!(chosen, 1);
        assert!((tried[1].behind - 0.1).abs() < 1e-12);
        // Squares of the deviations 0.3, -0.3, 0.1, -0.1 from the mean are 0.2; divided by 4 * 3.
        assert!((tried[1].standard_error - (0.2f64 / 12.0).sqrt()).abs() < 1e-12);
        selection.standard_errors = 0.0;
        assert_eq!(choose(&candidates, 2, &selection).0, 2);
        selection.standard_errors = 100.0;
        assert_eq!(choose(&candidates, 2, &selection).0, 0);
    }

    #[test]
    fn the_ladder_follows_rows_and_work() {
        let selection = Selection::default();
        assert_eq!(selection.rungs(150, 4), [1, 2, 3, 5, 8, 12, 20]);
        assert_eq!(selection.rungs(3, 4), [1]);
        assert_eq!(selection.rungs(20_000, 10).last(), Some(&80));
        assert_eq!(selection.rungs(20_000, 1_000), [1]);
        assert_eq!(selection.kinds(3_000).len(), 6);
        assert_eq!(selection.kinds(3_001).len(), 1);
    }

    #[test]
    fn three_clusters_are_found_by_validation_and_by_cross_validation() {
        let (train, validation) =
            (draws(&three_clusters(), 600, 1), draws(&three_clusters(), 600, 2));
        let (selection, streams, watch) = (Selection::default(), Streams::new(3), Watch::default());
        let by_validation = select(&train, &validation, 2, &selection, &streams, &watch).unwrap();
        let by_folds =
            select_by_cross_validation(&train, 2, 5, &selection, &streams, &watch).unwrap();
        for selected in [&by_validation, &by_folds] {
            assert_eq!(selected.mixture.num_components(), 3);
            let chosen = &selected.tried[selected.chosen];
            assert_eq!(chosen.config.components, 3);
            assert!(chosen.behind <= chosen.standard_error);
            assert!(selected.tried.iter().all(|tried| tried.behind >= 0.0));
            assert_eq!(selected.tried[0].config.components, 1);
        }
        // What is reported of the chosen one is what its mixture gives the rows that were held out.
        let mean = by_validation.mixture.log_densities(&validation).iter().sum::<f64>() / 600.0;
        assert_eq!(mean, by_validation.tried[by_validation.chosen].log_density);
    }

    #[test]
    fn one_gaussian_needs_one_component() {
        let mut rng = Streams::new(4).stream("test", 0, 0);
        let rows: Vec<f32> = rng.normals(900).into_iter().map(|value| value as f32).collect();
        let (selection, watch) = (Selection::default(), Watch::default());
        let found =
            select_by_cross_validation(&rows, 3, 10, &selection, &Streams::new(5), &watch).unwrap();
        assert_eq!(found.mixture.num_components(), 1);
    }

    #[test]
    fn rows_above_the_limit_are_left_out() {
        let rows = draws(&three_clusters(), 1_000, 6);
        let selection = Selection { most_rows: 100, ..Selection::default() };
        let kept = thin(&rows, 2, &selection, &Streams::new(7), "test");
        assert_eq!(kept.len(), 200);
        let mut places: Vec<usize> = kept
            .chunks_exact(2)
            .map(|row| rows.chunks_exact(2).position(|other| other == row).unwrap())
            .collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 100);
        assert_eq!(thin(&rows[..200], 2, &selection, &Streams::new(7), "test"), rows[..200]);
    }

    #[test]
    fn bad_settings_are_named_and_a_stop_is_heard() {
        let rows = draws(&three_clusters(), 100, 8);
        let (selection, streams, watch) = (Selection::default(), Streams::new(9), Watch::default());
        let folds =
            |folds| select_by_cross_validation(&rows, 2, folds, &selection, &streams, &watch);
        assert!(folds(1).unwrap_err().to_string().starts_with("folds is 1"));
        assert!(folds(101).unwrap_err().to_string().starts_with("folds is 101"));
        let none = select(&rows, &[], 2, &selection, &streams, &watch);
        assert!(none.unwrap_err().to_string().contains("validation rows"));
        watch.stop();
        assert_eq!(folds(5), Err(Error::Stopped));
    }
}
