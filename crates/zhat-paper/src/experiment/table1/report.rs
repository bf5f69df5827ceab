//! The table as files: `results.json`, `table1.csv`, `table1.txt`, a figure and a page.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;
use zhat::ranks::Workers;
use zhat_report::figure::{Colour, Figure, Panel, Scale, Series, Stroke};
use zhat_report::page::Page;
use zhat_report::{Claim, Table, export};
use zhat_table::Result;
use zhat_table::data::benchmark::Benchmark;
use zhat_table::fit::{Likelihood, MetricsRecord};

use super::claims::{claims, few_count, title};
use super::plan::REDUCED_RATE;
use super::published::{CONTEXT, points, published, true_distance};
use super::{Approach, Cell, Distances, Length, Settings, write_json};

/// The table so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table1 {
    /// `table1`.
    pub experiment: String,
    /// Version of zhat.
    pub version: String,
    /// What decided it.
    pub settings: Settings,
    /// Number of threads, of each rank.
    pub threads: usize,
    /// Number of ranks, which made one cell after the other together.
    pub ranks: usize,
    /// Whether the user stopped it before its last cell.
    pub interrupted: bool,
    /// Where a set is not the paper's, by set.
    pub differences: BTreeMap<String, Vec<String>>,
    /// The cells, set by set.
    pub cells: Vec<Cell>,
    /// Distances between test and validation rows, by set: what a perfect model would have.
    pub floors: BTreeMap<String, Distances>,
}

impl Table1 {
    pub(super) fn new(settings: &Settings, workers: &Workers) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            experiment: "table1".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            settings: settings.clone(),
            threads: if workers.threads() == 0 { cores() } else { workers.threads() },
            ranks: workers.size(),
            interrupted: false,
            differences: BTreeMap::new(),
            cells: Vec::new(),
            floors: BTreeMap::new(),
        }
    }

    /// The paper's statements about the order of the criteria, and what was found.
    pub fn claims(&self) -> Vec<Claim> {
        claims(&self.cells)
    }

    /// Test log-likelihoods beside the paper's.
    pub fn likelihoods(&self) -> Table {
        let mut table = Table::default();
        for cell in &self.cells {
            let found = cell.likelihood.as_ref();
            let shown = |value: fn(&Likelihood) -> f64| {
                found.map_or_else(String::new, |found| digits(value(found)))
            };
            let share = |found: &Likelihood| match found.particles {
                0 => "–".into(),
                _ => format!("{:.1} %", 100.0 * found.smallest_effective_sample_size),
            };
            let ours = found.map_or("diverged".into(), |found| digits(found.log_likelihood));
            let paper = published(cell.dataset, cell.criterion).map(|paper| paper.log_likelihood);
            let [figure, error] = pair(paper);
            table.entry(
                names(cell),
                [
                    ("log-likelihood", ours),
                    ("± log Z", shown(|found| found.se_log_z)),
                    ("± test rows", shown(|found| found.se_test)),
                    ("the paper's", figure),
                    ("± log Z", error),
                    ("proposal alone", shown(|found| found.proposal_log_likelihood)),
                    ("smallest ESS", found.map_or_else(String::new, share)),
                ],
            );
        }
        table
    }

    /// 2-Wasserstein distances beside the paper's, on both scales.
    pub fn distances(&self) -> Table {
        let mut table = Table::default();
        for (index, cell) in self.cells.iter().enumerate() {
            let paper = published(cell.dataset, cell.criterion).map(|paper| paper.wasserstein);
            table.entry(names(cell), distance_row(cell.wasserstein.as_ref(), paper, cell.dataset));
            let is_last = self.cells.get(index + 1).is_none_or(|next| next.dataset != cell.dataset);
            if let Some(floor) = self.floors.get(cell.dataset.name()).filter(|_| is_last) {
                let [set, (header, _)] = names(cell);
                let names = [set, (header, "validation rows".into())];
                table.entry(names, distance_row(Some(floor), None, cell.dataset));
            }
        }
        table
    }

    /// How much training each cell had, and what the paper's would take here.
    pub fn scale(&self) -> Table {
        let mut table = Table::default();
        for cell in &self.cells {
            let or_dash = |number: Option<String>| number.unwrap_or_else(|| "–".into());
            let share = cell.share_of_paper().map(|share| format!("{:.3} %", 100.0 * share));
            table.entry(
                names(cell),
                [
                    ("steps", cell.steps.to_string()),
                    ("of them warm-up", cell.warm_up.to_string()),
                    ("the paper's", or_dash(cell.paper_steps.map(|steps| steps.to_string()))),
                    ("share", or_dash(share)),
                    ("rows a step", cell.batch.to_string()),
                    ("the paper's", or_dash(cell.paper_batch.map(|rows| rows.to_string()))),
                    ("seconds a step", format!("{:.3}", cell.step_seconds.full)),
                    ("minutes", format!("{:.1}", cell.training_seconds / 60.0)),
                    (
                        "hours for --full",
                        or_dash(cell.full_hours.map(|hours| format!("{hours:.0}"))),
                    ),
                ],
            );
        }
        table
    }

    /// Published likelihoods of other methods on the table's sets.
    pub fn context(&self) -> Table {
        let sets: Vec<Benchmark> = Benchmark::ALL
            .into_iter()
            .filter(|set| self.cells.iter().any(|cell| cell.dataset == *set))
            .collect();
        let mut table = Table::default();
        for (method, from, figures) in CONTEXT {
            let of_all = Benchmark::ALL.into_iter().zip(figures);
            let of_sets = of_all.filter(|(set, _)| sets.contains(set));
            table.entry(
                [("method".to_string(), method.to_string()), ("from".into(), from.into())],
                of_sets.map(|(set, figure)| (title(set), format!("{figure:.2}"))),
            );
        }
        table
    }

    /// What a reader must know of the table's size.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.interrupted {
            notices.push("Interrupted: some cells are missing. Go on with --resume.".into());
        }
        if self.ranks > 1 {
            notices.push(format!(
                "Made by {} ranks (threads of each: {}), all of them on one cell at a time.",
                self.ranks, self.threads
            ));
        }
        if self.settings.length != Length::Full
            && let Some((cell, steps, batch)) = self
                .cells
                .iter()
                .find_map(|cell| Some((cell, cell.paper_steps?, cell.paper_batch?)))
        {
            let largest = self.cells.iter().filter_map(Cell::share_of_paper);
            let hours: f64 = self.cells.iter().filter_map(|cell| cell.full_hours).sum();
            notices.push(format!(
                "A reduced table: at most {:.3} % of the paper's steps ({} of {} for {}), of {} rows instead of {}, at {} \
                 times its learning rate. The order of the criteria can be compared, the figures themselves cannot. The paper's \
                 steps would take {hours:.0} hours here (--full).",
                100.0 * largest.fold(0.0, f64::max),
                cell.steps,
                steps,
                title(cell.dataset),
                cell.batch,
                batch,
                REDUCED_RATE,
            ));
        }
        if self.cells.iter().any(|cell| cell.criterion == Approach::Beyond) {
            let length = match self.settings.length {
                Length::Full => "for its own number of steps",
                Length::Steps(_) => "for as many steps as the others",
                Length::Budget(_) => "in as many steps of its own as fit into the budget",
            };
            notices.push(format!(
                "The row beyond the paper is not of its method, and none of its claims is about it: the default of `zhat fit`, \
                 each conditional a tilt of an autoregressive base and normalised by itself, trained {length}. Its log Z is 0 and \
                 has no error; its proposal is the base, which is the density itself where \
                 the tilt is not ahead of it on the validation rows."
            ));
        }
        if self.settings.wide_share > 0.0 {
            notices.push(format!(
                "Not the paper's negatives: {:.0} % of them have a feature drawn uniformly from a wide range.",
                100.0 * self.settings.wide_share
            ));
        }
        for (set, differences) in &self.differences {
            if !differences.is_empty() {
                notices.push(format!("{set} is not the paper's set: {}.", differences.join("; ")));
            }
        }
        for cell in &self.cells {
            if let Some(found) = cell.likelihood.as_ref().filter(|found| few_count(found)) {
                notices.push(format!(
                    "{} by {}: at one stage only {:.0} of {} particles count, so log Z is likely too low and the \
                     likelihood too high.",
                    title(cell.dataset),
                    cell.criterion.label(),
                    found.smallest_effective_sample_size * found.particles as f64,
                    found.particles
                ));
            }
            if let Some(found) = cell.likelihood.as_ref().filter(|found| !found.tail.falls) {
                notices.push(format!(
                    "{} by {}: the model does not fall far out (column {} has {}), so there is no Z. The figure is what an \
                     estimate finds that does not go out there, as the paper's is.",
                    title(cell.dataset),
                    cell.criterion.label(),
                    found.tail.column,
                    found.tail.figures()
                ));
            }
        }
        notices
    }

    /// Writes all files.
    pub(super) fn write(&self, out: &Path) -> Result<()> {
        #[derive(Serialize)]
        struct Document<'a> {
            #[serde(flatten)]
            table: &'a Table1,
            claims: Vec<Claim>,
        }
        write_json(&out.join("results.json"), &Document { table: self, claims: self.claims() })?;
        export::write_atomically(&out.join("table1.csv"), self.csv().as_bytes())?;
        export::write_atomically(&out.join("table1.txt"), self.to_string().as_bytes())?;
        let figure = self.figure(out);
        export::figure::write(out, "validation", &figure)?;
        export::page::write(&out.join("report.html"), &self.page(&figure)?)?;
        Ok(())
    }

    fn page(&self, figure: &Figure) -> Result<Page> {
        let sets: Vec<String> = self.settings.datasets.iter().map(|&set| title(set)).collect();
        let has_beyond = self.settings.criteria.contains(&Approach::Beyond);
        let beside = if has_beyond {
            " Beside them, beyond the paper, what zhat fits by default."
        } else {
            ""
        };
        let mut page = Page::new("Table 1: the autoregressive EBM by ML-IS, RNCE and SMC-RNCE").lead(format!(
            "{}: the paper's networks and settings, trained by each criterion for the same number of steps.{}",
            sets.join(", "),
            beside
        ));
        for notice in self.notices() {
            page = page.notice(&notice);
        }
        let claims = self.claims();
        if !claims.is_empty() {
            page = page.section("Claims").claims(&claims);
        }
        for (section, caption, table) in self.tables() {
            page = page.section(section).table(caption, &table);
        }
        page = page.section("Validation").figure(
            figure,
            "Log-likelihood of the validation rows while training: the model (solid) and its proposal (dotted), against the share of its steps.",
        )?;
        let footer = format!("zhat {}, {} threads", self.version, self.threads);
        Ok(page.footer(footer))
    }

    /// The tables, each with its title and what it shows.
    fn tables(&self) -> [(&'static str, &'static str, Table); 4] {
        [
            (
                "Test log-likelihood, nats a row in standardised units",
                "log Z is by SMC. The paper's error is that of log Z over ten estimates; the error over the test rows is \
                 given beside it, and belongs to the paper's figures too. Beyond the paper nothing is estimated.",
                self.likelihoods(),
            ),
            (
                "2-Wasserstein distance",
                "Between draws of the model and test rows. The authors' program divides by 2 where it should divide by the \
                 number of points n, so the published figures are sqrt(n/2) too large; both scales are given. Distances of \
                 different n cannot be compared. The last row of a set has rows of the validation part in place of a model's \
                 draws: what a perfect model would have.",
                self.distances(),
            ),
            (
                "Training",
                "Steps of each cell, and what the paper's number would take on this machine, as busy as it was, by the median \
                 time of a step.",
                self.scale(),
            ),
            (
                "Published log-likelihoods of other methods",
                "On the test rows of the same sets, for context.",
                self.context(),
            ),
        ]
    }

    /// Validation curves, a panel a set.
    fn figure(&self, out: &Path) -> Figure {
        let mut panels = Vec::new();
        for set in Benchmark::ALL {
            let cells: Vec<&Cell> = self.cells.iter().filter(|cell| cell.dataset == set).collect();
            if cells.is_empty() {
                continue;
            }
            let curves: Vec<_> = cells.iter().map(|cell| validation_curves(out, cell)).collect();
            let (low, high) = limits(&curves);
            let mut panel = Panel::new(title(set))
                .x("steps taken, %", Scale::Linear)
                .y("validation log-likelihood", Scale::Linear)
                .y_limits(low, high);
            for (index, (cell, [model, proposal])) in cells.iter().zip(curves).enumerate() {
                let colour = Colour::of_series(index);
                let proposal = Series::line("", colour, proposal).with_stroke(Stroke::Dotted);
                let model = Series::line(cell.criterion.label(), colour, model);
                panel = panel.series(model).series(proposal);
            }
            panels.push(panel);
        }
        let figure = Figure::new(panels).with_panel_size(520.0, 340.0);
        figure.with_columns(2)
    }

    /// One line a cell.
    fn csv(&self) -> String {
        let mut text = String::new();
        for cell in &self.cells {
            let paper = published(cell.dataset, cell.criterion);
            let likelihood = cell.likelihood.as_ref();
            let distances = cell.wasserstein.as_ref();
            let numbers = [
                ("steps", Some(cell.steps as f64)),
                ("paper_steps", cell.paper_steps.map(|steps| steps as f64)),
                ("log_likelihood", likelihood.map(|found| found.log_likelihood)),
                ("se_log_z", likelihood.map(|found| found.se_log_z)),
                ("se_test", likelihood.map(|found| found.se_test)),
                ("proposal_log_likelihood", likelihood.map(|found| found.proposal_log_likelihood)),
                ("paper_log_likelihood", paper.map(|paper| paper.log_likelihood.0)),
                ("paper_se_log_z", paper.map(|paper| paper.log_likelihood.1)),
                ("points", distances.map(|found| found.points as f64)),
                ("wasserstein", distances.map(|found| found.summary().0)),
                ("se_wasserstein", distances.map(|found| found.summary().1)),
                ("wasserstein_as_published", distances.map(|found| found.as_published().0)),
                ("paper_wasserstein", paper.map(|paper| paper.wasserstein.0)),
                ("paper_se_wasserstein", paper.map(|paper| paper.wasserstein.1)),
                ("seconds_per_step", Some(cell.step_seconds.full)),
                ("full_hours", cell.full_hours),
            ];
            if text.is_empty() {
                text = format!("dataset,criterion,{}\n", numbers.map(|(name, _)| name).join(","));
            }
            let numbers =
                numbers.map(|(_, number)| number.map_or(String::new(), |n| n.to_string()));
            text += &format!("{},{},{}\n", cell.dataset, cell.criterion, numbers.join(","));
        }
        text
    }
}

impl std::fmt::Display for Table1 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (title, _, table) in self.tables() {
            writeln!(f, "{title}\n\n{table}")?;
        }
        for claim in self.claims() {
            writeln!(f, "{claim}")?;
        }
        for notice in self.notices() {
            writeln!(f, "\n{notice}")?;
        }
        Ok(())
    }
}

/// The validation curves of a cell's model and of its proposal, as far as there are any; a figure is no reason to fail.
fn validation_curves(out: &Path, cell: &Cell) -> [Vec<(f64, f64)>; 2] {
    let path = out.join(cell.dataset.name()).join(cell.criterion.name()).join("metrics.jsonl");
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<MetricsRecord> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let points = |value: fn(&MetricsRecord) -> Option<f64>| -> Vec<(f64, f64)> {
        let share = |step: u64| 100.0 * step as f64 / cell.steps as f64;
        lines.iter().filter_map(|line| Some((share(line.step), value(line)?))).collect()
    };
    // In the warm-up the energy is untrained.
    let mut model = points(|line| line.validation);
    model.retain(|&(share, _)| share > 100.0 * cell.warm_up as f64 / cell.steps as f64);
    [model, points(|line| line.validation_proposal)]
}

/// From the worst of the later half of the proposals' curves to the best of all, so that a collapse does not hide the rest.
fn limits(curves: &[[Vec<(f64, f64)>; 2]]) -> (f64, f64) {
    let finite = |&(_, y): &(f64, f64)| y.is_finite().then_some(y);
    let all = curves.iter().flatten().flatten().filter_map(finite);
    let late = curves.iter().flat_map(|[_, proposal]| &proposal[proposal.len() / 2..]);
    let high = all.fold(f64::NEG_INFINITY, f64::max);
    let low = late.filter_map(finite).fold(f64::INFINITY, f64::min);
    let (low, high) = if low <= high { (low, high) } else { (-1.0, 1.0) };
    let margin = (high - low).max(0.5);
    (low - 1.5 * margin, high + 0.15 * margin)
}

fn names(cell: &Cell) -> [(&'static str, String); 2] {
    [("set (D)", title(cell.dataset)), ("criterion", cell.criterion.label())]
}

fn distance_row(
    found: Option<&Distances>,
    paper: Option<(f64, f64)>,
    set: Benchmark,
) -> [(&'static str, String); 8] {
    let corrected = paper.map(|(figure, _)| digits(true_distance(figure, points(set))));
    let [figure, error] = pair(paper);
    let [ours, ours_error] = pair(found.map(Distances::summary));
    let [scaled, scaled_error] = pair(found.map(Distances::as_published));
    [
        ("points", found.map_or_else(String::new, |found| found.points.to_string())),
        ("W2", ours),
        ("±", ours_error),
        ("the paper's W2", corrected.unwrap_or_else(|| "–".into())),
        ("published scale", scaled),
        ("±", scaled_error),
        ("the paper's", figure),
        ("±", error),
    ]
}

/// A figure and its error, or dashes.
fn pair(figure: Option<(f64, f64)>) -> [String; 2] {
    figure.map_or_else(
        || ["–".into(), String::new()],
        |(figure, error)| [digits(figure), digits(error)],
    )
}

/// Enough digits for a table: four below 10, fewer above.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size < 0.001 && size > 0.0 => format!("{value:.5}"),
        size if size < 10.0 => format!("{value:.4}"),
        size if size < 1000.0 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}
