//! Optimizers, learning rate schedules, and checkpoints.

#[cfg(feature = "safetensors")]
pub mod checkpoint;
pub mod optim;
