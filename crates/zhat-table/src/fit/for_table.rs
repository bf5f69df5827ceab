//! What a fit takes where nothing is said: networks, steps and validations for a table of some size.

use zhat::ar::{
    Activation, ArEbmConfig, ArStepConfig, Conditioner, EnergyForm, HeadForm, NetworkSize,
    Normalisation, ScaleForm,
};
use zhat::criterion::Method;

use super::config::FitConfig;
use super::start::Start;
use crate::data::Marginals;
use crate::features::FEW_COLUMNS;

/// How often all members together see every row, where nothing else is said.
const EPOCHS: f64 = 200.0;
/// And in how many steps of a network at the least and at the most.
const NETWORK_STEPS: [f64; 2] = [6_000.0, 20_000.0];
/// How often one member sees every row before another is worth more than that it goes on, up to so many rows. Of more rows there is
/// more to learn each time.
const EPOCHS_OF_MEMBER: f64 = 50.0;
/// The same where columns are given: of the others there is less to learn.
const EPOCHS_WITH_GIVEN: f64 = 40.0;
const ROWS_OF_MEMBER: f64 = 20_000.0;
/// And in so many steps at the least: a few rows are seen often long before a network has learnt what is between many columns.
const STEPS_OF_MEMBER: f64 = 2_500.0;
/// More members gain little: the mean of four has nearly all of what that of many has.
const MOST_MEMBERS: f64 = 8.0;
/// Rows that are seen more often than this are learnt by heart without dropout.
const OFTEN: f64 = 35.0;
/// With so many rows or more there is more to learn than a network can in the time that there is, and none is dropped.
const MANY: f64 = 25_000.0;
/// From so many rows on networks of many columns say all that mixtures do.
const NETWORKS_ALONE: usize = 20_000;
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
/// With more rows than this a head has more components than the usual ten, as the root of the rows, up to so many: they take time, and it takes
/// rows to tell them apart.
const ROWS_OF_USUAL_HEAD: f64 = 50_000.0;
const MOST_COMPONENTS: f64 = 30.0;
/// Rows that a base is validated by at most, where there are many: a second scores more of them than that.
const VALIDATED_ROWS: usize = 10_000;
/// Components of a head where columns are few: each factor has much of the shape then, and as many modes as it takes to cross it.
const COMPONENTS_OF_FEW: usize = 40;
/// And of so many rows at the least: in the steps of fewer, the shares of so many components do not come to rest.
const ROWS_OF_MANY_COMPONENTS: usize = 10_000;
/// Units of a layer where columns are few, at most: a factor depends on little.
const WIDTH_OF_FEW: usize = 128;
/// Negatives that stand for all in the gradient of an energy, where one is trained on many rows: a step takes little more than half the
/// time so, and time is worth more than what they cost in noise. With few rows it is the other way round.
const DRAWN: usize = 3;
/// Epochs from one validation to the next at the most.
const EPOCHS_UNVALIDATED: f64 = 2.0;

/// How long a fit is to be, as far as that is known when its model is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// As long as the table asks for.
    Usual,
    /// So many steps.
    Steps(u64),
    /// As long as so many steps of one network take, to be divided among the members.
    Work(u64),
}

impl From<Option<u64>> for Length {
    fn from(steps: Option<u64>) -> Self {
        steps.map_or(Self::Usual, Self::Steps)
    }
}

/// The columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// How many there are.
    pub all: usize,
    /// And how many of them are given: nothing is learnt about these.
    pub given: usize,
}

impl From<usize> for Columns {
    fn from(all: usize) -> Self {
        Self { all, given: 0 }
    }
}

impl Columns {
    /// As many whole rows tell as much: a row has one cell to learn from for each column that is modelled.
    fn whole_rows(self, rows: usize) -> f64 {
        rows as f64 * (self.all - self.given) as f64 / self.all.max(1) as f64
    }
}

impl FitConfig {
    /// The default for a table of some size, in as many steps as that asks for, or as there are.
    ///
    /// The density is a masked autoregressive base, which below 1,000 rows an energy tilts: with more rows the steps that a tilt
    /// costs are worth more than what it gains. Each factor is normalised. What is right for a few rows
    /// differs from what is right for millions: below 1,000 rows a stack of Gaussian mixtures is hard to beat, and the networks
    /// only correct it; above, they grow with the rows, and there are as many of them as there is time to train: once a network has
    /// seen every row often, the mean with another is better than more steps. Rows that are seen often are learnt by heart without dropout,
    /// and so is a single column given many others, of however many rows.
    pub fn for_table(
        source: &str,
        rows: usize,
        columns: impl Into<Columns>,
        length: impl Into<Length>,
    ) -> Self {
        let mut config = Self::new(source);
        let columns: Columns = columns.into();
        let epochs_of_member = match columns.given {
            0 => EPOCHS_OF_MEMBER,
            _ => EPOCHS_WITH_GIVEN,
        };
        let (whole_rows, columns) = (columns.whole_rows(rows), columns.all);
        let few = rows < config.validation.cross_validate_below;
        let (width, batch_size) = match rows {
            _ if few => (64, 64),
            ..5_000 => (128, 128),
            _ => (256, 256),
        };
        let per_epoch = rows as f64 / batch_size as f64;
        let usual = ArEbmConfig::new(0).mixture_components as f64;
        let head = usual * (rows as f64 / ROWS_OF_USUAL_HEAD).sqrt();
        let usual_head = head.clamp(usual, MOST_COMPONENTS) as usize;
        // A few columns are learnt in a fifth of the time.
        let (share, width, mixture_components) = match columns < FEW_COLUMNS {
            true if few => (0.2, width, usual_head),
            true if rows < ROWS_OF_MANY_COMPONENTS => (0.2, width.min(WIDTH_OF_FEW), usual_head),
            true => (0.2, width.min(WIDTH_OF_FEW), COMPONENTS_OF_FEW),
            false => (1.0, width, usual_head),
        };
        let [least, most] = NETWORK_STEPS;
        let usual = (share * EPOCHS * per_epoch).clamp(share * least, most);
        let members_of = |work: f64| match few {
            true => 1,
            false => {
                let epochs = epochs_of_member * (whole_rows / ROWS_OF_MEMBER).max(1.0);
                let enough = (epochs * per_epoch).max(STEPS_OF_MEMBER);
                (work / enough).round().clamp(1.0, MOST_MEMBERS) as u64
            }
        };
        let (members, steps) = match length.into() {
            Length::Usual if few => (1, 400),
            Length::Usual => (members_of(usual), usual as u64 / members_of(usual)),
            Length::Steps(steps) => (members_of(usual), steps),
            Length::Work(work) => (members_of(work as f64), work / members_of(work as f64)),
        };
        let often = steps as f64 / per_epoch > OFTEN;
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
            members: members as usize,
            energy: NetworkSize { blocks: 1, width: 32, activation: Activation::Elu },
            dropout: match often {
                _ if few => 0.3,
                true if whole_rows < MANY => 0.1,
                _ => 0.0,
            },
            energy_dropout: Some(0.0),
            context: 32,
            mixture_components,
            waves: (rows as f64 / ROWS_OF_NO_WAVES).log2().clamp(0.0, MOST_WAVES) as usize,
            outlier_share: if few { 0.0 } else { OUTLIERS / rows as f64 },
            ..ArEbmConfig::new(0)
        };
        // Of few rows mixtures know what is straight.
        config.start = if few { Start::Standard } else { Start::Lines };
        config.validation.stack_mixtures = !few && (columns < FEW_COLUMNS || rows < NETWORKS_ALONE);
        config.data.marginals = Marginals::Auto;
        config.data.find_kinds = true;
        let criterion = if few { Method::Rnce } else { Method::QOnly };
        config.step = ArStepConfig {
            num_negatives: 10,
            num_drawn: if few { 0 } else { DRAWN },
            ..ArStepConfig::new(criterion)
        };
        config.validation.recalibrate = true;
        if !few {
            config.validation.rows = VALIDATED_ROWS;
        }
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

    /// Steps of all networks.
    pub fn work(&self) -> u64 {
        self.training.num_steps * self.model.members as u64
    }

    /// Takes another model, and so many steps that there is as much work as before.
    pub fn take(&mut self, model: ArEbmConfig) {
        let steps = (self.work() / model.members as u64).max(1);
        self.model = model;
        self.scale_to(steps);
    }

    /// Takes another number of steps; the warm-up and the time before the learning rate falls keep their shares, and there
    /// are as many validations and checkpoints.
    pub fn scale_to(&mut self, num_steps: u64) {
        let before = u128::from(self.training.num_steps.max(1));
        let scaled = |steps: u64| (u128::from(steps) * u128::from(num_steps) / before) as u64;
        self.step.warm_up = scaled(self.step.warm_up);
        let training = &mut self.training;
        training.hold = scaled(training.hold);
        training.validation_every = scaled(training.validation_every).max(1);
        training.checkpoint_every = scaled(training.checkpoint_every).max(1);
        training.num_steps = num_steps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_fill_the_time_and_each_has_enough_of_it() {
        let fit = |rows, length| FitConfig::for_table("t.csv", rows, 10, length);
        assert_eq!(fit(500, Length::Work(1_000_000)).model.members, 1);
        assert_eq!(fit(17_000, Length::Work(100)).model.members, 1);
        let mut before = 1;
        for work in [3_000, 10_000, 13_500, 30_000, 1_000_000] {
            let config = fit(17_000, Length::Work(work));
            assert!(config.model.members >= before);
            before = config.model.members;
            assert!(work - config.work() < before as u64, "{work}: {}", config.work());
        }
        assert_eq!(before, MOST_MEMBERS as usize);
        // Of a million rows there is enough to learn for one.
        assert_eq!(fit(1_000_000, Length::Work(100_000)).model.members, 1);
    }

    #[test]
    fn one_column_given_many_is_learnt_by_heart_sooner_than_all_of_them() {
        let fit = |given| {
            let columns = Columns { all: 10, given };
            FitConfig::for_table("t.csv", 40_000, columns, Length::Work(17_000)).model
        };
        let (all, one) = (fit(0), fit(9));
        assert_eq!((all.members, all.dropout), (1, 0.0));
        assert_eq!((one.members, one.dropout), (3, 0.1));
    }

    #[test]
    fn another_member_begins_when_there_is_half_the_time_for_it() {
        // 67 steps of 256 rows see 17,000 rows once.
        let members = |epochs: u64| {
            FitConfig::for_table("t.csv", 17_000, 10, Length::Work(epochs * 67)).model.members
        };
        assert_eq!([60, 85, 110, 140].map(members), [1, 2, 2, 3]);
    }

    #[test]
    fn a_member_of_few_rows_has_steps_enough_to_learn() {
        // 12 steps of 128 rows see 1,500 rows once: 50 epochs are 600 steps.
        let fit = |work| {
            let config = FitConfig::for_table("t.csv", 1_500, 47, Length::Work(work));
            (config.model.members, config.training.num_steps)
        };
        assert_eq!([fit(1_000), fit(5_000), fit(10_000)], [(1, 1_000), (2, 2_500), (4, 2_500)]);
    }

    #[test]
    fn heads_of_a_few_columns_have_many_components_and_narrow_networks() {
        let of = |rows, columns| {
            let model = FitConfig::for_table("t.csv", rows, columns, Length::Usual).model;
            (model.mixture_components, model.proposal.width)
        };
        assert_eq!(of(16_000, 2), (COMPONENTS_OF_FEW, WIDTH_OF_FEW));
        assert_eq!(
            [of(16_000, FEW_COLUMNS), of(9_000, 2), of(2_000, 9), of(500, 2)],
            [(10, 256), (10, 128), (10, 128), (10, 64)]
        );
    }

    #[test]
    fn heads_have_more_components_where_many_rows_tell_them_apart() {
        let of =
            |rows| FitConfig::for_table("t.csv", rows, 6, Length::Usual).model.mixture_components;
        assert_eq!([20_000, 50_000, 200_000, 1_660_000].map(of), [10, 10, 20, 30]);
    }

    #[test]
    fn an_energy_of_many_rows_goes_back_through_some_of_its_negatives() {
        let of = |rows| FitConfig::for_table("t.csv", rows, 6, Length::Usual).step.num_drawn;
        assert_eq!([500, 1_000, 100_000].map(of), [0, DRAWN, DRAWN]);
    }

    #[test]
    fn a_share_of_the_steps_is_kept_to_the_step() {
        let config = FitConfig::new("t.csv");
        let all = config.training.num_steps;
        // In floating point it would be 3.9999 now and then, and so 3.
        for steps in 1..20_000 {
            let mut config = config.clone();
            config.step.warm_up = all / 4;
            config.scale_to(steps);
            assert_eq!(config.step.warm_up, steps / 4, "{steps}");
        }
    }

    #[test]
    fn columns_of_many_rows_start_on_lines() {
        let of = |rows| FitConfig::for_table("t.csv", rows, 6, Length::Usual).start;
        assert_eq!([900, 1_000].map(of), [Start::Standard, Start::Lines]);
    }

    #[test]
    fn another_model_has_as_much_work() {
        let mut config = FitConfig::for_table("t.csv", 17_000, 10, Length::Usual);
        let work = config.work();
        assert!(config.model.members > 1);
        config.take(ArEbmConfig { members: 1, ..config.model.clone() });
        assert_eq!((config.training.num_steps, config.work()), (work, work));
    }
}
