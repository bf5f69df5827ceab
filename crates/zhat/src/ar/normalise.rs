//! The normaliser of a factor: `log Z_d` of every prefix by a quadrature rule, through the energy network.

use super::base::Base;
use super::config::EnergyForm;
use super::engine::Engine;
use super::forward::{Conditioning, Forward, Pass, confining, factors};
use super::quadrature::Rule;

/// Nodes of normalisers that go through the energy network together.
pub(super) const NODES: usize = 480;

impl Forward {
    /// Turns `log p~(x_d | x_<d)` of every row into the log of a density: less the `log Z_d` of its prefix.
    pub fn normalise(
        &mut self,
        engine: &Engine,
        stage: usize,
        rule: Rule,
        conditioning: &Conditioning,
        pass: &mut Pass,
    ) {
        let mut base = Base::at(&engine.config, stage);
        let (mut nodes, mut x, mut prefixes) = (Vec::new(), Vec::new(), Vec::new());
        let number = pass.head_raw[0].rows();
        let confinement = engine.config.confinement();
        let mut log_z = vec![0.0; number];
        let mut log_w: Vec<f32> = Vec::new();
        for prefix in 0..number {
            base.read(&pass.head_raw, prefix, conditioning.known(engine, prefix, stage));
            nodes.clear();
            base.nodes(rule, &mut nodes);
            for &[at, weight] in &nodes {
                let mut density = match engine.config.energy_form {
                    EnergyForm::Free => base.log_density(at),
                    EnergyForm::Tilted => 0.0,
                };
                if let Some(from) = confinement {
                    density -= confining(from as f32, at);
                }
                x.push(at);
                prefixes.push(prefix);
                log_w.push(weight.max(f32::MIN_POSITIVE).ln() - density);
            }
            if x.len() < NODES && prefix + 1 < number {
                continue;
            }
            let Pass { energy_tape, energy_output, .. } = &mut *pass;
            self.energies(engine, &x, &prefixes, None, energy_tape, energy_output);
            let mut values = vec![0.0; x.len()];
            factors(engine, energy_output, &mut values);
            values.iter_mut().zip(&log_w).for_each(|(value, log_w)| *value += log_w);
            let mut from = 0;
            for of_prefix in prefixes.chunk_by(|a, b| a == b) {
                let values = &values[from..from + of_prefix.len()];
                from += of_prefix.len();
                let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f32 = values.iter().map(|value| (value - largest).exp()).sum();
                log_z[of_prefix[0]] = largest + sum.ln();
            }
            x.clear();
            prefixes.clear();
            log_w.clear();
        }
        for (row, log_p) in pass.log_p.iter_mut().enumerate() {
            *log_p -= log_z[conditioning.prefix_of(row)];
        }
    }
}
