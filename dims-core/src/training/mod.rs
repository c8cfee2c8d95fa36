//! Optimizers, schedules, and checkpoints of their state.

#[cfg(feature = "safetensors")]
pub mod checkpoint;
pub mod optim;
