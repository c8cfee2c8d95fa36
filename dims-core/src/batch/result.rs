//! Results of batched functions: computed, and opened to the dims of the caller.

use super::argument::Batch;
use super::closed::Apart;
use super::example::{In, Output, Plain};
use crate::error::DimError;
use crate::expr::Expr;
use crate::expr::evaluate::evaluate_tensor;
use crate::plan::shape::Shape;
use crate::storage::Evaluated;
use crate::storage::axes::AxisBlock;
use crate::tensors::named::Named;
use crate::types::brand::Rest;
use crate::types::rank::Rank;
use crate::types::set::list::List;
use crate::types::set::remove::{Left, Missing, Overlap, Removal, RemoveAll, Within};
use crate::types::set::{Bound, Dims, FirstWith, Keys, MAX_DIMS, NoDim, Union};
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::scalar::Element;

/// The value of a batched function's body matches the declared result `W`.
#[diagnostic::on_unimplemented(
    message = "the body of this batched function yields `{Self}`, not the `{W}` that it declares",
    label = "this is not the declared result"
)]
pub trait Finish<W: Output, B: Dims> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The result in memory, with the rest `B`.
    #[doc(hidden)]
    #[track_caller]
    fn finish(self, batch: &Batch<B>) -> Result<W::In<B>, DimError>;
}

impl<T, S, R, E, Q, U, K, B> Finish<Named<U, K, Q>, B> for Named<T, S, R, E>
where
    T: Element,
    U: Element + Returns<T>,
    S: Dims,
    R: Rank,
    Q: Rank + ReturnsAxes<R>,
    E: Expr<Elem = T>,
    K: Dims,
    B: Dims,
    S::List: RemoveAll<K::List, S, Out: Removal<Left: List>>,
    NoDim<Missing<S, K::List>>: Bound<Missing<S, K::List>, S, Then<Left<S, K::List>>: NothingBut<B, S>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn finish(self, batch: &Batch<B>) -> Result<In<Named<U, K, Q>, B>, DimError> {
        let mut shape = Shape::new::<K::Sealed<B>, Q>();
        self.expr.unify::<K::Sealed<B>, Q>(&mut shape)?;
        batch.unify(&mut shape)?;
        Shape::finish(&mut shape)?;
        // Existing memory is reused, unless the result lacks the rest and must be repeated.
        let complete = S::KEYS.as_slice().len() == K::Sealed::<B>::KEYS.as_slice().len();
        let owned = if complete {
            evaluate_tensor::<K::Sealed<B>, Q, _>(self.expr, &shape)?
        } else {
            evaluate_tensor::<K::Sealed<B>, Q, _>(&self.expr, &shape)?
        };
        Ok(Named::from_expr(U::elements(owned)))
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T, S, R, E, U, K, Q, B> Finish<Named<U, K, Q>, B> for &'a Named<T, S, R, E>
where
    T: Element,
    S: Dims,
    R: Rank,
    U: Element,
    K: Dims,
    Q: Rank,
    B: Dims,
    Named<T, S, R, &'a E>: Finish<Named<U, K, Q>, B>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn finish(self, batch: &Batch<B>) -> Result<In<Named<U, K, Q>, B>, DimError> {
        Named::<T, S, R, &'a E>::from_expr(&self.expr).finish(batch)
    }
}

impl<T, B: Dims> Finish<Plain<T>, B> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[inline]
    fn finish(self, _: &Batch<B>) -> Result<T, DimError> {
        Ok(self)
    }
}

impl<Y: Finish<W, B>, W: Output, B: Dims> Finish<Option<W>, B> for Option<Y> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn finish(self, batch: &Batch<B>) -> Result<Option<W::In<B>>, DimError> {
        // (Not in a closure, which would be the origin of the result's sizes.)
        match self {
            Some(value) => value.finish(batch).map(Some),
            None => Ok(None),
        }
    }
}

impl<Y: Finish<W, B>, W: Output, B: Dims, E> Finish<Result<W, E>, B> for Result<Y, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn finish(self, batch: &Batch<B>) -> Result<Result<W::In<B>, E>, DimError> {
        match self {
            Ok(value) => value.finish(batch).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }
}

impl<Y: Finish<W, B>, W: Output, B: Dims> Finish<Vec<W>, B> for Vec<Y> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn finish(self, batch: &Batch<B>) -> Result<Vec<W::In<B>>, DimError> {
        let mut values = Vec::with_capacity(self.len());
        for value in self {
            values.push(value.finish(batch)?);
        }
        Ok(values)
    }
}

impl<Y: Finish<W, B>, W: Output, B: Dims, const N: usize> Finish<[W; N], B> for [Y; N] {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn finish(self, batch: &Batch<B>) -> Result<[W::In<B>; N], DimError> {
        let values = <Vec<Y> as Finish<Vec<W>, B>>::finish(self.into(), batch)?;
        Ok(values.try_into().ok().expect("there are as many results as values"))
    }
}

/// The declared element type is the element type `T` of the body's value. `T` is a parameter, so
/// that rustc can infer it.
#[diagnostic::on_unimplemented(
    message = "this function declares a result of `{Self}`, but its body yields elements of `{T}`",
    label = "these elements are `{T}`",
    note = "convert them: `.cast::<{Self}>()`"
)]
pub trait Returns<T>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The same elements.
    #[doc(hidden)]
    fn elements<S: Dims, R: Rank>(owned: Evaluated<T, S, R>) -> Evaluated<Self, S, R>;
}
#[diagnostic::do_not_recommend]
impl<T> Returns<T> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[inline]
    fn elements<S: Dims, R: Rank>(owned: Evaluated<T, S, R>) -> Evaluated<T, S, R> {
        owned
    }
}

/// The declared result has as many positional axes as the body's value.
#[diagnostic::on_unimplemented(
    message = "this function declares a result with positional axes of `{Self}`, but its body yields `{R}`",
    label = "this has positional axes of `{R}`",
    note = "`order((i, j))` turns dims into axes, `at((i, j))` axes into dims"
)]
pub trait ReturnsAxes<R> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<R: Rank> ReturnsAxes<R> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// No dims remain except the rest.
#[diagnostic::on_unimplemented(
    message = "this function declares a result without `{Self}`, but its body yields a tensor with dims `{S}`",
    label = "dims are left over: reduce them, for example with `.sum(..)`, or declare them"
)]
pub trait NothingBut<B, S> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<B, S> NothingBut<B, S> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
#[diagnostic::do_not_recommend]
impl<B, S> NothingBut<B, S> for (Rest<B>,) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A declared result that becomes `O` for the caller when the function is called with the extra
/// dims `U` as its rest `B`.
#[diagnostic::on_unimplemented(
    message = "a batched function cannot return `{Self}`",
    label = "`Tensor<..>`, or a tuple, `Option`, `Result`, `Vec` or array of tensors, is expected here"
)]
pub trait Opens<U: Dims, B: Dims, O>: Output {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The result with its rest opened. Nothing is copied. It is an error if a dim and its prime,
    /// one of them in the rest, have different sizes.
    #[doc(hidden)]
    fn open(inner: Self::In<B>) -> Result<O, DimError>;
}

impl<T: Element, K: Dims, R: Rank, U: Dims, B: Dims, X: Dims> Opens<U, B, Named<T, X, R>> for Named<T, K, R>
where
    K: Union<U, Out = X>,
    K::List: FirstWith<Within<U::List>>,
    NoDim<Overlap<K, U>>: Apart<Overlap<K, U>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[inline]
    fn open(inner: In<Self, B>) -> Result<Named<T, X, R>, DimError> {
        let from = &OpenedAxes::<K, U, X>::FROM;
        let (axes, origin) = (inner.expr.named().as_slice(), inner.expr.origin());
        X::KEYS.check_primes(|at| (axes[from[at]].size, origin))?;
        Ok(Named::from_expr(inner.expr.with_dims(from, |_| 0)))
    }
}

/// The positions of the dims `X` in the list of the dims `K` followed by the dims `U`.
pub(super) struct OpenedAxes<K, U, X>(PhantomData<(K, U, X)>);

impl<K: Dims, U: Dims, X: Dims> OpenedAxes<K, U, X> {
    pub(super) const FROM: [usize; MAX_DIMS] = {
        let parts: Keys = Keys::EMPTY.join(K::KEYS).join(U::KEYS);
        X::KEYS.positions_in(&parts)
    };
}

impl<T, U: Dims, B: Dims> Opens<U, B, T> for Plain<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[inline]
    fn open(inner: T) -> Result<T, DimError> {
        Ok(inner)
    }
}

impl<W: Opens<U, B, O>, U: Dims, B: Dims, O> Opens<U, B, Option<O>> for Option<W> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn open(inner: Self::In<B>) -> Result<Option<O>, DimError> {
        inner.map(W::open).transpose()
    }
}

impl<W: Opens<U, B, O>, U: Dims, B: Dims, O, E> Opens<U, B, Result<O, E>> for Result<W, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn open(inner: Self::In<B>) -> Result<Result<O, E>, DimError> {
        match inner {
            Ok(value) => W::open(value).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }
}

impl<W: Opens<U, B, O>, U: Dims, B: Dims, O> Opens<U, B, Vec<O>> for Vec<W> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn open(inner: Self::In<B>) -> Result<Vec<O>, DimError> {
        inner.into_iter().map(W::open).collect()
    }
}

impl<W: Opens<U, B, O>, U: Dims, B: Dims, O, const N: usize> Opens<U, B, [O; N]> for [W; N] {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn open(inner: Self::In<B>) -> Result<[O; N], DimError> {
        let values = <Vec<W> as Opens<U, B, Vec<O>>>::open(inner.into())?;
        Ok(values.try_into().ok().expect("there are as many results as values"))
    }
}

macro_rules! tuples {
    ($($w:ident $y:ident $o:ident $n:tt)*) => {
        impl<$($y: Finish<$w, Further>, $w: Output,)* Further: Dims> Finish<($($w,)*), Further> for ($($y,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            fn finish(self, _batch: &Batch<Further>) -> Result<($($w::In<Further>,)*), DimError> {
                Ok(($(self.$n.finish(_batch)?,)*))
            }
        }

        impl<$($w: Opens<All, Further, $o>, $o,)* All: Dims, Further: Dims> Opens<All, Further, ($($o,)*)> for ($($w,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            fn open(_inner: Self::In<Further>) -> Result<($($o,)*), DimError> {
                Ok(($($w::open(_inner.$n)?,)*))
            }
        }
    };
}

tuples! {}
tuples! { W0 Y0 O0 0 }
tuples! { W0 Y0 O0 0 W1 Y1 O1 1 }
tuples! { W0 Y0 O0 0 W1 Y1 O1 1 W2 Y2 O2 2 }
tuples! { W0 Y0 O0 0 W1 Y1 O1 1 W2 Y2 O2 2 W3 Y3 O3 3 }
tuples! { W0 Y0 O0 0 W1 Y1 O1 1 W2 Y2 O2 2 W3 Y3 O3 3 W4 Y4 O4 4 }
tuples! { W0 Y0 O0 0 W1 Y1 O1 1 W2 Y2 O2 2 W3 Y3 O3 3 W4 Y4 O4 4 W5 Y5 O5 5 }
tuples! { W0 Y0 O0 0 W1 Y1 O1 1 W2 Y2 O2 2 W3 Y3 O3 3 W4 Y4 O4 4 W5 Y5 O5 5 W6 Y6 O6 6 }
tuples! { W0 Y0 O0 0 W1 Y1 O1 1 W2 Y2 O2 2 W3 Y3 O3 3 W4 Y4 O4 4 W5 Y5 O5 5 W6 Y6 O6 6 W7 Y7 O7 7 }
