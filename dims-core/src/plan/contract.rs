//! Contractions: a product of several operands, summed over the axes that are not asked for.
//!
//! The [`path`](super::path) goes pair by pair. Each pair is a matrix product where it has rows (axes of the left operand
//! alone), columns (of the right one alone) and a common sum; axes that both keep are looped over. Strided operands go in
//! as they are where their axes merge into one row and one column stride; else the operand is packed, unless
//! that would multiply its memory (windows overlap), and then the axes that do not merge are loops as well.

use super::explain::{Loops, Step, record};
use super::nest::{Nest, Parts};
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
use super::panels::InPanels;
use super::path::path;
use super::products::{Roles, merge};
use super::rows::Rows;
use crate::error::DimError;
use crate::kernel::elementwise::{BinaryKernel, collect_memory};
use crate::kernel::reduce::reduce;
use crate::kernel::reducers;
use crate::kernel::strided::Strided;
use crate::kernel::threads;
use crate::ops::Mul;
use crate::scalar::Num;
use crate::storage::memory::{Buffer, reserve};
use alloc::vec::Vec;
use core::any::TypeId;
use core::marker::PhantomData;
use smallvec::SmallVec;

/// The most loop axes that a contraction can have.
pub const MOST_AXES: usize = 128;

/// A set of loop axes, as bits.
pub type Axes = u128;

/// One factor of a contraction: memory, and a stride along each loop axis.
pub struct Operand<'a, T> {
    start: *const T,
    owned: Option<Buffer<T>>,
    strides: SmallVec<[isize; 8]>,
    memory: PhantomData<&'a [T]>,
}

impl<'a, T: Num> Operand<'a, T> {
    /// Borrowed memory.
    ///
    /// # Safety
    ///
    /// For every position of the loop axes, `start` offset by the strides is a valid element for `'a`.
    #[inline]
    pub unsafe fn borrowed(start: *const T, strides: SmallVec<[isize; 8]>) -> Self {
        Operand { start, owned: None, strides, memory: PhantomData }
    }

    /// Elements laid out contiguously along `order`.
    pub fn owned(data: Vec<T>, order: &[usize], sizes: &[usize]) -> Self {
        let strides = contiguous(order, sizes);
        Operand { start: data.as_ptr(), owned: Some(data.into()), strides, memory: PhantomData }
    }

    /// The same elements over other loop axes: `strides` says what the strides along these are.
    pub fn over(self, strides: impl FnOnce(&[isize]) -> SmallVec<[isize; 8]>) -> Self {
        Operand { strides: strides(&self.strides), ..self }
    }

    /// The element at the origin.
    pub(crate) fn start(&self) -> *const T {
        self.start
    }

    /// The stride along each loop axis.
    pub(crate) fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The operand with elements of another type; itself if it is the same type.
    pub(crate) fn converted<W: Num>(
        self,
        sizes: &[usize],
        convert: impl Fn(T) -> W,
    ) -> Result<Operand<'a, W>, DimError> {
        if TypeId::of::<T>() == TypeId::of::<W>() {
            let owned =
                self.owned.map(|data| data.into_vec().into_iter().map(convert).collect::<Vec<W>>().into());
            let start = owned.as_ref().map_or(self.start.cast::<W>(), |data: &Buffer<W>| data.as_ptr());
            return Ok(Operand { start, owned, strides: self.strides, memory: PhantomData });
        }
        let order: SmallVec<[usize; 8]> = each(self.axes(sizes)).collect();
        let packed = self.packed(&order, sizes)?;
        let data = packed.owned.iter().flat_map(|data| data.iter().copied()).map(convert).collect();
        Ok(Operand::owned(data, &order, sizes))
    }

    /// The axes along which the operand varies.
    #[inline]
    fn axes(&self, sizes: &[usize]) -> Axes {
        let mut axes = 0;
        for (axis, (&stride, &size)) in self.strides.iter().zip(sizes).enumerate() {
            axes |= Axes::from(stride != 0 && size != 1) << axis;
        }
        axes
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
    fn packed(&self, order: &[usize], sizes: &[usize]) -> Result<Operand<'a, T>, DimError> {
        let mut rows = Rows::new(sizes.len());
        self.row(&mut rows);
        let nest = Nest::map(sizes, order, &rows);
        let len = order.iter().map(|&axis| sizes[axis]).product();
        // SAFETY: positions along `order` are positions of the loop axes, the others being 0.
        let data = unsafe { collect_memory(self.start, &nest, len, "operand of a product") }?;
        Ok(Operand::owned(data, order, sizes))
    }

    /// The strides that [`packed`](Operand::packed) would give, over no memory.
    fn as_if_packed(&self, order: &[usize], sizes: &[usize]) -> Operand<'a, T> {
        Operand { start: self.start, owned: None, strides: contiguous(order, sizes), memory: PhantomData }
    }

    /// The sums over all axes that are not in `order`.
    fn summed(
        &self,
        order: &[usize],
        reduced: &[usize],
        sizes: &[usize],
    ) -> Result<Operand<'a, T>, DimError> {
        let mut rows = Rows::new(sizes.len());
        self.row(&mut rows);
        let nest = Nest::reduce(sizes, order, reduced, &rows);
        let len = order.iter().map(|&axis| sizes[axis]).product();
        // SAFETY: as in `packed`.
        record(|| Step::Reduce {
            reduction: "sum",
            expression: "tensor".into(),
            loops: Loops::new::<T>(&nest, len, threads::parts(nest.positions())),
            count: reduced.iter().map(|&axis| sizes[axis]).product(),
        });
        // SAFETY: as in `packed`.
        let lower = |nest| unsafe { Strided::new(self.start, Nest::operands(nest).next_row(), ()) };
        let data = reduce(&nest, &mut Parts::new(), lower, nest.positions(), len, 0, reducers::Sum)?;
        Ok(Operand::owned(data, order, sizes))
    }
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

/// The axes of a set, from the first on: one step for each, not one for each axis that there could be, as every product asks often.
#[inline]
pub(super) fn each(axes: Axes) -> impl Iterator<Item = usize> + Clone {
    let some = |left: Axes| (left != 0).then_some(left);
    core::iter::successors(some(axes), move |left| some(left & (left - 1)))
        .map(|left| left.trailing_zeros() as usize)
}

#[inline]
fn volume(axes: Axes, sizes: &[usize]) -> f64 {
    each(axes).map(|axis| sizes[axis] as f64).product()
}

/// The axes of an order as a set.
#[inline]
pub(super) fn set(order: &[usize]) -> Axes {
    order.iter().fold(0, |axes, &axis| axes | 1 << axis)
}

/// For each factor of a product the axes along which it varies.
pub type Supports = SmallVec<[Axes; 4]>;

/// Whether a product of such factors gains from being a contraction, rather than one fused loop over all axes.
///
/// It does where factors lack axes that others have, so that work is shared. Axes along which no factor varies, and
/// empty ones, are left to the fused loop.
#[inline]
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

/// `scale` times the product of the operands, summed over all axes but `kept`, contiguous in the order of `kept`.
pub fn contract<T: Num>(
    operands: SmallVec<[Operand<'_, T>; 4]>,
    scale: T,
    sizes: &[usize],
    kept: &[usize],
) -> Result<Vec<T>, DimError> {
    if TypeId::of::<T>() != TypeId::of::<T::Acc>() {
        return through_accumulator(&operands, scale, sizes, kept);
    }
    let mut data = contract_all(operands, sizes, kept)?;
    if scale != T::ONE {
        data.iter_mut().for_each(|value| *value = value.mul(scale));
    }
    Ok(data)
}

fn contract_all<T: Num>(
    mut operands: SmallVec<[Operand<'_, T>; 4]>,
    sizes: &[usize],
    kept: &[usize],
) -> Result<Vec<T>, DimError> {
    if operands.len() > 2 {
        let sets: Supports = operands.iter().map(|operand| operand.axes(sizes)).collect();
        let mut pairs = path(&sets, sizes, kept);
        pairs.pop();
        for (i, j, axes) in pairs {
            let b = operands.remove(j);
            let a = operands.remove(i);
            let order: SmallVec<[usize; 8]> = each(axes).collect();
            let data = pair(a, b, sizes, &order)?;
            operands.push(Operand::owned(data, &order, sizes));
        }
    }
    let b = operands.pop().expect("a contraction has two operands");
    let a = operands.pop().expect("a contraction has two operands");
    pair(a, b, sizes, kept)
}

/// Half precisions: operands are widened, and only the result is rounded.
fn through_accumulator<T: Num>(
    operands: &[Operand<'_, T>],
    scale: T,
    sizes: &[usize],
    kept: &[usize],
) -> Result<Vec<T>, DimError> {
    let mut wide = SmallVec::new();
    for operand in operands {
        let order: SmallVec<[usize; 8]> = each(operand.axes(sizes)).collect();
        let packed = operand.packed(&order, sizes)?;
        let data = packed.owned.iter().flat_map(|data| data.iter()).map(|value| value.to_acc()).collect();
        wide.push(Operand::owned(data, &order, sizes));
    }
    Ok(contract(wide, scale.to_acc(), sizes, kept)?.into_iter().map(T::from_acc).collect())
}

/// The product of two operands, summed over all axes but `kept`.
fn pair<T: Num>(
    mut a: Operand<'_, T>,
    mut b: Operand<'_, T>,
    sizes: &[usize],
    kept: &[usize],
) -> Result<Vec<T>, DimError> {
    let result = set(kept);
    let (in_a, in_b) = (a.axes(sizes), b.axes(sizes));
    a = without(a, in_a & !in_b & !result, sizes)?;
    b = without(b, in_b & !in_a & !result, sizes)?;
    let (in_a, in_b) = (a.axes(sizes), b.axes(sizes));
    let sum = in_a & in_b & !result;
    let (m, n) = (in_a & !in_b, in_b & !in_a);
    if sum == 0 || m == 0 || n == 0 {
        return fused_pair(&a, &b, sizes, kept);
    }
    matrix_pair(a, b, sizes, kept, Roles { batch: in_a & in_b & result, m, n, k: sum })
}

/// What only one operand has, and the result has not, is summed before the product.
fn without<'a, T: Num>(
    operand: Operand<'a, T>,
    lone: Axes,
    sizes: &[usize],
) -> Result<Operand<'a, T>, DimError> {
    if lone == 0 {
        return Ok(operand);
    }
    let order: SmallVec<[usize; 8]> = each(operand.axes(sizes) & !lone).collect();
    let reduced: SmallVec<[usize; 8]> = each(lone).collect();
    operand.summed(&order, &reduced, sizes)
}

/// A product that is no matrix product: one fused loop.
fn fused_pair<T: Num>(
    a: &Operand<'_, T>,
    b: &Operand<'_, T>,
    sizes: &[usize],
    kept: &[usize],
) -> Result<Vec<T>, DimError> {
    let mut rows = Rows::new(sizes.len());
    a.row(&mut rows);
    b.row(&mut rows);
    let reduced: SmallVec<[usize; 8]> = each((a.axes(sizes) | b.axes(sizes)) & !set(kept)).collect();
    let nest = Nest::reduce(sizes, kept, &reduced, &rows);
    let len = kept.iter().map(|&axis| sizes[axis]).product();
    record(|| Step::Reduce {
        reduction: "sum",
        expression: "mul(tensor, tensor)".into(),
        loops: Loops::new::<T>(&nest, len, threads::parts(nest.positions())),
        count: reduced.iter().map(|&axis| sizes[axis]).product(),
    });
    let lower = |nest| {
        let mut operands = Nest::operands(nest);
        // SAFETY: positions of the nest are positions of the loop axes.
        unsafe {
            BinaryKernel {
                op: &Mul,
                a: Strided::new(a.start, operands.next_row(), ()),
                b: Strided::new(b.start, operands.next_row(), ()),
            }
        }
    };
    reduce(&nest, &mut Parts::new(), lower, nest.positions(), len, 0, reducers::Sum)
}

fn matrix_pair<T: Num>(
    mut a: Operand<'_, T>,
    mut b: Operand<'_, T>,
    sizes: &[usize],
    kept: &[usize],
    roles: Roles<Axes>,
) -> Result<Vec<T>, DimError> {
    let c = contiguous(kept, sizes);
    let loops = |axes, a: &Operand<'_, T>, b: &Operand<'_, T>| merge(axes, sizes, &a.strides, &b.strides, &c);
    let len = kept.iter().map(|&axis| sizes[axis]).product();
    let mut runs = roles.map(|axes| loops(axes, &a, &b));
    #[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
    if let Some(products) = InPanels::of::<T>(&runs) {
        let mut out = reserve::<T>(len)?;
        record(|| products.step::<T>());
        // SAFETY: positions of the loops are positions of the loop axes, valid for both operands; for the result they are its `len`
        // places, distinct for distinct rows, columns and batches.
        unsafe {
            products.run(a.start, b.start, out.as_mut_ptr());
            out.set_len(len);
        }
        return Ok(out);
    }
    if runs.m.len() + runs.n.len() + runs.k.len() > 3 {
        (a, b) = packed_pair(a, b, &c, sizes, roles)?;
        runs = roles.map(|axes| loops(axes, &a, &b));
    }
    let mut out = reserve::<T>(len)?;
    // SAFETY: every position of the loops is a position of the loop axes, valid for both operands; for the result it is one of
    // its `len` places, distinct for distinct rows and columns, and written before it is added to.
    unsafe {
        let products = runs.products(a.start, b.start, out.as_mut_ptr());
        record(|| products.step());
        products.run();
    }
    // SAFETY: batch, rows and columns are all axes of `kept` that have more than one element, so every place was written.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// The operands of a product whose rows, columns or sums are several loops: an operand is packed if then fewer are left, if that does not
/// multiply its memory (windows overlap), and if its elements are used often enough.
fn packed_pair<'a, 'b, T: Num>(
    mut a: Operand<'a, T>,
    mut b: Operand<'b, T>,
    c: &[isize],
    sizes: &[usize],
    roles: Roles<Axes>,
) -> Result<(Operand<'a, T>, Operand<'b, T>), DimError> {
    let count = |a: &Operand<'_, T>, b: &Operand<'_, T>| -> usize {
        let loops = |&axes: &Axes| merge(axes, sizes, &a.strides, &b.strides, c).len();
        [roles.m, roles.n, roles.k].iter().map(loops).sum()
    };
    let a_axes = roles.batch | roles.m | roles.k;
    if volume(roles.n, sizes) >= 4.0 && a.is_injective(a_axes, sizes) {
        let order: SmallVec<[usize; 8]> = sorted(roles.batch, c)
            .into_iter()
            .chain(sorted(roles.m, c))
            .chain(sorted(roles.k, &b.strides))
            .collect();
        if count(&a.as_if_packed(&order, sizes), &b) < count(&a, &b) {
            a = a.packed(&order, sizes)?;
        }
    }
    let b_axes = roles.batch | roles.n | roles.k;
    if volume(roles.m, sizes) >= 4.0 && b.is_injective(b_axes, sizes) {
        let order: SmallVec<[usize; 8]> = sorted(roles.batch, c)
            .into_iter()
            .chain(sorted(roles.k, &a.strides))
            .chain(sorted(roles.n, c))
            .collect();
        if count(&a, &b.as_if_packed(&order, sizes)) < count(&a, &b) {
            b = b.packed(&order, sizes)?;
        }
    }
    Ok((a, b))
}

/// Axes from the greatest stride to the least.
pub(super) fn sorted(axes: Axes, strides: &[isize]) -> SmallVec<[usize; 8]> {
    let mut order: SmallVec<[usize; 8]> = SmallVec::new();
    // They are few: each goes behind those that are not less.
    for axis in each(axes) {
        order.push(axis);
        let mut at = order.len() - 1;
        while at > 0 && strides[order[at - 1]].unsigned_abs() < strides[axis].unsigned_abs() {
            order.swap(at - 1, at);
            at -= 1;
        }
    }
    order
}
