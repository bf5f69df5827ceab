//! A mutation fuzzer on stable Rust: readers, configuration, checkpoints and runs are given broken input, in processes of
//! their own, so that an abort or a hang is counted like a panic.
//!
//! A few thousand inputs with every `cargo test`; a campaign is
//! `cargo test --release -p zhat-table --test campaign -- --inputs 1000000 --seed 7`, one target `--only csv`, and what was
//! found is looked at with `--only csv --replay FILE`.

mod mutate;
mod targets;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use targets::{Place, TARGETS, Target};

/// No input of a few kilobytes may ask for more memory than this.
const MEMORY: usize = 1 << 30;
/// No input may take longer than this.
const PATIENCE: Duration = Duration::from_secs(60);
/// Inputs from one sign of life of a worker to the next.
const ROUND: u64 = 100;
/// Failures of one target after which it is left.
const ENOUGH: usize = 20;
/// Most inputs that are kept because something new came of them.
const MOST_KEPT: usize = 2000;

/// Memory that has an end: a request beyond it fails, as on a machine that has no more.
struct Limited;

static USED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every request goes to the system's allocator, or is refused by a null pointer, as the contract allows.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size() > MEMORY {
            USED.fetch_sub(layout.size(), Ordering::Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: it came from the system's allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static MEMORY_WITH_AN_END: Limited = Limited;

/// What is asked for on the command line.
struct Campaign {
    inputs: u64,
    seed: u64,
    threads: usize,
    only: Option<String>,
    replay: Option<PathBuf>,
    /// Where whole inputs are written, for another fuzzer to begin with.
    write_seeds: Option<PathBuf>,
    /// The number of a worker, which runs one target and tells the process that started it.
    worker: Option<u64>,
    directory: PathBuf,
}

impl Campaign {
    fn from_arguments() -> Self {
        let mut campaign = Self {
            inputs: 9_000,
            seed: 0,
            threads: 2,
            only: None,
            replay: None,
            write_seeds: None,
            worker: None,
            directory: Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaign"),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_else(|| panic!("{name} needs a value"));
            let number = |text: String| text.replace('_', "").parse().expect("a number");
            match name.as_str() {
                "--inputs" => campaign.inputs = number(value()),
                "--seed" => campaign.seed = number(value()),
                "--threads" => campaign.threads = number(value()) as usize,
                "--worker" => campaign.worker = Some(number(value())),
                "--only" => campaign.only = Some(value()),
                "--replay" => campaign.replay = Some(value().into()),
                "--write-seeds" => campaign.write_seeds = Some(value().into()),
                "--directory" => campaign.directory = value().into(),
                // What cargo and people pass to the usual tests: there is nothing to list or filter here.
                _ => std::process::exit(0),
            }
        }
        campaign
    }

    fn targets(&self) -> Vec<&'static Target> {
        let wanted = |target: &&Target| self.only.as_ref().is_none_or(|name| name == target.name);
        let targets: Vec<_> = TARGETS.iter().filter(wanted).collect();
        assert!(!targets.is_empty(), "--only: there is no such target");
        targets
    }
}

fn main() -> ExitCode {
    let campaign = Campaign::from_arguments();
    if let Some(input) = &campaign.replay {
        let place = Place::new(&campaign.directory.join("replay"), true);
        let bytes = fs::read(input).expect("an input");
        for target in campaign.targets() {
            println!("{}: {:?}", target.name, (target.run)(&place, &bytes));
        }
        return ExitCode::SUCCESS;
    }
    if let Some(corpus) = &campaign.write_seeds {
        let place = Place::new(&campaign.directory.join("seeds"), true);
        for target in campaign.targets() {
            let directory = corpus.join(target.name);
            fs::create_dir_all(&directory).expect("a directory");
            for (number, seed) in place.seeds(target.name).iter().enumerate() {
                fs::write(directory.join(format!("{number:03}")), seed).expect("room for an input");
            }
        }
        return ExitCode::SUCCESS;
    }
    if let Some(worker) = campaign.worker {
        work(&campaign, worker);
        return ExitCode::SUCCESS;
    }
    let shares: u64 = campaign.targets().iter().map(|target| target.share).sum();
    println!(
        "{:<12} {:>9} {:>9} {:>9} {:>8} {:>8}",
        "target", "inputs", "accepted", "refused", "reasons", "failures"
    );
    let (mut inputs, mut failures) = (0, 0);
    for target in campaign.targets() {
        let found = run(&campaign, target, campaign.inputs * target.share / shares);
        println!(
            "{:<12} {:>9} {:>9} {:>9} {:>8} {:>8}",
            target.name,
            found.accepted + found.refused + found.failures.len() as u64,
            found.accepted,
            found.refused,
            found.reasons,
            found.failures.len()
        );
        for failure in &found.failures {
            println!("  {failure}");
        }
        inputs += found.accepted + found.refused + found.failures.len() as u64;
        failures += found.failures.len();
    }
    println!("{inputs} inputs, {failures} failures");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What became of the inputs of a target.
#[derive(Default)]
struct Found {
    accepted: u64,
    refused: u64,
    /// Kinds of refusals that the worker that met most of them met.
    reasons: u64,
    failures: Vec<String>,
}

/// Runs a target in several workers, each of which is started again where it dies.
fn run(campaign: &Campaign, target: &Target, inputs: u64) -> Found {
    let workers = campaign.threads.max(1) as u64;
    let share = inputs.div_ceil(workers);
    let one = |worker: u64| {
        let mut found = Found::default();
        let mut attempt = 0;
        loop {
            let done = found.accepted + found.refused + found.failures.len() as u64;
            if done >= share || found.failures.len() >= ENOUGH {
                return found;
            }
            attend(campaign, target, worker + workers * attempt, share - done, &mut found);
            attempt += 1;
        }
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers).map(|worker| scope.spawn(move || one(worker))).collect();
        all.into_iter().fold(Found::default(), |mut sum, one| {
            let one = one.join().expect("workers are attended");
            sum.accepted += one.accepted;
            sum.refused += one.refused;
            sum.reasons = sum.reasons.max(one.reasons);
            sum.failures.extend(one.failures);
            sum
        })
    })
}

/// Starts a worker and listens to it until it is done, dead or silent for too long.
fn attend(campaign: &Campaign, target: &Target, worker: u64, inputs: u64, found: &mut Found) {
    let directory = campaign.directory.join(format!("{}-{worker}", target.name));
    let mut child: Child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--only", target.name, "--inputs", &inputs.to_string()])
        .args(["--worker", &worker.to_string(), "--seed", &campaign.seed.to_string()])
        .arg("--directory")
        .arg(&directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a worker");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let (send, receive) = channel();
    let listener = std::thread::spawn(move || {
        lines.map_while(Result::ok).try_for_each(|line| send.send(line)).ok();
    });
    let (before, mut is_done) = ([found.accepted, found.refused], false);
    let mut death = loop {
        match receive.recv_timeout(PATIENCE) {
            Ok(line) if line.starts_with("counts ") => {
                let mut numbers = line.split(' ').skip(1).map(|n| n.parse().expect("a number"));
                let mut next = || -> u64 { numbers.next().expect("three numbers") };
                (found.accepted, found.refused) = (before[0] + next(), before[1] + next());
                found.reasons = found.reasons.max(next());
            }
            Ok(line) if line == "done" => is_done = true,
            Ok(line) => {
                found.failures.push(line);
                if found.failures.len() >= ENOUGH {
                    break None;
                }
            }
            Err(RecvTimeoutError::Timeout) => break Some("it hangs".to_owned()),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    if death.is_some() || found.failures.len() >= ENOUGH {
        child.kill().ok();
    }
    let status = child.wait().expect("a worker ends");
    listener.join().expect("a listener ends");
    if death.is_none() && !is_done && found.failures.len() < ENOUGH {
        death = Some(format!("it died: {status}"));
    }
    if let Some(death) = death {
        let input = fs::read(directory.join("input")).unwrap_or_default();
        found.failures.push(kept(&campaign.directory, target.name, &input, &death));
    }
    fs::remove_dir_all(&directory).ok();
}

/// Keeps an input that something went wrong with, and says where it is.
fn kept(directory: &Path, target: &str, input: &[u8], what: &str) -> String {
    let failures = directory.join("failures");
    fs::create_dir_all(&failures).expect("a directory");
    let name = input.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let path = failures.join(format!("{target}-{name:016x}"));
    fs::write(&path, input).expect("room for an input");
    format!("{}: {}", path.display(), what.replace('\n', " "))
}

/// A worker: mutated inputs one after the other; those that something new came of are mutated again.
fn work(campaign: &Campaign, worker: u64) {
    let target = campaign.targets()[0];
    let place = Place::new(&campaign.directory, ["run", "checkpoint"].contains(&target.name));
    let mut rng = ChaCha8Rng::seed_from_u64(campaign.seed);
    rng.set_stream(worker);
    let mut inputs = place.seeds(target.name);
    let whole = inputs.clone();
    let seeds = inputs.len();
    let (mut accepted, mut refused, mut reasons) = (0u64, 0u64, HashSet::new());
    let current = campaign.directory.join("input");
    let failures = campaign.directory.parent().expect("a directory of the campaign").to_owned();
    let said = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let hook = std::sync::Arc::clone(&said);
    std::panic::set_hook(Box::new(move |panic| {
        *hook.lock().expect("one thread") = panic.to_string()
    }));
    let mut out = std::io::stdout().lock();
    for done in 1..=campaign.inputs {
        let from = if rng.random_bool(0.5) { &inputs[..seeds] } else { &inputs[..] };
        let input = match whole.get(done as usize - 1) {
            Some(seed) => seed.clone(),
            None => mutate::mutated(&mut rng, from),
        };
        fs::write(&current, &input).expect("room for an input");
        match catch_unwind(AssertUnwindSafe(|| (target.run)(&place, &input))) {
            Ok(outcome) => {
                let reason = match outcome {
                    Ok(()) => {
                        accepted += 1;
                        "accepted".to_owned()
                    }
                    Err(reason) => {
                        refused += 1;
                        kind(&reason)
                    }
                };
                if reasons.insert(reason) && inputs.len() < seeds + MOST_KEPT {
                    inputs.push(input);
                }
            }
            Err(_) => {
                let what = said.lock().expect("one thread").clone();
                writeln!(out, "{}", kept(&failures, target.name, &input, &what))
                    .expect("a listener");
            }
        }
        if done % ROUND == 0 || done == campaign.inputs {
            writeln!(out, "counts {accepted} {refused} {}", reasons.len()).expect("a listener");
            out.flush().expect("a listener");
        }
    }
    writeln!(out, "done").expect("a listener");
}

/// The kind of a message: what is left of it without numbers, names and quotations.
fn kind(reason: &str) -> String {
    let words = reason.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic));
    words.collect::<Vec<_>>().join(" ")
}
