//! The step of a training: optimizers, schedules, and what is kept between steps.

pub mod optim;
