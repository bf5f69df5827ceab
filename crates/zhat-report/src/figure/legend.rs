//! The legend of a panel: in a corner that is free of data, or else below the axes.

use super::{
    Colour, Panel, Series, Stroke,
    canvas::{Anchor, Canvas},
    clip::{Frame, Point},
    font,
    marker::draw_marker,
};
use crate::error::ReportError;

/// Where a legend goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LegendPosition {
    /// Inside the axes where no data are, or below them if there is no such place.
    #[default]
    Automatic,
    /// Inside, at the top left.
    TopLeft,
    /// Inside, at the top right.
    TopRight,
    /// Inside, at the bottom left.
    BottomLeft,
    /// Inside, at the bottom right.
    BottomRight,
    /// Below the axes.
    Below,
    /// Nowhere.
    Absent,
}

/// A legend's entries and their measures.
pub(super) struct Legend<'a> {
    entries: Vec<(&'a Series, f64)>,
    position: LegendPosition,
}

/// Where a legend was put.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Placement {
    Inside(Frame),
    Below,
    Nowhere,
}

const TEXT_SIZE: f64 = 11.0;
const LINE_HEIGHT: f64 = 16.5;
/// The length of the sample of a line, and the gap between it and its label.
const SAMPLE: f64 = 22.0;
const GAP: f64 = 6.0;
/// Between entries in one row.
const BETWEEN: f64 = 16.0;
const PADDING: f64 = 6.0;
/// Between the legend and the frame around the data.
const INSET: f64 = 7.0;

impl<'a> Legend<'a> {
    pub fn new(panel: &'a Panel) -> Self {
        let labelled = panel.series.iter().filter(|series| !series.label.is_empty());
        let entries =
            labelled.map(|series| (series, font::width(&series.label, TEXT_SIZE))).collect();
        Self { entries, position: panel.legend }
    }

    /// Chooses a place in `frame`, away from `obstacles`.
    pub fn place(&self, frame: Frame, obstacles: &[Point], crowded: Crowding) -> Placement {
        use LegendPosition::{
            Absent, Automatic, Below, BottomLeft, BottomRight, TopLeft, TopRight,
        };
        let inside = |across, up| Placement::Inside(self.frame_inside(frame, across, up));
        match self.position {
            _ if self.entries.is_empty() => Placement::Nowhere,
            Absent => Placement::Nowhere,
            Below => Placement::Below,
            TopLeft => inside(0.0, 1.0),
            TopRight => inside(1.0, 1.0),
            BottomLeft => inside(0.0, 0.0),
            BottomRight => inside(1.0, 0.0),
            Automatic if crowded == Crowding::Everywhere => Placement::Below,
            Automatic => {
                // Corners first, then the middles of the sides.
                let places = [
                    (1.0, 1.0),
                    (0.0, 0.0),
                    (0.0, 1.0),
                    (1.0, 0.0),
                    (1.0, 0.5),
                    (0.0, 0.5),
                    (0.5, 1.0),
                    (0.5, 0.0),
                ];
                let free = |candidate: &Frame| {
                    let fits = candidate.width() < frame.width() - 2.0 * INSET
                        && candidate.height() < frame.height() - 2.0 * INSET;
                    fits && !obstacles.iter().any(|&point| candidate.contains(point))
                };
                places
                    .into_iter()
                    .map(|(across, up)| self.frame_inside(frame, across, up))
                    .find(free)
                    .map_or(Placement::Below, Placement::Inside)
            }
        }
    }

    /// The height of the legend below axes that are `width` wide.
    pub fn height_below(&self, width: f64) -> f64 {
        self.rows(width).len() as f64 * LINE_HEIGHT + PADDING
    }

    /// Draws the legend; `below` is the strip that is meant for it when it is below.
    pub fn draw(
        &self,
        canvas: &Canvas<'_>,
        placement: Placement,
        below: Frame,
    ) -> Result<(), ReportError> {
        match placement {
            Placement::Nowhere => Ok(()),
            Placement::Inside(frame) => {
                canvas.rectangle(frame, Colour::WHITE, 0.85)?;
                for (row, (series, _)) in self.entries.iter().enumerate() {
                    let y = frame.top + PADDING + (row as f64 + 0.5) * LINE_HEIGHT;
                    draw_entry(canvas, (frame.left + PADDING, y), series)?;
                }
                Ok(())
            }
            Placement::Below => {
                let rows = self.rows(below.width());
                let columns = column_widths(&rows);
                let left = below.left + ((below.width() - total(&columns)) / 2.0).max(0.0);
                for (index, row) in rows.iter().enumerate() {
                    let y = below.top + PADDING + (index as f64 + 0.5) * LINE_HEIGHT;
                    let mut x = left;
                    for ((series, _), width) in row.iter().zip(&columns) {
                        draw_entry(canvas, (x, y), series)?;
                        x += width + BETWEEN;
                    }
                }
                Ok(())
            }
        }
    }

    /// The entries in as few rows of aligned columns as fit into `width`.
    fn rows(&self, width: f64) -> Vec<&[(&'a Series, f64)]> {
        let most = self.entries.len().max(1);
        let columns = (1..=most)
            .rev()
            .find(|&columns| {
                let rows: Vec<_> = self.entries.chunks(columns).collect();
                total(&column_widths(&rows)) <= width
            })
            .unwrap_or(1);
        // The same number of rows with as even a filling as possible.
        let rows = most.div_ceil(columns);
        self.entries.chunks(most.div_ceil(rows)).collect()
    }

    fn frame_inside(&self, frame: Frame, across: f64, up: f64) -> Frame {
        let text = self.entries.iter().map(|entry| entry.1).fold(0.0, f64::max);
        let width = SAMPLE + GAP + text + 2.0 * PADDING;
        let height = self.entries.len() as f64 * LINE_HEIGHT + 2.0 * PADDING;
        let left = frame.left + INSET + across * (frame.width() - width - 2.0 * INSET);
        let top = frame.top + INSET + (1.0 - up) * (frame.height() - height - 2.0 * INSET);
        Frame { left, top, right: left + width, bottom: top + height }
    }
}

/// Whether a panel has data everywhere, as under a heat map.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Crowding {
    Somewhere,
    Everywhere,
}

fn column_widths(rows: &[&[(&Series, f64)]]) -> Vec<f64> {
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    (0..columns)
        .map(|column| {
            let widths =
                rows.iter().filter_map(|row| row.get(column)).map(|(_, text)| SAMPLE + GAP + text);
            widths.fold(0.0, f64::max)
        })
        .collect()
}

fn total(columns: &[f64]) -> f64 {
    columns.iter().sum::<f64>() + BETWEEN * columns.len().saturating_sub(1) as f64
}

fn draw_entry(canvas: &Canvas<'_>, (x, y): Point, series: &Series) -> Result<(), ReportError> {
    if series.stroke != Stroke::Absent {
        canvas.line(&[(x, y), (x + SAMPLE, y)], series.colour, series.width, series.stroke)?;
    }
    if let Some(marker) = series.marker {
        draw_marker(canvas, (x + SAMPLE / 2.0, y), marker, series.colour)?;
    }
    canvas.text((x + SAMPLE + GAP, y), &series.label, TEXT_SIZE, Colour::INK, Anchor::Start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { left: 0.0, top: 0.0, right: 300.0, bottom: 200.0 };

    fn panel(labels: &[&str]) -> Panel {
        labels.iter().fold(Panel::new(""), |panel, label| {
            panel.series(Series::line(*label, Colour::BLUE, vec![]))
        })
    }

    #[test]
    fn the_automatic_place_is_free_of_data() {
        let panel = panel(&["a", "b"]);
        let legend = Legend::new(&panel);
        // Data along the diagonal from the bottom left to the top right.
        let diagonal: Vec<Point> =
            (0..300).map(|x| (f64::from(x), 200.0 - f64::from(x) / 1.5)).collect();
        let Placement::Inside(place) = legend.place(FRAME, &diagonal, Crowding::Somewhere) else {
            panic!("not inside")
        };
        assert!(diagonal.iter().all(|&point| !place.contains(point)));
        assert!(
            place.left >= 0.0 && place.top >= 0.0 && place.right <= 300.0 && place.bottom <= 200.0
        );
    }

    #[test]
    fn where_data_are_everywhere_the_legend_goes_below() {
        let panel = panel(&["a", "b"]);
        let everywhere: Vec<Point> =
            (0..300).flat_map(|x| (0..200).map(move |y| (x.into(), y.into()))).collect();
        assert!(
            Legend::new(&panel).place(FRAME, &everywhere, Crowding::Somewhere) == Placement::Below
        );
    }

    #[test]
    fn a_legend_without_labels_is_nowhere() {
        assert!(
            Legend::new(&panel(&["", ""])).place(FRAME, &[], Crowding::Somewhere)
                == Placement::Nowhere
        );
    }

    #[test]
    fn a_narrow_strip_needs_more_rows() {
        let panel = panel(&["CNCE", "MH-CNCE", "P-CNCE", "P-MH-CNCE"]);
        let legend = Legend::new(&panel);
        assert_eq!(legend.rows(1000.0).len(), 1);
        assert_eq!(legend.rows(220.0).len(), 2);
        assert_eq!(legend.rows(1.0).len(), 4);
    }
}
