use typed_dims::prelude::*;

dims! {
    pub struct In;
    pub struct Out;
}

#[derive(Clone)]
pub struct Linear {
    pub weight: Tensor<f32, (Out, In)>,
    pub bias: Tensor<f32, (Out,)>,
}

impl Linear {
    pub fn forward<B: Dims>(&self, x: &Tensor<f32, (In, Rest<B>)>) -> Tensor<f32, (Out, Rest<B>)> {
        ((x * &self.weight).sum(In) + &self.bias).eval()
    }
}

#[test]
fn compiles_and_runs() {
    let weight = ones::<f32, _>((Out.of(3), In.of(2)));
    let layer = Linear { weight, bias: zeros(Out.of(3)) };
    let _ = (layer.clone(), Linear::forward::<()>);
}
