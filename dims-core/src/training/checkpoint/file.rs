//! A checkpoint file: safetensors or `.npz`.

#[cfg(feature = "npy")]
use crate::file::FileKind;
use crate::file::safetensors::SafetensorsReader;
use crate::file::{Entry, FileError};
#[cfg(feature = "npy")]
use crate::training::checkpoint::npz::Archive;
use alloc::string::String;
use alloc::vec::Vec;

/// Tensors and text by their names.
pub(super) enum File<B> {
    Safetensors(SafetensorsReader<B>),
    #[cfg(feature = "npy")]
    Npz(Archive),
}

impl<B: AsRef<[u8]>> File<B> {
    pub(super) fn new(bytes: B) -> Result<Self, FileError> {
        #[cfg(feature = "npy")]
        match FileKind::of(bytes.as_ref()) {
            Some(FileKind::Npz) => return Ok(File::Npz(Archive::new(bytes)?)),
            Some(kind @ FileKind::Npy) => {
                let (own, other) = (FileKind::Safetensors, FileKind::Npz);
                let what = format!("it is neither {own} nor {other}, but {kind}");
                return Err(FileError::format(what));
            }
            Some(FileKind::Safetensors) | None => {}
        }
        Ok(File::Safetensors(SafetensorsReader::new(bytes)?))
    }

    pub(super) fn note(&self, name: &str) -> Option<&str> {
        match self {
            File::Safetensors(file) => file.note(name),
            #[cfg(feature = "npy")]
            File::Npz(archive) => archive.note(name),
        }
    }

    /// The names of all notes, sorted.
    pub(super) fn notes(&self) -> Vec<&str> {
        match self {
            File::Safetensors(file) => file.notes(),
            #[cfg(feature = "npy")]
            File::Npz(archive) => archive.notes(),
        }
    }

    pub(super) fn tensors(&self) -> Vec<String> {
        match self {
            File::Safetensors(file) => file.tensors(),
            #[cfg(feature = "npy")]
            File::Npz(archive) => archive.tensors(),
        }
    }

    pub(super) fn get(&self, tensor: &str) -> Result<Entry<'_>, FileError> {
        match self {
            File::Safetensors(file) => file.get(tensor),
            #[cfg(feature = "npy")]
            File::Npz(archive) => archive.get(tensor),
        }
    }
}
