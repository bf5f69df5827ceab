//! From a configuration to numbers: the data read, checked, split and standardised.

use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::path::Path;

use zhat::rng::Streams;
use zhat::watch::Watch;

use crate::data::benchmark::PreparedSet;
use crate::data::stored::{RowFile, StoredTable};
use crate::data::{
    ColumnKind, Discrete, Error as DataError, Frame, Kind, Loaded, Source, Standardiser, Table,
    Warning, listing, nearest,
};
use crate::error::{Result, TableError};
use crate::features::standardiser_of;
use crate::fit::{DataConfig, FitConfig};
use crate::fitted::log_densities;

/// With fewer validation rows the difference of two models is drowned by their noise.
const ENOUGH_FOR_VALIDATION: usize = 30;

/// The data of a fit as features: standardised and, if so wanted, mapped to normal scores; row after row.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Names of the columns, those that are given first.
    pub columns: Vec<String>,
    /// How many of them are given.
    pub given: usize,
    /// Training part, or a sample of it where it is in a file.
    pub train: Vec<f32>,
    /// All of it, where it is in a file: rows as they were read.
    pub train_file: Option<RowFile>,
    /// Validation part.
    pub validation: Vec<f32>,
    /// Test part.
    pub test: Vec<f32>,
    /// Rows of the three parts.
    pub rows: [usize; 3],
    /// What each row of the three parts counts, where a column says it.
    pub weights: Option<[Vec<f64>; 3]>,
    /// How the columns became features, with the training part's statistics.
    pub standardiser: Standardiser,
    /// Hash of the rows as they were read.
    pub hash: String,
    /// Log-density of every test row under the truth, for a built-in set.
    pub truth_of_test: Option<Vec<f64>>,
    /// Which rows of the table the test part is; empty where each seed draws a table of its own.
    pub test_rows: Vec<usize>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The columns that noise was added to, as they were before.
    pub discrete: BTreeMap<String, Discrete>,
    /// Training and test part in the units of the data before noise was added; none where it was not.
    pub before_noise: Option<[Vec<f32>; 2]>,
    /// What the columns are, those that are no part of the model included; empty where it was not asked, or all are any numbers.
    pub kinds: Vec<ColumnKind>,
}

impl Prepared {
    /// Rows of a part in the units of the data.
    pub fn in_units(&self, part: &[f32]) -> Vec<f32> {
        let mut rows = part.to_vec();
        self.standardiser.invert(&mut rows);
        rows
    }

    /// Columns that are numbers, and not classes.
    pub(crate) fn num_numbers(&self) -> usize {
        let classes = self.standardiser.shapes.iter().filter(|shape| shape.is_classes()).count();
        self.columns.len() - classes
    }

    /// What the density is of, where columns are given.
    pub(crate) fn given_in_words(&self) -> Option<String> {
        let (given, modelled) = self.columns.split_at(self.given);
        let sentence = || {
            format!("The density is that of {} given {}.", modelled.join(", "), given.join(", "))
        };
        (self.given > 0).then(sentence)
    }

    /// Whether a cell of the training part is missing.
    pub fn has_holes(&self) -> bool {
        self.train.iter().any(|value| value.is_nan())
    }

    /// With a word about a validation part that says nothing.
    fn with_notes_for(mut self, config: &FitConfig) -> Self {
        let rows = self.rows[1];
        if (1..ENOUGH_FOR_VALIDATION).contains(&rows) && !config.is_cross_validated(&self) {
            let few = Warning::FewValidationRows { rows, least: ENOUGH_FOR_VALIDATION };
            self.notes.push(few.to_string());
        }
        self
    }

    /// The training part as it was read: in the units of the data, and without the noise of discrete columns.
    pub fn train_as_read(&self) -> Vec<f32> {
        match &self.before_noise {
            Some([train, _]) => train.clone(),
            None => self.in_units(&self.train),
        }
    }

    /// The test part as it was read: in the units of the data, and without the noise of discrete columns.
    pub fn test_as_read(&self) -> Vec<f32> {
        match &self.before_noise {
            Some([_, test]) => test.clone(),
            None => self.in_units(&self.test),
        }
    }
}

/// Reads and prepares the data of a configuration; the same configuration gives the same numbers.
pub fn prepare(config: &FitConfig) -> Result<Prepared> {
    prepare_watched(config, &Watch::default())
}

/// The same, unless it is told to stop.
pub fn prepare_watched(config: &FitConfig, watch: &Watch) -> Result<Prepared> {
    let (data, streams) = (&config.data, Streams::new(config.seed));
    if PreparedSet::is_at(Path::new(&data.source)) {
        return prepared_set(data);
    }
    if StoredTable::is_at(Path::new(&data.source)) {
        let stored = StoredTable::open(Path::new(&data.source), &streams)?;
        return Ok(stored_table(data, stored, &streams, watch)?.with_notes_for(config));
    }
    let source = Source::parse(&data.source)?;
    let is_drawn = matches!(source, Source::Builtin(_));
    let mut rng = Streams::new(config.seed).stream("data", 0, 0);
    let loaded = source.load_watched(&data.read, &data.asked(), &mut rng, watch)?;
    prepare_loaded(config, loaded, is_drawn, watch)
}

/// Prepares a table in memory: the same cells give the same numbers as those of a file. `data.source` is its name.
pub fn prepare_frame(config: &FitConfig, frame: &Frame<'_>, watch: &Watch) -> Result<Prepared> {
    let data = &config.data;
    let mut rng = Streams::new(config.seed).stream("data", 0, 0);
    let loaded = Loaded::of_frame(frame, &data.read, &data.asked(), &mut rng, watch)?;
    prepare_loaded(config, loaded, false, watch)
}

/// Splits and standardises a table.
fn prepare_loaded(
    config: &FitConfig,
    mut loaded: Loaded,
    is_drawn: bool,
    watch: &Watch,
) -> Result<Prepared> {
    let (data, streams) = (&config.data, Streams::new(config.seed));
    let (order, given) = given_first(data, &loaded.table)?;
    let is_given =
        |column: &str| order[..given].iter().any(|&index| loaded.table.columns()[index] == column);
    // What is given has no density that could diverge.
    let warnings =
        loaded.warnings.iter().filter(|warning| !warning.of_density().is_some_and(is_given));
    let mut notes: Vec<String> = warnings.map(ToString::to_string).collect();
    let hash = loaded.hash();
    let mut split = streams.stream("split", 0, 0);
    let rows = match &loaded.weights {
        Some(weights) => data.split.weighted(weights, &mut split)?,
        None => data.split.indices(loaded.table.rows(), &mut split)?,
    };
    let weights = loaded.weights.as_ref().map(|weights| {
        let of = |rows: &[usize]| rows.iter().map(|&row| weights[row]).collect();
        [&rows.train, &rows.validation, &rows.test].map(|rows| of(rows))
    });
    if let Some(column) = &data.weight {
        notes.push(format!(
            "rows count by column {column}, which is not modelled; pictures of the report show every row once"
        ));
    }
    loaded.settle_levels(&rows.train);
    let truth = loaded.truth.take().filter(|_| !rows.test.is_empty());
    let truth_of_test = truth.and_then(|truth| {
        let test = loaded.table.select_rows(&rows.test);
        log_densities(&*truth, test.values(), &order[..given])
    });
    if loaded.kinds.is_empty() && given > 0 {
        // Files without names are known by how the columns of the fit stood, which is not how those of the model stand.
        let plain = |name: &String| ColumnKind::new(name, Kind::Continuous);
        loaded.kinds = loaded.table.columns().iter().map(plain).collect();
    }
    loaded.reorder(&order);
    let Loaded { table, discrete, before_noise, mut kinds, .. } = loaded;
    let columns = table.columns().to_vec();
    let [train, validation, test] = table.into_parts([&rows.train, &rows.validation, &rows.test]);
    let before_noise = before_noise
        .as_ref()
        .map(|table| [&rows.train, &rows.test].map(|rows| table.select_rows(rows).into_values()));
    let test_rows = if is_drawn { Vec::new() } else { rows.test };
    let shared = shared_rows(&train, &test);
    // Of cells alone rows come twice by chance.
    let are_counted = !kinds.is_empty()
        && kinds.iter().filter(|kind| kind.is_modelled()).all(ColumnKind::is_counted);
    if shared > 0 && !is_drawn && !are_counted {
        notes.push(Warning::SharedRows { shared, of: test.rows() }.to_string());
    }
    let parts = [&train, &validation];
    let standardiser = standardiser_of(data, parts, &kinds, &streams, watch)?;
    let numbers = [&train, &validation, &test].map(|part| part.rows());
    for name in &columns[..given] {
        if let Some(kind) = kinds.iter_mut().find(|kind| kind.name == *name) {
            let already = if kind.note.is_empty() { "" } else { "; " };
            kind.note = format!("given{already}{}", kind.note);
        }
    }
    let [train, validation, test] =
        [train, validation, test].map(|part| standardised(&standardiser, part));
    let prepared = Prepared {
        columns,
        given,
        rows: numbers,
        weights,
        train,
        train_file: None,
        validation,
        test,
        hash,
        truth_of_test,
        test_rows,
        notes,
        standardiser,
        discrete,
        before_noise,
        kinds,
    };
    Ok(prepared.with_notes_for(config))
}

/// The order of a table's columns in which those that are given come first, and how many they are.
fn given_first(data: &DataConfig, table: &Table) -> Result<(Vec<usize>, usize)> {
    let names = table.columns();
    let place = |name: &String| {
        let found = names.iter().position(|known| known == name);
        found.ok_or_else(|| {
            DataError::UnknownColumn {
                file: data.source.clone(),
                name: name.clone(),
                nearest: nearest(name, names.iter().map(String::as_str)),
                available: listing(names.iter().map(String::as_str)),
            }
            .into()
        })
    };
    let said = if data.target.is_empty() { &data.given } else { &data.target };
    let said = said.iter().map(place).collect::<Result<Vec<usize>>>()?;
    let others: Vec<usize> = (0..names.len()).filter(|column| !said.contains(column)).collect();
    let (mut given, modelled) =
        if data.target.is_empty() { (said, others) } else { (others, said) };
    let twice =
        |columns: &[usize]| (1..columns.len()).any(|at| columns[..at].contains(&columns[at]));
    if twice(&given) || twice(&modelled) {
        return Err(TableError::config(
            "data.given, data.target: a column stands there twice".into(),
        ));
    }
    if modelled.is_empty() {
        return Err(TableError::config(
            "data.given: all columns are given, and none is left to model".into(),
        ));
    }
    let number = given.len();
    for &column in &given {
        if let Some(row) = table.column(column).position(|cell| cell.is_nan()) {
            return Err(TableError::config(format!(
                "column {} is given, and row {} has no value there: the model says nothing of what is given, and cannot fill it. Leave such \
                 rows out (data.read.missing = drop), or fill them first with a model of all columns",
                names[column],
                row + 1
            )));
        }
    }
    given.extend(modelled);
    Ok((given, number))
}

fn standardised(standardiser: &Standardiser, table: Table) -> Vec<f32> {
    let mut values = table.into_values();
    standardiser.apply(&mut values);
    values
}

/// A directory of `zhat data prepare FILE`: everything but training itself looks at a sample of the training rows.
fn stored_table(
    data: &DataConfig,
    stored: StoredTable,
    streams: &Streams,
    watch: &Watch,
) -> Result<Prepared> {
    refuse_given(data, &[("data.kinds", !data.kinds.is_empty())])?;
    let StoredTable { meta, sample, train, validation, test } = stored;
    let standardiser = standardiser_of(data, [&sample, &validation], &meta.kinds, streams, watch)?;
    let mut notes = meta.notes;
    if train.is_some() {
        let (seen, all) = (sample.rows(), meta.rows[0]);
        notes.push(format!(
            "Training takes all {all} rows from the file; scales, normal scores and the mixtures of the start are those of {seen} of them."
        ));
    }
    let test_rows = (0..test.rows()).collect();
    let [sample, validation, test] =
        [sample, validation, test].map(|part| standardised(&standardiser, part));
    Ok(Prepared {
        standardiser,
        columns: meta.columns,
        given: 0,
        weights: None,
        rows: meta.rows,
        train: sample,
        train_file: train,
        validation,
        test_rows,
        test,
        hash: meta.hash,
        truth_of_test: None,
        notes,
        discrete: BTreeMap::new(),
        before_noise: None,
        kinds: meta.kinds,
    })
}

/// An error for a setting that was decided when the data were prepared.
fn refuse_given(data: &DataConfig, more: &[(&str, bool)]) -> Result<()> {
    let given = [
        ("data.read.columns", !data.read.columns.is_empty()),
        ("data.dequantise", !data.dequantise.is_empty()),
        ("data.read.max-rows", data.read.max_rows.is_some()),
        ("data.given", !data.given.is_empty()),
        ("data.target", !data.target.is_empty()),
        ("data.weight", data.weight.is_some()),
    ];
    if let Some((name, _)) = given.iter().chain(more).find(|(_, given)| *given) {
        let reason = format!("{name} does not go with a set that is prepared already");
        return Err(TableError::config(reason));
    }
    Ok(())
}

/// Test rows that are in the training part too, number for number.
fn shared_rows(train: &Table, test: &Table) -> usize {
    let wanted: HashSet<Bits<'_>> = test.iter_rows().map(Bits).collect();
    let known: HashSet<Bits<'_>> =
        train.iter_rows().map(Bits).filter(|row| wanted.contains(row)).collect();
    test.iter_rows().filter(|row| known.contains(&Bits(row))).count()
}

/// A row that equals those of the same bits, missing cells and all.
struct Bits<'a>(&'a [f32]);

impl Bits<'_> {
    fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|cell| cell.to_bits())
    }
}

impl PartialEq for Bits<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Bits<'_> {}

impl Hash for Bits<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|bits| bits.hash(state));
    }
}

/// A directory of `zhat data prepare`, which is split and standardised already: likelihoods are in standardised units, as
/// those that are published for the benchmark sets, whether the columns are mapped to normal scores or not.
fn prepared_set(data: &DataConfig) -> Result<Prepared> {
    refuse_given(data, &[])?;
    let PreparedSet { meta, split } = PreparedSet::read(Path::new(&data.source))?;
    let standardiser =
        Standardiser::identity(meta.columns.len()).with_marginals(&split.train, data.marginals);
    let test_rows = (0..split.test.rows()).collect();
    let [train, validation, test] = [split.train, split.validation, split.test].map(|part| {
        let mut values = part.into_values();
        standardiser.apply(&mut values);
        values
    });
    Ok(Prepared {
        standardiser,
        columns: meta.columns,
        given: 0,
        weights: None,
        rows: meta.rows,
        train,
        train_file: None,
        validation,
        test_rows,
        test,
        hash: meta.hash,
        truth_of_test: None,
        notes: meta.differences,
        discrete: BTreeMap::new(),
        before_noise: None,
        kinds: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{FrameCells, FrameColumn};

    #[test]
    fn rows_that_train_and_test_share_are_counted_and_few_validation_rows_are_said() {
        let table = |values: &[f32]| Table::new(vec!["a".into(), "b".into()], values.to_vec());
        let train = table(&[1.0, 2.0, 3.0, 4.0, 1.0, 2.0]);
        assert_eq!(shared_rows(&train, &table(&[3.0, 4.0, 3.0, 4.0, 2.0, 1.0])), 2);
        assert_eq!(shared_rows(&train, &table(&[2.0, 2.0])), 0);

        let mut config = FitConfig::new("builtin:pinwheel");
        config.data.read.max_rows = Some(200);
        assert!(prepare(&config).unwrap().notes.is_empty(), "folds look at all rows");
        config.validation.cross_validate_below = 0;
        let notes = prepare(&config).unwrap().notes;
        assert!(notes[0].starts_with("20 validation rows are few"), "{notes:?}");
        config.data.read.max_rows = Some(400);
        assert!(prepare(&config).unwrap().notes.is_empty());
    }

    #[test]
    fn rows_of_cells_alone_may_come_twice() {
        let warns = |values: [fn(usize) -> f64; 2]| {
            let cells = |of: fn(usize) -> f64| FrameCells::Numbers(Box::new(of));
            let columns = ["a", "b"].into_iter().zip(values);
            let columns = columns
                .map(|(name, of)| FrameColumn { name: name.into(), cells: cells(of) })
                .collect();
            let mut config = FitConfig::new("rows");
            config.data.find_kinds = true;
            let notes =
                prepare_frame(&config, &Frame::new("rows", 600, columns), &Watch::default());
            notes.unwrap().notes.iter().any(|note| note.contains("in the training part too"))
        };
        let whole = |row: usize| (row * row % 11) as f64;
        assert!(!warns([whole, |row| (row % 3) as f64]));
        assert!(
            warns([whole, |row| ((row % 50) as f64).sin()]),
            "a copy of a number is one of its row"
        );
    }

    #[test]
    fn a_discrete_column_diverges_unless_it_is_given() {
        let columns = ["a", "b"].map(String::from).to_vec();
        let mut rng = Streams::new(3).stream("test", 0, 0);
        let row = |at: usize| [(at % 31) as f32 * 0.1 + 2.0, rng.normal() as f32];
        let table = Table::new(columns, (0..930).flat_map(row).collect());
        let mut config = FitConfig::new("rows");
        let mut notes = |given: &[&str]| {
            config.data.given = given.iter().map(ToString::to_string).collect();
            let cells = |column: usize| {
                let values: Vec<f32> = table.column(column).collect();
                FrameCells::Numbers(Box::new(move |row| f64::from(values[row])))
            };
            let column =
                |(at, name): (usize, &String)| FrameColumn { name: name.clone(), cells: cells(at) };
            let columns = table.columns().iter().enumerate().map(column).collect();
            let frame = Frame::new("rows", table.rows(), columns);
            prepare_frame(&config, &frame, &Watch::default()).unwrap().notes
        };
        assert!(notes(&[])[0].contains("column a looks discrete"));
        assert_eq!(notes(&["a"]), [""; 0]);
    }
}
