//! A small network on a streamed signal: a convolution over windows of time, a layer with constant
//! weights, a mean over time and a softmax. Prints the cost of each operation on hardware that
//! streams one dim.
//!
//! Channels are the streamed dim: `[time, channel!]`. Windows over time are slices, which are free.
//! They are stacked and flattened into one axis, `[time, (tap * channel)!]`, which is contracted
//! with the weights.
//!
//! ```text
//! cargo run --example stream
//! ```

use typed_dims::prelude::*;
use typed_dims::tensors::stream::ledger;

dims! {
    /// Samples of the signal.
    pub struct Time;
    /// Values of each sample.
    pub struct Channel;
    /// Samples in a window.
    pub struct Tap = 3;
    /// The values of a window.
    pub struct Patch;
    /// Features of the convolution.
    pub struct Feature;
    /// Outputs of the network.
    pub struct Class;
    /// The axis of size 1 that a reduction leaves.
    pub struct One = 1;
}

/// `out[t, feature!] = bias[feature] + sum over tap and channel of weight[tap, channel, feature] * x[t + tap, channel!]`
fn convolution(
    x: &Stream<f32, (Time, Channel), Channel>,
    weight: &Tensor<f32, (Tap, Channel, Feature)>,
    bias: &Tensor<f32, (Feature,)>,
) -> Stream<f32, (Time, Feature), Feature> {
    let steps = x.size(Time) - (Tap::SIZE - 1);
    let taps: Vec<_> = (0..Tap::SIZE).map(|tap| x.slice(Time, tap..tap + steps)).collect();
    let windows: Stream<f32, (Time, Tap, Channel), Channel> = Stream::stack_after(Time, Tap, &taps);
    let patches: Stream<f32, (Time, Patch), Patch> = windows.flatten((Tap, Channel), Patch);
    patches.contract(weight.flatten((Tap, Channel), Patch), Patch) + bias
}

/// `logits[class!] = mean over time of sum over feature of weight[feature, class] * max(x[time, feature!], 0)`
fn head(
    x: &Stream<f32, (Time, Feature), Feature>,
    weight: &Tensor<f32, (Feature, Class)>,
) -> Stream<f32, (Class,), Class> {
    x.relu().contract(weight, Feature).mean(Time)
}

/// `e^x / sum of e^x` along the streamed dim.
fn softmax(x: &Stream<f32, (Class,), Class>) -> Stream<f32, (Class,), Class> {
    let classes = Class.of(x.size(Class));
    let exp = (x - x.max_keepdim(Class, One).broadcast(One, classes)).exp();
    &exp / exp.sum_keepdim(Class, One).broadcast(One, classes)
}

fn main() {
    let signal = from_fn((Time.of(16), Channel.of(2)), |(t, c)| (t as f32 * (0.3 + c as f32 * 0.4)).sin());
    let weight = randn::<f32, _>((Tap, Channel.of(2), Feature.of(8)), 1).eval();
    let bias = zeros::<f32, _>(Feature.of(8));
    let last = randn::<f32, _>((Feature.of(8), Class.of(4)), 2).eval();

    let x = signal.stream((Time, Channel), Channel);
    let (classes, ledger) = ledger(|| softmax(&head(&convolution(&x, &weight, &bias), &last)));
    println!("{ledger}\n");
    println!("{classes:.3?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use typed_dims::tensors::stream::CostClass;

    #[test]
    fn the_convolution_is_that_of_the_library() {
        let signal = randn::<f32, _>((Time.of(9), Channel.of(2)), 3).eval();
        let weight = randn::<f32, _>((Tap, Channel.of(2), Feature.of(5)), 4).eval();
        let bias = randn::<f32, _>(Feature.of(5), 5).eval();
        let expected =
            (conv(&signal, &weight, Channel, Time, Tap, &Window::new()) + &bias).order((Time, Feature));
        let out = convolution(&signal.stream((Time, Channel), Channel), &weight, &bias).to_array();
        assert_eq!(out.shape(), expected.shape());
        out.iter().zip(&expected).for_each(|(out, expected)| assert!((out - expected).abs() < 1e-5));
    }

    #[test]
    fn windows_are_free_and_no_weight_is_dynamic() {
        let x = ones::<f32, _>((Time.of(9), Channel.of(2))).stream((Time, Channel), Channel);
        let weight = ones::<f32, _>((Tap, Channel.of(2), Feature.of(5)));
        let (_, ledger) = ledger(|| convolution(&x, &weight, &zeros(Feature.of(5))));
        // Three slices and their stack; then flattening, contraction and bias.
        assert_eq!([CostClass::Free, CostClass::Compute].map(|class| ledger.count(class)), [4, 3]);
        assert_eq!((ledger.entries.len(), ledger.dynamic_weights()), (7, 0));
    }

    #[test]
    fn classes_are_chances() {
        let x = from_vec(Class.of(3), vec![1.0, 3.0, 2.0]).stream(Class, Class);
        let chances = softmax(&x).to_array();
        assert!((chances.sum() - 1.0).abs() < 1e-6 && chances[1] > chances[2] && chances[2] > chances[0]);
    }
}
