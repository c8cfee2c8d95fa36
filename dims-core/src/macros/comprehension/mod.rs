//! Functions that `tensor!`, `einsum!` and `gather!` call in addition to the public interface.

use crate::bind::binding::Binding;
use crate::bind::computed::bind_affine;
use crate::bind::source::{Axes, Source, check_rank};
use crate::error::DimError;
use crate::expr::{Binary, Expr, Operand, Scalar, Select, Unary};
use crate::macros::pattern::reductions::Truth;
use crate::operators::elementwise::{BinaryOut, Selected, UnaryOut};
use crate::storage::axes::AxisBlock;
use crate::storage::leaf::Leaf;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, NamedOf};
use crate::types::brand::Brand;
use crate::types::dim::Dim;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::{Dims, Union};
use core::ops::{Range, RangeInclusive};
use core::panic::Location;
use kernels::memory::axes::Axis;
use kernels::ops::{Holds, LeftOperand, Pair};
use kernels::scalar::{Element, IndexInt};
use twins::panicking_twin;

mod conditions;

pub use crate::error::unwrap;
pub use conditions::*;

/// The traits whose methods macros call. They are imported as `_`, so they cannot shadow a name of
/// the user.
pub mod methods {
    pub use super::SizedOperands as _;
    pub use crate::bind::At as _;
    pub use crate::execute::order::OrderExt as _;
    pub use crate::execute::reduce::Reductions as _;
    pub use crate::operators::elementwise::Elementwise as _;
}

/// A captured integer combined with a loop variable, as an index.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with a loop variable, which is an integer",
    label = "expected an integer",
    note = "cast the loop variable first: `i as {Self}`"
)]
pub trait ToIndex {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The nearest `isize`.
    fn to_index(self) -> isize;
}

#[diagnostic::do_not_recommend]
impl<T: IndexInt> ToIndex for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[cfg_attr(not(unoptimized), inline(always))]
    fn to_index(self) -> isize {
        self.to_isize()
    }
}

/// A captured integer as an index.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn index<T: ToIndex>(value: T) -> isize {
    value.to_index()
}

/// One position of an axis. Like a computed index, it is checked when an element is read.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn position<T: IndexInt>(value: T) -> Named<isize, (), Rank0, Scalar<isize>> {
    Named::from_expr(Scalar(value.to_isize()))
}

/// Broadcasts a tensor along a dim that it may lack.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn along<A, D>(a: A, dim: D) -> BinaryOut<LeftOperand, A, D, isize>
where
    A: AsTensor<Elem: Element, Dims: Union<D::Dims>>,
    D: Operand<isize>,
{
    Named::from_expr(Binary { op: LeftOperand, a: a.into_named().expr, b: dim.into_expr() })
}

/// The elements of two tensors at the same position.
pub type ElementPairs<A, B> = Named<
    (<A as AsTensor>::Elem, <B as AsTensor>::Elem),
    <<A as AsTensor>::Dims as Union<<B as AsTensor>::Dims>>::Out,
    <<A as AsTensor>::Rank as Rank>::Max<<B as AsTensor>::Rank>,
    Binary<Pair, <A as AsTensor>::Expr, <B as AsTensor>::Expr>,
>;

/// Pairs of elements, for closures that take several elements.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn pairs<A, B>(a: A, b: B) -> ElementPairs<A, B>
where
    A: AsTensor<Dims: Union<B::Dims>>,
    B: AsTensor,
{
    Named::from_expr(Binary { op: Pair, a: a.into_named().expr, b: b.into_named().expr })
}

/// The tensor where a condition holds, and an arbitrary value elsewhere. Elements are only read
/// where it holds.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn masked<C, A>(cond: C, a: A) -> Selected<A::Elem, C, NamedOf<A>, A::Elem>
where
    C: AsTensor<Elem = bool, Dims: Union<A::Dims, Out: Union<()>>>,
    A: AsTensor<Elem: Element>,
{
    let other = Scalar(A::Elem::default());
    Named::from_expr(Select { cond: cond.into_named().expr, a: a.into_named().expr, b: other })
}

/// A condition. Its elements must be `bool`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn condition<A: AsTensor<Elem: Truth>>(a: A) -> UnaryOut<Holds, A> {
    Named::from_expr(Unary { op: Holds, a: a.into_named().expr })
}

/// A range of indices.
#[diagnostic::on_unimplemented(
    message = "a loop cannot run over `{Self}`",
    label = "expected a range of integers, like `0..n`"
)]
pub trait LoopSize {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The first index and the number of indices.
    fn extent(self) -> (isize, usize);
}

#[diagnostic::do_not_recommend]
impl<T: ToIndex> LoopSize for Range<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn extent(self) -> (isize, usize) {
        let (start, end) = (self.start.to_index(), self.end.to_index());
        (start, if start < end { end.abs_diff(start) } else { 0 })
    }
}

#[diagnostic::do_not_recommend]
impl<T: ToIndex> LoopSize for RangeInclusive<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn extent(self) -> (isize, usize) {
        let (start, end) = self.into_inner();
        let (start, end) = (start.to_index(), end.to_index());
        (start, if start <= end { end.abs_diff(start).saturating_add(1) } else { 0 })
    }
}

/// The first index of a range and the number of indices.
#[inline]
pub fn extent<R: LoopSize>(range: R) -> (isize, usize) {
    range.extent()
}

/// Operands whose axes give loop variables their sizes.
pub trait SizedOperands {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The unbound axes.
    fn open_axes(&self) -> Axes;

    /// Gives the loop variable `dim` the size of axis `at`. The operand must have `rank` unbound
    /// axes. (The method is not called `size`, because tensors have a method of this name.)
    #[panicking_twin]
    fn try_size_loop<B: Brand>(&self, at: usize, rank: usize, dim: &Dim<B>) -> Result<(), DimError> {
        let axes = self.open_axes();
        check_rank(axes.len(), rank)?;
        dim.try_set_size(axes[at].size)
    }

    /// If `index` is affine and has exactly one loop variable without a size, gives this variable
    /// the greatest size for which `index` is within axis `at`.
    #[panicking_twin]
    fn try_fit<S: Dims, E: Expr>(
        &self,
        at: usize,
        rank: usize,
        index: Named<isize, S, Rank0, E>,
    ) -> Result<(), DimError> {
        let axes = self.open_axes();
        check_rank(axes.len(), rank)?;
        if let Some(affine) = index.expr.affine() {
            let origin = Some(Location::caller());
            let mut named = S::Axes::filled(Axis::default());
            let mut binding = Binding::new::<S>(Axes::new(), 0, origin, &mut named, &mut []);
            bind_affine(&affine, axes[at], at, &mut binding)?;
        }
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<A: Source + ?Sized> SizedOperands for A {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn open_axes(&self) -> Axes {
        self.raw().1
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, S: Dims, R: Rank, E: Leaf<T, S, R>> SizedOperands for Named<T, S, R, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn open_axes(&self) -> Axes {
        Axes::from_slice(self.expr.leaf().2.as_slice())
    }
}
