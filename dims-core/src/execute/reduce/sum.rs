//! Sums: contractions if the expression is a product.

use crate::error::DimError;
use crate::execute::reduce::Reduced;
use crate::execute::reduce::combine::{Empty, ReductionAxes, combined, result_of};
use crate::expr::leaf::row_at;
use crate::expr::step::{ExprStep, is_heard};
use crate::expr::{Expr, Factors};
use crate::plan::direct::{ElementsAlong, Typed};
use crate::plan::explain;
use crate::plan::shape::Shape;
use crate::plan::still::Still;
use crate::storage::Evaluated;
use crate::storage::evaluated::IntoElements;
use crate::storage::unchecked::{factor, product};
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::{Dims, Keys, MAX_DIMS};
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::contract;
use kernels::contract::LoopAxes;
use kernels::contract::target::Target;
use kernels::loops::axes::{AxisSet, Order};
use kernels::loops::steps::told;
use kernels::memory::allocate::reserve;
use kernels::memory::axes::Axis;
use kernels::reduce::reducers::{Sum, times};
use kernels::scalar::Num;
use smallvec::SmallVec;

/// What types say about the factors of a product.
pub(crate) trait FactorDims {
    /// Whether the sum is a matrix product: at least one dim is summed, both factors have all
    /// summed dims, and each factor has a dim that the other lacks.
    const ARE_MATRICES: bool;
}

/// The types say nothing about the factors.
pub(crate) struct AnyFactors;

impl FactorDims for AnyFactors {
    const ARE_MATRICES: bool = false;
}

/// There are two factors with the dims `A` and `B`, and their product is summed over `D`.
pub(crate) struct TwoFactors<A, B, D>(PhantomData<(A, B, D)>);

impl<A: Dims, B: Dims, D: DimList> FactorDims for TwoFactors<A, B, D> {
    const ARE_MATRICES: bool = !D::KEYS.as_slice().is_empty()
        && A::KEYS.has(D::KEYS)
        && B::KEYS.has(D::KEYS)
        && !A::KEYS.has(B::KEYS)
        && !B::KEYS.has(A::KEYS);
}

/// Whether the sum is a contraction whenever no size is 0, so that no fused loop over the product
/// is compiled.
///
/// A contraction stores computed factors. A computed left factor is often small, but a computed
/// right factor may be a large matrix, such as converted weights, which a fused loop does not
/// store. So the right factor must be in memory.
const fn is_always_contraction<F: FactorDims, E: Expr>() -> bool {
    F::ARE_MATRICES && E::FACTS.factors == 2 && E::FACTS.factors_in_memory & 0b10 != 0
}

/// [`sum_of_factors`] of any expression.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn sum<A, D, X>(expr: &A::Expr) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Num>,
    D: DimList,
    X: Dims,
{
    sum_of_factors::<AnyFactors, A, D, X>(expr)
}

/// The sum of an expression. A product is contracted if that is faster; otherwise one fused pass
/// computes the sum.
///
/// Small products are always inlined. If several calls shared one function, the tensor and the
/// result would go through memory, stored in small pieces and loaded in larger ones, which store
/// forwarding cannot handle. The stall takes longer than a small product.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn sum_of_factors<F, A, D, X>(expr: &A::Expr) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    F: FactorDims,
    A: Computable<Elem: Num>,
    D: DimList,
    X: Dims,
{
    // (A reference, because a constant this large would be copied in each call.)
    if let Some(roles) = const { &ReductionAxes::<A::Dims, A::Rank, D>::roles::<A::Expr>() }
        && !is_heard()
    {
        let (a, b) = expr.pair();
        if let Some(result) = product(roles, a, b, ReductionAxes::<A::Dims, A::Rank, D>::dims::<A::Expr>) {
            let (data, sizes) = result?;
            told(&data);
            let rank = ReductionAxes::<A::Dims, A::Rank, D>::KEPT.as_slice().len();
            return Ok(Named::from_expr(Evaluated::laid_out(data, &sizes[..rank])));
        }
    }
    planned_sum::<F, A::Dims, A::Rank, _, D, X>(expr)
}

/// [`sum_of_factors`], by the general path.
#[inline(never)]
#[track_caller]
fn planned_sum<F, S, R, E, D, X>(expr: &E) -> Result<Named<E::Elem, X, R>, DimError>
where
    F: FactorDims,
    S: Dims,
    R: Rank,
    E: Expr<Elem: Num>,
    D: DimList,
    X: Dims,
{
    let mut shape = Shape::new::<S, R>();
    expr.unify::<S, R>(&mut shape)?;
    shape.finish()?;
    let (kept, sizes) = (ReductionAxes::<S, R, D>::KEPT.as_slice(), shape.sizes());
    shape.volume(kept, size_of::<E::Elem>())?;
    let step = ExprStep::of::<E::Elem, S, R, E>(expr, &shape)?;
    let scope = step.scope();
    if const { E::FACTS.pair.is_some() } {
        let positions = const { &positions_of_pair(E::FACTS.pair, S::KEYS) };
        let axes = [kept, ReductionAxes::<S, R, D>::REDUCED.as_slice()];
        let (data, order) = sum_of_memory(expr.pair(), positions, &shape, axes, &|| expr.describe())?;
        drop(scope);
        return Ok(result_in(step.map(data, &order), &order, sizes));
    }
    if const { E::FACTS.factors >= 2 }
        && let Some((supports, still)) = factors_of_product::<F, S, R, _>(expr, &shape, kept)
    {
        let factors = factors_of::<S, R, _>(expr, &shape)?;
        let name = |axis| explain::name(S::KEYS, axis);
        if let Some(still) = still {
            let data = contracted_but(&still, factors, &shape, kept, &name)?;
            drop(scope);
            return Ok(result_of(step.map(data, kept), kept, sizes));
        }
        if const { R::N == 0 } {
            let (data, order) = contracted(factors, &supports, &shape, kept, &name)?;
            drop(scope);
            return Ok(result_in(step.map(data, &order), &order, sizes));
        }
        let (axes, target) = (LoopAxes { sizes, name: &name }, Target::new(kept, sizes));
        let data = contract::contract(factors.operands, &factors.constants, Num::ONE, axes, target)
            .map_err(|error| shape.name_dims(error.into(), kept))?;
        drop(scope);
        return Ok(result_of(step.map(data, kept), kept, sizes));
    }
    let data = if const { is_always_contraction::<F, E>() } {
        // A size is 0, so there are no elements to add.
        zeros(shape.volume(kept, size_of::<E::Elem>())?)?
    } else {
        combined::<S, R, E, D, _>(expr, &shape, Sum::ONCE, Empty::Allowed)?
    };
    drop(scope);
    Ok(result_of(step.map(data, kept), kept, sizes))
}

/// For each factor of a product, the positions of its dims in `all`.
const fn positions_of_pair(pair: Option<[Typed; 2]>, all: &Keys) -> [[usize; MAX_DIMS]; 2] {
    match pair {
        Some([(a, _), (b, _)]) => [a.positions_in(all), b.positions_in(all)],
        None => [[0; MAX_DIMS]; 2],
    }
}

/// The sum of a product of two tensors in memory, and the order of the result's axes in memory.
/// `positions` are those of the tensors' axes among the loops. (This part does not depend on dims,
/// so it is compiled once for each element type.)
#[track_caller]
fn sum_of_memory<T: Num>(
    ((a, a_axes), (b, b_axes)): (ElementsAlong<'_, T>, ElementsAlong<'_, T>),
    positions: &[[usize; MAX_DIMS]; 2],
    shape: &Shape,
    [kept, reduced]: [&[usize]; 2],
    describe: &dyn Fn() -> String,
) -> Result<(Vec<T>, Order), DimError> {
    let sizes = shape.sizes();
    let rows = [row(a_axes, &positions[0], sizes.len()), row(b_axes, &positions[1], sizes.len())];
    let varies = |axis: &usize| rows.iter().any(|row| row[*axis] != 0);
    let supports = (0..sizes.len()).filter(varies).fold(0, |axes, axis| axes | 1 << axis);
    let still = Still::of_supports(&[supports], sizes, kept);
    let count = still.as_ref().map_or(1, |still| still.times);
    let (all, whole) = (sizes, kept);
    let (sizes, kept) = still.as_ref().map_or((sizes, kept), |still| (&still.sizes[..], &still.kept[..]));
    let order = contract::order_of_pair::<T>([&rows[0], &rows[1]], sizes, kept);
    if order.is_none() || count == usize::MAX {
        shape.volume(reduced, 1)?;
    }
    let [a_row, b_row] = rows;
    let operands = [factor(a, a_row), factor(b, b_row)];
    let data = match &order {
        Some(order) => {
            let name = |axis| explain::name(shape.keys(), axis);
            let order = if still.is_some() { kept } else { &order[..] };
            let (axes, target) = (LoopAxes { sizes, name: &name }, Target::new(order, sizes));
            let times = times(Num::ONE, count);
            contract::contract(operands.into_iter().collect(), &[], times, axes, target)
        }
        None => {
            let [a, b] = &operands;
            contract::sum_of_pair([a, b], sizes, [kept, reduced], Sum { times: count }, describe)
        }
    };
    let data = data.map_err(|error| shape.name_dims(error.into(), kept))?;
    if let Some(still) = still {
        let data = still.repeated(data, all, whole).map_err(|error| shape.name_dims(error, whole))?;
        return Ok((data, whole.into()));
    }
    Ok((data, order.unwrap_or_else(|| kept.into())))
}

/// A row of strides for `loops` loops, from axes at these positions.
fn row(axes: &[Axis], positions: &[usize; MAX_DIMS], loops: usize) -> SmallVec<[isize; 8]> {
    let mut row = SmallVec::from_elem(0, loops);
    row_at(axes, positions, &[], &mut row);
    row
}

/// Like [`result_of`], for elements stored in any order of the kept axes, without positional axes.
#[track_caller]
fn result_in<T, S: Dims, R: Rank>(
    data: impl IntoElements<T>,
    order: &[usize],
    sizes: &[usize],
) -> Named<T, S, R> {
    let (own, sizes) = among_kept(order, sizes);
    Named::from_expr(Evaluated::in_order(data, &own, &sizes))
}

/// The axes of a result in memory order: the position of each among the kept axes, and its size.
fn among_kept(order: &[usize], sizes: &[usize]) -> (Order, Order) {
    // Sets are sorted, so the kept dims have the same order as among all dims.
    let own = order.iter().map(|axis| order.iter().filter(|&other| other < axis).count()).collect();
    (own, order.iter().map(|&axis| sizes[axis]).collect())
}

/// The sum of a product, and the order of the result's axes in memory. (A separate function,
/// compiled once for each element type.)
#[inline(never)]
#[track_caller]
fn contracted<T: Num>(
    factors: Factors<'_, T>,
    supports: &[AxisSet],
    shape: &Shape,
    kept: &[usize],
    name: &dyn Fn(usize) -> &'static str,
) -> Result<(Vec<T>, Order), DimError> {
    let sizes = shape.sizes();
    let order = match &factors.operands[..] {
        [a, b] => contract::order_of_result([a.strides(), b.strides()], supports, sizes, kept),
        _ => kept.into(),
    };
    let target = Target::new(&order, sizes);
    let axes = LoopAxes { sizes, name };
    let data = contract::contract(factors.operands, &factors.constants, Num::ONE, axes, target)
        .map_err(|error| shape.name_dims(error.into(), kept))?;
    Ok((data, order))
}

/// `len` sums of no elements.
fn zeros<T: Num>(len: usize) -> Result<Vec<T>, DimError> {
    let mut zeros = reserve(len)?;
    zeros.resize(len, T::ZERO);
    told(&zeros);
    Ok(zeros)
}

/// The sum of a product in the order `kept`, if there are loops along which no factor varies.
#[inline(never)]
#[track_caller]
pub(crate) fn contracted_but<T: Num>(
    still: &Still,
    factors: Factors<'_, T>,
    shape: &Shape,
    kept: &[usize],
    name: &dyn Fn(usize) -> &'static str,
) -> Result<Vec<T>, DimError> {
    let (axes, target) = (LoopAxes { sizes: &still.sizes, name }, Target::new(&still.kept, &still.sizes));
    if still.times == usize::MAX {
        let reduced: Order = (0..shape.sizes().len()).filter(|axis| !kept.contains(axis)).collect();
        shape.volume(&reduced, 1)?;
    }
    let times = times(Num::ONE, still.times);
    let data = contract::contract(factors.operands, &factors.constants, times, axes, target)
        .map_err(|error| shape.name_dims(error.into(), kept))?;
    still.repeated(data, shape.sizes(), kept).map_err(|error| shape.name_dims(error, kept))
}

/// The factors of a product.
#[inline]
#[track_caller]
pub(crate) fn factors_of<'s, S: Dims, R: Rank, E: Expr<Elem: Num>>(
    expr: &'s E,
    shape: &Shape,
) -> Result<Factors<'s, E::Elem>, DimError> {
    let mut factors = Factors { constants: SmallVec::new(), operands: SmallVec::new() };
    expr.factors::<S, R>(shape, &mut factors)?;
    Ok(factors)
}

/// If the sum over all axes except `kept` is best run as a contraction, returns the axes along
/// which each factor varies. If there are axes along which no factor varies, also returns the loops
/// without them.
#[inline]
pub(crate) fn is_product<S: Dims, R: Rank, E: Expr<Elem: Num>>(
    expr: &E,
    shape: &Shape,
    kept: &[usize],
) -> Option<(contract::Supports, Option<Still>)> {
    factors_of_product::<AnyFactors, S, R, E>(expr, shape, kept)
}

/// [`is_product`], given what the types say about the factors.
#[inline]
fn factors_of_product<F: FactorDims, S: Dims, R: Rank, E: Expr<Elem: Num>>(
    expr: &E,
    shape: &Shape,
    kept: &[usize],
) -> Option<(contract::Supports, Option<Still>)> {
    if const { E::FACTS.factors < 2 } {
        return None;
    }
    let sizes = shape.sizes();
    let mut supports = contract::Supports::new();
    expr.supports::<S, R>(shape, &mut supports);
    let still = Still::of_supports(&supports, sizes, kept);
    let (sizes, kept) = still.as_ref().map_or((sizes, kept), |still| (&still.sizes[..], &still.kept[..]));
    let is_product = match const { is_always_contraction::<F, E>() } {
        true => !sizes.contains(&0),
        false => {
            contract::is_worthwhile(&supports, sizes, kept)
                || contract::is_matrix_vector::<E::Elem>(&supports, E::FACTS.factors_in_memory, sizes, kept)
        }
    };
    is_product.then_some((supports, still))
}
