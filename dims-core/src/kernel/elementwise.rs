//! Elementwise loops: the kernels of operations, and the drivers that write their results.

use super::gather::Indices;
use super::isa::{Isa, Task, dispatch};
use super::threads::{self, Carried};
use super::{Faults, Kernel, TILE, Tile, change};
use crate::error::DimError;
use crate::ops::{BinaryOp, Operation, UnaryOp};
use crate::plan::explain::{Loops, Step, record};
use crate::plan::nest::{Nest, Odometer, Operands, Parts, Row};
use crate::scalar::Element;
use crate::storage::elements::{Elements, ElementsMut, Places};
use crate::storage::memory::reserve;
use crate::storage::owned::Freed;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// The same value everywhere.
pub struct Constant<T>(pub T);

impl<T: Copy> Kernel for Constant<T> {
    type Elem = T;
    const VARIES: bool = false;
    const STEADY: bool = true;
    type Held = T;

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
}

impl Kernel for Counter<'_> {
    type Elem = isize;
    const STEADY: bool = true;
    type Held = (isize, isize);

    #[inline(always)]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, _: &mut Faults) {
        let steps = tile.at.iter().zip(self.row.strides).map(|(&at, &step)| at as isize * step);
        self.start = self.row.offset + steps.sum::<isize>();
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
    pub(crate) op: &'k O,
    pub(crate) a: A,
}

impl<'k, A: Kernel, O: UnaryOp<A::Elem>> Kernel for UnaryKernel<'k, O, A> {
    type Elem = O::Out;
    type Held = (&'k O, A::Held);
    const TOTAL: bool = O::TOTAL && A::TOTAL;
    const PARALLEL: bool = O::PARALLEL && A::PARALLEL;
    const VARIES: bool = A::VARIES || !O::PARALLEL;
    const GATHERS: bool = A::GATHERS;
    const LONG: bool = O::LONG || A::LONG;
    const HAS_LEFT: bool = A::HAS_LEFT;
    const HAS_RIGHT: bool = A::HAS_RIGHT;

    #[inline(always)]
    fn fetch<I: Isa>(&mut self, tile: &Tile<'_>) {
        self.a.fetch::<I>(tile);
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

impl<'k, A: Kernel, B: Kernel, O: BinaryOp<A::Elem, B::Elem>> Kernel for BinaryKernel<'k, O, A, B> {
    type Elem = O::Out;
    type Held = (&'k O, Side<A>, Side<B>);
    const TOTAL: bool = O::TOTAL && A::TOTAL && B::TOTAL;
    const PARALLEL: bool = O::PARALLEL && A::PARALLEL && B::PARALLEL;
    const VARIES: bool = A::VARIES || B::VARIES || !O::PARALLEL;
    const MONOTONE: bool = O::MONOTONE && A::STEADY && B::STEADY;
    const GATHERS: bool = A::GATHERS || B::GATHERS;
    const LONG: bool = O::LONG || A::LONG || B::LONG;
    const HAS_LEFT: bool = A::VARIES || B::HAS_LEFT;
    const HAS_RIGHT: bool = A::HAS_RIGHT || B::VARIES;

    #[inline(always)]
    fn fetch<I: Isa>(&mut self, tile: &Tile<'_>) {
        self.a.fetch::<I>(tile);
        self.b.fetch::<I>(tile);
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
    fn is_uniform(&self) -> bool {
        self.a.is_uniform() && self.b.is_uniform()
    }

    #[inline(always)]
    fn can_fault(&self) -> bool {
        self.a.can_fault() || self.b.can_fault()
    }
}

/// An operand beside another: what is the same along a tile, or what its elements are read by.
pub enum Side<K: Kernel> {
    Same(K::Elem),
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

/// One of two operands, as a condition says. What is not taken is not read.
pub struct SelectKernel<C, A, B> {
    cond: C,
    a: A,
    b: B,
    /// What a monotone condition is at first along a tile, and before which element.
    first: bool,
    until: i32,
}

impl<C: Kernel<Elem = bool>, A, B> SelectKernel<C, A, B> {
    /// `a` where `cond` holds, else `b`.
    pub(crate) fn new(cond: C, a: A, b: B) -> Self {
        SelectKernel { cond, a, b, first: false, until: 0 }
    }
}

impl<C: Kernel<Elem = bool>, A: Kernel, B: Kernel<Elem = A::Elem>> Kernel for SelectKernel<C, A, B> {
    type Elem = A::Elem;
    type Held = ();
    const TOTAL: bool = C::TOTAL && A::TOTAL && B::TOTAL;
    const PARALLEL: bool = C::PARALLEL && A::PARALLEL && B::PARALLEL;
    const LONG: bool = C::LONG || A::LONG || B::LONG;

    #[inline(always)]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.cond.load::<I>(tile, faults);
        if C::MONOTONE {
            let (first, until) = change::<I, C>(&self.cond, tile.len);
            (self.first, self.until) = (first, until as i32);
        }
        if !self.a.can_fault() && !self.b.can_fault() {
            self.a.load::<I>(tile, faults);
            self.b.load::<I>(tile, faults);
            return;
        }
        let mut mask = [false; TILE];
        let wanted = |x: usize| tile.mask.is_none_or(|mask| mask[x]);
        for (x, taken) in mask[..tile.len].iter_mut().enumerate() {
            // SAFETY: `x` is less than the tile's length, and wanted.
            *taken = wanted(x) && unsafe { self.cond.get::<I>(x) };
        }
        self.a.load::<I>(&Tile { mask: Some(&mask[..tile.len]), ..*tile }, faults);
        for (x, taken) in mask[..tile.len].iter_mut().enumerate() {
            *taken = wanted(x) && !*taken;
        }
        self.b.load::<I>(&Tile { mask: Some(&mask[..tile.len]), ..*tile }, faults);
    }

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, x: usize) -> A::Elem {
        // SAFETY: the caller's promise; each side was loaded where the condition takes it, and has some value elsewhere.
        unsafe {
            // (Positions in a tile compare in lanes as narrow as the elements, positions along dims in wide ones.)
            let cond =
                if C::MONOTONE { ((x as i32) < self.until) == self.first } else { self.cond.get::<I>(x) };
            if A::TOTAL && B::TOTAL {
                // Without a branch the loop can be vectorised.
                let (a, b) = (self.a.get::<I>(x), self.b.get::<I>(x));
                if cond { a } else { b }
            } else if cond {
                self.a.get::<I>(x)
            } else {
                self.b.get::<I>(x)
            }
        }
    }

    #[inline(always)]
    fn hold<I: Isa, const LEFT: bool>(&self) {}

    #[inline(always)]
    unsafe fn get_beside<I: Isa, const LEFT: bool>(_: &(), _: usize) -> A::Elem {
        unreachable!("a choice has operands on both sides")
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
pub fn collect<K: Kernel>(kernel: K, nest: &Nest, len: usize) -> Result<Vec<K::Elem>, DimError> {
    let mut out = reserve(len)?;
    dispatch(Fill { kernel, nest, out: &mut out.spare_capacity_mut()[..len] })?;
    // SAFETY: `Fill` wrote as many elements as the nest has positions, which are `len`, or returned an error.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// As [`collect`], into memory that is there already.
pub fn fill<K: Kernel>(kernel: K, nest: &Nest, out: Places<'_, K::Elem>) -> Result<(), DimError> {
    // SAFETY: the task writes elements alone.
    dispatch(Fill { kernel, nest, out: unsafe { out.into_inner() } })
}

/// As [`collect`], for the parts of a loop nest one after the other, each with a kernel of its own, on several threads.
pub fn collect_parts<'n, K: Kernel<Elem: Send>>(
    parts: impl IntoIterator<Item = (K, &'n Nest)>,
    len: usize,
) -> Result<Vec<K::Elem>, DimError> {
    let mut out = reserve(len)?;
    let mut rest = &mut out.spare_capacity_mut()[..len];
    let mut work = Vec::new();
    for (kernel, nest) in parts {
        let (own, others) = rest.split_at_mut(nest.positions());
        rest = others;
        // SAFETY: kernels read elements, which are `Sync`; operations are plain values wherever `PARALLEL` lets
        // there be several parts; the places are each part's own.
        work.push(unsafe { Carried::new(Fill { kernel, nest, out: own }) });
    }
    threads::each(work, |fill| dispatch(fill.into_inner())).into_iter().collect::<Result<(), _>>()?;
    // SAFETY: each `Fill` wrote as many elements as its nest has positions, all together `len`, or returned an error.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// As [`collect_parts`], into the `len` places of elements that the kernels read, each at the position at which it is written, and that are no
/// longer needed. Returns the elements if there is no such place.
pub fn replace<'n, K: Kernel<Elem: Send>>(
    parts: impl Iterator<Item = (K, &'n Nest)>,
    freed: Option<&Freed<K::Elem>>,
    len: usize,
) -> Result<Vec<K::Elem>, DimError> {
    let mut new = if freed.is_some() { Vec::new() } else { reserve(len)? };
    let place = freed.map_or(new.as_mut_ptr(), |freed| freed.places(len));
    // SAFETY: there are `len` places, of the expression's own elements in the order of the loops, each read at its own position alone, or
    // new memory.
    unsafe { replace_at(parts, place, len)? };
    if freed.is_none() {
        // SAFETY: all places were written.
        unsafe { new.set_len(len) };
    }
    Ok(new)
}

/// # Safety
///
/// The places are valid for writes, and nothing else accesses them, but for kernels that read each of them at the position at which it is
/// written.
#[inline(always)]
unsafe fn replace_at<'n, K: Kernel<Elem: Send>>(
    parts: impl Iterator<Item = (K, &'n Nest)>,
    place: *mut K::Elem,
    len: usize,
) -> Result<(), DimError> {
    let mut work = SmallVec::<[_; 1]>::new();
    let mut done = 0;
    for (kernel, nest) in parts {
        let len = nest.positions();
        work.push(Replace { kernel, nest, place: place.wrapping_add(done), len });
        done += len;
    }
    assert_eq!(done, len, "the loop nests cover the result");
    if work.len() == 1 {
        return work.into_iter().try_for_each(dispatch);
    }
    // SAFETY: kernels read elements, which are `Sync`; operations are plain values wherever `PARALLEL` lets there be
    // several parts; the places are each part's own.
    let work = work.into_iter().map(|part| unsafe { Carried::new(part) }).collect();
    threads::each(work, |part| dispatch(part.into_inner())).into_iter().collect()
}

/// As [`Fill`], for places that the kernel may read from, each for its own element: what is computed is held back, and written in one go.
struct Replace<'n, K: Kernel> {
    kernel: K,
    nest: &'n Nest,
    place: *mut K::Elem,
    len: usize,
}

impl<K: Kernel> Task for Replace<'_, K> {
    type Out = Result<(), DimError>;
    const WIDE: bool = K::LONG;

    #[inline(always)]
    fn run<I: Isa>(self) -> Result<(), DimError> {
        let Replace { mut kernel, nest, place, len } = self;
        let mut faults = Faults::default();
        let mut buffer = [const { MaybeUninit::<K::Elem>::uninit() }; TILE];
        // What is written, and how many elements behind that are held back.
        let (mut done, mut held) = (0, 0);
        let write = |buffer: &[MaybeUninit<K::Elem>], done: usize| {
            // SAFETY: the caller of `replace` gave us the places, of which there are as many as the nest has positions; the kernel, which
            // may read them, does not while they are written.
            unsafe {
                core::ptr::copy_nonoverlapping(buffer.as_ptr().cast(), place.add(done), buffer.len());
            }
        };
        let mut tiles = Tiles::new(nest);
        while let Some(tile) = tiles.tile() {
            kernel.load::<I>(&tile, &mut faults);
            if faults.any() {
                return faults.into_result();
            }
            if held + tile.len > TILE {
                write(&buffer[..held], done);
                done += held;
                held = 0;
            }
            fill_tile::<I, K>(&kernel, &mut buffer[held..held + tile.len]);
            held += tile.len;
            tiles.advance();
        }
        write(&buffer[..held], done);
        assert_eq!(done + held, len, "the loop nest covers the result");
        Ok(())
    }
}

/// As [`collect`], for elements that lie in memory already, the nest's only operand: a copy.
#[inline]
pub fn collect_memory<T: Element>(
    elements: Elements<'_, T>,
    nest: &Nest,
    len: usize,
    reason: &'static str,
) -> Result<Vec<T>, DimError> {
    let mut out = reserve(len)?;
    let mut rest = &mut out.spare_capacity_mut()[..len];
    let threads = threads::parts(len);
    record(|| Step::Copy { reason, loops: Loops::new::<T>(nest, len, threads) });
    if threads <= 1 {
        super::copy::copy(elements, nest, rest);
    } else {
        let parts = nest.split(0, threads);
        let mut work = Vec::with_capacity(parts.len());
        for nest in &parts {
            let (own, others) = rest.split_at_mut(nest.positions());
            rest = others;
            work.push((nest, own));
        }
        threads::each(work, |(nest, out)| super::copy::copy(elements, nest, out));
    }
    // SAFETY: `copy` wrote all places of each part, all together `len`.
    unsafe { out.set_len(len) };
    Ok(out)
}

struct Fill<'n, K: Kernel> {
    kernel: K,
    nest: &'n Nest,
    out: &'n mut [MaybeUninit<K::Elem>],
}

impl<K: Kernel> Task for Fill<'_, K> {
    type Out = Result<(), DimError>;
    const WIDE: bool = K::LONG;

    #[inline(always)]
    fn run<I: Isa>(self) -> Result<(), DimError> {
        if K::HAS_RIGHT && self.kernel.is_beside::<false>() {
            return self.beside::<I, false>();
        }
        if K::HAS_LEFT && self.kernel.is_beside::<true>() {
            return self.beside::<I, true>();
        }
        let Fill { mut kernel, nest, out } = self;
        let mut faults = Faults::default();
        let mut done = 0;
        let mut tiles = Tiles::new(nest);
        while let Some(tile) = tiles.tile() {
            kernel.load::<I>(&tile, &mut faults);
            // After a fault nothing is computed: what stands in for the element could, for one, be divided by.
            if !faults.any() {
                fill_tile::<I, K>(&kernel, &mut out[done..done + tile.len]);
            }
            done += tile.len;
            tiles.advance();
        }
        assert_eq!(done, out.len(), "the loop nest covers the result");
        faults.into_result()
    }
}

impl<K: Kernel> Fill<'_, K> {
    /// As `run`, where operands on one side [are the same](Kernel::is_beside) along the innermost loop.
    #[inline(always)]
    fn beside<I: Isa, const LEFT: bool>(self) -> Result<(), DimError> {
        let Fill { mut kernel, nest, out } = self;
        let mut faults = Faults::default();
        let mut done = 0;
        let mut tiles = Tiles::new(nest);
        while let Some(tile) = tiles.tile() {
            kernel.load_beside::<I, LEFT>(&tile, &mut faults);
            if !faults.any() {
                let held = kernel.hold::<I, LEFT>();
                for (x, out) in out[done..done + tile.len].iter_mut().enumerate() {
                    // SAFETY: a tile of this length was just loaded, without a mask.
                    out.write(unsafe { K::get_beside::<I, LEFT>(&held, x) });
                }
            }
            done += tile.len;
            tiles.advance();
        }
        assert_eq!(done, out.len(), "the loop nest covers the result");
        faults.into_result()
    }
}

#[inline(always)]
pub(super) fn fill_tile<I: Isa, K: Kernel>(kernel: &K, out: &mut [MaybeUninit<K::Elem>]) {
    for (x, out) in out.iter_mut().enumerate() {
        // SAFETY: a tile of this length was just loaded, without a mask.
        out.write(unsafe { kernel.get::<I>(x) });
    }
}

#[inline(always)]
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

/// Walks through a loop nest, tile by tile. (No closure is called with the tiles: its body would be compiled for the
/// instructions of the baseline wherever it is not inlined.)
pub(super) struct Tiles<'n> {
    odometer: Odometer<'n>,
    at: SmallVec<[usize; 8]>,
    inner: usize,
    len: usize,
    moved: Option<(usize, usize)>,
}

impl<'n> Tiles<'n> {
    /// Before the first tile.
    #[inline(always)]
    pub(super) fn new(nest: &'n Nest) -> Self {
        let (&inner, outer) = nest.sizes.split_last().expect("a nest has a loop");
        let at = SmallVec::from_elem(0, nest.sizes.len());
        Tiles { odometer: Odometer::new(outer), at, inner, len: TILE.min(inner), moved: None }
    }

    /// The tile at hand, if there is one.
    #[inline(always)]
    pub(super) fn tile(&self) -> Option<Tile<'_>> {
        let done = self.odometer.is_done() || self.len == 0;
        (!done).then_some(Tile { at: &self.at, len: self.len, mask: None, moved: self.moved })
    }

    /// Goes on to the next tile.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        let (start, outer) = self.at.split_last_mut().expect("a nest has a loop");
        *start += self.len;
        self.moved = Some((outer.len(), self.len));
        if *start == self.inner {
            *start = 0;
            let moved = self.odometer.advance(outer).map(|at| (at, 1));
            self.moved = if self.len == self.inner { moved } else { None };
        }
        self.len = TILE.min(self.inner - *start);
    }
}

/// Where results go that are not a new vector: strided memory, perhaps at computed places.
struct Target<'n, T, X> {
    base: *mut T,
    strides: &'n [isize],
    indices: X,
}

/// What [`update`] runs over a nest: the row and the indices of the place, and the kernel of the values.
pub struct Lowered<'n, X, K> {
    /// The place along the loops.
    pub row: Row<'n>,
    /// The computed indices of the place.
    pub indices: X,
    /// What is put there.
    pub value: K,
}

impl<'n, X: Indices, K> Lowered<'n, X, K> {
    /// The kernel and the target, where the place is this.
    ///
    /// # Safety
    ///
    /// Nothing else accesses the elements while the target is written to.
    #[inline(always)]
    unsafe fn onto<T>(self, place: &mut ElementsMut<'_, T>) -> (K, Target<'n, T, X>) {
        let Lowered { row, indices, value } = self;
        if !(X::ANY && indices.is_active()) {
            place.assert_row(&row);
        }
        let base = place.as_mut_ptr().wrapping_offset(row.offset);
        (value, Target { base, strides: row.strides, indices })
    }
}

/// Puts `op(old, new)` for each element of the nest into its place, one after the other in the nest's order.
///
/// `lower` makes the kernel for a nest, or for a part of one: where no place can be met in two parts, there
/// are as many as the work is worth threads. A place that is met several times accumulates; after a fault nothing more is written.
pub fn update<'n, T, K, X, O>(
    nest: &'n Nest,
    parts: &'n mut Parts,
    mut place: ElementsMut<'_, T>,
    lower: impl Fn(&'n Nest) -> Lowered<'n, X, K>,
    op: O,
) -> Result<(), DimError>
where
    T: Element,
    K: Kernel,
    X: Indices,
    O: BinaryOp<T, K::Elem, Out = T> + Copy,
{
    // SAFETY: the plan's row reaches the elements that the place's axes do, which are borrowed exclusively; active indices are checked.
    let (kernel, target) = unsafe { lower(nest).onto(&mut place) };
    let threads = threads::parts(nest.positions());
    let scatters = X::ANY && target.indices.is_active();
    if threads <= 1 || !K::PARALLEL || !O::PARALLEL || scatters || !is_apart(&nest.sizes, target.strides) {
        return dispatch(Update { kernel, nest, target, op });
    }
    *parts = nest.split(0, threads);
    let mut work = Vec::with_capacity(parts.len());
    for nest in &*parts {
        // SAFETY: as above; the first target is not used.
        let (kernel, target) = unsafe { lower(nest).onto(&mut place) };
        // SAFETY: kernels read elements, which are `Sync`; operations are plain values, as `PARALLEL` says; the places of
        // different parts are different, and the target has exclusive access to all of them.
        work.push(unsafe { Carried::new(Update { kernel, nest, target, op }) });
    }
    threads::each(work, |update| dispatch(update.into_inner())).into_iter().collect()
}

/// Whether the places at different positions of the outermost loop differ, whatever the positions of the others.
fn is_apart(sizes: &[usize], strides: &[isize]) -> bool {
    let reach =
        |(&size, &stride): (&usize, &isize)| stride.unsigned_abs().saturating_mul(size.saturating_sub(1));
    let others = sizes.iter().zip(strides).skip(1).map(reach).fold(0, usize::saturating_add);
    strides[0].unsigned_abs() > others
}

struct Update<'n, T, K, X, O> {
    kernel: K,
    nest: &'n Nest,
    target: Target<'n, T, X>,
    op: O,
}

impl<T: Element, K: Kernel, X: Indices, O: BinaryOp<T, K::Elem, Out = T>> Task for Update<'_, T, K, X, O> {
    type Out = Result<(), DimError>;
    const WIDE: bool = K::LONG;

    #[inline(always)]
    fn run<I: Isa>(self) -> Result<(), DimError> {
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
                // SAFETY: the tile's places are neighbours, each a valid element that nothing else has access to, by the
                // contract of `onto`.
                let places = unsafe { core::slice::from_raw_parts_mut(start, tile.len) };
                update_tile::<I, T, K, O>(&kernel, places, &op);
            } else {
                for x in 0..tile.len {
                    // SAFETY: a tile of this length was loaded by both, without a mask.
                    let (offset, value) =
                        unsafe { (target.indices.offset::<I>(x, &mut faults), kernel.get::<I>(x)) };
                    let Some(offset) = offset else {
                        return faults.into_result();
                    };
                    let place = start.wrapping_offset(offset + x as isize * stride);
                    // SAFETY: the place is a valid element that nothing else has access to, by the contract of `onto`.
                    unsafe { *place = op.apply::<I>(*place, value) };
                }
            }
            tiles.advance();
        }
        faults.into_result()
    }
}

/// Writes the elements of a nest, the first of whose operands is the place: the one at a position of the loops goes `offset` places behind
/// the first, and as far as the row of the place says.
///
/// # Panics
///
/// If there is no such place.
pub fn write<'n, T: Element, K: Kernel<Elem = T>>(
    nest: &'n Nest,
    parts: &'n mut Parts,
    places: Places<'_, T>,
    offset: usize,
    lower: impl Fn(&mut Operands<'n>) -> K,
) -> Result<(), DimError> {
    let row = nest.operands().next_row();
    let start = places.reached(offset, &nest.sizes, row.strides).cast::<New<T>>();
    // SAFETY: every position of the loops is a place, as was asserted, which is borrowed exclusively; `New` is another name for what it
    // holds.
    let place = unsafe { ElementsMut::along(start, &nest.sizes, row.strides) };
    let lower = |nest| {
        let mut operands = Nest::operands(nest);
        Lowered { row: operands.next_row(), indices: (), value: lower(&mut operands) }
    };
    update(nest, parts, place, lower, Write)
}

/// A place that may have no value yet.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct New<T: Copy>(MaybeUninit<T>);

impl<T: Copy> Default for New<T> {
    fn default() -> Self {
        New(MaybeUninit::uninit())
    }
}

/// A value where there was none: what is written into new memory.
#[derive(Clone, Copy)]
struct Write;

impl Operation for Write {}

impl<T: Element> BinaryOp<New<T>, T> for Write {
    type Out = New<T>;
    const NAME: &'static str = "write";
    #[inline(always)]
    fn apply<I: Isa>(&self, _: New<T>, new: T) -> New<T> {
        New(MaybeUninit::new(new))
    }
}
