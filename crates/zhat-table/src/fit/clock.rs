//! Time: by the clock on the wall or by the processor's, and when it is up.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use zhat::ranks::Workers;

/// What seconds are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The clock on the wall.
    Wall,
    /// The time of all processors that this program has used: the same on a machine that is busy with other things. By the
    /// clock on the wall where the system does not tell.
    Processor,
}

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// Seconds.
    pub seconds: f64,
    /// By which clock.
    pub clock: Clock,
}

/// When training ends, if not by itself. It counts from when it is made.
#[derive(Debug, Clone)]
pub struct Limit {
    time: Time,
    kind: Kind,
    since: Stopwatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hard,
    Planned,
}

/// How much longer a fit may take than it was planned to, if the machine has become slower.
const TOLERANCE: f64 = 1.1;

impl Limit {
    /// Training ends after this time, wherever it is.
    pub fn hard(time: Duration) -> Self {
        let time = Time { seconds: time.as_secs_f64(), clock: Clock::Wall };
        Self { time, kind: Kind::Hard, since: time.clock.start() }
    }

    /// The number of steps was chosen for the time (see [`schedule`](Self::schedule)); training ends at a validation if it
    /// takes a tenth longer.
    pub fn planned(time: Time) -> Self {
        Self { time, kind: Kind::Planned, since: time.clock.start() }
    }

    /// Seconds that are left.
    pub fn left(&self) -> f64 {
        self.time.seconds - self.since.seconds()
    }

    /// The time.
    pub fn time(&self) -> Time {
        self.time
    }

    /// Whether this share of it is up. Seconds of an earlier sitting count too.
    pub(super) fn is_over(&self, earlier: f64, share: f64, at_validation: bool) -> bool {
        let so_far = earlier + self.since.seconds();
        match self.kind {
            Kind::Hard => so_far > share * self.time.seconds,
            Kind::Planned => at_validation && so_far > share * TOLERANCE * self.time.seconds,
        }
    }

    /// What a report calls it.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Hard => "max-time",
            Kind::Planned => "time",
        }
    }
}

/// A clock that was started.
#[derive(Debug, Clone)]
pub(super) struct Stopwatch {
    start: Instant,
    /// Processor seconds at the start, where they are what is counted.
    processor: Option<f64>,
}

impl Clock {
    pub(super) fn start(self) -> Stopwatch {
        let processor = match self {
            Clock::Wall => None,
            Clock::Processor => processor_seconds(),
        };
        Stopwatch { start: Instant::now(), processor }
    }

    /// Seconds that some work takes: the mean over as many times as fill `least` seconds, after one that does not count.
    ///
    /// The processor's clock goes by hundredths of a second, too coarse to time one step. Ranks do the work as often as each other.
    pub(super) fn measure<E>(
        self,
        least: f64,
        workers: &Workers,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<f64, E> {
        work()?;
        let (watch, mut times) = (self.start(), 0);
        while times < 3 || workers.any(watch.seconds() < least) {
            work()?;
            times += 1;
        }
        Ok(watch.seconds() / f64::from(times))
    }
}

impl Stopwatch {
    pub(super) fn seconds(&self) -> f64 {
        let processor = self.processor.and_then(|start| Some(processor_seconds()? - start));
        processor.unwrap_or_else(|| self.start.elapsed().as_secs_f64())
    }
}

/// Seconds of this process on all processors, user and system together, as Linux tells them.
fn processor_seconds() -> Option<f64> {
    parse_stat(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The 14th and 15th field of `proc_pid_stat(5)`, in hundredths of a second; the second may hold spaces and parentheses.
fn parse_stat(text: &str) -> Option<f64> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_any_name_of_the_program() {
        let text = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 1234 66 0 0 20 0";
        assert_eq!(parse_stat(text), Some(13.0));
        assert_eq!(parse_stat("7 (zhat) S 1 2"), None);
    }

    #[test]
    fn a_plan_may_be_overrun_by_a_tenth_and_a_limit_by_nothing() {
        let time = Time { seconds: 100.0, clock: Clock::Wall };
        let (planned, hard) = (Limit::planned(time), Limit::hard(Duration::from_secs(100)));
        // An earlier sitting took so long; this one has just begun.
        assert!(hard.is_over(101.0, 1.0, false) && !planned.is_over(101.0, 1.0, true));
        assert!(!planned.is_over(120.0, 1.0, false), "it ends at a validation");
        assert!(planned.is_over(120.0, 1.0, true));
        assert!(hard.is_over(51.0, 0.5, false) && !hard.is_over(49.0, 0.5, true));
    }

    #[test]
    fn work_is_measured_until_there_is_enough_of_it() {
        let mut times = 0;
        let work = || -> Result<(), ()> {
            times += 1;
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        };
        let seconds = Clock::Wall.measure(0.02, &1.into(), work).unwrap();
        assert!(seconds >= 0.002 && times >= 4, "{seconds} {times}");
    }
}
