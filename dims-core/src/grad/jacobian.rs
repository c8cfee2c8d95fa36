//! Jacobians and Hessians: all derivatives at once.

use crate::error::{DimError, unwrap};
use crate::execute::reduce::Reductions;
use crate::grad::blocks::{
    ComputedBlocks, ComputedRows, HessianInputs, JacobianInputs, ParameterColumns, rows_of,
};
use crate::grad::jacobian_dims::{JacobianDims, JacobianOf, OncePerDim, OncePerDimOfHessian};
use crate::grad::lent::{FunctionOf, Lend, LentOf};
use crate::grad::loss::{LossInMemory, ScalarLoss};
use crate::grad::parameters::Path;
use crate::grad::reverse::differentiated;
use crate::grad::variables::{Elements, Variables};
use crate::operators::restructure::Restructure;
use crate::operators::restructure::names::NamesFor;
use crate::tensors::named::Named;
use crate::types::set::{Dims, DimsOf, MaybeDim, NoDim};
use alloc::vec::Vec;
use core::panic::Location;
use kernels::memory::buffer::Buffer;
use kernels::scalar::{Num, Real};
use kernels::trace::gradients;
use twins::panicking_twin;

/// All derivatives of a tensor with respect to its inputs: `out[o, i] = d f(by)[o] / d by[i]`.
///
/// If the output and the input share a dim `N`, the Jacobian has `N` for the output and its
/// [prime](crate::types::prime), `Prime<N>`, for the input: `out[n, n'] = d f(by)[n] / d by[n']`.
/// A Jacobian takes one backward pass for each element of the output.
///
/// ```
/// use typed_dims::grad::jacobian;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; pub struct Out; }
/// let w = from_vec((In.of(2), Out.of(2)), vec![1.0, 2.0, 3.0, 4.0]);
/// let x = from_vec(In.of(2), vec![1.0, 2.0]);
/// let j: Tensor<f64, (Out, In)> = jacobian(|x| (&w * x * x).sum(In), &x);
/// assert_eq!(j.order((Out, In)), ndarray::array![[2.0, 12.0], [4.0, 16.0]]);
///
/// let j: Tensor<f64, (In, Prime<In>)> = jacobian(|x| (x * x.sum(In)).eval(), &x);
/// assert_eq!(j.order((In, prime(In))), ndarray::array![[4.0, 1.0], [2.0, 5.0]]);
/// ```
///
/// With respect to a tuple of references, the Jacobian is a tuple with a block for each. With
/// respect to a reference to a struct of parameters, it is
/// [`JacobianBlocks`](crate::grad::JacobianBlocks).
///
/// ```
/// # use typed_dims::grad::jacobian;
/// # use typed_dims::prelude::*;
/// # dims! { pub struct In; pub struct Out; }
/// let (x, w) = (from_vec(In.of(2), vec![1.0, 2.0]), ones((In.of(2), Out.of(2))));
/// let (by_x, by_w) = jacobian(|(x, w)| (x * w).sum(In), (&x, &w));
/// let by_x: Tensor<f64, (In, Out)> = by_x;
/// let by_w: Tensor<f64, (In, Out, Prime<Out>)> = by_w;
/// assert_eq!(by_x.order((Out, In)), ndarray::array![[1.0, 1.0], [1.0, 1.0]]);
/// assert_eq!(by_w.order((Out, prime(Out), In))[[1, 1, 1]], 2.0);
/// ```
///
/// # Errors
///
/// If the result does not fit into memory, or the parameters of a struct do not have the element
/// type of the output.
#[panicking_twin]
#[rustfmt::skip] // rustc quotes the next line in errors
pub fn try_jacobian<P: JacobianInputs<T, O, Twice = W>, T: Real, O: Dims, W: MaybeDim<IsMissing: OncePerDim<W>>>(
    f: impl FunctionOf<P, Named<T, O>>,
    by: P,
) -> Result<P::Jacobian, DimError> {
    jacobian_of::<P, T, O>(f, by)
}

fn jacobian_of<P: JacobianInputs<T, O>, T: Real, O: Dims>(
    f: impl for<'t> FnOnce(LentOf<'t, P>) -> Named<T, O>,
    by: P,
) -> Result<P::Jacobian, DimError> {
    let mut variables = Variables::default();
    let traced = by.walk(&mut Path::new(), &mut variables)?;
    let value = f(<P as Lend<'_>>::lend(&traced));
    let shape = value.unified_shape()?;
    let output = Elements::of(&value.expr);
    let described = || shape.describe(&shape.all_axes());
    let mut columns = ParameterColumns::new::<T>(shape.volume(&shape.all_axes(), 1)?, &described);
    P::walk_value(&traced, &mut Path::new(), &mut columns)?;
    let blocks = rows_of(&output, &variables, &columns)?;
    P::blocks(&traced, &mut ComputedBlocks::new(shape.sizes(), blocks))
}

/// All second derivatives of a loss: `out[i, i'] = d^2 f / d by[i] d by[i']`, along each dim of the
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
/// [`hessian`] lets you name other dims for the rows.
///
/// With respect to a tuple of references to tensors, the Hessian is a tuple with a row for each,
/// and each row is a tuple of blocks. With respect to a reference to a struct of parameters, it is
/// [`HessianBlocks`](crate::grad::HessianBlocks). In a block, a dim `N` that both tensors have is
/// `N` for the row and `Prime<N>` for the column.
///
/// ```
/// # use typed_dims::grad::hessian_primed;
/// # use typed_dims::prelude::*;
/// # dims! { pub struct In; pub struct Out; }
/// let (x, y) = (from_vec(In.of(2), vec![1.0, 2.0]), from_vec(Out.of(1), vec![3.0]));
/// let ((xx, xy), (yx, yy)) = hessian_primed(|(x, y)| (x.square() * y).sum((In, Out)), (&x, &y));
/// let xx: Tensor<f64, (In, Prime<In>)> = xx;
/// let xy: Tensor<f64, (In, Out)> = xy;
/// assert_eq!(xx.order((In, prime(In))), ndarray::array![[6.0, 0.0], [0.0, 6.0]]);
/// assert_eq!(xy.order((In, Out)), ndarray::array![[2.0], [4.0]]);
/// assert_eq!(yx.order((Out, In)), ndarray::array![[2.0, 4.0]]);
/// assert_eq!(yy.order((Out, prime(Out))), ndarray::array![[0.0]]);
/// ```
///
/// # Errors
///
/// If `f` never reads a parameter, the parameters of a struct do not have the element type of the
/// loss, no parameter has floats, or the result does not fit into memory.
#[panicking_twin]
#[rustfmt::skip] // rustc quotes the next line in errors
pub fn try_hessian_primed<P: HessianInputs<L::Elem, Twice = W>, L: ScalarLoss, W: MaybeDim<IsMissing: OncePerDimOfHessian<W>>>(
    f: impl FunctionOf<P, L>,
    by: P,
) -> Result<P::Hessian, DimError> {
    let mut variables = Variables::default();
    let traced = by.walk(&mut Path::new(), &mut variables)?;
    variables.check()?;
    let LossInMemory { held, one, .. } = f(<P as Lend<'_>>::lend(&traced)).into_loss()?;
    // The gradient is recorded, because it is differentiated again.
    let mut found = gradients(vec![(held, one)], &variables.nodes, &[&variables.call], true)?;
    let mut rows = Vec::with_capacity(variables.nodes.len());
    for (at, (node, own)) in variables.nodes.iter().zip(&variables.elements).enumerate() {
        let len: usize = own.sizes().iter().product();
        let described = || format!("{len} elements");
        let mut columns = ParameterColumns::new::<P::Elem>(len, &described);
        P::walk_value(&traced, &mut Path::new(), &mut columns)?;
        let output = match found.take(node) {
            Some(gradient) => own.with_held(gradient),
            None if node.is_read() || len == 0 => {
                let zeros = alloc::vec![P::Elem::ZERO; own.held.len()];
                own.with_held(Buffer::from(zeros).held())
            }
            None => {
                let parameter = columns.names.swap_remove(at);
                return Err(DimError::Unused { parameter, origin: Some(Location::caller()) });
            }
        };
        rows.push((own.sizes().to_vec(), rows_of(&output, &variables, &columns)?));
    }
    P::blocks(&traced, &mut ComputedRows(rows.into_iter()))
}

/// All second derivatives of a loss: `out[i, j] = d^2 f / d by[i] d by[j]`. The rows have the dims
/// of the input, with the dims of the tuple `old` renamed to those of the tuple `new`. For a dim
/// that is not renamed, the columns have its [prime](crate::types::prime).
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
/// If `f` never reads the input, or the result does not fit into memory. The function panics if a
/// dim of `old` or `new` already has a size that is not the input's.
#[panicking_twin]
#[rustfmt::skip] // On one line because rustc quotes the function and the unmet bound from here.
pub fn try_hessian<T: Real, S: Dims, L: ScalarLoss, Old: DimsOf<S, X> + Copy, X: Dims, New: NamesFor<Old, S, X, Out: JacobianOf<S>> + Copy>(
    f: impl Fn(&Named<T, S>) -> L,
    by: &Named<T, S>,
    old: Old,
    new: New,
) -> Result<Named<T, JacobianDims<New::Out, S>>, DimError>
where NoDim<<New::Out as JacobianOf<S>>::Twice>: OncePerDimOfHessian<<New::Out as JacobianOf<S>>::Twice>,
{
    slopes_of_slopes(f, by, |gradient| unwrap(unwrap(gradient.try_rename_all(old, new)).try_eval()))
}

/// The Jacobian of the gradient of a loss. `named` renames the dims of the gradient to those of the
/// rows.
#[track_caller]
fn slopes_of_slopes<T: Real, S: Dims, L: ScalarLoss, O: JacobianOf<S>>(
    f: impl Fn(&Named<T, S>) -> L,
    by: &Named<T, S>,
    named: impl Fn(Named<T, S>) -> Named<T, O>,
) -> Result<Named<T, JacobianDims<O, S>>, DimError> {
    let mut failed = None;
    let rows = jacobian_of(
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
