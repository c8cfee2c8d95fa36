//! Images of the crate `image` (feature `image`).
//!
//! An image in colours has three axes: lines, columns, and the channels of a pixel. A grey one has two. Images are bound as arrays are,
//! `picture.at((y, x, colour))`; [`into_tensor`](IntoTensor) takes one for good, and [`into_image`](IntoImage::into_image) is the way back. No elements are
//! copied but where a tensor lies in another order.
//!
//! The feature brings no formats of files along: name those that you read in your own dependency, `image = { features = ["png"] }`.

use crate::creation::convert::{AxisDims, CountOf, IntoTensor, contiguous, elements_in};
use crate::error::{DimError, Origin, list_sizes, unwrap};
use crate::laid::LaidWhole;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimList;
use crate::types::rank::{Rank, Rank0, Rank2, Rank3};
use crate::types::set::DimsOf;
use ::image::{ImageBuffer, Luma, LumaA, Pixel, Primitive, Rgb, Rgba};
use alloc::vec::Vec;
use core::panic::Location;

/// Kinds of pixels: those with one channel make images of two axes, the others such of three.
pub trait Channels: Pixel {
    /// How many axes there are.
    type Rank: Rank;
}

macro_rules! channels {
    ($($pixel:ident $rank:ident),*) => {$(
        impl<T: Primitive> Channels for $pixel<T>
        where
            $pixel<T>: Pixel,
        {
            type Rank = $rank;
        }
    )*};
}

channels!(Luma Rank2, LumaA Rank3, Rgb Rank3, Rgba Rank3);

pub(crate) type ImageOf<P> = ImageBuffer<P, Vec<<P as Pixel>::Subpixel>>;

/// Lines, columns, channels.
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
        // A buffer that was handed to `image` can be longer than the picture.
        samples.truncate(sizes.iter().product());
        contiguous(samples, &sizes[..P::Rank::N], false, dims, origin)
    }
}

/// What a tensor with so many dims can become: `GrayImage` and the like of two, `RgbImage`, `RgbaImage` and the like of three.
#[diagnostic::on_unimplemented(
    message = "`{Self}` must have one axis for each dim",
    label = "an image in colours has the axes lines, columns and channels; a grey one, the first two"
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

// One impl for each kind of pixel, and not one for all: rustc then says which trait is missing, and not which types differ.
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
    second_origin: Origin,
) -> Result<ImageOf<P>, DimError> {
    let channels = P::CHANNEL_COUNT.into();
    if let (Some(&first), Some(&dim)) = (sizes.get(2), names.get(2))
        && first != channels
    {
        return Err(DimError::SizeConflict {
            dim,
            first,
            first_origin: None,
            second: channels,
            second_origin,
        });
    }
    let too_large =
        || DimError::TooLarge { dims: list_sizes(names.iter().copied().zip(sizes.iter().copied())) };
    let (Ok(lines), Ok(columns)) = (sizes[0].try_into(), sizes[1].try_into()) else {
        return Err(too_large());
    };
    ImageBuffer::from_raw(columns, lines, data).ok_or_else(too_large)
}

/// Turns tensors into images.
pub trait IntoImage: Computable<Rank = Rank0> {
    /// The tensor as an image. The dims are lines, columns and, unless the image is grey, channels.
    ///
    /// Pixel (`x`, `y`) has in channel `c` the element `tensor[y, x, c]`. If the tensor owns elements that lie so, none is copied; an
    /// expression is computed in that order.
    ///
    /// ```text
    /// let picture = RgbImage::from_pixel(4, 2, Rgb([10, 20, 30]));
    /// dims!(y, x, colour);
    /// let brighter: RgbImage = (picture.at((y, x, colour)) + 5).into_image((y, x, colour));
    /// assert_eq!(brighter, RgbImage::from_pixel(4, 2, Rgb([15, 25, 35])));
    /// ```
    ///
    /// # Panics
    ///
    /// If the last dim has not as many elements as a pixel has channels, if there are more than 2^32 - 1 lines or columns, or if the
    /// tensor is an expression that cannot be computed.
    #[track_caller]
    fn into_image<M, D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(self, dims: D) -> M
    where
        M: Lined<Self::Elem, CountOf<D>>,
    {
        unwrap(self.try_into_image(dims))
    }

    /// As [`into_image`](IntoImage::into_image), but what sizes decide is an error.
    #[track_caller]
    fn try_into_image<M, D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(self, dims: D) -> Result<M, DimError>
    where
        M: Lined<Self::Elem, CountOf<D>>,
    {
        let origin = Some(Location::caller());
        let (data, sizes) = elements_in::<Self, D, X>(self, &dims, false, "into_image")?;
        let names: Vec<&'static str> = <D as DimList>::KEYS.as_slice().iter().map(|key| key.name).collect();
        M::of_lines(data, &sizes, &names, origin)
    }
}

impl<A: Computable<Rank = Rank0>> IntoImage for A {}
