//! Images from the crate `image` (feature `image`).
//!
//! An image has three axes: rows, columns, and the channels of a pixel. A gray image without an
//! alpha channel has only rows and columns. Bind images like arrays, `picture.at((y, x, color))`.
//! [`into_tensor`](IntoTensor) converts an owned image, and
//! [`into_image`](super::IntoForeign::into_image) converts back. The elements of an image are not
//! copied. Those of a tensor are copied only if they are in another order, if a clone shares them,
//! or if the tensor is a view.
//!
//! The feature enables no file formats. Enable those that you need in your own dependency,
//! `image = { features = ["png"] }`.

use crate::creation::convert::{AxisDims, CountOf, IntoTensor, contiguous, elements_in};
use crate::error::{DimError, Origin, OriginSuffix, list_sizes};
use crate::laid::LaidWhole;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimList;
use crate::types::rank::{Rank, Rank0, Rank2, Rank3};
use crate::types::set::DimsOf;
use ::image::{ImageBuffer, Luma, LumaA, Pixel, Primitive, Rgb, Rgba};
use alloc::vec::Vec;
use core::panic::Location;

/// Kinds of pixels. Images with one channel have two axes, and all others have three.
pub trait Channels: Pixel {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The number of axes.
    type Rank: Rank;
}

macro_rules! channels {
    ($($pixel:ident $rank:ident),*) => {$(
        impl<T: Primitive> Channels for $pixel<T>
        where
            $pixel<T>: Pixel,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Rank = $rank;
        }
    )*};
}

channels!(Luma Rank2, LumaA Rank3, Rgb Rank3, Rgba Rank3);

pub(crate) type ImageOf<P> = ImageBuffer<P, Vec<<P as Pixel>::Subpixel>>;

/// The numbers of rows, columns and channels.
pub(crate) fn sizes<P: Channels>(image: &ImageOf<P>) -> [usize; 3] {
    [image.height() as usize, image.width() as usize, P::CHANNEL_COUNT.into()]
}

impl<P: Channels> IntoTensor for ImageOf<P> {
    type Elem = P::Subpixel;
    type Rank = P::Rank;

    #[track_caller]
    fn try_into_tensor<L: AxisDims<P::Rank>>(self, dims: L) -> Result<Named<P::Subpixel, L::Set>, DimError> {
        let origin = Some(Location::caller());
        let sizes = sizes(&self);
        let mut samples = self.into_raw();
        // A buffer passed to `image` can be longer than the picture.
        samples.truncate(sizes.iter().product());
        contiguous(samples, &sizes[..P::Rank::N], false, dims, origin)
    }
}

/// Images that a tensor can be converted to: with two dims `GrayImage` and similar types, with
/// three dims `RgbImage`, `RgbaImage` and similar types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an image with one axis for each dim and elements of type `{T}`",
    label = "an image with several channels has the axes rows, columns and channels; an image with one channel has only rows and columns"
)]
pub trait Lined<T, N>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    fn of_lines(
        data: Vec<T>,
        sizes: &[usize],
        names: &[&'static str],
        origin: Origin,
    ) -> Result<Self, DimError>;
}

// There is one impl for each kind of pixel, so that rustc reports the missing trait and not
// mismatched types.
macro_rules! lined {
    ($($pixel:ident $rank:ident),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Primitive> Lined<T, $rank> for ImageBuffer<$pixel<T>, Vec<T>>
        where
            $pixel<T>: Pixel<Subpixel = T>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            fn of_lines(data: Vec<T>, sizes: &[usize], names: &[&'static str], origin: Origin) -> Result<Self, DimError> {
                image_of(data, sizes, names, origin)
            }
        }
    )*};
}

lined!(Luma Rank2, LumaA Rank3, Rgb Rank3, Rgba Rank3);

fn image_of<P: Pixel>(
    data: Vec<P::Subpixel>,
    sizes: &[usize],
    names: &[&'static str],
    origin: Origin,
) -> Result<ImageOf<P>, DimError> {
    let channels = usize::from(P::CHANNEL_COUNT);
    if let (Some(&first), Some(&dim)) = (sizes.get(2), names.get(2))
        && first != channels
    {
        let (pixels, at) = (P::COLOR_MODEL, OriginSuffix(origin));
        let what = format!("dim `{dim}` has size {first}, but {pixels} pixels have {channels} channels{at}");
        return Err(DimError::Shape { what });
    }
    let too_large =
        || DimError::TooLarge { dims: list_sizes(names.iter().copied().zip(sizes.iter().copied())) };
    let (Ok(lines), Ok(columns)) = (sizes[0].try_into(), sizes[1].try_into()) else {
        return Err(too_large());
    };
    ImageBuffer::from_raw(columns, lines, data).ok_or_else(too_large)
}

/// See [`into_image`](super::IntoForeign::into_image).
#[track_caller]
pub(super) fn image_from<A, M, D, X>(tensor: A, dims: &D) -> Result<M, DimError>
where
    A: Computable<Rank = Rank0>,
    D: DimsOf<A::Dims, X>,
    X: LaidWhole<D>,
    M: Lined<A::Elem, CountOf<D>>,
{
    let origin = Some(Location::caller());
    let (data, sizes) = elements_in::<A, D, X>(tensor, dims, false, "into_image")?;
    let names: Vec<&'static str> = <D as DimList>::KEYS.as_slice().iter().map(|key| key.name).collect();
    M::of_lines(data, &sizes, &names, origin)
}
