//! The files of a model: the weights in `model.safetensors`, and the settings in `config.json`.

use crate::model::{Encoder, Head};
use serde::Deserialize;
use std::error::Error;
use std::path::Path;
use typed_dims::file::safetensors::SafetensorsReader;
use typed_dims::prelude::*;

/// Settings from `config.json`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Settings {
    /// The number of attention heads.
    #[serde(rename = "num_attention_heads")]
    pub heads: usize,
    /// The number added to variances.
    #[serde(rename = "layer_norm_eps")]
    pub epsilon: f64,
    /// The maximum number of tokens in a sentence.
    #[serde(rename = "max_position_embeddings")]
    pub positions: usize,
}

/// A model's files.
pub struct Files {
    weights: SafetensorsReader,
    /// The settings in `config.json`.
    pub settings: Settings,
}

impl Files {
    /// Opens the files in a folder.
    pub fn open(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let weights = SafetensorsReader::open(folder.join("model.safetensors"))?;
        Ok(Files { weights, settings: read_json(&folder.join("config.json"))? })
    }

    /// The model. Its embedding tables are views of the file's bytes.
    pub fn encoder(&self) -> Result<Encoder<'_>, Box<dyn Error>> {
        let weights = Weights::of(&self.weights)?
            .with(Head.of(self.settings.heads))?
            .ignoring("pooler") // not used for embeddings
            .ignoring("embeddings.position_ids"); // 0, 1, 2, ..
        Ok(weights.load::<Encoder<'_>>()?.with_epsilon(self.settings.epsilon))
    }
}

/// Reads a JSON file.
pub fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, Box<dyn Error>> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}
