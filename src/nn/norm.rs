//! Normalization: functions, and layers with learned scales.

use crate::creation::create::SizedDims;
use crate::nn::bias::{BiasKind, NoBias, WithBias};
use crate::nn::{LayerDims, epsilon_of};
use crate::prelude::*;
use crate::tensors::tensor::Evaluable;
use crate::types::dim::Of;
use crate::types::rank::Rank0;
use crate::types::role::AllPlay;
use alloc::vec::Vec;
pub use typed_dims_core::operators::nn::norm::*;
use typed_dims_core::training::optim::in_place::{approach, scale};

const EPSILON: f64 = 1e-5;

/// Normalizes to mean 0 and variance 1 along the dims `D`, then applies a learned scale and offset:
/// `y = (x - mean over D of x) / sqrt(var over D of x + epsilon) * weight[D] + bias[D]`.
///
/// (J. L. Ba, J. R. Kiros, G. E. Hinton, 2016, "Layer normalization".)
///
/// ```
/// use typed_dims::nn::LayerNorm;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Width; }
/// let norm = LayerNorm::<(Width,)>::new(Width.of(2));
/// let y: Tensor<f32, (Batch, Width)> = norm.apply(&from_vec((Batch.of(1), Width.of(2)), vec![10.0, 30.0]));
/// assert!((y - from_vec(Width.of(2), vec![-1.0, 1.0])).abs().max((Batch, Width)).order(()) < 1e-6);
/// ```
#[derive(Clone, Parameters)]
#[cfg_attr(feature = "safetensors", derive(Load))]
pub struct LayerNorm<D: LayerDims, T = f32, B: BiasKind = WithBias> {
    /// The scale of each feature.
    #[cfg_attr(feature = "safetensors", load(axes = D))]
    pub weight: Named<T, D>,
    /// The offset of each feature, or [`NoBias`].
    #[cfg_attr(feature = "safetensors", load(axes = D))]
    pub bias: B::Of<T, D>,
    /// The number added to the variance. The default is 1e-5.
    #[parameters(constant)]
    #[cfg_attr(feature = "safetensors", load(default = EPSILON))]
    pub epsilon: f64,
}

impl<D: LayerDims, T: Real> LayerNorm<D, T> {
    /// A layer with the scale 1 and the offset 0.
    ///
    /// # Panics
    ///
    /// If the weights do not fit into memory.
    #[track_caller]
    pub fn new<A: SizedDims<Set = D> + Copy>(dims: A) -> Self {
        LayerNorm { weight: ones(dims), bias: zeros(dims), epsilon: EPSILON }
    }
}

impl<D: LayerDims, T: Real> LayerNorm<D, T, NoBias> {
    /// A layer with the scale 1 and no offset.
    ///
    /// # Panics
    ///
    /// If the weights do not fit into memory.
    #[track_caller]
    pub fn without_bias<A: SizedDims<Set = D>>(dims: A) -> Self {
        LayerNorm { weight: ones(dims), bias: NoBias, epsilon: EPSILON }
    }
}

impl<D: LayerDims, T: Real, B: BiasKind> LayerNorm<D, T, B> {
    /// Sets the number that is added to the variance. It is rounded to the element type, but a
    /// positive number is not rounded to 0.
    ///
    /// ```
    /// use typed_dims::nn::LayerNorm;
    /// # use typed_dims::prelude::*;
    /// # dims! { struct Width; }
    /// let norm = LayerNorm::<(Width,)>::new(Width.of(8)).with_epsilon(1e-12);
    /// # assert_eq!(norm.epsilon, 1e-12);
    /// ```
    pub fn with_epsilon(self, epsilon: f64) -> Self {
        LayerNorm { epsilon, ..self }
    }

    /// Normalizes a tensor or an expression: `norm.apply(&x)`, `norm.apply(&x + &y)`. With a bias,
    /// one pass normalizes, scales and shifts, unless a gradient or a recorded function traces an
    /// operand.
    ///
    /// # Panics
    ///
    /// If the size of a dim in `x` differs from its size in the weight, or if `epsilon` is negative
    /// or NaN.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply<A: Evaluable<Elem = T, Rank = Rank0, Dims = X>, X: Union<D, Out: Union<D>>, Y: Dims>(&self, x: A) -> Named<T, X> where D: DimsOf<X, Y> {
        B::normalized(x, D::default(), self.epsilon, &self.weight, &self.bias)
    }
}

/// Normalizes to a mean square of 1 along the dims `D`, then applies a learned scale:
/// `y = x / sqrt(mean over D of x^2 + epsilon) * weight[D]`.
///
/// (B. Zhang, R. Sennrich, 2019, "Root mean square layer normalization".)
///
/// ```
/// use typed_dims::nn::RmsNorm;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Width; }
/// let norm = RmsNorm::<(Width,)>::new(Width.of(2));
/// let y: Tensor<f32, (Batch, Width)> = norm.apply(&from_vec((Batch.of(1), Width.of(2)), vec![10.0, -10.0]));
/// assert!((y - from_vec(Width.of(2), vec![1.0, -1.0])).abs().max((Batch, Width)).order(()) < 1e-6);
/// ```
#[derive(Clone, Parameters)]
#[cfg_attr(feature = "safetensors", derive(Load))]
pub struct RmsNorm<D: LayerDims, T = f32> {
    /// The scale of each feature.
    #[cfg_attr(feature = "safetensors", load(axes = D))]
    pub weight: Named<T, D>,
    /// The number added to the mean square. The default is 1e-5.
    #[parameters(constant)]
    #[cfg_attr(feature = "safetensors", load(default = EPSILON))]
    pub epsilon: f64,
}

impl<D: LayerDims, T: Real> RmsNorm<D, T> {
    /// A layer with the scale 1.
    ///
    /// # Panics
    ///
    /// If the weights do not fit into memory.
    #[track_caller]
    pub fn new<A: SizedDims<Set = D>>(dims: A) -> Self {
        RmsNorm { weight: ones(dims), epsilon: EPSILON }
    }

    /// Normalizes a tensor or an expression.
    ///
    /// # Panics
    ///
    /// If the size of a dim in `x` differs from its size in the weight, or if `epsilon` is negative
    /// or NaN.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply<A: Evaluable<Elem = T, Rank = Rank0, Dims = X>, X: Union<D>, Y: Dims>(&self, x: A) -> Named<T, X> where D: DimsOf<X, Y> {
        (x.rms_norm(D::default(), epsilon_of(self.epsilon)) * &self.weight).eval().same_set()
    }
}

/// The mean and the variance of each of the channels `C`.
#[derive(Clone)]
pub struct ChannelMoments<C: Dims, T = f32> {
    /// The mean.
    pub mean: Named<T, C>,
    /// The unbiased variance.
    pub var: Named<T, C>,
}

/// Which moments the [`BatchNorm`] layers of a network use: see [`BatchNorm::apply_in`].
#[derive(Clone)]
pub enum NormMode<C: Dims, T = f32> {
    /// The moments of the batch. Each layer appends the moments of its input to this list.
    Training(Vec<ChannelMoments<C, T>>),
    /// The running moments.
    Inference,
}

impl<C: Dims, T> NormMode<C, T> {
    /// Training, with an empty list of moments.
    pub fn training() -> Self {
        NormMode::Training(Vec::new())
    }

    /// The moments that the layers appended, in the order in which the layers ran. The list is
    /// empty in inference.
    pub fn into_moments(self) -> Vec<ChannelMoments<C, T>> {
        match self {
            NormMode::Training(moments) => moments,
            NormMode::Inference => Vec::new(),
        }
    }
}

/// Normalizes each of the channels `C` to mean 0 and variance 1, then applies a learned scale and
/// offset: `y = (x - mean[C]) / sqrt(var[C] + epsilon) * weight[C] + bias[C]`.
///
/// In training, call [`train`](BatchNorm::train), which normalizes with the moments of the batch
/// and returns them. After the step, pass them to [`remember`](BatchNorm::remember), which updates
/// the running moments. For inference, [`apply`](BatchNorm::apply) uses the running moments.
///
/// (S. Ioffe, C. Szegedy, 2015, "Batch normalization".)
///
/// ```
/// use typed_dims::grad::value_and_grad_with;
/// use typed_dims::nn::BatchNorm;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Channel; struct Row; }
/// let mut norm = BatchNorm::<(Channel,)>::new(Channel.of(3));
/// let x = randn::<f32, _>((Batch.of(4), Channel.of(3), Row.of(5)), 1);
/// let (loss, gradient, moments) = value_and_grad_with(
///     |norm: &BatchNorm<(Channel,)>| {
///         let (y, moments) = norm.train(&x, (Batch, Row));
///         ((y - 1.0).square().mean((Batch, Channel, Row)), moments)
///     },
///     &norm,
/// );
/// norm.remember(&moments);
/// assert!((loss - 2.0).abs() < 1e-3);
/// assert_eq!(gradient.names(), ["weight", "bias"]);
/// let y: Tensor<f32, (Batch, Channel, Row)> = norm.apply(&x); // with the running moments
/// # assert_eq!(y.size(Row), 5);
/// ```
///
/// In files, the arrays are `weight`, `bias`, `running_mean` and `running_var`. PyTorch's files
/// also have `num_batches_tracked`: skip this array with `Weights::ignoring`.
#[derive(Clone, Parameters)]
#[cfg_attr(feature = "safetensors", derive(Load))]
pub struct BatchNorm<C: LayerDims, T: Clone = f32> {
    /// The scale of each channel.
    #[cfg_attr(feature = "safetensors", load(axes = C))]
    pub weight: Named<T, C>,
    /// The offset of each channel.
    #[cfg_attr(feature = "safetensors", load(axes = C))]
    pub bias: Named<T, C>,
    /// The running mean of each channel. It has no gradient.
    #[parameters(state)]
    #[cfg_attr(feature = "safetensors", load(axes = C))]
    pub running_mean: Named<T, C>,
    /// The running variance of each channel. It has no gradient.
    #[parameters(state)]
    #[cfg_attr(feature = "safetensors", load(axes = C))]
    pub running_var: Named<T, C>,
    /// The number added to the variance. The default is 1e-5.
    #[parameters(constant)]
    #[cfg_attr(feature = "safetensors", load(default = EPSILON))]
    pub epsilon: f64,
    /// The share of a new batch in the running moments. The default is 0.1.
    #[parameters(constant)]
    #[cfg_attr(feature = "safetensors", load(default = MOMENTUM))]
    pub momentum: f64,
}

const MOMENTUM: f64 = 0.1;

/// Implemented by a set of dims that equals the channels `C` of the layer.
#[diagnostic::on_unimplemented(
    message = "the dims `{Self}` would remain, but the channels of the layer are `{C}`",
    label = "name all dims of the tensor except the channels"
)]
pub trait LeavesChannels<C>: Dims {}
#[diagnostic::do_not_recommend]
impl<C: Dims> LeavesChannels<C> for C {}

impl<C: LayerDims, T: Real> BatchNorm<C, T> {
    /// A layer with the scale 1, the offset 0, the running mean 0 and the running variance 1.
    ///
    /// # Panics
    ///
    /// If the weights do not fit into memory.
    #[track_caller]
    pub fn new<A: SizedDims<Set = C> + Copy>(channels: A) -> Self {
        BatchNorm {
            weight: ones(channels),
            bias: zeros(channels),
            running_mean: zeros(channels),
            running_var: ones(channels),
            epsilon: EPSILON,
            momentum: MOMENTUM,
        }
    }

    /// Normalizes `x` with the running moments.
    ///
    /// # Panics
    ///
    /// If the size of a dim in `x` differs from its size in the weight.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply<X, Y: Dims>(&self, x: &Named<T, X>) -> Named<T, X> where C: DimsOf<X, Y>,
        X: Union<C, Out: Union<C, Out: Union<C, Out: Union<C>>>>,
    {
        let normal = x.batch_norm_with(&self.running_mean, &self.running_var, epsilon_of(self.epsilon));
        (normal * &self.weight + &self.bias).eval().same_set()
    }

    /// Normalizes `x` with its own moments over `dims`, which must be all its dims except the
    /// channels. Returns the result and the moments, or the running moments if `x` is empty. No
    /// gradient is taken through the returned moments.
    ///
    /// # Panics
    ///
    /// If the size of a dim in `x` differs from its size in the weight, if `epsilon` is negative or
    /// NaN, or if a channel has only one value, so that its variance is 0.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn train<X, D: DimsOf<X, Z>, Z: LeavesChannels<C> + AllPlay<DataChannel>>(&self, x: &Named<T, X>, dims: D) -> (Named<T, X>, ChannelMoments<C, T>)
    where
        X: Union<C, Out: Union<C>>,
    {
        let normal = x.batch_norm(dims, epsilon_of(self.epsilon));
        let moments = if x.is_empty() {
            ChannelMoments { mean: (&self.running_mean).detach(), var: (&self.running_var).detach() }
        } else {
            let count = x.len() as f64 / normal.mean.len() as f64;
            let unbiased = count / (count - 1.0);
            let mut var = normal.var.detach().same_set();
            scale(&mut var, unbiased, "train");
            ChannelMoments { mean: normal.mean.detach().same_set(), var }
        };
        ((normal.output * &self.weight + &self.bias).eval().same_set(), moments)
    }

    /// Calls [`train`](BatchNorm::train) and appends the moments to `mode`, or calls
    /// [`apply`](BatchNorm::apply), depending on `mode`.
    ///
    /// ```
    /// use typed_dims::nn::{BatchNorm, NormMode};
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Batch; struct Channel; }
    /// let mut norm = BatchNorm::<(Channel,)>::new(Channel.of(2));
    /// let x: Tensor<f32, (Batch, Channel)> = randn((Batch.of(8), Channel.of(2)), 1);
    /// let mut mode = NormMode::training();
    /// let y = norm.apply_in(&x, Batch, &mut mode);
    /// assert!(y.mean(Batch).abs().max(Channel).order(()) < 1e-6);
    /// for moments in mode.into_moments() {
    ///     norm.remember(&moments);
    /// }
    /// assert_eq!(norm.apply_in(&x, Batch, &mut NormMode::Inference), norm.apply(&x));
    /// ```
    ///
    /// # Panics
    ///
    /// Where `train` or `apply` panics.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply_in<X, Y: Dims, D: DimsOf<X, Z>, Z: LeavesChannels<C> + AllPlay<DataChannel>>(&self, x: &Named<T, X>, dims: D, mode: &mut NormMode<C, T>) -> Named<T, X> where C: DimsOf<X, Y>,
        X: Union<C, Out: Union<C, Out: Union<C, Out: Union<C>>>>,
    {
        match mode {
            NormMode::Training(all) => {
                let (y, moments) = self.train(x, dims);
                all.push(moments);
                y
            }
            NormMode::Inference => self.apply(x),
        }
    }

    /// Updates the running moments: `running = (1 - momentum) * running + momentum * batch`.
    ///
    /// # Panics
    ///
    /// If `batch` has a different number of channels, if a gradient is being taken through it or
    /// through the running moments, or if the momentum is not between 0 and 1.
    #[track_caller]
    pub fn remember(&mut self, batch: &ChannelMoments<C, T>) {
        let momentum = self.momentum;
        assert!(
            (0.0..=1.0).contains(&momentum),
            "`BatchNorm` with the momentum {momentum}: it must be between 0 and 1"
        );
        approach(&mut self.running_mean, &batch.mean, momentum, "remember");
        approach(&mut self.running_var, &batch.var, momentum, "remember");
    }
}

/// Splits the channels `C` into `GROUPS` groups of equal size, normalizes each group to mean 0 and
/// variance 1, and applies a learned scale and offset for each channel:
/// `y = (x - mean) / sqrt(var + epsilon) * weight[C] + bias[C]`.
///
/// (Y. Wu, K. He, 2018, "Group normalization". With one group for each channel, this is instance
/// normalization.)
///
/// ```
/// use typed_dims::nn::GroupNorm;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Channel; struct Row; struct Column; }
/// let norm = GroupNorm::<Channel, 2>::new(Channel.of(6));
/// let x: Tensor<f32, (Batch, Channel, Row, Column)> = randn((Batch.of(2), Channel.of(6), Row.of(4), Column.of(4)), 1);
/// let y = norm.apply(&x, (Row, Column));
/// assert!((&y).slice(Channel, ..3).mean((Channel, Row, Column)).abs().max(Batch).order(()) < 1e-6);
/// ```
#[derive(Clone, Parameters)]
#[cfg_attr(feature = "safetensors", derive(Load))]
pub struct GroupNorm<C: AnyDim, const GROUPS: usize, T = f32, B: BiasKind = WithBias> {
    /// The scale of each channel.
    #[cfg_attr(feature = "safetensors", load(axes = (C,)))]
    pub weight: Named<T, (C,)>,
    /// The offset of each channel, or [`NoBias`].
    #[cfg_attr(feature = "safetensors", load(axes = (C,)))]
    pub bias: B::Of<T, (C,)>,
    /// The number added to the variance. The default is 1e-5.
    #[parameters(constant)]
    #[cfg_attr(feature = "safetensors", load(default = EPSILON))]
    pub epsilon: f64,
}

impl<C: AnyDim, const GROUPS: usize, T: Real> GroupNorm<C, GROUPS, T> {
    /// A layer with the scale 1 and the offset 0.
    ///
    /// # Panics
    ///
    /// If the weights do not fit into memory.
    #[track_caller]
    pub fn new(channels: Of<C>) -> Self {
        GroupNorm { weight: ones(channels), bias: zeros(channels), epsilon: EPSILON }
    }
}

impl<C: AnyDim, const GROUPS: usize, T: Real> GroupNorm<C, GROUPS, T, NoBias> {
    /// A layer with the scale 1 and no offset.
    ///
    /// # Panics
    ///
    /// If the weights do not fit into memory.
    #[track_caller]
    pub fn without_bias(channels: Of<C>) -> Self {
        GroupNorm { weight: ones(channels), bias: NoBias, epsilon: EPSILON }
    }
}

impl<C: AnyDim, const GROUPS: usize, T: Real, B: BiasKind> GroupNorm<C, GROUPS, T, B> {
    /// Normalizes `x`. Means and variances are taken over each group of channels and over `dims`.
    /// For the same result as in PyTorch, pass all dims except the batch and the channels.
    ///
    /// # Panics
    ///
    /// If the channels cannot be split into groups of equal size, if their number in `x` differs
    /// from the number in the weight, or if `epsilon` is negative or NaN.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply<X: Union<(C,)>, D: DimsOf<Y, Z>, Y: Dims, Z: Dims>(&self, x: &Named<T, X>, dims: D) -> Named<T, X> where C: DimRef + DimsOf<X, Y>, {
        let normal = x.group_norm(C::default(), GROUPS, dims, epsilon_of(self.epsilon));
        B::added(&self.bias, (normal * &self.weight).eval().same_set())
    }
}
