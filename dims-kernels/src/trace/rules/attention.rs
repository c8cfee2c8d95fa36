//! Attention: the pull-back recomputes scores and their softmax for some of the queries at a time.

mod pull_back;

pub(in crate::trace) use pull_back::AttentionPullBack;

use super::lines::softmax;
use super::{NodeParts, along, pull_backs, sum, wide};
use crate::attention::{
    AttentionRoles, Change, LoweredScores, Work, attend, loops_of_pair, narrowed, rows_of_change, widened,
};
use crate::contract::ContractionFactor;
use crate::error::Error;
use crate::loops::axes::sort_few;
use crate::loops::nest::Nest;
use crate::loops::steps::{PlanStep, note, told};
use crate::machine::threads;
use crate::memory::buffer::Buffer;
use crate::ops::code::{BinaryOpcode, DType, Number};
use crate::program::Instruction;
use crate::program::interpreter::{Interpreted, ProgramOutput};
use crate::scalar::Real;
use crate::trace::compute::{HeldMemories, filled, floats, mapped, push_rows, rows};
use crate::trace::evaluate::add;
use crate::trace::products::strides_of;
use crate::trace::{Field, Held, Node, Part, Rule, StridedPlace};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// `out = sum over keys of softmax(scale * (sum over features of q * k) + bias) * v`. Only keys
/// for which the mask is true count.
///
/// A gradient that is recorded step by step stores all scores in memory. Otherwise, the scores of
/// some of the queries are computed at a time.
pub struct Attention {
    /// Queries, keys and values, over the same loops.
    pub operands: [Field; 3],
    /// Which scores count. Each step has a mask, even if all scores count.
    pub mask: Option<Field>,
    /// The bias, added to the scores.
    pub bias: Option<Field>,
    /// The factor of the products of queries and keys.
    pub scale: f64,
    /// The loops over features.
    pub features: Vec<usize>,
    /// The loops over keys.
    pub over: Vec<usize>,
    /// The loops of the scores, including the loops over keys.
    pub scores: Vec<usize>,
    /// The loops of the result, in memory order.
    pub kept: Vec<usize>,
    /// The type of the result.
    pub dtype: DType,
}

/// The maximum number of scores of a tile, which are computed at once. With their gradients and
/// inputs, they roughly fit into a second-level cache. A tile has at least one query, even if that
/// query has more scores.
const TILE: usize = 1 << 17;

/// Unless the mask is constantly true, a tile has at most this many positions along one loop over
/// queries: the last one with more positions than this.
const QUERIES: usize = 64;

impl Rule for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn operands(&self) -> Vec<&Field> {
        self.operands.iter().chain(&self.mask).chain(&self.bias).collect()
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        self.operands.iter_mut().chain(&mut self.mask).chain(&mut self.bias).collect()
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        Some((pull_backs().repeat_attention)(self, operands))
    }

    fn plan(&self, _: &[Field], _: usize, _: usize) -> Option<PlanStep> {
        None
    }

    fn pull(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<NodeParts, Error> {
        (pull_backs().attention)(self, value, cotangent, recorded)
    }

    fn pull_to_run_again(
        &self,
        _: &Arc<dyn Held>,
        cotangent: &Arc<dyn Held>,
    ) -> Result<Option<NodeParts>, Error> {
        (pull_backs().attention_again)(self, cotangent)
    }
}

impl Attention {
    pub(super) fn pull_back(
        &self,
        _: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<NodeParts, Error> {
        self.pull_tiles(cotangent, recorded)
    }

    /// The gradient, computed for some of the queries at a time unless it is recorded.
    pub(super) fn pull_tiles(&self, cotangent: Arc<dyn Held>, recorded: bool) -> Result<NodeParts, Error> {
        let sizes = &self.operands[0].sizes[..];
        let dy = along(sizes, &cotangent, &self.kept);
        let whole = QueryTile {
            operands: self.operands.clone(),
            mask: self.mask.clone().filter(|mask| !is_true(mask)),
            bias: self.bias.clone(),
            dy,
        };
        let tiles = self.tiles(sizes);
        if recorded || tiles.len() <= 1 {
            return self.pull_tile(whole, recorded);
        }
        let mut sums: BTreeMap<u64, (Arc<Node>, Arc<dyn Held>)> = BTreeMap::new();
        for slices in tiles {
            let mut tile = whole.map(|field| cut(field, &slices));
            if let Some(keys) = tile.keys(&self.over)? {
                tile = tile.map(|field| cut(field, core::slice::from_ref(&keys)));
            }
            for (node, part) in self.pull_tile(tile, false)? {
                let own = sums.remove(&node.id).map(|(_, sum)| sum);
                let sum = floats!(wide(node.dtype), added(own, node.len, part))?;
                sums.insert(node.id, (node, sum));
            }
        }
        Ok(sums.into_values().map(whole_part).collect())
    }
}

/// Some positions of a loop.
#[derive(Clone)]
struct Slice {
    axis: usize,
    from: usize,
    len: usize,
}

/// A field restricted to slices of its loops.
fn cut(field: &Field, slices: &[Slice]) -> Field {
    slices.iter().fold(field.clone(), |field, slice| field.slice(slice.axis, slice.from, slice.len))
}

/// The operands and cotangents of some of the queries.
struct QueryTile {
    operands: [Field; 3],
    mask: Option<Field>,
    bias: Option<Field>,
    dy: Field,
}

impl QueryTile {
    fn map(&self, f: impl Fn(&Field) -> Field) -> Self {
        QueryTile {
            operands: self.operands.each_ref().map(&f),
            mask: self.mask.as_ref().map(&f),
            bias: self.bias.as_ref().map(&f),
            dy: f(&self.dy),
        }
    }

    /// The range of keys that count for any of the queries; `None` stands for all keys.
    fn keys(&self, over: &[usize]) -> Result<Option<Slice>, Error> {
        let (&[axis], Some(mask)) = (over, &self.mask) else { return Ok(None) };
        let varies = |axis: usize| mask.operands.iter().any(|own| own.place.varies(axis));
        if !varies(axis) {
            return Ok(None);
        }
        let others = (0..mask.sizes.len()).filter(|&own| own != axis && varies(own));
        let order: Vec<usize> = others.chain([axis]).collect();
        let counts = mask.map([], |build, mask, []| build.cast(DType::Isize, mask));
        let (mut first, mut end) = (usize::MAX, 0);
        for line in mapped::<isize>(&counts, &order)?.chunks(mask.sizes[axis]) {
            let counts = |&count: &isize| count != 0;
            let (Some(from), Some(to)) = (line.iter().position(counts), line.iter().rposition(counts)) else {
                continue;
            };
            (first, end) = (first.min(from), end.max(to + 1));
        }
        let len = end.saturating_sub(first);
        Ok((len > 0 && len < mask.sizes[axis]).then_some(Slice { axis, from: first, len }))
    }
}

impl Attention {
    /// Tiles with few scores each, as slices of the loops over batches and queries.
    fn tiles(&self, sizes: &[usize]) -> Vec<Vec<Slice>> {
        let [_, k, v] = &self.operands;
        let is_query =
            |axis: &usize| ![k, v].iter().any(|own| own.operands.iter().any(|own| own.place.varies(*axis)));
        let mut loops: Vec<usize> =
            self.scores.iter().copied().filter(|axis| !self.over.contains(axis)).collect();
        // Batches come first: tiles of different batches read different keys.
        sort_few(&mut loops, is_query);
        let queries = loops.iter().copied().rfind(|axis| is_query(axis) && sizes[*axis] > QUERIES);
        let (Some(axis), true) = (queries, self.mask.as_ref().is_some_and(|mask| !is_true(mask))) else {
            return self.tiles_of(sizes, &loops);
        };
        // With fewer queries at a time, fewer keys count for any of them.
        let mut few = sizes.to_vec();
        few[axis] = QUERIES;
        let tiles = self.tiles_of(&few, &loops);
        let from = (0..sizes[axis]).step_by(QUERIES);
        let rest = from.map(|from| Slice { axis, from, len: sizes[axis] - from });
        rest.flat_map(|rest| tiles.iter().filter_map(move |tile| moved(tile, &rest))).collect()
    }

    /// [`tiles`](Self::tiles) for loops in this order.
    fn tiles_of(&self, sizes: &[usize], loops: &[usize]) -> Vec<Vec<Slice>> {
        let volume = |axes: &[usize]| axes.iter().map(|&axis| sizes[axis]).product::<usize>();
        if volume(&self.scores) == 0 {
            return Vec::new();
        }
        let mut tiles = vec![Vec::new()];
        for (at, &axis) in loops.iter().enumerate() {
            let inner = volume(&loops[at + 1..]) * volume(&self.over);
            let len = (TILE / inner).clamp(1, sizes[axis]);
            let slices = (0..sizes[axis]).step_by(len);
            let slices: Vec<Slice> =
                slices.map(|from| Slice { axis, from, len: len.min(sizes[axis] - from) }).collect();
            let both = |tile: &Vec<Slice>, slice: &Slice| tile.iter().chain([slice]).cloned().collect();
            tiles = tiles.iter().flat_map(|tile| slices.iter().map(move |slice| both(tile, slice))).collect();
            if len > 1 {
                break;
            }
        }
        tiles
    }

    /// Runs the attention with other operands, using the kernel of the operation.
    pub(super) fn repeat(&self, operands: Vec<Field>) -> Result<Arc<dyn Held>, Error> {
        floats!(self.dtype, repeated(self, operands))
    }

    /// The softmax of the scores: the shares of keys in the result of a query.
    fn shares(
        &self,
        [q, k]: [&Field; 2],
        mask: Option<Field>,
        bias: Option<Field>,
        recorded: bool,
    ) -> Result<KeyShares, Error> {
        let dtype = wide(self.dtype);
        let Attention { features, over, scores, .. } = self;
        let joined =
            |axes: &[usize], more: &[usize]| -> Vec<usize> { axes.iter().chain(more).copied().collect() };
        let queries: Vec<usize> = scores.iter().copied().filter(|axis| !over.contains(axis)).collect();
        // Keys are innermost.
        let order = joined(&queries, over);
        let product = {
            let [q, k] = [q, k].map(|own| own.only(&joined(scores, features)));
            q.map([&k], |build, q, [k]| {
                let product = build.binary(BinaryOpcode::Mul, q, k);
                let scale = build.float(self.scale, build.kind(product));
                build.binary(BinaryOpcode::Mul, product, scale)
            })
        };
        let sizes: Vec<usize> = (0..product.sizes.len())
            .map(|axis| if scores.contains(&axis) { product.sizes[axis] } else { 1 })
            .collect();
        let mut score = along(&sizes, &sum(product.clone(), &order, dtype, recorded)?, &order);
        let bias = bias.map(|bias| bias.only(scores));
        if let Some(bias) = &bias {
            score = score.map([bias], |build, score, [bias]| build.binary(BinaryOpcode::Add, score, bias));
        }
        if let Some(mask) = mask {
            score = score.map([&mask.only(scores)], |build, score, [mask]| {
                let none = build.float(f64::NEG_INFINITY, build.kind(score));
                build.select(mask, score, none)
            });
        }
        let shares = softmax(score, &order, over, dtype, recorded)?;
        Ok(KeyShares { shares, product, bias, queries, order, sizes })
    }

    fn pull_tile(&self, tile: QueryTile, recorded: bool) -> Result<NodeParts, Error> {
        let dtype = wide(self.dtype);
        let Attention { over, kept, .. } = self;
        let joined =
            |axes: &[usize], more: &[usize]| -> Vec<usize> { axes.iter().chain(more).copied().collect() };
        let [q, k, _] = &tile.operands;
        let KeyShares { shares, product, bias, queries, order, sizes } =
            self.shares([q, k], tile.mask, tile.bias, recorded)?;
        let sizes = &sizes[..];
        // Values and cotangents, over the loops of scores and results.
        let all = joined(over, kept);
        let (v, dy) = (tile.operands[2].only(&all), tile.dy.only(&all));
        let share = along(&dy.sizes, &shares, &order);
        let mut parts =
            v.pull(&share.map([&dy], |build, share, [dy]| build.binary(BinaryOpcode::Chain, share, dy)));
        let slopes = sum(
            v.map([&dy], |build, v, [dy]| build.binary(BinaryOpcode::Chain, v, dy)),
            &order,
            dtype,
            recorded,
        )?;
        let (share, slope) = (along(sizes, &shares, &order), along(sizes, &slopes, &order));
        let weighed =
            share.map([&slope], |build, share, [slope]| build.binary(BinaryOpcode::Chain, share, slope));
        let total = along(sizes, &sum(weighed, &queries, dtype, recorded)?, &queries);
        let given = share.map([&slope, &total], |build, share, [slope, total]| {
            let difference = build.binary(BinaryOpcode::Sub, slope, total);
            build.binary(BinaryOpcode::Chain, share, difference)
        });
        // `given` is stored in memory because it is read several times.
        let given = sum(given, &order, dtype, recorded)?;
        parts.extend(product.pull(&along(&product.sizes, &given, &order)));
        if let Some(bias) = bias {
            parts.extend(bias.pull(&along(sizes, &given, &order)));
        }
        Ok(parts)
    }
}

/// [`Attention::repeat`], for the type of the result.
fn repeated<T: ProgramOutput + Real>(
    attention: &Attention,
    operands: Vec<Field>,
) -> Result<Arc<dyn Held>, Error> {
    let Attention { features, over, scores, kept, .. } = attention;
    let sizes = operands[0].sizes.clone();
    let sizes = &sizes[..];
    let (of_scores, of_values) = ([&scores[..], features].concat(), [&over[..], kept].concat());
    let mut operands = operands.into_iter();
    // Each operand has elements even if a loop that it lacks is empty.
    let mut next = |axes: &[usize]| operands.next().expect("all operands of the step are passed").only(axes);
    let fields = [next(&of_scores), next(&of_scores), next(&of_values)];
    let mask = attention.mask.as_ref().map(|_| next(scores));
    let bias = attention.bias.as_ref().map(|_| next(scores));
    let len = kept.iter().map(|&axis| sizes[axis]).product();
    // Loops over features may have size 0: the products of queries and keys are then 0.
    if over.iter().chain(kept).any(|&axis| sizes[axis] == 0) {
        // A mean over no keys is 0.
        return Ok(Buffer::from(filled::<T>(len)?).held());
    }
    let memories = fields.each_ref().map(HeldMemories::of);
    let [q, k, v] = core::array::from_fn(|at| in_memory::<T>(&fields[at], &memories[at]));
    let (q, k, v) = (q?, k?, v?);
    let strides = [q.strides(), k.strides(), v.strides()];
    let AttentionRoles { batch, queries, values, mut rows } =
        AttentionRoles::of(sizes, [scores, over, kept], strides);
    let changes = [&mask, &bias].map(|change| {
        change.as_ref().map(|field| {
            push_rows(&mut rows, field);
            let memories = HeldMemories::of(field);
            let sources = memories.sources(field);
            (field, memories, sources)
        })
    });
    let (nest, counts) = Nest::grouped(sizes, &[&batch, &queries, over], &rows);
    let work = Work {
        features: loops_of_pair(sizes, &rows, [0, 1], features),
        values: loops_of_pair(sizes, &rows, [2, 3], &values),
        nest: &nest,
        query: counts[0] + counts[1] - 1,
        q: q.elements(),
        k: k.elements(),
        v: v.elements(),
        scale: T::of(attention.scale).widen(),
    };
    let threads = threads::parts(work.multiplications() / 32);
    note(|| {
        let describe = |field: &Field| field.program.describe();
        work.step(mask.as_ref().map(describe).unwrap_or_default(), bias.as_ref().map(describe), len, threads)
    });
    let lower = || -> Box<dyn Change<T::Wide> + '_> {
        let mut rows = rows_of_change(&nest);
        let [mask, bias] = &changes;
        let (mask, _, sources) = mask.as_ref().expect("a step of attention has a mask");
        // SAFETY: the program of the mask loads the operands of the mask. The sources are their
        // memory, and the nest has their rows. Then the rows of the bias follow.
        let mask = unsafe { Interpreted::<bool>::new(&mask.program, sources, &mut rows) };
        let bias = bias.as_ref();
        let bias = bias.map(|(bias, _, sources)| {
            // SAFETY: as above.
            unsafe { Interpreted::<T>::new(&bias.program, sources, &mut rows) }
        });
        Box::new(LoweredScores { mask, bias })
    };
    // SAFETY: the memory of each operand has an element for each position of the loops, as
    // `HeldMemories::of` has asserted. The rows are the strides along the loops. The row of the
    // result is contiguous in the order of its loops. Programs over memory may run on any thread.
    let data = unsafe { attend(&work, len, threads, &lower) }?;
    let data: Vec<T> = narrowed(data);
    told(&data);
    Ok(Buffer::from(data).held())
}

/// An operand in memory, converted to the type of the computation.
fn in_memory<'m, T: ProgramOutput + Real>(
    field: &Field,
    memories: &'m HeldMemories,
) -> Result<ContractionFactor<'m, T::Wide>, Error> {
    let sizes = &field.sizes[..];
    if sizes.contains(&0) {
        // There are no features, so there is no element to read or to convert.
        return Ok(ContractionFactor::empty(sizes.len()));
    }
    let operand = match field.plain::<T>() {
        // SAFETY: the elements have an axis for each loop of the field, with its size and, unless
        // the size is 1, this stride. The attention runs over these loops. Along all others, the
        // stride is 0.
        Some((number, operand)) => unsafe {
            ContractionFactor::borrowed(memories.elements::<T>(field, number), strides_of(operand, sizes))
        },
        None => {
            let rows = rows(field);
            let order: Vec<usize> =
                (0..sizes.len()).filter(|&axis| sizes[axis] != 1 && rows.varies(axis)).collect();
            let order = rows.in_memory_order(&order, sizes).unwrap_or(order.into());
            ContractionFactor::owned(mapped::<T>(field, &order)?, &order, sizes)
        }
    };
    widened(operand, sizes)
}

/// The shares of keys, and the fields that they were computed from.
struct KeyShares {
    shares: Arc<dyn Held>,
    /// The products of queries and keys, with the loops over features.
    product: Field,
    bias: Option<Field>,
    /// The loops over queries.
    queries: Vec<usize>,
    /// The loops of the scores, in the memory order of the shares.
    order: Vec<usize>,
    /// The size of each loop; 1 for loops that the scores do not have.
    sizes: Vec<usize>,
}

/// The slices of a tile, with the slice along the axis of `rest` moved by the start of `rest` and
/// cut off at its end; `None` if that slice is past the end. A tile without a slice along the axis
/// gets the first [`QUERIES`] positions of `rest`.
fn moved(tile: &[Slice], rest: &Slice) -> Option<Vec<Slice>> {
    let mut tile = tile.to_vec();
    match tile.iter_mut().find(|slice| slice.axis == rest.axis) {
        Some(slice) => {
            let left = rest.len.checked_sub(slice.from).filter(|&left| left > 0)?;
            slice.len = slice.len.min(left);
            slice.from += rest.from;
        }
        None => tile.push(Slice { len: rest.len.min(QUERIES), ..rest.clone() }),
    }
    Some(tile)
}

/// Whether a mask is constantly true.
fn is_true(mask: &Field) -> bool {
    mask.program.instruction(mask.program.result()) == Instruction::Constant(Number::Bool(true))
}

/// Adds a part to the sum of the previous ones.
pub(super) fn added<T: ProgramOutput + Real>(
    before: Option<Arc<dyn Held>>,
    len: usize,
    part: Part,
) -> Result<Arc<dyn Held>, Error> {
    let mut sum = match before {
        None => filled::<T>(len)?,
        Some(before) => {
            let buffer = Buffer::<T>::of_held(&before).expect("the sum is of this type");
            // With a second reference, `into_vec` would copy the elements.
            drop(before);
            buffer.into_vec()
        }
    };
    add(&mut sum, &part)?;
    Ok(Buffer::from(sum).held())
}

/// The gradient with respect to all elements of a node, as a part.
fn whole_part((node, sum): (Arc<Node>, Arc<dyn Held>)) -> (Arc<Node>, Part) {
    let place = StridedPlace::strided(0, [1]);
    let field = Field::held(&[sum.len()], &sum, place.clone());
    (node, Part { field, place })
}
