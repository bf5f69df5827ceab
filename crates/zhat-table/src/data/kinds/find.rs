//! Finds out what the columns of a table are.

use std::collections::BTreeMap;

use super::atoms::{atoms, places};
use super::cyclic::cyclic;
use super::form::Form;
use super::levels::levels;
use super::{ColumnKind, Kind, SaidKind};
use crate::data::checks::{Ties, is_counter, is_identifier, is_named_so, ties};
use crate::data::error::{Error, Result};
use crate::data::nearest::{listing, nearest};
use crate::data::table::Table;

/// More cells than this are no help: a number in one of them is as good as any.
const MOST_VALUES: usize = 1024;
/// Numbers above 0 lean on it where the largest is so many times the smallest, or 0 is within so many standard deviations of their mean: a
/// density that does not know of 0 would draw some below it.
const LEANS: f64 = 20.0;
const NEAR_ZERO: f64 = 3.0;
/// Shares that come as near as this to 0 and to 1 lean on both.
const NEAR_BOUND: f64 = 0.05;
/// Text that differs in more than this share of the rows, and in more than so many, names them.
const MOSTLY_DIFFERENT: f64 = 0.5;
const MANY_WORDS: usize = 50;
/// A single word beside more different numbers than this stands for a cell that is missing, or is a mistake.
const NUMBERS_BESIDE_A_WORD: usize = 20;
/// Decimals that are looked for.
const MOST_DECIMALS: usize = 4;

/// A table of the columns that are modelled, and what all of them are.
#[derive(Debug)]
pub(crate) struct Found {
    /// Numbers, and codes of words.
    pub table: Table,
    /// Every column that was read, in their order.
    pub kinds: Vec<ColumnKind>,
    /// The words of the modelled columns that are categorical.
    pub words: Vec<Option<Vec<String>>>,
    /// What each row counts, where a column says it.
    pub weights: Option<Vec<f64>>,
}

impl Found {
    /// A table of numbers of which nothing is to be found out.
    pub fn plain(table: Table) -> Self {
        Self { table, kinds: Vec::new(), words: Vec::new(), weights: None }
    }
}

/// Finds the kinds of a table whose words are codes, places in the lists of words; some are said. Of a table in memory it is known how
/// the numbers of some columns are written.
pub(crate) fn find(
    file: &str,
    mut table: Table,
    words: Vec<Option<Vec<String>>>,
    forms: &[Option<Form>],
    said: &BTreeMap<String, SaidKind>,
) -> Result<Found> {
    for name in said.keys() {
        if !table.columns().contains(name) {
            return Err(Error::UnknownColumn {
                file: file.into(),
                name: name.clone(),
                nearest: nearest(name, table.columns().iter().map(String::as_str)),
                available: listing(table.columns().iter().map(String::as_str)),
            });
        }
    }
    let (mut kinds, mut of_columns) = (Vec::new(), Vec::new());
    for (column, words) in words.into_iter().enumerate() {
        let said = said.get(&table.columns()[column]).copied();
        let form = forms.get(column).cloned().flatten();
        if let (None, Some(words)) = (said, &words) {
            refuse_one_word(file, &table, column, words)?;
        }
        let (kind, words) = one(&mut table, column, words, form, said)?;
        kinds.push(kind);
        of_columns.push(words);
    }
    if !kinds.iter().any(ColumnKind::is_modelled) {
        return Err(Error::NothingToModel { file: file.into(), names: table.columns().join(", ") });
    }
    let modelled: Vec<usize> =
        (0..kinds.len()).filter(|&column| kinds[column].is_modelled()).collect();
    let words = modelled.iter().map(|&column| of_columns[column].take()).collect();
    let table = if modelled.len() == kinds.len() { table } else { table.select_columns(&modelled) };
    Ok(Found { table, kinds, words, weights: None })
}

/// Settles what the levels of categorical columns are, by the rows that a model is trained on; gives the columns with the level of each
/// word, for the table to be recoded.
pub(crate) fn settle_levels(
    table: &Table,
    kinds: &mut [ColumnKind],
    words: &[Option<Vec<String>>],
    train: &[usize],
) -> Vec<(usize, Vec<usize>)> {
    let modelled = kinds.iter_mut().filter(|kind| kind.is_modelled());
    let mut recoded = Vec::new();
    for ((column, kind), words) in modelled.enumerate().zip(words) {
        let Some(words) = words else { continue };
        let (levels, of_word) = levels(words, train.iter().map(|&row| table.row(row)[column]));
        let pooled = of_word.iter().filter(|&&level| level + 1 == levels.len()).count();
        if pooled > 0 {
            let (other, count) = (
                &levels[levels.len() - 1],
                if pooled == 1 { "word counts" } else { "words count" },
            );
            kind.note = format!("{pooled} rare {count} as {other:?}");
        }
        kind.kind = Kind::Categorical { levels };
        recoded.push((column, of_word));
    }
    recoded
}

/// Puts levels in the place of words.
pub(crate) fn recode(table: &mut Table, column: usize, of_word: &[usize]) {
    let dimension = table.dimension();
    for code in table.values_mut().iter_mut().skip(column).step_by(dimension) {
        if !code.is_nan() {
            *code = of_word[*code as usize] as f32;
        }
    }
}

/// The kind of one column, and its words where it is categorical; its values are numbers afterwards, or codes of those words.
fn one(
    table: &mut Table,
    column: usize,
    words: Option<Vec<String>>,
    form: Option<Form>,
    said: Option<SaidKind>,
) -> Result<(ColumnKind, Option<Vec<String>>)> {
    let mut found = ColumnKind::new(&table.columns()[column].clone(), Kind::Continuous);
    found.form = form.unwrap_or_default();
    found.missing = table.column(column).filter(|value| value.is_nan()).count();
    let observed = table.rows() - found.missing;
    let refused = |expected: &str| {
        let told = said.map_or_else(String::new, |said| said.to_string());
        Err(Error::setting("kind", format!("{}={told}", found.name), expected))
    };
    if said == Some(SaidKind::Identifier) {
        found.kind = Kind::Identifier;
        return Ok((found, None));
    }
    if said == Some(SaidKind::Categorical) {
        let words = words.unwrap_or_else(|| words_of_numbers(table, column));
        found.kind = Kind::Categorical { levels: Vec::new() };
        return Ok((found, Some(words)));
    }
    if let Some(words) = words {
        if said.is_none() && is_named_so(&found.name) && words.len() == observed && observed > 1 {
            found.kind = Kind::Identifier;
            found.note = "no two rows share a value: carried, not modelled".into();
            return Ok((found, None));
        }
        let Some(form) = Form::of_words(words.iter().map(String::as_str)) else {
            let distinct = words.len();
            let is_name = distinct == observed && observed > 1 && found.missing == 0
                || distinct > MANY_WORDS && distinct as f64 > MOSTLY_DIFFERENT * observed as f64;
            return match said {
                Some(_) => refused("of a column of numbers, and this one has words"),
                None if is_name => {
                    found.kind = Kind::Identifier;
                    found.note = format!(
                        "{distinct} different words in {observed} rows: carried, not modelled"
                    );
                    Ok((found, None))
                }
                None => {
                    found.kind = Kind::Categorical { levels: Vec::new() };
                    Ok((found, Some(words)))
                }
            };
        };
        let numbers: Vec<f32> = words
            .iter()
            .map(|word| form.number(word).map_or(f32::NAN, |number| number as f32))
            .collect();
        let dimension = table.dimension();
        for value in table.values_mut().iter_mut().skip(column).step_by(dimension) {
            if !value.is_nan() {
                *value = numbers[*value as usize];
            }
        }
        found.form = if form.is_bare() { Form::Plain } else { form };
    }
    let values = table.known_cells(column);
    if values.is_empty() {
        found.kind = Kind::Identifier;
        found.note = "every cell is missing: not modelled".into();
        return Ok((found, None));
    }
    let ends_without = |atoms: &[f32]| {
        let mut ends = [f32::INFINITY, f32::NEG_INFINITY];
        for &value in values.iter().filter(|value| !atoms.contains(value)) {
            ends = [ends[0].min(value), ends[1].max(value)];
        }
        ends.map(f64::from)
    };
    found.range = Some(ends_without(&[]));
    // What comes again and again stands for itself, and says nothing of the kind of the others.
    let asked = matches!(said, None | Some(SaidKind::Positive | SaidKind::Bounded(..)));
    let atoms = if asked { atoms(&values) } else { Vec::new() };
    let [low, high] = ends_without(&atoms);
    let with_atoms = |mut found: ColumnKind| {
        if !atoms.is_empty() {
            let share = |atom: f32| {
                let number = values.iter().filter(|value| **value == atom).count();
                let percent = 100.0 * number as f64 / values.len() as f64;
                format!("{percent:.0} % are {}", found.form.text(f64::from(atom)))
            };
            let shares: Vec<String> = atoms.iter().map(|&atom| share(atom)).collect();
            found.note = format!("{}: a probability there, a density elsewhere", shares.join(", "));
            found.atoms = places(&atoms, &found.kind.shape(), [low, high]);
        }
        (found, None)
    };
    if found.form == Form::Plain {
        found.form = decimals(&values).map_or(Form::Plain, |decimals| Form::Decimals { decimals });
    }
    match said {
        None => {}
        Some(SaidKind::Cyclic(said)) => {
            let period = match said.of_numbers(&found.form) {
                Ok(period) => period,
                Err(expected) => return refused(&expected),
            };
            found.kind = cyclic(&values, period, is_measure(&found.form));
            (found.cycle, found.note) = (Some(period), format!("comes round every {said}"));
            return Ok((found, None));
        }
        Some(SaidKind::Positive) if low <= 0.0 => {
            return refused(&format!("of a column above 0, and {} is in it", found.form.text(low)));
        }
        Some(SaidKind::Bounded(least, most)) if low <= least || high >= most => {
            let range = format!("{} to {}", found.form.text(low), found.form.text(high));
            return refused(&format!(
                "of a column that stays within its bounds, and this one goes from {range}"
            ));
        }
        Some(SaidKind::Integer) => {
            let Some(values) = discrete(&values, true) else {
                return refused(&format!("of a column of at most {MOST_VALUES} different values"));
            };
            found.kind = Kind::Integer { values };
            return Ok((found, None));
        }
        Some(said) => {
            found.kind = match said {
                SaidKind::Positive => Kind::Positive,
                SaidKind::Bounded(low, high) => Kind::Bounded { low, high },
                _ => Kind::Continuous,
            };
            return Ok(with_atoms(found));
        }
    }
    let is_number = matches!(found.form, Form::Plain | Form::Decimals { .. });
    let counts = is_counter(table.column(column));
    let names = is_named_so(&found.name) && is_identifier(&found.name, table.column(column));
    if is_number && (counts || names) {
        found.kind = Kind::Identifier;
        found.note = match counts {
            true => "counts the rows: carried, not modelled".into(),
            false => "no two rows share a value: carried, not modelled".into(),
        };
        return Ok((found, None));
    }
    let [least, most] = found.range.unwrap_or([low, high]);
    let is_bit =
        is_number && least == 0.0 && most == 1.0 && values.iter().all(|x| x.fract() == 0.0);
    if is_bit {
        found.kind = Kind::Categorical { levels: Vec::new() };
        found.range = None;
        return Ok((found, Some(words_of_numbers(table, column))));
    }
    if let Some(values) = discrete(&values, false).filter(|_| least < most) {
        found.kind = Kind::Integer { values };
        return Ok((found, None));
    }
    found.kind = if found.form.is_percent() && low > 0.0 && high < 100.0 {
        Kind::Bounded { low: 0.0, high: 100.0 }
    } else if low > 0.0 && high < 1.0 && low < NEAR_BOUND && high > 1.0 - NEAR_BOUND {
        Kind::Bounded { low: 0.0, high: 1.0 }
    } else if is_measure(&found.form) && low > 0.0 && leans_on_zero(&values, &atoms, [low, high]) {
        Kind::Positive
    } else {
        Kind::Continuous
    };
    Ok(with_atoms(found))
}

/// A column of numbers or dates but for one word is an error: as words it would be a list of levels without order, or the name of a row.
fn refuse_one_word(file: &str, table: &Table, column: usize, words: &[String]) -> Result<()> {
    let name = &table.columns()[column];
    if words.len() <= NUMBERS_BESIDE_A_WORD || is_named_so(name) {
        return Ok(());
    }
    let texts = || words.iter().map(String::as_str);
    let is_odd = |word: &str| Form::of_words(std::iter::once(word)).is_none();
    let mut odd = texts().enumerate().filter(|(_, word)| is_odd(word));
    let (Some((at, word)), None) = (odd.next(), odd.next()) else { return Ok(()) };
    let Some(form) = Form::of_words(texts().filter(|other| *other != word)) else { return Ok(()) };
    Err(Error::OneWord {
        file: file.into(),
        name: name.clone(),
        word: word.into(),
        cells: table.column(column).filter(|&code| code == at as f32).count(),
        others: match form {
            Form::Date | Form::Time { .. } => "dates",
            _ => "numbers",
        },
    })
}

/// Whether numbers above 0 come near it, but for their atoms.
fn leans_on_zero(values: &[f32], atoms: &[f32], [low, high]: [f64; 2]) -> bool {
    let (mut number, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for &value in values.iter().filter(|value| !atoms.contains(value)) {
        // From the lowest, so that nothing is lost where they are far from 0.
        let above = f64::from(value) - low;
        (number, sum, squares) = (number + 1.0, sum + above, squares + above * above);
    }
    let mean = sum / number;
    let deviation = (squares / number - mean * mean).max(0.0).sqrt();
    high > LEANS * low || low + mean < NEAR_ZERO * deviation
}

/// Whether 0 means something: that of a calendar does not.
fn is_measure(form: &Form) -> bool {
    !matches!(form, Form::Date | Form::Time { .. })
}

/// The values that a column has in common with its grid, if they are few: whole numbers, or others where that is said.
///
/// A measurement of a decimal or two comes again and again too, but what is asked of it is a density, in the same units as that of
/// any other model, and not the mass of a cell.
pub(super) fn discrete(values: &[f32], said: bool) -> Option<Vec<f64>> {
    let is_whole = values.iter().all(|value| value.fract() == 0.0);
    if !is_whole && !said {
        return None;
    }
    let mut distinct: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup();
    let (low, high) = (*distinct.first()?, *distinct.last()?);
    let step = match ties(values.iter().copied()) {
        Ties::Discrete { step, .. } => Some(step),
        _ => None,
    };
    let step = step.or((is_whole && (said || high - low < MOST_VALUES as f64)).then_some(1.0));
    let grid = step.map(|step| {
        let number = ((high - low) / step).round() as usize;
        let on_grid = |value: &f64| {
            let steps = (value - low) / step;
            (steps - steps.round()).abs() < 0.05
        };
        (step, number, distinct.iter().all(on_grid))
    });
    match grid {
        Some((step, number, true)) if number < MOST_VALUES => {
            // To the decimals of the step, so that 0.1 times 3 is 0.3.
            let rounded = |value: f64| ((value / step).round() * step * 1e6).round() / 1e6;
            let from_zero = (low / step - (low / step).round()).abs() < 0.05;
            let value = |at: usize| low + at as f64 * step;
            let values = (0..=number).map(value);
            Some(match from_zero && step >= 1e-5 {
                true => values.map(rounded).collect(),
                false => values.collect(),
            })
        }
        _ if (step.is_some() || said) && distinct.len() <= MOST_VALUES => Some(distinct),
        _ => None,
    }
}

/// The fewest decimals that all values have, as far as 32-bit floats can tell.
fn decimals(values: &[f32]) -> Option<usize> {
    (0..=MOST_DECIMALS).find(|&decimals| {
        let scale = 10f64.powi(decimals as i32);
        values.iter().all(|&value| {
            let scaled = f64::from(value) * scale;
            let slack = 1e-3 + scaled.abs() * f64::from(f32::EPSILON);
            slack < 0.25 && (scaled - scaled.round()).abs() <= slack
        })
    })
}

/// The different numbers of a column as words, in the place of which it gets their codes.
fn words_of_numbers(table: &mut Table, column: usize) -> Vec<String> {
    let mut distinct = table.known_cells(column);
    distinct.sort_unstable_by(f32::total_cmp);
    distinct.dedup();
    let dimension = table.dimension();
    for value in table.values_mut().iter_mut().skip(column).step_by(dimension) {
        if !value.is_nan() {
            *value = distinct.partition_point(|other| other < value) as f32;
        }
    }
    distinct.iter().map(|&value| Form::Plain.text(f64::from(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never the same twice, between 0 and 1.
    fn spread(row: usize) -> f32 {
        (row as f32 * 0.618_034 + 0.1).fract()
    }

    fn found(value: impl Fn(usize) -> f32, name: &str) -> ColumnKind {
        let values = (0..300).flat_map(|row| [value(row), spread(row) * 9.0 - 5.0]).collect();
        let table = Table::new(vec![name.into(), "z".into()], values);
        find("t", table, vec![None, None], &[], &BTreeMap::new()).unwrap().kinds.swap_remove(0)
    }

    fn of_words(word: impl Fn(usize) -> String) -> ColumnKind {
        let mut words: Vec<String> = Vec::new();
        let mut code = |row| {
            let word = word(row);
            words.iter().position(|known| *known == word).unwrap_or_else(|| {
                words.push(word);
                words.len() - 1
            }) as f32
        };
        let values: Vec<f32> =
            (0..300).flat_map(|row| [code(row), spread(row) * 9.0 - 5.0]).collect();
        let table = Table::new(vec!["a".into(), "z".into()], values);
        let mut found = find("t", table, vec![Some(words), None], &[], &BTreeMap::new()).unwrap();
        let Found { table, kinds, words, .. } = &mut found;
        settle_levels(table, kinds, words, &(0..200).collect::<Vec<_>>());
        found.kinds.swap_remove(0)
    }

    #[test]
    fn one_word_among_numbers_or_dates_is_refused_and_not_taken_for_a_name() {
        let refused = |name: &str, said: Option<SaidKind>, word: &dyn Fn(usize) -> String| {
            let words: Vec<String> = (0..40).map(word).collect();
            let values = (0..300).flat_map(|row| [(row % 40) as f32, spread(row)]).collect();
            let table = Table::new(vec![name.into(), "z".into()], values);
            let said = said.map(|said| (name.to_owned(), said)).into_iter().collect();
            let found = find("t", table, vec![Some(words), None], &[], &said);
            found.err().map(|error| error.to_string())
        };
        let one = |mark: &'static str| {
            move |row: usize| if row == 3 { mark.into() } else { format!("{}.5", row * row) }
        };
        for mark in ["-", "unknown", "<0.1"] {
            let told = refused("a", None, &one(mark)).expect("an error");
            let expected =
                format!("t, column a: 8 of its cells are {mark:?}, and all others are numbers");
            assert!(told.starts_with(&expected), "{told}");
        }
        let date = |row: usize| match row {
            0 => "never".into(),
            _ => format!("2024-{:02}-{:02}", 1 + row % 12, 1 + row % 28),
        };
        assert!(refused("a", None, &date).unwrap().contains("all others are dates"));
        assert_eq!(refused("a", Some(SaidKind::Categorical), &one("-")), None, "it is said");
        assert_eq!(refused("user_id", None, &one("-")), None, "a name by its name");
        let two = |row: usize| if row < 2 { format!("C{row}") } else { row.to_string() };
        assert_eq!(refused("a", None, &two), None, "words of several kinds are names or levels");
    }

    #[test]
    fn kinds_of_numbers_are_found() {
        assert_eq!(found(|row| spread(row) * 9.0 - 4.0, "a").kind, Kind::Continuous);
        assert_eq!(found(|row| (5.0 * spread(row)).exp(), "a").kind, Kind::Positive);
        let [near, far] = [1.0, 4.0].map(|low| found(move |row| low + 5.0 * spread(row), "a").kind);
        assert_eq!(
            [near, far],
            [Kind::Positive, Kind::Continuous],
            "0 is 2.4 and 4.5 deviations off"
        );
        assert_eq!(
            found(|row| 0.01 + 0.98 * spread(row), "a").kind,
            Kind::Bounded { low: 0.0, high: 1.0 }
        );
        assert_eq!(found(|row| row as f32 + 7.0, "a").kind, Kind::Identifier);
        assert_eq!(found(|row| ((row * 7919) % 100_003) as f32, "user_id").kind, Kind::Identifier);
        assert_eq!(found(|row| (row % 2) as f32, "a").kind.name(), "categorical");
        let Kind::Integer { values } = found(|row| ((row * row) % 7) as f32 + 1.0, "a").kind else {
            panic!("an integer")
        };
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0]);
        let tenths = |row: usize| (row % 31) as f32 * 0.1 + 2.0;
        assert_eq!(found(tenths, "a").kind, Kind::Continuous, "unless it is said");
        let values = discrete(&(0..300).map(tenths).collect::<Vec<_>>(), true).unwrap();
        assert_eq!((values.len(), values[3]), (31, 2.3));
        let wide = found(|row| ((row * 7919) % 100_003) as f32, "a");
        assert_eq!((wide.kind, wide.form), (Kind::Continuous, Form::Decimals { decimals: 0 }));
    }

    #[test]
    fn values_that_come_again_and_again_are_atoms_and_the_rest_has_its_own_kind() {
        // Money that is spent, or not.
        let spent =
            found(|row| if row.is_multiple_of(3) { 0.0 } else { (5.0 * spread(row)).exp() }, "a");
        assert_eq!((&spent.kind, spent.atoms[0].value), (&Kind::Positive, 0.0));
        assert!(spent.atoms[0].place < 0.0, "below the logarithm of all others");
        assert!(spent.note.starts_with("33 % are 0:"), "{}", spent.note);
        let capped = |row: usize| if row.is_multiple_of(4) { 2.5 } else { spread(row) * 9.0 - 4.0 };
        let capped = found(capped, "a");
        assert_eq!((&capped.kind, capped.atoms[0].place), (&Kind::Continuous, 2.5));
        let share = |row: usize| match row % 5 {
            0 => 0.0,
            1 => 1.0,
            _ => 0.01 + 0.98 * spread(row),
        };
        let share = found(share, "a");
        assert_eq!(share.kind, Kind::Bounded { low: 0.0, high: 1.0 });
        assert!(share.atoms[0].place < -4.0 && share.atoms[1].place > 4.0, "{:?}", share.atoms);
        // Rounded to tenths all of them come again, and of those that were rounded in part all that do are steps of a scale.
        assert!(found(|row| (row % 31) as f32 * 0.1 + 2.0, "a").atoms.is_empty());
        let in_part = |scale: [f32; 3]| {
            found(move |row| scale.get(row % 5).map_or(4.0 * spread(row), |&step| step), "a").atoms
        };
        assert!(in_part([0.5, 1.0, 2.5]).is_empty());
        assert_eq!(in_part([0.5, 1.0, 2.2]).len(), 3);
    }

    #[test]
    fn kinds_of_words_are_found_and_what_they_are_written_as() {
        let colour = of_words(|row| ["red", "green", "blue"][row % 3].into());
        assert_eq!(
            colour.kind,
            Kind::Categorical {
                levels: ["blue", "green", "red", "other"].map(String::from).to_vec()
            }
        );
        assert_eq!(of_words(|row| ["no", "yes"][row % 2].into()).kind.name(), "yes/no");
        assert_eq!(of_words(|row| format!("customer {row}")).kind, Kind::Identifier);
        let money = of_words(|row| format!("${}.50", 7 + (row * 7919) % 900));
        assert_eq!(
            (money.code("$9.50"), money.text(12.25)),
            (super::super::Code::Value(9.5), "$12.25".into())
        );
        let date = of_words(|row| format!("2024-0{}-{:02}", 1 + row % 9, 1 + row % 28));
        assert!(matches!(date.kind, Kind::Integer { .. }) && date.form == Form::Date);
        assert_eq!(date.text(19_800.2), "2024-03-18");
    }

    #[test]
    fn what_comes_round_again_is_cells_a_circle_or_a_line() {
        let say = |value: &dyn Fn(usize) -> f32, said: &str| {
            let values = (0..300).map(value).collect();
            let said = BTreeMap::from([("a".to_owned(), said.parse().unwrap())]);
            find("t", Table::new(vec!["a".into()], values), vec![None], &[], &said)
        };
        let hours = say(&|row| (row % 24) as f32, "cyclic:24").unwrap().kinds.remove(0);
        assert!(matches!(hours.kind, Kind::Integer { .. }) && hours.cycle == Some(24.0));
        // Directions around north, none of them between 90 and 270 degrees: cut in the south.
        let north = |row: usize| (180.0 * spread(row) - 90.0).rem_euclid(360.0);
        let north = say(&north, "cyclic:360").unwrap().kinds.remove(0);
        let Kind::Circle { low, period, cut } = north.kind else { panic!("{north:?}") };
        assert_eq!((low, period), (0.0, 360.0));
        assert!((cut - 180.0).abs() < 2.0, "{cut}");
        assert_eq!(north.note, "comes round every 360");
        let further = say(&|row| 1000.0 * spread(row), "cyclic:360").unwrap().kinds.remove(0);
        assert_eq!((further.kind, further.cycle), (Kind::Continuous, Some(360.0)));
        let error = say(&|row| 1000.0 * spread(row), "cyclic:1d").unwrap_err().to_string();
        assert!(error.contains("a=cyclic:1d") && error.contains("cyclic:24"), "{error}");
    }

    #[test]
    fn what_is_said_goes_before_what_is_found_and_must_fit() {
        let table_of =
            || Table::new(vec!["a".into()], (0..60).map(|row| (row % 5) as f32).collect());
        let say = |kind: &str| {
            let said = BTreeMap::from([("a".to_owned(), kind.parse().unwrap())]);
            find("t", table_of(), vec![None], &[], &said)
        };
        assert_eq!(say("continuous").unwrap().kinds[0].kind, Kind::Continuous);
        let Found { table, mut kinds, words, .. } = say("categorical").unwrap();
        settle_levels(&table, &mut kinds, &words, &(0..60).collect::<Vec<_>>());
        assert_eq!(kinds[0].text(3.0), "3");
        assert!(say("positive").unwrap_err().to_string().contains("above 0"));
        assert!(say("bounded:0:4").unwrap_err().to_string().contains("within its bounds"));
        assert!(say("identifier").unwrap_err().to_string().contains("nothing"));
        let said = BTreeMap::from([("b".to_owned(), SaidKind::Integer)]);
        assert!(find("t", table_of(), vec![None], &[], &said).is_err());
    }
}
