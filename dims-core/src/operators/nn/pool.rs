//! Pooling: reductions over windows.

use crate::error::{DimError, list_sizes};
use crate::execute::reduce::{Empty, TensorOf, eval, fused};
use crate::execute::step::{RowBlocks, note_least};
use crate::expr::evaluate::evaluate_tensor;
use crate::expr::remap::Changes;
use crate::expr::{Binary, Expr, Remap};
use crate::operators::window::{
    IntoPerDim, PerDim, Placing, Window, WindowPositions, Windowed, placed_windows, slid,
};
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::storage::Evaluated;
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::brand::DimInfo;
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::role::{DataFeature, Plays};
use crate::types::set::{Dims, DimsOf};
use crate::types::size::Resizable;
use core::marker::PhantomData;
use core::panic::Location;
use kernels::ops;
use kernels::reduce::Reducer;
use kernels::reduce::reducers;
use kernels::scalar::{Analytic, Num, Ordered, Real};
use kernels::step::StepKind;
use kernels::step::pooling::{MaxOfParts, MeanOfParts, PartSizes};
use smallvec::SmallVec;
use twins::panicking_twin;

/// Pooling: reductions over windows or, in the adaptive operations, over parts of dims. The
/// operations run immediately. Windows slide along one to three dims. They are views: the elements
/// are copied only if there is padding, or if [`Window::ceil`] adds a window.
///
/// `size` is the size of the window, and `steps` says how it moves, as in a
/// [convolution](crate::operators::nn::conv::conv). [`max_pool`](Pooling::max_pool) and
/// [`avg_pool_without_padding`](Pooling::avg_pool_without_padding) ignore padding.
/// [`avg_pool`](Pooling::avg_pool) and [`norm_pool`](Pooling::norm_pool) count it as 0. Padding of
/// more than half a window is an error.
///
/// ```text
/// x.max_pool((H, W), 2, &Window::new().stride(2))       halves H and W
/// ```
pub trait Pooling: AsTensor {
    /// The greatest element of each window:
    /// `out[h] = max over kh of x[h * stride + kh * dilation - padding]`.
    #[panicking_twin(
        "so are a window that spans more elements than the padded dim has, padding of more than half a window, and a window of only padding"
    )]
    fn try_max_pool<D: DimsOf<Self::Dims, X> + Plays<DataFeature>, X: Dims>(
        self,
        dims: D,
        size: impl IntoPerDim,
        steps: &Window,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: Ordered>,
    {
        pool(self, &dims, &size.into(), steps, Around::Ignored(Self::Elem::LOWEST), reducers::Max)
    }

    /// The mean of each window, with the padding counted as zeros:
    /// `out[h] = mean over kh of x[h * stride + kh * dilation - padding]`.
    #[panicking_twin(
        "so are a window that spans more elements than the padded dim has, and padding of more than half a window"
    )]
    fn try_avg_pool<D: DimsOf<Self::Dims, X> + Plays<DataFeature>, X: Dims>(
        self,
        dims: D,
        size: impl IntoPerDim,
        steps: &Window,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: Analytic>,
    {
        let (size, tensor) = (size.into(), self.into_named());
        let own = tensor.unified_shape()?;
        let means = pool(tensor, &dims, &size, steps, Around::Counted(Self::Elem::ZERO), reducers::Mean)?;
        of_counted(means, &own, &dims, &size, steps, true)
    }

    /// The mean of each window without its padding, like PyTorch's
    /// `avg_pool2d(count_include_pad=False)`.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct H; }
    /// let x = from_vec(H.of(3), vec![2.0, 4.0, 6.0]);
    /// let steps = Window::new().padding(1);
    /// assert_eq!((&x).avg_pool(H, 2, &steps).order(H), ndarray::array![1.0, 3.0, 5.0, 3.0]);
    /// assert_eq!((&x).avg_pool_without_padding(H, 2, &steps).order(H), ndarray::array![2.0, 3.0, 5.0, 6.0]);
    /// ```
    #[panicking_twin(
        "so are a window that spans more elements than the padded dim has, padding of more than half a window, and a window of only padding"
    )]
    #[doc(alias = "count_include_pad")]
    fn try_avg_pool_without_padding<D: DimsOf<Self::Dims, X> + Plays<DataFeature>, X: Dims>(
        self,
        dims: D,
        size: impl IntoPerDim,
        steps: &Window,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: Analytic>,
    {
        let (size, tensor) = (size.into(), self.into_named());
        let own = tensor.unified_shape()?;
        let means = pool(tensor, &dims, &size, steps, Around::Ignored(Self::Elem::ZERO), reducers::Mean)?;
        of_counted(means, &own, &dims, &size, steps, false)
    }

    /// The Euclidean norm of each window:
    /// `out[h] = sqrt(sum over kh of x[h * stride + kh * dilation - padding]^2)`.
    #[panicking_twin(
        "so are a window that spans more elements than the padded dim has, and padding of more than half a window"
    )]
    #[doc(alias = "lp_pool")]
    fn try_norm_pool<D: DimsOf<Self::Dims, X> + Plays<DataFeature>, X: Dims>(
        self,
        dims: D,
        size: impl IntoPerDim,
        steps: &Window,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: Real>,
    {
        pool(self, &dims, &size.into(), steps, Around::Counted(Self::Elem::ZERO), reducers::Norm)
    }

    /// The means of a given number of parts of each dim. The parts have nearly equal sizes, and may
    /// overlap: `out[i] = mean of x[floor(i * n / size) .. ceil((i + 1) * n / size)]` for `size`
    /// parts of a dim of `n` elements.
    #[panicking_twin("so is pooling a dim of size 0")]
    fn try_adaptive_avg_pool<D: DimsOf<Self::Dims, X> + Plays<DataFeature> + Resizable, X: Dims>(
        self,
        dims: D,
        sizes: impl IntoPerDim,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: Real>,
    {
        let mean = |parts| MeanOfParts { parts, element: PhantomData::<Self::Elem> };
        adaptive(self, &dims, &sizes.into(), mean)
    }

    /// The greatest element of each part, with the same parts as
    /// [`adaptive_avg_pool`](Pooling::adaptive_avg_pool).
    #[panicking_twin("so is pooling a dim of size 0")]
    fn try_adaptive_max_pool<D: DimsOf<Self::Dims, X> + Plays<DataFeature> + Resizable, X: Dims>(
        self,
        dims: D,
        sizes: impl IntoPerDim,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: Ordered>,
    {
        let max = |parts| MaxOfParts { parts, element: PhantomData::<Self::Elem> };
        adaptive(self, &dims, &sizes.into(), max)
    }
}

impl<A: AsTensor + ?Sized> Pooling for A {}

/// The value of the elements in the padding, and whether they count.
enum Around<T> {
    /// Ignored: the reduction never chooses them, or the caller corrects the result. A window must
    /// contain other elements.
    Ignored(T),
    /// Counted like any other elements.
    Counted(T),
}

/// Corrects means that were divided by the size of the whole window. Elements that `ceil` added at
/// the end do not count. Padding counts only with `padding_counts`. `own` is the shape before
/// padding.
#[track_caller]
fn of_counted<T: Analytic, S: Dims, R: Rank>(
    means: Named<T, S, R>,
    own: &Shape,
    dims: &impl DimList,
    size: &PerDim,
    steps: &Window,
    padding_counts: bool,
) -> Result<Named<T, S, R>, DimError> {
    let shape = means.unified_shape()?;
    let mut means = means;
    let mut all: SmallVec<[DimInfo<'static>; 3]> = SmallVec::new();
    dims.each(|dim| all.push(dim.resized()));
    for (at, &dim) in all.iter().enumerate() {
        let axis = position(&shape, dim);
        let len = own.size(axis);
        let (front, behind) = steps.around(at, len, size.at(at));
        let more = steps.rounded_up(at, front + len + behind, behind, size.at(at));
        if more == 0 && (padding_counts || front == 0 && behind == 0) {
            continue;
        }
        let there = if padding_counts { 0..front + len + behind } else { front..front + len };
        let (stride, dilation) = (steps.stride.at(at), steps.dilation.at(at));
        let scale = |window: usize| {
            let inside = |&at: &usize| there.contains(&(window * stride + at * dilation));
            let count = (0..size.at(at)).filter(inside).count();
            // `mean_of` divides, so this is the size of the window divided by the number of
            // elements that count.
            T::mean_of(reducers::times(Num::ONE, size.at(at)), count)
        };
        let scales =
            Evaluated::<T, S, R>::along((0..shape.size(axis)).map(scale).collect(), axis, shape.sizes());
        let scaled = Binary { op: ops::Mul, a: means.expr, b: scales };
        means = Named::from_expr(evaluate_tensor::<S, R, _>(scaled, &shape)?);
    }
    Ok(means)
}

/// Whether one of `positions` windows, `stride` apart, contains none of the `own` elements, which
/// follow `padding` elements of padding.
///
/// Such a window steps over the `own` elements: its first position that is not in the padding
/// before them is already past them. (Each window has such a position, because padding is at most
/// half a window.)
fn misses(own: usize, padding: usize, positions: usize, stride: usize, dilation: usize) -> bool {
    (0..positions).map(|at| at * stride).take_while(|&start| start < padding || own == 0).any(|start| {
        let first = start + padding.saturating_sub(start).div_ceil(dilation) * dilation;
        first >= padding + own
    })
}

/// Whether each window is sure to contain an element that is not padding, whatever the size of the
/// dim. This holds if one of the `len` positions in a window is past the padding at the start in
/// the first window, and before the padding at the end in the last window.
fn always_meet(front: usize, behind: usize, len: usize, dilation: usize) -> bool {
    let first = front.checked_next_multiple_of(dilation);
    let padded = first.and_then(|first| first.checked_add(behind));
    padded.is_some_and(|padded| padded <= (len - 1).saturating_mul(dilation))
}

#[track_caller]
fn pool<A: Computable, Q: Reducer<A::Elem, Out = A::Elem>>(
    tensor: A,
    dims: &impl DimList,
    size: &PerDim,
    steps: &Window,
    around: Around<A::Elem>,
    reducer: Q,
) -> Result<TensorOf<A>, DimError> {
    const { WindowPositions::fit::<A::Dims>() };
    let tensor = tensor.into_named();
    let shape = tensor.unified_shape()?;
    let mut all: SmallVec<[DimInfo<'static>; 3]> = SmallVec::new();
    dims.each(|dim| all.push(dim.resized()));
    if all.len() > WindowPositions::COUNT {
        return Err(DimError::Shape {
            what: format!("windows can slide along up to 3 dims, not {}", all.len()),
        });
    }
    size.check("size", all.len())?;
    steps.check(all.len())?;
    let (fill, counted) = match around {
        Around::Ignored(fill) => (fill, false),
        Around::Counted(fill) => (fill, true),
    };
    // Without elements along the other dims there are no windows.
    let windows_exist = AxisList::in_memory_of::<A::Dims, A::Rank>()
        .as_slice()
        .iter()
        .all(|&axis| shape.size(axis) > 0 || all.iter().any(|&dim| position(&shape, dim) == axis));
    let alone_is_wrong = windows_exist && !counted;
    let mut changes = Changes::new();
    let mut placings: SmallVec<[Placing; 3]> = SmallVec::new();
    for (at, &dim) in all.iter().enumerate() {
        let own = shape.size(position(&shape, dim));
        let (front, behind) = steps.around(at, own, size.at(at));
        let padding = front.max(behind);
        let padded = front.checked_add(behind).and_then(|around| around.checked_add(own));
        let more = padded.map_or(0, |padded| steps.rounded_up(at, padded, behind, size.at(at)));
        let padded = padded.and_then(|padded| padded.checked_add(more));
        let padded = padded.filter(|&len| len <= isize::MAX as usize).ok_or_else(|| DimError::TooLarge {
            dims: format!("dim `{}` = {own} and its padding", dim.name),
        })?;
        // With more than half a window of padding, some windows could hold only padding.
        if padding > size.at(at).saturating_sub(1).saturating_mul(steps.dilation.at(at)).div_ceil(2) {
            let what = format!(
                "windows along dim `{}`: the padding {padding} is more than half of the window's span of {}",
                dim.name,
                steps.span(at, size.at(at))
            );
            return Err(DimError::Shape { what });
        }
        let (stride, dilation) = (steps.stride.at(at), steps.dilation.at(at));
        let along = slid(dim, padded, WindowPositions::key(at), size.at(at), stride, dilation)?;
        let positions = along.terms[0].2.expect("the number of windows is known");
        changes.push((dim.key(), along));
        if padding > 0 || more > 0 {
            if alone_is_wrong && misses(own, front, positions, stride, dilation) {
                let what = format!(
                    "windows along dim `{}` = {own}: a window of {} elements, {dilation} apart, would contain only padding ({padding})",
                    dim.name,
                    size.at(at)
                );
                return Err(DimError::Shape { what });
            }
            // If there are at least `dilation` elements, no window steps over all of them.
            if alone_is_wrong && !always_meet(front, behind.saturating_add(more), size.at(at), dilation) {
                note_least(dilation, own, &|| {
                    format!("dim `{}`, along which padded windows are dilated,", dim.name)
                });
            }
            placings.push(Placing { dim: dim.key(), len: padded, start: front, step: 1 });
        }
    }
    let Some((_, first)) = changes.first_mut() else {
        return eval(tensor);
    };
    for at in all.len()..WindowPositions::COUNT {
        first.terms.push((WindowPositions::key(at), 0, Some(1)));
    }
    if placings.is_empty() {
        return reduced::<A::Dims, A::Rank, _, Q>(
            Remap::<_, A::Dims, A::Rank>::of(tensor.expr, changes),
            reducer,
        );
    }
    let windows = placed_windows::<A::Dims, A::Rank, _>(&tensor.expr, &shape, &placings, fill, &changes)?;
    reduced::<A::Dims, A::Rank, _, Q>(windows, reducer)
}

#[track_caller]
fn reduced<S, R, E, Q>(windows: E, reducer: Q) -> Result<Named<E::Elem, S, R>, DimError>
where
    S: Dims,
    R: Rank,
    E: Expr,
    Q: Reducer<E::Elem, Out = E::Elem>,
{
    let mut shape = Shape::new::<Windowed<S>, R>();
    windows.unify::<Windowed<S>, R>(&mut shape)?;
    shape.finish()?;
    fused::<Windowed<S>, R, _, WindowPositions, S, Q>(&windows, &shape, reducer, Empty::Allowed)
}

#[track_caller]
fn adaptive<A: Computable, K: StepKind + Clone>(
    tensor: A,
    dims: &impl DimList,
    sizes: &PerDim,
    kind: impl Fn(PartSizes) -> K,
) -> Result<TensorOf<A>, DimError> {
    let mut all: SmallVec<[DimInfo<'static>; 3]> = SmallVec::new();
    dims.each(|dim| all.push(dim.resized()));
    sizes.check("size", all.len())?;
    let mut tensor = eval(tensor)?;
    for (at, &dim) in all.iter().enumerate() {
        let len = sizes.at(at);
        dim.unify(len, Some(Location::caller()))?;
        let mut rows = RowBlocks::one_of_several(tensor, dim)?;
        let parts = PartSizes { outer: rows.outer(), size: rows.size(), len, inner: rows.inner() };
        let kind = kind(parts);
        if parts.size == 0 && len > 0 && parts.outer > 0 && parts.inner > 0 {
            let dims = list_sizes(core::iter::once((dim.name, 0)));
            return Err(DimError::EmptyReduction { op: kind.name(), dims });
        }
        rows.check_volume::<A::Dims, A::Rank>(len)?;
        tensor = rows.execute(&kind, len)?;
    }
    tensor.unified_shape()?;
    Ok(tensor)
}
