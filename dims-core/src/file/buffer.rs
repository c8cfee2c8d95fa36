//! Bytes of a file in memory, aligned for any element.

use super::FileError;
use alloc::string::ToString;
use alloc::vec::Vec;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The bytes of a file, at an address that is aligned for elements of any type. Elements that are
/// aligned in the file are aligned in memory.
#[derive(Default)]
pub struct AlignedBytes {
    words: Vec<u64>,
    len: usize,
}

impl AlignedBytes {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or does not fit into memory.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let failed = |error| FileError::Io { what: path.display().to_string(), error };
        let mut buffer = AlignedBytes::default();
        // Do not rely on the size that the system reports; it can be wrong.
        File::open(path).and_then(|file| buffer.extend_from(file)).map_err(failed)?;
        Ok(buffer)
    }

    /// Appends everything that can be read. Memory is allocated as bytes arrive.
    pub(super) fn extend_from(&mut self, mut from: impl Read) -> Result<(), std::io::Error> {
        let mut part = vec![0; 1 << 16];
        loop {
            match from.read(&mut part) {
                Ok(0) => return Ok(()),
                Ok(read) => self.extend(&part[..read])?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A copy of bytes.
    ///
    /// # Errors
    ///
    /// If memory is exhausted.
    pub fn copied(bytes: &[u8]) -> Result<Self, FileError> {
        let mut buffer = AlignedBytes::default();
        buffer.extend(bytes).map_err(|error| FileError::Io { what: "a buffer".into(), error })?;
        Ok(buffer)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), std::io::Error> {
        let len = self.len + bytes.len();
        let words = len.div_ceil(size_of::<u64>());
        if let Some(more) = words.checked_sub(self.words.len()) {
            self.words.try_reserve(more).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        }
        self.words.resize(words, 0);
        bytemuck::cast_slice_mut(&mut self.words)[self.len..len].copy_from_slice(bytes);
        self.len = len;
        Ok(())
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }
}
