//! A small residual network in declared dims, trained on handwritten digits.
//!
//! [`layers`] has the convolution and the normalisation, [`model`] the network, [`data`] the images
//! and how they are varied, [`train`] the training, and [`report`] its measurements.

pub mod data;
pub mod layers;
pub mod model;
pub mod report;
pub mod train;
