//! Computes the elements of fields.

use crate::error::Error;
use crate::loops::axes::{Order, Sizes, sort_few};
use crate::loops::modes::{ResultMemory, told_all};
use crate::loops::nest::{Nest, Odometer};
use crate::loops::rows::Rows;
use crate::loops::steps::{Loops as StepLoops, PlanStep as Explained, note, told};
use crate::machine::threads;
use crate::map::elementwise::{collect, collect_memory};
use crate::memory::allocate::reserve;
use crate::memory::axes::Axis;
use crate::memory::buffer::Buffer;
use crate::memory::destination::Destination;
use crate::memory::elements::Elements;
use crate::memory::hollow;
use crate::ops::code::{BinaryOpcode, DType};
use crate::program::interpreter::{self, ExtraOutput, Interpreted, ProgramOutput};
use crate::program::{Instruction, Register};
use crate::scalar::{Element, Num, Real};
use crate::trace::{
    Field, FieldOperand, FieldSource, Held, Node, NodeStep, StridedPlace, Table, TableIndex, TableSource,
};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// Calls a generic function with the float type of a [`DType`].
macro_rules! floats {
    ($dtype:expr, $f:ident($($arg:expr),* $(,)?)) => {
        match $dtype {
            $crate::ops::code::DType::F64 => $f::<f64>($($arg),*),
            #[cfg(feature = "half")]
            $crate::ops::code::DType::F16 => $f::<half::f16>($($arg),*),
            #[cfg(feature = "half")]
            $crate::ops::code::DType::Bf16 => $f::<half::bf16>($($arg),*),
            $crate::ops::code::DType::F32 => $f::<f32>($($arg),*),
            _ => unreachable!("gradients are floats"),
        }
    };
}

pub(crate) use floats;

/// Marks elements as the result of a rule, if a rule is given.
pub(crate) fn stepped<T: ProgramOutput + Real>(
    data: Vec<T>,
    rule: Option<impl crate::trace::Rule + 'static>,
) -> Arc<dyn Held> {
    let Some(rule) = rule else { return Buffer::from(data).held() };
    let dtype = DType::of::<T>().expect("each float type has a `DType`");
    let node = Node::new(dtype, data.len(), NodeStep::Rule(alloc::boxed::Box::new(rule)), None);
    Buffer::traced(data, node).held()
}

/// Names for unnamed loops in plans.
pub(super) const UNNAMED: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// The loops along which a place varies, by descending absolute stride. Loops along which its table
/// varies come first. Among loops of equal stride, the longest is innermost.
pub(crate) fn kept(place: &StridedPlace, sizes: &[usize]) -> Order {
    let mut order: Order = (0..sizes.len()).filter(|&axis| sizes[axis] != 1 && place.varies(axis)).collect();
    sort_few(&mut order, |&axis| {
        let table = place.table.as_ref().is_some_and(|table| table.strides[axis] != 0);
        (!table, core::cmp::Reverse(place.strides[axis].unsigned_abs()), sizes[axis])
    });
    order
}

/// Whether the positions along the loops on which a place depends are exactly the elements
/// `0..len`, each once.
pub(super) fn covers(place: &StridedPlace, sizes: &[usize], len: usize) -> bool {
    if place.table.is_some() || place.offset != 0 {
        return false;
    }
    let mut step: usize = 1;
    for &axis in kept(place, sizes).iter().rev() {
        if place.strides[axis] != step as isize {
            return false;
        }
        step = step.saturating_mul(sizes[axis]);
    }
    step == len
}

/// The memory of a field whose elements are added unchanged, and the order of loops in which the
/// elements are contiguous in the memory. `None` unless the memory starts with these elements.
pub(super) fn whole_lines<T: ProgramOutput + Real>(
    field: &Field,
    place: &StridedPlace,
) -> Option<(Buffer<T>, Order)> {
    let SumLoops { order, reduced, count, .. } = SumLoops::new(field, place);
    if !reduced.is_empty() || count != 1.0 || field.is_hollow() {
        return None;
    }
    let (buffer, start) = field.lying::<T>(&order)?;
    (start == 0).then_some((buffer, order))
}

/// Elements that are contiguous in an order of loops.
pub(super) struct Dense<T> {
    pub(super) data: Vec<T>,
    pub(super) order: Order,
}

/// The loops of a field that is summed into a place.
pub(super) struct SumLoops {
    /// The loops along which both the place and the field vary.
    pub(super) order: Order,
    /// The loops along which only the field varies. They are summed over.
    pub(super) reduced: Order,
    /// The number of times each element is added. A sum over loops along which nothing varies is a
    /// multiplication by their sizes.
    pub(super) count: f64,
    /// Whether the place varies only along the loops in `order`.
    pub(super) is_whole: bool,
}

impl SumLoops {
    pub(super) fn new(field: &Field, place: &StridedPlace) -> Self {
        let sizes = &field.sizes[..];
        let varies = |axis: usize| field.operands.iter().any(|own| own.place.varies(axis));
        let all = kept(place, sizes);
        let order: Order = all.iter().copied().filter(|&axis| varies(axis)).collect();
        let reduced: Order =
            (0..sizes.len()).filter(|&axis| sizes[axis] != 1 && !all.contains(&axis)).collect();
        let count = reduced.iter().filter(|&&axis| !varies(axis)).map(|&axis| sizes[axis] as f64).product();
        let reduced = reduced.into_iter().filter(|&axis| varies(axis)).collect();
        let is_whole = order.len() == all.len();
        SumLoops { order, reduced, count, is_whole }
    }
}

impl Table {
    /// Offsets that are indices into `size` elements, contiguous in an order of some of the loops.
    /// The index must not vary along the other loops. If the index is recorded to run again, each
    /// run computes the offsets again.
    ///
    /// # Panics
    ///
    /// If an index is out of range.
    pub fn computed(index: Field, size: usize, order: &[usize]) -> Result<Self, Error> {
        Table::of_rows(index, size, 1, order)
    }

    /// Like [`computed`](Self::computed), but the index selects a row, and rows are `stride`
    /// elements apart.
    ///
    /// # Panics
    ///
    /// If an index is out of range.
    pub(crate) fn of_rows(index: Field, size: usize, stride: isize, order: &[usize]) -> Result<Self, Error> {
        let mut table = if index.is_hollow() {
            // Each run computes the offsets. Here they are zeros, which are not written or read.
            let offsets = hollow::zeros(order.iter().map(|&axis| index.sizes[axis]).product())?;
            assert!(size > 0 || offsets.is_empty(), "indices are in range");
            Table::within(offsets, (0, 0), &index.sizes, order)
        } else {
            let mut offsets = mapped::<isize>(&index, order)?;
            assert!(
                offsets.iter().all(|&at| usize::try_from(at).is_ok_and(|at| at < size)),
                "indices are in range"
            );
            offsets.iter_mut().for_each(|at| *at *= stride);
            Table::new(offsets, &index.sizes, order)
        };
        if index.all_nodes().iter().any(|node| node.is_recorded()) {
            let index = TableIndex { index, stride, size, axis: None };
            table.source =
                Some(Arc::new(TableSource { indices: vec![index], order: order.iter().copied().collect() }));
        }
        Ok(table)
    }
}

impl Field {
    /// The elements times a constant.
    pub(super) fn scaled(&self, by: f64) -> Field {
        self.map([], |build, register, []| {
            let kind = build.kind(register);
            let by = build.float(by, kind);
            build.binary(BinaryOpcode::Mul, register, by)
        })
    }

    /// The operand and its number, if the field only loads elements of type `T` without a table.
    pub(super) fn plain<T: 'static>(&self) -> Option<(usize, &FieldOperand)> {
        let Instruction::Load(number) = self.program.instruction(self.program.result()) else { return None };
        let operand = &self.operands[number as usize];
        let same = DType::of::<T>() == Some(operand.source.dtype());
        (same && operand.place.table.is_none() && !matches!(operand.source, FieldSource::Position))
            .then_some((number as usize, operand))
    }

    /// The memory of the elements, and the index in it at which they start, if the elements are
    /// contiguous in this order of all loops.
    pub(crate) fn lying<T: Send + Sync + 'static>(&self, order: &[usize]) -> Option<(Buffer<T>, usize)> {
        let (held, start) = self.lying_in::<T>(order)?;
        Some((Buffer::of_held(held)?, start))
    }

    /// Like [`lying`](Self::lying), but returns the memory without its element type.
    pub(crate) fn lying_in<T: 'static>(&self, order: &[usize]) -> Option<(&Arc<dyn Held>, usize)> {
        let (_, operand) = self.plain::<T>()?;
        let FieldSource::Memory(held) = &operand.source else { return None };
        let lying = StridedPlace::contiguous(&self.sizes, order);
        let same = |axis: usize| {
            let stride = operand.place.strides[axis];
            self.sizes[axis] == 1 || stride != 0 && stride == lying.strides[axis]
        };
        if !(0..self.sizes.len()).all(same) {
            return None;
        }
        Some((held, operand.place.offset as usize))
    }
}

/// Holds the memory that a field reads.
pub(super) struct HeldMemories(SmallVec<[Option<Arc<dyn Held>>; 6]>);

impl HeldMemories {
    /// The memory of all operands. Panics if an operand's positions leave its memory.
    pub(super) fn of(field: &Field) -> Self {
        let memories = field.operands.iter().map(|own| {
            let FieldSource::Memory(memory) = &own.source else { return None };
            own.place.assert_within(&field.sizes, memory.len());
            Some(Arc::clone(memory))
        });
        HeldMemories(memories.collect())
    }

    /// The operands of the field's program.
    pub(super) fn sources(&self, field: &Field) -> SmallVec<[interpreter::OperandSource; 6]> {
        let sources = field.operands.iter().zip(&self.0).map(|(own, memory)| match memory {
            None => interpreter::OperandSource::position(),
            Some(memory) => {
                let table =
                    own.place.table.as_ref().map(|table| table.offsets.as_ptr().wrapping_offset(table.start));
                // SAFETY: all positions lie within the memory and the table, as `of` has asserted,
                // and the operand's row has the same strides. The memory and the table are held
                // while the field is read.
                let source =
                    unsafe { interpreter::OperandSource::new(memory.start(), own.source.dtype(), table) };
                match &own.place.table {
                    Some(table) => source.prefetching(&table.offsets),
                    None => source,
                }
            }
        });
        sources.collect()
    }

    /// The elements of an operand without a table.
    pub(super) fn elements<T: 'static>(&self, field: &Field, number: usize) -> Elements<'_, T> {
        let memory = self.0[number].as_ref().expect("the operand is in memory");
        assert_eq!(memory.dtype(), DType::of::<T>(), "elements are of their type");
        let place = &field.operands[number].place;
        let axes: SmallVec<[Axis; 8]> =
            field.sizes.iter().zip(&place.strides).map(|(&size, &stride)| Axis::new(size, stride)).collect();
        // SAFETY: without a table, all positions lie within the memory, as `of` has asserted. The
        // memory is held while `self` is borrowed.
        unsafe { Elements::new(memory.start().cast::<T>().wrapping_offset(place.offset), &axes, &[]) }
    }
}

/// The rows of strides of all operands, and of their tables.
pub(super) fn rows(field: &Field) -> Rows {
    let mut rows = Rows::new(field.sizes.len());
    push_rows(&mut rows, field);
    rows
}

/// Appends the [`rows`] of a field to others.
pub(super) fn push_rows(rows: &mut Rows, field: &Field) {
    for operand in &field.operands {
        rows.push_at(operand.place.offset).copy_from_slice(&operand.place.strides);
        if let Some(table) = &operand.place.table {
            rows.push().copy_from_slice(&table.strides);
        }
    }
}

/// A result that has a length but no elements.
pub(crate) fn hollow_of<T: Element>(len: usize) -> Result<Vec<T>, Error> {
    Destination::Hollow(len).from_fn(|_| T::default())
}

/// `len` zeros.
pub(crate) fn filled<T: ProgramOutput + Real>(len: usize) -> Result<Vec<T>, Error> {
    let mut out = reserve(len)?;
    out.resize(len, T::ZERO);
    Ok(out)
}

/// The elements of a field, contiguous in an order of loops. The field must not vary along other
/// loops.
pub(crate) fn mapped<T: ProgramOutput>(field: &Field, order: &[usize]) -> Result<Vec<T>, Error> {
    let len = order.iter().map(|&axis| field.sizes[axis]).product();
    if field.sizes.contains(&0) {
        // Operands may have no elements even if `len` is not 0.
        let mut out = reserve(len)?;
        out.resize(len, T::default());
        return Ok(out);
    }
    if field.is_hollow() {
        return hollow_of(len);
    }
    let memories = HeldMemories::of(field);
    if let Some((number, operand)) = field.plain::<T>() {
        let mut rows = Rows::new(field.sizes.len());
        rows.push().copy_from_slice(&operand.place.strides);
        let nest = Nest::map(&field.sizes, order, &rows);
        // SAFETY: the elements have an axis for each loop of the field, with its size and stride.
        return unsafe {
            collect_memory(memories.elements::<T>(field, number), &nest, Destination::New(len), "gradient")
        }
        .inspect(|data| told(data));
    }
    let rows = rows(field);
    let nest = Nest::map(&field.sizes, order, &rows);
    let sources = memories.sources(field);
    let threads = threads::parts(len);
    note(|| Explained::Elementwise {
        expression: field.program.describe(),
        loops: StepLoops::new::<T>(&nest, len, threads),
    });
    // SAFETY: the field's program loads its operands. The sources are their memory, and the nest
    // has their rows.
    let lower = |nest| unsafe { Interpreted::<T>::new(&field.program, &sources, &mut Nest::operands(nest)) };
    collect(&nest.split(0, threads), &lower, Destination::New(len)).inspect(|data| told(data))
}

/// Several values of a field's program, each contiguous in an order of all loops, computed in one
/// pass.
pub(crate) fn together(
    field: &Field,
    values: &[Register],
    order: &[usize],
    dtype: DType,
) -> Result<Vec<Arc<dyn Held>>, Error> {
    fn of<T: ProgramOutput + Real>(
        field: &Field,
        values: &[Register],
        order: &[usize],
    ) -> Result<Vec<Arc<dyn Held>>, Error> {
        let len = order.iter().map(|&axis| field.sizes[axis]).product();
        if len == 0 {
            return Ok(values.iter().map(|_| Buffer::from(Vec::<T>::new()).held()).collect());
        }
        if field.is_hollow() {
            let each = values.iter().map(|_| Ok(Buffer::from(hollow_of::<T>(len)?).held()));
            return each.collect();
        }
        let memories = HeldMemories::of(field);
        let mut rows = rows(field);
        rows.push().copy_from_slice(&StridedPlace::contiguous(&field.sizes, order).strides);
        let nest = Nest::map(&field.sizes, order, &rows);
        let sources = memories.sources(field);
        let threads = threads::parts(len);
        note(|| Explained::Elementwise {
            expression: field.program.describe(),
            loops: StepLoops::new::<T>(&nest, len, threads),
        });
        let (&first, others) = values.split_first().expect("a value is asked for");
        let mut beside: Vec<Vec<T>> = others.iter().map(|_| reserve(len)).collect::<Result<_, _>>()?;
        let places: Vec<ExtraOutput<T>> = others
            .iter()
            .zip(&mut beside)
            .map(|(&value, data)| ExtraOutput { value, start: data.as_mut_ptr() })
            .collect();
        let parts = nest.split(0, threads);
        let kernel = |nest| {
            // SAFETY: the field's program loads its operands. The sources are their memory, and the
            // nest has their rows. The last row has the strides of a result of `len` elements, and
            // each extra output has room for one. Parts of the nest write disjoint elements, and
            // nothing reads them before the pass ends.
            unsafe {
                Interpreted::<T>::with_values(
                    &field.program,
                    first,
                    &places,
                    &sources,
                    &mut Nest::operands(nest),
                )
            }
        };
        let data = collect(&parts, &kernel, Destination::New(len))?;
        for data in &mut beside {
            // SAFETY: to return the elements of the first result, the pass has loaded the tile of
            // each position, and has written the elements of the other results with it.
            unsafe { data.set_len(len) };
        }
        told_all(core::iter::once(&data).chain(&beside).map(|data| ResultMemory::of(data)));
        Ok(core::iter::once(data).chain(beside).map(|data| Buffer::from(data).held()).collect())
    }
    match dtype {
        DType::F64 => of::<f64>(field, values, order),
        _ => of::<f32>(field, values, order),
    }
}

/// Adds elements that are contiguous in `order` to a place. They are constant along loops that are
/// not in the order.
pub(super) fn add_at<T: Num>(
    out: &mut [T],
    place: &StridedPlace,
    sizes: &[usize],
    data: &[T],
    order: &[usize],
) {
    let from = StridedPlace::contiguous(sizes, order);
    let loops = kept(place, sizes);
    let Some((&last, outer)) = loops.split_last() else {
        let table = place.table.as_ref().map_or(0, |table| table.at(0));
        let at = (place.offset + table) as usize;
        out[at] = out[at].add(data[0]);
        return;
    };
    let table_step = place.table.as_ref().map_or(0, |table| table.strides[last]);
    let (step, from_step, len) = (place.strides[last], from.strides[last], sizes[last]);
    let outer_sizes: Sizes = outer.iter().map(|&axis| sizes[axis]).collect();
    let mut at: Sizes = SmallVec::from_elem(0, outer.len());
    let mut odometer = Odometer::new(&outer_sizes);
    while !odometer.is_done() {
        let along = |strides: &[isize]| {
            outer.iter().zip(&at).map(|(&axis, &at)| strides[axis] * at as isize).sum::<isize>()
        };
        let (first, from_first) = (place.offset + along(&place.strides), along(&from.strides));
        let moved = |x: usize| match &place.table {
            Some(table) => table.at(along(&table.strides) + x as isize * table_step),
            None => 0,
        };
        if table_step == 0 && step == 1 && from_step == 1 {
            let start = (first + moved(0)) as usize;
            let data = &data[from_first as usize..][..len];
            out[start..][..len].iter_mut().zip(data).for_each(|(out, &value)| *out = out.add(value));
        } else {
            for x in 0..len {
                let own = &mut out[(first + x as isize * step + moved(x)) as usize];
                *own = own.add(data[(from_first + x as isize * from_step) as usize]);
            }
        }
        odometer.advance(&mut at);
    }
}

/// Marks floats as the result of a step.
pub(crate) fn with_step(held: Arc<dyn Held>, step: NodeStep) -> Arc<dyn Held> {
    fn of<T: ProgramOutput + Real>(held: Arc<dyn Held>, step: NodeStep) -> Arc<dyn Held> {
        let buffer = Buffer::<T>::of_held(&held).expect("the elements are of this type");
        drop(held);
        let data = buffer.into_vec();
        let dtype = DType::of::<T>().expect("each float type has a `DType`");
        let node = Node::new(dtype, data.len(), step, None);
        Buffer::traced(data, node).held()
    }
    let dtype = held.dtype().expect("programs read types that they know");
    floats!(dtype, of(held, step))
}

/// Marks floats as the result of a rule.
pub fn with_rule(
    held: Arc<dyn Held>,
    rule: impl crate::trace::Rule + 'static,
) -> Result<Arc<dyn Held>, Error> {
    Ok(with_step(held, NodeStep::Rule(alloc::boxed::Box::new(rule))))
}
