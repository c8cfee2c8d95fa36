//! Saving and loading parameters and optimizers (feature `safetensors`), by the names of their
//! tensors and dims.
//!
//! ```
//! use typed_dims::optim::checkpoint::{Checkpoint, Saved};
//! use typed_dims::optim::Adam;
//! use typed_dims::prelude::*;
//!
//! dims! { struct In; struct Out; }
//! #[derive(Parameters)]
//! struct Layer {
//!     weight: Tensor<f32, (In, Out)>,
//!     bias: Tensor<f32, (Out,)>,
//! }
//! let layer = |seed: u64| Layer { weight: randn((In.of(3), Out.of(2)), seed), bias: zeros(Out.of(2)) };
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
//! A checkpoint is a safetensors file. Tensors are named as follows:
//!
//! * `network.layers.3.weight`: the tensor `layers.3.weight` of a value added as `network`.
//! * `optimizer.mean.layers.3.weight`: the moment `mean` of the parameter `layers.3.weight`, of an
//!   optimizer added as `optimizer`.
//! * `optimizer.master.layers.3.weight`: the master weights of this parameter, if it has any.
//!
//! The metadata has the names of a tensor's dims under `dims of <tensor>`. For each optimizer, it
//! has the kind and the names of the moments under `state of <optimizer>`, and the number of steps
//! under `steps of <optimizer>`. A parameter that has taken fewer steps, because it was frozen or
//! added later, has its own number under `steps in <optimizer> of <parameter>`. In Python:
//!
//! ```text
//! with safetensors.safe_open("network.safetensors", "np") as file:
//!     weight = file.get_tensor("network.weight")
//!     dims = file.metadata()["dims of network.weight"]    # "In, Out"
//! ```
//!
//! If the file does not name a tensor's dims, for example because it is from Python, the axes must
//! be in the order in which `dims!` declares these dims. (Dims of different `dims!` calls have no
//! fixed order, so the file must name the dims of a tensor that combines them.)
//!
//! With the feature `npy`, a checkpoint can also be an `.npz` archive. [`Checkpoint::save_npz`]
//! writes it, and [`Saved::open`] reads both formats. The names of dims are in the headers of the
//! arrays. Every other entry of the metadata is stored as an array of bytes, named `text of ..`:
//!
//! ```text
//! file = numpy.load("network.npz")
//! weight = file["network.weight"]
//! steps = int(file["text of steps of optimizer"].tobytes())
//! ```

mod file;
#[cfg(feature = "npy")]
mod npz;
mod state;
mod values;

use crate::error::list_names;
use crate::file::load::{Fault, LoadError};
use crate::file::safetensors::SafetensorsWriter;
#[cfg(feature = "npy")]
use crate::file::save::save;
use crate::file::{AlignedBytes, FileError};
use crate::grad::Parameters;
use crate::grad::parameters::Path;
use crate::training::checkpoint::file::File;
use crate::training::checkpoint::state::{StateKind, StateReader};
use crate::training::checkpoint::values::{StoredFloats, TensorReader, Writing, positional_axes};
use crate::training::optim::by_path::{ByPath, StateWalk};
use crate::training::optim::{Optimizer, StateTensor};
use crate::types::dim::DimRef;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A checkpoint to write.
#[derive(Default)]
pub struct Checkpoint {
    file: SafetensorsWriter,
}

impl Checkpoint {
    /// An empty checkpoint.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all tensors of a value, except those of fields with `#[parameters(constant)]`. The
    /// names of the added tensors start with `name`, or have no prefix if `name` is `""`. For the
    /// state of an optimizer, use [`put_optimizer`](Checkpoint::put_optimizer).
    ///
    /// [`Saved::load`] reports unread tensors under `name`. Under `""`, these are all tensors in
    /// the file that the value does not use, so choose a name if the checkpoint has further parts,
    /// such as an optimizer.
    ///
    /// # Errors
    ///
    /// If the value is or contains an optimizer; if a tensor has positional axes, two dims with the
    /// same name, or an element type that the format lacks; if its name is `__metadata__`, which
    /// the format reserves; if there already is a tensor with its name, or an entry `dims of` this
    /// name in the metadata; or if a gradient or a recorded function traces the tensor. Nothing is
    /// added then.
    pub fn put<P: Parameters>(&mut self, name: &str, parameters: &P) -> Result<&mut Self, FileError> {
        self.put_where(name, parameters, StoredFloats::Same)?;
        Ok(self)
    }

    /// Like [`put`](Checkpoint::put), but rounds floats of type `f32` or `f64` to `f16`, for
    /// inference in half the space or less. With [`Saved::converting_floats`], they can be loaded
    /// as any float type.
    ///
    /// The greatest finite `f16` is 65,504. Floats whose magnitude rounds to more become infinite.
    /// [`put_bf16`](Checkpoint::put_bf16) keeps the range of `f32`.
    ///
    /// # Errors
    ///
    /// As for [`put`](Checkpoint::put).
    #[cfg(feature = "half")]
    pub fn put_f16<P: Parameters>(&mut self, name: &str, parameters: &P) -> Result<&mut Self, FileError> {
        self.put_where(name, parameters, StoredFloats::F16)?;
        Ok(self)
    }

    /// Adds the state of an optimizer under a name: its kind, its moments and master weights, and
    /// the numbers of steps.
    ///
    /// The state covers the parameters of the last step. If you have added or removed parameters
    /// since then, call [`prepare`](Optimizer::prepare) first; otherwise
    /// [`load_optimizer`](Saved::load_optimizer) reports missing or unused tensors.
    ///
    /// # Errors
    ///
    /// As for [`put`](Checkpoint::put); if there already is an optimizer with this name; if a
    /// gradient or a recorded function traces a step count, a moment or master weights; or if
    /// the moments do not fit into memory.
    pub fn put_optimizer<P: Parameters, O: Optimizer<P>>(
        &mut self,
        name: &str,
        optimizer: &O,
    ) -> Result<&mut Self, FileError> {
        optimizer.state().check_taken("put_optimizer")?;
        let mut file = SafetensorsWriter::new();
        if self.file.has_note(&state_of(name)) {
            let what = format!("an optimizer named `{name}` is in the file already");
            return Err(FileError::Unwritable { what });
        }
        file.note(&state_of(name), &described(optimizer))?;
        file.note(&steps_of(name), &optimizer.steps().to_string())?;
        for (parameter, steps) in optimizer.state().behind() {
            file.note(&steps_in(name, &parameter), &steps.to_string())?;
        }
        let parameters = optimizer.state().parameters();
        if parameters.iter().any(|parameter| !parameter.moments().is_empty()) {
            let layout = optimizer.moment_layout();
            for (at, moment) in optimizer.moments().iter().enumerate() {
                for parameter in parameters {
                    let name = below(&below(name, moment), &parameter.name());
                    put_state(&mut file, &name, &*parameter.moment(at, layout)?)?;
                }
            }
        }
        for parameter in parameters {
            if let Some(master) = parameter.master() {
                put_state(&mut file, &below(&below(name, MASTER), &parameter.name()), master)?;
            }
        }
        self.file.append(file)?;
        Ok(self)
    }

    /// Like [`put_f16`](Checkpoint::put_f16), but rounds to `bf16`, which is less precise and has
    /// the range of `f32`.
    ///
    /// # Errors
    ///
    /// As for [`put`](Checkpoint::put).
    #[cfg(feature = "half")]
    pub fn put_bf16<P: Parameters>(&mut self, name: &str, parameters: &P) -> Result<&mut Self, FileError> {
        self.put_where(name, parameters, StoredFloats::Bf16)?;
        Ok(self)
    }

    fn put_where<P: Parameters>(
        &mut self,
        name: &str,
        value: &P,
        floats: StoredFloats,
    ) -> Result<(), FileError> {
        let mut file = SafetensorsWriter::new();
        P::visit([], [value], &mut Path::new(), &mut Writing { file: &mut file, name, floats, along: None })?;
        self.file.append(file)
    }

    /// Adds an entry to the metadata: text under a name, such as the training options.
    ///
    /// # Errors
    ///
    /// If there already is an entry with this name.
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

    /// Writes the file. If that fails, an existing file is unchanged: see
    /// [saving](crate::file#saving).
    ///
    /// # Errors
    ///
    /// As for [`to_bytes`](Checkpoint::to_bytes), and if the file cannot be written.
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), FileError> {
        self.file.save(path)
    }

    /// The bytes of an `.npz` archive with the same content.
    ///
    /// # Errors
    ///
    /// If NumPy lacks an element type (`bf16`), the names of a tensor's dims are too long for a
    /// header, the name of a tensor begins with `text of `, or the content exceeds the limits of an
    /// archive.
    #[cfg(feature = "npy")]
    pub fn to_npz(&self) -> Result<Vec<u8>, FileError> {
        self.file.to_npz()
    }

    /// Writes an `.npz` archive. If that fails, an existing file is unchanged: see
    /// [saving](crate::file#saving).
    ///
    /// # Errors
    ///
    /// As for [`to_npz`](Checkpoint::to_npz), and if the file cannot be written.
    #[cfg(feature = "npy")]
    pub fn save_npz(&self, path: impl AsRef<std::path::Path>) -> Result<(), FileError> {
        save(path.as_ref(), &self.to_npz()?)
    }
}

fn put_state(file: &mut SafetensorsWriter, name: &str, tensor: &StateTensor) -> Result<(), FileError> {
    if tensor.sizes().len() > tensor.keys().len() {
        return Err(positional_axes(name));
    }
    if let Some(data) = tensor.in_order_of_axes::<f64>() {
        return file.put_elements(name, tensor.keys(), tensor.sizes(), &data);
    }
    let data = tensor.in_order_of_axes::<f32>().expect("the elements are of one of these types");
    file.put_elements(name, tensor.keys(), tensor.sizes(), &data)
}

/// A checkpoint to read.
pub struct Saved<B = AlignedBytes> {
    file: File<B>,
    /// The path of the file, if it was opened by its path.
    path: Option<PathBuf>,
    converting: bool,
    /// Old names of dims in the file, with the new ones.
    renamed: Vec<(String, &'static str)>,
}

impl Saved {
    /// Reads a file into memory: safetensors or, with the feature `npy`, an `.npz` archive.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, and as for `new`.
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let saved = Self::new(AlignedBytes::read(path)?).map_err(|error| error.of(Some(path)))?;
        Ok(Saved { path: Some(path.into()), ..saved })
    }
}

impl<B: AsRef<[u8]>> Saved<B> {
    /// A checkpoint from a file in memory. An archive is unpacked.
    ///
    /// # Errors
    ///
    /// If the file is not valid, or is an archive that unpacks to more than the default limit of
    /// `NpzReader`.
    pub fn new(bytes: B) -> Result<Self, FileError> {
        Ok(Saved { file: File::new(bytes)?, path: None, converting: false, renamed: Vec::new() })
    }

    /// Lets [`load`](Saved::load) and [`load_optimizer`](Saved::load_optimizer) convert floats to
    /// another float type, with rounding. Without this call, a tensor with another element type is
    /// an error.
    #[must_use]
    pub fn converting_floats(self) -> Self {
        Saved { converting: true, ..self }
    }

    /// Reads the dim that the file names `old` as the dim `new`, for a program in which the dim has
    /// been renamed since. Give both without primes: the primes of `old` are renamed, too. Tensors
    /// in which two dims would then have the same name are read as they are.
    ///
    /// ```
    /// use typed_dims::optim::checkpoint::{Checkpoint, Saved};
    /// use typed_dims::prelude::*;
    ///
    /// # mod before { typed_dims::prelude::dims! { pub struct Hidden; } }
    /// # let gain = ones::<f32, _>(before::Hidden.of(5));
    /// dims! { struct Wide; } // before: `Hidden`
    /// # let bytes = Checkpoint::new().put("gain", &gain)?.to_bytes()?;
    /// let mut gain = zeros::<f32, _>(Wide.of(5));
    /// Saved::new(bytes)?.renaming("Hidden", Wide).load("gain", &mut gain)?;
    /// assert_eq!(gain, ones(Wide.of(5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn renaming(mut self, old: &str, new: impl DimRef) -> Self {
        self.renamed.push((old.trim_end_matches('\'').to_string(), new.info().key().name));
        self
    }

    /// The text under a name in the metadata, as added by [`Checkpoint::note`].
    pub fn note(&self, name: &str) -> Option<&str> {
        self.file.note(name)
    }

    /// Replaces the tensors of a value with those stored under the name. Fields with
    /// `#[parameters(constant)]` are kept, and so is the order of the axes in memory.
    ///
    /// # Errors
    ///
    /// The error lists all mismatches: missing and unused tensors, and tensors whose element type,
    /// dims or sizes are not those of the value. On an error, the value is unchanged.
    pub fn load<P: Parameters>(&self, name: &str, parameters: &mut P) -> Result<(), LoadError> {
        *parameters = self.read(name, parameters).map_err(|error| self.located(error))?;
        Ok(())
    }

    /// Replaces the state of an optimizer with the state stored under the name. `parameters` are
    /// the parameters that the optimizer updates.
    ///
    /// Moments in half precision, as written by older versions, are converted. If the file has no
    /// master weights, they start from the parameters.
    ///
    /// # Errors
    ///
    /// As for [`load`](Saved::load). It is also an error if there is no number of steps under this
    /// name, if a number of steps is invalid, or if the saved optimizer had other moments: Adam's
    /// state cannot be loaded into [`Lion`](crate::training::optim::Lion).
    /// [`Adam`](crate::training::optim::Adam) and [`AdamW`](crate::training::optim::AdamW) have the
    /// same moments if both or neither use `amsgrad`, so either can then continue from the state of
    /// the other.
    pub fn load_optimizer<P: Parameters, O: Optimizer<P>>(
        &self,
        name: &str,
        optimizer: &mut O,
        parameters: &P,
    ) -> Result<(), LoadError> {
        self.read_optimizer(name, optimizer, parameters).map_err(|error| self.located(error))
    }

    fn located(&self, error: LoadError) -> LoadError {
        error.of(self.path.as_deref())
    }

    fn read_optimizer<P: Parameters, O: Optimizer<P>>(
        &self,
        name: &str,
        optimizer: &mut O,
        parameters: &P,
    ) -> Result<(), LoadError> {
        let refused = |name: &str, why: &str| {
            LoadError::new(vec![Fault::Unreadable { name: name.to_string(), why: why.to_string() }])
        };
        let steps = |note: &str, name: &str| {
            let steps = self.file.note(note);
            steps
                .map(|steps| steps.parse::<u64>())
                .transpose()
                .map_err(|_| refused(name, "its step count is not an unsigned 64-bit integer"))
        };
        let all = steps(&steps_of(name), name)?
            .ok_or_else(|| refused(name, &lacks("optimizer", &self.optimizers())))?;
        if let Some(why) = self.other_optimizer(name, optimizer) {
            return Err(refused(name, &why));
        }
        let mut behind = Vec::new();
        for parameter in parameters.names() {
            let own = below(name, &parameter);
            match steps(&steps_in(name, &parameter), &own)? {
                Some(taken) if taken > all => {
                    return Err(refused(&own, "it has taken more steps than the optimizer"));
                }
                Some(taken) => behind.push((parameter, taken)),
                None => {}
            }
        }
        let (mut by_path, mut faults, mut remedy) = (ByPath::with_masters(), Vec::new(), None);
        let mut read = |part: &str, kind: StateKind, by_path: &mut ByPath| {
            let name = below(name, part);
            let mut reading = StateReader {
                file: &self.file,
                name: &name,
                kind,
                layout: optimizer.moment_layout(),
                converting: self.converting,
                renamed: &self.renamed,
                remedy: &mut remedy,
                along: StateWalk::new(by_path, None),
                behind: &behind,
                taken: BTreeSet::new(),
                faults: &mut faults,
            };
            let read = P::visit([], [parameters], &mut Path::new(), &mut reading);
            let taken = reading.taken;
            if let Err(error) = read {
                faults.push(Fault::Unreadable { name: name.clone(), why: error.to_string() });
            }
            self.left_over(&name, &taken, &mut faults);
        };
        if all > 0 {
            for (at, moment) in optimizer.moments().iter().enumerate() {
                read(moment, StateKind::Moment(at), &mut by_path);
            }
            if optimizer.state().has_master_weights() {
                read(MASTER, StateKind::Master, &mut by_path);
            }
        }
        if !faults.is_empty() {
            return Err(LoadError::new(faults).with_renamed(remedy));
        }
        if parameters.names().is_empty() {
            by_path.begin();
        }
        let state = optimizer.state_mut();
        state.restore_with(all, by_path);
        behind.iter().for_each(|(parameter, taken)| state.restore_steps_of(parameter, *taken));
        Ok(())
    }

    /// The names of the optimizers in the file.
    fn optimizers(&self) -> Vec<String> {
        let notes = self.file.notes();
        notes.into_iter().filter_map(|note| note.strip_prefix(STEPS_OF)).map(str::to_string).collect()
    }

    /// The names of all tensors up to the first `.`, each once.
    fn parts(&self) -> Vec<String> {
        let first = |tensor: &String| tensor.split('.').next().unwrap_or_default().to_string();
        let parts: BTreeSet<String> = self.file.tensors().iter().map(first).collect();
        parts.into_iter().collect()
    }

    /// Why the state under the name does not fit this optimizer, if it does not.
    fn other_optimizer<P: Parameters, O: Optimizer<P>>(&self, name: &str, optimizer: &O) -> Option<String> {
        let here = described(optimizer);
        let moments = |described: &str| described.split_once(": ").map(|(_, moments)| moments.to_string());
        match self.file.note(&state_of(name)) {
            Some(there) if moments(there) == moments(&here) => None,
            Some(there) => {
                Some(format!("it is the state of `{}`, not of `{here}`", crate::file::shortened(there)))
            }
            // Files written by older versions do not name the optimizer. The state belongs to
            // another optimizer if it has a moment that `optimizer` lacks.
            None => {
                let mut others = MOMENTS.iter().filter(|moment| !optimizer.moments().contains(moment));
                let tensors = self.file.tensors();
                others
                    .find(|moment| {
                        let start = below(name, moment);
                        tensors.iter().any(|tensor| {
                            tensor
                                .strip_prefix(&*start)
                                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                        })
                    })
                    .map(|moment| {
                        format!("it is the state of an optimizer with the moment `{moment}`, not of `{here}`")
                    })
            }
        }
    }

    /// Adds a fault for each unread tensor under a name.
    fn left_over(&self, name: &str, taken: &BTreeSet<String>, faults: &mut Vec<Fault>) {
        for tensor in self.file.tensors() {
            if is_below(name, &tensor)
                && !taken.contains(&tensor)
                && let Ok(entry) = self.file.get(&tensor)
            {
                faults.push(Fault::LeftOver { sizes: entry.sizes().to_vec(), name: tensor });
            }
        }
    }

    fn read<P: Parameters>(&self, name: &str, like: &P) -> Result<P, LoadError> {
        let mut reading = TensorReader {
            file: &self.file,
            name,
            converting: self.converting,
            renamed: &self.renamed,
            remedy: None,
            taken: BTreeSet::new(),
            along: None,
            exact: Vec::new(),
            faults: Vec::new(),
        };
        let value = P::walk([like], &mut Path::new(), &mut reading);
        let TensorReader { taken, mut faults, remedy, .. } = reading;
        self.left_over(name, &taken, &mut faults);
        // If the file has no such part, a list of all missing tensors would not help.
        if !name.is_empty() && !faults.is_empty() {
            let parts = self.parts();
            if !parts.iter().any(|part| is_below(part, name)) {
                let why = lacks("tensor", &parts);
                faults = vec![Fault::Unreadable { name: name.to_string(), why }];
            }
        }
        match value {
            Ok(value) if faults.is_empty() => Ok(value),
            Ok(_) => Err(LoadError::new(faults).with_renamed(remedy)),
            Err(error) => {
                faults.push(Fault::Unreadable { name: name.to_string(), why: error.to_string() });
                Err(LoadError::new(faults).with_renamed(remedy))
            }
        }
    }
}

/// The reason why nothing can be read: the file has only `others`.
fn lacks(what: &str, others: &[String]) -> String {
    let has = if others.is_empty() { String::new() } else { format!("; it has {}", list_names(others)) };
    format!("the file has no {what} of this name{has}")
}

fn is_below(name: &str, tensor: &str) -> bool {
    name.is_empty() || tensor.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The names of the moments in files written by older versions.
const MOMENTS: [&str; 3] = ["mean", "square", "velocity"];

const MASTER: &str = "master";

/// The kind of an optimizer and the names of its moments, for files and messages.
fn described<P: Parameters, O: Optimizer<P>>(optimizer: &O) -> String {
    let moments = optimizer.moments();
    let moments = if moments.is_empty() { "no moments".to_string() } else { moments.join(", ") };
    format!("{}: {moments}", optimizer.kind())
}

fn state_of(optimizer: &str) -> String {
    format!("state of {optimizer}")
}

const STEPS_OF: &str = "steps of ";

fn steps_of(optimizer: &str) -> String {
    format!("{STEPS_OF}{optimizer}")
}

/// The key for a parameter's own number of steps. It starts with `steps in`, because
/// `steps of optimizer.weight` could also be the key of an optimizer named `optimizer.weight`.
fn steps_in(optimizer: &str, parameter: &str) -> String {
    format!("steps in {optimizer} of {parameter}")
}

fn below(name: &str, part: &str) -> String {
    let dot = if name.is_empty() || part.is_empty() { "" } else { "." };
    format!("{name}{dot}{part}")
}
