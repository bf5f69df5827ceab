//! What a fit takes where nothing is said: networks, steps and validations for a table of some size.

use zhat::ar::{
    Activation, ArEbmConfig, ArStepConfig, Conditioner, EnergyForm, HeadForm, NetworkSize,
    Normalisation, ScaleForm,
};
use zhat::criterion::Method;

use super::config::FitConfig;
use crate::data::Marginals;

/// How often training sees every row, where nothing else is said.
const EPOCHS: f64 = 80.0;
/// Rows that are seen more often than this are learnt by heart without dropout.
const OFTEN: f64 = 35.0;
/// Rows out of all of training for which a mixture keeps room though it has seen nothing like them: by Good and Turing's rule a new row
/// is unlike all others about as often as there were such rows before, and a few there always are.
const OUTLIERS: f64 = 3.0;
/// Share of the steps so far whose parameters are averaged.
const AVERAGING: f64 = 0.1;
/// With twice as many rows as this a conditioner sees one wave of every number, and with each doubling one more: what changes
/// quickly can only be told from chance where there are many rows.
const ROWS_OF_NO_WAVES: f64 = 8_000.0;
/// And no more than these.
const MOST_WAVES: f64 = 6.0;
/// Epochs from one validation to the next at the most.
const EPOCHS_UNVALIDATED: f64 = 2.0;

impl FitConfig {
    /// The default for a table of some size, in as many steps as that asks for, or as there are.
    ///
    /// The density is a masked autoregressive base, which below 1,000 rows an energy tilts: with more rows the steps that a tilt
    /// costs are worth more than what it gains. Each factor is normalised. What is right for a few rows
    /// differs from what is right for millions: below 1,000 rows a stack of Gaussian mixtures is hard to beat, and the networks
    /// only correct it; above, they grow with the rows. Rows that are seen often are learnt by heart without dropout.
    pub fn for_table(source: &str, rows: usize, columns: usize, num_steps: Option<u64>) -> Self {
        let mut config = Self::new(source);
        let few = rows < config.validation.cross_validate_below;
        let (width, batch_size) = match rows {
            _ if few => (64, 64),
            ..5_000 => (128, 128),
            _ => (256, 256),
        };
        let per_epoch = rows as f64 / batch_size as f64;
        // A few columns are learnt in half the time.
        let epochs = if columns < 5 { EPOCHS / 2.0 } else { EPOCHS };
        let steps = if few { 400 } else { (epochs * per_epoch).clamp(2_000.0, 20_000.0) as u64 };
        let steps = num_steps.unwrap_or(steps);
        let often = few || steps as f64 / per_epoch > OFTEN;
        config.model = ArEbmConfig {
            conditioner: Conditioner::Masked,
            energy_form: EnergyForm::Tilted,
            normalisation: Normalisation::Local,
            head: HeadForm::Mixture,
            scales: ScaleForm::Exponential,
            gaussian_mixture: few,
            proposal: NetworkSize {
                blocks: 2,
                // Every feature but the last needs a unit of its own degree.
                width: width.max(columns.next_multiple_of(16)),
                activation: Activation::Relu,
            },
            energy: NetworkSize { blocks: 1, width: 32, activation: Activation::Elu },
            dropout: if often { 0.3 } else { 0.0 },
            energy_dropout: Some(0.0),
            context: 32,
            waves: (rows as f64 / ROWS_OF_NO_WAVES).log2().clamp(0.0, MOST_WAVES) as usize,
            outlier_share: if few { 0.0 } else { OUTLIERS / rows as f64 },
            ..ArEbmConfig::new(0)
        };
        config.data.marginals = Marginals::Auto;
        config.data.find_kinds = true;
        let criterion = if few { Method::Rnce } else { Method::QOnly };
        config.step = ArStepConfig { num_negatives: 10, ..ArStepConfig::new(criterion) };
        config.training.averaging = AVERAGING;
        config.training.batch_size = batch_size;
        config.training.learning_rate = if few { 1e-3 } else { 3e-3 };
        config.training.num_steps = steps;
        // Half of the run: most is gained at its end, when the learning rate falls.
        config.training.patience = if few { 10 } else { 20 };
        config.step.warm_up = (steps / 30).min(100);
        let validations = if few { 20 } else { 40 };
        config.training.checkpoint_every = (steps / validations).max(1);
        config.training.validation_every = config.training.checkpoint_every;
        config.validate_often(rows);
        config
    }

    /// Looks at the model at least every other epoch, so that its best moment is not missed, and is as patient as before.
    fn validate_often(&mut self, rows: usize) {
        self.validate_every(self.training.validation_every.min(self.often(rows)));
    }

    /// The most steps from one validation to the next with which the best moment is not missed.
    pub(super) fn often(&self, rows: usize) -> u64 {
        (EPOCHS_UNVALIDATED * rows as f64 / self.training.batch_size as f64).ceil().max(1.0) as u64
    }

    /// Validates after so many steps, and waits as many steps as before for a better validation.
    pub(super) fn validate_every(&mut self, steps: u64) {
        let training = &mut self.training;
        let patience = u64::from(training.patience) * training.validation_every;
        training.patience = patience.div_ceil(steps) as u32;
        training.validation_every = steps;
    }

    /// Takes another number of steps; the warm-up and the time before the learning rate falls keep their shares, and there
    /// are as many validations and checkpoints.
    pub fn scale_to(&mut self, num_steps: u64) {
        let share = num_steps as f64 / self.training.num_steps as f64;
        let scaled = |steps: u64| (share * steps as f64) as u64;
        self.step.warm_up = scaled(self.step.warm_up);
        let training = &mut self.training;
        training.hold = scaled(training.hold);
        training.validation_every = scaled(training.validation_every).max(1);
        training.checkpoint_every = scaled(training.checkpoint_every).max(1);
        training.num_steps = num_steps;
    }
}
