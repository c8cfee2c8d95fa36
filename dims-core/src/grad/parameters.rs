//! Values made of tensors, such as the weights of a network.
//!
//! They implement [`Parameters`], which you can derive for a struct with `#[derive(Parameters)]`. A
//! [`Walk`] visits their tensors.

mod parts;
mod path;
mod setting;
mod tensors;

#[doc(hidden)]
pub use parts::{each_part, each_part_mut};
pub(crate) use parts::{visit_slices, walk_slices};
pub(crate) use path::Sides;
pub use path::{Mismatch, Path, Segment};
#[doc(hidden)]
pub use setting::{ComparedSetting, OtherSetting, Setting};
#[doc(hidden)]
pub use tensors::TensorSets;
use tensors::totals;
use twins::panicking_twin;

use crate::error::{DimError, EACH_FIELD, unwrap};
use crate::expr::evaluate::evaluate_tensor_in;
use crate::expr::{Binary, Expr, Unary};
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::{Any, TypeId, type_name};
use core::fmt::Debug;
use core::marker::PhantomData;
use core::panic::Location;
use kernels::memory::allocate::reserve;
use kernels::ops::Map;
use kernels::scalar::{Element, Real};
use path::values_at;

/// Values made of tensors: tensors that own their elements; tuples, arrays, `Vec`, `Option` and
/// `Box` of these; and structs with `#[derive(Parameters)]`.
///
/// A gradient has the type of its parameters: the gradient with respect to a `Network` is a
/// `Network`.
///
/// * Tensors of floats are learned.
/// * Tensors of other elements, such as indices and masks, are visited, named and counted, but not
///   learned ([`is_learned`]): `map_elements` and `zip_elements` keep them, and
///   [`zero`](Parameters::zero) replaces them with zeros.
/// * Fields with `#[parameters(constant)]` are not visited. A [walk](Walk), which makes a new
///   value, clones them.
/// * Fields with `#[parameters(state)]` are tensors that change but are not learned, such as
///   running means. [Recorded functions](crate::program) take and return them, and
///   [checkpoints](crate::training::checkpoint) contain them. Everything else treats them as
///   constants.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; pub struct Out; }
///
/// #[derive(Parameters)]
/// struct Layer {
///     weight: Tensor<f32, (In, Out)>,
///     bias: Option<Tensor<f32, (Out,)>>,
///     #[parameters(constant)]
///     rate: f32,
/// }
///
/// let layer = Layer { weight: ones((In.of(3), Out.of(2))), bias: Some(zeros(Out.of(2))), rate: 0.1 };
/// assert_eq!(layer.names(), ["weight", "bias"]);
/// assert_eq!(layer.count_elements(), 8);
///
/// let gradient = layer.map_elements(|w: f32| 2.0 * w);
/// let next = layer.zip_elements(&gradient, |w: f32, g| w - 0.25 * g);
/// assert_eq!(next.weight.sum((In, Out)).order(()), 3.0);
/// assert_eq!(next.rate, 0.1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of tensors",
    label = "a tensor that owns its elements is expected here, or a struct with `#[derive(Parameters)]`",
    note = "compute an expression first: `x.eval()`"
)]
pub trait Parameters: Sized {
    /// The dims of the tensors, as far as they follow from the type. A manual implementation may
    /// omit them.
    #[doc(hidden)]
    const TENSORS: TensorSets = TensorSets::UNKNOWN;

    /// Calls `walk` with each tensor of the values in `of`, and makes a value from the results.
    /// Constants are cloned from the first value.
    ///
    /// # Errors
    ///
    /// The first error of `walk`.
    #[doc(hidden)]
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error>;

    /// Calls `visit` with each tensor of the values to change and the values to read. Constants are
    /// not visited.
    ///
    /// # Errors
    ///
    /// The first error of `visit`.
    #[doc(hidden)]
    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error>;

    /// The total number of elements of all tensors.
    ///
    /// # Panics
    ///
    /// If the total size in bytes overflows.
    #[track_caller]
    fn count_elements(&self) -> usize {
        totals(self).elements
    }

    /// The total size of all elements in bytes.
    ///
    /// # Panics
    ///
    /// If the total size in bytes overflows.
    #[track_caller]
    fn bytes(&self) -> usize {
        totals(self).bytes
    }

    /// The names of all tensors, such as `layers.3.attention.query`. They consist of field
    /// names, and positions in tuples, arrays and `Vec`s.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct In; }
    /// let layers = vec![(ones::<f32, _>(In.of(3)), Some(ones::<f64, _>(In.of(3)))), (ones(In.of(4)), None)];
    /// assert_eq!(layers.names(), ["0.0", "0.1", "1.0"]);
    /// ```
    fn names(&self) -> Vec<String> {
        struct Names(Vec<String>);
        impl Walk<1> for Names {
            type Error = DimError;

            fn tensor<T: Element, S: Dims, R: Rank>(
                &mut self,
                path: &Path,
                [tensor]: [&Named<T, S, R>; 1],
            ) -> Result<Named<T, S, R>, DimError> {
                self.0.push(path.to_string());
                Ok(tensor.clone())
            }
        }

        let mut names = Names(Vec::new());
        unwrap(Self::walk([self], &mut Path::new(), &mut names));
        names.0
    }

    /// A copy with all elements set to zero, or `false` for `bool`. The memory order of axes is
    /// kept.
    ///
    /// # Panics
    ///
    /// If it does not fit into memory.
    #[panicking_twin(but = "running out of memory is an error")]
    fn try_zero(&self) -> Result<Self, DimError> {
        struct Zeros;
        impl Walk<1> for Zeros {
            type Error = DimError;

            fn tensor<T: Element, S: Dims, R: Rank>(
                &mut self,
                path: &Path,
                [tensor]: [&Named<T, S, R>; 1],
            ) -> Result<Named<T, S, R>, DimError> {
                let shape = tensor.unified_shape()?;
                let order = tensor.expr.order_in_memory();
                let len = shape.volume(&order, size_of::<T>())?;
                let mut data = reserve(len).map_err(|_| DimError::TooLarge {
                    dims: format!("{} of `{path}`", shape.describe(&order)),
                })?;
                data.resize(len, T::default());
                let zeros = Evaluated::in_order(data, &order, &shape.sizes_in(&order));
                Ok(Named::from_expr(zeros.with_origin(tensor.expr.origin())))
            }
        }

        Self::walk([self], &mut Path::new(), &mut Zeros)
    }

    /// Applies `f` to each element of the tensors of `T`. Tensors that are not learned are kept.
    ///
    /// # Panics
    ///
    /// If a tensor has floats of a type other than `T`, if a gradient or a recorded function traces
    /// a tensor of `T`, or if the result does not fit into memory.
    #[panicking_twin(but = "returns an error where that panics")]
    fn try_map_elements<T: Real, F: Fn(T) -> T>(&self, f: F) -> Result<Self, DimError> {
        struct Each<T, F>(F, PhantomData<fn(T)>);
        impl<T: Real, F: Fn(T) -> T> Walk<1> for Each<T, F> {
            type Error = DimError;

            fn tensor<U: Element, S: Dims, R: Rank>(
                &mut self,
                path: &Path,
                [tensor]: [&Named<U, S, R>; 1],
            ) -> Result<Named<U, S, R>, DimError> {
                if !to_be_changed::<U, T>(path)? {
                    return Ok(tensor.clone());
                }
                let f = |a: U| same::<T, U>((self.0)(same(a)));
                like(tensor, Unary { op: Map(f), a: &tensor.expr })
            }
        }

        let at = Location::caller();
        Self::walk([self], &mut Path::new(), &mut Each(f, PhantomData))
            .map_err(|error| without_derivative(error, "map_elements", at))
    }

    /// Applies `f` to each element of the tensors of `T` and the element of `other` at the same
    /// position. Tensors that are not learned are kept.
    ///
    /// # Panics
    ///
    /// If the values differ in the length of a `Vec`, in whether an `Option` is `None`, or in the
    /// size of an axis; if a tensor has floats of a type other than `T`; if a gradient or a
    /// recorded function traces a tensor of `T`; or if the result does not fit into memory.
    #[panicking_twin(but = "returns an error where that panics")]
    fn try_zip_elements<T: Real, F: Fn(T, T) -> T>(&self, other: &Self, f: F) -> Result<Self, DimError> {
        struct Pairs<T, F>(F, PhantomData<fn(T)>);
        impl<T: Real, F: Fn(T, T) -> T> Walk<2> for Pairs<T, F> {
            type Error = DimError;

            fn tensor<U: Element, S: Dims, R: Rank>(
                &mut self,
                path: &Path,
                of: [&Named<U, S, R>; 2],
            ) -> Result<Named<U, S, R>, DimError> {
                let [a, b] = of;
                if !to_be_changed::<U, T>(path)? {
                    return Ok(a.clone());
                }
                same_sizes(path, ["one", "another"], of)?;
                let f = |a: U, b: U| same::<T, U>((self.0)(same(a), same(b)));
                like(a, Binary { op: Map(f), a: &a.expr, b: &b.expr })
            }
        }

        let at = Location::caller();
        Self::walk([self, other], &mut Path::new(), &mut Pairs(f, PhantomData))
            .map_err(|error| without_derivative(error, "zip_elements", at))
    }
}

/// The trait that `#[derive(Parameters)]` implements. All implementors are [`Parameters`].
///
/// It is separate because derived code cannot use `#[diagnostic::do_not_recommend]`: `diagnostic`
/// does not resolve in a module with `#![no_implicit_prelude]`. Without `do_not_recommend`, rustc
/// would list every derived implementation of [`Parameters`] in its messages.
#[doc(hidden)]
pub trait DerivedParameters: Sized {
    /// See [`Parameters::TENSORS`].
    const TENSORS: TensorSets = TensorSets::UNKNOWN;

    /// See [`Parameters::walk`].
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error>;

    /// See [`Parameters::visit`].
    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error>;
}

#[diagnostic::do_not_recommend]
impl<P: DerivedParameters> Parameters for P {
    const TENSORS: TensorSets = <P as DerivedParameters>::TENSORS;

    #[inline]
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        <P as DerivedParameters>::walk(of, path, walk)
    }

    #[inline]
    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        <P as DerivedParameters>::visit(changed, read, path, visit)
    }
}

/// A function over the tensors of a value, or of `N` values of one type at once. `N` is at least 1.
///
/// ```
/// use typed_dims::grad::Parameters;
/// use typed_dims::grad::parameters::{Path, Walk};
/// use typed_dims::prelude::*;
/// use typed_dims::types::rank::Rank;
/// use typed_dims::types::scalar::Element;
///
/// /// The number of elements of each tensor in both values.
/// struct Sizes(Vec<String>);
///
/// impl Walk<2> for Sizes {
///     type Error = DimError;
///
///     fn tensor<T: Element, S: Dims, R: Rank>(
///         &mut self,
///         path: &Path,
///         [a, b]: [&Named<T, S, R>; 2],
///     ) -> Result<Named<T, S, R>, DimError> {
///         self.0.push(format!("{path}: {} and {}", a.len(), b.len()));
///         Ok(a.clone())
///     }
/// }
///
/// dims! { pub struct In; }
/// let (a, b) = (vec![ones::<f32, _>(In.of(3))], vec![ones::<f32, _>(In.of(4))]);
/// let mut sizes = Sizes(Vec::new());
/// Parameters::walk([&a, &b], &mut Path::new(), &mut sizes)?;
/// assert_eq!(sizes.0, ["0: 3 and 4"]);
///
/// let error = Parameters::walk([&a, &vec![]], &mut Path::new(), &mut sizes).unwrap_err();
/// assert_eq!(error.to_string(), "the values differ: one has the length 1, another 0");
/// # Ok::<(), DimError>(())
/// ```
pub trait Walk<const N: usize> {
    /// The error that ends a walk early.
    type Error: From<DimError>;

    /// Whether the walk includes fields with `#[parameters(state)]`. Otherwise the new value gets
    /// clones of them.
    const STATE: bool = false;

    /// Returns the tensor of the new value. `of` has the tensors of the given values, whose sizes
    /// may differ. [`is_learned`] tells whether tensors of `T` are learned.
    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        of: [&Named<T, S, R>; N],
    ) -> Result<Named<T, S, R>, Self::Error>;

    /// Called with each setting: a plain value that is not a tensor, such as the decay of an
    /// average. The new value gets the setting of the first value. A recorded function runs only
    /// with the settings it was recorded with.
    #[doc(hidden)]
    fn setting<X: Clone + PartialEq + Debug + Send + Sync + 'static>(
        &mut self,
        path: &Path,
        name: &'static str,
        of: [&X; N],
    ) -> Result<(), Self::Error> {
        let _ = (path, name, of);
        Ok(())
    }

    /// Called before [`tensor`](Walk::tensor) gets the state of an optimizer as one line of
    /// elements. `keys` and `sizes` are the dims and sizes of the state's axes, innermost last.
    #[doc(hidden)]
    fn line_along(&mut self, keys: &[DimKey], sizes: &[usize]) {
        let _ = (keys, sizes);
    }

    /// Whether the file that the walk reads has a tensor at this path. `None`: the walk reads no
    /// file. If the file has sums and averages in `f32`, a walk that reads it creates them, even if
    /// the given value lacks them.
    #[doc(hidden)]
    fn has(&self, path: &Path) -> Option<bool> {
        let _ = path;
        None
    }

    /// Called before the walk visits the fields of the value at this path. Half-precision tensors
    /// in the value's field `kept` are also kept in `f32`, in its field `exact`. If `kept` is
    /// empty, `filled_by` is the method that fills `kept`.
    #[doc(hidden)]
    fn keeps_exact(&mut self, path: &Path, [kept, exact]: [&str; 2], filled_by: Option<&str>) {
        let _ = (path, kept, exact, filled_by);
    }

    /// The error for values that do not have the same parts: see [`Mismatch::at`].
    fn mismatch(&mut self, path: &Path, what: Mismatch) -> Self::Error {
        what.at(path).into()
    }
}

/// A function over the tensors of `M` values of one type, which it can change, and of `N` others.
///
/// A [`Walk`] makes a new value. A `Visitor` changes values in place, or only reads them if `M` is
/// 0.
///
/// ```
/// use typed_dims::grad::Parameters;
/// use typed_dims::grad::parameters::{Path, Visitor};
/// use typed_dims::prelude::*;
/// use typed_dims::types::rank::Rank;
/// use typed_dims::types::scalar::Element;
///
/// /// Takes the tensors of another value, if their sizes are the same.
/// struct Replace;
///
/// impl Visitor<1, 1> for Replace {
///     type Error = DimError;
///
///     fn tensor<T: Element, S: Dims, R: Rank>(
///         &mut self,
///         _: &Path,
///         [a]: [&mut Named<T, S, R>; 1],
///         [b]: [&Named<T, S, R>; 1],
///     ) -> Result<(), DimError> {
///         if a.dims() == b.dims() {
///             *a = b.clone();
///         }
///         Ok(())
///     }
/// }
///
/// dims! { pub struct In; }
/// let mut a = (zeros::<f32, _>(In.of(3)), zeros::<f32, _>(In.of(4)));
/// let b = (ones(In.of(3)), ones(In.of(5)));
/// Parameters::visit([&mut a], [&b], &mut Path::new(), &mut Replace)?;
/// assert_eq!((a.0.sum(In).order(()), a.1.sum(In).order(())), (3.0, 0.0));
/// # Ok::<(), DimError>(())
/// ```
pub trait Visitor<const M: usize, const N: usize> {
    /// The error that ends a visit early.
    type Error: From<DimError>;

    /// Whether the visit includes fields with `#[parameters(state)]`.
    const STATE: bool = false;

    /// Changes the tensors in `changed`. The sizes of all tensors may differ.
    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        changed: [&mut Named<T, S, R>; M],
        read: [&Named<T, S, R>; N],
    ) -> Result<(), Self::Error>;

    /// Called before [`tensor`](Visitor::tensor) gets the state of an optimizer as one line of
    /// elements. `keys` and `sizes` are the dims and sizes of the state's axes, innermost last.
    #[doc(hidden)]
    fn line_along(&mut self, keys: &[DimKey], sizes: &[usize]) {
        let _ = (keys, sizes);
    }

    /// Called before the state of the optimizer at this path is visited.
    #[doc(hidden)]
    fn optimizer(&mut self, path: &Path) -> Result<(), Self::Error> {
        let _ = path;
        Ok(())
    }

    /// The error for values that do not have the same parts: see [`Mismatch::at`].
    fn mismatch(&mut self, path: &Path, what: Mismatch) -> Self::Error {
        what.at(path).into()
    }
}

/// A field of a struct with `#[derive(Parameters)]`. All [`Parameters`] implement it. It is a
/// separate trait for its error message.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a parameter",
    label = "if it has tensors, write `#[derive(Parameters)]` before their struct; otherwise, mark the field `#[parameters(constant)]`",
    note = "tensors can be in a struct, a tuple, an array, a `Vec`, an `Option` or a `Box`; a number that changes in training is a tensor, `Tensor<u64, ()>`, in a field `#[parameters(state)]`; a constant is neither learned nor saved"
)]
pub trait ParameterField: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// See [`Parameters::TENSORS`].
    const TENSORS: TensorSets;
    /// [`Parameters::walk`] for the field with this name.
    fn walk_field<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        name: &'static str,
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error>;

    /// [`Parameters::visit`] for the field with this name.
    fn visit_field<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        name: &'static str,
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error>;
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> ParameterField for P {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const TENSORS: TensorSets = P::TENSORS;

    #[inline]
    fn walk_field<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        name: &'static str,
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        path.push(Segment::Field(name));
        let walked = P::walk(of, path, walk);
        path.pop();
        walked
    }

    #[inline]
    fn visit_field<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        name: &'static str,
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        path.push(Segment::Field(name));
        let visited = P::visit(changed, read, path, visit);
        path.pop();
        visited
    }
}

/// Whether tensors of `T` are learned. Only tensors of floats are.
pub fn is_learned<T: Element>() -> bool {
    let id = TypeId::of::<T>();
    #[cfg(feature = "half")]
    if id == TypeId::of::<half::f16>() || id == TypeId::of::<half::bf16>() {
        return true;
    }
    id == TypeId::of::<f32>() || id == TypeId::of::<f64>()
}

/// Whether a walk over elements of `T` changes tensors of `U`. Returns an error if `U` is a
/// different float type.
fn to_be_changed<U: Element, T: Element>(path: &Path) -> Result<bool, DimError> {
    if TypeId::of::<U>() == TypeId::of::<T>() {
        return Ok(true);
    }
    if !is_learned::<U>() {
        return Ok(false);
    }
    let name = |name: &'static str| name.rsplit("::").next().unwrap_or(name);
    let (found, expected) = (name(type_name::<U>()), name(type_name::<T>()));
    let what = if path.segments().is_empty() { "the tensor".into() } else { format!("`{path}`") };
    Err(DimError::Shape { what: format!("{what} has elements of type {found}, not {expected}") })
}

/// A value of `A` as a value of `B`, which is the same type. The comparison is resolved at compile
/// time.
#[cfg_attr(not(unoptimized), inline(always))]
fn same<A: Element, B: Element>(value: A) -> B {
    *(&value as &dyn Any).downcast_ref().expect("the types were compared")
}

/// Checks that both tensors have the same sizes. The error names the part and both values.
pub(crate) fn same_sizes<T: Element, S: Dims, R: Rank>(
    path: &Path,
    sides: Sides,
    [first, other]: [&Named<T, S, R>; 2],
) -> Result<(), DimError> {
    let (first, other) = (first.unified_shape()?, other.unified_shape()?);
    match (0..first.sizes().len()).find(|&at| first.size(at) != other.size(at)) {
        Some(at) => {
            let sizes = [first.size(at), other.size(at)];
            Err(sizes_differ(path, sides, S::KEYS.as_slice(), at, sizes))
        }
        None => Ok(()),
    }
}

/// The error for values whose sizes along `axis` differ. Dims are counted first, then positional
/// axes.
#[cold]
pub(crate) fn sizes_differ(
    path: &Path,
    [first, other]: Sides,
    keys: &[DimKey],
    axis: usize,
    [size, other_size]: [usize; 2],
) -> DimError {
    let name = match keys.get(axis) {
        Some(key) => format!("dim `{}`", key.name),
        None => format!("positional axis {}", axis - keys.len()),
    };
    let values = values_at(path);
    let what = format!("{values} differ: {name} has size {size} in {first}, {other_size} in {other}");
    DimError::Shape { what }
}

/// The error of a closure called with traced elements, as an error of the method that was called.
#[cold]
fn without_derivative(error: DimError, operation: &'static str, at: &'static Location<'static>) -> DimError {
    match error {
        DimError::NoOwnDerivative { parameters, .. } => {
            DimError::NoOwnDerivative { operation, remedy: EACH_FIELD, origin: Some(at), parameters }
        }
        error => error,
    }
}

/// The elements of an expression with the sizes of `tensor`, in the memory order of `tensor`.
fn like<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>>(
    tensor: &Named<T, S, R>,
    expr: E,
) -> Result<Named<T, S, R>, DimError> {
    let shape = tensor.unified_shape()?;
    let result = evaluate_tensor_in::<S, R, _>(expr, &shape, &tensor.expr.order_in_memory())?;
    Ok(Named::from_expr(result.with_origin(tensor.expr.origin())))
}

#[diagnostic::do_not_recommend]
impl<T: Element, S: Dims, R: Rank> Parameters for Named<T, S, R> {
    const TENSORS: TensorSets = TensorSets { keys: S::KEYS, parts: &[] };

    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        const { assert!(N > 0, "a walk needs at least one value") };
        walk.tensor(path, of)
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        visit.tensor(path, changed, read)
    }
}
