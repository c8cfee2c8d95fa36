//! Closures and functions batched in place: `vmap` and `batched`.

use super::applies::{Callee, Maps};
use super::closed::Apart;
use super::mapped::{Mapped, Unmapped};
use crate::error::unwrap;
use crate::types::dim::DimList;
use crate::types::set::{Dims, DimsOf, NoDim};
use alloc::boxed::Box;

/// Runs a closure that is written for one example on tensors that have the further dims `dims`.
///
/// The closure sees the tensors without those dims, which are behind `Rest`; what it returns has them again, but where it does not
/// depend on them. Several tensors go in as a tuple; one that has none of the dims goes in as it is.
///
/// ```text
/// batched(n, (&a, &b), |(a, b)| ..)          for n { .. a and b at n .. }
/// ```
///
/// Nothing is looped over: what the closure does is planned for all examples together.
///
/// # Panics
///
/// If the tensors have different sizes for one of the dims, if none says the size of one of them, or if the closure panics.
#[track_caller]
pub fn batched<D, X, F, Y>(dims: D, tensors: X, f: F) -> Y::Out
where
    D: DimList + DimsOf<X::All, X::Others>,
    X: Mapped<D>,
    F: FnOnce(X::Sealed) -> Y,
    Y: Unmapped,
    NoDim<Y::Clash>: Apart<Y::Clash>,
{
    unwrap(unwrap(tensors.seal(&dims).map(f)).try_open())
}

/// The function `f`, written for one example, as a function of tensors that have the further dims `dims`: the `vmap` of JAX and
/// PyTorch, with dims in the place of axis numbers.
///
/// It takes one tensor, or a tuple of as many as `f` takes: bound arrays, tensors, references to them, or expressions, which are computed. In
/// and out, the mapped axes are chosen by the dims: bind `n` to whichever axis is mapped over, and ask for it in `order` where it shall be in
/// the result.
///
/// ```text
/// JAX                                          here
/// vmap(f)(x)                                   vmap(f, n)(x.at((n, ..)))
/// vmap(f, in_axes=(1, None), out_axes=2)       vmap(f, n)((x.at((.., n)), y))  ..  .order((i, j, n))
/// ```
///
/// What the parameters of `f` are decides what runs:
///
/// | a parameter | what runs |
/// |---|---|
/// | `Tensor<f32, (Seq, Rest<B>)>`, in a closure `Tensor<f32, (Seq, Rest<_>)>` | one call: what `f` does is planned for all examples together |
/// | `Tensor<f32, (Seq,)>` | a loop of calls, one for each example, and [`explain`](crate::plan::explain::explain) says so: such a function can only be called on one |
/// | `Named<f32, S>`, generic over its set `S: Dims` | one call, in a closure: `batched(n, x, \|x\| f(&x))` |
///
/// Parameters are tensors or references to tensors, `&Tensor<f32, (Seq,)>`. Each argument is computed or copied once for either. In a loop, each
/// example is a part of that memory, and shares it with all others, until the function changes it; so it does with a tensor that is not mapped. A loop cannot become
/// one call by itself: the type of such a function fixes its dims, and its body is compiled for tensors without a further axis. To make one call of a loop, write the function
/// generic over further dims, `fn dot<B: Dims>(x: &Tensor<f32, (Seq, Rest<B>)>, ..)`, or put `#[batched]` before it. A function of arrays,
/// `fn(&Array2<f32>, ..)`, cannot be called with bound arrays, nor be mapped: it binds their axes itself, and has no place for one more.
///
/// A function that is generic over the set of a parameter could be called either way, so rustc says "type annotations needed". Call it in a closure of
/// [`batched`], which is called once.
///
/// Operations that draw for the elements of a tensor, `dropout` and `rand_like` among them, draw the same numbers in a loop as in one call: for each example, those of its
/// indices along the mapped dims. A loop cannot tell what depends on the example, so all tensors count as if they had the mapped dims. To draw
/// the same numbers for all examples, draw from dims alone: `rand(Feat.of(4), seed)`. (Without the feature `std`, all calls of a loop draw the same.)
///
/// A closure names the types of its parameters. [`batched`] infers them, and copies nothing; a function with `#[batched]` takes further dims as it
/// is.
///
/// # Panics
///
/// The function that is returned panics if the tensors have different sizes for one of the dims, if none says the size of one of them, and if
/// `f` panics. A loop of calls also does if the results of single examples differ in size, or if there is no example, so that nothing says how
/// large results are: dims of the tensors are as large as there, and static sizes are known.
#[allow(clippy::multiple_bound_locations)] // rustc quotes the line of a bound that does not hold: for `D` that of `DimsOf`
#[track_caller]
pub fn vmap<'f, F: Callee<P, Y> + 'f, D: DimsOf<X::All, S>, X: Maps<D, P, Y, O>, P, Y, S, O>(
    f: F,
    dims: D,
) -> Mapper<'f, X, O>
where
    D: DimList + 'f,
    S: Dims,
{
    Box::new(move |tensors: X| unwrap(X::try_map(tensors, &dims, &f)))
}

/// A function of `X`, one tensor or a tuple of them, that yields `O`.
pub type Mapper<'f, X, O> = Box<dyn Fn(X) -> O + 'f>;
