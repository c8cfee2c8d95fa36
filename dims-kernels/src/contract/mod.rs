//! Contractions: a product of several operands, summed over all axes that the result lacks.
//!
//! Operands are multiplied pair by pair, along a [path](mod@path). A pair is a matrix product if it
//! has rows (axes of the left operand only), columns (axes of the right one only) and a common sum
//! (axes of both that the result lacks). Axes that both operands and the result have are loops. A
//! strided operand is used in place if its axes merge into one row and one column stride, or if a
//! kernel takes rows, columns and sums as lists of offsets. Otherwise it is packed if that pays
//! off. For an operand that is not packed, the axes that do not merge are loops as well.

pub mod operand;
mod pair;
pub mod path;
#[cfg(feature = "std")]
pub(crate) mod planned;
pub mod target;

use crate::compiled::compiled;
use crate::contract::operand::{axes_of, converted};
use crate::contract::pair::{pair, summed_pair};
use crate::contract::path::path;
use crate::contract::target::Target;
use crate::error::Error;
use crate::loops::axes::{AxisSet, Order, each, set, sort_few};
use crate::loops::steps::{ProductDims, told};
use crate::ops::code::Number;
use crate::reduce::reducers::Sum;
use crate::scalar::{Element, Num};
use alloc::string::String;
use alloc::vec::Vec;
use core::any::{Any, TypeId};
use core::ops::RangeInclusive;
use num_complex::Complex;
use smallvec::SmallVec;

pub use crate::contract::operand::{ContractionFactor, ContractionFactors};

/// The loop axes of a contraction.
#[derive(Clone, Copy)]
pub struct LoopAxes<'s> {
    /// The size of each axis.
    pub sizes: &'s [usize],
    /// The name of each axis, for plans.
    pub name: &'s dyn Fn(usize) -> &'static str,
}

impl LoopAxes<'_> {
    /// The dims of a product, for plans.
    fn product<T: Num>(
        self,
        a: &ContractionFactor<'_, T>,
        b: &ContractionFactor<'_, T>,
        kept: &[usize],
    ) -> ProductDims {
        let of = |operand: &ContractionFactor<'_, T>| {
            let strides = operand.strides().iter().enumerate();
            strides.filter(|&(_, &stride)| stride != 0).map(|(axis, _)| (self.name)(axis)).collect()
        };
        ProductDims::new(of(a), of(b), kept.iter().map(|&axis| (self.name)(axis)).collect())
    }
}

/// The axes along which each factor of a product varies.
pub type Supports = SmallVec<[AxisSet; 4]>;

/// Whether the product of these factors is faster as a contraction than as one fused loop over all
/// axes.
///
/// It is faster where work can be shared. Two factors share work if they have rows, columns and a
/// common sum, or if one of them can be summed over an axis before the product. Three or more share
/// work if one of them lacks an axis that another has. All other products are left to the fused
/// loop, as are those with an empty axis, with an axis of several elements along which no factor
/// varies, or with 128 axes or more.
pub fn is_worthwhile(supports: &[AxisSet], sizes: &[usize], kept: &[usize]) -> bool {
    if supports.len() < 2 || sizes.len() >= AxisSet::BITS as usize || sizes.contains(&0) {
        return false;
    }
    let all = (0..sizes.len()).filter(|&axis| sizes[axis] != 1).fold(0, |axes, axis| axes | 1 << axis);
    if supports.iter().fold(0, |union, axes| union | axes) != all {
        return false;
    }
    if let [a, b] = *supports {
        let kept = set(kept);
        return (a & !b != 0 && b & !a != 0 && a & b & !kept != 0)
            || (a & !b & !kept) | (b & !a & !kept) != 0;
    }
    supports.iter().any(|&axes| axes != all)
}

/// The constant factors of a product, in the order in which the source multiplies by them. Each has
/// the number of other factors before it. A constant on the left, `2 * x`, counts as if it were on
/// the right, `x * 2`.
pub type ConstantFactors<T> = SmallVec<[(usize, T); 2]>;

/// The magnitudes of [moderate](moderate_product) constant factors. They include the scale of
/// attention, `1 / sqrt(n)`, and `1 / n` for means of up to 16 million elements.
const MODERATE: RangeInclusive<f64> = 1.0 / MOST_MODERATE..=MOST_MODERATE;

const MOST_MODERATE: f64 = (1 << 24) as f64;

/// The product of constant factors if it may multiply a sum instead of each product.
///
/// If a factor is very large or small, the sum without it may be outside the range of the type
/// although the sum with it is not. So the product must be moderate after each factor. Integers
/// wrap around, so all of them are moderate.
pub(crate) fn moderate_product<T: Num>(constants: impl Iterator<Item = T>) -> Option<T::Acc> {
    let mut product = T::Acc::ONE;
    for constant in constants {
        product = product.mul(constant.widen());
        if T::DIVIDES_BY_ZERO && !MODERATE.contains(&magnitude(product)) {
            return None;
        }
    }
    Some(product)
}

/// The magnitude of a float or a complex number; NaN for users' types.
fn magnitude<A: Element>(number: A) -> f64 {
    let any: &dyn Any = &number;
    if let Some(number) = any.downcast_ref::<Complex<f32>>() {
        number.norm().into()
    } else if let Some(number) = any.downcast_ref::<Complex<f64>>() {
        number.norm()
    } else {
        Number::float(number).abs()
    }
}

/// A matrix with at least this many elements is so large that reading it from memory dominates its
/// product with a vector. Such a product has its own kernel.
const FAR: usize = 1 << 16;

/// Whether the product of two factors is like that of a large matrix and a vector, the matrix is in
/// memory, and sums have the type of the elements. Such a product shares no work, but it is common,
/// and its kernel reads memory faster than a fused loop would. `at_hand` has a bit for each factor
/// that is in memory.
#[inline]
pub fn is_matrix_vector<T: Num>(supports: &[AxisSet], at_hand: u64, sizes: &[usize], kept: &[usize]) -> bool {
    TypeId::of::<T>() == TypeId::of::<T::Acc>() && has_axes_of_matrix_vector(supports, at_hand, sizes, kept)
}

/// [`is_matrix_vector`] for any element type.
fn has_axes_of_matrix_vector(supports: &[AxisSet], at_hand: u64, sizes: &[usize], kept: &[usize]) -> bool {
    let &[a, b] = supports else { return false };
    // The matrix is the factor with more axes. If it is an expression, a fused loop need not store
    // it.
    if at_hand >> usize::from(b.count_ones() > a.count_ones()) & 1 == 0 {
        return false;
    }
    let kept = set(kept);
    (a | b) & kept != 0
        && (a & !b | b & !a) & !kept == 0
        && a & b & !kept != 0
        && (0..sizes.len()).filter(|&axis| sizes[axis] != 1).all(|axis| (a | b) >> axis & 1 == 1)
        && sizes
            .iter()
            .try_fold(1, |count: usize, &size| count.checked_mul(size))
            .is_some_and(|count| count >= FAR)
}

/// The order of the result's axes in memory, for the product of two operands with these strides.
/// `None` if a contraction is not the best way to compute the product.
#[inline]
pub fn order_of_pair<T: Num>(strides: [&[isize]; 2], sizes: &[usize], kept: &[usize]) -> Option<Order> {
    order_in_memory(strides, TypeId::of::<T>() == TypeId::of::<T::Acc>(), sizes, kept)
}

/// [`order_of_pair`] for any element type. `in_own_type` says whether sums have the type of the
/// elements.
fn order_in_memory(
    strides: [&[isize]; 2],
    in_own_type: bool,
    sizes: &[usize],
    kept: &[usize],
) -> Option<Order> {
    let supports = strides.map(|strides| axes_of(strides, sizes));
    let is_contraction = is_worthwhile(&supports, sizes, kept)
        || in_own_type && has_axes_of_matrix_vector(&supports, 0b11, sizes, kept);
    is_contraction.then(|| order_of_result(strides, &supports, sizes, kept))
}

/// The order in memory of the axes of a product's result, if the caller does not choose one.
///
/// This is the order of `kept`, with two exceptions for matrix products. In the first, the last
/// axis of the result is in both operands, and neither is contiguous along it. Adjacent elements of
/// the result would come from different products, so each product would write scattered elements.
/// In the second, rows or columns that are one loop in their operand would become several, and
/// reordering avoids it. In both cases the common axes of the operands come first, in the order of
/// the left operand. The rows follow in the order of the left operand, and then the columns in the
/// order of the right one.
pub fn order_of_result(
    strides: [&[isize]; 2],
    supports: &[AxisSet],
    sizes: &[usize],
    kept: &[usize],
) -> Order {
    let order = Order::from_slice(kept);
    let ([a, b], &[in_a, in_b]) = (strides, supports) else { return order };
    let Some(&last) = kept.iter().rfind(|&&axis| sizes[axis] != 1) else { return order };
    let (result, both) = (set(kept), in_a & in_b);
    let (m, n) = (in_a & !in_b & result, in_b & !in_a & result);
    if m == 0 || n == 0 || both & !result == 0 {
        return order;
    }
    // Whether the rows and the columns are one loop each if the result has this order.
    let is_whole = |order: &[usize]| {
        let long = || order.iter().copied().filter(|&axis| sizes[axis] != 1);
        long()
            .zip(long().skip(1))
            .filter(|&(axis, next)| {
                let merges =
                    |strides: &[isize]| strides[axis] == strides[next].wrapping_mul(sizes[next] as isize);
                let both_in = |role: AxisSet| role >> axis & role >> next & 1 == 1;
                both_in(m) && merges(a) || both_in(n) && merges(b)
            })
            .count()
            + 2
            == (m | n).count_ones() as usize
    };
    let is_apart = both >> last & 1 == 1 && a[last] != 1 && b[last] != 1;
    if !is_apart && is_whole(kept) {
        return order;
    }
    let mut natural = order.clone();
    sort_few(&mut natural, |&axis| {
        let (role, strides) = match 1 << axis {
            bit if both & bit != 0 => (0, a),
            bit if m & bit != 0 => (1, a),
            _ => (2, b),
        };
        (role, core::cmp::Reverse(strides[axis].unsigned_abs()))
    });
    if is_apart || is_whole(&natural) { natural } else { order }
}

compiled! {
    for f32 f64:

    /// The product of the operands and [constants](ConstantFactors), summed over all axes that the
    /// target does not keep. The sums are multiplied by `times`. No axis may be empty. Along each
    /// axis of more than one element, at least one operand must vary. Returns the elements if the
    /// target is new memory, otherwise an empty vector.
    #[track_caller]
    pub fn contract<'f, 'c, 'l, 't, T: Num>(
        operands: ContractionFactors<'f, T>,
        constants: &'c [(usize, T)],
        times: <T as Num>::Acc,
        axes: LoopAxes<'l>,
        target: Target<'t, T>,
    ) -> Result<Vec<T>, Error> {
        contraction(operands, constants, times, axes, target)
    }
}

compiled! {
    for f32 f64:

    /// The product of two operands as one fused loop. The result is contiguous in the order of the
    /// first list of `axes`, and summed over the axes of the second by `sum`. Axes may be empty,
    /// and both operands may be constant along an axis. `describe` names the expression in plans.
    #[track_caller]
    pub fn sum_of_pair<'a, T: Num>(
        operands: [&'a ContractionFactor<'a, T>; 2],
        sizes: &'a [usize],
        axes: [&'a [usize]; 2],
        sum: Sum,
        describe: &'a dyn Fn() -> String,
    ) -> Result<Vec<T>, Error> {
        summed_pair(operands, sizes, axes, sum, describe)
    }
}

/// [`contract`] as a generic function.
#[track_caller]
fn contraction<T: Num>(
    mut operands: ContractionFactors<'_, T>,
    constants: &[(usize, T)],
    times: T::Acc,
    axes: LoopAxes<'_>,
    mut target: Target<'_, T>,
) -> Result<Vec<T>, Error> {
    operands.iter().for_each(|own| own.assert_within(axes.sizes));
    if TypeId::of::<T>() != TypeId::of::<T::Acc>() {
        let data = through_accumulator(&operands, constants, times, axes, target.order())?;
        return Ok(target.take(data, axes.sizes));
    }
    let scale = times.mul(multiply(&mut operands, constants, axes.sizes)?);
    let (a, b) = last_pair(operands, axes, target.order())?;
    let mut data = pair(a, b, axes, &mut target)?;
    if scale != T::Acc::ONE {
        target.scale(&mut data, T::narrow(scale), axes.sizes)?;
    }
    Ok(data)
}

/// Multiplies operands by the constants, unless these have a [moderate product](moderate_product).
/// Returns what the sums must be multiplied by.
#[track_caller]
fn multiply<T: Num>(
    operands: &mut [ContractionFactor<'_, T>],
    constants: &[(usize, T)],
    sizes: &[usize],
) -> Result<T::Acc, Error> {
    if let Some(product) = moderate_product(constants.iter().map(|&(_, constant)| constant)) {
        return Ok(product);
    }
    for &(before, constant) in constants {
        // A constant multiplies the operand before it, or else the first one.
        operands[before.saturating_sub(1)].multiply(constant, sizes)?;
    }
    Ok(Num::ONE)
}

/// Multiplies all pairs of the path except the last, which it returns: the product of that pair is
/// the result.
#[track_caller]
fn last_pair<'a, T: Num>(
    mut operands: ContractionFactors<'a, T>,
    loops: LoopAxes<'_>,
    kept: &[usize],
) -> Result<(ContractionFactor<'a, T>, ContractionFactor<'a, T>), Error> {
    let sizes = loops.sizes;
    if operands.len() > 2 {
        let sets: Supports = operands.iter().map(|operand| operand.axes(sizes)).collect();
        let mut pairs = path(&sets, sizes, kept);
        pairs.pop();
        for (i, j, axes) in pairs {
            let b = operands.remove(j);
            let a = operands.remove(i);
            let order: SmallVec<[usize; 8]> = each(axes).collect();
            let data = pair(a, b, loops, &mut Target::new(&order, sizes))?;
            told(&data);
            operands.push(ContractionFactor::owned(data, &order, sizes));
        }
    }
    let b = operands.pop().expect("a contraction has two operands");
    let a = operands.pop().expect("a contraction has two operands");
    Ok((a, b))
}

/// Contracts operands of half precision: they are widened, and only the result is rounded.
#[track_caller]
fn through_accumulator<T: Num>(
    operands: &[ContractionFactor<'_, T>],
    constants: &[(usize, T)],
    times: T::Acc,
    axes: LoopAxes<'_>,
    kept: &[usize],
) -> Result<Vec<T>, Error> {
    let sizes = axes.sizes;
    let mut wide = ContractionFactors::new();
    for operand in operands {
        let order: SmallVec<[usize; 8]> = each(operand.axes(sizes)).collect();
        let data = converted(operand.packed(&order, sizes)?, T::widen)?;
        wide.push(ContractionFactor::owned(data, &order, sizes));
    }
    let constants: ConstantFactors<T::Acc> =
        constants.iter().map(|&(before, constant)| (before, constant.widen())).collect();
    let sums = contract(wide, &constants, times.widen(), axes, Target::new(kept, sizes))?;
    converted(sums, T::narrow)
}
