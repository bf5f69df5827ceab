//! A stack of Gaussian mixtures beside networks that were trained without it, in the share that validation rows give it.
//!
//! Of a few columns mixtures say what networks take long to learn, and are wrong elsewhere than they. Trained together, the networks
//! would be left with what mixtures cannot say of the training rows, and learn it by heart; so each is fitted by itself, as members are.

use zhat::ar::ArEbm;
use zhat::criterion::Method;
use zhat::gaussian_mixture::{EmConfig, GaussianMixture, Selection, select};
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::train::Difference;
use zhat::watch::Watch;

use super::clock::Clock;
use super::config::FitConfig;
use super::known::pool;
use super::rows::numbers;
use super::validation::Validator;
use crate::error::Result;
use crate::prepare::Prepared;

/// Shares that are tried: between them the likelihood hardly changes.
const SHARES: [f64; 11] = [0.0, 0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95];
/// The share where rows say nothing: more than a half, since the stack that is kept has seen more rows than the networks.
const USUAL_SHARE: f64 = 0.65;
/// Multiplications in an iteration of EM at most.
const MOST_WORK: f64 = 1.5e8;
/// The same for all fits of the best sizes from other starts together, and how many fits these are at most.
const WORK_AGAIN: f64 = 3e8;
const MOST_AGAIN: f64 = 48.0;
/// Of how many sizes they are: where there are many, of more, since means over sizes are better than over starts alone.
const SIZES: [usize; 2] = [2, 4];
const MANY_AGAIN: usize = 16;
/// Iterations that a fit takes, rather too many than too few, and those that it is timed by.
const ITERATIONS: f64 = 200.0;
const TIMED: usize = 4;
/// And the components.
const TIMED_COMPONENTS: usize = 10;
/// Share of the fits that is fitted again, to validation rows too.
const AGAIN: f64 = 0.7;

/// The stack, and the rows that say what it is worth.
pub(super) struct Beside {
    /// Fitted to training rows alone.
    judged: GaussianMixture,
    /// Fitted to validation rows too.
    of_all: GaussianMixture,
    /// Validation rows in the units of the data.
    validation: Vec<f32>,
}

/// A model with a stack beside its networks, which is better than without.
pub(super) struct Stacked {
    pub model: ArEbm,
    /// Share of the stack.
    pub share: f64,
    /// By how much validation rows are likelier, in nats a row.
    pub gain: Difference,
    /// What they are worth, and its standard error over rows.
    pub log_likelihood: [f64; 2],
}

impl Stacked {
    /// What was done, in words.
    pub fn sentence(&self) -> String {
        let Difference { mean, standard_error } = self.gain;
        let likelier = if mean < 0.0 { "less likely" } else { "likelier" };
        format!(
            "Gaussian mixtures stand beside the networks in a share of {:.0} %: validation rows are {likelier} by {:.4} nats (standard error \
             {standard_error:.4}) than by the networks alone.",
            100.0 * self.share,
            mean.abs(),
        )
    }
}

impl Beside {
    /// Fits the stack, if one is wanted and there are rows to judge it by.
    pub fn fit(
        config: &FitConfig,
        data: &Prepared,
        threads: usize,
        watch: &Watch,
    ) -> Result<Option<Self>> {
        if !is_wanted(config, data) {
            return Ok(None);
        }
        let (streams, features) = (streams(config), data.num_numbers());
        let selection = selection(config, data);
        // What is taken of the rows, before anything is done with them: a long table has no room for itself again.
        let some = |parts: &[&[f32]], purpose: &str| {
            let rows = selection.thin(parts, data.columns.len(), &streams, purpose);
            numbers(data, rows, &streams.derive(purpose, 0))
        };
        let train = some(&[&data.train], "mixture-train");
        let held_out = some(&[&data.validation], "mixture-validation");
        let (judged, of_all) = pool(threads)?.install(|| -> zhat::Result<_> {
            let selected = select(&train, &held_out, features, &selection, &streams, watch)?;
            let all = some(&[&data.train, &data.validation], "mixture-all-rows");
            let of_all = selected.refit(&all, &streams, watch)?;
            Ok((selected.mixture, of_all))
        })?;
        let rows = config.validation.of_rows(&data.validation, data.columns.len());
        Ok(Some(Self { judged, of_all, validation: data.in_units(rows) }))
    }

    /// Seconds that fitting it takes, from those of a few iterations, which are timed for at least some seconds: the processor's clock is
    /// coarse, and mixtures that seem to take nothing would take all the time that there is.
    pub fn seconds(
        config: &FitConfig,
        data: &Prepared,
        clock: Clock,
        least: f64,
        workers: &Workers,
        watch: &Watch,
    ) -> Result<f64> {
        if !is_wanted(config, data) {
            return Ok(0.0);
        }
        let (streams, features) = (streams(config), data.num_numbers());
        let selection = selection(config, data);
        let most = data.train.len().min(selection.most_rows * data.columns.len());
        let rows = &numbers(data, data.train[..most].to_vec(), &streams)[..];
        let components = TIMED_COMPONENTS.min(selection.most_components).min(rows.len() / features);
        let pool = pool(workers.threads())?;
        let seconds = |max_iterations: usize| {
            let tolerance = f64::MIN_POSITIVE;
            let em = EmConfig { max_iterations, tolerance, ..EmConfig::new(components) };
            let rng = &mut streams.stream("timing", 0, 0);
            clock.measure(least, workers, || -> Result<()> {
                watch.check()?;
                pool.install(|| GaussianMixture::fit(rows, features, &em, rng))?;
                Ok(())
            })
        };
        let iterations = (seconds(1 + TIMED)? - seconds(1)?).max(0.0) / TIMED as f64;
        let of_largest = iterations * selection.most_components as f64 / components as f64;
        // The ladder up to the largest takes as long as three of them, of every kind.
        let again = selection.sizes * selection.repeats;
        let fits = (3 * selection.fits(rows.len() / features) + again) as f64;
        Ok(of_largest * ITERATIONS * fits * (1.0 + AGAIN))
    }

    /// So few components at most that fitting takes no longer than some seconds, if it takes so many.
    pub fn components_within(
        config: &FitConfig,
        data: &Prepared,
        takes: f64,
        seconds: f64,
    ) -> usize {
        if takes <= seconds {
            return config.validation.mixture_components;
        }
        let most = selection(config, data).most_components;
        ((most as f64 * seconds / takes) as usize).max(1)
    }

    /// The model with the stack beside it, unless it is worse by more than one standard error.
    pub fn stacked(
        &self,
        model: &ArEbm,
        validator: &Validator,
        workers: &Workers,
    ) -> Result<Option<Stacked>> {
        let validate = |model: &ArEbm| -> Result<Vec<f64>> {
            let found = validator.validate(model, &self.validation, None, workers.clone())?;
            Ok(found.log_likelihoods)
        };
        let found = SHARES
            .iter()
            .map(|&share| match share {
                0.0 => validate(model),
                _ => validate(&beside(model, &self.judged, share)),
            })
            .collect::<Result<Vec<_>>>()?;
        let at = usual_of_the_best(&found);
        let (share, found, alone) = (SHARES[at], &found[at], &found[0]);
        if share == 0.0 {
            return Ok(None);
        }
        let gain = Difference::new(found, alone);
        let worth = Difference::weighted(found, None);
        Ok(Some(Stacked {
            model: beside(model, &self.of_all, share),
            share,
            gain,
            log_likelihood: [worth.mean, worth.standard_error],
        }))
    }
}

/// Of the shares that rows cannot tell from the likeliest, by one standard error, the nearest to the usual one.
///
/// The likelihood is concave in the share, and the mean of two models that are about as good is better than either: a few rows that happen
/// to like one of them are no reason to leave out the other.
fn usual_of_the_best(found: &[Vec<f64>]) -> usize {
    let mean = |rows: &[f64]| rows.iter().sum::<f64>() / rows.len() as f64;
    let of_means = |a: &usize, b: &usize| mean(&found[*a]).total_cmp(&mean(&found[*b]));
    let best = (0..found.len()).max_by(of_means).expect("a share");
    let is_as_good = |at: &usize| {
        let behind = Difference::new(&found[best], &found[*at]);
        behind.mean <= behind.standard_error
    };
    let from_usual = |at: &usize| (SHARES[*at] - USUAL_SHARE).abs();
    let as_good = (0..found.len()).filter(is_as_good);
    as_good
        .min_by(|a, b| from_usual(a).total_cmp(&from_usual(b)))
        .expect("the best is as good as itself")
}

/// Whether it is to be fitted. EM counts every row once, and wants them in memory.
fn is_wanted(config: &FitConfig, data: &Prepared) -> bool {
    config.validation.stack_mixtures
        && config.step.criterion == Method::QOnly
        && !config.is_cross_validated(data)
        && config.shape_of(data).has_room_for_gaussian_mixture()
        && data.weights.is_none()
        && data.train_file.is_none()
        && !data.validation.is_empty()
}

fn streams(config: &FitConfig) -> Streams {
    Streams::new(config.seed).derive("mixtures-beside", 0)
}

/// As many components and fits as are worth their time.
fn selection(config: &FitConfig, data: &Prepared) -> Selection {
    let (rows, numbers) = (data.rows[0], data.num_numbers());
    let usual = Selection { starts: 1, ..Selection::default() }.within(MOST_WORK, rows, numbers);
    let work = usual.most_components as f64 * usual.work_of_component(rows, numbers);
    let again = (WORK_AGAIN / work).clamp(2.0, MOST_AGAIN) as usize;
    let sizes = SIZES[usize::from(again >= MANY_AGAIN)];
    let most_components = usual.most_components.min(config.validation.mixture_components);
    Selection { most_components, sizes, repeats: again / sizes, ..usual }
}

fn beside(model: &ArEbm, mixture: &GaussianMixture, share: f64) -> ArEbm {
    model.clone().beside_gaussian_mixture(mixture.clone(), share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::prepare;

    #[test]
    fn of_shares_that_rows_cannot_tell_apart_the_nearest_to_the_usual_is_taken() {
        // Rows that differ by much, and shares that differ little on each of them.
        let rows = |shift: f64, wiggle: f64| -> Vec<f64> {
            let sign = |row: usize| if row.is_multiple_of(2) { 1.0 } else { -1.0 };
            (0..100).map(|row| -(row as f64) + shift + wiggle * sign(row)).collect()
        };
        // A share is behind the likeliest by its distance from it, times a slope; a wiggle of 1 has a standard error of 0.1.
        let chosen = |likeliest: f64, slope: f64| {
            let of = |share: f64| {
                let apart = (share - likeliest).abs();
                rows(-slope * apart, if apart < 1e-9 { 0.0 } else { 1.0 })
            };
            SHARES[usual_of_the_best(&SHARES.map(of))]
        };
        assert_eq!([0.0, 0.25, 0.95].map(|likeliest| chosen(likeliest, 9.0)), [0.0, 0.25, 0.95]);
        assert_eq!([0.0, 0.25, 0.95].map(|likeliest| chosen(likeliest, 0.1)), [USUAL_SHARE; 3]);
        // Within 0.21 of it.
        assert_eq!([0.0, 0.25, 0.95].map(|likeliest| chosen(likeliest, 0.47)), [0.15, 0.45, 0.75]);
    }

    #[test]
    fn mixtures_that_take_too_long_have_fewer_components_and_as_many_fits() {
        let mut config = FitConfig::for_table("builtin:pinwheel", 1_600, 2, Some(60));
        config.data.read.max_rows = Some(2_000);
        let data = prepare(&config).unwrap();
        let within = |takes: f64| Beside::components_within(&config, &data, takes, 20.0);
        let most = selection(&config, &data).most_components;
        assert_eq!([within(0.0), within(20.0)], [config.validation.mixture_components; 2]);
        assert_eq!([within(40.0), within(1e9)], [most / 2, 1]);
        let all = selection(&config, &data);
        config.validation.mixture_components = 7;
        let few = selection(&config, &data);
        assert_eq!(few, Selection { most_components: 7, ..all });
    }
}
