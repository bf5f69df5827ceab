//! The base of a number that is at one of a few values again and again: a probability for each, and a density elsewhere.
//!
//! Values of such a feature have masses at its atoms and densities elsewhere, and so has all that is made of them: a tilt is one of that measure,
//! so that an atom is a node of its normaliser like any other.

use super::classes::Classes;
use crate::rng::Stream;

/// The probabilities of one row's atoms, and of none of them.
#[derive(Debug, Clone)]
pub struct Atoms {
    values: Vec<f32>,
    classes: Classes,
}

impl Atoms {
    /// Room for atoms at these values.
    pub fn new(values: &[f32]) -> Self {
        Self { values: values.to_vec(), classes: Classes::new(values.len() + 1) }
    }

    /// Takes in the raw outputs of one row: one for each atom, and one for elsewhere.
    pub fn set(&mut self, raw: &[f32]) {
        self.classes.set(raw);
    }

    /// Whether a value is at an atom.
    pub fn is_atom(&self, x: f32) -> bool {
        self.values.contains(&x)
    }

    /// The log-probability of the atom that a value is at, or of elsewhere.
    pub fn log_probability(&self, x: f32) -> f32 {
        self.classes.log_probability(self.class(x))
    }

    /// The probability of elsewhere.
    pub fn elsewhere(&self) -> f32 {
        self.classes.log_probability(self.values.len() as f32).exp()
    }

    /// An atom by its probability; nothing for elsewhere.
    pub fn sample(&self, rng: &mut Stream) -> Option<f32> {
        self.values.get(self.classes.sample(rng) as usize).copied()
    }

    /// Adds `coefficient` times the gradient of the log-probability with respect to the raw outputs.
    pub fn add_gradient(&self, x: f32, coefficient: f32, gradient: &mut [f32]) {
        self.classes.add_gradient(self.class(x), coefficient, gradient);
    }

    /// The atoms and their probabilities.
    pub fn nodes(&self) -> impl Iterator<Item = [f32; 2]> + '_ {
        self.values.iter().map(|&value| [value, self.log_probability(value).exp()])
    }

    fn class(&self, x: f32) -> f32 {
        self.values.iter().position(|value| *value == x).unwrap_or(self.values.len()) as f32
    }
}
