//! `zhat bench`: the training step of the autoregressive EBM, in seconds and in shares of the machine's GEMM peak.

use std::time::Instant;

use serde::Serialize;
use zhat::ar::{ArEbmConfig, ArStepConfig, Evaluator, PlacedStep, products_alone};
use zhat::burn::tensor::{Device, Tensor, TensorData};
use zhat::criterion::Method;
use zhat::ranks::Workers;
use zhat::rng::Streams;
use zhat::train::{Batch, OptimiserConfig, Trainer, TrainingConfig};
use zhat_paper::presets::Preset;
use zhat_report::{Align, Table};

use super::device_options::DeviceOptions;
use super::flops::{score_flops, step_flops, step_networks};
use crate::exit::Outcome;
use crate::ranks;

#[derive(clap::Args)]
pub struct Arguments {
    /// Shapes of the networks and of the data
    #[arg(long, default_value_t = Preset::Power)]
    preset: Preset,
    /// What a step minimises
    #[arg(long, default_value_t = Method::Rnce)]
    criterion: Method,
    /// Measure the scores of rows instead, which need no gradient: as many as a step has candidates
    #[arg(long)]
    evaluation: bool,
    /// Observations in a step [default: the preset's]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Negatives of each observation
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    negatives: u32,
    /// Share of units dropped [default: the preset's]
    #[arg(long)]
    dropout: Option<f64>,
    /// One more setting of the model or the step, such as model.conditioner=masked; may be given several times
    #[arg(long = "set", value_name = "SECTION.NAME=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    device: DeviceOptions,
    /// Timed steps, after two others
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

/// What a benchmark found. The names of the first fields are those that the PyTorch peer prints.
#[derive(Serialize)]
struct Report {
    median_seconds: f64,
    best_seconds: f64,
    /// Largest resident memory of the process, where the system tells.
    peak_memory_mb: Option<f64>,
    /// Network rows (observations x candidates x features) per second, by the median.
    rows_per_second: f64,
    /// Operations of the networks' products per second, by the median; products that are shared or skipped do not count.
    gflops: f64,
    /// The same of nothing but those products, all threads at once: the faster of the `gemm` crate and our own.
    gemm_peak_gflops: f64,
    /// `gflops / gemm_peak_gflops`
    gemm_share: f64,
    features: usize,
    batch: usize,
    threads: usize,
    /// How often the CPU waits for the device in a step; none where there is no device.
    reads_per_step: Option<f64>,
    /// Processes that share a step.
    ranks: usize,
    /// Share of the time that the first of them spends in messages, or in waiting for those of the others.
    communication_share: f64,
    /// Messages that it sends in a step.
    messages_per_step: f64,
    /// And their size.
    megabytes_per_step: f64,
    loss: f64,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let mut preset = arguments.preset.config("");
    preset.step = ArStepConfig::new(arguments.criterion);
    for setting in &arguments.settings {
        preset = preset.with_setting(setting)?;
    }
    preset.validate()?;
    let features = match preset.model.features {
        0 => arguments.preset.features(),
        features => features,
    };
    let mut config = preset.shape(features);
    config.dropout = arguments.dropout.unwrap_or(config.dropout);
    let mut settings = preset.step;
    settings.num_negatives = arguments.negatives as usize;
    let batch = arguments.batch.map_or(preset.training.batch_size, |batch| batch as usize);
    let (workers, steps) = (arguments.device.workers()?, arguments.steps as usize);
    let bench = Bench { config, settings, batch, workers, steps };
    let report = if arguments.evaluation { bench.scores()? } else { bench.training()? };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", table(&report));
    }
    Ok(Outcome::Done)
}

/// What is measured.
struct Bench {
    config: ArEbmConfig,
    settings: ArStepConfig,
    batch: usize,
    workers: Workers,
    steps: usize,
}

impl Bench {
    /// Trains on random data.
    fn training(&self) -> anyhow::Result<Report> {
        let Self { config, settings, batch, .. } = self;
        let streams = Streams::new(0);
        let device = self.workers.training_device();
        let model = config.init(&device, &mut streams.stream("init", 0, 0))?;
        let x = TensorData::new(self.random_rows(*batch, &streams), [*batch, config.features]);
        let rows: Batch = Tensor::<2>::from_data(x, &Device::flex()).into();
        let step = PlacedStep::new(settings, self.workers.clone())?;
        let threads = step.num_threads();
        let training = TrainingConfig::new(self.steps as u64 + 2, 5e-4);
        let training = training.with_optimiser(OptimiserConfig::Adam);
        let mut trainer = Trainer::new(model, step, training, streams)?;
        let flops = step_flops(config, settings, *batch);
        let mut reads = Vec::new();
        let mut report = self.measure(*batch, flops, threads, || {
            let loss = trainer.train_step(&rows)?.0.loss;
            reads.extend(trainer.step().reads());
            Ok(loss)
        })?;
        // Of the steps that were timed, the first two are none.
        report.reads_per_step =
            reads.last().map(|last| (last - reads[1]) as f64 / self.steps as f64);
        Ok(report)
    }

    /// Scores random rows.
    fn scores(&self) -> anyhow::Result<Report> {
        let streams = Streams::new(0);
        let model = self.config.init(&Device::flex(), &mut streams.stream("init", 0, 0))?;
        let rows = self.batch * self.settings.candidates();
        let x = self.random_rows(rows, &streams);
        let evaluator = Evaluator::new(&model, self.workers.clone())?;
        self.measure(rows, score_flops(&self.config, rows), evaluator.num_threads(), || {
            let scores = evaluator.score(&x);
            Ok(-scores.log_p_tilde.iter().sum::<f64>() / rows as f64)
        })
    }

    fn random_rows(&self, rows: usize, streams: &Streams) -> Vec<f32> {
        let mut rng = streams.stream("bench-data", 0, 0);
        (0..rows * self.config.features).map(|_| rng.normal() as f32).collect()
    }

    /// Times a piece of work on `batch` rows with so many operations, and measures the peak before and after.
    fn measure(
        &self,
        batch: usize,
        flops: f64,
        threads: usize,
        mut once: impl FnMut() -> anyhow::Result<f64>,
    ) -> anyhow::Result<Report> {
        let peak_before = self.peak_gflops(threads);
        let (mut seconds, mut loss) = (Vec::with_capacity(self.steps), 0.0);
        let mut before = ranks::spent();
        for index in 0..self.steps + 2 {
            if index == 2 {
                before = ranks::spent();
            }
            let start = Instant::now();
            loss = once()?;
            if index >= 2 {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
        let after = ranks::spent();
        let (all, steps) = (seconds.iter().sum::<f64>(), self.steps as f64);
        let peak_memory_mb = peak_memory_mb();
        let gemm_peak_gflops = peak_before.max(self.peak_gflops(threads));
        seconds.sort_by(f64::total_cmp);
        let median_seconds = seconds[seconds.len() / 2];
        let gflops = flops / median_seconds / 1e9;
        let features = self.config.features;
        let rows = self.batch * self.settings.candidates() * features;
        let ranks = ranks::number();
        Ok(Report {
            ranks,
            communication_share: (after.0 - before.0) / all,
            messages_per_step: (after.1 - before.1) as f64 / steps,
            megabytes_per_step: (after.2 - before.2) as f64 / steps / 1e6,
            median_seconds,
            best_seconds: seconds[0],
            peak_memory_mb,
            rows_per_second: rows as f64 / median_seconds,
            gflops,
            gemm_peak_gflops,
            gemm_share: gflops / (gemm_peak_gflops * ranks as f64),
            features,
            batch,
            threads,
            reads_per_step: None,
            loss,
        })
    }

    /// The best rate of the step's products alone, over several rounds, with all threads at work.
    fn peak_gflops(&self, threads: usize) -> f64 {
        let observations = self.settings.tile_observations(self.config.normalisation);
        let rows = observations * self.settings.candidates();
        let networks = step_networks(&self.config, &self.settings);
        let all = |products: fn(usize, usize, usize) -> f64| -> f64 {
            networks.iter().map(|size| products(size.width, rows, 24 * size.blocks)).sum()
        };
        let (own, other) = (|| all(products_alone), || all(gemm_products));
        (0..6).map(|_| rate(threads, &own).max(rate(threads, &other))).fold(0.0, f64::max)
    }
}

/// GFLOP/s of a piece of work on every thread at once.
fn rate(threads: usize, work: &(impl Fn() -> f64 + Sync)) -> f64 {
    let start = Instant::now();
    let flops: f64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("products do not panic")).sum()
    });
    flops / start.elapsed().as_secs_f64() / 1e9
}

/// The products of a layer with the `gemm` crate: forward, backward and transposed.
fn gemm_products(width: usize, rows: usize, passes: usize) -> f64 {
    let x = vec![0.1f32; rows * width];
    let weight = vec![0.1f32; width * width];
    let (mut out, mut gradient) = (vec![0.0f32; rows * width], vec![0.0f32; width * width]);
    for _ in 0..passes {
        for _ in 0..2 {
            gemm_product(&mut out, (&x, false), &weight, width);
        }
        gemm_product(&mut gradient, (&x, true), &out, width);
    }
    std::hint::black_box((&out, &gradient));
    6.0 * (passes * rows * width * width) as f64
}

/// A product of dense, row-major matrices that are all `width` wide. If the left one is read transposed, it is added to `out`.
fn gemm_product(out: &mut [f32], (x, transposed): (&[f32], bool), y: &[f32], width: usize) {
    let (rows, inner) = (out.len() / width, y.len() / width);
    assert!(x.len() == rows * inner && out.len() == rows * width && y.len() == inner * width);
    let stride = width as isize;
    let (x_column, x_row) = if transposed { (stride, 1) } else { (1, stride) };
    // SAFETY: the matrices have the sizes and strides given.
    unsafe {
        gemm::gemm(
            rows,
            width,
            inner,
            out.as_mut_ptr(),
            1,
            stride,
            transposed,
            x.as_ptr(),
            x_column,
            x_row,
            y.as_ptr(),
            1,
            stride,
            f32::from(transposed),
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

fn table(report: &Report) -> Table {
    let mut table = Table::new([("", Align::Left), ("", Align::Right)]);
    let memory = report.peak_memory_mb.map_or("unknown".into(), |mb| format!("{mb:.0} MB"));
    for (name, value) in [
        (
            "features, batch, threads",
            format!("{}, {}, {}", report.features, report.batch, report.threads),
        ),
        ("median step", format!("{:.4} s", report.median_seconds)),
        ("best step", format!("{:.4} s", report.best_seconds)),
        ("network rows", format!("{:.0} /s", report.rows_per_second)),
        ("products", format!("{:.1} GFLOP/s", report.gflops)),
        ("GEMM peak", format!("{:.1} GFLOP/s", report.gemm_peak_gflops)),
        ("share of the peak", format!("{:.0} %", 100.0 * report.gemm_share)),
        ("peak memory", memory),
    ] {
        table.row([name.to_owned(), value]);
    }
    if let Some(reads) = report.reads_per_step {
        table.row(["reads that wait for the device, a step".into(), format!("{reads:.0}")]);
    }
    if report.ranks > 1 {
        let Report { ranks, communication_share, messages_per_step, megabytes_per_step, .. } =
            report;
        table.row(["ranks of as many threads".into(), ranks.to_string()]);
        table.row(["messages and waiting".into(), format!("{:.1} %", 100.0 * communication_share)]);
        let sent = format!("{messages_per_step:.0} messages, {megabytes_per_step:.2} MB");
        table.row(["sent by a rank in a step".into(), sent]);
    }
    table
}

/// `VmHWM` of Linux.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}
