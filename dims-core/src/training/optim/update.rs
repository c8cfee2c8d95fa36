//! A formula over the tensors of several values, in place.

use crate::error::DimError;
use crate::expr::evaluate::laid_out_in;
use crate::grad::Parameters;
use crate::grad::parameters::{Path, Visitor, Walk, is_learned, order_in_memory, same_sizes};
use crate::named::Named;
use crate::rank::Rank;
use crate::set::Dims;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::TypeId;
use core::array::from_fn;
use kernels::map::in_place::{Passes, slice_as, slice_as_mut};
use kernels::scalar::{Element, Real};
use num_traits::NumCast;

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

/// Tensors that a step leaves as they are.
#[derive(Default)]
pub(super) struct Unchanged {
    /// The names of parameters, or of parts.
    pub(super) frozen: Vec<String>,
    /// All but those that missed this number of steps, by their names.
    pub(super) missed: Option<(BTreeMap<String, u64>, u64)>,
}

impl Unchanged {
    fn has(&self, path: &Path) -> bool {
        is_any(&self.frozen, path)
            || self
                .missed
                .as_ref()
                .is_some_and(|(missed, group)| missed.get(&path.to_string()).copied().unwrap_or(0) != *group)
    }
}

/// Changes the learned tensors of the first values by the formula, but for those that stay. What differs in its sizes is an error, and nothing is changed then.
pub(super) fn update<P: Parameters, const M: usize, const N: usize>(
    formula: &impl Compiled<M, N>,
    changed: [&mut P; M],
    read: [&P; N],
    unchanged: &Unchanged,
) -> Result<(), DimError> {
    let Some(first) = changed.first().map(|value| &**value) else { return Ok(()) };
    let others = changed.iter().skip(1).map(|value| &**value).chain(read);
    for other in others {
        P::visit([], [first, other], &mut Path::new(), &mut SameSizes)?;
    }
    let frozen = &unchanged.frozen;
    if !frozen.is_empty() {
        let names = first.names();
        if let Some(name) = frozen.iter().find(|frozen| !names.iter().any(|name| is_in(frozen, name))) {
            return Err(DimError::Shape {
                what: format!("cannot freeze `{name}`: no parameter has this name"),
            });
        }
    }
    P::visit(changed, read, &mut Path::new(), &mut UpdatePass { formula: formula.passes(), unchanged })
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
        same_sizes(path, read)
    }
}

struct UpdatePass<'f, const M: usize, const N: usize> {
    formula: &'f dyn Passes<M, N>,
    unchanged: &'f Unchanged,
}

impl<const M: usize, const N: usize> Visitor<M, N> for UpdatePass<'_, M, N> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        mut changed: [&mut Named<T, S, R>; M],
        read: [&Named<T, S, R>; N],
    ) -> Result<(), DimError> {
        if !is_learned::<T>() || self.unchanged.has(path) {
            return Ok(());
        }
        let Some(first) = changed.first() else { return Ok(()) };
        let order = order_in_memory(first);
        for tensor in &mut changed {
            if let Some(copy) = lying_otherwise(tensor, &order)? {
                **tensor = copy;
            }
        }
        let mut copies: [Option<Named<T, S, R>>; N] = from_fn(|_| None);
        for (copy, tensor) in copies.iter_mut().zip(read) {
            *copy = lying_otherwise(tensor, &order)?;
        }
        let read = from_fn(|at| copies[at].as_ref().unwrap_or(read[at]).expr.all());
        let changed = changed.map(|tensor| tensor.expr.all_mut());
        let id = TypeId::of::<T>();
        if id == TypeId::of::<f32>() {
            let (changed, read) = floats(changed, read);
            self.formula.f32(changed, read);
        } else if id == TypeId::of::<f64>() {
            let (changed, read) = floats(changed, read);
            self.formula.f64(changed, read);
        } else {
            #[cfg(feature = "half")]
            if id == TypeId::of::<half::f16>() {
                let (changed, read) = floats(changed, read);
                self.formula.f16(changed, read);
            } else {
                let (changed, read) = floats(changed, read);
                self.formula.bf16(changed, read);
            }
        }
        Ok(())
    }
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
