//! Layers of a convolutional network.

use digits::Example;
use typed_dims::prelude::*;

dims! {
    /// Features at each place of an image.
    pub struct Channel;
    /// Features that a convolution makes.
    pub struct Made;
    /// Rows of an image, from the top.
    pub struct Row;
    /// Columns of an image, from the left.
    pub struct Column;
    /// Rows of a kernel.
    pub struct KernelRow = 3;
    /// Columns of a kernel.
    pub struct KernelColumn = 3;
}

/// Images with some features at each place.
pub type Maps = Tensor<f32, (Example, Channel, Row, Column)>;

/// Added to variances before their roots are taken.
const EPSILON: f32 = 1e-5;
/// How much of the running moments a batch replaces.
const MOMENTUM: f32 = 0.1;

/// A convolution by kernels of 3 x 3, with zeros around the image, then a normalisation:
/// `y[.., Made, r, c] = sum over (Channel, kr, kc) of x[.., Channel, r + kr - 1, c + kc - 1] * kernel[Channel, Made, kr, kc]`.
#[derive(Clone, Parameters)]
pub struct Conv {
    kernel: Tensor<f32, (Channel, Made, KernelRow, KernelColumn)>,
    norm: BatchNorm,
}

impl Conv {
    /// Random kernels, scaled as in He et al. (2015).
    pub fn random(channels: usize, made: usize, seed: u64) -> Self {
        let fan_in = channels * KernelRow::SIZE * KernelColumn::SIZE;
        let kernel = randn((Channel.of(channels), Made.of(made), KernelRow, KernelColumn), seed);
        Conv { kernel: (kernel * (2.0 / fan_in as f32).sqrt()).eval(), norm: BatchNorm::new(made) }
    }

    /// The convolved and normalised images.
    pub fn apply(&self, x: &Maps, mode: &mut Mode) -> Maps {
        let window = Window::new().padding(1);
        let made = conv(x, &self.kernel, Channel, (Row, Column), (KernelRow, KernelColumn), &window);
        self.norm.apply(made.rename(Made, Channel).eval(), mode)
    }

    /// Takes up the moments of a batch, in the order in which [`apply`](Conv::apply) put them down.
    pub fn remember(&mut self, moments: &mut impl Iterator<Item = Moments>) {
        self.norm.running.approach(&moments.next().expect("each layer has put down its moments"));
    }
}

/// The mean and the variance of each channel.
#[derive(Clone, Parameters)]
pub struct Moments {
    mean: Tensor<f32, (Channel,)>,
    var: Tensor<f32, (Channel,)>,
}

impl Moments {
    fn approach(&mut self, batch: &Moments) {
        let mix = |a: &Tensor<f32, (Channel,)>, b: &Tensor<f32, (Channel,)>| (a + (b - a) * MOMENTUM).eval();
        self.mean = mix(&self.mean, &batch.mean);
        self.var = mix(&self.var, &batch.var);
    }
}

/// What normalisations normalise by.
pub enum Mode {
    /// The moments of the batch, which are put down here.
    Training(Vec<Moments>),
    /// The running moments.
    Test,
}

/// `y[.., Channel] = (x - mean[Channel]) / sqrt(var[Channel] + eps) * gain[Channel] + bias[Channel]` (S. Ioffe, C. Szegedy, 2015).
#[derive(Clone, Parameters)]
struct BatchNorm {
    gain: Tensor<f32, (Channel,)>,
    bias: Tensor<f32, (Channel,)>,
    /// Not learned by gradients: a mean over batches.
    #[parameters(state)]
    running: Moments,
}

impl BatchNorm {
    fn new(channels: usize) -> Self {
        let channel = Channel.of(channels);
        let running = Moments { mean: zeros(channel), var: ones(channel) };
        BatchNorm { gain: ones(channel), bias: zeros(channel), running }
    }

    fn apply(&self, x: Maps, mode: &mut Mode) -> Maps {
        match mode {
            Mode::Training(moments) => {
                let normal = x.batch_norm((Example, Row, Column), EPSILON);
                moments.push(Moments { mean: normal.mean.detach(), var: normal.var.detach() });
                (normal.output * &self.gain + &self.bias).eval()
            }
            Mode::Test => {
                let Moments { mean, var } = &self.running;
                (x.batch_norm_with(mean, var, EPSILON) * &self.gain + &self.bias).eval()
            }
        }
    }
}
