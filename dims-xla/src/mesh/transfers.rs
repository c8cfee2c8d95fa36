//! The transfers between devices at each step.

use super::access::AxisUse;
use super::flow::{CollectiveKind, Tracer, Transfer};
use super::jobs::Job;
use super::sharding::{DimAxis, Split};
use std::collections::BTreeSet;
use std::panic::Location;
use typed_dims_kernels::program::code::DType;

impl Tracer<'_> {
    /// Adds the transfers that change the split of a piece.
    pub(super) fn moved(
        &mut self,
        (value, piece): (usize, usize),
        from: &Split,
        to: &Split,
        (operation, origin): (&'static str, Option<&'static Location<'static>>),
    ) {
        let axes = self.values[value].pieces[piece].axes.clone();
        let mut now = from.clone();
        // Starts at the innermost axis, like XLA.
        for at in (0..axes.len()).rev() {
            let Some(axis) = now[at].filter(|_| now[at] != to[at]) else { continue };
            let onto = to.iter().position(|own| *own == Some(axis)).filter(|&other| now[other].is_none());
            now[at] = None;
            let kind = match onto {
                Some(other) => {
                    now[other] = Some(axis);
                    CollectiveKind::AllToAll
                }
                None => CollectiveKind::AllGather,
            };
            let bytes = self.bytes(value, piece, &now, self.values[value].dtype);
            self.transfer(kind, [axis].into(), &axes, bytes, operation, origin);
        }
    }

    fn transfer(
        &mut self,
        kind: CollectiveKind,
        axes: BTreeSet<usize>,
        of: &[DimAxis],
        bytes: usize,
        operation: &'static str,
        origin: Option<&'static Location<'static>>,
    ) {
        let dims = of.iter().map(|own| own.1).collect();
        self.flow.transfers.push(Transfer { kind, axes, dims, bytes, operation, origin });
    }

    /// The bytes of a piece on each device.
    fn bytes(&self, value: usize, piece: usize, split: &Split, dtype: DType) -> usize {
        let parts: usize = split.iter().flatten().map(|&axis| self.placement.mesh.axes[axis].1).product();
        self.values[value].pieces[piece].len() * dtype.bytes() / parts.max(1)
    }

    /// Adds the transfers for sums and other reductions over split loops.
    pub(super) fn sums(
        &mut self,
        value: usize,
        job: &Job<'_>,
        loops: &[Option<usize>],
        made: &[Split],
        (operation, origin): (&'static str, Option<&'static Location<'static>>),
    ) {
        for (piece, axes) in &job.results {
            let is_kept = |axis: usize| axes.contains(&AxisUse::Whole(axis));
            let lines = job.lines.as_ref().map_or(&[][..], |own| &own.0);
            let summed = (0..loops.len()).filter(|axis| !is_kept(*axis) && !lines.contains(axis));
            let over: BTreeSet<usize> = summed.filter_map(|axis| loops[axis]).collect();
            let of = self.values[value].pieces[*piece].axes.clone();
            // The sums of each device are exchanged before they are converted to the result's type.
            let dtype = self.values[value].dtype.in_registers();
            if !over.is_empty() {
                let bytes = self.bytes(value, *piece, &made[*piece], dtype);
                let stored = &self.values[value].stored[*piece];
                // Whether each device keeps only a part of the sum.
                let is_scattered = over
                    .iter()
                    .all(|axis| stored.contains(&Some(*axis)) && !made[*piece].contains(&Some(*axis)));
                let kind =
                    if is_scattered { CollectiveKind::ReduceScatter } else { CollectiveKind::AllReduce };
                for _ in 0..job.sums {
                    self.transfer(kind, over.clone(), &of, bytes, operation, origin);
                }
            }
            if let Some((lines, sums)) = &job.lines {
                let over: BTreeSet<usize> = lines.iter().filter_map(|&axis| loops[axis]).collect();
                if over.is_empty() {
                    continue;
                }
                let is_line = |axis: usize| matches!(axes[axis], AxisUse::Whole(own) if lines.contains(&own));
                let kept: Vec<usize> = (0..of.len()).filter(|&axis| !is_line(axis)).collect();
                let parts = kept.iter().filter_map(|&axis| made[*piece][axis]);
                let parts: usize = parts.map(|axis| self.placement.mesh.axes[axis].1).product();
                let count = kept.iter().map(|&axis| of[axis].2).product::<usize>() / parts.max(1);
                let of: Vec<DimAxis> = kept.iter().map(|&axis| of[axis]).collect();
                for dtype in sums {
                    let bytes = count * dtype.bytes();
                    self.transfer(CollectiveKind::AllReduce, over.clone(), &of, bytes, operation, origin);
                }
            }
        }
    }

    /// Adds the transfers that tell all devices whether indices are in range.
    pub(super) fn checks(
        &mut self,
        job: &Job<'_>,
        loops: &[Option<usize>],
        operation: &'static str,
        origin: Option<&'static Location<'static>>,
    ) {
        for &table in &job.tables {
            if !self.checked.insert(table) {
                continue;
            }
            let of = job.operands.iter().filter_map(|own| own.index.as_ref());
            let over: BTreeSet<usize> =
                of.flat_map(|own| own.1.iter().flatten()).filter_map(|&axis| loops[axis]).collect();
            if !over.is_empty() {
                self.transfer(CollectiveKind::AllReduce, over, &[], 1, operation, origin);
            }
        }
    }

    pub(super) fn results(&mut self) {
        let outputs = self.program.recording.outputs.clone();
        for (result, value) in outputs.into_iter().enumerate() {
            let piece = self.piece_at(value, self.program.results[result].start as isize);
            let len = self.values[value].pieces[piece].axes.len();
            let wanted = self.result_split(result, value, piece).unwrap_or_else(|| vec![None; len]);
            let from = self.values[value].stored[piece].clone();
            if self.known.insert((value, piece, wanted.clone())) {
                let origin = self.program.results[result].tensor.origin;
                self.moved((value, piece), &from, &wanted, ("result", origin));
            }
        }
    }
}
