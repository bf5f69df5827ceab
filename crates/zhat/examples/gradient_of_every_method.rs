//! Weights and gradients of every method on fixed candidates, as JSON: numbers to hold another implementation to, such as that of
//! PyTorch in the Python package. `cargo run --release --example gradient_of_every_method`.

use serde_json::json;
use zhat::burn::tensor::{Device, Tensor};
use zhat::criterion::{Method, surrogate};
use zhat::host::Place;
use zhat::kernel::Candidates;
use zhat::model::{DiagonalGaussian, UnnormalisedModel};
use zhat::rng::Streams;
use zhat::testing::gradient;

const ROWS: usize = 3;
const CANDIDATES: usize = 4;
const MEAN: [f64; 2] = [0.5, -1.0];
const STD_DEV: [f64; 2] = [1.2, 0.8];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    let model = DiagonalGaussian::new(&MEAN, &STD_DEV, &device)?;
    let mut rng = Streams::new(7).stream("candidates", 0, 0);
    let values: Vec<f64> =
        rng.normals(ROWS * CANDIDATES * 2).iter().map(|x| f64::from(*x as f32)).collect();
    let mut log_q: Vec<f64> = rng.normals(ROWS * CANDIDATES);
    // Where the chain is, ratios are 1.
    (0..ROWS).for_each(|row| log_q[row * CANDIDATES] = 0.0);
    let x: Tensor<3> = Place::of(&Tensor::<2>::zeros([1, 1], &Device::flex()))
        .tensor(values.clone(), [ROWS, CANDIDATES, 2]);
    let mut found = serde_json::Map::new();
    // Score matching has terms of its own instead.
    let weighs = |method: &Method| !matches!(method, Method::Ssm | Method::Dsm);
    for method in Method::for_any_model().filter(weighs) {
        let flat = x.clone().reshape([ROWS * CANDIDATES, 2]);
        let log_p_tilde = model.log_p_tilde(flat).reshape([ROWS, CANDIDATES]);
        let weigh = |log_w: &zhat::weights::LogWeights| method.weigh(log_w).expect("weights");
        let candidates = Candidates::new(x.clone(), log_p_tilde, log_q.clone(), weigh)?;
        // Of the means, then of the standard deviations.
        let gradient = gradient(&surrogate(&candidates, None), &model);
        let of = json!({ "weights": candidates.weights.values(), "gradient": gradient });
        found.insert(method.name().into(), of);
    }
    let all = json!({
        "mean": MEAN, "std_dev": STD_DEV, "rows": ROWS, "candidates": CANDIDATES, "x": values, "log_q": log_q,
        "methods": found,
    });
    println!("{}", serde_json::to_string_pretty(&all)?);
    Ok(())
}
