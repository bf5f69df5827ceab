//! Progress bars, beside work that is watched or that tells what it does.

mod ticker;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use zhat::watch::Watch;
use zhat_table::fit::Event;

use self::ticker::Ticker;
use crate::exit::with_flags;

/// A bar, with lines in its place where standard error is no terminal.
pub struct Bar {
    bar: ProgressBar,
    _lines: Option<Ticker>,
}

impl Deref for Bar {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.bar
    }
}

/// A bar that looks like `template`, or nothing at all.
pub fn bar(quiet: bool, total: u64, template: &str) -> anyhow::Result<Bar> {
    Ok(match quiet || !crate::ranks::is_first() {
        true => Bar { bar: ProgressBar::hidden(), _lines: None },
        false => {
            let style = ProgressStyle::with_template(template)?;
            let bar = ProgressBar::new(total).with_style(style);
            Bar { _lines: Ticker::beside(&bar), bar }
        }
    })
}

/// Does the work while a bar follows it. Without a total the bar only counts.
pub fn watched<T>(
    quiet: bool,
    label: &'static str,
    total: Option<u64>,
    watch: &Watch,
    work: impl FnOnce() -> T,
) -> anyhow::Result<T> {
    watch.begin(total.unwrap_or(0));
    let template = match total {
        Some(_) => "{msg} {bar:24} {percent} %, {eta} left",
        None => "{msg} {human_pos} done, {per_sec}",
    };
    let bar = bar(quiet, total.unwrap_or(0), template)?;
    bar.set_message(label);
    let result = follow(&bar, watch, work);
    bar.finish_and_clear();
    Ok(result)
}

/// Does the work while a bar shows how far its watch has come.
pub fn follow<T>(bar: &ProgressBar, watch: &Watch, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The scope waits for the follower, and so it has to end even where the work panics.
        let ended = OnDrop(|| done.store(true, Ordering::Relaxed));
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
        drop(ended);
        follower.thread().unpark();
        result
    })
}

/// Does something when it goes out of scope, in whichever way.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A bar for the fit that is under way, one after another where there are several.
pub struct FitBar {
    pub bar: Bar,
    name: Option<String>,
    validation: String,
    /// Rows in a step, where rows per second are shown.
    batch: Option<usize>,
}

impl FitBar {
    pub fn new(quiet: bool, batch: Option<usize>) -> anyhow::Result<Self> {
        let bar = bar(quiet, 1, "{prefix}{bar:24} {pos}/{len} {msg}, {eta} left")?;
        Ok(Self { bar, name: None, validation: String::new(), batch })
    }

    /// Shows what the fit of this name tells; the only one needs none.
    pub fn on(&mut self, name: &str, event: &Event) {
        let bar = &self.bar;
        let with = |after: &str| if name.is_empty() { "".into() } else { format!("{name}{after}") };
        match event {
            Event::Step { step, steps, report } => {
                bar.set_length(*steps);
                bar.set_position(*step);
                if self.name.as_deref() != Some(name) {
                    self.name = Some(name.into());
                    self.validation.clear();
                    bar.set_prefix(with(" "));
                    bar.reset_eta();
                }
                let mut text = format!("loss {:.3}{}", report.loss, self.validation);
                if let Some(size) = report.effective_sample_size {
                    text += &format!(", ESS {size:.1}");
                }
                if let Some(batch) = self.batch {
                    text += &format!(", {:.0} rows/s", batch as f64 * bar.per_sec());
                }
                bar.set_message(text);
            }
            Event::Validation { log_likelihood, best, .. } => {
                let mark = if *best { "*" } else { "" };
                self.validation = format!(", validation {log_likelihood:.3}{mark}");
            }
            Event::CrossValidation { step, steps, log_likelihood } => {
                bar.set_length(*steps);
                bar.set_position(*step);
                bar.set_prefix(with(" "));
                bar.set_message(format!("steps of cross-validation, left out {log_likelihood:.3}"));
            }
            Event::Warning(text) => {
                bar.suspend(|| eprintln!("warning: {}{}", with(": "), with_flags(text)))
            }
            Event::Evaluating => bar.set_message("evaluating"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_panics_ends_with_its_bar() {
        let (bar, watch) = (ProgressBar::hidden(), Watch::default());
        let panicked = std::panic::catch_unwind(|| follow(&bar, &watch, || panic!("on purpose")));
        assert!(panicked.is_err());
    }
}
