//! Painting a planned panel: grid or heat map, series, axes, legend.

use super::{
    Colour,
    canvas::{Anchor, Canvas, Drawn},
    clip::Frame,
    plan::{BAR, BAR_GAP, Plan, TICK, TICK_TEXT},
    ticks::Tick,
};

const LABEL_TEXT: f64 = 12.0;
const TITLE_TEXT: f64 = 13.0;
const MINOR_TICK: f64 = 2.5;

impl Plan<'_> {
    /// Draws the panel with its data in `frame`.
    pub fn draw(&self, canvas: &Canvas<'_>, frame: Frame) -> Drawn {
        let (x_ticks, y_ticks) = (self.x_ticks(frame.width()), self.y_ticks(frame.height()));
        match &self.panel.density {
            None => draw_grid(canvas, frame, &x_ticks, &y_ticks)?,
            Some(density) => {
                density.draw(canvas, frame, &self.x, &self.y)?;
                let left = frame.right + BAR_GAP;
                density.draw_bar(canvas, Frame { left, right: left + BAR, ..frame }, TICK_TEXT)?;
                let above = (left + BAR / 2.0, frame.top - 8.0);
                canvas.text(above, &density.label, TICK_TEXT, Anchor::Middle)?;
            }
        }
        for index in 0..self.panel.series.len() {
            self.draw_series(canvas, frame, index)?;
        }
        draw_axes(canvas, frame, &x_ticks, &y_ticks)?;
        let (x, y) = frame.at(0.5, 0.5);
        let (below, above) = ((x, frame.bottom + 26.0), (x, frame.top - 16.0));
        let beside = (frame.left - self.left + 14.0, y);
        canvas.text(below, &self.panel.x_label, LABEL_TEXT, Anchor::Below)?;
        canvas.text(beside, &self.panel.y_label, LABEL_TEXT, Anchor::Upwards)?;
        canvas.text(above, &self.panel.title, TITLE_TEXT, Anchor::Middle)?;
        self.legend.draw(canvas, self.placement(frame), self.strip(frame))
    }

    fn draw_series(&self, canvas: &Canvas<'_>, frame: Frame, index: usize) -> Drawn {
        const HALF_CAP: f64 = 2.2;
        let series = &self.panel.series[index];
        for (x, top, bottom) in self.error_bars(frame, index) {
            canvas.line(&[(x, top), (x, bottom)], series.colour, 1.3)?;
            for y in [top, bottom].into_iter().filter(|&y| y > frame.top && y < frame.bottom) {
                canvas.line(&[(x - HALF_CAP, y), (x + HALF_CAP, y)], series.colour, 1.3)?;
            }
        }
        let (line, points) = self.visible(frame, series);
        for piece in line {
            canvas.stroke(&piece, series.colour, series.width, series.stroke)?;
        }
        for (point, marker) in points.into_iter().zip(series.marker.into_iter().cycle()) {
            marker.draw(canvas, point, series.colour)?;
        }
        Ok(())
    }
}

fn draw_grid(canvas: &Canvas<'_>, frame: Frame, x: &[Tick], y: &[Tick]) -> Drawn {
    let labelled = |tick: &&Tick| tick.label.is_some();
    let upright =
        x.iter().filter(labelled).map(|tick| [(tick.position, 0.0), (tick.position, 1.0)]);
    let level = y.iter().filter(labelled).map(|tick| [(0.0, tick.position), (1.0, tick.position)]);
    for ends in upright.chain(level) {
        canvas.line(&ends.map(|(across, up)| frame.at(across, up)), Colour::HAZE, 0.7)?;
    }
    Ok(())
}

fn draw_axes(canvas: &Canvas<'_>, frame: Frame, x: &[Tick], y: &[Tick]) -> Drawn {
    let corner = [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0)].map(|(across, up)| frame.at(across, up));
    canvas.line(&corner, Colour::INK, 0.9)?;
    let length = |tick: &Tick| if tick.label.is_some() { TICK } else { MINOR_TICK };
    for tick in x {
        let (at, bottom) = frame.at(tick.position, 0.0);
        canvas.line(&[(at, bottom), (at, bottom + length(tick))], Colour::INK, 0.8)?;
        if let Some(label) = &tick.label {
            canvas.text((at, bottom + TICK + 5.0), label, TICK_TEXT, Anchor::Below)?;
        }
    }
    for tick in y {
        let (left, at) = frame.at(0.0, tick.position);
        canvas.line(&[(left - length(tick), at), (left, at)], Colour::INK, 0.8)?;
        if let Some(label) = &tick.label {
            canvas.text((left - TICK - 3.0, at), label, TICK_TEXT, Anchor::End)?;
        }
    }
    Ok(())
}
