//! Rewrites loops that run through several axes as a loop for each axis, which can then be split
//! among devices.

use super::access::{AxisUse, Piece, uses};
use typed_dims::program::engine::EngineProgram;
use typed_dims_kernels::memory::runs::RowRun;
use typed_dims_kernels::program::code::RegisterKind;
use typed_dims_kernels::trace::saved::{
    SavedField, SavedInstruction, SavedKind, SavedOperand, SavedPart, SavedPlace, SavedProgramText,
    SavedRule, SavedWork,
};
use typed_dims_kernels::trace::{NodeAxes, NodeAxis};

/// A move of rows is rewritten as parts if it has at most this many runs.
const RUNS: usize = 32;

pub(crate) fn along_axes(mut program: EngineProgram) -> EngineProgram {
    for number in 0..program.recording.steps.len() {
        let len = program.recording.steps[number].len;
        let described = program.inputs.len() + number;
        let mut work = program.recording.steps[number].work.clone();
        if let Some(parts) = moved_rows(&work) {
            work = SavedWork::Parts(parts);
        }
        if program.values[described].axes.is_none() {
            program.values[described].axes = axes_of(&program, &work, len);
        }
        let shape: Option<Vec<usize>> =
            program.values[described].axes.as_ref().map(|axes| axes.iter().map(|own| own.size).collect());
        if let (SavedWork::Parts(parts), Some(shape)) = (&mut work, &shape) {
            for part in parts {
                let own = part.clone();
                split_loops(&mut part.field, &mut part.place, shape, &|at| shape_of(&program, &own, at));
            }
        }
        if let (SavedWork::Rule(rule), Some(shape)) = (&mut work, &shape)
            && let SavedRule::Kind {
                kind: SavedKind::StandardizeAffine { .. } | SavedKind::DropElements { .. },
                operands,
                ..
            } = &mut **rule
            && operands[0].sizes == [len]
        {
            let mut line = SavedPlace { offset: 0, strides: vec![1], table: None };
            split_loops(&mut operands[0], &mut line, shape, &|_| None);
        }
        program.recording.steps[number].work = work;
    }
    program
}

/// The shape of the value that an operand of a part reads.
fn shape_of(program: &EngineProgram, part: &SavedPart, operand: usize) -> Option<Vec<usize>> {
    let value = part.field.operands[operand].value?;
    Some(described(program, value)?.iter().map(|own| own.size).collect())
}

/// The axes of a value, from the outermost in memory to the innermost, if they are known.
pub(crate) fn described(program: &EngineProgram, value: usize) -> Option<&NodeAxes> {
    let (inputs, constants) = (program.inputs.len(), program.recording.constants.len());
    match value {
        own if own < inputs => program.values[own].axes.as_ref(),
        own if own < inputs + constants => None,
        own => program.values[own - constants].axes.as_ref(),
    }
}

/// The sizes of the axes of a shape that a loop runs through, if there are several. For example, a
/// loop over `48` positions, `4` apart, runs through `(4, 6, 2)` of the shape `(4, 6, 2, 4)`.
fn merged(shape: &[usize], size: usize, stride: isize) -> Option<Vec<usize>> {
    let (mut step, mut sizes, mut len) = (1isize, Vec::new(), 1);
    for &own in shape.iter().rev() {
        if step >= stride && own != 1 && len < size {
            if sizes.is_empty() && step != stride {
                return None;
            }
            sizes.insert(0, own);
            len *= own;
        }
        step *= own as isize;
    }
    (sizes.len() > 1 && len == size).then_some(sizes)
}

/// Splits each loop that runs through several axes of the result or, failing that, of an operand.
fn split_loops(
    field: &mut SavedField,
    place: &mut SavedPlace,
    shape: &[usize],
    of_operand: &dyn Fn(usize) -> Option<Vec<usize>>,
) {
    let mut axis = 0;
    while axis < field.sizes.len() {
        let size = field.sizes[axis];
        let of_place =
            (size > 1 && place.strides[axis] > 0).then(|| merged(shape, size, place.strides[axis])).flatten();
        let of_operands = || {
            (0..field.operands.len()).find_map(|at| {
                let stride = field.operands[at].place.strides[axis];
                (size > 1 && stride > 0).then(|| merged(&of_operand(at)?, size, stride)).flatten()
            })
        };
        let Some(sizes) = of_place.or_else(of_operands) else {
            axis += 1;
            continue;
        };
        let split = |strides: &mut Vec<isize>| {
            let mut step = strides[axis];
            let mut own = vec![0; sizes.len()];
            for (at, &size) in sizes.iter().enumerate().rev() {
                own[at] = step;
                step *= size as isize;
            }
            strides.splice(axis..=axis, own);
        };
        for place in field.operands.iter_mut().map(|own| &mut own.place).chain([&mut *place]) {
            split(&mut place.strides);
            if let Some(table) = &mut place.table {
                split(&mut table.strides);
            }
        }
        axis += sizes.len();
        let first = axis - sizes.len();
        field.sizes.splice(first..=first, sizes);
    }
}

/// The axes of a result whose axes are not known yet: its loops, if the result is contiguous in
/// their order.
fn axes_of(program: &EngineProgram, work: &SavedWork, len: usize) -> Option<NodeAxes> {
    let (field, others, order): (&SavedField, Vec<&SavedField>, Vec<usize>) = match work {
        SavedWork::Parts(parts) => {
            let [SavedPart { field, place }] = &parts[..] else { return None };
            let mut loops: Vec<usize> =
                (0..field.sizes.len()).filter(|&own| place.strides[own] > 0).collect();
            loops.sort_by_key(|&own| std::cmp::Reverse(place.strides[own]));
            let mut step = 1;
            for &own in loops.iter().rev() {
                if place.strides[own] != step || place.table.is_some() || place.offset != 0 {
                    return None;
                }
                step *= field.sizes[own] as isize;
            }
            (field, vec![field], loops)
        }
        SavedWork::Rule(rule) => match &**rule {
            SavedRule::LinePullBack { lines, y, dy } => (y, vec![dy, y], lines.order.clone()),
            SavedRule::Lines(own) => (&own.field, vec![&own.field], own.order.clone()),
            SavedRule::Detached { field, order, .. } => (field, vec![field], order.clone()),
            _ => return None,
        },
    };
    let named = |own: usize| {
        let found = others.iter().flat_map(|field| &field.operands).find_map(|operand| {
            let axes = described(program, operand.value?)?;
            let piece = Piece::of(axes);
            let found = uses(&piece, 0, &operand.place, &field.sizes, program);
            let at = found.iter().position(|of| *of == AxisUse::Whole(own))?;
            Some(axes[at])
        });
        found.unwrap_or(NodeAxis { name: "..", id: None, size: field.sizes[own] })
    };
    let axes: NodeAxes = order.into_iter().map(named).collect();
    (axes.iter().map(|own| own.size).product::<usize>() == len).then_some(axes)
}

/// A move of rows along an axis, as parts: one for each run of rows that has a source.
fn moved_rows(work: &SavedWork) -> Option<Vec<SavedPart>> {
    let SavedWork::Rule(rule) = work else { return None };
    let SavedRule::Kind {
        kind: SavedKind::MoveRows { outer, size, inner, sources, fill, .. }, operands, ..
    } = &**rule
    else {
        return None;
    };
    let [SavedField { operands: read, program, .. }] = &operands[..] else { return None };
    let [SavedOperand { value: Some(value), place }] = &read[..] else { return None };
    let is_load = matches!(program.instructions[..], [(SavedInstruction::Load(0), _)]);
    if !is_load || place.offset != 0 || place.strides != [1] || place.table.is_some() {
        return None;
    }
    if fill.0.iter().any(|&byte| byte != 0) {
        return None;
    }
    let kind: RegisterKind = program.instructions[0].1;
    if sources.len() > RUNS {
        return None;
    }
    let inner = *inner as isize;
    let len: usize = sources.iter().map(|run| run.count).sum();
    let mut parts = Vec::new();
    let mut at = 0;
    for &RowRun { count, first, step } in sources.iter() {
        if let Some(first) = first.filter(|_| count > 0) {
            let step = if count == 1 { 0 } else { step };
            let place = |start: usize, rows: usize, step: isize| SavedPlace {
                offset: start as isize * inner,
                strides: vec![rows as isize * inner, step * inner, 1],
                table: None,
            };
            let load = SavedProgramText { instructions: vec![(SavedInstruction::Load(0), kind)], result: 0 };
            parts.push(SavedPart {
                field: SavedField {
                    sizes: vec![*outer, count, inner as usize],
                    operands: vec![SavedOperand { value: Some(*value), place: place(first, *size, step) }],
                    program: load,
                },
                place: place(at, len, if count == 1 { 0 } else { 1 }),
            });
        }
        at += count;
    }
    Some(parts)
}
