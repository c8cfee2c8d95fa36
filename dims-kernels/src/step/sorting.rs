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

/// The order for `min`: NaN is less than all other elements.
fn ascending_nan_first<T: Ordered>(a: &T, b: &T) -> Ordering {
    match (a.is_nan_value(), b.is_nan_value()) {
        (false, false) => ascending(a, b),
        (a, b) => b.cmp(&a),
    }
}

/// Lines of at most this many elements are sorted by insertion, without further memory.
const SHORT: usize = 16;

/// Sorts items by their elements, which `element` returns. Items with equal elements keep their
/// order.
#[cfg_attr(not(unoptimized), inline(always))]
fn insert_all<T: Ordered, I: Copy>(items: &mut [I], descending: bool, element: impl Fn(I) -> T) {
    let is_less = |a: T, b: T| !a.is_nan_value() && (b.is_nan_value() || a < b);
    for at in 1..items.len() {
        let item = items[at];
        let own = element(item);
        let mut place = at;
        while place > 0 {
            let other = element(items[place - 1]);
            if !(if descending { is_less(other, own) } else { is_less(own, other) }) {
                break;
            }
            items[place] = items[place - 1];
            place -= 1;
        }
        items[place] = item;
    }
}

/// The elements of a line of at most [`SHORT`] elements and their positions, in order.
fn inserted<T: Ordered>(line: &[T], descending: bool) -> [(T, u8); SHORT] {
    let mut items = [(T::default(), 0); SHORT];
    for (item, at) in items.iter_mut().zip(line.iter().zip(0..)) {
        *item = (*at.0, at.1);
    }
    insert_all(&mut items[..line.len()], descending, |(element, _)| element);
    items
}

/// Memory for sorting a line. It is reused for each line.
struct LineMemory {
    /// For types that have keys.
    keys: KeyMemory,
    /// Positions, for types without keys.
    order: Vec<usize>,
}

impl LineMemory {
    /// For lines of `len` elements.
    fn new<T: Ordered>(len: usize) -> Result<Self, Error> {
        if len <= SHORT {
            return Ok(LineMemory { keys: KeyMemory::default(), order: Vec::new() });
        }
        if const { T::SORT_KEY.has_keys() } {
            let (short, long) = if T::SORT_KEY.is_short_line(len) { (len, 0) } else { (0, len) };
            let keys = KeyMemory { short: reserve(short)?, long: reserve(long)? };
            return Ok(LineMemory { keys, order: Vec::new() });
        }
        Ok(LineMemory { keys: KeyMemory::default(), order: reserve(len)? })
    }
}

/// The positions of the `count` elements of a line that come first in order, sorted by comparisons.
fn compared<'m, T: Ordered>(
    line: &[T],
    descending: bool,
    count: usize,
    order: &'m mut Vec<usize>,
) -> &'m [usize] {
    order.clear();
    order.extend(0..line.len());
    // All values of a zero-sized type are equal.
    if size_of::<T>() > 0 {
        let by = |&a: &usize, &b: &usize| {
            let order = ascending(&line[a], &line[b]);
            (if descending { order.reverse() } else { order }).then(a.cmp(&b))
        };
        if count < order.len() {
            order.select_nth_unstable_by(count, by);
        }
        order[..count].sort_unstable_by(by);
    }
    &order[..count]
}

/// Sorts a line, and fills `out` with `value(element, position)` of its first elements. Equal
/// elements keep their order.
fn write_first<T: Ordered, U>(
    line: &[T],
    descending: bool,
    memory: &mut LineMemory,
    out: &mut [U],
    value: impl Fn(T, usize) -> U,
) {
    let count = out.len();
    let mut out = out.iter_mut();
    let mut write = |at: usize| {
        if let Some(out) = out.next() {
            *out = value(line[at], at);
        }
    };
    if line.len() <= SHORT {
        inserted(line, descending)[..count].iter().for_each(|&(_, at)| write(at.into()));
    } else if const { T::SORT_KEY.has_keys() } {
        T::SORT_KEY.line(line, descending, &mut memory.keys).each_first(count, write);
    } else {
        compared(line, descending, count, &mut memory.order).iter().for_each(|&at| write(at));
    }
}

/// The results of a [`SortLines`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SortWanted {
    /// The elements in order.
    Values,
    /// The position of each element on its line before sorting.
    Positions,
    /// First the elements, then the positions.
    Both,
}

/// Sorts the elements of each line; equal elements keep their order. Operand and results: `lines`
/// lines of `len` elements.
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
            let memory =
                || Ok((LineMemory::new::<T>(len)?, reserve::<T>(if len > SHORT { len } else { 0 })?));
            in_place(&mut data, len, threads, memory, |line, (memory, old)| {
                if line.len() <= SHORT {
                    return insert_all(line, descending, |element| element);
                }
                old.clear();
                old.extend_from_slice(line);
                write_first(old, descending, memory, line, |value, _| value);
            })?;
            return Ok(StepResults::one(data));
        }
        let x = operands.of::<T>(0);
        if wanted == SortWanted::Positions {
            let sort = |line: &[T], memory: &mut _, out: &mut _| {
                write_first(line, descending, memory, out, |_, at| at);
            };
            let positions = each_line(x, len, len, threads, || LineMemory::new::<T>(len), sort)?;
            return Ok(StepResults::one(positions));
        }
        let sort = |line: &[T], memory: &mut _, out: &mut _| {
            write_first(line, descending, memory, out, |value, at| (value, at));
        };
        let found = each_line(x, len, len, threads, || LineMemory::new::<T>(len), sort)?;
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
        let found = each_line(operands.of::<T>(0), self.len, 1, threads, || Ok(()), first)?;
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
        let greatest = |line: &[T], memory: &mut _, out: &mut _| {
            write_first(line, true, memory, out, |value, at| (value, at));
        };
        let memory = || LineMemory::new::<T>(self.len);
        let found = each_line(operands.of::<T>(0), self.len, self.k, threads, memory, greatest)?;
        Ok(chosen(found, operands.keeps(), true))
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        pull_chosen(step, self.len, self.k)
    }
}

/// The quantile `q` of each line, interpolated linearly between two elements. It is NaN if the line
/// has a NaN.
#[derive(Clone, Debug)]
pub struct Quantile<T> {
    /// The name in plans: `median` or `quantile`.
    pub name: &'static str,
    /// The number of lines.
    pub lines: usize,
    /// The number of elements of a line: at least one, if there are lines.
    pub len: usize,
    /// The quantile, from 0 to 1.
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
        let memory = || LineMemory::new::<T>(self.len);
        let quantile = |line: &[T], memory: &mut _, out: &mut [T]| out[0] = quantile_of(line, q, memory);
        let x = operands.of::<T>(0);
        let results = StepResults::one(each_line(x, self.len, 1, threads, memory, quantile)?);
        #[cfg(feature = "std")]
        if operands.keeps() {
            let at = place_of(self.len, q).0;
            let mut memory = memory()?;
            let (mut low, mut high): (Vec<_>, Vec<_>) =
                x.chunks_exact(self.len.max(1)).map(|line| neighbors(line, at, &mut memory)).unzip();
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

fn quantile_of<T: Real>(line: &[T], q: T, memory: &mut LineMemory) -> T {
    let (at, share) = place_of(line.len(), q);
    let (low, high) = neighbors(line, at, memory);
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
    if last <= 1_usize << f32::MANTISSA_DIGITS {
        return place_before(last, q.widen());
    }
    // For longer lines, `f32` cannot represent every position.
    let q = num_traits::ToPrimitive::to_f64(&q).expect("every float converts to `f64`");
    let (at, share) = place_before(last, q);
    (at, num_traits::NumCast::from(share).expect("the share converts to every float type"))
}

/// The rank and the weight that [`place_of`] returns, computed in the type of `q`.
fn place_before<T: Real>(last: usize, q: T) -> (usize, T) {
    let place = q * <T as num_traits::NumCast>::from(last).expect("every size converts to a float");
    let below = num_traits::Float::floor(place);
    (num_traits::ToPrimitive::to_usize(&below).unwrap_or(0).min(last), place - below)
}

/// The positions of the `at`th element in ascending order and of the next one; the same position
/// twice if there is no next one. If the line has a NaN, both are the position of the first NaN.
fn neighbors<T: Real>(line: &[T], at: usize, memory: &mut LineMemory) -> (usize, usize) {
    if let Some(nan) = line.iter().position(|value| value.is_nan()) {
        return (nan, nan);
    }
    let next = (at + 1).min(line.len() - 1);
    if line.len() <= SHORT {
        let order = inserted(line, false);
        (order[at].1.into(), order[next].1.into())
    } else if const { T::SORT_KEY.has_keys() } {
        let (low, high) = T::SORT_KEY.line(line, false, &mut memory.keys).neighbors(at);
        (low, high.unwrap_or(low))
    } else {
        let order = compared(line, false, line.len(), &mut memory.order);
        (order[at], order[next])
    }
}

/// A result with the elements and, if `both`, a second one with their positions on their lines. If
/// `keeps`, the positions are also kept for the derivative.
fn chosen<T: Element>(found: Vec<(T, usize)>, keeps: bool, both: bool) -> StepResults {
    let (values, at): (Vec<_>, Vec<usize>) = found.into_iter().unzip();
    let results = StepResults::one(values);
    #[cfg(feature = "std")]
    let results = if keeps { results.keeping(at.clone()) } else { results };
    #[cfg(not(feature = "std"))]
    let _ = keeps;
    if both { results.and(at) } else { results }
}

/// The derivative of `count` elements chosen from each line of `len`.
#[cfg(feature = "std")]
fn pull_chosen(step: &Pulled<'_>, len: usize, count: usize) -> Result<Vec<(Arc<Node>, Part)>, Error> {
    let field = taken(step, len, count, 0)?;
    step.sum(&[Part { field, place: StridedPlace::strided(0, [count as isize, 1]) }])
}

/// The elements of the operand at the positions that the step kept, starting with the kept position
/// at index `from`: `count` for each line of `len` elements.
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

/// Computes `count` elements for each line of `len`, on at most `threads` threads. Each thread has
/// its own memory for lines.
fn each_line<T: Element, U: Element, M: Send>(
    data: &[T],
    len: usize,
    count: usize,
    threads: usize,
    memory: impl Fn() -> Result<M, Error>,
    work: impl Fn(&[T], &mut M, &mut [U]) + Send + Sync,
) -> Result<Vec<U>, Error> {
    let lines = data.len().checked_div(len).unwrap_or(0);
    let total = lines * count;
    let mut out = reserve(total)?;
    out.resize(total, U::default());
    if total > 0 {
        let each = lines.div_ceil(threads);
        let parts = data.chunks(each * len).zip(out.chunks_mut(each * count));
        let parts: Vec<_> =
            parts.map(|(lines, out)| Ok((lines, out, memory()?))).collect::<Result<_, Error>>()?;
        threads::each(parts, |(lines, out, mut memory)| {
            for (line, out) in lines.chunks_exact(len).zip(out.chunks_exact_mut(count)) {
                work(line, &mut memory, out);
            }
        });
    }
    Ok(out)
}

/// Works on each line of `len` elements in place, on at most `threads` threads. Each thread has its
/// own memory for lines.
fn in_place<T: Element, M: Send>(
    data: &mut [T],
    len: usize,
    threads: usize,
    memory: impl Fn() -> Result<M, Error>,
    work: impl Fn(&mut [T], &mut M) + Send + Sync,
) -> Result<(), Error> {
    if data.is_empty() {
        return Ok(());
    }
    let lines = data.len() / len;
    let parts = data.chunks_mut(lines.div_ceil(threads) * len);
    let parts: Vec<_> = parts.map(|part| Ok((part, memory()?))).collect::<Result<_, Error>>()?;
    threads::each(parts, |(part, mut memory)| {
        part.chunks_exact_mut(len).for_each(|line| work(line, &mut memory));
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{LineMemory, SHORT, ascending, compared, neighbors, place_of, write_first};
    use alloc::vec;
    use alloc::vec::Vec;

    /// A line with equal elements, with zeros of both signs, and with NaNs if it is long enough.
    fn line(len: usize) -> Vec<f32> {
        let values = [2.0, -0.0, 1.0, f32::INFINITY, 0.0, -3.0, 2.0, f32::NAN, -3.0];
        (0..len).map(|at| values[(at * at + 3 * at) % 31 % values.len()]).collect()
    }

    #[test]
    fn short_and_long_lines_are_sorted_alike() {
        for len in 0..2 * SHORT + 2 {
            let line = line(len);
            let mut memory = LineMemory::new::<f32>(len).unwrap();
            for descending in [false, true] {
                let mut expected: Vec<usize> = (0..len).collect();
                expected.sort_by(|&a, &b| {
                    let order = ascending(&line[a], &line[b]);
                    if descending { order.reverse() } else { order }
                });
                for count in 0..=len {
                    let mut found = vec![usize::MAX; count];
                    write_first(&line, descending, &mut memory, &mut found, |_, at| at);
                    assert_eq!(found, expected[..count], "{line:?}");
                    assert_eq!(
                        compared(&line, descending, count, &mut Vec::new()),
                        &expected[..count],
                        "{line:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn neighbors_are_next_to_each_other_in_order() {
        for len in 1..2 * SHORT + 2 {
            let line: Vec<f32> = line(len).into_iter().map(|x| if x.is_nan() { 7.0 } else { x }).collect();
            let mut memory = LineMemory::new::<f32>(len).unwrap();
            let mut order: Vec<usize> = (0..len).collect();
            order.sort_by(|&a, &b| ascending(&line[a], &line[b]));
            for at in 0..len {
                let found = neighbors(&line, at, &mut memory);
                assert_eq!(found, (order[at], order[(at + 1).min(len - 1)]), "{line:?}");
            }
        }
    }

    /// `f32` has every integer up to 2^24.
    #[test]
    fn quantiles_of_long_lines_are_between_the_right_elements() {
        const LEN: usize = (1 << 24) + 1;
        assert_eq!(place_of(LEN, 0.5_f32), (1 << 23, 0.0));
        assert_eq!(place_of(LEN + 1, 0.5_f32), (1 << 23, 0.5));
        assert_eq!(place_of(LEN + 1, 0.5_f64), (1 << 23, 0.5));
        assert_eq!(place_of(LEN + 1, 1.0_f32), (LEN, 0.0));
        assert_eq!(place_of(LEN + 1, 0.25_f32), (1 << 22, 0.25));
        #[cfg(feature = "half")]
        assert_eq!(place_of(LEN + 1, half::f16::from_f32(0.5)), (1 << 23, 0.5));
    }
}
