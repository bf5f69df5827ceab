//! One page about several runs: how they compare, and then each by itself.

use zhat_report::figure::{Colour, Figure, Panel, Scale, Series, Stroke};
use zhat_report::page::Page;
use zhat_report::{Align, Table};

use super::{Finished, drawn, sections};
use crate::error::Result;
use crate::fit::nats;

pub(super) fn page(runs: &[Finished]) -> Result<Page> {
    let mut page = Page::new(title(runs)).lead(lead(runs)).with_contents();
    page = page.section("Comparison");
    if let Some(warning) = warning(runs) {
        page = page.notice(warning);
    }
    page = page.table("On the test part, in nats a row", &table(runs));
    let caption = "Log-likelihood of the validation part. The first steps are cut off where they are far below.";
    page = drawn(page, "The curves", |page| Ok(page.figure(&validation(runs), caption)?))?;
    let differences = differences(runs);
    page = match differences.rows().is_empty() {
        true => page.text("All settings are the same."),
        false => page.table("Settings that differ", &differences),
    };
    for run in runs {
        let text = format!(
            "{}, by {}. {}",
            run.result.source,
            run.result.criterion,
            sections::lead(&run.result)
        );
        page = sections::all(page.section(&run.name).text(&text), run, Page::subsection)?;
    }
    Ok(page.footer(format!("zhat {}", env!("CARGO_PKG_VERSION"))))
}

fn title(runs: &[Finished]) -> String {
    let source = &runs[0].result.source;
    match runs.iter().all(|run| run.result.source == *source) {
        true => format!("{source}: {} densities", runs.len()),
        false => format!("{} densities", runs.len()),
    }
}

/// Which is best, and by how much, where that means something.
fn lead(runs: &[Finished]) -> String {
    if !are_of_the_same_data(runs) {
        return "These are densities of different data or columns: none of them is the best."
            .into();
    }
    let mut order: Vec<&Finished> = runs.iter().collect();
    // Those that have no likelihood come last.
    let height = |run: &Finished| run.result.test.log_likelihood.max(f64::NEG_INFINITY);
    order.sort_by(|a, b| height(b).total_cmp(&height(a)));
    let (first, second) = (&order[0].result.test, &order[1].result.test);
    if second.log_likelihood.is_nan() {
        let rest = if first.log_likelihood.is_nan() { "No run" } else { "One run alone" };
        return format!(
            "{rest} has a likelihood: where a density does not fall far out there is no Z."
        );
    }
    format!(
        "{} has the highest test log-likelihood: {:.4} nats a row, give or take {:.4} for the rows and {:.4} for log Z. {} \
         is next, {:.4} below.",
        order[0].name,
        first.log_likelihood,
        first.se_test,
        first.se_log_z,
        order[1].name,
        first.log_likelihood - second.log_likelihood
    )
}

/// Why the numbers should not be held against each other, if so.
fn warning(runs: &[Finished]) -> Option<&'static str> {
    let first = &runs[0];
    let all = |same: fn(&Finished, &Finished) -> bool| runs.iter().all(|run| same(run, first));
    if !are_of_the_same_data(runs) {
        return Some(
            "The runs have different data or columns: their likelihoods cannot be compared.",
        );
    }
    if !all(|a, b| a.config.data == b.config.data && a.config.seed == b.config.seed) {
        return Some(
            "The runs were tested on different rows, because their seeds or settings of the data differ: part of a difference is the luck of the split.",
        );
    }
    None
}

fn are_of_the_same_data(runs: &[Finished]) -> bool {
    let first = &runs[0];
    runs.iter().all(|run| {
        run.result.columns == first.result.columns
            && run.config.data.source == first.config.data.source
    })
}

fn table(runs: &[Finished]) -> Table {
    let headers = [
        "",
        "criterion",
        "model",
        "± rows",
        "± log Z",
        "trusted",
        "fits",
        "proposal",
        "least effective sample size",
        "best step",
        "seconds",
    ];
    let align = |(at, header)| (header, if at < 2 { Align::Left } else { Align::Right });
    let mut table = Table::new(headers.into_iter().enumerate().map(align));
    let number = |value: f64| format!("{value:.4}");
    for Finished { name, result, .. } in runs {
        let test = &result.test;
        table.row([
            name.clone(),
            result.criterion.clone(),
            nats(test.log_likelihood),
            number(test.se_test),
            number(test.se_log_z),
            if result.verdict.trusted { "yes" } else { "no" }.into(),
            result.verdict.fits.map_or("", |fits| if fits { "yes" } else { "no" }).into(),
            number(test.proposal_log_likelihood),
            format!("{:.1} %", 100.0 * test.smallest_effective_sample_size),
            format!("{} of {}", result.best_step, result.steps),
            format!("{:.1}", result.seconds),
        ]);
    }
    let truth = runs[0].result.truth;
    if let Some(truth) = truth.filter(|_| runs.iter().all(|run| run.result.truth == truth)) {
        table.row(["truth".into(), String::new(), number(truth)]);
    }
    table
}

/// The validation curves of all runs. The window leaves out the start of training, beside which the rest would be flat.
fn validation(runs: &[Finished]) -> Figure {
    let mut panel = Panel::new("").x("step", Scale::Linear).y("log-likelihood", Scale::Linear);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (index, run) in runs.iter().enumerate() {
        let points = sections::validation_curve(&run.result, &run.metrics);
        for &(_, value) in &points[points.len() / 4..] {
            (low, high) = (low.min(value), high.max(value));
        }
        high = points.iter().fold(high, |high, (_, value)| high.max(*value));
        let strokes = [Stroke::Solid, Stroke::Dashed, Stroke::Dotted];
        let stroke = strokes[index / Colour::PALETTE.len() % strokes.len()];
        let line = Series::line(&run.name, Colour::of_series(index), points).with_stroke(stroke);
        panel = panel.series(line);
    }
    let margin = 0.05 * (high - low);
    if margin > 0.0 {
        panel = panel.y_limits(low - margin, high + margin);
    }
    Figure::new(vec![panel])
}

/// Settings by name, with a column for each run, where any two runs differ.
fn differences(runs: &[Finished]) -> Table {
    let settings: Vec<_> = runs.iter().map(|run| sections::settings(&run.config)).collect();
    let names = runs.iter().map(|run| (run.name.clone(), Align::Right));
    let mut table = Table::new([(String::new(), Align::Left)].into_iter().chain(names));
    let mut seen = std::collections::HashSet::new();
    for name in settings.iter().flat_map(|settings| settings.keys()) {
        if !seen.insert(name) {
            continue;
        }
        let shown = |settings: &indexmap::IndexMap<String, zhat_report::Setting>| {
            settings.get(name).map_or_else(String::new, |setting| setting.shown())
        };
        let values: Vec<String> = settings.iter().map(shown).collect();
        if values.iter().any(|value| *value != values[0]) {
            table.row([name.clone()].into_iter().chain(values));
        }
    }
    table
}
