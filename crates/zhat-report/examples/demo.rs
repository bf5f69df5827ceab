//! Makes up results of both toy experiments and writes every kind of output into the directory given as argument.

use std::{error::Error, f64::consts::TAU, path::Path};

use zhat_report::{
    Arm, Claim, Decision, Experiment, Setting, export,
    figure::{Colour, Density, Figure, LegendPosition, Panel, Scale, Series, Stroke, paired},
    final_values::final_values,
    log_spaced_iterations,
    page::Page,
    summarise,
};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args()
        .nth(1)
        .ok_or("say where to write: `cargo run --example demo -- DIRECTORY`")?;
    let directory = Path::new(&directory);
    proposals(&directory.join("proposals"))?;
    ring(&directory.join("ring"))?;
    densities(&directory.join("densities"))
}

/// A noise that looks random and is the same every time.
fn noise(run: usize, step: usize) -> f64 {
    let mixed = (run as u64 * 7_919 + step as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / (1u64 << 24) as f64
        - 0.5
}

fn made_up_arm(
    runs: usize,
    steps: usize,
    start: f64,
    half_life: f64,
    floor: f64,
) -> Result<Arm, Box<dyn Error>> {
    let runs: Vec<Vec<f64>> = (0..runs)
        .map(|run| {
            let speed = 1.0 + 0.6 * noise(run, 0);
            let level = floor * (1.0 + noise(run, 1)) * 2f64.powf(3.0 * noise(run, 2));
            (1..=steps)
                .map(|step| {
                    start * 0.5f64.powf(speed * step as f64 / half_life)
                        + level * (1.0 + 0.8 * noise(run, step + 2))
                })
                .collect()
        })
        .collect();
    Ok(summarise(&runs, &log_spaced_iterations(steps))?.into())
}

fn proposals(directory: &Path) -> Result<(), Box<dyn Error>> {
    export::output_directory(directory)?;
    let mut experiment = Experiment::new("proposals", env!("CARGO_PKG_VERSION"));
    experiment.settings.extend([
        ("runs".into(), Setting::Count(20)),
        ("steps".into(), Setting::Count(6500)),
        ("samples".into(), Setting::Unset),
        ("seed".into(), Setting::Count(1)),
        ("num_negatives".into(), Setting::Count(10)),
        ("batch_size".into(), Setting::Count(32)),
        ("learning_rate".into(), Setting::Real(0.056_57)),
        ("arms".into(), Setting::List(["data", "model", "adaptive"].map(Setting::from).into())),
        ("as_published".into(), Setting::Flag(false)),
    ]);
    experiment.seconds = 12.34;
    experiment.threads = 2;
    experiment.finished_runs = 20;
    let arms = [("data", 700.0, 0.012), ("model", 12.0, 0.010), ("adaptive", 45.0, 0.011)];
    for (name, half_life, floor) in arms {
        experiment.arms.insert(name.into(), made_up_arm(20, 6500, 42.0, half_life, floor)?);
    }
    experiment.claims = vec![
        Claim::new(
            "q = p_{θ} converges fastest.",
            "Made up.",
            "The median KL falls below 0.1 after 105 steps, against 390 (adaptive) and 6,100 (data).",
            Decision::Holds,
        ),
        Claim::new(
            "The adaptive proposal does much better than the exact data distribution.",
            "Made up.",
            "At step 100 the median KL is 9.1 with the adaptive proposal and 38 with q = p_{d}.",
            Decision::Holds,
        ),
        Claim::new(
            "All arms that converge end on about the same floor.",
            "Made up.",
            "Final medians 0.0104, 0.0110 and 0.079: `data` has not converged after 6,500 steps.",
            Decision::DoesNotHold,
        ),
    ];

    let labels = [
        ("data", "q = p_{d}", Colour::VERMILION),
        ("model", "q = p_{θ}", Colour::BLUE),
        ("adaptive", "q = q_{φ}", Colour::SKY),
    ];
    let panel = labels.iter().fold(
        Panel::new("").x("iteration", Scale::Log).y("KL[p_{d} ‖ p_{θ}]", Scale::Log),
        |panel, (arm, label, colour)| {
            panel.series(Series::median(*label, *colour, &experiment.arms[*arm].curves))
        },
    );
    let figure = Figure::new(vec![panel]);
    let caption = "Convergence of p_{θ} for three proposals q: median divergence over 20 runs, with error bars from the 25th to \
                   the 75th percentile. Made-up numbers.";
    write(directory, "kl", &experiment, figure, caption, "Which proposal should RNCE use?")
}

fn ring(directory: &Path) -> Result<(), Box<dyn Error>> {
    export::output_directory(directory)?;
    let mut experiment = Experiment::new("ring", env!("CARGO_PKG_VERSION"));
    experiment.settings.extend([
        ("runs".into(), Setting::Count(100)),
        ("samples".into(), Setting::Count(200)),
        ("negatives".into(), Setting::Count(5)),
        ("seed".into(), Setting::Count(1)),
        ("batch_size".into(), Setting::Count(20)),
        ("epochs".into(), Setting::Count(50)),
        ("as_published".into(), Setting::Flag(false)),
    ]);
    experiment.seconds = 4.2;
    experiment.threads = 2;
    experiment.finished_runs = 61;
    experiment.interrupted = true;
    let arms = [
        ("cnce", 60.0, 0.06),
        ("mh-cnce", 45.0, 0.05),
        ("p-cnce", 40.0, 0.02),
        ("p-mh-cnce", 32.0, 0.018),
    ];
    for (index, (name, half_life, floor)) in arms.into_iter().enumerate() {
        let mut arm = made_up_arm(100, 500, 1.4, half_life, floor)?;
        for (rule, limit) in [("cnce", 0.22), ("mh-cnce", 0.34)] {
            let curve = |&iteration: &usize| {
                limit + 0.12 * 0.5f64.powf(iteration as f64 / 60.0) + 0.01 * index as f64
            };
            arm.acceptance.insert(rule.into(), arm.curves.iterations.iter().map(curve).collect());
        }
        experiment.arms.insert(name.into(), arm);
    }
    experiment.claims = vec![
        Claim::new(
            "The MH acceptance probability is larger than CNCE's.",
            "Made up.",
            "Larger at every one of 47 iterations.",
            Decision::Holds,
        ),
        Claim::new(
            "Persistence lowers the final median and worst error.",
            "Made up.",
            "Median 0.019 against 0.055.",
            Decision::Holds,
        ),
    ];

    let mut error = Panel::new("Squared error")
        .x("iteration", Scale::Linear)
        .y("squared error of the precision", Scale::Log)
        .x_limits(0.0, 500.0);
    let mut acceptance = Panel::new("Acceptance")
        .x("iteration", Scale::Linear)
        .y("acceptance probability", Scale::Linear)
        .x_limits(0.0, 500.0);
    for (index, (name, arm)) in experiment.arms.iter().enumerate() {
        let colour = Colour::of_series(index);
        let mut median = Series::median(name.to_uppercase(), colour, &arm.curves);
        median.spread = None;
        error = error.series(median).series(Series::worst("", colour, &arm.curves));
    }
    let key = |label, stroke| Series::line(label, Colour::GREY, vec![]).with_stroke(stroke);
    error = error.series(key("median", Stroke::Solid)).series(key("worst", Stroke::Dashed));
    for (arm, stroke) in [("cnce", Stroke::Solid), ("p-cnce", Stroke::Dotted)] {
        for (rule, colour) in [("cnce", Colour::BLUE), ("mh-cnce", Colour::VERMILION)] {
            let arm = &experiment.arms[arm];
            let label = if stroke == Stroke::Solid {
                rule.to_uppercase()
            } else {
                format!("P-{}", rule.to_uppercase())
            };
            let points = paired(&arm.curves.iterations, &arm.acceptance[rule]);
            acceptance = acceptance.series(Series::line(label, colour, points).with_stroke(stroke));
        }
    }
    let figure = Figure::new(vec![error, acceptance]);
    let caption = "Ring model, N = 200, J = 5. Left: median (solid) and worst (dashed) squared error. Right: median acceptance \
                   probability of both rules on the same samples. Made-up numbers.";
    write(
        directory,
        "squared-error",
        &experiment,
        figure,
        caption,
        "Ring model: acceptance rule and persistence",
    )
}

/// What a report of a fit will need: a heat map, a scatter plot and both together.
fn densities(directory: &Path) -> Result<(), Box<dyn Error>> {
    export::output_directory(directory)?;
    let density = |x: f64, y: f64| {
        (-(x.hypot(y) - 2.0).powi(2) / 0.18).exp() * (1.0 + 0.5 * (x / 2.0).tanh())
    };
    let sample: Vec<(f64, f64)> = (0..800)
        .map(|index| {
            let (angle, radius) = (
                TAU * noise(index, 3),
                2.0 + 0.9 * (noise(index, 4) + noise(index, 5) + noise(index, 6)),
            );
            (radius * angle.cos(), radius * angle.sin())
        })
        .collect();
    let map = Density::of(((-3.2, 3.2), 96), ((-3.2, 3.2), 96), density).with_label("p(x)");
    let panels = vec![
        Panel::new("Model")
            .x("x_{1}", Scale::Linear)
            .y("x_{2}", Scale::Linear)
            .density(map)
            .equal_axes(),
        Panel::new("Data")
            .x("x_{1}", Scale::Linear)
            .y("x_{2}", Scale::Linear)
            .series(Series::scatter("observations", Colour::VERMILION, sample))
            .equal_axes()
            .legend(LegendPosition::Absent),
    ];
    let figure = Figure::new(panels);
    export::figure::write(directory, "densities", &figure)?;
    let page = Page::new("A fitted density")
        .lead("Blocks of the same page, for another report.")
        .figure(&figure, "A ring.")?;
    Ok(export::page::write(&directory.join("report.html"), &page)?)
}

fn write(
    directory: &Path,
    family: &str,
    experiment: &Experiment,
    figure: Figure,
    caption: &str,
    title: &str,
) -> Result<(), Box<dyn Error>> {
    export::json::write(&directory.join("results.json"), experiment)?;
    export::csv::write_arms(directory, family, experiment)?;
    export::figure::write(directory, &experiment.experiment, &figure)?;
    let lead = "Made-up results that show what a report looks like.";
    let page = Page::of_experiment(title, lead, experiment, [(&figure, caption)])?;
    export::page::write(&directory.join("report.html"), &page)?;
    println!("{title}\n\n{}", final_values(experiment));
    Ok(())
}
