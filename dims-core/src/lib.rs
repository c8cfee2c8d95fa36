//! The types, expressions, plans and kernels of `typed-dims`. Use that crate; this one holds what it re-exports.

pub mod assign;
pub mod bind;
pub mod brand;
pub mod convert;
pub mod create;
pub mod dim;
pub mod elementwise;
pub mod error;
pub mod expr;
pub mod join;
pub mod kernel;
pub mod named;
pub mod ops;
pub mod order;
pub mod plan;
#[cfg(feature = "rand")]
pub mod random;
pub mod rank;
pub mod reduce;
pub mod restructure;
pub mod scalar;
#[cfg(feature = "serde")]
mod serialize;
pub mod set;
pub mod show;
pub mod size;
pub mod storage;
pub mod tensor;
mod tuples;

pub use brand::{Brand, Declared, Rest};

/// What macros expand to. Not part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::brand::{Brand, Declared, Element, digits, keys_of};
    pub use crate::declared_dim_operators;
    pub use crate::dim::{Dim, anchor, tie};
    pub use crate::set::Keys;
    pub use crate::size::{Dyn, Static};
    pub use crate::storage::axes::Axis;
    pub use generativity::Id;
    pub use typenum;
}
