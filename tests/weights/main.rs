//! Weights: the structs that hold them, their first values, and files of them.

#[cfg(feature = "safetensors")]
mod checkpoint;
mod init;
mod parameters;
