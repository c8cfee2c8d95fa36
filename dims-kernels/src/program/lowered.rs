//! Programs that replace kernels, in builds where this crate is optimized and the crate that uses
//! it is not.
//!
//! The kernel of an expression is compiled in the crate that contains the expression, with that
//! crate's optimization level. A program is run by loops that are compiled here. So if this crate
//! is optimized, and the user's crate appears not to be (debug assertions are on), the program that
//! an expression [wrote](crate::trace::record::Writer) replaces the expression's kernel.

use crate::load::any::TileSource;
use crate::load::{Faults, Kernel, Tile, read_line};
use crate::loops::nest::OperandRows;
use crate::machine::isa::Isa;
use crate::ops::code::DType;
use crate::program::ScalarProgram;
use crate::program::interpreter::{Machine, OperandSource, Span};
use crate::scalar::Element;
#[cfg(feature = "std")]
use core::cell::Cell;
use core::marker::PhantomData;
use smallvec::SmallVec;

#[cfg(feature = "std")]
std::thread_local! {
    /// Whether programs replace kernels on this thread; `None` if the build decides.
    static REPLACED: Cell<Option<bool>> = const { Cell::new(None) };

    /// The number of programs that have replaced kernels on this thread.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// Whether expressions of `len` elements run as programs on this thread, if they can.
#[cfg(feature = "std")]
#[inline(never)]
pub fn is_lowered(len: usize) -> bool {
    // For few elements, running a kernel takes less time than writing a program.
    const FEW: usize = 8;
    REPLACED.get().unwrap_or(!cfg!(unoptimized) && len > FEW)
}

/// Sets whether expressions on this thread run as programs: if they can (`true`), never (`false`),
/// or as the build decides (`None`). For tests that compare programs with kernels.
#[cfg(feature = "std")]
pub fn lower(replaced: Option<bool>) {
    REPLACED.set(replaced);
}

/// The number of programs that have replaced kernels on this thread, for tests.
#[cfg(feature = "std")]
pub fn count() -> usize {
    COUNT.get()
}

/// A program that computes the same bits as the kernel of its expression, together with the
/// elements that the program reads.
pub struct LoweredProgram<'w> {
    program: ScalarProgram,
    sources: SmallVec<[OperandSource; 6]>,
    dtype: DType,
    elements: PhantomData<&'w [u8]>,
}

// SAFETY: the program is `Sync`. Only `unsafe` methods access the elements of the sources. Their
// callers promise that these are valid.
unsafe impl Sync for LoweredProgram<'_> {}

impl LoweredProgram<'_> {
    /// Makes a lowered program of `program`. `sources` are in the order of a nest's rows, and
    /// `dtype` is the type of the program's results. Whoever runs it promises that the nest's rows
    /// stay within the sources.
    ///
    /// # Safety
    ///
    /// There is a source for each operand of the program. If the program loads an operand, the
    /// source has elements of the kind that the program expects.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn new(
        program: ScalarProgram,
        sources: SmallVec<[OperandSource; 6]>,
        dtype: DType,
    ) -> Self {
        COUNT.set(COUNT.get() + 1);
        LoweredProgram { program, sources, dtype, elements: PhantomData }
    }

    /// The type of the results.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Starts a run over a nest, or over a part of one, with these `rows`.
    ///
    /// # Safety
    ///
    /// There is a row for each operand. That row maps each position of the nest to one of the
    /// operand's elements, which are valid during the run.
    pub(crate) unsafe fn over<'k>(&'k self, rows: &mut OperandRows<'k>) -> LoweredRun<'k> {
        let results = core::iter::once(self.program.result());
        // SAFETY: the program was lowered with these sources, and the caller promises that the rows
        // are valid.
        let machine = unsafe { Machine::new(&self.program, results, &self.sources, rows) };
        LoweredRun { machine, dtype: self.dtype }
    }

    /// The program as a kernel.
    ///
    /// # Safety
    ///
    /// There is a row for each operand. That row maps each position of the nest over which the
    /// kernel runs to one of the operand's elements, which are valid for as long as the kernel
    /// exists.
    ///
    /// # Panics
    ///
    /// If the results of the program are not of the type `T`, or if registers cannot hold this
    /// type.
    pub(crate) unsafe fn kernel<'k, T: Element>(&'k self, rows: &mut OperandRows<'k>) -> Lowered<'k, T> {
        assert!(self.is_kernel::<T>(), "registers hold the results");
        // SAFETY: the caller's promise.
        Lowered { run: unsafe { self.over(rows) }, current: core::ptr::null() }
    }

    /// Whether the program can be a kernel with elements of this type.
    pub fn is_kernel<T: 'static>(&self) -> bool {
        self.dtype.is_register() && DType::of::<T>() == Some(self.dtype)
    }
}

/// A lowered program as a kernel.
pub struct Lowered<'k, T> {
    run: LoweredRun<'k>,
    current: *const T,
}

/// A program that runs over a nest.
pub(crate) struct LoweredRun<'k> {
    machine: Machine<'k>,
    dtype: DType,
}

impl LoweredRun<'_> {
    /// Computes the results of a span, and keeps them.
    pub(crate) fn compute(&mut self, span: &Span<'_>) {
        self.machine.run(span);
    }

    /// The results of the last span, in a register.
    fn line(&self) -> *const u8 {
        self.machine.line(self.machine.result()).start()
    }

    /// Writes the `rows` rows of `len` results of the last span to memory: the first row begins at
    /// `start`. `steps` are the distances, in elements, between rows and between the results of a
    /// row.
    ///
    /// # Safety
    ///
    /// The memory has room for these results. Nothing else accesses it, but it may hold elements of
    /// operands that are not read any more.
    pub(crate) unsafe fn write(&self, start: *mut u8, (rows, len): (usize, usize), steps: [isize; 2]) {
        // SAFETY: the register has the results of the span. The caller promises that there is room
        // for them.
        unsafe { self.dtype.write_line(self.line(), start, (rows, len), steps) };
    }
}

// SAFETY: `starts`, `steps` and `pairs` return no pointers. `current` points to a line with all
// elements of the tile. Sources are only read, and programs are `Sync`.
unsafe impl<T: Element> Kernel for Lowered<'_, T> {
    type Elem = T;
    const LONG: bool = true;
    type TileReader = *const T;
    type Pairs = ();

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, _: &mut Faults) {
        self.run.compute(&Span { at: tile.at, rows: 1, len: tile.len });
        self.current = self.run.line().cast();
    }

    read_line!(T);
}

// SAFETY: the register has a value for each element of the tile, and its kind is that of `T`, as
// `kernel` has asserted. Sources are only read, and programs are `Sync`.
unsafe impl<T: Element> TileSource<T> for Lowered<'_, T> {
    fn tile(&mut self, tile: &Tile<'_>) -> *const T {
        self.run.compute(&Span { at: tile.at, rows: 1, len: tile.len });
        self.run.line().cast()
    }
}
