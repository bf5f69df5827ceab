//! A column that names rows instead of measuring something.

/// 32-bit floats above this are whole numbers whatever they were.
const ALL_WHOLE: f32 = 16_777_216.0;

/// Whether a column counts the rows.
pub(crate) fn is_counter(mut cells: impl Iterator<Item = f32>) -> bool {
    let Some(first) = cells.next().map(f64::from) else { return false };
    (1..).zip(cells).all(|(row, value)| f64::from(value) == first + f64::from(row))
}

/// Whether a column of whole numbers is different in every row, and named, sorted or packed like an identifier.
pub(crate) fn is_identifier(name: &str, column: impl Iterator<Item = f32> + Clone) -> bool {
    if column.clone().any(|value| value.fract() != 0.0) {
        return false;
    }
    let values: Vec<f32> = column.filter(|value| !value.is_nan()).collect();
    let is_sorted = values.is_sorted() || values.iter().rev().is_sorted();
    let mut ordered = values;
    ordered.sort_unstable_by(f32::total_cmp);
    if ordered.len() < 2 || ordered.windows(2).any(|pair| pair[0] == pair[1]) {
        return false;
    }
    let (first, last) = (ordered[0], ordered[ordered.len() - 1]);
    let is_packed = last - first < 2.0 * ordered.len() as f32;
    let are_whole = first.abs().max(last.abs()) < ALL_WHOLE;
    is_named_so(name) || are_whole && (is_sorted || is_packed)
}

/// Whether a name says that the column names rows.
pub(crate) fn is_named_so(name: &str) -> bool {
    let lower = name.to_lowercase();
    let names = ["id", "index", "idx", "key", "row", "rowid", "row number", "unnamed: 0"];
    names.contains(&lower.as_str())
        || ["_id", " id", "-id", ".id"].iter().any(|ending| lower.ends_with(ending))
        || name.ends_with("Id")
        || name.ends_with("ID")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(name: &str, value: fn(u32) -> u32) -> bool {
        is_identifier(name, (0..100).map(|row| value(row) as f32))
    }

    #[test]
    fn names_order_and_density_give_an_identifier_away() {
        assert!(is("x", |row| (row * 37) % 100), "shuffled and packed");
        assert!(is("x", |row| 7 * row + 3), "sorted, with gaps");
        assert!(is("customer_id", |row| (row * 7919) % 100_003));
        assert!(is("customerId", |row| 30_000_000 + 64 * ((row * 37) % 100)));
    }

    #[test]
    fn measures_are_none() {
        assert!(!is("population", |row| (row * 7919) % 100_003), "different, but nothing else");
        assert!(!is("id", |row| row % 10), "of groups, not of rows");
        assert!(!is_identifier("id", (0..100).map(|row| row as f32 + 0.5)));
    }
}
