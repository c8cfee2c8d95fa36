//! Steps whose length depends on two norms: the norm of the parameter, and the norm of the
//! *direction* in which the step moves the parameter.

use super::State;
#[cfg(feature = "half")]
use super::by_path::widened_elements_of;
use super::by_path::{MomentLayout, ParameterState, StateWalk};
#[cfg(feature = "std")]
use super::scalars::formula_by_tensors;
#[cfg(feature = "std")]
use super::scalars::one;
use super::scalars::{StepScalars, formula_of_two_by_tensors};
use super::settings::Decaying;
use super::state_tensor::{StateElem, StateTensor};
use super::step_after::StepAfter;
use super::unchanged::Unchanged;
use super::update::{
    Compiled, OfStep, OperandCheck, WITH_GRADIENT, apply, check_parameters, copies_along, is_any_recorded,
    lie_densely, or_given, prepare,
};
use crate::error::DimError;
use crate::grad::Parameters;
use crate::grad::parameters::{Path, Visitor, is_learned};
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::Dims;
#[cfg(not(feature = "half"))]
use alloc::vec::Vec;
use core::array::from_fn;
use kernels::map::formula::Quantity;
use kernels::map::in_place::{slice_as, squares};
use kernels::map::norms::DirectionSquares;
use kernels::memory::buffer::Buffer;
#[cfg(feature = "std")]
use kernels::program::code::DType;
use kernels::scalar::Element;
#[cfg(feature = "std")]
use kernels::trace::{sum_of_squares, updated};
use smallvec::SmallVec;

/// A step in two formulas. The first has `K` scalars and changes the `M - 1` moments. The second
/// has `L` scalars and changes the parameter.
pub(super) trait Normed<const K: usize, const L: usize, const M: usize>: OfStep<K> + Decaying {
    /// The scalars of the second formula, from the scalars of the first and the norms of the
    /// parameter and the direction.
    fn with_norms<Q: Quantity>(&self, numbers: [Q; K], norms: [Q; 2]) -> [Q; L];

    /// The formula of the direction. The loops that compute its squared norm are compiled in this
    /// crate.
    fn direction(&self) -> &dyn DirectionSquares<K, M, 0>;
}

impl<P: Parameters> State<P> {
    /// Takes a [`Normed`] step, and counts it.
    pub(super) fn normed_step<C, const K: usize, const L: usize, const M: usize>(
        &mut self,
        optimizer: &str,
        formula: C,
        parameters: &mut P,
        gradient: &P,
    ) -> Result<(), DimError>
    where
        C: Compiled<K, M, 1> + Compiled<L, M, 0> + Normed<K, L, M>,
    {
        let unchanged = Unchanged { frozen: self.frozen.clone() };
        let mut step = StepAfter::<C, K>::new(optimizer, formula, self)?;
        let check = OperandCheck::new(WITH_GRADIENT, step.is_recorded(), Some(&self.by_path), &unchanged);
        check_parameters(&*parameters, [gradient], check)?;
        prepare(&mut self.by_path, Some(&self.steps), &*parameters, MomentLayout::whole(M - 1), &unchanged)?;
        let along = StateWalk::new(&mut self.by_path, Some(&self.steps));
        let mut pass = NormedPass::<C, K, L, M> { step: &mut step, along, unchanged: &unchanged };
        P::visit([parameters], [gradient], &mut Path::new(), &mut pass)?;
        self.count_step(&unchanged);
        Ok(())
    }
}

struct NormedPass<'u, C, const K: usize, const L: usize, const M: usize> {
    step: &'u mut StepAfter<C, K>,
    along: StateWalk<'u>,
    unchanged: &'u Unchanged,
}

impl<C, const K: usize, const L: usize, const M: usize> Visitor<1, 1> for NormedPass<'_, C, K, L, M>
where
    C: Compiled<K, M, 1> + Compiled<L, M, 0> + Normed<K, L, M>,
{
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&mut Named<T, S, R>; 1],
        read: [&Named<T, S, R>; 1],
    ) -> Result<(), DimError> {
        if !is_learned::<T>() {
            return Ok(());
        }
        let kept = self.along.ready::<T>(path).expect("the state of all parameters is ready");
        if self.unchanged.has(path) {
            return Ok(());
        }
        let ParameterState { settings, missed, .. } = &*kept;
        self.step.begin_parameter(settings.as_ref().expect("the settings were found"));
        let scalars = self.step.scalars_after(missed.as_ref());
        let (moments, mut master) = kept.tensors();
        let order = lie_densely(tensor, moments, &mut master)?;
        let copies = copies_along(read, &order)?;
        let read = or_given(&copies, read);
        let formula = self.step.formula();
        let first = Compiled::<K, M, 1>::passes(formula);
        apply(first, scalars.clone(), tensor, read, (&mut *moments, master.as_deref_mut()))?;
        let norms = norms(formula.direction(), &scalars, tensor, moments, master.as_deref())?;
        let scalars = with_norms(formula, scalars, norms);
        apply(Compiled::<L, M, 0>::passes(formula), scalars, tensor, [], (moments, master))
    }
}

fn with_norms<C: Normed<K, L, M>, const K: usize, const L: usize, const M: usize>(
    formula: &C,
    scalars: StepScalars<K>,
    norms: StepScalars<2>,
) -> StepScalars<L> {
    match (scalars, norms) {
        (StepScalars::Numbers(numbers), StepScalars::Numbers(norms)) => {
            StepScalars::Numbers(formula.with_norms(numbers, norms))
        }
        (numbers, norms) => {
            let (numbers, norms) = (numbers.tensors(), norms.tensors());
            StepScalars::Tensors(formula_of_two_by_tensors(&numbers, &norms, |numbers, norms| {
                formula.with_norms(numbers, norms)
            }))
        }
    }
}

/// The norms of a parameter and of the direction of its step.
fn norms<T: Element, S: Dims, R: Rank, const K: usize, const M: usize>(
    direction: &dyn DirectionSquares<K, M, 0>,
    scalars: &StepScalars<K>,
    tensor: &Named<T, S, R>,
    moments: &[StateTensor],
    master: Option<&StateTensor>,
) -> Result<StepScalars<2>, DimError> {
    let numbers = match scalars {
        StepScalars::Numbers(numbers) if !is_any_recorded(tensor.expr.buffer(), &[], moments, master) => {
            *numbers
        }
        scalars => return recorded_norms(direction, scalars, tensor, moments, master),
    };
    let elements = tensor.expr.all();
    let squares = if let Some(own) = slice_as::<T, f32>(elements) {
        [squares(own), direction.f32(numbers, state_of(own, moments)?, [])]
    } else if let Some(own) = slice_as::<T, f64>(elements) {
        [squares(own), direction.f64(numbers, state_of(own, moments)?, [])]
    } else {
        // (A `Buffer` instead of a `Vec`, so that its memory can return to the pool.)
        let widened: Buffer<f32>;
        let own = match master {
            Some(master) => elements_of::<f32>(master)?,
            None => {
                widened = widened_elements_of(elements)?.into();
                &widened
            }
        };
        [squares(own), direction.f32(numbers, state_of(own, moments)?, [])]
    };
    Ok(StepScalars::Numbers(squares.map(Quantity::sqrt)))
}

/// The elements of a parameter and its moments.
fn state_of<'s, W: StateElem, const M: usize>(
    own: &'s [W],
    moments: &'s [StateTensor],
) -> Result<[&'s [W]; M], DimError> {
    let moments = moments.iter().map(elements_of::<W>);
    let all: SmallVec<[&[W]; 4]> = core::iter::once(Ok(own)).chain(moments).collect::<Result<_, _>>()?;
    Ok(from_fn(|at| all[at]))
}

fn elements_of<W: StateElem>(tensor: &StateTensor) -> Result<&[W], DimError> {
    tensor.elements().ok_or_else(StateTensor::of_other_elements)
}

#[cfg(not(feature = "half"))]
fn widened_elements_of<T: Element>(_: &[T]) -> Result<Vec<f32>, DimError> {
    unreachable!("floats are `f32` or `f64`")
}

#[cfg(not(feature = "std"))]
fn recorded_norms<T: Element, S: Dims, R: Rank, const K: usize, const M: usize>(
    _: &dyn DirectionSquares<K, M, 0>,
    _: &StepScalars<K>,
    _: &Named<T, S, R>,
    _: &[StateTensor],
    _: Option<&StateTensor>,
) -> Result<StepScalars<2>, DimError> {
    unreachable!("recording needs the feature `std`")
}

/// The norms in a recorded function, as tensors that recorded operations compute.
#[cfg(feature = "std")]
#[cold]
fn recorded_norms<T: Element, S: Dims, R: Rank, const K: usize, const M: usize>(
    direction: &dyn DirectionSquares<K, M, 0>,
    scalars: &StepScalars<K>,
    tensor: &Named<T, S, R>,
    moments: &[StateTensor],
    master: Option<&StateTensor>,
) -> Result<StepScalars<2>, DimError> {
    let program = direction.program(DType::of::<T>().expect("each float type has a `DType`"));
    let own = master.map_or_else(|| tensor.expr.buffer().held(), StateTensor::held);
    let mut operands: SmallVec<[_; 8]> = scalars.held().into_iter().collect();
    operands.push(own.clone());
    operands.extend(moments.iter().map(StateTensor::held));
    let along = updated(&program, &operands, tensor.expr.all().len(), None)?.changed;
    let norm = |of| -> Result<Named<f64, ()>, DimError> {
        let squares: Buffer<f64> = sum_of_squares(&[of], None)?;
        let squares = Named::<f64, ()>::from_expr(one(0.0).expr.with_buffer(squares));
        let [norm] = formula_by_tensors([&squares], |[squares]| [squares.sqrt()]);
        Ok(norm)
    };
    let along = along.into_iter().next().expect("a direction is computed as one result");
    Ok(StepScalars::Tensors([norm(own)?, norm(along)?]))
}
