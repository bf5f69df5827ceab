//! The configuration of a fit: a preset, a TOML file on top of it, and single settings on top of that.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use zhat::ar::{ArEbmConfig, ArStepConfig, NetworkSize, Preset};
use zhat::criterion::Method;

use crate::data::Format;
use crate::error::{Result, TableError};
use crate::run::RunDirectory;

/// Everything that decides the result of a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FitConfig {
    /// Seed of everything random.
    pub seed: u64,
    /// Which data, and how they are read and split.
    pub data: DataConfig,
    /// The networks.
    pub model: ModelConfig,
    /// The training.
    pub training: TrainingConfig,
    /// The evaluation at the end.
    pub evaluation: EvaluationConfig,
}

/// Which data, and how they are read and split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DataConfig {
    /// A file, or `builtin:NAME`.
    pub source: String,
    /// Rows to draw of a built-in set.
    pub rows: usize,
    /// Columns to use, by name or position; all where there are none.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Delimiter of a text file; found out by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// Whether a text file has a header; found out by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// Format of the file, where its name does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Read no more than this many rows of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rows: Option<usize>,
    /// Leave out rows with missing cells instead of refusing them.
    pub drop_missing: bool,
    /// How the rows are split.
    pub split: SplitKind,
    /// Share of the rows for validation.
    pub validation: f64,
    /// Share of the rows for the test.
    pub test: f64,
    /// Whether columns are standardised with the training part's mean and standard deviation.
    pub standardise: bool,
    /// Columns with the step of the uniform noise that is added to them.
    #[serde(default)]
    pub dequantise: BTreeMap<String, f64>,
}

/// How rows are split into training, validation and test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitKind {
    /// At random.
    Random,
    /// The last rows are the test, those before them the validation.
    Last,
}

/// The networks; the number of features comes with the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModelConfig {
    /// Share of the units dropped inside each block while training.
    pub dropout: f64,
    /// Length of the context vector.
    pub context: usize,
    /// Components of the proposal's mixture.
    pub mixture_components: usize,
    /// What is added to the scales of the mixture.
    pub minimum_scale: f64,
    /// The energy network.
    pub energy: NetworkSize,
    /// The proposal network.
    pub proposal: NetworkSize,
}

/// The training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrainingConfig {
    /// What is minimised after the warm-up.
    pub criterion: Method,
    /// Number of steps, warm-up included.
    pub steps: u64,
    /// First steps, in which the proposal alone is trained.
    pub warm_up: u64,
    /// Rows in a step.
    pub batch: usize,
    /// Negatives of each row, `J`.
    pub negatives: usize,
    /// Share of the negatives with a feature drawn uniformly from ±6 standard deviations instead of from the proposal.
    #[serde(default)]
    pub wide_share: f64,
    /// Whether negatives with the same beginning share their dropout mask, which saves time and varies the masks less.
    #[serde(default)]
    pub share_masks: bool,
    /// Learning rate of Adam at the start; it falls along a cosine to zero.
    pub learning_rate: f64,
    /// First steps, in which the learning rate stays as it is.
    #[serde(default)]
    pub hold: u64,
    /// The gradient is scaled down to at most this norm.
    pub max_gradient_norm: f64,
    /// Steps from one line of `metrics.jsonl` to the next.
    pub log_every: u64,
    /// Steps from one validation to the next.
    pub validation_every: u64,
    /// Rows of the validation part that are used; 0 for all.
    pub validation_rows: usize,
    /// Particles behind the `log Z` of a validation.
    pub validation_particles: usize,
    /// Steps from one checkpoint to the next.
    pub checkpoint_every: u64,
    /// Stop after so many validations without a better one; 0 for never.
    pub patience: u32,
}

impl TrainingConfig {
    /// Takes another number of steps; the warm-up and the time before the learning rate falls keep their shares.
    pub fn scale_to(&mut self, steps: u64) {
        let share = steps as f64 / self.steps as f64;
        self.warm_up = (share * self.warm_up as f64) as u64;
        self.hold = (share * self.hold as f64) as u64;
        self.steps = steps;
    }
}

/// The evaluation at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Particles of each estimate of `log Z`.
    pub particles: usize,
    /// Number of independent estimates.
    pub estimates: usize,
}

impl FitConfig {
    /// The settings of a preset for some data.
    pub fn preset(preset: Preset, source: &str) -> Self {
        let (model, training) = (preset.model(), preset.training());
        let small = preset == Preset::Small;
        Self {
            seed: 0,
            data: DataConfig {
                source: source.into(),
                rows: 20_000,
                columns: Vec::new(),
                delimiter: None,
                header: None,
                format: None,
                max_rows: None,
                drop_missing: false,
                split: SplitKind::Random,
                validation: 0.1,
                test: 0.1,
                standardise: true,
                dequantise: BTreeMap::new(),
            },
            model: ModelConfig {
                dropout: model.dropout,
                context: model.context,
                mixture_components: model.mixture_components,
                minimum_scale: model.minimum_scale,
                energy: model.energy,
                proposal: model.proposal,
            },
            training: TrainingConfig {
                criterion: Method::SmcRnce,
                steps: training.iterations as u64,
                warm_up: training.warm_up as u64,
                batch: training.batch,
                negatives: training.num_negatives,
                // The presets of the paper's sets are the paper's, which has no wide negatives.
                wide_share: if small { 0.1 } else { 0.0 },
                share_masks: false,
                learning_rate: training.learning_rate,
                hold: 0,
                max_gradient_norm: 10.0,
                log_every: if small { 20 } else { 100 },
                validation_every: if small { 200 } else { 1000 },
                validation_rows: 2000,
                validation_particles: 10_000,
                checkpoint_every: if small { 200 } else { 1000 },
                patience: 0,
            },
            evaluation: EvaluationConfig {
                particles: if small { 20_000 } else { 200_000 },
                estimates: 10,
            },
        }
    }

    /// The same with a TOML text on top. Ranges are checked by [`validate`](Self::validate), when all is in place.
    pub fn with_toml(self, text: &str, origin: &str) -> Result<Self> {
        let table: Table =
            toml::from_str(text).map_err(|error| config(format!("{origin}: {error}")))?;
        let mut base = self.to_table();
        merge(&mut base, table);
        Self::from_table(base, origin)
    }

    /// The same with one setting changed, given as `a.b=value`.
    pub fn with_setting(self, assignment: &str) -> Result<Self> {
        let origin = format!("--set {assignment}");
        let (path, value) = assignment
            .split_once('=')
            .ok_or_else(|| config(format!("{origin}: write it as section.name=value")))?;
        // What is no TOML value is meant as text.
        let value: Value = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| Value::String(value.to_owned()));
        let nested = path.trim().rsplit('.').fold(value, |value, key| {
            Value::Table(Table::from_iter([(key.trim().to_owned(), value)]))
        });
        let Value::Table(nested) = nested else { unreachable!("a path has at least one part") };
        let mut base = self.to_table();
        merge(&mut base, nested);
        Self::from_table(base, &origin)
    }

    /// The same with a TOML file on top.
    pub fn with_file(self, path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| TableError::io(path, source))?;
        self.with_toml(&text, &path.display().to_string())
    }

    /// The same with noise on a column, given as `COLUMN=STEP`.
    pub fn with_dequantise(mut self, assignment: &str) -> Result<Self> {
        let wrong = || config(format!("--dequantise {assignment}: write it as COLUMN=STEP"));
        let (column, step) = assignment.rsplit_once('=').ok_or_else(wrong)?;
        self.data.dequantise.insert(column.to_owned(), step.parse().map_err(|_| wrong())?);
        Ok(self)
    }

    /// Reads the resolved configuration of a run.
    pub fn read_run(directory: &Path) -> Result<Self> {
        Self::read(&RunDirectory::open(directory)?.config())
    }

    /// Reads a resolved configuration.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| TableError::io(path, source))?;
        let table = toml::from_str(&text)
            .map_err(|error| config(format!("{}: {error}", path.display())))?;
        let config = Self::from_table(table, &path.display().to_string())?;
        config.validate()?;
        Ok(config)
    }

    /// As TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a configuration is plain data")
    }

    /// The model's shape for a number of features.
    pub fn shape(&self, features: usize) -> ArEbmConfig {
        let model = self.model.clone();
        ArEbmConfig {
            features,
            energy: model.energy,
            proposal: model.proposal,
            dropout: model.dropout,
            context: model.context,
            mixture_components: model.mixture_components,
            minimum_scale: model.minimum_scale,
        }
    }

    /// The settings of a training step after the warm-up.
    pub fn step(&self) -> ArStepConfig {
        ArStepConfig {
            num_negatives: self.training.negatives,
            wide_share: self.training.wide_share,
            share_masks: self.training.share_masks,
            warm_up: self.training.warm_up,
            ..ArStepConfig::new(self.training.criterion)
        }
    }

    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        self.shape(1).validate()?;
        self.step().validate()?;
        let training = &self.training;
        let at_least_one = [
            ("training.steps", training.steps as usize),
            ("training.batch", training.batch),
            ("training.log-every", training.log_every as usize),
            ("training.validation-every", training.validation_every as usize),
            ("training.checkpoint-every", training.checkpoint_every as usize),
            ("training.validation-particles", training.validation_particles),
            ("evaluation.particles", self.evaluation.particles),
            ("data.rows", self.data.rows),
        ];
        for (name, value) in at_least_one {
            if value == 0 {
                return Err(config(format!("{name} is 0, but must be at least 1")));
            }
        }
        if self.evaluation.estimates < 2 {
            return Err(config("evaluation.estimates must be at least 2, for an error bar".into()));
        }
        for (name, value) in [("warm-up", training.warm_up), ("hold", training.hold)] {
            if value > training.steps {
                return Err(config(format!(
                    "training.{name} is {value}, but must be at most training.steps, {}",
                    training.steps
                )));
            }
        }
        for (name, value) in [
            ("training.learning-rate", training.learning_rate),
            ("training.max-gradient-norm", training.max_gradient_norm),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return Err(config(format!("{name} is {value}, but must be larger than zero")));
            }
        }
        Ok(())
    }

    fn to_table(&self) -> Table {
        Table::try_from(self).expect("a configuration is plain data")
    }

    fn from_table(table: Table, origin: &str) -> Result<Self> {
        table.try_into().map_err(|error| config(format!("{origin}: {error}")))
    }
}

/// Puts the entries of `over` into `base`, table by table.
fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => merge(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn config(reason: String) -> TableError {
    TableError::Config { reason: reason.trim_end().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> FitConfig {
        FitConfig::preset(Preset::Small, "builtin:pinwheel")
    }

    #[test]
    fn a_configuration_survives_being_written() {
        for preset in Preset::ALL {
            let config = FitConfig::preset(preset, "table.csv");
            config.validate().unwrap();
            let again = small().with_toml(&config.to_toml(), "test").unwrap();
            assert_eq!(again, config);
        }
    }

    #[test]
    fn files_and_settings_change_what_they_name_and_nothing_else() {
        let config = small()
            .with_toml("[training]\nbatch = 7\n[model.energy]\nwidth = 32", "test")
            .unwrap()
            .with_setting("training.criterion=rnce")
            .unwrap()
            .with_setting("data.dequantise.age=1.0")
            .unwrap();
        assert_eq!(config.training.batch, 7);
        assert_eq!(config.model.energy.width, 32);
        assert_eq!(config.model.energy.blocks, small().model.energy.blocks);
        assert_eq!(config.training.criterion, Method::Rnce);
        assert_eq!(config.data.dequantise["age"], 1.0);
        assert_eq!(config.training.steps, small().training.steps);
    }

    #[test]
    fn mistakes_are_named() {
        let message = |assignment: &str| {
            let changed = small().with_setting(assignment);
            changed.and_then(|config| config.validate()).unwrap_err().to_string()
        };
        assert!(message("training.stepz=3").contains("stepz"));
        assert!(message("training.steps").contains("section.name=value"));
        assert!(message("training.criterion=cd").contains("smc-rnce"));
        assert!(message("training.learning-rate=0").contains("larger than zero"));
        assert!(message("training.warm-up=999999").contains("at most training.steps"));
        assert!(
            small().with_toml("[training", "my.toml").unwrap_err().to_string().contains("my.toml")
        );
    }
}
