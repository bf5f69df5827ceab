//! How much time a fit has.

use std::time::Duration;

use zhat_table::fit::{Clock, Time};

#[derive(clap::Args)]
pub struct TimeOptions {
    /// Time for the whole fit, such as 90s, 10m or 2h: the number of steps, and with it warm-up, learning rate and validations, is
    /// chosen to fill it
    #[arg(long, value_parser = duration, conflicts_with = "steps")]
    time: Option<Duration>,
    /// The same in time of the processors, all threads together
    #[arg(long, value_parser = duration, conflicts_with_all = ["steps", "time"])]
    processor_time: Option<Duration>,
}

impl TimeOptions {
    /// The time, if there is one to be kept to.
    pub fn time(&self) -> Option<Time> {
        let time = |time: Duration, clock| Time { seconds: time.as_secs_f64(), clock };
        let wall = self.time.map(|seconds| time(seconds, Clock::Wall));
        wall.or(self.processor_time.map(|seconds| time(seconds, Clock::Processor)))
    }
}

/// A number with s, m or h.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time; write 90s, 10m or 2h");
    let (number, factor) = match text.char_indices().last().ok_or_else(wrong)? {
        (at, 's') => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    let seconds: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds * factor).map_err(|_| wrong())
}
