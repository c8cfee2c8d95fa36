//! Batching of closures and functions: `vmap` and `batched`.

use super::applies::{Callee, Maps};
use super::closed::Apart;
use super::mapped::{Mapped, Unmapped};
use crate::error::{DimError, fail, unwrap};
use crate::types::dim::DimList;
use crate::types::set::{Dims, DimsOf, NoDim};
use alloc::boxed::Box;
use core::panic::Location;

/// Runs a closure written for one example on tensors with the extra dims `dims`.
///
/// The closure gets the tensors with those dims packed into `Rest`. If its result depends on those
/// dims, the result of `batched` has them again. Pass several tensors as a tuple; a tensor with
/// none of the dims and no `Rest` is passed unchanged.
///
/// ```text
/// batched(n, (&a, &b), |(a, b)| ..)          for n { .. a and b at n .. }
/// ```
///
/// There is no loop: the closure runs once, on all examples together.
///
/// # Panics
///
/// If the sizes of one of the dims differ, in the tensors or as given in `dims` (`n.of(7)`), if the
/// closure panics, or if it returns an expression that cannot be computed.
#[track_caller]
pub fn batched<D, X, F, Y>(dims: D, tensors: X, f: F) -> Y::Out
where
    D: DimList + DimsOf<X::All, X::Others>,
    X: Mapped<D>,
    F: FnOnce(X::Sealed) -> Y,
    Y: Unmapped,
    NoDim<Y::Clash>: Apart<Y::Clash>,
{
    unwrap(unwrap(tensors.seal(&dims).map(f)).try_open(Some(Location::caller())))
}

/// Converts the function `f`, written for one example, to a function of tensors with the extra dims
/// `dims`. This is the `vmap` of JAX and PyTorch, with dims in place of axis numbers.
///
/// The returned function takes an argument for each parameter of `f`, several as a tuple: bound
/// arrays, tensors, references to tensors, or expressions, which are computed. Dims choose the
/// mapped axes: bind `n` to the axis to map over, and name `n` in `order` where you want it in the
/// result.
///
/// ```text
/// JAX                                          here
/// vmap(f)(x)                                   vmap(f, n)(x.at((n, ..)))
/// vmap(f, in_axes=(1, None), out_axes=2)       vmap(f, n)((x.at((.., n)), y))  ..  .order((i, j, n))
/// ```
///
/// The types of `f`'s parameters decide what runs:
///
/// | a parameter whose argument has mapped dims | what runs |
/// |---|---|
/// | `Tensor<f32, (Seq, Rest<B>)>`, in a closure `Tensor<f32, (Seq, Rest<_>)>` | one call of `f`, on all examples together |
/// | `Tensor<f32, (Seq,)>` | a loop of calls, one for each example; [`explain`](crate::plan::explain::explain) shows the loop |
/// | `f32`, a number | a loop over the elements, as in `map`, if all parameters and results are numbers; otherwise a loop of calls |
/// | `Named<f32, S>`, generic over its set `S: Dims` | one call, in a closure: `batched(n, x, \|x\| f(&x))` |
///
/// `f` has up to 6 parameters. (For up to 12 tensors, use [`batched`].) Parameters are numbers,
/// tensors or references to tensors, `&Tensor<f32, (Seq,)>`. Each argument is computed or copied at
/// most once. In a loop, the tensors that `f` gets share the memory of the arguments; one that `f`
/// modifies is copied first. The parameter types of a function of one example fix its dims, so the
/// loop cannot become a single call. To avoid the loop, make the function generic over extra dims,
/// `fn dot<B: Dims>(x: &Tensor<f32, (Seq, Rest<B>)>, ..)`, or put `#[batched]` before it. A function
/// of arrays, `fn(&Array2<f32>, ..)`, cannot be mapped, because it binds their axes itself.
///
/// If `f` is generic over all dims of a parameter, it could run once or in a loop, and rustc
/// reports "type annotations needed". Call it in a closure of [`batched`], which runs once.
///
/// A function of numbers can be any Rust code, so it has no gradient: if its argument is traced,
/// the call panics. If you need the gradient, use tensors that have only the extra dims,
/// `Tensor<f32, (Rest<B>,)>`. Such a function runs once. With `Tensor<f32, ()>`, it runs in a loop
/// of calls.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { pub struct N; }
/// let (x, y) = (from_vec(N.of(3), vec![3.0, 5.0, 8.0]), from_vec(N.of(3), vec![4.0, 12.0, 15.0]));
/// let longest = vmap(|x: f64, y: f64| x.hypot(y), N)((&x, &y));
/// assert_eq!(longest.order(N), ndarray::array![5.0, 13.0, 17.0]);
///
/// fn area<B: Dims>(x: &Tensor<f64, (Rest<B>,)>, y: &Tensor<f64, (Rest<B>,)>) -> Tensor<f64, (Rest<B>,)> {
///     (x * y).eval()
/// }
/// assert_eq!(vmap(area, N)((&x, &y)).order(N), ndarray::array![12.0, 60.0, 120.0]);
/// ```
///
/// Operations that draw a number for each element of a tensor, such as `dropout` and `rand_like`,
/// draw the same numbers in a loop as in one call: each example gets those for its indices along
/// the mapped dims. In a loop, all tensors count as having the mapped dims, even if they do not
/// depend on the example. To draw the same numbers for all examples, draw from dims alone:
/// `rand(Feat.of(4), seed)`. Without the feature `std`, or if all parameters and results are
/// numbers, all calls of a loop draw the same numbers.
///
/// A closure passed to `vmap` must name the types of its parameters. [`batched`] infers them, and
/// copies no argument. A function with `#[batched]` takes extra dims without `vmap`.
///
/// # Panics
///
/// The returned function panics if the sizes of one of the dims differ, in the tensors or as given
/// in `dims` (`n.of(7)`), if no tensor gives the size of a dim, if an argument or the result cannot
/// be computed, or if `f` panics. A loop of calls also panics if the results of single examples
/// differ in size. Without examples, the sizes of a result's dims come from the tensors or are
/// static. The loop panics if neither gives a size, or if the result has positional axes. Unless
/// `f` panics, the message has the line of the call of `vmap`.
#[allow(clippy::multiple_bound_locations)] // rustc quotes the line of an unmet bound, so `DimsOf` is on the line of `fn`
#[track_caller]
pub fn vmap<'f, F: Callee<P, Y> + 'f, D: DimsOf<X::All, S>, X: Maps<D, P, Y, O>, P, Y, S, O>(
    f: F,
    dims: D,
) -> Mapper<'f, X, O>
where
    D: DimList + 'f,
    S: Dims,
{
    let place = Location::caller();
    Box::new(move |tensors: X| match X::try_map(tensors, &dims, &f, Some(place)) {
        Ok(result) => result,
        Err(error) => refused(error, place),
    })
}

/// A function from `X`, a tensor or a tuple of tensors, to `O`.
///
/// Its type names the lifetimes of `X`, so a borrowed argument must live as long as the function. A
/// tensor that is made in the same statement must be passed by value:
/// `vmap(f, n)((&x + 1.0).eval())`.
// (With `impl Fn(X) -> O`, rustc would report each mistake twice: for the bound, and for the opaque
// type, which has the same bounds.)
pub type Mapper<'f, X, O> = Box<dyn Fn(X) -> O + 'f>;

/// Panics for a call of a function that `vmap` returned at `place`.
#[cold]
#[inline(never)]
#[track_caller]
fn refused(error: DimError, place: &'static Location<'static>) -> ! {
    match error {
        // (Only steps of `vmap` itself return errors: `f` panics.)
        DimError::NoDerivative { operation, parameters, .. } => {
            fail(&DimError::NoDerivative { operation, origin: Some(place), parameters })
        }
        error => panic!("{error}, in a call of the function from `vmap` (at {place})"),
    }
}
