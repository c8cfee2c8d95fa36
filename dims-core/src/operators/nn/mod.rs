//! Operators for neural networks: convolutions, linear maps, pooling, normalisation, losses,
//! dropout.

pub mod bias;
pub mod conv;
mod cross_entropy;
pub mod dropout;
#[doc(hidden)]
pub mod lengths;
pub mod linear;
pub mod loss;
pub mod norm;
pub mod pool;
