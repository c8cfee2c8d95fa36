//! Chooses how to compute an expression in an order of its axes: by a loop that needs no plan, or
//! by a planned nest of loops.

use crate::error::DimError;
use crate::execute::order::OrderList;
use crate::expr::Expr;
use crate::expr::evaluate::{SMALL, in_line, line, line_into, sizes_of, typed_line};
use crate::expr::step::is_heard;
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::storage::unchecked;
use crate::types::rank::Rank;
use crate::types::set::{Dims, MAX_DIMS};
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::copy::FEW;
use kernels::loops::stride::{AnyStride, UnitStride};
use kernels::memory::axes::Axis;
use kernels::memory::destination::Destination;
use kernels::memory::elements::{Elements, ElementsMut};
use smallvec::SmallVec;

/// How to compute an expression in an order of its axes.
pub(crate) enum OrderRoute<'e, T> {
    /// A tensor with few elements in memory, which are copied one by one. `axes` are those of the
    /// result, padded in front with axes of size 1.
    Few { elements: Elements<'e, T>, axes: [Axis; FEW], len: usize },
    /// All operands are contiguous in this order: one loop, which needs no plan.
    Line { axes: &'e [Axis], len: usize, operands: usize },
    /// A planned nest of loops.
    Nest,
}

/// How `L` orders a tensor with the dims `S` and the positional axes `R`, as constants.
pub(crate) struct Ordering<S, R, L>(PhantomData<(S, R, L)>);

impl<S: Dims, R: Rank, L: OrderList> Ordering<S, R, L> {
    /// The loop axes in the order of the result: the remaining dims, the named ones, the positional
    /// axes.
    pub(crate) const ORDER: &'static AxisList = &{
        let named = AxisList::of(L::KEYS, S::KEYS);
        let all = S::KEYS.as_slice().len();
        AxisList::in_memory(S::KEYS, 0).without(&named).join(&named).join(&AxisList::range(all, all + R::N))
    };

    /// The number of remaining dims.
    const LEFT: usize = S::KEYS.as_slice().len() - L::KEYS.as_slice().len();

    /// Whether all dims are named, each becomes a separate axis, and the result has no other axes.
    pub(crate) const PLAIN: bool = {
        let groups = L::GROUPS.as_slice();
        let mut plain = R::N == 0 && Self::LEFT == 0 && groups.len() <= MAX_DIMS;
        let mut i = 0;
        while i < groups.len() {
            plain &= groups[i] == 1;
            i += 1;
        }
        plain
    };

    /// Whether the order is [plain](Ordering::PLAIN) and has at most [`FEW`] axes, so that a small
    /// tensor can be copied element by element.
    const IS_FEW: bool = Self::PLAIN && Self::ORDER.as_slice().len() <= FEW;

    /// The number of operands of `E`, if their types say that all are stored in this order.
    pub(crate) const fn typed<E: Expr>() -> Option<usize> {
        if Self::PLAIN { E::FACTS.layout.operands_in(Self::ORDER, S::KEYS) } else { None }
    }

    /// The elements and sizes of a tensor that owns its elements in this order, if the order is
    /// plain; otherwise the expression.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn as_it_is<E: Expr>(expr: E) -> Result<(Vec<E::Elem>, [usize; MAX_DIMS]), E> {
        if const { !Self::PLAIN || E::FACTS.memory.is_none() } {
            return Err(expr);
        }
        let sizes = sizes_of(expr.memory().1, Self::ORDER.as_slice());
        expr.into_contiguous::<S>(Self::ORDER.as_slice()).map(|data| (data, sizes))
    }

    /// Copies the elements to `places`, whose axes are `axes`, if that is a copy of one block of
    /// memory. Returns the number of elements, or `None` if nothing was copied.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn copy_line<E: Expr>(
        expr: &E,
        places: ElementsMut<'_, E::Elem>,
        axes: &[Axis],
    ) -> Option<usize> {
        if const { !Self::PLAIN || E::FACTS.memory.is_none() } || is_heard() {
            return None;
        }
        let (elements, own) = expr.memory();
        unchecked::copy_line(elements, Self::ordered(own), places, axes)
    }

    /// A tensor in memory with few elements and axes. The axes are in the order of the result,
    /// padded in front with axes of size 1.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn small<E: Expr>(expr: &E) -> Option<(Elements<'_, E::Elem>, [Axis; FEW], usize)> {
        let order = Self::ORDER.as_slice();
        if const { !Self::IS_FEW || E::FACTS.memory.is_none() || Self::typed::<E>().is_some() } {
            return None;
        }
        let (elements, axes) = expr.memory();
        let (mut own, mut len, mut fits) = ([Axis::new(1, 0); FEW], 1_usize, true);
        for (own, &at) in own[FEW - order.len()..].iter_mut().zip(order) {
            *own = axes[at];
            fits &= S::KEYS.as_slice()[at].fixed.is_none_or(|size| size == own.size);
            len = len.saturating_mul(own.size);
        }
        (fits && len <= SMALL).then_some((elements, own, len))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn route<E: Expr>(expr: &E) -> OrderRoute<'_, E::Elem> {
        if is_heard() {
            return OrderRoute::Nest;
        }
        if let Some((elements, axes, len)) = Self::small(expr) {
            return OrderRoute::Few { elements, axes, len };
        }
        let line = if let Some(operands) = const { Self::typed::<E>() } {
            // (If sizes conflict, the general path reports them.)
            typed_line::<S, E>(expr).map(|(axes, len)| (axes, len, operands))
        } else if const { Self::PLAIN } {
            in_line::<S, E>(expr, Self::ORDER)
        } else {
            None
        };
        line.map_or(OrderRoute::Nest, |(axes, len, operands)| OrderRoute::Line { axes, len, operands })
    }

    /// The elements of a [line](OrderRoute::Line).
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    pub(super) fn line<E: Expr>(
        expr: &E,
        operands: usize,
        to: Destination<'_, E::Elem>,
    ) -> Result<Vec<E::Elem>, DimError> {
        if const { Self::typed::<E>().is_some() } {
            line::<UnitStride, _>(expr, operands, to)
        } else {
            line::<AnyStride, _>(expr, operands, to)
        }
    }

    /// Like [`line`](Ordering::line), but writes the elements into `places`.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    pub(crate) fn line_into<E: Expr>(
        expr: &E,
        operands: usize,
        places: &mut [E::Elem],
    ) -> Result<(), DimError> {
        if const { Self::typed::<E>().is_some() } {
            line_into::<UnitStride, _>(expr, operands, places)
        } else {
            line_into::<AnyStride, _>(expr, operands, places)
        }
    }

    /// Axes of the dims, in the order of the result.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn ordered(axes: &[Axis]) -> impl ExactSizeIterator<Item = &Axis> + DoubleEndedIterator {
        Self::ORDER.as_slice().iter().map(|&at| &axes[at])
    }

    /// The sizes of the result's axes.
    #[inline]
    pub(crate) fn sizes(shape: &Shape) -> Result<SmallVec<[usize; 8]>, DimError> {
        grouped_sizes(shape, Self::ORDER.as_slice(), Self::LEFT, L::GROUPS.as_slice())
    }
}

/// The sizes of the result's axes: the first `left` axes of the order are kept, each group of the
/// following ones becomes one axis, and the axes after the groups are kept, too.
fn grouped_sizes(
    shape: &Shape,
    order: &[usize],
    left: usize,
    groups: &[usize],
) -> Result<SmallVec<[usize; 8]>, DimError> {
    let loops = shape.sizes();
    let mut sizes: SmallVec<[usize; 8]> = SmallVec::new();
    let mut next = 0;
    for group in core::iter::repeat_n(1, left).chain(groups.iter().copied()) {
        let axes = &order[next..next + group];
        next += group;
        match axes.iter().try_fold(1usize, |size, &axis| size.checked_mul(loops[axis])) {
            Some(size) => sizes.push(size),
            None if axes.iter().any(|&axis| loops[axis] == 0) => sizes.push(0),
            None => return Err(DimError::TooLarge { dims: shape.describe(axes) }),
        }
    }
    sizes.extend(order[next..].iter().map(|&axis| loops[axis]));
    Ok(sizes)
}

#[inline]
pub(super) fn few_sizes(axes: &[Axis; FEW]) -> [usize; FEW] {
    axes.map(|axis| axis.size)
}
