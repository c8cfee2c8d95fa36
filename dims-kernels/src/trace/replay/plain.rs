//! Runs each step by itself, as it was recorded. Prepared programs also run some steps this way:
//! those that are neither fused nor planned, and planned sums whose plan fails for the values of a
//! call.

use super::{Recording, assert_fits};
use crate::error::Error;
use crate::load::any::AnyElements;
use crate::loops::modes::{RunsAgain, as_one};
use crate::loops::nest::{Nest, NestParts};
use crate::loops::rows::Rows;
use crate::loops::steps::{Loops, PlanStep, is_listening, note, told};
use crate::machine::threads;
use crate::memory::allocate::reserve;
use crate::memory::buffer::Buffer;
use crate::memory::destination::Destination;
use crate::ops::code::{DType, match_dtype};
use crate::program::interpreter::{Interpreted, ProgramOutput};
use crate::reduce::input::ReduceInput;
use crate::reduce::{reduce, reducers};
use crate::scalar::{CastTo, Element, Num};
use crate::trace::compute::{HeldMemories, add_at, covers, kept, mapped, rows};
use crate::trace::evaluate::evaluate;
use crate::trace::{
    Field, FieldOperand, FieldSource, Held, Node, NodeStep, Part, Rule, StridedPlace, Table, TableIndex,
    TableSource,
};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Returns the value of the input or step with this number; `None` if the elements of the recorded
/// call are used.
pub(super) type ValueOf<'v> = &'v dyn Fn(u64) -> Option<Arc<dyn Held>>;

pub(super) fn run(recording: &Recording, inputs: Vec<Arc<dyn Held>>) -> Result<Vec<Arc<dyn Held>>, Error> {
    let mut values: BTreeMap<u64, Arc<dyn Held>> =
        recording.inputs.iter().map(|node| node.id).zip(inputs).collect();
    for node in &recording.steps {
        let _place = is_listening().then(|| RunsAgain::at(node.origin));
        let value = value_of(node, &|id| values.get(&id).cloned())?;
        values.insert(node.id, value);
    }
    let value = |held: &Arc<dyn Held>| match held.node().and_then(|node| values.get(&node.id)) {
        Some(value) => Arc::clone(value),
        None => Arc::clone(held),
    };
    Ok(recording.outputs.iter().map(value).collect())
}

/// Computes the elements of a step.
pub(super) fn value_of(node: &Node, values: ValueOf<'_>) -> Result<Arc<dyn Held>, Error> {
    let value = computed(node, values).map_err(|error| error.at(node.origin))?;
    assert_fits(node, &value);
    Ok(value)
}

fn computed(node: &Node, values: ValueOf<'_>) -> Result<Arc<dyn Held>, Error> {
    match &node.step {
        NodeStep::Variable(_) => unreachable!("a variable is not a step"),
        NodeStep::Parts(parts) => {
            let parts = parts.iter().map(|part| {
                let Part { field, place } = part;
                Ok(Part { field: field.with_values(values)?, place: place.with_values(values)? })
            });
            sum_of_parts(&parts.collect::<Result<Vec<_>, Error>>()?, node.len, node.dtype)
        }
        NodeStep::Rule(rule) => run_rule(node, &**rule, operands_of(&**rule, values)?),
    }
}

/// The operands of a rule, with the values of a call.
pub(super) fn operands_of(rule: &dyn Rule, values: ValueOf<'_>) -> Result<Vec<Field>, Error> {
    rule.operands().into_iter().map(|own| own.with_values(values)).collect()
}

/// Computes the result of a rule, and notes the step if anything listens.
pub(super) fn run_rule(node: &Node, rule: &dyn Rule, operands: Vec<Field>) -> Result<Arc<dyn Held>, Error> {
    let run = |operands| rule.run(operands).expect("each step can run again");
    if !is_listening() {
        return run(operands);
    }
    match rule.plan(&operands, node.len, node.bytes()) {
        None => run(operands),
        Some(step) => {
            let value = as_one(|| run(operands))?;
            note(|| step);
            told_value(&value);
            Ok(value)
        }
    }
}

/// Reports this result of the pending step.
fn told_value(value: &Arc<dyn Held>) {
    fn of<T: Element>(value: &Arc<dyn Held>) {
        if let Some(data) = Buffer::<T>::of_held(value) {
            told(&data[..]);
        }
    }
    if let Some(dtype) = value.dtype() {
        match_dtype!(dtype, T => of::<T>(value));
    }
}

impl StridedPlace {
    /// The nodes on which the place's offsets depend, if each run computes these offsets.
    pub(in crate::trace) fn nodes(&self) -> Vec<&Arc<Node>> {
        let source = self.table.as_ref().and_then(|table| table.source.as_ref());
        source.map_or_else(Vec::new, |source| {
            source.indices.iter().flat_map(|index| index.index.all_nodes()).collect()
        })
    }

    /// The place with offsets computed from these values.
    pub(super) fn with_values(&self, values: ValueOf<'_>) -> Result<StridedPlace, Error> {
        let mut place = self.clone();
        let Some(table) = &mut place.table else { return Ok(place) };
        let Some(source) = table.source.clone() else { return Ok(place) };
        let sizes = &source.indices[0].index.sizes;
        let mut indices = Vec::new();
        for own in &source.indices {
            indices.push(TableIndex { index: own.index.with_values(values)?, ..*own });
        }
        let mut offsets = Vec::new();
        for TableIndex { index, stride, size, axis } in &indices {
            let found = mapped::<isize>(index, &source.order)?;
            offsets.resize(found.len(), 0);
            for (offset, index) in offsets.iter_mut().zip(found) {
                if !usize::try_from(index).is_ok_and(|index| index < *size) {
                    let what = axis.map_or_else(|| "an indexed axis".into(), |axis| axis.describe());
                    return Err(Error::OutOfBounds { what, index: index as i128, size: *size, origin: None });
                }
                *offset += index * stride;
            }
        }
        let computed = Table::new(offsets, sizes, &source.order);
        table.offsets = computed.offsets;
        table.bounds = computed.bounds;
        table.source = Some(Arc::new(TableSource { indices, order: source.order.clone() }));
        Ok(place)
    }
}

impl Field {
    /// The field with these values as operands.
    pub(super) fn with_values(&self, values: ValueOf<'_>) -> Result<Field, Error> {
        let mut field = self.clone();
        for FieldOperand { source, place } in &mut field.operands {
            if let FieldSource::Memory(held) = source
                && let Some(value) = held.node().and_then(|node| values(node.id))
            {
                *held = value;
            }
            if place.table.is_some() {
                *place = place.with_values(values)?;
            }
        }
        Ok(field)
    }

    /// The elements as `dtype`, contiguous in the order of the loops `order`. The field must not
    /// vary along other loops.
    pub fn computed(&self, order: &[usize], dtype: DType) -> Result<Arc<dyn Held>, Error> {
        fn of<T: ProgramOutput>(field: &Field, order: &[usize]) -> Result<Arc<dyn Held>, Error> {
            Ok(Buffer::from(mapped::<T>(field, order)?).held())
        }
        match_dtype!(dtype, T => of::<T>(self, order))
    }
}

/// Adds parts to zeros, for any element type. Parts of `bool`s write disjoint elements.
pub(super) fn sum_of_parts(parts: &[Part], len: usize, dtype: DType) -> Result<Arc<dyn Held>, Error> {
    macro_rules! integers {
        ($($name:ident $t:ty, in $sum:ty;)*) => {
            match dtype {
                $(DType::$name => return integer_sum::<$t, $sum>(parts, len),)*
                _ => {}
            }
        };
    }
    // Sums wrap around, so a sum in a wider type has the same low bits. This way fewer loops are
    // compiled.
    integers!(
        I8 i8, in isize; I16 i16, in isize; I32 i32, in isize; U8 u8, in isize; U16 u16, in isize; U32 u32, in isize;
        I64 i64, in i64; U64 u64, in u64; Isize isize, in isize; Usize usize, in usize;
    );
    if let [Part { field, place }] = parts
        && covers(place, &field.sizes, len)
        && kept(place, &field.sizes).len() == field.sizes.iter().filter(|&&size| size != 1).count()
    {
        return field.computed(&kept(place, &field.sizes), dtype);
    }
    if dtype.is_float() {
        return evaluate(parts, len, dtype, false);
    }
    let mut out = zeros::<bool>(len)?;
    for Part { field, place } in parts {
        if field.sizes.contains(&0) {
            continue;
        }
        place.assert_within(&field.sizes, len);
        // The `bool`s are added as integers: adding a value to 0 is the same as writing it.
        let integers = field.map([], |build, value, []| build.cast(DType::U8, value));
        let order = kept(place, &field.sizes);
        let data = mapped::<u8>(&integers, &order)?;
        let mut sums = zeros::<u8>(len)?;
        add_at(&mut sums, place, &field.sizes, &data, &order);
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out |= sum != 0);
    }
    Ok(Buffer::from(out).held())
}

/// `len` zeros, or `false`s.
fn zeros<T: Element>(len: usize) -> Result<Vec<T>, Error> {
    let mut out = reserve(len)?;
    out.resize(len, T::default());
    Ok(out)
}

/// The sum of parts of integers of type `T`. The sums over the loops of each part are computed in
/// `S`.
fn integer_sum<T, S>(parts: &[Part], len: usize) -> Result<Arc<dyn Held>, Error>
where
    T: ProgramOutput + Num,
    S: ProgramOutput + Num + CastTo<T>,
{
    if let [part] = parts
        && covers(&part.place, &part.field.sizes, len)
        && kept(&part.place, &part.field.sizes).len()
            == part.field.sizes.iter().filter(|&&size| size != 1).count()
    {
        let order = kept(&part.place, &part.field.sizes);
        return Ok(Buffer::from(mapped::<T>(&part.field, &order)?).held());
    }
    let mut out = zeros::<T>(len)?;
    for Part { field, place } in parts {
        if field.sizes.contains(&0) {
            continue;
        }
        place.assert_within(&field.sizes, len);
        let order = kept(place, &field.sizes);
        let reduced: Vec<usize> =
            (0..field.sizes.len()).filter(|axis| field.sizes[*axis] != 1 && !order.contains(axis)).collect();
        let sums = reduced_of::<S, _>(field, &order, &reduced, reducers::Sum::ONCE)?;
        let data: Vec<T> = sums.into_iter().map(CastTo::cast_to).collect();
        add_at(&mut out, place, &field.sizes, &data, &order);
        note(|| PlanStep::Reduce {
            reduction: "sum",
            expression: field.program.describe(),
            loops: {
                let nest = Nest::reduce(&field.sizes, &order, &reduced, &rows(field));
                let work = field.sizes.iter().copied().fold(1, usize::saturating_mul);
                Loops::new::<T>(&nest, len, threads::parts(work))
            },
            count: reduced.iter().map(|&axis| field.sizes[axis]).product(),
        });
    }
    told(&out);
    Ok(Buffer::from(out).held())
}

/// Reduces a field over the loops `reduced`. The result is contiguous in the order of the loops
/// `order`.
pub(in crate::trace) fn reduced_of<T: ProgramOutput, Q>(
    field: &Field,
    order: &[usize],
    reduced: &[usize],
    reducer: Q,
) -> Result<Vec<Q::Out>, Error>
where
    Q: crate::reduce::Reducer<T, Out: Send> + Send + Sync,
{
    let volume = |axes: &[usize]| axes.iter().map(|&axis| field.sizes[axis]).product::<usize>();
    let (len, count) = (volume(order), volume(reduced));
    let memories = HeldMemories::of(field);
    if let Some((number, operand)) = field.plain::<T>().filter(|_| !field.sizes.contains(&0)) {
        // These are the loops that the recorded reduction runs. Other loops might add in another
        // order.
        let mut rows = Rows::new(field.sizes.len());
        rows.push().copy_from_slice(&operand.place.strides);
        let nest = Nest::reduce(&field.sizes, order, reduced, &rows);
        // SAFETY: the elements have an axis for each loop of the field, with its size and stride.
        let memory = unsafe {
            ReduceInput::new(memories.elements::<T>(field, number), &nest, nest.positions(), count)
        };
        return reducer.reduce_memory(memory, Destination::New(len));
    }
    let rows = rows(field);
    let nest = Nest::reduce(&field.sizes, order, reduced, &rows);
    let sources = memories.sources(field);
    let computed = |nest| {
        // SAFETY: the field's program loads its operands. The sources are their memory, and the
        // nest has their rows.
        AnyElements::computed(unsafe {
            Interpreted::<T>::new(&field.program, &sources, &mut Nest::operands(nest))
        })
    };
    let work = len.saturating_mul(count);
    reduce(&nest, &mut NestParts::new(), &computed, work, Destination::New(len), count, reducer)
}
