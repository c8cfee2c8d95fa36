//! Resizing dims by interpolation: `interpolate`.

use crate::error::DimError;
use crate::execute::step::RowBlocks;
use crate::expr::evaluate::evaluate_tensor;
use crate::expr::{Binary, Expr, Scalar, Select};
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

/// The points at which the ends of the old and the new dim are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Corners {
    /// The outer edges of the first and the last element. The width of an element is the distance
    /// between neighboring elements.
    Edges,
    /// The centers of the first and the last element.
    Middles,
}

impl Interpolation {
    /// Linear interpolation between the two nearest elements. Along two dims it is PyTorch's
    /// `bilinear`, along three its `trilinear`.
    pub const fn linear() -> Self {
        Interpolation { curve: Curve::Linear, corners: Corners::Edges }
    }

    /// Cubic interpolation of the four nearest elements. The slope at an element is three quarters
    /// of the difference between its neighbors. Along two dims it is PyTorch's `bicubic`.
    ///
    /// (R. Keys, 1981, "Cubic convolution interpolation for digital image processing", with
    /// `a = -0.75`.)
    pub const fn cubic() -> Self {
        Interpolation { curve: Curve::Cubic, corners: Corners::Edges }
    }

    /// Aligns the centers of the first and the last element: `out[i]` is at the position
    /// `i * (n - 1) / (size - 1)`, or at 0 if `size` is 1. By default the outer edges are aligned:
    /// `out[i]` is at `(i + 1/2) * n / size - 1/2`. Here `n` is the old size, and `size` the new
    /// one.
    pub const fn align_corners(self) -> Self {
        Interpolation { corners: Corners::Middles, ..self }
    }

    /// The position of the new element `at` of `len` among `size` old elements. Whole positions are
    /// exact.
    fn place(self, at: usize, size: usize, len: usize) -> f64 {
        match self.corners {
            Corners::Middles if len == 1 => 0.0,
            Corners::Middles => at as f64 * (size - 1) as f64 / (len - 1) as f64,
            Corners::Edges => {
                let (at, size, len) = (at as f64, size as f64, len as f64);
                let place = ((2.0 * at + 1.0) * size - len) / (2.0 * len);
                if self.curve == Curve::Linear { place.max(0.0) } else { place }
            }
        }
    }

    /// A tap: the position and the weight of one of the old elements from which the new element
    /// `at` of `len` is computed. `tap` is the number of the tap: below 2 for a line, below 4 for a
    /// curve.
    fn tap<T: Real>(self, tap: usize, at: usize, size: usize, len: usize) -> (usize, T) {
        let place = self.place(at, size, len);
        let (first, share) = (Float::floor(place) as isize, place - Float::floor(place));
        match self.curve {
            Curve::Linear => distinct([(first, 1.0 - share), (first + 1, share)], size)[tap],
            Curve::Cubic => {
                let steps = [share + 1.0, share, 1.0 - share, 2.0 - share];
                let taps = [0, 1, 2, 3].map(|tap| (first - 1 + tap as isize, cubic_weight(steps[tap])));
                distinct(taps, size)[tap]
            }
        }
    }
}

/// Clamps the positions to `0..size`. If several taps are then at one element, the first tap gets
/// the sum of their weights, and the others get 0.
fn distinct<T: Real, const N: usize>(taps: [(isize, f64); N], size: usize) -> [(usize, T); N] {
    let mut taps = taps.map(|(at, weight)| (at.clamp(0, size as isize - 1) as usize, weight));
    for tap in 1..N {
        if let Some(first) = (0..tap).find(|&first| taps[first].0 == taps[tap].0) {
            taps[first].1 += taps[tap].1;
            taps[tap].1 = 0.0;
        }
    }
    taps.map(|(at, weight)| (at, T::from(weight).expect("an `f64` can be rounded to any float type")))
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
    /// For each new element, the sum of the taps number `first` and `second`.
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

    /// For each new element, the old element at the tap number `tap`, times the weight of the tap.
    /// The product is 0 where the weight is 0, even if the old element is infinite or NaN.
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
        let tap = |to: usize| self.by.tap::<T>(tap, to, size, len);
        let moved: Named<T, S, R> = moved_by(blocks, dim, len, &|to| tap(to).0)?;
        let shape = moved.unchecked_shape()?;
        let weights: Vec<T> = (0..len).map(|to| tap(to).1).collect();
        let is_left_out: Vec<bool> = weights.iter().map(|&weight| weight == T::ZERO).collect();
        let axis = position(&shape, dim);
        let b = Evaluated::<T, S, R>::along(weights, axis, shape.sizes());
        let cond = Evaluated::<bool, S, R>::along(is_left_out, axis, shape.sizes());
        Ok(Select { cond, a: Scalar(T::ZERO), b: Binary { op: ops::Mul, a: moved.expr, b } })
    }
}

/// Evaluates the sum of taps that [`Interpolate::resized`](ResizeDim::resized) has built.
#[track_caller]
fn computed<T: Real, S: Dims, R: Rank, E: Expr<Elem = T>>(expr: E) -> Result<Named<T, S, R>, DimError> {
    let sum: Named<T, S, R, E> = Named::from_expr(expr);
    let shape = sum.unchecked_shape()?;
    Ok(Named::from_expr(evaluate_tensor::<S, R, _>(sum.expr, &shape)?))
}
