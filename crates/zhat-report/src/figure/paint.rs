//! Painting a planned panel: grid or heat map, series, axes, legend.

use super::{
    Colour, Stroke,
    canvas::{Anchor, Canvas},
    clip::Frame,
    marker::draw_marker,
    plan::{BAR, BAR_GAP, Plan, TICK, TICK_TEXT},
    ticks::Tick,
};
use crate::error::ReportError;

const LABEL_TEXT: f64 = 12.0;
const TITLE_TEXT: f64 = 13.0;
const MINOR_TICK: f64 = 2.5;

impl Plan<'_> {
    /// Draws the panel with its data in `frame`.
    pub fn draw(&self, canvas: &Canvas<'_>, frame: Frame) -> Result<(), ReportError> {
        let x_ticks = self.x.ticks((frame.width() / 50.0) as usize);
        let y_ticks = self.y.ticks(Self::labels_up(frame.height()));
        match &self.panel.density {
            None => self.draw_grid(canvas, frame, &x_ticks, &y_ticks)?,
            Some(density) => {
                density.draw(canvas, frame, &self.x, &self.y)?;
                let left = frame.right + BAR_GAP;
                density.draw_bar(canvas, Frame { left, right: left + BAR, ..frame }, TICK_TEXT)?;
                canvas.text(
                    (left + BAR / 2.0, frame.top - 8.0),
                    &density.label,
                    TICK_TEXT,
                    Colour::INK,
                    Anchor::Middle,
                )?;
            }
        }
        for index in 0..self.panel.series.len() {
            self.draw_series(canvas, frame, index)?;
        }
        self.draw_axes(canvas, frame, &x_ticks, &y_ticks)?;
        self.legend.draw(canvas, self.placement(frame), self.strip(frame))
    }

    fn draw_grid(
        &self,
        canvas: &Canvas<'_>,
        frame: Frame,
        x: &[Tick],
        y: &[Tick],
    ) -> Result<(), ReportError> {
        for tick in x.iter().filter(|tick| tick.label.is_some()) {
            let ends = [frame.at(tick.position, 0.0), frame.at(tick.position, 1.0)];
            canvas.line(&ends, Colour::HAZE, 0.7, Stroke::Solid)?;
        }
        for tick in y.iter().filter(|tick| tick.label.is_some()) {
            let ends = [frame.at(0.0, tick.position), frame.at(1.0, tick.position)];
            canvas.line(&ends, Colour::HAZE, 0.7, Stroke::Solid)?;
        }
        Ok(())
    }

    fn draw_axes(
        &self,
        canvas: &Canvas<'_>,
        frame: Frame,
        x: &[Tick],
        y: &[Tick],
    ) -> Result<(), ReportError> {
        let corner =
            [(frame.left, frame.top), (frame.left, frame.bottom), (frame.right, frame.bottom)];
        canvas.line(&corner, Colour::INK, 0.9, Stroke::Solid)?;
        for tick in x {
            let (at, bottom) = frame.at(tick.position, 0.0);
            let length = if tick.label.is_some() { TICK } else { MINOR_TICK };
            canvas.line(&[(at, bottom), (at, bottom + length)], Colour::INK, 0.8, Stroke::Solid)?;
            if let Some(label) = &tick.label {
                canvas.text(
                    (at, bottom + TICK + 5.0),
                    label,
                    TICK_TEXT,
                    Colour::INK,
                    Anchor::Below,
                )?;
            }
        }
        for tick in y {
            let (left, at) = frame.at(0.0, tick.position);
            let length = if tick.label.is_some() { TICK } else { MINOR_TICK };
            canvas.line(&[(left - length, at), (left, at)], Colour::INK, 0.8, Stroke::Solid)?;
            if let Some(label) = &tick.label {
                canvas.text((left - TICK - 3.0, at), label, TICK_TEXT, Colour::INK, Anchor::End)?;
            }
        }
        let (middle_x, middle_y) = frame.at(0.5, 0.5);
        let text = |at, text: &str, size, anchor| canvas.text(at, text, size, Colour::INK, anchor);
        text((middle_x, frame.bottom + 26.0), &self.panel.x_label, LABEL_TEXT, Anchor::Below)?;
        text(
            (frame.left - self.left + 14.0, middle_y),
            &self.panel.y_label,
            LABEL_TEXT,
            Anchor::Upwards,
        )?;
        text((middle_x, frame.top - 16.0), &self.panel.title, TITLE_TEXT, Anchor::Middle)
    }

    fn draw_series(
        &self,
        canvas: &Canvas<'_>,
        frame: Frame,
        index: usize,
    ) -> Result<(), ReportError> {
        const HALF_CAP: f64 = 2.2;
        let series = &self.panel.series[index];
        for (x, top, bottom) in self.error_bars(frame, index) {
            canvas.line(&[(x, top), (x, bottom)], series.colour, 1.3, Stroke::Solid)?;
            for y in [top, bottom].into_iter().filter(|&y| y > frame.top && y < frame.bottom) {
                canvas.line(
                    &[(x - HALF_CAP, y), (x + HALF_CAP, y)],
                    series.colour,
                    1.3,
                    Stroke::Solid,
                )?;
            }
        }
        if series.stroke != Stroke::Absent {
            for piece in frame.clip(&self.in_pixels(frame, series)) {
                canvas.line(&piece, series.colour, series.width, series.stroke)?;
            }
        }
        if let Some(marker) = series.marker {
            for point in self
                .in_pixels(frame, series)
                .into_iter()
                .flatten()
                .filter(|&point| frame.contains(point))
            {
                draw_marker(canvas, point, marker, series.colour)?;
            }
        }
        Ok(())
    }
}
