//! Files of numpy's with many tensors, `.npz`: an archive of the crate `zip`, whose members are [`npy`] files.

use super::element::Stored;
use super::names::shortened;
use super::{Buffer, FileError, npy};
use crate::rank::Rank0;
use crate::tensor::Computable;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::io::{Cursor, Read, Write};
use std::path::Path;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

fn invalid(error: &ZipError) -> FileError {
    FileError::Format { what: shortened(&error.to_string()) }
}

/// A file for reading, from which tensors are taken one by one.
pub struct Reader<B: AsRef<[u8]> = Buffer> {
    archive: ZipArchive<Cursor<B>>,
}

impl Reader {
    /// Reads a file into memory.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not a valid one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::new(Buffer::read(path)?)
    }
}

impl<B: AsRef<[u8]>> Reader<B> {
    /// A file that is in memory already, or mapped into it.
    ///
    /// # Errors
    ///
    /// If it is not a valid one.
    pub fn new(bytes: B) -> Result<Self, FileError> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| invalid(&error))?;
        Ok(Reader { archive })
    }

    /// The names of the tensors, sorted.
    pub fn tensors(&self) -> Vec<String> {
        let names = self.archive.file_names().flatten();
        let mut names: Vec<String> =
            names.filter_map(|name| name.strip_suffix(".npy").map(String::from)).collect();
        names.sort_unstable();
        names
    }

    /// The tensor of that name, unpacked.
    ///
    /// # Errors
    ///
    /// If there is none, or it is not valid, or has not the checksum that the archive says.
    pub fn get(&mut self, tensor: &str) -> Result<npy::Reader, FileError> {
        let has = self.tensors();
        let mut member = match self.archive.by_name(&format!("{tensor}.npy")) {
            Ok(member) => member,
            Err(ZipError::FileNotFound) => return Err(FileError::Missing { tensor: tensor.into(), has }),
            Err(error) => return Err(invalid(&error)),
        };
        let mut bytes = Vec::new();
        // What is read decides how much memory is taken, not what the archive says of it; but no more than that.
        let most = member.size().saturating_add(1);
        let failed =
            |error: std::io::Error| FileError::Format { what: shortened(&format!("`{tensor}`: {error}")) };
        member.by_ref().take(most).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 == most {
            return Err(FileError::Format { what: format!("`{tensor}` is larger than the archive says") });
        }
        npy::Reader::named(tensor, Buffer::copied(&bytes)?)
    }
}

/// A file for writing: tensors, with the names of their dims.
pub struct Writer {
    archive: ZipWriter<Cursor<Vec<u8>>>,
    tensors: Vec<String>,
    options: SimpleFileOptions,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// No tensors yet; what is put in is stored as it is, as `numpy.savez` does.
    pub fn new() -> Self {
        Self::with(CompressionMethod::Stored)
    }

    /// No tensors yet; what is put in is compressed, as `numpy.savez_compressed` does.
    pub fn compressed() -> Self {
        Self::with(CompressionMethod::Deflated)
    }

    fn with(method: CompressionMethod) -> Self {
        let options = SimpleFileOptions::default().compression_method(method);
        Writer { archive: ZipWriter::new(Cursor::default()), tensors: Vec::new(), options }
    }

    /// Adds a tensor, computed if it is an expression.
    ///
    /// # Errors
    ///
    /// If there is a tensor of that name already, and as for [`npy::to_bytes`].
    pub fn put<A>(&mut self, name: &str, tensor: A) -> Result<&mut Self, FileError>
    where
        A: Computable<Rank = Rank0, Elem: Stored>,
    {
        if self.tensors.iter().any(|other| other == name) {
            return Err(FileError::Unwritable { what: format!("`{name}` is in the file already") });
        }
        let bytes = npy::to_bytes(tensor)?;
        let large = self.options.large_file(bytes.len() >= u32::MAX as usize);
        self.archive.start_file(format!("{name}.npy"), large).map_err(|error| invalid(&error))?;
        let failed = |error| FileError::Io { what: name.into(), error };
        self.archive.write_all(&bytes).map_err(failed)?;
        self.tensors.push(name.into());
        Ok(self)
    }

    /// The bytes of the file.
    ///
    /// # Errors
    ///
    /// If the archive cannot hold what was put in.
    pub fn into_bytes(self) -> Result<Vec<u8>, FileError> {
        Ok(self.archive.finish().map_err(|error| invalid(&error))?.into_inner())
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// As for [`into_bytes`](Writer::into_bytes), and if the file cannot be written.
    pub fn save(self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        let failed = |error| FileError::Io { what: path.display().to_string(), error };
        std::fs::write(path, self.into_bytes()?).map_err(failed)
    }
}
