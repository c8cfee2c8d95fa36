//! Scatter: elements written to computed positions of a result.

use crate::error::DimError;
use crate::execute::place::{count, filled};
use crate::expr::Expr;
use crate::expr::evaluate::evaluate_unrecorded;
use crate::expr::index::ComputedIndex;
use crate::expr::step::{ExprStep, StepOfSum, check_unrecorded_as};
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::storage::axes::AxisBlock;
use crate::storage::{Evaluated, Place};
use crate::tensors::named::Named;
use crate::types::dim::DimList;
use crate::types::rank::Rank0;
use crate::types::set::{DimKey, Dims};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::panic::Location;
use kernels::load::gather::IndexedAxis;
use kernels::loops::axes::Sizes;
use kernels::memory::axes::Axis;
use kernels::memory::destination::Destination;
use kernels::ops::{Add, BinaryOp, Replace};
use kernels::scalar::{IndexInt, Num};
use smallvec::SmallVec;

/// Why a program cannot scatter without adding.
const REPLACES: &str = "it replaces elements, and programs can only add them; if all indices differ, write `scatter_add`, which fills with zeros";

/// How elements with the same position are combined.
pub(crate) struct ScatterWork<T, O> {
    /// The initial value of each position.
    fill: T,
    /// Combines the current value with a new element.
    op: O,
    /// Whether only the last element is kept; otherwise all elements are added.
    last_stays: bool,
}

impl<T: Num> ScatterWork<T, Add> {
    /// Adds the elements.
    pub(crate) const ADD: Self = ScatterWork { fill: T::ZERO, op: Add, last_stays: false };
}

impl<T> ScatterWork<T, Replace> {
    /// Keeps the last element. Positions without an element get `fill`.
    pub(crate) fn replacing(fill: T) -> Self {
        ScatterWork { fill, op: Replace, last_stays: true }
    }
}

/// The order of the loops over the dims `V`, where `D` are scattered.
struct ScatterLoops<V, D>(PhantomData<(V, D)>);

impl<V: Dims, D: DimList> ScatterLoops<V, D> {
    const ALONG: &'static AxisList = &AxisList::of(D::KEYS, V::KEYS);
    /// Scattered dims are outermost, in the order in which they are named, so that elements with
    /// the same position are combined in this order.
    const ORDER: &'static AxisList =
        &Self::ALONG.join(&AxisList::range(0, V::KEYS.as_slice().len()).without(Self::ALONG));
}

/// Runs `out[.., index] = op(out[.., index], value)` over the dims `V` of `index` and `value`,
/// whose sizes are unified. The result has the dims `Y`: those of `V` without `D`, and `into` with
/// the size `places`.
#[track_caller]
pub(crate) fn scattered<V, Y, D, S, E, Q, I, O>(
    value: Named<E::Elem, S, Rank0, E>,
    index: Named<I::Elem, Q, Rank0, I>,
    shape: &Shape,
    (into, places): (DimKey, usize),
    ScatterWork { fill, op, last_stays }: ScatterWork<E::Elem, O>,
) -> Result<Named<E::Elem, Y>, DimError>
where
    V: Dims,
    Y: Dims,
    D: DimList,
    S: Dims,
    E: Expr,
    Q: Dims,
    I: Expr<Elem: IndexInt>,
    O: BinaryOp<E::Elem, E::Elem, Out = E::Elem> + Copy,
{
    let size = |key: &DimKey| match key.same(&into) {
        true => places,
        false => shape.size(shape.position(key).expect("the dim is one of the operands'")),
    };
    let sizes: Sizes = Y::KEYS.as_slice().iter().map(size).collect();
    Y::KEYS.check_primes(|at| (sizes[at], None))?;
    let (name, why) = match last_stays {
        true => ("scatter", "its indices depend on an input; capture them"),
        false => {
            ("scatter_add", "its indices depend on an input; capture them, or write `contract` and `one_hot`")
        }
    };
    if last_stays {
        check_unrecorded_as(&value.expr, name, REPLACES)?;
    }
    check_unrecorded_as(&index.expr, name, why)?;
    let step = ExprStep::of::<E::Elem, V, Rank0, _>(&value.expr, shape)?;
    let scope = step.scope();
    // (When recording from sizes, nothing is computed.)
    let is_hollow = scope.is_some();
    let data = match is_hollow {
        true => Destination::of_step(count::<E::Elem, Y>(&sizes)?).from_fn(|_| fill)?,
        false => filled::<E::Elem, Y>(&sizes, fill)?,
    };
    drop(scope);
    let mut out = Evaluated::<E::Elem, Y>::of_sizes(data, &sizes);
    // Scattered dims have stride 0: the index moves the position instead.
    let mut axes = V::Axes::filled(Axis::default());
    for (at, (axis, key)) in axes.as_mut_slice().iter_mut().zip(V::KEYS.as_slice()).enumerate() {
        let kept = D::KEYS.position(key).is_none();
        let own = if kept { Y::KEYS.position(key) } else { None };
        *axis = Axis::new(shape.size(at), own.map_or(0, |own| out.named().as_slice()[own].stride));
    }
    let to = Y::KEYS.position(&into).expect("the dim is one of the result's");
    let target = IndexedAxis {
        stride: out.named().as_slice()[to].stride,
        size: places,
        axis: to,
        dim: Some(into.name),
        names: Vec::new,
        is_label: false,
        origin: Some(Location::caller()),
    };
    let order = ScatterLoops::<V, D>::ORDER.as_slice();
    let mut step_of_sum = StepOfSum::default();
    if step.is_some() {
        let along = const { &AxisList::of(Q::KEYS, V::KEYS) };
        let indices = evaluate_unrecorded::<V, Rank0, _>(&index.expr, shape, along.as_slice())?;
        // (If elements are computed, `update_in` checks the indices.)
        if is_hollow
            && !shape.sizes().contains(&0)
            && let Some(index) = indices.iter().find(|index| index.to_position(places).is_none())
        {
            let what = format!("dim `{}`", into.name);
            let (index, origin) = (index.to_i128(), Some(Location::caller()));
            return Err(DimError::OutOfBounds { what, index, size: places, origin });
        }
        let offsets = indices.into_iter().map(|index| index.to_isize().wrapping_mul(target.stride)).collect();
        let strides: SmallVec<[isize; 8]> = axes.as_slice().iter().map(|axis| axis.stride).collect();
        step_of_sum = step.scattered(&strides, (offsets, along.as_slice()), last_stays.then_some(order));
    }
    let indices = ComputedIndex { index: index.expr, active: true, target, dims: &[], open: None, rest: () };
    let selected = [Axis::new(places, target.stride)];
    let mut place: Place<'_, E::Elem, V, Rank0, _> =
        Place::within(&mut out, axes, [], (indices, &selected), None);
    if !is_hollow {
        place.update_in(order, value.expr, op, None)?;
    }
    Ok(Named::from_expr(Evaluated::of_sizes(step_of_sum.finish(out.into_vec()), &sizes)))
}
