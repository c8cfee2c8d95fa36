//! Reductions: loops that combine many elements into one.
//!
//! Sums are as accurate as pairwise summation: along the innermost loop there are many accumulators, whose totals are
//! combined like a binary counter; across it, partial sums over `BLOCK` elements are combined.

use super::elementwise::Parts;
use super::isa::{Isa, Task, dispatch};
use super::threads::{self, Carried};
use super::{Faults, Kernel, TILE, Tile};
use crate::error::DimError;
use crate::plan::nest::{Nest, Odometer};
use crate::storage::memory::reserve;
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// Accumulators along the innermost loop.
const LANES: usize = 32;

/// How many accumulators are at hand across the innermost loop: they fit into the first-level cache.
const WIDTH: usize = 4 * TILE;

/// How many elements are added to one accumulator before it is combined with others.
const BLOCK: usize = 128;

/// How elements are combined.
pub trait Reducer<T>: Copy {
    /// Its name in plans.
    const NAME: &'static str;
    /// The state of a partial result.
    type Acc: Copy;
    /// The result.
    type Out: Copy;
    /// The state before the first element.
    fn start(&self) -> Self::Acc;
    /// The state after one more element, the `at`th.
    fn step<I: Isa>(&self, acc: Self::Acc, value: T, at: usize) -> Self::Acc;
    /// The state of two parts, the left one first.
    fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The result of `count` elements.
    fn finish(&self, acc: Self::Acc, count: usize) -> Self::Out;
}

/// Runs a reduction in parts of the loops that it keeps; the result has `len` elements in the order of the kept axes.
///
/// Each part has a kernel of its own; several parts run on several threads.
#[inline]
pub fn reduce<K: Kernel, R: Reducer<K::Elem, Out: Send>>(
    parts: Parts<'_, K>,
    len: usize,
    count: usize,
    reducer: R,
) -> Result<Vec<R::Out>, DimError> {
    let mut out = reserve(len)?;
    let mut rest = &mut out.spare_capacity_mut()[..len];
    if parts.len() == 1 {
        for (kernel, nest) in parts {
            dispatch(Reduce { kernel, nest, count, reducer, out: rest })?;
        }
    } else {
        let mut work = Vec::with_capacity(parts.len());
        for (kernel, nest) in parts {
            let (own, others) = rest.split_at_mut(nest.results());
            rest = others;
            // SAFETY: kernels read elements, which are `Sync`; operations are plain values wherever `PARALLEL` lets
            // there be several parts; the places are each part's own.
            work.push(unsafe { Carried::new(Reduce { kernel, nest, count, reducer, out: own }) });
        }
        threads::each(work, |part| dispatch(part.into_inner())).into_iter().collect::<Result<(), _>>()?;
    }
    // SAFETY: the kept loops of all parts cover each of the `len` places once, as `Reduce` writes one for each of their
    // positions; it returned no error.
    unsafe { out.set_len(len) };
    Ok(out)
}

struct Reduce<'n, K: Kernel, R: Reducer<K::Elem>> {
    kernel: K,
    nest: &'n Nest,
    count: usize,
    reducer: R,
    out: &'n mut [MaybeUninit<R::Out>],
}

impl<K: Kernel, R: Reducer<K::Elem>> Task for Reduce<'_, K, R> {
    type Out = Result<(), DimError>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Result<(), DimError> {
        let nest = self.nest;
        if self.out.is_empty() {
            // The loops may be long, though there is nothing to write.
            return Ok(());
        }
        let mut faults = Faults::default();
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
        let mut written = 0;
        let mut odometer = Odometer::new(&nest.sizes[..nest.outer]);
        let Reduce { mut kernel, count, reducer, out, .. } = self;
        while !odometer.is_done() {
            let place: isize =
                at.iter().zip(&nest.result).take(nest.outer).map(|(&at, &step)| at as isize * step).sum();
            let place = place as usize;
            if nest.inner_kept {
                written +=
                    across::<I, K, R>(&mut kernel, nest, &mut at, count, reducer, place, out, &mut faults);
            } else {
                let acc = along::<I, K, R>(&mut kernel, nest, &mut at, reducer, &mut faults);
                out[place].write(reducer.finish(acc, count));
                written += 1;
            }
            if faults.any() {
                return faults.into_result();
            }
            odometer.advance(&mut at[..nest.outer]);
        }
        assert_eq!(written, out.len(), "the kept loops cover the result");
        faults.into_result()
    }
}

/// One element of the result, whose innermost loop is reduced.
#[inline(always)]
fn along<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    at: &mut [usize],
    reducer: R,
    faults: &mut Faults,
) -> R::Acc {
    let last = nest.depth() - 1;
    let inner = nest.sizes[last];
    if inner == 0 {
        // The loops around may be long, though there is nothing in them.
        return reducer.start();
    }
    if nest.outer == last && inner <= TILE {
        // One short loop, the common case, needs no totals.
        kernel.load::<I>(&Tile { at, len: inner, mask: None }, faults);
        if faults.any() {
            return reducer.start();
        }
        return along_tile::<I, K, R>(kernel, inner, 0, reducer);
    }
    let mut totals = SmallVec::new();
    let mut tiles = 0;
    let mut seen = 0;
    let mut odometer = Odometer::new(&nest.sizes[nest.outer..last]);
    while !odometer.is_done() {
        let mut start = 0;
        while start < inner {
            let len = TILE.min(inner - start);
            at[last] = start;
            kernel.load::<I>(&Tile { at, len, mask: None }, faults);
            // After a fault nothing is computed: what stands in for the element could, for one, be divided by.
            if faults.any() {
                return reducer.start();
            }
            tiles += 1;
            push::<I, K::Elem, R>(
                &mut totals,
                tiles,
                along_tile::<I, K, R>(kernel, len, seen, reducer),
                reducer,
            );
            seen += len;
            start += len;
        }
        odometer.advance(&mut at[nest.outer..last]);
    }
    total::<I, K::Elem, R>(totals, reducer)
}

#[inline(always)]
fn along_tile<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &K,
    len: usize,
    seen: usize,
    reducer: R,
) -> R::Acc {
    let mut tail = reducer.start();
    let whole = if len >= LANES { len - len % LANES } else { 0 };
    for x in whole..len {
        // SAFETY: `x < len`, the length of the tile that was just loaded, without a mask.
        tail = reducer.step::<I>(tail, unsafe { kernel.get::<I>(x) }, seen + x);
    }
    if whole == 0 {
        return tail;
    }
    let mut lanes = [reducer.start(); LANES];
    let mut base = 0;
    while base < whole {
        for (lane, acc) in lanes.iter_mut().enumerate() {
            let x = base + lane;
            // SAFETY: as above.
            *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x) }, seen + x);
        }
        base += LANES;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = reducer.join::<I>(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    reducer.join::<I>(lanes[0], tail)
}

/// A row of the result, whose innermost loop is kept. Returns how many elements that is.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn across<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    at: &mut [usize],
    count: usize,
    reducer: R,
    place: usize,
    out: &mut [MaybeUninit<R::Out>],
    faults: &mut Faults,
) -> usize {
    let last = nest.depth() - 1;
    let inner = nest.sizes[last];
    let step = nest.result[last] as usize;
    let reduced = &nest.sizes[nest.outer..last];
    let mut start = 0;
    while start < inner {
        let len = WIDTH.min(inner - start);
        let mut blocks: Vec<R::Acc> = Vec::new();
        let mut block: SmallVec<[R::Acc; 32]> = SmallVec::from_elem(reducer.start(), len);
        let mut seen = 0;
        let mut odometer = Odometer::new(reduced);
        while !odometer.is_done() {
            for (tile, block) in block.chunks_mut(TILE).enumerate() {
                at[last] = start + tile * TILE;
                kernel.load::<I>(&Tile { at, len: block.len(), mask: None }, faults);
                if faults.any() {
                    return inner;
                }
                across_tile::<I, K, R>(kernel, block, seen, reducer);
            }
            seen += 1;
            if seen % BLOCK == 0 {
                if blocks.is_empty() {
                    blocks = vec![reducer.start(); len];
                }
                for (total, part) in blocks.iter_mut().zip(&mut block) {
                    *total = reducer.join::<I>(*total, std::mem::replace(part, reducer.start()));
                }
            }
            odometer.advance(&mut at[nest.outer..last]);
        }
        for (x, &part) in block.iter().enumerate() {
            let acc = blocks.get(x).map_or(part, |&total| reducer.join::<I>(total, part));
            out[place + (start + x) * step].write(reducer.finish(acc, count));
        }
        start += len;
    }
    inner
}

#[inline(always)]
fn across_tile<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &K,
    block: &mut [R::Acc],
    seen: usize,
    reducer: R,
) {
    for (x, acc) in block.iter_mut().enumerate() {
        // SAFETY: `x` is less than the length of the tile that was just loaded, without a mask.
        *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x) }, seen);
    }
}

/// Combines totals of equal weight, like the carries of a binary counter, so that rounding errors grow with the
/// logarithm of their number. `count` totals, this one included, have been pushed.
#[inline(always)]
fn push<I: Isa, T, R: Reducer<T>>(
    levels: &mut SmallVec<[R::Acc; 12]>,
    count: usize,
    total: R::Acc,
    reducer: R,
) {
    let mut total = total;
    for _ in 0..count.trailing_zeros() {
        if let Some(previous) = levels.pop() {
            total = reducer.join::<I>(previous, total);
        }
    }
    levels.push(total);
}

/// The total of all levels.
#[inline(always)]
fn total<I: Isa, T, R: Reducer<T>>(levels: SmallVec<[R::Acc; 12]>, reducer: R) -> R::Acc {
    levels
        .into_iter()
        .rev()
        .reduce(|right, left| reducer.join::<I>(left, right))
        .unwrap_or_else(|| reducer.start())
}

/// What each reduction combines.
pub mod reducers {
    use super::Reducer;
    use crate::kernel::isa::Isa;
    use crate::scalar::{Analytic, Magnitude, Num, Ordered, Real};
    use std::marker::PhantomData;

    /// A sum.
    #[derive(Clone, Copy)]
    pub struct Sum;

    impl<T: Num> Reducer<T> for Sum {
        const NAME: &'static str = "sum";
        type Acc = T::Acc;
        type Out = T;
        #[inline(always)]
        fn start(&self) -> T::Acc {
            T::Acc::ZERO
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: T::Acc, value: T, _: usize) -> T::Acc {
            acc.add(value.to_acc())
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: T::Acc, b: T::Acc) -> T::Acc {
            a.add(b)
        }
        #[inline(always)]
        fn finish(&self, acc: T::Acc, _: usize) -> T {
            T::from_acc(acc)
        }
    }

    /// A product.
    #[derive(Clone, Copy)]
    pub struct Prod;

    impl<T: Num> Reducer<T> for Prod {
        const NAME: &'static str = "prod";
        type Acc = T::Acc;
        type Out = T;
        #[inline(always)]
        fn start(&self) -> T::Acc {
            T::Acc::ONE
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: T::Acc, value: T, _: usize) -> T::Acc {
            acc.mul(value.to_acc())
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: T::Acc, b: T::Acc) -> T::Acc {
            a.mul(b)
        }
        #[inline(always)]
        fn finish(&self, acc: T::Acc, _: usize) -> T {
            T::from_acc(acc)
        }
    }

    /// A mean.
    #[derive(Clone, Copy)]
    pub struct Mean;

    impl<T: Analytic> Reducer<T> for Mean {
        const NAME: &'static str = "mean";
        type Acc = T::Acc;
        type Out = T;
        #[inline(always)]
        fn start(&self) -> T::Acc {
            T::Acc::ZERO
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: T::Acc, value: T, _: usize) -> T::Acc {
            acc.add(value.to_acc())
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: T::Acc, b: T::Acc) -> T::Acc {
            a.add(b)
        }
        #[inline(always)]
        fn finish(&self, acc: T::Acc, count: usize) -> T {
            T::mean_of(acc, count)
        }
    }

    /// The greatest element.
    #[derive(Clone, Copy)]
    pub struct Max;

    impl<T: Ordered> Reducer<T> for Max {
        const NAME: &'static str = "max";
        type Acc = T;
        type Out = T;
        #[inline(always)]
        fn start(&self) -> T {
            T::LOWEST
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: T, value: T, _: usize) -> T {
            acc.maximum(value)
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: T, b: T) -> T {
            a.maximum(b)
        }
        #[inline(always)]
        fn finish(&self, acc: T, _: usize) -> T {
            acc
        }
    }

    /// The least element.
    #[derive(Clone, Copy)]
    pub struct Min;

    impl<T: Ordered> Reducer<T> for Min {
        const NAME: &'static str = "min";
        type Acc = T;
        type Out = T;
        #[inline(always)]
        fn start(&self) -> T {
            T::HIGHEST
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: T, value: T, _: usize) -> T {
            acc.minimum(value)
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: T, b: T) -> T {
            a.minimum(b)
        }
        #[inline(always)]
        fn finish(&self, acc: T, _: usize) -> T {
            acc
        }
    }

    /// Where the greatest (`GREATEST`) or least element is: the first of several, and the first not-a-number if any.
    #[derive(Clone, Copy)]
    pub struct Arg<const GREATEST: bool>;

    impl<const GREATEST: bool> Arg<GREATEST> {
        #[inline(always)]
        fn better<T: Ordered>(a: (Option<T>, usize), b: (Option<T>, usize)) -> (Option<T>, usize) {
            let (Some(x), Some(y)) = (a.0, b.0) else {
                return if a.0.is_some() { a } else { b };
            };
            let b_wins = match (x.is_nan_value(), y.is_nan_value()) {
                (true, true) => b.1 < a.1,
                (true, false) => false,
                (false, true) => true,
                (false, false) if x == y => b.1 < a.1,
                (false, false) => (y > x) == GREATEST,
            };
            if b_wins { b } else { a }
        }
    }

    impl<T: Ordered, const GREATEST: bool> Reducer<T> for Arg<GREATEST> {
        const NAME: &'static str = if GREATEST { "argmax" } else { "argmin" };
        type Acc = (Option<T>, usize);
        type Out = usize;
        #[inline(always)]
        fn start(&self) -> Self::Acc {
            (None, usize::MAX)
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: Self::Acc, value: T, at: usize) -> Self::Acc {
            Self::better(acc, (Some(value), at))
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
            Self::better(a, b)
        }
        #[inline(always)]
        fn finish(&self, acc: Self::Acc, _: usize) -> usize {
            acc.1
        }
    }

    /// Whether any element is true.
    #[derive(Clone, Copy)]
    pub struct Any;

    impl Reducer<bool> for Any {
        const NAME: &'static str = "any";
        type Acc = bool;
        type Out = bool;
        #[inline(always)]
        fn start(&self) -> bool {
            false
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: bool, value: bool, _: usize) -> bool {
            acc | value
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: bool, b: bool) -> bool {
            a | b
        }
        #[inline(always)]
        fn finish(&self, acc: bool, _: usize) -> bool {
            acc
        }
    }

    /// Whether all elements are true.
    #[derive(Clone, Copy)]
    pub struct All;

    impl Reducer<bool> for All {
        const NAME: &'static str = "all";
        type Acc = bool;
        type Out = bool;
        #[inline(always)]
        fn start(&self) -> bool {
            true
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: bool, value: bool, _: usize) -> bool {
            acc & value
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: bool, b: bool) -> bool {
            a & b
        }
        #[inline(always)]
        fn finish(&self, acc: bool, _: usize) -> bool {
            acc
        }
    }

    /// How many elements are true.
    #[derive(Clone, Copy)]
    pub struct Count;

    impl Reducer<bool> for Count {
        const NAME: &'static str = "count";
        type Acc = usize;
        type Out = usize;
        #[inline(always)]
        fn start(&self) -> usize {
            0
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: usize, value: bool, _: usize) -> usize {
            acc + usize::from(value)
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: usize, b: usize) -> usize {
            a + b
        }
        #[inline(always)]
        fn finish(&self, acc: usize, _: usize) -> usize {
            acc
        }
    }

    /// The sum of the squared deviations from the mean, divided by the count less `ddof`; its root if `ROOT`.
    ///
    /// Welford's update, and the pairwise one of Chan, Golub and LeVeque (1979).
    #[derive(Clone, Copy)]
    pub struct Variance<T, const ROOT: bool> {
        /// Delta degrees of freedom.
        pub ddof: T,
    }

    impl<T: Real, const ROOT: bool> Reducer<T> for Variance<T, ROOT> {
        const NAME: &'static str = if ROOT { "std" } else { "var" };
        type Acc = (T::Wide, T::Wide, T::Wide);
        type Out = T;
        #[inline(always)]
        fn start(&self) -> Self::Acc {
            (T::Wide::ZERO, T::Wide::ZERO, T::Wide::ZERO)
        }
        #[inline(always)]
        fn step<I: Isa>(&self, (count, mean, squares): Self::Acc, value: T, _: usize) -> Self::Acc {
            let value = value.widen();
            let count = count + T::Wide::ONE;
            let delta = value - mean;
            let mean = mean + delta / count;
            (count, mean, squares + delta * (value - mean))
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
            let count = a.0 + b.0;
            if count == T::Wide::ZERO {
                return a;
            }
            let delta = b.1 - a.1;
            let share = b.0 / count;
            (count, a.1 + delta * share, a.2 + b.2 + delta * delta * a.0 * share)
        }
        #[inline(always)]
        fn finish(&self, acc: Self::Acc, count: usize) -> T {
            let variance = acc.2 / (T::Wide::from_usize(count) - self.ddof.widen());
            T::narrow(if ROOT { Analytic::sqrt(variance) } else { variance })
        }
    }

    /// The Euclidean norm, the root of the sum of squared magnitudes.
    #[derive(Clone, Copy)]
    pub struct Norm;

    impl<T: Magnitude<Abs: Real>> Reducer<T> for Norm {
        const NAME: &'static str = "norm";
        type Acc = <T::Abs as Real>::Wide;
        type Out = T::Abs;
        #[inline(always)]
        fn start(&self) -> Self::Acc {
            <T::Abs as Real>::Wide::ZERO
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: Self::Acc, value: T, _: usize) -> Self::Acc {
            let size = value.magnitude().widen();
            acc + size * size
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
            a + b
        }
        #[inline(always)]
        fn finish(&self, acc: Self::Acc, _: usize) -> T::Abs {
            T::Abs::narrow(Analytic::sqrt(acc))
        }
    }

    /// `ln(sum of exp(x))`, with the greatest element taken out of the sum.
    #[derive(Clone, Copy)]
    pub struct LogSumExp<T>(pub PhantomData<T>);

    impl<T: Real> Reducer<T> for LogSumExp<T> {
        const NAME: &'static str = "logsumexp";
        type Acc = (T::Wide, T::Wide);
        type Out = T;
        #[inline(always)]
        fn start(&self) -> Self::Acc {
            (T::Wide::LOWEST, T::Wide::ZERO)
        }
        #[inline(always)]
        fn step<I: Isa>(&self, acc: Self::Acc, value: T, _: usize) -> Self::Acc {
            self.join::<I>(acc, (value.widen(), T::Wide::ONE))
        }
        #[inline(always)]
        fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
            let greatest = a.0.maximum(b.0);
            // Infinite elements would give `inf - inf`; what they mean is decided by the greatest alone.
            let part = |(top, sum): Self::Acc| {
                if top == greatest { sum } else { sum * Analytic::exp::<I>(top - greatest) }
            };
            (greatest, part(a) + part(b))
        }
        #[inline(always)]
        fn finish(&self, acc: Self::Acc, _: usize) -> T {
            T::narrow(acc.0 + num_traits::Float::ln(acc.1))
        }
    }
}
