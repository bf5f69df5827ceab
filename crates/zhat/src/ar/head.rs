//! The base `q(x_d | x_<d)` of one row, from the network's raw outputs: a mixture of normals, a spline, a known mixture; or a
//! softmax where the feature is one of a few classes, and before the rest where it has atoms.
//!
//! Where there is more than one of them, each has a share that is learnt: `q = sum_e share_e q_e`. The raw outputs are
//! `[mixture, spline, logits of the shares]`, as far as they are there.

use std::sync::Arc;

use super::atoms::Atoms;
use super::cells::{ENDS, Node, around, fineness};
use super::classes::Classes;
use super::config::{ArEbmConfig, EnergyForm, HeadForm, ScaleForm};
use super::kind::FeatureKind;
use super::mixture::Mixture;
use super::quadrature::{Rule, normal_nodes};
use super::spline::{self, Spline};
use crate::rng::Stream;
use crate::simd;

/// Log weights, means and scales of a mixture that is known.
pub type Known<'a> = [&'a [f32]; 3];

/// The base of one row, made ready once and used for draws, densities and gradients.
#[derive(Debug, Clone)]
pub struct Head {
    mixture: Option<Mixture>,
    spline: Option<Spline>,
    /// The same for all members.
    known: Option<Arc<Mixture>>,
    /// All there is where the feature is one of a few classes.
    classes: Option<Classes>,
    /// What stands before the others where the feature is a number with atoms.
    atoms: Option<Atoms>,
    /// Raw outputs of the mixture and of the spline.
    outputs: [usize; 2],
    shares: Vec<f32>,
    /// Normals of less than this share have no nodes.
    least_share: f32,
}

/// What an integral over the base may lose by a normal that has no nodes, relative to all of it.
const NEGLIGIBLE: f64 = 1e-7;

impl ArEbmConfig {
    /// The share below which a normal can be left out of integrals over the base. A tilt has a bound, and with it what is lost; a free
    /// energy may have its mass where the base has none.
    fn least_share(&self) -> f32 {
        match self.energy_form {
            EnergyForm::Tilted => (NEGLIGIBLE * (-2.0 * self.tilt_bound).exp()) as f32,
            EnergyForm::Free => 0.0,
        }
    }

    pub(super) fn has_mixture(&self) -> bool {
        self.head != HeadForm::Spline
    }

    pub(super) fn has_spline(&self) -> bool {
        self.head != HeadForm::Mixture
    }

    /// Parts of the base.
    pub(super) fn num_parts(&self) -> usize {
        [self.has_mixture(), self.has_spline(), self.gaussian_mixture]
            .iter()
            .filter(|&&p| p)
            .count()
    }

    /// Raw outputs of the mixture, the spline and the shares.
    pub(super) fn head_parts(&self) -> [usize; 3] {
        let mixture = if self.has_mixture() { 3 * self.mixture_components } else { 0 };
        let spline = if self.has_spline() { spline::raw_outputs(self.spline_bins) } else { 0 };
        let parts = self.num_parts();
        [mixture, spline, if parts > 1 { parts } else { 0 }]
    }

    /// Raw outputs of the base of a number.
    pub(super) fn number_outputs(&self) -> usize {
        self.head_parts().iter().sum()
    }

    /// Raw outputs of the base of a feature; one that is given has none.
    pub(super) fn head_outputs(&self, stage: usize) -> usize {
        match self.kind(stage) {
            _ if self.is_given(stage) => 0,
            FeatureKind::Categorical { levels } => *levels,
            FeatureKind::Atoms { values } => self.number_outputs() + values.len() + 1,
            _ => self.number_outputs(),
        }
    }

    /// Outputs of a masked conditioner that belong to the features before one: context and base of each.
    pub(super) fn outputs_before(&self, stage: usize) -> usize {
        match self.kinds.is_empty() {
            true => {
                stage.saturating_sub(self.given) * (self.context + self.head_outputs(self.given))
            }
            false => {
                let modelled = self.given..stage.max(self.given);
                modelled.map(|before| self.context + self.head_outputs(before)).sum()
            }
        }
    }
}

impl Head {
    /// Room for the base of a feature.
    pub fn at(config: &ArEbmConfig, stage: usize) -> Self {
        match config.kind(stage) {
            FeatureKind::Categorical { levels } => Self {
                mixture: None,
                spline: None,
                known: None,
                classes: Some(Classes::new(*levels)),
                atoms: None,
                outputs: [0, 0],
                shares: Vec::new(),
                least_share: 0.0,
            },
            FeatureKind::Atoms { values } => {
                Self { atoms: Some(Atoms::new(values)), ..Self::new(config) }
            }
            _ => Self::new(config),
        }
    }

    /// Room for the base of a number.
    pub fn new(config: &ArEbmConfig) -> Self {
        let [mixture, spline, _] = config.head_parts();
        Self {
            mixture: config.has_mixture().then(|| {
                let (minimum, share) = (config.minimum_scale as f32, config.outlier_share as f32);
                Mixture::with_outliers(config.mixture_components, minimum, config.scales, share)
            }),
            spline: config.has_spline().then(|| Spline::new(config.spline_bins)),
            known: None,
            classes: None,
            atoms: None,
            outputs: [mixture, spline],
            shares: vec![1.0; config.num_parts()],
            least_share: config.least_share(),
        }
    }

    /// Takes in the raw outputs of one row, and the mixture that is known of it.
    pub fn set(&mut self, raw: &[f32], known: Option<Known>) {
        if let Some(classes) = &mut self.classes {
            classes.set(raw);
            return;
        }
        let [mixture, spline] = self.outputs;
        let numbers = self.number_outputs();
        if let Some(atoms) = &mut self.atoms {
            atoms.set(&raw[numbers..]);
        }
        if let Some(part) = &mut self.mixture {
            part.set(&raw[..mixture]);
        }
        if let Some(part) = &mut self.spline {
            part.set(&raw[mixture..mixture + spline]);
        }
        if let Some([log_weights, means, scales]) = known {
            let room = || Arc::new(Mixture::new(log_weights.len(), 0.0, ScaleForm::Softplus));
            let known = Arc::make_mut(self.known.get_or_insert_with(room));
            known.set_known(log_weights, means, scales);
        }
        if self.shares.len() > 1 {
            let logits = &raw[mixture + spline..][..self.shares.len()];
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for (share, logit) in self.shares.iter_mut().zip(logits) {
                *share = simd::exp::<false>(logit - largest);
            }
            let sum: f32 = self.shares.iter().sum();
            self.shares.iter_mut().for_each(|share| *share /= sum);
        }
    }

    /// Raw outputs of all but the atoms.
    fn number_outputs(&self) -> usize {
        let shares = if self.shares.len() > 1 { self.shares.len() } else { 0 };
        self.outputs[0] + self.outputs[1] + shares
    }

    /// Lets go of the mixture that is known, so that another member can take in the next.
    pub(super) fn forget_known(&mut self) {
        self.known = None;
    }

    /// Has the same mixture beside it as another member.
    pub(super) fn share_known(&mut self, with: &Self) {
        self.known.clone_from(&with.known);
    }

    /// `log` of the density that is known, where there is one.
    pub(super) fn log_known(&self, x: f32) -> Option<f32> {
        self.known.as_ref().map(|known| known.log_density(x))
    }

    /// `log q(x)`: of a class its log-probability, and of an atom.
    pub fn log_density(&self, x: f32) -> f32 {
        self.log_density_with(x, self.log_known(x))
    }

    /// The same with the log-density that is known, which several members share.
    pub(super) fn log_density_with(&self, x: f32, log_known: Option<f32>) -> f32 {
        if let Some(classes) = &self.classes {
            return classes.log_probability(x);
        }
        match &self.atoms {
            Some(atoms) if atoms.is_atom(x) => atoms.log_probability(x),
            Some(atoms) => atoms.log_probability(x) + self.terms(x, log_known).1,
            None => self.terms(x, log_known).1,
        }
    }

    /// A draw: a part by its share, then from that part.
    pub fn sample(&self, rng: &mut Stream) -> f32 {
        if let Some(classes) = &self.classes {
            return classes.sample(rng);
        }
        if let Some(value) = self.atoms.as_ref().and_then(|atoms| atoms.sample(rng)) {
            return value;
        }
        let mut left = if self.shares.len() > 1 { rng.uniform() as f32 } else { 0.0 };
        let mut shares = self.shares.iter();
        let mut mine = || {
            let share = shares.next().expect("a share for each part");
            left -= share;
            left < 0.0 || shares.len() == 0
        };
        if let Some(mixture) = &self.mixture
            && mine()
        {
            return mixture.sample(rng);
        }
        if let Some(spline) = &self.spline
            && mine()
        {
            return spline.sample(rng);
        }
        self.known.as_ref().expect("a last part").sample(rng)
    }

    /// Adds `coefficient` times the gradient of `log q(x)` with respect to the raw outputs.
    pub fn add_gradient(&self, x: f32, coefficient: f32, gradient: &mut [f32]) {
        if let Some(classes) = &self.classes {
            classes.add_gradient(x, coefficient, gradient);
            return;
        }
        if let Some(atoms) = &self.atoms {
            atoms.add_gradient(x, coefficient, &mut gradient[self.number_outputs()..]);
            if atoms.is_atom(x) {
                return;
            }
        }
        let [mixture_outputs, spline_outputs] = self.outputs;
        let (terms, log_q) = self.terms(x, self.log_known(x));
        let of_part = |part: usize| match self.shares.len() {
            1 => coefficient,
            _ => coefficient * (terms[part] - log_q).exp(),
        };
        let (of_mixture, rest) = gradient.split_at_mut(mixture_outputs);
        let (of_spline, of_shares) = rest.split_at_mut(spline_outputs);
        let mut part = 0;
        if let Some(mixture) = &self.mixture {
            mixture.add_gradient(x, of_part(part), of_mixture);
            part += 1;
        }
        if let Some(spline) = &self.spline {
            spline.add_gradient(x, of_part(part), of_spline);
        }
        if self.shares.len() > 1 {
            for (part, (gradient, share)) in of_shares.iter_mut().zip(&self.shares).enumerate() {
                *gradient += of_part(part) - coefficient * share;
            }
        }
    }

    /// Points and weights such that `sum w f(x)` is about `E_q[f]`, for an `f` as smooth as a tilt.
    pub fn nodes(&self, rule: Rule, out: &mut Vec<[f32; 2]>) {
        let first = out.len();
        self.nodes_elsewhere(rule, out);
        if let Some(atoms) = &self.atoms {
            let elsewhere = atoms.elsewhere();
            out[first..].iter_mut().for_each(|[_, weight]| *weight *= elsewhere);
            out.extend(atoms.nodes());
        }
    }

    fn nodes_elsewhere(&self, rule: Rule, out: &mut Vec<[f32; 2]>) {
        let mut shares = self.shares.iter();
        let mut share = || *shares.next().expect("a share for each part");
        if let Some(mixture) = &self.mixture {
            mixture_nodes(mixture, share(), self.least_share, rule, out);
        }
        if let Some(spline) = &self.spline {
            spline.nodes(rule, share(), |x, weight| out.push([x, weight]));
        }
        if let Some(known) = &self.known {
            mixture_nodes(known, share(), self.least_share, rule, out);
        }
    }

    /// The same on both sides of a value, each part by itself: for the distribution function of what is made of the base.
    pub(super) fn nodes_around(&self, x: f32, out: &mut Vec<Node>) {
        let first = out.len();
        self.nodes_around_elsewhere(x, out);
        if let Some(atoms) = &self.atoms {
            let elsewhere = atoms.elsewhere();
            out[first..].iter_mut().for_each(|node| node.weight *= elsewhere);
            out.extend(atoms.nodes().map(|[at, weight]| Node { at, weight, below: at < x }));
        }
    }

    fn nodes_around_elsewhere(&self, x: f32, out: &mut Vec<Node>) {
        let mut shares = self.shares.iter();
        let mut share = || *shares.next().expect("a share for each part");
        if let Some(mixture) = &self.mixture {
            mixture_nodes_around(mixture, share(), self.least_share, x, out);
        }
        if let Some(spline) = &self.spline {
            let node = |at, weight, below| out.push(Node { at, weight, below });
            spline.nodes_around(x, share(), node);
        }
        if let Some(known) = &self.known {
            mixture_nodes_around(known, share(), self.least_share, x, out);
        }
    }

    /// The parts that there are of the base of a number, and their shares in the same order.
    pub(super) fn parts(&self) -> (Option<&Mixture>, Option<&Spline>, Option<&Mixture>, &[f32]) {
        (self.mixture.as_ref(), self.spline.as_ref(), self.known.as_deref(), &self.shares)
    }

    /// `log (share q_e(x))` of every part, and `log q(x)`.
    fn terms(&self, x: f32, known: Option<f32>) -> ([f32; 3], f32) {
        let mut terms = [f32::NEG_INFINITY; 3];
        let mixture = self.mixture.as_ref().map(|part| part.log_density(x));
        let spline = self.spline.as_ref().map(|part| part.log_density(x));
        let densities = [mixture, spline, known].into_iter().flatten();
        for (term, (density, share)) in terms.iter_mut().zip(densities.zip(&self.shares)) {
            *term = density + share.max(f32::MIN_POSITIVE).ln();
        }
        if self.shares.len() == 1 {
            return (terms, terms[0]);
        }
        let largest = terms.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = terms.iter().map(|term| (term - largest).exp()).sum();
        (terms, largest + sum.ln())
    }
}

fn mixture_nodes(
    mixture: &Mixture,
    share: f32,
    least_share: f32,
    rule: Rule,
    out: &mut Vec<[f32; 2]>,
) {
    for [weight, mean, scale] in mixture.components() {
        let weight = weight * share;
        if weight < least_share {
            continue;
        }
        for &[z, node] in normal_nodes(rule.nodes(weight, scale)) {
            out.push([mean + scale * z, weight * node]);
        }
    }
}

fn mixture_nodes_around(
    mixture: &Mixture,
    share: f32,
    least_share: f32,
    x: f32,
    out: &mut Vec<Node>,
) {
    for [weight, mean, scale] in mixture.components() {
        let weight = weight * share;
        if weight < least_share {
            continue;
        }
        around(ENDS, (x - mean) / scale, fineness(weight, scale), |z, node, below| {
            out.push(Node { at: mean + scale * z, weight: weight * node, below });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    const KNOWN: [[f32; 3]; 3] = [[-1.6, -0.9, -0.9], [-2.0, 0.5, 1.0], [0.4, 1.5, 0.1]];

    fn raw(config: &ArEbmConfig, seed: u64) -> Vec<f32> {
        let mut rng = Streams::new(seed).stream("test", 0, 0);
        (0..config.head_outputs(0)).map(|_| rng.normal() as f32).collect()
    }

    fn head(config: &ArEbmConfig, raw: &[f32]) -> Head {
        let mut head = Head::new(config);
        head.set(raw, config.gaussian_mixture.then(|| KNOWN.each_ref().map(|k| &k[..])));
        head
    }

    fn all() -> impl Iterator<Item = ArEbmConfig> {
        let forms = [HeadForm::Mixture, HeadForm::Spline, HeadForm::Both];
        forms.into_iter().flat_map(|head| {
            [false, true].map(|gaussian_mixture| ArEbmConfig {
                head,
                gaussian_mixture,
                outlier_share: if gaussian_mixture { 0.0 } else { 0.1 },
                ..ArEbmConfig::new(2)
            })
        })
    }

    #[test]
    fn the_density_is_normalised_and_draws_and_nodes_follow_it() {
        for config in all() {
            let head = head(&config, &raw(&config, 3));
            let f = |x: f64| (0.7 * x).tanh();
            let (mut total, mut mean, mut square) = (0.0, 0.0, 0.0);
            for i in -60_000..60_000 {
                let x = 5e-4 * (f64::from(i) + 0.5);
                let mass = 5e-4 * f64::from(head.log_density(x as f32)).exp();
                total += mass;
                mean += mass * f(x);
                square += mass * f(x).powi(2);
            }
            assert!((total - 1.0).abs() < 2e-3, "{config:?} {total}");
            let (mut rng, number) = (Streams::new(4).stream("test", 0, 0), 40_000);
            let drawn: f64 = (0..number).map(|_| f(f64::from(head.sample(&mut rng)))).sum();
            // 4.5 standard errors: one false alarm in 20,000 for six heads, and the seed is fixed.
            let error = 4.5 * ((square - mean * mean) / f64::from(number)).sqrt();
            assert!((drawn / f64::from(number) - mean).abs() < error, "{config:?}");
            let mut nodes = Vec::new();
            head.nodes(Rule::Fine, &mut nodes);
            let sum = |g: &dyn Fn(f64) -> f64| -> f64 {
                nodes.iter().map(|&[x, w]| f64::from(w) * g(f64::from(x))).sum()
            };
            assert!((sum(&|_| 1.0) - 1.0).abs() < 1e-5, "{config:?}");
            assert!((sum(&f) - mean).abs() < 1e-3, "{config:?} {} {mean}", sum(&f));
        }
    }

    #[test]
    fn a_normal_of_next_to_no_share_has_nodes_only_where_an_energy_may_have_its_mass_there() {
        let nodes = |energy_form: EnergyForm, far: f32| {
            let config = ArEbmConfig {
                mixture_components: 2,
                scales: ScaleForm::Exponential,
                energy_form,
                ..ArEbmConfig::new(1)
            };
            let (mut head, mut nodes) = (Head::new(&config), Vec::new());
            head.set(&[0.0, far, -1.0, 3.0, 0.0, 0.2], None);
            head.nodes(Rule::Fine, &mut nodes);
            nodes
        };
        // The largest tilt on the one, the smallest on the other: nothing could be lost more.
        let integral = |nodes: &[[f32; 2]]| -> f64 {
            let tilt = |at: f32| if at > 1.0 { 4.0f64 } else { -4.0 };
            nodes.iter().map(|&[at, weight]| f64::from(weight) * tilt(at).exp()).sum()
        };
        let (all, few) = (nodes(EnergyForm::Free, -28.0), nodes(EnergyForm::Tilted, -28.0));
        assert!(few.len() < all.len() && few.iter().all(|node| all.contains(node)));
        assert!((integral(&few) / integral(&all) - 1.0).abs() < 1e-6);
        // A share that a tilt can make something of stays.
        let [all, few] =
            [EnergyForm::Free, EnergyForm::Tilted].map(|energy_form| nodes(energy_form, -14.0));
        assert_eq!(all, few);
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        for config in all() {
            let raw = raw(&config, 5);
            for x in [-2.1f32, -0.3, 0.6, 1.9] {
                let mut gradient = vec![0.0; raw.len()];
                head(&config, &raw).add_gradient(x, 2.0, &mut gradient);
                for (index, &value) in gradient.iter().enumerate() {
                    let moved = |step: f32| {
                        let mut raw = raw.clone();
                        raw[index] += step;
                        f64::from(head(&config, &raw).log_density(x))
                    };
                    let slope = |h: f32| (moved(h) - moved(-h)) / f64::from(2.0 * h);
                    let slope = (4.0 * slope(0.01) - slope(0.02)) / 3.0;
                    let wrong = (f64::from(value) - 2.0 * slope).abs();
                    assert!(
                        wrong < 0.01 * (1.0 + slope.abs()),
                        "{config:?} {index} {value} {slope}"
                    );
                }
            }
        }
    }
}
