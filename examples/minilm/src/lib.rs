//! The sentence encoder all-MiniLM-L6-v2 in declared dims, with the published weights.
//!
//! [`model`] is the model, [`files`] reads its published files, and [`text`] (feature `text`)
//! tokenizes and embeds sentences.

pub mod files;
pub mod model;
#[cfg(feature = "text")]
pub mod text;
