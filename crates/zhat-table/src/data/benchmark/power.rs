//! POWER: a household's electricity, minute by minute, as if the minutes were independent.

use std::path::Path;

use zhat::rng::Streams;

use super::rules::last_tenths;
use super::{Benchmark, Parts, Steps, open_text, source_file, wrong};
use crate::data::error::{Error, Result};
use crate::data::gather::Flow;
use crate::data::options::{Format, ReadOptions};
use crate::data::read::{Lines, read};
use crate::data::table::Table;

/// The columns that are kept, with the width of the noise that is added to them.
const COLUMNS: [(&str, f64); 6] = [
    ("global_active_power", 0.001),
    ("voltage", 0.01),
    ("sub_metering_1", 1.0),
    ("sub_metering_2", 1.0),
    ("sub_metering_3", 1.0),
    ("minute_of_day", 0.0),
];

/// How UCI's file begins.
const HEADER: &str = "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;\
                      Sub_metering_1;Sub_metering_2;Sub_metering_3";

pub(super) fn prepare(source: &Path, steps: &Steps) -> Result<Parts> {
    let names = ["household_power_consumption.txt", "data.npy"];
    let path = source_file(source, &names, Benchmark::Power)?;
    let (values, first) = match Format::of_name(&path) {
        Some(Format::Npy) => (from_archive(&path)?, "read the archive's rows".to_string()),
        _ => from_uci(&path, steps)?,
    };
    let done = vec![
        first,
        "dropped global reactive power and global intensity".into(),
        "shuffled".into(),
        "added uniform noise: 0.001 to active power, 0.01 to voltage, 1 to each sub-metering"
            .into(),
    ];
    Ok(last_tenths(shuffled_with_noise(&values, steps.seed), done))
}

/// The rows of UCI's text without a missing cell.
fn from_uci(path: &Path, steps: &Steps) -> Result<(Vec<f32>, String)> {
    let expected = "the header of UCI's file (Date;Time;Global_active_power;...)";
    let lines = open_text(path, Benchmark::Power, expected, |lines| {
        lines.line().eq_ignore_ascii_case(HEADER.as_bytes())
    })?;
    let (mut values, mut missing) = (Vec::new(), 0usize);
    let mut measured = [0.0; 9];
    steps.each_line(lines, |lines| {
        let mut found = 0;
        for (index, cell) in lines.cells(Some(b';')).enumerate() {
            found += 1;
            if let Some(number) = measured.get_mut(index) {
                *number = match index {
                    0 => 0.0,
                    1 => minute(cell).ok_or_else(|| not_a_time(lines, cell))?,
                    _ => lines.number_of(index, cell)?,
                };
            }
        }
        if found != measured.len() {
            return Err(lines.ragged(measured.len(), found));
        }
        let [_, minute, active, _, voltage, _, first, second, third] = measured;
        if measured.iter().any(|value| value.is_nan()) {
            missing += 1;
        } else {
            values.extend([active, voltage, first, second, third, minute].map(|v| v as f32));
        }
        Ok(Flow::More)
    })?;
    if values.is_empty() {
        return Err(Error::NoRows { file: path.into(), header_only: true });
    }
    let rows = values.len() / COLUMNS.len() + missing;
    Ok((values, format!("read {rows} minutes and left out {missing} with missing cells")))
}

/// The archive's array: active and reactive power, voltage, intensity, three sub-meterings, time.
fn from_archive(path: &Path) -> Result<Vec<f32>> {
    let table = read(path, &ReadOptions::default())?.table;
    if table.dimension() != 8 {
        let detail = format!("the array has {} columns, not 8", table.dimension());
        return Err(wrong(path, detail, Benchmark::Power));
    }
    Ok(table.select_columns(&[0, 2, 4, 5, 6, 7]).into_values())
}

fn shuffled_with_noise(values: &[f32], seed: u64) -> Table {
    let (streams, dimension) = (Streams::new(seed), COLUMNS.len());
    let order = streams.stream("benchmark-order", 0, 0).permutation(values.len() / dimension);
    let mut noise = streams.stream("benchmark-noise", 0, 0);
    let mut shuffled = Vec::with_capacity(values.len());
    for row in order {
        let row = &values[row * dimension..][..dimension];
        shuffled.extend(row.iter().zip(COLUMNS).map(|(&value, (_, width))| match width > 0.0 {
            true => (f64::from(value) + width * noise.uniform()) as f32,
            false => value,
        }));
    }
    Table::new(COLUMNS.map(|(name, _)| name.to_string()).to_vec(), shuffled)
}

/// The minute of the day of `17:24:00`.
fn minute(cell: &[u8]) -> Option<f64> {
    let mut parts = std::str::from_utf8(cell).ok()?.split(':');
    let mut part = |most: u32| parts.next()?.parse().ok().filter(|&value: &u32| value <= most);
    let (hours, minutes, seconds) = (part(23)?, part(59)?, part(59)?);
    Some(f64::from(hours * 60 + minutes) + f64::from(seconds) / 60.0)
}

fn not_a_time(lines: &Lines, cell: &[u8]) -> Error {
    Error::NotNumeric {
        place: lines.place(Some(1)),
        cell: crate::data::cell::shown(cell),
        advice: "It should be a time such as 17:24:00; fetch the file again.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_its_minute_of_the_day() {
        assert_eq!(minute(b"00:00:00"), Some(0.0));
        assert_eq!(minute(b"17:24:00"), Some(1044.0));
        assert_eq!(minute(b"23:59:30"), Some(1439.5));
        for bad in ["24:00:00", "12:60:00", "12:00", "noon", ""] {
            assert_eq!(minute(bad.as_bytes()), None, "{bad}");
        }
    }
}
