//! Dates and times in ISO form, as numbers of days and seconds.

/// Days from 1970-01-01 to a date of the Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// The day of `2024-02-29`.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let number = |range| -> Option<i64> { digits(text.get(range)?) };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let found = days(year, month, day);
    // What is no date of the calendar comes back as another.
    ((1..=12).contains(&month) && date(found) == (year, month, day)).then_some(found)
}

/// Seconds from 1970-01-01 to `2024-02-29T17:05:30`, with a blank for the T, without the seconds, or with a Z at its end.
pub(super) fn parse_time(text: &str) -> Option<i64> {
    let day = parse_date(text.get(..10)?)?;
    let rest = text.get(10..)?;
    let clock = rest.strip_prefix(['T', ' '])?;
    let clock = clock.strip_suffix('Z').unwrap_or(clock);
    let mut parts = clock.split(':');
    let mut part =
        |most: i64| -> Option<i64> { digits(parts.next()?.get(..2)?).filter(|part| *part <= most) };
    let (hour, minute) = (part(23)?, part(59)?);
    let second = if clock.len() == 5 { 0 } else { part(59)? };
    let is_whole = clock.len() == 5 || clock.len() == 8;
    is_whole.then_some(((day * 24 + hour) * 60 + minute) * 60 + second)
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A day as it is written.
pub(super) fn date_text(day: i64) -> String {
    let (year, month, day) = date(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A second as it is written.
pub(super) fn time_text(second: i64) -> String {
    let (day, rest) = (second.div_euclid(86_400), second.rem_euclid(86_400));
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}", date_text(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_four_centuries_goes_there_and_back() {
        assert_eq!(parse_date("1970-01-01"), Some(0));
        assert_eq!(parse_date("2000-03-01"), Some(11_017));
        for day in -100_000..100_000 {
            assert_eq!(parse_date(&date_text(day)), Some(day));
        }
        for wrong in
            ["2023-02-29", "2024-13-01", "2024-1-01", "24-01-2024", "2024-00-10", "2024/01/02"]
        {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_seconds_with_or_without_a_t() {
        assert_eq!(parse_time("1970-01-02T00:00:01"), Some(86_401));
        assert_eq!(parse_time("1970-01-01 00:02"), Some(120));
        assert_eq!(parse_time("1970-01-01T00:00:30Z"), Some(30));
        assert_eq!(time_text(parse_time("2024-02-29T23:59:58").unwrap()), "2024-02-29T23:59:58");
        for wrong in ["1970-01-01", "1970-01-01T24:00", "1970-01-01T10:61:00", "1970-01-01T1:00:00"]
        {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }
}
