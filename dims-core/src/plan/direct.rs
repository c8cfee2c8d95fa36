//! Products of two tensors in memory whose roles rustc knows: at most one axis each for batch, rows, columns and sum.
//!
//! Which axis is what follows from the types, so it is a constant; at run time only sizes and strides are looked up. A small
//! product so costs little more than its multiplications.

use super::axes::{AxisList, Layout};
use super::explain::{Step, record};
use crate::error::DimError;
use crate::kernel::gemm::{Batch, Lies, multiply_batch};
use crate::scalar::Num;
use crate::set::Keys;
use crate::storage::Elements;
use crate::storage::axes::Axis;
use alloc::vec::Vec;
use core::any::TypeId;

/// Elements in memory, with the axes of their dims.
pub type Memory<'s, T> = (Elements<'s, T>, &'s [Axis]);

/// A tensor in memory as its type tells of it: its dims, and in which order they lie if the type says that, too.
pub type Typed = (&'static Keys, Layout);

/// Which axis of each operand is what in a product.
#[derive(Clone, Copy, Debug)]
pub struct Roles {
    m: usize,
    n: usize,
    k: (usize, usize),
    batch: Option<(usize, usize)>,
    /// The axes of the result in order.
    result: [Role; 3],
    /// The axis of each operand along which elements are neighbours, where the operand's type says so.
    unit: [Option<usize>; 2],
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
        Roles { m, n, k, batch, result, unit: [None; 2] }
    }

    /// The roles in the product of the operands `a` and `b`, summed over the dims `reduced`, whose result has the dims
    /// `all` without those; nothing if a role has no axis or several.
    ///
    /// `order` is that of the axes of `all` in memory.
    pub const fn of(
        (a, a_lies): Typed,
        (b, b_lies): Typed,
        all: &Keys,
        reduced: &Keys,
        order: &AxisList,
    ) -> Option<Roles> {
        let (mut m, mut n, mut k, mut batch) = (None, None, None, None);
        let mut result = [Role::None; 3];
        let mut count = 0;
        let mut i = 0;
        while i < all.as_slice().len() {
            let key = &all.as_slice()[order.as_slice()[i]];
            let goes = reduced.position(key).is_some();
            let role = match (a.position(key), b.position(key), goes) {
                (Some(x), Some(y), true) if k.is_none() => {
                    k = Some((x, y));
                    Role::None
                }
                (Some(x), Some(y), false) if batch.is_none() => {
                    batch = Some((x, y));
                    Role::Batch
                }
                (Some(x), None, false) if m.is_none() => {
                    m = Some(x);
                    Role::Row
                }
                (None, Some(y), false) if n.is_none() => {
                    n = Some(y);
                    Role::Column
                }
                _ => return None,
            };
            if !matches!(role, Role::None) {
                result[count] = role;
                count += 1;
            }
            i += 1;
        }
        match (m, n, k) {
            (Some(m), Some(n), Some(k)) => {
                let unit = [a_lies.innermost(a), b_lies.innermost(b)];
                Some(Roles { m, n, k, batch, result, unit })
            }
            _ => None,
        }
    }

    /// How the matrices lie, if the types of the operands say so. The result lies in the order of its axes.
    const fn lies(&self) -> Option<Lies> {
        let last = match self.result {
            [.., Role::None, Role::None] => self.result[0],
            [.., Role::None] => self.result[1],
            _ => self.result[2],
        };
        match (last, self.unit) {
            (Role::Column, [_, Some(unit)]) => Some(Lies { turned: false, in_rows: unit == self.n }),
            (Role::Row, [Some(unit), _]) => Some(Lies { turned: true, in_rows: unit == self.m }),
            _ => None,
        }
    }

    /// The axis `at` of the operand with this number. A stride of 1 that rustc knows is a constant in what runs.
    #[inline(always)]
    fn axis(&self, operand: usize, axes: &[Axis], at: usize) -> Axis {
        match self.unit[operand] {
            Some(unit) if unit == at => Axis::new(axes[at].size, 1),
            _ => axes[at],
        }
    }

    /// Runs the product. Returns the elements of the result and the sizes of its axes, or nothing if the operands call for
    /// the general path: their sizes conflict, are zero or great, or their elements are half precisions.
    #[inline(always)]
    pub fn run<T: Num>(
        &self,
        a: Memory<'_, T>,
        b: Memory<'_, T>,
    ) -> Option<Result<(Vec<T>, [usize; 3]), DimError>> {
        // Half precisions are summed in another type.
        if TypeId::of::<T>() != TypeId::of::<T::Acc>() {
            return None;
        }
        let (a_elements, a) = a;
        let (b_elements, b) = b;
        let (row, column) = (self.axis(0, a, self.m), self.axis(1, b, self.n));
        let (a_sum, b_sum) = (self.axis(0, a, self.k.0), self.axis(1, b, self.k.1));
        let (a_batch, b_batch) = match self.batch {
            Some((x, y)) => (self.axis(0, a, x), self.axis(1, b, y)),
            None => (Axis::new(1, 0), Axis::new(1, 0)),
        };
        let size = |role| match role {
            Role::None => 1,
            Role::Batch => a_batch.size,
            Role::Row => row.size,
            Role::Column => column.size,
        };
        let sizes = self.result.map(size);
        if a_sum.size != b_sum.size || a_batch.size != b_batch.size {
            return None;
        }
        // An operand that is the same for the whole batch, as an argument of a batched function can be: the batch may then be rows
        // or columns of one product. (What is laid out varies along each axis.)
        let same = |operand: usize, batch: Axis| self.unit[operand].is_none() && batch.stride == 0;
        if a_batch.size > 1 && (same(0, a_batch) || same(1, b_batch)) {
            return None;
        }
        let len = sizes[0].checked_mul(sizes[1])?.checked_mul(sizes[2])?;
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
        let steps = [sizes[1] * sizes[2], sizes[2], 1];
        let step = |role| {
            let at = self.result.iter().position(|&own| own == role);
            at.map_or(0, |at| steps[at] as isize)
        };
        record(|| Step::Product {
            batch: a_batch.size,
            m: row.size,
            k: a_sum.size,
            n: column.size,
            a: (row.stride, a_sum.stride),
            b: (b_sum.stride, column.stride),
            c: (step(Role::Row), step(Role::Column)),
            summed: 1,
            bytes: len * size_of::<T>(),
            threads: 1,
            typed: self.lies().is_some(),
        });
        let batch = Batch {
            count: a_batch.size,
            m: row.size,
            k: a_sum.size,
            n: column.size,
            a: [a_batch.stride, row.stride, a_sum.stride],
            b: [b_batch.stride, b_sum.stride, column.stride],
            c: [step(Role::Batch), step(Role::Row), step(Role::Column)],
        };
        match multiply_batch(batch, self.lies(), a_elements, b_elements, len) {
            Ok(out) => Some(Ok((out, sizes))),
            Err(error) => Some(Err(error)),
        }
    }
}
