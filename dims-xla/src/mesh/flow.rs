//! How each value of a program is split, and the transfers between devices.
//!
//! ```text
//! stored split  --read-->  split of an operand  --step-->  made split  -->  stored split
//!             all-gather,                      all-reduce            slice or reduce-scatter
//!             all-to-all
//! ```

use super::Placement;
use super::access::{AxisUse, Piece};
use super::jobs::{Job, JobOperand, jobs};
use super::shapes::described;
use super::sharding::{DimAxis, Split, dim_axis};
use crate::error::XlaError;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use typed_dims::program::engine::{EngineProgram, EngineTensor};
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::{SavedRule, SavedWork};

/// A kind of communication among the devices along some axes of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CollectiveKind {
    /// Each device gets the sum or another reduction of the devices' values.
    AllReduce,
    /// Each device gets a part of the sum or other reduction of the devices' values.
    ReduceScatter,
    /// Each device gets the parts of all the devices.
    AllGather,
    /// Each device exchanges parts with the others: a tensor that is split along one dim becomes
    /// split along another.
    AllToAll,
}

#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) kind: CollectiveKind,
    /// The indices of the mesh axes.
    pub(crate) axes: BTreeSet<usize>,
    /// The dims of the tensor.
    pub(crate) dims: Vec<&'static str>,
    pub(crate) bytes: usize,
    pub(crate) operation: &'static str,
    pub(crate) origin: Option<&'static Location<'static>>,
}

/// The split in which a step reads a piece of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) value: usize,
    pub(crate) piece: usize,
    pub(crate) split: Split,
}

/// The splits of a piece of a step's result: first as computed, then as stored.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) made: Split,
    pub(crate) split: Split,
}

/// The splits of the values of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// The splits of the inputs and results. Axes are in the order of each tensor's type.
    pub(crate) inputs: Vec<Split>,
    pub(crate) results: Vec<Split>,
    /// For each step, the values that it reads in a split other than the stored one.
    pub(crate) reads: Vec<Vec<Read>>,
    pub(crate) steps: Vec<Vec<Made>>,
    /// For each step, the splits of the loops of each of its jobs.
    pub(crate) loops: Vec<Vec<Split>>,
    pub(crate) transfers: Vec<Transfer>,
}

/// A value: its pieces and their splits.
pub(super) struct FlowValue {
    pub(super) pieces: Vec<Piece>,
    pub(super) dtype: DType,
    /// The split of each piece by the rules of `shard` alone.
    computed: Vec<Split>,
    /// The split of each piece as stored.
    pub(super) stored: Vec<Split>,
}

pub(super) struct Tracer<'p> {
    pub(super) program: &'p EngineProgram,
    pub(super) placement: &'p Placement,
    pub(super) values: Vec<FlowValue>,
    /// The values, pieces and splits whose transfers were already added.
    pub(super) known: BTreeSet<(usize, usize, Split)>,
    /// The lookup tables whose checks were already added.
    pub(super) checked: BTreeSet<usize>,
    pub(super) flow: Flow,
}

impl Flow {
    /// The splits and transfers of a program that [`along_axes`](super::shapes::along_axes) has
    /// rewritten.
    pub(crate) fn of(program: &EngineProgram, placement: &Placement) -> Result<Flow, XlaError> {
        let mut tracer = Tracer {
            program,
            placement,
            values: Vec::new(),
            known: BTreeSet::new(),
            checked: BTreeSet::new(),
            flow: Flow::default(),
        };
        tracer.ends()?;
        tracer.splits()?;
        let works: Vec<&SavedWork> = program.recording.steps.iter().map(|step| &step.work).collect();
        let jobs: Vec<Option<Vec<Job<'_>>>> = works
            .iter()
            .enumerate()
            .map(|(number, work)| jobs(program, work, &tracer.values[tracer.first_step() + number].pieces))
            .collect();
        tracer.at_rest(&jobs);
        for (number, jobs) in jobs.iter().enumerate() {
            tracer.step(number, jobs.as_deref());
        }
        tracer.results();
        Ok(tracer.flow)
    }
}

impl<'p> Tracer<'p> {
    fn first_step(&self) -> usize {
        self.program.inputs.len() + self.program.recording.constants.len()
    }

    /// The splits of inputs and results.
    fn ends(&mut self) -> Result<(), XlaError> {
        let split = |tensor: &EngineTensor, role| self.placement.split_tensor(tensor, true, role);
        self.flow.inputs =
            self.program.inputs.iter().map(|own| split(&own.tensor, "input")).collect::<Result<_, _>>()?;
        self.flow.results =
            self.program.results.iter().map(|own| split(&own.tensor, "result")).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// The splits of all values, according to the rules.
    fn splits(&mut self) -> Result<(), XlaError> {
        let recording = &self.program.recording;
        for (number, input) in self.program.inputs.iter().enumerate() {
            let axes: Vec<DimAxis> =
                input.order.iter().map(|&axis| dim_axis(&input.tensor.axes[axis])).collect();
            let computed = self.placement.split(&axes, false, &|| String::from("an input"))?;
            let stored = input.order.iter().map(|&axis| self.flow.inputs[number][axis]).collect();
            self.values.push(FlowValue {
                pieces: vec![Piece { start: 0, axes }],
                dtype: input.tensor.dtype,
                computed: vec![computed],
                stored: vec![stored],
            });
        }
        for constant in &recording.constants {
            let len = constant.elements.0.len() / constant.dtype.bytes().max(1);
            self.values.push(FlowValue {
                pieces: vec![Piece { start: 0, axes: vec![(None, "..", len)] }],
                dtype: constant.dtype,
                computed: vec![vec![None]],
                stored: vec![vec![None]],
            });
        }
        for (number, step) in recording.steps.iter().enumerate() {
            let value = self.values.len();
            let pieces = self.pieces(value, &step.work, step.len);
            let own = &self.program.values[self.program.inputs.len() + number];
            let what = || match own.origin {
                Some(origin) => format!("the result of `{}` at {origin}", own.operation),
                None => format!("the result of `{}`", own.operation),
            };
            let computed: Vec<Split> = pieces
                .iter()
                .map(|piece| self.placement.split(&piece.axes, false, &what))
                .collect::<Result<_, _>>()?;
            self.values.push(FlowValue { pieces, dtype: step.dtype, stored: computed.clone(), computed });
        }
        Ok(())
    }

    /// The tensors in the memory of a step's result.
    fn pieces(&self, value: usize, work: &SavedWork, len: usize) -> Vec<Piece> {
        if let SavedWork::Rule(rule) = work
            && let SavedRule::AttentionPullBack { attention: own, numbers, lens, .. } = &**rule
        {
            let fields = own.operands.iter().chain(&own.mask).chain(&own.bias);
            let operands: Vec<(usize, Option<usize>)> = fields
                .zip(numbers)
                .flat_map(|(field, numbers)| field.operands.iter().zip(numbers))
                .filter_map(|(operand, number)| Some(((*number)?, operand.value)))
                .collect();
            let mut start = 0;
            return lens
                .iter()
                .enumerate()
                .map(|(number, &len)| {
                    let of = operands.iter().find(|own| own.0 == number).and_then(|own| own.1);
                    let axes = of.and_then(|of| self.values[of].pieces.iter().find(|own| own.len() == len));
                    let axes = axes.map_or_else(|| vec![(None, "..", len)], |own| own.axes.clone());
                    start += len;
                    Piece { start: start - len, axes }
                })
                .collect();
        }
        vec![
            described(self.program, value)
                .map_or_else(|| Piece { start: 0, axes: vec![(None, "..", len)] }, |axes| Piece::of(axes)),
        ]
    }

    /// The number of the piece that an offset in a value belongs to.
    pub(super) fn piece_at(&self, value: usize, offset: isize) -> usize {
        let pieces = &self.values[value].pieces;
        pieces.iter().rposition(|own| own.start as isize <= offset).unwrap_or(0)
    }

    fn uses(&self, job: &Job<'_>, operand: &JobOperand<'_>) -> (usize, Vec<AxisUse>) {
        let piece = self.piece_at(operand.value, operand.place.offset);
        (piece, job.uses_of(operand, &self.values[operand.value].pieces[piece], self.program))
    }

    /// Finds the steps whose results are stored in their split at rest. Such a result is state, or
    /// is read only by steps that compute state and keep the axes that are split at rest.
    fn at_rest(&mut self, jobs: &[Option<Vec<Job<'_>>>]) {
        let rest: Vec<Vec<Split>> = self
            .values
            .iter()
            .map(|own| {
                let split = |piece: &Piece| self.placement.split(&piece.axes, true, &String::new).ok();
                own.pieces
                    .iter()
                    .zip(&own.computed)
                    .map(|(piece, own)| split(piece).unwrap_or(own.clone()))
                    .collect()
            })
            .collect();
        // `None` if a value is not read; otherwise, whether it is read only as state.
        let mut only: Vec<Option<bool>> = vec![None; self.values.len()];
        let mut read =
            |value: usize, is_state: bool| only[value] = Some(only[value].unwrap_or(true) && is_state);
        for (result, &value) in self.program.recording.outputs.iter().enumerate() {
            let fits = self.values[value].pieces.len() == 1
                && self.result_split(result, value, 0) == Some(rest[value][0].clone());
            read(value, fits);
        }
        for (number, jobs) in jobs.iter().enumerate().rev() {
            let value = self.first_step() + number;
            let is_single = self.values[value].pieces.len() == 1;
            let is_state =
                is_single && only[value] == Some(true) && rest[value] != self.values[value].computed;
            if is_state {
                self.values[value].stored = rest[value].clone();
            }
            let Some(jobs) = jobs else {
                for operand in operands_of(&self.program.recording.steps[number].work) {
                    only[operand] = Some(false);
                }
                continue;
            };
            for job in jobs {
                for &operand in &job.gathered {
                    only[operand] = Some(false);
                }
                for operand in &job.operands {
                    let (piece, uses) = self.uses(job, operand);
                    let own = &self.values[operand.value];
                    let fits = uses.iter().enumerate().all(|(axis, own_use)| {
                        let wanted = rest[operand.value][piece][axis];
                        wanted == own.computed[piece][axis]
                            || is_state
                                && operand.index.is_none()
                                && job.results[0].1.iter().enumerate().any(|(at, result)| {
                                    result == own_use
                                        && *result != AxisUse::Other
                                        && rest[value][0][at] == wanted
                                })
                    });
                    only[operand.value] = Some(only[operand.value].unwrap_or(true) && fits);
                }
            }
        }
    }

    /// The split that a result requires of a piece of its value, if the result starts at the
    /// piece's first element and each axis of the result that is longer than 1 is a whole axis of
    /// the piece.
    pub(super) fn result_split(&self, result: usize, value: usize, piece: usize) -> Option<Split> {
        let own = &self.program.results[result];
        let piece = &self.values[value].pieces[piece];
        let mut step = piece.len() as isize;
        let mut split = vec![None; piece.axes.len()];
        let mut found = 0;
        for (at, axis) in piece.axes.iter().enumerate() {
            step /= axis.2.max(1) as isize;
            let of = (0..own.strides.len())
                .find(|&of| own.tensor.axes[of].size == axis.2 && own.strides[of] == step && axis.2 > 1);
            if let Some(of) = of {
                split[at] = self.flow.results[result][of];
                found += 1;
            }
        }
        let large = own.tensor.axes.iter().filter(|own| own.size > 1).count();
        (found == large && own.start == piece.start).then_some(split)
    }

    /// Handles a step: the splits of its operands and its result, and the transfers.
    fn step(&mut self, number: usize, jobs: Option<&[Job<'_>]>) {
        let value = self.first_step() + number;
        let own = &self.program.values[self.program.inputs.len() + number];
        let (operation, origin) = (own.operation, own.origin);
        let Some(jobs) = jobs else {
            self.whole_step(number, operation, origin);
            return;
        };
        let is_state = self.values[value].stored != self.values[value].computed;
        let mut made = self.values[value].stored.clone();
        // An axis is computed as a whole unless a loop that can be split runs through all of it.
        for job in jobs {
            for (piece, axes) in &job.results {
                for (axis, own) in axes.iter().enumerate() {
                    if !matches!(own, AxisUse::Whole(own) if !job.whole.contains(own)) {
                        made[*piece][axis] = None;
                    }
                }
            }
        }
        let mut wanted: BTreeMap<(usize, usize), Split> = BTreeMap::new();
        let mut sums = Vec::new();
        for job in jobs {
            let bases: Vec<(usize, Vec<AxisUse>, Split)> = job
                .operands
                .iter()
                .map(|operand| {
                    let (piece, uses) = self.uses(job, operand);
                    let own = &self.values[operand.value];
                    let base = if is_state || operand.value >= self.first_step() {
                        &own.stored
                    } else {
                        &own.computed
                    };
                    (piece, uses, base[piece].clone())
                })
                .collect();
            let split_loops = |axis: usize| -> Vec<usize> {
                let of = bases.iter().flat_map(|(_, uses, base)| uses.iter().zip(base));
                of.filter(|own| *own.0 == AxisUse::Whole(axis)).filter_map(|own| *own.1).collect()
            };
            let mut loops: Vec<Option<usize>> = vec![None; job.sizes.len()];
            // The loops of the results are split like the results.
            for (piece, axes) in &job.results {
                for (axis, own) in axes.iter().enumerate() {
                    if let AxisUse::Whole(own) = own
                        && !job.whole.contains(own)
                        && loops[*own].is_none()
                    {
                        loops[*own] = made[*piece][axis];
                    }
                }
            }
            let is_kept = |axis: usize| job.results.iter().any(|own| own.1.contains(&AxisUse::Whole(axis)));
            for axis in 0..job.sizes.len() {
                if is_kept(axis) || job.whole.contains(&axis) || loops[axis].is_some() {
                    continue;
                }
                for mesh_axis in split_loops(axis) {
                    match loops.iter().position(|own| *own == Some(mesh_axis)) {
                        None => loops[axis] = Some(mesh_axis),
                        // The mesh axis splits a loop of the result, but no operand is split along
                        // that loop. Split the summed loop instead, and the result after the sum.
                        Some(other) if !split_loops(other).contains(&mesh_axis) => {
                            (loops[other], loops[axis]) = (None, Some(mesh_axis));
                            for (piece, axes) in &job.results {
                                for (at, own) in axes.iter().enumerate() {
                                    if *own == AxisUse::Whole(other) {
                                        made[*piece][at] = None;
                                    }
                                }
                            }
                        }
                        Some(_) => continue,
                    }
                    break;
                }
            }
            for (operand, (piece, uses, _)) in job.operands.iter().zip(&bases) {
                if self.is_constant(operand.value) {
                    continue;
                }
                let split: Split = uses
                    .iter()
                    .map(|own| match own {
                        AxisUse::Whole(own) => loops[*own],
                        AxisUse::Other => None,
                    })
                    .collect();
                // An axis that is read in two different splits is read as a whole.
                let own = wanted.entry((operand.value, *piece)).or_insert_with(|| split.clone());
                own.iter_mut()
                    .zip(split)
                    .filter(|(own, other)| **own != *other)
                    .for_each(|(own, _)| *own = None);
            }
            for &operand in job.gathered.iter().filter(|own| !self.is_constant(**own)) {
                for (piece, own) in self.values[operand].pieces.iter().enumerate() {
                    wanted.insert((operand, piece), vec![None; own.axes.len()]);
                }
            }
            sums.push(loops);
        }
        for ((operand, piece), split) in wanted {
            self.read(number, Read { value: operand, piece, split }, operation, origin);
        }
        for (job, loops) in jobs.iter().zip(&sums) {
            self.checks(job, loops, operation, origin);
            self.sums(value, job, loops, &made, (operation, origin));
        }
        self.flow.loops.push(sums);
        self.finish(value, made, operation, origin);
    }

    fn is_constant(&self, value: usize) -> bool {
        (self.program.inputs.len()..self.first_step()).contains(&value)
    }

    /// Handles a step that each device computes as a whole.
    fn whole_step(
        &mut self,
        number: usize,
        operation: &'static str,
        origin: Option<&'static Location<'static>>,
    ) {
        let value = self.first_step() + number;
        for operand in operands_of(&self.program.recording.steps[number].work) {
            if self.is_constant(operand) {
                continue;
            }
            for piece in 0..self.values[operand].pieces.len() {
                let split = vec![None; self.values[operand].pieces[piece].axes.len()];
                self.read(number, Read { value: operand, piece, split }, operation, origin);
            }
        }
        let made = self.values[value].pieces.iter().map(|own| vec![None; own.axes.len()]).collect();
        self.flow.loops.push(Vec::new());
        self.finish(value, made, operation, origin);
    }

    /// Adds a step's result with its splits, and the transfers between them.
    fn finish(
        &mut self,
        value: usize,
        made: Vec<Split>,
        operation: &'static str,
        origin: Option<&'static Location<'static>>,
    ) {
        let stored = self.values[value].stored.clone();
        let own = made.into_iter().zip(stored).map(|(made, split)| Made { made, split });
        let own: Vec<Made> = own.collect();
        for (piece, own) in own.iter().enumerate() {
            self.moved((value, piece), &own.made, &own.split, (operation, origin));
        }
        self.flow.steps.push(own);
        let steps = self.flow.steps.len();
        self.flow.reads.resize(steps, Vec::new());
    }

    /// Adds a read of a piece and its transfers, unless the piece is stored in the split in which
    /// it is read.
    fn read(
        &mut self,
        number: usize,
        read: Read,
        operation: &'static str,
        origin: Option<&'static Location<'static>>,
    ) {
        let stored = self.values[read.value].stored[read.piece].clone();
        self.flow.reads.resize(number + 1, Vec::new());
        if stored == read.split {
            return;
        }
        if self.known.insert((read.value, read.piece, read.split.clone())) {
            self.moved((read.value, read.piece), &stored, &read.split, (operation, origin));
        }
        self.flow.reads[number].push(read);
    }
}

/// The values that a step without jobs reads, except through lookup tables.
fn operands_of(work: &SavedWork) -> Vec<usize> {
    let fields: Vec<_> = match work {
        SavedWork::Parts(parts) => parts.iter().map(|own| &own.field).collect(),
        SavedWork::Rule(rule) => match &**rule {
            SavedRule::Kind { operands, .. } => operands.iter().collect(),
            SavedRule::Reduction(own) | SavedRule::MomentOfLines(own) => vec![&own.field],
            _ => Vec::new(),
        },
    };
    fields.iter().flat_map(|own| &own.operands).filter_map(|own| own.value).collect()
}
