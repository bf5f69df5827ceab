//! The ranks that this program is one of: those of MPI where its launcher has started several, else itself alone.

#[cfg(feature = "mpi")]
mod mpi;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use zhat::ranks::{Alone, Ranks, Workers};

use crate::Command;
use crate::commands::reproduce::Experiment;

static RANKS: OnceLock<Arc<dyn Ranks>> = OnceLock::new();
/// Whether this rank says something although it is not the first.
static SPEAKS: AtomicBool = AtomicBool::new(false);

/// What launchers of MPI tell the processes that they start.
const LAUNCHED: [&str; 4] =
    ["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_SIZE"];

/// How long a rank waits before it says what is wrong: what is wrong with all of them the first has said by then, and ended all.
const AFTER_THE_FIRST: Duration = Duration::from_secs(1);

/// Finds the other ranks, before anything else is done; says whether they can work together.
pub fn begin() -> bool {
    let found = others();
    let can_work = found.is_ok();
    let _ = RANKS.set(found.ok().flatten().unwrap_or_else(|| Arc::new(Alone)));
    can_work
}

fn is_launched() -> bool {
    LAUNCHED.iter().any(|name| std::env::var_os(name).is_some())
}

/// The other ranks, where there are any; an error where there are and cannot be talked to.
#[cfg(feature = "mpi")]
fn others() -> Result<Option<Arc<dyn Ranks>>, ()> {
    Ok(is_launched().then(mpi::begin).flatten())
}

/// A program that cannot talk to the other ranks would do the work of each of them, and write over what they write.
#[cfg(not(feature = "mpi"))]
fn others() -> Result<Option<Arc<dyn Ranks>>, ()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let size = number("OMPI_COMM_WORLD_SIZE").or(number("PMI_SIZE")).unwrap_or(1);
    if is_launched() && size > 1 {
        if number("OMPI_COMM_WORLD_RANK").or(number("PMI_RANK")) == Some(0) {
            eprintln!(
                "error: this zhat was built without MPI, and {size} of it were started. Build it with `cargo install --path \
                 crates/zhat-cli --features mpi`, or start it without mpirun."
            );
        }
        return Err(());
    }
    Ok(None)
}

fn ranks() -> Arc<dyn Ranks> {
    RANKS.get().map_or_else(|| Arc::new(Alone) as Arc<dyn Ranks>, Arc::clone)
}

/// The threads of this process, together with all other ranks.
pub fn workers(threads: usize) -> anyhow::Result<Workers> {
    Ok(Workers::new(threads, ranks())?)
}

/// Whether this rank writes and prints.
pub fn is_first() -> bool {
    ranks().rank() == 0
}

/// Whether this process says anything on its outputs.
pub fn speaks() -> bool {
    is_first() || SPEAKS.load(Ordering::Relaxed)
}

/// How many ranks there are.
pub fn number() -> usize {
    ranks().size()
}

/// Whether there is something to do for this rank; a command that is not shared is done by the first alone.
pub fn take_part(command: &Command) -> bool {
    let is_shared = matches!(
        command,
        Command::Fit(_)
            | Command::Evaluate(_)
            | Command::Score(_)
            | Command::Bench(_)
            | Command::Reproduce(Experiment::Table1(_))
    );
    if !is_shared && is_first() && number() > 1 {
        eprintln!("warning: this command works on one rank; the others have nothing to do");
    }
    is_shared || is_first()
}

/// Lets another rank than the first say what is wrong with it.
pub fn speak_up() {
    if !is_first() {
        std::thread::sleep(AFTER_THE_FIRST);
        SPEAKS.store(true, Ordering::Relaxed);
        crate::output::tell(format_args!("rank {} of {}: ", ranks().rank(), number()));
    }
}

/// Parts from the other ranks when all is done.
pub fn finish() {
    #[cfg(feature = "mpi")]
    mpi::finish();
}

/// Ends all ranks, if there are others, because this one cannot go on.
pub fn abort(code: u8) {
    #[cfg(feature = "mpi")]
    if number() > 1 {
        mpi::abort(code);
    }
    let _ = code;
}

/// Seconds that this rank has spent in messages or in waiting for them, how many there were, and their bytes.
pub fn spent() -> (f64, u64, u64) {
    #[cfg(feature = "mpi")]
    return mpi::spent();
    #[cfg(not(feature = "mpi"))]
    (0.0, 0, 0)
}
