//! One panel: its labels, axes, series and legend.

use super::{Density, LegendPosition, Scale, Series};

/// A pair of axes with series, or a density, in it.
///
/// In every text `_{..}` and `^{..}` lower and raise what is inside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// The heading; may be empty.
    pub title: String,
    /// What the x axis shows.
    pub x_label: String,
    /// What the y axis shows.
    pub y_label: String,
    /// The scale of the x axis.
    pub x_scale: Scale,
    /// The scale of the y axis.
    pub y_scale: Scale,
    /// The ends of the x axis; from the data when not given.
    pub x_limits: Option<(f64, f64)>,
    /// The ends of the y axis; from the data when not given.
    pub y_limits: Option<(f64, f64)>,
    /// Names of equal parts of the x axis, in place of numbers; none of them leaves it bare.
    pub x_names: Option<Vec<String>>,
    /// Values of the x axis that have a tick, and what it says, in place of round numbers.
    pub x_ticks: Option<Vec<(f64, String)>>,
    /// Names of equal parts of the y axis, from bottom to top.
    pub y_names: Option<Vec<String>>,
    /// Lines and clouds of points, later ones over earlier ones.
    pub series: Vec<Series>,
    /// A heat map behind the series.
    pub density: Option<Density>,
    /// Where the legend goes.
    pub legend: LegendPosition,
    /// Whether a unit (on logarithmic axes, a decade) is as long on one axis as on the other, so that circles are round.
    pub equal_axes: bool,
}

impl Panel {
    /// An empty panel with linear axes.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Names the x axis and chooses its scale.
    pub fn x(self, label: impl Into<String>, scale: Scale) -> Self {
        Self { x_label: label.into(), x_scale: scale, ..self }
    }

    /// Names the y axis and chooses its scale.
    pub fn y(self, label: impl Into<String>, scale: Scale) -> Self {
        Self { y_label: label.into(), y_scale: scale, ..self }
    }

    /// Fixes the ends of the x axis.
    pub fn x_limits(self, low: f64, high: f64) -> Self {
        Self { x_limits: Some((low, high)), ..self }
    }

    /// Fixes the ends of the y axis.
    pub fn y_limits(self, low: f64, high: f64) -> Self {
        Self { y_limits: Some((low, high)), ..self }
    }

    /// Names for equal parts of the x axis in place of numbers; without any the axis is bare.
    pub fn x_names(self, names: Vec<String>) -> Self {
        Self { x_names: Some(names), ..self }
    }

    /// Ticks of the x axis at these values, in ascending order, that say something else than round numbers.
    pub fn x_ticks(self, ticks: Vec<(f64, String)>) -> Self {
        Self { x_ticks: Some(ticks), ..self }
    }

    /// Names for equal parts of the y axis, from bottom to top, in place of numbers; without any the axis is bare.
    pub fn y_names(self, names: Vec<String>) -> Self {
        Self { y_names: Some(names), ..self }
    }

    /// Adds a series over those that are there.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Puts a heat map behind the series.
    pub fn density(self, density: Density) -> Self {
        Self { density: Some(density), ..self }
    }

    /// Moves the legend.
    pub fn legend(self, legend: LegendPosition) -> Self {
        Self { legend, ..self }
    }

    /// Makes a unit as long on one axis as on the other.
    pub fn equal_axes(self) -> Self {
        Self { equal_axes: true, ..self }
    }
}
