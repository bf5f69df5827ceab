//! Planning a figure: what its margins depend on, where the frames around the data go, and one canvas or several.

use super::{
    Drawing, Figure, Panel, Series, Stroke,
    axis::Axis,
    canvas,
    clip::{Frame, Point},
    font,
    legend::{Legend, Placement},
    ticks::{Tick, named_ticks},
};
use crate::error::ReportError;

pub(super) const TICK_TEXT: f64 = 10.5;
pub(super) const TICK: f64 = 4.5;
/// The colour bar of a heat map and the gap before it.
pub(super) const BAR: f64 = 11.0;
pub(super) const BAR_GAP: f64 = 10.0;

/// The panels, so many of them in each drawing.
pub(super) fn drawings(figure: &Figure, each: usize) -> Result<Vec<Drawing>, ReportError> {
    let (plans, margins) = plan(figure)?;
    let (width, height) = (figure.panel_width, figure.panel_height);
    let drawing = |plans: &[Plan<'_>]| {
        let columns = figure.columns.unwrap_or(plans.len()).clamp(1, plans.len());
        let size = (width * columns as f64, height * plans.len().div_ceil(columns) as f64);
        canvas::drawing(size, |canvas| {
            plans.iter().enumerate().try_for_each(|(index, plan)| {
                let corner = ((index % columns) as f64 * width, (index / columns) as f64 * height);
                plan.draw(canvas, plan.frame(figure, margins, corner))
            })
        })
    };
    plans.chunks(each).map(drawing).collect()
}

/// A panel with everything measured that its margins depend on.
pub(super) struct Plan<'a> {
    pub panel: &'a Panel,
    pub x: Axis,
    pub y: Axis,
    pub legend: Legend<'a>,
    /// The width of what stands left of the frame.
    pub left: f64,
    right: f64,
}

/// The panels, and the space above and below their frames: the same for all, so that they line up.
fn plan(figure: &Figure) -> Result<(Vec<Plan<'_>>, (f64, f64)), ReportError> {
    if figure.panels.is_empty() {
        let reason = "the figure has no panels; give it at least one";
        return Err(ReportError::Unusable(reason.into()));
    }
    let any = |test: fn(&Panel) -> bool| figure.panels.iter().any(test);
    let top = if any(|panel| !panel.title.is_empty()) { 34.0 } else { 14.0 };
    let axes = if any(|panel| !panel.x_label.is_empty()) { 44.0 } else { 26.0 };
    let height = figure.panel_height - top - axes;
    let plans = figure.panels.iter().map(|panel| Plan::new(panel, height));
    let plans: Vec<_> = plans.collect::<Result<_, _>>()?;
    // A legend below the axes makes the frames lower, which can push another legend out of its corner.
    let mut bottom = axes + 4.0;
    loop {
        let frame = |plan: &Plan<'_>| plan.frame(figure, (top, bottom), (0.0, 0.0));
        let heights = plans.iter().map(|plan| plan.height_below(frame(plan)));
        let needed = axes + heights.fold(4.0, f64::max);
        if needed <= bottom {
            return Ok((plans, (top, bottom)));
        }
        bottom = needed;
    }
}

impl<'a> Plan<'a> {
    fn new(panel: &'a Panel, height: f64) -> Result<Self, ReportError> {
        panel.series.iter().try_for_each(Series::check)?;
        let mut right = 16.0;
        if let Some(density) = &panel.density {
            density.check(&panel.title)?;
            right = BAR_GAP + BAR + 5.0 + widest(&density.scale()?.ticks(4)) + 8.0;
        }
        let (x, y) = axes(panel)?;
        let label = if panel.y_label.is_empty() { 4.0 } else { 27.0 };
        let left = label + TICK + 5.0;
        let mut plan = Self { panel, x, y, legend: Legend::new(panel), left, right };
        plan.left += widest(&plan.y_ticks(height));
        Ok(plan)
    }

    fn frame(&self, figure: &Figure, margins: (f64, f64), (across, down): Point) -> Frame {
        let (left, top) = (across + self.left, down + margins.0);
        // However small the figure, the frame keeps a size.
        let frame = Frame {
            left,
            top,
            right: (across + figure.panel_width - self.right).max(left + 10.0),
            bottom: (down + figure.panel_height - margins.1).max(top + 10.0),
        };
        if !self.panel.equal_axes {
            return frame;
        }
        let unit = (frame.width() / self.x.span()).min(frame.height() / self.y.span());
        let spare = |length: f64, axis: &Axis| (length - unit * axis.span()) / 2.0;
        let (across, down) = (spare(frame.width(), &self.x), spare(frame.height(), &self.y));
        Frame {
            left: frame.left + across,
            right: frame.right - across,
            top: frame.top + down,
            bottom: frame.bottom - down,
        }
    }

    /// Where the legend goes.
    pub fn placement(&self, frame: Frame) -> Placement {
        // A heat map has data everywhere.
        let obstacles = self.panel.density.is_none().then(|| self.obstacles(frame));
        self.legend.place(frame, obstacles.as_deref())
    }

    /// The strip for a legend below, from the y axis' label to the frame's right end.
    pub fn strip(&self, frame: Frame) -> Frame {
        let labels = if self.panel.x_label.is_empty() { 22.0 } else { 40.0 };
        Frame { left: frame.left - self.left + 20.0, top: frame.bottom + labels, ..frame }
    }

    /// Ticks along a frame of this width.
    pub fn x_ticks(&self, width: f64) -> Vec<Tick> {
        match (&self.panel.x_names, &self.panel.x_ticks) {
            (Some(names), _) => named_ticks(names, (width / 20.0) as usize),
            (None, Some(ticks)) => {
                let tick = |(value, label): &(f64, String)| {
                    let position = self.x.position(*value)?;
                    Some(Tick { position, label: Some(label.clone()) })
                };
                spaced(ticks.iter().filter_map(tick).collect(), width)
            }
            (None, None) => spaced(self.x.ticks((width / 50.0) as usize), width),
        }
    }

    /// Ticks beside a frame of this height: as many as have room for their labels.
    pub fn y_ticks(&self, height: f64) -> Vec<Tick> {
        match &self.panel.y_names {
            Some(names) => named_ticks(names, (height / 10.0) as usize),
            None => self.y.ticks((height / 30.0) as usize),
        }
    }

    fn height_below(&self, frame: Frame) -> f64 {
        match self.placement(frame) {
            Placement::Below => self.legend.height_below(self.strip(frame).width()),
            _ => 0.0,
        }
    }
}

/// The axes of a panel: tight around lines along x, with room everywhere else.
fn axes(panel: &Panel) -> Result<(Axis, Axis), ReportError> {
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let spreads = panel.series.iter().filter_map(|series| series.spread.as_ref());
    let spread_ends = spreads.flat_map(|spread| spread.lower.iter().chain(&spread.upper)).copied();
    let dots = |series: &Series| series.stroke == Stroke::Absent || series.marker.is_some();
    let grid = panel.density.as_ref();
    let x_limits = panel.x_limits.or(grid.map(|density| density.x_range));
    let y_limits = panel.y_limits.or(grid.map(|density| density.y_range));
    let x_padding = if panel.series.iter().any(dots) { 0.04 } else { 0.0 };
    let x_values = points().map(|point| point.0);
    let y_values = points().map(|point| point.1).chain(spread_ends);
    let name = |axis| format!("{axis} axis of panel `{}`", panel.title);
    let x = Axis::new(&name("x"), panel.x_scale, x_limits, x_values, x_padding)?;
    let y = Axis::new(&name("y"), panel.y_scale, y_limits, y_values, 0.05)?;
    Ok((x, y))
}

/// The ticks with so many of the labels that none runs into the next: some, at equal distances, where not all have room.
fn spaced(mut ticks: Vec<Tick>, width: f64) -> Vec<Tick> {
    const BETWEEN: f64 = 6.0;
    let at: Vec<usize> = (0..ticks.len()).filter(|&tick| ticks[tick].label.is_some()).collect();
    let apart = at.windows(2).map(|pair| ticks[pair[1]].position - ticks[pair[0]].position);
    let room = apart.fold(f64::INFINITY, f64::min) * width;
    let every = ((widest(&ticks) + BETWEEN) / room).ceil().max(1.0) as usize;
    for (_, tick) in at.into_iter().enumerate().filter(|(index, _)| index % every != 0) {
        ticks[tick].label = None;
    }
    ticks
}

/// The width of the widest label.
fn widest(ticks: &[Tick]) -> f64 {
    let labels = ticks.iter().filter_map(|tick| tick.label.as_deref());
    labels.map(|label| font::width(label, TICK_TEXT)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_would_run_into_each_other_are_left_out_and_others_stay() {
        let ticks = || -> Vec<Tick> {
            let label = |i: u32| Some(format!("0.00{i}"));
            (0..5).map(|i| Tick { position: f64::from(i) / 4.0, label: label(i) }).collect()
        };
        let labelled = |width: f64| -> Vec<usize> {
            let ticks = spaced(ticks(), width);
            assert_eq!(ticks.len(), 5);
            (0..5).filter(|&tick| ticks[tick].label.is_some()).collect()
        };
        // Five digits are some 30 pixels wide.
        assert_eq!(labelled(400.0), [0, 1, 2, 3, 4]);
        assert_eq!(labelled(100.0), [0, 2, 4]);
        assert_eq!(labelled(10.0), [0]);
        assert!(spaced(Vec::new(), 10.0).is_empty());
    }

    #[test]
    fn ticks_of_ones_own_stand_at_their_values_and_one_that_has_no_room_says_nothing() {
        let days = [(12.0, "2024-02-12"), (18.0, "2024-02-18")];
        let panel = Panel::new("days")
            .x_limits(10.0, 20.0)
            .y_limits(0.0, 1.0)
            .x_ticks(days.map(|(day, text)| (day, text.to_string())).to_vec());
        let plan = Plan::new(&panel, 100.0).unwrap();
        let ticks = |width| plan.x_ticks(width);
        let said = |tick: &Tick| (tick.position, tick.label.clone().unwrap_or_default());
        let found: Vec<(f64, String)> = ticks(200.0).iter().map(said).collect();
        assert_eq!(found, [(0.2, "2024-02-12".into()), (0.8, "2024-02-18".into())]);
        assert_eq!(ticks(80.0)[1].label, None);
    }
}
