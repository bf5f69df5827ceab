//! An axis: from values of the data to a position between 0 and 1.

use super::ticks::{Tick, linear_ticks, log_ticks};
use crate::error::ReportError;

/// How an axis spaces its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences take equal room.
    #[default]
    Linear,
    /// Equal ratios take equal room; only positive values can be shown.
    Log,
}

impl Scale {
    /// The value on the scale's own terms, or nothing if it cannot be shown.
    fn measure(self, value: f64) -> Option<f64> {
        match self {
            Self::Linear => Some(value),
            Self::Log => (value > 0.0).then(|| value.log10()),
        }
        .filter(|measure| measure.is_finite())
    }
}

/// An axis with its ends fixed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis with the given limits or else around `values`, with `padding` (a part of the span) to spare at both ends.
    /// Errors call it `name`.
    pub fn new(
        name: &str,
        scale: Scale,
        limits: Option<(f64, f64)>,
        values: impl Iterator<Item = f64>,
        padding: f64,
    ) -> Result<Self, ReportError> {
        if let Some((low, high)) = limits {
            let ends = scale.measure(low).zip(scale.measure(high)).filter(|(low, high)| low < high);
            let (low, high) = ends.ok_or_else(|| {
                let hint = match scale {
                    Scale::Linear => "give a finite lower and a greater upper one",
                    Scale::Log => "on a logarithmic axis both must be positive",
                };
                ReportError::Unusable(format!(
                    "the limits {low} to {high} of the {name} are not an increasing range; {hint}"
                ))
            })?;
            return Ok(Self { scale, low, high });
        }
        let measures = values.filter_map(|value| scale.measure(value));
        let (low, high) = measures
            .map(|measure| (measure, measure))
            .reduce(|(low, high), (measure, _)| (low.min(measure), high.max(measure)))
            .unwrap_or((0.0, 1.0));
        let span = high - low;
        // A single value gets room around it: half a decade, or half its size.
        let margin = match scale {
            _ if span > 0.0 => span * padding,
            Scale::Log => 0.5,
            Scale::Linear => (low.abs() / 2.0).max(0.5),
        };
        Ok(Self { scale, low: low - margin, high: high + margin })
    }

    /// The length of the axis in units, or in decades.
    pub fn span(&self) -> f64 {
        self.high - self.low
    }

    /// Where a value lies: 0 and 1 are the ends of the axis; nothing if the scale cannot show it.
    pub fn position(&self, value: f64) -> Option<f64> {
        // So far out that no line shows the difference, and so near that pixels can be reckoned with.
        const FAR: f64 = 1e6;
        let measure = self.scale.measure(value)?;
        Some(self.part(measure).clamp(-FAR, FAR))
    }

    /// Ticks within the axis; about `room` of them have a label.
    pub fn ticks(&self, room: usize) -> Vec<Tick> {
        let mut ticks = match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high, room),
            Scale::Log => log_ticks(self.low, self.high, room),
        };
        for tick in &mut ticks {
            tick.position = self.part(tick.position);
        }
        ticks
    }

    fn part(&self, measure: f64) -> f64 {
        (measure - self.low) / (self.high - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "y axis of `test`";

    #[test]
    fn a_log_axis_puts_the_geometric_mean_in_the_middle() {
        let axis = Axis::new(NAME, Scale::Log, Some((0.01, 100.0)), [].into_iter(), 0.0)
            .expect("good limits");
        assert!((axis.position(1.0).expect("positive") - 0.5).abs() < 1e-12);
        assert_eq!(axis.position(0.0), None);
        assert_eq!(axis.position(f64::NAN), None);
    }

    #[test]
    fn every_finite_value_has_a_finite_position() {
        let axis = Axis::new(NAME, Scale::Linear, Some((0.0, 1e-9)), [].into_iter(), 0.0)
            .expect("good limits");
        assert!(axis.position(f64::MAX).is_some_and(f64::is_finite));
        assert!(axis.position(f64::MIN).is_some_and(|position| position < -1.0));
    }

    #[test]
    fn limits_come_from_the_values_that_can_be_shown() {
        let values = [0.1, f64::INFINITY, -3.0, 10.0, f64::NAN];
        let axis = Axis::new(NAME, Scale::Log, None, values.into_iter(), 0.0).expect("some values");
        assert_eq!((axis.low, axis.high), (-1.0, 1.0));
    }

    #[test]
    fn one_value_or_none_still_makes_an_axis() {
        for scale in [Scale::Linear, Scale::Log] {
            for values in [vec![], vec![3.0], vec![3.0, 3.0]] {
                let axis =
                    Axis::new(NAME, scale, None, values.into_iter(), 0.0).expect("automatic");
                assert!(axis.low < axis.high);
            }
        }
    }

    #[test]
    fn a_log_axis_from_zero_is_refused_and_the_panel_named() {
        let refused =
            Axis::new(NAME, Scale::Log, Some((0.0, 1.0)), [].into_iter(), 0.0).expect_err("zero");
        let message = refused.to_string();
        assert!(
            message.contains("`test`")
                && message.contains("y axis")
                && message.contains("positive"),
            "{message}"
        );
    }
}
