//! What `vmap` makes of a function: one call for all examples together, or a loop of calls.
//!
//! The parameters of the function decide. One with a `Rest` sees all examples at once; one without can only be given a single example, so if its
//! argument has a mapped dim the function is called in a loop. Parameters are tensors that own their elements, so an argument is computed (or
//! copied) whatever it is: a bound array, a reference, an expression.
//!
//! ```text
//! argument             parameter        way
//! has a mapped dim     with `Rest`      Together
//! has a mapped dim     without          OneByOne
//! has none             any              Alike: as it is, in each call
//! ```

use super::argument::Further;
use super::each::{Apiece, Collect, looped};
use super::seal::{EndsInRest, Visible};
use super::vmap::{HasRest, MappedOne, No, RestOf, Touched, United, Unmapped, Yes, met};
use crate::dim::DimList;
use crate::error::DimError;
use crate::named::Named;
use crate::rank::Rank;
use crate::reduce::{Evaluated, Reductions};
use crate::scalar::Element;
use crate::set::list::List;
use crate::set::{Dims, Union};
use crate::tensor::Computable;
use crate::tuples::nested;

/// One tensor or a tuple of them, for a mapped function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be mapped over",
    label = "a tensor, or a tuple of up to 6 tensors, is expected here",
    note = "an array becomes a tensor when it is bound: `a.at((n, ..))`"
)]
pub trait Tensors {
    /// The dims of all tensors.
    type All: Dims;
    /// The same as a tuple of arguments.
    type Each;
    #[doc(hidden)]
    fn each(self) -> Self::Each;
}

impl<T, S: Dims, R: Rank, E> Tensors for Named<T, S, R, E> {
    type All = S;
    type Each = (Self,);

    fn each(self) -> Self::Each {
        (self,)
    }
}

impl<T, S: Dims, R: Rank, E> Tensors for &Named<T, S, R, E> {
    type All = S;
    type Each = (Self,);

    fn each(self) -> Self::Each {
        (self,)
    }
}

/// All examples in one call.
pub struct Together;
/// One call for each example.
pub struct OneByOne;
/// The argument is the same for all examples.
pub struct Alike;

/// How a parameter wants to be called.
pub trait Way {
    /// One parameter that takes a single example makes it a loop.
    type Or<O: Way>: Way;
}

impl Way for Together {
    type Or<O: Way> = O;
}
impl Way for Alike {
    type Or<O: Way> = O;
}
impl Way for OneByOne {
    type Or<O: Way> = OneByOne;
}

/// The ways of all parameters, as nested pairs.
pub trait Ways {
    /// What they come to.
    type All: Way;
}

impl Ways for () {
    type All = Together;
}

impl<H: Way, T: Ways> Ways for (H, T) {
    type All = H::Or<T::All>;
}

/// The way of an argument that has a mapped dim, or has not, to a parameter that has a rest `H`, or has not.
pub trait WayTo<H> {
    /// See [`Way`].
    type Way: Way;
}

impl WayTo<Yes> for Yes {
    type Way = Together;
}
impl WayTo<No> for Yes {
    type Way = OneByOne;
}
impl<H> WayTo<H> for No {
    type Way = Alike;
}

/// An argument for a parameter of the type `P` of a mapped function.
#[diagnostic::on_unimplemented(
    message = "a function that is mapped takes tensors of its own, not `{P}`",
    label = "this function takes another parameter",
    note = "a closure between them has parameters of the right type: `vmap(|x: Tensor<f32, (Seq, Rest<_>)>| f(&x), n)`"
)]
pub trait Given<P, D> {
    /// See [`Way`].
    type Way: Way;
}

impl<A, T, K, R, D, V, H> Given<Named<T, K, R>, D> for A
where
    A: Computable<Dims: Dims<List: Touched<D::Brands, Out = V>>>,
    K: Dims<List: HasRest<Out = H>>,
    R: Rank,
    D: DimList,
    V: WayTo<H>,
{
    type Way = V::Way;
}

impl<'a, A, N, D> Given<&'a N, D> for A
where
    A: Lent<'a, N, D>,
{
    type Way = Alike;
}

/// An argument for a parameter that is a reference: a reference to the same, without a mapped dim.
#[diagnostic::on_unimplemented(
    message = "a function that is mapped takes tensors of its own, but this one takes a reference to one",
    label = "this function has a parameter `&{N}`",
    note = "a closure in between owns what it is given: `vmap(|x: Tensor<..>| f(&x), n)`; only what has none of the mapped dims can be lent"
)]
pub trait Lent<'a, N, D> {}

impl<'a, T, S, R, D> Lent<'a, Named<T, S, R>, D> for &'a Named<T, S, R>
where
    S: Dims<List: Touched<D::Brands, Out: Untouched>>,
    R: Rank,
    D: DimList,
{
}

/// None of the mapped dims is there.
#[diagnostic::on_unimplemented(
    message = "a function that is mapped takes tensors of its own, but this one takes a reference to one",
    label = "this function takes a reference to a tensor that is mapped over",
    note = "a closure in between owns what it is given: `vmap(|x: Tensor<..>| f(&x), n)`; only what has none of the mapped dims can be lent"
)]
pub trait Untouched {}
impl Untouched for No {}

/// One example is what the function takes.
#[diagnostic::on_unimplemented(
    message = "this function takes `{W}`, but what it is given is `{Self}`",
    label = "the parameter has another type than one example",
    note = "one example has all dims of the argument but the mapped ones"
)]
pub trait Suits<W> {
    #[doc(hidden)]
    fn suited(self) -> W;
}
#[diagnostic::do_not_recommend]
impl<W> Suits<W> for W {
    #[inline(always)]
    fn suited(self) -> W {
        self
    }
}

/// A function of as many arguments as the tuple `X` has; its parameters are those of the tuple `P`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function of such tensors",
    label = "this function takes other arguments",
    note = "it is called with the tensors as they are for one example: without the mapped dims, which are behind `Rest`"
)]
pub trait Applies<X, D, P> {
    /// What it returns to the caller.
    type Out;
    #[doc(hidden)]
    fn try_apply(&self, tensors: X, dims: &D) -> Result<Self::Out, DimError>;
}

/// How the function `F` runs on the tuple `X`, where `M` are the dims that it does not see.
pub trait Runs<F, X, P, D, M, Y> {
    /// What it returns to the caller.
    type Out;
    #[doc(hidden)]
    fn run(function: &F, tensors: X, dims: &D) -> Result<Self::Out, DimError>;
}

/// An argument that becomes a parameter of the type `P`, once for all examples.
pub trait Whole<P, D, M: Dims>: Sized {
    /// The argument in memory.
    type Held;
    #[doc(hidden)]
    fn hold(self) -> Result<Self::Held, DimError>;
    #[doc(hidden)]
    fn meet(held: &Self::Held, further: &mut Further<M>) -> Result<(), DimError>;
    #[doc(hidden)]
    fn give(held: Self::Held, further: &Further<M>) -> P;
}

impl<A, T, K, R, D, M> Whole<Named<T, K, R>, D, M> for A
where
    A: Computable,
    K: Dims,
    R: Rank,
    D: DimList,
    M: Dims,
    Evaluated<A>: MappedOne<D, M, Sealed: Suits<Named<T, K, R>>>,
{
    type Held = Evaluated<A>;

    fn hold(self) -> Result<Self::Held, DimError> {
        self.try_eval()
    }

    fn meet(held: &Self::Held, further: &mut Further<M>) -> Result<(), DimError> {
        MappedOne::meet(held, further)
    }

    fn give(held: Self::Held, further: &Further<M>) -> Named<T, K, R> {
        MappedOne::seal(held, further).suited()
    }
}

impl<'a, N, D, M: Dims> Whole<&'a N, D, M> for &'a N {
    type Held = &'a N;

    fn hold(self) -> Result<&'a N, DimError> {
        Ok(self)
    }

    fn meet(_: &&'a N, _: &mut Further<M>) -> Result<(), DimError> {
        Ok(())
    }

    fn give(held: &'a N, _: &Further<M>) -> &'a N {
        held
    }
}

/// An argument that becomes parameters of the type `P`, one for each example.
pub trait Pieces<P, D, M: Dims>: Sized {
    /// The argument in memory.
    type Held;
    #[doc(hidden)]
    fn hold(self) -> Result<Self::Held, DimError>;
    #[doc(hidden)]
    fn meet(held: &Self::Held, further: &mut Further<M>) -> Result<(), DimError>;
    /// The argument with its rest.
    type Sealed;
    #[doc(hidden)]
    fn seal(held: Self::Held, further: &Further<M>) -> Self::Sealed;
    #[doc(hidden)]
    fn one(sealed: &Self::Sealed, at: &[usize]) -> Result<P, DimError>;
    /// How large a dim of the examples is, if it is one.
    #[doc(hidden)]
    fn size(sealed: &Self::Sealed, id: u64) -> Option<usize>;
}

impl<A, T, K, R, D, M, V> Pieces<Named<T, K, R>, D, M> for A
where
    A: Computable<Dims: Dims<List: Touched<D::Brands, Out = V>>>,
    K: Dims,
    R: Rank,
    D: DimList,
    M: Dims,
    Evaluated<A>: MappedOne<D, M, Sealed: PiecesOf<V, Named<T, K, R>>>,
{
    type Held = Evaluated<A>;
    type Sealed = <Evaluated<A> as MappedOne<D, M>>::Sealed;

    fn hold(self) -> Result<Self::Held, DimError> {
        self.try_eval()
    }

    fn meet(held: &Self::Held, further: &mut Further<M>) -> Result<(), DimError> {
        MappedOne::meet(held, further)
    }

    fn seal(held: Self::Held, further: &Further<M>) -> Self::Sealed {
        MappedOne::seal(held, further)
    }

    fn one(sealed: &Self::Sealed, at: &[usize]) -> Result<Named<T, K, R>, DimError> {
        sealed.one(at)
    }

    fn size(sealed: &Self::Sealed, id: u64) -> Option<usize> {
        sealed.size(id)
    }
}

impl<'a, N, D, M: Dims> Pieces<&'a N, D, M> for &'a N {
    type Held = &'a N;
    type Sealed = &'a N;

    fn hold(self) -> Result<&'a N, DimError> {
        Ok(self)
    }

    fn meet(_: &&'a N, _: &mut Further<M>) -> Result<(), DimError> {
        Ok(())
    }

    fn seal(held: &'a N, _: &Further<M>) -> &'a N {
        held
    }

    fn one(sealed: &&'a N, _: &[usize]) -> Result<&'a N, DimError> {
        Ok(*sealed)
    }

    fn size(_: &&'a N, _: u64) -> Option<usize> {
        None
    }
}

/// A sealed tensor, of which each piece is a `P`; `V` says whether it was sealed at all.
pub trait PiecesOf<V, P> {
    #[doc(hidden)]
    fn one(&self, at: &[usize]) -> Result<P, DimError>;
    #[doc(hidden)]
    fn size(&self, id: u64) -> Option<usize>;
}

impl<T, S, R, B, X, P> PiecesOf<Yes, P> for Named<T, S, R>
where
    T: Element,
    S: Dims<List: EndsInRest<Visible: List<Tuple = X>, Behind = B>>,
    R: Rank,
    B: Dims,
    X: Dims,
    Named<T, X, R>: Suits<P>,
{
    fn one(&self, at: &[usize]) -> Result<P, DimError> {
        Ok(Apiece::one(&self, at).try_eval()?.suited())
    }

    fn size(&self, id: u64) -> Option<usize> {
        Apiece::size(&self, id)
    }
}

impl<T: Clone, S: Dims, R: Rank, P> PiecesOf<No, P> for Named<T, S, R>
where
    Self: Suits<P>,
{
    fn one(&self, _: &[usize]) -> Result<P, DimError> {
        Ok(Named::<T, S, R>::from_expr(self.expr.clone()).suited())
    }

    fn size(&self, id: u64) -> Option<usize> {
        let at = S::KEYS.as_slice().iter().position(|key| key.id == id)?;
        Some(crate::storage::axes::AxisBlock::as_slice(self.expr.named())[at].size)
    }
}

macro_rules! tuples {
    ($($a:ident $p:ident $n:tt)*) => {
        impl<$($a),*, All> Tensors for ($($a,)*)
        where
            nested![$($a),*]: United<All = All>,
            All: Dims,
        {
            type All = All;
            type Each = Self;

            fn each(self) -> Self {
                self
            }
        }

        #[diagnostic::do_not_recommend]
        impl<Function, Along, All, Further_, Result_, Way_, $($a, $p),*> Applies<($($a,)*), Along, ($($p,)*)> for Function
        where
            Function: Fn($($p),*) -> Result_,
            Along: DimList<Brands: crate::set::union::Sort>,
            nested![$($a),*]: United<All = All>,
            All: Dims<List: EndsInRest>,
            Visible<Along>: Union<RestOf<All>, Out = Further_>,
            Further_: Dims,
            $($a: Given<$p, Along>,)*
            nested![$(<$a as Given<$p, Along>>::Way),*]: Ways<All = Way_>,
            Way_: Runs<Function, ($($a,)*), ($($p,)*), Along, Further_, Result_>,
        {
            type Out = Way_::Out;

            fn try_apply(&self, tensors: ($($a,)*), dims: &Along) -> Result<Self::Out, DimError> {
                Way_::run(self, tensors, dims)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<Function, Along, Further_, Result_, $($a, $p),*>
            Runs<Function, ($($a,)*), ($($p,)*), Along, Further_, Result_> for Together
        where
            Function: Fn($($p),*) -> Result_,
            Along: DimList,
            Further_: Dims,
            Result_: Unmapped,
            $($a: Whole<$p, Along, Further_>,)*
        {
            type Out = Result_::Out;

            fn run(function: &Function, tensors: ($($a,)*), dims: &Along) -> Result<Self::Out, DimError> {
                let mut further = Further::<Further_>::new();
                let held = ($(tensors.$n.hold()?,)*);
                $($a::meet(&held.$n, &mut further)?;)*
                met(&mut further, dims)?;
                function($($a::give(held.$n, &further)),*).try_open()
            }
        }

        #[diagnostic::do_not_recommend]
        impl<Function, Along, Further_, Result_, $($a, $p),*>
            Runs<Function, ($($a,)*), ($($p,)*), Along, Further_, Result_> for OneByOne
        where
            Function: Fn($($p),*) -> Result_,
            Along: DimList,
            Further_: Dims,
            Result_: Collect<Further_, All: Unmapped>,
            $($a: Pieces<$p, Along, Further_>,)*
        {
            type Out = <Result_::All as Unmapped>::Out;

            fn run(function: &Function, tensors: ($($a,)*), dims: &Along) -> Result<Self::Out, DimError> {
                let mut further = Further::<Further_>::new();
                let held = ($(tensors.$n.hold()?,)*);
                $($a::meet(&held.$n, &mut further)?;)*
                met(&mut further, dims)?;
                let sealed = ($($a::seal(held.$n, &further),)*);
                let size = |id| None$(.or_else(|| $a::size(&sealed.$n, id)))*;
                let call = |at: &[usize]| Ok(function($($a::one(&sealed.$n, at)?),*));
                looped::<Further_, Result_>("a function of one example", further.sizes(), call, size)?.try_open()
            }
        }
    };
}

tuples!(A P 0);
tuples!(A P 0 B Q 1);
tuples!(A P 0 B Q 1 C U 2);
tuples!(A P 0 B Q 1 C U 2 G V 3);
tuples!(A P 0 B Q 1 C U 2 G V 3 H W 4);
tuples!(A P 0 B Q 1 C U 2 G V 3 H W 4 I Z 5);
