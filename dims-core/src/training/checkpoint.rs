//! Parameters and optimizers in files (feature `safetensors`), by the names of their tensors and dims.
//!
//! ```
//! use typed_dims::checkpoint::{Checkpoint, Saved};
//! use typed_dims::optim::Adam;
//! use typed_dims::prelude::*;
//!
//! dims! { struct In; struct Out; }
//! #[derive(Parameters)]
//! struct Layer {
//!     weight: Tensor<f32, (In, Out)>,
//!     bias: Tensor<f32, (Out,)>,
//! }
//! let layer = |seed| Layer { weight: randn((In.of(3), Out.of(2)), seed), bias: zeros(Out.of(2)) };
//!
//! let (mut network, mut optimizer) = (layer(1), Adam::new(1e-3));
//! let gradient = network.map_elements(|w: f32| 2.0 * w);
//! optimizer.step(&mut network, &gradient);
//! let mut checkpoint = Checkpoint::new();
//! checkpoint.put("network", &network)?.put_optimizer("optimizer", &optimizer)?;
//! let bytes = checkpoint.to_bytes()?; // or `save(path)`
//!
//! let (mut resumed, mut again) = (layer(2), Adam::new(1e-3));
//! let saved = Saved::new(bytes)?; // or `open(path)`
//! saved.load("network", &mut resumed)?;
//! saved.load_optimizer("optimizer", &mut again, &resumed)?;
//! assert_eq!((resumed.weight, again.steps()), (network.weight, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The file is one of safetensors. The tensor `layers.3.weight` of a value put in as `network` is called `network.layers.3.weight`; the moments of an optimizer are below
//! their names, as in `optimizer.mean.layers.3.weight`. The metadata has the names of the dims of each tensor, under `dims of` and its name, and the number of steps of each
//! optimizer. In Python:
//!
//! ```text
//! with safetensors.safe_open("network.safetensors", "np") as file:
//!     weight = file.get_tensor("network.weight")
//!     dims = file.metadata()["dims of network.weight"]    # "In, Out"
//! ```
//!
//! A file without names of dims, such as Python writes, has the axes of each tensor in the order in which its dims were declared.
//!
//! With the feature `npy`, a checkpoint can be an archive of numpy's as well: [`Checkpoint::save_npz`] writes it, and [`Saved::open`] reads either, as their first bytes
//! tell them apart. The names of dims are in the headers of the arrays, and text is an array of bytes, called `text of` and its name:
//!
//! ```text
//! file = numpy.load("network.npz")
//! weight = file["network.weight"]
//! steps = int(file["text of steps of optimizer"].tobytes())
//! ```

use crate::error::DimError;
use crate::expr::evaluate::evaluate_in;
#[cfg(feature = "half")]
use crate::file::Stored;
use crate::file::load::{Fault, LoadError};
use crate::file::safetensors::{Reader, Writer};
use crate::file::{Buffer, Entry, FileError};
#[cfg(feature = "npy")]
use crate::file::{npy, npz};
use crate::grad::Parameters;
use crate::grad::parameters::{Path, Visitor, Walk, is_learned};
use crate::named::Named;
use crate::optim::Optimizer;
use crate::rank::Rank;
use crate::set::Dims;
use crate::storage::Owned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::{Any, type_name};
#[cfg(feature = "half")]
use half::{bf16, f16};
use kernels::scalar::Element;
use num_complex::Complex;
#[cfg(feature = "npy")]
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// A file to be written.
#[derive(Default)]
pub struct Checkpoint {
    file: Writer,
}

impl Checkpoint {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all tensors of a value, below a name; with the name `""` they have their own names.
    ///
    /// # Errors
    ///
    /// If a tensor has positional axes, two dims of one name, or elements that the format does not have; or if there is a tensor of its name already.
    pub fn put<P: Parameters>(&mut self, name: &str, parameters: &P) -> Result<&mut Self, FileError> {
        self.put_where(name, parameters, Which { learned: false, floats: Floats::Same })?;
        Ok(self)
    }

    /// As [`put`](Checkpoint::put), with each float of type `f32` or `f64` as the nearest one of type `f16`: for inference, in half the space or less.
    /// [`Saved::converting_floats`] reads them as any floats.
    ///
    /// # Errors
    ///
    /// As for [`put`](Checkpoint::put).
    #[cfg(feature = "half")]
    pub fn put_f16<P: Parameters>(&mut self, name: &str, parameters: &P) -> Result<&mut Self, FileError> {
        self.put_where(name, parameters, Which { learned: false, floats: Floats::F16 })?;
        Ok(self)
    }

    /// Adds the state of an optimizer, below a name: its moments and the number of its steps.
    ///
    /// # Errors
    ///
    /// As for [`put`](Checkpoint::put), and if there is a number of steps under that name already.
    pub fn put_optimizer<P: Parameters, O: Optimizer<P>>(
        &mut self,
        name: &str,
        optimizer: &O,
    ) -> Result<&mut Self, FileError> {
        self.file.note(&steps_of(name), &optimizer.steps().to_string())?;
        for (moment, value) in optimizer.moments().iter().zip(optimizer.state().moments()) {
            self.put_where(&below(name, moment), value, Which { learned: true, floats: Floats::Same })?;
        }
        Ok(self)
    }

    /// As [`put_f16`](Checkpoint::put_f16), with the nearest floats of type `bf16`: they are less precise, and have the range of `f32`.
    ///
    /// # Errors
    ///
    /// As for [`put`](Checkpoint::put).
    #[cfg(feature = "half")]
    pub fn put_bf16<P: Parameters>(&mut self, name: &str, parameters: &P) -> Result<&mut Self, FileError> {
        self.put_where(name, parameters, Which { learned: false, floats: Floats::Bf16 })?;
        Ok(self)
    }

    fn put_where<P: Parameters>(&mut self, name: &str, value: &P, which: Which) -> Result<(), FileError> {
        P::visit([], [value], &mut Path::new(), &mut Writing { file: &mut self.file, name, which })
    }

    /// Adds an entry to the metadata: text under a name, such as the options of a training.
    ///
    /// # Errors
    ///
    /// If there is an entry of that name already.
    pub fn note(&mut self, name: &str, text: &str) -> Result<&mut Self, FileError> {
        self.file.note(name, text)?;
        Ok(self)
    }

    /// The bytes of the file.
    ///
    /// # Errors
    ///
    /// If the header is too large for the format.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        self.file.to_bytes()
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// As for [`to_bytes`](Checkpoint::to_bytes), and if the file cannot be written.
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), FileError> {
        self.file.save(path)
    }

    /// The bytes of an archive of numpy's with the same content.
    ///
    /// # Errors
    ///
    /// If there are elements that numpy does not have (`bf16`).
    #[cfg(feature = "npy")]
    pub fn to_npz(&self) -> Result<Vec<u8>, FileError> {
        self.file.to_npz()
    }

    /// Writes such an archive.
    ///
    /// # Errors
    ///
    /// As for [`to_npz`](Checkpoint::to_npz), and if the file cannot be written.
    #[cfg(feature = "npy")]
    pub fn save_npz(&self, path: impl AsRef<std::path::Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        let failed = |error| FileError::Io { what: path.display().to_string(), error };
        std::fs::write(path, self.to_npz()?).map_err(failed)
    }
}

/// A file to be read.
pub struct Saved<B = Buffer> {
    file: File<B>,
    converting: bool,
}

enum File<B> {
    Safetensors(Reader<B>),
    #[cfg(feature = "npy")]
    Npz {
        tensors: BTreeMap<String, npy::Reader>,
        notes: BTreeMap<String, String>,
    },
}

impl<B: AsRef<[u8]>> File<B> {
    fn new(bytes: B) -> Result<Self, FileError> {
        // The first number of safetensors is the length of the header, and would be too great.
        #[cfg(feature = "npy")]
        if matches!(*bytes.as_ref(), [b'P', b'K', 3, 4, 1.., ..] | [b'P', b'K', 5, 6, ..]) {
            return Self::unpacked(npz::Reader::new(bytes)?);
        }
        Ok(File::Safetensors(Reader::new(bytes)?))
    }

    #[cfg(feature = "npy")]
    fn unpacked(mut archive: npz::Reader<B>) -> Result<Self, FileError> {
        let (mut tensors, mut notes) = (BTreeMap::new(), BTreeMap::new());
        for name in archive.tensors() {
            let array = archive.get(&name)?;
            match name.strip_prefix(npz::TEXT_OF) {
                Some(note) => {
                    let text = String::from_utf8(array.get()?.elements::<u8>()?);
                    let what = || format!("`{name}` is not UTF-8");
                    notes.insert(note.to_string(), text.map_err(|_| FileError::Format { what: what() })?);
                }
                None => drop(tensors.insert(name, array)),
            }
        }
        Ok(File::Npz { tensors, notes })
    }

    fn note(&self, name: &str) -> Option<&str> {
        match self {
            File::Safetensors(file) => file.note(name),
            #[cfg(feature = "npy")]
            File::Npz { notes, .. } => notes.get(name).map(String::as_str),
        }
    }

    fn tensors(&self) -> Vec<String> {
        match self {
            File::Safetensors(file) => file.tensors(),
            #[cfg(feature = "npy")]
            File::Npz { tensors, .. } => tensors.keys().cloned().collect(),
        }
    }

    fn get(&self, tensor: &str) -> Result<Entry<'_>, FileError> {
        match self {
            File::Safetensors(file) => file.get(tensor),
            #[cfg(feature = "npy")]
            File::Npz { tensors, .. } => match tensors.get(tensor) {
                Some(array) => array.get(),
                None => Err(FileError::Missing { tensor: tensor.into(), has: self.tensors() }),
            },
        }
    }
}

impl Saved {
    /// Reads a file into memory: one of safetensors or, with the feature `npy`, an archive of numpy's.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not a valid one.
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self, FileError> {
        Self::new(Buffer::read(&path)?).map_err(|error| error.of(path.as_ref()))
    }
}

impl<B: AsRef<[u8]>> Saved<B> {
    /// A file that is in memory already. (An archive is unpacked.)
    ///
    /// # Errors
    ///
    /// If it is not a valid one.
    pub fn new(bytes: B) -> Result<Self, FileError> {
        Ok(Saved { file: File::new(bytes)?, converting: false })
    }

    /// Lets [`load`](Saved::load) read floats as floats of another type: each becomes the nearest one. Without this, other types of elements are an error.
    #[must_use]
    pub fn converting_floats(self) -> Self {
        Saved { converting: true, ..self }
    }

    /// The text under a name in the metadata, as [`Checkpoint::note`] adds it.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.file.note(name)
    }

    /// Replaces all tensors of a value by those below the name.
    ///
    /// # Errors
    ///
    /// All that does not fit, in one error, and the value stays as it is: tensors that are missing or left over, other types of elements, other dims, and other sizes than
    /// the value has.
    pub fn load<P: Parameters>(&self, name: &str, parameters: &mut P) -> Result<(), LoadError> {
        *parameters = self.read(name, parameters, false)?;
        Ok(())
    }

    /// Sets the state of an optimizer to the one below the name. The parameters are those that it is to change.
    ///
    /// # Errors
    ///
    /// As for [`load`](Saved::load), and if there is no number of steps under that name.
    pub fn load_optimizer<P: Parameters, O: Optimizer<P>>(
        &self,
        name: &str,
        optimizer: &mut O,
        parameters: &P,
    ) -> Result<(), LoadError> {
        let note = steps_of(name);
        let missing = |why: &str| {
            LoadError::new(vec![Fault::Unreadable { name: name.to_string(), why: why.to_string() }])
        };
        let steps = self.file.note(&note).ok_or_else(|| missing("the file has no optimizer of this name"))?;
        let steps = steps.parse().map_err(|_| missing("the number of its steps is not a number"))?;
        let (mut moments, mut faults) = (Vec::new(), Vec::new());
        if steps > 0 {
            for moment in optimizer.moments() {
                match self.read(&below(name, moment), parameters, true) {
                    Ok(value) => moments.push(value),
                    Err(error) => faults.extend(error.faults().iter().cloned()),
                }
            }
        }
        if !faults.is_empty() {
            return Err(LoadError::new(faults));
        }
        optimizer.state_mut().restore(steps, moments);
        Ok(())
    }

    fn read<P: Parameters>(&self, name: &str, like: &P, learned: bool) -> Result<P, LoadError> {
        let mut reading = Reading {
            file: &self.file,
            name,
            learned,
            converting: self.converting,
            taken: BTreeSet::new(),
            faults: Vec::new(),
        };
        let value = P::walk([like], &mut Path::new(), &mut reading);
        let Reading { taken, mut faults, .. } = reading;
        for tensor in self.file.tensors() {
            let is_below = name.is_empty()
                || tensor.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            if is_below
                && !taken.contains(&tensor)
                && let Ok(entry) = self.file.get(&tensor)
            {
                faults.push(Fault::LeftOver { sizes: entry.sizes().to_vec(), name: tensor });
            }
        }
        match value {
            Ok(value) if faults.is_empty() => Ok(value),
            Ok(_) => Err(LoadError::new(faults)),
            Err(error) => {
                faults.push(Fault::Unreadable { name: name.to_string(), why: error.to_string() });
                Err(LoadError::new(faults))
            }
        }
    }
}

fn steps_of(optimizer: &str) -> String {
    format!("steps of {optimizer}")
}

/// The name of a part below another name. Either can be empty.
fn below(name: &str, part: &str) -> String {
    let dot = if name.is_empty() || part.is_empty() { "" } else { "." };
    format!("{name}{dot}{part}")
}

/// Calls a generic function with the type `T`, if its elements can be in a file.
macro_rules! each_stored {
    ($of:ident, $($(#[$cfg:meta])? $t:ty),*) => {
        $($(#[$cfg])? { $of!($t); })*
    };
}

macro_rules! stored_types {
    ($of:ident) => {
        each_stored!(
            $of,
            bool,
            u8,
            u16,
            u32,
            u64,
            usize,
            i8,
            i16,
            i32,
            i64,
            isize,
            f32,
            f64,
            Complex<f32>,
            Complex<f64>,
            #[cfg(feature = "half")]
            half::f16,
            #[cfg(feature = "half")]
            half::bf16
        );
    };
}

/// What is written.
#[derive(Clone, Copy)]
struct Which {
    /// Whether tensors that are not learned are left out.
    learned: bool,
    #[cfg_attr(not(feature = "half"), allow(dead_code))]
    floats: Floats,
}

/// What `f32` and `f64` are written as.
#[derive(Clone, Copy)]
enum Floats {
    Same,
    #[cfg(feature = "half")]
    F16,
    #[cfg(feature = "half")]
    Bf16,
}

struct Writing<'w> {
    file: &'w mut Writer,
    name: &'w str,
    which: Which,
}

impl Visitor<0, 1> for Writing<'_> {
    type Error = FileError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        _: [&mut Named<T, S, R>; 0],
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<(), FileError> {
        if self.which.learned && !is_learned::<T>() {
            return Ok(());
        }
        let name = below(self.name, &path.to_string());
        if R::N > 0 {
            let what = format!("`{name}` has positional axes: give each of them a dim");
            return Err(FileError::Unwritable { what });
        }
        let shape = tensor.unified_shape()?;
        let order: Vec<usize> = (0..shape.sizes().len()).collect();
        let data = evaluate_in::<S, R, _>(&tensor.expr, &shape, &order, "put")?;
        let data: &dyn Any = &data;
        let keys = S::KEYS.as_slice();
        #[cfg(feature = "half")]
        match self.which.floats {
            Floats::Same => {}
            Floats::F16 => {
                if let Some(data) = nearest::<f16>(data) {
                    return self.file.put_elements(&name, keys, shape.sizes(), &data);
                }
            }
            Floats::Bf16 => {
                if let Some(data) = nearest::<bf16>(data) {
                    return self.file.put_elements(&name, keys, shape.sizes(), &data);
                }
            }
        }
        macro_rules! put {
            ($t:ty) => {
                if let Some(data) = data.downcast_ref::<Vec<$t>>() {
                    return self.file.put_elements(&name, keys, shape.sizes(), data);
                }
            };
        }
        stored_types!(put);
        let what = format!("`{name}` has elements of type `{}`, which no file has", type_name::<T>());
        Err(FileError::Unwritable { what })
    }
}

/// Each element as the nearest one of type `H`, if they are of type `f32` or `f64`.
#[cfg(feature = "half")]
fn nearest<H: Stored>(data: &dyn Any) -> Option<Vec<H>> {
    match (data.downcast_ref::<Vec<f32>>(), data.downcast_ref::<Vec<f64>>()) {
        (Some(data), _) => data.iter().map(|&a| H::nearest(a.into())).collect(),
        (_, Some(data)) => data.iter().map(|&a| H::nearest(a)).collect(),
        _ => None,
    }
}

struct Reading<'r, B> {
    file: &'r File<B>,
    name: &'r str,
    /// Whether tensors that are not learned are left out.
    learned: bool,
    converting: bool,
    taken: BTreeSet<String>,
    faults: Vec<Fault>,
}

impl<B: AsRef<[u8]>> Walk<1> for Reading<'_, B> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        if self.learned && !is_learned::<T>() {
            return Ok(tensor.clone());
        }
        let name = below(self.name, &path.to_string());
        let shape = tensor.unified_shape()?;
        let expected = || {
            let sizes = shape.sizes();
            let dims =
                S::KEYS.as_slice().iter().zip(sizes).map(|(key, size)| format!("{} = {size}", key.name));
            let rest = sizes[S::KEYS.as_slice().len()..].iter().map(ToString::to_string);
            format!("({})", dims.chain(rest).collect::<Vec<_>>().join(", "))
        };
        let found = match self.file.get(&name) {
            Ok(entry) => {
                self.taken.insert(name.clone());
                let converting = self.converting && !self.learned;
                read::<T, S, R>(&name, &entry, shape.sizes(), converting, expected)
            }
            Err(FileError::Missing { .. }) => {
                let elements = type_name::<T>().rsplit("::").next().unwrap_or_default();
                vec_of(Fault::Missing { expected: format!("{elements} {}", expected()), name })
            }
            Err(error) => vec_of(Fault::Unreadable { why: error.to_string(), name }),
        };
        Ok(found.unwrap_or_else(|faults| {
            self.faults.extend(faults);
            tensor.clone()
        }))
    }
}

fn vec_of<X>(fault: Fault) -> Result<X, Vec<Fault>> {
    Err(vec![fault])
}

/// The tensor of an entry, which must have these sizes.
fn read<T: Element, S: Dims, R: Rank>(
    name: &str,
    entry: &Entry<'_>,
    sizes: &[usize],
    converting: bool,
    expected: impl Fn() -> String,
) -> Result<Named<T, S, R>, Vec<Fault>> {
    let keys = S::KEYS.as_slice();
    let name = || name.to_string();
    let order = match entry.names() {
        Some(_) => entry.named::<S>().ok(),
        None => (entry.sizes().len() == keys.len()).then(|| (0..keys.len()).collect()),
    };
    let Some(order) = order.filter(|_| R::N == 0) else {
        return vec_of(Fault::Axes { name: name(), expected: expected(), found: entry.described() });
    };
    let faults: Vec<Fault> = order
        .iter()
        .zip(entry.sizes())
        .filter(|&(&at, &size)| sizes[at] != size)
        .map(|(&at, &size)| Fault::Size {
            name: name(),
            dim: keys[at].name,
            size,
            first: sizes[at],
            from: None,
        })
        .collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut elements: Vec<T> = Vec::new();
    let place: &mut dyn Any = &mut elements;
    macro_rules! get {
        ($t:ty) => {
            if let Some(place) = place.downcast_mut::<Vec<$t>>() {
                let found = match entry.elements::<$t>() {
                    Err(error @ FileError::Elements { .. }) if converting => {
                        entry.converted::<$t>().and_then(|found| found.ok_or(error))
                    }
                    found => found,
                };
                *place = found.map_err(|error| match error {
                    FileError::Elements { file, wanted, .. } => {
                        vec![Fault::Element { name: name(), expected: wanted, found: file }]
                    }
                    error => vec![Fault::Unreadable { name: name(), why: error.to_string() }],
                })?;
                let (order, sizes) = entry.outermost_first(&order);
                return Ok(Named::from_expr(Owned::in_order(elements, &order, &sizes)));
            }
        };
    }
    stored_types!(get);
    let why = format!("no file has elements of type `{}`", type_name::<T>());
    vec_of(Fault::Unreadable { name: name(), why })
}
