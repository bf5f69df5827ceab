//! The table of where each arm ended, shown on the terminal and on the page alike.

use indexmap::IndexSet;

use crate::{
    number::{interval, rounded},
    record::Experiment,
    summary::Quantiles,
    table::{Align, Table},
};

/// One row per arm: its last iteration, the quantiles there, the median's 95 % interval over runs and, where measured, the acceptance
/// probabilities; also its runs, if not every arm has as many.
pub fn final_values(experiment: &Experiment) -> Table {
    let arms = || experiment.arms.values();
    let rules: IndexSet<&String> = arms().flat_map(|arm| arm.acceptance.keys()).collect();
    let uneven = arms().any(|arm| arm.finished_runs.is_some());
    let numbers = ["iteration", "median", "95 % interval", "q25", "q75", "worst"]
        .into_iter()
        .map(String::from)
        .chain(rules.iter().map(|rule| format!("acceptance {rule}")))
        .chain(uneven.then(|| "runs".into()));
    let arm = ("arm".to_string(), Align::Left);
    let mut table = Table::new([arm].into_iter().chain(numbers.map(|name| (name, Align::Right))));
    for (name, arm) in &experiment.arms {
        let Some((iteration, quantiles)) = arm.curves.last() else {
            table.row([name.as_str(), "none"]);
            continue;
        };
        let mut cells = vec![name.clone(), iteration.to_string()];
        let Quantiles { median, median_interval, q25, q75, worst } = quantiles;
        cells.extend([rounded(median), interval(median_interval)]);
        cells.extend([q25, q75, worst].map(rounded));
        let acceptance = |rule: &&String| arm.acceptance.get(*rule)?.last().copied();
        cells.extend(rules.iter().map(|rule| acceptance(rule).map(rounded).unwrap_or_default()));
        let runs = arm.finished_runs.unwrap_or(experiment.finished_runs);
        cells.extend(uneven.then(|| runs.to_string()));
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record::Arm, summary::summarise};

    #[test]
    fn an_arm_without_acceptance_leaves_its_cells_empty_and_one_without_curves_says_none() {
        let mut experiment = Experiment::new("ring", "0");
        let curves = summarise(&[vec![3.0, 2.0]], &[1, 2]).expect("two iterations");
        let mut with = Arm::from(curves.clone());
        with.acceptance.insert("cnce".into(), vec![0.25, 0.5]);
        experiment.arms.insert("with".into(), with);
        experiment.arms.insert("without".into(), curves.into());
        experiment.arms.insert("unfinished".into(), Arm::default());
        let table = final_values(&experiment);
        assert_eq!(table.columns().last().expect("columns").0, "acceptance cnce");
        let cells = ["with", "2", "2.000", "too few", "2.000", "2.000", "2.000", "0.5000"];
        assert_eq!(table.rows()[0], cells);
        assert_eq!(table.rows()[1][7], "");
        assert_eq!(table.rows()[2][1], "none");
    }

    #[test]
    fn runs_are_given_where_arms_differ_in_them() {
        let mut experiment = Experiment::new("ring", "0");
        experiment.finished_runs = 9;
        let curves = summarise(&[vec![3.0]], &[1]).expect("one iteration");
        experiment.arms.insert("all".into(), curves.clone().into());
        assert_eq!(final_values(&experiment).columns().len(), 7);
        let mut some = Arm::from(curves);
        some.finished_runs = Some(4);
        experiment.arms.insert("some".into(), some);
        let table = final_values(&experiment);
        assert_eq!((table.rows()[0][7].as_str(), table.rows()[1][7].as_str()), ("9", "4"));
    }
}
