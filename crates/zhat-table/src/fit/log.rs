//! Where the numbers of a run go while it goes on: `metrics.jsonl`, and event files for those who want them.

use indexmap::IndexMap;
use zhat::train::StepReport;

use crate::error::Result;
use crate::run::{EventFile, Metrics};

/// Both, and how often a step is written.
pub struct Log {
    pub metrics: Metrics,
    pub events: Option<EventFile>,
    /// Steps from one to the next.
    pub every: u64,
}

impl Log {
    /// What a step measured, where it is its turn.
    pub fn step(&mut self, step: u64, report: &StepReport, learning_rate: f64) -> Result<()> {
        if !step.is_multiple_of(self.every) {
            return Ok(());
        }
        self.append(
            step,
            &[
                ("loss", Some(report.loss)),
                ("proposal_nll", report.proposal_nll),
                ("learning_rate", Some(learning_rate)),
                ("gradient_norm", Some(report.gradient_norm)),
                ("effective_sample_size", report.effective_sample_size),
            ],
        )
    }

    /// Appends what was measured to the metrics, and to the event file.
    pub fn append(&mut self, step: u64, measured: &[(&str, Option<f64>)]) -> Result<()> {
        let numbers = measured.iter().filter_map(|&(name, number)| Some((name, number?)));
        let mut line = IndexMap::from([("step", serde_json::Value::from(step))]);
        line.extend(numbers.clone().map(|(name, number)| (name, number.into())));
        self.metrics.append(&line)?;
        let Some(events) = &mut self.events else { return Ok(()) };
        let tag = |name| match name {
            "validation" => "validation/model",
            "validation_error" => "validation/error",
            "validation_proposal" => "validation/proposal",
            "validation_ahead" => "validation/ahead",
            "validation_ahead_error" => "validation/ahead_error",
            other => other,
        };
        events.scalars(step, &numbers.map(|(name, number)| (tag(name), number)).collect::<Vec<_>>())
    }
}
