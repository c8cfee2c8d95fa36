//! Gradients of functions of tensors.
//!
//! The function is called once with traced tensors, and its operations are recorded
//! ([`kernels::trace`]). Then the recorded steps are replayed in reverse.
//!
//! ```
//! use typed_dims::grad::{grad, value_and_grad};
//! use typed_dims::prelude::*;
//!
//! dims! { pub struct Pixel; pub struct Class; pub struct Example; }
//!
//! let images = from_vec((Example.of(2), Pixel.of(2)), vec![1.0, 2.0, 3.0, 4.0]);
//! let w = from_vec((Pixel.of(2), Class.of(1)), vec![0.5, -0.5]);
//!
//! let dw = grad(|w| (&images * w).sum((Example, Pixel, Class)), &w);          // has the type of `w`
//! assert_eq!(dw.order((Pixel, Class)), ndarray::array![[4.0], [6.0]]);
//!
//! let (value, _) = value_and_grad(|w| (&images * w).sum(Pixel).square().sum((Example, Class)), &w);
//! assert_eq!(value, 0.5);
//! ```
//!
//! * The gradient has the type of its parameter, which implements [`Parameters`].
//! * Captured tensors are constants.
//! * Integers and the results of comparisons and of rounding are constants.
//! * Converting a traced tensor to an array (`order`) or a number, writing it to a file or calling
//!   a closure on its elements (`map`) is an error, because the gradient would be lost. Use
//!   `x.detach()` if no gradient is wanted.

#[doc(hidden)]
pub mod lent;
pub mod parameters;

#[cfg(feature = "std")]
mod blocks;
#[cfg(feature = "std")]
mod custom;
#[cfg(feature = "std")]
mod forward;
#[cfg(feature = "std")]
mod inputs;
#[cfg(feature = "std")]
mod jacobian;
#[cfg(feature = "std")]
mod jacobian_dims;
#[cfg(feature = "std")]
mod loss;
#[cfg(feature = "std")]
mod reverse;
#[cfg(feature = "std")]
mod variables;

#[cfg(feature = "std")]
pub use blocks::{HessianBlocks, HessianInputs, JacobianBlocks, JacobianInputs};
#[cfg(feature = "std")]
pub use custom::{checkpoint, custom_vjp, try_checkpoint, try_custom_vjp};
#[cfg(feature = "std")]
pub use forward::{hvp, jvp, try_hvp, try_jvp};
#[cfg(feature = "std")]
pub use inputs::Inputs;
#[cfg(feature = "std")]
pub use jacobian::{hessian, hessian_primed, jacobian, try_hessian, try_hessian_primed, try_jacobian};
#[cfg(feature = "std")]
pub use loss::ScalarLoss;
pub use parameters::Parameters;
#[cfg(feature = "std")]
pub use reverse::{
    Pullback, grad, loss_and_grad, loss_and_grad_with, try_grad, try_loss_and_grad, try_loss_and_grad_with,
    try_value_and_grad, try_value_and_grad_with, try_vjp, value_and_grad, value_and_grad_with, vjp,
};

impl<T, S: crate::types::set::Dims, R: crate::types::rank::Rank> crate::tensors::named::Named<T, S, R> {
    /// All elements in memory order, including those that the axes skip.
    #[doc(hidden)]
    pub fn memory(&self) -> &[T] {
        self.expr.all()
    }
}
