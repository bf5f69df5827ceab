//! The record, the figure and the page of the proposals experiment.

use zhat_report::figure::{Colour, Figure, Panel, Scale, Series};
use zhat_report::{Experiment, ReportError, Setting, log_spaced_iterations, summarise};

use super::claims::claims;
use super::{Arm, BASE_RATE, Results};
use crate::experiment::report::record;
use crate::experiment::{NamedFigure, Protocol, Report};

impl Results {
    /// The report, with curves at log-spaced iterations. An error if no repetition was finished.
    pub fn report(&self, seconds: f64, threads: usize) -> Result<Report, ReportError> {
        let settings = &self.settings;
        let rate = match settings.protocol {
            Protocol::Text => format!("{BASE_RATE} sqrt(batch-size)"),
            Protocol::AsPublished => {
                format!("{BASE_RATE} sqrt(batch-size), linearly down to 1 % of it")
            }
        };
        let runs = (self.finished_runs(), settings.runs);
        let mut experiment = record("proposals", settings, runs, (seconds, threads))?;
        experiment.settings.extend([
            ("learning-rate".into(), Setting::Text(rate)),
            ("start-mean".into(), Setting::Real(super::START_MEAN)),
            ("start-variance".into(), Setting::Real(settings.start_variance())),
        ]);
        let iterations = log_spaced_iterations(settings.steps);
        for (arm, runs) in settings.arms.iter().zip(&self.divergences) {
            experiment.arms.insert(arm.to_string(), summarise(runs, &iterations)?.into());
        }
        experiment.claims = claims(self);
        let figure = self.figure(&experiment);
        Ok(Report {
            experiment,
            family: "kl",
            title: "Which proposal should RNCE use?".into(),
            lead: self.lead(),
            figures: vec![figure],
        })
    }

    fn lead(&self) -> String {
        let data = match self.settings.samples {
            None => "fresh data at every step".to_owned(),
            Some(samples) => format!("{samples} training points"),
        };
        format!(
            "RNCE with J = {} negatives fits a Gaussian to five-dimensional Gaussian data ({data}), with the negatives drawn \
             from the data distribution, from the model itself, or from a proposal that learns. The fits that converge end on \
             about the same floor, which the step size sets{}: what the proposal decides is how soon they are there.",
            self.settings.negatives,
            if self.settings.samples.is_some() {
                ", and the number of training points"
            } else {
                ""
            }
        )
    }

    fn figure(&self, experiment: &Experiment) -> NamedFigure {
        let mut panel =
            Panel::new("").x("iteration", Scale::Log).y("KL[p_{d} ‖ p_{θ}]", Scale::Log);
        let curves = experiment.arms.values().map(|arm| &arm.curves);
        for (index, (arm, curves)) in self.settings.arms.iter().zip(curves).enumerate() {
            panel = panel.series(Series::median(arm.label(), colour(*arm, index), curves));
        }
        NamedFigure {
            name: "proposals".into(),
            figure: Figure::new(vec![panel]).with_panel_size(440.0, 330.0),
            caption: format!(
                "Convergence of p_{{θ}} for different proposals q: median divergence over {} runs. The error bars mark the \
                 25th and the 75th percentile. (Figure 1, left, of the paper.)",
                experiment.finished_runs
            ),
        }
    }
}

/// The paper's colours for the paper's arms, and others for others.
fn colour(arm: Arm, index: usize) -> Colour {
    match arm {
        Arm::DATA => Colour::VERMILION,
        Arm::MODEL => Colour::BLUE,
        Arm::ADAPTIVE => Colour::SKY,
        _ => Colour::of_series(3 + index),
    }
}
