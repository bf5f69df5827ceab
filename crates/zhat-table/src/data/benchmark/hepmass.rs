//! HEPMASS: collisions that made a new particle of mass 1000.

use std::path::Path;

use super::rules::{cut, feature_names, with_rare_minimum};
use super::{Benchmark, Parts, Steps, find_file, open_text, wrong};
use crate::data::error::Result;
use crate::data::gather::Flow;
use crate::data::split::Split;
use crate::data::table::Table;

/// The archive holds the first tenth of UCI's rows.
const TRAIN_ROWS: usize = 700_000;
const TEST_ROWS: usize = 350_000;

const FEATURES: usize = 27;

/// A column whose smallest value occurs more often is dropped.
const MOST_MINIMA: usize = 5;

pub(super) fn prepare(source: &Path, steps: &Steps) -> Result<Parts> {
    // One of the two files stands for the directory that it is in.
    let directory = match source.is_dir() {
        true => source,
        false => source.parent().unwrap_or(Path::new(".")),
    };
    let find = |name: &str| {
        find_file(directory, &[name]).ok_or_else(|| {
            wrong(directory, format!("there is no {name} (or {name}.gz)"), Benchmark::Hepmass)
        })
    };
    let (train, test) = (find("1000_train.csv")?, find("1000_test.csv")?);
    let train = signal(&train, TRAIN_ROWS, steps)?;
    let test = signal(&test, TEST_ROWS, steps)?;
    let kept = with_rare_minimum(&train, MOST_MINIMA);
    let dropped = FEATURES - kept.len();
    let (train, test) = (train.select_columns(&kept), test.select_columns(&kept));
    let validation = train.rows() / 10;
    let (train, validation) = cut(train, validation);
    let done = vec![
        format!("read the first {TRAIN_ROWS} rows of 1000_train and {TEST_ROWS} of 1000_test"),
        "kept the rows of class 1 and dropped the class".into(),
        format!(
            "dropped {dropped} columns whose smallest training value occurs more than {MOST_MINIMA} times"
        ),
        "cut off the last tenth of the training file as validation".into(),
    ];
    Ok(Parts { split: Split { train, validation, test }, steps: done })
}

/// The features of the rows of class 1.
fn signal(path: &Path, most: usize, steps: &Steps) -> Result<Table> {
    let expected = "the header of UCI's file (# label, f0, f1, ...)";
    let lines = open_text(path, Benchmark::Hepmass, expected, |lines| {
        lines.line().windows(5).any(|letters| letters == b"label")
    })?;
    let (mut values, mut rows) = (Vec::new(), 0usize);
    let mut numbers = [0.0; 1 + FEATURES];
    steps.each_line(lines, |lines| {
        let found = lines.first_numbers(Some(b','), &mut numbers)?;
        // The test file has one column more, the mass, which is the same everywhere.
        if found != numbers.len() && found != numbers.len() + 1 {
            return Err(lines.ragged(numbers.len(), found));
        }
        if numbers[0] == 1.0 {
            values.extend(numbers[1..].iter().map(|&number| number as f32));
        }
        rows += 1;
        Ok(if rows == most { Flow::Full } else { Flow::More })
    })?;
    if values.is_empty() {
        return Err(wrong(path, "no row is of class 1", Benchmark::Hepmass));
    }
    Ok(Table::new(feature_names(FEATURES), values))
}
