//! Running sums, products and extremes along a dim, and differences of neighbours.

use crate::error::DimError;
use crate::execute::reduce::{TensorOf, along};
use crate::expr::evaluate::evaluate_tensor;
use crate::expr::remap::{Along, term};
use crate::expr::{Binary, Expr, Remap};
use crate::plan::shape::Shape;
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::{AsTensor, Evaluable, checked};
use crate::types::dim::DimRef;
use crate::types::set::{Dims, DimsOf};
use crate::types::size::Resizable;
use core::panic::Location;
use kernels::ops;
use kernels::scalar::{Num, Ordered, Real};
use kernels::scan;
use twins::panicking_twin;

// The bound of the dim and `self` are on each line, not in the macro, because rustc quotes them
// from here.
macro_rules! scans {
    ($($(#[$doc:meta])* $try_name:ident($this:ident, dim) [$($dim:tt)*] [$bound:ident] $work:expr;)*) => {$(
        $(#[$doc])*
        #[panicking_twin]
        fn $try_name<$($dim)*>($this, dim: D) -> Result<TensorOf<Self>, DimError>
        where
            Self: Evaluable<Elem: $bound>,
        {
            along::<_, D, _>(checked($this, &dim)?, $work)
        }
    )*};
}

/// Scans: each element of the result depends on those up to it along a dim.
///
/// They run at once, and the result has the dims of the tensor.
///
/// ```text
/// x           3 1 4 1 5
/// cumsum      3 4 8 9 14
/// cumprod     3 3 12 12 60
/// cummax      3 3 4 4 5
/// diff        -2 3 -3 4
/// ```
pub trait Scans: AsTensor {
    scans! {
        /// The running sum along a dim: `out[i] = x[0] + .. + x[i]`.
        try_cumsum(self, dim) [D: DimRef + DimsOf<Self::Dims, X>, X: Dims] [Num] scan::Cumulate;
        /// The running product along a dim: `out[i] = x[0] * .. * x[i]`.
        try_cumprod(self, dim) [D: DimRef + DimsOf<Self::Dims, X>, X: Dims] [Num] scan::CumulateProduct;
        /// The greatest element so far: `out[i] = max(x[0], .., x[i])`; NaN from the first NaN on.
        try_cummax(self, dim) [D: DimRef + DimsOf<Self::Dims, X>, X: Dims] [Ordered] scan::CumulateBest::<true>;
        /// The least element so far: `out[i] = min(x[0], .., x[i])`; NaN from the first NaN on.
        try_cummin(self, dim) [D: DimRef + DimsOf<Self::Dims, X>, X: Dims] [Ordered] scan::CumulateBest::<false>;
        /// `out[i] = ln(e^x[0] + .. + e^x[i])`, without overflow.
        try_logcumsumexp(self, dim) [D: DimRef + DimsOf<Self::Dims, X>, X: Dims] [Real] scan::CumulateLogSumExp;
    }

    /// The differences of neighbours along a dim, `out[i] = x[i + 1] - x[i]`. The result has one
    /// element less, or none if there are none.
    #[panicking_twin]
    fn try_diff<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Num>,
    {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        let info = dim.info();
        let size = shape.size(position(&shape, info));
        let len = size.saturating_sub(1);
        info.resized().unify(len, Some(Location::caller()))?;
        let from = |offset| {
            let terms = term(info.key(), 1, Some(len));
            Along { offset, inner: Some(size), terms }
        };
        let expr = &tensor.expr;
        let later = Remap::<_, Self::Dims, Self::Rank>::new(expr, info.key(), from(size.min(1)));
        let earlier = Remap::<_, Self::Dims, Self::Rank>::new(expr, info.key(), from(0));
        let differences = Binary { op: ops::Sub, a: later, b: earlier };
        let mut shape = Shape::new::<Self::Dims, Self::Rank>();
        differences.unify::<Self::Dims, Self::Rank>(&mut shape)?;
        shape.finish()?;
        Ok(Named::from_expr(evaluate_tensor::<Self::Dims, Self::Rank, _>(differences, &shape)?))
    }
}

impl<A: AsTensor + ?Sized> Scans for A {}
