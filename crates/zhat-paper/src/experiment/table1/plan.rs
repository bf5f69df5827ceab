//! How many steps a cell has: the paper's, a number, or as many as fit into a time.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};
use zhat::criterion::Method;
use zhat_table::fit::{FitConfig, StepSeconds, StepTimer};
use zhat_table::run::of_first;
use zhat_table::{Result, TableError};

use super::approach::Approach;
use super::{Bench, Event, Observer, preset};

/// How long each cell trains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// The paper's iterations.
    Full,
    /// This many steps, warm-up included.
    Steps(u64),
    /// As many steps as take so many seconds for the slowest criterion.
    Budget(f64),
}

impl Default for Length {
    fn default() -> Self {
        Length::Budget(1200.0)
    }
}

impl Length {
    pub(super) fn validate(&self) -> Result<()> {
        let is_possible = match self {
            Length::Full => true,
            Length::Steps(steps) => *steps > 0,
            Length::Budget(seconds) => seconds.is_finite() && *seconds > 0.0,
        };
        let reason = format!("a cell cannot train for {self:?}");
        if is_possible { Ok(()) } else { Err(TableError::Config { reason }) }
    }
}

/// The steps of all cells of a set that a criterion trains, or of the one beyond the paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Steps, warm-up included.
    pub steps: u64,
    /// Steps of the warm-up.
    pub warm_up: u64,
    /// What the steps took when they were timed for a budget, by criterion.
    pub seconds: BTreeMap<String, StepSeconds>,
}

/// Rows in a step of a reduced run: 16 times as many steps as with the paper's 512 in the same time.
///
/// What a short training lacks is steps, not rows in each. The energy starts flat and has mass everywhere; with 941 steps of
/// 512 rows of POWER nearly half of it was still far from the data, where no likelihood is worth comparing.
const REDUCED_BATCH: usize = 32;

/// The learning rate of a reduced run is so many times the paper's: fewer steps have to go as far.
pub(super) const REDUCED_RATE: f64 = 4.0;

/// Validations and checkpoints of a reduced run.
const VALIDATIONS: u64 = 25;

/// Particles behind the `log Z` of its validations. While mass is far out, fewer give estimates so noisy that the best of
/// them is the luckiest.
const VALIDATION_PARTICLES: usize = 50_000;

impl Plan {
    fn new(length: Length, paper: &FitConfig, seconds: BTreeMap<String, StepSeconds>) -> Self {
        let most = paper.training.num_steps;
        // The warm-up keeps its share. A longer one is cheap, but an energy that meets a good proposal before it has learnt
        // anything sees negatives near the data alone, and keeps its mass everywhere else for thousands of steps.
        let share = paper.step.warm_up as f64 / most as f64;
        let steps = match length {
            Length::Full => most,
            Length::Steps(steps) => steps,
            Length::Budget(budget) => {
                let of_criteria =
                    seconds.values().map(|seconds| seconds.steps_within(budget, share));
                of_criteria.min().unwrap_or(1).min(most)
            }
        };
        Self { steps, warm_up: (share * steps as f64) as u64, seconds }
    }
}

impl Bench<'_> {
    /// The plan for a cell of the set, made anew or as it was; `None` if it was told to stop.
    pub(super) fn plan(
        &self,
        criterion: Approach,
        observer: &mut Observer,
    ) -> Result<Option<Plan>> {
        let path = self.directory.join(match criterion {
            Approach::Paper(_) => "plan.json",
            Approach::Beyond => "plan-beyond.json",
        });
        if let Some(plan) = self.known(&path)? {
            return Ok(Some(plan));
        }
        let plan = match criterion {
            Approach::Paper(_) => self.plan_criteria(observer)?,
            Approach::Beyond => self.plan_beyond(observer)?,
        };
        let Some(plan) = plan else { return Ok(None) };
        // Clocks differ, and plans must not.
        let plan = of_first(self.workers, || {
            fs::create_dir_all(&self.directory)
                .map_err(|source| TableError::Io { path: self.directory.clone(), source })?;
            Ok(plan)
        })?;
        self.keep(&path, &plan)?;
        Ok(Some(plan))
    }

    /// The steps that all criteria have.
    fn plan_criteria(&self, observer: &mut Observer) -> Result<Option<Plan>> {
        let mut seconds = BTreeMap::new();
        if matches!(self.settings.length, Length::Budget(_)) {
            observer(&Event::Timing(self.set));
            let Some(timed) = self.time()? else { return Ok(None) };
            seconds = timed;
        }
        Ok(Some(Plan::new(self.settings.length, &preset(self.set).config(""), seconds)))
    }

    /// The configuration of a cell.
    pub(super) fn config(&self, criterion: Approach, plan: &Plan) -> FitConfig {
        match criterion {
            Approach::Paper(criterion) => self.config_paper(criterion, plan),
            Approach::Beyond => self.config_beyond(Some(plan.steps)),
        }
    }

    /// With the seed, the validation part and the evaluation that all cells share.
    pub(super) fn evaluated_alike(&self, mut config: FitConfig) -> FitConfig {
        config.seed = self.settings.seed;
        config.evaluation.particles = self.settings.particles;
        config.evaluation.estimates = self.settings.estimates;
        // The paper uses a tenth of the validation part, and all of it where it is small.
        let [_, validation, _] = self.data.rows;
        config.validation.rows = if validation < 20_000 { 0 } else { validation / 10 };
        config
    }

    fn config_paper(&self, criterion: Method, plan: &Plan) -> FitConfig {
        let config = preset(self.set).config(&self.source.to_string_lossy());
        let mut config = self.evaluated_alike(config);
        config.step.criterion = criterion;
        config.step.wide_share = self.settings.wide_share;
        config.step.warm_up = plan.warm_up;
        let training = &mut config.training;
        let batch = match self.settings.length {
            Length::Full => training.batch_size,
            _ => training.batch_size.min(REDUCED_BATCH),
        };
        training.batch_size = self.settings.batch.unwrap_or(batch);
        training.num_steps = plan.steps;
        if self.settings.length != Length::Full {
            training.learning_rate *= REDUCED_RATE;
            training.validation_every = (plan.steps / VALIDATIONS).max(1);
            training.checkpoint_every = training.validation_every;
            config.validation.particles = VALIDATION_PARTICLES;
            config.log_every = (plan.steps / 200).max(1);
        }
        config
    }

    /// Seconds of a step by criterion, as the median of a few; `None` if it was told to stop.
    ///
    /// The criteria take turns, so that a machine that is busy for a moment does not slow down one of them alone.
    fn time(&self) -> Result<Option<BTreeMap<String, StepSeconds>>> {
        let of_paper = |approach: &Approach| match *approach {
            Approach::Paper(criterion) => Some(criterion),
            Approach::Beyond => None,
        };
        let criteria: Vec<Method> = self.settings.criteria.iter().filter_map(of_paper).collect();
        let any = Plan { steps: 1, warm_up: 0, seconds: BTreeMap::new() };
        let mut timers = criteria
            .iter()
            .map(|&criterion| {
                let config = self.config_paper(criterion, &any);
                StepTimer::new(&config, self.data, self.workers.clone())
            })
            .collect::<Result<Vec<_>>>()?;
        for _ in 0..StepTimer::ROUNDS {
            for timer in &mut timers {
                if self.is_stopped() {
                    return Ok(None);
                }
                timer.round()?;
            }
        }
        let names = criteria.iter().map(|&criterion| criterion.name().to_string());
        Ok(Some(names.zip(timers.iter().map(StepTimer::medians)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(length: Length, full: f64) -> Plan {
        let seconds = BTreeMap::from([
            ("rnce".to_string(), StepSeconds { warm_up: full / 25.0, full }),
            ("ml-is".to_string(), StepSeconds { warm_up: full / 30.0, full: full / 2.0 }),
        ]);
        let paper = preset(zhat_table::data::benchmark::Benchmark::Power).config("");
        Plan::new(length, &paper, seconds)
    }

    fn cost(plan: &Plan) -> f64 {
        let slowest = plan.seconds["rnce"];
        plan.warm_up as f64 * slowest.warm_up + (plan.steps - plan.warm_up) as f64 * slowest.full
    }

    #[test]
    fn a_budget_is_filled_by_the_slowest_criterion() {
        for (budget, full) in [(1200.0, 0.5), (1200.0, 0.02), (36_000.0, 0.5), (3.0, 0.5)] {
            let plan = plan(Length::Budget(budget), full);
            assert!((cost(&plan) - budget).abs() <= 1.5 * full, "{budget} s: {plan:?}");
            assert_eq!(plan.warm_up, plan.steps / 200, "the paper's share");
        }
    }

    #[test]
    fn nothing_is_longer_than_the_paper() {
        assert_eq!(plan(Length::Budget(1e9), 0.5).steps, 1_000_000);
        let full = plan(Length::Full, 0.5);
        assert_eq!((full.steps, full.warm_up), (1_000_000, 5000));
        let few = plan(Length::Steps(1000), 0.5);
        assert_eq!((few.steps, few.warm_up), (1000, 5));
    }
}
