//! The kill loop: a fit gets SIGKILL at random moments, goes on each time, and ends in the same bits as one that was left alone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rand::{Rng, RngExt};

use super::program::{ended, fit, result, resume};

const STEPS: u32 = 60;
/// Kills of one run before it is let go to its end.
const MOST: u64 = 8;
/// Failures after which there is no point in going on.
const ENOUGH: usize = 20;

/// Kills fits so many times in all, and gives what was wrong.
pub fn run(directory: &Path, kills: u64, rng: &mut impl Rng) -> Vec<String> {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).expect("a directory");
    let whole = directory.join("whole");
    let start = Instant::now();
    ended(fit(&whole, STEPS)).expect("a fit that is left alone");
    let length = start.elapsed();
    let expected = result(&whole).expect("a run that is whole");
    let (mut killed, mut late, mut runs) = (0, 0, 0);
    let mut failures = Vec::new();
    while killed < kills && failures.len() < ENOUGH {
        let out = directory.join(format!("run-{runs}"));
        runs += 1;
        let mut moments = Vec::new();
        for _ in 0..rng.random_range(1..=MOST).min(kills - killed) {
            let moment = length.mul_f64(rng.random_range(0.0..1.0));
            let in_time = kill(go_on(&out), moment);
            (killed, late) = (killed + u64::from(in_time), late + u64::from(!in_time));
            moments.push(moment.as_millis());
        }
        match finished(&out).and_then(|()| result(&out)) {
            Ok(found) if found == expected => fs::remove_dir_all(&out).expect("a run"),
            Ok(found) => {
                let pairs = expected.iter().zip(&found).filter(|(one, other)| one != other);
                let names: Vec<&str> = pairs.map(|((name, _), _)| *name).collect();
                failures.push(format!(
                    "{} (killed after {moments:?} ms): {names:?} differ",
                    out.display()
                ));
            }
            Err(wrong) => {
                failures.push(format!("{} (killed after {moments:?} ms): {wrong}", out.display()));
            }
        }
    }
    println!(
        "{killed} kills of {runs} runs, {late} more came too late, {} failures",
        failures.len()
    );
    failures
}

/// Whether a command was killed before its end.
fn kill(mut command: Command, after: Duration) -> bool {
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program");
    std::thread::sleep(after);
    let in_time = child.try_wait().expect("a child").is_none();
    child.kill().ok();
    child.wait().expect("a child");
    in_time
}

/// What one types after a crash.
fn go_on(out: &Path) -> Command {
    if out.join("config.toml").exists() { resume(out) } else { fit(out, STEPS) }
}

/// Lets a run go to its end; where it had hardly begun, it may have to be begun again.
fn finished(out: &Path) -> Result<(), String> {
    let first = ended(go_on(out))?;
    if first.status.success() {
        return Ok(());
    }
    let second = ended(fit(out, STEPS))?;
    if second.status.success() {
        return Ok(());
    }
    let said =
        [first, second].map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
    Err(format!("it does not go on: {}; {}", said[0], said[1]))
}
