//! Gradients of functions of tensors.
//!
//! A function is differentiated as it is: it is called once with traced tensors, and the operations that run are recorded
//! ([`kernels::trace`]), and the steps are gone through from the last one to the first.
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
//! * The gradient of a parameter has its type. [`Parameters`] says which tensors a value is made of.
//! * Tensors that the function takes from elsewhere are constants.
//! * Comparisons, rounding and integers have no slope; values computed from them are constants.
//! * What leaves the recorded program is an error, not a gradient of zero: arrays (`order`), numbers, files, closures (`map`). `x.detach()` says that
//!   none is wanted.

#[doc(hidden)]
pub mod lent;
pub mod parameters;

#[cfg(feature = "std")]
mod custom;
#[cfg(feature = "std")]
mod forward;
#[cfg(feature = "std")]
mod inputs;
#[cfg(feature = "std")]
mod jacobian;
#[cfg(feature = "std")]
mod loss;
#[cfg(feature = "std")]
mod reverse;
#[cfg(feature = "std")]
mod variables;

#[cfg(feature = "std")]
pub use custom::{checkpoint, custom_vjp, try_checkpoint, try_custom_vjp};
#[cfg(feature = "std")]
pub use forward::{hvp, jvp, try_hvp, try_jvp};
#[cfg(feature = "std")]
pub use inputs::Inputs;
#[cfg(feature = "std")]
pub use jacobian::{hessian, jacobian, try_hessian, try_jacobian};
#[cfg(feature = "std")]
pub use loss::ScalarLoss;
pub use parameters::Parameters;
#[cfg(feature = "std")]
pub use reverse::{
    Pullback, grad, loss_and_grad, loss_and_grad_with, try_grad, try_loss_and_grad, try_loss_and_grad_with,
    try_value_and_grad, try_value_and_grad_with, try_vjp, value_and_grad, value_and_grad_with, vjp,
};

impl<T, S: crate::types::set::Dims, R: crate::types::rank::Rank> crate::tensors::named::Named<T, S, R> {
    /// All elements as they lie in memory, also those that the dims leave out. (Tests bind them in other ways: the trace belongs to the memory.)
    #[doc(hidden)]
    pub fn memory(&self) -> &[T] {
        self.expr.all()
    }
}
