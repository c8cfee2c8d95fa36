//! The sentence encoder all-MiniLM-L6-v2 in declared dims, on the weights as they were published.
//!
//! [`model`] is the model, [`files`] reads the folder that it is published in, and [`text`]
//! (feature `text`) turns sentences into numbers.

pub mod files;
pub mod model;
#[cfg(feature = "text")]
pub mod text;
