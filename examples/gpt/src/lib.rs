//! A decoder in declared dims, trained from scratch on a text, and sampled with a key-value cache.
//!
//! [`model`] is the decoder, [`text`] the vocabulary and the passages, [`train`] the training with
//! its checkpoints, [`report`] the measurements of the training, and [`sample`] the sampling.

pub mod model;
pub mod report;
pub mod sample;
pub mod text;
pub mod train;
