//! Steps that are rules: reductions, operations along lines, recurrences and others.

use super::Lower;
use super::field::varied;
use super::text::Value;
use crate::error::XlaError;
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::{
    SavedField, SavedLines, SavedOperation, SavedPart, SavedReduction, SavedRule,
};

impl Lower<'_> {
    /// The result of a rule, with its elements in the step's order.
    pub(super) fn rule(&mut self, rule: &SavedRule, dtype: DType, len: usize) -> Result<Value, XlaError> {
        match rule {
            SavedRule::Reduction(own) | SavedRule::MomentOfLines(own) => self.reduction(own, dtype),
            SavedRule::Lines(own) => self.lines(own),
            SavedRule::LinePullBack { lines, y, dy } => self.line_pull_back(lines, y, dy),
            SavedRule::BestOf { x, y, order, axis, .. } => self.best_of(x, y, order, *axis, dtype),
            SavedRule::Attention(own) => self.attention(own),
            SavedRule::AttentionPullBack { attention, dy, numbers, lens, dtype } => {
                self.attention_pull_back(attention, dy, numbers, lens, *dtype)
            }
            SavedRule::Recurrence { a, b, axis, order, backward, dtype } => {
                self.recurrence(a.as_ref(), b, *axis, order, *backward, *dtype)
            }
            SavedRule::Placed { parts, around, dtype } => self.placed_parts(parts, *around, *dtype),
            SavedRule::Detached { field, order, dtype } => self.field_of(field, order, *dtype),
            SavedRule::SumOfSquares(fields) => {
                let mut sum = self.body.float(0.0, DType::F64);
                for field in fields {
                    let loops: Vec<usize> = (0..field.sizes.len()).collect();
                    let value = self.field(field, &loops)?;
                    let value = self.body.convert(&value, DType::F64);
                    let own = self.body.sum(&self.body.mul(&value, &value), &loops);
                    sum = self.body.add(&sum, &own);
                }
                Ok(sum)
            }
            SavedRule::Kind { kind, operands, number } => self.kind(kind, operands, *number, dtype, len),
        }
    }

    /// A mean over axes; NaN if there are no elements.
    pub(super) fn mean(&self, value: &Value, axes: &[usize]) -> Value {
        let count: usize = axes.iter().map(|&axis| value.shape[axis]).product();
        let sum = self.body.sum(value, axes);
        self.body.div(&sum, &self.body.like(&sum, count as f64))
    }

    /// The differences of elements from their mean over axes.
    fn centered(&self, value: &Value, axes: &[usize]) -> Value {
        let mean = self.spread(&self.mean(value, axes), &value.shape, axes);
        self.body.sub(value, &mean)
    }

    /// Broadcasts a value that lacks some axes along these axes.
    pub(super) fn spread(&self, value: &Value, shape: &[usize], without: &[usize]) -> Value {
        let axes: Vec<usize> = (0..shape.len()).filter(|axis| !without.contains(axis)).collect();
        self.body.broadcast(value, shape, &axes)
    }

    /// The greatest or least element over axes; NaN if any element is NaN.
    fn extreme(&self, value: &Value, axes: &[usize], greatest: bool) -> Value {
        let start = match value.dtype.is_float() {
            true => self.body.float(if greatest { f64::NEG_INFINITY } else { f64::INFINITY }, value.dtype),
            false => self.body.bound(value.dtype, greatest),
        };
        self.body.reduce(value, &start, axes, if greatest { "maximum" } else { "minimum" })
    }

    fn reduction(&mut self, own: &SavedReduction, dtype: DType) -> Result<Value, XlaError> {
        let SavedReduction { field, kept, reduced, reduction: SavedOperation(name, words), .. } = own;
        let float = |at: usize| f64::from_bits(words[at]);
        if name == "Sum" {
            let sum = self.contracted_all(field, kept, reduced)?;
            return Ok(self.body.stored(&sum, dtype));
        }
        let loops: Vec<usize> = kept.iter().chain(reduced).copied().collect();
        let mut value = self.field(field, &loops)?;
        if value.dtype == DType::F32 && dtype == DType::F64 {
            value = self.body.convert(&value, DType::F64);
        }
        if matches!(name.as_str(), "Max" | "Min" | "ArgMax" | "ArgMin")
            && self.is_unsigned(field, field.program.result)
        {
            value = self.body.bits(&value, DType::U64);
        }
        let axes: Vec<usize> = (kept.len()..loops.len()).collect();
        let count: f64 = axes.iter().map(|&axis| value.shape[axis] as f64).product();
        let body = &self.body;
        let found = match name.as_str() {
            "Mean" => self.mean(&value, &axes),
            "Prod" => {
                let one = if value.dtype.is_float() {
                    body.float(1.0, value.dtype)
                } else {
                    body.int(1, value.dtype)
                };
                body.reduce(&value, &one, &axes, "multiply")
            }
            "Max" => self.extreme(&value, &axes, true),
            "Min" => self.extreme(&value, &axes, false),
            "Variance" | "Deviation" => {
                // Subtracts the mean twice, because the rounding error of a large mean can be
                // larger than the deviation. The second mean is this error.
                let difference = self.centered(&self.centered(&value, &axes), &axes);
                let sum = body.sum(&body.mul(&difference, &difference), &axes);
                let divisor = if count < float(0) { 0.0 } else { count - float(0) };
                let variance = body.div(&sum, &body.like(&sum, divisor));
                if name == "Deviation" { body.unary("sqrt", &variance) } else { variance }
            }
            "LogSumExp" => self.log_sum_exp(&value, &axes),
            "Norm" => body.unary("sqrt", &body.sum(&body.mul(&value, &value), &axes)),
            "NormP" => {
                let powers = body.binary("power", &body.unary("abs", &value), &body.like(&value, float(0)));
                let sum = body.sum(&powers, &axes);
                body.binary("power", &sum, &body.like(&sum, 1.0 / float(0)))
            }
            "ArgMax" | "ArgMin" => {
                let mut shape: Vec<usize> = value.shape[..kept.len()].to_vec();
                shape.push(count as usize);
                let [_, at] = body.extremum(&body.reshape(&value, &shape), name == "ArgMax");
                at
            }
            "Any" => body.sum(&value, &axes),
            "All" => body.reduce(&value, &body.truth(true), &axes, "and"),
            "Count" => body.sum(&body.convert(&value, DType::I64), &axes),
            _ => return Err(self.refused(format!("there is no reduction `{name}` in StableHLO"))),
        };
        let found = if found.dtype == DType::U64 { self.body.bits(&found, DType::I64) } else { found };
        Ok(self.body.stored(&found, dtype))
    }

    /// Like [`contracted`](Lower::contracted), but the field need not vary along the reduced loops.
    /// The result has no axes for kept loops of size 1.
    fn contracted_all(
        &mut self,
        field: &SavedField,
        kept: &[usize],
        reduced: &[usize],
    ) -> Result<Value, XlaError> {
        let own = varied(field, field.program.result);
        let (over, constant): (Vec<usize>, Vec<usize>) = reduced.iter().partition(|axis| own.contains(axis));
        let large: Vec<usize> = kept.iter().copied().filter(|&axis| field.sizes[axis] != 1).collect();
        let sum = self.contracted(field, &large, &over)?;
        let count: usize = constant.iter().map(|&axis| field.sizes[axis]).product();
        if count == 1 {
            return Ok(sum);
        }
        Ok(self.body.mul(&sum, &self.body.like(&sum, count as f64)))
    }

    fn log_sum_exp(&self, value: &Value, axes: &[usize]) -> Value {
        let body = &self.body;
        let greatest = self.extreme(value, axes, true);
        let is_finite = body.test("is_finite", &greatest);
        let shift = body.select(&is_finite, &greatest, &body.like(&greatest, 0.0));
        let shifted = body.sub(value, &self.spread(&shift, &value.shape, axes));
        let sum = body.sum(&body.unary("exponential", &shifted), axes);
        body.add(&body.unary("log", &sum), &shift)
    }

    /// The softmax over axes. With `masked`, it is 0 where all elements are minus infinity.
    pub(super) fn softmax(&self, value: &Value, axes: &[usize], masked: bool) -> Value {
        let body = &self.body;
        let greatest = self.extreme(value, axes, true);
        let shift = match masked {
            true => {
                let none = body.compare("EQ", &greatest, &body.like(&greatest, f64::NEG_INFINITY));
                body.select(&none, &body.like(&greatest, 0.0), &greatest)
            }
            false => greatest,
        };
        let shifted = body.sub(value, &self.spread(&shift, &value.shape, axes));
        let exp = body.unary("exponential", &shifted);
        let mut sum = body.sum(&exp, axes);
        if masked {
            let none = body.compare("EQ", &sum, &body.like(&sum, 0.0));
            sum = body.select(&none, &body.like(&sum, 1.0), &sum);
        }
        body.div(&exp, &self.spread(&sum, &value.shape, axes))
    }

    /// The operand of an operation along lines, in the operation's order, and the axes of the
    /// lines.
    fn lines_of(&mut self, own: &SavedLines, field: &SavedField) -> Result<(Value, Vec<usize>), XlaError> {
        let value = self.field(field, &own.order)?;
        let value = match own.dtype {
            DType::F64 => self.body.convert(&value, DType::F64),
            _ => value,
        };
        let axes = (0..own.order.len()).filter(|&at| own.lines.contains(&own.order[at])).collect();
        Ok((value, axes))
    }

    fn lines(&mut self, own: &SavedLines) -> Result<Value, XlaError> {
        let (value, axes) = self.lines_of(own, &own.field)?;
        let SavedOperation(name, words) = &own.work;
        if value.len() == 0 {
            return Ok(self.body.stored(&value, own.dtype));
        }
        let found = match name.as_str() {
            "Softmax" => self.softmax(&value, &axes, own.is_masked),
            "LogSoftmax" => {
                let body = &self.body;
                let greatest = self.spread(&self.extreme(&value, &axes, true), &value.shape, &axes);
                let shifted = body.sub(&value, &greatest);
                let sum = body.unary("log", &body.sum(&body.unary("exponential", &shifted), &axes));
                body.sub(&shifted, &self.spread(&sum, &value.shape, &axes))
            }
            "Standardize" | "RootMeanSquare" | "UnitLength" => {
                self.normalized(name, f64::from_bits(words[0]), &value, &axes)
            }
            "Cumulate" | "CumulateProduct" | "CumulateMax" | "CumulateMin" | "CumulateLogSumExp" => {
                let value = match own.dtype {
                    DType::U64 | DType::Usize => self.body.bits(&value, DType::U64),
                    _ => value,
                };
                self.scanned(name, &value, &axes)?
            }
            _ => return Err(self.refused(format!("there is no `{name}` along lines in StableHLO"))),
        };
        let found = if found.dtype == DType::U64 { self.body.bits(&found, DType::I64) } else { found };
        Ok(self.body.stored(&found, own.dtype))
    }

    /// `1 / sqrt(mean of x^2 + eps)` for each line: the factor of a normalization, where `x` is
    /// centered for "Standardize".
    fn line_factor(&self, eps: f64, x: &Value, axes: &[usize]) -> Value {
        let body = &self.body;
        let mean = self.mean(&body.mul(x, x), axes);
        let root = body.unary("sqrt", &body.add(&mean, &body.like(&mean, eps)));
        body.div(&body.like(&root, 1.0), &root)
    }

    pub(super) fn normalized(&self, name: &str, eps: f64, value: &Value, axes: &[usize]) -> Value {
        let body = &self.body;
        if name == "UnitLength" {
            let length = body.unary("sqrt", &body.sum(&body.mul(value, value), axes));
            let length = body.max(&length, &body.like(&length, eps));
            return body.div(value, &self.spread(&length, &value.shape, axes));
        }
        let value = match name {
            "Standardize" => self.centered(value, axes),
            _ => value.clone(),
        };
        body.mul(&value, &self.spread(&self.line_factor(eps, &value, axes), &value.shape, axes))
    }

    /// Running sums, products, extremes or log-sum-exps, by doubling: each step combines elements
    /// at twice the distance of the previous step.
    fn scanned(&self, name: &str, value: &Value, axes: &[usize]) -> Result<Value, XlaError> {
        let body = &self.body;
        let first = axes.first().copied().unwrap_or(0);
        if axes.iter().enumerate().any(|(at, &axis)| axis != first + at) {
            return Err(self.refused("the loops of a scan are not adjacent"));
        }
        // The loops of a line as one axis.
        let len: usize = axes.iter().map(|&axis| value.shape[axis]).product();
        let mut shape = value.shape.to_vec();
        shape.splice(first..first + axes.len(), [len]);
        let mut found = body.reshape(value, &shape);
        let start = match (name, value.dtype.is_float()) {
            ("Cumulate", _) => body.zeros(value.dtype, &[]),
            ("CumulateProduct", true) => body.float(1.0, value.dtype),
            ("CumulateProduct", false) => body.int(1, value.dtype),
            ("CumulateMax" | "CumulateLogSumExp", true) => body.float(f64::NEG_INFINITY, value.dtype),
            ("CumulateMin", true) => body.float(f64::INFINITY, value.dtype),
            ("CumulateMax", false) => body.bound(value.dtype, true),
            _ => body.bound(value.dtype, false),
        };
        let mut step = 1;
        while step < len {
            let before = body.pad_axis(&found, &start, first, step as i64, -(step as i64));
            found = match name {
                "Cumulate" => body.add(&before, &found),
                "CumulateProduct" => body.mul(&before, &found),
                "CumulateMax" => body.max(&before, &found),
                "CumulateMin" => body.min(&before, &found),
                _ => {
                    let op = SavedOperation("LogAddExp".into(), Vec::new());
                    body.apply_binary(&op, &before, &found).expect("the opcode is an operation")
                }
            };
            step *= 2;
        }
        Ok(body.reshape(&found, &value.shape))
    }

    fn line_pull_back(
        &mut self,
        own: &SavedLines,
        y: &SavedField,
        dy: &SavedField,
    ) -> Result<Value, XlaError> {
        let SavedOperation(name, words) = &own.work;
        let (y, axes) = self.lines_of(own, y)?;
        let (dy, _) = self.lines_of(own, dy)?;
        if y.len() == 0 {
            return Ok(self.body.stored(&dy, own.dtype));
        }
        let eps = || f64::from_bits(words[0]);
        let x = match name.as_str() {
            "Softmax" | "LogSoftmax" => None,
            _ => Some(self.lines_of(own, &own.field)?.0),
        };
        let body = &self.body;
        let spread = |value: &Value| self.spread(value, &y.shape, &axes);
        let along = |sum: Value| spread(&sum);
        let found = match (name.as_str(), &x) {
            ("Softmax", _) => body.mul(&y, &body.sub(&dy, &along(body.sum(&body.mul(&y, &dy), &axes)))),
            ("LogSoftmax", _) => {
                body.sub(&dy, &body.mul(&along(body.sum(&dy, &axes)), &body.unary("exponential", &y)))
            }
            ("Standardize", Some(x)) => {
                let factor = spread(&self.line_factor(eps(), &self.centered(x, &axes), &axes));
                let (mean, share) =
                    (along(self.mean(&dy, &axes)), along(self.mean(&body.mul(&y, &dy), &axes)));
                body.mul(&body.sub(&body.sub(&dy, &mean), &body.mul(&y, &share)), &factor)
            }
            ("RootMeanSquare", Some(x)) => {
                let factor = spread(&self.line_factor(eps(), x, &axes));
                body.mul(&body.sub(&dy, &body.mul(&y, &along(self.mean(&body.mul(&y, &dy), &axes)))), &factor)
            }
            ("UnitLength", Some(x)) => {
                let length = along(body.unary("sqrt", &body.sum(&body.mul(x, x), &axes)));
                let share = along(body.sum(&body.mul(&y, &dy), &axes));
                let far = body.div(&body.sub(&dy, &body.mul(&y, &share)), &length);
                let near = body.div(&dy, &body.like(&dy, eps()));
                let is_near = body.compare("LE", &length, &body.like(&length, eps()));
                body.select(&is_near, &near, &far)
            }
            _ => return Err(self.refused(format!("there is no derivative of `{name}` in StableHLO"))),
        };
        // 0 times anything is 0: if all cotangents of a line are 0, so are its gradients.
        let nonzero = body.compare("NE", &dy, &body.like(&dy, 0.0));
        let any = spread(&body.sum(&nonzero, &axes));
        let found = body.select(&any, &found, &dy);
        Ok(self.body.stored(&found, own.dtype))
    }

    fn best_of(
        &mut self,
        x: &SavedField,
        y: &SavedField,
        order: &[usize],
        axis: usize,
        dtype: DType,
    ) -> Result<Value, XlaError> {
        let (x, y) = (self.field(x, order)?, self.field(y, order)?);
        let along = order.iter().position(|&own| own == axis).expect("the loop is in the order");
        let body = &self.body;
        let len = x.len();
        let at = body.reshape(&body.iota(DType::I64, &[len], 0), &x.shape);
        let is_own = body.binary("or", &body.compare("EQ", &x, &y), &body.is_nan(&x));
        let first =
            body.compare("EQ", &body.iota(DType::I64, &x.shape, along), &body.zeros(DType::I64, &x.shape));
        let is_own = body.binary("or", &is_own, &first);
        let least = body.broadcast(&body.int(-1, DType::I64), &x.shape, &[]);
        let own = body.select(&is_own, &at, &least);
        let found = self.scanned("CumulateMax", &own, &[along])?;
        Ok(self.body.stored(&found, dtype))
    }

    fn recurrence(
        &mut self,
        a: Option<&SavedField>,
        b: &SavedField,
        axis: usize,
        order: &[usize],
        backward: bool,
        dtype: DType,
    ) -> Result<Value, XlaError> {
        let along = order.iter().position(|&own| own == axis).expect("the loop is in the order");
        let mut sums = self.field(b, order)?;
        if sums.len() == 0 {
            return Ok(self.body.stored(&sums, dtype));
        }
        let factors = match a {
            Some(a) => Some(self.field(a, order)?),
            None => None,
        };
        let body = &self.body;
        let len = sums.shape[along];
        let zero = body.zeros(sums.dtype, &[]);
        let ahead = |value: &Value, fill: &Value, step: i64| match backward {
            true => body.pad_axis(value, fill, along, -step, step),
            false => body.pad_axis(value, fill, along, step, -step),
        };
        // Padded to one factor for each element: the factor between it and the element before it,
        // in the direction of the recurrence.
        let mut factors = factors.map(|own| match backward {
            true => body.pad_axis(&own, &zero, along, 0, 1),
            false => body.pad_axis(&own, &zero, along, 1, 0),
        });
        let chain = SavedOperation("Chain".into(), Vec::new());
        let mut step = 1;
        while step < len {
            let before = ahead(&sums, &zero, step as i64);
            let before = match &factors {
                Some(factors) => {
                    body.apply_binary(&chain, factors, &before).expect("the opcode is an operation")
                }
                None => before,
            };
            sums = body.add(&sums, &before);
            factors = factors.map(|own| {
                let before = ahead(&own, &zero, step as i64);
                body.apply_binary(&chain, &own, &before).expect("the opcode is an operation")
            });
            step *= 2;
        }
        Ok(self.body.stored(&sums, dtype))
    }

    fn placed_parts(&mut self, parts: &[SavedPart], around: usize, dtype: DType) -> Result<Value, XlaError> {
        let mut whole = self.values[around].clone();
        let shape = whole.shape.to_vec();
        for part in parts {
            if part.field.sizes.contains(&0) {
                continue;
            }
            let loops: Vec<usize> =
                (0..part.field.sizes.len()).filter(|&axis| part.field.sizes[axis] > 1).collect();
            let elements = self.field_of(&part.field, &loops, dtype)?;
            let own = self.put(&elements, &part.field, &part.place, &loops, &shape)?;
            whole = self.body.binary(if dtype == DType::Bool { "or" } else { "add" }, &whole, &own);
        }
        Ok(whole)
    }
}
