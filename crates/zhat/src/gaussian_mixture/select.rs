//! How many components, and of which kind: a stack of many mixtures, each in the share that held-out rows give it.
//!
//! A mixture of mixtures is a mixture again. On few rows it is well ahead of the best single one, which was chosen by luck as much
//! as by merit (stacking, Smyth and Wolpert, 1999).

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::candidates::{Candidate, Split, candidates, rows_of_fit};
use super::em::{self, Covariance, EmConfig};
use super::{GaussianMixture, triangle};
use crate::error::{Error, Result, at_least};
use crate::rng::Streams;
use crate::watch::Watch;
use crate::weights::log_sum_exp;

/// Numbers of components that are tried.
const LADDER: [usize; 13] = [1, 2, 3, 5, 8, 12, 20, 30, 40, 60, 80, 160, 320];

/// Rungs between others, for many rows alone: few do not tell them apart.
const BETWEEN: [usize; 2] = [30, 60];

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

/// Iterations that find the shares.
const STACK_ITERATIONS: usize = 200;

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
    /// A mixture with a smaller share is left out of the stack.
    pub smallest_share: f64,
    /// How many of the best sizes are fitted again.
    pub sizes: usize,
    /// And how often each of them: each start ends elsewhere, and the mean of where they end is better than any of them.
    pub repeats: usize,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            most_components: 80,
            rows_per_component: 5,
            most_rows: 20_000,
            starts: 3,
            smallest_share: 0.02,
            sizes: 0,
            repeats: 0,
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
        if !(0.0..0.5).contains(&self.smallest_share) {
            let expected = "at least 0 and below 0.5";
            return Err(Error::setting("smallest_share", self.smallest_share, expected));
        }
        Ok(())
    }

    /// Fits of one size, of all kinds and starts that are tried for so many rows.
    pub fn fits(&self, rows: usize) -> usize {
        self.kinds(rows).iter().map(|kind| kind.starts).sum()
    }

    /// With so few components at most that an iteration of all fits of one size has no more multiplications than this, for so many rows.
    pub fn within(self, work: f64, rows: usize, features: usize) -> Self {
        let affordable = ((work / self.work_of_component(rows, features)) as usize).max(1);
        Self { most_components: self.most_components.min(affordable), ..self }
    }

    /// Multiplications for each component in an iteration of all fits of one size.
    pub fn work_of_component(&self, rows: usize, features: usize) -> f64 {
        let rows = rows.min(self.most_rows);
        (self.fits(rows) * rows * features * (features + 1)) as f64
    }

    /// The rows of all parts, or as many of them as are taken at most, drawn without replacement.
    ///
    /// # Shapes
    /// - `parts`: `[n, features]` each, row-major
    pub fn thin(
        &self,
        parts: &[&[f32]],
        features: usize,
        streams: &Streams,
        purpose: &str,
    ) -> Vec<f32> {
        let number = parts.iter().map(|rows| rows.len() / features).sum();
        if number <= self.most_rows {
            return parts.concat();
        }
        let order = streams.stream(purpose, 0, 0).permutation(number);
        let row = |&row: &usize| {
            let mut from = row * features;
            for rows in parts {
                if from < rows.len() {
                    return &rows[from..][..features];
                }
                from -= rows.len();
            }
            unreachable!("the row of a part")
        };
        order[..self.most_rows].iter().flat_map(row).copied().collect()
    }

    /// The numbers of components to try for so many rows.
    pub(super) fn rungs(&self, rows: usize, features: usize) -> Vec<usize> {
        let work = rows as f64 * 2.0 * triangle(features) as f64;
        let affordable = |&components: &usize| {
            components == 1
                || components <= self.most_components.min(rows / self.rows_per_component)
                    && components as f64 * work <= MOST_WORK
        };
        let wanted = |components: &usize| rows > MANY_ROWS || !BETWEEN.contains(components);
        LADDER.into_iter().filter(wanted).filter(affordable).collect()
    }

    /// The kinds to try for so many rows, whatever the number of components.
    pub(super) fn kinds(&self, rows: usize) -> Vec<EmConfig> {
        let few = rows <= MANY_ROWS;
        let kind = |&(covariance, floor, shrinkage): &(Covariance, f64, f64)| EmConfig {
            covariance,
            floor,
            shrinkage,
            starts: if few { self.starts } else { 1 },
            // What is gained slowly is gained for new rows too, where there are many.
            max_iterations: if few { 100 } else { 300 },
            tolerance: if few { 1e-3 } else { 5e-5 },
            ..EmConfig::new(1)
        };
        KINDS[..if few { KINDS.len() } else { 1 }].iter().map(kind).collect()
    }
}

/// One kind and size of mixture that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tried {
    /// How it was fitted.
    pub config: EmConfig,
    /// How many fits it is the mean of.
    pub fits: usize,
    /// Mean log-density of the held-out rows.
    pub log_density: f64,
    /// Its share of the stack.
    pub share: f64,
}

/// The stack of mixtures, and what it is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// The stack, which is a mixture.
    pub mixture: GaussianMixture,
    /// Log-densities of the held-out rows under the stack, in their order.
    pub held_out: Vec<f64>,
    /// Everything that was stacked, whether it has a share or not: single fits first, then means of several.
    pub tried: Vec<Tried>,
}

impl Selected {
    /// The same stack fitted to other rows: those that have a share, in that share.
    ///
    /// # Shapes
    /// - `rows`: `[n, features]`, row-major
    pub fn refit(&self, rows: &[f32], streams: &Streams, watch: &Watch) -> Result<GaussianMixture> {
        let features = self.mixture.features;
        let all: Vec<(usize, usize)> = (0..self.tried.len())
            .filter(|&at| self.tried[at].share > 0.0)
            .flat_map(|at| (0..self.tried[at].fits).map(move |repeat| (at, repeat)))
            .collect();
        let fit = |(at, repeat): (usize, usize)| {
            let tried = &self.tried[at];
            let rng = &mut streams.stream("mixture-all-rows", repeat as u64, at as u64);
            let mut config = tried.config.clone();
            config.components = config.components.min(rows.len() / features);
            let rows = rows_of_fit(rows, features, tried.fits, rng);
            Ok(em::fit(&rows, features, &config, rng, &mut |_| watch.check())?.0)
        };
        let fits: Vec<GaussianMixture> = all.into_par_iter().map(fit).collect::<Result<_>>()?;
        let mut fits = fits.into_iter();
        concatenate(&self.tried, |tried| fits.by_ref().take(tried.fits).collect())
    }
}

/// Fits mixtures to the training rows, and stacks them by the validation rows.
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
        train: selection.thin(&[train], features, streams, "mixture-train"),
        held_out: selection.thin(&[validation], features, streams, "mixture-validation"),
    };
    let candidates = candidates(&[split], features, selection, streams, watch)?;
    let (tried, held_out) = stack(&candidates, selection);
    let fitted = candidates.into_iter().zip(&tried).filter(|(_, tried)| tried.share > 0.0);
    let mut fits = fitted.map(|(candidate, _)| candidate.fits).collect::<Vec<_>>().into_iter();
    let mixture = concatenate(&tried, |_| fits.next().expect("the fits of each share"))?;
    Ok(Selected { mixture, held_out, tried })
}

/// Stacks by the rows that each of several folds leaves out, and then fits to all rows: for tables too small to set rows
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
    let rows = selection.thin(&[rows], features, streams, "mixture-train");
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
    let (tried, by_fold) = stack(&candidates, selection);
    let places = (0..folds).flat_map(|fold| (fold..number).step_by(folds));
    let mut held_out = vec![0.0; number];
    places.zip(by_fold).for_each(|(place, log_density)| held_out[order[place]] = log_density);
    let mixture = candidates[0].fits[0].clone();
    let stacked = Selected { mixture, held_out, tried };
    Ok(Selected { mixture: stacked.refit(&rows, streams, watch)?, ..stacked })
}

/// The share of every candidate that makes the held-out rows likeliest, and their log-densities under the stack.
///
/// The likelihood is concave in the shares; EM climbs it. Candidates whose share is small are left out, and the others share anew.
fn stack(candidates: &[Candidate], selection: &Selection) -> (Vec<Tried>, Vec<f64>) {
    let rows = candidates[0].held_out.len();
    let mut shares = vec![1.0 / candidates.len() as f64; candidates.len()];
    for round in 0..2 {
        for _ in 0..STACK_ITERATIONS {
            let mut sums = vec![0.0; candidates.len()];
            for row in 0..rows {
                let terms = weighed(candidates, &shares, row);
                let total = log_sum_exp(&terms);
                sums.iter_mut().zip(&terms).for_each(|(sum, term)| *sum += (term - total).exp());
            }
            shares = sums.iter().map(|sum| sum / rows as f64).collect();
        }
        if round == 0 {
            let largest = shares.iter().copied().fold(0.0, f64::max);
            let least = selection.smallest_share.min(largest);
            shares.iter_mut().filter(|share| **share < least).for_each(|share| *share = 0.0);
            let total: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= total);
        }
    }
    let held_out = (0..rows).map(|row| log_sum_exp(&weighed(candidates, &shares, row))).collect();
    let tried = candidates.iter().zip(&shares).map(|(candidate, &share)| Tried {
        config: candidate.config.clone(),
        fits: candidate.repeats,
        log_density: candidate.mean(),
        share,
    });
    (tried.collect(), held_out)
}

fn weighed(candidates: &[Candidate], shares: &[f64], row: usize) -> Vec<f64> {
    let terms = candidates.iter().zip(shares);
    terms.map(|(candidate, share)| candidate.held_out[row] + share.ln()).collect()
}

/// One mixture of all that have a share, each the mean of the fits that it has.
fn concatenate(
    tried: &[Tried],
    mut fits_of: impl FnMut(&Tried) -> Vec<GaussianMixture>,
) -> Result<GaussianMixture> {
    let (mut log_weights, mut means, mut factors, mut features) = (vec![], vec![], vec![], 1);
    for tried in tried.iter().filter(|tried| tried.share > 0.0) {
        let share = (tried.share / tried.fits as f64).ln();
        for mixture in fits_of(tried) {
            features = mixture.features;
            log_weights.extend(mixture.log_weights.iter().map(|weight| weight + share));
            means.extend(mixture.means);
            factors.extend(mixture.factors);
        }
    }
    GaussianMixture::new(features, log_weights, means, factors)
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
            repeats: 1,
        }
    }

    #[test]
    fn so_much_work_is_so_many_components_and_always_one() {
        // One kind and one start of 4,000 rows: 4,000 times 10 times 11 multiplications for each component.
        let within = |work: f64| Selection::default().within(work, 4_000, 10).most_components;
        let usual = Selection::default().most_components;
        assert_eq!([within(1.0), within(4.4e6 + 1.0), within(1e12)], [1, 10, usual]);
    }

    #[test]
    fn shares_are_those_that_make_the_held_out_rows_likeliest() {
        // Two that are each right about other rows, and one that is always behind.
        let candidates = [
            candidate(1, &[-1.0, -1.0, -1.0, -3.0]),
            candidate(2, &[-3.0, -3.0, -3.0, -1.0]),
            candidate(3, &[-9.0, -9.0, -9.0, -9.0]),
        ];
        let (tried, held_out) = stack(&candidates, &Selection::default());
        assert_eq!(tried[2].share, 0.0);
        // d/ds of 3 log(s a + (1 - s) b) + log(s b + (1 - s) a) is zero, with a = e^-1 and b = e^-3.
        let (s, a, b) = (tried[0].share, (-1f64).exp(), (-3f64).exp());
        let slope = 3.0 * (a - b) / (s * a + (1.0 - s) * b) + (b - a) / (s * b + (1.0 - s) * a);
        assert!(slope.abs() < 1e-6 && (tried[0].share + tried[1].share - 1.0).abs() < 1e-12);
        assert!((held_out[0] - (s * a + (1.0 - s) * b).ln()).abs() < 1e-12);
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
            let of_three = |t: &Tried| if t.config.components >= 3 { t.share } else { 0.0 };
            assert!(selected.tried.iter().map(of_three).sum::<f64>() > 0.9);
            assert!((selected.tried.iter().map(|t| t.share).sum::<f64>() - 1.0).abs() < 1e-9);
            assert_eq!(selected.tried[0].config.components, 1);
            // The stack is at least as good as each of its parts on what they were stacked by.
            let mean = selected.held_out.iter().sum::<f64>() / 600.0;
            assert!(selected.tried.iter().all(|tried| tried.log_density < mean + 1e-3));
        }
        // What is reported is what the mixture gives the rows that were held out.
        let found = by_validation.mixture.log_densities(&validation);
        assert!(found.iter().zip(&by_validation.held_out).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    /// A uniform square has no components to be found: each start ends elsewhere.
    fn square(rows: usize, seed: u64) -> Vec<f32> {
        let mut rng = Streams::new(seed).stream("square", 0, 0);
        (0..2 * rows).map(|_| rng.uniform() as f32).collect()
    }

    fn select_square(sizes: usize, repeats: usize) -> (Selected, Vec<f32>) {
        let (train, validation) = (square(600, 4), square(200, 5));
        let selection = Selection { sizes, repeats, starts: 1, ..Selection::default() };
        let (streams, watch) = (Streams::new(5), Watch::default());
        (select(&train, &validation, 2, &selection, &streams, &watch).unwrap(), validation)
    }

    #[test]
    fn the_best_sizes_are_fitted_again_from_other_starts() {
        let (once, again) = (select_square(0, 0).0.tried, select_square(2, 3).0.tried);
        assert_eq!(again.len(), once.len() + 2);
        let key = |tried: &Tried| (tried.config.clone(), tried.fits, tried.log_density);
        assert!(again.iter().zip(&once).all(|(a, b)| key(a) == key(b)));
        let mut best: Vec<&Tried> = once.iter().collect();
        best.sort_by(|a, b| b.log_density.total_cmp(&a.log_density));
        for (more, first) in again[once.len()..].iter().zip(best) {
            assert_eq!((&more.config, more.fits), (&first.config, 3));
            assert_ne!(more.log_density, first.log_density);
        }
    }

    #[test]
    fn the_mean_of_many_fits_stands_for_their_size() {
        let (found, validation) = select_square(3, 6);
        let (bags, others): (Vec<&Tried>, Vec<&Tried>) =
            found.tried.iter().partition(|tried| tried.fits == 6);
        assert_eq!(bags.len(), 3);
        assert!(others.iter().all(|one| bags.iter().all(|bag| bag.config != one.config)));
        // What is reported is what the mixture gives: the mean of the fits, each in an equal part of the share.
        let densities = found.mixture.log_densities(&validation);
        assert!(densities.iter().zip(&found.held_out).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    #[test]
    fn means_over_rows_drawn_anew_are_likelier_than_single_fits() {
        let (found, _) = select_square(3, 6);
        let fresh = square(4_000, 7);
        let mean =
            |mixture: &GaussianMixture| mixture.log_densities(&fresh).iter().sum::<f64>() / 4_000.0;
        let train = square(600, 4);
        let (streams, watch) = (Streams::new(8), Watch::default());
        let bag = found.refit(&train, &streams, &watch).unwrap();
        let single = select_square(0, 0).0.refit(&train, &streams, &watch).unwrap();
        assert!(mean(&bag) > mean(&single), "{} and {}", mean(&bag), mean(&single));
    }

    #[test]
    fn rows_above_the_limit_are_left_out() {
        let rows = draws(&three_clusters(), 1_000, 6);
        let selection = Selection { most_rows: 100, ..Selection::default() };
        let kept = selection.thin(&[&rows], 2, &Streams::new(7), "test");
        let (some, others) = rows.split_at(600);
        assert_eq!(selection.thin(&[some, others], 2, &Streams::new(7), "test"), kept);
        assert_eq!(kept.len(), 200);
        let mut places: Vec<usize> = kept
            .chunks_exact(2)
            .map(|row| rows.chunks_exact(2).position(|other| other == row).unwrap())
            .collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 100);
        assert_eq!(selection.thin(&[&rows[..200]], 2, &Streams::new(7), "test"), rows[..200]);
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
