//! A long run holds no more memory than a short one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use zhat::Result;
use zhat::ar::{ArEbm, ArEbmConfig, ArStep, ArStepConfig, PlainStep};
use zhat::burn::optim::GradientsParams;
use zhat::burn::tensor::{Device, Tensor, TensorData};
use zhat::criterion::Method;
use zhat::rng::Streams;
use zhat::train::{Batch, StepReport, Trainer, TrainingConfig, TrainingStep};

/// The system's allocator, and how many bytes it has given out.
struct Counting;

static HELD: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static GLOBAL: Counting = Counting;

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as isize, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The step of the CPU's engine, which says of itself that its gradients are Burn's.
struct Graphed(ArStep);

impl TrainingStep<ArEbm> for Graphed {
    fn gradient(
        &mut self,
        model: &ArEbm,
        batch: &Batch,
        streams: &Streams,
        step: u64,
    ) -> Result<(GradientsParams, StepReport)> {
        self.0.gradient(model, batch, streams, step)
    }
}

/// Bytes that steps leave behind, in a run that is taken up from its own state after the first hundred.
fn left_behind(step: impl TrainingStep<ArEbm>) -> isize {
    let streams = Streams::new(1);
    let config = ArEbmConfig { features: 2, ..ArEbmConfig::small() };
    let device = Device::flex().autodiff();
    let model = config.init(&device, &mut streams.stream("init", 0, 0)).unwrap();
    let training = TrainingConfig {
        averaging: 0.1,
        max_gradient_norm: Some(1e-3),
        ..TrainingConfig::new(1_000, 1e-3)
    };
    let mut trainer = Trainer::new(model, step, training, streams).unwrap();
    let mut rng = streams.stream("rows", 0, 0);
    let rows: Vec<f32> = (0..32).map(|_| rng.normal() as f32).collect();
    let batch = Tensor::<2>::from_data(TensorData::new(rows, [16, 2]), &Device::flex()).into();
    let take = |trainer: &mut Trainer<_, _>, steps: usize| {
        for _ in 0..steps {
            trainer.train_step(&batch).unwrap();
        }
        HELD.load(Ordering::Relaxed)
    };
    take(&mut trainer, 50);
    let state = trainer.state().unwrap();
    trainer.restore(state).unwrap();
    let before = take(&mut trainer, 50);
    take(&mut trainer, 200) - before
}

#[test]
fn steps_leave_nothing_behind() {
    let settings = ArStepConfig::new(Method::Rnce);
    let engine = || ArStep::new(&settings, 1).unwrap();
    let [of_engine, of_burn] = [left_behind(engine()), left_behind(PlainStep(settings.clone()))];
    assert!(of_engine.abs() < 50_000, "{of_engine} bytes by the engine");
    assert!(of_burn.abs() < 50_000, "{of_burn} bytes by Burn");
    // Parameters in a graph that nobody walks are all remembered.
    let graphed = left_behind(Graphed(engine()));
    assert!(graphed > 500_000, "{graphed} bytes");
}
