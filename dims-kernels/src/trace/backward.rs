//! The backward pass: visits steps from the last to the first, and adds to the gradients of their
//! operands.

use crate::error::{Error, Origin};
use crate::loops::steps::Backward;
use crate::memory::buffer::Buffer;
use crate::ops::code::{BinaryOpcode, DType, RegisterKind};
use crate::program::interpreter::ProgramOutput;
use crate::scalar::Real;
use crate::trace::compute::{covers, floats, mapped};
use crate::trace::{
    Calls, Field, FieldSource, GradientCall, Held, Node, NodeAxes, NodeStep, Part, StridedPlace, evaluate,
};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

std::thread_local! {
    /// Whether backward passes of recorded functions compute constant cotangents from outputs.
    static COMPUTES_COTANGENTS: Cell<bool> = const { Cell::new(false) };
    /// Whether a backward pass in a recorded function had a constant cotangent.
    static HAD_CONSTANT: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function. Meanwhile, a backward pass in a recorded function multiplies constant
/// cotangents by 1, computed from the outputs. All its steps then depend on inputs, so the program
/// runs them again. Otherwise, the results of steps that read only constants are constants.
pub fn with_computed_cotangents<X>(f: impl FnOnce() -> X) -> X {
    /// Restores the flag when dropped.
    struct FlagBefore(bool);
    impl Drop for FlagBefore {
        fn drop(&mut self) {
            COMPUTES_COTANGENTS.set(self.0);
        }
    }
    let _before = FlagBefore(COMPUTES_COTANGENTS.replace(true));
    f()
}

/// Calls a function, and tells whether a backward pass in a recorded function had a constant
/// cotangent meanwhile.
pub fn had_constant_cotangent<X>(f: impl FnOnce() -> X) -> (X, bool) {
    let before = HAD_CONSTANT.replace(false);
    let result = f();
    let had = HAD_CONSTANT.get();
    HAD_CONSTANT.set(before || had);
    (result, had)
}

/// The step of an output, if it is recorded and its cotangent is a constant.
fn recorded_with_constant<'o>(output: &'o Arc<dyn Held>, cotangent: &Arc<dyn Held>) -> Option<&'o Node> {
    let node = output.node().filter(|node| node.is_recorded() && node.dtype.is_float())?;
    let is_constant = cotangent.node().is_none() && cotangent.dtype() == Some(node.dtype);
    (is_constant && node.len > 0).then_some(node)
}

/// The cotangent of an output, times 1 computed from the output, whose step is `node`.
fn computed_cotangent(
    output: &Arc<dyn Held>,
    cotangent: &Arc<dyn Held>,
    node: &Node,
) -> Result<Arc<dyn Held>, Error> {
    fn of<T: ProgramOutput + Real>(
        field: Field,
        place: StridedPlace,
        of: &Node,
    ) -> Result<Arc<dyn Held>, Error> {
        let data = mapped::<T>(&field, &[0])?;
        // The calls that take gradients are left out: the cotangent does not vary with the output.
        let calls: Calls =
            of.calls.iter().filter(|call| call.records && !call.has_ended()).cloned().collect();
        let step = NodeStep::Parts(vec![Part { field, place }]);
        let node = Node::of_calls(of.dtype, data.len(), step, of.origin, calls);
        if let Some(axes) = of.axes() {
            node.lies_along(|| NodeAxes::from_slice(axes));
        }
        Ok(Buffer::traced(data, node).held())
    }
    let place = StridedPlace::strided(0, [1]);
    let [x, field] = [output, cotangent].map(|held| Field::held(&[node.len], held, place.clone()));
    let field = field.map([&x], |build, cotangent, [x]| {
        // (One of the two tests is true, even if the output is NaN.)
        let kind = build.kind(cotangent);
        let [equal, other] = [BinaryOpcode::Eq, BinaryOpcode::Ne].map(|op| {
            let test = build.binary(op, x, x);
            build.cast_kind(kind, test)
        });
        let one = build.binary(BinaryOpcode::Add, equal, other);
        build.binary(BinaryOpcode::Mul, cotangent, one)
    });
    floats!(node.dtype, of(field, place, node))
}

/// The gradients with respect to some nodes. If no step adds to the gradient of a node, the node
/// has no entry, and its gradient is 0.
pub struct Gradients {
    found: BTreeMap<u64, Arc<dyn Held>>,
}

impl Gradients {
    /// The gradient with respect to a node; `None` if no step adds to it.
    pub fn take(&mut self, node: &Node) -> Option<Arc<dyn Held>> {
        self.found.remove(&node.id)
    }
}

/// The gradients of outputs, each with its cotangent, with respect to the nodes `by`.
///
/// They are recorded as steps, to be differentiated or run again, if `always_record` is set, if a
/// cotangent is traced, or if the outputs depend on variables of calls that have not ended. The
/// calls in `own`, which are the caller's, do not count.
///
/// The outputs are dropped at the start, and each step after its pull-back. If nothing else holds
/// the program, the values that a step has read are freed during the backward pass.
pub fn gradients(
    mut outputs: Vec<(Arc<dyn Held>, Arc<dyn Held>)>,
    by: &[Arc<Node>],
    own: &[&GradientCall],
    always_record: bool,
) -> Result<Gradients, Error> {
    for (output, cotangent) in &mut outputs {
        if let Some(node) = recorded_with_constant(output, cotangent) {
            HAD_CONSTANT.set(true);
            if COMPUTES_COTANGENTS.get() {
                *cotangent = computed_cotangent(output, cotangent, node)?;
            }
        }
    }
    let targets: Vec<u64> = by.iter().map(|node| node.id).collect();
    let roots: Vec<Arc<Node>> = outputs.iter().filter_map(|(output, _)| output.node().cloned()).collect();
    let between = StepsBetween::of(&roots, &targets);
    let depend_on_others = roots.iter().any(|node| depends_on_others(node, own));
    let recorded =
        always_record || depend_on_others || outputs.iter().any(|(_, cotangent)| cotangent.is_traced());
    // Steps that are recorded only to run again need no derivatives.
    let differentiated = always_record
        || roots.iter().any(|node| is_differentiated_by_others(node, own))
        || outputs.iter().any(|(_, cotangent)| cotangent.node().is_some_and(|node| node.is_differentiated()));
    let recorded = match (recorded, differentiated) {
        (false, _) => PullBackSteps::Run,
        (true, false) => PullBackSteps::RunAgain,
        (true, true) => PullBackSteps::Differentiated,
    };
    // The nodes to visit, from the last to the first: each with its elements, the parts of its
    // gradient, and the source location of the first step that adds a part (for an output, its own
    // location).
    let mut open: BTreeMap<u64, (Arc<Node>, Arc<dyn Held>, Vec<Part>, Origin)> = BTreeMap::new();
    for (output, cotangent) in &outputs {
        let Some(node) = output.node() else { continue };
        if !between.is_on_way(node.id) {
            continue;
        }
        let sizes = [node.len];
        let place = StridedPlace::strided(0, [1]);
        let field = Field::held(&sizes, cotangent, place.clone());
        let new = || (Arc::clone(node), Arc::clone(output), Vec::new(), node.origin);
        let entry = open.entry(node.id).or_insert_with(new);
        entry.2.push(Part { field, place });
    }
    drop((outputs, roots));
    let mut found = BTreeMap::new();
    while let Some((id, (node, value, parts, from))) = open.pop_last() {
        let is_on_way = |id| between.is_on_way(id);
        let pulled_parts = match &node.step {
            NodeStep::Rule(rule) if recorded != PullBackSteps::Differentiated && !targets.contains(&id) => {
                let _explained = Backward::of(node.origin);
                rule.pull_parts(&value, &parts, recorded.are_recorded())?
            }
            _ => None,
        };
        let pulled = match pulled_parts {
            Some(pulled) => pulled,
            None => {
                let cotangent = match whole(&parts, node.dtype, node.len) {
                    Some(memory) => memory,
                    None => {
                        let _explained = Backward::of(from);
                        let cotangent = evaluate(&parts, node.len, node.dtype, recorded.are_recorded())?;
                        if let (Some(own), Some(axes)) = (cotangent.node(), node.axes()) {
                            own.lies_along(|| axes.iter().copied().collect());
                        }
                        cotangent
                    }
                };
                // Memory that only the parts read can be freed at this point.
                drop(parts);
                if targets.contains(&id) {
                    found.insert(id, Arc::clone(&cotangent));
                }
                pull(&node, &value, cotangent, recorded, &is_on_way)?
            }
        };
        let (sources, origin) = (node.sources(), node.origin);
        for (node, part) in pulled {
            if !between.is_on_way(node.id) {
                continue;
            }
            if let Some(entry) = open.get_mut(&node.id) {
                entry.2.push(part);
                continue;
            }
            let read = sources.iter().find(|held| held.node().is_some_and(|own| own.id == node.id));
            let value = Arc::clone(read.expect("the gradient is by an operand of the step"));
            open.insert(node.id, (node, value, vec![part], origin));
        }
    }
    Ok(Gradients { found })
}

/// Whether and how the steps of a backward pass are recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PullBackSteps {
    /// They are not recorded.
    Run,
    /// They are recorded to run again.
    RunAgain,
    /// They are recorded so that their gradients can be taken.
    Differentiated,
}

impl PullBackSteps {
    fn are_recorded(self) -> bool {
        self != PullBackSteps::Run
    }
}

/// The parts that a step adds to the requested gradients of its operands.
fn pull(
    node: &Node,
    value: &Arc<dyn Held>,
    cotangent: Arc<dyn Held>,
    recorded: PullBackSteps,
    asked: &dyn Fn(u64) -> bool,
) -> Result<Vec<(Arc<Node>, Part)>, Error> {
    let _explained = Backward::of(node.origin);
    let parts = match &node.step {
        NodeStep::Variable(_) => return Ok(Vec::new()),
        NodeStep::Rule(rule) => {
            if recorded == PullBackSteps::RunAgain
                && let Some(pulled) = rule.pull_to_run_again(value, &cotangent)?
            {
                return Ok(pulled);
            }
            return rule.pull_by(value, cotangent, recorded.are_recorded(), asked);
        }
        NodeStep::Parts(parts) => parts,
    };
    pull_each(parts, &cotangent, recorded, asked)
}

/// The gradient of a sum of parts: for each requested operand, the parts that are added to its
/// gradient.
pub fn pull_parts(
    parts: &[Part],
    cotangent: &Arc<dyn Held>,
    recorded: bool,
    asked: &dyn Fn(u64) -> bool,
) -> Result<Vec<(Arc<Node>, Part)>, Error> {
    let recorded = if recorded { PullBackSteps::Differentiated } else { PullBackSteps::Run };
    pull_each(parts, cotangent, recorded, asked)
}

fn pull_each(
    parts: &[Part],
    cotangent: &Arc<dyn Held>,
    recorded: PullBackSteps,
    asked: &dyn Fn(u64) -> bool,
) -> Result<Vec<(Arc<Node>, Part)>, Error> {
    let mut pulled = Vec::new();
    for Part { field, place } in parts {
        // A part with one position reads the cotangent from memory even if it is the constant 1. If
        // the part is a copy, this memory can become the gradient.
        let given = match one(cotangent) {
            Some(kind) if field.sizes.iter().any(|&size| size > 1) => Field::ones(&field.sizes, kind),
            _ => Field::held(&field.sizes, cotangent, place.clone()),
        };
        match field.pull_by(&given, asked) {
            Some(own) if recorded == PullBackSteps::Differentiated => pulled.extend(own.parts()),
            Some(own) => pulled.extend(own.shared(recorded.are_recorded())?),
            None => {}
        }
    }
    Ok(pulled)
}

/// The register kind of a cotangent that is the constant 1, as an `f32` or `f64`. A loss has this
/// cotangent. Multiplying by it is skipped.
fn one(cotangent: &Arc<dyn Held>) -> Option<RegisterKind> {
    if cotangent.len() != 1 || cotangent.node().is_some() {
        return None;
    }
    let dtype = cotangent.dtype()?;
    let is_one = match dtype {
        // SAFETY: the memory has one element of this type.
        DType::F32 => unsafe { cotangent.start().cast::<f32>().read() == 1.0 },
        // SAFETY: likewise.
        DType::F64 => unsafe { cotangent.start().cast::<f64>().read() == 1.0 },
        _ => false,
    };
    is_one.then(|| dtype.kind())
}

/// Whether a node depends on variables of calls that have not ended, except `own`.
pub fn depends_on_others(node: &Node, own: &[&GradientCall]) -> bool {
    let is_own = |call: &GradientCall| own.iter().any(|own| core::ptr::eq(*own, call));
    node.calls.iter().any(|call| !call.has_ended() && !is_own(call))
}

/// Whether a node depends on variables of calls that take gradients and have not ended, except
/// `own`.
fn is_differentiated_by_others(node: &Node, own: &[&GradientCall]) -> bool {
    let is_own = |call: &GradientCall| own.iter().any(|own| core::ptr::eq(*own, call));
    node.calls.iter().any(|call| !call.records && !call.has_ended() && !is_own(call))
}

/// The names of the variables that steps depend on, in order of creation. Variables without a name
/// are left out.
pub fn names_of_variables<'n>(nodes: impl IntoIterator<Item = &'n Arc<Node>>) -> Vec<String> {
    names_behind(nodes.into_iter().collect())
}

fn names_behind(mut open: Vec<&Arc<Node>>) -> Vec<String> {
    let mut seen = BTreeMap::new();
    while let Some(node) = open.pop() {
        if seen.insert(node.id, node).is_none() {
            open.extend(node.inputs());
        }
    }
    let names = seen.values().filter_map(|node| match &node.step {
        NodeStep::Variable(name) => name.as_ref().map(|name| name.to_string()),
        _ => None,
    });
    names.collect()
}

/// The memory that the part copies unchanged, if there is only one part and the memory has `len`
/// elements of this type.
pub(super) fn whole(parts: &[Part], dtype: DType, len: usize) -> Option<Arc<dyn Held>> {
    let [Part { field, place }] = parts else { return None };
    let [operand] = &field.operands[..] else { return None };
    let FieldSource::Memory(memory) = &operand.source else { return None };
    let same = field.program.instructions().len() == 1
        && memory.dtype() == Some(dtype)
        && memory.len() == len
        && covers(place, &field.sizes, len)
        && covers(&operand.place, &field.sizes, len)
        // A loop along which the place does not vary is a sum.
        && (0..field.sizes.len()).all(|axis| {
            let stride = place.strides[axis];
            field.sizes[axis] == 1 || stride != 0 && stride == operand.place.strides[axis]
        });
    same.then(|| Arc::clone(memory))
}

/// The steps between outputs and the nodes with respect to which gradients are taken.
struct StepsBetween {
    on_way: BTreeMap<u64, bool>,
}

impl StepsBetween {
    fn of(roots: &[Arc<Node>], targets: &[u64]) -> Self {
        let least = targets.iter().copied().min().unwrap_or(u64::MAX);
        let mut between = StepsBetween { on_way: BTreeMap::new() };
        // Visits each step once, after the steps that it reads.
        let mut open: Vec<(&Arc<Node>, bool)> = roots.iter().map(|node| (node, false)).collect();
        while let Some((node, done)) = open.pop() {
            if done {
                let own = targets.contains(&node.id)
                    || node
                        .inputs()
                        .iter()
                        .any(|input| between.on_way.get(&input.id).copied().unwrap_or(false));
                between.on_way.insert(node.id, own);
                continue;
            }
            if between.on_way.contains_key(&node.id) {
                continue;
            }
            node.note_read();
            between.on_way.insert(node.id, false);
            // Steps before all targets depend on none of them.
            if node.id >= least {
                open.push((node, true));
                open.extend(node.inputs().into_iter().map(|input| (input, false)));
            }
        }
        between
    }

    fn is_on_way(&self, node: u64) -> bool {
        self.on_way.get(&node).copied().unwrap_or(false)
    }
}
