//! The end of a fit: the best model recalibrated, with mixtures beside it, written, and evaluated on the test part.

use std::sync::Arc;
use std::time::Instant;

use zhat::rng::Streams;
use zhat::train::Answer;
use zhat::watch::Watch;

use super::beside::Stacked;
use super::evaluation::{cross_check, work_of_evaluation};
use super::events::FitReport;
use super::folds::CrossValidation;
use super::session::Session;
use super::validation::Validator;
use crate::data::probabilities_in_words;
use crate::density::with_cells;
use crate::error::Result;
use crate::fitted::{Gap, assess_by};
use crate::run::{ModelCard, of_first, read_sealed, save_model, sealed, write_atomically};

impl Session {
    /// Writes the best model, evaluates it on the test part and writes the results.
    pub(super) fn finish(
        &mut self,
        ended: &str,
        started: Instant,
        watch: &Arc<Watch>,
    ) -> Result<FitReport> {
        let (best, progress) = (self.trainer.best_model(), self.trainer.progress());
        let (model, recalibrated) = self.kept_back.recalibrate(best, &self.workers, watch)?;
        let validator = Validator::new(&self.config, &self.data);
        let stacked = match &self.beside {
            Some(beside) => beside.stacked(&model, &validator, &self.workers)?,
            None => None,
        };
        let model = stacked.as_ref().map_or(&model, |stacked| &stacked.model);
        // Steps may have been chosen by hand.
        let chosen = self.workers.is_first() && self.run.cross_validation().is_file();
        let cross_validation: Option<CrossValidation> =
            chosen.then(|| read_sealed(&self.run.cross_validation())).transpose()?;
        let cross_validation = of_first(&self.workers, || Ok(cross_validation))?;
        let answer = match (&progress.best, &cross_validation) {
            (Some(best), _) => best.answer,
            (None, Some(found)) => found.answer,
            (None, None) => Answer::Model,
        };
        let best_step = progress.best.map_or(progress.step, |best| best.step);
        let (validation_log_likelihood, validation_standard_error) = match &cross_validation {
            Some(found) => (found.log_likelihood, found.standard_error),
            None => progress.best.map(|best| (best.log_likelihood, best.standard_error)).unzip(),
        };
        let (validation_log_likelihood, validation_standard_error) = match &stacked {
            Some(Stacked { log_likelihood: [mean, error], .. }) => (Some(*mean), Some(*error)),
            None => (validation_log_likelihood, validation_standard_error),
        };
        let criterion = self.config.step.criterion.name().to_owned();
        let card = ModelCard {
            format: crate::run::FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            model: model.shape.clone(),
            columns: self.data.columns.clone(),
            standardiser: self.data.standardiser.clone(),
            data_hash: self.data.hash.clone(),
            criterion: criterion.clone(),
            density: answer,
            gaussian_mixture: model.known.clone(),
            discrete: self.data.discrete.clone(),
            kinds: self.data.kinds.clone(),
            step: best_step,
        };
        let digest = match self.workers.is_first() {
            true => save_model(&self.run, model, &card)?,
            false => String::new(),
        };
        let settings = &self.config.evaluation;
        let density = validator.density(model, answer, self.workers.clone(), Arc::clone(watch))?;
        let density = &*with_cells(Box::new(density), &card.discrete);
        let cross_check = cross_check(settings);
        watch.begin(work_of_evaluation(density, settings) + self.data.test.len() as u64);
        let test = self.data.test_as_read();
        let streams = Streams::new(self.config.seed).derive("test", 0);
        let weights = self.data.weights.as_ref().map(|[.., test]| &test[..]);
        let assessment =
            assess_by(density, &test, weights, settings, Some(&cross_check), &streams)?;
        let assessment = match &self.data.truth_of_test {
            Some(truth) => assessment.beside_truth(truth),
            None => assessment,
        };
        // Rows that cost nothing say more than the test part, where no sums or integrals are estimated for each of them.
        let likelihood = &assessment.likelihood;
        let is_quick = density.is_normalised() && likelihood.quadrature_error == 0.0;
        let fresh = match is_quick && assessment.gap.is_some() {
            true => Gap::on_fresh_rows(density, &self.config.data.source, &card.kinds, &streams)?,
            false => None,
        };
        let planned_steps = self.config.training.num_steps;
        let mut notes = Vec::new();
        notes.extend(self.data.given_in_words());
        let modelled = &self.data.columns[self.data.given..];
        notes.extend(probabilities_in_words(&self.data.kinds, modelled));
        notes.extend(cross_validation.as_ref().map(CrossValidation::sentence));
        notes.extend(recalibrated);
        notes.extend(stacked.as_ref().map(Stacked::sentence));
        notes.extend(unfinished(ended, progress.step, self.config.training.last_step()));
        notes.extend((answer == Answer::Proposal).then(|| PROPOSAL_ANSWERS.into()));
        let report = FitReport {
            version: card.version,
            source: self.config.data.source.clone(),
            columns: card.columns,
            criterion,
            rows: self.data.rows,
            steps: progress.step,
            planned_steps,
            best_step,
            validation_log_likelihood,
            validation_standard_error,
            density: answer,
            cross_validation,
            ended: ended.into(),
            notes,
            test: assessment.likelihood,
            goodness: assessment.goodness,
            verdict: assessment.verdict,
            truth: assessment.truth,
            gap: fresh.or(assessment.gap),
            seconds: started.elapsed().as_secs_f64(),
        };
        if self.workers.is_first() {
            write_atomically(&self.run.results(), &sealed(&report, &[("model_sha256", &digest)]))?;
        }
        Ok(report)
    }
}

const PROPOSAL_ANSWERS: &str = "On rows that were kept back the model was not ahead of its own proposal by more than one \
     standard error, so the density is the proposal: scores, draws and the likelihood are the proposal's.";

/// Says that the schedule was cut short, where it was.
fn unfinished(ended: &str, steps: u64, last: u64) -> Option<String> {
    let (because, advice) = match ended {
        "max-time" => ("the time was up", "; with `time` the schedule is fitted to the time"),
        "time" => (
            "the machine became slower than it was when the steps were planned, and the time was up",
            "",
        ),
        _ => return None,
    };
    Some(format!(
        "Training is not finished: it ended after {steps} of {last} steps because {because}. The learning rate had not come \
         down to its end, so a whole schedule would do better. Resume the run to finish it{advice}."
    ))
}
