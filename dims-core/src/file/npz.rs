//! NumPy's files with many tensors, `.npz`: zip archives of [`npy`] files.

use super::contents::{Contents, Storable};
use super::element::{Stored, streamed};
use super::names::{FileKind, reason};
use super::{AlignedBytes, Entry, FileError, npy, save};
use crate::creation::convert::{AxisDims, CountOf};
use crate::execute::assign::NoneLeft;
use crate::tensors::named::Named;
use crate::types::set::{DimsOf, Sorted};
use alloc::string::String;
use alloc::vec::Vec;
use ndarray::{ArrayBase, ArrayD, Data, Dimension};
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use zip::read::ZipFile;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The prefix in the name of an array of bytes that stores text.
#[cfg(feature = "safetensors")]
pub(crate) const TEXT_OF: &str = "text of ";

fn invalid(error: &ZipError) -> FileError {
    FileError::format(reason(error))
}

fn unwritable(error: &ZipError) -> FileError {
    FileError::Unwritable { what: reason(error) }
}

/// A reader for a file, from which tensors are taken one by one.
///
/// A small compressed file could exhaust memory when it is unpacked. So a compressed tensor may
/// unpack to at most 256 MiB, or 100 times its compressed size if that is more. Change this limit
/// with [`unpacking_up_to`](NpzReader::unpacking_up_to).
pub struct NpzReader<B: AsRef<[u8]> = AlignedBytes> {
    archive: ZipArchive<Cursor<B>>,
    /// The file, if it was opened by its path.
    path: Option<PathBuf>,
    /// The limit for a compressed tensor in bytes, if it was set.
    most: Option<u64>,
}

/// The default limit in bytes for a compressed array of this size. (Measured or learned numbers
/// unpack to a few times their compressed size, zeros to a thousand times.)
fn allowed(compressed: u64) -> u64 {
    compressed.saturating_mul(100).max(256 << 20)
}

impl NpzReader {
    /// Reads a file into memory.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not valid.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let reader = Self::new(AlignedBytes::read(path)?).map_err(|error| error.of(Some(path)))?;
        Ok(NpzReader { path: Some(path.into()), ..reader })
    }
}

impl<B: AsRef<[u8]>> NpzReader<B> {
    /// A reader for a file in memory.
    ///
    /// # Errors
    ///
    /// If the file is not valid.
    pub fn new(bytes: B) -> Result<Self, FileError> {
        let kind = FileKind::of(bytes.as_ref()).filter(|&kind| kind != FileKind::Npz);
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| match kind {
            Some(kind) => {
                FileError::format(format!("it does not start like {}, but like {kind}", FileKind::Npz))
            }
            None => invalid(&error),
        })?;
        Ok(NpzReader { archive, path: None, most: None })
    }

    /// Sets the limit to which a compressed tensor may unpack.
    ///
    /// ```
    /// use typed_dims::file::npz::{NpzReader, NpzWriter};
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Feat; }
    /// let mut file = NpzWriter::compressed();
    /// file.put("w", zeros::<f32, _>(Feat.of(1000)))?;
    /// let bytes = file.into_bytes()?;
    /// let w: Tensor<f32, (Feat,)> = NpzReader::new(&bytes)?.load("w")?;
    /// assert!(NpzReader::new(&bytes)?.unpacking_up_to(1000).load::<f32, (Feat,)>("w").is_err());
    /// # Ok::<(), typed_dims::file::FileError>(())
    /// ```
    #[must_use]
    pub fn unpacking_up_to(self, bytes: u64) -> Self {
        NpzReader { most: Some(bytes), ..self }
    }

    /// Rejects an archive whose compressed tensors together unpack to more than the default limit.
    #[cfg(feature = "safetensors")]
    pub(crate) fn check_whole(&mut self) -> Result<(), FileError> {
        let (mut unpacked, mut packed) = (0u64, 0u64);
        for at in 0..self.archive.len() {
            let member = self.archive.by_index_raw(at).map_err(|error| invalid(&error))?;
            if member.compression() != CompressionMethod::Stored {
                unpacked = unpacked.saturating_add(member.size());
                packed = packed.saturating_add(member.compressed_size());
            }
        }
        let most = allowed(packed);
        if unpacked <= most {
            return Ok(());
        }
        Err(FileError::format(format!(
            "its tensors unpack to {unpacked} bytes, more than the limit of {most}: take them one by one with `NpzReader`, or store them uncompressed"
        )))
    }

    /// The names of the tensors, sorted.
    pub fn tensors(&self) -> Vec<String> {
        let names = self.archive.file_names().flatten();
        let mut names: Vec<String> =
            names.filter_map(|name| name.strip_suffix(".npy").map(String::from)).collect();
        names.sort_unstable();
        names
    }

    /// Loads the tensor with this name and the dims `S`, like [`Entry::load`]. It is unpacked
    /// directly into the tensor's memory.
    ///
    /// # Errors
    ///
    /// As for [`get`](NpzReader::get) and [`Entry::load`].
    pub fn load<T: Stored, S: Sorted>(&mut self, tensor: &str) -> Result<Named<T, S>, FileError> {
        self.located(tensor, |member| {
            let head = member.head()?;
            let entry = head.get()?;
            let order = entry.named::<S>()?;
            Ok(entry.of_elements(member.elements(&head, &entry)?, &order))
        })
    }

    /// Like [`load`](NpzReader::load), with a dim for each axis, in the order of the file's axes:
    /// see [`Entry::load_as`].
    ///
    /// # Errors
    ///
    /// As for [`get`](NpzReader::get) and [`Entry::load_as`].
    pub fn load_as<T: Stored, L>(&mut self, tensor: &str, dims: L) -> Result<Named<T, L::Set>, FileError>
    where
        L: AxisDims<CountOf<L>>,
    {
        self.located(tensor, |member| {
            let head = member.head()?;
            let entry = head.get()?;
            let order = entry.stated::<L>(&dims)?;
            Ok(entry.of_elements(member.elements(&head, &entry)?, &order))
        })
    }

    /// The elements as an array of dynamic rank: see [`Entry::array`].
    ///
    /// # Errors
    ///
    /// As for [`get`](NpzReader::get) and [`Entry::array`].
    pub fn array<T: Stored>(&mut self, tensor: &str) -> Result<ArrayD<T>, FileError> {
        self.get(tensor)?.get()?.array()
    }

    /// Unpacks the tensor with this name. Use this method for views, or to examine the sizes first.
    /// Otherwise use [`load`](NpzReader::load), which takes less memory. Elements of an unknown
    /// type are not unpacked.
    ///
    /// # Errors
    ///
    /// If there is no such tensor, if it is not valid, or if it unpacks to more than the limit.
    /// Also, for elements of a known type, if it is longer than its header says, or if its checksum
    /// is wrong.
    pub fn get(&mut self, tensor: &str) -> Result<npy::NpyReader, FileError> {
        let path = self.path.clone();
        self.located(tensor, |member| {
            let mut bytes = npy::head(&mut member.file).map_err(|error| member.failed(error))?;
            let head = member.reader(&bytes)?;
            let (len, is_readable) = (member.checked_len(&head)?, head.is_readable());
            bytes.extend_from(member.file.by_ref().take(len as u64)).map_err(|error| member.failed(error))?;
            let unpacked = npy::NpyReader::named(tensor, bytes)?;
            if is_readable {
                member.end()?;
            }
            Ok(unpacked.within(path))
        })
    }

    /// Reads a tensor with `read`. An error names the tensor and the file.
    fn located<X>(
        &mut self,
        tensor: &str,
        read: impl FnOnce(&mut Member<'_, B>) -> Result<X, FileError>,
    ) -> Result<X, FileError> {
        let path = self.path.clone();
        let located = |error: FileError| error.about(tensor).of(path.as_deref());
        let name = format!("{tensor}.npy");
        if self.archive.index_for_name(&name).is_none() {
            return Err(located(FileError::Missing {
                tensor: tensor.into(),
                has: self.tensors(),
                path: None,
            }));
        }
        let file = self.archive.by_name(&name).map_err(|error| located(invalid(&error).of_tensor(tensor)))?;
        let most = match file.compression() {
            CompressionMethod::Stored => None,
            _ => Some(self.most.unwrap_or_else(|| allowed(file.compressed_size()))),
        };
        read(&mut Member { name: tensor.into(), file, most }).map_err(located)
    }
}

/// A tensor of an archive while it is unpacked.
struct Member<'r, B: AsRef<[u8]>> {
    name: String,
    file: ZipFile<'r, Cursor<B>>,
    /// The limit to which it may unpack, if it is compressed.
    most: Option<u64>,
}

impl<B: AsRef<[u8]>> Member<'_, B> {
    fn failed(&self, error: std::io::Error) -> FileError {
        FileError::format(format!("`{}`: {}", self.name, reason(&error)))
    }

    /// The tensor whose file begins with these bytes.
    fn reader<H: AsRef<[u8]>>(&self, head: H) -> Result<npy::NpyReader<H>, FileError> {
        npy::NpyReader::named(&self.name, head).map_err(|error| error.of_tensor(&self.name))
    }

    fn head(&mut self) -> Result<npy::NpyReader, FileError> {
        let head = npy::head(&mut self.file).map_err(|error| self.failed(error))?;
        self.reader(head)
    }

    /// The size of the elements in bytes, if it is within the limit.
    fn checked_len<H: AsRef<[u8]>>(&self, head: &npy::NpyReader<H>) -> Result<usize, FileError> {
        let len = head.len()?;
        match self.most {
            Some(most) if len as u64 > most => Err(FileError::format(format!(
                "`{}` unpacks to {len} bytes, more than the limit of {most}: raise it with `NpzReader::unpacking_up_to`",
                self.name
            ))),
            _ => Ok(len),
        }
    }

    /// The elements. The number of elements in the archive must match the header.
    fn elements<T: Stored>(&mut self, head: &npy::NpyReader, entry: &Entry<'_>) -> Result<Vec<T>, FileError> {
        entry.check_kind::<T>()?;
        let count = self.checked_len(head)? / size_of::<T>();
        let name = self.name.clone();
        let part = |part: &mut [u8]| self.file.read_exact(part).map_err(|error| self.failed(error));
        let elements = streamed(part, count, entry.foreign, &name)?;
        self.end()?;
        Ok(elements)
    }

    /// Checks that nothing is left. (This also verifies the checksum.)
    fn end(&mut self) -> Result<(), FileError> {
        match self.file.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(FileError::format(format!("`{}` is longer than its header says", self.name))),
            Err(error) => Err(self.failed(error)),
        }
    }
}

/// A writer for a file of tensors with the names of their dims.
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
    /// An empty file that stores tensors uncompressed, like `numpy.savez`.
    pub fn new() -> Self {
        Self::with(CompressionMethod::Stored)
    }

    /// An empty file that compresses tensors, like `numpy.savez_compressed`.
    pub fn compressed() -> Self {
        Self::with(CompressionMethod::Deflated)
    }

    fn with(method: CompressionMethod) -> Self {
        let options = SimpleFileOptions::default().compression_method(method);
        NpzWriter { archive: ZipWriter::new(Cursor::default()), tensors: Vec::new(), options }
    }

    /// Adds a tensor, which is computed if it is an expression. Its axes are in the order in which
    /// its dims were declared; [`put_as`](NpzWriter::put_as) takes another order.
    ///
    /// # Errors
    ///
    /// If there already is a tensor with this name, and as for [`npy::to_bytes`].
    #[track_caller]
    pub fn put<A: Storable>(&mut self, name: &str, tensor: A) -> Result<&mut Self, FileError> {
        self.put_file(name, &npy::of_contents(&Contents::tensor(tensor, "NpzWriter::put")?)?)?;
        Ok(self)
    }

    /// Like [`put`](NpzWriter::put), with the axes in the order of `dims`, which must be all dims
    /// of the tensor.
    ///
    /// # Errors
    ///
    /// As for [`put`](NpzWriter::put), and if a size given with a dim differs from its size in the
    /// tensor.
    #[track_caller]
    pub fn put_as<A, L, X>(&mut self, name: &str, tensor: A, dims: L) -> Result<&mut Self, FileError>
    where
        A: Storable,
        L: DimsOf<A::Dims, X>,
        X: NoneLeft,
    {
        self.put_file(name, &npy::of_contents(&Contents::ordered(tensor, &dims, "NpzWriter::put_as")?)?)?;
        Ok(self)
    }

    /// Adds an array of any rank, without names of dims. Read it with [`Entry::array`], or as a
    /// tensor with [`Entry::load_as`].
    ///
    /// # Errors
    ///
    /// If there already is a tensor with this name, or the format lacks the element type.
    pub fn put_array<S, D>(&mut self, name: &str, array: &ArrayBase<S, D>) -> Result<&mut Self, FileError>
    where
        S: Data<Elem: Stored>,
        D: Dimension,
    {
        self.put_file(name, &npy::of_contents(&Contents::array(array))?)?;
        Ok(self)
    }

    /// Adds a tensor as the bytes of its file.
    pub(super) fn put_file(&mut self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        if self.tensors.iter().any(|other| other == name) {
            return Err(FileError::Unwritable { what: format!("`{name}` is in the file already") });
        }
        let large = self.options.large_file(bytes.len() >= u32::MAX as usize);
        self.archive.start_file(format!("{name}.npy"), large).map_err(|error| unwritable(&error))?;
        let failed = |error| FileError::Io { what: name.into(), error };
        self.archive.write_all(bytes).map_err(failed)?;
        self.tensors.push(name.into());
        Ok(())
    }

    /// The bytes of the file.
    ///
    /// # Errors
    ///
    /// If the contents exceed the limits of the archive.
    pub fn into_bytes(self) -> Result<Vec<u8>, FileError> {
        Ok(self.archive.finish().map_err(|error| unwritable(&error))?.into_inner())
    }

    /// Writes the file. If that fails, an existing file is unchanged: see [saving](super#saving).
    ///
    /// # Errors
    ///
    /// As for [`into_bytes`](NpzWriter::into_bytes), and if the file cannot be written.
    pub fn save(self, path: impl AsRef<Path>) -> Result<(), FileError> {
        save::save(path.as_ref(), &self.into_bytes()?)
    }
}
