//! [`explain`]: the steps that a piece of code runs.

use crate::error::{Origin, StepSuffix};
#[cfg(feature = "std")]
use crate::types::set::DimKey;
use crate::types::set::Keys;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use kernels::loops::steps::total;
pub use kernels::loops::steps::{Loops, PlanStep, ProductDims};
#[cfg(feature = "std")]
use kernels::trace::NodeAxis;

pub(crate) fn names(keys: &Keys) -> Vec<&'static str> {
    keys.as_slice().iter().map(|key| key.name).collect()
}

/// The name of a loop axis: the dim's name, or `..` for a positional axis. (Positional axes come
/// after the dims.)
pub(crate) fn name(keys: &Keys, axis: usize) -> &'static str {
    keys.as_slice().get(axis).map_or("..", |key| key.name)
}

/// The names of loop axes, for plans.
pub(crate) fn names_of(keys: &Keys, axes: &[usize]) -> Vec<&'static str> {
    axes.iter().map(|&axis| name(keys, axis)).collect()
}

/// A loop axis with a size, as an axis of a recorded step.
#[cfg(feature = "std")]
pub(crate) fn node_axis(keys: &[DimKey], axis: usize, size: usize) -> NodeAxis {
    let key = keys.get(axis);
    NodeAxis { name: key.map_or("..", |key| key.name), id: key.map(|key| key.id), size }
}

/// The steps of a piece of code, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<PlanStep>,
    /// For each step, its source location, if known. For a step of a gradient, this is the location
    /// of the step that it differentiates.
    pub places: Vec<Origin>,
    /// For each step, whether it computes a gradient.
    pub backward: Vec<bool>,
}

impl Plan {
    /// The size in bytes of all results, including intermediate ones and packed operands.
    pub fn bytes(&self) -> usize {
        self.steps.iter().map(PlanStep::bytes).sum()
    }

    /// The suffix of a printed step that shows its source location.
    pub(crate) fn place(&self, step: usize) -> StepSuffix {
        let is_backward = self.backward.get(step).copied().unwrap_or(false);
        StepSuffix { place: self.places.get(step).copied().flatten(), is_backward }
    }

    /// The number of multiplications and additions in all matrix products, including those of
    /// attention, at most [`usize::MAX`].
    pub fn flops(&self) -> usize {
        total(&self.steps)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            // The location goes after the first line of the step.
            let text = step.to_string();
            let (first, others) = text.split_once('\n').unwrap_or((&text, ""));
            writeln!(f, "{}. {first}{}", at + 1, self.place(at))?;
            if !others.is_empty() {
                writeln!(f, "{others}")?;
            }
        }
        write!(f, "{} bytes written, {} flops in products", self.bytes(), self.flops())
    }
}

/// Runs `f` and returns its result with the steps of all tensor operations that it ran on this
/// thread.
///
/// ```
/// use typed_dims::prelude::*;
///
/// let (a, b) = (ndarray::Array2::<f32>::ones((8, 16)), ndarray::Array2::<f32>::ones((16, 32)));
/// dims!(i, j, k);
/// let (c, plan) = explain(|| (a.at((i, k)) * b.at((k, j))).sum(k));
/// assert_eq!(c.order((i, j))[[0, 0]], 16.0);
/// assert!(plan.to_string().starts_with("1. (i, k) x (k, j) -> (i, j): 8 x 16 x 32"));
/// assert_eq!((plan.bytes(), plan.flops()), (8 * 32 * 4, 2 * 8 * 16 * 32));
/// ```
///
/// A product shows the dims of both operands and of the result, then the number of rows, of terms
/// in each sum, and of columns. The first line of a step ends with the source location of the
/// operation. (It is unknown where tensors are printed or compared with `==`.) Steps of a
/// [gradient](crate::grad) are marked as such and name the location of the step that they
/// differentiate:
///
/// ```
/// use typed_dims::grad::grad;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct Example; pub struct In; pub struct Out; }
/// let (x, w) = (ones::<f32, _>((Example.of(32), In.of(16))), ones((In.of(16), Out.of(8))));
/// let (_, plan) = explain(|| grad(|w| (&x * w).sum(In).square().sum((Example, Out)), &w));
/// assert_eq!(plan.backward.first(), Some(&false));
/// assert_eq!(plan.backward.last(), Some(&true)); // the product of `x` and the cotangent
/// ```
///
/// Calls can be nested: the outer call also sees the steps of the inner one. Like other
/// [modes](crate::mode), this needs the feature `std`.
#[cfg(feature = "std")]
pub fn explain<T>(f: impl FnOnce() -> T) -> (T, Plan) {
    let mut plan = Plan::default();
    let result = crate::mode::with(&mut plan, f);
    (result, plan)
}

/// Records the plan. The steps of calls in a loop are part of the loop's step.
#[cfg(feature = "std")]
impl crate::mode::Mode for Plan {
    fn ran(&mut self, ran: &crate::mode::Ran<'_>) {
        if ran.loops == 0 {
            self.steps.push(ran.step.clone());
            self.places.push(ran.place);
            self.backward.push(ran.is_backward);
        }
    }
}
