//! The residual blocks of a network, forward and backward by hand, on panels.
//!
//! A block is `h + W_b drop(act(W_a act(h) + b_a)) + b_b`. Each panel of a product is activated, dropped or added while
//! it is still in the first-level cache; what the backward pass needs is kept in a [`Tape`].

use super::config::Activation;
use super::device::DeviceTrunk;
use super::dropout::{Dropout, Masks};
use super::elementwise;
use super::masked::Reach;
use super::panels::{Panels, STRIP, padded, strip};
use super::products::Start;

/// A linear layer, ready for products in both directions.
#[derive(Debug, Clone)]
pub struct Layer {
    /// `[inputs, outputs]`
    pub weight: Panels,
    /// `[outputs, inputs]`; empty where no backward pass is wanted.
    pub transposed: Panels,
    /// One value for each output, padded.
    pub bias: Vec<f32>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LayerGradient {
    /// `[inputs, outputs]`
    pub weight: Panels,
    /// One value for each output, padded.
    pub bias: Vec<f32>,
}

impl Layer {
    pub fn zeros(inputs: usize, outputs: usize) -> Self {
        Self {
            weight: Panels::zeros(inputs, outputs),
            transposed: Panels::zeros(outputs, inputs),
            bias: padded(&vec![0.0; outputs]),
        }
    }

    /// Takes a weight matrix `[inputs, outputs]` in row-major order, with `stride` values from row to row, and a bias.
    pub fn read(&mut self, weight: &[f32], stride: usize, bias: &[f32]) {
        self.weight.read_rows(weight, stride);
        self.transposed.read_transposed(&self.weight);
        let outputs = self.weight.columns();
        self.bias[..outputs].copy_from_slice(&bias[..outputs]);
    }

    pub fn zero_gradient(&self) -> LayerGradient {
        LayerGradient {
            weight: Panels::zeros(self.weight.rows(), self.weight.columns()),
            bias: vec![0.0; self.bias.len()],
        }
    }

    /// `out = input * weight + bias`.
    ///
    /// # Shapes
    /// - `input`: `[rows, >= inputs]`, `out`: `[rows, outputs]`
    pub fn forward(&self, input: &Panels, out: &mut Panels) {
        out.reshape(input.rows(), self.weight.columns());
        out.set_product(input, &self.weight, self.weight.rows(), Some(&self.bias));
    }

    /// `out += input * weight + bias`.
    pub fn add_forward(&self, input: &Panels, out: &mut Panels) {
        for panel in 0..self.weight.num_panels() {
            let (start, out) = (Start::Add(strip(&self.bias, panel)), out.panel_mut(panel));
            input.multiply_panel(&self.weight, 0..self.weight.rows(), panel, start, out);
        }
    }

    /// `out = gradient * weight^T`.
    ///
    /// # Shapes
    /// - `gradient`: `[rows, outputs]`, `out`: `[rows, inputs]`
    pub fn backward(&self, gradient: &Panels, out: &mut Panels) {
        out.reshape(gradient.rows(), self.transposed.columns());
        out.set_product(gradient, &self.transposed, self.transposed.rows(), None);
    }

    /// `out += gradient * weight^T`, where `out` may have more columns than this layer has inputs.
    pub fn add_backward(&self, gradient: &Panels, out: &mut Panels) {
        let transposed = &self.transposed;
        for panel in 0..transposed.num_panels() {
            let (start, out) = (Start::Add(&[0.0; STRIP]), out.panel_mut(panel));
            gradient.multiply_panel(transposed, 0..transposed.rows(), panel, start, out);
        }
    }
}

impl LayerGradient {
    /// Adds `input^T * gradient` to the weight's gradient, and the column sums of `gradient` to the bias's.
    pub fn add(&mut self, input: &Panels, gradient: &Panels) {
        self.weight.add_transposed_product(input, self.weight.rows(), gradient);
        add_column_sums(gradient, &mut self.bias);
    }
}

/// Adds the column sums of a matrix to `sums`.
pub fn add_column_sums(values: &Panels, sums: &mut [f32]) {
    for (panel, sums) in sums.chunks_exact_mut(STRIP).enumerate() {
        elementwise::add_column_sums(values.panel(panel), sums);
    }
}

/// Residual blocks of one width.
#[derive(Debug, Clone)]
pub struct Trunk {
    /// Before each layer and after the last block.
    pub activation: Activation,
    /// The two layers of each block.
    pub blocks: Vec<[Layer; 2]>,
    /// Which units see which, in every layer.
    pub reach: Reach,
    /// The same blocks on a device, where evaluations run there.
    pub device: Option<DeviceTrunk>,
}

/// What a forward pass leaves for the backward pass.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    /// `act(h)` before each block, and after the last.
    activations: Vec<Panels>,
    /// `drop(act(.))` inside each block.
    hidden: Vec<Panels>,
    dropout: Option<Dropout>,
}

impl Tape {
    /// Takes over some rows of another tape.
    pub fn gather(&mut self, from: &Tape, rows: &[usize]) {
        let gather = |to: &mut Vec<Panels>, from: &[Panels]| {
            to.resize_with(from.len(), Panels::default);
            to.iter_mut().zip(from).for_each(|(to, from)| to.gather(from, rows));
        };
        gather(&mut self.activations, &from.activations);
        gather(&mut self.hidden, &from.hidden);
        self.dropout = from.dropout;
    }

    /// `act(h)` after the last block: what the last layer of the network sees.
    pub fn output(&self) -> &Panels {
        self.activations.last().expect("a forward pass was made")
    }
}

/// Memory of a backward pass.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    inner: Panels,
    panel: Vec<f32>,
}

impl Trunk {
    /// Runs all blocks; [`Tape::output`] is the activated result.
    ///
    /// With one row of `h` but more `rows`, all rows start from the same values, and only dropout makes them differ:
    /// the first product is then done once.
    ///
    /// # Shapes
    /// - `h`: `[rows, width]` or `[1, width]`; it is used up
    pub fn forward(&self, h: &mut Panels, rows: usize, masks: Option<&mut Masks>, tape: &mut Tape) {
        tape.activations.resize_with(self.blocks.len() + 1, Panels::default);
        tape.hidden.resize_with(self.blocks.len(), Panels::default);
        tape.dropout = masks.as_ref().map(|masks| masks.dropout);
        let mut masks = masks;
        if self.blocks.is_empty() {
            broadcast(h, rows);
        }
        activate(self.activation, h, &mut tape.activations[0]);
        for (index, layers) in self.blocks.iter().enumerate() {
            let (before, after) = tape.activations.split_at_mut(index + 1);
            let (input, hidden) = (&before[index], &mut tape.hidden[index]);
            self.block(layers, h, rows, h.columns(), input, hidden, &mut after[0], &mut masks);
        }
    }

    /// The same without a tape to go back on, for the first so many units: memory for one block serves all of them.
    pub fn evaluate(&self, h: &mut Panels, rows: usize, units: usize, tape: &mut Tape) {
        tape.activations.resize_with(2, Panels::default);
        tape.hidden.resize_with(1, Panels::default);
        broadcast(h, rows);
        if let Some(device) = &self.device {
            tape.activations[1] = device.evaluate(h);
            return;
        }
        activate(self.activation, h, &mut tape.activations[1]);
        for layers in &self.blocks {
            tape.activations.swap(0, 1);
            let (input, output) = tape.activations.split_at_mut(1);
            let hidden = &mut tape.hidden[0];
            self.block(layers, h, rows, units, &input[0], hidden, &mut output[0], &mut None);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn block(
        &self,
        [first, second]: &[Layer; 2],
        h: &mut Panels,
        rows: usize,
        units: usize,
        input: &Panels,
        hidden: &mut Panels,
        output: &mut Panels,
        masks: &mut Option<&mut Masks>,
    ) {
        let width = h.columns();
        hidden.reshape(rows, width);
        if let Some(masks) = masks {
            masks.next_layer();
        }
        let mut shared = [0.0; STRIP];
        let panels = units.div_ceil(STRIP);
        for panel in 0..panels {
            let start = Start::Bias(strip(&first.bias, panel));
            let out = hidden.panel_mut(panel);
            if input.rows() == rows {
                input.multiply_panel(&first.weight, self.reach.seen_by(panel), panel, start, out);
            } else {
                let seen = self.reach.seen_by(panel);
                input.multiply_panel(&first.weight, seen, panel, start, &mut shared);
                out.as_chunks_mut().0.fill(shared);
            }
            match masks {
                Some(masks) => masks.activate(self.activation, out),
                None => elementwise::activate_in_place(self.activation, out),
            }
        }
        broadcast(h, rows);
        output.reshape(rows, width);
        for panel in 0..panels {
            let (start, seen) = (Start::Add(strip(&second.bias, panel)), self.reach.seen_by(panel));
            hidden.multiply_panel(&second.weight, seen, panel, start, h.panel_mut(panel));
            elementwise::activate(self.activation, h.panel(panel), output.panel_mut(panel));
        }
    }

    /// Turns the gradient with respect to [`Tape::output`] into the one with respect to the input `h`, and adds to the
    /// gradients of the layers.
    ///
    /// # Shapes
    /// - `gradient`: `[rows, width]`; afterwards as many rows as `h` had
    pub fn backward(
        &self,
        gradient: &mut Panels,
        tape: &Tape,
        blocks: &mut [[LayerGradient; 2]],
        scratch: &mut Scratch,
    ) {
        let mut unused = [0.0; STRIP];
        for panel in 0..gradient.num_panels() {
            let (values, out) = (tape.output().panel(panel), gradient.panel_mut(panel));
            elementwise::derivative(self.activation, None, values, out, &mut unused);
        }
        self.backward_activated(gradient, tape, blocks, scratch);
    }

    /// [`Trunk::backward`] for a gradient with respect to the last `h`, before its activation.
    pub fn backward_activated(
        &self,
        gradient: &mut Panels,
        tape: &Tape,
        blocks: &mut [[LayerGradient; 2]],
        scratch: &mut Scratch,
    ) {
        let scale = tape.dropout.map(|dropout| dropout.scale);
        let (rows, width) = (gradient.rows(), gradient.columns());
        scratch.panel.resize(rows * STRIP, 0.0);
        for (index, ([first, second], [grad_first, grad_second])) in
            self.blocks.iter().zip(blocks).enumerate().rev()
        {
            let (input, hidden) = (&tape.activations[index], &tape.hidden[index]);
            self.add_weight_gradient(hidden, gradient, &mut grad_second.weight);
            add_column_sums(gradient, &mut grad_second.bias);
            let inner = &mut scratch.inner;
            inner.reshape(rows, width);
            for panel in 0..inner.num_panels() {
                let out = inner.panel_mut(panel);
                let seeing = self.reach.seeing(panel);
                gradient.multiply_panel(&second.transposed, seeing, panel, Start::Zero, out);
                let sums = &mut grad_first.bias[panel * STRIP..][..STRIP];
                elementwise::derivative(self.activation, scale, hidden.panel(panel), out, sums);
            }
            if input.rows() != rows {
                // All rows share their input, so only the sum over the rows goes on.
                *inner = summed(inner);
                *gradient = summed(gradient);
                scratch.panel.resize(STRIP, 0.0);
            }
            self.add_weight_gradient(input, inner, &mut grad_first.weight);
            for panel in 0..inner.num_panels() {
                let out = &mut scratch.panel;
                let seeing = self.reach.seeing(panel);
                inner.multiply_panel(&first.transposed, seeing, panel, Start::Zero, out);
                let (values, total) = (input.panel(panel), gradient.panel_mut(panel));
                elementwise::add_derivative(self.activation, values, out, total);
            }
        }
    }
}

impl Trunk {
    /// Adds the gradient of a layer's weight between units that see each other; it stays zero elsewhere, but for what shares a
    /// panel.
    fn add_weight_gradient(&self, input: &Panels, gradient: &Panels, weight: &mut Panels) {
        for panel in 0..gradient.num_panels() {
            weight.add_transposed_panel(input, self.reach.seen_by(panel).end, gradient, panel);
        }
    }
}

fn activate(activation: Activation, h: &Panels, out: &mut Panels) {
    out.reshape(h.rows(), h.columns());
    for panel in 0..h.num_panels() {
        elementwise::activate(activation, h.panel(panel), out.panel_mut(panel));
    }
}

/// Repeats a single row.
fn broadcast(h: &mut Panels, rows: usize) {
    if h.rows() != rows {
        let one = h.clone();
        h.gather(&one, &vec![0; rows]);
    }
}

fn summed(values: &Panels) -> Panels {
    let mut sums = Panels::zeros(1, values.columns());
    add_column_sums(values, sums.data_mut());
    sums
}
