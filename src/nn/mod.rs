//! Building blocks of neural networks: functions, and layers that have weights.
//!
//! The functions (convolutions, pooling, normalisation, losses, dropout) work along dims of any
//! tensor. The layers are structs of tensors, generic over the dims that they work along, such as
//! `LayerNorm<(Width,)>`; all other dims of a tensor come along. Each has a constructor that takes
//! dims with sizes, and, where weights are random, a seed; a method `apply`;
//! [`Parameters`](crate::grad::Parameters); and `Load`, with the names of PyTorch (feature
//! `safetensors`). They are written on the public interface, so a layer of your own can begin as a
//! copy.
//!
//! The last type parameter of a layer says whether it has a bias. It has one unless you write
//! [`NoBias`](bias::NoBias): `LayerNorm<(Width,), f32, NoBias>`, which `LayerNorm::without_bias`
//! makes. (A `Linear` without a bias is a [`Projection`](linear::Projection).)
//!
//! | layer | |
//! |---|---|
//! | [`Linear`](linear::Linear), [`Projection`](linear::Projection) | a linear map with a bias, and one without |
//! | [`Embedding`](embedding::Embedding) | a row of a table for each index |
//! | [`LayerNorm`](norm::LayerNorm), [`RmsNorm`](norm::RmsNorm), [`GroupNorm`](norm::GroupNorm), [`BatchNorm`](norm::BatchNorm) | normalisation, with learnt scales |
//! | [`Conv`](conv::Conv), [`ConvTranspose`](conv::ConvTranspose) | a convolution along any number of dims, and its transpose |
//! | [`MultiHeadAttention`](attention::MultiHeadAttention) | attention between tokens, with a cache of keys and values |
//! | [`Rope`](rope::Rope) | positions as rotations of queries and keys |
//! | [`SwiGlu`](glu::SwiGlu) | a gated feed-forward network |
//! | [`Lstm`](recurrent::Lstm), [`Gru`](recurrent::Gru) | recurrent networks |

// rustc quotes the line of the bound that a mistake breaks: those of typical mistakes stand in the
// line of the method's name.
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

use crate::types::dim::DimList;
use crate::types::scalar::Real;
use crate::types::set::Sorted;

/// The dims that a layer works along: a tuple of declared dims, in the order in which they are
/// declared.
///
/// The tuple as a value is `D::default()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of declared dims in the order of their declaration",
    label = "expected the dims of a layer; for a layer along one dim, write `(Width,)`"
)]
pub trait LayerDims: Sorted + DimList + Default + Copy {}

#[diagnostic::do_not_recommend]
impl<D: Sorted + DimList + Default + Copy> LayerDims for D {}

/// A number as an element.
fn element<T: Real>(value: f64) -> T {
    T::from(value).expect("a float can be any float, rounded")
}
