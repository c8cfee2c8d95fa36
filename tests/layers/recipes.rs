//! Derives for layers like those of the guide (`docs/book/src/layers.md`): the structs declare no
//! more bounds than their fields need.

use ndarray::Array2;
use typed_dims::file::Stored;
use typed_dims::grad::{grad, value_and_grad};
use typed_dims::nn::{Linear, RmsNorm};
use typed_dims::prelude::*;
use typed_dims::types::brand::Brand;
use typed_dims::types::role::Undenoted;
use typed_dims::types::set::Union;
use typed_dims::types::size::Dyn;

dims! {
    struct Batch;
    struct Gate = 2;
    struct In;
    struct Hidden;
    struct Out;
}

#[derive(Clone, Parameters, Load)]
struct Mlp {
    norm: RmsNorm<(In,)>,
    up: Linear<(In,), (Hidden,)>,
    #[load(axes = (Hidden, Out))]
    down: Tensor<f32, (Hidden, Out)>,
}

#[test]
fn declared_dims() {
    let (up, down) = (Linear::new(In.of(3), Hidden.of(4), 1), ones((Hidden.of(4), Out.of(2))));
    let mlp = Mlp { norm: RmsNorm::new(In.of(3)), up, down };
    assert_eq!(mlp.clone().names(), ["norm.weight", "up.weight", "up.bias", "down"]);
}

#[derive(Clone, Parameters, Load)]
struct Scale<D: AnyDim> {
    #[load(axes = (D,))]
    gain: Tensor<f32, (D,)>,
}

impl<D: AnyDim> Scale<D> {
    fn apply<B: Dims>(&self, x: &Tensor<f32, (D, Rest<B>)>) -> Tensor<f32, (D, Rest<B>)> {
        (x / x.powi(2).mean(D::default()).sqrt() * &self.gain).eval()
    }
}

#[test]
fn one_generic_dim() {
    let scale = Scale::<In> { gain: full(In.of(3), 2.0) };
    let loss = |w: &Scale<In>| {
        let y: Tensor<f32, (Batch, In)> = w.apply(&full((Batch.of(2), In.of(3)), 5.0).seal(In)).unseal();
        y.sum((Batch, In))
    };
    assert_eq!(grad(loss, &scale).gain.order(In), ndarray::array![2.0, 2.0, 2.0]);
}

#[derive(Clone, Parameters, Load)]
struct Layer<I: AnyDim + Before<O>, O: AnyDim + After<I>> {
    #[load(axes = (I, O))]
    weight: Tensor<f32, (I, O)>,
    #[load(default)]
    #[parameters(constant)]
    mask: Option<Tensor<bool, (I, O)>>,
}

#[derive(Clone, Parameters, Load)]
struct Gated<I: AnyDim + Before<O>, O: AnyDim + After<I>>
where
    Gate: Before<I> + Before<O>,
{
    #[load(axes = (Gate, I, O))]
    weight: Tensor<f32, (Gate, I, O)>,
    #[load(axes = (Gate, O))]
    bias: Bias<O>,
    #[load(default)]
    more: Option<Vec<(Bias<O>, Tensor<f32, (Gate, I)>)>>,
    inner: Layer<I, O>,
    #[load(default)]
    #[parameters(constant)]
    mask: Option<Tensor<bool, (Gate, O)>>,
}

type Bias<O> = Tensor<f32, (Gate, O)>;

impl<I: AnyDim + Before<O> + After<Gate>, O: AnyDim + After<I>> Gated<I, O>
where
    Gate: Before<I> + Before<O>,
{
    fn apply<B: Dims>(&self, x: &Tensor<f32, (I, Rest<B>)>) -> Tensor<f32, (O, Rest<B>)> {
        ((x * &self.weight).sum(I::default()) + &self.bias).sum(Gate)
    }
}

#[test]
fn a_dim_of_the_layers_own_before_generic_ones() {
    let inner = Layer::<In, Out> { weight: ones((In.of(3), Out.of(2))), mask: None };
    let (weight, bias) = (ones((Gate, In.of(3), Out.of(2))), zeros((Gate, Out.of(2))));
    let gated = Gated { weight, bias, more: None, inner, mask: None };
    assert_eq!(gated.names(), ["weight", "bias", "inner.weight"]);
    let x = ones::<f32, _>((Batch.of(5), In.of(3)));
    let loss = |w: &Gated<In, Out>| {
        let y: Tensor<f32, (Batch, Out)> = w.apply(&x.seal(In)).unseal();
        (y + w.inner.weight.sum(In)).sum((Batch, Out))
    };
    let (loss, gradient) = value_and_grad(loss, &gated.clone());
    assert_eq!(loss, 5.0 * 2.0 * (6.0 + 3.0));
    assert_eq!(gradient.bias.order((Gate, Out)), Array2::from_elem((2, 2), 5.0));
}

#[derive(Clone, Parameters)]
struct AnyOrder<I, O>
where
    (I, O): SetOf,
{
    weight: Tensor<f32, (I, O)>,
}

#[derive(Clone, Parameters)]
struct Sets<S: Dims, D: SetOf, X: Dims + Union<S>> {
    set: Named<f32, S>,
    dims: Tensor<f32, D>,
    union: Named<f32, X::Out>,
}

#[test]
fn any_dims() {
    let layer = AnyOrder::<Out, In> { weight: ones((In.of(3), Out.of(2))) };
    assert_eq!(layer.clone().count_elements(), 6);
    let (set, dims) = (ones(In.of(3)), ones((In.of(3), Out.of(2))));
    let sets = Sets::<(In,), (Out, In), (Hidden,)> { set, dims, union: ones((In.of(3), Hidden.of(4))) };
    assert_eq!(sets.clone().count_elements(), 3 + 6 + 12);
}

/// The derives add the bounds on `L` and `T`.
#[derive(Clone, Parameters, Load)]
struct Residual<L, T, D: AnyDim>
where
    Gate: Before<D>,
{
    inner: L,
    #[load(name = "others")]
    others: Vec<L>,
    #[load(axes = (Gate, D))]
    scale: Tensor<T, (Gate, D)>,
    #[load(default)]
    #[parameters(constant)]
    mask: Option<Tensor<T, (Gate, D)>>,
}

#[test]
fn generic_layers_and_elements() {
    fn check<T: Stored>(of: impl Fn() -> Residual<Scale<In>, T, Out>) {
        let residual = of();
        assert_eq!(residual.clone().names(), ["inner.gain", "others.0.gain", "scale"]);
    }
    let scale = || Scale::<In> { gain: full(In.of(3), 2.0) };
    check(|| Residual {
        inner: scale(),
        others: vec![scale()],
        scale: ones::<f64, _>((Gate, Out.of(2))),
        mask: None,
    });
}

mod elsewhere {
    typed_dims::prelude::dims! { pub struct Width; }
}

/// The dims of another `dims!` have no fixed order: renaming one needs none.
#[test]
fn a_generic_dim_is_renamed_without_its_order() {
    fn gates<D: AnyDim + Brand<Size = Dyn, Role = Undenoted>, B: Dims>(
        weight: &Tensor<f32, (Gate, In)>,
        x: &Tensor<f32, (D, Rest<B>)>,
    ) -> Tensor<f32, (Gate, Rest<B>)> {
        x.rename(D::default(), In).contract(weight, In)
    }
    let weight = ones((Gate, In.of(3)));
    let x = ones::<f32, _>((Batch.of(4), elsewhere::Width.of(3)));
    let y: Tensor<f32, (Batch, Gate)> =
        gates::<elsewhere::Width, _>(&weight, &x.seal(elsewhere::Width)).unseal();
    assert_eq!(y.order((Batch, Gate)), Array2::from_elem((4, 2), 3.0));
    // A dim can be renamed to itself.
    let x = ones::<f32, _>((In.of(2), Hidden.of(3)));
    assert_eq!((&x).rename(In, In).dims(), [("In", 2), ("Hidden", 3)]);
}
