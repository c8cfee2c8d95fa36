//! Work along the lines of an expression: softmax, norms, running sums.

use crate::dim::DimList;
use crate::error::DimError;
use crate::expr::Expr;
use crate::expr::lowered::{LOWERS, lowered};
use crate::expr::record::{self, traced};
use crate::named::Named;
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::reduce::Evaluated;
use crate::set::{Dims, DimsOf};
use crate::storage::Owned;
use crate::storage::unchecked::{collect_lowered, replace_lowered, to_scan};
use crate::tensor::{Computable, checked};
use kernels::load::Kernel;
use kernels::loops::nest::Nest;
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, Step, record};
use kernels::loops::stride::AnyStride;
use kernels::machine::threads;
use kernels::scalar::Real;
use kernels::scan::{self, Along};
use smallvec::SmallVec;

type Order = SmallVec<[usize; 8]>;

/// [`Reductions::try_log_softmax`](crate::reduce::Reductions::try_log_softmax), where the types need not say that each dim has a size.
#[track_caller]
pub(crate) fn log_softmax<A: Computable<Elem: Real>, D: DimsOf<A::Dims, X>, X: Dims>(
    tensor: A,
    dims: D,
) -> Result<Evaluated<A>, DimError> {
    along::<_, D, _>(checked(tensor, &dims)?, scan::Softmax::<true>)
}

/// Evaluates, and works along the elements of the dims `D` together, block by block.
///
/// Elements that the expression owns are worked on where they are, in the order in which they lie; the result else lies as results do, but for
/// several dims that are no neighbours there: these lie innermost.
#[track_caller]
pub(crate) fn along<A, D, W>(tensor: A, work: W) -> Result<Evaluated<A>, DimError>
where
    A: Computable,
    D: DimList,
    W: Along<A::Elem>,
{
    let own = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let listed = AxisList::of(D::KEYS, A::Dims::KEYS);
    let listed = listed.as_slice();
    let first = own.iter().position(|axis| listed.contains(axis)).unwrap_or(own.len());
    if own[first..].iter().take(listed.len()).all(|axis| listed.contains(axis)) {
        return along_axes(tensor, own, listed, work);
    }
    let mut order: Order = own.iter().copied().filter(|axis| !listed.contains(axis)).collect();
    order.extend_from_slice(listed);
    along_axes(tensor, &order, listed, work)
}

/// Evaluates, and works along the axes `along`, which are neighbours in `order`, block by block; the result lies in this order, or in that of
/// the elements whose place it takes if `along` is one axis.
#[track_caller]
pub(crate) fn along_axes<A, W>(
    tensor: A,
    order: &[usize],
    along: &[usize],
    work: W,
) -> Result<Evaluated<A>, DimError>
where
    A: Computable,
    W: Along<A::Elem>,
{
    let tensor = tensor.into_named();
    let mut shape = Shape::new::<A::Dims, A::Rank>();
    tensor.unify(&mut shape)?;
    let sizes = shape.sizes();
    let len = shape.volume(order, size_of::<A::Elem>())?;
    let mut expr = tensor.expr;
    let traced = traced::<A::Elem, A::Dims, A::Rank, A::Expr>(&expr, &shape)?;
    let mut rows = Rows::new(sizes.len());
    expr.rows::<A::Dims, A::Rank>(&shape, &mut rows);
    let lying = if const { A::Expr::FACTS.owns } && along.len() == 1 {
        rows.in_memory_order(order, sizes)
    } else {
        None
    };
    let order = match &lying {
        Some(lying) if expr.place::<A::Elem, A::Dims, A::Rank>(lying, len).is_some() => lying,
        _ => order,
    };
    let first = order.iter().position(|axis| along.contains(axis)).unwrap_or(order.len());
    let end = first + along.len();
    let volume = |axes: &[usize]| axes.iter().map(|&axis| sizes[axis]).product::<usize>();
    let (line, inner) = (volume(&order[first..end]), volume(&order[end..]));
    let data = match expr.into_contiguous::<A::Dims>(order) {
        Ok(mut data) => {
            record(|| Step::Reduce {
                reduction: W::NAME,
                expression: "tensor".into(),
                loops: Loops::new::<A::Elem>(
                    &Nest::blocks(sizes, &order[..first], &order[first..], &rows),
                    len,
                    threads::parts(len),
                ),
                count: line,
            });
            scan::in_place(&mut data, line * inner, inner, threads::parts(len), work);
            data
        }
        Err(mut expr) => {
            let nest = Nest::blocks(sizes, &order[..first], &order[first..], &rows);
            let parts = <A::Expr as Expr>::Kernel::<'_, AnyStride>::PARALLEL && nest.outer > 0;
            let threads = if parts { threads::parts(len) } else { 1 };
            record(|| Step::Reduce {
                reduction: W::NAME,
                expression: expr.describe(),
                loops: Loops::new::<A::Elem>(&nest, len, threads),
                count: line,
            });
            let parts = nest.split(0, threads);
            let data = if const { A::Expr::FACTS.memory.is_some() } {
                // (Elements that it owns in the order of the result were taken before.)
                let (elements, _) = expr.memory();
                work.collect_memory(to_scan(elements, &parts, len, inner))
            } else {
                let own = expr.place::<A::Elem, A::Dims, A::Rank>(order, len);
                let owned = "the expression owns what is at this place";
                if LOWERS && let Some(program) = lowered(&expr, len) {
                    let data = match &own {
                        None => collect_lowered(&program, &nest, len),
                        Some(place) => {
                            replace_lowered(&program, &nest, place, len);
                            drop(program);
                            Ok(expr.into_place(place).expect(owned))
                        }
                    };
                    data.map(|mut data| {
                        scan::in_place(&mut data, line * inner, inner, threads, work);
                        data
                    })
                } else {
                    let kernels =
                        parts.iter().map(|nest| (expr.kernel::<AnyStride>(&mut nest.operands()), nest));
                    match own {
                        None => scan::collect(kernels, len, inner, work),
                        Some(place) => scan::replace(kernels, &place, len, inner, work)
                            .map(|()| expr.into_place(&place).expect(owned)),
                    }
                }
            };
            data.map_err(|error| shape.name_dims(error.into(), order))?
        }
    };
    let data = record::along(data, traced, order, along, work.derivative(), W::NAME)?;
    let sizes: Order = order.iter().map(|&axis| sizes[axis]).collect();
    Ok(Named::from_expr(Owned::in_order(data, order, &sizes)))
}
