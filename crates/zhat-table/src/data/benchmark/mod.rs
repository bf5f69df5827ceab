//! The five benchmark sets of the paper, from the files that people have to train, validation and test.
//!
//! The steps are those of the archive of the MAF paper (Papamakarios et al. 2017), which the paper follows. Reading streams:
//! what is kept in memory is the columns that are needed. A prepared set is a directory, written whole or not at all.

#[cfg_attr(not(feature = "hdf5"), path = "without_hdf5.rs")]
mod bsds300;
mod directory;
mod gas;
mod hepmass;
mod miniboone;
mod power;
mod rules;

pub use directory::{Meta, PreparedSet};
pub(crate) use directory::{check_free, temporary};

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use zhat::watch::Watch;

use super::error::{Error, Result};
use super::gather::Flow;
use super::nearest::{listing, nearest};
use super::read::Lines;
use super::split::Split;
use super::standardise::Standardiser;
use super::table::Table;

/// Lines from one look at the watch to the next.
const LINES_BETWEEN_LOOKS: usize = 20_000;

/// One of the paper's five sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    /// Electric power consumption of a household, UCI.
    Power,
    /// Gas sensors in mixtures of ethylene and CO, UCI.
    Gas,
    /// Particle collisions, UCI.
    Hepmass,
    /// Neutrino events, UCI.
    Miniboone,
    /// Patches of natural images, Berkeley.
    Bsds300,
}

impl Benchmark {
    /// All of them, in the paper's order.
    pub const ALL: [Benchmark; 5] = [
        Benchmark::Power,
        Benchmark::Gas,
        Benchmark::Hepmass,
        Benchmark::Miniboone,
        Benchmark::Bsds300,
    ];

    /// The name that a user types.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// Number of features (the paper's table of data sets).
    pub fn dimension(self) -> usize {
        self.facts().1
    }

    /// Rows for training, validation and test; their sum is the paper's N.
    pub fn rows(self) -> [usize; 3] {
        self.facts().2
    }

    /// The files it can be made from, for help and messages.
    pub fn sources(self) -> &'static str {
        match self {
            Benchmark::Power => "household_power_consumption.txt (UCI) or data.npy (archive)",
            Benchmark::Gas => "ethylene_CO.txt (UCI)",
            Benchmark::Hepmass => "the directory of 1000_train.csv and 1000_test.csv (UCI)",
            Benchmark::Miniboone => "MiniBooNE_PID.txt (UCI) or data.npy (archive)",
            Benchmark::Bsds300 => "BSDS300.hdf5 (archive)",
        }
    }

    fn facts(self) -> (&'static str, usize, [usize; 3]) {
        match self {
            Benchmark::Power => ("power", 6, [1_659_917, 184_435, 204_928]),
            Benchmark::Gas => ("gas", 8, [852_174, 94_685, 105_206]),
            Benchmark::Hepmass => ("hepmass", 21, [315_123, 35_013, 174_987]),
            Benchmark::Miniboone => ("miniboone", 43, [29_556, 3_284, 3_648]),
            Benchmark::Bsds300 => ("bsds300", 63, [1_000_000, 50_000, 250_000]),
        }
    }
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Benchmark {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let names = || Self::ALL.iter().map(|set| set.name());
        Self::ALL.into_iter().find(|set| set.name() == text.trim()).ok_or_else(|| {
            let near = nearest(text, names()).map(|name| format!(" (did you mean {name}?)"));
            Error::setting(
                "the benchmark set",
                format!("{text}{}", near.unwrap_or_default()),
                format!("one of {}", listing(names())),
            )
        })
    }
}

/// Whether a set that is not the paper's is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sizes {
    /// N, D and the split must be the paper's: anything else is most likely a file that is not whole.
    #[default]
    AsInThePaper,
    /// Differences are written down and nothing more.
    Any,
}

/// What a set's own steps give: its parts in the units of the file.
struct Parts {
    split: Split<Table>,
    /// What was done, in words.
    steps: Vec<String>,
}

/// Prepares a set from its source and writes it to a new directory.
///
/// Nothing is left behind if it fails. A seed decides the noise and the order where a set needs them. The watch counts the
/// bytes of each file that is read.
pub fn prepare(
    set: Benchmark,
    source: &Path,
    out: &Path,
    sizes: Sizes,
    seed: u64,
    watch: &Watch,
) -> Result<PreparedSet> {
    directory::check_free(out)?;
    let steps = &Steps { seed, watch };
    let parts = match set {
        Benchmark::Power => power::prepare(source, steps)?,
        Benchmark::Gas => gas::prepare(source, steps)?,
        Benchmark::Hepmass => hepmass::prepare(source, steps)?,
        Benchmark::Miniboone => miniboone::prepare(source, steps)?,
        Benchmark::Bsds300 => bsds300::prepare(source, steps)?,
    };
    let differences = differences(set, &parts.split);
    if sizes == Sizes::AsInThePaper && !differences.is_empty() {
        let detail = format!("this is not the paper's {set}: {}", differences.join("; "));
        let advice =
            "Most likely the file is not whole: fetch it again. `any-size` takes it as it is.";
        return Err(Error::refused(source, detail, advice));
    }
    let prepared = standardised(set, source, seed, parts, differences)?;
    prepared.write(out)?;
    Ok(prepared)
}

/// What a set's steps share: the seed, and what they are watched by.
struct Steps<'a> {
    seed: u64,
    watch: &'a Watch,
}

impl Steps<'_> {
    /// Goes through the lines of a file, until there are enough.
    fn each_line(
        &self,
        mut lines: Lines,
        mut work: impl FnMut(&Lines) -> Result<Flow>,
    ) -> Result<()> {
        self.watch.begin(lines.length());
        for line in 0.. {
            if !lines.advance()? || work(&lines)? == Flow::Full {
                break;
            }
            if line % LINES_BETWEEN_LOOKS == 0 {
                self.advance(lines.bytes_read() - self.watch.done())?;
            }
        }
        Ok(())
    }

    /// Some more bytes have been read.
    fn advance(&self, bytes: u64) -> Result<()> {
        self.watch.advance(bytes as usize);
        if self.watch.is_stopped() { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// How a set differs from the paper's.
fn differences(set: Benchmark, split: &Split<Table>) -> Vec<String> {
    let found = [&split.train, &split.validation, &split.test].map(Table::rows);
    let all = |rows: [usize; 3]| rows.iter().sum::<usize>();
    let mut differences = Vec::new();
    let mut compare = |name: &str, found: usize, paper: usize| {
        if found != paper {
            differences.push(format!("{name} is {found}, not {paper}"));
        }
    };
    compare("D", split.train.dimension(), set.dimension());
    compare("N", all(found), all(set.rows()));
    for (name, (found, paper)) in
        ["training part", "validation part", "test part"].iter().zip(found.iter().zip(set.rows()))
    {
        compare(&format!("the {name}"), *found, paper);
    }
    differences
}

fn standardised(
    set: Benchmark,
    source: &Path,
    seed: u64,
    parts: Parts,
    differences: Vec<String>,
) -> Result<PreparedSet> {
    let Parts { mut split, mut steps } = parts;
    let mut standardiser = None;
    if set != Benchmark::Bsds300 {
        let fitted = standardiser.insert(Standardiser::fit(&split.train)?);
        for part in [&mut split.train, &mut split.validation, &mut split.test] {
            fitted.apply(part.values_mut());
        }
        steps.push("standardised with the training part's mean and standard deviation".into());
    }
    let name = source.file_name().unwrap_or(source.as_os_str());
    let meta = Meta {
        format: directory::FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        set,
        source: name.to_string_lossy().into_owned(),
        seed,
        columns: split.train.columns().to_vec(),
        rows: [&split.train, &split.validation, &split.test].map(Table::rows),
        steps,
        standardiser,
        differences,
        hash: directory::hash(&split),
    };
    Ok(PreparedSet { meta, split })
}

/// Opens a text file and reads its first line, which must be as expected.
fn open_text(
    path: &Path,
    set: Benchmark,
    expected: &str,
    is_right: impl FnOnce(&Lines) -> bool,
) -> Result<Lines> {
    let mut lines = Lines::open(path)?;
    lines.advance()?;
    match is_right(&lines) {
        true => Ok(lines),
        false => Err(wrong(path, format!("line 1 is not {expected}"), set)),
    }
}

/// The error for a file that is not what it should be.
fn wrong(file: &Path, detail: impl Into<String>, set: Benchmark) -> Error {
    Error::refused(file, detail, format!("{set} is made from {}.", set.sources()))
}

/// The file in a directory that has one of some names, with any compression.
fn find_file(directory: &Path, names: &[&str]) -> Option<PathBuf> {
    let endings = ["", ".gz", ".xz", ".zst", ".bz2"];
    names
        .iter()
        .flat_map(|name| endings.iter().map(move |ending| format!("{name}{ending}")))
        .map(|name| directory.join(name))
        .find(|path| path.is_file())
}

/// The source itself, or the file of these names in it where it is a directory.
fn source_file(source: &Path, names: &[&str], set: Benchmark) -> Result<PathBuf> {
    if !source.is_dir() {
        return Ok(source.into());
    }
    find_file(source, names)
        .ok_or_else(|| wrong(source, format!("the directory has no {}", names.join(" or ")), set))
}
