//! A run that is stopped, killed or thrown back goes on to the same bits; weights, guard and validation do what they say.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use zhat::Error;
use zhat::burn::optim::GradientsParams;
use zhat::burn::tensor::{Device, Gradients, Tensor};
use zhat::criterion::{Adapted, Criterion, FromData, Loss, Method, MethodConfig};
use zhat::host::to_host;
use zhat::kernel::ConditionalImportance;
use zhat::model::{DiagonalGaussian, FullGaussian, UnnormalisedModel};
use zhat::proposal::{Adaptive, Proposal};
use zhat::rng::{Stream, Streams};
use zhat::train::*;
use zhat::watch::Watch;

use crate::support::{assert_close, gradient, place, rng};

type Gaussian = Box<dyn Criterion<DiagonalGaussian>>;
type Run = Trainer<DiagonalGaussian, CriterionStep<Gaussian>>;

/// What has most to remember: chains, a proposal with moments of its own.
const ARMS: [&str; 3] = ["p-mh-cnce", "adaptive", "rnce"];

fn data() -> Tensor<2> {
    let truth = DiagonalGaussian::new(&[0.6, -0.4], &[1.3, 0.7], &Device::flex()).unwrap();
    truth.sample(300, &place(), &mut rng(1))
}

fn criterion(arm: &str) -> Gaussian {
    if arm != "adaptive" {
        let method: Method = arm.parse().unwrap();
        return MethodConfig::new(method).with_num_negatives(4).init(&data()).unwrap();
    }
    let wide = DiagonalGaussian::new(&[0.0, 0.0], &[2.0, 2.0], &Device::flex().autodiff());
    let proposal = Adaptive::new(wide.unwrap());
    let kernel = ConditionalImportance::new(proposal.clone(), 4).unwrap();
    Box::new(Adapted::new(FromData(kernel), proposal, OptimiserConfig::Adam))
}

/// The broken twin: a criterion that does not put away what it keeps.
struct Forgetful(Gaussian);

impl Criterion<DiagonalGaussian> for Forgetful {
    fn loss(
        &mut self,
        model: &DiagonalGaussian,
        batch: &Batch,
        rng: &mut Stream,
    ) -> zhat::Result<Loss> {
        self.0.loss(model, batch, rng)
    }

    fn value(&self, loss: &Loss) -> Option<Tensor<1>> {
        self.0.value(loss)
    }

    fn update(&mut self, gradients: &mut Gradients, learning_rate: f64) {
        self.0.update(gradients, learning_rate);
    }
}

fn trainer(arm: &str, num_steps: u64) -> Run {
    trainer_with(criterion(arm), num_steps, 0)
}

fn trainer_with(criterion: Gaussian, num_steps: u64, patience: u32) -> Run {
    let start = DiagonalGaussian::new(&[0.0, 0.0], &[1.0, 1.0], &Device::flex().autodiff());
    let config = TrainingConfig::new(num_steps, 0.02)
        .with_optimiser(OptimiserConfig::Adam)
        .with_schedule(Schedule::Cosine)
        .with_batch_size(32)
        .with_averaging(0.3)
        .with_every(20, 7);
    let config = TrainingConfig { patience, ..config };
    let proposal = FullGaussian::fitted(&data()).unwrap();
    let step = CriterionStep::new(criterion);
    Trainer::new(start.unwrap(), step, config, Streams::new(3))
        .unwrap()
        .with_validation(HeldOut::new(data(), proposal, 500, Streams::new(4)))
}

/// Parameters of the last and of the best model, and every loss, to the last bit.
fn bits(run: &Run) -> Vec<u64> {
    let numbers =
        [run.model(), run.best_model()].map(|model| [model.mean(), model.std_dev()].concat());
    numbers.concat().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn a_run_that_is_put_away_at_any_step_goes_on_to_the_same_bits() {
    for arm in ARMS {
        let mut whole = trainer(arm, 64);
        whole.fit(&Rows::new(data())).unwrap();
        for stop in [1, 7, 23, 59] {
            let mut first = trainer(arm, 64);
            let watch = Watch::default();
            let ended = first.fit_watched(&Rows::new(data()), &watch, &mut |event| {
                if let Event::Step { step, .. } = event
                    && step == stop
                {
                    watch.stop();
                }
                zhat::Result::Ok(())
            });
            assert_eq!(ended, Ok(Ended::Stopped));
            let bytes = first.state().unwrap().to_bytes();
            let mut second = trainer(arm, 64);
            second.restore(TrainerState::from_bytes(&bytes).unwrap()).unwrap();
            assert_eq!(second.progress().step, stop);
            second.fit(&Rows::new(data())).unwrap();
            assert_eq!(bits(&second), bits(&whole), "{arm}, stopped after {stop}");
            // Without what the criterion keeps, it would be another run.
            let mut forgetful = trainer_with(Box::new(Forgetful(criterion(arm))), 64, 0);
            forgetful.restore(TrainerState::from_bytes(&bytes).unwrap()).unwrap();
            forgetful.fit(&Rows::new(data())).unwrap();
            assert_eq!(bits(&forgetful) == bits(&whole), arm == "rnce", "{arm}");
        }
    }
}

const CHILD: &str = "ZHAT_TEST_RESUME";
const STEPS: u64 = 4000;

/// What the child does: trains for long, and writes its state down every few steps.
fn train_with_checkpoints(run: &mut Run, directory: &Path) {
    run.fit_watched(&Rows::new(data()), &Watch::default(), &mut |event| {
        if let Event::Checkpoint(state) = event {
            let new = directory.join("new");
            std::fs::write(&new, state.to_bytes()).unwrap();
            std::fs::rename(new, directory.join("state")).unwrap();
        }
        zhat::Result::Ok(())
    })
    .unwrap();
}

#[test]
fn a_run_that_is_killed_goes_on_to_the_same_bits() {
    if let Ok(child) = std::env::var(CHILD) {
        let (arm, directory) = child.split_once('=').unwrap();
        train_with_checkpoints(&mut trainer(arm, STEPS), Path::new(directory));
        return;
    }
    for arm in ["p-mh-cnce", "adaptive"] {
        let directory: PathBuf =
            std::env::temp_dir().join(format!("zhat-resume-{}-{arm}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "resume::a_run_that_is_killed_goes_on_to_the_same_bits"])
            .env(CHILD, format!("{arm}={}", directory.display()))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let state = || {
            let bytes = std::fs::read(directory.join("state")).ok()?;
            Some(TrainerState::from_bytes(&bytes).unwrap())
        };
        let (start, patience) = (Instant::now(), Duration::from_secs(60));
        while state().is_none_or(|state| state.progress.step < 50) {
            assert!(start.elapsed() < patience, "{arm}: the child does not get on");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        let state = state().unwrap();
        assert!(state.progress.step < STEPS, "{arm}: killed too late to tell");
        let mut resumed = trainer(arm, STEPS);
        resumed.restore(state).unwrap();
        resumed.fit(&Rows::new(data())).unwrap();
        let mut whole = trainer(arm, STEPS);
        whole.fit(&Rows::new(data())).unwrap();
        assert_eq!(bits(&resumed), bits(&whole), "{arm}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

/// With the same draws the gradient is linear in the weights, and equal weights are none: so a row of weight 2 beside one
/// of weight 0 has the gradient of that row alone, twice.
#[test]
fn rows_count_as_much_as_their_weights_say() {
    let device = Device::flex().autodiff();
    let model = DiagonalGaussian::new(&[0.2, 0.1], &[1.1, 0.9], &device).unwrap();
    let x = place().tensor(vec![0.3, -1.0, 1.5, 0.4], [2, 2]);
    for method in Method::for_any_model() {
        let gradient = |weights: Option<[f64; 2]>| {
            let config = MethodConfig::new(method).with_num_negatives(3).with_num_steps(2);
            let mut criterion = config.init(&data()).unwrap();
            let batch = Batch { x: x.clone(), weights: weights.map(|weights| weights.to_vec()) };
            gradient(&criterion.loss(&model, &batch, &mut rng(5)).unwrap().surrogate, &model)
        };
        let (first, second) = (gradient(Some([2.0, 0.0])), gradient(Some([0.0, 2.0])));
        assert!(first.iter().zip(&second).any(|(a, b)| (a - b).abs() > 0.1), "{method}");
        for (weights, share) in [(None, 0.5), (Some([1.0, 1.0]), 0.5), (Some([1.5, 0.5]), 0.75)] {
            let expected: Vec<f64> =
                first.iter().zip(&second).map(|(a, b)| share * a + (1.0 - share) * b).collect();
            assert_close(&gradient(weights), &expected, 1e-5, method.name());
        }
    }
}

/// A step that goes wrong a few times, in one of two ways, and otherwise pulls the mean to 1.
struct Faulty {
    wrong: Vec<u64>,
    loss: f64,
}

impl TrainingStep<DiagonalGaussian> for Faulty {
    fn gradient(
        &mut self,
        model: &DiagonalGaussian,
        _batch: &Batch,
        _streams: &Streams,
        step: u64,
    ) -> zhat::Result<(GradientsParams, StepReport)> {
        let x = place().tensor(vec![1.0, 1.0], [1, 2]);
        let loss = model.log_p_tilde(x).neg().sum();
        let wrong = self.wrong.first() == Some(&step);
        if wrong {
            self.wrong.remove(0);
        }
        let report = StepReport {
            loss: if wrong { self.loss } else { to_host(&loss)[0] },
            gradient_norm: 1.0,
            effective_sample_size: None,
            proposal_nll: None,
            warming_up: false,
        };
        Ok((GradientsParams::from_grads(loss.backward(), model), report))
    }
}

fn faulty(wrong: Vec<u64>, loss: f64) -> (zhat::Result<Ended>, Vec<(u64, u64, f64)>, Progress) {
    let model = DiagonalGaussian::standard(2, &Device::flex().autodiff());
    let config = TrainingConfig::new(200, 0.01).with_every(1000, 30).with_max_rollbacks(2);
    let mut trainer = Trainer::new(model, Faulty { wrong, loss }, config, Streams::new(0)).unwrap();
    let mut rollbacks = Vec::new();
    let ended = trainer.fit_watched(&Rows::new(data()), &Watch::default(), &mut |event| {
        if let Event::RolledBack { from, to, rate_factor, .. } = event {
            rollbacks.push((from, to, rate_factor));
        }
        zhat::Result::Ok(())
    });
    let progress = trainer.progress().clone();
    (ended, rollbacks, progress)
}

#[test]
fn the_guard_goes_back_with_half_the_rate_and_gives_up_in_the_end() {
    for loss in [f64::NAN, 1e9] {
        let (ended, rollbacks, progress) = faulty(vec![75, 100], loss);
        assert_eq!(ended, Ok(Ended::Done));
        assert_eq!(rollbacks, [(75, 60, 0.5), (100, 90, 0.25)]);
        assert_eq!((progress.step, progress.rate_factor), (200, 0.25));
        let (ended, rollbacks, _) = faulty(vec![75, 75, 75], loss);
        assert!(matches!(ended, Err(Error::Diverged { tries: 2, step: 75, .. })), "{ended:?}");
        assert_eq!(rollbacks.len(), 2);
    }
    assert!(faulty(Vec::new(), 0.0).1.is_empty());
}

#[test]
fn the_best_model_is_kept_and_patience_ends_the_run() {
    let values = [-3.0, -1.0, -2.0, f64::NAN, -1.5];
    let run = trainer_with(criterion("rnce"), 1000, 3);
    let mut run = run.with_validation(move |_: &DiagonalGaussian, step: u64| {
        let at = (step / 20 - 1) as usize;
        Ok(Validated::new(vec![values[at]], 0.0))
    });
    let mut best = Vec::new();
    let ended = run.fit_watched(&Rows::new(data()), &Watch::default(), &mut |event| {
        if let Event::Validation { step, best: true, .. } = event {
            best.push(step);
        }
        zhat::Result::Ok(())
    });
    assert_eq!(ended, Ok(Ended::Patience));
    assert_eq!((best, run.progress().step), (vec![20, 40], 100));
    assert_ne!(bits(&run)[..4], bits(&run)[4..], "the best model is an earlier one");
}

/// `log p~ - log Z` and `log q` of two rows after every 20 steps.
fn found(model: [f64; 2], proposal: [f64; 2]) -> Validated {
    Validated::new(model.to_vec(), 0.0).or_proposal(proposal.to_vec())
}

#[test]
fn the_proposal_is_kept_where_the_model_never_gets_ahead_of_it() {
    let run = trainer_with(criterion("rnce"), 100, 0);
    let mut run = run.with_validation(|_: &DiagonalGaussian, step: u64| {
        Ok(match step {
            20 => found([-3.0, -3.0], [-2.0, -2.1]),
            40 => found([-2.5, -2.5], [-1.0, -1.2]),
            // Better than its own proposal, but not than the proposal before.
            60 => found([-1.4, -1.5], [-2.0, -2.0]),
            _ => found([-9.0, -9.0], [-8.0, -8.0]),
        })
    });
    let mut aheads = Vec::new();
    let ended = run.fit_watched(&Rows::new(data()), &Watch::default(), &mut |event| {
        if let Event::Validation { ahead, .. } = event {
            aheads.push(ahead);
        }
        zhat::Result::Ok(())
    });
    assert_eq!(ended, Ok(Ended::Done));
    let best = run.progress().best.expect("a best");
    assert_eq!((best.step, best.answer), (40, Answer::Proposal));
    assert!(aheads[0].is_none(), "nothing to be ahead of yet");
    // 1.0 and 0.9 nats on the two rows.
    let ahead = aheads[1].expect("a best before");
    assert!((ahead.mean - 0.95).abs() < 1e-12 && (ahead.standard_error - 0.05).abs() < 1e-12);
    // After a stop, later validations are held against the same rows of the same best.
    let state = TrainerState::from_bytes(&run.state().unwrap().to_bytes()).unwrap();
    let mut again = trainer("rnce", 100);
    again.restore(state).unwrap();
    let mut again = again.with_validation(|_: &DiagonalGaussian, _| Ok(found([0.0; 2], [-1.0; 2])));
    let mut ahead = None;
    let mut observer = |event: Event<_, _>| {
        if let Event::Validation { ahead: found, .. } = event {
            ahead = found;
        }
        zhat::Result::Ok(())
    };
    again.validate(&mut observer).unwrap();
    assert_eq!(ahead.map(|ahead| ahead.mean), Some(1.1), "ahead of -1.0 and -1.2");
}

#[test]
fn a_run_that_stops_early_is_the_beginning_of_the_whole_one() {
    let mut rates: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let mut runs = [trainer("rnce", 60), trainer("rnce", 60)];
    runs[1].stop_after(25);
    for (run, rates) in runs.iter_mut().zip(&mut rates) {
        let ended = run.fit_watched(&Rows::new(data()), &Watch::default(), &mut |event| {
            if let Event::Step { learning_rate, .. } = event {
                rates.push(learning_rate);
            }
            zhat::Result::Ok(())
        });
        assert_eq!(ended, Ok(Ended::Done));
    }
    assert_eq!((rates[0].len(), rates[1].len()), (60, 25));
    assert_eq!(rates[0][..25], rates[1][..], "the learning rate does not come down sooner");
    assert_eq!(runs[1].progress().best.map(|best| best.step), Some(25), "the end is validated too");
    runs[1].stop_after(60);
    runs[1].fit(&Rows::new(data())).unwrap();
    let numbers = |run: &Run| [run.model().mean(), run.model().std_dev()].concat();
    assert_eq!(numbers(&runs[0]), numbers(&runs[1]), "and can go on");
}
