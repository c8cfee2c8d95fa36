//! Files of numpy's with many tensors, `.npz`: an archive of the crate `zip`, whose members are [`npy`] files.

use super::element::{Stored, streamed};
use super::names::shortened;
use super::{AlignedBytes, Entry, FileError, npy, save};
use crate::convert::{AxisDims, CountOf};
use crate::named::Named;
use crate::rank::Rank0;
use crate::set::Sorted;
use crate::tensor::Computable;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::io::{Cursor, Read, Write};
use std::path::Path;
use zip::read::ZipFile;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// In the name of an array of bytes that is text, this precedes the name of the text.
#[cfg(feature = "safetensors")]
pub(crate) const TEXT_OF: &str = "text of ";

fn invalid(error: &ZipError) -> FileError {
    FileError::Format { what: shortened(&error.to_string()) }
}

/// A file for reading, from which tensors are taken one by one.
pub struct NpzReader<B: AsRef<[u8]> = AlignedBytes> {
    archive: ZipArchive<Cursor<B>>,
}

impl NpzReader {
    /// Reads a file into memory.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not a valid one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::new(AlignedBytes::read(&path)?).map_err(|error| error.of(path.as_ref()))
    }
}

impl<B: AsRef<[u8]>> NpzReader<B> {
    /// A file that is in memory already, or mapped into it.
    ///
    /// # Errors
    ///
    /// If it is not a valid one.
    pub fn new(bytes: B) -> Result<Self, FileError> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| invalid(&error))?;
        Ok(NpzReader { archive })
    }

    /// The names of the tensors, sorted.
    pub fn tensors(&self) -> Vec<String> {
        let names = self.archive.file_names().flatten();
        let mut names: Vec<String> =
            names.filter_map(|name| name.strip_suffix(".npy").map(String::from)).collect();
        names.sort_unstable();
        names
    }

    /// The tensor of that name with the dims `S`, read right into the memory of the tensor: see [`Entry::load`].
    ///
    /// # Errors
    ///
    /// As for [`get`](NpzReader::get) and [`Entry::load`].
    pub fn load<T: Stored, S: Sorted>(&mut self, tensor: &str) -> Result<Named<T, S>, FileError> {
        let mut member = self.member(tensor)?;
        let head = npy::NpyReader::named(
            tensor,
            npy::head(&mut member.file).map_err(|error| member.failed(error))?,
        )?;
        let entry = head.get()?;
        let order = entry.named::<S>()?;
        Ok(entry.of_elements(member.elements(&head, &entry)?, &order))
    }

    /// As [`load`](NpzReader::load), with a dim for each axis, in the order of the file's axes: see [`Entry::load_as`].
    ///
    /// # Errors
    ///
    /// As for [`get`](NpzReader::get) and [`Entry::load_as`].
    pub fn load_as<T: Stored, L>(&mut self, tensor: &str, dims: L) -> Result<Named<T, L::Set>, FileError>
    where
        L: AxisDims<CountOf<L>>,
    {
        let mut member = self.member(tensor)?;
        let head = npy::NpyReader::named(
            tensor,
            npy::head(&mut member.file).map_err(|error| member.failed(error))?,
        )?;
        let entry = head.get()?;
        let order = entry.stated::<L>(&dims)?;
        Ok(entry.of_elements(member.elements(&head, &entry)?, &order))
    }

    /// The tensor of that name, unpacked: for views of it, or where the sizes are to be looked at first. Else [`load`](NpzReader::load) takes
    /// half the memory.
    ///
    /// # Errors
    ///
    /// If there is none, or it is not valid, is longer or shorter than its header says, or has not the checksum that the archive says.
    pub fn get(&mut self, tensor: &str) -> Result<npy::NpyReader, FileError> {
        let mut member = self.member(tensor)?;
        let mut bytes = npy::head(&mut member.file).map_err(|error| member.failed(error))?;
        let len = npy::NpyReader::named(tensor, &bytes)?.len()?;
        bytes.extend_from(member.file.by_ref().take(len as u64)).map_err(|error| member.failed(error))?;
        let unpacked = npy::NpyReader::named(tensor, bytes)?;
        member.end()?;
        Ok(unpacked)
    }

    fn member(&mut self, tensor: &str) -> Result<Member<'_, B>, FileError> {
        let name = format!("{tensor}.npy");
        if self.archive.index_for_name(&name).is_none() {
            return Err(FileError::Missing { tensor: tensor.into(), has: self.tensors() });
        }
        let file = self.archive.by_name(&name).map_err(|error| invalid(&error))?;
        Ok(Member { name: tensor.into(), file })
    }
}

/// A tensor of an archive, as it is unpacked.
struct Member<'r, B: AsRef<[u8]>> {
    name: String,
    file: ZipFile<'r, Cursor<B>>,
}

impl<B: AsRef<[u8]>> Member<'_, B> {
    fn failed(&self, error: std::io::Error) -> FileError {
        FileError::Format { what: shortened(&format!("`{}`: {error}", self.name)) }
    }

    /// The elements, of which there must be as many as the header says.
    fn elements<T: Stored>(&mut self, head: &npy::NpyReader, entry: &Entry<'_>) -> Result<Vec<T>, FileError> {
        entry.check_kind::<T>()?;
        let count = head.len()? / size_of::<T>();
        let elements = streamed(
            |part| self.file.read_exact(part).map_err(|error| self.failed(error)),
            count,
            entry.foreign,
        )?;
        self.end()?;
        Ok(elements)
    }

    /// Nothing is left. (Here the checksum is looked at.)
    fn end(&mut self) -> Result<(), FileError> {
        match self.file.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => {
                Err(FileError::Format { what: format!("`{}` is longer than its header says", self.name) })
            }
            Err(error) => Err(self.failed(error)),
        }
    }
}

/// A file for writing: tensors, with the names of their dims.
pub struct NpzWriter {
    archive: ZipWriter<Cursor<Vec<u8>>>,
    tensors: Vec<String>,
    options: SimpleFileOptions,
}

impl Default for NpzWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl NpzWriter {
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
        NpzWriter { archive: ZipWriter::new(Cursor::default()), tensors: Vec::new(), options }
    }

    /// Adds a tensor, computed if it is an expression.
    ///
    /// # Errors
    ///
    /// If there is a tensor of that name already, and as for [`npy::to_bytes`].
    #[track_caller]
    pub fn put<A>(&mut self, name: &str, tensor: A) -> Result<&mut Self, FileError>
    where
        A: Computable<Rank = Rank0, Elem: Stored>,
    {
        self.put_file(name, &npy::to_bytes(tensor)?)?;
        Ok(self)
    }

    /// Adds a tensor as the bytes of its file.
    pub(super) fn put_file(&mut self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        if self.tensors.iter().any(|other| other == name) {
            return Err(FileError::Unwritable { what: format!("`{name}` is in the file already") });
        }
        let large = self.options.large_file(bytes.len() >= u32::MAX as usize);
        self.archive.start_file(format!("{name}.npy"), large).map_err(|error| invalid(&error))?;
        let failed = |error| FileError::Io { what: name.into(), error };
        self.archive.write_all(bytes).map_err(failed)?;
        self.tensors.push(name.into());
        Ok(())
    }

    /// The bytes of the file.
    ///
    /// # Errors
    ///
    /// If the archive cannot hold what was put in.
    pub fn into_bytes(self) -> Result<Vec<u8>, FileError> {
        Ok(self.archive.finish().map_err(|error| invalid(&error))?.into_inner())
    }

    /// Writes the file. If that fails, a file that was there stays: see [saving](super#saving).
    ///
    /// # Errors
    ///
    /// As for [`into_bytes`](NpzWriter::into_bytes), and if the file cannot be written.
    pub fn save(self, path: impl AsRef<Path>) -> Result<(), FileError> {
        save::save(path.as_ref(), &self.into_bytes()?)
    }
}
