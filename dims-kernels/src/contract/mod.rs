//! Contractions: a product of several operands, summed over the axes that are not asked for.
//!
//! The [path](mod@path) goes pair by pair. Each pair is a matrix product where it has rows (axes of the left operand
//! alone), columns (of the right one alone) and a common sum; axes that both keep are looped over. Strided operands go in
//! as they are where their axes merge into one row and one column stride; else the operand is packed, unless
//! that would multiply its memory (windows overlap), and then the axes that do not merge are loops as well.

pub mod path;
pub mod target;

use crate::contract::path::path;
use crate::contract::target::{Order, Target};
use crate::error::Error;
use crate::gemm;
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
use crate::gemm::dispatch::is_skinny;
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
use crate::gemm::plan::panels::InPanels;
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
use crate::gemm::plan::products::Loop;
use crate::gemm::plan::products::{Products, Roles, merge};
use crate::load::nodes::BinaryKernel;
use crate::load::strided::Strided;
use crate::loops::axes::{Axes, each, set, sorted, volume};
use crate::loops::nest::{Nest, Parts};
use crate::loops::rows::Rows;
use crate::loops::steps::{Loops, ProductDims, Step, record};
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
use crate::machine::params::params;
use crate::machine::threads;
use crate::map::elementwise::collect_memory;
use crate::memory::allocate::reserve;
use crate::memory::axes::is_within;
use crate::memory::buffer::Buffer;
use crate::memory::elements::Elements;
use crate::ops::Mul;
use crate::reduce::dots::{sum_products, sum_products_into};
use crate::reduce::reducers;
use crate::reduce::{InMemory, reduce, reduce_into};
use crate::scalar::Num;
use crate::seal::SEAL;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::TypeId;
use smallvec::SmallVec;

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
    fn product<T: Num>(self, a: &Operand<'_, T>, b: &Operand<'_, T>, kept: &[usize]) -> ProductDims {
        let of = |operand: &Operand<'_, T>| {
            let strides = operand.strides.iter().enumerate();
            strides.filter(|&(_, &stride)| stride != 0).map(|(axis, _)| (self.name)(axis)).collect()
        };
        ProductDims::new(of(a), of(b), kept.iter().map(|&axis| (self.name)(axis)).collect())
    }
}

/// One factor of a contraction: memory, and a stride along each loop axis.
pub struct Operand<'a, T> {
    memory: Memory<'a, T>,
    strides: SmallVec<[isize; 8]>,
}

/// The factors of a contraction.
pub type Operands<'a, T> = SmallVec<[Operand<'a, T>; 4]>;

enum Memory<'a, T> {
    Borrowed(Elements<'a, T>),
    Owned(Buffer<T>),
}

impl<'a, T: Num> Operand<'a, T> {
    /// Borrowed elements, with strides along the loop axes.
    ///
    /// # Safety
    ///
    /// Wherever the operand is contracted, each position of the loops is, along the strides, one of the elements' axes.
    #[inline]
    pub unsafe fn borrowed(elements: Elements<'a, T>, strides: SmallVec<[isize; 8]>) -> Self {
        Operand { memory: Memory::Borrowed(elements), strides }
    }

    /// Elements laid out contiguously along `order`.
    ///
    /// # Panics
    ///
    /// If there are not as many elements as positions.
    pub fn owned(data: Vec<T>, order: &[usize], sizes: &[usize]) -> Self {
        let positions: usize = order.iter().map(|&axis| sizes[axis]).product();
        assert_eq!(data.len(), positions, "one element for each position");
        let strides = contiguous(order, sizes);
        Operand { memory: Memory::Owned(data.into()), strides }
    }

    /// No elements, over so many loop axes.
    pub fn empty(axes: usize) -> Self {
        Operand { memory: Memory::Owned(Vec::new().into()), strides: SmallVec::from_elem(0, axes) }
    }

    /// The same elements over other loop axes: `strides` yields the strides along these.
    ///
    /// # Safety
    ///
    /// As for [`borrowed`](Operand::borrowed), of the strides that `strides` yields.
    pub unsafe fn over(self, strides: impl FnOnce(&[isize]) -> SmallVec<[isize; 8]>) -> Self {
        Operand { strides: strides(&self.strides), ..self }
    }

    /// The elements.
    #[inline]
    pub fn elements(&self) -> Elements<'_, T> {
        match &self.memory {
            Memory::Borrowed(elements) => *elements,
            Memory::Owned(data) => Elements::of_slice(data),
        }
    }

    /// The stride along each loop axis.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The operand with elements of another type.
    #[track_caller]
    pub fn converted<W: Num>(
        self,
        sizes: &[usize],
        convert: impl Fn(T) -> W,
    ) -> Result<Operand<'a, W>, Error> {
        let elements = match self.memory {
            Memory::Owned(data) => {
                let data = converted(data.into_vec(), convert)?.into();
                return Ok(Operand { memory: Memory::Owned(data), strides: self.strides });
            }
            Memory::Borrowed(elements) => elements,
        };
        if let Some(elements) = elements.same::<W>() {
            // SAFETY: the elements and the strides are those of this operand.
            return Ok(unsafe { Operand::borrowed(elements, self.strides) });
        }
        let order: SmallVec<[usize; 8]> = each(self.axes(sizes)).collect();
        let data = converted(self.packed(&order, sizes)?, convert)?;
        Ok(Operand::owned(data, &order, sizes))
    }

    /// Panics if the loops leave elements that the operand owns. (Of borrowed ones, whoever made the operand has promised that they do not.)
    fn assert_within(&self, sizes: &[usize]) {
        if let Memory::Owned(data) = &self.memory {
            assert_eq!(sizes.len(), self.strides.len(), "one stride for each loop");
            let loops = sizes.iter().copied().zip(self.strides.iter().copied());
            assert!(is_within(data.len(), 0, loops), "the loops stay within the elements");
        }
    }

    /// The axes along which the operand varies.
    #[inline]
    fn axes(&self, sizes: &[usize]) -> Axes {
        axes_of(&self.strides, sizes)
    }

    fn row(&self, rows: &mut Rows) {
        rows.push().copy_from_slice(&self.strides);
    }

    /// Whether different positions have different memory.
    fn is_injective(&self, axes: Axes, sizes: &[usize]) -> bool {
        let mut loops: SmallVec<[(usize, usize); 8]> =
            each(axes).map(|axis| (self.strides[axis].unsigned_abs(), sizes[axis])).collect();
        loops.sort_unstable();
        let mut reach = 0;
        loops.iter().all(|&(stride, size)| {
            let free = stride > reach;
            reach += stride * (size - 1);
            free
        })
    }

    /// The same elements in new memory, contiguous along `order`.
    #[track_caller]
    fn packed(&self, order: &[usize], sizes: &[usize]) -> Result<Vec<T>, Error> {
        let mut rows = Rows::new(sizes.len());
        self.row(&mut rows);
        let nest = Nest::map(sizes, order, &rows);
        let len = order.iter().map(|&axis| sizes[axis]).product();
        // SAFETY: each position of the loops is one of the elements' axes, as whoever made the operand promised.
        unsafe { collect_memory(self.elements(), &nest, len, "operand of a product") }
    }

    /// The sums over the axes `reduced`, contiguous in the order of the others.
    #[track_caller]
    fn summed(&self, order: &[usize], reduced: &[usize], sizes: &[usize]) -> Result<Operand<'a, T>, Error> {
        let mut rows = Rows::new(sizes.len());
        self.row(&mut rows);
        let nest = Nest::reduce(sizes, order, reduced, &rows);
        let len = order.iter().map(|&axis| sizes[axis]).product();
        record(|| Step::Reduce {
            reduction: "sum",
            expression: "tensor".into(),
            loops: Loops::new::<T>(&nest, len, threads::parts(nest.positions())),
            count: reduced.iter().map(|&axis| sizes[axis]).product(),
        });
        let (elements, work) = (self.elements(), nest.positions());
        // SAFETY: the nest's row has the strides of this operand, whose positions are elements, as whoever made it promised.
        let memory = unsafe { InMemory::new(elements, &nest, work, len, 0) };
        let data = T::sum_memory(SEAL, memory)?;
        Ok(Operand::owned(data, order, sizes))
    }
}

/// The axes along which an operand with these strides varies.
fn axes_of(strides: &[isize], sizes: &[usize]) -> Axes {
    let mut axes = 0;
    for (axis, (&stride, &size)) in strides.iter().zip(sizes).enumerate() {
        axes |= Axes::from(stride != 0 && size != 1) << axis;
    }
    axes
}

/// The same elements of another type, or an error if there is no memory.
fn converted<T, W>(data: Vec<T>, convert: impl Fn(T) -> W) -> Result<Vec<W>, Error> {
    let mut out = reserve(data.len())?;
    out.extend(data.into_iter().map(convert));
    Ok(out)
}

/// Strides of memory that is contiguous along `order`, and does not vary along other axes.
fn contiguous(order: &[usize], sizes: &[usize]) -> SmallVec<[isize; 8]> {
    let mut strides = SmallVec::from_elem(0, sizes.len());
    let mut step = 1;
    for &axis in order.iter().rev() {
        strides[axis] = step;
        step *= sizes[axis] as isize;
    }
    strides
}

/// For each factor of a product the axes along which it varies.
pub type Supports = SmallVec<[Axes; 4]>;

/// Whether a product of such factors gains from being a contraction, rather than one fused loop over all axes.
///
/// It does where factors lack axes that others have, so that work is shared. Axes along which no factor varies, and
/// empty ones, are left to the fused loop.
pub fn is_worthwhile(supports: &[Axes], sizes: &[usize], kept: &[usize]) -> bool {
    if supports.len() < 2 || sizes.len() >= Axes::BITS as usize || sizes.contains(&0) {
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
pub fn is_matrix_vector<T: Num>(supports: &[Axes], at_hand: u64, sizes: &[usize], kept: &[usize]) -> bool {
    TypeId::of::<T>() == TypeId::of::<T::Acc>() && has_axes_of_matrix_vector(supports, at_hand, sizes, kept)
}

/// The same of all types.
fn has_axes_of_matrix_vector(supports: &[Axes], at_hand: u64, sizes: &[usize], kept: &[usize]) -> bool {
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

/// The order in which the sum of a product of two operands in memory lies, of which these are the strides, if it is best run as a contraction.
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

/// The axes of the result of a product in the order in which it should lie in memory, if nobody asked for one.
///
/// This is the order of `kept`, unless that makes more of a product of matrices than it is: where neighbours in the result would be results of
/// different products, each of which would then write one element here and one there, and so would what reads it; or where rows or
/// columns, one loop of an operand, would be several. Then the axes that both operands have come first, the rows follow and the columns, each as
/// they lie in their operand, if that makes one loop of each. (Where an operand has such neighbours as well, the result is as that is.)
pub fn order_of_result(strides: [&[isize]; 2], supports: &[Axes], sizes: &[usize], kept: &[usize]) -> Order {
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
                let both_in = |role: Axes| role >> axis & role >> next & 1 == 1;
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
    natural.sort_by_key(|&axis| {
        let (role, strides) = match 1 << axis {
            bit if both & bit != 0 => (0, a),
            bit if m & bit != 0 => (1, a),
            _ => (2, b),
        };
        (role, core::cmp::Reverse(strides[axis].unsigned_abs()))
    });
    if is_apart || is_whole(&natural) { natural } else { order }
}

/// `scale` times the product of the operands, summed over all axes but `kept`, contiguous in the order of `kept`. Along each axis of more than one element at least one operand
/// varies.
///
/// (Callers outside of this module go through [`Num::contract`], which is compiled once for the common element types. So do the functions
/// below.)
#[track_caller]
pub fn contract<T: Num>(
    operands: Operands<'_, T>,
    scale: T,
    axes: LoopAxes<'_>,
    kept: &[usize],
) -> Result<Vec<T>, Error> {
    operands.iter().for_each(|own| own.assert_within(axes.sizes));
    if TypeId::of::<T>() != TypeId::of::<T::Acc>() {
        return through_accumulator(&operands, scale, axes, kept);
    }
    let (a, b) = last_pair(operands, axes, kept)?;
    let mut data = pair(a, b, axes, kept, None)?;
    if scale != T::ONE {
        data.iter_mut().for_each(|value| *value = value.mul(scale));
    }
    Ok(data)
}

/// As [`contract`], to places that are there already; the axes are those that the target keeps.
#[track_caller]
pub fn contract_onto<T: Num>(
    operands: Operands<'_, T>,
    scale: T,
    axes: LoopAxes<'_>,
    mut target: Target<'_, T>,
) -> Result<(), Error> {
    operands.iter().for_each(|own| own.assert_within(axes.sizes));
    if TypeId::of::<T>() != TypeId::of::<T::Acc>() {
        let data = through_accumulator(&operands, scale, axes, target.order())?;
        target.put(&data, axes.sizes);
        return Ok(());
    }
    let (a, b) = last_pair(operands, axes, target.order())?;
    let order = Order::from_slice(target.order());
    pair(a, b, axes, &order, Some(&mut target))?;
    if scale != T::ONE {
        target.scale(scale, axes.sizes)?;
    }
    Ok(())
}

/// Multiplies all pairs of the path but the last, and returns that one: its product is the result.
#[track_caller]
fn last_pair<'a, T: Num>(
    mut operands: Operands<'a, T>,
    loops: LoopAxes<'_>,
    kept: &[usize],
) -> Result<(Operand<'a, T>, Operand<'a, T>), Error> {
    let sizes = loops.sizes;
    if operands.len() > 2 {
        let sets: Supports = operands.iter().map(|operand| operand.axes(sizes)).collect();
        let mut pairs = path(&sets, sizes, kept);
        pairs.pop();
        for (i, j, axes) in pairs {
            let b = operands.remove(j);
            let a = operands.remove(i);
            let order: SmallVec<[usize; 8]> = each(axes).collect();
            let data = pair(a, b, loops, &order, None)?;
            operands.push(Operand::owned(data, &order, sizes));
        }
    }
    let b = operands.pop().expect("a contraction has two operands");
    let a = operands.pop().expect("a contraction has two operands");
    Ok((a, b))
}

/// Half precisions: operands are widened, and only the result is rounded.
#[track_caller]
fn through_accumulator<T: Num>(
    operands: &[Operand<'_, T>],
    scale: T,
    axes: LoopAxes<'_>,
    kept: &[usize],
) -> Result<Vec<T>, Error> {
    let sizes = axes.sizes;
    let mut wide = Operands::new();
    for operand in operands {
        let order: SmallVec<[usize; 8]> = each(operand.axes(sizes)).collect();
        let data = converted(operand.packed(&order, sizes)?, T::to_acc)?;
        wide.push(Operand::owned(data, &order, sizes));
    }
    converted(T::Acc::contract(SEAL, wide, scale.to_acc(), axes, kept)?, T::from_acc)
}

/// The product of two operands, summed over all axes but `kept`, in whose order it lies: in new memory, or to a target, and then nothing is
/// returned.
#[track_caller]
fn pair<T: Num>(
    mut a: Operand<'_, T>,
    mut b: Operand<'_, T>,
    axes: LoopAxes<'_>,
    kept: &[usize],
    target: Option<&mut Target<'_, T>>,
) -> Result<Vec<T>, Error> {
    let (sizes, result) = (axes.sizes, set(kept));
    let (in_a, in_b) = (a.axes(sizes), b.axes(sizes));
    a = without(a, in_a & !in_b & !result, sizes)?;
    b = without(b, in_b & !in_a & !result, sizes)?;
    let (in_a, in_b) = (a.axes(sizes), b.axes(sizes));
    let sum = in_a & in_b & !result;
    let (m, n) = (in_a & !in_b, in_b & !in_a);
    if sum == 0 || m == 0 || n == 0 {
        #[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
        if m | n != 0 && in_a & in_b & result == 0 {
            let (vector, matrix) = if m == 0 { (&a, &b) } else { (&b, &a) };
            let roles = Roles { batch: 0, m: 0, n: m | n, k: sum };
            if let Some(products) = row_times_matrix(vector, matrix, sizes, kept, target.as_deref(), roles) {
                record(|| products.step::<T>(axes.product(vector, matrix, kept)));
                // SAFETY: the plan was made of these operands' strides, which are valid for loops of these sizes, as whoever made the operands promised, and of those of the
                // target, or of a contiguous result in the order of `kept`.
                return unsafe { run_products(products, vector, matrix, kept, sizes, target) };
            }
        }
        let reduced: SmallVec<[usize; 8]> = each((in_a | in_b) & !result).collect();
        return fused_loop([&a, &b], sizes, [kept, &reduced], target, &|| "mul(tensor, tensor)".into());
    }
    matrix_pair(a, b, axes, kept, target, Roles { batch: in_a & in_b & result, m, n, k: sum })
}

/// What only one operand has, and the result has not, is summed before the product.
#[track_caller]
fn without<'a, T: Num>(
    operand: Operand<'a, T>,
    lone: Axes,
    sizes: &[usize],
) -> Result<Operand<'a, T>, Error> {
    if lone == 0 {
        return Ok(operand);
    }
    let order: SmallVec<[usize; 8]> = each(operand.axes(sizes) & !lone).collect();
    let reduced: SmallVec<[usize; 8]> = each(lone).collect();
    operand.summed(&order, &reduced, sizes)
}

/// A vector times a large matrix, as the product of one row, if there is a kernel for [few rows](is_skinny).
///
/// (Where the elements of a sum are neighbours, some processors are faster in [`sum_products`], which reads one line of the matrix after the other.)
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
fn row_times_matrix<T: Num>(
    vector: &Operand<'_, T>,
    matrix: &Operand<'_, T>,
    sizes: &[usize],
    kept: &[usize],
    target: Option<&Target<'_, T>>,
    roles: Roles<Axes>,
) -> Option<Products> {
    let count = |axes| each(axes).map(|axis| sizes[axis]).product::<usize>();
    if roles.k == 0 || !is_skinny::<T>(1, count(roles.n), count(roles.k)) {
        return None;
    }
    let c = target.map_or_else(|| contiguous(kept, sizes), |target| target.strides().into());
    let loops = |axes| merge(axes, sizes, &vector.strides, &matrix.strides, &c);
    let (&[n], &[k]) = (&*loops(roles.n), &*loops(roles.k)) else { return None };
    let m = Loop { size: 1, a: 0, b: 0, c: 0 };
    let is_wanted = n.b == 1 || k.b == 1 && params().dots.as_rows;
    is_wanted.then(|| Products { loops: SmallVec::new(), results: 0, m, n, k })
}

/// Runs the products: to new memory, or to a target, and then nothing is returned.
///
/// # Safety
///
/// The plan has the strides of these operands, which are valid for loops of `sizes`, and those of the target, or of a contiguous result in the order of `kept`.
unsafe fn run_products<T: Num>(
    products: Products,
    a: &Operand<'_, T>,
    b: &Operand<'_, T>,
    kept: &[usize],
    sizes: &[usize],
    target: Option<&mut Target<'_, T>>,
) -> Result<Vec<T>, Error> {
    match target {
        Some(target) => {
            // SAFETY: the caller's promise about operands; the plan has the strides of the target, whose places are distinct, as `Target::new` was promised.
            unsafe { gemm::products::run_onto(products, a.elements(), b.elements(), target.places()) };
            Ok(Vec::new())
        }
        None => {
            let len = kept.iter().map(|&axis| sizes[axis]).product();
            // SAFETY: the caller's promise about operands; the plan has the strides of a contiguous result of `len` elements.
            unsafe { gemm::products::run(products, a.elements(), b.elements(), len) }
        }
    }
}

/// The product of two operands, contiguous in the order of the first of the `axes`, and summed over the second: one fused loop, whose axes may be empty, and along
/// which the operands need not vary. `describe` names the expression in plans.
#[track_caller]
pub fn sum_of_pair<T: Num>(
    [a, b]: [&Operand<'_, T>; 2],
    sizes: &[usize],
    axes: [&[usize]; 2],
    describe: &dyn Fn() -> String,
) -> Result<Vec<T>, Error> {
    [a, b].iter().for_each(|own| own.assert_within(sizes));
    fused_loop([a, b], sizes, axes, None, describe)
}

/// A product that is no matrix product: one fused loop, to new memory or to a target.
#[track_caller]
fn fused_loop<T: Num>(
    [a, b]: [&Operand<'_, T>; 2],
    sizes: &[usize],
    [kept, reduced]: [&[usize]; 2],
    mut target: Option<&mut Target<'_, T>>,
    describe: &dyn Fn() -> String,
) -> Result<Vec<T>, Error> {
    let mut rows = Rows::new(sizes.len());
    a.row(&mut rows);
    b.row(&mut rows);
    let nest = Nest::reduce(sizes, kept, reduced, &rows);
    let len = kept.iter().map(|&axis| sizes[axis]).product();
    record(|| Step::Reduce {
        reduction: "sum",
        expression: describe(),
        loops: Loops::new::<T>(&nest, len, threads::parts(nest.positions())),
        count: reduced.iter().map(|&axis| sizes[axis]).product(),
    });
    let operands = [a.elements(), b.elements()];
    let lower = |nest| {
        let mut operands = Nest::operands(nest);
        // SAFETY: the first row of the nest has the strides of `a`, whose positions are elements, as whoever made the operand promised; `reduce` runs the
        // kernel over the nest that it is made for.
        let a = unsafe { Strided::new(a.elements(), operands.next_row(), ()) };
        // SAFETY: likewise, of the second row and `b`.
        let b = unsafe { Strided::new(b.elements(), operands.next_row(), ()) };
        BinaryKernel { op: &Mul, a, b }
    };
    let (work, mut parts) = (nest.positions(), Parts::new());
    // (What sums up products in lines has accumulators of the elements' type.)
    let in_lines = TypeId::of::<T>() == TypeId::of::<T::Acc>();
    if let Some(places) = target.as_deref_mut().and_then(Target::line) {
        if !in_lines || !sum_products_into(operands, &nest, (&mut *places).into()) {
            reduce_into(&nest, &mut parts, lower, work, places.into(), 0, reducers::Sum)?;
        }
        return Ok(Vec::new());
    }
    let data = match in_lines.then(|| sum_products(operands, &nest, len)).flatten() {
        Some(data) => data?,
        None => reduce(&nest, &mut parts, lower, work, len, 0, reducers::Sum)?,
    };
    match target {
        Some(target) => {
            target.put(&data, sizes);
            Ok(Vec::new())
        }
        None => Ok(data),
    }
}

#[track_caller]
fn matrix_pair<T: Num>(
    mut a: Operand<'_, T>,
    mut b: Operand<'_, T>,
    axes: LoopAxes<'_>,
    kept: &[usize],
    target: Option<&mut Target<'_, T>>,
    roles: Roles<Axes>,
) -> Result<Vec<T>, Error> {
    let sizes = axes.sizes;
    let c = match &target {
        Some(target) => target.strides().into(),
        None => contiguous(kept, sizes),
    };
    let loops = |axes, a: &Operand<'_, T>, b: &Operand<'_, T>| merge(axes, sizes, &a.strides, &b.strides, &c);
    let mut runs = roles.map(|axes| loops(axes, &a, &b));
    #[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
    if let Some(products) = InPanels::of::<T>(&runs) {
        record(|| products.step::<T>(axes.product(&a, &b, kept)));
        return match target {
            Some(target) => {
                // SAFETY: the plan was made of the operands' strides, which are valid for loops of these sizes, as whoever made the operands promised, and of the
                // target's, whose places are distinct, as `Target::new` was promised.
                unsafe { gemm::in_panels::run_onto(&products, a.elements(), b.elements(), target.places()) };
                Ok(Vec::new())
            }
            None => {
                let len = kept.iter().map(|&axis| sizes[axis]).product();
                // SAFETY: the plan was made of the operands' strides, which are valid for loops of these sizes, as whoever made the operands promised, and of those of
                // a contiguous result of `len` elements.
                unsafe { gemm::in_panels::run(&products, a.elements(), b.elements(), len) }
            }
        };
    }
    if runs.m.len() + runs.n.len() + runs.k.len() > 3 {
        (a, b) = packed_pair(a, b, &c, sizes, roles)?;
        runs = roles.map(|axes| loops(axes, &a, &b));
    }
    let products = runs.products();
    record(|| products.step::<T>(axes.product(&a, &b, kept)));
    // SAFETY: the plan was made of these operands' strides, which are valid for loops of these sizes, as whoever made the operands promised, and of `c`: those of the target,
    // or of a contiguous result in the order of `kept`.
    unsafe { run_products(products, &a, &b, kept, sizes, target) }
}

/// The operands of a product whose rows, columns or sums are several loops: an operand is packed if then fewer are left, if that does not
/// multiply its memory (windows overlap), and if its elements are used often enough.
#[track_caller]
fn packed_pair<'a, 'b, T: Num>(
    mut a: Operand<'a, T>,
    mut b: Operand<'b, T>,
    c: &[isize],
    sizes: &[usize],
    roles: Roles<Axes>,
) -> Result<(Operand<'a, T>, Operand<'b, T>), Error> {
    let count = |a: &[isize], b: &[isize]| -> usize {
        let loops = |&axes: &Axes| merge(axes, sizes, a, b, c).len();
        [roles.m, roles.n, roles.k].iter().map(loops).sum()
    };
    let a_axes = roles.batch | roles.m | roles.k;
    if volume(roles.n, sizes) >= 4.0 && a.is_injective(a_axes, sizes) {
        let order: SmallVec<[usize; 8]> = sorted(roles.batch, c)
            .into_iter()
            .chain(sorted(roles.m, c))
            .chain(sorted(roles.k, &b.strides))
            .collect();
        if count(&contiguous(&order, sizes), &b.strides) < count(&a.strides, &b.strides) {
            a = Operand::owned(a.packed(&order, sizes)?, &order, sizes);
        }
    }
    let b_axes = roles.batch | roles.n | roles.k;
    if volume(roles.m, sizes) >= 4.0 && b.is_injective(b_axes, sizes) {
        let order: SmallVec<[usize; 8]> = sorted(roles.batch, c)
            .into_iter()
            .chain(sorted(roles.k, &a.strides))
            .chain(sorted(roles.n, c))
            .collect();
        if count(&a.strides, &contiguous(&order, sizes)) < count(&a.strides, &b.strides) {
            b = Operand::owned(b.packed(&order, sizes)?, &order, sizes);
        }
    }
    Ok((a, b))
}
