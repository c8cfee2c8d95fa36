//! Constructors: `zeros`, `ones`, `full`, `full_like`, `eye`, `tri`, `arange`, `linspace`,
//! `from_fn`, `from_vec`.
//!
//! They are free functions, as in NumPy and PyTorch: the type alias
//! [`Tensor`](crate::tensors::named::Tensor) sorts its dims, so rustc could not resolve associated
//! functions through it.

use crate::error::{DimError, list_sizes};
use crate::execute::reduce::TensorOf;
use crate::plan::axes::AxisList;
use crate::storage::Evaluated;
use crate::storage::axes::AxisBlock;
use crate::storage::evaluated::IntoElements;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::{DimRef, UNSIZED};
use crate::types::open::Open;
use crate::types::rank::Rank0;
use crate::types::set::distinct::{OneAxisEach, SortOnce, SortedOnce};
use crate::types::set::list::List;
use crate::types::set::{DimKey, Dims, Keys, MaybeDim, NoDim, Nothing, Union};
use crate::types::size::HasSize;
use crate::types::tuples::{each_tuple, nested};
use alloc::string::String;
use alloc::vec::Vec;
use core::panic::Location;
use kernels::memory::allocate::reserve;
use kernels::memory::axes::Axis;
use kernels::scalar::{CastTo, Element, Num, Real};
use smallvec::SmallVec;
use twins::panicking_twin;

/// A dim or a tuple of dims, as written: the axes that a constructor makes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of dims with sizes",
    label = "expected dims with sizes",
    note = "give a declared dim a size with `Batch.of(2)`, and a local dim with `dims!(i = 2)`; dims with a static size need none"
)]
pub trait Written {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims as a set.
    type Set: Dims;
    /// The dims as they are written.
    type Names;
    /// A dim that is written twice, or [`Nothing`].
    type Twice: MaybeDim;
    /// The first declared dim without a size, or [`Nothing`].
    type Unsized: MaybeDim;
    /// The number of dims.
    const COUNT: usize;
    /// The indices of an element, in the order in which the dims are written.
    type Index: Copy;
    /// Calls `visit` with each dim and its size.
    #[doc(hidden)]
    fn each(&self, visit: impl FnMut(DimKey, Option<usize>));
    #[doc(hidden)]
    fn index(at: &[usize]) -> Self::Index;
}

/// Dims with sizes: `Batch.of(2)`, a dim with a static size, a local dim with a size, and tuples of
/// these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of dims with sizes",
    label = "expected dims with sizes",
    note = "give a declared dim a size with `Batch.of(2)`, and a local dim with `dims!(i = 2)`; dims with a static size need none"
)]
pub trait SizedDims: Written {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<L: Written> SizedDims for L
where
    NoDim<L::Twice>: OneAxisEach<L::Twice, L::Names>,
    NoDim<L::Unsized>: HasSize<L::Unsized>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The dim if it is declared and has neither a static size nor one given by `of`, or [`Nothing`].
type UnsizedOf<D> = <<D as DimRef>::Open as Open>::FirstUnsized;

#[diagnostic::do_not_recommend]
impl<D: DimRef> Written for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Set = (D::Brand,);
    type Names = D::Brand;
    type Twice = Nothing;
    type Unsized = UnsizedOf<D>;
    const COUNT: usize = 1;
    type Index = usize;

    fn each(&self, mut visit: impl FnMut(DimKey, Option<usize>)) {
        visit(self.info().key(), self.info().size());
    }

    fn index(at: &[usize]) -> usize {
        at[0]
    }
}

#[diagnostic::do_not_recommend]
impl Written for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Set = ();
    type Names = ();
    type Twice = Nothing;
    type Unsized = Nothing;
    const COUNT: usize = 0;
    type Index = ();

    fn each(&self, _: impl FnMut(DimKey, Option<usize>)) {}

    fn index(_: &[usize]) {}
}

macro_rules! sized_lists {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: DimRef),*> Written for ($($d,)*)
        where
            nested![$($d::Brand),*]: SortOnce,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Set = <<<nested![$($d::Brand),*] as SortOnce>::Out as SortedOnce>::List as List>::Tuple;
            type Names = ($($d::Brand,)*);
            type Twice = <<nested![$($d::Brand),*] as SortOnce>::Out as SortedOnce>::Twice;
            type Unsized = first_unsized!($($d)*);
            const COUNT: usize = [$($n),*].len();
            type Index = ($(usize_for!($d),)*);

            fn each(&self, mut visit: impl FnMut(DimKey, Option<usize>)) {
                $(visit(self.$n.info().key(), self.$n.info().size());)*
            }

            fn index(at: &[usize]) -> Self::Index {
                ($(at[$n],)*)
            }
        }
    };
}

macro_rules! first_unsized {
    ($d:ident) => { UnsizedOf<$d> };
    ($d:ident $($later:ident)+) => { <UnsizedOf<$d> as MaybeDim>::Or<first_unsized!($($later)+)> };
}

macro_rules! usize_for {
    ($d:ident) => {
        usize
    };
}

each_tuple!(sized_lists);

/// Two lists of dims with sizes, concatenated: `Chained((In.of(3),), (Out.of(2),))` makes the same
/// axes as `(In.of(3), Out.of(2))`.
///
/// Use it in layers over generic dims whose constructors get dims in two arguments: a tensor with
/// all of the dims has the type `Named<T, <B as Union<A>>::Out>`, where `A` and `B` are the sets of
/// the two lists.
///
/// ```
/// use typed_dims::creation::create::Chained;
/// use typed_dims::prelude::*;
///
/// dims! { struct In; struct Out; }
/// let x = from_vec(Chained(In.of(2), Out.of(2)), vec![1, 2, 3, 4]);
/// assert_eq!(x.order((In, Out)), ndarray::array![[1, 2], [3, 4]]);
/// ```
///
/// If a dim is in both lists, the function that takes the lists returns an error:
///
/// ```
/// # use typed_dims::creation::create::{Chained, try_from_vec};
/// # use typed_dims::prelude::*;
/// # dims! { struct In; }
/// let error = try_from_vec(Chained(In.of(2), In.of(2)), vec![1, 2, 3, 4]).unwrap_err();
/// assert_eq!(error.to_string(), "dim `In` is named twice");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Chained<A, B>(pub A, pub B);

#[diagnostic::do_not_recommend]
impl<A: Written, B: Written<Set: Union<A::Set>>> Written for Chained<A, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Set = <B::Set as Union<A::Set>>::Out;
    type Names = (A::Names, B::Names);
    // (`sizes` finds a dim that is in both lists; finding it here would require bounds in layers
    // over generic dims.)
    type Twice = <A::Twice as MaybeDim>::Or<B::Twice>;
    type Unsized = <A::Unsized as MaybeDim>::Or<B::Unsized>;
    const COUNT: usize = A::COUNT + B::COUNT;
    type Index = (A::Index, B::Index);

    fn each(&self, mut visit: impl FnMut(DimKey, Option<usize>)) {
        self.0.each(&mut visit);
        self.1.each(&mut visit);
    }

    fn index(at: &[usize]) -> Self::Index {
        (A::index(&at[..A::COUNT]), B::index(&at[A::COUNT..]))
    }
}

/// The dims as written, with their sizes.
pub(super) fn sizes<D: Written>(dims: &D) -> Result<SmallVec<[(DimKey, usize); 8]>, DimError> {
    let mut written = WrittenSizes::default();
    dims.each(|key, size| written.add(key, size));
    // The types of tuples name each dim once; a `Chained` list can name one twice.
    let is_distinct = const { D::COUNT == D::Set::KEYS.as_slice().len() };
    written.checked(D::Set::KEYS, is_distinct)
}

/// Dims as written, with their sizes, and the first error.
#[derive(Default)]
struct WrittenSizes {
    sizes: SmallVec<[(DimKey, usize); 8]>,
    failed: Option<DimError>,
}

impl WrittenSizes {
    fn add(&mut self, key: DimKey, size: Option<usize>) {
        let Some(size) = size else {
            self.failed.get_or_insert(DimError::Unsized { dim: key.name });
            return;
        };
        self.sizes.push((key, size));
    }

    fn checked(self, keys: &Keys, is_distinct: bool) -> Result<SmallVec<[(DimKey, usize); 8]>, DimError> {
        self.failed.map_or(Ok(()), Err)?;
        let sizes = self.sizes;
        if !is_distinct {
            let is_second = |&(at, (key, _)): &(usize, &(DimKey, usize))| {
                sizes[..at].iter().any(|(own, _)| own.same(key))
            };
            let second = sizes.iter().enumerate().find(is_second);
            let name = second.map_or("a dim", |(_, (key, _))| key.name);
            return Err(DimError::Shape { what: format!("dim `{name}` is named twice") });
        }
        let of = |key| sizes.iter().find(|(own, _)| own.same(key)).map_or(UNSIZED, |&(_, size)| size);
        keys.check_primes(|at| (of(&keys.as_slice()[at]), None))?;
        Ok(sizes)
    }
}

/// The number of elements. Returns an error if this number, or the size of the elements in bytes,
/// overflows: see [`volume`](crate::plan::shape::volume).
pub(super) fn volume<T>(sizes: &[(DimKey, usize)]) -> Result<usize, DimError> {
    crate::plan::shape::volume(sizes.iter().map(|&(_, size)| size), size_of::<T>())
        .ok_or_else(|| DimError::TooLarge { dims: describe(sizes) })
}

/// Memory for the elements of a tensor with these sizes, and their number.
pub(super) fn memory<T>(sizes: &[(DimKey, usize)]) -> Result<(Vec<T>, usize), DimError> {
    let len = volume::<T>(sizes)?;
    let data = reserve(len).map_err(|_| DimError::TooLarge { dims: describe(sizes) })?;
    Ok((data, len))
}

/// Stands for any size of a dim in the argument of `spec`. No tensor has this size.
pub(crate) const ANY_SIZE: usize = usize::MAX - 1;

#[cold]
fn describe(sizes: &[(DimKey, usize)]) -> String {
    let text = list_sizes(sizes.iter().map(|(key, size)| (key.name, *size)));
    match sizes.iter().find(|(_, size)| *size == ANY_SIZE) {
        Some((key, _)) => format!("{text} (call `dynamic({})` in the argument of `spec`)", key.name),
        None => text,
    }
}

/// A tensor of `data`: one element for each position along the dims as written, the last one
/// fastest.
#[track_caller]
pub(super) fn build<T: Element, D: Written>(
    sizes: &[(DimKey, usize)],
    data: impl IntoElements<T>,
) -> Named<T, D::Set, Rank0> {
    let mut axes = <D::Set as Dims>::Axes::filled(Axis::default());
    let mut stride = 1;
    for (key, size) in sizes.iter().rev() {
        let at = D::Set::KEYS.position(key).expect("the dim is in the set");
        // (No dim is written twice: the function `sizes` has checked this.)
        let axis = &mut axes.as_mut_slice()[at];
        axis.size = *size;
        axis.stride = stride;
        stride *= *size as isize;
    }
    Named::from_expr(Evaluated::strided(data, 0, axes, [], Some(Location::caller())))
}

/// A tensor with the value of `f` at each position. `f` gets the indices in the order of the dims
/// as written.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Row; struct Col; }
/// let x = from_fn((Row.of(2), Col.of(3)), |(row, col)| 10 * row + col);
/// assert_eq!(x.order((Col, Row)), ndarray::array![[0, 10], [1, 11], [2, 12]]);
/// ```
///
/// # Panics
///
/// If a dim has no size, its prime has another size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_from_fn<T: Element, D: SizedDims>(
    dims: D,
    f: impl FnMut(D::Index) -> T,
) -> Result<Named<T, D::Set>, DimError> {
    each_position(&dims, f)
}

/// Like [`try_from_fn`], but rustc does not check the dims. A dim without a size is an error at run
/// time.
#[track_caller]
pub(super) fn each_position<T: Element, D: Written>(
    dims: &D,
    mut f: impl FnMut(D::Index) -> T,
) -> Result<Named<T, D::Set>, DimError> {
    let sizes = sizes(dims)?;
    let (mut data, _) = memory(&sizes)?;
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, sizes.len());
    let counts: SmallVec<[usize; 8]> = sizes.iter().map(|&(_, size)| size).collect();
    let mut odometer = kernels::loops::nest::Odometer::new(&counts);
    while !odometer.is_done() {
        data.push(f(D::index(&at)));
        odometer.advance(&mut at);
    }
    Ok(build::<T, D>(&sizes, data))
}

/// A tensor filled with `value`.
///
/// # Panics
///
/// If a dim has no size, its prime has another size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_full<T: Element, D: SizedDims>(dims: D, value: T) -> Result<Named<T, D::Set>, DimError> {
    let sizes = sizes(&dims)?;
    let (mut data, len) = memory(&sizes)?;
    data.resize(len, value);
    Ok(build::<T, D>(&sizes, data))
}

/// A tensor of zeros: `zeros::<f32, _>((Batch.of(2), Seq.of(3)))`.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Feat = 4; }
/// let x: Tensor<f32, (Batch, Feat)> = zeros((Batch.of(2), Feat));   // a static size need not be given
/// assert_eq!(x.dims(), [("Batch", 2), ("Feat", 4)]);
/// ```
///
/// # Panics
///
/// If a dim has no size, its prime has another size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_zeros<T: Num, D: SizedDims>(dims: D) -> Result<Named<T, D::Set>, DimError> {
    try_full(dims, T::ZERO)
}

/// A tensor of ones.
///
/// # Panics
///
/// If a dim has no size, its prime has another size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_ones<T: Num, D: SizedDims>(dims: D) -> Result<Named<T, D::Set>, DimError> {
    try_full(dims, T::ONE)
}

/// 1 where the indices along both dims are equal, otherwise 0.
///
/// # Panics
///
/// If a dim has no size, its prime has another size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_eye<T: Num, A: DimRef, B: DimRef>(
    rows: A,
    columns: B,
) -> Result<Named<T, <(A, B) as Written>::Set>, DimError>
where
    (A, B): SizedDims + Written<Index = (usize, usize)>,
{
    try_from_fn((rows, columns), |(i, j)| if i == j { T::ONE } else { T::ZERO })
}

/// 1 where the index along `columns` is at most that along `rows` plus `offset`, otherwise 0: a
/// lower triangle.
///
/// # Panics
///
/// If a dim has no size, its prime has another size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_tri<T: Num, A: DimRef, B: DimRef>(
    rows: A,
    columns: B,
    offset: isize,
) -> Result<Named<T, <(A, B) as Written>::Set>, DimError>
where
    (A, B): SizedDims + Written<Index = (usize, usize)>,
{
    // Sizes fit into `isize`. A sum that saturates is beyond all of them.
    let reach = |i: usize| (i as isize).saturating_add(offset);
    try_from_fn((rows, columns), |(i, j)| if j as isize <= reach(i) { T::ONE } else { T::ZERO })
}

/// `start + i * step` along a dim: `arange(i, 10, 2)` is 10, 12, 14, .. (For the indices
/// themselves, use the dim as a value: `i`.)
///
/// # Panics
///
/// If the dim has no size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_arange<T: Num, D: SizedDims + Written<Index = usize>>(
    dim: D,
    start: T,
    step: T,
) -> Result<Named<T, D::Set>, DimError>
where
    usize: CastTo<T::Acc>,
{
    // Half precisions are computed in `f32`, which represents more indices exactly.
    let (start, step) = (start.widen(), step.widen());
    try_from_fn(dim, |i| T::narrow(start.add(step.mul(CastTo::<T::Acc>::cast_to(i)))))
}

/// `n` evenly spaced numbers from `start` to `end`, both included, along a dim of size `n`:
/// `start + i * (end - start) / (n - 1)`. If `n` is 1, the number is `start`.
///
/// # Panics
///
/// If the dim has no size, or the tensor does not fit into memory.
#[panicking_twin]
pub fn try_linspace<T: Real, D: DimRef + SizedDims + Written<Index = usize>>(
    dim: D,
    start: T,
    end: T,
) -> Result<Named<T, <D as Written>::Set>, DimError> {
    let last = dim.info().size().map_or(0, |size| size.saturating_sub(1));
    // Half precisions are computed in `f32`, which represents more indices exactly.
    let number =
        |i: usize| <T::Wide as num_traits::NumCast>::from(i).expect("every size can be rounded to a float");
    let (first, end) = (start.widen(), end.widen());
    let whole = end - first;
    let finite = [first, whole, end].map(num_traits::Float::is_finite);
    if last > 0 && finite == [true, false, true] {
        // `end - start` overflows.
        let share = |i: usize| number(i) / number(last);
        return try_from_fn(dim, |i| T::narrow(first * share(last - i) + end * share(i)));
    }
    let step = if last == 0 { <T::Wide as Num>::ZERO } else { whole / number(last) };
    // Computed from the nearer end, so that the last element is exactly `end`.
    try_from_fn(dim, |i| match i <= last - i {
        true => T::narrow(first + step * number(i)),
        false => T::narrow(end - step * number(last - i)),
    })
}

/// A tensor filled with `value`, with the dims and sizes of another tensor.
///
/// # Panics
///
/// If the sizes of the tensor's operands conflict, a dim has no size, or the result does not fit
/// into memory.
#[panicking_twin]
pub fn try_full_like<A: Computable>(tensor: A, value: A::Elem) -> Result<TensorOf<A>, DimError> {
    let shape = tensor.into_named().unified_shape()?;
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let len = shape.volume(order, size_of::<A::Elem>())?;
    let mut data = reserve(len).map_err(|error| shape.name_dims(error.into(), order))?;
    data.resize(len, value);
    let sizes = shape.sizes_in(order);
    Ok(Named::from_expr(Evaluated::laid_out(data, &sizes)))
}

/// A tensor of the given elements, in the order of the dims as written, the last one fastest.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Row; struct Col; }
/// let x = from_vec((Row.of(2), Col.of(3)), vec![1, 2, 3, 4, 5, 6]);
/// assert_eq!(x.index(Row, 1).order(Col), ndarray::array![4, 5, 6]);
/// ```
///
/// # Panics
///
/// If a dim has no size, its prime has another size, or the number of elements differs from the
/// product of the sizes.
#[panicking_twin]
pub fn try_from_vec<T: Element, D: SizedDims>(dims: D, data: Vec<T>) -> Result<Named<T, D::Set>, DimError> {
    let sizes = sizes(&dims)?;
    let expected = volume::<T>(&sizes)?;
    if expected != data.len() {
        return Err(DimError::Length { dims: describe(&sizes), expected, found: data.len() });
    }
    Ok(build::<T, D>(&sizes, data))
}
