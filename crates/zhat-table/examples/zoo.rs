//! How the verdict does on a zoo of models whose defects are known: the table of `docs/trust.md`.
//!
//!     cargo run --release -p zhat-table --example zoo -- 20

#[path = "../tests/zoo/known.rs"]
mod known;
#[path = "../tests/zoo/models.rs"]
mod models;

use models::{Defect, zoo};
use zhat_table::density::Estimation;
use zhat_table::fitted::{About, assess};

fn main() -> zhat_table::Result<()> {
    let seeds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let settings = Estimation::new(4_000, 8);
    // Name and defect, and how often each of: distrusted, by its likelihood, by its columns, by the classifier.
    let mut table: Vec<(&str, Defect, [u32; 4])> = Vec::new();
    for seed in 0..seeds {
        for (at, animal) in zoo(seed).into_iter().enumerate() {
            let verdict =
                assess(&*animal.density, &animal.rows, None, &settings, true, seed)?.verdict;
            if at == table.len() {
                table.push((animal.name, animal.defect, [0; 4]));
            }
            let failed = |about: About, part: &str| {
                verdict
                    .checks
                    .iter()
                    .any(|c| !c.passed && c.about == about && c.name.contains(part))
            };
            let found = [
                !verdict.is_good(),
                failed(About::Likelihood, ""),
                failed(About::Fit, "quantile"),
                failed(About::Fit, "classifier"),
            ];
            table[at].2.iter_mut().zip(found).for_each(|(to, found)| *to += u32::from(found));
        }
        eprintln!("seed {seed}");
    }
    println!(
        "| model | defect | distrusted | by its likelihood | by a column | by the classifier |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, defect, counts) in table {
        let defect = match defect {
            Defect::None => "none",
            Defect::MissingMode => "missing mode",
            Defect::MassFarOut => "mass far out",
            Defect::NoZ => "no Z",
            Defect::Other => "other",
        };
        let [distrusted, likelihood, column, classifier] = counts.map(|count| match count {
            0 => String::new(),
            count => format!("{count}/{seeds}"),
        });
        println!("| {name} | {defect} | {distrusted} | {likelihood} | {column} | {classifier} |");
    }
    Ok(())
}
