//! Published texts about dims, section by section: the README of torchdim, the tests of functorch,
//! ONNX's denotation of dimensions, and Vollo's text on streams.

mod functorch;
mod roles;
mod stream;
mod torchdim;
