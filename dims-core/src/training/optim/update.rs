//! Applies a formula to the tensors of several values, and changes the tensors of the first value
//! in place.

use super::by_path::{ByPath, MomentLayout, ParameterState, StateWalk};
use super::groups::{GroupSettings, is_in, listed};
use super::scalars::{StepScalars, StepsTaken};
use super::state_tensor::{StateElem, StateTensor, lying_otherwise};
use super::unchanged::{FreezeCall, Unchanged};
use crate::error::{DimError, OUTSIDE};
use crate::expr::evaluate::evaluate_tensor_in;
use crate::expr::step::{check_taken, is_heard, is_recorded};
use crate::grad::Parameters;
use crate::grad::parameters::{Mismatch, Path, Sides, Visitor, Walk, is_learned, same_sizes};
use crate::storage::evaluated::have_same_sizes;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use core::any::TypeId;
use core::array::from_fn;
use kernels::map::formula::{Quantity, UpdateProgram};
#[cfg(feature = "half")]
use kernels::map::in_place::apply_halves;
use kernels::map::in_place::{Passes, slice_as, slice_as_mut};
use kernels::memory::buffer::Buffer;
use kernels::program::code::DType;
use kernels::scalar::{Element, Real};
#[cfg(feature = "std")]
use kernels::trace::{UpdatedElements, updated};
use smallvec::SmallVec;

/// A formula whose [`Passes`] (loops over the elements) are compiled in this crate. Code that is
/// generic over the parameters is compiled in the user's crate, possibly without optimization.
pub(super) trait Compiled<const K: usize, const M: usize, const N: usize> {
    fn passes(&self) -> &dyn Passes<K, M, N>;
}

macro_rules! compiled {
    ($($formula:ty: $k:literal $m:literal $n:literal;)*) => {$(
        impl $crate::training::optim::update::Compiled<$k, $m, $n> for $formula {
            // Not inlined, so that the passes are not compiled again in users' crates.
            #[inline(never)]
            fn passes(&self) -> &dyn ::kernels::map::in_place::Passes<$k, $m, $n> {
                self
            }
        }
    )*};
}
pub(super) use compiled;

/// A formula, and its scalars for a step.
pub(super) trait ElementStep<const K: usize, const M: usize, const N: usize> {
    /// Called before each parameter that has state, with the settings of its groups.
    fn begin(&mut self, settings: &GroupSettings) {
        let _ = settings;
    }
    fn passes(&self) -> &dyn Passes<K, M, N>;
    /// The scalars for parameters that have missed this number of steps.
    fn scalars(&mut self, missed: Option<&StepsTaken>) -> StepScalars<K>;
    /// Whether the scalars depend on inputs of a recorded function.
    fn has_recorded_scalars(&self) -> bool;
}

/// A formula with the same scalars for all parameters.
pub(super) struct WithScalars<C, const K: usize>(pub(super) C, pub(super) StepScalars<K>);

impl<C: Compiled<K, M, N>, const K: usize, const M: usize, const N: usize> ElementStep<K, M, N>
    for WithScalars<C, K>
{
    fn passes(&self) -> &dyn Passes<K, M, N> {
        self.0.passes()
    }

    fn scalars(&mut self, _: Option<&StepsTaken>) -> StepScalars<K> {
        self.1.clone()
    }

    fn has_recorded_scalars(&self) -> bool {
        matches!(self.1, StepScalars::Tensors(_))
    }
}

pub(super) trait OfStep<const K: usize> {
    /// The scalars of the formula, from the learning rate and the number of the parameter's step,
    /// counted from 1.
    fn of_step<Q: Quantity>(&self, rate: Q, step: Q) -> [Q; K];
}

/// The step of an optimizer as programs.
#[derive(Clone, Debug)]
pub struct StepPrograms {
    /// Computes the scalars of the step from the learning rate and the number of the parameter's
    /// step, counted from 1.
    pub scalars: UpdateProgram,
    /// Computes the new parameter and its new moments from the scalars, the parameter, its
    /// moments and its gradient. In half precision, the last operand is the rounded parameter.
    pub update: UpdateProgram,
}

impl StepPrograms {
    pub(super) fn of<C: Compiled<K, M, N> + OfStep<K>, const K: usize, const M: usize, const N: usize>(
        formula: &C,
        elements: DType,
    ) -> Self {
        let update = formula.passes().program(elements);
        let scalars = UpdateProgram::of_scalars(update.name, |[rate, step]| formula.of_step(rate, step));
        StepPrograms { scalars, update }
    }
}

/// Changes the learned tensors of a value by a formula, except for frozen ones. The formula changes
/// each tensor and its `M - 1` moments, which are in `kept`. If sizes differ, the state does not
/// fit, a name of `freeze` or the pattern of a group matches no parameter, or the change of a
/// tensor would lose a gradient, this returns an error and changes no tensor. For error messages,
/// `names` has the names of the operation, the changed value and the values in `read`.
pub(super) fn update<P: Parameters, const K: usize, const M: usize, const N: usize>(
    step: &mut dyn ElementStep<K, M, N>,
    changed: &mut P,
    read: [&P; N],
    names: UpdateNames,
    mut kept: Option<(&mut ByPath, Option<&StepsTaken>)>,
    unchanged: &Unchanged,
) -> Result<(), DimError> {
    let state = kept.as_ref().map(|(by_path, _)| &**by_path);
    let check = OperandCheck::new(names, step.has_recorded_scalars(), state, unchanged);
    check_parameters(&*changed, read, check)?;
    if let Some((by_path, steps)) = &mut kept {
        prepare(by_path, *steps, &*changed, MomentLayout::whole(M - 1), unchanged)?;
    }
    let along = kept.map(|(by_path, steps)| StateWalk::new(by_path, steps));
    P::visit([changed], read, &mut Path::new(), &mut UpdatePass { step, along, unchanged })
}

/// The names of an operation and of the values that it compares, for error messages.
pub(super) type UpdateNames = (&'static str, Sides);

/// The names for a step of an optimizer.
pub(super) const WITH_GRADIENT: UpdateNames = ("step", ["the parameters", "the gradient"]);

/// Checks that the values have the same structure and sizes, that a step in place does not lose a
/// gradient that traces them or the state, and that each name of `freeze` matches a parameter.
pub(super) fn check_parameters<P: Parameters, const N: usize>(
    parameters: &P,
    others: [&P; N],
    mut check: OperandCheck<'_>,
) -> Result<(), DimError> {
    for other in others {
        P::visit([], [parameters, other], &mut Path::new(), &mut check)?;
    }
    if N == 0 && is_heard() {
        // (There is nothing to compare, but a gradient may trace the parameters.)
        P::visit([], [parameters; 2], &mut Path::new(), &mut check)?;
    }
    let frozen = &check.unchanged.frozen;
    if frozen.is_empty() {
        return Ok(());
    }
    let names = parameters.names();
    let has_none = |call: &&FreezeCall| call.must_match && !names.iter().any(|name| is_in(&call.name, name));
    match frozen.iter().find(has_none) {
        Some(FreezeCall { name, freezes, .. }) => {
            let (method, names) = (if *freezes { "freeze" } else { "unfreeze" }, listed(&names));
            let what = format!("cannot {method} `{name}`: no parameter matches it; the names are {names}");
            Err(DimError::Shape { what })
        }
        None => Ok(()),
    }
}

/// Makes the state of all parameters that a step changes, and drops the state of parameters that
/// are gone.
pub(super) fn prepare<P: Parameters>(
    by_path: &mut ByPath,
    steps: Option<&StepsTaken>,
    parameters: &P,
    moments: MomentLayout,
    unchanged: &Unchanged,
) -> Result<(), DimError> {
    if !by_path.has_groups_of_all() {
        by_path.groups().check_members(parameters)?;
    }
    let mut prepare = Preparation { along: StateWalk::new(by_path, steps), moments, unchanged };
    P::visit([], [parameters], &mut Path::new(), &mut prepare)?;
    if prepare.along.has_others() {
        by_path.groups().check_members(parameters)?;
        by_path.keep(parameters)?;
    }
    by_path.begin();
    Ok(())
}

/// A check of the operands of a step, before any of them changes.
pub(super) struct OperandCheck<'u> {
    names: UpdateNames,
    has_recorded_scalars: bool,
    state: Option<&'u ByPath>,
    /// The position in the state at which the next parameter usually is.
    next: usize,
    unchanged: &'u Unchanged,
}

impl<'u> OperandCheck<'u> {
    pub(super) fn new(
        names: UpdateNames,
        has_recorded_scalars: bool,
        state: Option<&'u ByPath>,
        unchanged: &'u Unchanged,
    ) -> Self {
        OperandCheck { names, has_recorded_scalars, state, next: 0, unchanged }
    }

    /// The moments and the master weights of a parameter.
    fn state_of(&mut self, path: &Path) -> impl Iterator<Item = &'u StateTensor> + Clone + use<'u> {
        let place = self.state.and_then(|state| state.place(self.next, path));
        self.next = place.map_or(self.next, |place| place + 1);
        let own = self.state.zip(place).map(|(state, place)| &state.parameters()[place]);
        own.into_iter().flat_map(ParameterState::all_tensors)
    }
}

impl Visitor<0, 2> for OperandCheck<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        _: [&mut Named<T, S, R>; 0],
        read: [&Named<T, S, R>; 2],
    ) -> Result<(), DimError> {
        let [one, other] = read;
        let (operation, sides) = self.names;
        if !have_same_sizes(one.expr.axis_slices(), other.expr.axis_slices()) {
            same_sizes(path, sides, read)?;
        }
        if !is_heard() || !is_learned::<T>() || self.has_recorded_scalars || self.unchanged.has(path) {
            return Ok(());
        }
        let mut state = self.state_of(path);
        // A step in place has no derivative, but a recorded step has one.
        if read.iter().any(|tensor| is_recorded(tensor.expr.buffer()))
            || state.clone().any(StateTensor::is_recorded)
        {
            return Ok(());
        }
        read.iter()
            .try_for_each(|tensor| check_taken(tensor.expr.all(), operation))
            .and_then(|()| state.try_for_each(|tensor| tensor.check_taken(operation)))
            .map_err(outside)
    }

    fn mismatch(&mut self, path: &Path, what: Mismatch) -> DimError {
        what.between(self.names.1, path)
    }
}

/// Turns the error that an operation has no derivative into one that says to call the operation
/// outside of the function that is differentiated.
pub(super) fn outside(error: DimError) -> DimError {
    match error {
        DimError::NoDerivative { operation, origin, parameters } => {
            DimError::NoOwnDerivative { operation, remedy: OUTSIDE, origin, parameters }
        }
        error => error,
    }
}

struct Preparation<'u> {
    along: StateWalk<'u>,
    moments: MomentLayout,
    unchanged: &'u Unchanged,
}

impl Visitor<0, 1> for Preparation<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        _: [&mut Named<T, S, R>; 0],
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<(), DimError> {
        if !is_learned::<T>() {
            return Ok(());
        }
        self.along.prepare(path, tensor, self.moments, self.unchanged.has(path))
    }
}

struct UpdatePass<'u, const K: usize, const M: usize, const N: usize> {
    step: &'u mut dyn ElementStep<K, M, N>,
    along: Option<StateWalk<'u>>,
    unchanged: &'u Unchanged,
}

impl<const K: usize, const M: usize, const N: usize> Visitor<1, N> for UpdatePass<'_, K, M, N> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&mut Named<T, S, R>; 1],
        read: [&Named<T, S, R>; N],
    ) -> Result<(), DimError> {
        if !is_learned::<T>() {
            return Ok(());
        }
        // `Preparation` has checked that the state has the sizes of the tensor.
        let kept = self.along.as_mut().and_then(|along| along.ready::<T>(path));
        if self.unchanged.has(path) {
            return Ok(());
        }
        if let Some(settings) = kept.as_ref().and_then(|kept| kept.settings.as_ref()) {
            self.step.begin(settings);
        }
        let scalars = self.step.scalars(kept.as_ref().and_then(|kept| kept.missed.as_ref()));
        let (moments, mut master) = kept.map_or((&mut [][..], None), ParameterState::tensors);
        let formula = self.step.passes();
        let order = lie_densely(tensor, moments, &mut master)?;
        let copies = copies_along(read, &order)?;
        let read = or_given(&copies, read);
        apply(formula, scalars, tensor, read, (moments, master))
    }
}

/// Makes the elements of a tensor and its state contiguous in the same order of axes, and returns
/// this order.
pub(super) fn lie_densely<T: Element, S: Dims, R: Rank>(
    tensor: &mut Named<T, S, R>,
    moments: &mut [StateTensor],
    master: &mut Option<&mut StateTensor>,
) -> Result<SmallVec<[usize; 8]>, DimError> {
    let order = tensor.expr.order_in_memory();
    if let Some(copy) = lying_otherwise(tensor, &order)? {
        *tensor = copy;
    }
    for state in moments.iter_mut().chain(master.as_deref_mut()) {
        state.lie_along::<S, R>(&order)?;
    }
    Ok(order)
}

/// For each tensor, a copy whose elements are contiguous in this order of axes, or `None` if the
/// elements of the tensor already are.
pub(super) fn copies_along<T: Element, S: Dims, R: Rank, const N: usize>(
    read: [&Named<T, S, R>; N],
    order: &[usize],
) -> Result<[Option<Named<T, S, R>>; N], DimError> {
    let mut copies = from_fn(|_| None);
    for (copy, tensor) in copies.iter_mut().zip(read) {
        *copy = lying_otherwise(tensor, order)?;
    }
    Ok(copies)
}

/// For each tensor, its copy if there is one, and otherwise the tensor itself.
pub(super) fn or_given<'v, T: Element, S: Dims, R: Rank, const N: usize>(
    copies: &'v [Option<Named<T, S, R>>; N],
    mut read: [&'v Named<T, S, R>; N],
) -> [&'v Named<T, S, R>; N] {
    for at in 0..N {
        if let Some(copy) = &copies[at] {
            read[at] = copy;
        }
    }
    read
}

/// Applies a formula to a tensor and its state, in place or as a step of a recorded function. The
/// tensor, its state and the tensors in `read` must be contiguous in the same order of axes.
///
/// The functions that compute are compiled for each element type, but not for each list of dims.
pub(super) fn apply<T: Element, S: Dims, R: Rank, const K: usize, const M: usize, const N: usize>(
    formula: &dyn Passes<K, M, N>,
    scalars: StepScalars<K>,
    tensor: &mut Named<T, S, R>,
    read: [&Named<T, S, R>; N],
    (moments, master): KeptTensors<'_>,
) -> Result<(), DimError> {
    let mut buffers = Operands::<T>::new();
    for tensor in read {
        buffers.push(tensor.expr.buffer());
    }
    let own = tensor.expr.buffer();
    match scalars {
        StepScalars::Numbers(numbers) if !is_any_recorded(own, &buffers, moments, master.as_deref()) => {
            apply_numbers::<T, K, M, N>(formula, numbers, tensor.expr.all_mut(), &buffers, (moments, master))
        }
        scalars => {
            let new = recorded(formula, scalars, own, &buffers, (moments, master))?;
            *tensor = Named::from_expr(tensor.expr.with_buffer(new));
            Ok(())
        }
    }
}

/// The elements of tensors that a step reads.
type Operands<'v, T> = SmallVec<[&'v Buffer<T>; 4]>;

/// Applies a formula to elements and their state in place.
fn apply_numbers<T: Element, const K: usize, const M: usize, const N: usize>(
    formula: &dyn Passes<K, M, N>,
    scalars: [f64; K],
    elements: &mut [T],
    read: &[&Buffer<T>],
    (moments, master): KeptTensors<'_>,
) -> Result<(), DimError> {
    let read: [&[T]; N] = from_fn(|at| &read[at][..]);
    let id = TypeId::of::<T>();
    if id == TypeId::of::<f32>() {
        let ([first], read) = floats([elements], read);
        formula.f32(scalars, first_and(first, elements_of::<f32>(moments)?), read);
    } else if id == TypeId::of::<f64>() {
        let ([first], read) = floats([elements], read);
        formula.f64(scalars, first_and(first, elements_of::<f64>(moments)?), read);
    } else {
        #[cfg(feature = "half")]
        {
            let exact = match master {
                Some(master) => Some(one_of::<f32>(master)?),
                None => None,
            };
            let changed = first_and(exact, elements_of::<f32>(moments)?.map(Some));
            if id == TypeId::of::<half::f16>() {
                let ([rounded], read) = floats::<_, half::f16, 1, N>([elements], read);
                apply_halves(formula, scalars, rounded, changed, read);
            } else {
                let ([rounded], read) = floats::<_, half::bf16, 1, N>([elements], read);
                apply_halves(formula, scalars, rounded, changed, read);
            }
        }
        #[cfg(not(feature = "half"))]
        let _ = master;
    }
    Ok(())
}

/// The moments and the master weights of one parameter.
pub(super) type KeptTensors<'k> = (&'k mut [StateTensor], Option<&'k mut StateTensor>);

/// Whether an operand of a step depends on inputs of a recorded function.
pub(super) fn is_any_recorded<T: Element>(
    elements: &Buffer<T>,
    read: &[&Buffer<T>],
    moments: &[StateTensor],
    master: Option<&StateTensor>,
) -> bool {
    is_recorded(elements)
        || read.iter().any(|own| is_recorded(own))
        || moments.iter().any(StateTensor::is_recorded)
        || master.is_some_and(StateTensor::is_recorded)
}

/// Never called: without `std`, nothing is recorded.
#[cfg(not(feature = "std"))]
fn recorded<T: Element, const K: usize, const M: usize, const N: usize>(
    _: &dyn Passes<K, M, N>,
    _: StepScalars<K>,
    _: &Buffer<T>,
    _: &[&Buffer<T>],
    _: KeptTensors<'_>,
) -> Result<Buffer<T>, DimError> {
    unreachable!("recording needs the feature `std`")
}

/// Applies a formula in a recorded function. Returns the new elements of the tensor, and replaces
/// the elements of the state. Recorded operations compute both.
#[cfg(feature = "std")]
#[cold]
fn recorded<T: Element, const K: usize, const M: usize, const N: usize>(
    formula: &dyn Passes<K, M, N>,
    scalars: StepScalars<K>,
    elements: &Buffer<T>,
    read: &[&Buffer<T>],
    (moments, master): KeptTensors<'_>,
) -> Result<Buffer<T>, DimError> {
    let dtype = DType::of::<T>().expect("each float type has a `DType`");
    let program = formula.program(dtype);
    let mut operands: SmallVec<[_; 8]> = scalars.held().into_iter().collect();
    // Without master weights, the step starts from the parameter itself.
    operands.push(master.as_ref().map_or_else(|| elements.held(), |master| master.held()));
    operands.extend(moments.iter().map(StateTensor::held));
    operands.extend(read.iter().map(|own| own.held()));
    if program.follows {
        operands.push(elements.held());
    }
    let len = elements.len();
    let UpdatedElements { changed, rounded } = updated(&program, &operands, len, None)?;
    let mut changed = changed.into_iter();
    let exact = changed.next().expect("a formula changes the parameter");
    let own =
        Buffer::of_held(rounded.as_ref().unwrap_or(&exact)).expect("the elements have the parameter's type");
    if let Some(master) = master {
        master.replace(&exact);
    }
    moments.iter_mut().zip(changed).for_each(|(moment, new)| moment.replace(&new));
    Ok(own)
}

fn first_and<X, const M: usize>(first: X, others: impl IntoIterator<Item = X>) -> [X; M] {
    let mut all = core::iter::once(first).chain(others);
    from_fn(|_| all.next().expect("there are `M - 1` moments"))
}

fn elements_of<W: StateElem>(
    moments: &mut [StateTensor],
) -> Result<impl Iterator<Item = &mut [W]> + use<'_, W>, DimError> {
    let all: SmallVec<[&mut [W]; 4]> = moments.iter_mut().map(one_of).collect::<Result<_, _>>()?;
    Ok(all.into_iter())
}

fn one_of<W: StateElem>(tensor: &mut StateTensor) -> Result<&mut [W], DimError> {
    tensor.elements_mut().ok_or_else(StateTensor::of_other_elements)
}

/// A copy of `elements` in the memory order of `tensor`, which has the same sizes.
pub(super) fn copied<T: Element, S: Dims, R: Rank>(
    tensor: &Named<T, S, R>,
    elements: &Named<T, S, R>,
) -> Result<Named<T, S, R>, DimError> {
    let shape = tensor.unified_shape()?;
    Ok(Named::from_expr(evaluate_tensor_in::<S, R, _>(
        &elements.expr,
        &shape,
        &tensor.expr.order_in_memory(),
    )?))
}

/// Copies a value into new memory.
pub(super) struct Copied;

impl Walk<1> for Copied {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        copied(tensor, tensor)
    }
}

/// The slices as slices of `U`, which must be the same type as `T`.
pub(super) fn floats<'s, T: Element, U: Real, const M: usize, const N: usize>(
    changed: [&'s mut [T]; M],
    read: [&'s [T]; N],
) -> ([&'s mut [U]; M], [&'s [U]; N]) {
    let same = "the types were compared";
    (
        changed.map(|slice| slice_as_mut::<T, U>(slice).expect(same)),
        read.map(|slice| slice_as::<T, U>(slice).expect(same)),
    )
}
