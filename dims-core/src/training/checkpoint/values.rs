//! Writing and reading the tensors of a value.

use crate::error::DimError;
use crate::execute::reduce::is_half;
use crate::expr::evaluate::evaluate_for;
#[cfg(feature = "half")]
use crate::file::Stored;
use crate::file::load::Fault;
use crate::file::safetensors::SafetensorsWriter;
use crate::file::{Entry, FileError, shortened};
use crate::grad::parameters::{Path, Visitor, Walk, is_learned};
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::training::checkpoint::file::File;
use crate::training::checkpoint::{MASTER, below, is_below};
use crate::training::optim::state_tensor::copied_in_order_of_axes;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims, Keys};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::{Any, type_name};
#[cfg(feature = "half")]
use half::{bf16, f16};
use kernels::loops::axes::{Order, Sizes};
use kernels::scalar::Element;
use num_complex::Complex;
use std::collections::BTreeSet;

macro_rules! each_stored {
    ($of:ident, $($(#[$cfg:meta])? $t:ty),*) => {
        $($(#[$cfg])? { $of!($t); })*
    };
}

/// Invokes a macro with each element type that files can store.
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

/// The type in which elements of `f32` and `f64` are stored.
#[derive(Clone, Copy)]
pub(super) enum StoredFloats {
    Same,
    #[cfg(feature = "half")]
    F16,
    #[cfg(feature = "half")]
    Bf16,
}

/// Writes the tensors under a name.
pub(super) struct Writing<'w> {
    pub(super) file: &'w mut SafetensorsWriter,
    pub(super) name: &'w str,
    #[cfg_attr(not(feature = "half"), allow(dead_code))]
    pub(super) floats: StoredFloats,
    /// The axes of the next tensor, if it is a line of state.
    pub(super) along: Option<DimsAndSizes>,
}

/// The dims of the elements in a line of state, and the sizes of all axes.
pub(super) type DimsAndSizes = (Keys, Vec<usize>);

fn line_axes(keys: &[DimKey], sizes: &[usize]) -> DimsAndSizes {
    let set = keys.iter().fold(Keys::EMPTY, |set, key| set.join(&Keys::one(*key)));
    (set, sizes.to_vec())
}

impl Visitor<0, 1> for Writing<'_> {
    type Error = FileError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        _: [&mut Named<T, S, R>; 0],
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<(), FileError> {
        let name = below(self.name, &path.to_string());
        let along = self.along.take();
        let shape = tensor.unified_shape()?;
        let (keys, sizes) = match &along {
            Some((set, sizes)) => (set.as_slice(), &sizes[..]),
            None => (S::KEYS.as_slice(), shape.sizes()),
        };
        if sizes.len() > keys.len() {
            return Err(positional_axes(&name));
        }
        let order: Vec<usize> = (0..shape.sizes().len()).collect();
        let data = evaluate_for::<S, R, _>(&tensor.expr, &shape, &order, "put")?;
        let data: &dyn Any = &data;
        #[cfg(feature = "half")]
        match self.floats {
            StoredFloats::Same => {}
            StoredFloats::F16 => {
                if let Some(data) = nearest::<f16>(data) {
                    return self.file.put_elements(&name, keys, sizes, &data);
                }
            }
            StoredFloats::Bf16 => {
                if let Some(data) = nearest::<bf16>(data) {
                    return self.file.put_elements(&name, keys, sizes, &data);
                }
            }
        }
        macro_rules! put {
            ($t:ty) => {
                if let Some(data) = data.downcast_ref::<Vec<$t>>() {
                    return self.file.put_elements(&name, keys, sizes, data);
                }
            };
        }
        stored_types!(put);
        let what = format!("`{name}` has elements of type `{}`, which no file can store", type_name::<T>());
        Err(FileError::Unwritable { what })
    }

    fn line_along(&mut self, keys: &[DimKey], sizes: &[usize]) {
        self.along = Some(line_axes(keys, sizes));
    }

    fn optimizer(&mut self, path: &Path) -> Result<(), FileError> {
        let name = below(self.name, &path.to_string());
        let what = match (&name[..], path.segments().is_empty()) {
            ("", _) => "the value is an optimizer: write `put_optimizer(\"optimizer\", ..)`".to_string(),
            (_, true) => format!("`{name}` is an optimizer: write `put_optimizer(\"{name}\", ..)`"),
            (_, false) => format!(
                "`{name}` is an optimizer: write `put_optimizer(\"{name}\", ..)`, and put the other parts one by one"
            ),
        };
        Err(FileError::Unwritable { what })
    }
}

/// The elements rounded to type `H`, if they are of type `f32` or `f64`.
#[cfg(feature = "half")]
fn nearest<H: Stored>(data: &dyn Any) -> Option<Vec<H>> {
    match (data.downcast_ref::<Vec<f32>>(), data.downcast_ref::<Vec<f64>>()) {
        (Some(data), _) => data.iter().map(|&a| H::nearest(a.into())).collect(),
        (_, Some(data)) => data.iter().map(|&a| H::nearest(a)).collect(),
        _ => None,
    }
}

/// Reads the tensors under a name. They must have the types and sizes of the given value's tensors.
/// On a mismatch, the given tensor is kept.
pub(super) struct TensorReader<'r, B> {
    pub(super) file: &'r File<B>,
    pub(super) name: &'r str,
    /// Whether floats may be converted to another float type.
    pub(super) converting: bool,
    /// Old names of dims in the file, with the new ones.
    pub(super) renamed: &'r [(String, &'static str)],
    /// The old and the new name of a dim that is not in `renamed`, but seems to have been renamed:
    /// a suggestion for the error.
    pub(super) remedy: Option<[String; 2]>,
    /// The names of the value's tensors that the file has.
    pub(super) taken: BTreeSet<String>,
    /// The axes of the next tensor, if it is a line of state.
    pub(super) along: Option<DimsAndSizes>,
    /// For each value whose tensors of half precision are also in the file in `f32`: its name, and
    /// the name of the value in `f32`.
    pub(super) exact: Vec<[String; 2]>,
    pub(super) faults: Vec<Fault>,
}

impl<B: AsRef<[u8]>> TensorReader<'_, B> {
    fn has_tensor(&self, name: &str) -> bool {
        !matches!(self.file.get(name), Err(FileError::Missing { .. }))
    }

    /// The name of the exact values in `f32` that the file has for a tensor of half precision.
    /// `None` if the given tensor is itself of half precision: it does not hold the exact values.
    fn exact_name<T: Element>(&self, name: &str) -> Option<String> {
        if is_half::<T>() || !is_learned::<T>() {
            return None;
        }
        let [kept, exact] = self.exact.iter().rev().find(|[kept, _]| is_below(kept, name))?;
        let path = name[kept.len()..].trim_start_matches('.');
        let exact = below(&below(exact, path), MASTER);
        (self.has_tensor(name) && self.has_tensor(&exact)).then_some(exact)
    }
}

impl<B: AsRef<[u8]>> Walk<1> for TensorReader<'_, B> {
    type Error = DimError;
    const STATE: bool = true;

    fn has(&self, path: &Path) -> Option<bool> {
        Some(self.has_tensor(&below(self.name, &path.to_string())))
    }

    fn line_along(&mut self, keys: &[DimKey], sizes: &[usize]) {
        self.along = Some(line_axes(keys, sizes));
    }

    fn keeps_exact(&mut self, path: &Path, [kept, exact]: [&str; 2], filled_by: Option<&str>) {
        let own = below(self.name, &path.to_string());
        let Some(filled_by) = filled_by else {
            self.exact.push([below(&own, kept), below(&own, exact)]);
            return;
        };
        let missing = below(&own, kept);
        let tensors = self.file.tensors();
        if tensors.iter().any(|tensor| is_below(&missing, tensor)) {
            self.taken.extend(tensors.into_iter().filter(|tensor| is_below(&own, tensor)));
            let name = if own.is_empty() { missing } else { own };
            let why = format!("the value to load into is empty; call `{filled_by}` once before loading");
            self.faults.push(Fault::Unreadable { name, why });
        }
    }

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let mut name = below(self.name, &path.to_string());
        if let Some(exact) = self.exact_name::<T>(&name) {
            self.taken.insert(exact.clone());
            if self.converting {
                self.taken.insert(core::mem::replace(&mut name, exact));
            }
        }
        let along = self.along.take();
        let shape = tensor.unified_shape()?;
        let wanted = match &along {
            Some((set, sizes)) => (set, &sizes[..]),
            None => (S::KEYS, shape.sizes()),
        };
        let entry = self.file.get(&name).map(|entry| entry.renaming(self.renamed));
        let found: Result<Named<T, S, R>, Vec<Fault>> = match entry {
            Ok(entry) => {
                self.taken.insert(name.clone());
                match read::<T>(&name, &entry, wanted, self.converting, &mut self.remedy) {
                    Ok((elements, order, sizes)) => {
                        // Keep the order of the axes in memory, because the rounding of norms
                        // depends on it. A line has its elements in the order of the axes.
                        let own = match &along {
                            Some(_) => (0..order.len()).collect(),
                            None => tensor.expr.order_in_memory(),
                        };
                        let (elements, sizes) = reordered(elements, (&order, &sizes), &own);
                        let (own, sizes) = match &along {
                            Some(_) => (Order::from_elem(0, 1), Sizes::from_elem(elements.len(), 1)),
                            None => (own, sizes),
                        };
                        Ok(Named::from_expr(Evaluated::in_order(elements, &own, &sizes).with_origin(None)))
                    }
                    Err(faults) => Err(faults),
                }
            }
            Err(FileError::Missing { .. }) => vec_of(missing::<T>(name, wanted.0.as_slice(), wanted.1)),
            Err(error) => vec_of(Fault::Unreadable { why: error.to_string(), name }),
        };
        Ok(found.unwrap_or_else(|faults| {
            self.faults.extend(faults);
            tensor.clone()
        }))
    }
}

/// Reorders elements, which are contiguous in the order `from`, and the sizes, which are in this
/// order too, to the order `to`.
fn reordered<T: Element>(elements: Vec<T>, (from, sizes): (&Order, &Sizes), to: &Order) -> (Vec<T>, Sizes) {
    if from == to {
        return (elements, sizes.clone());
    }
    let place = |at: usize, order: &Order| order.iter().position(|&own| own == at).expect("the same axes");
    let sizes: Sizes = to.iter().map(|at| sizes[place(*at, from)]).collect();
    let from: Order = from.iter().map(|at| place(*at, to)).collect();
    (copied_in_order_of_axes(&elements, &sizes, &from), sizes)
}

/// The axes of a tensor with these dims and sizes, for messages.
fn axes_of(keys: &[DimKey], sizes: &[usize]) -> String {
    let dims = keys.iter().zip(sizes).map(|(key, size)| format!("{} = {size}", key.name));
    let rest = sizes[keys.len()..].iter().map(ToString::to_string);
    format!("({})", dims.chain(rest).collect::<Vec<_>>().join(", "))
}

pub(super) fn missing<T: Element>(name: String, keys: &[DimKey], sizes: &[usize]) -> Fault {
    let elements = type_name::<T>().rsplit("::").next().unwrap_or_default();
    Fault::Missing { expected: format!("{elements} {}", axes_of(keys, sizes)), name }
}

/// The error for a tensor with positional axes, which checkpoints cannot store.
pub(super) fn positional_axes(name: &str) -> FileError {
    FileError::Unwritable { what: format!("`{name}` has positional axes: give each of them a dim") }
}

/// If all axes would fit after one dim is renamed: the name of this dim in the entry, and its name
/// in `keys`, both without primes.
fn renamed(entry: &Entry<'_>, keys: &[DimKey]) -> Option<[String; 2]> {
    fn unprimed(name: &str) -> &str {
        name.trim_end_matches('\'')
    }
    let names = entry.names()?;
    let old = unprimed(names.iter().copied().find(|name| keys.iter().all(|key| key.name != *name))?);
    let new = unprimed(keys.iter().find(|key| !names.contains(&key.name))?.name);
    let after: Vec<String> = names
        .iter()
        .map(|&name| match name.strip_prefix(old) {
            Some(primes) if unprimed(primes).is_empty() => format!("{new}{primes}"),
            _ => name.to_string(),
        })
        .collect();
    let fits = after.len() == keys.len() && keys.iter().all(|key| after.iter().any(|name| name == key.name));
    // The message writes the name as a string literal of Rust.
    let is_plain = shortened(old) == old && !old.contains('"');
    (fits && is_plain).then(|| [old.to_string(), new.to_string()])
}

pub(super) fn vec_of<X>(fault: Fault) -> Result<X, Vec<Fault>> {
    Err(vec![fault])
}

/// The elements of an entry, which must have these dims and sizes. Also returns the numbers of the
/// dims, the outermost in memory first, and their sizes in this order. If the entry has one dim in
/// place of another, `remedy` gets their names, unless it has some.
pub(super) fn read<T: Element>(
    name: &str,
    entry: &Entry<'_>,
    (set, sizes): (&Keys, &[usize]),
    converting: bool,
    remedy: &mut Option<[String; 2]>,
) -> Result<(Vec<T>, Order, Sizes), Vec<Fault>> {
    let keys = set.as_slice();
    let name = || name.to_string();
    let order = match entry.names() {
        Some(_) => entry.named_by(set).ok(),
        None => (entry.sizes().len() == keys.len()).then(|| (0..keys.len()).collect()),
    };
    let Some(order) = order.filter(|_| sizes.len() == keys.len()) else {
        if remedy.is_none() && sizes.len() == keys.len() {
            *remedy = renamed(entry, keys);
        }
        return vec_of(Fault::Axes {
            name: name(),
            expected: axes_of(keys, sizes),
            found: entry.described(),
        });
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
                return Ok((elements, order, sizes));
            }
        };
    }
    stored_types!(get);
    let why = format!("no file can store elements of type `{}`", type_name::<T>());
    vec_of(Fault::Unreadable { name: name(), why })
}
