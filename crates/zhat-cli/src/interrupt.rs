//! Ctrl-C and SIGTERM as a watch that all long work looks at.

use std::sync::{Arc, OnceLock};

use zhat::watch::Watch;

static WATCH: OnceLock<Arc<Watch>> = OnceLock::new();

/// The watch of this program; the first call installs the handler. The first signal asks the work to stop, a second one ends
/// the program.
pub fn watch() -> anyhow::Result<Arc<Watch>> {
    if let Some(watch) = WATCH.get() {
        return Ok(Arc::clone(watch));
    }
    let watch = Arc::clone(WATCH.get_or_init(Arc::default));
    let stopped = Arc::clone(&watch);
    ctrlc::set_handler(move || {
        if stopped.is_stopped() {
            std::process::exit(130);
        }
        stopped.stop();
        eprintln!("\nstopping; what is done is kept (once more to stop at once)");
    })?;
    Ok(watch)
}
