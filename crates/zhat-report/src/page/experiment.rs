//! The usual page of an experiment: claims, figures, where each arm ended, settings.

use super::Page;
use crate::{
    error::ReportError,
    figure::Figure,
    final_values::final_values,
    record::{Decision, Experiment},
};

impl Page {
    /// The page of an experiment, with its figures and their captions.
    pub fn of_experiment<'a>(
        title: impl Into<String>,
        lead: impl Into<String>,
        experiment: &Experiment,
        figures: impl IntoIterator<Item = (&'a Figure, &'a str)>,
    ) -> Result<Self, ReportError> {
        let page = Self::new(title).lead(lead).interrupted(experiment.interrupted);
        let page = page.section("What the paper says, and what was measured");
        let Experiment { version, experiment: name, seconds, threads, .. } = experiment;
        Ok(page
            .outcome(experiment, figures)?
            .section("Settings")
            .settings(&experiment.settings)
            .footer(format!(
                "zhat {version} · {name} · {seconds:.1} s on {}",
                counted(*threads, "thread")
            )))
    }

    /// Says that an experiment was interrupted, if it was.
    pub fn interrupted(self, interrupted: bool) -> Self {
        match interrupted {
            true => self.notice(
                "This experiment was interrupted: it shows the runs that had finished by then.",
            ),
            false => self,
        }
    }

    /// Claims, figures, and where each arm ended.
    pub fn outcome<'a>(
        mut self,
        experiment: &Experiment,
        figures: impl IntoIterator<Item = (&'a Figure, &'a str)>,
    ) -> Result<Self, ReportError> {
        let claims = &experiment.claims;
        if !claims.is_empty() {
            let hold = claims.iter().filter(|claim| claim.decision == Decision::Holds).count();
            let text = format!("{hold} of {} hold.", counted(claims.len(), "claim"));
            self = self.text(&text).claims(claims);
        }
        for (figure, caption) in figures {
            self = self.figure(figure, caption)?;
        }
        let uneven = experiment.arms.values().any(|arm| arm.finished_runs.is_some());
        let runs = match uneven {
            true => String::new(),
            false => format!(" over {}", counted(experiment.finished_runs, "run")),
        };
        let caption = format!("Where each arm ended{runs}, with the 95 % interval of the median.");
        Ok(self.table(&caption, &final_values(experiment)))
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
