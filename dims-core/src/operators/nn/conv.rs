//! Convolutions, and their transposes.

use crate::creation::convert::CountOf;
use crate::error::DimError;
use crate::execute::reduce::sum;
use crate::execute::step::note_least;
use crate::expr::remap::{Along, Changes, term};
use crate::expr::{Binary, Expr, Remap};
use crate::operators::window::{Placing, Window, placed_windows, slid};
use crate::plan::shape::Shape;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::{DimList, JoinedKeys};
use crate::types::rank::Rank0;
use crate::types::role::{AnyChannel, DataFeature, FilterSpatial, Plays};
use crate::types::set::distinct::{Canonical, SortOnce};
use crate::types::set::remove::Within;
use crate::types::set::{Dims, DimsOf, DimsOfBoth, FirstWith, NoDim, NotYetBound, Union};
use kernels::ops;
use kernels::scalar::Num;
use smallvec::SmallVec;
use twins::panicking_twin;

/// Dims for the positions in a window that slides along the dims `P` of a tensor with the dims `S`:
/// one for each dim of `P`, and none that `S` has.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the dims of windows along `{P}`",
    label = "expected one dim for each dim that the window slides along"
)]
pub trait WindowOver<P, S>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<K, P, S> WindowOver<P, S> for K
where
    K: DimList<Brands: SortOnce>,
    P: DimList,
    CountOf<P>: AsMany<CountOf<K>>,
    S: Dims,
    Canonical<K::Brands>: FirstWith<Within<S::List>>,
    NoDim<FirstShared<K, S>>: NotYetBound<FirstShared<K, S>, S>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The condition that a window has one dim for each dim that it slides along.
#[diagnostic::on_unimplemented(
    message = "a window needs one dim for each dim that it slides along",
    label = "expected as many dims as the window slides along"
)]
pub trait AsMany<N> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<N> AsMany<N> for N {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The first of the dims `K` that the set `S` has, or [`Nothing`](crate::types::set::Nothing).
type FirstShared<K, S> = <Canonical<<K as DimList>::Brands> as FirstWith<Within<<S as Dims>::List>>>::Found;

/// A dim along which a window slides, and the dim of the positions in the window, with their sizes.
struct Slide<'a> {
    dim: crate::types::brand::DimInfo<'a>,
    size: usize,
    window: crate::types::brand::DimInfo<'a>,
    len: usize,
}

fn slides<'a, P: DimList + 'a, K: DimList + 'a>(
    dims: &'a P,
    windows: &'a K,
    tensor: &Shape,
    weight: &Shape,
    steps: &Window,
) -> Result<SmallVec<[Slide<'static>; 3]>, DimError> {
    weight.check_all_given(windows)?;
    let size = |key| tensor.size(tensor.position(&key).expect("the dim is one of the tensor's"));
    let len = |key| weight.size(weight.position(&key).expect("the dim is one of the weight's"));
    // Drop the size that a local dim has recorded: here the tensors' sizes are used.
    let plain = |dim: crate::types::brand::DimInfo<'_>| dim.resized();
    let mut all = SmallVec::new();
    let mut inside: SmallVec<[crate::types::brand::DimInfo<'static>; 3]> = SmallVec::new();
    windows.each(|dim| inside.push(plain(dim)));
    let mut inside = inside.into_iter();
    dims.each(|dim| {
        let window = inside.next().expect("one window for each dim");
        all.push(Slide { dim: plain(dim), size: size(dim.key()), window, len: len(window.key()) });
    });
    steps.check(all.len())?;
    Ok(all)
}

// Each function is on one line with its bounds, because rustc quotes the function and the unmet
// bound from here.
macro_rules! convolutions {
    ($($(#[$attribute:meta])* $try_name:ident $run:ident $bounds:tt;)*) => {$(
        convolutions!(@one [$(#[$attribute])*] $try_name $run $bounds);
    )*};
    (
        @one [$(#[$attribute:meta])*] $try_name:ident $run:ident [$($bounds:tt)*]
    ) => {
        $(#[$attribute])*
        #[allow(clippy::too_many_arguments)]
        pub fn $try_name<$($bounds)*>(
            x: A,
            weight: W,
            channels: C,
            dims: P,
            window: K,
            steps: &Window,
        ) -> Result<Named<A::Elem, X>, DimError> {
            $run::<A, W, C, P, K, U, X>(x, weight, &channels, &dims, &window, steps)
        }
    };
}

convolutions! {
    /// A convolution (a cross-correlation, as usual in neural networks) along any number of dims:
    /// one for `conv1d`, two for `conv2d`, three for `conv3d`.
    ///
    /// ```text
    /// out[.., h, w] = sum over channels, kh, kw of
    ///                 x[.., channels, h * stride + kh * dilation - padding, w * ..]
    ///                 * weight[.., channels, kh, kw]
    /// ```
    ///
    /// `dims` are the dims `(h, w)` that the window slides along. `window` are the weight's dims
    /// `(kh, kw)` for the positions in the window. `channels` are the dims to sum over, which the
    /// tensor and the weight both have. All other dims are as in any product: dims of the weight
    /// alone are output channels, dims of the tensor alone are batches, and dims of both are
    /// *groups*. For a grouped convolution, split the channels into a group dim and a channel dim.
    /// For a depthwise convolution, `channels` is `()`.
    ///
    /// ```text
    /// conv(&x, &weight, C, (H, W), (Kh, Kw), &Window::new().stride(2).padding(1))
    /// ```
    ///
    /// [`Convolve`] is a builder with the same arguments.
    #[doc(alias = "conv1d")]
    #[doc(alias = "conv2d")]
    #[doc(alias = "conv3d")]
    #[panicking_twin("so is a window that spans more elements than the padded dim has")]
    try_conv convolve [A: Computable<Elem: Num, Rank = Rank0, Dims: Union<W::Dims, Out = U>>, W: Computable<Elem = A::Elem, Rank = Rank0>, C: DimsOfBoth<A::Dims, W::Dims, U, V> + Plays<AnyChannel>, P: DimsOf<A::Dims, S> + Plays<DataFeature>, K: WindowOver<P, A::Dims> + DimsOf<V, X> + Plays<FilterSpatial>, S: Dims, U: Dims, V: Dims, X: Dims];

    /// The transpose of a convolution: every element is spread over a window, and overlapping
    /// windows are added.
    ///
    /// ```text
    /// out[.., h * stride + kh * dilation - padding] += x[.., channels, h] * weight[.., channels, kh]
    /// ```
    ///
    /// The arguments are those of [`conv`]; `channels` are summed over. Along a dim of `n`
    /// elements, with a window of `k`, the result has
    /// `(n - 1) * stride + (k - 1) * dilation + 1 - 2 * padding + output_padding` elements if the
    /// padding is the same on both sides.
    #[panicking_twin("so are a stride, dilation or window of 0, `padding_same`, a dim of size 0, and padding that leaves nothing")]
    try_conv_transpose spread [A: Computable<Elem: Num, Rank = Rank0, Dims: Union<W::Dims, Out = U>>, W: Computable<Elem = A::Elem, Rank = Rank0>, C: DimsOfBoth<A::Dims, W::Dims, U, V> + Plays<AnyChannel>, P: DimsOf<A::Dims, S> + Plays<DataFeature>, K: WindowOver<P, A::Dims> + DimsOf<V, X> + Plays<FilterSpatial>, S: Dims, U: Dims, V: Dims, X: Dims];
}

/// A builder for convolutions. By default the window moves by steps of 1, without padding.
///
/// ```
/// use typed_dims::operators::nn::conv::Convolve;
/// use typed_dims::prelude::*;
///
/// dims! { struct C; struct O; struct H; struct W; struct Kh; struct Kw; }
/// let x = rand::<f32, _>((C.of(3), H.of(8), W.of(8)), 1);
/// let weight = rand::<f32, _>((O.of(4), C.of(3), Kh.of(3), Kw.of(3)), 2);
/// let same = Convolve::new(C, (H, W), (Kh, Kw)).steps(Window::new().padding_same());
/// assert_eq!(same.clone().apply(&x, &weight).dims(), [("O", 4), ("H", 8), ("W", 8)]);
/// assert_eq!(same.steps(Window::new().stride(2)).transpose(&x, &weight).size(H), 17);
/// ```
#[derive(Clone, Debug)]
pub struct Convolve<C, P, K> {
    channels: C,
    dims: P,
    window: K,
    steps: Window,
}

impl<C: DimList, P: DimList, K: DimList> Convolve<C, P, K> {
    /// A convolution that sums over `channels`, and whose window has the dims `window` along
    /// `dims`: see [`conv`].
    pub fn new(channels: C, dims: P, window: K) -> Self {
        Convolve { channels, dims, window, steps: Window::new() }
    }

    /// Sets how the window moves: its stride, padding, dilation and output padding.
    pub fn steps(self, steps: Window) -> Self {
        Convolve { steps, ..self }
    }
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident($run:ident) -> $out:ty;)*) => {
        impl<C, P, K> Convolve<C, P, K> {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name<A, W, S, U, V, X>(self, x: A, weight: W) -> $out
            where
                A: Computable<Elem: Num, Rank = Rank0, Dims: Union<W::Dims, Out = U>>,
                W: Computable<Elem = A::Elem, Rank = Rank0>,
                C: DimsOfBoth<A::Dims, W::Dims, U, V> + Plays<AnyChannel>,
                P: DimsOf<A::Dims, S> + Plays<DataFeature>,
                K: WindowOver<P, A::Dims> + DimsOf<V, X> + Plays<FilterSpatial>,
                S: Dims,
                U: Dims,
                V: Dims,
                X: Dims,
            {
                $run(x, weight, self.channels, self.dims, self.window, &self.steps)
            }
        )*}
    };
}

settings! {
    /// Convolves `x`: see [`conv`].
    ///
    /// # Panics
    ///
    /// If [`try_conv`] returns an error.
    apply(conv) -> Named<A::Elem, X>;
    /// Like [`apply`](Convolve::apply), but sizes that do not match are an error.
    ///
    /// # Errors
    ///
    /// The errors of [`try_conv`].
    try_apply(try_conv) -> Result<Named<A::Elem, X>, DimError>;
    /// Applies the transposed convolution: see [`conv_transpose`].
    ///
    /// # Panics
    ///
    /// If [`try_conv_transpose`] returns an error.
    transpose(conv_transpose) -> Named<A::Elem, X>;
    /// Like [`transpose`](Convolve::transpose), but sizes that do not match are an error.
    ///
    /// # Errors
    ///
    /// The errors of [`try_conv_transpose`].
    try_transpose(try_conv_transpose) -> Result<Named<A::Elem, X>, DimError>;
}

#[track_caller]
fn convolve<A, W, C, P, K, U, X>(
    x: A,
    weight: W,
    channels: &C,
    dims: &P,
    window: &K,
    steps: &Window,
) -> Result<Named<A::Elem, X>, DimError>
where
    A: Computable<Elem: Num, Rank = Rank0>,
    W: Computable<Elem = A::Elem, Rank = Rank0>,
    C: DimList,
    P: DimList,
    K: DimList,
    U: Dims,
    X: Dims,
{
    let (x, weight) = (x.into_named(), weight.into_named());
    let (shape, own) = (x.unified_shape()?, weight.unified_shape()?);
    shape.check_all_given(channels)?;
    let slides = slides(dims, window, &shape, &own, steps)?;
    let mut changes = Changes::new();
    let mut placings: SmallVec<[Placing; 3]> = SmallVec::new();
    for (at, slide) in slides.iter().enumerate() {
        let (front, behind) = steps.around(at, slide.size, slide.len);
        let padded = widened(slide, front, behind, 1)?;
        let (stride, dilation) = (steps.stride.at(at), steps.dilation.at(at));
        let along = slid(slide.dim, padded, slide.window.key(), slide.len, stride, dilation)?;
        changes.push((slide.dim.key(), along));
        if front > 0 || behind > 0 {
            placings.push(Placing { dim: slide.dim.key(), len: padded, start: front, step: 1 });
        }
    }
    if placings.is_empty() {
        let windows = Remap::<_, A::Dims, Rank0>::of(x.expr, changes);
        return multiplied::<_, _, JoinedKeys<C, K>, U, X>(windows, weight.expr);
    }
    let windows = placed_windows::<A::Dims, Rank0, _>(&x.expr, &shape, &placings, Num::ZERO, &changes)?;
    multiplied::<_, _, JoinedKeys<C, K>, U, X>(windows, weight.expr)
}

/// The size of a dim with `step - 1` zeros between neighbors and padding on both sides.
fn widened(slide: &Slide<'_>, before: usize, after: usize, step: usize) -> Result<usize, DimError> {
    let spread =
        slide.size.saturating_sub(1).checked_mul(step).and_then(|len| len.checked_add(slide.size.min(1)));
    let len = spread.and_then(|len| len.checked_add(before)).and_then(|len| len.checked_add(after));
    len.filter(|&len| len <= isize::MAX as usize).ok_or_else(|| DimError::TooLarge {
        dims: format!("dim `{}` = {} and its padding", slide.dim.name, slide.size),
    })
}

/// Windows times the weight, summed over `D`. The product has the dims `U`, the sum the dims `X`.
#[track_caller]
fn multiplied<E, F, D, U, X>(windows: E, weight: F) -> Result<Named<E::Elem, X>, DimError>
where
    E: Expr<Elem: Num>,
    F: Expr<Elem = E::Elem>,
    D: DimList,
    U: Dims,
    X: Dims,
{
    let product = Binary { op: ops::Mul, a: windows, b: weight };
    sum::<Named<E::Elem, U, Rank0, Binary<ops::Mul, E, F>>, D, X>(&product)
}

#[track_caller]
fn spread<A, W, C, P, K, U, X>(
    x: A,
    weight: W,
    channels: &C,
    dims: &P,
    window: &K,
    steps: &Window,
) -> Result<Named<A::Elem, X>, DimError>
where
    A: Computable<Elem: Num, Rank = Rank0>,
    W: Computable<Elem = A::Elem, Rank = Rank0>,
    C: DimList,
    P: DimList,
    K: DimList,
    U: Dims,
    X: Dims,
{
    // Put zeros between and around the elements, and convolve them with the reversed window.
    let (x, weight) = (x.into_named(), weight.into_named());
    let (shape, own) = (x.unified_shape()?, weight.unified_shape()?);
    shape.check_all_given(channels)?;
    let slides = slides(dims, window, &shape, &own, steps)?;
    let (mut changes, mut backwards, mut placings) =
        (Changes::new(), Changes::new(), SmallVec::<[Placing; 3]>::new());
    for (at, slide) in slides.iter().enumerate() {
        let (stride, dilation) = (steps.stride.at(at), steps.dilation.at(at));
        let fail = |why: &str| {
            Err(DimError::Shape {
                what: format!("a transposed convolution along dim `{}`: {why}", slide.dim.name),
            })
        };
        let Some([front, behind, more]) = steps.left_out(at) else {
            return fail("`padding_same` does not determine the size of the result");
        };
        if stride == 0 || dilation == 0 || slide.len == 0 {
            return fail("stride, dilation and window must be at least 1");
        }
        if slide.size == 0 {
            return fail("it has no elements");
        }
        let Some(span) = (slide.len - 1).checked_mul(dilation) else {
            return fail("the window's span is too large");
        };
        // On each side there is a margin of `span` zeros, whatever the padding. The padding then
        // removes positions of the window.
        let spread = widened(slide, span, span.saturating_add(more), stride)?;
        let mut along = slid(
            crate::types::brand::DimInfo { fixed: None, given: None, ..slide.dim },
            spread,
            slide.window.key(),
            slide.len,
            1,
            dilation,
        )?;
        let positions = along.terms[0].2.expect("the number of windows is known");
        let left = front.checked_add(behind).and_then(|around| positions.checked_sub(around));
        let Some(left) = left.filter(|&left| left > 0) else {
            return fail("the padding leaves no elements");
        };
        note_least(positions - left + 1, positions, &|| {
            format!("a transposed convolution along dim `{}`, before the padding is removed,", slide.dim.name)
        });
        slide.dim.unify(left, None)?;
        along.offset = front;
        along.terms[0].2 = Some(left);
        changes.push((slide.dim.key(), along));
        placings.push(Placing { dim: slide.dim.key(), len: spread, start: span, step: stride });
        let terms = term(slide.window.key(), -1, Some(slide.len));
        backwards.push((slide.window.key(), Along { offset: slide.len - 1, inner: Some(slide.len), terms }));
    }
    let windows = placed_windows::<A::Dims, Rank0, _>(&x.expr, &shape, &placings, Num::ZERO, &changes)?;
    let weight = Remap::<_, W::Dims, Rank0>::of(weight.expr, backwards);
    multiplied::<_, _, JoinedKeys<C, K>, U, X>(windows, weight)
}
