//! Loading structs of tensors from a file (feature `safetensors`).
//!
//! `#[derive(Load)]` maps fields to arrays of the file, and [`Weights`] holds these arrays. All
//! names, element types and sizes are checked before the struct is returned, and all problems are
//! reported at once.

use crate::seal::{PRIVATE, Private};
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

mod error;
mod layers;

pub use error::{Fault, LoadError};

use super::element::{Stored, decoded, in_place};
use super::entry::Entry;
use super::error::FileError;
use super::names::{AxisName, one};
use super::safetensors::SafetensorsReader;
use crate::creation::create::Chained;
use crate::error::{DimError, SizeFrom};
use crate::expr::evaluate::evaluate_tensor_in;
use crate::operators::nn::bias::NoBias;
use crate::storage::{Evaluated, View};
use crate::tensors::named::Named;
use crate::types::dim::DimList;
use crate::types::rank::Rank0;
use crate::types::role::means;
use crate::types::set::{DimKey, Dims, Keys, MAX_DIMS};
use alloc::collections::{BTreeMap, BTreeSet};
use core::marker::PhantomData;
use smallvec::SmallVec;
use std::path::Path;

/// The arrays of a file by name, and the sizes that were given for dims.
///
/// `Weights` borrows the file's bytes. In a loaded struct, fields of the type
/// [`TensorView`](crate::tensors::named::TensorView) are views of these bytes.
pub struct Weights<'a> {
    arrays: BTreeMap<String, Entry<'a>>,
    sizes: Vec<Known>,
    ignored: Vec<String>,
    converting: bool,
    /// The path of the file, if it was opened from a path.
    path: Option<&'a Path>,
}

/// The size of a dim, and the array that it is from.
struct Known {
    dim: DimKey,
    size: usize,
    from: Option<String>,
}

impl<'a> Weights<'a> {
    /// The arrays of a file.
    ///
    /// # Errors
    ///
    /// If the file has invalid names of dims.
    pub fn of<B: AsRef<[u8]>>(file: &'a SafetensorsReader<B>) -> Result<Self, FileError> {
        let arrays = file.tensors().into_iter().map(|name| file.get(&name).map(|entry| (name, entry)));
        Ok(Weights {
            arrays: arrays.collect::<Result<_, _>>()?,
            sizes: Vec::new(),
            ignored: Vec::new(),
            converting: false,
            path: file.path(),
        })
    }

    /// Sets the sizes of dims that cannot be inferred from the arrays, such as the number of heads:
    /// `weights.with((Head.of(12), Position.of(512)))`.
    ///
    /// Any other dim without a static size gets its size from the first loaded array that has the
    /// dim, and later arrays must agree.
    ///
    /// # Errors
    ///
    /// If a dim has no size, or was already given another size.
    pub fn with(mut self, dims: impl DimList) -> Result<Self, DimError> {
        let mut failed = None;
        dims.each(|dim| {
            let Some(size) = dim.size() else {
                failed = Some(DimError::Unsized { dim: dim.name });
                return;
            };
            match size_of_dim(&self.sizes, &dim.key()).filter(|known| known.size != size) {
                Some(known) => {
                    let of = |dim, size| SizeFrom { dim, size, origin: None };
                    failed = Some(DimError::two_sizes(of(known.dim.name, known.size), of(dim.name, size)));
                }
                None => self.sizes.push(Known { dim: dim.key(), size, from: None }),
            }
        });
        failed.map_or(Ok(self), Err)
    }

    /// Allows arrays to be unused: the one with this name, and all whose names begin with `name`
    /// and a dot. The empty name stands for all arrays.
    pub fn ignoring(mut self, name: &str) -> Self {
        self.ignored.push(name.to_owned());
        self
    }

    /// Converts arrays of floats to the float type of their field, for example `f16` in the file to
    /// `f32` in memory. Each element is rounded to the nearest value. By default, such arrays are
    /// an error. (Half-precision elements in a file need the feature `half`.)
    ///
    /// Fields of type `Tensor` are converted. A view must have the element type of the file.
    pub fn converting_floats(mut self) -> Self {
        self.converting = true;
        self
    }

    /// Loads a struct from the arrays.
    ///
    /// # Errors
    ///
    /// All problems in one error: missing, unused and unreadable arrays, arrays that cannot be
    /// borrowed, mismatched element types and axes, axes that cannot be split, and dims with two
    /// sizes.
    pub fn load<M: Load<'a>>(&self) -> Result<M, LoadError> {
        let sizes = self.sizes.iter().map(|known| Known { from: None, ..*known }).collect();
        let mut loader =
            Loader { weights: self, name: String::new(), sizes, taken: BTreeSet::new(), faults: Vec::new() };
        let value = M::load(&mut loader);
        let Loader { taken, mut faults, .. } = loader;
        for (name, array) in &self.arrays {
            if !taken.contains(name) && !self.ignored.iter().any(|ignored| within(ignored, name)) {
                faults.push(Fault::LeftOver { name: name.clone(), sizes: array.sizes().to_vec() });
            }
        }
        match value {
            Some(value) if faults.is_empty() => Ok(value),
            _ => Err(LoadError::new(faults).of(self.path)),
        }
    }
}

/// The known size of a dim.
fn size_of_dim<'k>(sizes: &'k [Known], dim: &DimKey) -> Option<&'k Known> {
    sizes.iter().find(|known| known.dim.is_kin(dim))
}

/// Whether an array is named `prefix` or is below it. All arrays are below the empty name.
fn within(prefix: &str, name: &str) -> bool {
    let rest = name.strip_prefix(prefix);
    rest.is_some_and(|rest| prefix.is_empty() || rest.is_empty() || rest.starts_with('.'))
}

/// A value that can be loaded from the arrays of a file. Implement it with `#[derive(Load)]`.
///
/// A `Vec` is loaded from `name.0`, `name.1`, and so on; there must be at least one element. An
/// `Option` is `None` if the file has no array whose name is `name` or begins with `name.`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be loaded from a file of weights",
    label = "this does not implement `Load`",
    note = "write `#[derive(Load)]` before the struct; the fields of type `Tensor` list their dims in the order of the file's axes",
    note = "if a field's type is an alias of a tensor, write it out, `Tensor<f32, (A, B)>`, or add `#[load(axes = (A, B))]`: an alias hides the order of the axes"
)]
pub trait Load<'a>: Sized {
    /// The value at the loader's current name, or `None` if the loader has recorded an error.
    fn load(from: &mut Loader<'_, 'a>) -> Option<Self>;
}

/// The trait implemented by `#[derive(Load)]`. It is separate for the same reason as
/// [`DerivedParameters`](crate::grad::parameters::DerivedParameters).
#[doc(hidden)]
pub trait DerivedLoad<'a>: Sized {
    /// See [`Load::load`].
    fn load(from: &mut Loader<'_, 'a>) -> Option<Self>;
}

#[diagnostic::do_not_recommend]
impl<'a, M: DerivedLoad<'a>> Load<'a> for M {
    fn load(from: &mut Loader<'_, 'a>) -> Option<Self> {
        <M as DerivedLoad<'a>>::load(from)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, M: Load<'a>> Load<'a> for Vec<M> {
    fn load(from: &mut Loader<'_, 'a>) -> Option<Self> {
        let count = (1..).find(|count| !from.field(&count.to_string(), |from| from.is_there()))?;
        // Load all parts, so that all errors are recorded.
        let parts: Vec<Option<M>> = (0..count).map(|at| from.field(&at.to_string(), M::load)).collect();
        parts.into_iter().collect()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, M: Load<'a>> Load<'a> for Option<M> {
    fn load(from: &mut Loader<'_, 'a>) -> Option<Self> {
        if from.is_there() { M::load(from).map(Some) } else { Some(None) }
    }
}

/// Walks the names of a file and records the problems.
pub struct Loader<'w, 'a> {
    weights: &'w Weights<'a>,
    name: String,
    sizes: Vec<Known>,
    taken: BTreeSet<String>,
    faults: Vec<Fault>,
}

impl<'a> Loader<'_, 'a> {
    /// Runs `load` with `name` appended to the current name: `encoder`, then `layer`, is
    /// `encoder.layer`.
    pub fn field<R>(&mut self, name: &str, load: impl FnOnce(&mut Self) -> R) -> R {
        let len = self.name.len();
        if len > 0 && !name.is_empty() {
            self.name.push('.');
        }
        self.name.push_str(name);
        let out = load(self);
        self.name.truncate(len);
        out
    }

    /// Whether there is an array with the current name, or a name that begins with it and a dot.
    pub fn is_there(&self) -> bool {
        let behind = self.weights.arrays.range(self.name.clone()..).map(|(name, _)| name);
        // Names that sort between `a` and `a.b`, such as `a-b`, are not below `a`.
        behind.take_while(|name| name.starts_with(&self.name)).any(|name| within(&self.name, name))
    }

    /// The tensor with the current name, whose axes in the file are `A`.
    pub fn tensor<M: LoadTensor<'a>, A: FileAxes>(&mut self) -> Option<M> {
        if M::HAS_NO_ARRAY {
            return M::from_elements(Vec::new(), &[], &[]);
        }
        const {
            let fits = M::HAS_NO_ARRAY || covers(A::GROUPS, M::Set::KEYS);
            assert!(fits, "the axes of this field are not the dims of its tensor");
        };
        let Some(entry) = self.weights.arrays.get(&self.name) else {
            self.faults.push(Fault::Missing {
                name: self.name.clone(),
                expected: format!("{} {}", M::Elem::NAME, described(A::GROUPS)),
            });
            return None;
        };
        self.taken.insert(self.name.clone());
        if let Err(error) = entry.check_elements::<M::Elem>() {
            if self.weights.converting && M::OWNS && matches!(error, FileError::Elements { .. }) {
                return self.converted::<M, A>(entry, error);
            }
            self.unreadable(error);
            return None;
        }
        let (order, sizes) = self.sized::<M::Set>(A::GROUPS, entry)?;
        M::from_bytes(entry.bytes, entry.foreign, &order, &sizes).map_err(|error| self.unreadable(error)).ok()
    }

    /// Like [`tensor`](Loader::tensor), for elements of another type. `error` is recorded if they
    /// cannot be converted.
    fn converted<M: LoadTensor<'a>, A: FileAxes>(
        &mut self,
        entry: &Entry<'a>,
        error: FileError,
    ) -> Option<M> {
        match entry.converted::<M::Elem>() {
            Ok(Some(elements)) => {
                let (order, sizes) = self.sized::<M::Set>(A::GROUPS, entry)?;
                M::from_elements(elements, &order, &sizes)
            }
            Ok(None) => {
                self.unreadable(error);
                None
            }
            Err(error) => {
                self.unreadable(error);
                None
            }
        }
    }

    /// Like [`tensor`](Loader::tensor), but stored in memory with the axes `L`, the last one
    /// fastest.
    pub fn tensor_laid_out<M: LayOut<'a>, A: FileAxes, L: FileAxes>(&mut self) -> Option<M> {
        const {
            assert!(
                covers(L::GROUPS, M::Set::KEYS),
                "the layout of this field does not match the dims of its tensor"
            )
        };
        let order: Option<SmallVec<[usize; 8]>> = L::GROUPS
            .iter()
            .flat_map(|group| group.as_slice())
            .map(|key| M::Set::KEYS.position(key))
            .collect();
        let loaded = self.tensor::<M, A>()?;
        loaded.laid_out(&order?, PRIVATE).map_err(|error| self.unreadable(error.into())).ok()
    }

    fn unreadable(&mut self, error: FileError) {
        self.faults.push(match error {
            FileError::Elements { file, wanted, .. } => {
                Fault::Element { name: self.name.clone(), expected: wanted, found: file }
            }
            FileError::NotInPlace { why, .. } => Fault::NotInPlace { name: self.name.clone(), why },
            error => Fault::Unreadable { name: self.name.clone(), why: error.to_string() },
        });
    }

    /// For each dim of the axes, its position in the set and its size. Groups are split into their
    /// dims.
    fn sized<S: Dims>(
        &mut self,
        groups: &[&Keys],
        entry: &Entry<'_>,
    ) -> Option<(SmallVec<[usize; 8]>, SmallVec<[usize; 8]>)> {
        const {
            assert!(
                S::KEYS.is_sorted(),
                "the dims of this field are not in the order of a set: write `Tensor`, not `Named`"
            )
        };
        let found = entry.sizes();
        let axes =
            || Fault::Axes { name: self.name.clone(), expected: described(groups), found: entry.described() };
        let is = |axis: &AxisName, key: &DimKey| key.name == axis.name && means(&axis.roles, key.roles);
        let keys = || groups.iter().flat_map(|group| group.as_slice());
        // If the file names an axis for each dim, as `SafetensorsWriter` does, the names decide the
        // order.
        let by_name: Option<SmallVec<[&[DimKey]; 8]>> = entry.names.as_ref().and_then(|names| {
            let axis = |axis| keys().find(|key| is(axis, key)).map(core::slice::from_ref);
            if names.len() == keys().count() { names.iter().map(axis).collect() } else { None }
        });
        // Otherwise names and roles must agree for all axes that the field does not split.
        let otherwise = |(axis, group): (&AxisName, &&[DimKey])| match group {
            [key] => !is(axis, key),
            _ => false,
        };
        let groups = by_name.unwrap_or_else(|| groups.iter().map(|group| group.as_slice()).collect());
        if groups.len() != found.len() || entry.names.iter().flatten().zip(&groups).any(otherwise) {
            self.faults.push(axes());
            return None;
        }
        let (mut order, mut sizes) = (SmallVec::new(), SmallVec::new());
        let mut faults = Vec::new();
        for (&keys, &size) in groups.iter().zip(found) {
            let known = |key: &DimKey| key.fixed.or(size_of_dim(&self.sizes, key).map(|known| known.size));
            let open: Vec<&DimKey> = keys.iter().filter(|key| known(key).is_none()).collect();
            let product = keys.iter().filter_map(known).try_fold(1, usize::checked_mul);
            let rest = match (&open[..], product) {
                ([], _) if keys.len() == 1 => Some(size),
                ([], Some(product)) if product == size => Some(size),
                ([_], Some(product)) if product > 0 && size.is_multiple_of(product) => Some(size / product),
                _ => None,
            };
            let Some(rest) = rest else {
                let sizes = keys.iter().map(|key| match known(key) {
                    Some(size) => format!("{} = {size}", key.name),
                    None => key.name.to_owned(),
                });
                let group = format!("({})", sizes.collect::<Vec<_>>().join(", "));
                faults.push(Fault::Split { name: self.name.clone(), group, size });
                continue;
            };
            // An axis of one dim has the file's size, which is compared with the known size below.
            let of = |key| if keys.len() == 1 { size } else { known(key).unwrap_or(rest) };
            let parts: SmallVec<[usize; 4]> = keys.iter().map(of).collect();
            for (key, size) in keys.iter().zip(parts) {
                order.push(S::KEYS.position(key).expect("the axes are those of the set"));
                sizes.push(size);
                let (first, from) = match (key.fixed, size_of_dim(&self.sizes, key)) {
                    (Some(fixed), _) => (fixed, None),
                    (None, Some(known)) => (known.size, known.from.clone()),
                    (None, None) => {
                        let from = Some(self.name.clone());
                        self.sizes.push(Known { dim: *key, size, from });
                        continue;
                    }
                };
                if first != size {
                    faults.push(Fault::Size { name: self.name.clone(), dim: key.name, size, first, from });
                }
            }
        }
        let fits = faults.is_empty();
        self.faults.extend(faults);
        fits.then_some((order, sizes))
    }
}

/// The axes as text, for messages: `(Head x HeadDim, Width)`.
fn described(groups: &[&Keys]) -> String {
    let names = groups.iter().map(|group| {
        let names: Vec<_> = group.as_slice().iter().map(|key| one(key.name, key.roles, None)).collect();
        names.join(" x ")
    });
    format!("({})", names.collect::<Vec<_>>().join(", "))
}

/// Whether the groups contain each dim of a set once, and no other dims.
const fn covers(groups: &[&Keys], set: &Keys) -> bool {
    let (mut group, mut count, mut seen) = (0, 0, 0u64);
    while group < groups.len() {
        let keys = groups[group].as_slice();
        let mut key = 0;
        while key < keys.len() {
            match set.position(&keys[key]) {
                Some(at) => seen |= 1 << at,
                None => return false,
            }
            count += 1;
            key += 1;
        }
        group += 1;
    }
    let len = set.as_slice().len();
    count == len && seen.count_ones() as usize == len
}

/// The axes of an array in a file: a tuple with a dim for each axis. A tuple of dims in place
/// of a single dim splits the axis.
pub trait FileAxes {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of each axis.
    #[doc(hidden)]
    const GROUPS: &'static [&'static Keys];
}

macro_rules! axes {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: DimList),*> FileAxes for ($($d,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            const GROUPS: &'static [&'static Keys] = &[$($d::KEYS),*];
        }
    };
}

crate::types::tuples::each_tuple!(axes);

impl FileAxes for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const GROUPS: &'static [&'static Keys] = &[];
}

/// The axes of `A`, followed by the axes of `B`.
impl<A: FileAxes, B: FileAxes> FileAxes for Chained<A, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const GROUPS: &'static [&'static Keys] = {
        let (all, _) = ChainedGroups::<A, B>::GROUPS.split_at(A::GROUPS.len() + B::GROUPS.len());
        all
    };
}

/// Holds the axes of `A`, followed by those of `B` and by empty groups, as a constant.
struct ChainedGroups<A, B>(PhantomData<(A, B)>);

impl<A: FileAxes, B: FileAxes> ChainedGroups<A, B> {
    const GROUPS: &'static [&'static Keys; 2 * MAX_DIMS] = &{
        let (mut all, mut at) = ([&Keys::EMPTY; 2 * MAX_DIMS], 0);
        while at < A::GROUPS.len() {
            all[at] = A::GROUPS[at];
            at += 1;
        }
        while at < A::GROUPS.len() + B::GROUPS.len() {
            all[at] = B::GROUPS[at - A::GROUPS.len()];
            at += 1;
        }
        all
    };
}

/// The type of a field: a tensor that owns its elements, a view of the file, or `NoBias`.
pub trait LoadTensor<'a>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the elements.
    type Elem: Stored;
    /// The dims.
    type Set: Dims;
    /// Whether it owns its elements, so that they can be converted.
    #[doc(hidden)]
    const OWNS: bool = false;
    /// Whether the file has no array for it.
    #[doc(hidden)]
    const HAS_NO_ARRAY: bool = false;
    #[doc(hidden)]
    fn from_elements(_: Vec<Self::Elem>, _order: &[usize], _sizes: &[usize]) -> Option<Self> {
        None
    }
    #[doc(hidden)]
    fn from_bytes(
        bytes: &'a [u8],
        foreign: bool,
        order: &[usize],
        sizes: &[usize],
    ) -> Result<Self, FileError>;
}

impl<'a, T: Stored, S: Dims> LoadTensor<'a> for Named<T, S> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Set = S;
    const OWNS: bool = true;

    fn from_elements(elements: Vec<T>, order: &[usize], sizes: &[usize]) -> Option<Self> {
        Some(Named::from_expr(Evaluated::in_order(elements, order, sizes).with_origin(None)))
    }

    fn from_bytes(
        bytes: &'a [u8],
        foreign: bool,
        order: &[usize],
        sizes: &[usize],
    ) -> Result<Self, FileError> {
        let elements = decoded(bytes, foreign)?;
        Ok(Named::from_expr(Evaluated::in_order(elements, order, sizes).with_origin(None)))
    }
}

impl<'a, T: Stored, S: Dims> LoadTensor<'a> for Named<T, S, Rank0, View<'a, T, S>> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Set = S;

    fn from_bytes(
        bytes: &'a [u8],
        foreign: bool,
        order: &[usize],
        sizes: &[usize],
    ) -> Result<Self, FileError> {
        Ok(Named::from_expr(View::in_order(in_place(bytes, foreign)?, order, sizes)))
    }
}

impl<'a> LoadTensor<'a> for NoBias {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = u8;
    type Set = ();
    const HAS_NO_ARRAY: bool = true;

    fn from_elements(_: Vec<u8>, _: &[usize], _: &[usize]) -> Option<Self> {
        Some(NoBias)
    }

    fn from_bytes(_: &'a [u8], _: bool, _: &[usize], _: &[usize]) -> Result<Self, FileError> {
        Ok(NoBias)
    }
}

/// A tensor type that a field with `layout` can have. It owns its elements.
#[diagnostic::on_unimplemented(
    message = "only a `Tensor` can have a `layout`",
    label = "this borrows its elements, in the layout of the file"
)]
pub trait LayOut<'a>: LoadTensor<'a> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    fn laid_out(self, order: &[usize], private: Private) -> Result<Self, DimError>;
}

#[diagnostic::do_not_recommend]
impl<'a, T: Stored, S: Dims> LayOut<'a> for Named<T, S> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn laid_out(self, order: &[usize], _: Private) -> Result<Self, DimError> {
        let shape = self.unified_shape()?;
        Ok(Named::from_expr(evaluate_tensor_in::<S, Rank0, _>(self.expr, &shape, order)?))
    }
}
