//! Weights: the structs that hold them, initialisation, and files.

#[cfg(feature = "safetensors")]
mod checkpoint;
mod init;
mod parameters;
