//! Products of two tensors in memory whose roles rustc knows: one axis for the sum, and for batch, rows and columns as many as lie one
//! behind the other, as the further dims of a batched function do.
//!
//! Which axis is what follows from the types, so it is a constant; at run time only sizes and strides are looked up. A small
//! product so costs little more than its multiplications.

use super::axes::AxisList;
use super::explain::{Step, record};
use crate::error::DimError;
use crate::kernel::gemm::{Matrix, Product, multiply};
use crate::scalar::Num;
use crate::set::Keys;
use crate::storage::axes::Axis;
use crate::storage::memory::reserve;
use alloc::vec::Vec;
use core::any::TypeId;

/// Elements in memory, with the axes of their dims.
pub type Memory<'s, T> = (*const T, &'s [Axis]);

/// The most axes of a result.
const MOST: usize = 6;

/// Axes of one operand that can be one loop.
#[derive(Clone, Copy, Debug)]
struct Group {
    axes: [usize; MOST],
    count: usize,
}

impl Group {
    const EMPTY: Group = Group { axes: [0; MOST], count: 0 };

    const fn with(mut self, axis: usize) -> Self {
        self.axes[self.count] = axis;
        self.count += 1;
        self
    }

    /// One axis for all of them, if each starts where the one behind it ends.
    #[inline(always)]
    fn merged(&self, axes: &[Axis]) -> Option<Axis> {
        self.axes[..self.count]
            .iter()
            .rev()
            .try_fold(Axis::new(1, 0), |inner, &axis| merged(axes[axis], inner))
    }
}

/// Two axes as one, if the outer one's elements are as far apart as the inner one is long.
#[inline(always)]
fn merged(outer: Axis, inner: Axis) -> Option<Axis> {
    if inner.size == 1 {
        return Some(outer);
    }
    if outer.size == 1 {
        return Some(inner);
    }
    let behind = inner.stride.wrapping_mul(inner.size as isize);
    let size = inner.size.checked_mul(outer.size)?;
    (outer.stride == behind).then_some(Axis::new(size, inner.stride))
}

/// Which axis of each operand is what in a product.
#[derive(Clone, Copy, Debug)]
pub struct Roles {
    m: Group,
    n: Group,
    k: (usize, usize),
    /// Of the left operand, and of the right one.
    batch: (Group, Group),
    /// The axes of the result in order, and which it is of those of its role.
    result: [(Role, usize); MOST],
}

/// An axis of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// There is no such axis.
    None,
    /// Both operands have it.
    Batch,
    /// The left operand has it.
    Row,
    /// The right operand has it.
    Column,
}

impl Roles {
    /// The roles in a product of operands whose axes these are: the rows of the left one, the columns of the right one, the sum and
    /// the batch of both, and the axes of the result in order.
    pub const fn new(
        m: usize,
        n: usize,
        k: (usize, usize),
        batch: Option<(usize, usize)>,
        result: [Role; 3],
    ) -> Self {
        let mut all = [(Role::None, 0); MOST];
        let mut at = 0;
        while at < result.len() {
            all[at].0 = result[at];
            at += 1;
        }
        let batch = match batch {
            Some((x, y)) => (Group::EMPTY.with(x), Group::EMPTY.with(y)),
            None => (Group::EMPTY, Group::EMPTY),
        };
        Roles { m: Group::EMPTY.with(m), n: Group::EMPTY.with(n), k, batch, result: all }
    }

    /// The roles in the product of operands with the dims `a` and `b`, summed over the dims `reduced`, whose result has the dims
    /// `all` without those; nothing if the sum has not one axis, there are no columns, neither rows nor a batch, which may turn out to be rows,
    /// or the axes of a role are not side by side in the result.
    ///
    /// `order` is that of the axes of `all` in memory.
    pub const fn of(a: &Keys, b: &Keys, all: &Keys, reduced: &Keys, order: &AxisList) -> Option<Roles> {
        let (mut m, mut n, mut k) = (Group::EMPTY, Group::EMPTY, None);
        let mut batch = (Group::EMPTY, Group::EMPTY);
        let mut result = [(Role::None, 0); MOST];
        let mut count = 0;
        let mut i = 0;
        while i < all.as_slice().len() {
            let key = &all.as_slice()[order.as_slice()[i]];
            let goes = reduced.position(key).is_some();
            if !goes && count == MOST {
                return None;
            }
            let before = if count == 0 { Role::None } else { result[count - 1].0 };
            let role = match (a.position(key), b.position(key), goes) {
                (Some(x), Some(y), true) if k.is_none() => {
                    k = Some((x, y));
                    (Role::None, 0)
                }
                (Some(x), Some(y), false) if batch.0.count == 0 || matches!(before, Role::Batch) => {
                    batch = (batch.0.with(x), batch.1.with(y));
                    (Role::Batch, batch.0.count - 1)
                }
                (Some(x), None, false) if m.count == 0 || matches!(before, Role::Row) => {
                    m = m.with(x);
                    (Role::Row, m.count - 1)
                }
                (None, Some(y), false) if n.count == 0 || matches!(before, Role::Column) => {
                    n = n.with(y);
                    (Role::Column, n.count - 1)
                }
                _ => return None,
            };
            if !matches!(role.0, Role::None) {
                result[count] = role;
                count += 1;
            }
            i += 1;
        }
        match k {
            Some(k) if n.count > 0 && m.count + batch.0.count > 0 => Some(Roles { m, n, k, batch, result }),
            _ => None,
        }
    }

    /// Whether batch and rows are side by side in the result, in this order, or there are no rows.
    #[inline(always)]
    fn batch_is_before_rows(&self) -> bool {
        let first_row = self.result.iter().position(|&(role, _)| role == Role::Row);
        first_row.is_none_or(|at| at > 0 && self.result[at - 1].0 == Role::Batch)
    }

    /// Runs the product. Returns the elements of the result and the sizes of its axes, or nothing if the operands call for
    /// the general path: their sizes conflict, are zero or great, or their elements are half precisions.
    #[inline(always)]
    pub fn run<T: Num>(
        &self,
        a: Memory<'_, T>,
        b: Memory<'_, T>,
    ) -> Option<Result<(Vec<T>, [usize; MOST]), DimError>> {
        // Half precisions are summed in another type.
        if TypeId::of::<T>() != TypeId::of::<T::Acc>() {
            return None;
        }
        let (a_start, a) = a;
        let (b_start, b) = b;
        let (mut row, column) = (self.m.merged(a)?, self.n.merged(b)?);
        let (a_sum, b_sum) = (a[self.k.0], b[self.k.1]);
        let (mut a_batch, mut b_batch) = (self.batch.0.merged(a)?, self.batch.1.merged(b)?);
        let size = |(role, at): (Role, usize)| match role {
            Role::None => 1,
            Role::Batch => a[self.batch.0.axes[at]].size,
            Role::Row => a[self.m.axes[at]].size,
            Role::Column => b[self.n.axes[at]].size,
        };
        let sizes = self.result.map(size);
        let (x, y) = &self.batch;
        let agree = |(&x, &y): (&usize, &usize)| a[x].size == b[y].size;
        if a_sum.size != b_sum.size || !x.axes[..x.count].iter().zip(&y.axes[..y.count]).all(agree) {
            return None;
        }
        let mut rows = Role::Row;
        // An operand that is the same for the whole batch, as an argument of a batched function can be: the batch is rows of one product.
        if a_batch.size > 1 && b_batch.stride == 0 && self.batch_is_before_rows() {
            row = merged(a_batch, row)?;
            rows = if self.m.count == 0 { Role::Batch } else { Role::Row };
            (a_batch, b_batch) = (Axis::new(1, 0), Axis::new(1, 0));
        }
        // (Or columns, or a product with a vector: what is best for those is planned in full.)
        if a_batch.size > 1 && (a_batch.stride == 0 || b_batch.stride == 0)
            || self.m.count == 0 && matches!(rows, Role::Row)
        {
            return None;
        }
        let len = a_batch.size.checked_mul(row.size)?.checked_mul(column.size)?;
        // What may be worth several threads, or another kernel, is planned in full.
        if len.checked_mul(a_sum.size)? > 64 * 64 * 64 {
            return None;
        }
        if len == 0
            || a_sum.size == 0
            || len.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize)
        {
            return None;
        }
        let mut out = match reserve::<T>(len) {
            Ok(out) => out,
            Err(error) => return Some(Err(error)),
        };
        // Rows are side by side in the result, and columns are: one step takes from each to the next.
        let step = |role| {
            let last = self.result.iter().rposition(|&(own, _)| own == role);
            last.map_or(0, |last| sizes[last + 1..].iter().product::<usize>() as isize)
        };
        record(|| Step::Product {
            batch: a_batch.size,
            m: row.size,
            k: a_sum.size,
            n: column.size,
            a: (row.stride, a_sum.stride),
            b: (b_sum.stride, column.stride),
            c: (step(rows), step(Role::Column)),
            summed: 1,
            bytes: len * size_of::<T>(),
            threads: 1,
        });
        for at in 0..a_batch.size as isize {
            let product = Product {
                m: row.size,
                k: a_sum.size,
                n: column.size,
                a: Matrix {
                    start: a_start.wrapping_offset(at * a_batch.stride),
                    row: row.stride,
                    col: a_sum.stride,
                },
                b: Matrix {
                    start: b_start.wrapping_offset(at * b_batch.stride),
                    row: b_sum.stride,
                    col: column.stride,
                },
                c: out.as_mut_ptr().wrapping_offset(at * step(Role::Batch)),
                c_row: step(rows),
                c_col: step(Role::Column),
                accumulate: false,
            };
            // SAFETY: the positions of rows, columns, sum and batch are positions of the operands' axes (the sizes agree),
            // all of which are elements of theirs; together they are all places of the result, each once.
            unsafe { multiply(&product) };
        }
        // SAFETY: the products wrote every place of the result.
        unsafe { out.set_len(len) };
        Some(Ok((out, sizes)))
    }
}
