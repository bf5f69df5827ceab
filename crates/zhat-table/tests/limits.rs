//! Files that would fill the memory: a line without an end, cells without number, a quote that is never closed.

mod common;

use std::io::Write;

use common::{directory, file, rng};
use zhat_table::data::{ReadOptions, Source};

fn complaint(name: &str, bytes: &[u8], options: &ReadOptions) -> String {
    let path = file(&directory(&format!("limits_{name}")), name, bytes);
    let source = Source::parse(path.to_str().unwrap()).unwrap();
    source.load(options, &mut rng(1)).expect_err("it is refused").to_string()
}

/// Many bytes of one kind in few.
fn packed(byte: u8, number: usize, before: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(before).unwrap();
    let part = vec![byte; 1 << 20];
    (0..number >> 20).for_each(|_| writer.write_all(&part).unwrap());
    writer.finish().unwrap()
}

#[test]
fn a_line_without_an_end_is_given_up_before_memory_is() {
    let plain = ReadOptions::default();
    let first = complaint("first.csv.gz", &packed(b'1', 1 << 28, b""), &plain);
    assert!(first.contains("line 1: the line is longer than 16777216 bytes"), "{first}");
    let later = complaint("later.csv.gz", &packed(b'1', 1 << 28, b"a,b\n1,2\n3,4\n"), &plain);
    assert!(later.contains("line 4: the line is longer than 16777216 bytes"), "{later}");
    let quote = complaint("quote.csv.gz", &packed(b'1', 1 << 28, b"a,b\n1,\"2\n3,4\n"), &plain);
    assert!(quote.contains("a quote is opened in it and not closed"), "{quote}");
}

#[test]
fn cells_without_number_are_given_up() {
    let commas = packed(b',', 1 << 28, b"");
    let first = complaint("commas.csv.gz", &commas, &ReadOptions::default());
    assert!(first.contains("longer than 16777216 bytes"), "{first}");
    let longer = ReadOptions { max_line_bytes: Some(1 << 30), ..Default::default() };
    let later = complaint("cells.csv.gz", &packed(b',', 1 << 28, b"a,b\n1,2\n"), &longer);
    assert!(later.contains("and 65536 are the most") && later.contains("`max-columns`"), "{later}");
}

#[test]
fn the_limits_can_be_set_lower_and_higher() {
    let rows: String =
        (0..40).map(|i| format!("{},{}\n", (i * 7919) % 101, (i * 31) % 97)).collect();
    let text = format!("a,b\n{rows}1,{:0>3000}\n", 2);
    let short = ReadOptions { max_line_bytes: Some(2000), ..Default::default() };
    let message = complaint("short.csv", text.as_bytes(), &short);
    assert!(message.contains("line 42: the line is longer than 2000 bytes"), "{message}");
    let path = file(&directory("limits_long"), "long.csv", &text);
    let source = || Source::parse(path.to_str().unwrap()).unwrap();
    assert_eq!(source().load(&ReadOptions::default(), &mut rng(1)).unwrap().table.rows(), 41);
    let narrow = ReadOptions { max_columns: Some(1), ..Default::default() };
    let message = source().load(&narrow, &mut rng(1)).unwrap_err().to_string();
    assert!(message.contains("it has 2 columns or more, and 1 are the most"), "{message}");
    // A first line that is longer than what is looked at for its separator.
    let names: Vec<String> = (0..3).map(|i| format!("{}{i}", "x".repeat(599_999))).collect();
    let wide = format!("{}\n{}", names.join(","), rows.replace(',', ",5.5,"));
    let path = file(&directory("limits_wide"), "wide.csv", wide);
    let chosen = ReadOptions { columns: vec!["1".into(), "3".into()], ..Default::default() };
    let table =
        Source::parse(path.to_str().unwrap()).unwrap().load(&chosen, &mut rng(1)).unwrap().table;
    assert_eq!((table.rows(), table.columns()[0].len()), (40, 600_000));
}
