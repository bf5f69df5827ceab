//! What a column that comes round again is besides.

use super::Kind;
use super::find::discrete;

/// What a column that comes round again is apart from that: cells, where it has them; a circle, where a number never goes further than once
/// around; and any number otherwise.
pub(super) fn cyclic(values: &[f32], period: f64, is_measure: bool) -> Kind {
    let mut sorted: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    if let Some(values) = discrete(values, false).filter(|_| least < most) {
        return Kind::Integer { values };
    }
    if !is_measure || most - least > period {
        return Kind::Continuous;
    }
    // Written from 0, or from half a turn below it, as people do; else from the least there is.
    let ends = [0.0, -0.5 * period];
    let low = ends.into_iter().find(|low| least >= *low && most <= low + period).unwrap_or(least);
    let around = sorted.windows(2).map(|pair| (pair[1] - pair[0], pair[0]));
    let (gap, before) = around
        .chain([(least + period - most, most)])
        .fold((f64::NEG_INFINITY, most), |widest, gap| if gap.0 > widest.0 { gap } else { widest });
    Kind::Circle { low, period, cut: before + 0.5 * gap }
}
