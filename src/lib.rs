//! First-class, statically checked tensor dimensions.

pub use typed_dims_core::*;
pub use typed_dims_macros::dims;
pub use ndarray;

pub mod prelude {
    //! Everything that user code imports: `use typed_dims::prelude::*;`

    pub use crate::bind::{At, Ellipsis};
    pub use crate::brand::{Brand, Rest};
    pub use crate::dim::DimOf;
    pub use crate::elementwise::{Elementwise, iota, select};
    pub use crate::error::DimError;
    pub use crate::named::{Named, Tensor};
    pub use crate::order::OrderExt;
    pub use crate::reduce::Reductions;
    pub use crate::set::Dims;
    pub use crate::tensor::AsTensor;
    pub use ndarray::{self, Array, Array0, Array1, Array2, Array3, Array4, Array5, Array6, ArrayD};
    pub use typed_dims_macros::dims;
    pub use typenum::{U0, U1, U2, U3, U4, U5, U6};
}
