//! Kernels of an expression's nodes: constants, counters, and operations on one or two operands.

use crate::load::{Faults, Kernel, Tile};
use crate::loops::nest::Row;
use crate::machine::isa::Isa;
use crate::ops::{BinaryOp, UnaryOp};

/// The same value everywhere.
pub struct Constant<T>(pub T);

// SAFETY: it returns no pointers, and its element is a plain value.
unsafe impl<T: Copy + 'static> Kernel for Constant<T> {
    type Elem = T;
    const VARIES: bool = false;
    const STEADY: bool = true;
    const PAIRS: bool = true;
    type TileReader = T;
    type Pairs = T;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load<I: Isa>(&mut self, _: &Tile<'_>, _: &mut Faults) {}

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get<I: Isa>(&self, _: usize) -> T {
        self.0
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn has_broadcast_operand<const LEFT: bool>(&self) -> bool {
        true
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn tile_reader<I: Isa, const LEFT: bool>(&self) -> T {
        self.0
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get_broadcast<I: Isa, const LEFT: bool>(reader: &T, _: usize) -> T {
        *reader
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn pairs<const LEFT: bool>(&self, _: &[usize], _: usize, _: usize, _: bool) -> Option<T> {
        Some(self.0)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn broadcast_element<I: Isa>(pairs: &T, _: usize, _: usize) -> T {
        *pairs
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn pair_reader<I: Isa, const LEFT: bool>(pairs: &T, _: usize, _: usize) -> T {
        *pairs
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_uniform(&self) -> bool {
        true
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn can_fault(&self) -> bool {
        false
    }
}

/// The position along a dim.
pub struct Counter<'k> {
    row: Row<'k>,
    start: isize,
    step: isize,
}

impl<'k> Counter<'k> {
    /// A counter with the strides of this row.
    pub fn new(row: Row<'k>) -> Self {
        Counter { row, start: 0, step: row.strides.last().copied().unwrap_or(0) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn first(&self, at: &[usize]) -> isize {
        let steps = at.iter().zip(self.row.strides).map(|(&at, &step)| at as isize * step);
        self.row.offset + steps.sum::<isize>()
    }
}

// SAFETY: it returns no pointers, and its elements are computed from the tile's position.
unsafe impl Kernel for Counter<'_> {
    type Elem = isize;
    const STEADY: bool = true;
    type TileReader = (isize, isize);
    type Pairs = ();

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, _: &mut Faults) {
        self.start = self.first(tile.at);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get<I: Isa>(&self, x: usize) -> isize {
        self.start + x as isize * self.step
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn has_broadcast_operand<const LEFT: bool>(&self) -> bool {
        true
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn tile_reader<I: Isa, const LEFT: bool>(&self) -> (isize, isize) {
        (self.start, self.step)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get_broadcast<I: Isa, const LEFT: bool>(&(start, step): &(isize, isize), x: usize) -> isize {
        start + x as isize * step
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_uniform(&self) -> bool {
        self.step == 0
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn can_fault(&self) -> bool {
        false
    }
}

/// An operation on one operand.
pub struct UnaryKernel<'k, O, A> {
    /// The operation.
    pub op: &'k O,
    /// The operand.
    pub a: A,
}

// SAFETY: all pointers are the operand's, and each element is computed from one of its elements.
// The kernel may run on several threads if the operation and the operand may.
unsafe impl<'k, A: Kernel, O: UnaryOp<A::Elem>> Kernel for UnaryKernel<'k, O, A> {
    type Elem = O::Out;
    type TileReader = (&'k O, A::TileReader);
    type Pairs = (&'k O, A::Pairs);
    const TOTAL: bool = O::TOTAL && A::TOTAL;
    const PARALLEL: bool = O::PARALLEL && A::PARALLEL;
    const VARIES: bool = A::VARIES || !O::PARALLEL;
    const GATHERS: bool = A::GATHERS;
    const LONG: bool = O::LONG || A::LONG;
    const HAS_LEFT_OPERAND: bool = A::HAS_LEFT_OPERAND;
    const PAIRS: bool = A::PAIRS;
    const HAS_RIGHT_OPERAND: bool = A::HAS_RIGHT_OPERAND;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn prefetch<I: Isa>(&mut self, tile: &Tile<'_>) {
        self.a.prefetch::<I>(tile);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn source(&self, at: &[usize]) -> Option<*const O::Out> {
        self.a.source(at).and_then(as_large)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.a.load::<I>(tile, faults);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get<I: Isa>(&self, x: usize) -> O::Out {
        // SAFETY: the caller's promise.
        self.op.apply::<I>(unsafe { self.a.get::<I>(x) })
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn has_broadcast_operand<const LEFT: bool>(&self) -> bool {
        self.a.has_broadcast_operand::<LEFT>()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load_broadcast<I: Isa, const LEFT: bool>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.a.load_broadcast::<I, LEFT>(tile, faults);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn tile_reader<I: Isa, const LEFT: bool>(&self) -> Self::TileReader {
        (self.op, self.a.tile_reader::<I, LEFT>())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get_broadcast<I: Isa, const LEFT: bool>((op, a): &Self::TileReader, x: usize) -> O::Out {
        // SAFETY: the caller's promise.
        op.apply::<I>(unsafe { A::get_broadcast::<I, LEFT>(a, x) })
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn pairs<const LEFT: bool>(
        &self,
        at: &[usize],
        row: usize,
        along: usize,
        paired: bool,
    ) -> Option<Self::Pairs> {
        Some((self.op, self.a.pairs::<LEFT>(at, row, along, paired)?))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn broadcast_element<I: Isa>((op, a): &Self::Pairs, row: usize, step: usize) -> O::Out {
        // SAFETY: the caller's promise.
        op.apply::<I>(unsafe { A::broadcast_element::<I>(a, row, step) })
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn pair_reader<I: Isa, const LEFT: bool>(
        (op, a): &Self::Pairs,
        row: usize,
        step: usize,
    ) -> Self::TileReader {
        // SAFETY: the caller's promise.
        (op, unsafe { A::pair_reader::<I, LEFT>(a, row, step) })
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_uniform(&self) -> bool {
        self.a.is_uniform()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn can_fault(&self) -> bool {
        self.a.can_fault()
    }
}

/// An operation on two operands.
pub struct BinaryKernel<'k, O, A, B> {
    /// The operation.
    pub op: &'k O,
    /// The left operand.
    pub a: A,
    /// The right operand.
    pub b: B,
}

// SAFETY: all pointers are the operands', and each element is computed from their elements. The
// kernel may run on several threads if the operation and both operands may.
unsafe impl<'k, A: Kernel, B: Kernel, O: BinaryOp<A::Elem, B::Elem>> Kernel for BinaryKernel<'k, O, A, B> {
    type Elem = O::Out;
    type TileReader = (&'k O, OperandReader<A>, OperandReader<B>);
    type Pairs = (&'k O, A::Pairs, B::Pairs);
    const TOTAL: bool = O::TOTAL && A::TOTAL && B::TOTAL;
    const PARALLEL: bool = O::PARALLEL && A::PARALLEL && B::PARALLEL;
    const VARIES: bool = A::VARIES || B::VARIES || !O::PARALLEL;
    const STEADY: bool = O::STEADY && A::STEADY && B::STEADY;
    const MONOTONE: bool = O::MONOTONE && A::STEADY && B::STEADY;
    const GATHERS: bool = A::GATHERS || B::GATHERS;
    const LONG: bool = O::LONG || A::LONG || B::LONG;
    const HAS_LEFT_OPERAND: bool = A::VARIES || B::HAS_LEFT_OPERAND;
    const PAIRS: bool = A::PAIRS && B::PAIRS;
    const HAS_RIGHT_OPERAND: bool = A::HAS_RIGHT_OPERAND || B::VARIES;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn prefetch<I: Isa>(&mut self, tile: &Tile<'_>) {
        self.a.prefetch::<I>(tile);
        self.b.prefetch::<I>(tile);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn source(&self, at: &[usize]) -> Option<*const O::Out> {
        self.a.source(at).and_then(as_large).or_else(|| self.b.source(at).and_then(as_large))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.a.load::<I>(tile, faults);
        self.b.load::<I>(tile, faults);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get<I: Isa>(&self, x: usize) -> O::Out {
        // SAFETY: the caller's promise.
        self.op.apply::<I>(unsafe { self.a.get::<I>(x) }, unsafe { self.b.get::<I>(x) })
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn has_broadcast_operand<const LEFT: bool>(&self) -> bool {
        if LEFT {
            self.a.is_uniform() && self.b.has_broadcast_operand::<LEFT>()
        } else {
            self.a.has_broadcast_operand::<LEFT>() && self.b.is_uniform()
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load_broadcast<I: Isa, const LEFT: bool>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        let one = Tile { len: tile.len.min(1), ..*tile };
        if LEFT {
            self.a.load::<I>(&one, faults);
            self.b.load_broadcast::<I, LEFT>(tile, faults);
        } else {
            self.a.load_broadcast::<I, LEFT>(tile, faults);
            self.b.load::<I>(&one, faults);
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn tile_reader<I: Isa, const LEFT: bool>(&self) -> Self::TileReader {
        // SAFETY: a tile has at least one element.
        let (a, b) = unsafe {
            if LEFT {
                (
                    OperandReader::Broadcast(self.a.get::<I>(0)),
                    OperandReader::Tile(self.b.tile_reader::<I, LEFT>()),
                )
            } else {
                (
                    OperandReader::Tile(self.a.tile_reader::<I, LEFT>()),
                    OperandReader::Broadcast(self.b.get::<I>(0)),
                )
            }
        };
        (self.op, a, b)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get_broadcast<I: Isa, const LEFT: bool>((op, a, b): &Self::TileReader, x: usize) -> O::Out {
        // SAFETY: the caller's promise.
        unsafe { op.apply::<I>(a.get::<I, LEFT>(x), b.get::<I, LEFT>(x)) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn pairs<const LEFT: bool>(
        &self,
        at: &[usize],
        row: usize,
        along: usize,
        paired: bool,
    ) -> Option<Self::Pairs> {
        let a = self.a.pairs::<LEFT>(at, row, along, paired && !LEFT)?;
        let b = self.b.pairs::<LEFT>(at, row, along, paired && LEFT)?;
        Some((self.op, a, b))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn broadcast_element<I: Isa>((op, a, b): &Self::Pairs, row: usize, step: usize) -> O::Out {
        // SAFETY: the caller's promise.
        unsafe {
            op.apply::<I>(A::broadcast_element::<I>(a, row, step), B::broadcast_element::<I>(b, row, step))
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn pair_reader<I: Isa, const LEFT: bool>(
        (op, a, b): &Self::Pairs,
        row: usize,
        step: usize,
    ) -> Self::TileReader {
        // SAFETY: the caller's promise.
        let (a, b) = unsafe {
            if LEFT {
                (
                    OperandReader::Broadcast(A::broadcast_element::<I>(a, row, step)),
                    OperandReader::Tile(B::pair_reader::<I, LEFT>(b, row, step)),
                )
            } else {
                (
                    OperandReader::Tile(A::pair_reader::<I, LEFT>(a, row, step)),
                    OperandReader::Broadcast(B::broadcast_element::<I>(b, row, step)),
                )
            }
        };
        (op, a, b)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_uniform(&self) -> bool {
        self.a.is_uniform() && self.b.is_uniform()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn can_fault(&self) -> bool {
        self.a.can_fault() || self.b.can_fault()
    }
}

#[cfg_attr(not(unoptimized), inline(always))]
fn as_large<T, Out>(source: *const T) -> Option<*const Out> {
    (size_of::<T>() == size_of::<Out>()).then_some(source.cast())
}

/// How an operand of an operation is read: as one broadcast element for the whole tile, or by a
/// reader of the tile.
pub enum OperandReader<K: Kernel> {
    /// The broadcast element.
    Broadcast(K::Elem),
    /// The reader of the tile.
    Tile(K::TileReader),
}

impl<K: Kernel> OperandReader<K> {
    /// # Safety
    ///
    /// As for [`Kernel::get_broadcast`].
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get<I: Isa, const LEFT: bool>(&self, x: usize) -> K::Elem {
        match self {
            OperandReader::Broadcast(value) => *value,
            // SAFETY: the caller's promise.
            OperandReader::Tile(reader) => unsafe { K::get_broadcast::<I, LEFT>(reader, x) },
        }
    }
}
