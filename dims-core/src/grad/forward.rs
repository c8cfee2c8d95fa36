//! Forward mode and products with Hessians, both computed as gradients of gradients.

use crate::error::{DimError, Origin};
use crate::grad::inputs::Inputs;
use crate::grad::lent::{FunctionOf, Lend};
use crate::grad::loss::{LossInMemory, ScalarLoss};
use crate::grad::parameters::{Parameters, Path};
use crate::grad::reverse::{collected, shown};
use crate::grad::variables::{Collected, Directed, FloatPairs, Variables};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::panic::Location;
use kernels::trace::{Gradients, Held, Node, gradients};
use twins::panicking_twin;

/// The value of a function, and its directional derivative: `d f(by + t * direction) / d t` at
/// `t = 0`.
///
/// ```
/// use typed_dims::grad::jvp;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; }
/// let (x, dx) = (from_vec(In.of(2), vec![1.0, 2.0]), from_vec(In.of(2), vec![1.0, 10.0]));
/// let (y, dy) = jvp(|x| x.square().eval(), &x, &dx);
/// assert_eq!(y.order(In), ndarray::array![1.0, 4.0]);
/// assert_eq!(dy.order(In), ndarray::array![2.0, 40.0]);
/// ```
///
/// # Errors
///
/// If the direction and the input differ in sizes or structure, or memory runs out.
#[panicking_twin]
pub fn try_jvp<P: Inputs, Y: Parameters>(
    f: impl FunctionOf<P, Y>,
    by: P,
    direction: P,
) -> Result<(Y, Y), DimError> {
    let mut variables = Variables::default();
    let traced = by.walk(&mut Path::new(), &mut variables)?;
    let value = f(<P as Lend<'_>>::lend(&traced));
    // The pull-back is linear in its cotangent, and the pull-back of the pull-back is the
    // directional derivative. So any cotangent will do.
    let mut cotangents = Variables::default();
    let cotangent = Y::walk([&value.try_zero()?], &mut Path::new(), &mut cotangents)?;
    let own = [&*variables.call, &*cotangents.call];
    let mut pairs = FloatPairs::with_cotangent();
    Y::walk([&value, &cotangent], &mut Path::new(), &mut pairs)?;
    let mut found = gradients(pairs.pairs, &variables.nodes, &own, true)?;
    let outputs = towards::<P>(direction, &traced, &mut found, &variables.nodes, None)?;
    let mut slopes = gradients(outputs, &cotangents.nodes, &own, false)?;
    let nodes = cotangents.nodes.iter();
    let slope = Y::walk(
        [&cotangent],
        &mut Path::new(),
        &mut Collected { gradients: &mut slopes, nodes, refused: None },
    )?;
    Ok((shown(&value, &variables.call)?, slope))
}

/// The Hessian of a loss times a direction: `d (gradient of f at by + t * direction) / d t` at
/// `t = 0`.
///
/// ```
/// use typed_dims::grad::hvp;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; }
/// let (x, v) = (from_vec(In.of(2), vec![1.0, 2.0]), from_vec(In.of(2), vec![1.0, 1.0]));
/// let product = hvp(|x| x.powi(3).sum(In), &x, &v);
/// assert_eq!(product.order(In), ndarray::array![6.0, 12.0]);
/// ```
///
/// # Errors
///
/// If the direction and the input differ in sizes or structure, `f` never reads a parameter, no
/// parameter has floats, or memory runs out.
#[panicking_twin]
pub fn try_hvp<P: Inputs, L: ScalarLoss>(
    f: impl FunctionOf<P, L>,
    by: P,
    direction: P,
) -> Result<P::Value, DimError> {
    let mut variables = Variables::default();
    let traced = by.walk(&mut Path::new(), &mut variables)?;
    variables.check()?;
    let LossInMemory { held, one, .. } = f(<P as Lend<'_>>::lend(&traced)).into_loss()?;
    let outputs = vec![(held, one)];
    let mut found = gradients(outputs, &variables.nodes, &[&variables.call], true)?;
    let here = Some(Location::caller());
    let outputs = towards::<P>(direction, &traced, &mut found, &variables.nodes, here)?;
    let mut products = gradients(outputs, &variables.nodes, &[&variables.call], false)?;
    collected::<P>(&traced, &mut products, &variables.nodes, None)
}

/// The gradients with respect to variables, each with the direction of its variable as the
/// cotangent.
fn towards<P: Inputs>(
    direction: P,
    traced: &P::Value,
    gradients: &mut Gradients,
    variables: &[Arc<Node>],
    refused: Origin,
) -> Result<Vec<(Arc<dyn Held>, Arc<dyn Held>)>, DimError> {
    let mut directed = Directed { gradients, nodes: variables.iter(), refused, pairs: Vec::new() };
    direction.walk_with(traced, &mut Path::new(), &mut directed)?;
    Ok(directed.pairs)
}
