//! Ctrl-C and SIGTERM as a watch that all long work looks at, and an end to what does not look soon enough.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use zhat::watch::Watch;
use zhat_report::export::remove_pending;

use crate::ranks;

static WATCH: OnceLock<Arc<Watch>> = OnceLock::new();
static HAS_STOPPED: AtomicBool = AtomicBool::new(false);
static ADVICE: Mutex<String> = Mutex::new(String::new());

/// How long work may take to end by itself. Some cannot look at a watch, such as a read from a pipe that nothing comes through,
/// or a long step; what was on disk before it is still there and whole.
const GRACE: Duration = Duration::from_millis(1500);
/// The same where there are several ranks: their launcher ends them a second after it has told them to stop.
const GRACE_OF_RANKS: Duration = Duration::from_millis(800);

/// The watch of this program; the first call installs the handler. The first signal asks the work to stop, and ends the program
/// if it does not within a second and a half; a second one ends it at once.
pub fn watch() -> anyhow::Result<Arc<Watch>> {
    if let Some(watch) = WATCH.get() {
        return Ok(Arc::clone(watch));
    }
    let watch = Arc::clone(WATCH.get_or_init(Arc::default));
    let stopped = Arc::clone(&watch);
    ctrlc::set_handler(move || {
        if stopped.is_stopped() {
            end(130);
        }
        stopped.stop();
        eprintln!("\nstopping; what is done is kept (once more to stop at once)");
        std::thread::spawn(|| {
            std::thread::sleep(if ranks::number() > 1 { GRACE_OF_RANKS } else { GRACE });
            if HAS_STOPPED.load(Ordering::Relaxed) {
                return;
            }
            let advice = ADVICE.lock().map(|advice| advice.clone()).unwrap_or_default();
            eprintln!("stopped{advice}");
            end(1);
        });
    })?;
    Ok(watch)
}

/// The work has looked at the watch and stopped; what is left is to write down what it came to, for which there is time.
pub fn has_stopped() {
    HAS_STOPPED.store(true, Ordering::Relaxed);
}

/// What to say where the work has to be ended, after the word "stopped".
pub fn advise(advice: String) {
    if let Ok(mut now) = ADVICE.lock() {
        *now = advice;
    }
}

fn end(code: i32) -> ! {
    remove_pending();
    std::process::exit(code)
}
