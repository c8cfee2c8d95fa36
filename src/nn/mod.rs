//! Building blocks of neural networks: functions and layers.
//!
//! The functions (convolutions, linear maps, pooling, normalization, losses, dropout) work along
//! dims of any tensor. The layers are structs of tensors, generic over the dims that they work
//! along, such as `LayerNorm<(Width,)>`. All dims that a layer does not work along are unchanged.
//! The constructor of a layer takes dims with sizes, and a seed if the weights are random. The
//! method `apply` applies the layer; `MultiHeadAttention` has `among` and `to` instead. Layers
//! implement [`Parameters`](crate::grad::Parameters). Layers with weights also implement `Load`,
//! with the usual parameter names of PyTorch models (feature `safetensors`). [`SwiGlu`] uses only
//! the public interface, so you can copy its code as the start of your own layer.
//!
//! The last type parameter of `LayerNorm`, `GroupNorm`, `Conv`, `ConvTranspose` and
//! `MultiHeadAttention` states whether the layer has a bias. The layer has one unless this
//! parameter is [`NoBias`]. For example, `LayerNorm::without_bias` creates a
//! `LayerNorm<(Width,), f32, NoBias>`. (A `Linear` without a bias is a [`Projection`].)
//!
//! | layer | |
//! |---|---|
//! | [`Linear`], [`Projection`] | a linear map with a bias, and one without |
//! | [`Embedding`] | a table with a row for each index |
//! | [`LayerNorm`], [`RmsNorm`], [`GroupNorm`], [`BatchNorm`] | normalization, with learned scales |
//! | [`Conv`], [`ConvTranspose`] | a convolution along any number of dims, and its transpose |
//! | [`MultiHeadAttention`] | attention between tokens, with a cache of keys and values |
//! | [`Rope`] | positions as rotations of queries and keys |
//! | [`SwiGlu`] | a gated feed-forward network |
//! | [`Lstm`], [`Gru`] | recurrent networks |
//! | [`BiLstm`], [`BiGru`], [`LstmStack`], [`GruStack`], [`BiLstmStack`], [`BiGruStack`] | in both directions, in several layers, and both |

// rustc quotes the line of the bound that a mistake breaks. So the bounds that users are likely to
// break are on the line of the method's name.
#![allow(clippy::multiple_bound_locations)]

pub use typed_dims_core::operators::nn::{dropout, linear, loss, pool};

pub mod attention;
pub mod bias;
pub mod conv;
pub mod embedding;
pub mod glu;
pub mod norm;
pub mod recurrent;
pub mod rope;

#[doc(inline)]
pub use attention::{KeyValues, MultiHeadAttention};
#[doc(inline)]
pub use bias::NoBias;
#[doc(inline)]
pub use conv::{Conv, ConvTranspose};
#[doc(inline)]
pub use embedding::Embedding;
#[doc(inline)]
pub use glu::SwiGlu;
#[doc(inline)]
pub use linear::{Linear, Projection};
#[doc(inline)]
pub use loss::CrossEntropy;
#[doc(inline)]
pub use norm::{BatchNorm, GroupNorm, LayerNorm, NormMode, RmsNorm};
#[doc(inline)]
pub use recurrent::{BiGru, BiGruStack, BiLstm, BiLstmStack, Gru, GruStack, Lstm, LstmStack};
#[doc(inline)]
pub use rope::Rope;

use crate::types::dim::DimList;
use crate::types::scalar::Real;
use crate::types::set::Sorted;

/// The dims that a layer works along: a tuple of declared dims, in the order in which they are
/// declared.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of declared dims in the order of their declaration",
    label = "write the dims in the order in which `dims!` declares them; one dim is `(Width,)`"
)]
pub trait LayerDims: Sorted + DimList + Default + Copy {}

#[diagnostic::do_not_recommend]
impl<D: Sorted + DimList + Default + Copy> LayerDims for D {}

fn element<T: Real>(value: f64) -> T {
    T::from(value).expect("an `f64` can be rounded to any float type")
}

/// A number that is added to a variance, as an element. A positive number is not rounded to 0.
fn epsilon_of<T: Real>(value: f64) -> T {
    let rounded = element::<T>(value);
    if value > 0.0 && rounded == T::zero() { T::min_positive_value() * T::epsilon() } else { rounded }
}
