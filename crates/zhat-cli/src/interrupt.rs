//! Ctrl-C and SIGTERM as a flag that long work looks at.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
static INSTALLED: OnceLock<()> = OnceLock::new();

/// Installs the handler, once, and gives the flag. The first signal asks the work to stop, a second one ends the program.
pub fn flag() -> anyhow::Result<&'static AtomicBool> {
    if INSTALLED.set(()).is_ok() {
        ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            eprintln!("\nstopping; what is done is kept (once more to stop at once)");
        })?;
    }
    Ok(&STOP)
}
