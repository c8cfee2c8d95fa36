//! Lowers programs to StableHLO.
//!
//! ```text
//! Program  --to_engine-->  steps as data  --lower-->  one module of StableHLO
//!                          strided places             slices, transposes, products, ..
//! ```
//!
//! The module's arguments are the program's inputs, then the constants of [`Module::captured`]. Its
//! results are the program's results, then the index that [`Module::checks`] describes, if there
//! are checks. Axes are in the order of the tensors' types. Steps compute the values that this
//! library computes, up to rounding. Checks find errors such as an out-of-range index.

mod attention;
mod chosen;
mod convolution;
mod cudnn;
mod field;
mod kinds;
mod matrices;
mod part;
mod regions;
mod rule;
mod scalar;
mod text;
mod view;

pub use cudnn::AttentionKernel;
pub use text::Precision;

use crate::error::XlaError;
use crate::mesh::flow::{Flow, Read};
use crate::mesh::{Placement, Split};
use std::collections::{HashMap, HashSet};
use std::panic::Location;
use text::{Body, Value};
use typed_dims::program::engine::EngineProgram;
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::{SavedTable, SavedWork};
use view::Loop;

/// Options for lowering a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The precision of products of `f32`.
    pub precision: Precision,
    /// The implementation of attention.
    pub attention: AttentionKernel,
}

/// A program as a module of StableHLO.
#[derive(Clone, Debug)]
pub struct Module {
    /// The module, in the generic form of MLIR.
    pub text: String,
    /// The indices of the constants that are passed as arguments after the inputs.
    pub captured: Vec<usize>,
    /// The checks of the module. If there are any, the module's last result is an `i32`: the index
    /// of the first failed check, or the number of checks if none failed.
    pub checks: Vec<Check>,
    /// The inputs that results may overwrite: pairs of an input and a result.
    pub donated: Vec<(usize, usize)>,
    /// The results of `donated` that are state: if a check fails, they are their inputs, unchanged.
    pub kept: Vec<usize>,
}

/// A condition for the results of a module, such as that computed indices are in range.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The problem if the condition is false, such as "an index is out of range".
    pub what: &'static str,
    /// The name of the operation that needs the condition.
    pub operation: &'static str,
    /// The location of the operation in the user's program.
    pub origin: Option<&'static Location<'static>>,
}

/// Captured tensors with more bytes are arguments of the module instead of text in it.
const INLINE: usize = 1 << 10;

/// Lowers a program. `donated` has the indices of inputs whose memory the results may reuse. The
/// memory of each of them goes to a result of the same type and sizes, if there is a free one: to
/// the result with the same path in its value, or else to the first.
///
/// # Errors
///
/// Returns an error if a step has no lowering. The error names the step's operation.
///
/// # Panics
///
/// Panics if an index in `donated` is not less than the number of inputs.
pub fn lower(program: &EngineProgram, options: Options, donated: &[usize]) -> Result<Module, XlaError> {
    lower_with(program, options, donated, None)
}

/// [`lower`] for the devices of a mesh.
pub(crate) fn lower_with(
    program: &EngineProgram,
    options: Options,
    donated: &[usize],
    sharded: Option<&Sharded<'_>>,
) -> Result<Module, XlaError> {
    let body = Body::new(options.precision);
    let mut lower = Lower {
        body,
        program,
        attention: options.attention,
        values: Vec::new(),
        pieces: HashMap::new(),
        tables: HashMap::new(),
        checked: HashSet::new(),
        checks: Vec::new(),
        step: 0,
        is_sharded: sharded.is_some(),
        splits: Vec::new(),
        job: 0,
    };
    let mut reads = HashMap::new();
    let mut arguments = Vec::new();
    for (number, input) in program.inputs.iter().enumerate() {
        let sizes = input.tensor.sizes();
        let name = format!("%arg{number}");
        let argument = Value { name: name.into(), dtype: input.tensor.dtype, shape: sizes.as_slice().into() };
        arguments.push(argument.clone());
        lower.values.push(lower.body.transpose(&argument, &input.order));
    }
    let mut captured = Vec::new();
    for (number, constant) in program.recording.constants.iter().enumerate() {
        let bytes = &constant.elements.0;
        let len = bytes.len() / constant.dtype.bytes().max(1);
        if bytes.len() <= INLINE {
            lower.values.push(lower.body.constant(constant.dtype, &[len], bytes));
        } else {
            let name = format!("%arg{}", arguments.len());
            let argument = Value { name: name.into(), dtype: constant.dtype, shape: [len].into() };
            captured.push(number);
            arguments.push(argument.clone());
            lower.values.push(argument);
        }
    }
    let inputs = program.inputs.len();
    for (number, step) in program.recording.steps.iter().enumerate() {
        lower.step = inputs + number;
        let shape: Vec<usize> = match &program.values[inputs + number].axes {
            Some(axes) => axes.iter().map(|axis| axis.size).collect(),
            None => vec![step.len],
        };
        let stored =
            sharded.map(|sharded| lower.split_operands(sharded, &sharded.flow.reads[number], &mut reads));
        if let Some(sharded) = sharded {
            (lower.splits, lower.job) = (sharded.flow.loops[number].clone(), 0);
        }
        let value = match &step.work {
            SavedWork::Parts(parts) => lower.sum_of_parts(parts, step.dtype, &shape)?,
            SavedWork::Rule(rule) => lower.rule(rule, step.dtype, step.len)?,
        };
        let value = lower.body.reshape(&value, &shape);
        for (value, piece, own) in stored.into_iter().flatten() {
            *lower.piece_mut(value, piece) = own;
        }
        lower.values.push(value);
        if let Some(sharded) = sharded {
            for (piece, own) in sharded.flow.steps[number].iter().enumerate() {
                let value = lower.values.len() - 1;
                let mut found = lower.piece_mut(value, piece).clone();
                found = lower.constrained(&found, &sharded.placement.text(&own.made));
                if own.made != own.split {
                    found = lower.constrained(&found, &sharded.placement.text(&own.split));
                }
                *lower.piece_mut(value, piece) = found;
            }
        }
    }
    let mut results: Vec<Value> = Vec::new();
    for (result, &number) in program.results.iter().zip(&program.recording.outputs) {
        let sizes = result.tensor.sizes();
        let loops = sizes.iter().zip(&result.strides).map(|(&size, &stride)| Loop { size, stride });
        let loops: Vec<Loop> = loops.collect();
        let (value, start) = lower.read_piece(number, result.start as isize, &loops);
        results.push(lower.body.view(&value, start, &loops));
    }
    let (pairs, kept) = reused(program, donated, sharded);
    let failed = lower.first_failure();
    if let Some((failed, is_right)) = &failed {
        // State that the program consumes stays unchanged if a check fails.
        for &(input, result) in pairs.iter().filter(|own| kept.contains(&own.1)) {
            results[result] = lower.body.select(is_right, &results[result], &arguments[input]);
        }
        results.push(failed.clone());
    }
    let parameters: Vec<String> = arguments
        .iter()
        .enumerate()
        .map(|(number, argument)| {
            let mut attributes = Vec::new();
            if let Some(&(_, result)) = pairs.iter().find(|own| own.0 == number) {
                attributes.push(format!("tf.aliasing_output = {result} : i32"));
            }
            if let Some(sharded) = sharded {
                let sharding = sharded.text(&sharded.flow.inputs, number, argument);
                attributes.push(format!("sdy.sharding = {sharding}"));
            }
            format!("{{{}}}", attributes.join(", "))
        })
        .collect();
    let result_attributes: Vec<String> = results
        .iter()
        .enumerate()
        .map(|(number, result)| match sharded {
            Some(sharded) => {
                format!("{{sdy.sharding = {}}}", sharded.text(&sharded.flow.results, number, result))
            }
            None => "{}".into(),
        })
        .collect();
    let types = |values: &[Value]| values.iter().map(Value::ty).collect::<Vec<_>>().join(", ");
    let names = |values: &[Value]| values.iter().map(|own| &*own.name).collect::<Vec<_>>().join(", ");
    let typed: Vec<String> = arguments.iter().map(|own| format!("{}: {}", own.name, own.ty())).collect();
    let mesh = sharded.map(|own| own.placement.mesh.text()).unwrap_or_default();
    let text = format!(
        "\"builtin.module\"() ({{\n{mesh}  \"func.func\"() ({{\n    ^bb0({}):\n{}    \"func.return\"({}) : ({}) -> ()\n  }}) {{sym_name = \"main\", function_type = ({}) -> ({}), \
         arg_attrs = [{}], res_attrs = [{}], sym_visibility = \"public\"}} : () -> ()\n}}) {{sym_name = \"program\"}} : () -> ()\n",
        typed.join(", "),
        lower.body.text.borrow(),
        names(&results),
        types(&results),
        types(&arguments),
        types(&results),
        parameters.join(", "),
        result_attributes.join(", "),
    );
    let checks = lower.checks.iter().map(|(_, check)| *check).collect();
    Ok(Module { text, captured, checks, donated: pairs, kept })
}

/// The inputs that results overwrite, and the results that are state: see [`Module::donated`] and
/// [`Module::kept`].
///
/// A result is state if there is no doubt which input it replaces. Among the donated inputs and the
/// results that have the type, sizes and split of this result, either exactly one input and one
/// result have its path, or there are as many inputs as results.
fn reused(
    program: &EngineProgram,
    donated: &[usize],
    sharded: Option<&Sharded<'_>>,
) -> (Vec<(usize, usize)>, Vec<usize>) {
    let is_alike = |input: usize, result: usize| {
        let (own, other) = (&program.inputs[input].tensor, &program.results[result].tensor);
        (own.dtype, own.sizes()) == (other.dtype, other.sizes())
            && sharded.is_none_or(|own| own.flow.inputs[input] == own.flow.results[result])
    };
    let inputs = |result: usize| donated.iter().copied().filter(move |&own| is_alike(own, result));
    let results = |input: usize| (0..program.results.len()).filter(move |&own| is_alike(input, own));
    let has_path = |input: usize, result: usize| {
        let path = path_within(&program.inputs[input].tensor.path);
        !path.is_empty() && path == path_within(&program.results[result].tensor.path)
    };
    let (mut pairs, mut kept): (Vec<(usize, usize)>, Vec<usize>) = (Vec::new(), Vec::new());
    for &input in donated {
        let of: Vec<usize> = results(input).filter(|&own| has_path(input, own)).collect();
        if let [result] = of[..]
            && inputs(result).filter(|&own| has_path(own, result)).count() == 1
        {
            pairs.push((input, result));
            kept.push(result);
        }
    }
    for &input in donated {
        if pairs.iter().any(|own| own.0 == input) {
            continue;
        }
        let free = results(input).find(|result| !pairs.iter().any(|own| own.1 == *result));
        let Some(result) = free else { continue };
        pairs.push((input, result));
        if inputs(result).count() == results(input).count() {
            kept.push(result);
        }
    }
    (pairs, kept)
}

/// A path without its first index, which is the position in a tuple of inputs or results.
fn path_within(path: &str) -> &str {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    if first.parse::<usize>().is_ok() { rest } else { path }
}

/// The split of a program over a mesh.
pub(crate) struct Sharded<'s> {
    pub(crate) placement: &'s Placement,
    pub(crate) flow: &'s Flow,
}

impl Sharded<'_> {
    /// The sharding of an argument or a result. Arguments and results beyond those of the program
    /// are whole.
    fn text(&self, splits: &[Split], number: usize, value: &Value) -> String {
        let whole = vec![None; value.rank()];
        self.placement.text(splits.get(number).unwrap_or(&whole))
    }
}

/// A program that is being lowered, step by step.
struct Lower<'p> {
    body: Body,
    program: &'p EngineProgram,
    attention: AttentionKernel,
    /// The values so far: of inputs, constants and steps.
    values: Vec<Value>,
    /// For values that consist of several tensors: the offset of each, and the tensor.
    pieces: HashMap<usize, Vec<(usize, Value)>>,
    /// The offsets of the tables that have been lowered.
    tables: HashMap<usize, Value>,
    /// The computed indices that have been checked: the number of the table, and the position of
    /// the index in it.
    checked: HashSet<(usize, usize)>,
    /// The checks and their conditions.
    checks: Vec<(Value, Check)>,
    /// The position of the current step's result in `program.values`.
    step: usize,
    /// Whether the program runs on a mesh.
    is_sharded: bool,
    /// On a mesh, the splits of the loops of each job of the current step.
    splits: Vec<Split>,
    /// The position of the current job in `splits`.
    job: usize,
}

/// Values in a split other than the stored one.
type Reads = HashMap<(usize, usize, Split), Value>;

impl Lower<'_> {
    /// The error for a step without a lowering.
    fn refused(&self, what: impl Into<String>) -> XlaError {
        let value = self.program.values.get(self.step);
        XlaError::NotLowered {
            what: what.into(),
            operation: value.map_or("a result", |value| value.operation),
            origin: value.and_then(|value| value.origin),
        }
    }

    /// Adds a check: the results of the module are only valid if the condition is true. `what` is
    /// the problem if it is false.
    fn check(&mut self, condition: Value, what: &'static str) {
        let value = &self.program.values[self.step];
        self.checks.push((condition, Check { what, operation: value.operation, origin: value.origin }));
    }

    /// The index of the first check that failed, and whether none did. `None` if there are no
    /// checks.
    fn first_failure(&self) -> Option<(Value, Value)> {
        let body = &self.body;
        let count = body.int(self.checks.len() as i64, DType::I32);
        let mut failed = None;
        for (number, (condition, _)) in self.checks.iter().enumerate().rev() {
            let own = body.int(number as i64, DType::I32);
            let before = failed.unwrap_or_else(|| count.clone());
            failed = Some(body.select(condition, &before, &own));
        }
        let failed = failed?;
        let is_right = body.compare("EQ", &failed, &count);
        Some((failed, is_right))
    }

    /// Whether a loop of the current job is split over devices.
    fn is_split(&self, axis: usize) -> bool {
        self.splits.get(self.job).is_some_and(|own| own[axis].is_some())
    }

    /// A tensor of a value: the value itself, or one of its pieces.
    fn piece_mut(&mut self, value: usize, piece: usize) -> &mut Value {
        match self.pieces.get_mut(&value) {
            Some(pieces) => &mut pieces[piece].1,
            None => &mut self.values[value],
        }
    }

    /// The piece of a value that contains all positions of some loops, or the value itself if no
    /// piece does. Also returns the offset of the loops in that tensor.
    fn read_piece(&self, value: usize, offset: isize, loops: &[Loop]) -> (Value, isize) {
        let ends = |from: bool| -> isize {
            let reach = loops.iter().map(|own| (own.size as isize - 1) * own.stride);
            offset + reach.filter(|own| (*own < 0) == from).sum::<isize>()
        };
        let is_within = |(start, own): &&(usize, Value)| {
            let start = *start as isize;
            start <= ends(true) && ends(false) < start + own.len() as isize
        };
        match self.pieces.get(&value).and_then(|pieces| pieces.iter().find(is_within)) {
            Some((start, own)) => (own.clone(), offset - *start as isize),
            None => (self.values[value].clone(), offset),
        }
    }

    /// Replaces the operands that a step reads in a split other than the stored one. Returns the
    /// stored operands.
    fn split_operands(
        &mut self,
        sharded: &Sharded<'_>,
        reads: &[Read],
        known: &mut Reads,
    ) -> Vec<(usize, usize, Value)> {
        let mut stored = Vec::new();
        for Read { value, piece, split } in reads {
            let own = self.piece_mut(*value, *piece).clone();
            let read = known.entry((*value, *piece, split.clone()));
            let read = read.or_insert_with(|| self.constrained(&own, &sharded.placement.text(split))).clone();
            *self.piece_mut(*value, *piece) = read;
            stored.push((*value, *piece, own));
        }
        stored
    }

    fn constrained(&self, value: &Value, sharding: &str) -> Value {
        let ty = value.ty();
        let text =
            format!("\"sdy.sharding_constraint\"({}) {{sharding = {sharding}}} : ({ty}) -> {ty}", value.name);
        self.body.written(text, value.dtype, value.shape.clone())
    }

    fn table_source(&self, number: usize) -> &SavedTable {
        &self.program.recording.tables[number]
    }
}
