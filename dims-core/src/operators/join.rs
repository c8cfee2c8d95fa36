//! Joining tensors: `concat` along a shared dim, `concat_to` along a different dim of each tensor,
//! `stack` along a new dim.

use crate::error::DimError;
use crate::execute::place::{PlacedResult, Strides, count, describe};
use crate::expr::evaluate::evaluate;
use crate::expr::{Expr, Remap};
use crate::operators::restructure::names::AddsUpTo;
use crate::operators::restructure::{Remapped, whole};
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, NamedOf};
use crate::types::brand::{Brand, DimInfo, KeyOf};
use crate::types::dim::DimRef;
use crate::types::rank::Rank;
use crate::types::role::KeepsRole;
use crate::types::set::rename::{NotIn, PartOf};
use crate::types::set::{Bool, Dims, DimsOf, Keys, Union};
use crate::types::size::{Resizable, SizeWith, SizesTogether};
use crate::types::tuples::nested;
use core::marker::PhantomData;
use kernels::loops::axes::Sizes;
use kernels::scalar::Element;
use smallvec::SmallVec;
use twins::panicking_twin;

/// Concatenates the parts along `dim`, which must not have a static size. Its size in the result is
/// the sum of the parts' sizes. All other sizes must agree.
///
/// `parts` is an array, a vector or any other collection of tensors of one type, or a tuple of 2 to
/// 8 tensors and expressions. The parts of a tuple may have different types, but must have the same
/// element type, dims and positional axes.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Seq; struct Feat = 2; }
/// let a = from_vec((Seq.of(1), Feat), vec![1, 2]);
/// let b = from_vec((Seq.of(2), Feat), vec![3, 4, 5, 6]);
/// let both = concat(Seq, [&a, &b]);                  // both[s] = a[s] where s < 1, else b[s - 1]
/// assert_eq!(both.order((Seq, Feat)), ndarray::array![[1, 2], [3, 4], [5, 6]]);
/// let sums = concat(Seq, (&a + 10, &b));             // an expression and a tensor
/// assert_eq!(sums.order((Seq, Feat)), ndarray::array![[11, 12], [3, 4], [5, 6]]);
/// ```
#[panicking_twin("so is an empty list of parts")]
pub fn try_concat<P: Joinable<M>, D: DimRef + DimsOf<P::Dims, X> + Resizable, X: Dims, M>(
    dim: D,
    parts: P,
) -> Result<Named<P::Elem, P::Dims, P::Rank>, DimError> {
    parts.joined(Side::along(dim.info().resized()))
}

/// Concatenates parts along different dims, `parts.0` along `dims.0` and so on, into one tensor
/// with the new dim `whole`. The size of `whole` is the sum of the parts' sizes; rustc checks the
/// sum of static sizes. All other dims and sizes must agree. To join parts along a dim that they
/// share, use [`concat()`].
///
/// ```
/// use typed_dims::operators::join::concat_to;
/// use typed_dims::prelude::*;
///
/// let (a, b) = (ndarray::array![1, 2], ndarray::array![3, 4, 5]);
/// dims!(i, j, k);
/// let all = concat_to(k, (i, j), (a.at(i), b.at(j) * 10));           // all[k] = a[k] where k < 2, else 10 * b[k - 2]
/// assert_eq!(all.order(k), ndarray::array![1, 2, 30, 40, 50]);
/// ```
#[panicking_twin]
pub fn try_concat_to<N: DimRef, L, P: PartsAlong<L, N>>(
    whole: N,
    dims: L,
    parts: P,
) -> Result<P::Out, DimError> {
    parts.joined_along(dims, whole)
}

/// Tensors to join: a collection of one type, or a tuple of 2 to 8 tensors and expressions with the
/// same element type, dims and positional axes. (`M` is inferred: it tells collections from
/// tuples.)
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be joined",
    label = "expected a collection of tensors, or a tuple of 2 to 8 tensors with the same element type and dims",
    note = "tensors that each have their own dim are joined by `typed_dims::operators::join::concat_to(All, (I, J), (x, y))`; a tensor that lacks a dim gets it by `x.expand(I.of(n))`"
)]
pub trait Joinable<M>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the elements.
    type Elem: Element;
    /// The dims of each part.
    type Dims: Dims;
    /// The positional axes of each part.
    type Rank: Rank;

    /// Joins the parts.
    #[doc(hidden)]
    fn joined<S: Dims>(self, side: Side<'_, S>) -> Result<Named<Self::Elem, S, Self::Rank>, DimError>;
}

/// The dim along which parts are joined into a tensor with the dims `S`. Only this module
/// constructs it, so `S` is always the set of dims of the joined tensor.
#[doc(hidden)]
pub struct Side<'a, S> {
    dim: DimInfo<'a>,
    /// Whether the dim is new, so that the parts lack it.
    new: bool,
    set: PhantomData<S>,
}

impl<'a, S> Side<'a, S> {
    /// Joins along a dim that all parts have.
    fn along(dim: DimInfo<'a>) -> Self {
        Side { dim, new: false, set: PhantomData }
    }
}

/// Marks the impl of [`Joinable`] for collections.
#[doc(hidden)]
pub struct Collection;
/// Marks the impls of [`Joinable`] for tuples.
#[doc(hidden)]
pub struct Tuple;

#[diagnostic::do_not_recommend]
impl<I: IntoIterator<Item: Computable>> Joinable<Collection> for I {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = <I::Item as AsTensor>::Elem;
    type Dims = <I::Item as AsTensor>::Dims;
    type Rank = <I::Item as AsTensor>::Rank;

    #[track_caller]
    fn joined<S: Dims>(self, side: Side<'_, S>) -> Result<Named<Self::Elem, S, Self::Rank>, DimError> {
        let mut all: SmallVec<[NamedOf<I::Item>; 4]> = self.into_iter().map(AsTensor::into_named).collect();
        let layout = {
            let parts: SmallVec<[&dyn PartToJoin<Self::Elem>; 4]> =
                all.iter().map(|part| part as _).collect();
            let layout = JoinSizes::of(side, Self::Dims::KEYS, &parts)?;
            if parts.len() > 1 {
                return layout.fill(&parts);
            }
            layout
        };
        // (A single part that already has the memory order of a result is moved, not copied.)
        count::<Self::Elem, S>(&layout.sizes)?;
        let order = AxisList::in_memory_of::<Self::Dims, Self::Rank>().as_slice();
        let data = evaluate::<Self::Dims, Self::Rank, _>(all.remove(0).expr, &layout.shapes[0], order)?;
        Ok(Named::from_expr(Evaluated::of_sizes(data, &layout.sizes)))
    }
}

macro_rules! tuples {
    ($first:ident $first_dim:ident $(, $a:ident $d:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<$first: Computable $(, $a)*> Joinable<Tuple> for ($first, $($a,)*)
        where
            $($a: Computable + AsTensor<Elem = $first::Elem, Dims = $first::Dims, Rank = $first::Rank>,)*
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Elem = $first::Elem;
            type Dims = $first::Dims;
            type Rank = $first::Rank;

            #[allow(non_snake_case, reason = "each part is named after its type")]
            #[track_caller]
            fn joined<Joined: Dims>(self, side: Side<'_, Joined>) -> Result<Named<Self::Elem, Joined, Self::Rank>, DimError> {
                let ($first, $($a,)*) = self;
                let ($first, $($a,)*) = ($first.into_named(), $($a.into_named(),)*);
                let parts: &[&dyn PartToJoin<Self::Elem>] = &[&$first, $(&$a,)*];
                JoinSizes::of(side, Self::Dims::KEYS, parts)?.fill(parts)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<Elem: Element, New, $first, $first_dim $(, $a, $d)*> PartsBeside<($first_dim, $($d,)*), New> for ($first, $($a,)*)
        where
            $first: Computable + AsTensor<Elem = Elem>,
            $first_dim: DimRef,
            New: PartOf<$first_dim, $first::Dims> + KeepsRole<$first_dim, $first::Dims>,
            $(
                $a: Computable + AsTensor<Elem = Elem, Rank = $first::Rank>,
                $d: DimRef,
                New: PartOf<$d, $a::Dims, Out = <New as PartOf<$first_dim, $first::Dims>>::Out> + KeepsRole<$d, $a::Dims>,
            )*
            nested![$first_dim::Brand $(, $d::Brand)*]: SizesTogether<Total: SizeWith<<New::Brand as Brand>::Num>>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Whole = New::Brand;
            type Sizes = (<$first_dim::Brand as Brand>::Size, $(<$d::Brand as Brand>::Size,)*);
            type AddsUp = <<nested![$first_dim::Brand $(, $d::Brand)*] as SizesTogether>::Total as SizeWith<<New::Brand as Brand>::Num>>::MaySame;
            type Out = Named<Elem, <New as PartOf<$first_dim, $first::Dims>>::Out, $first::Rank>;

            #[allow(non_snake_case, reason = "each part is named after its type")]
            #[track_caller]
            fn joined_along(
                self,
                dims: ($first_dim, $($d,)*),
                whole: New,
            ) -> Result<Self::Out, DimError> {
                let (($first, $($a,)*), ($first_dim, $($d,)*)) = (self, dims);
                let ($first, $($a,)*) = (
                    renamed::<_, <New as PartOf<$first_dim, $first::Dims>>::Out, New>($first, $first_dim, whole)?,
                    $(renamed::<_, <New as PartOf<$d, $a::Dims>>::Out, New>($a, $d, whole)?,)*
                );
                let parts: &[&dyn PartToJoin<Elem>] = &[&$first, $(&$a,)*];
                let keys = <New as PartOf<$first_dim, $first::Dims>>::Out::KEYS;
                JoinSizes::of(Side::along(whole.info()), keys, parts)?.fill(parts)
            }
        }
    };
}

tuples!(A D0, B D1);
tuples!(A D0, B D1, C D2);
tuples!(A D0, B D1, C D2, D D3);
tuples!(A D0, B D1, C D2, D D3, E D4);
tuples!(A D0, B D1, C D2, D D3, E D4, F D5);
tuples!(A D0, B D1, C D2, D D3, E D4, F D5, G D6);
tuples!(A D0, B D1, C D2, D D3, E D4, F D5, G D6, H D7);

/// A tuple of 2 to 8 tensors to join along the new dim `N`. Each tensor has the dim at the same
/// position in `L`, which `N` replaces.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be joined along the dims `{L}`",
    label = "expected 2 to 8 tensors, one for each dim, with that dim but without the new one; the element type and all other dims must be the same"
)]
pub trait PartsBeside<L, N>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The brand of `N`.
    type Whole: Brand;
    /// The sizes of the dims `L`, for messages.
    type Sizes;
    /// [`False`](crate::types::set::False) if all sizes are static and do not add up.
    type AddsUp: Bool;
    /// The joined tensor.
    type Out;

    /// Joins the parts.
    #[doc(hidden)]
    fn joined_along(self, dims: L, whole: N) -> Result<Self::Out, DimError>;
}

/// [`PartsBeside`] whose static sizes add up to the size of `N`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be joined along the dims `{L}`",
    label = "expected 2 to 8 tensors, one for each dim, with that dim but without the new one; the element type and all other dims must be the same"
)]
pub trait PartsAlong<L, N>: PartsBeside<L, N> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<L, N, P: PartsBeside<L, N>> PartsAlong<L, N> for P
where
    P::AddsUp: AddsUpTo<P::Whole, <P::Whole as Brand>::Size, P::Sizes>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Renames the dim `old` to `new`, whose size can differ.
fn renamed<A: Computable, S: Dims, N: DimRef>(
    tensor: A,
    old: impl DimRef,
    new: N,
) -> Result<UnderName<A, S, N>, DimError> {
    let (tensor, old) = (tensor.into_named(), old.info());
    tensor.unified_shape()?.check_given(&old)?;
    let tensor = Named::from_expr(Remap::new(tensor.expr, old.key(), whole(new.info().key())));
    Ok(UnderName { tensor, name: PhantomData })
}

/// A part whose dim is replaced by the dim `N` of the joined tensor. It has only some of the
/// elements along `N`, so the static size of `N` does not apply.
struct UnderName<A: AsTensor, S: Dims, N> {
    tensor: Remapped<A, S>,
    name: PhantomData<N>,
}

impl<T: Element, A: Computable + AsTensor<Elem = T>, S: Dims, N: DimRef> PartToJoin<T>
    for UnderName<A, S, N>
{
    fn shape(&self) -> Result<Shape, DimError> {
        let keys = const { &S::KEYS.resized(KeyOf::<N::Brand>::KEY) };
        let mut shape = Shape::of_keys(keys, <A::Rank as Rank>::N);
        self.tensor.unify(&mut shape)?;
        Ok(shape)
    }

    fn write(
        &self,
        shape: &Shape,
        out: &mut PlacedResult<T>,
        start: usize,
        strides: &[isize],
    ) -> Result<(), DimError> {
        self.tensor.write(shape, out, start, strides)
    }
}

/// A part of a joined tensor, not computed yet.
trait PartToJoin<T> {
    /// The sizes that its operands unify to.
    fn shape(&self) -> Result<Shape, DimError>;

    /// Computes the part directly into the result: its first element goes to `start`, and its axes
    /// have these strides there.
    fn write(
        &self,
        shape: &Shape,
        out: &mut PlacedResult<T>,
        start: usize,
        strides: &[isize],
    ) -> Result<(), DimError>;
}

impl<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>> PartToJoin<T> for Named<T, S, R, E> {
    fn shape(&self) -> Result<Shape, DimError> {
        self.unified_shape()
    }

    fn write(
        &self,
        shape: &Shape,
        out: &mut PlacedResult<T>,
        start: usize,
        strides: &[isize],
    ) -> Result<(), DimError> {
        out.put::<S, R, _>(&self.expr, shape, start, strides)
    }
}

/// The sizes of a joined tensor with the dims `S`, and of its parts.
struct JoinSizes<S> {
    shapes: SmallVec<[Shape; 4]>,
    /// The sizes of the result.
    sizes: Sizes,
    /// The axis of the result along which the parts are joined.
    along: usize,
    /// Whether that axis is new, so that the parts lack it.
    new: bool,
    set: PhantomData<S>,
}

impl<S: Dims> JoinSizes<S> {
    /// The sizes for these parts, if they agree. `keys` are the dims of the parts.
    fn of<T>(side: Side<'_, S>, keys: &Keys, parts: &[&dyn PartToJoin<T>]) -> Result<Self, DimError> {
        let Side { dim, new, set } = side;
        let (verb, noun) = if new { ("stack", "stack") } else { ("concatenate", "concatenation") };
        let shapes: SmallVec<[Shape; 4]> = parts.iter().map(|part| part.shape()).collect::<Result<_, _>>()?;
        let Some(first) = shapes.first() else {
            return Err(DimError::Shape { what: format!("nothing to {verb} along `{}`", dim.name) });
        };
        let along = S::KEYS.position(&dim.key()).expect("the dim is one of the result's");
        let mut sizes: Sizes = first.sizes().into();
        for shape in &shapes[1..] {
            let own = shape.sizes();
            let differ = (0..own.len()).any(|axis| (new || axis != along) && sizes[axis] != own[axis]);
            if differ {
                let what = format!(
                    "parts of a {noun} along `{}` differ: {} and {}",
                    dim.name,
                    describe(keys, first.sizes()),
                    describe(keys, own)
                );
                return Err(DimError::Shape { what });
            }
            if !new {
                let total = sizes[along].checked_add(own[along]);
                sizes[along] = total.ok_or_else(|| DimError::TooLarge {
                    dims: format!("dim `{}` = {} + {}", dim.name, sizes[along], own[along]),
                })?;
            }
        }
        if new {
            sizes.insert(along, shapes.len());
        }
        dim.unify(sizes[along], None)?;
        S::KEYS.check_primes(|at| (sizes[at], None))?;
        Ok(JoinSizes { shapes, sizes, along, new, set })
    }

    /// The joined tensor. Each part is computed directly into it.
    #[track_caller]
    fn fill<T: Element, R: Rank>(&self, parts: &[&dyn PartToJoin<T>]) -> Result<Named<T, S, R>, DimError> {
        let mut out = PlacedResult::of::<S, R>(self.sizes.clone(), None)?;
        let mut strides = Strides::from(out.strides());
        let step = strides[self.along] as usize;
        if self.new {
            strides.remove(self.along);
        }
        let mut start = 0;
        for (part, shape) in parts.iter().zip(&self.shapes) {
            part.write(shape, &mut out, start, &strides)?;
            start += step * if self.new { 1 } else { shape.sizes()[self.along] };
        }
        // (Parts do not overlap: along the joined axis, each starts where the previous one ends.)
        out.finish()
    }
}

/// A tensor stacked along a new dim.
pub type Stacked<A, D> =
    Named<<A as AsTensor>::Elem, Gaining<<A as AsTensor>::Dims, D>, <A as AsTensor>::Rank>;

/// The set `S` with the dim `D`.
type Gaining<S, D> = <S as Union<(<D as DimRef>::Brand,)>>::Out;

/// Stacks the parts along the new dim `dim`, whose size is the number of parts. All sizes must
/// agree. `parts` is as in [`concat()`], which joins along an existing dim.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Part; struct Feat = 2; }
/// let parts = [from_vec(Feat, vec![1, 2]), from_vec(Feat, vec![3, 4])];
/// let all = stack(Part, &parts);                     // all[p, f] = parts[p][f]
/// assert_eq!(all.order((Feat, Part)), ndarray::array![[1, 3], [2, 4]]);
/// let both = stack(Part, (&parts[0], &parts[1] * 10));
/// assert_eq!(both.order((Part, Feat)), ndarray::array![[1, 2], [30, 40]]);
/// ```
#[panicking_twin("so is an empty list of parts")]
pub fn try_stack<P: Joinable<M>, D: NotIn<P::Dims>, M>(
    dim: D,
    parts: P,
) -> Result<Named<P::Elem, Gaining<P::Dims, D>, P::Rank>, DimError>
where
    P::Dims: Union<(D::Brand,)>,
{
    parts.joined(Side { dim: dim.info(), new: true, set: PhantomData })
}
