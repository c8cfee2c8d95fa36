//! NumPy's files with one tensor, `.npy`.
//!
//! A file consists of a header and the elements. The header is a Python dictionary with three
//! entries:
//!
//! ```text
//! {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  # dims: Batch, Feat = 3
//! ```
//!
//! NumPy ignores the comment. The types of records, which are lists, are kept as text; other Python
//! literals are refused. So the parser does not recurse.

use super::contents::{Contents, Storable};
use super::element::{ElementKind, Stored};
use super::names::{FileKind, NPY_MAGIC as MAGIC, read, shortened};
use super::{AlignedBytes, Entry, FileError, save};
use crate::execute::assign::NoneLeft;
use crate::plan::shape::volume;
use crate::types::set::DimsOf;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ndarray::{ArrayBase, Data, Dimension};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The prefix of the names in a header.
const COMMENT: &str = "# dims:";

/// Headers are padded so that the elements start at a multiple of this and are aligned.
const ALIGNED: usize = 64;

/// The length of the longest header that is read or written. (NumPy's default limit is 10000.)
const LONGEST: usize = 1 << 16;

fn invalid(what: impl Into<String>) -> FileError {
    FileError::format(what)
}

/// A reader for a file: its bytes and its parsed header.
pub struct NpyReader<B = AlignedBytes> {
    /// The name of the tensor in messages.
    name: String,
    /// The file, if it was opened by its path.
    path: Option<PathBuf>,
    bytes: B,
    header: Header,
    start: usize,
}

impl NpyReader {
    /// Reads a file into memory.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not valid.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let reader = Self::named(&name, AlignedBytes::read(path)?).map_err(|error| error.of(Some(path)))?;
        Ok(reader.within(Some(path.into())))
    }
}

impl<B: AsRef<[u8]>> NpyReader<B> {
    /// A reader for a file in memory.
    ///
    /// # Errors
    ///
    /// If the file is not valid.
    pub fn new(bytes: B) -> Result<Self, FileError> {
        Self::named("npy", bytes)
    }

    pub(super) fn named(name: &str, bytes: B) -> Result<Self, FileError> {
        let (header, start) = Header::read(bytes.as_ref())?;
        Ok(NpyReader { name: name.into(), path: None, bytes, header, start })
    }

    /// Adds the path of the file.
    pub(super) fn within(self, path: Option<PathBuf>) -> Self {
        NpyReader { path, ..self }
    }

    /// The size of all elements in bytes according to the header. It is 0 for an unknown element
    /// type, whose elements cannot be read.
    pub(super) fn len(&self) -> Result<usize, FileError> {
        let bytes = kind(&self.header.descr).map_or(0, |(kind, _)| kind.bytes());
        let len = volume(self.header.sizes.iter().copied(), bytes).map(|elements| elements * bytes);
        len.ok_or_else(|| invalid(format!("the product of the sizes of `{}` is too large", self.name)))
    }

    /// Whether the element type is known.
    pub(super) fn is_readable(&self) -> bool {
        kind(&self.header.descr).is_some()
    }

    /// The tensor.
    ///
    /// # Errors
    ///
    /// If the names of its dims are invalid.
    pub fn get(&self) -> Result<Entry<'_>, FileError> {
        let Header { descr, reversed, sizes, names } = &self.header;
        let (kind, foreign) = kind(descr).map_or((None, false), |(kind, foreign)| (Some(kind), foreign));
        Ok(Entry {
            tensor: self.name.clone(),
            path: self.path.as_deref(),
            kind,
            called: shortened(descr),
            is_raw: false,
            sizes: sizes.clone(),
            reversed: *reversed,
            foreign,
            names: names
                .as_deref()
                .map(|text| read(text, sizes))
                .transpose()
                .map_err(|error| error.of_tensor(&self.name).of(self.path.as_deref()))?,
            bytes: &self.bytes.as_ref()[self.start..],
        })
    }
}

/// Reads the bytes of a file up to its elements.
pub(super) fn head(mut file: impl Read) -> Result<AlignedBytes, std::io::Error> {
    let mut head = AlignedBytes::default();
    // Errors in the header, and a header that is cut off, are found when it is parsed.
    head.extend_from(file.by_ref().take(SHORTEST as u64))?;
    let len = match *head.as_ref() {
        [.., 1, 0, a, b] => usize::from(u16::from_le_bytes([a, b])),
        [.., 2 | 3, 0, _, _] => {
            head.extend_from(file.by_ref().take(2))?;
            match *head.as_ref() {
                [.., a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
                _ => 0,
            }
        }
        _ => 0,
    };
    head.extend_from(file.take(len.min(LONGEST) as u64))?;
    Ok(head)
}

/// The number of bytes that are read first: the magic number, the version, and two bytes of the
/// header's length. In version 1, the length has only these two bytes.
const SHORTEST: usize = MAGIC.len() + 4;

/// A parsed header.
#[derive(Debug, PartialEq)]
struct Header {
    descr: String,
    reversed: bool,
    sizes: Vec<usize>,
    names: Option<String>,
}

impl Header {
    /// The header, and the position of the elements.
    fn read(bytes: &[u8]) -> Result<(Self, usize), FileError> {
        let cut = || invalid("the file ends before its header does");
        let version = bytes.strip_prefix(MAGIC).ok_or_else(|| match FileKind::of(bytes) {
            Some(kind) => invalid(format!("it does not start like {}, but like {kind}", FileKind::Npy)),
            None => invalid(format!("it does not start like {}", FileKind::Npy)),
        })?;
        let (len, start) = match *version.get(..6).ok_or_else(cut)? {
            [1, 0, a, b, ..] => (usize::from(u16::from_le_bytes([a, b])), MAGIC.len() + 4),
            [2 | 3, 0, a, b, c, d] => (u32::from_le_bytes([a, b, c, d]) as usize, MAGIC.len() + 6),
            [major, minor, ..] => return Err(invalid(format!("version {major}.{minor} is not known"))),
            _ => return Err(cut()),
        };
        if len > LONGEST {
            return Err(invalid(format!("a header of {len} bytes is too long")));
        }
        let text = bytes.get(start..start + len).ok_or_else(cut)?;
        let text = match version[0] {
            // Before version 3, headers are Latin-1.
            1 | 2 => text.iter().map(|&byte| char::from(byte)).collect(),
            _ => core::str::from_utf8(text).map_err(|_| invalid("the header is not text"))?.to_string(),
        };
        Ok((Self::parse(&text)?, start + len))
    }

    fn parse(text: &str) -> Result<Self, FileError> {
        let mut words = Words(text);
        let (mut descr, mut reversed, mut sizes) = (None, None, None);
        words.expect('{')?;
        while !words.skip('}') {
            let key = words.string()?;
            words.expect(':')?;
            match key {
                "descr" if descr.is_none() => {
                    let is_list = words.0.trim_start().starts_with('[');
                    let text = if is_list { words.list()? } else { words.string()? };
                    descr = Some(text.to_string());
                }
                "fortran_order" if reversed.is_none() => reversed = Some(words.boolean()?),
                "shape" if sizes.is_none() => sizes = Some(words.sizes()?),
                key => return Err(invalid(format!("the header has `{}` in it", shortened(key)))),
            }
            if !words.skip(',') {
                words.expect('}')?;
                break;
            }
        }
        let rest = words.0.trim();
        let names = rest.strip_prefix(COMMENT).map(|names| names.trim().to_string());
        if names.is_none() && !rest.is_empty() && !rest.starts_with('#') {
            return Err(invalid(format!("the header ends in `{}`", shortened(rest))));
        }
        match (descr, reversed, sizes) {
            (Some(descr), Some(reversed), Some(sizes)) => Ok(Header { descr, reversed, sizes, names }),
            _ => Err(invalid("the header lacks one of `descr`, `fortran_order` and `shape`")),
        }
    }
}

/// The unparsed rest of a header.
struct Words<'t>(&'t str);

impl<'t> Words<'t> {
    fn skip(&mut self, c: char) -> bool {
        match self.0.trim_start().strip_prefix(c) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, c: char) -> Result<(), FileError> {
        if self.skip(c) { Ok(()) } else { Err(self.not(&format!("`{c}`"))) }
    }

    fn not(&self, expected: &str) -> FileError {
        invalid(format!("the header has `{}` where {expected} is expected", shortened(self.0.trim())))
    }

    fn string(&mut self) -> Result<&'t str, FileError> {
        let quote = if self.skip('\'') {
            '\''
        } else if self.skip('"') {
            '"'
        } else {
            return Err(self.not("a plain string"));
        };
        let (text, rest) = self.0.split_once(quote).ok_or_else(|| self.not("the end of a string"))?;
        self.0 = rest;
        Ok(text)
    }

    /// The text of a list, whose first bracket comes next.
    fn list(&mut self) -> Result<&'t str, FileError> {
        let text = self.0.trim_start();
        let (mut depth, mut quote) = (0usize, None::<char>);
        for (at, c) in text.char_indices() {
            match (quote, c) {
                (Some(open), _) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, '[') => depth += 1,
                (None, ']') if depth == 1 => {
                    let (list, rest) = text.split_at(at + 1);
                    self.0 = rest;
                    return Ok(list);
                }
                (None, ']') => depth -= 1,
                (None, _) => {}
            }
        }
        Err(self.not("the end of a list"))
    }

    fn boolean(&mut self) -> Result<bool, FileError> {
        let text = self.0.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = text.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(self.not("`True` or `False`"))
    }

    fn sizes(&mut self) -> Result<Vec<usize>, FileError> {
        let mut sizes = Vec::new();
        self.expect('(')?;
        while !self.skip(')') {
            let text = self.0.trim_start();
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            sizes.push(text[..end].parse().map_err(|_| self.not("a size"))?);
            // Python 2 wrote `3L`.
            self.0 = text[end..].strip_prefix('L').unwrap_or(&text[end..]);
            if !self.skip(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(sizes)
    }
}

/// The element type of a `descr`, and whether its byte order differs from this machine's.
fn kind(descr: &str) -> Option<(ElementKind, bool)> {
    let mut chars = descr.chars();
    let foreign = match chars.next()? {
        '<' => cfg!(target_endian = "big"),
        '>' => cfg!(target_endian = "little"),
        '|' | '=' => false,
        _ => return None,
    };
    let kind = match (chars.next()?, chars.as_str()) {
        ('b', "1") => ElementKind::Bool,
        ('u', "1") => ElementKind::Unsigned(1),
        ('u', "2") => ElementKind::Unsigned(2),
        ('u', "4") => ElementKind::Unsigned(4),
        ('u', "8") => ElementKind::Unsigned(8),
        ('i', "1") => ElementKind::Signed(1),
        ('i', "2") => ElementKind::Signed(2),
        ('i', "4") => ElementKind::Signed(4),
        ('i', "8") => ElementKind::Signed(8),
        ('f', "2") => ElementKind::Float(2),
        ('f', "4") => ElementKind::Float(4),
        ('f', "8") => ElementKind::Float(8),
        ('c', "8") => ElementKind::Complex(8),
        ('c', "16") => ElementKind::Complex(16),
        _ => return None,
    };
    Some((kind, foreign))
}

fn descr(kind: ElementKind) -> Option<String> {
    let letter = match kind {
        ElementKind::Bool => 'b',
        ElementKind::Unsigned(_) => 'u',
        ElementKind::Signed(_) => 'i',
        ElementKind::Float(_) => 'f',
        ElementKind::Complex(_) => 'c',
        ElementKind::Brain => return None,
    };
    let order = if kind.bytes() == 1 { '|' } else { '<' };
    Some(format!("{order}{letter}{}", kind.bytes()))
}

/// The bytes of a file with the tensor, which is computed if it is an expression. Its axes are in
/// the order in which its dims were declared; [`to_bytes_as`] takes another order.
///
/// # Errors
///
/// If two of its dims have the same name, if the names of its dims are too long for a header, if
/// NumPy lacks the element type (`bf16`), if the tensor cannot be computed, for example because
/// sizes conflict, or if a gradient or a recorded function traces it.
#[track_caller]
pub fn to_bytes<A: Storable>(tensor: A) -> Result<Vec<u8>, FileError> {
    of_contents(&Contents::tensor(tensor, "npy")?)
}

/// Like [`to_bytes`], with the axes in the order of `dims`, which must be all dims of the tensor.
///
/// # Errors
///
/// As for [`to_bytes`], and if a size given with a dim differs from its size in the tensor.
#[track_caller]
pub fn to_bytes_as<A, L, X>(tensor: A, dims: L) -> Result<Vec<u8>, FileError>
where
    A: Storable,
    L: DimsOf<A::Dims, X>,
    X: NoneLeft,
{
    of_contents(&Contents::ordered(tensor, &dims, "npy")?)
}

/// The bytes of a file with a tensor or an array.
pub(super) fn of_contents<T: Stored>(contents: &Contents<T>) -> Result<Vec<u8>, FileError> {
    of_elements(T::KIND, contents.names()?.as_deref(), &contents.sizes, &contents.bytes())
}

/// The bytes of a file with these bytes as elements, the last axis fastest.
pub(super) fn of_elements(
    kind: ElementKind,
    names: Option<&str>,
    sizes: &[usize],
    elements: &[u8],
) -> Result<Vec<u8>, FileError> {
    let descr = descr(kind)
        .ok_or_else(|| FileError::Unwritable { what: "numpy has no elements of type `bf16`".into() })?;
    let rank = sizes.len();
    let sizes: String = sizes.iter().map(|size| format!("{size}, ")).collect();
    let sizes = if rank == 1 { sizes.trim_end().into() } else { sizes.trim_end_matches(", ").to_string() };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
    if let Some(names) = names {
        text.push_str(&format!("  {COMMENT} {names}"));
    }
    // Version 2 allows longer headers, for the names of many dims. Version 3 allows names that are
    // not ASCII.
    let version = if !text.is_ascii() { 3 } else { 1 + u8::from(text.len() + ALIGNED > u16::MAX.into()) };
    let before = MAGIC.len() + if version == 1 { 4 } else { 6 };
    let len = (before + text.len() + 1).next_multiple_of(ALIGNED) - before;
    if len > LONGEST {
        let what = format!("its header would have {len} bytes, more than the limit of {LONGEST}");
        return Err(FileError::Unwritable { what });
    }
    text.extend(core::iter::repeat_n(' ', len - 1 - text.len()));
    text.push('\n');
    let mut bytes = [MAGIC, &[version, 0]].concat();
    match version {
        1 => bytes.extend((len as u16).to_le_bytes()),
        _ => bytes.extend((len as u32).to_le_bytes()),
    }
    bytes.extend(text.as_bytes());
    bytes.extend(elements);
    Ok(bytes)
}

/// Writes the tensor to a file. If that fails, an existing file is unchanged: see
/// [saving](super#saving).
///
/// The axes are in the order in which the dims were declared; [`save_as`] takes another order.
///
/// # Errors
///
/// As for [`to_bytes`], and if the file cannot be written.
#[track_caller]
pub fn save<A: Storable>(path: impl AsRef<Path>, tensor: A) -> Result<(), FileError> {
    save::save(path.as_ref(), &to_bytes(tensor)?)
}

/// Like [`save`], with the axes in the order of `dims`, which must be all dims of the tensor.
///
/// ```
/// use typed_dims::file::npy::{self, NpyReader};
/// use typed_dims::prelude::*;
///
/// dims! { struct Row; struct Column; }
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("x.npy");
/// let x = ones::<f32, _>((Row.of(2), Column.of(3)));
/// npy::save_as(&path, &x, (Column, Row))?;
/// assert_eq!(NpyReader::open(&path)?.get()?.sizes(), [3, 2]);
/// # Ok::<(), typed_dims::file::FileError>(())
/// ```
///
/// # Errors
///
/// As for [`to_bytes_as`], and if the file cannot be written.
#[track_caller]
pub fn save_as<A, L, X>(path: impl AsRef<Path>, tensor: A, dims: L) -> Result<(), FileError>
where
    A: Storable,
    L: DimsOf<A::Dims, X>,
    X: NoneLeft,
{
    save::save(path.as_ref(), &to_bytes_as(tensor, dims)?)
}

/// Writes an array of any rank to a file, without names of dims. Read it with [`Entry::array`], or
/// as a tensor with [`Entry::load_as`].
///
/// ```
/// use typed_dims::file::npy::{self, NpyReader};
/// use typed_dims::prelude::*;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.npy");
/// npy::save_array(&path, &array![[1.0, 2.0], [3.0, 4.0]])?;
/// let a: ArrayD<f64> = NpyReader::open(&path)?.get()?.array()?;
/// assert_eq!(a, array![[1.0, 2.0], [3.0, 4.0]].into_dyn());
/// # Ok::<(), typed_dims::file::FileError>(())
/// ```
///
/// # Errors
///
/// If NumPy lacks the element type (`bf16`), or the file cannot be written.
pub fn save_array<S, D>(path: impl AsRef<Path>, array: &ArrayBase<S, D>) -> Result<(), FileError>
where
    S: Data<Elem: Stored>,
    D: Dimension,
{
    save::save(path.as_ref(), &of_contents(&Contents::array(array))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_is_too_long_is_not_written() {
        let written = |len: usize| {
            let names = "x".repeat(len);
            of_elements(ElementKind::Bool, Some(&names), &[], &[1]).map_err(|error| error.to_string())
        };
        let file = written(LONGEST - 200).unwrap();
        assert_eq!(Header::read(&file).unwrap().1, file.len() - 1);
        let error = written(LONGEST).unwrap_err();
        assert!(error.contains("bytes, more than the limit of 65536"), "{error}");
    }
}
