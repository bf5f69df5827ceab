//! Cutting lines at the frame of a panel.

/// A rectangle in pixels; y grows downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

/// A point in pixels.
pub(super) type Point = (f64, f64);

impl Frame {
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub fn contains(&self, (x, y): Point) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }

    /// The point at the given parts of the way right and up.
    pub fn at(&self, across: f64, up: f64) -> Point {
        (self.left + across * self.width(), self.bottom - up * self.height())
    }

    /// The pieces of a line that lie within the frame; the line is broken where a point is missing.
    pub fn clip(&self, points: &[Option<Point>]) -> Vec<Vec<Point>> {
        let mut pieces: Vec<Vec<Point>> = Vec::new();
        for pair in points.windows(2) {
            let &[Some(from), Some(to)] = pair else {
                continue;
            };
            let Some((from, to)) = self.clip_segment(from, to) else {
                continue;
            };
            match pieces.last_mut() {
                Some(piece) if piece.last() == Some(&from) => piece.push(to),
                _ => pieces.push(vec![from, to]),
            }
        }
        pieces
    }

    /// The part of a segment within the frame (Liang and Barsky's algorithm).
    fn clip_segment(&self, from: Point, to: Point) -> Option<(Point, Point)> {
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let (mut enter, mut leave) = (0.0f64, 1.0f64);
        for (direction, room) in [
            (-across, from.0 - self.left),
            (across, self.right - from.0),
            (-down, from.1 - self.top),
            (down, self.bottom - from.1),
        ] {
            if direction == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if direction < 0.0 {
                enter = enter.max(room / direction);
            } else {
                leave = leave.min(room / direction);
            }
        }
        let at = |part: f64| (from.0 + part * across, from.1 + part * down);
        (enter <= leave).then(|| {
            (if enter == 0.0 { from } else { at(enter) }, if leave == 1.0 { to } else { at(leave) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };

    #[test]
    fn a_line_within_the_frame_stays_as_it_is() {
        let points = [(1.0, 1.0), (5.0, 9.0), (10.0, 0.0)];
        assert_eq!(FRAME.clip(&points.map(Some)), [points]);
    }

    #[test]
    fn a_line_that_leaves_and_returns_is_cut_at_the_frame() {
        let points = [(0.0, 5.0), (5.0, 15.0), (10.0, 5.0)];
        assert_eq!(
            FRAME.clip(&points.map(Some)),
            [[(0.0, 5.0), (2.5, 10.0)], [(7.5, 10.0), (10.0, 5.0)]]
        );
    }

    #[test]
    fn a_line_outside_vanishes_and_a_missing_point_breaks_it() {
        assert!(FRAME.clip(&[Some((-1.0, 0.0)), Some((-1.0, 10.0))]).is_empty());
        let broken = [Some((0.0, 0.0)), Some((1.0, 1.0)), None, Some((2.0, 2.0)), Some((3.0, 3.0))];
        assert_eq!(FRAME.clip(&broken).len(), 2);
    }
}
