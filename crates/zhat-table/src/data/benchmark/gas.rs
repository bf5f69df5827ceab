//! GAS: sixteen sensors in mixtures of ethylene and carbon monoxide.

use std::path::Path;

use zhat::rng::Streams;

use super::rules::{last_tenths, without_correlated};
use super::{Benchmark, Parts, Steps, open_text, source_file};
use crate::data::error::{Error, Result};
use crate::data::gather::Flow;
use crate::data::table::Table;

/// Time and two concentrations, which are dropped, then the sensors.
const DROPPED: usize = 3;
const SENSORS: usize = 16;

/// The archive holds a random quarter of the rows, in random order: 1,052,065 of 4,208,261.
const SHARE: f64 = 0.25;
/// Rows are kept in memory for a little more than that, until it is known how many there are...
const HELD_SHARE: f64 = 0.26;
/// ...and all of the first ones, so that there are enough of them however short the file is.
const HELD_FIRST: usize = 100_000;

/// Of two columns that correlate more than this, one is dropped.
const CORRELATION: f64 = 0.98;

pub(super) fn prepare(source: &Path, steps: &Steps) -> Result<Parts> {
    let path = source_file(source, &["ethylene_CO.txt"], Benchmark::Gas)?;
    let (table, rows) = random_quarter(&path, steps)?;
    let table = table.select_columns(&without_correlated(&table, CORRELATION));
    let done = vec![
        format!("read {rows} rows and took {} of them at random, in random order", table.rows()),
        "dropped time and both concentrations".into(),
        format!(
            "dropped the first of correlated columns again and again; left: {}",
            table.columns().join(", ")
        ),
    ];
    Ok(last_tenths(table, done))
}

/// A quarter of the rows in random order, and how many rows there were.
///
/// Every row draws a number; the rows with the smallest numbers, in the order of these, are a random sample in random order.
fn random_quarter(path: &Path, steps: &Steps) -> Result<(Table, usize)> {
    let expected = "the header of UCI's file (Time (seconds), CO conc (ppm), ...)";
    let lines = open_text(path, Benchmark::Gas, expected, |lines| {
        let header = String::from_utf8_lossy(lines.line()).to_ascii_lowercase();
        // The same folder of UCI has a file of mixtures with methane.
        header.starts_with("time") && !header.contains("methane")
    })?;
    let mut draws = Streams::new(steps.seed).stream("benchmark-order", 0, 0);
    let (mut values, mut keys, mut rows) = (Vec::new(), Vec::new(), 0usize);
    let mut numbers = [0.0; DROPPED + SENSORS];
    steps.each_line(lines, |lines| {
        lines.numbers(None, &mut numbers)?;
        let key = draws.uniform();
        if rows < HELD_FIRST || key < HELD_SHARE {
            keys.push(key);
            values.extend(numbers[DROPPED..].iter().map(|&number| number as f32));
        }
        rows += 1;
        Ok(Flow::More)
    })?;
    let number = (SHARE * rows as f64).round() as usize;
    if number == 0 {
        return Err(Error::NoRows { file: path.into(), header_only: true });
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
    order.truncate(number);
    let names = (1..=SENSORS).map(|sensor| format!("sensor_{sensor}")).collect();
    Ok((Table::new(names, values).select_rows(&order), rows))
}
