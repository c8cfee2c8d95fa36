//! Weights: the structs that hold them, initialization, and files.

#[cfg(feature = "safetensors")]
mod checkpoint;
mod init;
mod parameters;
