//! How the loops of a step run through the axes of a value. A place says which element a step reads
//! or writes at each position of its loops.

use super::sharding::DimAxis;
use typed_dims::program::engine::EngineProgram;
use typed_dims_kernels::trace::NodeAxis;
use typed_dims_kernels::trace::saved::{SavedPlace, SavedTable};

/// A tensor in the memory of a value. Most values have one piece. The gradients of attention are
/// one value, with a piece for each gradient.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The offset of its first element.
    pub(crate) start: usize,
    /// Its axes, from the outermost in memory to the innermost.
    pub(crate) axes: Vec<DimAxis>,
}

impl Piece {
    pub(crate) fn of(axes: &[NodeAxis]) -> Piece {
        Piece { start: 0, axes: axes.iter().map(|own| (own.id, own.name, own.size)).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.axes.iter().map(|own| own.2).product()
    }
}

/// How a place runs through an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AxisUse {
    /// The loop with this number runs through the whole axis, from the first position to the last.
    Whole(usize),
    /// Any other access: a part of the axis, a window, looked-up positions, or another order. Also
    /// any access to an axis of size 1.
    Other,
}

/// How a place runs through the axes of a piece along loops of these sizes. The piece begins at
/// element `start` of the memory that the place refers to.
pub(crate) fn uses(
    piece: &Piece,
    start: usize,
    place: &SavedPlace,
    sizes: &[usize],
    program: &EngineProgram,
) -> Vec<AxisUse> {
    let axes: Vec<usize> = piece.axes.iter().map(|own| own.2).collect();
    let mut steps = vec![1usize; axes.len()];
    for axis in (1..axes.len()).rev() {
        steps[axis - 1] = steps[axis] * axes[axis];
    }
    let mut found: Vec<Option<AxisUse>> = vec![None; axes.len()];
    let mut mark = |axis: usize, own: AxisUse| {
        found[axis] = Some(if found[axis].is_none() { own } else { AxisUse::Other });
    };
    for (number, (&size, &stride)) in sizes.iter().zip(&place.strides).enumerate() {
        let step = stride.unsigned_abs();
        if size == 1 || step == 0 {
            continue;
        }
        let whole = (0..axes.len()).find(|&axis| steps[axis] == step && axes[axis] == size && stride > 0);
        match whole {
            Some(axis) => mark(axis, AxisUse::Whole(number)),
            // Otherwise, marks each axis that the loop reaches.
            None => {
                let reach = step * (size - 1);
                let touched =
                    |&axis: &usize| axes[axis] > 1 && steps[axis] <= reach && steps[axis] * axes[axis] > step;
                (0..axes.len()).filter(touched).for_each(|axis| mark(axis, AxisUse::Other));
            }
        }
    }
    if let Some(table) = &place.table {
        match &program.recording.tables[table.number] {
            SavedTable::Given(_) => (0..axes.len()).for_each(|axis| mark(axis, AxisUse::Other)),
            SavedTable::Computed { indices, .. } => {
                for index in indices {
                    let of = (0..axes.len())
                        .find(|&axis| steps[axis] as isize == index.stride && axes[axis] == index.size);
                    match of {
                        Some(axis) => mark(axis, AxisUse::Other),
                        None => (0..axes.len()).for_each(|axis| mark(axis, AxisUse::Other)),
                    }
                }
            }
        }
    }
    let offset = (place.offset.max(0) as usize).saturating_sub(start);
    let at = |axis: usize| offset / steps[axis] % axes[axis].max(1);
    let own = |(axis, own): (usize, Option<AxisUse>)| match own {
        Some(AxisUse::Whole(own)) if at(axis) == 0 => AxisUse::Whole(own),
        _ => AxisUse::Other,
    };
    found.into_iter().enumerate().map(own).collect()
}
