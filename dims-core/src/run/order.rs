//! `order`: dims become positional axes again.

use crate::brand::Element;
use crate::dim::{DimList, DimRef, Each};
use crate::error::{DimError, unwrap};
use crate::expr::Expr;
use crate::expr::evaluate::{SMALL, evaluate, few, in_line, line, line_into, sizes_of, typed_line};
use crate::expr::record::{is_active, untraced};
use crate::named::Named;
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::rank::*;
use crate::set::remove::Loses;
use crate::set::{Bound, Dims, Keys, MAX_DIMS, NamedOnce, NoDim};
use crate::storage::Owned;
use crate::storage::array::array;
use crate::tensor::{AsTensor, Computable, Evaluable, NamedOf};
use crate::types::tuples::{each_tuple, fold, fold_back, nested};
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::copy::FEW;
use kernels::loops::stride::{AnyStride, UnitStride};
use kernels::memory::axes::Axis;
use kernels::memory::buffer::Buffer;
use kernels::memory::elements::Elements;
use ndarray::{Array, ArrayD, Dim, IxDyn, NewAxis};
use smallvec::SmallVec;

/// The axes that `order` makes: each a dim, or a tuple of dims that are flattened into one axis, the last one fastest, or `NewAxis`, an axis of
/// size 1. [`Each`] is a tuple of dims that become one axis each.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an order of dims",
    label = "expected a dim, or a tuple of dims and of tuples of dims: `(b, (h, h2), w)`; `NewAxis` in it is an axis of size 1"
)]
pub trait OrderList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// All brands as nested pairs.
    #[doc(hidden)]
    type Brands;
    /// How many axes there will be.
    #[doc(hidden)]
    type Count: Rank;
    /// What is left of the brands at run time.
    #[doc(hidden)]
    const KEYS: &'static Keys;
    /// How many dims each axis has.
    #[doc(hidden)]
    const GROUPS: &'static Groups;
    /// Whether a size comes with any of the dims.
    #[doc(hidden)]
    const GIVES_SIZE: bool = false;
    /// Compares the sizes that come with dims.
    #[doc(hidden)]
    fn check_given(&self, _: &Shape) -> Result<(), DimError> {
        Ok(())
    }
}

/// An element of an order: one axis, or several ([`Each`]).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an axis of an order",
    label = "expected a dim, a tuple of dims to flatten, or `NewAxis`"
)]
pub trait OrderAxis {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// `Tail` with the brands of this axis in front, as nested pairs.
    #[doc(hidden)]
    type Before<Tail>;
    /// `N` axes, and those of this element.
    #[doc(hidden)]
    type Behind<N: Rank>: Rank;
    /// How many dims each of its axes has.
    #[doc(hidden)]
    const GROUPS: Groups;
    /// What is left of the brands at run time.
    #[doc(hidden)]
    const KEYS: Keys;
    /// Whether a size comes with any of the dims.
    #[doc(hidden)]
    const GIVES_SIZE: bool;
    /// Compares the sizes that come with dims.
    #[doc(hidden)]
    fn check_given(&self, shape: &Shape) -> Result<(), DimError>;
}

/// How many dims each axis of a result has, known to rustc: most have one, a tuple of dims has several, `NewAxis` none.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    len: usize,
    dims: [usize; MOST_AXES],
}

/// The most axes that an order can have; see [`Rank`].
const MOST_AXES: usize = 26;

impl Groups {
    const EMPTY: Self = Groups { len: 0, dims: [0; MOST_AXES] };

    /// One axis of so many dims.
    const fn one(dims: usize) -> Self {
        Self::EMPTY.with(dims)
    }

    /// So many axes of one dim each.
    const fn singles(count: usize) -> Self {
        let mut groups = Self::EMPTY;
        while groups.len < count {
            groups = groups.with(1);
        }
        groups
    }

    const fn with(mut self, dims: usize) -> Self {
        assert!(self.len < MOST_AXES, "an order has more than 26 axes");
        self.dims[self.len] = dims;
        self.len += 1;
        self
    }

    /// These axes, then those of `other`.
    const fn join(mut self, other: &Self) -> Self {
        let mut at = 0;
        while at < other.len {
            self = self.with(other.dims[at]);
            at += 1;
        }
        self
    }

    /// As a slice.
    pub(crate) const fn as_slice(&self) -> &[usize] {
        self.dims.split_at(self.len).0
    }
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> OrderAxis for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Before<Tail> = (D::Brand, Tail);
    type Behind<N: Rank> = N::Succ;
    const GROUPS: Groups = Groups::one(1);
    const KEYS: Keys = <D::Brand as Element>::KEYS;
    const GIVES_SIZE: bool = <Self as DimList>::GIVES_SIZE;

    fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
        shape.check_all_given(self)
    }
}

/// One more axis for each parameter.
macro_rules! more {
    ($rank:ty;) => { $rank };
    ($rank:ty; $head:ident $($tail:ident)*) => { more![<$rank as Rank>::Succ; $($tail)*] };
}

macro_rules! groups {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: DimRef),*> OrderAxis for ($($d,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Before<Tail> = nested![$($d::Brand),*; Tail];
            type Behind<N: Rank> = N::Succ;
            const GROUPS: Groups = Groups::one(<Self as OrderAxis>::KEYS.as_slice().len());
            const KEYS: Keys = Keys::EMPTY$(.join(&<$d::Brand as Element>::KEYS))*;
            const GIVES_SIZE: bool = <Self as DimList>::GIVES_SIZE;

            fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
                shape.check_all_given(self)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($d: DimRef),*> OrderAxis for Each<($($d,)*)> {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Before<Tail> = nested![$($d::Brand),*; Tail];
            type Behind<N: Rank> = more![N; $($d)*];
            const GROUPS: Groups = Groups::singles(<Self as OrderAxis>::KEYS.as_slice().len());
            const KEYS: Keys = <($($d,)*) as OrderAxis>::KEYS;
            const GIVES_SIZE: bool = <Self as DimList>::GIVES_SIZE;

            fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
                shape.check_all_given(self)
            }
        }
    };
}

each_tuple!(groups);

/// An axis of size 1, which no dim becomes.
#[diagnostic::do_not_recommend]
impl OrderAxis for NewAxis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Before<Tail> = Tail;
    type Behind<N: Rank> = N::Succ;
    const GROUPS: Groups = Groups::one(0);
    const KEYS: Keys = Keys::EMPTY;
    const GIVES_SIZE: bool = false;

    fn check_given(&self, _: &Shape) -> Result<(), DimError> {
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> OrderList for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = (D::Brand, ());
    type Count = Rank1;
    const KEYS: &'static Keys = &<D::Brand as Element>::KEYS;
    const GROUPS: &'static Groups = &Groups::one(1);
    const GIVES_SIZE: bool = <Self as DimList>::GIVES_SIZE;

    fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
        shape.check_all_given(self)
    }
}

#[diagnostic::do_not_recommend]
impl<L> OrderList for Each<L>
where
    Each<L>: OrderAxis,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = <Self as OrderAxis>::Before<()>;
    type Count = <Self as OrderAxis>::Behind<Rank0>;
    const KEYS: &'static Keys = &<Self as OrderAxis>::KEYS;
    const GROUPS: &'static Groups = &<Self as OrderAxis>::GROUPS;
    const GIVES_SIZE: bool = <Self as OrderAxis>::GIVES_SIZE;

    fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
        OrderAxis::check_given(self, shape)
    }
}

#[diagnostic::do_not_recommend]
impl OrderList for NewAxis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = ();
    type Count = Rank1;
    const KEYS: &'static Keys = &Keys::EMPTY;
    const GROUPS: &'static Groups = &Groups::one(0);
}

#[diagnostic::do_not_recommend]
impl OrderList for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = ();
    type Count = Rank0;
    const KEYS: &'static Keys = &Keys::EMPTY;
    const GROUPS: &'static Groups = &Groups::EMPTY;
}

macro_rules! lists {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: OrderAxis),*> OrderList for ($($d,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Brands = fold_back![Before; (); $($d)*];
            type Count = fold![Behind; Rank0; $($d)*];
            const KEYS: &'static Keys = &Keys::EMPTY$(.join(&$d::KEYS))*;
            const GROUPS: &'static Groups = &Groups::EMPTY$(.join(&$d::GROUPS))*;
            const GIVES_SIZE: bool = false $(|| $d::GIVES_SIZE)*;

            fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
                $(self.$n.check_given(shape)?;)*
                Ok(())
            }
        }
    };
}

each_tuple!(lists);

/// An order of dims of `S`: every dim named is bound, and named once. The dims that are left are `Rest`, which rustc infers;
/// see [`DimsOf`](crate::set::DimsOf).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an order of dims",
    label = "expected a dim, or a tuple of dims and of tuples of dims: `(b, (h, h2), w)`; `NewAxis` in it is an axis of size 1"
)]
pub trait OrderOf<S: Dims, Rest: Dims>: OrderList {}

impl<S, Rest: Dims, L: OrderList> OrderOf<S, Rest> for L
where
    S: Loses<L, L::Brands, Rest>,
    NoDim<S::Missing>: Bound<S::Missing, S, Then<S::Left> = Rest>,
    NoDim<S::Twice>: NamedOnce<S::Twice, L>,
{
}

/// What `order` yields, by the dims that are left: without any, an array (a single element if it has no axes); else a
/// tensor whose new positional axes stand on the left.
pub trait Ordered<T, R: Rank>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The result.
    type Out;
    #[doc(hidden)]
    fn build(data: Vec<T>, sizes: &[usize]) -> Self::Out;
    /// As `build`, of elements that may be traced. An array cannot be.
    #[doc(hidden)]
    fn build_recorded(data: Buffer<T>, sizes: &[usize]) -> Result<Self::Out, DimError>;
}

#[diagnostic::do_not_recommend]
impl<T: kernels::scalar::Element, R: ArrayRank> Ordered<T, R> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = R::Array<T>;

    #[inline]
    fn build(data: Vec<T>, sizes: &[usize]) -> R::Array<T> {
        R::array(data, sizes)
    }

    #[inline]
    #[track_caller]
    fn build_recorded(data: Buffer<T>, sizes: &[usize]) -> Result<R::Array<T>, DimError> {
        Ok(R::array(untraced(data, "order")?, sizes))
    }
}

/// What array a tensor without dims is.
pub trait ArrayRank: Rank {
    /// An ndarray array; for rank 0 the element itself.
    type Array<T>;
    #[doc(hidden)]
    fn array<T>(data: Vec<T>, sizes: &[usize]) -> Self::Array<T>;
}

impl ArrayRank for Rank0 {
    type Array<T> = T;

    #[inline]
    fn array<T>(data: Vec<T>, _: &[usize]) -> T {
        data.into_iter().next().expect("a tensor without axes has one element")
    }
}

macro_rules! arrays {
    ($($rank:ident $n:literal;)*) => {$(
        impl ArrayRank for $rank {
            type Array<T> = Array<T, <$rank as Rank>::Nd>;

            #[inline]
            fn array<T>(data: Vec<T>, sizes: &[usize]) -> Self::Array<T> {
                let sizes: [usize; $n] = sizes.try_into().expect("one size for each axis");
                array(Dim(sizes), data)
            }
        }
    )*};
}

arrays! { Rank1 1; Rank2 2; Rank3 3; Rank4 4; Rank5 5; Rank6 6; }

macro_rules! dynamic_arrays {
    ($($rank:ident)*) => {$(
        impl ArrayRank for $rank {
            type Array<T> = ArrayD<T>;

            #[inline]
            fn array<T>(data: Vec<T>, sizes: &[usize]) -> ArrayD<T> {
                array(IxDyn(sizes), data)
            }
        }
    )*};
}

dynamic_arrays! {
    Rank7 Rank8 Rank9 Rank10 Rank11 Rank12 Rank13 Rank14 Rank15 Rank16 Rank17 Rank18 Rank19 Rank20 Rank21 Rank22 Rank23
    Rank24 Rank25 Rank26
}

macro_rules! left_over {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<T, R: Rank, $($d: Element),*> Ordered<T, R> for ($($d,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = Named<T, Self, R>;

            #[inline]
            fn build(data: Vec<T>, sizes: &[usize]) -> Named<T, Self, R> {
                Named::from_expr(Owned::laid_out(data, sizes))
            }

            #[inline]
            fn build_recorded(data: Buffer<T>, sizes: &[usize]) -> Result<Named<T, Self, R>, DimError> {
                Ok(Named::from_expr(Owned::laid_out(data, sizes)))
            }
        }
    };
}

each_tuple!(left_over);

/// How an expression is brought into an order of its axes.
pub(crate) enum Route<'e, T> {
    /// A tensor with few elements in memory: they are copied one by one. The axes of the result stand behind others of one element.
    Few { elements: Elements<'e, T>, axes: [Axis; FEW], len: usize },
    /// All operands lie alike, contiguously in this order: one loop, which needs no plan.
    Line { axes: &'e [Axis], len: usize, operands: usize },
    /// A nest of loops, which is planned.
    Nest,
}

/// How a tensor with the dims `S` and the positional axes `R` is ordered as `L` says: known to rustc, but for the sizes.
pub(crate) struct Ordering<S, R, L>(PhantomData<(S, R, L)>);

impl<S: Dims, R: Rank, L: OrderList> Ordering<S, R, L> {
    /// The loop axes in the order of the result: the dims that are left, the named ones, the positional axes.
    pub(crate) const ORDER: &'static AxisList = &{
        let named = AxisList::of(L::KEYS, S::KEYS);
        let all = S::KEYS.as_slice().len();
        AxisList::in_memory(S::KEYS, 0).without(&named).join(&named).join(&AxisList::range(all, all + R::N))
    };

    /// How many dims are left.
    const LEFT: usize = S::KEYS.as_slice().len() - L::KEYS.as_slice().len();

    /// Whether every dim becomes an axis of its own.
    pub(crate) const PLAIN: bool = {
        let groups = L::GROUPS.as_slice();
        let mut plain = R::N == 0 && Self::LEFT == 0 && groups.len() <= MAX_DIMS;
        let mut i = 0;
        while i < groups.len() {
            plain &= groups[i] == 1;
            i += 1;
        }
        plain
    };

    /// How many operands `E` has, if rustc knows that all of them lie in this order.
    pub(crate) const fn typed<E: Expr>() -> Option<usize> {
        if Self::PLAIN { E::FACTS.layout.operands_in(Self::ORDER, S::KEYS) } else { None }
    }

    /// The elements and sizes of a tensor that owns them and has them in this order, which is what most reductions yield.
    #[inline(always)]
    fn as_it_is<E: Expr>(expr: E) -> Result<(Vec<E::Elem>, [usize; MAX_DIMS]), E> {
        if !Self::PLAIN || E::FACTS.memory.is_none() {
            return Err(expr);
        }
        let sizes = sizes_of(expr.memory().1, Self::ORDER.as_slice());
        expr.into_contiguous::<S>(Self::ORDER.as_slice()).map(|data| (data, sizes))
    }

    /// Where the elements are, and how many, if they lie in memory as in an array with these axes, contiguously.
    #[inline(always)]
    pub(crate) fn same_layout<'e, E: Expr>(
        expr: &'e E,
        out: &[Axis],
    ) -> Option<(Elements<'e, E::Elem>, usize)> {
        if !Self::PLAIN || E::FACTS.memory.is_none() {
            return None;
        }
        let (from, axes) = expr.memory();
        let order = Self::ORDER.as_slice();
        let mut len: usize = 1;
        let mut same = out.len() == order.len();
        for (own, &at) in out.iter().zip(order).rev() {
            let alike = if const { Self::typed::<E>().is_some() } {
                axes[at].size == own.size
            } else {
                axes[at] == *own
            };
            same &= alike && own.stride == len as isize;
            len = len.saturating_mul(own.size);
        }
        same.then_some((from, len))
    }

    /// A tensor in memory with few elements and axes: the axes in the order of the result, behind others of one element.
    #[inline(always)]
    fn small<E: Expr>(expr: &E) -> Option<(Elements<'_, E::Elem>, [Axis; FEW], usize)> {
        let order = Self::ORDER.as_slice();
        if !Self::PLAIN
            || E::FACTS.memory.is_none()
            || order.len() > FEW
            || const { Self::typed::<E>().is_some() }
        {
            return None;
        }
        let (elements, axes) = expr.memory();
        let (mut own, mut len, mut fits) = ([Axis::new(1, 0); FEW], 1_usize, true);
        for (own, &at) in own[FEW - order.len()..].iter_mut().zip(order) {
            *own = axes[at];
            fits &= S::KEYS.as_slice()[at].fixed.is_none_or(|size| size == own.size);
            len = len.saturating_mul(own.size);
        }
        (fits && len <= SMALL).then_some((elements, own, len))
    }

    /// How an expression is brought into this order.
    #[inline(always)]
    pub(crate) fn route<E: Expr>(expr: &E) -> Route<'_, E::Elem> {
        if is_active() {
            return Route::Nest;
        }
        if let Some((elements, axes, len)) = Self::small(expr) {
            return Route::Few { elements, axes, len };
        }
        let line = if let Some(operands) = const { Self::typed::<E>() } {
            // (If sizes conflict, the plan names them.)
            typed_line::<S, E>(expr).map(|(axes, len)| (axes, len, operands))
        } else if Self::PLAIN {
            in_line::<S, E>(expr, Self::ORDER)
        } else {
            None
        };
        line.map_or(Route::Nest, |(axes, len, operands)| Route::Line { axes, len, operands })
    }

    /// The elements of a [line](Route::Line).
    #[inline(always)]
    #[track_caller]
    fn line<E: Expr>(expr: &E, len: usize, operands: usize) -> Result<Vec<E::Elem>, DimError> {
        if const { Self::typed::<E>().is_some() } {
            line::<UnitStride, _>(expr, len, operands)
        } else {
            line::<AnyStride, _>(expr, len, operands)
        }
    }

    /// As `line`, into places that exist already.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn line_into<E: Expr>(
        expr: &E,
        places: &mut [E::Elem],
        operands: usize,
    ) -> Result<(), DimError> {
        if const { Self::typed::<E>().is_some() } {
            line_into::<UnitStride, _>(expr, places, operands)
        } else {
            line_into::<AnyStride, _>(expr, places, operands)
        }
    }

    /// Whether an array has the axes of the result, laid out as the operands are.
    #[inline(always)]
    pub(crate) fn is_like(out: &[Axis], like: &[Axis]) -> bool {
        let order = Self::ORDER.as_slice();
        out.len() == order.len() && out.iter().zip(order).all(|(own, &at)| *own == like[at])
    }

    /// The sizes of the result's axes.
    #[inline]
    pub(crate) fn sizes(shape: &Shape) -> Result<SmallVec<[usize; 8]>, DimError> {
        let loops = shape.sizes();
        let order = Self::ORDER.as_slice();
        let mut sizes: SmallVec<[usize; 8]> = SmallVec::new();
        let mut next = 0;
        for group in core::iter::repeat_n(1, Self::LEFT).chain(L::GROUPS.as_slice().iter().copied()) {
            let axes = &order[next..next + group];
            next += group;
            match axes.iter().try_fold(1usize, |size, &axis| size.checked_mul(loops[axis])) {
                Some(size) => sizes.push(size),
                None if axes.iter().any(|&axis| loops[axis] == 0) => sizes.push(0),
                None => return Err(DimError::TooLarge { dims: shape.describe(axes.iter().copied()) }),
            }
        }
        sizes.extend(order[next..].iter().map(|&axis| loops[axis]));
        Ok(sizes)
    }
}

/// The sizes of few axes.
#[inline]
fn few_sizes(axes: &[Axis; FEW]) -> [usize; FEW] {
    axes.map(|axis| axis.size)
}

/// Turns dims back into positional axes.
pub trait OrderExt: AsTensor {
    /// The tensor with the named dims as axes, in the order given; a tuple of dims becomes one axis.
    ///
    /// Where no dim is left, the result is an ndarray array (`order(())` of a single element is that element); else it is
    /// a tensor with the new axes on the left of its positional ones. The elements are computed in one pass, and lie contiguously in
    /// the order asked for. `NewAxis` is an axis of size 1: a tensor without the dim `j` has the shape of NumPy's `keepdims` as
    /// `order((i, NewAxis))`.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let a = ndarray::Array2::from_shape_fn((4, 6), |(i, j)| 6 * i + j);
    /// dims!(h, w, h2 = 2, w2 = 3);
    /// let blocks = a.at(((h, h2), (w, w2)));
    /// let sums: ndarray::Array2<usize> = blocks.sum((h2, w2)).order((h, w));
    /// assert_eq!(sums, ndarray::array![[24, 42], [96, 114]]);
    /// assert_eq!(blocks.order(((h, w), (h2, w2))).dim(), (4, 6));  // a tuple of dims is one axis, the last dim fastest
    /// let total: usize = blocks.sum((h, h2, w, w2)).order(());
    /// assert_eq!(total, 276);
    /// assert_eq!(blocks.max((w, w2, h2)).order((h, NewAxis)), ndarray::array![[11], [23]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If operands have different sizes for one dim, an index is out of range, or the result does not fit into memory.
    #[track_caller]
    #[inline(always)]
    #[rustfmt::skip] // rustc quotes the line
    fn order<L: OrderOf<Self::Dims, X>, X, Out>(self, dims: L) -> Out where Self: Evaluable,
        X: Ordered<Self::Elem, <L::Count as Rank>::Plus<Self::Rank>, Out = Out>,
    {
        // (Not by way of `try_order`: a small result would pass through its `Result` in memory, in smaller pieces than it is read from there.)
        match unwrap(at_hand(self, dims)) {
            Ok((data, sizes)) => X::build(data, &sizes[..Self::Dims::KEYS.as_slice().len()]),
            Err(tensor) => unwrap(planned::<_, L, X>(tensor)),
        }
    }

    /// As [`order`](OrderExt::order), but what sizes decide is an error.
    #[inline(always)]
    #[track_caller]
    fn try_order<L: OrderOf<Self::Dims, X>, X, Out>(self, dims: L) -> Result<Out, DimError>
    where
        Self: Evaluable,
        X: Ordered<Self::Elem, <L::Count as Rank>::Plus<Self::Rank>, Out = Out>,
    {
        match at_hand(self, dims)? {
            Ok((data, sizes)) => Ok(X::build(data, &sizes[..Self::Dims::KEYS.as_slice().len()])),
            Err(tensor) => planned::<_, L, X>(tensor),
        }
    }
}

impl<A: AsTensor> OrderExt for A {}

/// The elements and sizes of a tensor that owns them and has them in the order asked for; else the tensor.
#[inline(always)]
fn at_hand<A: Computable, L: OrderList>(
    tensor: A,
    dims: L,
) -> Result<Result<(Vec<A::Elem>, [usize; MAX_DIMS]), NamedOf<A>>, DimError> {
    let tensor = tensor.into_named();
    if L::GIVES_SIZE {
        dims.check_given(&tensor.unified_shape()?)?;
    }
    Ok(Ordering::<A::Dims, A::Rank, L>::as_it_is(tensor.expr).map_err(NamedOf::<A>::from_expr))
}

/// [`OrderExt::try_order`] of what has to be computed or moved. (Apart, so that what already lies as it should costs nothing: that part is
/// always inlined, for the reason that the sum of a product gives.)
#[inline(never)]
#[track_caller]
fn planned<A, L, X>(tensor: A) -> Result<X::Out, DimError>
where
    A: Computable,
    L: OrderList,
    X: Ordered<A::Elem, <L::Count as Rank>::Plus<A::Rank>>,
{
    let tensor = tensor.into_named();
    match Ordering::<A::Dims, A::Rank, L>::route(&tensor.expr) {
        Route::Few { elements, axes, len } => {
            let data = few(elements, &axes, len)?;
            return Ok(X::build(data, &few_sizes(&axes)[FEW - L::GROUPS.as_slice().len()..]));
        }
        Route::Line { axes, len, operands } => {
            let order = Ordering::<A::Dims, A::Rank, L>::ORDER.as_slice();
            // (If memory is short, the error below names the dims.)
            if let Ok(data) = Ordering::<A::Dims, A::Rank, L>::line(&tensor.expr, len, operands) {
                return Ok(X::build(data, &sizes_of(axes, order)[..order.len()]));
            }
        }
        Route::Nest => {}
    }
    let mut shape = Shape::new::<A::Dims, A::Rank>();
    tensor.unify(&mut shape)?;
    let sizes = Ordering::<A::Dims, A::Rank, L>::sizes(&shape)?;
    let order = Ordering::<A::Dims, A::Rank, L>::ORDER.as_slice();
    let data = evaluate::<A::Dims, A::Rank, _>(tensor.expr, &shape, order)?;
    X::build_recorded(data, &sizes)
}
