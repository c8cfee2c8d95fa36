//! Files in the address space.

use super::FileError;
use alloc::string::ToString;
use memmap2::Mmap;
use std::fs::File;
use std::path::Path;

/// The bytes of a file, mapped into the address space: the system reads them from disk when they are looked at.
pub struct MappedFile(Mmap);

impl MappedFile {
    /// Maps a file for reading.
    ///
    /// # Safety
    ///
    /// As long as the value lives, nobody changes the file or makes it shorter, this process or another: its bytes are seen as
    /// memory that does not change.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let failed = |error| FileError::Io { what: path.display().to_string(), error };
        let file = File::open(path).map_err(failed)?;
        // SAFETY: the caller's promise is what `Mmap` asks for.
        unsafe { Mmap::map(&file) }.map(MappedFile).map_err(failed)
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
