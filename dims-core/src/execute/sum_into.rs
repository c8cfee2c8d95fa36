//! Sums that are written to existing memory.

use crate::bind::source::{SourceMut, check_rank};
use crate::error::DimError;
use crate::execute::order::{OrderList, Ordering};
use crate::execute::reduce::{contracted_but, factors_of, is_product, product_dims, reduced_in};
use crate::execute::written::written;
use crate::expr::Expr;
use crate::expr::step::{ExprStep, is_heard};
use crate::plan::axes::AxisList;
use crate::plan::direct::Roles;
use crate::plan::explain;
use crate::plan::shape::Shape;
use crate::plan::shape::misfit;
use crate::plan::still::Still;
use crate::storage::source::elements_mut;
use crate::storage::unchecked;
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use core::marker::PhantomData;
use kernels::contract;
use kernels::contract::LoopAxes;
use kernels::contract::target::spread;
use kernels::loops::axes::Order;
use kernels::loops::nest::Nest;
use kernels::loops::rows::Rows;
use kernels::loops::steps::ProductDims;
use kernels::loops::stride::AnyStride;
use kernels::memory::destination::Destination;
use kernels::reduce::reducers::Sum;
use kernels::scalar::Num;
use smallvec::SmallVec;

/// The loop axes of a sum over the dims `D` of a tensor, with the remaining dims in the order `L`,
/// as constants.
struct SumAxes<S, R, D, L>(PhantomData<(S, R, D, L)>);

impl<S: Dims, R: Rank, D: DimList, L: OrderList> SumAxes<S, R, D, L> {
    const REDUCED: &'static AxisList = &AxisList::of(D::KEYS, S::KEYS);

    /// The remaining axes: the dims in the order `L`, then the positional axes.
    const KEPT: &'static AxisList = &{
        let dims = S::KEYS.as_slice().len();
        AxisList::of(L::KEYS, S::KEYS).join(&AxisList::range(dims, dims + R::N))
    };

    /// The roles of the axes, if `E` is a product of two tensors in memory with a role for each
    /// axis, and the result has one axis for each dim of `X` and no others.
    const fn roles<E: Expr, X: Dims>() -> Option<Roles> {
        match E::FACTS.pair {
            // (Primes need a comparison of sizes that only a shape makes.)
            Some([a, b]) if Ordering::<X, R, L>::PLAIN && !S::KEYS.has_primes() => {
                Roles::of(a, b, S::KEYS, D::KEYS, &Self::KEPT.join(Self::REDUCED))
            }
            _ => None,
        }
    }

    fn dims<E: Expr>() -> ProductDims {
        product_dims(E::FACTS.pair, explain::names(L::KEYS))
    }
}

/// Writes the sums over the dims `D` of an expression over the dims `S`, whose operands are not
/// unified yet, to an array whose axes are the remaining dims `X` in the order `L`, then the
/// positional axes.
///
/// Small products are always inlined, as
/// [`sum_of_factors`](crate::execute::reduce::sum_of_factors) explains.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn sum_into<S, R, E, D, X, L, O>(expr: &E, out: &mut O) -> Result<(), DimError>
where
    S: Dims,
    R: Rank,
    E: Expr<Elem: Num>,
    D: DimList,
    X: Dims,
    L: OrderList,
    O: SourceMut<Elem = E::Elem> + ?Sized,
{
    if let Some(roles) = const { &SumAxes::<S, R, D, L>::roles::<E, X>() }
        && !is_heard()
    {
        let (a, b) = expr.pair();
        let (places, axes) = elements_mut(out);
        if unchecked::product_onto(roles, a, b, places, &axes, SumAxes::<S, R, D, L>::dims::<E>) {
            written(out);
            return Ok(());
        }
    }
    planned::<S, R, E, D, L, O>(expr, out)?;
    written(out);
    Ok(())
}

/// [`sum_into`], by the general path.
#[inline(never)]
#[track_caller]
fn planned<S, R, E, D, L, O>(expr: &E, out: &mut O) -> Result<(), DimError>
where
    S: Dims,
    R: Rank,
    E: Expr<Elem: Num>,
    D: DimList,
    L: OrderList,
    O: SourceMut<Elem = E::Elem> + ?Sized,
{
    let mut shape = Shape::new::<S, R>();
    expr.unify::<S, R>(&mut shape)?;
    shape.finish()?;
    ExprStep::of::<E::Elem, S, R, E>(expr, &shape)?.refuse("sum_into")?;
    let (places, axes) = elements_mut(out);
    check_rank(axes.len(), L::GROUPS.as_slice().len() + R::N)?;
    let (kept, reduced) = (SumAxes::<S, R, D, L>::KEPT.as_slice(), SumAxes::<S, R, D, L>::REDUCED.as_slice());
    let sizes = shape.sizes();
    let len = shape.volume(kept, size_of::<E::Elem>())?;
    let mut strides = SmallVec::from_elem(0, sizes.len());
    if !spread(&axes, L::GROUPS.as_slice(), kept, sizes, &mut strides) {
        return Err(misfit(&axes, kept, &shape));
    }
    let mut target = unchecked::places(places, strides, sizes, kept);
    let order = Order::from_slice(target.order());
    if let Some((_, still)) = is_product::<S, R, _>(expr, &shape, &order) {
        let factors = factors_of::<S, R, _>(expr, &shape)?;
        let name = |axis| explain::name(S::KEYS, axis);
        if let Some(still) = still {
            let sums = contracted_but(&still, factors, &shape, &order, &name)?;
            target.take(sums, sizes);
            return Ok(());
        }
        let axes = LoopAxes { sizes, name: &name };
        return contract::contract(factors.operands, &factors.constants, Num::ONE, axes, target)
            .map(drop)
            .map_err(|error| shape.name_dims(error.into(), kept));
    }
    let count = shape.volume(reduced, 1)?;
    let mut rows = Rows::new(sizes.len());
    expr.rows::<S, R>(&shape, &mut rows);
    let still = Still::of_rows(&rows, sizes, &order);
    let (live, len, count, sum) = match &still {
        Some(still) => {
            let sum = Sum { times: still.times };
            (&still.sizes[..], still.volume(kept), still.volume(reduced), sum)
        }
        None => (sizes, len, count, Sum::ONCE),
    };
    let nest = Nest::reduce(live, &order, reduced, &rows);
    if still.is_none()
        && let Some(to) = target.line()
    {
        return reduced_in::<AnyStride, _, _>(expr, &nest, to, count, sum).map(drop);
    }
    let mut sums = reduced_in::<AnyStride, _, _>(expr, &nest, Destination::New(len), count, sum)
        .map_err(|error| shape.name_dims(error, kept))?;
    if let Some(still) = still {
        sums = still.repeated(sums, sizes, &order).map_err(|error| shape.name_dims(error, &order))?;
    }
    target.take(sums, sizes);
    Ok(())
}
