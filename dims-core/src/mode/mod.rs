//! Modes observe the steps that run, and the memory of their results.
//!
//! While [`with`] runs a function, a [`Mode`] is called for each step that runs on its thread:
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
//! Each mode of this module has a function, and a type for [`with`]:
//!
//! | function | type | what it reports |
//! |---|---|---|
//! | [`count`] | [`Counts`] | steps, operations and bytes, by kind of step |
//! | [`check_finite`] | [`CheckFinite`] | the first step with NaN or an infinity in its result |
//! | [`log`] | [`Log`] | each step on a line, as it runs |
//! | [`peak_memory`] | [`PeakMemory`] | the peak size of the results in bytes |
//!
//! [`explain`](crate::plan::explain::explain) is also such a function, with the type
//! [`Plan`](crate::plan::explain::Plan).
//!
//! * **A step is one pass of a kernel**, one group of matrix products, or a loop of calls of a
//!   function. `explain` shows the steps of such calls within their loop. Several elementwise
//!   operations can be one step, and one operation can be several steps: a product may copy an
//!   operand first.
//! * **Order.** A mode is called after each step, in the order in which the steps run. Freed
//!   operands are reported after the step that read them.
//! * **Nesting.** Modes can be nested: each is called for each step, the outermost one first.
//! * **Gradients.** A mode is called for the steps of gradients too. [`Ran::place`] is then the
//!   location of the operation that they differentiate. Some pull-backs, such as that of
//!   softmax, have no step for the cotangent that they return: it is computed by the step that
//!   reads it.
//! * **Threads.** A mode belongs to its thread and does not see the steps of other threads. (A
//!   kernel that runs on several threads is a step of the thread that called it.)
//! * **Panics.** If the function panics, the mode is removed.
//! * **Cost.** Without a mode, each step tests one flag.
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

/// Runs `f` and returns its result. The mode is called for each step that `f` runs on this thread.
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
    // Source locations inside the library are not reported.
    const OWN: &str = file!();
    kernels::loops::modes::with(mode, const { OWN.split_at(OWN.len() - "mode/mod.rs".len()).0 }, f)
}
