//! Running recorded steps again, with other inputs: each step by itself, as it was recorded.

use crate::error::{Error, Origin};
use crate::loops::nest::{Nest, NestParts};
use crate::memory::buffer::Buffer;
use crate::memory::destination::Destination;
use crate::ops::code::{DType, each_dtype};
use crate::program::interpreter::{Interpreted, ProgramOutput};
use crate::reduce::{reduce, reducers};
use crate::scalar::Num;
use crate::trace::evaluate::{HeldMemories, add_at, covers, evaluate, kept, mapped, rows};
use crate::trace::{
    Field, FieldOperand, FieldSource, Held, Node, NodeStep, Part, StridedPlace, Table, TableIndex,
    TableSource,
};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A function that was recorded: the steps that compute its results from its inputs.
pub struct Recording {
    inputs: Vec<Arc<Node>>,
    /// The steps, each behind those that it reads.
    steps: Vec<Arc<Node>>,
    outputs: Vec<Arc<dyn Held>>,
}

/// A step that cannot be run again.
#[derive(Debug)]
pub struct NotRepeatable {
    /// What it is called.
    pub operation: &'static str,
    /// Where in the user's program.
    pub origin: Origin,
}

/// The elements of steps that have run, by their numbers.
type StepValues = BTreeMap<u64, Arc<dyn Held>>;

impl Recording {
    /// The steps between inputs, which are variables, and outputs.
    pub fn new(inputs: Vec<Arc<Node>>, outputs: Vec<Arc<dyn Held>>) -> Result<Self, NotRepeatable> {
        let mut found: BTreeMap<u64, Arc<Node>> = BTreeMap::new();
        let mut open: Vec<Arc<Node>> = outputs.iter().filter_map(|held| held.node().cloned()).collect();
        while let Some(node) = open.pop() {
            if found.contains_key(&node.id) {
                continue;
            }
            open.extend(node.all_inputs().into_iter().cloned());
            found.insert(node.id, node);
        }
        let steps: Vec<Arc<Node>> =
            found.into_values().filter(|node| !matches!(node.step, NodeStep::Variable(_))).collect();
        for node in &steps {
            if let NodeStep::Rule(rule) = &node.step
                && !rule.is_repeatable()
            {
                return Err(NotRepeatable { operation: rule.name(), origin: node.origin });
            }
        }
        Ok(Recording { inputs, steps, outputs })
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs all steps with other inputs, which have the types and sizes of the recorded ones. Returns the outputs.
    pub fn run(&self, inputs: Vec<Arc<dyn Held>>) -> Result<Vec<Arc<dyn Held>>, Error> {
        assert_eq!(inputs.len(), self.inputs.len(), "there is a value for each input");
        self.inputs.iter().zip(&inputs).for_each(|(node, value)| assert_fits(node, value));
        let mut values: StepValues = self.inputs.iter().map(|node| node.id).zip(inputs).collect();
        for node in &self.steps {
            let value = match &node.step {
                NodeStep::Variable(_) => unreachable!("variables are no steps"),
                NodeStep::Parts(parts) => {
                    let parts = parts.iter().map(|part| {
                        let Part { field, place } = part;
                        Ok(Part { field: field.with_values(&values)?, place: place.with_values(&values)? })
                    });
                    sum_of_parts(&parts.collect::<Result<Vec<_>, Error>>()?, node.len, node.dtype)?
                }
                NodeStep::Rule(rule) => {
                    let operands = rule.operands().into_iter().map(|own| own.with_values(&values));
                    let operands = operands.collect::<Result<Vec<_>, _>>()?;
                    rule.run(operands).expect("each step was found to be repeatable")?
                }
            };
            assert_fits(node, &value);
            values.insert(node.id, value);
        }
        let value = |held: &Arc<dyn Held>| match held.node().and_then(|node| values.get(&node.id)) {
            Some(value) => Arc::clone(value),
            None => Arc::clone(held),
        };
        Ok(self.outputs.iter().map(value).collect())
    }
}

/// Panics unless a value has the type and the length of a step's.
fn assert_fits(node: &Node, value: &Arc<dyn Held>) {
    assert_eq!(
        (value.dtype(), value.len()),
        (Some(node.dtype), node.len),
        "a step has the elements that it was recorded with"
    );
}

impl Node {
    /// What the step reads, elements of all types.
    fn all_inputs(&self) -> Vec<&Arc<Node>> {
        match &self.step {
            NodeStep::Variable(_) => Vec::new(),
            NodeStep::Parts(parts) => parts
                .iter()
                .flat_map(|part| part.field.all_nodes().into_iter().chain(part.place.nodes()))
                .collect(),
            NodeStep::Rule(rule) => rule.operands().into_iter().flat_map(Field::all_nodes).collect(),
        }
    }
}

impl StridedPlace {
    /// The nodes that computed offsets depend on.
    pub(super) fn nodes(&self) -> Vec<&Arc<Node>> {
        let source = self.table.as_ref().and_then(|table| table.source.as_ref());
        source.map_or_else(Vec::new, |source| {
            source.indices.iter().flat_map(|index| index.index.all_nodes()).collect()
        })
    }

    /// The same place, with offsets that are computed from these values.
    fn with_values(&self, values: &StepValues) -> Result<StridedPlace, Error> {
        let mut place = self.clone();
        let Some(table) = &mut place.table else { return Ok(place) };
        let Some(source) = table.source.clone() else { return Ok(place) };
        let sizes = &source.indices[0].index.sizes;
        let mut indices = Vec::new();
        for TableIndex { index, stride, size } in &source.indices {
            indices.push(TableIndex { index: index.with_values(values)?, stride: *stride, size: *size });
        }
        let mut offsets = Vec::new();
        for TableIndex { index, stride, size } in &indices {
            let found = mapped::<isize>(index, &source.order)?;
            offsets.resize(found.len(), 0);
            for (offset, index) in offsets.iter_mut().zip(found) {
                if !usize::try_from(index).is_ok_and(|index| index < *size) {
                    let what = "a computed index".into();
                    return Err(Error::OutOfBounds { what, index: index as i128, size: *size, origin: None });
                }
                *offset += index * stride;
            }
        }
        let computed = Table::new(offsets, sizes, &source.order);
        table.offsets = computed.offsets;
        table.bounds = computed.bounds;
        table.source = Some(Arc::new(TableSource { indices, order: source.order.clone() }));
        Ok(place)
    }
}

impl Field {
    /// The same field of these values.
    fn with_values(&self, values: &StepValues) -> Result<Field, Error> {
        let mut field = self.clone();
        for FieldOperand { source, place } in &mut field.operands {
            if let FieldSource::Memory(held) = source
                && let Some(value) = held.node().and_then(|node| values.get(&node.id))
            {
                *held = Arc::clone(value);
            }
            if place.table.is_some() {
                *place = place.with_values(values)?;
            }
        }
        Ok(field)
    }

    /// The elements in the type of a node, contiguous in an order of all loops along which they vary.
    pub(crate) fn computed(&self, order: &[usize], dtype: DType) -> Result<Arc<dyn Held>, Error> {
        fn of<T: ProgramOutput>(field: &Field, order: &[usize]) -> Result<Arc<dyn Held>, Error> {
            Ok(Buffer::from(mapped::<T>(field, order)?).held())
        }
        macro_rules! by_type {
            ($($name:ident $t:ty,)*) => {
                match dtype {
                    $(DType::$name => of::<$t>(self, order),)*
                    #[cfg(feature = "half")]
                    DType::F16 => of::<half::f16>(self, order),
                    #[cfg(feature = "half")]
                    DType::Bf16 => of::<half::bf16>(self, order),
                }
            };
        }
        each_dtype!(by_type!())
    }
}

/// The sum of parts over zeros, of any element type. (`bool`s lie at places of their own.)
fn sum_of_parts(parts: &[Part], len: usize, dtype: DType) -> Result<Arc<dyn Held>, Error> {
    macro_rules! integers {
        ($($name:ident $t:ty,)*) => {
            match dtype {
                $(DType::$name => return integer_sum::<$t>(parts, len),)*
                _ => {}
            }
        };
    }
    integers!(I8 i8, I16 i16, I32 i32, I64 i64, Isize isize, U8 u8, U16 u16, U32 u32, U64 u64, Usize usize,);
    if let [Part { field, place }] = parts
        && covers(place, &field.sizes, len)
        && kept(place, &field.sizes).len() == field.sizes.iter().filter(|&&size| size != 1).count()
    {
        return field.computed(&kept(place, &field.sizes), dtype);
    }
    if dtype.is_float() {
        return evaluate(parts, len, dtype, false);
    }
    let mut out = vec![false; len];
    for Part { field, place } in parts {
        if field.sizes.contains(&0) {
            continue;
        }
        place.assert_within(&field.sizes, len);
        // (As integers, in which adding to 0 is writing.)
        let integers = field.map([], |build, value, []| build.cast(DType::U8, value));
        let order = kept(place, &field.sizes);
        let data = mapped::<u8>(&integers, &order)?;
        let mut sums = vec![0_u8; len];
        add_at(&mut sums, place, &field.sizes, &data, &order);
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out |= sum != 0);
    }
    Ok(Buffer::from(out).held())
}

fn integer_sum<T: ProgramOutput + Num>(parts: &[Part], len: usize) -> Result<Arc<dyn Held>, Error> {
    if let [part] = parts
        && covers(&part.place, &part.field.sizes, len)
        && kept(&part.place, &part.field.sizes).len()
            == part.field.sizes.iter().filter(|&&size| size != 1).count()
    {
        let order = kept(&part.place, &part.field.sizes);
        return Ok(Buffer::from(mapped::<T>(&part.field, &order)?).held());
    }
    let mut out = vec![T::ZERO; len];
    for Part { field, place } in parts {
        if field.sizes.contains(&0) {
            continue;
        }
        place.assert_within(&field.sizes, len);
        let order = kept(place, &field.sizes);
        let reduced: Vec<usize> =
            (0..field.sizes.len()).filter(|axis| field.sizes[*axis] != 1 && !order.contains(axis)).collect();
        let data = reduced_of::<T, _>(field, &order, &reduced, reducers::Sum)?;
        add_at(&mut out, place, &field.sizes, &data, &order);
    }
    Ok(Buffer::from(out).held())
}

/// What a reduction makes of a field over some loops, contiguous in an order of the others.
pub(super) fn reduced_of<T: ProgramOutput, Q>(
    field: &Field,
    order: &[usize],
    reduced: &[usize],
    reducer: Q,
) -> Result<Vec<Q::Out>, Error>
where
    Q: crate::reduce::Reducer<T, Out: Send> + Send + Sync,
{
    let volume = |axes: &[usize]| axes.iter().map(|&axis| field.sizes[axis]).product::<usize>();
    let (len, count) = (volume(order), volume(reduced));
    let memories = HeldMemories::of(field);
    let rows = rows(field);
    let nest = Nest::reduce(&field.sizes, order, reduced, &rows);
    let sources = memories.sources(field);
    let lower = |nest| Interpreted::<T>::new(&field.program, &sources, &mut Nest::operands(nest));
    let work = len.saturating_mul(count);
    reduce(&nest, &mut NestParts::new(), lower, work, Destination::New(len), count, reducer)
}
