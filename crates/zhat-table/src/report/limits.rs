//! Ends of an axis that show where a curve is best, and not only how bad it was at first.

/// How far the axis goes beyond the best value, in distances from there to the median: a curve spends most of its steps near its end.
const REACH: f64 = 4.0;

/// Ends of the y axis for a curve that is to become high; none where it says nothing. Those of another curve beside it may make them
/// twice as far apart, and no more.
pub(super) fn of_rising(curve: &[(f64, f64)], beside: &[(f64, f64)]) -> Option<(f64, f64)> {
    let [one, other] = [curve, beside].map(|points| readable(points.iter().map(|point| point.1)));
    let (low, high) = match (one, other) {
        (Some((low, high)), Some((lower, higher))) => {
            let top = high.max(higher);
            (low.min(lower).max(top - 2.0 * (top - low)), top)
        }
        (one, other) => one.or(other)?,
    };
    let margin = 0.05 * (high - low);
    (margin > 0.0).then_some((low - margin, high + margin))
}

/// The same for one that is to become low.
pub(super) fn of_falling(curve: &[(f64, f64)], beside: &[(f64, f64)]) -> Option<(f64, f64)> {
    let negative = |points: &[(f64, f64)]| points.iter().map(|(x, y)| (*x, -y)).collect::<Vec<_>>();
    of_rising(&negative(curve), &negative(beside)).map(|(low, high)| (-high, -low))
}

/// From the best value down to where the curve is readable.
fn readable(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (least, best) = (*sorted.first()?, *sorted.last()?);
    let reach = REACH * (best - sorted[sorted.len() / 2]);
    let low = if reach > 0.0 { least.max(best - reach) } else { least };
    Some((low, best))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: &[f64]) -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(step, value)| (step as f64, *value)).collect()
    }

    #[test]
    fn terrible_first_values_do_not_squeeze_the_rest() {
        let points = curve(&[-1e6, -900.0, -5.0, -4.2, -4.1, -4.0, -4.05]);
        let (low, high) = of_rising(&points, &[]).unwrap();
        // The median is -4.2, 0.2 below the best: 0.8 are shown, and a twentieth more on either side.
        assert!((low + 4.84).abs() < 1e-9 && (high + 3.96).abs() < 1e-9, "{low} {high}");
        let upside_down: Vec<_> = points.iter().map(|(x, y)| (*x, -y)).collect();
        assert_eq!(of_falling(&upside_down, &[]), Some((-high, -low)));
    }

    #[test]
    fn a_curve_beside_it_is_shown_as_far_as_it_does_not_squeeze_it() {
        let (model, near, far) =
            (curve(&[-3.0, -2.0, -1.0]), curve(&[-3.5, -2.5, -1.5]), curve(&[-70.0, -60.0, -50.0]));
        let (low, high) = of_rising(&model, &near).unwrap();
        assert!(low < -3.5 && high > -1.0 && low > -4.0, "{low} {high}");
        let (low, _) = of_rising(&model, &far).unwrap();
        assert!(low > -5.5, "{low}");
    }

    #[test]
    fn what_says_nothing_has_no_ends() {
        for points in [vec![], curve(&[f64::NAN]), curve(&[2.0, 2.0])] {
            assert_eq!(of_rising(&points, &[]), None);
        }
        assert!(of_rising(&curve(&[-5.0, -2.0]), &[]).is_some());
    }
}
