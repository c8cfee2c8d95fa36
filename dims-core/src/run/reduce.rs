//! Reductions and softmax.

use crate::dim::DimList;
use crate::error::{DimError, unwrap};
use crate::expr::evaluate::{at_once, computed, laid_out, laid_out_in};
use crate::expr::record::{self, is_active, mapped, traced};
use crate::expr::lowered::lowered;
use crate::expr::{Expr, Factors};
use crate::named::Named;
use crate::plan::axes::{AxisList, Layout};
use crate::plan::direct::{Roles, Typed};
use crate::plan::explain;
use crate::plan::shape::Shape;
use crate::rank::Rank;
use crate::set::{Dims, DimsOf};
use crate::storage::Owned;
use crate::storage::unchecked::{
    collect_lowered, product, replace_lowered, to_reduce, to_reduce_lowered, to_scan,
};
use crate::tensor::{AsTensor, Computable, Evaluable, NamedOf, checked, read_checked, reference};
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::compiled;
use kernels::contract;
use kernels::contract::LoopAxes;
use kernels::load::Kernel;
use kernels::loops::axes::Axes;
use kernels::loops::nest::{Nest, Parts};
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, ProductDims, Step, record};
use kernels::loops::stride::{AnyStride, StrideKind, UnitStride};
use kernels::machine::threads;
use kernels::memory::buffer::Buffer;
use kernels::reduce::Reducer;
use kernels::reduce::reducers;
use kernels::scalar::*;
use kernels::scan::{self, Along};
use smallvec::SmallVec;

/// What reducing a tensor `A` yields: a tensor of `U` with the dims `X` that are left.
pub type Reduced<U, A, X> = Named<U, X, <A as AsTensor>::Rank>;

/// A tensor with the dims that it had.
pub type Evaluated<A> = Named<<A as AsTensor>::Elem, <A as AsTensor>::Dims, <A as AsTensor>::Rank>;

type Order = SmallVec<[usize; 8]>;

/// Which loop axes a reduction of the dims `D` of a tensor keeps, and which it removes: known to rustc.
struct Split<S, R, D>(PhantomData<(S, R, D)>);

impl<S: Dims, R: Rank, D: DimList> Split<S, R, D> {
    /// The axes that go, in the order in which they are named.
    const REDUCED: &'static AxisList = &AxisList::of(D::KEYS, S::KEYS);

    /// The axes that stay, in their order.
    const KEPT: &'static AxisList = &AxisList::in_memory(S::KEYS, R::N).without(Self::REDUCED);

    /// How many operands `E` has, and the axes as they lie in memory, if rustc knows that all operands lie alike, with the axes that are
    /// kept in the order of the result, and those that go in the order in which they are named if their elements are `counted`.
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

    /// The roles of the axes, if `E` is a product of two tensors in memory in which each role is clear.
    const fn roles<E: Expr>() -> Option<Roles> {
        match (E::FACTS.pair, R::N) {
            (Some([a, b]), 0) => match Roles::of(a, b, S::KEYS, D::KEYS, &AxisList::in_memory(S::KEYS, 0)) {
                // (In which order the result lies then is to be planned.)
                Some(roles) if !roles.ends_in_batch() => Some(roles),
                _ => None,
            },
            _ => None,
        }
    }

    /// The dims of such a product, for plans.
    fn dims<E: Expr>() -> ProductDims {
        let name = |&axis: &usize| explain::name(S::KEYS, axis);
        product_dims(E::FACTS.pair, Self::KEPT.as_slice().iter().map(name).collect())
    }
}

/// A product of two tensors in memory, for plans.
pub(crate) fn product_dims(pair: Option<[Typed; 2]>, result: Vec<&'static str>) -> ProductDims {
    let [left, right] = pair.map_or_else(Default::default, |pair| pair.map(|(keys, _)| explain::names(keys)));
    ProductDims::new(left, right, result)
}

/// Whether a reduction has a result where there is nothing to reduce.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Empty {
    Allowed,
    /// The name of the reduction, for the error.
    Refused(&'static str),
}

/// Runs a reduction over the dims `D` of a tensor in one pass over the expression, without a temporary; `X` are the dims that are left.
#[inline]
#[track_caller]
pub(crate) fn run<A, D, X, Q>(
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
    let shape = reference::<A>(expr).unified_shape()?;
    fused::<A::Dims, A::Rank, _, D, X, _>(expr, &shape, reducer, empty)
}

/// As [`run`], for an expression whose operands are unified; `X` are the dims of `S` without those of `D`.
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
    let traced = traced::<Q::Out, S, R, E>(expr, shape)?;
    let data = combined::<S, R, E, D, Q>(expr, shape, reducer, empty)?;
    let (kept, reduced) = (Split::<S, R, D>::KEPT.as_slice(), Split::<S, R, D>::REDUCED.as_slice());
    let data = record::reduced(data, traced, kept, reduced, reducer.derivative(), Q::NAME)?;
    Ok(finished(data, kept, shape.sizes()))
}

/// The elements of what [`fused`] yields, as results lie in memory.
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
    let (kept, reduced) = (Split::<S, R, D>::KEPT.as_slice(), Split::<S, R, D>::REDUCED.as_slice());
    let len = shape.volume(kept.iter().copied(), size_of::<Q::Out>())?;
    let count = shape.volume(reduced.iter().copied(), 1)?;
    if let (Empty::Refused(op), 0, 1..) = (empty, count, len) {
        return Err(DimError::EmptyReduction { op, dims: shape.describe(reduced.iter().copied()) });
    }
    if let Some((operands, order)) = const { &Split::<S, R, D>::lines::<E>(Q::COUNTS) } {
        let nest = Nest::typed_reduce(order.as_slice(), sizes, kept, *operands);
        return reduced_in::<UnitStride, _, _>(expr, &nest, len, count, reducer)
            .map_err(|error| shape.name_dims(error, kept));
    }
    let mut rows = Rows::new(sizes.len());
    expr.rows::<S, R>(shape, &mut rows);
    let nest = Nest::reduce(sizes, kept, reduced, &rows);
    reduced_in::<AnyStride, _, _>(expr, &nest, len, count, reducer)
        .map_err(|error| shape.name_dims(error, kept))
}

/// The `len` results of `count` elements each that a nest yields, by a kernel for what is known of its strides.
#[inline(always)]
#[track_caller]
fn reduced_in<W: StrideKind, E: Expr, Q: Reducer<E::Elem, Out: Element>>(
    expr: &E,
    nest: &Nest,
    len: usize,
    count: usize,
    reducer: Q,
) -> Result<Vec<Q::Out>, DimError> {
    let work = if E::Kernel::<'_, W>::PARALLEL { len.saturating_mul(count) } else { 0 };
    record(|| Step::Reduce {
        reduction: Q::NAME,
        expression: expr.describe(),
        loops: Loops::new::<Q::Out>(nest, len, threads::parts(work)),
        count,
    });
    if const { E::FACTS.memory.is_some() && !W::UNIT } {
        let (elements, _) = expr.memory();
        return Ok(reducer.reduce_memory(to_reduce(elements, nest, work, len, count))?);
    }
    if let Some(program) = lowered(expr, len.saturating_mul(count)).filter(|program| program.is_kernel::<E::Elem>()) {
        return Ok(reducer.reduce_memory(to_reduce_lowered(&program, nest, work, len, count))?);
    }
    let mut parts = Parts::new();
    let lower = |nest| expr.kernel::<W>(&mut Nest::operands(nest));
    Ok(kernels::reduce::reduce(nest, &mut parts, lower, work, len, count, reducer)?)
}

#[inline]
fn finished<T, S: Dims, R: Rank>(
    data: impl Into<Buffer<T>>,
    kept: &[usize],
    sizes: &[usize],
) -> Named<T, S, R> {
    let sizes: SmallVec<[usize; 8]> = kept.iter().map(|&axis| sizes[axis]).collect();
    Named::from_expr(Owned::laid_out(data, &sizes))
}

/// As [`finished`], for elements that lie in another order of the axes that are left, all of which are dims.
fn finished_in<T, S: Dims, R: Rank>(
    data: impl Into<Buffer<T>>,
    order: &[usize],
    sizes: &[usize],
) -> Named<T, S, R> {
    let (own, sizes) = among_kept(order, sizes);
    Named::from_expr(Owned::in_order(data, &own, &sizes))
}

/// The axes of a result, in the order in which they lie: where each stands among those that are left, and its size.
fn among_kept(order: &[usize], sizes: &[usize]) -> (Order, Order) {
    // Sets are sorted, so the dims that are left stand in the order in which they stood among all.
    let own = order.iter().map(|axis| order.iter().filter(|&other| other < axis).count()).collect();
    (own, order.iter().map(|&axis| sizes[axis]).collect())
}

/// A sum: a contraction where the expression is a product whose factors lack dims of one another, else one fused pass.
///
/// Small products are always inlined. Where several calls of one type share one function, the tensor and the result go through memory, which
/// they leave in larger pieces than they came in: the processor then waits for all of them, thrice for as long as a small product takes.
#[inline(always)]
#[track_caller]
pub(crate) fn sum<A, D, X>(expr: &A::Expr) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Num>,
    D: DimList,
    X: Dims,
{
    // (A reference, since so large a constant would be copied in each call.)
    if let Some(roles) = const { &Split::<A::Dims, A::Rank, D>::roles::<A::Expr>() }
        && !is_active()
    {
        let (a, b) = expr.pair();
        if let Some(result) = product(roles, a, b, Split::<A::Dims, A::Rank, D>::dims::<A::Expr>) {
            let (data, sizes) = result?;
            let rank = Split::<A::Dims, A::Rank, D>::KEPT.as_slice().len();
            return Ok(Named::from_expr(Owned::laid_out(data, &sizes[..rank])));
        }
    }
    planned_sum::<A::Dims, A::Rank, _, D, X>(expr)
}

/// [`Reductions::try_eval`], where the types need not say that each dim has a size.
#[inline]
#[track_caller]
pub(crate) fn evaluated<A: Computable>(tensor: A) -> Result<Evaluated<A>, DimError> {
    match at_once(tensor.into_named().expr) {
        Ok(data) => Ok(Named::from_expr(data)),
        Err(expr) => planned_eval(NamedOf::<A>::from_expr(expr)),
    }
}

/// The values of a tensor, traced no more.
#[track_caller]
fn detached<A: Computable>(tensor: A) -> Result<Evaluated<A>, DimError> {
    let tensor = tensor.into_named();
    let shape = tensor.unified_shape()?;
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let data = computed::<A::Dims, A::Rank, _>(tensor.expr, &shape, order)?;
    Ok(Named::from_expr(Owned::laid_out(data, &shape.sizes_in(order))))
}

/// [`Reductions::try_log_softmax`], where the types need not say that each dim has a size.
#[track_caller]
pub(crate) fn log_softmax<A: Computable<Elem: Real>, D: DimsOf<A::Dims, X>, X: Dims>(
    tensor: A,
    dims: D,
) -> Result<Evaluated<A>, DimError> {
    along::<_, D, _>(checked(tensor, &dims)?, scan::Softmax::<true>)
}

/// [`Reductions::try_eval`], planned in full.
#[track_caller]
fn planned_eval<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>>(
    tensor: Named<T, S, R, E>,
) -> Result<Named<T, S, R>, DimError> {
    let shape = tensor.unified_shape()?;
    Ok(Named::from_expr(laid_out::<S, R, _>(tensor.expr, &shape)?))
}

/// [`sum`], planned in full.
#[inline(never)]
#[track_caller]
fn planned_sum<S, R, E, D, X>(expr: &E) -> Result<Named<E::Elem, X, R>, DimError>
where
    S: Dims,
    R: Rank,
    E: Expr<Elem: Num>,
    D: DimList,
    X: Dims,
{
    let mut shape = Shape::new::<S, R>();
    expr.unify::<S, R>(&mut shape)?;
    shape.finish()?;
    let (kept, sizes) = (Split::<S, R, D>::KEPT.as_slice(), shape.sizes());
    shape.volume(kept.iter().copied(), size_of::<E::Elem>())?;
    let traced = traced::<E::Elem, S, R, E>(expr, &shape)?;
    if let Some(supports) = is_product::<S, R, _>(expr, &shape, kept) {
        let mut factors = Factors { scale: E::Elem::ONE, operands: SmallVec::new() };
        expr.factors::<S, R>(&shape, &mut factors)?;
        let name = |axis| explain::name(S::KEYS, axis);
        if const { R::N == 0 } {
            let (data, order) = contracted(factors, &supports, &shape, kept, &name)?;
            return Ok(finished_in(mapped(data, traced, &order), &order, sizes));
        }
        let data = compiled::contract(factors.operands, factors.scale, LoopAxes { sizes, name: &name }, kept)
            .map_err(|error| shape.name_dims(error.into(), kept))?;
        return Ok(finished(mapped(data, traced, kept), kept, sizes));
    }
    if const { E::FACTS.pair.is_some() } {
        // Two tensors in memory: the loop depends on the type of their elements alone, so it is compiled already.
        let mut factors = Factors { scale: E::Elem::ONE, operands: SmallVec::new() };
        expr.factors::<S, R>(&shape, &mut factors)?;
        let [a, b] = &factors.operands[..] else { unreachable!("a pair has two factors") };
        let reduced = Split::<S, R, D>::REDUCED.as_slice();
        shape.volume(reduced.iter().copied(), 1)?;
        let data = compiled::sum_of_pair([a, b], sizes, [kept, reduced], &|| expr.describe())
            .map_err(|error| shape.name_dims(error.into(), kept))?;
        return Ok(finished(mapped(data, traced, kept), kept, sizes));
    }
    let data = combined::<S, R, E, D, _>(expr, &shape, reducers::Sum, Empty::Allowed)?;
    Ok(finished(mapped(data, traced, kept), kept, sizes))
}

/// The sum of a product, and the order of its axes in which it lies. (Apart, as it is the same for all products of one element type.)
#[inline(never)]
#[track_caller]
fn contracted<T: Num>(
    factors: Factors<'_, T>,
    supports: &[Axes],
    shape: &Shape,
    kept: &[usize],
    name: &dyn Fn(usize) -> &'static str,
) -> Result<(Vec<T>, Order), DimError> {
    let sizes = shape.sizes();
    let order = match &factors.operands[..] {
        [a, b] => contract::order_of_result([a.strides(), b.strides()], supports, sizes, kept),
        _ => kept.into(),
    };
    let data = compiled::contract(factors.operands, factors.scale, LoopAxes { sizes, name }, &order)
        .map_err(|error| shape.name_dims(error.into(), kept))?;
    Ok((data, order))
}

/// The axes of the factors, if the sum over all axes but `kept` is best run as a contraction.
#[inline]
pub(crate) fn is_product<S: Dims, R: Rank, E: Expr<Elem: Num>>(
    expr: &E,
    shape: &Shape,
    kept: &[usize],
) -> Option<contract::Supports> {
    if E::FACTS.factors < 2 {
        return None;
    }
    let sizes = shape.sizes();
    let mut supports = contract::Supports::new();
    expr.supports::<S, R>(shape, &mut supports);
    let is_product = contract::is_worthwhile(&supports, sizes, kept)
        || contract::is_matrix_vector::<E::Elem>(&supports, E::FACTS.factors_in_memory, sizes, kept);
    is_product.then_some(supports)
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
    let len = shape.volume(order.iter().copied(), size_of::<A::Elem>())?;
    let mut expr = tensor.expr;
    let traced = traced::<A::Elem, A::Dims, A::Rank, A::Expr>(&expr, &shape)?;
    let mut rows = Rows::new(sizes.len());
    expr.rows::<A::Dims, A::Rank>(&shape, &mut rows);
    let lying =
        if A::Expr::FACTS.owns && along.len() == 1 { rows.in_memory_order(order, sizes) } else { None };
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
                if let Some(program) = lowered(&expr, len) {
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
                    let kernels = parts.iter().map(|nest| (expr.kernel::<AnyStride>(&mut nest.operands()), nest));
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

// The bound of the dims is written in each line, not in the macro, because rustc quotes it from there.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $try_name:ident [$($dims:tt)*] [$($bound:tt)*] $out:ty, $reducer:expr, $empty:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        ///
        /// Where the `try_` form returns an error.
        #[track_caller]
        #[inline]
        fn $name<$($dims)*>(&self, dims: D) -> Reduced<$out, Self, X>
        where
            Self: Evaluable<Elem: $($bound)*>,
        {
            unwrap(self.$try_name(dims))
        }

        #[doc = concat!("As [`", stringify!($name), "`](Reductions::", stringify!($name), "), but what sizes decide is an error.")]
        #[inline]
        #[track_caller]
        fn $try_name<$($dims)*>(&self, dims: D) -> Result<Reduced<$out, Self, X>, DimError>
        where
            Self: Evaluable<Elem: $($bound)*>,
        {
            run::<Self, D, X, _>(&*read_checked(self, &dims)?, $reducer, $empty)
        }
    )*};
}

/// Operations along dims, for tensors and references to tensors.
///
/// `dims` is one dim or a tuple of them; the result has the others, `X` (rustc infers it). A reduction runs at once, in one pass over the whole
/// expression, whose elements are never stored. It borrows the tensor; operations whose result has as many elements as the tensor take it, and
/// reuse its memory.
///
/// ```
/// use typed_dims::prelude::*;
///
/// let a = ndarray::array![[3.0, 1.0], [2.0, 6.0]];
/// dims!(i, j);
/// let x = a.at((i, j));
/// assert_eq!(x.max(j).order(i), ndarray::array![3.0, 6.0]);
/// assert_eq!(x.argmax(j).order(i), ndarray::array![0, 1]);
/// assert_eq!((x - x.mean(j)).abs().sum((i, j)).order(()), 6.0);
/// assert!(x.gt(0.0).all((i, j)).order(()));
/// ```
pub trait Reductions: AsTensor {
    /// The sum: `out[..] = sum over dims of x[.., dims]`; 0 where there is nothing to add.
    ///
    /// Where the expression is a product of tensors, this is a contraction: `(a * b).sum(k)` is a matrix product if `a` and
    /// `b` have dims of their own besides `k`, and a product of more tensors is contracted pair by pair. Integers wrap
    /// around. Sums of floats are accumulated pairwise, except inside of
    /// matrix products, whose kernels add in the order of their blocks. [`sum_into`](crate::assign::OrderInto::sum_into) writes to an array that
    /// is there.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let (a, b) = (ndarray::array![[1.0, 2.0], [3.0, 4.0]], ndarray::array![[0.5], [1.0]]);
    /// dims!(i, j, k);
    /// assert_eq!(a.at((i, k)).sum(k).order(i), ndarray::array![3.0, 7.0]);
    /// assert_eq!((a.at((i, k)) * b.at((k, j))).sum(k).order((i, j)), ndarray::array![[2.5], [5.5]]); // a @ b
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_sum`](Reductions::try_sum) returns an error.
    #[track_caller]
    #[inline(always)]
    #[rustfmt::skip] // rustc quotes the line
    fn sum<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<Self::Elem, Self, X> where Self: Evaluable<Elem: Num> {
        unwrap(self.try_sum(dims))
    }

    /// As [`sum`](Reductions::sum), but what sizes decide is an error.
    #[inline(always)]
    #[track_caller]
    fn try_sum<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Num>,
    {
        sum::<Self, D, X>(&*read_checked(self, &dims)?)
    }

    reductions! {
        /// The product; 1 where there is nothing to multiply.
        prod try_prod [D: DimsOf<Self::Dims, X>, X: Dims] [Num] Self::Elem, reducers::Prod, Empty::Allowed;
        /// The mean, `sum / count`; not-a-number where there is nothing.
        mean try_mean [D: DimsOf<Self::Dims, X>, X: Dims] [Analytic] Self::Elem, reducers::Mean, Empty::Allowed;
        /// The greatest element; not-a-number if there is one among them. Nothing to choose from is an error.
        max try_max [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] Self::Elem, reducers::Max, Empty::Refused("max");
        /// The least element; not-a-number if there is one among them. Nothing to choose from is an error.
        min try_min [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] Self::Elem, reducers::Min, Empty::Refused("min");
        /// The index of the greatest element, of the first if there are several; for a tuple of dims the index into all of
        /// them, the last dim fastest. Nothing to choose from is an error.
        argmax try_argmax [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] usize, reducers::Arg::<true>, Empty::Refused("argmax");
        /// The index of the least element, as for `argmax`.
        argmin try_argmin [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] usize, reducers::Arg::<false>, Empty::Refused("argmin");
        /// The variance of a whole population, `mean of (x - mean)^2`; see [`var_with`](Reductions::var_with) for others.
        var try_var [D: DimsOf<Self::Dims, X>, X: Dims] [Real] Self::Elem, reducers::Variance::<_, false> { ddof: Num::ZERO }, Empty::Allowed;
        /// The standard deviation, the square root of the variance.
        std try_std [D: DimsOf<Self::Dims, X>, X: Dims] [Real] Self::Elem, reducers::Variance::<_, true> { ddof: Num::ZERO }, Empty::Allowed;
        /// `ln(sum of e^x)`, without overflow; minus infinity where there is nothing.
        logsumexp try_logsumexp [D: DimsOf<Self::Dims, X>, X: Dims] [Real] Self::Elem, reducers::LogSumExp(PhantomData), Empty::Allowed;
    }

    /// Whether any element is true; false where there is none.
    ///
    /// # Panics
    ///
    /// Where [`try_any`](Reductions::try_any) returns an error.
    #[track_caller]
    fn any<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<bool, Self, X>
    where
        Self: Evaluable<Elem = bool>,
    {
        unwrap(self.try_any(dims))
    }

    /// As [`any`](Reductions::any), but what sizes decide is an error.
    #[track_caller]
    fn try_any<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Result<Reduced<bool, Self, X>, DimError>
    where
        Self: Evaluable<Elem = bool>,
    {
        run::<Self, D, X, _>(&*read_checked(self, &dims)?, reducers::Any, Empty::Allowed)
    }

    /// Whether all elements are true; true where there is none.
    ///
    /// # Panics
    ///
    /// Where [`try_all`](Reductions::try_all) returns an error.
    #[track_caller]
    fn all<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<bool, Self, X>
    where
        Self: Evaluable<Elem = bool>,
    {
        unwrap(self.try_all(dims))
    }

    /// As [`all`](Reductions::all), but what sizes decide is an error.
    #[track_caller]
    fn try_all<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Result<Reduced<bool, Self, X>, DimError>
    where
        Self: Evaluable<Elem = bool>,
    {
        run::<Self, D, X, _>(&*read_checked(self, &dims)?, reducers::All, Empty::Allowed)
    }

    /// How many elements are true.
    ///
    /// # Panics
    ///
    /// Where [`try_count`](Reductions::try_count) returns an error.
    #[track_caller]
    fn count<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<usize, Self, X>
    where
        Self: Evaluable<Elem = bool>,
    {
        unwrap(self.try_count(dims))
    }

    /// As [`count`](Reductions::count), but what sizes decide is an error.
    #[track_caller]
    fn try_count<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<Reduced<usize, Self, X>, DimError>
    where
        Self: Evaluable<Elem = bool>,
    {
        run::<Self, D, X, _>(&*read_checked(self, &dims)?, reducers::Count, Empty::Allowed)
    }

    /// The variance with `ddof` taken off the count: `sum of (x - mean)^2 / (count - ddof)`; 1 gives the unbiased estimate
    /// for a sample.
    ///
    /// # Panics
    ///
    /// Where [`try_var_with`](Reductions::try_var_with) returns an error.
    #[track_caller]
    fn var_with<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
        ddof: Self::Elem,
    ) -> Reduced<Self::Elem, Self, X>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_var_with(dims, ddof))
    }

    /// As [`var_with`](Reductions::var_with), but what sizes decide is an error.
    #[track_caller]
    fn try_var_with<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
        ddof: Self::Elem,
    ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        run::<Self, D, X, _>(
            &*read_checked(self, &dims)?,
            reducers::Variance::<_, false> { ddof },
            Empty::Allowed,
        )
    }

    /// `e^x / sum over dims of e^x`, without overflow: over one dim, or over all of a tuple of dims at once.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Row; struct Class = 2; }
    /// let logits = from_vec((Row.of(2), Class), vec![0.0, 0.0, 1000.0, 0.0]);
    /// assert_eq!((&logits).softmax(Class).order((Row, Class)), ndarray::array![[0.5, 0.5], [1.0, 0.0]]);
    /// assert_eq!(logits.softmax((Row, Class)).order((Row, Class)), ndarray::array![[0.0, 0.0], [1.0, 0.0]]);
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_softmax`](Reductions::try_softmax) returns an error.
    #[track_caller]
    fn softmax<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D) -> Evaluated<Self>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_softmax(dims))
    }

    /// As [`softmax`](Reductions::softmax), but what sizes decide is an error.
    #[track_caller]
    fn try_softmax<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D) -> Result<Evaluated<Self>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        along::<_, D, _>(checked(self, &dims)?, scan::Softmax::<false>)
    }

    /// `x - ln(sum over dims of e^x)`, over one dim or a tuple of dims: the logarithm of the softmax, without loss where that is small.
    ///
    /// # Panics
    ///
    /// Where [`try_log_softmax`](Reductions::try_log_softmax) returns an error.
    #[track_caller]
    fn log_softmax<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D) -> Evaluated<Self>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_log_softmax(dims))
    }

    /// As [`log_softmax`](Reductions::log_softmax), but what sizes decide is an error.
    #[track_caller]
    fn try_log_softmax<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D) -> Result<Evaluated<Self>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        log_softmax(self, dims)
    }

    /// The elements in memory of their own: dims in the order of the set, then the positional axes.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let a = ndarray::array![1.0, 2.0];
    /// dims!(i);
    /// let squares = (a.at(i) * a.at(i)).eval();           // runs here, once
    /// assert_eq!((&squares + &squares).order(i), ndarray::array![2.0, 8.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If operands have different sizes for one dim, or an index is out of range.
    #[track_caller]
    #[inline]
    #[rustfmt::skip] // rustc quotes the line
    fn eval(self) -> Evaluated<Self> where Self: Evaluable {
        unwrap(self.try_eval())
    }

    /// The values of the tensor, in a tensor of their own that is a constant to gradients: none is taken through it.
    ///
    /// ```
    /// use typed_dims::grad::grad;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct In; }
    /// let x = from_vec(In.of(2), vec![1.0, 2.0]);
    /// let dx = grad(|x| (x.detach() * x).sum(In), &x);            // not 2 x
    /// assert_eq!(dx.order(In), ndarray::array![1.0, 2.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If operands have different sizes for one dim, or an index is out of range.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the line
    fn detach(self) -> Evaluated<Self> where Self: Evaluable {
        unwrap(self.try_detach())
    }

    /// As [`detach`](Reductions::detach), but what sizes decide is an error.
    #[track_caller]
    fn try_detach(self) -> Result<Evaluated<Self>, DimError>
    where
        Self: Evaluable,
    {
        detached(self)
    }

    /// As [`eval`](Reductions::eval), but what sizes decide is an error.
    #[inline(always)]
    #[track_caller]
    fn try_eval(self) -> Result<Evaluated<Self>, DimError>
    where
        Self: Evaluable,
    {
        evaluated(self)
    }

    /// As [`eval`](Reductions::eval), but the elements lie in the order in which the dims are named here, the last one fastest.
    ///
    /// It is the same tensor, but how it lies decides how fast it is read: a matrix of weights that is used often is read best with the
    /// dims first that are summed.
    ///
    /// ```text
    /// w                            (Inner, Width), neighbours along Width
    /// w.eval_in((Width, Inner))    (Inner, Width), neighbours along Inner
    /// ```
    ///
    /// # Panics
    ///
    /// As [`eval`](Reductions::eval).
    #[track_caller]
    fn eval_in<D: DimsOf<Self::Dims, ()>>(self, dims: D) -> Evaluated<Self>
    where
        Self: Evaluable,
    {
        unwrap(self.try_eval_in(dims))
    }

    /// As [`eval_in`](Reductions::eval_in), but what sizes decide is an error.
    #[track_caller]
    fn try_eval_in<D: DimsOf<Self::Dims, ()>>(self, dims: D) -> Result<Evaluated<Self>, DimError>
    where
        Self: Evaluable,
    {
        let tensor = self.into_named();
        let mut shape = Shape::new::<Self::Dims, Self::Rank>();
        tensor.unify(&mut shape)?;
        shape.check_all_given(&dims)?;
        let named = D::KEYS.as_slice().len();
        let mut order = Order::from_slice(AxisList::of(D::KEYS, Self::Dims::KEYS).as_slice());
        order.extend(named..named + Self::Rank::N);
        Ok(Named::from_expr(laid_out_in::<Self::Dims, Self::Rank, _>(tensor.expr, &shape, &order)?))
    }
}

impl<A: AsTensor> Reductions for A {}
