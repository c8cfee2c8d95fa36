//! Fields: scalar programs over operands along loops. Values "in registers" have one of the types
//! that [`register`](Lower::register) returns.

use super::Lower;
use super::text::{Lookup, Value};
use super::view::{Loop, strides};
use crate::error::XlaError;
use std::collections::HashMap;
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::{
    SavedField, SavedIndex, SavedInstruction, SavedOperand, SavedPlace, SavedTable,
};

/// The values of a field's registers, each along the same loops.
pub(super) type Registers = HashMap<u32, Value>;

fn loaded_type(lower: &Lower<'_>, operand: &SavedOperand) -> DType {
    operand.value.map_or(DType::I64, |number| lower.values[number].dtype)
}

pub(super) fn varies(place: &SavedPlace, axis: usize) -> bool {
    place.strides[axis] != 0 || place.table.as_ref().is_some_and(|table| table.strides[axis] != 0)
}

/// The operands that a register is computed from.
pub(super) fn read_by(field: &SavedField, of: u32) -> Vec<u32> {
    let (mut open, mut seen, mut found) = (vec![of], Vec::new(), Vec::new());
    while let Some(at) = open.pop() {
        if seen.contains(&at) {
            continue;
        }
        seen.push(at);
        match &field.program.instructions[at as usize].0 {
            SavedInstruction::Load(operand) | SavedInstruction::Position(operand) => found.push(*operand),
            SavedInstruction::Float(_) | SavedInstruction::Int(_) | SavedInstruction::Bool(_) => {}
            SavedInstruction::Unary(_, a) | SavedInstruction::Cast(_, a) => open.push(*a),
            SavedInstruction::Binary(_, a, b) => open.extend([*a, *b]),
            SavedInstruction::Select(cond, a, b) => open.extend([*cond, *a, *b]),
        }
    }
    found
}

/// The loops of a field along which a register varies.
pub(super) fn varied(field: &SavedField, of: u32) -> Vec<usize> {
    let operands = read_by(field, of);
    (0..field.sizes.len())
        .filter(|&axis| field.sizes[axis] != 1)
        .filter(|&axis| operands.iter().any(|&own| varies(&field.operands[own as usize].place, axis)))
        .collect()
}

impl Lower<'_> {
    /// The elements of a field along some loops, in registers. The field must not vary along any
    /// other loop.
    pub(super) fn field(&mut self, field: &SavedField, loops: &[usize]) -> Result<Value, XlaError> {
        self.register(field, field.program.result, loops, &mut Registers::new())
    }

    /// The elements of a field along some loops, converted to an element type.
    pub(super) fn field_of(
        &mut self,
        field: &SavedField,
        loops: &[usize],
        dtype: DType,
    ) -> Result<Value, XlaError> {
        let value = self.field(field, loops)?;
        Ok(self.body.stored(&value, dtype))
    }

    /// The type of a field's result, in registers.
    pub(super) fn field_type(&self, field: &SavedField) -> DType {
        use typed_dims_kernels::program::code::RegisterKind;
        match field.program.instructions[field.program.result as usize].1 {
            RegisterKind::F32 => DType::F32,
            RegisterKind::F64 => DType::F64,
            RegisterKind::Bool => DType::Bool,
            RegisterKind::Int => DType::I64,
        }
    }

    /// Whether a register holds the bits of a `u64` or `usize`, or is computed from such a register
    /// without a cast.
    pub(super) fn is_unsigned(&self, field: &SavedField, of: u32) -> bool {
        let (mut open, mut visited) = (vec![of], vec![false; of as usize + 1]);
        while let Some(register) = open.pop() {
            // The operands of an instruction come before it.
            if std::mem::replace(&mut visited[register as usize], true) {
                continue;
            }
            let dtype = match &field.program.instructions[register as usize].0 {
                SavedInstruction::Load(operand) => loaded_type(self, &field.operands[*operand as usize]),
                SavedInstruction::Cast(to, _) => *to,
                SavedInstruction::Unary(_, a) => {
                    open.push(*a);
                    continue;
                }
                SavedInstruction::Binary(_, a, b) | SavedInstruction::Select(_, a, b) => {
                    open.extend([*a, *b]);
                    continue;
                }
                _ => continue,
            };
            if matches!(dtype, DType::U64 | DType::Usize) {
                return true;
            }
        }
        false
    }

    pub(super) fn register(
        &mut self,
        field: &SavedField,
        of: u32,
        loops: &[usize],
        known: &mut Registers,
    ) -> Result<Value, XlaError> {
        if let Some(value) = known.get(&of) {
            return Ok(value.clone());
        }
        let shape: Vec<usize> = loops.iter().map(|&axis| field.sizes[axis]).collect();
        let (instruction, kind) = &field.program.instructions[of as usize];
        let dtype = {
            use typed_dims_kernels::program::code::RegisterKind;
            match kind {
                RegisterKind::F32 => DType::F32,
                RegisterKind::F64 => DType::F64,
                RegisterKind::Bool => DType::Bool,
                RegisterKind::Int => DType::I64,
            }
        };
        let value = if shape.contains(&0) {
            self.body.zeros(dtype, &shape)
        } else {
            match instruction {
                SavedInstruction::Load(operand) | SavedInstruction::Position(operand) => {
                    let operand = &field.operands[*operand as usize];
                    self.operand(field, operand, loops)?
                }
                SavedInstruction::Float(bits) => {
                    let value = self.body.float(f64::from_bits(*bits), dtype);
                    self.body.broadcast(&value, &shape, &[])
                }
                SavedInstruction::Int(value) => {
                    let value = self.body.int(*value as i64, DType::I64);
                    self.body.broadcast(&value, &shape, &[])
                }
                SavedInstruction::Bool(value) => {
                    let value = self.body.truth(*value);
                    self.body.broadcast(&value, &shape, &[])
                }
                SavedInstruction::Unary(op, a) => {
                    let a = self.register(field, *a, loops, known)?;
                    let value = self.body.apply_unary(op, &a);
                    value.ok_or_else(|| self.refused(format!("there is no `{}` in StableHLO", op.0)))?
                }
                SavedInstruction::Binary(op, left, right) => {
                    // Programs flip the top bits of unsigned integers before they compare them, so
                    // signed comparisons are right.
                    let a = self.register(field, *left, loops, known)?;
                    let b = self.register(field, *right, loops, known)?;
                    let value = self.body.apply_binary(op, &a, &b);
                    value.ok_or_else(|| self.refused(format!("there is no `{}` in StableHLO", op.0)))?
                }
                SavedInstruction::Select(condition, a, b) => {
                    let condition = self.register(field, *condition, loops, known)?;
                    let a = self.register(field, *a, loops, known)?;
                    let b = self.register(field, *b, loops, known)?;
                    self.body.select(&condition, &a, &b)
                }
                SavedInstruction::Cast(to, a) => {
                    let is_unsigned = self.is_unsigned(field, *a);
                    let a = self.register(field, *a, loops, known)?;
                    self.body.cast(&a, *to, is_unsigned)
                }
            }
        };
        known.insert(of, value.clone());
        Ok(value)
    }

    /// An operand along some loops, in registers.
    fn operand(
        &mut self,
        field: &SavedField,
        operand: &SavedOperand,
        loops: &[usize],
    ) -> Result<Value, XlaError> {
        let value = self.operand_elements(field, operand, loops)?;
        Ok(self.body.loaded(&value))
    }

    /// An operand along some loops, in its own type.
    pub(super) fn operand_elements(
        &mut self,
        field: &SavedField,
        operand: &SavedOperand,
        loops: &[usize],
    ) -> Result<Value, XlaError> {
        let place = &operand.place;
        let own: Vec<Loop> =
            loops.iter().map(|&axis| Loop { size: field.sizes[axis], stride: place.strides[axis] }).collect();
        let shape: Vec<usize> = own.iter().map(|own| own.size).collect();
        let Some(number) = operand.value else {
            let positions = self.body.positions(&shape, place.offset, &own);
            return Ok(match &place.table {
                Some(_) => {
                    let offsets = self.offsets(field, place, loops)?;
                    self.body.add(&positions, &offsets)
                }
                None => positions,
            });
        };
        let (mut value, offset) = match place.table {
            None => self.read_piece(number, place.offset, &own),
            Some(_) => (self.values[number].clone(), place.offset),
        };
        let inputs = self.program.inputs.len() + self.program.recording.constants.len();
        if value.len() == 1 && number >= inputs && shape.iter().any(|&size| size > 1) {
            // Without the barrier, XLA would compute this single element again for each position.
            value = self.body.barrier(&value);
        }
        if place.table.is_none() {
            return Ok(self.body.view(&value, offset, &own));
        }
        if self.is_sharded
            && let Some(found) = self.chosen(field, place, loops, &value)?
        {
            return Ok(found);
        }
        if let Some(found) = self.rows(field, place, loops, &value)? {
            return Ok(found);
        }
        let positions = self.body.positions(&shape, place.offset, &own);
        let offsets = self.offsets(field, place, loops)?;
        let positions = self.body.add(&positions, &offsets);
        Ok(self.body.at_positions(&value, &positions))
    }

    /// The offsets that a place reads from its table, along some loops.
    pub(super) fn offsets(
        &mut self,
        field: &SavedField,
        place: &SavedPlace,
        loops: &[usize],
    ) -> Result<Value, XlaError> {
        let lookup = place.table.as_ref().expect("the place has a table");
        let table = self.table(lookup.number)?;
        let own: Vec<Loop> = loops
            .iter()
            .map(|&axis| Loop { size: field.sizes[axis], stride: lookup.strides[axis] })
            .collect();
        Ok(self.body.view(&table, lookup.start, &own))
    }

    /// All offsets of a table.
    fn table(&mut self, number: usize) -> Result<Value, XlaError> {
        if let Some(known) = self.tables.get(&number) {
            return Ok(known.clone());
        }
        let value = match self.table_source(number).clone() {
            SavedTable::Given(offsets) => {
                let bytes: Vec<u8> = offsets.iter().flat_map(|&own| (own as i64).to_le_bytes()).collect();
                self.body.constant(DType::I64, &[offsets.len()], &bytes)
            }
            SavedTable::Computed { indices, order } => {
                let mut sum: Option<Value> = None;
                for (at, own) in indices.iter().enumerate() {
                    let index = self.checked_index((number, at), own, &order)?;
                    let by = self.body.int(own.stride as i64, DType::I64);
                    let by = self.body.broadcast(&by, &index.shape, &[]);
                    let offset = self.body.mul(&index, &by);
                    sum = Some(match sum {
                        Some(sum) => self.body.add(&sum, &offset),
                        None => offset,
                    });
                }
                let sum = sum.ok_or_else(|| self.refused("a table has no index"))?;
                self.body.reshape(&sum, &[sum.len()])
            }
        };
        self.tables.insert(number, value.clone());
        Ok(value)
    }

    /// An index along loops, clamped to the range of its axis. The first call for an index of a
    /// table adds a check that the index is in range.
    pub(super) fn checked_index(
        &mut self,
        (table, number): (usize, usize),
        index: &SavedIndex,
        loops: &[usize],
    ) -> Result<Value, XlaError> {
        let found = self.field(&index.field, loops)?;
        let low = self.body.zeros(DType::I64, &found.shape);
        let high = self.body.int(index.size as i64 - 1, DType::I64);
        let high = self.body.broadcast(&high, &found.shape, &[]);
        if self.checked.insert((table, number)) {
            let inside = self.body.binary(
                "and",
                &self.body.compare("GE", &found, &low),
                &self.body.compare("LE", &found, &high),
            );
            let axes: Vec<usize> = (0..inside.rank()).collect();
            let all = self.body.reduce(&inside, &self.body.truth(true), &axes, "and");
            self.check(all, "an index is out of range");
        }
        let found = self.body.max(&found, &low);
        Ok(self.body.min(&found, &high))
    }

    /// How a table's indices select from a value: the selected axes, the loops of the indices, the
    /// indices, and the batch axes. `None` unless each index selects from the whole of a different
    /// axis, and each batch loop runs along the whole of another.
    pub(super) fn selection(
        &mut self,
        field: &SavedField,
        place: &SavedPlace,
        loops: &[usize],
        shape: &[usize],
    ) -> Result<Option<Selection>, XlaError> {
        let lookup = place.table.as_ref().expect("the place has a table");
        let SavedTable::Computed { indices, order } = self.table_source(lookup.number).clone() else {
            return Ok(None);
        };
        let steps = strides(shape);
        let mut axes = Vec::new();
        for own in &indices {
            let axis = (0..shape.len()).find(|&axis| {
                shape[axis] == own.size && steps[axis] as isize == own.stride && !axes.contains(&axis)
            });
            let Some(axis) = axis else { return Ok(None) };
            axes.push(axis);
        }
        // The place itself must start at the beginning of the selected axes.
        let offset = place.offset as usize;
        if axes.iter().any(|&axis| !(offset / steps[axis]).is_multiple_of(shape[axis])) {
            return Ok(None);
        }
        let of_table: Vec<usize> = loops
            .iter()
            .copied()
            .filter(|&axis| lookup.strides[axis] != 0 && field.sizes[axis] > 1)
            .collect();
        // If the place also varies along a loop of the indices, that loop is a batch loop: each
        // index selects within its slice.
        let mut batch = Vec::new();
        for (at, &axis) in of_table.iter().enumerate() {
            if place.strides[axis] == 0 {
                continue;
            }
            let own = (0..shape.len()).find(|&own| {
                steps[own] as isize == place.strides[axis]
                    && shape[own] == field.sizes[axis]
                    && !axes.contains(&own)
                    && !batch.iter().any(|&(_, taken)| taken == own)
                    && (offset / steps[own]).is_multiple_of(shape[own])
            });
            let Some(own) = own else { return Ok(None) };
            batch.push((at, own));
        }
        let own: Vec<Loop> = of_table
            .iter()
            .map(|&axis| Loop { size: field.sizes[axis], stride: lookup.strides[axis] })
            .collect();
        let mut found = Vec::new();
        for (at, index) in indices.iter().enumerate() {
            let index = self.checked_index((lookup.number, at), index, &order)?;
            let index = self.body.reshape(&index, &[index.len()]);
            let index = self.body.view(&index, lookup.start, &own);
            let mut shape = index.shape.to_vec();
            shape.push(1);
            found.push(self.body.reshape(&index, &shape));
        }
        let axis = found[0].rank() - 1;
        let indices = self.body.concat(&found, axis);
        Ok(Some(Selection { axes, loops: of_table, indices, batch }))
    }

    /// An operand at computed positions, if these select whole rows.
    fn rows(
        &mut self,
        field: &SavedField,
        place: &SavedPlace,
        loops: &[usize],
        value: &Value,
    ) -> Result<Option<Value>, XlaError> {
        let Some(Selection { axes, loops: of_table, indices, batch }) =
            self.selection(field, place, loops, &value.shape)?
        else {
            return Ok(None);
        };
        let is_rest = |axis: &usize| !axes.contains(axis) && !batch.iter().any(|own| own.1 == *axis);
        let rest: Vec<usize> = (0..value.rank()).filter(is_rest).collect();
        let offset_axes: Vec<usize> = (of_table.len()..of_table.len() + rest.len()).collect();
        let rows = self.body.gather(
            value,
            &indices,
            &Lookup { offset: &offset_axes, selected: &axes, batch: &batch },
        );
        // From here on, positions are in `rows`: its first axes are the loops of the table, and the
        // others are the axes of a row.
        let steps = strides(&value.shape);
        let (inner, outer) = (strides(&rows.shape[of_table.len()..]), strides(&rows.shape));
        let mut offset = 0;
        for (at, &axis) in rest.iter().enumerate() {
            offset += (place.offset as usize / steps[axis] % value.shape[axis].max(1)) * inner[at];
        }
        let mut own = Vec::new();
        for &axis in loops {
            let size = field.sizes[axis];
            if let Some(at) = of_table.iter().position(|&own| own == axis) {
                own.push(Loop { size, stride: outer[at] as isize });
                continue;
            }
            // Split the stride into steps along the axes, the greatest step first.
            let (mut left, mut stride) = (place.strides[axis].unsigned_abs(), 0);
            for (at, &value_axis) in rest.iter().enumerate() {
                let step = left / steps[value_axis];
                left %= steps[value_axis];
                stride += step * inner[at];
            }
            // A loop must not cross a selected axis or a batch axis.
            let (step, reach) =
                (place.strides[axis].unsigned_abs(), (size - 1) * place.strides[axis].unsigned_abs());
            let crosses = |&own: &usize| steps[own] <= reach && steps[own] * value.shape[own] > step;
            let taken = axes.iter().chain(batch.iter().map(|own| &own.1));
            if left != 0 || { taken }.any(crosses) {
                return Ok(None);
            }
            own.push(Loop { size, stride: stride as isize * place.strides[axis].signum() });
        }
        Ok(Some(self.body.view(&rows, offset as isize, &own)))
    }

    /// The operand that a register loads, if it is unchanged and in half precision.
    pub(super) fn plain_half<'f>(&self, field: &'f SavedField, of: u32) -> Option<&'f SavedOperand> {
        let SavedInstruction::Load(operand) = &field.program.instructions[of as usize].0 else { return None };
        let operand = &field.operands[*operand as usize];
        let dtype = loaded_type(self, operand);
        (dtype.in_registers() == DType::F32 && dtype != DType::F32 && dtype.is_float()).then_some(operand)
    }
}

/// The selection of a table: see [`Lower::selection`].
pub(super) struct Selection {
    pub(super) axes: Vec<usize>,
    pub(super) loops: Vec<usize>,
    pub(super) indices: Value,
    /// The batch axes: each axis of `indices` with the axis of the value that has the same loop.
    pub(super) batch: Vec<(usize, usize)>,
}
