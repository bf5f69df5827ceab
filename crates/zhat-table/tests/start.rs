//! Where columns start.

mod common;

use std::fmt::Write;
use std::sync::Arc;

use common::{directory, file};
use zhat::rng::Streams;
use zhat::watch::Watch;
use zhat_table::fit::{FitConfig, FitReport, Session, Start};
use zhat_table::prepare;

/// A short fit of a table in which a column is the sum of others but for a little.
fn fit(name: &str, start: Start) -> FitReport {
    let directory = directory(&format!("start-{name}"));
    let mut rng = Streams::new(4).stream("rows", 0, 0);
    let mut uniform = move || rng.uniform();
    let mut text = String::from("a,city,b,c,total\n");
    for _ in 0..1_500 {
        // Positive numbers would be taken by their logarithms, of which a sum is no straight line.
        let [a, b, c] = [uniform() - 0.5, 3.0 * uniform() - 1.0, uniform() * uniform() - 0.4];
        let city = if uniform() < 0.3 { "Uppsala" } else { "Visby" };
        let total = a + b + c + 0.01 * (uniform() - 0.5);
        // Some cells are missing.
        let b = if uniform() < 0.05 { String::new() } else { b.to_string() };
        writeln!(text, "{a},{city},{b},{c},{total}").unwrap();
    }
    let table = file(&directory, "table.csv", text);
    let mut config = FitConfig::for_table(table.to_str().unwrap(), 1_500, 5, Some(60));
    assert_eq!(config.start, Start::Lines, "the default");
    config.start = start;
    config.data.marginals = zhat_table::data::Marginals::Standard;
    config.validation.stack_mixtures = false;
    config.model.proposal.width = 32;
    let data = prepare(&config).unwrap();
    let watch = Arc::new(Watch::default());
    let out = directory.join("run");
    let mut session = Session::start(config, data, &out, 1, &watch).unwrap();
    session.run(None, &watch, &mut |_| ()).unwrap().unwrap()
}

#[test]
fn a_sum_is_known_to_a_fit_that_starts_on_lines() {
    let [lines, standard] = [("lines", Start::Lines), ("standard", Start::Standard)]
        .map(|(name, start)| fit(name, start).test.log_likelihood);
    assert!(lines > standard + 1.5, "{lines} {standard}");
}
