//! The values that gradients are taken by, as functions get them.

use crate::storage::View;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::Dims;

/// The values that [`Inputs`](crate::grad::Inputs) refer to, owned.
///
/// This trait and [`Lend`] are implemented for all references, and for parameters without the `&`, though no gradient is taken by these: so a wrong input is one
/// error, that of [`Inputs`](crate::grad::Inputs); the other two traits report no further errors.
pub trait Referring {
    /// The values.
    type Value;
}

/// [`Inputs`](crate::grad::Inputs), as the function gets them for the lifetime `'t`. (The last parameter says that they live so long.)
pub trait Lend<'t, Lives = &'t Self>: Referring {
    /// References to the values.
    type Lent;
    #[doc(hidden)]
    fn lend(value: &'t Self::Value) -> Self::Lent;
}

/// What the function gets.
pub type LentOf<'t, P> = <P as Lend<'t>>::Lent;

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

/// A view is a reference to a tensor, with other axes: the function gets a tensor in memory of its own. (What `#[batched]` hands to a body are views.)
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
// One more, so that the message about it is that of `Inputs` alone.
tuples! { D0 0 D1 1 D2 2 D3 3 D4 4 D5 5 D6 6 D7 7 D8 8 D9 9 D10 10 D11 11 D12 12 }
