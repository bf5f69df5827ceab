//! The row beyond the paper: the default of a fit, trained on the same set for the same time.

use std::collections::BTreeMap;

use zhat_table::fit::{FitConfig, StepSeconds, StepTimer};
use zhat_table::{Prepared, Result, prepare};

use super::approach::Approach;
use super::plan::{Length, Plan};
use super::{Bench, Event, Observer};

impl Bench<'_> {
    /// Its steps: as many as fit into the budget, for it alone. In a full table they are those of `zhat fit`, because the paper
    /// has no number for it. `None` if it was told to stop.
    pub(super) fn plan_beyond(&self, observer: &mut Observer) -> Result<Option<Plan>> {
        let mut seconds = BTreeMap::new();
        let steps = match self.settings.length {
            Length::Full => None,
            Length::Steps(steps) => Some(steps),
            Length::Budget(budget) => {
                observer(&Event::Timing(self.set));
                let Some(timed) = self.time_beyond()? else { return Ok(None) };
                seconds.insert(Approach::Beyond.name().to_string(), timed);
                // Its warm-up is a hundred steps at most.
                Some(timed.steps_within(budget, 0.0))
            }
        };
        let config = self.config_beyond(steps);
        let (steps, warm_up) = (config.training.num_steps, config.step.warm_up);
        Ok(Some(Plan { steps, warm_up, seconds }))
    }

    /// What `zhat fit` would take for a table of this size, with the validation part of the other cells and, like them, trained
    /// to the last step. The marginals are its own; likelihoods are in the units of the set all the same.
    pub(super) fn config_beyond(&self, steps: Option<u64>) -> FitConfig {
        let [train, validation, _] = self.data.rows;
        let (source, columns) = (self.source.to_string_lossy(), self.data.columns.len());
        let mut config = FitConfig::for_table(&source, train + validation, columns, steps);
        config.training.patience = 0;
        config.validation.cross_validate_below = 0;
        config.log_every = (config.training.num_steps / 200).max(1);
        self.evaluated_alike(config)
    }

    /// The set as a configuration's networks see it.
    pub(super) fn data_for(&self, config: &FitConfig) -> Result<Prepared> {
        if config.data.marginals == self.marginals {
            Ok(self.data.clone())
        } else {
            prepare(config)
        }
    }

    /// Seconds of a step, which are the same whatever the columns were mapped to; `None` if it was told to stop.
    fn time_beyond(&self) -> Result<Option<StepSeconds>> {
        let mut timer = StepTimer::new(&self.config_beyond(None), self.data, self.workers.clone())?;
        for _ in 0..StepTimer::ROUNDS {
            if self.is_stopped() {
                return Ok(None);
            }
            timer.round()?;
        }
        Ok(Some(timer.medians()))
    }
}
