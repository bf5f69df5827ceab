//! The sections about one run: likelihood, training, pictures, configuration.

use zhat_report::figure::{Colour, Figure, Marker, Panel, Scale, Series};
use zhat_report::page::Page;
use zhat_report::{Align, Setting, Table};

use super::{Finished, pictures};
use crate::error::Result;
use crate::fit::{FitConfig, FitReport, MetricsRecord};

/// The run in a sentence.
pub(super) fn lead(result: &FitReport) -> String {
    let test = &result.test;
    format!(
        "Test log-likelihood {:.4} nats a row, give or take {:.4} for the rows and {:.4} for log Z; the proposal alone has \
         {:.4}.",
        test.log_likelihood, test.se_test, test.se_log_z, test.proposal_log_likelihood
    )
}

/// Everything about a run, under headings of a kind.
pub(super) fn all(page: Page, run: &Finished, heading: fn(Page, &str) -> Page) -> Result<Page> {
    let result = &run.result;
    let page = heading(page, "Likelihood").table("On the test part", &likelihood_table(result));
    let page = heading(page, "Training").figure(
        &training(&run.metrics),
        "Loss of the batches, and log-likelihood of the validation part.",
    )?;
    let page = match result.test.estimates {
        0 => page.text("The density is normalised as it is: log Z is 0, without an error."),
        _ => page.figure(
            &effective_sample_sizes(result),
            "Effective sample size of the particles after each column, as a share of their number.",
        )?,
    };
    let page = pictures::all(heading(page, "Data and model"), run)?;
    Ok(heading(page, "Configuration").settings(&settings(&run.config)))
}

fn likelihood_table(result: &FitReport) -> Table {
    let test = &result.test;
    let mut table = Table::new([
        ("", Align::Left),
        ("nats a row", Align::Right),
        ("error over rows", Align::Right),
        ("error of log Z", Align::Right),
    ]);
    let number = |value: f64| format!("{value:.4}");
    for (name, mean, over_rows, of_log_z) in [
        ("model", test.log_likelihood, test.se_test, number(test.se_log_z)),
        ("proposal", test.proposal_log_likelihood, test.proposal_se_test, "none".into()),
    ] {
        table.row([name.into(), number(mean), number(over_rows), of_log_z]);
    }
    if let Some(truth) = result.truth {
        table.row(["truth".into(), number(truth), String::new(), String::new()]);
    }
    table
}

/// A quantity of the log at the steps where it was measured.
pub(crate) fn points(
    metrics: &[MetricsRecord],
    value: fn(&MetricsRecord) -> Option<f64>,
) -> Vec<(f64, f64)> {
    metrics.iter().filter_map(|line| Some((line.step as f64, value(line)?))).collect()
}

fn training(metrics: &[MetricsRecord]) -> Figure {
    let points = |value| points(metrics, value);
    let loss = Panel::new("Training")
        .x("step", Scale::Linear)
        .y("nats", Scale::Linear)
        .series(Series::line("loss", Colour::BLUE, points(|line| line.loss)))
        .series(Series::line("−log q", Colour::SKY, points(|line| line.proposal_nll)));
    let validation = Panel::new("Validation")
        .x("step", Scale::Linear)
        .y("log-likelihood", Scale::Linear)
        .series(Series::line("model", Colour::VERMILION, points(|line| line.validation)))
        .series(Series::line("proposal", Colour::SKY, points(|line| line.validation_proposal)));
    Figure::new(vec![loss, validation])
}

fn effective_sample_sizes(result: &FitReport) -> Figure {
    let sizes = result.test.effective_sample_size.iter().enumerate();
    let points = sizes.map(|(at, size)| (at as f64 + 1.0, *size));
    let series = Series::line("", Colour::BLUE, points.collect()).with_marker(Marker::Disc);
    Figure::new(vec![
        Panel::new("Effective sample size")
            .x("column", Scale::Linear)
            .y("share of the particles", Scale::Linear)
            .y_limits(0.0, 1.05)
            .series(series),
    ])
}

/// The configuration as `section.name` and value.
pub(super) fn settings(config: &FitConfig) -> indexmap::IndexMap<String, Setting> {
    let shown = |value| match value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    };
    let settings = config.settings().into_iter();
    settings.map(|(name, value)| (name, Setting::from(shown(value)))).collect()
}
