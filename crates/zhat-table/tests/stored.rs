//! Tables that train from files: nothing is lost on the way, and a fit reads what it needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zhat::rng::Streams;
use zhat::watch::Watch;
use zhat_table::data::stored::{RowFile, StoreOptions, StoredTable, store};
use zhat_table::data::{Missing, ReadOptions, Table, write};
use zhat_table::fit::{FitConfig, Session};
use zhat_table::prepare;

/// An empty directory for a test.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stored").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

/// More rows than are looked at before training.
const ROWS: usize = 130_000;

fn table() -> Table {
    let mut rng = Streams::new(1).stream("rows", 0, 0);
    let row = |i: usize| [i as f32 / 7.0, rng.normal() as f32 + (i % 2) as f32 * 4.0];
    Table::new(["a", "b"].map(String::from).to_vec(), (0..ROWS).flat_map(row).collect())
}

fn config(source: &Path) -> FitConfig {
    let mut config = FitConfig::new(source.to_str().expect("a path"));
    for setting in [
        "training.num-steps=12",
        "step.warm-up=3",
        "training.batch-size=24",
        "training.validation-every=6",
        "training.checkpoint-every=4",
        "validation.rows=200",
        "validation.particles=200",
        "evaluation.particles=200",
        "evaluation.estimates=2",
        "model.energy.width=16",
        "model.proposal.width=16",
    ] {
        config = config.with_setting(setting).expect(setting);
    }
    config
}

#[test]
fn every_row_is_in_one_part_and_a_fit_takes_them_from_the_file() {
    let directory = directory("whole");
    let (file, out) = (directory.join("rows.npy"), directory.join("prepared"));
    let table = table();
    write(&file, &table).unwrap();
    let meta = store(&file, &out, &StoreOptions::default(), &Watch::default()).unwrap();
    assert_eq!(meta.rows, [104_000, 13_000, 13_000]);
    let again = store(&file, &out, &StoreOptions::default(), &Watch::default());
    assert!(again.unwrap_err().to_string().contains("a prepared table is there already"));

    let stored = StoredTable::open(&out, &Streams::new(0)).unwrap();
    let train = stored.train.as_ref().expect("more rows than a sample has");
    let mut rows: Vec<f32> = train.all().unwrap();
    assert_eq!(train.read(&[70_000, 3]).unwrap(), [&rows[140_000..140_002], &rows[6..8]].concat());
    assert_eq!(stored.sample.rows(), 100_000);
    rows.extend(stored.validation.values());
    rows.extend(stored.test.values());
    let sorted = |rows: &[f32]| {
        let mut rows: Vec<[u32; 2]> =
            rows.chunks_exact(2).map(|row| [row[0].to_bits(), row[1].to_bits()]).collect();
        rows.sort_unstable();
        rows
    };
    assert!(sorted(&rows) == sorted(table.values()), "a row is lost or changed");

    let config = config(&out);
    let fit = |name: &str, threads: usize| {
        let data = prepare(&config).unwrap();
        assert!(data.train_file.is_some() && data.rows == meta.rows);
        let run = directory.join(name);
        let watch = Arc::new(Watch::default());
        let mut session = Session::start(config.clone(), data, &run, threads, &watch).unwrap();
        let report = session.run(None, &watch, &mut |_| {}).unwrap().expect("not stopped");
        assert!(report.test.log_likelihood.is_finite() && report.steps == 12);
        fs::read(run.join("model.safetensors")).unwrap()
    };
    assert!(fit("one", 1) == fit("two", 2));
}

#[test]
fn missing_cells_are_refused_or_their_rows_left_out() {
    let directory = directory("holes");
    let file = directory.join("rows.csv");
    let lines: String = (0..400)
        .map(|i| if i == 250 { "1.5,\n".to_owned() } else { format!("{i}.25,{}.5\n", i * i % 91) })
        .collect();
    fs::write(&file, format!("a,b\n{lines}")).unwrap();
    let out = directory.join("prepared");
    let refused = store(&file, &out, &StoreOptions::default(), &Watch::default());
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("it has missing cells"), "{message}");
    assert!(!out.exists(), "nothing is left behind");
    let read = ReadOptions { missing: Missing::Drop, ..ReadOptions::default() };
    let options = StoreOptions { read, ..StoreOptions::default() };
    let meta = store(&file, &out, &options, &Watch::default()).unwrap();
    assert_eq!(meta.rows.iter().sum::<usize>(), 399);
    // Few rows are all in memory.
    assert!(prepare(&config(&out)).unwrap().train_file.is_none());
}

#[test]
fn a_file_that_was_cut_off_is_refused() {
    let directory = directory("cut");
    let path = directory.join("train.f32");
    fs::write(&path, [0; 24]).unwrap();
    assert_eq!(RowFile::open(&path, 2, 3).unwrap().all().unwrap(), [0.0; 6]);
    fs::write(&path, [0; 23]).unwrap();
    let message = RowFile::open(&path, 2, 3).unwrap_err().to_string();
    assert!(message.contains("it has 23 bytes, and not 24"), "{message}");
}
