//! Clipping and accumulating gradients, and averages of parameters.

use super::by_path::ByPath;
#[cfg(feature = "std")]
use super::scalars::formula_by_tensors;
use super::scalars::{StepScalars, StepsTaken, by_tensors, one};
use super::settings::{limit, up_to_1};
use super::state_tensor::lying_otherwise;
use super::unchanged::Unchanged;
use super::update::{Copied, ElementStep, UpdateNames, WithScalars, compiled, outside, update};
use crate::error::{DimError, unwrap};
use crate::expr::step::check_taken;
#[cfg(feature = "std")]
use crate::expr::step::{is_heard, is_recorded};
use crate::grad::Parameters;
use crate::grad::parameters::{Path, Visitor, Walk, is_learned};
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::Dims;
#[cfg(feature = "std")]
use alloc::{sync::Arc, vec::Vec};
use kernels::map::formula::{Formula, Quantity};
use kernels::map::in_place::{slice_as, squares};
use kernels::scalar::Element;
#[cfg(feature = "std")]
use kernels::trace::{Held, sum_of_squares};
use twins::panicking_twin;

/// The norm of all learned tensors together: the square root of the sum of the squares of their
/// elements, computed in `f64`. For a number, write `global_norm(&gradient).order(())`.
///
/// # Panics
///
/// If a copy of a tensor whose elements are not contiguous does not fit into memory, or if a
/// gradient is being taken through the tensors.
#[panicking_twin(but = "returns an error where that panics")]
pub fn try_global_norm<P: Parameters>(of: &P) -> Result<Named<f64, ()>, DimError> {
    #[cfg(feature = "std")]
    if let Some(norm) = recorded_norm(of)? {
        return Ok(norm);
    }
    norm_of(of, "global_norm").map(one)
}

/// `operation` is the name for errors.
fn norm_of<P: Parameters>(of: &P, operation: &'static str) -> Result<f64, DimError> {
    let mut squares = SquaredNorm { sum: 0.0, operation };
    P::visit([], [of], &mut Path::new(), &mut squares)?;
    Ok(Quantity::sqrt(squares.sum))
}

/// Multiplies the gradient by `min(1, most / norm)`, where `norm` is its [`global_norm`], and
/// returns `norm`.
///
/// If the norm is infinite or NaN, all elements become NaN or 0, so check the returned norm before
/// the step. If `most` and the norm are infinite, nothing is changed.
///
/// ```
/// use typed_dims::optim::clip_by_global_norm;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let mut gradient = (full::<f32, _>(Feature.of(9), 1.0), full::<f32, _>((), 4.0));
/// let norm: Tensor<f64, ()> = clip_by_global_norm(&mut gradient, 1.0);
/// assert_eq!(norm.order(()), 5.0);
/// assert!((gradient.1.order(()) - 0.8).abs() < 1e-6);
/// ```
///
/// # Panics
///
/// As for [`global_norm`], and if `most` is negative or NaN.
#[panicking_twin(but = "returns an error where that panics, and then changes nothing")]
pub fn try_clip_by_global_norm<P: Parameters>(
    gradient: &mut P,
    most: f64,
) -> Result<Named<f64, ()>, DimError> {
    limit("clip_by_global_norm", most)?;
    #[cfg(feature = "std")]
    if let Some(norm) = recorded_norm(gradient)? {
        let factor = formula_by_tensors([&norm], |[norm]| [factor_within(norm, most)]);
        let mut scale = WithScalars(Scale, StepScalars::Tensors(factor));
        update(&mut scale, gradient, [], alone("clip_by_global_norm"), None, &Unchanged::default())?;
        return Ok(norm);
    }
    let norm = norm_of(gradient, "clip_by_global_norm").map_err(outside)?;
    let factor = factor_within(norm, most);
    // A product with 1 is the same number.
    if factor != 1.0 {
        let mut scale = WithScalars(Scale, StepScalars::Numbers([factor]));
        update(&mut scale, gradient, [], alone("clip_by_global_norm"), None, &Unchanged::default())?;
    }
    Ok(one(norm))
}

/// The factor that limits a norm to `most`. NaN does not count as a small norm.
fn factor_within<Q: Quantity>(norm: Q, most: f64) -> Q {
    let most = norm.constant(most);
    Q::choose(norm.is_at_most(most), norm.constant(1.0), most / norm)
}

/// Limits each element of the gradient to `-most ..= most`. NaN is unchanged.
///
/// # Panics
///
/// As for [`global_norm`], and if `most` is negative or NaN.
#[panicking_twin(but = "returns an error where that panics, and then changes nothing")]
pub fn try_clip_by_value<P: Parameters>(gradient: &mut P, most: f64) -> Result<(), DimError> {
    limit("clip_by_value", most)?;
    let mut limited = WithScalars(Limit(most), StepScalars::Numbers([]));
    update(&mut limited, gradient, [], alone("clip_by_value"), None, &Unchanged::default())
}

/// Changes a value by a formula, with tensors of half precision kept in `f32`.
fn summed<P: Parameters, const K: usize, const N: usize>(
    value: &mut P,
    exact: &mut ByPath,
    read: [&P; N],
    names: UpdateNames,
    step: &mut dyn ElementStep<K, 1, N>,
) -> Result<(), DimError> {
    update(step, value, read, names, Some((exact, None)), &Unchanged::default())
}

/// The `UpdateNames` of an operation that does not compare its value with another one.
fn alone(operation: &'static str) -> UpdateNames {
    (operation, ["the value", "another"])
}

/// The mean of the gradients of several batches, for one step. Gradients in half precision are
/// summed in `f32`, and the mean is rounded.
///
/// ```
/// use typed_dims::optim::Accumulator;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let mut gradients = Accumulator::new();
/// for value in [1.0, 2.0, 6.0] {
///     gradients.add(full::<f32, _>(Feature.of(2), value));
/// }
/// assert_eq!(gradients.count(), 3);
/// let mean = gradients.take().expect("there were three");
/// assert_eq!(mean.order(Feature), ndarray::array![3.0, 3.0]);
/// assert!(gradients.take().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Accumulator<P> {
    pub(super) sum: Option<P>,
    /// The sums of gradients in half precision.
    pub(super) exact: ByPath,
    pub(super) count: StepsTaken,
}

impl<P> Default for Accumulator<P> {
    fn default() -> Self {
        Accumulator { sum: None, exact: ByPath::of_masters(), count: StepsTaken::default() }
    }
}

impl<P: Parameters> Accumulator<P> {
    /// An accumulator without gradients.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of gradients added since the last [`take`](Accumulator::take).
    ///
    /// # Panics
    ///
    /// If the number depends on inputs of a recorded function.
    #[track_caller]
    pub fn count(&self) -> u64 {
        self.count
            .read_by("count", "it returns a number; count the gradients outside of the recorded function")
    }

    /// Adds a gradient.
    ///
    /// # Panics
    ///
    /// If the gradient differs from the earlier gradients in the length of a `Vec`, in whether an
    /// `Option` is `None`, or in the size of an axis; if there are earlier gradients, and an outer
    /// gradient is being taken through this one or through their sum; or if a copy of elements does
    /// not fit into memory.
    #[panicking_twin(
        but = "a mistake in the new gradient and a traced tensor are errors, and leave the sum unchanged"
    )]
    pub fn try_add(&mut self, gradient: P) -> Result<(), DimError> {
        match &mut self.sum {
            Some(sum) => summed(
                sum,
                &mut self.exact,
                [&gradient],
                ("Accumulator::add", ["the sum so far", "the new gradient"]),
                &mut WithScalars(GradientSum, StepScalars::Numbers([])),
            )?,
            None => self.sum = Some(gradient),
        }
        self.count.add_one();
        Ok(())
    }

    /// Returns the mean of the gradients, or `None` if no gradient was added, and resets the
    /// accumulator.
    ///
    /// # Panics
    ///
    /// If a gradient is being taken through the sum, even if it is that of one gradient, or if a
    /// copy of a tensor whose elements are not contiguous does not fit into memory.
    #[track_caller]
    pub fn take(&mut self) -> Option<P> {
        let sum = self.sum.as_mut()?;
        let share = if self.count.is_recorded() {
            StepScalars::Tensors([by_tensors(self.count.tensor(), |count| share_of(count))])
        } else {
            StepScalars::Numbers([share_of(self.count.get() as f64)])
        };
        let names = alone("Accumulator::take");
        unwrap(summed(sum, &mut self.exact, [], names, &mut WithScalars(Scale, share)));
        core::mem::take(self).sum
    }
}

/// The exponential moving average of parameters: `average = decay * average + (1 - decay) * p` at
/// each update. The first update sets the average to the parameters. The average of parameters in
/// half precision is kept in `f32`, and returned rounded. Everything that is not learned is copied
/// at each update: fields with `#[parameters(state)]` or `#[parameters(constant)]`, and tensors
/// whose elements are not floats.
///
/// ```
/// use typed_dims::optim::Average;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let mut average = Average::new(0.75);
/// average.update(&full::<f32, _>(Feature.of(2), 4.0));
/// average.update(&full::<f32, _>(Feature.of(2), 8.0));
/// assert_eq!(average.value().expect("two updates").view().order(Feature)[0], 5.0);
/// ```
#[derive(Clone, Debug)]
pub struct Average<P> {
    pub(super) decay: f64,
    pub(super) value: Option<P>,
    /// The averages of parameters in half precision.
    pub(super) exact: ByPath,
}

impl<P: Parameters> Average<P> {
    /// An average with this `decay`, from 0 to 1.
    pub fn new(decay: f64) -> Self {
        Average { decay, value: None, exact: ByPath::of_masters() }
    }

    /// Updates the average with parameters.
    ///
    /// # Panics
    ///
    /// If the parameters differ from the earlier ones in the length of a `Vec`, in whether an
    /// `Option` is `None`, or in the size of an axis; if the decay is not between 0 and 1; if a
    /// gradient is being taken through the parameters or the average, except in the first update;
    /// or if a copy of elements does not fit into memory.
    #[panicking_twin(
        but = "differences, an invalid decay and traced tensors are errors, which leave the average unchanged"
    )]
    pub fn try_update(&mut self, parameters: &P) -> Result<(), DimError> {
        up_to_1("Average", "decay", self.decay)?;
        match &mut self.value {
            Some(value) => {
                summed(
                    value,
                    &mut self.exact,
                    [parameters],
                    ("Average::update", ["the average", "the parameters"]),
                    &mut WithScalars(Blend::of_decay(self.decay), StepScalars::Numbers([])),
                )?;
                *value = P::walk([parameters, &*value], &mut Path::new(), &mut WithNewState)?;
                Ok(())
            }
            None => {
                // A copy, not a clone: a clone would share the memory, so the next step would have
                // to copy the parameters.
                self.value = Some(P::walk([parameters], &mut Path::new(), &mut Copied)?);
                Ok(())
            }
        }
    }

    /// The average; `None` before the first update.
    pub fn value(&self) -> Option<&P> {
        self.value.as_ref()
    }

    /// The average; `None` before the first update.
    pub fn into_value(self) -> Option<P> {
        self.value
    }
}

/// The learned tensors of the second value, with everything else from the first.
struct WithNewState;

impl Walk<2> for WithNewState {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [new, average]: [&Named<T, S, R>; 2],
    ) -> Result<Named<T, S, R>, DimError> {
        Ok(if is_learned::<T>() { average.clone() } else { new.clone() })
    }
}

/// The weight of each of `count` gradients in their mean.
fn share_of<Q: Quantity>(count: Q) -> Q {
    count.constant(1.0) / count
}

compiled! { Scale: 1 1 0; Limit: 0 1 0; GradientSum: 0 1 1; Blend: 0 1 1; }

struct Scale;

impl Formula<1, 1, 0> for Scale {
    const NAME: &'static str = "scale";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [factor]: [Q; 1], [a]: [Q; 1], []: [Q; 0]) -> [Q; 1] {
        [a * factor]
    }
}

struct Limit(f64);

impl Formula<0, 1, 0> for Limit {
    const NAME: &'static str = "limit";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, []: [Q; 0], [a]: [Q; 1], []: [Q; 0]) -> [Q; 1] {
        let most = a.constant(self.0);
        // Comparisons with NaN are false, so NaN is unchanged.
        let at_least = Q::choose(a.is_less(-most), -most, a);
        [Q::choose(most.is_less(a), most, at_least)]
    }
}

struct GradientSum;

impl Formula<0, 1, 1> for GradientSum {
    const NAME: &'static str = "sum of gradients";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, []: [Q; 0], [a]: [Q; 1], [b]: [Q; 1]) -> [Q; 1] {
        [a + b]
    }
}

/// `kept * a + taken * b`, where `kept + taken` is 1. Both factors are given, because computing one
/// from the other would round. Unlike `a + (b - a) * taken`, it is exactly `b` for a `taken` of 1
/// and finite `a`.
struct Blend {
    kept: f64,
    taken: f64,
}

impl Blend {
    fn of_decay(decay: f64) -> Self {
        Blend { kept: decay, taken: 1.0 - decay }
    }
}

impl Formula<0, 1, 1> for Blend {
    const NAME: &'static str = "average";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, []: [Q; 0], [a]: [Q; 1], [b]: [Q; 1]) -> [Q; 1] {
        [a.constant(self.kept) * a + a.constant(self.taken) * b]
    }
}

/// In-place changes of learned tensors, for layers.
#[doc(hidden)]
pub mod in_place {
    use super::{Blend, Scale, alone};
    use crate::error::unwrap;
    use crate::grad::Parameters;
    use crate::training::optim::scalars::StepScalars;
    use crate::training::optim::unchanged::Unchanged;
    use crate::training::optim::update::{WithScalars, update};

    /// `value = (1 - part) * value + part * to` for each element. Panics if sizes differ, or if a
    /// gradient is being taken through one of the values. `operation` is the name for this message.
    #[track_caller]
    pub fn approach<P: Parameters>(value: &mut P, to: &P, part: f64, operation: &'static str) {
        let blend = Blend { kept: 1.0 - part, taken: part };
        let mut step = WithScalars(blend, StepScalars::Numbers([]));
        let names = (operation, ["the value", "the value to approach"]);
        unwrap(update(&mut step, value, [to], names, None, &Unchanged::default()));
    }

    /// Multiplies each element by a factor. Panics if a gradient is being taken through the value.
    /// `operation` is the name for this message.
    #[track_caller]
    pub fn scale<P: Parameters>(value: &mut P, factor: f64, operation: &'static str) {
        let mut step = WithScalars(Scale, StepScalars::Numbers([factor]));
        unwrap(update(&mut step, value, [], alone(operation), None, &Unchanged::default()));
    }
}

/// Computations of this module as programs.
#[doc(hidden)]
pub mod programs {
    use super::{Blend, GradientSum, Limit, Scale, factor_within, share_of};
    use crate::training::optim::update::Compiled;
    use kernels::map::formula::{Quantity, UpdateProgram};
    use kernels::program::code::DType;

    /// The norm of a gradient from the sum of the squares of its elements, and the factor that
    /// limits the norm to `most`.
    pub fn norm_and_factor(most: f64) -> UpdateProgram {
        UpdateProgram::of_scalars("norm and factor", |[squares]| {
            let norm = squares.sqrt();
            [norm, factor_within(norm, most)]
        })
    }

    /// The weight of each gradient in the mean, from the number of gradients.
    pub fn share() -> UpdateProgram {
        UpdateProgram::of_scalars("share", |[count]| [share_of(count)])
    }

    /// Multiplication by a factor, for clipping and means of gradients.
    pub fn scale(elements: DType) -> UpdateProgram {
        Scale.passes().program(elements)
    }

    /// The formula of [`clip_by_value`](crate::training::optim::clip_by_value).
    pub fn limit(most: f64, elements: DType) -> UpdateProgram {
        Limit(most).passes().program(elements)
    }

    /// The sum of an [`Accumulator`](crate::training::optim::Accumulator) after another gradient.
    pub fn sum(elements: DType) -> UpdateProgram {
        GradientSum.passes().program(elements)
    }

    /// The update of an [`Average`](crate::training::optim::Average).
    pub fn average(decay: f64, elements: DType) -> UpdateProgram {
        Blend::of_decay(decay).passes().program(elements)
    }
}

/// The sum of the squares of all learned elements.
struct SquaredNorm {
    sum: f64,
    operation: &'static str,
}

impl Visitor<0, 1> for SquaredNorm {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        _: [&mut Named<T, S, R>; 0],
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<(), DimError> {
        if !is_learned::<T>() {
            return Ok(());
        }
        let copy = lying_otherwise(tensor, &tensor.expr.order_in_memory())?;
        let elements = copy.as_ref().unwrap_or(tensor).expr.all();
        check_taken(elements, self.operation)?;
        let mut sum = slice_as::<T, f32>(elements).map(squares);
        sum = sum.or_else(|| slice_as::<T, f64>(elements).map(squares));
        #[cfg(feature = "half")]
        {
            sum = sum.or_else(|| slice_as::<T, half::f16>(elements).map(squares));
            sum = sum.or_else(|| slice_as::<T, half::bf16>(elements).map(squares));
        }
        self.sum += sum.take().expect("a float is one of these types");
        Ok(())
    }
}

/// The memory of all learned tensors, and whether any of it depends on inputs of a recorded
/// function.
#[cfg(feature = "std")]
#[derive(Default)]
struct Memories(Vec<Arc<dyn Held>>, bool);

#[cfg(feature = "std")]
impl Visitor<0, 1> for Memories {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        _: [&mut Named<T, S, R>; 0],
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<(), DimError> {
        if is_learned::<T>() {
            let copy = lying_otherwise(tensor, &tensor.expr.order_in_memory())?;
            let buffer = copy.as_ref().unwrap_or(tensor).expr.buffer();
            self.1 |= is_recorded(buffer);
            self.0.push(buffer.held());
        }
        Ok(())
    }
}

/// The norm as the result of recorded operations, if a tensor depends on inputs of a recorded
/// function.
#[cfg(feature = "std")]
fn recorded_norm<P: Parameters>(of: &P) -> Result<Option<Named<f64, ()>>, DimError> {
    if !is_heard() {
        return Ok(None);
    }
    let mut memories = Memories::default();
    P::visit([], [of], &mut Path::new(), &mut memories)?;
    if !memories.1 {
        return Ok(None);
    }
    let squares = sum_of_squares(&memories.0, None)?;
    let squares = Named::<f64, ()>::from_expr(one(0.0).expr.with_buffer(squares));
    let [norm] = formula_by_tensors([&squares], |[squares]| [squares.sqrt()]);
    Ok(Some(norm))
}
