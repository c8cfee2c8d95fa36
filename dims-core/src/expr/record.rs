//! Records the expressions that run with a traced operand, for gradients.
//!
//! While nothing is traced, an expression that runs tests one flag. Else it writes its program ([`Expr::write`](crate::expr::Expr::write)), and if an operand is
//! traced, the result becomes a step of the recorded program.

#[cfg(feature = "std")]
mod places;
#[cfg(feature = "std")]
mod recording;
#[cfg(not(feature = "std"))]
mod without;

#[cfg(not(feature = "std"))]
pub(crate) use without::*;
#[cfg(feature = "std")]
pub(crate) use {places::*, recording::*};
