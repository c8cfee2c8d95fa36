//! Cumulative operations along lines, such as running sums: each element becomes the combination of
//! all elements up to it.

use crate::error::Error;
use crate::machine::isa::Isa;
use crate::ops::code::LineWork;
use crate::scalar::{Analytic, Num, Ordered, Real};
use crate::scan::{LineOp, ScanInput, along};
use alloc::vec::Vec;

/// Combines elements one by one, in the type to which `widen` converts them.
#[cfg_attr(not(unoptimized), inline(always))]
fn running<T: Copy, W: Copy>(
    block: &mut [T],
    inner: usize,
    widen: impl Fn(T) -> W,
    combine: impl Fn(W, W) -> W,
    narrow: impl Fn(W) -> T,
) {
    let (first, rest) = block.split_at_mut(inner.min(block.len()));
    if let [first] = first {
        let mut state = widen(*first);
        for value in rest {
            state = combine(state, widen(*value));
            *value = narrow(state);
        }
        return;
    }
    if rest.is_empty() {
        return;
    }
    let mut states: Vec<W> = first.iter().map(|&value| widen(value)).collect();
    for row in rest.chunks_exact_mut(inner) {
        for (value, state) in row.iter_mut().zip(&mut states) {
            *state = combine(*state, widen(*value));
            *value = narrow(*state);
        }
    }
}

/// After this number of elements, the recent sum is added to the sum of all earlier elements, so
/// rounding errors are those of short sums.
const SETTLED: usize = 128;

/// Adds the recent sum to the sum of all earlier elements. The rounding error stays in the recent
/// sum (D. E. Knuth's two-sum).
#[cfg_attr(not(unoptimized), inline(always))]
#[allow(clippy::eq_op)] // only NaN is unequal to itself
fn settle<A: Num>(before: &mut A, recent: &mut A) {
    let total = before.add(*recent);
    let part = total.sub(*before);
    let rest = before.sub(total.sub(part)).add(recent.sub(part));
    *before = total;
    // An infinite sum has no rounding error.
    *recent = if rest == rest { rest } else { A::ZERO };
}

/// Running sums of floats or complex numbers.
#[cfg_attr(not(unoptimized), inline(always))]
fn running_sums<T: Num>(block: &mut [T], inner: usize) {
    let (first, rest) = block.split_at_mut(inner.min(block.len()));
    if let [first] = first {
        let (mut before, mut recent) = (T::Acc::ZERO, first.widen());
        for part in rest.chunks_mut(SETTLED) {
            let mut fours = part.chunks_exact_mut(4);
            for four in &mut fours {
                let a = recent.add(four[0].widen());
                let b = a.add(four[1].widen());
                let c = b.add(four[2].widen());
                recent = c.add(four[3].widen());
                for (value, sum) in four.iter_mut().zip([a, b, c, recent]) {
                    *value = T::narrow(before.add(sum));
                }
            }
            for value in fours.into_remainder() {
                recent = recent.add(value.widen());
                *value = T::narrow(before.add(recent));
            }
            settle(&mut before, &mut recent);
        }
        return;
    }
    if rest.is_empty() {
        return;
    }
    let mut recent: Vec<T::Acc> = first.iter().map(|&value| value.widen()).collect();
    let mut before = vec![T::Acc::ZERO; inner];
    for rows in rest.chunks_mut(SETTLED * inner) {
        // Two rows at a time, so that the sums in `recent` and `before` are read half as often.
        let mut pairs = rows.chunks_exact_mut(2 * inner);
        for pair in &mut pairs {
            let (row, next) = pair.split_at_mut(inner);
            for (((value, next), recent), &before) in row.iter_mut().zip(next).zip(&mut recent).zip(&before) {
                let sum = recent.add(value.widen());
                *recent = sum.add(next.widen());
                *value = T::narrow(before.add(sum));
                *next = T::narrow(before.add(*recent));
            }
        }
        let last = pairs.into_remainder().iter_mut();
        for ((value, recent), &before) in last.zip(&mut recent).zip(&before) {
            *recent = recent.add(value.widen());
            *value = T::narrow(before.add(*recent));
        }
        before.iter_mut().zip(&mut recent).for_each(|(before, recent)| settle(before, recent));
    }
}

along!(cumulate_blocks, cumulate_memory, Num, Cumulate);

/// Running sums: each element becomes the sum of the elements up to it.
#[derive(Clone, Copy)]
pub struct Cumulate;

impl<T: Num> LineOp<T> for Cumulate {
    const NAME: &'static str = "cumsum";

    fn derivative(&self) -> LineWork {
        LineWork::Cumulate
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &mut [T], inner: usize) {
        // Types that cannot divide by 0 are integers, whose sums are exact.
        if const { T::DIVIDES_BY_ZERO } {
            running_sums(block, inner);
        } else {
            running(block, inner, T::widen, T::Acc::add, T::narrow);
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn blocks(self, data: &mut [T], block: usize, inner: usize) {
        cumulate_blocks(self, data, block, inner);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn collect_memory(self, memory: ScanInput<'_, T>) -> Result<Vec<T>, Error> {
        cumulate_memory(self, memory)
    }
}

/// Running products.
#[derive(Clone, Copy)]
pub struct CumulateProduct;

impl<T: Num> LineOp<T> for CumulateProduct {
    const NAME: &'static str = "cumprod";

    fn derivative(&self) -> LineWork {
        LineWork::CumulateProduct
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &mut [T], inner: usize) {
        running(block, inner, T::widen, T::Acc::mul, T::narrow);
    }
}

/// The greatest (`GREATEST`) or least element so far; NaN from the first NaN on.
#[derive(Clone, Copy)]
pub struct CumulateBest<const GREATEST: bool>;

impl<T: Ordered, const GREATEST: bool> LineOp<T> for CumulateBest<GREATEST> {
    const NAME: &'static str = if GREATEST { "cummax" } else { "cummin" };

    fn derivative(&self) -> LineWork {
        LineWork::CumulateBest { greatest: GREATEST }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &mut [T], inner: usize) {
        for at in inner..block.len() {
            let (last, own) = (block[at - inner], block[at]);
            block[at] = if GREATEST { last.maximum(own) } else { last.minimum(own) };
        }
    }
}

/// `ln(e^x + ..)` of the elements so far, as `pivot + ln(1 + others)`: the pivot is one of the
/// elements, and `others`, stored as `before + recent`, is the sum of `e^(x - pivot)` over all
/// other elements.
#[derive(Clone, Copy)]
struct LogOfSum<A> {
    pivot: A,
    before: A,
    recent: A,
}

impl<A: Real> LogOfSum<A> {
    fn new(first: A) -> Self {
        LogOfSum { pivot: first, before: A::zero(), recent: A::zero() }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn push<I: Isa>(&mut self, value: A) -> A {
        let others = self.before + self.recent;
        let above = value - self.pivot;
        // A greater element becomes the pivot. If the sum is large, only a much greater element
        // does: each new pivot rounds the sum once more.
        let is_large = others >= A::from_usize(64);
        if above > if is_large { A::from_usize(4) } else { A::zero() } {
            self.before = (others + A::one()) * A::exp_down::<I>(-above);
            self.recent = A::zero();
            self.pivot = value;
        } else if value == self.pivot {
            // The difference of equal infinities is NaN.
            self.recent = self.recent + A::one();
        } else {
            self.recent = self.recent + Analytic::exp::<I>(above);
        }
        let others = self.before + self.recent;
        // This crate's logarithm is faster than `ln_1p`, but adding 1 must not lose precision.
        let ln = if others >= A::one() { Analytic::ln::<I>(A::one() + others) } else { others.ln_1p() };
        self.pivot + ln
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn settle(&mut self) {
        settle(&mut self.before, &mut self.recent);
    }
}

/// The logarithm of the running sum of exponentials.
#[derive(Clone, Copy)]
pub struct CumulateLogSumExp;

impl<T: Real> LineOp<T> for CumulateLogSumExp {
    const NAME: &'static str = "logcumsumexp";

    fn derivative(&self) -> LineWork {
        LineWork::CumulateLogSumExp
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &mut [T], inner: usize) {
        let (first, rest) = block.split_at_mut(inner.min(block.len()));
        if rest.is_empty() {
            return;
        }
        let mut states: Vec<_> = first.iter().map(|&value| LogOfSum::new(value.widen())).collect();
        for rows in rest.chunks_mut(SETTLED * inner) {
            for row in rows.chunks_exact_mut(inner) {
                for (value, state) in row.iter_mut().zip(&mut states) {
                    *value = T::narrow(state.push::<I>(value.widen()));
                }
            }
            states.iter_mut().for_each(LogOfSum::settle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::isa::Baseline;

    /// Processes `inner` equal interleaved lines, and returns the results of the last one.
    fn lines<T: Copy, W: LineOp<T>>(work: W, values: &[T], inner: usize) -> Vec<T> {
        let mut block: Vec<T> = values.iter().flat_map(|&value| vec![value; inner]).collect();
        work.block::<Baseline>(&mut block, inner);
        block.chunks(inner).map(|row| row[inner - 1]).collect()
    }

    #[test]
    fn running_sums_are_as_accurate_as_sums() {
        let step = 5e-4_f32;
        for (len, inner) in [(1_000_003, 1), (100_003, 2), (100_004, 3)] {
            let sums = lines(Cumulate, &vec![step; len], inner);
            for (at, sum) in sums.into_iter().enumerate() {
                let exact = f64::from(step) * (at + 1) as f64;
                assert!((f64::from(sum) / exact - 1.0).abs() < 3e-6, "{sum} instead of {exact}");
            }
        }
        let waves: Vec<f32> = (0..300_000).map(|at| (at % 2003 * 7919 % 2003) as f32 * 1e-3 - 0.9).collect();
        let mut exact = 0.0;
        for (sum, wave) in lines(Cumulate, &waves, 1).into_iter().zip(&waves) {
            exact += f64::from(*wave);
            assert!((f64::from(sum) - exact).abs() < 3e-6 * (1.0 + exact.abs()), "{sum} instead of {exact}");
        }
    }

    #[test]
    fn running_logarithms_of_sums_are_accurate() {
        let check = |values: &[f32], inner: usize| {
            let (mut sum, mut shift) = (0.0_f64, f64::NEG_INFINITY);
            for (found, &value) in lines(CumulateLogSumExp, values, inner).into_iter().zip(values) {
                let greatest = shift.max(f64::from(value));
                sum = sum * (shift - greatest).exp() + (f64::from(value) - greatest).exp();
                shift = greatest;
                let exact = shift + sum.ln();
                let near = (f64::from(found) - exact).abs() < 1e-6 * exact.abs().max(1.0);
                assert!(near, "{found} instead of {exact}");
            }
        };
        for inner in [1, 3] {
            check(&vec![0.25; 300_000], inner);
            // Each element is a little greater than the one before it.
            check(&(0..300_000).map(|at| at as f32 * 1e-5).collect::<Vec<_>>(), inner);
            check(&(0..300).map(|at| (at * 17 % 101) as f32 * 0.5 - 20.0).collect::<Vec<_>>(), inner);
            check(&[-20.0, 1e-3, -30.0, 2.0, 90.0, -90.0], inner);
        }
    }

    #[test]
    fn what_is_infinite_stays() {
        let (nan, infinity) = (f32::NAN, f32::INFINITY);
        let bits = |values: Vec<f32>| -> Vec<u32> { values.into_iter().map(f32::to_bits).collect() };
        let mut values = vec![1.0; 300];
        values[100] = infinity;
        let sums = lines(Cumulate, &values, 1);
        assert!(
            sums[..100].iter().all(|sum| sum.is_finite()) && sums[100..].iter().all(|&sum| sum == infinity)
        );
        values[200] = -infinity;
        assert!(lines(Cumulate, &values, 2)[200..].iter().all(|sum| sum.is_nan()));
        let logs = |values: &[f32]| lines(CumulateLogSumExp, values, 1);
        let least = -infinity;
        assert_eq!(bits(logs(&[least, least, 2.0, least])), bits(vec![least, least, 2.0, 2.0]));
        assert_eq!(bits(logs(&[1.0, infinity, infinity, 5.0, least])[1..].to_vec()), bits(vec![infinity; 4]));
        assert!(logs(&[1.0, nan, infinity, 5.0])[1..].iter().all(|value| value.is_nan()));
        assert!(logs(&[nan, 1.0, infinity])[..].iter().all(|value| value.is_nan()));
    }
}
