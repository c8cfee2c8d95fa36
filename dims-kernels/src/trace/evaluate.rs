//! Runs parts: `out[place] += program(operands)`.

use crate::error::Error;
use crate::load::any::AnyElements;
use crate::loops::nest::{Nest, NestParts};
use crate::loops::rows::Rows;
use crate::loops::steps::{Loops as StepLoops, PlanStep as Explained, note, told};
use crate::machine::threads;
use crate::memory::allocate::reserve;
use crate::memory::buffer::Buffer;
use crate::memory::destination::Destination;
use crate::memory::listener::freed;
use crate::ops::code::DType;
use crate::program::interpreter::{Interpreted, ProgramOutput};
use crate::reduce::input::ReduceInput;
use crate::reduce::{Reducer, reduce, reducers};
use crate::scalar::Real;
use crate::trace::compute::{
    Dense, HeldMemories, SumLoops, add_at, covers, filled, floats, hollow_of, mapped, rows, whole_lines,
};
use crate::trace::products::contracted;
use crate::trace::windows::gathered;
use crate::trace::{Field, Held, Node, NodeStep, Part, StridedPlace};
use alloc::sync::Arc;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// The parts, added to `len` zeros. If `recorded` is set and a part is traced, the result is traced
/// as well.
pub fn evaluate(parts: &[Part], len: usize, dtype: DType, recorded: bool) -> Result<Arc<dyn Held>, Error> {
    floats!(dtype, held(parts, len, recorded))
}

fn held<T: ProgramOutput + Real>(parts: &[Part], len: usize, recorded: bool) -> Result<Arc<dyn Held>, Error> {
    let is_hollow = recorded && parts.iter().any(Part::is_hollow);
    let data = if is_hollow { hollow_of(len) } else { summed_up::<T>(parts, len) }?;
    if recorded && parts.iter().any(Part::is_traced) {
        let dtype = DType::of::<T>().expect("each float type has a `DType`");
        return Ok(Buffer::traced(data, Node::new(dtype, len, NodeStep::Parts(parts.to_vec()), None)).held());
    }
    Ok(Buffer::from(data).held())
}

/// The sum of the parts. Half precisions are summed in single precision and rounded once, unless a
/// single part writes all elements.
fn summed_up<T: ProgramOutput + Real>(parts: &[Part], len: usize) -> Result<Vec<T>, Error> {
    let is_half = size_of::<T>() < size_of::<f32>();
    if !is_half || matches!(parts, [part] if covers(&part.place, &part.field.sizes, len)) {
        return sum_of::<T>(parts, len);
    }
    let mut out = reserve(len)?;
    let sums = sum_of::<f32>(parts, len)?;
    out.extend(sums.iter().map(|&x| T::of(f64::from(x))));
    freed(sums.as_ptr(), sums.len());
    Ok(out)
}

/// The sum of the parts, in the precision of `T`.
fn sum_of<T: ProgramOutput + Real>(parts: &[Part], len: usize) -> Result<Vec<T>, Error> {
    let mut out: Option<Vec<T>> = None;
    let gathered = parts.iter().map(gathered::<T>).collect::<Result<SmallVec<[Option<Part>; 4]>, Error>>()?;
    // Parts that write all elements come first, so that no zeros are needed.
    let parts = parts.iter().zip(&gathered).map(|(part, gathered)| gathered.as_ref().unwrap_or(part));
    let (first, others): (SmallVec<[&Part; 4]>, SmallVec<[&Part; 4]>) =
        parts.partition(|part| covers(&part.place, &part.field.sizes, len));
    for part in first.into_iter().chain(others) {
        if part.field.sizes.contains(&0) {
            continue;
        }
        part.place.assert_within(&part.field.sizes, len);
        let is_whole = out.is_none() && covers(&part.place, &part.field.sizes, len);
        if !is_whole && let Some((data, order)) = whole_lines::<T>(&part.field, &part.place) {
            let out = match &mut out {
                Some(out) => out,
                None => out.insert(filled(len)?),
            };
            add_at(out, &part.place, &part.field.sizes, &data, &order);
            continue;
        }
        let Dense { data, order } = dense::<T>(&part.field, &part.place)?;
        if out.is_none() && covers(&part.place, &part.field.sizes, len) && data.len() == len {
            out = Some(data);
            continue;
        }
        let out = match &mut out {
            Some(out) => out,
            None => out.insert(filled(len)?),
        };
        add_at(out, &part.place, &part.field.sizes, &data, &order);
        freed(data.as_ptr(), data.len());
    }
    out.map_or_else(|| filled(len), Ok)
}

pub(crate) fn add<T: ProgramOutput + Real>(out: &mut [T], part: &Part) -> Result<(), Error> {
    let Part { field, place } = part;
    if !field.sizes.contains(&0) {
        place.assert_within(&field.sizes, out.len());
        let Dense { data, order } = dense::<T>(field, place)?;
        add_at(out, place, &field.sizes, &data, &order);
        freed(data.as_ptr(), data.len());
    }
    Ok(())
}

/// The sums of a field over the loops along which the place does not vary. They are contiguous in
/// the order of the loops along which both the place and the field vary.
fn dense<T: ProgramOutput + Real>(field: &Field, place: &StridedPlace) -> Result<Dense<T>, Error> {
    let SumLoops { order, reduced, count, .. } = SumLoops::new(field, place);
    let repeated = || if count == 1.0 { field.clone() } else { field.scaled(count) };
    if reduced.is_empty() {
        return Ok(Dense { data: mapped(&repeated(), &order)?, order });
    }
    let dense = match contracted(field, &order, &reduced, count)? {
        Some(dense) => dense,
        None => Dense { data: summed(&repeated(), &order, &reduced)?, order },
    };
    told(&dense.data);
    Ok(dense)
}

/// The sums of a field over some loops, contiguous in an order of the others.
fn summed<T: ProgramOutput + Real>(
    field: &Field,
    order: &[usize],
    reduced: &[usize],
) -> Result<Vec<T>, Error> {
    let memories = HeldMemories::of(field);
    let volume = |axes: &[usize]| axes.iter().map(|&axis| field.sizes[axis]).product::<usize>();
    let (len, count) = (volume(order), volume(reduced));
    let explain = |nest: &Nest, work: usize| {
        note(|| Explained::Reduce {
            reduction: "sum",
            expression: field.program.describe(),
            loops: StepLoops::new::<T>(nest, len, threads::parts(work)),
            count,
        });
    };
    if let Some((number, operand)) = field.plain::<T>() {
        let mut rows = Rows::new(field.sizes.len());
        rows.push().copy_from_slice(&operand.place.strides);
        let nest = Nest::reduce(&field.sizes, order, reduced, &rows);
        let work = nest.positions();
        explain(&nest, work);
        // SAFETY: the elements have an axis for each loop of the field, with its size and stride.
        let memory = unsafe { ReduceInput::new(memories.elements::<T>(field, number), &nest, work, count) };
        return reducers::Sum::ONCE.reduce_memory(memory, Destination::New(len));
    }
    let rows = rows(field);
    let nest = Nest::reduce(&field.sizes, order, reduced, &rows);
    let sources = memories.sources(field);
    let work = len.saturating_mul(count);
    explain(&nest, work);
    let computed = |nest| {
        // SAFETY: the field's program loads its operands. The sources are their memory, and the
        // nest has their rows.
        AnyElements::computed(unsafe {
            Interpreted::<T>::new(&field.program, &sources, &mut Nest::operands(nest))
        })
    };
    let to = Destination::New(len);
    reduce(&nest, &mut NestParts::new(), &computed, work, to, count, reducers::Sum::ONCE)
}
