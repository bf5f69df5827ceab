//! Two runs on the same rows: which is ahead, by how much, and whether that is more than chance.

use serde::Serialize;

use super::Fitted;
use crate::data::ReadOptions;
use crate::error::{Result, TableError};
use crate::fit::mean_and_error;
use zhat::student::{two_sided, two_sided_point};

/// The interval misses the truth, and chance alone tells two runs apart, this often.
const LEVEL: f64 = 0.05;

/// How far one run is ahead of another, row by row: what makes a row likely or not under both cancels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// Rows.
    pub rows: usize,
    /// Mean log-likelihood of both, in nats a row.
    pub log_likelihoods: [f64; 2],
    /// How far the first is ahead, in nats a row.
    pub difference: f64,
    /// Its standard error, over the rows and of both `log Z`.
    pub standard_error: f64,
    /// An interval that holds the difference for all rows that there could be, in 95 % of cases.
    pub interval: [f64; 2],
    /// How often chance alone gives as large a difference.
    pub p_value: f64,
    /// Whether that is less often than once in twenty.
    pub told_apart: bool,
    /// What one should know before believing it.
    pub notes: Vec<String>,
}

/// Compares two runs on the test rows of the first, or on rows of a file or a built-in set.
pub fn paired(
    one: &Fitted,
    other: &Fitted,
    data: Option<(&str, &ReadOptions)>,
    seed: u64,
) -> Result<Paired> {
    let order = order_of_columns(one, other)?;
    let mut notes = notes(one, other, data.is_none())?;
    let (rows, of_other) = match data {
        // Each in its own codes.
        Some((source, options)) => {
            let rows = one.rows_of(source, options, seed)?.test;
            let of_other = other.rows_of(source, options, seed)?.test;
            if rows.len() != of_other.len() {
                let reason = "the two runs read different rows of the file: leave out rows with missing cells";
                return Err(TableError::config(reason.into()));
            }
            (rows, of_other)
        }
        None => {
            let rows = one.own_rows()?.test;
            let columns = order.len();
            let of_other = rows
                .chunks_exact(columns)
                .flat_map(|row| order.iter().map(|&column| row[column]))
                .collect();
            (rows, of_other)
        }
    };
    let [(log_z, error), (other_log_z, other_error)] = [one.log_z()?, other.log_z()?];
    let own = one.density().score(&rows)?.log_p_tilde;
    let others = other.density().score(&of_other)?.log_p_tilde;
    let pairs: Vec<(f64, f64)> = own
        .iter()
        .zip(&others)
        .map(|(own, other)| (own - log_z, other - other_log_z))
        .filter(|(own, other)| !own.is_nan() && !other.is_nan())
        .collect();
    if pairs.len() < own.len() {
        let left = own.len() - pairs.len();
        notes.push(format!(
            "{left} rows have missing cells that one of the runs cannot score, and are left out"
        ));
    }
    if pairs.len() < 2 {
        return Err(TableError::config(
            "there are fewer than two rows that both runs can score".into(),
        ));
    }
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let log_likelihoods = [mean(|pair| pair.0), mean(|pair| pair.1)];
    let ahead: Vec<f64> = pairs.iter().map(|(own, other)| own - other).collect();
    let (difference, over_rows) = mean_and_error(&ahead);
    Ok(Paired {
        log_likelihoods,
        notes,
        ..Paired::new(&ahead, difference, over_rows.hypot(error).hypot(other_error))
    })
}

impl Paired {
    fn new(ahead: &[f64], difference: f64, standard_error: f64) -> Self {
        let freedom = ahead.len() as f64 - 1.0;
        let p_value = match standard_error {
            // Two models that are the same.
            0.0 if difference == 0.0 => 1.0,
            error => two_sided(difference / error, freedom),
        };
        let reach = two_sided_point(LEVEL, freedom) * standard_error;
        Self {
            rows: ahead.len(),
            log_likelihoods: [f64::NAN; 2],
            difference,
            standard_error,
            interval: [difference - reach, difference + reach],
            p_value,
            told_apart: p_value < LEVEL,
            notes: Vec::new(),
        }
    }

    /// The outcome in a sentence.
    pub fn sentence(&self) -> String {
        let ahead = if self.difference >= 0.0 { "first" } else { "second" };
        let [low, high] = self.interval;
        match self.told_apart {
            true => format!(
                "The {ahead} run is ahead, by {:.4} nats a row; the first is ahead by {low:.4} to {high:.4} at 95 %.",
                self.difference.abs()
            ),
            false => format!(
                "These rows do not tell the two apart: the first is ahead by {low:.4} to {high:.4} nats a row at 95 %."
            ),
        }
    }
}

/// For every column of the other run, which of the first's it is.
fn order_of_columns(one: &Fitted, other: &Fitted) -> Result<Vec<usize>> {
    let [own, others] = [one, other].map(|run| run.density().columns());
    let place = |name: &String| own.iter().position(|own| own == name);
    let order: Option<Vec<usize>> = others.iter().map(place).collect();
    match order.filter(|_| own.len() == others.len()) {
        Some(order) => {
            for (column, &at) in order.iter().enumerate() {
                let counted = [(one, at), (other, column)]
                    .map(|(run, at)| run.density().standardiser().is_counted(at));
                if counted[0] != counted[1] {
                    let reason = format!(
                        "column {} has probabilities in one run and a density in the other: their likelihoods have different units. \
                         Fit both with the same kind of it",
                        own[at]
                    );
                    return Err(TableError::config(reason));
                }
            }
            Ok(order)
        }
        None => Err(TableError::config(format!(
            "the runs are densities of different columns, {} and {}: fit both to the same",
            own.join(", "),
            others.join(", ")
        ))),
    }
}

/// Whether the other run may have seen the rows, and whether each likelihood can be trusted.
fn notes(one: &Fitted, other: &Fitted, own_rows: bool) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let (first, second) = (one.config()?, other.config()?);
    let same_split = one.card().data_hash == other.card().data_hash
        && first.seed == second.seed
        && first.data.split == second.data.split;
    if own_rows && !same_split {
        if one.card().kinds.iter().map(|kind| &kind.kind).ne(other
            .card()
            .kinds
            .iter()
            .map(|kind| &kind.kind))
        {
            let reason = "the runs have found different kinds or words in their data: name a file of rows to compare them on";
            return Err(TableError::config(reason.into()));
        }
        notes.push(
            "the second run has another split or other data: it may have been fitted to some of these rows, and be ahead for that".into(),
        );
    }
    for (name, run) in [("first", one), ("second", other)] {
        let Ok((report, true)) = run.results() else { continue };
        if !report.verdict.trusted {
            notes.push(format!(
                "the likelihood of the {name} run is not to be trusted: zhat evaluate says why"
            ));
        }
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use zhat::rng::Streams;

    use super::*;

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let (mut held, mut told) = (0, 0);
        for seed in 0..400 {
            let mut rng = Streams::new(seed).stream("pairs", 0, 0);
            let ahead: Vec<f64> = rng.normals(40).into_iter().map(|x| 0.3 + x).collect();
            let (difference, error) = mean_and_error(&ahead);
            let found = Paired::new(&ahead, difference, error);
            held += usize::from(found.interval[0] < 0.3 && 0.3 < found.interval[1]);
            let null: Vec<f64> = ahead.iter().map(|x| x - 0.3).collect();
            told += usize::from(Paired::new(&null, difference - 0.3, error).told_apart);
        }
        // 380 and 20 of 400 on average, with a standard deviation of 4.4; four of them.
        assert!((362..=398).contains(&held), "{held}");
        assert!((2..=38).contains(&told), "{told}");
    }

    #[test]
    fn a_run_is_not_ahead_of_itself() {
        let same = Paired::new(&[0.0; 50], 0.0, 0.0);
        assert!(!same.told_apart && same.p_value == 1.0);
        assert!(same.sentence().contains("do not tell the two apart"));
    }
}
