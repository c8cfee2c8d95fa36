//! Training steps: the value and the gradient of a loss. The gradients are compared.

mod attention;
mod convolution;
mod elementwise;
mod lookup;
mod loops;
mod mlp;

pub use attention::{block, causal};
pub use convolution::conv_block;
pub use elementwise::{chain, cross_entropy, layer_norm};
pub use lookup::embedding;
pub use loops::{lstm, oscillators};
pub use mlp::{mlp_32, mlp_64, mlp_256};

use crate::bench::{Bench, Outcome};
use candle_core::{Tensor as Candle, Var};
use ndarray::{Array, Dimension};

/// A loss and a gradient. The elements of the gradient are the result.
struct Step<G> {
    _loss: f32,
    gradient: G,
    elements: fn(&G) -> Vec<f64>,
}

impl<G> Step<G> {
    fn new((loss, gradient): (f32, G), elements: fn(&G) -> Vec<f64>) -> Self {
        Step { _loss: loss, gradient, elements }
    }
}

impl<G> Outcome for Step<G> {
    fn elements(&self) -> Vec<f64> {
        (self.elements)(&self.gradient)
    }
}

/// The elements of some arrays, concatenated.
fn joined(parts: &[&dyn Outcome]) -> Vec<f64> {
    parts.iter().flat_map(|part| part.elements()).collect()
}

fn scaled<D: Dimension>(array: &Array<f32, D>, by: f32) -> Array<f32, D> {
    array.mapv(|element| by * element)
}

/// Candle's gradients for some variables.
struct Gradients(Vec<Candle>);

impl Outcome for Gradients {
    fn elements(&self) -> Vec<f64> {
        self.0.iter().flat_map(Outcome::elements).collect()
    }
}

fn candle_step(
    bench: &mut Bench,
    by: Vec<Candle>,
    loss: impl Fn(&[Var]) -> candle_core::Result<Candle> + 'static,
) {
    let by: Vec<Var> = by.iter().map(|x| Var::from_tensor(x).expect("there is memory")).collect();
    let step = move || -> candle_core::Result<Gradients> {
        let loss = loss(&by)?;
        let mut store = loss.backward()?;
        std::hint::black_box(loss.to_scalar::<f32>()?);
        Ok(Gradients(
            by.iter().map(|x| store.remove(x).expect("the loss depends on the parameter")).collect(),
        ))
    };
    bench.peer("candle", move || step().expect("shapes agree"));
}

/// What the burn implementations of the steps share.
#[cfg(feature = "burn")]
mod in_burn {
    use super::Outcome;
    use burn::tensor::{Device, Int, Tensor, TensorData};
    use ndarray::{Array, Array1, Dimension};

    pub fn variable<const R: usize, D: Dimension>(array: &Array<f32, D>) -> Tensor<R> {
        crate::bench::burn::<R, _, _>(array).autodiff().require_grad()
    }

    pub fn constant<const R: usize, D: Dimension>(array: &Array<f32, D>) -> Tensor<R> {
        crate::bench::burn::<R, _, _>(array).autodiff()
    }

    pub fn ids(ids: &Array1<usize>) -> Tensor<1, Int> {
        let data: Vec<i64> = ids.iter().map(|&id| id as i64).collect();
        Tensor::from_data(TensorData::new(data, [ids.len()]), &Device::flex().autodiff())
    }

    /// Gradients for some variables.
    pub struct Gradients(pub Vec<Box<dyn Outcome>>);

    impl Outcome for Gradients {
        fn elements(&self) -> Vec<f64> {
            self.0.iter().flat_map(|gradient| gradient.elements()).collect()
        }
    }

    /// Reads a loss and computes its gradients for some variables.
    macro_rules! gradients {
        ($loss:expr, $($by:expr),*) => {{
            let loss = $loss;
            let mut all = loss.backward();
            std::hint::black_box(loss.into_scalar::<f32>());
            $crate::cases::steps::in_burn::Gradients(vec![
                $(Box::new($by.grad_remove(&mut all).expect("the loss depends on the parameter"))),*
            ])
        }};
    }
    pub(crate) use gradients;
}
