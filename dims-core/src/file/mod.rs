//! Tensors in files (features `safetensors`, `npy`, `memmap`): the names of their dims go with them, and are checked when they come back.
//!
//! | module | files | where the names are |
//! |---|---|---|
//! | [`safetensors`] | `.safetensors`, many tensors | in the file's metadata, under `dims of` and the tensor's name |
//! | [`npy`] | `.npy`, one tensor | in a comment of the header, which numpy skips |
//! | [`npz`] | `.npz`, many | as in npy |
//!
//! A name is written as in `dims!`: `Batch`, `Feat = 64` for a dim with a static size, `Channel: DATA_CHANNEL` for one with a role. A file that somebody else wrote has none;
//! then the order of its axes must be said.
//!
//! Reading an axis as a dim gives it that name, so the rule is that of `rename`: the axis has the dim's role, or one that refines it; either
//! may have none; and the channels of data and of filters are the same. To read something as what it does not mean, read it
//! with a dim that has its role or none, and [`redefine`](crate::operators::restructure::Restructure::redefine) that.
//!
//! ```text
//! let file = safetensors::SafetensorsReader::open("model.safetensors")?;
//! let w: Tensor<f32, (Out, In)> = file.get("w")?.load()?;        // names, sizes and element type are checked
//! let w = file.get("w")?.load_as::<f32, _>((Out, In))?;          // the file has no names: this is the order of its axes
//! let w: Tensor<f32, (Out, In)> = file.get("w")?.view()?.eval(); // `view` copies nothing
//! ```
//!
//! The axes in a file are the dims in the order in which they were declared. To choose another order, name the dims: `npy::save_as("x.npy", &x, (Column, Row))`, and `put_as`. Arrays are written
//! without names by `save_array` and `put_array`, and [`Entry::array`] reads any tensor as an `ArrayD`.
//!
//! A struct of tensors is loaded as a whole with `#[derive(Load)]`: see [`load`].
//!
//! A file is read with suspicion: one that is cut off, or lies, or claims what it has not, is a [`FileError`]. Nothing is
//! allocated for what a file merely says; only what is there is read.
//!
//! # Saving
//!
//! `save` and `save_npz` write a temporary file in the same folder, and put it in the place of the old one when all of it is on disk. If the disk is full, or the
//! program ends in the middle, the old file is as it was. (A program that is killed can leave a file `.saving-..` behind.)
//!
//! * A file that is replaced keeps its mode and, if the system allows it, its owner. Other hard links to the old file keep the old content.
//! * A symbolic link stays one: the file that it leads to is replaced.
//! * Pipes, devices and what a process has open (`/dev/stdout`, `/dev/fd/3`) are written directly.
//! * The program needs permission to write the old file, and to make a file in its folder.
//! * A mapped file can be replaced: readers see the old content until they map it again. Windows refuses that; the error says so.
//!
//! With `memmap`, [`MappedFile`] is a file in the address space: a reader of one yields views that the system reads from disk when they
//! are looked at.

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
#[cfg(feature = "safetensors")]
pub(crate) use names::shortened;
