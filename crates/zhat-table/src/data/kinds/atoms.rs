//! Values that come again and again in a column of numbers, and where on the line they are put.

use super::Atom;
use crate::data::shape::Shape;

/// A value in more than this share of the rows, in more than so many, and in so many times more than others may be an atom.
const ATOM_SHARE: f64 = 0.01;
const ATOM_ROWS: usize = 10;
const STANDS_OUT: f64 = 20.0;
/// Atoms, at most, and different values that have to be left elsewhere.
const MOST_ATOMS: usize = 8;
const LEAST_ELSEWHERE: usize = 20;
/// How far off a scale a value may be, in its steps, and how many of these there may be.
const OFF_THE_SCALE: f64 = 0.01;
const MOST_STEPS: f64 = 50.0;

/// Values that come again and again among others that hardly ever do: in more than one row of a hundred, and in many times more than any
/// other value on average. Decimals that a measurement was rounded to are none, since all of them come again, or all are steps of a scale.
pub(super) fn atoms(values: &[f32]) -> Vec<f32> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let runs = || sorted.chunk_by(|a, b| a == b);
    let (mut rows, mut distinct) = (values.len(), runs().count());
    let least = ATOM_ROWS.max((ATOM_SHARE * rows as f64) as usize);
    let many = runs().filter(|run| run.len() > least);
    let mut counts: Vec<(usize, f32)> = many.map(|run| (run.len(), run[0])).collect();
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let mut found = Vec::new();
    for &(count, value) in counts.iter().take(MOST_ATOMS) {
        if distinct <= LEAST_ELSEWHERE {
            break;
        }
        (rows, distinct) = (rows - count, distinct - 1);
        found.push((count, value));
    }
    let usual = rows as f64 / distinct.max(1) as f64;
    found.retain(|(count, _)| *count as f64 > STANDS_OUT * usual);
    let mut found: Vec<f32> = found.into_iter().map(|(_, value)| value).collect();
    found.sort_unstable_by(f32::total_cmp);
    if are_steps(&found) { Vec::new() } else { found }
}

/// Whether values, in ascending order, are steps of one scale, to which some measurements were rounded and others not: three at least, since
/// any two are.
fn are_steps(values: &[f32]) -> bool {
    let places: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
    let gaps = places.windows(2).map(|pair| pair[1] - pair[0]);
    let step = gaps.fold(f64::INFINITY, f64::min);
    let is_step = |place: &f64| {
        let steps = (place - places[0]) / step;
        (steps - steps.round()).abs() < OFF_THE_SCALE && steps < MOST_STEPS
    };
    places.len() > 2 && places.iter().all(is_step)
}

/// Where atoms are put on the line: where they are, if the others could be there; or else beyond all of them.
pub(super) fn places(atoms: &[f32], rest: &Shape, range: [f64; 2]) -> Vec<Atom> {
    let [low, high] = range.map(|end| rest.number(end));
    // As far out as a tenth of all there is: near enough for a network, and nobody else's place.
    let step = 0.1 * (high - low).max(f64::MIN_POSITIVE);
    let outside = |value: f64| rest.log_derivative(value) == f64::NEG_INFINITY;
    let below =
        atoms.iter().filter(|&&atom| outside(f64::from(atom)) && f64::from(atom) <= range[0]);
    let (mut left, mut right) = (below.count() as f64, 0.0);
    let place = |&atom: &f32| {
        let value = f64::from(atom);
        let place = match outside(value) {
            false => rest.number(value),
            true if value <= range[0] => {
                left -= 1.0;
                low - (left + 1.0) * step
            }
            true => {
                right += 1.0;
                high + right * step
            }
        };
        Atom { value, place }
    };
    atoms.iter().map(place).collect()
}
