//! Selection between two operands by a condition.

use crate::load::prefetch::{PrefetchStream, TilePrefetch};
use crate::load::tiles::fill_tile_with_prefetch;
use crate::load::{Faults, Kernel, TILE, Tile, change, write_tiles};
use crate::machine::isa::Isa;
use core::mem::MaybeUninit;

/// Selects one of two operands by a condition. Elements that are not taken are not read if
/// reading could fail.
pub struct SelectKernel<C, A, B> {
    cond: C,
    a: A,
    b: B,
    /// The position where a monotone condition changes along a tile.
    until: i32,
    /// 0 if the condition holds before that position, -1 if it holds from there on.
    flip: i32,
    /// The position of the last change that was found, where the search for the next change starts.
    guess: usize,
}

impl<C: Kernel<Elem = bool>, A, B> SelectKernel<C, A, B> {
    /// `a` where `cond` is true, otherwise `b`.
    pub fn new(cond: C, a: A, b: B) -> Self {
        SelectKernel { cond, a, b, until: 0, flip: 0, guess: 0 }
    }
}

// SAFETY: elements are the operands', the kernel returns no pointers, and it may run on several
// threads if the condition and both operands may.
unsafe impl<C: Kernel<Elem = bool>, A: Kernel, B: Kernel<Elem = A::Elem>> Kernel for SelectKernel<C, A, B> {
    type Elem = A::Elem;
    type TileReader = ();
    type Pairs = ();
    const TOTAL: bool = C::TOTAL && A::TOTAL && B::TOTAL;
    const PARALLEL: bool = C::PARALLEL && A::PARALLEL && B::PARALLEL;
    const LONG: bool = C::LONG || A::LONG || B::LONG;
    const IN_PARTS: bool = C::MONOTONE;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.cond.load::<I>(tile, faults);
        if C::MONOTONE {
            // SAFETY: the tile was just loaded, and is not empty.
            let (first, until) = unsafe { change::<I, C>(&self.cond, tile.len, &mut self.guess) };
            (self.until, self.flip) = (until as i32, if first { 0 } else { -1 });
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

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get<I: Isa>(&self, x: usize) -> A::Elem {
        // SAFETY: the caller's promise. Each operand was loaded where the condition takes it, and
        // has an unspecified value elsewhere.
        unsafe {
            // A monotone condition is computed from the position in the tile, an `i32`: a vector
            // holds more of these than of positions along dims, which are `isize`. The condition is
            // the sign, the only bit that vector blends need.
            let cond = if C::MONOTONE {
                (x as i32).wrapping_sub(self.until) ^ self.flip < 0
            } else {
                self.cond.get::<I>(x)
            };
            if A::TOTAL && B::TOTAL {
                // Without a branch the loop can be vectorized.
                let (a, b) = (self.a.get::<I>(x), self.b.get::<I>(x));
                if cond { a } else { b }
            } else if cond {
                self.a.get::<I>(x)
            } else {
                self.b.get::<I>(x)
            }
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn write_line<I: Isa>(
        &mut self,
        at: &mut [usize],
        out: &mut [MaybeUninit<A::Elem>],
        faults: &mut Faults,
    ) {
        if !C::MONOTONE {
            return write_tiles::<I, Self>(self, at, out, faults);
        }
        if out.is_empty() {
            return;
        }
        self.cond.load::<I>(&Tile { at, len: 1, mask: None, moved: None }, faults);
        // SAFETY: a tile was just loaded, and the line is not empty.
        let (first, until) = unsafe { change::<I, C>(&self.cond, out.len(), &mut self.guess) };
        if first {
            write_parts::<I, A, B>((&mut self.a, &mut self.b), until, at, out, faults);
        } else {
            write_parts::<I, B, A>((&mut self.b, &mut self.a), until, at, out, faults);
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn tile_reader<I: Isa, const LEFT: bool>(&self) {}

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get_broadcast<I: Isa, const LEFT: bool>(_: &(), _: usize) -> A::Elem {
        unreachable!("a select has no broadcast operands")
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_uniform(&self) -> bool {
        self.cond.is_uniform() && self.a.is_uniform() && self.b.is_uniform()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn can_fault(&self) -> bool {
        self.cond.can_fault() || self.a.can_fault() || self.b.can_fault()
    }
}

/// Writes a line whose first `until` elements come from one kernel, and the others from another.
/// Hardware prefetchers follow streams, and a stream ends with each part. So the second part is
/// prefetched while the first is written, and the first part of the next line while the second is
/// written.
#[cfg_attr(not(unoptimized), inline(always))]
fn write_parts<I: Isa, K: Kernel, L: Kernel<Elem = K::Elem>>(
    (first, second): (&mut K, &mut L),
    until: usize,
    at: &mut [usize],
    out: &mut [MaybeUninit<K::Elem>],
    faults: &mut Faults,
) {
    let (before, behind) = out.split_at_mut(until);
    let last = at.len() - 1;
    let start = at[last];
    let own = PrefetchStream::of(first, at).take(until);
    at[last] = start + until;
    let next = PrefetchStream::of(second, at).take(behind.len());
    at[last] = start;
    write_part::<I, K>(first, at, before, [own, next], faults);
    let mut line = PrefetchStream::NOTHING;
    if last > 0 {
        at[last - 1] += 1;
        line = PrefetchStream::of(first, at).take(until);
        at[last - 1] -= 1;
    }
    at[last] = start + until;
    write_part::<I, L>(second, at, behind, [next, line], faults);
    at[last] = start;
}

/// The maximum number of elements of the next part that are prefetched: more could be evicted
/// before they are read.
const MOST_PREFETCHED: usize = 8 * TILE;

/// Writes elements from `at` on, and prefetches later elements of `own` and elements of `next`.
#[cfg_attr(not(unoptimized), inline(always))]
fn write_part<I: Isa, K: Kernel>(
    kernel: &mut K,
    at: &mut [usize],
    places: &mut [MaybeUninit<K::Elem>],
    [own, next]: [PrefetchStream<K::Elem>; 2],
    faults: &mut Faults,
) {
    if places.is_empty() {
        return;
    }
    if K::LONG || K::IN_PARTS {
        // Such kernels do not wait for memory, or do their own prefetching.
        return kernel.write_line::<I>(at, places, faults);
    }
    let next = next.take(MOST_PREFETCHED);
    let last = at.len() - 1;
    let start = at[last];
    let (mut done, mut moved) = (0, None);
    for places in places.chunks_mut(TILE) {
        kernel.load::<I>(&Tile { at, len: places.len(), mask: None, moved }, faults);
        if faults.any() {
            break;
        }
        let output = PrefetchStream::from(places.as_ptr().cast());
        let prefetch = TilePrefetch { output, input: own.skip(done), next: next.skip(done) };
        // SAFETY: the tile was just loaded, without a mask and without a fault.
        unsafe { fill_tile_with_prefetch::<I, K>(kernel, places, prefetch) };
        at[last] += places.len();
        done += places.len();
        moved = Some((last, places.len()));
    }
    at[last] = start;
}
