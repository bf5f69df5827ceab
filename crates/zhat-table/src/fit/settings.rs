//! Every setting of a fit with its type and what it does: what `zhat config` lists.

/// A setting as users write it, `section.name=value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What it can be: a type, or the values there are.
    pub kind: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// A configuration is a few structs of several crates, whose doc comments a program cannot read: this is the short form of
/// them, and a test holds it against the configuration.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    setting("seed", "whole number", "Seed of everything random"),
    setting("log-every", "whole number", "Steps from one line of metrics.jsonl to the next"),
    setting("start", "standard, lines", "Where columns start: as standard normals, or on a straight line of those before, if these nearly determine them"),

    setting("data.source", "text", "A file, builtin:NAME, or a directory of `zhat data prepare`"),
    setting("data.standardise", "true, false", "Whether columns are brought to mean 0 and standard deviation 1"),
    setting("data.marginals", "standard, gaussian, halfway, auto", "What the networks see of a column: standard units, normal scores or halfway between"),
    setting("data.dequantise.COLUMN", "number", "Step of the uniform noise that is added to this column"),
    setting("data.find-kinds", "true, false", "Whether it is found out what columns are; if not, all are numbers"),
    setting("data.kinds.COLUMN", "continuous, positive, bounded:0:1, integer, categorical, identifier", "What this column is, where that is not to be found out"),
    setting("data.given", "list of texts", "Columns that are given: the density is of the others given these"),
    setting("data.target", "list of texts", "The columns that the density is of, given all others"),
    setting("data.weight", "text", "The column that says what each row counts, and is not modelled"),
    setting("data.read.format", "csv, npy, parquet", "Format of the file, where its name does not say it"),
    setting("data.read.columns", "list of texts", "Columns to keep, by name or position (3, 3-9); empty for all"),
    setting("data.read.without", "list of texts", "Columns to leave out of those"),
    setting("data.read.delimiter", "character", "What separates the cells of a text file"),
    setting("data.read.header", "detect, yes, no", "Whether the first line of a text file holds the names"),
    setting("data.read.missing", "refuse, drop, keep", "What is done with a row that has a missing cell"),
    setting("data.read.max-rows", "whole number", "Read no more than this many rows"),
    setting("data.split.validation", "number from 0 to 1", "Share of the rows for validation"),
    setting("data.split.test", "number from 0 to 1", "Share of the rows for the test"),
    setting("data.split.order", "random, last", "Which rows go where; last for rows in order of time"),

    setting("model.conditioner", "stagewise, masked", "How the networks see the columns before one"),
    setting("model.energy-form", "free, tilted", "How the energy makes log p~: on its own, or as a tilt of the base"),
    setting("model.tilt-bound", "number", "The largest tilt, in nats"),
    setting("model.confine", "number", "Where a free energy is made to grow, in standard deviations; 0 for nowhere"),
    setting("model.normalisation", "global, local", "One Z for the whole row, or one for every column given those before it"),
    setting("model.head", "mixture, spline, both", "What the base of a column is"),
    setting("model.scales", "softplus, exponential", "How an output of the network becomes the scale of a normal"),
    setting("model.gaussian-mixture", "true, false", "Whether a Gaussian mixture of whole rows stands beside the networks"),
    setting("model.energy.blocks", "whole number", "Residual blocks of the energy network"),
    setting("model.energy.width", "whole number", "Units in each of its layers"),
    setting("model.energy.activation", "relu, tanh, elu", "Its activation"),
    setting("model.proposal.blocks", "whole number", "Residual blocks of the proposal network"),
    setting("model.proposal.width", "whole number", "Units in each of its layers"),
    setting("model.proposal.activation", "relu, tanh, elu", "Its activation"),
    setting("model.members", "whole number", "Proposal networks, each trained by itself: the base is the mean of what they say"),
    setting("model.dropout", "number from 0 to 0.99", "Share of the units dropped inside each block while training"),
    setting("model.energy-dropout", "number from 0 to 0.99", "The same in the energy network, where it differs"),
    setting("model.context", "whole number", "Length of the vector that the proposal network gives to the energy network"),
    setting("model.mixture-components", "whole number", "Components of the mixture of a column"),
    setting("model.spline-bins", "whole number", "Bins of the spline of a column"),
    setting("model.minimum-scale", "number", "What is added to the scales of the mixture"),
    setting("model.waves", "whole number", "Sines and cosines of every number that a masked conditioner sees, an octave each"),
    setting("model.outlier-share", "number", "Share of the mixture that is a wide normal whatever the network says"),

    setting("step.criterion", "ml-is, rnce, smc-rnce, smc-rnce-trajectory, q-only", "What a training step minimises"),
    setting("step.warm-up", "whole number", "First steps, in which the proposal alone is trained"),
    setting("step.num-negatives", "whole number", "Negatives of each row, J"),
    setting("step.num-drawn", "whole number", "Negatives drawn by weight for the gradient of a factor; 0 for all"),
    setting("step.wide-share", "number from 0 to 1", "Share of the negatives that are drawn from far outside too"),
    setting("step.proposal-target", "data, model, { mix = SHARE }", "What the proposal is trained for"),
    setting("step.context-flow", "shared, detached", "Whether the proposal's objective reaches the context"),
    setting("step.resampling", "multinomial, stratified, systematic", "How ancestors are drawn in smc-rnce"),
    setting("step.share-masks", "true, false", "Whether candidates with the same prefix share their dropout mask"),
    setting("step.tile-rows", "whole number", "Rows that go through the networks together: as many as the cache holds"),
    setting("step.lanes", "whole number", "Pieces that a batch is cut into, up to the next power of two; at most as many threads can work"),

    setting("training.num-steps", "whole number", "Number of steps"),
    setting("training.stop-after", "whole number", "End after this many of them, with the learning rates of the whole run"),
    setting("training.batch-size", "whole number", "Rows in a step"),
    setting("training.learning-rate", "number", "Learning rate at the start"),
    setting("training.schedule", "constant, cosine, { linear = END }", "How the learning rate changes"),
    setting("training.hold", "whole number", "First steps, in which it does not change yet"),
    setting("training.optimiser", "sgd, adam, { momentum = SHARE }", "Which optimiser"),
    setting("training.max-gradient-norm", "number", "The gradient is scaled down to at most this norm"),
    setting("training.averaging", "number", "The model is the mean of the parameters over about this share of the steps so far; 0 for the last"),
    setting("training.validation-every", "whole number", "Steps from one validation to the next"),
    setting("training.patience", "whole number", "Stop after so many validations without a better one; 0 for never"),
    setting("training.checkpoint-every", "whole number", "Steps from one checkpoint to the next"),
    setting("training.max-rollbacks", "whole number", "How often a run that diverges goes back before it is given up"),

    setting("validation.rows", "whole number", "Rows of the validation part that are used; 0 for all"),
    setting("validation.particles", "whole number", "Particles behind the log Z of a validation"),
    setting("validation.base", "auto, never", "Whether the proposal is the answer where the model is no better"),
    setting("validation.recalibrate", "true, false", "Whether a base that is the density is made as sure of itself at the end as validation rows say"),
    setting("validation.cross-validate-below", "whole number", "With fewer rows, cross-validation chooses the number of steps; 0 for never"),
    setting("validation.stack-mixtures", "true, false", "Whether Gaussian mixtures stand beside the trained networks, where validation rows are likelier so"),
    setting("validation.mixture-components", "whole number", "Components of each of these mixtures at most"),
    setting("validation.folds", "whole number", "Parts of the rows in a cross-validation"),

    setting("evaluation.particles", "whole number", "Particles of each estimate of log Z at the end"),
    setting("evaluation.estimates", "whole number", "Number of independent estimates"),
    setting("evaluation.resampling", "multinomial, stratified, systematic", "How ancestors are drawn in them"),
];

const fn setting(name: &'static str, kind: &'static str, about: &'static str) -> Setting {
    Setting { name, kind, about }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::FitConfig;

    /// A configuration in which everything that may be absent is there.
    fn full() -> FitConfig {
        let given = [
            "data.dequantise.COLUMN=1.0",
            "data.kinds.COLUMN=integer",
            "data.weight=w",
            "data.read.format=npy",
            "data.read.delimiter=\";\"",
            "data.read.max-rows=5",
            "model.energy-dropout=0.5",
            "training.stop-after=3",
            "training.max-gradient-norm=1.0",
        ];
        given.into_iter().fold(FitConfig::new("x"), |config, setting| {
            config.with_setting(setting).expect("a setting")
        })
    }

    #[test]
    fn every_setting_of_a_configuration_is_described_and_nothing_else() {
        let names: Vec<String> = full().settings().into_iter().map(|(name, _)| name).collect();
        for name in &names {
            let found = SETTINGS.iter().filter(|setting| setting.name == name).count();
            assert_eq!(found, 1, "{name}");
        }
        for setting in SETTINGS {
            assert!(names.iter().any(|name| name == setting.name), "{} is none", setting.name);
        }
    }

    #[test]
    fn every_value_that_is_named_can_be_set() {
        for Setting { name, kind, .. } in SETTINGS {
            for value in kind.split(", ") {
                let value = match value {
                    "whole number" => "5",
                    "number" | "number from 0 to 1" | "number from 0 to 0.99" => "0.5",
                    "character" | "text" => "\"|\"",
                    "list of texts" => "[\"a\"]",
                    "{ mix = SHARE }" => "{ mix = 0.5 }",
                    "{ linear = END }" => "{ linear = 0.5 }",
                    "{ momentum = SHARE }" => "{ momentum = 0.5 }",
                    word => word,
                };
                full().with_setting(&format!("{name}={value}")).expect(name);
            }
            if kind.contains("whole") {
                assert!(full().with_setting(&format!("{name}=0.5")).is_err(), "{name}");
            }
        }
    }
}
