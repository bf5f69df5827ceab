//! `report.html`: one page about a run.

use std::fs;
use std::path::PathBuf;

use burn::tensor::Device;
use zhat::ar::Evaluator;
use zhat::rng::Streams;
use zhat::smc::{ResampleWhen, Resampling, SmcConfig};
use zhat_report::export;
use zhat_report::figure::{Colour, Density, Figure, Marker, Panel, Scale, Series};
use zhat_report::page::Page;
use zhat_report::{Align, Setting, Table};

use crate::error::{Result, TableError};
use crate::fit::{FitConfig, FitReport, MetricsRecord};
use crate::prepare::prepare;
use crate::run::{RunDirectory, load_model};

/// Rows shown in a scatter plot.
const POINTS: usize = 600;
/// Columns whose pairs are shown.
const SHOWN_COLUMNS: usize = 4;
/// Cells of a density picture, in each direction.
const GRID: usize = 80;

/// Writes the page of a finished run and gives its path.
pub fn write(run: &RunDirectory) -> Result<PathBuf> {
    let page = page(run)?;
    let path = run.report();
    export::page::write(&path, &page)?;
    Ok(path)
}

fn page(run: &RunDirectory) -> Result<Page> {
    let result: FitReport = read_json(run.results())?;
    let config = FitConfig::read(&run.config())?;
    let metrics = read_metrics(run)?;
    let title = format!("{}: a density by {}", result.source, result.criterion);
    let test = &result.test;
    let lead = format!(
        "Test log-likelihood {:.4} nats a row, give or take {:.4} for the rows and {:.4} for log Z; the proposal alone has \
         {:.4}.",
        test.log_likelihood, test.se_test, test.se_log_z, test.proposal_log_likelihood
    );
    let mut page = Page::new(title).lead(lead);
    page = page.section("Likelihood").table("On the test part", &likelihood_table(&result));
    page = page.section("Training").figure(
        &curves(&metrics),
        "Loss of the batches, and log-likelihood of the validation part.",
    )?;
    page = page.figure(
        &effective_sample_sizes(&result),
        "Effective sample size of the particles after each column, as a share of their number.",
    )?;
    page = pictures(page.section("Data and model"), run, &config)?;
    let footer = format!("zhat {}, {:.1} s", result.version, result.seconds);
    Ok(page.section("Configuration").settings(&settings(&config)).footer(footer))
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
    table.row([
        "model".into(),
        number(test.log_likelihood),
        number(test.se_test),
        number(test.se_log_z),
    ]);
    table.row([
        "proposal".into(),
        number(test.proposal_log_likelihood),
        number(test.proposal_se_test),
        String::from("none"),
    ]);
    if let Some(truth) = result.truth {
        table.row(["truth".into(), number(truth), String::new(), String::new()]);
    }
    table
}

fn curves(metrics: &[MetricsRecord]) -> Figure {
    let points = |value: fn(&MetricsRecord) -> Option<f64>| -> Vec<(f64, f64)> {
        metrics.iter().filter_map(|line| Some((line.step as f64, value(line)?))).collect()
    };
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
    let points = result.test.ess.iter().enumerate().map(|(at, ess)| (at as f64 + 1.0, *ess));
    let series = Series::line("", Colour::BLUE, points.collect()).with_marker(Marker::Disc);
    Figure::new(vec![
        Panel::new("Effective sample size")
            .x("column", Scale::Linear)
            .y("share of the particles", Scale::Linear)
            .y_limits(0.0, 1.05)
            .series(series),
    ])
}

/// Pairs of columns, data beside draws, and the density of the first two.
fn pictures(page: Page, run: &RunDirectory, config: &FitConfig) -> Result<Page> {
    let (model, card) = load_model(run, &Device::flex())?;
    let data = match prepare(config) {
        Ok(data) => data,
        Err(error) => return Ok(page.notice(&format!("The data could not be read again: {error}"))),
    };
    let features = card.columns.len();
    if features < 2 {
        return Ok(page.text("With one column there are no pairs to show."));
    }
    let evaluator = Evaluator::new(&card.model, &model, 0)?;
    let streams = Streams::new(config.seed).derive("report", 0);
    let smc = SmcConfig::new(20_000)?
        .with_resampling(Resampling::Systematic)
        .with_resample_when(ResampleWhen::EveryStage);
    let estimate = evaluator.smc(&smc, &streams, 0)?;
    let mut draws = estimate.sample(20_000, &mut streams.stream("draws", 0, 0));
    card.standardiser.invert(&mut draws);
    let mut rows = data.test[..data.test.len().min(POINTS * features)].to_vec();
    card.standardiser.invert(&mut rows);
    let shown = features.min(SHOWN_COLUMNS);
    let mut panels = Vec::new();
    for second in 1..shown {
        for first in 0..second {
            let pair = |values: &[f32]| -> Vec<(f64, f64)> {
                let rows = values.chunks_exact(features).take(POINTS);
                rows.map(|row| (f64::from(row[first]), f64::from(row[second]))).collect()
            };
            panels.push(
                Panel::new("")
                    .x(&card.columns[first], Scale::Linear)
                    .y(&card.columns[second], Scale::Linear)
                    .series(Series::scatter("data", Colour::BLUE, pair(&rows)))
                    .series(Series::scatter("model", Colour::VERMILION, pair(&draws))),
            );
        }
    }
    let figure = Figure::new(panels).with_columns(2);
    let caption = format!(
        "Test rows and as many draws of the model, for the first {shown} of {features} columns."
    );
    let page = page.figure(&figure, &caption)?;
    let density = histogram(&draws, features);
    let panel = Panel::new("Density of the model")
        .x(&card.columns[0], Scale::Linear)
        .y(&card.columns[1], Scale::Linear)
        .density(density);
    let caption = "Density of the first two columns, from 20,000 draws of the model.";
    Ok(page.figure(&Figure::new(vec![panel]), caption)?)
}

/// A histogram of the first two columns between their extreme percentiles.
fn histogram(draws: &[f32], features: usize) -> Density {
    let range = |column: usize| {
        let mut values: Vec<f32> = draws.chunks_exact(features).map(|row| row[column]).collect();
        values.sort_by(f32::total_cmp);
        let at = |share: f64| f64::from(values[(share * (values.len() - 1) as f64) as usize]);
        let (low, high) = (at(0.002), at(0.998));
        let margin = 0.05 * (high - low).max(1e-9);
        (low - margin, high + margin)
    };
    let (x, y) = (range(0), range(1));
    let cell = |value: f32, (low, high): (f64, f64)| {
        let share = (f64::from(value) - low) / (high - low);
        (0.0..1.0).contains(&share).then_some((share * GRID as f64) as usize)
    };
    let mut counts = vec![0.0; GRID * GRID];
    for row in draws.chunks_exact(features) {
        if let (Some(i), Some(j)) = (cell(row[0], x), cell(row[1], y)) {
            counts[j * GRID + i] += 1.0;
        }
    }
    let area = (x.1 - x.0) * (y.1 - y.0) / (GRID * GRID) as f64;
    let number = (draws.len() / features) as f64;
    Density::of((x, GRID), (y, GRID), |a, b| {
        let (i, j) = (cell(a as f32, x).unwrap_or(0), cell(b as f32, y).unwrap_or(0));
        counts[j * GRID + i] / (number * area)
    })
}

/// The configuration, section by section.
fn settings(config: &FitConfig) -> indexmap::IndexMap<String, Setting> {
    let mut settings = indexmap::IndexMap::new();
    let value = serde_json::to_value(config).expect("a configuration is plain data");
    flatten("", &value, &mut settings);
    settings
}

fn flatten(
    prefix: &str,
    value: &serde_json::Value,
    settings: &mut indexmap::IndexMap<String, Setting>,
) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&name, value, settings);
            }
        }
        serde_json::Value::String(text) => {
            settings.insert(prefix.into(), Setting::from(text.as_str()));
        }
        other => {
            settings.insert(prefix.into(), Setting::from(other.to_string()));
        }
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: PathBuf) -> Result<T> {
    let bytes = fs::read(&path).map_err(|source| TableError::io(&path, source))?;
    serde_json::from_slice(&bytes).map_err(|error| TableError::model(&path, error.to_string()))
}

fn read_metrics(run: &RunDirectory) -> Result<Vec<MetricsRecord>> {
    let path = run.metrics();
    let text = fs::read_to_string(&path).map_err(|source| TableError::io(&path, source))?;
    text.lines()
        .map(|line| {
            serde_json::from_str(line).map_err(|error| TableError::model(&path, error.to_string()))
        })
        .collect()
}
