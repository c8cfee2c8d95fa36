//! [safetensors](https://github.com/huggingface/safetensors) files.

use super::contents::{Contents, Storable};
use super::element::{ElementKind, Stored, encoded};
use super::names::{FileKind, read, reason, written};
#[cfg(feature = "npy")]
use super::npy;
use super::{AlignedBytes, Entry, FileError, save};
use crate::execute::assign::NoneLeft;
use crate::types::set::{DimKey, DimsOf};
#[cfg(feature = "npy")]
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ndarray::{ArrayBase, Data, Dimension};
use safetensors::tensor::{Metadata, TensorView};
use safetensors::{Dtype, SafeTensorError, serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The key of a tensor's dims in the metadata.
fn names_of(tensor: &str) -> String {
    format!("dims of {tensor}")
}

fn dtype(kind: ElementKind) -> Option<Dtype> {
    Some(match kind {
        ElementKind::Bool => Dtype::BOOL,
        ElementKind::Unsigned(1) => Dtype::U8,
        ElementKind::Unsigned(2) => Dtype::U16,
        ElementKind::Unsigned(4) => Dtype::U32,
        ElementKind::Unsigned(8) => Dtype::U64,
        ElementKind::Signed(1) => Dtype::I8,
        ElementKind::Signed(2) => Dtype::I16,
        ElementKind::Signed(4) => Dtype::I32,
        ElementKind::Signed(8) => Dtype::I64,
        ElementKind::Float(2) => Dtype::F16,
        ElementKind::Float(4) => Dtype::F32,
        ElementKind::Float(8) => Dtype::F64,
        ElementKind::Brain => Dtype::BF16,
        ElementKind::Complex(8) => Dtype::C64,
        _ => return None,
    })
}

fn kind(dtype: Dtype) -> Option<ElementKind> {
    Some(match dtype {
        Dtype::BOOL => ElementKind::Bool,
        Dtype::U8 => ElementKind::Unsigned(1),
        Dtype::U16 => ElementKind::Unsigned(2),
        Dtype::U32 => ElementKind::Unsigned(4),
        Dtype::U64 => ElementKind::Unsigned(8),
        Dtype::I8 => ElementKind::Signed(1),
        Dtype::I16 => ElementKind::Signed(2),
        Dtype::I32 => ElementKind::Signed(4),
        Dtype::I64 => ElementKind::Signed(8),
        Dtype::F16 => ElementKind::Float(2),
        Dtype::F32 => ElementKind::Float(4),
        Dtype::F64 => ElementKind::Float(8),
        Dtype::BF16 => ElementKind::Brain,
        Dtype::C64 => ElementKind::Complex(8),
        dtype if is_raw(dtype) => ElementKind::Unsigned(1),
        _ => return None,
    })
}

/// Whether elements are read as raw bytes. Rust has no 8-bit floats.
fn is_raw(dtype: Dtype) -> bool {
    use Dtype::{F8_E4M3, F8_E4M3FNUZ, F8_E5M2, F8_E5M2FNUZ, F8_E8M0};
    matches!(dtype, F8_E4M3 | F8_E5M2 | F8_E8M0 | F8_E4M3FNUZ | F8_E5M2FNUZ)
}

fn unwritable(error: &SafeTensorError) -> FileError {
    FileError::Unwritable { what: reason(error) }
}

/// The length of the longest header that is read: the format's limit.
const LONGEST: u64 = 100_000_000;

/// The position of the elements, and the parsed header.
///
/// (`SafeTensors::read_metadata` would add the length of the header to the end of the last tensor.
/// This sum can overflow, because the header can give any end.)
fn read_header(file: &[u8]) -> Result<(usize, Metadata), FileError> {
    let cut = || FileError::format("the file ends before its header does");
    let (len, rest) = file.split_first_chunk::<8>().ok_or_else(cut)?;
    let len = u64::from_le_bytes(*len);
    if len > LONGEST {
        let what = match FileKind::of(file) {
            Some(kind) => format!("it does not start like {}, but like {kind}", FileKind::Safetensors),
            None => format!("a header of {len} bytes is too long"),
        };
        return Err(FileError::format(what));
    }
    let (header, elements) = rest.split_at_checked(len as usize).ok_or_else(cut)?;
    let metadata: Metadata = serde_json::from_slice(header)
        .map_err(|error| FileError::format(format!("the header is not valid: {}", reason(&error))))?;
    let (taken, bytes) = (metadata.data_len(), elements.len());
    if taken != bytes {
        let what = format!("the tensors take {taken} bytes, but the file has {bytes} after its header");
        return Err(FileError::format(what));
    }
    Ok((file.len() - bytes, metadata))
}

/// A reader for a file: its bytes and its parsed header.
pub struct SafetensorsReader<B = AlignedBytes> {
    bytes: B,
    /// The position of the elements.
    start: usize,
    metadata: Metadata,
    /// The path of the file, if it was opened from a path.
    path: Option<PathBuf>,
}

impl SafetensorsReader {
    /// Reads a file into memory.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not valid.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let reader = Self::new(AlignedBytes::read(path)?).map_err(|error| error.of(Some(path)))?;
        Ok(SafetensorsReader { path: Some(path.into()), ..reader })
    }
}

impl<B: AsRef<[u8]>> SafetensorsReader<B> {
    /// A reader for a file in memory.
    ///
    /// # Errors
    ///
    /// If the file is not valid. The tensors in the header must cover all bytes after it exactly
    /// once.
    pub fn new(bytes: B) -> Result<Self, FileError> {
        let (start, metadata) = read_header(bytes.as_ref())?;
        Ok(SafetensorsReader { bytes, start, metadata, path: None })
    }

    /// The path of the file, if it was opened from a path.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The names of the tensors, sorted.
    pub fn tensors(&self) -> Vec<String> {
        let mut names = self.metadata.offset_keys();
        names.sort_unstable();
        names
    }

    /// The text under a name in the metadata, as written by [`SafetensorsWriter::note`].
    ///
    /// ```
    /// use typed_dims::file::safetensors::{SafetensorsReader, SafetensorsWriter};
    ///
    /// let bytes = SafetensorsWriter::new().note("steps", "500")?.to_bytes()?;
    /// let file = SafetensorsReader::new(bytes)?;
    /// assert_eq!((file.note("steps"), file.note("seed")), (Some("500"), None));
    /// # Ok::<(), typed_dims::file::FileError>(())
    /// ```
    pub fn note(&self, name: &str) -> Option<&str> {
        Some(self.metadata.metadata().as_ref()?.get(name)?.as_str())
    }

    /// The names of all notes in the metadata, sorted.
    pub(crate) fn notes(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.metadata.metadata().iter().flat_map(|all| all.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The tensor with this name.
    ///
    /// 8-bit floats (`F8_E4M3`, `F8_E5M2` and the like) are read as raw bytes, of type `u8`.
    /// [`Entry::element_type`] returns the name of their type.
    ///
    /// # Errors
    ///
    /// If there is no such tensor, or the names of its dims are invalid.
    pub fn get(&self, tensor: &str) -> Result<Entry<'_>, FileError> {
        let path = self.path.as_deref();
        let Some(info) = self.metadata.info(tensor) else {
            let has = self.tensors();
            return Err(FileError::Missing { tensor: tensor.into(), has, path: None }.of(path));
        };
        let (start, end) = info.data_offsets;
        let bytes = self.bytes.as_ref().get(self.start + start..self.start + end);
        let bytes =
            bytes.ok_or_else(|| FileError::format(format!("`{tensor}` is outside of the file")).of(path))?;
        let names = self.metadata.metadata().as_ref().and_then(|all| all.get(&names_of(tensor)));
        Ok(Entry {
            tensor: tensor.into(),
            path,
            kind: kind(info.dtype),
            called: info.dtype.to_string(),
            is_raw: is_raw(info.dtype),
            sizes: info.shape.clone(),
            reversed: false,
            foreign: cfg!(target_endian = "big"),
            names: names
                .map(|text| read(text, &info.shape))
                .transpose()
                .map_err(|error| error.of_tensor(tensor).of(path))?,
            bytes,
        })
    }
}

/// A writer for a file of tensors with the names of their dims.
///
/// ```text
/// let mut file = safetensors::SafetensorsWriter::new();
/// file.put("w", &w)?.put("b", &b)?;
/// file.save("model.safetensors")?;
/// ```
#[derive(Default)]
pub struct SafetensorsWriter {
    tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
    metadata: HashMap<String, String>,
}

impl SafetensorsWriter {
    /// An empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor, which is computed if it is an expression. Its axes are in the order in which
    /// its dims were declared; [`put_as`](SafetensorsWriter::put_as) takes another order.
    ///
    /// # Errors
    ///
    /// If there already is a tensor with this name or a note called `dims of <name>`, if the name
    /// is `__metadata__`, which the format reserves, if two of the tensor's dims have the same
    /// name, if the format lacks the element type (complex numbers of `f64`), if the tensor cannot
    /// be computed, for example because sizes conflict, or if a gradient or a recorded function
    /// traces it.
    #[track_caller]
    pub fn put<A: Storable>(&mut self, name: &str, tensor: A) -> Result<&mut Self, FileError> {
        self.put_contents(name, &Contents::tensor(tensor, "SafetensorsWriter::put")?)?;
        Ok(self)
    }

    /// Like [`put`](SafetensorsWriter::put), with the axes in the order of `dims`, which must be
    /// all dims of the tensor.
    ///
    /// # Errors
    ///
    /// As for [`put`](SafetensorsWriter::put), and if a size given with a dim differs from its size
    /// in the tensor.
    #[track_caller]
    pub fn put_as<A, L, X>(&mut self, name: &str, tensor: A, dims: L) -> Result<&mut Self, FileError>
    where
        A: Storable,
        L: DimsOf<A::Dims, X>,
        X: NoneLeft,
    {
        self.put_contents(name, &Contents::ordered(tensor, &dims, "SafetensorsWriter::put_as")?)?;
        Ok(self)
    }

    /// Adds an array of any rank, without names of dims. Read it with [`Entry::array`], or as a
    /// tensor with [`Entry::load_as`].
    ///
    /// # Errors
    ///
    /// If the name cannot be used (see [`put`](SafetensorsWriter::put)), or the format lacks the
    /// element type.
    pub fn put_array<S, D>(&mut self, name: &str, array: &ArrayBase<S, D>) -> Result<&mut Self, FileError>
    where
        S: Data<Elem: Stored>,
        D: Dimension,
    {
        self.put_contents(name, &Contents::array(array))?;
        Ok(self)
    }

    fn put_contents<T: Stored>(&mut self, name: &str, contents: &Contents<T>) -> Result<(), FileError> {
        self.put_named(name, contents.names()?, &contents.sizes, &contents.elements)
    }

    /// Adds the elements of a tensor with these dims and sizes, the last dim fastest.
    pub(crate) fn put_elements<T: Stored>(
        &mut self,
        name: &str,
        keys: &[DimKey],
        sizes: &[usize],
        data: &[T],
    ) -> Result<(), FileError> {
        self.put_named(name, Some(written(keys.iter())?), sizes, data)
    }

    fn put_named<T: Stored>(
        &mut self,
        name: &str,
        names: Option<String>,
        sizes: &[usize],
        data: &[T],
    ) -> Result<(), FileError> {
        let invalid = |what: String| FileError::Unwritable { what };
        if name == "__metadata__" {
            return Err(invalid("`__metadata__` is the format's own name, not that of a tensor".into()));
        }
        if self.tensors.iter().any(|(other, ..)| other == name) {
            return Err(invalid(format!("`{name}` is in the file already")));
        }
        let dtype = dtype(T::KIND)
            .ok_or_else(|| invalid(format!("safetensors has no elements of type `{}`", T::NAME)))?;
        if self.metadata.contains_key(&names_of(name)) {
            return Err(invalid(format!("`{}` is in the metadata already", names_of(name))));
        }
        if let Some(names) = names {
            self.metadata.insert(names_of(name), names);
        }
        self.tensors.push((name.into(), dtype, sizes.to_vec(), encoded(data)));
        Ok(())
    }

    /// Adds the tensors and the notes of another file. On an error, nothing is added.
    pub(crate) fn append(&mut self, other: Self) -> Result<(), FileError> {
        let is_here = |name: &str| self.tensors.iter().any(|(own, ..)| own == name);
        if let Some((name, ..)) = other.tensors.iter().find(|(name, ..)| is_here(name)) {
            return Err(FileError::Unwritable { what: format!("`{name}` is in the file already") });
        }
        if let Some(note) = other.metadata.keys().filter(|note| self.has_note(note)).min() {
            return Err(FileError::Unwritable { what: format!("`{note}` is in the metadata already") });
        }
        self.tensors.extend(other.tensors);
        self.metadata.extend(other.metadata);
        Ok(())
    }

    pub(crate) fn has_note(&self, name: &str) -> bool {
        self.metadata.contains_key(name)
    }

    /// Adds an entry to the metadata: text under a name.
    ///
    /// # Errors
    ///
    /// If there already is text under this name, or the name is `dims of <tensor>` for a tensor in
    /// the file.
    pub fn note(&mut self, name: &str, text: &str) -> Result<&mut Self, FileError> {
        if self.metadata.contains_key(name) {
            return Err(FileError::Unwritable { what: format!("`{name}` is in the metadata already") });
        }
        let named = name.strip_prefix("dims of ");
        if named.is_some_and(|named| self.tensors.iter().any(|(tensor, ..)| tensor == named)) {
            return Err(FileError::Unwritable { what: format!("`{name}` would name the dims of a tensor") });
        }
        self.metadata.insert(name.into(), text.into());
        Ok(self)
    }

    /// The same tensors and notes as an `.npz` archive, in which each note is an array of bytes.
    ///
    /// # Errors
    ///
    /// If NumPy lacks the element type of a tensor, if names of dims are too long for a header, if
    /// the name of a tensor begins with `text of `, like the names of notes, or as for
    /// [`NpzWriter::into_bytes`](super::npz::NpzWriter::into_bytes).
    #[cfg(feature = "npy")]
    pub(crate) fn to_npz(&self) -> Result<Vec<u8>, FileError> {
        let mut archive = super::npz::NpzWriter::new();
        let mut notes: BTreeMap<&str, &str> =
            self.metadata.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        for (name, dtype, sizes, bytes) in &self.tensors {
            if name.starts_with(super::npz::TEXT_OF) {
                let what = format!("the name of the tensor `{name}` is that of a note in an archive");
                return Err(FileError::Unwritable { what });
            }
            let names = notes.remove(names_of(name).as_str());
            let kind = kind(*dtype).expect("the type was made from a kind");
            archive.put_file(name, &npy::of_elements(kind, names, sizes, bytes)?)?;
        }
        for (name, text) in notes {
            let bytes =
                npy::of_elements(ElementKind::Unsigned(1), Some("Byte"), &[text.len()], text.as_bytes())?;
            archive.put_file(&format!("{}{name}", super::npz::TEXT_OF), &bytes)?;
        }
        archive.into_bytes()
    }

    /// The bytes of the file.
    ///
    /// # Errors
    ///
    /// If the header exceeds the format's limit of 100 MB.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        let mut views = Vec::with_capacity(self.tensors.len());
        for (name, dtype, sizes, bytes) in &self.tensors {
            let view = TensorView::new(*dtype, sizes.clone(), bytes).map_err(|error| unwritable(&error))?;
            views.push((name, view));
        }
        // Without tensors, the crate writes a header that is not JSON if the metadata is an empty map.
        let metadata = (!self.metadata.is_empty()).then(|| self.metadata.clone());
        serialize(views, metadata).map_err(|error| unwritable(&error))
    }

    /// Writes the file. If that fails, an existing file is unchanged: see [saving](super#saving).
    ///
    /// # Errors
    ///
    /// As for [`to_bytes`](SafetensorsWriter::to_bytes), and if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        save::save(path.as_ref(), &self.to_bytes()?)
    }
}
