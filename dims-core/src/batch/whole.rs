//! `whole(f)`: functions that are generic over the sets of their parameters, for `vmap`.
//!
//! The type of such a function does not say whether it sees one example or all of them, so rustc would have to guess. A parameter of [`Whole`] is
//! [`InWhole`], for which there is one way alone.

use super::applies::{Callee, Given, Reference, Together, Way};
use super::argument::Further;
use super::vmap::MappedOne;
use crate::error::DimError;
use crate::execute::reduce::{TensorOf, evaluated};
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::Dims;

/// A function that is generic over the sets of its parameters, for [`vmap`](super::vmap()): `vmap(whole(f), n)` calls it once, with all examples
/// together.
///
/// Where an argument has mapped dims, `S` is the dims of one example and a `Rest` for those. Each parameter is a [`Named`] or a reference to one. A
/// parameter `Tensor<f32, S>` is not enough: from a tensor rustc cannot tell in which order `S` has its dims.
///
/// ```text
/// fn logistic<S: Dims>(x: &Named<f32, S>) -> Named<f32, S>
///
/// vmap(whole(logistic), n)(x.at((n, Seq)))            S = (Seq, Rest<(n,)>)
/// ```
///
/// `batched(n, x, |x| logistic(&x))` does the same in a closure.
pub fn whole<F>(f: F) -> Whole<F> {
    Whole(f)
}

/// A function that is called with all examples together, whatever the dims of its parameters: see [`whole`].
pub struct Whole<F>(F);

/// A parameter `P` of a [`Whole`] function. It is the sealed tensor, which tells rustc the dims of a parameter that is generic over them.
pub struct InWhole<P>(P);

impl<A, P, D, M, X> Given<InWhole<P>, D, M> for A
where
    A: Computable,
    M: Dims,
    D: DimList,
    TensorOf<A>: MappedOne<D, M, Sealed = X>,
    X: Fills<P>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Way = X::Way;
    type Held = TensorOf<A>;
    type Sealed = X;

    fn hold(argument: Self) -> Result<Self::Held, DimError> {
        evaluated(argument)
    }

    fn unify(held: &Self::Held, further: &mut Further<M>) -> Result<(), DimError> {
        MappedOne::unify(held, further)
    }

    fn seal(held: Self::Held, further: &Further<M>) -> X {
        MappedOne::seal(held, further)
    }

    fn whole(sealed: X) -> InWhole<P> {
        InWhole(sealed.fill())
    }

    fn one(_: &X, _: &[usize]) -> InWhole<P> {
        unreachable!("a function in `whole` is called once")
    }

    fn size(_: &X, _: u64) -> Option<usize> {
        None
    }
}

/// A sealed tensor is the parameter `P` of a [`Whole`] function, or `P` is a reference to it.
#[diagnostic::on_unimplemented(
    message = "the function in `whole` takes `{P}`, but is called with `{Self}`",
    label = "the parameter's type is not that of all examples together",
    note = "in `whole`, a parameter is generic over its set, `fn f<S: Dims>(x: &Named<f32, S>)`, or has a `Rest`; map a function of one example without `whole`: `vmap(f, n)`"
)]
pub trait Fills<P> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`Together`]. (Where the parameter has another type, nothing else is said about the way.)
    type Way: Way;
    #[doc(hidden)]
    fn fill(self) -> P;
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims, R: Rank> Fills<Named<T, S, R>> for Named<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Way = Together;

    fn fill(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims, R: Rank> Fills<Reference<Named<T, S, R>>> for Named<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Way = Together;

    fn fill(self) -> Reference<Self> {
        Reference::Own(self)
    }
}

macro_rules! callees {
    ($($p:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<Function, Result_, $($p),*> Callee<($(InWhole<$p>,)*), Result_> for Whole<Function>
        where
            Function: Callee<($($p,)*), Result_>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            fn call(&self, params: ($(InWhole<$p>,)*)) -> Result_ {
                self.0.call(($(params.$n.0,)*))
            }
        }
    };
}

callees!(P 0);
callees!(P 0 Q 1);
callees!(P 0 Q 1 U 2);
callees!(P 0 Q 1 U 2 V 3);
callees!(P 0 Q 1 U 2 V 3 W 4);
callees!(P 0 Q 1 U 2 V 3 W 4 Z 5);
