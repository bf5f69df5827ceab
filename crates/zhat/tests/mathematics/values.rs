//! Fixed-seed values, so that a change of results is noticed and named in CHANGELOG.md.

use zhat::burn::tensor::Device;
use zhat::criterion::{Criterion, Method, MethodConfig};
use zhat::model::DiagonalGaussian;
use zhat::proposal::Proposal;

use crate::support::{gradient, place, rng};

/// Gradient of the first mean and of the first scale for every method, on the same 8 rows.
const PINNED: [(&str, f64, f64); 15] = [
    ("ml-is", 0.112076, -0.428692),
    ("nce", -0.108890, 1.807155),
    ("rnce", 0.098048, -0.496714),
    ("p-rnce", 0.098048, -0.496714),
    ("cnce", 0.087454, -0.252981),
    ("mh-cnce", 0.066289, -0.247177),
    ("p-cnce", -0.113930, -0.268021),
    ("p-mh-cnce", -0.109569, -0.228877),
    ("cd", 0.109775, -0.478987),
    ("pcd", -0.117468, -0.381131),
    ("hmc-cd", 0.048100, -0.594440),
    ("time-reversal", -0.077518, -0.226179),
    ("ssm", -0.130340, -1.692869),
    ("dsm", 0.053193, -0.347808),
    ("snl", 0.121021, 4.819554),
];

#[test]
fn gradients_of_every_method_are_pinned() {
    let device = Device::flex().autodiff();
    let truth = DiagonalGaussian::new(&[0.6, -0.4], &[1.3, 0.7], &Device::flex()).unwrap();
    let x0 = truth.sample(8, &place(), &mut rng(1));
    let model = DiagonalGaussian::new(&[0.0, 0.0], &[1.0, 1.0], &device).unwrap();
    let computed: Vec<(&str, f64, f64)> = Method::for_any_model()
        .map(|method| {
            let config = MethodConfig::new(method).with_num_negatives(4).with_num_steps(2);
            let mut criterion = config.init(&x0).unwrap();
            let loss = criterion.loss(&model, &x0.clone().into(), &mut rng(2)).unwrap();
            let gradient = gradient(&loss.surrogate, &model);
            (method.name(), gradient[0], gradient[2])
        })
        .collect();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-5 * (1.0 + b.abs());
    assert_eq!(computed.len(), PINNED.len(), "every method is pinned");
    for (row, pinned) in computed.iter().zip(PINNED) {
        assert_eq!(row.0, pinned.0);
        assert!(
            close(row.1, pinned.1) && close(row.2, pinned.2),
            "results changed; if that is meant, pin these and say so in CHANGELOG.md: {computed:?}",
        );
    }
}
