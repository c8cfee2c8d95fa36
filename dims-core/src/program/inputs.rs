//! The inputs of recorded functions.

use crate::error::DimError;
use crate::execute::reduce::Reductions;
use crate::grad::parameters::{Parameters, Path, Walk};
use crate::operators::nn::linear::{Linear, Projection};
use crate::storage::View;
use crate::tensors::named::Named;
use crate::training::optim::{
    Accumulator, Adafactor, Adagrad, Adam, AdamW, Average, Lamb, Lion, NAdam, Plateau, RAdam, RmsProp, Sgd,
};
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims, Union};
use alloc::boxed::Box;
use alloc::vec::Vec;
use kernels::scalar::Element;

/// The inputs of a recorded function: [`Parameters`] by reference or by value, a view, a `spec`
/// (which gives only sizes), or a tuple of these.
///
/// Pass state that goes in and comes out, such as a network and its optimizer, by value. Pass data
/// by reference.
#[diagnostic::on_unimplemented(
    message = "a recorded function cannot take `{Self}`",
    label = "expected a tensor, a struct with `#[derive(Parameters)]` or an optimizer, by value or by reference; or a tuple of up to 12 of these",
    note = "a number that changes from call to call is a tensor without dims, `full((), x)`; other values are captured by the function"
)]
pub trait RecordInputs: Sized {
    /// The values, owned.
    type Value: Parameters;
    /// Holds the values until the function takes them.
    #[doc(hidden)]
    type Slots;
    /// Whether some values have sizes, but no elements.
    #[doc(hidden)]
    const SIZES_ALONE: bool = false;
    /// Adds the dims whose sizes may differ from call to call.
    #[doc(hidden)]
    fn open(&self, _dims: &mut Vec<DimKey>) {}
    /// Calls [`Parameters::walk`] on the values.
    #[doc(hidden)]
    fn walk<W: Walk<1>>(&self, path: &mut Path, walk: &mut W) -> Result<Self::Value, W::Error>;
    #[doc(hidden)]
    fn slots(value: Self::Value) -> Self::Slots;
    /// Adds the paths of inputs that are passed by value.
    #[doc(hidden)]
    fn moved(path: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        found.push(path.clone());
    }
    /// What the value becomes when `F` converts it for another engine. For a tuple of inputs, this is
    /// a tuple of the converted parts.
    #[doc(hidden)]
    type Parts<F: PartFamily>;
    #[doc(hidden)]
    fn parts<F: PartFamily>(value: Self::Value, family: &mut F) -> Self::Parts<F>;
}

/// Inputs with the values `V`: those that a recorded function takes.
#[diagnostic::on_unimplemented(
    message = "the function takes `{V}`, not `{Self}`",
    label = "expected the types that the function was recorded with, by value or by reference"
)]
pub trait InputsOf<V>: RecordInputs<Value = V> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<V, I: RecordInputs<Value = V>> InputsOf<V> for I {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The form in which a function gets its inputs, for the lifetime `'t`. The parameter `Lives` makes
/// rustc assume that the inputs live that long.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a recorded function cannot take `{Self}`",
    label = "expected a tensor, a struct with `#[derive(Parameters)]` or an optimizer, by value or by reference; or a tuple of up to 12 of these",
    note = "a number that changes from call to call is a tensor without dims, `full((), x)`; other values are captured by the function"
)]
pub trait Hand<'t, Lives = &'t Self>: RecordInputs {
    type Handed;
    fn hand(slots: &'t mut Self::Slots) -> Self::Handed;
}

/// Converts the parts of a program's result for another engine.
#[doc(hidden)]
pub trait PartFamily {
    /// The converted value.
    type Of<P: Parameters>;

    /// Converts the next part, given without its elements.
    fn part<P: Parameters>(&mut self, template: P) -> Self::Of<P>;
}

/// The type of the argument of a recorded function.
pub type HandedOf<'t, In> = <In as Hand<'t>>::Handed;

#[diagnostic::do_not_recommend]
impl<P: Parameters> RecordInputs for &P {
    type Value = P;
    type Slots = P;

    fn walk<W: Walk<1>>(&self, path: &mut Path, walk: &mut W) -> Result<P, W::Error> {
        P::walk([self], path, walk)
    }

    fn slots(value: P) -> P {
        value
    }

    fn moved(_: &mut Vec<usize>, _: &mut Vec<Vec<usize>>) {}

    type Parts<F: PartFamily> = F::Of<P>;

    fn parts<F: PartFamily>(value: P, family: &mut F) -> F::Of<P> {
        family.part(value)
    }
}

#[diagnostic::do_not_recommend]
impl<'t, P: Parameters> Hand<'t> for &P {
    type Handed = &'t P;

    fn hand(slots: &'t mut P) -> &'t P {
        slots
    }
}

/// A view can be passed like a reference. The function gets a reference to an owned tensor.
#[diagnostic::do_not_recommend]
impl<T: Element, S: Dims, R: Rank> RecordInputs for Named<T, S, R, View<'_, T, S, R>> {
    type Value = Named<T, S, R>;
    type Slots = Named<T, S, R>;

    fn walk<W: Walk<1>>(&self, path: &mut Path, walk: &mut W) -> Result<Named<T, S, R>, W::Error> {
        let owned: Result<_, DimError> = self.try_eval();
        Parameters::walk([&owned?], path, walk)
    }

    fn slots(value: Named<T, S, R>) -> Named<T, S, R> {
        value
    }

    fn moved(_: &mut Vec<usize>, _: &mut Vec<Vec<usize>>) {}

    type Parts<F: PartFamily> = F::Of<Named<T, S, R>>;

    fn parts<F: PartFamily>(value: Named<T, S, R>, family: &mut F) -> F::Of<Named<T, S, R>> {
        family.part(value)
    }
}

#[diagnostic::do_not_recommend]
impl<'t, T: Element, S: Dims, R: Rank> Hand<'t> for Named<T, S, R, View<'_, T, S, R>> {
    type Handed = &'t Named<T, S, R>;

    fn hand(slots: &'t mut Named<T, S, R>) -> &'t Named<T, S, R> {
        slots
    }
}

/// Implements [`RecordInputs`] and [`Hand`] for types that are passed by value.
macro_rules! by_value {
    ($([$($generics:tt)*] $t:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> RecordInputs for $t {
            type Value = Self;
            type Slots = Option<Self>;

            fn walk<W: Walk<1>>(&self, path: &mut Path, walk: &mut W) -> Result<Self, W::Error> {
                Parameters::walk([self], path, walk)
            }

            fn slots(value: Self) -> Option<Self> {
                Some(value)
            }

            type Parts<F: PartFamily> = F::Of<Self>;

            fn parts<F: PartFamily>(value: Self, family: &mut F) -> F::Of<Self> {
                family.part(value)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<'t, $($generics)*> Hand<'t> for $t {
            type Handed = Self;

            fn hand(slots: &'t mut Option<Self>) -> Self {
                taken(slots)
            }
        }
    )*};
}

by_value! {
    [T: Element, S: Dims, R: Rank] Named<T, S, R>;
    [I: Dims + DimList, O: Dims + Union<I>, T: Element] Linear<I, O, T>;
    [I: Dims + DimList, O: Dims + Union<I>, T: Element] Projection<I, O, T>;
    [P: Parameters] Vec<P>;
    [P: Parameters] Option<P>;
    [P: Parameters] Box<P>;
    [P: Parameters, const LEN: usize] [P; LEN];
    [P: Parameters] Sgd<P>;
    [P: Parameters] Adam<P>;
    [P: Parameters] AdamW<P>;
    [P: Parameters] Lion<P>;
    [P: Parameters] RmsProp<P>;
    [P: Parameters] Adagrad<P>;
    [P: Parameters] NAdam<P>;
    [P: Parameters] RAdam<P>;
    [P: Parameters] Lamb<P>;
    [P: Parameters] Adafactor<P>;
    [P: Parameters] Accumulator<P>;
    [P: Parameters] Average<P>;
    [] Plateau;
    [] ();
}

/// Takes the value out of a slot.
#[doc(hidden)]
pub fn taken<P>(slot: &mut Option<P>) -> P {
    slot.take().expect("a function gets its inputs once")
}

macro_rules! tuples {
    ($($p:ident $n:tt)*) => {
        // (No `do_not_recommend`, so that messages name the part of the tuple that does not fit.)
        impl<$($p: RecordInputs),*> RecordInputs for ($($p,)*) {
            type Value = ($($p::Value,)*);
            type Slots = ($($p::Slots,)*);
            const SIZES_ALONE: bool = $($p::SIZES_ALONE)||*;

            fn open(&self, dims: &mut Vec<DimKey>) {
                $(self.$n.open(dims);)*
            }

            fn walk<W: Walk<1>>(&self, path: &mut Path, walk: &mut W) -> Result<Self::Value, W::Error> {
                Ok(($(path.index($n, |path| self.$n.walk(path, walk))?,)*))
            }

            fn slots(value: Self::Value) -> Self::Slots {
                ($($p::slots(value.$n),)*)
            }

            fn moved(path: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
                $(
                    path.push($n);
                    $p::moved(path, found);
                    path.pop();
                )*
            }

            type Parts<Family: PartFamily> = ($(Family::Of<$p::Value>,)*);

            fn parts<Family: PartFamily>(value: Self::Value, family: &mut Family) -> Self::Parts<Family> {
                ($(family.part(value.$n),)*)
            }
        }

        impl<'t, $($p: Hand<'t>),*> Hand<'t> for ($($p,)*) {
            type Handed = ($($p::Handed,)*);

            fn hand(slots: &'t mut Self::Slots) -> Self::Handed {
                ($($p::hand(&mut slots.$n),)*)
            }
        }
    };
}

crate::types::tuples::each_tuple_of_inputs!(tuples);
