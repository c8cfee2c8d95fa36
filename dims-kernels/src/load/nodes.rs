//! The kernels of an expression's nodes: constants, counters and operations.

use crate::load::{Faults, Kernel, Tile};
use crate::loops::nest::Row;
use crate::machine::isa::Isa;
use crate::ops::{BinaryOp, UnaryOp};

/// The same value everywhere.
pub struct Constant<T>(pub T);

impl<T: Copy> Kernel for Constant<T> {
    type Elem = T;
    const VARIES: bool = false;
    const STEADY: bool = true;
    const PAIRS: bool = true;
    type Held = T;
    type Pairs = T;

    #[inline(always)]
    fn load<I: Isa>(&mut self, _: &Tile<'_>, _: &mut Faults) {}

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, _: usize) -> T {
        self.0
    }

    #[inline(always)]
    fn is_beside<const LEFT: bool>(&self) -> bool {
        true
    }

    #[inline(always)]
    fn hold<I: Isa, const LEFT: bool>(&self) -> T {
        self.0
    }

    #[inline(always)]
    unsafe fn get_beside<I: Isa, const LEFT: bool>(held: &T, _: usize) -> T {
        *held
    }

    #[inline(always)]
    fn pairs<const LEFT: bool>(&self, _: &[usize], _: usize, _: usize, _: bool) -> Option<T> {
        Some(self.0)
    }

    #[inline(always)]
    unsafe fn same<I: Isa>(pairs: &T, _: usize, _: usize) -> T {
        *pairs
    }

    #[inline(always)]
    unsafe fn hold_pair<I: Isa, const LEFT: bool>(pairs: &T, _: usize, _: usize) -> T {
        *pairs
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
    step: isize,
}

impl<'k> Counter<'k> {
    /// Counts as the row says.
    pub fn new(row: Row<'k>) -> Self {
        Counter { row, start: 0, step: row.strides.last().copied().unwrap_or(0) }
    }

    /// The position at which a tile begins.
    #[inline(always)]
    fn first(&self, at: &[usize]) -> isize {
        let steps = at.iter().zip(self.row.strides).map(|(&at, &step)| at as isize * step);
        self.row.offset + steps.sum::<isize>()
    }
}

impl Kernel for Counter<'_> {
    type Elem = isize;
    const STEADY: bool = true;
    type Held = (isize, isize);
    type Pairs = [isize; 4];

    #[inline(always)]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, _: &mut Faults) {
        self.start = self.first(tile.at);
    }

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, x: usize) -> isize {
        self.start + x as isize * self.step
    }

    #[inline(always)]
    fn is_beside<const LEFT: bool>(&self) -> bool {
        true
    }

    #[inline(always)]
    fn hold<I: Isa, const LEFT: bool>(&self) -> (isize, isize) {
        (self.start, self.step)
    }

    #[inline(always)]
    unsafe fn get_beside<I: Isa, const LEFT: bool>(&(start, step): &(isize, isize), x: usize) -> isize {
        start + x as isize * step
    }

    #[inline(always)]
    fn pairs<const LEFT: bool>(
        &self,
        at: &[usize],
        row: usize,
        along: usize,
        paired: bool,
    ) -> Option<Self::Pairs> {
        let stride = |along: usize| self.row.strides.get(along).copied().unwrap_or(0);
        (paired || self.step == 0).then(|| [self.first(at), stride(row), stride(along), self.step])
    }

    #[inline(always)]
    unsafe fn same<I: Isa>(&[start, down, along, _]: &Self::Pairs, row: usize, step: usize) -> isize {
        start + row as isize * down + step as isize * along
    }

    #[inline(always)]
    unsafe fn hold_pair<I: Isa, const LEFT: bool>(
        pairs: &Self::Pairs,
        row: usize,
        step: usize,
    ) -> (isize, isize) {
        // SAFETY: the caller's promise.
        (unsafe { Self::same::<I>(pairs, row, step) }, pairs[3])
    }

    #[inline(always)]
    fn is_uniform(&self) -> bool {
        self.step == 0
    }

    #[inline(always)]
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

impl<'k, A: Kernel, O: UnaryOp<A::Elem>> Kernel for UnaryKernel<'k, O, A> {
    type Elem = O::Out;
    type Held = (&'k O, A::Held);
    type Pairs = (&'k O, A::Pairs);
    const TOTAL: bool = O::TOTAL && A::TOTAL;
    const PARALLEL: bool = O::PARALLEL && A::PARALLEL;
    const VARIES: bool = A::VARIES || !O::PARALLEL;
    const GATHERS: bool = A::GATHERS;
    const LONG: bool = O::LONG || A::LONG;
    const HAS_LEFT: bool = A::HAS_LEFT;
    const PAIRS: bool = A::PAIRS;
    const HAS_RIGHT: bool = A::HAS_RIGHT;

    #[inline(always)]
    fn fetch<I: Isa>(&mut self, tile: &Tile<'_>) {
        self.a.fetch::<I>(tile);
    }

    #[inline(always)]
    fn source(&self, at: &[usize]) -> Option<*const O::Out> {
        self.a.source(at).and_then(as_large)
    }

    #[inline(always)]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.a.load::<I>(tile, faults);
    }

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, x: usize) -> O::Out {
        // SAFETY: the caller's promise.
        self.op.apply::<I>(unsafe { self.a.get::<I>(x) })
    }

    #[inline(always)]
    fn is_beside<const LEFT: bool>(&self) -> bool {
        self.a.is_beside::<LEFT>()
    }

    #[inline(always)]
    fn load_beside<I: Isa, const LEFT: bool>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.a.load_beside::<I, LEFT>(tile, faults);
    }

    #[inline(always)]
    fn hold<I: Isa, const LEFT: bool>(&self) -> Self::Held {
        (self.op, self.a.hold::<I, LEFT>())
    }

    #[inline(always)]
    unsafe fn get_beside<I: Isa, const LEFT: bool>((op, a): &Self::Held, x: usize) -> O::Out {
        // SAFETY: the caller's promise.
        op.apply::<I>(unsafe { A::get_beside::<I, LEFT>(a, x) })
    }

    #[inline(always)]
    fn pairs<const LEFT: bool>(
        &self,
        at: &[usize],
        row: usize,
        along: usize,
        paired: bool,
    ) -> Option<Self::Pairs> {
        Some((self.op, self.a.pairs::<LEFT>(at, row, along, paired)?))
    }

    #[inline(always)]
    unsafe fn same<I: Isa>((op, a): &Self::Pairs, row: usize, step: usize) -> O::Out {
        // SAFETY: the caller's promise.
        op.apply::<I>(unsafe { A::same::<I>(a, row, step) })
    }

    #[inline(always)]
    unsafe fn hold_pair<I: Isa, const LEFT: bool>(
        (op, a): &Self::Pairs,
        row: usize,
        step: usize,
    ) -> Self::Held {
        // SAFETY: the caller's promise.
        (op, unsafe { A::hold_pair::<I, LEFT>(a, row, step) })
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
    /// The operation.
    pub op: &'k O,
    /// The left operand.
    pub a: A,
    /// The right operand.
    pub b: B,
}

impl<'k, A: Kernel, B: Kernel, O: BinaryOp<A::Elem, B::Elem>> Kernel for BinaryKernel<'k, O, A, B> {
    type Elem = O::Out;
    type Held = (&'k O, Side<A>, Side<B>);
    type Pairs = (&'k O, A::Pairs, B::Pairs);
    const TOTAL: bool = O::TOTAL && A::TOTAL && B::TOTAL;
    const PARALLEL: bool = O::PARALLEL && A::PARALLEL && B::PARALLEL;
    const VARIES: bool = A::VARIES || B::VARIES || !O::PARALLEL;
    const STEADY: bool = O::STEADY && A::STEADY && B::STEADY;
    const MONOTONE: bool = O::MONOTONE && A::STEADY && B::STEADY;
    const GATHERS: bool = A::GATHERS || B::GATHERS;
    const LONG: bool = O::LONG || A::LONG || B::LONG;
    const HAS_LEFT: bool = A::VARIES || B::HAS_LEFT;
    const PAIRS: bool = A::PAIRS && B::PAIRS;
    const HAS_RIGHT: bool = A::HAS_RIGHT || B::VARIES;

    #[inline(always)]
    fn fetch<I: Isa>(&mut self, tile: &Tile<'_>) {
        self.a.fetch::<I>(tile);
        self.b.fetch::<I>(tile);
    }

    #[inline(always)]
    fn source(&self, at: &[usize]) -> Option<*const O::Out> {
        self.a.source(at).and_then(as_large).or_else(|| self.b.source(at).and_then(as_large))
    }

    #[inline(always)]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.a.load::<I>(tile, faults);
        self.b.load::<I>(tile, faults);
    }

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, x: usize) -> O::Out {
        // SAFETY: the caller's promise.
        self.op.apply::<I>(unsafe { self.a.get::<I>(x) }, unsafe { self.b.get::<I>(x) })
    }

    #[inline(always)]
    fn is_beside<const LEFT: bool>(&self) -> bool {
        if LEFT {
            self.a.is_uniform() && self.b.is_beside::<LEFT>()
        } else {
            self.a.is_beside::<LEFT>() && self.b.is_uniform()
        }
    }

    #[inline(always)]
    fn load_beside<I: Isa, const LEFT: bool>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        let one = Tile { len: tile.len.min(1), ..*tile };
        if LEFT {
            self.a.load::<I>(&one, faults);
            self.b.load_beside::<I, LEFT>(tile, faults);
        } else {
            self.a.load_beside::<I, LEFT>(tile, faults);
            self.b.load::<I>(&one, faults);
        }
    }

    #[inline(always)]
    fn hold<I: Isa, const LEFT: bool>(&self) -> Self::Held {
        // SAFETY: a tile has one element at least.
        let (a, b) = unsafe {
            if LEFT {
                (Side::Same(self.a.get::<I>(0)), Side::Held(self.b.hold::<I, LEFT>()))
            } else {
                (Side::Held(self.a.hold::<I, LEFT>()), Side::Same(self.b.get::<I>(0)))
            }
        };
        (self.op, a, b)
    }

    #[inline(always)]
    unsafe fn get_beside<I: Isa, const LEFT: bool>((op, a, b): &Self::Held, x: usize) -> O::Out {
        // SAFETY: the caller's promise.
        unsafe { op.apply::<I>(a.get::<I, LEFT>(x), b.get::<I, LEFT>(x)) }
    }

    #[inline(always)]
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

    #[inline(always)]
    unsafe fn same<I: Isa>((op, a, b): &Self::Pairs, row: usize, step: usize) -> O::Out {
        // SAFETY: the caller's promise.
        unsafe { op.apply::<I>(A::same::<I>(a, row, step), B::same::<I>(b, row, step)) }
    }

    #[inline(always)]
    unsafe fn hold_pair<I: Isa, const LEFT: bool>(
        (op, a, b): &Self::Pairs,
        row: usize,
        step: usize,
    ) -> Self::Held {
        // SAFETY: the caller's promise.
        let (a, b) = unsafe {
            if LEFT {
                (Side::Same(A::same::<I>(a, row, step)), Side::Held(B::hold_pair::<I, LEFT>(b, row, step)))
            } else {
                (Side::Held(A::hold_pair::<I, LEFT>(a, row, step)), Side::Same(B::same::<I>(b, row, step)))
            }
        };
        (op, a, b)
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

/// The place of an operand's elements as that of results, if these are as large.
#[inline(always)]
fn as_large<T, Out>(source: *const T) -> Option<*const Out> {
    (size_of::<T>() == size_of::<Out>()).then_some(source.cast())
}

/// An operand beside another: what is the same along a tile, or what its elements are read by.
pub enum Side<K: Kernel> {
    /// One element.
    Same(K::Elem),
    /// A tile.
    Held(K::Held),
}

impl<K: Kernel> Side<K> {
    /// # Safety
    ///
    /// As for [`Kernel::get_beside`].
    #[inline(always)]
    unsafe fn get<I: Isa, const LEFT: bool>(&self, x: usize) -> K::Elem {
        match self {
            Side::Same(value) => *value,
            // SAFETY: the caller's promise.
            Side::Held(held) => unsafe { K::get_beside::<I, LEFT>(held, x) },
        }
    }
}
