//! Reductions whose loops depend only on the element type and the reducer.

use crate::error::Error;
use crate::load::any::AnyElements;
use crate::load::strided::Strided;
use crate::loops::nest::{Nest, NestParts};
use crate::memory::destination::Destination;
use crate::memory::elements::Elements;
use crate::program::lowered::LoweredProgram;
use crate::reduce::{Reducer, reduce};
use crate::scalar::Element;
use alloc::vec::Vec;

/// The input of a reduction: elements in memory, or the elements of a lowered program.
pub struct ReduceInput<'a, T> {
    elements: InputElements<'a, T>,
    nest: &'a Nest,
    work: usize,
    count: usize,
}

#[derive(Clone, Copy)]
enum InputElements<'a, T> {
    Memory(Elements<'a, T>),
    ScalarProgram(&'a LoweredProgram<'a>, KernelOfProgram<T>),
}

/// Turns a program into a kernel over a nest or a part of it. This is a function pointer, so the
/// code of such kernels is only linked if a reduction of a program is constructed.
type KernelOfProgram<T> = for<'n> unsafe fn(&'n LoweredProgram<'n>, &'n Nest) -> AnyElements<'n, T>;

/// # Safety
///
/// As for [`ReduceInput::of_program`].
unsafe fn kernel_of_program<'n, T: Element>(
    program: &'n LoweredProgram<'n>,
    nest: &'n Nest,
) -> AnyElements<'n, T> {
    // SAFETY: the caller's promise.
    AnyElements::computed(unsafe { program.kernel::<T>(&mut Nest::operands(nest)) })
}

impl<'a, T> ReduceInput<'a, T> {
    /// Elements in memory, read along the first row of strides of a nest. `work` is the number of
    /// elements to read, which decides how many threads are used. Each result combines `count`
    /// elements.
    ///
    /// # Safety
    ///
    /// The row maps each position of the nest to a position of the elements' axes.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn new(elements: Elements<'a, T>, nest: &'a Nest, work: usize, count: usize) -> Self {
        ReduceInput { elements: InputElements::Memory(elements), nest, work, count }
    }

    /// Like [`new`](ReduceInput::new), for the elements of a program that can be a
    /// [kernel](LoweredProgram::is_kernel).
    ///
    /// # Safety
    ///
    /// The nest has a row for each operand of the program. That row maps each position of the nest
    /// to one of the operand's elements.
    pub unsafe fn of_program(
        program: &'a LoweredProgram<'a>,
        nest: &'a Nest,
        work: usize,
        count: usize,
    ) -> Self
    where
        T: Element,
    {
        let elements = InputElements::ScalarProgram(program, kernel_of_program::<T>);
        ReduceInput { elements, nest, work, count }
    }
}

impl<T: Element> ReduceInput<'_, T> {
    /// Runs the reduction.
    pub fn reduce<R: Reducer<T, Out: Send>>(
        self,
        to: Destination<'_, R::Out>,
        reducer: R,
    ) -> Result<Vec<R::Out>, Error> {
        let ReduceInput { elements, nest, work, count } = self;
        let kernel = |nest| match elements {
            // SAFETY: each position of the nest is an element, as the caller of `new` promised.
            // `reduce` runs a kernel over the nest, or the part of it, that the kernel was made
            // for.
            InputElements::Memory(elements) => unsafe {
                AnyElements::memory(Strided::new(elements, Nest::operands(nest).next_row(), ()))
            },
            // SAFETY: likewise, for each operand, as the caller of `of_program` promised.
            InputElements::ScalarProgram(program, kernel) => unsafe { kernel(program, nest) },
        };
        reduce(nest, &mut NestParts::new(), &kernel, work, to, count, reducer)
    }
}
