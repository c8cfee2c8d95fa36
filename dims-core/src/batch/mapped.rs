//! Tensors that a function is mapped over: the mapped dims are packed into a rest for the function
//! (sealed), and unpacked in its result (opened).

use super::argument::{Further, SealedAxes};
use super::closed::EndsInRest;
use super::seal::{Opened, Sealable, Visible};
use crate::error::{DimError, Origin};
use crate::expr::Expr;
use crate::expr::evaluate::evaluate_tensor;
use crate::plan::shape::Shape;
use crate::tensors::named::Named;
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::distinct::SortOnce;
use crate::types::set::list::List;
use crate::types::set::ordered::Minus;
use crate::types::set::remove::Within;
use crate::types::set::{Bool, Dims, DimsOf, False, FirstWith, MaybeDim, NoDim, True, Union};
use crate::types::tuples::nested;
use kernels::scalar::Element;

/// A tensor, or a tuple of tensors, whose dims `D` can be sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be mapped over",
    label = "a tensor, or a tuple of up to 12 tensors, is expected here",
    note = "an array becomes a tensor when it is bound: `a.at((n, ..))`"
)]
pub trait Mapped<D: DimList>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of all tensors.
    type All: Dims;
    /// The dims of all tensors, except `D`.
    type Others: Dims;
    /// The tensor or the tuple, sealed.
    type Sealed;
    #[doc(hidden)]
    fn seal(self, dims: &D) -> Result<Self::Sealed, DimError>;
}

/// One of the tensors of a call. If it has any of the dims `D`, or a rest, it is sealed: its rest
/// then stands for `M`.
#[diagnostic::on_unimplemented(
    message = "only tensors in memory can be mapped over",
    label = "this is an expression that has not been evaluated: call `.eval()` first"
)]
pub trait MappedOne<D: DimList, M: Dims>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The tensor, sealed.
    type Sealed;
    #[doc(hidden)]
    fn unify(&self, further: &mut Further<M>) -> Result<(), DimError>;
    #[doc(hidden)]
    fn seal(self, further: &Further<M>) -> Self::Sealed;
}

/// The dims that a function sees of a tensor with the dims `S`, if `D` are sealed.
type Seen<S, D> =
    <<<<S as Dims>::List as Minus<<D as DimList>::Brands>>::Out as EndsInRest>::Visible as List>::Tuple;

/// The rest of the set `S`, as a set.
pub(super) type RestOf<S> = <<S as Dims>::List as EndsInRest>::Rest;

macro_rules! tensors {
    ($(($($life:lifetime)?) $tensor:ty, $expr:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($life,)? T, S, R, E, D, M> SealIf<$tensor, D, M> for True
        where
            T: Element,
            S: Dims<List: Minus<D::Brands, Out: EndsInRest<Visible: List>>>,
            R: Rank,
            D: DimList,
            M: Dims,
            $expr: Sealable<S, <Seen<S, D> as Dims>::Sealed<M>>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Sealed =
                Named<T, <Seen<S, D> as Dims>::Sealed<M>, R, <$expr as Sealable<S, <Seen<S, D> as Dims>::Sealed<M>>>::Out>;

            fn unify(tensor: &$tensor, further: &mut Further<M>) -> Result<(), DimError> {
                #[allow(clippy::needless_borrow)] // for the tensor that is not a reference
                let expr: &$expr = borrowed!($($life)? tensor.expr);
                let (axes, origin) = expr.axes();
                further.unify_axes::<S, Seen<S, D>>(axes, origin)
            }

            fn seal(tensor: $tensor, further: &Further<M>) -> Self::Sealed {
                const { SealedAxes::<S, Seen<S, D>, M>::fits::<<Seen<S, D> as Dims>::Sealed<M>>() };
                let own = Seen::<S, D>::KEYS.as_slice().len();
                let expr: $expr = taken!($($life)? tensor.expr);
                Named::from_expr(expr.with_dims(&SealedAxes::<S, Seen<S, D>, M>::FROM, |at| further.sizes()[at - own]))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($life,)? T, S, R, E, D, M, V> MappedOne<D, M> for $tensor
        where
            T: Element,
            S: Dims<List: EndsInRest<HasRest: Bool<Or<HasAny<S, D>> = V>>>,
            R: Rank,
            D: DimList<Brands: FirstWith<Within<S::List>>>,
            M: Dims,
            // `V` is a parameter, so that rustc reports `MappedOne` and not this bound.
            V: SealIf<Self, D, M>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Sealed = V::Sealed;

            fn unify(&self, further: &mut Further<M>) -> Result<(), DimError> {
                V::unify(self, further)
            }

            fn seal(self, further: &Further<M>) -> Self::Sealed {
                V::seal(self, further)
            }
        }

        impl<$($life,)? T, S, R, E, D, M, O> Mapped<D> for $tensor
        where
            T: Element,
            S: Dims<List: EndsInRest>,
            R: Rank,
            D: DimList<Brands: SortOnce> + DimsOf<S, O>,
            O: Dims,
            Visible<D>: Union<RestOf<S>, Out = M>,
            M: Dims,
            Self: MappedOne<D, M>,
            S::List: Minus<D::Brands, Out: List<Tuple = O>>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type All = S;
            type Others = O;
            type Sealed = <Self as MappedOne<D, M>>::Sealed;

            fn seal(self, dims: &D) -> Result<Self::Sealed, DimError> {
                let mut further = Further::<M>::new();
                self.unify(&mut further)?;
                unify_all(&mut further, dims)?;
                Ok(MappedOne::seal(self, &further))
            }
        }
    )*};
}

/// Seals a tensor `A` if `Self` is [`True`].
pub trait SealIf<A, D, M: Dims> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// See [`MappedOne`].
    type Sealed;
    #[doc(hidden)]
    fn unify(tensor: &A, further: &mut Further<M>) -> Result<(), DimError>;
    #[doc(hidden)]
    fn seal(tensor: A, further: &Further<M>) -> Self::Sealed;
}

impl<A, D, M: Dims> SealIf<A, D, M> for False {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Sealed = A;

    fn unify(_: &A, _: &mut Further<M>) -> Result<(), DimError> {
        Ok(())
    }

    fn seal(tensor: A, _: &Further<M>) -> A {
        tensor
    }
}

/// Whether the set `S` has any of the dims `D`.
pub(super) type HasAny<S, D> =
    <NoDim<<<D as DimList>::Brands as FirstWith<Within<<S as Dims>::List>>>::Found> as Bool>::Not;

macro_rules! borrowed {
    ($self:ident . $expr:ident) => {
        &$self.$expr
    };
    ($life:lifetime $self:ident . $expr:ident) => {
        &&$self.$expr
    };
}

macro_rules! taken {
    ($self:ident . $expr:ident) => {
        $self.$expr
    };
    ($life:lifetime $self:ident . $expr:ident) => {
        &$self.$expr
    };
}

tensors! {
    () Named<T, S, R, E>, E;
    ('a) &'a Named<T, S, R, E>, &'a E;
}

/// Unifies the sizes that the dims carry, and checks that all sizes are known.
pub(super) fn unify_all<M: Dims>(further: &mut Further<M>, dims: &impl DimList) -> Result<(), DimError> {
    let mut unified = Ok(());
    dims.each(|dim| {
        if unified.is_ok() {
            unified = further.unify_dim(dim);
        }
    });
    unified?;
    further.finish()
}

/// The dims of a tensor, or of several as nested pairs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be mapped over",
    label = "a tensor, or a tuple of tensors, is expected here: up to 12 for `batched`, up to 6 for `vmap`",
    note = "an array becomes a tensor when it is bound: `a.at((n, ..))`"
)]
pub trait United {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of all tensors.
    type All: Dims;
}

#[diagnostic::do_not_recommend]
impl United for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = ();
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims, R: Rank, E> United for Named<T, S, R, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = S;
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims, R: Rank, E> United for &Named<T, S, R, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = S;
}

#[diagnostic::do_not_recommend]
impl<H: United<All: Union<T::All>>, T: United> United for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = <H::All as Union<T::All>>::Out;
}

macro_rules! first_clash {
    ($a:ident) => { $a::Clash };
    ($a:ident $($later:ident)+) => { <$a::Clash as MaybeDim>::Or<first_clash!($($later)+)> };
}

macro_rules! tuples {
    ($($a:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<Along, Others, All, Further_, $($a),*> Mapped<Along> for ($($a,)*)
        where
            nested![$($a),*]: United<All = All>,
            All: Dims<List: EndsInRest + Minus<Along::Brands, Out: List<Tuple = Others>>>,
            Along: DimList<Brands: SortOnce> + DimsOf<All, Others>,
            Others: Dims,
            Visible<Along>: Union<RestOf<All>, Out = Further_>,
            Further_: Dims,
            $($a: MappedOne<Along, Further_>,)*
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type All = All;
            type Others = Others;
            type Sealed = ($(<$a as MappedOne<Along, Further_>>::Sealed,)*);

            fn seal(self, dims: &Along) -> Result<Self::Sealed, DimError> {
                let mut further = Further::<Further_>::new();
                $(self.$n.unify(&mut further)?;)*
                unify_all(&mut further, dims)?;
                Ok(($(MappedOne::seal(self.$n, &further),)*))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($a: Unmapped),*> Unmapped for ($($a,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = ($($a::Out,)*);
            type Clash = first_clash!($($a)*);

            fn try_open(self, place: Origin) -> Result<Self::Out, DimError> {
                Ok(($(self.$n.try_open(place)?,)*))
            }
        }
    };
}

/// The result of a mapped function: a tensor, an expression, or a tuple of these.
#[diagnostic::on_unimplemented(
    message = "a mapped function cannot return `{Self}`",
    label = "a tensor, or a tuple of tensors, is expected here"
)]
pub trait Unmapped {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The result in memory, without a rest.
    type Out;
    /// The first dim that is also in the rest, or [`Nothing`](crate::types::set::Nothing).
    type Clash: MaybeDim;
    /// If the result is computed here, its sizes have the origin `place`.
    #[doc(hidden)]
    fn try_open(self, place: Origin) -> Result<Self::Out, DimError>;
}

#[diagnostic::do_not_recommend]
impl<T: Element, S: Dims + Opened<All = X>, R: Rank, E: Expr<Elem = T>, X: Dims> Unmapped
    for Named<T, S, R, E>
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Named<T, X, R>;
    type Clash = S::Clash;

    fn try_open(self, place: Origin) -> Result<Self::Out, DimError> {
        let mut shape = Shape::new::<S, R>();
        self.unify(&mut shape)?;
        // The function does not see that a dim in the rest is the prime of one of its own dims.
        X::KEYS.check_primes(|at| shape.known(S::FROM[at]))?;
        let origin = origin_of::<S>(&self.expr, place);
        let owned = evaluate_tensor::<S, R, E>(self.expr, &shape)?.with_origin(origin);
        Ok(Named::from_expr(owned.with_dims(S::FROM, |_| 0)))
    }
}

tuples!(A 0);
tuples!(A 0 B 1);
tuples!(A 0 B 1 C 2);
tuples!(A 0 B 1 C 2 G 3);
tuples!(A 0 B 1 C 2 G 3 H 4);
tuples!(A 0 B 1 C 2 G 3 H 4 I 5);
tuples!(A 0 B 1 C 2 G 3 H 4 I 5 J 6);
tuples!(A 0 B 1 C 2 G 3 H 4 I 5 J 6 K 7);
tuples!(A 0 B 1 C 2 G 3 H 4 I 5 J 6 K 7 L 8);
tuples!(A 0 B 1 C 2 G 3 H 4 I 5 J 6 K 7 L 8 M 9);
tuples!(A 0 B 1 C 2 G 3 H 4 I 5 J 6 K 7 L 8 M 9 N 10);
tuples!(A 0 B 1 C 2 G 3 H 4 I 5 J 6 K 7 L 8 M 9 N 10 P 11);

/// The origin of the sizes of a tensor with the dims `S`: its own origin if it is in memory, or
/// `place`, where it is computed.
pub(super) fn origin_of<S: Dims>(expr: &impl Expr, place: Origin) -> Origin {
    expr.in_memory::<S>().map_or(place, |raw| raw.origin)
}
