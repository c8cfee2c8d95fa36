//! Operations that change the dims of a tensor, but not its elements: `rename`, `index`, `slice`,
//! `split`, `expand`, `flatten`, `unflatten` and others.

pub mod names;
pub mod pieces;
pub mod range;
mod renamed;

use crate::bind::binder::{Position, pick};
use crate::error::{DimError, unwrap};
use crate::execute::order::OrderList;
use crate::expr::evaluate::evaluate;
use crate::expr::remap::{Along, term};
use crate::expr::{Expand, Remap};
use crate::plan::axes::{AxisList, check_primes_of};
use crate::plan::shape::Shape;
use crate::storage::Evaluated;
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::{AsTensor, Computable, checked};
use crate::types::brand::DimInfo;
use crate::types::dim::{DimList, DimRef};
use crate::types::rank::Rank0;
use crate::types::role::{KeepsRole, RolesUnflatten};
use crate::types::set::rename::{NotIn, PartOf};
use crate::types::set::{DimKey, Dims, DimsOf, NameFor, Union};
use crate::types::size::Resizable;
use alloc::vec::Vec;
use kernels::memory::axes::Axis;
use names::{NamesFor, NewDims, PartsOf, WholeIn};
use pieces::{PiecesOf, Shareable};
use range::{DimRange, sliced, within};
pub(crate) use renamed::renamed;
use smallvec::SmallVec;
use twins::panicking_twin;

/// The tensor `A`, read along the dims `S`.
pub type Remapped<A, S> = Named<
    <A as AsTensor>::Elem,
    S,
    <A as AsTensor>::Rank,
    Remap<<A as AsTensor>::Expr, <A as AsTensor>::Dims, <A as AsTensor>::Rank>,
>;

/// The result of [`expand`](Restructure::expand).
pub type Expanded<'a, A, D> = Named<
    <A as AsTensor>::Elem,
    <<A as AsTensor>::Dims as Union<(<D as DimRef>::Brand,)>>::Out,
    <A as AsTensor>::Rank,
    Expand<'a, <A as AsTensor>::Expr, <A as AsTensor>::Dims, <D as DimRef>::Brand, <D as DimRef>::Open>,
>;

pub(crate) fn whole(key: crate::types::set::DimKey) -> Along {
    Along { offset: 0, inner: None, terms: term(key, 1, None) }
}

/// Operations that change the dims of a tensor, but not its elements. All except `flatten` are
/// views.
///
/// They take the tensor by value, as operators do, so that the result can own its elements:
/// `(a * b).sum(k).rename(i, j)`. To use the tensor again, call them on a reference:
/// `(&x).index(Seq, 3)`. (The tensor `a.at(..)` of an array is `Copy`.)
pub trait Restructure: AsTensor {
    /// Renames the dim `old` to `new`.
    ///
    /// Use it to combine a tensor with itself along two dims:
    /// `(&x * (&x).rename(Seq, Key)).sum(Feat)` has `Seq` and `Key`.
    ///
    /// If both dims have [roles](crate::types::role), the roles must agree. To change the role, use
    /// [`redefine`](Restructure::redefine).
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
    /// If `old` or `new` has a size other than the tensor's along `old`, or sizes of operands do
    /// not match.
    #[panicking_twin]
    fn try_rename<Old: DimRef, New: NameFor<Old, Self::Dims> + KeepsRole<Old, Self::Dims>>(
        self,
        old: Old,
        new: New,
    ) -> Result<Remapped<Self, New::Out>, DimError>
    where
        Self: Computable,
    {
        self.try_redefine(old, new)
    }

    /// Like [`rename`](Restructure::rename), but `new` can have any role.
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
    /// If `old` or `new` has a size other than the tensor's along `old`, or sizes of operands do
    /// not match.
    #[panicking_twin]
    fn try_redefine<Old: DimRef, New: NameFor<Old, Self::Dims>>(
        self,
        old: Old,
        new: New,
    ) -> Result<Remapped<Self, New::Out>, DimError>
    where
        Self: Computable,
    {
        renamed(self, old, new)
    }

    /// Like [`rename`](Restructure::rename), for several dims at once. The renames are
    /// simultaneous, so names can be exchanged.
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
    /// If an old or a new dim has a size other than the tensor's along the old one, or sizes of
    /// operands do not match.
    #[panicking_twin]
    fn try_rename_all<Old: DimsOf<Self::Dims, X>, X: Dims, New: NamesFor<Old, Self::Dims, X>>(
        self,
        old: Old,
        new: New,
    ) -> Result<Remapped<Self, New::Out>, DimError>
    where
        Self: Computable,
    {
        let tensor = checked(self, &old)?;
        let shape = tensor.unified_shape()?;
        let known = |key| shape.known(shape.position(key).expect("the dim is one of the tensor's"));
        let sizes = Old::KEYS.as_slice().iter().map(known);
        let (mut sizes, mut fits) = (sizes, Ok(()));
        new.each(|dim| {
            if let (Some((size, origin)), true) = (sizes.next(), fits.is_ok()) {
                fits = dim.unify(size, origin);
            }
        });
        fits?;
        let pairs = Old::KEYS.as_slice().iter().zip(New::KEYS.as_slice());
        let changes = pairs.map(|(&old, &new)| (old, whole(new))).collect();
        Ok(Named::from_expr(Remap::of(tensor.expr, changes)))
    }

    /// The elements at one position along a dim. A negative position counts from the end.
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
    /// If the position is out of range, or sizes do not match.
    #[panicking_twin]
    fn try_index<D: DimRef + DimsOf<Self::Dims, X>, X: Dims, P: Position>(
        self,
        dim: D,
        position: P,
    ) -> Result<Remapped<Self, X>, DimError>
    where
        Self: Computable,
    {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        let info = dim.info();
        shape.check_given(&info)?;
        let (size, origin) = shape.known(crate::tensors::named::position(&shape, info));
        let what = || format!("dim `{}`", info.name);
        let offset = pick(Axis::new(size, 1), position.to_i128(), &what, origin)?;
        let along = Along { offset: offset as usize, inner: Some(size), terms: SmallVec::new() };
        Ok(Named::from_expr(Remap::new(tensor.expr, info.key(), along)))
    }

    /// The elements in a range of positions along a dim. Negative positions count from the end.
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
    /// The dim must not have a static size. If it has one, use [`slice_to`](Restructure::slice_to),
    /// which takes a new dim for the part.
    ///
    /// # Panics
    ///
    /// If the range is not within the dim, or sizes do not match.
    #[panicking_twin]
    fn try_slice<D: DimRef + Resizable + DimsOf<Self::Dims, X>, X: Dims, P: DimRange>(
        self,
        dim: D,
        range: P,
    ) -> Result<Remapped<Self, Self::Dims>, DimError>
    where
        Self: Computable,
    {
        sliced(self, dim.info(), range, 1)
    }

    /// Every `step`th element in a range of positions along a dim, starting with the first:
    /// `out[.., s] = x[.., start + s * step]`, like ndarray's `s![start..end;step]`.
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
    /// If the range is not within the dim, the step is 0, or sizes do not match.
    #[panicking_twin("so is a step of 0")]
    fn try_slice_step<D: DimRef + Resizable + DimsOf<Self::Dims, X>, X: Dims, P: DimRange>(
        self,
        dim: D,
        range: P,
        step: usize,
    ) -> Result<Remapped<Self, Self::Dims>, DimError>
    where
        Self: Computable,
    {
        sliced(self, dim.info(), range, step)
    }

    /// The elements in a range of positions along `dim`, which the dim `part` replaces:
    /// `out[.., p] = x[.., start + p]`. Both dims can have static sizes.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Channel = 4; struct Color = 3; }
    /// let x = from_vec(Channel, vec![1, 2, 3, 4]);
    /// let colors: Tensor<i32, (Color,)> = (&x).slice_to(Channel, ..3, Color).eval();
    /// assert_eq!(colors.order(Color), ndarray::array![1, 2, 3]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the range is not within the dim, the size of `part` differs from the length of the range,
    /// or sizes do not match.
    #[panicking_twin]
    fn try_slice_to<D: DimRef, P: DimRange, N: PartOf<D, Self::Dims> + KeepsRole<D, Self::Dims>>(
        self,
        dim: D,
        range: P,
        part: N,
    ) -> Result<Remapped<Self, N::Out>, DimError>
    where
        Self: Computable,
    {
        let tensor = self.into_named();
        let (shape, old) = (tensor.unified_shape()?, dim.info());
        shape.check_given(&old)?;
        let (offset, inner, len) = within(&shape, old, range)?;
        part.info().unify(len, None)?;
        let along = Along { offset, inner: Some(inner), terms: term(part.info().key(), 1, Some(len)) };
        Ok(Named::from_expr(Remap::new(tensor.expr, old.key(), along)))
    }

    /// Cuts the tensor along a dim into pieces of the given sizes, which must add up to the size of
    /// the dim. The pieces are views, so call `split` on a reference if the tensor owns its
    /// elements. To use a piece in the `Vec`, borrow it: `(&parts[1]).exp()`.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Seq; }
    /// let x = from_vec(Seq.of(5), vec![1.0, 2.0, 3.0, 4.0, 5.0]);
    /// let parts = (&x).split(Seq, &[2, 3]);       // parts[1][.., s] = x[.., 2 + s]
    /// assert_eq!((&parts[1]).square().order(Seq), ndarray::array![9.0, 16.0, 25.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the sizes do not add up, or other sizes do not match.
    #[panicking_twin]
    fn try_split<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        sizes: &[usize],
    ) -> Result<Vec<Remapped<Self, Self::Dims>>, DimError>
    where
        Self: Computable,
        Self: Shareable,
    {
        let tensor = self.into_named();
        let (shape, info) = (tensor.unified_shape()?, dim.info());
        shape.check_given(&info)?;
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
            // (A given size is the size of the whole dim.)
            pieces.push(sliced(self, DimInfo { given: None, ..info }, start..start + part, 1)?);
            start += part;
        }
        Ok(pieces)
    }

    /// Cuts the tensor along the dim `whole` into consecutive pieces, one for each of the dims
    /// `parts`. In each piece, its dim replaces `whole`, as in torchdim's
    /// `x.split((a, b), whole)`. At most one of `parts` may have no size; its piece gets the rest.
    /// If all sizes are static, rustc checks their sum. The pieces are views, so call `split_to` on
    /// a reference if the tensor owns its elements.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Channel; struct Color = 3; struct Depth; }
    /// let x = from_vec(Channel.of(5), vec![1, 2, 3, 4, 5]);
    /// let (colors, depths) = (&x).split_to(Channel, (Color, Depth));      // depths[d] = x[3 + d]
    /// assert_eq!(colors.order(Color), ndarray::array![1, 2, 3]);
    /// assert_eq!(depths.order(Depth), ndarray::array![4, 5]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the sizes do not add up, more than one is not known, or other sizes do not match.
    #[panicking_twin]
    fn try_split_to<W: DimRef, P: PiecesOf<W, Self>>(self, whole: W, parts: P) -> Result<P::Out, DimError>
    where
        Self: Computable,
        Self: Shareable,
    {
        parts.cut(self, whole)
    }

    /// Cuts the tensor along a dim of size `n` into pieces of size `ceil(n / count)`; the last
    /// piece has the rest. There can be fewer than `count` pieces: 6 elements with a `count` of 4
    /// give 3 pieces of 2. Like PyTorch's `chunk`, except that a dim without elements gives no
    /// pieces. For the pieces of NumPy's `array_split`, pass their sizes to
    /// [`split`](Restructure::split). To use a piece in the `Vec`, borrow it: `(&pieces[0]).exp()`.
    ///
    /// # Panics
    ///
    /// If `count` is 0, or sizes do not match.
    #[panicking_twin]
    fn try_chunk<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        count: usize,
    ) -> Result<Vec<Remapped<Self, Self::Dims>>, DimError>
    where
        Self: Computable,
        Self: Shareable,
    {
        let shape = self.into_named().unified_shape()?;
        shape.check_given(&dim.info())?;
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

    /// The tensors at all positions along a dim: the inverse of
    /// [`stack`](crate::operators::join::stack). To use a tensor in the `Vec`, borrow it:
    /// `(&rows[0]).exp()`.
    ///
    /// # Panics
    ///
    /// If sizes do not match.
    #[track_caller]
    fn unbind<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(self, dim: D) -> Vec<Remapped<Self, X>>
    where
        Self: Computable,
        Self: Shareable,
    {
        let shape = unwrap(self.into_named().unified_shape());
        unwrap(shape.check_given(&dim.info()));
        let size = shape.size(position(&shape, dim.info()));
        (0..size).map(|at| self.index(dim, at)).collect()
    }

    /// Broadcasts the tensor along a new dim, which must have a size. Operations broadcast by
    /// themselves, so use this only for results that must have the dim.
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
        Self: Computable,
        Self::Dims: Union<(D::Brand,)>,
    {
        Named::from_expr(Expand::new(self.into_named().expr, dim))
    }

    /// Splits the dim `whole` into several dims, the last one fastest: the inverse of
    /// [`flatten`](Restructure::flatten).
    ///
    /// Each part is a dim that the tensor lacks, or `whole` itself. The sizes must multiply to the
    /// size of `whole`; rustc checks static sizes. One of the dynamic sizes may be unknown. If the
    /// dims have [roles](crate::types::role), one of the parts must have the role of `whole`.
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
    /// If the product of the sizes is not the size of `whole`, a size cannot be inferred, or other
    /// sizes do not match.
    #[panicking_twin]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_unflatten<W: DimRef + DimsOf<Self::Dims, X>, X: Dims, P: PartsOf<W> + RolesUnflatten<W> + NewDims<X>>(
        self,
        whole: W,
        parts: P,
    ) -> Result<Remapped<Self, P::Out>, DimError>
    where
        Self: Computable,
    {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        let info = whole.info();
        shape.check_given(&info)?;
        let (size, origin) = shape.known(position(&shape, info));
        let sizes = crate::bind::split::sizes_within(info.name, &parts, size, origin)?;
        let mut step: isize = 1;
        let mut terms = SmallVec::new();
        for (&key, &size) in P::KEYS.as_slice().iter().zip(&sizes).rev() {
            terms.push((key, step, Some(size)));
            // This can only overflow if another size is 0, so that there are no elements.
            step = step.wrapping_mul(size as isize);
        }
        let along = Along { offset: 0, inner: Some(size), terms };
        Ok(Named::from_expr(Remap::new(tensor.expr, info.key(), along)))
    }

    /// Merges several dims into one dim `whole`, the last one fastest: for the parts `(a, b)`,
    /// `whole = a * size(b) + b`. The result is evaluated. If the dims have
    /// [roles](crate::types::role), one of the parts must have the role of `whole`.
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
    /// If `whole` has a different size, other sizes do not match, or an index is out of range.
    #[panicking_twin]
    fn try_flatten<P: OrderList + DimsOf<Self::Dims, X>, X: Dims, W: WholeIn<P, X>>(
        self,
        parts: P,
        whole: W,
    ) -> Result<Named<Self::Elem, W::Out, Self::Rank>, DimError>
    where
        Self: Computable,
    {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        shape.check_all_given(&parts)?;
        let mut group: SmallVec<[usize; 8]> = SmallVec::new();
        DimList::each(&parts, |dim| group.push(position(&shape, dim)));
        let size = shape.volume(&group, 1)?;
        whole.info().unify(size, None)?;
        let own_order = AxisList::in_memory_of::<W::Out, Rank0>().as_slice();
        let whole = (whole.info().key(), size);
        let (order, sizes) = flattened(&shape, W::Out::KEYS.as_slice(), own_order, whole, &group);
        check_primes_of::<W::Out, Self::Rank>(&sizes)?;
        let data = evaluate::<Self::Dims, Self::Rank, _>(tensor.expr, &shape, &order)?;
        Ok(Named::from_expr(Evaluated::laid_out(data, &sizes)))
    }
}

/// The axes of a tensor in the order in which `flatten` reads them: the memory order of the result,
/// with the axes `group` in place of `whole`. Also returns the sizes of the result in its memory
/// order. `keys` are the dims of the result, and `own_order` is their memory order.
fn flattened(
    shape: &Shape,
    keys: &[DimKey],
    own_order: &[usize],
    (whole, size): (DimKey, usize),
    group: &[usize],
) -> (SmallVec<[usize; 8]>, SmallVec<[usize; 8]>) {
    let (mut order, mut sizes) = (SmallVec::new(), SmallVec::new());
    for key in own_order.iter().map(|&at| &keys[at]) {
        if key.same(&whole) {
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
    (order, sizes)
}

impl<A: AsTensor + ?Sized> Restructure for A {}
