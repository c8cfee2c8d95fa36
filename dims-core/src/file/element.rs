//! Elements as bytes.

use super::FileError;
use crate::error::DimError;
use alloc::string::String;
use alloc::vec::Vec;
use bytemuck::checked::CheckedCastError;
use bytemuck::{CheckedBitPattern, NoUninit};
#[cfg(feature = "half")]
use kernels::scalar::CastTo;
use kernels::scalar::Element;
use num_complex::Complex;

/// The type of an element in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// `false` or `true`, one byte.
    Bool,
    /// An unsigned integer with this number of bytes.
    Unsigned(usize),
    /// A signed integer with this number of bytes.
    Signed(usize),
    /// An IEEE 754 float with this number of bytes.
    Float(usize),
    /// `bfloat16`
    Brain,
    /// Two floats with this total number of bytes.
    Complex(usize),
}

impl ElementKind {
    /// The size of an element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            ElementKind::Bool => 1,
            ElementKind::Brain => 2,
            ElementKind::Unsigned(bytes)
            | ElementKind::Signed(bytes)
            | ElementKind::Float(bytes)
            | ElementKind::Complex(bytes) => bytes,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ElementKind::Bool => "bool",
            ElementKind::Unsigned(1) => "u8",
            ElementKind::Unsigned(2) => "u16",
            ElementKind::Unsigned(4) => "u32",
            ElementKind::Unsigned(_) => "u64",
            ElementKind::Signed(1) => "i8",
            ElementKind::Signed(2) => "i16",
            ElementKind::Signed(4) => "i32",
            ElementKind::Signed(_) => "i64",
            ElementKind::Float(2) => "f16",
            ElementKind::Float(4) => "f32",
            ElementKind::Float(_) => "f64",
            ElementKind::Brain => "bf16",
            ElementKind::Complex(8) => "Complex<f32>",
            ElementKind::Complex(_) => "Complex<f64>",
        }
    }

    /// The number of bytes to which the byte order applies.
    fn part(self) -> usize {
        match self {
            ElementKind::Complex(bytes) => bytes / 2,
            kind => kind.bytes(),
        }
    }
}

/// A type whose elements can be stored in files: numbers and `bool`.
#[diagnostic::on_unimplemented(
    message = "files cannot store tensors of `{Self}`",
    label = "files store numbers and `bool`s; half precisions need the feature `half`"
)]
pub trait Stored: Element + CheckedBitPattern + NoUninit {
    #[doc(hidden)]
    const KIND: ElementKind;
    #[doc(hidden)]
    const NAME: &'static str;
    /// The value of this type that is nearest to a number. `None` if the type is not a float.
    #[doc(hidden)]
    fn nearest(_: f64) -> Option<Self> {
        None
    }
}

macro_rules! stored {
    ($($t:ty, $name:literal, $kind:expr $(, $nearest:expr)?;)*) => {$(
        impl Stored for $t {
            const KIND: ElementKind = $kind;
            const NAME: &'static str = $name;
            $(
                fn nearest(value: f64) -> Option<Self> {
                    let nearest: fn(f64) -> Self = $nearest;
                    Some(nearest(value))
                }
            )?
        }
    )*};
}

stored! {
    bool, "bool", ElementKind::Bool;
    u8, "u8", ElementKind::Unsigned(1);
    u16, "u16", ElementKind::Unsigned(2);
    u32, "u32", ElementKind::Unsigned(4);
    u64, "u64", ElementKind::Unsigned(8);
    usize, "usize", ElementKind::Unsigned(size_of::<usize>());
    i8, "i8", ElementKind::Signed(1);
    i16, "i16", ElementKind::Signed(2);
    i32, "i32", ElementKind::Signed(4);
    i64, "i64", ElementKind::Signed(8);
    isize, "isize", ElementKind::Signed(size_of::<isize>());
    f32, "f32", ElementKind::Float(4), |value| value as f32;
    f64, "f64", ElementKind::Float(8), |value| value;
    Complex<f32>, "Complex<f32>", ElementKind::Complex(8);
    Complex<f64>, "Complex<f64>", ElementKind::Complex(16);
}

#[cfg(feature = "half")]
stored! {
    half::f16, "f16", ElementKind::Float(2), CastTo::cast_to;
    half::bf16, "bf16", ElementKind::Brain, CastTo::cast_to;
}

/// The elements as little-endian bytes.
pub fn encoded<T: Stored>(elements: &[T]) -> Vec<u8> {
    let mut bytes = bytemuck::cast_slice::<T, u8>(elements).to_vec();
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(T::KIND.part()).for_each(<[u8]>::reverse);
    }
    bytes
}

/// The elements in place. It is an error if their alignment, byte order or bits do not permit that.
pub fn in_place<T: Stored>(bytes: &[u8], foreign: bool) -> Result<&[T], FileError> {
    let not = |why| FileError::NotInPlace { tensor: String::new(), why, path: None };
    if foreign && T::KIND.part() > 1 {
        return Err(not("its byte order is not this machine's"));
    }
    bytemuck::checked::try_cast_slice(bytes).map_err(|error| match error {
        CheckedCastError::InvalidBitPattern => invalid::<T>(),
        CheckedCastError::PodCastError(_) => not("its elements are not aligned in memory"),
    })
}

#[cold]
fn invalid<T: Stored>() -> FileError {
    FileError::format(format!("an element is not a valid `{}`", T::NAME))
}

/// A copy of the elements.
pub fn decoded<T: Stored>(bytes: &[u8], foreign: bool) -> Result<Vec<T>, FileError> {
    let mut elements = Vec::new();
    reserve(&mut elements, bytes.len() / size_of::<T>())?;
    append(&mut elements, bytes, foreign)?;
    Ok(elements)
}

/// Reads `count` elements in sequence. Memory is allocated as elements are read, so a false `count`
/// does not exhaust it.
#[cfg(feature = "npy")]
pub fn streamed<T: Stored>(
    mut part: impl FnMut(&mut [u8]) -> Result<(), FileError>,
    count: usize,
    foreign: bool,
    tensor: &str,
) -> Result<Vec<T>, FileError> {
    let mut elements = Vec::new();
    // Words, so that elements of any type are aligned.
    let mut window = vec![0u64; WINDOW];
    let at_once = WINDOW * size_of::<u64>() / size_of::<T>();
    while elements.len() < count {
        let left = count - elements.len();
        let some = at_once.min(left);
        if elements.capacity() - elements.len() < some {
            let more = elements.len().max(some).min(left);
            reserve(&mut elements, more)?;
        }
        let bytes = &mut bytemuck::cast_slice_mut(&mut window)[..some * size_of::<T>()];
        part(bytes)?;
        append(&mut elements, bytes, foreign).map_err(|error| error.of_tensor(tensor))?;
    }
    Ok(elements)
}

/// The number of words that are read at once.
#[cfg(feature = "npy")]
const WINDOW: usize = 1 << 13;

fn reserve<T>(elements: &mut Vec<T>, more: usize) -> Result<(), FileError> {
    let len = elements.len() + more;
    let short = |_| FileError::from(DimError::TooLarge { dims: format!("{len} elements") });
    elements.try_reserve_exact(more).map_err(short)
}

/// Appends the elements. Their memory must be reserved.
fn append<T: Stored>(elements: &mut Vec<T>, bytes: &[u8], foreign: bool) -> Result<(), FileError> {
    if let Ok(all) = in_place::<T>(bytes, foreign) {
        elements.extend_from_slice(all);
        return Ok(());
    }
    let mut one = vec![0; size_of::<T>()];
    for bytes in bytes.chunks_exact(size_of::<T>()) {
        one.copy_from_slice(bytes);
        if foreign {
            one.chunks_exact_mut(T::KIND.part()).for_each(<[u8]>::reverse);
        }
        let value = bytemuck::checked::try_pod_read_unaligned(&one).map_err(|_| invalid::<T>())?;
        elements.push(value);
    }
    Ok(())
}

/// A copy of the elements, with floats of type `F` converted to the nearest floats of type `T`.
/// `None` if `T` is not a float.
#[cfg(feature = "safetensors")]
pub fn converted<F: Stored + Into<f64>, T: Stored>(
    bytes: &[u8],
    foreign: bool,
) -> Result<Option<Vec<T>>, FileError> {
    if T::nearest(0.0).is_none() {
        return Ok(None);
    }
    let elements = decoded::<F>(bytes, foreign)?;
    Ok(elements.into_iter().map(|element| T::nearest(element.into())).collect())
}
