//! `order`: dims become positional axes again.

mod list;
mod result;
mod route;

pub use list::{Groups, OrderAxis, OrderList, OrderOf};
pub use result::{ArrayRank, OrderResult};
pub(crate) use route::{OrderRoute, Ordering};

use crate::error::{DimError, unwrap};
use crate::expr::Expr;
use crate::expr::evaluate::{evaluate, few, sizes_of};
use crate::plan::shape::Shape;
use crate::tensors::tensor::{AsTensor, Computable, Evaluable, NamedOf};
use crate::types::rank::Rank;
use crate::types::set::{Dims, MAX_DIMS};
use alloc::vec::Vec;
use kernels::copy::FEW;
use kernels::loops::steps::{told, told_array};
use kernels::memory::destination::Destination;
use kernels::scalar::Element;
use route::few_sizes;

/// Turns dims back into positional axes.
pub trait OrderExt: AsTensor {
    /// The tensor with the named dims as axes, in the order given; a tuple of dims becomes one
    /// axis.
    ///
    /// If no dim remains, the result is an ndarray array (`order(())` of a single element is that
    /// element); otherwise a tensor with the new axes to the left of its positional ones. The
    /// elements are computed in one pass and are contiguous in the order given. `NewAxis` is an
    /// axis of size 1: for a tensor reduced over `j`, `order((i, NewAxis))` gives the shape of
    /// NumPy's `keepdims`.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let a = ndarray::Array2::from_shape_fn((4, 6), |(i, j)| 6 * i + j);
    /// dims!(h, w, h2 = 2, w2 = 3);
    /// let blocks = a.at(((h, h2), (w, w2)));
    /// let sums: ndarray::Array2<usize> = blocks.sum((h2, w2)).order((h, w));
    /// assert_eq!(sums, ndarray::array![[24, 42], [96, 114]]);
    /// assert_eq!(blocks.order(((h, w), (h2, w2))).dim(), (4, 6));  // a tuple of dims is one axis, the last dim fastest
    /// let total: usize = blocks.sum((h, h2, w, w2)).order(());
    /// assert_eq!(total, 276);
    /// assert_eq!(blocks.max((w, w2, h2)).order((h, NewAxis)), ndarray::array![[11], [23]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If operands have different sizes for one dim, an index is out of range, or the result does
    /// not fit into memory.
    #[track_caller]
    #[cfg_attr(not(unoptimized), inline(always))]
    #[rustfmt::skip] // rustc quotes the line
    fn order<L: OrderOf<Self::Dims, X>, X, Out>(self, dims: L) -> Out where Self: Evaluable,
        X: OrderResult<Self::Elem, <L::Count as Rank>::Plus<Self::Rank>, Out = Out>,
    {
        // (Not through `try_order`: it would store a small result in its `Result` in small pieces,
        // which are then loaded as one large piece.)
        match unwrap(at_hand(self, dims)) {
            Ok((data, sizes)) => X::build(data, &sizes[..Self::Dims::KEYS.as_slice().len()]),
            Err(tensor) => unwrap(planned::<_, L, X>(tensor)),
        }
    }

    /// Like [`order`](OrderExt::order), but size mismatches are errors.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    fn try_order<L: OrderOf<Self::Dims, X>, X, Out>(self, dims: L) -> Result<Out, DimError>
    where
        Self: Evaluable,
        X: OrderResult<Self::Elem, <L::Count as Rank>::Plus<Self::Rank>, Out = Out>,
    {
        match at_hand(self, dims)? {
            Ok((data, sizes)) => Ok(X::build(data, &sizes[..Self::Dims::KEYS.as_slice().len()])),
            Err(tensor) => planned::<_, L, X>(tensor),
        }
    }
}

impl<A: AsTensor + ?Sized> OrderExt for A {}

/// Reports the elements of a result with the dims `X` to listeners. Without dims, they become an
/// array.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn told_as<X: Dims, T: Element>(data: &[T]) {
    if const { X::KEYS.as_slice().is_empty() } { told_array(data) } else { told(data) }
}

/// The elements and sizes of a tensor that owns them in the order asked for; otherwise the tensor.
#[cfg_attr(not(unoptimized), inline(always))]
fn at_hand<A: Computable, L: OrderList>(
    tensor: A,
    dims: L,
) -> Result<Result<(Vec<A::Elem>, [usize; MAX_DIMS]), NamedOf<A>>, DimError> {
    let tensor = tensor.into_named();
    if L::GIVES_SIZE {
        dims.check_given(&tensor.unified_shape()?)?;
    }
    Ok(Ordering::<A::Dims, A::Rank, L>::as_it_is(tensor.expr).map_err(NamedOf::<A>::from_expr))
}

/// [`OrderExt::try_order`] for elements that must be computed or moved. (A separate function,
/// because the other part is always inlined, as [`sum`](crate::execute::reduce::sum) explains.)
#[inline(never)]
#[track_caller]
fn planned<A, L, X>(tensor: A) -> Result<X::Out, DimError>
where
    A: Computable,
    L: OrderList,
    X: OrderResult<A::Elem, <L::Count as Rank>::Plus<A::Rank>>,
{
    let tensor = tensor.into_named();
    match Ordering::<A::Dims, A::Rank, L>::route(&tensor.expr) {
        // (The condition of this route, as a constant.)
        OrderRoute::Few { elements, axes, len } if const { A::Expr::FACTS.memory.is_some() } => {
            let data = few(elements, &axes, Destination::New(len))?;
            told_as::<X, _>(&data);
            return Ok(X::build(data, &few_sizes(&axes)[FEW - L::GROUPS.as_slice().len()..]));
        }
        OrderRoute::Line { axes, len, operands } => {
            let order = Ordering::<A::Dims, A::Rank, L>::ORDER.as_slice();
            // (If memory is short, the error below names the dims.)
            if let Ok(data) =
                Ordering::<A::Dims, A::Rank, L>::line(&tensor.expr, operands, Destination::New(len))
            {
                told_as::<X, _>(&data);
                return Ok(X::build(data, &sizes_of(axes, order)[..order.len()]));
            }
        }
        OrderRoute::Few { .. } | OrderRoute::Nest => {}
    }
    let mut shape = Shape::new::<A::Dims, A::Rank>();
    tensor.unify(&mut shape)?;
    let sizes = Ordering::<A::Dims, A::Rank, L>::sizes(&shape)?;
    let order = Ordering::<A::Dims, A::Rank, L>::ORDER.as_slice();
    let data = evaluate::<A::Dims, A::Rank, _>(tensor.expr, &shape, order)?;
    X::build_of(data, &sizes, "order")
}
