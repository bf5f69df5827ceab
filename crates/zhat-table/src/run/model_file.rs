//! The fitted model on disk: `model.safetensors` for the parameters, `model.json` for what they mean.

use std::fs;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use zhat::ar::{ArEbm, ArEbmConfig};
use zhat::rng::Streams;

use super::directory::{RunDirectory, write_atomically};
use crate::data::Standardiser;
use crate::error::{Result, TableError};

/// Version of the format; a model of a later one is refused.
pub const FORMAT: u32 = 1;

/// What a model is and how it came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCard {
    /// Version of the format.
    pub format: u32,
    /// Version of zhat that wrote it.
    pub version: String,
    /// Architecture.
    pub model: ArEbmConfig,
    /// Names of the columns, in the order of the factorisation.
    pub columns: Vec<String>,
    /// How the columns were standardised.
    pub standardiser: Standardiser,
    /// Hash of the data it was fitted to.
    pub data_hash: String,
    /// How it was trained.
    pub criterion: String,
    /// Step that the parameters are from.
    pub step: u64,
}

/// Writes a model and its card.
pub fn save_model(run: &RunDirectory, model: &ArEbm, card: &ModelCard) -> Result<()> {
    let mut collect = Collect::default();
    model.visit(&mut collect);
    let views = collect.tensors.iter().map(|(name, shape, bytes)| {
        let view =
            TensorView::new(Dtype::F32, shape.clone(), bytes).expect("shape and bytes agree");
        (name.clone(), view)
    });
    let bytes = safetensors::serialize(views, None)
        .map_err(|error| TableError::model(&run.model(), error.to_string()))?;
    write_atomically(&run.model(), &bytes)?;
    let card = serde_json::to_vec_pretty(card).expect("a card is plain data");
    write_atomically(&run.model_card(), &card)
}

/// Reads a model and its card.
pub fn load_model(run: &RunDirectory, device: &Device) -> Result<(ArEbm, ModelCard)> {
    let card_path = run.model_card();
    let text = fs::read(&card_path).map_err(|source| TableError::io(&card_path, source))?;
    let version: Version = serde_json::from_slice(&text)
        .map_err(|error| TableError::model(&card_path, error.to_string()))?;
    if version.format > FORMAT {
        let reason = format!(
            "it is of format {} and this zhat reads up to {FORMAT}; use zhat {} or later",
            version.format, version.version
        );
        return Err(TableError::model(&card_path, reason));
    }
    let card: ModelCard = serde_json::from_slice(&text)
        .map_err(|error| TableError::model(&card_path, error.to_string()))?;
    let path = run.model();
    let bytes = fs::read(&path).map_err(|source| TableError::io(&path, source))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| TableError::model(&path, error.to_string()))?;
    // The start values are all overwritten below.
    let empty = card.model.init(device, &mut Streams::new(0).stream("init", 0, 0))?;
    let mut load = Load { file, path: Vec::new(), missing: None };
    let model = empty.map(&mut load);
    match load.missing {
        None => Ok((model, card)),
        Some(reason) => Err(TableError::model(&path, reason)),
    }
}

#[derive(Deserialize)]
struct Version {
    format: u32,
    version: String,
}

/// Name, shape and little-endian bytes of every parameter.
#[derive(Default)]
struct Collect {
    path: Vec<String>,
    tensors: Vec<(String, Vec<usize>, Vec<u8>)>,
}

impl ModuleVisitor for Collect {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let shape = value.dims().to_vec();
        let numbers: Vec<f32> = value.to_data().iter::<f32>().collect();
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.tensors.push((self.path.join("."), shape, bytes));
    }
}

/// Puts the tensors of a file in the place of a module's parameters.
struct Load<'a> {
    file: SafeTensors<'a>,
    path: Vec<String>,
    missing: Option<String>,
}

impl ModuleMapper for Load<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let shape = param.val().dims();
        let found = match self.file.tensor(&name) {
            Err(_) => Err(format!("it has no tensor {name}")),
            Ok(view) if view.dtype() != Dtype::F32 || view.shape() != shape => Err(format!(
                "{name} is {:?} {:?}, but the model needs F32 {shape:?}",
                view.dtype(),
                view.shape()
            )),
            Ok(view) => Ok(view
                .data()
                .chunks_exact(4)
                .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")))
                .collect::<Vec<f32>>()),
        };
        match found {
            Ok(values) => param.map(|old| {
                let new = Tensor::from_data(TensorData::new(values, shape), &old.device());
                if old.is_require_grad() { new.require_grad() } else { new }
            }),
            Err(reason) => {
                self.missing.get_or_insert(reason);
                param
            }
        }
    }
}
