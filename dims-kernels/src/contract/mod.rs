//! Contractions: a product of several operands, summed over the axes that are not asked for.
//!
//! The [path](mod@path) goes pair by pair. Each pair is a matrix product where it has rows (axes of the left operand
//! alone), columns (of the right one alone) and a common sum; axes that both keep are looped over. Strided operands go in
//! as they are where their axes merge into one row and one column stride; else the operand is packed, unless
//! that would multiply its memory (windows overlap), and then the axes that do not merge are loops as well.

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
use crate::scalar::Num;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::TypeId;
use smallvec::SmallVec;

pub use crate::contract::operand::{ContractionFactor, ContractionFactors};

/// The loop axes of a contraction.
#[derive(Clone, Copy)]
pub struct LoopAxes<'s> {
    /// How often each runs.
    pub sizes: &'s [usize],
    /// What they are called, for plans.
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

/// For each factor of a product the axes along which it varies.
pub type Supports = SmallVec<[AxisSet; 4]>;

/// Whether a product of such factors gains from being a contraction, rather than one fused loop over all axes.
///
/// It does where factors lack axes that others have, so that work is shared. Axes along which no factor varies, and
/// empty ones, are left to the fused loop.
pub fn is_worthwhile(supports: &[AxisSet], sizes: &[usize], kept: &[usize]) -> bool {
    if supports.len() < 2 || sizes.len() >= AxisSet::BITS as usize || sizes.contains(&0) {
        return false;
    }
    let all = (0..sizes.len()).filter(|&axis| sizes[axis] != 1).fold(0, |axes, axis| axes | 1 << axis);
    if supports.iter().fold(0, |union, axes| union | axes) != all {
        return false;
    }
    if let [a, b] = *supports {
        // Rows, columns, and a common sum; or a part of one factor can be summed before the product.
        let kept = set(kept);
        return (a & !b != 0 && b & !a != 0 && a & b & !kept != 0)
            || (a & !b & !kept) | (b & !a & !kept) != 0;
    }
    supports.iter().any(|&axes| axes != all)
}

/// From so many elements on a matrix lies so far away that its product with a vector has a kernel of its own.
const FAR: usize = 1 << 16;

/// Whether this is a large matrix times a vector, and the matrix is `at_hand`, where each factor has a bit. It shares no work, but is
/// asked for often, and the memory can be read faster than a fused loop would.
#[inline]
pub fn is_matrix_vector<T: Num>(supports: &[AxisSet], at_hand: u64, sizes: &[usize], kept: &[usize]) -> bool {
    TypeId::of::<T>() == TypeId::of::<T::Acc>() && has_axes_of_matrix_vector(supports, at_hand, sizes, kept)
}

/// The same of all types.
fn has_axes_of_matrix_vector(supports: &[AxisSet], at_hand: u64, sizes: &[usize], kept: &[usize]) -> bool {
    let &[a, b] = supports else { return false };
    // (The factor with more axes. One that is computed need not be put into memory first.)
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

/// The order of axes in which the sum of a product lies in memory, for two operands with these strides; nothing if a contraction is not the best way to compute it.
#[inline]
pub fn order_of_pair<T: Num>(strides: [&[isize]; 2], sizes: &[usize], kept: &[usize]) -> Option<Order> {
    order_in_memory(strides, TypeId::of::<T>() == TypeId::of::<T::Acc>(), sizes, kept)
}

/// The same of all types; whether sums are kept in the type of the elements.
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

/// The axes of the result of a product in the order in which it should lie in memory, if the caller asks for none.
///
/// This is the order of `kept`, unless that makes more of a product of matrices than it is: where neighbours in the result would be results of
/// different products, each of which would then write one element here and one there, and so would what reads it; or where rows or
/// columns, one loop of an operand, would be several. Then the axes that both operands have come first, the rows follow and the columns, each as
/// they lie in their operand, if that makes one loop of each. (Where an operand has such neighbours as well, the result is as that is.)
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
    // Whether the rows, and the columns, are one loop each in a result that lies in this order.
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

    /// `scale` times the product of the operands, summed over all axes but those that the target keeps. Along each axis of more than one element at least one operand
    /// varies. Returns the elements if the target is new memory, else an empty vector.
    #[track_caller]
    pub fn contract<'f, 'l, 't, T: Num>(
        operands: ContractionFactors<'f, T>,
        scale: T,
        axes: LoopAxes<'l>,
        target: Target<'t, T>,
    ) -> Result<Vec<T>, Error> {
        contraction(operands, scale, axes, target)
    }
}

compiled! {
    for f32 f64:

    /// The same of two operands.
    #[track_caller]
    pub fn contract_pair<'f, 'l, 't, T: Num>(
        operands: [ContractionFactor<'f, T>; 2],
        axes: LoopAxes<'l>,
        target: Target<'t, T>,
    ) -> Result<Vec<T>, Error> {
        contraction(operands.into_iter().collect(), T::ONE, axes, target)
    }
}

compiled! {
    for f32 f64:

    /// The product of two operands, contiguous in the order of the first of the `axes`, and summed over the second: one fused loop, whose axes may be empty, and along
    /// which the operands need not vary. `describe` names the expression in plans.
    #[track_caller]
    pub fn sum_of_pair<'a, T: Num>(
        operands: [&'a ContractionFactor<'a, T>; 2],
        sizes: &'a [usize],
        axes: [&'a [usize]; 2],
        describe: &'a dyn Fn() -> String,
    ) -> Result<Vec<T>, Error> {
        summed_pair(operands, sizes, axes, describe)
    }
}

/// [`contract`] as a generic function.
#[track_caller]
fn contraction<T: Num>(
    operands: ContractionFactors<'_, T>,
    scale: T,
    axes: LoopAxes<'_>,
    mut target: Target<'_, T>,
) -> Result<Vec<T>, Error> {
    operands.iter().for_each(|own| own.assert_within(axes.sizes));
    if TypeId::of::<T>() != TypeId::of::<T::Acc>() {
        let data = through_accumulator(&operands, scale, axes, target.order())?;
        return Ok(target.take(data, axes.sizes));
    }
    let (a, b) = last_pair(operands, axes, target.order())?;
    let mut data = pair(a, b, axes, &mut target)?;
    if scale != T::ONE {
        target.scale(&mut data, scale, axes.sizes)?;
    }
    Ok(data)
}

/// Multiplies all pairs of the path but the last, and returns that one: its product is the result.
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

/// Half precisions: operands are widened, and only the result is rounded.
#[track_caller]
fn through_accumulator<T: Num>(
    operands: &[ContractionFactor<'_, T>],
    scale: T,
    axes: LoopAxes<'_>,
    kept: &[usize],
) -> Result<Vec<T>, Error> {
    let sizes = axes.sizes;
    let mut wide = ContractionFactors::new();
    for operand in operands {
        let order: SmallVec<[usize; 8]> = each(operand.axes(sizes)).collect();
        let data = converted(operand.packed(&order, sizes)?, T::to_acc)?;
        wide.push(ContractionFactor::owned(data, &order, sizes));
    }
    let sums = contract(wide, scale.to_acc(), axes, Target::new(kept, sizes))?;
    converted(sums, T::from_acc)
}
