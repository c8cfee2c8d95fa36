//! Reductions in one pass over an expression, whose elements are never stored.

use crate::error::DimError;
use crate::execute::reduce::Reduced;
use crate::expr::Expr;
use crate::expr::lowered::{LOWERS, lowered};
use crate::expr::step::ExprStep;
use crate::plan::axes::{AxisList, Layout};
use crate::plan::direct::{Roles, Typed};
use crate::plan::explain;
use crate::plan::shape::Shape;
use crate::plan::still::Still;
use crate::storage::Evaluated;
use crate::storage::evaluated::IntoElements;
use crate::storage::unchecked::{to_reduce, to_reduce_lowered};
use crate::tensors::named::Named;
use crate::tensors::tensor::{Computable, reference};
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::load::Kernel;
use kernels::loops::nest::{Nest, NestParts};
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, PlanStep, ProductDims, note, told};
use kernels::loops::stride::{AnyStride, LineStride, StrideKind, UnitStride};
use kernels::machine::threads;
use kernels::memory::destination::Destination;
use kernels::reduce::Reducer;
use kernels::scalar::Element;
use smallvec::SmallVec;

/// The dims of a product of two tensors in memory, and of its result, for plans.
pub(crate) fn product_dims(pair: Option<[Typed; 2]>, result: Vec<&'static str>) -> ProductDims {
    let [left, right] = pair.map_or_else(Default::default, |pair| pair.map(|(keys, _)| explain::names(keys)));
    ProductDims::new(left, right, result)
}

/// The loop axes that a reduction over the dims `D` of a tensor keeps and removes, as constants.
pub(super) struct ReductionAxes<S, R, D>(PhantomData<(S, R, D)>);

impl<S: Dims, R: Rank, D: DimList> ReductionAxes<S, R, D> {
    /// The reduced axes, in the order in which they are named.
    pub(super) const REDUCED: &'static AxisList = &AxisList::of(D::KEYS, S::KEYS);

    /// The kept axes, in the order of results.
    pub(super) const KEPT: &'static AxisList = &AxisList::in_memory(S::KEYS, R::N).without(Self::REDUCED);

    /// The number of operands of `E`, and their axes in memory order, if the types say that all
    /// operands have the same layout. The kept axes must be in the order of the result, and, if
    /// elements are `counted`, the reduced axes in the order in which they are named.
    const fn lines<E: Expr>(counted: bool) -> Option<(usize, AxisList)> {
        match E::FACTS.layout {
            Layout::In { order, operands }
                if R::N == 0 && order.as_slice().len() == S::KEYS.as_slice().len() =>
            {
                let order = AxisList::of(order, S::KEYS);
                let alike = order.without(Self::REDUCED).is_same(Self::KEPT);
                let as_named = order.without(Self::KEPT).is_same(Self::REDUCED);
                if alike && (as_named || !counted) { Some((operands, order)) } else { None }
            }
            _ => None,
        }
    }

    /// The roles of the axes, if `E` is a product of two tensors in memory with a role for each
    /// axis.
    pub(super) const fn roles<E: Expr>() -> Option<Roles> {
        match (E::FACTS.pair, R::N) {
            // (Primes need a comparison of sizes that only a shape makes.)
            (Some([a, b]), 0) if !S::KEYS.has_primes() => {
                match Roles::of(a, b, S::KEYS, D::KEYS, &AxisList::in_memory(S::KEYS, 0)) {
                    // (If the result ends in a batch axis, the general path chooses its order.)
                    Some(roles) if !roles.ends_in_batch() => Some(roles),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    pub(super) fn dims<E: Expr>() -> ProductDims {
        product_dims(E::FACTS.pair, explain::names_of(S::KEYS, Self::KEPT.as_slice()))
    }
}

/// Whether a reduction without elements has a result.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Empty {
    Allowed,
    /// The name of the reduction, for the error.
    Refused(&'static str),
}

/// Runs a reduction over the dims `D` of a tensor in one pass over the expression, without a
/// temporary; `X` are the remaining dims.
#[inline]
#[track_caller]
pub(crate) fn reduce<A, D, X, Q>(
    expr: &A::Expr,
    reducer: Q,
    empty: Empty,
) -> Result<Reduced<Q::Out, A, X>, DimError>
where
    A: Computable,
    D: DimList,
    X: Dims,
    Q: Reducer<A::Elem, Out: Element>,
{
    let mut shape = Shape::new::<A::Dims, A::Rank>();
    reference::<A>(expr).unify(&mut shape)?;
    fused::<A::Dims, A::Rank, _, D, X, _>(expr, &shape, reducer, empty)
}

/// Like [`reduce`], for an expression whose operands are unified; `X` are the dims of `S` without
/// those of `D`.
#[inline]
#[track_caller]
pub(crate) fn fused<S, R, E, D, X, Q>(
    expr: &E,
    shape: &Shape,
    reducer: Q,
    empty: Empty,
) -> Result<Named<Q::Out, X, R>, DimError>
where
    S: Dims,
    R: Rank,
    E: Expr,
    D: DimList,
    X: Dims,
    Q: Reducer<E::Elem, Out: Element>,
{
    let step = ExprStep::of::<Q::Out, S, R, E>(expr, shape)?;
    let scope = step.scope();
    let data = combined::<S, R, E, D, Q>(expr, shape, reducer, empty)?;
    drop(scope);
    let (kept, reduced) =
        (ReductionAxes::<S, R, D>::KEPT.as_slice(), ReductionAxes::<S, R, D>::REDUCED.as_slice());
    let data = step.reduce(data, kept, reduced, reducer.derivative(), reducer.name())?;
    Ok(result_of(data, kept, shape.sizes()))
}

/// The elements of the result of [`fused`], in the order of results.
#[inline]
#[track_caller]
pub(crate) fn combined<S, R, E, D, Q>(
    expr: &E,
    shape: &Shape,
    reducer: Q,
    empty: Empty,
) -> Result<Vec<Q::Out>, DimError>
where
    S: Dims,
    R: Rank,
    E: Expr,
    D: DimList,
    Q: Reducer<E::Elem, Out: Element>,
{
    let sizes = shape.sizes();
    let (kept, reduced) =
        (ReductionAxes::<S, R, D>::KEPT.as_slice(), ReductionAxes::<S, R, D>::REDUCED.as_slice());
    let len = shape.volume(kept, size_of::<Q::Out>())?;
    let count = shape.volume(reduced, 1)?;
    if let (Empty::Refused(op), 0, 1..) = (empty, count, len) {
        return Err(DimError::EmptyReduction { op, dims: shape.describe(reduced) });
    }
    if let Some((operands, order)) = const { &ReductionAxes::<S, R, D>::lines::<E>(Q::COUNTS) } {
        let nest = Nest::typed_reduce(order.as_slice(), sizes, kept, *operands);
        return reduced_in::<UnitStride, _, _>(expr, &nest, Destination::of_step(len), count, reducer)
            .inspect(|data| told(data))
            .map_err(|error| shape.name_dims(error, kept));
    }
    let mut rows = Rows::new(sizes.len());
    expr.rows::<S, R>(shape, &mut rows);
    // (With a user's closure, no axes are left out, because it must be called for each position.)
    let still = if const { Q::REPEATS && E::Kernel::<'_, AnyStride>::PARALLEL } {
        Still::of_rows(&rows, sizes, kept)
    } else {
        None
    };
    let (live, len, count, reducer) = match &still {
        Some(still) => {
            let reducer = reducer.repeated(still.times);
            (&still.sizes[..], still.volume(kept), still.volume(reduced), reducer)
        }
        None => (sizes, len, count, reducer),
    };
    let nest = Nest::reduce(live, kept, reduced, &rows);
    let to = Destination::of_step(len);
    let data = if const { ReductionAxes::<S, R, D>::KEPT.as_slice().len() < 2 } {
        reduced_in::<LineStride, _, _>(expr, &nest, to, count, reducer)
    } else {
        reduced_in::<AnyStride, _, _>(expr, &nest, to, count, reducer)
    };
    let mut data = data.map_err(|error| shape.name_dims(error, kept))?;
    if let Some(still) = still {
        data = still.repeated(data, sizes, kept).map_err(|error| shape.name_dims(error, kept))?;
    }
    told(&data);
    Ok(data)
}

/// The results of a nest, each reduced from `count` elements, by a kernel for strides of kind `W`.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn reduced_in<W: StrideKind, E: Expr, Q: Reducer<E::Elem, Out: Element>>(
    expr: &E,
    nest: &Nest,
    to: Destination<'_, Q::Out>,
    count: usize,
    reducer: Q,
) -> Result<Vec<Q::Out>, DimError> {
    let len = to.len();
    let work = if E::Kernel::<'_, W>::PARALLEL { len.saturating_mul(count) } else { 0 };
    note(|| PlanStep::Reduce {
        reduction: reducer.name(),
        expression: expr.describe(),
        loops: Loops::new::<Q::Out>(nest, len, threads::parts(work)),
        count,
    });
    if const { E::FACTS.memory.is_some() && !W::UNIT } {
        let (elements, _) = expr.memory();
        return Ok(reducer.reduce_memory(to_reduce(elements, nest, work, count), to)?);
    }
    if LOWERS
        && let Some(program) =
            lowered(expr, len.saturating_mul(count)).filter(|program| program.is_kernel::<E::Elem>())
    {
        return Ok(reducer.reduce_memory(to_reduce_lowered(&program, nest, work, count), to)?);
    }
    let mut parts = NestParts::new();
    let lower = |nest| expr.kernel::<W>(&mut Nest::operands(nest));
    Ok(kernels::reduce::reduce(nest, &mut parts, &lower, work, to, count, reducer)?)
}

#[inline]
#[track_caller]
pub(super) fn result_of<T, S: Dims, R: Rank>(
    data: impl IntoElements<T>,
    kept: &[usize],
    sizes: &[usize],
) -> Named<T, S, R> {
    Named::from_expr(Evaluated::laid_out(data, &sizes_of(kept, sizes)))
}

fn sizes_of(axes: &[usize], sizes: &[usize]) -> SmallVec<[usize; 8]> {
    axes.iter().map(|&axis| sizes[axis]).collect()
}
