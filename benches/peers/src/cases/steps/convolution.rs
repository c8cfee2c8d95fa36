//! A convolution, batch normalization and `relu`.

use super::{Step, candle_step, joined, scaled};
use crate::bench::{Bench, candle};
use candle_core::Tensor as Candle;
use candle_nn::{BatchNorm, ModuleT};
use std::cell::RefCell;
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel;
    struct Filter;
    struct H;
    struct W;
    struct Kh;
    struct Kw;
}

#[derive(Parameters)]
struct ConvBlock {
    kernel: Tensor<f32, (Channel, Filter, Kh, Kw)>,
    gain: Tensor<f32, (Filter,)>,
    bias: Tensor<f32, (Filter,)>,
}

type Images = Tensor<f32, (Batch, Channel, H, W)>;

impl ConvBlock {
    fn loss(&self, x: &Images, weight: &Tensor<f32, (Batch, Filter, H, W)>) -> Tensor<f32, ()> {
        let y = conv(x, &self.kernel, Channel, (H, W), (Kh, Kw), &Window::new().padding(1));
        let normal = y.batch_norm((Batch, H, W), 1e-5).output;
        ((normal * &self.gain + &self.bias).relu() * weight).sum((Batch, Filter, H, W))
    }
}

pub fn conv_block(bench: &mut Bench) {
    let shape = (8, 32, 28, 28);
    let [x, weight] = ["x", "weight"].map(|name| bench.input::<f32, _>(name, shape));
    let kernel = scaled(&bench.input("kernel", (32, 32, 3, 3)), 0.05);
    let [gain, bias] = ["gain", "bias"].map(|name| bench.input::<f32, _>(name, 32));
    {
        let by_channel = kernel.view().permuted_axes([1, 0, 2, 3]).as_standard_layout().into_owned();
        let [gain, bias] = [&gain, &bias].map(|x| (**x).clone().into_tensor(Filter));
        let block = ConvBlock { kernel: by_channel.into_tensor((Channel, Filter, Kh, Kw)), gain, bias };
        let by = RefCell::new((block, (*x).clone().into_tensor((Batch, Channel, H, W))));
        let weight = (*weight).clone().into_tensor((Batch, Filter, H, W));
        bench.peer("typed-dims", move || {
            let step = value_and_grad(|(block, x)| block.loss(x, &weight), &mut *by.borrow_mut());
            Step::new(step, |(block, x)| {
                let kernel = (&block.kernel).order((Filter, Channel, Kh, Kw));
                let (gain, bias) = ((&block.gain).order(Filter), (&block.bias).order(Filter));
                joined(&[&kernel, &gain, &bias, &x.order((Batch, Channel, H, W))])
            })
        });
    }
    #[cfg(feature = "burn")]
    {
        use super::in_burn::{constant, gradients, variable};
        use burn::tensor::activation::relu;
        use burn::tensor::module::{batch_norm_train, conv2d};
        use burn::tensor::ops::ConvOptions;
        let (x, weight) = (variable::<4, _>(&*x), constant::<4, _>(&*weight));
        let kernel = variable::<4, _>(&kernel);
        let [gain, bias] = [&gain, &bias].map(|x| variable::<1, _>(&**x));
        bench.peer("burn", move || {
            let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
            let y = conv2d(x.clone(), kernel.clone(), None, options);
            let normal = batch_norm_train(y, gain.clone(), bias.clone(), 1e-5).output;
            gradients!((relu(normal) * weight.clone()).sum(), kernel, gain, bias, x)
        });
    }
    let by = vec![candle(&kernel), candle(&gain), candle(&bias), candle(&x)];
    let weight = candle(&weight);
    let [mean, variance] = [Candle::zeros, Candle::ones]
        .map(|filled| filled(32, candle_core::DType::F32, weight.device()).expect("there is memory"));
    candle_step(bench, by, move |by| {
        let (gain, bias) = (by[1].as_tensor().clone(), by[2].as_tensor().clone());
        let norm = BatchNorm::new(32, mean.clone(), variance.clone(), gain, bias, 1e-5)?;
        let y = norm.forward_t(&by[3].conv2d(&by[0], 1, 1, 1, 1)?, true)?.relu()?;
        (y * &weight)?.sum_all()
    });
}
