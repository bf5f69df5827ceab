//! Between tensors on a device and numbers on the host, where weights are normalised and draws are made.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Int, Shape, Tensor, TensorData};

/// Where new tensors go: the device (without autodiff) and the float type of the data.
#[derive(Debug, Clone)]
pub struct Place {
    device: Device,
    dtype: DType,
}

impl Place {
    /// A place on a device, with 32-bit floats.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone().inner(), dtype: DType::F32 }
    }

    /// The same place with 64-bit floats, where the device has them.
    pub fn double(self) -> Self {
        Self { dtype: DType::F64, ..self }
    }

    /// The place of an existing tensor.
    pub fn of<const D: usize>(tensor: &Tensor<D>) -> Self {
        Self { device: tensor.device().inner(), dtype: tensor.dtype() }
    }

    /// A tensor from numbers in row-major order.
    pub fn tensor<const D: usize>(&self, values: Vec<f64>, shape: impl Into<Shape>) -> Tensor<D> {
        let data = match self.dtype {
            DType::F32 => {
                TensorData::new(values.iter().map(|&value| value as f32).collect(), shape)
            }
            dtype => TensorData::new(values, shape).convert_dtype(dtype),
        };
        Tensor::from_data(data, (&self.device, self.dtype))
    }
}

/// The numbers of all parameters of a module, one tensor after the other.
pub fn parameters<M: Module>(module: &M) -> Vec<f32> {
    struct Collect(Vec<f32>);
    impl ModuleVisitor for Collect {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend(param.val().into_data().iter::<f32>());
        }
    }
    let mut collect = Collect(Vec::new());
    module.visit(&mut collect);
    collect.0
}

/// The numbers of a tensor in row-major order, away from any graph.
pub fn to_host<const D: usize>(tensor: &Tensor<D>) -> Vec<f64> {
    let data = tensor.to_data();
    match data.as_slice::<f32>() {
        Ok(values) => values.iter().map(|&value| f64::from(value)).collect(),
        Err(_) => data.iter::<f64>().collect(),
    }
}

/// Indices as a tensor, to select or gather by.
pub(crate) fn indices<const D: usize>(
    values: &[usize],
    shape: impl Into<Shape>,
    device: &Device,
) -> Tensor<D, Int> {
    let values: Vec<i64> = values.iter().map(|&index| index as i64).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}
