//! Recording functions, to call them with other inputs.
//!
//! [`record`] calls a function and records its steps. Elements can be floats, integers of up to 64
//! bits, or `bool`s. The resulting [`Program`] runs the same steps with other inputs of the same
//! sizes (except along [`dynamic`] dims). [`jit`] records on the first call, and again for other
//! sizes.
//!
//! ```
//! use typed_dims::prelude::*;
//! use typed_dims::program::record;
//!
//! dims! { pub struct Word; pub struct Feat; pub struct Seq; }
//! type Table = Tensor<f32, (Word, Feat)>;
//! type Ids = Tensor<i64, (Seq,)>;
//!
//! fn mean(table: &Table, ids: &Ids) -> Tensor<f32, (Feat,)> {
//!     table.take(Word, ids).mean(Seq)
//! }
//!
//! let table = from_fn((Word.of(4), Feat.of(2)), |(word, feat)| (10 * word + feat) as f32);
//! let program = record(|(table, ids)| mean(table, ids), (&table, &from_vec(Seq.of(2), vec![0, 1])))?;
//! let means = program.call((&table, &from_vec(Seq.of(2), vec![2, 3])));
//! assert_eq!(means.order(Feat), ndarray::array![25.0, 26.0]);
//! # Ok::<(), DimError>(())
//! ```
//!
//! Inputs can be tensors, structs with `#[derive(Parameters)]`, optimizers, or tuples of these, by
//! reference or by value: see [`RecordInputs`]. Pass state by value and return it, and a whole
//! training step becomes a program:
//!
//! ```
//! use typed_dims::grad::loss_and_grad;
//! use typed_dims::optim::{Adam, Optimizer};
//! use typed_dims::prelude::*;
//! use typed_dims::program::jit;
//!
//! dims! { pub struct Row; pub struct In; }
//! type Weights = Tensor<f32, (In,)>;
//! type Data = Tensor<f32, (Row, In)>;
//! type Targets = Tensor<f32, (Row,)>;
//! type State = (Weights, Adam<Weights>);
//!
//! let step = jit::<(State, &Data, &Targets), _>(|((mut w, mut adam), x, y)| {
//!     let loss = |w: &Weights| ((x * w).sum(In) - y).square().mean(Row);
//!     let (loss, gradient) = loss_and_grad(loss, &w);
//!     adam.step(&mut w, &gradient);
//!     ((w, adam), loss)
//! });
//!
//! let x: Data = randn((Row.of(32), In.of(4)), 1);
//! let y: Targets = x.view().sum(In);
//! let mut state: State = (zeros(In.of(4)), Adam::new(0.1));
//! let mut losses = Vec::new();
//! for _ in 0..100 {
//!     let (next, loss) = step.call((state, &x, &y));
//!     state = next;
//!     losses.push(loss.order(()));
//! }
//! assert!(losses[99] < 0.01 * losses[0]);
//! ```
//!
//! A recorded function cannot read elements (as a number, as an array, or as a size) of a tensor
//! that depends on its inputs, because the program could not read them again. It cannot assign to a
//! part of such a tensor, or assign such a tensor to a part of another one. Tensors of an outer
//! gradient or of an outer recorded function must be inputs.
//!
//! Captured tensors and numbers are constants of the program. Pass a seed that changes from call to
//! call as an input tensor: see [`Seed`](crate::creation::random::Seed).
//!
//! Optimizer settings, and numbers and other `Copy` values in fields with
//! `#[parameters(constant)]`, must have their recorded values. If one of them differs, [`jit`]
//! records again.

#[cfg(feature = "std")]
pub mod engine;
mod inputs;
#[cfg(feature = "std")]
mod jit;
#[cfg(feature = "std")]
mod open;
#[cfg(feature = "std")]
mod record;
#[cfg(feature = "std")]
mod result;
#[cfg(feature = "std")]
mod saved;
#[cfg(feature = "std")]
mod signature;
#[cfg(feature = "std")]
mod spec;

#[doc(hidden)]
pub use inputs::{Hand, PartFamily, taken};
pub use inputs::{HandedOf, InputsOf, RecordInputs};
#[cfg(feature = "std")]
pub use jit::{Jit, jit};
#[cfg(feature = "std")]
pub use kernels::trace::{ListedAxis, ListedPlace, ListedStep, ListedValue, Listing};
#[cfg(feature = "std")]
pub use open::dynamic;
#[cfg(feature = "std")]
pub use record::{Program, record};
#[cfg(feature = "std")]
pub use saved::SavedProgram;
#[cfg(feature = "std")]
pub use spec::{Spec, SpecOf, spec};
