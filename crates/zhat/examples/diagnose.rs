//! Diagnostics of numbers from standard input, for `benches/vs_arviz`: `diagnose chains` or `diagnose weights`.
//!
//! Chains are a line each, with commas; their figures are rank-normalised and split R-hat, and bulk, tail and mean effective sample sizes.
//! Log-weights are one line; their figure is Pareto k-hat.

use std::io::Read;

use zhat::diagnostics::{
    bulk_effective_sample_size, effective_sample_size, rank_normalised_r_hat, split_r_hat,
    tail_effective_sample_size,
};
use zhat::evaluate::pareto_k;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let line = |line: &str| line.split(',').map(|cell| cell.trim().parse()).collect();
    let lines = text.lines().map(line).collect::<Result<Vec<Vec<f64>>, _>>()?;
    match std::env::args().nth(1).as_deref() {
        Some("chains") => {
            for figure in [
                rank_normalised_r_hat,
                split_r_hat,
                bulk_effective_sample_size,
                tail_effective_sample_size,
                effective_sample_size,
            ] {
                println!("{:.12e}", figure(&lines));
            }
        }
        Some("weights") => println!("{:.12e}", pareto_k(&lines.concat())),
        _ => return Err("say chains or weights".into()),
    }
    Ok(())
}
