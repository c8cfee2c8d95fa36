//! Conditions on the operands of macros, each checked by a trait. The trait's parameter `M` is a
//! marker that rustc infers: `True` if the condition holds. If the condition does not hold, `M` and
//! the trait's associated type stay unknown, so rustc reports each mistake only once (see `Never`).

use crate::expr::{Operand, Scalar, Unary};
use crate::operators::elementwise::UnaryOut;
use crate::tensors::named::Named;
use crate::tensors::tensor::AsTensor;
use crate::types::condition::Never;
use crate::types::dim::DimRef;
use crate::types::rank::Rank0;
use crate::types::set::{False, True};
use core::marker::PhantomData;
use kernels::ops::{Cast, Index, Map};
use kernels::scalar::{Analytic, CastTo, Element, IndexInt, Num, Real};

/// A second marker, besides `False`, for a condition that does not hold. It is for conditions that
/// only one type meets: if all other types had the same marker, rustc would choose it for them.
/// Between two markers, rustc cannot choose.
#[derive(Debug)]
pub struct Other;

/// Implements a condition, with a method that returns its tensor unchanged. The impls are for the
/// elements that meet the condition, and for [`Never`].
macro_rules! as_it_is {
    ($condition:ident: [$($generic:tt)*] $holds:ty; $($not:ident)+) => {
        #[diagnostic::do_not_recommend]
        impl<$($generic)*> $condition<True> for $holds {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Of<A> = A;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn of<A>(a: A) -> A {
                a
            }
        }

        $(
            #[diagnostic::do_not_recommend]
            impl<T: Never> $condition<$not> for T {
                const SEAL: crate::seal::Seal = crate::seal::SEAL;
                type Of<A> = A;

                fn of<A>(a: A) -> A {
                    a
                }
            }
        )+
    };
}

/// Elements combined with a loop variable, as indices.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn indices<A: AsTensor<Elem: LikeIndex<M>>, M>(a: A) -> <A::Elem as LikeIndex<M>>::Indices<A> {
    A::Elem::indices(a)
}

/// Elements that can be combined with a loop variable: integers.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be combined with a loop variable, which is an integer",
    label = "expected integers",
    note = "cast the loop variable first: `i as {Self}`"
)]
pub trait LikeIndex<M = True>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// A tensor of these elements as indices.
    type Indices<A: AsTensor<Elem = Self>>;
    /// Makes the indices.
    fn indices<A: AsTensor<Elem = Self>>(a: A) -> Self::Indices<A>;
}

#[diagnostic::do_not_recommend]
impl<T: IndexInt> LikeIndex<True> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Indices<A: AsTensor<Elem = T>> = UnaryOut<Index, A>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn indices<A: AsTensor<Elem = T>>(a: A) -> UnaryOut<Index, A> {
        Named::from_expr(Unary { op: Index, a: a.into_named().expr })
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never> LikeIndex<False> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Indices<A: AsTensor<Elem = T>> = A;

    fn indices<A: AsTensor<Elem = T>>(a: A) -> A {
        a
    }
}

/// Indices, cast to the element type of a tensor.
pub type CastAlike<A, I> = UnaryOut<Cast<<A as AsTensor>::Elem>, I>;

/// Casts a loop variable to the type of the elements that it is combined with.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn alike<A: AsTensor<Elem: Element + LikeIndex>, I: AsTensor<Elem = isize>>(
    a: A,
    index: I,
) -> (A, CastAlike<A, I>)
where
    isize: CastTo<A::Elem>,
{
    (a, Named::from_expr(Unary { op: Cast(PhantomData), a: index.into_named().expr }))
}

/// A captured value combined with elements.
#[diagnostic::on_unimplemented(
    message = "elements combine only with single values, not with `{Self}`",
    label = "expected one value; an array needs an index for each axis, `a[i, j]`"
)]
pub trait Value<M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The value as a tensor without dims.
    type Tensor;
    /// Makes the tensor.
    fn tensor(self) -> Self::Tensor;
}

#[diagnostic::do_not_recommend]
impl<T: Element> Value<True> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Tensor = Named<T, (), Rank0, Scalar<T>>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn tensor(self) -> Self::Tensor {
        Named::from_expr(Scalar(self))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never> Value<False> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Tensor = Self;

    fn tensor(self) -> Self {
        self
    }
}

/// A captured value as a tensor without dims.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn scalar<T: Value<M>, M>(value: T) -> T::Tensor {
    value.tensor()
}

/// Elements that are indices: integers.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be indices",
    label = "integers are needed here: these are elements of type `{Self}`"
)]
pub trait Lookup<M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The tensor of these elements.
    type Of<A>;
    /// Yields the tensor.
    fn of<A>(a: A) -> Self::Of<A>;
}

as_it_is! { Lookup: [T: IndexInt] T; False }

/// A tensor of indices.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn lookup<A: AsTensor<Elem: Lookup<M>>, M>(a: A) -> <A::Elem as Lookup<M>>::Of<A> {
    A::Elem::of(a)
}

/// A value that can be compared with elements of the type `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be compared with elements of type `{T}`",
    label = "expected `{T}`: elements of different types do not mix, cast one of them, `a[i] as {T}`"
)]
pub trait Comparable<T, M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The operand itself.
    type Operand;
    /// Yields the operand.
    fn operand(self) -> Self::Operand;
}

#[diagnostic::do_not_recommend]
impl<T, B: Operand<T>> Comparable<T, True> for B {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Operand = B;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn operand(self) -> B {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T, B: Never> Comparable<T, False> for B {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Operand = B;

    fn operand(self) -> B {
        self
    }
}

/// Both sides of a comparison.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn compared<A: AsTensor, B: Comparable<A::Elem, M>, M>(a: A, b: B) -> (A, B::Operand) {
    (a, b.operand())
}

/// Elements that are conditions.
#[diagnostic::on_unimplemented(
    message = "`any`, `all`, `count`, `&&` and `||` take conditions, not elements of type `{Self}`",
    label = "expected `bool`: compare the elements, `a[i] > b[i]`"
)]
pub trait Condition<M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The tensor of these elements.
    type Of<A>;
    /// Yields the tensor.
    fn of<A>(a: A) -> Self::Of<A>;
}

as_it_is! { Condition: [] bool; False Other }

/// A tensor of conditions, which is reduced or an operand of `&&` or `||`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn conditions<A: AsTensor<Elem: Condition<M>>, M>(a: A) -> <A::Elem as Condition<M>>::Of<A> {
    A::Elem::of(a)
}

/// Elements that reductions combine.
#[diagnostic::on_unimplemented(
    message = "`sum`, `mean` and the like combine numbers, not elements of type `{Self}`",
    label = "expected numbers: `count[i](..)` counts conditions, `(..) as f32` turns them into numbers"
)]
pub trait Summand<M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The tensor of these elements.
    type Of<A>;
    /// Yields the tensor.
    fn of<A>(a: A) -> Self::Of<A>;
}

as_it_is! { Summand: [T: Num] T; False }

/// A tensor of numbers, which is reduced.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn summands<A: AsTensor<Elem: Summand<M>>, M>(a: A) -> <A::Elem as Summand<M>>::Of<A> {
    A::Elem::of(a)
}

/// Elements of the type `T` that a `let` declares.
#[diagnostic::on_unimplemented(
    message = "the elements are of type `{Self}`, but `let` says `{T}`",
    label = "these are of type `{Self}`; cast them: `a[i] as {T}`"
)]
pub trait OfType<T, M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The tensor of these elements.
    type Of<A>;
    /// Yields the tensor.
    fn typed<A>(a: A) -> Self::Of<A>;
}

#[diagnostic::do_not_recommend]
impl<T> OfType<T, True> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Of<A> = A;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn typed<A>(a: A) -> A {
        a
    }
}

#[diagnostic::do_not_recommend]
impl<T, U: Never> OfType<T, False> for U {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Of<A> = A;

    fn typed<A>(a: A) -> A {
        a
    }
}

#[diagnostic::do_not_recommend]
impl<T, U: Never> OfType<T, Other> for U {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Of<A> = A;

    fn typed<A>(a: A) -> A {
        a
    }
}

/// A tensor whose elements have the type that a `let` declares.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn typed<T, A: AsTensor<Elem: OfType<T, M>>, M>(a: A) -> <A::Elem as OfType<T, M>>::Of<A> {
    <A::Elem as OfType<T, M>>::typed(a)
}

/// A captured value combined with elements of the type `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with elements of type `{T}`",
    label = "expected one value of type `{T}`; an array needs an index for each axis, `a[i, j]`"
)]
pub trait CombinesWith<T, M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The value as a tensor without dims.
    type Tensor;
    /// Makes the tensor.
    fn tensor(self) -> Self::Tensor;
}

#[diagnostic::do_not_recommend]
impl<T: Element> CombinesWith<T, True> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Tensor = Named<T, (), Rank0, Scalar<T>>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn tensor(self) -> Self::Tensor {
        Named::from_expr(Scalar(self))
    }
}

#[diagnostic::do_not_recommend]
impl<T, U: Never> CombinesWith<T, False> for U {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Tensor = Self;

    fn tensor(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T, U: Never> CombinesWith<T, Other> for U {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Tensor = Self;

    fn tensor(self) -> Self {
        self
    }
}

/// Elements and a captured value combined with them, as tensors. (In this order, because rustc must
/// know the elements' type when it checks the value.)
#[cfg_attr(not(unoptimized), inline(always))]
pub fn combined<A: AsTensor, V: CombinesWith<A::Elem, M>, M>(a: A, value: V) -> (A, V::Tensor) {
    (a, value.tensor())
}

/// Elements with functions like `exp`.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` have no `exp`, `sqrt` or the like",
    label = "expected floats or complex numbers: cast the elements first, `(a[i] as f64)`"
)]
pub trait Smooth<M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The tensor of these elements.
    type Of<A>;
    /// Yields the tensor.
    fn of<A>(a: A) -> Self::Of<A>;
}

as_it_is! { Smooth: [T: Analytic] T; False }

/// A tensor with functions like `exp`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn smooth<A: AsTensor<Elem: Smooth<M>>, M>(a: A) -> <A::Elem as Smooth<M>>::Of<A> {
    <A::Elem as Smooth<M>>::of(a)
}

/// Elements that are floats.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` are not floats",
    label = "expected floats: cast the elements first, `(a[i] as f64)`"
)]
pub trait Floating<M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The tensor of these elements.
    type Of<A>;
    /// Yields the tensor.
    fn of<A>(a: A) -> Self::Of<A>;
}

as_it_is! { Floating: [T: Real] T; False }

/// A tensor of floats.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn floating<A: AsTensor<Elem: Floating<M>>, M>(a: A) -> <A::Elem as Floating<M>>::Of<A> {
    <A::Elem as Floating<M>>::of(a)
}

/// Elements that `as U` casts.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be cast to `{U}`",
    label = "expected a type of numbers, or `bool`"
)]
pub trait Castable<U: ?Sized, M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The tensor cast to `U`.
    type Cast<A: AsTensor<Elem = Self>>;
    /// Casts the tensor.
    fn cast<A: AsTensor<Elem = Self>>(a: A) -> Self::Cast<A>;
}

#[diagnostic::do_not_recommend]
impl<T: CastTo<U>, U: Element> Castable<U, True> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Cast<A: AsTensor<Elem = T>> = UnaryOut<Cast<U>, A>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn cast<A: AsTensor<Elem = T>>(a: A) -> UnaryOut<Cast<U>, A> {
        Named::from_expr(Unary { op: Cast(PhantomData), a: a.into_named().expr })
    }
}

#[diagnostic::do_not_recommend]
impl<T: Never, U: ?Sized> Castable<U, False> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Cast<A: AsTensor<Elem = T>> = A;

    fn cast<A: AsTensor<Elem = T>>(a: A) -> A {
        a
    }
}

/// Casts elements to `U`: `a[i] as U`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn cast<U: ?Sized, A: AsTensor<Elem: Castable<U, M>>, M>(a: A) -> <A::Elem as Castable<U, M>>::Cast<A> {
    <A::Elem as Castable<U, M>>::cast(a)
}

/// The result of code that is called for each element.
#[diagnostic::on_unimplemented(
    message = "an array of `{Self}` cannot be computed",
    label = "each element is `{Self}`; expected a number, a `bool` or another type that is `Copy` and `Default`"
)]
pub trait Yielded<M>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// A tensor mapped by a function.
    type Mapped<A: AsTensor, F: Fn(A::Elem) -> Self>;
    /// Maps the tensor.
    fn mapped<A: AsTensor, F: Fn(A::Elem) -> Self>(a: A, f: F) -> Self::Mapped<A, F>;
}

#[diagnostic::do_not_recommend]
impl<U: Element> Yielded<True> for U {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Mapped<A: AsTensor, F: Fn(A::Elem) -> U> = UnaryOut<Map<F>, A>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn mapped<A: AsTensor, F: Fn(A::Elem) -> U>(a: A, f: F) -> UnaryOut<Map<F>, A> {
        Named::from_expr(Unary { op: Map(f), a: a.into_named().expr })
    }
}

#[diagnostic::do_not_recommend]
impl<U: Never> Yielded<False> for U {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Mapped<A: AsTensor, F: Fn(A::Elem) -> U> = A;

    fn mapped<A: AsTensor, F: Fn(A::Elem) -> U>(a: A, _: F) -> A {
        a
    }
}

/// Applies `f` to each element.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn mapped<A: AsTensor, F: Fn(A::Elem) -> U, U: Yielded<M>, M>(a: A, f: F) -> U::Mapped<A, F> {
    U::mapped(a, f)
}

/// A dim of the surrounding scope.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dim",
    label = "write `$` before the name of a dim only, not of a value"
)]
pub trait Outer<M> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dim.
    type Dim: Copy;
    /// Yields the dim.
    fn dim(self) -> Self::Dim;
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> Outer<True> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dim = D;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn dim(self) -> D {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<D: Never + Copy> Outer<False> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dim = D;

    fn dim(self) -> D {
        self
    }
}

/// The dim that `$` and a name refer to.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn outer<D: Outer<M>, M>(dim: D) -> D::Dim {
    dim.dim()
}
