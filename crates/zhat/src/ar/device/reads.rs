//! What the CPU reads from a device, and how often: whoever reads waits until all that was launched before is done.

use burn::tensor::Tensor;

/// Reads so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reads(u64);

impl Reads {
    /// The numbers of a tensor, which are waited for.
    pub fn read(&mut self, tensor: Tensor<1>) -> Vec<f64> {
        self.0 += 1;
        tensor.into_data().iter::<f64>().collect()
    }

    /// How many there were.
    pub fn number(self) -> u64 {
        self.0
    }
}
