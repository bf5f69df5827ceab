//! A small experiment and an empty directory, which the tests share.
#![allow(dead_code)] // not every test file uses both

use std::path::{Path, PathBuf};

use zhat_report::{Arm, Claim, Decision, Experiment, Setting, summarise};

/// Two arms, of which one has acceptance probabilities and an infinite value.
pub fn experiment() -> Experiment {
    let mut experiment = Experiment::new("ring", "0.1.0");
    experiment.settings.extend([
        ("runs".into(), Setting::Count(2)),
        ("arms".into(), Setting::List(["z", "a"].map(Setting::from).into())),
        ("rate".into(), Setting::Real(0.1)),
        ("quick".into(), Setting::Flag(false)),
    ]);
    experiment.seconds = 1.5;
    experiment.threads = 2;
    experiment.finished_runs = 2;
    let curves =
        summarise(&[vec![4.0, 0.3], vec![2.0, f64::NAN]], &[1, 2]).expect("two iterations");
    let mut first = Arm::from(curves.clone());
    first.acceptance.insert("cnce".into(), vec![0.25, 0.5]);
    first.acceptance.insert("mh-cnce".into(), vec![0.5, 0.75]);
    // Not in alphabetical order, so that an order that is lost is noticed.
    experiment.arms.insert("z".into(), first);
    experiment.arms.insert("a".into(), curves.into());
    experiment.claims.push(Claim::new(
        "It converges.",
        "By eye.",
        "It does not: 0.3 and infinity.",
        Decision::DoesNotHold,
    ));
    experiment
}

/// An empty directory inside the build's own, named after the test that uses it.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}
