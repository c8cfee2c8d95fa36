//! A network of two layers in declared dims, trained on handwritten digits.
//!
//! [`model`] has the network, [`data`] the images, and [`train`] the training.

pub mod data;
pub mod model;
pub mod train;
