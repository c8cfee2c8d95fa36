//! A formula over the tensors of several values, in place.

use super::by_path::{ByPath, ParameterState, StateElem, StateTensor, StateWalk};
use crate::error::DimError;
use crate::expr::evaluate::laid_out_in;
use crate::grad::Parameters;
use crate::grad::parameters::{Path, Visitor, Walk, is_learned, order_in_memory, same_sizes};
use crate::named::Named;
use crate::rank::Rank;
use crate::set::Dims;
use crate::storage::axes::AxisBlock;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::TypeId;
use core::array::from_fn;
#[cfg(feature = "half")]
use kernels::map::in_place::apply_halves;
use kernels::map::in_place::{Passes, slice_as, slice_as_mut};
use kernels::scalar::{Element, Real};
use num_traits::NumCast;
use smallvec::SmallVec;

/// A number of the formula in the type of the elements.
#[inline(always)]
pub(super) fn number<F: Real>(value: f64) -> F {
    <F as NumCast>::from(value).expect("a float can be any float, rounded")
}

/// A formula whose passes are compiled here, with the loops over elements. Code that is generic in the parameters is compiled by their crate, perhaps without optimization.
pub(super) trait Compiled<const M: usize, const N: usize> {
    fn passes(&self) -> &dyn Passes<M, N>;
}

macro_rules! compiled {
    ($($formula:ty: $m:literal $n:literal;)*) => {$(
        impl $crate::optim::update::Compiled<$m, $n> for $formula {
            // (Inlined, it would make the passes anew elsewhere.)
            #[inline(never)]
            fn passes(&self) -> &dyn ::kernels::map::in_place::Passes<$m, $n> {
                self
            }
        }
    )*};
}
pub(super) use compiled;

/// The formulas of a step: one for each number of steps that parameters have missed.
pub(super) trait Formulas<const M: usize, const N: usize> {
    /// The formula of parameters that have missed so many steps.
    fn after(&mut self, missed: u64) -> &dyn Passes<M, N>;
}

/// Formulas that a function makes.
pub(super) struct MadeBy<C, F> {
    make: F,
    /// The last one, and how many steps its parameters have missed.
    last: Option<(u64, C)>,
}

/// One formula for all parameters.
pub(super) fn always<C: Copy>(formula: C) -> MadeBy<C, impl Fn(u64) -> C> {
    made_by(move |_| formula)
}

/// The formula of a number of missed steps.
pub(super) fn made_by<C, F: Fn(u64) -> C>(make: F) -> MadeBy<C, F> {
    MadeBy { make, last: None }
}

impl<C: Compiled<M, N>, F: Fn(u64) -> C, const M: usize, const N: usize> Formulas<M, N> for MadeBy<C, F> {
    fn after(&mut self, missed: u64) -> &dyn Passes<M, N> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != missed) {
            self.last = None;
        }
        let make = &self.make;
        self.last.get_or_insert_with(|| (missed, make(missed))).1.passes()
    }
}

/// Tensors that a step leaves as they are.
#[derive(Default)]
pub(super) struct Unchanged {
    /// The names of parameters, or of parts.
    pub(super) frozen: Vec<String>,
}

impl Unchanged {
    pub(super) fn has(&self, path: &Path) -> bool {
        is_any(&self.frozen, path)
    }
}

/// Changes the learned tensors of a value by a formula, but for those that stay. The formula changes each tensor, and `M - 1` moments of it, which `by_path` keeps. What differs
/// in its sizes is an error, and nothing is changed then.
pub(super) fn update<P: Parameters, const M: usize, const N: usize>(
    formulas: &mut dyn Formulas<M, N>,
    changed: &mut P,
    read: [&P; N],
    mut kept: Option<(&mut ByPath, u64)>,
    unchanged: &Unchanged,
) -> Result<(), DimError> {
    for other in read {
        P::visit([], [&*changed, other], &mut Path::new(), &mut SameSizes)?;
    }
    let frozen = &unchanged.frozen;
    if !frozen.is_empty() {
        let names = changed.names();
        if let Some(name) = frozen.iter().find(|frozen| !names.iter().any(|name| is_in(frozen, name))) {
            return Err(DimError::Shape {
                what: format!("cannot freeze `{name}`: no parameter has this name"),
            });
        }
    }
    if let Some((by_path, steps)) = &mut kept {
        let along = StateWalk::new(by_path, *steps);
        let mut prepare = Preparation { along, moments: M - 1, unchanged };
        P::visit([], [&*changed], &mut Path::new(), &mut prepare)?;
    }
    let along = kept.map(|(by_path, steps)| StateWalk::new(by_path, steps));
    P::visit([changed], read, &mut Path::new(), &mut UpdatePass { formulas, along, unchanged })
}

/// Whether a name is `part`, or begins with it and a dot.
fn is_in(part: &str, name: &str) -> bool {
    name.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a tensor is one of these parts, or belongs to one.
pub(super) fn is_any(parts: &[String], path: &Path) -> bool {
    if parts.is_empty() {
        return false;
    }
    let name = path.to_string();
    parts.iter().any(|part| is_in(part, &name))
}

struct SameSizes;

impl Visitor<0, 2> for SameSizes {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        _: [&mut Named<T, S, R>; 0],
        read: [&Named<T, S, R>; 2],
    ) -> Result<(), DimError> {
        let [one, other] = read;
        if sizes_of(one).eq(sizes_of(other)) { Ok(()) } else { same_sizes(path, read) }
    }
}

/// The sizes of the dims, then those of the positional axes.
pub(super) fn sizes_of<T, S: Dims, R: Rank>(tensor: &Named<T, S, R>) -> impl Iterator<Item = usize> {
    let axes = tensor.expr.named().as_slice().iter().chain(tensor.expr.positional().as_slice());
    axes.map(|axis| axis.size)
}

/// Makes the state of each parameter that a step changes.
struct Preparation<'u> {
    along: StateWalk<'u>,
    moments: usize,
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

struct UpdatePass<'u, const M: usize, const N: usize> {
    formulas: &'u mut dyn Formulas<M, N>,
    along: Option<StateWalk<'u>>,
    unchanged: &'u Unchanged,
}

impl<const M: usize, const N: usize> Visitor<1, N> for UpdatePass<'_, M, N> {
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
        // (The sizes are those that `Preparation` has compared.)
        let kept = self.along.as_mut().and_then(|along| along.ready::<T>(path));
        if self.unchanged.has(path) {
            return Ok(());
        }
        let (missed, moments, master) = kept.map_or((0, &mut [][..], None), ParameterState::parts);
        let formula = self.formulas.after(missed);
        let order = order_in_memory(tensor);
        if let Some(copy) = lying_otherwise(tensor, &order)? {
            *tensor = copy;
        }
        let mut copies: [Option<Named<T, S, R>>; N] = from_fn(|_| None);
        for (copy, tensor) in copies.iter_mut().zip(read) {
            *copy = lying_otherwise(tensor, &order)?;
        }
        let read = from_fn(|at| copies[at].as_ref().unwrap_or(read[at]).expr.all());
        let elements = tensor.expr.all_mut();
        let id = TypeId::of::<T>();
        if id == TypeId::of::<f32>() {
            let ([first], read) = floats([elements], read);
            formula.f32(first_and(first, elements_of::<f32, S, R>(moments, &order)?), read);
        } else if id == TypeId::of::<f64>() {
            let ([first], read) = floats([elements], read);
            formula.f64(first_and(first, elements_of::<f64, S, R>(moments, &order)?), read);
        } else {
            #[cfg(feature = "half")]
            {
                let exact = match master {
                    Some(master) => Some(one_of::<f32, S, R>(master, &order)?),
                    None => None,
                };
                let changed = first_and(exact, elements_of::<f32, S, R>(moments, &order)?.map(Some));
                if id == TypeId::of::<half::f16>() {
                    let ([rounded], read) = floats::<_, half::f16, 1, N>([elements], read);
                    apply_halves(formula, rounded, changed, read);
                } else {
                    let ([rounded], read) = floats::<_, half::bf16, 1, N>([elements], read);
                    apply_halves(formula, rounded, changed, read);
                }
            }
            #[cfg(not(feature = "half"))]
            let _ = master;
        }
        Ok(())
    }
}

/// The first slice, and those behind it.
fn first_and<X, const M: usize>(first: X, others: impl IntoIterator<Item = X>) -> [X; M] {
    let mut all = core::iter::once(first).chain(others);
    from_fn(|_| all.next().expect("there is a moment for each further slice"))
}

/// The elements of moments, with the axes in this order.
fn elements_of<'s, W: StateElem, S: Dims, R: Rank>(
    moments: &'s mut [StateTensor],
    order: &[usize],
) -> Result<impl Iterator<Item = &'s mut [W]> + use<'s, W, S, R>, DimError> {
    let all: SmallVec<[&mut [W]; 4]> =
        moments.iter_mut().map(|moment| one_of::<W, S, R>(moment, order)).collect::<Result<_, _>>()?;
    Ok(all.into_iter())
}

fn one_of<'s, W: StateElem, S: Dims, R: Rank>(
    tensor: &'s mut StateTensor,
    order: &[usize],
) -> Result<&'s mut [W], DimError> {
    tensor.elements_mut::<W, S, R>(order)?.ok_or_else(|| DimError::Shape {
        what: "the state of a parameter is that of one with other elements".into(),
    })
}

/// A copy of `elements`, which has the sizes of the tensor, with the axes in the order in which those of the tensor lie.
pub(super) fn copied<T: Element, S: Dims, R: Rank>(
    tensor: &Named<T, S, R>,
    elements: &Named<T, S, R>,
) -> Result<Named<T, S, R>, DimError> {
    let shape = tensor.unified_shape()?;
    Ok(Named::from_expr(laid_out_in::<S, R, _>(&elements.expr, &shape, &order_in_memory(tensor))?))
}

/// A copy of a value, with memory of its own.
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

/// A copy with the elements contiguous in this order of axes, if they are not.
pub(super) fn lying_otherwise<T: Element, S: Dims, R: Rank>(
    tensor: &Named<T, S, R>,
    order: &[usize],
) -> Result<Option<Named<T, S, R>>, DimError> {
    if tensor.expr.is_contiguous(order) {
        return Ok(None);
    }
    let shape = tensor.unified_shape()?;
    Ok(Some(Named::from_expr(laid_out_in::<S, R, _>(&tensor.expr, &shape, order)?)))
}

/// Slices of the type `U`, which is `T`.
fn floats<'s, T: Element, U: Real, const M: usize, const N: usize>(
    changed: [&'s mut [T]; M],
    read: [&'s [T]; N],
) -> ([&'s mut [U]; M], [&'s [U]; N]) {
    let same = "the types were compared";
    (
        changed.map(|slice| slice_as_mut::<T, U>(slice).expect(same)),
        read.map(|slice| slice_as::<T, U>(slice).expect(same)),
    )
}
