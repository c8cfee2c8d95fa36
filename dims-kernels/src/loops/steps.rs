//! The steps of a computation, as plain data that can be printed and tested.

use crate::error::Plural;
use crate::loops::axes::sort_few;
use crate::loops::nest::Nest;
use crate::scalar::Element;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::panic::Location;

/// A step of a plan, such as a pass over memory or a batch of matrix products.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanStep {
    /// Each element of the result is computed from elements of the operands.
    Elementwise {
        /// The expression.
        expression: String,
        /// The loops.
        loops: Loops,
    },
    /// Elements are copied into another layout.
    Copy {
        /// The reason, such as the order of the result, or an operand of a product.
        reason: &'static str,
        /// The loops.
        loops: Loops,
    },
    /// Elements of an expression are combined along some loops, without being stored.
    Reduce {
        /// The reduction.
        reduction: &'static str,
        /// The expression.
        expression: String,
        /// The loops: kept loops, then reduced ones. The innermost loop may be either.
        loops: Loops,
        /// The number of elements that are combined for each element of the result.
        count: usize,
    },
    /// An operation on whole lines of a tensor.
    Lines {
        /// The name of the operation.
        work: &'static str,
        /// The number of lines.
        lines: usize,
        /// The length of each line.
        len: usize,
        /// Bytes of the result.
        bytes: usize,
        /// The maximum number of threads that share the lines.
        threads: usize,
    },
    /// Attention: means of values, weighted by a softmax of products of queries and keys, computed
    /// in tiles.
    Attention {
        /// The number of batches.
        batch: usize,
        /// The number of queries of each batch.
        queries: usize,
        /// The number of keys of each batch.
        keys: usize,
        /// The length of each query and key.
        features: usize,
        /// The number of columns of the values.
        values: usize,
        /// The expression of the mask.
        mask: String,
        /// The bias that is added to the scores, if any.
        bias: Option<String>,
        /// Bytes of the result.
        bytes: usize,
        /// The maximum number of threads that share the work.
        threads: usize,
    },
    /// A function that is called for each example of a batch.
    Calls {
        /// A description of the function, or the name of an operation.
        function: &'static str,
        /// The number of calls.
        calls: usize,
        /// The steps of all calls, in order.
        steps: Vec<PlanStep>,
        /// Bytes of the result.
        bytes: usize,
    },
    /// A warning that a recorded function captures a large tensor, which is stored in its program.
    /// The step runs nothing.
    Captured {
        /// The source location of the first step that reads the tensor, if known.
        place: Option<&'static Location<'static>>,
        /// The size of the tensor in bytes.
        bytes: usize,
    },
    /// Matrix products with the same sizes and strides.
    Product {
        /// The number of resulting matrices.
        batch: usize,
        /// The number of rows of the left matrix.
        m: usize,
        /// The number of terms of each sum.
        k: usize,
        /// The number of columns of the right matrix.
        n: usize,
        /// The strides of the left matrix between rows and between columns.
        a: (isize, isize),
        /// The strides of the right matrix.
        b: (isize, isize),
        /// The strides of the result.
        c: (isize, isize),
        /// The number of products that are added up for each result.
        summed: usize,
        /// Bytes of the result.
        bytes: usize,
        /// The maximum number of threads that share the work.
        threads: usize,
        /// Whether the operands' types determine the layout of the matrices, as with `Laid`. Then
        /// no strides are checked at run time to choose a kernel.
        typed: bool,
        /// The names of the matrices' dims, if they have any.
        dims: Option<ProductDims>,
    },
}

/// The dims of two operands and of their product, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct ProductDims {
    /// The dims of the left operand.
    pub left: Vec<&'static str>,
    /// The dims of the right operand.
    pub right: Vec<&'static str>,
    /// The dims of the product, in memory order.
    pub result: Vec<&'static str>,
}

impl ProductDims {
    /// The operands' dims in the order of matrices: first the dims that both operands and the
    /// result share. Then follow, on the left, the dims of the rows and the summed dims, and on the
    /// right, the summed dims and the dims of the columns.
    pub fn new(mut left: Vec<&'static str>, mut right: Vec<&'static str>, result: Vec<&'static str>) -> Self {
        let is_row = |name: &&'static str| !right.contains(name);
        let batch: Vec<_> =
            left.iter().copied().filter(|name| right.contains(name) && result.contains(name)).collect();
        let rows: Vec<_> = left.iter().copied().filter(is_row).collect();
        let columns: Vec<_> = right.iter().copied().filter(|name| !left.contains(name)).collect();
        sort_few(&mut left, |name| (!batch.contains(name), !rows.contains(name)));
        sort_few(&mut right, |name| (!batch.contains(name), columns.contains(name)));
        ProductDims { left, right, result }
    }
}

impl fmt::Display for ProductDims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProductDims { left, right, result } = self;
        write!(f, "({}) x ({}) -> ({})", left.join(", "), right.join(", "), result.join(", "))
    }
}

/// A planned loop nest.
#[derive(Clone, Debug, PartialEq)]
pub struct Loops {
    /// The size of each loop, the innermost last.
    pub sizes: Vec<usize>,
    /// The strides of each operand along the loops, in elements.
    pub operands: Vec<Vec<isize>>,
    /// Bytes of the result.
    pub bytes: usize,
    /// The maximum number of threads that share the loops.
    pub threads: usize,
    /// Whether the operands' types guarantee that each operand is contiguous along the innermost
    /// loop, as with `Laid`. Then the strides along it are not checked at run time.
    pub typed: bool,
}

impl Loops {
    /// The loops of a nest with a result of `len` elements of `T`.
    pub fn new<T>(nest: &Nest, len: usize, threads: usize) -> Self {
        Loops::of_bytes(nest, len * size_of::<T>(), threads)
    }

    /// The loops of a nest with a result of this size in bytes.
    pub fn of_bytes(nest: &Nest, bytes: usize, threads: usize) -> Self {
        let (sizes, operands) = (nest.sizes.to_vec(), nest.operand_strides());
        Loops { sizes, operands, bytes, threads, typed: nest.typed }
    }
}

/// The product of the factors. It saturates, because a 32-bit `usize` could overflow for matrices
/// of a few MiB.
fn counted<const N: usize>(factors: [usize; N]) -> usize {
    factors.into_iter().fold(1, usize::saturating_mul)
}

/// The total number of multiplications and additions in the steps' matrix products and attention.
pub fn total(steps: &[PlanStep]) -> usize {
    steps.iter().map(PlanStep::flops).fold(0, usize::saturating_add)
}

impl PlanStep {
    fn flops(&self) -> usize {
        match self {
            PlanStep::Product { batch, m, k, n, summed, .. } => counted([2, *batch, *m, *k, *n, *summed]),
            PlanStep::Attention { batch, queries, keys, features, values, .. } => {
                counted([2, *batch, *queries, *keys, features + values])
            }
            PlanStep::Calls { steps, .. } => total(steps),
            _ => 0,
        }
    }

    /// The kind of step, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            PlanStep::Elementwise { .. } => "elementwise",
            PlanStep::Copy { .. } => "copy",
            PlanStep::Reduce { .. } => "reduction",
            PlanStep::Lines { .. } => "lines",
            PlanStep::Product { .. } => "product",
            PlanStep::Attention { .. } => "attention",
            PlanStep::Calls { .. } => "calls",
            PlanStep::Captured { .. } => "captured",
        }
    }

    /// The amount of computation: for products and attention the number of multiplications and
    /// additions, for other steps the number of elements that they process, regardless of the
    /// operation. A copy and a warning count as 0. So does a loop of calls, whose steps are counted
    /// separately.
    pub fn operations(&self) -> usize {
        match self {
            PlanStep::Elementwise { loops, .. } | PlanStep::Reduce { loops, .. } => {
                loops.sizes.iter().copied().fold(1, usize::saturating_mul)
            }
            PlanStep::Lines { lines, len, .. } => lines.saturating_mul(*len),
            PlanStep::Product { .. } | PlanStep::Attention { .. } => self.flops(),
            PlanStep::Copy { .. } | PlanStep::Calls { .. } | PlanStep::Captured { .. } => 0,
        }
    }

    /// The bytes of the step's result; for a loop of calls, plus those of its steps.
    pub fn bytes(&self) -> usize {
        match self {
            PlanStep::Elementwise { loops, .. }
            | PlanStep::Copy { loops, .. }
            | PlanStep::Reduce { loops, .. } => loops.bytes,
            PlanStep::Product { bytes, .. }
            | PlanStep::Attention { bytes, .. }
            | PlanStep::Lines { bytes, .. } => *bytes,
            // The captured tensor is not a result.
            PlanStep::Captured { .. } => 0,
            PlanStep::Calls { steps, bytes, .. } => bytes + steps.iter().map(PlanStep::bytes).sum::<usize>(),
        }
    }
}

impl fmt::Display for PlanStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanStep::Elementwise { expression, loops } => write!(f, "elementwise {expression}\n{loops}"),
            PlanStep::Copy { reason, loops } => write!(f, "copy ({reason})\n{loops}"),
            PlanStep::Reduce { reduction, expression, loops, count } => {
                write!(f, "{reduction} over {count} of {expression}\n{loops}")
            }
            PlanStep::Lines { work, lines, len, bytes, threads } => {
                write!(
                    f,
                    "{work} of {} of {len}\n   {bytes} bytes, {}",
                    Plural(*lines, "line", "lines"),
                    Plural(*threads, "thread", "threads")
                )
            }
            PlanStep::Attention { batch, queries, keys, features, values, mask, bias, bytes, threads } => {
                let bias = bias.as_ref().map_or(String::new(), |bias| format!(", bias {bias}"));
                write!(
                    f,
                    "attention of {queries} queries to {keys} keys of {features}, values of {values}, {batch} times\n   \
                     mask {mask}{bias}; {bytes} bytes, {}",
                    Plural(*threads, "thread", "threads")
                )
            }
            PlanStep::Calls { function, calls, steps, bytes } => write!(
                f,
                "loop of {}, one for each example, of {function}, with {} in all calls\n   {bytes} bytes",
                Plural(*calls, "call", "calls"),
                Plural(steps.len(), "step", "steps")
            ),
            PlanStep::Captured { place, bytes } => {
                write!(
                    f,
                    "warning: a recorded function captures a tensor of {bytes} bytes, which its program keeps"
                )?;
                if let Some(place) = place {
                    write!(f, "\n   read at {}:{}:{}", place.file(), place.line(), place.column())?;
                }
                f.write_str("; pass it as an input if it changes")
            }
            PlanStep::Product { batch, m, k, n, a, b, c, summed, bytes, threads, typed, dims } => {
                match dims {
                    Some(dims) => write!(f, "{dims}: {m} x {k} x {n}")?,
                    None => write!(f, "product {m} x {k} by {k} x {n}")?,
                }
                if *batch > 1 {
                    write!(f, ", {batch} times")?;
                }
                if *summed > 1 {
                    write!(f, ", each the sum of {summed}")?;
                }
                let typed = if *typed { " known to rustc" } else { "" };
                write!(
                    f,
                    "\n   strides{typed} (row, column): left {a:?}, right {b:?}, result {c:?}; {bytes} bytes, {}",
                    Plural(*threads, "thread", "threads")
                )
            }
        }
    }
}

impl fmt::Display for Loops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let typed = if self.typed { " known to rustc" } else { "" };
        write!(f, "   loops {:?}, operand strides{typed}", self.sizes)?;
        for strides in &self.operands {
            write!(f, " {strides:?}")?;
        }
        write!(f, "; {} bytes, {}", self.bytes, Plural(self.threads, "thread", "threads"))
    }
}

#[cfg(feature = "std")]
pub use super::modes::{Backward, aside, note, note_if, ran, told, told_array, told_given};
#[cfg(feature = "std")]
pub use crate::memory::listener::is_listening;
#[cfg(not(feature = "std"))]
pub use unheard::*;

/// Without the standard library there are no listeners.
#[cfg(not(feature = "std"))]
mod unheard {
    use super::{Element, PlanStep, Vec};

    /// Runs `f`. No step is noted.
    pub fn aside<T>(f: impl FnOnce() -> T) -> (T, Vec<PlanStep>) {
        (f(), Vec::new())
    }

    /// Always `false`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn is_listening() -> bool {
        false
    }

    /// Does nothing.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn note(_: impl FnOnce() -> PlanStep) {}

    /// Does nothing, and returns `false`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn note_if(_: impl FnOnce() -> Option<PlanStep>) -> bool {
        false
    }

    /// Does nothing.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn ran() {}

    /// Does nothing.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn told<T: Element>(_: &[T]) {}

    /// Does nothing.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn told_array<T: Element>(_: &[T]) {}

    /// Does nothing.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn told_given<T: Element>(_: &[T]) {}
}

/// Formats an element as part of an expression.
pub fn element<T: Element>(value: &T) -> String {
    format!("{value:?}")
}
