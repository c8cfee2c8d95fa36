//! Moves and repeats elements along a dim: `flip`, `roll`, `shift`, `pad`, `repeat`, `interpolate`,
//! `unfold`, `fold`.

use crate::error::DimError;
use crate::execute::place::added_up;
use crate::execute::reduce::TensorOf;
use crate::execute::step::{RowBlocks, note_least};
use crate::expr::Remap;
use crate::expr::remap::{Along, Changes, term};
use crate::operators::interpolate::{Interpolate, Interpolation, check_size};
use crate::operators::rearranged::{ResizeDim, moved, moved_by, one_by_one, repeated};
use crate::operators::restructure::Remapped;
use crate::operators::window::{IntoPerDim, PerDim, Placing, placed, slid};
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::{AsTensor, Computable, checked};
use crate::types::brand::DimInfo;
use crate::types::dim::DimRef;
use crate::types::rank::Rank;
use crate::types::set::rename::NotIn;
use crate::types::set::{Dims, DimsOf, Union};
use crate::types::size::Resizable;
use core::panic::Location;
use kernels::memory::runs::RowRun;
use kernels::scalar::{Element, Num, Real};
use smallvec::SmallVec;
use twins::panicking_twin;

/// The elements of the padding around a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pad<T> {
    /// A constant.
    Constant(T),
    /// The elements mirrored about the first and the last one, which are not repeated:
    /// `c b | a b c | b a`. (A single element is repeated.)
    Reflect,
    /// The first and the last element: `a a | a b c | c c`.
    Replicate,
    /// The elements from the other end: `b c | a b c | a b`.
    Circular,
}

impl<T> Pad<T> {
    /// The source of an element of a padded line: the position, among the `size` elements that are
    /// not padding, that it is copied from. `at` is relative to the first of these elements.
    fn source(&self, at: isize, size: usize) -> usize {
        let last = size as isize - 1;
        match self {
            Pad::Constant(_) => unreachable!("a constant has no source"),
            Pad::Replicate => at.clamp(0, last) as usize,
            Pad::Circular => at.rem_euclid(size as isize) as usize,
            Pad::Reflect if last == 0 => 0,
            Pad::Reflect => {
                let at = at.rem_euclid(2 * last);
                at.min(2 * last - at) as usize
            }
        }
    }

    /// The sources of a padded line, if there are three runs of them: the padding at the start, the
    /// other elements, and the padding at the end. Also returns the least `size` for which there
    /// are three runs.
    fn runs(&self, size: usize, before: usize, after: usize) -> Option<([RowRun; 3], usize)> {
        let most = before.max(after);
        let (start, end, least) = match self {
            Pad::Replicate => (RowRun::new(0, before, 0), RowRun::new(size.saturating_sub(1), after, 0), 0),
            Pad::Circular if most <= size => {
                (RowRun::new(size - before, before, 1), RowRun::new(0, after, 1), most)
            }
            Pad::Reflect if most < size => {
                let end = if after == 0 { 0 } else { size - 2 };
                (RowRun::new(before, before, -1), RowRun::new(end, after, -1), most + 1)
            }
            _ => return None,
        };
        Some(([start, RowRun::new(0, size, 1), end], least))
    }
}

/// The size of a padded dim.
fn padded(dim: DimInfo<'_>, size: usize, before: usize, after: usize) -> Result<usize, DimError> {
    let len = size.checked_add(before).and_then(|size| size.checked_add(after));
    len.filter(|&len| len <= isize::MAX as usize)
        .ok_or_else(|| DimError::TooLarge { dims: format!("dim `{}` and its padding", dim.name) })
}

/// [`pad`](Rearranging::pad) without a constant.
struct PadWithElements<T> {
    before: usize,
    after: usize,
    pad: Pad<T>,
}

impl<T: Element> ResizeDim<T> for PadWithElements<T> {
    #[track_caller]
    fn resized<S: Dims, R: Rank>(
        &self,
        tensor: &Named<T, S, R>,
        dim: DimInfo<'_>,
        _: usize,
    ) -> Result<Named<T, S, R>, DimError> {
        let &PadWithElements { before, after, ref pad } = self;
        let blocks = RowBlocks::one_of_several(tensor, dim)?;
        let size = blocks.size();
        if size == 0 && (before > 0 || after > 0) {
            let what = format!("no elements to pad dim `{}` of size 0 with", dim.name);
            return Err(DimError::Shape { what });
        }
        let len = padded(dim, size, before, after)?;
        let Some((runs, least)) = pad.runs(size, before, after) else {
            return moved_by(blocks, dim, len, &|to| pad.source(to as isize - before as isize, size));
        };
        note_least(least, size, &|| format!("dim `{}`, which is padded with elements,", dim.name));
        moved(blocks, dim, len, &runs, T::default())
    }
}

/// [`interpolate_nearest`](Rearranging::interpolate_nearest) to these sizes.
struct InterpolateNearest(PerDim);

impl<T: Element> ResizeDim<T> for InterpolateNearest {
    #[track_caller]
    fn resized<S: Dims, R: Rank>(
        &self,
        tensor: &Named<T, S, R>,
        dim: DimInfo<'_>,
        at: usize,
    ) -> Result<Named<T, S, R>, DimError> {
        let (blocks, len) = (RowBlocks::one_of_several(tensor, dim)?, self.0.at(at));
        let size = blocks.size();
        check_size(dim, size, len)?;
        moved_by(blocks, dim, len, &|to| (to as u128 * size as u128 / len as u128) as usize)
    }
}

/// The result of [`unfold`](Rearranging::unfold).
pub type Unfolded<A, W> = Remapped<A, <<A as AsTensor>::Dims as Union<(<W as DimRef>::Brand,)>>::Out>;

/// Operations that move elements along dims. `flip` and `unfold` are views; the others run
/// immediately.
///
/// If an operation changes the size of a dim, as `pad` does, the dim must not have a static size.
/// First rename it to a dim without one, then rename the result to a dim of the new size.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Two = 2; struct Any; struct Four = 4; }
/// let x = from_vec(Two, vec![1, 2]);
/// let twice: Tensor<i32, (Four,)> = x.rename(Two, Any).repeat(Any, 2).rename(Any, Four).eval();
/// assert_eq!(twice.order(Four), ndarray::array![1, 2, 1, 2]);
/// ```
pub trait Rearranging: AsTensor {
    /// Reverses the elements along dims: `out[i] = x[n - 1 - i]`.
    ///
    /// # Panics
    ///
    /// If sizes do not match.
    #[panicking_twin]
    fn try_flip<D: DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dims: D,
    ) -> Result<Remapped<Self, Self::Dims>, DimError>
    where
        Self: Computable,
    {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        shape.check_all_given(&dims)?;
        let mut changes = Changes::new();
        dims.each(|dim| {
            let size = shape.size(position(&shape, dim));
            let terms = term(dim.key(), -1, Some(size));
            changes.push((dim.key(), Along { offset: size.saturating_sub(1), inner: Some(size), terms }));
        });
        Ok(Named::from_expr(Remap::of(tensor.expr, changes)))
    }

    /// Rotates the elements along a dim: `out[i] = x[(i - by) mod n]`.
    #[panicking_twin]
    fn try_roll<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dim: D,
        by: isize,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable,
    {
        let dim = dim.info();
        let blocks = RowBlocks::of(self, dim)?;
        let size = blocks.size();
        let back = by.checked_rem_euclid(size as isize).unwrap_or(0) as usize;
        // (A recorded program moves runs of `|by|` and `size - |by|` rows, so it refuses sizes
        // smaller than `|by|`.)
        if by.unsigned_abs() <= size {
            note_least(by.unsigned_abs(), size, &|| format!("dim `{}`, which is rotated,", dim.name));
        }
        let runs = [RowRun::new(size - back, back, 1), RowRun::new(0, size - back, 1)];
        moved(blocks, dim, size, &runs, Default::default())
    }

    /// Moves the elements along a dim: `out[i] = x[i - by]`, or `fill` where `i - by` is out of
    /// range.
    #[panicking_twin]
    fn try_shift<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dim: D,
        by: isize,
        fill: Self::Elem,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable,
    {
        let dim = dim.info();
        let blocks = RowBlocks::of(self, dim)?;
        let size = blocks.size();
        let filled = by.unsigned_abs().min(size);
        // If all elements are filled at the recorded sizes, a program fills all elements, which is
        // right only for sizes up to `by`.
        if by.unsigned_abs() <= size {
            note_least(filled, size, &|| format!("dim `{}`, which is shifted,", dim.name));
        } else {
            let all = by.unsigned_abs().min(isize::MAX as usize);
            note_least(size, all, &|| format!("the part of dim `{}` that a shift fills", dim.name));
        }
        let runs = if by >= 0 {
            [RowRun::filled(filled), RowRun::new(0, size - filled, 1)]
        } else {
            [RowRun::new(filled, size - filled, 1), RowRun::filled(filled)]
        };
        moved(blocks, dim, size, &runs, fill)
    }

    /// Adds `before` elements at the start and `after` at the end of each dim. [`Pad`] lists the
    /// kinds of padding.
    #[panicking_twin("so is padding a dim of size 0 without a constant")]
    fn try_pad<D: DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dims: D,
        before: usize,
        after: usize,
        pad: Pad<Self::Elem>,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable,
    {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        if let Pad::Constant(fill) = pad {
            let mut placings: SmallVec<[Placing; 4]> = SmallVec::new();
            let mut failed = None;
            dims.each(|dim| {
                let size = shape.size(position(&shape, dim));
                let len = padded(dim, size, before, after);
                match len.and_then(|len| dim.resized().unify(len, None).map(|()| len)) {
                    Ok(len) => placings.push(Placing { dim: dim.key(), len, start: before, step: 1 }),
                    Err(error) => {
                        failed.get_or_insert(error);
                    }
                }
            });
            return match failed {
                Some(error) => Err(error),
                None => placed::<Self::Dims, Self::Rank, _>(&tensor.expr, &shape, &placings, fill),
            };
        }
        one_by_one(tensor, &dims, &PadWithElements { before, after, pad })
    }

    /// Repeats the tensor `times` times along a dim: `out[i] = x[i mod n]`, like NumPy's `tile`.
    #[panicking_twin]
    fn try_repeat<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        times: usize,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable,
    {
        repeated(self, dim.info(), times, false)
    }

    /// Repeats each element `times` times along a dim: `out[i] = x[i / times]`, like NumPy's
    /// `repeat`.
    #[panicking_twin]
    fn try_repeat_interleave<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        times: usize,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable,
    {
        repeated(self, dim.info(), times, true)
    }

    /// Resizes dims from `n` to `size` elements, taking the nearest element at or before each
    /// position: `out[i] = x[floor(i * n / size)]`. `sizes` is one number for all dims, or one for
    /// each.
    #[panicking_twin("so is enlarging a dim of size 0")]
    fn try_interpolate_nearest<D: DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dims: D,
        sizes: impl IntoPerDim,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable,
    {
        let sizes = sizes.into();
        sizes.check("size", D::KEYS.as_slice().len())?;
        one_by_one(self, &dims, &InterpolateNearest(sizes))
    }

    /// Resizes dims, computing each element from those near its position, as [`Interpolation`]
    /// describes. `sizes` is one number for all dims, or one for each.
    ///
    /// Several dims are interpolated one after the other. Positions beyond an end use the element
    /// at that end. At the position of an element, the result is this element, even if its
    /// neighbors are infinite or NaN.
    /// [`interpolate_nearest`](Rearranging::interpolate_nearest) copies single elements instead.
    ///
    /// ```
    /// use typed_dims::operators::interpolate::Interpolation;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct H; }
    /// let x = from_vec(H.of(2), vec![0.0, 4.0]);
    /// let edges = (&x).interpolate(H, 4, Interpolation::linear());
    /// assert_eq!(edges.order(H), ndarray::array![0.0, 1.0, 3.0, 4.0]);
    /// let corners = (&x).interpolate(H, 5, Interpolation::linear().align_corners());
    /// assert_eq!(corners.order(H), ndarray::array![0.0, 1.0, 2.0, 3.0, 4.0]);
    /// ```
    #[panicking_twin("so is enlarging a dim of size 0")]
    fn try_interpolate<D: DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dims: D,
        sizes: impl IntoPerDim,
        by: Interpolation,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: Real>,
    {
        let sizes = sizes.into();
        sizes.check("size", D::KEYS.as_slice().len())?;
        one_by_one(self, &dims, &Interpolate { sizes, by })
    }

    /// Windows along a dim: `out[i, w] = x[i * stride + w * dilation]`. `dim` is `i`, and `window`
    /// is `w`, a new dim that must have a size. In the result, the size of `dim` is the number of
    /// windows.
    ///
    /// ```text
    /// x.unfold(Time, Lag.of(3), 1, 1).mean(Lag)       the moving average of 3 elements
    /// ```
    #[panicking_twin("so are windows that are longer than the dim")]
    fn try_unfold<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims, W: NotIn<Self::Dims>>(
        self,
        dim: D,
        window: W,
        stride: usize,
        dilation: usize,
    ) -> Result<Unfolded<Self, W>, DimError>
    where
        Self: Computable,
        Self::Dims: Union<(W::Brand,)>,
    {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        let (info, window) = (dim.info(), window.info());
        let len = window.size().ok_or(DimError::Unsized { dim: window.name })?;
        let size = shape.size(position(&shape, info));
        let along = slid(info, size, window.key(), len, stride, dilation)?;
        Ok(Named::from_expr(Remap::new(tensor.expr, info.key(), along)))
    }

    /// Adds up windows where they overlap: `out[i * stride + w * dilation] += x[i, w]`, starting
    /// from zeros. `dim` is `i`, and `window` is `w`, which is removed. In the result, `dim` has
    /// the given `size`. The tensor must have as many windows along `dim` as
    /// [`unfold`](Rearranging::unfold) of `size` elements yields. Like PyTorch's `fold`, along one
    /// dim.
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
    ) -> Result<Named<Self::Elem, X, Self::Rank>, DimError>
    where
        Self: Computable<Elem: Num>,
    {
        let tensor = checked(self, &window)?;
        let (shape, dim, window) = (tensor.unified_shape()?, dim.info(), window.info());
        dim.resized().unify(size, Some(Location::caller()))?;
        let [windows, len] = [dim, window].map(|dim| shape.size(position(&shape, dim)));
        let along = slid(dim.without_size(), size, window.key(), len, stride, dilation)?;
        if let (.., Some(fit)) = along.terms[0]
            && fit != windows
        {
            let what = format!(
                "windows along dim `{}`: there are {windows}, but {fit} fit into {size} elements",
                dim.name
            );
            return Err(DimError::Shape { what });
        }
        added_up("fold", tensor, [(dim.key(), along)])
    }
}

impl<A: AsTensor + ?Sized> Rearranging for A {}
