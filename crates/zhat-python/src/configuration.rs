//! The configuration of a fit, from what Python gives: the same defaults and the same order as the program's.

use std::time::Duration;

use serde::Deserialize;
use zhat::ar::Normalisation;
use zhat::criterion::Method;
use zhat_paper::presets::Preset;
use zhat_table::fit::{Clock, Columns, FitConfig, Length, Limit, Time};
use zhat_table::{Result, TableError};

/// What is asked of a fit, as JSON.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    /// Name of the data.
    source: String,
    preset: Option<Preset>,
    criterion: Option<Method>,
    steps: Option<u64>,
    seed: Option<u64>,
    patience: Option<u32>,
    /// Sections of settings as in a TOML file.
    settings: serde_json::Value,
    /// Seconds that the schedule is fitted to, and by which clock.
    time: Option<f64>,
    processor_time: Option<f64>,
    /// Seconds after which training ends wherever it is.
    max_time: Option<f64>,
}

impl Wanted {
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| TableError::Config { reason: error.to_string() })
    }

    /// The configuration for a table of a size, which decides where there is no preset.
    pub fn configuration(
        &self,
        rows: usize,
        columns: Columns,
        length: Length,
    ) -> Result<FitConfig> {
        let mut config = match self.preset {
            Some(preset) => preset.config(&self.source),
            None => {
                let length = self.steps.map_or(length, Length::Steps);
                FitConfig::for_table(&self.source, rows, columns, length)
            }
        };
        if self.preset.is_none()
            && let Some(Method::SmcRnce | Method::SmcRnceTrajectory) = self.criterion
        {
            config.model.normalisation = Normalisation::Global;
        }
        self.on_top_of(config)
    }

    /// What is asked, on top of a run's own configuration.
    pub fn on_top_of(&self, mut config: FitConfig) -> Result<FitConfig> {
        if let Some(steps) = self.steps {
            config.scale_to(steps);
        }
        if !self.settings.is_null() {
            let text = toml::to_string(&self.settings)
                .map_err(|error| TableError::Config { reason: error.to_string() })?;
            config = config.with_toml(&text, "the parameters")?;
        }
        config.training.num_steps = self.steps.unwrap_or(config.training.num_steps);
        config.seed = self.seed.unwrap_or(config.seed);
        config.step.criterion = self.criterion.unwrap_or(config.step.criterion);
        config.training.patience = self.patience.unwrap_or(config.training.patience);
        config.settle_kinds();
        config.validate()?;
        Ok(config)
    }

    /// The time that the schedule is fitted to.
    pub fn planned(&self) -> Option<Limit> {
        let time = |clock| move |seconds| Limit::planned(Time { seconds, clock });
        let wall = self.time.map(time(Clock::Wall));
        wall.or(self.processor_time.map(time(Clock::Processor)))
    }

    /// When training ends, wherever it is.
    pub fn hard(&self) -> Option<Limit> {
        let seconds = self.max_time.and_then(|time| Duration::try_from_secs_f64(time).ok());
        seconds.map(Limit::hard)
    }
}
