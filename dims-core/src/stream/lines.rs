//! Softmax and running sums along an axis, which keep the axis.
//!
//! Vollo's documentation has no rule for them. Softmax can be composed of a reduction with keepdim,
//! a broadcast and a pointwise operation, so the data dimension is kept, and the cost is the
//! reduction's. Running sums follow the same rule.

use super::Stream;
use super::ledger::CostClass;
use crate::error::DimError;
use crate::execute::reduce::along_axes;
use crate::types::brand::Brand;
use crate::types::set::Dims;
use crate::types::set::ordered::AxisOf;
use kernels::loops::axes::Order;
use kernels::scalar::{Element, Num, Real};
use kernels::scan::{self, LineOp};
use twins::panicking_twin;

// The bounds are written with each operation: if a bound does not hold, rustc quotes its line,
// which then shows the operation.
macro_rules! along {
    ($($(#[$doc:meta])* $name:ident $try_name:ident [$($axis:tt)*] [$($bound:tt)*] $work:expr;)*) => {
        impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {$(
            $(#[$doc])*
            ///
            /// Along the data dimension, the cost is compute. Other axes are generally slower. The
            /// data dimension is kept.
            ///
            /// # Panics
            ///
            /// If the result does not fit into memory, or a size given with the dim is not that of
            /// the axis.
            #[panicking_twin]
            pub fn $try_name<$($axis)*>(&self, axis: A) -> Result<Self, DimError>
            where
                T: $($bound)*,
            {
                self.along(stringify!($name), axis, $work)
            }
        )*}
    };
}

along! {
    /// `e^x / s`, where `s` is the sum of `e^x` along the axis, without overflow.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; pub struct Class; }
    /// let x = from_vec((Time.of(2), Class.of(2)), vec![0.0, 0.0, 1000.0, 0.0]).stream((Time, Class), Class);
    /// let y: Stream<f64, (Time, Class), Class> = x.softmax(Class);
    /// assert_eq!(y.to_array(), ndarray::array![[0.5, 0.5], [1.0, 0.0]]);
    /// ```
    softmax try_softmax [A: AxisOf<L>] [Real] scan::Softmax::<false>;
    /// `x - ln(s)`, where `s` is the sum of `e^x` along the axis: the logarithm of the softmax,
    /// without loss of precision where the softmax is small.
    log_softmax try_log_softmax [A: AxisOf<L>] [Real] scan::Softmax::<true>;
    /// The running sum along the axis: `out[i] = x[0] + .. + x[i]`.
    cumsum try_cumsum [A: AxisOf<L>] [Num] scan::Cumulate;
}

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    fn along<A: AxisOf<L>, W: LineOp<T>>(
        &self,
        name: &'static str,
        axis: A,
        work: W,
    ) -> Result<Self, DimError> {
        self.check_given(&axis)?;
        // The dims of the tensor are in the order of the axes.
        let order: Order = (0..self.data.axes().len()).collect();
        let out = along_axes(self.in_memory(), &order, &[Self::position(axis)], work)?;
        let out = Stream::evaluate(out)?;
        let cost = if Self::is_data(axis) { CostClass::Compute } else { CostClass::Slower };
        out.note(cost, || format!("{name}({})", axis.info().name), || vec![self.shape()]);
        Ok(out)
    }
}
