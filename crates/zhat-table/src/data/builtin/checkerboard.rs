//! The checkerboard: uniform on the eight dark squares of a four by four board.

use rand::Rng;

use super::plane::Plane;
use super::{Entropy, index, uniform};

/// Side of a square; the board reaches from -4 to 4.
const SIDE: f64 = 2.0;

pub(super) const CHECKERBOARD: Plane = Plane {
    name: "checkerboard",
    description: "uniform on the dark squares of a four by four board",
    draw,
    log_density,
    entropy,
};

fn draw(rng: &mut dyn Rng) -> [f64; 2] {
    let square = index(8, rng);
    // Two dark squares to a line, shifted by one from line to line.
    let (line, column) = (square / 2, 2 * (square % 2) + (square / 2) % 2);
    [column, line].map(|number| SIDE * (number as f64 - 2.0 + uniform(rng)))
}

fn log_density(point: [f64; 2]) -> f64 {
    let [column, line] = point.map(|x| (x / SIDE).floor());
    let on_board = (-2.0..2.0).contains(&column) && (-2.0..2.0).contains(&line);
    if on_board && (column + line) % 2.0 == 0.0 { -area().ln() } else { f64::NEG_INFINITY }
}

fn entropy() -> Entropy {
    Entropy::exact(area().ln())
}

/// Area of all dark squares.
fn area() -> f64 {
    8.0 * SIDE * SIDE
}
