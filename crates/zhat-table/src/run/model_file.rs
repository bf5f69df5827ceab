//! The fitted model on disk: `model.safetensors` for the parameters, `model.json` for what they mean and for the digests of both.

use std::collections::BTreeMap;
use std::fs;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use zhat::ar::{ArEbm, ArEbmConfig};
use zhat::criterion::Method;
use zhat::gaussian_mixture::GaussianMixture;
use zhat::rng::Streams;
use zhat::train::Answer;

use super::directory::{RunDirectory, write_atomically};
use super::seal::{Seal, check, sealed, sha256};
use crate::data::{ColumnKind, Discrete, Standardiser};
use crate::error::{Result, TableError};

/// Version of the format; a model of a later one is refused.
pub const FORMAT: u32 = 6;

/// The first format with digests; a model of an earlier one has none to be checked.
pub(crate) const WITH_DIGESTS: u32 = 5;

/// Whether a model has to be as its fit wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Integrity {
    /// Any change is an error.
    #[default]
    Checked,
    /// It is taken as it is, for whoever has changed it on purpose. Its parts must still go together.
    AllowModified,
}

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
    /// How the columns become features.
    pub standardiser: Standardiser,
    /// Hash of the data it was fitted to.
    pub data_hash: String,
    /// How it was trained.
    pub criterion: String,
    /// Whether the density is the model or its proposal, which was no worse.
    #[serde(default)]
    pub density: Answer,
    /// The Gaussian mixture beside the head, of features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaussian_mixture: Option<GaussianMixture>,
    /// Discrete columns, to which training added noise: a row's density is the mean over the cells that their values stand for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub discrete: BTreeMap<String, Discrete>,
    /// What the columns of the table are, those that are no part of the model included; empty where all are any numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<ColumnKind>,
    /// Step that the parameters are from.
    pub step: u64,
}

impl ModelCard {
    /// Whether its parts go together; if not, why.
    pub(crate) fn check_shapes(&self) -> std::result::Result<(), String> {
        let (features, standardiser) = (self.model.features, &self.standardiser);
        let lengths = [
            ("columns", self.columns.len()),
            ("standardiser.mean", standardiser.mean.len()),
            ("standardiser.std_dev", standardiser.std_dev.len()),
        ];
        let maps = ("standardiser.maps", standardiser.maps.len());
        let maps = (!standardiser.maps.is_empty()).then_some(maps);
        let rhythms = ("standardiser.rhythms", standardiser.rhythms.len());
        let rhythms = (!standardiser.rhythms.is_empty()).then_some(rhythms);
        let shapes = ("standardiser.shapes", standardiser.shapes.len());
        let shapes = (!standardiser.shapes.is_empty()).then_some(shapes);
        let modelled = self.kinds.iter().filter(|kind| kind.is_modelled()).count();
        let kinds = (!self.kinds.is_empty()).then_some(("kinds", modelled));
        if let Some((name, length)) = lengths
            .into_iter()
            .chain(maps)
            .chain(rhythms)
            .chain(shapes)
            .chain(kinds)
            .find(|(_, length)| *length != features)
        {
            return Err(format!("{name} has {length} entries, but model.features is {features}"));
        }
        if standardiser.kinds() != self.model.kinds {
            return Err("standardiser.shapes are not those of model.kinds".into());
        }
        if standardiser.cycles() != self.model.cycles {
            return Err("standardiser.rhythms are not those of model.cycles".into());
        }
        for (name, mean, std_dev) in standardiser
            .mean
            .iter()
            .zip(&standardiser.std_dev)
            .zip(&self.columns)
            .map(|((mean, std_dev), name)| (name, *mean, *std_dev))
        {
            if !(mean.is_finite() && std_dev.is_finite() && std_dev > 0.0) {
                return Err(format!(
                    "column {name} has mean {mean} and standard deviation {std_dev}, which are not those of numbers"
                ));
            }
        }
        for (name, discrete) in &self.discrete {
            if !self.columns.contains(name) {
                return Err(format!("discrete has {name}, which is none of the columns"));
            }
            discrete.check().map_err(|reason| format!("discrete column {name}: {reason}"))?;
        }
        Ok(())
    }

    /// The criterion that trains the density: where that is the proposal, the one that trains it alone.
    pub fn density_by(&self) -> Result<Method> {
        match self.density {
            Answer::Model => Ok(self.criterion.parse()?),
            Answer::Proposal => Ok(Method::QOnly),
        }
    }
}

/// Writes a model and its card; gives the digest of the card, which covers both.
pub fn save_model(run: &RunDirectory, model: &ArEbm, card: &ModelCard) -> Result<String> {
    let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
    let collect = |name, data: TensorData| {
        let bytes = data.iter::<f32>().flat_map(f32::to_le_bytes).collect();
        tensors.push((name, data.shape().to_vec(), bytes));
        data
    };
    model.clone().map(&mut Parameters { path: Vec::new(), change: collect });
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
        (name, view.expect("shape and bytes agree"))
    });
    let bytes = safetensors::serialize(views, None)
        .map_err(|error| TableError::model(&run.model(), error.to_string()))?;
    write_atomically(&run.model(), &bytes)?;
    let card = sealed(card, &[(WEIGHTS, &sha256(&bytes))]);
    write_atomically(&run.model_card(), &card)?;
    Ok(sha256(&card))
}

/// The key of the digest of `model.safetensors`.
const WEIGHTS: &str = "weights_sha256";

/// Reads a model and its card, and says whether they are as their fit wrote them; if they have to be and are not, it is an error.
pub fn load_model(
    run: &RunDirectory,
    device: &Device,
    integrity: Integrity,
) -> Result<(ArEbm, ModelCard, bool)> {
    let card_path = run.model_card();
    let card_bytes = fs::read(&card_path).map_err(|source| TableError::io(&card_path, source))?;
    let broken = |error: serde_json::Error| TableError::model(&card_path, error.to_string());
    let version: Version = serde_json::from_slice(&card_bytes).map_err(broken)?;
    if version.format > FORMAT {
        let reason = format!(
            "it is of format {} and this zhat reads up to {FORMAT}; use zhat {} or later",
            version.format, version.version
        );
        return Err(TableError::model(&card_path, reason));
    }
    let path = run.model();
    let bytes = fs::read(&path).map_err(|source| TableError::io(&path, source))?;
    let changed = match (check(&card_bytes), &version.weights_sha256) {
        (Seal::Broken, _) => Some((&card_path, "it is not as its fit wrote it")),
        (Seal::None, _) if version.format >= WITH_DIGESTS => {
            Some((&card_path, "it has lost its digest (sha256)"))
        }
        (_, Some(expected)) if *expected != sha256(&bytes) => {
            Some((&path, "it is not the file that model.json was written with"))
        }
        _ => None,
    };
    if let Some((path, reason)) = changed
        && integrity == Integrity::Checked
    {
        return Err(TableError::modified(path, reason));
    }
    let card: ModelCard = serde_json::from_slice(&card_bytes).map_err(broken)?;
    card.check_shapes().map_err(|reason| TableError::model(&card_path, reason))?;
    check_size(&card, bytes.len()).map_err(|reason| TableError::model(&path, reason))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| TableError::model(&path, error.to_string()))?;
    // The start values are all overwritten below.
    let empty = card.model.init(device, &mut Streams::new(0).stream("init", 0, 0))?;
    let mut wrong = None;
    let load = |name: String, old: TensorData| {
        tensor(&file, &name, old.shape()).unwrap_or_else(|reason| {
            wrong.get_or_insert(reason);
            old
        })
    };
    let mut model = empty.map(&mut Parameters { path: Vec::new(), change: load });
    let features = |mixture: &GaussianMixture| mixture.features();
    let expected = card.model.gaussian_mixture.then_some(card.model.num_numbers());
    if card.gaussian_mixture.as_ref().map(features) != expected {
        let reason = "its Gaussian mixture does not go with its model".to_owned();
        return Err(TableError::model(&card_path, reason));
    }
    model.known.clone_from(&card.gaussian_mixture);
    match wrong {
        None => Ok((model, card, changed.is_none())),
        Some(reason) => Err(TableError::model(&path, reason)),
    }
}

#[derive(Deserialize)]
struct Version {
    format: u32,
    version: String,
    #[serde(default)]
    weights_sha256: Option<String>,
}

/// Before a model is made in memory: the file has room for the largest of its layers.
fn check_size(card: &ModelCard, bytes: usize) -> std::result::Result<(), String> {
    let least = [&card.model.energy, &card.model.proposal].map(|network| {
        let squares = 2u128 * network.blocks as u128 * (network.width as u128).pow(2);
        squares + network.width as u128
    });
    let least = 4 * (least[0] + card.model.members as u128 * least[1]);
    match least > bytes as u128 {
        true => Err(format!("it has {bytes} bytes, but networks of that size need {least}")),
        false => Ok(()),
    }
}

/// A tensor of a file, which must be there in this shape.
fn tensor(
    file: &SafeTensors,
    name: &str,
    shape: &[usize],
) -> std::result::Result<TensorData, String> {
    let view = file.tensor(name).map_err(|_| format!("it has no tensor {name}"))?;
    let (dtype, found) = (view.dtype(), view.shape());
    if dtype != Dtype::F32 || found != shape {
        return Err(format!("{name} is {dtype:?} {found:?}, but the model needs F32 {shape:?}"));
    }
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let values: Vec<f32> = view.data().chunks_exact(4).map(number).collect();
    Ok(TensorData::new(values, shape))
}

/// Every parameter of a module, with its name, replaced by what a function makes of it.
struct Parameters<F> {
    path: Vec<String>,
    change: F,
}

impl<F: FnMut(String, TensorData) -> TensorData> ModuleMapper for Parameters<F> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|old| {
            let data = (self.change)(self.path.join("."), old.to_data());
            let new = Tensor::from_data(data, &old.device());
            if old.is_require_grad() { new.require_grad() } else { new }
        })
    }
}
