//! Products of two tensors in memory, summed over one axis. Batch, rows and columns may each span
//! several adjacent axes. Other products, and large ones, take the general path, which plans a
//! contraction or a loop nest at run time.
//!
//! The roles of the axes follow from the types or from a pattern, so they are constants. At run
//! time only sizes and strides are looked up.

use crate::error::DimError;
use crate::plan::axes::{AxisList, Layout};
use crate::types::set::Keys;
use alloc::vec::Vec;
use core::any::TypeId;
use kernels::gemm::{KnownLayout, StridedBatch};
use kernels::loops::steps::{PlanStep, ProductDims, note};
use kernels::memory::allocate::reserve;
use kernels::memory::axes::Axis;
use kernels::memory::elements::Elements;
use kernels::scalar::Num;

/// Elements in memory with the axes of their dims.
pub type ElementsAlong<'s, T> = (Elements<'s, T>, &'s [Axis]);

/// A product that is ready to run.
pub(crate) struct Planned<T> {
    /// Its matrix products: their sizes, and the strides of the operands and of the result.
    pub(crate) batch: StridedBatch,
    /// The layout of the matrices, if the operands' types determine it.
    pub(crate) layout: Option<KnownLayout>,
    /// Memory for the result.
    pub(crate) out: Vec<T>,
    /// The number of elements of the result.
    pub(crate) len: usize,
    /// The sizes of the result's axes.
    pub(crate) sizes: ResultSizes,
}

/// The sizes of a result's axes, padded with 1.
pub(crate) type ResultSizes = [usize; MOST];

/// The static type of a tensor in memory: its dims, and their order in memory if the type
/// determines it.
pub type Typed = (&'static Keys, Layout);

/// The maximum number of axes of a result.
const MOST: usize = 6;

/// Axes of one operand or of the result that may be merged into one loop.
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

    /// The axes merged into one, if each can be merged with those behind it (see the function
    /// `merged`).
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn merged(&self, axes: &[Axis]) -> Option<Axis> {
        // (Loops, here and below, because iterator closures are not always inlined.)
        let mut all = Axis::new(1, 0);
        for at in (0..self.count).rev() {
            all = merged(axes[self.axes[at]], all)?;
        }
        Some(all)
    }

    /// The axes merged into one. They must be adjacent, and `last` is the innermost. `None` if the
    /// size overflows.
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[track_caller]
    fn run(&self, last: Axis, axes: &[Axis]) -> Option<Axis> {
        let mut size = last.size;
        for at in 0..self.count - 1 {
            size = size.checked_mul(axes[self.axes[at]].size)?;
        }
        Some(Axis::new(size, last.stride))
    }

    const fn last(&self) -> Option<usize> {
        if self.count == 0 { None } else { Some(self.axes[self.count - 1]) }
    }

    /// Whether these axes of `all` directly follow one another in a layout with the order `order`.
    const fn is_run_of(&self, order: &Keys, all: &Keys) -> bool {
        let mut at = 1;
        while at < self.count {
            let before = order.position(&all.as_slice()[self.axes[at - 1]]);
            let behind = order.position(&all.as_slice()[self.axes[at]]);
            match (before, behind) {
                (Some(before), Some(behind)) if before + 1 == behind => at += 1,
                _ => return false,
            }
        }
        true
    }
}

/// Two axes merged into one, if one has size 1 or the outer stride is the inner stride times the
/// inner size. Otherwise, or if the size overflows, `None`.
#[cfg_attr(not(debug_assertions), inline(always))]
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

/// The roles of the operands' axes in a product.
#[derive(Clone, Copy, Debug)]
pub struct Roles {
    m: Group,
    n: Group,
    k: (usize, usize),
    /// The batch axes of the left and the right operand.
    batch: (Group, Group),
    /// The result's axes in order: the role of each, and its number within the role.
    result: [(AxisRole, usize); MOST],
    /// The result's axes of the batch, of the rows and of the columns.
    out: [Group; 3],
    /// For each operand, the axis with stride 1, if the operand's type determines it and also makes
    /// the axes of each role adjacent.
    unit: [Option<usize>; 2],
    /// The layout of the matrices, if the operands' types determine it.
    lies: Option<KnownLayout>,
}

/// The role of an axis of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum AxisRole {
    /// No axis.
    None,
    /// Both operands have it.
    Batch,
    /// Only the left operand has it.
    Row,
    /// Only the right operand has it.
    Column,
}

/// Roles under construction, axis by axis.
struct Finding {
    m: Group,
    n: Group,
    k: Option<(usize, usize)>,
    batch: (Group, Group),
    result: [(AxisRole, usize); MOST],
    count: usize,
}

impl Finding {
    const NONE: Finding = Finding {
        m: Group::EMPTY,
        n: Group::EMPTY,
        k: None,
        batch: (Group::EMPTY, Group::EMPTY),
        result: [(AxisRole::None, 0); MOST],
        count: 0,
    };

    /// Adds the next axis: its numbers in the left and the right operand, and whether it is summed.
    /// Returns whether it can have a role.
    const fn note(&mut self, left: Option<usize>, right: Option<usize>, is_summed: bool) -> bool {
        if is_summed {
            return match (left, right, self.k) {
                (Some(x), Some(y), None) => {
                    self.k = Some((x, y));
                    true
                }
                _ => false,
            };
        }
        if self.count == MOST {
            return false;
        }
        let before = if self.count == 0 { AxisRole::None } else { self.result[self.count - 1].0 };
        self.result[self.count] = match (left, right) {
            (Some(x), Some(y)) if self.batch.0.count == 0 || matches!(before, AxisRole::Batch) => {
                self.batch = (self.batch.0.with(x), self.batch.1.with(y));
                (AxisRole::Batch, self.batch.0.count - 1)
            }
            (Some(x), None) if self.m.count == 0 || matches!(before, AxisRole::Row) => {
                self.m = self.m.with(x);
                (AxisRole::Row, self.m.count - 1)
            }
            (None, Some(y)) if self.n.count == 0 || matches!(before, AxisRole::Column) => {
                self.n = self.n.with(y);
                (AxisRole::Column, self.n.count - 1)
            }
            _ => return false,
        };
        self.count += 1;
        true
    }

    const fn roles(self) -> Option<Roles> {
        let Finding { m, n, k, batch, result, count } = self;
        let mut out = [Group::EMPTY; 3];
        let mut at = 0;
        while at < count {
            let role = match result[at].0 {
                AxisRole::Batch => 0,
                AxisRole::Row => 1,
                AxisRole::Column | AxisRole::None => 2,
            };
            out[role] = out[role].with(at);
            at += 1;
        }
        match k {
            Some(k) if n.count > 0 && m.count + batch.0.count > 0 => {
                Some(Roles { m, n, k, batch, result, out, unit: [None; 2], lies: None })
            }
            _ => None,
        }
    }
}

const fn position(list: &[usize], number: usize) -> Option<usize> {
    let mut at = 0;
    while at < list.len() {
        if list[at] == number {
            return Some(at);
        }
        at += 1;
    }
    None
}

impl Roles {
    /// The roles in the product of `a` and `b`, summed over the dims `reduced`. The result has the
    /// remaining dims of `all`. `None` unless `reduced` is a single dim of both operands, there are
    /// columns, there are rows or batch axes (which may become rows), the axes of each role are
    /// adjacent in the result, and the result has at most `MOST` axes.
    ///
    /// `order` lists the axes of `all`, those of the result in the order of the result.
    pub const fn of(
        (a, a_lies): Typed,
        (b, b_lies): Typed,
        all: &Keys,
        reduced: &Keys,
        order: &AxisList,
    ) -> Option<Roles> {
        let mut found = Finding::NONE;
        let mut i = 0;
        while i < all.as_slice().len() {
            let key = &all.as_slice()[order.as_slice()[i]];
            if !found.note(a.position(key), b.position(key), reduced.position(key).is_some()) {
                return None;
            }
            i += 1;
        }
        let Some(mut roles) = found.roles() else { return None };
        roles.unit = [
            Self::unit_of(a, a_lies, &roles.m, &roles.batch.0),
            Self::unit_of(b, b_lies, &roles.n, &roles.batch.1),
        ];
        if roles.m.count > 0 {
            roles.lies = roles.as_typed();
        }
        Some(roles)
    }

    /// The [`unit`](Roles::unit) of an operand with the dims `all`.
    const fn unit_of(all: &Keys, lies: Layout, lines: &Group, batch: &Group) -> Option<usize> {
        match lies {
            Layout::In { order, .. } if lines.is_run_of(order, all) && batch.is_run_of(order, all) => {
                lies.innermost(all)
            }
            _ => None,
        }
    }

    /// Like [`of`](Roles::of), for axes given by number. An operand has each number at most once,
    /// and the result has some of these numbers.
    pub const fn of_axes(a: &[usize], b: &[usize], result: &[usize]) -> Option<Roles> {
        let mut found = Finding::NONE;
        let mut i = 0;
        while i < result.len() {
            if !found.note(position(a, result[i]), position(b, result[i]), false) {
                return None;
            }
            i += 1;
        }
        i = 0;
        while i < a.len() {
            if position(result, a[i]).is_none() && !found.note(Some(i), position(b, a[i]), true) {
                return None;
            }
            i += 1;
        }
        i = 0;
        while i < b.len() {
            if position(result, b[i]).is_none() && position(a, b[i]).is_none() {
                return None;
            }
            i += 1;
        }
        found.roles()
    }

    /// Whether batch and rows are adjacent in the result, in this order, or there are no rows.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn batch_is_before_rows(&self) -> bool {
        let first_row = self.result.iter().position(|&(role, _)| role == AxisRole::Row);
        first_row.is_none_or(|at| at > 0 && self.result[at - 1].0 == AxisRole::Batch)
    }

    /// Whether there are rows, and the last axis of the result is a batch axis, so that
    /// neighboring elements come from different products.
    pub const fn ends_in_batch(&self) -> bool {
        let mut at = 0;
        while at + 1 < MOST && !matches!(self.result[at + 1].0, AxisRole::None) {
            at += 1;
        }
        self.m.count > 0 && matches!(self.result[at].0, AxisRole::Batch)
    }

    /// The layout of the matrices, if the operands' types determine it. The result is contiguous in
    /// the order of its axes.
    const fn as_typed(&self) -> Option<KnownLayout> {
        let mut last = AxisRole::None;
        let mut at = 0;
        while at < MOST && !matches!(self.result[at].0, AxisRole::None) {
            last = self.result[at].0;
            at += 1;
        }
        let (transposed, unit, lines) = match last {
            AxisRole::Column => (false, self.unit[1], self.n.last()),
            AxisRole::Row => (true, self.unit[0], self.m.last()),
            AxisRole::Batch | AxisRole::None => return None,
        };
        match (unit, lines) {
            (Some(unit), Some(last)) => Some(KnownLayout { transposed, row_major_b: unit == last }),
            _ => None,
        }
    }

    /// Axis number `at` among the `axes` of an operand. `operand` is 0 for the left operand and 1
    /// for the right one. If the operand's type says that the stride of the axis is 1, the stride
    /// is a constant in the compiled code.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn axis(&self, operand: usize, axes: &[Axis], at: usize) -> Axis {
        match self.unit[operand] {
            Some(unit) if unit == at => Axis::new(axes[at].size, 1),
            _ => axes[at],
        }
    }

    /// All axes of a group merged into one, if possible.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn merged(&self, operand: usize, axes: &[Axis], group: &Group) -> Option<Axis> {
        match group.last() {
            Some(last) if group.count == 1 || self.unit[operand].is_some() => {
                group.run(self.axis(operand, axes, last), axes)
            }
            _ => group.merged(axes),
        }
    }

    /// The stride along the axes of a role, which are adjacent, in a contiguous result of these
    /// sizes. 0 if the role has no axes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn step(&self, sizes: &[usize; MOST], role: AxisRole) -> isize {
        let mut step = 1;
        for at in (0..MOST).rev() {
            if self.result[at].0 == role {
                return step as isize;
            }
            step *= sizes[at];
        }
        0
    }

    /// The loops of the product of operands with these axes. `None` if the product needs the
    /// general path.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn loops<T: Num>(&self, a: &[Axis], b: &[Axis]) -> Option<PlannedProduct> {
        // Half precisions are summed in another type.
        if TypeId::of::<T>() != TypeId::of::<T::Acc>() {
            return None;
        }
        let (mut row, column) = (self.merged(0, a, &self.m)?, self.merged(1, b, &self.n)?);
        let (a_sum, b_sum) = (self.axis(0, a, self.k.0), self.axis(1, b, self.k.1));
        let (mut a_batch, mut b_batch) =
            (self.merged(0, a, &self.batch.0)?, self.merged(1, b, &self.batch.1)?);
        let mut sizes = [1; MOST];
        for (size, &(role, at)) in sizes.iter_mut().zip(&self.result) {
            *size = match role {
                AxisRole::None => break,
                AxisRole::Batch => a[self.batch.0.axes[at]].size,
                AxisRole::Row => a[self.m.axes[at]].size,
                AxisRole::Column => b[self.n.axes[at]].size,
            };
        }
        let (x, y) = &self.batch;
        let mut agree = a_sum.size == b_sum.size;
        for at in 0..x.count {
            agree &= a[x.axes[at]].size == b[y.axes[at]].size;
        }
        if !agree {
            return None;
        }
        let mut rows = AxisRole::Row;
        let typed = self.unit[0].is_some() || self.unit[1].is_some();
        // If the right operand is the same for the whole batch, the batch becomes rows of one
        // product. (Operands with a known layout vary along each axis.)
        if a_batch.size > 1 && b_batch.stride == 0 && !typed && self.batch_is_before_rows() {
            row = merged(a_batch, row)?;
            rows = if self.m.count == 0 { AxisRole::Batch } else { AxisRole::Row };
            (a_batch, b_batch) = (Axis::new(1, 0), Axis::new(1, 0));
        }
        // (The general path handles any other batch along which an operand is the same, and
        // products with a vector.)
        let same = |operand: usize, batch: Axis| self.unit[operand].is_none() && batch.stride == 0;
        if a_batch.size > 1 && (same(0, a_batch) || same(1, b_batch))
            || self.m.count == 0 && matches!(rows, AxisRole::Row)
        {
            return None;
        }
        let len = a_batch.size.checked_mul(row.size)?.checked_mul(column.size)?;
        // A product that may need several threads or another kernel takes the general path.
        if len.checked_mul(a_sum.size)? > 64 * 64 * 64 {
            return None;
        }
        if len == 0
            || a_sum.size == 0
            || len.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize)
        {
            return None;
        }
        let batch = StridedBatch {
            count: a_batch.size,
            m: row.size,
            k: a_sum.size,
            n: column.size,
            a: [a_batch.stride, row.stride, a_sum.stride],
            b: [b_batch.stride, b_sum.stride, column.stride],
            c: [0; 3],
        };
        Some(PlannedProduct { batch, rows, sizes, len })
    }

    /// The matrices of a product of operands with these axes, and memory for the result. Plans show
    /// the product as `dims` names it. `None` if the operands need the general path.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    pub(crate) fn planned<T: Num>(
        &self,
        a_axes: &[Axis],
        b_axes: &[Axis],
        dims: impl FnOnce() -> ProductDims,
    ) -> Option<Result<Planned<T>, DimError>> {
        let PlannedProduct { mut batch, rows, sizes, len } = self.loops::<T>(a_axes, b_axes)?;
        let out = match reserve::<T>(len) {
            Ok(out) => out,
            Err(error) => return Some(Err(error.into())),
        };
        batch.c = [
            self.step(&sizes, AxisRole::Batch),
            self.step(&sizes, rows),
            self.step(&sizes, AxisRole::Column),
        ];
        note(|| step::<T>(&batch, self.lies.is_some(), dims()));
        Some(Ok(Planned { batch, layout: self.lies, out, len, sizes }))
    }

    /// Like [`planned`](Roles::planned), for a product that is written to existing memory, with the
    /// axes `axes`, in the order of the result's axes. `None` if the operands or the destination
    /// need the general path.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    pub(crate) fn planned_onto<T: Num>(
        &self,
        a_axes: &[Axis],
        b_axes: &[Axis],
        axes: &[Axis],
        dims: impl FnOnce() -> ProductDims,
    ) -> Option<StridedBatch> {
        let PlannedProduct { mut batch, sizes, .. } = self.loops::<T>(a_axes, b_axes)?;
        batch.c = self.strides_of(axes, &sizes, &batch)?;
        note(|| step::<T>(&batch, false, dims()));
        Some(batch)
    }

    /// The strides of `axes` along the batch, the rows and the columns. `None` if their sizes
    /// differ from the result's, or the axes of a role do not merge into one loop.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn strides_of(&self, axes: &[Axis], sizes: &[usize; MOST], batch: &StridedBatch) -> Option<[isize; 3]> {
        let [batches, rows, columns] = &self.out;
        if axes.len() != batches.count + rows.count + columns.count {
            return None;
        }
        let mut fits = true;
        for at in 0..MOST {
            if self.result[at].0 != AxisRole::None {
                fits &= axes[at].size == sizes[at];
            }
        }
        if !fits {
            return None;
        }
        let (mut batches, mut rows) = (batches.merged(axes)?, rows.merged(axes)?);
        if batch.count == 1 {
            // Either the batch has one element, or it has become rows, before any other rows.
            rows = merged(batches, rows)?;
            batches = Axis::new(1, 0);
        }
        Some([batches.stride, rows.stride, columns.merged(axes)?.stride])
    }
}

fn step<T>(batch: &StridedBatch, typed: bool, dims: ProductDims) -> PlanStep {
    let &StridedBatch { count, m, k, n, a, b, c } = batch;
    PlanStep::Product {
        batch: count,
        m,
        k,
        n,
        a: (a[1], a[2]),
        b: (b[1], b[2]),
        c: (c[1], c[2]),
        summed: 1,
        bytes: count * m * n * size_of::<T>(),
        threads: 1,
        typed,
        dims: Some(dims),
    }
}

/// A planned product of matrices in memory, without memory for its result.
struct PlannedProduct {
    batch: StridedBatch,
    /// The role of the result's axes whose stride is the stride of the rows: `Batch` if the batch
    /// has become the only rows, otherwise `Row`.
    rows: AxisRole,
    /// The sizes of the result's axes.
    sizes: [usize; MOST],
    /// The number of elements of the result.
    len: usize,
}
