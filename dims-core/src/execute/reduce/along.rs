//! Work along the lines of an expression: softmax, norms, cumulative sums.

use crate::error::DimError;
use crate::execute::reduce::TensorOf;
use crate::expr::Expr;
use crate::expr::lowered::{LOWERS, lowered};
use crate::expr::step::ExprStep;
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::seal::PRIVATE;
use crate::storage::Evaluated;
use crate::storage::unchecked::{collect_lowered, to_scan};
use crate::tensors::named::Named;
use crate::tensors::tensor::{Computable, checked};
use crate::types::dim::DimList;
use crate::types::set::{Dims, DimsOf};
use alloc::string::String;
use alloc::vec::Vec;
use kernels::error::Error;
use kernels::load::Kernel;
use kernels::loops::axes::Order;
use kernels::loops::nest::Nest;
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, PlanStep, note};
use kernels::loops::stride::AnyStride;
use kernels::machine::threads;
use kernels::memory::destination::Destination;
use kernels::scalar::{Element, Real};
use kernels::scan::{self, LineOp};

/// [`Reductions::try_log_softmax`](crate::execute::reduce::Reductions::try_log_softmax), without
/// the bound that each dim has a size.
#[track_caller]
pub(crate) fn log_softmax<A: Computable<Elem: Real>, D: DimsOf<A::Dims, X>, X: Dims>(
    tensor: A,
    dims: D,
) -> Result<TensorOf<A>, DimError> {
    along::<_, D, _>(checked(tensor, &dims)?, scan::Softmax::<true>)
}

/// Evaluates a tensor and applies `work` along the dims `D`, which form one line, block by block.
///
/// If `D` is one dim, elements that the expression owns are processed in place where possible, and
/// keep their order in memory, unless the work needs contiguous lines and the lines are not
/// contiguous in this order. Otherwise the result has the usual order of results, except that
/// several dims in `D` that are not adjacent there become innermost.
#[track_caller]
pub(crate) fn along<A, D, W>(tensor: A, work: W) -> Result<TensorOf<A>, DimError>
where
    A: Computable,
    D: DimList,
    W: LineOp<A::Elem>,
{
    let own = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let listed = const { &AxisList::of(D::KEYS, A::Dims::KEYS) }.as_slice();
    match made_adjacent(own, listed) {
        Some(order) => along_axes(tensor, &order, listed, work),
        None => along_axes(tensor, own, listed, work),
    }
}

/// An order in which the axes `listed` are adjacent and innermost; `None` if they are adjacent in
/// `own`.
fn made_adjacent(own: &[usize], listed: &[usize]) -> Option<Order> {
    let first = own.iter().position(|axis| listed.contains(axis)).unwrap_or(own.len());
    if own[first..].iter().take(listed.len()).all(|axis| listed.contains(axis)) {
        return None;
    }
    let mut order: Order = own.iter().copied().filter(|axis| !listed.contains(axis)).collect();
    order.extend_from_slice(listed);
    Some(order)
}

/// Evaluates a tensor and applies `work` along the axes `along`, block by block. These axes are
/// adjacent in `order`. The result is stored in this order, except that reused elements may keep
/// their own order if `along` is one axis.
#[track_caller]
pub(crate) fn along_axes<A, W>(
    tensor: A,
    order: &[usize],
    along: &[usize],
    work: W,
) -> Result<TensorOf<A>, DimError>
where
    A: Computable,
    W: LineOp<A::Elem>,
{
    let tensor = tensor.into_named();
    let mut shape = Shape::new::<A::Dims, A::Rank>();
    tensor.unify(&mut shape)?;
    let sizes = shape.sizes();
    let len = shape.volume(order, size_of::<A::Elem>())?;
    let mut expr = tensor.expr;
    let step = ExprStep::of::<A::Elem, A::Dims, A::Rank, A::Expr>(&expr, &shape)?;
    let mut rows = Rows::new(sizes.len());
    expr.rows::<A::Dims, A::Rank>(&shape, &mut rows);
    let lying = if const { A::Expr::FACTS.owns } && along.len() == 1 {
        rows.in_memory_order(order, sizes)
    } else {
        None
    };
    let order = match &lying {
        Some(lying)
            if (!W::NEIGHBORS || lying.ends_with(along))
                && expr.place::<A::Elem, A::Dims, A::Rank>(lying, len, PRIVATE).is_some() =>
        {
            lying
        }
        _ => order,
    };
    let blocks = Blocks::new(sizes, order, along, &rows, len);
    let scope = step.scope();
    let data = match expr.into_contiguous::<A::Dims>(order) {
        Ok(data) => blocks.in_place(data, work),
        Err(expr) => evaluate_along::<A, W>(expr, &blocks, work, order)
            .map_err(|error| shape.name_dims(error.into(), order))?,
    };
    drop(scope);
    let data = step.along(data, order, along, work.derivative(), W::NAME)?;
    Ok(Named::from_expr(Evaluated::in_order(data, order, &shape.sizes_in(order))))
}

/// The blocks of a result. A block spans the axes of the lines and those after them, at one
/// position of the axes before them.
struct Blocks {
    /// The loops over blocks, and those over the elements of a block.
    nest: Nest,
    /// The number of elements of the result.
    len: usize,
    /// The number of elements of a line.
    line: usize,
    /// The stride along a line.
    inner: usize,
}

impl Blocks {
    /// The blocks of a result of `len` elements with axes in this order; the axes `along` of its
    /// lines are adjacent.
    fn new(sizes: &[usize], order: &[usize], along: &[usize], rows: &Rows, len: usize) -> Self {
        let first = order.iter().position(|axis| along.contains(axis)).unwrap_or(order.len());
        let volume = |axes: &[usize]| axes.iter().map(|&axis| sizes[axis]).product::<usize>();
        let (outer, block) = order.split_at(first);
        let (lines, inner) = block.split_at(along.len());
        Blocks {
            nest: Nest::blocks(sizes, outer, block, rows),
            len,
            line: volume(lines),
            inner: volume(inner),
        }
    }

    #[track_caller]
    fn note<T: Element, W: LineOp<T>>(&self, expression: impl FnOnce() -> String, threads: usize) {
        note(|| PlanStep::Reduce {
            reduction: W::NAME,
            expression: expression(),
            loops: Loops::new::<T>(&self.nest, self.len, threads),
            count: self.line,
        });
    }

    #[track_caller]
    fn in_place<T: Element, W: LineOp<T>>(&self, mut data: Vec<T>, work: W) -> Vec<T> {
        let threads = threads::parts(self.len);
        self.note::<T, W>(|| "tensor".into(), threads);
        scan::in_place(&mut data, self.line * self.inner, self.inner, threads, work);
        data
    }
}

/// The elements of an expression after the work. They are written over elements that the expression
/// owns, if possible, otherwise into new memory.
#[track_caller]
fn evaluate_along<A: Computable, W: LineOp<A::Elem>>(
    mut expr: A::Expr,
    blocks: &Blocks,
    work: W,
    order: &[usize],
) -> Result<Vec<A::Elem>, Error> {
    let &Blocks { ref nest, len, line, inner } = blocks;
    let parallel = <A::Expr as Expr>::Kernel::<'_, AnyStride>::PARALLEL && nest.outer > 0;
    let threads = if parallel { threads::parts(len) } else { 1 };
    blocks.note::<A::Elem, W>(|| expr.describe(), threads);
    let parts = nest.split(0, threads);
    if const { A::Expr::FACTS.memory.is_some() } {
        // (Owned elements in the order of the result were taken before.)
        let (elements, _) = expr.memory();
        return work.collect_memory(to_scan(elements, &parts, len, inner));
    }
    let own = expr.place::<A::Elem, A::Dims, A::Rank>(order, len, PRIVATE);
    let to = own.as_ref().map_or(Destination::of_step(len), Destination::Reused);
    let finish = |expr: A::Expr, new| match &own {
        Some(place) => expr.into_place(place, PRIVATE).expect("the expression owns this memory"),
        None => new,
    };
    if LOWERS && let Some(program) = lowered(&expr, len) {
        let new = collect_lowered(&program, nest, to)?;
        drop(program);
        let mut data = finish(expr, new);
        scan::in_place(&mut data, line * inner, inner, threads, work);
        return Ok(data);
    }
    let kernels = parts.iter().map(|nest| (expr.kernel::<AnyStride>(&mut nest.operands()), nest));
    let new = scan::collect(kernels, inner, work, to)?;
    Ok(finish(expr, new))
}
