//! Elementwise loops: the kernels of operations, and the drivers that write their results.

use super::gather::Indices;
use super::isa::{Isa, Task, dispatch};
use super::{Faults, Kernel, TILE, Tile};
use crate::error::DimError;
use crate::ops::{BinaryOp, UnaryOp};
use crate::plan::nest::{Nest, Odometer, Row};
use crate::scalar::Element;
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// The same value everywhere.
pub struct Constant<T>(pub T);

impl<T: Copy> Kernel for Constant<T> {
    type Elem = T;

    #[inline(always)]
    fn load(&mut self, _: &Tile<'_>, _: &mut Faults) {}

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, _: usize) -> T {
        self.0
    }

    #[inline(always)]
    fn is_uniform(&self) -> bool {
        true
    }

    #[inline(always)]
    fn can_fault(&self) -> bool {
        false
    }
}

/// The position along a dim.
pub struct Counter<'k> {
    row: Row<'k>,
    start: isize,
}

impl<'k> Counter<'k> {
    /// Counts as the row says.
    pub fn new(row: Row<'k>) -> Self {
        Counter { row, start: 0 }
    }

    #[inline(always)]
    fn step(&self) -> isize {
        self.row.strides.last().copied().unwrap_or(0)
    }
}

impl Kernel for Counter<'_> {
    type Elem = isize;

    #[inline(always)]
    fn load(&mut self, tile: &Tile<'_>, _: &mut Faults) {
        let steps = tile.at.iter().zip(self.row.strides).map(|(&at, &step)| at as isize * step);
        self.start = self.row.offset + steps.sum::<isize>();
    }

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, x: usize) -> isize {
        self.start + x as isize * self.step()
    }

    #[inline(always)]
    fn is_uniform(&self) -> bool {
        self.step() == 0
    }

    #[inline(always)]
    fn can_fault(&self) -> bool {
        false
    }
}

/// An operation on one operand.
pub struct UnaryKernel<'k, O, A> {
    pub(crate) op: &'k O,
    pub(crate) a: A,
}

impl<A: Kernel, O: UnaryOp<A::Elem>> Kernel for UnaryKernel<'_, O, A> {
    type Elem = O::Out;

    #[inline(always)]
    fn load(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.a.load(tile, faults);
    }

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, x: usize) -> O::Out {
        // SAFETY: the caller's promise.
        self.op.apply::<I>(unsafe { self.a.get::<I>(x) })
    }

    #[inline(always)]
    fn is_uniform(&self) -> bool {
        self.a.is_uniform()
    }

    #[inline(always)]
    fn can_fault(&self) -> bool {
        self.a.can_fault()
    }
}

/// An operation on two operands.
pub struct BinaryKernel<'k, O, A, B> {
    pub(crate) op: &'k O,
    pub(crate) a: A,
    pub(crate) b: B,
}

impl<A: Kernel, B: Kernel, O: BinaryOp<A::Elem, B::Elem>> Kernel for BinaryKernel<'_, O, A, B> {
    type Elem = O::Out;

    #[inline(always)]
    fn load(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.a.load(tile, faults);
        self.b.load(tile, faults);
    }

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, x: usize) -> O::Out {
        // SAFETY: the caller's promise.
        self.op.apply::<I>(unsafe { self.a.get::<I>(x) }, unsafe { self.b.get::<I>(x) })
    }

    #[inline(always)]
    fn is_uniform(&self) -> bool {
        self.a.is_uniform() && self.b.is_uniform()
    }

    #[inline(always)]
    fn can_fault(&self) -> bool {
        self.a.can_fault() || self.b.can_fault()
    }
}

/// One of two operands, as a condition says. What is not taken is not read.
pub struct SelectKernel<C, A, B> {
    pub(crate) cond: C,
    pub(crate) a: A,
    pub(crate) b: B,
}

impl<C: Kernel<Elem = bool>, A: Kernel, B: Kernel<Elem = A::Elem>> Kernel for SelectKernel<C, A, B> {
    type Elem = A::Elem;

    #[inline(always)]
    fn load(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.cond.load(tile, faults);
        if !self.a.can_fault() && !self.b.can_fault() {
            self.a.load(tile, faults);
            self.b.load(tile, faults);
            return;
        }
        let mut mask = [false; TILE];
        let wanted = |x: usize| tile.mask.is_none_or(|mask| mask[x]);
        for (x, taken) in mask[..tile.len].iter_mut().enumerate() {
            // SAFETY: `x` is less than the tile's length, and wanted.
            *taken = wanted(x) && unsafe { self.cond.get::<super::isa::Baseline>(x) };
        }
        self.a.load(&Tile { mask: Some(&mask[..tile.len]), ..*tile }, faults);
        for (x, taken) in mask[..tile.len].iter_mut().enumerate() {
            *taken = wanted(x) && !*taken;
        }
        self.b.load(&Tile { mask: Some(&mask[..tile.len]), ..*tile }, faults);
    }

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, x: usize) -> A::Elem {
        // SAFETY: the caller's promise; each side was loaded where the condition takes it.
        unsafe { if self.cond.get::<I>(x) { self.a.get::<I>(x) } else { self.b.get::<I>(x) } }
    }

    #[inline(always)]
    fn is_uniform(&self) -> bool {
        self.cond.is_uniform() && self.a.is_uniform() && self.b.is_uniform()
    }

    #[inline(always)]
    fn can_fault(&self) -> bool {
        self.cond.can_fault() || self.a.can_fault() || self.b.can_fault()
    }
}

/// The elements of a loop nest in its order, as a new vector of `len` elements.
#[inline]
pub fn collect<K: Kernel>(kernel: K, nest: &Nest, len: usize) -> Result<Vec<K::Elem>, DimError> {
    let mut out = reserve(len)?;
    dispatch(Fill { kernel, nest, out: &mut out.spare_capacity_mut()[..len] })?;
    // SAFETY: `Fill` wrote `len` elements, the product of the nest's sizes, or met a fault and returned an error.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// Memory for `len` elements, or an error instead of an abort.
#[inline]
pub fn reserve<T>(len: usize) -> Result<Vec<T>, DimError> {
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|_| DimError::TooLarge { dims: format!("{len} elements") })?;
    Ok(out)
}

struct Fill<'n, K: Kernel> {
    kernel: K,
    nest: &'n Nest,
    out: &'n mut [MaybeUninit<K::Elem>],
}

impl<K: Kernel> Task for Fill<'_, K> {
    type Out = Result<(), DimError>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Result<(), DimError> {
        let Fill { mut kernel, nest, out } = self;
        let mut faults = Faults::default();
        let mut done = 0;
        each_tile(&nest.sizes, |tile| {
            kernel.load(&tile, &mut faults);
            // After a fault nothing is computed: what stands in for the element could, for one, be divided by.
            if !faults.any() {
                fill_tile::<I, K>(&kernel, &mut out[done..done + tile.len]);
            }
            done += tile.len;
        });
        assert_eq!(done, out.len(), "the loop nest covers the result");
        faults.into_result()
    }
}

#[inline(always)]
fn fill_tile<I: Isa, K: Kernel>(kernel: &K, out: &mut [MaybeUninit<K::Elem>]) {
    for (x, out) in out.iter_mut().enumerate() {
        // SAFETY: a tile of this length was just loaded, without a mask.
        out.write(unsafe { kernel.get::<I>(x) });
    }
}

/// Calls `visit` with each tile of a loop nest.
#[inline(always)]
fn each_tile(sizes: &[usize], mut visit: impl FnMut(Tile<'_>)) {
    let (&inner, outer) = sizes.split_last().expect("a nest has a loop");
    if inner == 0 {
        // The outer loops may be long, though there is nothing in them.
        return;
    }
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, sizes.len());
    let last = outer.len();
    let mut odometer = Odometer::new(outer);
    while !odometer.is_done() {
        let mut start = 0;
        while start < inner {
            let len = TILE.min(inner - start);
            at[last] = start;
            visit(Tile { at: &at, len, mask: None });
            start += len;
        }
        odometer.advance(&mut at[..last]);
    }
}

/// Where results go that are not a new vector: strided memory, perhaps at computed places.
pub struct Target<'n, T, X> {
    base: *mut T,
    strides: &'n [isize],
    indices: X,
}

impl<'n, T, X: Indices> Target<'n, T, X> {
    /// A target.
    ///
    /// # Safety
    ///
    /// As for [`super::strided::Strided::new`], with exclusive access for as long as the target lives.
    pub unsafe fn new(origin: *mut T, row: Row<'n>, indices: X) -> Self {
        Target { base: origin.wrapping_offset(row.offset), strides: row.strides, indices }
    }
}

/// Puts `op(old, new)` for each element of the nest into the target, one after the other in the nest's order.
///
/// A place that is met several times accumulates; after a fault nothing more is written.
pub fn update<T: Element, K: Kernel, X: Indices, O: BinaryOp<T, K::Elem, Out = T>>(
    kernel: K,
    nest: &Nest,
    target: Target<'_, T, X>,
    op: O,
) -> Result<(), DimError> {
    dispatch(Update { kernel, nest, target, op })
}

struct Update<'n, T, K, X, O> {
    kernel: K,
    nest: &'n Nest,
    target: Target<'n, T, X>,
    op: O,
}

impl<T: Element, K: Kernel, X: Indices, O: BinaryOp<T, K::Elem, Out = T>> Task for Update<'_, T, K, X, O> {
    type Out = Result<(), DimError>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Result<(), DimError> {
        let Update { mut kernel, nest, mut target, op } = self;
        let mut faults = Faults::default();
        let mut failed = false;
        let stride = target.strides.last().copied().unwrap_or(0);
        each_tile(&nest.sizes, |tile| {
            if failed {
                return;
            }
            kernel.load(&tile, &mut faults);
            target.indices.load(&tile, &mut faults);
            if faults.any() {
                failed = true;
                return;
            }
            let start: isize =
                tile.at.iter().zip(target.strides).map(|(&at, &stride)| at as isize * stride).sum();
            for x in 0..tile.len {
                // SAFETY: a tile of this length was loaded by both, without a mask.
                let (offset, value) = unsafe { (target.indices.offset(x, &mut faults), kernel.get::<I>(x)) };
                let Some(offset) = offset else {
                    failed = true;
                    return;
                };
                let place = target.base.wrapping_offset(start + offset + x as isize * stride);
                // SAFETY: the place is a valid element that nothing else has access to, by the contract of `new`.
                unsafe { *place = op.apply::<I>(*place, value) };
            }
        });
        faults.into_result()
    }
}
