//! The form in which a function gets the inputs of its gradient.

use crate::storage::View;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::Dims;

/// The values that [`Inputs`](crate::grad::Inputs) refer to, owned.
///
/// This trait and [`Lend`] are also implemented for types that are not
/// [`Inputs`](crate::grad::Inputs), such as references to other types, and tensors without `&`. So
/// rustc reports a wrong input only once, for [`Inputs`](crate::grad::Inputs).
pub trait Referring {
    /// The values.
    type Value;
}

/// The form in which the function gets [`Inputs`](crate::grad::Inputs) for the lifetime `'t`. The
/// parameter `Lives` implies that the inputs live that long.
pub trait Lend<'t, Lives = &'t Self>: Referring {
    /// References to the values.
    type Lent;
    #[doc(hidden)]
    fn lend(value: &'t Self::Value) -> Self::Lent;
}

/// The argument of a function with the inputs `P`.
pub type LentOf<'t, P> = <P as Lend<'t>>::Lent;

/// A function of the [`Inputs`](crate::grad::Inputs) `P` that returns a `Y`.
///
/// While rustc does not know `P`, it refuses `F: for<'t> FnOnce(LentOf<'t, P>)` for a parameter
/// such as `f: impl Fn(&P) -> Y`. [`InputsFor`] makes it wait for `P`: the bound is on `P`, not on
/// `F`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function of the inputs",
    label = "expected a function of the inputs, which come after it: `grad(|w| .., &w)`, `grad(|(w, b)| .., (&w, &b))`",
    note = "the function gets references: `f: impl Fn(&P) -> L`, or for two inputs `impl Fn((&P, &Q)) -> L`"
)]
pub trait FunctionOf<P: for<'t> Lend<'t>, Y>: for<'t> FnOnce(LentOf<'t, P>) -> Y {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<P: InputsFor<F, Y> + Alias<F, Itself = F>, Y, F: FunctionOfSome<P, Y>> FunctionOf<P, Y> for F {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Inputs of the function `F`.
pub trait InputsFor<F, Y>:
    for<'t> Lend<'t> + Alias<F, Itself: for<'t> FnOnce(LentOf<'t, Self>) -> Y>
{
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<P: for<'t> Lend<'t>, Y, F: for<'t> FnOnce(LentOf<'t, P>) -> Y> InputsFor<F, Y> for P {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// `F` as an associated type. From the bound of [`InputsFor`] on this type, rustc infers the bound
/// on `F`.
pub trait Alias<F> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// `F`.
    type Itself;
}

impl<P, F> Alias<F> for P {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Itself = F;
}

/// A function of the inputs for some lifetime. With this bound, rustc refuses an argument that is
/// not a function before it knows `P`.
pub trait FunctionOfSome<P, Y> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<'t, P: Lend<'t> + 't, Y, F: FnOnce(LentOf<'t, P>) -> Y> FunctionOfSome<P, Y> for F {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

impl<P> Referring for &P {
    type Value = P;
}

#[diagnostic::do_not_recommend]
impl<'t, P> Lend<'t> for &P {
    type Lent = &'t P;

    fn lend(value: &'t P) -> &'t P {
        value
    }
}

impl<P> Referring for &mut P {
    type Value = P;
}

#[diagnostic::do_not_recommend]
impl<'t, P> Lend<'t> for &mut P {
    type Lent = &'t P;

    fn lend(value: &'t P) -> &'t P {
        value
    }
}

impl<T, S: Dims, R: Rank> Referring for Named<T, S, R> {
    type Value = Self;
}

#[diagnostic::do_not_recommend]
impl<'t, T, S: Dims, R: Rank> Lend<'t> for Named<T, S, R> {
    type Lent = &'t Self;

    fn lend(value: &'t Self) -> &'t Self {
        value
    }
}

/// A view can be passed like a reference. The function gets a reference to an owned copy.
/// `#[batched]` passes views to a function's body.
impl<T, S: Dims, R: Rank> Referring for Named<T, S, R, View<'_, T, S, R>> {
    type Value = Named<T, S, R>;
}

#[diagnostic::do_not_recommend]
impl<'t, T, S: Dims, R: Rank> Lend<'t> for Named<T, S, R, View<'_, T, S, R>> {
    type Lent = &'t Named<T, S, R>;

    fn lend(value: &'t Named<T, S, R>) -> &'t Named<T, S, R> {
        value
    }
}

macro_rules! tuples {
    ($($p:ident $n:tt)*) => {
        impl<$($p: Referring),*> Referring for ($($p,)*) {
            type Value = ($($p::Value,)*);
        }

        #[diagnostic::do_not_recommend]
        impl<'t, $($p: Lend<'t>),*> Lend<'t> for ($($p,)*) {
            type Lent = ($($p::Lent,)*);

            fn lend(value: &'t Self::Value) -> Self::Lent {
                ($($p::lend(&value.$n),)*)
            }
        }
    };
}

crate::types::tuples::each_tuple_of_inputs!(tuples);
// A tuple of 13 is too long for `Inputs`. With these impls, rustc reports only that.
tuples! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 }
