//! Groups of maps, as a call of a recording runs them: one pass over the loops computes the results
//! of all maps.

use super::draft::Meaning;
use super::fuse::{GroupOperand, MapGroup};
use super::memory::{CallMemory, OperandMemory, filled, free_memory, result_of, start_of_free};
use super::sums::SumOrder;
use crate::error::Error;
use crate::load::any::{AnyElements, TileSource};
use crate::load::tiles::for_each_run;
use crate::load::{TILE, Tile};
use crate::loops::modes::{ResultMemory, told_all};
use crate::loops::nest::{Nest, NestParts, Row};
use crate::loops::rows::Rows;
use crate::loops::steps::{Loops, PlanStep, note};
use crate::machine::prefetch::prefetch_lines;
use crate::machine::threads::{self, Carried};
use crate::memory::allocate::reserve;
use crate::memory::axes::row_major;
use crate::memory::buffer::Buffer;
use crate::ops::code::{DType, match_dtype};
use crate::program::interpreter::{Machine, OperandSource, ProgramOutput, Slots, Span};
use crate::program::{Instruction, Register, ScalarProgram};
use crate::reduce::{reduce, reducers};
use crate::scalar::{Element, Real};
use crate::trace::{Held, Node, StridedPlace};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter::once_with;
use smallvec::SmallVec;

/// A program over loops, with the locations of its operands and results.
pub(super) struct FusedLoops {
    program: ScalarProgram,
    slots: Slots,
    nest: Nest,
    /// The maximum number of positions that run at once.
    tile: usize,
    len: usize,
    operands: Vec<FusedOperand>,
    results: Vec<FusedResult>,
    /// The registers that load contiguous elements, and the size of an element in bytes.
    streams: Vec<(Register, usize)>,
    sum: Option<FusedSum>,
    /// The size of each loop of the nest, and the number of positions from one step along it to the
    /// next.
    steps: Vec<(usize, usize)>,
}

/// A sum over fused loops, which run in the order of the sum.
struct FusedSum {
    value: Register,
    dtype: DType,
    slot: usize,
    order: SumOrder,
    /// The cell whose memory the sum uses if it is free.
    cell: Option<usize>,
}

struct FusedOperand {
    memory: OperandMemory,
    dtype: DType,
    /// Whether the loops read the elements in the order of the results.
    is_aligned: bool,
}

struct FusedResult {
    value: Register,
    dtype: DType,
    slot: usize,
    /// Whether a register has the layout of the elements. The interpreter can then keep the
    /// register in the memory of the result.
    is_direct: bool,
    /// The slot of an operand that the result may overwrite. The slot is not read after these
    /// loops, which read each element only at the position where they write the result.
    over: Option<usize>,
    /// The cell whose memory the result uses if it is free.
    cell: Option<usize>,
}

/// All registers of a program stay in the first-level cache if they take at most this many bytes
/// together.
const AT_HAND: usize = 24 << 10;

/// Results that take more bytes than this in total may not fit into a second-level cache.
const FAR: usize = 512 << 10;

/// A tile is not made smaller than this many positions, even if the registers then take more than
/// [`AT_HAND`] bytes.
const SHORTEST: usize = 64;

impl FusedLoops {
    /// The loops of a group, with the results that are read outside of it. `slot` returns the slot
    /// of a value.
    pub(super) fn new(
        mut group: MapGroup,
        results: &[(Arc<Node>, Register)],
        slot: &dyn Fn(u64) -> usize,
    ) -> Self {
        let (len, sum) = (group.len, group.sum.take());
        let is_sum = |node: &Node| sum.as_ref().is_some_and(|sum| sum.node.id == node.id);
        let registers: Vec<Register> = results.iter().map(|&(_, register)| register).collect();
        let (program, registers, sizes, operands) = group.finish(&registers);
        let mut rows = Rows::new(sizes.len());
        for GroupOperand { offset, strides, .. } in &operands {
            rows.push_at(*offset).copy_from_slice(strides);
        }
        rows.push().copy_from_slice(&row_major(&sizes));
        let order: SmallVec<[usize; 8]> = (0..sizes.len()).collect();
        let nest = Nest::map(&sizes, &order, &rows);
        let slots = Slots::new(&program, registers.iter().copied());
        let mut tile = TILE;
        while tile > SHORTEST && slots.bytes(tile) > AT_HAND {
            tile /= 2;
        }
        let operands = operands.into_iter().map(|GroupOperand { source, dtype, offset, strides }| {
            let mut along = sizes.iter().zip(strides.iter().zip(row_major(&sizes)));
            let is_aligned = offset == 0 && along.all(|(&size, (&own, all))| size == 1 || own == all);
            if let Some(Meaning::Constant(held)) = &source {
                StridedPlace::strided(offset, strides).assert_within(&sizes, held.len());
            }
            FusedOperand { memory: OperandMemory::new(source, slot), dtype, is_aligned }
        });
        let mut of_sum = None;
        let results = results.iter().zip(registers).filter_map(|((node, _), value)| {
            let (dtype, slot) = (node.dtype, slot(node.id));
            if is_sum(node) {
                of_sum = Some((value, dtype, slot));
                return None;
            }
            let is_direct = dtype.is_register();
            Some(FusedResult { value, dtype, slot, is_direct, over: None, cell: None })
        });
        let (operands, results): (Vec<FusedOperand>, Vec<FusedResult>) =
            (operands.collect(), results.collect());
        let sum = sum.zip(of_sum).map(|(sum, (value, dtype, slot))| FusedSum {
            value,
            dtype,
            slot,
            order: sum.order,
            cell: None,
        });
        let steps = nest.sizes.iter().zip(row_major(&nest.sizes));
        let steps = steps.map(|(&size, step)| (size, step as usize)).collect();
        let streams = program.instructions().iter().enumerate().filter_map(|(at, instruction)| {
            let Instruction::Load(number) = *instruction else { return None };
            let dtype = operands[number as usize].dtype;
            let is_line = nest.strides_of(number as usize).last() == Some(&1) && dtype.is_register();
            is_line.then(|| (at as Register, dtype.bytes()))
        });
        let streams = streams.collect();
        FusedLoops { program, slots, nest, tile, len, operands, results, streams, sum, steps }
    }

    /// The slots that are read.
    pub(super) fn reads(&self) -> BTreeSet<usize> {
        self.operands.iter().filter_map(|own| own.memory.slot()).collect()
    }

    /// Lets results overwrite the values of `slots`, which are not read after these loops. A result
    /// overwrites only a value that it is computed from.
    pub(super) fn overwrite(&mut self, mut slots: Vec<usize>) {
        // A result that is an unchanged operand is copied from the operand's memory once the
        // program has run. By then, another result could have overwritten that memory.
        for FusedResult { value, .. } in &self.results {
            if let Instruction::Load(number) = self.program.instruction(*value) {
                let own = self.operands[number as usize].memory.slot();
                slots.retain(|&slot| Some(slot) != own);
            }
        }
        let mut candidates: Vec<(usize, Vec<usize>)> = Vec::with_capacity(self.results.len());
        for (at, result) in self.results.iter().enumerate() {
            let mut is_read = vec![false; self.operands.len()];
            self.program.read_by(result.value).into_iter().for_each(|at| is_read[at as usize] = true);
            // Whether the result may overwrite the value in each slot.
            let mut fits: BTreeMap<usize, bool> = BTreeMap::new();
            for (own, is_read) in self.operands.iter().zip(is_read) {
                if let Some(slot) = own.memory.slot() {
                    let own_fits = is_read && own.is_aligned && own.dtype == result.dtype;
                    *fits.entry(slot).or_insert(true) &= own_fits;
                }
            }
            let own = slots.iter().copied().filter(|slot| fits.get(slot) == Some(&true));
            candidates.push((at, own.collect()));
        }
        // Results with the fewest choices come first, for example the moments of an optimizer
        // before its parameters, which are computed from the moments.
        candidates.sort_by_key(|(_, own)| own.len());
        for (at, own) in candidates {
            let free = own.into_iter().find(|slot| slots.contains(slot));
            slots.retain(|&slot| Some(slot) != free);
            self.results[at].over = free;
        }
    }

    /// Assigns a cell to each result. `cell` gets the slot, the type and the length of the result.
    pub(super) fn set_cells(&mut self, cell: &mut dyn FnMut(usize, DType, usize) -> Option<usize>) {
        self.results.iter_mut().for_each(|own| own.cell = cell(own.slot, own.dtype, self.len));
        if let Some(sum) = &mut self.sum {
            sum.cell = cell(sum.slot, sum.dtype, sum.order.len);
        }
    }

    /// Runs the program on the values of a call, and stores its results among them.
    ///
    /// # Safety
    ///
    /// The value in each slot that is read has the type and the length of the input or step that
    /// the slot was made for.
    pub(super) unsafe fn run(&self, call: &mut CallMemory) -> Result<(), Error> {
        let mut memory: SmallVec<[FusedMemory; 4]> = SmallVec::new();
        for result in &self.results {
            let over = result.over.and_then(|slot| call.take_unshared(slot, result.dtype, self.len));
            let cell = result.cell.and_then(|cell| call.cells[cell].take());
            memory.push(match (over, free_memory(cell, result.dtype.element(), self.len)) {
                (Some(held), _) => FusedMemory::Operand(held),
                (None, Some(held)) => FusedMemory::Kept(held),
                (None, None) => FusedMemory::New(fresh(result.dtype, self.len)?),
            });
        }
        let starts: SmallVec<[*mut u8; 4]> = memory.iter_mut().map(FusedMemory::start).collect();
        // An overwritten operand is in the memory of the result.
        let overwritten = |slot: Option<usize>| {
            let slot = slot?;
            let result = self.results.iter().position(|own| own.over == Some(slot))?;
            matches!(memory[result], FusedMemory::Operand(_)).then(|| starts[result].cast_const())
        };
        let source = |own: &FusedOperand| {
            let start = overwritten(own.memory.slot()).or_else(|| own.memory.start(&call.values));
            match start {
                None => OperandSource::position(),
                // SAFETY: the operand has an element for each position of the nest:
                // `operands_along` asserted this for the recorded length, and the caller promises
                // that values have that length. The memory is held until the program has run. Each
                // run reads elements before it overwrites them.
                Some(start) => unsafe { OperandSource::new(start, own.dtype, None) },
            }
        };
        let sources: SmallVec<[OperandSource; 16]> = self.operands.iter().map(source).collect();
        let is_direct: SmallVec<[bool; 4]> = self
            .results
            .iter()
            .zip(&memory)
            .map(|(result, own)| result.is_direct && !matches!(own, FusedMemory::Operand(_)))
            .collect();
        let targets = FusedTargets { starts: &starts, is_direct: &is_direct };
        let threads = threads::parts(self.len);
        note(|| PlanStep::Elementwise {
            expression: self.program.describe(),
            loops: Loops::of_bytes(
                &self.nest,
                self.results.iter().map(|result| self.len * result.dtype.bytes()).sum(),
                threads,
            ),
        });
        let mut sum = None;
        if let Some(own) = &self.sum {
            let cell = own.cell.and_then(|cell| call.cells[cell].take());
            // SAFETY: for each position of the nest, each source has an element, and there is room
            // for the results.
            let filled = unsafe {
                match own.dtype {
                    DType::F64 => self.summed::<f64>(own, &sources, &targets, cell),
                    _ => self.summed::<f32>(own, &sources, &targets, cell),
                }
            }?;
            sum = Some((own, filled));
        } else {
            // SAFETY: for each position of the nest, each source has an element, and there is room
            // for the results.
            unsafe { self.all(&sources, &targets, threads) }?;
        }
        for own in &mut memory {
            if let FusedMemory::New(own) = own {
                // SAFETY: all elements are written.
                unsafe { own.assume_written(self.len) };
            }
        }
        // While something listens, the memory of values is not reused, so all memory in cells is
        // from the caller.
        told_all(memory.iter().zip(&self.results).filter_map(|(own, result)| match own {
            FusedMemory::New(own) => Some(own.result()),
            FusedMemory::Kept(held) => Some(match_dtype!(result.dtype, T => result_of::<T>(held, true))),
            FusedMemory::Operand(_) => None,
        }));
        for (own, result) in memory.into_iter().zip(&self.results) {
            call.values[result.slot] = Some(match own {
                FusedMemory::New(own) => own.held(),
                FusedMemory::Kept(held) | FusedMemory::Operand(held) => held,
            });
        }
        if let Some((own, (value, is_given))) = sum {
            match own.dtype {
                DType::F64 => self.tell_sum::<f64>(own, &value, is_given),
                _ => self.tell_sum::<f32>(own, &value, is_given),
            }
            call.values[own.slot] = Some(value);
        }
        Ok(())
    }

    /// Reports the sum as a separate step, after the step of the loops.
    fn tell_sum<T: Element>(&self, sum: &FusedSum, value: &Arc<dyn Held>, is_given: bool) {
        sum.order.note::<T>(&|| self.program.describe_value(sum.value));
        told_all(once_with(|| result_of::<T>(value, is_given)));
    }

    /// Runs the program over all positions.
    ///
    /// # Safety
    ///
    /// For each position of the nest, each source has an element. At each of the targets there is
    /// room for the results.
    unsafe fn all(
        &self,
        sources: &[OperandSource],
        targets: &FusedTargets<'_>,
        threads: usize,
    ) -> Result<(), Error> {
        if threads <= 1 {
            // SAFETY: the caller's promise.
            unsafe { self.part(&self.nest, sources, targets, 0) };
            return Ok(());
        }
        let parts = self.nest.split(0, threads);
        let mut jobs: Vec<threads::Job<'_>> = Vec::with_capacity(parts.len());
        let mut before = 0;
        for nest in &parts {
            // SAFETY: threads only read the elements, which are plain numbers. The parts write to
            // disjoint memory.
            let own = unsafe { Carried::new((sources, targets)) };
            let from = before;
            before += nest.positions();
            jobs.push(Box::new(move || {
                let (sources, targets) = own.into_inner();
                // SAFETY: the caller's promise. The positions of the part are also positions of the
                // nest.
                unsafe { self.part(nest, sources, targets, from) };
                Ok(())
            }));
        }
        threads::run(jobs)
    }

    /// Positions are numbered in the order of the loops. Calls `run` with spans that cover the
    /// `len` positions from number `from` on. With each span, `run` gets the number of the span's
    /// first position.
    fn spans(&self, from: usize, len: usize, run: &mut dyn FnMut(&Span<'_>, usize)) {
        let (&(inner, _), outer) = self.steps.split_last().expect("a nest has a loop");
        let mut done = 0;
        let mut at: SmallVec<[usize; 8]> = SmallVec::new();
        while done < len {
            let first = from + done;
            at.clear();
            at.extend(self.steps.iter().map(|&(size, step)| first / step % size));
            let start = at[outer.len()];
            let rest = (len - done).min(self.tile);
            // Whole rows, or a part of one.
            let rows = match outer.last() {
                Some(&(size, _)) if start == 0 => (rest / inner).min(size - at[outer.len() - 1]),
                _ => 0,
            };
            let span = match rows {
                0 => Span { at: &at, rows: 1, len: rest.min(inner - start) },
                rows => Span { at: &at, rows, len: inner },
            };
            done += span.positions();
            run(&span, first);
        }
    }

    /// Runs the program over all positions, in the order of the sum. Returns the sum, and whether
    /// it is in the cell's memory.
    ///
    /// # Safety
    ///
    /// For each position of the nest, each source has an element. At each of the targets there is
    /// room for the results. The sum has elements of type `T`.
    unsafe fn summed<T: ProgramOutput + Real>(
        &self,
        sum: &FusedSum,
        sources: &[OperandSource],
        targets: &FusedTargets<'_>,
        cell: Option<Arc<dyn Held>>,
    ) -> Result<(Arc<dyn Held>, bool), Error> {
        let SumOrder { nest, len, count, positions, .. } = &sum.order;
        let computed = |nest| {
            // SAFETY: the program loads these sources, and the nest has their rows.
            let machine = unsafe {
                Machine::with_slots(&self.program, &self.slots, sources, &mut self.nest.operands())
            };
            AnyElements::computed(SummedLoops::<T> {
                loops: self,
                machine,
                targets: *targets,
                value: sum.value,
                numbers: sum.order.numbers(nest),
                line: Vec::new(),
            })
        };
        let mut parts = NestParts::new();
        filled(cell, *len, |to| {
            reduce(nest, &mut parts, &computed, *positions, to, *count, reducers::Sum::ONCE)
        })
    }

    /// Runs the program over a part of the nest. `from` is the number of its first position.
    ///
    /// # Safety
    ///
    /// For each position of the nest, each source has an element. At each of the targets there is
    /// room for the results of all parts.
    unsafe fn part(&self, nest: &Nest, sources: &[OperandSource], targets: &FusedTargets<'_>, from: usize) {
        // SAFETY: the program loads these sources, and the nest has their rows.
        let mut machine =
            unsafe { Machine::with_slots(&self.program, &self.slots, sources, &mut nest.operands()) };
        let mut done = from;
        for_each_run(nest, self.tile, &mut |run| {
            let span = Span { at: run.at, rows: run.rows, len: run.len };
            // SAFETY: the caller's promise. Runs are adjacent, in the order of the results.
            unsafe { self.span(&mut machine, targets, &span, done) };
            done += span.positions();
            true
        });
    }

    /// Runs the program over a span of positions, and writes the results from the position `from`
    /// on.
    ///
    /// # Safety
    ///
    /// At each of the targets there is room for the results of the span.
    #[inline]
    unsafe fn span(
        &self,
        machine: &mut Machine<'_>,
        targets: &FusedTargets<'_>,
        span: &Span<'_>,
        from: usize,
    ) {
        let FusedTargets { starts, is_direct } = *targets;
        let positions = span.positions();
        let place = |result: &FusedResult, start: &*mut u8| start.wrapping_add(from * result.dtype.bytes());
        let direct = self.results.iter().zip(starts).zip(is_direct).filter(|&(_, &own)| own);
        for ((result, start), _) in direct {
            // SAFETY: there is room for the results of the span, by the caller's promise. The
            // register has the layout of the elements.
            unsafe { machine.write_to(result.value, place(result, start)) };
        }
        // The memory of the next spans is prefetched while this one is computed.
        let is_far = self.len * self.results.iter().map(|own| own.dtype.bytes()).sum::<usize>() > FAR;
        if is_far {
            for (result, start) in self.results.iter().zip(starts) {
                let bytes = positions * result.dtype.bytes();
                prefetch_lines(place(result, start).wrapping_add(bytes), bytes);
            }
        }
        machine.run(span);
        for &(register, bytes) in self.streams.iter().filter(|_| is_far) {
            let bytes = positions * bytes;
            prefetch_lines(machine.line(register).start().wrapping_add(2 * bytes), bytes);
        }
        for (result, start) in self.results.iter().zip(starts) {
            let (line, start) = (machine.line(result.value).start(), place(result, start));
            if !core::ptr::eq(line, start) {
                // SAFETY: the register has the values of the span, of the kind of `result.dtype`.
                // There is room for them, by the caller's promise.
                unsafe { result.dtype.write_line(line, start, (1, positions), [0, 1]) };
            }
        }
    }
}

/// Fused loops as the kernel of their sum.
struct SummedLoops<'k, T> {
    loops: &'k FusedLoops,
    machine: Machine<'k>,
    targets: FusedTargets<'k>,
    /// The register that is added up.
    value: Register,
    /// The number of each position.
    numbers: Row<'k>,
    line: Vec<T>,
}

impl<T: ProgramOutput> SummedLoops<'_, T> {
    /// Runs the program over the `len` positions from number `from` on. Returns the values that are
    /// added up.
    fn run(&mut self, from: usize, len: usize) -> *const T {
        let SummedLoops { loops, machine, targets, value, line, .. } = self;
        line.clear();
        let mut current = core::ptr::null();
        loops.spans(from, len, &mut |span, first| {
            // SAFETY: whoever made the kernel promised that there is room for the results.
            unsafe { loops.span(machine, targets, span, first) };
            let values = machine.line(*value).start().cast::<T>();
            if span.positions() == len {
                current = values;
                return;
            }
            // SAFETY: the register has a value for each position of the span, and its kind is that
            // of `T`.
            line.extend_from_slice(unsafe { core::slice::from_raw_parts(values, span.positions()) });
            current = line.as_ptr();
        });
        current
    }
}

// SAFETY: each position of the loops is in one tile, so parts that run on several threads write
// different results. `run` returns a line with all elements of the tile.
unsafe impl<T: ProgramOutput> TileSource<T> for SummedLoops<'_, T> {
    fn tile(&mut self, tile: &Tile<'_>) -> *const T {
        let along = self.numbers.strides.iter().zip(tile.at).map(|(&step, &at)| step * at as isize);
        let from = self.numbers.offset + along.sum::<isize>();
        self.run(from as usize, tile.len)
    }
}

/// Where the results are written.
#[derive(Clone, Copy)]
struct FusedTargets<'t> {
    /// The first element of each result.
    starts: &'t [*mut u8],
    /// Whether the interpreter may keep the register of a result in the result's memory. It may not
    /// if that memory holds an operand, which each run must read first, or if the register lacks
    /// the layout of the elements.
    is_direct: &'t [bool],
}

enum FusedMemory {
    New(Box<dyn FreshMemory>),
    /// The memory of a cell that nothing else holds.
    Kept(Arc<dyn Held>),
    /// The memory of an operand of the loops that nothing else holds.
    Operand(Arc<dyn Held>),
}

impl FusedMemory {
    fn start(&mut self) -> *mut u8 {
        match self {
            FusedMemory::New(own) => own.start(),
            FusedMemory::Kept(held) | FusedMemory::Operand(held) => start_of_free(held),
        }
    }
}

/// New memory for a result, with any element type.
trait FreshMemory {
    /// The address of the first element.
    fn start(&mut self) -> *mut u8;
    /// Sets the number of elements.
    ///
    /// # Safety
    ///
    /// The first `len` elements are written.
    unsafe fn assume_written(&mut self, len: usize);
    /// The memory, to report it as the result of a step.
    fn result(&self) -> ResultMemory<'_>;
    fn held(self: Box<Self>) -> Arc<dyn Held>;
}

impl<T: Element> FreshMemory for Vec<T> {
    fn start(&mut self) -> *mut u8 {
        self.as_mut_ptr().cast()
    }

    unsafe fn assume_written(&mut self, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.set_len(len) };
    }

    fn result(&self) -> ResultMemory<'_> {
        ResultMemory::of(self)
    }

    fn held(self: Box<Self>) -> Arc<dyn Held> {
        Buffer::from(*self).held()
    }
}

fn fresh(dtype: DType, len: usize) -> Result<Box<dyn FreshMemory>, Error> {
    match_dtype!(dtype, T => Ok(Box::new(reserve::<T>(len)?)))
}
