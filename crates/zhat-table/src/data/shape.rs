//! What numbers a column has, and the map that takes them to the whole line: never a draw outside.

use serde::{Deserialize, Serialize};

/// What values a column has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "kebab-case")]
pub enum Shape {
    /// Any number.
    #[default]
    Line,
    /// Numbers above 0, by their logarithm.
    Positive,
    /// Numbers between two bounds, by the logarithm of how many times further it is to the one than to the other.
    Bounded {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// Numbers that come round again, such as directions: the circle is cut open where it is emptiest, and goes to the line as what lies
    /// between two bounds.
    Circle {
        /// The least of its values as they are written.
        low: f64,
        /// As many further, it is the same again.
        period: f64,
        /// Where it is cut.
        cut: f64,
    },
    /// One of some numbers, each of which has a cell.
    Values {
        /// The numbers, increasing.
        values: Vec<f64>,
    },
    /// At some values again and again, and elsewhere as the rest of them.
    Atoms {
        /// These values, increasing.
        values: Vec<f64>,
        /// Where on the line each of them is put.
        places: Vec<f64>,
        /// The others.
        rest: Box<Shape>,
    },
    /// One of so many classes, numbered from 0.
    Classes {
        /// Number of classes.
        levels: usize,
    },
}

impl Shape {
    /// The number on the line for a value; a value outside is put at the edge.
    pub(super) fn number(&self, value: f64) -> f64 {
        match self {
            // What is missing stays so: the larger of it and a number would be the number.
            _ if value.is_nan() => value,
            Self::Atoms { places, rest, .. } => {
                self.atom(value).map_or_else(|| rest.number(value), |atom| places[atom])
            }
            Self::Positive => value.max(f64::from(f32::MIN_POSITIVE)).ln(),
            Self::Bounded { low, high } => {
                let share = ((value - low) / (high - low)).clamp(EDGE, 1.0 - EDGE);
                (share / (1.0 - share)).ln()
            }
            Self::Circle { period, cut, .. } => {
                let share = ((value - cut) / period).rem_euclid(1.0).clamp(EDGE, 1.0 - EDGE);
                (share / (1.0 - share)).ln()
            }
            Self::Classes { levels } => value.floor().clamp(0.0, *levels as f64 - 1.0),
            _ => value,
        }
    }

    /// The value for a number on the line; of cells, the nearest.
    pub(crate) fn value(&self, number: f64) -> f64 {
        match self {
            Self::Line => number,
            _ if number.is_nan() => number,
            Self::Atoms { rest, .. } => rest.value(number),
            Self::Positive => number.exp().clamp(f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)),
            Self::Bounded { low, high } => {
                let share = (1.0 / (1.0 + (-number).exp())).clamp(EDGE, 1.0 - EDGE);
                low + share * (high - low)
            }
            Self::Circle { low, period, cut } => {
                let share = (1.0 / (1.0 + (-number).exp())).clamp(EDGE, 1.0 - EDGE);
                low + (cut + share * period - low).rem_euclid(*period)
            }
            Self::Values { values } => values[self.cell(number).min(values.len() - 1)],
            Self::Classes { levels } => number.round().clamp(0.0, *levels as f64 - 1.0),
        }
    }

    /// Log of the derivative of the number by the value: minus infinity outside, where there is no density.
    pub(super) fn log_derivative(&self, value: f64) -> f64 {
        match self {
            Self::Atoms { rest, .. } => match self.atom(value) {
                Some(_) => 0.0,
                None => rest.log_derivative(value),
            },
            Self::Positive if value <= 0.0 => f64::NEG_INFINITY,
            Self::Positive => -value.ln(),
            Self::Bounded { low, high } if value <= *low || value >= *high => f64::NEG_INFINITY,
            Self::Bounded { low, high } => {
                (high - low).ln() - (value - low).ln() - (high - value).ln()
            }
            Self::Circle { period, cut, .. } => {
                let share = ((value - cut) / period).rem_euclid(1.0).clamp(EDGE, 1.0 - EDGE);
                -(period * share * (1.0 - share)).ln()
            }
            _ => 0.0,
        }
    }

    /// Which of the atoms a value is, to the precision of 32 bits.
    pub(crate) fn atom(&self, value: f64) -> Option<usize> {
        match self {
            Self::Atoms { values, .. } => {
                values.iter().position(|atom| *atom as f32 == value as f32)
            }
            _ => None,
        }
    }

    /// Whether it has values that come again and again, with a probability of their own.
    pub fn is_atoms(&self) -> bool {
        matches!(self, Self::Atoms { .. })
    }

    /// Whether a value has a probability, and not a density.
    pub fn is_counted(&self) -> bool {
        matches!(self, Self::Values { .. } | Self::Classes { .. })
    }

    /// Whether it is one of some classes.
    pub fn is_classes(&self) -> bool {
        matches!(self, Self::Classes { .. })
    }

    /// The ends of the cells of the values: half way from one to the next.
    pub(super) fn edges(&self) -> Vec<f64> {
        let Self::Values { values } = self else { return Vec::new() };
        let middle = |pair: &[f64]| 0.5 * (pair[0] + pair[1]);
        let mut edges: Vec<f64> = values.windows(2).map(middle).collect();
        let (first, last) = (values[0], values[values.len() - 1]);
        let [low, high] = match edges.as_slice() {
            [] => [first - 0.5, last + 0.5],
            [near, ..] => [2.0 * first - near, 2.0 * last - edges[edges.len() - 1]],
        };
        edges.insert(0, low);
        edges.push(high);
        edges
    }

    /// The number on the line for a value, anywhere in its cell where it has one.
    pub(crate) fn spread_number(&self, value: f64, share: impl FnOnce() -> f64) -> f64 {
        match self {
            Self::Values { .. } => self.spread(value, share()),
            _ => self.number(value),
        }
    }

    /// A value moved to a place in its cell, from 0 to 1; itself where there are no cells.
    fn spread(&self, value: f64, share: f64) -> f64 {
        match self {
            Self::Values { .. } if !value.is_nan() => {
                let (edges, cell) = (self.edges(), self.cell(value));
                edges[cell] + share * (edges[cell + 1] - edges[cell])
            }
            _ => value,
        }
    }

    /// The cell of a number.
    fn cell(&self, number: f64) -> usize {
        let Self::Values { values } = self else { return 0 };
        let above = values.partition_point(|value| *value <= number);
        match above {
            0 => 0,
            above if above == values.len() => above - 1,
            above if number - values[above - 1] < values[above] - number => above - 1,
            above => above,
        }
    }
}

/// As near to a bound as 32 bits tell apart from it.
const EDGE: f64 = 1e-7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_to_the_line_and_back_and_the_derivative_is_that_of_the_map() {
        let shapes = [Shape::Positive, Shape::Bounded { low: -2.0, high: 7.0 }, Shape::Line];
        for shape in shapes {
            for value in [0.01, 0.5, 3.0, 6.5] {
                let back = shape.value(shape.number(value));
                assert!((back - value).abs() < 1e-12, "{shape:?} {value} {back}");
                let step = 1e-6;
                let slope =
                    (shape.number(value + step) - shape.number(value - step)) / (2.0 * step);
                assert!(
                    (slope.ln() - shape.log_derivative(value)).abs() < 1e-4,
                    "{shape:?} {value}"
                );
            }
        }
    }

    #[test]
    fn no_number_is_outside_and_what_is_outside_has_no_density() {
        let share = Shape::Bounded { low: 0.0, high: 1.0 };
        for number in [-1e3, -50.0, 0.0, 50.0, 1e3] {
            let value = share.value(number) as f32;
            assert!(value > 0.0 && value < 1.0, "{number}: {value}");
            let value = Shape::Positive.value(number) as f32;
            assert!(value > 0.0 && value.is_finite(), "{number}: {value}");
        }
        assert_eq!(share.log_derivative(1.0), f64::NEG_INFINITY);
        assert_eq!(Shape::Positive.log_derivative(0.0), f64::NEG_INFINITY);
        assert!(
            Shape::Positive.number(-3.0).is_finite(),
            "a value that is wrong is not one that is missing"
        );
    }

    #[test]
    fn a_circle_has_no_end_and_a_density_on_it_is_one_around_it() {
        let circle = Shape::Circle { low: -180.0, period: 360.0, cut: 100.0 };
        for value in [-180.0, -90.0, 0.0, 99.0, 101.0, 179.0] {
            let back = circle.value(circle.number(value));
            assert!((back - value).abs() < 1e-9, "{value} {back}");
            // A turn further is the same place.
            assert!((circle.number(value + 360.0) - circle.number(value)).abs() < 1e-9);
            let step = 1e-5;
            let slope = (circle.number(value + step) - circle.number(value - step)) / (2.0 * step);
            assert!((slope.ln() - circle.log_derivative(value)).abs() < 1e-6, "{value}");
        }
        // Half a turn's difference across where the numbers are written from low again.
        assert!(circle.number(179.9) < circle.number(-179.9));
        for number in [-1e3, -30.0, 0.0, 30.0, 1e3] {
            assert!((-180.0..180.0).contains(&circle.value(number)), "{number}");
        }
        // A logistic density on the line is flat on the circle: one by its length.
        for value in [-170.0, 3.0, 150.0] {
            let number = circle.number(value);
            let logistic = -number - 2.0 * (1.0 + (-number).exp()).ln();
            assert!((logistic + circle.log_derivative(value) + 360f64.ln()).abs() < 1e-9);
        }
    }

    #[test]
    fn an_atom_is_put_in_its_place_and_the_rest_where_it_was() {
        let rest = Box::new(Shape::Positive);
        let shape = Shape::Atoms { values: vec![0.0], places: vec![-3.0], rest };
        assert_eq!((shape.number(0.0), shape.atom(0.0), shape.atom(0.1)), (-3.0, Some(0), None));
        assert_eq!(shape.number(2.0), Shape::Positive.number(2.0));
        assert_eq!(shape.log_derivative(0.0), 0.0);
        assert_eq!(shape.log_derivative(2.0), Shape::Positive.log_derivative(2.0));
    }

    #[test]
    fn what_is_missing_stays_missing() {
        let values = Shape::Values { values: vec![1.0, 2.0] };
        let share = Shape::Bounded { low: 0.0, high: 1.0 };
        for shape in [Shape::Line, Shape::Positive, share, values, Shape::Classes { levels: 3 }] {
            assert!(shape.number(f64::NAN).is_nan() && shape.value(f64::NAN).is_nan(), "{shape:?}");
            assert!(shape.spread_number(f64::NAN, || 0.5).is_nan(), "{shape:?}");
        }
    }

    #[test]
    fn every_value_has_a_cell_and_a_number_in_it_comes_back_as_the_value() {
        let shape = Shape::Values { values: vec![1.0, 2.0, 4.0] };
        assert_eq!(shape.edges(), [0.5, 1.5, 3.0, 5.0]);
        for value in [1.0, 2.0, 4.0] {
            for share in [0.001, 0.5, 0.999] {
                assert_eq!(shape.value(shape.spread(value, share)), value);
            }
        }
        assert_eq!([-9.0, 2.9, 99.0].map(|number| shape.value(number)), [1.0, 2.0, 4.0]);
        assert_eq!(Shape::Values { values: vec![3.0] }.edges(), [2.5, 3.5]);
        assert_eq!(Shape::Classes { levels: 3 }.value(1.2), 1.0);
    }
}
