//! Where an axis has ticks, and what they say.

/// One tick: a major one has a label, a minor one has none.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// First on the scale's own terms (logarithms on a log axis), then between 0 and 1.
    pub position: f64,
    pub label: Option<String>,
}

/// Slack for ticks at the very ends, relative to the axis' span.
const SLACK: f64 = 1e-9;

/// Ticks at multiples of 1, 2 or 5 times a power of ten: at most about `room` of them, but three in any case.
pub(super) fn linear_ticks(low: f64, high: f64, room: usize) -> Vec<Tick> {
    const ENOUGH: usize = 3;
    let widest = (high - low) / room.max(1) as f64;
    // Each factor makes the step one size smaller, or two.
    let steps = [1.0, 0.5, 0.25].map(|factor| round_step(widest * factor));
    let step = steps
        .into_iter()
        .find(|&step| multiples(low, high, step).len() >= ENOUGH)
        .unwrap_or(steps[2]);
    multiples(low, high, step)
        .into_iter()
        .map(|value| Tick { position: value, label: Some(linear_label(value, step)) })
        .collect()
}

/// Ticks in the middle of as many equal parts as there are names; some are left out where there is no room for all.
pub(super) fn named_ticks(names: &[String], room: usize) -> Vec<Tick> {
    let every = names.len().div_ceil(room.max(1)).max(1);
    let position = |index: usize| (index as f64 + 0.5) / names.len() as f64;
    let tick = |(index, name): (usize, &String)| Tick {
        position: position(index),
        label: Some(name.clone()),
    };
    names.iter().enumerate().step_by(every).map(tick).collect()
}

/// Ticks from the exponent `low` to the exponent `high`: powers of ten with labels, and 2 to 9 times them without.
///
/// Where fewer than two powers of ten fit, other round values get the labels.
pub(super) fn log_ticks(low: f64, high: f64, room: usize) -> Vec<Tick> {
    let slack = SLACK * (high - low);
    let exponents = low.floor() as i32..=(high + slack).floor() as i32;
    let multiples = exponents.flat_map(|exponent| (1..10).map(move |digit| (exponent, digit)));
    let mut ticks: Vec<(i32, i32, f64)> = multiples
        .map(|(exponent, digit)| (exponent, digit, f64::from(exponent) + f64::from(digit).log10()))
        .filter(|(_, _, position)| (low - slack..=high + slack).contains(position))
        .collect();
    let count =
        |digits: &[i32]| ticks.iter().filter(|(_, digit, _)| digits.contains(digit)).count();
    let (decades, round) = (count(&[1]), count(&[1, 2, 5]));
    if round < 2 {
        // Less than a factor of about two: the axis is as good as linear.
        return linear_ticks(10f64.powf(low), 10f64.powf(high), room)
            .into_iter()
            .map(|tick| Tick { position: tick.position.log10(), ..tick })
            .collect();
    }
    let every = decades.div_ceil(room.max(2)) as i32;
    if every > 1 {
        // Only with labels at every decade is there room for the minor ticks as well.
        ticks.retain(|(_, digit, _)| *digit == 1);
    }
    let label = |exponent: i32, digit: i32| match digit {
        1 if decades > 1 => (exponent.rem_euclid(every) == 0)
            .then(|| format!("10^{{{exponent}}}").replace('-', "−")),
        1 | 2 | 5 if decades < 2 => {
            let power = 10f64.powi(exponent);
            Some(linear_label(f64::from(digit) * power, power))
        }
        _ => None,
    };
    ticks
        .into_iter()
        .map(|(exponent, digit, position)| Tick { position, label: label(exponent, digit) })
        .collect()
}

/// The multiples of `step` within the axis.
fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let slack = SLACK * (high - low);
    let first = ((low - slack) / step).ceil() as i64;
    let last = ((high + slack) / step).floor() as i64;
    (first..=last).map(|multiple| multiple as f64 * step).collect()
}

/// The least of 1, 2 and 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|&round| round >= step * (1.0 - SLACK))
        .unwrap_or(step)
}

/// A value with as many decimals as its step needs, or in powers of ten when it is very large or small.
fn linear_label(value: f64, step: f64) -> String {
    let exponent = step.abs().log10().floor() as i32;
    if value == 0.0 {
        "0".into()
    } else if !(-4..5).contains(&exponent) {
        let digits = (value.abs().log10().floor() as i32 - exponent).clamp(0, 15) as usize;
        let scientific = format!("{value:.digits$e}");
        let (mantissa, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        format!("{}·10^{{{}}}", mantissa.replace('-', "−"), power.replace('-', "−"))
    } else {
        format!("{value:.*}", (-exponent).max(0) as usize).replace('-', "−")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().filter_map(|tick| tick.label.as_deref()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_few() {
        assert_eq!(labels(&linear_ticks(0.0, 500.0, 5)), ["0", "100", "200", "300", "400", "500"]);
        assert_eq!(labels(&linear_ticks(-0.13, 0.31, 4)), ["−0.1", "0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(&linear_ticks(-3.2, 3.2, 2)), ["−2", "0", "2"]);
        assert_eq!(labels(&linear_ticks(-1.0, 1.0, 4)), ["−1.0", "−0.5", "0", "0.5", "1.0"]);
        assert_eq!(labels(&linear_ticks(0.0, 3e6, 3)), ["0", "1·10^{6}", "2·10^{6}", "3·10^{6}"]);
    }

    #[test]
    fn powers_of_ten_have_labels_and_their_multiples_have_not() {
        let ticks = log_ticks(-3.0, 1.301, 6);
        assert_eq!(labels(&ticks), ["10^{−3}", "10^{−2}", "10^{−1}", "10^{0}", "10^{1}"]);
        // Eight minor ticks in each of four decades; 20 is just beyond the end, 10^1.301 = 19.9986.
        assert_eq!(ticks.len(), 5 + 4 * 8);
        assert!(ticks.iter().all(|tick| (-3.0..=1.301).contains(&tick.position)));
    }

    #[test]
    fn names_stand_in_the_middle_of_their_parts_and_some_are_left_out_where_there_is_no_room() {
        let names = ["a", "b", "c", "d"].map(String::from);
        let places =
            |room| named_ticks(&names, room).iter().map(|t| t.position).collect::<Vec<_>>();
        assert_eq!(places(4), [0.125, 0.375, 0.625, 0.875]);
        assert_eq!(places(3), [0.125, 0.625]);
        assert_eq!(labels(&named_ticks(&names, 3)), ["a", "c"]);
        assert!(named_ticks(&[], 3).is_empty());
    }

    #[test]
    fn many_decades_have_labels_at_some_of_them() {
        assert_eq!(
            labels(&log_ticks(-8.0, 8.0, 5)),
            ["10^{−8}", "10^{−4}", "10^{0}", "10^{4}", "10^{8}"]
        );
    }

    #[test]
    fn a_narrow_log_axis_still_has_two_labels() {
        assert_eq!(labels(&log_ticks(0.2, 1.2, 5)), ["2", "5", "10"]);
        assert_eq!(labels(&log_ticks(30f64.log10(), 44f64.log10(), 5)).len(), 3);
    }
}
