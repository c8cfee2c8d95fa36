//! Runs programs line by line: each instruction runs along a line of elements that stays in the
//! first-level cache. [`Interpreted`] makes a program a kernel.

use crate::load::any::TileSource;
use crate::load::{Faults, Kernel, TILE, Tile, read_line};
use crate::loops::nest::{OperandRows, Row};
use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::prefetch::prefetch_lines;
use crate::memory::elements::Reached;
use crate::ops::code::{BinaryOpcode, DType, Number, RegisterKind, UnaryOpcode, integer_bounds, match_dtype};
use crate::ops::function::{RegisterValues, ValuesMut};
use crate::program::{Instruction, Register, ScalarProgram};
use crate::scalar::{CastTo, Element};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Deref;
use smallvec::SmallVec;

/// Element types of a program's results. (The trait is sealed, because the interpreter reads
/// registers as elements of these types.)
pub trait ProgramOutput: Element + sealed::SealedOutput {
    /// The kind of register that the result is in.
    const KIND: RegisterKind;
    /// Whether registers of this kind hold elements of this type, which need no conversion.
    const IN_REGISTERS: bool;
    /// Converts a float to this type.
    fn of(value: f64) -> Self;
    /// Converts an integer to this type.
    fn of_int(value: isize) -> Self;
}

mod sealed {
    pub trait SealedOutput {}
}

/// The values of a register along a line.
#[derive(Clone, Copy)]
pub(crate) struct RegisterLine(*const u8);

impl RegisterLine {
    pub(crate) fn start(self) -> *const u8 {
        self.0
    }

    /// # Safety
    ///
    /// The register holds `len` values of this type.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn slice<'l, T>(self, len: usize) -> &'l [T] {
        // SAFETY: the caller's promise.
        unsafe { core::slice::from_raw_parts(self.0.cast(), len) }
    }
}

/// Elements that a program reads.
#[derive(Clone, Copy)]
pub struct OperandSource {
    start: *const u8,
    dtype: DType,
    /// A table of offsets, in elements, that are added to the offsets from the strides. The table
    /// has its own row of strides.
    table: Option<*const isize>,
    /// The range of the elements, if it is to be checked.
    reached: Option<Reached>,
    /// The start and the end of the table, if the lines at the offsets of later rows are to be
    /// prefetched.
    entries: Option<(*const isize, *const isize)>,
}

impl OperandSource {
    /// Elements in memory, with a table of offsets if the operand has one.
    ///
    /// # Safety
    ///
    /// While a kernel reads the source, there is an initialized element of the type `dtype` for
    /// each position of the nest: at `start`, offset by the row of strides. With a table, the next
    /// row leads to an entry of the table, and the element is further offset by this entry.
    pub unsafe fn new(start: *const u8, dtype: DType, table: Option<*const isize>) -> Self {
        OperandSource { start, dtype, table, reached: None, entries: None }
    }

    /// Adds prefetching of lines whose offsets are in the table. `offsets` is the whole table.
    #[cfg(feature = "std")]
    pub(crate) fn prefetching(self, offsets: &[isize]) -> Self {
        let range = offsets.as_ptr_range();
        OperandSource { entries: Some((range.start, range.end)), ..self }
    }

    /// Adds a check of the operand's row, in builds with debug assertions.
    #[cfg(feature = "std")]
    pub(crate) fn reaching(self, reached: Reached) -> Self {
        OperandSource { reached: Some(reached), ..self }
    }

    /// An operand without memory: its elements are positions.
    pub fn position() -> Self {
        OperandSource {
            start: core::ptr::null(),
            dtype: DType::Isize,
            table: None,
            reached: None,
            entries: None,
        }
    }
}

struct SpanOperand<'k> {
    source: OperandSource,
    row: Row<'k>,
    table: Option<Row<'k>>,
    /// The address of the element that fills the register, and how many positions it fills. A
    /// broadcast element is often the same for many tiles.
    filled: (*const u8, usize),
}

/// Positions of a nest that are run at once: `rows` rows of `len` positions along the innermost
/// loop, at most [`TILE`] in all. The first row begins at `at`, each of the others one step further
/// along the second innermost loop.
#[derive(Clone, Copy)]
pub(crate) struct Span<'t> {
    pub(crate) at: &'t [usize],
    pub(crate) rows: usize,
    pub(crate) len: usize,
}

impl Span<'_> {
    pub(crate) fn positions(&self) -> usize {
        self.rows * self.len
    }
}

/// The offset of a span's first element, and the steps from row to row and along a row.
#[derive(Clone, Copy)]
struct OperandSteps {
    first: isize,
    row: isize,
    along: isize,
}

impl OperandSteps {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn of(row: &Row<'_>, at: &[usize]) -> Self {
        let first = at.iter().zip(row.strides).map(|(&at, &stride)| at as isize * stride).sum::<isize>();
        let (along, outer) = row.strides.split_last().map_or((0, &[][..]), |(&along, outer)| (along, outer));
        OperandSteps { first: first + row.offset, row: outer.last().copied().unwrap_or(0), along }
    }
}

/// The state of a running program: its operands along a nest, and a line of elements for each
/// register.
pub(crate) struct Machine<'k> {
    program: &'k ScalarProgram,
    operands: SmallVec<[SpanOperand<'k>; 8]>,
    slots: MachineSlots<'k>,
    memory: MachineMemory,
    /// The number of values that a slot can hold.
    room: usize,
    /// How many positions of the lines of constants are filled.
    constants: usize,
}

/// The memory of a machine. With the feature `std`, the thread keeps it for its next machine.
#[derive(Default)]
struct MachineMemory {
    registers: Vec<RegisterLine>,
    scratch: Vec<CacheLine>,
    /// The address that each register is written to instead of its slot, or null. Empty if all
    /// registers use slots.
    #[cfg(feature = "std")]
    places: Vec<*mut u64>,
}

#[cfg(feature = "std")]
std::thread_local! {
    static MEMORY: core::cell::Cell<MachineMemory> = const {
        core::cell::Cell::new(MachineMemory { registers: Vec::new(), scratch: Vec::new(), places: Vec::new() })
    };
}

impl MachineMemory {
    fn new(instructions: usize) -> Self {
        #[cfg(feature = "std")]
        let mut memory = MEMORY.try_with(core::cell::Cell::take).unwrap_or_default();
        #[cfg(not(feature = "std"))]
        let mut memory = MachineMemory::default();
        memory.registers.clear();
        memory.registers.resize(instructions, RegisterLine(core::ptr::null()));
        #[cfg(feature = "std")]
        memory.places.clear();
        memory
    }
}

#[cfg(feature = "std")]
impl Drop for Machine<'_> {
    fn drop(&mut self) {
        let memory = core::mem::take(&mut self.memory);
        let _ = MEMORY.try_with(|own| own.set(memory));
    }
}

/// The slots of a machine: owned, or borrowed from a program that runs many times.
enum MachineSlots<'k> {
    Own(Slots),
    #[cfg_attr(not(feature = "std"), expect(dead_code, reason = "only recorded functions keep slots"))]
    Kept(&'k Slots),
}

impl Deref for MachineSlots<'_> {
    type Target = Slots;

    fn deref(&self) -> &Slots {
        match self {
            MachineSlots::Own(slots) => slots,
            MachineSlots::Kept(slots) => slots,
        }
    }
}

/// The unit in which slots are allocated.
#[repr(align(64))]
#[allow(dead_code)] // only allocated
struct CacheLine([u8; 64]);

/// A value that is written to memory in addition to the program's result.
#[derive(Clone, Copy)]
pub struct ExtraOutput<T> {
    /// The register of the value.
    pub value: Register,
    /// Where the element at the origin of the loops is written.
    pub start: *mut T,
}

/// A program, run tile by tile over a nest. The result is converted to `T`.
pub struct Interpreted<'k, T> {
    machine: Machine<'k>,
    /// The register of the result.
    value: Register,
    /// Further values that are written to memory, all with the same row of strides.
    beside: &'k [ExtraOutput<T>],
    written: Row<'k>,
    result: Vec<T>,
    current: *const T,
    marker: PhantomData<&'k [T]>,
}

/// The slot of each instruction's value. The slot of a computed value is reused after its last
/// read.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    of: Vec<u32>,
    count: usize,
    /// The size of the widest value in bytes.
    width: usize,
}

/// The prefetch distance, in rows, for lines whose offsets are in a table.
const PREFETCH_ROWS: isize = 4;

/// The maximum number of elements of a line. Eight lines of `f64` fit into a first-level cache of
/// 32 KiB.
const LINE: usize = TILE;

impl Slots {
    /// The slots of a program with these results.
    pub(crate) fn new(program: &ScalarProgram, results: impl Iterator<Item = Register>) -> Self {
        let instructions = program.instructions();
        let mut last = vec![0; instructions.len()];
        for (at, instruction) in instructions.iter().enumerate() {
            instruction.inputs().for_each(|input| last[input as usize] = at);
        }
        results.for_each(|result| last[result as usize] = usize::MAX);
        let (mut free, mut of, mut count) = (Vec::new(), Vec::with_capacity(instructions.len()), 0);
        for (at, instruction) in instructions.iter().enumerate() {
            // Loads, positions and constants keep their slots, so that constants and broadcast
            // elements are not written again for the next tile.
            let slot = if instruction.inputs().next().is_none() { None } else { free.pop() };
            of.push(slot.unwrap_or_else(|| {
                count += 1;
                count as u32 - 1
            }));
            for input in instruction.inputs() {
                let computed = instructions[input as usize].inputs().next().is_some();
                if last[input as usize] == at && computed && !free.contains(&of[input as usize]) {
                    free.push(of[input as usize]);
                }
            }
        }
        let width = |kind: &RegisterKind| match kind {
            RegisterKind::Bool => 1,
            RegisterKind::F32 => 4,
            RegisterKind::F64 | RegisterKind::Int => 8,
        };
        let width = program.kinds.iter().map(width).max().unwrap_or(1);
        Slots { of, count, width }
    }

    /// The number of cache lines of a slot for `len` values.
    fn lines(&self, len: usize) -> usize {
        (len * self.width).div_ceil(size_of::<CacheLine>())
    }

    /// The size of all slots in bytes, for `len` values each.
    #[cfg(feature = "std")]
    pub(crate) fn bytes(&self, len: usize) -> usize {
        self.count * self.lines(len) * size_of::<CacheLine>()
    }
}

impl<'k, T: ProgramOutput> Interpreted<'k, T> {
    /// The program over a nest.
    ///
    /// # Safety
    ///
    /// `sources` has one entry for each operand of the program, and each operand that the program
    /// loads has elements of the kind that it loads. `rows` yields, for each source in order, one
    /// row and, if the source has a table, a second row for the table.
    pub unsafe fn new(
        program: &'k ScalarProgram,
        sources: &[OperandSource],
        rows: &mut OperandRows<'k>,
    ) -> Self {
        // SAFETY: the caller's promise. Only the result is written.
        unsafe { Self::with_values(program, program.result(), &[], sources, rows) }
    }

    /// Like [`new`](Self::new), with slots that were made earlier for the program and its result.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new). [`Slots::new`] made the slots for this program and its result.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn with_slots(
        program: &'k ScalarProgram,
        slots: &'k Slots,
        sources: &[OperandSource],
        rows: &mut OperandRows<'k>,
    ) -> Self {
        // SAFETY: the caller's promise.
        let machine = unsafe { Machine::with_slots(program, slots, sources, rows) };
        Interpreted {
            machine,
            value: program.result(),
            beside: &[],
            written: Row::new(&[]),
            result: Vec::new(),
            current: core::ptr::null(),
            marker: PhantomData,
        }
    }

    /// Like [`new`](Self::new), but the result is any `value` of the program, and further values
    /// are written to memory (`beside`). Unless `beside` is empty, the nest has one more row, with
    /// the strides of this memory.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new). The row of `beside` is contiguous along the innermost loop. While
    /// the kernel runs, each pointer of `beside`, offset by that row, can be written to for each
    /// position of the nest, and nothing else accesses this memory.
    pub unsafe fn with_values(
        program: &'k ScalarProgram,
        value: Register,
        beside: &'k [ExtraOutput<T>],
        sources: &[OperandSource],
        rows: &mut OperandRows<'k>,
    ) -> Self {
        let results = beside.iter().map(|beside| beside.value).chain([value]);
        // SAFETY: the caller's promise.
        let machine = unsafe { Machine::new(program, results, sources, rows) };
        let written = if beside.is_empty() { Row::new(&[]) } else { rows.next_row() };
        Interpreted {
            machine,
            value,
            beside,
            written,
            result: Vec::new(),
            current: core::ptr::null(),
            marker: PhantomData,
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run(&mut self, tile: &Tile<'_>) {
        let len = tile.len;
        self.machine.run(&Span { at: tile.at, rows: 1, len });
        for &ExtraOutput { value, start } in self.beside {
            let place = start.wrapping_offset(OperandSteps::of(&self.written, tile.at).first);
            let values = self.values(value, len);
            // SAFETY: there are `len` values. The memory belongs to the tile, and is contiguous
            // along the innermost loop of the nest, like the result.
            unsafe { core::ptr::copy_nonoverlapping(values, place, len) };
        }
        self.current = self.values(self.value, len);
    }

    /// The `len` values of a register, converted to `T` unless it holds them as `T`. They are valid
    /// until the next call.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn values(&mut self, value: Register, len: usize) -> *const T {
        let line = self.machine.line(value);
        let kind = self.machine.program.kind(value);
        if T::IN_REGISTERS && kind == T::KIND {
            return line.start().cast();
        }
        self.result.clear();
        match kind {
            RegisterKind::F64 => {
                // SAFETY: the register has `len` values of its kind.
                let line = unsafe { line.slice::<f64>(len) };
                self.result.extend(line.iter().map(|&x| T::of(x)));
            }
            RegisterKind::F32 => {
                // SAFETY: the register has `len` values of its kind.
                let line = unsafe { line.slice::<f32>(len) };
                self.result.extend(line.iter().map(|&x| T::of(x.into())));
            }
            RegisterKind::Int if T::KIND == RegisterKind::Int => {
                // SAFETY: the register has `len` values of its kind.
                let line = unsafe { line.slice::<isize>(len) };
                self.result.extend(line.iter().map(|&x| T::of_int(x)));
            }
            RegisterKind::Bool | RegisterKind::Int => {
                unreachable!("results of another kind need a cast")
            }
        }
        self.result.as_ptr()
    }
}

impl<'k> Machine<'k> {
    /// A machine that computes these `results`.
    ///
    /// # Safety
    ///
    /// As for [`Interpreted::new`].
    pub(crate) unsafe fn new(
        program: &'k ScalarProgram,
        results: impl Iterator<Item = Register>,
        sources: &[OperandSource],
        rows: &mut OperandRows<'k>,
    ) -> Self {
        Machine::of(program, MachineSlots::Own(Slots::new(program, results)), sources, rows)
    }

    /// Like [`new`](Self::new), with slots that were made earlier for the program and its results.
    ///
    /// # Safety
    ///
    /// As for [`Interpreted::new`]. [`Slots::new`] made the slots for this program and all
    /// registers that are read after a span.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn with_slots(
        program: &'k ScalarProgram,
        slots: &'k Slots,
        sources: &[OperandSource],
        rows: &mut OperandRows<'k>,
    ) -> Self {
        assert_eq!(slots.of.len(), program.instructions().len(), "the slots belong to the program");
        Machine::of(program, MachineSlots::Kept(slots), sources, rows)
    }

    fn of(
        program: &'k ScalarProgram,
        slots: MachineSlots<'k>,
        sources: &[OperandSource],
        rows: &mut OperandRows<'k>,
    ) -> Self {
        let operands = sources
            .iter()
            .map(|&source| {
                let row = rows.next_row();
                if let Some(reached) = &source.reached {
                    row.assert_within(reached);
                }
                let table = source.table.map(|_| rows.next_row());
                SpanOperand { source, row, table, filled: (core::ptr::null(), 0) }
            })
            .collect();
        Machine {
            program,
            operands,
            slots,
            memory: MachineMemory::new(program.instructions().len()),
            room: 0,
            constants: 0,
        }
    }

    /// Makes the following spans write the values of a register to `place` instead of its slot. For
    /// loads, positions and constants, nothing changes, and the result is `false`.
    ///
    /// # Safety
    ///
    /// `place` has room for the values of a span, in the register's kind. Nothing else accesses
    /// that memory while a span runs.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn write_to(&mut self, register: Register, place: *mut u8) -> bool {
        let is_computed = self.program.instruction(register).inputs().next().is_some();
        if is_computed {
            self.memory.places.resize(self.program.instructions().len(), core::ptr::null_mut());
            self.memory.places[register as usize] = place.cast();
        }
        is_computed
    }

    /// Where an instruction writes its values.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn place(&self, at: usize, scratch: *mut CacheLine, lines: usize) -> *mut u64 {
        #[cfg(feature = "std")]
        if let Some(&place) = self.memory.places.get(at)
            && !place.is_null()
        {
            return place;
        }
        scratch.wrapping_add(self.slots.of[at] as usize * lines).cast()
    }

    /// Allocates room for `len` values in each slot. The values in the slots are lost.
    #[cold]
    fn make_room(&mut self, len: usize) {
        let lines = self.slots.lines(len);
        self.memory.scratch.clear();
        self.memory.scratch.reserve_exact(self.slots.count * lines);
        self.room = lines * size_of::<CacheLine>() / self.slots.width;
        self.constants = 0;
        self.operands.iter_mut().for_each(|operand| operand.filled = (core::ptr::null(), 0));
    }

    pub(crate) fn result(&self) -> Register {
        self.program.result()
    }

    /// The values of a result, for the span that ran last.
    pub(crate) fn line(&self, result: Register) -> RegisterLine {
        self.memory.registers[result as usize]
    }

    /// Runs the program over a span. The loops over kernels are already compiled for the CPU's
    /// instructions, but such a large function is not inlined into them, so it is dispatched again.
    pub(crate) fn run(&mut self, span: &Span<'_>) {
        debug_assert!(span.positions() <= LINE, "lines have room");
        dispatch(SpanRun { machine: self, span });
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run_with<I: Isa>(&mut self, span: &Span<'_>) {
        let len = span.positions();
        if len > self.room {
            self.make_room(len);
        }
        let constants = self.constants;
        self.constants = constants.max(len);
        let scratch: *mut CacheLine = self.memory.scratch.as_mut_ptr();
        // Slots are adjacent: if they were a page apart, they would evict each other from the
        // first-level cache.
        let lines = self.slots.lines(self.room);
        for at in 0..self.program.instructions().len() {
            let place = self.place(at, scratch, lines);
            let kind = self.program.kind(at as Register);
            let line = match self.program.instruction(at as Register) {
                Instruction::Load(number) => self.operands[number as usize].load(span, kind, place),
                Instruction::Position(number) => self.operands[number as usize].count(span, place),
                // The line of a constant is already filled.
                Instruction::Constant(_) if constants >= len => continue,
                instruction => {
                    // The slot of the instruction is not the slot of an input, because inputs are
                    // still read. Lines have `len` values of their instruction's kind. Each slot of
                    // the scratch memory has room for `len` values of the widest kind.
                    let registers = &self.memory.registers;
                    Execute { program: self.program, registers, instruction, kind, place, len }.run::<I>();
                    RegisterLine(place.cast())
                }
            };
            self.memory.registers[at] = line;
        }
    }
}

struct SpanRun<'r, 'k> {
    machine: &'r mut Machine<'k>,
    span: &'r Span<'r>,
}

impl Task for SpanRun<'_, '_> {
    type Out = ();
    const WIDE: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        self.machine.run_with::<I>(self.span);
    }
}

macro_rules! outputs {
    ($($t:ty, $kind:ident, $in_registers:literal;)*) => {$(
        impl sealed::SealedOutput for $t {}
        impl ProgramOutput for $t {
            const KIND: RegisterKind = RegisterKind::$kind;
            const IN_REGISTERS: bool = $in_registers;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn of(value: f64) -> Self {
                CastTo::cast_to(value)
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn of_int(value: isize) -> Self {
                CastTo::cast_to(value)
            }
        }
    )*};
}

outputs! {
    f32, F32, true;
    f64, F64, true;
    isize, Int, true;
    bool, Bool, true;
    i8, Int, false;
    i16, Int, false;
    i32, Int, false;
    i64, Int, false;
    u8, Int, false;
    u16, Int, false;
    u32, Int, false;
    u64, Int, false;
    usize, Int, false;
}
#[cfg(feature = "half")]
outputs! {
    half::f16, F32, false;
    half::bf16, F32, false;
}

impl SpanOperand<'_> {
    /// Fills a register with positions along the loops.
    fn count(&mut self, span: &Span<'_>, place: *mut u64) -> RegisterLine {
        let steps = OperandSteps::of(&self.row, span.at);
        for row in 0..span.rows {
            let mut position = steps.first + row as isize * steps.row;
            for x in 0..span.len {
                // SAFETY: the slot has room for a line, which the rows of a span fill.
                unsafe { place.cast::<isize>().add(row * span.len + x).write(position) };
                position += steps.along;
            }
        }
        RegisterLine(place.cast())
    }

    /// Loads the elements of a span into a register. If they are contiguous, and floats or `bool`s
    /// of the register's type, the register points to them.
    fn load(&mut self, span: &Span<'_>, kind: RegisterKind, place: *mut u64) -> RegisterLine {
        let mut steps = OperandSteps::of(&self.row, span.at);
        let mut table = self.source.table.zip(self.table).map(|(start, row)| {
            let steps = OperandSteps::of(&row, span.at);
            (start.wrapping_offset(steps.first), steps)
        });
        if let Some((start, OperandSteps { along: 0, .. })) = table
            && span.rows == 1
        {
            // The whole line has one entry of the table.
            if let (Some((first, end)), Some((_, moved))) = (self.source.entries, table) {
                let next = start.wrapping_offset(PREFETCH_ROWS * moved.row);
                if moved.row != 0 && next >= first && next < end {
                    // SAFETY: the entry is in the table.
                    let first = steps.first + PREFETCH_ROWS * steps.row + unsafe { *next };
                    let bytes = self.source.dtype.bytes();
                    let line = self.source.start.wrapping_offset(first * bytes as isize);
                    prefetch_lines(line, span.len * bytes);
                }
            }
            // SAFETY: each position of the nest has an entry in the table, by the contract of
            // `OperandSource::new`.
            steps.first += unsafe { *start };
            table = None;
        }
        let is_line = steps.along == 1 && (span.rows == 1 || steps.row == span.len as isize);
        if let (None, true, DType::F32 | DType::F64 | DType::Bool) = (table, is_line, self.source.dtype) {
            let bytes = self.source.dtype.bytes() as isize;
            return RegisterLine(self.source.start.wrapping_offset(steps.first * bytes));
        }
        match_dtype!(self.source.dtype, T => self.load_of::<T>(steps, table, span, kind, place))
    }

    fn load_of<T: Loads>(
        &mut self,
        steps: OperandSteps,
        table: Option<(*const isize, OperandSteps)>,
        span: &Span<'_>,
        kind: RegisterKind,
        place: *mut u64,
    ) -> RegisterLine {
        debug_assert_eq!(T::KIND, kind, "elements are loaded into registers of their kind");
        let start = self.source.start.cast::<T>().wrapping_offset(steps.first);
        let out = place.cast::<T::Register>();
        let is_one = steps.along == 0 && (span.rows == 1 || steps.row == 0);
        if table.is_none() && is_one {
            let len = span.positions();
            if self.filled.0 != start.cast() || self.filled.1 < len {
                // SAFETY: every position of the nest has an element, by the contract of
                // `OperandSource::new`. The slot has room for a line.
                unsafe { (0..len).for_each(|x| out.add(x).write((*start).register())) };
                self.filled = (start.cast(), len);
            }
            return RegisterLine(place.cast());
        }
        for row in 0..span.rows {
            let start = start.wrapping_offset(row as isize * steps.row);
            let out = out.wrapping_add(row * span.len);
            // SAFETY: every position of the nest has an element, and an entry of the table if there
            // is one, by the contract of `OperandSource::new`. The slot has room for a line, which
            // the rows of a span fill.
            unsafe {
                match (table, steps.along) {
                    (Some((table, moved)), _) => {
                        let table = table.wrapping_offset(row as isize * moved.row);
                        for x in 0..span.len {
                            let moved = *table.offset(x as isize * moved.along);
                            let value = *start.wrapping_offset(x as isize * steps.along + moved);
                            out.add(x).write(value.register());
                        }
                    }
                    (None, 0) => (0..span.len).for_each(|x| out.add(x).write((*start).register())),
                    (None, 1) => (0..span.len).for_each(|x| out.add(x).write((*start.add(x)).register())),
                    (None, along) => {
                        for x in 0..span.len {
                            out.add(x).write((*start.wrapping_offset(x as isize * along)).register());
                        }
                    }
                }
            }
        }
        self.filled = (core::ptr::null(), 0);
        RegisterLine(place.cast())
    }
}

impl DType {
    /// Writes `rows` rows of `len` values of a register as elements of this type: the first row
    /// begins at `start`, and the steps, in elements, are from row to row and along a row.
    ///
    /// # Safety
    ///
    /// `line` has this many values of the kind of this type. The target has room for them, and
    /// nothing else accesses it. `line` may be the target itself, if the target is contiguous.
    pub(crate) unsafe fn write_line(
        self,
        line: *const u8,
        start: *mut u8,
        (rows, len): (usize, usize),
        steps: [isize; 2],
    ) {
        if self.is_register() && steps[1] == 1 {
            let bytes = len * self.bytes();
            for row in 0..rows {
                let to = start.wrapping_offset(row as isize * steps[0] * self.bytes() as isize);
                // SAFETY: the caller's promise. A register holds elements of this type unchanged.
                unsafe { core::ptr::copy(line.add(row * bytes), to, bytes) };
            }
            return;
        }
        // SAFETY: the caller's promise.
        match_dtype!(self, T => unsafe {
            write_rows::<<T as Loads>::Register, T>(line.cast(), start.cast(), (rows, len), steps);
        });
    }
}

/// Writes values of a register as elements of one type: see [`DType::write_line`].
///
/// # Safety
///
/// `line` has `rows * len` values. The target has room for them along the steps, and nothing else
/// accesses it.
unsafe fn write_rows<R: Copy + CastTo<T>, T: Copy>(
    line: *const R,
    start: *mut T,
    (rows, len): (usize, usize),
    [across, along]: [isize; 2],
) {
    for row in 0..rows {
        let (line, start) = (line.wrapping_add(row * len), start.wrapping_offset(row as isize * across));
        // SAFETY: the caller promises `rows * len` values, and room for them.
        unsafe {
            if along == 1 {
                (0..len).for_each(|x| start.add(x).write((*line.add(x)).cast_to()));
            } else {
                (0..len)
                    .for_each(|x| start.wrapping_offset(x as isize * along).write((*line.add(x)).cast_to()));
            }
        }
    }
}

/// Element types, and how registers hold them.
trait Loads: Copy {
    type Register: Copy;
    const KIND: RegisterKind;
    fn register(self) -> Self::Register;
}

macro_rules! loads {
    ($($t:ty, $register:ty, $kind:ident;)*) => {$(
        impl Loads for $t {
            type Register = $register;
            const KIND: RegisterKind = RegisterKind::$kind;
            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(clippy::useless_conversion)]
            fn register(self) -> $register {
                CastTo::<$register>::cast_to(self)
            }
        }
    )*};
}

loads! {
    f32, f32, F32; f64, f64, F64; i8, isize, Int; i16, isize, Int; i32, isize, Int; i64, isize, Int; isize, isize, Int;
    u8, isize, Int; u16, isize, Int; u32, isize, Int; u64, isize, Int; usize, isize, Int;
}
impl Loads for bool {
    type Register = bool;
    const KIND: RegisterKind = RegisterKind::Bool;
    #[cfg_attr(not(unoptimized), inline(always))]
    fn register(self) -> bool {
        self
    }
}
#[cfg(feature = "half")]
loads! { half::f16, f32, F32; half::bf16, f32, F32; }

/// One instruction along a line.
struct Execute<'r> {
    program: &'r ScalarProgram,
    registers: &'r [RegisterLine],
    instruction: Instruction,
    kind: RegisterKind,
    place: *mut u64,
    len: usize,
}

impl Execute<'_> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let Execute { program, registers, instruction, kind, place, len } = self;
        let kind_of = |register: Register| program.kind(register);
        // SAFETY: the creator of this `Execute` promises that registers hold lines of `len` values
        // of their kind, that `place` has room for one line, and that it overlaps no line that is
        // read.
        unsafe {
            macro_rules! line {
                ($register:expr) => {
                    registers[$register as usize].slice(len)
                };
            }
            macro_rules! out {
                () => {
                    core::slice::from_raw_parts_mut(place.cast(), len)
                };
            }
            match instruction {
                Instruction::Load(_) | Instruction::Position(_) => {}
                Instruction::Call(number, a, b) => {
                    let line = |register: Register| match kind_of(register) {
                        RegisterKind::F32 => RegisterValues::F32(line!(register)),
                        RegisterKind::F64 => RegisterValues::F64(line!(register)),
                        RegisterKind::Bool => RegisterValues::Bool(line!(register)),
                        RegisterKind::Int => RegisterValues::Int(line!(register)),
                    };
                    let out = match kind {
                        RegisterKind::F32 => ValuesMut::F32(out!()),
                        RegisterKind::F64 => ValuesMut::F64(out!()),
                        RegisterKind::Bool => ValuesMut::Bool(out!()),
                        RegisterKind::Int => ValuesMut::Int(out!()),
                    };
                    program.functions().get(number).run(line(a), line(b), out);
                }
                Instruction::Constant(number) => match (number, kind) {
                    (Number::Float(value), RegisterKind::F32) => {
                        fill::<f32>(out!(), CastTo::<f32>::cast_to(value))
                    }
                    (Number::Float(value), _) => fill::<f64>(out!(), value),
                    (Number::Int(value), _) => fill::<isize>(out!(), value),
                    (Number::Bool(value), _) => fill::<bool>(out!(), value),
                },
                Instruction::Unary(op, a) if op.is_test() => match kind_of(a) {
                    RegisterKind::F32 => op.tests::<I, f32>(line!(a), out!()),
                    RegisterKind::F64 => op.tests::<I, f64>(line!(a), out!()),
                    // Integers are finite. Every other test is false for them.
                    RegisterKind::Int | RegisterKind::Bool => {
                        fill::<bool>(out!(), op == UnaryOpcode::IsFinite)
                    }
                },
                Instruction::Unary(op, a) => match kind {
                    RegisterKind::F32 => op.floats::<I, f32>(line!(a), out!()),
                    RegisterKind::F64 => op.floats::<I, f64>(line!(a), out!()),
                    RegisterKind::Int => op.integers::<I>(line!(a), out!()),
                    RegisterKind::Bool => {
                        let (a, out): (&[bool], &mut [bool]) = (line!(a), out!());
                        out.iter_mut().zip(a).for_each(|(out, &a)| *out = !a);
                    }
                },
                Instruction::Binary(op, a, b) if kind_of(a) == RegisterKind::Bool => {
                    op.booleans(line!(a), line!(b), out!())
                }
                Instruction::Binary(op, a, b) if op.is_comparison() => {
                    compare::<I>(op, kind_of(a), registers, (a, b), place, len)
                }
                Instruction::Binary(op, a, b) => match kind {
                    RegisterKind::F32 => op.floats::<I, f32>(line!(a), line!(b), out!()),
                    RegisterKind::F64 => op.floats::<I, f64>(line!(a), line!(b), out!()),
                    RegisterKind::Int => op.integers::<I>(line!(a), line!(b), out!()),
                    RegisterKind::Bool => unreachable!("`bool`s are handled above"),
                },
                Instruction::Select(cond, a, b) => match kind {
                    RegisterKind::F32 => select::<f32>(line!(cond), line!(a), line!(b), out!()),
                    RegisterKind::F64 => select::<f64>(line!(cond), line!(a), line!(b), out!()),
                    RegisterKind::Int => select::<isize>(line!(cond), line!(a), line!(b), out!()),
                    RegisterKind::Bool => select::<bool>(line!(cond), line!(a), line!(b), out!()),
                },
                #[cfg(feature = "half")]
                Instruction::Cast(to @ (DType::F16 | DType::Bf16), a) => match kind_of(a) {
                    RegisterKind::F32 => round_to::<f32>(to, line!(a), out!()),
                    RegisterKind::F64 => round_to::<f64>(to, line!(a), out!()),
                    RegisterKind::Int => round_to::<isize>(to, line!(a), out!()),
                    RegisterKind::Bool => round_to::<bool>(to, line!(a), out!()),
                },
                Instruction::Cast(to, a) => match (kind_of(a), to.kind()) {
                    (RegisterKind::F32, RegisterKind::F64) => cast::<f32, f64>(line!(a), out!()),
                    (RegisterKind::F64, RegisterKind::F32) => cast::<f64, f32>(line!(a), out!()),
                    (RegisterKind::Int, RegisterKind::F32) => cast::<isize, f32>(line!(a), out!()),
                    (RegisterKind::Int, RegisterKind::F64) => cast::<isize, f64>(line!(a), out!()),
                    (RegisterKind::Bool, RegisterKind::F32) => cast::<bool, f32>(line!(a), out!()),
                    (RegisterKind::Bool, RegisterKind::F64) => cast::<bool, f64>(line!(a), out!()),
                    (RegisterKind::Bool, RegisterKind::Int) => cast::<bool, isize>(line!(a), out!()),
                    (RegisterKind::F32, RegisterKind::Bool) => cast::<f32, bool>(line!(a), out!()),
                    (RegisterKind::F64, RegisterKind::Bool) => cast::<f64, bool>(line!(a), out!()),
                    (RegisterKind::Int, RegisterKind::Bool) => cast::<isize, bool>(line!(a), out!()),
                    (RegisterKind::F32, RegisterKind::F32) => cast::<f32, f32>(line!(a), out!()),
                    (RegisterKind::F64, RegisterKind::F64) => cast::<f64, f64>(line!(a), out!()),
                    (RegisterKind::Bool, RegisterKind::Bool) => cast::<bool, bool>(line!(a), out!()),
                    (RegisterKind::F32 | RegisterKind::F64 | RegisterKind::Int, RegisterKind::Int) => {
                        let (low, high) = integer_bounds(to);
                        let out: &mut [isize] = out!();
                        match kind_of(a) {
                            RegisterKind::F32 if to.is_unsigned_word() => {
                                return unsigned::<f32>(line!(a), out);
                            }
                            RegisterKind::F64 if to.is_unsigned_word() => {
                                return unsigned::<f64>(line!(a), out);
                            }
                            RegisterKind::F32 => cast::<f32, isize>(line!(a), out),
                            RegisterKind::F64 => cast::<f64, isize>(line!(a), out),
                            _ => return wrap(to, line!(a), out),
                        }
                        out.iter_mut().for_each(|out| *out = (*out).clamp(low, high));
                    }
                },
            }
        }
    }
}

/// # Safety
///
/// The registers `a` and `b` hold lines of `len` values of this kind. `place` has room for `len`
/// `bool`s, and overlaps neither line.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn compare<I: Isa>(
    op: BinaryOpcode,
    kind: RegisterKind,
    registers: &[RegisterLine],
    (a, b): (Register, Register),
    place: *mut u64,
    len: usize,
) {
    let (a, b) = (registers[a as usize], registers[b as usize]);
    // SAFETY: the caller's promise.
    unsafe {
        let out = core::slice::from_raw_parts_mut(place.cast(), len);
        match kind {
            RegisterKind::F32 => op.compares::<I, f32>(a.slice(len), b.slice(len), out),
            RegisterKind::F64 => op.compares::<I, f64>(a.slice(len), b.slice(len), out),
            RegisterKind::Int => op.compares::<I, isize>(a.slice(len), b.slice(len), out),
            RegisterKind::Bool => op.booleans(a.slice(len), b.slice(len), out),
        }
    }
}

#[cfg_attr(not(unoptimized), inline(always))]
fn fill<T: Copy>(out: &mut [T], value: T) {
    out.fill(value);
}

#[cfg_attr(not(unoptimized), inline(always))]
fn select<T: Copy>(cond: &[bool], a: &[T], b: &[T], out: &mut [T]) {
    for (((out, &cond), &a), &b) in out.iter_mut().zip(cond).zip(a).zip(b) {
        *out = if cond { a } else { b };
    }
}

#[cfg_attr(not(unoptimized), inline(always))]
fn cast<A: CastTo<B>, B>(a: &[A], out: &mut [B]) {
    for (out, &a) in out.iter_mut().zip(a) {
        *out = a.cast_to();
    }
}

/// Rounds each number once, to half precision.
#[cfg(feature = "half")]
#[cfg_attr(not(unoptimized), inline(always))]
fn round_to<A: CastTo<half::f16> + CastTo<half::bf16>>(to: DType, a: &[A], out: &mut [f32]) {
    for (out, &a) in out.iter_mut().zip(a) {
        *out = match to {
            DType::F16 => CastTo::<half::f16>::cast_to(a).to_f32(),
            _ => CastTo::<half::bf16>::cast_to(a).to_f32(),
        };
    }
}

/// Converts floats to unsigned integers as wide as a register.
#[cfg_attr(not(unoptimized), inline(always))]
fn unsigned<A: CastTo<usize>>(a: &[A], out: &mut [isize]) {
    for (out, &a) in out.iter_mut().zip(a) {
        *out = CastTo::<usize>::cast_to(a) as isize;
    }
}

/// Converts integers to an integer type, as `as` does.
#[cfg_attr(not(unoptimized), inline(always))]
fn wrap(to: DType, a: &[isize], out: &mut [isize]) {
    macro_rules! wrap {
        ($($name:ident $t:ty,)*) => {
            match to {
                $(DType::$name => out.iter_mut().zip(a).for_each(|(out, &a)| {
                    *out = CastTo::<isize>::cast_to(CastTo::<$t>::cast_to(a));
                }),)*
                _ => out.copy_from_slice(a),
            }
        };
    }
    wrap!(I8 i8, I16 i16, I32 i32, I64 i64, Isize isize, U8 u8, U16 u16, U32 u32, U64 u64, Usize usize,)
}

// SAFETY: the kernel returns no pointers, and it writes only to memory that nothing else accesses,
// as `with_values` requires. `current` points to a line with all elements of the tile. Sources are
// only read, and programs are `Sync`.
unsafe impl<T: ProgramOutput> Kernel for Interpreted<'_, T> {
    type Elem = T;
    const LONG: bool = true;
    type TileReader = *const T;
    type Pairs = ();

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, _: &mut Faults) {
        self.run(tile);
    }

    read_line!(T);
}

// SAFETY: as for the kernel.
unsafe impl<T: ProgramOutput> TileSource<T> for Interpreted<'_, T> {
    fn tile(&mut self, tile: &Tile<'_>) -> *const T {
        self.run(tile);
        self.current
    }
}
