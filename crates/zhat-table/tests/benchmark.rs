//! The benchmark sets from small files in the formats of the real ones, and what happens to files that are not whole.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use zhat::watch::Watch;
use zhat_table::data::benchmark::{Benchmark, PreparedSet, Sizes, prepare};
use zhat_table::data::{Error, Table, write};
use zhat_table::fit::FitConfig;

/// An empty directory for a test.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("benchmark").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn file(path: &Path, text: &str) -> PathBuf {
    fs::write(path, text).unwrap();
    path.to_owned()
}

fn gzip(path: &Path, text: &str) -> PathBuf {
    let file = fs::File::create(path).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
    path.to_owned()
}

fn any(set: Benchmark, source: &Path, out: &Path) -> Result<PreparedSet, Error> {
    prepare(set, source, out, Sizes::Any, 0, &Watch::default())
}

/// The message of a preparation that must fail and leave nothing behind.
fn refusal(set: Benchmark, source: &Path, sizes: Sizes) -> String {
    static COUNTER: AtomicUsize = AtomicUsize::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let beside = directory(&format!("refusal-{number}"));
    let out = beside.join("out");
    let message = prepare(set, source, &out, sizes, 0, &Watch::default()).unwrap_err().to_string();
    assert_eq!(fs::read_dir(&beside).unwrap().count(), 0, "something was left: {message}");
    message
}

/// All rows, train first, in the units of the file.
fn rows(prepared: &PreparedSet) -> Vec<Vec<f32>> {
    let split = &prepared.split;
    let mut rows = Vec::new();
    for part in [&split.train, &split.validation, &split.test] {
        let mut values = part.values().to_vec();
        if let Some(standardiser) = &prepared.meta.standardiser {
            standardiser.invert(&mut values);
        }
        rows.extend(values.chunks_exact(part.dimension()).map(<[f32]>::to_vec));
    }
    rows
}

/// The row of a minute as UCI writes it: a function of the minute, so that it can be recognised.
fn power_row(minute: u32) -> [f64; 7] {
    let m = f64::from(minute);
    [
        (0.5 + 0.004 * m * 2.0).min(9.0),
        0.1,
        230.0 + f64::from(minute % 7),
        18.4,
        f64::from(minute % 3),
        f64::from(minute % 5),
        f64::from(minute % 11),
    ]
}

fn power_text(minutes: u32) -> String {
    let mut text = String::from(
        "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;Sub_metering_1;Sub_metering_2;\
         Sub_metering_3\n",
    );
    for minute in 0..minutes {
        let time = format!("16/12/2006;{:02}:{:02}:00", minute / 60, minute % 60);
        if minute % 50 == 49 {
            // As UCI writes a gap: the last cell is empty.
            text += &format!("{time};?;?;?;?;?;?;\n");
        } else {
            let cells = power_row(minute).map(|value| format!("{value:.3}"));
            text += &format!("{time};{}\n", cells.join(";"));
        }
    }
    text
}

#[test]
fn power_keeps_every_whole_row_once_with_noise_within_its_step() {
    let root = directory("power");
    let source = gzip(&root.join("household_power_consumption.txt.gz"), &power_text(1000));
    let prepared = any(Benchmark::Power, &source, &root.join("out")).unwrap();
    assert_eq!(prepared.meta.rows, [794, 88, 98]);
    let expected = [
        "global_active_power",
        "voltage",
        "sub_metering_1",
        "sub_metering_2",
        "sub_metering_3",
        "minute_of_day",
    ];
    assert_eq!(prepared.meta.columns, expected);
    let mut found = rows(&prepared);
    let minutes: Vec<u32> = found.iter().map(|row| row[5].round() as u32).collect();
    assert!(minutes.windows(2).any(|pair| pair[0] > pair[1]), "the rows are shuffled");
    found.sort_by(|a, b| a[5].total_cmp(&b[5]));
    let whole: Vec<u32> = (0..1000).filter(|minute| minute % 50 != 49).collect();
    assert_eq!(found.len(), whole.len());
    let (mut least, mut most) = ([f64::INFINITY; 5], [f64::NEG_INFINITY; 5]);
    for (row, minute) in found.iter().zip(whole) {
        assert!((row[5] - minute as f32).abs() < 1e-3, "minute {minute} is {}", row[5]);
        let raw = power_row(minute);
        for (index, (value, step)) in
            [(raw[0], 0.001), (raw[2], 0.01), (raw[4], 1.0), (raw[5], 1.0), (raw[6], 1.0)]
                .into_iter()
                .enumerate()
        {
            let noise = (f64::from(row[index]) - value) / step;
            // Standardising and back costs some parts in 1e7 of the value.
            assert!((-0.02..=1.02).contains(&noise), "column {index}: noise {noise}");
            least[index] = least[index].min(noise);
            most[index] = most[index].max(noise);
        }
    }
    assert!(least.iter().all(|&noise| noise < 0.1) && most.iter().all(|&noise| noise > 0.9));
    for column in prepared.split.train.statistics() {
        assert!(column.mean.abs() < 1e-4 && (column.std_dev - 1.0).abs() < 1e-4, "{column:?}");
    }
    // 16/12/2006 has 20 gaps of 50 minutes each.
    assert!(
        prepared.meta.steps[0].contains("1000 minutes") && prepared.meta.steps[0].contains(" 20 ")
    );
}

#[test]
fn power_is_the_same_from_text_and_from_the_archive_and_another_for_another_seed() {
    let root = directory("power-archive");
    let text = file(&root.join("household_power_consumption.txt"), &power_text(600));
    let from_text = any(Benchmark::Power, &text, &root.join("text")).unwrap();
    let names = ["gap", "grp", "voltage", "gi", "sm1", "sm2", "sm3", "time"];
    let values = (0..600u32).filter(|minute| minute % 50 != 49).flat_map(|minute| {
        let row = power_row(minute).map(|value| format!("{value:.3}").parse::<f32>().unwrap());
        row.into_iter().chain([minute as f32])
    });
    let archive = Table::new(names.map(String::from).to_vec(), values.collect());
    write(&root.join("data.npy"), &archive).unwrap();
    // The directory stands for the file in it.
    fs::create_dir(root.join("archive")).unwrap();
    fs::rename(root.join("data.npy"), root.join("archive/data.npy")).unwrap();
    let from_archive = any(Benchmark::Power, &root.join("archive"), &root.join("npy")).unwrap();
    assert_eq!(from_text.meta.hash, from_archive.meta.hash);
    let other =
        prepare(Benchmark::Power, &text, &root.join("other"), Sizes::Any, 1, &Watch::default())
            .unwrap();
    assert_ne!(other.meta.hash, from_text.meta.hash);
    assert_eq!(other.meta.rows, from_text.meta.rows);
}

#[test]
fn a_prepared_set_is_read_back_and_is_ready_to_be_fitted() {
    let root = directory("read-back");
    let source = file(&root.join("power.txt"), &power_text(1000));
    let out = root.join("power");
    let prepared = any(Benchmark::Power, &source, &out).unwrap();
    assert!(prepared.meta.differences.iter().any(|text| text.contains("N is 980, not 2049280")));
    assert_eq!(PreparedSet::read(&out).unwrap(), prepared);
    let config = FitConfig::new(out.to_str().unwrap());
    let standard = config.clone().with_setting("data.marginals=standard").unwrap();
    let data = zhat_table::prepare(&standard).unwrap();
    assert_eq!(data.train, prepared.split.train.values());
    assert_eq!(data.test, prepared.split.test.values());
    // Likelihoods are in standardised units, as the published ones.
    assert_eq!(data.standardiser.log_derivatives(&data.test[..6])[0], 0.0);
    assert_eq!(data.hash, prepared.meta.hash);
    // Normal scores are of those units too, and their derivative is counted.
    let mapped = zhat_table::prepare(&config).unwrap();
    assert!(mapped.train != data.train);
    for (found, expected) in mapped.in_units(&mapped.test).iter().zip(&data.test) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
    assert_ne!(mapped.standardiser.log_derivatives(&data.test[..6])[0], 0.0);
    let with_columns = config.with_setting("data.read.columns=[\"voltage\"]").unwrap();
    assert!(
        zhat_table::prepare(&with_columns).unwrap_err().to_string().contains("data.read.columns")
    );
}

#[test]
fn rows_that_were_changed_afterwards_are_noticed() {
    let root = directory("changed");
    let source = file(&root.join("power.txt"), &power_text(500));
    let out = root.join("power");
    any(Benchmark::Power, &source, &out).unwrap();
    let path = out.join("test.npy");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(PreparedSet::read(&out).unwrap_err().to_string().contains("not those"));
    fs::write(&path, &bytes[..last]).unwrap();
    assert!(PreparedSet::read(&out).is_err());
}

#[test]
fn a_file_that_is_not_whole_is_refused_and_leaves_nothing() {
    let root = directory("not-whole");
    let text = power_text(1000);
    // Plain text that ends at the end of a line: only the size tells.
    let short = file(&root.join("short.txt"), &text);
    let message = refusal(Benchmark::Power, &short, Sizes::AsInThePaper);
    assert!(
        message.contains("N is 980, not 2049280") && message.contains("`any-size`"),
        "{message}"
    );
    // In the middle of a line, however large it may be.
    let cut = file(&root.join("cut.txt"), &text[..text.len() - 12]);
    let message = refusal(Benchmark::Power, &cut, Sizes::Any);
    assert!(message.contains("line 1001") && message.contains("fetch it again"), "{message}");
    // A download that broke off.
    let whole = gzip(&root.join("whole.txt.gz"), &text);
    let bytes = fs::read(whole).unwrap();
    let broken = root.join("broken.txt.gz");
    fs::write(&broken, &bytes[..bytes.len() / 2]).unwrap();
    let message = refusal(Benchmark::Power, &broken, Sizes::Any);
    assert!(message.contains("ends too early or is damaged"), "{message}");
}

#[test]
fn a_file_that_is_another_one_is_refused_and_leaves_nothing() {
    let root = directory("another");
    let table = file(&root.join("other.csv"), "a,b\n1,2\n3,4\n");
    for (set, expected) in [
        (Benchmark::Power, "header of UCI's file"),
        (Benchmark::Gas, "header of UCI's file"),
        (Benchmark::Miniboone, "two counts"),
        (Benchmark::Hepmass, "no 1000_train.csv"),
    ] {
        let message = refusal(set, &table, Sizes::Any);
        assert!(message.contains(expected) && message.contains("is made from"), "{message}");
    }
    let zip = root.join("power.txt");
    fs::write(&zip, b"PK\x03\x04rest of an archive").unwrap();
    assert!(refusal(Benchmark::Power, &zip, Sizes::Any).contains("zip"));
    let missing = root.join("missing.txt");
    assert!(refusal(Benchmark::Power, &missing, Sizes::Any).contains("not there"));
    let header = file(&root.join("header.txt"), power_text(0).as_str());
    assert!(refusal(Benchmark::Power, &header, Sizes::Any).contains("no rows"));
    let narrow = root.join("narrow.npy");
    write(&narrow, &Table::new(vec!["a".into(), "b".into()], vec![1.0; 200])).unwrap();
    assert!(refusal(Benchmark::Power, &narrow, Sizes::Any).contains("2 columns, not 8"));
}

#[test]
fn what_is_there_is_never_written_over_and_a_stop_leaves_nothing() {
    let root = directory("in-the-way");
    let source = file(&root.join("power.txt"), &power_text(300));
    let out = root.join("out");
    fs::create_dir(&out).unwrap();
    file(&out.join("precious.txt"), "keep me");
    let message = any(Benchmark::Power, &source, &out).unwrap_err().to_string();
    assert!(message.contains("not empty"), "{message}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    let stopped = root.join("stopped");
    let watch = Watch::default();
    watch.stop();
    let result = prepare(Benchmark::Power, &source, &stopped, Sizes::Any, 0, &watch);
    assert!(matches!(result, Err(Error::Stopped)));
    assert_eq!(fs::read_dir(&root).unwrap().count(), 2);
}

/// Sixteen sensors of which the last eight are almost copies of the first eight.
fn gas_text(rows: usize) -> String {
    let mut text = String::from(
        "Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings (16 channels)\r\n",
    );
    let mut state = 1u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31)
    };
    for row in 0..rows {
        let first: Vec<f64> = (0..8).map(|_| 1000.0 * draw()).collect();
        let copies: Vec<f64> = first.iter().map(|value| 2.0 * value + draw()).collect();
        let sensors: Vec<String> =
            first.iter().chain(&copies).map(|value| format!("{value:.2}")).collect();
        text += &format!(
            "{:.2}    0.00    {:.2}    {}\r\n",
            0.01 * row as f64,
            row,
            sensors.join("   ")
        );
    }
    text
}

#[test]
fn gas_is_a_random_quarter_without_the_first_of_correlated_sensors() {
    let root = directory("gas");
    let source = gzip(&root.join("ethylene_CO.txt.gz"), &gas_text(1002));
    let prepared = any(Benchmark::Gas, &source, &root.join("out")).unwrap();
    // A quarter of 1002 rows is 250.5, which rounds up; tenths are rounded down.
    assert_eq!(prepared.meta.rows, [204, 22, 25]);
    let expected: Vec<String> = (9..=16).map(|sensor| format!("sensor_{sensor}")).collect();
    assert_eq!(prepared.meta.columns, expected);
    let text = gas_text(1002);
    let of_file: Vec<Vec<f32>> = text
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().skip(11).map(|cell| cell.parse().unwrap()).collect())
        .collect();
    let place = |row: &Vec<f32>| {
        let is_close = |other: &&Vec<f32>| other.iter().zip(row).all(|(a, b)| (a - b).abs() < 0.01);
        of_file.iter().position(|other| is_close(&other)).expect("a row of the file")
    };
    let places: Vec<usize> = rows(&prepared).iter().map(place).collect();
    let mut sorted = places.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 251, "no row twice");
    assert_ne!(sorted, places, "in random order");
    // The mean place of a random half-thousand: 500.5, give or take 4 standard errors of 289 / sqrt(251) less the finite
    // population's share.
    let mean = places.iter().sum::<usize>() as f64 / 251.0;
    assert!((mean - 500.5).abs() < 4.0 * 16.0, "{mean}");
    let methane = text.replacen("CO conc", "Methane conc", 1);
    let methane = file(&root.join("ethylene_methane.txt"), &methane);
    assert!(refusal(Benchmark::Gas, &methane, Sizes::Any).contains("CO conc"));
    let cut = file(&root.join("cut.txt"), &text[..text.len() - 30]);
    assert!(refusal(Benchmark::Gas, &cut, Sizes::Any).contains("cells, not 19"));
}

/// Class and 27 features, of which every fourth is often at its smallest value; the test file has one column more.
fn hepmass_text(rows: usize, columns: usize, shift: f64) -> String {
    let names: Vec<String> = (0..27).map(|feature| format!("f{feature}")).collect();
    let mut text = format!("# label,{}\n", names.join(","));
    for row in 0..rows {
        let mut cells = vec![format!("{:e}", (row % 2) as f64)];
        for feature in 0..27usize {
            let value = match feature.is_multiple_of(4) {
                true => (row % 10) as f64,
                false => ((row * 7919 + feature * 104_729) % 10_007) as f64,
            };
            cells.push(format!("{:.18e}", value + shift));
        }
        cells.resize(columns, "1000".into());
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

#[test]
fn hepmass_is_class_1_of_both_files_without_columns_of_a_frequent_smallest_value() {
    let root = directory("hepmass");
    let train = gzip(&root.join("1000_train.csv.gz"), &hepmass_text(400, 28, 0.0));
    file(&root.join("1000_test.csv"), &hepmass_text(100, 29, 0.5));
    let prepared = any(Benchmark::Hepmass, &root, &root.join("out")).unwrap();
    assert_eq!(prepared.meta.rows, [180, 20, 50]);
    assert_eq!(prepared.meta.columns.len(), 20);
    assert!(!prepared.meta.columns.contains(&"f4".to_string()));
    // Odd rows are of class 1; the first column that is kept is f1.
    let found = rows(&prepared);
    assert!((found[0][0] - ((7919 + 104_729) % 10_007) as f32).abs() < 0.01);
    assert!((found[200][0] - ((7919 + 104_729) % 10_007) as f32 - 0.5).abs() < 0.01);
    // One of the files stands for both.
    let again = any(Benchmark::Hepmass, &train, &root.join("again")).unwrap();
    assert_eq!(again.meta.hash, prepared.meta.hash);
    fs::remove_file(root.join("1000_test.csv")).unwrap();
    assert!(refusal(Benchmark::Hepmass, &root, Sizes::Any).contains("no 1000_test.csv"));
}

/// Signal events first, of which every hundredth was not measured, then background.
fn miniboone_text(promised: usize, signal: usize, background: usize) -> String {
    let mut text = format!("  {promised}  {background}\n");
    for row in 0..signal + background {
        let cells: Vec<String> = (0..50usize)
            .map(|feature| match () {
                () if row % 100 == 99 => "-0.999000E+03".into(),
                () if feature.is_multiple_of(10) => format!(" {:.6E}", (row % 8) as f64),
                () => format!(" {:.6E}", ((row * 7919 + feature * 104_729) % 10_007) as f64),
            })
            .collect();
        text += &format!(" {}\n", cells.join(" "));
    }
    text
}

#[test]
fn miniboone_is_the_signal_events_that_were_measured() {
    let root = directory("miniboone");
    let source = file(&root.join("MiniBooNE_PID.txt"), &miniboone_text(300, 300, 200));
    let prepared = any(Benchmark::Miniboone, &source, &root.join("out")).unwrap();
    // 297 events: the tenths are 29 and 26.
    assert_eq!(prepared.meta.rows, [242, 26, 29]);
    assert_eq!(prepared.meta.columns.len(), 45);
    let found = rows(&prepared);
    assert!(
        (found[0][0] - (104_729 % 10_007) as f32).abs() < 0.01,
        "the order is that of the file"
    );
    let short = file(&root.join("short.txt"), &miniboone_text(300, 200, 0));
    let message = refusal(Benchmark::Miniboone, &short, Sizes::Any);
    assert!(message.contains("promises 300 signal events, but there are 200"), "{message}");
    let archive = Table::new(
        (0..43).map(|c| format!("c{c}")).collect(),
        (0..4300).map(|v| (v % 97) as f32).collect(),
    );
    write(&root.join("data.npy"), &archive).unwrap();
    let cleaned = any(Benchmark::Miniboone, &root.join("data.npy"), &root.join("npy")).unwrap();
    assert_eq!((cleaned.meta.rows, cleaned.meta.columns.len()), ([81, 9, 10], 43));
}

#[cfg(feature = "hdf5")]
fn bsds300_file(path: &Path, parts: &[(&str, u64)], columns: u64) {
    let mut builder = hdf5_pure::FileBuilder::new();
    for (index, &(name, rows)) in parts.iter().enumerate() {
        let values: Vec<f64> =
            (0..rows * columns).map(|at| at as f64 * 0.001 + index as f64).collect();
        let dataset = builder.create_dataset(name).with_f64_data(&values);
        let dataset = dataset.with_shape(&[rows, columns]);
        // As the archive may be: in one piece, or in compressed chunks.
        if index == 1 {
            dataset.with_chunks(&[16, columns]).with_deflate(4);
        }
    }
    builder.write(path).unwrap();
}

#[cfg(not(feature = "hdf5"))]
#[test]
fn a_build_without_hdf5_says_which_feature_reads_it() {
    let source = directory("without_hdf5").join("BSDS300.hdf5");
    fs::write(&source, b"\x89HDF").unwrap();
    let message = refusal(Benchmark::Bsds300, &source, Sizes::Any);
    assert!(message.contains("--features hdf5"), "{message}");
}

#[cfg(feature = "hdf5")]
#[test]
fn bsds300_is_taken_from_the_archive_as_it_is() {
    let root = directory("bsds300");
    let source = root.join("BSDS300.hdf5");
    bsds300_file(&source, &[("train", 9000), ("validation", 50), ("test", 70)], 63);
    let prepared = any(Benchmark::Bsds300, &source, &root.join("out")).unwrap();
    assert_eq!((prepared.meta.rows, prepared.meta.columns.len()), ([9000, 50, 70], 63));
    assert_eq!(prepared.meta.standardiser, None);
    let split = &prepared.split;
    assert_eq!(split.train.row(8999)[62], ((9000 * 63 - 1) as f64 * 0.001) as f32);
    assert_eq!(split.validation.row(49)[0], ((49 * 63) as f64 * 0.001 + 1.0) as f32);
    assert_eq!(split.test.row(0)[1], 2.001);
    let bytes = fs::read(&source).unwrap();
    let broken = root.join("broken.hdf5");
    fs::write(&broken, &bytes[..bytes.len() / 2]).unwrap();
    assert!(refusal(Benchmark::Bsds300, &broken, Sizes::Any).contains("not whole"));
    let other = root.join("other.hdf5");
    bsds300_file(&other, &[("train", 20), ("test", 20)], 63);
    let message = refusal(Benchmark::Bsds300, &other, Sizes::Any);
    assert!(message.contains("no dataset validation"), "{message}");
}

#[test]
fn the_papers_sizes_are_those_of_its_table() {
    let sizes = Benchmark::ALL.map(|set| (set.dimension(), set.rows().iter().sum::<usize>()));
    let paper = [(6, 2_049_280), (8, 1_052_065), (21, 525_123), (43, 36_488), (63, 1_300_000)];
    assert_eq!(sizes, paper);
    for set in Benchmark::ALL {
        assert_eq!(set.name().parse::<Benchmark>().unwrap(), set);
    }
    let message = "powr".parse::<Benchmark>().unwrap_err().to_string();
    assert!(message.contains("did you mean power"), "{message}");
}
