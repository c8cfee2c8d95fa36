//! Access to the elements of other crates' arrays: see [`foreign`](crate::foreign).

use crate::storage::source::{Axes, Source, SourceMut};
use kernels::memory::axes::Axis;

#[cfg(feature = "image")]
mod image {
    use super::*;
    use crate::foreign::image::{Channels, ImageOf, sizes};
    use crate::plan::shape::volume;
    use crate::types::rank::Rank;

    /// The axes of an image: rows, columns and, unless the rank is 2, channels.
    ///
    /// # Panics
    ///
    /// If there are fewer samples than the axes reach. (Unsafe code cannot rely on
    /// `Pixel::CHANNEL_COUNT`, because `Pixel` is a safe trait.)
    fn axes<P: Channels>(image: &ImageOf<P>) -> Axes {
        let [lines, columns, channels] = sizes(image);
        let reached = volume([lines, columns, channels].into_iter(), 1);
        assert!(
            reached.is_some_and(|len| len <= image.as_raw().len()),
            "an image has a sample for each channel"
        );
        let all = [
            Axis::new(lines, (columns * channels) as isize),
            Axis::new(columns, channels as isize),
            Axis::new(channels, 1),
        ];
        Axes::from_slice(&all[..P::Rank::N])
    }

    // SAFETY: `axes` asserts that the vector has at least rows x columns x channels elements. With
    // fewer axes, a subset of these is reached.
    unsafe impl<P: Channels> Source for ImageOf<P> {
        type Elem = P::Subpixel;
        type Rank = P::Rank;
        type Sizes = ();

        fn raw(&self) -> (*const P::Subpixel, Axes) {
            (self.as_raw().as_ptr(), axes(self))
        }
    }

    // SAFETY: `axes` asserts that the vector has at least rows x columns x channels elements, and
    // each position of the axes is a distinct one of them. The image is borrowed exclusively.
    #[diagnostic::do_not_recommend]
    unsafe impl<P: Channels> SourceMut for ImageOf<P> {
        fn raw_mut(&mut self) -> (*mut P::Subpixel, Axes) {
            let axes = axes(self);
            let samples: &mut [P::Subpixel] = self;
            (samples.as_mut_ptr(), axes)
        }
    }
}

#[cfg(feature = "mdarray")]
mod mdarray {
    use super::*;
    use crate::foreign::mdarray::MdShape;
    use ::mdarray::{Array, Dense, Layout, Shape, Slice, Strided, View, ViewMut};

    fn axes<T, S: Shape, L: Layout>(slice: &Slice<T, S, L>) -> Axes {
        (0..slice.rank()).map(|axis| Axis::new(slice.dim(axis), slice.stride(axis))).collect()
    }

    macro_rules! sources {
        ($(($($params:tt)*) $array:ty;)*) => {$(
            // SAFETY: mdarray guarantees for its own layouts and sizes that the strides lead from the
            // pointer to an element for each position of the shape. Its traits `Layout` and `Dim` are
            // safe, so other types that implement them cannot be trusted, and are no sources.
            unsafe impl<$($params)*> Source for $array {
                type Elem = T;
                type Rank = S::Rank;
                type Sizes = ();

                fn raw(&self) -> (*const T, Axes) {
                    (self.as_ptr(), axes(self))
                }
            }
        )*};
    }

    sources! {
        (T, S: MdShape) Array<T, S>;
        (T, S: MdShape) View<'_, T, S, Dense>;
        (T, S: MdShape) View<'_, T, S, Strided>;
        (T, S: MdShape) ViewMut<'_, T, S, Dense>;
        (T, S: MdShape) ViewMut<'_, T, S, Strided>;
    }

    macro_rules! mutable_sources {
        ($(($($params:tt)*) $array:ty;)*) => {$(
            // SAFETY: mdarray guarantees for its own layouts and sizes that each position of the
            // shape is a distinct element. The array is borrowed exclusively.
            #[diagnostic::do_not_recommend]
            unsafe impl<$($params)*> SourceMut for $array {
                fn raw_mut(&mut self) -> (*mut T, Axes) {
                    let axes = axes(self);
                    (self.as_mut_ptr(), axes)
                }
            }
        )*};
    }

    mutable_sources! {
        (T, S: MdShape) Array<T, S>;
        (T, S: MdShape) ViewMut<'_, T, S, Dense>;
        (T, S: MdShape) ViewMut<'_, T, S, Strided>;
    }
}

#[cfg(feature = "nalgebra")]
mod nalgebra {
    use super::*;
    use crate::foreign::nalgebra::Columns;
    use crate::types::rank::Rank;
    use ::nalgebra::{ArrayStorage, Const, Dim, Matrix, RawStorage, RawStorageMut, VecStorage};

    fn axes<C: Columns>(shape: (usize, usize), strides: (usize, usize)) -> Axes {
        let both = [Axis::new(shape.0, strides.0 as isize), Axis::new(shape.1, strides.1 as isize)];
        Axes::from_slice(&both[..C::Rank::N])
    }

    // SAFETY: `RawStorage` requires that its strides lead from its pointer to an element for each
    // position of the shape. With one axis there is one column, so the rows are all elements.
    unsafe impl<T, R: Dim, C: Columns, S: RawStorage<T, R, C>> Source for Matrix<T, R, C, S> {
        type Elem = T;
        type Rank = C::Rank;
        type Sizes = ();

        fn raw(&self) -> (*const T, Axes) {
            (self.data.ptr(), axes::<C>(self.shape(), self.strides()))
        }
    }

    macro_rules! owning {
        ($(($($params:tt)*) $rows:ty, $columns:ty, $storage:ty;)*) => {$(
            // SAFETY: the storage owns its column-major elements, so each position of the shape is
            // a distinct element. With one axis there is one column.
            #[diagnostic::do_not_recommend]
            unsafe impl<T, $($params)*> SourceMut for Matrix<T, $rows, $columns, $storage>
            where
                $columns: Columns,
                $storage: RawStorageMut<T, $rows, $columns>,
            {
                fn raw_mut(&mut self) -> (*mut T, Axes) {
                    let (shape, strides) = (self.shape(), self.strides());
                    (self.data.ptr_mut(), axes::<$columns>(shape, strides))
                }
            }
        )*};
    }

    owning! {
        (R: Dim, C: Dim) R, C, VecStorage<T, R, C>;
        (const R: usize, const C: usize) Const<R>, Const<C>, ArrayStorage<T, R, C>;
    }
}
