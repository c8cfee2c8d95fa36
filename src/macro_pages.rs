//! The documentation pages in `dims-macros/docs`, as doc tests.
//!
//! They run in this crate. To run them in `dims-macros`, that crate would have to depend on this
//! one, and cargo would build the library twice.

#[doc = include_str!("../dims-macros/docs/batched.md")]
mod batched {}

#[doc = include_str!("../dims-macros/docs/dims.md")]
mod dims {}

#[doc = include_str!("../dims-macros/docs/einsum.md")]
mod einsum {}

#[doc = include_str!("../dims-macros/docs/einsum_path.md")]
mod einsum_path {}

#[doc = include_str!("../dims-macros/docs/gather.md")]
mod gather {}

#[cfg(feature = "safetensors")]
#[doc = include_str!("../dims-macros/docs/load.md")]
mod load {}

#[cfg(feature = "onnx")]
#[doc = include_str!("../dims-macros/docs/onnx_dims.md")]
mod onnx_dims {}

#[doc = include_str!("../dims-macros/docs/pack.md")]
mod pack {}

#[doc = include_str!("../dims-macros/docs/parameters.md")]
mod parameters {}

#[doc = include_str!("../dims-macros/docs/parse_shape.md")]
mod parse_shape {}

#[doc = include_str!("../dims-macros/docs/rearrange.md")]
mod rearrange {}

#[doc = include_str!("../dims-macros/docs/rearrange_view.md")]
mod rearrange_view {}

#[doc = include_str!("../dims-macros/docs/reduce.md")]
mod reduce {}

#[doc = include_str!("../dims-macros/docs/repeat.md")]
mod repeat {}

#[doc = include_str!("../dims-macros/docs/roles.md")]
mod roles {}

#[doc = include_str!("../dims-macros/docs/tensor.md")]
mod tensor {}

#[doc = include_str!("../dims-macros/docs/try_tensor.md")]
mod try_tensor {}

#[doc = include_str!("../dims-macros/docs/unpack.md")]
mod unpack {}
