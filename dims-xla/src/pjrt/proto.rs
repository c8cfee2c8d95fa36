//! The Protocol Buffers messages that XLA takes and returns: compile options are written, and
//! optimized programs are read.
//!
//! Field numbers come from `compile_options.proto`, `hlo.proto` and `xla_data.proto` in XLA's
//! repository.

use super::{ArrayType, ElementType};

/// Writes a message.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A field that is a number.
    pub(super) fn number(&mut self, field: u64, value: u64) -> &mut Writer {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    /// A field that is text, bytes, or a message.
    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) -> &mut Writer {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// An instruction that moves data between devices.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collective {
    /// The name of the operation in HLO: `all-reduce`, `all-gather`, `reduce-scatter`,
    /// `all-to-all`, `ragged-all-to-all`, `collective-permute` or `collective-broadcast`.
    pub kind: String,
    /// The name of the instruction.
    pub name: String,
    /// The arrays that the instruction returns, except those whose type is not an [`ElementType`].
    pub outputs: Vec<ArrayType>,
    /// The devices among which data moves, as positions in
    /// [`Executable::devices`](super::Executable::devices): a list for each group. If there is no
    /// list, all devices are one group. A list is empty if the devices of its group are not known.
    pub groups: Vec<Vec<usize>>,
}

/// `CompileOptionsProto` with one replica. If there are several partitions, Shardy splits the
/// program.
pub(super) fn compile_options(
    partitions: usize,
    devices: Option<&[i32]>,
    flags: &[(String, String)],
) -> Vec<u8> {
    let mut build = Writer::default();
    build.number(4, 1).number(5, partitions as u64);
    if partitions > 1 {
        build.number(6, 1);
    }
    if let Some(devices) = devices {
        // `DeviceAssignmentProto`: each partition is a computation with one device for its one
        // replica.
        let mut assignment = Writer::default();
        assignment.number(1, 1).number(2, devices.len() as u64);
        for &device in devices {
            let mut computation = Writer::default();
            computation.number(1, i64::from(device).cast_unsigned());
            assignment.bytes(3, &computation.finish());
        }
        build.bytes(9, &assignment.finish());
    }
    if partitions > 1 {
        build.number(19, 1);
    }
    let mut options = Writer::default();
    options.bytes(3, &build.finish());
    for (name, value) in flags {
        let mut option = Writer::default();
        // XLA parses flags of other types from text, but expects booleans as booleans.
        match value.to_ascii_lowercase().as_str() {
            "true" => option.number(2, 1),
            "false" => option.number(2, 0),
            _ => option.bytes(1, value.as_bytes()),
        };
        let mut entry = Writer::default();
        entry.bytes(1, name.as_bytes()).bytes(2, &option.finish());
        options.bytes(7, &entry.finish());
    }
    options.finish()
}

#[derive(Clone, Copy)]
enum ProtoValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, up to the first one that is damaged.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for position in 0..10 {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << (7 * position);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, ProtoValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => ProtoValue::Number(self.varint()?),
            1 => ProtoValue::Bytes(self.take(8)?),
            2 => {
                let count = self.varint()?;
                ProtoValue::Bytes(self.take(count)?)
            }
            5 => ProtoValue::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

/// The messages, texts and bytes of a field.
fn all(message: &[u8], field: u64) -> impl Iterator<Item = &[u8]> {
    Fields(message).filter_map(move |(number, value)| match value {
        ProtoValue::Bytes(bytes) if number == field => Some(bytes),
        _ => None,
    })
}

fn text(message: &[u8], field: u64) -> String {
    all(message, field).last().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

/// The numbers of a repeated field, packed or not.
fn numbers(message: &[u8], field: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    for (number, value) in Fields(message) {
        match value {
            _ if number != field => {}
            ProtoValue::Number(value) => numbers.push(value),
            ProtoValue::Bytes(packed) => {
                let mut packed = Fields(packed);
                while let Some(value) = packed.varint() {
                    numbers.push(value);
                }
            }
        }
    }
    numbers
}

/// Appends the arrays of a `ShapeProto`. Tuples are flattened. Shapes that are not arrays of a
/// known type become `None`.
fn arrays(shape: &[u8], depth: usize, into: &mut Vec<Option<ArrayType>>) {
    let code = numbers(shape, 2).last().copied().unwrap_or(0);
    if code == 13 && depth < 8 {
        for part in all(shape, 4) {
            arrays(part, depth + 1, into);
        }
        return;
    }
    into.push(ElementType::from_primitive(code).and_then(|element_type| {
        let sizes = numbers(shape, 3).into_iter().map(|size| usize::try_from(size).ok());
        Some(ArrayType { element_type, sizes: sizes.collect::<Option<_>>()? })
    }));
}

/// The groups of devices of a collective.
fn groups(instruction: &[u8]) -> Vec<Vec<usize>> {
    let list = |message: &[u8], field| -> Vec<usize> {
        numbers(message, field).into_iter().filter_map(|own| usize::try_from(own).ok()).collect()
    };
    // `ReplicaGroup`, in the instruction or in a `CollectiveDeviceListProto`.
    let given = |message| all(message, if std::ptr::eq(message, instruction) { 49 } else { 1 });
    let device_list = all(instruction, 87).next();
    let own = given(instruction).chain(device_list.into_iter().flat_map(given));
    let found: Vec<Vec<usize>> = own.map(|group| list(group, 1)).collect();
    if !found.is_empty() {
        return found;
    }
    // `IotaReplicaGroupListProto`: the sizes of a box of devices, the order of its axes, and the
    // length of a group.
    let iota = all(instruction, 92).next().or_else(|| all(device_list?, 2).next());
    if let Some(iota) = iota {
        return iota_groups(&list(iota, 3), &list(iota, 4), list(iota, 2).first().copied().unwrap_or(1));
    }
    // `MeshAxesReplicaGroupListProto`: a mesh, and the numbers of the axes along which groups run.
    if let Some(own) = all(instruction, 93).next() {
        let mesh = all(own, 1).next().unwrap_or_default();
        let sizes: Vec<usize> =
            all(mesh, 1).map(|axis| list(axis, 2).first().copied().unwrap_or(0)).collect();
        let is_part = |axis: &[u8]| all(axis, 2).next().is_some();
        if all(mesh, 2).next().is_some() || all(own, 2).any(is_part) {
            return vec![Vec::new()];
        }
        let axes: Vec<usize> = all(own, 2).map(|axis| list(axis, 1).first().copied().unwrap_or(0)).collect();
        let mut order: Vec<usize> = (0..sizes.len()).filter(|axis| !axes.contains(axis)).collect();
        order.extend(&axes);
        let own = axes.iter().map(|&axis| sizes.get(axis).copied().unwrap_or(0));
        let len = own.fold(1, usize::saturating_mul);
        return iota_groups(&sizes, &order, len);
    }
    // Pairs of a sender and a receiver. Connected devices are one group.
    let mut found: Vec<Vec<usize>> = Vec::new();
    for pair in all(instruction, 52) {
        let number = |field| list(pair, field).first().copied().unwrap_or(0);
        let mut own = vec![number(1), number(2)];
        found.retain(|group| {
            let touches = group.iter().any(|device| own.contains(device));
            if touches {
                own.extend(group);
            }
            !touches
        });
        own.sort_unstable();
        own.dedup();
        found.push(own);
    }
    found
}

/// The devices of a box of these sizes, listed with its axes in this order, and split into groups
/// of `len`. The result is one empty group if the sizes and the order are inconsistent or if there
/// are too many devices.
fn iota_groups(sizes: &[usize], order: &[usize], len: usize) -> Vec<Vec<usize>> {
    let count = sizes.iter().try_fold(1usize, |count, &own| count.checked_mul(own)).unwrap_or(usize::MAX);
    if count > 1 << 20 || order.len() != sizes.len() || order.iter().any(|&axis| axis >= sizes.len()) {
        return vec![Vec::new()];
    }
    let step = |axis: usize| sizes[axis + 1..].iter().product::<usize>();
    let device = |mut at: usize| {
        let mut device = 0;
        for &axis in order.iter().rev() {
            device += at % sizes[axis] * step(axis);
            at /= sizes[axis];
        }
        device
    };
    let devices: Vec<usize> = (0..count).map(device).collect();
    devices.chunks(len.max(1)).map(<[usize]>::to_vec).collect()
}

/// An optimized program: a serialized `HloModuleProto`.
pub(super) struct Hlo<'a>(&'a [u8]);

impl<'a> Hlo<'a> {
    /// Reads a program in the format that the plugin reports. `None` if the format is neither `hlo`
    /// nor `hlo_with_config`, or if it is the latter and the bytes contain no program.
    pub(super) fn new(format: &str, bytes: &'a [u8]) -> Option<Hlo<'a>> {
        match format {
            "hlo" => Some(Hlo(bytes)),
            "hlo_with_config" => all(bytes, 1).next().map(Hlo),
            _ => None,
        }
    }

    /// The types of the parameters. `None` unless all of them are arrays of known types.
    pub(super) fn parameters(&self) -> Option<Vec<ArrayType>> {
        let program_shape = all(self.0, 4).last()?;
        let mut parameters = Vec::new();
        for shape in all(program_shape, 1) {
            arrays(shape, 0, &mut parameters);
        }
        parameters.into_iter().collect()
    }

    /// The opcode and the message of each instruction of all computations.
    fn instructions(&self) -> impl Iterator<Item = (String, &'a [u8])> {
        let module = self.0;
        all(module, 3)
            .flat_map(|computation| all(computation, 2))
            .map(|instruction| (text(instruction, 2), instruction))
    }

    pub(super) fn collectives(&self) -> Vec<Collective> {
        let mut found = Vec::new();
        for (opcode, instruction) in self.instructions() {
            // A collective with separate start and done instructions counts once.
            let kind = opcode.strip_suffix("-start").unwrap_or(&opcode);
            let known = [
                "all-reduce",
                "all-gather",
                "reduce-scatter",
                "all-to-all",
                "ragged-all-to-all",
                "collective-permute",
                "collective-broadcast",
            ];
            if known.contains(&kind) {
                let mut outputs = Vec::new();
                all(instruction, 3).for_each(|shape| arrays(shape, 0, &mut outputs));
                if opcode != kind && ["all-gather", "collective-permute"].contains(&kind) {
                    // These start instructions return their operands, their results, and perhaps
                    // `u32` contexts.
                    let operands = numbers(instruction, 36).len().min(outputs.len());
                    outputs.drain(..operands);
                    outputs.truncate(operands);
                }
                let outputs: Vec<ArrayType> = outputs.into_iter().flatten().collect();
                let name = text(instruction, 1);
                found.push(Collective { kind: kind.to_owned(), name, outputs, groups: groups(instruction) });
            }
        }
        found
    }

    /// The number of occurrences of each kind of instruction. A custom call counts under
    /// `custom-call` and the name of its target.
    pub(super) fn opcodes(&self) -> std::collections::BTreeMap<String, usize> {
        let mut counts = std::collections::BTreeMap::new();
        for (opcode, instruction) in self.instructions() {
            let target = text(instruction, 28);
            let name = if target.is_empty() { opcode } else { format!("{opcode} {target}") };
            *counts.entry(name).or_insert(0) += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_sharded_program() {
        let bytes = [0x1a, 9, 0x20, 1, 0x28, 4, 0x30, 1, 0x98, 1, 1];
        assert_eq!(compile_options(4, None, &[]), bytes);
    }

    #[test]
    fn options_with_flags_and_devices() {
        let bytes = compile_options(1, Some(&[2]), &[("a".to_owned(), "true".to_owned())]);
        let expected = [
            0x1a, 14, 0x20, 1, 0x28, 1, 0x4a, 8, 8, 1, 16, 1, 0x1a, 2, 8,
            2, // one computation on device 2
            0x3a, 7, 10, 1, b'a', 18, 2, 16, 1,
        ];
        assert_eq!(bytes, expected);
    }

    /// A program with one all-reduce of `f32[3]`.
    fn program() -> Vec<u8> {
        let mut shape = Writer::default();
        shape.number(2, 11).bytes(3, &[3]);
        let shape = shape.finish();
        let mut instruction = Writer::default();
        instruction.bytes(1, b"all-reduce.1").bytes(2, b"all-reduce-start").bytes(3, &shape);
        let mut computation = Writer::default();
        computation.bytes(1, b"main").bytes(2, &instruction.finish());
        let mut program_shape = Writer::default();
        program_shape.bytes(1, &shape);
        let mut module = Writer::default();
        module.bytes(3, &computation.finish()).bytes(4, &program_shape.finish());
        module.finish()
    }

    #[test]
    fn collectives_and_parameters() {
        let module = program();
        let array = ArrayType { element_type: ElementType::F32, sizes: vec![3] };
        let hlo = Hlo::new("hlo", &module).unwrap();
        assert_eq!(hlo.parameters(), Some(vec![array.clone()]));
        let collective = Collective {
            kind: "all-reduce".to_owned(),
            name: "all-reduce.1".to_owned(),
            outputs: vec![array],
            groups: Vec::new(),
        };
        assert_eq!(hlo.collectives(), [collective]);
        let mut config = Writer::default();
        config.bytes(1, &module);
        assert_eq!(Hlo::new("hlo_with_config", &config.finish()).unwrap().collectives().len(), 1);
        assert!(Hlo::new("text", &module).is_none());
    }

    /// Some arrays here have the type `c64`, which is not an [`ElementType`].
    #[test]
    fn operands_are_no_outputs() {
        let array = |code: u64, size: u8| {
            let mut array = Writer::default();
            array.number(2, code).bytes(3, &[size]);
            array.finish()
        };
        let tuple = |parts: &[Vec<u8>]| {
            let mut tuple = Writer::default();
            tuple.number(2, 13);
            for part in parts {
                tuple.bytes(4, part);
            }
            tuple.finish()
        };
        let outputs = |opcode: &str, shape: &[u8], operands: &[u8]| {
            let mut instruction = Writer::default();
            instruction.bytes(2, opcode.as_bytes()).bytes(3, shape).bytes(36, operands);
            let mut computation = Writer::default();
            computation.bytes(2, &instruction.finish());
            let mut module = Writer::default();
            module.bytes(3, &computation.finish());
            let module = module.finish();
            let mut collectives = Hlo::new("hlo", &module).unwrap().collectives();
            collectives.remove(0).outputs
        };
        let of = |size| vec![ArrayType { element_type: ElementType::F32, sizes: vec![size] }];
        let (f32s, complex, number) = (array(11, 3), array(15, 3), array(8, 1));
        let one = tuple(&[f32s.clone(), f32s.clone(), number.clone(), number.clone()]);
        assert_eq!(outputs("collective-permute-start", &one, &[7]), of(3));
        let other = tuple(&[complex.clone(), complex.clone(), number.clone(), number]);
        assert_eq!(outputs("collective-permute-start", &other, &[7]), []);
        let gathered = tuple(&[array(11, 12), array(15, 12)]);
        let two = tuple(&[tuple(&[f32s, complex]), gathered]);
        assert_eq!(outputs("all-gather-start", &two, &[7, 8]), of(12));
    }

    #[test]
    fn groups_of_devices() {
        // A 2x2 mesh: groups along the first axis, in four formats.
        let across = vec![vec![0, 2], vec![1, 3]];
        assert_eq!(groups(&[0xe2, 5, 12, 8, 2, 16, 2, 26, 2, 2, 2, 34, 2, 1, 0]), across);
        let mut axis = Writer::default();
        axis.bytes(1, b"axis").number(2, 2);
        let axis = axis.finish();
        let mut mesh = Writer::default();
        mesh.bytes(1, &axis).bytes(1, &axis);
        let mut list = Writer::default();
        list.bytes(1, &mesh.finish()).bytes(2, &[]);
        let mut instruction = Writer::default();
        instruction.bytes(93, &list.finish());
        assert_eq!(groups(&instruction.finish()), across);
        let mut instruction = Writer::default();
        for group in [[0, 2], [1, 3]] {
            instruction.bytes(49, &[10, 2, group[0], group[1]]);
        }
        assert_eq!(groups(&instruction.finish()), across);
        let mut instruction = Writer::default();
        for pair in [[0, 2], [3, 1]] {
            instruction.bytes(52, &[8, pair[0], 16, pair[1]]);
        }
        assert_eq!(groups(&instruction.finish()), across);
    }

    #[test]
    fn damaged_programs_do_not_panic() {
        let module = program();
        for end in 0..module.len() {
            for change in 0..=255 {
                let mut bytes = module[..end].to_vec();
                bytes.push(change);
                let hlo = Hlo::new("hlo", &bytes).unwrap();
                let _ = (hlo.parameters(), hlo.collectives(), hlo.opcodes());
            }
        }
    }
}
