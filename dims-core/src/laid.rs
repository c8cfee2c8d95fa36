//! Typed layouts: tensors whose type says in which order their axes lie in memory.
//!
//! A [`Tensor`](crate::named::Tensor) is a set of dims; how its elements lie is known where it runs. Where code depends on the order, as what is
//! handed to another library does, [`Laid<T, (N, H, W, C)>`](Laid) has it in the type: the last dim is the one whose elements are
//! neighbours.
//!
//! ```text
//! fn encode(image: &Laid<u8, (H, W, C)>) -> Vec<u8> { codec::encode(image.as_slice()) }
//!
//! encode(&image.laid((H, W, C)))          moves elements only if they do not lie so already
//! encode(&image.laid((C, H, W)))          expected `&Laid<u8, (H, W, C)>`, found `&Laid<u8, (C, H, W)>`
//! ```

use crate::bind::split::sizes_of;
use crate::brand::{Brand, CompareKeys, Element as InSet, Equal, Greater, Less, Rest};
use crate::convert::Length;
use crate::dim::{DimList, DimRef};
use crate::error::{DimError, unwrap};
use crate::named::Named;
use crate::order::ArrayRank;
use crate::plan::axes::AxisList;
use crate::rank::Rank0;
use crate::reduce::evaluate_in;
use crate::restructure::PartsOf;
use crate::scalar::Element;
use crate::set::list::List;
use crate::set::{Bound, Dims, DimsOf, Right, SetOf, Wrong};
use crate::storage::Owned;
use crate::storage::axes::AxisBlock;
use crate::tensor::{AsTensor, Computable};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use smallvec::SmallVec;

/// A tensor whose elements lie contiguously in the order of the dims `L`, the last one fastest: `Laid<f32, (N, H, W, C)>`.
///
/// Made by [`laid`](Lay::laid). It is a tensor as any other in all operations, and derefs to one.
pub struct Laid<T, L: SetOf>(Named<T, L::Set>);

/// The dims of a list as a tuple, in the order in which they are written.
pub type InOrder<D> = <<D as DimList>::Brands as List>::Tuple;

/// The dims of a tuple, as nested pairs.
type ListOf<L> = <L as Dims>::List;

/// Puts tensors into an order that their type says.
pub trait Lay: Computable<Rank = Rank0> {
    /// The tensor with its elements contiguous in the order of `dims`, which are all that it has.
    ///
    /// If it owns elements that lie so, none is moved, and [`explain`](crate::plan::explain::explain) shows no step; an expression is
    /// computed in that order. Else elements are copied, which is a step of the plan.
    ///
    /// # Panics
    ///
    /// If the tensor is an expression that cannot be computed, or does not fit into memory.
    #[track_caller]
    fn laid<D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(self, dims: D) -> Laid<Self::Elem, InOrder<D>>
    where
        <D as DimList>::Brands: List,
        InOrder<D>: SetOf,
    {
        unwrap(self.try_laid(dims))
    }

    /// As [`laid`](Lay::laid), but what sizes decide is an error.
    fn try_laid<D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(
        self,
        _dims: D,
    ) -> Result<Laid<Self::Elem, InOrder<D>>, DimError>
    where
        <D as DimList>::Brands: List,
        InOrder<D>: SetOf,
    {
        let order = const { &AxisList::of(<D as DimList>::KEYS, Self::Dims::KEYS) }.as_slice();
        let tensor = self.into_named();
        let shape = tensor.shape()?;
        let data = evaluate_in::<Self::Dims, Rank0, _>(tensor.expr, &shape, order)?;
        let sizes: SmallVec<[usize; 8]> = order.iter().map(|&axis| shape.size(axis)).collect();
        // The set of the dims named is that of the tensor, as none is left.
        let order =
            const { &AxisList::of(<D as DimList>::KEYS, <InOrder<D> as SetOf>::Set::KEYS) }.as_slice();
        Ok(Laid(Named::from_expr(Owned::in_order(data, order, &sizes))))
    }
}

/// No dims are left: the layout `D` names all that the tensor has.
#[diagnostic::on_unimplemented(
    message = "the layout `{D}` lacks the dims `{Self}` of the tensor",
    label = "a layout names all dims"
)]
pub trait LaidWhole<D>: Dims {}
#[diagnostic::do_not_recommend]
impl<D> LaidWhole<D> for () {}
#[diagnostic::do_not_recommend]
impl<D> LaidWhole<D> for (Rest<()>,) {}

impl<A: Computable<Rank = Rank0>> Lay for A {}

impl<T: Element, L: SetOf + Dims> Laid<T, L> {
    /// The loop axes of the tensor in the order in which they lie.
    const ORDER: &'static AxisList = &AxisList::of(L::KEYS, <L::Set as Dims>::KEYS);

    /// The sizes, in the order in which the axes lie.
    pub fn sizes(&self) -> Vec<usize> {
        let axes = self.0.expr.named().as_slice();
        Self::ORDER.as_slice().iter().map(|&axis| axes[axis].size).collect()
    }

    /// The elements as they lie.
    pub fn as_slice(&self) -> &[T] {
        self.0.expr.all()
    }

    /// The elements as they lie, for good. Nothing is copied.
    pub fn into_vec(self) -> Vec<T> {
        match self.0.expr.into_contiguous(Self::ORDER.as_slice()) {
            Ok(data) => data,
            Err(_) => unreachable!("the elements are contiguous in this order"),
        }
    }

    /// The elements as an ndarray array with the same axes in standard layout. Nothing is copied.
    pub fn into_array(self) -> <<ListOf<L> as Length>::Rank as ArrayRank>::Array<T>
    where
        ListOf<L>: Length<Rank: ArrayRank>,
    {
        let sizes = self.sizes();
        <<ListOf<L> as Length>::Rank as ArrayRank>::array(self.into_vec(), &sizes)
    }

    /// The tensor with some neighbours among its axes as one dim `whole`, whose size is the product of theirs: `(N, H, W, C)` with `(H, W)`
    /// as `Pixel` is `(N, Pixel, C)`. The type proves that this moves nothing.
    ///
    /// # Panics
    ///
    /// If `whole` has another size.
    #[track_caller]
    pub fn merge<P: PartsOf<W> + Neighbours<L, W>, W: DimRef>(
        self,
        parts: P,
        whole: W,
    ) -> Laid<T, Merged<L, P, W>>
    where
        ListOf<L>: MergesIn<P::Brands, W::Brand>,
        Merged<L, P, W>: SetOf + Dims,
    {
        unwrap(self.try_merge(parts, whole))
    }

    /// As [`merge`](Laid::merge), but what sizes decide is an error.
    pub fn try_merge<P: PartsOf<W> + Neighbours<L, W>, W: DimRef>(
        self,
        _parts: P,
        whole: W,
    ) -> Result<Laid<T, Merged<L, P, W>>, DimError>
    where
        ListOf<L>: MergesIn<P::Brands, W::Brand>,
        Merged<L, P, W>: SetOf + Dims,
    {
        let mut sizes = self.sizes();
        let parts = P::KEYS.as_slice();
        let first =
            parts.first().and_then(|key| L::KEYS.position(key)).expect("the parts are axes of the tensor");
        let size = sizes.drain(first..first + parts.len()).product();
        whole.info().meet(size, None)?;
        sizes.insert(first, size);
        Ok(self.with_axes(&sizes))
    }

    /// The tensor with one axis as several dims, the last one fastest; one of their sizes may be unknown. `(N, Pixel, C)` with `Pixel` as
    /// `(H, W)` is `(N, H, W, C)`. The type proves that this moves nothing.
    ///
    /// # Panics
    ///
    /// If the sizes do not multiply to that of `whole`.
    #[track_caller]
    pub fn split<W: DimRef + AxisOf<L, P>, P: PartsOf<W>>(
        self,
        whole: W,
        parts: P,
    ) -> Laid<T, Divided<L, W, P>>
    where
        ListOf<L>: DividesInto<W::Brand, P::Brands>,
        Divided<L, W, P>: SetOf + Dims,
    {
        unwrap(self.try_split(whole, parts))
    }

    /// As [`split`](Laid::split), but what sizes decide is an error.
    pub fn try_split<W: DimRef + AxisOf<L, P>, P: PartsOf<W>>(
        self,
        whole: W,
        parts: P,
    ) -> Result<Laid<T, Divided<L, W, P>>, DimError>
    where
        ListOf<L>: DividesInto<W::Brand, P::Brands>,
        Divided<L, W, P>: SetOf + Dims,
    {
        let mut sizes = self.sizes();
        let at = L::KEYS.position(&whole.info().key()).expect("the dim is an axis of the tensor");
        let (mut own, mut met) = (SmallVec::<[usize; 8]>::new(), Ok(()));
        sizes_of(&parts, sizes[at], None, |dim, size| {
            own.push(size);
            if met.is_ok() {
                met = dim.meet(size, None);
            }
        })?;
        met?;
        sizes.splice(at..=at, own);
        Ok(self.with_axes(&sizes))
    }

    /// The same elements with other axes, in the order in which they lie.
    fn with_axes<M: SetOf + Dims>(self, sizes: &[usize]) -> Laid<T, M> {
        let order = const { &AxisList::of(M::KEYS, <M::Set as Dims>::KEYS) }.as_slice();
        Laid(Named::from_expr(Owned::in_order(self.into_vec(), order, sizes)))
    }

    /// The tensor, whose type does not say how it lies. Nothing is copied, and [`laid`](Lay::laid) with the same order is the way back.
    pub fn into_inner(self) -> Named<T, L::Set> {
        self.0
    }
}

/// The order `L` with the neighbours `P` as one dim.
pub type Merged<L, P, W> =
    <<ListOf<L> as MergesIn<<P as DimList>::Brands, <W as DimRef>::Brand>>::Out as List>::Tuple;

/// The order `L` with the dim `W` as several.
pub type Divided<L, W, P> =
    <<ListOf<L> as DividesInto<<W as DimRef>::Brand, <P as DimList>::Brands>>::Out as List>::Tuple;

/// Dims that lie side by side in the layout `L`, in this order.
pub trait Neighbours<L, W>: DimList {}
impl<P, L, W> Neighbours<L, W> for P
where
    P: DimList,
    W: DimRef,
    L: Dims<List: MergesIn<P::Brands, W::Brand, Verdict: SideBySide<P, L>>>,
{
}

/// The verdict that the dims `P` lie side by side in `L`.
#[diagnostic::on_unimplemented(
    message = "`{P}` are not neighbours, in this order, in the layout `{L}`",
    label = "only axes that lie side by side can be merged without moving elements"
)]
pub trait SideBySide<P, L> {}
#[diagnostic::do_not_recommend]
impl<P, L> SideBySide<P, L> for Right {}

/// A dim of the layout `L`.
pub trait AxisOf<L, P>: DimRef {}
impl<W, L, P> AxisOf<L, P> for W
where
    W: DimRef,
    P: DimList,
    L: Dims<List: DividesInto<W::Brand, P::Brands, Verdict: Bound<W::Brand, L>>>,
{
}

/// A list in which the brands `B` are to stand one behind the other.
pub trait MergesIn<B, W> {
    /// The list with `W` in their place.
    type Out: List;
    /// [`Right`], or [`Wrong`] if they do not stand so.
    type Verdict;
}

impl<B, W> MergesIn<B, W> for () {
    type Out = ();
    type Verdict = Wrong;
}

#[diagnostic::do_not_recommend]
impl<X, T, B, BT, W> MergesIn<(B, BT), W> for (X, T)
where
    X: InSet,
    B: Brand,
    X::Key: CompareKeys<B::Key, Out: MergeStep<X, T, (B, BT), W>>,
{
    type Out = <<X::Key as CompareKeys<B::Key>>::Out as MergeStep<X, T, (B, BT), W>>::Out;
    type Verdict = <<X::Key as CompareKeys<B::Key>>::Out as MergeStep<X, T, (B, BT), W>>::Verdict;
}

/// One step of [`MergesIn`].
pub trait MergeStep<X, T, B, W> {
    /// See [`MergesIn`].
    type Out: List;
    /// See [`MergesIn`].
    type Verdict;
}
#[diagnostic::do_not_recommend]
impl<X, T, BT, W> MergeStep<X, T, (X, BT), W> for Equal
where
    T: StartsWith<BT>,
    (W, T::Rest): List,
{
    type Out = (W, T::Rest);
    type Verdict = T::Verdict;
}

/// A list whose first elements are to be those of `B`.
pub trait StartsWith<B> {
    /// The others.
    type Rest;
    /// [`Right`], or [`Wrong`] if they are not.
    type Verdict;
}
impl<X> StartsWith<()> for X {
    type Rest = X;
    type Verdict = Right;
}
#[diagnostic::do_not_recommend]
impl<B, BT> StartsWith<(B, BT)> for () {
    type Rest = ();
    type Verdict = Wrong;
}
#[diagnostic::do_not_recommend]
impl<X, T, B, BT> StartsWith<(B, BT)> for (X, T)
where
    X: InSet,
    B: Brand,
    X::Key: CompareKeys<B::Key, Out: StartStep<X, T, (B, BT)>>,
{
    type Rest = <<X::Key as CompareKeys<B::Key>>::Out as StartStep<X, T, (B, BT)>>::Rest;
    type Verdict = <<X::Key as CompareKeys<B::Key>>::Out as StartStep<X, T, (B, BT)>>::Verdict;
}

/// One step of [`StartsWith`].
pub trait StartStep<X, T, B> {
    /// See [`StartsWith`].
    type Rest;
    /// See [`StartsWith`].
    type Verdict;
}
#[diagnostic::do_not_recommend]
impl<X, T: StartsWith<BT>, BT> StartStep<X, T, (X, BT)> for Equal {
    type Rest = T::Rest;
    type Verdict = T::Verdict;
}

/// A list that is to have the brand `W`.
pub trait DividesInto<W, B> {
    /// The list with the brands `B` in its place.
    type Out: List;
    /// [`Right`], or [`Wrong`] if it has not.
    type Verdict;
}

impl<W, B> DividesInto<W, B> for () {
    type Out = ();
    type Verdict = Wrong;
}

#[diagnostic::do_not_recommend]
impl<X, T, W, B> DividesInto<W, B> for (X, T)
where
    X: InSet,
    W: Brand,
    X::Key: CompareKeys<W::Key, Out: DivideStep<X, T, W, B>>,
{
    type Out = <<X::Key as CompareKeys<W::Key>>::Out as DivideStep<X, T, W, B>>::Out;
    type Verdict = <<X::Key as CompareKeys<W::Key>>::Out as DivideStep<X, T, W, B>>::Verdict;
}

/// One step of [`DividesInto`].
pub trait DivideStep<X, T, W, B> {
    /// See [`DividesInto`].
    type Out: List;
    /// See [`DividesInto`].
    type Verdict;
}
#[diagnostic::do_not_recommend]
impl<X, T, B: InFrontOf<T, Out: List>> DivideStep<X, T, X, B> for Equal {
    type Out = B::Out;
    type Verdict = Right;
}

macro_rules! further {
    ($($verdict:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<X, T, B, W> MergeStep<X, T, B, W> for $verdict
        where
            T: MergesIn<B, W>,
            (X, T::Out): List,
        {
            type Out = (X, T::Out);
            type Verdict = T::Verdict;
        }

        #[diagnostic::do_not_recommend]
        impl<X, T, B> StartStep<X, T, B> for $verdict {
            type Rest = ();
            type Verdict = Wrong;
        }

        #[diagnostic::do_not_recommend]
        impl<X, T, W, B> DivideStep<X, T, W, B> for $verdict
        where
            T: DividesInto<W, B>,
            (X, T::Out): List,
        {
            type Out = (X, T::Out);
            type Verdict = T::Verdict;
        }
    )*};
}

further!(Less Greater);

/// A list with another one behind it.
pub trait InFrontOf<T> {
    /// Both.
    type Out;
}
impl<T> InFrontOf<T> for () {
    type Out = T;
}
#[diagnostic::do_not_recommend]
impl<B, BT: InFrontOf<T>, T> InFrontOf<T> for (B, BT) {
    type Out = (B, BT::Out);
}

impl<T, L: SetOf> Deref for Laid<T, L> {
    type Target = Named<T, L::Set>;

    fn deref(&self) -> &Named<T, L::Set> {
        &self.0
    }
}

impl<T: Element, L: SetOf> Clone for Laid<T, L> {
    fn clone(&self) -> Self {
        Laid(self.0.clone())
    }
}

impl<T, L: SetOf> fmt::Debug for Laid<T, L>
where
    Named<T, L::Set>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Element, L: SetOf> AsTensor for Laid<T, L> {
    type Elem = T;
    type Dims = L::Set;
    type Rank = Rank0;
    type Expr = Owned<T, L::Set>;

    fn into_named(self) -> Named<T, L::Set> {
        self.0
    }
}

impl<'a, T: Element, L: SetOf> AsTensor for &'a Laid<T, L> {
    type Elem = T;
    type Dims = L::Set;
    type Rank = Rank0;
    type Expr = &'a Owned<T, L::Set>;

    fn into_named(self) -> Named<T, L::Set, Rank0, &'a Owned<T, L::Set>> {
        Named::from_expr(&self.0.expr)
    }
}
