//! The configuration of a fit: the default or a preset, a TOML file on top of it, and single settings on top of that.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use zhat::ar::{ArEbmConfig, ArStepConfig, Conditioner, EnergyForm, Normalisation};
use zhat::criterion::Method;
use zhat::gaussian_mixture::Selection;
use zhat::train::{OptimiserConfig, Schedule, TrainingConfig};

use super::start::Start;
use super::validation::BaseAnswers;
use crate::data::{Asked, Marginals, ReadOptions, SaidKind, SplitOptions};
use crate::density::Estimation;
use crate::error::{Result, TableError};
use crate::prepare::Prepared;
use crate::run::{RunDirectory, sha256, write_atomically};

/// Everything that decides the result of a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FitConfig {
    /// Seed of everything random.
    pub seed: u64,
    /// Steps from one line of `metrics.jsonl` to the next.
    pub log_every: u64,
    /// Where columns start; as standard normals in a run of a time before there was anything else.
    #[serde(default)]
    pub start: Start,
    /// Which data, and how they are read and split.
    pub data: DataConfig,
    /// The networks; the number of features comes with the data.
    pub model: ArEbmConfig,
    /// What a training step minimises, and how.
    pub step: ArStepConfig,
    /// How long, how fast and how carefully.
    pub training: TrainingConfig,
    /// The validations on the way.
    pub validation: ValidationConfig,
    /// The evaluation at the end.
    pub evaluation: Estimation,
}

/// Which data, and how they are read and split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DataConfig {
    /// A file, or `builtin:NAME`.
    pub source: String,
    /// Whether columns are standardised with the training part's mean and standard deviation; if not, they stay as they are.
    pub standardise: bool,
    /// What the networks are given of each column that is standardised; standard units in a run of a time before there was
    /// anything else.
    #[serde(default)]
    pub marginals: Marginals,
    /// How a file is read.
    #[serde(default)]
    pub read: ReadOptions,
    /// How the rows are split.
    #[serde(default)]
    pub split: SplitOptions,
    /// Columns with the step of the uniform noise that is added to them.
    #[serde(default)]
    pub dequantise: BTreeMap<String, f64>,
    /// Whether it is found out what the columns are: without it all are any numbers, and words and missing cells are refused.
    #[serde(default)]
    pub find_kinds: bool,
    /// What columns are, where that is not to be found out.
    #[serde(default)]
    pub kinds: BTreeMap<String, SaidKind>,
    /// Columns that are given: the density is of the others given these.
    #[serde(default)]
    pub given: Vec<String>,
    /// The columns that the density is of, given all others; the other way to say it.
    #[serde(default)]
    pub target: Vec<String>,
    /// The column that says what each row counts, and is no part of the model: a row of weight 2 counts as if it stood there twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
}

impl DataConfig {
    /// What is asked of a table besides its numbers.
    pub(crate) fn asked(&self) -> Asked {
        let asks = self.find_kinds || !self.kinds.is_empty();
        Asked {
            dequantise: self.dequantise.clone(),
            kinds: asks.then(|| self.kinds.clone()),
            weight: self.weight.clone(),
        }
    }
}

/// The validations on the way, of which the best model is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ValidationConfig {
    /// Rows of the validation part that are used; 0 for all.
    pub rows: usize,
    /// Particles behind the `log Z` of a validation.
    pub particles: usize,
    /// Whether the proposal is the answer where the model is no better.
    pub base: BaseAnswers,
    /// Whether a base that is the density is made as sure of itself at the end as validation rows say ([`ArEbm::recalibrated`](zhat::ar::ArEbm::recalibrated)).
    #[serde(default)]
    pub recalibrate: bool,
    /// With fewer rows than this for training and validation together, the number of steps is chosen by cross-validation, and
    /// the model trained on all of them; 0 for never.
    pub cross_validate_below: usize,
    /// Parts of the rows in a cross-validation.
    pub folds: usize,
    /// Whether Gaussian mixtures are fitted too, and stand beside networks that were trained without them in the share that makes the
    /// validation rows likeliest, if any.
    #[serde(default)]
    pub stack_mixtures: bool,
    /// Components of each of them at most; fewer where they would take too long.
    #[serde(default = "most_components")]
    pub mixture_components: usize,
}

fn most_components() -> usize {
    Selection::default().most_components
}

impl ValidationConfig {
    /// The rows of a part that are used.
    pub(super) fn of_rows<'a>(&self, part: &'a [f32], features: usize) -> &'a [f32] {
        match self.rows {
            0 => part,
            rows => &part[..part.len().min(rows * features)],
        }
    }
}

/// Where free energies are confined, in standard deviations: outside the data, unless those go further.
const CONFINE: f64 = 8.0;
/// At least so many times as far out as the furthest value of the training part.
const BEYOND_DATA: f64 = 1.5;

/// What stands before the digest of a run's configuration: the SHA-256 of all that is above it.
const DIGEST: &str = "\n# sha256 of all above: ";

/// What may be changed when a run is taken up again: how long it is, and what only looks at it.
const MAY_CHANGE: [&str; 12] = [
    "training.num-steps",
    "training.stop-after",
    "training.hold",
    "training.patience",
    "training.max-rollbacks",
    "training.validation-every",
    "training.checkpoint-every",
    "log-every",
    "validation.rows",
    "validation.particles",
    "validation.base",
    "evaluation.",
];

impl FitConfig {
    /// The default: small networks, about a minute on two cores for a handful of columns.
    pub fn new(source: &str) -> Self {
        let training = TrainingConfig::new(4_000, 3e-3)
            .with_batch_size(128)
            .with_schedule(Schedule::Cosine)
            .with_optimiser(OptimiserConfig::Adam)
            .with_max_gradient_norm(10.0)
            .with_every(100, 200);
        let training = TrainingConfig { patience: 10, ..training };
        Self {
            seed: 0,
            log_every: 20,
            start: Start::Standard,
            data: DataConfig {
                source: source.into(),
                standardise: true,
                marginals: Marginals::Gaussian,
                read: ReadOptions::default(),
                split: SplitOptions::default(),
                dequantise: BTreeMap::new(),
                find_kinds: false,
                kinds: BTreeMap::new(),
                given: Vec::new(),
                target: Vec::new(),
                weight: None,
            },
            model: ArEbmConfig { confine: CONFINE, ..ArEbmConfig::small() },
            step: ArStepConfig {
                warm_up: 400,
                wide_share: 0.1,
                ..ArStepConfig::new(Method::SmcRnce)
            },
            training,
            validation: ValidationConfig {
                rows: 2000,
                particles: 10_000,
                base: BaseAnswers::Auto,
                recalibrate: false,
                cross_validate_below: 1000,
                folds: 5,
                stack_mixtures: false,
                mixture_components: most_components(),
            },
            evaluation: Estimation::new(20_000, 10),
        }
    }

    /// Moves what confines a free energy out of the way of the data, where they go that far, and does without a mixture where there
    /// are no numbers for one.
    pub(super) fn clear_of(&mut self, data: &Prepared) {
        if data.num_numbers() == 0 || data.weights.is_some() {
            // A mixture of no columns is nothing, and EM counts every row once.
            self.model.gaussian_mixture = false;
        }
        let furthest = data.train.iter().fold(0.0f32, |furthest, x| furthest.max(x.abs()));
        if self.model.confine > 0.0 {
            self.model.confine = self.model.confine.max(BEYOND_DATA * f64::from(furthest));
        }
    }

    /// Does not look for kinds where the networks know of none.
    pub fn settle_kinds(&mut self) {
        let model = &self.model;
        self.data.find_kinds &= model.conditioner == Conditioner::Masked
            && model.energy_form == EnergyForm::Tilted
            && model.normalisation == Normalisation::Local;
    }

    /// Whether the number of steps of a fit of these data is chosen by cross-validation.
    pub fn is_cross_validated(&self, data: &Prepared) -> bool {
        let [train, validation, _] = data.rows;
        validation > 0 && train + validation < self.validation.cross_validate_below
    }

    /// The same with a TOML text on top. Ranges are checked by [`validate`](Self::validate), when all is in place.
    pub fn with_toml(self, text: &str, origin: &str) -> Result<Self> {
        let table: Table = toml::from_str(text)
            .map_err(|error| TableError::config(format!("{origin}: {error}")))?;
        self.with(table, origin)
    }

    fn with(&self, over: Table, origin: &str) -> Result<Self> {
        let mut base = self.to_table();
        merge(&mut base, over);
        Self::from_table(base, origin)
    }

    /// The same with one setting changed, given as `a.b=value`.
    pub fn with_setting(self, assignment: &str) -> Result<Self> {
        let (path, value) = assignment.split_once('=').ok_or_else(|| {
            TableError::config(format!("{assignment}: write it as section.name=value"))
        })?;
        // What is no TOML value is meant as text.
        let value: Value = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| Value::String(value.to_owned()));
        let nested = path.trim().rsplit('.').fold(value, |value, key| {
            Value::Table(Table::from_iter([(key.trim().to_owned(), value)]))
        });
        let Value::Table(nested) = nested else { unreachable!("a path has at least one part") };
        self.with(nested, assignment)
    }

    /// The same with a TOML file on top.
    pub fn with_file(self, path: &Path) -> Result<Self> {
        self.with_toml(&Self::read_text(path)?, &path.display().to_string())
    }

    /// The text of a file with settings; `-` is standard input.
    pub fn read_text(path: &Path) -> Result<String> {
        let text = match path == Path::new("-") {
            true => std::io::read_to_string(std::io::stdin()),
            false => std::fs::read_to_string(path),
        };
        text.map_err(|source| TableError::io(path, source))
    }

    /// Reads the resolved configuration of a run.
    pub fn read_run(directory: &Path) -> Result<Self> {
        Self::read(&RunDirectory::open(directory)?.config())
    }

    /// Reads a resolved configuration, which must be as it was written.
    pub fn read(path: &Path) -> Result<Self> {
        let (origin, text) = (path.display().to_string(), Self::read_text(path)?);
        if let Some((settings, digest)) = text.rsplit_once(DIGEST)
            && sha256(settings.as_bytes()) != digest.trim_end()
        {
            return Err(TableError::config(format!(
                "{origin} is not as it was written; give other settings to a fit that is resumed, or take the file as it is by \
                 removing its last line"
            )));
        }
        let table = toml::from_str(&text)
            .map_err(|error| TableError::config(format!("{origin}: {error}")))?;
        let config = Self::from_table(table, &origin)?;
        config.validate()?;
        Ok(config)
    }

    /// Writes the resolved configuration of a run, with a digest at its end.
    pub(super) fn write(&self, run: &RunDirectory) -> Result<()> {
        let text = self.to_toml();
        let digest = sha256(text.as_bytes());
        write_atomically(&run.config(), format!("{text}{DIGEST}{digest}\n").as_bytes())
    }

    /// As TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a configuration is plain data")
    }

    /// Every setting as `section.name` and its value, in order.
    pub fn settings(&self) -> Vec<(String, Value)> {
        let mut settings = Vec::new();
        flatten("", Value::Table(self.to_table()), &mut settings);
        settings
    }

    /// An error that names the first setting that a run cannot be taken up with, because it would be another run.
    pub fn check_resumed(&self, stored: &FitConfig) -> Result<()> {
        let (new, old) = (self.settings(), stored.settings());
        let value = |settings: &[(String, Value)], name: &str| {
            let found = settings.iter().find(|(known, _)| known == name);
            found.map_or_else(|| "not set".into(), |(_, value)| value.to_string())
        };
        let changed = new.iter().chain(&old).find(|(name, _)| {
            value(&new, name) != value(&old, name)
                && !MAY_CHANGE.iter().any(|free| name.starts_with(free))
        });
        match changed {
            Some((name, _)) => Err(TableError::config(format!(
                "{name} is {} in this run and cannot become {} when it is taken up; start another run",
                value(&old, name),
                value(&new, name)
            ))),
            None => Ok(()),
        }
    }

    /// The model's shape for a number of features.
    pub fn shape(&self, features: usize) -> ArEbmConfig {
        ArEbmConfig { features, ..self.model.clone() }
    }

    /// The networks for the features of some data.
    pub fn shape_of(&self, data: &Prepared) -> ArEbmConfig {
        let (kinds, cycles) = (data.standardiser.kinds(), data.standardiser.cycles());
        ArEbmConfig { kinds, cycles, given: data.given, ..self.shape(data.columns.len()) }
    }

    /// Checks the ranges of the settings.
    pub fn validate(&self) -> Result<()> {
        self.shape(1).validate()?;
        self.step.validate()?;
        self.training.validate()?;
        for (name, value, least) in [
            ("log-every", self.log_every as usize, 1),
            ("validation.particles", self.validation.particles, 1),
            ("validation.folds", self.validation.folds, 2),
            ("validation.mixture-components", self.validation.mixture_components, 1),
            ("evaluation.particles", self.evaluation.particles, 1),
            ("evaluation.estimates", self.evaluation.estimates, 2),
        ] {
            if value < least {
                return Err(TableError::config(format!(
                    "{name} is {value}, but must be at least {least}"
                )));
            }
        }
        if !self.data.given.is_empty() && !self.data.target.is_empty() {
            return Err(TableError::config(
                "data.given and data.target say the same in two ways: leave one of them out".into(),
            ));
        }
        let asks = !self.data.given.is_empty() || !self.data.target.is_empty();
        let is_masked = self.model.conditioner == Conditioner::Masked;
        if asks && !(is_masked && self.model.normalisation == Normalisation::Local) {
            return Err(TableError::config(
                "data.given: a density given columns has a normaliser for each of their values, and needs model.conditioner = \
                 masked and model.normalisation = local, as the default has; leave out the preset, or a criterion of whole rows"
                    .into(),
            ));
        }
        let of_sequences = [Method::SmcRnce, Method::SmcRnceTrajectory];
        if self.model.normalisation == Normalisation::Local
            && of_sequences.contains(&self.step.criterion)
        {
            return Err(TableError::config(format!(
                "step.criterion is {}, which is for all factors together: it needs model.normalisation = global",
                self.step.criterion
            )));
        }
        if self.step.warm_up > self.training.num_steps {
            return Err(TableError::config(format!(
                "step.warm-up is {}, but must be at most training.num-steps, {}",
                self.step.warm_up, self.training.num_steps
            )));
        }
        Ok(())
    }

    fn to_table(&self) -> Table {
        Table::try_from(self).expect("a configuration is plain data")
    }

    fn from_table(table: Table, origin: &str) -> Result<Self> {
        table.try_into().map_err(|error| TableError::config(format!("{origin}: {error}")))
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

fn flatten(prefix: &str, value: Value, settings: &mut Vec<(String, Value)>) {
    let Value::Table(table) = value else {
        return settings.push((prefix.to_owned(), value));
    };
    for (key, value) in table {
        let name = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        flatten(&name, value, settings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> FitConfig {
        FitConfig::new("builtin:pinwheel")
    }

    #[test]
    fn a_configuration_survives_being_written() {
        small().validate().unwrap();
        let mut config = FitConfig::new("table.csv");
        (config.seed, config.model.context, config.step.num_negatives) = (7, 11, 3);
        config.training.max_gradient_norm = None;
        (config.data.read.columns, config.data.read.max_rows) = (vec!["a".into()], Some(9));
        let again = FitConfig::from_table(toml::from_str(&config.to_toml()).unwrap(), "").unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn files_and_settings_change_what_they_name_and_nothing_else() {
        let config = small()
            .with_toml("[training]\nbatch-size = 7\n[model.energy]\nwidth = 32", "test")
            .unwrap()
            .with_setting("step.criterion=rnce")
            .unwrap()
            .with_setting("data.dequantise.age=1.0")
            .unwrap();
        assert_eq!(config.training.batch_size, 7);
        assert_eq!(config.model.energy.width, 32);
        assert_eq!(config.model.energy.blocks, small().model.energy.blocks);
        assert_eq!(config.step.criterion, Method::Rnce);
        assert_eq!(config.data.dequantise["age"], 1.0);
        assert_eq!(config.training.num_steps, small().training.num_steps);
    }

    #[test]
    fn a_run_is_taken_up_with_more_steps_but_not_with_another_model() {
        let with = |assignment: &str| small().with_setting(assignment).unwrap();
        for free in [
            "training.num-steps=9000",
            "training.stop-after=70",
            "evaluation.particles=7",
            "validation.rows=3",
        ] {
            with(free).check_resumed(&small()).unwrap();
        }
        for (fixed, name) in [
            ("model.context=7", "model.context is 32"),
            ("seed=1", "seed is 0"),
            ("validation.cross-validate-below=0", "validation.cross-validate-below is 1000"),
            ("step.criterion=rnce", "step.criterion is \"smc-rnce\""),
            ("data.dequantise.age=1.0", "data.dequantise.age is not set"),
            ("data.marginals=standard", "data.marginals is \"gaussian\""),
            ("data.read.columns=[\"a\"]", "data.read.columns is []"),
        ] {
            let message = with(fixed).check_resumed(&small()).unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
    }

    #[test]
    fn a_run_of_another_length_keeps_its_shape() {
        let mut config = small();
        config.training.hold = 200;
        config.scale_to(1000);
        let training = &config.training;
        assert_eq!((training.num_steps, config.step.warm_up, training.hold), (1000, 100, 50));
        assert_eq!((training.validation_every, training.checkpoint_every), (25, 50));
        config.scale_to(3);
        assert_eq!((config.training.validation_every, config.step.warm_up), (1, 0));
        config.validate().unwrap();
    }

    #[test]
    fn energies_are_confined_outside_the_data_unless_nobody_wants_it() {
        let mut data = crate::prepare(&small()).unwrap();
        let confined = |config: &FitConfig, data: &Prepared| {
            let mut config = config.clone();
            config.clear_of(data);
            config.model.confine
        };
        assert_eq!(confined(&small(), &data), 8.0);
        data.train[3] = -20.0;
        assert_eq!(confined(&small(), &data), 30.0);
        assert_eq!(confined(&small().with_setting("model.confine=0.0").unwrap(), &data), 0.0);
    }

    #[test]
    fn mistakes_are_named() {
        let message = |assignment: &str| {
            let changed = small().with_setting(assignment);
            changed.and_then(|config| config.validate()).unwrap_err().to_string()
        };
        assert!(message("training.stepz=3").contains("stepz"));
        assert!(message("training.num-steps").contains("section.name=value"));
        assert!(message("step.criterion=cd").contains("smc-rnce"));
        assert!(message("step.criterion=cdd").contains("smc-rnce"));
        assert!(message("data.marginals=normal").contains("gaussian"));
        assert!(message("training.learning-rate=0").contains("larger than zero"));
        assert!(message("validation.folds=1").contains("at least 2"));
        assert!(message("validation.base=maybe").contains("auto"));
        assert!(message("step.warm-up=999999").contains("at most training.num-steps"));
        assert!(
            small().with_toml("[training", "my.toml").unwrap_err().to_string().contains("my.toml")
        );
    }
}
