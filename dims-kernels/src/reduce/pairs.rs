//! Reductions of all pairs of rows, such as the distances between points: some operands are
//! constant along one loop of the result, and the others along another loop.
//!
//! Such reductions are computed like a matrix product. The accumulators of a block of results stay
//! in registers for up to [`BLOCK`] steps. Each element that is read is used for all rows or all
//! columns of the block.

use crate::load::Kernel;
use crate::loops::nest::{Nest, Odometer};
use crate::machine::isa::{Isa, Task};
use crate::reduce::levels::Levels;
use crate::reduce::{BLOCK, Reducer};
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// The number of rows of a block.
const ROWS: usize = 4;

/// The number of columns of a block whose accumulators have at most four bytes. Those of four bytes
/// fill a quarter of the registers of AVX-512. Blocks of larger accumulators have half as many
/// columns.
const COLUMNS: usize = 32;

/// The size in bytes of the largest accumulators that are supported. Larger ones, such as a maximum
/// with its index, would not be computed as vectors.
const LONGEST: usize = 8;

/// Whether these types allow nests that [pair](are_pairs) rows.
pub const fn can_pair<K: Kernel, R: Reducer<K::Elem>>() -> bool {
    K::PAIRS && K::PARALLEL && size_of::<R::Acc>() <= LONGEST
}

/// Whether a nest pairs the rows of some operands with those of others. The innermost loop runs
/// over the columns of the result, and the loop just outside the reduced loops over the rows. Both
/// loops are long enough for a block. Operands on one side of each operation (the left side if
/// `LEFT`) are constant along the loop of columns. Those on the other side are constant along the
/// loop of rows, and contiguous along the columns.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn are_pairs<K: Kernel, R: Reducer<K::Elem>, const LEFT: bool>(kernel: &K, nest: &Nest) -> bool {
    let last = nest.depth() - 1;
    if !can_pair::<K, R>()
        || !nest.inner_kept
        || !(1..last).contains(&nest.outer)
        || nest.sizes[last] < COLUMNS
        || nest.sizes[nest.outer - 1] < ROWS
        || nest.sizes.contains(&0)
    {
        return false;
    }
    let origin: SmallVec<[usize; 8]> = SmallVec::from_elem(0, last + 1);
    kernel.pairs::<LEFT>(&origin, nest.outer - 1, last - 1, true).is_some()
}

/// A reduction of [pairs](are_pairs).
pub struct PairReduction<'n, K: Kernel, R: Reducer<K::Elem>, const LEFT: bool> {
    kernel: K,
    nest: &'n Nest,
    count: usize,
    reducer: R,
    out: &'n mut [MaybeUninit<R::Out>],
}

impl<'n, K: Kernel, R: Reducer<K::Elem>, const LEFT: bool> PairReduction<'n, K, R, LEFT> {
    /// A reduction of `count` elements for each slot of `out`.
    pub fn new(
        kernel: K,
        nest: &'n Nest,
        count: usize,
        reducer: R,
        out: &'n mut [MaybeUninit<R::Out>],
    ) -> Self {
        assert_eq!(nest.results(), out.len(), "the kept loops cover the result");
        PairReduction { kernel, nest, count, reducer, out }
    }
}

impl<K: Kernel, R: Reducer<K::Elem>, const LEFT: bool> Task for PairReduction<'_, K, R, LEFT> {
    type Out = ();
    const WIDE: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        if size_of::<R::Acc>() <= LONGEST / 2 {
            self.in_blocks::<I, COLUMNS>();
        } else {
            self.in_blocks::<I, { COLUMNS / 2 }>();
        }
    }
}

impl<K: Kernel, R: Reducer<K::Elem>, const LEFT: bool> PairReduction<'_, K, R, LEFT> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn in_blocks<I: Isa, const N: usize>(self) {
        let PairReduction { kernel, nest, count, reducer, out } = self;
        let (last, row) = (nest.depth() - 1, nest.outer - 1);
        let (rows, columns) = (nest.sizes[row], nest.sizes[last]);
        let (down, across) = (nest.result[row] as usize, nest.result[last] as usize);
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, last + 1);
        let at = &mut at[..];
        let mut outer = Odometer::new(&nest.sizes[..row]);
        while !outer.is_done() {
            let place: isize =
                at[..row].iter().zip(nest.result.iter()).map(|(&at, &step)| at as isize * step).sum();
            let out = &mut out[place as usize..];
            // A remainder at the end is not a separate block: the last block overlaps the one
            // before.
            for column in (0..columns).step_by(N).map(|column| column.min(columns - N)) {
                for first in (0..rows).step_by(ROWS).map(|first| first.min(rows - ROWS)) {
                    (at[row], at[last]) = (first, column);
                    let block = block::<I, K, R, LEFT, N>(&kernel, nest, at, reducer);
                    for (number, accs) in block.iter().enumerate() {
                        let out = &mut out[(first + number) * down + column * across..];
                        if across == 1 {
                            for (out, &acc) in out[..N].iter_mut().zip(accs) {
                                out.write(reducer.finish(acc, count));
                            }
                        } else {
                            for (out, &acc) in out.iter_mut().step_by(across).zip(accs) {
                                out.write(reducer.finish(acc, count));
                            }
                        }
                    }
                }
            }
            (at[row], at[last]) = (0, 0);
            outer.advance(&mut at[..row]);
        }
    }
}

/// The totals of the block that starts at the position `at`.
#[cfg_attr(not(unoptimized), inline(always))]
fn block<I: Isa, K: Kernel, R: Reducer<K::Elem>, const LEFT: bool, const N: usize>(
    kernel: &K,
    nest: &Nest,
    at: &mut [usize],
    reducer: R,
) -> [[R::Acc; N]; ROWS] {
    let (row, along) = (nest.outer - 1, nest.depth() - 2);
    let mut accs = [[reducer.start(); N]; ROWS];
    let mut levels = Levels::new(ROWS * N);
    let mut seen = 0;
    let mut odometer = Odometer::new(&nest.sizes[nest.outer..along]);
    while !odometer.is_done() {
        at[along] = 0;
        while at[along] < nest.sizes[along] {
            let pairs = kernel.pairs::<LEFT>(at, row, along, true).expect("a nest of pairs");
            let steps = (nest.sizes[along] - at[along]).min(BLOCK - seen % BLOCK);
            let mut own = accs;
            for step in 0..steps {
                // Written out, because in a loop over the four rows, the compiler would keep the
                // accumulators in memory.
                let [a, b, c, d] = &mut own;
                // SAFETY: the nest has the rows and columns of the block, and this many steps.
                unsafe {
                    add::<I, K, R, LEFT, N>(&pairs, (0, step), a, seen, reducer);
                    add::<I, K, R, LEFT, N>(&pairs, (1, step), b, seen, reducer);
                    add::<I, K, R, LEFT, N>(&pairs, (2, step), c, seen, reducer);
                    add::<I, K, R, LEFT, N>(&pairs, (3, step), d, seen, reducer);
                }
                seen += 1;
            }
            accs = own;
            if seen % BLOCK == 0 {
                levels.push::<I, K::Elem, R>(accs.as_flattened_mut(), reducer);
            }
            at[along] += steps;
        }
        at[along] = 0;
        odometer.advance(&mut at[nest.outer..along]);
    }
    levels.finish::<I, K::Elem, R>(accs.as_flattened_mut(), reducer);
    accs
}

/// Adds one element to each accumulator of a row of the block. Compared with the position for which
/// `pairs` was made, the elements start `row` positions further along the loop of rows, and `step`
/// positions further along the innermost reduced loop.
///
/// # Safety
///
/// The nest has this position, and `N` positions of the innermost loop from there on.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn add<I: Isa, K: Kernel, R: Reducer<K::Elem>, const LEFT: bool, const N: usize>(
    pairs: &K::Pairs,
    (row, step): (usize, usize),
    accs: &mut [R::Acc; N],
    seen: usize,
    reducer: R,
) {
    // SAFETY: the caller's promise.
    let reader = unsafe { K::pair_reader::<I, LEFT>(pairs, row, step) };
    for (x, acc) in accs.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let value = unsafe { K::get_broadcast::<I, LEFT>(&reader, x) };
        *acc = reducer.step::<I>(*acc, value, seen);
    }
}
