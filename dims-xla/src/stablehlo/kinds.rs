//! Steps of operators that are not expressions, such as moved rows, pooling, random numbers and
//! sorting.

use super::Lower;
use super::text::{Lookup, Value};
use super::view::Loop;
use crate::error::XlaError;
use crate::mesh::jobs::trailing;
use typed_dims_kernels::memory::runs::RowRun;
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::{SavedField, SavedKind, SavedNumbers, SavedOperandPlaces};

/// Streams of the library's random generator.
mod stream {
    pub(super) const UNIFORM: u64 = 0;
    pub(super) const NORMAL: u64 = 0x9E37_79B9_7F4A_7C15;
    pub(super) const DROPOUT: u64 = 0x243F_6A88_85A3_08D3;
    pub(super) const CATEGORICAL: u64 = 0x1319_8A2E_0370_7344;
    pub(super) const BERNOULLI: u64 = 0xA409_3822_299F_31D0;
    pub(super) const PERMUTATION: u64 = 0x082E_FA98_EC4E_6C89;
    pub(super) const SPLIT: u64 = 0x4528_21E6_38D0_1377;
}

impl Lower<'_> {
    /// Result `number` of a step. `None` stands for the value that the step keeps for its
    /// derivative.
    pub(super) fn kind(
        &mut self,
        kind: &SavedKind,
        operands: &[SavedField],
        number: Option<usize>,
        dtype: DType,
        len: usize,
    ) -> Result<Value, XlaError> {
        if len == 0 {
            return Ok(self.body.zeros(dtype, &[0]));
        }
        // The loops of each operand are in the order of its elements, so a reshape can join them.
        let mut own = Vec::new();
        for field in operands {
            let loops: Vec<usize> = (0..field.sizes.len()).collect();
            let value = self.elements_of(field, &loops)?;
            let is_line = match kind {
                SavedKind::StandardizeAffine { .. } | SavedKind::DropElements { .. } => !own.is_empty(),
                _ => true,
            };
            own.push(if is_line { self.body.reshape(&value, &[value.len()]) } else { value });
        }
        match kind {
            SavedKind::MoveRows { outer, size, inner, sources, fill, .. } => {
                let rows = self.body.reshape(&own[0], &[*outer, *size, *inner]);
                let fill = self.body.constant(dtype, &[], &fill.0);
                Ok(self.moved(&rows, sources, &fill))
            }
            SavedKind::AddAtPlaces { len, operands, .. } => {
                let mut sum: Option<Value> = None;
                for (value, places) in own.iter().zip(operands) {
                    let value = self.body.loaded(value);
                    let value = self.added_at(&value, places, *len);
                    sum = Some(match sum {
                        Some(sum) => self.body.add(&sum, &value),
                        None => value,
                    });
                }
                let sum = sum.unwrap_or_else(|| self.body.zeros(dtype.in_registers(), &[*len]));
                Ok(self.body.stored(&sum, dtype))
            }
            SavedKind::MeanOfParts { parts, .. } => {
                let rows = self.body.loaded(&own[0]);
                let found = self.of_parts(&rows, *parts, &|lower, rows| lower.mean(rows, &[1]));
                Ok(self.body.stored(&found, dtype))
            }
            SavedKind::MaxOfParts { parts, .. } => {
                let rows = self.comparable(&own[0]);
                let greatest = |lower: &Self, rows: &Value| {
                    let start = match rows.dtype.is_float() {
                        true => lower.body.float(f64::NEG_INFINITY, rows.dtype),
                        false => lower.body.bound(rows.dtype, true),
                    };
                    lower.body.reduce(rows, &start, &[1], "maximum")
                };
                let found = match number {
                    Some(_) => self.of_parts(&rows, *parts, &greatest),
                    None => self.of_parts(&rows, *parts, &|lower, rows| {
                        let best = lower.spread(&greatest(lower, rows), &rows.shape, &[1]);
                        let is_best = lower.body.compare("EQ", rows, &best);
                        let one = lower.body.convert(&is_best, DType::F64);
                        let many = lower.spread(&lower.body.sum(&one, &[1]), &rows.shape, &[1]);
                        // A NaN maximum equals no element, so all shares are 0 / 0 = NaN.
                        lower.body.div(&one, &many)
                    }),
                };
                Ok(self.body.stored(&found, dtype))
            }
            SavedKind::DropElements { count, p, seed, numbers, .. } => {
                let p = f64::from_bits(*p);
                let seed = match seed {
                    Some(seed) => self.body.int(*seed as i64, DType::U64),
                    None => self.body.reshape(&own[1], &[]),
                };
                let drawn = self.unit(stream::DROPOUT, &seed, &self.numbers(numbers, *count));
                let drawn = self.body.reshape(&drawn, &own[0].shape);
                let is_dropped = self.body.compare("LT", &drawn, &self.body.like(&drawn, p));
                let value = self.body.loaded(&own[0]);
                let scaled = self.body.mul(&value, &self.body.like(&value, 1.0 / (1.0 - p)));
                let found = self.body.select(&is_dropped, &self.body.like(&value, 0.0), &scaled);
                Ok(self.body.stored(&found, dtype))
            }
            SavedKind::StandardizeAffine { lines, len, eps, .. } => {
                let (value, axes) = match trailing(&own[0].shape, *len) {
                    Some(axes) => (own[0].clone(), axes.collect()),
                    None => (self.body.reshape(&own[0], &[*lines, *len]), vec![1]),
                };
                let value = self.body.loaded(&value);
                let sizes: Vec<usize> = axes.iter().map(|&axis| value.shape[axis]).collect();
                let [gain, bias] = [1, 2].map(|at| {
                    let own = self.body.reshape(&self.body.loaded(&own[at]), &sizes);
                    self.body.broadcast(&own, &value.shape, &axes)
                });
                let found = self.normalized("Standardize", f64::from_bits(*eps), &value, &axes);
                let found = self.body.add(&self.body.mul(&found, &gain), &bias);
                Ok(self.body.stored(&found, dtype))
            }
            SavedKind::DrawElements { distribution, count, numbers, .. } => {
                let seed = self.body.reshape(&own[0], &[]);
                let at = self.numbers(numbers, *count);
                let found = match distribution.as_str() {
                    "rand" => {
                        let value = self.body.convert(&self.unit(stream::UNIFORM, &seed, &at), dtype);
                        // Rounding to a narrow type can reach 1.
                        let bits = match dtype {
                            DType::F64 => 52,
                            DType::F32 => 23,
                            DType::F16 => 10,
                            _ => 7,
                        };
                        let below = self.body.like(&value, 1.0 - 2f64.powi(-bits));
                        let is_below = self.body.compare("LT", &value, &self.body.like(&value, 1.0));
                        self.body.select(&is_below, &value, &below)
                    }
                    "randn" => self.deviates(&seed, &at),
                    "categorical" => {
                        let u = self.unit(stream::CATEGORICAL, &seed, &at);
                        // As in the kernels' `gumbel`, `u` becomes neither 0 nor 1.
                        let u = self.body.add(&u, &self.body.like(&u, f64::EPSILON / 4.0));
                        let below = self.body.like(&u, 1.0 - f64::EPSILON / 2.0);
                        let u = self.body.min(&u, &below);
                        let inner = self.body.unary("negate", &self.body.unary("log", &u));
                        self.body.unary("negate", &self.body.unary("log", &inner))
                    }
                    name => {
                        return Err(self.refused(format!("there is no distribution `{name}` in StableHLO")));
                    }
                };
                Ok(self.body.convert(&found, dtype))
            }
            SavedKind::DrawTruths { count, numbers, .. } => {
                let p = self.body.convert(&self.body.loaded(&own[0]), DType::F64);
                let (low, high) = (self.body.like(&p, 0.0), self.body.like(&p, 1.0));
                let inside = self.body.binary(
                    "and",
                    &self.body.compare("GE", &p, &low),
                    &self.body.compare("LE", &p, &high),
                );
                let all = self.body.reduce(&inside, &self.body.truth(true), &[0], "and");
                self.check(all, "a probability is not between 0 and 1");
                let seed = self.body.reshape(&own[1], &[]);
                let drawn = self.unit(stream::BERNOULLI, &seed, &self.numbers(numbers, *count));
                Ok(self.body.compare("LT", &drawn, &p))
            }
            SavedKind::DrawOrder { size } => {
                let seed = self.body.reshape(&own[0], &[]);
                Ok(self.body.stored(&self.order(&seed, *size), dtype))
            }
            SavedKind::SplitSeed { at } => {
                let at = self.body.int(*at as i64, DType::U64);
                let at = self.body.broadcast(&at, &[1], &[]);
                let seed = self.body.reshape(&own[0], &[]);
                Ok(self.random_bits(stream::SPLIT, &seed, &at))
            }
            SavedKind::Sort { lines, len, descending, values, .. } => {
                let [found, at] = self.sorted(&own[0], *lines, *len, *descending);
                let is_value = *values && number == Some(0);
                Ok(self.body.stored(if is_value { &found } else { &at }, dtype))
            }
            SavedKind::Extremum { lines, len, greatest, .. } => {
                let value = self.comparable(&own[0]);
                let value = self.body.reshape(&value, &[*lines, *len]);
                let [best, at] = self.body.extremum(&value, *greatest);
                let best = self.body.convert(&best, own[0].dtype);
                Ok(self.body.stored(if number == Some(0) { &best } else { &at }, dtype))
            }
            SavedKind::TopK { lines, len, k, .. } => {
                let [found, at] = self.sorted(&own[0], *lines, *len, true);
                let chosen = self.body.slice_axis(if number == Some(0) { &found } else { &at }, 1, 0, *k);
                Ok(self.body.stored(&chosen, dtype))
            }
            SavedKind::Matrices { work, sizes, .. } => self.matrices(*work, *sizes, &own),
            SavedKind::Quantile { lines, len, q, .. } => {
                self.quantile(&own[0], (*lines, *len), f64::from_bits(*q), number, dtype)
            }
        }
    }

    /// A field along all its loops, in the type of its operand if the field loads the operand
    /// unchanged.
    fn elements_of(&mut self, field: &SavedField, loops: &[usize]) -> Result<Value, XlaError> {
        use typed_dims_kernels::trace::saved::SavedInstruction;
        if let SavedInstruction::Load(operand) = field.program.instructions[field.program.result as usize].0 {
            let operand = field.operands[operand as usize].clone();
            return self.operand_elements(field, &operand, loops);
        }
        self.field(field, loops)
    }

    /// Rows along the middle axis, each from a source or filled.
    fn moved(&self, rows: &Value, sources: &[RowRun], fill: &Value) -> Value {
        let body = &self.body;
        let (outer, inner) = (rows.shape[0], rows.shape[2]);
        if sources.len() <= 32 {
            let part = |&RowRun { count, first, step }: &RowRun| match first {
                None => body.broadcast(fill, &[outer, count, inner], &[]),
                Some(first) => {
                    let size = rows.shape[1] as isize;
                    let loops = [
                        Loop { size: outer, stride: size * inner as isize },
                        Loop { size: count, stride: if count == 1 { 0 } else { step * inner as isize } },
                        Loop { size: inner, stride: 1 },
                    ];
                    body.view(rows, (first * inner) as isize, &loops)
                }
            };
            let parts: Vec<Value> = sources.iter().filter(|run| run.count > 0).map(part).collect();
            return body.concat(&parts, 1);
        }
        let sources: Vec<Option<usize>> = sources.iter().flat_map(|run| run.rows()).collect();
        let numbers = |of: &dyn Fn(Option<usize>) -> i64| -> Vec<u8> {
            sources.iter().flat_map(|&source| of(source).to_le_bytes()).collect()
        };
        let at =
            body.constant(DType::I64, &[sources.len(), 1], &numbers(&|source| source.unwrap_or(0) as i64));
        let found = body.gather(rows, &at, &Lookup { offset: &[0, 2], selected: &[1], batch: &[] });
        let known = body.constant(DType::I64, &[sources.len()], &numbers(&|source| source.is_some().into()));
        let known = body.broadcast(&body.stored(&known, DType::Bool), &found.shape, &[1]);
        body.select(&known, &found, &body.broadcast(fill, &found.shape, &[]))
    }

    fn added_at(&self, value: &Value, places: &SavedOperandPlaces, len: usize) -> Value {
        let loops: Vec<Loop> =
            places.sizes.iter().zip(&places.strides).map(|(&size, &stride)| Loop { size, stride }).collect();
        let value = self.body.reshape(value, &places.sizes);
        // Loops along which the place does not move are summed over.
        let still: Vec<usize> =
            (0..loops.len()).filter(|&at| loops[at].stride == 0 && loops[at].size > 1).collect();
        let value = self.body.sum(&value, &still);
        let moving: Vec<Loop> =
            (0..loops.len()).filter(|at| !still.contains(at)).map(|at| loops[at]).collect();
        self.body.placed(&value, places.start as isize, &moving, &[len])
    }

    /// Applies `f` to each part of the middle axis, and concatenates the resulting rows.
    fn of_parts(
        &self,
        rows: &Value,
        [outer, size, len, inner]: [usize; 4],
        f: &dyn Fn(&Self, &Value) -> Value,
    ) -> Value {
        let body = &self.body;
        let rows = body.reshape(rows, &[outer, size, inner]);
        let parts: Vec<Value> = (0..len)
            .map(|part| {
                let bound = |part: usize, up: usize| (part * size + up) / len;
                let (from, to) = (bound(part, 0), bound(part + 1, len - 1));
                let found = f(self, &body.slice_axis(&rows, 1, from, to));
                let count = found.len() / (outer * inner);
                body.reshape(&found, &[outer, count, inner])
            })
            .collect();
        body.concat(&parts, 1)
    }

    /// For each element, the position in the seed's stream of the number that it draws.
    fn numbers(&self, numbers: &SavedNumbers, count: usize) -> Value {
        let body = &self.body;
        let sizes: Vec<usize> = numbers.axes.iter().map(|own| own.0).collect();
        let mut sum = body.broadcast(&body.int(numbers.start as i64, DType::U64), &sizes, &[]);
        for (axis, &(_, factor)) in numbers.axes.iter().enumerate() {
            let at = body.iota(DType::U64, &sizes, axis);
            let by = body.broadcast(&body.int(factor as i64, DType::U64), &sizes, &[]);
            sum = body.add(&sum, &body.mul(&at, &by));
        }
        if sum.len() == count {
            return body.reshape(&sum, &[count]);
        }
        // The remaining elements draw the same numbers again, from the first one on.
        let flat = body.reshape(&sum, &[sum.len()]);
        let at = body.iota(DType::I64, &[count], 0);
        let all = body.broadcast(&body.int(flat.len() as i64, DType::I64), &[count], &[]);
        body.at_positions(&flat, &body.binary("remainder", &at, &all))
    }

    /// The hash of SplitMix64.
    fn mixed(&self, z: &Value) -> Value {
        let body = &self.body;
        let c = |value: u64| body.broadcast(&body.int(value as i64, DType::U64), &z.shape, &[]);
        let fold = |z: &Value, by: u64| body.binary("xor", z, &body.binary("shift_right_logical", z, &c(by)));
        let z = body.mul(&fold(z, 30), &c(0xBF58_476D_1CE4_E5B9));
        let z = body.mul(&fold(&z, 27), &c(0x94D0_49BB_1331_11EB));
        fold(&z, 31)
    }

    /// The random bits at positions of a seed's stream.
    fn random_bits(&self, stream: u64, seed: &Value, at: &Value) -> Value {
        let body = &self.body;
        let c = |value: u64| body.broadcast(&body.int(value as i64, DType::U64), &at.shape, &[]);
        let start = body.binary("xor", seed, &body.int(stream as i64, DType::U64));
        let start = body.broadcast(&self.mixed(&start), &at.shape, &[]);
        let next = body.mul(&body.add(at, &c(1)), &c(0x9E37_79B9_7F4A_7C15));
        self.mixed(&body.add(&start, &next))
    }

    /// The numbers at positions of a seed's stream, uniform in `[0, 1)`.
    fn unit(&self, stream: u64, seed: &Value, at: &Value) -> Value {
        let body = &self.body;
        let bits = self.random_bits(stream, seed, at);
        let by = body.broadcast(&body.int(11, DType::U64), &at.shape, &[]);
        let number = body.convert(&body.binary("shift_right_logical", &bits, &by), DType::F64);
        body.mul(&number, &body.like(&number, 1.0 / (1u64 << 53) as f64))
    }

    /// Normally distributed numbers.
    fn deviates(&self, seed: &Value, at: &Value) -> Value {
        let body = &self.body;
        let c = |value: u64| body.broadcast(&body.int(value as i64, DType::U64), &at.shape, &[]);
        let at = body.mul(at, &c(2));
        let u = self.unit(stream::NORMAL, seed, &at);
        let u = body.sub(&body.like(&u, 1.0), &u);
        let v = self.unit(stream::NORMAL, seed, &body.add(&at, &c(1)));
        let radius = body.mul(&body.like(&u, -2.0), &body.unary("log", &u));
        let wave = body.unary("cosine", &body.mul(&body.like(&v, std::f64::consts::TAU), &v));
        body.mul(&body.unary("sqrt", &radius), &wave)
    }

    /// A random order of positions: each position, from the last one down, is swapped with itself
    /// or an earlier one.
    fn order(&self, seed: &Value, size: usize) -> Value {
        let body = &self.body;
        let at = body.iota(DType::U64, &[size], 0);
        let bits = self.random_bits(stream::PERMUTATION, seed, &at);
        let c = |value: u64| body.broadcast(&body.int(value as i64, DType::U64), &[size], &[]);
        let many = body.add(&at, &c(1));
        // The upper half of a 128-bit product, whose second factor is less than 2^32.
        let low = body.binary("and", &bits, &c(0xFFFF_FFFF));
        let high = body.binary("shift_right_logical", &bits, &c(32));
        let low = body.binary("shift_right_logical", &body.mul(&low, &many), &c(32));
        let sum = body.add(&body.mul(&high, &many), &low);
        let others = body.bits(&body.binary("shift_right_logical", &sum, &c(32)), DType::I64);
        let start = body.iota(DType::I64, &[size], 0);
        let (all, one, scalar, truth) = (start.ty(), "tensor<1xi64>", "tensor<i64>", "tensor<i1>");
        let first = body.int(size as i64 - 1, DType::I64);
        let slice = |of: &str, at: &str| {
            format!(
                "\"stablehlo.dynamic_slice\"({of}, {at}) {{slice_sizes = array<i64: 1>}} : ({all}, {scalar}) -> {one}"
            )
        };
        let update = |of: &str, by: &str, at: &str| {
            format!(
                "\"stablehlo.dynamic_update_slice\"({of}, {by}, {at}) : ({all}, {one}, {scalar}) -> {all}"
            )
        };
        let constant = |value: i64| {
            format!("\"stablehlo.constant\"() {{value = dense<{value}> : {scalar}}} : () -> {scalar}")
        };
        let lines = [
            format!("%w0 = {}", slice("%others", "%at")),
            format!("%other = \"stablehlo.reshape\"(%w0) : ({one}) -> {scalar}"),
            format!("%w1 = {}", slice("%order", "%at")),
            format!("%w2 = {}", slice("%order", "%other")),
            format!("%w3 = {}", update("%order", "%w2", "%at")),
            format!("%w4 = {}", update("%w3", "%w1", "%other")),
            format!("%w5 = {}", constant(1)),
            format!("%w6 = \"stablehlo.subtract\"(%at, %w5) : ({scalar}, {scalar}) -> {scalar}"),
            format!("\"stablehlo.return\"(%w6, %w4, %others) : ({scalar}, {all}, {all}) -> ()"),
        ];
        let arguments = format!("%at: {scalar}, %order: {all}, %others: {all}");
        let text = format!(
            "\"stablehlo.while\"({}, {}, {}) ({{\n      ^bb0({arguments}):\n        %c0 = {}\n        %c1 = \"stablehlo.compare\"(%at, %c0) {{comparison_direction = \
             #stablehlo<comparison_direction GT>}} : ({scalar}, {scalar}) -> {truth}\n        \"stablehlo.return\"(%c1) : ({truth}) -> ()\n    }}, {{\n      ^bb0({arguments}):\n        {}\n    }}) : \
             ({scalar}, {all}, {all}) -> ({scalar}, {all}, {all})",
            first.name,
            start.name,
            others.name,
            constant(0),
            lines.join("\n        "),
        );
        body.looped(text, size)
    }

    /// Converts elements so that StableHLO compares them as the library does.
    fn comparable(&self, value: &Value) -> Value {
        match value.dtype {
            DType::F16 | DType::Bf16 => self.body.convert(value, DType::F32),
            DType::Bool => self.body.convert(value, DType::U8),
            _ => value.clone(),
        }
    }

    fn sorted(&self, value: &Value, lines: usize, len: usize, descending: bool) -> [Value; 2] {
        let own = self.body.reshape(&self.comparable(value), &[lines, len]);
        let [found, at] = self.body.sort(&own, descending);
        [self.body.convert(&found, value.dtype), at]
    }

    fn quantile(
        &mut self,
        value: &Value,
        (lines, len): (usize, usize),
        q: f64,
        number: Option<usize>,
        dtype: DType,
    ) -> Result<Value, XlaError> {
        let [found, order] = self.sorted(value, lines, len, false);
        let body = &self.body;
        let own = body.reshape(value, &[lines, len]);
        // As in the kernels, the place is computed in `f32` if `f32` can represent every position.
        let place = match own.dtype {
            DType::F32 | DType::F16 | DType::Bf16 if len - 1 <= 1_usize << f32::MANTISSA_DIGITS => {
                f64::from(q as f32 * (len - 1) as f32)
            }
            _ => q * (len - 1) as f64,
        };
        let low = (place.floor() as usize).min(len - 1);
        let share = place - place.floor();
        let high = (low + 1).min(len - 1);
        let nan = body.is_nan(&own);
        let any = body.sum(&nan, &[1]);
        if number.is_none() {
            // The positions of both neighbors, or of the first NaN if there is one.
            let at = body.iota(DType::I64, &own.shape, 1);
            let last = body.broadcast(&body.int(i64::MAX, DType::I64), &own.shape, &[]);
            let first =
                body.reduce(&body.select(&nan, &at, &last), &body.int(i64::MAX, DType::I64), &[1], "minimum");
            let both = [low, high].map(|at| {
                let own = body.reshape(&body.slice_axis(&order, 1, at, at + 1), &[lines]);
                body.select(&any, &first, &own)
            });
            return Ok(body.stored(&body.concat(&both, 0), dtype));
        }
        let at = |position: usize| {
            body.loaded(&body.reshape(&body.slice_axis(&found, 1, position, position + 1), &[lines]))
        };
        let (below, above) = (at(low), at(high));
        let step = body.sub(&above, &below);
        let c = |value: f64| body.like(&below, value);
        let plain = body.add(&below, &body.mul(&step, &c(share)));
        let far = body.add(&body.mul(&below, &c(1.0 - share)), &body.mul(&above, &c(share)));
        let between = body.select(&body.test("is_finite", &step), &plain, &far);
        let same = body.compare("EQ", &below, &above);
        let found = if share > 0.0 { body.select(&same, &below, &between) } else { below.clone() };
        let found = body.select(&any, &c(f64::NAN), &found);
        Ok(body.stored(&found, dtype))
    }
}
