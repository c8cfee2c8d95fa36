//! `pack!` and `unpack!`: arrays of different ranks, joined along one axis, and back.

use super::args::{Arg, Taking};
use super::input::{ArrayElements, InMemory, Input, SameElem, Values};
use super::rank::{AnyRank, HasAtLeast, ResultOf};
use crate::bind::source::RankDyn;
use crate::error::DimError;
use crate::execute::loops::check_elements_taken;
use crate::execute::parts::JoinedArrays;
use crate::plan::shape::volume;
use crate::seal::PRIVATE;
use crate::types::rank::Rank;
use crate::types::set::Bool;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::loops::nest::Nest;
use kernels::loops::rows::Rows;
use kernels::memory::axes::Axis;
use kernels::scalar::Element;
use smallvec::SmallVec;

/// The sizes of the `*` axes of each packed array, which [`unpack!`](../../macro.unpack.html) needs
/// to split the joined array.
///
/// `R` is the number of these axes, if it is the same for all arrays. `K` is the kind of list that
/// was packed: [`Several<N>`], or [`Many`]. A `PackedShape` can also be constructed from sizes:
/// `PackedShape::from(vec![vec![2, 3], vec![4]])`.
pub struct PackedShape<R = RankDyn, K = Many> {
    parts: Vec<Vec<usize>>,
    marker: PhantomData<fn() -> (R, K)>,
}

/// Arrays written out, `[x0, x1]`.
#[derive(Clone, Copy, Debug)]
pub struct Several<const N: usize>;

/// Arrays in a vector, a slice, or a fixed-size array that is not written out.
#[derive(Clone, Copy, Debug)]
pub struct Many;

impl<R, K> PackedShape<R, K> {
    /// The sizes of the axes of `*`, for each array.
    pub fn sizes(&self) -> &[Vec<usize>] {
        &self.parts
    }

    fn new(parts: Vec<Vec<usize>>) -> Self {
        PackedShape { parts, marker: PhantomData }
    }
}

impl<R, K> Clone for PackedShape<R, K> {
    fn clone(&self) -> Self {
        PackedShape::new(self.parts.clone())
    }
}

impl<R, K> PartialEq for PackedShape<R, K> {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl<R, K> core::fmt::Debug for PackedShape<R, K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("PackedShape").field(&self.parts).finish()
    }
}

impl From<Vec<Vec<usize>>> for PackedShape {
    fn from(parts: Vec<Vec<usize>>) -> Self {
        PackedShape::new(parts)
    }
}

/// The rank that two arrays share, or [`RankDyn`].
pub trait CommonRank<O>: AnyRank {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The common rank.
    type Out: AnyRank;
}

impl<R: Rank, O: Rank> CommonRank<O> for R
where
    <SameNumberOfAxes<R, O> as Bool>::If<R, RankDyn>: AnyRank,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <SameNumberOfAxes<R, O> as Bool>::If<R, RankDyn>;
}

type SameNumberOfAxes<R, O> =
    <<<R as Rank>::TakenFrom<O> as Rank>::Max<<O as Rank>::TakenFrom<R>> as Rank>::IsNone;

impl<R: Rank> CommonRank<RankDyn> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = RankDyn;
}
impl<O> CommonRank<O> for RankDyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = RankDyn;
}

/// Arrays to pack. `Rest` is the number of axes that `*` stands for, if it is the same for all
/// arrays.
pub struct Packing<'a, T, Rest, K> {
    arrays: Vec<ArrayElements<'a, T>>,
    marker: PhantomData<(Rest, K)>,
}

impl<N> Taking<N> {
    /// Starts with the first array.
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn packing<'a, const COUNT: usize, A: Input<Rank: HasAtLeast<N>, Values<'a>: InMemory<'a, Elem = A::Elem>> + ?Sized>(array: &'a A) -> Packing<'a, A::Elem, <A::Rank as HasAtLeast<N>>::Rest, Several<COUNT>> {
        let mut arrays = Vec::with_capacity(COUNT);
        arrays.push(array.values().into_memory());
        Packing { arrays, marker: PhantomData }
    }

    /// All arrays of a list.
    pub fn packing_all<'a, L: ArrayList + ?Sized>(
        list: &'a L,
    ) -> Packing<'a, <L::Array as Input>::Elem, <<L::Array as Input>::Rank as HasAtLeast<N>>::Rest, Many>
    where
        L::Array: Input<Rank: HasAtLeast<N>, Values<'a>: InMemory<'a, Elem = <L::Array as Input>::Elem>>,
    {
        let arrays = list.arrays().iter().map(|array| array.values().into_memory());
        Packing { arrays: arrays.collect(), marker: PhantomData }
    }

    /// Adds an array.
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn and<'a, const COUNT: usize, T, Rest, A: Input<Elem: SameElem<T>, Rank: HasAtLeast<N>, Values<'a>: InMemory<'a, Elem = A::Elem>> + ?Sized>(mut packing: Packing<'a, T, Rest, Several<COUNT>>, array: &'a A) -> Packing<'a, T, Rest::Out, Several<COUNT>>
    where
        Rest: CommonRank<<A::Rank as HasAtLeast<N>>::Rest>,
    {
        packing.arrays.push(SameElem::same(array.values().into_memory()));
        Packing { arrays: packing.arrays, marker: PhantomData }
    }
}

/// A vector, slice or fixed-size array of arrays, or a pointer to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of arrays",
    label = "expected a list: `[x0, x1]`, or a vector or slice of arrays"
)]
pub trait ArrayList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the arrays.
    type Array;
    #[doc(hidden)]
    fn arrays(&self) -> &[Self::Array];
}

macro_rules! array_lists {
    ($(($($params:tt)*) $list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<A, $($params)*> ArrayList for $list {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Array = A;

            fn arrays(&self) -> &[A] {
                self
            }
        }
    )*};
}

array_lists! {
    () [A];
    () Vec<A>;
    (const N: usize) [A; N];
}

macro_rules! array_list_pointers {
    ($($pointer:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<L: ArrayList + ?Sized> ArrayList for $pointer {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Array = L::Array;

            fn arrays(&self) -> &[L::Array] {
                (**self).arrays()
            }
        }
    )*};
}

array_list_pointers!(&L, &mut L, Box<L>, alloc::rc::Rc<L>, alloc::sync::Arc<L>);

/// The names of the axes before and after `*`.
#[derive(Clone, Copy, Debug)]
pub struct PackPattern {
    /// The pattern as it was written.
    pub text: &'static str,
    /// The names before `*`.
    pub before: &'static [&'static str],
    /// The names after `*`.
    pub after: &'static [&'static str],
}

impl PackPattern {
    fn named(&self) -> usize {
        self.before.len() + self.after.len()
    }
}

/// The axes of an array before, within and after `*`.
fn around<'x>(
    pattern: &PackPattern,
    axes: &'x [Axis],
) -> Result<(&'x [Axis], &'x [Axis], &'x [Axis]), DimError> {
    let (rank, named) = (axes.len(), pattern.named());
    if rank < named {
        return Err(DimError::PatternRank { found: rank, named, spread: true });
    }
    let (before, rest) = axes.split_at(pattern.before.len());
    let (within, after) = rest.split_at(rank - named);
    Ok((before, within, after))
}

fn product(axes: &[Axis]) -> usize {
    axes.iter().map(|axis| axis.size).product()
}

/// The arrays joined along the axis `*`.
pub fn pack<O, T, Rest, K>(
    pattern: &'static PackPattern,
    packing: Packing<'_, T, Rest, K>,
) -> Result<(O::Out, PackedShape<Rest, K>), DimError>
where
    T: Element,
    O: ResultOf<T, ()>,
{
    let mut arrays = packing.arrays;
    let mut parts: Vec<Vec<usize>> = Vec::with_capacity(arrays.len());
    let mut total = 0_usize;
    for array in &mut arrays {
        array.settle()?;
        check_elements_taken(array.elements(), "pack!")?;
        let (_, within, _) = around(pattern, &array.axes)?;
        let count = volume(within.iter().map(|axis| axis.size), 1).and_then(|count| total.checked_add(count));
        total = count.ok_or_else(|| DimError::TooLarge { dims: format!("`{}`", pattern.text) })?;
        parts.push(within.iter().map(|axis| axis.size).collect());
    }
    let Some(first) = arrays.first() else {
        return Err(DimError::Shape { what: "nothing to pack: an empty list of arrays has no sizes".into() });
    };
    for (at, array) in arrays.iter().enumerate().skip(1) {
        compare(pattern, first, array, at)?;
    }
    let (before, _, after) = around(pattern, &first.axes)?;
    let mut sizes: SmallVec<[usize; 8]> = SmallVec::new();
    sizes.extend(before.iter().map(|axis| axis.size));
    sizes.push(total);
    sizes.extend(after.iter().map(|axis| axis.size));
    let too_large =
        || DimError::TooLarge { dims: format!("the sizes {sizes:?}, in the pattern `{}`,", pattern.text) };
    let len = volume(sizes.iter().copied(), size_of::<T>()).ok_or_else(too_large)?;
    let mut out = JoinedArrays::of(len, total * product(after))?;
    for array in &arrays {
        out.push(array.elements(), &array.axes, before.len());
    }
    // At each position of the axes before `*`, the parts of the arrays are adjacent, and together
    // they fill the axis `*`.
    Ok((O::build(out.finish(), &sizes), PackedShape::new(parts)))
}

fn compare<T>(
    pattern: &PackPattern,
    first: &ArrayElements<'_, T>,
    own: &ArrayElements<'_, T>,
    at: usize,
) -> Result<(), DimError> {
    let ((before, _, after), (own_before, _, own_after)) =
        (around(pattern, &first.axes)?, around(pattern, &own.axes)?);
    let names = pattern.before.iter().chain(pattern.after);
    let sizes = before.iter().chain(after).zip(own_before.iter().chain(own_after));
    for (name, (one, other)) in names.zip(sizes) {
        if one.size != other.size {
            return Err(DimError::AxisConflict {
                axis: name,
                first: one.size,
                first_place: "in array 1".into(),
                second: other.size,
                second_place: format!("in array {}", at + 1),
                pattern: pattern.text,
            });
        }
    }
    Ok(())
}

/// The result of `unpack!`: a fixed-size array of arrays, or a vector of arrays.
pub trait Unpacked<A> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The list.
    type Out;
    #[doc(hidden)]
    fn list(arrays: Vec<A>) -> Self::Out;
}

impl<A, const N: usize> Unpacked<A> for Several<N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = [A; N];

    fn list(arrays: Vec<A>) -> [A; N] {
        arrays.try_into().ok().expect("there are as many arrays as were packed")
    }
}

impl<A> Unpacked<A> for Many {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Vec<A>;

    fn list(arrays: Vec<A>) -> Vec<A> {
        arrays
    }
}

/// The shape of packed arrays.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the shape of packed arrays",
    label = "expected the `PackedShape` that `pack!` returns with the packed array"
)]
pub trait AsPackedShape {
    /// The number of axes of `*`.
    type Rank;
    /// [`Several`] or [`Many`].
    type Kind;
    /// The shape itself.
    type Shape: AsPackedShape;
    #[doc(hidden)]
    fn shape(&self) -> &Self::Shape;
    /// The sizes of the `*` axes of each array, for a joined axis of `size` elements.
    #[doc(hidden)]
    fn parts(&self, size: usize, pattern: &PackPattern) -> Result<Cow<'_, [Vec<usize>]>, DimError>;
}

#[diagnostic::do_not_recommend]
impl<R, K> AsPackedShape for PackedShape<R, K> {
    type Rank = R;
    type Kind = K;
    type Shape = Self;

    fn shape(&self) -> &Self {
        self
    }

    fn parts(&self, size: usize, pattern: &PackPattern) -> Result<Cow<'_, [Vec<usize>]>, DimError> {
        if total(&self.parts) == Some(size) {
            return Ok(Cow::Borrowed(&self.parts));
        }
        Err(misfit(size, &self.parts, pattern))
    }
}

/// The sizes of the axes `*` listed in a call of [`unpack!`](../../macro.unpack.html):
/// `[[2, 3], [-1]]`. The size `-1` is inferred.
#[doc(hidden)]
#[derive(Debug)]
pub struct ListedShape<'a, R, K> {
    parts: &'a [&'a [ListedSize]],
    marker: PhantomData<fn() -> (R, K)>,
}

/// A size, and whether it is inferred. An inferred size is 0 here.
#[doc(hidden)]
pub type ListedSize = (usize, bool);

/// The sizes listed in a call, for `N` arrays.
#[doc(hidden)]
pub fn listed_shape<'a, const N: usize, R>(
    parts: &'a [&'a [ListedSize]; N],
) -> ListedShape<'a, R, Several<N>> {
    ListedShape { parts, marker: PhantomData }
}

#[diagnostic::do_not_recommend]
impl<R, K> AsPackedShape for ListedShape<'_, R, K> {
    type Rank = R;
    type Kind = K;
    type Shape = Self;

    fn shape(&self) -> &Self {
        self
    }

    fn parts(&self, size: usize, pattern: &PackPattern) -> Result<Cow<'_, [Vec<usize>]>, DimError> {
        let filled = |rest: usize| -> Vec<Vec<usize>> {
            let fill = |&(size, open): &ListedSize| if open { rest } else { size };
            self.parts.iter().map(|part| part.iter().map(fill).collect()).collect()
        };
        let is_open = |part: &&[ListedSize]| part.iter().any(|&(_, open)| open);
        // With 0 for the inferred size, its array has no elements; with 1, it has the elements of
        // one position.
        let (known, with_one) = (total(&filled(0)), total(&filled(1)));
        let rest = match (known, with_one) {
            (Some(known), Some(with_one)) if self.parts.iter().any(is_open) => {
                let left = size.checked_sub(known);
                left.filter(|left| left.checked_rem(with_one - known) == Some(0))
                    .map(|left| left / (with_one - known))
            }
            (Some(known), _) if known == size => Some(0),
            _ => None,
        };
        let as_written = |&(size, open): &ListedSize| if open { -1 } else { size as i128 };
        rest.map(|rest| Cow::Owned(filled(rest))).ok_or_else(|| {
            let parts: Vec<Vec<i128>> =
                self.parts.iter().map(|part| part.iter().map(as_written).collect()).collect();
            misfit(size, &parts, pattern)
        })
    }
}

/// The size of the axis `*` for arrays of these sizes.
fn total(parts: &[Vec<usize>]) -> Option<usize> {
    parts.iter().try_fold(0_usize, |total, part| {
        volume(part.iter().copied(), 1).and_then(|count| total.checked_add(count))
    })
}

fn misfit(size: usize, parts: &impl core::fmt::Debug, pattern: &PackPattern) -> DimError {
    DimError::Shape {
        what: format!(
            "axis `*` has size {size}, but the arrays to unpack have {parts:?}, in the pattern `{}`",
            pattern.text
        ),
    }
}

/// Borrows the shape from a call's argument.
#[doc(hidden)]
pub fn packed_shape<S: AsPackedShape>(shape: &S) -> &S::Shape {
    shape.shape()
}

#[diagnostic::do_not_recommend]
impl<S: AsPackedShape> AsPackedShape for &S {
    type Rank = S::Rank;
    type Kind = S::Kind;
    type Shape = S::Shape;

    fn shape(&self) -> &S::Shape {
        (**self).shape()
    }

    fn parts(&self, size: usize, pattern: &PackPattern) -> Result<Cow<'_, [Vec<usize>]>, DimError> {
        (**self).parts(size, pattern)
    }
}

/// A list of arrays that were packed, each with `M` named axes and those of `*`.
pub type UnpackedAs<M, T, S> = <<S as AsPackedShape>::Kind as Unpacked<
    <<<S as AsPackedShape>::Rank as AnyRank>::With<M> as ResultOf<T, ()>>::Out,
>>::Out;

/// The arrays that were packed.
pub fn unpack<'a, M, T, S: AsPackedShape>(
    pattern: &'static PackPattern,
    packed: Arg<ArrayElements<'a, T>, (), crate::types::rank::Rank0>,
    shape: &S,
) -> Result<UnpackedAs<M, T, S>, DimError>
where
    T: Element,
    M: Rank,
    S::Rank: AnyRank<With<M>: ResultOf<T, ()>>,
    S::Kind: Unpacked<<<S::Rank as AnyRank>::With<M> as ResultOf<T, ()>>::Out>,
{
    let mut packed = packed.values;
    packed.settle()?;
    check_elements_taken(packed.elements(), "unpack!")?;
    let (before, named) = (pattern.before.len(), pattern.named());
    if packed.axes.len() != named + 1 {
        return Err(DimError::PatternRank { found: packed.axes.len(), named: named + 1, spread: false });
    }
    let size = packed.axes[before].size;
    let parts = shape.parts(size, pattern)?;
    // (Users can implement `AsPackedShape`, and the parts determine the offsets that are read
    // below.)
    if total(&parts) != Some(size) {
        return Err(misfit(size, &parts, pattern));
    }
    let mut start = 0;
    let mut arrays = Vec::new();
    for part in &*parts {
        let count: usize = part.iter().product();
        let own: Vec<usize> = packed
            .axes
            .iter()
            .enumerate()
            .map(|(at, axis)| if at == before { count } else { axis.size })
            .collect();
        let mut rows = Rows::new(own.len());
        for (stride, axis) in
            rows.push_at(packed.axes[before].stride * start as isize).iter_mut().zip(&packed.axes)
        {
            *stride = axis.stride;
        }
        let order: SmallVec<[usize; 6]> = (0..own.len()).collect();
        let data = packed.collect(&Nest::map(&own, &order, &rows), own.iter().product(), PRIVATE)?;
        let sizes: Vec<usize> = [&own[..before], part, &own[before + 1..]].concat();
        arrays.push(<<S::Rank as AnyRank>::With<M> as ResultOf<T, ()>>::build(data, &sizes));
        start += count;
    }
    Ok(S::Kind::list(arrays))
}
