//! A line now and then where no bar is seen, so that the log of long work is not silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar};

/// From one line to the next.
pub const EVERY: Duration = Duration::from_secs(30);

/// A thread that tells how far a bar has come, until it is dropped.
pub struct Ticker {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Tells about the bar, if it is not seen.
    pub fn beside(bar: &ProgressBar) -> Option<Self> {
        bar.is_hidden().then(|| Self::every(EVERY, bar, |line| eprintln!("{line}")))
    }

    fn every(every: Duration, bar: &ProgressBar, tell: impl Fn(String) + Send + 'static) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (stop, bar) = (Arc::clone(&done), bar.clone());
        let thread = std::thread::spawn(move || {
            let mut last = Instant::now();
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(every.saturating_sub(last.elapsed()));
                if !stop.load(Ordering::Relaxed) && last.elapsed() >= every {
                    tell(line(&bar));
                    last = Instant::now();
                }
            }
        });
        Self { done, thread: Some(thread) }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// What a bar would show, as a line of a log.
fn line(bar: &ProgressBar) -> String {
    let (prefix, message, at) = (bar.prefix(), bar.message(), bar.position());
    let told = [prefix.trim(), message.as_str()].into_iter().filter(|text| !text.is_empty());
    let told = told.collect::<Vec<_>>().join(" ");
    let left = |of: u64| match bar.eta() {
        eta if at > 0 && at < of && eta > Duration::ZERO => {
            format!(", about {} left", HumanDuration(eta))
        }
        _ => String::new(),
    };
    match bar.length().filter(|&of| of > 1) {
        Some(of) => format!("{at}/{of} {told}{}", left(of)),
        None if at > 0 => format!("{told} {at} done"),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_bar_that_is_not_seen_is_told_about_until_it_is_dropped() {
        let bar = ProgressBar::hidden();
        bar.set_length(4000);
        bar.set_position(1200);
        bar.set_message("loss 3.100, validation -3.520*");
        let (send, receive) = channel();
        let ticker =
            Ticker::every(Duration::from_millis(1), &bar, move |line| drop(send.send(line)));
        let first: String = receive.recv().expect("a line");
        assert!(first.starts_with("1200/4000 loss 3.100, validation -3.520*"), "{first}");
        drop(ticker);
        assert!(receive.iter().all(|line| line.starts_with("1200/4000")), "and then it ends");
    }

    #[test]
    fn work_of_unknown_length_tells_how_much_is_done() {
        let bar = ProgressBar::hidden();
        bar.set_message("scoring");
        assert_eq!(line(&bar), "scoring");
        bar.set_position(16384);
        assert_eq!(line(&bar), "scoring 16384 done");
    }
}
