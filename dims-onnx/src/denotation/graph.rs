//! Walks a graph: visits its nodes in order, and finds their inputs by name.

use super::node::{Call, Results, axis, counted};
use super::report::{BrokenNode, DenotationMismatch, DenotationReport, DenotedOutput, WrongAxis};
use super::value::{Axis, Meaning, Size, Value, agree};
use super::{TIME, ops};
use crate::error::shown;
use crate::proto::{GraphProto, ModelProto, NodeProto};
use std::collections::HashMap;

type Values<'a> = HashMap<&'a str, Value>;

pub struct Walk<'a> {
    pub report: DenotationReport,
    /// The values of each graph that is being walked, the outermost first.
    scopes: Vec<Values<'a>>,
    /// The model's declarations of values, for each of these graphs.
    declared: Vec<Values<'a>>,
    /// Whether `Scan` has version 8, whose operands have a batch axis. This version is not
    /// supported.
    is_scan_batched: bool,
}

impl<'a> Walk<'a> {
    pub fn new(model: &ModelProto) -> Self {
        let is_scan_batched =
            model.opset_import.iter().any(|opset| is_standard(&opset.domain) && opset.version < 9);
        Walk {
            report: DenotationReport::default(),
            scopes: Vec::new(),
            declared: Vec::new(),
            is_scan_batched,
        }
    }

    /// Walks the outermost graph, and reports its outputs.
    pub fn whole(&mut self, graph: &'a GraphProto) {
        let outputs = self.graph(graph, &[]);
        let meaning = |axis: &Axis| axis.meaning.as_deref().map(str::to_owned);
        let named = graph.output.iter().zip(&outputs).map(|(info, value)| DenotedOutput {
            name: info.name.clone(),
            axes: value.axes.as_ref().map(|axes| axes.iter().map(meaning).collect()),
        });
        self.report.outputs = named.collect();
    }

    /// Walks a graph with values for its first inputs. Returns its outputs.
    fn graph(&mut self, graph: &'a GraphProto, given: &[Value]) -> Vec<Value> {
        let all = graph.value_info.iter().chain(&graph.output);
        self.declared.push(all.map(|info| (info.name.as_str(), Value::declared(info))).collect());
        let mut values = Values::new();
        for weight in &graph.initializer {
            values.insert(&weight.name, Value::constant(weight));
        }
        for info in &graph.value_info {
            // The model may declare a weight, too.
            if let Some(value) = values.get_mut(info.name.as_str()) {
                *value = filled(std::mem::take(value), &Value::declared(info));
            }
        }
        for (at, info) in graph.input.iter().enumerate() {
            let value =
                values.remove(info.name.as_str()).or_else(|| given.get(at).cloned()).unwrap_or_default();
            values.insert(&info.name, filled(value, &Value::declared(info)));
        }
        self.scopes.push(values);
        for node in &graph.node {
            self.node(node);
        }
        let outputs = graph.output.iter().map(|info| self.value(&info.name)).collect();
        self.scopes.pop();
        self.declared.pop();
        outputs
    }

    /// The value of a name, from the innermost graph that has it.
    fn value(&self, name: &str) -> Value {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned().unwrap_or_default()
    }

    fn node(&mut self, node: &'a NodeProto) {
        let label = if node.name.is_empty() { format!("#{}", self.report.nodes) } else { node.name.clone() };
        self.report.nodes += 1;
        let inputs = node.input.iter().map(|name| self.value(name)).collect();
        let mut call = Call::new(node, label.clone(), inputs);
        let results = if is_standard(&node.domain) {
            ops::run(&mut call).or_else(|| self.with_graphs(&mut call))
        } else {
            None
        };
        self.report.mismatches.append(&mut call.mismatches);
        let results = match results {
            Some(Ok(results)) => results,
            Some(Err(why)) => {
                self.broken(node, &label, why);
                Vec::new()
            }
            None => {
                *self.report.opaque.entry(node.op_type.clone()).or_default() += 1;
                Vec::new()
            }
        };
        let mut results = results.into_iter();
        for (position, name) in node.output.iter().enumerate() {
            let result = results.next().unwrap_or_default();
            // (A result without a name is one that the model does not use.)
            if name.is_empty() {
                continue;
            }
            let result = self.as_declared(node, &label, position, result);
            self.scopes.last_mut().expect("a graph is being walked").insert(name, result);
        }
    }

    fn broken(&mut self, node: &NodeProto, label: &str, why: String) {
        self.report.broken.push(BrokenNode { node: label.to_owned(), operator: node.op_type.clone(), why });
    }

    /// A result, completed by the model's declaration of it. Reports differences.
    fn as_declared(&mut self, node: &NodeProto, label: &str, position: usize, result: Value) -> Value {
        let name = &node.output[position];
        let Some(declared) = self.declared.last().and_then(|declared| declared.get(name.as_str())).cloned()
        else {
            return result;
        };
        let (Some(axes), Some(said)) = (&result.axes, &declared.axes) else {
            return filled(result, &declared);
        };
        if axes.len() != said.len() {
            let why = format!(
                "result `{}` has {}, but the model says {}",
                shown(name),
                counted(axes.len()),
                said.len()
            );
            self.broken(node, label, why);
            return declared;
        }
        let wrong = differing_meanings(axes, said);
        if wrong.is_empty() {
            if let Some(at) = differing_size(axes, said) {
                let (found, said) = (&axes[at].size, &said[at].size);
                let why = format!(
                    "axis {at} of result `{}` has the size {found}, but the model says {said}",
                    shown(name)
                );
                self.broken(node, label, why);
                return declared;
            }
            return filled(result, &declared);
        }
        let names =
            |axes: &[Axis]| axes.iter().map(|axis| axis.meaning.as_deref().map(str::to_owned)).collect();
        self.report.mismatches.push(DenotationMismatch {
            node: label.to_owned(),
            operator: node.op_type.clone(),
            position,
            is_result: true,
            value: name.clone(),
            axes: wrong,
            found: names(axes),
            expected: names(said),
        });
        // Where the result and its declaration do not agree, the meaning is dropped.
        let quiet = axes.iter().zip(said.iter()).map(|(axis, said)| {
            let agree = agree(&axis.meaning, &said.meaning);
            let meaning = axis.meaning.clone().or_else(|| said.meaning.clone()).filter(|_| agree);
            Axis { size: axis.size.or(&said.size), meaning }
        });
        Value { axes: Some(quiet.collect()), integers: result.integers.clone() }
    }

    /// Operators that contain graphs.
    fn with_graphs(&mut self, call: &mut Call<'a>) -> Option<Results> {
        match call.node.op_type.as_str() {
            "If" => {
                let branches: Vec<Vec<Value>> = ["then_branch", "else_branch"]
                    .iter()
                    .filter_map(|name| call.graph(name))
                    .map(|graph| self.graph(graph, &[]))
                    .collect();
                let count = branches.iter().map(Vec::len).min().unwrap_or(0);
                let joined = |at: usize| branches.iter().map(|branch| &branch[at]).cloned().reduce(either);
                Some(Ok((0..count).filter_map(joined).collect()))
            }
            "Loop" => Some(self.looped(call)),
            "Scan" if !self.is_scan_batched => Some(self.scanned(call)),
            _ => None,
        }
    }

    /// `Loop`. Inputs: the number of iterations, a condition, and states. Outputs: the states, then
    /// the values of each iteration, stacked along a new axis.
    fn looped(&mut self, call: &mut Call<'a>) -> Results {
        let body = call.graph("body").ok_or("there is no body")?;
        let states = call.inputs.len().saturating_sub(2);
        // The sizes of a state may change with each iteration.
        let states_in: Vec<Value> = call.inputs.iter().skip(2).map(without_sizes).collect();
        let given: Vec<Value> = [Value::single(Size::Unknown), Value::with_axes(Vec::new())]
            .into_iter()
            .chain(states_in)
            .collect();
        let outputs = self.graph(body, &given);
        let results = outputs.into_iter().skip(1).enumerate().map(|(at, value)| {
            if at < states { without_sizes(&value) } else { stacked(&value, 0, None).unwrap_or_default() }
        });
        Ok(results.collect())
    }

    /// `Scan`: states, and sequences that are passed to the body one step at a time.
    fn scanned(&mut self, call: &mut Call<'a>) -> Results {
        let body = call.graph("body").ok_or("there is no body")?;
        let count = call.int("num_scan_inputs").and_then(|count| usize::try_from(count).ok());
        let count = count
            .filter(|&count| count <= call.inputs.len())
            .ok_or("`num_scan_inputs` is not a valid number of inputs")?;
        let states = call.inputs.len() - count;
        // The elements of a state may change with each iteration.
        let without_elements = |value: &Value| Value { integers: None, ..value.clone() };
        let mut given: Vec<Value> = call.inputs[..states].iter().map(without_elements).collect();
        let mut time: Meaning = None;
        let along =
            |name: &str, at: usize| call.ints(name).and_then(|axes| axes.get(at)).copied().unwrap_or(0);
        let inputs_along: Vec<i64> = (0..count).map(|at| along("scan_input_axes", at)).collect();
        let mut outputs_along: Vec<i64> = Vec::new();
        for at in 0..body.output.len().saturating_sub(states) {
            outputs_along.push(along("scan_output_axes", at));
        }
        for (at, number) in inputs_along.into_iter().enumerate() {
            let input = states + at;
            let Some(axes) = call.axes(input) else {
                given.push(Value::unknown());
                continue;
            };
            let at = axis(number, axes.len())?;
            let mut format = vec![None; axes.len()];
            format[at] = Some(TIME);
            call.expect(input, &format, false)?;
            let mut axes = call.axes(input).map(|axes| axes.to_vec()).unwrap_or_default();
            time = time.or(axes.remove(at).meaning);
            given.push(Value::with_axes(axes));
        }
        let outputs = self.graph(body, &given);
        let mut results = Vec::new();
        for (at, value) in outputs.iter().enumerate() {
            results.push(match at.checked_sub(states) {
                None => without_elements(value),
                Some(output) => {
                    stacked(value, outputs_along.get(output).copied().unwrap_or(0), time.clone())?
                }
            });
        }
        Ok(results)
    }
}

fn differing_meanings(axes: &[Axis], said: &[Axis]) -> Vec<WrongAxis> {
    let wrong = |(at, (axis, said)): (usize, (&Axis, &Axis))| match (&axis.meaning, &said.meaning) {
        (Some(found), Some(expected)) if !agree(&axis.meaning, &said.meaning) => Some(WrongAxis {
            axis: at,
            found: found.to_string(),
            expected: expected.to_string(),
            like: Some("the model declares for this value".to_owned()),
        }),
        _ => None,
    };
    axes.iter().zip(said).enumerate().filter_map(wrong).collect()
}

/// The first axis whose size and declared size are different numbers.
fn differing_size(axes: &[Axis], said: &[Axis]) -> Option<usize> {
    axes.iter().zip(said).position(|(axis, said)| match (&axis.size, &said.size) {
        (Size::Fixed(found), Size::Fixed(said)) => found != said,
        _ => false,
    })
}

/// A value with a new axis.
fn stacked(value: &Value, at: i64, meaning: Meaning) -> Result<Value, String> {
    let Some(axes) = &value.axes else { return Ok(Value::unknown()) };
    let at = axis(at, axes.len() + 1)?;
    let mut axes = axes.to_vec();
    axes.insert(at, Axis { size: Size::Unknown, meaning });
    Ok(Value::with_axes(axes))
}

fn without_sizes(value: &Value) -> Value {
    let axes = value.axes.as_ref().map(|axes| axes.iter().map(|axis| axis.resized(Size::Unknown)).collect());
    Value { axes, integers: None }
}

/// The properties that two values share.
fn either(a: Value, b: Value) -> Value {
    let (Some(left), Some(right)) = (&a.axes, &b.axes) else { return Value::unknown() };
    if left.len() != right.len() {
        return Value::unknown();
    }
    let both = left.iter().zip(right.iter()).map(|(a, b)| Axis {
        size: if a.size == b.size { a.size.clone() } else { Size::Unknown },
        meaning: if a.meaning == b.meaning { a.meaning.clone() } else { None },
    });
    Value::with_axes(both.collect())
}

/// A value completed by its declaration.
fn filled(value: Value, said: &Value) -> Value {
    match (&value.axes, &said.axes) {
        (None, _) => Value { axes: said.axes.clone(), integers: value.integers },
        (Some(axes), Some(said)) if axes.len() == said.len() && axes != said => {
            let both = axes.iter().zip(said.iter()).map(|(axis, said)| Axis {
                size: axis.size.or(&said.size),
                meaning: axis.meaning.clone().or_else(|| said.meaning.clone()),
            });
            Value { axes: Some(both.collect()), integers: value.integers }
        }
        _ => value,
    }
}

fn is_standard(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}
