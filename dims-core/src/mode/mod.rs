//! Modes: see what runs, with the memory of the results.
//!
//! A [`Mode`] hears each step that runs on its thread while [`with`] runs a function:
//!
//! ```
//! use typed_dims::mode::{self, Mode, Ran};
//! use typed_dims::prelude::*;
//!
//! #[derive(Default)]
//! struct Products(usize);
//!
//! impl Mode for Products {
//!     fn ran(&mut self, ran: &Ran<'_>) {
//!         self.0 += usize::from(ran.step.kind() == "product");
//!     }
//! }
//!
//! let (a, b) = (Array2::<f32>::ones((8, 16)), Array2::<f32>::ones((16, 32)));
//! dims!(i, j, k);
//! let mut products = Products::default();
//! let c = mode::with(&mut products, || (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j)));
//! assert_eq!((c[[0, 0]], products.0), (16.0, 1));
//! ```
//!
//! Four modes are here. Each is a function, and a type for [`with`]:
//!
//! | function | type | what it says |
//! |---|---|---|
//! | [`count`] | [`Counts`] | steps, operations and bytes, by kind of step |
//! | [`check_finite`] | [`CheckFinite`] | the first step with NaN or an infinity in its result |
//! | [`log`] | [`Log`] | each step on a line, as it runs |
//! | [`peak_memory`] | [`PeakMemory`] | how many bytes the results had at most at one time |
//!
//! [`explain`](crate::plan::explain::explain) is one more: [`Plan`](crate::plan::explain::Plan) is a mode.
//!
//! * **A step is one pass of a kernel**, or one family of matrix products: what `explain` lists. Several operations on elements can be one step, and one operation can be
//!   several steps, as a product that copies an operand first.
//! * **Order.** Steps come in the order in which they ran, each after it ran, and before the memory that it was the last to read is freed.
//! * **Nesting.** Modes can be nested: all of them hear each step, the outermost one first.
//! * **Gradients.** Their steps are heard as well. [`Ran::place`] is then the place of the step that they are the gradient of. The cotangents of some operations, such as softmax, are
//!   computed without a step of their own.
//! * **Threads.** A mode belongs to its thread. What other threads run, it does not hear. (A kernel that is split for threads is a step of the thread that called it.)
//! * **Panics.** If the function panics, the mode no longer listens.
//! * **Cost.** Where nobody listens, a step tests one flag.
//!
//! This needs the feature `std`.

mod counts;
mod finite;
mod logged;
mod peak;

pub use counts::{Counts, StepCount, count};
pub use finite::{CheckFinite, NotFinite, check_finite};
pub use kernels::loops::modes::{FreedMemory, Mode, Ran, ResultMemory};
pub use logged::{Log, log};
pub use peak::{PeakMemory, peak_memory};

/// Runs `f`, and returns what it returns. Meanwhile the mode hears each step that runs on this thread.
///
/// ```
/// use typed_dims::mode::{self, Counts, PeakMemory};
/// use typed_dims::prelude::*;
///
/// dims!(i = 1000);
/// let (mut counts, mut peak) = (Counts::default(), PeakMemory::default());
/// let twice = mode::with(&mut counts, || mode::with(&mut peak, || (ones::<f32, _>(i) * 2.0).eval()));
/// assert_eq!((counts.steps(), peak.peak()), (1, 4000));
/// # drop(twice);
/// ```
pub fn with<T>(mode: &mut (dyn Mode + '_), f: impl FnOnce() -> T) -> T {
    // Calls inside the library are no place in the program.
    const OWN: &str = file!();
    kernels::loops::modes::with(mode, const { OWN.split_at(OWN.len() - "mode/mod.rs".len()).0 }, f)
}
