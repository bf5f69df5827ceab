//! The divergence guard: when a loss is no longer that of a model that learns.

use serde::{Deserialize, Serialize};

/// A running mean of the loss, and what is too far above it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Guard {
    mean: f64,
    deviation: f64,
    seen: u64,
}

impl Guard {
    /// Takes in a loss; says why it is not one of a run that goes well, if so.
    ///
    /// A loss is out of bounds when it is not a number, or, after 50 steps, above the running mean by 1,000 nats and by 50
    /// running mean deviations: far more than a bad batch does, and far less than a run that has blown up.
    pub fn watch(&mut self, loss: f64) -> Option<String> {
        if !loss.is_finite() {
            return Some(format!("the loss is {loss}"));
        }
        let excess = loss - self.mean;
        if self.seen >= 50 && excess > 1000.0 && excess > 50.0 * self.deviation {
            return Some(format!("the loss is {loss:.3e}, after {:.3e} on average", self.mean));
        }
        let share = 1.0 / (self.seen + 1).min(100) as f64;
        self.mean += share * excess;
        self.deviation += share * (excess.abs() - self.deviation);
        self.seen += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explosion_is_noticed_and_a_bad_batch_is_not() {
        let mut guard = Guard::default();
        for step in 0..200 {
            assert_eq!(guard.watch(10.0 + f64::from(step % 7)), None);
        }
        assert_eq!(guard.watch(60.0), None);
        assert!(guard.watch(1e5).is_some());
        assert!(guard.watch(f64::NAN).is_some());
        assert!(guard.watch(f64::INFINITY).is_some());
    }

    #[test]
    fn a_wild_start_is_allowed() {
        let mut guard = Guard::default();
        for loss in [1e6, 1e4, 300.0, 50.0, 2e3, 20.0] {
            assert_eq!(guard.watch(loss), None);
        }
    }
}
