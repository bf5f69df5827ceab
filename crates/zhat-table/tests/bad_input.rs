//! Bad input: every kind gives an error that names the place and says what to type, and none panics.

mod common;

use std::path::{Path, PathBuf};

use common::{compressed, directory, file, npy, rng};
use zhat_table::data::{Dequantise, Header, ReadOptions, Source, Table, dequantise, read, write};

/// What loading says, with a file of this content.
fn message(name: &str, bytes: impl AsRef<[u8]>, options: &ReadOptions) -> String {
    let directory = directory(&format!("bad_{name}"));
    complaint(&file(&directory, name, bytes), options)
}

fn complaint(path: &Path, options: &ReadOptions) -> String {
    match Source::parse(path.to_str().unwrap()).unwrap().load(options, &mut rng(1)) {
        Ok(_) => panic!("{} was accepted", path.display()),
        Err(error) => error.to_string(),
    }
}

/// Thirty honest rows of three columns.
fn good() -> String {
    let mut text = String::from("a,b,c\n");
    for row in 0..30 {
        let x = f64::from(row);
        text += &format!("{},{},{}\n", x.sqrt(), (x * 0.7).sin(), (x * 1.3).cos());
    }
    text
}

fn columns(names: &[&str]) -> ReadOptions {
    let columns = names.iter().map(|name| name.to_string()).collect();
    ReadOptions { columns, ..Default::default() }
}

#[test]
fn every_kind_of_bad_text_is_named_with_its_place_and_a_way_out() {
    let plain = ReadOptions::default();
    let with = |more: &str| good() + more;
    // File name, content, options, and what the message must hold.
    let cases: Vec<(&str, Vec<u8>, ReadOptions, &[&str])> = vec![
        ("empty.csv", vec![], plain.clone(), &["empty.csv is empty"]),
        ("blank.csv", b"\n\n \n".to_vec(), plain.clone(), &["blank.csv is empty"]),
        (
            "header_only.csv",
            b"a,b\n".to_vec(),
            plain.clone(),
            &["header_only.csv has no rows", "`header` no"],
        ),
        (
            "cell.csv",
            with("1,,3\n").into(),
            plain.clone(),
            &["cell.csv, line 32, column 2 (b)", "missing (empty)", "`missing` drop"],
        ),
        (
            "na.csv",
            with("1,2,NA\n").into(),
            plain.clone(),
            &["line 32, column 3 (c)", "\"NA\"", "`missing` drop"],
        ),
        (
            "question.csv",
            with("?,2,3\n").into(),
            plain.clone(),
            &["line 32, column 1 (a)", "\"?\""],
        ),
        (
            "nan.csv",
            with("1,nan,3\n").into(),
            plain.clone(),
            &["line 32, column 2 (b)", "missing (\"nan\")"],
        ),
        (
            "null.csv",
            with("1,null,3\n").into(),
            plain.clone(),
            &["line 32, column 2 (b)", "missing"],
        ),
        (
            "word.csv",
            with("1,red,3\n").into(),
            plain.clone(),
            &["word.csv, line 32, column 2 (b)", "\"red\" is not a number", "`columns` 1,3"],
        ),
        ("blank_lines.csv", with("\n\n1,red,3\n").into(), plain.clone(), &["line 34, column 2"]),
        (
            "crlf.csv",
            with("1,red,3\n").replace('\n', "\r\n").into(),
            plain.clone(),
            &["line 32, column 2"],
        ),
        (
            "infinite.csv",
            with("1,2,-inf\n").into(),
            plain.clone(),
            &["line 32, column 3 (c)", "infinite"],
        ),
        (
            "overflow.csv",
            with("1,1e39,3\n").into(),
            plain.clone(),
            &["line 32, column 2 (b)", "too large"],
        ),
        (
            "overflow64.csv",
            with("1,1e999,3\n").into(),
            plain.clone(),
            &["line 32, column 2 (b)", "too large"],
        ),
        (
            "short.csv",
            with("1,2\n").into(),
            plain.clone(),
            &["short.csv, line 32: 2 cells where line 1 has 3", "`delimiter`"],
        ),
        ("long.csv", with("1,2,3,4\n").into(), plain.clone(), &["line 32: 4 cells"]),
        (
            "quote.csv",
            with("1,\"2,3\n4,5,6\n").into(),
            plain.clone(),
            &["line 32: 2 cells", "quote is opened"],
        ),
        (
            "latin1.csv",
            [with("").as_bytes(), b"1,\xe9,3\n"].concat(),
            plain.clone(),
            &["line 32, column 2 (b)", "UTF-8"],
        ),
        (
            "latin1_header.csv",
            b"a,\xe9\n1,2\n3,4\n".to_vec(),
            plain.clone(),
            &["line 1, column 2", "UTF-8"],
        ),
        (
            "utf16.csv",
            b"\xff\xfea\0,\0b\0".to_vec(),
            plain.clone(),
            &["utf16.csv is not text in UTF-8", "UTF-16"],
        ),
        (
            "binary.csv",
            b"a,b\n\x00\x01\x02".to_vec(),
            plain.clone(),
            &["binary.csv is not text", "zero bytes"],
        ),
        (
            "twice.csv",
            good().replace("a,b,c", "a,b,a").into(),
            plain.clone(),
            &["columns 1 and 3 are both named a", "`columns` 1"],
        ),
        (
            "unknown.csv",
            good().into(),
            columns(&["a", "d"]),
            &["unknown.csv has no column d", "a, b, c"],
        ),
        (
            "slip.csv",
            good().replace("a,b,c", "alpha,beta,gamma").into(),
            columns(&["gama"]),
            &["Did you mean gamma?"],
        ),
        ("position.csv", good().into(), columns(&["4"]), &["`columns` 4 is outside 1 to 3"]),
        ("same.csv", good().into(), columns(&["a", "1"]), &["column 1 (a) is chosen twice"]),
        (
            "doubt.csv",
            b"x,2\n1,2\n3,4\n".to_vec(),
            plain.clone(),
            &["line 1: \"x\" stands above a number", "`header` yes"],
        ),
        (
            "numbered.csv",
            b"0,1,2\n1,2,5\n3,4,6\n".to_vec(),
            plain.clone(),
            &["line 1: 0 to 2", "`header` no"],
        ),
        (
            "comma.csv",
            b"a;b\n1,5;2.5\n3,5;4.5\n".to_vec(),
            plain.clone(),
            &["line 2, column 1 (a)", "decimal comma"],
        ),
        (
            // Beyond the rows by which the file is known to have decimal commas.
            "thousands.csv",
            format!("a;b\n{}1,5;1.234\n", "1,5;2,5\n".repeat(80)).into(),
            plain.clone(),
            &["line 82, column 2 (b)", "decimal commas", "thousands"],
        ),
        (
            "constant.csv",
            good().replace('\n', ",7\n").replacen(",7", ",d", 1).into(),
            plain.clone(),
            &["column d: every row is 7", "`columns` a,b,c"],
        ),
        (
            "few.csv",
            b"a,b\n1,2\n2,5\n4,3\n".to_vec(),
            plain.clone(),
            &["3 rows of 2 columns are too few", "at least 20"],
        ),
        ("zip.xlsx", b"PK\x03\x04rest".to_vec(), plain.clone(), &["zip archive", "CSV"]),
        (
            "delimiter.csv",
            good().into(),
            ReadOptions { delimiter: Some('x'), ..plain.clone() },
            &["delimiter is 'x'"],
        ),
        (
            "rows.csv",
            good().into(),
            ReadOptions { max_rows: Some(0), ..plain.clone() },
            &["max-rows is 0"],
        ),
        (
            "not_gzip.csv.gz",
            good().into(),
            plain.clone(),
            &["not_gzip.csv.gz should be gzip", "a,b,c"],
        ),
        (
            "header_as_data.csv",
            good().into(),
            ReadOptions { header: Header::No, ..plain.clone() },
            &["line 1, column 1 (column_1)", "\"a\" is not a number"],
        ),
    ];
    assert!(cases.len() >= 20);
    for (name, bytes, options, parts) in cases {
        let message = message(name, bytes, &options);
        for part in parts {
            assert!(message.contains(part), "{name}: {part:?} is not in: {message}");
        }
    }
}

#[test]
fn a_duplicated_column_is_named_with_its_twin() {
    let mut text = String::from("a,b,c\n");
    for row in 0..30 {
        text += &format!("{0},{1},{0}\n", f64::from(row).sqrt(), f64::from(row).sin());
    }
    let message = message("twins.csv", text, &ReadOptions::default());
    assert!(message.contains("columns a and c are equal"), "{message}");
    assert!(message.contains("`columns` a,b"), "{message}");
}

#[test]
fn when_every_row_has_a_gap_dropping_says_so() {
    let options = ReadOptions { missing: zhat_table::data::Missing::Drop, ..Default::default() };
    let message = message("gaps.csv", "a,b\n1,\n2,\n", &options);
    assert!(message.contains("all 2 rows have a missing cell"), "{message}");
}

#[test]
fn missing_files_and_directories_are_told_apart() {
    let directory = directory("bad_paths");
    file(&directory, "table.csv", good());
    let plain = ReadOptions::default();
    let missing = complaint(&directory.join("tabel.csv"), &plain);
    assert!(missing.contains("is not there. Did you mean table.csv?"), "{missing}");
    assert!(complaint(&directory, &plain).contains("is a directory"));
    assert!(Source::parse("builtin:bananna").unwrap_err().to_string().contains("banana?"));
}

#[test]
fn truncated_compression_is_an_error_after_so_many_rows() {
    let text: String = (0..5000)
        .map(|row| format!("{},{}\n", f64::from(row).sqrt(), f64::from(row).sin()))
        .collect();
    for ending in ["gz", "xz", "zst", "bz2"] {
        let bytes = compressed(ending, text.as_bytes());
        let name = format!("cut.csv.{ending}");
        let message = message(&name, &bytes[..bytes.len() * 2 / 3], &ReadOptions::default());
        assert!(message.contains(&name) && message.contains("ends too early"), "{message}");
        assert!(message.contains("Fetch"), "{message}");
    }
}

#[test]
fn bad_arrays_are_named() {
    let plain = ReadOptions::default();
    let check = |name: &str, bytes: Vec<u8>, parts: &[&str]| {
        let message = message(name, bytes, &plain);
        for part in parts {
            assert!(message.contains(part), "{name}: {part:?} is not in: {message}");
        }
    };
    let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    check("text.npy", good().into(), &["text.npy should be an NPY file", "a,b,c"]);
    check(
        "cut.npy",
        npy("<f4", false, "(9, 2)", &floats(&[1.0; 10])),
        &["after 5 rows", "promises 9 rows"],
    );
    check("cut_columns.npy", npy("<f4", true, "(9, 2)", &floats(&[1.0; 10])), &["promises 9 rows"]);
    let packed = compressed("gz", &npy("<f4", true, "(9, 2)", &floats(&[1.0; 10])));
    check("cut.npy.gz", packed, &["promises 9 rows"]);
    check("wide.npy", npy("<f4", false, "(0, 1000000000000)", &[]), &["1000000000000 columns"]);
    let huge = format!("({}, 7)", usize::MAX);
    check("huge.npy", npy("<f4", false, &huge, &[]), &["more than memory"]);
    check("large.npy", npy("<f8", false, "(1000000000000, 3)", &[0; 48]), &["after 2 rows"]);
    let packed = compressed("gz", &npy("<f8", true, "(1000000000000, 3)", &[0; 48]));
    check("large.npy.gz", packed, &["promises 1000000000000 rows"]);
    check("cube.npy", npy("<f4", false, "(2, 2, 2)", &[0; 32]), &["shape (2, 2, 2)", "numpy.save"]);
    check("complex.npy", npy("<c8", false, "(2, 2)", &[0; 32]), &["\"<c8\""]);
    check("header.npy", b"\x93NUMPY\x01\x00\xff\x00{'descr'".to_vec(), &["inside the NPY header"]);
    check("stub.npy", b"\x93NUMPY".to_vec(), &["inside the NPY header"]);
    check("version.npy", b"\x93NUMPY\x09\x00\x00\x00".to_vec(), &["version 9"]);
    let gap = npy("<f4", false, "(2, 2)", &floats(&[1.0, 2.0, 3.0, f32::NAN]));
    check("gap.npy", gap, &["gap.npy, row 2, column 2 (column_2)", "`missing` drop"]);
    let infinite = npy("<f4", false, "(2, 2)", &floats(&[1.0, f32::INFINITY, 3.0, 4.0]));
    check("infinite.npy", infinite, &["row 1, column 2", "infinite"]);
    check("rows.npy", npy("<f4", false, "(0, 2)", &[]), &["rows.npy has no rows"]);
}

/// A small Parquet file with a column of words.
fn parquet_with_words(directory: &Path) -> PathBuf {
    use parquet::basic::{LogicalType, Repetition, Type as Physical};
    use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type;
    use std::sync::Arc;

    let word = Type::primitive_type_builder("name", Physical::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::String))
        .build()
        .unwrap();
    let number = Type::primitive_type_builder("x", Physical::FLOAT)
        .with_repetition(Repetition::REQUIRED)
        .build()
        .unwrap();
    let fields = vec![Arc::new(word), Arc::new(number)];
    let schema = Arc::new(Type::group_type_builder("t").with_fields(fields).build().unwrap());
    let path = directory.join("words.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    let words = [ByteArray::from("red"), ByteArray::from("blue")];
    column.typed::<ByteArrayType>().write_batch(&words, None, None).unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<FloatType>().write_batch(&[1.0, 2.0], None, None).unwrap();
    column.close().unwrap();
    rows.close().unwrap();
    writer.close().unwrap();
    path
}

#[test]
fn bad_parquet_files_are_named() {
    let directory = directory("bad_parquet");
    let plain = ReadOptions::default();
    let words = complaint(&parquet_with_words(&directory), &plain);
    assert!(words.contains("column 1 (name)") && words.contains("`columns` 2"), "{words}");
    let bytes = std::fs::read(directory.join("words.parquet")).unwrap();
    let cut = complaint(&file(&directory, "cut.parquet", &bytes[..bytes.len() / 2]), &plain);
    assert!(cut.contains("cut.parquet") && cut.contains("damaged"), "{cut}");
    let text = complaint(&file(&directory, "text.parquet", good()), &plain);
    assert!(text.contains("should be a Parquet file"), "{text}");
    let packed = file(&directory, "p.parquet.gz", compressed("gz", &bytes));
    assert!(complaint(&packed, &plain).contains("Unpack it first"));
    assert!(read(&directory.join("words.parquet"), &columns(&["x"])).is_ok());
}

#[test]
fn a_flipped_byte_or_a_cut_anywhere_never_panics() {
    let directory = directory("flipped");
    let values: Vec<f32> = (0..300).map(|i| (i as f32).sqrt()).collect();
    let table = Table::new(["a", "b", "c"].map(String::from).to_vec(), values);
    for name in ["t.csv", "t.npy", "t.parquet"] {
        write(&directory.join(name), &table).unwrap();
    }
    let text = std::fs::read(directory.join("t.csv")).unwrap();
    for ending in ["gz", "xz", "zst", "bz2"] {
        file(&directory, &format!("t.csv.{ending}"), compressed(ending, &text));
    }
    for name in ["t.csv", "t.npy", "t.parquet", "t.csv.gz", "t.csv.xz", "t.csv.zst", "t.csv.bz2"] {
        let good = std::fs::read(directory.join(name)).unwrap();
        let stride = (good.len() / 60).max(1);
        for (at, bit) in (0..good.len()).step_by(stride).zip((0..8).cycle()) {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            // A changed digit is still a number: reading may succeed, but must come back.
            let _ = read(&file(&directory, &format!("bad_{name}"), &bad), &Default::default());
        }
        for length in (0..good.len()).step_by(stride) {
            let cut = file(&directory, &format!("bad_{name}"), &good[..length]);
            let _ = read(&cut, &Default::default());
        }
    }
}

#[test]
fn bad_settings_name_themselves() {
    let mut table = Table::new(vec!["alpha".into()], vec![1.0, 2.0]);
    let settings = [("alpah".into(), 1.0)].into();
    let message = dequantise(&mut table, &settings, &mut rng(1)).unwrap_err().to_string();
    assert!(message.contains("no column alpah"), "{message}");
    let message = "alpha=0".parse::<Dequantise>().unwrap_err().to_string();
    assert!(message.contains("dequantise is alpha=0"), "{message}");
}
