//! The sections about one run: likelihood, training, pictures, configuration.

use zhat::rng::Streams;
use zhat::train::Answer;
use zhat_report::figure::{Colour, Figure, Marker, Panel, Scale, Series, Stroke};
use zhat_report::page::Page;
use zhat_report::{Align, Setting, Table};

use super::shown::Shown;
use super::{
    Finished, conditionals, correlations, drawn, limits, marginals, pictures, rows_and_draws,
};
use crate::data::ColumnKind;
use crate::error::Result;
use crate::fit::{CurvePoint, FitConfig, FitReport, MetricsRecord, nats};
use crate::fitted::{Gap, Verdict, checks_table, strangest, two_sample, worth_fewer};

/// The run in a sentence.
pub(super) fn lead(result: &FitReport) -> String {
    let test = &result.test;
    if !test.tail.falls {
        return format!(
            "There is no likelihood: the density does not fall far out, and has no Z. The proposal alone has {:.4} nats a row.",
            test.proposal_log_likelihood
        );
    }
    if test.rows == 0 {
        return "There is no test part, and so no likelihood of it.".into();
    }
    let proposal = match result.density {
        Answer::Model if !test.is_of_proposal() => {
            format!("the proposal alone has {:.4}", test.proposal_log_likelihood)
        }
        Answer::Model | Answer::Proposal => "the density is the proposal".into(),
    };
    format!(
        "Test log-likelihood {:.4} nats a row, give or take {:.4} for the rows and {:.4} for log Z; {proposal}.",
        test.log_likelihood, test.se_test, test.se_log_z
    )
}

/// Everything about a run, under headings of a kind.
pub(super) fn all(page: Page, run: &Finished, heading: fn(Page, &str) -> Page) -> Result<Page> {
    let result = &run.result;
    let page = verdict(page, &result.verdict);
    let page = result.notes.iter().fold(page, |page, note| page.text(note));
    let page = heading(page, "Likelihood");
    let page = match result.test.rows {
        0 => page.text("There is no test part, and so no likelihood of it."),
        _ => page.table("On the test part", &likelihood_table(result)),
    };
    let kept_back = match &result.cross_validation {
        Some(_) => "the rows that cross-validation left out",
        None => "the validation part",
    };
    let caption = format!(
        "Loss of the batches, and log-likelihood of {kept_back}; the dashed line is at the step of the model that was kept. What is \
         far worse than the rest, as at the start, is beyond the axes."
    );
    let page = drawn(heading(page, "Training"), "The curves", |page| {
        Ok(page.figure(&training(result, &run.metrics), &caption)?)
    })?;
    let page = match result.test.estimates {
        _ if !result.test.tail.falls => page,
        0 if result.test.quadrature_error > 0.0 => page.text(&format!(
            "The density is normalised column by column: log Z is 0. The integrals behind a row's log-density are known to {:.1e} \
             nats, by two rules of quadrature.",
            result.test.quadrature_error
        )),
        0 => page.text("The density is normalised as it is: log Z is 0, without an error."),
        _ => drawn(page, "The effective sample sizes", |page| {
            let caption =
                "Effective sample size of the particles after each column, as a share of their number.";
            Ok(page.figure(&effective_sample_sizes(result), caption)?)
        })?,
    };
    let page = data_and_model(page, run, heading)?;
    Ok(heading(page, "Configuration").settings(&settings(&run.config)))
}

/// What the columns of a table are: name, kind, range or levels, missing cells, what was done.
pub fn kinds_table(kinds: &[ColumnKind]) -> Table {
    let headers = ["column", "kind", "values", "missing", ""];
    let aligns = [Align::Left, Align::Left, Align::Left, Align::Right, Align::Left];
    let mut table = Table::new(headers.into_iter().zip(aligns));
    for column in kinds {
        let missing = if column.missing == 0 { String::new() } else { column.missing.to_string() };
        let kind = column.label().to_owned();
        table.row([column.name.clone(), kind, column.values(), missing, column.note.clone()]);
    }
    table
}

/// Test rows beside the model.
fn data_and_model(page: Page, run: &Finished, heading: fn(Page, &str) -> Page) -> Result<Page> {
    let shown = match Shown::new(run)? {
        Ok(shown) => shown,
        Err(reason) => return Ok(heading(page, "Data and model").notice(&reason)),
    };
    let page = heading(page, "Columns");
    let page = match &run.fitted.card().kinds[..] {
        [] => page,
        kinds => page.table("What they are", &kinds_table(kinds)),
    };
    let page = match worth_fewer(shown.num_draws(), shown.draws.effective_sample_size) {
        Some(warning) => page.text(&format!("In the pictures, {warning}.")),
        None => page,
    };
    let page = drawn(page, "The columns", |page| marginals::section(page, &shown))?;
    let page = match shown.columns.len() {
        1 => page,
        _ => {
            let page = drawn(heading(page, "Correlations"), "The correlations", |page| {
                correlations::section(page, &shown)
            })?;
            drawn(heading(page, "Pairs of columns"), "The pairs of columns", |page| {
                pictures::all(page, run, &shown)
            })?
        }
    };
    if shown.rows() == 0 {
        return Ok(page);
    }
    let density = run.fitted.density();
    let page = match run.result.test.tail.falls {
        true => drawn(heading(page, "Rows and draws"), "Rows and draws", |page| {
            // As the fit looked at them: the figures are those of the verdict.
            let streams = Streams::new(run.config.seed).derive("test", 0).derive("goodness", 0);
            let found = two_sample(density, &shown.as_read, &streams)?;
            rows_and_draws::section(page, found.as_ref())
        })?,
        false => page,
    };
    let strangest = strangest(density, &shown.as_read, conditionals::STRANGE_ROWS)?;
    let page = drawn(heading(page, "Calibration"), "The calibration", |page| {
        conditionals::calibration(page, &shown, &strangest)
    })?;
    let page = heading(page, "Strangest rows");
    Ok(match run.result.test.tail.falls {
        true => conditionals::strange_rows(page, &shown, &strangest, run.result.test.log_z),
        false => page.text("Where there is no Z there is no density to be low."),
    })
}

fn verdict(page: Page, verdict: &Verdict) -> Page {
    let tell = |page: Page, (sentence, reasons): (&str, Vec<&str>)| match reasons.is_empty() {
        true => page.assurance(sentence),
        false => page.notice(&format!("{sentence} {}.", reasons.join("; "))),
    };
    let page = verdict.sentences().into_iter().fold(page, tell);
    let page = match verdict.advice.is_empty() {
        true => page,
        false => page.text(&format!("What to do: {}.", verdict.advice.join("; "))),
    };
    match verdict.checks.is_empty() {
        true => page,
        false => page.table("What the verdict rests on", &checks_table(&verdict.checks)),
    }
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
    let mut row = |name: &str, mean: f64, over_rows: f64, of_log_z: String| {
        table.row([name.into(), nats(mean), number(over_rows), of_log_z]);
    };
    let [own, of_log_z] = [test.se_test, test.se_log_z];
    if result.density == Answer::Proposal || test.is_of_proposal() {
        row("the density, which is the proposal", test.log_likelihood, own, number(of_log_z));
    } else {
        row("model", test.log_likelihood, own, number(of_log_z));
        row("proposal", test.proposal_log_likelihood, test.proposal_se_test, "none".into());
    }
    if let Some(truth) = result.truth {
        table.row(["truth".into(), number(truth), String::new(), String::new()]);
    }
    if let Some(Gap { mean, standard_error, rows, .. }) = result.gap.filter(|gap| gap.fresh) {
        let name = format!("truth less model, of {rows} fresh rows");
        table.row([name, number(mean), number(standard_error), String::new()]);
    } else if let Some(Gap { mean, standard_error, .. }) = result.gap {
        let name = "truth less model, with the error of both".to_owned();
        table.row([name, number(mean), number(standard_error), String::new()]);
    }
    table
}

/// The model's log-likelihood of rows that were kept back, after so many steps.
pub(crate) fn validation_curve(result: &FitReport, metrics: &[MetricsRecord]) -> Vec<(f64, f64)> {
    curve(result, metrics, |point| point.model, |line| line.validation)
}

/// A log-likelihood of rows that were kept back: for cross-validation, or for the validation part.
fn curve(
    result: &FitReport,
    metrics: &[MetricsRecord],
    of_point: fn(&CurvePoint) -> Option<f64>,
    of_line: fn(&MetricsRecord) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let Some(found) = &result.cross_validation else { return points(metrics, of_line) };
    let point = |point: &CurvePoint| Some((point.step as f64, of_point(point)?));
    found.curve.iter().filter_map(point).collect()
}

/// A quantity of the log at the steps where it was measured.
fn points(metrics: &[MetricsRecord], value: fn(&MetricsRecord) -> Option<f64>) -> Vec<(f64, f64)> {
    metrics.iter().filter_map(|line| Some((line.step as f64, value(line)?))).collect()
}

fn training(result: &FitReport, metrics: &[MetricsRecord]) -> Figure {
    let loss = points(metrics, |line| line.loss);
    let of_proposal = points(metrics, |line| line.proposal_nll);
    let mut training = Panel::new("Training").x("step", Scale::Linear).y("nats", Scale::Linear);
    if let Some((low, high)) = limits::of_falling(&loss, &of_proposal) {
        training = training.y_limits(low, high);
    }
    // Where the proposal is the density, both are one line.
    let is_one = loss == of_proposal;
    training = training.series(Series::line("loss", Colour::BLUE, loss));
    if !is_one {
        training = training.series(Series::line("−log q", Colour::SKY, of_proposal));
    }
    let proposal = curve(result, metrics, |point| point.proposal, |line| line.validation_proposal);
    let validation = validation(result, validation_curve(result, metrics), proposal);
    // Cross-validation may have chosen no step at all.
    let trained = training.series.iter().any(|series| !series.points.is_empty());
    Figure::new(if trained { vec![training, validation] } else { vec![validation] })
}

/// Both curves of rows that were kept back, with the step of the model that was kept.
fn validation(result: &FitReport, model: Vec<(f64, f64)>, proposal: Vec<(f64, f64)>) -> Panel {
    let kept =
        result.cross_validation.as_ref().map_or(result.best_step, |cv| cv.chosen_step) as f64;
    let answer = match result.density {
        Answer::Model => &model,
        Answer::Proposal => &proposal,
    };
    let point = answer.iter().find(|(step, _)| *step == kept).copied();
    let mut panel =
        Panel::new("Validation").x("step", Scale::Linear).y("log-likelihood", Scale::Linear);
    let ends = limits::of_rising(&model, &proposal);
    if let Some((low, high)) = ends {
        let line = Series::line("", Colour::GREY, vec![(kept, low), (kept, high)]);
        panel = panel.y_limits(low, high).series(line.with_stroke(Stroke::Dashed));
    }
    if model == proposal {
        panel = panel.series(Series::line("density", Colour::VERMILION, model));
    } else {
        panel = panel.series(Series::line("model", Colour::VERMILION, model)).series(Series::line(
            "proposal",
            Colour::SKY,
            proposal,
        ));
    }
    match point {
        Some(point) => {
            let label = format!("kept: step {kept}, {:.3}", point.1).replace('-', "−");
            let mark = Series::scatter(label, Colour::INK, vec![point]);
            panel.series(mark.with_marker(Marker::Disc))
        }
        None => panel,
    }
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
