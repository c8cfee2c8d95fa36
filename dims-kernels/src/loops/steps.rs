//! The steps that a piece of code takes, as plain data that can be printed and tested.

use crate::loops::axes::sort_few;
use crate::loops::nest::Nest;
use crate::scalar::Element;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::panic::Location;

/// One pass over memory, or one family of matrix products.
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
    /// Elements are put into another layout.
    Copy {
        /// Why: the result's order, or a contraction that needs its operand packed.
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
        /// The loops, those that the result keeps first.
        loops: Loops,
        /// How many elements each element of the result is made of.
        count: usize,
    },
    /// Each line of a tensor is worked on as a whole.
    Lines {
        /// The name of the work.
        work: &'static str,
        /// How many lines there are.
        lines: usize,
        /// How many elements each has.
        len: usize,
        /// Bytes of the result.
        bytes: usize,
        /// Into how many parts the lines were split for threads.
        threads: usize,
    },
    /// Means weighted by a softmax of products, in tiles.
    Attention {
        /// How many batches there are.
        batch: usize,
        /// Queries of each.
        queries: usize,
        /// Keys of each.
        keys: usize,
        /// Elements of each product of a query and a key.
        features: usize,
        /// Columns of the values.
        values: usize,
        /// The mask.
        mask: String,
        /// The bias that is added to the scores, if there is one.
        bias: Option<String>,
        /// Bytes of the result.
        bytes: usize,
        /// How many threads the work is worth.
        threads: usize,
    },
    /// A function that is called once for each example of a batch.
    Calls {
        /// The function that is called: a closure, or the name of an operation.
        function: &'static str,
        /// How often.
        calls: usize,
        /// The steps of all calls, in their order.
        steps: Vec<PlanStep>,
        /// Bytes of the result.
        bytes: usize,
    },
    /// A warning that a recorded function captures a large tensor, which its program keeps. Nothing runs.
    Captured {
        /// The source location of the step that reads it first, if known.
        place: Option<&'static Location<'static>>,
        /// Its bytes.
        bytes: usize,
    },
    /// Matrix products with the same sizes and strides.
    Product {
        /// How many products there are.
        batch: usize,
        /// Rows, sum and columns of each.
        m: usize,
        /// See `m`.
        k: usize,
        /// See `m`.
        n: usize,
        /// Strides of the left matrix: between rows, between columns.
        a: (isize, isize),
        /// Strides of the right matrix.
        b: (isize, isize),
        /// Strides of the result.
        c: (isize, isize),
        /// How many products are added to one result.
        summed: usize,
        /// Bytes of the result.
        bytes: usize,
        /// Into how many parts the work was split for threads.
        threads: usize,
        /// Whether the types of the operands say how the matrices lie, as those of `Laid` do: then nothing looks at
        /// strides to choose a kernel.
        typed: bool,
        /// The dims of the matrices, if they have names.
        dims: Option<ProductDims>,
    },
}

/// The dims of two operands and of their product, as the program names them.
#[derive(Clone, Debug, PartialEq)]
pub struct ProductDims {
    /// Those of the left operand.
    pub left: Vec<&'static str>,
    /// Those of the right operand.
    pub right: Vec<&'static str>,
    /// Those of the product, in the order in which it lies in memory.
    pub result: Vec<&'static str>,
}

impl ProductDims {
    /// The dims of the operands as those of matrices: dims of both operands and the result first, then rows and sum, or sum and columns.
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

/// A loop nest as it was planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Loops {
    /// How often each loop runs, the innermost last.
    pub sizes: Vec<usize>,
    /// The strides of each operand along the loops, in elements.
    pub operands: Vec<Vec<isize>>,
    /// Bytes of the result.
    pub bytes: usize,
    /// Into how many parts the loops were split for threads.
    pub threads: usize,
    /// Whether the types of the operands say that each has its neighbours in memory along the innermost loop, as those of
    /// `Laid` do: then nothing looks at that stride when the loops run.
    pub typed: bool,
}

impl Loops {
    /// The loops of a nest with a result of `len` elements of `T`.
    pub fn new<T>(nest: &Nest, len: usize, threads: usize) -> Self {
        Loops::of_bytes(nest, len * size_of::<T>(), threads)
    }

    /// The loops of a nest with a result of so many bytes.
    pub fn of_bytes(nest: &Nest, bytes: usize, threads: usize) -> Self {
        let (sizes, operands) = (nest.sizes.to_vec(), nest.operand_strides());
        Loops { sizes, operands, bytes, threads, typed: nest.typed }
    }
}

/// A product that does not overflow: with 32 bits it could, for matrices of a few MiB.
fn counted<const N: usize>(factors: [usize; N]) -> usize {
    factors.into_iter().fold(1, usize::saturating_mul)
}

/// The operations of all steps.
pub fn total(steps: &[PlanStep]) -> usize {
    steps.iter().map(PlanStep::flops).fold(0, usize::saturating_add)
}

impl PlanStep {
    /// Multiplications and additions of matrix products, each counted as one operation.
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

    /// In one word, what kind of step it is.
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

    /// How much the step computes: of a product and of attention the multiplications and additions, of another step the elements that it works on, whatever it does
    /// with each. A copy computes nothing, nor does a loop of calls beside the steps in it.
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

    /// Bytes of the step's result, and of those of the steps in it.
    pub fn bytes(&self) -> usize {
        match self {
            PlanStep::Elementwise { loops, .. }
            | PlanStep::Copy { loops, .. }
            | PlanStep::Reduce { loops, .. } => loops.bytes,
            PlanStep::Product { bytes, .. }
            | PlanStep::Attention { bytes, .. }
            | PlanStep::Lines { bytes, .. } => *bytes,
            // The tensor is not a result.
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
                write!(f, "{work} of {lines} lines of {len}\n   {bytes} bytes, {threads} thread(s)")
            }
            PlanStep::Attention { batch, queries, keys, features, values, mask, bias, bytes, threads } => {
                let bias = bias.as_ref().map_or(String::new(), |bias| format!(", bias {bias}"));
                write!(
                    f,
                    "attention of {queries} queries to {keys} keys of {features}, values of {values}, {batch} times\n   \
                     mask {mask}{bias}; {bytes} bytes, {threads} thread(s)"
                )
            }
            PlanStep::Calls { function, calls, steps, bytes } => write!(
                f,
                "loop of {calls} call(s), one for each example, of {function}, with {} step(s) of their own\n   {bytes} bytes",
                steps.len()
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
                    "\n   strides{typed} (row, column): left {a:?}, right {b:?}, result {c:?}; {bytes} bytes, {threads} thread(s)"
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
        write!(f, "; {} bytes, {} thread(s)", self.bytes, self.threads)
    }
}

#[cfg(feature = "std")]
pub use super::modes::{Backward, aside, note, note_if, ran, told, told_array, told_given};
#[cfg(feature = "std")]
pub use crate::memory::listener::is_listening;
#[cfg(not(feature = "std"))]
pub use unheard::*;

/// Without the standard library nobody listens to steps.
#[cfg(not(feature = "std"))]
mod unheard {
    use super::{Element, PlanStep, Vec};

    /// Runs `f`; no step is noted.
    pub fn aside<T>(f: impl FnOnce() -> T) -> (T, Vec<PlanStep>) {
        (f(), Vec::new())
    }

    /// Nobody listens.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn is_listening() -> bool {
        false
    }

    /// Notes nothing.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn note(_: impl FnOnce() -> PlanStep) {}

    /// Notes nothing.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn note_if(_: impl FnOnce() -> Option<PlanStep>) -> bool {
        false
    }

    /// Tells nobody.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn ran() {}

    /// Tells nobody.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn told<T: Element>(_: &[T]) {}

    /// Tells nobody.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn told_array<T: Element>(_: &[T]) {}

    /// Tells nobody.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn told_given<T: Element>(_: &[T]) {}
}

/// An element as it stands in an expression.
pub fn element<T: Element>(value: &T) -> String {
    format!("{value:?}")
}
