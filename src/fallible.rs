//! The `try_` forms of common functions, such as [`try_from_vec`] for
//! [`from_vec`](crate::prelude::from_vec). On failure they return a [`DimError`](crate::DimError);
//! the short forms panic with its text.
//!
//! `use typed_dims::fallible::*;` imports the `try_` forms of functions in the prelude, and some
//! others. All other `try_` forms of functions are next to their short forms, such as
//! `grad::try_grad`. The `try_` forms of methods (`a.try_at(..)`) and macros (`try_tensor!`) are in
//! the prelude.
//!
//! ```
//! use typed_dims::fallible::*;
//! use typed_dims::prelude::*;
//!
//! dims! {
//!     pub struct Batch;
//!     pub struct Input = 2;
//! }
//!
//! fn batch(data: Vec<f32>) -> Result<Tensor<f32, (Batch, Input)>, DimError> {
//!     let first = try_from_vec((Batch.of(2), Input), data)?;
//!     let second = try_zeros((Batch.of(1), Input))?;
//!     try_concat(Batch, (first, second))
//! }
//!
//! assert_eq!(batch(vec![1.0, 2.0, 3.0, 4.0])?.size(Batch), 3);
//! assert!(batch(vec![1.0, 2.0, 3.0]).unwrap_err().to_string().contains("4 elements, but 3 were given"));
//! # Ok::<(), DimError>(())
//! ```

pub use crate::batch::try_map_each;
pub use crate::creation::create::{
    try_arange, try_eye, try_from_fn, try_from_vec, try_full, try_full_like, try_linspace, try_ones, try_tri,
    try_zeros,
};
pub use crate::creation::random::{try_categorical, try_rand, try_rand_like, try_randn, try_randn_like};
pub use crate::nn::conv::{try_conv, try_conv_transpose};
pub use crate::operators::attention::try_attention;
pub use crate::operators::custom::try_apply_arrays;
pub use crate::operators::join::{try_concat, try_concat_to, try_stack};
pub use crate::operators::scan::try_scan;
