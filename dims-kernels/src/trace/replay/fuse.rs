//! The third pass: maps over the same loops become one program with several results.
//!
//! A map is a step whose result has an element for each position of its loops. The elements are
//! contiguous, in the order of the loops. A map can join a group of maps with the same number of
//! elements if the loops of both can be split into the same loops, and if each operand of the map
//! is either computed before the group runs, or computed by a member of the group and read at the
//! same position. Equal operations become one. The results have the same bits as if the steps ran
//! one by one.
//!
//! A sum can join a group if the loops of both can be split into the same loops, and if it adds
//! elements that members compute, or shares at least half of its operations and all of its operands
//! with them. The loops then run in the order in which the sum adds its elements.

use super::draft::{Draft, Meaning};
use super::merge::MergedPrograms;
use super::sums::SumOrder;
use crate::memory::axes::row_major;
use crate::ops::code::{DType, RegisterKind};
use crate::program::{Instruction, Register, ScalarProgram};
use crate::trace::compute::{covers, kept};
use crate::trace::{Field, FieldSource, Node, NodeStep, Part};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// A unit of work of a prepared program.
pub(super) enum Unit {
    /// Maps over the same loops, and possibly a sum over these loops.
    Maps(Box<MapGroup>),
    /// A single step.
    Step(Arc<Node>),
}

/// Maps over the same loops, and possibly a sum over these loops.
#[derive(Clone)]
pub(super) struct MapGroup {
    /// The size of each loop. The results are contiguous in the order of the loops.
    pub(super) sizes: Vec<usize>,
    /// The number of positions.
    pub(super) len: usize,
    pub(super) operands: Vec<GroupOperand>,
    /// The indices of the operands with each [key](GroupOperand::key).
    numbers: BTreeMap<(u64, isize), SmallVec<[usize; 1]>>,
    program: MergedPrograms,
    /// The maps, and the registers of their results, converted to the element types.
    members: Vec<(Arc<Node>, Register)>,
    /// The same registers, by the numbers of the maps.
    registers: BTreeMap<u64, Register>,
    pub(super) sum: Option<Box<GroupSum>>,
}

/// A sum that runs together with maps. It adds its elements in the same order as if it ran alone.
#[derive(Clone)]
pub(super) struct GroupSum {
    pub(super) node: Arc<Node>,
    value: Register,
    pub(super) order: SumOrder,
}

#[derive(Clone)]
pub(super) struct GroupOperand {
    /// The value or constant that the operand reads; `None` for a position.
    pub(super) source: Option<Meaning>,
    pub(super) dtype: DType,
    /// The index of the element at the origin of the loops.
    pub(super) offset: isize,
    /// The stride along each loop.
    pub(super) strides: Vec<isize>,
}

impl GroupOperand {
    fn is_same(&self, other: &GroupOperand) -> bool {
        let is_same_source = match (&self.source, &other.source) {
            (None, None) => true,
            (Some(a), Some(b)) => a.is_same(b),
            _ => false,
        };
        is_same_source && self.offset == other.offset && self.strides == other.strides
    }

    /// The source as a number, and the offset.
    fn key(&self) -> (u64, isize) {
        let source = match &self.source {
            None => 0,
            Some(Meaning::Value(number)) => *number,
            Some(Meaning::Constant(held)) => Arc::as_ptr(held).cast::<()>().addr() as u64,
        };
        (source, self.offset)
    }

    /// Splits the loops, whose sizes are `from`, into loops of the sizes `sizes`, and sets the
    /// operand's strides along the new loops.
    fn split(&mut self, from: &[usize], sizes: &[usize]) {
        let mut strides = Vec::with_capacity(sizes.len());
        let mut rest = sizes.iter();
        for (&size, &stride) in from.iter().zip(&self.strides) {
            let mut own: SmallVec<[usize; 4]> = SmallVec::new();
            let mut volume = 1;
            while volume < size {
                let part = *rest.next().expect("`sizes` splits each loop");
                volume *= part;
                own.push(part);
            }
            let mut inner = size;
            for part in own {
                inner /= part;
                strides.push(stride * inner as isize);
            }
        }
        self.strides = strides;
    }
}

struct MapStep<'n> {
    sizes: Vec<usize>,
    parts: Vec<MapPart<'n>>,
}

/// A summand of a map.
struct MapPart<'n> {
    program: &'n ScalarProgram,
    operands: Vec<GroupOperand>,
    /// Whether the summand varies along all loops.
    is_whole: bool,
}

/// A group with more instructions takes no further maps or sums.
const LONGEST: usize = 8192;

/// A result of at least this many bytes is no longer in a cache once a few others have been
/// written.
const FAR: usize = 8 << 20;

/// A map of at most this many operations computes its result faster than memory can store it.
const CHEAP: usize = 4;

/// The units of a program, each after the units that it reads. Each comes with those of its results
/// that other units read or that are outputs.
pub(super) fn units(draft: &Draft, outputs: &[u64]) -> Vec<(Unit, Vec<(Arc<Node>, Register)>)> {
    let mut grouping = Grouping { draft, units: Vec::new(), largest: Vec::new(), unit_of: BTreeMap::new() };
    for node in &draft.steps {
        grouping.add(node);
    }
    let Grouping { units, unit_of, .. } = grouping;
    let Grouping { units, unit_of, .. } = {
        let mut grouping = Grouping { draft, units, largest: Vec::new(), unit_of };
        grouping.join_sums();
        grouping
    };
    // The values that are read outside of their group.
    let mut is_read: BTreeSet<u64> = outputs.iter().copied().collect();
    for node in &draft.steps {
        for number in draft.reads(node) {
            if unit_of.get(&number) != unit_of.get(&node.id) {
                is_read.insert(number);
            }
        }
    }
    let results = |unit: &Unit| match unit {
        Unit::Maps(group) => {
            let read = |(node, _): &&(Arc<Node>, Register)| is_read.contains(&node.id);
            let sum = group.sum.iter().map(|sum| (Arc::clone(&sum.node), sum.value));
            group.members.iter().filter(read).cloned().chain(sum).collect()
        }
        Unit::Step(node) => match draft.in_pieces.get(&node.id) {
            Some(pieces) => pieces.iter().flatten().map(|piece| (Arc::clone(piece), 0)).collect(),
            None => alloc::vec![(Arc::clone(node), 0)],
        },
    };
    units.into_iter().map(|unit| (results(&unit), unit)).map(|(results, unit)| (unit, results)).collect()
}

struct Grouping<'d> {
    draft: &'d Draft,
    units: Vec<Unit>,
    /// The size of the largest result of each unit in bytes.
    largest: Vec<usize>,
    unit_of: BTreeMap<u64, usize>,
}

impl Grouping<'_> {
    fn add(&mut self, node: &Arc<Node>) {
        let Some(map) = MapStep::of(node, self.draft) else {
            let pieces = self.draft.in_pieces.get(&node.id).into_iter().flatten().flatten();
            for number in pieces.map(|piece| piece.id).chain([node.id]) {
                self.unit_of.insert(number, self.units.len());
            }
            self.units.push(Unit::Step(Arc::clone(node)));
            self.largest.push(node.bytes());
            return;
        };
        let joined = self.group_for(node, &map);
        let (at, sizes) = joined.unwrap_or_else(|| {
            self.units.push(Unit::Maps(Box::new(MapGroup::new(map.sizes.clone(), node.len))));
            self.largest.push(0);
            (self.units.len() - 1, map.sizes.clone())
        });
        let Unit::Maps(group) = &mut self.units[at] else { unreachable!("maps join groups") };
        group.join(node, map, sizes);
        self.largest[at] = node.bytes().max(self.largest[at]);
        self.unit_of.insert(node.id, at);
    }

    /// Lets sums join groups of maps.
    fn join_sums(&mut self) {
        // The first unit that reads each value.
        let mut readers: BTreeMap<u64, usize> = BTreeMap::new();
        for node in &self.draft.steps {
            let unit = self.unit_of[&node.id];
            for number in self.draft.reads(node) {
                readers.entry(number).and_modify(|own| *own = unit.min(*own)).or_insert(unit);
            }
        }
        for at in 0..self.units.len() {
            let Unit::Step(node) = &self.units[at] else { continue };
            let node = Arc::clone(node);
            let Some((to, group)) = self.group_for_sum(&node, at, readers.get(&node.id)) else { continue };
            self.units[to] = Unit::Maps(group);
            self.unit_of.insert(node.id, to);
            // The sum's own unit becomes an empty group: a group without results does not run.
            self.units[at] = Unit::Maps(Box::new(MapGroup::new(Vec::new(), 0)));
        }
    }

    /// A group that the sum can join: its number, and the group with the sum added. The group runs
    /// before the unit `reader`, the first that reads the sum.
    fn group_for_sum(
        &self,
        node: &Arc<Node>,
        at: usize,
        reader: Option<&usize>,
    ) -> Option<(usize, Box<MapGroup>)> {
        let NodeStep::Parts(parts) = &node.step else { return None };
        let [Part { field, .. }] = &parts[..] else { return None };
        let order = SumOrder::of(node)?;
        let operands = operands_along(field, &order.loops, self.draft)?;
        let sizes: Vec<usize> = order.loops.iter().map(|&axis| field.sizes[axis]).collect();
        let unit_of = |operand: &GroupOperand| match operand.source {
            Some(Meaning::Value(number)) => self.unit_of.get(&number).copied(),
            _ => None,
        };
        let first = operands.iter().filter_map(unit_of).max().unwrap_or(0);
        let operations = field.program.operations();
        for to in first..reader.map_or(self.units.len(), |&reader| reader) {
            let Unit::Maps(group) = &self.units[to] else { continue };
            if group.sum.is_some() || group.len != order.positions || group.program.len() > LONGEST {
                continue;
            }
            let mut read = operands.iter().filter(|operand| unit_of(operand) == Some(to)).peekable();
            let is_reader = read.peek().is_some();
            if !is_reader && !operands.iter().all(|own| group.numbers.contains_key(&own.key())) {
                continue;
            }
            let Some(merged) = refined(&group.sizes, &sizes) else { continue };
            let contiguous = row_major(&sizes);
            if !read.all(|operand| operand.offset == 0 && operand.strides[..] == contiguous[..]) {
                continue;
            }
            let mut group = group.clone();
            let known = (group.program.operations(), group.operands.len());
            group.split(&merged);
            let part = MapPart { program: &field.program, operands: operands.clone(), is_whole: true };
            let value = group.append(&part, &sizes, &merged);
            let shared = operations.saturating_sub(group.program.operations() - known.0);
            // In a group that runs later, the operands of the sum stay in memory for longer, unless
            // the group reads them anyway.
            let is_worthwhile = is_reader || 2 * shared >= operations && group.operands.len() == known.1;
            if is_worthwhile && (to <= at || group.operands.len() == known.1) {
                group.sum = Some(Box::new(GroupSum { node: Arc::clone(node), value, order }));
                return Some((to, group));
            }
        }
        None
    }

    /// The number of the group that a map can join, and the sizes of the [refined] loops of both.
    fn group_for(&self, node: &Node, map: &MapStep<'_>) -> Option<(usize, Vec<usize>)> {
        let operands = || map.parts.iter().flat_map(|part| &part.operands);
        let unit_of = |operand: &GroupOperand| match operand.source {
            Some(Meaning::Value(number)) => self.unit_of.get(&number).copied(),
            _ => None,
        };
        // The map can run no earlier than the last unit that computes one of its operands.
        let least = operands().filter_map(unit_of).max();
        let fits = |at: usize| -> Option<Vec<usize>> {
            let Unit::Maps(group) = &self.units[at] else { return None };
            if group.len != node.len || group.program.len() > LONGEST {
                return None;
            }
            let reads_same_position = |operand: &GroupOperand| {
                unit_of(operand) != Some(at)
                    || operand.offset == 0 && operand.strides[..] == row_major(&map.sizes)[..]
            };
            if !operands().all(reads_same_position) {
                return None;
            }
            refined(&group.sizes, &map.sizes)
        };
        // A large result should be read soon after it is written. So a cheap map with a large
        // result joins only a group that computes one of its operands.
        let is_alone = node.bytes() >= FAR
            && map.parts.iter().map(|part| part.program.operations()).sum::<usize>() <= CHEAP;
        let first = least.unwrap_or(0);
        let mut at = self.units.len();
        while at > first {
            at -= 1;
            if (!is_alone || operands().any(|operand| unit_of(operand) == Some(at)))
                && let Some(sizes) = fits(at)
            {
                return Some((at, sizes));
            }
            // If the map joined a group before this unit, and both have large results, the map's
            // result would stay allocated for longer.
            if !node.is_small() && self.largest[at] > node.bytes() / 4 {
                return None;
            }
        }
        None
    }
}

/// The sizes of the loops into which both `a` and `b` can be split; `None` if there are no such
/// loops. Both have the same number of positions.
fn refined(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let steps = |sizes: &[usize]| -> Vec<usize> {
        let mut step = 1;
        let inner_first = sizes.iter().rev().map(|size| {
            step *= size;
            step
        });
        inner_first.collect()
    };
    let mut all: Vec<usize> = steps(a).into_iter().chain(steps(b)).collect();
    all.sort_unstable();
    all.dedup();
    let (mut sizes, mut before) = (Vec::new(), 1);
    for step in all {
        if step % before != 0 {
            return None;
        }
        sizes.push(step / before);
        before = step;
    }
    sizes.reverse();
    Some(sizes)
}

impl<'n> MapStep<'n> {
    fn of(node: &'n Node, draft: &Draft) -> Option<Self> {
        let NodeStep::Parts(parts) = &node.step else { return None };
        if node.len == 0 || parts.is_empty() || parts.len() > 1 && !node.dtype.is_float() {
            return None;
        }
        let mut maps: Vec<(Vec<usize>, MapPart<'n>)> = Vec::with_capacity(parts.len());
        for part in parts {
            maps.push(map_part(part, node, draft)?);
        }
        let mut sizes = maps[0].0.clone();
        for (own, _) in &maps[1..] {
            sizes = refined(&sizes, own)?;
        }
        let mut parts: Vec<MapPart<'n>> = Vec::with_capacity(maps.len());
        for (own, mut part) in maps {
            part.operands.iter_mut().for_each(|operand| operand.split(&own, &sizes));
            parts.push(part);
        }
        let mut map = MapStep { sizes, parts };
        map.merge();
        Some(map)
    }

    /// Merges adjacent loops where the strides of all operands allow it.
    fn merge(&mut self) {
        let mut at = 1;
        while at < self.sizes.len() {
            let size = self.sizes[at] as isize;
            let mut operands = self.parts.iter().flat_map(|part| &part.operands);
            if operands.all(|own| own.strides[at - 1] == own.strides[at] * size) {
                self.sizes[at] *= self.sizes[at - 1];
                self.sizes.remove(at - 1);
                let operands = self.parts.iter_mut().flat_map(|part| &mut part.operands);
                operands.for_each(|own| {
                    own.strides.remove(at - 1);
                });
            } else {
                at += 1;
            }
        }
    }
}

/// A part as a summand of a map, and its loops in the order of the elements; `None` if it does not
/// have one element for each element of the node, or a group cannot compute it.
fn map_part<'n>(part: &'n Part, node: &Node, draft: &Draft) -> Option<(Vec<usize>, MapPart<'n>)> {
    let Part { field, place } = part;
    if field.sizes.contains(&0) || !covers(place, &field.sizes, node.len) {
        return None;
    }
    let order = kept(place, &field.sizes);
    if order.len() != field.sizes.iter().filter(|&&size| size != 1).count() {
        return None;
    }
    let (kind, of_node) = (field.kind(), node.dtype.kind());
    let is_half = node.dtype.is_float() && node.dtype.bytes() < size_of::<f32>();
    let is_rounded = match (kind, of_node) {
        (RegisterKind::F64, RegisterKind::F32) => !is_half,
        (RegisterKind::F32, RegisterKind::F64) => true,
        _ => kind == of_node,
    };
    if !is_rounded {
        return None;
    }
    let operands = operands_along(field, &order, draft)?;
    let sizes: Vec<usize> = order.iter().map(|&axis| field.sizes[axis]).collect();
    let is_whole = (0..sizes.len()).all(|at| operands.iter().any(|own| own.strides[at] != 0));
    Some((sizes, MapPart { program: &field.program, operands, is_whole }))
}

/// The operands of a field, with their strides along loops in this order; `None` if an operand has
/// a table, or elements of a type that programs do not know.
fn operands_along(field: &Field, order: &[usize], draft: &Draft) -> Option<Vec<GroupOperand>> {
    let mut operands = Vec::with_capacity(field.operands.len());
    for operand in &field.operands {
        let (source, dtype, len) = match &operand.source {
            FieldSource::Position => (None, DType::Isize, None),
            FieldSource::Memory(held) => (Some(draft.meaning(held)), held.dtype()?, Some(held.len())),
        };
        if operand.place.table.is_some() {
            return None;
        }
        if let Some(len) = len {
            operand.place.assert_within(&field.sizes, len);
        }
        let strides = order.iter().map(|&axis| operand.place.strides[axis]).collect();
        operands.push(GroupOperand { source, dtype, offset: operand.place.offset, strides });
    }
    Some(operands)
}

impl MapGroup {
    fn new(sizes: Vec<usize>, len: usize) -> Self {
        MapGroup {
            sizes,
            len,
            operands: Vec::new(),
            numbers: BTreeMap::new(),
            program: MergedPrograms::default(),
            members: Vec::new(),
            registers: BTreeMap::new(),
            sum: None,
        }
    }

    fn split(&mut self, sizes: &[usize]) {
        if self.sizes == sizes {
            return;
        }
        for operand in &mut self.operands {
            operand.split(&self.sizes, sizes);
        }
        self.sizes = sizes.to_vec();
    }

    /// Adds a map. The loops of the group then have these sizes.
    fn join(&mut self, node: &Arc<Node>, map: MapStep<'_>, sizes: Vec<usize>) {
        self.split(&sizes);
        let dtype = node.dtype;
        let single = map.parts.len() == 1;
        // Summands are added in the type of the elements, or in `f32` for half precision.
        let kind = if single { None } else { Some(dtype.kind()) };
        let mut sum: Option<Register> = None;
        for part in map.parts {
            let value = self.append(&part, &map.sizes, &sizes);
            let Some(kind) = kind else {
                sum = Some(value);
                continue;
            };
            let value = self.program.converted(value, kind);
            sum = Some(match sum {
                None if part.is_whole => value,
                // A first summand that does not vary along all loops is added to zeros, as when the
                // step runs by itself.
                None => {
                    let zero = self.program.zero(kind);
                    self.program.sum(zero, value)
                }
                Some(sum) => self.program.sum(sum, value),
            });
        }
        let sum = sum.expect("a map has a part");
        let value = self.program.rounded(sum, dtype);
        self.members.push((Arc::clone(node), value));
        self.registers.insert(node.id, value);
    }

    /// Appends the program of a part, and returns the register of its result.
    fn append(&mut self, part: &MapPart<'_>, from: &[usize], sizes: &[usize]) -> Register {
        let MapGroup { operands, numbers, program, registers, .. } = self;
        let is_position = |number: u32| {
            let reads = |own: &Instruction| matches!(own, Instruction::Position(at) if *at == number);
            part.program.instructions().iter().any(reads)
        };
        program.append(part.program, &mut |program, number| {
            let operand = &part.operands[number as usize];
            if let Some(Meaning::Value(of)) = operand.source
                && let Some(register) = registers.get(&of)
            {
                return *register;
            }
            let mut own = operand.clone();
            own.split(from, sizes);
            let numbers = numbers.entry(own.key()).or_default();
            let known = numbers.iter().copied().find(|&at| operands[at].is_same(&own));
            let at = known.unwrap_or_else(|| {
                numbers.push(operands.len());
                operands.push(own);
                operands.len() - 1
            });
            if is_position(number) {
                program.position(at as u32)
            } else {
                program.load(at as u32, operand.dtype.kind())
            }
        })
    }

    /// The program that computes these results, the registers of the results in it, the sizes of
    /// the loops, and the operands that the program reads.
    pub(super) fn finish(
        self,
        results: &[Register],
    ) -> (ScalarProgram, Vec<Register>, Vec<usize>, Vec<GroupOperand>) {
        let (program, results) = self.program.finish(results);
        let mut is_read = alloc::vec![false; self.operands.len()];
        for instruction in program.instructions() {
            if let Instruction::Load(at) | Instruction::Position(at) = *instruction {
                is_read[at as usize] = true;
            }
        }
        let mut numbers = alloc::vec![0; self.operands.len()];
        let mut operands = Vec::new();
        for (at, operand) in self.operands.into_iter().enumerate() {
            if is_read[at] {
                numbers[at] = operands.len() as u32;
                operands.push(operand);
            }
        }
        let program = program.with_operands(|number| numbers[number as usize]);
        (program, results, self.sizes, operands)
    }
}
