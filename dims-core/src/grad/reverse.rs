//! Reverse mode: gradients, and pull-backs.

use crate::error::{DimError, Origin, no_own_derivative, unwrap};
use crate::expr::step::{is_recorded, unrecordable};
use crate::grad::inputs::Inputs;
use crate::grad::lent::{FunctionOf, Lend, LentOf};
use crate::grad::loss::{LossInMemory, ScalarLoss, number_of};
use crate::grad::parameters::{Parameters, Path};
use crate::grad::variables::{Collected, Detached, FloatPairs, Variables, detached};
use crate::tensors::named::Named;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::panic::Location;
use kernels::trace::{GradientCall, Gradients, Node, depends_on_others, gradients};
use twins::panicking_twin;

/// The gradient of a loss: `d f / d by`. For `&w`, it has the type of `w`.
///
/// `f` is called once, with tensors of the same types and sizes as those in `by`. Captured tensors
/// are constants.
///
/// ```
/// use typed_dims::grad::grad;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; }
/// let (w, b) = (from_vec(In.of(2), vec![1.0, -2.0]), from_vec(In.of(2), vec![0.5, 0.5]));
/// let (dw, db) = grad(|(w, b)| (w * b).relu().sum(In), (&w, &b));
/// assert_eq!(dw.order(In), ndarray::array![0.5, 0.0]);
/// assert_eq!(db.order(In), ndarray::array![1.0, 0.0]);
/// ```
///
/// # Errors
///
/// If `f` never reads a parameter, if no parameter has floats, if the loss is an expression that
/// cannot be computed, if a [custom pull-back](crate::grad::custom_vjp) fails, or if a result does
/// not fit into memory. An operation without a derivative that runs in `f` panics there, unless `f`
/// uses the `try_` form.
#[panicking_twin]
pub fn try_grad<P: Inputs, L: ScalarLoss<P>>(f: impl FunctionOf<P, L>, by: P) -> Result<P::Value, DimError> {
    differentiated::<P, P, L, (), ()>(|by| (f(by), ()), by, |_, _| ()).map(|((), gradient, ())| gradient)
}

/// The loss and its gradient.
///
/// # Errors
///
/// Those of [`try_grad`]. It is also an error if the loss depends on tensors of an outer gradient
/// or of an outer recorded function: use [`loss_and_grad`] there.
#[panicking_twin(but = "returns errors instead of panicking: see [`try_grad`]")]
pub fn try_value_and_grad<P: Inputs, L: ScalarLoss>(
    f: impl FunctionOf<P, L>,
    by: P,
) -> Result<(L::Elem, P::Value), DimError> {
    let (value, gradient, ()) = try_value_and_grad_with(|by| (f(by), ()), by)?;
    Ok((value, gradient))
}

/// The loss as a tensor, such as `Tensor<f32, ()>`, and its gradient.
///
/// Unlike the number that [`value_and_grad`] returns, the tensor can be differentiated or recorded
/// by an outer function. If the tensors in `by` have the extra dims `Rest<B>` of a batch, the loss
/// can have them too: one loss for each example.
///
/// ```
/// use typed_dims::grad::loss_and_grad;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; }
/// let w = from_vec(In.of(2), vec![1.0, -2.0]);
/// let (loss, dw) = loss_and_grad(|w| (w * w).sum(In), &w);
/// let mean: Tensor<f64, ()> = (loss / 2.0).eval();
/// assert_eq!(mean.order(()), 2.5);
/// assert_eq!(dw.order(In), ndarray::array![2.0, -4.0]);
/// ```
#[panicking_twin(but = "returns errors instead of panicking: see [`try_grad`]")]
pub fn try_loss_and_grad<P: Inputs, L: ScalarLoss<P>>(
    f: impl FunctionOf<P, L>,
    by: P,
) -> Result<(Named<L::Elem, L::Dims>, P::Value), DimError> {
    let (loss, gradient, ()) = try_loss_and_grad_with(|by| (f(by), ()), by)?;
    Ok((loss, gradient))
}

/// Like [`value_and_grad_with`], but returns the loss as a tensor: see [`loss_and_grad`].
#[panicking_twin(but = "returns errors instead of panicking: see [`try_grad`]")]
pub fn try_loss_and_grad_with<P: Inputs, L: ScalarLoss<P>, X>(
    f: impl FunctionOf<P, (L, X)>,
    by: P,
) -> Result<(Named<L::Elem, L::Dims>, P::Value, X), DimError> {
    let of_loss = |loss: Named<L::Elem, L::Dims>, depends_on_others: bool| match depends_on_others {
        true => Ok(loss),
        false => Ok::<_, DimError>(Named::from_expr(detached(&loss.expr)?)),
    };
    let (loss, gradient, beside) = differentiated::<P, P, L, X, _>(f, by, of_loss)?;
    Ok((loss?, gradient, beside))
}

/// The loss, its gradient, and the second value that the function returns. After the call, the
/// tensors of this value are constants, unless they depend on tensors of an outer gradient or of an
/// outer recorded function.
///
/// ```
/// use typed_dims::grad::value_and_grad_with;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; }
/// let w = from_vec(In.of(2), vec![1.0, -2.0]);
/// let (value, dw, count) = value_and_grad_with(|w| ((w * w).sum(In), w.gt(0.0).count(In)), &w);
/// assert_eq!((value, count.order(())), (5.0, 1));
/// assert_eq!(dw.order(In), ndarray::array![2.0, -4.0]);
/// ```
#[panicking_twin(but = "returns errors instead of panicking: see [`try_grad`]")]
pub fn try_value_and_grad_with<P: Inputs, L: ScalarLoss, X>(
    f: impl FunctionOf<P, (L, X)>,
    by: P,
) -> Result<(L::Elem, P::Value, X), DimError> {
    // A number cannot be part of an outer recording.
    let of_loss = |loss: Named<L::Elem, L::Dims>, depends_on_others: bool| {
        let value = if depends_on_others { None } else { number_of(&loss) };
        (value, is_recorded(loss.expr.buffer()))
    };
    let ((value, is_recorded), gradient, beside) = differentiated::<P, (), L, X, _>(f, by, of_loss)?;
    let Some(value) = value else {
        let operation = "value_and_grad";
        let why = "it returns a number; `loss_and_grad` returns the loss as a tensor";
        let remedy = "call `loss_and_grad`, which returns the loss as a tensor";
        return Err(if is_recorded {
            unrecordable(operation, why)
        } else {
            no_own_derivative(operation, remedy, &[])
        });
    };
    Ok((value, gradient, beside))
}

/// The result of `of_loss`, the gradient, and the second value that `f` returns. `of_loss` gets the
/// traced loss, and whether it depends on variables of an outer gradient or recorded function.
#[track_caller]
pub(super) fn differentiated<P: Inputs, Q, L: ScalarLoss<Q>, X, K>(
    f: impl for<'t> FnOnce(LentOf<'t, P>) -> (L, X),
    by: P,
    of_loss: impl FnOnce(Named<L::Elem, L::Dims>, bool) -> K,
) -> Result<(K, P::Value, X), DimError> {
    let mut variables = Variables::default();
    let (_in_place, traced) = by.variables(&mut Path::new(), &mut variables)?;
    variables.check()?;
    // `variables` is dropped before `_in_place`, like everything declared below. The memory is then
    // no longer shared when it becomes constant again, and need not be copied.
    let variables = variables;
    let (loss, beside) = f(<P as Lend<'_>>::lend(&traced));
    let LossInMemory { held, one, tensor } = loss.into_loss()?;
    let of_others = held.node().is_some_and(|node| depends_on_others(node, &[&variables.call]));
    // Replaying the steps frees them. The loss would keep them alive, so it is consumed first.
    let wanted = of_loss(tensor, of_others);
    let mut found = gradients(vec![(held, one)], &variables.nodes, &[&variables.call], false)?;
    let gradient = collected::<P>(&traced, &mut found, &variables.nodes, Some(Location::caller()))?;
    Ok((wanted, gradient, beside))
}

/// The gradients with respect to the variables in `traced`.
pub(super) fn collected<P: Inputs>(
    traced: &P::Value,
    gradients: &mut Gradients,
    nodes: &[Arc<Node>],
    refused: Origin,
) -> Result<P::Value, DimError> {
    P::walk_value(traced, &mut Path::new(), &mut Collected { gradients, nodes: nodes.iter(), refused })
}

/// The pull-back that [`try_vjp`] returns. It maps a cotangent of the value to a cotangent of the
/// inputs.
pub struct Pullback<P: Inputs, Y> {
    traced: P::Value,
    variables: Variables,
    value: Y,
}

impl<P: Inputs, Y: Parameters> Pullback<P, Y> {
    /// `cotangent * d f / d by`. The cotangent has the type and sizes of the value. Inputs on which
    /// the value does not depend get zeros.
    ///
    /// # Errors
    ///
    /// If the cotangent and the value differ in sizes or structure, a
    /// [custom pull-back](crate::grad::custom_vjp) fails, or memory runs out.
    #[panicking_twin]
    pub fn try_call(&self, cotangent: &Y) -> Result<P::Value, DimError> {
        pulled::<P, Y>(&self.traced, &self.variables, &self.value, cotangent)
    }
}

/// Pulls a cotangent of the value back to the variables in `traced`.
fn pulled<P: Inputs, Y: Parameters>(
    traced: &P::Value,
    Variables { nodes, call, .. }: &Variables,
    value: &Y,
    cotangent: &Y,
) -> Result<P::Value, DimError> {
    let mut pairs = FloatPairs::with_cotangent();
    Y::walk([value, cotangent], &mut Path::new(), &mut pairs)?;
    let mut found = gradients(pairs.pairs, nodes, &[call], false)?;
    collected::<P>(traced, &mut found, nodes, None)
}

/// The value of a function, and its pull-back: `dx = pullback(&dy)` with the cotangent `dy`, which
/// has the dims of the value.
///
/// ```
/// use typed_dims::grad::vjp;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; pub struct Out; }
/// let w = from_vec((In.of(2), Out.of(2)), vec![1.0, 2.0, 3.0, 4.0]);
/// let x = from_vec(In.of(2), vec![1.0, -1.0]);
/// let (y, pullback) = vjp(|x| (&w * x).sum(In), &x);
/// assert_eq!(y.order(Out), ndarray::array![-2.0, -2.0]);
/// let dx = pullback(&from_vec(Out.of(2), vec![1.0, 10.0]));
/// assert_eq!(dx.order(In), ndarray::array![21.0, 43.0]);
/// ```
///
/// The pull-back can outlive `f` and `by`. To send it to another thread, use [`try_vjp`].
///
/// # Panics
///
/// If [`try_vjp`] returns an error. The pull-back panics if [`Pullback::try_call`] would return an
/// error.
#[track_caller]
pub fn vjp<'p, P: Inputs<Value: 'p>, Y: Parameters + 'p>(
    f: impl FunctionOf<P, Y>,
    by: P,
) -> (Y, Box<dyn Fn(&Y) -> P::Value + 'p>) {
    let (shown, Pullback { traced, variables, value }) = unwrap(try_vjp(f, by));
    let pull = move |cotangent: &Y| unwrap(pulled::<P, Y>(&traced, &variables, &value, cotangent));
    (shown, Box::new(pull))
}

/// Like [`vjp`], but returns errors instead of panicking, and so does the pull-back.
///
/// # Errors
///
/// If memory runs out.
#[track_caller]
pub fn try_vjp<P: Inputs, Y: Parameters>(
    f: impl FunctionOf<P, Y>,
    by: P,
) -> Result<(Y, Pullback<P, Y>), DimError> {
    let mut variables = Variables::default();
    let traced = by.walk(&mut Path::new(), &mut variables)?;
    let value = f(<P as Lend<'_>>::lend(&traced));
    let shown = shown(&value, &variables.call)?;
    variables.call.end();
    Ok((shown, Pullback { traced, variables, value }))
}

/// The value that the caller gets. It remains traced only where it depends on variables of other
/// calls.
pub(super) fn shown<Y: Parameters>(value: &Y, call: &GradientCall) -> Result<Y, DimError> {
    Y::walk([value], &mut Path::new(), &mut Detached(is_of(call)))
}

/// Returns a predicate: whether a node depends only on variables of this call. (A function, so that
/// the type of the closure does not depend on that of the value.)
fn is_of(call: &GradientCall) -> impl Fn(&Arc<Node>) -> bool {
    move |node| !depends_on_others(node, &[call])
}
