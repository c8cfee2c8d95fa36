//! The sentence encoder all-MiniLM-L6-v2 in declared dims, with the published weights.
//!
//! [`model`] is the model, [`files`] reads its published folder, and [`text`] (feature `text`)
//! tokenizes sentences.

pub mod files;
pub mod model;
#[cfg(feature = "text")]
pub mod text;
