//! Every method finds what it should find, the sampler samples, and results do not depend on the number of threads.

use zhat::burn::module::Module;
use zhat::burn::tensor::{Device, Tensor};
use zhat::criterion::{Adapted, Criterion, FromData, Method, MethodConfig};
use zhat::host::to_host;
use zhat::kernel::{ConditionalImportance, Metropolis};
use zhat::model::{
    DiagonalGaussian, GaussianChain, GaussianChainProposal, MlpEnergyConfig, WithLogZ,
};
use zhat::proposal::{Adaptive, Hamiltonian, ModelItself, Proposal, RandomWalk};
use zhat::rng::Streams;
use zhat::sampler::SamplerConfig;
use zhat::testing::compare;
use zhat::train::{CriterionStep, Ended, OptimiserConfig, Rows, Schedule, Trainer, TrainingConfig};

use crate::support::{Target, place, rng};

const MEAN: [f64; 2] = [0.6, -0.4];
const STD_DEV: [f64; 2] = [1.3, 0.7];

fn data(rows: usize) -> Tensor<2> {
    let truth = DiagonalGaussian::new(&MEAN, &STD_DEV, &Device::flex()).unwrap();
    truth.sample(rows, &place(), &mut rng(1))
}

fn train<M: Module, C: Criterion<M>>(model: M, criterion: C, data: &Tensor<2>, steps: u64) -> M {
    let config = TrainingConfig::new(steps, 0.05)
        .with_optimiser(OptimiserConfig::Adam)
        .with_schedule(Schedule::Cosine)
        .with_max_gradient_norm(5.0)
        .with_batch_size(50);
    let step = CriterionStep::new(criterion);
    let mut trainer = Trainer::new(model, step, config, Streams::new(0)).unwrap();
    assert_eq!(trainer.fit(&Rows::new(data.clone())), Ok(Ended::Done));
    trainer.model().clone()
}

/// Within 0.15 of the maximum likelihood estimate, which is within 0.03 of the truth for 2,000 rows.
fn assert_found(model: &DiagonalGaussian, name: &str) {
    for i in 0..2 {
        let (mean, std_dev) = (model.mean()[i], model.std_dev()[i]);
        assert!((mean - MEAN[i]).abs() < 0.15, "{name}: mean {mean}");
        assert!((std_dev - STD_DEV[i]).abs() < 0.15, "{name}: std_dev {std_dev}");
    }
}

#[test]
fn every_method_finds_the_gaussian_behind_the_data() {
    let device = Device::flex().autodiff();
    let data = data(2000);
    let start = DiagonalGaussian::new(&[0.0, 0.0], &[1.0, 1.0], &device).unwrap();
    for (method, name) in Method::for_any_model().map(|method| (method, method.name())) {
        if matches!(method, Method::Nce | Method::Snl) {
            continue; // needs a constant of its own: see below
        }
        let criterion = MethodConfig::new(method).init(&data).unwrap();
        assert_found(&train(start.clone(), criterion, &data, 400), name);
    }
    let multi_step = MethodConfig::new(Method::Cnce).with_num_steps(3).init(&data).unwrap();
    assert_found(&train(start.clone(), multi_step, &data, 400), "cnce, 3 steps");
    let ideal = FromData(ConditionalImportance::new(ModelItself, 10).unwrap());
    assert_found(&train(start.clone(), ideal, &data, 400), "rnce with q = p_theta");
    let q = DiagonalGaussian::new(&[0.0, 0.0], &[2.0, 2.0], &device).unwrap();
    let proposal = Adaptive::new(q);
    let kernel = ConditionalImportance::new(proposal.clone(), 10).unwrap();
    let adaptive = Adapted::new(FromData(kernel), proposal, OptimiserConfig::Adam);
    assert_found(&train(start, adaptive, &data, 400), "rnce with q_phi");
}

#[test]
fn methods_with_a_constant_learn_the_normaliser_too() {
    let device = Device::flex().autodiff();
    let data = data(2000);
    for method in [Method::Nce, Method::Snl] {
        let gaussian = DiagonalGaussian::new(&[0.0, 0.0], &[1.0, 1.0], &device).unwrap();
        let model = WithLogZ::new(gaussian, 0.0, &device);
        let criterion = MethodConfig::new(method).init(&data).unwrap();
        let model = train(model, criterion, &data, 600);
        assert_found(model.model(), method.name());
        // log Z = log(2 pi) + log(1.3 * 0.7) = 1.744.
        let truth = to_host(&model.model().log_z())[0];
        assert!((model.log_z() - truth).abs() < 0.1, "{method}: {} against {truth}", model.log_z());
    }
}

#[test]
fn smc_rnce_finds_the_chain_behind_the_data_with_both_gradients() {
    let truth = GaussianChain::new(0.9, 0.8, 0.8, 4, &Device::flex());
    let data = truth.exact(&Device::flex()).unwrap().sample(2000, &place(), &mut rng(2));
    let proposal = GaussianChainProposal { coupling: 0.5, std_dev: 1.3 };
    for method in [Method::SmcRnce, Method::SmcRnceTrajectory] {
        let start = GaussianChain::new(0.2, 0.0, 0.8, 4, &Device::flex().autodiff());
        let criterion = MethodConfig::new(method).init_sequential(proposal.clone(), &data).unwrap();
        let model = train(start, criterion, &data, 300);
        // The model's exact mean has to be that of the data, within 0.15.
        let rows = |tensor: Tensor<2>| to_host(&tensor.mean_dim(0));
        let exact = model.exact(&Device::flex()).unwrap();
        let fitted = rows(exact.sample(20_000, &place(), &mut rng(3)));
        for (fitted, mean) in fitted.iter().zip(rows(data.clone())) {
            assert!((fitted - mean).abs() < 0.15, "{method}: {fitted} against {mean}");
        }
        let any = MethodConfig::new(method).init::<DiagonalGaussian>(&data).map(|_| ());
        assert!(any.unwrap_err().to_string().contains("stage by stage"));
    }
}

#[test]
fn kernels_sample_and_their_diagnostics_say_so() {
    let (_, target) = Target::all().remove(0);
    let kernel = Metropolis::new(Hamiltonian::new(0.35, 6).unwrap(), 1).unwrap();
    let x0 = place().tensor(vec![8.0; 400], [200, 2]);
    let config = SamplerConfig { thinning: 2, ..SamplerConfig::new(60) };
    let samples = config.run(&kernel, &target, x0.clone(), &mut rng(4)).unwrap();
    assert!(samples.acceptance_rate() > 0.7);
    assert!(samples.split_r_hats().iter().all(|r| *r < 1.05));
    assert!(samples.effective_sample_sizes().iter().all(|ess| *ess > 2000.0));
    // The last draws of the 200 chains are independent: compare them with as many exact ones.
    let draws = to_host(&samples.tensor());
    let exact = to_host(&target.sample(200, &mut rng(5)));
    assert!(compare(&exact, &draws[draws.len() - 400..], 2).z_score < 4.5);
    assert_eq!(samples.stuck_chains(), 0);
    // Far too few and too small steps from a bad start: the diagnostics must complain.
    let kernel = Metropolis::new(RandomWalk::new(0.05).unwrap(), 1).unwrap();
    let stuck = SamplerConfig { num_warm_up: 0, ..SamplerConfig::new(50) }.run(
        &kernel,
        &target,
        x0,
        &mut rng(6),
    );
    assert!(stuck.unwrap().split_r_hats().iter().any(|r| *r > 1.2));
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    let run = |threads: usize| -> Vec<f64> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let device = Device::flex().autodiff();
            let data = data(512);
            let config = MlpEnergyConfig { width: 96, ..MlpEnergyConfig::new(2) };
            let model = config.init(&device, &mut rng(2)).unwrap();
            let criterion =
                MethodConfig::new(Method::Rnce).with_num_negatives(40).init(&data).unwrap();
            let training = TrainingConfig::new(8, 0.01)
                .with_optimiser(OptimiserConfig::Adam)
                .with_batch_size(256);
            let step = CriterionStep::new(criterion);
            let mut trainer = Trainer::new(model, step, training, Streams::new(0)).unwrap();
            trainer.fit(&Rows::new(data.clone())).unwrap();
            use zhat::model::UnnormalisedModel;
            to_host(&trainer.model().log_p_tilde(data))
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}
