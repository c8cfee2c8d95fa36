//! One tensor of a file.

use super::element::{self, ElementKind, Stored};
use super::error::FileError;
use super::names::AxisName;
use crate::creation::convert::{AxisDims, CountOf};
use crate::plan::shape::volume;
use crate::storage::{Evaluated, View};
use crate::tensors::named::Named;
use crate::types::rank::Rank0;
use crate::types::role::means;
use crate::types::set::{DimKey, Dims, Keys, MAX_DIMS, Sorted};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use kernels::loops::axes::{Order, Sizes};
use ndarray::{ArrayD, IxDyn, ShapeBuilder};
use std::path::Path;

/// A tensor in a file.
pub struct Entry<'f> {
    pub(super) tensor: String,
    /// The file, if it was opened by its path.
    pub(super) path: Option<&'f Path>,
    /// The element type. `None` if the library cannot read it.
    pub(super) kind: Option<ElementKind>,
    /// The name of the element type in the file.
    pub(super) called: String,
    /// Whether elements are read as raw bytes.
    pub(super) is_raw: bool,
    pub(super) sizes: Vec<usize>,
    /// Whether the first axis is the innermost one, as in Fortran.
    pub(super) reversed: bool,
    /// Whether the byte order differs from this machine's.
    pub(super) foreign: bool,
    pub(super) names: Option<Vec<AxisName>>,
    pub(super) bytes: &'f [u8],
}

impl<'f> Entry<'f> {
    /// The sizes of the axes, in the file's order.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The name of the element type in the file, such as `F32` or `F8_E4M3` in safetensors, and
    /// `<f4` in npy.
    pub fn element_type(&self) -> &str {
        &self.called
    }

    /// The names of the axes, if the file has them.
    pub fn names(&self) -> Option<Vec<&str>> {
        self.names.as_ref().map(|names| names.iter().map(|axis| axis.name.as_str()).collect())
    }

    /// The tensor with the dims `S`, which the file must name, in any order.
    ///
    /// # Errors
    ///
    /// [`FileError::Dims`] if the file has no names or other names, if two of the dims have the
    /// same name, or if the size or the role of an axis does not fit its dim.
    /// [`FileError::Elements`] if the elements are of another type. [`FileError::Size`] if a dim
    /// and its prime have different sizes, or the tensor does not fit into memory.
    /// [`FileError::Format`] if the tensor's bytes do not match its sizes or its type.
    pub fn load<T: Stored, S: Sorted>(&self) -> Result<Named<T, S>, FileError> {
        self.located(self.named::<S>().and_then(|order| self.owned(&order)))
    }

    /// The tensor with a dim for each axis, in the order of the file's axes. If the file has names,
    /// they must be the names of these dims.
    ///
    /// # Errors
    ///
    /// As for [`load`](Entry::load), except that the file need not have names. It is also an error
    /// if the number of axes is not the number of dims, or a dim already has a different size.
    pub fn load_as<T: Stored, L>(&self, dims: L) -> Result<Named<T, L::Set>, FileError>
    where
        L: AxisDims<CountOf<L>>,
    {
        self.located(self.stated::<L>(&dims).and_then(|order| self.owned(&order)))
    }

    /// The tensor as an array, whatever its rank and the names of its axes.
    ///
    /// ```
    /// use typed_dims::file::safetensors::{SafetensorsReader, SafetensorsWriter};
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Row; struct Column; }
    /// let bytes = SafetensorsWriter::new().put("x", ones::<f32, _>((Row.of(2), Column.of(3))))?.to_bytes()?;
    /// let x: ArrayD<f32> = SafetensorsReader::new(bytes)?.get("x")?.array()?;
    /// assert_eq!(x.shape(), [2, 3]);
    /// # Ok::<(), typed_dims::file::FileError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FileError::Elements`] if the elements are of another type, [`FileError::Size`] if the
    /// array does not fit into memory, and [`FileError::Format`] if the tensor's bytes do not match
    /// its sizes or its type.
    pub fn array<T: Stored>(&self) -> Result<ArrayD<T>, FileError> {
        let shape = IxDyn(&self.sizes).set_f(self.reversed);
        let array = self.elements().and_then(|elements| {
            ArrayD::from_shape_vec(shape, elements)
                .map_err(|error| FileError::format(error.to_string()).of_tensor(&self.tensor))
        });
        self.located(array)
    }

    /// Like [`load`](Entry::load), but without copying: the tensor is a view of the file's bytes.
    ///
    /// # Errors
    ///
    /// As for [`load`](Entry::load), and [`FileError::NotInPlace`] if the elements are not aligned,
    /// or have the byte order of another machine.
    pub fn view<T: Stored, S: Sorted>(&self) -> Result<Named<T, S, Rank0, View<'f, T, S>>, FileError> {
        self.located(self.named::<S>().and_then(|order| self.viewed(&order)))
    }

    /// Like [`load_as`](Entry::load_as), but without copying: the tensor is a view of the file's
    /// bytes.
    ///
    /// # Errors
    ///
    /// As for [`load_as`](Entry::load_as) and [`view`](Entry::view).
    pub fn view_as<T: Stored, L>(
        &self,
        dims: L,
    ) -> Result<Named<T, L::Set, Rank0, View<'f, T, L::Set>>, FileError>
    where
        L: AxisDims<CountOf<L>>,
    {
        self.located(self.stated::<L>(&dims).and_then(|order| self.viewed(&order)))
    }

    /// Adds the tensor and the file to the error.
    fn located<X>(&self, result: Result<X, FileError>) -> Result<X, FileError> {
        result.map_err(|error| error.about(&self.tensor).of(self.path))
    }

    fn owned<T: Stored, S: Dims>(&self, order: &[usize]) -> Result<Named<T, S>, FileError> {
        Ok(self.of_elements(self.elements()?, order))
    }

    /// The elements, in the file's order.
    pub(crate) fn elements<T: Stored>(&self) -> Result<Vec<T>, FileError> {
        self.check_elements::<T>()?;
        element::decoded(self.bytes, self.foreign).map_err(|error| error.of_tensor(&self.tensor))
    }

    /// The tensor of these elements, which are in the file's order.
    pub(super) fn of_elements<T: Stored, S: Dims>(&self, data: Vec<T>, order: &[usize]) -> Named<T, S> {
        let (order, sizes) = self.outermost_first(order);
        Named::from_expr(Evaluated::in_order(data, &order, &sizes).with_origin(None))
    }

    fn viewed<T: Stored, S: Dims>(
        &self,
        order: &[usize],
    ) -> Result<Named<T, S, Rank0, View<'f, T, S>>, FileError> {
        self.check_elements::<T>()?;
        let data =
            element::in_place(self.bytes, self.foreign).map_err(|error| error.of_tensor(&self.tensor))?;
        let (order, sizes) = self.outermost_first(order);
        Ok(Named::from_expr(View::in_order(data, &order, &sizes)))
    }

    /// The positions and the sizes of the axes, outermost first.
    pub(crate) fn outermost_first(&self, order: &[usize]) -> (Order, Sizes) {
        let (mut order, mut sizes) = (Order::from(order), Sizes::from(&self.sizes[..]));
        if self.reversed {
            order.reverse();
            sizes.reverse();
        }
        (order, sizes)
    }

    /// The elements converted to the nearest floats of type `T`. `None` unless both types are
    /// floats. (Half-precision floats need the feature `half`.)
    #[cfg(feature = "safetensors")]
    pub(crate) fn converted<T: Stored>(&self) -> Result<Option<Vec<T>>, FileError> {
        match self.kind {
            Some(ElementKind::Float(4)) => self.converted_from::<f32, T>(),
            Some(ElementKind::Float(8)) => self.converted_from::<f64, T>(),
            #[cfg(feature = "half")]
            Some(ElementKind::Float(2)) => self.converted_from::<half::f16, T>(),
            #[cfg(feature = "half")]
            Some(ElementKind::Brain) => self.converted_from::<half::bf16, T>(),
            _ => Ok(None),
        }
    }

    #[cfg(feature = "safetensors")]
    fn converted_from<F: Stored + Into<f64>, T: Stored>(&self) -> Result<Option<Vec<T>>, FileError> {
        self.check_elements::<F>()?;
        element::converted::<F, T>(self.bytes, self.foreign)
    }

    /// Checks that the elements are of the type `T`.
    pub(super) fn check_kind<T: Stored>(&self) -> Result<(), FileError> {
        if self.kind != Some(T::KIND) {
            let file = match self.kind {
                Some(kind) if !self.is_raw => kind.name().into(),
                _ => self.called.clone(),
            };
            let tensor = self.tensor.clone();
            return Err(FileError::Elements { tensor, file, wanted: T::NAME, path: None });
        }
        Ok(())
    }

    /// Checks that the elements are of the type `T`, and that their number matches the sizes.
    pub(super) fn check_elements<T: Stored>(&self) -> Result<(), FileError> {
        self.check_kind::<T>()?;
        let elements = volume(self.sizes.iter().copied(), size_of::<T>());
        let (tensor, axes, bytes) = (&self.tensor, self.described(), self.bytes.len());
        let what = match elements.and_then(|elements| elements.checked_mul(size_of::<T>())) {
            Some(taken) if taken == bytes => return Ok(()),
            Some(taken) => {
                format!(
                    "tensor `{tensor}` with the axes {axes} takes {taken} bytes, but the file has {bytes}"
                )
            }
            None => format!("tensor `{tensor}` with the axes {axes} has too many elements to be counted"),
        };
        Err(FileError::format(what))
    }

    /// The same tensor with new names for dims, unless two of its dims would then have the same
    /// name. A prime has the new name of its dim.
    #[cfg(feature = "safetensors")]
    pub(crate) fn renaming(mut self, renamed: &[(String, &str)]) -> Self {
        let new_name = |axis: &AxisName| {
            let base = axis.name.trim_end_matches('\'');
            let new = renamed.iter().find(|(old, _)| old == base);
            new.map_or_else(|| axis.name.clone(), |(_, new)| format!("{new}{}", &axis.name[base.len()..]))
        };
        if let Some(names) = &mut self.names {
            let new: Vec<String> = names.iter().map(new_name).collect();
            if (1..new.len()).all(|at| !new[..at].contains(&new[at])) {
                names.iter_mut().zip(new).for_each(|(axis, name)| axis.name = name);
            }
        }
        self
    }

    /// The position of each of the file's axes in the set `S`, by name.
    pub(crate) fn named<S: Dims>(&self) -> Result<Order, FileError> {
        self.named_by(S::KEYS)
    }

    /// Like [`named`](Entry::named), for a set with these keys.
    pub(crate) fn named_by(&self, all: &Keys) -> Result<Order, FileError> {
        let keys = all.as_slice();
        let Some(names) = &self.names else {
            let why = "the file does not name its axes, so give the dims in the order of the axes, with `load_as` or `view_as`";
            return Err(self.mismatch(keys, why.into()));
        };
        let mut order = Order::new();
        for (axis, &size) in names.iter().zip(&self.sizes) {
            let Some(at) = keys.iter().position(|key| key.name == axis.name) else {
                return Err(self.mismatch(keys, format!("`{}` is not one of them", axis.name)));
            };
            if keys.iter().filter(|key| key.name == axis.name).count() > 1 {
                return Err(self.mismatch(keys, format!("two of them are called `{}`", axis.name)));
            }
            self.check_static(keys, &keys[at], size)?;
            self.check_role(keys, &keys[at], axis)?;
            order.push(at);
        }
        match keys.iter().find(|key| names.iter().all(|axis| axis.name != key.name)) {
            Some(key) => Err(self.mismatch(keys, format!("the file has no `{}`", key.name))),
            None => {
                let axis = |at| order.iter().position(|&own| own == at).expect("each dim has an axis");
                all.check_primes(|at| (self.sizes[axis(at)], None))?;
                Ok(order)
            }
        }
    }

    /// The position of each of the given dims in their set.
    pub(super) fn stated<L>(&self, dims: &L) -> Result<Order, FileError>
    where
        L: AxisDims<CountOf<L>>,
    {
        let keys = L::KEYS.as_slice();
        if keys.len() != self.sizes.len() {
            return Err(self.mismatch(
                keys,
                format!(
                    "the number of dims is {}, but the number of axes is {}",
                    keys.len(),
                    self.sizes.len()
                ),
            ));
        }
        for (key, &size) in keys.iter().zip(&self.sizes) {
            self.check_static(keys, key, size)?;
        }
        if let Some(names) = &self.names
            && let Some((axis, key)) = names.iter().zip(keys).find(|(axis, key)| axis.name != key.name)
        {
            return Err(self
                .mismatch(keys, format!("the file has `{}` where `{}` was expected", axis.name, key.name)));
        }
        for (axis, key) in self.names.iter().flatten().zip(keys) {
            self.check_role(keys, key, axis)?;
        }
        let mut unified = Ok(());
        let mut sizes = self.sizes.iter();
        dims.each(|dim| {
            if let (Ok(()), Some(&size)) = (&unified, sizes.next()) {
                unified = dim.unify(size, None);
            }
        });
        unified?;
        L::KEYS.check_primes(|at| (self.sizes[at], None))?;
        let positions: [usize; MAX_DIMS] = L::KEYS.positions_in(L::Set::KEYS);
        Ok(positions[..keys.len()].into())
    }

    fn check_static(&self, keys: &[DimKey], key: &DimKey, size: usize) -> Result<(), FileError> {
        match key.fixed {
            Some(fixed) if fixed != size => {
                let why = format!("`{}` has the static size {fixed}, but size {size} in the file", key.name);
                Err(self.mismatch(keys, why))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the role of the axis fits the role of the dim, as for a rename: see
    /// [`role`](crate::types::role).
    fn check_role(&self, keys: &[DimKey], key: &DimKey, axis: &AxisName) -> Result<(), FileError> {
        match (axis.roles.first(), key.roles.first()) {
            (Some(there), Some(here)) if !means(&axis.roles, key.roles) => {
                let there = super::names::shortened(there);
                let why = format!("`{}` has the role {there} in the file, which is not {here}", key.name);
                Err(self.mismatch(keys, why))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn mismatch(&self, keys: &[DimKey], why: String) -> FileError {
        let wanted = keys.iter().map(|key| super::names::one(key.name, key.roles, key.fixed));
        let wanted = format!("({})", wanted.collect::<Vec<_>>().join(", "));
        FileError::Dims { tensor: self.tensor.clone(), file: self.described(), wanted, why, path: None }
    }

    /// The axes with their names and sizes.
    pub(crate) fn described(&self) -> String {
        const MOST: usize = 40;
        let axis = |(at, size): (usize, &usize)| match &self.names {
            Some(names) => {
                super::names::shortened(&super::names::one(&names[at].name, &names[at].roles, Some(*size)))
            }
            None => size.to_string(),
        };
        let mut axes: Vec<String> = self.sizes.iter().enumerate().take(MOST).map(axis).collect();
        if self.sizes.len() > MOST {
            axes.push("..".into());
        }
        format!("({})", axes.join(", "))
    }
}
