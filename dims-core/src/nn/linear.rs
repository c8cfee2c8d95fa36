//! Linear maps from any dims to any others.

use crate::dim::DimList;
use crate::named::Named;
use crate::reduce::Reductions;
use crate::scalar::Num;
use crate::set::union::Union;
use crate::set::{Dims, DimsOf};

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

impl<I, O, T> Linear<I, O, T>
where
    I: Dims + DimList + Default,
    O: Dims + Union<I>,
    T: Num,
{
    /// The map of a tensor: `sum over I of x * weight + bias`. It runs at once, as one product.
    ///
    /// # Panics
    ///
    /// If a dim has another size in `x` than in the weight or in the bias.
    #[track_caller]
    pub fn apply<X, Y, Z>(&self, x: &Named<T, X>) -> Named<T, Z>
    where
        X: Dims + Union<<O as Union<I>>::Out, Out = Y>,
        I: DimsOf<Y, Z>,
        Y: Dims,
        Z: Dims + Union<O, Out = Z>,
    {
        let mut out = (x * &self.weight).sum(I::default());
        out += &self.bias;
        out
    }
}

impl<I: Dims, O: Dims + Union<I>, T: Clone> Clone for Linear<I, O, T> {
    fn clone(&self) -> Self {
        Linear { weight: self.weight.clone(), bias: self.bias.clone() }
    }
}

#[cfg(feature = "safetensors")]
#[diagnostic::do_not_recommend]
impl<'a, I, O, T> crate::file::load::Load<'a> for Linear<I, O, T>
where
    I: Dims + DimList,
    O: Dims + DimList + Union<I>,
    T: crate::file::Stored,
{
    fn load(from: &mut crate::file::load::Loader<'_, 'a>) -> Option<Self> {
        // What is wrong with the bias is told beside what is wrong with the weight.
        let weight = from.field("weight", |from| from.tensor_laid_out::<_, (O, I), (I, O)>());
        let bias = from.field("bias", |from| from.tensor::<_, (O,)>());
        Some(Linear { weight: weight?, bias: bias? })
    }
}
