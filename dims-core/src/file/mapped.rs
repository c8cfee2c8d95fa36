//! Memory-mapped files.

use super::FileError;
use alloc::string::ToString;
use memmap2::Mmap;
use std::fs::File;
use std::path::Path;

/// A memory-mapped file. The system reads its bytes from disk when they are accessed.
pub struct MappedFile(Mmap);

impl MappedFile {
    /// Maps a file for reading.
    ///
    /// # Safety
    ///
    /// While the value is alive, no process may change or truncate the file, because its bytes are
    /// treated as immutable memory.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or mapped.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let failed = |error| FileError::Io { what: path.display().to_string(), error };
        let file = File::open(path).map_err(failed)?;
        // SAFETY: the caller guarantees what `Mmap` requires.
        unsafe { Mmap::map(&file) }.map(MappedFile).map_err(failed)
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
