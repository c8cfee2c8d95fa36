//! Assignment: expressions written into existing memory.

use crate::error::{DimError, unwrap};
use crate::execute::written::tell_places;
use crate::expr::evaluate::{evaluate_tensor, line_into};
use crate::expr::index::IndexExprs;
use crate::expr::leaf::{axes_row, unify_axes};
use crate::expr::lowered::{LOWERS, lowered_update};
use crate::expr::step::{ExprStep, check_indices_unrecorded, is_heard, is_recorded, reads_recorded, renewed};
use crate::expr::{Binary, Expr, Operand};
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::storage::axes::AxisBlock;
use crate::storage::unchecked::{update, update_lowered};
use crate::storage::{Evaluated, Place};
use crate::tensors::named::Named;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::{Dims, Union};
use alloc::string::String;
use kernels::loops::axes::are_distinct;
use kernels::loops::nest::{Nest, NestParts};
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, PlanStep, is_listening, note};
use kernels::loops::stride::{AnyStride, UnitStride};
use kernels::machine::threads;
use kernels::map::update::LoweredUpdate;
use kernels::memory::axes::Axis;
use kernels::ops::code::Code;
use kernels::ops::{self, BinaryOp, Replace};
use kernels::scalar::{Element, Num, Ordered};
use smallvec::SmallVec;
use twins::panicking_twin;

/// The condition that the target has all dims of the assigned tensor. (For a scatter, the dims of
/// the indices count as the target's.)
#[diagnostic::on_unimplemented(
    message = "a tensor with dims `{O}` cannot be assigned to one with dims `{Self}`",
    label = "this has dims that the target lacks; reduce them first, for example with `.sum(..)`"
)]
pub trait Covers<O>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<S: Dims + Union<O, Out = S>, O: Dims> Covers<O> for S {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The condition that the assigned tensor has no more positional axes than the target: only the
/// assigned tensor broadcasts.
#[diagnostic::on_unimplemented(
    message = "a tensor of `{O}` cannot be assigned to one of `{Self}`",
    label = "the assigned tensor has more positional axes than the target",
    note = "bind or reduce them first"
)]
pub trait CoversAxes<O>: Rank {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<R: Rank<Max<O> = R>, O: Rank> CoversAxes<O> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

impl<T: Element, S: Dims, R: Rank, X: IndexExprs> Place<'_, T, S, R, X> {
    /// Runs `place = op(place, value)` over all axes of the place. If the value is traced, or the
    /// indices are recorded, returns an error that names the operation `name`.
    #[track_caller]
    pub(crate) fn update<B, O>(&mut self, value: B, op: O, name: &'static str) -> Result<(), DimError>
    where
        B: Operand<T, Expr: Expr<Elem = T>>,
        O: BinaryOp<T, T, Out = T> + Copy,
    {
        let order = const { &AxisList::range(0, S::Axes::LEN + R::N) }.as_slice();
        self.update_in(order, value.into_expr(), op, Some(name))
    }

    /// Like [`update`](Place::update), with loops nested in the order given. If positions repeat,
    /// the order of the loops decides which value comes last. Without a name, the caller records
    /// the update.
    #[track_caller]
    pub(crate) fn update_in<E, O>(
        &mut self,
        order: &[usize],
        value: E,
        op: O,
        name: Option<&'static str>,
    ) -> Result<(), DimError>
    where
        E: Expr<Elem = T>,
        O: BinaryOp<T, T, Out = T> + Copy,
    {
        let mut shape = Shape::new::<S, R>();
        unify_axes::<S, S>(self.named(), self.positional().as_slice(), self.origin(), &mut shape)?;
        self.indices().unify::<S, R>(&mut shape)?;
        value.unify::<S, R>(&mut shape)?;
        shape.finish()?;
        let sizes = shape.sizes();
        check_broadcast(self.positional().as_slice(), &shape)?;
        shape.volume(order, 1)?;
        if let Some(name) = name {
            ExprStep::of::<T, S, R, _>(&value, &shape)?.refuse_writing(name)?;
            check_indices_unrecorded(self.indices(), name)?;
        }
        let mut rows = Rows::new(sizes.len());
        axes_row::<S, S>(self.named(), self.positional().as_slice(), rows.push());
        self.indices().rows::<S, R>(&shape, &mut rows);
        value.rows::<S, R>(&shape, &mut rows);
        let nest = Nest::map(sizes, order, &rows);
        let scatters = self.indices().any_active();
        note_update::<T>(&nest, scatters, || format!("{}(place, {})", O::NAME, value.describe()));
        let (mut place, indices) = self.elements();
        // (If values accumulate, each must be stored before the next is added.)
        let positions = || nest.strides_of(0).iter().copied().zip(nest.sizes.iter().copied());
        if LOWERS
            && !scatters
            && (nest.positions() == 0 || are_distinct(positions()))
            && let Some(program) = lowered_update(&mut place, &value, op, nest.positions())
        {
            update_lowered(&program, &nest, place);
            self.tell_written();
            return Ok(());
        }
        let lower = |nest| {
            let mut operands = Nest::operands(nest);
            let row = operands.next_row();
            let indices = indices.kernels(&mut operands);
            LoweredUpdate { row, indices, value: value.kernel::<AnyStride>(&mut operands) }
        };
        update(&nest, &mut NestParts::new(), place, lower, op)?;
        self.tell_written();
        Ok(())
    }

    fn tell_written(&mut self) {
        if is_listening() {
            let axes = self.named().as_slice().iter().chain(self.positional().as_slice());
            let axes: SmallVec<[Axis; 8]> = axes.copied().collect();
            tell_places(self.elements().0, axes);
        }
    }
}

/// Returns an error if a positional axis of the target would have to be broadcast.
fn check_broadcast(positional: &[Axis], shape: &Shape) -> Result<(), DimError> {
    for (at, axis) in positional.iter().enumerate() {
        let size = shape.sizes()[shape.named_len() + at];
        if axis.size != size {
            let axis_from_right = positional.len() - 1 - at;
            return Err(DimError::Broadcast { axis: axis_from_right, first: axis.size, second: size });
        }
    }
    Ok(())
}

/// Notes a pass over existing memory. Computed positions are written one after the other, on one
/// thread.
#[track_caller]
pub(crate) fn note_update<T>(nest: &Nest, scatters: bool, expression: impl FnOnce() -> String) {
    note(|| {
        let len = nest.positions();
        let threads = if scatters { 1 } else { threads::parts(len) };
        PlanStep::Elementwise { expression: expression(), loops: Loops::new::<T>(nest, len, threads) }
    });
}

// The bounds are written on the line that has the name, because rustc quotes that line.
macro_rules! assignments {
    ($($(#[$doc:meta])* $name:ident $try_name:ident $op:expr, [$($bounds:tt)*];)*) => {
        impl<T: Element, S: Dims, R: Rank, X: IndexExprs> Place<'_, T, S, R, X> {$(
            $(#[$doc])*
            #[panicking_twin(but = "size mismatches are errors. After an error, some elements may already be assigned")]
            pub fn $try_name<B: Operand<T, Expr: Expr<Elem = T>>>(mut self, value: B) -> Result<(), DimError>
            where
                $($bounds)*
            {
                self.update(value, $op, stringify!($name))
            }
        )*}
    };
}

assignments! {
    /// Replaces the elements with those of `value`. If a position repeats, the last value is kept.
    assign try_assign Replace, [T: Element, S: Covers<B::Dims>, R: CoversAxes<B::Rank>];
    /// Adds `value` to the elements. If a position repeats, all values are added.
    add_assign try_add_assign ops::Add, [T: Num, S: Covers<B::Dims>, R: CoversAxes<B::Rank>];
    /// Subtracts `value` from the elements.
    sub_assign try_sub_assign ops::Sub, [T: Num, S: Covers<B::Dims>, R: CoversAxes<B::Rank>];
    /// Multiplies the elements by `value`.
    mul_assign try_mul_assign ops::Mul, [T: Num, S: Covers<B::Dims>, R: CoversAxes<B::Rank>];
    /// Divides the elements by `value`.
    div_assign try_div_assign ops::Div, [T: Num, S: Covers<B::Dims>, R: CoversAxes<B::Rank>];
    /// Replaces each element with the larger of it and `value`.
    max_assign try_max_assign ops::Maximum, [T: Ordered, S: Covers<B::Dims>, R: CoversAxes<B::Rank>];
    /// Replaces each element with the smaller of it and `value`.
    min_assign try_min_assign ops::Minimum, [T: Ordered, S: Covers<B::Dims>, R: CoversAxes<B::Rank>];
}

/// Writes an expression into `places` with the axes `own` for the dims `S`. The types say that all
/// operands are stored in the same order. Returns whether the places were written; otherwise the
/// general path is needed.
#[track_caller]
pub(crate) fn fill_typed<S: Dims, E: Expr>(
    expr: &E,
    own: &[Axis],
    places: &mut [E::Elem],
    operands: usize,
) -> Result<bool, DimError> {
    let mut like = Some(own);
    if is_heard() || threads::parts(places.len()) > 1 || !expr.alike::<S, UnitStride>(&mut like, &mut 0) {
        return Ok(false);
    }
    line_into::<UnitStride, _>(expr, operands, places)?;
    Ok(true)
}

impl<T: Element, S: Dims, R: Rank> Named<T, S, R> {
    /// The tensor as a place to assign to.
    ///
    /// # Panics
    ///
    /// If a gradient or a recorded function traces the tensor, or if elements must be copied
    /// because they are shared, and the copy does not fit into memory.
    #[track_caller]
    pub fn as_place(&mut self) -> Place<'_, T, S, R> {
        Place::from(&mut self.expr)
    }

    /// Replaces the elements with those of `value`, which is broadcast along the dims that it
    /// lacks.
    ///
    /// # Panics
    ///
    /// If sizes conflict, an index of `value` is out of range, or a gradient is taken through the
    /// tensor or `value`.
    #[track_caller]
    pub fn assign<B: Operand<T, Expr: Expr<Elem = T>>>(&mut self, value: B)
    where
        S: Covers<B::Dims>,
        R: CoversAxes<B::Rank>,
    {
        unwrap(self.update(value, Replace, "assign"));
    }

    /// Runs `tensor = op(tensor, value)` in the memory of the tensor. If the tensor or the value is
    /// recorded, the tensor gets new memory instead, because programs cannot write to existing
    /// memory.
    #[track_caller]
    fn update<B, O>(&mut self, value: B, op: O, name: &'static str) -> Result<(), DimError>
    where
        B: Operand<T, Expr: Expr<Elem = T>>,
        O: BinaryOp<T, T, Out = T> + Copy,
    {
        let value = value.into_expr();
        if is_heard() && (is_recorded(self.expr.buffer()) || reads_recorded(&value)) {
            return self.renew(&value, op.code(), name);
        }
        let order = const { &AxisList::range(0, S::Axes::LEN + R::N) }.as_slice();
        self.as_place().update_in(order, value, op, Some(name))
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn renew<E: Expr<Elem = T>>(
        &mut self,
        value: &E,
        code: Code,
        name: &'static str,
    ) -> Result<(), DimError> {
        let (named, positional) = (self.expr.named(), self.expr.positional().as_slice());
        let mut shape = Shape::new::<S, R>();
        unify_axes::<S, S>(named, positional, self.expr.origin(), &mut shape)?;
        value.unify::<S, R>(&mut shape)?;
        shape.finish()?;
        check_broadcast(positional, &shape)?;
        let mut rows = Rows::new(shape.sizes().len());
        axes_row::<S, S>(named, positional, rows.push());
        value.rows::<S, R>(&shape, &mut rows);
        let mut order = self.expr.order_in_memory();
        if !self.expr.is_contiguous(&order) {
            order = AxisList::in_memory_of::<S, R>().as_slice().into();
        }
        let new = renewed(&self.expr, value, (code, name), (shape.sizes(), &rows, &order))?;
        self.expr = Evaluated::in_order(new, &order, &shape.sizes_in(&order)).with_origin(self.expr.origin());
        Ok(())
    }
}

/// Adds `other` to `tensor`, which has all dims of `other`. If no memory is traced, the sum is
/// written into the memory of `tensor`.
#[track_caller]
pub(crate) fn added_in_place<T: Num, S: Dims, X: Dims>(
    mut tensor: Named<T, S>,
    other: &Named<T, X>,
) -> Result<Named<T, S>, DimError> {
    if !is_heard() {
        tensor.as_place().update(other, ops::Add, "add_assign")?;
        return Ok(tensor);
    }
    let sum = Binary { op: ops::Add, a: tensor.expr, b: &other.expr };
    let mut shape = Shape::new::<S, Rank0>();
    sum.unify::<S, Rank0>(&mut shape)?;
    shape.finish()?;
    Ok(Named::from_expr(evaluate_tensor::<S, Rank0, _>(sum, &shape)?))
}

macro_rules! assign_operators {
    ($($trait:ident $method:ident $op:ident [$bound:ident];)*) => {$(
        impl<T: $bound, S: Dims, R: Rank, B: Operand<T, Expr: Expr<Elem = T>>> core::ops::$trait<B> for Named<T, S, R, Evaluated<T, S, R>>
        where
            S: Covers<B::Dims>,
            R: CoversAxes<B::Rank>,
        {
            #[track_caller]
            fn $method(&mut self, value: B) {
                unwrap(self.update(value, ops::$op, stringify!($method)));
            }
        }
    )*};
}

assign_operators! {
    AddAssign add_assign Add [Num];
    SubAssign sub_assign Sub [Num];
    MulAssign mul_assign Mul [Num];
    DivAssign div_assign Div [Num];
    RemAssign rem_assign Rem [Ordered];
}

/// The condition that no dims are left over: an order names every dim.
#[diagnostic::on_unimplemented(
    message = "the dims `{Self}` are left over",
    label = "name them here, or reduce them first, for example with `.sum(..)`"
)]
pub trait NoneLeft: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl NoneLeft for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
