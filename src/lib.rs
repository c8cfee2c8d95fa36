//! First-class, statically checked tensor dimensions.

pub use ndarray;
pub use typed_dims_core::*;
pub use typed_dims_macros::dims;

pub mod prelude {
    //! Everything that user code imports: `use typed_dims::prelude::*;`

    pub use crate::assign::OrderInto;
    pub use crate::bind::{At, AtMut, Ellipsis};
    pub use crate::brand::{Brand, Rest};
    pub use crate::convert::IntoTensor;
    pub use crate::create::{eye, from_fn, from_vec, full, ones, try_from_vec, zeros};
    pub use crate::dim::DimOf;
    pub use crate::elementwise::{Elementwise, iota, select};
    pub use crate::error::DimError;
    pub use crate::join::{concat, stack, try_concat, try_stack};
    pub use crate::named::{Named, Tensor};
    pub use crate::order::OrderExt;
    pub use crate::plan::explain::explain;
    #[cfg(feature = "rand")]
    pub use crate::random::random;
    pub use crate::reduce::Reductions;
    pub use crate::restructure::Restructure;
    pub use crate::set::Dims;
    pub use crate::tensor::AsTensor;
    pub use ndarray::{self, Array, Array0, Array1, Array2, Array3, Array4, Array5, Array6, ArrayD};
    pub use typed_dims_macros::dims;
    pub use typenum::{U0, U1, U2, U3, U4, U5, U6};
}
