//! StableHLO text: operations in the generic form, each on tensors of known types.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;
use typed_dims_kernels::program::code::DType;

/// A tensor of the program.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// The name in operations: `%3`.
    pub(super) name: Rc<str>,
    pub(super) dtype: DType,
    pub(super) shape: Rc<[usize]>,
}

impl Value {
    pub(super) fn ty(&self) -> String {
        tensor_type(self.dtype, &self.shape)
    }

    pub(super) fn rank(&self) -> usize {
        self.shape.len()
    }

    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

/// The name of an element type.
pub(crate) fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::Bool => "i1",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 | DType::Isize => "i64",
        DType::U8 => "ui8",
        DType::U16 => "ui16",
        DType::U32 => "ui32",
        DType::U64 | DType::Usize => "ui64",
    }
}

/// The type of a tensor, such as `tensor<2x3xf32>`.
pub(crate) fn tensor_type(dtype: DType, shape: &[usize]) -> String {
    let mut text = String::from("tensor<");
    for size in shape {
        let _ = write!(text, "{size}x");
    }
    text + element(dtype) + ">"
}

pub(super) fn is_signed(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::Isize)
}

fn list(of: &[usize]) -> String {
    of.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

fn array(of: impl IntoIterator<Item = i64>) -> String {
    let of: Vec<String> = of.into_iter().map(|own| own.to_string()).collect();
    if of.is_empty() { "array<i64>".into() } else { format!("array<i64: {}>", of.join(", ")) }
}

pub(super) fn sizes(of: &[usize]) -> String {
    array(of.iter().map(|&own| own as i64))
}

/// The precision of products of `f32`: of matrices, and in convolutions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Factors are not rounded.
    #[default]
    Exact,
    /// XLA's default for the device. A GPU that supports TF32 rounds factors to a 10-bit mantissa.
    /// Errors are then about 3e-4 of the greatest element. TPUs round factors to `bf16`, and CPUs
    /// do not round them.
    Tf32,
    /// In products of matrices, factors are rounded to `bf16`, with a 7-bit mantissa. Convolutions
    /// are computed as for [`Tf32`](Precision::Tf32).
    Bf16,
}

/// The operations written so far.
#[derive(Default)]
pub(super) struct Body {
    pub(super) text: RefCell<String>,
    next: RefCell<usize>,
    /// The values that [`op`](Body::op) has written, by their text without a name. `op` writes
    /// equal operations once.
    known: RefCell<HashMap<String, Value>>,
    /// The written operations with several results, each with the common name of its results.
    pub(super) several_known: RefCell<HashMap<String, Rc<str>>>,
    pub(super) precision: Precision,
}

/// The axes of a gather or a scatter.
pub(super) struct Lookup<'a> {
    /// The axes of the result, or of the updates, that come from the slices.
    pub(super) offset: &'a [usize],
    /// The axes that an index selects from: slices have size 1 along them.
    pub(super) selected: &'a [usize],
    /// Pairs of an axis of the indices and an axis of the operand. Along these batch axes, each
    /// index selects from its own part of the operand.
    pub(super) batch: &'a [(usize, usize)],
}

impl Lookup<'_> {
    /// Whether an axis is a selected axis or a batch axis.
    fn takes(&self, axis: usize) -> bool {
        self.selected.contains(&axis) || self.batch.iter().any(|own| own.1 == axis)
    }

    /// The axes of a gather or a scatter, which use different names for the same lists.
    pub(super) fn axes(&self, indices: &Value, names: [&str; 5]) -> String {
        let mut batch = self.batch.to_vec();
        batch.sort_by_key(|own| own.1);
        let (of_indices, of_operand): (Vec<usize>, Vec<usize>) = batch.into_iter().unzip();
        let mut collapsed = self.selected.to_vec();
        collapsed.sort_unstable();
        let lists = [self.offset, &collapsed, &of_operand, &of_indices, self.selected];
        let text: Vec<String> =
            names.iter().zip(lists).map(|(name, axes)| format!("{name} = [{}]", list(axes))).collect();
        format!("{}, index_vector_dim = {}", text.join(", "), indices.rank() - 1)
    }
}

/// A convolution. The axes are batch, feature, spatial; the kernel has output features, input
/// features, spatial.
pub(super) struct Convolution {
    pub(super) strides: Vec<usize>,
    pub(super) padding: Vec<(i64, i64)>,
    pub(super) lhs_dilation: Vec<usize>,
    pub(super) rhs_dilation: Vec<usize>,
    pub(super) groups: usize,
}

impl Body {
    pub(super) fn new(precision: Precision) -> Self {
        Body { precision, ..Body::default() }
    }

    pub(super) fn name(&self) -> Rc<str> {
        let mut next = self.next.borrow_mut();
        *next += 1;
        format!("%{next}").into()
    }

    /// Writes an operation with one result.
    pub(super) fn op(
        &self,
        name: &str,
        operands: &[&Value],
        attributes: &str,
        dtype: DType,
        shape: impl Into<Rc<[usize]>>,
    ) -> Value {
        let shape = shape.into();
        let names: Vec<&str> = operands.iter().map(|own| &*own.name).collect();
        let types: Vec<String> = operands.iter().map(|own| own.ty()).collect();
        let (names, types) = (names.join(", "), types.join(", "));
        let attributes = if attributes.is_empty() { String::new() } else { format!(" {{{attributes}}}") };
        let text = format!("\"{name}\"({names}){attributes} : ({types}) -> {}", tensor_type(dtype, &shape));
        if let Some(known) = self.known.borrow().get(&text) {
            return known.clone();
        }
        let value = Value { name: self.name(), dtype, shape };
        let _ = writeln!(self.text.borrow_mut(), "    {} = {text}", value.name);
        self.known.borrow_mut().insert(text, value.clone());
        value
    }

    /// The result of an operation that is given as text.
    pub(super) fn written(&self, text: String, dtype: DType, shape: impl Into<Rc<[usize]>>) -> Value {
        let value = Value { name: self.name(), dtype, shape: shape.into() };
        let _ = writeln!(self.text.borrow_mut(), "    {} = {text}", value.name);
        value
    }

    /// Elements given by their bytes, little-endian.
    pub(super) fn constant(&self, dtype: DType, shape: &[usize], bytes: &[u8]) -> Value {
        let len: usize = shape.iter().product();
        if dtype == DType::Bool {
            let bytes = self.constant(DType::U8, shape, bytes);
            let zero = self.int(0, DType::U8);
            return self.compare("NE", &bytes, &self.broadcast(&zero, shape, &[]));
        }
        let ty = tensor_type(dtype, shape);
        let width = bytes.len().checked_div(len).unwrap_or(0);
        let elements = if len == 0 {
            "dense<>".into()
        } else if bytes.chunks(width).all(|own| *own == bytes[..width]) {
            return self.broadcast(&self.scalar(dtype, &bytes[..width]), shape, &[]);
        } else {
            let mut text = String::with_capacity(2 * bytes.len() + 12);
            text.push_str("dense<\"0x");
            bytes.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02X}");
            });
            text + "\">"
        };
        self.op("stablehlo.constant", &[], &format!("value = {elements} : {ty}"), dtype, shape)
    }

    /// One element, from its bytes.
    fn scalar(&self, dtype: DType, bytes: &[u8]) -> Value {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        let digits = 2 * bytes.len();
        let element = match dtype {
            DType::Bool => format!("dense<{}>", word != 0),
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => format!("dense<0x{word:0digits$X}>"),
            _ if is_signed(dtype) => {
                let shift = 64 - 8 * bytes.len();
                format!("dense<{}>", ((word << shift) as i64) >> shift)
            }
            _ => format!("dense<{word}>"),
        };
        let ty = tensor_type(dtype, &[]);
        self.op("stablehlo.constant", &[], &format!("value = {element} : {ty}"), dtype, [])
    }

    /// A float as a rank-0 tensor.
    pub(super) fn float(&self, value: f64, dtype: DType) -> Value {
        match dtype {
            DType::F64 => self.scalar(dtype, &value.to_le_bytes()),
            DType::F32 => self.scalar(dtype, &(value as f32).to_le_bytes()),
            _ => self.convert(&self.scalar(DType::F32, &(value as f32).to_le_bytes()), dtype),
        }
    }

    /// An integer as a rank-0 tensor.
    pub(super) fn int(&self, value: i64, dtype: DType) -> Value {
        let element = if is_signed(dtype) { value.to_string() } else { (value as u64).to_string() };
        let ty = tensor_type(dtype, &[]);
        self.op("stablehlo.constant", &[], &format!("value = dense<{element}> : {ty}"), dtype, [])
    }

    pub(super) fn truth(&self, value: bool) -> Value {
        self.scalar(DType::Bool, &[value.into()])
    }

    /// 0 or `false`, in a shape.
    pub(super) fn zeros(&self, dtype: DType, shape: &[usize]) -> Value {
        let zero = match dtype {
            DType::Bool => self.truth(false),
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => self.float(0.0, dtype),
            _ => self.int(0, dtype),
        };
        self.broadcast(&zero, shape, &[])
    }

    pub(super) fn unary(&self, name: &str, a: &Value) -> Value {
        self.op(&format!("stablehlo.{name}"), &[a], "", a.dtype, a.shape.clone())
    }

    /// An operation that yields `bool`s.
    pub(super) fn test(&self, name: &str, a: &Value) -> Value {
        self.op(&format!("stablehlo.{name}"), &[a], "", DType::Bool, a.shape.clone())
    }

    /// An operation of the CHLO dialect.
    pub(super) fn chlo(&self, name: &str, operands: &[&Value]) -> Value {
        self.op(&format!("chlo.{name}"), operands, "", operands[0].dtype, operands[0].shape.clone())
    }

    pub(super) fn binary(&self, name: &str, a: &Value, b: &Value) -> Value {
        debug_assert_eq!((a.dtype, &a.shape), (b.dtype, &b.shape), "{name}");
        self.op(&format!("stablehlo.{name}"), &[a, b], "", a.dtype, a.shape.clone())
    }

    pub(super) fn add(&self, a: &Value, b: &Value) -> Value {
        self.binary("add", a, b)
    }

    pub(super) fn sub(&self, a: &Value, b: &Value) -> Value {
        self.binary("subtract", a, b)
    }

    pub(super) fn mul(&self, a: &Value, b: &Value) -> Value {
        self.binary("multiply", a, b)
    }

    pub(super) fn div(&self, a: &Value, b: &Value) -> Value {
        self.binary("divide", a, b)
    }

    pub(super) fn max(&self, a: &Value, b: &Value) -> Value {
        self.binary("maximum", a, b)
    }

    pub(super) fn min(&self, a: &Value, b: &Value) -> Value {
        self.binary("minimum", a, b)
    }

    pub(super) fn abs(&self, a: &Value) -> Value {
        self.unary("abs", a)
    }

    pub(super) fn compare(&self, how: &str, a: &Value, b: &Value) -> Value {
        debug_assert_eq!((a.dtype, &a.shape), (b.dtype, &b.shape), "{how}");
        let attributes = format!("comparison_direction = #stablehlo<comparison_direction {how}>");
        self.op("stablehlo.compare", &[a, b], &attributes, DType::Bool, a.shape.clone())
    }

    pub(super) fn select(&self, condition: &Value, a: &Value, b: &Value) -> Value {
        let condition = match condition.rank() {
            0 => self.broadcast(condition, &a.shape, &[]),
            _ => condition.clone(),
        };
        self.op("stablehlo.select", &[&condition, a, b], "", a.dtype, a.shape.clone())
    }

    /// A value that is computed once, rather than in each loop that reads it.
    pub(super) fn barrier(&self, a: &Value) -> Value {
        self.op("stablehlo.optimization_barrier", &[a], "", a.dtype, a.shape.clone())
    }

    pub(super) fn convert(&self, a: &Value, dtype: DType) -> Value {
        if element(a.dtype) == element(dtype) {
            return Value { dtype, ..a.clone() };
        }
        self.op("stablehlo.convert", &[a], "", dtype, a.shape.clone())
    }

    /// The same bits as elements of another type of the same width.
    pub(super) fn bits(&self, a: &Value, dtype: DType) -> Value {
        if element(a.dtype) == element(dtype) {
            return Value { dtype, ..a.clone() };
        }
        self.op("stablehlo.bitcast_convert", &[a], "", dtype, a.shape.clone())
    }

    pub(super) fn reduce_precision(&self, a: &Value, exponent: u32, mantissa: u32) -> Value {
        let attributes = format!("exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32");
        self.op("stablehlo.reduce_precision", &[a], &attributes, a.dtype, a.shape.clone())
    }

    pub(super) fn reshape(&self, a: &Value, shape: &[usize]) -> Value {
        debug_assert_eq!(a.len(), shape.iter().product::<usize>(), "{a:?} {shape:?}");
        if *a.shape == *shape {
            return a.clone();
        }
        self.op("stablehlo.reshape", &[a], "", a.dtype, shape)
    }

    /// Axis `order[n]` of the operand is axis `n` of the result.
    pub(super) fn transpose(&self, a: &Value, order: &[usize]) -> Value {
        if order.iter().enumerate().all(|(at, &own)| at == own) {
            return a.clone();
        }
        let shape: Vec<usize> = order.iter().map(|&axis| a.shape[axis]).collect();
        self.op("stablehlo.transpose", &[a], &format!("permutation = {}", sizes(order)), a.dtype, shape)
    }

    /// Axis `n` of the operand is axis `axes[n]` of the result.
    pub(super) fn broadcast(&self, a: &Value, shape: &[usize], axes: &[usize]) -> Value {
        debug_assert_eq!(a.rank(), axes.len(), "each axis has a place");
        if *a.shape == *shape && axes.iter().enumerate().all(|(at, &own)| at == own) {
            return a.clone();
        }
        let attributes = format!("broadcast_dimensions = {}", sizes(axes));
        self.op("stablehlo.broadcast_in_dim", &[a], &attributes, a.dtype, shape)
    }

    pub(super) fn slice(&self, a: &Value, start: &[usize], limit: &[usize], step: &[usize]) -> Value {
        let whole = (0..a.rank()).all(|axis| (start[axis], limit[axis], step[axis]) == (0, a.shape[axis], 1));
        if whole {
            return a.clone();
        }
        let shape: Vec<usize> =
            (0..a.rank()).map(|axis| (limit[axis] - start[axis]).div_ceil(step[axis])).collect();
        let attributes = format!(
            "start_indices = {}, limit_indices = {}, strides = {}",
            sizes(start),
            sizes(limit),
            sizes(step)
        );
        self.op("stablehlo.slice", &[a], &attributes, a.dtype, shape)
    }

    /// Some positions of one axis.
    pub(super) fn slice_axis(&self, a: &Value, axis: usize, start: usize, limit: usize) -> Value {
        let (mut from, mut to) = (vec![0; a.rank()], a.shape.to_vec());
        (from[axis], to[axis]) = (start, limit);
        self.slice(a, &from, &to, &vec![1; a.rank()])
    }

    /// Pads with elements; negative numbers remove elements. `interior` elements are inserted
    /// between neighbors.
    pub(super) fn pad(
        &self,
        a: &Value,
        fill: &Value,
        low: &[i64],
        high: &[i64],
        interior: &[usize],
    ) -> Value {
        if low.iter().chain(high).all(|&own| own == 0) && interior.iter().all(|&own| own == 0) {
            return a.clone();
        }
        let shape: Vec<usize> = (0..a.rank())
            .map(|axis| {
                let size = a.shape[axis] as i64;
                (size + (size - 1).max(0) * interior[axis] as i64 + low[axis] + high[axis]) as usize
            })
            .collect();
        let attributes = format!(
            "edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}",
            array(low.iter().copied()),
            array(high.iter().copied()),
            sizes(interior)
        );
        self.op("stablehlo.pad", &[a, fill], &attributes, a.dtype, shape)
    }

    pub(super) fn pad_axis(&self, a: &Value, fill: &Value, axis: usize, low: i64, high: i64) -> Value {
        let (mut lows, mut highs) = (vec![0; a.rank()], vec![0; a.rank()]);
        (lows[axis], highs[axis]) = (low, high);
        self.pad(a, fill, &lows, &highs, &vec![0; a.rank()])
    }

    pub(super) fn reverse(&self, a: &Value, axes: &[usize]) -> Value {
        if axes.is_empty() {
            return a.clone();
        }
        self.op("stablehlo.reverse", &[a], &format!("dimensions = {}", sizes(axes)), a.dtype, a.shape.clone())
    }

    pub(super) fn concat(&self, of: &[Value], axis: usize) -> Value {
        if let [one] = of {
            return one.clone();
        }
        let mut shape = of[0].shape.to_vec();
        shape[axis] = of.iter().map(|own| own.shape[axis]).sum();
        let operands: Vec<&Value> = of.iter().collect();
        self.op("stablehlo.concatenate", &operands, &format!("dimension = {axis} : i64"), of[0].dtype, shape)
    }

    /// Positions along an axis.
    pub(super) fn iota(&self, dtype: DType, shape: &[usize], axis: usize) -> Value {
        self.op("stablehlo.iota", &[], &format!("iota_dimension = {axis} : i64"), dtype, shape)
    }

    /// The least integer of a type, or the greatest.
    pub(super) fn bound(&self, dtype: DType, least: bool) -> Value {
        let bits = 8 * dtype.bytes() as u32;
        let value = match (is_signed(dtype), least) {
            (true, true) => i64::MIN >> (64 - bits),
            (true, false) => i64::MAX >> (64 - bits),
            (false, true) => 0,
            (false, false) => (u64::MAX >> (64 - bits)) as i64,
        };
        self.int(value, dtype)
    }

    /// A product, summed over the contracted axes. The result, of type `out`, has the batch axes,
    /// then the other axes of the left operand, then those of the right one.
    pub(super) fn dot(
        &self,
        [a, b]: [&Value; 2],
        batch: [&[usize]; 2],
        contracted: [&[usize]; 2],
        out: DType,
    ) -> Value {
        let own = |value: &Value, at: usize| -> Vec<usize> {
            let taken = |axis: &usize| batch[at].contains(axis) || contracted[at].contains(axis);
            (0..value.rank()).filter(|axis| !taken(axis)).map(|axis| value.shape[axis]).collect()
        };
        let mut shape: Vec<usize> = batch[0].iter().map(|&axis| a.shape[axis]).collect();
        shape.extend(own(a, 0));
        shape.extend(own(b, 1));
        let precision = match self.precision {
            Precision::Exact => "HIGHEST",
            Precision::Tf32 | Precision::Bf16 => "DEFAULT",
        };
        let (a, b) = match self.precision {
            Precision::Bf16 if a.dtype == DType::F32 && b.dtype == DType::F32 => {
                (self.convert(a, DType::Bf16), self.convert(b, DType::Bf16))
            }
            _ => (a.clone(), b.clone()),
        };
        let attributes = format!(
            "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [{}], rhs_batching_dimensions = [{}], lhs_contracting_dimensions = [{}], \
             rhs_contracting_dimensions = [{}]>, precision_config = [#stablehlo<precision {precision}>, #stablehlo<precision {precision}>]",
            list(batch[0]),
            list(batch[1]),
            list(contracted[0]),
            list(contracted[1]),
        );
        self.op("stablehlo.dot_general", &[&a, &b], &attributes, out, shape)
    }

    /// Slices of an operand at indices, whose last axis has one number for each selected axis.
    /// Slices are whole along all axes except the selected axes and the batch axes.
    pub(super) fn gather(&self, a: &Value, indices: &Value, lookup: &Lookup<'_>) -> Value {
        let slices: Vec<usize> =
            (0..a.rank()).map(|axis| if lookup.takes(axis) { 1 } else { a.shape[axis] }).collect();
        let mut rest = (0..a.rank()).filter(|&axis| !lookup.takes(axis)).map(|axis| a.shape[axis]);
        let mut batch = indices.shape[..indices.rank() - 1].iter().copied();
        let rank = lookup.offset.len() + indices.rank() - 1;
        let shape: Vec<usize> = (0..rank)
            .map(|axis| {
                let next = if lookup.offset.contains(&axis) { rest.next() } else { batch.next() };
                next.expect("each axis of the result is one of the slices or one of the indices")
            })
            .collect();
        let attributes = format!(
            "dimension_numbers = #stablehlo.gather<{}>, slice_sizes = {}, indices_are_sorted = false",
            lookup.axes(
                indices,
                [
                    "offset_dims",
                    "collapsed_slice_dims",
                    "operand_batching_dims",
                    "start_indices_batching_dims",
                    "start_index_map"
                ]
            ),
            sizes(&slices),
        );
        self.op("stablehlo.gather", &[a, indices], &attributes, a.dtype, shape)
    }

    /// See [`Convolution`]. `shape` is the shape of the result.
    pub(super) fn convolution(&self, [a, kernel]: [&Value; 2], how: &Convolution, shape: &[usize]) -> Value {
        let axes: Vec<String> = (0..how.strides.len()).map(|axis| axis.to_string()).collect();
        let spatial = axes.join(", ");
        let spatial = if spatial.is_empty() { String::new() } else { format!(", {spatial}") };
        let padding: Vec<String> = how.padding.iter().map(|(low, high)| format!("[{low}, {high}]")).collect();
        let precision = match self.precision {
            Precision::Exact => "HIGHEST",
            // The factors stay `f32`: see `Precision::Bf16`.
            Precision::Tf32 | Precision::Bf16 => "DEFAULT",
        };
        let attributes = format!(
            "batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f{spatial}]x[o, i{spatial}]->[b, f{spatial}]>, feature_group_count = {} : i64, \
             window_strides = {}, padding = dense<[{}]> : tensor<{}x2xi64>, lhs_dilation = {}, rhs_dilation = {}, \
             precision_config = [#stablehlo<precision {precision}>, #stablehlo<precision {precision}>]",
            how.groups,
            sizes(&how.strides),
            padding.join(", "),
            how.padding.len(),
            sizes(&how.lhs_dilation),
            sizes(&how.rhs_dilation),
        );
        self.op("stablehlo.convolution", &[a, kernel], &attributes, a.dtype, shape)
    }
}
