//! Other dims over the same elements: `rename`, `index`, `slice`, `flatten`, `unflatten`, `split`.

use crate::bind::binder::{Position, after, cut, pick};
use crate::bind::split::Group;
use crate::brand::{Brand, DimInfo};
use crate::dim::{DimList, DimRef};
use crate::error::{DimError, unwrap};
use crate::expr::remap::{Along, term};
use crate::expr::{Expand, Remap};
use crate::named::{Named, position};
use crate::order::OrderList;
use crate::plan::axes::AxisList;
use crate::plan::evaluate::evaluate_in;
use crate::plan::shape::Shape;
use crate::rank::Rank0;
use crate::role::{KeepsRole, RolesSplit, RolesUnite};
use crate::set::ordered::{Decides, NamedTwice, Shares};
use crate::set::rename::{CanGain, New, NotIn, PartOf};
use crate::set::{Dims, DimsOf, Judged, NameFor, NamedOnce, Union, Verdict};
use crate::size::{MaySame, Resizable, SameSize, SizesAgree, Sliceable, Times};
use crate::storage::Owned;
use crate::storage::axes::Axis;
use crate::tensor::{AsTensor, Computable, as_said};
use alloc::vec::Vec;
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use smallvec::SmallVec;

/// A tensor over other dims `S`.
pub type Remapped<A, S> = Named<
    <A as AsTensor>::Elem,
    S,
    <A as AsTensor>::Rank,
    Remap<<A as AsTensor>::Expr, <A as AsTensor>::Dims, <A as AsTensor>::Rank>,
>;

/// The elements from a start to an end along a dim: `1..4`, `..n`, `2..`; negative positions count from the end.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a range of positions",
    label = "expected a range of integers, such as `1..4`"
)]
pub trait DimRange {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The start and the end, exclusive.
    #[doc(hidden)]
    fn bounds(self, size: usize) -> (i128, i128);
}

macro_rules! ranges {
    ($($range:ident |$r:ident, $size:ident| $start:expr, $end:expr;)*) => {$(
        impl<P: Position> DimRange for $range<P> {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            fn bounds(self, $size: usize) -> (i128, i128) {
                let $r = self;
                ($start, $end)
            }
        }
    )*};
}

ranges! {
    Range |r, _size| r.start.to_i128(), r.end.to_i128();
    RangeFrom |r, size| r.start.to_i128(), size as i128;
    RangeTo |r, _size| 0, r.end.to_i128();
    RangeInclusive |r, size| r.start().to_i128(), after(r.end().to_i128(), size as i128);
    RangeToInclusive |r, size| 0, after(r.end.to_i128(), size as i128);
}

impl DimRange for RangeFull {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn bounds(self, size: usize) -> (i128, i128) {
        (0, size as i128)
    }
}

/// Static sizes that multiply to that of `Whole`; a size that only the run knows is checked there.
#[diagnostic::on_unimplemented(
    message = "`{Whole}` has `{Size}` elements, which is not the product of `{Sizes}`",
    label = "the static sizes do not fit together"
)]
pub trait FitsInto<Whole, Size, Sizes> {}
#[diagnostic::do_not_recommend]
impl<Whole, Size, Sizes> FitsInto<Whole, Size, Sizes> for SizesAgree {}

/// The product of the sizes of brands, as a typenum.
pub trait SizeProduct {
    /// The product.
    type Out;
}

#[diagnostic::do_not_recommend]
impl SizeProduct for () {
    type Out = typenum::U1;
}

#[diagnostic::do_not_recommend]
impl<H: Brand, T: SizeProduct> SizeProduct for (H, T)
where
    H::Num: Times<T::Out>,
{
    type Out = <H::Num as Times<T::Out>>::Out;
}

/// The verdict on the product of the sizes of the dims `L` and the size of `Whole`.
type ProductVerdict<L, Whole> =
    <<<L as DimList>::Brands as SizeProduct>::Out as MaySame<<<Whole as DimRef>::Brand as Brand>::Num>>::Out;

/// Dims that a dim `Whole` can be split into, or flattened from.
pub trait PartsOf<Whole: DimRef>: DimList {
    /// The set of the dims.
    type Set: Dims;
}

impl<L, Whole> PartsOf<Whole> for L
where
    Whole: DimRef,
    L: DimList<Brands: Group + SizeProduct<Out: MaySame<<Whole::Brand as Brand>::Num>>>,
    ProductVerdict<L, Whole>: FitsInto<Whole::Brand, <Whole::Brand as Brand>::Size, L::Sizes>,
{
    type Set = <L::Brands as Group>::Set;
}

/// Dims that a tensor with the dims `S` can get beside `X`, those of its dims that stay: each is named once, and is none of these.
pub trait NewDims<X, S = X>: DimList {
    /// The dims of the tensor afterwards.
    type Out: Dims;
}

impl<L, X, S> NewDims<X, S> for L
where
    L: DimList<Brands: Group>,
    (): Shares<L::Brands, Found: Judged<Verdict: Decides>>,
    Verdict<NamedTwice<L>>: NamedOnce<NamedTwice<L>, L>,
    X: Union<<L::Brands as Group>::Set> + Dims<List: Shares<L::Brands, Found: Judged<Verdict: Decides>>>,
    // Where a dim is named twice, that alone is to be said.
    <Verdict<NamedTwice<L>> as Decides>::Implies<Verdict<BoundAlready<X, L>>>: New<BoundAlready<X, L>, S>,
{
    type Out = <X as Union<<L::Brands as Group>::Set>>::Out;
}

/// Dims that the dim `Whole` of a tensor can be split into, whose other dims are `X`: they are [`NewDims`], and one of them keeps what `Whole`
/// means.
pub trait PartsIn<Whole, X>: DimList {
    /// The dims of the tensor afterwards.
    type Out: Dims;
}

impl<L, Whole, X> PartsIn<Whole, X> for L
where
    Whole: DimRef,
    L: PartsOf<Whole> + RolesSplit<Whole> + NewDims<X>,
{
    type Out = <L as NewDims<X>>::Out;
}

/// Names for the dims `Old` of a tensor with the dims `S`, whose other dims are `X`: they are [`NewDims`], one for each of `Old`, of the same static
/// size and role.
pub trait NamesFor<Old, S, X>: DimList {
    /// The dims of the tensor afterwards.
    type Out: Dims;
}

impl<L, Old, S, X> NamesFor<Old, S, X> for L
where
    L: NamesEach<Old> + NewDims<X, S>,
{
    type Out = <L as NewDims<X, S>>::Out;
}

/// As many dims as the tuple `Old` has, each a name for the one in its place: of the same static size and role.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have a name for each of the dims `{Old}`",
    label = "as many dims, at most 6, are expected here as are renamed"
)]
pub trait NamesEach<Old>: DimList {}

macro_rules! names_each {
    ($($old:ident $new:ident),*) => {
        impl<$($old: DimRef, $new: DimRef),*> NamesEach<($($old,)*)> for ($($new,)*)
        where
            ($($new,)*): DimList,
            $($new: KeepsRole<$old>,)*
            $(<$old::Brand as Brand>::Size: SameSize<<$new::Brand as Brand>::Size, $old::Brand, $new::Brand>,)*
        {
        }
    };
}

names_each!(A P);
names_each!(A P, B Q);
names_each!(A P, B Q, C R);
names_each!(A P, B Q, C R, D T);
names_each!(A P, B Q, C R, D T, E U);
names_each!(A P, B Q, C R, D T, E U, F V);

/// The first brand of the dims `L` that the set `X` has, or [`Nothing`](crate::set::Nothing).
type BoundAlready<X, L> = <<X as Dims>::List as Shares<<L as DimList>::Brands>>::Found;

/// A dim that the dims `P` of a tensor can be flattened into, whose other dims are `X`: it is none of those, and one of `P` means what it does.
pub trait WholeIn<P, X>: DimRef {
    /// The dims of the tensor afterwards.
    type Out: Dims;
}

impl<W, P, X> WholeIn<P, X> for W
where
    W: DimRef,
    P: PartsOf<W> + RolesUnite<W>,
    X: Union<(W::Brand,)> + CanGain<W::Brand>,
{
    type Out = <X as Union<(W::Brand,)>>::Out;
}

/// The result of [`expand`](Restructure::expand).
pub type Expanded<'a, A, D> = Named<
    <A as AsTensor>::Elem,
    <<A as AsTensor>::Dims as Union<(<D as DimRef>::Brand,)>>::Out,
    <A as AsTensor>::Rank,
    Expand<'a, <A as AsTensor>::Expr, <A as AsTensor>::Dims, <D as DimRef>::Brand>,
>;

pub(crate) fn whole(key: crate::set::DimKey) -> Along {
    Along { offset: 0, inner: None, terms: term(key, 1, None) }
}

/// What can be looked at by several tensors at once: references to tensors, views, and expressions of these.
#[diagnostic::on_unimplemented(
    message = "the pieces of a tensor look at its elements, but this one is used up by the first of them",
    label = "borrow it: `(&x)`; an expression is run first: `let x = (a * b).eval();`"
)]
pub trait Shareable: Copy {}
#[diagnostic::do_not_recommend]
impl<A: Copy> Shareable for A {}

/// Operations that change the dims of a tensor, but not its elements. All but `flatten` are views of whatever the tensor's
/// elements come from.
///
/// They take the tensor by value, as operators do, so that a view of a result is its owner as well: `(a * b).sum(k).rename(i, j)`. To
/// look at a tensor that is needed again, call them on a reference: `(&x).index(Seq, 3)`. (Views, `a.at((i, j))`, are `Copy`.)
pub trait Restructure: Computable {
    /// The tensor with the dim `old` under the name `new`; free.
    ///
    /// This is how one axis is used twice: `(&x * (&x).rename(Seq, Key)).sum(Feat)` has `Seq` and `Key`.
    ///
    /// A name does not change what a dim means: if both have [roles](crate::role), `old` must mean what `new` does. To say that it means something
    /// else from here on, see [`redefine`](Restructure::redefine).
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Seq; struct Key; struct Feat; }
    /// let x = from_vec((Seq.of(2), Feat.of(2)), vec![1, 2, 3, 4]);
    /// let gram = (&x * (&x).rename(Seq, Key)).sum(Feat);          // gram[s, k] = sum over f of x[s, f] * x[k, f]
    /// assert_eq!(gram.order((Seq, Key)), ndarray::array![[5, 11], [11, 25]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If `new` already has another size.
    #[track_caller]
    fn rename<Old: DimRef, New: NameFor<Old, Self::Dims> + KeepsRole<Old, Self::Dims>>(
        self,
        old: Old,
        new: New,
    ) -> Remapped<Self, New::Out> {
        unwrap(self.try_rename(old, new))
    }

    /// As [`rename`](Restructure::rename), but what sizes decide is an error.
    fn try_rename<Old: DimRef, New: NameFor<Old, Self::Dims> + KeepsRole<Old, Self::Dims>>(
        self,
        old: Old,
        new: New,
    ) -> Result<Remapped<Self, New::Out>, DimError> {
        self.try_redefine(old, new)
    }

    /// As [`rename`](Restructure::rename), to a dim of whatever role: the definition anew of what the axis means.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! {
    ///     pub struct Row: DataFeature;
    ///     pub struct Step: DataTime;
    /// }
    /// // The rows of a picture, read one after the other.
    /// let picture = from_vec(Row.of(3), vec![1.0, 2.0, 3.0]);
    /// let steps = picture.redefine(Row, Step).eval();
    /// let (_, sums) = scan(&steps, Step, full((), 0.0), |sum, row| {
    ///     let sum = (sum + row).eval();
    ///     (sum.clone(), sum)
    /// });
    /// assert_eq!(sums.order(Step), ndarray::array![1.0, 3.0, 6.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If `new` already has another size.
    #[track_caller]
    fn redefine<Old: DimRef, New: NameFor<Old, Self::Dims>>(
        self,
        old: Old,
        new: New,
    ) -> Remapped<Self, New::Out> {
        unwrap(self.try_redefine(old, new))
    }

    /// As [`redefine`](Restructure::redefine), but what sizes decide is an error.
    fn try_redefine<Old: DimRef, New: NameFor<Old, Self::Dims>>(
        self,
        old: Old,
        new: New,
    ) -> Result<Remapped<Self, New::Out>, DimError> {
        let tensor = self.into_named();
        let (said, old) = (old.info(), old.info().key());
        if Old::SAYS || New::SAYS || new.info().cell.is_some() || new.info().fixed.is_some() {
            let shape = tensor.unified_shape()?;
            shape.said(&said)?;
            let at = shape.position(&old).expect("the dim is one of the tensor's");
            let (size, origin) = shape.known(at);
            new.info().meet(size, origin)?;
        }
        Ok(Named::from_expr(Remap::new(tensor.expr, old, whole(new.info().key()))))
    }

    /// As [`rename`](Restructure::rename), for several dims at once: all old names go before the new ones come, so names can be exchanged.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Row; struct Col; }
    /// let x = from_vec((Row.of(2), Col.of(3)), vec![1, 2, 3, 4, 5, 6]);
    /// let transposed = x.rename_all((Row, Col), (Col, Row));          // transposed[c, r] = x[r, c]
    /// assert_eq!(transposed.order((Row, Col)), ndarray::array![[1, 4], [2, 5], [3, 6]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If a new name already has another size.
    #[track_caller]
    fn rename_all<Old: DimsOf<Self::Dims, X>, X: Dims, New: NamesFor<Old, Self::Dims, X>>(
        self,
        old: Old,
        new: New,
    ) -> Remapped<Self, New::Out> {
        unwrap(self.try_rename_all(old, new))
    }

    /// As [`rename_all`](Restructure::rename_all), but what sizes decide is an error.
    fn try_rename_all<Old: DimsOf<Self::Dims, X>, X: Dims, New: NamesFor<Old, Self::Dims, X>>(
        self,
        old: Old,
        new: New,
    ) -> Result<Remapped<Self, New::Out>, DimError> {
        let tensor = as_said(self, &old)?;
        let shape = tensor.unified_shape()?;
        let known = |key| shape.known(shape.position(key).expect("the dim is one of the tensor's"));
        let sizes = Old::KEYS.as_slice().iter().map(known);
        let (mut sizes, mut fits) = (sizes, Ok(()));
        new.each(|dim| {
            if let (Some((size, origin)), true) = (sizes.next(), fits.is_ok()) {
                fits = dim.meet(size, origin);
            }
        });
        fits?;
        let pairs = Old::KEYS.as_slice().iter().zip(New::KEYS.as_slice());
        let changes = pairs.map(|(&old, &new)| (old, whole(new))).collect();
        Ok(Named::from_expr(Remap::of(tensor.expr, changes)))
    }

    /// The elements at one position along a dim; a negative one counts from the end.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Seq; struct Feat; }
    /// let x = from_vec((Seq.of(3), Feat.of(2)), vec![1, 2, 3, 4, 5, 6]);
    /// assert_eq!((&x).index(Seq, -1).order(Feat), ndarray::array![5, 6]);
    /// assert!(matches!((&x).try_index(Seq, 3).map(|_| ()), Err(DimError::OutOfBounds { index: 3, size: 3, .. })));
    /// ```
    ///
    /// # Panics
    ///
    /// If the position is out of range.
    #[track_caller]
    fn index<D: DimRef + DimsOf<Self::Dims, X>, X: Dims, P: Position>(
        self,
        dim: D,
        position: P,
    ) -> Remapped<Self, X> {
        unwrap(self.try_index(dim, position))
    }

    /// As [`index`](Restructure::index), but what sizes decide is an error.
    #[track_caller]
    fn try_index<D: DimRef + DimsOf<Self::Dims, X>, X: Dims, P: Position>(
        self,
        dim: D,
        at: P,
    ) -> Result<Remapped<Self, X>, DimError> {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        let info = dim.info();
        shape.said(&info)?;
        let (size, origin) = shape.known(position(&shape, info));
        let offset = pick(Axis::new(size, 1), at.to_i128(), || format!("dim `{}`", info.name), origin)?;
        let along = Along { offset: offset as usize, inner: Some(size), terms: SmallVec::new() };
        Ok(Named::from_expr(Remap::new(tensor.expr, info.key(), along)))
    }

    /// The elements in a range of positions along a dim; negative positions count from the end.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Seq; }
    /// let x = from_vec(Seq.of(5), vec![0, 1, 2, 3, 4]);
    /// assert_eq!((&x).slice(Seq, 1..-1).order(Seq), ndarray::array![1, 2, 3]);
    /// let change = (&x).slice(Seq, 1..) - (&x).slice(Seq, ..-1);
    /// assert_eq!(change.order(Seq), ndarray::array![1, 1, 1, 1]);
    /// ```
    ///
    /// A dim with a static size has that size always: [`slice_to`](Restructure::slice_to) gives the part a name of its own.
    ///
    /// # Panics
    ///
    /// If the range is not within the dim.
    #[track_caller]
    fn slice<D: Sliceable + DimsOf<Self::Dims, X>, X: Dims, P: DimRange>(
        self,
        dim: D,
        range: P,
    ) -> Remapped<Self, Self::Dims> {
        unwrap(self.try_slice(dim, range))
    }

    /// As [`slice`](Restructure::slice), but what sizes decide is an error.
    fn try_slice<D: Sliceable + DimsOf<Self::Dims, X>, X: Dims, P: DimRange>(
        self,
        dim: D,
        range: P,
    ) -> Result<Remapped<Self, Self::Dims>, DimError> {
        sliced(self, dim.info(), range, 1)
    }

    /// Every `step`th element in a range of positions along a dim, from the first on: `out[.., s] = x[.., start + s * step]`, as ndarray's
    /// `s![start..end;step]`. A view. ([`flip`](crate::shift::Rearranging::flip) of the result is the same backwards.)
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Seq; }
    /// let x = from_vec(Seq.of(8), vec![0, 1, 2, 3, 4, 5, 6, 7]);
    /// assert_eq!((&x).slice_step(Seq, 1..-1, 2).order(Seq), ndarray::array![1, 3, 5]);
    /// assert_eq!((&x).slice_step(Seq, .., 5).order(Seq), ndarray::array![0, 5]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the range is not within the dim, or the step is 0.
    #[track_caller]
    fn slice_step<D: Sliceable + DimsOf<Self::Dims, X>, X: Dims, P: DimRange>(
        self,
        dim: D,
        range: P,
        step: usize,
    ) -> Remapped<Self, Self::Dims> {
        unwrap(self.try_slice_step(dim, range, step))
    }

    /// As [`slice_step`](Restructure::slice_step), but what sizes decide is an error; so is a step of 0.
    fn try_slice_step<D: Sliceable + DimsOf<Self::Dims, X>, X: Dims, P: DimRange>(
        self,
        dim: D,
        range: P,
        step: usize,
    ) -> Result<Remapped<Self, Self::Dims>, DimError> {
        sliced(self, dim.info(), range, step)
    }

    /// The elements in a range of positions along a dim, along the dim `part`: `out[.., p] = x[.., start + p]`. As
    /// [`slice`](Restructure::slice), and free as it is; `part` can have a static size, and so can the dim.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Channel = 4; struct Colour = 3; }
    /// let x = from_vec(Channel, vec![1, 2, 3, 4]);
    /// let colours: Tensor<i32, (Colour,)> = (&x).slice_to(Channel, ..3, Colour).eval();
    /// assert_eq!(colours.order(Colour), ndarray::array![1, 2, 3]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the range is not within the dim, or `part` has another size than the range.
    #[track_caller]
    fn slice_to<D: DimRef, P: DimRange, N: PartOf<D, Self::Dims> + KeepsRole<D, Self::Dims>>(
        self,
        dim: D,
        range: P,
        part: N,
    ) -> Remapped<Self, N::Out> {
        unwrap(self.try_slice_to(dim, range, part))
    }

    /// As [`slice_to`](Restructure::slice_to), but what sizes decide is an error.
    fn try_slice_to<D: DimRef, P: DimRange, N: PartOf<D, Self::Dims> + KeepsRole<D, Self::Dims>>(
        self,
        dim: D,
        range: P,
        part: N,
    ) -> Result<Remapped<Self, N::Out>, DimError> {
        let tensor = self.into_named();
        let (shape, old) = (tensor.unified_shape()?, dim.info());
        shape.said(&old)?;
        let (offset, inner, len) = within(&shape, old, range)?;
        part.info().meet(len, None)?;
        let along = Along { offset, inner: Some(inner), terms: term(part.info().key(), 1, Some(len)) };
        Ok(Named::from_expr(Remap::new(tensor.expr, old.key(), along)))
    }

    /// The tensor cut along a dim into pieces of the given sizes, which must add up to the dim's. The pieces are views: of a tensor that
    /// owns its elements, call it on a reference.
    ///
    /// ```text
    /// let parts = (&x).split(Seq, &[2, 3]);       // parts[1][.., s] = x[.., 2 + s]
    /// ```
    ///
    /// # Panics
    ///
    /// If the sizes do not add up.
    #[track_caller]
    fn split<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        sizes: &[usize],
    ) -> Vec<Remapped<Self, Self::Dims>>
    where
        Self: Shareable,
    {
        unwrap(self.try_split(dim, sizes))
    }

    /// As [`split`](Restructure::split), but what sizes decide is an error.
    fn try_split<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        sizes: &[usize],
    ) -> Result<Vec<Remapped<Self, Self::Dims>>, DimError>
    where
        Self: Shareable,
    {
        let tensor = self.into_named();
        let (shape, info) = (tensor.unified_shape()?, dim.info());
        shape.said(&info)?;
        let size = shape.size(position(&shape, info));
        let total = sizes.iter().try_fold(0, |total: usize, &part| total.checked_add(part));
        if total != Some(size) {
            let what = format!(
                "dim `{}` of size {size} cannot be split into pieces of sizes {sizes:?}",
                dim.info().name
            );
            return Err(DimError::Shape { what });
        }
        let mut start = 0;
        let mut pieces = Vec::with_capacity(sizes.len());
        for &part in sizes {
            // (A size that was said is that of the whole.)
            pieces.push(sliced(self, DimInfo { said: None, ..info }, start..start + part, 1)?);
            start += part;
        }
        Ok(pieces)
    }

    /// The tensor cut along the dim `whole` into one piece for each of the dims `parts`, one after the other, which take its place: torchdim's
    /// `x.split(whole, (a, b))`. Sizes that are not known (at most one) are the rest. Pieces are views: of a tensor that owns its elements, call it
    /// on a reference.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Channel; struct Colour = 3; struct Depth; }
    /// let x = from_vec(Channel.of(5), vec![1, 2, 3, 4, 5]);
    /// let (colours, depths) = (&x).split_to(Channel, (Colour, Depth));      // depths[d] = x[3 + d]
    /// assert_eq!(colours.order(Colour), ndarray::array![1, 2, 3]);
    /// assert_eq!(depths.order(Depth), ndarray::array![4, 5]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the sizes do not add up, or more than one is not known.
    #[track_caller]
    fn split_to<W: DimRef, P: PiecesOf<W, Self>>(self, whole: W, parts: P) -> P::Out
    where
        Self: Shareable,
    {
        unwrap(self.try_split_to(whole, parts))
    }

    /// As [`split_to`](Restructure::split_to), but what sizes decide is an error.
    fn try_split_to<W: DimRef, P: PiecesOf<W, Self>>(self, whole: W, parts: P) -> Result<P::Out, DimError>
    where
        Self: Shareable,
    {
        parts.cut(self, whole)
    }

    /// The tensor cut along a dim into pieces of `ceil(n / count)` elements, the last one of what is left: `count` pieces, or fewer where
    /// that many elements are used up earlier. (6 elements in 4 are 3 pieces of 2.) As PyTorch's `chunk`; NumPy's `array_split` is
    /// [`split`](Restructure::split) by sizes of one's own.
    ///
    /// # Panics
    ///
    /// If `count` is 0, or operands of the tensor have different sizes for one dim.
    #[track_caller]
    fn chunk<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        count: usize,
    ) -> Vec<Remapped<Self, Self::Dims>>
    where
        Self: Shareable,
    {
        unwrap(self.try_chunk(dim, count))
    }

    /// As [`chunk`](Restructure::chunk), but what sizes decide is an error.
    fn try_chunk<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        count: usize,
    ) -> Result<Vec<Remapped<Self, Self::Dims>>, DimError>
    where
        Self: Shareable,
    {
        let shape = self.into_named().unified_shape()?;
        shape.said(&dim.info())?;
        let size = shape.size(position(&shape, dim.info()));
        if count == 0 {
            return Err(DimError::Shape {
                what: format!("dim `{}` cannot be cut into 0 pieces", dim.info().name),
            });
        }
        let each = size.div_ceil(count).max(1);
        let sizes: Vec<usize> = (0..size).step_by(each).map(|start| each.min(size - start)).collect();
        self.try_split(dim, &sizes)
    }

    /// The tensors at all positions along a dim: the inverse of [`stack`](crate::join::stack).
    ///
    /// # Panics
    ///
    /// If operands of the tensor have different sizes for one dim.
    #[track_caller]
    fn unbind<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(self, dim: D) -> Vec<Remapped<Self, X>>
    where
        Self: Shareable,
    {
        let shape = unwrap(self.into_named().unified_shape());
        unwrap(shape.said(&dim.info()));
        let size = shape.size(position(&shape, dim.info()));
        (0..size).map(|at| self.index(dim, at)).collect()
    }

    /// The tensor along a new dim, which comes with its size: the same at all its positions. Lazy, and a stride of 0 where something runs:
    /// products with sums are the same matrix products with and without it. (Operations broadcast by themselves; this is for results
    /// that must have the dim.)
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let x = ndarray::array![1.0, 2.0];
    /// dims!(i, j = 3);
    /// let rows = x.at(i).expand(j);                                        // rows[i, j] = x[i]
    /// assert_eq!(rows.order((i, j)), ndarray::array![[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]);
    /// assert_eq!(rows.sum(j).order(i), ndarray::array![3.0, 6.0]);
    /// ```
    fn expand<'a, D: NotIn<Self::Dims> + 'a>(self, dim: D) -> Expanded<'a, Self, D>
    where
        Self::Dims: Union<(D::Brand,)>,
    {
        Named::from_expr(Expand::new(self.into_named().expr, dim))
    }

    /// The dim `whole` as several dims, the last one fastest: the inverse of [`flatten`](Restructure::flatten).
    ///
    /// Each part is a dim that the tensor has not yet; `whole` itself can be one. Static sizes must multiply to that of `whole`, which rustc
    /// checks; of the other sizes one may be unknown. `whole` must mean what one of the parts does, where they have [roles](crate::role).
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Model = 6; struct Head = 2; struct Feat = 3; }
    /// let x = from_fn(Model, |m| m);
    /// let heads = x.unflatten(Model, (Head, Feat));               // heads[h, f] = x[3 * h + f]
    /// assert_eq!(heads.order((Head, Feat)), ndarray::array![[0, 1, 2], [3, 4, 5]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the sizes do not multiply to that of `whole`.
    #[track_caller]
    fn unflatten<W: DimRef + DimsOf<Self::Dims, X>, X: Dims, P: PartsIn<W, X>>(
        self,
        whole: W,
        parts: P,
    ) -> Remapped<Self, P::Out> {
        unwrap(self.try_unflatten(whole, parts))
    }

    /// As [`unflatten`](Restructure::unflatten), but what sizes decide is an error.
    fn try_unflatten<W: DimRef + DimsOf<Self::Dims, X>, X: Dims, P: PartsIn<W, X>>(
        self,
        whole: W,
        parts: P,
    ) -> Result<Remapped<Self, P::Out>, DimError> {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        let info = whole.info();
        shape.said(&info)?;
        let (size, origin) = shape.known(position(&shape, info));
        let sizes = crate::bind::split::sizes_of(&parts, size, origin)?;
        let mut step = 1;
        let mut terms = SmallVec::new();
        for (&key, &size) in P::KEYS.as_slice().iter().zip(&sizes).rev() {
            terms.push((key, step, Some(size)));
            step *= size as isize;
        }
        let along = Along { offset: 0, inner: Some(size), terms };
        Ok(Named::from_expr(Remap::new(tensor.expr, info.key(), along)))
    }

    /// Several dims as one dim `whole`, the last one fastest: `whole = (a * size(b)) + b`. The result is evaluated. One
    /// of the parts must mean what `whole` does, where they have [roles](crate::role).
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Model = 6; struct Head = 2; struct Feat = 3; }
    /// let heads = from_fn((Feat, Head), |(f, h)| 10 * h + f);
    /// assert_eq!(heads.flatten((Head, Feat), Model).order(Model), ndarray::array![0, 1, 2, 10, 11, 12]);
    /// ```
    ///
    /// # Panics
    ///
    /// If `whole` has another size, operands have different sizes for one dim, or an index is out of range.
    #[track_caller]
    fn flatten<P: OrderList + DimsOf<Self::Dims, X>, X: Dims, W: WholeIn<P, X>>(
        self,
        parts: P,
        whole: W,
    ) -> Named<Self::Elem, W::Out, Self::Rank> {
        unwrap(self.try_flatten(parts, whole))
    }

    /// As [`flatten`](Restructure::flatten), but what sizes decide is an error.
    #[track_caller]
    fn try_flatten<P: OrderList + DimsOf<Self::Dims, X>, X: Dims, W: WholeIn<P, X>>(
        self,
        parts: P,
        whole: W,
    ) -> Result<Named<Self::Elem, W::Out, Self::Rank>, DimError> {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        shape.all_said(&parts)?;
        let mut group: SmallVec<[usize; 8]> = SmallVec::new();
        DimList::each(&parts, |dim| group.push(position(&shape, dim)));
        let size = shape.volume(group.iter().copied(), 1)?;
        whole.info().meet(size, None)?;
        // The axes of the result, as they will lie; that of `whole` stands for the whole group.
        let own = W::Out::KEYS.as_slice();
        let own_order = AxisList::in_memory_of::<W::Out, Rank0>().as_slice();
        let mut order: SmallVec<[usize; 8]> = SmallVec::new();
        let mut sizes: SmallVec<[usize; 8]> = SmallVec::new();
        for key in own_order.iter().map(|&at| &own[at]) {
            if key.same(&whole.info().key()) {
                order.extend(group.iter().copied());
                sizes.push(size);
            } else {
                let at = shape.position(key).expect("the dim is one of the tensor's");
                order.push(at);
                sizes.push(shape.size(at));
            }
        }
        order.extend(shape.named_len()..shape.sizes().len());
        sizes.extend(shape.positional().iter().copied());
        let data = evaluate_in::<Self::Dims, Self::Rank, _>(tensor.expr, &shape, &order)?;
        Ok(Named::from_expr(Owned::laid_out(data, &sizes)))
    }
}

impl<A: Computable> Restructure for A {}

/// A tuple of 2 to 6 dims that the dim `W` of the tensor `A` can be cut into.
#[diagnostic::on_unimplemented(
    message = "`{W}` cannot be split into `{Self}`",
    label = "a tuple of 2 to 6 dims that the tensor does not have yet is expected here, in the place of `{W}`, which it has"
)]
pub trait PiecesOf<W, A>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The pieces.
    type Out;

    /// The pieces of the tensor.
    #[doc(hidden)]
    fn cut(self, tensor: A, whole: W) -> Result<Self::Out, DimError>;
}

macro_rules! pieces {
    ($($d:ident $n:tt),*) => {
        #[diagnostic::do_not_recommend]
        impl<W, A, $($d),*> PiecesOf<W, A> for ($($d,)*)
        where
            W: DimRef,
            A: Computable + Shareable,
            $($d: PartOf<W, A::Dims> + KeepsRole<W, A::Dims>,)*
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = ($(Remapped<A, <$d as PartOf<W, A::Dims>>::Out>,)*);

            fn cut(self, tensor: A, whole: W) -> Result<Self::Out, DimError> {
                let shape = tensor.into_named().unified_shape()?;
                shape.said(&whole.info())?;
                let size = shape.size(position(&shape, whole.info()));
                let ranges = piece_ranges(whole.info(), size, &[$(self.$n.info()),*])?;
                Ok(($(tensor.try_slice_to(whole, ranges[$n].clone(), self.$n)?,)*))
            }
        }
    };
}

pieces!(P 0, Q 1);
pieces!(P 0, Q 1, R 2);
pieces!(P 0, Q 1, R 2, S 3);
pieces!(P 0, Q 1, R 2, S 3, T 4);
pieces!(P 0, Q 1, R 2, S 3, T 4, U 5);

/// The positions along a dim of `size` elements that each of the parts gets: as many as its own size, and the rest for one part without a size.
fn piece_ranges(
    whole: DimInfo<'_>,
    size: usize,
    parts: &[DimInfo<'_>],
) -> Result<SmallVec<[Range<usize>; 6]>, DimError> {
    let given = parts.iter().filter_map(DimInfo::size).try_fold(0, usize::checked_add);
    let open = parts.iter().filter(|part| part.size().is_none()).count();
    let rest = given.and_then(|given| size.checked_sub(given)).filter(|&rest| open > 0 || rest == 0);
    match rest {
        Some(rest) if open <= 1 => {
            let mut end = 0;
            let ranges = parts.iter().map(|part| {
                let start = end;
                end += part.size().unwrap_or(rest);
                start..end
            });
            Ok(ranges.collect())
        }
        _ => {
            let parts = parts.iter().map(|part| match part.size() {
                Some(size) => format!("`{}` = {size}", part.name),
                None => format!("`{}`", part.name),
            });
            let parts = parts.collect::<Vec<_>>().join(", ");
            let hint = if open > 1 { ": all sizes but one must be known" } else { "" };
            let what = format!("dim `{}` of size {size} cannot be split into {parts}{hint}", whole.name);
            Err(DimError::Shape { what })
        }
    }
}

/// Every `step`th element in a range of positions along a dim.
fn sliced<A: Computable>(
    tensor: A,
    dim: DimInfo<'_>,
    range: impl DimRange,
    step: usize,
) -> Result<Remapped<A, A::Dims>, DimError> {
    let tensor = tensor.into_named();
    let shape = tensor.unified_shape()?;
    let (offset, inner, len) = within(&shape, dim, range)?;
    if step == 0 {
        return Err(DimError::Shape {
            what: format!("a slice of dim `{}` with a step of 0; it must be 1 at least", dim.name),
        });
    }
    let len = len.div_ceil(step);
    // The step to a second element lies within the dim; where there is none, it may be greater than can be counted.
    let step = if len > 1 || step == 1 { step as isize } else { 0 };
    // A local dim keeps its own size.
    dim.resized().meet(len, None)?;
    let along = Along { offset, inner: Some(inner), terms: term(dim.key(), step, Some(len)) };
    Ok(Named::from_expr(Remap::new(tensor.expr, dim.key(), along)))
}

/// Where a range starts along a dim, the dim's size, and how many elements the range has.
fn within(shape: &Shape, dim: DimInfo<'_>, range: impl DimRange) -> Result<(usize, usize, usize), DimError> {
    let size = shape.size(position(shape, dim));
    let (start, end) = range.bounds(size);
    let (axis, offset) = cut(Axis::new(size, 1), start, end, || format!("dim `{}`", dim.name))?;
    Ok((offset as usize, size, axis.size))
}
