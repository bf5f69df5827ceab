//! The base `q(x_d | x_<d)` of one row: the mean of what the heads of all members say.
//!
//! Members are networks of one shape that differ in where they started. Each is trained by itself, so each is wrong in its own way
//! where the rows say little, and the mean of their densities is better than any of them.

use super::cells::Node;
use super::config::ArEbmConfig;
use super::head::{Head, Known};
use super::panels::{Panels, STRIP};
use super::quadrature::Rule;
use crate::rng::Stream;
use crate::simd;

/// The heads of one row, each in the same share.
#[derive(Debug, Clone)]
pub struct Base {
    heads: Vec<Head>,
    /// Raw outputs of each.
    outputs: usize,
    raw: Vec<f32>,
}

impl Base {
    /// Room for the base of a feature.
    pub fn at(config: &ArEbmConfig, stage: usize) -> Self {
        let outputs = config.head_outputs(stage);
        Self {
            heads: vec![Head::at(config, stage); config.members],
            outputs,
            raw: vec![0.0; outputs.next_multiple_of(STRIP)],
        }
    }

    /// Takes in the raw outputs of one row, one matrix for each member, and the mixture that is known of it.
    pub fn read(&mut self, raw: &[Panels], row: usize, known: Option<Known>) {
        self.heads[1..].iter_mut().for_each(Head::forget_known);
        for (member, raw) in raw.iter().enumerate().take(self.heads.len()) {
            raw.read_row(row, &mut self.raw);
            self.heads[member].set(&self.raw, known.filter(|_| member == 0));
        }
        self.share_known();
    }

    /// Takes in the raw outputs of all members, one after the other.
    pub fn set(&mut self, raw: &[f32], known: Option<Known>) {
        self.heads[1..].iter_mut().for_each(Head::forget_known);
        let raw = raw.chunks_exact(self.outputs.max(1));
        for (member, (head, raw)) in self.heads.iter_mut().zip(raw).enumerate() {
            head.set(raw, known.filter(|_| member == 0));
        }
        self.share_known();
    }

    /// What is known is the same for all members, and made ready once.
    fn share_known(&mut self) {
        if let Some((first, others)) = self.heads.split_first_mut() {
            others.iter_mut().for_each(|head| head.share_known(first));
        }
    }

    /// `log q(x)`: of a class its log-probability, and of an atom.
    pub fn log_density(&self, x: f32) -> f32 {
        match &self.heads[..] {
            [head] => head.log_density(x),
            heads => {
                let (mut largest, mut sum) = (f32::NEG_INFINITY, 0.0);
                let log_known = heads[0].log_known(x);
                for head in heads {
                    let log_q = head.log_density_with(x, log_known);
                    if log_q == f32::NEG_INFINITY {
                        // So far out that it has no density at all.
                        continue;
                    }
                    if log_q > largest {
                        sum = sum * simd::exp::<false>(largest - log_q) + 1.0;
                        largest = log_q;
                    } else {
                        sum += simd::exp::<false>(log_q - largest);
                    }
                }
                largest + (sum / heads.len() as f32).ln()
            }
        }
    }

    /// A draw: of a member by chance, where there are several.
    pub fn sample(&self, rng: &mut Stream) -> f32 {
        let member = match self.heads.len() {
            1 => 0,
            number => rng.index(number),
        };
        self.heads[member].sample(rng)
    }

    /// Adds `coefficient` times the gradient of each member's own `log q(x)` with respect to its raw outputs.
    ///
    /// It is not that of the mean's: a member that is left the rows which the others cannot explain is no member but a part of a
    /// larger network, which learns rows by heart like any other.
    pub fn add_gradients<'a>(
        &self,
        x: f32,
        coefficient: f32,
        gradients: impl Iterator<Item = &'a mut [f32]>,
    ) {
        for (head, gradient) in self.heads.iter().zip(gradients) {
            head.add_gradient(x, coefficient, gradient);
        }
    }

    /// Points and weights such that `sum w f(x)` is about `E_q[f]`, for an `f` as smooth as a tilt.
    pub fn nodes(&self, rule: Rule, out: &mut Vec<[f32; 2]>) {
        let (first, share) = (out.len(), self.share());
        self.heads.iter().for_each(|head| head.nodes(rule, out));
        out[first..].iter_mut().for_each(|[_, weight]| *weight *= share);
    }

    /// The same on both sides of a value, each part by itself: for the distribution function of what is made of the base.
    pub(super) fn nodes_around(&self, x: f32, out: &mut Vec<Node>) {
        let (first, share) = (out.len(), self.share());
        self.heads.iter().for_each(|head| head.nodes_around(x, out));
        out[first..].iter_mut().for_each(|node| node.weight *= share);
    }

    /// Points and log-weights such that `sum e^w f(x)` is about the integral of `q f` between two ends.
    pub fn nodes_within(&self, ends: [f32; 2], rule: Rule, out: &mut Vec<[f32; 2]>) {
        out.clear();
        self.heads.iter().for_each(|head| head.add_nodes_within(ends, rule, out));
        let log_share = self.share().ln();
        out.iter_mut().for_each(|[_, log_weight]| *log_weight += log_share);
    }

    fn share(&self) -> f32 {
        1.0 / self.heads.len() as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ar::{Conditioner, HeadForm};
    use crate::rng::Streams;

    fn config(members: usize) -> ArEbmConfig {
        ArEbmConfig {
            members,
            conditioner: Conditioner::Masked,
            head: HeadForm::Both,
            outlier_share: 0.05,
            ..ArEbmConfig::new(2)
        }
    }

    fn raw(config: &ArEbmConfig) -> Vec<f32> {
        let mut rng = Streams::new(7).stream("test", 0, 0);
        (0..config.members * config.head_outputs(0)).map(|_| rng.normal() as f32).collect()
    }

    #[test]
    fn the_density_is_the_mean_of_the_members_and_draws_and_nodes_follow_it() {
        let config = config(3);
        let raw = raw(&config);
        let mut base = Base::at(&config, 0);
        base.set(&raw, None);
        let heads: Vec<Head> = raw
            .chunks_exact(config.head_outputs(0))
            .map(|raw| {
                let mut head = Head::at(&config, 0);
                head.set(raw, None);
                head
            })
            .collect();
        let f = |x: f64| (0.7 * x).tanh();
        let (mut total, mut mean, mut square, mut below) = (0.0, 0.0, 0.0, 0.0);
        for i in -60_000..60_000 {
            let x = 5e-4 * (f64::from(i) + 0.5);
            let log_q = f64::from(base.log_density(x as f32));
            let members = heads.iter().map(|head| f64::from(head.log_density(x as f32)).exp());
            let expected = members.sum::<f64>() / 3.0;
            assert!((log_q.exp() - expected).abs() < 1e-4 * (1e-3 + expected), "{x}");
            let mass = 5e-4 * log_q.exp();
            total += mass;
            mean += mass * f(x);
            square += mass * f(x).powi(2);
            below += if x < 0.4 { mass } else { 0.0 };
        }
        assert!((total - 1.0).abs() < 2e-3, "{total}");
        let mut nodes = Vec::new();
        base.nodes(Rule::Fine, &mut nodes);
        let integral: f64 = nodes.iter().map(|&[x, w]| f64::from(w) * f(f64::from(x))).sum();
        assert!((integral - mean).abs() < 2e-3, "{integral} {mean}");
        let mut around = Vec::new();
        base.nodes_around(0.4, &mut around);
        let share: f64 = around.iter().filter(|n| n.below).map(|n| f64::from(n.weight)).sum();
        assert!((share - below).abs() < 2e-3, "{share} {below}");
        base.nodes_within([f32::NEG_INFINITY, 0.4], Rule::Fine, &mut nodes);
        let mass: f64 = nodes.iter().map(|node| f64::from(node[1]).exp()).sum();
        assert!((mass - below).abs() < 2e-3, "{mass} {below}");
        let (mut rng, number) = (Streams::new(4).stream("test", 0, 0), 40_000);
        let drawn: f64 = (0..number).map(|_| f(f64::from(base.sample(&mut rng)))).sum();
        // 4 standard errors: one false alarm in 16,000, and the seed is fixed.
        let error = 4.0 * ((square - mean * mean) / f64::from(number)).sqrt();
        assert!((drawn / f64::from(number) - mean).abs() < error + 2e-3);
    }

    #[test]
    fn what_is_impossible_for_all_members_is_impossible_and_no_error() {
        let config = ArEbmConfig { head: HeadForm::Mixture, outlier_share: 0.0, ..config(2) };
        let mut base = Base::at(&config, 0);
        base.set(&raw(&config), None);
        assert_eq!(base.log_density(1e30), f32::NEG_INFINITY);
        assert!(base.log_density(1e6) < -1e9);
    }

    #[test]
    fn each_member_has_the_gradient_of_its_own_density() {
        let config = config(2);
        let (raw, outputs) = (raw(&config), config.head_outputs(0));
        let mut base = Base::at(&config, 0);
        base.set(&raw, None);
        let mut gradient = vec![0.0; raw.len()];
        base.add_gradients(0.3, 2.0, gradient.chunks_exact_mut(outputs));
        for (raw, gradient) in raw.chunks_exact(outputs).zip(gradient.chunks_exact(outputs)) {
            let (mut head, mut alone) = (Head::at(&config, 0), vec![0.0; outputs]);
            head.set(raw, None);
            head.add_gradient(0.3, 2.0, &mut alone);
            assert_eq!(alone, gradient);
        }
    }
}
