//! Whether what is asked for has room in memory: estimated before anything is allocated, and refused with the figure.
//!
//! Where memory runs out while it is used, the process is ended without a word. An estimate that is right to a factor of two or
//! so is enough to tell a mistake from a large model.

use std::fs;

use crate::error::{Result, TableError};

/// What a machine is taken to have where it does not say.
const UNKNOWN: f64 = 64e9;

/// An error that names the setting, unless as many bytes are free.
pub(crate) fn check(name: &'static str, value: impl ToString, bytes: f64) -> Result<()> {
    check_against(name, value, bytes, available())
}

fn check_against(
    name: &'static str,
    value: impl ToString,
    bytes: f64,
    available: f64,
) -> Result<()> {
    if bytes <= available {
        return Ok(());
    }
    let (needed, there) = (in_words(bytes), in_words(available));
    let expected = format!("smaller: it needs about {needed} of memory, and {there} are free");
    Err(TableError::setting(name, value, expected))
}

/// What a number of particles needs, each with so many features.
pub(crate) fn of_particles(particles: usize, features: usize) -> f64 {
    particles as f64 * (4.0 * features as f64 + 45.0)
}

/// Bytes that a process can still have: those that Linux calls available, or that are left of its control group's limit.
fn available() -> f64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let number = |file: &str| fs::read_to_string(file).ok()?.trim().parse::<f64>().ok();
    let group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map(|(most, current)| (most - current).max(0.0));
    match (machine, group) {
        (Some(machine), Some(group)) => machine.min(group),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => UNKNOWN,
    }
}

/// What `/proc/meminfo` calls available.
fn of_machine(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? * 1024.0)
}

fn in_words(bytes: f64) -> String {
    let units = [(1e15, "PB"), (1e12, "TB"), (1e9, "GB")];
    let (size, unit) = units.into_iter().find(|(size, _)| bytes >= *size).unwrap_or((1e6, "MB"));
    let number = bytes / size;
    if number < 1e6 { format!("{number:.1} {unit}") } else { format!("{number:.1e} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_refused_with_the_figures() {
        check_against("particles", 7, 3e9, 4e9).unwrap();
        let message = check_against("particles", 7, 5.3e12, 4e9).unwrap_err().to_string();
        let expected = "particles is 7, but must be smaller: it needs about 5.3 TB of memory, and 4.0 GB are free";
        assert!(message.starts_with(expected), "{message}");
        assert!(check("particles", 7, 1e30).unwrap_err().to_string().contains("e15 PB"));
    }

    #[test]
    fn the_machine_says_what_is_available() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   2000000 kB\n";
        assert_eq!(of_machine(text), Some(2_048_000_000.0));
        assert_eq!(of_machine("MemTotal: 3 kB"), None);
    }
}
