//! Listings of recorded functions, for printing.

use crate::error::Origin;
use crate::ops::code::DType;
use crate::trace::replay::nodes_behind;
use crate::trace::{Field, FieldOperand, FieldSource, Held, Node, NodeAxis, NodeStep, Part};
use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::panic::Location;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// A recorded function: its inputs, the constants that it captured, its steps and its results.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Listing {
    /// The inputs.
    pub inputs: Vec<ListedValue>,
    /// The tensors that the function captured. They are the same in each call.
    pub constants: Vec<ListedValue>,
    /// The steps, each after those that it reads.
    pub steps: Vec<ListedStep>,
    /// The names of the results.
    pub results: Vec<String>,
}

/// A value of a recorded function: an input, a constant or the result of a step.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct ListedValue {
    /// The name that steps use: `%3`, or `c1` for a constant.
    pub name: String,
    /// The path of an input. `None` for other values, and if the function has a single tensor as
    /// its input.
    pub path: Option<String>,
    /// The element type.
    pub dtype: DType,
    /// The axes, from the outermost in memory to the innermost, if they are known.
    pub axes: Option<Vec<ListedAxis>>,
    /// The number of elements.
    pub len: usize,
    /// The size of all elements in bytes.
    pub bytes: usize,
    /// The source location in the user's program. For a constant, the location of the first step
    /// that reads it.
    pub origin: Option<ListedPlace>,
}

/// An axis of a value of a recorded function.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct ListedAxis {
    /// The name of its dim, or `..` for a positional axis.
    pub name: Cow<'static, str>,
    /// Its size.
    pub size: usize,
    /// Whether calls may have other sizes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub is_dynamic: bool,
}

/// A source location in the program that recorded a function.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct ListedPlace {
    file: Cow<'static, str>,
    line: u32,
    column: u32,
    /// The location, if it is in this program.
    #[cfg_attr(feature = "serde", serde(skip))]
    location: Origin,
}

impl PartialEq for ListedPlace {
    fn eq(&self, other: &Self) -> bool {
        (&self.file, self.line, self.column) == (&other.file, other.line, other.column)
    }
}

impl ListedPlace {
    /// A location of this program.
    pub fn new(place: &'static Location<'static>) -> Self {
        let (file, line, column) = (Cow::Borrowed(place.file()), place.line(), place.column());
        ListedPlace { file, line, column, location: Some(place) }
    }

    /// The location, unless the recorded function was saved and restored.
    pub fn location(&self) -> Origin {
        self.location
    }

    /// The path of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column, from 1.
    pub fn column(&self) -> u32 {
        self.column
    }
}

impl fmt::Display for ListedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl Listing {
    /// The listing, with the axes that `is_open` selects marked as dynamic.
    pub fn with_open(&self, is_open: &dyn Fn(&str, usize) -> bool) -> Self {
        let mut listing = self.clone();
        let steps = listing.steps.iter_mut().map(|step| &mut step.value);
        let values = listing.inputs.iter_mut().chain(&mut listing.constants).chain(steps);
        for axis in values.flat_map(|value| &mut value.axes).flatten() {
            axis.is_dynamic = is_open(&axis.name, axis.size);
        }
        listing
    }
}

/// A step of a recorded function.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct ListedStep {
    /// The result.
    pub value: ListedValue,
    /// The operation as text, with the names of the values that it reads.
    pub operation: String,
    /// An estimate of the number of scalar operations.
    pub operations: usize,
}

impl fmt::Display for ListedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.dtype.name())?;
        match &self.axes {
            Some(axes) => {
                f.write_str(" [")?;
                for (at, ListedAxis { name, size, is_dynamic }) in axes.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    match is_dynamic {
                        true => write!(f, "{name} = any")?,
                        false => write!(f, "{name} = {size}")?,
                    }
                }
                f.write_char(']')
            }
            None => write!(f, " [{}]", self.len),
        }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |origin: &Option<ListedPlace>| match origin {
            Some(place) => format!(" (at {place})"),
            None => String::new(),
        };
        for value in &self.inputs {
            let path = value.path.as_deref().unwrap_or("the input");
            writeln!(f, "{} = `{path}`: {value}", value.name)?;
        }
        for value in &self.constants {
            let ListedValue { name, bytes, origin, .. } = value;
            writeln!(f, "{name} = a constant of {bytes} bytes: {value}{}", place(origin))?;
        }
        for ListedStep { value, operation, .. } in &self.steps {
            writeln!(f, "{} = {operation}: {value}{}", value.name, place(&value.origin))?;
        }
        writeln!(f, "results: {}", self.results.join(", "))
    }
}

/// The listing of the function that computes `outputs` from `inputs`, with the paths of the inputs.
pub fn listing(inputs: &[(Arc<Node>, String)], outputs: &[Arc<dyn Held>]) -> Listing {
    let found = nodes_behind(outputs);
    let mut list = Lister::default();
    for (node, path) in inputs {
        let value = list.value(node, Some(path.clone()));
        list.listing.inputs.push(value);
    }
    let own: BTreeSet<u64> = inputs.iter().map(|(node, _)| node.id).collect();
    for node in found.values().filter(|node| !own.contains(&node.id)) {
        let (operation, operations) = list.step(node);
        let value = list.value(node, None);
        list.listing.steps.push(ListedStep { value, operation, operations });
    }
    list.listing.results = outputs.iter().map(|held| list.memory(held, None)).collect();
    list.listing
}

#[derive(Default)]
struct Lister {
    listing: Listing,
    /// The number of each value that was listed.
    numbers: BTreeMap<u64, usize>,
    /// The number of each constant, by the address of its owner.
    constants: BTreeMap<usize, usize>,
}

impl Lister {
    fn value(&mut self, node: &Node, path: Option<String>) -> ListedValue {
        let number = self.numbers.len() + 1;
        self.numbers.insert(node.id, number);
        ListedValue {
            name: format!("%{number}"),
            path: path.filter(|path| !path.is_empty()),
            dtype: node.dtype,
            axes: node.axes().map(|axes| {
                let axis = |&NodeAxis { name, size, .. }: &NodeAxis| ListedAxis {
                    name: name.into(),
                    size,
                    is_dynamic: false,
                };
                axes.iter().map(axis).collect()
            }),
            len: node.len,
            bytes: node.len * node.dtype.bytes(),
            origin: node.origin.map(ListedPlace::new),
        }
    }

    /// The name of the elements that a step at a source location reads. Lists a constant when it is
    /// first read.
    fn memory(&mut self, held: &Arc<dyn Held>, origin: Origin) -> String {
        if let Some(number) = held.node().and_then(|node| self.numbers.get(&node.id)) {
            return format!("%{number}");
        }
        let next = self.constants.len() + 1;
        let number = *self.constants.entry(Arc::as_ptr(held).cast::<()>().addr()).or_insert(next);
        let name = format!("c{number}");
        if number == next
            && let Some(dtype) = held.dtype()
        {
            let (len, bytes) = (held.len(), held.bytes());
            self.listing.constants.push(ListedValue {
                name: name.clone(),
                path: None,
                dtype,
                axes: None,
                len,
                bytes,
                origin: origin.map(ListedPlace::new),
            });
        }
        name
    }

    /// The operation of a step as text, and its estimated number of scalar operations.
    fn step(&mut self, node: &Node) -> (String, usize) {
        match &node.step {
            NodeStep::Variable(_) => (String::from("a variable"), 0),
            NodeStep::Parts(parts) => {
                let (mut text, mut operations) = (String::new(), 0usize);
                for (at, Part { field, place }) in parts.iter().enumerate() {
                    let (own, count) = self.field(field, node.origin);
                    operations = operations.saturating_add(count);
                    let summed =
                        (0..field.sizes.len()).any(|axis| field.sizes[axis] > 1 && !place.varies(axis));
                    let separator = if at == 0 { "" } else { " + " };
                    let _ = match (summed, place.table.is_some()) {
                        (true, _) => write!(text, "{separator}sum({own})"),
                        (false, true) => write!(text, "{separator}scattered({own})"),
                        (false, false) => write!(text, "{separator}{own}"),
                    };
                }
                (text, operations)
            }
            NodeStep::Rule(rule) => {
                let (mut texts, mut operations) = (Vec::new(), 0usize);
                for field in rule.operands() {
                    let (text, count) = self.field(field, node.origin);
                    texts.push(text);
                    operations = operations.saturating_add(count);
                }
                (format!("{}({})", rule.name(), texts.join(", ")), operations)
            }
        }
    }

    /// A field as text, and its estimated number of scalar operations.
    fn field(&mut self, field: &Field, origin: Origin) -> (String, usize) {
        let names: Vec<String> = field.operands.iter().map(|own| self.operand(own, origin)).collect();
        let text = field.program.describe_with(&|number| names[number as usize].clone());
        let volume = field.sizes.iter().fold(1usize, |all, &size| all.saturating_mul(size));
        (text, volume.saturating_mul(field.program.operations().max(1)))
    }

    fn operand(&mut self, FieldOperand { source, place }: &FieldOperand, origin: Origin) -> String {
        let FieldSource::Memory(held) = source else { return String::from("position") };
        let name = self.memory(held, origin);
        let Some(source) = place.table.as_ref().and_then(|table| table.source.as_ref()) else {
            return name;
        };
        let indices: Vec<String> =
            source.indices.iter().map(|own| self.field(&own.index, origin).0).collect();
        format!("{name}[{}]", indices.join(", "))
    }
}
