//! A small residual network in declared dims, trained on handwritten digits.
//!
//! [`layers`] has the convolution with its normalization, [`model`] the network, [`data`] the
//! images and their augmentation, [`train`] the training, and [`report`] its measurements.

pub mod data;
pub mod layers;
pub mod model;
pub mod report;
pub mod train;
