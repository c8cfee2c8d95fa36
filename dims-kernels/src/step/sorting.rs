//! Sorting and selection by order: `sort`, `topk`, `median` and the like.

#[cfg(feature = "std")]
use super::Pulled;
use super::{StepKind, StepOperands, StepResults};
use crate::error::Error;
use crate::machine::threads;
use crate::memory::allocate::reserve;
#[cfg(feature = "std")]
use crate::ops::code::BinaryOpcode;
use crate::scalar::{Element, Num, Ordered, Real};
use crate::sort_key::KeyMemory;
#[cfg(feature = "std")]
use crate::trace::{Field, Node, Part, StridedPlace, Table};
#[cfg(feature = "std")]
use alloc::boxed::Box;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::marker::PhantomData;

/// The order of elements. NaN is the greatest, as in NumPy and PyTorch.
pub fn ascending<T: Ordered>(a: &T, b: &T) -> Ordering {
    match (a.is_nan_value(), b.is_nan_value()) {
        (false, false) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (a, b) => a.cmp(&b),
    }
}

/// The order for `min`: NaN is less than all others.
fn ascending_nan_first<T: Ordered>(a: &T, b: &T) -> Ordering {
    match (a.is_nan_value(), b.is_nan_value()) {
        (false, false) => ascending(a, b),
        (a, b) => b.cmp(&a),
    }
}

/// The positions of the first `count` elements of a line sorted by comparing elements.
fn sorted<T: Ordered>(line: &[T], descending: bool, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..line.len()).collect();
    if size_of::<T>() == 0 {
        // All elements are the same.
        all.truncate(count);
        return all;
    }
    let order = |&a: &usize, &b: &usize| {
        let order = ascending(&line[a], &line[b]);
        (if descending { order.reverse() } else { order }).then(a.cmp(&b))
    };
    if count < all.len() {
        all.select_nth_unstable_by(count, order);
        all.truncate(count);
    }
    all.sort_unstable_by(order);
    all
}

/// Sorts a line, and writes one value for each of the first elements, as many as there is room for.
/// Equal elements keep their order.
fn write_first<T: Ordered, U>(
    line: &[T],
    descending: bool,
    keys: &mut KeyMemory,
    out: &mut [U],
    value: impl Fn(T, usize) -> U,
) {
    let count = out.len();
    let mut out = out.iter_mut();
    let write = |at: usize| {
        if let Some(out) = out.next() {
            *out = value(line[at], at);
        }
    };
    if const { T::SORT_KEY.has_keys() } {
        T::SORT_KEY.line(line, descending, keys).each_first(count, write);
    } else {
        sorted(line, descending, count).into_iter().for_each(write);
    }
}

/// The results of a [`SortLines`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SortWanted {
    /// The elements in order.
    Values,
    /// The previous position of each element on its line.
    Positions,
    /// First the elements, then the positions.
    Both,
}

/// Sorts the elements of each line; equal elements keep their order. Operand: `lines` lines of
/// `len` elements. Results: as many lines.
#[derive(Clone, Debug)]
pub struct SortLines<T> {
    /// The number of lines.
    pub lines: usize,
    /// The number of elements of a line.
    pub len: usize,
    /// Whether the greatest element comes first.
    pub descending: bool,
    /// The results to compute.
    pub wanted: SortWanted,
    /// The type of the elements.
    pub element: PhantomData<T>,
}

impl<T: Ordered> StepKind for SortLines<T> {
    fn name(&self) -> &'static str {
        if self.wanted == SortWanted::Positions { "argsort" } else { "sort" }
    }

    fn lines(&self) -> [usize; 2] {
        [self.lines, self.len]
    }

    fn parallel(&self) -> usize {
        self.lines * self.len
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        let SortLines { len, descending, wanted, .. } = *self;
        if wanted == SortWanted::Values && !operands.keeps() {
            let mut data = operands.take::<T>(0);
            in_place(&mut data, len, threads, |line, (keys, old): &mut (_, Vec<T>)| {
                old.clear();
                old.extend_from_slice(line);
                write_first(old, descending, keys, line, |value, _| value);
            });
            return Ok(StepResults::one(data));
        }
        let x = operands.of::<T>(0);
        if wanted == SortWanted::Positions {
            let sort = |line: &[T], keys: &mut _, out: &mut _| {
                write_first(line, descending, keys, out, |_, at| at);
            };
            return Ok(StepResults::one(each_line(x, len, len, threads, sort)?));
        }
        let sort = |line: &[T], keys: &mut _, out: &mut _| {
            write_first(line, descending, keys, out, |value, at| (value, at));
        };
        let found = each_line(x, len, len, threads, sort)?;
        Ok(chosen(found, operands.keeps(), wanted == SortWanted::Both))
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        pull_chosen(step, self.len, self.len)
    }
}

/// The greatest or the least element of each line, and its position. Of equal elements, the first
/// is chosen. NaN takes precedence over all other elements.
#[derive(Clone, Debug)]
pub struct Extremum<T> {
    /// The number of lines.
    pub lines: usize,
    /// The number of elements of a line: at least one, if there are lines.
    pub len: usize,
    /// Whether to find the greatest element.
    pub greatest: bool,
    /// The type of the elements.
    pub element: PhantomData<T>,
}

impl<T: Ordered> StepKind for Extremum<T> {
    fn name(&self) -> &'static str {
        if self.greatest { "max_with_index" } else { "min_with_index" }
    }

    fn lines(&self) -> [usize; 2] {
        [self.lines, self.len]
    }

    fn parallel(&self) -> usize {
        self.lines * self.len
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        let greatest = self.greatest;
        let is_before = |a: &T, b: &T| match greatest {
            true => ascending(b, a) == Ordering::Less,
            false => ascending_nan_first(a, b) == Ordering::Less,
        };
        let first = |line: &[T], (): &mut (), out: &mut [(T, usize)]| {
            let mut best = (line[0], 0);
            for (at, value) in line.iter().enumerate().skip(1) {
                if is_before(value, &best.0) {
                    best = (*value, at);
                }
            }
            out[0] = best;
        };
        let found = each_line(operands.of::<T>(0), self.len, 1, threads, first)?;
        Ok(chosen(found, operands.keeps(), true))
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        pull_chosen(step, self.len, 1)
    }
}

/// The `k` greatest elements of each line in descending order, and their positions. Of equal
/// elements, the earlier ones come first.
#[derive(Clone, Debug)]
pub struct TopK<T> {
    /// The number of lines.
    pub lines: usize,
    /// The number of elements of a line.
    pub len: usize,
    /// The number of chosen elements per line, at most `len`.
    pub k: usize,
    /// The type of the elements.
    pub element: PhantomData<T>,
}

impl<T: Ordered> StepKind for TopK<T> {
    fn name(&self) -> &'static str {
        "topk"
    }

    fn lines(&self) -> [usize; 2] {
        [self.lines, self.len]
    }

    fn parallel(&self) -> usize {
        self.lines * self.len
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        let greatest = |line: &[T], keys: &mut _, out: &mut _| {
            write_first(line, true, keys, out, |value, at| (value, at));
        };
        let found = each_line(operands.of::<T>(0), self.len, self.k, threads, greatest)?;
        Ok(chosen(found, operands.keeps(), true))
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        pull_chosen(step, self.len, self.k)
    }
}

/// The quantile `q` of each line, from 0 to 1, interpolated linearly between two elements.
#[derive(Clone, Debug)]
pub struct Quantile<T> {
    /// The name in plans: `median` or `quantile`.
    pub name: &'static str,
    /// The number of lines.
    pub lines: usize,
    /// The number of elements of a line: at least one, if there are lines.
    pub len: usize,
    /// The quantile.
    pub q: T,
}

impl<T: Real> StepKind for Quantile<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn lines(&self) -> [usize; 2] {
        [self.lines, self.len]
    }

    fn parallel(&self) -> usize {
        self.lines * self.len
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        let q = self.q;
        let quantile = |line: &[T], keys: &mut _, out: &mut [T]| out[0] = quantile_of(line, q, keys);
        let x = operands.of::<T>(0);
        let results = StepResults::one(each_line(x, self.len, 1, threads, quantile)?);
        #[cfg(feature = "std")]
        if operands.keeps() {
            let at = place_of(self.len, q).0;
            let mut keys = KeyMemory::default();
            let (mut low, mut high): (Vec<_>, Vec<_>) =
                x.chunks_exact(self.len.max(1)).map(|line| neighbours(line, at, &mut keys)).unzip();
            low.append(&mut high);
            return Ok(results.keeping(low));
        }
        Ok(results)
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        let (_, share) = place_of(self.len, self.q);
        let share = num_traits::ToPrimitive::to_f64(&share).unwrap_or(0.0);
        let low = taken(step, self.len, 1, 0)?;
        let field = low.map([&taken(step, self.len, 1, self.lines)?], |build, low, [high]| {
            build.binary(BinaryOpcode::Lerp(share), low, high)
        });
        step.sum(&[Part { field, place: StridedPlace::strided(0, [1, 1]) }])
    }
}

fn quantile_of<T: Real>(line: &[T], q: T, keys: &mut KeyMemory) -> T {
    let (at, share) = place_of(line.len(), q);
    let (low, high) = neighbours(line, at, keys);
    let (low, high) = (line[low], line[high]);
    if share > num_traits::Zero::zero() && low != high && !low.is_nan() {
        let (low, high) = (low.widen(), high.widen());
        let step = high - low;
        // The difference of two finite numbers can overflow, and an infinite difference times a
        // share is infinite.
        return T::narrow(match num_traits::Float::is_finite(step) {
            true => low + step * share,
            false => low * (<T::Wide as Num>::ONE - share) + high * share,
        });
    }
    low
}

/// The two elements between which a quantile lies: the rank of the lower one, and the weight of the
/// upper one.
fn place_of<T: Real>(len: usize, q: T) -> (usize, T::Wide) {
    let last = len.saturating_sub(1);
    let place = q.widen() * <T::Wide as num_traits::NumCast>::from(last).expect("a float can be any size");
    let below = num_traits::Float::floor(place);
    (num_traits::ToPrimitive::to_usize(&below).unwrap_or(0).min(last), place - below)
}

/// The positions of the two elements between which a quantile lies, the lower one first: the `at`th
/// in order, and the next one, if there is one. If the line has a NaN, both are the position of the
/// first NaN.
fn neighbours<T: Real>(line: &[T], at: usize, keys: &mut KeyMemory) -> (usize, usize) {
    if let Some(nan) = line.iter().position(|value| value.is_nan()) {
        return (nan, nan);
    }
    if const { T::SORT_KEY.has_keys() } {
        let (low, high) = T::SORT_KEY.line(line, false, keys).neighbours(at);
        return (low, high.unwrap_or(low));
    }
    let order = sorted(line, false, line.len());
    (order[at], order[(at + 1).min(line.len() - 1)])
}

/// Elements and their positions on lines as results. The positions are kept if the derivative needs
/// them.
fn chosen<T: Element>(found: Vec<(T, usize)>, keeps: bool, both: bool) -> StepResults {
    let (values, at): (Vec<_>, Vec<usize>) = found.into_iter().unzip();
    let results = StepResults::one(values);
    #[cfg(feature = "std")]
    let results = if keeps { results.keeping(at.clone()) } else { results };
    #[cfg(not(feature = "std"))]
    let _ = keeps;
    if both { results.and(at) } else { results }
}

/// The derivative of `count` elements chosen from each line of `len`: it goes to the positions of
/// these elements.
#[cfg(feature = "std")]
fn pull_chosen(step: &Pulled<'_>, len: usize, count: usize) -> Result<Vec<(Arc<Node>, Part)>, Error> {
    let field = taken(step, len, count, 0)?;
    step.sum(&[Part { field, place: StridedPlace::strided(0, [count as isize, 1]) }])
}

/// The elements of the operand at the positions that the step kept, `count` for each line of `len`,
/// from index `from` of these positions on.
#[cfg(feature = "std")]
fn taken(step: &Pulled<'_>, len: usize, count: usize, from: usize) -> Result<Field, Error> {
    let held = step.operands[0].memory().expect("an operand of a step is in memory");
    let kept = step.kept.expect("the step keeps positions");
    let lines = held.len().checked_div(len).unwrap_or(0);
    let sizes = [lines, count];
    let index = Field::held(&sizes, kept, StridedPlace::strided(from as isize, [count as isize, 1]));
    let table = Some(Box::new(Table::computed(index, len, &[0, 1])?));
    Ok(Field::held(
        &sizes,
        held,
        StridedPlace { offset: 0, strides: [len as isize, 0].into_iter().collect(), table },
    ))
}

/// Computes `count` elements for each line of `len`, on several threads. Each thread has memory `M`
/// for its lines.
fn each_line<T: Element, U: Element, M: Default>(
    data: &[T],
    len: usize,
    count: usize,
    threads: usize,
    work: impl Fn(&[T], &mut M, &mut [U]) + Send + Sync,
) -> Result<Vec<U>, Error> {
    let lines = data.len().checked_div(len).unwrap_or(0);
    let total = lines * count;
    let mut out = reserve(total)?;
    out.resize(total, U::default());
    if total > 0 {
        let each = lines.div_ceil(threads);
        let parts: Vec<_> = out.chunks_mut(each * count).enumerate().collect();
        threads::each(parts, |(part, out)| {
            let mut memory = M::default();
            for (at, out) in out.chunks_exact_mut(count).enumerate() {
                let start = (part * each + at) * len;
                work(&data[start..start + len], &mut memory, out);
            }
        });
    }
    Ok(out)
}

/// Works on each line of `len` elements in place, on several threads. Each thread has memory `M` for
/// its lines.
fn in_place<T: Element, M: Default>(
    data: &mut [T],
    len: usize,
    threads: usize,
    work: impl Fn(&mut [T], &mut M) + Send + Sync,
) {
    if data.is_empty() {
        return;
    }
    let lines = data.len() / len;
    let chunks: Vec<_> = data.chunks_mut(lines.div_ceil(threads) * len).collect();
    threads::each(chunks, |chunk| {
        let mut memory = M::default();
        chunk.chunks_exact_mut(len).for_each(|line| work(line, &mut memory));
    });
}
