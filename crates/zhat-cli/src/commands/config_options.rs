//! What the commands that fit have in common: which data, and settings from a preset, a file and the command line.

use std::path::PathBuf;

use zhat_table::fit::FitConfig;

use super::preset::PresetName;
use super::table_options::FileOptions;

/// The data and the settings.
#[derive(clap::Args)]
pub struct ConfigOptions {
    /// A file (CSV, NPY, Parquet; compressed too), builtin:NAME, or a directory of `zhat data prepare`
    #[arg(default_value = "builtin:pinwheel")]
    data: String,
    /// Networks and training settings to start from
    #[arg(long, value_enum, default_value = "small")]
    preset: PresetName,
    /// A TOML file with settings on top of the preset
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One more setting, such as training.batch=64; may be given several times
    #[arg(long = "set", value_name = "SECTION.NAME=VALUE")]
    settings: Vec<String>,
    /// Columns to use, by name or position
    #[arg(long, value_delimiter = ',')]
    columns: Vec<String>,
    #[command(flatten)]
    file: FileOptions,
    /// Leave out rows with missing cells
    #[arg(long)]
    drop_missing: bool,
    /// Add uniform noise of this step to a discrete column
    #[arg(long, value_name = "COLUMN=STEP")]
    dequantise: Vec<String>,
}

impl ConfigOptions {
    /// The preset, then the file, then single settings, then the options of their own.
    ///
    /// With another number of steps the warm-up keeps its share of the run, unless it is set itself.
    pub fn configuration(&self, steps: Option<u64>) -> anyhow::Result<FitConfig> {
        let mut config = FitConfig::preset(self.preset.preset(), &self.data);
        if let Some(path) = &self.config {
            config = config.with_file(path)?;
            config.data.source = self.data.clone();
        }
        if let Some(steps) = steps {
            config.training.scale_to(steps);
        }
        for setting in &self.settings {
            config = config.with_setting(setting)?;
        }
        config.training.steps = steps.unwrap_or(config.training.steps);
        if !self.columns.is_empty() {
            config.data.columns = self.columns.clone();
        }
        self.file.put_into(&mut config.data);
        config.data.drop_missing |= self.drop_missing;
        for assignment in &self.dequantise {
            config = config.with_dequantise(assignment)?;
        }
        Ok(config)
    }
}
