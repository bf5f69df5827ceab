//! Draws of a feature from a tilted base, by rejection.

use super::base::Base;
use super::engine::Engine;
use super::forward::{Conditioning, Forward, Pass, factors};
use super::normalise::NODES;
use super::quadrature::Rule;
use crate::rng::Stream;

/// Draws of the base that are tried at a time for each row.
const TRIES: usize = 4;
/// What a tilt may be above its largest value at the nodes of the base, in nats.
const MARGIN: f32 = 0.3;

impl Forward {
    /// Draws the next feature of every row from a tilted base, or from the base alone, by rejection.
    ///
    /// A draw of the base is kept with probability `exp(tilt - bound)`. The tilt is never above `c`, but a constant in it is free, so
    /// that bound would keep one draw in thousands. The bound is the largest tilt at the nodes of the base and a little more, which a
    /// smooth tilt does not exceed between them; where a draw does, it is raised (an empirical supremum: Caffo, Booth and Davis, 2002).
    pub fn draw_by_rejection(
        &mut self,
        engine: &Engine,
        stage: usize,
        tilted: bool,
        rng: &mut Stream,
        conditioning: &Conditioning,
        pass: &mut Pass,
    ) {
        let bases: Vec<Base> = (0..pass.head_raw[0].rows())
            .map(|prefix| {
                let mut base = Base::at(&engine.config, stage);
                base.read(&pass.head_raw, prefix, conditioning.known(engine, prefix, stage));
                base
            })
            .collect();
        let rows = self.num_rows();
        let mut waiting: Vec<usize> = (0..rows).collect();
        let mut bounds = match tilted {
            true => self.largest_tilts(engine, &bases, pass),
            false => vec![0.0; bases.len()],
        };
        while !waiting.is_empty() {
            // Several at a time, so that the network has work; the first that is kept is taken.
            let tries = if tilted { TRIES } else { 1 };
            let (mut x, mut prefixes) = (Vec::new(), Vec::new());
            for &row in &waiting {
                let prefix = conditioning.prefix_of(row);
                x.extend((0..tries).map(|_| bases[prefix].sample(rng)));
                prefixes.extend((0..tries).map(|_| prefix));
            }
            let mut tilts_of = vec![0.0; x.len()];
            if tilted {
                let Pass { energy_tape, energy_output, .. } = &mut *pass;
                self.energies(engine, &x, &prefixes, None, energy_tape, energy_output);
                factors(engine, energy_output, &mut tilts_of);
                for (&tilt, &prefix) in tilts_of.iter().zip(&prefixes) {
                    bounds[prefix] = bounds[prefix].max(tilt);
                }
            }
            let mut left = Vec::new();
            for (at, &row) in waiting.iter().enumerate() {
                let bound = bounds[conditioning.prefix_of(row)];
                let kept = (at * tries..(at + 1) * tries)
                    .find(|&try_| rng.uniform() < f64::from(tilts_of[try_] - bound).exp());
                match kept {
                    Some(kept) => self.rows[row * self.features + stage] = x[kept],
                    None => left.push(row),
                }
            }
            waiting = left;
        }
        pass.x.clear();
        pass.x.extend(self.rows.iter().skip(stage).step_by(self.features));
    }

    /// The largest tilt of every prefix at the nodes of its base, and a little more.
    fn largest_tilts(&mut self, engine: &Engine, bases: &[Base], pass: &mut Pass) -> Vec<f32> {
        let (mut x, mut prefixes, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        let mut largest = vec![f32::NEG_INFINITY; bases.len()];
        for (prefix, base) in bases.iter().enumerate() {
            nodes.clear();
            base.nodes(Rule::Coarse, &mut nodes);
            x.extend(nodes.iter().map(|node| node[0]));
            prefixes.extend(nodes.iter().map(|_| prefix));
            if x.len() < NODES && prefix + 1 < bases.len() {
                continue;
            }
            let Pass { energy_tape, energy_output, .. } = &mut *pass;
            self.energies(engine, &x, &prefixes, None, energy_tape, energy_output);
            let mut tilts_of = vec![0.0; x.len()];
            factors(engine, energy_output, &mut tilts_of);
            for (&prefix, &tilt) in prefixes.iter().zip(&tilts_of) {
                largest[prefix] = largest[prefix].max(tilt);
            }
            x.clear();
            prefixes.clear();
        }
        let bound = engine.config.tilt_bound as f32;
        largest.into_iter().map(|tilt| (tilt + MARGIN).min(bound)).collect()
    }
}
