//! MINIBOONE: events of the neutrino experiment that are a signal.

use std::path::Path;

use super::rules::{feature_names, last_tenths, with_rare_minimum};
use super::{Benchmark, Parts, Steps, open_text, source_file, wrong};
use crate::data::error::Result;
use crate::data::gather::Flow;
use crate::data::options::{Format, ReadOptions};
use crate::data::read::read;
use crate::data::table::Table;

const FEATURES: usize = 50;

/// An event whose first feature is below this was not measured (it is -999).
const NOT_MEASURED: f64 = -100.0;

/// A column whose smallest value occurs more often is dropped.
const MOST_MINIMA: usize = 5;

pub(super) fn prepare(source: &Path, steps: &Steps) -> Result<Parts> {
    let path = source_file(source, &["MiniBooNE_PID.txt", "data.npy"], Benchmark::Miniboone)?;
    let (table, done) = match Format::of_name(&path) {
        Some(Format::Npy) => {
            let table = read(&path, &ReadOptions::default())?.table;
            (table, vec!["read the archive's rows, which are cleaned".to_string()])
        }
        _ => from_uci(&path, steps)?,
    };
    Ok(last_tenths(table, done))
}

/// The signal events of UCI's text: its first line says how many there are, and they come first.
fn from_uci(path: &Path, steps: &Steps) -> Result<(Table, Vec<String>)> {
    let expected = "two counts, of signal and of background events";
    let mut counts = [0.0; 2];
    let lines = open_text(path, Benchmark::Miniboone, expected, |lines| {
        lines.numbers(None, &mut counts).is_ok()
    })?;
    let signal = counts[0] as usize;
    let (mut values, mut rows, mut outliers) = (Vec::new(), 0usize, 0usize);
    let mut numbers = [0.0; FEATURES];
    steps.each_line(lines, |lines| {
        lines.numbers(None, &mut numbers)?;
        if numbers[0] < NOT_MEASURED {
            outliers += 1;
        } else {
            values.extend(numbers.map(|number| number as f32));
        }
        rows += 1;
        Ok(if rows == signal { Flow::Full } else { Flow::More })
    })?;
    if rows < signal || values.is_empty() {
        let detail = format!("line 1 promises {signal} signal events, but there are {rows}");
        return Err(wrong(path, detail, Benchmark::Miniboone));
    }
    let table = Table::new(feature_names(FEATURES), values);
    let kept = with_rare_minimum(&table, MOST_MINIMA);
    let dropped = FEATURES - kept.len();
    let done = vec![
        format!("read the {signal} signal events and left out {outliers} that were not measured"),
        format!(
            "dropped {dropped} columns whose smallest value occurs more than {MOST_MINIMA} times"
        ),
    ];
    Ok((table.select_columns(&kept), done))
}
