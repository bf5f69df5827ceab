//! Train a Burn module of your own with two different criteria: `cargo run --release --example own_model`.
//!
//! The model is an energy on the plane with a few radial bumps; the data are a ring. What changes between the two runs is
//! the name of the method, nothing else.

use zhat::burn::module::{Module, Param};
use zhat::burn::tensor::{Device, Tensor};
use zhat::criterion::{Method, MethodConfig};
use zhat::host::Place;
use zhat::model::{FullGaussian, UnnormalisedModel};
use zhat::rng::{Stream, Streams};
use zhat::train::{
    CriterionStep, HeldOut, OptimiserConfig, Rows, Schedule, Trainer, TrainingConfig, Validation,
};

/// `log p~(x) = sum_k a_k exp(-(|x| - r_k)^2 / 2) - |x|^2 / 2`, with learnt heights `a` and radii `r`.
#[derive(Module, Debug)]
struct Bumps {
    heights: Param<Tensor<1>>,
    radii: Param<Tensor<1>>,
}

impl UnnormalisedModel for Bumps {
    fn log_p_tilde(&self, x: Tensor<2>) -> Tensor<1> {
        let radius = x.square().sum_dim(1).sqrt();
        let distance = radius.clone() - self.radii.val().unsqueeze();
        let bumps = (distance.square() * -0.5).exp() * self.heights.val().unsqueeze();
        (bumps.sum_dim(1) - radius.square() * 0.5).squeeze_dim(1)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let streams = Streams::new(1);
    let train = ring(2000, &mut streams.stream("train", 0, 0));
    let test = ring(2000, &mut streams.stream("test", 0, 0));
    for method in ["rnce", "p-mh-cnce"] {
        let model = fit(method.parse()?, &train)?;
        // log p = log p~ - log Z, with Z by importance sampling and an error bar.
        let mut held_out =
            HeldOut::new(test.clone(), FullGaussian::fitted(&train)?, 100_000, streams);
        let found = held_out.validate(&model, 0)?;
        let (value, error) = (found.log_likelihood(), found.se_log_z);
        println!("{method:>10}: test log-likelihood {value:.3} (+- {error:.3} of log Z)");
    }
    Ok(())
}

fn fit(method: Method, data: &Tensor<2>) -> zhat::Result<Bumps> {
    let device = Device::flex().autodiff();
    let model = Bumps {
        heights: Param::from_tensor(Tensor::from_data([0.0, 0.0, 0.0, 0.0], &device)),
        radii: Param::from_tensor(Tensor::from_data([0.5, 1.5, 2.5, 3.5], &device)),
    };
    let step = CriterionStep::new(MethodConfig::new(method).init(data)?);
    let config = TrainingConfig::new(2000, 0.05)
        .with_optimiser(OptimiserConfig::Adam)
        .with_schedule(Schedule::Cosine);
    let mut trainer = Trainer::new(model, step, config, Streams::new(0))?;
    trainer.fit(&Rows::new(data.clone()))?;
    Ok(trainer.model().clone())
}

/// Points around a circle of radius 2.
fn ring(rows: usize, rng: &mut Stream) -> Tensor<2> {
    let values = (0..rows)
        .flat_map(|_| {
            let (radius, angle) = (2.0 + 0.3 * rng.normal(), std::f64::consts::TAU * rng.uniform());
            [radius * angle.cos(), radius * angle.sin()]
        })
        .collect();
    Place::new(&Device::flex()).tensor(values, [rows, 2])
}
