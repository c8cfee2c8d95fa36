//! Loops over time: an LSTM, and oscillators.

use super::{Step, candle_step, joined, scaled};
use crate::bench::{Bench, Outcome, candle};
use candle_core::{DType, Tensor as Candle};
use std::cell::RefCell;
use std::sync::Arc;
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! {
    struct Time;
    struct Example;
    struct Input;
    struct Gate;
    struct State;
    struct Next;
    struct N;
}

/// An LSTM. The input, forget, cell and output gates are stored along `Gate`.
#[derive(Parameters)]
struct Lstm {
    input: Tensor<f32, (Input, Gate, Next)>,
    recurrent: Tensor<f32, (State, Gate, Next)>,
    bias: Tensor<f32, (Gate, Next)>,
}

impl Lstm {
    fn loss(&self, x: &Tensor<f32, (Time, Example, Input)>) -> Tensor<f32, ()> {
        let inputs = ((x * &self.input).sum(Input) + &self.bias).eval();
        let (examples, state) = (Example.of(x.size(Example)), self.bias.size(Next));
        let mut h = zeros::<f32, _>((examples, State.of(state)));
        let mut c = zeros::<f32, _>((examples, Next.of(state)));
        for time in 0..x.size(Time) {
            let gates = ((&h * &self.recurrent).sum(State) + (&inputs).index(Time, time)).eval();
            let gate = |at: usize| (&gates).index(Gate, at);
            c = (gate(1).sigmoid() * &c + gate(0).sigmoid() * gate(2).tanh()).eval();
            h = (gate(3).sigmoid() * (&c).tanh()).rename(Next, State).eval();
        }
        h.square().sum((Example, State))
    }
}

/// Steps of the LSTM, examples, and features of the input and of the state.
const TIMES: usize = 32;
const EXAMPLES: usize = 32;
const FEATURES: usize = 128;

pub fn lstm(bench: &mut Bench) {
    let x = bench.input::<f32, _>("x", (TIMES, EXAMPLES, FEATURES));
    let small = |weight: Arc<Array2<f32>>| scaled(&weight, 0.05);
    let [input, recurrent] =
        ["input", "recurrent"].map(|name| small(bench.input(name, (FEATURES, 4 * FEATURES))));
    let bias = bench.input::<f32, _>("bias", 4 * FEATURES);
    {
        let by_gate = |weight: &Array2<f32>| {
            weight.to_shape((FEATURES, 4, FEATURES)).expect("the sizes fit").into_owned()
        };
        let bias = bias.to_shape((4, FEATURES)).expect("the sizes fit").into_owned();
        let lstm = RefCell::new(Lstm {
            input: by_gate(&input).into_tensor((Input, Gate, Next)),
            recurrent: by_gate(&recurrent).into_tensor((State, Gate, Next)),
            bias: bias.into_tensor((Gate, Next)),
        });
        let x = (*x).clone().into_tensor((Time, Example, Input));
        bench.peer("typed-dims", move || {
            let step = value_and_grad(|lstm| lstm.loss(&x), &mut *lstm.borrow_mut());
            Step::new(step, |own| {
                let input = (&own.input).order((Input, Gate, Next));
                let recurrent = (&own.recurrent).order((State, Gate, Next));
                joined(&[&input, &recurrent, &(&own.bias).order((Gate, Next))])
            })
        });
    }
    // In both libraries below, one product of the inputs per time step is faster than one product
    // for all time steps, where the gradient of each slice would be as large as the whole.
    #[cfg(feature = "burn")]
    {
        use super::in_burn::{constant, gradients, variable};
        use burn::tensor::{Tensor, activation::sigmoid, module::linear};
        let x: Vec<Tensor<2>> = constant::<3, _>(&*x).iter_dim(0).map(|input| input.squeeze_dim(0)).collect();
        let [input, recurrent] = [&input, &recurrent].map(variable::<2, _>);
        let bias = variable::<1, _>(&*bias);
        bench.peer("burn", move || {
            let device = bias.device();
            let [mut h, mut c] = [(); 2].map(|()| Tensor::<2>::zeros([EXAMPLES, FEATURES], &device));
            for x in &x {
                let gates =
                    linear(x.clone(), input.clone(), Some(bias.clone())) + linear(h, recurrent.clone(), None);
                let gates = gates.chunk(4, 1).try_into();
                let [enter, forget, cell, leave]: [Tensor<2>; 4] = gates.expect("there are four gates");
                c = sigmoid(forget) * c + sigmoid(enter) * cell.tanh();
                h = sigmoid(leave) * c.clone().tanh();
            }
            gradients!(h.square().sum(), input, recurrent, bias)
        });
    }
    let x = candle(&x);
    candle_step(bench, vec![candle(&input), candle(&recurrent), candle(&bias)], move |by| {
        let zeros = Candle::zeros((EXAMPLES, FEATURES), DType::F32, x.device())?;
        let (mut h, mut c) = (zeros.clone(), zeros);
        for time in 0..TIMES {
            let inputs = x.get(time)?.matmul(&by[0])?.broadcast_add(&by[2])?;
            let gates = (inputs + h.matmul(&by[1])?)?.chunk(4, 1)?;
            let sigmoid = |at: usize| candle_nn::ops::sigmoid(&gates[at]);
            c = ((sigmoid(1)? * c)? + (sigmoid(0)? * gates[2].tanh()?)?)?;
            h = (sigmoid(3)? * c.tanh()?)?;
        }
        h.sqr()?.sum_all()
    });
}

/// Damped oscillators with semi-implicit Euler steps.
pub fn oscillators(bench: &mut Bench) {
    let x = bench.input::<f32, _>("x", 64);
    let stiffness = bench.input::<f32, _>("stiffness", 64);
    {
        let x = (*x).clone().into_tensor(N);
        let stiffness = RefCell::new((*stiffness).clone().into_tensor(N));
        bench.peer("typed-dims", move || {
            let loss = |k: &Tensor<f32, (N,)>| {
                let (mut x, mut v) = (x.clone(), zeros::<f32, _>(N.of(64)));
                for _ in 0..100 {
                    v = (&v - (k * &x + &v * 0.1) * 0.01).eval();
                    x = (&x + &v * 0.01).eval();
                }
                x.square().sum(N)
            };
            Step::new(value_and_grad(|k| loss(k), &mut *stiffness.borrow_mut()), |own| {
                own.order(N).elements()
            })
        });
    }
    #[cfg(feature = "burn")]
    {
        use super::in_burn::{constant, gradients, variable};
        use burn::tensor::Tensor;
        let (start, stiffness) = (constant::<1, _>(&*x), variable::<1, _>(&*stiffness));
        bench.peer("burn", move || {
            let (mut x, mut v) = (start.clone(), Tensor::<1>::zeros([64], &start.device()));
            for _ in 0..100 {
                v = v.clone() - (stiffness.clone() * x.clone() + v * 0.1) * 0.01;
                x = x + v.clone() * 0.01;
            }
            gradients!(x.square().sum(), stiffness)
        });
    }
    let start = candle(&x);
    candle_step(bench, vec![candle(&stiffness)], move |by| {
        let (mut x, mut v) = (start.clone(), start.zeros_like()?);
        for _ in 0..100 {
            v = (&v - ((by[0].as_tensor() * &x)? + (&v * 0.1)?)? * 0.01)?;
            x = (x + (&v * 0.01)?)?;
        }
        x.sqr()?.sum_all()
    });
}
