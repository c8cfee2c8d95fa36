//! Attention and its gradient as products and a softmax.

use super::Lower;
use super::field::varied;
use super::part::Factor;
use super::text::Value;
use crate::error::XlaError;
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::{SavedAttention, SavedField, SavedInstruction};

/// Why a gradient of attention has no lowering.
const COMPUTED: &str =
    "its gradient needs queries, keys, values and a bias that are tensors: call `eval` on them first";

impl Lower<'_> {
    /// A field as a factor, with an axis for each loop along which the field varies.
    fn varied_factor(&mut self, field: &SavedField) -> Result<Factor, XlaError> {
        let loops = varied(field, field.program.result);
        let operand = self.plain_half(field, field.program.result).cloned();
        let value = match operand {
            Some(operand) => self.operand_elements(field, &operand, &loops)?,
            None => self.field(field, &loops)?,
        };
        Ok(Factor { value, loops })
    }

    /// The shares of the keys (the attention weights): the softmax of the scores, with an axis for
    /// each loop of the scores. Also returns the mask.
    fn attention_shares(&mut self, own: &SavedAttention) -> Result<(Value, Option<Value>), XlaError> {
        let [q, k, _] = &own.operands;
        let (q, k) = (self.varied_factor(q)?, self.varied_factor(k)?);
        let scores = self.sums_of_products(&q, &k, &own.scores, &own.features, &own.operands[0].sizes);
        let mut scores = self.body.mul(&scores, &self.body.like(&scores, f64::from_bits(own.scale)));
        if let Some(bias) = &own.bias {
            let bias = self.field(bias, &own.scores)?;
            let bias = self.body.convert(&bias, scores.dtype);
            scores = self.body.add(&scores, &bias);
        }
        let mask = match &own.mask {
            Some(mask) => Some(self.field(mask, &own.scores)?),
            None => None,
        };
        if let Some(mask) = &mask {
            scores = self.body.select(mask, &scores, &self.body.like(&scores, f64::NEG_INFINITY));
        }
        let over: Vec<usize> =
            (0..own.scores.len()).filter(|&at| own.over.contains(&own.scores[at])).collect();
        Ok((self.softmax(&scores, &over, true), mask))
    }

    /// The sum of `a * b` over all reduced loops, with an axis for each kept loop.
    fn sums_of_products(
        &self,
        a: &Factor,
        b: &Factor,
        kept: &[usize],
        reduced: &[usize],
        sizes: &[usize],
    ) -> Value {
        let shape: Vec<usize> = kept.iter().map(|&axis| sizes[axis]).collect();
        if reduced.iter().any(|&axis| sizes[axis] == 0) {
            // A sum over no elements is 0, even if a factor is infinite or NaN.
            return self.body.zeros(a.value.dtype.in_registers(), &shape);
        }
        let varies = |axis: &usize| a.loops.contains(axis) || b.loops.contains(axis);
        let count: usize = reduced.iter().filter(|axis| !varies(axis)).map(|&axis| sizes[axis]).product();
        let found = self.contract(a, b, kept, reduced);
        let axes: Vec<usize> = (0..kept.len()).filter(|&at| varies(&kept[at])).collect();
        let found = match count {
            1 => found,
            count => self.body.mul(&found, &self.body.like(&found, count as f64)),
        };
        self.body.broadcast(&found, &shape, &axes)
    }

    pub(super) fn attention(&mut self, own: &SavedAttention) -> Result<Value, XlaError> {
        let sizes = own.operands[0].sizes.clone();
        let shape: Vec<usize> = own.kept.iter().map(|&axis| sizes[axis]).collect();
        // A mean over no keys is 0. Features of size 0 need no special case: the products of
        // queries and keys are then 0.
        if own.over.iter().chain(&own.kept).any(|&axis| sizes[axis] == 0) {
            return Ok(self.body.zeros(own.dtype, &shape));
        }
        if let Some(found) = self.cudnn_attention(own)? {
            return Ok(found);
        }
        let (shares, _) = self.attention_shares(own)?;
        let v = self.varied_factor(&own.operands[2])?;
        let shares = self.as_factor(&shares, &own.scores, &sizes, v.value.dtype);
        let found = self.sums_of_products(&shares, &v, &own.kept, &own.over, &sizes);
        Ok(self.body.stored(&found, own.dtype))
    }

    /// A value as a factor of a product. Loops of size 1 are dropped. The value is rounded to
    /// `like`, the type of the other factor, if `like` is `f16` or `bf16`.
    fn as_factor(&self, value: &Value, loops: &[usize], sizes: &[usize], like: DType) -> Factor {
        let large: Vec<usize> = loops.iter().copied().filter(|&axis| sizes[axis] != 1).collect();
        let shape: Vec<usize> = large.iter().map(|&axis| sizes[axis]).collect();
        let value = self.body.reshape(value, &shape);
        let value = if like.in_registers() == like { value } else { self.body.convert(&value, like) };
        Factor { value, loops: large }
    }

    /// The gradients of attention with respect to some of these fields, in registers. Each has an
    /// axis for each loop along which its field varies.
    fn attention_gradients(
        &mut self,
        own: &SavedAttention,
        dy: &SavedField,
        fields: &[SavedField],
        wanted: &[bool],
    ) -> Result<Vec<Option<Value>>, XlaError> {
        let sizes = own.operands[0].sizes.clone();
        let (shares, mask) = self.attention_shares(own)?;
        let [q, k, v] = &own.operands;
        let (q_factor, k_factor, v_factor) =
            (self.varied_factor(q)?, self.varied_factor(k)?, self.varied_factor(v)?);
        let dy = self.varied_factor(dy)?;
        let body = &self.body;
        // The result's loops that the scores lack: the features of values.
        let of_values: Vec<usize> =
            own.kept.iter().copied().filter(|axis| !own.scores.contains(axis)).collect();
        let d_shares = self.sums_of_products(&dy, &v_factor, &own.scores, &of_values, &sizes);
        let over: Vec<usize> =
            (0..own.scores.len()).filter(|&at| own.over.contains(&own.scores[at])).collect();
        let product = body.mul(&shares, &d_shares);
        let total = self.spread(&body.sum(&product, &over), &shares.shape, &over);
        let mut d_scores = body.mul(&shares, &body.sub(&d_shares, &total));
        if let Some(mask) = &mask {
            d_scores = body.select(mask, &d_scores, &body.like(&d_scores, 0.0));
        }
        let scaled = body.mul(&d_scores, &body.like(&d_scores, f64::from_bits(own.scale)));
        let d_bias = self.as_factor(&d_scores, &own.scores, &sizes, DType::F32);
        let scaled_q = self.as_factor(&scaled, &own.scores, &sizes, k_factor.value.dtype);
        let scaled_k = self.as_factor(&scaled, &own.scores, &sizes, q_factor.value.dtype);
        let shares = self.as_factor(&shares, &own.scores, &sizes, dy.value.dtype);
        let mut found = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            if !wanted[at] {
                found.push(None);
                continue;
            }
            let loops = varied(field, field.program.result);
            let others: Vec<usize> = (0..sizes.len()).filter(|axis| !loops.contains(axis)).collect();
            // Loops outside of this product are left out, because `sums_of_products` would multiply
            // by their sizes.
            let product = |lower: &Self, a: &Factor, b: &Factor, summed: &[usize]| {
                let is_own =
                    |axis: &usize| a.loops.contains(axis) || b.loops.contains(axis) || summed.contains(axis);
                let over: Vec<usize> = others.iter().copied().filter(is_own).collect();
                lower.sums_of_products(a, b, &loops, &over, &sizes)
            };
            found.push(Some(match at {
                0 => product(self, &scaled_q, &k_factor, &own.features),
                1 => product(self, &scaled_k, &q_factor, &own.features),
                2 => product(self, &shares, &dy, &of_values),
                _ => {
                    let axes: Vec<usize> =
                        (0..d_bias.loops.len()).filter(|&at| !loops.contains(&d_bias.loops[at])).collect();
                    let kept: Vec<usize> =
                        d_bias.loops.iter().copied().filter(|axis| loops.contains(axis)).collect();
                    let sum = self.body.sum(&d_bias.value, &axes);
                    let order: Vec<usize> =
                        loops.iter().filter_map(|axis| kept.iter().position(|own| own == axis)).collect();
                    let axes: Vec<usize> = (0..loops.len()).filter(|&at| kept.contains(&loops[at])).collect();
                    let shape: Vec<usize> = loops.iter().map(|&axis| sizes[axis]).collect();
                    self.body.broadcast(&self.body.transpose(&sum, &order), &shape, &axes)
                }
            }));
        }
        Ok(found)
    }

    pub(super) fn attention_pull_back(
        &mut self,
        own: &SavedAttention,
        dy: &SavedField,
        numbers: &[Vec<Option<usize>>],
        lens: &[usize],
        dtype: DType,
    ) -> Result<Value, XlaError> {
        let mut fields = own.operands.to_vec();
        fields.extend(own.mask.clone());
        fields.extend(own.bias.clone());
        // The gradient of a mask is 0.
        let is_mask = |at: usize| own.mask.is_some() && at == own.operands.len();
        let wanted: Vec<bool> =
            (0..).zip(numbers).map(|(at, own)| !is_mask(at) && own.iter().any(Option::is_some)).collect();
        let gradients = match self.cudnn_gradients(own, dy)? {
            Some(gradients) => gradients.map(Some).to_vec(),
            None => self.attention_gradients(own, dy, &fields, &wanted)?,
        };
        // A gradient has the axes of its operand if both have the same length.
        let mut shapes: Vec<Vec<usize>> = lens.iter().map(|&len| vec![len]).collect();
        for (field, numbers) in fields.iter().zip(numbers) {
            for (operand, number) in field.operands.iter().zip(numbers) {
                if let (Some(value), Some(number)) = (operand.value, *number)
                    && self.values[value].len() == lens[number]
                {
                    shapes[number] = self.values[value].shape.to_vec();
                }
            }
        }
        let mut sums: Vec<Option<Value>> = vec![None; lens.len()];
        for (at, (field, given)) in fields.iter().zip(gradients).enumerate() {
            let Some(given) = given.filter(|_| wanted[at]) else { continue };
            let loops = varied(field, field.program.result);
            for (operand, number) in numbers[at].iter().enumerate() {
                let Some(number) = *number else { continue };
                let slope = self.slope(field, operand)?;
                let given = self.body.mul(&given, &self.body.like(&given, slope));
                let given = self.body.stored(&given, dtype);
                let place = field.operands[operand].place.clone();
                let own = self.put(&given, field, &place, &loops, &shapes[number])?;
                sums[number] = Some(match sums[number].take() {
                    Some(sum) => self.body.add(&sum, &own),
                    None => own,
                });
            }
        }
        let sums: Vec<Value> = sums
            .into_iter()
            .zip(&shapes)
            .map(|(sum, shape)| sum.unwrap_or_else(|| self.body.zeros(dtype, shape)))
            .collect();
        let mut start = 0;
        let pieces = sums.iter().map(|sum| {
            start += sum.len();
            (start - sum.len(), sum.clone())
        });
        self.pieces.insert(self.values.len(), pieces.collect());
        let flat: Vec<Value> = sums.iter().map(|sum| self.body.reshape(sum, &[sum.len()])).collect();
        Ok(self.body.concat(&flat, 0))
    }

    /// The derivative of a field with respect to an operand. Returns an error unless the field is
    /// the operand, possibly cast to floats, negated, and multiplied or divided by constants.
    fn slope(&self, field: &SavedField, operand: usize) -> Result<f64, XlaError> {
        let float = |own: u32| match field.program.instructions[own as usize].0 {
            SavedInstruction::Float(bits) => Some(f64::from_bits(bits)),
            _ => None,
        };
        let (mut at, mut scale) = (field.program.result, 1.0);
        loop {
            (at, scale) = match &field.program.instructions[at as usize].0 {
                SavedInstruction::Load(own) if *own as usize == operand => return Ok(scale),
                SavedInstruction::Cast(to, a) if to.is_float() => (*a, scale),
                SavedInstruction::Unary(op, a) if op.0 == "Neg" => (*a, -scale),
                SavedInstruction::Binary(op, a, b) => match (op.0.as_str(), float(*a), float(*b)) {
                    ("Mul", Some(factor), _) => (*b, scale * factor),
                    ("Mul", _, Some(factor)) => (*a, scale * factor),
                    ("Div", _, Some(divisor)) => (*a, scale / divisor),
                    _ => return Err(self.refused(COMPUTED)),
                },
                _ => return Err(self.refused(COMPUTED)),
            };
        }
    }
}
