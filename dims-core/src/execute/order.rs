//! `order`: dims become positional axes again, in a new array or tensor, or in an existing array.

mod list;
mod result;
mod route;

pub use list::{Groups, OrderAxis, OrderList, OrderOf};
pub use result::{ArrayRank, OrderResult};
pub(crate) use route::{OrderRoute, Ordering};

use crate::bind::source::{SourceMut, check_rank};
use crate::error::{DimError, unwrap};
use crate::execute::assign::{NoneLeft, note_update};
use crate::execute::sum_into::sum_into;
use crate::execute::written::written;
use crate::expr::Expr;
use crate::expr::evaluate::{evaluate, few, sizes_of};
use crate::expr::lowered::{LOWERS, lowered_update};
use crate::expr::step::ExprStep;
use crate::plan::shape::{Shape, misfit};
use crate::storage::source::elements_mut;
use crate::storage::unchecked::{copy_onto, line_mut, update, update_lowered};
use crate::tensors::tensor::{AsTensor, Computable, Evaluable, NamedOf, checked};
use crate::types::rank::Rank;
use crate::types::set::{Dims, DimsOf, MAX_DIMS};
use alloc::vec::Vec;
use kernels::contract::target::spread;
use kernels::copy::FEW;
use kernels::loops::nest::{Nest, NestParts};
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, PlanStep, note, told, told_array};
use kernels::loops::stride::AnyStride;
use kernels::machine::threads;
use kernels::map::update::LoweredUpdate;
use kernels::memory::destination::Destination;
use kernels::ops::Replace;
use kernels::scalar::{Element, Num};
use route::few_sizes;
use twins::panicking_twin;

/// Turns dims back into positional axes.
pub trait OrderExt: AsTensor {
    /// The tensor with the named dims as axes, in the order given; a tuple of dims becomes one
    /// axis.
    ///
    /// If no dim remains, the result is an ndarray array (`order(())` of a single element returns
    /// the element itself); otherwise a tensor with the new axes to the left of its positional
    /// ones. The elements are contiguous in the order given. `NewAxis` is an axis of size 1: for a
    /// tensor reduced over `j`, `order((i, NewAxis))` gives the shape of NumPy's `keepdims`.
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
    /// If the sizes of operands conflict, a size given with a dim differs from its size in the
    /// tensor, an index is out of range, the result does not fit into memory, or the
    /// result is an array while a gradient or a recorded function traces the tensor.
    #[track_caller]
    #[cfg_attr(not(unoptimized), inline(always))]
    #[rustfmt::skip] // rustc quotes the next line in errors
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

    /// Like [`order`](OrderExt::order), but returns errors instead of panicking.
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

    /// Writes the elements into `out`, whose axes are the named dims in the order given, then the
    /// positional axes; a tuple of dims is one axis.
    ///
    /// `dims` must name all dims of the tensor. This is [`order`](OrderExt::order) without the
    /// allocation.
    ///
    /// # Panics
    ///
    /// If the shape of `out` does not match, the sizes of operands conflict, a size given with a
    /// dim differs from its size in the tensor, an index is out of range, or a gradient or a
    /// recorded function traces the tensor.
    #[panicking_twin]
    #[inline]
    fn try_order_into<L: OrderOf<Self::Dims, X>, X: NoneLeft, O>(
        self,
        out: &mut O,
        dims: L,
    ) -> Result<(), DimError>
    where
        Self: Evaluable,
        O: SourceMut<Elem = Self::Elem> + ?Sized,
    {
        let tensor = self.into_named();
        if L::GIVES_SIZE {
            dims.check_given(&tensor.unified_shape()?)?;
        }
        let (mut place, axes) = elements_mut(out);
        if let Some(len) =
            Ordering::<Self::Dims, Self::Rank, L>::copy_line(&tensor.expr, place.reborrow(), &axes)
        {
            note(|| PlanStep::Copy {
                reason: "order of the result",
                loops: Loops::new::<Self::Elem>(&Nest::line::<AnyStride>(len, 1), len, 1),
            });
            written(out);
            return Ok(());
        }
        match Ordering::<Self::Dims, Self::Rank, L>::route(&tensor.expr) {
            OrderRoute::Few { elements, axes: own, .. } => {
                let sizes = own[FEW - L::GROUPS.as_slice().len()..].iter().map(|axis| axis.size);
                if let Some(places) = line_mut(place, &axes, sizes) {
                    few(elements, &own, Destination::Given(places))?;
                    written(out);
                    return Ok(());
                }
            }
            OrderRoute::Line { axes: like, len, operands } => {
                let sizes = Ordering::<Self::Dims, Self::Rank, L>::ordered(like).map(|axis| axis.size);
                if let Some(places) = line_mut(place, &axes, sizes)
                    && threads::parts(len) <= 1
                {
                    Ordering::<Self::Dims, Self::Rank, L>::line_into(&tensor.expr, operands, places)?;
                    written(out);
                    return Ok(());
                }
            }
            OrderRoute::Nest => {}
        }
        // (Only this general case is a call: passing a tensor costs more than copying a few
        // elements.)
        Self::run_into(tensor, out, dims)
    }

    /// Writes the sums over `dims` into `out`, whose axes are the remaining dims in the order
    /// `order`, then the positional axes; a tuple of dims is one axis:
    /// `out[order] = sum over dims of x[.., dims]`. This is `x.sum(dims).order_into(out, order)`,
    /// without the intermediate tensor where possible.
    ///
    /// The old elements of `out` are not read. `out` may have any strides.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let (a, b) = (ndarray::array![[1.0, 2.0], [3.0, 4.0]], ndarray::array![[0.5], [1.0]]);
    /// let mut out = ndarray::Array2::zeros((2, 1));
    /// dims!(i, j, k);
    /// (a.at((i, k)) * b.at((k, j))).sum_into(k, &mut out, (i, j));         // out = a @ b
    /// assert_eq!(out, ndarray::array![[2.5], [5.5]]);
    /// a.at((i, k)).sum_into(i, &mut out.column_mut(0), k);
    /// assert_eq!(out, ndarray::array![[4.0], [6.0]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the shape of `out` does not match, the sizes of operands conflict, a size given with a
    /// dim differs from its size in the tensor, an index is out of range, an intermediate result
    /// does not fit into memory, or a gradient or a recorded function traces the tensor.
    #[panicking_twin(
        but = "size mismatches are errors. If an index is out of range, some sums may already have been written"
    )]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn try_sum_into<D: DimsOf<Self::Dims, X>, X: Dims, O, L: OrderOf<X, Y>, Y: NoneLeft>(
        self,
        dims: D,
        out: &mut O,
        order: L,
    ) -> Result<(), DimError>
    where
        Self: Evaluable<Elem: Num>,
        O: SourceMut<Elem = Self::Elem> + ?Sized,
    {
        let tensor = checked(self, &dims)?;
        if L::GIVES_SIZE {
            order.check_given(&tensor.unified_shape()?)?;
        }
        sum_into::<Self::Dims, Self::Rank, _, D, X, L, _>(&tensor.expr, out)
    }

    /// Like [`try_order_into`](OrderExt::try_order_into), but always takes the general path.
    #[doc(hidden)]
    #[inline(never)]
    #[track_caller]
    fn run_into<L, X, O>(tensor: NamedOf<Self>, out: &mut O, _: L) -> Result<(), DimError>
    where
        Self: Evaluable,
        L: OrderOf<Self::Dims, X>,
        X: NoneLeft,
        O: SourceMut<Elem = Self::Elem> + ?Sized,
    {
        let (mut place, axes) = elements_mut(out);
        let mut shape = Shape::new::<Self::Dims, Self::Rank>();
        tensor.unify(&mut shape)?;
        let order = Ordering::<Self::Dims, Self::Rank, L>::ORDER.as_slice();
        shape.volume(order, 1)?;
        ExprStep::of::<Self::Elem, Self::Dims, Self::Rank, _>(&tensor.expr, &shape)?.refuse("order_into")?;
        check_rank(axes.len(), L::GROUPS.as_slice().len() + Self::Rank::N)?;
        let loops = shape.sizes();
        let mut rows = Rows::new(loops.len());
        if !spread(&axes, L::GROUPS.as_slice(), order, loops, rows.push()) {
            return Err(misfit(&axes, order, &shape));
        }
        tensor.expr.rows::<Self::Dims, Self::Rank>(&shape, &mut rows);
        let nest = Nest::map(loops, order, &rows);
        let mut operands = nest.operands();
        let row = operands.next_row();
        if const { Self::Expr::FACTS.memory.is_some() } && row.strides.last() == Some(&1) {
            note(|| PlanStep::Copy {
                reason: "order of the result",
                loops: Loops::new::<Self::Elem>(&nest, nest.positions(), 1),
            });
            let (from, _) = tensor.expr.memory();
            copy_onto(from, operands.next_row(), place, row, &nest.sizes);
            written(out);
            return Ok(());
        }
        note_update::<Self::Elem>(&nest, false, || format!("assign(place, {})", tensor.expr.describe()));
        if LOWERS && let Some(program) = lowered_update(&mut place, &tensor.expr, Replace, nest.positions()) {
            update_lowered(&program, &nest, place);
            written(out);
            return Ok(());
        }
        let lower = |nest| {
            let mut operands = Nest::operands(nest);
            let row = operands.next_row();
            LoweredUpdate { row, indices: (), value: tensor.expr.kernel::<AnyStride>(&mut operands) }
        };
        update(&nest, &mut NestParts::new(), place, lower, Replace)?;
        written(out);
        Ok(())
    }
}

impl<A: AsTensor + ?Sized> OrderExt for A {}

/// Reports the elements of a result with the dims `X` to listeners. Without dims, they become an
/// array.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn told_as<X: Dims, T: Element>(data: &[T]) {
    if const { X::KEYS.as_slice().is_empty() } { told_array(data) } else { told(data) }
}

/// The elements and sizes of the tensor, if it owns its elements in the order asked for; otherwise
/// the tensor.
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

/// [`OrderExt::try_order`] for elements that must be computed or moved. (Only the short path,
/// [`at_hand`], is inlined, for the reason that
/// [`sum_of_factors`](crate::execute::reduce::sum_of_factors) gives.)
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
        // (The condition is always true for this route. As a constant, it removes the arm for other
        // expressions.)
        OrderRoute::Few { elements, axes, len } if const { A::Expr::FACTS.memory.is_some() } => {
            let data = few(elements, &axes, Destination::New(len))?;
            told_as::<X, _>(&data);
            return Ok(X::build(data, &few_sizes(&axes)[FEW - L::GROUPS.as_slice().len()..]));
        }
        OrderRoute::Line { axes, len, operands } => {
            let order = Ordering::<A::Dims, A::Rank, L>::ORDER.as_slice();
            // (If memory is short, the general path below returns an error that names the dims.)
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
