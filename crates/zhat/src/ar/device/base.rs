//! Bases `q(x_d | x_<d)` of many rows as tensors: log-densities and draws of numbers, without a read.
//!
//! All that is normal, of the learnt mixture, of outliers and of the mixture that is known, is one list of components with their
//! shares in their weights. An atom is one more, of no scale.

use burn::tensor::activation::{log_softmax, softplus};
use burn::tensor::{Device, Tensor, TensorData};

use super::spline::Splines;
use crate::ar::config::{ArEbmConfig, ScaleForm};
use crate::ar::defence::{Defence, RANGE};
use crate::ar::mixture::OUTLIER_SCALE;
use crate::model::log_sum_exp;

/// What the network says about the next feature of every row, which is a number.
#[derive(Clone)]
pub struct Base {
    /// Log-weights, means and scales of all normals, `[rows, components]`; a spline may be alone.
    normals: Option<[Tensor<2>; 3]>,
    /// Log of the share of the spline, `[rows, 1]`, and its raw outputs.
    spline: Option<(Tensor<2>, Tensor<2>)>,
    bins: usize,
    /// Log-probabilities and values of atoms, `[rows, atoms]`, and the log-probability of elsewhere, `[rows, 1]`.
    atoms: Option<[Tensor<2>; 3]>,
}

impl Base {
    /// From raw outputs of the networks, and the conditionals of a mixture that is known.
    ///
    /// # Shapes
    /// - `raw`: `[rows, outputs of a number]`
    /// - `known`: log-weights, means and scales, each `[rows, components]`
    pub fn new(shape: &ArEbmConfig, raw: Tensor<2>, known: Option<&[Tensor<2>; 3]>) -> Self {
        let [mixture, spline, shares] = shape.head_parts();
        let (rows, device) = (raw.dims()[0], raw.device().inner());
        let mut log_shares = (shares > 0).then(|| {
            let logits = raw.clone().narrow(1, mixture + spline, shares);
            (0..shares)
                .map(|part| log_softmax(logits.clone(), 1).narrow(1, part, 1))
                .rev()
                .collect()
        });
        let mut next_share = || -> Option<Tensor<2>> {
            log_shares.as_mut().map(|shares: &mut Vec<Tensor<2>>| shares.pop().expect("a share"))
        };
        let mut parts: [Vec<Tensor<2>>; 3] = Default::default();
        if mixture > 0 {
            let share = next_share();
            let learnt = learnt(shape, &raw.clone().narrow(1, 0, mixture), rows, &device);
            add(&mut parts, learnt, share);
        }
        let spline = (spline > 0).then(|| {
            let log_share = next_share().unwrap_or_else(|| Tensor::zeros([rows, 1], &device));
            (log_share, raw.narrow(1, mixture, spline))
        });
        if let Some(known) = known {
            add(&mut parts, known.clone(), next_share());
        }
        let normals =
            (!parts[0].is_empty()).then(|| parts.map(|part: Vec<Tensor<2>>| Tensor::cat(part, 1)));
        Self { normals, spline, bins: shape.spline_bins, atoms: None }
    }

    /// With values that come again and again: `draw` gives them too.
    ///
    /// # Shapes
    /// - `log_probabilities`, `values`: `[rows, atoms]`; a row with fewer has some of no probability
    /// - `log_elsewhere`: `[rows, 1]`
    pub fn with_atoms(
        self,
        log_probabilities: Tensor<2>,
        values: Tensor<2>,
        log_elsewhere: Tensor<2>,
    ) -> Self {
        Self { atoms: Some([log_probabilities, values, log_elsewhere]), ..self }
    }

    /// The same away from any graph.
    pub fn inner(self) -> Self {
        Self {
            normals: self.normals.map(|normals| normals.map(Tensor::inner)),
            spline: self.spline.map(|(share, raw)| (share.inner(), raw.inner())),
            atoms: self.atoms.map(|atoms| atoms.map(Tensor::inner)),
            ..self
        }
    }

    /// `log q(x)` of several values for each row; atoms do not count.
    ///
    /// # Shapes
    /// - `x`: `[rows, values]`
    /// - output: `[rows, values]`
    pub fn log_density(&self, x: Tensor<2>) -> Tensor<2> {
        let [rows, values] = x.dims();
        let mut terms = Vec::new();
        if let Some([log_weights, means, scales]) = &self.normals {
            let components = means.dims()[1];
            let across = |part: &Tensor<2>| -> Tensor<3> { part.clone().unsqueeze_dim(1) };
            let heights = across(&(log_weights.clone() - scales.clone().log()));
            let z = (x.clone().unsqueeze_dim(2) - across(means)) / across(scales);
            let normals = heights - z.square() * 0.5 - 0.5 * (2.0 * std::f64::consts::PI).ln();
            terms.push(normals.reshape([rows * values, components]));
        }
        if let Some((log_share, raw)) = &self.spline {
            let splines = Splines::new(repeat(raw, values), self.bins);
            let log_q = splines.log_density(x.reshape([rows * values, 1]));
            terms.push(log_q + repeat(log_share, values));
        }
        log_sum_exp(Tensor::cat(terms, 1)).reshape([rows, values])
    }

    /// Draws: a component by a uniform, then a normal.
    ///
    /// # Shapes
    /// - `uniforms`, `normals`, output: `[rows, draws]`
    pub fn draw(&self, uniforms: &Tensor<2>, normals: &Tensor<2>) -> Tensor<2> {
        let [rows, draws] = uniforms.dims();
        let device = uniforms.device();
        let zeros = |columns: usize| -> Tensor<2> { Tensor::zeros([rows, columns], &device) };
        // The last is one of the normals, where there are any: what rounding leaves over is theirs.
        let (mut weights, mut centres, mut spreads) = (Vec::new(), Vec::new(), Vec::new());
        if let Some((log_share, _)) = &self.spline {
            weights.push(log_share.clone().exp());
            centres.push(zeros(1));
            spreads.push(zeros(1));
        }
        if let Some([log_weights, means, scales]) = &self.normals {
            weights.push(log_weights.clone().exp());
            centres.push(means.clone());
            spreads.push(scales.clone());
        }
        let mut before = 0;
        if let Some([log_probabilities, values, log_elsewhere]) = &self.atoms {
            before = values.dims()[1];
            let elsewhere = log_elsewhere.clone().exp();
            weights.iter_mut().for_each(|part| *part = part.clone() * elsewhere.clone());
            weights.insert(0, log_probabilities.clone().exp());
            centres.insert(0, values.clone());
            spreads.insert(0, zeros(before));
        }
        let weights = Tensor::cat(weights, 1);
        let components = weights.dims()[1];
        let cumulative: Tensor<3> = weights.cumsum(1).unsqueeze_dim(1);
        let passed = cumulative
            .expand([rows, draws, components])
            .lower_equal(uniforms.clone().unsqueeze_dim::<3>(2).expand([rows, draws, components]));
        let component = passed.int().sum_dim(2).clamp_max(components as i64 - 1);
        let component = component.reshape([rows, draws]);
        let pick = |parts: Vec<Tensor<2>>| Tensor::cat(parts, 1).gather(1, component.clone());
        let drawn = pick(centres) + pick(spreads) * normals.clone();
        match &self.spline {
            None => drawn,
            Some((_, raw)) => {
                let splines = Splines::new(repeat(raw, draws), self.bins);
                let quantiles = splines.quantile(normals.clone().reshape([rows * draws, 1]));
                let is_spline = component.equal_elem(before as i64);
                drawn.mask_where(is_spline, quantiles.reshape([rows, draws]))
            }
        }
    }
}

/// Draws of which some are uniform instead, as the defensive part says.
///
/// # Shapes
/// - all: `[rows, draws]`; of the uniforms the first say which, and the others where
pub fn defended(defence: Defence, drawn: Tensor<2>, uniforms: [Tensor<2>; 2]) -> Tensor<2> {
    let [which, place] = uniforms;
    let wide = (place * 2.0 - 1.0) * RANGE;
    drawn.mask_where(which.lower_elem(defence.share()), wide)
}

/// The log-density that such draws have, given `log q`.
pub fn log_draw(defence: Defence, log_q: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    if defence.is_none() {
        return log_q;
    }
    let own = log_q + (1.0 - defence.share()).ln();
    let wide = (defence.share() / (2.0 * RANGE)).ln();
    let largest = own.clone().clamp_min(wide);
    let both = ((own.clone() - largest.clone()).exp() + (largest.clone().neg() + wide).exp()).log()
        + largest;
    let beyond = x.abs().greater_elem(RANGE);
    both.mask_where(beyond, own)
}

/// The mixture of the network, with its outliers.
fn learnt(shape: &ArEbmConfig, raw: &Tensor<2>, rows: usize, device: &Device) -> [Tensor<2>; 3] {
    let m = shape.mixture_components;
    let part = |index: usize| raw.clone().narrow(1, index * m, m);
    let scales = match shape.scales {
        ScaleForm::Softplus => softplus(part(2), 1.0),
        ScaleForm::Exponential => part(2).exp(),
    } + shape.minimum_scale;
    let normals = [log_softmax(part(0), 1), part(1), scales];
    let share = shape.outlier_share;
    if share == 0.0 {
        return normals;
    }
    let [log_weights, means, scales] = normals;
    let one = |value: f64| -> Tensor<2> { Tensor::full([rows, 1], value, device) };
    [
        Tensor::cat(vec![log_weights + (-share).ln_1p(), one(share.ln())], 1),
        Tensor::cat(vec![means, one(0.0)], 1),
        Tensor::cat(vec![scales, one(f64::from(OUTLIER_SCALE))], 1),
    ]
}

fn add(parts: &mut [Vec<Tensor<2>>; 3], own: [Tensor<2>; 3], log_share: Option<Tensor<2>>) {
    let [log_weights, means, scales] = own;
    let log_weights = match log_share {
        Some(log_share) => log_weights + log_share,
        None => log_weights,
    };
    parts.iter_mut().zip([log_weights, means, scales]).for_each(|(parts, own)| parts.push(own));
}

/// Every row several times, one after the other.
pub fn repeat(rows: &Tensor<2>, times: usize) -> Tensor<2> {
    let [number, columns] = rows.dims();
    if times == 1 {
        return rows.clone();
    }
    let repeated: Tensor<3> = rows.clone().unsqueeze_dim(1);
    repeated.expand([number, times, columns]).reshape([number * times, columns])
}

/// Numbers on a device; nobody waits for it.
pub fn upload<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}
