//! A progress bar beside work that is watched, and Ctrl-C for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use zhat::watch::Watch;

use crate::interrupt;

/// Does the work while a bar follows it, and asks it to stop at Ctrl-C. Without a total the bar only counts.
pub fn watched<T>(
    quiet: bool,
    label: &'static str,
    total: Option<u64>,
    watch: &Watch,
    work: impl FnOnce() -> T,
) -> anyhow::Result<T> {
    let stop = interrupt::flag()?;
    let bar = match (quiet, total) {
        (true, _) => ProgressBar::hidden(),
        (false, Some(total)) => ProgressBar::new(total)
            .with_style(ProgressStyle::with_template("{msg} {bar:24} {percent} %, {eta} left")?),
        (false, None) => ProgressBar::no_length()
            .with_style(ProgressStyle::with_template("{msg} {human_pos} cells, {per_sec}")?),
    };
    bar.set_message(label);
    let done = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if stop.load(Ordering::Relaxed) {
                    watch.stop();
                }
                bar.set_position(watch.done());
                std::thread::park_timeout(Duration::from_millis(100));
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    });
    bar.finish_and_clear();
    Ok(result)
}
