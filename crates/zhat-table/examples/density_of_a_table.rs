//! A density of a table in a few lines: `cargo run --release --example density_of_a_table [FILE]`.

use std::sync::Arc;

use zhat::watch::Watch;
use zhat_table::fit::{Event, FitConfig, Session};
use zhat_table::prepare;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).unwrap_or_else(|| "builtin:banana".into());
    let out = std::env::temp_dir().join(format!("zhat-example-{}", std::process::id()));
    let config = FitConfig::new(&source)
        .with_setting("training.num-steps=1000")?
        .with_setting("step.warm-up=200")?;
    let (data, watch) = (prepare(&config)?, Arc::new(Watch::default()));
    let mut session = Session::start(config, data, &out, 0, &watch)?;
    let mut progress = |event: &Event| {
        if let Event::Validation { step, log_likelihood, .. } = event {
            eprintln!("step {step}: validation log-likelihood {log_likelihood:.3}");
        }
    };
    let report = session.run(None, &watch, &mut progress)?.expect("it was not stopped");
    println!(
        "test log-likelihood {:.3} +- {:.3} (rows) +- {:.3} (log Z) nats a row",
        report.test.log_likelihood, report.test.se_test, report.test.se_log_z
    );
    std::fs::remove_dir_all(out)?;
    Ok(())
}
