//! A progress bar beside work that is watched.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use zhat::watch::Watch;

/// Does the work while a bar follows it. Without a total the bar only counts.
pub fn watched<T>(
    quiet: bool,
    label: &'static str,
    total: Option<u64>,
    watch: &Watch,
    work: impl FnOnce() -> T,
) -> anyhow::Result<T> {
    watch.begin(total.unwrap_or(0));
    let bar = match (quiet, total) {
        (true, _) => ProgressBar::hidden(),
        (false, Some(total)) => ProgressBar::new(total)
            .with_style(ProgressStyle::with_template("{msg} {bar:24} {percent} %, {eta} left")?),
        (false, None) => ProgressBar::no_length()
            .with_style(ProgressStyle::with_template("{msg} {human_pos} done, {per_sec}")?),
    };
    bar.set_message(label);
    let result = follow(&bar, watch, work);
    bar.finish_and_clear();
    Ok(result)
}

/// Does the work while a bar shows how far its watch has come.
pub fn follow<T>(bar: &ProgressBar, watch: &Watch, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if watch.total() > 0 {
                    bar.set_length(watch.total());
                }
                bar.set_position(watch.done());
                std::thread::park_timeout(Duration::from_millis(100));
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        follower.thread().unpark();
        result
    })
}
