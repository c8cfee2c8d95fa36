//! Linear maps from any dims to any others.

use crate::dim::DimList;
use crate::error::unwrap;
use crate::expr::Binary;
use crate::named::Named;
use crate::rank::Rank0;
use crate::reduce::sum;
use crate::set::list::List;
use crate::set::remove::{Left, Missing, Removal, RemoveAll};
use crate::set::{Dims, NoDim, True, Union};
use kernels::ops;
use kernels::scalar::Num;

/// A linear map along the dims `I` to the dims `O`: `y[.., O] = sum over I of x[.., I] * weight[I, O] + bias[O]`. Whatever other dims `x` has come along.
///
/// ```text
/// struct Attention {
///     query: Linear<(Width,), (Head, HeadDim)>,
///     out: Linear<(Head, HeadDim), (Width,)>,
/// }
///
/// let heads = attention.query.apply(&x);          (Batch, Token, Width) becomes (Batch, Token, Head, HeadDim)
/// ```
///
/// With the feature `safetensors` it can be a field of a struct with `#[derive(Load)]`: the arrays `weight`, with the axes `(O, I)` as PyTorch has them, and
/// `bias`. In memory the weight lies by `(I, O)`, which products read fastest.
///
/// A map without a bias needs no type: it is a tensor, and `(x * &weight).sum(Width)`.
///
/// `I` and `O` list their dims in the order in which they are declared, and have none in common: to map a dim to itself, rename it first.
pub struct Linear<I: Dims, O: Dims + Union<I>, T = f32> {
    /// The weights.
    pub weight: Named<T, <O as Union<I>>::Out>,
    /// What is added.
    pub bias: Named<T, O>,
}

/// The dims of a tensor that has all of `I`, which a map replaces by `O`: then they are `Z`, which rustc infers.
pub trait MappedBy<I, O, Z>: Dims {
    /// The dims of the tensor and of the weights.
    #[doc(hidden)]
    type All: Dims;
}

impl<X, I, O, Z> MappedBy<I, O, Z> for X
where
    X: Dims<List: RemoveAll<I::Brands, X, Out: Removal<Left: List>>> + Union<<O as Union<I>>::Out>,
    I: Dims + DimList,
    O: Dims + Union<I>,
    Left<X, I::Brands>: Union<O>,
    NoDim<Missing<X, I::Brands>>:
        MapsAlong<Missing<X, I::Brands>, X, Then<<Left<X, I::Brands> as Union<O>>::Out> = Z>,
{
    type All = <X as Union<<O as Union<I>>::Out>>::Out;
}

/// `D` is one of the dims `X` of a tensor that is mapped.
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` is not bound in a tensor with dims `{X}`",
    label = "the linear map sums over `{D}`, which this tensor lacks"
)]
pub trait MapsAlong<D, X> {
    /// `Y`, if the condition holds.
    type Then<Y>;
}
#[diagnostic::do_not_recommend]
impl<D, X> MapsAlong<D, X> for True {
    type Then<Y> = Y;
}

impl<I, O, T> Linear<I, O, T>
where
    I: Dims + DimList,
    O: Dims + Union<I>,
    T: Num,
{
    /// The map of a tensor, which has the dims `I`: `sum over I of x * weight + bias`. It runs at once, as one product.
    ///
    /// # Panics
    ///
    /// If a dim has another size in `x` than in the weight or in the bias.
    #[track_caller]
    pub fn apply<X: MappedBy<I, O, Z>, Z: Dims + Union<O, Out = Z>>(&self, x: &Named<T, X>) -> Named<T, Z> {
        let product = Binary { op: ops::Mul, a: &x.expr, b: &self.weight.expr };
        let product: Named<T, X::All, Rank0, _> = Named::from_expr(product);
        let mut out = unwrap(sum::<Named<T, X::All, Rank0, _>, I, Z>(&product.expr));
        if crate::expr::record::is_active() {
            // (Traced tensors are not changed in place.)
            let sum = Binary { op: ops::Add, a: &out.expr, b: &self.bias.expr };
            return unwrap(crate::reduce::evaluated(Named::<T, Z, Rank0, _>::from_expr(sum)));
        }
        out += &self.bias;
        out
    }
}

impl<I: Dims, O: Dims + Union<I>, T: Clone> Clone for Linear<I, O, T> {
    fn clone(&self) -> Self {
        Linear { weight: self.weight.clone(), bias: self.bias.clone() }
    }
}
