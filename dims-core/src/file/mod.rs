//! Tensors in files (features `safetensors`, `npy`, `memmap`). The names of dims are written to the
//! file, and checked when it is read.
//!
//! | module | files | names of dims |
//! |---|---|---|
//! | [`safetensors`] | `.safetensors`, many tensors | in the file's metadata, under `dims of` and the tensor's name |
//! | [`npy`] | `.npy`, one tensor | in a comment of the header, which NumPy skips |
//! | [`npz`] | `.npz`, many tensors | as in npy |
//!
//! A name is written as in `dims!`, except that a role is written as its
//! [`NAMES`](crate::types::role::Role::NAMES), joined by `/`: `Batch`, `Feat = 64` for a dim with a
//! static size, `Channel: DATA_CHANNEL` for a dim with the role `DataChannel`, and
//! `Row: Pixel/DATA_FEATURE` for a dim with a role `Pixel` that refines `DataFeature`. For a file
//! without names, list the dims in the order of its axes, with `load_as` or `view_as`.
//!
//! Reading an axis as a dim follows the rule of `rename`: the axis must have the dim's role or one
//! that refines it, unless the axis or the dim has no role. Channels of data and of filters are
//! interchangeable. To read an axis with a different role, read it as a dim with the axis's role or
//! no role, and [`redefine`](crate::operators::restructure::Restructure::redefine) that dim.
//!
//! ```text
//! let file = safetensors::SafetensorsReader::open("model.safetensors")?;
//! let w: Tensor<f32, (Out, In)> = file.get("w")?.load()?;        // names, sizes and element type are checked
//! let w = file.get("w")?.load_as::<f32, _>((Out, In))?;          // the file has no names: this is the order of its axes
//! let w: Tensor<f32, (Out, In)> = file.get("w")?.view()?.eval(); // `view` copies nothing
//! ```
//!
//! Axes are written in the order in which one `dims!` declares the dims. (Dims of different `dims!`
//! calls have no fixed order.) For another order, pass the dims: `npy::save_as("x.npy", &x,
//! (Column, Row))`, or `put_as`. `save_array` and `put_array` write arrays without names, and
//! [`Entry::array`] reads any tensor as an `ArrayD`.
//!
//! To load a struct of tensors, use `#[derive(Load)]`: see [`load`].
//!
//! Files are not trusted: reading a truncated or inconsistent file returns a [`FileError`]. Memory
//! is only allocated for bytes that the file contains, not for sizes that it claims.
//!
//! With the feature `memmap`, [`MappedFile`] maps a file into memory. The system reads views of its
//! tensors from disk when they are accessed.
//!
//! # Saving
//!
//! `save`, `save_as`, `save_array` and `save_npz` write a temporary file in the same folder, and
//! replace the old file when the new one is completely on disk. If the disk is full, or the program
//! is interrupted, the old file is unchanged. (A program that is killed can leave a file
//! `.saving-..` behind.)
//!
//! * The new file has the old file's mode and, if the system allows it, its owner and group. Other
//!   hard links to the old file keep the old content.
//! * If the path is a symbolic link, its target is replaced.
//! * Pipes, devices and open files of a process (`/dev/stdout`, `/dev/fd/3`) are written directly.
//! * The program needs permission to write the old file, and to create a file in its folder.
//! * A mapped file can be replaced: readers see the old content until they map it again. On
//!   Windows, replacing it is an error.

mod buffer;
#[cfg(any(feature = "npy", feature = "safetensors"))]
mod contents;
mod element;
mod entry;
mod error;
#[cfg(feature = "safetensors")]
pub mod load;
#[cfg(feature = "memmap")]
#[allow(unsafe_code)]
mod mapped;
mod names;
#[cfg(feature = "npy")]
pub mod npy;
#[cfg(feature = "npy")]
pub mod npz;
#[cfg(feature = "safetensors")]
pub mod safetensors;
#[cfg(any(feature = "npy", feature = "safetensors"))]
pub(crate) mod save;

pub use buffer::AlignedBytes;
#[cfg(any(feature = "npy", feature = "safetensors"))]
pub use contents::Storable;
pub use element::Stored;
pub use entry::Entry;
pub use error::FileError;
#[cfg(feature = "memmap")]
pub use mapped::MappedFile;
#[cfg(all(feature = "npy", feature = "safetensors"))]
pub(crate) use names::FileKind;
#[cfg(feature = "safetensors")]
pub(crate) use names::shortened;
