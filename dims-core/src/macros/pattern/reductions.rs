//! The reductions of `reduce!`, by name.

use ::core::marker::PhantomData;
use kernels::machine::isa::Isa;
use kernels::reduce::Reducer;
use kernels::reduce::reducers;
use kernels::scalar::{Analytic, Element, Magnitude, Num, Ordered, Real};

/// A reduction of elements of the type `T`.
#[diagnostic::on_unimplemented(
    message = "there is no such reduction of elements of type `{T}`",
    label = "not for elements of type `{T}`",
    note = "`mean`, `norm`, `var`, `std` and `logsumexp` need floats (the first two also take complex numbers): cast the array first, `a.mapv(|x| x as f64)`; `any`, `all` and `count` need `bool`s; `max`, `min`, `argmax` and `argmin` need integers or floats; `sum` and `prod` need numbers"
)]
pub trait Reduction<T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The element type of the result.
    type Out: Element;
    #[doc(hidden)]
    type Reducer: Reducer<T, Out = Self::Out>;
    #[doc(hidden)]
    const NEEDS_ELEMENTS: bool = false;
    #[doc(hidden)]
    fn reducer(self) -> Self::Reducer;
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident [$($bound:tt)*] $out:ty, $reducer:ty = $value:expr, $needs:literal;)*) => {$(
        $(#[$doc])*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        #[diagnostic::do_not_recommend]
        impl<T: $($bound)*> Reduction<T> for $name {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = $out;
            type Reducer = $reducer;
            const NEEDS_ELEMENTS: bool = $needs;
            fn reducer(self) -> $reducer {
                $value
            }
        }
    )*};
}

reductions! {
    /// The sum.
    sum [Num] T, reducers::Sum = reducers::Sum::ONCE, false;
    /// The product.
    prod [Num] T, reducers::Prod = reducers::Prod, false;
    /// The mean.
    mean [Analytic] T, reducers::Mean = reducers::Mean, false;
    /// The greatest element.
    max [Ordered] T, reducers::Max = reducers::Max, true;
    /// The least element.
    min [Ordered] T, reducers::Min = reducers::Min, true;
    /// The position of the greatest element, row-major over the reduced axes.
    argmax [Ordered] usize, reducers::ArgExtremum<true> = reducers::ArgExtremum, true;
    /// The position of the least element.
    argmin [Ordered] usize, reducers::ArgExtremum<false> = reducers::ArgExtremum, true;
    /// The population variance.
    var [Real] T, reducers::Variance<T> = reducers::Variance { ddof: T::ZERO, root: false }, false;
    /// The population standard deviation.
    std [Real] T, reducers::Variance<T> = reducers::Variance { ddof: T::ZERO, root: true }, false;
    /// The Euclidean norm.
    norm [Magnitude<Abs: Real>] T::Abs, reducers::Norm = reducers::Norm, false;
    /// The logarithm of the sum of exponentials.
    logsumexp [Real] T, reducers::LogSumExp<T> = reducers::LogSumExp(PhantomData), false;
}

/// Only `bool` implements this: see [`Conditions`].
#[diagnostic::on_unimplemented(
    message = "a condition must be a `bool`, not `{Self}`",
    label = "expected `bool`"
)]
pub trait Truth: Element {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    fn is_true(self) -> bool;
}

#[diagnostic::do_not_recommend]
impl Truth for bool {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_true(self) -> bool {
        self
    }
}

/// A reducer of `bool`s, for each `T: Truth`. (If it were only for `bool`, rustc would infer `bool`
/// as the type of the elements, and report mismatched types instead of our message.)
#[derive(Clone, Copy, Debug)]
pub struct Conditions<R>(R);

impl<T: Truth, R: Reducer<bool>> Reducer<T> for Conditions<R> {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    type Acc = R::Acc;
    type Out = R::Out;
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> R::Acc {
        self.0.start()
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: R::Acc, value: T, at: usize) -> R::Acc {
        self.0.step::<I>(acc, value.is_true(), at)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: R::Acc, b: R::Acc) -> R::Acc {
        self.0.join::<I>(a, b)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: R::Acc, number: usize) -> R::Out {
        self.0.finish(acc, number)
    }
}

macro_rules! conditions {
    ($($(#[$doc:meta])* $name:ident $out:ty, $reducer:ident;)*) => {$(
        $(#[$doc])*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        #[diagnostic::do_not_recommend]
        impl<T: Truth> Reduction<T> for $name {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = $out;
            type Reducer = Conditions<reducers::$reducer>;
            fn reducer(self) -> Self::Reducer {
                Conditions(reducers::$reducer)
            }
        }
    )*};
}

conditions! {
    /// Whether any element is true.
    any bool, Any;
    /// Whether all elements are true.
    all bool, All;
    /// The number of true elements.
    count usize, Count;
}
