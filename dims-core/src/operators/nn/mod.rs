//! Operators for neural networks: convolutions, linear maps, pooling, normalization, losses,
//! dropout.

pub mod bias;
#[doc(hidden)]
pub mod checks;
pub mod conv;
mod cross_entropy;
pub mod dropout;
pub mod linear;
pub mod loss;
pub mod norm;
pub mod pool;
