//! The energy of a small model as one node of the graph.
//!
//! A Gaussian or a ring costs a few additions a row, and some ten tensor operations, each with its own bookkeeping forward
//! and backward; on small batches that is nearly all of the time. Where everything is in 32-bit floats on the CPU, the
//! sum over rows is done here instead, with its derivative written out. Elsewhere (a GPU, 64-bit floats, a gradient with
//! respect to `x`) models use tensor operations, against which the tests compare these derivatives.

use std::fmt::Debug;

use burn::tensor::{DType, Tensor, TensorData};
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::NoCheckpointing};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::{Flex, FlexTensor};

/// `log p~` of a row and its derivative in `P` parameter vectors, all as numbers.
pub(super) trait Energy<const P: usize>: Clone + Debug + Send + 'static {
    /// `log p~` of every row, appended to `log_p_tilde`.
    fn evaluate(&self, x: &[f32], theta: [&[f32]; P], log_p_tilde: &mut Vec<f32>);

    /// `sum_n c_n d/dtheta log p~(x_n)`, added to `gradient`.
    fn differentiate(&self, x: &[f32], theta: [&[f32]; P], c: &[f32], gradient: [&mut [f64]; P]);
}

/// `log p~` of the rows of `x` as one node, or `None` where it has to be done with tensor operations.
///
/// # Shapes
/// - `x`: `[n, d]`
/// - output: `[n]`
pub(super) fn evaluate<const P: usize>(
    energy: impl Energy<P>,
    x: &Tensor<2>,
    theta: [Tensor<1>; P],
) -> Option<Tensor<1>> {
    let single = |dtype| dtype == DType::F32;
    if !single(x.dtype()) || !theta.iter().all(|theta| single(theta.dtype())) {
        return None;
    }
    let x = x.clone().try_into_primitive::<Flex>().ok()?.to_contiguous();
    let mut parents = Vec::with_capacity(P);
    for theta in theta {
        parents.push(theta.try_into_primitive::<Autodiff<Flex>>().ok()?);
    }
    let parents: [_; P] = parents.try_into().expect("as many as there were");
    let node = Node(energy.clone());
    let prepared = node.prepare::<NoCheckpointing>(parents.each_ref().map(|parent| parent.node()));
    let theta = parents.map(|parent| parent.into_primitive().to_contiguous());
    let mut log_p_tilde = Vec::with_capacity(x.layout().shape()[0]);
    energy.evaluate(values(&x), theta.each_ref().map(values), &mut log_p_tilde);
    let output = tensor(log_p_tilde);
    let output = match prepared.compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish(Inputs { x, theta }, output),
        OpsKind::UnTracked(prepared) => prepared.finish(output),
    };
    Some(Tensor::from_primitive::<Autodiff<Flex>>(output))
}

#[derive(Debug)]
struct Node<E>(E);

/// What the derivative needs.
#[derive(Debug, Clone)]
struct Inputs<const P: usize> {
    x: FlexTensor,
    theta: [FlexTensor; P],
}

impl<E: Energy<P>, const P: usize> Backward<Flex, P> for Node<E> {
    type State = Inputs<P>;

    fn backward(self, ops: Ops<Inputs<P>, P>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let Inputs { x, theta } = ops.state;
        let c = gradients.consume::<Flex>(&ops.node).to_contiguous();
        let theta = theta.each_ref().map(values);
        let mut sums = theta.map(|theta| vec![0.0; theta.len()]);
        self.0.differentiate(
            values(&x),
            theta,
            values(&c),
            sums.each_mut().map(|sum| &mut sum[..]),
        );
        for (parent, sum) in ops.parents.into_iter().zip(sums) {
            if let Some(parent) = parent {
                let gradient = tensor(sum.into_iter().map(|sum| sum as f32).collect());
                gradients.register::<Flex>(parent.id, gradient);
            }
        }
    }
}

/// The numbers of a tensor that was made contiguous.
fn values(tensor: &FlexTensor) -> &[f32] {
    tensor.storage()
}

fn tensor(values: Vec<f32>) -> FlexTensor {
    let shape = [values.len()];
    FlexTensor::from_data(TensorData::new(values, shape))
}
