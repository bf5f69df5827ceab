//! Evaluation with the networks on a device: what is between them, bases, draws, weights and integrals, stays on the CPU.
//!
//! So an evaluation draws what it would draw without a device, up to rounding, and every verb works; it waits for the device at
//! every pass of a network. Where the proposal is the model, whole rows are scored there altogether.

use std::fmt;

use burn::nn::Linear;
use burn::tensor::Device;

use super::base::upload;
use super::local::{Layout, Local};
use crate::ar::config::Activation;
use crate::ar::engine::values;
use crate::ar::kind::FeatureKind;
use crate::ar::model::ArEbm;
use crate::ar::network::{ResidualBlock, ResidualNet, bias_of, constant_linear};
use crate::ar::panels::Panels;

/// Rows that are scored together.
const ROWS: usize = 4096;

/// A model on a device, without autodiff.
pub struct OnDevice {
    model: ArEbm,
    layout: Layout,
}

impl OnDevice {
    /// A copy of a model, wherever it is.
    pub fn new(model: &ArEbm, device: &Device) -> Self {
        let model = ArEbm {
            proposal: copied(&model.proposal, device),
            energy: copied(&model.energy, device),
            others: model.others.iter().map(|net| copied(net, device)).collect(),
            shape: model.shape.clone(),
            known: model.known.clone(),
        };
        Self { layout: Layout::new(&model.shape, device), model }
    }

    /// The blocks of the proposal network of every member, and those of the energy network.
    pub fn trunks(&self) -> (Vec<DeviceTrunk>, DeviceTrunk) {
        let ArEbm { energy, shape, .. } = &self.model;
        let trunk = |net: &ResidualNet, activation| DeviceTrunk {
            net: net.clone(),
            activation,
            device: self.layout.device().clone(),
        };
        let members = self.model.members();
        let members = members.map(|net| trunk(net, shape.proposal.activation)).collect();
        (members, trunk(energy, shape.energy.activation))
    }

    /// Whether [`log_q`](Self::log_q) is what a row is scored by: a number in cells has a mass instead of a density.
    pub fn has_log_q(&self) -> bool {
        !self.model.shape.kinds.iter().any(FeatureKind::is_cells)
    }

    /// `log q(x)` of every row.
    ///
    /// # Shapes
    /// - `x`: `[n, features]`, row-major
    pub fn log_q(&self, x: &[f32]) -> Vec<f64> {
        let rows = x.chunks(ROWS * self.model.shape.features);
        let scores = rows.map(|rows| Local::new(&self.layout, &self.model, rows).log_q());
        scores.flat_map(|scores| scores.into_data().iter::<f64>().collect::<Vec<f64>>()).collect()
    }
}

impl fmt::Debug for OnDevice {
    /// Without the parameters, which would be read back.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("OnDevice").field(self.layout.device()).finish()
    }
}

/// The residual blocks of a network on a device.
#[derive(Clone)]
pub struct DeviceTrunk {
    net: ResidualNet,
    activation: Activation,
    device: Device,
}

impl DeviceTrunk {
    /// What the blocks and the activation after them make of rows.
    ///
    /// # Shapes
    /// - `h`, output: `[rows, width]`
    pub fn evaluate(&self, h: &Panels) -> Panels {
        let (rows, width) = (h.rows(), h.columns());
        let input = upload(h.to_rows(), [rows, width], &self.device);
        let output = self.net.trunk(input, self.activation, None, None).into_data();
        let output: Vec<f32> = output.iter::<f32>().collect();
        Panels::from_rows(&output, width, rows, width)
    }
}

impl fmt::Debug for DeviceTrunk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("DeviceTrunk").field(&self.device).finish()
    }
}

fn copied(net: &ResidualNet, device: &Device) -> ResidualNet {
    let layer =
        |linear: &Linear| constant_linear(values(&linear.weight), values(bias_of(linear)), device);
    let block = |block: &ResidualBlock| ResidualBlock {
        first: layer(&block.first),
        second: layer(&block.second),
    };
    ResidualNet {
        first: layer(&net.first),
        blocks: net.blocks.iter().map(block).collect(),
        last: layer(&net.last),
    }
}
