//! One line or cloud of points of a panel, and how it is drawn.

use super::{Colour, Marker};
use crate::{error::ReportError, summary::Curves};

/// How the points of a series are connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stroke {
    /// By a solid line.
    #[default]
    Solid,
    /// By a dashed line.
    Dashed,
    /// By a dotted line.
    Dotted,
    /// Not at all: a scatter plot.
    Absent,
}

/// Where the error bars of each point begin and end, as values of the y axis and not as distances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// The lower ends.
    pub lower: Vec<f64>,
    /// The upper ends.
    pub upper: Vec<f64>,
}

/// One line or cloud of points.
///
/// Points that the axes cannot show (not finite, or not positive on a logarithmic axis) are left out, and a line is broken
/// there. A series with a label and no points stands in the legend only.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend; an empty one is left out. `_{..}` and `^{..}` lower and raise what is inside.
    pub label: String,
    /// Its colour.
    pub colour: Colour,
    /// The points, in the order in which they are connected.
    pub points: Vec<(f64, f64)>,
    /// How they are connected.
    pub stroke: Stroke,
    /// The width of the line in pixels.
    pub width: f64,
    /// Error bars, drawn at a readable number of points.
    pub spread: Option<Spread>,
    /// What is drawn at each point.
    pub marker: Option<Marker>,
}

impl Series {
    /// A solid line.
    pub fn line(label: impl Into<String>, colour: Colour, points: Vec<(f64, f64)>) -> Self {
        Self {
            label: label.into(),
            colour,
            points,
            stroke: Stroke::Solid,
            width: 1.6,
            spread: None,
            marker: None,
        }
    }

    /// A cloud of points.
    pub fn scatter(label: impl Into<String>, colour: Colour, points: Vec<(f64, f64)>) -> Self {
        Self {
            stroke: Stroke::Absent,
            marker: Some(Marker::Dot),
            ..Self::line(label, colour, points)
        }
    }

    /// The median of `curves` as a solid line, with error bars from the 25th to the 75th percentile.
    pub fn median(label: impl Into<String>, colour: Colour, curves: &Curves) -> Self {
        let spread = Spread { lower: curves.q25.clone(), upper: curves.q75.clone() };
        Self::line(label, colour, paired(&curves.iterations, &curves.median)).with_spread(spread)
    }

    /// The worst case of `curves` as a dashed line.
    pub fn worst(label: impl Into<String>, colour: Colour, curves: &Curves) -> Self {
        Self::line(label, colour, paired(&curves.iterations, &curves.worst))
            .with_stroke(Stroke::Dashed)
    }

    /// The same with another line.
    pub fn with_stroke(self, stroke: Stroke) -> Self {
        Self { stroke, ..self }
    }

    /// The same with error bars.
    pub fn with_spread(self, spread: Spread) -> Self {
        Self { spread: Some(spread), ..self }
    }

    /// The same with a marker at each point.
    pub fn with_marker(self, marker: Marker) -> Self {
        Self { marker: Some(marker), ..self }
    }

    /// An error unless every point has its error bar.
    pub(super) fn check(&self) -> Result<(), ReportError> {
        let Some(Spread { lower, upper }) = &self.spread else {
            return Ok(());
        };
        let lengths = [self.points.len(), lower.len(), upper.len()];
        if lengths == [lengths[0]; 3] {
            return Ok(());
        }
        Err(ReportError::Unusable(format!(
            "series `{}` has {} points, but its error bars have {} lower and {} upper ends; give one for each",
            self.label, lengths[0], lengths[1], lengths[2]
        )))
    }
}

/// Iterations and the values there as points.
pub fn paired(iterations: &[usize], values: &[f64]) -> Vec<(f64, f64)> {
    iterations.iter().zip(values).map(|(&iteration, &value)| (iteration as f64, value)).collect()
}
