//! The findings of the checker.

use crate::error::shown;
use std::collections::BTreeMap;
use std::fmt;

/// The findings of the checker in a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DenotationReport {
    /// Inputs and results with axes of unexpected meaning, in the order of the nodes.
    pub mismatches: Vec<DenotationMismatch>,
    /// Nodes with invalid or inconsistent attributes, inputs or declared results.
    pub broken: Vec<BrokenNode>,
    /// Operators through which denotations are not propagated, with the number of nodes of each.
    pub opaque: BTreeMap<String, usize>,
    /// The number of visited nodes, including those of inner graphs.
    pub nodes: usize,
    /// The computed meanings of the outputs' axes.
    pub outputs: Vec<DenotedOutput>,
}

/// An output of the whole graph.
#[derive(Clone, Debug, PartialEq)]
pub struct DenotedOutput {
    /// The name.
    pub name: String,
    /// The meaning of each axis, if there is one. `None` if the number of axes is unknown.
    pub axes: Option<Vec<Option<String>>>,
}

impl DenotationReport {
    /// Whether there is neither a mismatch nor a broken node.
    pub fn is_clean(&self) -> bool {
        self.mismatches.is_empty() && self.broken.is_empty()
    }
}

impl fmt::Display for DenotationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mismatch in &self.mismatches {
            writeln!(f, "{mismatch:#}")?;
        }
        for broken in &self.broken {
            writeln!(f, "{broken}")?;
        }
        for output in &self.outputs {
            let axes = output.axes.as_deref().map_or_else(|| "unknown".to_owned(), listed);
            writeln!(f, "output `{}`: {axes}", shown(&output.name))?;
        }
        if !self.opaque.is_empty() {
            let operators = self.opaque.iter().map(|(name, count)| format!("{} ({count})", shown(name)));
            writeln!(f, "not propagated through: {}", operators.collect::<Vec<_>>().join(", "))?;
        }
        let nodes = if self.nodes == 1 { "node" } else { "nodes" };
        let mismatches = match self.mismatches.len() {
            0 => "no mismatch".to_owned(),
            1 => "1 mismatch".to_owned(),
            count => format!("{count} mismatches"),
        };
        write!(f, "{} {nodes}, {mismatches}", self.nodes)?;
        match self.broken.len() {
            0 => Ok(()),
            1 => f.write_str(", 1 broken node"),
            count => write!(f, ", {count} broken nodes"),
        }
    }
}

/// An input or a result of a node with axes of unexpected meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct DenotationMismatch {
    /// The name of the node, or its number among all nodes, from 0, such as `#3`.
    pub node: String,
    /// The operator.
    pub operator: String,
    /// The number of the input or the result, from 0.
    pub position: usize,
    /// `true` for a result that the model denotes differently, `false` for an input.
    pub is_result: bool,
    /// The name of the value.
    pub value: String,
    /// The wrong axes.
    pub axes: Vec<WrongAxis>,
    /// The meanings of all axes.
    pub found: Vec<Option<String>>,
    /// The expected meanings; `None` if any is accepted.
    pub expected: Vec<Option<String>>,
}

/// An axis of unexpected meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongAxis {
    /// The number of the axis.
    pub axis: usize,
    /// The meaning.
    pub found: String,
    /// The expected meaning.
    pub expected: String,
    /// What the axis should agree with: another axis, such as ``axis 1 of `bias` ``, or the model's
    /// declaration of the value. `None` if the operator itself expects the meaning.
    pub like: Option<String>,
}

/// Writes the mismatch on one line. `{:#}` adds two lines with the found and expected meanings of
/// all axes.
impl fmt::Display for DenotationMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_result { "result" } else { "input" };
        let (node, operator, value) = (shown(&self.node), shown(&self.operator), shown(&self.value));
        write!(f, "node `{node}` ({operator}), {what} `{value}`: ")?;
        for (at, axis) in self.axes.iter().enumerate() {
            let between = if at == 0 { "" } else { "; " };
            let (found, expected) = (shown(&axis.found), shown(&axis.expected));
            write!(f, "{between}axis {} is {found}, but {expected} is expected", axis.axis)?;
            if let Some(like) = &axis.like {
                write!(f, ", as {like}")?;
            }
        }
        if f.alternate() {
            let (found, expected) = (listed(&self.found), listed(&self.expected));
            write!(f, "\n    found    {found}\n    expected {expected}")?;
        }
        Ok(())
    }
}

/// A node with invalid or inconsistent attributes, inputs or declared results.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenNode {
    /// The name of the node, or its number among all nodes, from 0, such as `#3`.
    pub node: String,
    /// The operator.
    pub operator: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for BrokenNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node `{}` ({}): {}", shown(&self.node), shown(&self.operator), self.why)
    }
}

fn listed(axes: &[Option<String>]) -> String {
    let axes = axes.iter().map(|axis| axis.as_deref().map_or_else(|| "_".to_owned(), shown));
    format!("[{}]", axes.collect::<Vec<_>>().join(", "))
}
