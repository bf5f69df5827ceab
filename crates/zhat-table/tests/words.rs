//! What is said of odd files: where it is, what it is, and not something else.

mod common;

use common::{directory, file, rng};
use zhat_table::data::{self, Loaded, ReadOptions, Source, Table};

fn load(name: &str, bytes: &[u8]) -> data::Result<Loaded> {
    let path = file(&directory(&format!("words_{name}")), name, bytes);
    Source::parse(path.to_str().unwrap()).unwrap().load(&ReadOptions::default(), &mut rng(1))
}

/// Rows of two honest columns.
fn rows(number: usize) -> String {
    (0..number).fold(String::new(), |text, row| {
        let part = |of: f64| (row as f64 * of).fract();
        format!("{text}{:.6},{:.6}\n", part(0.618_033_988), part(0.754_877_666))
    })
}

#[test]
fn numbers_that_differ_only_beyond_32_bits_are_not_called_equal() {
    let text: String =
        (0..40).map(|i| format!("{}.5,{}\n", 1_000_000_000 + i % 20, i * i)).collect();
    let message = load("collapse.csv", format!("a,b\n{text}").as_bytes()).unwrap_err().to_string();
    assert!(message.contains("go from 1000000000.5 to 1000000019.5"), "{message}");
    assert!(message.contains("Subtract an offset"), "{message}");
    let same: String = (0..40).map(|i| format!("7,{}\n", i * i)).collect();
    let message = load("same.csv", format!("a,b\n{same}").as_bytes()).unwrap_err().to_string();
    assert!(message.contains("every row is 7"), "{message}");
}

#[test]
fn comments_at_the_beginning_are_no_rows_and_lines_are_counted_with_them() {
    let text = format!("# made by hand\n# on a Tuesday, late\na,b\n{}", rows(30));
    let table = load("comments.csv", text.as_bytes()).unwrap().table;
    assert_eq!((table.rows(), table.columns().to_vec()), (30, vec!["a".to_owned(), "b".into()]));
    let numpy = format!("# u v\n{}", rows(30).replace(',', " "));
    let table = load("numpy.txt", numpy.as_bytes()).unwrap().table;
    assert_eq!((table.rows(), table.columns().to_vec()), (30, vec!["u".to_owned(), "v".into()]));
    let broken = load("broken.csv", format!("{text}1,red\n").as_bytes()).unwrap_err().to_string();
    assert!(broken.contains("line 34, column 2 (b)"), "{broken}");
    let short = load("short.csv", b"# nothing else\n").unwrap_err().to_string();
    assert!(short.contains("is empty"), "{short}");
}

#[test]
fn a_first_line_that_may_be_names_is_read_as_a_row_and_said() {
    let told = |first: &str| {
        let loaded = load("years.csv", format!("{first}\n{}", rows(30)).as_bytes()).unwrap();
        loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let years = told("1990,1991");
    assert!(
        years[0].contains("line 1 (1990,1991)") && years[0].contains("`header` yes"),
        "{years:?}"
    );
    assert!(!told("0.5,0.25").iter().any(|told| told.contains("header")));
}

#[test]
fn a_compression_that_cannot_be_undone_is_not_called_damage() {
    let names = vec!["a".to_owned(), "b".into()];
    let values = (0..80).map(|i| (i as f32 * 0.618_034).fract()).collect();
    let path = directory("words_brotli").join("t.parquet");
    data::write(&path, &Table::new(names, values)).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The codec of column a, in Thrift's compact protocol: path_in_schema ["a"], then codec 6 (zstd), which becomes 4.
    let codec = b"\x19\x18\x01a\x15\x0c";
    let at = bytes.windows(codec.len()).position(|window| window == codec).expect("the codec");
    bytes[at + codec.len() - 1] = 8;
    let message = load("brotli.parquet", &bytes).unwrap_err().to_string();
    assert!(message.contains("column a is compressed with Brotli"), "{message}");
    assert!(!message.contains("damaged") && message.contains("zstd"), "{message}");
}

#[test]
fn noise_that_was_added_in_vain_is_not_recommended_again() {
    let text: String = (0..200)
        .map(|i| format!("{},{}\n", 1000 * (i % 5), (f64::from(i) * 0.618_033_988).fract()))
        .collect();
    let path = file(&directory("words_vain"), "t.csv", format!("a b,c\n{text}"));
    let source = || Source::parse(path.to_str().unwrap()).unwrap();
    let told = |step: Option<f64>| {
        let steps = step.map(|step| ("a b".to_owned(), step)).into_iter().collect();
        let loaded = source().load_dequantised(&ReadOptions::default(), &steps, &mut rng(1));
        loaded.unwrap().warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert!(told(None).contains("`dequantise` 'a b=1000'"), "{}", told(None));
    let vain = told(Some(1e-9));
    assert!(vain.contains("still discrete") && !vain.contains("`dequantise`"), "{vain}");
    assert_eq!(told(Some(1000.0)), "");
}
