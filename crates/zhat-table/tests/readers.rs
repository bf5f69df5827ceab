//! The same table gives the same values through every format, compression and order.

mod common;

use std::path::Path;

use common::{compressed, directory, file, npy, rng};
use rand_distr::{Distribution, StandardNormal};
use zhat_table::data::{
    Format, Header, Missing, Precision, ReadOptions, Source, Table, TableWriter, read, write,
};

const ROWS: usize = 1000;

/// Numbers of many sizes, of which the third column is not representable in 32 bits.
fn numbers() -> Vec<[f64; 3]> {
    let mut rng = rng(5);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    (0..ROWS).map(|_| [normal(), 1e-6 * normal(), 1e5 + normal()]).collect()
}

fn csv(rows: &[[f64; 3]], delimiter: &str) -> String {
    let mut text = ["a", "b", "c"].join(delimiter) + "\n";
    for row in rows {
        text += &(row.map(|value| value.to_string()).join(delimiter) + "\n");
    }
    text
}

fn expected() -> Vec<f32> {
    numbers().iter().flatten().map(|&value| value as f32).collect()
}

fn values(path: &Path) -> Vec<f32> {
    read(path, &ReadOptions::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .table
        .into_values()
}

#[test]
fn text_gives_the_same_values_for_every_separator_and_compression() {
    let directory = directory("text_formats");
    for delimiter in [",", ";", "\t", "|", " ", "   "] {
        let path = file(&directory, "table.csv", csv(&numbers(), delimiter));
        assert_eq!(values(&path), expected(), "{delimiter:?}");
        if delimiter != "," {
            let path = file(&directory, "commas.csv", csv(&numbers(), delimiter).replace('.', ","));
            assert_eq!(values(&path), expected(), "{delimiter:?} with decimal commas");
        }
    }
    let text = csv(&numbers(), ",");
    for ending in ["gz", "xz", "zst", "bz2"] {
        let bytes = compressed(ending, text.as_bytes());
        let path = file(&directory, &format!("table.csv.{ending}"), &bytes);
        assert_eq!(values(&path), expected(), "{ending}");
        // Two streams one after the other are one file, and the first bytes count, not the name.
        let cut = text.len() / 2;
        let two = [
            compressed(ending, &text.as_bytes()[..cut]),
            compressed(ending, &text.as_bytes()[cut..]),
        ];
        let path = file(&directory, &format!("two_{ending}.csv"), two.concat());
        assert_eq!(values(&path), expected(), "{ending} twice");
    }
}

#[test]
fn arrays_give_the_same_values_for_every_type_and_order() {
    let directory = directory("array_formats");
    let rows = numbers();
    let by_row: Vec<f64> = rows.iter().flatten().copied().collect();
    let by_column: Vec<f64> =
        (0..3).flat_map(|column| rows.iter().map(move |row| row[column])).collect();
    for (values_in_order, column_order) in [(by_row, false), (by_column, true)] {
        let single: Vec<u8> =
            values_in_order.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect();
        let double: Vec<u8> =
            values_in_order.iter().flat_map(|value| value.to_le_bytes()).collect();
        let big: Vec<u8> = values_in_order.iter().flat_map(|value| value.to_be_bytes()).collect();
        for (descr, bytes) in [("<f4", single), ("<f8", double), (">f8", big)] {
            let bytes = npy(descr, column_order, "(1000, 3)", &bytes);
            let path = file(&directory, "table.npy", &bytes);
            assert_eq!(values(&path), expected(), "{descr} {column_order}");
            let path = file(&directory, "table.npy.gz", compressed("gz", &bytes));
            assert_eq!(values(&path), expected(), "{descr} {column_order} compressed");
        }
    }
    let bytes: Vec<u8> = [-3i16, 5, 700].iter().flat_map(|value| value.to_le_bytes()).collect();
    let path = file(&directory, "integers.npy", npy("<i2", false, "(3,)", &bytes));
    assert_eq!(values(&path), [-3.0, 5.0, 700.0]);
}

#[test]
fn what_is_written_is_read_back_bit_for_bit() {
    let directory = directory("round_trip");
    let names = ["a", "with, comma", "c"].map(String::from).to_vec();
    let table = Table::new(names, expected());
    for name in ["table.csv", "table.tsv", "table.npy", "table.parquet"] {
        let path = directory.join(name);
        write(&path, &table).unwrap();
        let back = read(&path, &ReadOptions::default()).unwrap().table;
        assert_eq!(back.values(), table.values(), "{name}");
        if name != "table.npy" {
            assert_eq!(back.hash(), table.hash(), "{name}");
        }
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 4, "no temporary file is left");
}

#[test]
fn a_table_that_is_not_finished_leaves_the_old_file_and_no_other() {
    let directory = directory("failed_write");
    let path = file(&directory, "old.csv", "old");
    let mut writer = TableWriter::create(&path, &["a".into()], Precision::Single).unwrap();
    writer.rows(&[1.0; 100_000]).unwrap();
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 2);
    drop(writer);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
    assert!(
        write(&directory.join("no/such/place.csv"), &Table::new(vec!["a".into()], vec![])).is_err()
    );
}

#[test]
fn columns_rows_and_missing_cells_are_chosen_the_same_way_in_every_format() {
    let directory = directory("choices");
    let table = Table::new(
        ["column_1", "column_2", "column_3"].map(String::from).to_vec(),
        vec![1.0, 2.0, 3.0, 4.0, f32::NAN, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0],
    );
    for name in ["t.csv", "t.npy", "t.parquet"] {
        let path = directory.join(name);
        write(&path, &table).unwrap();
        let with = |columns: &[&str], missing, max_rows| {
            let columns = columns.iter().map(|name| name.to_string()).collect();
            let options = ReadOptions { columns, missing, max_rows, ..Default::default() };
            let reading = read(&path, &options).unwrap();
            (reading.table.into_values(), reading.dropped_rows)
        };
        let (kept, dropped) = with(&["3", "column_2"], Missing::Drop, Some(2));
        assert_eq!((kept, dropped), (vec![3.0, 2.0, 9.0, 8.0], 1), "{name}");
        assert_eq!(with(&["1"], Missing::Refuse, None).0, [1.0, 4.0, 7.0, 10.0], "{name}");
        let kept = with(&["2-3"], Missing::Keep, None).0;
        assert!(kept[2].is_nan() && kept.len() == 8, "{name}");
    }
}

#[test]
fn text_in_parquet_is_read_as_words_where_words_are_wanted() {
    use parquet::basic::{LogicalType, Repetition, Type as Physical};
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type;
    use std::sync::Arc;
    use zhat_table::data::{Asked, Kind, Source};

    let directory = directory("parquet_text");
    let path = directory.join("t.parquet");
    let text = Type::primitive_type_builder("colour", Physical::BYTE_ARRAY)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::String));
    let number =
        Type::primitive_type_builder("x", Physical::DOUBLE).with_repetition(Repetition::REQUIRED);
    let fields = vec![Arc::new(text.build().unwrap()), Arc::new(number.build().unwrap())];
    let schema = Arc::new(Type::group_type_builder("t").with_fields(fields).build().unwrap());
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let words = ["red", "green", "blue"];
    let mut rows = writer.next_row_group().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    let cells: Vec<ByteArray> = (0..59).map(|row| ByteArray::from(words[row % 3])).collect();
    let mut levels = vec![1; 60];
    levels[59] = 0;
    column.typed::<ByteArrayType>().write_batch(&cells, Some(&levels), None).unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    let numbers: Vec<f64> = (0..60).map(|row| (f64::from(row) * 0.618).fract()).collect();
    column.typed::<DoubleType>().write_batch(&numbers, None, None).unwrap();
    column.close().unwrap();
    rows.close().unwrap();
    writer.close().unwrap();
    let refused = read(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("colour"), "{refused}");
    let asked = Asked { kinds: Some(Default::default()), ..Asked::default() };
    let source = Source::parse(path.to_str().unwrap()).unwrap();
    let options = ReadOptions::default();
    let mut loaded =
        source.load_watched(&options, &asked, &mut common::rng(1), &Default::default()).unwrap();
    loaded.settle_levels(&(0..60).collect::<Vec<_>>());
    let Kind::Categorical { levels } = &loaded.kinds[0].kind else { panic!("words") };
    assert_eq!(levels, &["blue", "green", "red", "other"]);
    let codes: Vec<f32> = loaded.table.column(0).collect();
    assert_eq!(codes[..3], [2.0, 1.0, 0.0]);
    assert!(codes[59].is_nan());
    // As a model's own words, whatever their order here.
    let model = ReadOptions {
        model_columns: vec!["colour".into(), "x".into()],
        model_kinds: loaded.kinds.clone(),
        missing: Missing::Keep,
        ..Default::default()
    };
    assert_eq!(read(&path, &model).unwrap().table.column(0).collect::<Vec<_>>()[..59], codes[..59]);
}

#[test]
fn nullable_and_integer_parquet_columns_are_read() {
    use parquet::basic::{LogicalType, Repetition, Type as Physical};
    use parquet::data_type::{DoubleType, Int32Type, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type;
    use std::sync::Arc;

    let directory = directory("parquet_types");
    let path = directory.join("t.parquet");
    let field = |name: &'static str, kind, repetition| {
        Type::primitive_type_builder(name, kind).with_repetition(repetition)
    };
    let unsigned = LogicalType::integer(32, false);
    let fields = vec![
        Arc::new(field("d", Physical::DOUBLE, Repetition::OPTIONAL).build().unwrap()),
        Arc::new(field("i", Physical::INT64, Repetition::REQUIRED).build().unwrap()),
        Arc::new(
            field("u", Physical::INT32, Repetition::REQUIRED)
                .with_logical_type(Some(unsigned))
                .build()
                .unwrap(),
        ),
    ];
    let schema = Arc::new(Type::group_type_builder("t").with_fields(fields).build().unwrap());
    let mut writer = SerializedFileWriter::new(
        std::fs::File::create(&path).unwrap(),
        schema,
        Default::default(),
    )
    .unwrap();
    for group in 0..2i64 {
        let mut rows = writer.next_row_group().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        // The first group has no value at all in this column.
        let (values, levels): (&[f64], [i16; 3]) =
            if group == 0 { (&[], [0, 0, 0]) } else { (&[0.5, 1.5], [1, 0, 1]) };
        column.typed::<DoubleType>().write_batch(values, Some(&levels), None).unwrap();
        column.close().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[-1, 0, group], None, None).unwrap();
        column.close().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[-1, 2, 3], None, None).unwrap();
        column.close().unwrap();
        rows.close().unwrap();
    }
    writer.close().unwrap();
    let options = ReadOptions { missing: Missing::Drop, ..Default::default() };
    let reading = read(&path, &options).unwrap();
    assert_eq!(reading.dropped_rows, 4);
    assert_eq!(reading.table.values(), [0.5, -1.0, 4_294_967_295f64 as f32, 1.5, 1.0, 3.0]);
}

#[test]
fn odd_but_honest_text_is_read() {
    let directory = directory("odd_text");
    let read_with = |text: &str, options: ReadOptions| {
        let table = read(&file(&directory, "t.csv", text), &options).unwrap().table;
        (table.columns().to_vec(), table.into_values())
    };
    let plain = |text: &str| read_with(text, ReadOptions::default());
    let (names, values) = plain("\u{feff}\"x, y\" , z\r\n\"1\", 2 \r\n\r\n3,4\r\n   \r\n");
    assert_eq!((names, values), (vec!["x, y".into(), "z".into()], vec![1.0, 2.0, 3.0, 4.0]));
    assert_eq!(plain(",a\n0,1\n").0, ["column_1", "a"]);
    assert_eq!(plain("1,2\n3,4").1, [1.0, 2.0, 3.0, 4.0]);
    let header = ReadOptions { header: Header::Yes, ..Default::default() };
    assert_eq!(read_with("2019,2020\n3,4", header).0, ["2019", "2020"]);
    let forced =
        ReadOptions { delimiter: Some(';'), format: Some(Format::Csv), ..Default::default() };
    assert_eq!(read_with("a;b\n1;2\n", forced).1, [1.0, 2.0]);
}

#[test]
fn options_survive_json_and_unknown_ones_are_refused() {
    let options = ReadOptions {
        columns: vec!["a".into(), "3-5".into()],
        delimiter: Some(';'),
        missing: Missing::Drop,
        ..Default::default()
    };
    let text = serde_json::to_string(&options).unwrap();
    assert_eq!(serde_json::from_str::<ReadOptions>(&text).unwrap(), options);
    assert!(serde_json::from_str::<ReadOptions>("{\"colums\": []}").is_err());
}

#[test]
fn a_source_is_a_built_in_set_or_a_file() {
    let directory = directory("source");
    let path = file(&directory, "t.csv", csv(&numbers(), ","));
    let options = ReadOptions { columns: vec!["a".into(), "b".into()], ..Default::default() };
    let loaded =
        Source::parse(path.to_str().unwrap()).unwrap().load(&options, &mut rng(1)).unwrap();
    assert!(loaded.truth.is_none() && loaded.warnings.is_empty());
    assert_eq!(loaded.table.columns(), ["a", "b"]);
    let options = ReadOptions { max_rows: Some(500), ..Default::default() };
    let load = |options: &ReadOptions| {
        Source::parse("builtin:mixture-5").unwrap().load(options, &mut rng(1)).unwrap()
    };
    let loaded = load(&options);
    assert_eq!((loaded.table.rows(), loaded.table.dimension()), (500, 5));
    assert_eq!(loaded.truth.unwrap().name(), "mixture-5");
    let options = ReadOptions { columns: vec!["x2".into(), "x1".into()], ..options };
    assert!(load(&options).truth.is_none(), "the density of some columns is another one");
}
