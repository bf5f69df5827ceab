//! What is given broken input: every reader, the configuration, checkpoints and the run directory. Each gives the reason for
//! which it refused an input, if it did, and panics where something is wrong.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zhat::train::TrainerState;
use zhat_table::data::{Flow, Header, Missing, ReadOptions, Table, read, read_batches};
use zhat_table::fit::{FitConfig, Session};
use zhat_table::fitted::Fitted;
use zhat_table::prepare;

/// Whether an input was accepted, or why not.
pub type Outcome = Result<(), String>;

/// A directory of one's own to put inputs into, and a run to damage.
pub struct Place {
    directory: PathBuf,
    run: Option<Run>,
}

/// A finished run and what it says about some rows.
struct Run {
    files: Vec<(&'static str, Vec<u8>)>,
    scores: Vec<u64>,
}

/// A thing to be broken, by name.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&Place, &[u8]) -> Outcome,
    /// Out of a thousand inputs of a campaign, how many are for this: readers are fast, and runs are slow to open.
    pub share: u64,
}

pub const TARGETS: &[Target] = &[
    Target { name: "csv", run: |place, bytes| table(place, "table.csv", bytes), share: 300 },
    Target { name: "npy", run: |place, bytes| table(place, "table.npy", bytes), share: 150 },
    Target {
        name: "parquet",
        run: |place, bytes| table(place, "table.parquet", bytes),
        share: 150,
    },
    Target { name: "unnamed", run: |place, bytes| table(place, "table", bytes), share: 100 },
    Target { name: "compressed", run: compressed, share: 80 },
    Target { name: "packed", run: packed, share: 40 },
    Target { name: "config", run: config, share: 100 },
    Target { name: "checkpoint", run: checkpoint, share: 60 },
    Target { name: "run", run, share: 20 },
];

/// The files of a run that are read again, in the order in which the first byte of an input chooses one.
const FILES: [&str; 4] = ["model.json", "results.json", "model.safetensors", "config.toml"];

/// Rows for the model of the run, one of them far out.
const ROWS: [f32; 6] = [0.5, -0.5, 0.0, 1.0, 40.0, -3.0];

impl Place {
    /// An empty directory, with a run in it if it is wanted.
    pub fn new(directory: &Path, with_run: bool) -> Self {
        let _ = fs::remove_dir_all(directory);
        fs::create_dir_all(directory).expect("a directory");
        let mut place = Self { directory: directory.to_owned(), run: None };
        if with_run {
            place.run = Some(place.fit());
        }
        place
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.directory.join(name);
        fs::write(&path, bytes).expect("room for a file");
        path
    }

    /// A run of a moment.
    fn fit(&self) -> Run {
        let settings = [
            "data.read.max-rows=1200",
            "training.num-steps=6",
            "step.warm-up=2",
            "training.batch-size=16",
            "step.num-negatives=3",
            "training.validation-every=3",
            "training.checkpoint-every=3",
            "validation.particles=50",
            "evaluation.particles=50",
            "evaluation.estimates=2",
            "model.energy.width=8",
            "model.proposal.width=8",
            "model.context=4",
            "model.mixture-components=2",
        ];
        let config =
            settings.into_iter().fold(FitConfig::new("builtin:banana"), |config, setting| {
                config.with_setting(setting).expect("a setting")
            });
        let (out, data) = (self.directory.join("run"), prepare(&config).expect("data"));
        let mut session =
            Session::start(config, data, &out, 1, &Default::default()).expect("a run");
        session.run(None, &Default::default(), &mut |_| ()).expect("a fit").expect("not stopped");
        let file = |name| (name, fs::read(out.join(name)).expect("a file of the run"));
        Run { files: FILES.map(file).to_vec(), scores: self.scores().expect("a whole run") }
    }

    /// What the run says, to the bit.
    fn scores(&self) -> Result<Vec<u64>, String> {
        let text = |error: zhat_table::TableError| error.to_string();
        let fitted =
            Fitted::open(&self.directory.join("run"), 1, Default::default()).map_err(text)?;
        let (log_z, _) = fitted.log_z().map_err(text)?;
        let scores = fitted.density().score(&ROWS).map_err(text)?;
        Ok(scores.log_p_tilde.iter().map(|score| (score - log_z).to_bits()).collect())
    }

    /// Whole files of each kind to begin with, behind the byte that chooses how they are read.
    pub fn seeds(&self, target: &str) -> Vec<Vec<u8>> {
        let texts: [&[u8]; 8] = [
            b"a,b,c\n1,2,3\n4.5,-6e3,7\n8,9,10\n",
            b"1 2 3\n  4   5 6\n7 8 9\n",
            b"x;y\r\n1,5;2\r\n3;4,25\r\n",
            b"\"name, with comma\",other\n\"1\",2\n3,\n,4\n",
            b"1.0\n2.0\n3.0\n",
            b"\xef\xbb\xbfa\tb\n1\t2\n3\tNA\n",
            b"id|v\nr1|1\nr2|2\n",
            b"\n\n0,1,2\n0.3,0.5,0.1\n",
        ];
        let table =
            Table::new(vec!["a".into(), "b".into()], (0..24).map(|i| i as f32 / 7.0).collect());
        let written = |name: &str| {
            let path = self.directory.join(name);
            zhat_table::data::write(&path, &table).expect("a table");
            fs::read(path).expect("a file")
        };
        let chosen = |bytes: &[u8]| [0u8, 1, 5, 40, 200].map(|choice| [&[choice], bytes].concat());
        let all =
            |files: &[Vec<u8>]| files.iter().flat_map(|file| chosen(file)).collect::<Vec<_>>();
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.to_vec()).collect();
        match target {
            "csv" | "packed" => all(&texts),
            "npy" => all(&[written("seed.npy"), other_npy(b"<f8", false), other_npy(b">i2", true)]),
            "parquet" => all(&[written("seed.parquet")]),
            "unnamed" => {
                all(&[&texts[..2], &[written("seed.npy"), written("seed.parquet")]].concat())
            }
            "compressed" => {
                (0..COMPRESSIONS.len()).flat_map(|way| all(&[pack(way, &texts[0])])).collect()
            }
            "config" => {
                let toml = FitConfig::new("table.csv").to_toml();
                let settings = toml.lines().filter(|line| line.contains('='));
                let settings =
                    settings.map(|line| [&[1], line.replace(' ', "").as_bytes()].concat());
                let extra = [
                    &b"\0[training]\nbatch-size = 64\n[training.schedule]\nlinear = 0.1\n"[..],
                    b"\x01data.dequantise.age=1.0",
                    b"\x01step.proposal-target={ mix = 0.5 }",
                ];
                let whole = [b"\0", toml.as_bytes()].concat();
                settings.chain(extra.map(<[u8]>::to_vec)).chain([whole]).collect()
            }
            "checkpoint" => {
                let directory = self.directory.join("run/checkpoint");
                let files = fs::read_dir(directory).expect("checkpoints").flatten();
                let states = files.map(|file| fs::read(file.path()).expect("a checkpoint"));
                states
                    .flat_map(|state| [0u8, 1].map(|choice| [&[choice], &state[..]].concat()))
                    .collect()
            }
            "run" => {
                let files = self.run.iter().flat_map(|run| &run.files).enumerate();
                files.map(|(choice, (_, bytes))| [&[choice as u8], &bytes[..]].concat()).collect()
            }
            other => panic!("{other} is no target"),
        }
    }
}

/// An array of NumPy in another type and order than ours.
fn other_npy(descr: &[u8], column_order: bool) -> Vec<u8> {
    let descr = String::from_utf8_lossy(descr);
    let order = if column_order { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (4, 2), }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), &[7; 64]].concat()
}

/// How a table is read, as the first byte of an input chooses it.
fn options(choice: u8) -> ReadOptions {
    let third = |place: u32| usize::from(choice) / 3usize.pow(place) % 3;
    ReadOptions {
        header: [Header::Detect, Header::Yes, Header::No][third(0)],
        missing: [Missing::Refuse, Missing::Drop, Missing::Keep][third(1)],
        columns: [vec![], vec!["1".into()], vec!["1-2".into()]][third(2)].clone(),
        max_rows: [None, Some(1), Some(3)][third(3)],
        delimiter: [None, Some(';'), Some(' ')][third(4)],
        ..ReadOptions::default()
    }
}

/// The bits of a table, so that missing cells are equal to themselves.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A table is refused, or is the same read whole and in batches.
fn table(place: &Place, name: &str, input: &[u8]) -> Outcome {
    let Some((&choice, bytes)) = input.split_first() else { return Err("nothing".into()) };
    read_twice(&place.file(name, bytes), &options(choice)).map(|_| ())
}

fn read_twice(path: &Path, options: &ReadOptions) -> Result<Table, String> {
    let whole = read(path, options);
    let mut rows = Vec::new();
    let batches = read_batches(path, options, 2, |batch| {
        rows.extend_from_slice(batch.values());
        Flow::More
    });
    match (whole, batches) {
        (Ok(whole), Ok(number)) => {
            let table = whole.table;
            assert_eq!(
                (number, bits(&rows)),
                (table.rows(), bits(table.values())),
                "batches differ"
            );
            assert!(table.rows() > 0 && table.values().len() == table.rows() * table.dimension());
            let whole = |value: &f32| value.is_finite() || options.missing == Missing::Keep;
            assert!(table.values().iter().all(whole), "a cell that is no number");
            Ok(table)
        }
        (Err(one), Err(other)) => {
            assert_eq!(
                one.to_string(),
                other.to_string(),
                "batches are refused for another reason"
            );
            Err(one.to_string())
        }
        (Ok(_), Err(error)) => panic!("accepted whole, but refused in batches: {error}"),
        (Err(error), Ok(_)) => panic!("accepted in batches, but refused whole: {error}"),
    }
}

const COMPRESSIONS: [&str; 3] = ["gz", "zst", "bz2"];

fn pack(way: usize, bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    match COMPRESSIONS[way] {
        "gz" => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(bytes).expect("memory");
            writer.finish().expect("memory")
        }
        "zst" => zstd::encode_all(bytes, 1).expect("memory"),
        _ => {
            let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            writer.write_all(bytes).expect("memory");
            writer.finish().expect("memory")
        }
    }
}

/// Damaged compressed files.
fn compressed(place: &Place, input: &[u8]) -> Outcome {
    let Some((&choice, bytes)) = input.split_first() else { return Err("nothing".into()) };
    let options =
        ReadOptions { max_rows: (choice % 2 == 1).then_some(2), ..ReadOptions::default() };
    // The first bytes say what it is, and where the name says something else that is said.
    let name = ["table.csv", "table.csv.gz"][usize::from(choice / 2) % 2];
    read_twice(&place.file(name, bytes), &options).map(|_| ())
}

/// A table is the same compressed and not.
fn packed(place: &Place, input: &[u8]) -> Outcome {
    let Some((&choice, bytes)) = input.split_first() else { return Err("nothing".into()) };
    let (way, options) = (usize::from(choice) % COMPRESSIONS.len(), options(choice));
    let plain = read_twice(&place.file("plain.csv", bytes), &options);
    let packed = read_twice(&place.file("packed.csv", &pack(way, bytes)), &options);
    match (plain, packed) {
        (Ok(plain), Ok(packed)) => {
            assert_eq!(bits(plain.values()), bits(packed.values()), "compression changes values");
            Ok(())
        }
        (Err(reason), Err(_)) => Err(reason),
        (plain, packed) => panic!("plain: {:?}, compressed: {:?}", plain.err(), packed.err()),
    }
}

/// A configuration is refused, or is the same after it was written and read.
fn config(_: &Place, input: &[u8]) -> Outcome {
    let Some((&choice, bytes)) = input.split_first() else { return Err("nothing".into()) };
    let text = String::from_utf8_lossy(bytes);
    let start = FitConfig::new("builtin:pinwheel");
    let config = match choice % 2 {
        0 => start.with_toml(&text, "a file"),
        _ => start.with_setting(&text),
    };
    let config = config.and_then(|config| config.validate().map(|()| config));
    let config = config.map_err(|error| error.to_string())?;
    let again = FitConfig::new("another")
        .with_toml(&config.to_toml(), "written")
        .expect("what was written");
    assert_eq!(again.to_toml(), config.to_toml(), "a configuration changes when it is written");
    Ok(())
}

/// A checkpoint is refused, or is written as it was read; with a checksum that is right, so that what is behind it is met.
fn checkpoint(_: &Place, input: &[u8]) -> Outcome {
    let Some((&choice, bytes)) = input.split_first() else { return Err("nothing".into()) };
    let mut bytes = bytes.to_vec();
    if choice % 2 == 1 {
        bytes.truncate(bytes.len().saturating_sub(32));
        let checksum = Sha256::digest(&bytes);
        bytes.extend_from_slice(checksum.as_slice());
    }
    let state = TrainerState::from_bytes(&bytes).map_err(|error| error.to_string())?;
    TrainerState::from_bytes(&state.to_bytes()).expect("what was written");
    Ok(())
}

/// A run with one file changed is refused, or says the same as before.
fn run(place: &Place, input: &[u8]) -> Outcome {
    let Some((&choice, bytes)) = input.split_first() else { return Err("nothing".into()) };
    let run = place.run.as_ref().expect("a run");
    let (name, whole) = &run.files[usize::from(choice) % FILES.len()];
    place.file(&format!("run/{name}"), bytes);
    let scores = std::panic::catch_unwind(|| place.scores());
    place.file(&format!("run/{name}"), whole);
    let scores = scores.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    assert_eq!(scores, run.scores, "{name} was changed, and with it the scores");
    Ok(())
}
