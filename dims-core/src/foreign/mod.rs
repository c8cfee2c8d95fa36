//! Conversions between tensors and the arrays, matrices, images and tensors of other crates.

#[cfg(feature = "candle")]
pub mod candle;
#[cfg(feature = "image")]
pub mod image;
#[cfg(feature = "mdarray")]
pub mod mdarray;
#[cfg(feature = "nalgebra")]
pub mod nalgebra;
#[cfg(any(feature = "image", feature = "mdarray", feature = "nalgebra"))]
#[allow(unsafe_code)]
mod source;

#[cfg(any(feature = "image", feature = "mdarray", feature = "nalgebra"))]
use crate::creation::convert::CountOf;
use crate::error::DimError;
use crate::laid::LaidWhole;
use crate::tensors::tensor::Computable;
use crate::types::rank::Rank0;
use crate::types::set::DimsOf;
use twins::panicking_twin;

/// Converts tensors to the arrays, matrices, images and tensors of other crates.
pub trait IntoForeign: Computable<Rank = Rank0> {
    /// Converts to a candle tensor on the CPU, with the dims as its axes in this order.
    ///
    /// If the tensor owns elements in this order, and no clone shares them, they are not copied. An
    /// expression is computed in this order.
    ///
    /// ```text
    /// let scores: candle_core::Tensor = (&x * 2.0).into_candle((Feat, Batch));
    /// ```
    ///
    /// # Panics
    ///
    /// If a size given in `dims` is not the tensor's, if the tensor is an expression that cannot be
    /// computed, or if a gradient or a recorded function traces it.
    #[cfg(feature = "candle")]
    #[panicking_twin("so is a traced tensor")]
    fn try_into_candle<D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(
        self,
        dims: D,
    ) -> Result<candle_core::Tensor, DimError>
    where
        Self::Elem: candle_core::WithDType,
    {
        candle::tensor_of(self, &dims)
    }

    /// Converts the tensor to an image. The dims are rows, columns and, unless pixels have a single
    /// channel, channels.
    ///
    /// The channel `c` of pixel (`x`, `y`) is `tensor[y, x, c]`. If the tensor owns elements in
    /// this order, and no clone shares them, they are not copied. An expression is computed in this
    /// order.
    ///
    /// ```text
    /// let picture = RgbImage::from_pixel(4, 2, Rgb([10, 20, 30]));
    /// dims!(y, x, color);
    /// let brighter: RgbImage = (picture.at((y, x, color)) + 5).into_image((y, x, color));
    /// assert_eq!(brighter, RgbImage::from_pixel(4, 2, Rgb([15, 25, 35])));
    /// ```
    ///
    /// # Panics
    ///
    /// If the size of the third dim is not the number of channels, if there are more than 2^32 - 1
    /// rows or columns, if a size given in `dims` is not the tensor's, if the tensor is an
    /// expression that cannot be computed, or if a gradient or a recorded function traces it.
    #[cfg(feature = "image")]
    #[panicking_twin("so is a traced tensor")]
    fn try_into_image<M, D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(self, dims: D) -> Result<M, DimError>
    where
        M: image::Lined<Self::Elem, CountOf<D>>,
    {
        image::image_from(self, &dims)
    }

    /// Converts to an array of mdarray with the dims as its axes, in this order:
    /// `m[[i, j]] = x[i, j]`.
    ///
    /// If the tensor owns elements in this order, and no clone shares them, they are not copied. An
    /// expression is computed in this order. The array's sizes may be static; if all are, the array
    /// stores its elements inline, and they are copied.
    ///
    /// ```text
    /// dims!(i, j);
    /// let m: DArray<f64, 2> = (darray![[1.0, 2.0], [3.0, 4.0]].at((i, j)) * 10.0).into_mdarray((j, i));
    /// assert_eq!(m, darray![[10.0, 30.0], [20.0, 40.0]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If a static size of the array or a size given in `dims` is not the tensor's, if the tensor
    /// is an expression that cannot be computed, or if a gradient or a recorded function traces it.
    #[cfg(feature = "mdarray")]
    #[panicking_twin("so is a traced tensor")]
    fn try_into_mdarray<S: mdarray::ShapeOf<CountOf<D>>, D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(
        self,
        dims: D,
    ) -> Result<::mdarray::Array<Self::Elem, S>, DimError> {
        mdarray::array_of(self, &dims)
    }

    /// Converts to a matrix of nalgebra whose rows and columns are the two dims, or to a vector
    /// along one dim.
    ///
    /// `m[(i, j)] = x[i, j]`. If the tensor owns column-major elements, for example from a matrix,
    /// and no clone shares them, they are not copied, except into an `SMatrix` or `SVector`. An
    /// expression is computed in this order.
    ///
    /// ```text
    /// dims!(i = 2, j = 3);
    /// let m: DMatrix<f64> = (dmatrix![1.0, 2.0, 3.0; 4.0, 5.0, 6.0].at((i, j)) * 10.0).into_matrix((i, j));
    /// assert_eq!(m, dmatrix![10.0, 20.0, 30.0; 40.0, 50.0, 60.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If a static size of the matrix or a size given in `dims` is not the tensor's, if the tensor
    /// is an expression that cannot be computed, or if a gradient or a recorded function traces it.
    #[cfg(feature = "nalgebra")]
    #[panicking_twin("so is a traced tensor")]
    fn try_into_matrix<M, D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(self, dims: D) -> Result<M, DimError>
    where
        M: nalgebra::Columnar<Self::Elem, CountOf<D>>,
    {
        nalgebra::matrix_of(self, &dims)
    }
}

impl<A: Computable<Rank = Rank0>> IntoForeign for A {}
