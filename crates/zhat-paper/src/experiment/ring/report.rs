//! The record, the figure and the page of the ring experiment.

use zhat::criterion::Method;
use zhat_report::figure::{Colour, Figure, Panel, Scale, Series, Stroke, paired};
use zhat_report::{Arm, ReportError, Setting, log_spaced_iterations, summarise};

use super::claims::claims;
use super::{ARMS, ArmCurves, BASE_RATE, RADIUS, Results, VARIANCE};
use crate::experiment::report::record;
use crate::experiment::{NamedFigure, Protocol, Report};

/// The key of CNCE's rule in the record.
const BARKER: &str = "cnce";
/// The key of the Metropolis-Hastings rule in the record.
const METROPOLIS: &str = "mh-cnce";

/// How many points a curve of the figure has, whose axis is linear.
const POINTS: usize = 100;

impl Results {
    /// The report, with curves at log-spaced iterations. An error if no repetition was finished.
    pub fn report(&self, seconds: f64, threads: usize) -> Result<Report, ReportError> {
        let settings = &self.settings;
        let runs = (self.finished_runs(), settings.runs);
        let mut experiment = record("ring", settings, runs, (seconds, threads))?;
        let spread = match settings.protocol {
            Protocol::Text => "variance",
            Protocol::AsPublished => "std-dev",
        };
        let rate = format!("{BASE_RATE} sqrt(batch-size), linearly down to a tenth of it");
        let ends = |(low, high)| Setting::List([low, high].map(Setting::Real).into());
        experiment.settings.extend([
            ("steps".into(), Setting::Count(settings.num_steps() as u64)),
            ("learning-rate".into(), Setting::Text(rate)),
            ("radius".into(), ends(RADIUS)),
            (spread.into(), ends(VARIANCE)),
        ]);
        let iterations = log_spaced_iterations(settings.num_steps());
        for (method, curves) in settings.arms.iter().zip(&self.arms) {
            experiment.arms.insert(method.to_string(), curves.summarise(&iterations)?);
        }
        experiment.claims = claims(self);
        let (samples, negatives) = (settings.samples, settings.negatives);
        let caption = format!(
            "Ring model with N = {samples} training points and J = {negatives} negatives: {} runs. Left: squared error of the \
             precision, median (solid) and worst case (dashed). Middle: median acceptance probability of both rules on the \
             same samples, when training with (P-)CNCE. Right: the same when training with (P-)MH-CNCE.",
            experiment.finished_runs
        );
        let figure = Figure::new(self.panels()?);
        Ok(Report {
            experiment,
            family: "squared-error",
            title: "Ring model: acceptance rule and persistence in CNCE".into(),
            lead: format!(
                "Four ways to estimate the precision of a ring in five dimensions from {samples} points with J = {negatives} \
                 negatives: the acceptance probability of CNCE or of Metropolis-Hastings, with chains that start at the data \
                 or persist."
            ),
            figures: vec![NamedFigure { name: "ring".into(), figure, caption }],
        })
    }

    /// Squared error, and acceptance probabilities when training with either rule.
    pub(super) fn panels(&self) -> Result<Vec<Panel>, ReportError> {
        let steps = self.settings.num_steps();
        let mut iterations: Vec<usize> =
            (0..=POINTS).map(|point| (point * steps / POINTS).max(1)).collect();
        iterations.dedup();
        let arms = self
            .settings
            .arms
            .iter()
            .zip(&self.arms)
            .map(|(method, curves)| Ok((*method, curves.summarise(&iterations)?)))
            .collect::<Result<Vec<(Method, Arm)>, ReportError>>()?;
        let panel = |title: &str| {
            Panel::new(title).x("iteration", Scale::Linear).x_limits(0.0, steps.max(2) as f64)
        };
        let mut error = panel("Squared error").y("squared error of exp(θ)", Scale::Log);
        for (method, arm) in &arms {
            let mut median = Series::median(label(*method), colour(*method), &arm.curves);
            median.spread = None;
            error = error.series(median).series(Series::worst("", colour(*method), &arm.curves));
        }
        let key = |label, stroke| Series::line(label, Colour::GREY, vec![]).with_stroke(stroke);
        error = error.series(key("median", Stroke::Solid)).series(key("worst", Stroke::Dashed));
        let mut panels = vec![error];
        // The same axis for both rules, with room for the legend.
        let accepted = arms.iter().flat_map(|(_, arm)| arm.acceptance.values().flatten());
        let highest = accepted.copied().filter(|value| value.is_finite()).fold(0.1, f64::max);
        let rules = [
            ("Training with (P-)CNCE", [Method::Cnce, Method::PCnce]),
            ("Training with (P-)MH-CNCE", [Method::MhCnce, Method::PMhCnce]),
        ];
        for (title, trained) in rules {
            let mut acceptance = panel(title)
                .y("acceptance probability", Scale::Linear)
                .y_limits(0.0, 1.8 * highest);
            for (method, arm) in arms.iter().filter(|(method, _)| trained.contains(method)) {
                let persistent = matches!(method, Method::PCnce | Method::PMhCnce);
                let (rules, stroke) = match persistent {
                    false => ([Method::Cnce, Method::MhCnce], Stroke::Solid),
                    true => ([Method::PCnce, Method::PMhCnce], Stroke::Dotted),
                };
                for (rule, key) in rules.into_iter().zip([BARKER, METROPOLIS]) {
                    let points = paired(&arm.curves.iterations, &arm.acceptance[key]);
                    let line = Series::line(label(rule), colour(rule), points).with_stroke(stroke);
                    acceptance = acceptance.series(line);
                }
            }
            panels.push(acceptance);
        }
        Ok(panels)
    }
}

impl ArmCurves {
    /// Quantiles of the error and medians of the acceptance probabilities over runs.
    fn summarise(&self, iterations: &[usize]) -> Result<Arm, ReportError> {
        let mut arm = Arm::from(summarise(&self.squared_error, iterations)?);
        for (rule, runs) in [(BARKER, &self.barker), (METROPOLIS, &self.metropolis)] {
            arm.acceptance.insert(rule.into(), summarise(runs, iterations)?.median);
        }
        Ok(arm)
    }
}

fn label(method: Method) -> String {
    method.to_string().to_uppercase()
}

/// The same colour for the same name in every panel.
fn colour(method: Method) -> Colour {
    Colour::of_series(ARMS.iter().position(|arm| *arm == method).unwrap_or(0))
}
