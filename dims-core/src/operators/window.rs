//! Windows that slide along dims, for convolutions and pooling.

use crate::error::DimError;
use crate::execute::place::{PlacedResult, Strides};
use crate::execute::step::note_least;
use crate::expr::Expr;
use crate::expr::keyed::Keyed;
use crate::expr::remap::{Along, Changes};
use crate::plan::shape::Shape;
use crate::storage::axes::OneAxis;
use crate::tensors::named::Named;
use crate::types::brand::{Brand, DimInfo, Inner, Rest, SetElement, digits, keys_of};
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::role::Undenoted;
use crate::types::set::{DimKey, Dims, Keys};
use crate::types::size::Dyn;
use alloc::string::String;
use kernels::error::Plural;
use smallvec::SmallVec;

/// One number for all dims, such as `2`, or one for each, such as `(2, 1)` or `[2, 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerDim(SmallVec<[usize; 4]>);

/// What [`PerDim`] can be made from: `2`, `(2, 1)` or `[2, 1]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of elements",
    label = "expected a `usize`, or one for each dim: `2` or `(2, 3)`"
)]
pub trait IntoPerDim: Into<PerDim> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<N: Into<PerDim>> IntoPerDim for N {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

impl From<usize> for PerDim {
    fn from(all: usize) -> Self {
        PerDim(SmallVec::from_elem(all, 1))
    }
}

impl<const N: usize> From<[usize; N]> for PerDim {
    fn from(each: [usize; N]) -> Self {
        PerDim(SmallVec::from_slice(&each))
    }
}

impl From<(usize, usize)> for PerDim {
    fn from((a, b): (usize, usize)) -> Self {
        PerDim::from([a, b])
    }
}

impl From<(usize, usize, usize)> for PerDim {
    fn from((a, b, c): (usize, usize, usize)) -> Self {
        PerDim::from([a, b, c])
    }
}

impl PerDim {
    pub(crate) fn at(&self, at: usize) -> usize {
        self.0[if self.0.len() == 1 { 0 } else { at }]
    }

    /// Checks that there is one number, or one for each of `dims` dims.
    pub(crate) fn check(&self, what: &str, dims: usize) -> Result<(), DimError> {
        if self.0.len() == 1 || self.0.len() == dims {
            return Ok(());
        }
        let (numbers, are) = (self.0.len(), if dims == 1 { "is" } else { "are" });
        let dims = Plural(dims, "dim", "dims");
        Err(DimError::Shape { what: format!("the {what} has {numbers} numbers, but there {are} {dims}") })
    }
}

/// How a window moves: its stride, padding and dilation, and settings for transposed convolutions
/// and pooling.
///
/// ```text
/// Window::new()                                    stride 1, padding 0, dilation 1
/// Window::new().stride(2).padding((1, 0))          one number for all dims, or one for each
/// Window::new().padding_same()                     as many windows as elements
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub(crate) stride: PerDim,
    padding: Padding,
    pub(crate) dilation: PerDim,
    output_padding: PerDim,
    ceil: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Padding {
    /// The numbers of elements added before and after those of each dim.
    Given { front: PerDim, behind: PerDim },
    /// The padding for which there are `ceil(n / stride)` windows along `n` elements.
    Same,
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

impl Window {
    /// Steps of 1 without padding or dilation.
    pub fn new() -> Self {
        Window {
            stride: 1.into(),
            padding: Padding::Given { front: 0.into(), behind: 0.into() },
            dilation: 1.into(),
            output_padding: 0.into(),
            ceil: false,
        }
    }

    /// Sets how far the window moves from one position to the next.
    pub fn stride(self, stride: impl IntoPerDim) -> Self {
        Window { stride: stride.into(), ..self }
    }

    /// Sets the number of elements that are added on each side:
    /// [`padding_sides`](Window::padding_sides) with the same number for both.
    pub fn padding(self, padding: impl IntoPerDim) -> Self {
        let front = padding.into();
        Window { padding: Padding::Given { behind: front.clone(), front }, ..self }
    }

    /// Sets the numbers of elements that are added before and after the elements of each dim. A
    /// transposed convolution instead removes these numbers of positions from the start and the end
    /// of its result.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct C = 1; struct H; struct K; }
    /// let (x, w) = (from_vec((C, H.of(3)), vec![1, 2, 4]), from_vec((C, K.of(2)), vec![1, 1]));
    /// let causal = conv(&x, &w, C, H, K, &Window::new().padding_sides(1, 0));     // out[h] = x[h - 1] + x[h]
    /// assert_eq!(causal.order(H), ndarray::array![1, 3, 6]);
    /// ```
    pub fn padding_sides(self, front: impl IntoPerDim, behind: impl IntoPerDim) -> Self {
        Window { padding: Padding::Given { front: front.into(), behind: behind.into() }, ..self }
    }

    /// Chooses the padding so that there are `ceil(n / stride)` windows along a dim of `n >= 1`
    /// elements: with a stride of 1, each dim keeps its size. If the number of added elements is
    /// odd, the end gets one more than the start. Transposed convolutions do not support this
    /// setting.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct C = 1; struct H; struct K; }
    /// let (x, w) = (from_vec((C, H.of(4)), vec![1, 2, 4, 8]), from_vec((C, K.of(3)), vec![1, 1, 1]));
    /// let same = |steps: Window| conv(&x, &w, C, H, K, &steps.padding_same()).order(H);
    /// assert_eq!(same(Window::new()), ndarray::array![3, 7, 14, 12]);
    /// assert_eq!(same(Window::new().stride(2)), ndarray::array![7, 12]);
    /// ```
    pub fn padding_same(self) -> Self {
        Window { padding: Padding::Same, ..self }
    }

    /// Sets how far apart neighbors in a window are.
    pub fn dilation(self, dilation: impl IntoPerDim) -> Self {
        Window { dilation: dilation.into(), ..self }
    }

    /// Sets the number of elements that a transposed convolution adds at the end of its result. A
    /// convolution with a stride maps several sizes to the same size; this number selects the
    /// original size. Convolutions and pooling ignore it.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct C = 1; struct H; struct K; }
    /// let (x, w) = (from_vec((C, H.of(2)), vec![1, 10]), from_vec((C, K.of(2)), vec![1, 2]));
    /// let spread = conv_transpose(&x, &w, C, H, K, &Window::new().stride(2).output_padding(1));
    /// assert_eq!(spread.order(H), ndarray::array![1, 2, 10, 20, 0]);
    /// ```
    pub fn output_padding(self, output_padding: impl IntoPerDim) -> Self {
        Window { output_padding: output_padding.into(), ..self }
    }

    /// Rounds the number of windows up instead of down in pooling: elements that are left over at
    /// the end get another window, unless it would start after the dim's last element. The part of
    /// this window beyond the padding does not count. Convolutions ignore this setting.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct H; }
    /// let x = from_vec(H.of(5), vec![1.0, 3.0, 5.0, 7.0, 9.0]);
    /// let pairs = Window::new().stride(2);
    /// assert_eq!((&x).avg_pool(H, 2, &pairs).order(H), ndarray::array![2.0, 6.0]);
    /// assert_eq!((&x).avg_pool(H, 2, &pairs.ceil()).order(H), ndarray::array![2.0, 6.0, 9.0]);
    /// ```
    #[doc(alias = "ceil_mode")]
    pub fn ceil(self) -> Self {
        Window { ceil: true, ..self }
    }

    /// The padding before and after the `size` elements of dim number `at`, for windows of `len`
    /// elements.
    pub(crate) fn around(&self, at: usize, size: usize, len: usize) -> (usize, usize) {
        match &self.padding {
            Padding::Given { front, behind } => (front.at(at), behind.at(at)),
            Padding::Same => {
                let (stride, span) = (self.stride.at(at).max(1), self.span(at, len));
                let positions = size.div_ceil(stride);
                let reach = positions.saturating_sub(1).saturating_mul(stride).saturating_add(span);
                let around = reach.saturating_sub(size);
                (around / 2, around.div_ceil(2))
            }
        }
    }

    /// How many elements a window of `len` elements spans along dim number `at`, from its first
    /// to its last.
    pub(crate) fn span(&self, at: usize, len: usize) -> usize {
        len.saturating_sub(1).saturating_mul(self.dilation.at(at)).saturating_add(1)
    }

    /// The number of elements that pooling with `ceil` needs after `len` elements. `len` includes
    /// the padding on both sides; `behind` is the padding at the end.
    pub(crate) fn rounded_up(&self, at: usize, len: usize, behind: usize, window: usize) -> usize {
        let (stride, span) = (self.stride.at(at).max(1), self.span(at, window));
        let Some(rest) = len.checked_sub(span).filter(|_| self.ceil) else { return 0 };
        // The additional window must start before the padding at the end.
        let start = rest.div_ceil(stride).saturating_mul(stride);
        if start < len - behind { start - rest } else { 0 }
    }

    /// The numbers of positions that a transposed convolution removes at the start and at the end
    /// of dim number `at`, and the number that it adds at the end. `None` if the padding is
    /// [`Padding::Same`].
    pub(crate) fn left_out(&self, at: usize) -> Option<[usize; 3]> {
        match &self.padding {
            Padding::Given { front, behind } => {
                Some([front.at(at), behind.at(at), self.output_padding.at(at)])
            }
            Padding::Same => None,
        }
    }

    /// Checks that each setting has one number, or one for each of `dims` dims.
    pub(crate) fn check(&self, dims: usize) -> Result<(), DimError> {
        self.stride.check("stride", dims)?;
        if let Padding::Given { front, behind } = &self.padding {
            front.check("padding", dims)?;
            behind.check("padding", dims)?;
        }
        self.output_padding.check("output padding", dims)?;
        self.dilation.check("dilation", dims)
    }
}

/// Splits a dim of `size` elements into positions of a window of `len` elements and positions
/// within it: `position * stride + at * dilation`.
pub(crate) fn slid(
    dim: DimInfo<'_>,
    size: usize,
    window: DimKey,
    len: usize,
    stride: usize,
    dilation: usize,
) -> Result<Along, DimError> {
    let fail =
        |why: String| Err(DimError::Shape { what: format!("windows along dim `{}`: {why}", dim.name) });
    if stride == 0 || dilation == 0 || len == 0 {
        return fail(format!("size {len}, stride {stride} and dilation {dilation} must each be at least 1"));
    }
    let Some(span) = (len - 1).checked_mul(dilation).and_then(|span| span.checked_add(1)) else {
        return fail("their span is too large".into());
    };
    if span > size {
        let are = if size == 1 { "is" } else { "are" };
        let elements = Plural(span, "element", "elements");
        return fail(format!("they span {elements}, but there {are} {size}"));
    }
    note_least(span, size, &|| format!("a window along dim `{}`", dim.name));
    let positions = (size - span) / stride + 1;
    dim.resized().unify(positions, None)?;
    // With only one position, the step is not used, and may not fit into `isize`.
    let steps = |step: usize, count: usize| if count > 1 { step as isize } else { 0 };
    let terms = SmallVec::from_iter([
        (dim.key(), steps(stride, positions), Some(positions)),
        (window, steps(dilation, len), Some(len)),
    ]);
    Ok(Along { offset: 0, inner: Some(size), terms })
}

/// The positions of a dim's elements in a larger dim of `len` elements: the first at `start`, the
/// others `step` apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing {
    pub dim: DimKey,
    pub len: usize,
    pub start: usize,
    pub step: usize,
}

/// Places the elements of an expression in a result filled with `fill`. With `is_padded_copy`, the
/// result is a [padded copy](PlacedResult::padded_copy).
#[track_caller]
fn place<S: Dims, R: Rank, E: Expr>(
    expr: &E,
    shape: &Shape,
    placings: &[Placing],
    fill: E::Elem,
    is_padded_copy: bool,
) -> Result<PlacedResult<E::Elem>, DimError> {
    let keys = S::KEYS.as_slice();
    let placing =
        |axis: usize| placings.iter().find(|own| keys.get(axis).is_some_and(|key| key.same(&own.dim)));
    let axes = 0..shape.sizes().len();
    let sizes = axes.clone().map(|axis| placing(axis).map_or(shape.size(axis), |placing| placing.len));
    let mut out = if is_padded_copy {
        PlacedResult::padded_copy::<S, R>(sizes.collect(), Some(fill))?
    } else {
        PlacedResult::of::<S, R>(sizes.collect(), Some(fill))?
    };
    let mut strides = Strides::from(out.strides());
    let mut start = 0;
    for axis in axes {
        if let Some(placing) = placing(axis) {
            start += placing.start * strides[axis] as usize;
            // With only one position, the step is not used, and may not fit into `isize`.
            if shape.size(axis) > 1 {
                strides[axis] *= placing.step as isize;
            }
        }
    }
    out.put::<S, R, E>(expr, shape, start, &strides)?;
    Ok(out)
}

/// Places the elements of an expression, whose operands are unified, in a tensor filled with
/// `fill`.
#[track_caller]
pub(crate) fn placed<S: Dims, R: Rank, E: Expr>(
    expr: &E,
    shape: &Shape,
    placings: &[Placing],
    fill: E::Elem,
) -> Result<Named<E::Elem, S, R>, DimError> {
    place::<S, R, E>(expr, shape, placings, fill, false)?.finish()
}

/// Like [`placed`], viewed along the dims of `changes`. The size of a padded dim may differ from
/// its static size and from the size of its prime.
pub(crate) fn placed_windows<S: Dims, R: Rank, E: Expr>(
    expr: &E,
    shape: &Shape,
    placings: &[Placing],
    fill: E::Elem,
    changes: &Changes,
) -> Result<Keyed<E::Elem>, DimError> {
    let (data, axes) = place::<S, R, E>(expr, shape, placings, fill, true)?.finish_with_axes()?;
    let (named, positional) = axes.split_at(S::KEYS.as_slice().len());
    let named = S::KEYS.as_slice().iter().copied().zip(named.iter().copied());
    Ok(Keyed::new(data, named, positional.into(), changes))
}

macro_rules! positions {
    ($($name:ident $at:literal $digit:ident $text:literal;)*) => {$(
        /// A dim for the positions in a window.
        pub(crate) enum $name {}

        impl SetElement for $name {
            type Key = digits::$digit<Inner>;
            type Axes = OneAxis;
            // The loop variables of macros can also be in a `Rest`, but their IDs lack bit 62.
            const KEYS: Keys = keys_of::<Dyn>(1 << 63 | 1 << 62 | $at, $text, &[]);
        }

        impl Brand for $name {
            type Size = Dyn;
            type Num = Dyn;
            type Role = Undenoted;
            type Anchor = ();
        }
    )*};
}

positions! {
    Window0 0 H0 "window 0";
    Window1 1 H1 "window 1";
    Window2 2 H2 "window 2";
}

/// The dims of window positions in pooling, for which the user passes no dims. They are inside a
/// `Rest`, so they cannot clash with other dims.
pub(crate) type Inside = (Window0, Window1, Window2);

/// The dims `S`, and the dims of the positions in a window.
pub(crate) type Windowed<S> = <S as Dims>::Sealed<Inside>;

/// The dims of the positions in a window.
pub(crate) struct WindowPositions;

impl DimList for WindowPositions {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = ();
    type Sizes = ();
    const KEYS: &'static Keys = &<Rest<Inside> as SetElement>::KEYS;
    const GIVES_SIZE: bool = false;

    fn each<'a>(&'a self, _: impl FnMut(DimInfo<'a>)) {}
}

impl WindowPositions {
    pub(crate) const COUNT: usize = 3;

    /// The key of the `at`th window dim of [`Windowed`].
    pub(crate) fn key(at: usize) -> DimKey {
        Self::KEYS.as_slice()[at]
    }

    /// Fails to compile for a set of dims that has no room for the window dims.
    pub(crate) const fn fit<S: Dims>() {
        assert!(
            Windowed::<S>::KEYS.as_slice().len() == S::KEYS.as_slice().len() + Self::COUNT,
            "windows of a tensor of 26 dims: there is no room for the dims of their positions"
        );
    }
}
