//! The legend of a panel: in a corner that is free of data, or else below the axes.

use super::{
    Colour, Panel, Series,
    canvas::{Anchor, Canvas, Drawn},
    clip::{Frame, Point},
    font,
};

/// Where a legend goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LegendPosition {
    /// Inside the axes where no data are, or below them if there is no such place.
    #[default]
    Automatic,
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
/// Places inside the frame, as parts of the way right and up: corners first, then the middles of the sides.
const PLACES: [(f64, f64); 8] = [
    (1.0, 1.0),
    (0.0, 0.0),
    (0.0, 1.0),
    (1.0, 0.0),
    (1.0, 0.5),
    (0.0, 0.5),
    (0.5, 1.0),
    (0.5, 0.0),
];

impl<'a> Legend<'a> {
    pub fn new(panel: &'a Panel) -> Self {
        let labelled = panel.series.iter().filter(|series| !series.label.is_empty());
        let entries =
            labelled.map(|series| (series, font::width(&series.label, TEXT_SIZE))).collect();
        Self { entries, position: panel.legend }
    }

    /// Chooses a place in `frame`, away from `obstacles`; without any, there are data everywhere.
    pub fn place(&self, frame: Frame, obstacles: Option<&[Point]>) -> Placement {
        let room = (frame.width() - 2.0 * INSET, frame.height() - 2.0 * INSET);
        match (self.position, obstacles) {
            _ if self.entries.is_empty() => Placement::Nowhere,
            (LegendPosition::Absent, _) => Placement::Nowhere,
            (LegendPosition::Automatic, Some(obstacles)) => PLACES
                .into_iter()
                .map(|(across, up)| self.frame_inside(frame, across, up))
                .filter(|place| place.width() < room.0 && place.height() < room.1)
                .find(|place| !obstacles.iter().any(|&point| place.contains(point)))
                .map_or(Placement::Below, Placement::Inside),
            _ => Placement::Below,
        }
    }

    /// The height of the legend below axes that are `width` wide.
    pub fn height_below(&self, width: f64) -> f64 {
        self.rows(width).len() as f64 * LINE_HEIGHT + PADDING
    }

    /// Draws the legend; `below` is the strip that is meant for it when it is below.
    pub fn draw(&self, canvas: &Canvas<'_>, placement: Placement, below: Frame) -> Drawn {
        let (rows, left, top) = match placement {
            Placement::Nowhere => return Ok(()),
            Placement::Inside(frame) => {
                canvas.rectangle(frame, Colour::WHITE, 0.85)?;
                (self.entries.chunks(1).collect(), frame.left + PADDING, frame.top + PADDING)
            }
            Placement::Below => {
                let rows = self.rows(below.width());
                let spare = below.width() - total(&column_widths(&rows));
                (rows, below.left + (spare / 2.0).max(0.0), below.top + PADDING)
            }
        };
        let columns = column_widths(&rows);
        for (index, row) in rows.iter().enumerate() {
            let y = top + (index as f64 + 0.5) * LINE_HEIGHT;
            let mut x = left;
            for ((series, _), width) in row.iter().zip(&columns) {
                draw_entry(canvas, (x, y), series)?;
                x += width + BETWEEN;
            }
        }
        Ok(())
    }

    /// The entries in as few rows of aligned columns as fit into `width`.
    fn rows(&self, width: f64) -> Vec<&[(&'a Series, f64)]> {
        let most = self.entries.len().max(1);
        let fits = |&columns: &usize| {
            let rows: Vec<_> = self.entries.chunks(columns).collect();
            total(&column_widths(&rows)) <= width
        };
        let columns = (1..=most).rev().find(fits).unwrap_or(1);
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

fn column_widths(rows: &[&[(&Series, f64)]]) -> Vec<f64> {
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let text = |column: usize| {
        let texts = rows.iter().filter_map(|row| row.get(column)).map(|entry| entry.1);
        texts.fold(0.0, f64::max)
    };
    (0..columns).map(|column| SAMPLE + GAP + text(column)).collect()
}

fn total(columns: &[f64]) -> f64 {
    columns.iter().sum::<f64>() + BETWEEN * columns.len().saturating_sub(1) as f64
}

fn draw_entry(canvas: &Canvas<'_>, (x, y): Point, series: &Series) -> Drawn {
    canvas.stroke(&[(x, y), (x + SAMPLE, y)], series.colour, series.width, series.stroke)?;
    if let Some(marker) = series.marker {
        marker.draw(canvas, (x + SAMPLE / 2.0, y), series.colour)?;
    }
    canvas.text((x + SAMPLE + GAP, y), &series.label, TEXT_SIZE, Anchor::Start)
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
        let Placement::Inside(place) = legend.place(FRAME, Some(&diagonal)) else {
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
        assert!(Legend::new(&panel).place(FRAME, Some(&everywhere)) == Placement::Below);
    }

    #[test]
    fn a_legend_without_labels_is_nowhere() {
        assert!(Legend::new(&panel(&["", ""])).place(FRAME, Some(&[])) == Placement::Nowhere);
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
