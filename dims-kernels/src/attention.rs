//! Attention in tiles. A tile holds the scores of a block of queries and a block of keys, and is
//! small enough to stay in the cache. Each query has a running maximum of its scores and a running
//! sum of its weights.

mod scores;

use crate::compiled::compiled;
use crate::contract::ContractionFactor;
use crate::error::Error;
use crate::gemm::{Matrix, Product, multiply};
use crate::load::TILE;
use crate::loops::nest::{Nest, Odometer, OperandRows};
use crate::loops::rows::Rows;
use crate::loops::steps::PlanStep;
use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::threads::{self, Carried};
use crate::memory::allocate::reserve;
use crate::memory::axes::contiguous;
use crate::memory::elements::Elements;
use crate::reduce::fold::{LANES, fold, together};
use crate::scalar::{Num, Real};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

pub use scores::{Allowed, Change, LoweredScores, ScoreTile, lowered_scores};

/// The number of queries in a tile: a multiple of the number of rows in the register tile of a
/// matrix product.
const QUERIES: usize = 192;

/// The number of keys in a tile. The scores of a tile take up less than half of a second-level
/// cache of 1 MiB.
const fn keys<T>() -> usize {
    let keys = 2048 / size_of::<T>();
    if keys < TILE { keys } else { TILE }
}

compiled! {
    for f32 f64:

    /// An operand with its elements widened to the type of the computation.
    #[track_caller]
    pub fn widened<'a, 's, T: Real>(
        operand: ContractionFactor<'a, T>,
        sizes: &'s [usize],
    ) -> Result<ContractionFactor<'a, <T as Real>::Wide>, Error> {
        operand.converted(sizes, T::widen)
    }
}

compiled! {
    for f32 f64:

    /// The elements rounded to the type of the result; unchanged if that is the type of the
    /// computation.
    pub fn narrowed<T: Real>(data: Vec<<T as Real>::Wide>) -> Vec<T> {
        in_type_of_result(data)
    }
}

/// [`narrowed`] as a generic function.
fn in_type_of_result<T: Real>(data: Vec<T::Wide>) -> Vec<T> {
    let mut data = Some(data);
    match (&mut data as &mut dyn Any).downcast_mut::<Option<Vec<T>>>() {
        Some(same) => same.take().expect("the value was just stored"),
        None => data.into_iter().flatten().map(T::narrow).collect(),
    }
}

/// The loops and operands of an attention operator.
pub struct Work<'n, T> {
    /// Loops over batches, one loop over queries, loops over keys; rows of strides for queries,
    /// keys, values, the result, and the operands of the mask and the bias. Other loops over
    /// queries count as loops over batches.
    pub nest: &'n Nest,
    /// The index of the loop over queries.
    pub query: usize,
    /// Loops over features; rows for queries and keys.
    pub features: Nest,
    /// Loops over columns of the values; rows for values and result.
    pub values: Nest,
    /// The queries. Their strides are in the rows of `nest` and `features`.
    pub q: Elements<'n, T>,
    /// The keys.
    pub k: Elements<'n, T>,
    /// The values.
    pub v: Elements<'n, T>,
    /// The factor by which scores are multiplied.
    pub scale: T,
}

/// The loops of an attention operator, except those over keys and features, grouped by role, and
/// the strides of queries, keys, values and the result.
pub struct AttentionRoles {
    /// Loops over batches.
    pub batch: Vec<usize>,
    /// Loops over queries.
    pub queries: Vec<usize>,
    /// Loops over columns of the values.
    pub values: Vec<usize>,
    /// The strides along all loops.
    pub rows: Rows,
}

impl AttentionRoles {
    /// Groups loops by role. `scores` are the loops of the scores, `over` the loops over keys, and
    /// `kept` the loops of the result. `q`, `k` and `v` are the strides of queries, keys and
    /// values.
    pub fn of(sizes: &[usize], [scores, over, kept]: [&[usize]; 3], [q, k, v]: [&[isize]; 3]) -> Self {
        let out = contiguous(kept, sizes);
        // Of the operands, only the queries vary along a loop over queries.
        let is_query = |axis: &usize| q[*axis] != 0 && k[*axis] == 0 && v[*axis] == 0;
        let rest = scores.iter().copied().filter(|axis| !over.contains(axis));
        let (queries, batch) = rest.partition(is_query);
        let values = kept.iter().copied().filter(|axis| !scores.contains(axis)).collect();
        let mut rows = Rows::new(sizes.len());
        for strides in [q, k, v, &out] {
            rows.push().copy_from_slice(strides);
        }
        AttentionRoles { batch, queries, values, rows }
    }
}

/// The loops over some axes, with the rows of two operands.
pub fn loops_of_pair(sizes: &[usize], rows: &Rows, operands: [usize; 2], axes: &[usize]) -> Nest {
    let mut own = Rows::new(sizes.len());
    operands.iter().for_each(|&operand| own.push().copy_from_slice(rows.row(operand)));
    Nest::grouped(sizes, &[axes], &own).0
}

/// The rows of the operands of the mask and the bias in a nest. They follow the rows of queries,
/// keys, values and the result.
pub fn rows_of_change(nest: &Nest) -> OperandRows<'_> {
    let mut operands = nest.operands();
    for _ in 0..4 {
        operands.next_row();
    }
    operands
}

impl<T> Work<'_, T> {
    /// The total number of multiplications in the products.
    pub fn multiplications(&self) -> usize {
        self.nest.positions().saturating_mul(self.features.positions() + self.values.positions())
    }

    /// The attention as a step of a plan. The result has `len` elements.
    pub fn step(&self, mask: String, bias: Option<String>, len: usize, threads: usize) -> PlanStep {
        let (queries, keys) = self.nest.sizes.split_at(self.query + 1);
        PlanStep::Attention {
            batch: queries[..self.query].iter().product(),
            queries: queries[self.query],
            keys: keys.iter().product(),
            features: self.features.sizes.iter().product(),
            values: self.values.sizes.iter().product(),
            mask,
            bias,
            bytes: len * size_of::<T>(),
            threads,
        }
    }
}

compiled! {
    for f32 f64:

    /// Computes the attention. The result has `len` elements. `lower` makes the mask and the bias
    /// for each part of the work.
    ///
    /// # Safety
    ///
    /// The rows of `q` and `k` map each position of `nest` and `features` to an element. The rows
    /// of `v` map each position of `nest` and `values` to an element. The rows of the result reach
    /// all `len` elements. If there are several threads, the results of `lower` may be used on any
    /// of them.
    pub unsafe fn attend<'w, 'l, T: Real>(
        work: &'w Work<'w, T>,
        len: usize,
        threads: usize,
        lower: &'l dyn Fn() -> Box<dyn Change<T> + 'w>,
    ) -> Result<Vec<T>, Error> {
        // SAFETY: the caller's promise.
        unsafe { attention(work, len, threads, lower) }
    }
}

/// [`attend`] as a generic function.
///
/// # Safety
///
/// As for [`attend`].
unsafe fn attention<'w, T: Real>(
    work: &'w Work<'w, T>,
    len: usize,
    threads: usize,
    lower: &dyn Fn() -> Box<dyn Change<T> + 'w>,
) -> Result<Vec<T>, Error> {
    let positions: usize = work.nest.sizes[..=work.query].iter().product();
    assert_eq!(
        positions * work.values.positions(),
        len,
        "the result has an element for each batch, query and column of the values"
    );
    let mut out = reserve(len)?;
    let queries = work.nest.sizes[work.query];
    let blocks = queries.div_ceil(QUERIES);
    let batches: usize = work.nest.sizes[..work.query].iter().product();
    let units = batches * blocks;
    // A mask may leave more work at one end than at the other, so the aim is several parts for each
    // thread.
    let parts = if threads == 1 { 1 } else { (8 * threads).min(units) };
    let mut pieces = Vec::with_capacity(parts);
    for part in 0..parts {
        let units = part * units / parts..(part + 1) * units / parts;
        let piece = QueryBlocks { work, units, blocks, out: out.as_mut_ptr(), change: lower() };
        // SAFETY: elements are `Sync`, and masks and biases may be used on another thread, as the
        // caller promises; each piece writes the results of its own queries.
        pieces.push(unsafe { Carried::new(piece) });
    }
    threads::each(pieces, |piece| piece.into_inner().run()).into_iter().collect::<Result<(), _>>()?;
    // SAFETY: the result has an element for each batch, query and column of the values, and all of
    // these were written.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// A piece of the work. A unit is one block of queries of one batch.
struct QueryBlocks<'w, T> {
    work: &'w Work<'w, T>,
    units: core::ops::Range<usize>,
    blocks: usize,
    out: *mut T,
    change: Box<dyn Change<T> + 'w>,
}

/// The working memory of a piece.
struct Scratch<T> {
    scores: Vec<T>,
    greatest: Vec<T>,
    sums: Vec<T>,
    results: Vec<T>,
    allowed: Vec<bool>,
    bias: Vec<T>,
}

impl<T: Real> QueryBlocks<'_, T> {
    fn run(mut self) -> Result<(), Error> {
        let work = self.work;
        let (rows, columns) = (QUERIES.min(work.nest.sizes[work.query]), work.values.positions());
        let keys = keys::<T>().min(work.nest.sizes[work.nest.depth() - 1]);
        let mut scratch = Scratch {
            scores: vec![T::ZERO; rows * keys],
            greatest: vec![T::LOWEST; rows],
            sums: vec![T::ZERO; rows],
            results: vec![T::ZERO; rows * columns],
            allowed: vec![true; if self.change.is_uniform() { 0 } else { rows * keys }],
            bias: vec![T::ZERO; if self.change.is_biased() { rows * keys } else { 0 }],
        };
        let mut at = vec![0; work.nest.depth()];
        for unit in self.units.clone() {
            let (mut batch, block) = (unit / self.blocks, unit % self.blocks);
            for (at, &size) in at[..work.query].iter_mut().zip(work.nest.sizes.iter()).rev() {
                *at = batch % size;
                batch /= size;
            }
            at[work.query] = block * QUERIES;
            self.block(&mut at, &mut scratch)?;
        }
        Ok(())
    }

    /// Computes one block of queries, from `at` on.
    fn block(&mut self, at: &mut [usize], scratch: &mut Scratch<T>) -> Result<(), Error> {
        let work = self.work;
        let nest = work.nest;
        let (query, last) = (work.query, nest.depth() - 1);
        let rows = QUERIES.min(nest.sizes[query] - at[query]);
        let columns = work.values.positions();
        scratch.greatest.fill(T::LOWEST);
        scratch.sums.fill(T::ZERO);
        scratch.results.fill(T::ZERO);
        let all = nest.sizes[last];
        at[query + 1..].fill(0);
        let mut odometer = Odometer::new(&nest.sizes[query + 1..last]);
        while !odometer.is_done() {
            for start in (0..all).step_by(keys::<T>()) {
                at[last] = start;
                let mut width = keys::<T>().min(all - start);
                let tile = ScoreTile { at, query, rows, width };
                let allowed = self.change.masked(tile, &mut scratch.allowed)?;
                if let Allowed::Some { from, to } = allowed {
                    assert!(
                        from < to && to <= width,
                        "the range of allowed keys is not empty and lies within the tile"
                    );
                    for row in 0..rows {
                        scratch.allowed.copy_within(row * width + from..row * width + to, row * (to - from));
                    }
                    at[last] = start + from;
                    width = to - from;
                }
                if allowed == Allowed::None {
                    continue;
                }
                let mask = matches!(allowed, Allowed::Some { .. }).then_some(&scratch.allowed[..]);
                let tile = ScoreTile { at, query, rows, width };
                if !self.change.biased(tile, mask, &mut scratch.bias)? {
                    continue;
                }
                self.scores(at, rows, width, &mut scratch.scores);
                dispatch(Fold {
                    scratch,
                    rows,
                    width,
                    columns,
                    scale: work.scale,
                    masked: matches!(allowed, Allowed::Some { .. }),
                    biased: self.change.is_biased(),
                });
                self.weigh(at, rows, width, scratch);
            }
            at[last] = 0;
            odometer.advance(&mut at[query + 1..last]);
        }
        let empty = nest.sizes[query + 1..].contains(&0);
        self.write(at, rows, scratch, empty);
        Ok(())
    }

    /// The products of a tile's queries and keys.
    fn scores(&self, at: &[usize], rows: usize, width: usize, scores: &mut [T]) {
        let Work { nest, query, ref features, q: queries, k: keys, .. } = *self.work;
        let last = nest.depth() - 1;
        let (q, k) = (nest.strides_of(0), nest.strides_of(1));
        let (qf, kf) = (features.strides_of(0), features.strides_of(1));
        let inner = features.depth() - 1;
        let mut accumulate = false;
        let mut place = vec![0; features.depth()];
        let mut odometer = Odometer::new(&features.sizes[..inner]);
        if features.positions() == 0 {
            scores[..rows * width].fill(T::ZERO);
            return;
        }
        while !odometer.is_done() {
            let product = Product {
                m: rows,
                k: features.sizes[inner],
                n: width,
                a: Matrix {
                    start: queries.as_ptr().wrapping_offset(dot(at, q) + dot(&place, qf)),
                    row: q[query],
                    col: qf[inner],
                },
                b: Matrix {
                    start: keys.as_ptr().wrapping_offset(dot(at, k) + dot(&place, kf)),
                    row: kf[inner],
                    col: k[last],
                },
                c: scores.as_mut_ptr(),
                c_row: width as isize,
                c_col: 1,
                accumulate,
            };
            // SAFETY: queries, keys and features of the tile are positions of the loops, and
            // `scores` has room for the product.
            unsafe { multiply(&product) };
            accumulate = true;
            odometer.advance(&mut place[..inner]);
        }
    }

    /// Adds to the results the values of a tile's keys, weighted by the exponentials of the scores.
    fn weigh(&self, at: &[usize], rows: usize, width: usize, scratch: &mut Scratch<T>) {
        let Work { nest, ref values, v: elements, .. } = *self.work;
        let v = nest.strides_of(2);
        let vc = values.strides_of(0);
        let inner = values.depth() - 1;
        let columns = values.positions();
        let mut place = vec![0; values.depth()];
        let mut odometer = Odometer::new(&values.sizes[..inner]);
        let mut column = 0;
        while !odometer.is_done() && columns > 0 {
            let product = Product {
                m: rows,
                k: width,
                n: values.sizes[inner],
                a: Matrix { start: scratch.scores.as_ptr(), row: width as isize, col: 1 },
                b: Matrix {
                    start: elements.as_ptr().wrapping_offset(dot(at, v) + dot(&place, vc)),
                    row: v[nest.depth() - 1],
                    col: vc[inner],
                },
                c: scratch.results[column..].as_mut_ptr(),
                c_row: columns as isize,
                c_col: 1,
                accumulate: true,
            };
            // SAFETY: the tile's keys and the columns of the values are positions of the loops, and
            // `results` has room for the product.
            unsafe { multiply(&product) };
            column += values.sizes[inner];
            odometer.advance(&mut place[..inner]);
        }
    }

    /// Divides the results of a block by the sums of the weights, and writes the quotients.
    fn write(&self, at: &[usize], rows: usize, scratch: &Scratch<T>, empty: bool) {
        let Work { nest, query, ref values, .. } = *self.work;
        let out = nest.strides_of(3);
        let to = values.strides_of(1);
        let columns = values.positions();
        let mut place = vec![0; values.depth()];
        let base: isize = at[..=query].iter().zip(out).map(|(&at, &step)| at as isize * step).sum();
        let inner = values.depth() - 1;
        for row in 0..rows {
            let results = &scratch.results[row * columns..][..columns];
            // The mean over no keys is 0.
            let none = empty || scratch.sums[row] == T::ZERO;
            let share = T::ONE / scratch.sums[row];
            let start = base + row as isize * out[query];
            let mut odometer = Odometer::new(&values.sizes[..inner]);
            for results in results.chunks(values.sizes[inner].max(1)) {
                let first = self.out.wrapping_offset(start + dot(&place, to));
                let write = |step: isize| {
                    for (column, &result) in results.iter().enumerate() {
                        let value = if none { T::ZERO } else { result * share };
                        // SAFETY: queries and columns are positions of the result, which nothing
                        // else writes.
                        unsafe { first.wrapping_offset(column as isize * step).write(value) };
                    }
                };
                // A constant step of 1 lets the compiler vectorize.
                if to[inner] == 1 {
                    write(1)
                } else {
                    write(to[inner])
                }
                odometer.advance(&mut place[..inner]);
            }
        }
    }
}

fn dot(at: &[usize], strides: &[isize]) -> isize {
    at.iter().zip(strides).map(|(&at, &stride)| at as isize * stride).sum()
}

/// Turns the scores of a tile into weights, updates the maximum and the sum of each query, and
/// rescales its results.
struct Fold<'s, T> {
    scratch: &'s mut Scratch<T>,
    rows: usize,
    width: usize,
    columns: usize,
    scale: T,
    masked: bool,
    biased: bool,
}

impl<T: Real> Task for Fold<'_, T> {
    type Out = ();
    const WIDE: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let Fold { scratch, rows, width, columns, scale, masked, biased } = self;
        for row in 0..rows {
            let scores = &mut scratch.scores[row * width..][..width];
            let plain = !biased && !masked;
            let found = if plain {
                // Scores are scaled again below, which is faster than storing the scaled ones.
                fold(scores, T::LOWEST, |greatest, score| larger(greatest, score * scale), larger)
            } else {
                if biased {
                    for (score, &bias) in scores.iter_mut().zip(&scratch.bias[row * width..][..width]) {
                        *score = *score * scale + bias;
                    }
                } else {
                    for score in scores.iter_mut() {
                        *score = *score * scale;
                    }
                }
                if masked {
                    for (score, &allowed) in scores.iter_mut().zip(&scratch.allowed[row * width..][..width]) {
                        *score = if allowed { *score } else { T::LOWEST };
                    }
                }
                fold(scores, T::LOWEST, larger, larger)
            };
            let before = scratch.greatest[row];
            let greatest = larger(before, found);
            // While the maximum is `-inf`, nothing is subtracted, because `-inf - -inf` is NaN.
            let shift = if greatest == T::LOWEST { T::ZERO } else { greatest };
            let sum = if plain {
                weights::<I, T, true>(scores, scale, shift)
            } else {
                weights::<I, T, false>(scores, scale, shift)
            };
            // A sum that is NaN stays NaN, even times 0.
            let shrink = if before == T::LOWEST { T::ZERO } else { (before - greatest).exp_down::<I>() };
            scratch.greatest[row] = greatest;
            scratch.sums[row] = scratch.sums[row] * shrink + sum;
            if before != greatest {
                for result in &mut scratch.results[row * columns..][..columns] {
                    *result = *result * shrink;
                }
            }
        }
    }
}

/// The larger of two numbers. NaN need not count as the greatest: it makes the sum NaN, and
/// therefore all results of the query.
#[cfg_attr(not(unoptimized), inline(always))]
fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

/// Replaces each score by its weight, `e^(score - shift)`, and returns the sum of the weights. If
/// `SCALE`, scores are multiplied by `scale` first. No score, after any scaling, is greater than
/// `shift`.
#[cfg_attr(not(unoptimized), inline(always))]
fn weights<I: Isa, T: Real, const SCALE: bool>(scores: &mut [T], scale: T, shift: T) -> T {
    let weight = |score: T| (if SCALE { score * scale - shift } else { score - shift }).exp_down::<I>();
    let mut sums = [T::ZERO; LANES];
    let (chunks, tail) = scores.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for (score, sum) in chunk.iter_mut().zip(&mut sums) {
            *score = weight(*score);
            *sum = *sum + *score;
        }
    }
    let mut total = T::ZERO;
    for score in tail {
        *score = weight(*score);
        total = total + *score;
    }
    total + together(sums, |a, b| a + b)
}
