//! Arguments of batched functions. They are computed, and sealed with the union of the extra dims
//! of all arguments for the same `Rest`.

use super::example::{Alone, Example, Param};
use crate::error::{DimError, Origin};
use crate::execute::reduce::eval;
use crate::expr::{Expr, Raw};
use crate::plan::shape::Shape;
use crate::storage::axes::ABSENT;
use crate::storage::{Evaluated, View};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::brand::DimInfo;
use crate::types::dim::UNSIZED;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::list::List;
use crate::types::set::remove::{Left, Missing, Removal, RemoveAll};
use crate::types::set::{Bound, DimKey, Dims, Keys, MAX_DIMS, NoDim, Union};
use core::marker::PhantomData;
use kernels::memory::axes::Axis;
use kernels::memory::elements::Elements;
use smallvec::SmallVec;

/// An argument for a parameter of type `W` of a batched function. It has the dims of `W`, and may
/// have extra dims.
///
/// `Before` is the union of the extra dims of the previous arguments for the same `Rest`. `After`
/// also has the extra dims of this argument.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor",
    label = "a tensor is expected here",
    note = "bind each axis of an array to a dim: `a.at(Seq)`, or `a.at((n, Seq))` with an extra dim `n`; `..` leaves an axis positional"
)]
pub trait Argument<W: Example, Before: Dims, After: Dims>: Computable {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The argument with the dims of `W` and the rest `B`, which stands for `U`.
    #[doc(hidden)]
    fn seal<'h, U: Dims, B: Dims>(held: &'h HeldArgument<Self>, further: &Further<U>) -> Param<'h, W, B>;

    /// The argument with the dims of `W`, if it has no extra dims.
    #[doc(hidden)]
    fn alone(held: &HeldArgument<Self>) -> Alone<'_, W>;
}

impl<A, W, Before, After> Argument<W, Before, After> for A
where
    A: Computable<Elem: IsElem<W::Elem>, Rank: IsRank<W::Rank>>,
    W: Example,
    Before: Dims,
    After: Dims,
    <A::Dims as Dims>::List: RemoveAll<ExampleList<W>, A::Dims, Out: Removal<Left: List>>,
    NoDim<Missing<A::Dims, ExampleList<W>>>: Bound<
            Missing<A::Dims, ExampleList<W>>,
            A::Dims,
            Then<Left<A::Dims, ExampleList<W>>>: Union<Before, Out = After>,
        >,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[inline]
    fn seal<'h, U: Dims, B: Dims>(held: &'h HeldArgument<Self>, further: &Further<U>) -> Param<'h, W, B> {
        const { SealedAxes::<A::Dims, W::Dims, U>::fits::<<W::Dims as Dims>::Sealed<B>>() };
        let raw = held.raw();
        let own = W::Dims::KEYS.as_slice().len();
        raw_view(raw, &SealedAxes::<A::Dims, W::Dims, U>::FROM, |at| further.sizes()[at - own])
    }

    #[inline]
    fn alone(held: &HeldArgument<Self>) -> Alone<'_, W> {
        let raw = held.raw();
        assert_eq!(A::Dims::KEYS.as_slice().len(), W::Dims::KEYS.as_slice().len(), "no extra dims");
        raw_view(raw, &SealedAxes::<A::Dims, W::Dims, ()>::FROM, |_| unreachable!("there are no extra dims"))
    }
}

/// An argument as a view whose axis `at` is the argument's axis `from[at]` or a broadcast axis.
#[inline]
fn raw_view<'a, T: IsElem<W>, W, S: Dims, R: Rank>(
    raw: Raw<'a, T>,
    from: &[usize],
    sizes: impl Fn(usize) -> usize,
) -> Named<W, S, R, View<'a, W, S, R>> {
    let elements = T::elements(raw.elements);
    Named::from_expr(View::permuted(elements, (&raw.named, &raw.positional), from, sizes, raw.origin))
}

/// No extra dims, for a parameter without `Rest` in a function that names `Rest<B>` itself.
#[diagnostic::on_unimplemented(
    message = "this parameter takes no extra dims, but its argument has `{Self}`",
    label = "this has extra dims",
    note = "the function takes extra dims where its signature says `Rest<B>`"
)]
pub trait NoFurther: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl NoFurther for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The dims of an example as nested pairs.
type ExampleList<W> = <<W as Example>::Dims as Dims>::List;

/// The element type matches the function's parameter.
#[diagnostic::on_unimplemented(
    message = "this function takes a tensor of `{T}`, not of `{Self}`",
    label = "the elements of this argument are `{Self}`: convert them, `.cast::<{T}>()`"
)]
pub trait IsElem<T>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The same elements, with the type `T`.
    #[doc(hidden)]
    fn elements(own: Elements<'_, Self>) -> Elements<'_, T>
    where
        Self: Sized;
}
#[diagnostic::do_not_recommend]
impl<T> IsElem<T> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn elements(own: Elements<'_, T>) -> Elements<'_, T> {
        own
    }
}

/// The number of positional axes matches the function's parameter.
#[diagnostic::on_unimplemented(
    message = "this function takes a tensor with positional axes of `{R}`, not of `{Self}`",
    label = "this has `{Self}`: bind the axes that are extra dims, and leave the others, `a.at((n, .., ..))`"
)]
pub trait IsRank<R> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<R: Rank> IsRank<R> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// An argument in memory: as passed, or computed.
pub struct HeldArgument<A: AsTensor>(Holding<A>);

enum Holding<A: AsTensor> {
    AsItCame(A::Expr),
    Computed(Evaluated<A::Elem, A::Dims, A::Rank>),
}

impl<A: Computable> HeldArgument<A> {
    /// Computes the argument, if it is not in memory.
    #[inline]
    #[track_caller]
    pub fn new(argument: A) -> Result<Self, DimError> {
        let tensor = argument.into_named();
        if tensor.expr.in_memory::<A::Dims>().is_some() {
            return Ok(HeldArgument(Holding::AsItCame(tensor.expr)));
        }
        Ok(HeldArgument(Holding::Computed(eval(tensor)?.expr)))
    }

    #[inline]
    pub(crate) fn raw(&self) -> Raw<'_, A::Elem> {
        let raw = match &self.0 {
            Holding::AsItCame(expr) => expr.in_memory::<A::Dims>(),
            Holding::Computed(owned) => owned.in_memory::<A::Dims>(),
        };
        raw.expect("the argument is in memory")
    }
}

/// The sizes of the extra dims of all arguments for one `Rest` in one call.
pub struct Further<U: Dims> {
    shape: Shape,
    marker: PhantomData<fn() -> U>,
}

impl<U: Dims> Further<U> {
    /// No sizes are known yet.
    #[inline]
    #[allow(clippy::new_without_default)] // a default value has no sizes, so it is useless
    pub fn new() -> Self {
        Further { shape: Shape::new::<U, Rank0>(), marker: PhantomData }
    }

    /// Unifies the sizes of the extra dims of an argument for a parameter of type `W`.
    #[inline]
    pub fn unify<W: Example, A: Computable>(&mut self, held: &HeldArgument<A>) -> Result<(), DimError> {
        let raw = held.raw();
        self.unify_axes::<A::Dims, W::Dims>(&raw.named, raw.origin)
    }

    /// Like [`unify`](Further::unify), for the axes of a tensor with the dims `S`. `K` are the dims
    /// that the function sees. The others are extra dims.
    #[inline]
    pub(super) fn unify_axes<S: Dims, K: Dims>(
        &mut self,
        axes: &[Axis],
        origin: Origin,
    ) -> Result<(), DimError> {
        let own = K::KEYS.as_slice().len();
        for at in 0..U::KEYS.as_slice().len() {
            let from = SealedAxes::<S, K, U>::FROM[own + at];
            if from != ABSENT {
                self.shape.unify(at, axes[from].size, origin)?;
            }
        }
        Ok(())
    }

    /// Unifies the size that a dim carries, if any.
    pub(super) fn unify_dim(&mut self, dim: DimInfo<'_>) -> Result<(), DimError> {
        match (self.shape.position(&dim.key()), dim.size()) {
            (Some(at), Some(size)) => self.shape.unify(at, size, dim.given.and_then(|(_, origin)| origin)),
            _ => Ok(()),
        }
    }

    /// Checks that every dim has a size; a static size counts.
    pub(super) fn finish(&mut self) -> Result<(), DimError> {
        self.shape.finish()
    }

    /// The sizes, in the order of the set.
    #[inline]
    pub fn sizes(&self) -> &[usize] {
        self.shape.sizes()
    }

    /// The size of a dim for which `is` holds, if there is one.
    pub(super) fn size(&self, is: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
        let at = U::KEYS.as_slice().iter().position(is)?;
        Some(self.sizes()[at])
    }

    /// The sizes for the called function, which sees these dims as its rest `B`.
    #[inline]
    pub fn closed<B: Dims>(&self) -> Batch<B> {
        debug_assert_eq!(B::KEYS.as_slice().len(), self.sizes().len(), "a rest stands for all extra dims");
        let sizes = (0..self.sizes().len()).map(|at| self.shape.known(at)).collect();
        Batch { sizes, marker: PhantomData }
    }
}

/// The sizes of the dims that `Rest<B>` stands for in one call.
pub struct Batch<B> {
    sizes: SmallVec<[(usize, Origin); 4]>,
    marker: PhantomData<fn() -> B>,
}

impl<B> Batch<B> {
    /// Unifies the sizes of the rest with those of the last dims of a result. If the elements do
    /// not vary along these dims, their sizes come only from here.
    pub(super) fn unify(&self, shape: &mut Shape) -> Result<(), DimError> {
        let first = shape.named_len() - self.sizes.len();
        for (at, &(size, origin)) in self.sizes.iter().enumerate() {
            if size != UNSIZED {
                shape.unify(first + at, size, origin)?;
            }
        }
        Ok(())
    }
}

/// The axes of a sealed tensor, as positions among those of a tensor with the dims `S`: the dims
/// `K` of one example, then the extra dims `U`.
pub(super) struct SealedAxes<S, K, U>(PhantomData<(S, K, U)>);

impl<S: Dims, K: Dims, U: Dims> SealedAxes<S, K, U> {
    pub(super) const FROM: [usize; MAX_DIMS] = from(S::KEYS, K::KEYS, U::KEYS);

    /// Rejects a set that has no room for a rest.
    pub(super) const fn fits<Sealed: Dims>() {
        let len = K::KEYS.as_slice().len() + U::KEYS.as_slice().len();
        assert!(
            Sealed::KEYS.as_slice().len() == len,
            "a function for a tensor of 26 dims cannot be batched: there is no room for extra dims"
        );
    }
}

const fn from(all: &Keys, own: &Keys, further: &Keys) -> [usize; MAX_DIMS] {
    let mut map = [ABSENT; MAX_DIMS];
    let (own_len, len) = (own.as_slice().len(), further.as_slice().len());
    let mut i = 0;
    while i < own_len + len && i < MAX_DIMS {
        let key = if i < own_len { &own.as_slice()[i] } else { &further.as_slice()[i - own_len] };
        // A dim of one example is not an extra dim, even if it is an extra dim of another argument.
        if (i < own_len || own.position(key).is_none())
            && let Some(at) = all.position(key)
        {
            map[i] = at;
        }
        i += 1;
    }
    map
}
