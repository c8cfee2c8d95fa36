//! The scalars of an optimizer step as tensors without dims: counts, norms, rates.

#[cfg(feature = "std")]
use crate::error::fail;
use crate::execute::reduce::Reductions;
use crate::expr::step::is_recorded;
#[cfg(feature = "std")]
use crate::expr::step::unrecordable;
use crate::operators::elementwise::{Elementwise, select};
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::types::rank::Rank0;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::{Add, Div, Mul, Neg, Sub};
use kernels::map::formula::Quantity;
use kernels::scalar::Element;
#[cfg(feature = "std")]
use kernels::trace::Held;

pub(super) fn one<T: Element>(value: T) -> Named<T, ()> {
    Named::from_expr(Evaluated::<T, (), Rank0>::in_order(vec![value], &[], &[]).with_origin(None))
}

#[derive(Clone, Debug)]
pub(crate) struct StepsTaken(Named<u64, ()>);

impl Default for StepsTaken {
    fn default() -> Self {
        StepsTaken::new(0)
    }
}

impl StepsTaken {
    pub(super) fn new(steps: u64) -> Self {
        StepsTaken(one(steps))
    }

    pub(super) fn tensor(&self) -> &Named<u64, ()> {
        &self.0
    }

    pub(super) fn of(tensor: Named<u64, ()>) -> Self {
        StepsTaken(tensor)
    }

    pub(super) fn tensor_mut(&mut self) -> &mut Named<u64, ()> {
        &mut self.0
    }

    /// Whether the count depends on inputs of a recorded function.
    pub(super) fn is_recorded(&self) -> bool {
        is_recorded(self.0.expr.buffer())
    }

    /// The count as a number.
    ///
    /// # Panics
    ///
    /// If the count is recorded.
    #[track_caller]
    pub(super) fn get(&self) -> u64 {
        self.read_by(
            "steps",
            "it returns a number; `optimizer.state().step_count()` is the count as a tensor",
        )
    }

    /// Like [`get`](StepsTaken::get), but the message names `method` as the method that the user
    /// called. `why` says why this method cannot be recorded, and what to write instead.
    #[track_caller]
    pub(super) fn read_by(&self, method: &'static str, why: &'static str) -> u64 {
        #[cfg(feature = "std")]
        if self.is_recorded() {
            fail(&unrecordable(method, why));
        }
        let _ = (method, why);
        self.0.expr.all()[0]
    }

    /// Adds 1 to the count, which saturates unless it is recorded.
    pub(super) fn add_one(&mut self) {
        if self.is_recorded() {
            self.0 = (&self.0 + 1).eval();
            return;
        }
        let count = &mut self.0.expr.all_mut()[0];
        *count = count.saturating_add(1);
    }
}

#[derive(Clone)]
pub(super) enum StepScalars<const K: usize> {
    Numbers([f64; K]),
    /// Numbers that depend on inputs of a recorded function.
    Tensors([Named<f64, ()>; K]),
}

impl<const K: usize> StepScalars<K> {
    pub(super) fn tensors(self) -> [Named<f64, ()>; K] {
        match self {
            StepScalars::Numbers(numbers) => numbers.map(one),
            StepScalars::Tensors(tensors) => tensors,
        }
    }

    #[cfg(feature = "std")]
    pub(super) fn held(&self) -> [Arc<dyn Held>; K] {
        self.clone().tensors().map(|tensor| tensor.expr.buffer().held())
    }
}

/// Computes a formula of scalars with tensor operations.
pub(super) fn formula_by_tensors<const I: usize, const K: usize>(
    inputs: [&Named<f64, ()>; I],
    formula: impl for<'t> FnOnce([TensorQuantity<'t>; I]) -> [TensorQuantity<'t>; K],
) -> [Named<f64, ()>; K] {
    let all = QuantityTensors::default();
    formula(inputs.map(|input| all.add(input.clone()))).map(TensorQuantity::tensor)
}

/// Like [`formula_by_tensors`], with two groups of scalars.
pub(super) fn formula_of_two_by_tensors<const I: usize, const J: usize, const K: usize>(
    one: &[Named<f64, ()>; I],
    other: &[Named<f64, ()>; J],
    formula: impl for<'t> FnOnce([TensorQuantity<'t>; I], [TensorQuantity<'t>; J]) -> [TensorQuantity<'t>; K],
) -> [Named<f64, ()>; K] {
    let all = QuantityTensors::default();
    let (one, other) = (one.clone().map(|input| all.add(input)), other.clone().map(|input| all.add(input)));
    formula(one, other).map(TensorQuantity::tensor)
}

/// Computes a formula of one integer with tensor operations.
pub(super) fn by_tensors(
    number: &Named<u64, ()>,
    formula: impl for<'t> FnOnce(TensorQuantity<'t>) -> TensorQuantity<'t>,
) -> Named<f64, ()> {
    let [result] = formula_by_tensors([&number.cast::<f64>().eval()], |[number]| [formula(number)]);
    result
}

/// Like [`by_tensors`], for a learning rate instead of an integer.
pub(super) fn by_rate(
    rate: &Named<f64, ()>,
    formula: impl for<'t> FnOnce(TensorQuantity<'t>) -> TensorQuantity<'t>,
) -> Named<f64, ()> {
    let [result] = formula_by_tensors([rate], |[rate]| [formula(rate)]);
    result
}

/// The inputs, constants and results of a formula, as tensors. A [`Quantity`] must be `Copy`, so a
/// `TensorQuantity` has the position of its tensor instead of the tensor.
#[derive(Default)]
pub(super) struct QuantityTensors {
    numbers: RefCell<Vec<Named<f64, ()>>>,
    truths: RefCell<Vec<Named<bool, ()>>>,
}

impl QuantityTensors {
    fn add(&self, tensor: Named<f64, ()>) -> TensorQuantity<'_> {
        let mut numbers = self.numbers.borrow_mut();
        numbers.push(tensor);
        TensorQuantity { all: self, at: numbers.len() - 1 }
    }

    fn add_truth(&self, tensor: Named<bool, ()>) -> TensorTruth<'_> {
        let mut truths = self.truths.borrow_mut();
        truths.push(tensor);
        TensorTruth { all: self, at: truths.len() - 1 }
    }
}

#[derive(Clone, Copy)]
pub(super) struct TensorQuantity<'t> {
    all: &'t QuantityTensors,
    at: usize,
}

#[derive(Clone, Copy)]
pub(super) struct TensorTruth<'t> {
    all: &'t QuantityTensors,
    at: usize,
}

impl TensorQuantity<'_> {
    fn tensor(self) -> Named<f64, ()> {
        self.all.numbers.borrow()[self.at].clone()
    }
}

macro_rules! operators {
    ($($op:ident $method:ident $symbol:tt;)*) => {$(
        impl $op for TensorQuantity<'_> {
            type Output = Self;

            fn $method(self, other: Self) -> Self {
                self.all.add((self.tensor() $symbol other.tensor()).eval())
            }
        }
    )*};
}

operators! { Add add +; Sub sub -; Mul mul *; Div div /; }

impl Neg for TensorQuantity<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.all.add((-self.tensor()).eval())
    }
}

impl<'t> Quantity for TensorQuantity<'t> {
    type Truth = TensorTruth<'t>;

    fn constant(self, value: f64) -> Self {
        self.all.add(one(value))
    }

    fn sqrt(self) -> Self {
        self.all.add(self.tensor().sqrt().eval())
    }

    fn cos(self) -> Self {
        self.all.add(self.tensor().cos().eval())
    }

    fn ln(self) -> Self {
        self.all.add(self.tensor().ln().eval())
    }

    fn floor(self) -> Self {
        self.all.add(self.tensor().floor().eval())
    }

    fn powf(self, exponent: Self) -> Self {
        self.all.add(self.tensor().powf(exponent.tensor()).eval())
    }

    fn is_less(self, other: Self) -> TensorTruth<'t> {
        self.all.add_truth(self.tensor().lt(other.tensor()).eval())
    }

    fn is_at_most(self, other: Self) -> TensorTruth<'t> {
        self.all.add_truth(self.tensor().le(other.tensor()).eval())
    }

    fn choose(is: TensorTruth<'t>, a: Self, b: Self) -> Self {
        let is = is.all.truths.borrow()[is.at].clone();
        a.all.add(select(is, a.tensor(), b.tensor()).eval())
    }
}
