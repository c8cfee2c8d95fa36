//! `vmap`: one call for all examples together, or a loop of calls.
//!
//! The parameters of the function decide between the two. A parameter with a `Rest` takes all
//! examples at once. A parameter without one takes a single example, so if its argument has a
//! mapped dim, the function is called in a loop. (The dims in the `Rest` of an argument count as
//! mapped.) A tensor parameter owns its elements, or is a reference to a tensor that owns them. So
//! an argument that does not own its elements, such as a bound array, a view or an expression, is
//! computed or copied.
//!
//! ```text
//! argument             parameter        way
//! has a mapped dim     with `Rest`      Together
//! has a mapped dim     without          OneByOne
//! no mapped dim        any              Alike: passed unchanged in each call
//! ```
//!
//! If a parameter is generic over its whole set, both ways fit, and rustc cannot choose. `batched`
//! always calls its closure once, for all examples together.

use super::argument::Further;
use super::closed::{Apart, EndsInRest};
use super::each::{Apiece, Collect, looped, number_of_examples};
use super::mapped::{HasAny, MappedOne, RestOf, United, Unmapped, origin_of, unify_all};
use super::seal::Visible;
use super::way::{Alike, OneByOne, Together, Way, Ways};
use crate::error::{DimError, Origin};
use crate::execute::reduce::{TensorOf, eval};
use crate::execute::step::NotedCalls;
use crate::expr::evaluate::evaluate_tensor_in;
use crate::plan::axes::AxisList;
use crate::storage::axes::AxisBlock;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::distinct::SortOnce;
use crate::types::set::list::List;
use crate::types::set::remove::Within;
use crate::types::set::{Bool, DimKey, Dims, False, FirstWith, Keys, MaybeDim, NoDim, True, Union};
use crate::types::tuples::nested;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::ops::Range;
use kernels::loops::axes::Order;
use kernels::scalar::Element;

/// An argument of a mapped function, for a parameter of type `P`. The function does not see the
/// dims `M`.
#[diagnostic::on_unimplemented(
    message = "this function takes `{P}`, not one example of `{Self}`",
    label = "the parameter's type is not that of one example",
    note = "one example owns its elements, and has all dims of the argument except the mapped ones"
)]
pub trait Given<P, D, M: Dims>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// Whether the parameter is a number.
    #[doc(hidden)]
    const NUMBER: bool = false;
    /// See [`Way`].
    type Way: Way;
    /// The argument in memory.
    type Held;
    /// The argument, sealed if it has a mapped dim.
    type Sealed;
    // Not a method: for a missing method with a similar name, such as `fold`, rustc would search
    // this trait without end. The line of the user's program is a parameter here and below: `vmap`
    // returns a closure, and a closure cannot be `#[track_caller]`.
    #[doc(hidden)]
    fn hold(argument: Self, place: Origin) -> Result<Self::Held, DimError>;
    #[doc(hidden)]
    fn unify(held: &Self::Held, further: &mut Further<M>) -> Result<(), DimError>;
    #[doc(hidden)]
    fn seal(held: Self::Held, further: &Further<M>) -> Self::Sealed;
    /// The parameter for all examples.
    #[doc(hidden)]
    fn whole(sealed: Self::Sealed) -> P;
    /// The parameter for one example.
    #[doc(hidden)]
    fn one(sealed: &Self::Sealed, at: &[usize]) -> P;
    /// The parameters for the examples with these row-major indices, if the parameter is a number.
    /// `copies` is memory for them.
    #[doc(hidden)]
    fn numbers<'l>(_: &'l Self::Sealed, _: Range<usize>, _: &'l mut Vec<P>) -> &'l [P] {
        unreachable!("{NO_NUMBER}")
    }
    /// One of the parameters that [`numbers`](Given::numbers) returned.
    #[doc(hidden)]
    fn copied(_: &[P], _: usize) -> P {
        unreachable!("{NO_NUMBER}")
    }
    /// The size of the examples' dim that satisfies `is`, if there is one.
    #[doc(hidden)]
    fn size(sealed: &Self::Sealed, is: &dyn Fn(&DimKey) -> bool) -> Option<usize>;
}

#[diagnostic::do_not_recommend]
impl<A, T, K, R, D, M, V, H> Given<Named<T, K, R>, D, M> for A
where
    A: Computable<Dims: Dims<List: EndsInRest<HasRest: Bool<Or<HasAny<A::Dims, D>> = V>>>>,
    K: Dims<List: EndsInRest<HasRest = H>>,
    R: Rank,
    D: DimList<Brands: FirstWith<Within<<A::Dims as Dims>::List>>>,
    M: Dims,
    TensorOf<A>: MappedOne<D, M>,
    V: Hands<H, <TensorOf<A> as MappedOne<D, M>>::Sealed, Named<T, K, R>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Way = V::Way;
    type Held = TensorOf<A>;
    type Sealed = <TensorOf<A> as MappedOne<D, M>>::Sealed;

    fn hold(argument: Self, place: Origin) -> Result<Self::Held, DimError> {
        if V::Way::ONE_BY_ONE {
            return one_after_the_other::<A, K>(argument, place);
        }
        let tensor = argument.into_named();
        let origin = origin_of::<A::Dims>(&tensor.expr, place);
        Ok(Named::from_expr(eval(tensor)?.expr.with_origin(origin)))
    }

    fn unify(held: &Self::Held, further: &mut Further<M>) -> Result<(), DimError> {
        MappedOne::unify(held, further)
    }

    fn seal(held: Self::Held, further: &Further<M>) -> Self::Sealed {
        MappedOne::seal(held, further)
    }

    fn whole(sealed: Self::Sealed) -> Named<T, K, R> {
        V::whole(sealed)
    }

    fn one(sealed: &Self::Sealed, at: &[usize]) -> Named<T, K, R> {
        V::one(sealed, at)
    }

    fn size(sealed: &Self::Sealed, is: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
        V::size(sealed, is)
    }
}

/// The argument in memory, one example after the other: each example, with the dims `K`, is a
/// contiguous part of this memory. The argument is computed or copied once, here, unless its memory
/// can be taken over.
pub(super) fn one_after_the_other<A: Computable, K: Dims>(
    argument: A,
    place: Origin,
) -> Result<TensorOf<A>, DimError> {
    let tensor = argument.into_named();
    let origin = origin_of::<A::Dims>(&tensor.expr, place);
    let shape = tensor.unified_shape()?;
    let order = examples_outermost(A::Dims::KEYS, K::KEYS, AxisList::in_memory_of::<K, A::Rank>().as_slice());
    let held = evaluate_tensor_in::<A::Dims, A::Rank, _>(tensor.expr, &shape, &order)?;
    Ok(Named::from_expr(held.with_origin(origin)))
}

/// An order of axes in which the dims `own` and the positional axes come last, in the order
/// `inner`.
fn examples_outermost(all: &Keys, own: &Keys, inner: &[usize]) -> Order {
    let (all_len, own_len) = (all.as_slice().len(), own.as_slice().len());
    let in_all = |axis: usize| match own.as_slice().get(axis) {
        Some(key) => all.position(key).expect("a dim of one example is one of the argument"),
        None => axis - own_len + all_len,
    };
    let inner: Order = inner.iter().map(|&axis| in_all(axis)).collect();
    (0..all_len).filter(|axis| !inner.contains(axis)).chain(inner.iter().copied()).collect()
}

/// A parameter that is a reference to `P`, `fn(&Tensor<..>)`.
///
/// The reference is valid for one call, so `P` is owned here.
pub enum Reference<P> {
    /// Shared by all calls.
    Counted(Rc<P>),
    /// For this call only.
    Own(P),
}

impl<P> Reference<P> {
    fn get(&self) -> &P {
        match self {
            Reference::Counted(tensor) => tensor,
            Reference::Own(tensor) => tensor,
        }
    }
}

/// The argument of a [`Reference`] parameter.
pub enum Referent<X, P> {
    /// The same value for all examples.
    Alike(Rc<P>),
    /// The sealed argument, with all examples.
    Each(X),
}

#[diagnostic::do_not_recommend]
impl<A, P, D, M: Dims> Given<Reference<P>, D, M> for A
where
    // (Without the bound `Computable`, the error for an argument that is not a tensor would name
    // `Reference<Reference<..>>` if rustc does not know `P`.)
    A: Computable + Given<P, D, M>,
    P: ByValue,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Way = A::Way;
    type Held = A::Held;
    type Sealed = Referent<A::Sealed, P>;

    fn hold(argument: Self, place: Origin) -> Result<Self::Held, DimError> {
        A::hold(argument, place)
    }

    fn unify(held: &Self::Held, further: &mut Further<M>) -> Result<(), DimError> {
        A::unify(held, further)
    }

    fn seal(held: Self::Held, further: &Further<M>) -> Self::Sealed {
        let sealed = A::seal(held, further);
        if A::Way::ALIKE { Referent::Alike(Rc::new(A::whole(sealed))) } else { Referent::Each(sealed) }
    }

    fn whole(lent: Self::Sealed) -> Reference<P> {
        match lent {
            Referent::Alike(tensor) => Reference::Counted(tensor),
            Referent::Each(sealed) => Reference::Own(A::whole(sealed)),
        }
    }

    fn one(lent: &Self::Sealed, at: &[usize]) -> Reference<P> {
        match lent {
            Referent::Alike(tensor) => Reference::Counted(tensor.clone()),
            Referent::Each(sealed) => Reference::Own(A::one(sealed, at)),
        }
    }

    fn size(lent: &Self::Sealed, is: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
        match lent {
            Referent::Alike(tensor) => tensor.size_of(is),
            Referent::Each(sealed) => A::size(sealed, is),
        }
    }
}

/// A parameter that is a tensor or a number, not a reference. The bound `P: ByValue` lets rustc
/// choose the impl of [`Callee`].
pub trait ByValue {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The size of the tensor's dim that satisfies `is`, if there is one.
    #[doc(hidden)]
    fn size_of(&self, is: &dyn Fn(&DimKey) -> bool) -> Option<usize>;
}

impl<T, S: Dims, R: Rank> ByValue for Named<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn size_of(&self, is: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
        let at = S::KEYS.as_slice().iter().position(is)?;
        Some(self.expr.named().as_slice()[at].size)
    }
}

/// Converts a sealed tensor `X` to parameters of type `P`. `Self` says whether the argument has a
/// mapped dim, `H` whether the parameter has a rest.
pub trait Hands<H, X, P> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// See [`Way`].
    type Way: Way;
    #[doc(hidden)]
    fn whole(sealed: X) -> P;
    #[doc(hidden)]
    fn one(sealed: &X, at: &[usize]) -> P;
    #[doc(hidden)]
    fn size(sealed: &X, is: &dyn Fn(&DimKey) -> bool) -> Option<usize>;
}

impl<X> Hands<True, X, X> for True {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Way = Together;

    fn whole(sealed: X) -> X {
        sealed
    }

    fn one(_: &X, _: &[usize]) -> X {
        unreachable!("{APART}")
    }

    fn size(_: &X, _: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
        None
    }
}

impl<T, S, R, B, X> Hands<False, Named<T, S, R>, Named<T, X, R>> for True
where
    T: Element,
    S: Dims<List: EndsInRest<Visible: List<Tuple = X>, Behind = B>>,
    R: Rank,
    B: Dims,
    X: Dims,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Way = OneByOne;

    fn whole(_: Named<T, S, R>) -> Named<T, X, R> {
        unreachable!("{APART}")
    }

    fn one(sealed: &Named<T, S, R>, at: &[usize]) -> Named<T, X, R> {
        Named::from_expr(sealed.expr.at_last(at))
    }

    fn size(sealed: &Named<T, S, R>, is: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
        Apiece::size(&sealed, is)
    }
}

impl<T: Clone, S: Dims, R: Rank, H> Hands<H, Named<T, S, R>, Named<T, S, R>> for False {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Way = Alike;

    fn whole(sealed: Named<T, S, R>) -> Named<T, S, R> {
        sealed
    }

    fn one(sealed: &Named<T, S, R>, _: &[usize]) -> Named<T, S, R> {
        Named::from_expr(sealed.expr.clone())
    }

    fn size(sealed: &Named<T, S, R>, is: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
        sealed.size_of(is)
    }
}

const NO_NUMBER: &str = "only parameters that are numbers are passed as such";

const APART: &str = "parameters that see all examples and those that see one are told apart by their types";

/// A function with the parameters of the tuple `P` and the result `Y`.
#[diagnostic::on_unimplemented(
    message = "expected a function of 1 to 6 tensors or numbers",
    label = "each parameter must be a `Tensor<..>`, a `&Tensor<..>` or a number, not an array or a tuple",
    note = "write the types of a closure's parameters: `|x: &Tensor<f32, (Seq,)>, y: &Tensor<f32, (Seq,)>| ..`; for a closure of one tuple, `|(x, y)| ..`, use `batched`"
)]
pub trait Callee<P, Y> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    fn call(&self, params: P) -> Y;
}

/// A tensor or a tuple of tensors that a function with the parameters `P` and the result `Y` can be
/// mapped over; the caller gets `O`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a mapped function of `{P}`",
    label = "these tensors do not fit the parameters of this function",
    note = "to pass an array, bind it: `a.at((n, ..))`; pass several tensors as a tuple, and a number as `&full((), x)`; each parameter must have the type of one example; either all parameters for mapped tensors have a `Rest`, or none of them does"
)]
pub trait Maps<D, P, Y, O> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of all tensors.
    type All: Dims;
    // An associated function like `Given::hold`, so that rustc does not find it as a method.
    #[doc(hidden)]
    fn try_map(arguments: Self, dims: &D, function: &impl Callee<P, Y>, place: Origin) -> Result<O, DimError>
    where
        Self: Sized;
}

/// Runs a function with the parameters `P` and the result `Y` on the tuple `X`. `M` are the dims
/// that the function does not see.
#[diagnostic::on_unimplemented(
    message = "a mapped function cannot return `{Y}`",
    label = "expected a tensor without the mapped dims, a number (if no parameter has a `Rest`), or a tuple of up to 6 of these"
)]
pub trait Runs<X, P, D, M, Y> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The result for the caller.
    type Out;
    #[doc(hidden)]
    fn run(tensors: X, dims: &D, function: &impl Callee<P, Y>, place: Origin) -> Result<Self::Out, DimError>;
}

#[diagnostic::do_not_recommend]
impl<X, P, D, M, Y> Runs<X, P, D, M, Y> for Alike
where
    Together: Runs<X, P, D, M, Y>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <Together as Runs<X, P, D, M, Y>>::Out;

    fn run(tensors: X, dims: &D, function: &impl Callee<P, Y>, place: Origin) -> Result<Self::Out, DimError> {
        Together::run(tensors, dims, function, place)
    }
}

impl<A, S, D, M, W, P, Y, O> Maps<D, (P,), Y, O> for A
where
    A: United<All = S>,
    S: Dims<List: EndsInRest>,
    D: DimList<Brands: SortOnce>,
    Visible<D>: Union<RestOf<S>, Out = M>,
    M: Dims,
    A: Given<P, D, M, Way = W>,
    W: Runs<(A,), (P,), D, M, Y, Out = O>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = S;

    fn try_map(
        argument: Self,
        dims: &D,
        function: &impl Callee<(P,), Y>,
        place: Origin,
    ) -> Result<O, DimError> {
        W::run((argument,), dims, function, place)
    }
}

macro_rules! parameter {
    (value $p:ident) => { $p };
    (reference $p:ident) => { Reference<$p> };
}

macro_rules! taken {
    (value $p:ident) => {
        $p
    };
    (reference $p:ident) => {
        &$p
    };
}

macro_rules! passed {
    (value $param:expr) => {
        $param
    };
    (reference $param:expr) => {
        $param.get()
    };
}

macro_rules! callee {
    ($(($way:ident $p:ident $n:tt))*) => {
        #[diagnostic::do_not_recommend]
        impl<Function, Result_, $($p),*> Callee<($(parameter!($way $p),)*), Result_> for Function
        where
            Function: Fn($(taken!($way $p)),*) -> Result_,
            $($p: ByValue,)*
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            fn call(&self, params: ($(parameter!($way $p),)*)) -> Result_ {
                self($(passed!($way params.$n)),*)
            }
        }
    };
}

/// Implements [`Callee`] for each choice of parameters by value or by reference.
macro_rules! callees {
    ([$($done:tt)*]) => { callee!($($done)*); };
    ([$($done:tt)*] $p:ident $n:tt $($rest:tt)*) => {
        callees!([$($done)* (value $p $n)] $($rest)*);
        callees!([$($done)* (reference $p $n)] $($rest)*);
    };
}

callees!([] P 0);
callees!([] P 0 Q 1);
callees!([] P 0 Q 1 U 2);
callees!([] P 0 Q 1 U 2 V 3);
callees!([] P 0 Q 1 U 2 V 3 W 4);
callees!([] P 0 Q 1 U 2 V 3 W 4 Z 5);

macro_rules! tuples {
    ($($a:ident $p:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<Along, Further_, Result_, $($a, $p),*> Runs<($($a,)*), ($($p,)*), Along, Further_, Result_> for Together
        where
            Along: DimList,
            Further_: Dims,
            Result_: Unmapped,
            NoDim<Result_::Clash>: Apart<Result_::Clash>,
            $($a: Given<$p, Along, Further_>,)*
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = Result_::Out;

            fn run(
                tensors: ($($a,)*),
                dims: &Along,
                function: &impl Callee<($($p,)*), Result_>,
                place: Origin,
            ) -> Result<Self::Out, DimError> {
                let mut further = Further::<Further_>::new();
                let held = ($(Given::hold(tensors.$n, place)?,)*);
                $($a::unify(&held.$n, &mut further)?;)*
                unify_all(&mut further, dims)?;
                function.call(($($a::whole($a::seal(held.$n, &further)),)*)).try_open(place)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<Along, Further_, Result_, Clash, $($a, $p),*> Runs<($($a,)*), ($($p,)*), Along, Further_, Result_> for OneByOne
        where
            Along: DimList,
            Further_: Dims,
            Result_: Collect<Further_, All: Unmapped<Clash = Clash>>,
            Clash: MaybeDim,
            NoDim<Clash>: Apart<Clash>,
            $($a: Given<$p, Along, Further_>,)*
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = <Result_::All as Unmapped>::Out;

            fn run(
                tensors: ($($a,)*),
                dims: &Along,
                function: &impl Callee<($($p,)*), Result_>,
                place: Origin,
            ) -> Result<Self::Out, DimError> {
                let mut further = Further::<Further_>::new();
                let held = ($(Given::hold(tensors.$n, place)?,)*);
                $($a::unify(&held.$n, &mut further)?;)*
                unify_all(&mut further, dims)?;
                let sealed = ($($a::seal(held.$n, &further),)*);
                if const { Result_::NUMBERS $(&& <$a as Given<$p, Along, Further_>>::NUMBER)* } {
                    let count = number_of_examples::<Further_>(further.sizes())?;
                    let mut results = Result_::none();
                    Result_::make_room(count, &mut results)?;
                    let mut copies = ($(Vec::<$p>::new(),)*);
                    let mut calls = NotedCalls::of("a function of numbers");
                    calls.run(count, || {
                        (0..count).step_by(NUMBERS_AT_ONCE).try_for_each(|first| {
                            let all = first..count.min(first.saturating_add(NUMBERS_AT_ONCE));
                            let len = all.len();
                            let numbers = ($(&$a::numbers(&sealed.$n, all.clone(), &mut copies.$n)[..len],)*);
                            let call = move |at| function.call(($($a::copied(numbers.$n, at),)*));
                            Result_::add_all((0..len).map(call), &mut results)
                        })
                    })?;
                    calls.finish(Result_::bytes(&results));
                    return Result_::finish(results, further.sizes(), &|_| None, place)?.try_open(place);
                }
                let call = |at: &[usize]| Ok(function.call(($($a::one(&sealed.$n, at),)*)));
                let function = "a function of one example (one whose parameters have `Rest` runs once)";
                looped::<Further_, Result_>(
                    function,
                    further.sizes(),
                    call,
                    |is| further.size(is)$(.or_else(|| $a::size(&sealed.$n, is)))*,
                    place,
                )?
                .try_open(place)
            }
        }
    };
}

/// How many calls of a function of numbers an inner loop makes: enough to vectorize the loop where
/// possible, and few enough for copies of the numbers to stay in the first-level cache.
const NUMBERS_AT_ONCE: usize = 256;

macro_rules! several {
    ($($a:ident $p:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<Along, All, Further_, Result_, Way_, Output, $($a, $p),*> Maps<Along, ($($p,)*), Result_, Output> for ($($a,)*)
        where
            nested![$($a),*]: United<All = All>,
            Along: DimList<Brands: SortOnce>,
            All: Dims<List: EndsInRest>,
            Visible<Along>: Union<RestOf<All>, Out = Further_>,
            Further_: Dims,
            $($a: Given<$p, Along, Further_>,)*
            nested![$(<$a as Given<$p, Along, Further_>>::Way),*]: Ways<All = Way_>,
            Way_: Runs<($($a,)*), ($($p,)*), Along, Further_, Result_, Out = Output>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type All = All;

            fn try_map(
                arguments: Self,
                dims: &Along,
                function: &impl Callee<($($p,)*), Result_>,
                place: Origin,
            ) -> Result<Output, DimError> {
                Way_::run(arguments, dims, function, place)
            }
        }

        tuples!($($a $p $n)*);
    };
}

several!(A P 0);
several!(A P 0 B Q 1);
several!(A P 0 B Q 1 C U 2);
several!(A P 0 B Q 1 C U 2 G V 3);
several!(A P 0 B Q 1 C U 2 G V 3 H W 4);
several!(A P 0 B Q 1 C U 2 G V 3 H W 4 I Z 5);
