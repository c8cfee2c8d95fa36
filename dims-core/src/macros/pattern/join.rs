//! Results that are copied piece by piece: those of a list of arrays, and those of a call that
//! joins or splits arrays (`w1 + w2`).

use super::args::ValueList;
use super::arrays::Arrays;
use super::data::MOST;
use super::data::{Pattern, Piece, Slot, Term};
use super::direct::BoundPattern;
use super::input::ListItem;
use super::layout::PatternLayout;
use super::product::AllOperands;
use crate::error::DimError;
use crate::execute::loops::RunLoops;
use crate::execute::parts::{CopiedParts, copied_alike};
use crate::plan::shape::Shape;
use crate::types::set::Dims;
use alloc::vec::Vec;
use kernels::loops::axes::Order;
use kernels::loops::rows::Rows;
use kernels::memory::axes::{contiguous, row_major};
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;
use smallvec::SmallVec;

/// The piece that copies a whole operand to the whole result.
const WHOLE: &[Piece] = &[Piece { input: 0, from: &[], to: &[] }];

/// Whether the result is copied piece by piece.
pub fn needs_joining<T: Element>(pattern: &Pattern, values: &impl ValueList<T>) -> bool {
    !pattern.pieces.is_empty() || values.first_list().is_some()
}

/// The elements of the result, copied piece by piece.
#[track_caller]
pub fn joined<T: Element, U: Dims>(
    layout: &PatternLayout,
    shapes: &[Shape],
    values: &impl ValueList<T>,
    sizes: &[usize],
    len: usize,
) -> Result<Buffer<T>, DimError> {
    let pattern = layout.pattern;
    let pieces = if pattern.pieces.is_empty() { WHOLE } else { pattern.pieces };
    if len == 0 {
        return Ok(Vec::new().into());
    }
    let strides = row_major(sizes);
    let mut out = CopiedParts::over_zeros(len, &AllOperands::of(values))?;
    values.arrays::<U>(shapes, &mut |operand, arrays| {
        for piece in pieces.iter().filter(|piece| piece.input == operand) {
            ListCopy { layout, piece, sizes, strides: &strides, own: shapes[operand].positional() }
                .run(arrays, &mut out)?;
        }
        Ok(())
    })?;
    Ok(out.finish())
}

/// Like [`joined`], for a list of arrays with the same sizes and strides and a pattern that names
/// all axes. `None` if the general path must handle them.
pub fn listed<T: Element>(
    pattern: &Pattern,
    bound: &mut BoundPattern,
    items: &[ListItem<'_, T>],
) -> Option<(Vec<T>, SmallVec<[usize; MOST]>)> {
    let (_, first) = items.first()?;
    if items.iter().any(|(_, axes)| axes != first) || !bound.loops.reduced.is_empty() {
        return None;
    }
    let kept = bound.loops.kept;
    let len = bound.volume(kept, size_of::<T>())?;
    let sizes: SmallVec<[usize; MOST]> = bound.sizes().into();
    bound.rows.push().copy_from_slice(&contiguous(kept, &sizes));
    let list: SmallVec<[usize; 4]> = match &pattern.inputs[0][0] {
        Slot::Axis(axis) => SmallVec::from_slice(&[*axis]),
        slot => {
            let axis = |term: &Term| if let Term::Axis(axis) = term { Some(*axis) } else { None };
            slot.group(0).iter().filter_map(axis).collect()
        }
    };
    let within: Order = kept.iter().copied().filter(|axis| !list.contains(axis)).collect();
    // The kept loops include the loops along the list. Each of their positions has a distinct
    // target.
    let parts = items.iter().enumerate().map(|(number, (held, _))| {
        let (mut index, mut source, mut target) = (number, 0, 0);
        for &axis in list.iter().rev() {
            let digit = (index % sizes[axis]) as isize;
            index /= sizes[axis];
            source += digit * bound.rows.row(0)[axis];
            target += digit * bound.rows.row(1)[axis];
        }
        (held.elements().moved(source), target)
    });
    let data = copied_alike(parts, RunLoops { sizes: &sizes, rows: &bound.rows }, &within, len)?;
    Some((data, bound.shape(pattern.output)))
}

struct ListCopy<'a> {
    layout: &'a PatternLayout,
    piece: &'a Piece,
    /// The sizes of the result: dims, then axes.
    sizes: &'a [usize],
    strides: &'a [isize],
    /// The sizes of the operand's axes.
    own: &'a [usize],
}

impl ListCopy<'_> {
    #[track_caller]
    fn run<T: Element>(&self, arrays: &Arrays<'_, T>, out: &mut CopiedParts<T>) -> Result<(), DimError> {
        let ListCopy { layout, piece, sizes, strides, own } = *self;
        let (slots, output) = (layout.pattern.inputs[piece.input], layout.pattern.output);
        let loops = layout.sizes.len();
        let mut to: SmallVec<[isize; 8]> = SmallVec::from_elem(0, loops);
        let target = layout.spread(output, piece.to, &sizes[layout.named..], strides, &mut to)?;
        let order = layout.order_of(output, piece.to);
        let (fixed, first) = self.fixed(slots, arrays.is_list);
        let count: usize = fixed.iter().map(|&axis| layout.sizes[axis]).product();
        let rest: Order = order.into_iter().filter(|axis| !fixed.contains(axis)).collect();
        for item in 0..count {
            let (elements, strides) = &arrays.items[first + item];
            let mut from: SmallVec<[isize; 8]> = SmallVec::from_elem(0, loops);
            let mut source = layout.spread(slots, piece.from, own, strides, &mut from)?;
            let mut target = target;
            let mut index = item;
            for &axis in fixed.iter().rev() {
                let digit = (index % layout.sizes[axis]) as isize;
                index /= layout.sizes[axis];
                source += digit * from[axis];
                target += digit * to[axis];
            }
            let mut rows = Rows::new(loops);
            rows.push().copy_from_slice(&from);
            rows.push().copy_from_slice(&to);
            out.copy(elements.moved(source), target, RunLoops { sizes: &layout.sizes, rows: &rows }, &rest)?;
        }
        Ok(())
    }

    /// The loops that run over the arrays of a list, and the number of the first array.
    fn fixed(&self, slots: &[Slot], is_list: bool) -> (Order, usize) {
        if !is_list {
            return (Order::new(), 0);
        }
        let choice = self.piece.from.first().copied().unwrap_or(0);
        let first = match &slots[0] {
            Slot::Sum(groups) => {
                groups[..choice].iter().filter_map(|terms| self.layout.solved.group(terms)).sum()
            }
            _ => 0,
        };
        let mut loops = self.layout.loops_of(&slots[0], choice);
        if matches!(slots[0], Slot::Rest) {
            loops.truncate(1);
        }
        (loops, first)
    }
}
