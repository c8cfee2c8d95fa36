//! Borrowed memory that can be bound to dims: ndarray arrays, slices, vectors and nested fixed-size
//! arrays. (`crate::foreign` adds types from other crates.)

use crate::types::rank::*;
use crate::types::size::Static;
use alloc::vec::Vec;
use kernels::memory::axes::Axis;
use kernels::memory::elements::{Elements, ElementsMut};
use ndarray::{ArrayBase, Data, DataMut, Dimension, Ix0, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6, IxDyn};
use smallvec::SmallVec;

/// The greatest number of axes that are stored without an allocation.
const INLINE: usize = 6;

/// The axes of elements in memory.
pub type Axes = SmallVec<[Axis; INLINE]>;

/// A number of axes that is known only at run time.
#[derive(Clone, Copy, Debug)]
pub struct RankDyn;

/// The rank of an ndarray dimension type.
pub trait NdRank: Dimension {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`Rank0`] to [`Rank6`], or [`RankDyn`].
    type Rank;
}

macro_rules! nd_ranks {
    ($($nd:ident $rank:ident),*) => { $(impl NdRank for $nd { const SEAL: crate::seal::Seal = crate::seal::SEAL; type Rank = $rank; })* };
}

nd_ranks!(Ix0 Rank0, Ix1 Rank1, Ix2 Rank2, Ix3 Rank3, Ix4 Rank4, Ix5 Rank5, Ix6 Rank6, IxDyn RankDyn);

/// A source of elements whose axes can be bound.
///
/// # Safety
///
/// If no axis that [`raw`](Source::raw) returns is empty, then for every position along the axes,
/// the pointer, offset according to the strides, points to an element that is valid for as long as
/// the source is borrowed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array whose axes can be bound",
    label = "expected an array, a slice, a vector or a nested fixed-size array",
    note = "a tensor is changed as a whole, `x.assign(..)` or `x += y`, or at some positions, `x.scatter(..)`"
)]
pub unsafe trait Source {
    /// The type of the elements.
    type Elem;
    /// [`Rank0`] to [`Rank26`], or [`RankDyn`].
    type Rank;
    /// The static sizes of the first axes, as nested pairs that end in `()`. The sizes of any other
    /// axes are only known at run time.
    type Sizes;
    /// A pointer to the first element, and the axes.
    #[doc(hidden)]
    fn raw(&self) -> (*const Self::Elem, Axes);
}

/// A source whose elements can be changed.
///
/// # Safety
///
/// As for [`Source`], with exclusive access to distinct elements.
#[diagnostic::on_unimplemented(
    message = "the elements of `{Self}` cannot be changed",
    label = "expected an array that owns its elements or borrows them mutably"
)]
pub unsafe trait SourceMut: Source {
    /// A pointer to the first element, and the axes.
    #[doc(hidden)]
    fn raw_mut(&mut self) -> (*mut Self::Elem, Axes);
}

/// The elements of a source, and their axes.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn elements<A: Source + ?Sized>(source: &A) -> (Elements<'_, A::Elem>, Axes) {
    let (start, axes) = source.raw();
    // SAFETY: the implementor of `Source` promises elements at every position of these axes while
    // the source is borrowed.
    let elements = unsafe { Elements::new(start, &axes, &[]) };
    (elements, axes)
}

/// The elements of a source that is borrowed exclusively, and their axes.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn elements_mut<A: SourceMut + ?Sized>(source: &mut A) -> (ElementsMut<'_, A::Elem>, Axes) {
    let (start, axes) = source.raw_mut();
    // SAFETY: the implementor of `SourceMut` promises distinct elements at every position of these
    // axes, and the borrow is exclusive.
    let elements = unsafe { ElementsMut::new(start, &axes, &[]) };
    (elements, axes)
}

/// The elements of adjacent values, and their axes: first the axis of the values, then those of
/// each value.
pub(crate) fn elements_of_nested<A: Nested>(values: &[A]) -> (Elements<'_, A::Elem>, Axes) {
    let mut axes = Axes::from_slice(&[Axis::new(values.len(), A::LEN as isize)]);
    A::sizes(&mut axes);
    // SAFETY: a slice has `len` adjacent values, each of which is `A::LEN` elements, as the
    // implementor of `Nested` promises.
    let elements = unsafe { Elements::new(values.as_ptr().cast(), &axes, &[]) };
    (elements, axes)
}

/// More than [`INLINE`] axes. (A separate function, compiled once with this crate.)
#[cold]
#[inline(never)]
fn many_axes(sizes: &[usize], strides: &[isize]) -> Axes {
    sizes.iter().zip(strides).map(|(&size, &stride)| Axis::new(size, stride)).collect()
}

#[cfg_attr(not(unoptimized), inline(always))]
fn nd_axes(sizes: &[usize], strides: &[isize]) -> Axes {
    let axes = sizes.iter().zip(strides).map(|(&size, &stride)| Axis::new(size, stride));
    if sizes.len() > INLINE {
        return many_axes(sizes, strides);
    }
    // For a static rank this is straight-line code.
    let mut inline = [Axis::default(); INLINE];
    for (own, axis) in inline.iter_mut().zip(axes) {
        *own = axis;
    }
    Axes::from_buf_and_len(inline, sizes.len())
}

// SAFETY: ndarray guarantees that every index within the shape is an element of the array.
unsafe impl<S: Data, D: NdRank> Source for ArrayBase<S, D> {
    type Elem = S::Elem;
    type Rank = D::Rank;
    type Sizes = ();

    #[cfg_attr(not(unoptimized), inline(always))]
    fn raw(&self) -> (*const S::Elem, Axes) {
        (self.as_ptr(), nd_axes(self.shape(), self.strides()))
    }
}

// SAFETY: every index within the shape is an element of the array, and different indices are
// different elements, which `DataMut` owns or borrows exclusively; `as_mut_ptr` first unshares
// shared elements.
#[diagnostic::do_not_recommend]
unsafe impl<S: DataMut, D: NdRank> SourceMut for ArrayBase<S, D> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn raw_mut(&mut self) -> (*mut S::Elem, Axes) {
        let start = self.as_mut_ptr();
        (start, nd_axes(self.shape(), self.strides()))
    }
}

macro_rules! slices {
    ($(($($params:tt)*) $slice:ty, $elem:ty;)*) => {$(
        // SAFETY: adjacent elements of a slice are one apart.
        unsafe impl<$($params)*> Source for $slice {
            type Elem = $elem;
            type Rank = Rank1;
            type Sizes = ();

            #[cfg_attr(not(unoptimized), inline(always))]
            fn raw(&self) -> (*const $elem, Axes) {
                (self.as_ptr(), Axes::from_slice(&[Axis::new(self.len(), 1)]))
            }
        }

        // SAFETY: adjacent elements of a slice are one apart and distinct; the slice is borrowed
        // exclusively.
        #[diagnostic::do_not_recommend]
        unsafe impl<$($params)*> SourceMut for $slice {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn raw_mut(&mut self) -> (*mut $elem, Axes) {
                let len = self.len();
                (self.as_mut_ptr(), Axes::from_slice(&[Axis::new(len, 1)]))
            }
        }
    )*};
}

slices! {
    (T) [T], T;
    (T) Vec<T>, T;
}

/// Numbers, `bool`s, and fixed-size arrays of these, nested to any depth.
///
/// # Safety
///
/// A value must consist of `LEN` adjacent elements, and [`sizes`](Nested::sizes) must append axes
/// whose positions are exactly these elements.
pub unsafe trait Nested {
    /// The innermost type.
    type Elem;
    /// The nesting depth.
    type Rank: Rank;
    /// The lengths, as nested pairs.
    type Sizes;
    /// The number of elements of a value.
    const LEN: usize;
    /// Appends the axes of a value: their sizes are the lengths.
    fn sizes(axes: &mut Axes);
}

macro_rules! scalars {
    ($($t:ty),*) => {$(
        // SAFETY: one element.
        unsafe impl Nested for $t {
            type Elem = $t;
            type Rank = Rank0;
            type Sizes = ();
            const LEN: usize = 1;
            fn sizes(_: &mut Axes) {}
        }
    )*};
}

scalars!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64, bool);
scalars!(num_complex::Complex32, num_complex::Complex64);
#[cfg(feature = "half")]
scalars!(half::f16, half::bf16);

// SAFETY: an array is `N` adjacent values. Each value is `T::LEN` elements with the axes of
// `T::sizes`.
unsafe impl<T: Nested, const N: usize> Nested for [T; N] {
    type Elem = T::Elem;
    type Rank = <T::Rank as Rank>::Succ;
    type Sizes = (Static<N>, T::Sizes);
    const LEN: usize = N * T::LEN;

    fn sizes(axes: &mut Axes) {
        axes.push(Axis::new(N, T::LEN as isize));
        T::sizes(axes);
    }
}

// SAFETY: an array is `N` adjacent values. Each value is `T::LEN` elements with the axes of
// `T::sizes`.
unsafe impl<T: Nested, const N: usize> Source for [T; N] {
    type Elem = T::Elem;
    type Rank = <T::Rank as Rank>::Succ;
    type Sizes = (Static<N>, T::Sizes);

    #[cfg_attr(not(unoptimized), inline(always))]
    fn raw(&self) -> (*const T::Elem, Axes) {
        let mut axes = Axes::new();
        <[T; N]>::sizes(&mut axes);
        ((self as *const Self).cast(), axes)
    }
}

// SAFETY: the elements are those of `Source`, all distinct, and the array is borrowed exclusively.
#[diagnostic::do_not_recommend]
unsafe impl<T: Nested, const N: usize> SourceMut for [T; N] {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn raw_mut(&mut self) -> (*mut T::Elem, Axes) {
        let mut axes = Axes::new();
        <[T; N]>::sizes(&mut axes);
        ((self as *mut Self).cast(), axes)
    }
}
