//! Elements selected by index or by value: `take`, `scatter_add`, `one_hot`, `masked_fill`,
//! `nonzero`, `unique` and others.

mod take;

pub use take::Take;
use twins::panicking_twin;

use crate::error::DimError;
use crate::execute::assign::NoneLeft;
use crate::execute::lines::{Lines, arranged, axes_in};
use crate::execute::reduce::Reductions;
use crate::execute::scatter::{ScatterWork, scattered};
use crate::execute::step::note_one_size;
use crate::expr::{Binary, Expr, Iota, Operand, Scalar, Select, Unary};
use crate::operators::dynamic::{Unique, grown, positions, runs};
use crate::plan::shape::Shape;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, Evaluable, Truths};
use crate::types::brand::Brand;
use crate::types::dim::{Dim, DimList, DimRef, Extent};
use crate::types::rank::{Rank, Rank0};
use crate::types::set::rename::CanGain;
use crate::types::set::{Dims, DimsOf, Union};
use alloc::vec::Vec;
use core::any::TypeId;
use core::marker::PhantomData;
use kernels::memory::runs::RowRun;
use kernels::ops::{self, BinaryOp};
use kernels::scalar::{CastTo, Element, IndexInt, Num, Ordered};
use kernels::step::moves::MoveRows;
use kernels::step::sorting::ascending;

/// The result of [`take`](Selecting::take) from a tensor `A` with the index `I`. It has the dims of
/// `I`, and `X`: the dims of `A` without the one selected from.
pub type TakenAlong<A, I, X> = Named<
    <A as AsTensor>::Elem,
    <X as Union<<I as AsTensor>::Dims>>::Out,
    <<A as AsTensor>::Rank as Rank>::Max<<I as AsTensor>::Rank>,
    Take<A, <I as AsTensor>::Expr>,
>;

/// The result of [`one_hot`](Selecting::one_hot).
pub type OneHot<'a, A, U, C> = Named<
    U,
    <<A as AsTensor>::Dims as Union<(<C as DimRef>::Brand,)>>::Out,
    <A as AsTensor>::Rank,
    Unary<
        ops::Cast<U>,
        Binary<
            ops::Eq,
            Unary<ops::Index, <A as AsTensor>::Expr>,
            Iota<'a, <C as DimRef>::Brand, <C as DimRef>::Open>,
        >,
    >,
>;

/// The result of [`from_end`](Selecting::from_end).
pub type FromEnd<A> = Named<
    isize,
    <A as AsTensor>::Dims,
    <A as AsTensor>::Rank,
    Unary<ops::IndexFromEnd, <A as AsTensor>::Expr>,
>;

/// The result of [`masked_fill`](Selecting::masked_fill).
pub type MaskedFill<A, M> = Named<
    <A as AsTensor>::Elem,
    <<M as Operand<bool>>::Dims as Union<<A as AsTensor>::Dims>>::Out,
    <<M as Operand<bool>>::Rank as Rank>::Max<<A as AsTensor>::Rank>,
    Select<<M as Operand<bool>>::Expr, Scalar<<A as AsTensor>::Elem>, <A as AsTensor>::Expr>,
>;

/// A tensor of integers that are positions along a dim.
#[diagnostic::on_unimplemented(
    message = "the elements of `{Self}` cannot be indices",
    label = "expected a tensor of integers: convert floats with `.cast::<usize>()`, bind an array: `ids.at(i)`; for one position, write `x.index(dim, 3)`"
)]
pub trait Indices: Computable<Elem: IndexInt> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<A: Computable<Elem: IndexInt>> Indices for A {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Operations that select elements by their positions, or by the values of a tensor.
///
/// The size of the result of `nonzero`, `masked_select`, `unique` and `unique_consecutive` depends
/// on the elements: see [`dynamic`](crate::operators::dynamic).
pub trait Selecting: AsTensor {
    /// The elements at `index` along a dim: `out[.., k] = x[.., index[k]]`. Lazy: it fuses with the
    /// operations that follow.
    ///
    /// The dims of the index replace `dim`. If the index has only new dims, this is NumPy's `take`
    /// and PyTorch's `index_select` and `embedding`. If the index has dims of the tensor, this is
    /// PyTorch's `gather` and NumPy's `take_along_axis`.
    ///
    /// ```text
    /// x: (i, j)    ids: (k)       x.take(j, ids): (i, k)      out[i, k] = x[i, ids[k]]
    /// x: (i, j)    ids: (i)       x.take(j, ids): (i)         out[i]    = x[i, ids[i]]
    /// x: (i, j)    ids: (i, j)    x.take(j, ids): (i, j)      out[i, j] = x[i, ids[i, j]]
    /// ```
    ///
    /// An index that is out of range is an error when its element is read. If the tensor is lazy,
    /// `take` evaluates it at once.
    #[panicking_twin]
    fn try_take<D: DimRef + DimsOf<Self::Dims, X>, X: Dims + Union<I::Dims>, I: Indices>(
        self,
        dim: D,
        index: I,
    ) -> Result<TakenAlong<Self, I, X>, DimError>
    where
        Self: Computable,
    {
        Ok(Named::from_expr(Take::new(self, dim, index.into_named().expr)?))
    }

    /// Lets negative indices count from the end: `v` where `v >= 0`, and `size + v` elsewhere.
    /// Lazy.
    ///
    /// `size` must be the size of the axis that the indices select from: a dim that has a size
    /// (bound, static, or `D.of(n)`), or a number. It is not checked against the axis. The element
    /// type of the result is `isize`. A negative index that is out of range is left unchanged, so
    /// that the error shows it. (An index that does not fit into `isize` becomes the nearest
    /// `isize`.)
    ///
    /// Without `from_end`, a negative number in a computed index is an error, so that `i - 1` at 0
    /// does not read the last element.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let (a, ids) = (ndarray::array![10, 20, 30], ndarray::array![-1, 0, -3]);
    /// dims!(i, k);
    /// let x = a.at(i);
    /// assert_eq!(x.take(i, ids.at(k).from_end(i)).order(k), ndarray::array![30, 10, 10]);
    /// assert_eq!(a.at(ids.at(k).from_end(a.len())).order(k), ndarray::array![30, 10, 10]);
    /// let error = a.at(ids.at(k)).try_order(k).unwrap_err().to_string();
    /// assert!(error.contains("; to count negative indices from the end, write `index.from_end(size)`"));
    /// ```
    ///
    /// # Panics
    ///
    /// If the dim has no size.
    #[panicking_twin(but = "a dim without a size is an error")]
    fn try_from_end<N: Extent>(self, size: N) -> Result<FromEnd<Self>, DimError>
    where
        Self: Indices,
    {
        // (No axis has more than `isize::MAX` elements.)
        let size = isize::try_from(size.extent()?).unwrap_or(isize::MAX);
        Ok(Named::from_expr(Unary { op: ops::IndexFromEnd(size), a: self.into_named().expr }))
    }

    /// Adds each element at the position given by `index`: `out[.., index[k]] += x[.., k]` for all
    /// `k`, starting from zeros.
    ///
    /// `dims` are the dims that are summed over (`k`). `into` is the dim of the positions, and must
    /// have a size. The index and the tensor can have any dims; each is broadcast along the dims
    /// that only the other has. Elements with the same position are added in the order of `dims`,
    /// the last dim fastest. Elements of `f16` and `bf16` are added in `f32`, and the sum is
    /// rounded once.
    ///
    /// ```text
    /// x: (k, f)    ids: (k)       x.scatter_add(k, j, ids): (j, f)
    /// ```
    ///
    /// `x + y.scatter_add(..)` is PyTorch's `index_add`.
    #[panicking_twin("so is an index that is out of range")]
    fn try_scatter_add<D, J, I, V, X, Y>(
        self,
        dims: D,
        into: J,
        index: I,
    ) -> Result<Named<Self::Elem, Y>, DimError>
    where
        Self: Computable<Elem: Num, Rank = Rank0, Dims: Union<I::Dims, Out = V>>,
        I: Indices + AsTensor<Rank = Rank0>,
        V: Dims,
        D: DimsOf<V, X>,
        J: DimRef,
        X: Union<(J::Brand,), Out = Y> + CanGain<J::Brand>,
        Y: Dims,
    {
        if TypeId::of::<Self::Elem>() == TypeId::of::<Acc<Self>>() {
            return scatter::<Self, D, J, I, V, Y, _>(self, &dims, into, index, ScatterWork::ADD);
        }
        let widened: Named<Acc<Self>, Self::Dims, Rank0, _> =
            Named::from_expr(Unary { op: ops::Widen, a: self.into_named().expr });
        let sums = scatter::<_, D, J, I, V, Y, _>(widened, &dims, into, index, ScatterWork::ADD)?;
        Named::<Self::Elem, Y, Rank0, _>::from_expr(Unary { op: ops::Narrow(PhantomData), a: sums.expr })
            .try_eval()
    }

    /// Writes each element to the position given by `index`, as in
    /// [`scatter_add`](Selecting::scatter_add), and `fill` to all other positions.
    ///
    /// ```text
    /// out[..] = fill;   for k in dims { out[.., index[k]] = x[.., k] }
    /// ```
    ///
    /// If several elements have the same position, the last one in the order of `dims`, the last
    /// dim fastest, is kept.
    #[panicking_twin("so is an index that is out of range")]
    fn try_scatter<D, J, I, V, X, Y>(
        self,
        dims: D,
        into: J,
        index: I,
        fill: Self::Elem,
    ) -> Result<Named<Self::Elem, Y>, DimError>
    where
        Self: Computable<Rank = Rank0, Dims: Union<I::Dims, Out = V>>,
        I: Indices + AsTensor<Rank = Rank0>,
        V: Dims,
        D: DimsOf<V, X>,
        J: DimRef,
        X: Union<(J::Brand,), Out = Y> + CanGain<J::Brand>,
        Y: Dims,
    {
        scatter::<Self, D, J, I, V, Y, _>(self, &dims, into, index, ScatterWork::replacing(fill))
    }

    /// 1 where the index along the new dim `classes` equals the element, and 0 elsewhere:
    /// `out[.., c] = (x[..] == c)`. Lazy.
    ///
    /// `classes` must have a size. Elements that are out of range give zeros.
    fn one_hot<'a, U, C>(self, classes: C) -> OneHot<'a, Self, U, C>
    where
        Self: Computable<Elem: IndexInt, Dims: Union<(C::Brand,)> + CanGain<C::Brand>>,
        U: Element,
        bool: CastTo<U>,
        C: DimRef + 'a,
    {
        let index = Unary { op: ops::Index, a: self.into_named().expr };
        let equal = Binary { op: ops::Eq, a: index, b: Iota::new(classes) };
        Named::from_expr(Unary { op: ops::Cast(PhantomData), a: equal })
    }

    /// `value` where the mask is true, and the element elsewhere: `select(mask, value, x)`. Lazy.
    fn masked_fill<M: Operand<bool>>(self, mask: M, value: Self::Elem) -> MaskedFill<Self, M>
    where
        Self: Computable,
        M::Dims: Union<Self::Dims>,
    {
        Named::from_expr(Select { cond: mask.into_expr(), a: Scalar(value), b: self.into_named().expr })
    }

    /// The positions of the elements that are true, in ascending order, along the new dim `n`. For
    /// a tuple of dims, positions are row-major over the tuple, as for `argmax`.
    ///
    /// `dims` must be all dims of the tensor, because the number of positions could differ along
    /// other dims.
    #[panicking_twin("so is a dim `n` that has a size already")]
    fn try_nonzero<D, X, B>(self, dims: D, n: &Dim<B>) -> Result<Named<usize, (B,)>, DimError>
    where
        Self: Evaluable<Rank = Rank0> + Truths,
        D: DimsOf<Self::Dims, X>,
        X: NoneLeft,
        B: Brand,
    {
        let lines = Lines::of::<Self, D>(self, "nonzero")?;
        lines.shape.check_all_given(&dims)?;
        let found: Vec<usize> = positions(&lines.data).collect();
        grown(n, found.len())?;
        let sizes = [found.len()];
        arranged(found, &[0], &sizes)
    }

    /// The elements where the mask is true, along the new dim `n`, in row-major order of `dims`:
    /// `x[mask]` in NumPy.
    ///
    /// `dims` must be all dims of the mask. The tensor may have other dims, which are kept.
    #[panicking_twin("so is a dim `n` that has a size already")]
    fn try_masked_select<M, D, X, Y, Z, B>(
        self,
        mask: M,
        dims: D,
        n: &Dim<B>,
    ) -> Result<Named<Self::Elem, Z, Self::Rank>, DimError>
    where
        Self: Evaluable,
        M: Truths + Computable<Rank = Rank0>,
        D: DimsOf<M::Dims, X> + DimsOf<Self::Dims, Y>,
        X: NoneLeft,
        Y: Union<(B,), Out = Z> + CanGain<B>,
        Z: Dims,
        B: Brand,
    {
        let mut lines = Lines::recorded::<Self, D>(self)?;
        lines.shape.check_all_given(&dims)?;
        let mask = Lines::of::<M, D>(mask, "masked_select")?;
        let (size, of_mask) = (
            |at: usize| lines.shape.size(lines.order[lines.kept + at]),
            |at: usize| mask.shape.size(mask.order[at]),
        );
        if !(0..mask.order.len()).all(|at| size(at) == of_mask(at)) {
            let what = format!("a mask of {} does not fit {}", mask.describe(), lines.describe());
            return Err(DimError::Shape { what });
        }
        let found: Vec<usize> = positions(&mask.data).collect();
        grown(n, found.len())?;
        let mut axes = axes_in::<Z, Self::Dims>(lines.order[..lines.kept].iter().copied());
        axes.push(Z::KEYS.position(&n.key()).expect("the new dim is one of the result's"));
        lines.check_volume::<Self::Elem>(found.len())?;
        for (key, &axis) in D::KEYS.as_slice().iter().zip(&mask.order) {
            note_one_size(mask.shape.size(axis), &|| format!("a mask along dim `{}`", key.name));
        }
        let kind = MoveRows {
            name: "masked_select",
            outer: lines.count(),
            size: lines.len(),
            inner: 1,
            sources: RowRun::split(found.len(), &|at| found[at])?.into(),
            fill: Self::Elem::default(),
        };
        let out = lines.execute(&kind)?.next::<Self::Elem>();
        arranged(out, &axes, &lines.sizes(&[found.len()]))
    }

    /// The distinct elements in ascending order, along the new dim `n`. Also returns the count of
    /// each value and, for each element, the position of its value. All NaNs are one value, the
    /// last one.
    ///
    /// `dims` must be all dims of the tensor, because the number of values could differ along other
    /// dims.
    #[panicking_twin("so is a dim `n` that has a size already")]
    fn try_unique<D, X, B>(self, dims: D, n: &Dim<B>) -> Result<Unique<Self::Elem, B, Self::Dims>, DimError>
    where
        Self: Evaluable<Elem: Ordered, Rank = Rank0>,
        D: DimsOf<Self::Dims, X>,
        X: NoneLeft,
        B: Brand,
    {
        let lines = Lines::recorded::<Self, ()>(self)?;
        lines.shape.check_all_given(&dims)?;
        lines.check_unrecorded("unique")?;
        let mut order: Vec<usize> = (0..lines.data.len()).collect();
        order.sort_by(|&a, &b| ascending(&lines.data[a], &lines.data[b]));
        runs("unique", lines, order, n)
    }

    /// Keeps the first element of each run of equal elements, along the new dim `n`. Also returns
    /// the length of each run and, for each element, the position of its run. NaN equals NaN.
    ///
    /// For a tuple of dims, the elements are visited in row-major order over the tuple. `dims` must
    /// be all dims of the tensor, as for [`unique`](Selecting::unique).
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Seq; }
    /// dims!(n);
    /// let runs = from_vec(Seq.of(6), vec![1, 1, 2, 1, 1, 1]).unique_consecutive(Seq, n);
    /// assert_eq!(runs.values.order(n), ndarray::array![1, 2, 1]);
    /// assert_eq!(runs.counts.order(n), ndarray::array![2, 1, 3]);
    /// assert_eq!(runs.inverse.order(Seq), ndarray::array![0, 0, 1, 2, 2, 2]);
    /// ```
    #[panicking_twin("so is a dim `n` that has a size already")]
    fn try_unique_consecutive<D, X, B>(
        self,
        dims: D,
        n: &Dim<B>,
    ) -> Result<Unique<Self::Elem, B, Self::Dims>, DimError>
    where
        Self: Evaluable<Elem: Ordered, Rank = Rank0>,
        D: DimsOf<Self::Dims, X>,
        X: NoneLeft,
        B: Brand,
    {
        let lines = Lines::recorded::<Self, D>(self)?;
        lines.shape.check_all_given(&dims)?;
        lines.check_unrecorded("unique_consecutive")?;
        let order = (0..lines.data.len()).collect();
        runs("unique_consecutive", lines, order, n)
    }
}

impl<A: AsTensor + ?Sized> Selecting for A {}

/// The type in which the elements of `A` are added up.
type Acc<A> = <<A as AsTensor>::Elem as Num>::Acc;

/// Scatters a tensor along the dims `D` to the indices of the dim `into`. The result has the dims
/// `Y`: the dims `V` of the tensor and the index, without `D`, and with `into`. `work` decides
/// whether elements at the same position are added, or the last one is kept.
#[track_caller]
fn scatter<A, D, J, I, V, Y, O>(
    tensor: A,
    dims: &D,
    into: J,
    index: I,
    work: ScatterWork<A::Elem, O>,
) -> Result<Named<A::Elem, Y>, DimError>
where
    A: Computable<Rank = Rank0>,
    D: DimList,
    J: DimRef,
    I: Indices + AsTensor<Rank = Rank0>,
    V: Dims,
    Y: Dims,
    O: BinaryOp<A::Elem, A::Elem, Out = A::Elem> + Copy,
{
    let (tensor, index) = (tensor.into_named(), index.into_named());
    let mut shape = Shape::new::<V, Rank0>();
    tensor.expr.unify::<V, Rank0>(&mut shape)?;
    index.expr.unify::<V, Rank0>(&mut shape)?;
    shape.finish()?;
    shape.check_all_given(dims)?;
    let info = into.info();
    let places = info.size().ok_or(DimError::Unsized { dim: info.name })?;
    scattered::<V, Y, D, _, _, _, _, _>(tensor, index, &shape, (info.key(), places), work)
}
