//! The step of a training: optimizers, schedules, and their state.

#[cfg(feature = "safetensors")]
pub mod checkpoint;
pub mod optim;
