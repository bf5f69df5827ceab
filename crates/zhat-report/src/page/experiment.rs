//! The usual page of an experiment: claims, figures, where each arm ended, settings.

use super::Page;
use crate::{
    error::ReportError,
    figure::Figure,
    final_values::final_values,
    record::{Claim, Decision, Experiment},
};

impl Page {
    /// The page of an experiment, with its figures and their captions.
    pub fn of_experiment(
        title: impl Into<String>,
        lead: impl Into<String>,
        experiment: &Experiment,
        figures: &[(Figure, String)],
    ) -> Result<Self, ReportError> {
        let mut page = Self::new(title).lead(lead);
        if experiment.interrupted {
            page = page.notice(
                "This experiment was interrupted: it shows the runs that had finished by then.",
            );
        }
        if !experiment.claims.is_empty() {
            let holds = |claim: &&Claim| claim.decision == Decision::Holds;
            let hold = experiment.claims.iter().filter(holds).count();
            page = page
                .section("What the paper says, and what was measured")
                .text(&format!("{hold} of {} hold.", counted(experiment.claims.len(), "claim")))
                .claims(&experiment.claims);
        }
        if !figures.is_empty() {
            page = page.section("Figures");
        }
        for (figure, caption) in figures {
            page = page.figure(figure, caption)?;
        }
        let uneven = experiment.arms.values().any(|arm| arm.finished_runs.is_some());
        let caption = if uneven {
            "At the last iteration.".to_string()
        } else {
            format!("Over {} at the last iteration.", counted(experiment.finished_runs, "run"))
        };
        Ok(page
            .section("Where each arm ended")
            .table(&caption, &final_values(experiment))
            .section("Settings")
            .settings(&experiment.settings)
            .footer(format!(
                "zhat {} · {} · {:.1} s on {}",
                experiment.version,
                experiment.experiment,
                experiment.seconds,
                counted(experiment.threads, "thread")
            )))
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
