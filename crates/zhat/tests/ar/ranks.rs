//! Several ranks as threads of one process: what they compute together has the bits of one that works alone.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use zhat::ar::*;
use zhat::burn::tensor::{Device, Tensor, TensorData};
use zhat::criterion::Method;
use zhat::host::parameters;
use zhat::ranks::{Ranks, Workers};
use zhat::rng::Streams;
use zhat::smc::SmcConfig;
use zhat::train::{Ended, Rows, Trainer, TrainingConfig};
use zhat::watch::Watch;

/// One of several threads, with a channel to and from every other.
struct Thread {
    rank: usize,
    to: Vec<Mutex<Sender<Vec<u8>>>>,
    from: Vec<Mutex<Receiver<Vec<u8>>>>,
}

impl std::fmt::Debug for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "thread {}", self.rank)
    }
}

impl Ranks for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn exchange(&self, partner: usize, send: &[u8], receive: &mut [u8]) {
        self.to[partner].lock().unwrap().send(send.to_vec()).unwrap();
        receive.copy_from_slice(&self.from[partner].lock().unwrap().recv().unwrap());
    }
}

/// Does the same on so many ranks, and gives what each of them has in the end.
fn on_ranks<T: Send>(size: usize, work: impl Fn(Workers) -> T + Sync) -> Vec<T> {
    let mut to: Vec<Vec<_>> = (0..size).map(|_| Vec::new()).collect();
    let mut from: Vec<Vec<_>> = (0..size).map(|_| Vec::new()).collect();
    for from in &mut from {
        for to in &mut to {
            let (send, receive) = channel();
            to.push(Mutex::new(send));
            from.push(Mutex::new(receive));
        }
    }
    std::thread::scope(|scope| {
        let ranks = to.into_iter().zip(from).enumerate().map(|(rank, (to, from))| {
            let workers = Workers::new(1, Arc::new(Thread { rank, to, from })).unwrap();
            let work = &work;
            scope.spawn(move || work(workers))
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn ranks_tell_each_other_what_they_have() {
    for size in [1, 2, 4, 8] {
        let found = on_ranks(size, |workers| {
            let rank = workers.rank();
            let own = vec![rank as u8; rank];
            let mut sums: Vec<f32> = (0..11).map(|i| (i * size + rank) as f32).collect();
            workers.sum(&mut sums);
            let parts: Vec<f64> = workers.part_of(21).map(|i| i as f64).collect();
            (
                workers.gather(own),
                workers.of_first(vec![7 + rank as u8]),
                [workers.any(rank == size - 1), workers.any(false), workers.agree(&[rank as u8])],
                workers.concat(parts),
                sums,
            )
        });
        let sums: Vec<f32> =
            (0..11).map(|i| (0..size).map(|rank| (i * size + rank) as f32).sum()).collect();
        for (gathered, first, said, parts, found) in found {
            assert_eq!(gathered, (0..size).map(|r| vec![r as u8; r]).collect::<Vec<_>>());
            assert_eq!((first, said), (vec![7], [true, false, size == 1]));
            assert_eq!(parts, (0..21).map(f64::from).collect::<Vec<_>>());
            assert_eq!(found, sums);
        }
    }
}

#[test]
fn a_number_of_ranks_that_makes_no_tree_is_refused() {
    let lonely = Thread { rank: 0, to: Vec::new(), from: Vec::new() };
    let error = Workers::new(1, Arc::new(lonely)).unwrap_err().to_string();
    assert!(error.starts_with("number of ranks is 0, but must be 1, 2, 4"), "{error}");
}

const FEATURES: usize = 3;

fn model(streams: &Streams) -> ArEbm {
    let config = ArEbmConfig { features: FEATURES, dropout: 0.1, ..ArEbmConfig::small() };
    config.init(&Device::flex().autodiff(), &mut streams.stream("init", 0, 0)).unwrap()
}

/// Bits of a model that was trained for a few steps, with the losses of its steps.
fn train(workers: impl Into<Workers>, batch: usize) -> (Vec<f32>, Vec<f64>) {
    let streams = Streams::new(5);
    let mut rng = streams.stream("rows", 0, 0);
    let rows = (0..FEATURES * 50).map(|_| rng.normal() as f32).collect();
    let rows = TensorData::new::<f32, _>(rows, [50, FEATURES]);
    let rows = Rows::new(Tensor::from_data(rows, &Device::flex()));
    let settings = ArStepConfig { tile_rows: 21, ..ArStepConfig::new(Method::SmcRnce) };
    let step = ArStep::new(&settings, workers).unwrap();
    let config = TrainingConfig::new(6, 1e-2).with_batch_size(batch);
    let mut trainer = Trainer::new(model(&streams), step, config, streams).unwrap();
    let mut losses = Vec::new();
    let ended = trainer.fit_watched(&rows, &Watch::default(), &mut |event| {
        if let zhat::train::Event::Step { report, .. } = event {
            losses.push(report.loss);
        }
        Ok::<_, zhat::Error>(())
    });
    assert_eq!(ended, Ok(Ended::Done));
    (parameters(trainer.model()), losses)
}

/// Batches of fewer tiles than there are ranks are among them.
#[test]
fn training_has_the_same_bits_for_any_number_of_ranks() {
    for batch in [3, 13, 50] {
        let alone = train(3, batch);
        for size in [1, 2, 4, 8] {
            for found in on_ranks(size, |workers| train(workers, batch)) {
                assert!(found == alone, "{size} ranks, batches of {batch}");
            }
        }
    }
}

/// In the order of the lanes, as it once was, the sum would depend on where it is cut: the test above can fail.
#[test]
fn a_sum_that_is_no_tree_depends_on_where_it_is_cut() {
    let numbers: Vec<f32> = (0..16).map(|i| (i as f32 * 0.7).sin()).collect();
    let row = |part: &[f32]| part.iter().fold(0.0, |sum, x| sum + x);
    assert_ne!(row(&numbers), row(&numbers[..8]) + row(&numbers[8..]));
}

#[test]
fn scores_and_particles_have_the_same_bits_for_any_number_of_ranks() {
    let streams = Streams::new(6);
    let model = model(&streams);
    let mut rng = streams.stream("rows", 0, 0);
    let mut x: Vec<f32> = (0..FEATURES * 1100).map(|_| rng.normal() as f32).collect();
    let whole = x.clone();
    (0..300).for_each(|row| x[FEATURES * row] = f32::NAN);
    let run = |workers: Workers| {
        let evaluator = Evaluator::new(&model, workers.clone()).unwrap();
        let smc = SmcConfig::new(1000).unwrap();
        let cloud = evaluator.smc(&smc, &streams, 0).unwrap();
        let proposal = Evaluator::of_proposal(&model, workers).unwrap();
        let holes = proposal.score_observed(&x, &SmcConfig::new(16).unwrap(), &streams).unwrap();
        (evaluator.score(&whole), cloud, holes)
    };
    let alone = run(2.into());
    for size in [2, 4] {
        assert!(on_ranks(size, run).iter().all(|found| *found == alone), "{size} ranks");
    }
}

#[test]
fn who_is_told_to_stop_tells_the_others() {
    let streams = Streams::new(6);
    let model = model(&streams);
    let found = on_ranks(4, |workers| {
        let watch = Arc::new(Watch::default());
        if workers.rank() == 2 {
            watch.stop();
        }
        let evaluator = Evaluator::new(&model, workers).unwrap().with_watch(watch);
        evaluator.smc(&SmcConfig::new(1000).unwrap(), &streams, 0)
    });
    assert!(found.iter().all(|found| *found == Err(zhat::Error::Stopped)));
}

#[test]
fn what_goes_wrong_on_one_rank_goes_wrong_on_all() {
    let streams = Streams::new(6);
    let model = model(&streams);
    // The last rows have no density, and belong to the last rank.
    let mut x = vec![0.5; FEATURES * 64];
    x[FEATURES * 63] = f32::NAN;
    let run = |workers: Workers| {
        let batch = TensorData::new(x.clone(), [64, FEATURES]);
        let batch = Tensor::<2>::from_data(batch, &Device::flex()).into();
        let mut step = ArStep::new(&ArStepConfig::new(Method::Rnce), workers).unwrap();
        zhat::train::TrainingStep::gradient(&mut step, &model, &batch, &streams, 0).unwrap_err()
    };
    let alone = run(1.into());
    assert!(alone.is_recoverable());
    let found = on_ranks(4, run);
    assert_eq!(found[3], alone);
    for error in &found[..3] {
        assert!(error.is_recoverable());
        assert_eq!(error.to_string(), format!("on rank 3: {alone}"));
    }
}
