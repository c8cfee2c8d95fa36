//! Parts: `out[place] += program(operands)` over loops. Sums of products become products of
//! matrices, or convolutions.

use super::Lower;
use super::field::{Registers, Selection, varied, varies};
use super::text::{Lookup, Value};
use super::view::{Loop, strides};
use crate::error::XlaError;
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::{SavedField, SavedInstruction, SavedOperand, SavedPart, SavedPlace};

/// A factor of a product: its value along loops.
#[derive(Clone)]
pub(super) struct Factor {
    pub(super) value: Value,
    pub(super) loops: Vec<usize>,
}

/// The greatest number of values that are visited to find the factors of a product. Nested squares
/// can have millions of factors.
const MOST_FACTORS: usize = 128;

/// The greatest constant that multiplies a sum of products instead of a factor. The least one is
/// its reciprocal.
const MOST_MODERATE: f64 = (1 << 24) as f64;

impl Factor {
    fn axis(&self, own: usize) -> Option<usize> {
        self.loops.iter().position(|&axis| axis == own)
    }
}

impl Lower<'_> {
    pub(super) fn sum_of_parts(
        &mut self,
        parts: &[SavedPart],
        dtype: DType,
        shape: &[usize],
    ) -> Result<Value, XlaError> {
        let mut sum: Option<Value> = None;
        for (number, part) in parts.iter().enumerate() {
            if part.field.sizes.contains(&0) {
                continue;
            }
            self.job = number;
            let own = self.part(part, dtype, shape)?;
            let by = if own.dtype == DType::Bool { "or" } else { "add" };
            sum = Some(match sum {
                Some(sum) => self.body.binary(by, &sum, &own),
                None => own,
            });
        }
        let sum = sum.unwrap_or_else(|| self.body.zeros(dtype.in_registers(), shape));
        Ok(self.body.stored(&sum, dtype))
    }

    /// A part in the shape of the whole result, in registers: see [`register`](Lower::register).
    fn part(&mut self, part: &SavedPart, dtype: DType, shape: &[usize]) -> Result<Value, XlaError> {
        if let Some(whole) = self.along_axes(part, shape) {
            return self.part(&whole, dtype, shape);
        }
        let SavedPart { field, place } = part;
        let sizes = &field.sizes;
        let large = (0..sizes.len()).filter(|&axis| sizes[axis] > 1);
        let (kept, others): (Vec<usize>, Vec<usize>) = large.partition(|&axis| varies(place, axis));
        let own = varied(field, field.program.result);
        let (reduced, constant): (Vec<usize>, Vec<usize>) =
            others.into_iter().partition(|axis| own.contains(axis));
        let count: usize = constant.iter().map(|&axis| sizes[axis]).product();
        if place.table.is_none()
            && let Some(found) = self.transposed_convolution(part, &kept, &reduced, count, shape)?
        {
            return Ok(self.body.stored(&found, dtype.in_registers()));
        }
        let elements = self.contracted(field, &kept, &reduced)?;
        let elements = self.counted(&elements, count);
        let elements = match field_is_bool(&elements, dtype) {
            true => elements,
            false => self.body.stored(&elements, dtype.in_registers()),
        };
        self.put(&elements, field, place, &kept, shape)
    }

    /// Rewrites a part along one loop over all elements as a part along the axes of the result, so
    /// that tensors keep their axes.
    fn along_axes(&self, part: &SavedPart, shape: &[usize]) -> Option<SavedPart> {
        let len: usize = shape.iter().product();
        let [size] = part.field.sizes[..] else { return None };
        let is_line = |place: &SavedPlace| place.offset == 0 && place.strides == [1] && place.table.is_none();
        if size != len || len == 1 || shape.len() < 2 || !is_line(&part.place) {
            return None;
        }
        let still = |place: &SavedPlace| place.strides == [0] && place.table.is_none();
        let fits = |own: &SavedOperand| own.value.is_some() && (is_line(&own.place) || still(&own.place));
        if !part.field.operands.iter().all(fits) {
            return None;
        }
        let along = |place: &mut SavedPlace| {
            let factor = place.strides[0];
            place.strides = strides(shape).iter().map(|&own| own as isize * factor).collect();
        };
        let mut whole = part.clone();
        whole.field.sizes = shape.to_vec();
        along(&mut whole.place);
        whole.field.operands.iter_mut().for_each(|own| along(&mut own.place));
        Some(whole)
    }

    /// Elements times `count`, the number of positions of the loops along which nothing varies.
    /// `bool`s stay unchanged.
    pub(super) fn counted(&self, elements: &Value, count: usize) -> Value {
        if count == 1 || elements.dtype == DType::Bool {
            return elements.clone();
        }
        self.body.mul(elements, &self.body.like(elements, count as f64))
    }

    /// Puts elements along loops into zeros of a shape, at a place.
    pub(super) fn put(
        &mut self,
        elements: &Value,
        field: &SavedField,
        place: &SavedPlace,
        loops: &[usize],
        shape: &[usize],
    ) -> Result<Value, XlaError> {
        let own: Vec<Loop> =
            loops.iter().map(|&axis| Loop { size: field.sizes[axis], stride: place.strides[axis] }).collect();
        if place.table.is_none() {
            return Ok(self.body.placed(elements, place.offset, &own, shape));
        }
        if self.is_sharded
            && let Some(found) = self.put_chosen(elements, field, place, loops, shape)?
        {
            return Ok(found);
        }
        if let Some(found) = self.put_rows(elements, field, place, loops, shape)? {
            return Ok(found);
        }
        let sizes: Vec<usize> = own.iter().map(|own| own.size).collect();
        let positions = self.body.positions(&sizes, place.offset, &own);
        let offsets = self.offsets(field, place, loops)?;
        let positions = self.body.add(&positions, &offsets);
        Ok(self.body.placed_at(elements, &positions, shape))
    }

    /// [`put`](Lower::put) for elements that are whole rows at computed positions.
    fn put_rows(
        &mut self,
        elements: &Value,
        field: &SavedField,
        place: &SavedPlace,
        loops: &[usize],
        shape: &[usize],
    ) -> Result<Option<Value>, XlaError> {
        if place.offset != 0 {
            return Ok(None);
        }
        let Some(Selection { axes, loops: of_table, indices, batch }) =
            self.selection(field, place, loops, shape)?
        else {
            return Ok(None);
        };
        let (steps, mut order) = (strides(shape), Vec::new());
        let place_of =
            |own: usize| loops.iter().position(|&axis| axis == own).expect("the loop is in the order");
        order.extend(of_table.iter().map(|&axis| place_of(axis)));
        let is_rest = |axis: &usize| !axes.contains(axis) && !batch.iter().any(|own| own.1 == *axis);
        let rest: Vec<usize> = (0..shape.len()).filter(is_rest).collect();
        for &axis in &rest {
            if shape[axis] == 1 {
                continue;
            }
            let own = loops.iter().copied().find(|own| {
                !of_table.contains(own)
                    && place.strides[*own] == steps[axis] as isize
                    && field.sizes[*own] == shape[axis]
            });
            let Some(own) = own else { return Ok(None) };
            order.push(place_of(own));
        }
        if order.len() != loops.len() {
            return Ok(None);
        }
        let updates = self.body.transpose(elements, &order);
        let mut sizes: Vec<usize> = updates.shape[..of_table.len()].to_vec();
        sizes.extend(rest.iter().map(|&axis| shape[axis]));
        let updates = self.body.reshape(&updates, &sizes);
        let windows: Vec<usize> = (of_table.len()..sizes.len()).collect();
        let zeros = self.body.zeros(elements.dtype, shape);
        let lookup = Lookup { offset: &windows, selected: &axes, batch: &batch };
        Ok(Some(self.body.scatter_add(&zeros, &indices, &updates, &lookup)))
    }

    /// The sums of a field over the reduced loops, along the kept ones, in registers. The field
    /// varies along all reduced loops.
    pub(super) fn contracted(
        &mut self,
        field: &SavedField,
        kept: &[usize],
        reduced: &[usize],
    ) -> Result<Value, XlaError> {
        if !reduced.is_empty()
            && let Some(found) = self.product(field, kept, reduced)?
        {
            return Ok(found);
        }
        let loops: Vec<usize> = kept.iter().chain(reduced).copied().collect();
        let elements = self.field(field, &loops)?;
        let axes: Vec<usize> = (kept.len()..loops.len()).collect();
        Ok(self.body.sum(&elements, &axes))
    }

    /// The factors and the constant whose product is the field. A factor is a register, and the
    /// constants that multiply it. `None` if the field is not a product of at least two floats
    /// besides constants.
    ///
    /// If the product of all constants is very large or very small, each constant multiplies the
    /// factor before it, as in the source: a sum without the constants could be outside the range
    /// of the type.
    pub(super) fn factors(&self, field: &SavedField) -> Option<(Vec<Vec<u32>>, f64)> {
        if !self.field_type(field).is_float() {
            return None;
        }
        // For half precision, the sum is rounded, but not the products.
        let result = match &field.program.instructions[field.program.result as usize].0 {
            SavedInstruction::Cast(DType::F16 | DType::Bf16, a) => *a,
            _ => field.program.result,
        };
        let (mut open, mut factors, mut constants) = (vec![result], Vec::new(), Vec::new());
        let (mut sign, mut scale, mut visits) = (1.0, 1.0_f64, 0);
        while let Some(at) = open.pop() {
            match &field.program.instructions[at as usize].0 {
                SavedInstruction::Binary(op, a, b) if matches!(op.0.as_str(), "Mul" | "Chain") => {
                    open.extend([*b, *a])
                }
                SavedInstruction::Unary(op, a) if op.0 == "Neg" => {
                    sign = -sign;
                    open.push(*a);
                }
                SavedInstruction::Unary(op, a) if op.0 == "Square" => open.extend([*a, *a]),
                SavedInstruction::Float(bits) => {
                    scale *= f64::from_bits(*bits);
                    constants.push((factors.len(), at));
                }
                _ => factors.push(vec![at]),
            }
            visits += 1;
            if visits > MOST_FACTORS {
                return None;
            }
        }
        if factors.len() < 2 {
            return None;
        }
        if (1.0 / MOST_MODERATE..=MOST_MODERATE).contains(&scale.abs()) {
            return Some((factors, sign * scale));
        }
        for (before, constant) in constants {
            factors[before.saturating_sub(1)].push(constant);
        }
        Some((factors, sign))
    }

    /// A sum of products as products of two factors. `None` for two factors unless they share a
    /// reduced loop, and one of them varies along a kept loop that the other lacks. Also `None` for
    /// more factors if there are no [`pairs`](Lower::pairs).
    fn product(
        &mut self,
        field: &SavedField,
        kept: &[usize],
        reduced: &[usize],
    ) -> Result<Option<Value>, XlaError> {
        let Some((factors, scale)) = self.factors(field) else { return Ok(None) };
        let loops: Vec<Vec<usize>> = factors.iter().map(|own| varied(field, own[0])).collect();
        // Factors that vary along a subset of another factor's loops are grouped with it.
        let mut groups: Vec<(Vec<u32>, Vec<usize>)> = Vec::new();
        let mut order: Vec<usize> = (0..factors.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(loops[at].len()));
        for at in order {
            let within =
                |(_, own): &&mut (Vec<u32>, Vec<usize>)| loops[at].iter().all(|axis| own.contains(axis));
            match groups.iter_mut().find(within) {
                Some((own, _)) => own.extend(&factors[at]),
                None => groups.push((factors[at].clone(), loops[at].clone())),
            }
        }
        match &groups[..] {
            [] | [_] => return Ok(None),
            [(left, left_loops), (right, right_loops)] => {
                let only =
                    |a: &[usize], b: &[usize]| a.iter().any(|axis| kept.contains(axis) && !b.contains(axis));
                let shared =
                    reduced.iter().any(|axis| left_loops.contains(axis) && right_loops.contains(axis));
                if !shared || !only(left_loops, right_loops) && !only(right_loops, left_loops) {
                    return Ok(None);
                }
                if let Some(found) = self.convolution(field, [left, right], kept, reduced)? {
                    return Ok(Some(self.along_kept(field, &self.scaled(&found, scale), kept)));
                }
            }
            _ => {}
        }
        let all = groups.iter().map(|(_, own)| own.clone()).collect();
        let Some(pairs) = self.pairs(all, reduced, &field.sizes) else { return Ok(None) };
        let mut factors = Vec::new();
        for (own, loops) in &groups {
            factors.push(self.half_factor(field, own, loops)?);
        }
        for ([first, second], over) in pairs {
            let right = factors.remove(second);
            let left = &factors[first];
            let is_kept = |axis: &usize| {
                !over.contains(axis) && (left.loops.contains(axis) || right.loops.contains(axis))
            };
            let loops: Vec<usize> = (0..field.sizes.len()).filter(is_kept).collect();
            let value = self.contract(left, &right, &loops, &over);
            factors[first] = Factor { value, loops };
        }
        let [a, b] = &factors[..] else { return Ok(None) };
        let found = self.contract(a, b, kept, reduced);
        Ok(Some(self.along_kept(field, &self.scaled(&found, scale), kept)))
    }

    /// The order in which to multiply factors that vary along these loops, until two are left. Each
    /// entry has the positions of two factors, and the loops to sum over. The product takes the
    /// place of the first, and the second is removed. `None` if, at some point, each pair would sum
    /// over a split loop, or would sum over no shared loop and have a product with more loops than
    /// either factor.
    fn pairs(
        &self,
        mut factors: Vec<Vec<usize>>,
        reduced: &[usize],
        sizes: &[usize],
    ) -> Option<Vec<([usize; 2], Vec<usize>)>> {
        let mut pairs = Vec::new();
        while factors.len() > 2 {
            let mut best: Option<(f64, [usize; 2], Vec<usize>)> = None;
            for second in 1..factors.len() {
                for first in 0..second {
                    let (a, b) = (&factors[first], &factors[second]);
                    let is_alone = |axis: &usize| {
                        (0..factors.len())
                            .all(|at| at == first || at == second || !factors[at].contains(axis))
                    };
                    let over: Vec<usize> = reduced.iter().copied().filter(is_alone).collect();
                    let is_sum = over.iter().any(|axis| a.contains(axis) && b.contains(axis));
                    let is_within = |a: &[usize], b: &[usize]| a.iter().all(|axis| b.contains(axis));
                    // A sum over a split loop would need a transfer for each product.
                    let is_split = over.iter().any(|&axis| self.is_split(axis));
                    if is_split || !is_sum && !is_within(a, b) && !is_within(b, a) {
                        continue;
                    }
                    let all = (0..sizes.len()).filter(|axis| a.contains(axis) || b.contains(axis));
                    let work: f64 = all.map(|axis| sizes[axis] as f64).product();
                    if best.as_ref().is_none_or(|own| work < own.0) {
                        best = Some((work, [first, second], over));
                    }
                }
            }
            let (_, [first, second], over) = best?;
            let right = factors.remove(second);
            let left = &mut factors[first];
            left.extend(right);
            left.sort_unstable();
            left.dedup();
            left.retain(|axis| !over.contains(axis));
            pairs.push(([first, second], over));
        }
        Some(pairs)
    }

    /// Broadcasts a value to all kept loops. The value has an axis for each kept loop along which
    /// the field varies.
    fn along_kept(&self, field: &SavedField, value: &Value, kept: &[usize]) -> Value {
        let own = varied(field, field.program.result);
        let axes: Vec<usize> = (0..kept.len()).filter(|&at| own.contains(&kept[at])).collect();
        let shape: Vec<usize> = kept.iter().map(|&axis| field.sizes[axis]).collect();
        self.body.broadcast(value, &shape, &axes)
    }

    pub(super) fn scaled(&self, value: &Value, scale: f64) -> Value {
        if scale == 1.0 {
            return value.clone();
        }
        self.body.mul(value, &self.body.like(value, scale))
    }

    /// The product of registers. A single unchanged operand of half precision keeps its type.
    pub(super) fn half_factor(
        &mut self,
        field: &SavedField,
        of: &[u32],
        loops: &[usize],
    ) -> Result<Factor, XlaError> {
        if let &[one] = of
            && let Some(operand) = self.plain_half(field, one)
        {
            let operand: SavedOperand = operand.clone();
            let value = self.operand_elements(field, &operand, loops)?;
            return Ok(Factor { value, loops: loops.to_vec() });
        }
        let mut known = Registers::new();
        let mut product: Option<Value> = None;
        for &own in of {
            let value = self.register(field, own, loops, &mut known)?;
            product = Some(match product {
                Some(product) => self.body.mul(&product, &value),
                None => value,
            });
        }
        Ok(Factor { value: product.expect("a group has a factor"), loops: loops.to_vec() })
    }

    /// The sum of `a * b` over reduced loops, with an axis for each kept loop along which a factor
    /// varies, in the order of `kept`. Loops along which neither factor varies are ignored.
    pub(super) fn contract(&self, a: &Factor, b: &Factor, kept: &[usize], reduced: &[usize]) -> Value {
        let out = a.value.dtype.in_registers();
        // First sum over reduced loops that only one factor has.
        let summed = |own: &Factor, other: &Factor| {
            let (axes, loops): (Vec<usize>, Vec<usize>) =
                own.loops.iter().partition(|axis| reduced.contains(axis) && !other.loops.contains(axis));
            if axes.is_empty() {
                return own.clone();
            }
            let axes: Vec<usize> =
                axes.iter().map(|&axis| own.axis(axis).expect("the field has the axis")).collect();
            let value = self.body.loaded(&own.value);
            Factor { value: self.body.sum(&value, &axes), loops }
        };
        let (mut a, mut b) = (summed(a, b), summed(b, a));
        if a.value.dtype != b.value.dtype {
            a.value = self.body.loaded(&a.value);
            b.value = self.body.loaded(&b.value);
        }
        let both = |of: &[usize]| -> Vec<usize> {
            of.iter().copied().filter(|axis| a.loops.contains(axis) && b.loops.contains(axis)).collect()
        };
        let (batch, over) = (both(kept), both(reduced));
        let axes = |own: &Factor, of: &[usize]| -> Vec<usize> {
            of.iter().map(|&axis| own.axis(axis).expect("the factor varies along the axis")).collect()
        };
        let found = self.body.dot(
            [&a.value, &b.value],
            [&axes(&a, &batch), &axes(&b, &batch)],
            [&axes(&a, &over), &axes(&b, &over)],
            out,
        );
        let mut loops = batch.clone();
        for own in [&a, &b] {
            loops.extend(own.loops.iter().filter(|axis| !batch.contains(axis) && !over.contains(axis)));
        }
        let order: Vec<usize> =
            kept.iter().filter_map(|axis| loops.iter().position(|own| own == axis)).collect();
        self.body.transpose(&found, &order)
    }

    /// The operand that a group of factors loads, if it is unchanged and without a table.
    pub(super) fn plain<'f>(&self, field: &'f SavedField, of: &[u32]) -> Option<&'f SavedOperand> {
        let &[one] = of else { return None };
        let SavedInstruction::Load(operand) = &field.program.instructions[one as usize].0 else {
            return None;
        };
        let operand = &field.operands[*operand as usize];
        (operand.place.table.is_none() && operand.value.is_some()).then_some(operand)
    }
}

/// Whether `bool`s are added as `bool`s.
fn field_is_bool(elements: &Value, dtype: DType) -> bool {
    elements.dtype == DType::Bool && dtype == DType::Bool
}
