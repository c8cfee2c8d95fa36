//! What neural networks are made of: convolutions, pooling, normalisation, losses, dropout.

pub mod conv;
pub mod dropout;
pub mod loss;
pub mod norm;
pub mod pool;
