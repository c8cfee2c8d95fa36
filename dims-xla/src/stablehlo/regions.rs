//! Operations with regions: reductions, sorts, scatters and loops.

use super::text::{Body, Lookup, Value, sizes, tensor_type};
use std::fmt::Write;
use std::rc::Rc;
use typed_dims_kernels::program::code::DType;

impl Body {
    /// A reduction over axes by an operation of StableHLO, from `start`.
    pub(super) fn reduce(&self, a: &Value, start: &Value, axes: &[usize], by: &str) -> Value {
        if axes.is_empty() {
            return a.clone();
        }
        let shape: Vec<usize> =
            (0..a.rank()).filter(|axis| !axes.contains(axis)).map(|axis| a.shape[axis]).collect();
        let one = tensor_type(a.dtype, &[]);
        let text = format!(
            "\"stablehlo.reduce\"({}, {}) ({{\n      ^bb0(%a: {one}, %b: {one}):\n        %c = \"stablehlo.{by}\"(%a, %b) : ({one}, {one}) -> {one}\n        \
             \"stablehlo.return\"(%c) : ({one}) -> ()\n    }}) {{dimensions = {}}} : ({}, {one}) -> {}",
            a.name,
            start.name,
            sizes(axes),
            a.ty(),
            tensor_type(a.dtype, &shape),
        );
        self.written(text, a.dtype, shape)
    }

    pub(super) fn sum(&self, a: &Value, axes: &[usize]) -> Value {
        let start = self.zeros(a.dtype, &[]);
        match a.dtype {
            DType::Bool => self.reduce(a, &start, axes, "or"),
            _ => self.reduce(a, &start, axes, "add"),
        }
    }

    /// The greatest or least element of each line along the last axis, and its first position. NaN
    /// takes precedence over all numbers.
    pub(super) fn extremum(&self, a: &Value, greatest: bool) -> [Value; 2] {
        let axis = a.rank() - 1;
        let at = self.iota(DType::I64, &a.shape, axis);
        let start = match a.dtype.is_float() {
            true => self.float(if greatest { f64::NEG_INFINITY } else { f64::INFINITY }, a.dtype),
            false => self.bound(a.dtype, greatest),
        };
        let last = self.int(i64::MAX, DType::I64);
        let (one, whole, index) = (tensor_type(a.dtype, &[]), a.ty(), "tensor<i64>");
        let shape: Vec<usize> = a.shape[..axis].to_vec();
        let truth = "tensor<i1>";
        let compare = |how: &str, a: &str, b: &str, ty: &str| {
            format!(
                "\"stablehlo.compare\"({a}, {b}) {{comparison_direction = #stablehlo<comparison_direction {how}>}} : ({ty}, {ty}) -> {truth}"
            )
        };
        let both = |name: &str, a: &str, b: &str| {
            format!("\"stablehlo.{name}\"({a}, {b}) : ({truth}, {truth}) -> {truth}")
        };
        let before = if greatest { "GT" } else { "LT" };
        let lines = [
            format!("%n0 = {}", compare("NE", "%a0", "%a0", &one)),
            format!("%n1 = {}", compare("NE", "%b0", "%b0", &one)),
            format!("%before = {}", compare(before, "%a0", "%b0", &one)),
            format!("%nans = {}", both("and", "%n0", "%n1")),
            format!("%same = {}", compare("EQ", "%a0", "%b0", &one)),
            format!("%equal = {}", both("or", "%nans", "%same")),
            format!("%first = {}", compare("LT", "%a1", "%b1", index)),
            format!("%tie = {}", both("and", "%equal", "%first")),
            format!("%only = \"stablehlo.not\"(%n1) : ({truth}) -> {truth}"),
            format!("%nan = {}", both("and", "%n0", "%only")),
            format!("%x = {}", both("or", "%before", "%tie")),
            format!("%chosen = {}", both("or", "%x", "%nan")),
            format!("%c0 = \"stablehlo.select\"(%chosen, %a0, %b0) : ({truth}, {one}, {one}) -> {one}"),
            format!("%c1 = \"stablehlo.select\"(%chosen, %a1, %b1) : ({truth}, {index}, {index}) -> {index}"),
            format!("\"stablehlo.return\"(%c0, %c1) : ({one}, {index}) -> ()"),
        ];
        let text = format!(
            "\"stablehlo.reduce\"({}, {}, {}, {}) ({{\n      ^bb0(%a0: {one}, %a1: {index}, %b0: {one}, %b1: {index}):\n        {}\n    }}) {{dimensions = {}}} : \
             ({whole}, {}, {one}, {index}) -> ({}, {})",
            a.name,
            at.name,
            start.name,
            last.name,
            lines.join("\n        "),
            sizes(&[axis]),
            at.ty(),
            tensor_type(a.dtype, &shape),
            tensor_type(DType::I64, &shape),
        );
        let [best, at] = self.several(text, [(a.dtype, &shape), (DType::I64, &shape)]);
        [best, at]
    }

    /// Writes an operation with several results.
    pub(super) fn several<const N: usize>(
        &self,
        text: String,
        types: [(DType, &Vec<usize>); N],
    ) -> [Value; N] {
        let known = self.several_known.borrow().get(&text).cloned();
        let name = known.unwrap_or_else(|| {
            let name = self.name();
            let _ = writeln!(self.text.borrow_mut(), "    {name}:{N} = {text}");
            self.several_known.borrow_mut().insert(text, Rc::clone(&name));
            name
        });
        let mut at = 0;
        types.map(|(dtype, shape)| {
            at += 1;
            Value { name: format!("{name}#{}", at - 1).into(), dtype, shape: shape.as_slice().into() }
        })
    }

    /// The second of the three results of a loop: `size` integers.
    pub(super) fn looped(&self, text: String, size: usize) -> Value {
        let [_, found, _] =
            self.several(text, [(DType::I64, &vec![]), (DType::I64, &vec![size]), (DType::I64, &vec![size])]);
        found
    }

    /// Sorts lines along the last axis. Also returns the previous positions of the elements. NaN is
    /// greater than all numbers.
    pub(super) fn sort(&self, a: &Value, descending: bool) -> [Value; 2] {
        let axis = a.rank() - 1;
        let at = self.iota(DType::I64, &a.shape, axis);
        let (one, truth) = (tensor_type(a.dtype, &[]), "tensor<i1>");
        let compare = |how: &str, a: &str, b: &str| {
            format!(
                "\"stablehlo.compare\"({a}, {b}) {{comparison_direction = #stablehlo<comparison_direction {how}>}} : ({one}, {one}) -> {truth}"
            )
        };
        // In ascending order, a comes before b if a < b, or if only b is NaN.
        let (first, second) = if descending { ("%b", "%a") } else { ("%a", "%b") };
        let lines = [
            format!("%less = {}", compare("LT", first, second)),
            format!("%nan = {}", compare("NE", second, second)),
            format!("%number = {}", compare("EQ", first, first)),
            format!("%last = \"stablehlo.and\"(%nan, %number) : ({truth}, {truth}) -> {truth}"),
            format!("%before = \"stablehlo.or\"(%less, %last) : ({truth}, {truth}) -> {truth}"),
            format!("\"stablehlo.return\"(%before) : ({truth}) -> ()"),
        ];
        let text = format!(
            "\"stablehlo.sort\"({}, {}) ({{\n      ^bb0(%a: {one}, %b: {one}, %i: tensor<i64>, %j: tensor<i64>):\n        {}\n    }}) {{dimension = {axis} : i64, is_stable = true}} : \
             ({types}) -> ({types})",
            a.name,
            at.name,
            lines.join("\n        "),
            types = format!("{}, {}", a.ty(), at.ty()),
        );
        let shape = a.shape.to_vec();
        self.several(text, [(a.dtype, &shape), (DType::I64, &shape)])
    }

    /// Adds updates to an operand at indices: the transpose of [`gather`](Body::gather). For
    /// `bool`s, the sum is `or`.
    pub(super) fn scatter_add(
        &self,
        a: &Value,
        indices: &Value,
        updates: &Value,
        lookup: &Lookup<'_>,
    ) -> Value {
        let one = tensor_type(a.dtype, &[]);
        let by = if a.dtype == DType::Bool { "or" } else { "add" };
        let text = format!(
            "\"stablehlo.scatter\"({}, {}, {}) ({{\n      ^bb0(%a: {one}, %b: {one}):\n        %c = \"stablehlo.{by}\"(%a, %b) : ({one}, {one}) -> {one}\n        \
             \"stablehlo.return\"(%c) : ({one}) -> ()\n    }}) {{scatter_dimension_numbers = #stablehlo.scatter<{}>, indices_are_sorted = false, unique_indices = false}} : ({}, {}, {}) -> {}",
            a.name,
            indices.name,
            updates.name,
            lookup.axes(
                indices,
                [
                    "update_window_dims",
                    "inserted_window_dims",
                    "input_batching_dims",
                    "scatter_indices_batching_dims",
                    "scatter_dims_to_operand_dims"
                ]
            ),
            a.ty(),
            indices.ty(),
            updates.ty(),
            a.ty(),
        );
        self.written(text, a.dtype, a.shape.clone())
    }
}
