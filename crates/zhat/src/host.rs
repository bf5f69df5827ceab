//! Between tensors on a device and numbers on the host, where weights are normalised and draws are made.

use std::ops::Deref;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Int, Shape, Tensor, TensorData};
use burn_flex::{Flex, FlexTensor};

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

/// The numbers of a parameter in row-major order: where they are, if that is this machine's memory, or a copy of them.
pub(crate) enum Numbers {
    Here(FlexTensor),
    Copied(Vec<f32>),
}

impl Deref for Numbers {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Self::Here(tensor) => tensor.as_slice().expect("32-bit floats in a row"),
            Self::Copied(values) => values,
        }
    }
}

/// The numbers of a parameter as 32-bit floats, without a copy where they are such and in this machine's memory.
pub(crate) fn numbers<const D: usize>(param: &Param<Tensor<D>>) -> Numbers {
    match param.val().try_into_primitive::<Flex>() {
        Ok(tensor) if tensor.dtype() == DType::F32 => Numbers::Here(tensor.to_contiguous()),
        _ => {
            let data = param.val().into_data().convert::<f32>();
            Numbers::Copied(data.try_into_vec().expect("32-bit floats"))
        }
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
