//! A table in memory is read as a file of the same cells is, to the bit.

use zhat::watch::Watch;
use zhat_table::data::{Frame, FrameCells, FrameColumn, MISSING_MOMENT};
use zhat_table::fit::FitConfig;
use zhat_table::{Prepared, TableError, prepare, prepare_frame};

const ROWS: usize = 240;
const WORDS: [&str; 4] = ["north", "east", "west", "?"];

/// Never the same twice, between 0 and 1.
fn spread(row: usize) -> f64 {
    (row as f64 * 0.618_033_988 + 0.1).fract()
}

fn height(row: usize) -> f64 {
    if row % 17 == 3 { f64::NAN } else { 4.0 * spread(row) - 1.0 }
}

/// Places in [`WORDS`]; the last is a spelling of what is missing, and below 0 is nothing at all.
fn region(row: usize) -> i64 {
    if row % 31 == 5 { -1 } else { ((row * 7 + row / 5) % 4) as i64 }
}

fn day(row: usize) -> i64 {
    if row == 9 { MISSING_MOMENT } else { (19_700 + (row as i64 * 37) % 400) * 86_400 }
}

fn moment(row: usize) -> i64 {
    1_700_000_000 + (row as i64 * 7919) % 100_000
}

fn frame<'a>() -> Frame<'a> {
    let column = |name: &str, cells| FrameColumn { name: name.into(), cells };
    let words = WORDS.map(String::from).to_vec();
    let columns = vec![
        column("height", FrameCells::Numbers(Box::new(height))),
        column("children", FrameCells::Numbers(Box::new(|row| (row * row % 7) as f64))),
        column("region", FrameCells::Words { codes: Box::new(region), words }),
        column("born", FrameCells::Moments(Box::new(day))),
        column("seen", FrameCells::Moments(Box::new(moment))),
    ];
    Frame::new("memory:test", ROWS, columns)
}

/// The same cells as text.
fn file() -> std::path::PathBuf {
    let form = |seconds: i64, form: zhat_table::data::Form| match seconds {
        MISSING_MOMENT => String::new(),
        seconds if form == zhat_table::data::Form::Date => form.text((seconds / 86_400) as f64),
        seconds => form.text(seconds as f64),
    };
    let mut text = "height,children,region,born,seen\n".to_owned();
    for row in 0..ROWS {
        let height = if height(row).is_nan() { String::new() } else { height(row).to_string() };
        let region = usize::try_from(region(row)).map_or("", |place| WORDS[place]);
        let born = form(day(row), zhat_table::data::Form::Date);
        let seen = form(moment(row), zhat_table::data::Form::Time { origin: 0 });
        text += &format!("{height},{},{region},{born},{seen}\n", row * row % 7);
    }
    let path = std::env::temp_dir().join(format!("zhat-frame-{}.csv", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

fn config(source: &str) -> FitConfig {
    FitConfig::for_table(source, ROWS, 5, None)
}

/// Bits, since a missing cell is no number and equal to nothing.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn the_same_cells_in_memory_and_in_a_file_are_the_same_data() {
    let path = file();
    let of_file = prepare(&config(path.to_str().unwrap())).unwrap();
    std::fs::remove_file(path).unwrap();
    let of_frame = prepare_frame(&config("memory:test"), &frame(), &Watch::default()).unwrap();
    let parts =
        |data: &Prepared| [&data.train, &data.validation, &data.test].map(|part| bits(part));
    assert_eq!(parts(&of_file), parts(&of_frame));
    assert_eq!(of_file.kinds, of_frame.kinds);
    assert_eq!(of_file.hash, of_frame.hash);
    assert_eq!(of_file.standardiser, of_frame.standardiser);
    let labels: Vec<&str> = of_frame.kinds.iter().map(|kind| kind.label()).collect();
    assert_eq!(labels, ["continuous", "integer", "categorical", "date", "time"]);
}

#[test]
fn a_cell_that_is_refused_is_named_by_row_and_column() {
    let infinite = |row: usize| if row == 41 { f64::INFINITY } else { spread(row) };
    let cells = FrameCells::Numbers(Box::new(infinite));
    let frame = Frame::new("memory:test", ROWS, vec![FrameColumn { name: "speed".into(), cells }]);
    let error = prepare_frame(&config("memory:test"), &frame, &Watch::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("row index 41, column 1 (speed)") && text.contains("infinite"), "{text}");
}

#[test]
fn a_table_that_was_in_memory_cannot_be_read_again_and_says_so() {
    let error = prepare(&config("memory:test")).unwrap_err();
    assert!(matches!(error, TableError::Data(_)));
    assert!(error.to_string().contains("was a table in memory"), "{error}");
}

#[test]
fn reading_stops_when_it_is_told_to() {
    let watch = Watch::default();
    watch.stop();
    assert!(prepare_frame(&config("memory:test"), &frame(), &watch).unwrap_err().is_stop());
}
