//! `scan`: a function applied step by step along a dim.

// rustc quotes the line of the unmet bound, so the bound on the role is on a short line.
#![allow(clippy::multiple_bound_locations)]

use crate::error::{DimError, unwrap};
use crate::operators::join::{Stacked, try_stack};
use crate::operators::restructure::{Remapped, Restructure};
use crate::tensors::named::position;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::dim::DimRef;
use crate::types::role::{DataTime, Plays};
use crate::types::set::rename::NotIn;
use crate::types::set::{Dims, DimsOf, Union};
use alloc::vec::Vec;

/// The state after all steps, and the outputs of the steps along `time`:
///
/// ```text
/// for t in time { (state, out at t) = step(state, x at t) }
/// ```
///
/// `step` takes the state and the elements of `x` at one position along `time`, which have all
/// other dims of `x`. It returns the next state and the output of the step.
///
/// The state can have any type: a tensor, a tuple of tensors, a struct. The output is one tensor or
/// expression; for a number, return `full((), number)`. An output that is an expression is computed
/// after the last step, when the outputs are stacked.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Time; struct Feat; }
/// let x = from_fn((Time.of(3), Feat.of(2)), |(t, f)| (t + 10 * f) as f64);
/// let start = (zeros::<f64, _>(Feat.of(2)), 0.0);
/// let ((sum, steps), means) = scan(&x, Time, start, |(sum, steps), x| {
///     let (sum, steps) = ((sum + x).eval(), steps + 1.0);
///     let mean = (&sum / steps).eval();
///     ((sum, steps), mean)
/// });
/// assert_eq!((sum.order(Feat), steps), (array![3.0, 33.0], 3.0));
/// assert_eq!(means.order((Time, Feat)), array![[0.0, 10.0], [0.5, 10.5], [1.0, 11.0]]);
/// ```
///
/// # Panics
///
/// If [`try_scan`] returns an error.
#[track_caller]
pub fn scan<A, D: Plays<DataTime>, X, S, Y>(
    x: A,
    time: D,
    state: S,
    mut step: impl FnMut(S, Remapped<A, X>) -> (S, Y),
) -> (S, Stacked<Y, D>)
where
    A: Computable + Copy,
    D: DimRef + DimsOf<A::Dims, X> + NotIn<<Y as AsTensor>::Dims>,
    X: Dims,
    Y: Computable<Dims: Union<(D::Brand,)>>,
{
    unwrap(try_scan(x, time, state, |state, x| Ok(step(state, x))))
}

/// Like [`scan`], but `step` can fail, and mistakes in sizes are errors. Having no steps is an
/// error, because the sizes of the outputs are unknown.
#[track_caller]
pub fn try_scan<A, D: Plays<DataTime>, X, S, Y>(
    x: A,
    time: D,
    state: S,
    mut step: impl FnMut(S, Remapped<A, X>) -> Result<(S, Y), DimError>,
) -> Result<(S, Stacked<Y, D>), DimError>
where
    A: Computable + Copy,
    D: DimRef + DimsOf<A::Dims, X> + NotIn<<Y as AsTensor>::Dims>,
    X: Dims,
    Y: Computable<Dims: Union<(D::Brand,)>>,
{
    let shape = x.into_named().unified_shape()?;
    shape.check_given(&time.info())?;
    let steps = shape.size(position(&shape, time.info()));
    let (mut state, mut outputs) = (state, Vec::new());
    for at in 0..steps {
        let (next, output) = step(state, x.try_index(time, at)?)?;
        state = next;
        outputs.push(output);
    }
    Ok((state, try_stack(time, outputs)?))
}
