//! What was found.

use crate::error::shown;
use std::collections::BTreeMap;
use std::fmt;

/// What the checker found in a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DenotationReport {
    /// Axes that are not what an operator expects, in the order of the nodes.
    pub mismatches: Vec<DenotationMismatch>,
    /// Nodes whose options or ranks do not fit together.
    pub broken: Vec<BrokenNode>,
    /// Operators through which denotations are not carried, and how many nodes there are of each.
    pub opaque: BTreeMap<String, usize>,
    /// How many nodes there are.
    pub nodes: usize,
    /// What the axes of the outputs came out as.
    pub outputs: Vec<DenotedOutput>,
}

/// An output of the whole graph.
#[derive(Clone, Debug, PartialEq)]
pub struct DenotedOutput {
    /// Its name.
    pub name: String,
    /// What its axes mean, and nothing for those that mean nothing; if it is known how many there are.
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
            writeln!(f, "not looked through: {}", operators.collect::<Vec<_>>().join(", "))?;
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

/// One input (or result) of a node, with axes that do not mean what they should.
#[derive(Clone, Debug, PartialEq)]
pub struct DenotationMismatch {
    /// The node: its name, or its number among all nodes, `#3`.
    pub node: String,
    /// Its operator.
    pub operator: String,
    /// Which of its inputs, or of its results, counted from 0.
    pub position: usize,
    /// Whether it is a result, which the model denotes otherwise.
    pub is_result: bool,
    /// The name of the value.
    pub value: String,
    /// The axes that are wrong.
    pub axes: Vec<WrongAxis>,
    /// What all its axes mean.
    pub found: Vec<Option<String>>,
    /// What they should mean; nothing where anything will do.
    pub expected: Vec<Option<String>>,
}

/// An axis that does not mean what it should.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongAxis {
    /// Which one.
    pub axis: usize,
    /// What it means.
    pub found: String,
    /// What it should mean.
    pub expected: String,
    /// What it should agree with: `axis 1 of "bias"`, or nothing if the operator itself expects it.
    pub like: Option<String>,
}

/// What is wrong on one line; with `{:#}`, what all axes mean and should mean on two more.
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

/// A node that cannot be computed: its options and its inputs do not fit together.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenNode {
    /// The node: its name, or its number among all nodes, `#3`.
    pub node: String,
    /// Its operator.
    pub operator: String,
    /// Why not.
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
