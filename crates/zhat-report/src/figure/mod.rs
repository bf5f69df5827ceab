//! Figures said in words: panels, axes, series; drawn to an SVG and a PNG that are identical and need no fonts.
//!
//! ```
//! use zhat_report::figure::{Colour, Figure, Panel, Scale, Series};
//!
//! let curve = Series::line("RNCE", Colour::BLUE, vec![(1.0, 8.0), (10.0, 0.5), (100.0, 0.01)]);
//! let panel = Panel::new("Convergence")
//!     .x("iteration", Scale::Log)
//!     .y("KL[p_{d} ‖ p_{θ}]", Scale::Log)
//!     .series(curve);
//! let drawing = Figure::new(vec![panel]).draw()?;
//! assert!(drawing.svg().starts_with("<svg"));
//! # Ok::<(), zhat_report::ReportError>(())
//! ```

mod axis;
mod canvas;
mod clip;
mod colour;
mod density;
mod drawing;
mod font;
mod geometry;
mod legend;
mod marker;
mod paint;
mod panel;
mod plan;
mod series;
mod ticks;

pub use axis::Scale;
pub use colour::Colour;
pub use density::{Colours, Density};
pub use drawing::Drawing;
pub use legend::LegendPosition;
pub use marker::Marker;
pub use panel::Panel;
pub use series::{Series, Spread, Stroke, paired};

use crate::error::ReportError;

/// Panels side by side, or in rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The panels, from left to right.
    pub panels: Vec<Panel>,
    /// How many panels stand in a row; all of them when not given.
    pub columns: Option<usize>,
    /// The width of one panel with its labels, in pixels.
    pub panel_width: f64,
    /// The height of one panel with its labels, in pixels.
    pub panel_height: f64,
}

impl Figure {
    /// Panels of the usual size, 380 by 300 pixels.
    pub fn new(panels: Vec<Panel>) -> Self {
        Self { panels, columns: None, panel_width: 380.0, panel_height: 300.0 }
    }

    /// The same panels in another size.
    pub fn with_panel_size(self, panel_width: f64, panel_height: f64) -> Self {
        Self { panel_width, panel_height, ..self }
    }

    /// The same panels with so many in a row.
    pub fn with_columns(self, columns: usize) -> Self {
        Self { columns: Some(columns), ..self }
    }

    /// The whole figure.
    pub fn draw(&self) -> Result<Drawing, ReportError> {
        Ok(plan::drawings(self, self.panels.len())?.remove(0))
    }

    /// Every panel as a drawing of its own, all with the same margins, for a page that stacks them on a narrow screen.
    pub fn draw_panels(&self) -> Result<Vec<Drawing>, ReportError> {
        plan::drawings(self, 1)
    }
}
