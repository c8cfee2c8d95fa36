//! `at` and the binders of all axes.

use super::binder::{Binder, Reading, Single, Unread};
use super::binding::Binding;
use super::source::{Axes, RankDyn, Source, SourceMut, check_rank};
use crate::error::{DimError, Origin};
use crate::expr::index::{BeforeIndices, IndexExprs};
use crate::expr::rebind::Rebindable;
use crate::storage::axes::AxisBlock;
use crate::storage::leaf::Leaf;
use crate::storage::source;
use crate::storage::view::BoundAxes;
use crate::storage::{Place, View};
use crate::tensors::named::Named;
use crate::types::dim::DimRef;
use crate::types::rank::{Rank, Rank0, Rank1};
use crate::types::set::list::List;
use crate::types::set::union::{Merge, MergeAll};
use crate::types::set::{Dims, DimsOf, True};
use crate::types::tuples::{each_tuple, fold, nested};
use core::panic::Location;
use kernels::memory::axes::Axis;
use kernels::scalar::Element;
use twins::panicking_twin;

/// A binder or a tuple of binders, for all axes of an array.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be bound to the axes of an array",
    label = "expected one binder for each axis: a dim, `..`, `Ellipsis`, an integer, a range, a tuple of dims, or a tensor of integers"
)]
pub trait BinderList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims that all binders introduce, sorted, as nested pairs.
    #[doc(hidden)]
    type Dims;
    /// The state after all binders.
    #[doc(hidden)]
    type Reads: Reading;
    #[doc(hidden)]
    fn bind_all(self, binding: &mut Binding<'_>) -> Result<<Self::Reads as Reading>::Indices, DimError>;
}

#[diagnostic::do_not_recommend]
impl<B: Single> BinderList for B {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = B::Dims;
    type Reads = B::Reads<Unread>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bind_all(self, binding: &mut Binding<'_>) -> Result<<Self::Reads as Reading>::Indices, DimError> {
        self.bind::<Unread>(binding, ())
    }
}

#[diagnostic::do_not_recommend]
impl BinderList for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = ();
    type Reads = Unread;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bind_all(self, _: &mut Binding<'_>) -> Result<(), DimError> {
        Ok(())
    }
}

macro_rules! binder_lists {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: Binder),*> BinderList for ($($d,)*)
        where
            nested![$($d::Dims),*]: MergeAll,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Dims = <nested![$($d::Dims),*] as MergeAll>::Out;
            type Reads = fold![Reads; Unread; $($d)*];

            #[cfg_attr(not(unoptimized), inline(always))]
            fn bind_all(self, binding: &mut Binding<'_>) -> Result<<Self::Reads as Reading>::Indices, DimError> {
                bind_each!(binding, (), Unread, $(self.$n, $d;)*)
            }
        }
    };
}

/// Applies one binder after the other. Each gets the computed indices of the previous ones.
macro_rules! bind_each {
    ($binding:ident, $indices:expr, $read:ty,) => { Ok($indices) };
    ($binding:ident, $indices:expr, $read:ty, $binder:expr, $d:ident; $($rest:tt)*) => {{
        let indices = $binder.bind::<$read>($binding, $indices)?;
        bind_each!($binding, indices, $d::Reads<$read>, $($rest)*)
    }};
}

each_tuple!(binder_lists);

/// The condition that the binders take as many axes as the array has.
#[diagnostic::on_unimplemented(
    message = "an array of `{Self}` cannot be bound by binders for `{Taken}`",
    label = "expected one binder for each axis that has no dim yet (in `tensor!`, one index); in `at`, `..` leaves one axis positional, and `Ellipsis` leaves all remaining ones, but not of an `ArrayD`"
)]
pub trait HasAxes<Taken, Ellipses> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The number of axes that `Ellipsis` stands for.
    type Rest: Rank;
}

#[diagnostic::do_not_recommend]
impl<R: Rank> HasAxes<R, Rank0> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rest = Rank0;
}

#[diagnostic::do_not_recommend]
impl<Taken: Rank, E: Rank<IsNone = True>> HasAxes<Taken, E> for RankDyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rest = Rank0;
}

#[diagnostic::do_not_recommend]
impl<Taken: Rank, R: Rank<Max<Taken> = R>> HasAxes<Taken, Rank1> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rest = Taken::TakenFrom<R>;
}

/// The condition that `Ellipsis` is used at most once.
#[diagnostic::on_unimplemented(
    message = "the binders of an array can have only one `Ellipsis`",
    label = "with several, it is unclear which axes each of them leaves positional"
)]
pub trait AtMostOneEllipsis {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl AtMostOneEllipsis for Rank0 {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
#[diagnostic::do_not_recommend]
impl AtMostOneEllipsis for Rank1 {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// `Rank0` without an `Ellipsis`, `Rank1` with one or more. [`AtMostOneEllipsis`] rejects several.
type AnyEllipsis<N> = <<N as Rank>::Pred as Rank>::TakenFrom<N>;

/// Binders that fit `R` axes of an array or tensor whose other axes already have the dims `S`. The
/// bound tensor has the dims `X`, the positional axes `Q`, and the computed indices `I`. rustc
/// infers all three; see [`DimsOf`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be bound to the axes of an array",
    label = "expected one binder for each axis: a dim, `..`, `Ellipsis`, an integer, a range, a tuple of dims, or a tensor of integers"
)]
pub trait Binds<R, S: Dims, X: Dims, Q: Rank, I>: BinderList<Reads: Reading<Indices = I>> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The number of axes that `Ellipsis` stands for.
    #[doc(hidden)]
    const REST: usize;
}

impl<L, R, S: Dims, X: Dims, Q: Rank, I> Binds<R, S, X, Q, I> for L
where
    L: BinderList<Reads: Reading<Indices = I, Ellipses: AtMostOneEllipsis>>,
    R: HasAxes<<L::Reads as Reading>::Taken, AnyEllipsis<<L::Reads as Reading>::Ellipses>>,
    <L::Reads as Reading>::Left: Rank<Plus<R::Rest> = Q>,
    S::List: Merge<L::Dims, Out: List<Tuple = X>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const REST: usize = <R::Rest as Rank>::N;
}

/// The tensor that results from binding an array with elements of type `T`: a view of the array.
pub type BoundView<'a, T, X, Q, I> = Named<T, X, Q, View<'a, T, X, Q, I>>;

/// A tensor with one dim bound again, and the computed indices that it already had.
pub type Rebound<'s, T, S, X, I, E> =
    BoundView<'s, T, X, Rank0, <I as BeforeIndices<<E as Rebindable<T, S>>::Indices<'s>>>::Out>;

const NO_AXES: <() as Dims>::Axes = [];

/// Applies binders to axes. If `lookup` binds a dim again, `dim` is that dim, and messages name the
/// axis after it.
#[cfg_attr(not(unoptimized), inline(always))]
fn read<B: Binds<R, S, X, Q, I>, R, S: Dims, X: Dims, Q: Rank, I>(
    binder: B,
    axes: Axes,
    named: &S::Axes,
    (dim, origin): (Option<&'static str>, Origin),
) -> Result<BoundAxes<X, Q, I>, DimError> {
    check_rank(axes.len(), <B::Reads as Reading>::Taken::N + B::REST)?;
    let mut out = X::Axes::filled(Axis::default());
    let mut positional = Q::Axes::filled(Axis::default());
    let mut binding = Binding::new::<X>(axes, B::REST, origin, &mut out, positional.as_mut_slice());
    binding.dim = dim;
    binding.carry::<S>(named)?;
    let indices = binder.bind_all(&mut binding)?;
    binding.check_primes(X::KEYS)?;
    let offset = binding.offset;
    Ok(BoundAxes { offset, named: out, positional, indices })
}

/// Binds the axes of an array to dims: [`at`](At::at) to read, [`at_mut`](At::at_mut) to write.
///
/// ```text
/// a.at((i, k))          element [i][k] of a, for all i and k
/// ```
pub trait At: Source {
    /// The array as a tensor, with each axis bound by its binder; see [`Binder`]. Nothing is
    /// copied.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let a = ndarray::array![[1, 2, 3], [4, 5, 6]];
    /// dims!(i, j);
    /// let x = a.at((i, j));                                   // x[i, j] = a[[i, j]]
    /// assert_eq!(x.order((j, i)), ndarray::array![[1, 4], [2, 5], [3, 6]]);
    /// assert_eq!(a.at((1, j)).order(j), ndarray::array![4, 5, 6]);  // an integer picks a position
    ///
    /// dims!(k);
    /// assert!(matches!(a.try_at((k, k)).map(|_| ()), Err(DimError::SizeConflict { dim: "k", .. })));
    /// ```
    ///
    /// # Panics
    ///
    /// If a dim or its prime already has a different size, an integer or a range is out of range, a
    /// tuple of dims cannot split its axis, [`UnitAxis`](super::UnitAxis) takes an axis whose size
    /// is not 1, the size of a dim cannot be inferred from an index expression, or an array of
    /// dynamic rank does not have as many axes as the binders take.
    #[panicking_twin]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn try_at<B: Binds<Self::Rank, (), X, Q, I>, X: Dims, Q: Rank, I>(
        &self,
        binder: B,
    ) -> Result<BoundView<'_, Self::Elem, X, Q, I>, DimError>
    where
        Self::Elem: Element,
    {
        let origin = Some(Location::caller());
        let (elements, axes) = source::elements(self);
        let read = read::<B, Self::Rank, (), X, Q, I>(binder, axes, &NO_AXES, (None, origin))?;
        Ok(Named::from_expr(View::bound(elements, read, origin)))
    }

    /// The elements as a place to assign to: `out.at_mut((i, j)).assign(x)`, `add_assign` and so
    /// on.
    ///
    /// If a binder is a tensor of integers, the assignment scatters:
    /// `e.at_mut((ids.at(i), f)).add_assign(v.at((i, f)))`.
    ///
    /// # Panics
    ///
    /// See [`At::at`].
    #[panicking_twin]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn try_at_mut<B: Binds<Self::Rank, (), X, Q, I>, X: Dims, Q: Rank, I>(
        &mut self,
        binder: B,
    ) -> Result<Place<'_, Self::Elem, X, Q, I>, DimError>
    where
        Self: SourceMut<Elem: Element>,
    {
        let origin = Some(Location::caller());
        let (elements, axes) = source::elements_mut(self);
        let read = read::<B, Self::Rank, (), X, Q, I>(binder, axes, &NO_AXES, (None, origin))?;
        Ok(Place::bound(elements, read, origin))
    }
}

impl<A: Source + ?Sized> At for A {}

impl<T: Element, S: Dims, R: Rank, E> Named<T, S, R, E> {
    /// The tensor with its positional axes bound, from the left. Nothing is copied.
    ///
    /// An expression must be `eval`uated before it can be bound.
    ///
    /// # Panics
    ///
    /// See [`At::at`].
    #[panicking_twin]
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn try_at<B: Binds<R, S, X, Q, I>, X: Dims, Q: Rank, I>(
        &self,
        binder: B,
    ) -> Result<BoundView<'_, T, X, Q, I>, DimError>
    where
        E: Leaf<T, S, R>,
    {
        let origin = Some(Location::caller());
        let (elements, named, positional) = self.expr.leaf();
        let axes = Axes::from_slice(positional.as_slice());
        let read = read::<B, R, S, X, Q, I>(binder, axes, named, (None, origin))?;
        Ok(Named::from_expr(View::bound(elements, read, origin)))
    }
}

impl<T: Element, S: Dims, E> Named<T, S, Rank0, E> {
    /// The tensor with one of its dims rebound, the way [`At::at`] binds an axis. With a tensor of
    /// integers, this looks up elements; other binders work too, except those that leave the axis
    /// positional, or insert a positional axis. Nothing is copied. As in `at`, a tuple is a list of
    /// binders, so a tuple that splits the dim is in a list of one: `((h, w),)`.
    ///
    /// ```text
    /// table.lookup(Word, &ids)        element [ids[batch, token], width] of the table, for all batch, token and width
    /// signal.lookup(Time, t + lag)    a window: a strided view
    /// image.lookup(Pixel, ((h, w),))  the dim is split into two
    /// ```
    ///
    /// To bind several dims, bind one after the other:
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Row; struct Column; struct Top; struct Left; struct Down = 2; struct Right = 2; }
    /// let x = from_fn((Row.of(3), Column.of(3)), |(r, c)| 3 * r + c);
    /// let tall = x.lookup(Row, Top.of(2) + Down);
    /// let windows = tall.lookup(Column, Left.of(2) + Right);       // element [top + down, left + right]
    /// assert_eq!(windows.sum((Down, Right)).order((Top, Left)), ndarray::array![[8, 12], [20, 24]]);
    /// ```
    ///
    /// An expression must be `eval`uated before it can be bound.
    ///
    /// # Panics
    ///
    /// See [`At::at`]. This method also panics if a computed index of this tensor uses `dim`. A
    /// computed index that is out of range panics when the result is computed.
    #[panicking_twin]
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn try_lookup<'s, D, O, B, X, I>(
        &'s self,
        dim: D,
        binder: B,
    ) -> Result<Rebound<'s, T, S, X, I, E>, DimError>
    where
        D: DimRef + DimsOf<S, O>,
        O: Dims,
        B: Binds<Rank1, O, X, Rank0, I>,
        X: Dims,
        E: Rebindable<T, S>,
        I: BeforeIndices<E::Indices<'s>>,
    {
        let origin = Some(Location::caller());
        let (elements, named, indices) = self.expr.bound();
        let key = dim.info().key();
        if indices.computes_with(&key) {
            let what = format!(
                "dim `{}` is in a computed index: `eval` the tensor before you bind it again",
                key.name
            );
            return Err(DimError::Shape { what });
        }
        let at = S::KEYS.position(&key).expect("the dim is one of the tensor's");
        let named = named.as_slice();
        if <D as DimRef>::GIVES_SIZE {
            dim.info().unify(named[at].size, None)?;
        }
        let mut others = O::Axes::filled(Axis::default());
        let kept = named.iter().enumerate().filter(|&(own, _)| own != at);
        for (other, (_, axis)) in others.as_mut_slice().iter_mut().zip(kept) {
            *other = *axis;
        }
        let axes = Axes::from_slice(&named[at..=at]);
        let read = read::<B, Rank1, O, X, Rank0, I>(binder, axes, &others, (Some(key.name), origin))?;
        let BoundAxes { offset, named, positional, indices: own } = read;
        let read = BoundAxes { offset, named, positional, indices: own.before(indices) };
        Ok(Named::from_expr(View::bound(elements, read, origin)))
    }
}
