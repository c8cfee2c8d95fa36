//! A decoder in declared dims, trained from nothing on a text, and sampled with a cache.
//!
//! [`model`] is the decoder, [`text`] has the characters; [`train`] is a training that can be kept in a file, [`report`] has its
//! measurements, and [`sample`] lets the decoder write.

pub mod model;
pub mod report;
pub mod sample;
pub mod text;
pub mod train;
