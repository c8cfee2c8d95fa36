//! The step of a training: optimizers, schedules, and what is kept between steps.

#[cfg(feature = "safetensors")]
pub mod checkpoint;
pub mod optim;
