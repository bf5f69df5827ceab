//! Train for a while, stop, and go on later to the same bits: `cargo run --release --example stop_and_resume`.
//!
//! Run it again and again: each time it trains 500 more steps of 2,000 and leaves its state in a file, with persistent
//! chains, the optimiser's moments and the best model so far. `kill -9` at any moment costs at most 100 steps.

use std::path::Path;

use zhat::burn::tensor::Device;
use zhat::criterion::{Method, MethodConfig};
use zhat::host::Place;
use zhat::model::{FullGaussian, MlpEnergyConfig};
use zhat::rng::Streams;
use zhat::train::{
    CriterionStep, Event, HeldOut, OptimiserConfig, Rows, Trainer, TrainerState, TrainingConfig,
};
use zhat::watch::Watch;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (streams, file) = (Streams::new(1), std::env::temp_dir().join("zhat_stop_and_resume"));
    // Two moons, in halves: one to train on, one to validate.
    let [train, held_out] = ["train", "held-out"].map(|part| {
        let rng = &mut streams.stream(part, 0, 0);
        let moon = |_| {
            let (angle, side) = (std::f64::consts::PI * rng.uniform(), rng.index(2) as f64);
            let [x, y] = [angle.cos() + side, (0.5 - side) * (2.0 * angle.sin() - 0.5)];
            [x + 0.1 * rng.normal(), y + 0.1 * rng.normal()]
        };
        let rows: Vec<f64> = (0..2000).flat_map(moon).collect();
        Place::new(&Device::flex()).tensor::<2>(rows, [2000, 2])
    });
    let model = MlpEnergyConfig::new(2)
        .init(&Device::flex().autodiff(), &mut streams.stream("init", 0, 0))?;
    let step = CriterionStep::new(MethodConfig::new(Method::PMhCnce).init(&train)?);
    let config =
        TrainingConfig::new(2000, 0.01).with_optimiser(OptimiserConfig::Adam).with_every(100, 100);
    let validation = HeldOut::new(held_out, FullGaussian::fitted(&train)?, 20_000, streams);
    let mut trainer = Trainer::new(model, step, config, streams)?.with_validation(validation);
    if let Ok(bytes) = std::fs::read(&file) {
        trainer.restore(TrainerState::from_bytes(&bytes)?)?;
        println!("going on after step {}", trainer.progress().step);
    }
    let (watch, until) = (Watch::default(), trainer.progress().step + 500);
    trainer.fit_watched(&Rows::new(train), &watch, &mut |event| {
        match event {
            Event::Step { step, .. } if step == until => watch.stop(),
            Event::Step { .. } => {}
            Event::Validation { step, found, best, .. } => {
                let mark = if best { " *" } else { "" };
                println!(
                    "step {step}: held-out log-likelihood {:.4}{mark}",
                    found.log_likelihood()
                );
            }
            Event::Checkpoint(state) => replace(&file, &state.to_bytes())?,
            Event::RolledBack { reason, .. } => println!("back to the last checkpoint: {reason}"),
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    if trainer.progress().step == trainer.config().num_steps {
        println!("done; the best model was that of step {:?}", trainer.progress().best);
        std::fs::remove_file(&file)?;
    }
    Ok(())
}

/// Whole or not at all: a kill in the middle leaves the old file.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, bytes)?;
    std::fs::rename(new, path)
}
