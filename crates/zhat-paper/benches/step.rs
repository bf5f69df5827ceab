//! One training step of each arm of both experiments: `cargo bench --workspace --bench step`.

use divan::Bencher;
use zhat::criterion::Method;
use zhat::rng::Streams;
use zhat::train::{DataSource, Order};
use zhat_paper::experiment::{proposals, ring};

fn main() {
    divan::main();
}

#[divan::bench(args = ["data", "model", "adaptive", "p-rnce", "adaptive-k3"])]
fn proposals(bencher: Bencher, name: &str) {
    let settings = proposals::Settings::default();
    let arm: proposals::Arm = name.parse().expect("an arm");
    let criterion = arm.criterion(settings.negatives).expect("valid settings");
    let mut trainer =
        proposals::trainer(&settings, Streams::new(0), criterion).expect("valid settings");
    let data = proposals::Data::new(&settings, &Streams::new(0));
    let (mut step, mut order) = (0, Order::new(settings.batch_size, Streams::new(0)));
    bencher.bench_local(|| {
        step += 1;
        trainer.train_step(&data.batch(step, &mut order)).expect("a finite step")
    });
}

#[divan::bench(args = ring::ARMS)]
fn ring(bencher: Bencher, arm: Method) {
    let settings = ring::Settings::default();
    let problem = ring::Problem::draw(&settings, &Streams::new(0));
    let mut trainer = problem.trainer(arm, &settings, Streams::new(0)).expect("valid settings");
    let rows = problem.rows();
    let (mut step, mut order) = (0, Order::new(settings.batch_size, Streams::new(0)));
    bencher.bench_local(|| {
        step += 1;
        trainer.train_step(&rows.batch(step, &mut order)).expect("a finite step")
    });
}
