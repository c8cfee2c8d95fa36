//! Jacobians and Hessians: all derivatives at once.

use crate::error::{DimError, no_derivative, unwrap};
use crate::execute::reduce::Reductions;
use crate::grad::loss::ScalarLoss;
use crate::grad::parameters::{Path, Walk};
use crate::grad::reverse::differentiated;
use crate::grad::variables::{Elements, Variables};
use crate::operators::restructure::Restructure;
use crate::operators::restructure::names::NamesFor;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::types::brand::{Brand, Rest};
use crate::types::condition::condition;
use crate::types::prime::Prime;
use crate::types::set::distinct::{SortOnce, SortedOnce};
use crate::types::set::list::List;
use crate::types::set::remove::Within;
use crate::types::set::{Bool, Dims, DimsOf, FirstWith, MaybeDim, NoDim, Satisfies, Union};
use alloc::vec::Vec;
use kernels::memory::buffer::Buffer;
use kernels::program::code::DType;
use kernels::scalar::Real;
use kernels::trace::{Field, Part, StridedPlace, evaluate, gradients};
use smallvec::SmallVec;
use twins::panicking_twin;

/// The dims of a Jacobian: the dims of the output and of the input `S`. A dim `N` of both is
/// `Prime<N>` for the input.
pub trait JacobianOf<S: Dims>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of the Jacobian.
    type Out: Dims;
}

impl<O, S> JacobianOf<S> for O
where
    O: Dims<List: FirstWith<Within<InputDims<O, S>>>> + Union<<InputDims<O, S> as List>::Tuple>,
    S: Dims<List: PrimedWithin<O::List, Out: SortOnce>>,
    NoDim<DimTwice<O, S>>: OncePerDim<DimTwice<O, S>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <O as Union<<InputDims<O, S> as List>::Tuple>>::Out;
}

/// The dims of the Jacobian of an output with the dims `O` with respect to an input with the dims
/// `S`.
pub type JacobianDims<O, S> = <O as JacobianOf<S>>::Out;

/// The dims of the input in the Jacobian, sorted.
type InputSorted<O, S> = <<<S as Dims>::List as PrimedWithin<<O as Dims>::List>>::Out as SortOnce>::Out;
/// [`InputSorted`] as a list.
type InputDims<O, S> = <InputSorted<O, S> as SortedOnce>::List;
/// The first dim that the Jacobian would have twice, or [`Nothing`](crate::types::set::Nothing).
type DimTwice<O, S> = <<<O as Dims>::List as FirstWith<Within<InputDims<O, S>>>>::Found as MaybeDim>::Or<
    <InputSorted<O, S> as SortedOnce>::Twice,
>;

/// The elements of a set, with primes in place of those in the list `L`.
pub trait PrimedWithin<L> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The elements, in their order.
    type Out;
}

impl<L> PrimedWithin<L> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = ();
}

#[diagnostic::do_not_recommend]
impl<H: Satisfies<Within<L>> + OtherAxis, T: PrimedWithin<L>, L> PrimedWithin<L> for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = (<H::Holds as Bool>::If<H::Prime, H>, T::Out);
}

/// An element of a set that can have a second axis.
pub trait OtherAxis {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The prime of a dim. A rest has none, and is unchanged.
    type Prime;
}

#[diagnostic::do_not_recommend]
impl<D: Brand> OtherAxis for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Prime = Prime<D>;
}

#[diagnostic::do_not_recommend]
impl<B> OtherAxis for Rest<B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Prime = Rest<B>;
}

condition! {
    /// The condition that no dim occurs twice.
    #[diagnostic::on_unimplemented(
        message = "the Jacobian would have the dim `{D}` twice",
        label = "a dim of the output and of the input is a prime in the Jacobian, and `{D}` is there already: rename a dim of the output, `y.rename(dim, other)`"
    )]
    pub trait OncePerDim<D> for True;
}

/// All derivatives of a tensor with respect to a tensor: `out[o, i] = d f(by)[o] / d by[i]`.
///
/// If the output and the input share a dim `N`, the Jacobian has `N` for the output and its
/// [prime](crate::types::prime), `Prime<N>`, for the input: `out[n, n'] = d f(by)[n] / d by[n']`.
/// This takes one backward pass for each element of the output.
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
///
/// let j: Tensor<f64, (In, Prime<In>)> = jacobian(|x: &Tensor<f64, (In,)>| (x * x.sum(In)).eval(), &x);
/// assert_eq!(j.order((In, prime(In))), ndarray::array![[4.0, 1.0], [2.0, 5.0]]);
/// ```
///
/// # Errors
///
/// If the result does not fit into memory.
#[panicking_twin]
pub fn try_jacobian<T: Real, S: Dims, O: JacobianOf<S>>(
    f: impl FnOnce(&Named<T, S>) -> Named<T, O>,
    by: &Named<T, S>,
) -> Result<Named<T, JacobianDims<O, S>>, DimError> {
    let mut variables = Variables::default();
    let traced = variables.tensor(&Path::new(), [by])?;
    let value = f(&traced);
    let (shape, input) = (value.unified_shape()?, traced.unified_shape()?);
    let (from, to) = (Elements::of(&traced.expr), Elements::of(&value.expr));
    // The result is stored with the output's dims first, then the input's, each in the order of its
    // set.
    let columns = S::KEYS.as_slice().iter().map(|key| match O::KEYS.position(key) {
        Some(_) => key.primed(key.name),
        None => *key,
    });
    let all = O::KEYS.as_slice().iter().copied().chain(columns);
    let place = |key| JacobianDims::<O, S>::KEYS.position(&key).expect("the dim is one of the Jacobian's");
    let order: SmallVec<[usize; 8]> = all.map(place).collect();
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

/// All second derivatives of a loss: `out[i', i] = d^2 f / d by[i'] d by[i]`, along each dim of the
/// input and along its [prime](crate::types::prime).
///
/// ```
/// use typed_dims::grad::hessian_primed;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; }
/// let x = from_vec(In.of(2), vec![1.0, 2.0]);
/// let h: Tensor<f64, (In, Prime<In>)> = hessian_primed(|x| (x * x * x).sum(In), &x);
/// assert_eq!(h.order((In, prime(In))), ndarray::array![[6.0, 0.0], [0.0, 12.0]]);
/// ```
///
/// [`hessian`] takes other dims for the second axes.
///
/// # Errors
///
/// If the loss does not depend on the input, or the result does not fit into memory.
#[panicking_twin]
pub fn try_hessian_primed<T: Real, S: JacobianOf<S, Out = H>, H: Dims, L: ScalarLoss>(
    f: impl Fn(&Named<T, S>) -> L,
    by: &Named<T, S>,
) -> Result<Named<T, H>, DimError> {
    slopes_of_slopes(f, by, |gradient| gradient)
}

/// All second derivatives of a loss: `out[i, j] = d^2 f / d by[i] d by[j]`. Along the rows, the
/// dims `old` of the input, a tuple, have the names `new`. For a dim that is not renamed, the
/// columns have its [prime](crate::types::prime).
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
/// # Errors
///
/// If the loss does not depend on the input, or the result does not fit into memory.
#[panicking_twin]
#[rustfmt::skip] // On one line because rustc quotes the function and the unmet bound from here.
pub fn try_hessian<T: Real, S: Dims, L: ScalarLoss, Old: DimsOf<S, X> + Copy, X: Dims, New: NamesFor<Old, S, X, Out: JacobianOf<S>> + Copy>(
    f: impl Fn(&Named<T, S>) -> L,
    by: &Named<T, S>,
    old: Old,
    new: New,
) -> Result<Named<T, JacobianDims<New::Out, S>>, DimError>
{
    slopes_of_slopes(f, by, |gradient| unwrap(unwrap(gradient.try_rename_all(old, new)).try_eval()))
}

/// The Jacobian of the gradient of a loss. `named` renames the gradient to the dims of the rows.
#[track_caller]
fn slopes_of_slopes<T: Real, S: Dims, L: ScalarLoss, O: JacobianOf<S>>(
    f: impl Fn(&Named<T, S>) -> L,
    by: &Named<T, S>,
    named: impl Fn(Named<T, S>) -> Named<T, O>,
) -> Result<Named<T, JacobianDims<O, S>>, DimError> {
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
            named(gradient)
        },
        by,
    );
    match failed {
        Some(error) => Err(error),
        None => rows,
    }
}
