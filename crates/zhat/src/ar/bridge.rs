//! Bridge sampling for the autoregressive EBM, as a second opinion on the `log Z` of SMC.

use super::criterion::ArStepConfig;
use super::evaluate::Evaluator;
use crate::criterion::Method;
use crate::error::Result;
use crate::evaluate::bridge_sampling;
use crate::rng::Streams;
use crate::smc::{ResampleWhen, Resampling, SmcConfig};

/// Candidates of the move that makes draws of the model distinct.
const CANDIDATES: usize = 20;

impl Evaluator {
    /// `log Z-hat` by the bridge between the proposal and the model; `repeat` numbers independent runs of a seed.
    ///
    /// The draws of the model are particles of SMC, moved by one transition of conditional SMC, which leaves the model
    /// invariant and makes copies differ. There is one of them for every twenty draws of the proposal: each part costs
    /// as much as SMC.
    pub fn bridge(&self, particles: usize, streams: &Streams, repeat: u64) -> Result<f64> {
        let smc = SmcConfig::new(particles)?.with_resampling(Resampling::Systematic);
        let never = ResampleWhen::EffectiveSampleSizeBelow(0.0);
        let streams = streams.derive("ar-bridge", repeat);
        let proposal = self.smc(&smc.clone().with_resample_when(never), &streams, 0)?;
        let cloud = self.smc(&smc, &streams, 1)?;
        let number = (particles / CANDIDATES).max(1);
        let draws = cloud.sample(number, &mut streams.stream("draws", 0, 0));
        let settings =
            ArStepConfig { num_negatives: CANDIDATES - 1, ..ArStepConfig::new(Method::SmcRnce) };
        let moved = self.transition(&settings, &draws, &streams, 0)?;
        let moved = self.score_with(&moved, self.defence());
        let log_w: Vec<f64> =
            moved.log_p_tilde.iter().zip(&moved.log_q).map(|(p, q)| p - q).collect();
        Ok(bridge_sampling(&proposal.log_weights(), &log_w))
    }
}
