//! The work of steps as loops over operands and results. Here, a sum is any reduction over loops,
//! such as a maximum.

use super::access::{AxisUse, Piece, uses};
use typed_dims::program::engine::EngineProgram;
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::{
    SavedField, SavedKind, SavedLines, SavedPart, SavedPlace, SavedRule, SavedTable, SavedWork,
};

/// Fields over common loops, and the results that they are written to. A field computes an element
/// for each position of its loops.
pub(crate) struct Job<'p> {
    pub(crate) sizes: &'p [usize],
    pub(crate) operands: Vec<JobOperand<'p>>,
    /// The numbers of the result's pieces that are written, and how the loops run through their
    /// axes.
    pub(crate) results: Vec<(usize, Vec<AxisUse>)>,
    /// Loops that are computed as a whole on each device.
    pub(crate) whole: Vec<usize>,
    /// Values that are read as a whole.
    pub(crate) gathered: Vec<usize>,
    /// For an operation along lines, such as softmax: the loops of a line, and the types of the
    /// sums along it.
    pub(crate) lines: Option<(Vec<usize>, Vec<DType>)>,
    /// The number of sums that the step computes over the loops that its result lacks.
    pub(crate) sums: usize,
    /// The numbers of the lookup tables that the places read.
    pub(crate) tables: Vec<usize>,
}

/// A value that a job reads, and its place along the loops of the job or of an index.
pub(crate) struct JobOperand<'p> {
    pub(crate) value: usize,
    pub(crate) place: &'p SavedPlace,
    /// For an operand of an index: the sizes of the index's loops, and the loop of the job that
    /// each of them follows, if any.
    pub(crate) index: Option<(&'p [usize], Vec<Option<usize>>)>,
}

impl<'p> Job<'p> {
    fn new(sizes: &'p [usize]) -> Self {
        Job {
            sizes,
            operands: Vec::new(),
            results: Vec::new(),
            whole: Vec::new(),
            gathered: Vec::new(),
            lines: None,
            sums: 1,
            tables: Vec::new(),
        }
    }

    fn of(program: &'p EngineProgram, fields: &[&'p SavedField]) -> Self {
        let mut job = Job::new(&fields[0].sizes);
        for field in fields {
            for operand in &field.operands {
                if let Some(value) = operand.value {
                    job.operands.push(JobOperand { value, place: &operand.place, index: None });
                }
                job.table(program, &operand.place);
            }
        }
        job
    }

    /// Adds the lookup table that a place reads, and the operands of its indices.
    fn table(&mut self, program: &'p EngineProgram, place: &'p SavedPlace) {
        let Some(lookup) = &place.table else { return };
        self.tables.push(lookup.number);
        let SavedTable::Computed { indices, order } = &program.recording.tables[lookup.number] else {
            return;
        };
        for index in indices {
            // The table is contiguous along the loops of the index, sorted as `order` says.
            let (mut step, mut loops) = (1, vec![None; index.field.sizes.len()]);
            for &own in order.iter().rev() {
                let size = index.field.sizes[own];
                loops[own] = (0..self.sizes.len())
                    .find(|&at| size > 1 && lookup.strides[at] == step && self.sizes[at] == size);
                step *= size as isize;
            }
            for operand in &index.field.operands {
                let Some(value) = operand.value else { continue };
                let index = Some((&index.field.sizes[..], loops.clone()));
                self.operands.push(JobOperand { value, place: &operand.place, index });
            }
        }
    }

    fn part(program: &'p EngineProgram, SavedPart { field, place }: &'p SavedPart, piece: &Piece) -> Self {
        let mut job = Job::of(program, &[field]);
        job.table(program, place);
        job.results.push((0, uses(piece, 0, place, &field.sizes, program)));
        job
    }

    /// Sets the result, which is contiguous along these loops.
    fn along(mut self, order: &[usize], piece: &Piece) -> Self {
        let axes = match order.len() == piece.axes.len() {
            true => order.iter().map(|&own| AxisUse::Whole(own)).collect(),
            false => vec![AxisUse::Other; piece.axes.len()],
        };
        self.results.push((0, axes));
        self
    }

    fn lines(mut self, own: &SavedLines, sums: Option<Vec<DType>>) -> Self {
        match sums {
            Some(sums) => self.lines = Some((own.lines.clone(), sums)),
            None => self.whole.extend(&own.lines),
        }
        self
    }

    /// How an operand runs through the axes of a piece of its value, in loops of the job.
    pub(crate) fn uses_of(
        &self,
        operand: &JobOperand<'_>,
        piece: &Piece,
        program: &EngineProgram,
    ) -> Vec<AxisUse> {
        match &operand.index {
            None => uses(piece, piece.start, operand.place, self.sizes, program),
            Some((sizes, loops)) => uses(piece, piece.start, operand.place, sizes, program)
                .into_iter()
                .map(|own| match own {
                    AxisUse::Whole(at) => loops[at].map_or(AxisUse::Other, AxisUse::Whole),
                    AxisUse::Other => AxisUse::Other,
                })
                .collect(),
        }
    }
}

/// The types of the sums that an operation along lines needs; `None` if it needs whole lines.
fn line_sums(own: &SavedLines, backward: bool) -> Option<Vec<DType>> {
    let float = if own.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let mut sums = match (own.work.0.as_str(), backward) {
        ("Softmax" | "LogSoftmax" | "Standardize", false) => vec![float; 2],
        ("RootMeanSquare" | "UnitLength", false) => vec![float],
        ("Softmax" | "LogSoftmax", true) => vec![float],
        ("Standardize", true) => vec![float; 4],
        ("RootMeanSquare" | "UnitLength", true) => vec![float; 2],
        _ => return None,
    };
    if backward {
        // This sum tells whether the line has a nonzero cotangent.
        sums.push(DType::Bool);
    }
    Some(sums)
}

/// The shortest suffix of `sizes` whose product is `len`, as a range. `None` if there is none.
pub(crate) fn trailing(sizes: &[usize], len: usize) -> Option<std::ops::Range<usize>> {
    let first = (0..=sizes.len()).rev().find(|&at| sizes[at..].iter().product::<usize>() == len)?;
    Some(first..sizes.len())
}

/// The jobs of a step. `None` if each device needs all operands as a whole and computes the whole
/// step.
pub(crate) fn jobs<'p>(
    program: &'p EngineProgram,
    work: &'p SavedWork,
    pieces: &[Piece],
) -> Option<Vec<Job<'p>>> {
    let piece = pieces.first()?;
    let rule = match work {
        SavedWork::Parts(parts) => {
            return Some(parts.iter().map(|part| Job::part(program, part, piece)).collect());
        }
        SavedWork::Rule(rule) => &**rule,
    };
    Some(match rule {
        SavedRule::Reduction(own) => {
            let mut job = Job::of(program, &[&own.field]).along(&own.kept, piece);
            match own.reduction.0.as_str() {
                "Sum" | "Mean" | "Max" | "Min" | "Prod" | "Norm" | "NormP" => {}
                "Variance" | "Deviation" => job.sums = 3,
                "LogSumExp" => job.sums = 2,
                _ => job.whole.extend(&own.reduced),
            }
            vec![job]
        }
        SavedRule::Lines(own) => {
            vec![Job::of(program, &[&own.field]).along(&own.order, piece).lines(own, line_sums(own, false))]
        }
        SavedRule::LinePullBack { lines, y, dy } => {
            let mut fields = vec![y, dy];
            if !lines.field.operands.is_empty() {
                fields.push(&lines.field);
            }
            vec![Job::of(program, &fields).along(&lines.order, piece).lines(lines, line_sums(lines, true))]
        }
        SavedRule::Attention(own) => {
            let fields: Vec<&SavedField> = own.operands.iter().chain(&own.mask).chain(&own.bias).collect();
            let mut job = Job::of(program, &fields).along(&own.kept, piece);
            job.whole.extend(own.over.iter().chain(&own.features));
            job.whole.retain(|axis| !own.kept.contains(axis));
            vec![job]
        }
        SavedRule::AttentionPullBack { attention: own, dy, numbers, .. } => {
            let fields: Vec<&SavedField> = own.operands.iter().chain(&own.mask).chain(&own.bias).collect();
            let mut with_dy = fields.clone();
            with_dy.push(dy);
            let mut job = Job::of(program, &with_dy);
            job.whole.extend((0..job.sizes.len()).filter(|axis| {
                own.over.contains(axis) || own.features.contains(axis) || !own.scores.contains(axis)
            }));
            for (field, numbers) in fields.iter().zip(numbers) {
                for (operand, number) in field.operands.iter().zip(numbers) {
                    let Some(number) = *number else { continue };
                    let own = &pieces[number];
                    job.results.push((number, uses(own, 0, &operand.place, job.sizes, program)));
                }
            }
            vec![job]
        }
        SavedRule::Placed { parts, .. } => parts.iter().map(|part| Job::part(program, part, piece)).collect(),
        SavedRule::Detached { field, order, .. } => vec![Job::of(program, &[field]).along(order, piece)],
        SavedRule::SumOfSquares(fields) => {
            let job = |field| Job::of(program, &[field]).along(&[], piece);
            fields.iter().map(job).collect()
        }
        SavedRule::BestOf { x, y, order, axis, .. } => {
            let mut job = Job::of(program, &[x, y]).along(order, piece);
            job.whole.push(*axis);
            vec![job]
        }
        SavedRule::Recurrence { a, b, axis, order, .. } => {
            let fields: Vec<&SavedField> = [b].into_iter().chain(a).collect();
            let mut job = Job::of(program, &fields).along(order, piece);
            job.whole.push(*axis);
            vec![job]
        }
        SavedRule::Kind {
            kind: kind @ (SavedKind::StandardizeAffine { .. } | SavedKind::DropElements { .. }),
            operands,
            ..
        } => {
            let sizes: Vec<usize> = piece.axes.iter().map(|own| own.2).collect();
            if operands[0].sizes != sizes {
                return None;
            }
            let order: Vec<usize> = (0..sizes.len()).collect();
            let mut job = Job::of(program, &[&operands[0]]).along(&order, piece);
            let others = operands[1..].iter().flat_map(|own| &own.operands);
            job.gathered.extend(others.filter_map(|own| own.value));
            if let SavedKind::StandardizeAffine { len, dtype, .. } = kind {
                let float = if *dtype == DType::F64 { DType::F64 } else { DType::F32 };
                job.lines = Some((trailing(&sizes, *len)?.collect(), vec![float; 2]));
            }
            vec![job]
        }
        SavedRule::Kind {
            kind:
                SavedKind::MoveRows { .. }
                | SavedKind::AddAtPlaces { .. }
                | SavedKind::MeanOfParts { .. }
                | SavedKind::MaxOfParts { .. }
                | SavedKind::DrawElements { .. }
                | SavedKind::DrawTruths { .. }
                | SavedKind::DrawOrder { .. }
                | SavedKind::SplitSeed { .. }
                | SavedKind::Sort { .. }
                | SavedKind::Extremum { .. }
                | SavedKind::TopK { .. }
                | SavedKind::Quantile { .. }
                | SavedKind::Matrices { .. },
            ..
        }
        | SavedRule::MomentOfLines(_) => return None,
    })
}
