//! The built-in reductions.

use crate::compiled::compiled;
use crate::error::Error;
use crate::machine::isa::Isa;
use crate::memory::destination::Destination;
use crate::ops::code::{Number, ReductionKind};
use crate::reduce::Reducer;
use crate::reduce::fold::{VECTOR, fold};
use crate::reduce::input::ReduceInput;
use crate::scalar::{Analytic, Magnitude, Num, Ordered, Real};
use alloc::vec::Vec;
use core::marker::PhantomData;

/// A reduction of a [`ReduceInput`] as a function, compiled here for the types after `for`.
macro_rules! in_memory {
    (for $($common:ident)+: $name:ident, $bound:path, $reducer:ty => $out:ty) => {
        compiled! {
            for $($common)+:
            fn $name<'a, T: $bound>(
                memory: ReduceInput<'a, T>,
                to: Destination<'a, $out>,
                reducer: $reducer,
            ) -> Result<Vec<$out>, Error> {
                memory.reduce(to, reducer)
            }
        }
    };
}

in_memory!(for f32 f64 i32 i64 isize usize: sum_memory, Num, Sum => T);
in_memory!(for f32 f64: prod_memory, Num, Prod => T);
in_memory!(for f32 f64: mean_memory, Analytic, Mean => T);
in_memory!(for f32 f64: max_memory, Ordered, Max => T);
in_memory!(for f32 f64: min_memory, Ordered, Min => T);
in_memory!(for f32 f64: argmax_memory, Ordered, ArgExtremum<true> => usize);
in_memory!(for f32 f64: argmin_memory, Ordered, ArgExtremum<false> => usize);
in_memory!(for f32 f64: variance_memory, Real, Variance<T> => T);
in_memory!(for f32 f64: norm_memory, Magnitude<Abs: Real>, Norm => <T as Magnitude>::Abs);
in_memory!(for f32 f64: logsumexp_memory, Real, LogSumExp<T> => T);

macro_rules! reduces_memory_by {
    ($name:ident) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn reduce_memory(
            self,
            memory: ReduceInput<'_, T>,
            to: Destination<'_, Self::Out>,
        ) -> Result<Vec<Self::Out>, Error> {
            $name(memory, to, self)
        }
    };
}

mod bools;
pub use bools::{All, Any, Count};

/// A sum.
#[derive(Clone, Copy)]
pub struct Sum {
    /// How many times each element is added.
    pub times: usize,
}

impl Sum {
    /// A sum to which each element is added once.
    pub const ONCE: Self = Sum { times: 1 };
}

impl<T: Num> Reducer<T> for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }
    type Acc = T::Acc;
    type Out = T;
    const REPEATS: bool = true;
    fn repeated(self, times: usize) -> Self {
        Sum { times }
    }
    fn derivative(&self) -> ReductionKind {
        ReductionKind::Sum
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> T::Acc {
        T::Acc::ZERO
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: T::Acc, value: T, _: usize) -> T::Acc {
        acc.add(value.widen())
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        a.add(b)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: T::Acc, _: usize) -> T {
        // A half precision is rounded once, after the multiplication.
        T::narrow(if self.times == 1 { acc } else { times(acc, self.times) })
    }
    reduces_memory_by!(sum_memory);
}

/// A product.
#[derive(Clone, Copy)]
pub struct Prod;

impl<T: Num> Reducer<T> for Prod {
    fn name(&self) -> &'static str {
        "prod"
    }
    type Acc = T::Acc;
    type Out = T;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::Prod
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> T::Acc {
        T::Acc::ONE
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: T::Acc, value: T, _: usize) -> T::Acc {
        acc.mul(value.widen())
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        a.mul(b)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: T::Acc, _: usize) -> T {
        T::narrow(acc)
    }
    reduces_memory_by!(prod_memory);
}

/// A mean.
#[derive(Clone, Copy)]
pub struct Mean;

impl<T: Analytic> Reducer<T> for Mean {
    fn name(&self) -> &'static str {
        "mean"
    }
    type Acc = T::Acc;
    type Out = T;
    const REPEATS: bool = true;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::Mean
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> T::Acc {
        T::Acc::ZERO
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: T::Acc, value: T, _: usize) -> T::Acc {
        acc.add(value.widen())
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: T::Acc, b: T::Acc) -> T::Acc {
        a.add(b)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: T::Acc, count: usize) -> T {
        T::mean_of(acc, count)
    }
    reduces_memory_by!(mean_memory);
}

/// The greatest element.
#[derive(Clone, Copy)]
pub struct Max;

impl<T: Ordered> Reducer<T> for Max {
    fn name(&self) -> &'static str {
        "max"
    }
    type Acc = T;
    type Out = T;
    const REPEATS: bool = true;
    const ALWAYS_BY_ROWS: bool = true;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::Max
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> T {
        T::LOWEST
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: T, value: T, _: usize) -> T {
        acc.maximum(value)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: T, b: T) -> T {
        a.maximum(b)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: T, _: usize) -> T {
        acc
    }
    reduces_memory_by!(max_memory);
}

/// The least element.
#[derive(Clone, Copy)]
pub struct Min;

impl<T: Ordered> Reducer<T> for Min {
    fn name(&self) -> &'static str {
        "min"
    }
    type Acc = T;
    type Out = T;
    const REPEATS: bool = true;
    const ALWAYS_BY_ROWS: bool = true;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::Min
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> T {
        T::HIGHEST
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: T, value: T, _: usize) -> T {
        acc.minimum(value)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: T, b: T) -> T {
        a.minimum(b)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: T, _: usize) -> T {
        acc
    }
    reduces_memory_by!(min_memory);
}

/// The index of the greatest (`GREATEST`) or least element: the first one if several are equal, and
/// the first NaN if there is any.
#[derive(Clone, Copy)]
pub struct ArgExtremum<const GREATEST: bool>;

impl<const GREATEST: bool> ArgExtremum<GREATEST> {
    /// Whether `value` is chosen over `than`, whichever of them comes first.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_better<T: Ordered>(value: T, than: T) -> bool {
        let beyond = if GREATEST { value > than } else { value < than };
        beyond | (value.is_nan_value() & !than.is_nan_value())
    }
}

impl<T: Ordered, const GREATEST: bool> Reducer<T> for ArgExtremum<GREATEST> {
    fn name(&self) -> &'static str {
        if GREATEST { "argmax" } else { "argmin" }
    }
    /// The element and its index, which is `usize::MAX` if there was no element.
    type Acc = (T, usize);
    type Out = usize;
    const COUNTS: bool = true;
    const AT_ONCE: bool = true;
    // For larger elements, the loops that do not run by rows are faster.
    const ALWAYS_BY_ROWS: bool = size_of::<T>() <= 4;
    fn derivative(&self) -> ReductionKind {
        if GREATEST { ReductionKind::ArgMax } else { ReductionKind::ArgMin }
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> Self::Acc {
        (T::LOWEST, usize::MAX)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: Self::Acc, value: T, at: usize) -> Self::Acc {
        if (acc.1 == usize::MAX) | Self::is_better(value, acc.0) { (value, at) } else { acc }
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
        if a.1 == usize::MAX || b.1 == usize::MAX {
            return if a.1 == usize::MAX { b } else { a };
        }
        let alike = !Self::is_better(a.0, b.0) && !Self::is_better(b.0, a.0);
        let first = if alike { a.1 < b.1 } else { Self::is_better(a.0, b.0) };
        if first { a } else { b }
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn line<I: Isa>(&self, values: &[T], first: usize) -> Self::Acc {
        let best = if GREATEST {
            fold(values, T::LOWEST, T::maximum, T::maximum)
        } else {
            fold(values, T::HIGHEST, T::minimum, T::minimum)
        };
        // If any element is NaN, `best` is NaN, which equals no element.
        let found = |value: &T| (*value == best) | (value.is_nan_value() & best.is_nan_value());
        let holds = |some: &[T]| some.iter().fold(false, |any, value| any | found(value));
        let (chunks, _) = values.as_chunks::<VECTOR>();
        let skipped = VECTOR * chunks.iter().position(|chunk| holds(chunk)).unwrap_or(chunks.len());
        match values[skipped..].iter().position(found) {
            Some(at) => (best, first + skipped + at),
            None => Reducer::<T>::start(self),
        }
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: Self::Acc, _: usize) -> usize {
        acc.1
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn reduce_memory(
        self,
        memory: ReduceInput<'_, T>,
        to: Destination<'_, usize>,
    ) -> Result<Vec<usize>, Error> {
        if GREATEST { argmax_memory(memory, to, ArgExtremum) } else { argmin_memory(memory, to, ArgExtremum) }
    }
}

/// The sum of the squared deviations from the mean, divided by `max(count - ddof, 0)`, or the
/// square root of that if `root` is set.
///
/// Contiguous elements are processed in two passes: a sum of differences from the first element,
/// and a sum of squared deviations. Single elements are added by Welford's update, and states are
/// joined by the pairwise update of Chan, Golub and LeVeque (1979).
#[derive(Clone, Copy)]
pub struct Variance<T> {
    /// Delta degrees of freedom.
    pub ddof: T,
    /// Whether to take the square root, which gives the standard deviation.
    pub root: bool,
}

impl<T: Real> Reducer<T> for Variance<T> {
    fn name(&self) -> &'static str {
        if self.root { "std" } else { "var" }
    }
    type Acc = (T::Wide, T::Wide, T::Wide);
    type Out = T;
    const AT_ONCE: bool = true;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::Variance { ddof: Number::float(self.ddof), root: self.root }
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> Self::Acc {
        (T::Wide::ZERO, T::Wide::ZERO, T::Wide::ZERO)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, (count, mean, squares): Self::Acc, value: T, _: usize) -> Self::Acc {
        let value = value.widen();
        let count = count + T::Wide::ONE;
        let delta = value - mean;
        let mean = mean + delta / count;
        (count, mean, squares + delta * (value - mean))
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
        if a.0 == T::Wide::ZERO || b.0 == T::Wide::ZERO {
            return if a.0 == T::Wide::ZERO { b } else { a };
        }
        let count = a.0 + b.0;
        let delta = b.1 - a.1;
        let share = b.0 / count;
        (count, a.1 + delta * share, a.2 + b.2 + delta * delta * a.0 * share)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn line<I: Isa>(&self, values: &[T], _: usize) -> Self::Acc {
        let Some(&first) = values.first() else { return Reducer::<T>::start(self) };
        let count = T::Wide::from_usize(values.len());
        let add = |a: T::Wide, b: T::Wide| a + b;
        // The difference between the mean and the first element: more precise than the mean, if all
        // elements are large and close together.
        let first = first.widen();
        let rest = fold(values, T::Wide::ZERO, |sum, value| sum + (value.widen() - first), add) / count;
        let square = |sum: T::Wide, value: T| {
            let delta = (value.widen() - first) - rest;
            sum + delta * delta
        };
        // In pieces: if many elements are equal, the rounding errors of one long sum all have the
        // same sign.
        let squares = values
            .chunks(256)
            .fold(T::Wide::ZERO, |sum, piece| sum + fold(piece, T::Wide::ZERO, square, add));
        (count, first + rest, squares)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: Self::Acc, count: usize) -> T {
        let divisor = T::Wide::from_usize(count) - self.ddof.widen();
        let variance = acc.2 / if divisor < T::Wide::ZERO { T::Wide::ZERO } else { divisor };
        T::narrow(if self.root { Analytic::sqrt(variance) } else { variance })
    }
    reduces_memory_by!(variance_memory);
}

/// The Euclidean norm, the square root of the sum of squared magnitudes.
#[derive(Clone, Copy)]
pub struct Norm;

impl<T: Magnitude<Abs: Real>> Reducer<T> for Norm {
    fn name(&self) -> &'static str {
        "norm"
    }
    type Acc = <T::Abs as Real>::Wide;
    type Out = T::Abs;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::Norm
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> Self::Acc {
        <T::Abs as Real>::Wide::ZERO
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: Self::Acc, value: T, _: usize) -> Self::Acc {
        let size = value.magnitude().widen();
        acc + size * size
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
        a + b
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: Self::Acc, _: usize) -> T::Abs {
        T::Abs::narrow(Analytic::sqrt(acc))
    }
    reduces_memory_by!(norm_memory);
}

/// The `p`-norm: the `p`th root of the sum of `p`th powers of magnitudes.
#[derive(Clone, Copy)]
pub struct NormP<T>(pub T);

impl<T: Real> Reducer<T> for NormP<T> {
    fn name(&self) -> &'static str {
        "norm_p"
    }
    type Acc = T::Wide;
    type Out = T;
    const BY_ROWS: bool = false;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::NormP(Number::float(self.0))
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> Self::Acc {
        T::Wide::ZERO
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: Self::Acc, value: T, _: usize) -> Self::Acc {
        acc + num_traits::Float::powf(num_traits::Float::abs(value.widen()), self.0.widen())
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
        a + b
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: Self::Acc, _: usize) -> T {
        T::narrow(num_traits::Float::powf(acc, num_traits::Float::recip(self.0.widen())))
    }
}

/// The cosine of the angle between two vectors, given as pairs of their elements. The field is the
/// least value of a norm: smaller norms are replaced by it.
#[derive(Clone, Copy)]
pub struct Cosine<T>(pub T);

impl<T: Real> Reducer<(T, T)> for Cosine<T> {
    fn name(&self) -> &'static str {
        "cosine_similarity"
    }
    type Acc = [T::Wide; 3];
    type Out = T;
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> Self::Acc {
        [T::Wide::ZERO; 3]
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, [xy, xx, yy]: Self::Acc, (x, y): (T, T), _: usize) -> Self::Acc {
        let (x, y) = (x.widen(), y.widen());
        [xy + x * y, xx + x * x, yy + y * y]
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
        [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, [xy, xx, yy]: Self::Acc, _: usize) -> T {
        let norm = |square: T::Wide| Analytic::sqrt(square).maximum(self.0.widen());
        T::narrow(xy / (norm(xx) * norm(yy)))
    }
}

/// `ln(sum of exp(x))`, with the greatest element factored out of the sum.
#[derive(Clone, Copy)]
pub struct LogSumExp<T>(pub PhantomData<T>);

impl<T: Real> Reducer<T> for LogSumExp<T> {
    fn name(&self) -> &'static str {
        "logsumexp"
    }
    type Acc = (T::Wide, T::Wide);
    type Out = T;
    const BY_ROWS: bool = false;
    const AT_ONCE: bool = true;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::LogSumExp
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> Self::Acc {
        (T::Wide::LOWEST, T::Wide::ZERO)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: Self::Acc, value: T, _: usize) -> Self::Acc {
        self.join::<I>(acc, (value.widen(), T::Wide::ONE))
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
        let greatest = a.0.maximum(b.0);
        // `inf - inf` is NaN, so a part with the greatest element is not rescaled.
        let part = |(top, sum): Self::Acc| {
            if top == greatest { sum } else { sum * Analytic::exp::<I>(top - greatest) }
        };
        (greatest, part(a) + part(b))
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn line<I: Isa>(&self, values: &[T], _: usize) -> Self::Acc {
        let greatest = fold(values, T::LOWEST, T::maximum, T::maximum).widen();
        let part = |sum: T::Wide, value: T| {
            let value = value.widen();
            sum + if value == greatest { T::Wide::ONE } else { (value - greatest).exp_down::<I>() }
        };
        (greatest, fold(values, T::Wide::ZERO, part, |a, b| a + b))
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: Self::Acc, _: usize) -> T {
        T::narrow(acc.0 + num_traits::Float::ln(acc.1))
    }
    reduces_memory_by!(logsumexp_memory);
}

/// `count * value`, the sum of `count` equal elements.
pub fn times<T: Num>(value: T, count: usize) -> T {
    // Converts the count to the accumulator type, bit by bit.
    let mut number = T::Acc::ZERO;
    for bit in (0..usize::BITS - count.leading_zeros()).rev() {
        number = number.add(number);
        if count >> bit & 1 == 1 {
            number = number.add(T::Acc::ONE);
        }
    }
    T::narrow(value.widen().mul(number))
}
