//! Where the data of a planned panel lie, in pixels: points, error bars, and what a legend must keep clear of.

use super::{
    Series, Stroke,
    clip::{Frame, Point},
    plan::Plan,
};

impl Plan<'_> {
    /// What is seen of a series within the frame: the pieces of its line, and the points with a marker.
    pub fn visible(&self, frame: Frame, series: &Series) -> (Vec<Vec<Point>>, Vec<Point>) {
        let points = self.in_pixels(frame, series);
        let line = if series.stroke == Stroke::Absent { vec![] } else { frame.clip(&points) };
        let shown = |point: &Point| series.marker.is_some() && frame.contains(*point);
        (line, points.into_iter().flatten().filter(shown).collect())
    }

    /// The points of a series; nothing where the axes cannot show one.
    fn in_pixels(&self, frame: Frame, series: &Series) -> Vec<Option<Point>> {
        let pixel = |&(x, y): &Point| Some(frame.at(self.x.position(x)?, self.y.position(y)?));
        series.points.iter().map(pixel).collect()
    }

    /// The error bars to draw, as (x, top, bottom): some ten of them, evenly spread over the axis, and those of different
    /// series beside each other rather than on top of each other.
    pub fn error_bars(&self, frame: Frame, index: usize) -> Vec<(f64, f64, f64)> {
        let series = &self.panel.series[index];
        let Some(spread) = &series.spread else {
            return Vec::new();
        };
        let bars = |of: &[Series]| of.iter().filter(|series| series.spread.is_some()).count();
        let all = &self.panel.series;
        let offset = (bars(&all[..index]) as f64 + 0.5) / bars(all) as f64;
        let points = self.in_pixels(frame, series);
        let count = (frame.width() / 32.0).clamp(4.0, 12.0).floor();

        let mut chosen: Vec<usize> = (0..count as usize)
            .filter_map(|bar| {
                let target = frame.at((bar as f64 + offset) / count, 0.0).0;
                let distance = |&point: &usize| {
                    points[point].map_or(f64::INFINITY, |(x, _)| (x - target).abs())
                };
                let near = (0..points.len())
                    .min_by(|one, other| distance(one).total_cmp(&distance(other)))?;
                points[near].filter(|&point| frame.contains(point)).map(|_| near)
            })
            .collect();
        chosen.dedup();
        chosen
            .into_iter()
            .filter_map(|point| {
                let height = |value: f64| self.y.position(value).map(|up| frame.at(0.0, up).1);
                // A lower end that a log axis cannot show lies below everything, an infinite upper one above.
                let bottom = height(spread.lower[point]).unwrap_or(frame.bottom).min(frame.bottom);
                let top = height(spread.upper[point]).unwrap_or(frame.top).max(frame.top);
                Some((points[point]?.0, top, bottom))
            })
            .collect()
    }

    /// Points, a few pixels apart, of all that is drawn.
    pub fn obstacles(&self, frame: Frame) -> Vec<Point> {
        const APART: f64 = 3.0;
        let mut obstacles = Vec::new();
        let mut along = |(x0, y0): Point, (x1, y1): Point| {
            let steps = ((x1 - x0).hypot(y1 - y0) / APART).ceil().max(1.0) as usize;
            obstacles.extend((0..=steps).map(|step| {
                let part = step as f64 / steps as f64;
                (x0 + part * (x1 - x0), y0 + part * (y1 - y0))
            }));
        };
        for (index, series) in self.panel.series.iter().enumerate() {
            let (line, markers) = self.visible(frame, series);
            line.iter().flat_map(|piece| piece.windows(2)).for_each(|pair| along(pair[0], pair[1]));
            markers.into_iter().for_each(|point| along(point, point));
            for (x, top, bottom) in self.error_bars(frame, index) {
                along((x, top), (x, bottom));
            }
        }
        obstacles
    }
}
