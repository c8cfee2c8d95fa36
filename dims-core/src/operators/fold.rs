//! Sums of overlapping windows: `fold`.

use crate::error::DimError;
use crate::execute::place::added_up;
use crate::operators::window::slid;
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::{Computable, checked};
use crate::types::dim::DimRef;
use crate::types::set::{Dims, DimsOf};
use crate::types::size::Resizable;
use kernels::scalar::Num;
use twins::panicking_twin;

/// `fold`, the transpose of `unfold`.
pub trait Folding: Computable<Elem: Num> {
    /// Adds up overlapping windows: `out[i * stride + w * dilation] += x[i, w]`, starting from
    /// zeros. Like PyTorch's `fold`, along one dim. `dim` is `i`, and `window` is `w`, which the
    /// result does not have. `size` is the size of `dim` in the result:
    /// [`unfold`](crate::operators::shift::Rearranging::unfold) of a tensor with this size must
    /// give the same number of windows.
    ///
    /// ```
    /// # use typed_dims::prelude::*;
    /// dims!(i, w);
    /// let x = array![[1, 2, 3], [10, 20, 30]];
    /// assert_eq!(x.at((i, w)).fold(i, w, 5, 2, 1).order(i), array![1, 2, 13, 20, 30]);
    /// ```
    #[panicking_twin("so is a number of windows that does not fit `size`")]
    fn try_fold<D: DimRef + DimsOf<X, Y> + Resizable, W: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims>(
        self,
        dim: D,
        window: W,
        size: usize,
        stride: usize,
        dilation: usize,
    ) -> Result<Named<Self::Elem, X, Self::Rank>, DimError> {
        let tensor = checked(self, &(dim, window))?;
        let (shape, dim, window) = (tensor.unified_shape()?, dim.info(), window.info());
        let [windows, len] = [dim, window].map(|dim| shape.size(position(&shape, dim)));
        let along = slid(dim, size, window.key(), len, stride, dilation)?;
        if let (.., Some(fit)) = along.terms[0]
            && fit != windows
        {
            let what = format!(
                "windows along dim `{}`: there are {windows}, but {fit} slide over {size} elements",
                dim.name
            );
            return Err(DimError::Shape { what });
        }
        added_up("fold", tensor, [(dim.key(), along)])
    }
}
impl<A: Computable<Elem: Num>> Folding for A {}
