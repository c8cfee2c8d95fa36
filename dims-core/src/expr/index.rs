//! Computed indices as parts of a view.

use super::{Expr, outer};
use crate::error::DimError;
use crate::plan::shape::Shape;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims};
use kernels::load::gather::{Computed, GatherIndices, IndexedAxis};
use kernels::loops::nest::OperandRows;
use kernels::loops::rows::Rows;
use kernels::loops::stride::AnyStride;
#[cfg(feature = "std")]
use kernels::program::Register;
use kernels::scalar::IndexInt;
#[cfg(feature = "std")]
use kernels::trace::record::Writer;

/// The computed indices of a view, as nested pairs.
pub trait IndexExprs {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    type Kernels<'k>: GatherIndices
    where
        Self: 'k;

    /// Whether there are any indices.
    #[doc(hidden)]
    const ANY: bool;

    /// Whether any index must be computed per element.
    #[doc(hidden)]
    fn any_active(&self) -> bool;

    /// Whether an index that must be computed uses the dim.
    #[doc(hidden)]
    fn computes_with(&self, dim: &DimKey) -> bool;

    /// These indices, borrowed.
    #[doc(hidden)]
    type Lent<'s>: IndexExprs
    where
        Self: 's;

    /// See [`Lent`](IndexExprs::Lent).
    #[doc(hidden)]
    fn lent(&self) -> Self::Lent<'_>;

    /// See [`Expr::unify`].
    #[doc(hidden)]
    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError>;

    /// See [`Expr::rows`].
    #[doc(hidden)]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows);

    /// Like [`Expr::write`], for indices that select among the elements in a register.
    #[doc(hidden)]
    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>, elements: Register);

    /// See [`Expr::kernel`].
    #[doc(hidden)]
    fn kernels<'k>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernels<'k>;
}

impl IndexExprs for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Kernels<'k> = ();
    const ANY: bool = false;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn any_active(&self) -> bool {
        false
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn computes_with(&self, _: &DimKey) -> bool {
        false
    }

    type Lent<'s> = ();

    #[cfg_attr(not(unoptimized), inline(always))]
    fn lent(&self) {}

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, R: Rank>(&self, _: &mut Shape) -> Result<(), DimError> {
        Ok(())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, _: &Shape, _: &mut Rows) {}

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, _: &mut Writer<'w>, _: Register) {}

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernels<'k>(&'k self, _: &mut OperandRows<'k>) {}
}

/// One computed index, and the remaining ones.
#[derive(Clone, Copy)]
pub struct ComputedIndex<E, X> {
    pub(crate) index: E,
    /// False for an affine index that stays within its axis. Such an index is part of the view's
    /// strides.
    pub(crate) active: bool,
    pub(crate) target: IndexedAxis,
    /// The dims that the index depends on.
    pub(crate) dims: &'static [DimKey],
    /// A dim, and its size if no operand gives one: the largest for which the index stays within
    /// its axis.
    pub(crate) open: Option<(DimKey, usize)>,
    pub(crate) rest: X,
}

/// Indices of a view, followed by the indices `X` of a view of that view.
pub trait BeforeIndices<X: IndexExprs>: IndexExprs {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// All indices.
    type Out: IndexExprs;
    #[doc(hidden)]
    fn before(self, rest: X) -> Self::Out;
}

impl<X: IndexExprs> BeforeIndices<X> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = X;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn before(self, rest: X) -> X {
        rest
    }
}

#[diagnostic::do_not_recommend]
impl<E: Expr<Elem: IndexInt>, Y: BeforeIndices<X>, X: IndexExprs> BeforeIndices<X> for ComputedIndex<E, Y> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = ComputedIndex<E, Y::Out>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn before(self, rest: X) -> Self::Out {
        let ComputedIndex { index, active, target, dims, open, rest: own } = self;
        ComputedIndex { index, active, target, dims, open, rest: own.before(rest) }
    }
}

impl<E: Expr, X: IndexExprs> IndexExprs for ComputedIndex<E, X>
where
    E::Elem: IndexInt,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Kernels<'k>
        = Computed<E::Kernel<'k, AnyStride>, X::Kernels<'k>>
    where
        Self: 'k;
    const ANY: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn any_active(&self) -> bool {
        self.active || self.rest.any_active()
    }

    fn computes_with(&self, dim: &DimKey) -> bool {
        self.active && self.dims.iter().any(|own| own.same(dim)) || self.rest.computes_with(dim)
    }

    type Lent<'s>
        = &'s Self
    where
        Self: 's;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn lent(&self) -> &Self {
        self
    }

    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        // An index that is not active is already part of the strides: the view's axes determine the
        // sizes of its dims, and a dim that was bound again is not among the loops.
        if self.active {
            self.index.unify::<U, R>(shape)?;
        }
        if let Some((key, size)) = &self.open {
            shape.propose(outer(shape, key), *size);
        }
        self.rest.unify::<U, R>(shape)
    }

    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        if self.active {
            self.index.rows::<U, R>(shape, rows);
        }
        self.rest.rows::<U, R>(shape, rows);
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>, elements: Register) {
        if self.active {
            let index = self.index.write(writer);
            writer.index(elements, index, self.target);
        }
        self.rest.write(writer, elements);
    }

    fn kernels<'k>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernels<'k> {
        // An index that is not active has no rows, and its kernel is never used.
        let index = if self.active {
            self.index.kernel::<AnyStride>(operands)
        } else {
            self.index.kernel::<AnyStride>(&mut OperandRows::none())
        };
        Computed { index, active: self.active, target: self.target, rest: self.rest.kernels(operands) }
    }
}

#[diagnostic::do_not_recommend]
impl<X: IndexExprs> IndexExprs for &X {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Kernels<'k>
        = X::Kernels<'k>
    where
        Self: 'k;
    const ANY: bool = X::ANY;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn any_active(&self) -> bool {
        (**self).any_active()
    }

    fn computes_with(&self, dim: &DimKey) -> bool {
        (**self).computes_with(dim)
    }

    type Lent<'s>
        = X::Lent<'s>
    where
        Self: 's;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn lent(&self) -> X::Lent<'_> {
        (**self).lent()
    }

    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        (**self).unify::<U, R>(shape)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        (**self).rows::<U, R>(shape, rows);
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>, elements: Register) {
        (**self).write(writer, elements);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernels<'k>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernels<'k> {
        (**self).kernels(operands)
    }
}
