//! What the commands that fit have in common: which data, and settings from a preset, a file and the command line.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use zhat::ar::Normalisation;
use zhat::criterion::Method;
use zhat::ranks::Workers;
use zhat_paper::presets::Preset;
use zhat_table::TableError;
use zhat_table::data::{Dequantise, Missing, SaidKind, keep};
use zhat_table::fit::{Columns, FitConfig, Length};

use super::table_options::FileOptions;

/// What is fitted where nothing else is said.
const DEFAULT_DATA: &str = "builtin:pinwheel";

/// The data and the settings.
#[derive(clap::Args)]
pub struct ConfigOptions {
    /// A file (CSV, NPY, Parquet; compressed too), - for standard input, builtin:NAME, or a directory of `zhat data prepare`
    /// [default: that of --config, or builtin:pinwheel]
    data: Option<String>,
    /// Networks and training settings to start from: small, power, gas, hepmass, miniboone or bsds300 [default: by the size
    /// of the table, to fit; small, to compare]
    #[arg(long)]
    preset: Option<Preset>,
    /// A TOML file with settings on top of the preset; - for standard input
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One more setting, such as training.batch-size=64; may be given several times
    #[arg(long = "set", value_name = "SECTION.NAME=VALUE")]
    settings: Vec<String>,
    /// Number of training steps
    #[arg(long)]
    pub steps: Option<u64>,
    /// Seed of everything random
    #[arg(long)]
    pub seed: Option<u64>,
    /// Columns to use, by name or position
    #[arg(long, value_delimiter = ',')]
    columns: Vec<String>,
    #[command(flatten)]
    file: FileOptions,
    /// Leave out rows with missing cells
    #[arg(long)]
    drop_missing: bool,
    /// Add uniform noise of this step to a discrete column; several with commas, or given several times
    #[arg(long, value_name = "COLUMN=STEP", value_parser = |text: &str| Steps::parse(text))]
    dequantise: Vec<Steps>,
    /// What columns are, where that is not to be found out: continuous, positive, bounded:LOW:HIGH, cyclic:PERIOD (1d, 24), integer, categorical or
    /// identifier; several with commas, or given several times
    #[arg(long = "kind", value_name = "COLUMN=KIND", value_parser = |text: &str| Kinds::parse(text))]
    kinds: Vec<Kinds>,
    /// Columns that are given: the density is of the others given these (regression, classification)
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS", conflicts_with = "target")]
    given: Vec<String>,
    /// The columns that the density is of, given all others
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    target: Vec<String>,
    /// The column that says what each row counts, and is not modelled
    #[arg(long, value_name = "COLUMN")]
    weight: Option<String>,
    /// Where the data are kept, if what was named can be read only once.
    #[arg(skip)]
    kept: OnceLock<String>,
    /// What is in the file of settings.
    #[arg(skip)]
    text: OnceLock<String>,
}

/// What columns are, of one argument.
#[derive(Clone)]
pub struct Kinds(pub Vec<(String, SaidKind)>);

impl Kinds {
    pub fn parse(text: &str) -> Result<Self, String> {
        SaidKind::list(text).map(Self).map_err(|error| error.to_string())
    }
}

/// Discrete columns of one argument.
#[derive(Clone)]
struct Steps(Vec<Dequantise>);

impl Steps {
    fn parse(text: &str) -> Result<Self, String> {
        Dequantise::list(text).map(Self).map_err(|error| error.to_string())
    }
}

impl ConfigOptions {
    /// Copies data that can be read only once, such as what comes through a pipe, into the directory: a fit reads them more than
    /// once, and so does whoever evaluates or resumes it.
    pub fn keep_data(&self, directory: &Path) -> anyhow::Result<()> {
        let source = self.configuration()?.data.source;
        let kept = keep(&source, directory).map_err(TableError::from)?;
        if kept != source {
            let _ = self.kept.set(kept);
        }
        Ok(())
    }

    /// Tells other ranks where the first has kept the data.
    pub fn share_data(&self, workers: &Workers) {
        let kept = self.kept.get().cloned().unwrap_or_default();
        if let Ok(kept) = String::from_utf8(workers.of_first(kept.into_bytes()))
            && !kept.is_empty()
        {
            let _ = self.kept.set(kept);
        }
    }

    /// The preset, then the file, then single settings, then the options of their own.
    pub fn configuration(&self) -> anyhow::Result<FitConfig> {
        let config = self.preset.unwrap_or(Preset::Small).config(DEFAULT_DATA);
        self.on_top_of(self.with_file(config)?)
    }

    /// The same for a table of some size, which decides where there is no preset, and for the criterion that is asked for: one of
    /// whole rows has one normaliser, unless settings say otherwise.
    pub fn configuration_for(
        &self,
        rows: usize,
        columns: Columns,
        length: Length,
        criterion: Option<Method>,
    ) -> anyhow::Result<FitConfig> {
        if self.preset.is_some() {
            return self.configuration();
        }
        let length = self.steps.map_or(length, Length::Steps);
        let mut config = FitConfig::for_table(DEFAULT_DATA, rows, columns, length);
        if let Some(Method::SmcRnce | Method::SmcRnceTrajectory) = criterion {
            config.model.normalisation = Normalisation::Global;
        }
        self.on_top_of(self.with_file(config)?)
    }

    /// What is given here, on top of a run's own configuration.
    pub fn resumed(&self, stored: FitConfig) -> anyhow::Result<FitConfig> {
        let given = [("preset", self.preset.is_some()), ("config", self.config.is_some())];
        if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
            let reason = format!("{name}: a run that is resumed has its own; leave it out");
            return Err(TableError::Config { reason }.into());
        }
        self.on_top_of(stored)
    }

    /// With the settings of a file, which is read once: it may be a pipe.
    fn with_file(&self, config: FitConfig) -> anyhow::Result<FitConfig> {
        let Some(path) = &self.config else { return Ok(config) };
        let text = match self.text.get() {
            Some(text) => text,
            None => {
                let text = FitConfig::read_text(path)?;
                self.text.get_or_init(|| text)
            }
        };
        Ok(config.with_toml(text, &path.display().to_string())?)
    }

    /// With another number of steps the warm-up keeps its share of the run, unless it is set itself.
    fn on_top_of(&self, mut config: FitConfig) -> anyhow::Result<FitConfig> {
        if let Some(data) = self.kept.get().or(self.data.as_ref()) {
            config.data.source = data.clone();
        }
        if let Some(steps) = self.steps {
            config.scale_to(steps);
        }
        for setting in &self.settings {
            config = config.with_setting(setting)?;
        }
        config.training.num_steps = self.steps.unwrap_or(config.training.num_steps);
        config.seed = self.seed.unwrap_or(config.seed);
        let read = &mut config.data.read;
        if !self.columns.is_empty() {
            read.columns = self.columns.clone();
        }
        self.file.put_into(read);
        if self.drop_missing {
            read.missing = Missing::Drop;
        }
        for Dequantise { column, step } in self.dequantise.iter().flat_map(|Steps(steps)| steps) {
            config.data.dequantise.insert(column.clone(), *step);
        }
        for (column, kind) in self.kinds.iter().flat_map(|Kinds(kinds)| kinds) {
            config.data.kinds.insert(column.clone(), *kind);
        }
        let said = [&mut config.data.given, &mut config.data.target].into_iter();
        for (to, from) in said.zip([&self.given, &self.target]).filter(|(_, from)| !from.is_empty())
        {
            to.clone_from(from);
        }
        config.data.weight = self.weight.clone().or(config.data.weight);
        config.settle_kinds();
        Ok(config)
    }
}
