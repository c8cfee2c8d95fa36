//! Parts: `out[place] += program(operands)` over loops. Sums of products become products of matrices, or convolutions.

use super::Lower;
use super::field::{Registers, Selection, varied, varies};
use super::scalar::{is_float, register};
use super::text::{Convolution, Lookup, Value};
use super::view::{Loop, strides};
use crate::error::XlaError;
use typed_dims::program::engine::DType;
use typed_dims::program::engine::saved::{SavedField, SavedInstruction, SavedOperand, SavedPart, SavedPlace};

/// A factor of a product: its value along loops.
#[derive(Clone)]
pub(super) struct Factor {
    pub(super) value: Value,
    pub(super) loops: Vec<usize>,
}

impl Factor {
    fn axis(&self, own: usize) -> Option<usize> {
        self.loops.iter().position(|&axis| axis == own)
    }
}

impl Lower<'_> {
    /// The sum of parts, in a shape.
    pub(super) fn sum_of_parts(
        &mut self,
        parts: &[SavedPart],
        dtype: DType,
        shape: &[usize],
    ) -> Result<Value, XlaError> {
        let mut sum: Option<Value> = None;
        for part in parts {
            if part.field.sizes.contains(&0) {
                continue;
            }
            let own = self.part(part, dtype, shape)?;
            let by = if own.dtype == DType::Bool { "or" } else { "add" };
            sum = Some(match sum {
                Some(sum) => self.body.binary(by, &sum, &own),
                None => own,
            });
        }
        let sum = sum.unwrap_or_else(|| self.body.zeros(register(dtype), shape));
        Ok(self.body.stored(&sum, dtype))
    }

    /// A part in the shape of the whole, in registers.
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
            return Ok(self.body.stored(&found, register(dtype)));
        }
        let elements = self.contracted(field, &kept, &reduced)?;
        let elements = self.counted(&elements, count);
        let elements = match field_is_bool(&elements, dtype) {
            true => elements,
            false => self.body.stored(&elements, register(dtype)),
        };
        self.put(&elements, field, place, &kept, shape)
    }

    /// A part along one loop over all elements as a part along the axes of the result, so that tensors keep their axes.
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

    /// Elements, each added as often as loops along which nothing varies have positions.
    fn counted(&self, elements: &Value, count: usize) -> Value {
        if count == 1 || elements.dtype == DType::Bool {
            return elements.clone();
        }
        self.body.mul(elements, &self.body.like(elements, count as f64))
    }

    /// Elements along loops, at a place of zeros.
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
        if let Some(found) = self.put_rows(elements, field, place, loops, shape)? {
            return Ok(found);
        }
        let sizes: Vec<usize> = own.iter().map(|own| own.size).collect();
        let positions = self.body.positions(&sizes, place.offset, &own);
        let offsets = self.offsets(field, place, loops)?;
        let positions = self.body.add(&positions, &offsets);
        Ok(self.body.placed_at(elements, &positions, shape))
    }

    /// The same where the elements are whole rows at computed places.
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
            |own: usize| loops.iter().position(|&axis| axis == own).expect("the loop is one of them");
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

    /// The sums of a field over loops, along others, in registers. It varies along the first ones.
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

    /// The registers whose product a field is, and the constant factor.
    fn factors(&self, field: &SavedField) -> Option<(Vec<u32>, f64)> {
        if !is_float(self.field_type(field)) {
            return None;
        }
        // (Of halves, the sum is rounded, and no product.)
        let result = match &field.program.instructions[field.program.result as usize].0 {
            SavedInstruction::Cast(DType::F16 | DType::Bf16, a) => *a,
            _ => field.program.result,
        };
        let (mut open, mut factors, mut scale) = (vec![result], Vec::new(), 1.0);
        while let Some(at) = open.pop() {
            match &field.program.instructions[at as usize].0 {
                SavedInstruction::Binary(op, a, b) if matches!(op.0.as_str(), "Mul" | "Chain") => {
                    open.extend([*b, *a])
                }
                SavedInstruction::Float(bits) => scale *= f64::from_bits(*bits),
                _ => factors.push(at),
            }
        }
        (factors.len() >= 2).then_some((factors, scale))
    }

    /// A sum of products of two factors, if neither factor varies along all loops.
    fn product(
        &mut self,
        field: &SavedField,
        kept: &[usize],
        reduced: &[usize],
    ) -> Result<Option<Value>, XlaError> {
        let Some((factors, scale)) = self.factors(field) else { return Ok(None) };
        let loops: Vec<Vec<usize>> = factors.iter().map(|&own| varied(field, own)).collect();
        // Factors that vary along no more loops than another one belong to it.
        let mut groups: Vec<(Vec<u32>, Vec<usize>)> = Vec::new();
        let mut order: Vec<usize> = (0..factors.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(loops[at].len()));
        for at in order {
            let within =
                |(_, own): &&mut (Vec<u32>, Vec<usize>)| loops[at].iter().all(|axis| own.contains(axis));
            match groups.iter_mut().find(within) {
                Some((own, _)) => own.push(factors[at]),
                None => groups.push((vec![factors[at]], loops[at].clone())),
            }
        }
        let [(left, left_loops), (right, right_loops)] = &groups[..] else { return Ok(None) };
        let only = |a: &[usize], b: &[usize]| a.iter().any(|axis| kept.contains(axis) && !b.contains(axis));
        let shared = reduced.iter().any(|axis| left_loops.contains(axis) && right_loops.contains(axis));
        if !shared || !only(left_loops, right_loops) && !only(right_loops, left_loops) {
            return Ok(None);
        }
        if let Some(found) = self.convolution(field, [left, right], kept, reduced)? {
            return Ok(Some(self.along_kept(field, &self.scaled(&found, scale), kept)));
        }
        let (left_loops, right_loops) = (left_loops.clone(), right_loops.clone());
        let (mut a, mut b) =
            (self.half_factor(field, left, &left_loops)?, self.half_factor(field, right, &right_loops)?);
        if a.value.dtype != b.value.dtype {
            a.value = self.body.loaded(&a.value);
            b.value = self.body.loaded(&b.value);
        }
        let found = self.contract(&a, &b, kept, reduced);
        Ok(Some(self.along_kept(field, &self.scaled(&found, scale), kept)))
    }

    /// Broadcasts a value to all kept loops. It has an axis for each kept loop along which the field varies.
    fn along_kept(&self, field: &SavedField, value: &Value, kept: &[usize]) -> Value {
        let own = varied(field, field.program.result);
        let axes: Vec<usize> = (0..kept.len()).filter(|&at| own.contains(&kept[at])).collect();
        let shape: Vec<usize> = kept.iter().map(|&axis| field.sizes[axis]).collect();
        self.body.broadcast(value, &shape, &axes)
    }

    fn scaled(&self, value: &Value, scale: f64) -> Value {
        if scale == 1.0 {
            return value.clone();
        }
        self.body.mul(value, &self.body.like(value, scale))
    }

    /// The product of registers. One operand of halves as it is stays in its type.
    fn half_factor(&mut self, field: &SavedField, of: &[u32], loops: &[usize]) -> Result<Factor, XlaError> {
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

    /// `sum over reduced loops of a b`, along kept loops in this order.
    pub(super) fn contract(&self, a: &Factor, b: &Factor, kept: &[usize], reduced: &[usize]) -> Value {
        let out = register(a.value.dtype);
        // First sum over reduced loops that only one factor has.
        let summed = |own: &Factor, other: &Factor| {
            let (axes, loops): (Vec<usize>, Vec<usize>) =
                own.loops.iter().partition(|axis| reduced.contains(axis) && !other.loops.contains(axis));
            if axes.is_empty() {
                return own.clone();
            }
            let axes: Vec<usize> =
                axes.iter().map(|&axis| own.axis(axis).expect("it is one of them")).collect();
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
            of.iter().map(|&axis| own.axis(axis).expect("the factor varies along it")).collect()
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

    /// The operand that a group of factors is, if it is one as it is, without a table.
    fn plain<'f>(&self, field: &'f SavedField, of: &[u32]) -> Option<&'f SavedOperand> {
        let &[one] = of else { return None };
        let SavedInstruction::Load(operand) = &field.program.instructions[one as usize].0 else {
            return None;
        };
        let operand = &field.operands[*operand as usize];
        (operand.place.table.is_none() && operand.value.is_some()).then_some(operand)
    }

    /// A convolution, if one factor is read in windows. The kernel is the other factor: it varies along one loop of each window.
    fn convolution(
        &mut self,
        field: &SavedField,
        [left, right]: [&Vec<u32>; 2],
        kept: &[usize],
        reduced: &[usize],
    ) -> Result<Option<Value>, XlaError> {
        for (a, b) in [(left, right), (right, left)] {
            let Some(operand) = self.plain(field, a).cloned() else { continue };
            let value = self.values[operand.value.expect("it is a value")].clone();
            let a_loops = varied(field, a[0]);
            let mut b_loops: Vec<usize> = b.iter().flat_map(|&own| varied(field, own)).collect();
            b_loops.sort_unstable();
            b_loops.dedup();
            let Some(windows) = windows(&operand.place, &value.shape, &field.sizes, &a_loops) else {
                continue;
            };
            // Of the two loops of a window, the result has one, and the other factor the other.
            let mut spatial = Vec::new();
            for window in &windows {
                let [x, y] = window.loops;
                let fits = |out: usize, tap: usize| {
                    kept.contains(&out)
                        && reduced.contains(&tap)
                        && !b_loops.contains(&out)
                        && b_loops.contains(&tap)
                };
                match (fits(x, y), fits(y, x)) {
                    (true, _) => spatial.push((x, y, window.axis)),
                    (_, true) => spatial.push((y, x, window.axis)),
                    _ => break,
                }
            }
            if spatial.is_empty() || spatial.len() != windows.len() {
                continue;
            }
            if let Some(found) =
                self.convolved(field, &operand, &value, (&a_loops, b, &b_loops), &spatial, (kept, reduced))?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn convolved(
        &mut self,
        field: &SavedField,
        operand: &SavedOperand,
        value: &Value,
        (a_loops, b, b_loops): (&[usize], &[u32], &[usize]),
        spatial: &[(usize, usize, usize)],
        (kept, reduced): (&[usize], &[usize]),
    ) -> Result<Option<Value>, XlaError> {
        let steps = strides(&value.shape);
        let is_spatial = |axis: &usize| spatial.iter().any(|own| own.0 == *axis || own.1 == *axis);
        let plain: Vec<usize> = a_loops.iter().copied().filter(|axis| !is_spatial(axis)).collect();
        let (batch, rest): (Vec<usize>, Vec<usize>) =
            plain.into_iter().partition(|axis| !b_loops.contains(axis));
        let (features, groups): (Vec<usize>, Vec<usize>) =
            rest.into_iter().partition(|axis| reduced.contains(axis));
        let of_kernel: Vec<usize> = b_loops
            .iter()
            .copied()
            .filter(|axis| !is_spatial(axis) && !features.contains(axis) && !groups.contains(axis))
            .collect();
        if batch.iter().any(|axis| reduced.contains(axis))
            || of_kernel.iter().any(|axis| reduced.contains(axis))
        {
            return Ok(None);
        }
        let size = |axes: &[usize]| axes.iter().map(|&axis| field.sizes[axis]).product::<usize>();
        // The operand along batch, groups, features and whole spatial axes.
        let mut loops: Vec<Loop> = Vec::new();
        for &axis in batch.iter().chain(&groups).chain(&features) {
            loops.push(Loop { size: field.sizes[axis], stride: operand.place.strides[axis] });
        }
        let (mut how, mut out) = (
            Convolution {
                strides: vec![],
                padding: vec![],
                lhs_dilation: vec![],
                rhs_dilation: vec![],
                groups: size(&groups),
            },
            Vec::new(),
        );
        for &(position, tap, axis) in spatial {
            let step = steps[axis] as isize;
            let (by_position, by_tap) =
                (operand.place.strides[position] / step, operand.place.strides[tap] / step);
            if by_position <= 0 || by_tap <= 0 {
                return Ok(None);
            }
            let reach = by_position as usize * (field.sizes[position] - 1)
                + by_tap as usize * (field.sizes[tap] - 1)
                + 1;
            loops.push(Loop { size: reach, stride: step });
            how.strides.push(by_position as usize);
            how.rhs_dilation.push(by_tap as usize);
            how.lhs_dilation.push(1);
            how.padding.push((0, 0));
            out.push(field.sizes[position]);
        }
        let elements = self.body.view(value, operand.place.offset, &loops);
        let mut shape = vec![size(&batch), size(&groups) * size(&features)];
        shape.extend(spatial.iter().enumerate().map(|(at, _)| loops[loops.len() - spatial.len() + at].size));
        let elements = self.body.loaded(&self.body.reshape(&elements, &shape));
        let mut kernel_loops: Vec<usize> =
            groups.iter().chain(&of_kernel).chain(&features).copied().collect();
        kernel_loops.extend(spatial.iter().map(|own| own.1));
        let kernel = self.half_factor(field, b, &kernel_loops)?.value;
        let mut shape = vec![size(&groups) * size(&of_kernel), size(&features)];
        shape.extend(spatial.iter().map(|own| field.sizes[own.1]));
        let kernel = self.body.loaded(&self.body.reshape(&kernel, &shape));
        let mut shape = vec![size(&batch), size(&groups) * size(&of_kernel)];
        shape.extend(&out);
        let found = self.body.convolution([&elements, &kernel], &how, &shape);
        let mut loops: Vec<usize> = batch.iter().chain(&groups).chain(&of_kernel).copied().collect();
        loops.extend(spatial.iter().map(|own| own.0));
        let shape: Vec<usize> = loops.iter().map(|&axis| field.sizes[axis]).collect();
        let found = self.body.reshape(&found, &shape);
        let order: Vec<usize> =
            kept.iter().filter_map(|axis| loops.iter().position(|own| own == axis)).collect();
        if order.len() != loops.len() {
            return Ok(None);
        }
        Ok(Some(self.body.transpose(&found, &order)))
    }

    /// A product that is added at windows of the result: the transpose of a convolution.
    fn transposed_convolution(
        &mut self,
        part: &SavedPart,
        kept: &[usize],
        reduced: &[usize],
        count: usize,
        shape: &[usize],
    ) -> Result<Option<Value>, XlaError> {
        let SavedPart { field, place } = part;
        let Some(windows) = windows(place, shape, &field.sizes, kept) else { return Ok(None) };
        let Some((factors, scale)) = self.factors(field) else { return Ok(None) };
        let &[a, b] = &factors[..] else { return Ok(None) };
        let steps = strides(shape);
        for (a, b) in [(a, b), (b, a)] {
            let (a_loops, b_loops) = (varied(field, a), varied(field, b));
            let mut spatial = Vec::new();
            for window in &windows {
                let [x, y] = window.loops;
                let fits = |position: usize, tap: usize| {
                    a_loops.contains(&position)
                        && !a_loops.contains(&tap)
                        && b_loops.contains(&tap)
                        && !b_loops.contains(&position)
                };
                match (fits(x, y), fits(y, x)) {
                    (true, _) => spatial.push((x, y, window.axis)),
                    (_, true) => spatial.push((y, x, window.axis)),
                    _ => break,
                }
            }
            if spatial.is_empty() || spatial.len() != windows.len() {
                continue;
            }
            let is_spatial = |axis: &usize| spatial.iter().any(|own| own.0 == *axis || own.1 == *axis);
            let plain: Vec<usize> = a_loops.iter().copied().filter(|axis| !is_spatial(axis)).collect();
            let (batch, rest): (Vec<usize>, Vec<usize>) =
                plain.into_iter().partition(|axis| !b_loops.contains(axis));
            let (features, groups): (Vec<usize>, Vec<usize>) =
                rest.into_iter().partition(|axis| reduced.contains(axis));
            let of_kernel: Vec<usize> = b_loops
                .iter()
                .copied()
                .filter(|axis| !is_spatial(axis) && !features.contains(axis) && !groups.contains(axis))
                .collect();
            let is_whole = batch.len() + groups.len() + of_kernel.len() + 2 * spatial.len() == kept.len();
            if !is_whole || batch.iter().chain(&of_kernel).any(|axis| reduced.contains(axis)) {
                continue;
            }
            // Each other loop is an axis of the result. Along windows, the result has its whole axis.
            let size = |axes: &[usize]| axes.iter().map(|&axis| field.sizes[axis]).product::<usize>();
            let mut offset = place.offset;
            let mut how = Convolution {
                strides: vec![],
                padding: vec![],
                lhs_dilation: vec![],
                rhs_dilation: vec![],
                groups: size(&groups),
            };
            let mut fits = true;
            for &(position, tap, axis) in &spatial {
                let step = steps[axis] as isize;
                let (by_position, by_tap) = (place.strides[position] / step, place.strides[tap] / step);
                fits &= by_position > 0 && by_tap > 0;
                let start = place.offset / step % shape[axis] as isize;
                offset -= start * step;
                let reach = by_tap as i64 * (field.sizes[tap] as i64 - 1);
                let dilated = (field.sizes[position] as i64 - 1) * by_position as i64 + 1;
                let low = reach + start as i64;
                how.padding.push((low, shape[axis] as i64 - dilated - low + reach));
                how.strides.push(1);
                how.lhs_dilation.push(by_position.max(1) as usize);
                how.rhs_dilation.push(by_tap.max(1) as usize);
            }
            if !fits {
                continue;
            }
            let mut a_order: Vec<usize> = batch.iter().chain(&groups).chain(&features).copied().collect();
            a_order.extend(spatial.iter().map(|own| own.0));
            let elements = self.half_factor(field, &[a], &a_order)?.value;
            let mut a_shape = vec![size(&batch), size(&groups) * size(&features)];
            a_shape.extend(spatial.iter().map(|own| field.sizes[own.0]));
            let elements = self.body.loaded(&self.body.reshape(&elements, &a_shape));
            let mut b_order: Vec<usize> = groups.iter().chain(&of_kernel).chain(&features).copied().collect();
            b_order.extend(spatial.iter().map(|own| own.1));
            let kernel = self.half_factor(field, &[b], &b_order)?.value;
            let mut b_shape = vec![size(&groups) * size(&of_kernel), size(&features)];
            b_shape.extend(spatial.iter().map(|own| field.sizes[own.1]));
            let kernel = self.body.loaded(&self.body.reshape(&kernel, &b_shape));
            let axes: Vec<usize> = (2..2 + spatial.len()).collect();
            let kernel = self.body.reverse(&kernel, &axes);
            let mut out = vec![size(&batch), size(&groups) * size(&of_kernel)];
            out.extend(spatial.iter().map(|own| shape[own.2]));
            let found = self.body.convolution([&elements, &kernel], &how, &out);
            let mut loops: Vec<Loop> = Vec::new();
            for &axis in batch.iter().chain(&groups).chain(&of_kernel) {
                loops.push(Loop { size: field.sizes[axis], stride: place.strides[axis] });
            }
            loops
                .extend(spatial.iter().map(|own| Loop { size: shape[own.2], stride: steps[own.2] as isize }));
            let sizes: Vec<usize> = loops.iter().map(|own| own.size).collect();
            let found = self.body.reshape(&found, &sizes);
            let found = self.counted(&self.scaled(&found, scale), count);
            return Ok(Some(self.body.placed(&found, offset, &loops, shape)));
        }
        Ok(None)
    }
}

/// Truth values that are added as such.
fn field_is_bool(elements: &Value, dtype: DType) -> bool {
    elements.dtype == DType::Bool && dtype == DType::Bool
}

/// Two loops along one axis.
struct WindowLoops {
    loops: [usize; 2],
    axis: usize,
}

/// The pairs of loops that go along one axis of a value, if there are some, and if all others have an axis of their own.
fn windows(
    place: &SavedPlace,
    shape: &[usize],
    sizes: &[usize],
    loops: &[usize],
) -> Option<Vec<WindowLoops>> {
    let steps = strides(shape);
    let mut of_axes: Vec<Vec<usize>> = vec![Vec::new(); shape.len()];
    for &own in loops {
        let stride = place.strides[own].unsigned_abs();
        if stride == 0 || sizes[own] == 1 {
            continue;
        }
        let axis = (0..shape.len())
            .find(|&axis| shape[axis] > 1 && steps[axis] <= stride && stride.is_multiple_of(steps[axis]))?;
        of_axes[axis].push(own);
    }
    let mut found = Vec::new();
    for (axis, own) in of_axes.iter().enumerate() {
        let reach: usize =
            own.iter().map(|&own| (sizes[own] - 1) * place.strides[own].unsigned_abs() / steps[axis]).sum();
        let start = place.offset.unsigned_abs() / steps[axis] % shape[axis].max(1);
        if place.offset < 0 || start + reach >= shape[axis].max(1) && !own.is_empty() {
            return None;
        }
        match own[..] {
            [] | [_] => {}
            [a, b] => {
                // If the inner loop ends before the outer one steps, the two loops only split the axis.
                let (inner, outer) =
                    if place.strides[a].abs() <= place.strides[b].abs() { (a, b) } else { (b, a) };
                let inner_reach = (sizes[inner] - 1) * place.strides[inner].unsigned_abs();
                if inner_reach < place.strides[outer].unsigned_abs() {
                    return None;
                }
                found.push(WindowLoops { loops: [a, b], axis });
            }
            _ => return None,
        }
    }
    (!found.is_empty()).then_some(found)
}
