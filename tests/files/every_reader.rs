//! Runs all file readers on the same arbitrary bytes. `fuzz/files.rs` also uses this module.

use super::{In, Out};
use typed_dims::file::{npy, npz, safetensors};

/// Parses the bytes as each format, and reads each tensor. Errors are fine; panics are not.
pub fn try_all(bytes: &[u8]) {
    if let Ok(file) = safetensors::SafetensorsReader::new(bytes) {
        for tensor in file.tensors() {
            if let Ok(entry) = file.get(&tensor) {
                let _ = (entry.load::<f32, (Out, In)>(), entry.load_as::<u8, _>((Out, In)), entry.names());
                let _ = (entry.view::<f32, (Out, In)>().is_ok(), entry.view_as::<bool, _>(Out).is_ok());
            }
        }
    }
    if let Ok(file) = npy::NpyReader::new(bytes)
        && let Ok(entry) = file.get()
    {
        let _ = (entry.load::<f32, (Out, In)>(), entry.load_as::<u8, _>((Out, In)), entry.names());
        let _ = (entry.view::<f32, (Out, In)>().is_ok(), entry.view_as::<bool, _>(Out).is_ok());
    }
    if let Ok(mut file) = npz::NpzReader::new(bytes) {
        for tensor in file.tensors() {
            if let Ok(file) = file.get(&tensor) {
                let _ = file.get().map(|entry| entry.load::<f32, (Out, In)>().is_ok());
            }
            let _ = (file.load::<f32, (Out, In)>(&tensor), file.load_as::<bool, _>(&tensor, Out));
        }
    }
}
