//! The checkerboard: uniform on the eight dark squares of a four by four board.

use rand::Rng;

use super::{Builtin, Entropy, index, uniform};

/// Side of a square; the board reaches from -4 to 4.
const SIDE: f64 = 2.0;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Checkerboard;

impl Builtin for Checkerboard {
    fn name(&self) -> String {
        "checkerboard".into()
    }

    fn description(&self) -> String {
        "uniform on the dark squares of a four by four board".into()
    }

    fn dimension(&self) -> usize {
        2
    }

    fn sample(&self, rows: usize, rng: &mut dyn Rng) -> Vec<f64> {
        let mut values = Vec::with_capacity(2 * rows);
        for _ in 0..rows {
            let square = index(8, rng);
            // Two dark squares to a line, shifted by one from line to line.
            let (line, column) = (square / 2, 2 * (square % 2) + (square / 2) % 2);
            values.push(SIDE * (column as f64 - 2.0 + uniform(rng)));
            values.push(SIDE * (line as f64 - 2.0 + uniform(rng)));
        }
        values
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        let (column, line) = ((row[0] / SIDE).floor(), (row[1] / SIDE).floor());
        let on_board = (-2.0..2.0).contains(&column) && (-2.0..2.0).contains(&line);
        if on_board && (column + line) % 2.0 == 0.0 { -area().ln() } else { f64::NEG_INFINITY }
    }

    fn entropy(&self) -> Entropy {
        Entropy::exact(area().ln())
    }
}

/// Area of all dark squares.
fn area() -> f64 {
    8.0 * SIDE * SIDE
}
