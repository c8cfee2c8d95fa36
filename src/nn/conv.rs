//! Convolutions and their transposes: functions and layers.

use crate::creation::create::{Chained, SizedDims};
use crate::nn::LayerDims;
use crate::nn::bias::{BiasKind, NoBias, WithBias};
use crate::nn::linear::Projection;
use crate::prelude::*;
use crate::types::dim::DimList;
use crate::types::role::{AnyChannel, DataFeature, FilterSpatial};
use crate::types::set::DimsOfBoth;
use typed_dims_core::operators::nn::checks::check_distinct;
pub use typed_dims_core::operators::nn::conv::*;

/// The dims of the weight of a convolution from the channels `C` to the channels `O`, with the
/// kernel dims `K`.
pub type KernelOf<C, O, K> = <O as Union<<K as Union<C>>::Out>>::Out;

/// A convolution from the channels `C` to the channels `O`, with the kernel dims `K`. With two
/// dims in `K`, a stride and a dilation of 1, and no padding,
/// `y[.., O, h, w] = sum over C, kh, kw of x[.., C, h + kh, w + kw] * weight[C, O, kh, kw] + bias[O]`.
///
/// The layer calls [`conv`] and adds the bias. You pass the dims along which the kernels slide,
/// the stride, the padding and the dilation to [`apply`](Conv::apply).
///
/// ```
/// use typed_dims::nn::Conv;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Channel; struct Made; struct Row; struct Column; struct Kh = 3; struct Kw = 3; }
/// let layer = Conv::<(Channel,), (Made,), (Kh, Kw)>::new(Channel.of(3), Made.of(8), (Kh, Kw), 1);
/// let images = rand((Batch.of(2), Channel.of(3), Row.of(8), Column.of(8)), 2);
/// let maps = layer.apply(&images, (Row, Column), &Window::new().stride(2).padding(1));
/// let maps: Tensor<f32, (Batch, Channel, Row, Column)> = maps.rename(Made, Channel).eval();
/// assert_eq!(maps.dims(), [("Batch", 2), ("Channel", 8), ("Row", 4), ("Column", 4)]);
/// ```
///
/// Before a [`BatchNorm`](crate::nn::norm::BatchNorm), which subtracts the mean of each channel, a
/// bias has no effect. Use a layer without a bias there:
/// `Conv<(Channel,), (Made,), (Kh, Kw), f32, NoBias>`.
#[derive(Clone, Parameters)]
#[cfg_attr(feature = "safetensors", derive(Load))]
pub struct Conv<C, O, K, T = f32, B = WithBias>
where
    C: LayerDims,
    O: LayerDims + Union<<K as Union<C>>::Out>,
    K: LayerDims + Union<C>,
    B: BiasKind,
{
    /// The kernels.
    #[cfg_attr(feature = "safetensors", load(axes = Chained<(O, C), K>))]
    pub weight: Named<T, KernelOf<C, O, K>>,
    /// The bias of each output channel, or [`NoBias`].
    #[cfg_attr(feature = "safetensors", load(axes = (O,)))]
    pub bias: B::Of<T, O>,
}

/// Checks that the input channels, the output channels and the kernel share no dim.
#[track_caller]
const fn check_layer<C: LayerDims, O: LayerDims, K: LayerDims>(layer: &str) {
    check_distinct::<C, O>(layer);
    check_distinct::<K, C>(layer);
    check_distinct::<K, O>(layer);
}

#[track_caller]
fn kernels<C, O, K, T: Real, A, B, D>(
    channels: A,
    outputs: B,
    kernel: D,
    seed: u64,
) -> Named<T, KernelOf<C, O, K>>
where
    C: LayerDims,
    O: LayerDims + Union<<K as Union<C>>::Out>,
    K: LayerDims + Union<C, Out: DimList>,
    B: SizedDims<Set = O>,
    Chained<A, D>: SizedDims<Set = <K as Union<C>>::Out>,
{
    Projection::<<K as Union<C>>::Out, O, T>::new(Chained(channels, kernel), outputs, seed).weight
}

macro_rules! layers {
    ($($layer:ident;)*) => {$(
        impl<C, O, K, T: Real> $layer<C, O, K, T>
        where
            C: LayerDims,
            O: LayerDims + Union<<K as Union<C>>::Out>,
            K: LayerDims + Union<C>,
        {
            /// Random kernels from [`lecun_normal`](crate::init::lecun_normal), and a bias of
            /// zeros. The fan-in is the product of the sizes of `channels` and `kernel`.
            ///
            /// # Panics
            ///
            /// If the kernels do not fit into memory.
            #[track_caller]
            pub fn new<A, B, D>(channels: A, outputs: B, kernel: D, seed: u64) -> Self
            where
                B: SizedDims<Set = O> + Copy,
                Chained<A, D>: SizedDims<Set = <K as Union<C>>::Out>,
                K: Union<C, Out: DimList>,
            {
                const { check_layer::<C, O, K>(stringify!($layer)) };
                let weight = kernels::<C, O, K, T, _, _, _>(channels, outputs, kernel, seed);
                $layer { weight, bias: zeros(outputs) }
            }
        }

        impl<C, O, K, T: Real> $layer<C, O, K, T, NoBias>
        where
            C: LayerDims,
            O: LayerDims + Union<<K as Union<C>>::Out>,
            K: LayerDims + Union<C>,
        {
            /// Random kernels as in `new`, and no bias.
            ///
            /// # Panics
            ///
            /// If the kernels do not fit into memory.
            #[track_caller]
            pub fn without_bias<A, B, D>(channels: A, outputs: B, kernel: D, seed: u64) -> Self
            where
                B: SizedDims<Set = O>,
                Chained<A, D>: SizedDims<Set = <K as Union<C>>::Out>,
                K: Union<C, Out: DimList>,
            {
                const { check_layer::<C, O, K>(stringify!($layer)) };
                $layer { weight: kernels::<C, O, K, T, _, _, _>(channels, outputs, kernel, seed), bias: NoBias }
            }
        }
    )*};
}

layers! {
    Conv;
    ConvTranspose;
}

impl<C, O, K, T: Real, B: BiasKind> Conv<C, O, K, T, B>
where
    C: LayerDims,
    O: LayerDims + Union<<K as Union<C>>::Out>,
    K: LayerDims + Union<C>,
{
    /// Convolves `x`. The kernels slide along `dims`, one dim for each dim of `K`, in the same
    /// order. `steps` has the stride, the padding and the dilation.
    ///
    /// # Panics
    ///
    /// If the size of a dim in `x` differs from its size in the kernels, or if a kernel, with its
    /// dilation, spans more elements than the padded dim has. If the stride, the dilation or a
    /// kernel size is 0, or if a setting in `steps` is neither a single number nor a list with one
    /// number for each of `dims`. If one of `dims` has a static size and the result has a different
    /// size along it.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply<X, P: DimsOf<X, S>, U, V, S: Dims, Y>(&self, x: &Named<T, X>, dims: P, steps: &Window) -> Named<T, Y> where C: DimsOfBoth<X, KernelOf<C, O, K>, U, V>, K: WindowOver<P, X>,
        X: Union<KernelOf<C, O, K>, Out = U>,
        P: Plays<DataFeature>,
        C: Plays<AnyChannel>,
        K: DimsOf<V, Y> + Plays<FilterSpatial>,
        U: Dims,
        V: Dims,
        Y: Union<O>,
    {
        let made = conv(x, &self.weight, C::default(), dims, K::default(), steps);
        B::added(&self.bias, made)
    }
}

/// A transposed convolution from the channels `C` to the channels `O`, with the kernel dims `K`.
/// With two dims in `K`, a dilation of 1 and no padding,
/// `y[.., O, h * stride + kh, w * stride + kw] += x[.., C, h, w] * weight[C, O, kh, kw]`, plus
/// `bias[O]`. Decoders and generators use transposed convolutions to enlarge images.
///
/// The layer calls [`conv_transpose`] and adds the bias. You pass the dims and the steps to
/// [`apply`](ConvTranspose::apply), as for [`Conv`].
///
/// ```
/// use typed_dims::nn::ConvTranspose;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Channel; struct Made; struct Row; struct Column; struct Kh = 2; struct Kw = 2; }
/// let layer = ConvTranspose::<(Channel,), (Made,), (Kh, Kw)>::new(Channel.of(8), Made.of(3), (Kh, Kw), 1);
/// let maps = rand((Batch.of(2), Channel.of(8), Row.of(4), Column.of(4)), 2);
/// let images: Tensor<f32, (Batch, Made, Row, Column)> = layer.apply(&maps, (Row, Column), &Window::new().stride(2));
/// assert_eq!(images.dims(), [("Batch", 2), ("Made", 3), ("Row", 8), ("Column", 8)]);
/// ```
#[derive(Clone, Parameters)]
#[cfg_attr(feature = "safetensors", derive(Load))]
pub struct ConvTranspose<C, O, K, T = f32, B = WithBias>
where
    C: LayerDims,
    O: LayerDims + Union<<K as Union<C>>::Out>,
    K: LayerDims + Union<C>,
    B: BiasKind,
{
    /// The kernels.
    #[cfg_attr(feature = "safetensors", load(axes = Chained<(C, O), K>))]
    pub weight: Named<T, KernelOf<C, O, K>>,
    /// The bias of each output channel, or [`NoBias`].
    #[cfg_attr(feature = "safetensors", load(axes = (O,)))]
    pub bias: B::Of<T, O>,
}

impl<C, O, K, T: Real, B: BiasKind> ConvTranspose<C, O, K, T, B>
where
    C: LayerDims,
    O: LayerDims + Union<<K as Union<C>>::Out>,
    K: LayerDims + Union<C>,
{
    /// Applies the transposed convolution along `dims`, one dim for each dim of `K`, in the same
    /// order. Each element of `x` adds a multiple of the kernel to the result. The stride in
    /// `steps` is the distance between the kernels of neighboring elements. The padding is the
    /// number of elements that are cut off at each end of the result.
    ///
    /// # Panics
    ///
    /// If the size of a dim in `x` differs from its size in the kernels, or if the padding leaves
    /// no elements. If the stride, the dilation, a kernel size or the size of one of `dims` is 0.
    /// If `steps` has `padding_same`, or a setting that is neither a single number nor a list with
    /// one number for each of `dims`. If one of `dims` has a static size and the result has a
    /// different size along it.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply<X, P: DimsOf<X, S>, U, V, S: Dims, Y>(&self, x: &Named<T, X>, dims: P, steps: &Window) -> Named<T, Y> where C: DimsOfBoth<X, KernelOf<C, O, K>, U, V>, K: WindowOver<P, X>,
        X: Union<KernelOf<C, O, K>, Out = U>,
        P: Plays<DataFeature>,
        C: Plays<AnyChannel>,
        K: DimsOf<V, Y> + Plays<FilterSpatial>,
        U: Dims,
        V: Dims,
        Y: Union<O>,
    {
        let made = conv_transpose(x, &self.weight, C::default(), dims, K::default(), steps);
        B::added(&self.bias, made)
    }
}
