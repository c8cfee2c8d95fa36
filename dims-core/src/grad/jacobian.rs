//! Jacobians and Hessians: all derivatives at once.

use crate::error::{DimError, no_derivative, unwrap};
use crate::execute::reduce::Reductions;
use crate::grad::loss::ScalarLoss;
use crate::grad::parameters::{Path, Walk};
use crate::grad::reverse::differentiated;
use crate::grad::variables::{Elements, Variables};
use crate::operators::restructure::Restructure;
use crate::operators::restructure::names::NamesFor;
use crate::plan::axes::AxisList;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::types::condition::condition;
use crate::types::set::remove::{Overlap, Within};
use crate::types::set::{Dims, DimsOf, FirstWith, NoDim, Union};
use alloc::vec::Vec;
use kernels::memory::buffer::Buffer;
use kernels::program::code::DType;
use kernels::scalar::Real;
use kernels::trace::{Field, Part, StridedPlace, evaluate, gradients};
use smallvec::SmallVec;

/// The dims of a Jacobian: those of the output and of the input, which must be others.
pub trait JacobianOf<S: Dims>: Union<S> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<O: Union<S>, S: Dims> JacobianOf<S> for O
where
    O::List: FirstWith<Within<S::List>>,
    NoDim<Overlap<O, S>>: OncePerDim<Overlap<O, S>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// All of them. (Of any two sets, so that a dim that both have is one error.)
pub type JacobianDims<O, S> = <O as Union<S>>::Out;

condition! {
    /// No dim is one of the output and of the input.
    #[diagnostic::on_unimplemented(
        message = "the Jacobian would have the dim `{D}` twice",
        label = "`{D}` is a dim of the output and of the input: rename it in the output, `y.rename({D}, other)`, or give the rows of a Hessian another name"
    )]
    pub trait OncePerDim<D> for True;
}

/// All derivatives of a tensor by a tensor: `out[o, i] = d f(by)[o] / d by[i]`. The dims of the output and the input must be others.
///
/// It takes one backward pass for each element of the output.
///
/// ```
/// use typed_dims::grad::jacobian;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; pub struct Out; }
/// let w = from_vec((In.of(2), Out.of(2)), vec![1.0, 2.0, 3.0, 4.0]);
/// let x = from_vec(In.of(2), vec![1.0, 2.0]);
/// let j: Tensor<f64, (Out, In)> = jacobian(|x: &Tensor<f64, (In,)>| (&w * x * x).sum(In), &x);
/// assert_eq!(j.order((Out, In)), ndarray::array![[2.0, 12.0], [4.0, 16.0]]);
/// ```
///
/// # Panics
///
/// Where [`try_jacobian`] returns an error.
#[track_caller]
pub fn jacobian<T: Real, S: Dims, O: JacobianOf<S>>(
    f: impl FnOnce(&Named<T, S>) -> Named<T, O>,
    by: &Named<T, S>,
) -> Named<T, JacobianDims<O, S>> {
    unwrap(try_jacobian(f, by))
}

/// As [`jacobian`], but what sizes decide is an error.
///
/// # Errors
///
/// If the result does not fit into memory.
#[track_caller]
pub fn try_jacobian<T: Real, S: Dims, O: JacobianOf<S>>(
    f: impl FnOnce(&Named<T, S>) -> Named<T, O>,
    by: &Named<T, S>,
) -> Result<Named<T, JacobianDims<O, S>>, DimError> {
    let mut variables = Variables::default();
    let traced = variables.tensor(&Path::new(), [by])?;
    let value = f(&traced);
    let (shape, input) = (value.unified_shape()?, traced.unified_shape()?);
    let (from, to) = (Elements::of(&traced.expr), Elements::of(&value.expr));
    // The result lies as the output's dims, then the input's, in the order of each set.
    let order: SmallVec<[usize; 8]> = [O::KEYS, S::KEYS]
        .into_iter()
        .flat_map(|keys| AxisList::of(keys, <JacobianDims<O, S> as Dims>::KEYS).as_slice().to_vec())
        .collect();
    let sizes: SmallVec<[usize; 8]> = shape.sizes().iter().chain(input.sizes()).copied().collect();
    let len = crate::plan::shape::volume(sizes.iter().copied(), size_of::<T>()).ok_or_else(|| {
        let dims = (0..shape.sizes().len()).chain(0..0);
        DimError::TooLarge {
            dims: format!(
                "{} and {}",
                shape.describe(&dims.collect::<Vec<_>>()),
                input.describe(&input.all_axes())
            ),
        }
    })?;
    let (rows, columns) = (shape.volume(&shape.all_axes(), 1)?, input.volume(&input.all_axes(), 1)?);
    let mut parts: Vec<Part> = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut cotangent = alloc::vec![T::ZERO; to.held.len()];
        cotangent[to.at(row)] = T::ONE;
        let outputs = vec![(to.held.clone(), Buffer::from(cotangent).held())];
        let mut found = gradients(outputs, &variables.nodes, &[&variables.call], false)?;
        let Some(gradient) = found.take(&variables.nodes[0]) else { continue };
        let field = Field::held(from.sizes(), &gradient, from.place().clone());
        let all: SmallVec<[usize; 8]> = (0..from.sizes().len()).collect();
        let mut place = StridedPlace::contiguous(from.sizes(), &all);
        place.offset = (row * columns) as isize;
        parts.push(Part { field, place });
    }
    let dtype = DType::of::<T>().ok_or_else(|| no_derivative(core::any::type_name::<T>(), &[]))?;
    let data = evaluate(&parts, len, dtype, true)?;
    let data = Buffer::of_held(&data).expect("the derivatives are of the type of the tensor");
    Ok(Named::from_expr(Evaluated::in_order(data, &order, &sizes)))
}

/// All second derivatives of a loss: `out[i, j] = d^2 f / d by[i] d by[j]`. A tensor has a dim once, so the dims `old` of the input, a tuple, have the names `new` along the rows.
///
/// ```
/// use typed_dims::grad::hessian;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; pub struct In2; }
/// let x = from_vec(In.of(2), vec![1.0, 2.0]);
/// let h: Tensor<f64, (In, In2)> = hessian(|x| (x * x * x).sum(In), &x, (In,), (In2,));
/// assert_eq!(h.order((In2, In)), ndarray::array![[6.0, 0.0], [0.0, 12.0]]);
/// ```
///
/// # Panics
///
/// Where [`try_hessian`] returns an error.
#[track_caller]
#[rustfmt::skip] // rustc quotes from here the function and the bound that is not met: in one line, if they stand in one.
pub fn hessian<T: Real, S: Dims, L: ScalarLoss, Old: DimsOf<S, X> + Copy, X: Dims, New: NamesFor<Old, S, X, Out: JacobianOf<S>> + Copy>(
    f: impl Fn(&Named<T, S>) -> L,
    by: &Named<T, S>,
    old: Old,
    new: New,
) -> Named<T, JacobianDims<New::Out, S>> {
    unwrap(try_hessian(f, by, old, new))
}

/// As [`hessian`], but what sizes decide is an error.
///
/// # Errors
///
/// If the loss does not depend on the input, or the result does not fit into memory.
#[track_caller]
pub fn try_hessian<T, S, L, Old, New, X>(
    f: impl Fn(&Named<T, S>) -> L,
    by: &Named<T, S>,
    old: Old,
    new: New,
) -> Result<Named<T, JacobianDims<New::Out, S>>, DimError>
where
    T: Real,
    S: Dims,
    L: ScalarLoss,
    Old: DimsOf<S, X> + Copy,
    X: Dims,
    New: NamesFor<Old, S, X, Out: JacobianOf<S>> + Copy,
{
    let mut failed = None;
    let rows = try_jacobian(
        |by: &Named<T, S>| {
            let gradient = match differentiated::<_, (), L, (), ()>(|by| (f(by), ()), by, |_, _| ()) {
                Ok(((), gradient, ())) => gradient,
                Err(error) => {
                    failed = Some(error);
                    by.clone()
                }
            };
            unwrap(unwrap(gradient.try_rename_all(old, new)).try_eval())
        },
        by,
    );
    match failed {
        Some(error) => Err(error),
        None => rows,
    }
}
