//! Checkpoints in `.npz` archives, in which each note is an array of bytes.

use crate::file::{Entry, FileError, npy, npz};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::collections::BTreeMap;

/// The unpacked content of an archive.
pub(super) struct Archive {
    tensors: BTreeMap<String, npy::NpyReader>,
    notes: BTreeMap<String, String>,
}

impl Archive {
    pub(super) fn new<B: AsRef<[u8]>>(bytes: B) -> Result<Self, FileError> {
        let mut archive = npz::NpzReader::new(bytes)?;
        archive.check_whole()?;
        let (mut tensors, mut notes) = (BTreeMap::new(), BTreeMap::new());
        for name in archive.tensors() {
            let array = archive.get(&name)?;
            match name.strip_prefix(npz::TEXT_OF) {
                Some(note) => {
                    let text = String::from_utf8(array.get()?.elements::<u8>()?);
                    let what = || format!("`{name}` is not UTF-8");
                    notes.insert(note.to_string(), text.map_err(|_| FileError::format(what()))?);
                }
                None => drop(tensors.insert(name, array)),
            }
        }
        Ok(Archive { tensors, notes })
    }

    pub(super) fn note(&self, name: &str) -> Option<&str> {
        self.notes.get(name).map(String::as_str)
    }

    pub(super) fn notes(&self) -> Vec<&str> {
        self.notes.keys().map(String::as_str).collect()
    }

    pub(super) fn tensors(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    pub(super) fn get(&self, tensor: &str) -> Result<Entry<'_>, FileError> {
        match self.tensors.get(tensor) {
            Some(array) => array.get(),
            None => Err(FileError::Missing { tensor: tensor.into(), has: self.tensors(), path: None }),
        }
    }
}
