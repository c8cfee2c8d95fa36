//! Contractions: a product of several operands, summed over the axes that are not asked for.
//!
//! The path goes pair by pair, cheapest first. Each pair is a matrix product where it has rows (axes of the left operand
//! alone), columns (of the right one alone) and a common sum; axes that both keep are looped over. Strided operands go in
//! as they are where their axes merge into one row and one column stride; else the operand is packed, unless
//! that would multiply its memory (windows overlap), and then the axes that do not merge are loops as well.

use super::nest::{Nest, Odometer};
use super::rows::Rows;
use crate::error::DimError;
use crate::kernel::elementwise::{BinaryKernel, collect, reserve};
use crate::kernel::gemm::{Matrix, Product, multiply};
use crate::kernel::reduce::{reduce, reducers};
use crate::kernel::strided::Strided;
use crate::ops::Mul;
use crate::scalar::Num;
use smallvec::SmallVec;
use std::any::TypeId;
use std::marker::PhantomData;

/// A set of loop axes, as bits.
pub type Axes = u64;

/// One factor of a contraction: memory, and a stride along each loop axis.
pub struct Operand<'a, T> {
    start: *const T,
    owned: Option<Vec<T>>,
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
        Operand { start: data.as_ptr(), owned: Some(data), strides, memory: PhantomData }
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
        let kernel = unsafe { Strided::new(self.start, nest.operands().next_row(), ()) };
        Ok(Operand::owned(collect(kernel, &nest, len)?, order, sizes))
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
        let kernel = unsafe { Strided::new(self.start, nest.operands().next_row(), ()) };
        Ok(Operand::owned(reduce(kernel, &nest, len, 0, reducers::Sum)?, order, sizes))
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

#[inline]
fn each(axes: Axes) -> impl Iterator<Item = usize> + Clone {
    (0..Axes::BITS as usize).filter(move |&axis| axes >> axis & 1 == 1)
}

#[inline]
fn volume(axes: Axes, sizes: &[usize]) -> f64 {
    each(axes).map(|axis| sizes[axis] as f64).product()
}

#[inline]
fn set(order: &[usize]) -> Axes {
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
    let result = set(kept);
    while operands.len() > 2 {
        let (i, j) = cheapest(&operands, sizes, result);
        let b = operands.remove(j);
        let a = operands.remove(i);
        let others = operands.iter().fold(result, |axes, operand| axes | operand.axes(sizes));
        let order: SmallVec<[usize; 8]> = each((a.axes(sizes) | b.axes(sizes)) & others).collect();
        let data = pair(a, b, sizes, &order)?;
        operands.push(Operand::owned(data, &order, sizes));
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
        let data = packed.owned.iter().flatten().map(|value| value.to_acc()).collect();
        wide.push(Operand::owned(data, &order, sizes));
    }
    Ok(contract(wide, scale.to_acc(), sizes, kept)?.into_iter().map(T::from_acc).collect())
}

/// The pair whose product costs least for what it saves: the greedy choice of opt_einsum, size of the result less the
/// sizes of what it replaces, then the number of multiplications.
fn cheapest<T: Num>(operands: &[Operand<'_, T>], sizes: &[usize], result: Axes) -> (usize, usize) {
    let sets: SmallVec<[Axes; 8]> = operands.iter().map(|operand| operand.axes(sizes)).collect();
    let mut best = (f64::INFINITY, f64::INFINITY, (0, 1));
    for j in 1..sets.len() {
        for i in 0..j {
            let others = sets
                .iter()
                .enumerate()
                .filter(|&(at, _)| at != i && at != j)
                .fold(result, |axes, (_, other)| axes | other);
            let both = sets[i] | sets[j];
            let saved = volume(both & others, sizes) - volume(sets[i], sizes) - volume(sets[j], sizes);
            let flops = volume(both, sizes);
            if (saved, flops) < (best.0, best.1) {
                best = (saved, flops, (i, j));
            }
        }
    }
    best.2
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
    let mut operands = nest.operands();
    // SAFETY: positions of the nest are positions of the loop axes.
    let kernel = unsafe {
        BinaryKernel {
            op: &Mul,
            a: Strided::new(a.start, operands.next_row(), ()),
            b: Strided::new(b.start, operands.next_row(), ()),
        }
    };
    let len = kept.iter().map(|&axis| sizes[axis]).product();
    reduce(kernel, &nest, len, 0, reducers::Sum)
}

/// What each axis is in a matrix product.
#[derive(Clone, Copy)]
struct Roles {
    batch: Axes,
    m: Axes,
    n: Axes,
    k: Axes,
}

/// One loop over merged axes, with the strides of both operands and of the result.
#[derive(Clone, Copy)]
struct Loop {
    size: usize,
    a: isize,
    b: isize,
    c: isize,
}

fn matrix_pair<T: Num>(
    mut a: Operand<'_, T>,
    mut b: Operand<'_, T>,
    sizes: &[usize],
    kept: &[usize],
    roles: Roles,
) -> Result<Vec<T>, DimError> {
    let c = contiguous(kept, sizes);
    let order = |axes: Axes| each(axes);
    let loops = |axes, a: &Operand<'_, T>, b: &Operand<'_, T>| merge(axes, sizes, &a.strides, &b.strides, &c);
    // An operand whose rows, columns or sums do not merge is packed once, if that does not multiply its memory and
    // its elements are used often enough.
    let scattered = |axes, a: &Operand<'_, T>, b: &Operand<'_, T>| loops(axes, a, b).len() > 1;
    if scattered(roles.k, &a, &b) || scattered(roles.m, &a, &b) {
        let axes = roles.batch | roles.m | roles.k;
        if volume(roles.n, sizes) >= 4.0 && a.is_injective(axes, sizes) {
            let order: SmallVec<[usize; 8]> =
                order(roles.batch).chain(sorted(roles.m, &c)).chain(sorted(roles.k, &b.strides)).collect();
            a = a.packed(&order, sizes)?;
        }
    }
    if scattered(roles.k, &a, &b) || scattered(roles.n, &a, &b) {
        let axes = roles.batch | roles.n | roles.k;
        if volume(roles.m, sizes) >= 4.0 && b.is_injective(axes, sizes) {
            let order: SmallVec<[usize; 8]> =
                order(roles.batch).chain(sorted(roles.k, &a.strides)).chain(sorted(roles.n, &c)).collect();
            b = b.packed(&order, sizes)?;
        }
    }
    let (m, m_rest) = widest(loops(roles.m, &a, &b));
    let (n, n_rest) = widest(loops(roles.n, &a, &b));
    let (k, k_rest) = widest(loops(roles.k, &a, &b));
    let mut outer: SmallVec<[Loop; 8]> = loops(roles.batch, &a, &b);
    outer.extend(m_rest);
    outer.extend(n_rest);
    let products = outer.len();
    outer.extend(k_rest);

    let len = kept.iter().map(|&axis| sizes[axis]).product();
    let mut out = reserve::<T>(len)?;
    let counts: SmallVec<[usize; 8]> = outer.iter().map(|l| l.size).collect();
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, counts.len());
    let mut odometer = Odometer::new(&counts);
    while !odometer.is_done() {
        let offset = |stride: fn(&Loop) -> isize| -> isize {
            outer.iter().zip(&at).map(|(l, &at)| at as isize * stride(l)).sum()
        };
        let product = Product {
            m: m.size,
            k: k.size,
            n: n.size,
            a: Matrix { start: a.start.wrapping_offset(offset(|l| l.a)), row: m.a, col: k.a },
            b: Matrix { start: b.start.wrapping_offset(offset(|l| l.b)), row: k.b, col: n.b },
            c: out.as_mut_ptr().wrapping_offset(offset(|l| l.c)),
            c_row: m.c,
            c_col: n.c,
            accumulate: at[products..].iter().any(|&at| at != 0),
        };
        // SAFETY: every position of the loops is a position of the loop axes, valid for both operands; for the result
        // it is one of its `len` places, distinct for distinct rows and columns, and written before it is added to.
        unsafe { multiply(&product) };
        odometer.advance(&mut at);
    }
    // SAFETY: batch, rows and columns are all axes of `kept` that have more than one element, so every place was written.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// Axes from the greatest stride to the least.
fn sorted(axes: Axes, strides: &[isize]) -> SmallVec<[usize; 8]> {
    let mut order: SmallVec<[usize; 8]> = each(axes).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(strides[axis].unsigned_abs()));
    order
}

/// Merges axes into loops, as far as all three agree.
fn merge(axes: Axes, sizes: &[usize], a: &[isize], b: &[isize], c: &[isize]) -> SmallVec<[Loop; 8]> {
    // All that vary along an axis order it alike where it merges, so any of them can give the order.
    let order = sorted(axes, if each(axes).all(|axis| c[axis] != 0) { c } else { a });
    let mut loops: SmallVec<[Loop; 8]> = SmallVec::new();
    for axis in order {
        let next = Loop { size: sizes[axis], a: a[axis], b: b[axis], c: c[axis] };
        if let Some(last) = loops.last_mut() {
            let reach = next.size as isize;
            if last.a == next.a * reach && last.b == next.b * reach && last.c == next.c * reach {
                *last = Loop { size: last.size * next.size, ..next };
                continue;
            }
        }
        loops.push(next);
    }
    loops
}

/// The longest loop, and the others.
fn widest(mut loops: SmallVec<[Loop; 8]>) -> (Loop, SmallVec<[Loop; 8]>) {
    let at = (0..loops.len()).max_by_key(|&at| loops[at].size).expect("the role has an axis");
    let widest = loops.remove(at);
    (widest, loops)
}
