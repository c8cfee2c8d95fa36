//! Computed indices as parts of a view.

use super::Expr;
use crate::error::DimError;
use crate::kernel::gather::{Computed, Indices, Target};
use crate::kernel::strided::AnyStride;
use crate::plan::nest::Operands;
use crate::plan::rows::Rows;
use crate::plan::shape::Shape;
use crate::rank::Rank;
use crate::scalar::IndexInt;
use crate::set::Dims;

/// The computed indices of a view, as nested pairs.
pub trait IndexExprs {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    type Kernels<'k>: Indices
    where
        Self: 'k;

    /// Whether there are any.
    #[doc(hidden)]
    const ANY: bool;

    /// Whether any of them has to be computed per element.
    #[doc(hidden)]
    fn any_active(&self) -> bool;

    /// As [`Expr::meet`].
    #[doc(hidden)]
    fn meet<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError>;

    /// As [`Expr::rows`].
    #[doc(hidden)]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows);

    /// As [`Expr::kernel`].
    #[doc(hidden)]
    fn kernels<'k>(&'k self, operands: &mut Operands<'k>) -> Self::Kernels<'k>;
}

impl IndexExprs for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Kernels<'k> = ();
    const ANY: bool = false;

    #[inline(always)]
    fn any_active(&self) -> bool {
        false
    }

    #[inline(always)]
    fn meet<U: Dims, R: Rank>(&self, _: &mut Shape) -> Result<(), DimError> {
        Ok(())
    }

    #[inline(always)]
    fn rows<U: Dims, R: Rank>(&self, _: &Shape, _: &mut Rows) {}

    #[inline(always)]
    fn kernels<'k>(&'k self, _: &mut Operands<'k>) {}
}

/// One computed index, and the others.
#[derive(Clone)]
pub struct ComputedIndex<E, X> {
    pub(crate) index: E,
    /// Not for affine indices that stay within their axis: those are strides of the view already.
    pub(crate) active: bool,
    pub(crate) target: Target,
    pub(crate) rest: X,
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

    #[inline(always)]
    fn any_active(&self) -> bool {
        self.active || self.rest.any_active()
    }

    fn meet<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        self.index.meet::<U, R>(shape)?;
        self.rest.meet::<U, R>(shape)
    }

    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        if self.active {
            self.index.rows::<U, R>(shape, rows);
        }
        self.rest.rows::<U, R>(shape, rows);
    }

    fn kernels<'k>(&'k self, operands: &mut Operands<'k>) -> Self::Kernels<'k> {
        // An index that is not active has no rows to take; its kernel is never asked.
        let index = if self.active {
            self.index.kernel::<AnyStride>(operands)
        } else {
            self.index.kernel::<AnyStride>(&mut Operands::none())
        };
        Computed { index, active: self.active, target: self.target, rest: self.rest.kernels(operands) }
    }
}
