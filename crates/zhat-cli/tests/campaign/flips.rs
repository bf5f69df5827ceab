//! The bit-flip loop: whatever bit of a run's files is flipped, the run is refused, or says and does the same as before.

use std::fs;
use std::path::{Path, PathBuf};

use rand::{Rng, RngExt};

use super::program::{copy, ended, fit, result, resume, zhat};

const STEPS: u32 = 40;
/// Files that scores depend on, with how many of ten flips they get.
const SCORED: [(&str, usize); 4] =
    [("model.safetensors", 4), ("model.json", 3), ("results.json", 2), ("config.toml", 1)];
/// Failures after which there is no point in going on.
const ENOUGH: usize = 20;

/// Flips so many bits, and gives what was wrong.
pub fn run(directory: &Path, flips: u64, rng: &mut impl Rng) -> Vec<String> {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).expect("a directory");
    let (whole, half) = (directory.join("whole"), directory.join("half"));
    ended(fit(&whole, STEPS)).expect("a fit that is left alone");
    // A run that stopped on the way, to be taken up: what `--resume` makes of it is known.
    ended(stopped(&half)).expect("a fit that stops");
    let rows = directory.join("rows.csv");
    fs::write(&rows, "x1,x2\n0.5,-0.5\n0,1\n40,-3\n1e-3,2.5\n").expect("rows");
    // A tenth of the bits are flipped in what a resumed fit reads, which takes longest.
    let resumed = (flips / 10).max(1);
    let mut failures = scores(directory, &whole, &rows, flips - resumed, rng);
    failures.extend(resumes(directory, &half, &rows, resumed, rng));
    failures
}

/// Half of a fit.
fn stopped(out: &Path) -> std::process::Command {
    let mut command = fit(out, STEPS);
    command.args(["--set", "training.stop-after=20"]);
    command
}

/// A bit at a random place of a file is flipped; gives the place.
fn flip(path: &Path, rng: &mut impl Rng) -> String {
    let mut bytes = fs::read(path).expect("a file of the run");
    let (at, bit) = (rng.random_range(0..bytes.len()), rng.random_range(0..8));
    let before = bytes[at];
    bytes[at] ^= 1 << bit;
    fs::write(path, &bytes).expect("a file of the run");
    format!("bit {bit} of byte {at} ({:?} to {:?})", before as char, bytes[at] as char)
}

fn scored(run: &Path, rows: &Path) -> Result<Option<Vec<u8>>, String> {
    let mut command = zhat(&["score", "--quiet", "--threads", "1", "--columns", "1,2"], run);
    command.arg(rows);
    let output = ended(command)?;
    Ok(output.status.success().then_some(output.stdout))
}

fn scores(
    directory: &Path,
    whole: &Path,
    rows: &Path,
    flips: u64,
    rng: &mut impl Rng,
) -> Vec<String> {
    let expected = scored(whole, rows).expect("scores").expect("a run that is whole");
    let run = directory.join("flipped");
    copy(whole, &run);
    let files: Vec<&str> =
        SCORED.iter().flat_map(|(name, share)| std::iter::repeat_n(*name, *share)).collect();
    let (mut refused, mut same, mut done, mut failures) = (0, 0, 0, Vec::new());
    while done < flips && failures.len() < ENOUGH {
        let name = files[done as usize % files.len()];
        done += 1;
        let place = flip(&run.join(name), rng);
        match scored(&run, rows) {
            Ok(None) => refused += 1,
            Ok(Some(scores)) if scores == expected => same += 1,
            Ok(Some(_)) => failures.push(format!("{name}, {place}: other scores")),
            Err(wrong) => failures.push(format!("{name}, {place}: {wrong}")),
        }
        fs::copy(whole.join(name), run.join(name)).expect("a copy");
    }
    println!(
        "{done} flips before `score`: {refused} refused, {same} the same, {} failures",
        failures.len()
    );
    failures
}

/// Flips in what a fit goes on from: its checkpoints and its configuration.
fn resumes(
    directory: &Path,
    half: &Path,
    rows: &Path,
    flips: u64,
    rng: &mut impl Rng,
) -> Vec<String> {
    let run = directory.join("resumed");
    let go_on = |run: &Path| {
        let mut command = resume(run);
        command.args(["--set", &format!("training.stop-after={STEPS}")]);
        ended(command)
    };
    copy(half, &run);
    go_on(&run).expect("a fit that goes on");
    let expected = (result(&run).expect("a run"), scored(&run, rows).expect("scores"));
    let (mut refused, mut same, mut done, mut failures) = (0, 0, 0, Vec::new());
    while done < flips && failures.len() < ENOUGH {
        copy(half, &run);
        let path = match done % 2 {
            0 => run.join("config.toml"),
            _ => newest(&run.join("checkpoint")),
        };
        done += 1;
        let place =
            format!("{}, {}", path.strip_prefix(&run).expect("a part").display(), flip(&path, rng));
        match go_on(&run) {
            Ok(output) if !output.status.success() => refused += 1,
            Ok(_) => match (result(&run), scored(&run, rows)) {
                (Ok(found), Ok(scores)) if (&found, &scores) == (&expected.0, &expected.1) => {
                    same += 1
                }
                (Err(wrong), _) | (_, Err(wrong)) => failures.push(format!("{place}: {wrong}")),
                _ => failures.push(format!("{place}: another result")),
            },
            Err(wrong) => failures.push(format!("{place}: {wrong}")),
        }
    }
    println!(
        "{done} flips before `fit --resume`: {refused} refused, {same} the same, {} failures",
        failures.len()
    );
    failures
}

fn newest(checkpoints: &Path) -> PathBuf {
    let files = fs::read_dir(checkpoints).expect("checkpoints").flatten().map(|entry| entry.path());
    files.max().expect("a checkpoint")
}
