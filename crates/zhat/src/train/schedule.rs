//! Learning rates over the course of a run.

use serde::{Deserialize, Serialize};

/// How the learning rate changes, as a factor of its start.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// It does not.
    #[default]
    Constant,
    /// In a straight line down to this factor at the last step.
    Linear(f64),
    /// Along half a cosine down to zero after the last step.
    Cosine,
}

impl Schedule {
    /// The factor at a step, counted from 0, of a run of `num_steps`.
    pub fn factor(self, step: usize, num_steps: usize) -> f64 {
        match self {
            Schedule::Constant => 1.0,
            Schedule::Linear(end) => {
                let last = num_steps.saturating_sub(1).max(1);
                let done = (step as f64 / last as f64).min(1.0);
                1.0 + (end - 1.0) * done
            }
            Schedule::Cosine => {
                let done = (step as f64 / num_steps.max(1) as f64).min(1.0);
                0.5 * (1.0 + (std::f64::consts::PI * done).cos())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_start_at_one_and_end_where_they_say() {
        let ends = [(Schedule::Constant, 1.0), (Schedule::Linear(0.1), 0.1)];
        for (schedule, end) in ends {
            assert_eq!(schedule.factor(0, 500), 1.0);
            assert!((schedule.factor(499, 500) - end).abs() < 1e-12);
        }
        assert!((Schedule::Linear(0.1).factor(250, 501) - 0.55).abs() < 1e-12);
        assert_eq!(Schedule::Cosine.factor(0, 100), 1.0);
        assert!((Schedule::Cosine.factor(50, 100) - 0.5).abs() < 1e-12);
        assert!(Schedule::Cosine.factor(100, 100).abs() < 1e-12);
        assert_eq!(Schedule::Linear(0.5).factor(0, 1), 1.0);
    }
}
