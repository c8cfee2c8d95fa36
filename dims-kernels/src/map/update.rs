//! Elementwise loops whose results are combined with existing elements, or are written with strides
//! or at computed indices.

use crate::error::Error;
use crate::load::gather::GatherIndices;
use crate::load::tiles::Tiles;
use crate::load::{Faults, Kernel};
use crate::loops::nest::{Nest, NestParts, OperandRows, Row};
use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::threads::{self, Carried};
use crate::memory::elements::{ElementsMut, OutputSlots};
use crate::ops::{BinaryOp, Operation};
use crate::scalar::Element;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::MaybeUninit;

/// A target of results other than a new vector: strided memory, possibly at computed indices.
struct UpdateTarget<'n, T, X> {
    base: *mut T,
    strides: &'n [isize],
    indices: X,
}

/// The operands of [`update`] for a nest.
pub struct LoweredUpdate<'n, X, K> {
    /// The row of the target.
    pub row: Row<'n>,
    /// The computed indices into the target.
    pub indices: X,
    /// The kernel of the values.
    pub value: K,
}

impl<'n, X: GatherIndices, K> LoweredUpdate<'n, X, K> {
    /// The kernel of the values, and the target in `place`.
    ///
    /// # Safety
    ///
    /// The row and the indices reach only elements of `place`. Nothing else accesses these elements
    /// while the target is written to.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn onto<T>(self, place: &mut ElementsMut<'_, T>) -> (K, UpdateTarget<'n, T, X>) {
        let LoweredUpdate { row, indices, value } = self;
        if !(X::ANY && indices.is_active()) {
            row.assert_within(&*place);
        }
        let base = place.as_mut_ptr().wrapping_offset(row.offset);
        (value, UpdateTarget { base, strides: row.strides, indices })
    }
}

/// Replaces each target element with `op(old, new)`, in the nest's order. `new` is the
/// corresponding element of the nest.
///
/// `lower` makes the kernel for a nest, or for a part of one. The nest is split into one part for
/// each thread that the work keeps busy if the kernel and `op` can run on several threads, there
/// are no active indices, and the strides show that no two parts share a target element. A target
/// element that occurs several times is replaced each time. After a fault, a part writes nothing
/// more.
///
/// # Safety
///
/// `lower` takes the row of the target from the nest that it gets. That row maps each position of
/// the nest to a position of the axes of `place`. Active indices select from further axes of
/// `place`, with the sizes and strides that they are checked against.
pub unsafe fn update<'n, T, K, X, O>(
    nest: &'n Nest,
    parts: &'n mut NestParts,
    mut place: ElementsMut<'_, T>,
    lower: impl Fn(&'n Nest) -> LoweredUpdate<'n, X, K>,
    op: O,
) -> Result<(), Error>
where
    T: Element,
    K: Kernel,
    X: GatherIndices,
    O: BinaryOp<T, K::Elem, Out = T> + Copy,
{
    // SAFETY: the target is borrowed exclusively, and each position is one of its elements, as the
    // caller promises.
    let (kernel, target) = unsafe { lower(nest).onto(&mut place) };
    let threads = threads::parts(nest.positions());
    let scatters = X::ANY && target.indices.is_active();
    if threads <= 1 || !K::PARALLEL || !O::PARALLEL || scatters || !is_apart(&nest.sizes, target.strides) {
        return dispatch(Update { kernel, nest, target, op });
    }
    *parts = nest.split(0, threads);
    let mut jobs: Vec<threads::Job<'_>> = Vec::with_capacity(parts.len());
    for nest in &*parts {
        // SAFETY: the positions of a part are positions of the nest. The first target is not used
        // any more, and those of different parts are disjoint, as `is_apart` has found.
        let (kernel, target) = unsafe { lower(nest).onto(&mut place) };
        // SAFETY: kernels read elements, which are `Sync`. Operations are plain values, as
        // `PARALLEL` says. The elements of different parts are disjoint, and the target has
        // exclusive access to all of them.
        let task = unsafe { Carried::new(Update { kernel, nest, target, op }) };
        jobs.push(Box::new(move || dispatch(task.into_inner())));
    }
    threads::run(jobs)
}

/// Whether different positions of the outermost loop are known to reach different elements,
/// wherever the other loops are. For interleaved strides this is not known.
pub(crate) fn is_apart(sizes: &[usize], strides: &[isize]) -> bool {
    let reach =
        |(&size, &stride): (&usize, &isize)| stride.unsigned_abs().saturating_mul(size.saturating_sub(1));
    let others = sizes.iter().zip(strides).skip(1).map(reach).fold(0, usize::saturating_add);
    strides[0].unsigned_abs() > others
}

#[cfg_attr(not(unoptimized), inline(always))]
fn update_tile<I: Isa, T: Copy, K: Kernel, O: BinaryOp<T, K::Elem, Out = T>>(
    kernel: &K,
    places: &mut [T],
    op: &O,
) {
    for (x, place) in places.iter_mut().enumerate() {
        // SAFETY: a tile of this length was just loaded, without a mask.
        *place = op.apply::<I>(*place, unsafe { kernel.get::<I>(x) });
    }
}

struct Update<'n, T, K, X, O> {
    kernel: K,
    nest: &'n Nest,
    target: UpdateTarget<'n, T, X>,
    op: O,
}

impl<T: Element, K: Kernel, X: GatherIndices, O: BinaryOp<T, K::Elem, Out = T>> Task
    for Update<'_, T, K, X, O>
{
    type Out = Result<(), Error>;
    const WIDE: bool = K::LONG;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) -> Result<(), Error> {
        let Update { mut kernel, nest, mut target, op } = self;
        let mut faults = Faults::default();
        let stride = target.strides.last().copied().unwrap_or(0);
        let mut tiles = Tiles::new(nest);
        while let Some(tile) = tiles.tile() {
            kernel.load::<I>(&tile, &mut faults);
            target.indices.load::<I>(&tile, &mut faults);
            if faults.any() {
                break;
            }
            let steps = tile.at.iter().zip(target.strides).map(|(&at, &stride)| at as isize * stride);
            let start = target.base.wrapping_offset(steps.sum());
            if stride == 1 && !(X::ANY && target.indices.is_active()) {
                // SAFETY: the tile's target elements are contiguous, and each is a valid element
                // that nothing else accesses, by the contract of `onto`.
                let places = unsafe { core::slice::from_raw_parts_mut(start, tile.len) };
                update_tile::<I, T, K, O>(&kernel, places, &op);
            } else {
                for x in 0..tile.len {
                    // SAFETY: the indices and the kernel have loaded a tile of this length, without
                    // a mask.
                    let (offset, value) =
                        unsafe { (target.indices.offset::<I>(x, &mut faults), kernel.get::<I>(x)) };
                    let Some(offset) = offset else {
                        return faults.into_result();
                    };
                    let place = start.wrapping_offset(offset + x as isize * stride);
                    // SAFETY: this is a valid element that nothing else accesses, by the contract
                    // of `onto`.
                    unsafe { *place = op.apply::<I>(*place, value) };
                }
            }
            tiles.advance();
        }
        faults.into_result()
    }
}

/// Writes the elements of a nest to slots, which are its first operand: the element at a position
/// of the loops goes to the slot at the index `offset` plus the position's offset along the first
/// row.
///
/// # Panics
///
/// If there is no such slot.
pub fn write<'n, T: Element, K: Kernel<Elem = T>>(
    nest: &'n Nest,
    parts: &'n mut NestParts,
    places: OutputSlots<'_, T>,
    offset: usize,
    lower: impl Fn(&mut OperandRows<'n>) -> K,
) -> Result<(), Error> {
    let row = nest.operands().next_row();
    let start = places.reached(offset, &nest.sizes, row.strides).cast::<UninitPlace<T>>();
    // SAFETY: as was asserted, every position of the loops has a slot. The slots are borrowed
    // exclusively. `UninitPlace` has the layout of a slot.
    let place = unsafe { ElementsMut::along(start, &nest.sizes, row.strides) };
    let lower = |nest| {
        let mut operands = Nest::operands(nest);
        LoweredUpdate { row: operands.next_row(), indices: (), value: lower(&mut operands) }
    };
    // SAFETY: the target has the sizes of the loops and the strides of its row, which is the first
    // row of the nest.
    unsafe { update(nest, parts, place, lower, Write) }
}

/// A slot that may be uninitialized.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct UninitPlace<T: Copy>(MaybeUninit<T>);

impl<T: Copy> Default for UninitPlace<T> {
    fn default() -> Self {
        UninitPlace(MaybeUninit::uninit())
    }
}

/// Writes a value to a slot that may be uninitialized.
#[derive(Clone, Copy)]
struct Write;

impl Operation for Write {}

impl<T: Element> BinaryOp<UninitPlace<T>, T> for Write {
    type Out = UninitPlace<T>;
    const NAME: &'static str = "write";
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, _: UninitPlace<T>, new: T) -> UninitPlace<T> {
        UninitPlace(MaybeUninit::new(new))
    }
}
