//! The columns a user chooses, by name, by position or by a range of positions.

use std::path::Path;

use super::error::{Error, Result};
use super::kinds::{ColumnKind, Kind};
use super::nearest::{listing, nearest};
use super::options::ReadOptions;

/// One column that is read: where it stands in the file (from 0), and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) index: usize,
    pub(crate) name: String,
}

/// Names for columns that have none; a blank name in a header is replaced in the same way.
pub(crate) fn numbered(index: usize) -> String {
    format!("column_{}", index + 1)
}

/// The columns to read, in the order in which they were asked for.
pub(crate) fn choose(file: &Path, names: &[String], options: &ReadOptions) -> Result<Vec<Column>> {
    let model = &options.model_columns;
    if model.is_empty() {
        return choose_freely(file, names, options);
    }
    let unnamed = names.iter().enumerate().all(|(index, name)| *name == numbered(index));
    let by_name = options.columns.is_empty() && options.without.is_empty() && !unnamed;
    if options.partial && !unnamed {
        let place = |name: &String| names.iter().position(|known| known == name);
        let found = model.iter().filter_map(|name| Some((place(name)?, name)));
        let found: Vec<Column> =
            found.map(|(index, name)| Column { index, name: name.clone() }).collect();
        return match found.is_empty() {
            true => Err(Error::OtherColumns {
                file: file.into(),
                found: 0,
                model: model.len(),
                names: listing(model.iter().map(String::as_str)),
            }),
            false => Ok(found),
        };
    }
    let mut columns = match by_name {
        true => choose_freely(
            file,
            names,
            &ReadOptions { columns: model.clone(), ..ReadOptions::default() },
        ),
        // As the columns of the fit stood, where nothing says otherwise.
        false if options.columns.is_empty() && names.len() == options.model_kinds.len() => {
            let place = |name: &String| {
                let known = options.model_kinds.iter().position(|kind| kind.name == *name);
                known.map(|index| Column { index, name: names[index].clone() })
            };
            Ok(model.iter().filter_map(place).collect())
        }
        false => choose_freely(file, names, options),
    }?;
    if columns.len() != model.len() {
        return Err(Error::OtherColumns {
            file: file.into(),
            found: columns.len(),
            model: model.len(),
            names: listing(model.iter().map(String::as_str)),
        });
    }
    for (column, name) in columns.iter_mut().zip(model) {
        column.name.clone_from(name);
    }
    Ok(columns)
}

/// The columns to carry along, beside those that are chosen.
pub(crate) fn carried(
    file: &Path,
    names: &[String],
    options: &ReadOptions,
    chosen: &[Column],
) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    if options.carry_every {
        let name = |index: usize| {
            let chosen = chosen.iter().find(|column| column.index == index);
            chosen.map_or_else(|| names[index].clone(), |column| column.name.clone())
        };
        return Ok((0..names.len()).map(|index| Column { index, name: name(index) }).collect());
    }
    if options.carry_identifiers && options.carry.is_empty() {
        let identifiers = options.model_kinds.iter().filter(|kind| kind.kind == Kind::Identifier);
        let place = |kind: &ColumnKind| names.iter().position(|name| *name == kind.name);
        found.extend(identifiers.filter_map(place));
    }
    for entry in &options.carry {
        let is_name = names.iter().any(|name| name == entry);
        match entry.as_str() {
            "all" if !is_name => {
                let is_free = |index: &usize| chosen.iter().all(|column| column.index != *index);
                found.extend((0..names.len()).filter(is_free));
            }
            "none" if !is_name => {}
            entry => found.extend(find(file, names, entry)?),
        }
    }
    Ok(found.into_iter().map(|index| Column { index, name: names[index].clone() }).collect())
}

fn choose_freely(file: &Path, names: &[String], options: &ReadOptions) -> Result<Vec<Column>> {
    let mut chosen = Vec::new();
    if options.columns.is_empty() {
        chosen.extend(0..names.len());
    }
    for entry in &options.columns {
        for index in find(file, names, entry)? {
            if chosen.contains(&index) {
                let name = names[index].clone();
                return Err(Error::ChosenTwice { file: file.into(), name, position: index + 1 });
            }
            chosen.push(index);
        }
    }
    for entry in &options.without {
        let out = find(file, names, entry)?;
        chosen.retain(|index| !out.contains(index));
    }
    if chosen.is_empty() {
        return Err(Error::NoColumns { file: file.into() });
    }
    let mut by_name: Vec<usize> = chosen.clone();
    by_name.sort_by_key(|&index| (&names[index], index));
    if let Some(pair) = by_name.windows(2).find(|pair| names[pair[0]] == names[pair[1]]) {
        return Err(duplicate(file, names, pair[0], pair[1]));
    }
    Ok(chosen.into_iter().map(|index| Column { index, name: names[index].clone() }).collect())
}

/// Positions as a user would type them: `1,3-9`.
pub(crate) fn ranges(indices: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &index in indices {
        match parts.last_mut() {
            Some((_, last)) if *last == index => *last += 1,
            _ => parts.push((index + 1, index + 1)),
        }
    }
    let part = |(first, last): (usize, usize)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    parts.into_iter().map(part).collect::<Vec<_>>().join(",")
}

/// The columns that one entry of `--columns` means.
fn find(file: &Path, names: &[String], entry: &str) -> Result<Vec<usize>> {
    let entry = entry.trim();
    let mut named = (0..names.len()).filter(|&index| names[index] == entry);
    if let Some(index) = named.next() {
        return match named.next() {
            Some(second) => Err(duplicate(file, names, index, second)),
            None => Ok(vec![index]),
        };
    }
    let outside = || Error::PositionOutOfRange {
        file: file.into(),
        given: entry.into(),
        columns: names.len(),
    };
    let (first, last) = match entry.split_once('-') {
        Some((first, last)) => (first.parse::<usize>(), last.parse::<usize>()),
        None => (entry.parse(), entry.parse()),
    };
    match (first, last) {
        (Ok(first), Ok(last)) if 1 <= first && first <= last && last <= names.len() => {
            Ok((first - 1..last).collect())
        }
        (Ok(_), Ok(_)) => Err(outside()),
        _ => Err(Error::UnknownColumn {
            file: file.display().to_string(),
            name: entry.into(),
            nearest: nearest(entry, names.iter().map(String::as_str)),
            available: listing(names.iter().map(String::as_str)),
        }),
    }
}

fn duplicate(file: &Path, names: &[String], first: usize, second: usize) -> Error {
    let name = names[first].clone();
    Error::DuplicateName { file: file.into(), name, first: first + 1, second: second + 1 }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::{ColumnKind, Kind};
    use super::*;

    fn chosen(columns: &[&str], without: &[&str]) -> Result<Vec<usize>> {
        let names = ["Date", "x", "y", "z", "x", "3"].map(String::from);
        let options = ReadOptions {
            columns: columns.iter().map(|s| s.to_string()).collect(),
            without: without.iter().map(|s| s.to_string()).collect(),
            ..Default::default()
        };
        choose(Path::new("t.csv"), &names, &options)
            .map(|columns| columns.iter().map(|column| column.index).collect())
    }

    #[test]
    fn names_positions_and_ranges_may_be_mixed_and_keep_their_order() {
        assert_eq!(chosen(&["z", "1", "2-3"], &[]).unwrap(), [3, 0, 1, 2]);
        assert_eq!(chosen(&["1-5"], &["Date", "5"]).unwrap(), [1, 2, 3]);
        // A column that is named 3 wins over the third column.
        assert_eq!(chosen(&["3"], &[]).unwrap(), [5]);
    }

    #[test]
    fn what_cannot_be_chosen_is_an_error() {
        assert!(matches!(chosen(&[], &[]), Err(Error::DuplicateName { first: 2, second: 5, .. })));
        assert!(matches!(chosen(&["x"], &[]), Err(Error::DuplicateName { .. })));
        assert!(matches!(chosen(&["0"], &[]), Err(Error::PositionOutOfRange { .. })));
        assert!(matches!(chosen(&["4-9"], &[]), Err(Error::PositionOutOfRange { .. })));
        assert!(matches!(chosen(&["y", "y"], &[]), Err(Error::ChosenTwice { .. })));
        assert!(matches!(chosen(&["y"], &["y"]), Err(Error::NoColumns { .. })));
        let message = chosen(&["dat"], &[]).unwrap_err().to_string();
        assert!(message.contains("Did you mean Date?"), "{message}");
    }

    #[test]
    fn the_columns_of_a_model_are_found_by_name_or_else_by_position() {
        let columns = |names: &[&str], chosen: &[&str]| {
            let names: Vec<String> = names.iter().map(|s| s.to_string()).collect();
            let options = ReadOptions {
                columns: chosen.iter().map(|s| s.to_string()).collect(),
                model_columns: vec!["a".into(), "b".into()],
                ..Default::default()
            };
            choose(Path::new("t.csv"), &names, &options)
                .map(|columns| columns.into_iter().map(|c| (c.index, c.name)).collect::<Vec<_>>())
        };
        let expect = |first: usize, second: usize| vec![(first, "a".into()), (second, "b".into())];
        assert_eq!(columns(&["id", "b", "a"], &[]).unwrap(), expect(2, 1));
        let carried = |carry: &[&str]| {
            let names = ["id", "b", "a", "date"].map(String::from);
            let carry = carry.iter().map(|s| s.to_string()).collect();
            let model_kinds = vec![
                ColumnKind::new("a", Kind::Continuous),
                ColumnKind::new("date", Kind::Identifier),
                ColumnKind::new("elsewhere", Kind::Identifier),
            ];
            let carry_identifiers = true;
            let options =
                ReadOptions { carry, carry_identifiers, model_kinds, ..Default::default() };
            let chosen = [2, 1].map(|index| Column { index, name: String::new() });
            super::carried(Path::new("t.csv"), &names, &options, &chosen)
                .map(|columns| columns.into_iter().map(|c| c.index).collect::<Vec<_>>())
        };
        assert_eq!(carried(&["all"]).unwrap(), [0, 3]);
        assert_eq!(carried(&["date", "2"]).unwrap(), [3, 1]);
        assert_eq!(carried(&[]).unwrap(), [3], "what the fit found to be an identifier");
        assert_eq!(carried(&["none"]).unwrap(), [0; 0]);
        assert!(carried(&["nobody"]).is_err());
        assert_eq!(columns(&["column_1", "column_2"], &[]).unwrap(), expect(0, 1));
        // As the columns stood in the table of the fit, in whatever order the model has them.
        let kind = |name: &str| ColumnKind::new(name, Kind::Continuous);
        let options = ReadOptions {
            model_columns: vec!["b".into(), "a".into()],
            model_kinds: vec![kind("a"), kind("b")],
            ..Default::default()
        };
        let unnamed = ["column_1", "column_2"].map(String::from);
        let found = choose(Path::new("t.csv"), &unnamed, &options).unwrap();
        assert_eq!(found.iter().map(|column| column.index).collect::<Vec<_>>(), [1, 0]);
        let partial = ReadOptions { partial: true, ..options };
        let found = choose(Path::new("t.csv"), &["x", "b"].map(String::from), &partial).unwrap();
        assert_eq!((found.len(), found[0].index), (1, 1));
        assert!(choose(Path::new("t.csv"), &["x", "y"].map(String::from), &partial).is_err());
        assert_eq!(columns(&["u", "v", "w"], &["w", "1"]).unwrap(), expect(2, 0));
        let wrong = columns(&["a", "c"], &[]).unwrap_err().to_string();
        assert!(wrong.contains("no column b"), "{wrong}");
        let three = ["column_1", "column_2", "column_3"];
        let wrong = columns(&three, &[]).unwrap_err().to_string();
        assert!(wrong.contains("3 columns") && wrong.contains("a, b"), "{wrong}");
    }

    #[test]
    fn positions_are_written_as_they_would_be_typed() {
        assert_eq!(ranges(&[2, 3, 4, 5, 7, 8, 10]), "3-6,8,9,11");
    }
}
