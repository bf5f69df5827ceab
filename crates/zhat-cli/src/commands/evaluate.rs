//! `zhat evaluate`: a likelihood, and whether it can be trusted.

use std::path::{Path, PathBuf};

use zhat::rng::Streams;
use zhat::smc::Resampling;
use zhat_report::{Align, Table};
use zhat_table::TableError;
use zhat_table::data::Missing;
use zhat_table::density::Estimation;
use zhat_table::fit::nats;
use zhat_table::fitted::{
    Assessment, DistanceKind, Gap, Paired, Predictive, Target, assess, checks_table, distances,
    paired, predictive,
};

use super::table_options::{RunOptions, TableOptions};
use crate::exit::Outcome;
use crate::progress::watched;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    run: RunOptions,
    /// A file or builtin:NAME [default: the test part of the run's own data]; before it another run, to compare the two on
    #[arg(num_args = 0..=2, value_name = "RUN|DATA")]
    more: Vec<String>,
    #[command(flatten)]
    table: TableOptions,
    /// Leave out rows with missing cells
    #[arg(long)]
    drop_missing: bool,
    /// Particles of each estimate of log Z
    #[arg(long, default_value_t = 50_000)]
    particles: usize,
    /// Independent estimates of log Z
    #[arg(long, default_value_t = 20)]
    estimates: usize,
    /// How SMC draws ancestors: multinomial, stratified or systematic
    #[arg(long, default_value_t = Resampling::Systematic)]
    resampling: Resampling,
    /// Do without importance sampling and bridge sampling as a check on log Z
    #[arg(long)]
    no_cross_check: bool,
    /// Also 2-Wasserstein distances between N draws of the model and N rows (exact up to 10,000, sliced above)
    #[arg(long, value_name = "N")]
    wasserstein: Option<usize>,
    /// Exit with 1 if the likelihood is not to be trusted, or the model does not fit
    #[arg(long)]
    strict: bool,
    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

/// What an estimate that starts from rows is worth.
const FROM_ROWS: &str = "SMC estimates log Z from below, and conditional SMC from above as far as the rows are like draws of the model: \
                         they are not exact draws of it.";

/// Estimates of a Wasserstein distance.
const DISTANCES: usize = 10;

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let (fitted, watch) = arguments.run.open()?;
    let (other, data) = match arguments.more.as_slice() {
        [run, rest @ ..] if is_run(run) => (Some(run), rest.first()),
        [data] => (None, Some(data)),
        [] => (None, None),
        [run, ..] => {
            let path = PathBuf::from(run);
            return Err(TableError::Unfinished { path, file: "model" }.into());
        }
    };
    // A model that knows what its columns are scores rows by what is observed of them.
    let missing = match (arguments.drop_missing, fitted.kinds()) {
        (true, _) => Missing::Drop,
        (false, Some(_)) => Missing::Keep,
        (false, None) => Missing::Refuse,
    };
    if let Some(run) = other {
        let other = arguments.run.open_other(Path::new(run), &watch)?;
        let options = arguments.table.read(missing);
        let data = data.map(|data| (&**data, &options));
        let found = watched(arguments.run.quiet, "comparing", None, &watch, || {
            paired(&fitted, &other, data, arguments.seed)
        })??;
        return tell_paired(arguments, run, &found);
    }
    let rows = match data {
        None => fitted.own_rows()?,
        Some(data) => fitted.rows_of(data, &arguments.table.read(missing), arguments.seed)?,
    };
    for warning in fitted.warnings() {
        eprintln!("warning: {warning}");
    }
    let Arguments { particles, estimates, resampling, seed, .. } = *arguments;
    let settings = Estimation { particles, estimates, resampling };
    let cross_check = !arguments.no_cross_check;
    let density = fitted.density();
    let [estimates, opinions] = density.work(&settings);
    let opinions = if cross_check { opinions } else { 0 };
    let work = estimates + opinions + rows.test.len() as u64;
    let quiet = arguments.run.quiet;
    let mut assessment = watched(quiet, "estimating log Z", Some(work), &watch, || {
        assess(density, &rows.test, rows.weights.as_deref(), &settings, cross_check, seed)
    })??;
    if let Some(truth) = &rows.truth {
        assessment = assessment.beside_truth(truth);
    }
    if let Some(number) = arguments.wasserstein {
        let streams = Streams::new(seed);
        let found = watched(quiet, "distances", None, &watch, || {
            distances(density, &rows.test, rows.other.as_deref(), number, DISTANCES, &streams)
        })??;
        assessment.wasserstein = Some(found);
    }
    if density.given() > 0 {
        let found = watched(quiet, "predicting", None, &watch, || {
            predictive(density, &rows.test, rows.weights.as_deref(), seed)
        })??;
        assessment.predictive = Some(found);
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&assessment)?);
    } else {
        print!("{}", table(&assessment));
        if let Some(note) = fitted.probabilities_in_words() {
            println!("\n{note}");
        }
        if let Some(found) = &assessment.predictive {
            print!("\n{}", predictions(found));
        }
        if assessment.likelihood.estimates > 0 && assessment.opinions.len() > 1 {
            println!("\n{FROM_ROWS}");
        }
        print!("\n{}", checks_table(&assessment.verdict.checks));
        println!("\n{}", assessment.verdict);
    }
    let failed = arguments.strict && !assessment.verdict.is_good();
    Ok(if failed { Outcome::Failed } else { Outcome::Done })
}

/// What the predictions of every column are worth.
fn predictions(found: &Predictive) -> Table {
    let mut table = Table::new([("", Align::Left), ("", Align::Right), ("", Align::Left)]);
    let mut row = |name: String, value: String, error: String| {
        table.row([name, value, error]);
    };
    for target in &found.targets {
        match target {
            Target::Number(number) => {
                let name = &number.column;
                row(
                    format!("{name}: CRPS"),
                    format!("{:.4}", number.crps),
                    format!("± {:.4} over {} rows", number.se_crps, found.rows),
                );
                let error = |value: f64| format!("{value:.4}");
                row(
                    "  mean absolute error of medians".into(),
                    error(number.absolute_error),
                    String::new(),
                );
                row(
                    "  root mean square error of means".into(),
                    error(number.root_mean_square_error),
                    String::new(),
                );
                for coverage in &number.coverage {
                    row(
                        format!("  rows in the {:.0} % interval", 100.0 * coverage.level),
                        format!("{:.1} %", 100.0 * coverage.found),
                        format!("± {:.1} %", 100.0 * coverage.standard_error),
                    );
                }
                row(
                    "  width of the 90 % interval".into(),
                    error(number.width_of_90),
                    "on average".into(),
                );
            }
            Target::Classes(classes) => {
                row(
                    format!("{}: log loss", classes.column),
                    format!("{:.4}", classes.log_loss),
                    format!("± {:.4} over {} rows", classes.se_log_loss, classes.rows),
                );
                row(
                    "  accuracy".into(),
                    format!("{:.1} %", 100.0 * classes.accuracy),
                    format!(
                        "± {:.1} %; the most frequent class has {:.1} %",
                        100.0 * classes.se_accuracy,
                        100.0 * classes.most_frequent
                    ),
                );
                row(
                    "  calibration error".into(),
                    format!("{:.4}", classes.calibration_error),
                    String::new(),
                );
            }
        }
    }
    table
}

/// Whether a name is that of a run's directory.
fn is_run(name: &str) -> bool {
    Path::new(name).join("model.json").is_file()
}

fn tell_paired(arguments: &Arguments, other: &str, found: &Paired) -> anyhow::Result<Outcome> {
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(found)?);
        return Ok(Outcome::Done);
    }
    let mut table = Table::new([("", Align::Left), ("", Align::Right), ("", Align::Left)]);
    let Paired { rows, log_likelihoods: [own, others], difference, standard_error, .. } = found;
    let [low, high] = found.interval;
    let plain = String::new;
    table.row(["rows".into(), rows.to_string(), plain()]);
    table.row([arguments.run.run.display().to_string(), format!("{own:.4}"), "nats a row".into()]);
    table.row([other.to_owned(), format!("{others:.4}"), plain()]);
    table.row([
        "the first is ahead by, row by row".into(),
        format!("{difference:.4}"),
        format!("± {standard_error:.4}, [{low:.4}, {high:.4}] at 95 %, p = {:.3}", found.p_value),
    ]);
    print!("{table}");
    println!("\n{}", found.sentence());
    found.notes.iter().for_each(|note| println!("Note: {note}."));
    Ok(Outcome::Done)
}

fn table(assessment: &Assessment) -> Table {
    let likelihood = &assessment.likelihood;
    let mut table = Table::new([("", Align::Left), ("", Align::Right), ("", Align::Left)]);
    let mut row = |name: &str, value: String, error: String| {
        table.row([name.to_owned(), value, error]);
    };
    let plain = String::new;
    let worth = likelihood.effective_rows.map(|rows| format!("by their weights worth {rows:.0}"));
    row("rows", likelihood.rows.to_string(), worth.unwrap_or_default());
    row(
        "log-likelihood, nats a row",
        nats(likelihood.log_likelihood),
        match likelihood.tail.falls {
            true => format!(
                "± {:.4} over rows, ± {:.4} of log Z",
                likelihood.se_test, likelihood.se_log_z
            ),
            false => plain(),
        },
    );
    if !likelihood.is_of_proposal() {
        row(
            "the proposal's own",
            format!("{:.4}", likelihood.proposal_log_likelihood),
            format!("± {:.4} over rows", likelihood.proposal_se_test),
        );
    }
    if let Some(truth) = assessment.truth {
        let above = assessment.gap.map(|Gap { mean, standard_error, .. }| {
            format!("{mean:.4} ± {standard_error:.4} above the model's")
        });
        row("the truth's", format!("{truth:.4}"), above.unwrap_or_default());
    }
    for (at, opinion) in assessment.opinions.iter().enumerate() {
        let size = opinion
            .effective_sample_size
            .map_or_else(String::new, |size| format!(", {size:.0} effective draws"));
        let dropped = if at == 0 || opinion.is_sound() { "" } else { ": too few, dropped" };
        let side = if opinion.from_above { ", from above" } else { "" };
        row(
            &format!("log Z by {}", opinion.method),
            format!("{:.4}", opinion.log_z),
            format!("± {:.4}{size}{dropped}{side}", opinion.standard_error),
        );
    }
    if !likelihood.tail.log_p_tilde.is_empty() {
        let [name, value] = likelihood.tail.line();
        row(&name, value, plain());
    }
    if !likelihood.tail.falls {
        row("log Z", nats(likelihood.log_z), plain());
    } else if likelihood.estimates == 0 {
        let by_quadrature = match likelihood.quadrature_error {
            0.0 => String::new(),
            error => format!(", its integrals ± {error:.1e} by quadrature"),
        };
        row("log Z", "0".into(), format!("the density is normalised as it is{by_quadrature}"));
    } else {
        row(
            "mean of log Z-hat",
            format!("{:.4}", likelihood.mean_log_z_hat),
            format!("{:.4} from one to the next", likelihood.spread_of_log_z_hat),
        );
        let sizes = &likelihood.effective_sample_size;
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        row(
            "effective sample size of a stage, smallest and mean",
            format!("{:.1} %", 100.0 * likelihood.smallest_effective_sample_size),
            format!("{:.1} % of {} particles", 100.0 * mean, likelihood.particles),
        );
        row("largest weight of a particle", format!("{:.2e}", likelihood.largest_weight), plain());
        let tails = &likelihood.pareto_k;
        row(
            "k-hat of the weights of a stage, largest and mean",
            format!("{:.2}", tails.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            format!("{:.2}", tails.iter().sum::<f64>() / tails.len() as f64),
        );
        row(
            "standard error of log Z by genealogies",
            format!("{:.4}", likelihood.se_log_z_by_genealogy),
            format!("{:.4} from one estimate to the next", likelihood.se_log_z),
        );
    }
    if let Some(found) = &assessment.wasserstein {
        let kind = match found.kind {
            DistanceKind::Exact => "2-Wasserstein",
            DistanceKind::Sliced => "sliced 2-Wasserstein",
        };
        row(
            &format!("{kind}, model to data"),
            format!("{:.4}", found.model),
            format!("± {:.4}, {} rows, standard units", found.se_model, found.rows),
        );
        if let (Some(data), Some(error)) = (found.data, found.se_data) {
            row(&format!("{kind}, data to data"), format!("{data:.4}"), format!("± {error:.4}"));
        }
    }
    table
}
