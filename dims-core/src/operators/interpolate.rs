//! Resizing dims by interpolation: `interpolate`.

use crate::error::DimError;
use crate::execute::step::RowBlocks;
use crate::expr::evaluate::evaluate_tensor;
use crate::expr::{Binary, Expr};
use crate::operators::rearranged::{ResizeDim, moved_by};
use crate::operators::window::PerDim;
use crate::storage::Evaluated;
use crate::tensors::named::{Named, position};
use crate::types::brand::DimInfo;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::vec::Vec;
use kernels::ops;
use kernels::scalar::Real;
use num_traits::Float;

/// The method of interpolation, and the positions of the new elements.
///
/// ```text
/// Interpolation::linear()                    on the line through the two nearest elements
/// Interpolation::cubic()                     on a curve computed from the four nearest ones
/// Interpolation::linear().align_corners()    the first and the last element stay where they are
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpolation {
    curve: Curve,
    corners: Corners,
}

/// The curve through the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    Linear,
    Cubic,
}

/// The points of the old and the new dim that coincide at the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Corners {
    /// The outer edges of the first and the last element. The width of an element is the distance
    /// between neighbouring elements.
    Edges,
    /// The centres of the first and the last element.
    Middles,
}

impl Interpolation {
    /// Linear interpolation between the two nearest elements. Along two dims it is PyTorch's
    /// `bilinear`, along three its `trilinear`.
    pub const fn linear() -> Self {
        Interpolation { curve: Curve::Linear, corners: Corners::Edges }
    }

    /// Cubic interpolation of the four nearest elements. The slope at an element is three quarters
    /// of the difference between its neighbours. Along two dims it is PyTorch's `bicubic`.
    ///
    /// (R. Keys, 1981, "Cubic convolution interpolation for digital image processing", with
    /// `a = -0.75`.)
    pub const fn cubic() -> Self {
        Interpolation { curve: Curve::Cubic, corners: Corners::Edges }
    }

    /// Aligns the centres of the first and the last element: `out[i]` is at the position
    /// `i * (n - 1) / (size - 1)`, or at 0 if `size` is 1. By default the outer edges are aligned:
    /// `out[i]` is at `(i + 1/2) * n / size - 1/2`. Here `n` is the old size, and `size` the new
    /// one.
    pub const fn align_corners(self) -> Self {
        Interpolation { corners: Corners::Middles, ..self }
    }

    /// The position of the new element `at` of `len` among `size` old elements.
    fn place(self, at: usize, size: usize, len: usize) -> f64 {
        match self.corners {
            Corners::Middles if len == 1 => 0.0,
            Corners::Middles => at as f64 * ((size - 1) as f64 / (len - 1) as f64),
            Corners::Edges => {
                let place = (at as f64 + 0.5) * (size as f64 / len as f64) - 0.5;
                if self.curve == Curve::Linear { place.max(0.0) } else { place }
            }
        }
    }

    /// The positions and weights of the old elements from which the new element `at` of `len` is
    /// computed. The positions are not yet clamped to `0..size`.
    fn taps(self, at: usize, size: usize, len: usize) -> [(isize, f64); 4] {
        let place = self.place(at, size, len);
        let (first, share) = (Float::floor(place) as isize, place - Float::floor(place));
        match self.curve {
            Curve::Linear => [(first, 1.0 - share), (first + 1, share), (first, 0.0), (first, 0.0)],
            Curve::Cubic => {
                let steps = [share + 1.0, share, 1.0 - share, 2.0 - share];
                let weight = |tap: usize| cubic_weight(steps[tap]);
                [0, 1, 2, 3].map(|tap| (first - 1 + tap as isize, weight(tap)))
            }
        }
    }
}

/// The weight of an element at this distance.
fn cubic_weight(distance: f64) -> f64 {
    const A: f64 = -0.75;
    if distance <= 1.0 {
        ((A + 2.0) * distance - (A + 3.0)) * distance * distance + 1.0
    } else {
        ((A * distance - 5.0 * A) * distance + 8.0 * A) * distance - 4.0 * A
    }
}

/// Fails if there are no elements from which to compute `len` elements.
pub(super) fn check_size(dim: DimInfo<'_>, size: usize, len: usize) -> Result<(), DimError> {
    if size > 0 || len == 0 {
        return Ok(());
    }
    let what = format!("no elements to interpolate along dim `{}` of size 0", dim.name);
    Err(DimError::Shape { what })
}

/// `interpolate`: see [`Rearranging`](crate::operators::shift::Rearranging::interpolate).
pub(super) struct Interpolate {
    pub(super) sizes: PerDim,
    pub(super) by: Interpolation,
}

impl<T: Real> ResizeDim<T> for Interpolate {
    #[track_caller]
    fn resized<S: Dims, R: Rank>(
        &self,
        tensor: &Named<T, S, R>,
        dim: DimInfo<'_>,
        at: usize,
    ) -> Result<Named<T, S, R>, DimError> {
        let len = self.sizes.at(at);
        let shape = tensor.unchecked_shape()?;
        check_size(dim, shape.size(position(&shape, dim)), len)?;
        match self.by.curve {
            Curve::Linear => computed(self.taps(tensor, dim, len, [0, 1])?),
            Curve::Cubic => {
                let [a, b] = [self.taps(tensor, dim, len, [0, 1])?, self.taps(tensor, dim, len, [2, 3])?];
                computed(Binary { op: ops::Add, a, b })
            }
        }
    }
}

impl Interpolate {
    /// The sum of two taps for all elements.
    #[track_caller]
    fn taps<T: Real, S: Dims, R: Rank>(
        &self,
        tensor: &Named<T, S, R>,
        dim: DimInfo<'_>,
        len: usize,
        [first, second]: [usize; 2],
    ) -> Result<impl Expr<Elem = T>, DimError> {
        let (a, b) = (self.tap(tensor, dim, len, first)?, self.tap(tensor, dim, len, second)?);
        Ok(Binary { op: ops::Add, a, b })
    }

    /// One tap for all elements, times its weights.
    #[track_caller]
    fn tap<T: Real, S: Dims, R: Rank>(
        &self,
        tensor: &Named<T, S, R>,
        dim: DimInfo<'_>,
        len: usize,
        tap: usize,
    ) -> Result<impl Expr<Elem = T>, DimError> {
        let blocks = RowBlocks::one_of_several(tensor, dim)?;
        let size = blocks.size();
        let taps = |to: usize| self.by.taps(to, size, len)[tap];
        let from = |to: usize| taps(to).0.clamp(0, size as isize - 1) as usize;
        let moved: Named<T, S, R> = moved_by(blocks, dim, len, &from)?;
        let weight = |to: usize| T::from(taps(to).1).expect("an `f64` can be rounded to any float type");
        let shape = moved.unchecked_shape()?;
        let weights: Vec<T> = (0..len).map(weight).collect();
        let b = Evaluated::<T, S, R>::along(weights, position(&shape, dim), shape.sizes());
        Ok(Binary { op: ops::Mul, a: moved.expr, b })
    }
}

/// Evaluates an expression of the tensors in [`Interpolate::resized`](ResizeDim::resized).
#[track_caller]
fn computed<T: Real, S: Dims, R: Rank, E: Expr<Elem = T>>(expr: E) -> Result<Named<T, S, R>, DimError> {
    let sum: Named<T, S, R, E> = Named::from_expr(expr);
    let shape = sum.unchecked_shape()?;
    Ok(Named::from_expr(evaluate_tensor::<S, R, _>(sum.expr, &shape)?))
}
