//! Tensors that own their elements.

use crate::error::Origin;
use crate::plan::axes::AxisList;
#[cfg(feature = "std")]
use crate::plan::explain;
use crate::storage::View;
use crate::storage::axes::{AxisBlock, permuted};
use crate::types::rank::{Rank, Rank0};
use crate::types::set::Dims;
#[cfg(feature = "std")]
use crate::types::set::Keys;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use alloc::{boxed::Box, sync::Arc};
use core::any::{Any, TypeId};
use core::marker::PhantomData;
use core::panic::Location;
use kernels::loops::nest::Odometer;
use kernels::memory::axes::{Axis, is_within};
use kernels::memory::buffer::Buffer;
use kernels::memory::elements::Elements;
use kernels::memory::freed::Freed;
#[cfg(feature = "std")]
use kernels::memory::held::Mark;
#[cfg(feature = "std")]
use kernels::trace::Node;
use smallvec::SmallVec;

/// Elements, with a size and a stride for each dim of the set `S` and for each of the positional
/// axes `R`.
pub struct Evaluated<T, S: Dims, R: Rank = Rank0> {
    data: Buffer<T>,
    /// The index of the element at position 0 of every axis. (With negative strides, other elements
    /// come before it.)
    start: usize,
    named: S::Axes,
    positional: R::Axes,
    origin: Origin,
    marker: PhantomData<fn() -> S>,
}

/// Shares the elements until one of the tensors is modified.
impl<T: Clone, S: Dims, R: Rank> Clone for Evaluated<T, S, R> {
    fn clone(&self) -> Self {
        Evaluated { data: self.data.clone(), marker: PhantomData, ..*self }
    }
}

/// Memory that a tensor can own: a vector, or a buffer, which may be traced.
pub(crate) trait IntoElements<T>: Into<Buffer<T>> {
    /// Whether the memory may be marked with the step that computed it. (The memory of a vector
    /// never is, so no check is needed.)
    #[cfg(feature = "std")]
    const MAY_BE_MARKED: bool;
}

impl<T> IntoElements<T> for Vec<T> {
    #[cfg(feature = "std")]
    const MAY_BE_MARKED: bool = false;
}

impl<T> IntoElements<T> for Buffer<T> {
    #[cfg(feature = "std")]
    const MAY_BE_MARKED: bool = true;
}

impl<T, S: Dims, R: Rank> Evaluated<T, S, R> {
    /// Contiguous elements in the default order of axes: see [`AxisList::in_memory`]. `sizes` is in
    /// that order.
    ///
    /// Messages name the caller as the origin of the sizes: the line of the user's program, if all
    /// functions in between are `#[track_caller]`. Otherwise use
    /// [`with_origin`](Evaluated::with_origin).
    ///
    /// # Panics
    ///
    /// If `sizes` is not the shape of `data`.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    pub(crate) fn laid_out(data: impl IntoElements<T>, sizes: &[usize]) -> Self {
        Self::in_order(data, AxisList::in_memory_of::<S, R>().as_slice(), sizes)
    }

    /// Like [`laid_out`](Evaluated::laid_out), but with sizes in the order of the set, then those
    /// of the positional axes.
    ///
    /// # Panics
    ///
    /// If `sizes` is not the shape of `data`.
    #[track_caller]
    pub(crate) fn of_sizes(data: impl IntoElements<T>, sizes: &[usize]) -> Self {
        let order = AxisList::in_memory_of::<S, R>().as_slice();
        assert_eq!(order.len(), sizes.len(), "one size for each axis");
        let sizes: SmallVec<[usize; 8]> = order.iter().map(|&at| sizes[at]).collect();
        Self::in_order(data, order, &sizes)
    }

    /// Contiguous elements in the given order of all axes (numbered with dims first); `sizes` is in
    /// that order.
    ///
    /// # Panics
    ///
    /// If `order` does not name each axis once, or `sizes` is not the shape of `data`.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    pub(crate) fn in_order<B: IntoElements<T>>(data: B, order: &[usize], sizes: &[usize]) -> Self {
        let data: Buffer<T> = data.into();
        assert_eq!(order.len(), sizes.len(), "one size for each axis");
        assert_eq!(order.len(), S::Axes::LEN + R::N, "one size for each axis");
        let (mut named, mut positional) =
            (S::Axes::filled(Axis::default()), R::Axes::filled(Axis::default()));
        let step = fill_contiguous([named.as_mut_slice(), positional.as_mut_slice()], order, sizes);
        assert_eq!(step, data.len(), "the sizes are the shape of the data");
        #[cfg(feature = "std")]
        if B::MAY_BE_MARKED
            && let Some(mark) = data.mark()
        {
            tell_axes(mark, S::KEYS, order, sizes);
        }
        // (Built at the end: moving a struct right after writing its fields one by one stalls.)
        let origin = Some(Location::caller());
        Evaluated { data, start: 0, named, positional, origin, marker: PhantomData }
    }

    /// The same elements with another origin of the sizes: that of another tensor, or `None` if no
    /// source location gave the sizes, as for a file.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn with_origin(self, origin: Origin) -> Self {
        Evaluated { origin, ..self }
    }

    /// Elements with arbitrary axes; `start` is the index of the element at position 0 of every
    /// axis.
    ///
    /// # Panics
    ///
    /// If the axes reach beyond the elements.
    pub(crate) fn strided<B: IntoElements<T>>(
        data: B,
        start: usize,
        named: S::Axes,
        positional: R::Axes,
        origin: Origin,
    ) -> Self {
        let data: Buffer<T> = data.into();
        let axes = named.as_slice().iter().chain(positional.as_slice()).map(Axis::parts);
        assert!(is_within(data.len(), start as i128, axes), "the axes do not reach beyond the elements");
        let own = Evaluated { data, start, named, positional, origin, marker: PhantomData };
        #[cfg(feature = "std")]
        if B::MAY_BE_MARKED {
            own.tell_axes();
        }
        own
    }

    /// Elements that vary only along `axis`. `sizes` are those of all axes, dims first.
    ///
    /// # Panics
    ///
    /// If the axes reach beyond the elements.
    #[track_caller]
    pub(crate) fn along(data: Vec<T>, axis: usize, sizes: &[usize]) -> Self {
        assert_eq!(sizes.len(), S::Axes::LEN + R::N, "one size for each axis");
        let (mut named, mut positional) =
            (S::Axes::filled(Axis::default()), R::Axes::filled(Axis::default()));
        fill_along([named.as_mut_slice(), positional.as_mut_slice()], axis, sizes);
        Self::strided(data, 0, named, positional, Some(Location::caller()))
    }

    /// The elements, for plans and kernels.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn elements(&self) -> Elements<'_, T> {
        // SAFETY: each constructor makes sure that the axes do not reach beyond the elements that
        // `self` owns.
        unsafe { Elements::new(self.as_ptr(), self.named.as_slice(), self.positional.as_slice()) }
    }

    /// The elements, borrowed.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn view(&self) -> View<'_, T, S, R> {
        // SAFETY: the axes of an owned tensor do not reach beyond its elements, which stay borrowed
        // for as long as the view lives; there are no indices.
        unsafe { View::new(self.as_ptr(), self.named, self.positional, (), self.origin) }
    }

    /// A pointer to the element at position 0 of every axis.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn as_ptr(&self) -> *const T {
        self.data.as_ptr().wrapping_add(self.start)
    }

    /// A pointer to the element at position 0 of every axis. All elements that the axes reach from
    /// it can be written.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    pub(super) fn as_mut_ptr(&mut self) -> *mut T
    where
        T: Clone,
    {
        self.data.as_mut_ptr().wrapping_add(self.start)
    }

    pub(crate) fn buffer(&self) -> &Buffer<T> {
        &self.data
    }

    /// Other elements along the same axes.
    ///
    /// # Panics
    ///
    /// If there are more or fewer elements in memory than before.
    pub(crate) fn with_buffer(&self, data: Buffer<T>) -> Self {
        assert_eq!(data.len(), self.data.len(), "the number of elements stays the same");
        let own = Evaluated { data, marker: PhantomData, ..*self };
        #[cfg(feature = "std")]
        own.tell_axes();
        own
    }

    /// Marks the elements as those of `node`, such as a variable of a gradient. They stay in the
    /// same memory, unless that is shared: then they are copied.
    #[cfg(feature = "std")]
    pub(crate) fn trace(&mut self, node: Arc<Node>)
    where
        T: Copy + Send + Sync + 'static,
    {
        self.data.set_mark(Box::new(node));
        self.tell_axes();
    }

    /// Records the axes of the elements in the step that computed them. Does nothing if no step is
    /// recorded for them, or if they do not fill the memory contiguously.
    #[cfg(feature = "std")]
    fn tell_axes(&self) {
        let Some(mark) = self.data.mark() else { return };
        let order = self.order_in_memory();
        if self.is_contiguous(&order) {
            tell_axes(mark, S::KEYS, &order, &self.sizes_in(&order));
        }
    }

    /// The numbers of all axes, from the outermost in memory to the innermost. Dims are numbered
    /// before positional axes.
    pub(crate) fn order_in_memory(&self) -> SmallVec<[usize; 8]> {
        order_of_strides(self.axis_slices())
    }

    /// The sizes of all axes, dims first.
    pub(crate) fn sizes(&self) -> SmallVec<[usize; 8]> {
        sizes_of(self.axis_slices())
    }

    /// The sizes of all axes, in this order.
    #[cfg(any(feature = "std", feature = "half"))]
    pub(crate) fn sizes_in(&self, order: &[usize]) -> SmallVec<[usize; 8]> {
        sizes_in(self.axis_slices(), order)
    }

    /// Makes the elements constants, in the same memory unless it is shared.
    #[cfg(feature = "std")]
    pub(crate) fn end_trace(&mut self)
    where
        T: Copy + Send + Sync + 'static,
    {
        self.data.remove_mark();
    }

    /// Whether the elements can be changed in place, without a copy.
    #[cfg(feature = "std")]
    pub(crate) fn is_unshared(&mut self) -> bool {
        self.data.is_unshared()
    }

    /// The index of the element at position 0 of every axis.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Whether the elements are traced: they belong to a gradient, or to a function that is being
    /// recorded.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn is_traced(&self) -> bool {
        self.data.is_traced()
    }

    /// The axes of the dims, in the order of the set.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn named(&self) -> &S::Axes {
        &self.named
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn positional(&self) -> &R::Axes {
        &self.positional
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// The same elements with other dims along the same axes: the new axis `at` is the old axis
    /// `from[at]`, or a broadcast axis of size `sizes(at)`; see [`permuted`].
    ///
    /// # Panics
    ///
    /// If `from` does not name each axis once.
    #[inline]
    pub(crate) fn with_dims<X: Dims>(
        self,
        from: &[usize],
        sizes: impl Fn(usize) -> usize,
    ) -> Evaluated<T, X, R> {
        let named = permuted(self.named.as_slice(), from, sizes);
        let Evaluated { data, start, positional, origin, .. } = self;
        Evaluated { data, start, named, positional, origin, marker: PhantomData }
    }

    /// The elements at the position `at` of the last dims. The first dims, `X`, remain.
    ///
    /// Nothing is copied: the part shares the elements, as a clone does.
    ///
    /// # Panics
    ///
    /// If the position is out of range.
    pub(crate) fn at_last<X: Dims>(&self, at: &[usize]) -> Evaluated<T, X, R> {
        let (kept, last) = self.named.as_slice().split_at(X::Axes::LEN);
        assert_eq!(last.len(), at.len(), "a position for each removed dim");
        let mut start = self.start;
        for (axis, &at) in last.iter().zip(at) {
            assert!(at < axis.size, "the position is within its axis");
            // (This may wrap if another axis is empty, because strides may then be anything. No
            // element is read then.)
            start = start.wrapping_add_signed((at as isize).wrapping_mul(axis.stride));
        }
        let mut named = X::Axes::filled(Axis::default());
        named.as_mut_slice().copy_from_slice(kept);
        let (positional, origin) = (self.positional, self.origin);
        Evaluated { data: self.data.clone(), start, named, positional, origin, marker: PhantomData }
    }

    /// Prepares the tensor for modification: afterwards no two positions share an element. If the
    /// tensor is a contiguous part of shared memory, it gets a copy of that part. (Otherwise the
    /// modification would copy all of the memory.)
    ///
    /// # Panics
    ///
    /// If memory for an element at each position cannot be allocated.
    pub(super) fn prepare_change(&mut self)
    where
        T: Clone,
    {
        // (Traced elements must not be modified; the modification itself reports that.)
        if !self.data.is_traced() {
            self.separate();
            self.detach_part();
        }
    }

    /// Gives each position its own element where positions along an axis share one (stride 0).
    fn separate(&mut self)
    where
        T: Clone,
    {
        if !have_repeated(self.axis_slices()) {
            return;
        }
        let all: SmallVec<[Axis; 8]> = self.axes().collect();
        let order = AxisList::in_memory_of::<S, R>().as_slice();
        let axes: SmallVec<[Axis; 8]> = order.iter().map(|&at| all[at]).collect();
        let sizes: SmallVec<[usize; 8]> = axes.iter().map(|axis| axis.size).collect();
        let mut data = Vec::new();
        let len = sizes.iter().try_fold(1usize, |len, &size| len.checked_mul(size));
        let fits = len.is_some_and(|len| data.try_reserve_exact(len).is_ok());
        assert!(fits, "not enough memory for an element at each position of the tensor");
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, axes.len());
        let mut odometer = Odometer::new(&sizes);
        while !odometer.is_done() {
            let offset: isize = at.iter().zip(&axes).map(|(&at, axis)| at as isize * axis.stride).sum();
            data.push(self.data[self.start.wrapping_add_signed(offset)].clone());
            odometer.advance(&mut at);
        }
        *self = Self { origin: self.origin, ..Self::laid_out(data, &sizes) };
    }

    fn detach_part(&mut self)
    where
        T: Clone,
    {
        let Some(len) = len_in_one_piece(self.axis_slices(), self.data.len()) else { return };
        if !self.data.is_unshared()
            && let Some(end) = self.start.checked_add(len)
            && let Some(part) = self.data.get(self.start..end)
        {
            self.data = part.to_vec().into();
            self.start = 0;
        }
    }

    /// The axes of the dims, then the positional ones.
    pub(crate) fn axes(&self) -> impl Iterator<Item = Axis> {
        all_of(self.axis_slices())
    }

    /// The axes of the dims, and the positional ones. (Functions of these are compiled once,
    /// instead of once for each type of tensor.)
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn axis_slices(&self) -> [&[Axis]; 2] {
        [self.named.as_slice(), self.positional.as_slice()]
    }

    /// All elements in the memory, in its order. (The axes may reach only some of them.)
    pub(crate) fn all(&self) -> &[T] {
        &self.data
    }

    /// Like [`all`](Evaluated::all), for writing. If the memory is shared, it is copied first.
    ///
    /// # Panics
    ///
    /// If the elements are traced.
    #[track_caller]
    pub(crate) fn all_mut(&mut self) -> &mut [T]
    where
        T: Clone,
    {
        &mut self.data
    }

    /// The elements, if they are contiguous in this order of axes (numbered with dims first), there
    /// are no others, and they are not traced.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn into_contiguous(self, order: &[usize]) -> Result<Vec<T>, Self>
    where
        T: Clone,
    {
        if self.is_contiguous(order) && !self.is_traced() { Ok(self.into_vec()) } else { Err(self) }
    }

    /// The memory, shared with this tensor, if the elements are contiguous in this order of axes
    /// and there are no others.
    ///
    /// `None` also if the elements are or were traced: sharing the memory would keep the steps of
    /// the gradient or the recording alive.
    pub(crate) fn shared_contiguous(&self, order: &[usize]) -> Option<Buffer<T>> {
        #[cfg(feature = "std")]
        if self.data.mark().is_some() {
            return None;
        }
        if self.is_contiguous(order) { Some(self.data.clone()) } else { None }
    }

    /// All elements in the memory, in its order. If the memory is shared, they are copied.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn into_vec(self) -> Vec<T>
    where
        T: Clone,
    {
        self.data.into_vec()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn into_buffer(self) -> Buffer<T> {
        self.data
    }

    /// Whether the elements are contiguous in this order of axes (numbered with dims first) and
    /// there are no others.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn is_contiguous(&self, order: &[usize]) -> bool {
        let axis = |at: usize| {
            let named = self.named.as_slice();
            named.get(at).copied().unwrap_or_else(|| self.positional.as_slice()[at - named.len()])
        };
        let mut step: usize = 1;
        let mut fits = self.start == 0;
        for &at in order.iter().rev() {
            let Axis { size, stride } = axis(at);
            fits &= size == 1 || stride == step as isize;
            step = step.saturating_mul(size);
        }
        fits && step == self.data.len()
    }
}

/// Sets the axes of contiguous elements. `order` has the numbers of the axes, from the outermost to
/// the innermost. Returns the number of elements.
///
/// # Panics
///
/// If `order` has a number twice, or one that no axis has.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
fn fill_contiguous([named, positional]: [&mut [Axis]; 2], order: &[usize], sizes: &[usize]) -> usize {
    let (mut seen, mut step): (u64, usize) = (0, 1);
    for (&at, &size) in order.iter().zip(sizes).rev() {
        assert!(seen >> at & 1 == 0, "each axis once");
        seen |= 1 << at;
        let axis = Axis::new(size, step as isize);
        match at.checked_sub(named.len()) {
            None => named[at] = axis,
            Some(at) => positional[at] = axis,
        }
        step = step.saturating_mul(size);
    }
    step
}

/// Sets the axes of elements that vary only along `axis`.
fn fill_along(axes: [&mut [Axis]; 2], axis: usize, sizes: &[usize]) {
    for (at, (own, &size)) in axes.into_iter().flatten().zip(sizes).enumerate() {
        *own = Axis::new(size, if at == axis { 1 } else { 0 });
    }
}

fn all_of([named, positional]: [&[Axis]; 2]) -> impl Iterator<Item = Axis> {
    named.iter().chain(positional).copied()
}

fn sizes_of(axes: [&[Axis]; 2]) -> SmallVec<[usize; 8]> {
    all_of(axes).map(|axis| axis.size).collect()
}

#[cfg(any(feature = "std", feature = "half"))]
fn sizes_in(axes: [&[Axis]; 2], order: &[usize]) -> SmallVec<[usize; 8]> {
    let sizes = sizes_of(axes);
    order.iter().map(|&at| sizes[at]).collect()
}

/// The numbers of axes, from the outermost in memory to the innermost.
pub(crate) fn order_of_strides(axes: [&[Axis]; 2]) -> SmallVec<[usize; 8]> {
    let strides: SmallVec<[usize; 8]> = all_of(axes).map(|axis| axis.stride.unsigned_abs()).collect();
    let mut order: SmallVec<[usize; 8]> = (0..strides.len()).collect();
    // A stable sort: axes of size 1 may share a stride with others.
    order.sort_by_key(|&at| core::cmp::Reverse(strides[at]));
    order
}

/// Whether the axes of two tensors with the same dims have the same sizes.
#[cfg_attr(not(unoptimized), inline)]
pub(crate) fn have_same_sizes([named, positional]: [&[Axis]; 2], others: [&[Axis]; 2]) -> bool {
    let same = |(own, other): (&Axis, &Axis)| own.size == other.size;
    named.iter().zip(others[0]).all(same) && positional.iter().zip(others[1]).all(same)
}

/// Whether several positions share an element.
#[cfg_attr(not(unoptimized), inline)]
fn have_repeated(axes: [&[Axis]; 2]) -> bool {
    all_of(axes).any(|axis| axis.stride == 0 && axis.size > 1)
}

/// The number of positions, if it is less than `most`, and the elements are contiguous in some order
/// of the axes.
#[cfg_attr(not(unoptimized), inline)]
fn len_in_one_piece(axes: [&[Axis]; 2], most: usize) -> Option<usize> {
    let len = all_of(axes).try_fold(1usize, |len, axis| len.checked_mul(axis.size));
    len.filter(|&len| len < most && are_in_one_piece(axes))
}

/// Whether elements along these axes are contiguous in some order of the axes.
#[inline(never)]
fn are_in_one_piece(axes: [&[Axis]; 2]) -> bool {
    let mut axes: SmallVec<[Axis; 8]> = all_of(axes).filter(|axis| axis.size != 1).collect();
    axes.sort_by_key(|axis| axis.stride);
    let mut step: usize = 1;
    axes.iter().all(|axis| {
        let fits = axis.stride == step as isize;
        step = step.saturating_mul(axis.size);
        fits
    })
}

/// Records the axes of marked memory in the step that computed it. `order` has their numbers (dims
/// are numbered first) from the outermost to the innermost; `sizes` is in that order.
#[cfg(feature = "std")]
#[cold]
#[inline(never)]
fn tell_axes(mark: &Mark, keys: &Keys, order: &[usize], sizes: &[usize]) {
    let mark: &dyn Any = &**mark;
    if let Some(node) = mark.downcast_ref::<Arc<Node>>() {
        let axis = |(&axis, &size)| explain::node_axis(keys.as_slice(), axis, size);
        node.lies_along(|| order.iter().zip(sizes).map(axis).collect());
    }
}

impl<T: Clone + 'static, S: Dims, R: Rank> Evaluated<T, S, R> {
    /// The memory of all elements for reuse, if `T` is `W` and the elements can be changed in
    /// place, without a copy.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn free<W: 'static>(&mut self) -> Option<Freed<W>> {
        let same = TypeId::of::<T>() == TypeId::of::<W>();
        if !same || !self.data.is_unshared() {
            return None;
        }
        // SAFETY: `W` is `T`. No other tensor has the elements. The expression that has this tensor
        // keeps it until `into_freed` gives the memory up, and reads each element only at its own
        // position, where the result's element is written.
        Some(unsafe { Freed::of(&mut self.data[..]) })
    }

    /// The elements that were written to `place`, if that is this tensor's memory.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn into_freed<W: 'static>(self, place: &Freed<W>) -> Option<Vec<W>> {
        if self.data.as_ptr().cast() != place.start().cast_const() {
            return None;
        }
        let mut data: Option<Vec<T>> = Some(self.into_vec());
        (&mut data as &mut dyn Any).downcast_mut::<Option<Vec<W>>>().and_then(Option::take)
    }
}
