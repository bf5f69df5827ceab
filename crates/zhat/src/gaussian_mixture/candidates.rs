//! Mixtures of every kind and size that is worth trying, each with what it makes of rows that it was not fitted to.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::GaussianMixture;
use super::em::{self, EmConfig};
use super::select::Selection;
use crate::error::Result;
use crate::rng::{Stream, Streams};
use crate::watch::Watch;
use crate::weights::log_mean_exp;

/// The ladder ends after so many rungs in a row that are no better than one before them; so does that of one kind.
const PATIENCE: usize = 2;

/// From so many fits of a size on each is of rows that are drawn anew with replacement (bagging, Breiman, 1996): what only some of the
/// rows say then counts for less in their mean. Fewer fits would miss the rows that are left out.
const BAG: usize = 4;

/// Rows to fit to, and others to judge by.
pub(super) struct Split {
    pub train: Vec<f32>,
    pub held_out: Vec<f32>,
}

/// One kind of mixture, fitted to every split.
pub(super) struct Candidate {
    pub config: EmConfig,
    /// One for each repeat, and each split within it.
    pub fits: Vec<GaussianMixture>,
    /// Log-densities of all held-out rows, split by split: of the mean over repeats.
    pub held_out: Vec<f64>,
    pub repeats: usize,
}

impl Candidate {
    /// Some of the fits of a kind, each of which begins elsewhere.
    fn fit(
        config: EmConfig,
        repeats: Range<usize>,
        splits: &[Split],
        features: usize,
        streams: &Streams,
        watch: &Watch,
    ) -> Result<Self> {
        let number = repeats.len();
        let of_split = |(repeat, lane): (usize, usize)| {
            // Kinds begin with the same centres, so that they differ in nothing else.
            let (split, lane) = (&splits[lane], (repeat * splits.len() + lane) as u64);
            let rng = &mut streams.stream("mixture-start", config.components as u64, lane);
            let rows = rows_of_fit(&split.train, features, number, rng);
            let (mixture, _) = em::fit(&rows, features, &config, rng, &mut |_| watch.check())?;
            let log_densities = mixture.log_densities(&split.held_out);
            watch.advance(1);
            Ok((mixture, log_densities))
        };
        let all: Vec<(usize, usize)> =
            repeats.flat_map(|repeat| (0..splits.len()).map(move |lane| (repeat, lane))).collect();
        let found: Vec<(GaussianMixture, Vec<f64>)> =
            all.into_par_iter().map(of_split).collect::<Result<_>>()?;
        let (fits, held_out): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let by_repeat: Vec<Vec<f64>> =
            held_out.chunks_exact(splits.len()).map(<[Vec<f64>]>::concat).collect();
        let mean = |row: usize| {
            log_mean_exp(&by_repeat.iter().map(|repeat| repeat[row]).collect::<Vec<_>>())
        };
        let held_out = (0..by_repeat[0].len()).map(mean).collect();
        Ok(Self { config, fits, held_out, repeats: number })
    }

    pub fn mean(&self) -> f64 {
        self.held_out.iter().sum::<f64>() / self.held_out.len() as f64
    }
}

/// What one of so many fits is fitted to.
pub(super) fn rows_of_fit<'a>(
    rows: &'a [f32],
    features: usize,
    fits: usize,
    rng: &mut Stream,
) -> Cow<'a, [f32]> {
    if fits < BAG {
        return Cow::Borrowed(rows);
    }
    let number = rows.len() / features;
    let drawn = (0..number).flat_map(|_| {
        let row = ((rng.uniform() * number as f64) as usize).min(number - 1);
        &rows[row * features..][..features]
    });
    Cow::Owned(drawn.copied().collect())
}

/// Climbs the ladder, all kinds and splits of a rung side by side; a kind that has become worse and worse is left behind.
pub(super) fn candidates(
    splits: &[Split],
    features: usize,
    selection: &Selection,
    streams: &Streams,
    watch: &Watch,
) -> Result<Vec<Candidate>> {
    let rows = splits.iter().map(|split| split.train.len() / features).min().expect("a split");
    let (rungs, kinds) = (selection.rungs(rows, features), selection.kinds(rows));
    let repeats = selection.sizes * selection.repeats;
    watch.begin(((rungs.len() * kinds.len() + repeats) * splits.len()) as u64);
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
                Candidate::fit(config, 0..1, splits, features, streams, watch)
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
    if selection.repeats == 0 {
        return Ok(found);
    }
    let mut best: Vec<&Candidate> = found.iter().collect();
    best.sort_by(|a, b| b.mean().total_cmp(&a.mean()));
    let best: Vec<EmConfig> =
        best.iter().take(selection.sizes).map(|best| best.config.clone()).collect();
    let again: Vec<Candidate> = best
        .into_par_iter()
        .map(|config| {
            let repeats = 1..selection.repeats + 1;
            Candidate::fit(config, repeats, splits, features, streams, watch)
        })
        .collect::<Result<_>>()?;
    if selection.repeats >= BAG {
        // The mean stands for its size: a single fit beside it would have a share by luck.
        found.retain(|one| again.iter().all(|many| many.config != one.config));
    }
    found.extend(again);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_fits_of_a_size_are_of_rows_drawn_anew() {
        let rng = &mut Streams::new(6).stream("rows", 0, 0);
        let rows: Vec<f32> = (0..2_000).map(|value| value as f32).collect();
        assert_eq!(*rows_of_fit(&rows, 2, BAG - 1, rng), rows);
        let drawn = rows_of_fit(&rows, 2, BAG, rng);
        let mut distinct: Vec<u32> = Vec::new();
        for row in drawn.chunks_exact(2) {
            assert_eq!(row[1], row[0] + 1.0, "whole rows");
            distinct.push(row[0] as u32 / 2);
        }
        assert_eq!(distinct.len(), 1_000);
        distinct.sort_unstable();
        distinct.dedup();
        // Of 1,000 rows 632 are drawn on average, with a standard deviation of 9.9: within four of them.
        assert!((593..=671).contains(&distinct.len()), "{}", distinct.len());
    }
}
